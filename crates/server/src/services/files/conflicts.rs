//! Files that are kept beside each other because two sides changed the same, as the doors show them, and what they are told about a decision.
//! What becomes of them is planned by [`content::conflicts`]. Pure.

use std::sync::Arc;

use content::changing::ChangeError;
use content::conflicts::{Decision, Resolution};
use content::noted::Deed;
use model::{ConflictOrigin, Name, NodeId, NodeRecord, RelativePath, TreeNode};

use super::changes::{Condition, Plan, SHARED, check_count, put};
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
    let planned = view.undecided().resolve(view.tree(), decision);
    let Resolution { changes, subject } =
        planned.map_err(|error| refused(view, decision, error))?;
    check_count(changes.len())?;
    Ok(Plan { changes, subject, is_new: false })
}

/// Says to HTTP clients why a conflict cannot be decided so.
fn refused(view: &View, decision: &Decision, error: ChangeError) -> ServerError {
    let at = |node: NodeId| view.follow(node);
    let path = at(decision.node).map(|(_, path)| path).unwrap_or_default();
    let refuse = |reason| ServerError::Conflict { what: format!("'{path}'"), reason };
    match error {
        ChangeError::NoSuch { node } | ChangeError::Dropped { node } => unknown(node),
        ChangeError::Changed { node } => match at(node) {
            Some((found, path)) => failed(&path, Some(&found)),
            None => unknown(node),
        },
        ChangeError::Taken { name } => {
            let there = path
                .split_last()
                .and_then(|(folder, _)| folder.join(&Name::new(name.as_bytes()).ok()?).ok());
            let there = there.unwrap_or_default();
            failed(&there, view.find(&there).as_ref())
        }
        ChangeError::Name { reason } => ServerError::Invalid { what: "name", reason },
        ChangeError::NoConflict { .. } => refuse("is in no conflict"),
        ChangeError::Unseen { .. } => refuse("has nothing beside it that was seen; keep it"),
        ChangeError::OtherKind { .. } => refuse("is of another kind than what it conflicts with"),
        ChangeError::Mounted { .. } | ChangeError::IntoItself { .. } => refuse(SHARED),
    }
}

fn failed(path: &RelativePath, there: Option<&FileNode>) -> ServerError {
    ServerError::PreconditionFailed { path: path.to_string(), current: there.map(FileNode::etag) }
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
