//! A watch that reads what is stored while days pass; nobody waits for them.

#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use commit_log::serverless::slot_log::SlotCommitLog;
use futures_util::StreamExt;
use futures_util::future::ready;
use futures_util::stream::once;
use model::{Clock, PoolConfig, Random, Redundancy, StoreId, StoreRecord};
use parking_lot::Mutex;
use storage::layers::Lazy;
use storage::pool::{Pool, PoolOptions};
use storage::{ObjectStore, PutMode, StorageError};

use super::*;
use crate::engine::WatchOptions;
use crate::engine::fixture::{Counting, Leaping, engine_over, genesis};
use crate::scan::Scope;
use crate::state::State;

const HOUR: Duration = Duration::from_secs(3600);

/// Three stores, two copies of everything, and devices.
struct World {
    room: tempfile::TempDir,
    clock: Arc<Leaping>,
    random: Arc<Counting>,
    stores: Vec<Arc<dyn ObjectStore>>,
    log: Arc<dyn ObjectStore>,
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(Leaping::default());
        let room = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            storage::open(&format!("memory:{}/{name}", room.path().display())).unwrap()
        };
        let log = open("log");
        SlotCommitLog::create(log.clone(), clock.clone(), genesis()).await.unwrap();
        let stores = (0..3).map(|number| open(&number.to_string())).collect();
        Self { room, clock, random: Arc::default(), stores, log }
    }

    fn pool(&self) -> Pool {
        let record = |number: u8| {
            let id = StoreId::from_bytes([number + 1; 16]);
            StoreRecord::new(id, format!("s{number}"), format!("memory:{number}"), 1)
        };
        let records: Vec<_> = (0..3).map(record).collect();
        let opened = records.iter().map(|record| record.id).zip(self.stores.clone()).collect();
        let config = PoolConfig::new(Redundancy::Replicas(2), records).unwrap();
        Pool::new(&config, opened, self.clock.clone(), PoolOptions::default())
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    fn device(&self, name: &str, state: State) -> Engine {
        std::fs::create_dir_all(self.folder(name)).unwrap();
        let mut engine = engine_over(&self.folder(name), Arc::new(self.pool()), state);
        let log = SlotCommitLog::with_genesis(self.log.clone(), self.clock.clone(), genesis());
        engine.environment.log = Arc::new(log);
        engine.environment.clock = self.clock.clone();
        engine.environment.random = self.random.clone();
        engine
    }

    /// Watches for a while. Returns what was found in the background.
    async fn watch(&self, engine: &mut Engine, time: Duration) -> Vec<Event> {
        let options = ScrubOptions { period: HOUR * 24, step: HOUR, ..ScrubOptions::default() };
        engine.scrub_with(Scrubber::new(self.pool(), options));
        let found = Arc::new(Mutex::new(Vec::new()));
        let seen = found.clone();
        engine.observe(Arc::new(move |event| {
            if matches!(event, Event::Scrubbed { .. }) {
                seen.lock().push(event);
            }
        }));
        let end = once(self.clock.sleep(time)).filter_map(|()| ready(None::<Scope>)).boxed();
        let watch = WatchOptions { rescan_after: HOUR, ..WatchOptions::default() };
        engine.watch(watch, end, |_| {}).await.unwrap();
        std::mem::take(&mut *found.lock())
    }

    /// The packs in a store.
    async fn packs(&self, store: usize) -> Vec<ObjectKey> {
        let listed = self.stores[store].list(ObjectKey::PACKS, None, 1000).await.unwrap();
        listed.into_iter().map(|entry| entry.key).collect()
    }

    async fn flip(&self, store: usize, key: &ObjectKey) {
        let mut bytes = self.stores[store].get(key).await.unwrap().unwrap().to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        self.stores[store].put(key, bytes.into(), PutMode::Overwrite).await.unwrap();
    }

    /// Writes files, of which each makes a pack of its own.
    async fn fill(&self, engine: &mut Engine, name: &str, count: u64) {
        for number in 0..count {
            let mut bytes = vec![0; 100_000];
            self.random.fill(&mut bytes);
            std::fs::write(self.folder(name).join(format!("file{number}")), bytes).unwrap();
            engine.sync(Scope::Everything).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_in_a_store_is_found_within_the_period_and_mended_from_another() {
    let world = World::new().await;
    let mut engine = world.device("one", State::in_memory());
    world.fill(&mut engine, "one", 12).await;
    let damaged = world.packs(0).await;
    assert!(damaged.len() > 3);
    world.flip(0, &damaged[0]).await;
    let lost = world.packs(1).await.pop().unwrap();
    world.stores[1].delete(&lost).await.unwrap();

    // Half of the time: half of the packs were read.
    let mut events = world.watch(&mut engine, HOUR * 12).await;
    let status = engine.scrub_status().unwrap().unwrap();
    assert!((5..9).contains(&status.position.objects), "{status:?}");
    assert_eq!((status.packs, status.position.ended), (12, None));

    // A device that starts anew goes on where it was.
    let mut engine = world.device("one", engine.into_state());
    events.extend(world.watch(&mut engine, HOUR * 15).await);
    let status = engine.scrub_status().unwrap().unwrap();
    assert!(status.position.ended.is_some(), "{status:?}");
    assert_eq!((status.position.mended, status.position.lost), (2, 0));
    let mended = |event: &Event| match event {
        Event::Scrubbed { mended, put_back: 0, lost: 0 } => *mended,
        other => panic!("{other:?}"),
    };
    assert_eq!(events.iter().map(mended).sum::<u64>(), 2);
    let whole = world.stores[0].get(&damaged[0]).await.unwrap().unwrap();
    assert_eq!(Some(*blake3::hash(&whole).as_bytes()), damaged[0].content_hash());
    assert!(world.stores[1].get(&lost).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn store_that_lost_everything_has_it_again_within_a_quarter_of_an_hour() {
    let mut world = World::new().await;
    let mut engine = world.device("one", State::in_memory());
    world.fill(&mut engine, "one", 6).await;
    let had = world.packs(1).await;
    assert!(had.len() > 1);
    world.stores[1] = storage::open("memory:anew").unwrap();
    let events = world.watch(&mut engine, HOUR / 4).await;
    assert_eq!(world.packs(1).await, had);
    let total = |sum: u64, event: &Event| match event {
        Event::Scrubbed { mended, put_back: 0, lost: 0 } => sum + mended,
        other => panic!("{other:?}"),
    };
    assert_eq!(events.iter().fold(0, total), had.len() as u64);
    // Once more in the same day it is not looked at; the next day it is.
    let mut engine = world.device("one", engine.into_state());
    let gone = had[0].clone();
    let store = world.stores[1].clone();
    let later = async {
        world.clock.sleep(HOUR).await;
        store.delete(&gone).await.unwrap();
    };
    futures_util::future::join(world.watch(&mut engine, HOUR * 25), later).await;
    assert!(world.stores[1].get(&gone).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn what_no_store_has_any_more_comes_back_from_the_folder() {
    let world = World::new().await;
    let mut engine = world.device("one", State::in_memory());
    world.fill(&mut engine, "one", 3).await;
    let gone = world.packs(0).await.remove(0);
    for store in &world.stores {
        store.delete(&gone).await.unwrap();
    }
    let events = world.watch(&mut engine, HOUR * 27).await;
    let [Event::Scrubbed { mended: 0, put_back, lost: 0 }] = &events[..] else {
        panic!("{events:?}")
    };
    assert!(*put_back > 0);
    let mut other = world.device("other", State::in_memory());
    assert_eq!(other.sync(Scope::Everything).await.unwrap().problems, []);
    assert_eq!(std::fs::read_dir(world.folder("other")).unwrap().count(), 4, "files and .syncline");
}

#[tokio::test(start_paused = true)]
async fn store_that_is_away_is_not_taken_for_damage() {
    let mut world = World::new().await;
    let mut engine = world.device("one", State::in_memory());
    world.fill(&mut engine, "one", 3).await;
    world.stores[1] = Arc::new(Lazy::new("a store".to_owned(), || {
        let (store, detail) = ("a store".to_owned(), "it is away".to_owned());
        Err(StorageError::NotReachable { store, detail })
    }));
    let events = world.watch(&mut engine, HOUR * 30).await;
    let is_loss = |event: &&Event| !matches!(event, Event::Scrubbed { put_back: 0, lost: 0, .. });
    assert_eq!(events.iter().find(is_loss), None);
    assert!(engine.scrub_status().unwrap().unwrap().position.ended.is_some());
}
