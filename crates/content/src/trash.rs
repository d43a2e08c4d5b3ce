//! What was deleted in a workspace, as its log shows it, and how it comes back. Pure.
//!
//! *Participants*: whoever folds a whole log, and proposes. *Goals*: who deleted something and when is told as far as the log tells it; a
//! folder comes back with what was deleted with it, and with the folders above it. *Non-goals*: versions of what is there, which
//! [`versions`](crate::versions) knows. *Invariants*: what a cleanup has removed is not brought back without its content, and what belongs
//! to a workspace of its own is let be.

use std::collections::HashMap;
use std::sync::Arc;

use model::fold::Folded;
use model::path::PATH_DEPTH_MAX;
use model::tree::NodeState;
use model::{Change, Mounts, Name, NodeId, NodeRecord, Tree, TreeNode};

use crate::changing::{ChangeError, put};
use crate::noted::Deed;
use crate::versions::Versions;

/// A node that was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedNode {
    /// Its id.
    pub id: NodeId,
    /// The version that its deletion is.
    pub version: u64,
    /// What it was.
    pub record: NodeRecord,
    /// The names of the folders above it, as they are or were last, the topmost first.
    pub folders: Vec<Name>,
    /// Whether a folder above it is deleted, too.
    pub is_in_deleted: bool,
    /// Whether a cleanup has removed its content.
    pub is_dropped: bool,
    /// Who deleted it.
    pub deletion: Arc<Deed>,
}

/// The trash of a workspace up to one entry of its log, noted while that is folded from its beginning.
#[derive(Debug, Default)]
pub struct Trash {
    deleted: HashMap<NodeId, Arc<Deed>>,
}

/// What comes back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revival {
    /// The changes, folders before what is in them.
    pub changes: Vec<Change>,
    /// How many files stay deleted, since a cleanup has removed their contents.
    pub dropped: usize,
}

impl Trash {
    /// Notes what the next entry has done.
    pub fn note(&mut self, tree: &Tree, folded: &Folded, deed: impl Fn() -> Arc<Deed>) {
        for id in &folded.touched {
            let is_deleted = tree.get(id).is_some_and(|node| node.state == NodeState::Deleted);
            match is_deleted {
                true => _ = self.deleted.entry(*id).or_insert_with(&deed),
                false => _ = self.deleted.remove(id),
            }
        }
    }

    /// Lists what is deleted, what was deleted last first, then by place. What lay in folders that are workspaces of their own by now is
    /// left out.
    pub fn list(&self, tree: &Tree, versions: &Versions) -> Vec<DeletedNode> {
        let Ok(mounts) = Mounts::of(tree);
        let mut listed: Vec<_> = self
            .deleted
            .iter()
            .filter_map(|(id, deletion)| {
                let Ok(is_frozen) = mounts.freeze(tree, id);
                let node = tree.get(id).filter(|_| !is_frozen)?;
                let above = above(tree, id)?;
                let is_in_deleted = above.iter().any(|(_, folder)| !folder.is_alive());
                let names = above.iter().rev().map(|(_, folder)| folder.record.name.clone());
                Some(DeletedNode {
                    id: *id,
                    version: node.version,
                    record: node.record.clone(),
                    folders: names.collect(),
                    is_in_deleted,
                    is_dropped: versions.is_dropped(id),
                    deletion: Arc::clone(deletion),
                })
            })
            .collect();
        let place = |node: &DeletedNode| {
            let names = node.folders.iter().chain([&node.record.name]);
            names.map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>()
        };
        listed.sort_by_cached_key(|node| {
            (std::cmp::Reverse(node.deletion.seq), place(node), node.id)
        });
        listed
    }

    /// Plans to bring nodes back as they were, of a folder what was deleted in the same entry, too. Folders above them that are deleted
    /// come back with them, and where a name is taken the fold gives another one.
    ///
    /// # Errors
    /// [`ChangeError::NoSuch`] where one is not deleted (any more), [`ChangeError::Mounted`]; [`ChangeError::Dropped`] where a cleanup has
    /// removed the contents of all of them.
    pub fn revive(
        &self,
        tree: &Tree,
        versions: &Versions,
        nodes: &[NodeId],
    ) -> Result<Revival, ChangeError> {
        let Ok(mounts) = Mounts::of(tree);
        let mut chosen = HashMap::new();
        for node in nodes {
            let deletion = self.deleted.get(node).ok_or(ChangeError::NoSuch { node: *node })?;
            let Ok(is_frozen) = mounts.freeze(tree, node);
            if is_frozen {
                return Err(ChangeError::Mounted { node: *node });
            }
            chosen.insert(*node, deletion.seq);
        }
        let (mut found, mut revival) = (Vec::new(), Revival::default());
        for (id, deletion) in &self.deleted {
            let (Some(node), Some(above)) = (tree.get(id), above(tree, id)) else { continue };
            let went_with = |folder: &NodeId| chosen.get(folder) == Some(&deletion.seq);
            if !chosen.contains_key(id) && !above.iter().any(|(folder, _)| went_with(folder)) {
                continue;
            }
            let Ok(is_frozen) = mounts.freeze(tree, id);
            if versions.is_dropped(id) {
                revival.dropped += 1;
            } else if !is_frozen {
                found.push((above.len(), *id, node));
            }
        }
        found.sort_unstable_by_key(|(depth, id, _)| (*depth, *id));
        let change = |(_, id, node): (usize, NodeId, &TreeNode)| {
            let record = NodeRecord { conflict: None, ..node.record.clone() };
            put(id, node.version, &record)
        };
        revival.changes = found.into_iter().map(change).collect();
        match nodes.first() {
            Some(node) if revival.changes.is_empty() => Err(ChangeError::Dropped { node: *node }),
            _ => Ok(revival),
        }
    }
}

/// Returns the folders above a node, the nearest first, living or not; nothing where they do not lead to the root.
fn above<'a>(tree: &'a Tree, id: &NodeId) -> Option<Vec<(NodeId, &'a TreeNode)>> {
    let mut current = tree.get(id)?.record.parent;
    let mut found = Vec::new();
    // One that is one with another is passed on to that; a path has so many names at most.
    for _ in 0..2 * PATH_DEPTH_MAX {
        if current == NodeId::ROOT {
            return Some(found);
        }
        let node = tree.get(&current)?;
        current = match node.state {
            NodeState::MergedInto(holder) => holder,
            _ => {
                found.push((current, node));
                node.record.parent
            }
        };
    }
    None
}

#[cfg(test)]
mod tests;
