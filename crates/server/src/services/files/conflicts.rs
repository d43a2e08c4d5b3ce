//! Files that are kept beside each other because two sides changed the same, and deciding what becomes of them. Pure.
//!
//! *Invariants*: nothing that is not kept is gone: a copy is deleted as anything is, and what replaces an original is its next version;
//! who decides names the versions that were looked at, so that nobody decides about what they have not seen; a decision is one commit.

use std::sync::Arc;

use model::{
    Action, Change, ConflictOrigin, Name, NodeId, NodeKind, NodeRecord, RelativePath, TreeNode,
};

use super::changes::{Condition, Plan, deletions, put};
use super::noted::Deed;
use super::{FileNode, View};
use crate::error::{Result, ServerError};

/// A copy that was kept, and what it was kept beside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictNode {
    /// The copy.
    pub copy: FileNode,
    /// Where it is.
    pub path: RelativePath,
    /// Which node it conflicts with.
    pub origin: NodeId,
    /// That node, and where it is; nothing where it was deleted.
    pub original: Option<(FileNode, RelativePath)>,
    /// The version of the original from which the copy was made; 0 where they have only a name in common.
    pub base: u64,
    /// Who kept the copy; nothing for what was so before the checkpoint with which the view began.
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

/// What somebody says of a file that was kept beside another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The copy.
    pub node: NodeId,
    /// Its version.
    pub version: u64,
    /// What it conflicts with.
    pub origin: ConflictOrigin,
}

fn check(path: &RelativePath, node: &FileNode, version: u64) -> Result<()> {
    let seen = FileNode { version, ..node.clone() }.etag();
    Condition::Is(vec![seen]).check(path, Some(node))
}

fn unknown(node: NodeId) -> ServerError {
    ServerError::NotFound { what: format!("node {node}") }
}

/// Plans to decide a conflict.
///
/// # Errors
/// [`ServerError::NotFound`] for a node that is not there; [`ServerError::PreconditionFailed`] where a side is another version than
/// was seen; [`ServerError::Conflict`] for what is in no conflict, or cannot be kept in this way.
pub fn resolve(view: &View, decision: &Decision) -> Result<Plan> {
    let Decision { node, version, original_version, keep } = decision;
    let (copy, path) = view.follow(*node).ok_or_else(|| unknown(*node))?;
    check(&path, &copy, *version)?;
    let refuse = |reason| ServerError::Conflict { what: format!("'{path}'"), reason };
    let found = view.conflict(*node).ok_or_else(|| refuse("is in no conflict"))?;
    let record = copy.record.clone().ok_or_else(|| unknown(*node))?;
    if let Some((original, path)) = &found.original
        && let Some(seen) = original_version
    {
        check(path, original, *seen)?;
    }
    let original = || {
        let seen = found.original.as_ref().filter(|_| original_version.is_some());
        seen.ok_or_else(|| refuse("has nothing beside it that was seen; keep it"))
    };
    match keep {
        Keep::Original => {
            let subject = original()?.0.id;
            Ok(Plan { changes: deletions(view, copy)?, subject, is_new: false })
        }
        Keep::Copy => {
            let (original, _) = original()?;
            let old = original.record.as_ref().filter(|old| can_follow(old, &record));
            let old =
                old.ok_or_else(|| refuse("is of another kind than what it conflicts with"))?;
            let next = NodeRecord { parent: old.parent, name: old.name.clone(), ..record };
            let next = NodeRecord { conflict: old.conflict, ..next };
            let mut changes = vec![put(original.id, original.version, &next)];
            changes.push(Change { node: copy.id, base: copy.version, action: Action::Delete });
            Ok(Plan { changes, subject: original.id, is_new: false })
        }
        Keep::Both(name) => {
            let name = name.clone().unwrap_or_else(|| record.name.clone());
            if name != record.name {
                let (folder, _) = path.split_last().ok_or_else(|| refuse("is the root"))?;
                let there = folder.join(&name).map_err(|error| ServerError::Invalid {
                    what: "name",
                    reason: error.to_string(),
                })?;
                Condition::Absent.check(&there, view.find(&there).as_ref())?;
            }
            let next = NodeRecord { name, conflict: None, ..record };
            let changes = vec![put(copy.id, copy.version, &next)];
            Ok(Plan { changes, subject: copy.id, is_new: false })
        }
    }
}

/// Whether one can be the next version of the other.
fn can_follow(old: &NodeRecord, new: &NodeRecord) -> bool {
    !matches!(new.kind, NodeKind::Directory) && old.kind.is_same_kind(&new.kind)
}

/// Plans to mark a file as one side of a conflict.
///
/// # Errors
/// [`ServerError::NotFound`] for a node that is not there, or an original that never was; [`ServerError::PreconditionFailed`] where the
/// file is another version than was seen; [`ServerError::Conflict`] for what is in a conflict already.
pub fn mark(view: &View, mark: &Mark) -> Result<Plan> {
    let Mark { node, version, origin } = *mark;
    let (copy, path) = view.follow(node).ok_or_else(|| unknown(node))?;
    check(&path, &copy, version)?;
    let refuse = |reason| ServerError::Conflict { what: format!("'{path}'"), reason };
    let record = copy.record.clone().ok_or_else(|| unknown(node))?;
    if record.conflict.is_some() {
        return Err(refuse("is in a conflict already"));
    }
    let known = |original: &TreeNode| origin.base <= original.version;
    if origin.node == node || !view.tree().get(&origin.node).is_some_and(known) {
        return Err(unknown(origin.node));
    }
    let next = NodeRecord { conflict: Some(origin), ..record };
    Ok(Plan { changes: vec![put(copy.id, copy.version, &next)], subject: copy.id, is_new: false })
}
