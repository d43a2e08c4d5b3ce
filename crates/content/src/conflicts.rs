//! Files that are kept beside each other because two sides changed the same, and deciding what becomes of them. Pure.
//!
//! *Participants*: whoever folds a log, and proposes. *Goals*: what waits for a decision is listed without reading the log, the newest first.
//! *Non-goals*: saying whose version is the better one. *Invariants*: nothing that is not kept is gone: a copy is deleted as anything is,
//! and what replaces an original is its next version; who decides names the versions that were looked at, so that nobody decides about what
//! they have not seen; a decision is taken back as long as nobody has touched what it was about. Whoever decides and proposes in one place, as
//! a server does, makes one commit of it; others bring what is kept first, and delete the copy once that stands.

use std::sync::Arc;

use model::fold::Folded;
use model::{
    Action, Change, ConflictOrigin, Mounts, Name, NodeId, NodeKind, NodeRecord, Tree, TreeNode,
};

use crate::changing::{ChangeError, check_place, delete, follow, living, put, refuse_taken};
use crate::noted::{Deed, NoteCursor, NotedNodes};

/// A copy that was kept, and what it was kept beside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The copy, which is there.
    pub copy: NodeId,
    /// Which node it conflicts with, and the version of that from which the copy was made.
    pub origin: ConflictOrigin,
    /// That node, or the one that it has become one with; nothing where it was deleted.
    pub original: Option<NodeId>,
    /// Who kept the copy; nothing where the fold began behind that.
    pub deed: Option<Arc<Deed>>,
}

/// What is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// The copy: its content is the next version of the original.
    Copy,
    /// The original.
    Original,
    /// Both, the copy as a file like any other, under another name where there is one.
    Both(Option<Name>),
}

/// What somebody decides, of what they have seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The copy.
    pub node: NodeId,
    /// Its version.
    pub version: u64,
    /// The version of the original; nothing where it was not there.
    pub original_version: Option<u64>,
    /// What is to be kept.
    pub keep: Keep,
}

/// What a decision comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The changes, what is kept before what is deleted.
    pub changes: Vec<Change>,
    /// What stands then.
    pub subject: NodeId,
}

/// A node that a decision changes, as it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The node.
    pub node: NodeId,
    /// Its version after the decision.
    pub version: u64,
    /// What it was.
    pub record: NodeRecord,
}

/// The conflicts of a workspace that nobody has decided up to one entry of its log, noted while that is folded.
#[derive(Debug, Default)]
pub struct Conflicts {
    noted: NotedNodes,
}

impl Conflicts {
    /// Notes what the next entry has done.
    pub fn note(&mut self, tree: &Tree, folded: &Folded, deed: impl Fn() -> Arc<Deed>) {
        for id in &folded.touched {
            let is_so = tree.get(id).is_some_and(is_side);
            self.noted.follow(*id, is_so, &deed);
        }
    }

    /// Takes over a node of a checkpoint.
    pub fn take(&mut self, id: NodeId, node: &TreeNode) {
        if is_side(node) {
            self.noted.note(id, None);
        }
    }

    /// Returns about how many bytes of memory it takes.
    pub fn weight(&self) -> usize {
        self.noted.weight()
    }

    /// Returns up to `limit` conflicts that are shown, the newest first, behind a place of the list; and whether there are more. What lies in
    /// folders that are workspaces of their own is decided there.
    pub fn list(
        &self,
        tree: &Tree,
        mounts: &Mounts,
        cursor: Option<NoteCursor>,
        limit: usize,
        is_shown: impl Fn(NodeId) -> bool,
    ) -> (Vec<Conflict>, bool) {
        let shown = self.noted.after(cursor).filter(|id| is_shown(*id));
        let mut nodes = shown.filter_map(|id| self.of(tree, mounts, id));
        let found: Vec<_> = nodes.by_ref().take(limit).collect();
        (found, nodes.next().is_some())
    }

    /// Returns how many there are of those that are shown.
    pub fn count(&self, tree: &Tree, mounts: &Mounts, is_shown: impl Fn(NodeId) -> bool) -> usize {
        let there = self.noted.after(None).filter(|id| follow(tree, mounts, *id).is_some());
        there.filter(|id| is_shown(*id)).count()
    }

    /// Returns the conflict of a node that is one side of it.
    pub fn of(&self, tree: &Tree, mounts: &Mounts, id: NodeId) -> Option<Conflict> {
        let copy = follow(tree, mounts, id).filter(|copy| *copy == id)?;
        let origin = tree.get(&copy)?.record.conflict?;
        // Somebody hostile may name anything.
        let is_beside = |node: &NodeId| *node != id && *node != NodeId::ROOT && !node.is_settings();
        let original = follow(tree, mounts, origin.node).filter(is_beside);
        Some(Conflict { copy, origin, original, deed: self.noted.of(&id) })
    }

    /// Plans to decide a conflict.
    ///
    /// # Errors
    /// [`ChangeError::NoSuch`] for a node that is not there; [`ChangeError::Changed`] where a side is another version than was seen;
    /// [`ChangeError::NoConflict`]; [`ChangeError::Unseen`], [`ChangeError::OtherKind`] for what cannot be kept in this way;
    /// [`ChangeError::Taken`], [`ChangeError::Name`] for a name that cannot be; [`ChangeError::Mounted`].
    pub fn resolve(&self, tree: &Tree, decision: &Decision) -> Result<Resolution, ChangeError> {
        let Decision { version, original_version, keep, .. } = decision;
        let Ok(mounts) = Mounts::of(tree);
        let gone = || ChangeError::NoSuch { node: decision.node };
        let node = follow(tree, &mounts, decision.node).ok_or_else(gone)?;
        let copy = at_version(tree, node, *version)?;
        let found = self.of(tree, &mounts, decision.node);
        let found = found.ok_or(ChangeError::NoConflict { node })?;
        if let (Some(original), Some(seen)) = (found.original, original_version) {
            at_version(tree, original, *seen)?;
        }
        let original = found.original.filter(|_| original_version.is_some());
        let original = original.ok_or(ChangeError::Unseen { node });
        match keep {
            Keep::Original => {
                Ok(Resolution { subject: original?, changes: delete(tree, node, *version)? })
            }
            Keep::Copy => replace(tree, original?, (node, copy)),
            Keep::Both(name) => keep_both(tree, (node, copy), name.as_ref()),
        }
    }
}

/// Makes the copy the next version of the original.
fn replace(
    tree: &Tree,
    original: NodeId,
    (node, copy): (NodeId, &TreeNode),
) -> Result<Resolution, ChangeError> {
    let old = living(tree, original)?;
    let NodeRecord { mode, modified, ref kind, .. } = copy.record;
    if matches!(kind, NodeKind::Directory) || !old.record.kind.is_same_kind(kind) {
        return Err(ChangeError::OtherKind { node });
    }
    let next = NodeRecord { mode, modified, kind: kind.clone(), ..old.record.clone() };
    let deletion = Change { node, base: copy.version, action: Action::Delete };
    let changes = vec![put(original, old.version, &next), deletion];
    Ok(Resolution { changes, subject: original })
}

/// Makes the copy a file like any other.
fn keep_both(
    tree: &Tree,
    (node, copy): (NodeId, &TreeNode),
    name: Option<&Name>,
) -> Result<Resolution, ChangeError> {
    let name = name.unwrap_or(&copy.record.name);
    if *name != copy.record.name {
        check_place(tree, copy.record.parent, name)?;
        refuse_taken(tree, &copy.record.parent, name, node)?;
    }
    let next = NodeRecord { name: name.clone(), conflict: None, ..copy.record.clone() };
    Ok(Resolution { changes: vec![put(node, copy.version, &next)], subject: node })
}

/// Returns what the nodes of a decision are before it, by which it is taken back.
pub fn before(tree: &Tree, changes: &[Change]) -> Vec<Decided> {
    let of = |change: &Change| {
        let record = tree.get(&change.node)?.record.clone();
        Some(Decided { node: change.node, version: change.base + 1, record })
    };
    changes.iter().filter_map(of).collect()
}

/// Plans to make what was decided a conflict again: all of it, where nobody has touched anything of it since.
///
/// # Errors
/// [`ChangeError::Changed`]; [`ChangeError::Mounted`] where it belongs to a workspace of its own by now.
pub fn take_back(tree: &Tree, decided: &[Decided]) -> Result<Vec<Change>, ChangeError> {
    let Ok(mounts) = Mounts::of(tree);
    // A folder was deleted after what was in it, and is there again before that.
    let change = |Decided { node, version, record }: &Decided| {
        let is_untouched = tree.get(node).is_some_and(|found| found.version == *version);
        let Ok(is_frozen) = mounts.freeze(tree, node);
        match (is_untouched, is_frozen) {
            (false, _) => Err(ChangeError::Changed { node: *node }),
            (true, true) => Err(ChangeError::Mounted { node: *node }),
            (true, false) => Ok(put(*node, *version, record)),
        }
    };
    decided.iter().rev().map(change).collect()
}

fn is_side(node: &TreeNode) -> bool {
    node.is_alive() && node.record.conflict.is_some()
}

fn at_version(tree: &Tree, node: NodeId, version: u64) -> Result<&TreeNode, ChangeError> {
    let found = living(tree, node)?;
    if found.version == version { Ok(found) } else { Err(ChangeError::Changed { node }) }
}

#[cfg(test)]
mod tests;
