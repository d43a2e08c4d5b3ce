//! Which packs a device may delete: those that a cleanup has condemned in the log of their workspace.
//!
//! *Goals*: packs hold the only copy of a user's data, so the server takes nobody's word for it that one is not needed; what it needs to
//! know stands in the log. *Invariants*: what the log does not condemn is not deleted, by whomever; a log that was put back to
//! an older state condemns what that says.
//!
//! Which packs a fence of a sealed workspace condemns the server cannot read. It sees that there is a fence, and which packs are
//! named behind it: these stay. For the others it takes the word of a device of the owner, which could as well write a fence that
//! condemns them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use model::fence::Condemned;
use model::{Head, PackId, PlainOpener, WorkspaceId};
use tokio::sync::Mutex;

use crate::auth::Caller;
use crate::error::Result;
use crate::limits::ENTRIES_LENGTH_MAX;
use crate::metadata::Metadata;
use crate::services::authorisation::Right;
use crate::services::readers::Readers;
use crate::services::{sync_service, workspaces};

/// Of how many workspaces it is remembered.
const WORKSPACES_REMEMBERED: usize = 16;

/// What the log of one workspace condemns, up to an entry.
#[derive(Debug, Clone, Default)]
pub struct CondemnedPacks {
    condemned: Condemned,
    head: Option<Head>,
    /// Of a sealed workspace the packs that entries since the last fence name.
    named: Option<HashSet<PackId>>,
}

impl CondemnedPacks {
    /// Reads what is new in the log.
    ///
    /// # Errors
    /// [`crate::ServerError::NotFound`] and [`crate::ServerError::Forbidden`] where the workspace is not the caller's.
    pub fn catch_up(
        &mut self,
        metadata: &dyn Metadata,
        caller: &Caller,
        workspace: WorkspaceId,
    ) -> Result<()> {
        let found = workspaces::open(metadata, caller, workspace, Right::Manage)?;
        if let Some(head) = self.head
            && metadata.entry_hash(found.number, head.seq)? != Some(head.hash)
        {
            *self = Self::default();
        }
        if self.head.is_none() {
            let is_sealed = workspaces::genesis(metadata, &found)?.mode.sealed().is_some();
            self.named = is_sealed.then(HashSet::new);
        }
        loop {
            let since = self.head.map_or(0, |head| head.seq);
            let length_max = ENTRIES_LENGTH_MAX;
            let entries = sync_service::entries(metadata, caller, workspace, since, length_max)?;
            let Some(last) = entries.last() else { return Ok(()) };
            self.head = Some(last.head());
            for entry in &entries {
                self.condemned.note(entry, &PlainOpener);
                let Some(named) = &mut self.named else { continue };
                if self.condemned.fence() == entry.seq {
                    named.clear();
                }
                named.extend(entry.commit.packs.iter().map(|pack| pack.id));
            }
        }
    }

    /// Tells whether a pack may be deleted.
    pub fn contains(&self, pack: &PackId) -> bool {
        match &self.named {
            Some(named) => self.condemned.fence() > 0 && !named.contains(pack),
            None => self.condemned.contains(pack),
        }
    }
}

/// What is remembered of the workspaces that were cleaned up lately; clones share it.
#[derive(Debug, Clone, Default)]
pub struct CondemnedCache(Arc<Mutex<HashMap<WorkspaceId, CondemnedPacks>>>);

impl CondemnedCache {
    /// Tells whether the log of a workspace condemns a pack.
    ///
    /// # Errors
    /// As [`CondemnedPacks::catch_up`].
    pub async fn contains(
        &self,
        readers: &Readers,
        (caller, workspace): (Caller, WorkspaceId),
        pack: PackId,
    ) -> Result<bool> {
        let mut known = self.0.lock().await;
        let mut packs = known.remove(&workspace).unwrap_or_default();
        let packs = readers
            .read(move |metadata| packs.catch_up(metadata, &caller, workspace).map(|()| packs))
            .await?;
        let is_condemned = packs.contains(&pack);
        if known.len() == WORKSPACES_REMEMBERED {
            known.clear();
        }
        known.insert(workspace, packs);
        Ok(is_condemned)
    }
}
