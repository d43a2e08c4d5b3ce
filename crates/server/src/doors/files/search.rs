//! Files and folders found by their names, as JSON.

use axum::Json;
use axum::extract::Query;
use content::searching::{self, InvalidQuery, Place};
use serde::{Deserialize, Serialize};

use super::Target;
use super::json::NodeLine;
use crate::error::{Result, ServerError};
use crate::files::Found;
use crate::limits::LIST_MAX;

#[derive(Deserialize)]
pub(super) struct SearchQuery {
    /// What somebody has typed.
    q: Option<String>,
    /// Where a list that was cut off goes on.
    cursor: Option<String>,
    limit: Option<usize>,
}

/// A part of a name that is to be marked, in UTF-16 code units of `name`.
#[derive(Debug, Serialize)]
struct Mark {
    start: usize,
    end: usize,
}

/// A node that was found.
#[derive(Debug, Serialize)]
struct FoundLine {
    #[serde(flatten)]
    node: NodeLine,
    /// In order and apart.
    marks: Vec<Mark>,
}

impl FoundLine {
    fn new(found: &Found, query: &searching::Query) -> Self {
        let node = NodeLine::new(&found.node, &found.path);
        let marks = query.marks(node.name());
        Self { marks: marks.iter().map(|&(start, end)| Mark { start, end }).collect(), node }
    }
}

/// Some of what was found, the best first.
#[derive(Debug, Serialize)]
pub(super) struct SearchPage {
    nodes: Vec<FoundLine>,
    /// What to send as `cursor` for the next ones; nothing at the end.
    next: Option<String>,
}

/// Finds files and folders by their names.
pub(super) async fn find(
    target: Target,
    Query(asked): Query<SearchQuery>,
) -> Result<Json<SearchPage>> {
    let Target { app, caller, workspace, .. } = target;
    // Who may not see the workspace hears that, whatever the query is.
    drop(app.view(caller, workspace).await?);
    let invalid =
        |error: InvalidQuery| ServerError::Invalid { what: "q", reason: error.to_string() };
    let query = searching::Query::new(asked.q.as_deref().unwrap_or_default()).map_err(invalid)?;
    let after = asked.cursor.as_deref().map(read_cursor).transpose()?;
    let limit = asked.limit.unwrap_or(LIST_MAX).clamp(1, LIST_MAX);
    let page = app.search((caller, workspace), query.clone(), after, limit).await?;
    Ok(Json(SearchPage {
        nodes: page.nodes.iter().map(|found| FoundLine::new(found, &query)).collect(),
        next: page.next.as_ref().map(Place::to_text),
    }))
}

fn read_cursor(text: &str) -> Result<Place> {
    Place::from_text(text).ok_or_else(|| ServerError::Invalid {
        what: "cursor",
        reason: "send what 'next' was in the answer before".to_owned(),
    })
}
