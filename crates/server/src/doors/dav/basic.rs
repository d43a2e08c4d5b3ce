//! Who speaks WebDAV: by the name of an account with its password or a device's token, sent with every request.
//!
//! *Goals*: a password is stretched once, not with every request. *Invariants*: what is remembered of a right password is a
//! keyed hash, whose key lives in this process only; it holds until it was not used for some minutes, and only while the account has that
//! password and may sign in, which is looked at with each use. So a program that goes on is not held up by strangers who try passwords.
//! Wrong ones count against the limits of signing in. With the password all programs of an account are one device, which its owner sees
//! and may revoke. Where an account has a second factor, there is no way in by its password: a program would have to ask for a code with
//! every request.

use std::collections::HashMap;

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::Random;
use model::environment::random_bytes;
use parking_lot::Mutex;

use crate::app::App;
use crate::audit::{Happened, Line};
use crate::auth::{Caller, Token};
use crate::blocking::to_the_end;
use crate::doors::rest::{check_password, have_made_room};
use crate::error::{Result, ServerError};
use crate::listener::PeerAddress;
use crate::metadata::{AccountId, AccountRecord, Metadata};
use crate::services::{accounts, passwords, second_factor};

/// What the device of all programs is called that come with the password.
const DEVICE_NAME: &str = "WebDAV";

/// How long a right password is remembered after it was last used.
const REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// How many are remembered at most.
const REMEMBERED_MAX: usize = 1024;

/// The passwords that were right lately.
#[derive(Debug)]
pub struct KnownPasswords {
    key: [u8; 32],
    known: Mutex<HashMap<[u8; 32], Known>>,
    /// Who checks a password; others with the same one wait and then know.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct Known {
    account: AccountId,
    /// The device of its programs; nothing where a second factor was in the way.
    caller: Option<Caller>,
    password_hash: String,
    ends: Duration,
}

impl KnownPasswords {
    /// Makes an empty memory.
    pub fn new(random: &dyn Random) -> Self {
        Self {
            key: random_bytes(random),
            known: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    fn name(&self, user: &str, password: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(user.len() as u64).to_le_bytes());
        *hasher.update(user.as_bytes()).update(password.as_bytes()).finalize().as_bytes()
    }

    fn get(&self, name: &[u8; 32], now: Duration) -> Option<Known> {
        self.known.lock().get(name).filter(|known| known.ends > now).cloned()
    }

    /// Remembers a password for longer that has proved to be right still.
    fn hold(&self, name: &[u8; 32], ends: Duration) {
        if let Some(known) = self.known.lock().get_mut(name) {
            known.ends = ends;
        }
    }

    fn note(&self, name: [u8; 32], known: Known, now: Duration) {
        let mut all = self.known.lock();
        if all.len() >= REMEMBERED_MAX {
            all.retain(|_, known| known.ends > now);
        }
        if all.len() >= REMEMBERED_MAX {
            all.clear();
        }
        all.insert(name, known);
    }
}

/// Returns the name and the password that come with a request.
///
/// # Errors
/// [`ServerError::NotSignedIn`] where there are none.
pub(super) fn named(headers: &HeaderMap) -> Result<(String, String)> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, text) =
        header.and_then(|value| value.split_once(' ')).ok_or(ServerError::NotSignedIn)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(ServerError::NotSignedIn);
    }
    let pair = STANDARD.decode(text.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let pair = pair.ok_or(ServerError::NotSignedIn)?;
    let (user, password) = pair.split_once(':').ok_or(ServerError::NotSignedIn)?;
    Ok((user.to_owned(), password.to_owned()))
}

/// Returns who asks.
///
/// # Errors
/// [`ServerError::NotSignedIn`] without a name; [`ServerError::WrongPassword`], [`ServerError::TokenNeeded`],
/// [`ServerError::RateLimited`].
pub(super) async fn caller_of(
    app: &Arc<App>,
    headers: &HeaderMap,
    peer: PeerAddress,
) -> Result<Caller> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, text) =
        header.and_then(|value| value.split_once(' ')).ok_or(ServerError::NotSignedIn)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        let token = Token::from_text(text.trim()).ok_or(ServerError::NotSignedIn)?;
        return by_token(app, token, None).await;
    }
    let (user, password) = named(headers)?;
    match Token::from_text(&password) {
        Some(token) => by_token(app, token, Some(user)).await,
        None => by_password(app, &user, &password, peer).await,
    }
}

/// Returns the device of a token, which must be one of the account that is named.
async fn by_token(app: &App, token: Token, user: Option<String>) -> Result<Caller> {
    let now = app.now();
    let find = move |metadata: &dyn Metadata| {
        let (caller, is_due) = accounts::authenticate(metadata, &token, now)?;
        let account = accounts::own_account(metadata, &caller)?;
        match user.is_none_or(|user| user == account.name) {
            true => Ok((caller, is_due)),
            false => Err(ServerError::WrongPassword),
        }
    };
    let (caller, is_due) = app.readers.read(find).await?;
    if is_due {
        let touch =
            move |metadata: &mut dyn Metadata| Ok(metadata.touch_device(caller.device, now)?);
        app.writer.submit(touch, drop).await?;
    }
    Ok(caller)
}

async fn by_password(
    app: &Arc<App>,
    user: &str,
    password: &str,
    peer: PeerAddress,
) -> Result<Caller> {
    let known = &app.known_passwords;
    let name = known.name(user, password);
    if let Some(caller) = remembered(app, &name).await? {
        return Ok(caller);
    }
    let turn = known.turn.lock().await;
    if let Some(caller) = remembered(app, &name).await? {
        return Ok(caller);
    }
    let account = check_password(app, user, password.to_owned(), peer).await?;
    drop(turn);
    let caller = device_of(app, &account).await;
    if let Err(ServerError::TokenNeeded) = &caller {
        let line = Line::new(app.clock.now(), Happened::CodeWanted).from(peer.0.ip());
        app.audit.note(line.of_account(Some(account.name))).await;
    }
    if let Ok(_) | Err(ServerError::TokenNeeded) = &caller {
        let now = app.clock.elapsed();
        let (id, password_hash) = (account.id, account.password_hash);
        let (caller, ends) = (caller.clone().ok(), now + REMEMBERED_FOR);
        known.note(name, Known { account: id, caller, password_hash, ends }, now);
    }
    caller
}

/// Returns who had this password lately, and has it still. It is remembered on from then, and the device was seen.
async fn remembered(app: &App, name: &[u8; 32]) -> Result<Option<Caller>> {
    let (elapsed, now) = (app.clock.elapsed(), app.now());
    let Some(known) = app.known_passwords.get(name, elapsed) else { return Ok(None) };
    let look = move |metadata: &dyn Metadata| {
        let account = metadata.account(known.account)?.filter(|account| !account.is_disabled);
        if account.is_none_or(|account| account.password_hash != known.password_hash) {
            return Ok(None);
        }
        second_factor::check_password_is_enough(metadata, known.account)?;
        let Some(caller) = known.caller else { return Ok(None) };
        match accounts::check_caller(metadata, &caller) {
            Err(ServerError::NotSignedIn) => Ok(None),
            device => device.map(|device| Some((caller, accounts::is_due(&device, now)))),
        }
    };
    let Some((caller, is_due)) = app.readers.read(look).await? else { return Ok(None) };
    app.known_passwords.hold(name, elapsed + REMEMBERED_FOR);
    if is_due {
        app.note_seen(caller, now).await?;
    }
    Ok(Some(caller))
}

/// Returns the device of programs that come with the password, where that is enough.
async fn device_of(app: &Arc<App>, account: &AccountRecord) -> Result<Caller> {
    let (random, now, found) = (Arc::clone(&app.random), app.now(), account.clone());
    let find = move |metadata: &mut dyn Metadata| {
        passwords::shared_device(metadata, &*random, &found, (DEVICE_NAME, now))
    };
    let app = Arc::clone(app);
    let find = async move {
        let (caller, made_room) = app.writer.write(find).await?;
        have_made_room(&app, caller, made_room).await;
        Ok(caller)
    };
    to_the_end(find).await
}
