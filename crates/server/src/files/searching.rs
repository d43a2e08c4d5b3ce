//! Files and folders of a plain workspace found by their names.
//!
//! *Invariants*: names are looked at where nobody else waits, so many at once, and a workspace can be changed in between; who breaks off
//! costs no more than the step that is being made.

use std::sync::Arc;

use content::searching::{Place, Query, Search};
use model::{NodeId, RelativePath, WorkspaceId};

use crate::app::App;
use crate::auth::Caller;
use crate::blocking;
use crate::error::{Result, ServerError};
use crate::limits::SEARCH_STEP;
use crate::services::files::FileNode;

/// A node that was found.
#[derive(Debug)]
pub struct Found {
    /// The node.
    pub node: FileNode,
    /// Where it is.
    pub path: RelativePath,
}

/// Some of what was found, the best first.
#[derive(Debug)]
pub struct FoundPage {
    /// The nodes.
    pub nodes: Vec<Found>,
    /// Where to go on; nothing at the end.
    pub next: Option<Place>,
}

impl App {
    /// Looks for the best `limit` matches behind a place, among all that the workspace has and does not have as a workspace of its own.
    ///
    /// # Errors
    /// As [`Self::view`], also where the caller loses the right meanwhile.
    pub async fn search(
        &self,
        (caller, workspace): (Caller, WorkspaceId),
        query: Query,
        after: Option<Place>,
        limit: usize,
    ) -> Result<FoundPage> {
        // A view that is not there yet is folded before others have to wait for it.
        drop(self.view(caller, workspace).await?);
        let (mut search, mut seen) = (Search::new(query.clone(), after, limit), None);
        loop {
            (search, seen) = self.search_on((caller, workspace), search, seen).await?;
            if seen.is_none() {
                break;
            }
        }
        let (places, has_more) = search.page();
        let next = places.last().filter(|_| has_more).cloned();
        let view = self.view(caller, workspace).await?;
        let find = |place: &Place| {
            // What was deleted or renamed since it was seen is not found, and what lies too deep for an address cannot be asked for.
            let (node, path) = view.follow(place.id()).filter(|(node, _)| node.id == place.id())?;
            query.rank(node.record.as_ref()?.name.as_bytes())?;
            Some(Found { node, path })
        };
        Ok(FoundPage { nodes: places.iter().filter_map(find).collect(), next })
    }

    /// Looks at the next names.
    async fn search_on(
        &self,
        (caller, workspace): (Caller, WorkspaceId),
        mut search: Search,
        seen: Option<NodeId>,
    ) -> Result<(Search, Option<NodeId>)> {
        let permit = Arc::clone(&self.files.searches).acquire_owned().await;
        let permit = permit.map_err(|_| ServerError::STOPPING)?;
        let view = self.view(caller, workspace).await?;
        let look = move || {
            let seen = view.search(&mut search, seen, SEARCH_STEP);
            drop((view, permit));
            (search, seen)
        };
        blocking::piece(look).await
    }
}
