//! What was deleted, as JSON.

use axum::Json;
use axum::extract::Query;
use model::NodeId;
use serde::{Deserialize, Serialize};

use super::Target;
use super::json::Matter;
use super::path;
use crate::error::{Result, ServerError};
use crate::limits::LIST_MAX;
use crate::services::files::{DeletedNode, NoteCursor};

#[derive(Deserialize)]
pub(super) struct DeletedQuery {
    /// Where a list that was cut off goes on.
    cursor: Option<String>,
    limit: Option<usize>,
}

/// A node that was deleted.
#[derive(Debug, Serialize)]
struct DeletedLine {
    id: String,
    /// The version that the deletion is.
    version: u64,
    /// The one before it.
    last_version: u64,
    /// Where it was, percent-encoded.
    path: String,
    /// For people; bytes that are no text are replaced.
    name: String,
    #[serde(flatten)]
    matter: Matter,
    /// Whether a folder above it was deleted, too.
    is_in_deleted: bool,
    /// The entry that did it; nothing for what was deleted before the server's newest checkpoint.
    seq: Option<u64>,
    /// Seconds since 1970.
    time: Option<i64>,
    device_id: Option<String>,
    device_name: Option<String>,
}

impl DeletedLine {
    fn new(node: &DeletedNode) -> Self {
        let deletion = node.deletion.as_ref();
        Self {
            id: node.id.to_string(),
            version: node.version,
            last_version: node.version.saturating_sub(1),
            path: path::encode(node.path.as_bytes()),
            name: String::from_utf8_lossy(node.record.name.as_bytes()).into_owned(),
            matter: Matter::new(&node.record),
            is_in_deleted: node.is_in_deleted,
            seq: deletion.map(|deletion| deletion.seq),
            time: deletion.map(|deletion| deletion.time.seconds),
            device_id: deletion.map(|deletion| deletion.device.to_string()),
            device_name: deletion.map(|deletion| deletion.device_name.clone()),
        }
    }
}

/// Some of what was deleted, the newest first.
#[derive(Debug, Serialize)]
pub(super) struct DeletedPage {
    nodes: Vec<DeletedLine>,
    /// What to send as `cursor` for the next ones; nothing at the end.
    next: Option<String>,
}

/// Lists what was deleted.
pub(super) async fn list(
    target: Target,
    Query(query): Query<DeletedQuery>,
) -> Result<Json<DeletedPage>> {
    let Target { app, caller, workspace, .. } = target;
    let view = app.view(caller, workspace).await?;
    let cursor = query.cursor.as_deref().map(read_cursor).transpose()?;
    let limit = query.limit.unwrap_or(LIST_MAX).clamp(1, LIST_MAX);
    let (nodes, has_more) = view.deleted(cursor, limit);
    let seq = |node: &DeletedNode| node.deletion.as_ref().map_or(0, |deletion| deletion.seq);
    let last = nodes.last().filter(|_| has_more);
    Ok(Json(DeletedPage {
        next: last.map(|node| format!("{}-{}", seq(node), node.id)),
        nodes: nodes.iter().map(DeletedLine::new).collect(),
    }))
}

pub(super) fn read_cursor(text: &str) -> Result<NoteCursor> {
    let parsed = text.split_once('-').and_then(|(seq, id)| {
        let id: NodeId = id.parse().ok()?;
        Some((seq.parse().ok()?, id))
    });
    parsed.ok_or_else(|| ServerError::Invalid {
        what: "cursor",
        reason: "send what 'next' was in the answer before".to_owned(),
    })
}
