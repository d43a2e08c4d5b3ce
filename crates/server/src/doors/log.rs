//! The log of a workspace for readers that can open no live connection, such as pages in a browser: the same replies, as bodies.
//!
//! A body is a server frame (`docs/design/commit-log.md`, "Served") with the number 0, as a message without envelope: what is sealed does
//! not compress.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use model::codec::encode_message;
use model::wire::{Request, ServerFrame};
use serde::Deserialize;

use super::files::path::workspace_of;
use crate::app::App;
use crate::auth::Caller;
use crate::error::Result;
use crate::limits::ENTRIES_LENGTH_MAX;
use crate::metadata::Metadata;
use crate::services::sync_service;

/// Returns the route of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new().route("/workspaces/{workspace}/log", get(send_entries))
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
    let frame = app.readers.read(read).await?;
    let bytes = HeaderValue::from_static("application/octet-stream");
    Ok(([(CONTENT_TYPE, bytes)], frame).into_response())
}
