//! Lists.

use std::sync::Arc;

use super::{key, put_new};
use crate::key::ObjectKey;
use crate::object_store::{ObjectStore, PutMode, list_all};

type Store = Arc<dyn ObjectStore>;

/// Keys whose folders and files sort differently than their segments do, in order.
const ORDERED: [&str; 9] = ["a-b", "a.c", "a/b-c", "a/b/c", "a/b/d", "a/b0", "a0", "ab/c", "b"];

async fn fill(store: &Store) {
    for text in ORDERED.iter().rev() {
        store.put(&key(text), (*text).into(), PutMode::Overwrite).await.expect("put");
    }
}

async fn keys(store: &Store, prefix: &str, start_after: Option<&str>, limit: usize) -> Vec<String> {
    let found = store.list(prefix, start_after, limit).await.expect("list");
    found.into_iter().map(|entry| entry.key.to_string()).collect()
}

pub(super) async fn a_list_is_in_byte_order_of_whole_keys(store: Store) {
    fill(&store).await;
    assert_eq!(keys(&store, "", None, 100).await, ORDERED);
    for entry in list_all(store.as_ref(), "").await.expect("list") {
        assert_eq!(entry.size, entry.key.as_str().len() as u64, "{}", entry.key);
    }
}

pub(super) async fn pages_join_to_the_whole_list(store: Store) {
    fill(&store).await;
    for limit in 1..=ORDERED.len() + 1 {
        let mut found: Vec<String> = Vec::new();
        loop {
            let page = keys(&store, "", found.last().map(String::as_str), limit).await;
            assert!(page.len() <= limit);
            let is_last = page.len() < limit;
            found.extend(page);
            if is_last {
                break;
            }
        }
        assert_eq!(found, ORDERED, "in pages of {limit}");
    }
    for (start_after, rest) in [("a/b/c", 4), ("a/b", 2), ("a/zzz", 6), ("c", 9), ("0", 0)] {
        let found = keys(&store, "", Some(start_after), 100).await;
        assert_eq!(found, ORDERED[rest..], "after {start_after}, which need not exist");
    }
    assert_eq!(keys(&store, "", None, 0).await, [""; 0]);
}

pub(super) async fn a_prefix_may_end_inside_a_segment(store: Store) {
    fill(&store).await;
    for (prefix, expected) in [
        ("a", &ORDERED[..8]),
        ("a/", &ORDERED[2..6]),
        ("a/b", &ORDERED[2..6]),
        ("a/b/", &ORDERED[3..5]),
        ("a/b/c", &ORDERED[3..4]),
        ("ab", &ORDERED[7..8]),
        ("b", &ORDERED[8..]),
        ("b/", &[]),
        ("c", &[]),
        ("a/b/c/d", &[]),
    ] {
        assert_eq!(keys(&store, prefix, None, 100).await, expected, "prefix {prefix}");
    }
    assert_eq!(keys(&store, "a/b", Some("a/b/c"), 1).await, ["a/b/d"]);
}

pub(super) async fn nothing_is_an_empty_list(store: Store) {
    for prefix in ["", "packs/", "log/000", "no/such/folder/"] {
        assert_eq!(keys(&store, prefix, None, 10).await, [""; 0]);
    }
}

pub(super) async fn a_list_follows_puts_and_deletes(store: Store) {
    let slots: Vec<ObjectKey> = (0..30).map(|slot| ObjectKey::log_slot(slot, 0)).collect();
    for slot in &slots {
        put_new(store.as_ref(), slot, "entry".into()).await;
    }
    let all: Vec<_> = slots.iter().map(ToString::to_string).collect();
    assert_eq!(keys(&store, ObjectKey::LOG, None, 100).await, all);
    for slot in slots.iter().step_by(2) {
        store.delete(slot).await.expect("delete");
    }
    let odd: Vec<_> = slots.iter().skip(1).step_by(2).map(ToString::to_string).collect();
    assert_eq!(keys(&store, ObjectKey::LOG, None, 100).await, odd);
}

pub(super) async fn an_impossible_prefix_is_an_error(store: Store) {
    for prefix in ["/", "../", "A", "a//b", "a b"] {
        assert!(store.list(prefix, None, 10).await.is_err(), "prefix {prefix}");
    }
}
