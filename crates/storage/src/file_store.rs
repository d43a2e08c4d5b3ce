//! The driver `file:`: a folder of a local or mounted disk.
//!
//! *Participants*: any number of handles in any number of processes on one folder. *Goals*: the promises of
//! [`crate::object_store`] through `kill -9`, power cut, full disk and failing disk. *Non-goals*: protection from
//! a user who edits the folder (the readers check hashes), or from another machine's cache of a network disk.
//! *Invariants*:
//!
//! * An object appears under its name only by a rename (or link) of a file that was written and flushed in whole,
//!   so its name never shows a part. Half-written files lie in `.tmp/<writer>/`, which no key can name; the writer
//!   holds a lock on that folder, and whoever opens the store removes the folders that nobody holds.
//! * A put returns after the file, its folder, and every folder on the way that this handle has not yet flushed,
//!   are flushed. `Exists` flushes the folders too: the writer of that object may have died just before.
//! * After a failed flush of a folder or of a group, the handle writes no more. Linux reports a lost page once and
//!   then calls it clean, so a later success would mean nothing. A failed flush of one file only drops that file.
//! * Everything goes through one descriptor of the root, so a folder that is mounted or swapped over the path while
//!   the handle lives is not mistaken for the store. A root that was deleted is an error, never an empty store.
//!
//! Why not OpenDAL's service: `docs/decisions/0003-file-store-is-our-own.md`.

mod flush;
mod group;
mod root;
mod waiting;
mod walk;
mod writer;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rustix::fd::AsFd;
use rustix::io::Errno;

use crate::blocking::{off_runtime, read};
use crate::error::{Result, StorageError};
use crate::files;
use crate::key::{ObjectKey, check_prefix};
use crate::object_store::{
    ObjectEntry, ObjectStore, PutMode, PutOutcome, Waited, check_size, clamp,
};

pub use flush::{DiskFlush, Flush};
use root::Root;
use writer::Writer;

/// What to do when the folder of a store does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Create it.
    CreateIfMissing,
    /// Fail, also when the folder is there but no store was ever written in it: a disk may not be mounted.
    Existing,
}

/// A store in a folder.
#[derive(Debug, Clone)]
pub struct FileStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: Root,
    writer: Writer,
}

impl FileStore {
    /// Opens the store in `folder`; a read-only folder opens, and refuses puts.
    ///
    /// # Errors
    /// [`StorageError::NoStore`] when the folder is missing or (with [`Opening::Existing`]) holds no store;
    /// [`StorageError::UnknownFormat`] when a newer version wrote it; other errors of the system.
    pub fn open(folder: &Path, opening: Opening) -> Result<Self> {
        Self::open_with_flush(folder, opening, Arc::new(DiskFlush))
    }

    /// Opens the store with another way to flush, for tests of failing disks.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with_flush(folder: &Path, opening: Opening, flush: Arc<dyn Flush>) -> Result<Self> {
        let root = Root::open(folder, opening, flush.as_ref())?;
        writer::remove_stale_files(&root);
        Ok(Self { shared: Arc::new(Shared { root, writer: Writer::new(flush) }) })
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        off_runtime(move || work(&shared)).await
    }

    /// Does what waits for nothing but the disk.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        read(move || work(&shared)).await
    }
}

impl Shared {
    /// Opens an object and returns it with its size.
    fn open_object(&self, key: &ObjectKey) -> Result<Option<(rustix::fd::OwnedFd, u64)>> {
        let file = match files::open_at(self.root.fd(), key.as_str(), files::READ) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR) => return self.root.check_present().map(|()| None),
            Err(Errno::LOOP) => {
                let detail = "a symbolic link lies in its place".to_owned();
                return Err(StorageError::Damaged { key: key.clone(), detail });
            }
            Err(error) => return Err(self.root.failure("open", key.as_str(), error)),
        };
        let status = rustix::fs::fstat(&file)
            .map_err(|error| self.root.failure("look at", key.as_str(), error))?;
        let Some(size) = files::size_in(&status) else { return Ok(None) };
        check_size(key, size)?;
        Ok(Some((file, size)))
    }

    /// Reads the part of an object that `part` picks, given its size.
    fn read(&self, key: &ObjectKey, part: impl FnOnce(u64) -> Range<u64>) -> Result<Option<Bytes>> {
        let Some((file, size)) = self.open_object(key)? else { return Ok(None) };
        files::read_range(file.as_fd(), part(size))
            .map(Some)
            .map_err(|error| self.root.failure("read", key.as_str(), error))
    }

    fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        match files::stat_at(self.root.fd(), key.as_str()) {
            Ok(status) => Ok(files::size_in(&status)),
            Err(Errno::NOENT | Errno::NOTDIR) => self.root.check_present().map(|()| None),
            Err(error) => Err(self.root.failure("look at", key.as_str(), error)),
        }
    }

    fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.root.check_present()?;
        files::remove_file(self.root.fd(), key.as_str())
            .map_err(|error| self.root.failure("delete", key.as_str(), error))?;
        self.writer.forget_empty_folders(&self.root, key);
        Ok(())
    }
}

#[async_trait]
impl ObjectStore for FileStore {
    fn describe(&self) -> String {
        self.shared.root.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        check_size(key, bytes.len() as u64)?;
        let key = key.clone();
        self.run(move |shared| shared.writer.put(&shared.root, &key, &bytes, mode)).await
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        check_size(key, bytes.len() as u64)?;
        let key = key.clone();
        self.run(move |shared| shared.writer.put_deferred(&shared.root, &key, &bytes)).await
    }

    async fn sync(&self) -> Result<()> {
        self.run(|shared| shared.writer.sync(&shared.root)).await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        let key = key.clone();
        self.read(move |shared| shared.read(&key, |size| 0..size)).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        let key = key.clone();
        self.read(move |shared| shared.read(&key, |size| clamp(&range, size))).await
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        let key = key.clone();
        self.read(move |shared| shared.read(&key, |size| size.saturating_sub(length)..size)).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        let key = key.clone();
        self.read(move |shared| shared.size(&key)).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        check_prefix(prefix)?;
        let (prefix, start_after) = (prefix.to_owned(), start_after.unwrap_or("").to_owned());
        self.run(move |shared| walk::list(&shared.root, &prefix, &start_after, limit)).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        let key = key.clone();
        self.run(move |shared| shared.delete(&key)).await
    }

    async fn wait_for(&self, key: &ObjectKey, patience: Duration) -> Result<Waited> {
        self.wait_in_folder(key, patience).await
    }
}
