//! The control door over HTTP: password and second factor of the caller's own account, and what the latter lets in at a sign-in.
//!
//! *Goals*: who knows the password tries few codes, and holds up nobody who is signed in. *Invariants*: whoever is refused is counted before
//! anything is compared; what was right gives its attempt back; codes and passwords that a device tries count for that device alone; what
//! is not listened to stands in the metrics, and not in the audit log, which somebody could fill.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::HOST;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use model::DeviceId;
use serde::{Deserialize, Serialize};

use super::files::path;
use super::rest::signed_out;
use super::to_the_end;
use crate::app::App;
use crate::audit::{Happened, Line};
use crate::auth::second_factor::{Proof, RecoveryCode};
use crate::auth::subject::Subject;
use crate::auth::totp::TotpSecret;
use crate::auth::{Caller, NO_PASSWORD};
use crate::error::{Result, ServerError};
use crate::listener::PeerAddress;
use crate::metadata::{AccountRecord, Metadata};
use crate::services::accounts;
use crate::services::passwords::{self, SignedIn};
use crate::services::second_factor::{self, Admission, State as FactorState};
use crate::services::subjects;

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/account/password", post(change_password))
        .route("/account/totp", get(status).post(begin))
        .route("/account/totp/confirm", post(confirm))
        .route("/account/totp/disable", post(disable))
}

/// By what somebody has proved whose account it is.
pub(super) enum Proved {
    /// By its password.
    Password,
    /// By a provider of OpenID Connect.
    Subject(Subject),
}

/// Makes a device of an account whose owner has proved who they are, where what the second factor wants is right, too. A code that is not
/// listened to is counted, and not noted.
///
/// # Errors
/// [`ServerError::RateLimited`]; as [`passwords::sign_in`] and [`subjects::sign_in`].
pub(super) async fn admit(
    app: &App,
    (account, proved): (&AccountRecord, Proved),
    code: Option<String>,
    device_name: String,
    peer: PeerAddress,
) -> Result<SignedIn> {
    let shown = code.map(|code| Proof::from_text(&code));
    let account_and_proof = (account, proved);
    let admitted = try_to_admit(app, account_and_proof, shown, device_name, peer.network()).await;
    let event = match &admitted {
        Ok(SignedIn { admission: Admission::Recovery, .. }) => Some(Happened::RecoveryCodeUsed),
        Err(ServerError::CodeNeeded) => Some(Happened::CodeWanted),
        Err(ServerError::WrongCode) => Some(Happened::CodeRefused),
        _ => None,
    };
    if let Err(ServerError::WrongCode | ServerError::RateLimited { .. }) = &admitted {
        app.metrics.logins_refused.add(1);
    }
    if let Some(event) = event {
        let line = Line::new(app.clock.now(), event).from(peer.0.ip());
        app.audit.note(line.of_account(Some(account.name.clone()))).await;
    }
    admitted
}

async fn try_to_admit(
    app: &App,
    (account, proved): (&AccountRecord, Proved),
    shown: Option<Proof>,
    device_name: String,
    address: IpAddr,
) -> Result<SignedIn> {
    let elapsed = app.clock.elapsed();
    let (is_shown, is_code) = (shown.is_some(), matches!(shown, Some(Proof::Code(_))));
    if is_shown {
        app.logins_per_address.take(address, elapsed).map_err(ServerError::limited)?;
        let taken = match is_code {
            true => app.codes_per_account.take(account.id, elapsed),
            false => app.logins_per_account.take(account.name.clone(), elapsed),
        };
        taken.map_err(ServerError::limited)?;
    }
    let (random, now, found) = (Arc::clone(&app.random), app.now(), account.clone());
    let sign_in = move |metadata: &mut dyn Metadata| {
        let (shown, device) = (shown.as_ref(), (device_name.as_str(), now));
        match &proved {
            Proved::Password => passwords::sign_in(metadata, &*random, &found, shown, device),
            Proved::Subject(subject) => {
                subjects::sign_in(metadata, &*random, (found.id, subject), shown, device)
            }
        }
    };
    let signed_in = app.writer.write(sign_in).await?;
    if is_shown {
        app.logins_per_address.give_back(&address);
        match is_code {
            true => app.codes_per_account.give_back(&account.id),
            false => app.logins_per_account.give_back(&account.name),
        }
    }
    Ok(signed_in)
}

#[derive(Deserialize)]
struct NewPassword {
    password: String,
    new_password: String,
    #[serde(default)]
    sign_out_others: bool,
}

#[derive(Serialize)]
pub(super) struct PasswordChanged {
    /// How many devices and tokens of applications.
    signed_out: usize,
    /// How many people at a provider sign in to the account no more.
    identities: usize,
}

async fn change_password(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(request): Json<NewPassword>,
) -> Result<Json<PasswordChanged>> {
    let account = check_own_password(&app, caller, request.password).await?;
    let new = app.keep_password(account.name.clone(), request.new_password).await?;
    change(app, (caller, account), new, request.sign_out_others).await
}

/// Gives an account, whose password was proved as it was then, another one, by what is kept of it.
///
/// # Errors
/// As [`passwords::change`].
pub(super) async fn change(
    app: Arc<App>,
    (caller, account): (Caller, AccountRecord),
    new: String,
    signs_out_others: bool,
) -> Result<Json<PasswordChanged>> {
    let change = move |metadata: &mut dyn Metadata| {
        let hashes = (account.password_hash.as_str(), new.as_str());
        passwords::change(metadata, &caller, hashes, signs_out_others)
    };
    let change = async move {
        let ended = app.writer.write(change).await?;
        let line = Line::new(app.clock.now(), Happened::PasswordChanged).by(caller.device);
        app.audit.note(line).await;
        for other in &ended.signed_out {
            let event = match other.limits {
                None => Happened::DeviceRevoked,
                Some(_) => Happened::TokenRevoked,
            };
            signed_out(&app, (caller, other.id), event).await;
        }
        for one in &ended.unbound {
            let line = Line::new(app.clock.now(), Happened::OidcUnbound).by(caller.device);
            app.audit.note(line.to(one.subject.id())).await;
        }
        let (signed_out, identities) = (ended.signed_out.len(), ended.unbound.len());
        Ok(Json(PasswordChanged { signed_out, identities }))
    };
    to_the_end(change).await
}

#[derive(Serialize)]
struct TotpStatus {
    state: &'static str,
    since: Option<i64>,
    recovery_codes_left: u64,
}

async fn status(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<TotpStatus>> {
    let found = app.readers.read(move |metadata| second_factor::status(metadata, &caller)).await?;
    Ok(Json(TotpStatus {
        state: match found.state {
            FactorState::Off => "off",
            FactorState::Waiting => "waiting",
            FactorState::On => "on",
        },
        since: found.since,
        recovery_codes_left: found.recovery_codes_left,
    }))
}

#[derive(Deserialize)]
struct PasswordRequest {
    password: String,
}

#[derive(Serialize)]
struct TotpOffer {
    /// What the app is told, once.
    secret: String,
    /// The same as an address, which apps read from a picture.
    uri: String,
}

async fn begin(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Json(request): Json<PasswordRequest>,
) -> Result<(StatusCode, Json<TotpOffer>)> {
    check_own_password(&app, caller, request.password).await?;
    let (secret, now) = (TotpSecret::generate(&*app.random), app.now());
    let offered = secret.clone();
    let begin =
        move |metadata: &mut dyn Metadata| second_factor::begin(metadata, &caller, &offered, now);
    let account = app.writer.write(begin).await?;
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let uri = uri_of(&secret, &account.name, host.unwrap_or_default());
    Ok((StatusCode::CREATED, Json(TotpOffer { secret: secret.to_text(), uri })))
}

/// Returns what apps read from a picture. Who has accounts at several servers tells them apart by the name of the host.
fn uri_of(secret: &TotpSecret, account: &str, host: &str) -> String {
    let host = host.split(':').next().unwrap_or_default();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
    let issuer = match !host.is_empty() && host.chars().all(is_name) {
        true => format!("Syncline%20{host}"),
        false => "Syncline".to_owned(),
    };
    let (secret, account) = (secret.to_text(), path::encode(account.as_bytes()));
    format!(
        "otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}&algorithm=SHA1&digits=6&period=30"
    )
}

#[derive(Deserialize)]
struct CodeRequest {
    code: String,
}

#[derive(Serialize)]
struct RecoveryCodes {
    /// This once.
    recovery_codes: Vec<String>,
}

async fn confirm(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(request): Json<CodeRequest>,
) -> Result<Json<RecoveryCodes>> {
    let (random, now) = (Arc::clone(&app.random), app.now());
    let shown = Proof::from_text(&request.code);
    let confirm = move |metadata: &mut dyn Metadata| {
        second_factor::confirm(metadata, &*random, &caller, &shown, now)
    };
    let codes = by_code(app, caller, Happened::SecondFactorOn, confirm).await?;
    let recovery_codes = codes.iter().map(RecoveryCode::to_text).collect();
    Ok(Json(RecoveryCodes { recovery_codes }))
}

async fn disable(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(request): Json<CodeRequest>,
) -> Result<StatusCode> {
    let (shown, now) = (Proof::from_text(&request.code), app.now());
    let end = move |metadata: &mut dyn Metadata| second_factor::end(metadata, &caller, &shown, now);
    by_code(app, caller, Happened::SecondFactorOff, end).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes an attempt of a device at the password or a code of its account, or several, or none. What is not listened to is counted, and not noted: whoever has
/// the device would fill the disk.
///
/// # Errors
/// [`ServerError::RateLimited`].
pub(super) fn take_proofs(app: &App, device: DeviceId, count: u32) -> Result<()> {
    let taken = app.proofs_per_device.take_several(device, count, app.clock.elapsed());
    taken.inspect_err(|_| app.metrics.logins_refused.add(1)).map_err(ServerError::limited)
}

/// Does what a device shows a code for, and notes it. A device tries only so many.
async fn by_code<T: Send + 'static>(
    app: Arc<App>,
    caller: Caller,
    event: Happened,
    work: impl FnMut(&mut dyn Metadata) -> Result<T> + Send + 'static,
) -> Result<T> {
    let prove = async move {
        take_proofs(&app, caller.device, 1)?;
        let done = app.writer.write(work).await;
        let is_refused = matches!(done, Err(ServerError::WrongCode));
        if !is_refused {
            app.proofs_per_device.give_back(&caller.device);
        }
        if is_refused || done.is_ok() {
            let event = if is_refused { Happened::CodeRefused } else { event };
            app.audit.note(Line::new(app.clock.now(), event).by(caller.device)).await;
        }
        done
    };
    to_the_end(prove).await
}

/// Returns the account of a device; an application's token may not ask.
///
/// # Errors
/// As [`accounts::check_is_device`].
pub(super) async fn own_account(app: &App, caller: Caller) -> Result<AccountRecord> {
    let find = move |metadata: &dyn Metadata| {
        accounts::check_is_device(metadata, &caller)?;
        accounts::own_account(metadata, &caller)
    };
    app.readers.read(find).await
}

/// Returns the account of a device that knows its password. A device tries only so many.
///
/// # Errors
/// [`ServerError::WrongPassword`], [`ServerError::RateLimited`]; [`ServerError::Conflict`] where there is none; as
/// [`accounts::check_is_device`].
pub(super) async fn check_own_password(
    app: &App,
    caller: Caller,
    password: String,
) -> Result<AccountRecord> {
    let account = own_account(app, caller).await?;
    if account.password_hash == NO_PASSWORD {
        return Err(ServerError::Conflict {
            what: "the account".to_owned(),
            reason: "has no password; who runs the server can set one",
        });
    }
    take_proofs(app, caller.device, 1)?;
    let (name, kept) = (account.name.clone(), account.password_hash.clone());
    let (passwords, random) = (app.passwords().await?, Arc::clone(&app.random));
    let turn = app.password_turn().await?;
    let verify = move || passwords.verify(&name, Some(&kept), &password, &*random);
    if turn.stretch(verify).await? {
        app.proofs_per_device.give_back(&caller.device);
        return Ok(account);
    }
    let line = Line::new(app.clock.now(), Happened::PasswordRefused).by(caller.device);
    app.audit.note(line).await;
    Err(ServerError::WrongPassword)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{PASSWORD, TestApp};

    #[tokio::test]
    async fn what_was_changed_is_noted_and_told_where_nobody_waits_for_the_answer_any_more() {
        let test = TestApp::start();
        let [caller, other] = test.devices;
        // Made once, and written before anything else.
        test.app.passwords().await.unwrap();
        let writing = test.hold_writer().await;
        let (password, new_password) = (PASSWORD.to_owned(), "another one".to_owned());
        let request = NewPassword { password, new_password, sign_out_others: true };
        let changing = change_password(State(Arc::clone(&test.app)), caller, Json(request));
        tokio::select! {
            _ = changing => panic!("nothing is written yet"),
            () = test.until_waiting(1) => {}
        }
        drop(writing);
        let lines = test.end().await;
        let lines: Vec<&str> = lines.lines().collect();
        assert!(lines[0].contains("password_changed"), "{lines:?}");
        let gone = other.device.to_string();
        assert!(lines[1].contains("device_revoked") && lines[1].contains(&gone), "{lines:?}");
    }

    #[test]
    fn address_for_apps_names_the_server_and_breaks_nowhere() {
        let secret = TotpSecret::from_bytes(*b"12345678901234567890");
        let rest = "secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
        for (account, host, expected) in [
            ("ada", "cloud.example.org:8470", "Syncline%20cloud.example.org:ada"),
            ("ada@x.org+1", "127.0.0.1", "Syncline%20127.0.0.1:ada%40x.org%2B1"),
            ("ada", "[::1]:8470", "Syncline:ada"),
            ("ada", "evil&secret=AAAA", "Syncline:ada"),
            ("ada", "", "Syncline:ada"),
        ] {
            let uri = uri_of(&secret, account, host);
            let issuer = expected.split(':').next().unwrap();
            let wanted = format!(
                "otpauth://totp/{expected}?{rest}&issuer={issuer}&algorithm=SHA1&digits=6&period=30"
            );
            assert_eq!(uri, wanted);
        }
    }
}
