//! Copying nodes into a folder, and taking that back: new nodes of the same content, of which nothing is sent again.

use std::collections::{HashMap, HashSet};

use model::path::{InvalidPath, PATH_DEPTH_MAX};
use model::{Change, Mounts, Name, NodeId, NodeRecord, Tree};

use super::{
    ChangeError, below, check_place, delete, living, put, refuse_into_itself, refuse_mounted,
    refuse_taken,
};

/// The version of a node that nobody has changed since it was made.
const FIRST_VERSION: u64 = 1;

/// Plans to copy nodes, each with all that is in it, into a folder under the names that they shall have there. All of them or none, as far
/// as is known. `new_id` names the copies; returned are those of the nodes themselves, too, in their order.
///
/// # Errors
/// [`ChangeError`]; [`ChangeError::Taken`] where something has the name, or two of them would have it.
pub fn copy_all(
    tree: &Tree,
    nodes: &[(NodeId, Name)],
    folder: NodeId,
    mut new_id: impl FnMut() -> NodeId,
) -> Result<(Vec<Change>, Vec<NodeId>), ChangeError> {
    let (mut changes, mut copies) = (Vec::new(), Vec::with_capacity(nodes.len()));
    let mut names = HashSet::new();
    let Ok(mounts) = Mounts::of(tree);
    for (source, name) in nodes {
        let found = living(tree, *source)?;
        refuse_mounted(tree, found.record.parent)?;
        refuse_into_itself(tree, *source, folder)?;
        let depth = check_place(tree, folder, name)?;
        let copy = new_id();
        refuse_taken(tree, &folder, name, copy)?;
        if !names.insert(name) {
            return Err(ChangeError::Taken { name: name.to_string() });
        }
        let mut parents = HashMap::from([(*source, copy)]);
        for (node, below) in below(tree, *source) {
            if mounts.contains(&node) {
                return Err(ChangeError::Mounted { node });
            }
            if depth + below > PATH_DEPTH_MAX {
                return Err(InvalidPath::PathTooLong { depth: depth + below, length: 0 }.into());
            }
            let record = NodeRecord { conflict: None, ..living(tree, node)?.record.clone() };
            changes.push(match parents.get(&record.parent).filter(|_| node != *source) {
                None => put(copy, 0, &NodeRecord { parent: folder, name: name.clone(), ..record }),
                Some(&parent) => {
                    let id = new_id();
                    parents.insert(node, id);
                    put(id, 0, &NodeRecord { parent, ..record })
                }
            });
        }
        copies.push(copy);
    }
    Ok((changes, copies))
}

/// Plans to take copies back, of whose nodes the `made` are there: a copy in which somebody has changed something, or put something,
/// is let be.
///
/// # Errors
/// [`ChangeError::Changed`] where nothing is left to take back.
pub fn delete_copies(
    tree: &Tree,
    copies: &[NodeId],
    made: &HashSet<NodeId>,
) -> Result<Vec<Change>, ChangeError> {
    let mut changes = Vec::new();
    for copy in copies {
        let Ok(deletions) = delete(tree, *copy, FIRST_VERSION) else { continue };
        let is_as_made =
            |change: &Change| change.base == FIRST_VERSION && made.contains(&change.node);
        if deletions.iter().all(is_as_made) {
            changes.extend(deletions);
        }
    }
    match copies.last() {
        Some(last) if changes.is_empty() => Err(ChangeError::Changed { node: *last }),
        _ => Ok(changes),
    }
}

#[cfg(test)]
mod tests {
    use model::testing::node;
    use model::{Action, NodeKind};

    use super::super::tests::{Log, name};
    use super::super::{make_folder, relocate};
    use super::*;

    /// `one/two/a`, and `b` beside `one`.
    fn log() -> Log {
        let mut log = Log::default();
        log.folder(1, NodeId::ROOT, "one");
        log.folder(2, node(1), "two");
        log.put(3, node(2), "a", 7);
        log.put(4, NodeId::ROOT, "b", 2);
        log
    }

    fn ids() -> impl FnMut() -> NodeId {
        let mut next = 99;
        move || {
            next += 1;
            node(next)
        }
    }

    fn content_of(log: &Log, id: u8) -> NodeKind {
        log.tree.get(&node(id)).unwrap().record.kind.clone()
    }

    #[test]
    fn folder_is_copied_with_all_that_is_in_it_and_the_copies_go_their_own_way() {
        let mut log = log();
        let nodes = [(node(1), name("one (2)")), (node(4), name("c"))];
        let (changes, copies) = copy_all(&log.tree, &nodes, NodeId::ROOT, ids()).unwrap();
        assert_eq!((changes.len(), &copies[..]), (4, &[node(100), node(103)][..]));
        assert_eq!(log.append(changes), []);
        assert_eq!(log.names(NodeId::ROOT), ["b", "c", "one", "one (2)"]);
        assert_eq!(
            (log.names(node(100)), log.names(node(101))),
            (vec!["two".into()], vec!["a".into()])
        );
        assert_eq!(content_of(&log, 102), content_of(&log, 3));
        log.put(9, node(2), "a", 8);
        assert_ne!(content_of(&log, 102), content_of(&log, 3));
        assert_eq!(log.tree.get(&node(102)).unwrap().version, 1);
    }

    #[test]
    fn what_cannot_be_copied_is_refused_as_a_whole() {
        let mut log = log();
        let copy = |log: &Log, nodes: &[(u8, &str)], folder: NodeId| {
            let nodes: Vec<_> = nodes.iter().map(|(id, text)| (node(*id), name(text))).collect();
            copy_all(&log.tree, &nodes, folder, ids()).map(|(changes, _)| changes.len())
        };
        let taken = |text: &str| Err(ChangeError::Taken { name: text.to_owned() });
        assert_eq!(copy(&log, &[(4, "c"), (1, "b")], NodeId::ROOT), taken("b"));
        assert_eq!(copy(&log, &[(4, "c"), (1, "c")], NodeId::ROOT), taken("c"));
        let itself = Err(ChangeError::IntoItself { node: node(1) });
        assert_eq!(copy(&log, &[(1, "x")], node(1)), itself);
        assert_eq!(copy(&log, &[(1, "x")], node(2)), itself);
        assert_eq!(copy(&log, &[(4, "c")], node(3)), Err(ChangeError::NoSuch { node: node(3) }));
        let deletions = delete(&log.tree, node(4), 1).unwrap();
        log.append(deletions);
        assert_eq!(copy(&log, &[(4, "c")], node(1)), Err(ChangeError::NoSuch { node: node(4) }));
        let mut deepest = node(1);
        for id in 10..10 + u8::try_from(PATH_DEPTH_MAX).unwrap() - 1 {
            deepest = log.folder(id, deepest, "deep");
        }
        let aside = make_folder(&log.tree, NodeId::ROOT, name("aside"), node(200)).unwrap();
        log.append(aside);
        assert!(matches!(copy(&log, &[(1, "x")], node(200)), Err(ChangeError::Name { .. })));
    }

    #[test]
    fn copies_are_taken_back_but_those_in_which_something_was_changed_or_put() {
        let mut log = log();
        let nodes = [(node(1), name("x")), (node(1), name("y")), (node(4), name("z"))];
        let (changes, copies) = copy_all(&log.tree, &nodes, NodeId::ROOT, ids()).unwrap();
        let made = changes.iter().map(|change| change.node).collect();
        log.append(changes);
        log.put(9, node(101), "new", 9);
        let moved = relocate(&log.tree, copies[2], node(2), name("z")).unwrap();
        log.append(moved);
        let back = delete_copies(&log.tree, &copies, &made).unwrap();
        assert!(back.iter().all(|change| change.action == Action::Delete));
        log.append(back);
        assert_eq!(log.names(NodeId::ROOT), ["b", "one", "x"]);
        let nothing = delete_copies(&log.tree, &copies, &made);
        assert_eq!(nothing, Err(ChangeError::Changed { node: copies[2] }));
        assert_eq!(content_of(&log, 3), content_of(&log, 102), "what was copied is untouched");
    }
}
