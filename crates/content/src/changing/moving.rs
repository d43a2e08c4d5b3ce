//! Moving several nodes at once into another folder, and taking that back.

use std::collections::HashSet;

use model::{Change, Name, NodeId, Tree};

use super::{ChangeError, living, relocate};

/// A node that was to be moved, and where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The node.
    pub node: NodeId,
    /// Its folder before, and its name in it.
    pub from: (NodeId, Name),
    /// The folder into which it goes, and the name that it is to have there.
    pub to: (NodeId, Name),
}

/// Plans to move nodes into a folder, each as somebody has seen it in a version and under the name that it shall have there. All of
/// them or none, as far as is known: what others do at the same moment the fold decides.
///
/// # Errors
/// [`ChangeError`]; [`ChangeError::Changed`] where a node has another version, [`ChangeError::Taken`] where something has the name, or two
/// of them would have it.
pub fn move_all(
    tree: &Tree,
    nodes: &[(NodeId, u64, Name)],
    folder: NodeId,
) -> Result<(Vec<Change>, Vec<Move>), ChangeError> {
    let (mut changes, mut moves) = (Vec::with_capacity(nodes.len()), Vec::new());
    let (mut seen, mut names) = (HashSet::new(), HashSet::new());
    for (node, version, name) in nodes {
        let found = living(tree, *node)?;
        if found.version != *version {
            return Err(ChangeError::Changed { node: *node });
        }
        if !seen.insert(*node) || !names.insert(name) {
            return Err(ChangeError::Taken { name: name.to_string() });
        }
        let change = relocate(tree, *node, folder, name.clone())?;
        if !change.is_empty() {
            let from = (found.record.parent, found.record.name.clone());
            moves.push(Move { node: *node, from, to: (folder, name.clone()) });
        }
        changes.extend(change);
    }
    Ok((changes, moves))
}

/// Plans to take moves back: what still lies where it was moved to goes to where it was, with all that was changed in it since. What
/// somebody else has moved or deleted is let be, of what only got another name also what has yet another one by then, and so is that whose
/// place is taken or gone.
///
/// # Errors
/// [`ChangeError::Changed`] where nothing is left to take back.
pub fn move_back(tree: &Tree, moves: &[Move]) -> Result<Vec<Change>, ChangeError> {
    let mut changes = Vec::with_capacity(moves.len());
    for Move { node, from: (parent, name), to } in moves {
        let is_there = living(tree, *node).is_ok_and(|found| {
            let (folder, new) = to;
            found.record.parent == *folder && (folder != parent || found.record.name == *new)
        });
        if is_there && let Ok(change) = relocate(tree, *node, *parent, name.clone()) {
            changes.extend(change);
        }
    }
    match moves.last() {
        Some(last) if changes.is_empty() => Err(ChangeError::Changed { node: last.node }),
        _ => Ok(changes),
    }
}

#[cfg(test)]
mod tests;
