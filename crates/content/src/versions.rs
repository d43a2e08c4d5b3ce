//! The versions of what lies in a workspace, as its log shows them, for whoever keeps no log. Pure.
//!
//! *Participants*: whoever folds a whole log, and fetches entries of it again. *Goals*: of each version is known in which entry it stands, in
//! so few bytes that this is kept of all of them; what it was is read from that entry. *Non-goals*: which versions are kept, which the model's
//! policy says. *Invariants*: an entry is the one that was folded, by its hash; what a cleanup has removed is told.

use std::collections::{HashMap, HashSet};

use model::fold::{FoldNote, Folded};
use model::{Action, DeviceId, Entry, NodeId, NodeRecord, Outcome, Timestamp, Tree};

use crate::activity::{Before, Happened};

/// A version of a node, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionPlace {
    /// Its number.
    pub version: u64,
    /// The entry that brought it.
    pub seq: u64,
    /// Which change of that entry.
    pub change: u32,
    /// What it made of the node.
    pub happened: Happened,
    /// Whether the node was deleted.
    pub is_deletion: bool,
    /// Whether a cleanup has removed its content.
    pub is_dropped: bool,
}

/// What a version was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundVersion {
    /// Where it stands.
    pub place: VersionPlace,
    /// When it was proposed, by the clock of whoever did it.
    pub time: Timestamp,
    /// Who did it.
    pub device: DeviceId,
    /// What that device calls itself.
    pub device_name: String,
    /// What the node was; nothing where it was deleted.
    pub record: Option<NodeRecord>,
}

/// The versions of all nodes up to one entry of the log, noted while that is folded from its beginning.
#[derive(Debug, Default)]
pub struct Versions {
    places: HashMap<NodeId, Vec<VersionPlace>>,
}

impl Versions {
    /// Notes what the next entry has brought, which is folded into `tree`. What nobody can read is no version for whoever looks.
    pub(crate) fn note(&mut self, tree: &Tree, entry: &Entry, folded: &Folded, before: &Before) {
        let unread = folded.notes.iter().filter(|note| matches!(note, FoldNote::Unreadable { .. }));
        let unread: HashSet<NodeId> = unread.map(FoldNote::node).collect();
        let changes = (0..).zip(&entry.commit.changes).zip(&folded.outcomes);
        for ((number, change), outcome) in changes {
            let Outcome::Accepted { version } = *outcome else { continue };
            let is_void = folded.void.is_some() || unread.contains(&change.node);
            if is_void || change.node.is_settings() {
                continue;
            }
            let is_deletion = change.action == Action::Delete;
            let now = tree.get(&change.node).filter(|_| !is_deletion).map(|node| &node.record);
            let happened = before.happened(&change.node, version, now);
            // Most nodes have one version for ever.
            let places = self.places.entry(change.node).or_insert_with(|| Vec::with_capacity(1));
            // What changes twice in an entry is seen as it is at its end.
            if places.last().is_some_and(|last| last.seq == entry.seq) {
                places.pop();
            }
            places.push(VersionPlace {
                version,
                seq: entry.seq,
                change: number,
                happened,
                is_deletion,
                is_dropped: false,
            });
        }
        for gone in folded.fence.iter().flat_map(|fence| &fence.dropped) {
            for place in self.places.get_mut(&gone.node).into_iter().flatten() {
                place.is_dropped |= gone.versions.binary_search(&place.version).is_ok();
            }
        }
    }

    /// Returns the versions of a node, the oldest first.
    pub fn of(&self, node: &NodeId) -> &[VersionPlace] {
        self.places.get(node).map_or(&[], Vec::as_slice)
    }

    /// Returns the version of a node that an entry has brought, and the one before it.
    pub fn brought(&self, node: &NodeId, seq: u64) -> Option<(VersionPlace, Option<VersionPlace>)> {
        let places = self.of(node);
        let at = places.binary_search_by_key(&seq, |place| place.seq).ok()?;
        let before = at.checked_sub(1).map(|before| places[before]);
        Some((places[at], before))
    }

    /// Tells whether a cleanup has removed the content that a node had last.
    pub fn is_dropped(&self, node: &NodeId) -> bool {
        let last = self.of(node).iter().rfind(|place| !place.is_deletion);
        last.is_some_and(|place| place.is_dropped)
    }
}

#[cfg(test)]
mod tests;
