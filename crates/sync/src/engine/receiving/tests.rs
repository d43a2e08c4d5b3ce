//! A device whose account may read, beside one that may write.

#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use commit_log::serverless::slot_log::SlotCommitLog;
use commit_log::{CommitLog, CommitLogError, EntryStream};
use futures_util::FutureExt;
use model::checkpoint::Checkpoint;
use model::wire::{Refusal, RefusalKind};
use model::{Commit, DeviceId, Entry, Genesis, Head};
use tempfile::TempDir;

use super::*;
use crate::engine::fixture::{Counting, Stopped, engine};
use crate::state::State;

/// A log that somebody may read, and write only as long as they are allowed to.
#[derive(Debug)]
struct Viewed {
    log: Arc<dyn CommitLog>,
    may_write: AtomicBool,
    refused_checkpoints: AtomicU64,
}

impl Viewed {
    fn check(&self) -> Result<(), CommitLogError> {
        match self.may_write.load(Ordering::Relaxed) {
            true => Ok(()),
            false => {
                let refusal = Refusal::new(RefusalKind::NotAllowed, "you may read only");
                Err(CommitLogError::Refused(refusal))
            }
        }
    }
}

#[async_trait]
impl CommitLog for Viewed {
    fn genesis(&self) -> &Genesis {
        self.log.genesis()
    }

    async fn commit(&self, commit: &Commit) -> Result<Head, CommitLogError> {
        self.check()?;
        self.log.commit(commit).await
    }

    async fn head(&self) -> Result<Head, CommitLogError> {
        self.log.head().await
    }

    async fn entries(&self, since: u64, length_max: u64) -> Result<Vec<Entry>, CommitLogError> {
        self.log.entries(since, length_max).await
    }

    async fn subscribe(&self, since: u64) -> Result<EntryStream, CommitLogError> {
        self.log.subscribe(since).await
    }

    /// That of the writer is not told of, so that one is due.
    async fn checkpoint(&self) -> Result<Option<Checkpoint>, CommitLogError> {
        match self.may_write.load(Ordering::Relaxed) {
            true => self.log.checkpoint().await,
            false => Ok(None),
        }
    }

    async fn publish_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), CommitLogError> {
        self.refused_checkpoints.fetch_add(1, Ordering::Relaxed);
        self.check()?;
        self.log.publish_checkpoint(checkpoint).await
    }
}

struct TestDevice {
    folder: TempDir,
    engine: Engine,
    log: Arc<Viewed>,
}

/// Two devices of one workspace: the first may write, the second may not.
fn devices() -> (TempDir, [TestDevice; 2]) {
    let store = tempfile::tempdir().expect("a folder");
    let dice = Arc::new(Counting::default());
    let devices = [true, false].map(|may_write| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut engine = engine(folder.path(), store.path(), State::in_memory());
        engine.options.device = DeviceId::from_bytes([u8::from(may_write); 16]);
        engine.environment.random = dice.clone();
        if may_write {
            let store = engine.environment.store.object_store().clone();
            let genesis = engine.environment.log.genesis().clone();
            let made = SlotCommitLog::create(store, Arc::new(Stopped), genesis).now_or_never();
            made.expect("nothing to wait for").expect("made");
        }
        let log = Arc::new(Viewed {
            log: engine.environment.log.clone(),
            may_write: AtomicBool::new(may_write),
            refused_checkpoints: AtomicU64::new(0),
        });
        engine.environment.log = log.clone();
        TestDevice { folder, engine, log }
    });
    (store, devices)
}

impl TestDevice {
    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path().join(name), bytes).expect("written");
    }

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.folder.path().join(name)).ok()
    }

    fn sync(&mut self) -> SyncReport {
        let synced = self.engine.sync(Scope::Everything).now_or_never();
        synced.expect("nothing to wait for").expect("syncs")
    }
}

#[test]
fn changes_of_who_may_only_read_stay_and_go_once_they_may() {
    let (_store, [mut writer, mut reader]) = devices();
    writer.write("shared", b"one");
    writer.sync();
    reader.sync();
    writer.write("new", b"of the writer");
    writer.sync();
    for _ in 0..2 {
        reader.write("mine", b"of the reader");
        reader.write("shared", b"two, by the reader");
        let report = reader.sync();
        let kept: Vec<_> = report.kept_back.iter().map(ToString::to_string).collect();
        assert_eq!(kept, ["mine", "shared"]);
        assert_eq!((report.sent, report.sent_bytes), (0, 0));
        assert_eq!(reader.read("new").expect("received"), b"of the writer");
        assert_eq!(reader.read("mine").expect("kept"), b"of the reader");
        assert_eq!(reader.read("shared").expect("kept"), b"two, by the reader");
        assert_eq!(reader.engine.state.outbox().expect("read").len(), 0);
    }
    reader.log.may_write.store(true, Ordering::Relaxed);
    let report = reader.sync();
    assert_eq!((report.sent, report.kept_back.len()), (2, 0));
    writer.sync();
    assert_eq!(writer.read("mine").expect("received"), b"of the reader");
    assert_eq!(writer.read("shared").expect("received"), b"two, by the reader");
}

#[test]
fn a_checkpoint_that_is_due_is_left_to_others_after_one_attempt() {
    let (_store, [mut writer, mut reader]) = devices();
    writer.write("file", b"0");
    writer.sync();
    reader.sync();
    for number in 1..=300_u32 {
        writer.write("file", &number.to_le_bytes());
        writer.sync();
    }
    assert_eq!(reader.sync().seq, 301);
    reader.sync();
    assert_eq!(reader.log.refused_checkpoints.load(Ordering::Relaxed), 1);
    assert_eq!(reader.read("file").expect("received"), 300_u32.to_le_bytes());
}
