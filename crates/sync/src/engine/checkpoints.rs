//! Begins at a checkpoint instead of replaying the log, and publishes checkpoints for those who come later.

use std::collections::BTreeSet;

use bytes::Bytes;
use model::checkpoint::{
    Checkpoint, PageWalk, build_pages, decode_entry, decode_pack_entry, node_entry, pack_entry,
};
use model::{Head, NodeId, PackRef, PageId, TreeNode, TreeStore};
use storage::ObjectKey;

use super::{Engine, Event, VoidEntry};
use crate::error::{Result, SyncError};
use crate::state::State;

/// How many entries lie between checkpoints.
const INTERVAL: u64 = 256;

/// How many rows are read at once.
const ROWS: usize = 2048;

impl Engine {
    /// Takes over a checkpoint.
    pub(super) async fn start_from_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        match self.keys.check_checkpoint(checkpoint) {
            Ok(()) => {}
            // Nobody who may has made it. The log is still there, and says the same as an honest one.
            Err(error) if error.is_damage() => {
                let reason = error.to_string();
                self.report.void_entries.push(VoidEntry { seq: checkpoint.head.seq, reason });
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        (self.observer)(Event::Step("checkpoint"));
        // All or nothing: half of a checkpoint is none.
        self.state.begin()?;
        let taken = self.take_over(checkpoint).await;
        self.fetcher.note_unordered_packs();
        self.state.end(taken.is_ok())?;
        match taken {
            // The log is still there.
            Err(error) if error.is_of_stored_data() || matches!(error, SyncError::Decode(_)) => {
                let reason = format!("its checkpoint cannot be read: {error}");
                self.report.void_entries.push(VoidEntry { seq: checkpoint.head.seq, reason });
                Ok(())
            }
            taken => taken,
        }
    }

    async fn take_over(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        self.read_tree(checkpoint.nodes, |state, key, value| {
            let (id, node) = decode_entry::<NodeId, TreeNode>(key, value)?;
            let is_alive = node.is_alive();
            state.set(id, node)?;
            if is_alive { state.add_unsynced(&id) } else { Ok(()) }
        })
        .await?;
        self.read_tree(checkpoint.packs, |state, key, value| {
            let (id, place) = decode_pack_entry(key, value)?;
            state.add_pack(&PackRef { id, length: place.length }, place.inline_seq)
        })
        .await?;
        self.state.set_head(&checkpoint.head)
    }

    async fn read_tree(
        &mut self,
        top: PageId,
        mut take: impl FnMut(&mut State, &[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut walk = PageWalk::new(top);
        while let Some(id) = walk.wanted() {
            let bytes = self.environment.store.read_page(id).await?;
            self.report.received_bytes += bytes.len() as u64;
            let entries = walk.take(&self.keys.open_page(&bytes)?)?;
            self.state.transaction(|state| {
                entries.iter().try_for_each(|(key, value)| take(state, key, value))
            })?;
        }
        Ok(())
    }

    /// Publishes a checkpoint when enough entries have come since the last.
    pub(super) async fn publish_checkpoint_if_due(&mut self) -> Result<()> {
        let head = self.head()?;
        let last = self
            .state
            .fact("checkpoint")?
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u64::from_le_bytes);
        if head.seq < last + INTERVAL {
            return Ok(());
        }
        let known =
            self.environment.log.checkpoint().await?.map_or(0, |checkpoint| checkpoint.head.seq);
        if head.seq >= known + INTERVAL {
            self.publish_checkpoint(head, &BTreeSet::new()).await?;
        }
        self.state.set_fact("checkpoint", &head.seq.max(known).to_le_bytes())
    }

    /// Stores and publishes the checkpoint of a head; what is in `lost` is written again, whatever is there. Returns its pages.
    pub(super) async fn publish_checkpoint(
        &mut self,
        head: Head,
        lost: &BTreeSet<PageId>,
    ) -> Result<BTreeSet<PageId>> {
        let mut pages = Vec::new();
        let mut keep = |id, page| {
            pages.push((id, page));
            Ok::<_, SyncError>(())
        };
        let (mut failed, mut pack_failed) = (None, None);
        let seal = |page| Ok(self.keys.seal_page(page)?);
        let rows = until_error(NodeRows::new(&self.state), &mut failed);
        let nodes = build_pages(rows, seal, &mut keep)?;
        let rows = until_error(PackRows::new(&self.state), &mut pack_failed);
        let packs = build_pages(rows, seal, &mut keep)?;
        if let Some(error) = failed.or(pack_failed) {
            return Err(error);
        }
        let node_count = self.state.remote_count()?;
        let store = &self.environment.store;
        let ids = pages.iter().map(|(id, _)| *id).collect();
        for (id, page) in pages {
            if lost.contains(&id) {
                self.report.sent_bytes += page.len() as u64;
                store.repair_page(id, Bytes::from(page)).await?;
                continue;
            }
            // Most pages are those of the checkpoint before.
            if store.object_store().size(&ObjectKey::page(id)).await?.is_none() {
                self.report.sent_bytes += page.len() as u64;
                store.put_page_deferred(id, Bytes::from(page)).await?;
            }
        }
        store.sync().await?;
        let fence = self.state.last_fence()?;
        let checkpoint = Checkpoint { head, nodes, node_count, packs, fence, seal: None };
        let checkpoint = self.keys.seal_checkpoint(checkpoint);
        self.environment.log.publish_checkpoint(&checkpoint).await?;
        Ok(ids)
    }
}

/// Ends an iterator at its first error, and keeps that.
fn until_error<'a, T>(
    rows: impl Iterator<Item = Result<T>> + 'a,
    failed: &'a mut Option<SyncError>,
) -> impl Iterator<Item = T> + 'a {
    rows.map_while(|row| match row {
        Ok(row) => Some(row),
        Err(error) => {
            *failed = Some(error);
            None
        }
    })
}

/// The nodes of the remote tree in order, a batch at a time.
struct NodeRows<'a> {
    state: &'a State,
    batch: std::vec::IntoIter<(NodeId, TreeNode)>,
    last: Option<NodeId>,
}

impl<'a> NodeRows<'a> {
    fn new(state: &'a State) -> Self {
        Self { state, batch: Vec::new().into_iter(), last: None }
    }
}

impl Iterator for NodeRows<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.len() == 0 {
            match self.state.remote_page(self.last.as_ref(), ROWS) {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
        let (id, node) = self.batch.next()?;
        self.last = Some(id);
        Some(Ok(node_entry(&id, &node)))
    }
}

/// The packs of the workspace in order, a batch at a time.
struct PackRows<'a> {
    state: &'a State,
    batch: std::vec::IntoIter<crate::state::packs::KnownPack>,
    last: Option<model::PackId>,
}

impl<'a> PackRows<'a> {
    fn new(state: &'a State) -> Self {
        Self { state, batch: Vec::new().into_iter(), last: None }
    }
}

impl Iterator for PackRows<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.len() == 0 {
            match self.state.pack_page(self.last.as_ref(), ROWS) {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
        let pack = self.batch.next()?;
        self.last = Some(pack.id);
        let reference = PackRef { id: pack.id, length: pack.place.length };
        Some(Ok(pack_entry(&reference, pack.place.inline_seq)))
    }
}
