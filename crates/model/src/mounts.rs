//! Folders of a workspace that are workspaces of their own: since they are shared with other people than the rest.
//!
//! *Participants*: the devices of the workspace around such a folder (the *outer* one); those of the workspace in it know nothing
//! of this. *Goals*: one place where it is written down which folder holds which workspace, and from which entry on. *Non-goals*:
//! what is in the folder ever since: that is for the other log. *Invariants*: a folder is mounted only directly behind the last
//! entry that its author has folded ([`crate::decide`]), so nothing that others put into it before is missed; from then on no
//! change takes anything into it or out of it ([`crate::fold`]): what lay in it is *frozen*.
//!
//! The record is the payload of the settings node [`crate::NodeId::MOUNTS`]. What devices do with it: `docs/design/shared-folders.md`.

use std::collections::BTreeMap;

use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message, decode_message};
use crate::ids::{NodeId, WorkspaceId};
use crate::path::PATH_DEPTH_MAX;
use crate::tree::{NodeState, TreeStore};

/// How many folders of a workspace are mounted at most, so that the record fits into a page of a checkpoint.
pub const MOUNTS_MAX: usize = 700;

/// A workspace in a folder of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mount {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The entry of its log up to which it is what lay in the folder when that was mounted; 0 where nothing did.
    pub since: u64,
}

/// Which folders hold which workspaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mounts(BTreeMap<NodeId, Mount>);

impl Mounts {
    /// Reads what the settings of a workspace say; nothing is mounted where they say nothing.
    ///
    /// # Errors
    /// Those of the tree.
    pub fn of<T: TreeStore>(tree: &T) -> Result<Self, T::Error> {
        Ok(match tree.node(&NodeId::MOUNTS)?.map(|node| node.state) {
            // The fold has kept only what can be read.
            Some(NodeState::Settings(payload)) => decode_message(&payload).unwrap_or_default(),
            _ => Self::default(),
        })
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether a folder is mounted.
    pub fn contains(&self, folder: &NodeId) -> bool {
        self.0.contains_key(folder)
    }

    /// Returns what is mounted in a folder.
    pub fn get(&self, folder: &NodeId) -> Option<Mount> {
        self.0.get(folder).copied()
    }

    /// Returns all folders with what is mounted in them, in the order of the folders.
    pub fn iter(&self) -> impl Iterator<Item = (&NodeId, &Mount)> {
        self.0.iter()
    }

    /// Returns the same with one folder more, or with something else in it; nothing where there are too many.
    pub fn with(&self, folder: NodeId, mount: Mount) -> Option<Self> {
        let mut mounts = self.0.clone();
        mounts.insert(folder, mount);
        (mounts.len() <= MOUNTS_MAX).then_some(Self(mounts))
    }

    /// Tells whether what lies in a directory is in a mounted folder: the directory is one, or lies in one.
    ///
    /// # Errors
    /// Those of the tree.
    pub fn hold<T: TreeStore>(&self, tree: &T, directory: &NodeId) -> Result<bool, T::Error> {
        let mut current = *directory;
        // Nothing that the fold has made is deeper than a path may be long, and what is has no path.
        for _ in 0..2 * PATH_DEPTH_MAX {
            if self.is_empty() || current == NodeId::ROOT {
                return Ok(false);
            }
            if self.contains(&current) {
                return Ok(true);
            }
            current = match tree.node(&current)? {
                Some(node) => match node.state {
                    NodeState::MergedInto(holder) => holder,
                    _ => node.record.parent,
                },
                None => return Ok(false),
            };
        }
        Ok(false)
    }

    /// Tells whether a node lies in a mounted folder, so that the log around it changes nothing of it any more.
    ///
    /// # Errors
    /// Those of the tree.
    pub fn freeze<T: TreeStore>(&self, tree: &T, node: &NodeId) -> Result<bool, T::Error> {
        if self.is_empty() || node.is_settings() {
            return Ok(false);
        }
        match tree.node(node)? {
            Some(found) => self.hold(tree, &found.record.parent),
            None => Ok(false),
        }
    }
}

impl FromIterator<(NodeId, Mount)> for Mounts {
    fn from_iter<I: IntoIterator<Item = (NodeId, Mount)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl Encode for Mounts {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(self.0.len() as u64);
        for (folder, mount) in &self.0 {
            folder.encode(encoder);
            mount.workspace.encode(encoder);
            encoder.unsigned(mount.since);
        }
    }
}

impl Decode for Mounts {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut mounts = BTreeMap::new();
        for _ in 0..decoder.unsigned_max(MOUNTS_MAX as u64)? {
            let folder = NodeId::decode(decoder)?;
            let workspace = WorkspaceId::decode(decoder)?;
            let mount = Mount { workspace, since: decoder.unsigned()? };
            if folder == NodeId::ROOT || folder.is_settings() {
                return Err(decoder.invalid("mounted folder", "it is none"));
            }
            if mounts.last_key_value().is_some_and(|(last, _)| *last >= folder) {
                return Err(decoder.invalid("mounted folders", "not in order"));
            }
            mounts.insert(folder, mount);
        }
        Ok(Self(mounts))
    }
}

impl Message for Mounts {
    const MAGIC: u8 = b'D';
    const KIND: &'static str = "list of mounted folders";
}

#[cfg(test)]
mod tests;
