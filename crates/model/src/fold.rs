//! The pure rule that turns the log into a tree; every device runs it and gets the same tree.
//!
//! *Participants*: every device that reads a log. *Goals*: one tree for all without talking; nothing that anybody
//! added is lost; every living node can be reached from the root. *Non-goals*: asking anybody; it settles what
//! [`crate::decide`] cannot see because it needs names.
//! *Invariants*: a living node's parent is the root or a living directory; no two living nodes share parent and
//! name; there is no cycle; the kind of a node never changes.
//!
//! The rules, in words (`docs/design/sync.md`, "Fold"):
//! 1. A name belongs to its first holder. A later directory of that name becomes one with the holder if that is a
//!    directory, too; so does a later file or link of equal matter. Any other later node is kept under a conflict name,
//!    unless the holder leaves the name in the same commit.
//! 2. A node put into a deleted directory brings the directory back: an addition wins over a deletion.
//! 3. Deleting a directory in which something lives is void.
//! 4. A move that would close a cycle is void; the rest of the change counts. So is one into a mounted folder ([`crate::mounts`]) or out of
//!    it; what is new or deleted and should go into one goes into the root. A mounted folder is not deleted.
//! 5. A change whose payload cannot be opened or read, or that would change the kind, is void; so is every change of a commit
//!    that nobody who may vouches for.
//! 6. Settings of the workspace ([`NodeId::is_settings`]) are kept beside the tree as they were proposed. Of a fence only the
//!    place is kept. A list of members for which the owner does not vouch is void; the one before the commit says who may write.
//!
//! A void change still counts as a version, because `decide` has accepted it.

mod opener;

use std::collections::{HashMap, HashSet};

pub use opener::{Opener, Payload, PlainOpener};

use crate::codec::decode_message;
use crate::commit::Head;
use crate::decide::{Outcome, decide};
use crate::entry::Entry;
use crate::fence::Fence;
use crate::ids::NodeId;
use crate::mounts::Mounts;
use crate::node::{ConflictOrigin, NodeRecord};
use crate::path::Name;
use crate::tree::{NodeState, SETTINGS_LENGTH_MAX, TreeNode, TreeStore};

/// Something in an accepted change that the fold did differently than proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoldNote {
    /// The name was taken; the node is kept under a conflict name.
    NameTaken {
        /// The node that came later.
        node: NodeId,
        /// The node that holds the name.
        holder: NodeId,
    },
    /// The node is one with the holder of its name.
    Merged {
        /// The node that came later.
        node: NodeId,
        /// The node that it is one with.
        holder: NodeId,
    },
    /// A deleted directory is back because something was put into it.
    Revived {
        /// The directory.
        node: NodeId,
    },
    /// The deletion is void because something lives in the directory.
    NotEmpty {
        /// The directory.
        node: NodeId,
    },
    /// The move is void because it would close a cycle, or its target is no directory.
    MoveVoid {
        /// The node.
        node: NodeId,
    },
    /// The change is void because its payload is not a record of this node.
    Unreadable {
        /// The node.
        node: NodeId,
        /// Why.
        reason: String,
    },
}

impl FoldNote {
    /// Returns the node that is not as it was proposed.
    pub fn node(&self) -> NodeId {
        match self {
            Self::NameTaken { node, .. }
            | Self::Merged { node, .. }
            | Self::Revived { node }
            | Self::NotEmpty { node }
            | Self::MoveVoid { node }
            | Self::Unreadable { node, .. } => *node,
        }
    }
}

/// What an entry did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folded {
    /// Why the commit counted for nothing but its versions, if it did.
    pub void: Option<String>,
    /// One per change of the commit.
    pub outcomes: Vec<Outcome>,
    /// What was done differently than proposed.
    pub notes: Vec<FoldNote>,
    /// Every node that was set, in order; a node may stand here twice.
    pub touched: Vec<NodeId>,
    /// What a cleanup removes from here on.
    pub fence: Option<Fence>,
    /// Whether the device had not seen the last fence, so that nothing of the commit counts, its packs included.
    pub is_fenced: bool,
}

/// Folds one entry into the tree: decides its changes and carries out the accepted ones.
///
/// # Errors
/// Only those of the store; the tree is then half changed and must be rolled back by its keeper.
pub fn fold<T: TreeStore>(
    tree: &mut T,
    entry: &Entry,
    opener: &dyn Opener,
) -> Result<Folded, T::Error> {
    let commit = &entry.commit;
    let previous = Head { seq: entry.seq - 1, hash: entry.previous };
    let outcomes = decide(tree, &previous, commit)?;
    let is_fenced = commit.seen.seq < tree.version(&NodeId::FENCE)?;
    let members = match commit.seal {
        Some(_) => members_of(tree)?,
        None => None,
    };
    let void = opener.check(commit, members.as_deref()).err();
    let mounts = Mounts::of(tree)?;
    let mut folder = Folder {
        tree,
        opener,
        mounts,
        held: HashMap::new(),
        seq: entry.seq,
        folded: Folded::default(),
        refused: Vec::new(),
        good_parents: HashSet::new(),
    };
    for (number, outcome) in outcomes.iter().enumerate() {
        let Outcome::Accepted { version } = outcome else { continue };
        let payload = match &void {
            Some(reason) => Err(reason.clone()),
            None => opener.open(commit, number),
        };
        folder.apply(commit.changes[number].node, payload, *version)?;
    }
    folder.give_left_names()?;
    Ok(Folded { outcomes, void, is_fenced, ..folder.folded })
}

/// Returns who else may write in a sealed workspace, as the log before has it; nothing where it says nothing.
///
/// # Errors
/// Only those of the store.
pub fn members_of<T: TreeStore>(tree: &T) -> Result<Option<Vec<u8>>, T::Error> {
    let node = tree.node(&NodeId::MEMBERS)?;
    Ok(node.and_then(|node| match node.state {
        NodeState::Settings(payload) => Some(payload),
        _ => None,
    }))
}

struct Folder<'a, T> {
    tree: &'a mut T,
    opener: &'a dyn Opener,
    /// The folders that are workspaces of their own.
    mounts: Mounts,
    /// Directories that were looked up, and whether what lies in them is in a mounted folder, as long as none is moved.
    held: HashMap<NodeId, bool>,
    seq: u64,
    folded: Folded,
    refused: Vec<Refused>,
    /// Living directories, so that the parent of a thousand new files is looked at once. The ancestors of a living
    /// directory live, and only deletions end that.
    good_parents: HashSet<NodeId>,
}

/// A node that did not get the name that was proposed, since another one had it.
struct Refused {
    id: NodeId,
    /// What it is called instead.
    name: Name,
    wanted: Name,
    /// What the proposal said of conflicts.
    conflict: Option<ConflictOrigin>,
}

impl<T: TreeStore> Folder<'_, T> {
    /// Carries out one accepted change: a deletion, or a put of what the payload was opened to.
    fn apply(
        &mut self,
        id: NodeId,
        payload: Result<Payload<'_>, String>,
        version: u64,
    ) -> Result<(), T::Error> {
        let old = self.tree.node(&id)?;
        match payload {
            Err(reason) => self.unreadable(id, version, old, &reason),
            Ok(payload) if id == NodeId::FENCE => self.fence(payload, version, old),
            Ok(payload) if id == NodeId::MEMBERS => self.members(payload, version, old),
            Ok(payload) if id.is_settings() => self.settings(id, payload, version, old),
            Ok(None) => self.delete(id, version, old),
            Ok(Some(payload)) => match decode_message::<NodeRecord>(&payload) {
                Ok(record) => self.put(id, version, old, record),
                Err(error) => self.unreadable(id, version, old, &error),
            },
        }
    }

    fn set(&mut self, id: NodeId, node: TreeNode) -> Result<(), T::Error> {
        self.folded.touched.push(id);
        self.tree.set(id, node)
    }

    fn note(&mut self, note: FoldNote) {
        self.folded.notes.push(note);
    }

    /// Counts the version of a change that has no other effect. A node that nobody could ever read is kept for
    /// its version alone: every coordinator counts it, so every device must.
    fn unreadable(
        &mut self,
        id: NodeId,
        version: u64,
        old: Option<TreeNode>,
        reason: &dyn std::fmt::Display,
    ) -> Result<(), T::Error> {
        self.note(FoldNote::Unreadable { node: id, reason: reason.to_string() });
        self.set(id, TreeNode { version, ..old.unwrap_or_else(TreeNode::unreadable) })
    }

    /// Keeps settings as they were proposed, for whom they mean something. They are never deleted.
    fn settings(
        &mut self,
        id: NodeId,
        payload: Payload<'_>,
        version: u64,
        old: Option<TreeNode>,
    ) -> Result<(), T::Error> {
        match payload {
            Some(payload) if payload.len() <= SETTINGS_LENGTH_MAX => {
                if id == NodeId::MOUNTS {
                    match decode_message(&payload) {
                        Ok(mounts) => self.mounts = mounts,
                        Err(error) => return self.unreadable(id, version, old, &error),
                    }
                    self.held.clear();
                }
                self.set(id, TreeNode::settings(version, payload.into_owned()))
            }
            Some(_) => self.unreadable(id, version, old, &"they are too long"),
            None => self.unreadable(id, version, old, &"settings stay"),
        }
    }

    /// Keeps who else may write, if the owner says so and has not said something else since.
    fn members(
        &mut self,
        payload: Payload<'_>,
        version: u64,
        old: Option<TreeNode>,
    ) -> Result<(), T::Error> {
        let known = members_of(self.tree)?;
        let checked = match &payload {
            Some(payload) => self.opener.check_members(known.as_deref(), payload),
            None => Ok(()),
        };
        match checked {
            Ok(()) => self.settings(NodeId::MEMBERS, payload, version, old),
            Err(reason) => self.unreadable(NodeId::MEMBERS, version, old, &reason),
        }
    }

    /// Keeps where a fence stands, and tells what it says. One that cannot be read stands there all the same, and removes
    /// nothing.
    fn fence(
        &mut self,
        payload: Payload<'_>,
        version: u64,
        old: Option<TreeNode>,
    ) -> Result<(), T::Error> {
        let fence = payload.ok_or_else(|| "fences stay".to_owned());
        match fence.and_then(|payload| decode_message(&payload).map_err(|error| error.to_string()))
        {
            Ok(fence) => self.folded.fence = Some(fence),
            Err(reason) => return self.unreadable(NodeId::FENCE, version, old, &reason),
        }
        self.set(NodeId::FENCE, TreeNode::settings(version, Vec::new()))
    }

    fn delete(&mut self, id: NodeId, version: u64, old: Option<TreeNode>) -> Result<(), T::Error> {
        let old = old.expect("decide accepts the deletion of known nodes only");
        self.good_parents.remove(&id);
        let state = match old.state {
            NodeState::Alive if self.mounts.contains(&id) || self.tree.has_children(&id)? => {
                self.note(FoldNote::NotEmpty { node: id });
                NodeState::Alive
            }
            NodeState::Alive => NodeState::Deleted,
            other => other,
        };
        self.set(id, TreeNode { version, state, ..old })
    }

    fn put(
        &mut self,
        id: NodeId,
        version: u64,
        old: Option<TreeNode>,
        mut record: NodeRecord,
    ) -> Result<(), T::Error> {
        if let Some(old) = &old {
            let readable = old.state != NodeState::Unreadable;
            if readable && !old.record.kind.is_same_kind(&record.kind) {
                return self.unreadable(
                    id,
                    version,
                    Some(old.clone()),
                    &"the kind of a node never changes",
                );
            }
            if let NodeState::MergedInto(_) = old.state {
                return self.unreadable(
                    id,
                    version,
                    Some(old.clone()),
                    &"the node is one with another",
                );
            }
        }
        // Only a directory that is there already can come to lie in itself.
        let is_quick = old.is_none() || !record.kind.is_directory();
        let usable = match is_quick && record.parent != id && self.is_good_parent(record.parent)? {
            true => Some(record.parent),
            false => self.usable_parent(id, record.parent)?,
        };
        match usable {
            Some(parent) if !self.crosses_border(old.as_ref(), parent)? => record.parent = parent,
            _ => {
                self.note(FoldNote::MoveVoid { node: id });
                match old.as_ref().filter(|old| old.is_alive()) {
                    Some(old) => {
                        record.parent = old.record.parent;
                        record.name = old.record.name.clone();
                    }
                    None => record.parent = NodeId::ROOT,
                }
            }
        }
        if !self.good_parents.contains(&record.parent) {
            self.revive_ancestors(record.parent)?;
        }
        if record.kind.is_directory() && old.is_some() {
            self.held.clear();
        }
        let state = self.claim_name(id, &mut record, old.is_none())?;
        self.set(id, TreeNode { version, state, record })
    }

    /// Tells whether a node would come into a mounted folder or out of it.
    fn crosses_border(&mut self, old: Option<&TreeNode>, parent: NodeId) -> Result<bool, T::Error> {
        if self.mounts.is_empty() {
            return Ok(false);
        }
        let was_inside = match old.filter(|old| old.is_alive()) {
            Some(old) => self.is_held(old.record.parent)?,
            None => false,
        };
        Ok(self.is_held(parent)? != was_inside)
    }

    fn is_held(&mut self, directory: NodeId) -> Result<bool, T::Error> {
        if let Some(known) = self.held.get(&directory) {
            return Ok(*known);
        }
        let is_held = self.mounts.hold(&*self.tree, &directory)?;
        self.held.insert(directory, is_held);
        Ok(is_held)
    }

    /// Tells whether a node is a living directory.
    fn is_good_parent(&mut self, parent: NodeId) -> Result<bool, T::Error> {
        if parent == NodeId::ROOT || self.good_parents.contains(&parent) {
            return Ok(true);
        }
        let node = self.tree.node(&parent)?;
        let is_good = node.is_some_and(|node| node.is_alive() && node.is_directory());
        if is_good {
            self.good_parents.insert(parent);
        }
        Ok(is_good)
    }

    /// Finds the directory that a node proposed for `parent` goes into, or nothing where that is not a
    /// directory, not known, or lies in the node itself.
    fn usable_parent(&self, id: NodeId, parent: NodeId) -> Result<Option<NodeId>, T::Error> {
        let parent = self.follow_merges(parent)?;
        let mut ancestor = parent;
        while ancestor != NodeId::ROOT {
            if ancestor == id {
                return Ok(None);
            }
            match self.tree.node(&ancestor)? {
                Some(node) if node.is_directory() => {
                    ancestor = self.follow_merges(node.record.parent)?;
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(parent))
    }

    fn follow_merges(&self, mut id: NodeId) -> Result<NodeId, T::Error> {
        while id != NodeId::ROOT {
            match self.tree.node(&id)?.map(|node| node.state) {
                Some(NodeState::MergedInto(holder)) => id = holder,
                _ => break,
            }
        }
        Ok(id)
    }

    /// Brings back every deleted directory from `directory` up to the root, topmost first.
    fn revive_ancestors(&mut self, directory: NodeId) -> Result<(), T::Error> {
        let mut deleted = Vec::new();
        let mut ancestor = directory;
        while ancestor != NodeId::ROOT {
            let node = self.tree.node(&ancestor)?.expect("usable_parent has seen every ancestor");
            let above = self.follow_merges(node.record.parent)?;
            if node.state == NodeState::Deleted {
                deleted.push((ancestor, TreeNode { state: NodeState::Alive, ..node }));
            }
            ancestor = above;
        }
        for (id, mut node) in deleted.into_iter().rev() {
            node.record.parent = self.follow_merges(node.record.parent)?;
            // A revived directory keeps its identity, so it cannot become one with a holder of its name.
            node.state = self.claim_name(id, &mut node.record, false)?;
            self.note(FoldNote::Revived { node: id });
            self.set(id, node)?;
        }
        Ok(())
    }

    /// Settles who has the name. Only a new node can become one with the holder: an older one has a history, and
    /// perhaps children, of its own.
    fn claim_name(
        &mut self,
        id: NodeId,
        record: &mut NodeRecord,
        is_new: bool,
    ) -> Result<NodeState, T::Error> {
        let Some(holder) = self.holder(id, record)? else { return Ok(NodeState::Alive) };
        let held = self.tree.node(&holder)?.expect("a holder of a name is in the tree");
        let both_directories = held.record.kind.is_directory() && record.kind.is_directory();
        if is_new && (both_directories || held.record.kind == record.kind) {
            self.note(FoldNote::Merged { node: id, holder });
            return Ok(NodeState::MergedInto(holder));
        }
        let wanted = record.name.clone();
        let label = format!("conflict v{}", self.seq);
        for attempt in 0.. {
            record.name = wanted.conflict(&label, attempt);
            if self.holder(id, record)?.is_none() {
                break;
            }
        }
        let origin = ConflictOrigin { node: holder, base: 0 };
        let conflict = record.conflict.replace(origin);
        self.refused.push(Refused { id, name: record.name.clone(), wanted, conflict });
        self.note(FoldNote::NameTaken { node: id, holder });
        Ok(NodeState::Alive)
    }

    /// Gives those names that were taken and have been left by the end of the commit: nodes that exchange their names cannot
    /// each leave before the other one comes. Nobody ever sees them under other names, so nobody can edit them there.
    fn give_left_names(&mut self) -> Result<(), T::Error> {
        for Refused { id, name, wanted, conflict } in std::mem::take(&mut self.refused) {
            let Some(mut node) = self.tree.node(&id)? else { continue };
            let is_kept_aside = node.is_alive() && node.record.name == name;
            if !is_kept_aside || self.tree.child(&node.record.parent, &wanted)?.is_some() {
                continue;
            }
            (node.record.name, node.record.conflict) = (wanted, conflict);
            let is_name_taken =
                |note: &FoldNote| matches!(note, FoldNote::NameTaken { node, .. } if *node == id);
            self.folded.notes.retain(|note| !is_name_taken(note));
            self.set(id, node)?;
        }
        Ok(())
    }

    fn holder(&self, id: NodeId, record: &NodeRecord) -> Result<Option<NodeId>, T::Error> {
        Ok(self.tree.child(&record.parent, &record.name)?.filter(|holder| *holder != id))
    }
}

#[cfg(test)]
mod tests;
