//! Random days: puts, reads, failures, damage and changes of the configuration in any order, by two devices.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join};
use model::pool::{Redundancy, StoreState};
use storage::pool::Pool;
use storage::pool::repair::{CarryOut, CheckOptions, Depth};
use storage::{ObjectKey, ObjectStore, PutMode};

use super::world::{Mood, THREE_OF_FIVE, TWO, World, object};

const STORES: usize = 7;
const MOODS: [Mood; 9] = [
    Mood::Gone,
    Mood::Silent,
    Mood::Slow(Duration::from_millis(700)),
    Mood::Full,
    Mood::ReadOnly,
    Mood::Flaky,
    Mood::Forgetful,
    Mood::OldLists,
    Mood::Narrow(10_000),
];
const REDUNDANCIES: [Redundancy; 5] = [
    Redundancy::Replicas(1),
    TWO,
    Redundancy::Replicas(3),
    Redundancy::Erasure { data: 2, total: 4 },
    THREE_OF_FIVE,
];

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((value ^ (value >> 31)) % sides as u64) as usize
    }
}

struct Storm {
    seed: u64,
    dice: Dice,
    world: World,
    /// The newest configuration, and one that its device has not heard of yet.
    pools: [Pool; 2],
    objects: BTreeMap<ObjectKey, Bytes>,
    next: u64,
    is_calm: bool,
    may_be_damaged: bool,
}

fn always() -> BoxFuture<'static, bool> {
    async { true }.boxed()
}

impl Storm {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let world = World::new(REDUNDANCIES[dice.roll(REDUNDANCIES.len())], STORES as u8);
        let pools = [world.pool(), world.pool()];
        let objects = BTreeMap::new();
        let (next, is_calm, may_be_damaged) = (seed << 32, true, false);
        Self { seed, dice, world, pools, objects, next, is_calm, may_be_damaged }
    }

    fn any_pool(&mut self) -> Pool {
        let chosen = self.dice.roll(3) % 2;
        self.pools[chosen].clone()
    }

    fn any_object(&mut self) -> Option<(ObjectKey, Bytes)> {
        let count = self.objects.len();
        let chosen = self.dice.roll(count.max(1));
        self.objects.iter().nth(chosen).map(|(key, bytes)| (key.clone(), bytes.clone()))
    }

    fn new_object(&mut self) -> (ObjectKey, Bytes) {
        self.next += 1;
        object(self.next, self.dice.roll(3000))
    }

    async fn step(&mut self) {
        match self.dice.roll(14) {
            0..=2 => {
                let (key, bytes) = self.new_object();
                if self.any_pool().put(&key, bytes.clone(), PutMode::IfAbsent).await.is_ok() {
                    self.objects.insert(key, bytes);
                }
            }
            3 => self.defer().await,
            4..=6 => self.read().await,
            7 | 8 => {
                let store = self.dice.roll(STORES);
                self.world.set(store, MOODS[self.dice.roll(MOODS.len())]);
                self.is_calm = false;
            }
            9 => self.calm(),
            10 => {
                let Some((key, _)) = self.any_object() else { return };
                let _ = self.any_pool().delete(&key).await;
                // After a failure it may be there or not.
                self.objects.remove(&key);
            }
            11 => self.reconfigure(),
            12 => {
                let (key, bytes) = self.new_object();
                let stale = self.pools[1].clone();
                let put = stale.put(&key, bytes.clone(), PutMode::IfAbsent);
                if join(put, rebalance(&self.pools[0])).await.0.is_ok() {
                    self.objects.insert(key, bytes);
                }
            }
            _ => self.heal().await,
        }
    }

    fn calm(&mut self) {
        self.world.set_all(&(0..STORES).collect(), Mood::Fine);
        self.is_calm = true;
    }

    async fn defer(&mut self) {
        let chosen = self.dice.roll(2);
        let pool = self.pools[chosen].clone();
        let objects: Vec<_> = (0..self.dice.roll(4)).map(|_| self.new_object()).collect();
        let mut taken = Vec::new();
        for (key, bytes) in objects {
            if pool.put_deferred(&key, bytes.clone()).await.is_ok() {
                taken.push((key, bytes));
            }
        }
        if pool.sync().await.is_ok() {
            self.objects.extend(taken);
        } else if chosen == 0 {
            // Opened again, as a device does whose store has failed to make something durable.
            self.pools[0] = self.world.pool();
        }
    }

    async fn read(&mut self) {
        let Some((key, bytes)) = self.any_object() else { return };
        let pool = self.any_pool();
        let start = self.dice.roll(bytes.len() + 1);
        let end = start + self.dice.roll(bytes.len() + 1);
        match pool.get(&key).await {
            Ok(found) => assert_eq!(found.as_ref(), Some(&bytes), "seed {}", self.seed),
            Err(error) => assert!(!self.is_calm, "seed {}: {error}", self.seed),
        }
        let part = bytes.slice(start..end.min(bytes.len()));
        let found = pool.get_range(&key, start as u64..end as u64).await;
        match found {
            // Damage shows in ranges, and is for the reader to see.
            Ok(Some(_)) if self.may_be_damaged => {}
            Ok(found) => assert_eq!(found, Some(part), "seed {}", self.seed),
            Err(error) => assert!(!self.is_calm, "seed {}: {error}", self.seed),
        }
    }

    fn reconfigure(&mut self) {
        let before = self.world.config.clone();
        let config = &mut self.world.config;
        let store = self.dice.roll(STORES);
        match self.dice.roll(4) {
            0 => config.redundancy = REDUNDANCIES[self.dice.roll(REDUNDANCIES.len())],
            1 => config.stores[store].capacity = 1 + self.dice.roll(40) as u32,
            2 => config.stores[store].state = StoreState::Draining,
            _ => config.stores[store].state = StoreState::Active,
        }
        if config.check().is_err() {
            self.world.config = before;
            return;
        }
        self.pools[1] = std::mem::replace(&mut self.pools[0], self.world.pool());
    }

    /// A quiet hour: everything is brought in order; then, perhaps, one store loses or spoils what it has.
    async fn heal(&mut self) {
        self.calm();
        // What a handle has lost at a sync it has lost.
        self.pools[0].settle().await;
        self.pools[1].settle().await;
        let pool = self.world.pool();
        let expected: BTreeSet<ObjectKey> = self.objects.keys().cloned().collect();
        let options = CheckOptions { depth: Depth::Deep, ..CheckOptions::default() };
        let report = pool.check(&pool.inventory().await, &expected, options).await;
        // Nothing that was put is lost. Of a put that failed a part may be left.
        let lost: BTreeSet<&ObjectKey> = report.lost().collect();
        assert!(expected.iter().all(|key| !lost.contains(key)), "seed {}", self.seed);
        let plan = pool.plan_repair(&report);
        let outcome = pool.carry_out(&plan, CarryOut::default()).await;
        assert_eq!(outcome.failed, [], "seed {}", self.seed);
        rebalance(&pool).await;
        let report = pool.check(&pool.inventory().await, &expected, options).await;
        let findings = report.findings.iter().filter(|finding| expected.contains(&finding.object));
        assert_eq!(findings.count(), 0, "seed {}: {:?}", self.seed, report.findings);
        for (key, bytes) in &self.objects {
            assert_eq!(pool.get(key).await.unwrap().as_ref(), Some(bytes), "seed {}", self.seed);
        }
        let listed: BTreeSet<ObjectKey> =
            pool.list("", None, 100_000).await.unwrap().into_iter().map(|e| e.key).collect();
        assert!(expected.is_subset(&listed), "seed {}", self.seed);
        self.pools[0] = self.world.pool();
        self.may_be_damaged = false;
        if self.world.config.redundancy.losses() > 0 {
            self.damage().await;
        }
    }

    async fn damage(&mut self) {
        let store = self.dice.roll(STORES);
        match self.dice.roll(4) {
            0 => self.world.wipe(store).await,
            1 => {
                for key in self.objects.keys() {
                    for placed in self.world.pieces(key).await {
                        if placed.0 == store {
                            let at = self.dice.0 as usize;
                            self.world.damage(placed, key, |bytes| flipped(bytes, at)).await;
                        }
                    }
                }
                self.may_be_damaged = true;
            }
            _ => {}
        }
    }
}

fn flipped(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    let length = bytes.len();
    if length > 0 {
        bytes[at % length] ^= 1;
    }
    bytes
}

async fn rebalance(pool: &Pool) {
    let plan = pool.plan_rebalance(&pool.inventory().await);
    pool.carry_out(&plan, CarryOut { may_remove: Some(&always), ..CarryOut::default() }).await;
}

#[tokio::test(start_paused = true)]
async fn no_storm_loses_what_was_put_or_serves_a_wrong_byte() {
    for seed in 0..25 {
        let mut storm = Storm::new(seed);
        for _ in 0..80 {
            storm.step().await;
        }
        storm.heal().await;
    }
}
