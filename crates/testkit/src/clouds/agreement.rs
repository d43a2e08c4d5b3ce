//! What agreement on the log costs over emulated clouds: one device, another one, several at once.
//!
//! A measurement begins with a log that has entries, and devices that know its head, as after a sync. Time counts from
//! the call of a commit to its answer. The way of every device to every service has a seed of its own.

use std::sync::Arc;
use std::time::Duration;

use commit_log::serverless::group::{ConstantMembership, Group as StoreGroup, NamedStore};
use commit_log::serverless::slot_log::Means;
use commit_log::{CommitLog, CommitLogError, SlotCommitLog};
use futures_util::future::join_all;
use model::{
    Action, Change, Clock, Commit, DeviceId, Genesis, Head, Mode, NodeId, OpId, Timestamp,
};
use storage::ObjectStore;

use super::requests::{Requests, round_trips};
use super::services::Service;
use super::time::in_virtual_time;
use super::{Cloud, CloudStore, Jitter};
use crate::random::{Dice, SeededRandom};

/// By how much latencies vary, as a part of them. Table 4 has no spread; its figures differ between places and sizes by
/// far more than this.
pub const DEVIATION: f64 = 0.15;

/// How often a commit is proposed at most.
const ATTEMPTS_MAX: usize = 20;

/// Where devices compete, the log has up to so many entries before, by the seed: not in every slot the same store leads.
const EARLIER_MAX: u64 = 5;

/// How long the payload of a commit is: with the rest of it about 1 KB, the smallest size of Table 4.
const PAYLOAD_LENGTH: usize = 800;

/// What one operation cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Its time.
    pub took: Duration,
    /// Its round trips: the longest chain of requests of which one waited for the other.
    pub round_trips: usize,
    /// Its requests until the answer was there.
    pub requests: usize,
    /// How often it was proposed.
    pub attempts: usize,
}

/// Several devices and the same clouds.
pub struct Group {
    clock: Arc<dyn Clock>,
    clouds: Vec<Cloud>,
    dice: Dice,
}

/// One device.
pub struct Party {
    /// Who it is.
    pub device: DeviceId,
    /// Its stores, by name.
    pub stores: Vec<(String, Arc<dyn ObjectStore>)>,
    /// What it asked.
    pub requests: Requests,
    pub(super) ways: Vec<Arc<CloudStore>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<SeededRandom>,
    count: u64,
}

impl Group {
    /// Makes empty clouds.
    pub fn new(clock: Arc<dyn Clock>, services: &[Service], seed: u64) -> Self {
        let clouds = services.iter().map(|service| Cloud::new(*service)).collect();
        Self { clock, clouds, dice: Dice::new(seed) }
    }

    /// Adds a device.
    pub fn party(&mut self, number: u8) -> Party {
        let requests = Requests::default();
        let connect = |cloud: &Cloud| {
            let jitter = Jitter::new(self.dice.fork(), DEVIATION);
            Arc::new(cloud.connect(self.clock.clone(), requests.clone(), jitter))
        };
        let ways: Vec<_> = self.clouds.iter().map(connect).collect();
        let named = self.clouds.iter().zip(&ways).map(|(cloud, way)| {
            let store: Arc<dyn ObjectStore> = way.clone();
            (cloud.service.name.to_owned(), store)
        });
        let stores = named.collect();
        let device = DeviceId::from_bytes([number; 16]);
        let random = Arc::new(SeededRandom::new(self.dice.fork()));
        Party { device, stores, requests, ways, clock: self.clock.clone(), random, count: 0 }
    }
}

impl Party {
    /// Opens the log, or makes it: over all stores of this device.
    ///
    /// # Errors
    /// [`CommitLogError`].
    pub async fn log(&self) -> Result<SlotCommitLog, CommitLogError> {
        let named = self.stores.iter().map(|(name, store)| {
            let (name, store) = (name.clone(), store.clone());
            NamedStore { name, store }
        });
        let group = StoreGroup::new(named.collect());
        let means = Means { clock: self.clock.clone(), random: self.random.clone() };
        let membership = Arc::new(ConstantMembership::new(group));
        SlotCommitLog::create_over(membership, means, genesis()).await
    }

    /// Makes the next commit.
    pub(super) fn next_commit(&mut self, seen: Head) -> Commit {
        self.count += 1;
        let mut id = *self.device.as_bytes();
        id[..8].copy_from_slice(&self.count.to_be_bytes());
        let action = Action::Put(vec![self.count as u8; PAYLOAD_LENGTH]);
        Commit {
            op_id: OpId::from_bytes(id),
            device: self.device,
            device_name: "a device".to_owned(),
            time: Timestamp::default(),
            seen,
            changes: vec![Change { node: NodeId::from_bytes(id), base: 0, action }],
            packs: Vec::new(),
            inline_packs: Vec::new(),
            has_deltas: false,
            seal: None,
        }
    }

    /// Commits, and says what it cost. As the engine does, it proposes the same commit again where nothing is known of it.
    ///
    /// # Errors
    /// [`CommitLogError`].
    pub async fn commit(
        &mut self,
        log: &dyn CommitLog,
        seen: Head,
    ) -> Result<(Head, Cost), CommitLogError> {
        let commit = self.next_commit(seen);
        self.requests.take();
        let began = self.clock.elapsed();
        let mut attempts = 1;
        let head = loop {
            match log.commit(&commit).await {
                Err(error) if error.is_retryable() && attempts < ATTEMPTS_MAX => attempts += 1,
                answer => break answer?,
            }
        };
        let ended = self.clock.elapsed();
        let asked = self.requests.all();
        let round_trips = round_trips(&asked, ended);
        Ok((head, Cost { took: ended - began, round_trips, requests: asked.len(), attempts }))
    }
}

pub(super) fn genesis() -> Genesis {
    Genesis {
        name: "figures".to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: [7; 32],
    }
}

/// Measures a device that commits twice: the second time it is the one that committed last.
///
/// # Errors
/// [`CommitLogError`].
pub fn same_device_again(services: &[Service], seed: u64) -> Result<Cost, CommitLogError> {
    in_virtual_time(async |clock| {
        let mut party = Group::new(clock, services, seed).party(1);
        let log = party.log().await?;
        let head = log.head().await?;
        let (head, _) = party.commit(&log, head).await?;
        log.settle().await;
        Ok(party.commit(&log, head).await?.1)
    })
}

/// Measures a device that commits after another one did.
///
/// # Errors
/// [`CommitLogError`].
pub fn another_device(services: &[Service], seed: u64) -> Result<Cost, CommitLogError> {
    in_virtual_time(async |clock| {
        let mut group = Group::new(clock, services, seed);
        let (mut one, mut other) = (group.party(1), group.party(2));
        let log = one.log().await?;
        let head = log.head().await?;
        one.commit(&log, head).await?;
        log.settle().await;
        let log = other.log().await?;
        let head = log.head().await?;
        Ok(other.commit(&log, head).await?.1)
    })
}

/// Measures devices that all commit at the same moment; returns what each took, the fastest first.
///
/// # Errors
/// [`CommitLogError`].
pub fn all_at_once(
    services: &[Service],
    seed: u64,
    devices: u8,
) -> Result<Vec<Cost>, CommitLogError> {
    in_virtual_time(async |clock| {
        let mut group = Group::new(clock, services, seed);
        let mut first = group.party(0);
        let log = first.log().await?;
        let mut head = log.head().await?;
        for _ in 0..=seed % EARLIER_MAX {
            head = first.commit(&log, head).await?.0;
            log.settle().await;
        }
        let mut parties = Vec::new();
        for number in 1..=devices {
            let party = group.party(number);
            let log = party.log().await?;
            parties.push((log.head().await?, log, party));
        }
        let commits = parties.iter_mut().map(async |(head, log, party)| {
            let (_, cost) = party.commit(log, *head).await?;
            // A program goes on for a moment, so that others get what it can do for them.
            log.settle().await;
            Ok::<_, CommitLogError>(cost)
        });
        let costs: Result<Vec<_>, _> = join_all(commits).await.into_iter().collect();
        let mut costs = costs?;
        costs.sort_by_key(|cost| cost.took);
        Ok(costs)
    })
}
