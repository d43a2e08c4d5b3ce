//! The pure rule that accepts or rejects each change of a commit (StackSync 2014, Algorithm 1).
//!
//! It sees node ids and versions only, so a coordinator can run it without being able to read anything. The
//! paper accepts a change whose node is unknown, or whose base is the current version, and answers every other
//! one with the current version. Here an unknown node has version 0 and a new node has base 0, which makes one
//! rule of both: *the base must be the current version*.
//!
//! A *fence* ([`crate::fence`]) adds one rule: it stands only where its author has seen everything before it, and whoever
//! proposes something without having seen it is rejected whole, because what was proposed may rest on packs that are gone.
//! What says which folders are mounted ([`crate::mounts`]) stands only there, too: what others put into the folder must be in the
//! workspace that takes its place.

use std::collections::HashMap;

use crate::commit::{Action, Commit, Head};
use crate::ids::NodeId;

/// What became of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The change is in force; the node has this version now.
    Accepted {
        /// The new version.
        version: u64,
    },
    /// The change has no effect; somebody else was first.
    Rejected {
        /// The version that stands, 0 where the node is not known.
        current: u64,
    },
    /// The change has no effect, like all of its commit: the device had not seen the last fence.
    Fenced {
        /// The sequence number of the fence.
        fence: u64,
    },
}

impl Outcome {
    /// Tells whether the change is in force.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted { .. })
    }
}

/// The current version of every node at some point of the log.
pub trait Versions {
    /// Why a version could not be read.
    type Error;

    /// Returns the version of a node, 0 where it is not known. A deleted node keeps its version.
    ///
    /// # Errors
    /// Whatever keeps the versions may fail.
    fn version(&self, node: &NodeId) -> Result<u64, Self::Error>;
}

/// Decides every change of the commit that follows `previous`, in order. A later change of the same node sees the earlier
/// one.
///
/// # Errors
/// Only those of `versions`.
pub fn decide<V: Versions>(
    versions: &V,
    previous: &Head,
    commit: &Commit,
) -> Result<Vec<Outcome>, V::Error> {
    let fence = versions.version(&NodeId::FENCE)?;
    if commit.seen.seq < fence {
        return Ok(vec![Outcome::Fenced { fence }; commit.changes.len()]);
    }
    let mut changed = HashMap::new();
    let mut outcomes = Vec::with_capacity(commit.changes.len());
    for change in &commit.changes {
        let current = match changed.get(&change.node) {
            Some(&version) => version,
            None => versions.version(&change.node)?,
        };
        let unknown_deleted = current == 0 && change.action == Action::Delete;
        let accepted = if change.node == NodeId::FENCE {
            let is_first = !changed.contains_key(&NodeId::FENCE);
            (is_first && commit.seen == *previous).then_some(previous.seq + 1)
        } else {
            let has_missed = change.node == NodeId::MOUNTS && commit.seen != *previous;
            let is_refused = change.base != current
                || change.node == NodeId::ROOT
                || unknown_deleted
                || has_missed;
            (!is_refused).then_some(current + 1)
        };
        outcomes.push(match accepted {
            None => Outcome::Rejected { current },
            Some(version) => {
                changed.insert(change.node, version);
                Outcome::Accepted { version }
            }
        });
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::ids::EntryHash;
    use crate::testing::{commit, node, put};

    struct Fixed(HashMap<NodeId, u64>);

    impl Versions for Fixed {
        type Error = Infallible;

        fn version(&self, node: &NodeId) -> Result<u64, Infallible> {
            Ok(self.0.get(node).copied().unwrap_or(0))
        }
    }

    fn at(seq: u64) -> Head {
        Head { seq, hash: EntryHash::from_bytes([seq as u8; 32]) }
    }

    fn decided(versions: &[(u8, u64)], changes: Vec<crate::commit::Change>) -> Vec<Outcome> {
        let versions = Fixed(versions.iter().map(|&(id, version)| (node(id), version)).collect());
        let Ok(outcomes) = decide(&versions, &at(0), &commit(1, changes));
        outcomes
    }

    #[test]
    fn unknown_node_becomes_version_one() {
        assert_eq!(decided(&[], vec![put(1, 0, "a")]), [Outcome::Accepted { version: 1 }]);
    }

    #[test]
    fn current_base_is_accepted_and_others_learn_the_current_version() {
        let outcomes =
            decided(&[(1, 3), (2, 3)], vec![put(1, 3, "a"), put(2, 2, "b"), put(2, 4, "b")]);
        let rejected = Outcome::Rejected { current: 3 };
        assert_eq!(outcomes, [Outcome::Accepted { version: 4 }, rejected, rejected]);
    }

    #[test]
    fn second_change_of_a_node_sees_the_first() {
        let outcomes = decided(&[], vec![put(1, 0, "a"), put(1, 1, "b"), put(1, 1, "c")]);
        assert_eq!(outcomes[1], Outcome::Accepted { version: 2 });
        assert_eq!(outcomes[2], Outcome::Rejected { current: 2 });
    }

    #[test]
    fn root_and_unknown_deletes_are_rejected() {
        let delete = crate::commit::Change { node: node(1), base: 0, action: Action::Delete };
        assert_eq!(
            decided(&[], vec![delete, put(0, 0, "a")]),
            [Outcome::Rejected { current: 0 }; 2]
        );
    }

    #[test]
    fn repeating_a_commit_changes_nothing() {
        let changes = vec![put(1, 0, "a"), put(2, 5, "b")];
        let outcomes = decided(&[(1, 1), (2, 6)], changes);
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Rejected { .. })));
    }

    fn fence() -> crate::commit::Change {
        crate::commit::Change { node: NodeId::FENCE, base: 0, action: Action::Put(Vec::new()) }
    }

    fn decided_after(
        fence: u64,
        (previous, seen): (Head, Head),
        changes: Vec<crate::commit::Change>,
    ) -> Vec<Outcome> {
        let versions = Fixed(HashMap::from([(NodeId::FENCE, fence), (node(1), 1)]));
        let Ok(outcomes) = decide(&versions, &previous, &Commit { seen, ..commit(1, changes) });
        outcomes
    }

    #[test]
    fn fence_stands_only_where_its_author_has_seen_everything_before_it() {
        let accepted = [Outcome::Accepted { version: 8 }];
        assert_eq!(decided_after(3, (at(7), at(7)), vec![fence()]), accepted);
        let rejected = [Outcome::Rejected { current: 3 }];
        assert_eq!(decided_after(3, (at(7), at(6)), vec![fence()]), rejected);
        // The same number in another history.
        let other = Head { seq: 7, hash: EntryHash::from_bytes([9; 32]) };
        assert_eq!(decided_after(3, (at(7), other), vec![fence()]), rejected);
        assert_eq!(
            decided_after(3, (at(7), at(7)), vec![fence(), fence()])[1],
            Outcome::Rejected { current: 8 }
        );
    }

    #[test]
    fn folders_are_mounted_only_where_the_author_has_seen_everything_before() {
        let mount = |base| crate::commit::Change {
            node: NodeId::MOUNTS,
            base,
            action: Action::Put(Vec::new()),
        };
        let accepted = [Outcome::Accepted { version: 1 }];
        assert_eq!(decided_after(0, (at(7), at(7)), vec![mount(0)]), accepted);
        let rejected = [Outcome::Rejected { current: 0 }];
        assert_eq!(decided_after(0, (at(7), at(6)), vec![mount(0)]), rejected);
        assert_eq!(decided_after(0, (at(7), at(7)), vec![mount(1)]), rejected);
        // Whatever else is in the commit counts by itself.
        assert_eq!(
            decided_after(0, (at(7), at(6)), vec![mount(0), put(1, 1, "a")])[1],
            Outcome::Accepted { version: 2 }
        );
    }

    #[test]
    fn whoever_has_not_seen_the_fence_is_rejected_whole() {
        let changes = || vec![put(1, 1, "a"), put(2, 0, "b"), fence()];
        let fenced = [Outcome::Fenced { fence: 5 }; 3];
        assert_eq!(decided_after(5, (at(7), at(4)), changes()), fenced);
        let outcomes = decided_after(5, (at(7), at(5)), changes());
        assert_eq!(
            outcomes[..2],
            [Outcome::Accepted { version: 2 }, Outcome::Accepted { version: 1 }]
        );
    }
}
