//! A pool over memory stores that can be made to fail in every way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::ids::StoreId;
use model::pool::{PoolConfig, Redundancy, StoreRecord};
use model::{Clock, PackId, Timestamp};
use parking_lot::Mutex;
use storage::object_store::list_all;
use storage::opendal_store::OpendalStore;
use storage::pool::piece::Piece;
use storage::pool::{Pool, PoolOptions};
use storage::{ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome, Result, StorageError};

/// The time of the runtime, which tests stop.
#[derive(Debug)]
pub(crate) struct RuntimeClock(tokio::time::Instant);

impl RuntimeClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(tokio::time::Instant::now()))
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp { seconds: 1_800_000_000, nanoseconds: 0 }
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// How a store behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Fine,
    /// Fails at once.
    Gone,
    /// Never answers.
    Silent,
    /// Takes so long for every answer.
    Slow(Duration),
    /// Moves so many bytes a second, for all readers together.
    Narrow(u64),
    /// Reads, but writes nothing for want of space.
    Full,
    /// Reads, but writes nothing.
    ReadOnly,
    /// Fails every other call, before or after it happened.
    Flaky,
    /// Makes nothing durable that was deferred.
    Forgetful,
    /// Lists what it had before the last few puts.
    OldLists,
}

/// A line to one store or several: bodies that are on it share it evenly.
#[derive(Debug)]
pub(crate) struct Line {
    rate: u64,
    free_at: Mutex<Option<tokio::time::Instant>>,
}

/// How many bytes of a body go before those of another one.
const TURN: usize = 16 << 10;

impl Line {
    pub(crate) fn new(rate: u64) -> Arc<Self> {
        Arc::new(Self { rate, free_at: Mutex::default() })
    }

    /// Waits until so many bytes have gone through.
    async fn pass(&self, bytes: usize) {
        for start in (0..bytes).step_by(TURN) {
            let part = TURN.min(bytes - start);
            let until = {
                let mut free_at = self.free_at.lock();
                let now = tokio::time::Instant::now();
                let time = Duration::from_secs_f64(part as f64 / self.rate as f64);
                let until = free_at.unwrap_or(now).max(now) + time;
                *free_at = Some(until);
                until
            };
            tokio::time::sleep_until(until).await;
        }
    }
}

/// A store with moods, which counts what it is asked.
#[derive(Debug)]
pub(crate) struct Moody {
    pub(crate) store: Arc<OpendalStore>,
    mood: Mutex<Mood>,
    calls: Mutex<BTreeMap<&'static str, u64>>,
    deferred: Mutex<Vec<(ObjectKey, Bytes)>>,
    recent: Mutex<VecDeque<ObjectKey>>,
    /// Until when the line is taken.
    free_at: Mutex<Option<tokio::time::Instant>>,
    /// What all that is written goes through.
    up: Mutex<Option<Arc<Line>>>,
}

/// How many puts an old list does not know of.
const RECENT: usize = 4;

impl Moody {
    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock() = mood;
    }

    /// How often the store was asked since the last time.
    pub(crate) fn take_calls(&self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.calls.lock())
    }

    fn gone<T>(&self) -> Result<T> {
        let (store, detail) = (self.describe(), "it is gone".to_owned());
        Err(StorageError::NotReachable { store, detail })
    }

    /// Behaves; returns whether the answer is lost after the call has happened.
    async fn behave(&self, operation: &'static str) -> Result<bool> {
        let number = {
            let mut calls = self.calls.lock();
            *calls.entry(operation).or_default() += 1;
            calls.values().sum::<u64>()
        };
        let is_write = matches!(operation, "put" | "put_deferred" | "sync" | "delete");
        let mood = *self.mood.lock();
        match mood {
            Mood::Gone => self.gone(),
            Mood::Silent => std::future::pending().await,
            Mood::Slow(duration) => {
                tokio::time::sleep(duration).await;
                Ok(false)
            }
            Mood::Full if is_write && operation != "delete" => {
                Err(StorageError::NoSpace { store: self.describe() })
            }
            Mood::ReadOnly if is_write => Err(StorageError::ReadOnly { store: self.describe() }),
            Mood::Flaky if number % 4 == 0 => self.gone(),
            Mood::Flaky => Ok(number % 4 == 2),
            _ => Ok(false),
        }
    }

    /// Waits until so many bytes have gone through the line.
    async fn transfer(&self, bytes: usize) {
        let Mood::Narrow(rate) = *self.mood.lock() else { return };
        let until = {
            let mut free_at = self.free_at.lock();
            let now = tokio::time::Instant::now();
            let until = free_at.unwrap_or(now).max(now)
                + Duration::from_secs_f64(bytes as f64 / rate as f64);
            *free_at = Some(until);
            until
        };
        tokio::time::sleep_until(until).await;
    }

    /// Waits until so many bytes have been sent to it.
    async fn take(&self, bytes: usize) {
        let up = self.up.lock().clone();
        if let Some(up) = up {
            up.pass(bytes).await;
        }
    }

    fn end<T>(&self, is_lost: bool, value: T) -> Result<T> {
        if is_lost { self.gone() } else { Ok(value) }
    }
}

#[async_trait]
impl ObjectStore for Moody {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let is_lost = self.behave("put").await?;
        self.take(bytes.len()).await;
        {
            let mut recent = self.recent.lock();
            recent.push_back(key.clone());
            if recent.len() > RECENT {
                recent.pop_front();
            }
        }
        let outcome = self.store.put(key, bytes, mode).await?;
        self.end(is_lost, outcome)
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        let is_lost = self.behave("put_deferred").await?;
        self.take(bytes.len()).await;
        self.deferred.lock().push((key.clone(), bytes));
        self.end(is_lost, ())
    }

    async fn sync(&self) -> Result<()> {
        let is_lost = self.behave("sync").await?;
        let deferred = std::mem::take(&mut *self.deferred.lock());
        if *self.mood.lock() == Mood::Forgetful {
            let detail = "it forgets".to_owned();
            return Err(StorageError::NotDurable { store: self.describe(), detail });
        }
        for (key, bytes) in deferred {
            self.store.put(&key, bytes, PutMode::Overwrite).await?;
        }
        self.end(is_lost, ())
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        let is_lost = self.behave("get").await?;
        let found = self.store.get(key).await?;
        self.transfer(found.as_ref().map_or(0, Bytes::len)).await;
        self.end(is_lost, found)
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        let is_lost = self.behave("get_range").await?;
        let found = self.store.get_range(key, range).await?;
        self.end(is_lost, found)
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        let is_lost = self.behave("get_range").await?;
        let found = self.store.get_tail(key, length).await?;
        self.end(is_lost, found)
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        let is_lost = self.behave("size").await?;
        let found = self.store.size(key).await?;
        self.end(is_lost, found)
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let is_lost = self.behave("list").await?;
        let mut found = self.store.list(prefix, start_after, limit + RECENT).await?;
        if *self.mood.lock() == Mood::OldLists {
            let recent = self.recent.lock();
            found.retain(|entry| !recent.contains(&entry.key));
        }
        found.truncate(limit);
        self.end(is_lost, found)
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        let is_lost = self.behave("delete").await?;
        self.store.delete(key).await?;
        self.end(is_lost, ())
    }
}

/// Stores, and a configuration of them.
pub(crate) struct World {
    pub(crate) config: PoolConfig,
    pub(crate) stores: Vec<Arc<Moody>>,
    pub(crate) clock: Arc<RuntimeClock>,
}

pub(crate) const TWO: Redundancy = Redundancy::Replicas(2);
pub(crate) const THREE_OF_FIVE: Redundancy = Redundancy::Erasure { data: 3, total: 5 };

impl World {
    pub(crate) fn new(redundancy: Redundancy, stores: u8) -> Self {
        let records = (0..stores).map(|number| {
            let id = StoreId::from_bytes([number; 16]);
            StoreRecord::new(id, format!("s{number}"), format!("memory:s{number}"), 10)
        });
        let config = PoolConfig::new(redundancy, records.collect()).unwrap();
        let stores = (0..stores).map(|number| {
            Arc::new(Moody {
                store: Arc::new(OpendalStore::memory(&format!("s{number}"))),
                mood: Mutex::new(Mood::Fine),
                calls: Mutex::default(),
                deferred: Mutex::default(),
                recent: Mutex::default(),
                free_at: Mutex::default(),
                up: Mutex::default(),
            })
        });
        Self { config, stores: stores.collect(), clock: RuntimeClock::new() }
    }

    /// The pool as another device sees it: with memories of its own.
    pub(crate) fn pool(&self) -> Pool {
        let stores = self.config.stores.iter().map(|record| {
            let number = usize::from(record.id.as_bytes()[0]);
            (record.id, Arc::clone(&self.stores[number]) as Arc<dyn ObjectStore>)
        });
        let options = PoolOptions::default();
        Pool::new(&self.config, stores.collect(), Arc::clone(&self.clock) as _, options)
    }

    /// Lets all that is written to a store go through a line.
    pub(crate) fn set_line(&self, store: usize, line: Arc<Line>) {
        *self.stores[store].up.lock() = Some(line);
    }

    pub(crate) fn set(&self, store: usize, mood: Mood) {
        self.stores[store].set(mood);
    }

    pub(crate) fn set_all(&self, stores: &BTreeSet<usize>, mood: Mood) {
        for store in stores {
            self.set(*store, mood);
        }
    }

    /// What the stores hold of an object: store and piece.
    pub(crate) async fn pieces(&self, object: &ObjectKey) -> Vec<(usize, Piece)> {
        let mut pieces = Vec::new();
        for (number, store) in self.stores.iter().enumerate() {
            for entry in list_all(store.store.as_ref(), "").await.unwrap() {
                match Piece::parse(&entry.key) {
                    Some((of, piece)) if of == *object => pieces.push((number, piece)),
                    _ => {}
                }
            }
        }
        pieces
    }

    /// Replaces what a store holds of an object.
    pub(crate) async fn damage(
        &self,
        (store, piece): (usize, Piece),
        object: &ObjectKey,
        how: impl FnOnce(Vec<u8>) -> Vec<u8>,
    ) {
        let (store, key) = (&self.stores[store].store, piece.key(object));
        let bytes = store.get(&key).await.unwrap().expect("it is there");
        let damaged = how(bytes.to_vec());
        store.put(&key, damaged.into(), PutMode::Overwrite).await.unwrap();
    }

    /// Deletes all that a store holds.
    pub(crate) async fn wipe(&self, store: usize) {
        let store = &self.stores[store].store;
        for entry in list_all(store.as_ref(), "").await.unwrap() {
            store.delete(&entry.key).await.unwrap();
        }
    }
}

/// A pack by number: its key and bytes.
pub(crate) fn object(seed: u64, length: usize) -> (ObjectKey, Bytes) {
    let (id, bytes) = crate::support::pack(seed, length);
    (ObjectKey::pack(id), bytes)
}

pub(crate) fn key_of(bytes: &[u8]) -> ObjectKey {
    ObjectKey::pack(PackId::from_bytes(*blake3::hash(bytes).as_bytes()))
}

/// Puts some objects and waits until they are everywhere.
pub(crate) async fn fill(pool: &Pool, count: u64, length: usize) -> Vec<(ObjectKey, Bytes)> {
    let mut objects = Vec::new();
    for seed in 0..count {
        let (key, bytes) = object(seed, length + seed as usize);
        pool.put(&key, bytes.clone(), PutMode::IfAbsent).await.unwrap();
        objects.push((key, bytes));
    }
    assert!(pool.settle().await.is_empty());
    objects
}
