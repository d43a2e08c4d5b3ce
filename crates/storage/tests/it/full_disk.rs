//! Disk full, and a disk mounted read-only: on a tiny file system of its own where the system allows it, in a process
//! of its own so that nothing stays mounted; and by injected faults everywhere.

use std::process::Command;
use std::sync::Arc;

use futures_util::FutureExt;
use storage::faulty::{Call, Fault, Faulty, Operation};
use storage::object_store::list_all;
use storage::{
    ContentStore, ObjectKey, ObjectStore, PutMode, PutOutcome, StorageError, open_existing,
};

use crate::support::{file_store, memory, pack};

const SMALL_DISK: &str = "SYNCLINE_TEST_SMALL_DISK";

#[test]
fn a_full_and_a_read_only_disk_are_named_and_harm_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "mount -t tmpfs -o size=2m,nr_inodes=200 tmpfs \"$1\" || exit 77; shift; exec \"$@\"";
    let status = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "full_disk::small_disk_process", "--nocapture"])
        .env(SMALL_DISK, folder.path())
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) if status.code() == Some(101) => panic!("the process on the small disk failed"),
        // No rights to mount, or no such program: the injected faults below remain.
        other => println!("no small disk to test on: {other:?}"),
    }
}

/// Not a claim of its own: runs in the process that has the small disk.
#[test]
fn small_disk_process() {
    let Some(folder) = std::env::var_os(SMALL_DISK) else { return };
    let store = file_store(folder.as_ref());
    let content = ContentStore::new(Arc::clone(&store));
    let mut stored = Vec::new();
    let error = (0..100)
        .find_map(|seed| {
            let (id, bytes) = pack(seed, 300_000);
            match content.put_pack(id, bytes).now_or_never().unwrap() {
                Ok(()) => {
                    stored.push(id);
                    None
                }
                Err(error) => Some(error),
            }
        })
        .expect("the disk gets full");
    assert!(matches!(error, StorageError::NoSpace { .. }), "{error}");
    assert!(stored.len() >= 4, "{}", stored.len());
    let (id, bytes) = pack(1000, 300_000);
    let deferred = content.put_pack_deferred(id, bytes).now_or_never().unwrap();
    assert!(matches!(deferred, Err(StorageError::NoSpace { .. })), "{deferred:?}");
    content.sync().now_or_never().unwrap().unwrap();
    assert_intact(&content, &stored);

    // Space comes back, and with it the store.
    store.delete(&ObjectKey::pack(stored.remove(0))).now_or_never().unwrap().unwrap();
    let (id, bytes) = pack(2000, 250_000);
    content.put_pack(id, bytes).now_or_never().unwrap().unwrap();
    stored.push(id);
    assert_intact(&content, &stored);
    drop((store, content));
    read_only_disk(&folder, &stored);
}

fn read_only_disk(folder: &std::ffi::OsStr, stored: &[model::PackId]) {
    let status = Command::new("mount").args(["-o", "remount,ro"]).arg(folder).status().unwrap();
    assert!(status.success());
    let store = open_existing(&format!("file:{}", folder.to_str().unwrap())).unwrap();
    let content = ContentStore::new(Arc::clone(&store));
    assert_intact(&content, stored);
    let (id, bytes) = pack(3000, 10);
    let result = content.put_pack(id, bytes).now_or_never().unwrap();
    assert!(matches!(result, Err(StorageError::ReadOnly { .. })), "{result:?}");
    let key = ObjectKey::pack(stored[0]);
    let result = store.put(&key, "x".into(), PutMode::IfAbsent).now_or_never().unwrap();
    assert_eq!(result.unwrap(), PutOutcome::Exists);
    let result = store.delete(&key).now_or_never().unwrap();
    assert!(matches!(result, Err(StorageError::ReadOnly { .. })), "{result:?}");
}

fn assert_intact(content: &ContentStore, stored: &[model::PackId]) {
    for id in stored {
        content.read_pack(*id).now_or_never().unwrap().unwrap();
    }
    let listed = list_all(content.object_store().as_ref(), "").now_or_never().unwrap().unwrap();
    assert_eq!(listed.len(), stored.len(), "no half object is visible");
}

#[tokio::test]
async fn injected_lack_of_space_and_read_only_are_told_and_store_nothing() {
    for (fault, is_expected) in [
        (
            Fault::NoSpace,
            (|e| matches!(e, StorageError::NoSpace { .. })) as fn(&StorageError) -> bool,
        ),
        (Fault::ReadOnly, |e| matches!(e, StorageError::ReadOnly { .. })),
    ] {
        let plan = move |call: &Call<'_>| match call.operation {
            Operation::Put | Operation::PutDeferred | Operation::Sync => fault,
            _ => Fault::None,
        };
        let below = memory();
        let store = Arc::new(Faulty::new(Arc::clone(&below), plan));
        let content = ContentStore::new(Arc::clone(&store) as Arc<dyn ObjectStore>);
        let (id, bytes) = pack(1, 1000);
        let error = content.put_pack(id, bytes.clone()).await.unwrap_err();
        assert!(is_expected(&error) && !error.is_retryable(), "{error}");
        assert!(is_expected(&content.put_pack_deferred(id, bytes).await.unwrap_err()));
        assert!(is_expected(&content.sync().await.unwrap_err()));
        assert!(list_all(below.as_ref(), "").await.unwrap().is_empty());
    }
}
