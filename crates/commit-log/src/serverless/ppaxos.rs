//! pPaxos (MetaSync, ATC 2015): classic Paxos over stores that only append to a list and hand it out.
//!
//! *Participants*: proposers that run this code; stores whose append says nothing about what came before. *Goals*: the
//! paper's algorithm, for stores without create-if-absent and for comparison with [`super::rounds`]. *Non-goals*: speed: a
//! proposal takes append, fetch, append, fetch. *Invariants*: as in [`super::rounds`]; nothing counts before it was found
//! in a fetched list, one's own messages included.
//!
//! Line 31 of the printed algorithm is read as `>=`: with `>` a round that was just promised accepts nothing.
//!
//! Whoever fills a slot may skip the first half in the next one, in round 0, which belongs to it alone.

use super::rounds::verdict::{Choice, Known, Verdict, choose, verdict};
use super::rounds::{Message, ProposerId, Quorums, Round, Rules, Status, Value, replay};

/// What a proposer wants from one store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListRequest<V> {
    /// To append a message to the end of the list.
    Append(Message<V>),
    /// To hand out the list from this place on.
    Fetch(usize),
}

/// What a store says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListAnswer<V> {
    /// The message was appended.
    Appended,
    /// The list from the place that was asked for.
    Fetched(Vec<Message<V>>),
    /// The store failed. A message may have been appended, or may be at any time later.
    Failed,
}

/// Where a proposer stands with one store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StoreLog<V> {
    log: Vec<Message<V>>,
    is_read: bool,
    /// The message of this phase was appended, or may have been.
    has_appended: bool,
    /// The list was fetched since.
    has_fetched: bool,
    asked: Option<ListRequest<V>>,
    has_failed: bool,
}

impl<V> Default for StoreLog<V> {
    fn default() -> Self {
        Self {
            log: Vec::new(),
            is_read: false,
            has_appended: false,
            has_fetched: false,
            asked: None,
            has_failed: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase<V> {
    Preparing,
    Accepting(V),
}

/// The machine of one proposer of one slot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PassivePaxos<V> {
    quorums: Quorums,
    rules: Rules,
    own: V,
    round: Round,
    phase: Phase<V>,
    stores: Vec<StoreLog<V>>,
    reads_back: bool,
}

impl<V: Value> PassivePaxos<V> {
    /// Starts to propose. `skips_prepare` is for whoever filled the slot before, once.
    pub fn propose(quorums: Quorums, id: ProposerId, own: V, skips_prepare: bool) -> Self {
        let quorums = Quorums { fast: None, ..quorums };
        let counter = u64::from(!skips_prepare);
        let phase = if skips_prepare { Phase::Accepting(own.clone()) } else { Phase::Preparing };
        Self {
            quorums,
            rules: Rules::default(),
            own,
            round: Round { counter, proposer: id },
            phase,
            stores: std::iter::repeat_with(StoreLog::default).take(quorums.stores).collect(),
            reads_back: true,
        }
    }

    /// Replaces the rules, to see that a model checker finds out.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Takes an append for an acceptance, without looking what came before.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn without_reading_back(mut self) -> Self {
        self.reads_back = false;
        self
    }

    /// Everything that is known of one store and asked of it, as a number.
    #[cfg(feature = "testing")]
    pub fn fingerprint(&self, store: usize) -> u64
    where
        V: std::hash::Hash,
    {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.stores[store].hash(&mut hasher);
        hasher.finish()
    }

    /// Numbers the stores anew: the first is now the one that was `order[0]`.
    #[cfg(feature = "testing")]
    pub fn reorder(&mut self, order: &[usize]) {
        self.stores = order.iter().map(|store| self.stores[*store].clone()).collect();
    }

    /// What was asked of a store and not answered.
    pub fn asked(&self, store: usize) -> Option<&ListRequest<V>> {
        self.stores[store].asked.as_ref()
    }

    /// Returns the requests to be sent now, each with the number of its store.
    pub fn requests(&mut self) -> Vec<(usize, ListRequest<V>)> {
        if matches!(self.verdict(), Verdict::Decided(_)) {
            return Vec::new();
        }
        let mut requests = Vec::new();
        for store in 0..self.stores.len() {
            if let Some(request) = self.wish(store) {
                self.stores[store].asked = Some(request.clone());
                requests.push((store, request));
            }
        }
        requests
    }

    /// Takes an answer to what was asked of a store.
    pub fn answer(&mut self, store: usize, answer: ListAnswer<V>) {
        let reads_back = self.reads_back;
        let Some(view) = self.stores.get_mut(store) else { return };
        match (view.asked.take(), answer) {
            (Some(ListRequest::Append(message)), ListAnswer::Appended) => {
                view.has_appended = true;
                if !reads_back && matches!(message, Message::Accept(..)) {
                    view.log.push(message);
                    view.has_fetched = true;
                }
            }
            (Some(ListRequest::Fetch(from)), ListAnswer::Fetched(messages)) => {
                view.log.truncate(from);
                view.log.extend(messages);
                view.is_read = true;
                view.has_fetched = view.has_appended;
            }
            (Some(_), _) => view.has_failed = true,
            (None, _) => {}
        }
        self.advance();
    }

    /// Announces a new round, newer than any that was seen.
    pub fn begin_round(&mut self) {
        let seen = self.known().iter().filter_map(|known| known.acceptor.promise).max();
        let newest = seen.max(Some(self.round)).map_or(0, |round| round.counter);
        self.round.counter = newest + 1;
        self.enter(Phase::Preparing);
    }

    /// Asks the stores again that have failed.
    pub fn retry(&mut self) {
        for store in &mut self.stores {
            store.has_failed = false;
        }
    }

    /// Tells what is known.
    pub fn status(&self) -> Status<V> {
        if let Verdict::Decided(value) = self.verdict() {
            return Status::Decided(value);
        }
        let is_lost = |known: &&Known<V>| {
            known.acceptor.promise > Some(self.round) && !known.acceptor.has_accepted(self.round)
        };
        let lost = self.known().iter().filter(is_lost).count();
        let failed = self.stores.iter().filter(|store| store.has_failed).count();
        if lost > 0 && lost + failed + self.quorums.classic > self.quorums.stores {
            return Status::Outbid;
        }
        let is_waiting = self.stores.iter().any(|store| store.asked.is_some());
        let has_wish = (0..self.stores.len()).any(|store| self.wish(store).is_some());
        if is_waiting || has_wish { Status::Working } else { Status::TooFew }
    }

    fn wish(&self, store: usize) -> Option<ListRequest<V>> {
        let view = &self.stores[store];
        if view.asked.is_some() || view.has_failed || view.has_fetched {
            return None;
        }
        if view.has_appended {
            return Some(ListRequest::Fetch(view.log.len()));
        }
        Some(ListRequest::Append(match &self.phase {
            Phase::Preparing => Message::Prepare(self.round),
            Phase::Accepting(value) => Message::Accept(self.round, value.clone()),
        }))
    }

    fn known(&self) -> Vec<Known<V>> {
        let known = |store: &StoreLog<V>| Known {
            acceptor: replay(&store.log, self.rules),
            is_vote_final: true,
            is_whole: store.is_read,
        };
        self.stores.iter().map(known).collect()
    }

    fn verdict(&self) -> Verdict<V> {
        verdict(&self.quorums, &self.known())
    }

    fn enter(&mut self, phase: Phase<V>) {
        self.phase = phase;
        for store in &mut self.stores {
            store.has_appended = false;
            store.has_fetched = false;
        }
    }

    /// Goes on to the second half once a quorum has promised.
    fn advance(&mut self) {
        if self.phase != Phase::Preparing {
            return;
        }
        let known = self.known();
        let has_promised = |(store, known): (&StoreLog<V>, &Known<V>)| {
            let is_there = store.log.contains(&Message::Prepare(self.round));
            is_there && known.acceptor.promise == Some(self.round)
        };
        let promised: Vec<bool> = self.stores.iter().zip(&known).map(has_promised).collect();
        if promised.iter().filter(|promised| **promised).count() < self.quorums.classic {
            return;
        }
        let value = match choose(&self.quorums, &known, &promised, self.rules) {
            Choice::Bound(value) => value,
            Choice::Free | Choice::Ambiguous => self.own.clone(),
        };
        self.enter(Phase::Accepting(value));
    }
}

#[cfg(test)]
mod tests;
