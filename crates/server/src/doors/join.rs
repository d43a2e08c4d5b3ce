//! The door for who was invited: making an account of one's own, with a password that is never sent (OPAQUE).
//!
//! *Goals*: who has the secret of an invitation makes one account, and nobody else any. *Invariants*: the secret comes in a body, never in an
//! address that a log could hold; nobody is helped to guess at the password of an account that is there, for the server's half of
//! the exchange is refused for a name in use, and for any other one it costs an attempt at that name, as a sign-in does.

use std::sync::Arc;

use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::exchange::decode;
use super::rest::{self, LoginAnswer};
use super::to_the_end;
use crate::app::App;
use crate::audit::{Happened, Line};
use crate::auth::invitation::InvitationSecret;
use crate::auth::passwords::Passwords;
use crate::error::{Ended, Result, ServerError};
use crate::listener::PeerAddress;
use crate::metadata::{AccountRecord, InvitationRecord, Metadata};
use crate::services::accounts;
use crate::services::invitations::{self, Comer};
use crate::services::passwords::SignedIn;

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/join", post(look))
        .route("/join/begin", post(begin))
        .route("/join/finish", post(finish))
}

#[derive(Deserialize)]
struct LookRequest {
    secret: String,
}

#[derive(Serialize)]
struct InvitationAnswer {
    /// The name that is proposed.
    name: Option<String>,
    quota_bytes: Option<u64>,
    /// In seconds since 1970.
    expires: i64,
}

async fn look(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    Json(request): Json<LookRequest>,
) -> Result<Json<InvitationAnswer>> {
    let now = app.now();
    let open = move |metadata: &dyn Metadata, secret: &InvitationSecret| {
        invitations::open(metadata, secret, now)
    };
    let found = find(&app, &request.secret, peer, open).await?.1.invitation;
    let (name, quota_bytes, expires) = (found.name, found.quota_bytes, found.expires);
    Ok(Json(InvitationAnswer { name, quota_bytes, expires }))
}

#[derive(Deserialize)]
struct BeginRequest {
    secret: String,
    user: String,
    message: String,
}

#[derive(Serialize)]
struct BegunAnswer {
    message: String,
}

async fn begin(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    Json(request): Json<BeginRequest>,
) -> Result<Json<BegunAnswer>> {
    let BeginRequest { secret, user, message } = request;
    let message = decode("message", &message)?;
    find_for(&app, &secret, &user, peer).await?;
    rest::take_login_attempt(&app, &user, peer.network())?;
    let answer = app.passwords().await?.begin_new(&user, &message)?;
    Ok(Json(BegunAnswer { message: STANDARD.encode(answer) }))
}

#[derive(Deserialize)]
struct FinishRequest {
    secret: String,
    user: String,
    message: String,
    device_name: String,
}

async fn finish(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    Json(request): Json<FinishRequest>,
) -> Result<(StatusCode, Json<LoginAnswer>)> {
    let FinishRequest { secret, user, message, device_name } = request;
    accounts::check_device_name(&device_name)?;
    let kept = Passwords::finish_new(&decode("message", &message)?)?;
    let now = app.now();
    let (secret, found) = find_for(&app, &secret, &user, peer).await?;
    let join = async move {
        let random = Arc::clone(&app.random);
        let join = move |metadata: &mut dyn Metadata| {
            let comer = Comer { name: &user, kept: &kept, device_name: &device_name };
            invitations::join(metadata, &*random, &secret, comer, now)
        };
        let joined = app.writer.write(join).await;
        if let Err(ServerError::InvitationGone { .. }) = &joined {
            refused(&app, peer).await;
        }
        let (account, signed_in) = joined?;
        let line = Line::new(app.clock.now(), Happened::AccountMade).from(peer.0.ip());
        let line = line.of_account(Some(account.name.clone()));
        app.audit.note(line.to(format!("invitation {}", found.id.number()))).await;
        Ok((StatusCode::CREATED, welcome(&app, account, signed_in, peer).await))
    };
    to_the_end(join).await
}

/// Answers who has an account now; the attempts that this took are given back, once, for the invitation counts once.
async fn welcome(
    app: &App,
    account: AccountRecord,
    signed_in: SignedIn,
    peer: PeerAddress,
) -> Json<LoginAnswer> {
    app.logins_per_account.give_back(&account.name);
    app.logins_per_address.give_back(&peer.network());
    rest::welcome(app, account, signed_in, Happened::SignedIn, peer).await
}

/// Finds an invitation by which an account of that name can be made.
async fn find_for(
    app: &App,
    secret: &str,
    user: &str,
    peer: PeerAddress,
) -> Result<(InvitationSecret, InvitationRecord)> {
    let (name, now) = (user.to_owned(), app.now());
    let open = move |metadata: &dyn Metadata, secret: &InvitationSecret| {
        invitations::open_for(metadata, secret, &name, now)
    };
    find(app, secret, peer, open).await
}

/// Finds an invitation by its secret. Only so many that lead nowhere are answered, beside links that do; whoever comes by many of them
/// keeps nobody from one that counts. A name in use costs as much, so that no invitation lists the names that there are.
async fn find<T: Send + 'static>(
    app: &App,
    secret: &str,
    peer: PeerAddress,
    open: impl FnOnce(&dyn Metadata, &InvitationSecret) -> Result<T> + Send + 'static,
) -> Result<(InvitationSecret, T)> {
    let found = try_to_find(app, secret, open).await;
    let is_gone = matches!(&found, Err(ServerError::InvitationGone { .. }));
    if is_gone || matches!(&found, Err(ServerError::Taken { .. })) {
        let limits = &app.dead_links_per_address;
        let taken = limits.take(peer.network(), app.clock.elapsed());
        taken.inspect_err(|_| app.metrics.logins_refused.add(1)).map_err(ServerError::limited)?;
    }
    if is_gone {
        refused(app, peer).await;
    }
    found
}

async fn try_to_find<T: Send + 'static>(
    app: &App,
    secret: &str,
    open: impl FnOnce(&dyn Metadata, &InvitationSecret) -> Result<T> + Send + 'static,
) -> Result<(InvitationSecret, T)> {
    let secret = InvitationSecret::from_text(secret);
    let secret = secret.ok_or(ServerError::InvitationGone { how: Ended::Unknown })?;
    let asked = secret.clone();
    let found = app.readers.read(move |metadata| open(metadata, &asked)).await?;
    Ok((secret, found))
}

/// Notes that somebody came by an invitation that does not count. Who comes too often is only counted, or strangers would fill the disk.
async fn refused(app: &App, peer: PeerAddress) {
    app.metrics.logins_refused.add(1);
    let line = Line::new(app.clock.now(), Happened::InvitationRefused).from(peer.0.ip());
    app.audit.note(line).await;
}
