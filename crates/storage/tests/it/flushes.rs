//! Disks that fail to flush.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use storage::file_store::{DiskFlush, FileStore, Flush, Opening};
use storage::{ObjectKey, ObjectStore, PutMode, StorageError};

use crate::support::{all_files, key, pack};

/// Fails the next flush of a kind once, as Linux does; counts all.
#[derive(Debug, Default)]
struct FailingFlush {
    file_fails: AtomicBool,
    folder_fails: AtomicBool,
    files: AtomicU32,
    folders: AtomicU32,
    file_systems: AtomicU32,
}

impl Flush for FailingFlush {
    fn file(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        self.files.fetch_add(1, Ordering::Relaxed);
        if self.file_fails.swap(false, Ordering::Relaxed) {
            Err(Errno::IO)
        } else {
            DiskFlush.file(file)
        }
    }

    fn folder(&self, folder: BorrowedFd<'_>) -> Result<(), Errno> {
        self.folders.fetch_add(1, Ordering::Relaxed);
        if self.folder_fails.swap(false, Ordering::Relaxed) {
            Err(Errno::IO)
        } else {
            DiskFlush.folder(folder)
        }
    }

    fn file_system(&self, folder: BorrowedFd<'_>) -> Result<(), Errno> {
        self.file_systems.fetch_add(1, Ordering::Relaxed);
        DiskFlush.file_system(folder)
    }
}

fn open() -> (tempfile::TempDir, Arc<FailingFlush>, FileStore) {
    let folder = tempfile::tempdir().unwrap();
    let flush = Arc::new(FailingFlush::default());
    let store = FileStore::open_with_flush(
        folder.path(),
        Opening::CreateIfMissing,
        Arc::clone(&flush) as _,
    );
    (folder, flush, store.unwrap())
}

#[tokio::test]
async fn a_file_that_cannot_be_flushed_never_gets_its_name() {
    let (folder, flush, store) = open();
    store.put(&key("before"), "x".into(), PutMode::Overwrite).await.unwrap();
    flush.file_fails.store(true, Ordering::Relaxed);
    let result = store.put(&key("a"), "x".into(), PutMode::IfAbsent).await;
    assert!(matches!(result, Err(StorageError::Failed { .. })), "{result:?}");
    assert_eq!(store.get(&key("a")).await.unwrap(), None);
    assert_eq!(all_files(folder.path()).len(), 2, "the file is gone");
    store.put(&key("a"), "x".into(), PutMode::IfAbsent).await.unwrap();
}

#[tokio::test]
async fn after_a_folder_that_cannot_be_flushed_the_handle_writes_no_more() {
    let (folder, flush, store) = open();
    store.put(&key("before"), "x".into(), PutMode::Overwrite).await.unwrap();
    flush.folder_fails.store(true, Ordering::Relaxed);
    assert!(store.put(&key("a"), "x".into(), PutMode::IfAbsent).await.is_err());
    // The object may be visible, but "it exists" would claim that it is durable.
    for result in [
        store.put(&key("a"), "x".into(), PutMode::IfAbsent).await.map(drop),
        store.put(&key("b"), "x".into(), PutMode::Overwrite).await.map(drop),
        store.put_deferred(&key("c"), "x".into()).await,
        store.sync().await,
    ] {
        assert!(matches!(result, Err(StorageError::NotDurable { .. })), "{result:?}");
    }
    assert!(store.get(&key("before")).await.unwrap().is_some(), "reading goes on");
    let reopened = FileStore::open(folder.path(), Opening::Existing).unwrap();
    reopened.put(&key("a"), "x".into(), PutMode::IfAbsent).await.unwrap();
}

#[tokio::test]
async fn after_a_group_that_cannot_be_flushed_no_later_sync_claims_it() {
    let (folder, flush, store) = open();
    let (id, bytes) = pack(1, 1000);
    store.put_deferred(&ObjectKey::pack(id), bytes).await.unwrap();
    flush.file_fails.store(true, Ordering::Relaxed);
    assert!(store.sync().await.is_err());
    assert!(matches!(store.sync().await, Err(StorageError::NotDurable { .. })));
    assert_eq!(store.get(&ObjectKey::pack(id)).await.unwrap(), None);
    assert_eq!(all_files(folder.path()).len(), 1);
}

#[tokio::test]
async fn every_put_flushes_its_file_and_its_folder_and_new_folders_once() {
    let (_folder, flush, store) = open();
    store.put(&key("warm"), "x".into(), PutMode::Overwrite).await.unwrap();
    let counts =
        || (flush.files.swap(0, Ordering::Relaxed), flush.folders.swap(0, Ordering::Relaxed));
    counts();
    store.put(&key("a/b/c"), "x".into(), PutMode::IfAbsent).await.unwrap();
    assert_eq!(counts(), (1, 3), "a/b, a and the root");
    store.put(&key("a/b/d"), "x".into(), PutMode::IfAbsent).await.unwrap();
    assert_eq!(counts(), (1, 1), "a/b");
    store.put(&key("a/b/d"), "y".into(), PutMode::IfAbsent).await.unwrap();
    assert_eq!(counts(), (0, 1), "an object that exists is durable, too");
}

#[tokio::test]
async fn a_group_flushes_the_file_system_once() {
    let (_folder, flush, store) = open();
    for seed in 0..60 {
        let (id, bytes) = pack(seed, 1000);
        store.put_deferred(&ObjectKey::pack(id), bytes).await.unwrap();
    }
    assert_eq!(flush.file_systems.load(Ordering::Relaxed), 0);
    store.sync().await.unwrap();
    assert_eq!(flush.file_systems.load(Ordering::Relaxed), 1);
}
