//! What people ask for, as changes of nodes: put, make, move, copy, delete. Pure.
//!
//! *Invariants*: a plan says what it rests on, node by node, so that whoever was first wins; a directory stands before what
//! is put into it, and a deleted one after what was in it; a node that moves keeps its id; a folder that is a workspace of its own is
//! moved and otherwise let be, for what is in it is for the other log.

use model::codec::encode_message;
use model::path::PATH_DEPTH_MAX;
use model::{
    Action, Change, Content, Name, NodeId, NodeKind, NodeRecord, NodeState, RelativePath, Timestamp,
};

use super::{FileNode, View};
use crate::error::{Result, ServerError};

/// The permission bits of new files.
const FILE_MODE: u32 = 0o644;

/// The permission bits of new directories.
const DIRECTORY_MODE: u32 = 0o755;

/// How many nodes one request changes at most.
const NODES_MAX: usize = 1_000_000;

/// What must be so for a request to be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Condition {
    /// Nothing.
    #[default]
    Any,
    /// There is nothing at the path.
    Absent,
    /// There is something.
    Present,
    /// It is one of these versions of nodes.
    Is(Vec<String>),
}

/// Changes, and the node that they are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The changes in order; none where there is nothing to do.
    pub changes: Vec<Change>,
    /// The node whose name was asked for.
    pub subject: NodeId,
    /// Whether there was nothing at the path before.
    pub is_new: bool,
}

/// What a file is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Its content.
    pub content: Content,
    /// When it was modified.
    pub modified: Timestamp,
}

/// A node that a change has made another version of, and what it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stood {
    node: NodeId,
    /// The version that the change has made.
    version: u64,
    /// What it was; nothing where it was not there.
    record: Option<NodeRecord>,
}

impl Condition {
    /// Checks it.
    ///
    /// # Errors
    /// [`ServerError::PreconditionFailed`], with what is there.
    pub fn check(&self, path: &RelativePath, found: Option<&FileNode>) -> Result<()> {
        self.check_version(path, found.map(FileNode::etag))
    }

    /// Checks it by what names the version that is there.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_version(&self, path: &RelativePath, current: Option<String>) -> Result<()> {
        let holds = match self {
            Self::Any => true,
            Self::Absent => current.is_none(),
            Self::Present => current.is_some(),
            Self::Is(etags) => current.as_ref().is_some_and(|current| etags.contains(current)),
        };
        match holds {
            true => Ok(()),
            false => Err(ServerError::PreconditionFailed { path: path.to_string(), current }),
        }
    }
}

fn conflict(path: &RelativePath, reason: &'static str) -> ServerError {
    ServerError::Conflict { what: format!("'{path}'"), reason }
}

/// Returns the directory in which a path lies, which must be there, and the name in it.
fn place(view: &View, path: &RelativePath) -> Result<(FileNode, Name)> {
    let (parent, name) = path.split_last().ok_or_else(|| conflict(path, "is the root"))?;
    match view.find(&parent) {
        Some(node) if node.mounted.is_some() => Err(conflict(&parent, SHARED)),
        Some(node) if node.is_directory() => Ok((node, name)),
        _ => Err(ServerError::Conflict {
            what: format!("'{parent}'"),
            reason: "is no folder; make it first",
        }),
    }
}

/// What is said of a folder that is a workspace of its own.
pub(super) const SHARED: &str = "is shared as a workspace of its own, and is changed there";

pub(super) fn put(node: NodeId, base: u64, record: &NodeRecord) -> Change {
    Change { node, base, action: Action::Put(encode_message(record)) }
}

/// Plans to put a file: a new version of the one that is there, or a new one called `id`.
///
/// # Errors
/// [`ServerError::PreconditionFailed`]; [`ServerError::Conflict`] where its folder is missing, or something else than a
/// file is there.
pub fn put_file(
    view: &View,
    path: &RelativePath,
    condition: &Condition,
    file: &NewFile,
    id: NodeId,
) -> Result<Plan> {
    let found = view.find(path);
    condition.check(path, found.as_ref())?;
    let kind = NodeKind::File(file.content.clone());
    let Some(found) = found else {
        let (parent, name) = place(view, path)?;
        let (mode, modified) = (FILE_MODE, file.modified);
        let record = NodeRecord { parent: parent.id, name, mode, modified, kind, conflict: None };
        return Ok(Plan { changes: vec![put(id, 0, &record)], subject: id, is_new: true });
    };
    let (version, subject) = (found.version, found.id);
    match found.record {
        Some(record) if matches!(record.kind, NodeKind::File(_)) => {
            let next = NodeRecord { kind, modified: file.modified, ..record.clone() };
            let is_same = next == record;
            let changes = if is_same { Vec::new() } else { vec![put(subject, version, &next)] };
            Ok(Plan { changes, subject, is_new: false })
        }
        Some(record) if record.kind.is_directory() => Err(conflict(path, "is a folder")),
        Some(_) => Err(conflict(path, "is a symbolic link")),
        None => Err(conflict(path, "is the root")),
    }
}

/// Plans to make a directory called `id`.
///
/// # Errors
/// [`ServerError::Taken`] where something is there; [`ServerError::Conflict`] where its folder is missing.
pub fn make_folder(view: &View, path: &RelativePath, id: NodeId) -> Result<Plan> {
    if view.find(path).is_some() {
        return Err(ServerError::Taken { what: format!("something at '{path}'") });
    }
    let (parent, name) = place(view, path)?;
    let record = NodeRecord {
        parent: parent.id,
        name,
        mode: DIRECTORY_MODE,
        modified: Timestamp::default(),
        kind: NodeKind::Directory,
        conflict: None,
    };
    Ok(Plan { changes: vec![put(id, 0, &record)], subject: id, is_new: true })
}

/// Plans to set the modification time of a file or link; directories have none that is kept.
///
/// # Errors
/// [`ServerError::NotFound`].
pub fn set_modified(view: &View, path: &RelativePath, modified: Timestamp) -> Result<Plan> {
    let found = view.get(path)?;
    let (subject, version) = (found.id, found.version);
    let changes = match found.record {
        Some(record) if !record.kind.is_directory() && record.modified != modified => {
            vec![put(subject, version, &NodeRecord { modified, ..record })]
        }
        _ => Vec::new(),
    };
    Ok(Plan { changes, subject, is_new: false })
}

/// Plans to bring back what a node was: its content where it is there, or all of it where it was deleted.
///
/// # Errors
/// [`ServerError::NotFound`] for a node that never was; [`ServerError::Conflict`] for one that is of another kind.
pub fn restore(view: &View, node: NodeId, old: &NodeRecord) -> Result<Plan> {
    let unknown = || ServerError::NotFound { what: format!("node {node}") };
    let current = view.tree().get(&node).ok_or_else(unknown)?;
    if !current.record.kind.is_same_kind(&old.kind) {
        let reason = "is of another kind than that version";
        return Err(ServerError::Conflict { what: format!("node {node}"), reason });
    }
    if view.is_frozen(&node) || !current.is_alive() && view.lies_elsewhere(&old.parent) {
        let reason = "lies in a folder that is a workspace of its own by now";
        return Err(ServerError::Conflict { what: format!("node {node}"), reason });
    }
    let record = match current.is_alive() {
        true => NodeRecord {
            mode: old.mode,
            modified: old.modified,
            kind: old.kind.clone(),
            ..current.record.clone()
        },
        false => NodeRecord { conflict: None, ..old.clone() },
    };
    let is_same = current.is_alive() && record == current.record;
    let changes = if is_same { Vec::new() } else { vec![put(node, current.version, &record)] };
    Ok(Plan { changes, subject: node, is_new: !current.is_alive() })
}

/// Plans to bring back a node that was deleted, as it was before, and of a folder what was deleted in the same entry, too. Folders above
/// it that are deleted come back with it.
///
/// # Errors
/// [`ServerError::NotFound`] for a node that never was; [`ServerError::Taken`] for one that is there; [`ServerError::Conflict`] for one of a folder
/// that is a workspace of its own by now.
pub fn revive(view: &View, node: NodeId) -> Result<Plan> {
    let unknown = || ServerError::NotFound { what: format!("node {node}") };
    let Some(first) = view.deleted_node(node) else {
        if view.tree().get(&node).ok_or_else(unknown)?.state == NodeState::Deleted {
            let reason = "cannot come back: what it was in is another workspace by now";
            return Err(ServerError::Conflict { what: format!("node {node}"), reason });
        }
        let what =
            format!("node {node}, which is not deleted (name the version that is to come back),");
        return Err(ServerError::Taken { what });
    };
    let mut plan = restore(view, node, &first.record)?;
    if let Some(deletion) = first.deletion.filter(|_| first.record.kind.is_directory()) {
        let mut below: Vec<_> = view.deleted_by(&deletion, &first.path).collect();
        // A folder stands before what is in it.
        below.sort_by(|one, other| one.path.cmp(&other.path));
        for found in below.iter().filter(|found| found.id != node) {
            plan.changes.extend(restore(view, found.id, &found.record)?.changes);
        }
    }
    Ok(plan)
}

/// Plans to delete a node and everything in it.
///
/// # Errors
/// [`ServerError::NotFound`], [`ServerError::PreconditionFailed`], [`ServerError::Conflict`] for the root.
pub fn delete(view: &View, path: &RelativePath, condition: &Condition) -> Result<Plan> {
    let found = view.find(path);
    condition.check(path, found.as_ref())?;
    let found = found.map_or_else(|| view.get(path), Ok)?;
    if found.record.is_none() {
        return Err(conflict(path, "is the root"));
    }
    let subject = found.id;
    Ok(Plan { changes: deletions(view, found)?, subject, is_new: false })
}

/// Returns the deletion of a node after those of everything in it.
fn deletions(view: &View, node: FileNode) -> Result<Vec<Change>> {
    let below = below(view, node)?;
    refuse_mounted(&below)?;
    let mut changes: Vec<Change> = below
        .into_iter()
        .map(|(node, _)| Change { node: node.id, base: node.version, action: Action::Delete })
        .collect();
    changes.reverse();
    Ok(changes)
}

/// Returns what the nodes of changes are before them, one for each.
pub(crate) fn before(view: &View, changes: &[Change]) -> Vec<Stood> {
    let of = |&Change { node, base, .. }: &Change| {
        let found = view.tree().get(&node).filter(|found| found.is_alive());
        Stood { node, version: base + 1, record: found.map(|found| found.record.clone()) }
    };
    changes.iter().map(of).collect()
}

/// Plans to take back what has stood, in the order in which it came, as far as nobody has changed it since.
pub(crate) fn take_back(view: &View, stood: &[Stood]) -> Vec<Change> {
    let undo = |Stood { node, version, record }: &Stood| {
        let found = view.tree().get(node).filter(|found| found.version == *version)?;
        let current = found.is_alive().then_some(&found.record);
        match record {
            _ if current == record.as_ref() => None,
            // What lies in a folder that is a workspace of its own by now is there what it was.
            Some(_) if view.is_frozen(node) => None,
            Some(record) => Some(put(*node, *version, record)),
            None => Some(Change { node: *node, base: *version, action: Action::Delete }),
        }
    };
    // The last first: a name is free before what had it is there again, and so is a folder before what was in it.
    stood.iter().rev().filter_map(undo).collect()
}

/// Refuses what would delete or copy a folder that is a workspace of its own.
fn refuse_mounted(nodes: &[(FileNode, usize)]) -> Result<()> {
    let name = |node: &FileNode| node.record.as_ref().map(|record| record.name.to_string());
    match nodes.iter().find(|(node, _)| node.mounted.is_some()) {
        Some((node, _)) => Err(ServerError::Conflict {
            what: format!("'{}'", name(node).unwrap_or_default()),
            reason: SHARED,
        }),
        None => Ok(()),
    }
}

/// Returns a node and everything in it, each after its directory and with its depth below the first.
fn below(view: &View, node: FileNode) -> Result<Vec<(FileNode, usize)>> {
    let mut found = Vec::new();
    let mut waiting = vec![(node, 0)];
    while let Some((node, depth)) = waiting.pop() {
        if node.is_directory() {
            let children = view.list(node.id, None, usize::MAX);
            waiting.extend(children.into_iter().map(|child| (child, depth + 1)));
        }
        found.push((node, depth));
        check_count(found.len())?;
    }
    Ok(found)
}

/// Refuses a request that changes too many nodes.
pub(super) fn check_count(nodes: usize) -> Result<()> {
    let reason = || format!("more than {NODES_MAX} nodes are in it");
    match nodes > NODES_MAX {
        true => Err(ServerError::Invalid { what: "folder", reason: reason() }),
        false => Ok(()),
    }
}

/// Where something goes, and what is to become of what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The path.
    pub path: RelativePath,
    /// Whether what is there is deleted; otherwise nothing is done.
    pub overwrite: bool,
}

/// Returns the place of a destination, and the deletions that make room there.
fn make_room(
    view: &View,
    source: &FileNode,
    from: &RelativePath,
    to: &Destination,
) -> Result<(FileNode, Name, Vec<Change>)> {
    let (parent, name) = place(view, &to.path)?;
    let there = view.find(&to.path);
    if source.is_directory() && to.path.starts_with(from) {
        return Err(conflict(&to.path, "lies in what is to go there"));
    }
    if from.starts_with(&to.path) {
        return Err(conflict(from, "lies in what would be replaced"));
    }
    let depth = below(view, source.clone())?.iter().map(|(_, depth)| *depth).max();
    if to.path.depth() + depth.unwrap_or(0) > PATH_DEPTH_MAX {
        return Err(conflict(&to.path, "would have folders in it that lie too deep"));
    }
    match there {
        Some(_) if !to.overwrite => {
            Condition::Absent.check(&to.path, there.as_ref())?;
            Ok((parent, name, Vec::new()))
        }
        Some(there) => Ok((parent, name, deletions(view, there)?)),
        None => Ok((parent, name, Vec::new())),
    }
}

/// Plans to move or rename a node.
///
/// # Errors
/// [`ServerError::NotFound`]; [`ServerError::PreconditionFailed`] where something is there; [`ServerError::Conflict`]
/// where it would lie in itself, or the folder is missing.
pub fn move_node(
    view: &View,
    from: &RelativePath,
    to: &Destination,
    condition: &Condition,
) -> Result<Plan> {
    let source = view.get(from)?;
    condition.check(from, Some(&source))?;
    let (subject, version) = (source.id, source.version);
    let Some(record) = source.record.clone() else { return Err(conflict(from, "is the root")) };
    if *from == to.path {
        return Ok(Plan { changes: Vec::new(), subject, is_new: false });
    }
    let (parent, name, mut changes) = make_room(view, &source, from, to)?;
    let is_new = changes.is_empty();
    let record = NodeRecord { parent: parent.id, name, conflict: None, ..record };
    changes.push(put(subject, version, &record));
    Ok(Plan { changes, subject, is_new })
}

/// Plans to copy a node, with everything in it unless only it is wanted. Chunks are shared, so nothing is moved.
///
/// # Errors
/// As [`move_node`].
pub fn copy_node(
    view: &View,
    from: &RelativePath,
    to: &Destination,
    is_deep: bool,
    new_id: &mut dyn FnMut() -> NodeId,
) -> Result<Plan> {
    let source = view.get(from)?;
    if *from == to.path {
        return Err(conflict(from, "cannot be copied to itself"));
    }
    let (parent, name, mut changes) = make_room(view, &source, from, to)?;
    let is_new = changes.is_empty();
    let Some(record) = source.record.clone() else { return Err(conflict(from, "is the root")) };
    let subject = new_id();
    let top = NodeRecord { parent: parent.id, name, conflict: None, ..record };
    changes.push(put(subject, 0, &top));
    let mut copies = std::collections::HashMap::from([(source.id, subject)]);
    let inside = if is_deep { below(view, source)? } else { vec![(source, 0)] };
    refuse_mounted(&inside)?;
    for (node, _) in inside.into_iter().skip(1) {
        let Some(record) = node.record else { continue };
        let Some(&parent) = copies.get(&record.parent) else { continue };
        let id = new_id();
        copies.insert(node.id, id);
        changes.push(put(id, 0, &NodeRecord { parent, conflict: None, ..record }));
    }
    Ok(Plan { changes, subject, is_new })
}
