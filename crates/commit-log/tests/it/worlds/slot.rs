//! The slot rounds in a world of stores that may be late, deaf or lying, and of clients that die and come back.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use commit_log::serverless::rounds::{
    Answer, Message, Proposer, ProposerId, Quorums, Request, Round, Rules, Status,
};
use stateright::{Model, Property};

use super::asking::{go_on_alone, perform};
use super::mending::{Damage, Deed, Mending};
use super::truth::{List, Proposal, decided};

type Machine = Proposer<Proposal>;

/// What is added to the name of a proposer that is not the first of its life.
const RENEWED: u8 = 8;

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Proposes with the right to the small quorum.
    Owner,
    /// Proposes in the fast round.
    Other,
    /// Proposes in classic rounds only.
    Classic,
    /// Proposes nothing, and may begin at any time.
    Reader,
}

/// What may happen in a world, and how often.
#[derive(Debug, Clone)]
pub(crate) struct World {
    /// The quorums, right or wrong.
    pub quorums: Quorums,
    /// The rules of all machines, right or wrong.
    pub rules: Rules,
    /// Who takes part.
    pub roles: Vec<Role>,
    /// How many classic rounds a client begins on its own.
    pub rounds: u8,
    /// How many requests get no answer in time; the put happens then or later or never.
    pub timeouts: u8,
    /// How many times a client dies and comes back with another value.
    pub crashes: u8,
    /// How many times a store goes back by one message.
    pub rollbacks: u8,
    /// Stores go back only after the value was completed everywhere.
    pub rolls_back_completed_only: bool,
    /// How many times a store loses an accepted value in the middle of its list.
    pub compactions: u8,
    /// How many reads say that a list ends where it does not.
    pub stale_reads: u8,
    /// A client that comes back uses its old name again.
    pub reuses_rounds: bool,
    /// An owner that comes back believes that it still is.
    pub restarts_as_owner: bool,
    /// The last store lies as much as it can.
    pub has_liar: bool,
    /// The liar can forge messages.
    pub forges: bool,
    /// A liar is believed when it says that it has written something.
    pub believes_writes: bool,
    /// Whoever knows the decided value completes it at the other stores.
    pub completes: bool,
    /// Whose vote says who leads.
    pub leading: Leading,
    /// How many times a client, without dying, begins anew to propose what it has proposed.
    pub renewals: u8,
    /// A second proposer of a client may lead, too.
    pub renewed_may_lead: bool,
    /// A store says that it has written what it had before, where both are equal.
    pub recognises: bool,
    /// The owner has died after its first vote, at the last store.
    pub has_dead_owner: bool,
    /// How many objects are damaged, at one store at a time.
    pub damages: u8,
    /// Who writes anew what is damaged.
    pub mending: Mending,
    /// What cannot be read is passed over, as if it said nothing.
    pub skips_damaged: bool,
}

/// How proposers choose the store whose vote says who leads when the fast round is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leading {
    /// There is none.
    None,
    /// The first one, for everybody.
    First,
    /// Every client has another one.
    Disputed,
}

impl World {
    /// Returns a world in which requests are late and nothing worse happens.
    pub(crate) fn new(quorums: Quorums, roles: &[Role]) -> Self {
        Self {
            quorums,
            rules: Rules::default(),
            roles: roles.to_vec(),
            rounds: 0,
            timeouts: 0,
            crashes: 0,
            rollbacks: 0,
            rolls_back_completed_only: false,
            compactions: 0,
            stale_reads: 0,
            reuses_rounds: false,
            restarts_as_owner: false,
            has_liar: false,
            forges: false,
            believes_writes: false,
            completes: false,
            leading: Leading::None,
            renewals: 0,
            renewed_may_lead: false,
            recognises: false,
            has_dead_owner: false,
            damages: 0,
            mending: Mending::Nobody,
            skips_damaged: false,
        }
    }

    /// Sets another size of classic quorums.
    #[must_use]
    pub(crate) fn with_quorum(mut self, classic: usize) -> Self {
        self.quorums.classic = classic;
        self
    }

    fn machine(&self, role: Role, client: u8, life: u8) -> Machine {
        let name_life = if self.reuses_rounds { 0 } else { life };
        self.machine_named(role, client, life, name_life)
    }

    /// A proposer of one of its lives, under this name.
    fn machine_named(&self, role: Role, client: u8, life: u8, name: u8) -> Machine {
        let id = ProposerId(u128::from(client) * 16 + u128::from(name) + 1);
        let is_owners = role == Role::Owner && (life == 0 || self.restarts_as_owner);
        let own = Proposal { client, life, is_owners };
        let machine = match role {
            Role::Owner | Role::Other => Proposer::propose(self.quorums, id, own, true),
            Role::Classic => Proposer::propose(self.quorums, id, own, false),
            Role::Reader => Proposer::read(self.quorums, id),
        };
        let may_lead = name < RENEWED || self.renewed_may_lead;
        let machine = match self.leading {
            Leading::None => machine,
            Leading::First => machine.with_leading_store(0, may_lead),
            Leading::Disputed => machine.with_leading_store(usize::from(client), may_lead),
        };
        let machine = machine.with_rules(self.rules);
        if self.believes_writes { machine.without_reading_back() } else { machine }
    }

    fn is_liar(&self, store: usize) -> bool {
        self.has_liar && store + 1 == self.quorums.stores
    }

    /// How many stores tell the truth.
    fn honest(&self) -> usize {
        self.quorums.stores - usize::from(self.has_liar)
    }

    /// What the liar may say to a request.
    fn lies(&self, state: &State, request: &Request<Proposal>) -> Vec<Answer<Proposal>> {
        if request.put.is_some() {
            // Its list would never end.
            let is_long = request.place > 2;
            return if is_long {
                vec![Answer::Written]
            } else {
                vec![Answer::Written, Answer::Exists]
            };
        }
        let mut lies: Vec<Answer<Proposal>> =
            state.sent.iter().cloned().map(Answer::Found).collect();
        if self.forges {
            let forged = Proposal { client: 9, life: 0, is_owners: false };
            let round = Round { counter: 0, proposer: ProposerId(999) };
            lies.push(Answer::Found(Message::Accept(round, forged)));
        }
        lies.push(Answer::Absent);
        lies
    }

    fn take_up(&self, state: &mut State, client: usize) {
        let requests = state.clients[client].machine.requests();
        if self.has_liar {
            state.sent.extend(requests.iter().filter_map(|request| request.put.clone()));
        }
        if let Status::Decided(value) = state.clients[client].machine.status() {
            state.told.insert(value);
            self.leave(state, client);
            if self.completes {
                state.late.extend(state.clients[client].machine.completions(&value));
            }
        }
    }

    /// Lets a store do what it is asked, truthfully.
    pub(crate) fn perform(
        &self,
        state: &mut State,
        request: &Request<Proposal>,
    ) -> Answer<Proposal> {
        if state.damage.hides(request.store, request.place) {
            return match &request.put {
                Some(_) => Answer::Exists,
                None if self.skips_damaged => Answer::Found(Message::Noise),
                None => Answer::Failed,
            };
        }
        let list = &mut state.lists[request.store];
        let is_own = request.put.is_some() && list.get(request.place) == Some(&request.put);
        match self.recognises && is_own {
            true => Answer::Written,
            false => perform(list, request),
        }
    }

    fn answer(&self, state: &mut State, client: usize, store: usize, answer: &Answer<Proposal>) {
        let machine = &mut state.clients[client].machine;
        let Some(request) = machine.asked(store) else { return };
        machine.answer(&request, answer.clone());
        self.take_up(state, client);
    }

    pub(crate) fn note_decided(&self, state: &mut State) {
        state.decided.extend(decided(&self.quorums, &state.lists[..self.honest()]));
    }

    /// Numbers the honest stores so that worlds that differ only in their numbers are one.
    fn canonical(&self, mut state: State) -> State {
        let mut order: Vec<usize> = (0..self.quorums.stores).collect();
        let honest = self.honest();
        let keys: Vec<u64> = order.iter().map(|store| state.key(*store)).collect();
        let alike = match self.leading {
            Leading::None => 0..honest,
            Leading::First => 1..honest,
            Leading::Disputed => 0..0,
        };
        order[alike].sort_by_key(|store| keys[*store]);
        if order.is_sorted() {
            return state;
        }
        state.lists = order.iter().map(|store| state.lists[*store].clone()).collect();
        for client in &mut state.clients {
            client.machine.reorder(&order);
        }
        let place_of = |store: usize| order.iter().position(|old| *old == store);
        state.damage = state.damage.renumbered(&order);
        state.late = std::mem::take(&mut state.late)
            .into_iter()
            .map(|request| Request { store: place_of(request.store).unwrap_or(0), ..request })
            .collect();
        state
    }

    /// Lets one new client finish alone, with only these stores, and returns what it learns.
    fn alone(&self, state: &State, alive: &[usize], own: Option<Proposal>) -> Status<Proposal> {
        let id = ProposerId(7777);
        let mut machine = match own {
            Some(own) => Proposer::propose(self.quorums, id, own, true),
            None => Proposer::read(self.quorums, id),
        };
        if self.leading != Leading::None {
            machine = machine.with_leading_store(0, true);
        }
        machine = machine.with_rules(self.rules);
        let mut world = state.clone();
        go_on_alone(machine, |request| match alive.contains(&request.store) {
            true => self.perform(&mut world, request),
            false => Answer::Failed,
        })
    }

    /// Every choice of honest stores that is enough for a classic quorum. One whose list cannot be read is none of them.
    fn enough(&self, state: &State) -> Vec<Vec<usize>> {
        let honest = self.honest();
        let size = self.quorums.classic.min(honest);
        (0_u32..1 << honest)
            .filter(|set| set.count_ones() as usize == size)
            .map(|set| (0..honest).filter(|store| set & 1 << store != 0).collect())
            .filter(|set: &Vec<usize>| !set.iter().any(|store| state.damage.is_of(*store)))
            .collect()
    }
}

/// A client in one of its lives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    machine: Machine,
    life: u8,
    rounds: u8,
    /// Readers wait for a moment to begin; then they write down what was decided before.
    began: Option<BTreeSet<Proposal>>,
}

/// The world at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub lists: Vec<List>,
    clients: Vec<Client>,
    /// Puts for whose answer nobody waits any more.
    late: BTreeSet<Request<Proposal>>,
    /// Every message that was ever sent, where a liar may repeat it.
    sent: BTreeSet<Message<Proposal>>,
    /// Every value that was ever decided.
    decided: BTreeSet<Proposal>,
    /// Every value that somebody was told to be decided.
    pub told: BTreeSet<Proposal>,
    /// What cannot be read.
    pub damage: Damage,
    timeouts: u8,
    crashes: u8,
    renewals: u8,
    pub rollbacks: u8,
    compactions: u8,
    stale_reads: u8,
}

impl State {
    fn key(&self, store: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.lists[store].hash(&mut hasher);
        for client in &self.clients {
            client.machine.fingerprint(store).hash(&mut hasher);
        }
        for request in self.late.iter().filter(|request| request.store == store) {
            (request.place, &request.put).hash(&mut hasher);
        }
        self.damage.hash_of(store, &mut hasher);
        hasher.finish()
    }
}

impl State {
    /// Whether every store shows by itself what was decided.
    fn is_completed(&self) -> bool {
        let shows = |list: &List| {
            list.iter().flatten().any(|message| match message {
                Message::Decided(value) => self.told.contains(value),
                Message::Vote(value) => value.is_owners && self.told.contains(value),
                Message::Prepare(_) | Message::Accept(..) | Message::Noise => false,
            })
        };
        self.lists.iter().all(shows)
    }
}

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// A reader begins.
    Begin(usize),
    /// A store does what a client asked, and the client hears of it.
    Deliver(usize, usize),
    /// A read says that the list ends.
    Stale(usize, usize),
    /// The liar answers.
    Lie(usize, usize, Answer<Proposal>),
    /// A client does not wait longer for a store.
    TimeOut(usize, usize),
    /// A store does what nobody waits for.
    Late(Request<Proposal>),
    /// A client does not wait longer for the fast round.
    Hurry(usize),
    /// A client begins a round.
    NextRound(usize),
    /// A client begins anew to propose the same.
    Renew(usize),
    /// A client dies and comes back.
    Crash(usize),
    /// A store forgets its last message.
    RollBack(usize),
    /// A store forgets an accepted value.
    Compact(usize, usize),
    /// An object is damaged, or written anew.
    Object(Deed),
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let clients = self.roles.iter().zip(0_u8..).map(|(role, client)| Client {
            machine: self.machine(*role, client, 0),
            life: 0,
            rounds: self.rounds,
            began: (*role != Role::Reader).then(BTreeSet::new),
        });
        let mut state = State {
            lists: vec![Vec::new(); self.quorums.stores],
            clients: clients.collect(),
            late: BTreeSet::new(),
            sent: BTreeSet::new(),
            decided: BTreeSet::new(),
            told: BTreeSet::new(),
            damage: Damage::at_most(self.damages),
            timeouts: self.timeouts,
            crashes: self.crashes,
            renewals: self.renewals,
            rollbacks: self.rollbacks,
            compactions: self.compactions,
            stale_reads: self.stale_reads,
        };
        if self.has_dead_owner {
            let owners = Proposal { client: 7, life: 0, is_owners: true };
            state.lists[self.quorums.stores - 1].push(Some(Message::Vote(owners)));
        }
        for client in 0..self.roles.len() {
            if state.clients[client].began.is_some() {
                self.take_up(&mut state, client);
            }
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, client) in state.clients.iter().enumerate() {
            if client.began.is_none() {
                actions.push(Action::Begin(number));
                continue;
            }
            let status = client.machine.status();
            if matches!(status, Status::Decided(_)) {
                continue;
            }
            for store in 0..self.quorums.stores {
                let Some(request) = client.machine.asked(store) else { continue };
                if self.is_liar(store) {
                    let lies = self.lies(state, &request).into_iter();
                    actions.extend(lies.map(|lie| Action::Lie(number, store, lie)));
                    continue;
                }
                actions.push(Action::Deliver(number, store));
                if state.timeouts > 0 {
                    actions.push(Action::TimeOut(number, store));
                }
                if state.stale_reads > 0 && request.put.is_none() {
                    actions.push(Action::Stale(number, store));
                }
            }
            let may_hurry = matches!(status, Status::Working | Status::Following);
            if may_hurry && !client.machine.is_classic() {
                actions.push(Action::Hurry(number));
            }
            let is_stuck = matches!(status, Status::Open | Status::Outbid | Status::TooFew);
            if is_stuck && client.rounds > 0 {
                actions.push(Action::NextRound(number));
            }
            if state.renewals > 0 && self.roles[number] != Role::Reader {
                actions.push(Action::Renew(number));
            }
            if state.crashes > 0 && self.roles[number] != Role::Reader {
                actions.push(Action::Crash(number));
            }
        }
        actions.extend(state.late.iter().cloned().map(Action::Late));
        for (store, list) in state.lists.iter().enumerate() {
            let may_roll_back = state.rollbacks > 0 && !list.is_empty();
            if may_roll_back && (!self.rolls_back_completed_only || state.is_completed()) {
                actions.push(Action::RollBack(store));
            }
            let accepts = list.iter().enumerate().filter(|(_, message)| {
                state.compactions > 0 && matches!(message, Some(Message::Accept(..)))
            });
            actions.extend(accepts.map(|(place, _)| Action::Compact(store, place)));
        }
        actions.extend(self.deeds(state).into_iter().map(Action::Object));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Begin(client) => {
                state.clients[client].began = Some(state.decided.clone());
                self.take_up(&mut state, client);
            }
            Action::Deliver(client, store) => {
                let request = state.clients[client].machine.asked(store)?;
                let answer = self.perform(&mut state, &request);
                self.note_decided(&mut state);
                self.answer(&mut state, client, store, &answer);
            }
            Action::Stale(client, store) => {
                state.stale_reads -= 1;
                self.answer(&mut state, client, store, &Answer::Absent);
            }
            Action::Lie(client, store, lie) => self.answer(&mut state, client, store, &lie),
            Action::TimeOut(client, store) => {
                state.timeouts -= 1;
                let request = state.clients[client].machine.asked(store)?;
                if request.put.is_some() {
                    state.late.insert(request);
                }
                self.answer(&mut state, client, store, &Answer::Failed);
            }
            Action::Late(request) => {
                state.late.remove(&request);
                self.perform(&mut state, &request);
                self.note_decided(&mut state);
            }
            Action::Hurry(client) => {
                let machine = &mut state.clients[client].machine;
                if !machine.hurry() && machine.is_following() {
                    machine.begin_round();
                }
                self.take_up(&mut state, client);
            }
            Action::NextRound(client) => {
                state.clients[client].rounds -= 1;
                state.clients[client].machine.retry();
                state.clients[client].machine.begin_round();
                self.take_up(&mut state, client);
            }
            Action::Renew(client) => {
                state.renewals -= 1;
                self.leave(&mut state, client);
                let number = u8::try_from(client).unwrap_or(u8::MAX);
                let life = state.clients[client].life;
                let name = RENEWED + state.renewals;
                state.clients[client].machine =
                    self.machine_named(self.roles[client], number, life, name);
                self.take_up(&mut state, client);
            }
            Action::Crash(client) => {
                state.crashes -= 1;
                self.crash(&mut state, client);
            }
            Action::RollBack(store) => {
                state.rollbacks -= 1;
                state.lists[store].pop();
            }
            Action::Compact(store, place) => {
                state.compactions -= 1;
                state.lists[store][place] = Some(Message::Noise);
            }
            Action::Object(deed) => self.carry_out(&mut state, deed),
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
            Property::always("proposed", |_, state: &State| {
                state.decided.iter().chain(&state.told).all(|value| value.client < 9)
            }),
            Property::always("reader is fresh", |_, state: &State| {
                state.clients.iter().all(|client| {
                    client.machine.status() != Status::Undecided
                        || client.began.as_ref().is_none_or(BTreeSet::is_empty)
                })
            }),
            Property::always("found again", |world: &Self, state: &State| {
                world.is_found_again(state)
            }),
            Property::sometimes("decided", |_, state: &State| !state.told.is_empty()),
        ]
    }
}

impl World {
    /// Nobody waits any more for what the client has asked for.
    fn leave(&self, state: &mut State, client: usize) {
        for store in 0..self.honest() {
            let asked = state.clients[client].machine.asked(store);
            state.late.extend(asked.filter(|request| request.put.is_some()));
        }
    }

    fn crash(&self, state: &mut State, client: usize) {
        self.leave(state, client);
        let life = state.clients[client].life + 1;
        let number = u8::try_from(client).unwrap_or(u8::MAX);
        state.clients[client].machine = self.machine(self.roles[client], number, life);
        state.clients[client].life = life;
        self.take_up(state, client);
    }

    /// Whoever comes later, with any stores that are enough, ends with the decided value, or with one of its own where
    /// nothing is decided; and nobody is left without an answer.
    fn is_found_again(&self, state: &State) -> bool {
        let own = Proposal { client: 8, life: 0, is_owners: false };
        let filled: BTreeSet<_> = state.decided.union(&state.told).copied().collect();
        self.enough(state).iter().all(|alive| {
            let proposed = match self.alone(state, alive, Some(own)) {
                Status::Decided(value) => filled.is_empty() || filled.contains(&value),
                _ => false,
            };
            let read = match self.alone(state, alive, None) {
                Status::Decided(value) => filled.is_empty() || filled.contains(&value),
                Status::Undecided => filled.is_empty(),
                _ => false,
            };
            proposed && read
        })
    }
}
