//! The trait of every store: bytes under keys.
//!
//! *Participants*: drivers (a folder, memory, a server, a cloud service) below; content store, commit log and
//! decorators above. *Goals*: whole objects only, a known answer or an error, durability that can be relied on.
//! *Non-goals*: partial writes, appending, renaming, versions, metadata. *Invariants*, which `conformance` tests:
//!
//! * **Whole.** A reader sees an object as one put left it, or not at all, through crashes of any party.
//! * **Durable.** When [`ObjectStore::put`] returns, the object survives a power cut as far as the medium can
//!   promise; `Exists` says so of the object that is there. What [`ObjectStore::put_deferred`] took counts as
//!   durable only after [`ObjectStore::sync`] returned.
//! * **Exclusive.** Of all puts [`PutMode::IfAbsent`] to one key, at most one is told [`PutOutcome::Written`], and
//!   its bytes stay until somebody overwrites or deletes. A put that fails may still have happened.
//! * **Absence is an answer, failure is an error.** `None` and a short list say that the store looked and found
//!   nothing; a store that cannot look returns an error.
//! * **Ordered.** Lists are in the byte order of the keys.
//! * **Bounded.** Nothing larger than [`OBJECT_SIZE_MAX`] is written or read.
//!
//! Dropping a future of these methods stops the waiting, not always the work: a put may still happen.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::direct::{Direct, SignedRequest};
use crate::error::{Result, StorageError};
use crate::key::ObjectKey;

/// Largest object in bytes: far above a pack, far below what would hurt to hold in memory.
pub const OBJECT_SIZE_MAX: u64 = 64 << 20;

/// What a put does when the object exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutMode {
    /// Replaces it.
    Overwrite,
    /// Leaves it as it is; the decision is atomic.
    IfAbsent,
}

/// What a put did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object holds the bytes of this put.
    Written,
    /// An object was there and is unchanged.
    Exists,
}

/// What [`ObjectStore::wait_for`] has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The object is there, or something has come that may be it.
    Come,
    /// Nothing has come in all the time; this store can be waited at.
    InVain,
    /// It is not there, and this store cannot be waited at: ask again later.
    Unable,
}

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectEntry {
    /// Key of the object.
    pub key: ObjectKey,
    /// Size of the object in bytes.
    pub size: u64,
}

/// A store of objects; the promises are those of this module.
#[async_trait]
pub trait ObjectStore: Send + Sync + fmt::Debug {
    /// Names the store in error texts, for example `file store /mnt/disk`; never contains a secret.
    fn describe(&self) -> String;

    /// Stores an object, durable on return.
    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome>;

    /// Takes an object whose key names its content, to be made durable with others by [`Self::sync`].
    ///
    /// Until then it may be visible or not, and a crash may lose it whole. An existing object of the key may be
    /// kept or replaced, which is the same thing, because the key names the content.
    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        match self.put(key, bytes.clone(), PutMode::IfAbsent).await {
            Err(StorageError::Unsupported { .. }) => {
                self.put(key, bytes, PutMode::Overwrite).await.map(drop)
            }
            result => result.map(drop),
        }
    }

    /// Makes everything durable and visible that [`Self::put_deferred`] took before this call, on this handle.
    ///
    /// When it fails, nothing that was deferred counts as stored, and the handle fails every later call of
    /// `put_deferred` and `sync` until it is opened again: no later success may cover lost data.
    async fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the object, or `None` when there is none.
    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>>;

    /// Returns the part of the object that lies in `range`: fewer bytes than asked at its end, no bytes past it
    /// or for an empty range; `None` when there is no object.
    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>>;

    /// Returns the last `length` bytes of the object, or all when it is shorter; `None` when there is no object.
    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        match self.size(key).await? {
            Some(size) => self.get_range(key, size.saturating_sub(length)..size).await,
            None => Ok(None),
        }
    }

    /// Returns the size of the object in bytes, or `None` when there is none.
    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>>;

    /// Returns the first `limit` objects whose keys begin with `prefix` and are greater than `start_after`, in
    /// the byte order of keys. Fewer than `limit` means that there are no more.
    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>>;

    /// Removes the object; succeeds when there is none.
    async fn delete(&self, key: &ObjectKey) -> Result<()>;

    /// Tells whether an object is there, and where it is not, waits for it for `patience` at most, if this store can tell by
    /// itself when something comes. For those who wait for news, and a hint only: it may be wrong in both ways, since nobody
    /// makes sure at the same time that the store is still what it was. Nothing follows from it but to look, now or later.
    /// Without patience it is a call like any other. Whoever has some asks once without it first: a wait is not counted among the
    /// calls that a store bears at once, and a store that cannot be waited at may not know that it is asked to.
    async fn wait_for(&self, key: &ObjectKey, _patience: Duration) -> Result<Waited> {
        Ok(if self.size(key).await?.is_some() { Waited::Come } else { Waited::Unable })
    }

    /// Signs a request that whoever has it may send to the store for so long; nothing where this store cannot, or its users are not to
    /// reach it. Nobody is asked: whether the object is there says the store's answer to that request.
    async fn sign_request(
        &self,
        _key: &ObjectKey,
        _direct: Direct,
        _lifetime: Duration,
    ) -> Result<Option<SignedRequest>> {
        Ok(None)
    }

    /// Returns into how many parts an object is divided that is stored here, each so many times smaller than the object. Copies of it
    /// do not count.
    fn parts(&self) -> usize {
        1
    }

    /// Hears from a reader that a part of an object whose key names its content was not what it should be. A store
    /// that has the object more than once, or keeps parts of it, compares all with the key and replaces what is wrong.
    /// Returns whether it is worth to read again.
    async fn mend(&self, _key: &ObjectKey) -> Result<bool> {
        Ok(false)
    }
}

/// Collects a list page by page; for prefixes whose objects are known to be few.
///
/// # Errors
/// Any error of a page; a partial list is never returned.
pub async fn list_all(store: &dyn ObjectStore, prefix: &str) -> Result<Vec<ObjectEntry>> {
    const PAGE: usize = 1000;
    let mut entries: Vec<ObjectEntry> = Vec::new();
    loop {
        let start_after = entries.last().map(|entry| entry.key.clone());
        let page = store.list(prefix, start_after.as_ref().map(ObjectKey::as_str), PAGE).await?;
        let is_last = page.len() < PAGE;
        entries.extend(page);
        if is_last {
            return Ok(entries);
        }
    }
}

/// Refuses an object that is larger than any may be.
pub(crate) fn check_size(key: &ObjectKey, size: u64) -> Result<()> {
    if size > OBJECT_SIZE_MAX {
        let detail = format!("no object has more than {OBJECT_SIZE_MAX} bytes");
        return Err(StorageError::TooLarge { key: key.clone(), detail });
    }
    Ok(())
}

/// What a driver that reads ranges asks for to have all of an object, and to see when that is more than an object may be.
#[cfg_attr(not(feature = "stores"), allow(dead_code, reason = "drivers in a network use it"))]
pub(crate) const WHOLE: Range<u64> = 0..OBJECT_SIZE_MAX + 1;

/// Gives back what was read of [`WHOLE`], unless no object may be so large.
#[cfg_attr(not(feature = "stores"), allow(dead_code, reason = "drivers in a network use it"))]
pub(crate) fn whole(key: &ObjectKey, found: Option<Bytes>) -> Result<Option<Bytes>> {
    if let Some(bytes) = &found {
        check_size(key, bytes.len() as u64)?;
    }
    Ok(found)
}

/// Returns what a store is asked for to read `range`: no more than an object may have; `None` for nothing, which protocols
/// cannot ask for.
#[cfg_attr(not(feature = "stores"), allow(dead_code, reason = "drivers in a network use it"))]
pub(crate) fn askable(range: &Range<u64>) -> Option<Range<u64>> {
    let end = range.end.min(range.start.saturating_add(OBJECT_SIZE_MAX));
    (range.start < end).then_some(range.start..end)
}

/// Returns the part of `0..size` that lies in `range`; empty where they do not meet.
pub(crate) fn clamp(range: &Range<u64>, size: u64) -> Range<u64> {
    let end = range.end.min(size);
    range.start.min(end)..end
}

#[async_trait]
impl<S: ObjectStore + ?Sized> ObjectStore for Arc<S> {
    fn describe(&self) -> String {
        (**self).describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        (**self).put(key, bytes, mode).await
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        (**self).put_deferred(key, bytes).await
    }

    async fn sync(&self) -> Result<()> {
        (**self).sync().await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        (**self).get(key).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        (**self).get_range(key, range).await
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        (**self).get_tail(key, length).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        (**self).size(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        (**self).list(prefix, start_after, limit).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        (**self).delete(key).await
    }

    async fn wait_for(&self, key: &ObjectKey, patience: Duration) -> Result<Waited> {
        (**self).wait_for(key, patience).await
    }

    async fn sign_request(
        &self,
        key: &ObjectKey,
        direct: Direct,
        lifetime: Duration,
    ) -> Result<Option<SignedRequest>> {
        (**self).sign_request(key, direct, lifetime).await
    }

    fn parts(&self) -> usize {
        (**self).parts()
    }

    async fn mend(&self, key: &ObjectKey) -> Result<bool> {
        (**self).mend(key).await
    }
}
