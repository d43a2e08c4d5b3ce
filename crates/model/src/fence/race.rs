//! Every interleaving of two writers and a cleaner, with the real rule; and with rules that are wrong, each of which must be found.
//!
//! There is one chunk. It rests in a pack that the log names, and the only file with it was deleted. Each writer wants a
//! file with this chunk: if its index has the chunk it uploads nothing, else it stores a pack. The cleaner condemns what no
//! living file needs, packs that nobody names included, and then removes it, at most twice. Any step may be delayed as
//! long as it likes. What must hold in every state: a chunk of a living file is in a stored pack that whoever folds the log
//! knows of.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::convert::Infallible;

use super::*;
use crate::commit::{Action, Change, Commit, Head};
use crate::decide::{Outcome, Versions, decide};
use crate::ids::EntryHash;
use crate::testing::{commit, node};

/// A pack with the chunk: all that makes its name is the last fence that its writer knew.
type Pack = u8;

/// How often the cleaner proposes a fence.
const FENCES: u8 = 2;

/// What is wrong with the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutant {
    /// Nobody asks whether a writer has seen the fence.
    AcceptsWhoHasNotSeen,
    /// A fence is accepted although something came before it that its author has not seen.
    AcceptsLateFence,
    /// Packs are named by their chunks alone.
    NamesComeBack,
    /// A writer that folds a fence goes on with what it had prepared.
    KeepsWhatWasPrepared,
    /// Packs of a commit that counts for nothing are taken for stored.
    TrustsPacksOfFenced,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Entry {
    Write { writer: u8, packs: Vec<Pack>, is_fenced: bool },
    Fence { condemned: Vec<Pack>, is_accepted: bool },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    /// The chunk is known to be stored, or was stored in these packs.
    Prepared(Vec<Pack>),
    /// The commit is on its way, and says that so many entries were seen.
    Sent {
        packs: Vec<Pack>,
        seen: u8,
    },
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Writer {
    folded: u8,
    phase: Phase,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    log: Vec<Entry>,
    store: BTreeSet<Pack>,
    writers: [Writer; 2],
    /// The fence that is on its way: what it condemns, and how many entries its author has seen.
    fence: Option<(Vec<Pack>, u8)>,
    to_remove: Vec<Pack>,
    fences: u8,
}

struct Known<'a>(&'a [Entry]);

impl Versions for Known<'_> {
    type Error = Infallible;

    fn version(&self, id: &NodeId) -> Result<u64, Infallible> {
        Ok(match *id {
            NodeId::FENCE => u64::from(last_fence(self.0)),
            _ => 0,
        })
    }
}

/// Returns the number of the last accepted fence.
fn last_fence(log: &[Entry]) -> u8 {
    let is_fence = |entry: &Entry| matches!(entry, Entry::Fence { is_accepted: true, .. });
    log.iter().rposition(is_fence).map_or(0, |index| index as u8 + 1)
}

fn head(seq: u8) -> Head {
    Head { seq: u64::from(seq), hash: EntryHash::from_bytes([seq; 32]) }
}

/// Asks the real rule.
fn decided(log: &[Entry], seen: u8, change: NodeId) -> Outcome {
    let change = Change { node: change, base: 0, action: Action::Put(Vec::new()) };
    let commit = Commit { seen: head(seen), ..commit(1, vec![change]) };
    let Ok(outcomes) = decide(&Known(log), &head(log.len() as u8), &commit);
    outcomes[0]
}

/// Returns the packs in which whoever has folded these entries finds the chunk.
fn index(log: &[Entry], mutant: Option<Mutant>) -> BTreeSet<Pack> {
    let mut packs = BTreeSet::from([0]);
    for entry in log {
        match entry {
            Entry::Write { packs: new, is_fenced, .. } => {
                if !is_fenced || mutant == Some(Mutant::TrustsPacksOfFenced) {
                    packs.extend(new);
                }
            }
            Entry::Fence { condemned, is_accepted: true } => {
                packs.retain(|pack| !condemned.contains(pack));
            }
            Entry::Fence { .. } => {}
        }
    }
    packs
}

impl State {
    fn first() -> Self {
        let writer = Writer { folded: 0, phase: Phase::Idle };
        Self {
            log: Vec::new(),
            store: BTreeSet::from([0]),
            writers: [writer.clone(), writer],
            fence: None,
            to_remove: Vec::new(),
            fences: 0,
        }
    }

    fn has_living_file(&self) -> bool {
        self.log.iter().any(|entry| matches!(entry, Entry::Write { is_fenced: false, .. }))
    }

    fn is_sound(&self, mutant: Option<Mutant>) -> bool {
        let index = index(&self.log, mutant);
        // Whoever reads goes by the index alone, and takes any of the packs.
        !self.has_living_file() || (!index.is_empty() && index.is_subset(&self.store))
    }

    fn nexts(&self, mutant: Option<Mutant>) -> Vec<Self> {
        let mut nexts = Vec::new();
        for number in 0..2 {
            nexts.extend(self.writer_steps(number, mutant));
        }
        nexts.extend(self.cleaner_steps(mutant));
        nexts
    }

    fn writer_steps(&self, number: usize, mutant: Option<Mutant>) -> Vec<Self> {
        let writer = &self.writers[number];
        let mut nexts = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut next = self.clone();
            change(&mut next);
            nexts.push(next);
        };
        if usize::from(writer.folded) < self.log.len() {
            with(&|next| next.fold(number, mutant));
        }
        let folded = &self.log[..usize::from(writer.folded)];
        match &writer.phase {
            Phase::Idle if index(folded, mutant).is_empty() => with(&|next| {
                let salt =
                    if mutant == Some(Mutant::NamesComeBack) { 0 } else { last_fence(folded) };
                next.store.insert(salt);
                next.writers[number].phase = Phase::Prepared(vec![salt]);
            }),
            Phase::Idle => with(&|next| next.writers[number].phase = Phase::Prepared(Vec::new())),
            Phase::Prepared(packs) => with(&|next| {
                let (packs, seen) = (packs.clone(), writer.folded);
                next.writers[number].phase = Phase::Sent { packs, seen };
            }),
            Phase::Sent { packs, seen } => {
                let is_there = self.log.iter().any(|entry| {
                    matches!(entry, Entry::Write { writer, .. } if usize::from(*writer) == number)
                        && self.is_pending(number)
                });
                if !is_there {
                    with(&|next| {
                        let seen = match mutant {
                            Some(Mutant::AcceptsWhoHasNotSeen) => next.log.len() as u8,
                            _ => *seen,
                        };
                        let outcome = decided(&next.log, seen, node(number as u8 + 1));
                        let is_fenced = matches!(outcome, Outcome::Fenced { .. });
                        let (writer, packs) = (number as u8, packs.clone());
                        next.log.push(Entry::Write { writer, packs, is_fenced });
                    });
                }
            }
            Phase::Done => {}
        }
        nexts
    }

    /// Tells whether an entry of the writer stands in the log that it has not folded.
    fn is_pending(&self, number: usize) -> bool {
        let unseen = &self.log[usize::from(self.writers[number].folded)..];
        unseen.iter().any(
            |entry| matches!(entry, Entry::Write { writer, .. } if usize::from(*writer) == number),
        )
    }

    fn fold(&mut self, number: usize, mutant: Option<Mutant>) {
        let writer = &mut self.writers[number];
        let entry = &self.log[usize::from(writer.folded)];
        writer.folded += 1;
        match entry {
            Entry::Write { writer: author, is_fenced, .. } if usize::from(*author) == number => {
                writer.phase = if *is_fenced { Phase::Idle } else { Phase::Done };
            }
            Entry::Fence { is_accepted: true, .. }
                if matches!(writer.phase, Phase::Prepared(_))
                    && mutant != Some(Mutant::KeepsWhatWasPrepared) =>
            {
                writer.phase = Phase::Idle;
            }
            _ => {}
        }
    }

    fn cleaner_steps(&self, mutant: Option<Mutant>) -> Vec<Self> {
        let mut nexts = Vec::new();
        for pack in &self.to_remove {
            let mut next = self.clone();
            next.store.remove(pack);
            next.to_remove.retain(|other| other != pack);
            nexts.push(next);
        }
        match &self.fence {
            None if self.fences < FENCES => {
                let mut condemned = self.store.clone();
                let known = index(&self.log, mutant);
                condemned.extend(&known);
                if self.has_living_file() {
                    condemned.retain(|pack| !known.contains(pack));
                }
                let mut next = self.clone();
                next.fence = Some((condemned.into_iter().collect(), self.log.len() as u8));
                next.fences += 1;
                nexts.push(next);
            }
            None => {}
            Some((condemned, seen)) => {
                let mut next = self.clone();
                let seen = match mutant {
                    Some(Mutant::AcceptsLateFence) => self.log.len() as u8,
                    _ => *seen,
                };
                let outcome = decided(&self.log, seen, NodeId::FENCE);
                let is_accepted = outcome.is_accepted();
                next.log.push(Entry::Fence { condemned: condemned.clone(), is_accepted });
                next.fence = None;
                if is_accepted {
                    next.to_remove.extend(condemned);
                }
                nexts.push(next);
            }
        }
        nexts
    }
}

/// What was found in all states that can be reached.
#[derive(Debug, Default)]
struct Found {
    states: usize,
    unsound: Option<State>,
    events: BTreeMap<&'static str, usize>,
}

fn explore(mutant: Option<Mutant>) -> Found {
    let mut found = Found::default();
    let mut seen = HashSet::from([State::first()]);
    let mut open = vec![State::first()];
    while let Some(state) = open.pop() {
        found.states += 1;
        if !state.is_sound(mutant) {
            found.unsound = Some(state);
            return found;
        }
        let mut note = |event| *found.events.entry(event).or_default() += 1;
        let fences = state.log.iter().filter(|it| matches!(it, Entry::Fence { .. }));
        let late = fences.filter(|it| matches!(it, Entry::Fence { is_accepted: false, .. }));
        if late.count() > 0 {
            note("a fence was overtaken");
        }
        if state.log.iter().any(|it| matches!(it, Entry::Write { is_fenced: true, .. })) {
            note("a writer came behind the fence");
        }
        if state.writers.iter().all(|writer| writer.phase == Phase::Done) {
            note("both have written");
        }
        if !state.store.contains(&0) {
            note("the first pack is gone");
        }
        for next in state.nexts(mutant) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}

#[test]
fn no_interleaving_loses_a_chunk() {
    let found = explore(None);
    assert!(found.unsound.is_none(), "{:?}", found.unsound);
    assert!(found.states > 10_000, "{} states", found.states);
    for event in [
        "a fence was overtaken",
        "a writer came behind the fence",
        "both have written",
        "the first pack is gone",
    ] {
        assert!(found.events.contains_key(event), "never: {event}");
    }
}

#[test]
fn every_wrong_rule_loses_a_chunk() {
    for mutant in [
        Mutant::AcceptsWhoHasNotSeen,
        Mutant::AcceptsLateFence,
        Mutant::NamesComeBack,
        Mutant::KeepsWhatWasPrepared,
        Mutant::TrustsPacksOfFenced,
    ] {
        let found = explore(Some(mutant));
        assert!(found.unsound.is_some(), "{mutant:?} was not found in {} states", found.states);
    }
}
