//! The file store beside other programs, users and versions.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

use futures_util::FutureExt;
use storage::{ObjectKey, PutMode, PutOutcome, StorageError, open, open_existing};

use crate::support::{file_store, key, memory, pack};

#[tokio::test]
async fn urls_of_one_store_share_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("with space");
    let path = path.to_str().unwrap();
    let one = open(&format!("file:{path}")).unwrap();
    one.put(&key("a"), "x".into(), PutMode::Overwrite).await.unwrap();
    let two = open_existing(&format!("file://{path}")).unwrap();
    assert_eq!(two.get(&key("a")).await.unwrap().as_deref(), Some(&b"x"[..]));
    assert!(two.describe().contains(path));

    let one = open("memory:shared").unwrap();
    one.put(&key("a"), "x".into(), PutMode::Overwrite).await.unwrap();
    assert!(open("memory:shared").unwrap().get(&key("a")).await.unwrap().is_some());
    assert!(open("memory:other").unwrap().get(&key("a")).await.unwrap().is_none());
    assert!(memory().get(&key("a")).await.unwrap().is_none());
}

#[test]
fn many_handles_and_threads_race_for_a_slot_and_one_wins() {
    let folder = tempfile::tempdir().unwrap();
    for slot in 0..30 {
        let barrier = Arc::new(std::sync::Barrier::new(4));
        let racers: Vec<_> = (0..4)
            .map(|racer| {
                let (store, barrier) = (file_store(folder.path()), Arc::clone(&barrier));
                std::thread::spawn(move || {
                    let (_, bytes) = pack(racer, 3000);
                    let key = ObjectKey::log_slot(slot, 0);
                    barrier.wait();
                    let put = store.put(&key, bytes.clone(), PutMode::IfAbsent);
                    (put.now_or_never().expect("no runtime").unwrap(), bytes)
                })
            })
            .collect();
        let results: Vec<_> = racers.into_iter().map(|racer| racer.join().unwrap()).collect();
        let winners: Vec<_> = results.iter().filter(|(o, _)| *o == PutOutcome::Written).collect();
        assert_eq!(winners.len(), 1, "slot {slot}");
        let store = file_store(folder.path());
        let found = store.get(&ObjectKey::log_slot(slot, 0)).now_or_never().unwrap().unwrap();
        assert_eq!(found.as_ref(), Some(&winners[0].1));
    }
}

#[test]
fn a_reader_beside_an_overwriting_writer_sees_whole_objects_only() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path());
    let versions: Vec<_> =
        (0..2).map(|seed| pack(seed, 200_000 + seed as usize * 1000).1).collect();
    let put = |bytes| store.put(&key("a"), bytes, PutMode::Overwrite).now_or_never().unwrap();
    put(versions[0].clone()).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..100 {
                put(versions[round % 2].clone()).unwrap();
            }
        });
        while !writer.is_finished() {
            let found = store.get(&key("a")).now_or_never().unwrap().unwrap().unwrap();
            assert!(versions.contains(&found));
        }
    });
}

#[tokio::test]
async fn stored_files_belong_to_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(&folder.path().join("store"));
    store.put(&key("a/b"), "x".into(), PutMode::Overwrite).await.unwrap();
    for (path, mode) in [("store", 0o700), ("store/a", 0o700), ("store/a/b", 0o600)] {
        let found = std::fs::metadata(folder.path().join(path)).unwrap().mode() & 0o777;
        assert_eq!(found, mode, "{path}");
    }
}

#[tokio::test]
async fn strangers_in_the_folder_are_neither_listed_nor_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path());
    store.put(&key("a"), "x".into(), PutMode::Overwrite).await.unwrap();
    std::fs::write(folder.path().join("Thumbs.db"), "x").unwrap();
    std::fs::write(folder.path().join(".hidden"), "x").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
    let listed = store.list("", None, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert!(matches!(store.get(&key("link")).await, Err(StorageError::Damaged { .. })));
}

#[tokio::test]
async fn a_key_that_is_a_folder_of_another_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path());
    store.put(&key("a/b"), "x".into(), PutMode::Overwrite).await.unwrap();
    for mode in [PutMode::Overwrite, PutMode::IfAbsent] {
        for bad in ["a", "a/b/c"] {
            let result = store.put(&key(bad), "y".into(), mode).await;
            assert!(matches!(result, Err(StorageError::InvalidKey { .. })), "{bad} {result:?}");
        }
    }
    assert_eq!(store.get(&key("a/b")).await.unwrap().as_deref(), Some(&b"x"[..]));
}

#[tokio::test]
async fn a_store_of_a_newer_format_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".format"), "syncline file store 2\n").unwrap();
    let error = open(&format!("file:{}", folder.path().display())).unwrap_err();
    assert!(error.to_string().contains("syncline file store 2"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_store_without_write_permission_is_read_and_refuses_puts() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path());
    store.put(&key("a"), "x".into(), PutMode::Overwrite).await.unwrap();
    drop(store);
    let set_mode = |mode| {
        for path in [".tmp", "."] {
            let path = folder.path().join(path);
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set_mode(0o500);
    // The administrator may write anywhere; full_disk.rs tests a disk that is mounted read-only.
    let is_refused = std::fs::write(folder.path().join("try"), "").is_err();
    let store = file_store(folder.path());
    assert_eq!(store.get(&key("a")).await.unwrap().as_deref(), Some(&b"x"[..]));
    if is_refused {
        let result = store.put(&key("b"), "y".into(), PutMode::IfAbsent).await;
        assert!(matches!(result, Err(StorageError::PermissionDenied { .. })), "{result:?}");
        let exists = store.put(&key("a"), "y".into(), PutMode::IfAbsent).await.unwrap();
        assert_eq!(exists, PutOutcome::Exists);
    }
    set_mode(0o700);
}

#[tokio::test]
async fn deleting_the_last_object_removes_the_folders_that_were_made_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path());
    store.put(&key("probe/x/a"), "1".into(), PutMode::IfAbsent).await.unwrap();
    store.put(&key("probe/x/b"), "1".into(), PutMode::IfAbsent).await.unwrap();
    store.delete(&key("probe/x/a")).await.unwrap();
    assert!(folder.path().join("probe/x").exists());
    store.delete(&key("probe/x/b")).await.unwrap();
    assert!(!folder.path().join("probe").exists());
}

#[test]
fn puts_beside_deletes_of_the_same_folder_succeed() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let store = file_store(folder.path());
            scope.spawn(move || {
                for _ in 0..100 {
                    let key = key(&format!("probe/x/{thread}"));
                    let put = store.put(&key, "1".into(), PutMode::Overwrite);
                    put.now_or_never().unwrap().unwrap();
                    assert!(store.get(&key).now_or_never().unwrap().unwrap().is_some());
                    store.delete(&key).now_or_never().unwrap().unwrap();
                }
            });
        }
    });
}
