//! Deliberate defects, to see that the checks find them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use commit_log::{CommitLog, CommitLogError, EntryStream};
use model::checkpoint::Checkpoint;
use model::fold::fold;
use model::{Commit, Entry, Genesis, Head, NodeId, Tree, Versions};

/// A coordinator that accepts every change, whatever the device had seen: as if it had been made of the newest version.
#[derive(Debug)]
pub struct AcceptsEverything(pub Arc<dyn CommitLog>);

impl AcceptsEverything {
    async fn rebased(&self, commit: &Commit) -> Result<Commit, CommitLogError> {
        let mut tree = Tree::default();
        for entry in self.0.entries(0, u64::MAX).await? {
            if entry.commit.op_id == commit.op_id {
                return Ok(entry.commit);
            }
            let Ok(_) = fold(&mut tree, &entry, &model::PlainOpener);
        }
        let mut commit = commit.clone();
        let mut versions: BTreeMap<NodeId, u64> = BTreeMap::new();
        for change in &mut commit.changes {
            let Ok(current) = tree.version(&change.node);
            let version = versions.entry(change.node).or_insert(current);
            change.base = *version;
            *version += 1;
        }
        Ok(commit)
    }
}

#[async_trait]
impl CommitLog for AcceptsEverything {
    fn genesis(&self) -> &Genesis {
        self.0.genesis()
    }

    async fn commit(&self, commit: &Commit) -> Result<Head, CommitLogError> {
        let rebased = self.rebased(commit).await?;
        self.0.commit(&rebased).await
    }

    async fn head(&self) -> Result<Head, CommitLogError> {
        self.0.head().await
    }

    async fn entries(&self, since: u64, length_max: u64) -> Result<Vec<Entry>, CommitLogError> {
        self.0.entries(since, length_max).await
    }

    async fn subscribe(&self, since: u64) -> Result<EntryStream, CommitLogError> {
        self.0.subscribe(since).await
    }

    async fn checkpoint(&self) -> Result<Option<Checkpoint>, CommitLogError> {
        self.0.checkpoint().await
    }

    async fn publish_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), CommitLogError> {
        self.0.publish_checkpoint(checkpoint).await
    }

    async fn tell_in_sync(&self) -> Result<(), CommitLogError> {
        self.0.tell_in_sync().await
    }

    async fn last_checkpoints(&self) -> Result<Option<Vec<Checkpoint>>, CommitLogError> {
        self.0.last_checkpoints().await
    }

    async fn forget_checkpoints(&self, oldest: u64) -> Result<(), CommitLogError> {
        self.0.forget_checkpoints(oldest).await
    }
}
