//! The folded state of a log: every node with its version, its place and its matter.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::ops::Bound;

use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder};
use crate::decide::Versions;
use crate::ids::NodeId;
use crate::node::{NodeKind, NodeRecord, Timestamp};
use crate::path::{InvalidPath, Name, RelativePath};

/// The longest settings, in bytes, so that a page of a checkpoint holds them.
pub const SETTINGS_LENGTH_MAX: usize = 32 * 1024;

/// Whether a node can be seen in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeState {
    /// It is there.
    Alive,
    /// It was deleted; its record says what it was.
    Deleted,
    /// It was made under the name of an equal node and is one with it since.
    MergedInto(NodeId),
    /// No change of it could be read so far; only its version means anything.
    Unreadable,
    /// It holds settings of the workspace, as they were proposed, and is not in the tree.
    Settings(Vec<u8>),
}

/// A node in the folded state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeNode {
    /// The version that [`crate::decide`] counts; it grows with deletions and void changes, too.
    pub version: u64,
    /// Whether it can be seen.
    pub state: NodeState,
    /// Its last record, with the name that the fold gave it.
    pub record: NodeRecord,
}

impl TreeNode {
    /// Tells whether the node can be seen.
    pub fn is_alive(&self) -> bool {
        self.state == NodeState::Alive
    }

    /// Tells whether it is or was a directory.
    pub fn is_directory(&self) -> bool {
        let is_record = !matches!(self.state, NodeState::Unreadable | NodeState::Settings(_));
        is_record && self.record.kind.is_directory()
    }

    /// Returns a node of which nothing is known.
    pub(crate) fn unreadable() -> Self {
        Self::without_record("unreadable", NodeState::Unreadable)
    }

    /// Returns a node that holds settings.
    pub(crate) fn settings(version: u64, payload: Vec<u8>) -> Self {
        Self { version, ..Self::without_record("settings", NodeState::Settings(payload)) }
    }

    fn without_record(name: &str, state: NodeState) -> Self {
        let record = NodeRecord {
            parent: NodeId::ROOT,
            name: Name::new(name).expect("a valid name"),
            mode: 0,
            modified: Timestamp::default(),
            kind: NodeKind::Directory,
            conflict: None,
        };
        Self { version: 0, state, record }
    }
}

/// A place that keeps the folded state: memory here, a database in `sync`.
pub trait TreeStore: Versions {
    /// Returns a node, alive or not.
    ///
    /// # Errors
    /// Whatever keeps the tree may fail.
    fn node(&self, id: &NodeId) -> Result<Option<TreeNode>, Self::Error>;

    /// Returns the living node that holds `name` in `parent`.
    ///
    /// # Errors
    /// Whatever keeps the tree may fail.
    fn child(&self, parent: &NodeId, name: &Name) -> Result<Option<NodeId>, Self::Error>;

    /// Tells whether a living node lies in `parent`.
    ///
    /// # Errors
    /// Whatever keeps the tree may fail.
    fn has_children(&self, parent: &NodeId) -> Result<bool, Self::Error>;

    /// Replaces a node.
    ///
    /// # Errors
    /// Whatever keeps the tree may fail.
    fn set(&mut self, id: NodeId, node: TreeNode) -> Result<(), Self::Error>;
}

/// Walks up from a node to the root.
///
/// # Errors
/// Those of the store; [`InvalidPath::PathTooLong`] inside for a node that lies too deep.
pub fn path_of<T: TreeStore>(
    tree: &T,
    id: &NodeId,
) -> Result<Option<RelativePath>, PathError<T::Error>> {
    let mut names = Vec::new();
    let mut current = *id;
    while current != NodeId::ROOT {
        let Some(node) = tree.node(&current).map_err(PathError::Store)? else { return Ok(None) };
        if !node.is_alive() {
            return Ok(None);
        }
        current = node.record.parent;
        names.push(node.record.name);
        if names.len() > crate::path::PATH_DEPTH_MAX {
            let (depth, length) = (names.len(), 0);
            return Err(PathError::Path(InvalidPath::PathTooLong { depth, length }));
        }
    }
    let path = names.iter().rev().try_fold(RelativePath::ROOT, |path, name| path.join(name));
    path.map(Some).map_err(PathError::Path)
}

/// Why a node has no path.
#[derive(Debug, thiserror::Error)]
pub enum PathError<E> {
    /// The tree could not be read.
    #[error("the tree cannot be read: {0}")]
    Store(E),
    /// The path may not be.
    #[error(transparent)]
    Path(InvalidPath),
}

/// A tree in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    nodes: BTreeMap<NodeId, TreeNode>,
    children: HashMap<NodeId, BTreeMap<Name, NodeId>>,
}

impl Tree {
    /// Returns all nodes in the order of their ids, living or not.
    pub fn nodes(&self) -> impl Iterator<Item = (&NodeId, &TreeNode)> {
        self.nodes.iter()
    }

    /// Returns the nodes whose ids come after one, in the order of their ids, living or not.
    pub fn nodes_after(&self, after: Option<NodeId>) -> impl Iterator<Item = (&NodeId, &TreeNode)> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.nodes.range((start, Bound::Unbounded))
    }

    /// Returns the living nodes of a directory in the order of their names.
    pub fn children(&self, parent: &NodeId) -> impl Iterator<Item = (&Name, &NodeId)> {
        self.children.get(parent).into_iter().flatten()
    }

    /// Returns the living nodes of a directory whose names come after one, in the order of their names.
    pub fn children_after<'a>(
        &'a self,
        parent: &NodeId,
        after: Option<&Name>,
    ) -> impl Iterator<Item = (&'a Name, &'a NodeId)> + use<'a> {
        let start = after.map_or(Bound::Unbounded, |name| Bound::Excluded(name.clone()));
        let children = self.children.get(parent).into_iter();
        children.flat_map(move |children| children.range((start.clone(), Bound::Unbounded)))
    }

    /// Returns how many nodes there are, living or not.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns a node by reference.
    pub fn get(&self, id: &NodeId) -> Option<&TreeNode> {
        self.nodes.get(id)
    }
}

impl Versions for Tree {
    type Error = Infallible;

    fn version(&self, node: &NodeId) -> Result<u64, Infallible> {
        Ok(self.nodes.get(node).map_or(0, |node| node.version))
    }
}

impl TreeStore for Tree {
    fn node(&self, id: &NodeId) -> Result<Option<TreeNode>, Infallible> {
        Ok(self.nodes.get(id).cloned())
    }

    fn child(&self, parent: &NodeId, name: &Name) -> Result<Option<NodeId>, Infallible> {
        Ok(self.children.get(parent).and_then(|children| children.get(name)).copied())
    }

    fn has_children(&self, parent: &NodeId) -> Result<bool, Infallible> {
        Ok(self.children.get(parent).is_some_and(|children| !children.is_empty()))
    }

    fn set(&mut self, id: NodeId, node: TreeNode) -> Result<(), Infallible> {
        if let Some(old) = self.nodes.get(&id).filter(|old| old.is_alive())
            && let Some(children) = self.children.get_mut(&old.record.parent)
        {
            children.remove(&old.record.name);
            if children.is_empty() {
                let parent = old.record.parent;
                self.children.remove(&parent);
            }
        }
        if node.is_alive() {
            let children = self.children.entry(node.record.parent).or_default();
            let held = children.insert(node.record.name.clone(), id);
            assert!(held.is_none_or(|holder| holder == id), "the fold gives a name to one node");
        }
        self.nodes.insert(id, node);
        Ok(())
    }
}

impl Encode for TreeNode {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(self.version);
        match &self.state {
            NodeState::Alive => encoder.unsigned(0),
            NodeState::Deleted => encoder.unsigned(1),
            NodeState::MergedInto(holder) => {
                encoder.unsigned(2);
                holder.encode(encoder);
            }
            NodeState::Unreadable => encoder.unsigned(3),
            NodeState::Settings(payload) => {
                encoder.unsigned(4);
                encoder.byte_string(payload);
            }
        }
        self.record.encode(encoder);
    }
}

impl Decode for TreeNode {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let version = decoder.unsigned()?;
        let state = match decoder.unsigned_max(4)? {
            0 => NodeState::Alive,
            1 => NodeState::Deleted,
            2 => NodeState::MergedInto(NodeId::decode(decoder)?),
            3 => NodeState::Unreadable,
            _ => NodeState::Settings(decoder.byte_string(SETTINGS_LENGTH_MAX)?.to_vec()),
        };
        Ok(Self { version, state, record: NodeRecord::decode(decoder)? })
    }
}
