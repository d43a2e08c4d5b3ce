//! Stores: one in memory that all devices share, and for each device the way to it, with delays and faults.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use storage::faulty::{Call, Fault as StoreFault, FaultPlan, Operation};
use storage::{ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome, StorageError};

use crate::clock::VirtualTime;
use crate::coverage::{Coverage, Fault};
use crate::random::Dice;
use crate::record::Record;

type Result<T> = std::result::Result<T, StorageError>;

/// A deliberate defect of a store, to see that the checks find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreDefect {
    /// A put-if-absent overwrites what is there, and says that nothing was.
    Overwrites,
    /// Every so many-th pack is forgotten after it was acknowledged.
    ForgetsPacks,
    /// Whoever removes a pack removes another one, too.
    RemovesTwoPacks,
}

/// A store in memory; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    objects: Arc<Mutex<BTreeMap<String, Bytes>>>,
    defect: Option<StoreDefect>,
}

impl MemoryStore {
    /// Makes an empty store, perhaps a defective one.
    pub fn new(defect: Option<StoreDefect>) -> Self {
        Self { objects: Arc::default(), defect }
    }

    /// Returns an object without asking.
    pub fn object(&self, key: &ObjectKey) -> Option<Bytes> {
        self.objects.lock().get(key.as_str()).cloned()
    }

    /// Returns a copy of everything.
    pub fn snapshot(&self) -> BTreeMap<String, Bytes> {
        self.objects.lock().clone()
    }

    /// Goes back to an older copy.
    pub fn restore(&self, snapshot: BTreeMap<String, Bytes>) {
        *self.objects.lock() = snapshot;
    }
}

#[async_trait]
impl ObjectStore for MemoryStore {
    fn describe(&self) -> String {
        "simulated store".to_owned()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let mut objects = self.objects.lock();
        let keeps = mode == PutMode::IfAbsent && self.defect != Some(StoreDefect::Overwrites);
        if keeps && objects.contains_key(key.as_str()) {
            return Ok(PutOutcome::Exists);
        }
        if self.defect == Some(StoreDefect::ForgetsPacks) && key.as_pack().is_some() {
            return Ok(PutOutcome::Written);
        }
        objects.insert(key.as_str().to_owned(), bytes);
        Ok(PutOutcome::Written)
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        Ok(self.object(key))
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        Ok(self.object(key).map(|bytes| {
            let end = (range.end as usize).min(bytes.len());
            bytes.slice((range.start as usize).min(end)..end)
        }))
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        Ok(self.object(key).map(|bytes| bytes.len() as u64))
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let objects = self.objects.lock();
        let keys = objects.iter().filter(|(key, _)| {
            key.starts_with(prefix) && start_after.is_none_or(|start| key.as_str() > start)
        });
        keys.take(limit)
            .map(|(key, bytes)| {
                Ok(ObjectEntry { key: ObjectKey::new(key)?, size: bytes.len() as u64 })
            })
            .collect()
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        let mut objects = self.objects.lock();
        objects.remove(key.as_str());
        if self.defect == Some(StoreDefect::RemovesTwoPacks) && key.as_pack().is_some() {
            let another = objects.keys().find(|key| key.starts_with(ObjectKey::PACKS)).cloned();
            another.map(|another| objects.remove(&another));
        }
        Ok(())
    }
}

/// How often requests to stores and servers fail, in a thousand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetworkFaults {
    /// The request is lost, and nothing happens.
    pub error_before: u32,
    /// It happens, and the answer is lost.
    pub error_after: u32,
    /// It happens twice.
    pub duplicate: u32,
    /// A put happens later, and the caller hears of a failure.
    pub late: u32,
    /// There is no space.
    pub no_space: u32,
    /// A sync of a store fails, and loses what was deferred.
    pub not_durable: u32,
    /// The server is down for a while.
    pub down: u32,
    /// An event is lost, or comes twice.
    pub event: u32,
}

/// The faults of one device's network, which the world changes while it runs; clones share them.
#[derive(Debug, Clone)]
pub struct Network(Arc<Mutex<NetworkInner>>);

#[derive(Debug)]
struct NetworkInner {
    faults: NetworkFaults,
    dice: Dice,
    time: VirtualTime,
    record: Record,
    coverage: Coverage,
}

impl Network {
    /// Makes a network without faults.
    pub fn new(dice: Dice, time: VirtualTime, record: Record, coverage: Coverage) -> Self {
        let faults = NetworkFaults::default();
        Self(Arc::new(Mutex::new(NetworkInner { faults, dice, time, record, coverage })))
    }

    /// Sets the faults.
    pub fn set_faults(&self, faults: NetworkFaults) {
        self.0.lock().faults = faults;
    }

    /// Returns the faults.
    pub fn faults(&self) -> NetworkFaults {
        self.0.lock().faults
    }

    /// Tells whether something with this chance happens now, and notes that it did.
    pub fn happens(&self, permille: u32, fault: Fault) -> bool {
        let mut inner = self.0.lock();
        let happens = permille > 0 && inner.dice.chance(permille);
        if happens {
            inner.coverage.hit(fault);
            inner.record.note("network fault", format_args!("{fault:?}"));
        }
        happens
    }

    /// Takes some time.
    pub async fn delay(&self) {
        let sleep = {
            let mut inner = self.0.lock();
            let milliseconds = inner.dice.below(40);
            inner.time.sleep(Duration::from_millis(milliseconds))
        };
        sleep.await;
    }

    /// Notes a request.
    pub fn note(&self, what: &str, details: impl std::fmt::Display) {
        self.0.lock().record.note(what, details);
    }
}

impl Network {
    /// Decides over a call to one of several stores. Where only a few of them may fail, the line to the others loses answers
    /// and says things twice, and that is all.
    pub fn decide_for_one_of_several(&self, call: &Call<'_>, is_bad: bool) -> StoreFault {
        let faults = self.faults();
        let harmless = NetworkFaults {
            error_after: faults.error_after,
            duplicate: faults.duplicate,
            ..NetworkFaults::default()
        };
        self.decide_by(if is_bad { faults } else { harmless }, call)
    }

    fn decide_by(&self, faults: NetworkFaults, call: &Call<'_>) -> StoreFault {
        self.note("store", format_args!("{:?} {}", call.operation, call.key));
        let is_put = call.operation == Operation::Put;
        if self.happens(faults.error_before, Fault::StoreErrorBefore) {
            StoreFault::ErrorBefore
        } else if self.happens(faults.error_after, Fault::StoreErrorAfter) {
            StoreFault::ErrorAfter
        } else if is_put && self.happens(faults.duplicate, Fault::StoreDuplicatePut) {
            StoreFault::DuplicatePut
        } else if is_put && self.happens(faults.late, Fault::StoreLatePut) {
            StoreFault::LatePut { calls: 1 + call.number % 7 }
        } else if call.size > 0 && self.happens(faults.no_space, Fault::StoreNoSpace) {
            StoreFault::NoSpace
        } else if call.operation == Operation::Sync
            && self.happens(faults.not_durable, Fault::StoreNotDurable)
        {
            StoreFault::NotDurable
        } else {
            StoreFault::None
        }
    }
}

/// The faults of a store behind a network.
impl FaultPlan for Network {
    fn decide(&self, call: &Call<'_>) -> StoreFault {
        self.decide_by(self.faults(), call)
    }
}

/// A store that takes time: other tasks run while one waits.
#[derive(Debug)]
pub struct Delayed<S> {
    store: S,
    network: Network,
}

impl<S> Delayed<S> {
    /// Puts delays before and after every call.
    pub fn new(store: S, network: Network) -> Self {
        Self { store, network }
    }

    async fn around<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.network.delay().await;
        let result = call.await;
        self.network.delay().await;
        result
    }
}

#[async_trait]
impl<S: ObjectStore> ObjectStore for Delayed<S> {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        self.around(self.store.put(key, bytes, mode)).await
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        self.around(self.store.put_deferred(key, bytes)).await
    }

    async fn sync(&self) -> Result<()> {
        self.around(self.store.sync()).await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.around(self.store.get(key)).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.around(self.store.get_range(key, range)).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.around(self.store.size(key)).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.around(self.store.list(prefix, start_after, limit)).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.around(self.store.delete(key)).await
    }
}
