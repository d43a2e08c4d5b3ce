//! Check, repair, rebalance.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join};
use model::Clock;
use model::pool::{Redundancy, StoreState};
use storage::placement::Placement;
use storage::pool::Pool;
use storage::pool::piece::Piece;
use storage::pool::repair::{
    CarryOut, CheckOptions, CheckReport, Depth, Finding, Problem, Progress, RepairOutcome,
};
use storage::{ObjectKey, ObjectStore};

use super::reads::assert_readable;
use super::world::{Mood, THREE_OF_FIVE, TWO, World, fill, object};

type Objects = Vec<(ObjectKey, Bytes)>;

fn always() -> BoxFuture<'static, bool> {
    async { true }.boxed()
}

async fn check(pool: &Pool, depth: Depth) -> CheckReport {
    let options = CheckOptions { depth, ..CheckOptions::default() };
    pool.check(&pool.inventory().await, &BTreeSet::new(), options).await
}

async fn repair(pool: &Pool) -> RepairOutcome {
    let plan = pool.plan_repair(&check(pool, Depth::Deep).await);
    pool.carry_out(&plan, CarryOut::default()).await
}

async fn rebalance(pool: &Pool) -> RepairOutcome {
    let plan = pool.plan_rebalance(&pool.inventory().await);
    pool.carry_out(&plan, CarryOut { may_remove: Some(&always), ..CarryOut::default() }).await
}

async fn assert_whole(world: &World, objects: &Objects) {
    let pool = world.pool();
    let report = check(&pool, Depth::Deep).await;
    assert!(report.is_clean(), "{:?}", &report.findings[..report.findings.len().min(5)]);
    assert_eq!(report.objects, objects.len() as u64);
    let placement = Placement::new(&world.config);
    for (key, bytes) in objects {
        let order = placement.order(&key.content_hash().unwrap());
        let homes: BTreeSet<u8> =
            order.homes().iter().map(|&home| world.config.stores[home].id.as_bytes()[0]).collect();
        let pieces = world.pieces(key).await;
        assert_eq!(pieces.len(), homes.len(), "nothing but what should be");
        let stores: BTreeSet<u8> = pieces.iter().map(|(store, _)| *store as u8).collect();
        assert_eq!(stores, homes);
        assert_eq!(pool.get(key).await.unwrap().as_ref(), Some(bytes));
    }
    assert!(pool.settle().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn wiped_store_is_healed() {
    for (redundancy, stores) in [(TWO, 3), (THREE_OF_FIVE, 5), (THREE_OF_FIVE, 7)] {
        let world = World::new(redundancy, stores);
        let objects = fill(&world.pool(), 40, 300).await;
        for wiped in 0..usize::from(stores) {
            world.wipe(wiped).await;
            let pool = world.pool();
            let report = check(&pool, Depth::Quick).await;
            assert!(!report.findings.is_empty() && report.bytes_read == 0);
            let store = world.config.stores[wiped].id;
            for Finding { problem, .. } in &report.findings {
                assert!(matches!(problem, Problem::Missing { store: of, .. } if *of == store));
            }
            let plan = pool.plan_repair(&report);
            let outcome = pool.carry_out(&plan, CarryOut::default()).await;
            assert_eq!(outcome.written, report.findings.len() as u64);
            assert_eq!((outcome.removed, outcome.failed), (0, Vec::new()));
            assert_whole(&world, &objects).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_flipped_bit_is_found_never_served_and_repaired() {
    let (mut flips, mut found, mut repaired) = (0u64, 0u64, 0u64);
    for (redundancy, stores) in [(TWO, 2), (Redundancy::Erasure { data: 2, total: 3 }, 3)] {
        let world = World::new(redundancy, stores);
        let objects = fill(&world.pool(), 2, 130).await;
        for (key, bytes) in &objects {
            for placed in world.pieces(key).await {
                let store = &world.stores[placed.0].store;
                let piece = store.get(&placed.1.key(key)).await.unwrap().unwrap();
                for at in 0..piece.len() {
                    flips += 1;
                    world
                        .damage(placed, key, |mut bytes| {
                            bytes[at] ^= 1 << (at % 8);
                            bytes
                        })
                        .await;
                    let pool = world.pool();
                    let report = check(&pool, Depth::Deep).await;
                    let problem = Problem::Damaged {
                        store: world.config.stores[placed.0].id,
                        piece: placed.1,
                    };
                    assert_eq!(report.findings, [Finding { object: key.clone(), problem }]);
                    found += 1;
                    assert_eq!(pool.get(key).await.unwrap().as_ref(), Some(bytes));
                    let plan = pool.plan_repair(&report);
                    assert_eq!(pool.carry_out(&plan, CarryOut::default()).await.failed, []);
                    assert!(pool.settle().await.is_empty());
                    let healed = store.get(&placed.1.key(key)).await.unwrap();
                    assert_eq!(healed.as_ref(), Some(&piece), "byte {at} of {placed:?}");
                    repaired += 1;
                }
            }
        }
    }
    assert_eq!((found, repaired), (flips, flips));
    assert!(flips > 1400, "{flips}");
}

#[tokio::test(start_paused = true)]
async fn all_changes_of_a_configuration_move_what_must_move_and_nothing_else() {
    type Change = fn(&mut World);
    let changes: [Change; 11] = [
        |world| world.config.stores[0].capacity = 50,
        |world| world.config.stores[1].state = StoreState::Draining,
        |world| world.config.redundancy = Redundancy::Replicas(3),
        |world| world.config.stores[1].state = StoreState::Active,
        |world| world.config.redundancy = THREE_OF_FIVE,
        |world| world.config.stores[4].state = StoreState::Draining,
        |world| world.config.stores[0].capacity = 10,
        |world| world.config.redundancy = Redundancy::Erasure { data: 2, total: 4 },
        |world| world.config.redundancy = TWO,
        |world| world.config.stores[4].state = StoreState::Active,
        |world| world.config.redundancy = Redundancy::Replicas(1),
    ];
    let mut world = World::new(TWO, 6);
    let objects = fill(&world.pool(), 40, 500).await;
    for change in changes {
        let before = Placement::new(&world.config);
        let is_code_before = matches!(world.config.redundancy, Redundancy::Erasure { .. });
        let redundancy_before = world.config.redundancy;
        change(&mut world);
        world.config.check().unwrap();
        let after = Placement::new(&world.config);
        let pool = world.pool();
        let plan = pool.plan_rebalance(&pool.inventory().await);
        let is_recoded = redundancy_before != world.config.redundancy
            && (is_code_before || matches!(world.config.redundancy, Redundancy::Erasure { .. }));
        let mut least = 0;
        for (key, _) in &objects {
            let hash = key.content_hash().unwrap();
            let (was, is) = (before.order(&hash), after.order(&hash));
            least += is.homes().iter().filter(|home| is_recoded || !was.is_home(**home)).count();
        }
        assert_eq!(plan.count().0, least as u64);
        let options = CarryOut { may_remove: Some(&always), ..CarryOut::default() };
        let outcome = pool.carry_out(&plan, options).await;
        assert_eq!(outcome.failed, []);
        assert_eq!((outcome.written, outcome.removed), plan.count());
        assert_whole(&world, &objects).await;
    }
}

#[tokio::test(start_paused = true)]
async fn drained_store_is_empty_in_the_end_and_a_fresh_one_has_its_share() {
    let mut world = World::new(TWO, 4);
    let objects = fill(&world.pool(), 60, 300).await;
    world.config.stores[2].state = StoreState::Draining;
    assert_eq!(rebalance(&world.pool()).await.failed, []);
    assert_eq!(world.stores[2].store.list("", None, 10).await.unwrap(), []);
    world.config.stores.remove(2);
    assert_whole(&world, &objects).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_removed_while_a_home_is_not_whole() {
    let mut world = World::new(TWO, 4);
    let objects = fill(&world.pool(), 30, 300).await;
    world.config.redundancy = Redundancy::Replicas(1);
    // The one home that is left has a bad copy, which no list can tell.
    for (key, _) in &objects {
        let order = Placement::new(&world.config).order(&key.content_hash().unwrap());
        world.damage((order.homes()[0], Piece::Copy), key, |bytes| vec![0; bytes.len()]).await;
    }
    let outcome = rebalance(&world.pool()).await;
    assert_eq!((outcome.removed, outcome.failed.len()), (0, objects.len()));
    assert_eq!(repair(&world.pool()).await.failed, []);
    let outcome = rebalance(&world.pool()).await;
    assert_eq!((outcome.removed, outcome.failed), (objects.len() as u64, Vec::new()));
    assert_whole(&world, &objects).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_removed_without_leave() {
    let mut world = World::new(TWO, 4);
    let objects = fill(&world.pool(), 10, 300).await;
    world.config.redundancy = Redundancy::Replicas(1);
    let pool = world.pool();
    let plan = pool.plan_rebalance(&pool.inventory().await);
    assert_eq!(plan.count(), (0, 10));
    let outcome = pool.carry_out(&plan, CarryOut::default()).await;
    assert_eq!(outcome, RepairOutcome::default());
    let never = || -> BoxFuture<'static, bool> { async { false }.boxed() };
    let options = CarryOut { may_remove: Some(&never), ..CarryOut::default() };
    let outcome = pool.carry_out(&plan, options).await;
    assert_eq!((outcome.removed, outcome.failed.len()), (0, 10));
    assert!(plan.without_removals().is_empty());
    for (key, _) in &objects {
        assert_eq!(world.pieces(key).await.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn two_rebalances_at_once_end_as_one() {
    for redundancy in [Redundancy::Replicas(1), TWO, THREE_OF_FIVE] {
        let mut world = World::new(redundancy, 7);
        let objects = fill(&world.pool(), 40, 300).await;
        world.config.stores[3].state = StoreState::Draining;
        world.config.stores[5].capacity = 100;
        let (one, other) = (world.pool(), world.pool());
        for store in 0..7 {
            world.set(store, Mood::Slow(Duration::from_millis(3 + store as u64 * 7 % 5)));
        }
        let plan = other.plan_rebalance(&other.inventory().await);
        let options = CarryOut { may_remove: Some(&always), ..CarryOut::default() };
        join(rebalance(&one), other.carry_out(&plan, options)).await;
        for store in 0..7 {
            world.set(store, Mood::Fine);
        }
        // What one took away under the other's hands is an error there, and done.
        assert_eq!(rebalance(&world.pool()).await.failed, []);
        assert_whole(&world, &objects).await;
        // A plan from long ago does no harm either.
        other.carry_out(&plan, options).await;
        assert_eq!(rebalance(&world.pool()).await.failed, []);
        assert_whole(&world, &objects).await;
    }
}

#[tokio::test(start_paused = true)]
async fn old_lists_lose_nothing() {
    for redundancy in [TWO, THREE_OF_FIVE] {
        let mut world = World::new(redundancy, 6);
        let objects = fill(&world.pool(), 30, 300).await;
        world.config.stores[0].state = StoreState::Draining;
        let all: BTreeSet<usize> = (0..6).collect();
        world.set_all(&all, Mood::OldLists);
        let pool = world.pool();
        for _ in 0..3 {
            repair(&pool).await;
            rebalance(&pool).await;
            for (key, bytes) in &objects {
                assert_eq!(pool.get(key).await.unwrap().as_ref(), Some(bytes));
            }
        }
        world.set_all(&all, Mood::Fine);
        rebalance(&pool).await;
        assert_whole(&world, &objects).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_restored_is_named() {
    for (redundancy, stores) in [(TWO, 3), (THREE_OF_FIVE, 5)] {
        let world = World::new(redundancy, stores);
        let objects = fill(&world.pool(), 5, 300).await;
        let (key, _) = &objects[2];
        for (store, piece) in &world.pieces(key).await[..usize::from(redundancy.losses()) + 1] {
            world.stores[*store].store.delete(&piece.key(key)).await.unwrap();
        }
        let (never_put, _) = object(1000, 10);
        let mut expected: BTreeSet<_> = objects.iter().map(|(key, _)| key.clone()).collect();
        expected.insert(never_put.clone());
        let lost: BTreeSet<_> = [key, &never_put].into_iter().collect();
        for depth in [Depth::Quick, Depth::Deep] {
            let pool = world.pool();
            let options = CheckOptions { depth, ..CheckOptions::default() };
            let report = pool.check(&pool.inventory().await, &expected, options).await;
            assert_eq!(report.lost().collect::<BTreeSet<_>>(), lost);
            assert!(pool.plan_repair(&report).is_empty(), "nothing can be done");
            // A store that does not answer may have it.
            world.set(0, Mood::Gone);
            let report = pool.check(&pool.inventory().await, &expected, options).await;
            assert_eq!((report.lost().count(), report.unseen.len()), (0, 1));
            let is_out = |finding: &&Finding| finding.problem == Problem::OutOfReach;
            assert!(report.findings.iter().filter(is_out).count() >= 2);
            world.set(0, Mood::Fine);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn store_that_cannot_be_listed_is_not_taken_for_empty() {
    for (redundancy, stores) in [(TWO, 4), (THREE_OF_FIVE, 6)] {
        let world = World::new(redundancy, stores);
        let objects = fill(&world.pool(), 30, 300).await;
        world.set(1, Mood::Gone);
        let pool = world.pool();
        let report = check(&pool, Depth::Deep).await;
        assert_eq!(report.findings, []);
        assert!(!report.is_clean() && report.unseen[0].name == "s1");
        assert!(pool.plan_rebalance(&pool.inventory().await).is_empty());
        world.set(1, Mood::Fine);
        assert_whole(&world, &objects).await;
    }
}

#[tokio::test(start_paused = true)]
async fn rebalance_goes_on_where_it_was_broken_off() {
    let mut world = World::new(TWO, 5);
    let objects = fill(&world.pool(), 60, 300).await;
    world.config.stores[0].state = StoreState::Draining;
    let pool = world.pool();
    world.set(2, Mood::Full);
    let first = rebalance(&pool).await;
    assert!(!first.failed.is_empty() && first.written > 0);
    for (key, bytes) in &objects {
        assert_readable(&pool, key, bytes).await;
    }
    world.set(2, Mood::Flaky);
    for _ in 0..20 {
        rebalance(&pool).await;
    }
    world.set(2, Mood::Fine);
    assert_eq!(rebalance(&pool).await.failed, []);
    assert_whole(&world, &objects).await;
}

#[tokio::test(start_paused = true)]
async fn work_takes_no_more_than_its_rate_and_tells_how_far_it_is() {
    let world = World::new(TWO, 3);
    fill(&world.pool(), 20, 10_000).await;
    world.wipe(1).await;
    let pool = world.pool();
    let (last, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let on_progress = |progress: Progress| {
        last.fetch_max(progress.objects_done, Ordering::Relaxed);
        bytes.fetch_max(progress.bytes, Ordering::Relaxed);
    };
    let before = world.clock.elapsed();
    let options = CheckOptions {
        depth: Depth::Deep,
        bytes_per_second: Some(10_000),
        progress: Some(&on_progress),
    };
    let report = pool.check(&pool.inventory().await, &BTreeSet::new(), options).await;
    assert_eq!(
        (last.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed)),
        (20, report.bytes_read)
    );
    let least = Duration::from_secs(report.bytes_read / 10_000);
    assert!(world.clock.elapsed() - before >= least && report.bytes_read > 200_000);
    let before = world.clock.elapsed();
    let plan = pool.plan_repair(&report);
    let options = CarryOut { bytes_per_second: Some(10_000), ..CarryOut::default() };
    let outcome = pool.carry_out(&plan, options).await;
    assert!(world.clock.elapsed() - before >= Duration::from_secs(outcome.bytes / 10_000));
    assert!(outcome.bytes > 100_000);
}
