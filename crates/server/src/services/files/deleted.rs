//! What was deleted, newest first: noted while entries are folded, so that nobody reads the log for a list of it. Pure.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use model::{DeviceId, NodeId, NodeRecord, RelativePath, Timestamp};

/// About how many bytes of memory a deletion takes.
const DELETION_WEIGHT: usize = 120;

/// The last node of all.
const LAST: NodeId = NodeId::from_bytes([0xff; 16]);

/// Who deleted something, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// The entry that did it.
    pub seq: u64,
    /// When that was, by the clock of whoever did it.
    pub time: Timestamp,
    /// Who did it.
    pub device: DeviceId,
    /// What that device calls itself.
    pub device_name: String,
}

/// A node that was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedNode {
    /// Its id.
    pub id: NodeId,
    /// The version that its deletion is.
    pub version: u64,
    /// What it was.
    pub record: NodeRecord,
    /// Where it was, by the names that the folders above have, or had, last.
    pub path: RelativePath,
    /// Whether a folder above it was deleted, too.
    pub is_in_deleted: bool,
    /// Who deleted it; nothing for what was deleted before the checkpoint with which the view began.
    pub deletion: Option<Arc<Deletion>>,
}

/// Where a list goes on: behind this entry and node.
pub type DeletedCursor = (u64, NodeId);

/// All nodes that are deleted.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    known: HashMap<NodeId, Option<Arc<Deletion>>>,
    order: BTreeSet<(Reverse<u64>, NodeId)>,
}

fn seq_of(deletion: Option<&Arc<Deletion>>) -> Reverse<u64> {
    Reverse(deletion.map_or(0, |deletion| deletion.seq))
}

impl Deletions {
    /// Notes that a node is deleted; one that was before stays where it is.
    pub(super) fn note(&mut self, id: NodeId, deletion: Option<&Arc<Deletion>>) {
        if self.known.contains_key(&id) {
            return;
        }
        self.order.insert((seq_of(deletion), id));
        self.known.insert(id, deletion.cloned());
    }

    /// Forgets a node that is not deleted, or not any more.
    pub(super) fn forget(&mut self, id: NodeId) {
        if let Some(deletion) = self.known.remove(&id) {
            self.order.remove(&(seq_of(deletion.as_ref()), id));
        }
    }

    /// Returns who deleted a node.
    pub(super) fn of(&self, id: &NodeId) -> Option<Arc<Deletion>> {
        self.known.get(id).cloned().flatten()
    }

    /// Returns the nodes behind a place of the list.
    pub(super) fn after(&self, cursor: Option<DeletedCursor>) -> impl Iterator<Item = NodeId> {
        let start = match cursor {
            Some((seq, id)) => std::ops::Bound::Excluded((Reverse(seq), id)),
            None => std::ops::Bound::Unbounded,
        };
        self.order.range((start, std::ops::Bound::Unbounded)).map(|(_, id)| *id)
    }

    /// Returns what an entry has deleted.
    pub(super) fn by(&self, seq: u64) -> impl Iterator<Item = NodeId> {
        let start = std::ops::Bound::Excluded((Reverse(seq.saturating_add(1)), LAST));
        let nodes = self.order.range((start, std::ops::Bound::Unbounded));
        nodes.take_while(move |(Reverse(other), _)| *other == seq).map(|(_, id)| *id)
    }

    /// Returns about how many bytes of memory it takes.
    pub(super) fn weight(&self) -> usize {
        self.known.len() * DELETION_WEIGHT
    }
}

#[cfg(test)]
mod tests {
    use model::testing::node;

    use super::*;

    fn deletion(seq: u64) -> Arc<Deletion> {
        let (time, device) = (Timestamp::default(), DeviceId::from_bytes([1; 16]));
        Arc::new(Deletion { seq, time, device, device_name: "laptop".to_owned() })
    }

    #[test]
    fn newest_comes_first_and_pages_go_on_where_the_last_one_ended() {
        let mut deletions = Deletions::default();
        deletions.note(node(9), None);
        for (number, seq) in [(1, 5), (2, 7), (3, 5)] {
            deletions.note(node(number), Some(&deletion(seq)));
        }
        deletions.note(node(1), Some(&deletion(8)));
        let all: Vec<_> = deletions.after(None).collect();
        assert_eq!(all, [node(2), node(1), node(3), node(9)]);
        assert_eq!(deletions.after(Some((5, node(1)))).next(), Some(node(3)));
        assert_eq!(deletions.after(Some((5, node(3)))).next(), Some(node(9)));
        assert_eq!(deletions.after(Some((0, node(9)))).next(), None);
        assert_eq!(deletions.by(5).collect::<Vec<_>>(), [node(1), node(3)]);
        assert_eq!(deletions.by(6).next(), None);
        deletions.forget(node(1));
        deletions.forget(node(9));
        assert_eq!(deletions.after(None).collect::<Vec<_>>(), [node(2), node(3)]);
        assert_eq!(deletions.weight(), 2 * DELETION_WEIGHT);
    }
}
