//! The folder as differences from the merge base: what a scan found, and what the engine did since.
//!
//! Memory is in proportion to what differs, not to the folder.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{NodeId, NodeKind, RelativePath, Timestamp, TreeStore};

use crate::error::{Result, SyncError};
use crate::file_system::{FileKind, Stat};
use crate::plan::{Local, LocalMatter, Matter, Place, Remote, Synced, Trees, split};
use crate::scan::{LocalChanges, Problem};
use crate::state::State;
use crate::state::synced::kind_of;

/// A node in the folder that differs from the merge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayNode {
    /// As the planner sees it.
    pub local: Local,
    /// What the file system says.
    pub stat: Stat,
}

/// What differs between the folder and the merge base.
#[derive(Debug, Default)]
pub struct Overlay {
    nodes: BTreeMap<NodeId, Option<OverlayNode>>,
    holders: HashMap<Place, NodeId>,
    children: HashMap<NodeId, BTreeSet<NodeId>>,
    /// What is not synced.
    pub problems: Vec<Problem>,
}

impl Overlay {
    /// Takes in what a scan found. Nodes that it does not mention keep what is known of them.
    pub fn absorb(&mut self, changes: LocalChanges) {
        self.forget_gone(&changes);
        for (node, found) in changes.present {
            // Of a directory there is nothing to read.
            let matter = match found.stat.kind {
                FileKind::Directory => {
                    LocalMatter::Known(matter_of(&found.stat, NodeKind::Directory))
                }
                _ if found.is_touched => LocalMatter::Touched,
                _ => LocalMatter::Same,
            };
            self.set_found(node, found, matter);
        }
        for (node, found) in changes.suspects {
            self.set_found(node, found, LocalMatter::Suspect);
        }
        for node in changes.absent {
            self.set_absent(node);
        }
        self.problems.extend(changes.problems);
    }

    /// Forgets what an earlier scan found in a directory and this one did not find there any more.
    fn forget_gone(&mut self, changes: &LocalChanges) {
        for node in self.gone(changes) {
            self.forget(&node);
        }
    }

    /// Returns what an earlier scan found in a directory and this one did not find there any more.
    pub fn gone(&self, changes: &LocalChanges) -> Vec<NodeId> {
        let is_found = |node: &NodeId| {
            changes.present.contains_key(node) || changes.suspects.contains_key(node)
        };
        let children = |directory: &NodeId| self.children.get(directory).into_iter().flatten();
        let mut gone: Vec<NodeId> =
            changes.directories.iter().flat_map(children).copied().collect();
        gone.retain(|node| !is_found(node));
        let mut next = 0;
        while next < gone.len() {
            // What lies in it has gone with it, or was found elsewhere.
            let below = children(&gone[next]).filter(|node| !is_found(node)).copied();
            let below: Vec<_> = below.collect();
            gone.extend(below);
            next += 1;
        }
        gone
    }

    /// Returns what is known to be at a place.
    pub fn at(&self, place: &Place) -> Option<(NodeId, Stat)> {
        let node = self.holders.get(place)?;
        Some((*node, self.get(node)?.stat))
    }

    fn set_found(&mut self, node: NodeId, found: crate::scan::LocalNode, matter: LocalMatter) {
        // What was read already is still known while the file is as it was.
        let matter = match self.get(&node) {
            Some(known) if known.stat == found.stat && matter == LocalMatter::Touched => {
                known.local.matter.clone()
            }
            _ => matter,
        };
        let place = Place { parent: found.parent, name: found.name };
        let local = Local { place, kind: found.stat.kind, matter };
        self.set(node, OverlayNode { local, stat: found.stat });
    }

    /// Returns a node that is in the folder and differs.
    pub fn get(&self, node: &NodeId) -> Option<&OverlayNode> {
        self.nodes.get(node)?.as_ref()
    }

    /// Tells whether anything is known of a node here.
    pub fn contains(&self, node: &NodeId) -> bool {
        self.nodes.contains_key(node)
    }

    /// Replaces what is known of a node.
    pub fn set(&mut self, node: NodeId, found: OverlayNode) {
        self.forget(&node);
        self.holders.insert(found.local.place.clone(), node);
        self.children.entry(found.local.place.parent).or_default().insert(node);
        self.nodes.insert(node, Some(found));
    }

    /// Notes that a node of the merge base is not in the folder.
    pub fn set_absent(&mut self, node: NodeId) {
        self.forget(&node);
        self.nodes.insert(node, None);
    }

    /// Forgets what is known of a node: it is as in the merge base.
    pub fn forget(&mut self, node: &NodeId) {
        let Some(Some(old)) = self.nodes.remove(node) else { return };
        if self.holders.get(&old.local.place) == Some(node) {
            self.holders.remove(&old.local.place);
        }
        if let Some(children) = self.children.get_mut(&old.local.place.parent) {
            children.remove(node);
            if children.is_empty() {
                self.children.remove(&old.local.place.parent);
            }
        }
    }

    /// Gives the children of one directory to another that it turned out to be.
    pub fn adopt_children(&mut self, from: &NodeId, to: NodeId) {
        for child in self.children.get(from).cloned().unwrap_or_default() {
            if let Some(mut found) = self.get(&child).cloned() {
                found.local.place.parent = to;
                self.set(child, found);
            }
        }
    }

    /// Forgets what was read of files: it must be read again before it is proposed.
    pub fn unread(&mut self) {
        for found in self.nodes.values_mut().flatten() {
            let is_known = matches!(found.local.matter, LocalMatter::Known(_));
            if is_known && found.stat.kind != FileKind::Directory {
                found.local.matter = LocalMatter::Touched;
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the nodes that differ.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.keys()
    }

    /// Returns the nodes that are not in the folder: of the merge base, or of one before, if nobody has forgotten them since.
    pub fn absent(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.iter().filter(|(_, found)| found.is_none()).map(|(node, _)| node)
    }
}

/// Paths of directories in the folder, known while nothing moves: what many nodes of one directory ask for.
pub type KnownPaths = HashMap<NodeId, RelativePath>;

/// The three trees of the engine.
#[derive(Debug, Clone, Copy)]
pub struct EngineTrees<'a> {
    /// Merge base and remote tree.
    pub state: &'a State,
    /// What differs in the folder.
    pub overlay: &'a Overlay,
}

impl EngineTrees<'_> {
    /// Returns where a node is in the folder.
    ///
    /// # Errors
    /// [`SyncError::Database`]; [`SyncError::Path`] where it lies too deep.
    pub fn local_path(&self, node: &NodeId) -> Result<Option<RelativePath>> {
        self.local_path_by(node, &mut KnownPaths::default())
    }

    /// Returns where a node is in the folder, and remembers where its directories are.
    ///
    /// # Errors
    /// As [`Self::local_path`].
    pub fn local_path_by(
        &self,
        node: &NodeId,
        known: &mut KnownPaths,
    ) -> Result<Option<RelativePath>> {
        let mut steps = Vec::new();
        let mut current = *node;
        let mut path = loop {
            if current == NodeId::ROOT {
                break RelativePath::ROOT;
            }
            if let Some(path) = known.get(&current) {
                break path.clone();
            }
            let Some(local) = self.local(&current)? else { return Ok(None) };
            steps.push((current, local.place.name, local.kind));
            current = local.place.parent;
            if steps.len() > model::path::PATH_DEPTH_MAX {
                let (depth, length) = (steps.len(), 0);
                return Err(model::InvalidPath::PathTooLong { depth, length }.into());
            }
        };
        for (node, name, kind) in steps.into_iter().rev() {
            path = path.join(&name)?;
            if kind == FileKind::Directory {
                known.insert(node, path.clone());
            }
        }
        Ok(Some(path))
    }

    /// Returns the path of a place in the folder, whether or not anything is there.
    ///
    /// # Errors
    /// As [`Self::local_path`].
    pub fn path_of_place(&self, place: &Place) -> Result<Option<RelativePath>> {
        self.path_of_place_by(place, &mut KnownPaths::default())
    }

    /// Returns the path of a place in the folder, and remembers where its directories are.
    ///
    /// # Errors
    /// As [`Self::local_path`].
    pub fn path_of_place_by(
        &self,
        place: &Place,
        known: &mut KnownPaths,
    ) -> Result<Option<RelativePath>> {
        let Some(parent) = self.local_path_by(&place.parent, known)? else { return Ok(None) };
        Ok(Some(parent.join(&place.name)?))
    }

    /// Returns what the file system said of a node that is in the folder.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn local_stat(&self, node: &NodeId) -> Result<Option<Stat>> {
        if self.overlay.contains(node) {
            return Ok(self.overlay.get(node).map(|found| found.stat));
        }
        Ok(self.state.synced(node)?.and_then(|synced| synced.stat))
    }
}

impl Trees for EngineTrees<'_> {
    type Error = SyncError;

    fn local(&self, node: &NodeId) -> Result<Option<Local>> {
        if self.overlay.contains(node) {
            return Ok(self.overlay.get(node).map(|found| found.local.clone()));
        }
        let Some(synced) = self.state.synced(node)? else { return Ok(None) };
        let place = split(&synced.record).0;
        // A file whose stat is no proof is read before anything is done with it.
        let is_known =
            synced.stat.is_some_and(|stat| stat.kind == FileKind::Directory || stat.is_proof());
        let matter = if is_known { LocalMatter::Same } else { LocalMatter::Touched };
        Ok(Some(Local { place, kind: kind_of(&synced.record.kind), matter }))
    }

    fn synced(&self, node: &NodeId) -> Result<Option<Synced>> {
        Ok(self.state.synced(node)?.map(|synced| {
            let (place, matter) = split(&synced.record);
            Synced { place, matter, version: synced.version, is_pending: synced.pending.is_some() }
        }))
    }

    fn remote(&self, node: &NodeId) -> Result<Option<Remote>> {
        Ok(self.state.node(node)?.map(|node| {
            let (place, matter) = split(&node.record);
            Remote { place, matter, version: node.version, state: node.state }
        }))
    }

    fn local_holder(&self, place: &Place) -> Result<Option<NodeId>> {
        if let Some(holder) = self.overlay.holders.get(place) {
            return Ok(Some(*holder));
        }
        let rows = self.state.synced_at(&place.parent, &place.name)?;
        Ok(rows.into_iter().map(|row| row.node).find(|node| !self.overlay.contains(node)))
    }

    fn remote_holder(&self, place: &Place) -> Result<Option<NodeId>> {
        self.state.child(&place.parent, &place.name)
    }

    fn is_mounted(&self, node: &NodeId) -> Result<bool> {
        Ok(self.state.mounts()?.contains(node))
    }

    fn has_local_children(&self, directory: &NodeId) -> Result<bool> {
        if self.overlay.children.contains_key(directory) {
            return Ok(true);
        }
        let rows = self.state.synced_children(directory)?;
        Ok(rows.iter().any(|row| !self.overlay.contains(&row.node)))
    }
}

/// Returns the matter of something that is not a file, from what was read of it.
pub fn matter_of(stat: &Stat, kind: NodeKind) -> Matter {
    match kind {
        NodeKind::Directory => Matter { kind, mode: stat.mode, modified: Timestamp::default() },
        NodeKind::File(_) => Matter { kind, mode: stat.mode, modified: stat.modified },
        NodeKind::Symlink(_) => Matter { kind, mode: 0, modified: stat.modified },
    }
}
