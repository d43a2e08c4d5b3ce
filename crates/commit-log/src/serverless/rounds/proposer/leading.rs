//! What follows when the fast round is lost: one of those who compete leads, and the others follow it.
//!
//! *Invariants*: a slot has one led round, because one put of a vote creates place 0 at the leading store, and only the
//! proposer of that put leads; its value is chosen from the votes of a quorum of stores as that of a classic round is, and
//! every classic round is newer. Why no prepare is needed: place 0 never changes once something is there, and no round
//! stands between the fast one and this.

use super::super::verdict::{Choice, choose};
use super::super::{Answer, Message, ProposerId, Quorums, Request, Round, Value};
use super::{Phase, Proposer, StoreView};

/// The store whose vote says who leads, and whether that is this proposer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Leadership {
    store: usize,
    /// Whether this proposer is the first of its session in the slot.
    may_lead: bool,
    /// Whether its own put has created the vote there. That a vote of its session is there says less: another proposer of
    /// the session may have led with it.
    has_won: bool,
}

impl Leadership {
    pub(super) fn take_note<V: Value>(&mut self, request: &Request<V>, answer: &Answer<V>) {
        let is_vote = request.place == 0 && matches!(request.put, Some(Message::Vote(_)));
        if request.store == self.store && is_vote && *answer == Answer::Written {
            self.has_won = self.may_lead;
        }
    }
}

impl<V: Value> Proposer<V> {
    /// Starts to look again and again whether somebody fills the slot, without doing anything about it.
    pub fn follow(quorums: Quorums, id: ProposerId) -> Self {
        Self { phase: Phase::Following, ..Self::read(quorums, id) }
    }

    /// Names the store whose vote says who leads when the fast round is lost, the same for all proposers of the slot. Only
    /// the first proposer of a session in a slot may lead: a second one could give the led round another value.
    #[must_use]
    pub fn with_leading_store(mut self, store: usize, may_lead: bool) -> Self {
        let has_led_round = self.phase == Phase::Fast && self.quorums.stores > 1;
        self.leadership = has_led_round.then_some(Leadership { store, may_lead, has_won: false });
        self
    }

    /// Returns what it proposes.
    pub fn own(&self) -> Option<&V> {
        self.own.as_ref()
    }

    /// Tells whether it waits for whoever has won the leading store.
    pub fn is_following(&self) -> bool {
        self.phase == Phase::Following
    }

    /// Tells whether a store is known to have its vote.
    pub fn has_vote(&self) -> bool {
        self.votes().any(|vote| Some(vote) == self.own.as_ref())
    }

    /// Tells whether several proposers were seen to want the slot, where one of them leads.
    pub fn has_seen_contest(&self) -> bool {
        let mut votes = self.votes();
        let first = votes.next();
        let is_round =
            |message: &Message<V>| matches!(message, Message::Prepare(_) | Message::Accept(..));
        let mut messages = self.stores.iter().flat_map(|store| store.list.iter().flatten());
        self.leadership.is_some()
            && (votes.any(|vote| Some(vote) != first) || messages.any(is_round))
    }

    /// Tells whether something else than its own vote is known to be the first at some store.
    pub fn has_rivals(&self) -> bool {
        let own = |message: &Message<V>| match message {
            Message::Vote(value) => Some(value) == self.own.as_ref(),
            _ => false,
        };
        let has_rival = |store: &StoreView<V>| match store.list.first() {
            Some(Some(message)) => !own(message),
            Some(None) => true,
            None => false,
        };
        self.leadership.is_some() && self.stores.iter().any(has_rival)
    }

    /// Returns the votes that were seen.
    pub fn votes(&self) -> impl Iterator<Item = &V> {
        let first = self.stores.iter().filter_map(|store| store.list.first()?.as_ref());
        first.filter_map(|message| match message {
            Message::Vote(value) => Some(value),
            _ => None,
        })
    }

    /// Goes on from the fast round, or within the led one, where the answers allow it.
    pub(super) fn lead_or_follow(&mut self) {
        if self.phase == Phase::Fast && self.has_lost_fast_round() && self.knows_leader() {
            self.leave_fast_round();
        }
        if self.phase == Phase::Leading
            && let Some(value) = self.led_value()
        {
            self.phase = Phase::Accepting(Round { counter: 0, proposer: self.id }, value);
        }
        if self.phase == Phase::Following && self.leadership.is_some() && !self.has_leader() {
            self.begin_round();
        }
    }

    /// Leads or follows where there is somebody to lead, and begins a classic round otherwise.
    pub(super) fn leave_fast_round(&mut self) {
        match self.leadership {
            Some(leadership) if leadership.has_won => self.phase = Phase::Leading,
            Some(_) if self.has_leader() => self.phase = Phase::Following,
            _ => self.begin_round(),
        }
    }

    /// Tells whether the leading store, where there is one, has said whether it has a vote.
    fn knows_leader(&self) -> bool {
        self.leadership.is_none_or(|leadership| {
            let view = &self.stores[leadership.store];
            leadership.has_won || view.has_failed || !view.list.is_empty()
        })
    }

    /// Tells whether somebody else may have won the leading store. Who has not answered may have no vote, what is no vote leads
    /// nobody, and a vote of an earlier proposer of this session leads no more.
    fn has_leader(&self) -> bool {
        let Some(leadership) = self.leadership else { return false };
        let view = &self.stores[leadership.store];
        match view.list.first() {
            _ if view.has_failed => false,
            Some(Some(Message::Vote(value))) => Some(value) != self.own.as_ref(),
            Some(None) => true,
            _ => false,
        }
    }

    /// What the led round must propose, once a quorum of stores is known to have voted, or never to vote: as if they had
    /// promised a round after the fast one.
    fn led_value(&self) -> Option<V> {
        let known = self.known();
        let promised: Vec<bool> = known.iter().map(|store| store.is_vote_final).collect();
        let enough = match self.rules.leader_needs_quorum {
            true => self.quorums.classic,
            false => self.quorums.classic - 1,
        };
        if !self.rules.leader_reads_votes {
            return self.own.clone();
        }
        if promised.iter().filter(|promised| **promised).count() < enough {
            return None;
        }
        match choose(&self.quorums, &known, &promised, self.rules) {
            Choice::Bound(value) => Some(value),
            Choice::Free => self.own.clone(),
            Choice::Ambiguous if !self.rules.leader_needs_quorum => self.own.clone(),
            Choice::Ambiguous => None,
        }
    }

    /// Whether no value can get a fast quorum any more from the stores that are left, and what is known does not settle it.
    fn has_lost_fast_round(&self) -> bool {
        let known = self.known();
        let is_left = |store: &&StoreView<V>| {
            !store.has_failed && !matches!(store.list.first(), Some(Some(_)))
        };
        let left = self.stores.iter().filter(is_left).count();
        // Where something else came first, one's own vote is not.
        let is_empty = |store: &&StoreView<V>| !store.has_failed && store.list.is_empty();
        let empty = self.stores.iter().filter(is_empty).count();
        let votes =
            |value: &V| known.iter().filter(|k| k.acceptor.vote.as_ref() == Some(value)).count();
        let may_win = |value: &V| {
            let needed = self.quorums.fast_for(value.is_owners()).unwrap_or(usize::MAX);
            let is_own = self.leadership.is_some() && self.own.as_ref() == Some(value);
            votes(value) + if is_own { empty } else { left } >= needed
        };
        let others = known.iter().filter_map(|known| known.acceptor.vote.as_ref());
        !others.chain(&self.own).any(may_win)
    }
}
