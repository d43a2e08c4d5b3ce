//! Packs and pages in an object store, checked on their way in and out.
//!
//! *Invariant*: nothing enters under a name that is not the BLAKE3-256 of its bytes, and nothing that was read in
//! whole leaves without having been hashed again. Ranges leave unchecked, because their reader holds the hashes of
//! the chunks inside.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use model::ids::{PackId, PageId};

use crate::blocking::off_runtime;
use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::{ObjectStore, PutMode, PutOutcome, list_all};

/// Up to this size hashing costs less than handing the work to another thread.
const HASH_HERE_MAX: usize = 64 << 10;

/// The packs and pages of one workspace; cheap to clone.
#[derive(Debug, Clone)]
pub struct ContentStore {
    store: Arc<dyn ObjectStore>,
}

impl ContentStore {
    /// Keeps packs and pages in `store`.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store }
    }

    /// Returns the store below.
    pub fn object_store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Stores a pack, durable on return; storing it again changes nothing, unless what is there has another size,
    /// in which case it was damaged and is replaced.
    ///
    /// # Errors
    /// [`StorageError::WrongContent`] when `id` is not the hash of `bytes`; those of the store.
    pub async fn put_pack(&self, id: PackId, bytes: Bytes) -> Result<()> {
        self.put(ObjectKey::pack(id), *id.as_bytes(), bytes).await
    }

    /// Stores a pack together with others: it counts as stored only after [`Self::sync`] returned, and is then
    /// much cheaper than one put after the other.
    ///
    /// # Errors
    /// As [`Self::put_pack`].
    pub async fn put_pack_deferred(&self, id: PackId, bytes: Bytes) -> Result<()> {
        let key = ObjectKey::pack(id);
        check_content(&key, *id.as_bytes(), &bytes).await?;
        self.store.put_deferred(&key, bytes).await
    }

    /// Replaces a pack that was found damaged.
    ///
    /// # Errors
    /// As [`Self::put_pack`].
    pub async fn repair_pack(&self, id: PackId, bytes: Bytes) -> Result<()> {
        let key = ObjectKey::pack(id);
        check_content(&key, *id.as_bytes(), &bytes).await?;
        self.store.put(&key, bytes, PutMode::Overwrite).await.map(drop)
    }

    /// Stores a page of a checkpoint, durable on return.
    ///
    /// # Errors
    /// As [`Self::put_pack`].
    pub async fn put_page(&self, id: PageId, bytes: Bytes) -> Result<()> {
        self.put(ObjectKey::page(id), *id.as_bytes(), bytes).await
    }

    /// Stores a page of a checkpoint as [`Self::put_pack_deferred`] stores a pack.
    ///
    /// # Errors
    /// As [`Self::put_pack`].
    pub async fn put_page_deferred(&self, id: PageId, bytes: Bytes) -> Result<()> {
        let key = ObjectKey::page(id);
        check_content(&key, *id.as_bytes(), &bytes).await?;
        self.store.put_deferred(&key, bytes).await
    }

    /// Replaces a page that was found damaged.
    ///
    /// # Errors
    /// As [`Self::put_pack`].
    pub async fn repair_page(&self, id: PageId, bytes: Bytes) -> Result<()> {
        let key = ObjectKey::page(id);
        check_content(&key, *id.as_bytes(), &bytes).await?;
        self.store.put(&key, bytes, PutMode::Overwrite).await.map(drop)
    }

    /// Makes durable what was deferred; see [`ObjectStore::sync`] for what a failure means.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn sync(&self) -> Result<()> {
        self.store.sync().await
    }

    /// Returns whether the store holds a pack of this name; says nothing about its bytes.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn has_pack(&self, id: PackId) -> Result<bool> {
        Ok(self.pack_size(id).await?.is_some())
    }

    /// Returns the size of a pack, or `None` when there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn pack_size(&self, id: PackId) -> Result<Option<u64>> {
        self.store.size(&ObjectKey::pack(id)).await
    }

    /// Returns a pack, hashed and found right.
    ///
    /// # Errors
    /// [`StorageError::Damaged`] or [`StorageError::Missing`], naming the pack; those of the store.
    pub async fn read_pack(&self, id: PackId) -> Result<Bytes> {
        self.read(ObjectKey::pack(id), *id.as_bytes()).await
    }

    /// Returns a part of a pack, unchecked: the caller verifies the chunks in it. Shorter at the end of the pack.
    ///
    /// # Errors
    /// [`StorageError::Missing`]; those of the store.
    pub async fn read_pack_range(&self, id: PackId, range: Range<u64>) -> Result<Bytes> {
        let key = ObjectKey::pack(id);
        let bytes = self.store.get_range(&key, range).await?;
        bytes.ok_or_else(|| self.missing(key))
    }

    /// Returns the last `length` bytes of a pack, where its index lies, unchecked.
    ///
    /// # Errors
    /// [`StorageError::Missing`]; those of the store.
    pub async fn read_pack_tail(&self, id: PackId, length: u64) -> Result<Bytes> {
        let key = ObjectKey::pack(id);
        let bytes = self.store.get_tail(&key, length).await?;
        bytes.ok_or_else(|| self.missing(key))
    }

    /// Removes a pack that nobody needs any more; succeeds when there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn remove_pack(&self, id: PackId) -> Result<()> {
        self.store.delete(&ObjectKey::pack(id)).await
    }

    /// Returns every pack that is stored, with its length, in the order of their ids.
    ///
    /// # Errors
    /// Those of the store; a partial list is never returned.
    pub async fn list_packs(&self) -> Result<Vec<(PackId, u64)>> {
        let entries = list_all(&*self.store, ObjectKey::PACKS).await?;
        Ok(entries.into_iter().filter_map(|it| Some((it.key.as_pack()?, it.size))).collect())
    }

    /// Removes a page that no checkpoint needs any more; succeeds when there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn remove_page(&self, id: PageId) -> Result<()> {
        self.store.delete(&ObjectKey::page(id)).await
    }

    /// Returns every page that is stored, with its length, in the order of their ids.
    ///
    /// # Errors
    /// Those of the store; a partial list is never returned.
    pub async fn list_pages(&self) -> Result<Vec<(PageId, u64)>> {
        let entries = list_all(&*self.store, ObjectKey::PAGES).await?;
        Ok(entries.into_iter().filter_map(|it| Some((it.key.as_page()?, it.size))).collect())
    }

    /// Tells whether a page can be had: one that a removal has left in parts cannot, though its parts tell its size.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn has_page(&self, id: PageId) -> Result<bool> {
        if self.store.parts() == 1 {
            return Ok(self.store.size(&ObjectKey::page(id)).await?.is_some());
        }
        match self.read_page(id).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_damage() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Hears from a reader that a part of a pack was not what it should be. Returns whether it is worth to read the pack
    /// again, as a whole.
    pub async fn mend_pack(&self, id: PackId) -> bool {
        self.mend(&ObjectKey::pack(id)).await
    }

    /// Returns a page of a checkpoint, hashed and found right.
    ///
    /// # Errors
    /// As [`Self::read_pack`].
    pub async fn read_page(&self, id: PageId) -> Result<Bytes> {
        self.read(ObjectKey::page(id), *id.as_bytes()).await
    }

    async fn put(&self, key: ObjectKey, hash: [u8; 32], bytes: Bytes) -> Result<()> {
        check_content(&key, hash, &bytes).await?;
        let size = bytes.len() as u64;
        match self.store.put(&key, bytes.clone(), PutMode::IfAbsent).await {
            Ok(PutOutcome::Written) => return Ok(()),
            Ok(PutOutcome::Exists) if self.store.size(&key).await? == Some(size) => return Ok(()),
            Ok(PutOutcome::Exists) | Err(StorageError::Unsupported { .. }) => {}
            Err(error) => return Err(error),
        }
        self.store.put(&key, bytes, PutMode::Overwrite).await.map(drop)
    }

    async fn read(&self, key: ObjectKey, hash: [u8; 32]) -> Result<Bytes> {
        let Some(mut bytes) = self.store.get(&key).await? else { return Err(self.missing(key)) };
        let mut is_right = hash_of(bytes.clone()).await? == hash;
        if !is_right && self.mend(&key).await {
            bytes = self.store.get(&key).await?.ok_or_else(|| self.missing(key.clone()))?;
            is_right = hash_of(bytes.clone()).await? == hash;
        }
        if !is_right {
            let detail = format!(
                "its {} bytes in {} do not have the hash that names them",
                bytes.len(),
                self.store.describe()
            );
            return Err(StorageError::Damaged { key, detail });
        }
        Ok(bytes)
    }

    /// Asks the store to mend an object. What it says about its failure is of no interest: the damage that led here is told.
    async fn mend(&self, key: &ObjectKey) -> bool {
        match self.store.mend(key).await {
            Ok(is_mended) => is_mended,
            Err(error) => {
                tracing::warn!(%key, %error, "a damaged object cannot be mended");
                false
            }
        }
    }

    fn missing(&self, key: ObjectKey) -> StorageError {
        StorageError::Missing { key, store: self.store.describe() }
    }
}

async fn check_content(key: &ObjectKey, hash: [u8; 32], bytes: &Bytes) -> Result<()> {
    if hash_of(bytes.clone()).await? != hash {
        return Err(StorageError::WrongContent { key: key.clone() });
    }
    Ok(())
}

/// Returns the BLAKE3-256 of `bytes`.
pub(crate) async fn hash_of(bytes: Bytes) -> Result<[u8; 32]> {
    if bytes.len() <= HASH_HERE_MAX {
        return Ok(*blake3::hash(&bytes).as_bytes());
    }
    off_runtime(move || Ok(*blake3::hash(&bytes).as_bytes())).await
}
