//! Writing and deleting.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use model::ids::{PackId, PageId};

use super::{key, pack_key, patterned, put_new};
use crate::error::StorageError;
use crate::key::ObjectKey;
use crate::object_store::{OBJECT_SIZE_MAX, ObjectStore, PutMode, PutOutcome};

type Store = Arc<dyn ObjectStore>;

pub(super) async fn a_put_object_is_read_back(store: Store) {
    let (new, put) = (key("folder/new"), key("folder/put"));
    put_new(store.as_ref(), &new, "hello".into()).await;
    let outcome = store.put(&put, "hello".into(), PutMode::Overwrite).await.expect("put");
    assert_eq!(outcome, PutOutcome::Written);
    for key in [new, put] {
        assert_eq!(store.get(&key).await.expect("get").as_deref(), Some(&b"hello"[..]));
    }
}

pub(super) async fn any_bytes_are_kept(store: Store) {
    let bytes: Bytes = (0..=255).chain((0..=255).rev()).chain(*b"\r\n\0\x1a").collect();
    let key = key("binary");
    store.put(&key, bytes.clone(), PutMode::Overwrite).await.expect("put");
    assert_eq!(store.get(&key).await.expect("get"), Some(bytes));
}

pub(super) async fn an_empty_object_is_an_object(store: Store) {
    let key = key("empty");
    put_new(store.as_ref(), &key, Bytes::new()).await;
    assert_eq!(store.get(&key).await.expect("get"), Some(Bytes::new()));
    assert_eq!(store.size(&key).await.expect("size"), Some(0));
    let listed = store.list("", None, 10).await.expect("list");
    assert_eq!(listed.iter().map(|entry| entry.size).collect::<Vec<_>>(), [0]);
}

pub(super) async fn a_pack_of_eight_mebibytes_is_kept(store: Store) {
    let bytes = patterned(8 << 20, 1);
    let key = pack_key(&bytes);
    put_new(store.as_ref(), &key, bytes.clone()).await;
    for _ in 0..2 {
        assert!(store.get(&key).await.expect("get") == Some(bytes.clone()), "another object");
    }
}

pub(super) async fn overwrite_replaces_longer_and_shorter_objects(store: Store) {
    let key = key("changing");
    for length in [1000, 10, 5000, 0, 1] {
        let bytes = patterned(length, length as u64);
        let outcome = store.put(&key, bytes.clone(), PutMode::Overwrite).await.expect("put");
        assert_eq!(outcome, PutOutcome::Written);
        assert_eq!(store.get(&key).await.expect("get"), Some(bytes));
    }
}

pub(super) async fn put_if_absent_leaves_the_first_object_untouched(store: Store) {
    for (slot, first, others) in [(7, "first", ["second", ""]), (8, "", ["second", "third"])] {
        let key = ObjectKey::log_slot(slot, 0);
        let outcome = store.put(&key, first.into(), PutMode::IfAbsent).await.expect("put");
        assert_eq!(outcome, PutOutcome::Written);
        for text in others {
            let outcome = store.put(&key, text.into(), PutMode::IfAbsent).await.expect("put again");
            assert_eq!(outcome, PutOutcome::Exists);
            assert_eq!(store.get(&key).await.expect("get").as_deref(), Some(first.as_bytes()));
        }
    }
}

pub(super) async fn put_if_absent_of_equal_bytes_is_told_that_they_exist(store: Store) {
    let key = ObjectKey::log_slot(7, 0);
    store.put(&key, "first".into(), PutMode::IfAbsent).await.expect("put");
    let outcome = store.put(&key, "first".into(), PutMode::IfAbsent).await.expect("put again");
    assert_eq!(outcome, PutOutcome::Exists);
}

pub(super) async fn put_if_absent_finds_an_object_that_was_put_over_another(store: Store) {
    for (first, second) in
        [(PutMode::Overwrite, PutMode::Overwrite), (PutMode::IfAbsent, PutMode::Overwrite)]
    {
        for folder in ["mixed", "packs"] {
            let key = key(&format!("{folder}/{}", first as u8));
            store.put(&key, "first".into(), first).await.expect("put");
            store.put(&key, "second".into(), second).await.expect("put again");
            let outcome = store.put(&key, "third".into(), PutMode::IfAbsent).await.expect("third");
            assert_eq!(outcome, PutOutcome::Exists);
            assert_eq!(store.get(&key).await.expect("get").as_deref(), Some(&b"second"[..]));
            store.delete(&key).await.expect("delete");
            assert_eq!(store.get(&key).await.expect("get"), None);
        }
    }
}

pub(super) async fn exactly_one_of_many_puts_if_absent_wins(store: Store) {
    for slot in 0..8 {
        let key = ObjectKey::log_slot(slot, 0);
        let racers = (0..8).map(|racer| {
            let (store, key) = (Arc::clone(&store), key.clone());
            async move {
                let bytes = patterned(20_000, racer);
                let outcome = store.put(&key, bytes.clone(), PutMode::IfAbsent).await;
                (outcome.expect("put"), bytes)
            }
        });
        let results = join_all(racers).await;
        let mut winners = results.iter().filter(|(outcome, _)| *outcome == PutOutcome::Written);
        let (_, bytes) = winners.next().expect("somebody wins");
        assert!(winners.next().is_none(), "two winners of slot {slot}");
        assert!(store.get(&key).await.expect("get").as_ref() == Some(bytes), "a loser's bytes");
    }
}

pub(super) async fn an_object_above_the_limit_is_refused(store: Store) {
    let key = key("huge");
    let length = usize::try_from(OBJECT_SIZE_MAX).expect("64-bit") + 1;
    let result = store.put(&key, vec![0; length].into(), PutMode::Overwrite).await;
    assert!(matches!(result, Err(StorageError::TooLarge { .. })), "{result:?}");
    assert_eq!(store.size(&key).await.expect("size"), None);
}

pub(super) async fn a_deleted_object_is_gone_and_may_come_back(store: Store) {
    let bytes = patterned(300, 3);
    for key in [key("a/b/c"), pack_key(&bytes)] {
        for _ in 0..2 {
            put_new(store.as_ref(), &key, bytes.clone()).await;
            assert_eq!(store.get(&key).await.expect("get"), Some(bytes.clone()));
            assert_eq!(store.get_range(&key, 1..3).await.expect("range"), Some(bytes.slice(1..3)));
            store.delete(&key).await.expect("delete");
            assert_eq!(store.get(&key).await.expect("get"), None);
            assert_eq!(store.get_range(&key, 1..3).await.expect("range"), None);
            assert_eq!(store.size(&key).await.expect("size"), None);
        }
    }
}

pub(super) async fn deleting_what_is_not_there_succeeds(store: Store) {
    store.delete(&key("nothing")).await.expect("delete");
    store.delete(&key("no/folder/either")).await.expect("delete");
    store.put(&key("one"), "x".into(), PutMode::Overwrite).await.expect("put");
    store.delete(&key("one")).await.expect("delete");
    store.delete(&key("one")).await.expect("delete again");
}

pub(super) async fn every_kind_of_key_can_be_stored(store: Store) {
    let longest = format!("{0}/{0}/{0}", "x".repeat(128));
    let keys = [
        ObjectKey::genesis(),
        ObjectKey::pack(PackId::from_bytes([0xff; 32])),
        ObjectKey::page(PageId::from_bytes([0; 32])),
        ObjectKey::log_slot(u64::MAX, 3),
        ObjectKey::checkpoint(0),
        key("with-all.signs_of/a.key"),
        key(&longest),
    ];
    for key in &keys {
        put_new(store.as_ref(), key, Bytes::from(key.to_string())).await;
    }
    for key in &keys {
        let found = store.get(key).await.expect("get");
        assert_eq!(found.as_deref(), Some(key.as_str().as_bytes()));
    }
}
