//! The slot log: the commit after entry *n* is what the stores of a group agree on for slot *n* + 1.
//!
//! *Participants*: any number of devices, and passive stores whose probe found create-if-absent and read-after-write.
//! *Goals*: one round trip and one request per store for a commit where nobody competes; of 2f + 1 stores f may fail; no
//! lock, no lease, and no clock that safety would depend on. *Non-goals*: which stores form the group
//! ([`super::group::Membership`] says), keeping packs. *Invariants*: a slot is filled once and never changes ([`super::rounds`]);
//! whoever proposes for slot *n* + 1 knows what fills slot *n*, and names its hash. So the order is total.
//!
//! One store is the group of one: its slot holds the entry, and the put that creates it decides.
//!
//! A proposal whose answer was lost may have succeeded: the device that asks again finds its own operation id in a slot.

mod background;
mod bell;
mod carrying;
mod checkpoints;
mod deliberation;
mod following;
mod gathering;
mod help;
pub mod inspecting;
mod lookout;
mod rumours;
mod silence;
mod slots;
mod subscription;
mod walk;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::{Either, FutureExt, select};
use futures_util::lock::Mutex;
use futures_util::stream::{StreamExt, unfold};
use model::checkpoint::Checkpoint;
use model::codec::{decode_message, encode_message};
use model::environment::random_bytes;
use model::wire::{Refusal, RefusalKind};
use model::{Clock, Commit, Entry, Genesis, Head, OpId, Random};
use storage::{ObjectKey, ObjectStore, PutMode, StorageError};

use self::deliberation::CALL_PATIENCE;
use self::gathering::gather;
use self::slots::{Found, Slots};
use self::subscription::Subscription;
use super::group::{ConstantMembership, Group, Membership, NamedStore};
use super::rounds::ProposerId;
use crate::commit_log::{CommitLog, CommitLogError, EntryStream, RumourStream};

/// How many bytes of entries are kept that were read on the way to the head.
const PASSED_LENGTH_MAX: u64 = 8 * 1024 * 1024;

/// The first pause between rounds is at most so long, each further one twice as long, up to the last.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_LAST: Duration = Duration::from_secs(3);

/// What a log over several stores needs from outside.
#[derive(Debug, Clone)]
pub struct Means {
    /// For pauses and patience.
    pub clock: Arc<dyn Clock>,
    /// For the names of sessions and rounds, which nobody else may have, and the length of pauses.
    pub random: Arc<dyn Random>,
}

impl Means {
    /// Draws a name that nobody else has.
    pub(super) fn new_id(&self) -> ProposerId {
        ProposerId(u128::from_be_bytes(random_bytes(&*self.random)))
    }

    /// Waits for a random time, the longer the more rounds were lost.
    pub(super) async fn pause(&self, rounds: u32) {
        let span = PAUSE_FIRST.saturating_mul(1 << rounds.min(10)).min(PAUSE_LAST);
        self.clock.sleep(span.mul_f64(self.share())).await;
    }

    /// Draws a number from 0 to 1.
    pub(super) fn share(&self) -> f64 {
        let dice = random_bytes(&*self.random);
        f64::from(u32::from_le_bytes(dice)) / f64::from(u32::MAX)
    }

    /// Draws a whole number below another one.
    pub(super) fn below(&self, end: u32) -> u32 {
        u32::from_le_bytes(random_bytes(&*self.random)) % end
    }
}

/// Gives every session of a group of one store the same name: there the names are neither written nor compared.
#[derive(Debug)]
struct Nameless;

impl Random for Nameless {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// A log in the slots of one or several stores.
#[derive(Debug)]
pub struct SlotCommitLog {
    slots: Arc<Slots>,
    /// What the last look for the head has read on its way: mostly it is asked for next.
    passed: parking_lot::Mutex<Vec<Entry>>,
    /// Commits of one device queue up here, not in the stores.
    turn: Mutex<()>,
}

impl SlotCommitLog {
    /// Makes the log of a new workspace in one store, or opens it where exactly this genesis is there already.
    ///
    /// # Errors
    /// [`CommitLogError`]; another genesis under this scope is [`CommitLogError::Damaged`].
    pub async fn create(
        store: Arc<dyn ObjectStore>,
        clock: Arc<dyn Clock>,
        genesis: Genesis,
    ) -> Result<Self, CommitLogError> {
        put_genesis(&*store, &genesis).await?;
        match Self::open(store, clock).await? {
            Some(log) if *log.genesis() == genesis => Ok(log),
            _ => Err(damaged(0, "the store holds another workspace")),
        }
    }

    /// Opens the log that a store holds, if it holds one.
    ///
    /// # Errors
    /// [`CommitLogError`].
    pub async fn open(
        store: Arc<dyn ObjectStore>,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>, CommitLogError> {
        let genesis = get_genesis(&*store).await?;
        Ok(genesis.map(|genesis| Self::with_genesis(store, clock, genesis)))
    }

    /// Opens the log of a workspace whose genesis the device already has, without asking the store.
    pub fn with_genesis(
        store: Arc<dyn ObjectStore>,
        clock: Arc<dyn Clock>,
        genesis: Genesis,
    ) -> Self {
        let membership = Arc::new(ConstantMembership::new(Group::single(store)));
        Self::over(membership, Means { clock, random: Arc::new(Nameless) }, genesis)
    }

    /// Makes the log of a new workspace over the stores that agree on its first slot, or opens it where this genesis is there
    /// already. A majority of the stores must be there.
    ///
    /// # Errors
    /// [`CommitLogError`]; another genesis under this scope is [`CommitLogError::Damaged`].
    pub async fn create_over(
        membership: Arc<dyn Membership>,
        means: Means,
        genesis: Genesis,
    ) -> Result<Self, CommitLogError> {
        let log = Self::over(membership, means, genesis);
        let group = log.slots.group(1)?;
        let call = |store: Arc<dyn ObjectStore>| {
            let genesis = log.slots.genesis.clone();
            async move {
                put_genesis(&*store, &genesis).await?;
                Ok(get_genesis(&*store).await?.is_some_and(|found| found == genesis))
            }
            .boxed()
        };
        if gather(&log.slots, &group, call).await?.contains(&false) {
            return Err(damaged(0, "a store holds another workspace"));
        }
        Ok(log)
    }

    /// Opens the log of a workspace over several stores, without asking them. Every store is the part that holds this
    /// workspace.
    pub fn over(membership: Arc<dyn Membership>, means: Means, genesis: Genesis) -> Self {
        let slots = Arc::new(Slots::new(membership, means, genesis));
        Self { slots, passed: parking_lot::Mutex::default(), turn: Mutex::new(()) }
    }

    /// Waits for something else, and lets what is under way at the stores go on beside it: a call that nobody looks after
    /// keeps its connection from whoever shares the store with the log.
    pub async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        self.slots.background.beside(work).await
    }

    /// Waits until nothing is under way any more: slow stores have got what the others had, but for those that are silent. A program
    /// that ends does well to wait for a moment; nothing is lost if it does not.
    pub async fn settle(&self) {
        self.slots.help().await;
        let silence = &self.slots.silence;
        self.slots.background.finish(|store| silence.holds(store)).await;
    }

    /// Returns the names of the stores that said nothing when they were asked last.
    pub fn silent_stores(&self) -> Vec<String> {
        self.slots.silence.names()
    }

    /// Takes over from an earlier opening which stores said nothing: nobody waits for them until they have answered.
    pub fn recall_silent_stores<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        names.into_iter().for_each(|name| self.slots.silence.begins(name));
    }

    /// Makes sure that the log still has the entry that the device has seen: a store that was restored from an
    /// older copy does not, and a slot written behind the gap would be lost to everybody else.
    async fn confirm(&self, seen: Head) -> Result<(), CommitLogError> {
        let lost = || {
            let message =
                format!("the log does not have entry {} that this device has seen", seen.seq);
            CommitLogError::Refused(Refusal::new(RefusalKind::HistoryLost, message))
        };
        if seen.seq == 0 && seen != self.slots.genesis.head() {
            return Err(lost());
        }
        if self.slots.catch_up(seen.seq).await?.saturating_add(1) < seen.seq {
            let group = self.slots.newest_group()?;
            self.check_all_are_there(&group, seen.seq).await?;
            return Err(lost());
        }
        let is_known = seen.seq == 0 || self.slots.known().seq >= seen.seq;
        let (group, _) = self.slots.readers_group(seen.seq.max(1))?;
        if let ([single], true) = (group.stores(), is_known) {
            let key = match seen.seq {
                0 => ObjectKey::genesis(),
                seq => ObjectKey::log_slot(seq, 0),
            };
            return single.store.size(&key).await?.map(drop).ok_or_else(lost);
        }
        // Of several stores so many may be restored as may fail; more are noticed when the log is opened.
        if is_known {
            return Ok(());
        }
        match self.slots.read(seen.seq, true).await? {
            Found::Filled(candidate) if candidate.entry().head() == seen => {
                self.slots.remember(seen);
                Ok(())
            }
            Found::Filled(_) => Err(lost()),
            Found::Nothing | Found::Perhaps => {
                self.check_all_are_there(&group, seen.seq).await?;
                Err(lost())
            }
        }
    }

    /// History is lost for sure only if no store is left that could have it.
    async fn check_all_are_there(&self, group: &Group, slot: u64) -> Result<(), CommitLogError> {
        let key = ObjectKey::log_slot(slot, 0);
        for NamedStore { name, store } in group.stores() {
            let limit = self.slots.means.clock.sleep(CALL_PATIENCE);
            let reason = match select(store.size(&key), limit).await {
                Either::Left((Ok(_), _)) => continue,
                Either::Left((Err(error), _)) => error.to_string(),
                Either::Right(_) => "does not answer".to_owned(),
            };
            return Err(CommitLogError::Unreachable { place: name.clone(), reason });
        }
        Ok(())
    }

    /// Walks from `head` to an operation, or to the end of the log. Returns where, and whether it was found.
    async fn walk_to(&self, head: Head, op_id: &OpId) -> Result<(Head, bool), CommitLogError> {
        let mut is_found = false;
        let visit = |entry: &Entry| {
            is_found = entry.commit.op_id == *op_id;
            !is_found
        };
        let head = self.walk(head, visit).await?;
        Ok((head, is_found))
    }

    /// Walks from `head` to the end of the log; `visit` may stop the walk by returning false.
    async fn walk(
        &self,
        head: Head,
        mut visit: impl FnMut(&Entry) -> bool + Send,
    ) -> Result<Head, CommitLogError> {
        let mut walk = self.slots.walk(head.seq, Some(head));
        let mut last = head;
        while let Some(entry) = walk.next().await? {
            last = entry.head();
            if !visit(&entry) {
                break;
            }
        }
        self.slots.remember(last);
        Ok(last)
    }
}

async fn put_genesis(store: &dyn ObjectStore, genesis: &Genesis) -> Result<(), StorageError> {
    let bytes = Bytes::from(encode_message(genesis));
    store.put(&ObjectKey::genesis(), bytes, PutMode::IfAbsent).await.map(drop)
}

async fn get_genesis(store: &dyn ObjectStore) -> Result<Option<Genesis>, CommitLogError> {
    let Some(bytes) = store.get(&ObjectKey::genesis()).await? else { return Ok(None) };
    let genesis = decode_message(&bytes);
    let message = |source| CommitLogError::Message { place: store.describe(), source };
    genesis.map(Some).map_err(message)
}

fn damaged(seq: u64, reason: &str) -> CommitLogError {
    CommitLogError::Damaged { seq, reason: reason.to_owned() }
}

#[async_trait]
impl CommitLog for SlotCommitLog {
    fn genesis(&self) -> &Genesis {
        &self.slots.genesis
    }

    async fn commit(&self, commit: &Commit) -> Result<Head, CommitLogError> {
        let _turn = self.turn.lock().await;
        // Whoever wanted the last slot came before this one.
        self.slots.help().await;
        self.confirm(commit.seen).await?;
        // Everything after the head that the device had seen is looked at, so that an earlier attempt is found.
        let mut head = commit.seen;
        loop {
            let entry = Entry { seq: head.seq + 1, previous: head.hash, commit: commit.clone() };
            let began = self.slots.means.clock.elapsed();
            let filled = self.slots.fill(entry).await?;
            let entry = filled.candidate.entry();
            if !entry.follows(&head) {
                return Err(damaged(entry.seq, "it does not follow the entry before"));
            }
            head = entry.head();
            self.slots.remember(head);
            if entry.commit.op_id == commit.op_id {
                if filled.is_own && filled.is_contested {
                    self.slots.help.promise(entry, &filled.seen);
                }
                return Ok(head);
            }
            let is_own;
            (head, is_own) = match filled.is_contested {
                true => {
                    let taken = self.slots.means.clock.elapsed().saturating_sub(began);
                    self.slots.follow_owner(&filled.candidate, taken, &commit.op_id).await?
                }
                false => self.walk_to(head, &commit.op_id).await?,
            };
            if is_own {
                return Ok(head);
            }
        }
    }

    async fn head(&self) -> Result<Head, CommitLogError> {
        let (mut passed, mut length) = (Vec::new(), 0);
        let keep = |entry: &Entry| {
            if length < PASSED_LENGTH_MAX {
                length += encode_message(entry).len() as u64;
                passed.push(entry.clone());
            }
            true
        };
        let head = self.walk(self.slots.known(), keep).await?;
        *self.passed.lock() = passed;
        Ok(head)
    }

    fn rumours(&self) -> RumourStream {
        self.slots.rumours.listen()
    }

    async fn entries(&self, since: u64, length_max: u64) -> Result<Vec<Entry>, CommitLogError> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut length = 0;
        // A slot that was filled never changes.
        for entry in std::mem::take(&mut *self.passed.lock()) {
            if entry.seq == since + entries.len() as u64 + 1 {
                length += encode_message(&entry).len() as u64;
                if length <= length_max || entries.is_empty() {
                    entries.push(entry);
                }
            }
        }
        if !entries.is_empty() {
            return Ok(entries);
        }
        self.slots.catch_up(since).await?;
        let mut walk = self.slots.walk(since, None);
        while let Some(entry) = walk.next().await? {
            length += encode_message(&entry).len() as u64;
            if length > length_max && !entries.is_empty() {
                break;
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    async fn subscribe(&self, since: u64) -> Result<EntryStream, CommitLogError> {
        self.slots.catch_up(since).await?;
        let subscription = Subscription::new(self.slots.clone(), since);
        Ok(unfold(Some(subscription), |subscription| async move {
            let mut subscription = subscription?;
            match subscription.next().await {
                Ok(entry) => Some((Ok(entry), Some(subscription))),
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed())
    }

    async fn checkpoint(&self) -> Result<Option<Checkpoint>, CommitLogError> {
        checkpoints::newest(&self.slots, &*self.slots.newest_group()?).await
    }

    async fn publish_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), CommitLogError> {
        checkpoints::publish(&self.slots, &*self.slots.newest_group()?, checkpoint).await
    }
    async fn last_checkpoints(&self) -> Result<Option<Vec<Checkpoint>>, CommitLogError> {
        checkpoints::last_two(&self.slots, &*self.slots.newest_group()?).await.map(Some)
    }

    async fn forget_checkpoints(&self, oldest: u64) -> Result<(), CommitLogError> {
        checkpoints::forget(&self.slots, &*self.slots.newest_group()?, oldest).await
    }
}
