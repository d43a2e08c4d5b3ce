//! Names over a store of contents, so that the conformance suite, whose keys are names, can try a pool.

use std::collections::BTreeMap;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use storage::pool::Pool;
use storage::{
    OBJECT_SIZE_MAX, ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome, Result,
    StorageError, opendal_store::OpendalStore,
};

use super::world::key_of;

/// A store whose names are kept in memory and whose contents are in a pool.
#[derive(Debug)]
pub(crate) struct Named {
    pool: Pool,
    names: Mutex<BTreeMap<ObjectKey, ObjectKey>>,
    /// Orders the names, and refuses what a store refuses; holds no contents.
    order: OpendalStore,
}

impl Named {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool, names: Mutex::default(), order: OpendalStore::memory("names") }
    }

    fn content(&self, key: &ObjectKey) -> Option<ObjectKey> {
        self.names.lock().get(key).cloned()
    }
}

#[async_trait]
impl ObjectStore for Named {
    fn describe(&self) -> String {
        self.pool.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        if bytes.len() as u64 > OBJECT_SIZE_MAX {
            return self.pool.put(key, bytes, mode).await;
        }
        let content = key_of(&bytes);
        self.pool.put(&content, bytes, mode).await?;
        let outcome = self.order.put(key, Bytes::new(), mode).await?;
        if outcome == PutOutcome::Written {
            self.names.lock().insert(key.clone(), content);
        }
        Ok(outcome)
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        let content = key_of(&bytes);
        self.pool.put_deferred(&content, bytes).await?;
        self.order.put(key, Bytes::new(), PutMode::Overwrite).await?;
        self.names.lock().insert(key.clone(), content);
        Ok(())
    }

    async fn sync(&self) -> Result<()> {
        self.pool.sync().await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        match self.content(key) {
            Some(content) => self.pool.get(&content).await,
            None => Ok(None),
        }
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        match self.content(key) {
            Some(content) => self.pool.get_range(&content, range).await,
            None => Ok(None),
        }
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        match self.content(key) {
            Some(content) => self.pool.get_tail(&content, length).await,
            None => Ok(None),
        }
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        match self.content(key) {
            Some(content) => self.pool.size(&content).await,
            None => Ok(None),
        }
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let mut found = self.order.list(prefix, start_after, limit).await?;
        for entry in &mut found {
            let content = self.content(&entry.key).expect("a name has a content");
            let listed = self.pool.list(content.as_str(), None, 2).await?;
            let [listed] = &listed[..] else {
                let detail = "a content is not listed once".to_owned();
                return Err(StorageError::Damaged { key: content, detail });
            };
            entry.size = listed.size;
        }
        Ok(found)
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.order.delete(key).await?;
        let Some(content) = self.names.lock().remove(key) else { return Ok(()) };
        if self.names.lock().values().any(|other| *other == content) {
            return Ok(());
        }
        self.pool.delete(&content).await
    }
}
