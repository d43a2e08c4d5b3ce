//! Writes: durable in enough stores, whatever the others do.

use std::time::Duration;

use model::Clock;
use model::pool::Redundancy;
use storage::pool::piece::Piece;
use storage::{ObjectStore, PutMode, PutOutcome, StorageError};

use super::world::{Mood, THREE_OF_FIVE, TWO, World, fill, object};

const BAD: [Mood; 3] = [Mood::Gone, Mood::Full, Mood::ReadOnly];

#[tokio::test(start_paused = true)]
async fn store_that_fails_is_replaced_at_once() {
    for mood in BAD {
        for bad in 0..3 {
            let world = World::new(TWO, 3);
            world.set(bad, mood);
            let pool = world.pool();
            for seed in 0..8 {
                let (key, bytes) = object(seed, 1000);
                let outcome = pool.put(&key, bytes.clone(), PutMode::IfAbsent).await.unwrap();
                assert_eq!(outcome, PutOutcome::Written);
                assert_eq!(pool.get(&key).await.unwrap(), Some(bytes));
                assert_eq!(world.pieces(&key).await.len(), 2, "{mood:?}");
            }
            assert_eq!(world.clock.elapsed(), Duration::ZERO);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn silent_store_costs_seconds_once_and_gets_its_copies_when_it_speaks_again() {
    let world = World::new(TWO, 3);
    world.set(0, Mood::Silent);
    let pool = world.pool();
    let mut keys = Vec::new();
    for seed in 0..20 {
        let (key, bytes) = object(seed, 1000);
        let before = world.clock.elapsed();
        pool.put(&key, bytes, PutMode::IfAbsent).await.unwrap();
        assert!(world.clock.elapsed() - before < Duration::from_secs(5));
        assert_eq!(world.pieces(&key).await.len(), 2);
        keys.push(key);
    }
    let backlog = pool.settle().await;
    assert!(!backlog.owed.is_empty() && backlog.running == 0);
    world.set(0, Mood::Fine);
    assert!(pool.settle().await.is_empty());
    let mut at_home = 0;
    for key in &keys {
        at_home += world.pieces(key).await.iter().filter(|(store, _)| *store == 0).count();
    }
    assert!(at_home > 5, "the store that was silent has its share");
}

#[tokio::test(start_paused = true)]
async fn store_that_was_left_out_is_asked_when_no_other_is_left() {
    for redundancy in [TWO, Redundancy::Erasure { data: 1, total: 2 }] {
        let world = World::new(redundancy, 3);
        let pool = world.pool();
        world.set(0, Mood::Gone);
        for seed in 0..10 {
            let (key, bytes) = object(seed, 100);
            pool.put(&key, bytes, PutMode::IfAbsent).await.unwrap();
        }
        // It is back, and the pool does not know yet; now another one goes.
        world.set(0, Mood::Fine);
        world.set(1, Mood::Gone);
        for seed in 10..30 {
            let (key, bytes) = object(seed, 100);
            pool.put(&key, bytes, PutMode::IfAbsent).await.unwrap();
            assert_eq!(world.pieces(&key).await.len(), 2, "{redundancy}");
        }
        assert_eq!(world.clock.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn stores_that_may_be_missed_do_not_stop_a_write_and_get_their_pieces_later() {
    let (key, bytes) = object(1, 1000);
    for (redundancy, stores, gone) in [(TWO, 2, 1), (THREE_OF_FIVE, 5, 2)] {
        let world = World::new(redundancy, stores);
        (0..gone).for_each(|store| world.set(store, Mood::Gone));
        let pool = world.pool();
        pool.put(&key, bytes.clone(), PutMode::IfAbsent).await.unwrap();
        pool.put_deferred(&key, bytes.clone()).await.unwrap();
        pool.sync().await.unwrap();
        assert_eq!(pool.get(&key).await.unwrap().as_ref(), Some(&bytes));
        assert_eq!(pool.settle().await.owed, std::slice::from_ref(&key), "{redundancy}");
        (0..gone).for_each(|store| world.set(store, Mood::Fine));
        assert!(pool.settle().await.is_empty(), "{redundancy}");
        assert_eq!(world.pieces(&key).await.len(), usize::from(stores), "{redundancy}");
    }
}

#[tokio::test(start_paused = true)]
async fn too_few_stores_are_an_error_that_says_why() {
    let (key, bytes) = object(1, 1000);
    let world = World::new(TWO, 2);
    (0..2).for_each(|store| world.set(store, Mood::Gone));
    let error = world.pool().put(&key, bytes.clone(), PutMode::IfAbsent).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");

    let world = World::new(TWO, 3);
    (0..3).for_each(|store| world.set(store, Mood::Full));
    let error = world.pool().put(&key, bytes.clone(), PutMode::IfAbsent).await.unwrap_err();
    assert!(matches!(error, StorageError::NoSpace { .. }), "{error}");

    let world = World::new(THREE_OF_FIVE, 5);
    (0..2).for_each(|store| world.set(store, Mood::Gone));
    world.pool().put(&key, bytes.clone(), PutMode::IfAbsent).await.unwrap();
    world.set(2, Mood::Full);
    let (key, bytes) = object(2, 1000);
    let error = world.pool().put(&key, bytes, PutMode::IfAbsent).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn third_copy_follows_in_the_background() {
    let world = World::new(Redundancy::Replicas(3), 3);
    world.set(2, Mood::Slow(Duration::from_secs(6)));
    let pool = world.pool();
    let (key, bytes) = object(1, 1000);
    pool.put(&key, bytes, PutMode::IfAbsent).await.unwrap();
    assert_eq!(world.clock.elapsed(), Duration::ZERO);
    assert_eq!(pool.backlog().running, 1);
    assert_eq!(world.pieces(&key).await.len(), 2);
    assert!(pool.settle().await.is_empty());
    assert_eq!(world.pieces(&key).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn slow_store_does_not_fill_the_memory_and_gets_everything_in_the_end() {
    let world = World::new(Redundancy::Replicas(3), 3);
    world.set(2, Mood::Slow(Duration::from_secs(20)));
    let pool = world.pool();
    let mut keys = Vec::new();
    for seed in 0..100 {
        let (key, bytes) = object(seed, 1 << 20);
        pool.put(&key, bytes, PutMode::IfAbsent).await.unwrap();
        keys.push(key);
    }
    assert!(pool.backlog().running <= 66, "{:?}", pool.backlog().running);
    assert!(!pool.backlog().owed.is_empty());
    world.set(2, Mood::Fine);
    assert!(pool.settle().await.is_empty());
    for key in &keys {
        assert_eq!(world.pieces(key).await.len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn putting_again_writes_nothing_and_heals_a_torn_copy() {
    let world = World::new(TWO, 3);
    let pool = world.pool();
    let objects = fill(&pool, 1, 1000).await;
    let (key, bytes) = &objects[0];
    let outcome = pool.put(key, bytes.clone(), PutMode::IfAbsent).await.unwrap();
    assert_eq!(outcome, PutOutcome::Exists);
    let pieces = world.pieces(key).await;
    world.damage(pieces[0], key, |bytes| bytes[..10].to_vec()).await;
    pool.put(key, bytes.clone(), PutMode::IfAbsent).await.unwrap();
    pool.settle().await;
    let copy = world.stores[pieces[0].0].store.get(key).await.unwrap();
    assert_eq!(copy.as_ref(), Some(bytes));
}

#[tokio::test(start_paused = true)]
async fn blocks_lie_in_different_stores_and_are_different() {
    let world = World::new(THREE_OF_FIVE, 7);
    let objects = fill(&world.pool(), 10, 5000).await;
    for (key, _) in objects {
        let pieces = world.pieces(&key).await;
        assert_eq!(pieces.len(), 5);
        let stores: std::collections::BTreeSet<_> = pieces.iter().map(|(store, _)| store).collect();
        let blocks: std::collections::BTreeSet<_> = pieces.iter().map(|(_, piece)| piece).collect();
        assert_eq!((stores.len(), blocks.len()), (5, 5));
        assert!(!blocks.contains(&Piece::Copy));
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_store_forgets_at_a_sync_is_given_to_another() {
    for redundancy in [TWO, Redundancy::Erasure { data: 2, total: 4 }] {
        let world = World::new(redundancy, 5);
        world.set(0, Mood::Forgetful);
        let pool = world.pool();
        let mut objects = Vec::new();
        for seed in 0..20 {
            let (key, bytes) = object(seed, 1000);
            pool.put_deferred(&key, bytes.clone()).await.unwrap();
            objects.push((key, bytes));
        }
        pool.sync().await.unwrap();
        let enough = if redundancy == TWO { 2 } else { 3 };
        for (key, bytes) in &objects {
            assert!(world.pieces(key).await.len() >= enough, "{redundancy}");
            assert_eq!(pool.get(key).await.unwrap().as_ref(), Some(bytes));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sync_that_loses_an_object_fails_and_so_does_all_after_it() {
    let world = World::new(TWO, 3);
    let pool = world.pool();
    (0..3).for_each(|store| world.set(store, Mood::Forgetful));
    let (key, bytes) = object(1, 1000);
    pool.put_deferred(&key, bytes.clone()).await.unwrap();
    assert!(matches!(pool.sync().await, Err(StorageError::NotDurable { .. })));
    (0..3).for_each(|store| world.set(store, Mood::Fine));
    assert!(matches!(pool.sync().await, Err(StorageError::NotDurable { .. })));
    assert!(pool.put_deferred(&key, bytes.clone()).await.is_err());
    // Opened again, all is well.
    let pool = world.pool();
    pool.put_deferred(&key, bytes).await.unwrap();
    pool.sync().await.unwrap();
    assert_eq!(world.pieces(&key).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn sync_does_not_wait_for_a_store_that_is_not_needed() {
    let world = World::new(Redundancy::Replicas(3), 3);
    let pool = world.pool();
    world.set(1, Mood::Slow(Duration::from_secs(6)));
    let (key, bytes) = object(1, 1000);
    pool.put_deferred(&key, bytes).await.unwrap();
    pool.sync().await.unwrap();
    assert_eq!(world.clock.elapsed(), Duration::ZERO);
    assert_eq!(world.pieces(&key).await.len(), 2);
    assert!(pool.settle().await.is_empty());
    assert_eq!(world.pieces(&key).await.len(), 3, "what was late is synced by settling");
}

#[tokio::test(start_paused = true)]
async fn object_that_is_on_its_way_during_a_sync_is_covered_by_the_next_and_written_once() {
    let world = World::new(TWO, 2);
    let pool = world.pool();
    let (first, bytes) = object(1, 1000);
    pool.put_deferred(&first, bytes).await.unwrap();
    world.set(1, Mood::Slow(Duration::from_secs(2)));
    // Larger than what a pool answers for early.
    let (second, bytes) = object(2, 40 << 20);
    let write = pool.put_deferred(&second, bytes.clone());
    let both = futures_util::future::join(write, async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        pool.sync().await
    });
    let (written, synced) = both.await;
    written.unwrap();
    synced.unwrap();
    world.set(1, Mood::Fine);
    world.stores.iter().for_each(|store| drop(store.take_calls()));
    pool.sync().await.unwrap();
    for store in &world.stores {
        let calls = store.take_calls();
        assert!(!calls.contains_key("get") && !calls.contains_key("put"), "{calls:?}");
    }
    assert_eq!(pool.get(&second).await.unwrap().as_ref(), Some(&bytes));
    assert_eq!(world.pieces(&second).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn deleted_is_gone_everywhere_even_what_was_on_its_way() {
    let world = World::new(Redundancy::Replicas(3), 4);
    let pool = world.pool();
    world.set(0, Mood::Slow(Duration::from_secs(3)));
    for seed in 0..5 {
        let (key, bytes) = object(seed, 1000);
        pool.put(&key, bytes, PutMode::IfAbsent).await.unwrap();
        pool.delete(&key).await.unwrap();
        assert_eq!(world.pieces(&key).await, []);
        assert_eq!(pool.get(&key).await.unwrap(), None);
    }
    assert!(pool.settle().await.is_empty());
    world.set(1, Mood::Gone);
    let (key, _) = object(1, 1000);
    assert!(pool.delete(&key).await.is_err(), "nobody knows what the lost store has");
}
