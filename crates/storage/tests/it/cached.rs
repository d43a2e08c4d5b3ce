//! The cache: faster or absent, never wrong.

use std::path::Path;
use std::sync::Arc;

use storage::cache::Cached;
use storage::faulty::{Call, Fault, Faulty};
use storage::{ContentStore, ObjectKey, ObjectStore, PutMode};

use crate::support::{all_files, key, memory, pack};

/// A store that counts its calls, and a cache before it.
fn cached(folder: &Path, size_max: u64) -> (Arc<Faulty>, Arc<Cached>) {
    let counting = Arc::new(Faulty::new(memory(), |_: &Call<'_>| Fault::None));
    let cached = Arc::new(Cached::new(Arc::clone(&counting) as _, folder, size_max));
    (counting, cached)
}

#[tokio::test]
async fn a_second_read_does_not_ask_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let (store, cached) = cached(folder.path(), 10 << 20);
    let (id, bytes) = pack(1, 300_000);
    let key = ObjectKey::pack(id);
    cached.put(&key, bytes.clone(), PutMode::IfAbsent).await.unwrap();
    for _ in 0..2 {
        assert_eq!(cached.get_range(&key, 5..90_000).await.unwrap(), Some(bytes.slice(5..90_000)));
        assert_eq!(cached.get_tail(&key, 100).await.unwrap(), Some(bytes.slice(299_900..)));
    }
    assert_eq!(store.calls(), 3);
    assert_eq!(cached.get(&key).await.unwrap(), Some(bytes.clone()));
    assert_eq!(store.calls(), 4);
    // Any part of a cached whole is cached.
    assert_eq!(cached.get_range(&key, 7..200_000).await.unwrap(), Some(bytes.slice(7..200_000)));
    assert_eq!(cached.get_tail(&key, 5).await.unwrap(), Some(bytes.slice(299_995..)));
    assert_eq!(cached.get(&key).await.unwrap(), Some(bytes));
    assert_eq!(store.calls(), 4);
}

#[tokio::test]
async fn what_may_change_and_what_is_absent_is_not_cached() {
    let folder = tempfile::tempdir().unwrap();
    let (store, cached) = cached(folder.path(), 10 << 20);
    store.put(&key("checkpoint/x"), "old".into(), PutMode::Overwrite).await.unwrap();
    assert_eq!(cached.get(&key("checkpoint/x")).await.unwrap().as_deref(), Some(&b"old"[..]));
    store.put(&key("checkpoint/x"), "new".into(), PutMode::Overwrite).await.unwrap();
    assert_eq!(cached.get(&key("checkpoint/x")).await.unwrap().as_deref(), Some(&b"new"[..]));

    let (id, bytes) = pack(1, 100);
    assert_eq!(cached.get(&ObjectKey::pack(id)).await.unwrap(), None);
    store.put(&ObjectKey::pack(id), bytes.clone(), PutMode::Overwrite).await.unwrap();
    assert_eq!(cached.get(&ObjectKey::pack(id)).await.unwrap(), Some(bytes));
    assert_eq!(cached.disk_size(), all_files_size(folder.path()));
}

fn all_files_size(folder: &Path) -> u64 {
    all_files(folder).iter().map(|file| folder.join(file).metadata().unwrap().len()).sum()
}

#[tokio::test]
async fn the_folder_stays_within_its_size_and_the_least_recently_used_goes() {
    let folder = tempfile::tempdir().unwrap();
    let (store, cached) = cached(folder.path(), 350_000);
    let packs: Vec<_> = (0..6).map(|seed| pack(seed, 100_000)).collect();
    for (id, bytes) in &packs {
        cached.put(&ObjectKey::pack(*id), bytes.clone(), PutMode::IfAbsent).await.unwrap();
    }
    for index in [0, 1, 2, 0, 3, 4] {
        cached.get(&ObjectKey::pack(packs[index].0)).await.unwrap();
        assert!(cached.disk_size() <= 350_000);
        assert_eq!(cached.disk_size(), all_files_size(folder.path()));
    }
    let before = store.calls();
    for index in [0, 3, 4] {
        cached.get(&ObjectKey::pack(packs[index].0)).await.unwrap();
    }
    assert_eq!(store.calls(), before, "used again, so kept");
    cached.get(&ObjectKey::pack(packs[1].0)).await.unwrap();
    assert_eq!(store.calls(), before + 1, "not used again, so gone");
}

#[tokio::test]
async fn a_restart_keeps_the_cache_and_a_smaller_one_shrinks_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, first) = cached(folder.path(), 10 << 20);
    let packs: Vec<_> = (0..4).map(|seed| pack(seed, 100_000)).collect();
    for (id, bytes) in &packs {
        first.put(&ObjectKey::pack(*id), bytes.clone(), PutMode::IfAbsent).await.unwrap();
        first.get(&ObjectKey::pack(*id)).await.unwrap();
    }
    let size = first.disk_size();
    drop(first);
    std::fs::write(folder.path().join("new-1-1"), "of a killed process").unwrap();
    let second = Cached::new(Arc::clone(&store) as _, folder.path(), 10 << 20);
    assert_eq!(second.disk_size(), size);
    let before = store.calls();
    for (id, bytes) in &packs {
        let found = second.get(&ObjectKey::pack(*id)).await.unwrap();
        assert_eq!(found.as_ref(), Some(bytes));
    }
    assert_eq!(store.calls(), before);
    let third = Cached::new(Arc::clone(&store) as _, folder.path(), 250_000);
    assert!(third.disk_size() <= 250_000);
    assert_eq!(third.disk_size(), all_files_size(folder.path()));
}

#[tokio::test]
async fn a_damaged_cache_file_is_dropped_and_never_served() {
    let folder = tempfile::tempdir().unwrap();
    let (store, cached) = cached(folder.path(), 10 << 20);
    let (id, bytes) = pack(1, 200_000);
    let key = ObjectKey::pack(id);
    cached.put(&key, bytes.clone(), PutMode::IfAbsent).await.unwrap();
    for damage in 0..5 {
        cached.get(&key).await.unwrap();
        let [file] = &all_files(folder.path())[..] else { panic!("one file") };
        let file = folder.path().join(file);
        let mut content = std::fs::read(&file).unwrap();
        match damage {
            0 => content.truncate(150_000),
            1 => content.clear(),
            2 => content[100_000] ^= 1,
            3 => content[20] ^= 1,
            _ => content.fill(0),
        }
        std::fs::write(&file, content).unwrap();
        let before = store.calls();
        assert_eq!(cached.get(&key).await.unwrap(), Some(bytes.clone()), "damage {damage}");
        assert_eq!(store.calls(), before + 1, "damage {damage}");
    }
    std::fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(cached.get(&key).await.unwrap(), Some(bytes.clone()), "folder gone");
}

#[tokio::test]
async fn a_damaged_object_of_the_store_is_not_kept_and_a_repair_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let (store, cached) = cached(folder.path(), 10 << 20);
    let (id, bytes) = pack(1, 200_000);
    let key = ObjectKey::pack(id);
    store.put(&key, bytes.slice(..100_000), PutMode::Overwrite).await.unwrap();
    let content = ContentStore::new(Arc::clone(&cached) as _);
    assert!(content.read_pack(id).await.unwrap_err().is_damage());
    assert_eq!(content.read_pack_range(id, 99_990..100_010).await.unwrap().len(), 10);
    // Another device repairs it behind the cache.
    store.put(&key, bytes.clone(), PutMode::Overwrite).await.unwrap();
    assert_eq!(content.read_pack(id).await.unwrap(), bytes);
    let range = content.read_pack_range(id, 99_990..100_010).await.unwrap();
    assert_eq!(range, bytes[99_990..100_010], "the whole pack replaced its damaged part");
}

#[tokio::test]
async fn a_cache_folder_that_goes_away_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let (store, cached) = cached(&folder.path().join("cache"), 10 << 20);
    std::fs::remove_dir_all(folder.path().join("cache")).unwrap();
    for seed in 0..10 {
        let (id, bytes) = pack(seed, 1000);
        store.put(&ObjectKey::pack(id), bytes.clone(), PutMode::IfAbsent).await.unwrap();
        assert_eq!(cached.get(&ObjectKey::pack(id)).await.unwrap(), Some(bytes));
    }
    assert_eq!(cached.disk_size(), 0);
}
