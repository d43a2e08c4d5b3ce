//! Two slots, of which the first may hand the second to other stores; what the first slot is filled with is carried over to
//! them, the stores that leave are wiped, and devices come late.
//!
//! The first slot belongs to the stores `first`. If it is filled with the entry of client 0, the stores `second` agree on
//! the second slot. Whoever fills the first slot so carries it over and then leaves a hint in all stores; once the hint is in
//! all stores of the second group, the others may be wiped at any moment.

use std::collections::BTreeSet;

use commit_log::serverless::rounds::{
    Answer, Carrier, FaultModel, Proposer, ProposerId, Quorums, Request, Status,
};
use stateright::{Model, Property};

use super::asking::{go_on_alone, perform};
use super::truth::{List, Proposal, decided};

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Proposes the change, carries over, leaves hints.
    Mover,
    /// Knows the first group only and comes at any time; goes on in the second slot where it learns of the change.
    Late,
    /// The same, and finishes the carrying over if it learns of the change.
    Finisher,
    /// Knows nothing and follows a hint; reads the first slot, proposes for the second.
    Follower,
}

/// The world, right or wrong.
#[derive(Debug, Clone)]
pub(crate) struct MovingWorld {
    /// The stores of the first slot, and of the second if it changes hands.
    pub groups: [Vec<usize>; 2],
    pub parts: Vec<Part>,
    pub timeouts: u8,
    pub crashes: u8,
    /// How many stores that have left are wiped.
    pub wipes: u8,
    /// Whether the second slot is proposed for, too.
    pub has_second: bool,
    /// A slot that was carried over is read as any other.
    pub counts_votes: bool,
    /// Hints are left before anything is carried over.
    pub hints_early: bool,
    /// What was decided before the change is carried over, and the change itself is not.
    pub carries_before_only: bool,
    /// One store that has it is thought to be enough.
    pub carries_to_one: bool,
    /// A store that was wiped is taken for an empty one.
    pub accepts_wiped: bool,
}

impl MovingWorld {
    fn quorums(&self, slot: usize) -> Quorums {
        Quorums::new(self.groups[slot].len(), FaultModel::Crash)
    }

    fn stores(&self) -> usize {
        self.groups.iter().flatten().max().map_or(0, |last| last + 1)
    }

    fn proposer(&self, client: usize, slot: usize) -> Proposer<Proposal> {
        let number = u8::try_from(client).unwrap_or(u8::MAX);
        let life = u8::from(slot == 1);
        let own = Proposal { client: number, life, is_owners: false };
        let id = ProposerId(u128::from(number) * 4 + u128::from(life) + 1);
        Proposer::propose(self.quorums(slot), id, own, true).with_leading_store(0, true)
    }

    fn reader(&self, id: u128) -> Proposer<Proposal> {
        let (quorums, id) = (self.quorums(1), ProposerId(id));
        if self.counts_votes {
            return Proposer::read(quorums, id);
        }
        Proposer::read_settled(quorums, id)
    }

    /// The requests of a client that wait for an answer: the slot, the store, and what is asked.
    fn asked(&self, stage: &Stage) -> Vec<(usize, Request<Proposal>)> {
        let count = |slot: usize| self.groups[slot].len();
        match stage {
            Stage::First(machine) => {
                (0..count(0)).filter_map(|s| machine.asked(s)).map(|r| (0, r)).collect()
            }
            Stage::Second(machine) => {
                (0..count(1)).filter_map(|s| machine.asked(s)).map(|r| (1, r)).collect()
            }
            Stage::Following(machine) => {
                (0..count(1)).filter_map(|s| machine.asked(s)).map(|r| (0, r)).collect()
            }
            Stage::Carrying(carrier) => {
                (0..count(1)).filter_map(|s| carrier.asked(s)).map(|r| (0, r)).collect()
            }
            Stage::Waiting | Stage::Hinting(_) | Stage::Astray | Stage::Done => Vec::new(),
        }
    }

    /// Which store a request goes to.
    fn store_of(&self, stage: &Stage, request: &Request<Proposal>) -> usize {
        let group = match stage {
            Stage::First(_) => &self.groups[0],
            _ => &self.groups[1],
        };
        group[request.store]
    }

    fn perform(
        &self,
        state: &mut State,
        slot: usize,
        store: usize,
        request: &Request<Proposal>,
    ) -> Answer<Proposal> {
        if state.wiped[store] && !self.accepts_wiped {
            return Answer::Failed;
        }
        perform(&mut state.lists[slot][store], request)
    }

    fn lists(&self, state: &State, slot: usize) -> Vec<List> {
        self.groups[slot].iter().map(|store| state.lists[slot][*store].clone()).collect()
    }

    fn note_decided(&self, state: &mut State) {
        for slot in 0..2 {
            let found = decided(&self.quorums(slot), &self.lists(state, slot));
            state.decided[slot].extend(found);
        }
    }

    /// Whether the first slot's value is that which changes the group.
    fn is_change(value: &Proposal) -> bool {
        value.client == 0
    }

    /// What a client does after it has learned of the change by itself.
    fn after_change(&self, client: usize, value: Proposal) -> Stage {
        match self.parts[client] {
            Part::Mover | Part::Finisher if self.carries_before_only || self.hints_early => {
                Stage::Hinting(0)
            }
            Part::Mover | Part::Finisher => self.carrying(value),
            Part::Late | Part::Follower => self.second(client),
        }
    }

    fn carrying(&self, value: Proposal) -> Stage {
        let had = |store: &usize| self.groups[0].contains(store);
        let has_lists: Vec<bool> = self.groups[1].iter().map(had).collect();
        Stage::Carrying(Carrier::new(value, &has_lists))
    }

    fn second(&self, client: usize) -> Stage {
        match self.has_second {
            true => Stage::Second(self.proposer(client, 1)),
            false => Stage::Done,
        }
    }

    /// Sends requests, and goes on where something is done.
    fn take_up(&self, state: &mut State, client: usize) {
        loop {
            let next = match &mut state.clients[client] {
                Stage::First(machine) => {
                    machine.requests();
                    let Status::Decided(value) = machine.status() else { return };
                    state.told[0].insert(value);
                    match Self::is_change(&value) {
                        true => self.after_change(client, value),
                        false => Stage::Done,
                    }
                }
                Stage::Following(machine) => {
                    machine.requests();
                    match machine.status() {
                        Status::Decided(value) => {
                            state.told[0].insert(value);
                            self.second(client)
                        }
                        Status::Undecided => Stage::Astray,
                        _ => return,
                    }
                }
                Stage::Carrying(carrier) => {
                    carrier.requests();
                    let enough = if self.carries_to_one { 1 } else { self.quorums(1).classic };
                    match carrier.done() >= enough {
                        true if self.hints_early => self.second(client),
                        true => Stage::Hinting(0),
                        false => return,
                    }
                }
                Stage::Second(machine) => {
                    machine.requests();
                    let Status::Decided(value) = machine.status() else { return };
                    state.told[1].insert(value);
                    Stage::Done
                }
                Stage::Hinting(_) | Stage::Waiting | Stage::Astray | Stage::Done => return,
            };
            state.clients[client] = next;
        }
    }

    fn answer(
        &self,
        state: &mut State,
        client: usize,
        request: &Request<Proposal>,
        answer: Answer<Proposal>,
    ) {
        match &mut state.clients[client] {
            Stage::First(machine) | Stage::Following(machine) | Stage::Second(machine) => {
                machine.answer(request, answer);
            }
            Stage::Carrying(carrier) => carrier.answer(request, answer),
            Stage::Waiting | Stage::Hinting(_) | Stage::Astray | Stage::Done => {}
        }
        self.take_up(state, client);
    }

    /// Leaves the hint in the next store; then goes on.
    fn hint(&self, state: &mut State, client: usize) {
        let Stage::Hinting(store) = state.clients[client] else { return };
        state.hints.insert(store);
        let mut next = Stage::Hinting(store + 1);
        if store + 1 == self.stores() {
            let value = state.told[0].iter().copied().find(Self::is_change);
            next = match value {
                Some(value) if self.hints_early => self.carrying(value),
                _ => self.second(client),
            };
        }
        state.clients[client] = next;
        self.take_up(state, client);
    }

    fn is_announced(&self, state: &State) -> bool {
        self.groups[1].iter().all(|store| state.hints.contains(store))
    }

    /// Whether somebody who looks into these stores finds a hint.
    fn sees_hint(&self, state: &State) -> bool {
        state.hints.iter().any(|store| !state.wiped[*store])
    }

    /// Lets one new reader finish alone, with only these stores of a group.
    fn alone(
        &self,
        state: &State,
        machine: Proposer<Proposal>,
        group: usize,
        slot: usize,
        alive: u32,
    ) -> Status<Proposal> {
        let mut world = state.clone();
        go_on_alone(machine, |request| match alive & 1 << request.store {
            0 => Answer::Failed,
            _ => self.perform(&mut world, slot, self.groups[group][request.store], request),
        })
    }

    /// Whoever comes later, with any majority of the stores that are responsible, finds what is decided.
    fn is_found_again(&self, state: &State) -> bool {
        let finds = |machine: &dyn Fn() -> Proposer<Proposal>, group: usize, slot: usize| {
            let size = self.quorums(group).classic;
            let filled = &state.decided[slot];
            (0_u32..1 << self.groups[group].len())
                .filter(|alive| alive.count_ones() as usize == size)
                .all(|alive| match self.alone(state, machine(), group, slot, alive) {
                    Status::Decided(value) => filled.is_empty() || filled.contains(&value),
                    Status::Undecided => filled.is_empty(),
                    _ => false,
                })
        };
        let second =
            !self.has_second || finds(&|| Proposer::read(self.quorums(1), ProposerId(7777)), 1, 1);
        let is_wiped = state.wiped.contains(&true);
        let first = is_wiped || finds(&|| Proposer::read(self.quorums(0), ProposerId(7777)), 0, 0);
        let carried = !self.is_announced(state) || finds(&|| self.reader(7777), 1, 0);
        second && first && carried
    }
}

/// How far a client is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Waiting,
    First(Proposer<Proposal>),
    Carrying(Carrier<Proposal>),
    /// The next hint goes to this store.
    Hinting(usize),
    Following(Proposer<Proposal>),
    Second(Proposer<Proposal>),
    /// A hint has led where nothing is.
    Astray,
    Done,
}

/// The world at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    lists: [Vec<List>; 2],
    wiped: Vec<bool>,
    hints: BTreeSet<usize>,
    clients: Vec<Stage>,
    late: BTreeSet<(usize, usize, Request<Proposal>)>,
    decided: [BTreeSet<Proposal>; 2],
    told: [BTreeSet<Proposal>; 2],
    timeouts: u8,
    crashes: u8,
    wipes: u8,
}

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// A client that came late begins.
    Begin(usize),
    /// A store does what a client asked, and the client hears of it.
    Deliver(usize, usize),
    TimeOut(usize, usize),
    Late(usize, usize, Request<Proposal>),
    Hurry(usize),
    /// The next store gets the hint.
    Hint(usize),
    /// A client that gets no further by what it knows follows a hint.
    Follow(usize),
    /// The mover ends in the middle.
    Crash(usize),
    /// A store that has left is emptied.
    Wipe(usize),
}

impl Model for MovingWorld {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let stage = |(client, part): (usize, &Part)| match part {
            Part::Mover => Stage::First(self.proposer(client, 0)),
            Part::Late | Part::Finisher | Part::Follower => Stage::Waiting,
        };
        let empty = vec![Vec::new(); self.stores()];
        let mut state = State {
            lists: [empty.clone(), empty],
            wiped: vec![false; self.stores()],
            hints: BTreeSet::new(),
            clients: self.parts.iter().enumerate().map(stage).collect(),
            late: BTreeSet::new(),
            decided: Default::default(),
            told: Default::default(),
            timeouts: self.timeouts,
            crashes: self.crashes,
            wipes: self.wipes,
        };
        for client in 0..state.clients.len() {
            self.take_up(&mut state, client);
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, stage) in state.clients.iter().enumerate() {
            for (_, request) in self.asked(stage) {
                actions.push(Action::Deliver(number, request.store));
                if state.timeouts > 0 {
                    actions.push(Action::TimeOut(number, request.store));
                }
            }
            match stage {
                Stage::Waiting if self.parts[number] != Part::Follower => {
                    actions.push(Action::Begin(number));
                }
                Stage::Waiting if self.sees_hint(state) => actions.push(Action::Follow(number)),
                Stage::Hinting(_) => actions.push(Action::Hint(number)),
                Stage::First(machine) | Stage::Second(machine) => {
                    let status = machine.status();
                    let may_hurry = matches!(status, Status::Working | Status::Following);
                    if may_hurry && !machine.is_classic() {
                        actions.push(Action::Hurry(number));
                    }
                    let is_first = matches!(stage, Stage::First(_));
                    if is_first && status == Status::TooFew && self.sees_hint(state) {
                        actions.push(Action::Follow(number));
                    }
                }
                _ => {}
            }
            if state.crashes > 0 && number == 0 && *stage != Stage::Done {
                actions.push(Action::Crash(number));
            }
        }
        let late = state.late.iter().cloned();
        actions.extend(late.map(|(slot, store, request)| Action::Late(slot, store, request)));
        if state.wipes > 0 && self.is_announced(state) {
            let gone = |store: &&usize| !self.groups[1].contains(store) && !state.wiped[**store];
            actions.extend(self.groups[0].iter().filter(gone).map(|store| Action::Wipe(*store)));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Begin(client) => {
                state.clients[client] = Stage::First(self.proposer(client, 0));
                self.take_up(&mut state, client);
            }
            Action::Deliver(client, number) => {
                let asked = self.asked(&state.clients[client]);
                let (slot, request) = asked.into_iter().find(|(_, r)| r.store == number)?;
                let store = self.store_of(&state.clients[client], &request);
                let answer = self.perform(&mut state, slot, store, &request);
                self.note_decided(&mut state);
                self.answer(&mut state, client, &request, answer);
            }
            Action::TimeOut(client, number) => {
                state.timeouts -= 1;
                let asked = self.asked(&state.clients[client]);
                let (slot, request) = asked.into_iter().find(|(_, r)| r.store == number)?;
                if request.put.is_some() {
                    let store = self.store_of(&state.clients[client], &request);
                    state.late.insert((slot, store, request.clone()));
                }
                self.answer(&mut state, client, &request, Answer::Failed);
            }
            Action::Late(slot, store, request) => {
                self.perform(&mut state, slot, store, &request);
                state.late.remove(&(slot, store, request));
                self.note_decided(&mut state);
            }
            Action::Hurry(client) => {
                if let Stage::First(machine) | Stage::Second(machine) = &mut state.clients[client]
                    && !machine.hurry()
                    && machine.is_following()
                {
                    machine.begin_round();
                }
                self.take_up(&mut state, client);
            }
            Action::Hint(client) => self.hint(&mut state, client),
            Action::Follow(client) => {
                let id = u128::try_from(client).ok()? * 4 + 3;
                state.clients[client] = Stage::Following(self.reader(id));
                self.take_up(&mut state, client);
            }
            Action::Crash(client) => {
                state.crashes -= 1;
                for (slot, request) in self.asked(&state.clients[client]) {
                    if request.put.is_some() {
                        let store = self.store_of(&state.clients[client], &request);
                        state.late.insert((slot, store, request));
                    }
                }
                state.clients[client] = Stage::Done;
            }
            Action::Wipe(store) => {
                state.wipes -= 1;
                state.wiped[store] = true;
                for slot in 0..2 {
                    state.lists[slot][store].clear();
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one value", |_, state: &State| {
                (0..2).all(|slot| state.decided[slot].union(&state.told[slot]).count() <= 1)
            }),
            Property::always("told is decided", |_, state: &State| {
                (0..2).all(|slot| state.told[slot].is_subset(&state.decided[slot]))
            }),
            Property::always("a hint leads on", |_, state: &State| {
                !state.clients.contains(&Stage::Astray)
            }),
            Property::always("found again", |world: &Self, state: &State| {
                world.is_found_again(state)
            }),
            Property::sometimes("announced", |world: &Self, state: &State| {
                world.is_announced(state)
            }),
        ]
    }
}
