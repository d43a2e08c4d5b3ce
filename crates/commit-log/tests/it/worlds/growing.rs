//! Two slots, of which the first may change the group of the second.
//!
//! The first slot has one store. If it is filled with the entry of client 0, three stores agree on the second slot;
//! otherwise it stays with one.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use commit_log::serverless::rounds::{
    Answer, FaultModel, Proposer, ProposerId, Quorums, Request, Status,
};
use stateright::{Model, Property};

use super::asking::perform;
use super::truth::{List, Proposal, decided};

const STORES: usize = 3;

/// The world, right or wrong.
#[derive(Debug, Clone)]
pub(crate) struct GrowingWorld {
    pub(crate) clients: u8,
    /// A client takes the group from the entry that it has proposed, not from the one that was decided.
    pub(crate) trusts_own_entry: bool,
    pub(crate) timeouts: u8,
}

impl GrowingWorld {
    fn quorums(is_grown: bool) -> Quorums {
        Quorums::new(if is_grown { STORES } else { 1 }, FaultModel::Crash)
    }

    fn propose(client: u8, slot: u8, is_grown: bool) -> Proposer<Proposal> {
        let own = Proposal { client, life: slot, is_owners: false };
        let id = ProposerId(u128::from(client) * 2 + u128::from(slot) + 1);
        Proposer::propose(Self::quorums(is_grown), id, own, true).with_leading_store(0, true)
    }

    /// Sends requests, and goes on to the second slot where the first is done.
    fn take_up(&self, state: &mut State, client: usize) {
        let number = u8::try_from(client).unwrap_or(u8::MAX);
        loop {
            state.clients[client].machine.requests();
            let Status::Decided(value) = state.clients[client].machine.status() else { return };
            let slot = state.clients[client].slot;
            state.told[usize::from(slot)].insert(value);
            if slot == 1 {
                return;
            }
            let changes = if self.trusts_own_entry { number == 0 } else { value.client == 0 };
            let machine = Self::propose(number, 1, changes);
            state.clients[client] = Client { machine, slot: 1, is_grown: changes };
        }
    }

    fn perform(state: &mut State, slot: u8, request: &Request<Proposal>) -> Answer<Proposal> {
        perform(&mut state.lists[usize::from(slot)][request.store], request)
    }

    fn note_decided(state: &mut State) {
        let first = decided(&Self::quorums(false), &state.lists[0][..1]);
        let is_grown = first.iter().any(|value| value.client == 0);
        let stores = if is_grown { STORES } else { 1 };
        let second = decided(&Self::quorums(is_grown), &state.lists[1][..stores]);
        state.decided[0].extend(first);
        state.decided[1].extend(second);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Client {
    machine: Proposer<Proposal>,
    slot: u8,
    is_grown: bool,
}

/// The world at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    lists: [Vec<List>; 2],
    clients: Vec<Client>,
    late: BTreeSet<(u8, Request<Proposal>)>,
    decided: [BTreeSet<Proposal>; 2],
    told: [BTreeSet<Proposal>; 2],
    timeouts: u8,
}

impl State {
    /// The two stores that join are alike.
    fn canonical(mut self) -> Self {
        let key = |store: usize| {
            let mut hasher = DefaultHasher::new();
            self.lists[1][store].hash(&mut hasher);
            for client in self.clients.iter().filter(|client| client.is_grown) {
                client.machine.fingerprint(store).hash(&mut hasher);
            }
            for (_, request) in self.late.iter().filter(|(_, late)| late.store == store) {
                (request.place, &request.put).hash(&mut hasher);
            }
            hasher.finish()
        };
        if key(1) <= key(2) {
            return self;
        }
        self.lists[1].swap(1, 2);
        for client in self.clients.iter_mut().filter(|client| client.is_grown) {
            client.machine.reorder(&[0, 2, 1]);
        }
        let late = std::mem::take(&mut self.late).into_iter();
        self.late = late
            .map(|(slot, request)| (slot, Request { store: [0, 2, 1][request.store], ..request }))
            .collect();
        self
    }
}

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Deliver(usize, usize),
    TimeOut(usize, usize),
    Late(u8, Request<Proposal>),
    Hurry(usize),
}

impl Model for GrowingWorld {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let client = |client| {
            let machine = Self::propose(client, 0, false);
            Client { machine, slot: 0, is_grown: false }
        };
        let mut state = State {
            lists: [vec![Vec::new(); STORES], vec![Vec::new(); STORES]],
            clients: (0..self.clients).map(client).collect(),
            late: BTreeSet::new(),
            decided: Default::default(),
            told: Default::default(),
            timeouts: self.timeouts,
        };
        for client in 0..state.clients.len() {
            self.take_up(&mut state, client);
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, client) in state.clients.iter().enumerate() {
            let status = client.machine.status();
            if matches!(status, Status::Decided(_)) {
                continue;
            }
            for store in 0..if client.is_grown { STORES } else { 1 } {
                if client.machine.asked(store).is_none() {
                    continue;
                }
                actions.push(Action::Deliver(number, store));
                if state.timeouts > 0 {
                    actions.push(Action::TimeOut(number, store));
                }
            }
            let may_hurry = matches!(status, Status::Working | Status::Following);
            if may_hurry && client.is_grown && !client.machine.is_classic() {
                actions.push(Action::Hurry(number));
            }
        }
        actions.extend(state.late.iter().cloned().map(|(slot, late)| Action::Late(slot, late)));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Deliver(client, store) => {
                let request = state.clients[client].machine.asked(store)?;
                let slot = state.clients[client].slot;
                let answer = Self::perform(&mut state, slot, &request);
                Self::note_decided(&mut state);
                state.clients[client].machine.answer(&request, answer);
                self.take_up(&mut state, client);
            }
            Action::TimeOut(client, store) => {
                state.timeouts -= 1;
                let request = state.clients[client].machine.asked(store)?;
                if request.put.is_some() {
                    state.late.insert((state.clients[client].slot, request.clone()));
                }
                state.clients[client].machine.answer(&request, Answer::Failed);
                state.clients[client].machine.retry();
                self.take_up(&mut state, client);
            }
            Action::Late(slot, request) => {
                Self::perform(&mut state, slot, &request);
                state.late.remove(&(slot, request));
                Self::note_decided(&mut state);
            }
            Action::Hurry(client) => {
                let machine = &mut state.clients[client].machine;
                if !machine.hurry() && machine.is_following() {
                    machine.begin_round();
                }
                self.take_up(&mut state, client);
            }
        }
        Some(state.canonical())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one value", |_, state: &State| {
                (0..2).all(|slot| state.decided[slot].union(&state.told[slot]).count() <= 1)
            }),
            Property::always("told is decided", |_, state: &State| {
                (0..2).all(|slot| state.told[slot].is_subset(&state.decided[slot]))
            }),
            Property::sometimes("decided", |_, state: &State| !state.told[1].is_empty()),
        ]
    }
}
