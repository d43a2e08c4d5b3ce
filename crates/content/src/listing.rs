//! What is in a folder of a tree and in those below it, for whoever keeps a copy of the folder. Pure.
//!
//! *Invariants*: what is not told is not there: a folder that is gone, or belongs to a workspace of its own, is not said to have nothing in it.

use model::tree::path_of;
use model::{Mounts, NodeId, Tree, TreeNode};

/// A file, folder or link in a folder, or in one below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed<'a> {
    /// Its id.
    pub id: NodeId,
    /// What it is.
    pub node: &'a TreeNode,
    /// Whether it is a workspace of its own: what lies in it is not told.
    pub is_mounted: bool,
}

/// Returns what is in a folder and in those below it, each after its folder; nothing where the folder is not there, or belongs to a
/// workspace of its own.
pub fn list_all(tree: &Tree, folder: NodeId) -> Option<Vec<Placed<'_>>> {
    let mounts = mounts_around(tree, folder)?;
    let (mut found, mut waiting) = (Vec::new(), vec![folder]);
    while let Some(folder) = waiting.pop() {
        for (_, &id) in tree.children(&folder) {
            let Some(node) = tree.get(&id) else { continue };
            let is_mounted = mounts.contains(&id);
            if node.is_directory() && !is_mounted {
                waiting.push(id);
            }
            found.push(Placed { id, node, is_mounted });
        }
    }
    Some(found)
}

/// Returns the folders that are workspaces of their own, where a folder is there and does not belong to one of them.
pub(crate) fn mounts_around(tree: &Tree, folder: NodeId) -> Option<Mounts> {
    let Ok(mounts) = Mounts::of(tree);
    let Ok(is_held) = mounts.hold(tree, &folder);
    let is_there = path_of(tree, &folder).is_ok_and(|path| path.is_some());
    let is_folder = folder == NodeId::ROOT || tree.get(&folder).is_some_and(TreeNode::is_directory);
    (!is_held && is_there && is_folder).then_some(mounts)
}

#[cfg(test)]
mod tests {
    use model::codec::encode_message;
    use model::mounts::Mount;
    use model::testing::node;
    use model::{Action, Change, WorkspaceId};

    use super::*;
    use crate::changing::delete;
    use crate::changing::tests::Log;

    fn names(log: &Log, folder: NodeId) -> Option<Vec<String>> {
        let found = list_all(&log.tree, folder)?;
        Some(found.iter().map(|placed| placed.node.record.name.to_string()).collect())
    }

    #[test]
    fn all_below_a_folder_is_told_each_after_its_folder_and_nothing_of_what_is_gone() {
        let mut log = Log::default();
        let outer = log.folder(1, NodeId::ROOT, "outer");
        let inner = log.folder(2, outer, "inner");
        log.put(3, inner, "deep", 1);
        log.put(4, outer, "file", 1);
        assert_eq!(names(&log, NodeId::ROOT).unwrap(), ["outer", "file", "inner", "deep"]);
        assert_eq!(names(&log, inner).unwrap(), ["deep"]);
        assert_eq!(names(&log, node(4)), None, "it is no folder");
        let version = log.tree.get(&outer).unwrap().version;
        let gone = delete(&log.tree, outer, version).unwrap();
        log.append(gone);
        assert_eq!((names(&log, inner), names(&log, outer)), (None, None));
        assert!(names(&log, NodeId::ROOT).unwrap().is_empty());
    }

    #[test]
    fn folder_that_is_a_workspace_of_its_own_is_told_and_what_lies_in_it_is_not() {
        let mut log = Log::default();
        let shared = log.folder(1, NodeId::ROOT, "shared");
        let inner = log.folder(2, shared, "inner");
        log.put(3, inner, "file", 1);
        let mount = Mount { workspace: WorkspaceId::from_bytes([9; 16]), since: 0 };
        let payload = encode_message(&Mounts::from_iter([(shared, mount)]));
        log.append(vec![Change { node: NodeId::MOUNTS, base: 0, action: Action::Put(payload) }]);
        let found = list_all(&log.tree, NodeId::ROOT).unwrap();
        let told: Vec<_> = found.iter().map(|placed| (placed.id, placed.is_mounted)).collect();
        assert_eq!(told, [(shared, true)]);
        assert_eq!((names(&log, shared), names(&log, inner)), (None, None));
    }
}
