//! Stores that are not equally quick: writes go where there is room, and the homes get theirs behind.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use model::Clock;
use model::pool::Redundancy;
use storage::pool::Pool;
use storage::pool::repair::{CheckOptions, Depth};
use storage::{ObjectKey, ObjectStore, PutMode};

use super::world::{Line, Mood, THREE_OF_FIVE, TWO, World, object};

/// Bytes a second, as Dropbox, Google, Box and OneDrive were to each other.
const UNEVEN: [u64; 4] = [300_000, 750_000, 1_275_000, 600_000];

/// Long enough to tell how quick a line is.
const LENGTH: usize = 320 << 10;

/// How many objects a sender holds at once.
const AT_ONCE: usize = 8;

fn world(redundancy: Redundancy, rates: &[u64]) -> World {
    let world = World::new(redundancy, u8::try_from(rates.len()).unwrap());
    for (store, rate) in rates.iter().enumerate() {
        world.set_line(store, Line::new(*rate));
    }
    world
}

/// Sends objects as a sync does, and returns them and what it took.
async fn send(world: &World, pool: &Pool, count: u64) -> (Vec<(ObjectKey, Bytes)>, Duration) {
    let began = world.clock.elapsed();
    let objects: Vec<_> = (0..count).map(|seed| object(seed, LENGTH)).collect();
    let puts = futures_util::stream::iter(&objects)
        .map(|(key, bytes)| pool.put_deferred(key, bytes.clone()))
        .buffer_unordered(AT_ONCE);
    puts.for_each(async |result| result.unwrap()).await;
    pool.sync().await.unwrap();
    (objects, world.clock.elapsed() - began)
}

/// How many pieces were sent to all stores since the last time.
fn sent(world: &World) -> u64 {
    let calls = |store: &Arc<super::world::Moody>| {
        let calls = store.take_calls();
        ["put", "put_deferred"].iter().filter_map(|name| calls.get(name)).sum::<u64>()
    };
    world.stores.iter().map(calls).sum()
}

async fn assert_all_at_home(pool: &Pool, objects: &[(ObjectKey, Bytes)]) {
    let backlog = pool.settle().await;
    assert!(backlog.is_empty(), "{backlog:?}");
    let expected: BTreeSet<ObjectKey> = objects.iter().map(|(key, _)| key.clone()).collect();
    let options = CheckOptions { depth: Depth::Deep, ..CheckOptions::default() };
    let report = pool.check(&pool.inventory().await, &expected, options).await;
    assert!(report.findings.iter().all(|found| !found.problem.is_risk()), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn uneven_stores_are_written_with_nearly_all_of_their_lines_together() {
    let world = world(TWO, &UNEVEN);
    let pool = world.pool();
    let (objects, took) = send(&world, &pool, 200).await;
    let bytes = 2.0 * (objects.len() * LENGTH) as f64;
    let part = bytes / took.as_secs_f64() / UNEVEN.iter().sum::<u64>() as f64;
    assert!(part >= 0.85, "{part:.3} of all lines");
    // The homes are not waited for much longer than if all had waited for them.
    assert_all_at_home(&pool, &objects).await;
    let with_homes = world.clock.elapsed().as_secs_f64();
    let slowest = bytes / 4.0 / UNEVEN[0] as f64;
    let twice = sent(&world) - 2 * objects.len() as u64;
    // Six at each store at most began anew after the sync.
    let most = objects.len() as u64 / 2 + 6 * UNEVEN.len() as u64;
    assert!(twice < most, "{twice} pieces were sent to more than their homes");
    assert!(with_homes < slowest * 1.25, "{with_homes:.1} s instead of {slowest:.1} s");
}

async fn assert_nothing_is_sent_twice(world: &World, redundancy: Redundancy, rate: u64) {
    let pool = world.pool();
    let (objects, _) = send(world, &pool, 60).await;
    assert_all_at_home(&pool, &objects).await;
    let copies = u64::from(redundancy.losses()) + 1;
    assert_eq!(sent(world), copies * objects.len() as u64, "{redundancy}, {rate} B/s");
}

#[tokio::test(start_paused = true)]
async fn even_stores_are_sent_nothing_twice() {
    for (redundancy, stores) in [(Redundancy::Replicas(1), 4), (TWO, 3), (TWO, 4), (TWO, 5)] {
        for rate in [30_000, 300_000, 3_000_000] {
            let world = world(redundancy, &vec![rate; stores]);
            assert_nothing_is_sent_twice(&world, redundancy, rate).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn stores_behind_one_line_are_sent_nothing_twice() {
    for (redundancy, stores) in [(Redundancy::Replicas(1), 4), (TWO, 3), (TWO, 4), (TWO, 5)] {
        for rate in [200_000, 1_000_000, 5_000_000] {
            let world = World::new(redundancy, stores);
            let line = Line::new(rate);
            (0..usize::from(stores)).for_each(|store| world.set_line(store, Arc::clone(&line)));
            assert_nothing_is_sent_twice(&world, redundancy, rate).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn store_that_is_lost_at_the_answer_takes_nothing_with_it() {
    for lost in 0..UNEVEN.len() {
        let world = world(TWO, &UNEVEN);
        let pool = world.pool();
        let (objects, _) = send(&world, &pool, 40).await;
        world.set(lost, Mood::Gone);
        // What is on its way is lost with the device.
        drop(pool);
        for (key, bytes) in &objects {
            let pieces = world.pieces(key).await;
            assert!(pieces.len() >= 2, "{pieces:?}");
            let left = pieces.iter().filter(|(store, _)| *store != lost);
            for (store, piece) in left {
                let found = world.stores[*store].store.get(&piece.key(key)).await.unwrap();
                assert_eq!(found.as_ref(), Some(bytes));
            }
        }
        let reader = world.pool();
        for (key, bytes) in &objects {
            assert_eq!(reader.get(key).await.unwrap().as_ref(), Some(bytes), "without {lost}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn blocks_that_every_store_has_one_of_wait_for_as_many_as_must_be_durable() {
    let world = world(THREE_OF_FIVE, &[1_200_000, 3_000_000, 5_100_000, 2_400_000, 80_000]);
    let pool = world.pool();
    let (objects, _) = send(&world, &pool, 12).await;
    for (key, _) in &objects {
        assert!(world.pieces(key).await.len() >= 4);
    }
    assert_all_at_home(&pool, &objects).await;
    assert_eq!(sent(&world), 5 * objects.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_leaves_a_thin_line_to_what_follows_a_sync() {
    let thin = 4;
    let world = world(THREE_OF_FIVE, &[1_200_000, 3_000_000, 5_100_000, 2_400_000, 80_000]);
    let pool = world.pool();
    let objects: Vec<_> = (0..4).map(|seed| object(seed, 4 << 20)).collect();
    join_all(objects.iter().map(|(key, bytes)| pool.put_deferred(key, bytes.clone()))).await;
    pool.sync().await.unwrap();
    // As the log does, past the pool.
    let began = world.clock.elapsed();
    let entry = vec![7; 80_000];
    let key = ObjectKey::new("log/00000000000000000001/r0").unwrap();
    world.stores[thin].put(&key, entry.into(), PutMode::IfAbsent).await.unwrap();
    let took = world.clock.elapsed() - began;
    assert!(took < Duration::from_secs(3), "{took:?}, and alone one second");
    assert_all_at_home(&pool, &objects).await;
}

#[tokio::test(start_paused = true)]
async fn single_object_does_not_wait_for_a_home_that_is_far_slower_than_the_other() {
    // Whichever two of the stores are its homes, one line is thin.
    for seed in 0..12 {
        let world = world(TWO, &[20_000, 1_000_000, 1_000_000, 1_000_000]);
        let pool = world.pool();
        let (key, bytes) = object(seed, 400 << 10);
        let began = world.clock.elapsed();
        pool.put_deferred(&key, bytes).await.unwrap();
        pool.sync().await.unwrap();
        let took = world.clock.elapsed() - began;
        assert!(took < Duration::from_secs(4), "{seed}: {took:?} of the 20 s of the thin line");
        assert!(world.pieces(&key).await.len() >= 2);
    }
}
