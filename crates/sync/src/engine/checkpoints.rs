//! Begins at a checkpoint instead of replaying the log, and publishes checkpoints for those who come later.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use model::checkpoint::{
    Checkpoint, PageWalk, build_pages, decode_entry, decode_pack_entry, node_entry, pack_entry,
};
use model::{Head, NodeId, PackRef, PageId, TreeNode, TreeStore, Versions};

use super::{Engine, Event, VoidEntry};
use crate::error::{Result, SyncError};
use crate::state::State;

mod ahead;
mod pages;

use ahead::PagesAhead;

/// How many entries lie between checkpoints.
const INTERVAL: u64 = 256;

/// How many pages are asked for, or written, at once.
const PAGES_AT_ONCE: usize = 16;

/// How often a device that begins takes a newer checkpoint, because pages of the last are not there any more.
const NEWER_MAX: u32 = 3;

/// How many rows are read at once.
const ROWS: usize = 2048;

impl Engine {
    /// Takes over a checkpoint, or a newer one where that has come since and a cleanup has removed pages of this one.
    pub(super) async fn start_from_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        // A commit of this device whose answer was lost may be in it: only whoever folds its entry learns that it stands.
        if !self.state.outbox()?.is_empty() {
            return Ok(());
        }
        let mut checkpoint = checkpoint.clone();
        for _ in 0..NEWER_MAX {
            let Some(reason) = self.try_checkpoint(&checkpoint).await? else { return Ok(()) };
            match self.environment.log.checkpoint().await? {
                Some(newer) if newer.head.seq > checkpoint.head.seq => checkpoint = newer,
                // The log is still there, and says the same as an honest checkpoint.
                _ => {
                    let seq = checkpoint.head.seq;
                    self.report.void_entries.push(VoidEntry { seq, reason });
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Takes over a checkpoint. Returns why it cannot be had, where it cannot.
    async fn try_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<Option<String>> {
        match self.keys.check_checkpoint(checkpoint) {
            Ok(()) => {}
            // Nobody who may has made it.
            Err(error) if error.is_damage() => return Ok(Some(error.to_string())),
            Err(error) => return Err(error.into()),
        }
        (self.observer)(Event::Step("checkpoint"));
        // All or nothing: half of a checkpoint is none.
        self.state.begin()?;
        let taken = self.take_over(checkpoint).await;
        self.fetcher.note_unordered_packs();
        self.state.end(taken.is_ok())?;
        match taken {
            Err(error) if error.is_of_stored_data() || matches!(error, SyncError::Decode(_)) => {
                Ok(Some(format!("its checkpoint cannot be read: {error}")))
            }
            taken => taken.map(|()| None),
        }
    }

    async fn take_over(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let mut ahead = PagesAhead::new(self.environment.store.clone());
        let (mut nodes, mut packs) =
            (PageWalk::new(checkpoint.nodes), PageWalk::new(checkpoint.packs));
        while let Some(id) = nodes.wanted() {
            let next = nodes.upcoming().chain(packs.upcoming());
            let page = ahead.get(id, next).await?;
            self.take_page(&mut nodes, &page, |state, key, value| {
                let (id, node) = decode_entry::<NodeId, TreeNode>(key, value)?;
                let is_alive = node.is_alive();
                state.set(id, node)?;
                if is_alive { state.add_unsynced(&id) } else { Ok(()) }
            })?;
        }
        while let Some(id) = packs.wanted() {
            let page = ahead.get(id, packs.upcoming()).await?;
            self.take_page(&mut packs, &page, |state, key, value| {
                let (id, place) = decode_pack_entry(key, value)?;
                state.add_pack(&PackRef { id, length: place.length }, place.inline_seq)
            })?;
        }
        if checkpoint.has_deltas {
            self.state.note_deltas()?;
        }
        self.state.set_head(&checkpoint.head)
    }

    /// Takes over what a page has.
    fn take_page(
        &mut self,
        walk: &mut PageWalk,
        page: &[u8],
        mut take: impl FnMut(&mut State, &[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.report.received_bytes += page.len() as u64;
        let entries = walk.take(&self.keys.open_page(page)?)?;
        self.state.transaction(|state| {
            entries.iter().try_for_each(|(key, value)| take(state, key, value))
        })
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

    /// Publishes a checkpoint of what is known here, however few entries have come since the last.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn publish_checkpoint_now(&mut self) -> Result<()> {
        // What this device knows may be a history that the stores have lost.
        self.fetch().await?;
        let head = self.head()?;
        match head.seq {
            0 => Ok(()),
            _ => self.publish_checkpoint(head, &BTreeSet::new()).await.map(drop),
        }
    }

    /// Stores and publishes the checkpoint of a head; what is in `lost` is written again, whatever is there. Returns its pages.
    ///
    /// A cleanup may be removing pages, and knows nothing of this checkpoint: it may take what was just written, or was there
    /// and left out. So the pages are looked at once more when the checkpoint is published. Whoever removes looks after its
    /// removal which checkpoint is the newest, so one of both sees what the other has done.
    pub(super) async fn publish_checkpoint(
        &mut self,
        head: Head,
        lost: &BTreeSet<PageId>,
    ) -> Result<BTreeSet<PageId>> {
        let log = self.environment.log.clone();
        // What the newest checkpoint has is not removed, and mostly all there is.
        let kept = match log.last_checkpoints().await? {
            Some(last) => Some(match last.first() {
                Some(newest) => self.pages_of(newest).await?.ids,
                None => BTreeSet::new(),
            }),
            None => None,
        };
        let (checkpoint, pages) = self.build_checkpoint(head)?;
        let ids = pages.iter().map(|(id, _)| *id).collect();
        let is_kept = |id: &PageId| kept.as_ref().is_none_or(|kept| kept.contains(id));
        let (there, new): (Vec<_>, Vec<_>) =
            pages.into_iter().partition(|(id, _)| is_kept(id) && !lost.contains(id));
        let mut missing = self.missing_pages(&there).await?;
        missing.extend(new.iter().cloned());
        self.write_pages(missing, lost).await?;
        log.publish_checkpoint(&checkpoint).await?;
        if kept.is_some() {
            let missing = self.missing_pages(&new).await?;
            let again = missing.iter().map(|(id, _)| *id).collect();
            self.write_pages(missing, &again).await?;
        }
        Ok(ids)
    }

    /// Makes the checkpoint of a head, and its pages.
    fn build_checkpoint(&self, head: Head) -> Result<(Checkpoint, Vec<(PageId, Bytes)>)> {
        let mut pages = Vec::new();
        let mut keep = |id, page| {
            pages.push((id, Bytes::from(page)));
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
        let fence = self.state.last_fence()?;
        let has_mounts = self.state.version(&NodeId::MOUNTS)? > 0;
        let has_deltas = self.state.log_has_deltas()?;
        let seal = None;
        let checkpoint =
            Checkpoint { head, nodes, node_count, packs, fence, has_mounts, has_deltas, seal };
        Ok((self.keys.seal_checkpoint(checkpoint)?, pages))
    }

    /// Returns those of the pages that are not stored.
    async fn missing_pages(&self, pages: &[(PageId, Bytes)]) -> Result<Vec<(PageId, Bytes)>> {
        let store = &self.environment.store;
        let look = async |page: &(PageId, Bytes)| {
            let is_there = store.has_page(page.0).await?;
            Ok::<_, SyncError>((!is_there).then(|| page.clone()))
        };
        let looks = iter(pages).map(look).buffered(PAGES_AT_ONCE);
        looks.try_filter_map(async |missing| Ok(missing)).try_collect().await
    }

    /// Makes pages durable, those in `lost` also where something is in their place.
    async fn write_pages(
        &mut self,
        pages: Vec<(PageId, Bytes)>,
        lost: &BTreeSet<PageId>,
    ) -> Result<()> {
        if pages.is_empty() {
            return Ok(());
        }
        self.report.sent_bytes += pages.iter().map(|(_, page)| page.len() as u64).sum::<u64>();
        let store = &self.environment.store;
        let write = async |(id, page)| match lost.contains(&id) {
            true => store.repair_page(id, page).await,
            false => store.put_page_deferred(id, page).await,
        };
        let mut writes = iter(pages).map(write).buffer_unordered(PAGES_AT_ONCE);
        while let Some(written) = writes.next().await {
            written?;
        }
        Ok(store.sync().await?)
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
