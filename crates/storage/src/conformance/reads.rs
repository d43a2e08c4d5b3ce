//! Reading wholes and parts.

use std::sync::Arc;

use bytes::Bytes;

use super::{key, pack_key, patterned, put_new};
use crate::object_store::{ObjectStore, PutMode};

type Store = Arc<dyn ObjectStore>;

pub(super) async fn what_was_never_put_is_absent(store: Store) {
    store.put(&key("folder/there"), "x".into(), PutMode::Overwrite).await.expect("put");
    for absent in [key("absent"), key("folder/absent"), key("folder"), pack_key(b"absent")] {
        assert_eq!(store.get(&absent).await.expect("get"), None, "{absent}");
        assert_eq!(store.get_range(&absent, 0..4).await.expect("range"), None, "{absent}");
        assert_eq!(store.get_range(&absent, 0..0).await.expect("range"), None, "{absent}");
        assert_eq!(store.get_tail(&absent, 4).await.expect("tail"), None, "{absent}");
        assert_eq!(store.size(&absent).await.expect("size"), None, "{absent}");
    }
}

pub(super) async fn ranges_are_cut_at_the_end(store: Store) {
    let bytes = Bytes::from_static(b"0123456789");
    for key in [key("ten"), pack_key(&bytes)] {
        store.put(&key, bytes.clone(), PutMode::Overwrite).await.expect("put");
        for (range, expected) in [
            (0..10, 0..10),
            (0..1, 0..1),
            (3..7, 3..7),
            (9..10, 9..10),
            (8..11, 8..10),
            (0..u64::MAX, 0..10),
            (5..1 << 40, 5..10),
        ] {
            for _ in 0..2 {
                let found = store.get_range(&key, range.clone()).await.expect("range");
                assert_eq!(found, Some(bytes.slice(expected.clone())), "{range:?} of {key}");
            }
        }
    }
}

pub(super) async fn empty_ranges_give_no_bytes(store: Store) {
    let bytes = Bytes::from_static(b"0123456789");
    let empty = key("empty");
    store.put(&empty, Bytes::new(), PutMode::Overwrite).await.expect("put");
    for key in [key("ten"), pack_key(&bytes)] {
        store.put(&key, bytes.clone(), PutMode::Overwrite).await.expect("put");
        let ranges = [0..0, 4..4, 10..10, 10..20, 11..20, u64::MAX - 1..u64::MAX, 100..100];
        for range in ranges {
            let found = store.get_range(&key, range.clone()).await.expect("range");
            assert_eq!(found, Some(Bytes::new()), "{range:?} of {key}");
            let found = store.get_range(&empty, range.clone()).await.expect("range of empty");
            assert_eq!(found, Some(Bytes::new()), "{range:?} of an empty object");
        }
    }
}

pub(super) async fn tails_are_at_most_the_whole(store: Store) {
    let bytes = Bytes::from_static(b"0123456789");
    let empty = key("empty");
    store.put(&empty, Bytes::new(), PutMode::Overwrite).await.expect("put");
    assert_eq!(store.get_tail(&empty, 5).await.expect("tail"), Some(Bytes::new()));
    for key in [key("ten"), pack_key(&bytes)] {
        store.put(&key, bytes.clone(), PutMode::Overwrite).await.expect("put");
        for (length, start) in [(0, 10), (1, 9), (10, 0), (11, 0), (u64::MAX, 0)] {
            for _ in 0..2 {
                let found = store.get_tail(&key, length).await.expect("tail");
                assert_eq!(found, Some(bytes.slice(start..)), "last {length} of {key}");
            }
        }
    }
}

pub(super) async fn ranges_of_a_large_object_are_exact(store: Store) {
    let bytes = patterned(300_000, 5);
    let key = pack_key(&bytes);
    put_new(store.as_ref(), &key, bytes.clone()).await;
    // Twice, the second time after a read of the whole: a cache answers differently.
    for _ in 0..2 {
        for start in (0..300_000).step_by(37_123) {
            for length in [1, 4096, 65_536, 131_072] {
                let end = (start + length).min(300_000);
                let range = start as u64..(start + length) as u64;
                let found = store.get_range(&key, range).await.expect("range");
                assert!(found == Some(bytes.slice(start..end)), "{start}..{end}");
            }
        }
        assert!(store.get(&key).await.expect("get") == Some(bytes.clone()), "another object");
    }
}

pub(super) async fn size_is_the_length(store: Store) {
    for length in [0, 1, 65_535, 65_536, 1_000_000] {
        let key = key(&format!("sizes/{length}"));
        let bytes = patterned(length, 0);
        store.put(&key, bytes, PutMode::Overwrite).await.expect("put");
        assert_eq!(store.size(&key).await.expect("size"), Some(length as u64));
    }
}
