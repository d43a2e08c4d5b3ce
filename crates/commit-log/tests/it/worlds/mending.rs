//! Objects that are damaged, and whoever writes them anew.
//!
//! A damaged object is there and cannot be read: a put finds its place taken, and for whoever reads it its store has failed. Whoever
//! mends writes anew what it has seen to be damaged, at any time, also when the object has long been whole again: the damage was
//! on its way only, another one was faster, or the put is late.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash};

use commit_log::serverless::rounds::{Message, Request};

use super::slot::{State, World};
use super::truth::Proposal;

/// What is written in the place of a damaged object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mending {
    /// Nothing.
    Nobody,
    /// What somebody was told to be decided, in one step. This is the rule.
    Decided,
    /// The same, but first the object is removed.
    InTwoSteps,
    /// As decided, what any one store has voted for.
    VoteOfOne,
    /// As decided, what any one store has accepted, in whatever round.
    AcceptOfOne,
    /// In the place of a promise, something that says nothing, where nothing is known to be decided.
    Blank,
}

/// What is damaged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Damage {
    /// How many objects may still be.
    left: u8,
    /// Objects that nobody can read, by store and place.
    hidden: BTreeSet<(usize, usize)>,
    /// Objects that whoever mends has seen to be damaged, and may write anew from now on.
    seen: BTreeSet<(usize, usize)>,
}

impl Damage {
    /// Nothing yet, and so many objects in the end.
    pub(crate) fn at_most(left: u8) -> Self {
        Self { left, ..Self::default() }
    }

    /// Tells whether an object cannot be read.
    pub(crate) fn hides(&self, store: usize, place: usize) -> bool {
        self.hidden.contains(&(store, place))
    }

    /// Tells whether a store has an object that cannot be read.
    pub(crate) fn is_of(&self, store: usize) -> bool {
        self.hidden.iter().any(|(of, _)| *of == store)
    }

    /// Damages an object, for everybody or only for whoever mends.
    pub(crate) fn strike(&mut self, store: usize, place: usize, is_for_good: bool) {
        self.left -= 1;
        self.seen.insert((store, place));
        if is_for_good {
            self.hidden.insert((store, place));
        }
    }

    /// Numbers the stores anew.
    pub(crate) fn renumbered(&self, order: &[usize]) -> Self {
        let place_of = |store: usize| order.iter().position(|old| *old == store).unwrap_or(0);
        let all = |of: &BTreeSet<(usize, usize)>| {
            of.iter().map(|(store, place)| (place_of(*store), *place)).collect()
        };
        Self { left: self.left, hidden: all(&self.hidden), seen: all(&self.seen) }
    }

    /// Adds what is damaged at a store to what tells it from others.
    pub(crate) fn hash_of(&self, store: usize, hasher: &mut DefaultHasher) {
        for (objects, kind) in [(&self.hidden, 0_u8), (&self.seen, 1)] {
            for (_, place) in objects.iter().filter(|(of, _)| *of == store) {
                (kind, place).hash(hasher);
            }
        }
    }
}

/// What happens to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It is damaged, for everybody or only for whoever mends.
    Damage(usize, usize, bool),
    /// Somebody writes it anew.
    Mend(usize, usize, Message<Proposal>),
    /// Somebody puts what is decided where a store has lost it, unless something is there.
    Fill(Request<Proposal>),
}

impl World {
    /// Everything that may happen to objects now.
    pub(crate) fn deeds(&self, state: &State) -> Vec<Deed> {
        let mut deeds = self.damages(state);
        deeds.extend(self.mends(state));
        deeds.extend(self.fills(state));
        deeds
    }

    /// Lets it happen.
    pub(crate) fn carry_out(&self, state: &mut State, deed: Deed) {
        match deed {
            Deed::Damage(store, place, is_for_good) => {
                state.damage.strike(store, place, is_for_good);
            }
            Deed::Mend(store, place, message) => self.mend(state, store, place, message),
            Deed::Fill(request) => drop(self.perform(state, &request)),
        }
        self.note_decided(state);
    }

    /// Every object that may be damaged now: not at two stores at a time.
    fn damages(&self, state: &State) -> Vec<Deed> {
        let mut actions = Vec::new();
        if state.damage.left == 0 {
            return actions;
        }
        for (store, list) in state.lists.iter().enumerate() {
            let is_elsewhere = state.damage.hidden.iter().any(|(of, _)| *of != store);
            for place in (0..list.len()).filter(|place| list[*place].is_some()) {
                if !state.damage.seen.contains(&(store, place)) {
                    actions.push(Deed::Damage(store, place, false));
                    if !is_elsewhere {
                        actions.push(Deed::Damage(store, place, true));
                    }
                }
            }
        }
        actions
    }

    /// Everything that whoever mends may write now.
    fn mends(&self, state: &State) -> Vec<Deed> {
        let values: BTreeSet<Proposal> = match self.mending {
            Mending::Nobody => return Vec::new(),
            Mending::Decided | Mending::InTwoSteps | Mending::Blank => state.told.clone(),
            Mending::VoteOfOne => shown(state, |message| match message {
                Message::Vote(value) => Some(*value),
                _ => None,
            }),
            Mending::AcceptOfOne => shown(state, |message| match message {
                Message::Accept(_, value) => Some(*value),
                _ => None,
            }),
        };
        let message = |value: &Proposal| match self.quorums.stores {
            // A group of one has the entry itself.
            1 => Message::Vote(*value),
            _ => Message::Decided(*value),
        };
        let mut messages: Vec<_> = values.iter().map(message).collect();
        if self.mending == Mending::Blank && messages.is_empty() {
            messages.push(Message::Noise);
        }
        let mend = |(store, place): &(usize, usize)| {
            let (store, place) = (*store, *place);
            let is_new = |message: &&Message<Proposal>| {
                state.damage.hides(store, place)
                    || state.lists[store][place].as_ref() != Some(*message)
            };
            let is_promise = matches!(state.lists[store][place], Some(Message::Prepare(_)));
            let may_be_made_up =
                |message: &&Message<Proposal>| **message != Message::Noise || is_promise;
            let new = messages.iter().filter(is_new).filter(may_be_made_up);
            let new: Vec<_> = new.cloned().collect();
            new.into_iter().map(move |message| Deed::Mend(store, place, message))
        };
        state.damage.seen.iter().flat_map(mend).collect()
    }

    /// Every store that has gone back, and can be given again what is decided.
    fn fills(&self, state: &State) -> Vec<Deed> {
        if self.mending != Mending::Decided || state.rollbacks == self.rollbacks {
            return Vec::new();
        }
        let mut fills = Vec::new();
        for (store, list) in state.lists.iter().enumerate() {
            for value in &state.told {
                let put = Some(Message::Decided(*value));
                if !list.contains(&put) {
                    fills.push(Deed::Fill(Request { store, place: list.len(), put }));
                }
            }
        }
        fills
    }

    /// Writes an object anew.
    fn mend(&self, state: &mut State, store: usize, place: usize, message: Message<Proposal>) {
        let is_there = state.lists[store][place].is_some();
        let is_removed = self.mending == Mending::InTwoSteps && is_there;
        state.lists[store][place] = (!is_removed).then_some(message);
        state.damage.hidden.remove(&(store, place));
    }
}

/// The values that any store shows in messages of a kind.
fn shown(
    state: &State,
    value: impl Fn(&Message<Proposal>) -> Option<Proposal>,
) -> BTreeSet<Proposal> {
    let mut values = BTreeSet::new();
    for (store, list) in state.lists.iter().enumerate() {
        for (place, message) in list.iter().enumerate() {
            if !state.damage.hides(store, place) {
                values.extend(message.as_ref().and_then(&value));
            }
        }
    }
    values
}
