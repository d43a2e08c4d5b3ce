//! One proposer, or reader, of one slot: answers of stores in, requests out. No I/O, no clock, no randomness.
//!
//! Everything it concludes, it concludes from the lists as far as it knows them; so an answer that was lost, a message of
//! its own that it did not know to be there, and what others wrote are all one case. One thing only it knows from an answer
//! alone: that it has won the store that says who leads ([`leading`]).

mod leading;

use self::leading::Leadership;
use super::verdict::{Choice, Known, Verdict, choose, settled, verdict};
use super::{Acceptor, Answer, Message, ProposerId, Quorums, Request, Round, Rules, Value};

/// The longest list that is read: with random pauses nobody gets near it, but a hostile store could go on for ever.
pub const LIST_LENGTH_MAX: usize = 4096;

/// What a proposer knows or does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status<V> {
    /// Answers are awaited.
    Working,
    /// This value fills the slot.
    Decided(V),
    /// When this proposer began, nothing filled the slot. Only a proposer without a value ends so.
    Undecided,
    /// Every answer is in, and it takes more to know: [`Proposer::begin_round`] goes on.
    Open,
    /// The fast round is lost, and whoever has won the leading store is expected to fill the slot: [`Proposer::reread`] looks
    /// whether it has, and [`Proposer::begin_round`] goes on where that does not come.
    Following,
    /// Newer rounds than its own were announced: [`Proposer::begin_round`] goes on, after a pause.
    Outbid,
    /// Too many stores have failed: [`Proposer::retry`] asks them again.
    TooFew,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase<V> {
    Reading,
    Fast,
    /// The fast round is lost, and this proposer has won the leading store: it reads votes for its led round.
    Leading,
    /// The fast round is lost, and another has won the leading store.
    Following,
    Preparing(Round),
    Accepting(Round, V),
}

/// What is known of the list of one store, and what was asked of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StoreView<V> {
    /// The places that are known to hold something, from the first; `None` where it was not read yet.
    list: Vec<Option<Message<V>>>,
    /// Nothing stood behind the list when it was read.
    is_whole: bool,
    /// The place that was asked for and not answered, and what was to be put there.
    asked: Option<(usize, Option<Message<V>>)>,
    has_failed: bool,
}

impl<V> Default for StoreView<V> {
    fn default() -> Self {
        Self { list: Vec::new(), is_whole: false, asked: None, has_failed: false }
    }
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Proposer<V> {
    quorums: Quorums,
    rules: Rules,
    id: ProposerId,
    own: Option<V>,
    stores: Vec<StoreView<V>>,
    phase: Phase<V>,
    leadership: Option<Leadership>,
    reads_back: bool,
    is_settled: bool,
}

impl<V: Value> Proposer<V> {
    /// Starts to propose `own`: in the fast round where `is_fast`, which a proposer may be only once in a slot, and there is
    /// one; otherwise in a classic round. `id` must be new, also for a second proposer of the same client.
    pub fn propose(quorums: Quorums, id: ProposerId, own: V, is_fast: bool) -> Self {
        let phase = if is_fast && quorums.fast.is_some() { Phase::Fast } else { Phase::Reading };
        let mut proposer = Self { own: Some(own), phase, ..Self::read(quorums, id) };
        if proposer.phase == Phase::Reading {
            proposer.begin_round();
        }
        proposer
    }

    /// Starts to read.
    pub fn read(quorums: Quorums, id: ProposerId) -> Self {
        let stores = std::iter::repeat_with(StoreView::default).take(quorums.stores).collect();
        let reads_back = quorums.liars > 0;
        Self {
            quorums,
            rules: Rules::default(),
            id,
            own: None,
            stores,
            phase: Phase::Reading,
            leadership: None,
            reads_back,
            is_settled: false,
        }
    }

    /// Starts to read a slot that another group has filled, at the stores to which that was carried over: there only a
    /// decision counts that somebody has left. Ends with it, or with [`Status::Undecided`] where a quorum has none: then
    /// the carrying over was not finished.
    pub fn read_settled(quorums: Quorums, id: ProposerId) -> Self {
        Self { is_settled: true, ..Self::read(quorums, id) }
    }

    /// Replaces the rules, to see that a model checker finds out.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Believes a liar that says that it has written something.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn without_reading_back(mut self) -> Self {
        self.reads_back = false;
        self
    }

    /// What was asked of a store and not answered, for a model that sends requests itself.
    #[cfg(feature = "testing")]
    pub fn asked(&self, store: usize) -> Option<Request<V>> {
        let (place, put) = self.stores[store].asked.clone()?;
        Some(Request { store, place, put })
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

    /// Returns the requests to be sent now. Each store has at most one at a time; the answer goes to [`Self::answer`].
    pub fn requests(&mut self) -> Vec<Request<V>> {
        if matches!(self.verdict(), Verdict::Decided(_)) {
            return Vec::new();
        }
        let mut requests = Vec::new();
        for store in 0..self.stores.len() {
            if let Some(request) = self.wish(store) {
                self.stores[store].asked = Some((request.place, request.put.clone()));
                requests.push(request);
            }
        }
        requests
    }

    /// Takes an answer.
    pub fn answer(&mut self, request: &Request<V>, answer: Answer<V>) {
        let reads_back = self.reads_back;
        let Some(view) = self.stores.get_mut(request.store) else { return };
        let is_asked = |(place, put): &(usize, Option<Message<V>>)| {
            *place == request.place && *put == request.put
        };
        if !view.asked.as_ref().is_some_and(is_asked) {
            return;
        }
        view.asked = None;
        if let Some(leadership) = &mut self.leadership {
            leadership.take_note(request, &answer);
        }
        let is_next = request.place == view.list.len();
        match (&request.put, answer) {
            (Some(message), Answer::Written) if is_next => {
                view.list.push((!reads_back).then(|| message.clone()));
            }
            (Some(_), Answer::Exists) if is_next => view.list.push(None),
            (None, Answer::Found(message)) if is_next => view.list.push(Some(message)),
            (None, Answer::Found(message)) => view.list[request.place] = Some(message),
            (None, Answer::Absent) if is_next => view.is_whole = true,
            // Failed, or said to hold what it does not.
            _ => view.has_failed = true,
        }
        if view.list.len() >= LIST_LENGTH_MAX {
            view.has_failed = true;
        }
        self.advance();
    }

    /// Ends the fast round, or the reading of its votes, without the stores that have not answered, since a classic one needs
    /// fewer. Returns false where neither was under way.
    pub fn hurry(&mut self) -> bool {
        match self.phase {
            Phase::Fast => self.leave_fast_round(),
            Phase::Leading => self.begin_round(),
            _ => return false,
        }
        self.advance();
        true
    }

    /// Tells whether so many stores have answered everything that a classic quorum need not wait for the others.
    pub fn has_idle_quorum(&self) -> bool {
        let is_idle = |store: &&StoreView<V>| store.asked.is_none() && !store.has_failed;
        self.stores.iter().filter(is_idle).count() >= self.quorums.classic
    }

    /// Announces a new round, newer than any that was seen.
    pub fn begin_round(&mut self) {
        let newest = self.known().iter().filter_map(|known| known.acceptor.promise).max();
        let last = match &self.phase {
            Phase::Preparing(round) | Phase::Accepting(round, _) => Some(*round),
            Phase::Reading | Phase::Fast | Phase::Leading | Phase::Following => None,
        };
        let counter = match newest.max(last) {
            None if !self.rules.led_round_is_oldest => 0,
            newest => newest.map_or(0, |round| round.counter) + 1,
        };
        self.phase = Phase::Preparing(Round { counter, proposer: self.id });
        self.advance();
    }

    /// Asks the stores again that have failed.
    pub fn retry(&mut self) {
        for store in &mut self.stores {
            store.has_failed = false;
        }
    }

    /// Reads again where the lists end.
    pub fn reread(&mut self) {
        for store in &mut self.stores {
            store.is_whole = false;
        }
    }

    /// Tells what is known.
    pub fn status(&self) -> Status<V> {
        let known = self.known();
        let verdict = self.verdict();
        if let Verdict::Decided(value) = verdict {
            return Status::Decided(value);
        }
        if self.own.is_none() && self.phase == Phase::Reading && verdict == Verdict::Undecided {
            return Status::Undecided;
        }
        let is_waiting = self.stores.iter().any(|store| store.asked.is_some());
        let has_wish = (0..self.stores.len()).any(|store| self.wish(store).is_some());
        match &self.phase {
            Phase::Preparing(round) | Phase::Accepting(round, _) if self.is_outbid(*round) => {
                Status::Outbid
            }
            Phase::Preparing(_) if self.choice(&known) == Some(Choice::Free) => Status::Undecided,
            _ if is_waiting || has_wish => Status::Working,
            Phase::Following => Status::Following,
            Phase::Reading | Phase::Leading
                if self.failed() + self.quorums.classic <= self.quorums.stores =>
            {
                Status::Open
            }
            _ => Status::TooFew,
        }
    }

    /// Returns the stores that have failed.
    pub fn failed_stores(&self) -> impl Iterator<Item = usize> + '_ {
        self.stores.iter().enumerate().filter(|(_, store)| store.has_failed).map(|(at, _)| at)
    }

    /// Tells whether a classic round is or was under way.
    pub fn is_classic(&self) -> bool {
        matches!(self.phase, Phase::Preparing(_) | Phase::Accepting(..))
    }

    /// Returns what makes a decided value outlive further failures: the puts that leave it at the stores that do not show
    /// it yet. Nobody need wait for them.
    ///
    /// One vote for the owner's value says enough, since a reader must reckon with the others. Votes for any other value,
    /// and acceptances, do not; there the decision itself is written down.
    pub fn completions(&self, value: &V) -> Vec<Request<V>> {
        let is_vote = value.is_owners() && self.quorums.fast.is_some();
        let of_store = |(store, view): (usize, &StoreView<V>)| {
            if view.has_failed || view.asked.is_some() || view.list.last() == Some(&None) {
                return None;
            }
            let shows = |message: &Message<V>| match message {
                Message::Decided(held) => held == value,
                Message::Vote(held) => held == value && is_vote,
                Message::Prepare(_) | Message::Accept(..) | Message::Noise => false,
            };
            if view.list.iter().flatten().any(shows) {
                return None;
            }
            let place = view.list.len();
            let put = match is_vote && place == 0 {
                true => Message::Vote(value.clone()),
                false => Message::Decided(value.clone()),
            };
            Some(Request { store, place, put: Some(put) })
        };
        let is_alone = self.quorums.stores == 1;
        let stores = self.stores.iter().enumerate().filter(|_| !is_alone);
        stores.filter_map(of_store).collect()
    }

    fn failed(&self) -> usize {
        self.failed_stores().count()
    }

    fn verdict(&self) -> Verdict<V> {
        match self.is_settled {
            true => settled(&self.quorums, &self.known()),
            false => verdict(&self.quorums, &self.known()),
        }
    }

    fn known(&self) -> Vec<Known<V>> {
        self.stores.iter().map(|store| store.known(self.rules)).collect()
    }

    /// What a free store should be asked next.
    fn wish(&self, store: usize) -> Option<Request<V>> {
        let view = &self.stores[store];
        if view.asked.is_some() || view.has_failed {
            return None;
        }
        let place = view.list.len();
        let read = |place| Some(Request { store, place, put: None });
        let put = |message| Some(Request { store, place, put: Some(message) });
        if view.list.last() == Some(&None) {
            return read(place - 1);
        }
        match &self.phase {
            Phase::Reading | Phase::Following if !view.is_whole => read(place),
            Phase::Fast if place == 0 => self.own.clone().and_then(|own| put(Message::Vote(own))),
            Phase::Reading | Phase::Fast | Phase::Leading | Phase::Following => None,
            Phase::Preparing(_) | Phase::Accepting(..) if self.leaves_open(view) => read(0),
            Phase::Preparing(round) => {
                let is_new = view.known(self.rules).acceptor.promise < Some(*round);
                if is_new { put(Message::Prepare(*round)) } else { None }
            }
            Phase::Accepting(round, value) => {
                let acceptor = view.known(self.rules).acceptor;
                let is_open = acceptor.promise <= Some(*round) && !acceptor.has_accepted(*round);
                // One that was asked in vain is not asked for ever, whatever the rules say.
                let is_new = !view.holds_accept(*round);
                let accept = || put(Message::Accept(*round, value.clone()));
                if is_open && is_new { accept() } else { None }
            }
        }
    }

    /// The broken rule: place 0 is looked at and left alone where it is empty.
    fn leaves_open(&self, view: &StoreView<V>) -> bool {
        !self.rules.closes_fast_round && view.list.is_empty()
    }

    /// Goes on where the answers allow it.
    fn advance(&mut self) {
        if !self.rules.closes_fast_round && self.is_classic() {
            for view in &mut self.stores {
                if view.list.is_empty() && view.is_whole {
                    view.list.push(Some(Message::Noise));
                }
            }
        }
        self.lead_or_follow();
        if let Phase::Preparing(round) = self.phase {
            let value = match self.choice(&self.known()) {
                Some(Choice::Bound(value)) => Some(value),
                Some(Choice::Free) => self.own.clone(),
                Some(Choice::Ambiguous) | None => None,
            };
            if let Some(value) = value {
                self.phase = Phase::Accepting(round, value);
            }
        }
    }

    /// The choice for the round that is being prepared, once a quorum has promised.
    fn choice(&self, known: &[Known<V>]) -> Option<Choice<V>> {
        let Phase::Preparing(round) = self.phase else { return None };
        let promised: Vec<bool> = self.stores.iter().map(|s| s.has_promised(round)).collect();
        let is_quorum = promised.iter().filter(|p| **p).count() >= self.quorums.classic;
        is_quorum.then(|| choose(&self.quorums, known, &promised, self.rules))
    }

    /// Whether so many stores have promised a newer round that this one cannot end well.
    fn is_outbid(&self, round: Round) -> bool {
        let is_lost = |store: &&StoreView<V>| {
            let acceptor = store.known(self.rules).acceptor;
            acceptor.promise > Some(round) && !acceptor.has_accepted(round)
        };
        let lost = self.stores.iter().filter(is_lost).count();
        lost > 0 && lost + self.failed() + self.quorums.classic > self.quorums.stores
    }
}

impl<V: Value> StoreView<V> {
    fn known(&self, rules: Rules) -> Known<V> {
        let mut acceptor = Acceptor::default();
        for (place, message) in self.list.iter().map_while(Option::as_ref).enumerate() {
            acceptor.take(place, message, rules);
        }
        let is_vote_final = self.list.first().is_some_and(Option::is_some);
        Known { acceptor, is_vote_final, is_whole: self.is_whole }
    }

    /// Whether the round was announced here before any newer one, and everything before it was read.
    fn has_promised(&self, round: Round) -> bool {
        let mut read = self.list.iter().map_while(Option::as_ref);
        let newer = |message: &&Message<V>| match message {
            Message::Prepare(other) => *other >= round,
            Message::Accept(other, _) => *other > round,
            Message::Vote(_) | Message::Decided(_) | Message::Noise => false,
        };
        read.find(newer) == Some(&Message::Prepare(round))
    }

    fn holds_accept(&self, round: Round) -> bool {
        let is_own = |message: &Message<V>| matches!(message, Message::Accept(r, _) if *r == round);
        self.list.iter().flatten().any(is_own)
    }
}

#[cfg(test)]
pub(super) mod tests;
