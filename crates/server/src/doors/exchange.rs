//! The door at which passwords are proved and never sent (OPAQUE, [`crate::auth::passwords`]): to sign in, and to change them.
//!
//! *Goals*: a guess costs an attempt, as at the sign-in with a password; nobody learns which accounts there are. *Invariants*: the attempt is
//! taken as an exchange begins, since the client knows then whether its guess was right; it is given back once, to who proves it. To
//! change a password takes two, for both messages are answered under the key of the account, and each may be a guess.

use std::sync::Arc;

use axum::extract::{ConnectInfo, State};
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::DeviceId;
use serde::{Deserialize, Serialize};

use super::account::{self, PasswordChanged, Proved};
use super::rest::{self, LoginAnswer};
use super::to_the_end;
use crate::app::App;
use crate::audit::{Happened, Line};
use crate::auth::Caller;
use crate::auth::passwords::{Begun, Passwords};
use crate::error::{Result, ServerError};
use crate::limits::ACCOUNT_NAME_LENGTH_MAX;
use crate::listener::PeerAddress;
use crate::metadata::AccountRecord;

/// How many guesses at the password of an account the answers to one beginning change of it are good for: what comes of the new one, too, can
/// be tried at what is kept of the old one.
const GUESSES_OF_CHANGE: u32 = 2;

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/login/begin", post(begin))
        .route("/login/finish", post(finish))
        .route("/account/password/begin", post(begin_change))
        .route("/account/password/finish", post(finish_change))
}

#[derive(Deserialize)]
struct BeginRequest {
    user: String,
    message: String,
}

#[derive(Serialize)]
struct BegunAnswer {
    message: String,
    session: String,
}

impl BegunAnswer {
    fn new(begun: &Begun) -> Self {
        Self { message: STANDARD.encode(&begun.message), session: STANDARD.encode(&begun.session) }
    }
}

#[derive(Deserialize)]
struct FinishRequest {
    session: String,
    message: String,
    device_name: String,
    /// What the second factor wants, where the account has one.
    code: Option<String>,
}

async fn begin(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    Json(request): Json<BeginRequest>,
) -> Result<Json<BegunAnswer>> {
    let BeginRequest { user, message } = request;
    let message = decode("message", &message)?;
    if user.len() > ACCOUNT_NAME_LENGTH_MAX {
        return Err(ServerError::WrongPassword);
    }
    rest::take_login_attempt(&app, &user, peer.network())?;
    let account = rest::find_account(&app, &user).await?;
    let (account, now) = ((user.as_str(), account.as_ref()), app.now());
    let begun = app.passwords().await?.begin(account, None, &message, (&*app.random, now));
    let (exchange, begun) = begun?;
    app.exchanges.note(&exchange, app.clock.elapsed());
    Ok(Json(BegunAnswer::new(&begun)))
}

async fn finish(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    Json(request): Json<FinishRequest>,
) -> Result<Json<LoginAnswer>> {
    let FinishRequest { session, message, device_name, code } = request;
    let (session, proof) = (decode("session", &session)?, decode("message", &message)?);
    let sign_in = async move {
        let proved = prove(&app, (&session, &proof), None).await;
        if let Err(ServerError::WrongPassword) = &proved {
            rest::refused(&app, "", peer).await;
        }
        let (account, is_first) = proved?;
        if is_first {
            app.logins_per_account.give_back(&account.name);
            app.logins_per_address.give_back(&peer.network());
        }
        let proved = (&account, Proved::Password);
        let signed_in = account::admit(&app, proved, code, device_name, peer).await?;
        Ok(rest::welcome(&app, account, signed_in, Happened::SignedIn, peer).await)
    };
    to_the_end(sign_in).await
}

/// Returns the account whose password was proved, and whether this exchange has given its attempt back just now. It must have been begun by
/// `device`, or by nobody.
async fn prove(
    app: &App,
    (session, proof): (&[u8], &[u8]),
    device: Option<DeviceId>,
) -> Result<(AccountRecord, bool)> {
    let opened = app.passwords().await?.open(session, app.now())?;
    let exchange = opened.exchange.clone();
    let id = exchange.account.filter(|_| exchange.device == device);
    let id = id.ok_or(ServerError::WrongPassword)?;
    let account = app.readers.read(move |metadata| Ok(metadata.account(id)?)).await?;
    let account = account.filter(|account| !account.is_disabled);
    let account = account.ok_or(ServerError::WrongPassword)?;
    opened.finish(&account.password_hash, proof)?;
    Ok((account, app.exchanges.take(&exchange)))
}

#[derive(Deserialize)]
struct BeginChange {
    message: String,
    new_message: String,
}

#[derive(Serialize)]
struct BegunChange {
    message: String,
    new_message: String,
    session: String,
}

#[derive(Deserialize)]
struct FinishChange {
    session: String,
    message: String,
    new_message: String,
    #[serde(default)]
    sign_out_others: bool,
}

async fn begin_change(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(request): Json<BeginChange>,
) -> Result<Json<BegunChange>> {
    let account = account::own_account(&app, caller).await?;
    account::take_proofs(&app, caller.device, GUESSES_OF_CHANGE)?;
    let message = decode("message", &request.message)?;
    let new_message = decode("new_message", &request.new_message)?;
    let (passwords, name) = (app.passwords().await?, account.name.clone());
    let account = (name.as_str(), Some(&account));
    let environment = (&*app.random, app.now());
    let begun = passwords.begin(account, Some(caller.device), &message, environment);
    let (exchange, begun) = begun?;
    app.exchanges.note(&exchange, app.clock.elapsed());
    let BegunAnswer { message, session } = BegunAnswer::new(&begun);
    let new_message = STANDARD.encode(passwords.begin_new(&name, &new_message)?);
    Ok(Json(BegunChange { message, new_message, session }))
}

async fn finish_change(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(request): Json<FinishChange>,
) -> Result<Json<PasswordChanged>> {
    account::own_account(&app, caller).await?;
    let (session, proof) =
        (decode("session", &request.session)?, decode("message", &request.message)?);
    let new = Passwords::finish_new(&decode("new_message", &request.new_message)?)?;
    let proved = prove(&app, (&session, &proof), Some(caller.device)).await;
    if let Err(ServerError::WrongPassword) = &proved {
        note_refusal(&app, caller).await;
    }
    let (account, is_first) = proved?;
    if is_first {
        app.proofs_per_device.give_back_several(&caller.device, GUESSES_OF_CHANGE);
    }
    account::change(app, (caller, account), new, request.sign_out_others).await
}

async fn note_refusal(app: &App, caller: Caller) {
    let line = Line::new(app.clock.now(), Happened::PasswordRefused).by(caller.device);
    app.audit.note(line).await;
}

/// Reads bytes of a message.
///
/// # Errors
/// [`ServerError::Invalid`].
pub(super) fn decode(what: &'static str, text: &str) -> Result<Vec<u8>> {
    let invalid = |_| ServerError::Invalid { what, reason: "it is not base64".to_owned() };
    STANDARD.decode(text).map_err(invalid)
}
