//! Carries a filled slot over to stores that did not decide it: answers of stores in, requests out. No I/O.
//!
//! It leaves a decided message in the list of every store, behind whatever is there. Two carriers of one slot do no harm:
//! both carry what is decided, and who finds that it is there already is content.

use super::{Answer, Message, Request, Value};

/// The longest list behind which a decision is left.
const LIST_LENGTH_MAX: usize = super::proposer::LIST_LENGTH_MAX;

/// What is known of one store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Progress {
    /// The first place that is not known to hold something else than the decision.
    place: usize,
    /// Whether that place is known to hold something.
    is_taken: bool,
    is_asked: bool,
    outcome: Option<bool>,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Carrier<V> {
    value: V,
    stores: Vec<Progress>,
}

impl<V: Value> Carrier<V> {
    /// Starts to carry a value that is decided to so many stores. `has_lists` tells which of them may have a list of the slot
    /// already, and are read first.
    pub fn new(value: V, has_lists: &[bool]) -> Self {
        let of_store = |has_list: &bool| Progress {
            place: 0,
            is_taken: *has_list,
            is_asked: false,
            outcome: None,
        };
        Self { value, stores: has_lists.iter().map(of_store).collect() }
    }

    /// Asks nothing of a store, as if it had failed.
    pub fn leave_out(&mut self, store: usize) {
        self.stores[store].outcome = Some(false);
    }

    /// Returns the requests to be sent now. Each store has at most one at a time; the answer goes to [`Self::answer`].
    pub fn requests(&mut self) -> Vec<Request<V>> {
        let mut requests = Vec::new();
        for store in 0..self.stores.len() {
            let progress = &self.stores[store];
            if !progress.is_asked && progress.outcome.is_none() {
                requests.push(self.request(store));
                self.stores[store].is_asked = true;
            }
        }
        requests
    }

    fn request(&self, store: usize) -> Request<V> {
        let Progress { place, is_taken, .. } = self.stores[store];
        let put = (!is_taken).then(|| Message::Decided(self.value.clone()));
        Request { store, place, put }
    }

    /// What was asked of a store and not answered, for a model that sends requests itself.
    #[cfg(feature = "testing")]
    pub fn asked(&self, store: usize) -> Option<Request<V>> {
        self.stores[store].is_asked.then(|| self.request(store))
    }

    /// Takes an answer.
    pub fn answer(&mut self, request: &Request<V>, answer: Answer<V>) {
        if !self.stores.get(request.store).is_some_and(|progress| progress.is_asked)
            || self.request(request.store) != *request
        {
            return;
        }
        let progress = &mut self.stores[request.store];
        progress.is_asked = false;
        match (&request.put, answer) {
            (Some(_), Answer::Written) | (None, Answer::Found(Message::Decided(_))) => {
                progress.outcome = Some(true);
            }
            (Some(_), Answer::Exists) => progress.is_taken = true,
            (None, Answer::Found(_)) => {
                progress.place += 1;
                progress.is_taken = false;
            }
            (None, Answer::Absent) => progress.is_taken = false,
            // Failed, or said to hold what it does not.
            _ => progress.outcome = Some(false),
        }
        if progress.place >= LIST_LENGTH_MAX {
            progress.outcome = Some(false);
        }
    }

    /// In how many stores the decision lies for sure.
    pub fn done(&self) -> usize {
        self.stores.iter().filter(|progress| progress.outcome == Some(true)).count()
    }

    /// Whether every store has it or has failed.
    pub fn is_finished(&self) -> bool {
        self.stores.iter().all(|progress| progress.outcome.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::super::proposer::tests::{MINE, Stores, YOURS};
    use super::*;

    fn carry(
        stores: &mut Stores,
        has_lists: &[bool],
    ) -> Carrier<super::super::proposer::tests::Word> {
        let mut carrier = Carrier::new(MINE, has_lists);
        loop {
            let requests = carrier.requests();
            if requests.is_empty() {
                return carrier;
            }
            for request in requests {
                let answer = stores.ask(&request);
                carrier.answer(&request, answer);
            }
        }
    }

    #[test]
    fn decision_is_left_behind_what_is_there_and_only_once() {
        let mut stores = Stores::default();
        stores.places.insert((0, 0), Message::Vote(YOURS));
        stores.places.insert((1, 0), Message::Vote(YOURS));
        stores.places.insert((1, 1), Message::Noise);
        stores.down.push(3);
        for times in 0..2 {
            let carrier = carry(&mut stores, &[true, false, false, false]);
            assert_eq!((carrier.done(), carrier.is_finished()), (3, true), "{times}");
            for (store, place) in [(0, 1), (1, 2), (2, 0)] {
                assert_eq!(stores.places.get(&(store, place)), Some(&Message::Decided(MINE)));
            }
            assert_eq!(stores.places.len(), 6);
        }
    }
}
