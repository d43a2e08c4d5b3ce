//! pPaxos in a world of lists that are late, out of date, or lied about.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use commit_log::serverless::ppaxos::{ListAnswer, ListRequest, PassivePaxos};
use commit_log::serverless::rounds::{Message, ProposerId, Quorums, Rules, Status};
use stateright::{Model, Property};

use super::truth::{Proposal, decided};

type Machine = PassivePaxos<Proposal>;

/// What may happen, and how often.
#[derive(Debug, Clone)]
pub(crate) struct PassiveWorld {
    pub(crate) quorums: Quorums,
    pub(crate) rules: Rules,
    pub(crate) proposers: u8,
    /// The first proposer has filled the slot before and skips the first half.
    pub(crate) has_leader: bool,
    pub(crate) rounds: u8,
    pub(crate) timeouts: u8,
    /// How many times a list is handed out without its last message.
    pub(crate) stale_reads: u8,
    /// How many times a client dies and comes back, with its old name where it `reuses_rounds`.
    pub(crate) crashes: u8,
    pub(crate) reuses_rounds: bool,
    /// The last store hands out any part of what was ever sent to it, in any order.
    pub(crate) has_liar: bool,
    pub(crate) skips_read_back: bool,
}

impl PassiveWorld {
    pub(crate) fn new(quorums: Quorums, proposers: u8) -> Self {
        Self {
            quorums,
            rules: Rules::default(),
            proposers,
            has_leader: false,
            rounds: 0,
            timeouts: 0,
            stale_reads: 0,
            crashes: 0,
            reuses_rounds: false,
            has_liar: false,
            skips_read_back: false,
        }
    }

    fn machine(&self, client: u8, life: u8) -> Machine {
        let name_life = if self.reuses_rounds { 0 } else { life };
        let id = ProposerId(u128::from(client) * 16 + u128::from(name_life) + 1);
        let own = Proposal { client, life, is_owners: false };
        let skips_prepare = self.has_leader && client == 0 && life == 0;
        let machine = PassivePaxos::propose(self.quorums, id, own, skips_prepare);
        let machine = machine.with_rules(self.rules);
        if self.skips_read_back { machine.without_reading_back() } else { machine }
    }

    fn is_liar(&self, store: usize) -> bool {
        self.has_liar && store + 1 == self.quorums.stores
    }

    fn take_up(state: &mut State, client: usize) {
        state.clients[client].machine.requests();
        if let Status::Decided(value) = state.clients[client].machine.status() {
            state.told.insert(value);
        }
    }

    fn note_decided(&self, state: &mut State) {
        let honest = self.quorums.stores - usize::from(self.has_liar);
        let lists: Vec<_> =
            state.lists[..honest].iter().map(|l| l.iter().cloned().map(Some).collect()).collect();
        let quorums = Quorums { fast: None, ..self.quorums };
        state.decided.extend(decided(&quorums, &lists));
    }

    fn crash(&self, state: &mut State, client: usize) {
        for store in 0..self.quorums.stores {
            let asked = state.clients[client].machine.asked(store).cloned();
            if let Some(ListRequest::Append(message)) = asked {
                state.late.insert((store, message));
            }
        }
        let life = state.clients[client].life + 1;
        let number = u8::try_from(client).unwrap_or(u8::MAX);
        state.clients[client] =
            Client { machine: self.machine(number, life), life, rounds: self.rounds };
        Self::take_up(state, client);
    }

    /// Numbers the honest stores so that worlds that differ only in their numbers are one.
    fn canonical(&self, mut state: State) -> State {
        let mut order: Vec<usize> = (0..self.quorums.stores).collect();
        let honest = self.quorums.stores - usize::from(self.has_liar);
        let keys: Vec<u64> = order.iter().map(|store| state.key(*store)).collect();
        order[..honest].sort_by_key(|store| keys[*store]);
        state.lists = order.iter().map(|store| state.lists[*store].clone()).collect();
        for client in &mut state.clients {
            client.machine.reorder(&order);
        }
        let place_of = |store: usize| order.iter().position(|old| *old == store).unwrap_or(0);
        let late = std::mem::take(&mut state.late).into_iter();
        state.late = late.map(|(store, message)| (place_of(store), message)).collect();
        state
    }

    /// Whether a new client that reaches only these stores ends with what is decided.
    fn is_found_by(&self, state: &State, alive: &[usize]) -> bool {
        let own = Proposal { client: 8, life: 0, is_owners: false };
        let mut machine = PassivePaxos::propose(self.quorums, ProposerId(7777), own, false);
        machine = machine.with_rules(self.rules);
        let mut lists = state.lists.clone();
        for _ in 0..6 {
            loop {
                let requests = machine.requests();
                if requests.is_empty() {
                    break;
                }
                for (store, request) in requests {
                    let answer = match (alive.contains(&store), request) {
                        (false, _) => ListAnswer::Failed,
                        (true, ListRequest::Append(message)) => {
                            lists[store].push(message);
                            ListAnswer::Appended
                        }
                        (true, ListRequest::Fetch(from)) => {
                            ListAnswer::Fetched(lists[store][from..].to_vec())
                        }
                    };
                    machine.answer(store, answer);
                }
            }
            match machine.status() {
                Status::Outbid => machine.begin_round(),
                Status::Decided(value) => {
                    return state.decided.union(&state.told).all(|decided| *decided == value);
                }
                _ => return false,
            }
        }
        false
    }

    fn is_found_again(&self, state: &State) -> bool {
        let honest = self.quorums.stores - usize::from(self.has_liar);
        (0_u32..1 << honest)
            .filter(|set| set.count_ones() as usize == self.quorums.classic.min(honest))
            .all(|set| {
                let alive: Vec<usize> = (0..honest).filter(|store| set & 1 << store != 0).collect();
                self.is_found_by(state, &alive)
            })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Client {
    machine: Machine,
    life: u8,
    rounds: u8,
}

/// The world at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    lists: Vec<Vec<Message<Proposal>>>,
    clients: Vec<Client>,
    late: BTreeSet<(usize, Message<Proposal>)>,
    decided: BTreeSet<Proposal>,
    told: BTreeSet<Proposal>,
    timeouts: u8,
    stale_reads: u8,
    crashes: u8,
}

impl State {
    fn key(&self, store: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.lists[store].hash(&mut hasher);
        for client in &self.clients {
            client.machine.fingerprint(store).hash(&mut hasher);
        }
        for (_, message) in self.late.iter().filter(|(late, _)| *late == store) {
            message.hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Deliver(usize, usize),
    Stale(usize, usize),
    Lie(usize, usize, Vec<Message<Proposal>>),
    TimeOut(usize, usize),
    Late(usize, Message<Proposal>),
    NextRound(usize),
    Crash(usize),
}

impl Model for PassiveWorld {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let client =
            |client| Client { machine: self.machine(client, 0), life: 0, rounds: self.rounds };
        let mut state = State {
            lists: vec![Vec::new(); self.quorums.stores],
            clients: (0..self.proposers).map(client).collect(),
            late: BTreeSet::new(),
            decided: BTreeSet::new(),
            told: BTreeSet::new(),
            timeouts: self.timeouts,
            stale_reads: self.stale_reads,
            crashes: self.crashes,
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
                let is_fetch = matches!(request, ListRequest::Fetch(_));
                if self.is_liar(store) && is_fetch {
                    let lies = lies(&state.lists[store]);
                    actions.extend(lies.into_iter().map(|lie| Action::Lie(number, store, lie)));
                    continue;
                }
                actions.push(Action::Deliver(number, store));
                if is_fetch && state.stale_reads > 0 {
                    actions.push(Action::Stale(number, store));
                }
                if state.timeouts > 0 {
                    actions.push(Action::TimeOut(number, store));
                }
            }
            if matches!(status, Status::Outbid | Status::TooFew) && client.rounds > 0 {
                actions.push(Action::NextRound(number));
            }
            if state.crashes > 0 {
                actions.push(Action::Crash(number));
            }
        }
        let late = state.late.iter().cloned();
        actions.extend(late.map(|(store, message)| Action::Late(store, message)));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Deliver(client, store) => {
                let answer = match state.clients[client].machine.asked(store)?.clone() {
                    ListRequest::Append(message) => {
                        state.lists[store].push(message);
                        ListAnswer::Appended
                    }
                    ListRequest::Fetch(from) => {
                        ListAnswer::Fetched(state.lists[store][from..].to_vec())
                    }
                };
                self.note_decided(&mut state);
                state.clients[client].machine.answer(store, answer);
                Self::take_up(&mut state, client);
            }
            Action::Stale(client, store) => {
                state.stale_reads -= 1;
                let ListRequest::Fetch(from) = *state.clients[client].machine.asked(store)? else {
                    return None;
                };
                let list = &state.lists[store];
                // What others wrote is missing, and one's own is there.
                let own = list.last().cloned();
                let answer =
                    ListAnswer::Fetched(own.filter(|_| list.len() > from).into_iter().collect());
                state.clients[client].machine.answer(store, answer);
                Self::take_up(&mut state, client);
            }
            Action::Lie(client, store, lie) => {
                let ListRequest::Fetch(from) = *state.clients[client].machine.asked(store)? else {
                    return None;
                };
                let told = lie.get(from..).unwrap_or_default().to_vec();
                state.clients[client].machine.answer(store, ListAnswer::Fetched(told));
                Self::take_up(&mut state, client);
            }
            Action::TimeOut(client, store) => {
                state.timeouts -= 1;
                if let ListRequest::Append(message) = state.clients[client].machine.asked(store)? {
                    state.late.insert((store, message.clone()));
                }
                state.clients[client].machine.answer(store, ListAnswer::Failed);
                Self::take_up(&mut state, client);
            }
            Action::Late(store, message) => {
                state.late.remove(&(store, message.clone()));
                state.lists[store].push(message);
                self.note_decided(&mut state);
            }
            Action::NextRound(client) => {
                state.clients[client].rounds -= 1;
                state.clients[client].machine.retry();
                state.clients[client].machine.begin_round();
                Self::take_up(&mut state, client);
            }
            Action::Crash(client) => {
                state.crashes -= 1;
                self.crash(&mut state, client);
            }
        }
        Some(self.canonical(state))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one value", |_, state: &State| {
                state.decided.union(&state.told).count() <= 1
            }),
            Property::always("told is decided", |world: &Self, state: &State| {
                world.has_liar || state.told.is_subset(&state.decided)
            }),
            Property::always("found again", |world: &Self, state: &State| {
                world.is_found_again(state)
            }),
            Property::sometimes("decided", |_, state: &State| !state.told.is_empty()),
        ]
    }
}

/// Every part of a list, and every two messages of it in the wrong order.
fn lies(list: &[Message<Proposal>]) -> Vec<Vec<Message<Proposal>>> {
    let mut lies = Vec::new();
    for set in 0_u32..1 << list.len().min(6) {
        let kept = list.iter().enumerate().filter(|(place, _)| set & 1 << place != 0);
        let part: Vec<_> = kept.map(|(_, message)| message.clone()).collect();
        if part.len() > 1 {
            lies.push(part.iter().rev().cloned().collect());
        }
        lies.push(part);
    }
    lies
}
