//! The slots of a log: reading one, filling one, walking along them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, FutureExt, join_all, pending, poll_fn, select};
use model::{Entry, EntryHash, Genesis, Head};
use parking_lot::Mutex;
use storage::{ObjectKey, StorageError};

use super::background::Background;
use super::bell::Bell;
use super::deliberation::{Deliberation, Failure};
use super::help::Help;
use super::rumours::Rumours;
use super::silence::Silence;
use super::{Means, damaged};
use crate::commit_log::CommitLogError;
use crate::serverless::candidate::{Candidate, Context};
use crate::serverless::group::{Group, Membership, NamedStore, Standing};
use crate::serverless::rounds::{Message, Proposer, ProposerId, Status, Value};

/// How many slots are read at once when catching up.
pub(super) const READ_AHEAD: u64 = 8;

/// How long a store may take for several slots before another is asked.
const READ_AHEAD_PATIENCE: Duration = Duration::from_secs(10);

/// How often a proposer begins a round anew before it says that too many others compete.
const ROUNDS_MAX: u32 = 40;

/// Everything that an open log shares between its calls and its subscriptions.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) genesis: Genesis,
    pub(super) membership: Arc<dyn Membership>,
    pub(super) means: Means,
    pub(super) background: Background,
    pub(super) silence: Silence,
    /// An entry that is known to be in the log; where looking for the head starts.
    known: Mutex<Head>,
    bell: Bell,
    /// When a majority has said last that the log ends.
    looked: Mutex<Duration>,
    /// Tells this opening of the log from all others.
    session: ProposerId,
    right: Mutex<Option<OwnersRight>>,
    pub(super) help: Help,
    /// The last slot for which this session has proposed something; in none up to it may another proposer of it lead.
    proposed: Mutex<u64>,
    /// Which store has answered first lately.
    quickest: AtomicUsize,
    pub(super) rumours: Arc<Rumours>,
}

/// The right to the small fast quorum of a slot, which whoever filled the slot before has for one value.
#[derive(Debug, Clone, Copy)]
struct OwnersRight {
    slot: u64,
    used_for: Option<EntryHash>,
}

/// What a slot was filled with that this session wanted, too.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) candidate: Candidate,
    /// Whether it is this session's.
    pub(super) is_own: bool,
    /// Whether several wanted the slot at the same time, of whom none was its owner: whoever got it helps the others.
    pub(super) is_contested: bool,
    /// The candidates that were seen.
    pub(super) seen: Vec<Candidate>,
}

impl Filled {
    fn by(candidate: Candidate) -> Self {
        Self { candidate, is_own: false, is_contested: false, seen: Vec::new() }
    }
}

/// What stands in a slot.
#[derive(Debug)]
pub(super) enum Found {
    /// It is filled.
    Filled(Candidate),
    /// It was empty when the reading began.
    Nothing,
    /// Perhaps it is filled: that takes stores which do not answer, or finishing what somebody began.
    Perhaps,
}

impl Slots {
    pub(super) fn new(membership: Arc<dyn Membership>, means: Means, genesis: Genesis) -> Self {
        let session = means.new_id();
        Self {
            known: Mutex::new(genesis.head()),
            bell: Bell::default(),
            looked: Mutex::new(means.clock.elapsed()),
            genesis,
            membership,
            means,
            background: Background::default(),
            silence: Silence::default(),
            session,
            right: Mutex::default(),
            help: Help::default(),
            proposed: Mutex::default(),
            quickest: AtomicUsize::new(0),
            rumours: Arc::default(),
        }
    }

    /// Returns the newest entry that is known to be in the log.
    pub(super) fn known(&self) -> Head {
        *self.known.lock()
    }

    /// Remembers an entry that is in the log.
    pub(super) fn remember(&self, head: Head) {
        {
            let mut known = self.known.lock();
            if head.seq <= known.seq {
                return;
            }
            *known = head;
        }
        self.bell.ring();
    }

    /// Waits until an entry after `seq` is known to be in the log, because this device has proposed or read it.
    pub(super) async fn knows_more_than(&self, seq: u64) {
        poll_fn(|context| self.bell.poll(context, || self.known().seq > seq)).await;
    }

    /// Returns when a majority has said last that the log ends, on the clock.
    pub(super) fn looked(&self) -> Duration {
        *self.looked.lock()
    }

    /// Returns a number that other openings do not have, mostly.
    pub(super) fn salt(&self) -> u64 {
        let ProposerId(session) = self.session;
        let nanoseconds = u64::from(self.means.clock.now().nanoseconds);
        (session as u64) ^ nanoseconds.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns the group of a slot.
    pub(super) fn group(&self, slot: u64) -> Result<Arc<Group>, CommitLogError> {
        let unknown = || damaged(slot, "the entries that tell its stores are not known here");
        self.membership.group(slot).ok_or_else(unknown)
    }

    /// Returns the newest group that is known.
    pub(super) fn newest_group(&self) -> Result<Arc<Group>, CommitLogError> {
        let unknown = || damaged(self.known().seq, "the stores that follow it are not known here");
        self.membership.newest().ok_or_else(unknown)
    }

    /// Returns the group that is asked what fills a slot, and whether the slot was only carried over to it.
    pub(super) fn readers_group(&self, slot: u64) -> Result<(Arc<Group>, bool), CommitLogError> {
        match self.membership.heir(slot) {
            Some(heir) => Ok((heir, true)),
            None => Ok((self.group(slot)?, false)),
        }
    }

    /// Reads on until it is known which stores are responsible for the slot after `seq`; ends before where the log does.
    pub(super) async fn catch_up(self: &Arc<Self>, seq: u64) -> Result<u64, CommitLogError> {
        let known = self.membership.known();
        if known >= seq {
            return Ok(known);
        }
        let mut walk = self.walk(known, None);
        let mut last = known;
        while last < seq
            && let Some(entry) = walk.next().await?
        {
            last = entry.seq;
            self.remember(entry.head());
        }
        Ok(last)
    }

    pub(super) fn deliberation<'a>(&'a self, group: &'a Group, slot: u64) -> Deliberation<'a> {
        let workspace = self.genesis.workspace();
        let Self { means, background, silence, quickest, rumours, .. } = self;
        Deliberation {
            means,
            background,
            silence,
            quickest,
            rumours,
            workspace,
            group,
            slot,
            watching: false,
        }
    }

    /// Reads a slot; where it may be filled and takes finishing, finishes it if `finishes`.
    pub(super) async fn read(&self, slot: u64, finishes: bool) -> Result<Found, CommitLogError> {
        let (group, is_settled) = self.readers_group(slot)?;
        if is_settled {
            return self.read_settled(&group, slot).await;
        }
        let found = self.read_at(&group, slot, finishes).await?;
        self.note(&found);
        Ok(found)
    }

    /// Reads a slot that this group decides, and draws no conclusions.
    pub(super) async fn read_at(
        &self,
        group: &Group,
        slot: u64,
        finishes: bool,
    ) -> Result<Found, CommitLogError> {
        let mut proposer = Proposer::read(*group.quorums(), self.means.new_id());
        self.deliberate(group, slot, &mut proposer, finishes).await
    }

    /// Takes note of what stands in a slot.
    pub(super) fn note(&self, found: &Found) {
        match found {
            Found::Filled(candidate) => self.membership.learn(candidate.entry()),
            Found::Nothing => *self.looked.lock() = self.means.clock.elapsed(),
            Found::Perhaps => {}
        }
    }

    /// Reads a slot that was carried over to a group after another one had filled it.
    async fn read_settled(&self, group: &Group, slot: u64) -> Result<Found, CommitLogError> {
        let mut proposer = Proposer::read_settled(*group.quorums(), self.means.new_id());
        let mut failures: Vec<Option<Failure>> = group.stores().iter().map(|_| None).collect();
        match self.deliberation(group, slot).run(&mut proposer, &mut failures).await {
            Status::Decided(candidate) => {
                self.membership.learn(candidate.entry());
                Ok(Found::Filled(candidate))
            }
            Status::Undecided => {
                Err(CommitLogError::NotCarriedOver { seq: slot, stores: group.names() })
            }
            _ => Err(Self::too_few(group, slot, failures)),
        }
    }

    /// Fills a slot, with this entry or with what others have proposed; returns with what.
    pub(super) async fn fill(&self, entry: Entry) -> Result<Filled, CommitLogError> {
        let slot = entry.seq;
        match self.membership.standing(slot) {
            Standing::Open => {}
            Standing::Changed { seq } => return Err(CommitLogError::GroupChanged { seq }),
            Standing::Filled => {
                return match self.read(slot, true).await? {
                    Found::Filled(candidate) => Ok(Filled::by(candidate)),
                    Found::Nothing | Found::Perhaps => Err(self.lost(slot).await),
                };
            }
        }
        let group = self.group(slot)?;
        let own = match group.is_single() {
            true => Candidate::anonymous(entry),
            false => self.candidate(entry),
        };
        let id = self.means.new_id();
        let may_lead = self.proposes_first(slot);
        let mut proposer = Proposer::propose(*group.quorums(), id, own.clone(), true)
            .with_leading_store(group.leading_store(slot), may_lead);
        let found = self.deliberate(&group, slot, &mut proposer, true).await?;
        let Found::Filled(candidate) = found else {
            return Err(damaged(slot, "its stores say that it is empty and cannot be filled"));
        };
        let is_own = candidate == own && !group.is_single();
        if is_own {
            let mut right = self.right.lock();
            // A right that was used stays used, though its slot be won again.
            if right.is_none_or(|right| right.slot <= slot) {
                *right = Some(OwnersRight { slot: slot + 1, used_for: None });
            }
        }
        self.membership.learn(candidate.entry());
        let is_contested = !candidate.is_owners()
            && match is_own {
                true => proposer.has_rivals(),
                false => proposer.has_seen_contest(),
            };
        let seen = proposer.votes().cloned().collect();
        Ok(Filled { candidate, is_own, is_contested, seen })
    }

    /// Says why nothing stands where something stood: the stores are damaged, or others by now. What they say is believed for a while after
    /// they were themselves; whoever is to mend something looks at once whether it still is.
    async fn lost(&self, slot: u64) -> CommitLogError {
        let group = match self.readers_group(slot) {
            Ok((group, _)) => group,
            Err(error) => return error,
        };
        let key = ObjectKey::log_slot(slot, 0);
        let asked = join_all(group.stores().iter().map(|named| named.store.mend(&key))).await;
        let replaced = |error: &StorageError| matches!(error, StorageError::Replaced { .. });
        let failures: Vec<Option<Failure>> = asked
            .into_iter()
            .map(|answer| answer.err().filter(replaced).map(Failure::Storage))
            .collect();
        match failures.iter().any(Option::is_some) {
            true => Self::too_few(&group, slot, failures),
            false => damaged(slot, "it was there, and its stores say that it is not"),
        }
    }

    /// Takes note that something is proposed for a slot; tells whether that is the first time, for sure.
    fn proposes_first(&self, slot: u64) -> bool {
        let mut proposed = self.proposed.lock();
        let is_first = slot > *proposed;
        *proposed = slot.max(*proposed);
        is_first
    }

    /// Uses the owner's right where this session has it and has not used it for another entry.
    fn candidate(&self, entry: Entry) -> Candidate {
        let hash = entry.hash();
        let mut right = self.right.lock();
        let is_owners = match &mut *right {
            Some(right) if right.slot == entry.seq => *right.used_for.get_or_insert(hash) == hash,
            _ => false,
        };
        Candidate::new(entry, self.session, is_owners)
    }

    async fn deliberate(
        &self,
        group: &Group,
        slot: u64,
        proposer: &mut Proposer<Candidate>,
        finishes: bool,
    ) -> Result<Found, CommitLogError> {
        let deliberation = self.deliberation(group, slot);
        let mut failures: Vec<Option<Failure>> = group.stores().iter().map(|_| None).collect();
        for rounds in 0..ROUNDS_MAX {
            match deliberation.run(proposer, &mut failures).await {
                Status::Decided(candidate) => {
                    if finishes {
                        deliberation.complete(proposer, &candidate);
                    }
                    return Ok(Found::Filled(candidate));
                }
                Status::Undecided => return Ok(Found::Nothing),
                Status::Open if !finishes => return Ok(Found::Perhaps),
                Status::TooFew | Status::Working => {
                    return Err(Self::too_few(group, slot, failures));
                }
                Status::Open | Status::Following => {}
                Status::Outbid => self.background.beside(self.means.pause(rounds)).await,
            }
            proposer.retry();
            proposer.begin_round();
        }
        let reason = "too many others propose at once".to_owned();
        Err(CommitLogError::Unreachable { place: format!("slot {slot}"), reason })
    }

    /// Says which stores are missing, and why.
    pub(super) fn too_few(
        group: &Group,
        slot: u64,
        failures: Vec<Option<Failure>>,
    ) -> CommitLogError {
        let mut failed = group.stores().iter().zip(failures);
        if group.is_single() {
            return match failed.next() {
                Some((_, Some(Failure::Storage(error)))) => error.into(),
                Some((_, Some(Failure::Message(error)))) => damaged(slot, &error.to_string()),
                _ => damaged(slot, "its store contradicts itself"),
            };
        }
        let words = |(store, failure): (&NamedStore, Option<Failure>)| {
            let reason = match failure? {
                Failure::Storage(error) => error.to_string(),
                Failure::Message(error) => error.to_string(),
                Failure::Slow => "does not answer".to_owned(),
            };
            Some(format!("{}: {reason}", store.name))
        };
        let reasons: Vec<String> = failed.filter_map(words).collect();
        let place = format!("{} of {} stores", reasons.len(), group.stores().len());
        CommitLogError::Unreachable { place, reason: reasons.join("; ") }
    }

    /// Reads some slots after `head` from one store, as far as they prove each other: whoever proposes for a slot names
    /// the hash of what filled the one before. That holds wherever the vote was given, so slots that were carried over may be
    /// read so, too.
    pub(super) async fn proven(&self, head: &Head, group: &Group, is_settled: bool) -> Vec<Entry> {
        if group.certifier().is_some() {
            return Vec::new();
        }
        let count = group.stores().len();
        let quickest = self.quickest.load(Ordering::Relaxed);
        for number in 0..count {
            let store = &group.stores()[(quickest + number) % count];
            let first = head.seq + 1;
            let reads = (first..first + READ_AHEAD).map(|slot| self.first_vote(group, store, slot));
            let limit: BoxFuture<'_, ()> = match group.is_single() {
                true => pending().boxed(),
                false => self.means.clock.sleep(READ_AHEAD_PATIENCE),
            };
            let votes = match self.background.beside(select(join_all(reads), limit)).await {
                Either::Left((votes, _)) => votes,
                Either::Right(_) => continue,
            };
            let Ok(votes) = votes.into_iter().collect::<Result<Vec<_>, _>>() else { continue };
            let mut entries: Vec<Entry> = Vec::new();
            let mut last = *head;
            for entry in votes.into_iter().map_while(|entry| entry) {
                if !entry.follows(&last) {
                    break;
                }
                last = entry.head();
                entries.push(entry);
            }
            // Nothing proves the last one, unless there is only one vote.
            if !group.is_single() || is_settled {
                entries.pop();
            }
            return entries;
        }
        Vec::new()
    }

    async fn first_vote(
        &self,
        group: &Group,
        store: &NamedStore,
        slot: u64,
    ) -> Result<Option<Entry>, Failure> {
        let key = ObjectKey::log_slot(slot, 0);
        let bytes = store.store.get(&key).await.map_err(Failure::Storage)?;
        let Some(bytes) = bytes else { return Ok(None) };
        let workspace = self.genesis.workspace();
        let is_single = group.is_single();
        let context = Context { workspace, slot, certifier: None, is_single };
        Ok(match context.decode(&bytes).map_err(Failure::Message)? {
            Message::Vote(candidate) | Message::Decided(candidate) => {
                Some(candidate.entry().clone())
            }
            _ => None,
        })
    }
}
