//! Several stores as the pool of a workspace: some of them may be gone, as many as the workspace must bear.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use model::{PoolConfig, Redundancy, StoreId, StoreRecord, StoreState};
use storage::{ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome, StorageError};

use crate::random::Dice;
use crate::store::{MemoryStore, StoreDefect};

type Result<T> = std::result::Result<T, StorageError>;

/// The stores of a world; clones share them.
#[derive(Debug, Clone)]
pub struct StoreGroup {
    config: PoolConfig,
    stores: Vec<GroupStore>,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct GroupStore {
    store: MemoryStore,
    is_gone: Arc<AtomicBool>,
}

impl StoreGroup {
    /// Makes a pool of so many empty stores.
    pub fn new(count: u8, redundancy: Redundancy, defect: Option<StoreDefect>) -> Self {
        let record = |number: u8| StoreRecord {
            id: StoreId::from_bytes([number + 1; 16]),
            name: format!("store {number}"),
            url: format!("memory:{number}"),
            capacity: 1,
            state: StoreState::Active,
            agrees: true,
        };
        let config = PoolConfig::new(redundancy, (0..count).map(record).collect());
        let stores = (0..count).map(|_| GroupStore {
            store: MemoryStore::new(defect),
            is_gone: Arc::default(),
        });
        Self { config: config.expect("a pool that may be"), stores: stores.collect() }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &PoolConfig {
        &self.config
    }

    /// Returns the stores in the order of the configuration.
    pub fn stores(&self) -> &[GroupStore] {
        &self.stores
    }

    /// Lets some stores go, as many at most as neither the data nor the log may miss; the others come back.
    pub fn lose_some(&self, dice: &mut Dice) -> usize {
        let faults = (self.stores.len() - 1) / 2;
        let bearable = faults.min(usize::from(self.config.redundancy.losses()));
        let gone = dice.index(bearable + 1);
        self.come_back();
        for _ in 0..gone {
            self.stores[dice.index(self.stores.len())].is_gone.store(true, Ordering::Relaxed);
        }
        gone
    }

    /// Lets all stores come back.
    pub fn come_back(&self) {
        for store in &self.stores {
            store.is_gone.store(false, Ordering::Relaxed);
        }
    }

    /// Returns in how many stores a copy or a block of an object lies.
    pub fn pieces(&self, key: &ObjectKey) -> usize {
        let hash = key.as_str().rsplit('/').next().unwrap_or_default();
        let has = |store: &&GroupStore| store.store.snapshot().keys().any(|key| key.contains(hash));
        self.stores.iter().filter(has).count()
    }
}

impl GroupStore {
    fn here(&self) -> Result<&MemoryStore> {
        if self.is_gone.load(Ordering::Relaxed) {
            let (store, detail) = (self.store.describe(), "it is gone".to_owned());
            return Err(StorageError::NotReachable { store, detail });
        }
        Ok(&self.store)
    }
}

#[async_trait]
impl ObjectStore for GroupStore {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        self.here()?.put(key, bytes, mode).await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.here()?.get(key).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.here()?.get_range(key, range).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.here()?.size(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.here()?.list(prefix, start_after, limit).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.here()?.delete(key).await
    }
}
