//! The control door over HTTP: signing in by a provider of OpenID Connect, and which people there are bound to an account.
//!
//! *Invariants*: who tries is counted before the provider is asked; what was right gives its attempt back; what is done with a
//! code is done to its end, for it counts once; each refusal stands in the audit log, unless it is that of one of too many attempts, with
//! which strangers would fill the disk: those are counted.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use super::account::{self, Proved};
use super::rest::{LoginAnswer, welcome};
use super::to_the_end;
use crate::app::App;
use crate::audit::{Happened, Line};
use crate::auth::Caller;
use crate::auth::subject::Subject;
use crate::error::{Result, ServerError};
use crate::limits::SIGN_IN_TIMEOUT;
use crate::listener::PeerAddress;
use crate::metadata::{AccountRecord, Metadata, MetadataError, SubjectRecord};
use crate::oidc::{Grant, Newcomers, Provider, in_time};
use crate::services::{accounts, subjects};

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/sign-in/oidc", get(offer).post(sign_in))
        .route("/account/oidc", get(list).post(bind))
        .route("/account/oidc/{subject}", delete(unbind))
}

fn provider(app: &App) -> Result<&Provider> {
    let what = "sign-in by OpenID Connect at this server".to_owned();
    app.oidc.as_ref().ok_or(ServerError::NotFound { what })
}

#[derive(Serialize)]
struct OfferAnswer {
    issuer: String,
    authorization_endpoint: String,
    client_id: String,
    scope: &'static str,
}

async fn offer(State(app): State<Arc<App>>) -> Result<Json<OfferAnswer>> {
    let offer = provider(&app)?.offer().await?;
    Ok(Json(OfferAnswer {
        issuer: offer.issuer,
        authorization_endpoint: offer.authorization_endpoint,
        client_id: offer.client_id,
        scope: offer.scope,
    }))
}

#[derive(Deserialize)]
struct SignInRequest {
    #[serde(flatten)]
    grant: Grant,
    device_name: String,
    /// What the second factor wants, where the account has one.
    code: Option<String>,
}

async fn sign_in(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    Json(request): Json<SignInRequest>,
) -> Result<Json<LoginAnswer>> {
    let SignInRequest { grant, device_name, code } = request;
    accounts::check_device_name(&device_name)?;
    provider(&app)?;
    let sign_in = async move {
        let mut line = Line::new(app.clock.now(), Happened::OidcRefused).from(peer.0.ip());
        let (account, subject) = match find(&app, &grant, peer, &mut line).await {
            Ok(found) => found,
            Err(error) => return Err(refuse(&app, error, line).await),
        };
        let proved = (&account, Proved::Subject(subject));
        match account::admit(&app, proved, code, device_name, peer).await {
            Ok(signed_in) => {
                Ok(welcome(&app, account, signed_in, Happened::OidcSignedIn, peer).await)
            }
            // What is wrong with a code is noted where codes are.
            Err(
                error @ (ServerError::CodeNeeded
                | ServerError::WrongCode
                | ServerError::RateLimited { .. }),
            ) => Err(error),
            Err(error) => Err(refuse(&app, error, line).await),
        }
    };
    to_the_end(sign_in).await
}

/// Writes down that somebody was refused, with what is known of them by then, and passes on why. What was not listened to is only counted.
async fn refuse(app: &App, error: ServerError, line: Line) -> ServerError {
    if is_refusal(&error) {
        if line.device.is_none() {
            app.metrics.logins_refused.add(1);
        }
        if !matches!(error, ServerError::RateLimited { .. }) {
            app.audit.note(Line { time: app.now(), ..line }).await;
        }
    }
    error
}

/// Tells whether it is for who asks, or what they show, that they do not get what they want: not for a part that fails.
fn is_refusal(error: &ServerError) -> bool {
    !matches!(
        error,
        ServerError::ProviderUnusable { .. }
            | ServerError::Unavailable { .. }
            | ServerError::Metadata(_)
            | ServerError::Storage { .. }
    )
}

/// Whom the provider has named.
enum Comer {
    /// Somebody who is bound to this account.
    Known(AccountRecord),
    /// Somebody who is to get one of this name, and so large.
    New(String, Option<u64>),
}

/// Finds out who has come, and whose account that is, and tells the line who the provider says it is: nobody has typed that. Only so many
/// attempts are listened to.
async fn find(
    app: &App,
    grant: &Grant,
    peer: PeerAddress,
    line: &mut Line,
) -> Result<(AccountRecord, Subject)> {
    let (provider, address) = (provider(app)?, peer.network());
    let attempts = &app.provider_logins_per_address;
    attempts.take(address, app.clock.elapsed()).map_err(ServerError::limited)?;
    let ask = async {
        let proven = provider.prove(grant).await?;
        attempts.give_back(&address);
        let subject = proven.subject.clone();
        line.subject = Some(subject.id().to_owned());
        let wanted = subject.clone();
        let found = app.readers.read(move |metadata| subjects::account_of(metadata, &wanted)).await;
        let comer = match (found, provider.newcomers()) {
            (Err(ServerError::NotBound { .. }), Newcomers::GetAccounts { quota_bytes }) => {
                Comer::New(provider.name_of(&proven).await?, quota_bytes)
            }
            (found, _) => Comer::Known(found?),
        };
        Ok((subject, comer))
    };
    let (subject, comer) = in_time(SIGN_IN_TIMEOUT, ask).await?;
    let account = match comer {
        Comer::Known(account) => account,
        Comer::New(name, quota) => make_account(app, &subject, (name, quota), peer).await?,
    };
    line.account = Some(account.name.clone());
    Ok((account, subject))
}

/// Makes an account for somebody whom the provider has named, and whom nobody knows here.
async fn make_account(
    app: &App,
    subject: &Subject,
    (name, quota): (String, Option<u64>),
    peer: PeerAddress,
) -> Result<AccountRecord> {
    let now = app.now();
    let make = || {
        let (subject, name) = (subject.clone(), name.clone());
        let create = move |metadata: &mut dyn Metadata| {
            subjects::create(metadata, &subject, (&name, quota), now)
        };
        app.writer.write(create)
    };
    let (account, is_new) = match make().await {
        // Another server may have made it for the same person at this moment.
        Err(ServerError::Taken { .. } | ServerError::Metadata(MetadataError::Taken { .. })) => {
            make().await?
        }
        made => made?,
    };
    if !is_new {
        return Ok(account);
    }
    tracing::info!(account = %account.name, "an account was made for somebody whom the provider named");
    let line = Line::new(app.clock.now(), Happened::AccountMade).from(peer.0.ip());
    let line = line.of_account(Some(account.name.clone())).to(subject.id());
    app.audit.note(line).await;
    Ok(account)
}

#[derive(Serialize)]
struct SubjectLine {
    issuer: String,
    subject: String,
    since: i64,
}

impl From<SubjectRecord> for SubjectLine {
    fn from(SubjectRecord { subject, since }: SubjectRecord) -> Self {
        let (issuer, subject) = (subject.issuer().to_owned(), subject.id().to_owned());
        Self { issuer, subject, since }
    }
}

async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Vec<SubjectLine>>> {
    let found = app.readers.read(move |metadata| subjects::list(metadata, &caller)).await?;
    Ok(Json(found.into_iter().map(SubjectLine::from).collect()))
}

#[derive(Deserialize)]
struct BindRequest {
    /// Who finds a device that is signed in must not make a way in for themselves.
    password: String,
    #[serde(flatten)]
    grant: Grant,
}

async fn bind(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(request): Json<BindRequest>,
) -> Result<(StatusCode, Json<SubjectLine>)> {
    let BindRequest { password, grant } = request;
    let began = app.clock.elapsed();
    let account = account::check_own_password(&app, caller, password).await?;
    provider(&app)?;
    let bind = async move {
        let mut line = Line::new(app.clock.now(), Happened::OidcRefused).by(caller.device);
        let waited = app.clock.elapsed().saturating_sub(began);
        let asked = (&grant, SIGN_IN_TIMEOUT.saturating_sub(waited));
        match try_to_bind(&app, (caller, account), asked, &mut line).await {
            Ok(bound) => Ok((StatusCode::CREATED, Json(bound.into()))),
            Err(error) => Err(refuse(&app, error, line).await),
        }
    };
    to_the_end(bind).await
}

async fn try_to_bind(
    app: &App,
    (caller, account): (Caller, AccountRecord),
    (grant, limit): (&Grant, Duration),
    line: &mut Line,
) -> Result<SubjectRecord> {
    account::take_proofs(app, caller.device, 1)?;
    let proven = in_time(limit, provider(app)?.prove(grant)).await;
    if !proven.as_ref().is_err_and(is_refusal) {
        app.proofs_per_device.give_back(&caller.device);
    }
    let (subject, now) = (proven?.subject, app.now());
    line.subject = Some(subject.id().to_owned());
    let bind = move |metadata: &mut dyn Metadata| {
        subjects::bind(metadata, &caller, &account, &subject, now)
    };
    let bound = app.writer.write(bind).await?;
    let line = Line::new(app.clock.now(), Happened::OidcBound).by(caller.device);
    app.audit.note(line.to(bound.subject.id())).await;
    Ok(bound)
}

async fn unbind(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(subject): Path<String>,
) -> Result<StatusCode> {
    let unbind = async move {
        let id = subject.clone();
        let issuer = app.oidc.as_ref().map(|provider| provider.issuer().to_owned());
        let unbind = move |metadata: &mut dyn Metadata| {
            subjects::unbind(metadata, &caller, &id, issuer.as_deref())
        };
        app.writer.write(unbind).await?;
        let line = Line::new(app.clock.now(), Happened::OidcUnbound).by(caller.device);
        app.audit.note(line.to(subject)).await;
        Ok(StatusCode::NO_CONTENT)
    };
    to_the_end(unbind).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::REQUEST_TIMEOUT;
    use crate::oidc::OidcOptions;
    use crate::testing::{PASSWORD, TestApp};
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn who_waits_too_long_for_the_provider_hears_so_while_the_request_lasts() {
        let mut test = TestApp::start();
        let addresses = ["https://cloud.example.org".to_owned()];
        let newcomers = Newcomers::GetAccounts { quota_bytes: None };
        let issuer = "https://id.example.org";
        let options = OidcOptions::new(issuer, "x", None, &addresses, newcomers).unwrap();
        let app = Arc::get_mut(&mut test.app).unwrap();
        app.oidc = Some(Provider::new(options, Arc::clone(&app.clock)).unwrap());
        let app = Arc::clone(&test.app);
        let _turns = app.oidc.as_ref().unwrap().hold_turns();
        let grant = || Grant {
            authorization_code: "a-code".to_owned(),
            redirect_uri: "http://127.0.0.1:4711/sign-in/oidc/cloud.example.org".to_owned(),
            code_verifier: "v".repeat(43),
            nonce: "n".repeat(22),
        };
        let peer = ConnectInfo(PeerAddress("127.0.0.1:4712".parse().unwrap()));
        let request = SignInRequest { grant: grant(), device_name: "new".to_owned(), code: None };
        let start = Instant::now();
        let refused = sign_in(State(Arc::clone(&app)), peer, Json(request)).await.map(drop);
        assert!(matches!(refused, Err(ServerError::ProviderUnusable { .. })), "{refused:?}");
        assert!(start.elapsed() < REQUEST_TIMEOUT, "{:?}", start.elapsed());

        let request = BindRequest { password: PASSWORD.to_owned(), grant: grant() };
        let start = Instant::now();
        let refused = bind(State(Arc::clone(&app)), test.devices[0], Json(request)).await.map(drop);
        assert!(matches!(refused, Err(ServerError::ProviderUnusable { .. })), "{refused:?}");
        assert!(start.elapsed() < REQUEST_TIMEOUT, "{:?}", start.elapsed());
    }
}
