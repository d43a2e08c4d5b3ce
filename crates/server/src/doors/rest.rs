//! The control door over HTTP: signing in, devices, workspaces ([`members`] beside it). JSON in and out, but for the genesis, whose bytes count.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use model::codec::{decode_message, encode_message};
use model::environment::random_bytes;
use model::{DeviceId, Genesis, Mode};
use serde::{Deserialize, Serialize};

use super::account::Proved;
use super::members::{self, role_name};
use super::{account, exchange, identities, join, links, log, oidc, to_the_end, tokens};
use crate::app::App;
use crate::audit::{Happened, Line};
use crate::auth::Caller;
use crate::auth::passwords::is_old;
use crate::error::{Result, ServerError};
use crate::limits::{ACCOUNT_NAME_LENGTH_MAX, REQUEST_TIMEOUT, SMALL_BODY_LENGTH_MAX};
use crate::listener::PeerAddress;
use crate::metadata::AccountRecord;
use crate::services::accounts::KnownDevice;
use crate::services::passwords::SignedIn;
use crate::services::workspaces::SeenWorkspace;
use crate::services::{accounts, workspaces};

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/login", post(login))
        .route("/logout", post(logout))
        .route("/whoami", get(whoami))
        .route("/devices", get(list_devices))
        .route("/devices/{device}", patch(rename_device).delete(revoke_device))
        .route("/workspaces", get(list_workspaces).post(create_workspace))
        .route("/workspaces/{workspace}", get(find_workspace))
        .route("/workspaces/{workspace}/genesis", get(send_genesis))
        .merge(account::routes())
        .merge(exchange::routes())
        .merge(oidc::routes())
        .merge(join::routes())
        .merge(members::routes())
        .merge(identities::routes())
        .merge(links::routes())
        .merge(log::routes())
        .merge(tokens::routes())
        .layer(DefaultBodyLimit::max(SMALL_BODY_LENGTH_MAX))
        .layer(middleware::from_fn(limit_time))
}

async fn limit_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ServerError::Unavailable { reason: "took too long" }.into_response(),
    }
}

#[derive(Deserialize)]
struct LoginRequest {
    user: String,
    password: String,
    device_name: String,
    /// What the second factor wants, where the account has one.
    code: Option<String>,
}

#[derive(Serialize)]
pub(super) struct LoginAnswer {
    token: String,
    device_id: String,
    account: String,
}

async fn login(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    Json(request): Json<LoginRequest>,
) -> Result<Json<LoginAnswer>> {
    let LoginRequest { user, password, device_name, code } = request;
    let account = check_password(&app, &user, password, peer).await?;
    let sign_in = async move {
        let proved = (&account, Proved::Password);
        let signed_in = account::admit(&app, proved, code, device_name, peer).await?;
        Ok(welcome(&app, account, signed_in, Happened::SignedIn, peer).await)
    };
    to_the_end(sign_in).await
}

/// Answers a device that has signed in; what was signed out to make room for it hears so.
pub(super) async fn welcome(
    app: &App,
    account: AccountRecord,
    SignedIn { caller, token, made_room, .. }: SignedIn,
    event: Happened,
    peer: PeerAddress,
) -> Json<LoginAnswer> {
    tracing::info!(account = %account.name, device = %caller.device, "a device signed in");
    let line = Line::new(app.clock.now(), event).by(caller.device);
    let line = line.from(peer.0.ip()).of_account(Some(account.name.clone()));
    app.audit.note(line).await;
    have_made_room(app, caller, made_room).await;
    let device_id = caller.device.to_string();
    Json(LoginAnswer { token: token.to_text(), device_id, account: account.name })
}

/// Returns the account of a name and its password. Only so many attempts are listened to.
///
/// # Errors
/// [`ServerError::WrongPassword`], [`ServerError::RateLimited`].
pub(crate) async fn check_password(
    app: &App,
    user: &str,
    password: String,
    peer: PeerAddress,
) -> Result<AccountRecord> {
    let checked = try_password(app, user, password, peer.network()).await;
    if let Err(ServerError::WrongPassword) = &checked {
        refused(app, user, peer).await;
    }
    checked
}

/// Counts a sign-in that is refused, and notes it.
pub(super) async fn refused(app: &App, user: &str, peer: PeerAddress) {
    app.metrics.logins_refused.add(1);
    // Who is refused costs no more than somebody wants to know.
    if !app.audit.is_on() {
        return;
    }
    let name = user.to_owned();
    // What is no name of an account may be a password that was typed in its place.
    let find = move |metadata: &dyn crate::metadata::Metadata| {
        Ok(metadata.account_by_name(&name)?.map(|account| account.name))
    };
    let known = app.readers.read(find).await.unwrap_or_default();
    let line = Line::new(app.clock.now(), Happened::SignInRefused);
    app.audit.note(line.of_account(known).from(peer.0.ip())).await;
}

async fn try_password(
    app: &App,
    user: &str,
    password: String,
    address: IpAddr,
) -> Result<AccountRecord> {
    if user.len() > ACCOUNT_NAME_LENGTH_MAX {
        return Err(ServerError::WrongPassword);
    }
    take_login_attempt(app, user, address)?;
    let passwords = app.passwords().await?;
    let turn = app.password_turn().await?;
    let account = find_account(app, user).await?;
    let kept = account.as_ref().map(|account| account.password_hash.clone());
    let (name, random) = (user.to_owned(), Arc::clone(&app.random));
    let verify = move || {
        let fits = passwords.verify(&name, kept.as_deref(), &password, &*random);
        // It is not asked for again: from now on it can be proved without being sent.
        let is_outdated = fits && kept.as_deref().is_some_and(is_old);
        let renewed = is_outdated.then(|| passwords.keep(&name, &password, &*random));
        (fits, renewed.and_then(Result::ok))
    };
    let (fits, renewed) = turn.stretch(verify).await?;
    let mut account = account.filter(|_| fits).ok_or(ServerError::WrongPassword)?;
    if let Some(renewed) = renewed {
        renew(app, &mut account, renewed).await?;
    }
    app.logins_per_account.give_back(&user.to_owned());
    app.logins_per_address.give_back(&address);
    Ok(account)
}

/// Keeps a password that was right in another form, unless it was changed meanwhile.
async fn renew(app: &App, account: &mut AccountRecord, renewed: String) -> Result<()> {
    let (id, old, new) = (account.id, account.password_hash.clone(), renewed.clone());
    let replace = move |metadata: &mut dyn crate::metadata::Metadata| {
        Ok(metadata.replace_password(id, &old, &new)?)
    };
    if app.writer.write(replace).await? {
        account.password_hash = renewed;
    }
    Ok(())
}

/// Returns the account of a name, unless it is disabled.
pub(super) async fn find_account(app: &App, name: &str) -> Result<Option<AccountRecord>> {
    let name = name.to_owned();
    let account = app.readers.read(move |metadata| Ok(metadata.account_by_name(&name)?)).await?;
    Ok(account.filter(|account| !account.is_disabled))
}

/// Takes an attempt to sign in. What is not listened to is counted, and not noted, or strangers would fill the disk.
///
/// # Errors
/// [`ServerError::RateLimited`].
pub(super) fn take_login_attempt(app: &App, user: &str, address: IpAddr) -> Result<()> {
    let now = app.clock.elapsed();
    let taken = app.logins_per_address.take(address, now);
    let taken = taken.and_then(|()| app.logins_per_account.take(user.to_owned(), now));
    taken.inspect_err(|_| app.metrics.logins_refused.add(1)).map_err(ServerError::limited)
}

async fn logout(State(app): State<Arc<App>>, caller: Caller) -> Result<StatusCode> {
    let sign_out = async move {
        app.writer.write(move |metadata| accounts::sign_out(metadata, &caller)).await?;
        signed_out(&app, (caller, caller.device), Happened::SignedOut).await;
        Ok(StatusCode::NO_CONTENT)
    };
    to_the_end(sign_out).await
}

#[derive(Serialize)]
struct WhoAmI {
    account: String,
    device_id: String,
    device_name: String,
    quota_bytes: Option<u64>,
    used_bytes: u64,
}

async fn whoami(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<WhoAmI>> {
    let read = move |metadata: &dyn crate::metadata::Metadata| {
        let account = accounts::own_account(metadata, &caller)?;
        let device = metadata.device(caller.device)?.ok_or(ServerError::NotSignedIn)?;
        Ok(WhoAmI {
            account: account.name,
            device_id: device.id.to_string(),
            device_name: device.name,
            quota_bytes: account.quota_bytes,
            used_bytes: metadata.used_bytes(caller.account)?,
        })
    };
    app.readers.read(read).await.map(Json)
}

#[derive(Serialize)]
struct DeviceLine {
    id: String,
    name: String,
    created: i64,
    last_seen: i64,
    last_in_sync: Option<i64>,
    is_this: bool,
}

impl DeviceLine {
    fn new((device, last_in_sync): KnownDevice, caller: &Caller) -> Self {
        Self {
            id: device.id.to_string(),
            is_this: device.id == caller.device,
            name: device.name,
            created: device.created,
            last_seen: device.last_seen,
            last_in_sync,
        }
    }
}

async fn list_devices(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<Vec<DeviceLine>>> {
    let devices =
        app.readers.read(move |metadata| accounts::list_devices(metadata, &caller)).await?;
    Ok(Json(devices.into_iter().map(|device| DeviceLine::new(device, &caller)).collect()))
}

#[derive(Deserialize)]
struct Renaming {
    name: String,
}

async fn rename_device(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(device): Path<String>,
    Json(renaming): Json<Renaming>,
) -> Result<Json<DeviceLine>> {
    let id = parse_device(&device)?;
    let rename = move |metadata: &mut dyn crate::metadata::Metadata| {
        accounts::rename_device(metadata, &caller, id, &renaming.name)
    };
    let device = app.writer.write(rename).await?;
    Ok(Json(DeviceLine::new(device, &caller)))
}

async fn revoke_device(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(device): Path<String>,
) -> Result<StatusCode> {
    let device = parse_device(&device)?;
    let revoke = async move {
        app.writer
            .write(move |metadata| accounts::revoke_device(metadata, &caller, device))
            .await?;
        let event = match device == caller.device {
            true => Happened::SignedOut,
            false => Happened::DeviceRevoked,
        };
        signed_out(&app, (caller, device), event).await;
        Ok(StatusCode::NO_CONTENT)
    };
    to_the_end(revoke).await
}

/// Closes the connections of a device, or of an application, whose token is worth nothing any more, here and elsewhere.
pub(super) async fn signed_out(app: &App, (caller, device): (Caller, DeviceId), event: Happened) {
    app.sign_out(device);
    tracing::info!(%device, "a device was signed out");
    let line = Line::new(app.clock.now(), event).by(caller.device).to(device);
    app.audit.note(line).await;
}

/// The same of devices that were signed out to make room for another one.
pub(super) async fn have_made_room(app: &App, caller: Caller, gone: Vec<DeviceId>) {
    for device in gone {
        signed_out(app, (caller, device), Happened::DeviceRevoked).await;
    }
}

fn parse_device(text: &str) -> Result<DeviceId> {
    text.parse().map_err(|_| ServerError::NotFound { what: format!("device '{text}'") })
}

#[derive(Serialize)]
struct WorkspaceLine {
    id: String,
    name: String,
    owner: String,
    role: &'static str,
    /// Whether the server can read it: `plain` or `sealed`.
    mode: &'static str,
    head_seq: u64,
    /// The hash of that entry; that of the genesis before the first one.
    head_hash: String,
    used_bytes: u64,
}

impl From<SeenWorkspace> for WorkspaceLine {
    fn from(seen: SeenWorkspace) -> Self {
        Self {
            id: seen.workspace.id.to_string(),
            mode: if workspaces::is_sealed(&seen.workspace) { "sealed" } else { "plain" },
            name: seen.name,
            owner: seen.owner,
            role: role_name(seen.role),
            head_seq: seen.workspace.head.seq,
            head_hash: seen.workspace.head.hash.to_string(),
            used_bytes: seen.workspace.used_bytes,
        }
    }
}

async fn list_workspaces(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<Vec<WorkspaceLine>>> {
    let found = app.readers.read(move |metadata| workspaces::list(metadata, &caller)).await?;
    Ok(Json(found.into_iter().map(WorkspaceLine::from).collect()))
}

#[derive(Deserialize)]
struct NewWorkspace {
    name: String,
}

/// Makes the genesis of a plain workspace for who cannot. It has a key in it, which the server knows of every plain workspace; a sealed one
/// is made by a device, whose keys the server must not see.
fn encoded_genesis(app: &App, request: &[u8]) -> Result<Vec<u8>> {
    let request: NewWorkspace = serde_json::from_slice(request)
        .map_err(|error| ServerError::Invalid { what: "body", reason: error.to_string() })?;
    let (created, content_key) = (app.clock.now(), random_bytes(&*app.random));
    let genesis = Genesis { name: request.name, mode: Mode::Plain, created, content_key };
    Ok(encode_message(&genesis))
}

/// The body is the encoded genesis; the id of the workspace is its hash, which the caller knows already. Or it is JSON with a name.
async fn create_workspace(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: Bytes,
) -> Result<(StatusCode, Json<WorkspaceLine>)> {
    // No genesis begins like this.
    let made = body.starts_with(b"{").then(|| encoded_genesis(&app, &body)).transpose()?;
    let genesis: Genesis = decode_message(made.as_deref().unwrap_or(&body))
        .map_err(|error| ServerError::Invalid { what: "genesis", reason: error.to_string() })?;
    let create = move |metadata: &mut dyn crate::metadata::Metadata| {
        let (workspace, is_new) = workspaces::create(metadata, &caller, &genesis)?;
        Ok((workspaces::find(metadata, &caller, &workspace.id.to_string())?, is_new))
    };
    let create = async move {
        let (workspace, is_new) = app.writer.write(create).await?;
        if is_new {
            let line = Line::new(app.clock.now(), Happened::WorkspaceMade).by(caller.device);
            app.audit.note(line.to(workspace.workspace.id)).await;
        }
        let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
        Ok((status, Json(workspace.into())))
    };
    to_the_end(create).await
}

async fn find_workspace(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
) -> Result<Json<WorkspaceLine>> {
    let find = move |metadata: &dyn crate::metadata::Metadata| {
        workspaces::find(metadata, &caller, &workspace)
    };
    app.readers.read(find).await.map(|found| Json(found.into()))
}

/// Sends the encoded genesis: who cuts, names or seals for the workspace must have it.
async fn send_genesis(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
) -> Result<Response> {
    let read = move |metadata: &dyn crate::metadata::Metadata| {
        let found = workspaces::find(metadata, &caller, &workspace)?;
        workspaces::genesis(metadata, &found.workspace)
    };
    let genesis = app.readers.read(read).await?;
    let bytes = HeaderValue::from_static("application/octet-stream");
    Ok(([(CONTENT_TYPE, bytes)], encode_message(&genesis)).into_response())
}
