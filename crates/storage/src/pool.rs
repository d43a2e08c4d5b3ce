//! Several stores as one: copies or blocks of every object, in the stores that [`crate::placement`] says.
//!
//! *Participants*: the content store above, the stores of a [`PoolConfig`] below, other devices with the same
//! configuration beside. *Goals*: an object outlives as many stores as the redundancy says; a store that fails, hangs, is full or
//! lies is not noticed above, but for the time it takes; the stores are used at once. *Non-goals*: objects whose keys do not name
//! their content (the log): nobody could tell which of two is right. *Invariants*:
//!
//! * **Durable in enough.** A put that returned lies durably in two stores (in one where one copy is wanted), or as
//!   `data + 1` blocks in as many stores; where no other store takes a piece, in one, or as `data` blocks. The rest
//!   follows in the background ([`Pool::settle`]).
//! * **Verified.** A whole object that leaves has the hash that its key names. Ranges leave unverified; whoever
//!   finds one wrong says so with [`ObjectStore::mend`].
//! * **Absence is proved.** `None` says that every store of the pool has looked. Where one could not, it is an error.
//! * **Nothing is deleted to tidy up** but by [`repair`], and there only what lies verified in all its homes.
//!
//! Reading order: [`block`] (the format), [`piece`] (what should be where), `member` (how well a store answers), `pulse`
//! (whether it hangs), `presence` (whether it has what it should), `ask` (hedged questions), `turns` (who is written first), `write`, `relief` (where there is room), `deferred`, `make_way` (for the commit), `read`, `mend`, `listing`, then [`repair`]. The specification is
//! `docs/design/placement.md`.

pub mod block;
pub mod piece;
pub mod repair;

mod absent;
mod ask;
mod backlog;
mod deferred;
mod known;
mod listing;
mod make_way;
mod member;
mod mend;
mod presence;
mod pulse;
mod read;
mod read_range;
mod relief;
mod turns;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::{Either, select};
use model::Clock;
use model::ids::StoreId;
use model::pool::{PoolConfig, Redundancy};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome, check_size};
use crate::placement::{Placement, StoreOrder};

use absent::AbsentStore;
use backlog::Backlog;
use block::BlockCode;
use deferred::Deferred;
use known::KnownBlocks;
use member::{Direction, Member};
use pulse::SUSPICION;
use turns::Traffic;

/// How long a store that has just failed may take for an answer.
const TIME_LIMIT_IN_TROUBLE: Duration = Duration::from_secs(3);

/// A store that answers others, and not this call, is believed to work on it for so many times as long.
const LIMITS_WHILE_ALIVE: u32 = 10;

/// How many owed objects are remembered beyond the life of a pool; a check finds the others.
const OWED_REMEMBERED_MAX: usize = 10_000;

/// How patient a pool is.
#[derive(Debug, Clone, Copy)]
pub struct PoolOptions {
    /// How long a store may say nothing at all while an answer without bytes is awaited; longer counts as not reachable. One
    /// that has just failed is given 3 seconds.
    pub time_limit: Duration,
    /// How many bytes a second a store must move at least, on top of that.
    pub rate_min: u64,
    /// How many bytes may be on their way to one store before it is left behind, to be served by [`Pool::settle`].
    pub under_way_max: u64,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self { time_limit: Duration::from_secs(30), rate_min: 50_000, under_way_max: 64 << 20 }
    }
}

/// What still has to be done for full redundancy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolBacklog {
    /// How many writes are under way.
    pub running: usize,
    /// Objects that a home was not given, because it failed or was too slow.
    pub owed: Vec<ObjectKey>,
}

impl PoolBacklog {
    /// Returns whether every object that this handle wrote is in all its homes.
    pub fn is_empty(&self) -> bool {
        self.running == 0 && self.owed.is_empty()
    }
}

/// What a pool knows that the next one over the same stores should know, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolMemory {
    /// The stores that hang: they accept what is sent and say nothing.
    pub silent: Vec<StoreId>,
    /// Objects that a home was not given, or not for sure; at most 10,000.
    pub owed: Vec<ObjectKey>,
}

/// The stores of a workspace as one store; cheap to clone.
#[derive(Debug, Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

/// What all clones and all background work of a pool share.
pub(crate) struct Shared {
    this: Weak<Shared>,
    redundancy: Redundancy,
    placement: Placement,
    members: Vec<Member>,
    clock: Arc<dyn Clock>,
    options: PoolOptions,
    backlog: Arc<Backlog>,
    deferred: Mutex<Deferred>,
    traffic: Traffic,
    /// Room for deferred writes that are answered early.
    early: Arc<Semaphore>,
    /// Tells the writes that something has ended.
    news: Arc<Notify>,
    known: Mutex<KnownBlocks>,
    /// How large the objects are that were read lately, in bytes.
    typical_size: AtomicU64,
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pool")
            .field("members", &self.members)
            .field("backlog", &self.backlog)
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// Joins the stores of a configuration. One that is not in `stores`, because it could not be opened, counts as not reachable.
    pub fn new(
        config: &PoolConfig,
        mut stores: BTreeMap<StoreId, Arc<dyn ObjectStore>>,
        clock: Arc<dyn Clock>,
        options: PoolOptions,
    ) -> Self {
        let traffic = Traffic::new(Arc::clone(&clock));
        let members = config.stores.iter().map(|record| {
            let store = stores
                .remove(&record.id)
                .unwrap_or_else(|| Arc::new(AbsentStore::new(record.name.clone())));
            Member::new(record.id, record.name.clone(), store, traffic.clone())
        });
        let members: Vec<Member> = members.collect();
        let shared = Arc::new_cyclic(|this| Shared {
            this: this.clone(),
            redundancy: config.redundancy,
            placement: Placement::new(config),
            members,
            clock,
            options,
            backlog: Arc::default(),
            deferred: Mutex::default(),
            traffic,
            early: deferred::early_room(),
            news: Arc::default(),
            known: Mutex::default(),
            typical_size: AtomicU64::new(read::SIZE_AT_FIRST),
        });
        Self { shared }
    }

    /// Returns what is not done yet of what this handle has written.
    pub fn backlog(&self) -> PoolBacklog {
        let backlog = &self.shared.backlog;
        PoolBacklog { running: backlog.running(), owed: backlog.owed() }
    }

    /// Waits for the writes under way, but not for stores that hang, and once more gives the homes what they lack. Returns what
    /// they still lack.
    ///
    /// A program that ends without it leaves objects with fewer copies than wanted, until [`repair`] finds them, or
    /// another pool that [recalls](Self::recall) them.
    pub async fn settle(&self) -> PoolBacklog {
        self.shared.settle().await;
        self.backlog()
    }

    /// Returns what the next pool over these stores should know.
    pub fn memory(&self) -> PoolMemory {
        let Shared { members, backlog, .. } = &*self.shared;
        let silent = members.iter().filter(|member| member.with_pulse(|pulse| pulse.is_silent()));
        let silent = silent.map(|member| member.id).collect();
        let mut owed = backlog.owed();
        owed.extend(backlog.unfinished());
        owed.sort_unstable();
        owed.dedup();
        owed.truncate(OWED_REMEMBERED_MAX);
        PoolMemory { silent, owed }
    }

    /// Takes over what an earlier pool knew: stores that hung are asked last until they have answered a question, which is asked
    /// beside the work, and [`Self::settle`] gives the homes what they were owed.
    pub fn recall(&self, memory: &PoolMemory) {
        let Shared { members, backlog, clock, .. } = &*self.shared;
        let now = clock.elapsed();
        for (number, member) in members.iter().enumerate() {
            if memory.silent.contains(&member.id) {
                member.with_pulse(|pulse| pulse.recall_silence(now));
                self.shared.feel_pulse(number);
            }
        }
        memory.owed.iter().for_each(|key| backlog.owe(key));
    }
}

impl Shared {
    fn describe(&self) -> String {
        let names: Vec<_> = self.members.iter().map(|member| member.name.as_str()).collect();
        format!("pool of {}", names.join(", "))
    }

    /// Returns the hash that a key names.
    fn object(&self, key: &ObjectKey) -> Result<[u8; 32]> {
        key.content_hash().ok_or_else(|| StorageError::Unsupported {
            store: self.describe(),
            operation: "keep an object whose key does not name its content",
        })
    }

    fn order(&self, hash: &[u8; 32]) -> StoreOrder {
        self.placement.order(hash)
    }

    fn code(&self) -> Option<BlockCode> {
        BlockCode::of(self.redundancy)
    }

    /// Returns how many pieces must be durable before a write is answered.
    fn enough(&self) -> usize {
        match self.redundancy {
            Redundancy::Replicas(copies) => usize::from(copies.min(2)),
            Redundancy::Erasure { data, total } => usize::from((data + 1).min(total)),
        }
    }

    /// Returns how few pieces may answer a write when no store is left that would take another: as many as give the object
    /// back. A user who may lose stores must be able to write without them; what is missing is owed.
    fn least(&self) -> usize {
        match self.redundancy {
            Redundancy::Replicas(_) => 1,
            Redundancy::Erasure { data, .. } => usize::from(data),
        }
    }

    /// Calls a store under a time limit, and learns how well it answers. `measure` says how many bytes were moved.
    async fn call<T>(
        &self,
        member: usize,
        direction: Direction,
        bytes: u64,
        answer: impl Future<Output = Result<T>> + Send,
        measure: impl Fn(&T) -> u64,
    ) -> Result<T> {
        let number = member;
        let member = &self.members[number];
        let began = self.clock.elapsed();
        let under_way = member.begin(direction, bytes, began);
        let mut answer = std::pin::pin!(answer);
        let result = loop {
            let now = self.clock.elapsed();
            let limit = self.time_limit(member, direction, bytes, now);
            let alive_since = member.with_pulse(|pulse| pulse.alive_since(began));
            let until = (alive_since + limit).min(began + limit * LIMITS_WHILE_ALIVE);
            if now >= until {
                break Err(StorageError::NotReachable {
                    store: member.store.describe(),
                    detail: format!("it did not answer in {} seconds", (now - began).as_secs()),
                });
            }
            let sleep = self.clock.sleep((until - now).min(SUSPICION));
            match select(answer.as_mut(), sleep).await {
                Either::Left((result, _)) => break result,
                Either::Right(_) => self.feel_pulse(number),
            }
        };
        match &result {
            Ok(value) => under_way.answered(measure(value), self.clock.elapsed()),
            Err(error) => {
                tracing::debug!(store = member.name, %error, "a store of the pool failed");
                under_way.failed(error, self.clock.elapsed());
            }
        }
        result
    }

    /// Returns how long a store may say nothing before a call has failed.
    fn time_limit(
        &self,
        member: &Member,
        direction: Direction,
        bytes: u64,
        now: Duration,
    ) -> Duration {
        let patience = match member.is_failing(direction, now) {
            // Nobody waits long for a store that did not answer a moment ago.
            true => self.options.time_limit.min(TIME_LIMIT_IN_TROUBLE),
            false => self.options.time_limit,
        };
        patience + Duration::from_secs(bytes / self.options.rate_min.max(1))
    }

    /// Returns one error for the failures of several stores: the only one, or the kind that all have in common.
    fn combine(&self, mut failed: Vec<(usize, StorageError)>) -> StorageError {
        if failed.len() == 1 {
            return failed.remove(0).1;
        }
        let store = self.describe();
        if !failed.is_empty()
            && failed.iter().all(|(_, e)| matches!(e, StorageError::NoSpace { .. }))
        {
            return StorageError::NoSpace { store };
        }
        let is_hopeless = !failed.iter().any(|(_, error)| error.is_retryable());
        let first = failed.iter().position(|(_, error)| !error.is_retryable());
        if let Some(first) = first.filter(|_| is_hopeless) {
            return failed.swap_remove(first).1;
        }
        let text = |(member, error): &(usize, StorageError)| {
            format!("{}: {error}", self.members[*member].name)
        };
        let detail = failed.iter().map(text).collect::<Vec<_>>().join("; ");
        StorageError::NotReachable { store, detail }
    }
}

#[async_trait]
impl ObjectStore for Pool {
    fn describe(&self) -> String {
        self.shared.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        check_size(key, bytes.len() as u64)?;
        self.shared.put(key, bytes, mode).await
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        check_size(key, bytes.len() as u64)?;
        self.shared.put_deferred(key, bytes).await
    }

    async fn sync(&self) -> Result<()> {
        self.shared.sync().await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.shared.get(key).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.shared.get_range(key, range).await
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        self.shared.get_tail(key, length).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.shared.size(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.shared.list(prefix, start_after, limit).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.shared.delete(key).await
    }

    fn parts(&self) -> usize {
        match self.shared.redundancy {
            Redundancy::Replicas(_) => 1,
            Redundancy::Erasure { data, .. } => data.into(),
        }
    }

    async fn mend(&self, key: &ObjectKey) -> Result<bool> {
        self.shared.mend(key).await
    }
}
