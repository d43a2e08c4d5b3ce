//! A log that is watched: what it acknowledges is remembered, and must be true then and ever after.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use commit_log::{CommitLog, CommitLogError, EntryStream, RumourStream};
use model::checkpoint::Checkpoint;
use model::{Commit, Entry, Genesis, Head, OpId, PackRef};
use parking_lot::Mutex;
use storage::ObjectKey;

use crate::several::Several;
use crate::store::MemoryStore;

/// What was acknowledged in a world; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Acknowledged(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    commits: BTreeMap<OpId, Head>,
    /// How often an older copy came back.
    epoch: u64,
    violations: Vec<String>,
    /// Commits that were acknowledged without their packs.
    without_packs: BTreeMap<OpId, u64>,
}

impl Acknowledged {
    /// Returns the acknowledged commits.
    pub fn commits(&self) -> BTreeMap<OpId, Head> {
        self.0.lock().commits.clone()
    }

    /// Returns what was acknowledged and not true.
    pub fn violations(&self) -> Vec<String> {
        self.0.lock().violations.clone()
    }

    /// Returns the commits that were acknowledged while their packs were not stored, with their entries.
    pub fn without_packs(&self) -> BTreeMap<OpId, u64> {
        self.0.lock().without_packs.clone()
    }

    /// A server or store has gone back to an older copy: nobody answers for what was acknowledged before.
    pub fn forget(&self) {
        let mut inner = self.0.lock();
        inner.commits.clear();
        inner.epoch += 1;
    }

    fn commit(
        &self,
        commit: &Commit,
        head: Head,
        is_durable: impl Fn(&PackRef) -> bool,
        epoch: u64,
    ) {
        let mut inner = self.0.lock();
        // The answer was on its way when the older copy came back.
        if inner.epoch != epoch {
            return;
        }
        for pack in &commit.packs {
            if !is_durable(pack) {
                inner.without_packs.insert(commit.op_id, head.seq);
            }
        }
        if let Some(before) = inner.commits.insert(commit.op_id, head)
            && before != head
        {
            inner
                .violations
                .push(format!("I-21: one commit was acknowledged as {before:?} and {head:?}"));
        }
    }
}

/// A watched log.
#[derive(Debug)]
pub struct WatchedLog {
    log: Arc<dyn CommitLog>,
    acknowledged: Acknowledged,
    store: MemoryStore,
    several: Option<Several>,
}

impl WatchedLog {
    /// Watches a log whose packs rest in `store`, or in several.
    pub fn new(
        log: Arc<dyn CommitLog>,
        acknowledged: Acknowledged,
        store: MemoryStore,
        several: Option<Several>,
    ) -> Self {
        Self { log, acknowledged, store, several }
    }

    fn is_durable(&self, pack: &PackRef) -> bool {
        let key = ObjectKey::pack(pack.id);
        match &self.several {
            Some(several) => several.can_restore(&key),
            None => self.store.object(&key).is_some_and(|bytes| bytes.len() as u64 == pack.length),
        }
    }
}

#[async_trait]
impl CommitLog for WatchedLog {
    fn genesis(&self) -> &Genesis {
        self.log.genesis()
    }

    async fn commit(&self, commit: &Commit) -> Result<Head, CommitLogError> {
        let epoch = self.acknowledged.0.lock().epoch;
        let head = self.log.commit(commit).await?;
        self.acknowledged.commit(commit, head, |pack| self.is_durable(pack), epoch);
        Ok(head)
    }

    fn binds_what_was_seen(&self) -> bool {
        self.log.binds_what_was_seen()
    }

    async fn head(&self) -> Result<Head, CommitLogError> {
        self.log.head().await
    }

    fn rumours(&self) -> RumourStream {
        self.log.rumours()
    }

    async fn entries(&self, since: u64, length_max: u64) -> Result<Vec<Entry>, CommitLogError> {
        self.log.entries(since, length_max).await
    }

    async fn subscribe(&self, since: u64) -> Result<EntryStream, CommitLogError> {
        self.log.subscribe(since).await
    }

    async fn checkpoint(&self) -> Result<Option<Checkpoint>, CommitLogError> {
        self.log.checkpoint().await
    }

    async fn publish_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), CommitLogError> {
        self.log.publish_checkpoint(checkpoint).await
    }

    async fn tell_in_sync(&self) -> Result<(), CommitLogError> {
        self.log.tell_in_sync().await
    }

    async fn last_checkpoints(&self) -> Result<Option<Vec<Checkpoint>>, CommitLogError> {
        self.log.last_checkpoints().await
    }

    async fn forget_checkpoints(&self, oldest: u64) -> Result<(), CommitLogError> {
        self.log.forget_checkpoints(oldest).await
    }
}
