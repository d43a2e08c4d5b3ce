//! The suite of all stores over pools.

use std::sync::Arc;

use model::pool::Redundancy;
use storage::{ObjectKey, ObjectStore, PutMode, StorageError, conformance};

use super::named::Named;
use super::world::{Mood, THREE_OF_FIVE, TWO, World};

async fn conforms(redundancy: Redundancy, stores: u8, bad: &[(usize, Mood)]) {
    conformance::run(|| {
        let world = World::new(redundancy, stores);
        for (store, mood) in bad {
            world.set(*store, *mood);
        }
        Arc::new(Named::new(world.pool()))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn two_copies_in_three_stores_conform() {
    conforms(TWO, 3, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn three_of_five_blocks_conform() {
    conforms(THREE_OF_FIVE, 5, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn one_copy_in_two_stores_and_blocks_that_are_copies_conform() {
    conforms(Redundancy::Replicas(1), 2, &[]).await;
    conforms(Redundancy::Erasure { data: 1, total: 3 }, 4, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn object_whose_key_does_not_name_it_is_refused() {
    let pool = World::new(TWO, 3).pool();
    for key in [ObjectKey::genesis(), ObjectKey::log_slot(1, 0), ObjectKey::checkpoint(3)] {
        let result = pool.put(&key, "x".into(), PutMode::IfAbsent).await;
        assert!(matches!(result, Err(StorageError::Unsupported { .. })), "{result:?}");
        assert!(matches!(pool.get(&key).await, Err(StorageError::Unsupported { .. })));
    }
}
