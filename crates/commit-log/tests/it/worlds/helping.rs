//! A log of a few slots, whose clients do what others wished in a slot that they have won.
//!
//! What fills a slot is a matter of chance here, among what was proposed for it: the other models show that it is one
//! value. The helpers are the real ones.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use commit_log::serverless::helper::{Helper, HelpingRules};
use model::testing::{commit, put};
use model::{Commit, Entry, EntryHash, OpId};
use stateright::{Model, Property};

/// The world, right or wrong.
#[derive(Debug, Clone)]
pub(crate) struct HelpingWorld {
    /// Each has one operation, of its number.
    pub clients: u8,
    pub slots: usize,
    pub crashes: u8,
    pub rules: HelpingRules,
    /// The operation of client 0 changes the settings of the stores. Then nobody proposes any more who has opened the log
    /// with the old ones; whose operation is not in the log takes it back and does its work anew.
    pub has_change: bool,
    /// A helper stops at such a change, too.
    pub heeds_change: bool,
}

/// An operation that somebody has proposed for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Proposed {
    slot: usize,
    op: u8,
    session: u8,
}

/// A helper; what it knows is hashed as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hashed(Helper);

impl Hash for Hashed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        format!("{:?}", self.0).hash(state);
    }
}

/// What a client is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Proposing,
    Helping(Hashed),
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    life: u8,
    /// How many entries it has read.
    head: usize,
    /// Whether it has opened the log with the new settings.
    is_of_new: bool,
    stage: Stage,
}

/// The world at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// What the slots from 1 on are filled with.
    log: Vec<Proposed>,
    proposed: BTreeSet<Proposed>,
    clients: Vec<Client>,
    taken_back: BTreeSet<u8>,
    crashes: u8,
}

impl State {
    /// The entry of an operation in a slot of which all before are filled.
    fn entry(&self, slot: usize, op: u8) -> Entry {
        let previous = match slot {
            1 => EntryHash::NONE,
            _ => self.entry(slot - 1, self.log[slot - 2].op).hash(),
        };
        let op_id = OpId::from_bytes([op; 16]);
        let commit = Commit { op_id, ..commit(op, vec![put(op + 1, 0, "name")]) };
        Entry { seq: slot as u64, previous, commit }
    }

    fn is_in_log(&self, op: u8) -> bool {
        self.log.iter().any(|filled| filled.op == op)
    }

    fn has_change(&self, head: usize) -> bool {
        self.log[..head].iter().any(|filled| filled.op == 0)
    }
}

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// A client proposes its operation for the slot after the last that it has read.
    Propose(usize),
    /// A client reads the next entry.
    Learn(usize),
    /// A client that finds other settings forgets its operation.
    TakeBack(usize),
    /// A helper finds what somebody wished in some slot.
    Hear(usize, Proposed),
    /// A helper proposes what is next.
    Help(usize),
    /// A helper reads the next entry.
    LearnAsHelper(usize),
    /// A slot is filled.
    Fill(Proposed),
    /// A client dies and comes back.
    Crash(usize),
}

impl HelpingWorld {
    fn session(client: usize, life: u8) -> u8 {
        u8::try_from(client).unwrap_or(u8::MAX) * 8 + life
    }

    fn may_propose(&self, state: &State, client: &Client, head: usize) -> bool {
        !self.has_change || state.has_change(head) == client.is_of_new
    }

    fn actions_of(&self, state: &State, number: usize, actions: &mut Vec<Action>) {
        let client = &state.clients[number];
        let op = u8::try_from(number).unwrap_or(u8::MAX);
        match &client.stage {
            Stage::Done => return,
            Stage::Proposing => {
                let is_read = client.head == state.log.len();
                // What was made with old settings is not proposed with new ones.
                let may_propose = self.may_propose(state, client, client.head) && !client.is_of_new;
                if may_propose && client.head < self.slots {
                    actions.push(Action::Propose(number));
                }
                if !is_read {
                    actions.push(Action::Learn(number));
                }
                let is_changed = self.has_change && state.has_change(state.log.len());
                if is_changed && is_read && !state.is_in_log(op) {
                    actions.push(Action::TakeBack(number));
                }
            }
            Stage::Helping(Hashed(helper)) => {
                actions.extend(state.proposed.iter().map(|wish| Action::Hear(number, *wish)));
                if helper.next().is_some_and(|next| next.seq as usize <= self.slots) {
                    actions.push(Action::Help(number));
                    if state.log.len() as u64 > helper.head().seq {
                        actions.push(Action::LearnAsHelper(number));
                    }
                }
            }
        }
        if state.crashes > 0 {
            actions.push(Action::Crash(number));
        }
    }

    fn learn(&self, state: &mut State, number: usize) {
        let head = state.clients[number].head;
        let filled = state.log[head];
        let entry = state.entry(head + 1, filled.op);
        let client = &mut state.clients[number];
        client.head += 1;
        if usize::from(filled.op) == number {
            client.stage = match filled.session == Self::session(number, client.life) {
                true => Stage::Helping(Hashed(Helper::new(&entry).with_rules(self.rules))),
                false => Stage::Done,
            };
        }
    }

    fn help(&self, state: &mut State, number: usize, helper: &mut Helper) {
        let Some(next) = helper.next() else { return };
        let client = &state.clients[number];
        let slot = usize::try_from(next.seq).unwrap_or(usize::MAX);
        if self.heeds_change && !self.may_propose(state, client, slot - 1) {
            helper.stop();
            return;
        }
        let (op, session) = (next.commit.op_id.as_bytes()[0], Self::session(number, client.life));
        state.proposed.insert(Proposed { slot, op, session });
    }

    fn as_helper(
        &self,
        state: &mut State,
        number: usize,
        act: impl FnOnce(&mut State, &mut Helper),
    ) {
        let Stage::Helping(Hashed(mut helper)) = state.clients[number].stage.clone() else {
            return;
        };
        act(state, &mut helper);
        state.clients[number].stage = Stage::Helping(Hashed(helper));
    }
}

impl Model for HelpingWorld {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let client = Client { life: 0, head: 0, is_of_new: false, stage: Stage::Proposing };
        vec![State {
            log: Vec::new(),
            proposed: BTreeSet::new(),
            clients: vec![client; usize::from(self.clients)],
            taken_back: BTreeSet::new(),
            crashes: self.crashes,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for number in 0..state.clients.len() {
            self.actions_of(state, number, actions);
        }
        let next = state.log.len() + 1;
        let candidates = state.proposed.iter().filter(|proposed| proposed.slot == next);
        actions.extend(candidates.map(|candidate| Action::Fill(*candidate)));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Propose(number) => {
                let Client { head, life, .. } = state.clients[number];
                let op = u8::try_from(number).unwrap_or(u8::MAX);
                let session = Self::session(number, life);
                state.proposed.insert(Proposed { slot: head + 1, op, session });
            }
            Action::Learn(number) => self.learn(&mut state, number),
            Action::TakeBack(number) => {
                state.taken_back.insert(u8::try_from(number).unwrap_or(u8::MAX));
                state.clients[number].stage = Stage::Done;
            }
            Action::Hear(number, wish) => {
                let entry = state.entry(wish.slot, wish.op);
                self.as_helper(&mut state, number, |_, helper| helper.hear(&entry));
            }
            Action::Help(number) => self.as_helper(&mut state, number, |state, helper| {
                self.help(state, number, helper);
            }),
            Action::LearnAsHelper(number) => self.as_helper(&mut state, number, |state, helper| {
                let slot = usize::try_from(helper.head().seq).unwrap_or(usize::MAX) + 1;
                helper.take(&state.entry(slot, state.log[slot - 1].op));
            }),
            Action::Fill(candidate) => state.log.push(candidate),
            Action::Crash(number) => {
                state.crashes -= 1;
                let is_of_new = state.has_change(state.log.len());
                let client = &mut state.clients[number];
                let is_done = matches!(client.stage, Stage::Helping(_));
                let stage = if is_done { Stage::Done } else { Stage::Proposing };
                *client = Client { life: client.life + 1, head: 0, is_of_new, stage };
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("once", |_, state: &State| {
                let ops: BTreeSet<u8> = state.log.iter().map(|filled| filled.op).collect();
                ops.len() == state.log.len()
            }),
            Property::always("what was taken back stays out", |_, state: &State| {
                state.taken_back.iter().all(|op| !state.is_in_log(*op))
            }),
            Property::sometimes("helped", |_, state: &State| {
                state.log.iter().any(|filled| filled.session / 8 != filled.op)
            }),
        ]
    }
}
