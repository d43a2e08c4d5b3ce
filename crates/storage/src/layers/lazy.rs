//! Opens a store when it is first used, and again after it could not be opened.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::blocking::off_runtime;
use crate::direct::{Direct, SignedRequest};
use crate::error::Result;
use crate::key::ObjectKey;
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome, Waited};

/// What opens it.
type Opener = dyn Fn() -> Result<Arc<dyn ObjectStore>> + Send + Sync;

/// A store of several, of which some may be away: one that cannot be opened fails its own calls, and no others.
pub struct Lazy {
    description: String,
    opener: Arc<Opener>,
    opened: Mutex<Option<Arc<dyn ObjectStore>>>,
}

impl Lazy {
    /// Opens with `opener` whenever the store is wanted and not open; `description` names it until then.
    pub fn new(
        description: String,
        opener: impl Fn() -> Result<Arc<dyn ObjectStore>> + Send + Sync + 'static,
    ) -> Self {
        Self { description, opener: Arc::new(opener), opened: Mutex::new(None) }
    }

    async fn store(&self) -> Result<Arc<dyn ObjectStore>> {
        if let Some(store) = &*self.opened.lock() {
            return Ok(store.clone());
        }
        let opener = self.opener.clone();
        // Two calls at once may both open it; one of the two is kept.
        let store = off_runtime(move || opener()).await?;
        Ok(self.opened.lock().get_or_insert(store).clone())
    }
}

impl fmt::Debug for Lazy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_open = self.opened.lock().is_some();
        let mut shown = formatter.debug_struct("Lazy");
        shown.field("description", &self.description).field("is_open", &is_open).finish()
    }
}

#[async_trait]
impl ObjectStore for Lazy {
    fn describe(&self) -> String {
        self.description.clone()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        self.store().await?.put(key, bytes, mode).await
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        self.store().await?.put_deferred(key, bytes).await
    }

    async fn sync(&self) -> Result<()> {
        // A store that was never opened has taken nothing.
        let opened = self.opened.lock().clone();
        match opened {
            Some(store) => store.sync().await,
            None => Ok(()),
        }
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.store().await?.get(key).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.store().await?.get_range(key, range).await
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        self.store().await?.get_tail(key, length).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.store().await?.size(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.store().await?.list(prefix, start_after, limit).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.store().await?.delete(key).await
    }

    async fn wait_for(&self, key: &ObjectKey, patience: Duration) -> Result<Waited> {
        self.store().await?.wait_for(key, patience).await
    }

    async fn sign_request(
        &self,
        key: &ObjectKey,
        direct: Direct,
        lifetime: Duration,
    ) -> Result<Option<SignedRequest>> {
        self.store().await?.sign_request(key, direct, lifetime).await
    }

    async fn mend(&self, key: &ObjectKey) -> Result<bool> {
        self.store().await?.mend(key).await
    }
}
