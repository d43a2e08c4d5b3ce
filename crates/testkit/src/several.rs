//! Several stores instead of one: as copies or blocks, with an agreement over them, and with troubles of their own.
//!
//! *Participants*: the stores, in memory; the troublemaker, who lets at most as many of them fail at once as the workspace
//! can stand; for each device its ways to them. *Invariants*: what is checked after every phase, when all stores are
//! back and one device has repaired them: every object that the log names is whole, in all its homes; and with any of the stores that may be
//! lost gone, a new device reads everything.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use commit_log::SlotCommitLog;
use commit_log::serverless::group::{ConstantMembership, Group, NamedStore};
use commit_log::serverless::slot_log::Means;
use model::ids::StoreId;
use model::pool::{PoolConfig, Redundancy, StoreRecord};
use model::{Clock, Genesis, Random};
use storage::faulty::Faulty;
use storage::pool::block::{self, BlockCode, BlockName};
use storage::pool::{Pool, PoolOptions};
use storage::{ObjectKey, ObjectStore};

use crate::clock::VirtualTime;
use crate::coverage::{Coverage, Fault};
use crate::random::Dice;
use crate::record::Record;
use crate::store::{Delayed, Network};

mod checks;
mod troubled;

pub use checks::check_stores;
pub(crate) use checks::needed_packs;
pub use troubled::{Trouble, TroubledStore};

/// How many stores there are, and what is kept in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeveralOptions {
    /// How many stores.
    pub stores: u8,
    /// How much is kept of everything.
    pub redundancy: Redundancy,
    /// Whether every line to every store is bad. Otherwise only the stores of a phase fail, of which there are as many as may
    /// be lost; and then they may also forget what they held.
    pub storms: bool,
    /// Something that is wrong on purpose, to see that it is found.
    pub defect: Option<SeveralDefect>,
}

/// A deliberate defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeveralDefect {
    /// Stores say that they hold pieces which they do not hold.
    AnswersBeforeDurable,
    /// Whoever repairs deletes a good piece of each object, and says nothing.
    RepairDeletes,
    /// Nobody repairs.
    NeverRepairs,
    /// Whoever removes a pack from a store removes another one, too.
    RemovesTwoPacks,
    /// More stores lose their data at once than may.
    TooManyFail,
}

impl SeveralOptions {
    /// Draws what the stores of a world are like.
    pub fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0x0005_3e7e_4a15);
        let (stores, redundancy) = *dice.pick(&[
            (3, Redundancy::Replicas(2)),
            (3, Redundancy::Erasure { data: 2, total: 3 }),
            (5, Redundancy::Replicas(2)),
            (5, Redundancy::Replicas(3)),
            (5, Redundancy::Erasure { data: 3, total: 5 }),
        ]);
        Self { stores, redundancy, storms: dice.chance(300), defect: None }
    }

    /// How many stores may fail at once: neither data nor agreement needs them.
    pub fn failing_max(&self) -> usize {
        let minority = (usize::from(self.stores) - 1) / 2;
        minority.min(usize::from(self.redundancy.losses()))
    }
}

/// The stores of a world; clones share them.
#[derive(Debug, Clone)]
pub struct Several {
    /// How they are used.
    pub options: SeveralOptions,
    /// The stores.
    pub stores: Vec<TroubledStore>,
    /// The pool that they make.
    pub config: PoolConfig,
    /// Who is in trouble in this phase.
    failing: Arc<parking_lot::Mutex<BTreeSet<usize>>>,
}

impl Several {
    /// Makes empty stores.
    pub fn new(
        options: SeveralOptions,
        seed: u64,
        time: &VirtualTime,
        coverage: &Coverage,
    ) -> Self {
        let mut dice = Dice::new(seed ^ 0x57_04e5);
        let defect = options.defect;
        let stores = (0..options.stores)
            .map(|_| TroubledStore::new(dice.fork(), time.clone(), coverage.clone(), defect));
        let record = |number: u8| {
            let id = StoreId::from_bytes([number + 1; 16]);
            StoreRecord::new(id, format!("store {number}"), format!("memory:{number}"), 100)
        };
        let records = (0..options.stores).map(record).collect();
        let config = PoolConfig::new(options.redundancy, records).expect("these make a pool");
        Self { options, stores: stores.collect(), config, failing: Arc::default() }
    }

    /// Returns what the stores hold, with the number of the store in front of each key.
    pub fn snapshot(&self) -> std::collections::BTreeMap<String, bytes::Bytes> {
        let stores = self.stores.iter().enumerate();
        stores
            .flat_map(|(number, store)| {
                let objects = store.memory().snapshot().into_iter();
                objects.map(move |(key, bytes)| (format!("{number}/{key}"), bytes))
            })
            .collect()
    }

    /// Returns the packs of which any store holds a piece.
    pub fn packs(&self) -> BTreeSet<String> {
        let keys = self.stores.iter().flat_map(|store| store.memory().snapshot().into_keys());
        let keys = keys.filter_map(|key| ObjectKey::new(&key).ok());
        let objects = keys.map(|key| block::parse_key(&key).map_or(key, |(object, _)| object));
        let packs = objects.filter(|key| key.as_pack().is_some());
        packs.map(|key| key.as_str().to_owned()).collect()
    }

    /// Tells whether enough pieces of an object are in the stores to give it back, without asking them.
    pub fn can_restore(&self, key: &ObjectKey) -> bool {
        match self.options.redundancy {
            Redundancy::Replicas(_) => {
                self.stores.iter().any(|store| store.memory().object(key).is_some())
            }
            Redundancy::Erasure { data, .. } => {
                let code = BlockCode::of(self.options.redundancy).expect("it is one");
                let is_there = |name: &BlockName| {
                    let block = name.key(key);
                    self.stores.iter().any(|store| store.memory().object(&block).is_some())
                };
                code.names().filter(is_there).count() >= usize::from(data)
            }
        }
    }

    /// Chooses who fails in a phase; nobody fails yet.
    pub fn begin_phase(&self, dice: &mut Dice) {
        let mut all: Vec<usize> = (0..self.stores.len()).collect();
        let count = match self.options.defect {
            Some(SeveralDefect::TooManyFail) => self.options.failing_max() + 1,
            _ => dice.index(self.options.failing_max() + 1),
        };
        let mut failing = self.failing.lock();
        failing.clear();
        for _ in 0..count {
            failing.insert(all.swap_remove(dice.index(all.len())));
        }
        for store in &self.stores {
            store.remember_today();
        }
    }

    /// As many stores as may be lost are gone, for good.
    pub fn lose_some(&self, dice: &mut Dice) {
        let mut all: Vec<usize> = (0..self.stores.len()).collect();
        for _ in 0..self.options.failing_max() {
            self.stores[all.swap_remove(dice.index(all.len()))].set_trouble(Trouble::Gone);
        }
    }

    /// All stores are well again.
    pub fn heal(&self) {
        self.failing.lock().clear();
        self.stores.iter().for_each(|store| store.set_trouble(Trouble::None));
    }

    /// Lets the stores of this phase have one trouble after the other. It stops when the phase heals.
    pub async fn trouble(self, mut dice: Dice, time: VirtualTime, record: Record) {
        for _ in 0..2 + dice.below(8) {
            time.sleep(Duration::from_millis(dice.below(8000))).await;
            let failing: Vec<usize> = self.failing.lock().iter().copied().collect();
            let Some(&number) = (!failing.is_empty()).then(|| dice.pick(&failing)) else { return };
            if self.options.defect == Some(SeveralDefect::TooManyFail) {
                for &number in &failing {
                    self.stores[number].set_trouble(Trouble::Wiped);
                }
                continue;
            }
            let trouble = Trouble::draw(&mut dice, !self.options.storms);
            record.note("trouble", format_args!("store {number}: {trouble:?}"));
            self.stores[number].set_trouble(trouble);
        }
    }

    /// Tells whether a store is one of those that fail in this phase.
    fn is_failing(&self, number: usize) -> bool {
        self.failing.lock().contains(&number)
    }
}

/// The ways of one device to the stores.
#[derive(Debug)]
pub struct Ways {
    several: Several,
    faulty: Vec<Arc<Faulty>>,
    network: Network,
}

/// Log and pool over the stores, as one process opens them.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The log.
    pub log: Arc<SlotCommitLog>,
    /// The pool.
    pub pool: Pool,
}

/// How long a process waits for stores that are slow to hear of the newest changes, as the program does.
const SETTLING_MAX: Duration = Duration::from_secs(2);

impl Opened {
    /// Does what a process does, and lets go on beside it what is under way at the stores; then gives slow stores what they
    /// still lack.
    pub async fn run<T>(&self, work: impl Future<Output = T>, clock: &dyn Clock) -> T {
        let done = self.log.beside(work).await;
        let settled = std::pin::pin!(self.log.settle());
        let _either = futures_util::future::select(settled, clock.sleep(SETTLING_MAX)).await;
        let _owed = self.pool.settle().await;
        done
    }
}

impl Ways {
    /// Makes ways with the faults of a network.
    pub fn new(several: Several, network: Network) -> Self {
        let faulty = several.stores.iter().enumerate().map(|(number, store)| {
            let (line, several) = (network.clone(), several.clone());
            // A line to a store that is well is well too, but for answers that are lost and requests that come twice.
            let plan = move |call: &storage::faulty::Call<'_>| {
                let is_bad = several.options.storms || several.is_failing(number);
                line.decide_for_one_of_several(call, is_bad)
            };
            Arc::new(Faulty::new(Arc::new(store.clone()), plan))
        });
        Self { faulty: faulty.collect(), several, network }
    }

    /// A process has died: what it had deferred is lost.
    pub fn crash(&self) {
        self.faulty.iter().for_each(|faulty| faulty.crash());
    }

    /// Opens log and pool.
    pub fn open(
        &self,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        genesis: &Genesis,
    ) -> Opened {
        let way = |faulty: &Arc<Faulty>| -> Arc<dyn ObjectStore> {
            Arc::new(Delayed::new(faulty.clone(), self.network.clone()))
        };
        let ways: Vec<_> = self.faulty.iter().map(way).collect();
        let config = &self.several.config;
        let means = Means { clock: clock.clone(), random };
        let log = SlotCommitLog::over(membership(config, &ways), means, genesis.clone());
        Opened { log: Arc::new(log), pool: pool(config, ways, clock) }
    }
}

/// Lets all stores of a pool agree on every slot, reached by these ways.
pub(crate) fn membership(
    config: &PoolConfig,
    ways: &[Arc<dyn ObjectStore>],
) -> Arc<ConstantMembership> {
    let named = config
        .stores
        .iter()
        .zip(ways)
        .map(|(record, store)| NamedStore { name: record.name.clone(), store: store.clone() });
    Arc::new(ConstantMembership::new(Group::new(named.collect())))
}

/// Joins the stores of a pool, reached by these ways.
pub(crate) fn pool(
    config: &PoolConfig,
    ways: Vec<Arc<dyn ObjectStore>>,
    clock: Arc<dyn Clock>,
) -> Pool {
    let stores = config.stores.iter().zip(ways).map(|(record, store)| (record.id, store));
    Pool::new(config, stores.collect(), clock, PoolOptions::default())
}

impl Several {
    /// Makes the log of a new workspace.
    ///
    /// # Errors
    /// [`commit_log::CommitLogError`].
    pub async fn create(
        &self,
        means: Means,
        genesis: &Genesis,
    ) -> Result<(), commit_log::CommitLogError> {
        let store = |store: &TroubledStore| Arc::new(store.clone()) as Arc<dyn ObjectStore>;
        let stores: Vec<_> = self.stores.iter().map(store).collect();
        let membership = membership(&self.config, &stores);
        let log = SlotCommitLog::create_over(membership, means, genesis.clone()).await?;
        log.settle().await;
        Ok(())
    }
}

impl Coverage {
    /// Notes a trouble of a store.
    pub(crate) fn trouble(&self, trouble: Trouble) {
        let fault = match trouble {
            Trouble::None => return,
            Trouble::Gone => Fault::OneStoreGone,
            Trouble::Slow => Fault::OneStoreSlow,
            Trouble::Full => Fault::OneStoreFull,
            Trouble::ReadOnly => Fault::OneStoreReadOnly,
            Trouble::Random => Fault::OneStoreFailsAtRandom,
            Trouble::OldLists => Fault::OneStoreListsOld,
            Trouble::OtherBytes => Fault::OneStoreGivesOthers,
            Trouble::Yesterday => Fault::OneStoreRestored,
            Trouble::Wiped => Fault::OneStoreWiped,
        };
        self.hit(fault);
    }
}
