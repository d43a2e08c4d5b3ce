//! What somebody changes who has a whole tree in memory and no folder, such as a page in a browser, as changes of nodes. Pure.
//!
//! *Participants*: whoever has folded a log into a [`Tree`], and proposes. *Goals*: what is proposed rests on versions that somebody has
//! seen, so that of two changes at once the earlier one stands and the later one is refused or kept beside it, never put over it.
//! *Non-goals*: packs ([`writing`](crate::writing)); folders on a disk (the engine of devices). *Invariants*: a folder stands before what
//! is put into it, and a deleted one after what was in it; a folder that is a workspace of its own, and what lies in it, is let be.

mod copying;
mod moving;

use model::codec::encode_message;
use model::node::ConflictOrigin;
use model::path::{InvalidPath, PATH_DEPTH_MAX};
use model::tree::{NodeState, PathError, path_of};
use model::{
    Action, Change, Content, Mounts, Name, NodeId, NodeKind, NodeRecord, Timestamp, Tree, TreeNode,
    TreeStore,
};

pub use copying::{copy_all, delete_copies};
pub use moving::{Move, move_all, move_back};

/// The permission bits of new files.
const FILE_MODE: u32 = 0o644;

/// The permission bits of new folders.
const DIRECTORY_MODE: u32 = 0o755;

/// The name that devices keep for themselves: nothing of this name is synced.
const SERVICE_NAME: &[u8] = b".syncline";

/// How many changes go into one commit, as devices do it.
const GROUP_CHANGES: usize = 8192;

/// How many bytes of payloads go into one commit.
const GROUP_LENGTH: usize = 8 * 1024 * 1024;

/// Why something cannot be changed as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// What was to be changed, or its folder, is not there.
    #[error("there is no node {node} any more")]
    NoSuch {
        /// The node.
        node: NodeId,
    },
    /// Somebody else has changed it since it was looked at.
    #[error("node {node} was changed by somebody else meanwhile")]
    Changed {
        /// The node.
        node: NodeId,
    },
    /// Something of the name is there.
    #[error("there is something called '{name}' already")]
    Taken {
        /// The name.
        name: String,
    },
    /// No device would take the name, or the path with it.
    #[error("the name cannot be: {reason}")]
    Name {
        /// Why not.
        reason: String,
    },
    /// It is a workspace of its own, or lies in one, or would come there.
    #[error("node {node} belongs to a workspace of its own")]
    Mounted {
        /// The node.
        node: NodeId,
    },
    /// A folder would come to lie in itself.
    #[error("node {node} would come to lie in itself")]
    IntoItself {
        /// The node.
        node: NodeId,
    },
    /// It is in no conflict.
    #[error("node {node} is in no conflict")]
    NoConflict {
        /// The node.
        node: NodeId,
    },
    /// Nothing that somebody has seen lies beside it.
    #[error("node {node} has nothing beside it that was seen")]
    Unseen {
        /// The node.
        node: NodeId,
    },
    /// It is of another kind than what it should take the place of.
    #[error("node {node} is of another kind than what it conflicts with")]
    OtherKind {
        /// The node.
        node: NodeId,
    },
    /// A cleanup has removed its content.
    #[error("a cleanup has removed the content of node {node}")]
    Dropped {
        /// The node.
        node: NodeId,
    },
}

impl From<InvalidPath> for ChangeError {
    fn from(error: InvalidPath) -> Self {
        Self::Name { reason: error.to_string() }
    }
}

/// Reads a name that somebody has typed.
///
/// # Errors
/// [`ChangeError::Name`].
pub fn name_of(text: &str) -> Result<Name, ChangeError> {
    match text.as_bytes() == SERVICE_NAME {
        true => Err(ChangeError::Name { reason: "devices keep it for themselves".to_owned() }),
        false => Ok(Name::new(text)?),
    }
}

/// A file that is to be put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePut {
    /// The folder.
    pub folder: NodeId,
    /// The name in it.
    pub name: Name,
    /// The file that it is to be a new version of, as it was when whoever puts looked.
    pub over: Option<FileBase>,
    /// The node that it becomes where it is none of those that are there.
    pub id: NodeId,
    /// When it was modified.
    pub modified: Timestamp,
    /// What is put before the extension of its name where it is kept beside another; nothing where it is refused then.
    pub label: Option<String>,
}

/// A file as somebody has seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBase {
    /// The node.
    pub node: NodeId,
    /// Its version.
    pub version: u64,
    /// Its content.
    pub content: Content,
}

/// A change of a file, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPut {
    /// The change; nothing where the file is as it shall be.
    pub change: Option<Change>,
    /// The node.
    pub node: NodeId,
    /// Whether it is kept beside what somebody else has made of the file meanwhile.
    pub is_beside: bool,
}

impl FilePut {
    /// Looks where a file goes, before it is read: over the file of that name, if there is one.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn new(
        tree: &Tree,
        (folder, name): (NodeId, Name),
        (id, modified): (NodeId, Timestamp),
        label: Option<String>,
    ) -> Result<Self, ChangeError> {
        check_place(tree, folder, &name)?;
        let there = child(tree, &folder, &name);
        let over = match there {
            None => None,
            Some((node, TreeNode { version, record, .. })) => match &record.kind {
                NodeKind::File(content) => {
                    Some(FileBase { node, version: *version, content: content.clone() })
                }
                _ => return Err(ChangeError::Taken { name: name.to_string() }),
            },
        };
        Ok(Self { folder, name, over, id, modified, label })
    }

    /// Plans to put the file as things are now. It becomes a new version only of the content that was seen; what was moved is followed, and
    /// what somebody else has made the very same meanwhile is let be.
    ///
    /// # Errors
    /// [`ChangeError::Mounted`]; [`ChangeError::Changed`] where it would be kept beside another, and is not to be.
    pub fn plan(&self, tree: &Tree, content: &Content) -> Result<PlannedPut, ChangeError> {
        let kind = NodeKind::File(content.clone());
        let Some(base) = &self.over else {
            refuse_mounted(tree, self.folder)?;
            return Ok(self.planned_new(self.name.clone(), kind, None));
        };
        let now = tree.get(&base.node).filter(|node| node.is_alive());
        refuse_mounted(tree, now.map_or(self.folder, |now| now.record.parent))?;
        if let Some(now) = now {
            let is_as_seen = now.version == base.version
                || now.record.kind == NodeKind::File(base.content.clone());
            if is_as_seen {
                let record = NodeRecord { kind, modified: self.modified, ..now.record.clone() };
                let is_same = record == now.record;
                let change = (!is_same).then(|| put(base.node, now.version, &record));
                return Ok(PlannedPut { change, node: base.node, is_beside: false });
            }
        }
        let folder = now.map_or(self.folder, |now| now.record.parent);
        let wanted = now.map_or(&self.name, |now| &now.record.name);
        let there = child(tree, &folder, wanted);
        if let Some((node, _)) = there.filter(|(_, found)| found.record.kind == kind) {
            // Whoever was first has put the very same: it stands as they have left it, with their time and mode.
            return Ok(PlannedPut { change: None, node, is_beside: false });
        }
        let is_free = |name: &Name| child(tree, &folder, name).is_none();
        if now.is_none() && is_free(wanted) {
            // What was deleted is brought back by whoever has changed it.
            return Ok(self.planned_new(wanted.clone(), kind, None));
        }
        let label = self.label.as_ref().ok_or(ChangeError::Changed { node: base.node })?;
        let mut names = (0..).map(|attempt| wanted.conflict(label, attempt));
        let name = names.find(|name| is_free(name)).expect("some number is free");
        let origin = ConflictOrigin { node: base.node, base: base.version };
        let beside = Self { folder, ..self.clone() };
        Ok(PlannedPut { is_beside: true, ..beside.planned_new(name, kind, Some(origin)) })
    }

    fn planned_new(
        &self,
        name: Name,
        kind: NodeKind,
        conflict: Option<ConflictOrigin>,
    ) -> PlannedPut {
        let (parent, modified) = (self.folder, self.modified);
        let record = NodeRecord { parent, name, mode: FILE_MODE, modified, kind, conflict };
        let change = Some(put(self.id, 0, &record));
        PlannedPut { change, node: self.id, is_beside: false }
    }
}

/// Plans to make a folder called `id`.
///
/// # Errors
/// [`ChangeError`].
pub fn make_folder(
    tree: &Tree,
    folder: NodeId,
    name: Name,
    id: NodeId,
) -> Result<Vec<Change>, ChangeError> {
    check_place(tree, folder, &name)?;
    refuse_taken(tree, &folder, &name, id)?;
    let record = NodeRecord {
        parent: folder,
        name,
        mode: DIRECTORY_MODE,
        modified: Timestamp::default(),
        kind: NodeKind::Directory,
        conflict: None,
    };
    Ok(vec![put(id, 0, &record)])
}

/// Plans to move or rename a node, as it is now.
///
/// # Errors
/// [`ChangeError`].
pub(crate) fn relocate(
    tree: &Tree,
    node: NodeId,
    folder: NodeId,
    name: Name,
) -> Result<Vec<Change>, ChangeError> {
    let found = living(tree, node)?;
    refuse_mounted(tree, found.record.parent)?;
    if (found.record.parent, &found.record.name) == (folder, &name) {
        return Ok(Vec::new());
    }
    let depth = check_place(tree, folder, &name)?;
    refuse_into_itself(tree, node, folder)?;
    refuse_taken(tree, &folder, &name, node)?;
    let deepest = below(tree, node).iter().map(|(_, depth)| *depth).max().unwrap_or(0);
    if depth + deepest > PATH_DEPTH_MAX {
        return Err(InvalidPath::PathTooLong { depth: depth + deepest, length: 0 }.into());
    }
    let record = NodeRecord { parent: folder, name, conflict: None, ..found.record.clone() };
    Ok(vec![put(node, found.version, &record)])
}

/// Plans to make a node again what it was in an older version, where it is now and under the name that it has now.
///
/// # Errors
/// [`ChangeError::NoSuch`], [`ChangeError::Mounted`].
pub fn revert(tree: &Tree, node: NodeId, old: &NodeRecord) -> Result<Vec<Change>, ChangeError> {
    let found = living(tree, node)?;
    refuse_mounted(tree, found.record.parent)?;
    let NodeRecord { mode, modified, .. } = *old;
    let record = NodeRecord { mode, modified, kind: old.kind.clone(), ..found.record.clone() };
    let is_same = record == found.record;
    Ok(if is_same { Vec::new() } else { vec![put(node, found.version, &record)] })
}

/// Plans to delete a node, if it has the version that somebody has seen, and all that is in it.
///
/// # Errors
/// [`ChangeError`].
pub fn delete(tree: &Tree, node: NodeId, version: u64) -> Result<Vec<Change>, ChangeError> {
    let found = living(tree, node)?;
    if found.version != version {
        return Err(ChangeError::Changed { node });
    }
    refuse_mounted(tree, found.record.parent)?;
    let Ok(mounts) = Mounts::of(tree);
    let below = below(tree, node);
    if let Some((node, _)) = below.iter().find(|(node, _)| mounts.contains(node)) {
        return Err(ChangeError::Mounted { node: *node });
    }
    let versions = below.iter().rev().filter_map(|(id, _)| Some((*id, tree.get(id)?.version)));
    let change = |(node, base)| Change { node, base, action: Action::Delete };
    Ok(versions.map(change).collect())
}

/// Plans to delete a node, if it has the version that somebody has seen, and nothing is in it.
///
/// # Errors
/// As [`delete`]; [`ChangeError::Changed`] for a folder with something in it.
pub fn delete_one(tree: &Tree, node: NodeId, version: u64) -> Result<Vec<Change>, ChangeError> {
    let changes = delete(tree, node, version)?;
    if changes.len() > 1 { Err(ChangeError::Changed { node }) } else { Ok(changes) }
}

/// Plans to mark a file, if it has the version that somebody has seen, as a copy that was kept beside another one.
///
/// # Errors
/// [`ChangeError::NoSuch`], also where the other one never was in that version; [`ChangeError::Changed`], also for what is a copy
/// already; [`ChangeError::Mounted`].
pub fn mark(
    tree: &Tree,
    node: NodeId,
    version: u64,
    origin: ConflictOrigin,
) -> Result<Vec<Change>, ChangeError> {
    let found = living(tree, node)?;
    if found.version != version || found.record.conflict.is_some() {
        return Err(ChangeError::Changed { node });
    }
    refuse_mounted(tree, found.record.parent)?;
    let is_known = |original: &TreeNode| origin.base <= original.version;
    if origin.node == node || !tree.get(&origin.node).is_some_and(is_known) {
        return Err(ChangeError::NoSuch { node: origin.node });
    }
    let record = NodeRecord { conflict: Some(origin), ..found.record.clone() };
    Ok(vec![put(node, found.version, &record)])
}

/// Plans to take back deletions, as they were proposed: what nobody has touched since is there again as it was.
///
/// # Errors
/// [`ChangeError::Changed`] where nothing is left to take back.
pub fn restore(tree: &Tree, deletions: &[Change]) -> Result<Vec<Change>, ChangeError> {
    let Ok(mounts) = Mounts::of(tree);
    let mut changes = Vec::with_capacity(deletions.len());
    // A folder was deleted after what was in it, and is there again before that.
    for deletion in deletions.iter().rev() {
        let deleted = tree.get(&deletion.node).filter(|found| {
            found.state == NodeState::Deleted && found.version == deletion.base + 1
        });
        let Some(found) = deleted else { continue };
        let Ok(is_mounted) = mounts.freeze(tree, &deletion.node);
        if !is_mounted {
            let record = NodeRecord { conflict: None, ..found.record.clone() };
            changes.push(put(deletion.node, found.version, &record));
        }
    }
    match deletions.last() {
        Some(last) if changes.is_empty() => Err(ChangeError::Changed { node: last.node }),
        _ => Ok(changes),
    }
}

/// Divides changes into those of one commit each; none for none.
pub fn groups(changes: Vec<Change>) -> Vec<Vec<Change>> {
    let mut groups: Vec<Vec<Change>> = Vec::new();
    let mut length = 0;
    for change in changes {
        let more = match &change.action {
            Action::Put(payload) => payload.len(),
            Action::Delete => 0,
        };
        let count = groups.last().map_or(GROUP_CHANGES, Vec::len);
        if count >= GROUP_CHANGES || length + more > GROUP_LENGTH {
            groups.push(Vec::new());
            length = 0;
        }
        length += more;
        groups.last_mut().expect("there is a group").push(change);
    }
    groups
}

pub(crate) fn put(node: NodeId, base: u64, record: &NodeRecord) -> Change {
    Change { node, base, action: Action::Put(encode_message(record)) }
}

/// Returns a node that is there, or the one that it has become one with; nothing where it was deleted, or lies in a folder that is a
/// workspace of its own.
pub fn follow(tree: &Tree, mounts: &Mounts, mut id: NodeId) -> Option<NodeId> {
    // Each is one with a later one, so this ends; it does so also where somebody has forged a tree.
    for _ in 0..tree.node_count() {
        match tree.get(&id) {
            Some(TreeNode { state: NodeState::MergedInto(holder), .. }) => id = *holder,
            _ => break,
        }
    }
    let is_there = id == NodeId::ROOT || tree.get(&id).is_some_and(TreeNode::is_alive);
    let Ok(is_frozen) = mounts.freeze(tree, &id);
    (is_there && !is_frozen).then_some(id)
}

fn child<'a>(tree: &'a Tree, folder: &NodeId, name: &Name) -> Option<(NodeId, &'a TreeNode)> {
    let Ok(holder) = tree.child(folder, name);
    holder.and_then(|id| Some((id, tree.get(&id)?)))
}

pub(crate) fn living(tree: &Tree, node: NodeId) -> Result<&TreeNode, ChangeError> {
    tree.get(&node).filter(|found| found.is_alive()).ok_or(ChangeError::NoSuch { node })
}

/// Checks that something may come to lie in a folder under a name; returns at which depth.
pub(crate) fn check_place(tree: &Tree, folder: NodeId, name: &Name) -> Result<usize, ChangeError> {
    if folder != NodeId::ROOT && !living(tree, folder)?.is_directory() {
        return Err(ChangeError::NoSuch { node: folder });
    }
    refuse_mounted(tree, folder)?;
    let path = path_of(tree, &folder).map_err(|error| match error {
        PathError::Path(error) => ChangeError::from(error),
        PathError::Store(never) => match never {},
    })?;
    let path = path.ok_or(ChangeError::NoSuch { node: folder })?;
    Ok(path.join(name)?.depth())
}

pub(crate) fn refuse_mounted(tree: &Tree, folder: NodeId) -> Result<(), ChangeError> {
    let Ok(mounts) = Mounts::of(tree);
    let Ok(is_mounted) = mounts.hold(tree, &folder);
    if is_mounted { Err(ChangeError::Mounted { node: folder }) } else { Ok(()) }
}

fn refuse_into_itself(tree: &Tree, node: NodeId, folder: NodeId) -> Result<(), ChangeError> {
    let mut above = folder;
    while above != NodeId::ROOT {
        if above == node {
            return Err(ChangeError::IntoItself { node });
        }
        above = living(tree, above)?.record.parent;
    }
    Ok(())
}

pub(crate) fn refuse_taken(
    tree: &Tree,
    folder: &NodeId,
    name: &Name,
    node: NodeId,
) -> Result<(), ChangeError> {
    match child(tree, folder, name) {
        Some((holder, _)) if holder != node => Err(ChangeError::Taken { name: name.to_string() }),
        _ => Ok(()),
    }
}

/// Returns a node and everything in it, each after its folder and with its depth below the first.
fn below(tree: &Tree, node: NodeId) -> Vec<(NodeId, usize)> {
    let (mut found, mut waiting) = (Vec::new(), vec![(node, 0)]);
    while let Some((node, depth)) = waiting.pop() {
        waiting.extend(tree.children(&node).map(|(_, child)| (*child, depth + 1)));
        found.push((node, depth));
    }
    found
}

#[cfg(test)]
pub(crate) mod tests;
