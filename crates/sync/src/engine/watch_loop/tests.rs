//! What a watch asks of its stores while nothing happens; an hour passes, and nobody waits for it.

#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use commit_log::CommitLog;
use commit_log::serverless::group::{ConstantMembership, Group, NamedStore};
use commit_log::serverless::identity::Identified;
use commit_log::serverless::slot_log::{Means, SlotCommitLog};
use content::Transform;
use futures_util::future::ready;
use futures_util::stream::{once, unfold};
use model::checkpoint::Checkpoint;
use model::{
    Clock, Commit, DeviceId, Genesis, Head, Name, NodeId, NodeKind, RelativePath, StoreId,
    TreeStore,
};
use parking_lot::Mutex;
use storage::file_store::Opening;
use storage::layers::{Answer, Gate, Marked, Operation};
use storage::{ContentStore, ObjectKey, ObjectStore, PutMode};

use super::*;
use crate::engine::busy::LONGEST;
use crate::engine::fixture::{Counting, Leaping, genesis};
use crate::engine::{EngineOptions, Environment, MASS_DELETE_MIN};
use crate::file_system::native::NativeFileSystem;
use crate::prepare::DeltaBudget;
use crate::state::State;
use crate::workers::Workers;

/// Counts what a store is asked.
#[derive(Debug)]
struct Counted {
    store: Arc<dyn ObjectStore>,
    calls: Mutex<BTreeMap<Operation, u64>>,
}

impl Gate for Counted {
    fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    async fn pass<A: Send>(
        &self,
        operation: Operation,
        _: usize,
        answer: impl Answer<A>,
    ) -> storage::Result<A> {
        *self.calls.lock().entry(operation).or_default() += 1;
        answer.await
    }
}

/// A device over stores as the program opens them.
struct Device {
    engine: Engine,
    log: Arc<SlotCommitLog>,
    clock: Arc<Leaping>,
    room: tempfile::TempDir,
}

impl Device {
    /// Makes a workspace with one file in it.
    async fn new(stores: &[Arc<dyn ObjectStore>]) -> Self {
        let room = tempfile::tempdir().expect("a folder");
        std::fs::write(room.path().join("note"), "to be kept").expect("written");
        let clock = Arc::<Leaping>::default();
        let random = Arc::<Counting>::default();
        let mut named = Vec::new();
        for (number, store) in (0..).zip(stores) {
            let marked = Arc::new(Marked::new(store.clone(), Opening::CreateIfMissing));
            let id = StoreId::from_bytes([number; 16]);
            let text = Bytes::from(id.to_string());
            marked.put(&ObjectKey::store_id(), text, PutMode::Overwrite).await.expect("put");
            let store = Arc::new(Identified::new(marked, id, clock.clone()));
            named.push(NamedStore { name: format!("s{number}"), store });
        }
        let packs = named[0].store.clone();
        let membership = Arc::new(ConstantMembership::new(Group::new(named)));
        let means = Means { clock: clock.clone(), random: random.clone() };
        let log = SlotCommitLog::create_over(membership, means, genesis()).await.expect("made");
        let log = Arc::new(log);
        let environment = Environment {
            file_system: Arc::new(NativeFileSystem::open(room.path()).expect("opens")),
            log: log.clone(),
            store: Arc::new(ContentStore::new(packs)),
            clock: clock.clone(),
            random,
            workers: Workers::inline(),
        };
        let options = EngineOptions {
            device: DeviceId::from_bytes([2; 16]),
            device_name: "laptop".to_owned(),
            allow_mass_delete: false,
            transform: Transform::Zstd { level: 1 },
            deltas: DeltaBudget::default(),
            keys: None,
        };
        let mut engine = Engine::open(environment, State::in_memory(), options).expect("opens");
        engine.sync(Scope::Everything).await.expect("syncs");
        assert_eq!(engine.head().expect("read").seq, 1);
        // A majority was enough to go on; what the other stores still get belongs to what was done.
        log.settle().await;
        Self { engine, log, clock, room }
    }
}

fn memory() -> Arc<dyn ObjectStore> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    storage::open(&format!("memory:watched {number}")).expect("opens")
}

/// Watches a quiet workspace over three stores for an hour. Returns what each was asked meanwhile, below all layers.
async fn quiet_hour() -> Vec<BTreeMap<Operation, u64>> {
    let counted: Vec<Arc<Counted>> =
        (0..3).map(|_| Arc::new(Counted { store: memory(), calls: Mutex::default() })).collect();
    let stores: Vec<Arc<dyn ObjectStore>> =
        counted.iter().map(|store| Arc::clone(store) as Arc<dyn ObjectStore>).collect();
    let mut device = Device::new(&stores).await;
    for store in &counted {
        store.calls.lock().clear();
    }
    let hour = device.clock.sleep(Duration::from_secs(3600));
    let end = once(hour).filter_map(|()| ready(None)).boxed();
    device.engine.watch(WatchOptions::default(), end, |_| {}).await.expect("watches");
    counted.iter().map(|store| store.calls.lock().clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn quiet_hour_costs_each_store_less_than_a_hundred_requests_and_writes_nothing() {
    let hour = quiet_hour().await;
    let reads = [Operation::Look, Operation::Get, Operation::Size, Operation::List];
    for calls in &hour {
        assert!(calls.keys().all(|call| reads.contains(call)), "it writes: {hour:?}");
    }
    let each: Vec<u64> = hour.iter().map(|calls| calls.values().sum()).collect();
    // The figures are in docs/measurements.md; more is a step back.
    assert!(each.iter().all(|calls| (1..100).contains(calls)), "{hour:?}");
    assert!(each.iter().sum::<u64>() < 250, "{hour:?}");
}

/// A store that answers one question at a time, and slowly.
#[derive(Debug)]
struct OneByOne {
    store: Arc<dyn ObjectStore>,
    turn: tokio::sync::Mutex<()>,
}

impl Gate for OneByOne {
    fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    async fn pass<A: Send>(
        &self,
        _: Operation,
        _: usize,
        answer: impl Answer<A>,
    ) -> storage::Result<A> {
        let _turn = self.turn.lock().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        answer.await
    }
}

#[tokio::test(start_paused = true)]
async fn look_for_news_that_is_under_way_takes_the_only_place_from_nobody() {
    let store = OneByOne { store: memory(), turn: tokio::sync::Mutex::default() };
    let mut device = Device::new(&[Arc::new(store)]).await;
    let (clock, root) = (device.clock.clone(), device.room.path().to_owned());
    let user = unfold(0, move |number| {
        let (clock, file) = (clock.clone(), root.join(format!("file {number}")));
        async move {
            clock.sleep(Duration::from_millis(370)).await;
            std::fs::write(file, "written while the device looks for news").expect("written");
            (number < 50).then_some((Scope::Everything, number + 1))
        }
    });
    let watch = device.engine.watch(WatchOptions::default(), user.boxed(), |_| {});
    let hour = Duration::from_secs(3600);
    tokio::time::timeout(hour, watch).await.expect("nobody waits for ever").expect("watches");
    assert!(device.log.head().await.expect("a head").seq > 10);
}

/// A watch looks only where something happened, and keeps what it knows of the rest.
#[tokio::test(start_paused = true)]
async fn many_small_deletions_are_not_taken_for_a_large_one() {
    let mut device = Device::new(&[memory()]).await;
    let (folder, many) = (device.room.path().to_owned(), 2 * MASS_DELETE_MIN);
    let path = |number: u64| folder.join(format!("file {number}"));
    let write = |numbers: std::ops::Range<u64>| {
        numbers.for_each(|number| std::fs::write(path(number), "content").expect("written"));
    };
    let remove = |numbers: std::ops::Range<u64>| {
        numbers.for_each(|number| std::fs::remove_file(path(number)).expect("removed"));
    };
    let root = || Scope::Directories([RelativePath::ROOT].into());
    write(0..many);
    device.engine.sync(Scope::Everything).await.expect("syncs");
    for first in (0..many).step_by(10) {
        remove(first..first + 10);
        device.engine.sync(root()).await.expect("ten are no large deletion");
    }

    write(0..many);
    device.engine.sync(root()).await.expect("syncs");
    remove(0..many);
    let stopped = device.engine.sync(root()).await;
    assert!(
        matches!(stopped, Err(SyncError::MassDelete { deleted, .. }) if deleted == many),
        "{stopped:?}"
    );
}

/// A log that writes down when it was told that the device is in sync.
#[derive(Debug)]
struct Told {
    log: Arc<SlotCommitLog>,
    clock: Arc<Leaping>,
    at: Mutex<Vec<u64>>,
}

#[async_trait]
impl CommitLog for Told {
    fn genesis(&self) -> &Genesis {
        self.log.genesis()
    }

    async fn commit(&self, commit: &Commit) -> Result<Head, CommitLogError> {
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
        self.log.publish_checkpoint(checkpoint).await
    }

    /// Whoever tells it hears nothing, as where the server has gone.
    async fn tell_in_sync(&self) -> Result<(), CommitLogError> {
        self.at.lock().push(self.clock.elapsed().as_secs());
        Err(CommitLogError::Unreachable {
            place: "here".to_owned(),
            reason: "it is gone".to_owned(),
        })
    }
}

impl Device {
    /// Lets a log hear from now on when the device says that it is in sync.
    fn heard(&mut self) -> Arc<Told> {
        let (log, clock) = (self.log.clone(), self.clock.clone());
        let told = Arc::new(Told { log, clock, at: Mutex::default() });
        self.engine.environment.log = told.clone();
        // As after a start.
        self.engine.told_in_sync_at = None;
        told
    }

    /// Watches for so many seconds, in each of which somebody may do something.
    async fn watch(&mut self, seconds: u64, user: impl Fn(u64) -> Option<Scope> + Send + 'static) {
        let clock = self.clock.clone();
        let hints = unfold(0, move |second| {
            let sleep = clock.sleep(Duration::from_secs(1));
            async move {
                sleep.await;
                (second < seconds).then_some((second, second + 1))
            }
        });
        let hints = hints.filter_map(move |second| ready(user(second))).boxed();
        self.engine.watch(WatchOptions::default(), hints, |_| {}).await.expect("watches");
    }
}

#[tokio::test(start_paused = true)]
async fn watch_says_every_five_minutes_that_it_is_in_sync_though_nobody_hears() {
    let mut device = Device::new(&[memory()]).await;
    let told = device.heard();
    let begun = device.clock.elapsed().as_secs();
    device.watch(3600, |_| None).await;
    let at = told.at.lock().clone();
    assert_eq!(at.first(), Some(&begun), "{at:?}");
    let pauses: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.len() >= 11 && pauses.iter().all(|pause| (299..=301).contains(pause)), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn busy_watch_says_once_a_minute_that_it_is_in_sync() {
    let mut device = Device::new(&[memory()]).await;
    let told = device.heard();
    let file = device.room.path().join("busy");
    device
        .watch(600, move |second| {
            std::fs::write(&file, format!("{second}")).expect("written");
            Some(Scope::Directories([RelativePath::ROOT].into()))
        })
        .await;
    let at = told.at.lock().clone();
    let pauses: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        pauses.len() >= 8
            && pauses.iter().all(|pause| (60..=60 + LONGEST.as_secs()).contains(pause)),
        "{at:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_is_not_called_in_sync_wherever_the_watch_looks() {
    let mut device = Device::new(&[memory()]).await;
    let socket = std::os::unix::net::UnixListener::bind(device.room.path().join("socket"));
    let too_deep = device.room.path().join("d/".repeat(model::path::PATH_DEPTH_MAX + 1));
    std::fs::create_dir_all(&too_deep).expect("made");
    let told = device.heard();
    let elsewhere = device.room.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("made");
    let file = elsewhere.join("file");
    device
        .watch(900, move |second| {
            std::fs::write(&file, format!("{second}")).expect("written");
            let scope = RelativePath::new(b"elsewhere").expect("a path");
            (second % 100 == 50).then(|| Scope::Directories([scope].into()))
        })
        .await;
    assert_eq!(*told.at.lock(), [0_u64; 0], "there is something that nobody else has");

    std::fs::remove_dir(&too_deep).expect("removed");
    device.watch(100, |_| None).await;
    assert_eq!(told.at.lock().len(), 1, "a socket holds nothing");
    drop(socket);
}

impl Device {
    /// Returns how long the log says that a file of the root is.
    fn length_of(&self, name: &str) -> Option<u64> {
        let name = Name::new(name).expect("a name");
        let node = self.engine.state.child(&NodeId::ROOT, &name).expect("read")?;
        match self.engine.state.node(&node).expect("read")?.record.kind {
            NodeKind::File(content) => Some(content.size),
            _ => None,
        }
    }

    async fn commits(&self) -> u64 {
        self.log.head().await.expect("a head").seq
    }
}

fn append(path: &std::path::Path, second: u64) {
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let line = blake3::hash(&second.to_le_bytes());
    std::io::Write::write_all(&mut file.expect("opens"), line.as_bytes()).expect("written");
}

#[tokio::test(start_paused = true)]
async fn file_that_grows_every_second_goes_every_few_seconds_and_whole_in_the_end() {
    let mut device = Device::new(&[memory()]).await;
    let (file, other) = (device.room.path().join("growing"), device.room.path().join("other"));
    let before = device.commits().await;
    device
        .watch(100 + LONGEST.as_secs(), move |second| {
            let is_growing = second < 100;
            if is_growing {
                append(&file, second);
            }
            // Nobody waits for it.
            if second == 50 {
                std::fs::write(&other, "of another program").expect("written");
            }
            is_growing.then(|| Scope::Directories([RelativePath::ROOT].into()))
        })
        .await;
    assert_eq!((device.length_of("growing"), device.length_of("other")), (Some(3200), Some(18)));
    let commits = device.commits().await - before;
    assert!((12..=17).contains(&commits), "{commits}");
}

#[tokio::test(start_paused = true)]
async fn file_that_waits_goes_at_once_under_another_name_and_when_somebody_asks() {
    let mut device = Device::new(&[memory()]).await;
    let (file, moved) = (device.room.path().join("log"), device.room.path().join("log.1"));
    let end = device.clock.elapsed().as_secs() + 12;
    device
        .watch(12, move |second| {
            append(&file, second);
            if second == 11 {
                std::fs::rename(&file, &moved).expect("moved");
            }
            Some(Scope::Directories([RelativePath::ROOT].into()))
        })
        .await;
    assert_eq!((device.length_of("log"), device.length_of("log.1")), (None, Some(12 * 32)));
    assert!(device.clock.elapsed().as_secs() <= end + 1);

    let file = device.room.path().join("log");
    device
        .watch(12, move |second| {
            append(&file, second);
            Some(Scope::Directories([RelativePath::ROOT].into()))
        })
        .await;
    assert!(device.length_of("log") < Some(12 * 32), "the last lines wait");
    device.engine.sync(Scope::Everything).await.expect("syncs");
    assert_eq!(device.length_of("log"), Some(12 * 32));
}

#[tokio::test(start_paused = true)]
async fn busy_files_do_not_put_off_the_look_at_everything() {
    let mut device = Device::new(&[memory()]).await;
    let root = device.room.path().to_owned();
    std::fs::create_dir(root.join("elsewhere")).expect("made");
    let clock = device.clock.clone();
    let hints = unfold(0, move |second| {
        let (sleep, root) = (clock.sleep(Duration::from_secs(1)), root.clone());
        async move {
            sleep.await;
            append(&root.join("one"), second);
            append(&root.join("other"), second);
            if second == 60 {
                std::fs::write(root.join("elsewhere/file"), "of somebody").expect("written");
            }
            // They become busy; from then on nobody hints at anything.
            let hint = (second < 6).then(|| Scope::Directories([RelativePath::ROOT].into()));
            (second < 90).then_some((hint, second + 1))
        }
    });
    let options = WatchOptions { rescan_after: Duration::from_secs(20), ..WatchOptions::default() };
    device.engine.watch(options, hints.filter_map(ready).boxed(), |_| {}).await.expect("watches");
    let child = |parent, name| {
        let name = Name::new(name).expect("a name");
        device.engine.state.child(parent, &name).expect("read")
    };
    let folder = child(&NodeId::ROOT, "elsewhere").expect("it was there");
    assert!(child(&folder, "file").is_some());
}
