//! A local cache of what never changes, as a decorator of any store.
//!
//! *Goals*: a pack or a part of one is fetched once; the folder never exceeds its size; what is least recently used
//! goes first; the cache survives a restart. *Non-goals*: caching what may change (the log, lists, sizes: the answer
//! to "is it there" must come from the store), or what is uploaded. *Invariants*: every block that is served was
//! compared with its checksum in this very read, so a torn, truncated or flipped cache file is dropped and fetched
//! again; no failure of the cache is ever a failure of the store. Parts are kept as the store gave them: a reader that
//! finds a part wrong reads the whole pack, which is checked, and heals the cache.

mod disk;
mod entry_file;
mod recency;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::blocking::off_runtime;
use crate::error::Result;
use crate::key::ObjectKey;
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome};

use disk::CacheDisk;
use entry_file::{EntryName, Part};

/// A store with a local cache before it.
#[derive(Debug)]
pub struct Cached {
    store: Arc<dyn ObjectStore>,
    disk: Option<Arc<CacheDisk>>,
}

impl Cached {
    /// Puts a cache in `folder`, of at most `size_max` bytes, before `store`. A folder that cannot be used means no
    /// cache, not an error.
    pub fn new(store: Arc<dyn ObjectStore>, folder: &Path, size_max: u64) -> Self {
        let disk = match CacheDisk::open(folder, size_max) {
            Ok(disk) => Some(Arc::new(disk)),
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "going on without a cache");
                None
            }
        };
        Self { store, disk }
    }

    /// Returns how many bytes of disk the cache takes, by its own books.
    pub fn disk_size(&self) -> u64 {
        self.disk.as_ref().map_or(0, |disk| disk.size())
    }

    /// Returns a part from the cache, or from the store and then keeps it.
    async fn fetch(&self, key: &ObjectKey, part: Part) -> Result<Option<Bytes>> {
        let Some(disk) = self.disk.as_ref().filter(|_| key.names_its_content()) else {
            return self.fetch_from_store(key, &part).await;
        };
        let found = {
            let (disk, key, part) = (Arc::clone(disk), key.clone(), part.clone());
            off_runtime(move || Ok(disk.read(&key, &part))).await?
        };
        if found.is_some() {
            return Ok(found);
        }
        let Some(bytes) = self.fetch_from_store(key, &part).await? else { return Ok(None) };
        let (disk, key, kept) = (Arc::clone(disk), key.clone(), bytes.clone());
        off_runtime(move || {
            keep(&disk, &key, &part, &kept);
            Ok(())
        })
        .await?;
        Ok(Some(bytes))
    }

    async fn fetch_from_store(&self, key: &ObjectKey, part: &Part) -> Result<Option<Bytes>> {
        match part {
            Part::Whole => self.store.get(key).await,
            Part::Range(range) => self.store.get_range(key, range.clone()).await,
            Part::Tail(length) => self.store.get_tail(key, *length).await,
        }
    }

    /// Drops what is cached of an object; for one that is replaced (because it was damaged) or deleted.
    async fn forget(&self, key: &ObjectKey) -> Result<()> {
        let Some(disk) = self.disk.as_ref().filter(|_| key.names_its_content()) else {
            return Ok(());
        };
        let (disk, key) = (Arc::clone(disk), key.clone());
        off_runtime(move || {
            disk.forget(&key);
            Ok(())
        })
        .await
    }
}

/// Keeps what was fetched. A whole object is kept only when it is what its key names, and then replaces its parts:
/// so a part that was fetched from a damaged object does not outlive a read of the repaired whole.
fn keep(disk: &CacheDisk, key: &ObjectKey, part: &Part, bytes: &[u8]) {
    if *part == Part::Whole {
        if key.content_hash() != Some(*blake3::hash(bytes).as_bytes()) {
            return;
        }
        disk.forget(key);
    }
    disk.write(EntryName::new(key, part), bytes);
}

#[async_trait]
impl ObjectStore for Cached {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let outcome = self.store.put(key, bytes, mode).await?;
        if mode == PutMode::Overwrite {
            self.forget(key).await?;
        }
        Ok(outcome)
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        self.store.put_deferred(key, bytes).await
    }

    async fn sync(&self) -> Result<()> {
        self.store.sync().await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.fetch(key, Part::Whole).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        if range.is_empty() {
            return self.store.get_range(key, range).await;
        }
        self.fetch(key, Part::Range(range)).await
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        self.fetch(key, Part::Tail(length)).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.store.size(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.store.list(prefix, start_after, limit).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.store.delete(key).await?;
        self.forget(key).await
    }

    fn parts(&self) -> usize {
        self.store.parts()
    }

    /// What is kept here may be what was wrong, so reading again is worth it in any case.
    async fn mend(&self, key: &ObjectKey) -> Result<bool> {
        self.forget(key).await?;
        Ok(self.store.mend(key).await? || self.disk.is_some())
    }
}
