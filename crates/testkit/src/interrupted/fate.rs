//! The end of a process at a request, and stores that its requests reach until then.

use std::future::pending;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use storage::{ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome, StorageError};
use tokio::sync::watch;

use crate::store::MemoryStore;

type Result<T> = std::result::Result<T, StorageError>;

/// Where a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// How many requests take effect, in the order in which they reach the stores; no further one ever does.
    pub after: u64,
    /// Whether the process hears the answer to the last of them: then it lives until its next request would take effect.
    pub is_answered: bool,
}

/// What ends a process; clones are the same fate.
#[derive(Debug, Clone)]
pub(super) struct Fate {
    cut: Option<Cut>,
    requests: Arc<Mutex<u64>>,
    over: Arc<watch::Sender<bool>>,
}

impl Fate {
    /// Ends a process at a cut, or never.
    pub(super) fn new(cut: Option<Cut>) -> Self {
        Self { cut, requests: Arc::default(), over: Arc::new(watch::channel(false).0) }
    }

    /// Returns how many requests have taken effect.
    pub(super) fn requests(&self) -> u64 {
        *self.requests.lock()
    }

    /// Waits until the process ends.
    pub(super) async fn over(&self) {
        let mut over = self.over.subscribe();
        let ended = over.wait_for(|over| *over).await.map(drop);
        ended.expect("whoever waits holds the other end");
    }

    /// Lets a request take effect, or never. Returns its number.
    async fn begin(&self) -> u64 {
        let number = {
            let mut requests = self.requests.lock();
            let is_last = self.cut.is_some_and(|cut| *requests == cut.after);
            if is_last {
                self.over.send_replace(true);
            }
            if *self.over.borrow() {
                None
            } else {
                *requests += 1;
                Some(*requests)
            }
        };
        match number {
            Some(number) => number,
            None => pending().await,
        }
    }

    /// Lets a request be answered, or never.
    async fn end(&self, number: u64) {
        if self.cut == Some(Cut { after: number, is_answered: false }) {
            self.over.send_replace(true);
        }
        if *self.over.borrow() {
            pending::<()>().await;
        }
    }
}

/// A store as a process reaches it as long as it lives.
#[derive(Debug)]
pub(super) struct Mortal {
    store: MemoryStore,
    fate: Fate,
    is_gone: bool,
}

impl Mortal {
    /// Puts a store behind a fate; one that is gone never answers anything but that.
    pub(super) fn new(store: MemoryStore, fate: Fate, is_gone: bool) -> Self {
        Self { store, fate, is_gone }
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T>> + Send) -> Result<T> {
        if self.is_gone {
            let (store, detail) = (self.describe(), "it is gone".to_owned());
            return Err(StorageError::NotReachable { store, detail });
        }
        let number = self.fate.begin().await;
        let result = call.await;
        self.fate.end(number).await;
        result
    }
}

#[async_trait]
impl ObjectStore for Mortal {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        self.call(self.store.put(key, bytes, mode)).await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.call(self.store.get(key)).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.call(self.store.get_range(key, range)).await
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        self.call(self.store.get_tail(key, length)).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.call(self.store.size(key)).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.call(self.store.list(prefix, start_after, limit)).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.call(self.store.delete(key)).await
    }
}
