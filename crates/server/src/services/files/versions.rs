//! The versions of one node, read from the log.

use std::convert::Infallible;

use model::codec::decode_message;
use model::decide::decide;
use model::{Action, DeviceId, Entry, Head, NodeId, NodeRecord, Outcome, Timestamp, Versions};

/// One version of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its number.
    pub version: u64,
    /// The entry that made it.
    pub seq: u64,
    /// When that was, by the clock of whoever did it.
    pub time: Timestamp,
    /// Who did it.
    pub device: DeviceId,
    /// What that device calls itself.
    pub device_name: String,
    /// What the node was; nothing where it was deleted, or where nobody can read it.
    pub record: Option<NodeRecord>,
}

/// Finds the versions of a node in entries, in order from the first one of the log. It is small, so it may be sent to whoever
/// asks for a long list piece by piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionScan {
    /// The node.
    pub node: NodeId,
    /// The last entry that was looked at.
    pub seq: u64,
    /// The version of the node there.
    pub version: u64,
    /// The last fence there.
    pub fence: u64,
}

impl Versions for VersionScan {
    type Error = Infallible;

    /// Only the node and the fence are known, and only their outcomes are looked at.
    fn version(&self, node: &NodeId) -> Result<u64, Infallible> {
        Ok(match *node {
            NodeId::FENCE => self.fence,
            node if node == self.node => self.version,
            _ => 0,
        })
    }
}

impl VersionScan {
    /// Begins before the first entry.
    pub fn new(node: NodeId) -> Self {
        Self { node, seq: 0, version: 0, fence: 0 }
    }

    /// Looks at the next entry.
    pub fn note(&mut self, entry: &Entry) -> Option<Version> {
        let commit = &entry.commit;
        let previous = Head { seq: entry.seq - 1, hash: entry.previous };
        self.seq = entry.seq;
        let is_of_interest = |node: NodeId| node == self.node || node == NodeId::FENCE;
        if !commit.changes.iter().any(|change| is_of_interest(change.node)) {
            return None;
        }
        let Ok(outcomes) = decide(self, &previous, commit);
        let mut found = None;
        for (change, outcome) in commit.changes.iter().zip(outcomes) {
            let Outcome::Accepted { version } = outcome else { continue };
            if change.node == NodeId::FENCE {
                self.fence = version;
            }
            if change.node == self.node {
                self.version = version;
                let record = match &change.action {
                    Action::Put(payload) => decode_message(payload).ok(),
                    Action::Delete => None,
                };
                // A node that changes twice in a commit is seen as it is at its end.
                found = Some(Version {
                    version,
                    seq: entry.seq,
                    time: commit.time,
                    device: commit.device,
                    device_name: commit.device_name.clone(),
                    record,
                });
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use model::testing::{commit, node, put};
    use model::{Change, Commit, EntryHash};

    use super::*;

    fn scan(commits: Vec<Commit>) -> Vec<(u64, u64, bool)> {
        let mut scan = VersionScan::new(node(1));
        let entry = |(seq, commit)| Entry { seq, previous: EntryHash::NONE, commit };
        let found = (1..).zip(commits).map(entry).filter_map(|entry| scan.note(&entry));
        found.map(|found| (found.version, found.seq, found.record.is_some())).collect()
    }

    #[test]
    fn versions_are_those_that_were_accepted() {
        let delete = Change { node: node(1), base: 2, action: Action::Delete };
        let found = scan(vec![
            commit(1, vec![put(2, 0, "other")]),
            commit(2, vec![put(1, 0, "a")]),
            commit(3, vec![put(1, 0, "lost")]),
            commit(4, vec![put(1, 1, "b")]),
            commit(5, vec![delete]),
        ]);
        assert_eq!(found, [(1, 2, true), (2, 4, true), (3, 5, false)]);
    }
}
