//! Services that stop answering while a device works: they accept what is sent, and never say anything.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::{Either, pending, select};
use storage::{ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome, StorageError};
use tokio::sync::watch;

type Result<T> = std::result::Result<T, StorageError>;

/// Lets stores hang, and answer again; clones are the same switch.
#[derive(Debug, Clone)]
pub struct Switch(Arc<watch::Sender<bool>>);

impl Default for Switch {
    fn default() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }
}

impl Switch {
    /// Lets the stores hang, with what they were asked, or answer again what they are asked from now on.
    pub fn set(&self, hangs: bool) {
        self.0.send_replace(hangs);
    }

    /// Puts a store behind the switch.
    pub fn control(&self, store: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        Arc::new(Hanging { store, hangs: self.0.subscribe() })
    }
}

/// A store behind a switch.
#[derive(Debug)]
struct Hanging {
    store: Arc<dyn ObjectStore>,
    hangs: watch::Receiver<bool>,
}

impl Hanging {
    async fn call<T>(&self, answer: impl Future<Output = T> + Send) -> T {
        let mut hangs = self.hangs.clone();
        let hung = std::pin::pin!(async { drop(hangs.wait_for(|hangs| *hangs).await) });
        match select(hung, std::pin::pin!(answer)).await {
            Either::Left(_) => pending().await,
            Either::Right((answer, _)) => answer,
        }
    }
}

#[async_trait]
impl ObjectStore for Hanging {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        self.call(self.store.put(key, bytes, mode)).await
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        self.call(self.store.put_deferred(key, bytes)).await
    }

    async fn sync(&self) -> Result<()> {
        self.call(self.store.sync()).await
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
