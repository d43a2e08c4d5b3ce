//! Ways past this door: packs straight between a device and a store that it reaches, too.
//!
//! A device asks for a signed request (GET to read a pack, POST to bring one), sends that to the store, and says of a pack that it
//! brought that it is there (PUT). *Invariants*: who gets a signed request may read or write in the workspace, and what it brings has
//! room; a pack counts as stored only after this server has read all of it and found it right, which is not different from what comes in
//! at the door; a signed request replaces nothing, or is not given: a store is tried before.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get};
use serde::{Deserialize, Serialize};
use storage::{Direct, ObjectKey, ObjectStore, PutMode, PutOutcome, SignedRequest};

use super::{Names, Target, too_large};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::OBJECT_LENGTH_MAX;

/// How long a signed request may be sent; so long who was a member can still read a pack that it has asked for.
const LIFETIME: Duration = Duration::from_secs(5 * 60);

/// The object by which a store is tried.
const TRIAL: &str = "direct";

/// Returns what answers at the address of a pack's direct way.
pub(super) fn routes() -> MethodRouter<Arc<App>> {
    get(ask_to_read).post(ask_to_bring).put(was_brought)
}

/// What a device says of a pack that it brings.
#[derive(Deserialize)]
struct Announced {
    length: u64,
}

/// What a device is told.
#[derive(Serialize)]
struct Way {
    /// Whether the pack need not be brought.
    is_stored: bool,
    /// What to send to the store; nothing where there is no way but the door.
    request: Option<Signed>,
}

#[derive(Serialize)]
struct Signed {
    url: String,
    headers: Vec<Header>,
    expires_in_seconds: u64,
}

#[derive(Serialize)]
struct Header {
    name: String,
    value: String,
}

impl From<SignedRequest> for Signed {
    fn from(signed: SignedRequest) -> Self {
        let headers = signed.headers.into_iter().map(|(name, value)| Header { name, value });
        let expires_in_seconds = LIFETIME.as_secs();
        Self { url: signed.url, headers: headers.collect(), expires_in_seconds }
    }
}

async fn ask_to_read(
    State(app): State<Arc<App>>,
    caller: Caller,
    names: Names,
) -> Result<Json<Way>> {
    let target = Target::pack(app, caller, names).await?;
    target.noted_length().await?;
    target.way(Direct::Read, true).await
}

async fn ask_to_bring(
    State(app): State<Arc<App>>,
    caller: Caller,
    names: Names,
    announced: Result<Json<Announced>, JsonRejection>,
) -> Result<Json<Way>> {
    let target = Target::pack(app, caller, names).await?;
    let length = length_of(announced)?;
    let (whose, app) = ((target.caller, target.workspace), &target.app);
    let is_limited = app.check_room(whose, &target.key, length).await?;
    if target.stored_length().await?.is_some() {
        return Ok(Json(Way { is_stored: true, request: None }));
    }
    if !app.keeps_what_is_there().await? {
        return Ok(Json(Way { is_stored: false, request: None }));
    }
    if is_limited {
        app.reserve(whose, &target.key, length).await?;
    }
    target.way(Direct::Create, false).await
}

async fn was_brought(
    State(app): State<Arc<App>>,
    caller: Caller,
    names: Names,
    announced: Result<Json<Announced>, JsonRejection>,
) -> Result<StatusCode> {
    let target = Target::pack(app, caller, names).await?;
    let length = length_of(announced)?;
    let whose = (target.caller, target.workspace);
    let is_limited = target.app.check_room(whose, &target.key, length).await?;
    let memory = target.app.memory_for_body(length).await?;
    let is_new = target.app.keep_what_is_there(whose, &target.key, length, is_limited).await?;
    drop(memory);
    Ok(if is_new { StatusCode::CREATED } else { StatusCode::OK })
}

fn length_of(announced: Result<Json<Announced>, JsonRejection>) -> Result<u64> {
    let Json(Announced { length }) = announced.map_err(|_| ServerError::Invalid {
        what: "body",
        reason: "the length of the pack is expected, as {\"length\": 1}".to_owned(),
    })?;
    match length > OBJECT_LENGTH_MAX {
        true => Err(too_large(OBJECT_LENGTH_MAX)),
        false => Ok(length),
    }
}

impl Target {
    async fn way(&self, direct: Direct, is_stored: bool) -> Result<Json<Way>> {
        let store = self.app.store_of(self.workspace);
        let request = store.sign_request(&self.key, direct, LIFETIME).await?.map(Signed::from);
        Ok(Json(Way { is_stored, request }))
    }
}

impl App {
    /// Tells whether the store signs requests, and replaces nothing by one that is to create. It is tried once.
    async fn keeps_what_is_there(&self) -> Result<bool> {
        let trial = async {
            let key = ObjectKey::new(TRIAL).expect("it is written as a key");
            if self.store.sign_request(&key, Direct::Create, LIFETIME).await?.is_none() {
                return Ok(false);
            }
            let mut outcome = PutOutcome::Written;
            for _ in 0..2 {
                outcome = self.store.put(&key, TRIAL.into(), PutMode::IfAbsent).await?;
            }
            let keeps = outcome == PutOutcome::Exists;
            if !keeps {
                tracing::warn!("the store replaces what is there: packs go through the server");
            }
            Ok(keeps)
        };
        self.keeps_what_is_there.get_or_try_init(|| trial).await.copied()
    }
}
