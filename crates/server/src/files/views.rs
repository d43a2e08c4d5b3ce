//! The views of the workspaces that were used last, each as new as its log.
//!
//! *Invariants*: who gets a view was let into the workspace for this very request; a view that is given out is as new as the
//! log was when it was asked for; what all views take together is bounded.

use std::sync::Arc;

use model::checkpoint::{Checkpoint, PageWalk, decode_entry};
use model::fold::Folded;
use model::{NodeId, TreeNode, WorkspaceId};
use parking_lot::Mutex;
use storage::ContentStore;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::app::App;
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::{ENTRIES_LENGTH_MAX, VIEW_WEIGHT_MAX, VIEWS_MAX};
use crate::metadata::Metadata;
use crate::services::authorisation::Right;
use crate::services::files::View;
use crate::services::{sync_service, workspaces};

/// A view that is as new as its log, to be read.
pub type ViewGuard = OwnedRwLockReadGuard<Option<View>, View>;

/// The same, to be changed.
pub(super) type ViewMut = OwnedRwLockWriteGuard<Option<View>>;

/// A workspace's place for its view; empty before it was asked for, and after an error.
type Slot = Arc<RwLock<Option<View>>>;

/// The views that are kept, those that were used last at the end.
#[derive(Debug, Default)]
pub(super) struct Views(Mutex<Vec<Kept>>);

#[derive(Debug)]
struct Kept {
    workspace: WorkspaceId,
    slot: Slot,
    weight: usize,
}

impl Views {
    pub(super) fn slot(&self, workspace: WorkspaceId) -> Slot {
        let mut kept = self.0.lock();
        let found = kept.iter().position(|kept| kept.workspace == workspace);
        let used = match found {
            Some(position) => kept.remove(position),
            None => Kept { workspace, slot: Slot::default(), weight: 0 },
        };
        let slot = Arc::clone(&used.slot);
        kept.push(used);
        if kept.len() > VIEWS_MAX {
            kept.remove(0);
        }
        slot
    }

    /// Notes how much memory a view takes, and drops others that were not used for long where it is too much.
    fn weigh(&self, workspace: WorkspaceId, weight: usize) {
        let mut kept = self.0.lock();
        for kept in kept.iter_mut().filter(|kept| kept.workspace == workspace) {
            kept.weight = weight;
        }
        let mut total: usize = kept.iter().map(|kept| kept.weight).sum();
        while total > VIEW_WEIGHT_MAX && kept.len() > 1 {
            total -= kept.remove(0).weight;
        }
    }
}

impl App {
    /// Returns the view of a workspace.
    ///
    /// # Errors
    /// [`ServerError::NotFound`] where the workspace is not the caller's; [`ServerError::Sealed`]; [`ServerError::TooLarge`] where it
    /// does not fit into memory.
    pub async fn view(&self, caller: Caller, workspace: WorkspaceId) -> Result<ViewGuard> {
        let open = move |metadata: &dyn Metadata| {
            workspaces::open(metadata, &caller, workspace, Right::Read).map(|found| found.head)
        };
        let head = self.readers.read(open).await?;
        let guard = self.files.views.slot(workspace).read_owned().await;
        let is_new = |view: &&View| view.head() == head;
        let guard = OwnedRwLockReadGuard::try_map(guard, |view| view.as_ref().filter(is_new));
        if let Ok(guard) = guard {
            return Ok(guard);
        }
        drop(guard);
        let guard = self.view_to_change(caller, workspace).await?.downgrade();
        Ok(OwnedRwLockReadGuard::map(guard, |view| view.as_ref().expect("it was filled")))
    }

    /// Refuses who may not change the workspace.
    ///
    /// # Errors
    /// [`ServerError::Forbidden`] for who may only read; [`ServerError::NotFound`].
    pub(crate) async fn check_may_write(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
    ) -> Result<()> {
        let open = move |metadata: &dyn Metadata| {
            workspaces::open(metadata, &caller, workspace, Right::Write).map(drop)
        };
        self.readers.read(open).await
    }

    /// Returns the view of a workspace as the only one who has it.
    ///
    /// # Errors
    /// As [`Self::view`].
    pub(super) async fn view_to_change(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
    ) -> Result<ViewMut> {
        let mut guard = self.files.views.slot(workspace).write_owned().await;
        if guard.is_none() {
            *guard = Some(self.begin_view(caller, workspace).await?);
        }
        Ok(self.catch_up(caller, workspace, guard, 0).await?.0)
    }

    /// Folds what is new in the log. Returns what the entry `wanted` did, if it is among that.
    pub(super) async fn catch_up(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
        mut guard: ViewMut,
        wanted: u64,
    ) -> Result<(ViewMut, Option<Folded>)> {
        let random = Arc::clone(&self.random);
        let fold = move |metadata: &dyn Metadata| {
            let found = workspaces::open(metadata, &caller, workspace, Right::Read)?;
            let slot = &mut *guard;
            let view = slot.as_mut().expect("it was filled");
            let head = view.head();
            let is_known =
                head.seq == 0 || metadata.entry_hash(found.number, head.seq)? == Some(head.hash);
            if !is_known {
                // The server was restored from an older copy.
                *view = View::new(&workspaces::genesis(metadata, &found)?, random)?;
            }
            let mut folded = None;
            while view.head().seq < found.head.seq {
                let since = view.head().seq;
                let entries =
                    sync_service::entries(metadata, &caller, workspace, since, ENTRIES_LENGTH_MAX)?;
                if entries.is_empty() {
                    break;
                }
                for entry in &entries {
                    let done = view.fold(entry)?;
                    if entry.seq == wanted {
                        folded = Some(done);
                    }
                }
            }
            let weight = view.weight();
            if weight > VIEW_WEIGHT_MAX {
                *slot = None;
            }
            Ok((guard, folded, weight))
        };
        let (guard, folded, weight) = self.readers.read(fold).await?;
        self.files.views.weigh(workspace, weight);
        match guard.is_some() {
            true => Ok((guard, folded)),
            false => Err(ServerError::TooLarge {
                what: "what the server must keep in memory of the workspace",
                length_max: VIEW_WEIGHT_MAX as u64,
            }),
        }
    }

    /// Begins a view at the newest checkpoint, or at the genesis where there is none, or none that can be read.
    async fn begin_view(&self, caller: Caller, workspace: WorkspaceId) -> Result<View> {
        let random = Arc::clone(&self.random);
        let begin = move |metadata: &dyn Metadata| {
            let found = workspaces::open(metadata, &caller, workspace, Right::Read)?;
            let genesis = workspaces::genesis(metadata, &found)?;
            let checkpoint = sync_service::checkpoint(metadata, &caller, workspace)?;
            let new = || View::new(&genesis, Arc::clone(&random));
            Ok((new()?, new()?, checkpoint))
        };
        let (empty, mut view, checkpoint) = self.readers.read(begin).await?;
        // One of nothing has nothing to tell.
        let checkpoint = checkpoint.filter(|checkpoint| checkpoint.head.seq > 0);
        let Some(checkpoint) = checkpoint else { return Ok(empty) };
        match self.take_checkpoint(workspace, &checkpoint, &mut view).await {
            Ok(()) => Ok(view),
            Err(error) => {
                // The log is still there, and says the same.
                tracing::warn!(%workspace, %error, "a checkpoint cannot be read; the whole log is");
                Ok(empty)
            }
        }
    }

    async fn take_checkpoint(
        &self,
        workspace: WorkspaceId,
        checkpoint: &Checkpoint,
        view: &mut View,
    ) -> Result<()> {
        let store = ContentStore::new(Arc::new(self.store_of(workspace)));
        let damaged = |error: model::codec::DecodeError| ServerError::Storage {
            text: format!("a page of a checkpoint of workspace {workspace}: {error}"),
            is_full: false,
            is_damage: true,
        };
        let mut nodes = PageWalk::new(checkpoint.nodes);
        while let Some(page) = nodes.wanted() {
            for (key, value) in nodes.take(&store.read_page(page).await?).map_err(damaged)? {
                let (id, node) = decode_entry::<NodeId, TreeNode>(&key, &value).map_err(damaged)?;
                view.take_node(id, node)?;
            }
        }
        let mut packs = PageWalk::new(checkpoint.packs);
        while let Some(page) = packs.wanted() {
            for (key, value) in packs.take(&store.read_page(page).await?).map_err(damaged)? {
                view.take_pack(&key, &value).map_err(damaged)?;
            }
        }
        view.begin_at(checkpoint.head)
    }
}
