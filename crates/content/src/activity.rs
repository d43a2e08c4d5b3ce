//! What happened in a workspace, entry by entry. Pure.
//!
//! *Participants*: whoever folds a whole log notes of each version what it made of the node ([`Before`]) and reads the rest from the entry
//! when somebody asks; whoever has no more than a stretch of a plain log reads that ([`ActivityScan`]). Both call the same change by the same
//! name. *Non-goals* of the latter: knowing a node from before the stretch. What a change was is seen by what the node was before it, so a
//! reader begins some entries earlier than it tells of; where a node was changed last before that, a new name of it counts as a change like
//! any other.

use std::collections::HashMap;
use std::convert::Infallible;

use model::codec::decode_message;
use model::decide::decide;
use model::{
    Action, Change, DeviceId, Entry, Head, Name, NodeId, NodeRecord, NodeState, Outcome, Timestamp,
    Tree, Versions,
};

/// How many changes of one entry are told one by one; of the others only the number.
pub const CHANGES_SHOWN_MAX: usize = 20;

/// What became of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// It is new.
    Made,
    /// It has another content, mode or time.
    Changed,
    /// It has another name.
    Renamed,
    /// It is in another folder.
    Moved,
    /// It is gone.
    Deleted,
    /// It was gone, and is back.
    Restored,
    /// It is one side of a conflict from now on.
    KeptBeside,
    /// It is one side of a conflict no more.
    Decided,
}

/// A change that counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSeen {
    /// The node.
    pub node: NodeId,
    /// The version that the change made.
    pub version: u64,
    /// What became of it.
    pub happened: Happened,
    /// What it was called before, where it was renamed and that is known.
    pub old_name: Option<Name>,
    /// What it is; of what was deleted, what it was, where that is known.
    pub record: Option<NodeRecord>,
}

/// What one entry did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// The entry.
    pub seq: u64,
    /// When that was, by the clock of whoever did it.
    pub time: Timestamp,
    /// Who did it.
    pub device: DeviceId,
    /// What that device calls itself.
    pub device_name: String,
    /// How many changes of files, folders and links counted.
    pub count: usize,
    /// The first of them.
    pub changes: Vec<ChangeSeen>,
}

/// A node as the stretch has shown it so far.
#[derive(Debug, Clone)]
struct Known {
    version: u64,
    /// Nothing where it was not seen.
    record: Option<NodeRecord>,
    is_deleted: bool,
}

/// Finds what happened in entries, in order.
#[derive(Debug, Default)]
pub struct ActivityScan {
    known: HashMap<NodeId, Known>,
}

impl Versions for ActivityScan {
    type Error = Infallible;

    fn version(&self, node: &NodeId) -> Result<u64, Infallible> {
        Ok(self.known.get(node).map_or(0, |known| known.version))
    }
}

impl ActivityScan {
    /// Looks at the next entry; nothing where it changed no file, folder or link.
    pub fn note(&mut self, entry: &Entry) -> Option<Activity> {
        let commit = &entry.commit;
        // Whoever changes a node first in the stretch is taken at their word about its version.
        for Change { node, base, .. } in commit.changes.iter().filter(|it| !is_fence(it)) {
            let unseen = || Known { version: *base, record: None, is_deleted: false };
            self.known.entry(*node).or_insert_with(unseen);
        }
        let previous = Head { seq: entry.seq - 1, hash: entry.previous };
        let Ok(outcomes) = decide(self, &previous, commit);
        let (mut count, mut changes) = (0, Vec::new());
        for (change, outcome) in commit.changes.iter().zip(outcomes) {
            let Outcome::Accepted { version } = outcome else { continue };
            let Some(seen) = self.take(change, version) else { continue };
            count += 1;
            if changes.len() < CHANGES_SHOWN_MAX {
                changes.push(seen);
            }
        }
        (count > 0).then(|| Activity {
            seq: entry.seq,
            time: commit.time,
            device: commit.device,
            device_name: commit.device_name.clone(),
            count,
            changes,
        })
    }

    /// Takes over a change that counts; nothing where it is one of settings, or cannot be read.
    fn take(&mut self, change: &Change, version: u64) -> Option<ChangeSeen> {
        let node = change.node;
        let before = self.known.remove(&node);
        let record = match &change.action {
            Action::Put(payload) if !node.is_settings() => decode_message(payload).ok(),
            _ => None,
        };
        let is_deleted = change.action == Action::Delete;
        let old = before.as_ref().and_then(|before| before.record.clone());
        let kept = record.clone().or_else(|| old.clone());
        self.known.insert(node, Known { version, record: kept.clone(), is_deleted });
        if node.is_settings() || (record.is_none() && !is_deleted) {
            return None;
        }
        let was_deleted = before.is_some_and(|before| before.is_deleted);
        let happened = Happened::of((old.as_ref(), was_deleted), version, record.as_ref());
        let old_name = old.filter(|_| happened == Happened::Renamed).map(|old| old.name);
        Some(ChangeSeen { node, version, happened, old_name, record: kept })
    }
}

/// What the nodes that an entry changes were before it, as far as they were there: taken before the entry is folded.
#[derive(Debug)]
pub(crate) struct Before(HashMap<NodeId, (NodeRecord, bool)>);

impl Before {
    pub(crate) fn of(tree: &Tree, entry: &Entry) -> Self {
        let mut before = HashMap::new();
        for Change { node, base, action } in &entry.commit.changes {
            // Of what is deleted or new nothing need be known; and a hostile entry that names one node often keeps it once.
            let is_put = matches!(action, Action::Put(_)) && *base > 0 && !node.is_settings();
            let found = tree.get(node).filter(|found| is_put && found.version == *base);
            let Some(found) = found else { continue };
            before
                .entry(*node)
                .or_insert_with(|| (found.record.clone(), found.state == NodeState::Deleted));
        }
        Self(before)
    }

    /// Says what a change has made of its node, now that the entry is folded.
    pub(crate) fn happened(
        &self,
        node: &NodeId,
        version: u64,
        now: Option<&NodeRecord>,
    ) -> Happened {
        let before = self.0.get(node);
        let old = before.map(|(record, _)| record);
        Happened::of((old, before.is_some_and(|(_, is_deleted)| *is_deleted)), version, now)
    }
}

fn is_fence(change: &Change) -> bool {
    change.node == NodeId::FENCE
}

impl Happened {
    /// Returns the word by which servers and pages call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Changed => "changed",
            Self::Renamed => "renamed",
            Self::Moved => "moved",
            Self::Deleted => "deleted",
            Self::Restored => "restored",
            Self::KeptBeside => "kept_beside",
            Self::Decided => "decided",
        }
    }

    /// Names what a version is, by what the node was before and is now; `now` is nothing where it was deleted.
    fn of(
        (old, was_deleted): (Option<&NodeRecord>, bool),
        version: u64,
        now: Option<&NodeRecord>,
    ) -> Self {
        match now {
            None => Self::Deleted,
            Some(_) if was_deleted => Self::Restored,
            Some(record) if version == 1 => first_of(record),
            Some(record) => old.map_or(Self::Changed, |old| between(old, record)),
        }
    }
}

fn first_of(record: &NodeRecord) -> Happened {
    match record.conflict {
        Some(_) => Happened::KeptBeside,
        None => Happened::Made,
    }
}

/// Says what makes the difference between two versions.
fn between(old: &NodeRecord, new: &NodeRecord) -> Happened {
    match (old.conflict, new.conflict) {
        (None, Some(_)) => return Happened::KeptBeside,
        (Some(_), None) => return Happened::Decided,
        _ => {}
    }
    if !old.is_same_matter(new) || old.is_same_place(new) {
        return Happened::Changed;
    }
    match old.parent == new.parent {
        true => Happened::Renamed,
        false => Happened::Moved,
    }
}

#[cfg(test)]
mod tests;
