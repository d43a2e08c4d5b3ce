//! Kill -9, and what it leaves behind.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::str::FromStr;

use futures_util::FutureExt;
use model::PackId;
use storage::file_store::{FileStore, Opening};
use storage::object_store::list_all;
use storage::{ContentStore, ObjectKey, ObjectStore, PutMode};

use crate::support::{all_files, file_store, key, pack};

const WRITER: &str = "SYNCLINE_TEST_WRITER_FOLDER";

/// Not a claim of its own: the program that other tests start and kill. It writes packs for ever, one by one and in
/// groups, and prints the id of each that it was told is stored.
#[test]
fn writer_process_of_the_kill_tests() {
    let Some(folder) = std::env::var_os(WRITER) else { return };
    let content = ContentStore::new(file_store(folder.as_ref()));
    for round in 0.. {
        let seed = (u64::from(std::process::id()) << 32) | (round * 10);
        let (id, bytes) = pack(seed, 300_000);
        content.put_pack(id, bytes).now_or_never().expect("no runtime").unwrap();
        println!("stored {id}");
        let group: Vec<_> = (1..6).map(|index| pack(seed + index, 200_000)).collect();
        for (id, bytes) in &group {
            let put = content.put_pack_deferred(*id, bytes.clone());
            put.now_or_never().expect("no runtime").unwrap();
        }
        content.sync().now_or_never().expect("no runtime").unwrap();
        for (id, _) in group {
            println!("stored {id}");
        }
    }
}

/// Starts a writer, kills it after it acknowledged `count` packs, and returns their ids.
fn run_and_kill(folder: &std::path::Path, count: usize) -> Vec<PackId> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashes::writer_process_of_the_kill_tests", "--nocapture"])
        .env(WRITER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ids = Vec::new();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut lines = output.lines();
    while ids.len() < count {
        let line = lines.next().expect("the writer goes on").unwrap();
        if let Some((_, id)) = line.split_once("stored ") {
            ids.push(PackId::from_str(id).unwrap());
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it acknowledged between the last line we read and its death.
    ids.extend(
        lines
            .map_while(Result::ok)
            .filter_map(|line| PackId::from_str(line.split_once("stored ")?.1).ok()),
    );
    ids
}

#[tokio::test]
async fn killed_writers_lose_nothing_acknowledged_and_leave_nothing_half_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..20 {
        acknowledged.extend(run_and_kill(folder.path(), 1 + round % 7));
    }
    let store = file_store(folder.path());
    let content = ContentStore::new(store.clone());
    for id in acknowledged {
        content.read_pack(id).await.unwrap();
    }
    for entry in list_all(store.as_ref(), "").await.unwrap() {
        content.read_pack(entry.key.as_pack().expect("only packs were written")).await.unwrap();
    }
    let visible = list_all(store.as_ref(), "").await.unwrap().len();
    let files = all_files(folder.path());
    assert_eq!(files.len(), visible + 1, "opening removed what was unfinished: {files:?}");
}

#[tokio::test]
async fn unfinished_files_are_never_visible_and_only_those_of_the_dead_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let living = file_store(folder.path());
    let (id, bytes) = pack(1, 5000);
    living.put_deferred(&ObjectKey::pack(id), bytes.clone()).await.unwrap();
    let dead = folder.path().join(".tmp/999999-0");
    std::fs::create_dir(&dead).unwrap();
    std::fs::write(dead.join("1"), "half a pa").unwrap();
    assert!(list_all(living.as_ref(), "").await.unwrap().is_empty());

    let opened = file_store(folder.path());
    assert!(list_all(opened.as_ref(), "").await.unwrap().is_empty());
    assert!(!dead.exists());
    living.sync().await.unwrap();
    assert_eq!(opened.get(&ObjectKey::pack(id)).await.unwrap(), Some(bytes));
}

#[test]
fn handles_that_open_write_and_close_at_once_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let folder = folder.path();
            scope.spawn(move || {
                for round in 0..100 {
                    let store = file_store(folder);
                    let key = ObjectKey::log_slot(thread * 1000 + round, 0);
                    let put = store.put(&key, "x".into(), PutMode::IfAbsent);
                    put.now_or_never().expect("no runtime").unwrap();
                }
            });
        }
    });
    let left: Vec<_> = std::fs::read_dir(folder.path().join(".tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn what_was_deferred_and_not_synced_vanishes_with_the_handle() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path());
    let (id, bytes) = pack(1, 5000);
    store.put_deferred(&ObjectKey::pack(id), bytes).await.unwrap();
    drop(store);
    assert_eq!(all_files(folder.path()), [std::path::Path::new(".format")]);
}

#[tokio::test]
async fn a_writer_whose_unfinished_files_were_removed_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path());
    store.put(&key("a"), "x".into(), PutMode::Overwrite).await.unwrap();
    std::fs::remove_dir_all(folder.path().join(".tmp")).unwrap();
    store.put(&key("b"), "y".into(), PutMode::IfAbsent).await.unwrap();
    assert_eq!(store.get(&key("b")).await.unwrap().as_deref(), Some(&b"y"[..]));
}

#[tokio::test]
async fn a_writer_whose_own_folder_was_removed_makes_another_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path());
    store.put(&key("a"), "x".into(), PutMode::Overwrite).await.unwrap();
    let own = std::fs::read_dir(folder.path().join(".tmp")).unwrap().next().unwrap().unwrap();
    std::fs::remove_dir(own.path()).unwrap();
    store.put(&key("b"), "y".into(), PutMode::IfAbsent).await.unwrap();
    assert!(own.path().exists());
    assert_eq!(store.get(&key("b")).await.unwrap().as_deref(), Some(&b"y"[..]));
}

#[tokio::test]
async fn a_folder_that_held_no_store_is_not_taken_for_a_known_one() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("missing")] {
        let error = FileStore::open(&path, Opening::Existing).unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert!(error.to_string().contains("mounted"), "{error}");
    }
    let store = file_store(folder.path());
    store.put(&key("a"), "x".into(), PutMode::Overwrite).await.unwrap();
    FileStore::open(folder.path(), Opening::Existing).unwrap();
}

#[tokio::test]
async fn a_deleted_root_is_an_error_and_not_an_empty_store() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("store");
    let store = file_store(&root);
    store.put(&key("a"), "x".into(), PutMode::Overwrite).await.unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    std::fs::create_dir(&root).unwrap();
    assert!(store.get(&key("a")).await.is_err());
    assert!(store.size(&key("a")).await.is_err());
    assert!(store.list("", None, 10).await.is_err());
    assert!(store.delete(&key("a")).await.is_err());
    assert!(store.put(&key("a"), "y".into(), PutMode::IfAbsent).await.is_err());
}
