//! Events as a stream of texts (server-sent events), for clients without a live connection.
//!
//! An event is a hint, as it is for devices: something may be left out, and whoever wants to know asks. So the stream begins with
//! where the log ends, and after a pause nobody has to be told what was missed.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use commit_log::envelope;
use futures_util::stream::unfold;
use model::wire::{FRAME_LENGTH_MAX, ServerFrame};
use model::{Entry, WorkspaceId};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::path;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::PING_INTERVAL;
use crate::metadata::Metadata;
use crate::services::authorisation::Right;
use crate::services::events::{Outbox, Outgoing};
use crate::services::workspaces;

/// What an event says.
#[derive(Serialize)]
struct EventLine {
    /// The newest entry of the log.
    seq: u64,
    /// Who made it; nothing in the first event.
    device_id: Option<String>,
    /// How many changes were proposed.
    changes: usize,
}

/// A client that listens.
struct Listening {
    app: Arc<App>,
    caller: Caller,
    workspace: WorkspaceId,
    number: u64,
    outbox: Outbox,
    frames: mpsc::Receiver<Outgoing>,
    first: Option<Bytes>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.app.hub.unsubscribe([self.workspace], self.number);
    }
}

fn text(seq: u64, entry: Option<&Entry>) -> Bytes {
    let line = EventLine {
        seq,
        device_id: entry.map(|entry| entry.commit.device.to_string()),
        changes: entry.map_or(0, |entry| entry.commit.changes.len()),
    };
    let line = serde_json::to_string(&line).unwrap_or_default();
    Bytes::from(format!("id: {seq}\nevent: entry\ndata: {line}\n\n"))
}

/// Answers with a stream that ends with the right to see the workspace, or with the server.
pub(super) async fn listen(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
) -> Result<Response> {
    let workspace = path::workspace_of(&app, caller, &workspace).await?;
    let permit = app.files.try_listen();
    let permit = permit.ok_or(ServerError::Unavailable { reason: "has too many listeners" })?;
    let (outbox, frames) = Outbox::new();
    let number = app.files.new_listener();
    // Subscribed before the end of the log is read, so that nothing falls in between; after the right to it was checked.
    let mut listening =
        Listening { app, caller, workspace, number, outbox, frames, first: None, _permit: permit };
    listening.head().await?;
    listening.app.hub.subscribe(workspace, number, listening.outbox.clone());
    let head = listening.head().await?;
    listening.first = Some(text(head, None));
    let stream = unfold(listening, |mut listening| async move {
        let next = listening.next().await?;
        Some((Ok::<_, std::convert::Infallible>(next), listening))
    });
    Ok(([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response())
}

impl Listening {
    /// Returns where the log ends.
    async fn head(&self) -> Result<u64> {
        let (caller, workspace, now) = (self.caller, self.workspace, self.app.now());
        let read = move |metadata: &dyn Metadata| {
            workspaces::open_still(metadata, &caller, workspace, Right::Read, now)
                .map(|(found, _)| found.head.seq)
        };
        self.app.readers.read(read).await
    }

    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let mut stopped = self.app.files.stopped();
            let frame = tokio::select! {
                frame = tokio::time::timeout(PING_INTERVAL, self.frames.recv()) => frame,
                _ = stopped.wait_for(|is_stopped| *is_stopped) => return None,
            };
            // Who was signed out, or let out of the workspace, hears nothing more.
            self.head().await.ok()?;
            match frame {
                Err(_) => return Some(Bytes::from_static(b": still here\n\n")),
                Ok(None) => return None,
                Ok(Some(Outgoing::Ping)) => {}
                Ok(Some(Outgoing::Frame(bytes))) => {
                    self.outbox.sent(bytes.len());
                    let frame = envelope::unwrap::<ServerFrame>(&bytes, FRAME_LENGTH_MAX);
                    if let Ok(ServerFrame::Event { entry, .. }) = frame {
                        return Some(text(entry.seq, Some(&entry)));
                    }
                }
            }
        }
    }
}
