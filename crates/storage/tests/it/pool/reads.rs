//! Reads: never a wrong byte, from any stores that are left.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use model::Clock;
use model::pool::Redundancy;
use storage::object_store::list_all;
use storage::pool::Pool;
use storage::pool::piece::Piece;
use storage::{ContentStore, ObjectKey, ObjectStore, PutMode, StorageError};

use super::world::{Mood, THREE_OF_FIVE, TWO, World, fill, object};

const TWO_OF_FOUR: Redundancy = Redundancy::Erasure { data: 2, total: 4 };

/// Reads an object in every way.
pub(crate) async fn assert_readable(pool: &Pool, key: &ObjectKey, bytes: &Bytes) {
    let length = bytes.len();
    assert_eq!(pool.get(key).await.unwrap().as_ref(), Some(bytes));
    assert_eq!(pool.size(key).await.unwrap(), Some(length as u64));
    for (start, end) in
        [(0, 1), (0, length), (length / 3 - 5, length / 3 + 70), (length - 1, length)]
    {
        let found = pool.get_range(key, start as u64..end as u64).await.unwrap();
        assert_eq!(found, Some(bytes.slice(start..end)), "{start}..{end}");
    }
    for tail in [1, 100, length] {
        let found = pool.get_tail(key, tail as u64).await.unwrap();
        assert_eq!(found, Some(bytes.slice(length - tail..)));
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_stores_as_promised_may_fail_in_any_way() {
    for (redundancy, stores) in
        [(TWO, 3), (Redundancy::Replicas(3), 4), (TWO_OF_FOUR, 4), (THREE_OF_FIVE, 6)]
    {
        let world = World::new(redundancy, stores);
        let objects = fill(&world.pool(), 6, 1000).await;
        let lost = usize::from(redundancy.losses());
        for mood in [Mood::Gone, Mood::Silent, Mood::Flaky] {
            for first in 0..usize::from(stores) {
                let bad: BTreeSet<usize> =
                    (0..lost).map(|more| (first + more) % usize::from(stores)).collect();
                world.set_all(&bad, mood);
                let pool = world.pool();
                for (key, bytes) in &objects {
                    assert_readable(&pool, key, bytes).await;
                }
                world.set_all(&bad, Mood::Fine);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn silent_store_delays_a_read_by_less_than_a_second() {
    for redundancy in [TWO, TWO_OF_FOUR] {
        let world = World::new(redundancy, 4);
        let objects = fill(&world.pool(), 10, 10_000).await;
        world.set(0, Mood::Silent);
        let pool = world.pool();
        for (key, bytes) in &objects {
            let before = world.clock.elapsed();
            assert_eq!(pool.get(key).await.unwrap().as_ref(), Some(bytes));
            assert_eq!(pool.get_range(key, 5..9).await.unwrap(), Some(bytes.slice(5..9)));
            let took = world.clock.elapsed() - before;
            assert!(took < Duration::from_secs(3), "{redundancy}: {took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn damaged_pieces_are_never_served_and_are_mended_behind_the_reader() {
    type Damage = fn(Vec<u8>) -> Vec<u8>;
    let damages: [Damage; 5] = [
        |mut bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
            bytes
        },
        |bytes| bytes[..bytes.len() - 1].to_vec(),
        |mut bytes| {
            bytes.push(0);
            bytes
        },
        |_| Vec::new(),
        |bytes| vec![0; bytes.len()],
    ];
    for (redundancy, stores) in [(TWO, 3), (THREE_OF_FIVE, 5)] {
        for damage in damages {
            let world = World::new(redundancy, stores);
            let objects = fill(&world.pool(), 4, 1000).await;
            for (key, bytes) in &objects {
                let pieces = world.pieces(key).await;
                for piece in &pieces[..usize::from(redundancy.losses())] {
                    world.damage(*piece, key, damage).await;
                }
                // Several readers, so that every store is asked first by one.
                for _ in 0..3 {
                    let pool = world.pool();
                    assert_eq!(pool.get(key).await.unwrap().as_ref(), Some(bytes));
                    pool.settle().await;
                }
                let pool = world.pool();
                assert!(pool.mend(key).await.unwrap());
                for lost in pieces.windows(usize::from(redundancy.losses())) {
                    let lost = lost.iter().map(|(store, _)| *store).collect();
                    world.set_all(&lost, Mood::Gone);
                    assert_readable(&world.pool(), key, bytes).await;
                    world.set_all(&lost, Mood::Fine);
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_of_another_object_are_not_taken() {
    for (redundancy, stores) in [(TWO, 3), (THREE_OF_FIVE, 5)] {
        let world = World::new(redundancy, stores);
        let objects = fill(&world.pool(), 2, 1000).await;
        let [(first, bytes), (second, _)] = &objects[..] else { panic!("two objects") };
        for (store, piece) in world.pieces(first).await.into_iter().take(redundancy.losses().into())
        {
            let foreign = world.pieces(second).await.into_iter().find(|(_, other)| *other == piece);
            let (from, piece) = foreign.unwrap_or_else(|| panic!("{redundancy}"));
            let foreign = world.stores[from].store.get(&piece.key(second)).await.unwrap().unwrap();
            world.damage((store, piece), first, |_| foreign.to_vec()).await;
        }
        let pool = world.pool();
        assert_eq!(pool.get(first).await.unwrap().as_ref(), Some(bytes));
        assert!(pool.mend(first).await.unwrap());
        assert_readable(&pool, first, bytes).await;
    }
}

/// Makes a block say of itself what is not so, with right checksums.
fn forged(mut block: Vec<u8>) -> Vec<u8> {
    block[96] ^= 1;
    let payload = *blake3::hash(&block[96..]).as_bytes();
    block[48..80].copy_from_slice(&payload);
    let check = *blake3::hash(&block[..80]).as_bytes();
    block[80..96].copy_from_slice(&check[..16]);
    block
}

#[tokio::test(start_paused = true)]
async fn forged_blocks_are_found_out_by_the_others() {
    let world = World::new(THREE_OF_FIVE, 5);
    let objects = fill(&world.pool(), 3, 1000).await;
    for (key, bytes) in &objects {
        let pieces = world.pieces(key).await;
        for piece in &pieces[..2] {
            world.damage(*piece, key, forged).await;
        }
        let pool = world.pool();
        assert_eq!(pool.get(key).await.unwrap().as_ref(), Some(bytes));
        assert!(pool.mend(key).await.unwrap());
        for piece in &pieces[2..4] {
            world.set(piece.0, Mood::Gone);
        }
        assert_eq!(world.pool().get(key).await.unwrap().as_ref(), Some(bytes), "it was mended");
        for piece in &pieces[2..4] {
            world.set(piece.0, Mood::Fine);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn absence_is_told_only_when_all_stores_have_looked() {
    for (redundancy, stores) in [(TWO, 3), (THREE_OF_FIVE, 5)] {
        let world = World::new(redundancy, stores);
        fill(&world.pool(), 2, 1000).await;
        let (key, _) = object(99, 10);
        assert_eq!(world.pool().get(&key).await.unwrap(), None);
        for bad in 0..usize::from(stores) {
            for mood in [Mood::Gone, Mood::Silent] {
                world.set(bad, mood);
                let pool = world.pool();
                assert!(pool.get(&key).await.unwrap_err().is_retryable());
                assert!(pool.size(&key).await.unwrap_err().is_retryable());
                assert!(pool.get_range(&key, 0..1).await.unwrap_err().is_retryable());
                assert!(pool.get_tail(&key, 1).await.unwrap_err().is_retryable());
                world.set(bad, Mood::Fine);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn too_little_left_is_damage_and_not_absence() {
    let world = World::new(THREE_OF_FIVE, 5);
    let objects = fill(&world.pool(), 1, 1000).await;
    (0..3).for_each(|store| world.set(store, Mood::Gone));
    let error = world.pool().get(&objects[0].0).await.unwrap_err();
    assert!(error.is_retryable(), "the others may come back: {error}");
    (0..3).for_each(|store| world.set(store, Mood::Fine));
    for store in 0..3 {
        world.wipe(store).await;
    }
    let error = world.pool().get(&objects[0].0).await.unwrap_err();
    assert!(matches!(error, StorageError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains(objects[0].0.as_str()), "{error}");
}

#[tokio::test(start_paused = true)]
async fn range_of_an_object_in_blocks_asks_one_store_once() {
    let world = World::new(THREE_OF_FIVE, 5);
    let objects = fill(&world.pool(), 1, 300_000).await;
    let (key, bytes) = &objects[0];
    let pool = world.pool();
    pool.get_tail(key, 64).await.unwrap();
    world.stores.iter().for_each(|store| drop(store.take_calls()));
    let found = pool.get_range(key, 150_000..160_000).await.unwrap();
    assert_eq!(found, Some(bytes.slice(150_000..160_000)));
    let calls: u64 = world.stores.iter().map(|s| s.take_calls().values().sum::<u64>()).sum();
    assert_eq!(calls, 1);
}

#[tokio::test(start_paused = true)]
async fn reader_that_found_a_range_wrong_gets_a_right_one_after_mending() {
    for (redundancy, stores) in [(TWO, 3), (THREE_OF_FIVE, 5)] {
        let world = World::new(redundancy, stores);
        let objects = fill(&world.pool(), 1, 3000).await;
        let (key, bytes) = &objects[0];
        for piece in &world.pieces(key).await[..usize::from(redundancy.losses())] {
            world.damage(*piece, key, |bytes| bytes.iter().map(|byte| byte ^ 0x55).collect()).await;
        }
        let pool = world.pool();
        let _ = pool.get_range(key, 0..3000).await;
        assert!(pool.mend(key).await.unwrap());
        for _ in 0..5 {
            let found = world.pool().get_range(key, 0..3000).await.unwrap();
            assert_eq!(found, Some(bytes.clone()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn object_that_is_lost_cannot_be_mended() {
    let world = World::new(TWO, 3);
    let objects = fill(&world.pool(), 1, 1000).await;
    for piece in world.pieces(&objects[0].0).await {
        world.damage(piece, &objects[0].0, |_| b"gone".to_vec()).await;
    }
    assert!(world.pool().mend(&objects[0].0).await.is_err());
    let (absent, _) = object(9, 9);
    assert!(!world.pool().mend(&absent).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn what_another_configuration_wrote_is_read() {
    let all = [Redundancy::Replicas(1), TWO, Redundancy::Replicas(3), TWO_OF_FOUR, THREE_OF_FIVE];
    for before in all {
        for after in all {
            let mut world = World::new(before, 6);
            let objects = fill(&world.pool(), 5, 1000).await;
            world.config.redundancy = after;
            world.config.stores[2].capacity = 1000;
            world.config.stores[3].state = model::pool::StoreState::Draining;
            world.config.check().unwrap();
            let pool = world.pool();
            for (key, bytes) in &objects {
                assert_readable(&pool, key, bytes).await;
            }
            let listed = pool.list("", None, 100).await.unwrap();
            assert_eq!(listed.len(), objects.len());
            for entry in listed {
                let (_, bytes) = objects.iter().find(|(key, _)| *key == entry.key).unwrap();
                assert_eq!(entry.size, bytes.len() as u64, "{before} {after}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lists_are_complete_or_fail() {
    for (redundancy, stores) in [(TWO, 3), (THREE_OF_FIVE, 5)] {
        let world = World::new(redundancy, stores);
        let mut keys: Vec<ObjectKey> =
            fill(&world.pool(), 60, 100).await.into_iter().map(|(key, _)| key).collect();
        let content = ContentStore::new(std::sync::Arc::new(world.pool()));
        for seed in 100..120u64 {
            let bytes = Bytes::from(seed.to_string());
            let id = model::PageId::from_bytes(*blake3::hash(&bytes).as_bytes());
            content.put_page(id, bytes).await.unwrap();
            keys.push(ObjectKey::page(id));
        }
        content.object_store().size(&keys[0]).await.unwrap();
        world.pool().settle().await;
        keys.sort();
        for bad in 0..usize::from(stores) {
            world.set(bad, Mood::Gone);
            for limit in if bad == 0 { [1, 7, 1000] } else { [30, 79, 80] } {
                let mut found: Vec<ObjectKey> = Vec::new();
                loop {
                    let after = found.last().map(|key| key.as_str().to_owned());
                    let page = world.pool().list("", after.as_deref(), limit).await.unwrap();
                    let is_last = page.len() < limit;
                    found.extend(page.into_iter().map(|entry| entry.key));
                    if is_last {
                        break;
                    }
                }
                assert_eq!(found, keys, "{redundancy} in pages of {limit}");
            }
            let pages = world.pool().list("pages/", None, 1000).await.unwrap();
            assert_eq!(pages.len(), 20);
            world.set(bad, Mood::Fine);
        }
        (0..usize::from(redundancy.losses()) + 1).for_each(|store| world.set(store, Mood::Gone));
        if redundancy == TWO {
            assert!(world.pool().list("", None, 10).await.is_err());
        }
        (0..usize::from(stores)).for_each(|store| world.set(store, Mood::Gone));
        assert!(world.pool().list("", None, 10).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn many_reads_use_all_stores() {
    let world = World::new(TWO, 4);
    let objects = fill(&world.pool(), 64, 100_000).await;
    (0..4).for_each(|store| world.set(store, Mood::Slow(Duration::from_millis(100))));
    let pool = world.pool();
    world.stores.iter().for_each(|store| drop(store.take_calls()));
    let reads = objects.iter().map(|(key, _)| pool.get(key));
    assert!(join_all(reads).await.into_iter().all(|read| matches!(read, Ok(Some(_)))));
    let gets: Vec<u64> = world.stores.iter().map(|s| s.take_calls()["get"]).collect();
    assert!(gets.iter().all(|&gets| gets >= 8), "{gets:?}");
    assert!(gets.iter().sum::<u64>() <= 80, "hedging is the exception: {gets:?}");
}

/// Reads objects, so many at once; returns which part of the bandwidth of all stores was used.
async fn part_of_bandwidth(redundancy: Redundancy, rates: &[u64], at_once: usize) -> f64 {
    let world = World::new(redundancy, u8::try_from(rates.len()).unwrap());
    let objects = fill(&world.pool(), 64, 1 << 20).await;
    for (store, rate) in rates.iter().enumerate() {
        world.set(store, Mood::Narrow(*rate));
    }
    let pool = world.pool();
    let before = world.clock.elapsed();
    let reads = futures_util::stream::iter(&objects)
        .map(|(key, _)| pool.get(key))
        .buffer_unordered(at_once);
    let found: Vec<_> = reads.collect().await;
    assert!(found.iter().all(|read| matches!(read, Ok(Some(_)))));
    let bytes: usize = objects.iter().map(|(_, bytes)| bytes.len()).sum();
    let least = bytes as f64 / rates.iter().sum::<u64>() as f64;
    least / (world.clock.elapsed() - before).as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn clone_uses_most_of_the_bandwidth_of_all_stores_together() {
    // The rates of Dropbox, Google Drive and OneDrive in MetaSync's Figure 10, a tenth of them.
    let copies = part_of_bandwidth(TWO, &[510_000, 340_000, 480_000], 8).await;
    let blocks = part_of_bandwidth(THREE_OF_FIVE, &[300_000; 5], 8).await;
    assert!(copies > 0.95 && blocks > 0.95, "{copies:.3} {blocks:.3}");
}

#[tokio::test(start_paused = true)]
async fn fast_store_is_preferred_to_a_slow_one() {
    let world = World::new(TWO, 2);
    let objects = fill(&world.pool(), 40, 1000).await;
    world.set(0, Mood::Slow(Duration::from_millis(400)));
    world.set(1, Mood::Slow(Duration::from_millis(10)));
    let pool = world.pool();
    for (key, bytes) in &objects {
        assert_eq!(pool.get(key).await.unwrap().as_ref(), Some(bytes));
    }
    let slow = world.stores[0].take_calls()["get"];
    assert!(slow <= 4, "{slow} of 40 reads asked the slow store");
}

#[tokio::test(start_paused = true)]
async fn home_that_is_behind_is_not_asked_first_for_every_object() {
    for (redundancy, stores) in [(TWO, 3), (THREE_OF_FIVE, 5)] {
        let world = World::new(redundancy, stores);
        let objects = fill(&world.pool(), 60, 1000).await;
        let kept = world.stores[0].store.clone();
        let mut lacking = Vec::new();
        for entry in list_all(&*kept, "").await.unwrap() {
            lacking.push((entry.key.clone(), kept.get(&entry.key).await.unwrap().unwrap()));
            kept.delete(&entry.key).await.unwrap();
        }
        for store in 0..usize::from(stores) {
            world.set(store, Mood::Slow(Duration::from_millis(100)));
        }
        let pool = world.pool();
        world.stores[0].take_calls();
        for (key, bytes) in &objects {
            assert_eq!(pool.get(key).await.unwrap().as_ref(), Some(bytes));
        }
        let gets = world.stores[0].take_calls()["get"];
        assert!(gets <= 4, "{redundancy}: {gets} of 60 reads asked the store that has nothing");
        // Once it has its pieces it is a store like the others again.
        for (key, bytes) in lacking {
            kept.put(&key, bytes, PutMode::IfAbsent).await.unwrap();
        }
        world.clock.sleep(Duration::from_secs(600)).await;
        for _ in 0..2 {
            join_all(objects.iter().map(|(key, _)| pool.get(key))).await;
        }
        let gets = world.stores[0].take_calls()["get"];
        assert!(gets >= 20, "{redundancy}: {gets} of 120 reads");
    }
}

#[tokio::test(start_paused = true)]
async fn a_put_of_an_empty_object_is_read_back() {
    for (redundancy, stores) in [(TWO, 3), (THREE_OF_FIVE, 5)] {
        let world = World::new(redundancy, stores);
        let pool = world.pool();
        let (key, bytes) = object(1, 0);
        pool.put(&key, bytes.clone(), PutMode::IfAbsent).await.unwrap();
        assert_eq!(pool.get(&key).await.unwrap(), Some(bytes));
        assert_eq!(pool.size(&key).await.unwrap(), Some(0));
        let pieces = world.pieces(&key).await;
        assert!(pieces.iter().all(|(_, piece)| (*piece == Piece::Copy) == (redundancy == TWO)));
    }
}
