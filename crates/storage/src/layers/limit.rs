//! At most so many calls at once.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::Result;
use crate::key::ObjectKey;
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome};

/// A store that is asked at most so many things at once; further calls wait in the order they came.
#[derive(Debug)]
pub struct Limited {
    store: Arc<dyn ObjectStore>,
    permits: Semaphore,
}

impl Limited {
    /// Lets at most `calls_max` calls into `store` at once; at least one.
    pub fn new(store: Arc<dyn ObjectStore>, calls_max: usize) -> Self {
        Self { store, permits: Semaphore::new(calls_max.max(1)) }
    }

    async fn permit(&self) -> SemaphorePermit<'_> {
        self.permits.acquire().await.expect("the semaphore is never closed")
    }
}

#[async_trait]
impl ObjectStore for Limited {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let _permit = self.permit().await;
        self.store.put(key, bytes, mode).await
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        let _permit = self.permit().await;
        self.store.put_deferred(key, bytes).await
    }

    async fn sync(&self) -> Result<()> {
        let _permit = self.permit().await;
        self.store.sync().await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        let _permit = self.permit().await;
        self.store.get(key).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        let _permit = self.permit().await;
        self.store.get_range(key, range).await
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        let _permit = self.permit().await;
        self.store.get_tail(key, length).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        let _permit = self.permit().await;
        self.store.size(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let _permit = self.permit().await;
        self.store.list(prefix, start_after, limit).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        let _permit = self.permit().await;
        self.store.delete(key).await
    }

    async fn mend(&self, key: &ObjectKey) -> Result<bool> {
        let _permit = self.permit().await;
        self.store.mend(key).await
    }
}
