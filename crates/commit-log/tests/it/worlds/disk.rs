//! Disk Paxos in a world of blocks that may be written late.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use commit_log::serverless::disk_paxos::{Block, BlockAnswer, BlockRequest, DiskPaxos};
use commit_log::serverless::rounds::{Quorums, Status};
use stateright::{Model, Property};

use super::truth::Proposal;

type Machine = DiskPaxos<Proposal>;

/// What may happen, and how often.
#[derive(Debug, Clone)]
pub(crate) struct DiskWorld {
    pub(crate) quorums: Quorums,
    pub(crate) proposers: u8,
    pub(crate) rounds: u8,
    /// How many writes get no answer. They never happen, or at once, unless they are `late`.
    pub(crate) timeouts: u8,
    pub(crate) late: bool,
}

impl DiskWorld {
    fn take_up(state: &mut State, client: usize) {
        state.clients[client].machine.requests();
        if let Status::Decided(value) = state.clients[client].machine.status() {
            state.told.insert(value);
        }
    }

    fn perform(
        state: &mut State,
        client: usize,
        store: usize,
        request: &BlockRequest<Proposal>,
    ) -> BlockAnswer<Proposal> {
        match request {
            BlockRequest::Write(block) => {
                state.blocks.insert((store, client), block.clone());
                BlockAnswer::Written
            }
            BlockRequest::Read(other) => {
                BlockAnswer::Read(state.blocks.get(&(store, *other)).cloned())
            }
        }
    }

    /// Numbers the stores so that worlds that differ only in their numbers are one.
    fn canonical(&self, mut state: State) -> State {
        let mut order: Vec<usize> = (0..self.quorums.stores).collect();
        order.sort_by_cached_key(|store| state.key(*store));
        for client in &mut state.clients {
            client.machine.reorder(&order);
        }
        let place_of = |store: usize| order.iter().position(|old| *old == store).unwrap_or(0);
        let blocks = std::mem::take(&mut state.blocks).into_iter();
        state.blocks =
            blocks.map(|((store, client), block)| ((place_of(store), client), block)).collect();
        let late = std::mem::take(&mut state.late).into_iter();
        state.late = late.map(|(client, store, write)| (client, place_of(store), write)).collect();
        state
    }

    /// Whether the last client, which has waited until now, ends with what was decided, whichever stores it reaches.
    fn is_found_again(&self, state: &State) -> bool {
        let size = self.quorums.classic;
        (0_u32..1 << self.quorums.stores).filter(|set| set.count_ones() as usize == size).all(
            |set| {
                let number = usize::from(self.proposers);
                let own = Proposal { client: 8, life: 0, is_owners: false };
                let mut machine = DiskPaxos::propose(self.quorums, number, number + 1, own);
                let mut world = state.clone();
                for _ in 0..6 {
                    loop {
                        let requests = machine.requests();
                        if requests.is_empty() {
                            break;
                        }
                        for (store, request) in requests {
                            let answer = match set & 1 << store {
                                0 => BlockAnswer::Failed,
                                _ => Self::perform(&mut world, number, store, &request),
                            };
                            machine.answer(store, answer);
                        }
                    }
                    match machine.status() {
                        Status::Outbid => machine.begin_round(),
                        Status::Decided(value) => {
                            return state.told.iter().all(|told| *told == value);
                        }
                        _ => return false,
                    }
                }
                false
            },
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Client {
    machine: Machine,
    rounds: u8,
}

/// The world at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    blocks: BTreeMap<(usize, usize), Block<Proposal>>,
    clients: Vec<Client>,
    late: BTreeSet<(usize, usize, BlockRequest<Proposal>)>,
    told: BTreeSet<Proposal>,
    timeouts: u8,
}

impl State {
    fn key(&self, store: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (client, state) in self.clients.iter().enumerate() {
            self.blocks.get(&(store, client)).hash(&mut hasher);
            state.machine.fingerprint(store).hash(&mut hasher);
        }
        for (client, _, write) in self.late.iter().filter(|(_, late, _)| *late == store) {
            (client, write).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Deliver(usize, usize),
    TimeOut(usize, usize, bool),
    Late(usize, usize, BlockRequest<Proposal>),
    NextRound(usize),
}

impl Model for DiskWorld {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        // One more block is there for whoever comes later.
        let clients = usize::from(self.proposers) + 1;
        let client = |client: u8| {
            let own = Proposal { client, life: 0, is_owners: false };
            let machine = DiskPaxos::propose(self.quorums, client.into(), clients, own);
            Client { machine, rounds: self.rounds }
        };
        let mut state = State {
            blocks: BTreeMap::new(),
            clients: (0..self.proposers).map(client).collect(),
            late: BTreeSet::new(),
            told: BTreeSet::new(),
            timeouts: self.timeouts,
        };
        for client in 0..state.clients.len() {
            Self::take_up(&mut state, client);
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, client) in state.clients.iter().enumerate() {
            let status = client.machine.status();
            if matches!(status, Status::Decided(_)) {
                continue;
            }
            for store in 0..self.quorums.stores {
                let Some(request) = client.machine.asked(store) else { continue };
                actions.push(Action::Deliver(number, store));
                if state.timeouts > 0 && matches!(request, BlockRequest::Write(_)) {
                    actions.push(Action::TimeOut(number, store, false));
                    actions.push(Action::TimeOut(number, store, true));
                }
            }
            if matches!(status, Status::Outbid | Status::TooFew) && client.rounds > 0 {
                actions.push(Action::NextRound(number));
            }
        }
        let late = state.late.iter().cloned();
        actions.extend(late.map(|(client, store, write)| Action::Late(client, store, write)));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Deliver(client, store) => {
                let request = state.clients[client].machine.asked(store)?.clone();
                let answer = Self::perform(&mut state, client, store, &request);
                state.clients[client].machine.answer(store, answer);
                Self::take_up(&mut state, client);
            }
            Action::TimeOut(client, store, happens) => {
                state.timeouts -= 1;
                let request = state.clients[client].machine.asked(store)?.clone();
                if self.late {
                    state.late.insert((client, store, request));
                } else if happens {
                    Self::perform(&mut state, client, store, &request);
                }
                state.clients[client].machine.answer(store, BlockAnswer::Failed);
                Self::take_up(&mut state, client);
            }
            Action::Late(client, store, write) => {
                Self::perform(&mut state, client, store, &write);
                state.late.remove(&(client, store, write));
            }
            Action::NextRound(client) => {
                state.clients[client].rounds -= 1;
                state.clients[client].machine.retry();
                state.clients[client].machine.begin_round();
                Self::take_up(&mut state, client);
            }
        }
        Some(self.canonical(state))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one value", |_, state: &State| state.told.len() <= 1),
            Property::always("found again", |world: &Self, state: &State| {
                world.is_found_again(state)
            }),
            Property::sometimes("decided", |_, state: &State| !state.told.is_empty()),
        ]
    }
}
