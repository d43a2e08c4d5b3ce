//! What happened in a workspace, as JSON, the newest first.

use axum::Json;
use axum::extract::Query;
use content::activity::{Activity, ChangeSeen};
use serde::{Deserialize, Serialize};

use super::json::Matter;
use super::{Target, path};
use crate::error::{Result, ServerError};
use crate::services::files::View;

/// How long a list is at most: each line has many changes in it.
const ACTIVITY_MAX: usize = 100;

#[derive(Deserialize)]
pub(super) struct ActivityQuery {
    /// Only what is older than this entry.
    cursor: Option<String>,
    limit: Option<usize>,
}

/// A file, folder or link to which something happened.
#[derive(Debug, Serialize)]
struct ChangeLine {
    id: String,
    version: u64,
    happened: &'static str,
    /// For people; bytes that are no text are replaced.
    name: String,
    /// What it was called before, where it was renamed.
    old_name: Option<String>,
    /// Where it is now, percent-encoded; nothing where it is gone.
    path: Option<String>,
    #[serde(flatten)]
    matter: Option<Matter>,
}

impl ChangeLine {
    /// Nothing for what lies in a folder that is a workspace of its own by now.
    fn new(change: &ChangeSeen, view: &View) -> Option<Self> {
        if view.is_frozen(&change.node) {
            return None;
        }
        let text = |name: &model::Name| String::from_utf8_lossy(name.as_bytes()).into_owned();
        // A deletion has no name in it; the tree keeps the last one.
        let last = view.tree().get(&change.node).map(|node| &node.record);
        let name = change.record.as_ref().or(last).map(|record| text(&record.name));
        let found = view.follow(change.node);
        Some(Self {
            id: change.node.to_string(),
            version: change.version,
            happened: change.happened.word(),
            name: name.unwrap_or_default(),
            old_name: change.old_name.as_ref().map(text),
            path: found.map(|(_, path)| path::encode(path.as_bytes())),
            matter: change.record.as_ref().or(last).map(Matter::new),
        })
    }
}

/// What one entry of the log did.
#[derive(Debug, Serialize)]
struct ActivityLine {
    seq: u64,
    /// Seconds since 1970.
    time: i64,
    device_id: String,
    device_name: String,
    /// How many changes there were, of which `changes` has the first.
    count: usize,
    changes: Vec<ChangeLine>,
}

impl ActivityLine {
    fn new(activity: &Activity, view: &View) -> Self {
        Self {
            seq: activity.seq,
            time: activity.time.seconds,
            device_id: activity.device.to_string(),
            device_name: activity.device_name.clone(),
            count: activity.count,
            changes: activity.changes.iter().filter_map(|it| ChangeLine::new(it, view)).collect(),
        }
    }
}

/// Some of what happened, the newest first.
#[derive(Debug, Serialize)]
pub(super) struct ActivityPage {
    activity: Vec<ActivityLine>,
    /// What to send as `cursor` for what is older; nothing at the beginning of the log.
    next: Option<String>,
}

/// Lists what happened.
pub(super) async fn list(
    target: Target,
    Query(query): Query<ActivityQuery>,
) -> Result<Json<ActivityPage>> {
    let Target { app, caller, workspace, .. } = target;
    let head = app.view(caller, workspace).await?.head().seq;
    let before = match query.cursor {
        None => head + 1,
        // No entry has a number as large as the database can count to.
        Some(text) => text.parse::<u32>().map(u64::from).map_err(|_| ServerError::Invalid {
            what: "cursor",
            reason: "send what 'next' was in the answer before".to_owned(),
        })?,
    };
    let before = before.min(head + 1);
    let limit = query.limit.unwrap_or(ACTIVITY_MAX).clamp(1, ACTIVITY_MAX);
    let page = app.activity(caller, workspace, before, limit).await?;
    let view = app.view(caller, workspace).await?;
    Ok(Json(ActivityPage {
        activity: page.activity.iter().map(|found| ActivityLine::new(found, &view)).collect(),
        next: page.next.map(|seq| seq.to_string()),
    }))
}
