//! Cleanups over a real folder, a real log and a real store, beside other devices that know nothing of them.

#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use commit_log::serverless::slot_log::SlotCommitLog;
use commit_log::{CommitLog, CommitLogError, EntryStream};
use futures_util::FutureExt;
use model::checkpoint::Checkpoint;
use model::{
    Clock, Commit, DeviceId, Entry, Genesis, Head, Name, RelativePath, Timestamp, VersionPolicy,
};
use parking_lot::Mutex;
use tempfile::TempDir;

use super::*;
use crate::engine::fixture::{Counting, engine};
use crate::engine::{At, SyncReport};
use crate::scan::Scope;
use crate::state::State;

mod automatic;
mod copied;
mod deltas;
mod edits;
mod in_entries;
mod open_records;
mod pages;
mod pictures;
mod turned;

/// A clock that tests put forward.
#[derive(Debug, Default)]
struct Wound(AtomicI64);

impl Clock for Wound {
    fn now(&self) -> Timestamp {
        Timestamp { seconds: self.0.load(Ordering::Relaxed), nanoseconds: 0 }
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed).unsigned_abs())
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

/// A log that does not take commits while it is closed, and may take no checkpoints.
#[derive(Debug)]
struct Closing {
    log: Arc<dyn CommitLog>,
    is_closed: AtomicBool,
    /// Why it takes no checkpoints.
    no_checkpoints: Mutex<Option<CommitLogError>>,
}

#[async_trait]
impl CommitLog for Closing {
    fn genesis(&self) -> &Genesis {
        self.log.genesis()
    }

    async fn commit(&self, commit: &Commit) -> Result<Head, CommitLogError> {
        if self.is_closed.load(Ordering::Relaxed) {
            let (place, reason) = ("the log".to_owned(), "it is closed".to_owned());
            return Err(CommitLogError::Unreachable { place, reason });
        }
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

    async fn checkpoint(&self) -> Result<Option<Checkpoint>, CommitLogError> {
        self.log.checkpoint().await
    }

    async fn publish_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), CommitLogError> {
        let reason = self.no_checkpoints.lock().take();
        match reason {
            Some(reason) => Err(reason),
            None => self.log.publish_checkpoint(checkpoint).await,
        }
    }

    async fn last_checkpoints(&self) -> Result<Option<Vec<Checkpoint>>, CommitLogError> {
        self.log.last_checkpoints().await
    }

    async fn forget_checkpoints(&self, oldest: u64) -> Result<(), CommitLogError> {
        self.log.forget_checkpoints(oldest).await
    }
}

/// A device with a folder of its own.
struct TestDevice {
    folder: TempDir,
    engine: Engine,
    log: Arc<Closing>,
}

/// A workspace whose devices share a store, a clock and dice.
struct Room {
    store: TempDir,
    clock: Arc<Wound>,
    dice: Arc<Counting>,
    devices: u8,
}

fn now<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    work.now_or_never().expect("nothing to wait for")
}

/// Bytes that neither compress nor repeat.
fn noise(seed: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
    bytes
}

fn path(text: &str) -> RelativePath {
    RelativePath::ROOT.join(&Name::new(text).expect("a name")).expect("a path")
}

impl Room {
    fn new() -> Self {
        Self {
            store: tempfile::tempdir().expect("a folder"),
            clock: Arc::default(),
            dice: Arc::default(),
            devices: 0,
        }
    }

    fn device(&mut self) -> TestDevice {
        let folder = tempfile::tempdir().expect("a folder");
        let mut engine = engine(folder.path(), self.store.path(), State::in_memory());
        self.devices += 1;
        engine.options.device = DeviceId::from_bytes([self.devices; 16]);
        engine.environment.clock = self.clock.clone();
        engine.environment.random = self.dice.clone();
        if self.devices == 1 {
            let store = engine.environment.store.object_store().clone();
            let genesis = engine.environment.log.genesis().clone();
            let made = SlotCommitLog::create(store, self.clock.clone(), genesis).now_or_never();
            made.expect("nothing to wait for").expect("made");
        }
        let (log, is_closed) = (engine.environment.log.clone(), AtomicBool::new(false));
        let log = Arc::new(Closing { log, is_closed, no_checkpoints: Mutex::default() });
        engine.environment.log = log.clone();
        TestDevice { folder, engine, log }
    }

    fn wait(&self, seconds: i64) {
        self.clock.0.fetch_add(seconds, Ordering::Relaxed);
    }

    /// What a device that comes new finds in log and store.
    fn found(&mut self, names: &[&str]) -> Vec<Option<Vec<u8>>> {
        let mut device = self.device();
        let report = device.sync();
        assert!(report.problems.is_empty(), "{report:?}");
        names.iter().map(|name| device.read(name)).collect()
    }

    fn packs(&self) -> usize {
        count(&self.store.path().join("packs"))
    }
}

fn count(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let each = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("listed").path();
        if path.is_dir() { count(&path) } else { 1 }
    };
    entries.map(each).sum()
}

impl TestDevice {
    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path().join(name), bytes).expect("written");
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.folder.path().join(name)).expect("removed");
    }

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.folder.path().join(name)).ok()
    }

    fn sync(&mut self) -> SyncReport {
        now(self.engine.sync(Scope::Everything)).expect("syncs")
    }

    fn policy(&mut self, text: &str) {
        let policy: VersionPolicy = text.parse().expect("a policy");
        let (base, _) = self.engine.version_policy().expect("read");
        now(self.engine.propose_version_policy(base, &policy)).expect("set");
    }

    fn cleanup(&mut self) -> CleanupReport {
        now(self.engine.cleanup(&CleanupOptions::default())).expect("cleans up")
    }

    fn version(&mut self, name: &str, seq: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        now(self.engine.read_version(&path(name), Some(At::Seq(seq)), &mut bytes))?;
        Ok(bytes)
    }
}

const LENGTH: usize = 200_000;

#[test]
fn old_version_goes_and_everything_else_stays() {
    let mut room = Room::new();
    let (mut one, mut other) = (room.device(), room.device());
    one.write("report", &noise(1, LENGTH));
    one.write("photo", &noise(9, LENGTH));
    let first = one.sync().seq;
    room.wait(5);
    one.write("report", &noise(2, LENGTH + 1));
    let second = one.sync().seq;
    other.sync();
    let packs = room.packs();
    assert_eq!(one.cleanup().dropped_versions, 0, "it is young");
    one.policy("deleted:30d");
    let report = one.cleanup();
    assert_eq!((report.dropped_versions, report.kept_versions), (1, 2), "{report:?}");
    assert_eq!(report.left, 0);
    assert!(room.packs() < packs + usize::try_from(report.repacked).expect("few"));
    assert_eq!(one.version("report", second).expect("kept"), noise(2, LENGTH + 1));
    other.sync();
    for device in [&mut one, &mut other] {
        let gone = device.version("report", first);
        let fence = report.fence.expect("something was removed");
        assert!(
            matches!(&gone, Err(SyncError::VersionDropped { seq, fence: by, .. })
                if *seq == first && *by == fence),
            "{gone:?}"
        );
        let listed = now(device.engine.log(&path("report"))).expect("listed");
        let dropped: Vec<bool> = listed.iter().map(|version| version.dropped.is_some()).collect();
        assert_eq!(dropped, [false, true]);
    }
    let found = room.found(&["report", "photo"]);
    assert_eq!(found, [Some(noise(2, LENGTH + 1)), Some(noise(9, LENGTH))]);
    let again = one.cleanup();
    assert_eq!((again.dropped_versions, again.packs, again.fence), (0, 0, None), "{again:?}");
}

#[test]
fn dry_run_says_what_a_run_does() {
    let mut room = Room::new();
    let mut one = room.device();
    one.write("report", &noise(1, LENGTH));
    one.sync();
    one.write("report", &noise(2, LENGTH + 1));
    one.sync();
    one.policy("deleted:30d");
    let (packs, head) = (room.packs(), one.engine.head().expect("a head"));
    let dry = CleanupOptions { dry_run: true, ..CleanupOptions::default() };
    let told = now(one.engine.cleanup(&dry)).expect("looks");
    assert_eq!((room.packs(), one.engine.head().expect("a head")), (packs, head));
    let done = one.cleanup();
    assert_eq!((told.dropped_versions, told.packs), (done.dropped_versions, done.packs));
    assert_eq!((told.length, told.fence), (done.length, None));
    assert!(done.length > 0);
}

#[test]
fn upload_that_was_under_way_is_made_anew() {
    let mut room = Room::new();
    let (mut one, mut slow) = (room.device(), room.device());
    one.write("first", &noise(1, LENGTH));
    one.sync();
    slow.sync();
    // The pack is stored, and then the log does not answer.
    slow.write("late", &noise(3, LENGTH));
    slow.log.is_closed.store(true, Ordering::Relaxed);
    now(slow.engine.sync(Scope::Everything)).expect_err("the log is closed");
    let stored = room.packs();
    let report = one.cleanup();
    assert_eq!((report.packs, room.packs()), (1, stored - 1), "{report:?}");
    slow.log.is_closed.store(false, Ordering::Relaxed);
    let report = slow.sync();
    assert!(report.problems.is_empty(), "{report:?}");
    assert_eq!(room.found(&["first", "late"]), [Some(noise(1, LENGTH)), Some(noise(3, LENGTH))]);
}

#[test]
fn commit_that_comes_behind_the_fence_counts_for_nothing_and_is_made_anew() {
    let mut room = Room::new();
    let (mut one, mut slow) = (room.device(), room.device());
    one.write("first", &noise(1, LENGTH));
    one.sync();
    slow.sync();
    slow.write("late", &noise(3, LENGTH));
    slow.log.is_closed.store(true, Ordering::Relaxed);
    now(slow.engine.sync(Scope::Everything)).expect_err("the log is closed");
    let late = slow.engine.state.outbox().expect("read").remove(0);
    assert!(one.cleanup().fence.is_some());
    // The request was on its way all the time, and arrives now.
    now(async { Ok(slow.log.log.commit(&late).await?) }).expect("taken");
    one.sync();
    assert_eq!(one.read("late"), None);
    slow.log.is_closed.store(false, Ordering::Relaxed);
    assert!(slow.sync().problems.is_empty());
    one.sync();
    assert_eq!(one.read("late"), Some(noise(3, LENGTH)));
    assert_eq!(room.found(&["late"]), [Some(noise(3, LENGTH))]);
}

#[test]
fn device_that_was_away_does_not_rest_on_what_is_gone() {
    let mut room = Room::new();
    let (mut one, mut away) = (room.device(), room.device());
    for (name, seed) in [("old", 1), ("kept", 2), ("moved", 4)] {
        one.write(name, &noise(seed, LENGTH));
        one.sync();
    }
    away.sync();
    one.policy("deleted:0s");
    // Deleted, cleaned up, and that twice.
    for name in ["old", "moved"] {
        one.remove(name);
        one.sync();
        room.wait(10);
        assert!(one.cleanup().packs > 0, "{name}");
    }
    // Meanwhile, off line: a copy of what is deleted elsewhere, and a rename of what is.
    away.write("copy", &noise(1, LENGTH));
    std::fs::rename(away.folder.path().join("moved"), away.folder.path().join("renamed"))
        .expect("renamed");
    now(away.engine.checkin()).expect("recorded");
    let report = away.sync();
    assert!(report.problems.is_empty(), "{report:?}");
    let found = room.found(&["copy", "renamed", "kept", "old"]);
    assert_eq!(
        found,
        [Some(noise(1, LENGTH)), Some(noise(4, LENGTH)), Some(noise(2, LENGTH)), None]
    );
    one.sync();
    assert_eq!(one.read("renamed"), Some(noise(4, LENGTH)));
}

#[test]
fn sparse_pack_is_written_anew_and_read_back() {
    let mut room = Room::new();
    let mut one = room.device();
    for seed in 0..10 {
        one.write(&format!("file{seed}"), &noise(seed, LENGTH));
    }
    one.sync();
    assert_eq!(room.packs(), 1);
    (3..10).for_each(|seed| one.remove(&format!("file{seed}")));
    one.sync();
    room.wait(10);
    one.policy("deleted:0s");
    let report = one.cleanup();
    assert_eq!((report.repacked, report.packs, room.packs()), (1, 1, 1), "{report:?}");
    assert!(report.written_length < report.length / 2, "{report:?}");
    let names = ["file0", "file1", "file2", "file3"];
    let expected = [0, 1, 2].map(|seed| Some(noise(seed, LENGTH)));
    assert_eq!(room.found(&names)[..3], expected);
    // The same again makes another pack: the name of the old one never comes back.
    for seed in 3..10 {
        one.write(&format!("file{seed}"), &noise(seed, LENGTH));
    }
    one.sync();
    assert_eq!(room.found(&names)[3], Some(noise(3, LENGTH)));
}

#[test]
fn removal_that_was_cut_off_is_taken_up_by_another_device() {
    let mut room = Room::new();
    let (mut one, mut other) = (room.device(), room.device());
    one.write("old", &noise(1, LENGTH));
    one.sync();
    one.remove("old");
    one.sync();
    room.wait(10);
    one.policy("deleted:0s");
    let survey = now(one.engine.survey(&CleanupOptions::default(), &Verified::default()));
    let survey = survey.expect("looks");
    assert!(now(one.engine.propose_fence(&survey)).expect("proposed").is_some());
    assert_eq!(room.packs(), 1, "it was cut off before anything was removed");
    let report = other.cleanup();
    assert_eq!((report.fence, room.packs()), (None, 0), "{report:?}");
}

#[test]
fn fence_that_somebody_overtakes_removes_nothing() {
    let mut room = Room::new();
    let (mut one, mut other) = (room.device(), room.device());
    one.write("old", &noise(1, LENGTH));
    one.sync();
    other.sync();
    one.remove("old");
    one.sync();
    room.wait(10);
    one.policy("deleted:0s");
    let survey = now(one.engine.survey(&CleanupOptions::default(), &Verified::default()));
    let survey = survey.expect("looks");
    assert_eq!(survey.condemned.len(), 1);
    // At this moment somebody, who has not heard of the deletion, proposes a copy that rests on the same pack.
    other.write("copy", &noise(1, LENGTH));
    other.sync();
    assert_eq!(now(one.engine.propose_fence(&survey)).expect("proposed"), None);
    assert_eq!(room.packs(), 1);
    assert_eq!(one.cleanup().packs, 0);
    assert_eq!(room.found(&["copy"]), [Some(noise(1, LENGTH))]);
}

#[test]
fn clock_far_ahead_removes_nothing_unless_somebody_trusts_it() {
    let mut room = Room::new();
    let mut one = room.device();
    one.write("report", &noise(1, LENGTH));
    one.sync();
    one.write("report", &noise(2, LENGTH + 1));
    one.sync();
    room.wait(10 * 365 * 86_400);
    let refused = now(one.engine.cleanup(&CleanupOptions::default()));
    assert!(matches!(refused, Err(SyncError::ClockAhead { days: 3650 })), "{refused:?}");
    let trusted = CleanupOptions { is_clock_trusted: true, ..CleanupOptions::default() };
    assert_eq!(now(one.engine.cleanup(&trusted)).expect("cleans up").dropped_versions, 1);
}

#[test]
fn lost_pack_keeps_what_nobody_names() {
    let mut room = Room::new();
    let mut one = room.device();
    one.write("kept", &noise(1, LENGTH));
    one.sync();
    let packs = now(one.engine.stored_packs()).expect("listed");
    now(async { Ok(one.engine.environment.store.remove_pack(packs[0].id).await?) })
        .expect("removed");
    // A new device cannot read the index, so it does not know what the others hold.
    let mut other = room.device();
    other.write("stranger", &noise(5, LENGTH));
    other.log.is_closed.store(true, Ordering::Relaxed);
    now(other.engine.sync(Scope::Everything)).expect_err("the log is closed");
    assert_eq!(room.packs(), 1);
    let mut third = room.device();
    assert_eq!(third.cleanup().packs, 0);
    assert_eq!(room.packs(), 1);
}
