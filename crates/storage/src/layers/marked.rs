//! Tells a store that is empty from a place where none is.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::OnceCell;

use crate::direct::{Direct, SignedRequest};
use crate::error::{Result, StorageError};
use crate::file_store::Opening;
use crate::key::{ObjectKey, check_prefix};
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome, Waited};

/// The object that says that a store is here; it is in no list.
const MARK: &str = "syncline-format";
/// What it holds.
const FORMAT: &str = "syncline object store 1\n";

/// A store with an object that says so, written when the store is made.
///
/// In buckets, containers and mailboxes anybody may have mistyped the name, or have emptied them. So "nothing is there" is
/// said only while the mark can be seen; else the store is not reachable, and nobody takes it for empty.
#[derive(Debug)]
pub struct Marked {
    store: Arc<dyn ObjectStore>,
    opening: Opening,
    is_ready: OnceCell<()>,
}

impl Marked {
    /// Opens the store; the mark is looked for, or made, at the first call.
    pub fn new(store: Arc<dyn ObjectStore>, opening: Opening) -> Self {
        Self { store, opening, is_ready: OnceCell::new() }
    }

    fn mark() -> ObjectKey {
        ObjectKey::new(MARK).expect("it is written as a key")
    }

    async fn ready(&self) -> Result<()> {
        self.is_ready.get_or_try_init(|| self.prepare()).await.map(|_| ())
    }

    async fn prepare(&self) -> Result<()> {
        match (self.store.get(&Self::mark()).await?, self.opening) {
            (Some(found), _) if found == FORMAT.as_bytes() => Ok(()),
            (Some(found), _) => {
                let found: String = String::from_utf8_lossy(&found).chars().take(64).collect();
                let found = found.trim().escape_debug().to_string();
                Err(StorageError::UnknownFormat { store: self.describe(), found })
            }
            (None, Opening::Existing) => Err(self.no_store()),
            (None, Opening::CreateIfMissing) => {
                // Another device may do the same, and writes the same.
                self.store.put(&Self::mark(), FORMAT.into(), PutMode::Overwrite).await.map(drop)
            }
        }
    }

    fn no_store(&self) -> StorageError {
        StorageError::NoStore {
            store: self.describe(),
            detail: "it holds no store of Syncline (is its name right?)".to_owned(),
        }
    }

    /// Returns that there is nothing, once it is sure that the store itself is there.
    async fn absent<A: Default>(&self) -> Result<A> {
        match self.store.size(&Self::mark()).await? {
            Some(_) => Ok(A::default()),
            None => Err(self.no_store()),
        }
    }

    async fn found<A>(&self, found: Option<A>) -> Result<Option<A>> {
        match found {
            Some(found) => Ok(Some(found)),
            None => self.absent().await,
        }
    }

    /// Makes the store ready for a call about `key`, which must not be the mark.
    async fn ready_for(&self, key: &ObjectKey) -> Result<()> {
        if key.as_str() == MARK {
            let detail = "it is the mark of the store";
            return Err(StorageError::InvalidKey { key: key.to_string(), detail });
        }
        self.ready().await
    }
}

#[async_trait]
impl ObjectStore for Marked {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        self.ready_for(key).await?;
        self.store.put(key, bytes, mode).await
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        self.ready_for(key).await?;
        self.store.put_deferred(key, bytes).await
    }

    async fn sync(&self) -> Result<()> {
        self.store.sync().await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.ready_for(key).await?;
        let found = self.store.get(key).await?;
        self.found(found).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.ready_for(key).await?;
        let found = self.store.get_range(key, range).await?;
        self.found(found).await
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        self.ready_for(key).await?;
        let found = self.store.get_tail(key, length).await?;
        self.found(found).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.ready_for(key).await?;
        let found = self.store.size(key).await?;
        self.found(found).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        check_prefix(prefix)?;
        self.ready().await?;
        // One more, for the mark that may be among them.
        let mut entries = self.store.list(prefix, start_after, limit.saturating_add(1)).await?;
        let has_mark = entries.iter().any(|entry| entry.key.as_str() == MARK);
        entries.retain(|entry| entry.key.as_str() != MARK);
        entries.truncate(limit);
        if entries.is_empty() && !has_mark && limit > 0 {
            return self.absent().await;
        }
        Ok(entries)
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.ready_for(key).await?;
        self.store.delete(key).await
    }

    async fn wait_for(&self, key: &ObjectKey, patience: Duration) -> Result<Waited> {
        // A hint: whether the store itself is there need not be known.
        self.ready_for(key).await?;
        self.store.wait_for(key, patience).await
    }

    async fn sign_request(
        &self,
        key: &ObjectKey,
        direct: Direct,
        lifetime: Duration,
    ) -> Result<Option<SignedRequest>> {
        // What is written in this way must find the mark there.
        self.ready_for(key).await?;
        self.store.sign_request(key, direct, lifetime).await
    }
}
