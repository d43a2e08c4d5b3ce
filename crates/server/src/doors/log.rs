//! The log of a workspace for those who can open no live connection, such as pages in a browser: the same requests and replies, as
//! bodies.
//!
//! A commit comes as the message that it is, and goes the way of those of the live door: with the same checks, and exactly once by its
//! operation id. An answer is a server frame (`docs/design/commit-log.md`, "Served") with the number 0. Both are messages without
//! envelope: what is sealed does not compress.

use std::sync::Arc;

use axum::body::{Body, BodyDataStream};
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures_util::StreamExt;
use model::codec::{decode_message, encode_message};
use model::commit::COMMIT_LENGTH_MAX;
use model::wire::{Reply, Request, ServerFrame};
use model::{Commit, WorkspaceId};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::announced_length;
use super::files::path::workspace_of;
use super::packs::drain;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::{BODY_WAIT_TIMEOUT, ENTRIES_LENGTH_MAX};
use crate::metadata::Metadata;
use crate::services::sync_service::{self, CommitRequest};

/// How many bytes a commit has at most as a message.
const LENGTH_MAX: u64 = COMMIT_LENGTH_MAX as u64;

/// Returns the route of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/workspaces/{workspace}/log", get(send_entries).post(take_commit))
        .route("/workspaces/{workspace}/log/{seq}", get(send_hash))
}

#[derive(Deserialize)]
struct LogQuery {
    /// The last entry that the reader has.
    #[serde(default)]
    since: u64,
    /// How many bytes of entries to send at most; at least one entry is sent where there is one.
    #[serde(default = "whole_page")]
    length_max: u64,
}

fn whole_page() -> u64 {
    ENTRIES_LENGTH_MAX
}

/// Sends entries, oldest first.
async fn send_entries(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
    Query(query): Query<LogQuery>,
) -> Result<Response> {
    let workspace = workspace_of(&app, caller, &workspace).await?;
    let LogQuery { since, length_max } = query;
    let request = Request::Entries { since, length_max };
    // Encoding many entries takes time, so it happens on the same thread as reading them.
    let read = move |metadata: &dyn Metadata| {
        let reply = sync_service::read(metadata, &caller, workspace, &request)?;
        Ok(encode_message(&ServerFrame::Reply { number: 0, reply }))
    };
    Ok(sent(app.readers.read(read).await?))
}

/// An entry, without what it says.
#[derive(Serialize)]
struct EntryLine {
    seq: u64,
    hash: String,
}

/// Sends the hash of an entry. Who kept it sees by it that the server was not set back to before that, and has no other history.
async fn send_hash(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((workspace, seq)): Path<(String, String)>,
) -> Result<Json<EntryLine>> {
    let workspace = workspace_of(&app, caller, &workspace).await?;
    let none = |_| ServerError::NotFound { what: format!("entry '{seq}' of the log") };
    let seq = seq.parse().map_err(none)?;
    let read =
        move |metadata: &dyn Metadata| sync_service::hash_of(metadata, &caller, workspace, seq);
    let hash = app.readers.read(read).await?.to_string();
    Ok(Json(EntryLine { seq, hash }))
}

fn sent(frame: Vec<u8>) -> Response {
    let bytes = HeaderValue::from_static("application/octet-stream");
    ([(CONTENT_TYPE, bytes)], frame).into_response()
}

/// Takes a commit. A sender who is refused is listened to a little longer, because a connection that closes while it sends would not let
/// it read the answer.
async fn take_commit(
    State(app): State<Arc<App>>,
    caller: Result<Caller, ServerError>,
    Path(workspace): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let mut body = body.into_data_stream();
    let announced = announced_length(&headers);
    let taken = async {
        let caller = caller?;
        let workspace = workspace_of(&app, caller, &workspace).await?;
        propose(&app, (caller, workspace), announced, &mut body).await
    };
    let taken = taken.await;
    if taken.is_err() {
        let _ = tokio::time::timeout(BODY_WAIT_TIMEOUT, drain(&mut body)).await;
    }
    taken
}

/// Receives a commit and puts it into the log, as the live door does.
async fn propose(
    app: &App,
    (caller, workspace): (Caller, WorkspaceId),
    announced: Option<u64>,
    body: &mut BodyDataStream,
) -> Result<Response> {
    // Nothing is received for who is refused anyway.
    app.check_may_write(caller, workspace).await?;
    // It is here twice for a moment: as it came, and as what was read of it.
    let memory = app.memory_for_body(2 * announced.unwrap_or(LENGTH_MAX).min(LENGTH_MAX)).await?;
    let commit = decode(receive(body).await?).await?;
    let (answer, answered) = oneshot::channel();
    let finish = move |reply| drop(answer.send(reply));
    let request = CommitRequest { caller, workspace, commit };
    app.commits.submit((request, None), finish).await?;
    let reply = answered.await.map_err(|_| ServerError::STOPPING)?;
    drop(memory);
    match reply {
        Reply::Refused(refusal) => Err(ServerError::Refused { refusal }),
        reply => Ok(sent(encode_message(&ServerFrame::Reply { number: 0, reply }))),
    }
}

async fn receive(body: &mut BodyDataStream) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let broken = |_| ServerError::Invalid { what: "body", reason: "it broke off".to_owned() };
        let piece = piece.map_err(broken)?;
        if (bytes.len() + piece.len()) as u64 > LENGTH_MAX {
            return Err(too_large());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Reading a long one would hold up other connections.
async fn decode(bytes: Vec<u8>) -> Result<Commit> {
    let decode = move || decode_message(&bytes);
    let decoded = tokio::task::spawn_blocking(decode).await;
    let decoded = decoded.map_err(|_| ServerError::STOPPING)?;
    decoded.map_err(|error| ServerError::Invalid { what: "commit", reason: error.to_string() })
}

fn too_large() -> ServerError {
    ServerError::TooLarge { what: "commit", length_max: LENGTH_MAX }
}
