//! Who waits for an object hears of it: at once in a folder, in whatever process it is made.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join;
use storage::layers::{Lazy, Paced, Paces, Scoped, Timed};
use storage::{ObjectStore, PutMode, Waited};

use crate::paces::Paused;
use crate::support::{file_store, key, memory};

/// Far more than it takes, and far less than a test waits for.
const LONG: Duration = Duration::from_secs(3600);
/// Sooner than the next look at a folder of which the kernel says nothing.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn new_object_in_a_folder_is_heard_of_at_once_however_deep_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = (file_store(folder.path()), file_store(folder.path()));
    let start = Instant::now();
    for name in ["top", "a/b/c/d", "a/b/c/e", "a/x", "log/00000000000000000007/r0"] {
        let key = key(name);
        assert_eq!(reader.wait_for(&key, Duration::ZERO).await.unwrap(), Waited::InVain, "{name}");
        let put = async {
            // The reader has its ear at the folder when it is asked for the first time, or looks after it has.
            for noise in 0..20 {
                let noise = crate::support::key(&format!("{name}.noise/{noise}"));
                writer.put(&noise, "x".into(), PutMode::IfAbsent).await.unwrap();
            }
            writer.put(&key, "x".into(), PutMode::IfAbsent).await.unwrap();
        };
        let (waited, ()) = join(reader.wait_for(&key, LONG), put).await;
        assert_eq!(waited.unwrap(), Waited::Come, "{name}");
        assert_eq!(reader.wait_for(&key, LONG).await.unwrap(), Waited::Come, "it is there");
    }
    assert!(start.elapsed() < SOON, "{:?}: it was not heard but found", start.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folders_that_are_made_while_the_reader_begins_to_listen_hide_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = (file_store(folder.path()), file_store(folder.path()));
    for round in 0..50 {
        let start = Instant::now();
        let (noise, key) =
            (key(&format!("{round}/b/c/noise")), key(&format!("{round}/b/c/object")));
        let (wanted, writer) = (key.clone(), writer.clone());
        let put = tokio::spawn(async move {
            for one in [noise, wanted] {
                writer.put(&one, "x".into(), PutMode::IfAbsent).await.unwrap();
            }
        });
        let (waited, put) = join(reader.wait_for(&key, LONG), put).await;
        put.unwrap();
        assert_eq!(waited.unwrap(), Waited::Come, "{round}");
        assert!(start.elapsed() < SOON, "{:?}: it was not heard but found", start.elapsed());
    }
}

#[tokio::test]
async fn object_of_another_process_is_heard_of() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path());
    store.put(&key("log/1/r0"), "x".into(), PutMode::IfAbsent).await.unwrap();
    let path = folder.path().join("log");
    let start = Instant::now();
    let make = tokio::task::spawn_blocking(move || {
        let script = "mkdir 2 && touch 2/.part && mv 2/.part 2/r0";
        std::process::Command::new("sh").args(["-c", script]).current_dir(path).status()
    });
    let (waited, made) = join(store.wait_for(&key("log/2/r0"), LONG), make).await;
    assert!(made.unwrap().unwrap().success());
    assert_eq!(waited.unwrap(), Waited::Come);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_vain_is_told_so_when_the_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path());
    let start = tokio::time::Instant::now();
    assert_eq!(store.wait_for(&key("a"), LONG).await.unwrap(), Waited::InVain);
    assert_eq!(start.elapsed(), LONG);
}

#[tokio::test]
async fn folder_that_is_gone_is_no_folder_in_which_nothing_comes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = file_store(&path);
    let remove = async { std::fs::remove_dir_all(&path).unwrap() };
    let (waited, ()) = join(store.wait_for(&key("a"), LONG), remove).await;
    assert!(waited.is_err(), "{waited:?}");
}

#[tokio::test]
async fn store_that_cannot_be_waited_at_looks_and_says_so() {
    let store = memory();
    assert_eq!(store.wait_for(&key("a"), LONG).await.unwrap(), Waited::Unable);
    store.put(&key("a"), "x".into(), PutMode::Overwrite).await.unwrap();
    assert_eq!(store.wait_for(&key("a"), LONG).await.unwrap(), Waited::Come);
}

#[tokio::test]
async fn who_waits_behind_layers_hears_and_keeps_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let paces = Paces { calls_first: 1, calls_max: 1, ..Paces::default() };
    let timed = Timed::new(file_store(folder.path())).with_call_max(Duration::from_secs(5));
    let paced =
        Paced::with_paces(Arc::new(timed), Arc::new(Paused(tokio::time::Instant::now())), paces);
    let paced: Arc<dyn ObjectStore> = Arc::new(paced);
    let lazy = Lazy::new("a store".to_owned(), move || Ok(paced.clone()));
    let store = Scoped::new(Arc::new(lazy), key("workspaces/one"));
    let come = key("log/1/r0");
    let put = async {
        // The only place is free, though somebody waits.
        assert!(store.get(&come).await.unwrap().is_none());
        store.put(&come, "x".into(), PutMode::IfAbsent).await.unwrap();
    };
    let (waited, ()) = join(store.wait_for(&come, LONG), put).await;
    assert_eq!(waited.unwrap(), Waited::Come);
}
