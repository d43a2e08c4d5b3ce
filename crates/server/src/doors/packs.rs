//! The data door: packs and pages of one workspace, straight between device and store; and what its devices keep sealed for each
//! other.
//!
//! *Invariants*: what is stored under a name has the hash that the name says, since it is checked before it is
//! stored; nothing of a broken upload is ever visible; all bodies together take a bounded amount of memory, however
//! slow the other side is. The addresses are those that `storage::server_door` documents; [`direct`] has ways past the door.

use std::sync::Arc;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_TYPE, IF_NONE_MATCH, RANGE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use futures_util::StreamExt;
use model::{PackId, WorkspaceId};
use serde::{Deserialize, Serialize};
use storage::{ObjectKey, ObjectStore};
use tokio::sync::OwnedSemaphorePermit;

use super::files::path::workspace_of;
use super::{announced_length, to_the_end};
use crate::app::App;
use crate::audit::{Happened, Line};
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::{BODY_WAIT_TIMEOUT, LIST_MAX, OBJECT_LENGTH_MAX};
use crate::services::{keys, objects};

mod direct;
mod kept;
pub(crate) mod range;

use range::Part;

/// How much of a refused body is read, so that a sender who is still sending hears why.
const DRAIN_LENGTH_MAX: u64 = 8 * 1024 * 1024;

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    let pack = put(put_pack).get(get_pack).head(head_pack).delete(delete_pack);
    let object = put(put_object).get(get_object).head(head_object).delete(delete_object);
    Router::new()
        .route("/workspaces/{workspace}/packs/{pack}", pack)
        .route("/workspaces/{workspace}/packs/{pack}/direct", direct::routes())
        .route("/workspaces/{workspace}/objects", get(list_objects))
        .route("/workspaces/{workspace}/objects/{*key}", object)
}

/// An object that a request names, and the device that asks.
struct Target {
    app: Arc<App>,
    caller: Caller,
    workspace: WorkspaceId,
    key: ObjectKey,
}

type Names = Path<(String, String)>;

fn pack_key(text: &str) -> Result<ObjectKey> {
    let pack: PackId = text.parse().map_err(|error: model::ids::InvalidId| {
        ServerError::Invalid { what: "pack id", reason: error.to_string() }
    })?;
    Ok(ObjectKey::pack(pack))
}

impl Target {
    async fn pack(app: Arc<App>, caller: Caller, Path((workspace, pack)): Names) -> Result<Self> {
        let workspace = workspace_of(&app, caller, &workspace).await?;
        Ok(Self { app, caller, workspace, key: pack_key(&pack)? })
    }

    async fn object(app: Arc<App>, caller: Caller, Path((workspace, key)): Names) -> Result<Self> {
        let workspace = workspace_of(&app, caller, &workspace).await?;
        let key = match ObjectKey::new(&key) {
            Ok(key) if keys::is_kept(&key) => key,
            _ => objects::check_key(&key)?,
        };
        Ok(Self { app, caller, workspace, key })
    }
}

async fn put_pack(
    State(app): State<Arc<App>>,
    caller: Result<Caller, ServerError>,
    names: Names,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode> {
    let target = async { Target::pack(app, caller?, names).await }.await;
    store(target, &headers, body).await
}

async fn put_object(
    State(app): State<Arc<App>>,
    caller: Result<Caller, ServerError>,
    names: Names,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode> {
    let target = async { Target::object(app, caller?, names).await }.await;
    store(target, &headers, body).await
}

async fn get_pack(
    State(app): State<Arc<App>>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
) -> Result<Response> {
    Target::pack(app, caller, names).await?.send(&headers).await
}

async fn get_object(
    State(app): State<Arc<App>>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
) -> Result<Response> {
    let target = Target::object(app, caller, names).await?;
    match target.is_kept() {
        true => target.send_kept().await,
        false => target.send(&headers).await,
    }
}

async fn head_pack(State(app): State<Arc<App>>, caller: Caller, names: Names) -> Result<Response> {
    Target::pack(app, caller, names).await?.describe().await
}

async fn head_object(
    State(app): State<Arc<App>>,
    caller: Caller,
    names: Names,
) -> Result<Response> {
    let target = Target::object(app, caller, names).await?;
    match target.is_kept() {
        true => target.describe_kept().await,
        false => target.describe().await,
    }
}

async fn delete_pack(
    State(app): State<Arc<App>>,
    caller: Caller,
    names: Names,
) -> Result<StatusCode> {
    let target = Target::pack(app, caller, names).await?;
    to_the_end(async move { target.delete().await }).await
}

async fn delete_object(
    State(app): State<Arc<App>>,
    caller: Caller,
    names: Names,
) -> Result<StatusCode> {
    let target = Target::object(app, caller, names).await?;
    match target.is_kept() {
        true => target.delete_kept().await,
        false => to_the_end(async move { target.delete().await }).await,
    }
}

/// Receives and stores an object. A sender who is refused is listened to a little longer, because a connection that
/// closes while it sends would not let it read the answer.
async fn store(target: Result<Target>, headers: &HeaderMap, body: Body) -> Result<StatusCode> {
    let mut body = body.into_data_stream();
    let announced = announced_length(headers);
    let if_absent = headers.contains_key(IF_NONE_MATCH);
    let stored = match target {
        Ok(target) if target.is_kept() => target.keep(announced, if_absent, &mut body).await,
        Ok(target) => target.receive_and_store(announced, if_absent, &mut body).await,
        Err(error) => Err(error),
    };
    if !matches!(stored, Ok(StatusCode::OK | StatusCode::CREATED)) {
        let drained = drain(&mut body);
        let _ = tokio::time::timeout(BODY_WAIT_TIMEOUT, drained).await;
    }
    stored
}

pub(crate) async fn drain(body: &mut BodyDataStream) {
    let mut length = 0;
    while let Some(Ok(chunk)) = body.next().await {
        length += chunk.len() as u64;
        if length > DRAIN_LENGTH_MAX {
            return;
        }
    }
}

impl Target {
    async fn receive_and_store(
        &self,
        announced: Option<u64>,
        if_absent: bool,
        body: &mut BodyDataStream,
    ) -> Result<StatusCode> {
        if announced.is_some_and(|length| length > OBJECT_LENGTH_MAX) {
            return Err(too_large(OBJECT_LENGTH_MAX));
        }
        let whose = (self.caller, self.workspace);
        let is_limited = self.app.check_room(whose, &self.key, announced.unwrap_or(0)).await?;
        if if_absent && self.stored_length().await?.is_some() {
            return Ok(StatusCode::PRECONDITION_FAILED);
        }
        let memory = self.app.memory_for_body(announced.unwrap_or(OBJECT_LENGTH_MAX)).await?;
        let (bytes, hash) = self.receive(announced, OBJECT_LENGTH_MAX, body).await?;
        if self.key.content_hash() != Some(hash) {
            return Err(ServerError::WrongContent { key: self.key.to_string() });
        }
        let is_new = self.app.keep_object(whose, &self.key, bytes, is_limited).await?;
        drop(memory);
        Ok(match (is_new, if_absent) {
            (true, _) => StatusCode::CREATED,
            (false, false) => StatusCode::OK,
            (false, true) => StatusCode::PRECONDITION_FAILED,
        })
    }

    /// Reads the body to its end. Returns it with its hash.
    async fn receive(
        &self,
        announced: Option<u64>,
        length_max: u64,
        body: &mut BodyDataStream,
    ) -> Result<(Bytes, [u8; 32])> {
        let mut bytes = Vec::with_capacity(announced.unwrap_or(0) as usize);
        let mut hasher = blake3::Hasher::new();
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|_| ServerError::Invalid {
                what: "body",
                reason: "it broke off".to_owned(),
            })?;
            if (bytes.len() + chunk.len()) as u64 > length_max {
                return Err(too_large(length_max));
            }
            hasher.update(&chunk);
            bytes.extend_from_slice(&chunk);
        }
        Ok((bytes.into(), *hasher.finalize().as_bytes()))
    }

    /// Returns the length of the object where both the database and the store have it whole.
    async fn stored_length(&self) -> Result<Option<u64>> {
        let found = match self.noted_length().await {
            Ok(length) => length,
            Err(ServerError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let size = self.app.store_of(self.workspace).size(&self.key).await?;
        if size != Some(found) {
            let (key, workspace) = (&self.key, self.workspace);
            tracing::error!(%key, %workspace, found, size, "an object is damaged in the store");
        }
        Ok(size.filter(|&size| size == found))
    }

    async fn noted_length(&self) -> Result<u64> {
        let (caller, workspace, key) = (self.caller, self.workspace, self.key.clone());
        let find = move |metadata: &dyn crate::metadata::Metadata| {
            objects::find(metadata, &caller, workspace, &key).map(|(_, length)| length)
        };
        self.app.readers.read(find).await
    }

    async fn describe(&self) -> Result<Response> {
        // The error of a workspace that is not the caller's is the one of an object that is not there.
        let length = self.stored_length().await?;
        let length = length.ok_or_else(|| self.not_found())?;
        let mut response = self.headers(length).into_response();
        // The body of an answer to HEAD is empty, but its length is that of the object.
        *response.body_mut() = Body::empty();
        Ok(response)
    }

    fn headers(&self, length: u64) -> [(HeaderName, HeaderValue); 3] {
        [
            (CONTENT_LENGTH, length.into()),
            (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
            (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        ]
    }

    fn not_found(&self) -> ServerError {
        ServerError::NotFound { what: format!("object '{}'", self.key) }
    }

    async fn send(&self, headers: &HeaderMap) -> Result<Response> {
        let length = self.noted_length().await?;
        let part =
            headers.get(RANGE).map_or(Ok(Part::Whole), |value| Part::parse(value, length))?;
        let wanted = part.bounds(length);
        let memory = self.app.memory_for_body(wanted.end - wanted.start).await?;
        let store = self.app.store_of(self.workspace);
        let bytes = match part {
            Part::Whole => store.get(&self.key).await?,
            Part::Range(_) => store.get_range(&self.key, wanted.clone()).await?,
        };
        let found = bytes.filter(|bytes| bytes.len() as u64 == wanted.end - wanted.start);
        let bytes = found.ok_or_else(|| ServerError::Storage {
            text: format!("{} of workspace {} is missing or cut off", self.key, self.workspace),
            is_full: false,
            is_damage: true,
        })?;
        self.app.metrics.object_bytes_out.add(wanted.end - wanted.start);
        let sent = Body::from(Bytes::from_owner(Counted { bytes, _memory: memory }));
        let mut response = (self.headers(wanted.end - wanted.start), sent).into_response();
        if let Some(content_range) = part.content_range(length) {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            response.headers_mut().insert(content_range.0, content_range.1);
        }
        Ok(response)
    }

    async fn delete(&self) -> Result<StatusCode> {
        let turn = self.app.lock_object(self.workspace, &self.key).await;
        let (caller, workspace, key) = (self.caller, self.workspace, self.key.clone());
        let is_condemned = match self.key.as_pack() {
            Some(pack) => {
                let App { condemned, readers, .. } = &*self.app;
                condemned.contains(readers, (caller, workspace), pack).await?
            }
            None => false,
        };
        // A condemned pack goes first, so that a crash in between leaves no bytes that nobody knows of.
        if is_condemned {
            self.app.store_of(self.workspace).delete(&self.key).await?;
        }
        let forget = move |metadata: &mut dyn crate::metadata::Metadata| {
            objects::forget(metadata, &caller, workspace, &key, is_condemned)
        };
        self.app.writer.write(forget).await?;
        if !is_condemned {
            self.app.store_of(self.workspace).delete(&self.key).await?;
        }
        drop(turn);
        let line = Line::new(self.app.clock.now(), Happened::ObjectDeleted).by(self.caller.device);
        self.app.audit.note(line.to_object(self.workspace, &self.key)).await;
        Ok(StatusCode::NO_CONTENT)
    }
}

/// Bytes of a body, and the share of memory that they take until they are sent.
struct Counted {
    bytes: Bytes,
    _memory: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn too_large(length_max: u64) -> ServerError {
    ServerError::TooLarge { what: "object", length_max }
}

impl App {
    /// Waits for memory for a body of somebody with an account.
    ///
    /// # Errors
    /// As [`crate::app::Share::memory_for_body`].
    pub(crate) async fn memory_for_body(&self, length: u64) -> Result<OwnedSemaphorePermit> {
        self.accounts.memory_for_body(length).await
    }
}

#[derive(Deserialize)]
struct ListQuery {
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    start_after: String,
    limit: Option<usize>,
}

#[derive(Serialize)]
struct ListLine {
    key: String,
    size: u64,
}

async fn list_objects(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Vec<ListLine>>> {
    let workspace = workspace_of(&app, caller, &workspace).await?;
    let limit = query.limit.unwrap_or(LIST_MAX).min(LIST_MAX);
    let list = move |metadata: &dyn crate::metadata::Metadata| {
        let ListQuery { prefix, start_after, .. } = &query;
        match keys::is_kept_below(prefix) {
            true => keys::list(metadata, &caller, workspace, prefix, start_after, limit),
            false => objects::list(metadata, &caller, workspace, prefix, start_after, limit),
        }
    };
    let lines = app.readers.read(list).await?;
    Ok(Json(lines.into_iter().map(|(key, size)| ListLine { key, size }).collect()))
}
