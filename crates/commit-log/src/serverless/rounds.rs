//! The slot rounds: how clients agree on the entry of one slot over several passive stores.
//!
//! *Participants*: any number of proposers and readers, which run this code, and n stores, which run none: each keeps,
//! for the slot, a list of write-once objects that only grows at its end. *Goals*: at most one value per slot, found
//! again by every later reader, while at most f stores fail; one round trip and no read where nobody competes.
//! *Non-goals*: choosing the slot, encoding, time, retries (the driver's, [`super::slot_log`]). *Invariants*:
//!
//! * An object at place *i* of a list is only tried after the one at *i* - 1 is known to be there.
//! * The object at place 0 is the store's vote in the fast round, or closes it.
//! * What a store has accepted follows from its list alone ([`replay`]); it never changes, the list only grows.
//! * A round belongs to one [`Proposer`], which gives it one value; round 0 belongs to whoever leads the slot.
//!
//! The specification, with the reasons, is `docs/design/agreement.md`; the model that checks this code is in
//! `crates/commit-log/tests/it/worlds`.
//!
//! Reading order: this file, [`replay`], [`quorums`], [`verdict`], [`proposer`], [`carrier`].

pub mod carrier;
pub mod proposer;
pub mod quorums;
pub mod replay;
pub mod verdict;

use std::fmt::Debug;

pub use carrier::Carrier;
pub use proposer::{Proposer, Status};
pub use quorums::{FastQuorums, FaultModel, Quorums};
pub use replay::{Acceptor, replay};

/// What a slot is filled with.
pub trait Value: Clone + Eq + Debug {
    /// Tells whether its proposer had the right to the small fast quorum: it is the one whose value fills the slot
    /// before, and it uses the right once per slot. So no two values of a slot are the owner's.
    fn is_owners(&self) -> bool;
}

/// Tells one proposer from all others, those before a restart included; drawn at random, so that nothing need be kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProposerId(pub u128);

impl Debug for ProposerId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "proposer {:x}", self.0)
    }
}

/// A classic round. Greater is newer; no two proposers share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Round {
    /// One more than any that the proposer has seen; 0 in the led round, of which a slot has one.
    pub counter: u64,
    /// Whose round it is.
    pub proposer: ProposerId,
}

/// What stands at one place of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message<V> {
    /// The store's vote in the fast round. Counts at place 0 only.
    Vote(V),
    /// From here on the store accepts nothing of an older round; at place 0 it closes the fast round there.
    Prepare(Round),
    /// Asks the store to accept the value; it does so unless a newer round was promised before.
    Accept(Round, V),
    /// Says that the value fills the slot, for those who come later.
    Decided(V),
    /// Something that takes its place and says nothing.
    Noise,
}

/// What a proposer wants from one store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request<V> {
    /// Which store, from 0.
    pub store: usize,
    /// Which place of its list.
    pub place: usize,
    /// The message to put there if nothing is there; `None` to read what is there.
    pub put: Option<Message<V>>,
}

/// What a store says, or what is said for a store that does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<V> {
    /// The put has happened.
    Written,
    /// Something was there already.
    Exists,
    /// This is there.
    Found(Message<V>),
    /// Nothing is there.
    Absent,
    /// The store failed. A put may have happened, or may happen at any time later.
    Failed,
}

/// The rules that a model checker breaks one by one, to see that it would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rules {
    accepts_own_promise: bool,
    takes_newest: bool,
    closes_fast_round: bool,
    heeds_fast_votes: bool,
    leader_reads_votes: bool,
    leader_needs_quorum: bool,
    led_round_is_oldest: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            accepts_own_promise: true,
            takes_newest: true,
            closes_fast_round: true,
            heeds_fast_votes: true,
            leader_reads_votes: true,
            leader_needs_quorum: true,
            led_round_is_oldest: true,
        }
    }
}

#[cfg(feature = "testing")]
impl Rules {
    /// A value counts only in a round greater than the promised one, as the paper prints it.
    #[must_use]
    pub fn with_strict_promise(mut self) -> Self {
        self.accepts_own_promise = false;
        self
    }

    /// Of the accepted values that of the oldest round is taken up.
    #[must_use]
    pub fn with_oldest_taken(mut self) -> Self {
        self.takes_newest = false;
        self
    }

    /// A classic round leaves place 0 empty where it is.
    #[must_use]
    pub fn with_fast_round_open(mut self) -> Self {
        self.closes_fast_round = false;
        self
    }

    /// A led round proposes the leader's own value without looking at the votes.
    #[must_use]
    pub fn with_leader_blind(mut self) -> Self {
        self.leader_reads_votes = false;
        self
    }

    /// A led round looks at the votes of one store less than a quorum.
    #[must_use]
    pub fn with_leader_hasty(mut self) -> Self {
        self.leader_needs_quorum = false;
        self
    }

    /// The first classic round has the number of the led one.
    #[must_use]
    pub fn with_led_round_beside_classic(mut self) -> Self {
        self.led_round_is_oldest = false;
        self
    }

    /// A classic round forgets the votes of the fast one.
    #[must_use]
    pub fn with_fast_votes_ignored(mut self) -> Self {
        self.heeds_fast_votes = false;
        self
    }
}
