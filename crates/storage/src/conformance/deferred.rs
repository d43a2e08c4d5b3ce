//! Deferred puts.

use std::sync::Arc;

use super::{pack_key, patterned, put_new};
use crate::object_store::ObjectStore;

type Store = Arc<dyn ObjectStore>;

pub(super) async fn deferred_objects_are_there_after_sync(store: Store) {
    // More than one group, so that a driver with a limit reaches it.
    let objects: Vec<_> = (0..300).map(|seed| patterned(2000, seed)).collect();
    for bytes in &objects {
        store.put_deferred(&pack_key(bytes), bytes.clone()).await.expect("defer");
    }
    store.sync().await.expect("sync");
    for bytes in &objects {
        let found = store.get(&pack_key(bytes)).await.expect("get");
        assert_eq!(found.as_ref(), Some(bytes));
    }
}

pub(super) async fn deferring_an_existing_object_keeps_it_readable(store: Store) {
    let bytes = patterned(5000, 1);
    let key = pack_key(&bytes);
    put_new(store.as_ref(), &key, bytes.clone()).await;
    for _ in 0..2 {
        store.put_deferred(&key, bytes.clone()).await.expect("defer");
        assert_eq!(store.get(&key).await.expect("get"), Some(bytes.clone()));
    }
    store.sync().await.expect("sync");
    assert_eq!(store.get(&key).await.expect("get"), Some(bytes));
}

pub(super) async fn sync_without_anything_deferred_succeeds(store: Store) {
    store.sync().await.expect("sync");
    store.sync().await.expect("sync again");
}
