//! Folders of the workspace that are workspaces of their own (`docs/design/shared-folders.md`): this engine lets go of what lies in them.
//!
//! *Participants*: this engine, and the one of the workspace in the folder, which takes over what lies there. *Goals*: from the moment
//! at which the log says that a folder is mounted, nothing in it is scanned, changed or deleted for the workspace around it; what was
//! edited there and not sent yet stays where it is. *Non-goals*: getting the other workspace. *Invariants*: nothing that lies in
//! a mounted folder has a row in the merge base, is known of from a scan, or waits to be merged; the folder itself does, and is
//! made again where it was deleted.

use std::collections::{BTreeSet, HashMap};

use model::codec::encode_message;
use model::mounts::MOUNTS_MAX;
use model::{Mount, Mounts, NodeId, RelativePath, TreeNode, TreeStore, Versions};

use super::{Engine, ROUNDS_MAX};
use crate::error::{Result, SyncError};
use crate::overlay::{EngineTrees, Overlay};
use crate::scan::Scope;
use crate::state::State;

mod base;

pub use base::{has_base, take_base};

/// A folder that is a workspace of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPoint {
    /// The folder.
    pub node: NodeId,
    /// What is mounted in it.
    pub mount: Mount,
    /// Where it is in this folder; nothing where it is not here.
    pub path: Option<RelativePath>,
}

/// Returns the folders that are workspaces of their own, as far as the log is folded, and where they were after the last sync.
///
/// # Errors
/// [`SyncError::Database`].
pub fn mount_points(state: &State) -> Result<Vec<MountPoint>> {
    let overlay = Overlay::default();
    let trees = EngineTrees { state, overlay: &overlay };
    let mut found = Vec::new();
    for (node, mount) in state.mounts()?.iter() {
        if state.node(node)?.is_some_and(|node| node.is_alive()) {
            let path = trees.local_path(node)?;
            found.push(MountPoint { node: *node, mount: *mount, path });
        }
    }
    Ok(found)
}

/// Returns what lies in a folder by its log and not at the same place by the log of another workspace, which the folder is to become: the
/// first that is found, by its path in the folder.
///
/// # Errors
/// [`SyncError::Database`], [`SyncError::Decode`].
pub fn first_missing(
    outer: &State,
    folder: &NodeId,
    inner: &State,
) -> Result<Option<RelativePath>> {
    let mut waiting = vec![(*folder, NodeId::ROOT, RelativePath::ROOT)];
    while let Some((directory, there, path)) = waiting.pop() {
        for (node, found) in outer.remote_children(&directory)? {
            let name = &found.record.name;
            // The path of what the log has is never too long.
            let Ok(path) = path.join(name) else { continue };
            let twin = match inner.child(&there, name)? {
                Some(twin) => inner.node(&twin)?.map(|found| (twin, found)),
                None => None,
            };
            let is_directory = found.is_directory();
            match twin.filter(|(_, twin)| twin.is_directory() == is_directory) {
                Some((twin, _)) if is_directory => waiting.push((node, twin, path)),
                Some(_) => {}
                None => return Ok(Some(path)),
            }
        }
    }
    Ok(None)
}

/// What the engine has to let go of.
struct Leaving {
    mounts: Mounts,
    nodes: BTreeSet<NodeId>,
}

impl Engine {
    /// Lets go of what lies in mounted folders, before anything is planned: where the log has just said which they are, and where an
    /// earlier run was cut off.
    pub(super) fn leave_mounts(&mut self) -> Result<()> {
        match self.leaving()? {
            Some(leaving) => self.let_go(leaving),
            None => Ok(()),
        }
    }

    /// Tells whether the next entry, which mounts a folder, must wait: what the log has put into that before is merged first, so that what
    /// lies there is what the other workspace began with. A device that has nothing yet has nothing to merge it with.
    pub(super) fn stops_before_mounts(&mut self) -> Result<bool> {
        let may_pass = std::mem::take(&mut self.may_pass_mounts);
        self.is_before_mounts =
            !may_pass && self.state.has_unsynced()? && self.state.synced_count()? > 0;
        Ok(self.is_before_mounts)
    }

    /// Merges what stands before each entry that mounts a folder, goes on behind it, and lets go of what lies in the folder.
    pub(super) async fn pass_mounts(&mut self) -> Result<()> {
        self.leave_new_mounts().await?;
        while self.is_before_mounts {
            self.settle_ahead(false).await?;
            for round in 0.. {
                if round == ROUNDS_MAX {
                    return Err(SyncError::NotSettling(round));
                }
                if !self.merge_round().await?.any {
                    break;
                }
            }
            self.may_pass_mounts = true;
            self.fetch().await?;
            self.leave_new_mounts().await?;
        }
        Ok(())
    }

    /// Lets go in the middle of a run, and looks at the folder anew.
    async fn leave_new_mounts(&mut self) -> Result<()> {
        if self.leaving()?.is_none() {
            return Ok(());
        }
        self.settle_ahead(false).await?;
        self.leave_mounts()?;
        self.look(&Scope::Everything).await?;
        self.agree_on_directories().await
    }

    fn leaving(&self) -> Result<Option<Leaving>> {
        let mounts = self.state.mounts()?;
        if mounts.is_empty() && self.mounts.is_empty() {
            return Ok(None);
        }
        let nodes = self.state.reading(|| held_nodes(&self.state, &mounts))?;
        let is_settled = mounts == self.mounts && nodes.is_empty();
        Ok((!is_settled).then_some(Leaving { mounts, nodes }))
    }

    fn let_go(&mut self, leaving: Leaving) -> Result<()> {
        let Leaving { mounts, nodes } = leaving;
        self.state.transaction(|state| {
            if !mounts.is_empty() {
                state.require_mounts()?;
            }
            base::keep(state, &mounts)?;
            for node in &nodes {
                state.remove_synced(node)?;
                // What was moved out of the folder by others before it was mounted is made where it is now.
                match mounts.freeze(state, node)? || state.version(node)? == 0 {
                    true => state.remove_unsynced(node)?,
                    false => state.add_unsynced(node)?,
                }
            }
            Ok(())
        })?;
        self.mounts = mounts;
        // What was found in the folder, or had come out of it, is found anew, and may be something else by now.
        self.overlay.clear();
        self.is_scanned = false;
        Ok(())
    }

    /// Returns the folder at a path, if it is here as the log has it.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn folder_at(&self, path: &RelativePath) -> Result<Option<NodeId>> {
        let mut found = NodeId::ROOT;
        for name in path.names() {
            match self.state.child(&found, &name)? {
                Some(child) => found = child,
                None => return Ok(None),
            }
        }
        let is_folder = self.state.node(&found)?.as_ref().is_some_and(TreeNode::is_directory);
        let is_here = self.trees().local_path(&found)?.as_ref() == Some(path);
        Ok(Some(found).filter(|_| is_folder && is_here))
    }

    /// Says that something is mounted in a folder from now on, which has all that this device has seen in the folder: up to
    /// entry `seen`, and no other may stand behind it.
    ///
    /// # Errors
    /// [`SyncError::SettingsChanged`] where the log has gone on meanwhile, or has as many such folders as may be; nothing is
    /// mounted then. As [`Self::push`], after which the proposal waits in the outbox and stands only if the log has not gone on.
    pub async fn mount(&mut self, folder: NodeId, mount: Mount, seen: u64) -> Result<()> {
        self.settle_proposals().await?;
        let is_it = |found: Mount| found.workspace == mount.workspace;
        let mounts = self.state.mounts()?;
        if mounts.get(&folder).is_some_and(is_it) {
            return Ok(());
        }
        if self.head()?.seq != seen || mounts.contains(&folder) {
            return Err(SyncError::SettingsChanged);
        }
        let with = mounts.with(folder, mount);
        let with = with.ok_or(SyncError::TooManyMounts { max: MOUNTS_MAX })?;
        let base = self.state.version(&NodeId::MOUNTS)?;
        self.put_into_outbox(NodeId::MOUNTS, base, encode_message(&with))?;
        self.push().await?;
        match self.state.mounts()?.get(&folder).is_some_and(is_it) {
            true => Ok(()),
            false => Err(SyncError::SettingsChanged),
        }
    }
}

/// Returns what lies in mounted folders and has a row in the merge base, or waits to be merged. What the merge base has below it goes
/// with it: it may have been moved out here, which the log does not know, or did not take.
fn held_nodes(state: &State, mounts: &Mounts) -> Result<BTreeSet<NodeId>> {
    let mut held = BTreeSet::new();
    let mut waiting: Vec<NodeId> = mounts.iter().map(|(folder, _)| *folder).collect();
    // Many nodes of one directory wait together.
    let mut known: HashMap<NodeId, bool> = HashMap::new();
    for node in state.unsynced()?.into_iter().filter(|_| !mounts.is_empty()) {
        let Some(found) = state.node(&node)?.filter(|_| !node.is_settings()) else { continue };
        let parent = found.record.parent;
        let is_held = match known.get(&parent) {
            Some(is_held) => *is_held,
            None => mounts.hold(state, &parent)?,
        };
        known.insert(parent, is_held);
        if is_held && held.insert(node) {
            waiting.push(node);
        }
    }
    while let Some(directory) = waiting.pop() {
        for row in state.synced_children(&directory)? {
            if held.insert(row.node) && row.record.kind.is_directory() {
                waiting.push(row.node);
            }
        }
    }
    Ok(held)
}

#[cfg(test)]
mod tests;
