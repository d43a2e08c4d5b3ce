//! No call takes for ever.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome};

/// A store whose calls are given up after a while. What was given up may still happen.
///
/// The time grows with the bytes that a put sends, so that a slow line is slow and not broken; the bytes that a get
/// will bring are not known before, so it has the time of the largest.
#[derive(Debug)]
pub struct Timed {
    store: Arc<dyn ObjectStore>,
    call_max: Duration,
    transfer_max: Duration,
    bytes_per_second_min: u64,
}

impl Timed {
    /// Gives a call a minute, a read ten, and a put a second more for every 64 KiB.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            store,
            call_max: Duration::from_secs(60),
            transfer_max: Duration::from_secs(600),
            bytes_per_second_min: 64 << 10,
        }
    }

    /// Sets how long a call may take that carries few bytes.
    #[must_use]
    pub fn with_call_max(mut self, call_max: Duration) -> Self {
        self.call_max = call_max;
        self
    }

    /// Sets how long a call may take that reads an object or lists many.
    #[must_use]
    pub fn with_transfer_max(mut self, transfer_max: Duration) -> Self {
        self.transfer_max = transfer_max;
        self
    }

    fn put_max(&self, bytes: &Bytes) -> Duration {
        self.call_max + Duration::from_secs(bytes.len() as u64 / self.bytes_per_second_min)
    }

    async fn within<A>(&self, limit: Duration, call: impl Future<Output = Result<A>>) -> Result<A> {
        // Without a runtime there are no timers: a simulation has its own time, and its stores always answer.
        if tokio::runtime::Handle::try_current().is_err() {
            return call.await;
        }
        match tokio::time::timeout(limit, call).await {
            Ok(result) => result,
            Err(_) => Err(StorageError::NotReachable {
                store: self.store.describe(),
                detail: format!("no answer within {} s", limit.as_secs()),
            }),
        }
    }
}

#[async_trait]
impl ObjectStore for Timed {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        self.within(self.put_max(&bytes), self.store.put(key, bytes, mode)).await
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        self.within(self.put_max(&bytes), self.store.put_deferred(key, bytes)).await
    }

    async fn sync(&self) -> Result<()> {
        self.within(self.transfer_max, self.store.sync()).await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.within(self.transfer_max, self.store.get(key)).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.within(self.transfer_max, self.store.get_range(key, range)).await
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        self.within(self.transfer_max, self.store.get_tail(key, length)).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.within(self.call_max, self.store.size(key)).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.within(self.transfer_max, self.store.list(prefix, start_after, limit)).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.within(self.call_max, self.store.delete(key)).await
    }
}
