//! A folder of a store as a store of its own, so that one place can hold several workspaces.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::direct::{Direct, SignedRequest};
use crate::error::{Result, StorageError};
use crate::key::{ObjectKey, check_prefix};
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome, Waited};

/// A store whose keys all lie inside `scope/` of another store; its user sees neither the scope nor what lies beside.
#[derive(Debug)]
pub struct Scoped {
    store: Arc<dyn ObjectStore>,
    scope: ObjectKey,
}

impl Scoped {
    /// Opens the scope `scope` of `store`.
    pub fn new(store: Arc<dyn ObjectStore>, scope: ObjectKey) -> Self {
        Self { store, scope }
    }

    fn inside(&self, text: &str) -> String {
        format!("{}/{text}", self.scope)
    }
}

#[async_trait]
impl ObjectStore for Scoped {
    fn describe(&self) -> String {
        format!("{} in {}", self.scope, self.store.describe())
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        self.store.put(&key.within(&self.scope)?, bytes, mode).await
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        self.store.put_deferred(&key.within(&self.scope)?, bytes).await
    }

    async fn sync(&self) -> Result<()> {
        self.store.sync().await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.store.get(&key.within(&self.scope)?).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.store.get_range(&key.within(&self.scope)?, range).await
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        self.store.get_tail(&key.within(&self.scope)?, length).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.store.size(&key.within(&self.scope)?).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        check_prefix(prefix)?;
        let start_after = start_after.map(|key| self.inside(key));
        let found = self.store.list(&self.inside(prefix), start_after.as_deref(), limit).await?;
        let length = self.scope.as_str().len() + 1;
        let outside = |key: &ObjectKey| StorageError::InvalidAnswer {
            store: self.store.describe(),
            detail: format!("the list of {prefix} contains {key}"),
        };
        found
            .into_iter()
            .map(|entry| {
                let text = entry.key.as_str().get(length..).ok_or_else(|| outside(&entry.key))?;
                Ok(ObjectEntry { key: ObjectKey::new(text)?, size: entry.size })
            })
            .collect()
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.store.delete(&key.within(&self.scope)?).await
    }

    async fn wait_for(&self, key: &ObjectKey, patience: Duration) -> Result<Waited> {
        self.store.wait_for(&key.within(&self.scope)?, patience).await
    }

    async fn sign_request(
        &self,
        key: &ObjectKey,
        direct: Direct,
        lifetime: Duration,
    ) -> Result<Option<SignedRequest>> {
        self.store.sign_request(&key.within(&self.scope)?, direct, lifetime).await
    }

    fn parts(&self) -> usize {
        self.store.parts()
    }

    async fn mend(&self, key: &ObjectKey) -> Result<bool> {
        self.store.mend(&key.within(&self.scope)?).await
    }
}
