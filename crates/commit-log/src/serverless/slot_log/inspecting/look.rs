//! What the stores hold for one slot, and what is wrong with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use model::EntryHash;
use storage::ObjectKey;

use super::{Flaw, Slots, Work};
use crate::envelope::is_whole_at_rest;
use crate::serverless::candidate::{Candidate, Context};
use crate::serverless::group::{Group, NamedStore};
use crate::serverless::rounds::verdict::{Known, Verdict, settled, verdict};
use crate::serverless::rounds::{Message, Rules, replay};

/// The longest list that anybody reads.
const PLACES_MAX: u32 = 4096;

/// What stands at one place.
#[derive(Debug)]
enum Found {
    Read(Message<Candidate>),
    /// Its bytes are not those that were written.
    Damaged,
    /// They are, and say nothing that belongs here; a newer program may have written them.
    Strange,
}

impl Found {
    fn message(&self) -> Option<&Message<Candidate>> {
        match self {
            Self::Read(message) => Some(message),
            Self::Damaged | Self::Strange => None,
        }
    }
}

/// What one store holds for a slot.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// The list by places.
    places: BTreeMap<u32, Found>,
    /// Wishes that cannot be read.
    pub(super) damaged_wishes: Vec<ObjectKey>,
    /// Whether the store has answered everything.
    is_seen: bool,
}

/// A slot, and what its stores hold.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) slot: u64,
    pub(super) group: Arc<Group>,
    pub(super) is_settled: bool,
    pub(super) shelves: Vec<Shelf>,
    /// What fills the slot, where the stores prove it.
    pub(super) decided: Option<Candidate>,
}

impl Shelf {
    fn known(&self) -> Known<Candidate> {
        let list: Vec<_> = (0..).map_while(|place| self.places.get(&place)?.message()).collect();
        Known {
            acceptor: replay(list.iter().copied(), Rules::default()),
            is_vote_final: !list.is_empty(),
            is_whole: self.is_seen && list.len() == self.places.len(),
        }
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &Message<Candidate>> {
        self.places.values().filter_map(Found::message)
    }

    fn holds_decision(&self) -> bool {
        self.messages().any(|message| matches!(message, Message::Decided(_)))
    }

    /// The place behind the last one.
    fn end(&self) -> u32 {
        self.places.keys().next_back().map_or(0, |last| last + 1)
    }
}

fn entry_of(message: &Message<Candidate>) -> Option<EntryHash> {
    match message {
        Message::Vote(candidate) | Message::Accept(_, candidate) | Message::Decided(candidate) => {
            Some(candidate.entry().hash())
        }
        Message::Prepare(_) | Message::Noise => None,
    }
}

impl Look {
    /// Returns the objects that are not what they should be: store, key and flaw. All up to `folded` are filled.
    pub(super) fn flaws(&self, folded: u64) -> impl Iterator<Item = (usize, ObjectKey, Flaw)> + '_ {
        let is_filled = self.decided.is_some() || self.slot <= folded;
        let of_shelf = move |(store, shelf): (usize, &'_ Shelf)| {
            let mut flaws: Vec<(usize, ObjectKey, Flaw)> = Vec::new();
            if !shelf.is_seen {
                return flaws;
            }
            let mut note = |place, flaw| {
                flaws.push((store, ObjectKey::log_slot(self.slot, place), flaw));
            };
            for place in 0..shelf.end() {
                match shelf.places.get(&place) {
                    None => note(place, Flaw::Missing),
                    Some(Found::Damaged) => note(place, Flaw::Damaged),
                    Some(Found::Strange) => note(place, Flaw::Contradicts),
                    Some(Found::Read(message)) if self.is_contradiction(message) => {
                        note(place, Flaw::Contradicts);
                    }
                    Some(Found::Read(_)) => {}
                }
            }
            let is_told = match self.is_settled {
                true => shelf.messages().count() < shelf.places.len() || shelf.holds_decision(),
                false => shelf.end() > 0,
            };
            if is_filled && !is_told {
                note(shelf.end(), Flaw::Missing);
            }
            let wishes = shelf.damaged_wishes.iter();
            flaws.extend(wishes.map(|key| (store, key.clone(), Flaw::Damaged)));
            flaws
        };
        self.shelves.iter().enumerate().flat_map(of_shelf)
    }

    /// Votes and accepts may be for what was not decided. A decision, and the only object of a group of one, may not.
    fn is_contradiction(&self, message: &Message<Candidate>) -> bool {
        let Some(decided) = &self.decided else { return false };
        let is_final = matches!(message, Message::Decided(_));
        is_final && entry_of(message) != Some(decided.entry().hash())
    }

    /// Tells whether what can be read here may come from an agreement on this entry.
    pub(super) fn fits(&self, candidate: &Candidate) -> bool {
        let mut entries = self.shelves.iter().flat_map(Shelf::messages).filter_map(entry_of);
        let first = entries.next();
        let hash = candidate.entry().hash();
        first.is_none() || first == Some(hash) || entries.any(|entry| entry == hash)
    }

    /// Forgets entries that nobody asks for again.
    pub(super) fn without_messages_of_others(mut self) -> Self {
        if self.decided.is_some() {
            for found in self.shelves.iter_mut().flat_map(|shelf| shelf.places.values_mut()) {
                if found.message().is_some_and(|message| !matches!(message, Message::Decided(_))) {
                    *found = Found::Read(Message::Noise);
                }
            }
        }
        self
    }
}

impl Work<'_> {
    /// Reads what the stores hold for a slot. Returns nothing where it is not known which stores answer for it.
    pub(super) async fn look(&self, slot: u64) -> Option<Look> {
        let (group, is_settled) = self.slots.readers_group(slot).ok()?;
        let shelves = group.stores().iter().map(|store| self.shelf(slot, &group, store));
        let shelves = join_all(shelves).await;
        let known: Vec<Known<Candidate>> = shelves.iter().map(Shelf::known).collect();
        let found = match is_settled {
            true => settled(group.quorums(), &known),
            false => verdict(group.quorums(), &known),
        };
        let decided = match found {
            Verdict::Decided(candidate) => Some(candidate),
            Verdict::Undecided | Verdict::Open => None,
        };
        Some(Look { slot, group, is_settled, shelves, decided })
    }

    async fn shelf(&self, slot: u64, group: &Group, store: &NamedStore) -> Shelf {
        let mut shelf = Shelf::default();
        let Some(listed) = self.listed.get(&store.name) else { return shelf };
        let context = context(self.slots, group, slot);
        for key in listed.get(&slot).into_iter().flatten() {
            let place = key.as_log_slot().map(|(_, place)| place);
            if place.is_some_and(|place| place >= PLACES_MAX) {
                continue;
            }
            let Some(found) = self.get(store, key).await else { return shelf };
            let Some(bytes) = found else { continue };
            let found = match is_whole_at_rest(&bytes) {
                true => context.decode(&bytes).map_or(Found::Strange, Found::Read),
                false => Found::Damaged,
            };
            match (place, found) {
                (Some(place), found) => drop(shelf.places.insert(place, found)),
                (None, Found::Damaged) => shelf.damaged_wishes.push(key.clone()),
                (None, _) => {}
            }
        }
        shelf.is_seen = true;
        shelf
    }
}

/// How the messages of a slot are written in a group.
pub(super) fn context<'a>(slots: &Slots, group: &'a Group, slot: u64) -> Context<'a> {
    Context {
        workspace: slots.genesis.workspace(),
        slot,
        certifier: group.certifier(),
        is_single: group.is_single(),
    }
}
