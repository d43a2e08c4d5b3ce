//! Conflicts that nobody has decided yet, as JSON, and deciding them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use content::conflicts::{Decision, Keep};
use model::{ConflictOrigin, Name, NodeId, WorkspaceId};
use serde::{Deserialize, Serialize};

use super::deleted::read_cursor;
use super::json::NodeLine;
use super::{Target, describe, path};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::LIST_MAX;
use crate::services::files::conflicts::{self, ConflictNode, Mark};
use crate::services::files::{Plan, View};

#[derive(Deserialize)]
pub(super) struct ConflictsQuery {
    /// Where a list that was cut off goes on.
    cursor: Option<String>,
    limit: Option<usize>,
}

/// A file that was kept, and what it was kept beside.
#[derive(Debug, Serialize)]
struct ConflictLine {
    copy: NodeLine,
    /// The node that it conflicts with.
    original_id: String,
    /// Nothing where it was deleted.
    original: Option<NodeLine>,
    /// The version of the original from which the copy was made; 0 where they have only a name in common.
    base: u64,
    /// The entry that kept the copy; nothing for what was so before the server's newest checkpoint.
    seq: Option<u64>,
    /// Seconds since 1970.
    time: Option<i64>,
    device_id: Option<String>,
    device_name: Option<String>,
}

impl ConflictLine {
    fn new(conflict: &ConflictNode) -> Self {
        let deed = conflict.deed.as_ref();
        let original = conflict.original.as_ref();
        Self {
            copy: NodeLine::new(&conflict.copy, &conflict.path),
            original_id: conflict.origin.to_string(),
            original: original.map(|(node, path)| NodeLine::new(node, path)),
            base: conflict.base,
            seq: deed.map(|deed| deed.seq),
            time: deed.map(|deed| deed.time.seconds),
            device_id: deed.map(|deed| deed.device.to_string()),
            device_name: deed.map(|deed| deed.device_name.clone()),
        }
    }
}

/// Some of the conflicts, the newest first.
#[derive(Debug, Serialize)]
pub(super) struct ConflictPage {
    conflicts: Vec<ConflictLine>,
    /// How many there are on all pages.
    count: usize,
    /// What to send as `cursor` for the next ones; nothing at the end.
    next: Option<String>,
}

/// Lists the conflicts.
pub(super) async fn list(
    target: Target,
    Query(query): Query<ConflictsQuery>,
) -> Result<Json<ConflictPage>> {
    let Target { app, caller, workspace, .. } = target;
    let view = app.view(caller, workspace).await?;
    let cursor = query.cursor.as_deref().map(read_cursor).transpose()?;
    let limit = query.limit.unwrap_or(LIST_MAX).clamp(1, LIST_MAX);
    let (found, has_more) = view.conflicts(cursor, limit);
    let seq = |found: &ConflictNode| found.deed.as_ref().map_or(0, |deed| deed.seq);
    let last = found.last().filter(|_| has_more);
    Ok(Json(ConflictPage {
        next: last.map(|found| format!("{}-{}", seq(found), found.copy.id)),
        conflicts: found.iter().map(ConflictLine::new).collect(),
        count: view.conflict_count(),
    }))
}

fn node_of(text: &str) -> Result<NodeId> {
    text.parse().map_err(|_| ServerError::NotFound { what: format!("node '{text}'") })
}

/// Reads a name that a file can have.
fn new_name(text: &str) -> Result<Name> {
    let named = path::parse(text)?.split_last().filter(|(folder, _)| folder.depth() == 0);
    named.map(|(_, name)| name).ok_or_else(|| ServerError::Invalid {
        what: "name",
        reason: "send one name, and no path".to_owned(),
    })
}

#[derive(Deserialize)]
pub(super) struct Marking {
    node: String,
    version: u64,
    original: String,
    base: u64,
}

/// Marks a file as one side of a conflict, as devices do with what they keep.
pub(super) async fn mark(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
    Json(marking): Json<Marking>,
) -> Result<Response> {
    let workspace = path::workspace_of(&app, caller, &workspace).await?;
    // Who may not see the workspace hears nothing of what is in it.
    drop(app.view(caller, workspace).await?);
    let origin = ConflictOrigin { node: node_of(&marking.original)?, base: marking.base };
    let mark = Mark { node: node_of(&marking.node)?, version: marking.version, origin };
    carry_out(&app, caller, workspace, |view| conflicts::mark(view, &mark)).await
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kept {
    Copy,
    Original,
    Both,
}

#[derive(Deserialize)]
pub(super) struct Resolution {
    node: String,
    version: u64,
    original_version: Option<u64>,
    keep: Kept,
    /// What the copy is to be called where both are kept, percent-encoded.
    name: Option<String>,
}

/// Decides a conflict.
pub(super) async fn resolve(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(workspace): Path<String>,
    Json(resolution): Json<Resolution>,
) -> Result<Response> {
    let Resolution { node, version, original_version, keep, name } = resolution;
    let workspace = path::workspace_of(&app, caller, &workspace).await?;
    drop(app.view(caller, workspace).await?);
    let keep = match keep {
        Kept::Copy => Keep::Copy,
        Kept::Original => Keep::Original,
        Kept::Both => Keep::Both(name.as_deref().map(new_name).transpose()?),
    };
    let decision = Decision { node: node_of(&node)?, version, original_version, keep };
    carry_out(&app, caller, workspace, |view| conflicts::resolve(view, &decision)).await
}

/// Carries out a plan, and describes the node that it is about, wherever that is.
async fn carry_out(
    app: &Arc<App>,
    caller: Caller,
    workspace: WorkspaceId,
    plan: impl FnMut(&View) -> Result<Plan>,
) -> Result<Response> {
    let applied = app.apply(caller, workspace, plan).await?;
    let gone = || ServerError::NotFound { what: "the file any more".to_owned() };
    let (node, path) = applied.node.zip(applied.path).ok_or_else(gone)?;
    Ok(describe(StatusCode::OK, &node, &path))
}
