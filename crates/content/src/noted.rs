//! Nodes of which something is noted while entries are folded, newest first: what was deleted, and what is in a conflict. So nobody
//! reads the log for a list of them. Pure.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use model::{DeviceId, Entry, NodeId, Timestamp};

/// About how many bytes of memory a noted node takes.
const NOTE_WEIGHT: usize = 120;

/// The last node of all.
const LAST: NodeId = NodeId::from_bytes([0xff; 16]);

/// Who did something, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    /// The entry that did it.
    pub seq: u64,
    /// When that was, by the clock of whoever did it.
    pub time: Timestamp,
    /// Who did it.
    pub device: DeviceId,
    /// What that device calls itself.
    pub device_name: String,
}

impl Deed {
    /// Says that an entry did it; `header` is how its device calls itself, and its clock.
    pub fn of(entry: &Entry, header: (String, Timestamp)) -> Self {
        let (device_name, time) = header;
        Self { seq: entry.seq, time, device: entry.commit.device, device_name }
    }
}

/// Where a list goes on: behind this entry and node.
pub type NoteCursor = (u64, NodeId);

/// All nodes of which one thing is noted.
#[derive(Debug, Default)]
pub struct NotedNodes {
    known: HashMap<NodeId, Option<Arc<Deed>>>,
    order: BTreeSet<(Reverse<u64>, NodeId)>,
}

fn seq_of(deed: Option<&Arc<Deed>>) -> Reverse<u64> {
    Reverse(deed.map_or(0, |deed| deed.seq))
}

impl NotedNodes {
    /// Notes a node; one that was noted before stays where it is.
    pub fn note(&mut self, id: NodeId, deed: Option<&Arc<Deed>>) {
        if self.known.contains_key(&id) {
            return;
        }
        self.order.insert((seq_of(deed), id));
        self.known.insert(id, deed.cloned());
    }

    /// Notes a node of which it is so, and forgets one of which it is not. Who did it is asked where it is new.
    pub fn follow(&mut self, id: NodeId, is_so: bool, deed: impl FnOnce() -> Arc<Deed>) {
        if !is_so {
            self.forget(id);
        } else if !self.known.contains_key(&id) {
            self.note(id, Some(&deed()));
        }
    }

    /// Forgets a node of which it is not so, or not any more.
    pub fn forget(&mut self, id: NodeId) {
        if let Some(deed) = self.known.remove(&id) {
            self.order.remove(&(seq_of(deed.as_ref()), id));
        }
    }

    /// Returns who did it to a node.
    pub fn of(&self, id: &NodeId) -> Option<Arc<Deed>> {
        self.known.get(id).cloned().flatten()
    }

    /// Returns the nodes behind a place of the list.
    pub fn after(&self, cursor: Option<NoteCursor>) -> impl Iterator<Item = NodeId> {
        let start = match cursor {
            Some((seq, id)) => std::ops::Bound::Excluded((Reverse(seq), id)),
            None => std::ops::Bound::Unbounded,
        };
        self.order.range((start, std::ops::Bound::Unbounded)).map(|(_, id)| *id)
    }

    /// Returns the nodes to which an entry did it.
    pub fn by(&self, seq: u64) -> impl Iterator<Item = NodeId> {
        let start = std::ops::Bound::Excluded((Reverse(seq.saturating_add(1)), LAST));
        let nodes = self.order.range((start, std::ops::Bound::Unbounded));
        nodes.take_while(move |(Reverse(other), _)| *other == seq).map(|(_, id)| *id)
    }

    /// Returns about how many bytes of memory it takes.
    pub fn weight(&self) -> usize {
        self.known.len() * NOTE_WEIGHT
    }
}

#[cfg(test)]
mod tests {
    use model::testing::node;

    use super::*;

    fn deed(seq: u64) -> Arc<Deed> {
        let (time, device) = (Timestamp::default(), DeviceId::from_bytes([1; 16]));
        Arc::new(Deed { seq, time, device, device_name: "laptop".to_owned() })
    }

    #[test]
    fn newest_comes_first_and_pages_go_on_where_the_last_one_ended() {
        let mut noted = NotedNodes::default();
        noted.note(node(9), None);
        for (number, seq) in [(1, 5), (2, 7), (3, 5)] {
            noted.note(node(number), Some(&deed(seq)));
        }
        noted.note(node(1), Some(&deed(8)));
        let all: Vec<_> = noted.after(None).collect();
        assert_eq!(all, [node(2), node(1), node(3), node(9)]);
        assert_eq!(noted.after(Some((5, node(1)))).next(), Some(node(3)));
        assert_eq!(noted.after(Some((5, node(3)))).next(), Some(node(9)));
        assert_eq!(noted.after(Some((0, node(9)))).next(), None);
        assert_eq!(noted.by(5).collect::<Vec<_>>(), [node(1), node(3)]);
        assert_eq!(noted.by(6).next(), None);
        noted.forget(node(1));
        noted.forget(node(9));
        assert_eq!(noted.after(None).collect::<Vec<_>>(), [node(2), node(3)]);
        assert_eq!(noted.weight(), 2 * NOTE_WEIGHT);
    }
}
