//! The pure planner: from three trees to the next operations.
//!
//! *Participants*: the *local* tree (the folder), the *synced* tree (the merge base), the *remote* tree (the fold of
//! the log). *Goals*: what one side changed goes to the other; what both changed ends with both kept; a deletion is
//! carried out only on what was seen. *Non-goals*: doing anything; the engine carries a plan out, checks every step at
//! the moment it is done, and plans again until nothing is left.
//! *Invariants*: the operations of one plan may be carried out in any order within their class ([`Operation::class`]),
//! but a directory is made before what lies in it, and proposals have an order of their own ([`order`]);
//! an edit is never overwritten (it is read, then kept as a copy); at agreement the plan is empty; place and
//! matter of a node are merged apart, and where both sides changed one of them, the log was first.
//!
//! Clashes of names are not decided here: both nodes are proposed, and the fold of the log gives one of them another
//! name, on every device the same.
//!
//! The rules as a table: `docs/design/sync.md`, "Plan". After Dropbox Nucleus, which plans over three trees, too.

use std::collections::{BTreeMap, BTreeSet};

pub mod order;

use model::path::PATH_DEPTH_MAX;
use model::{Name, NodeId, NodeKind, NodeRecord, NodeState, Timestamp};

use crate::file_system::FileKind;
use crate::state::synced::kind_of;

/// Parent and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The directory.
    pub parent: NodeId,
    /// The name in it.
    pub name: Name,
}

/// What a node is, apart from its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matter {
    /// Kind, with the content of a file and the target of a link.
    pub kind: NodeKind,
    /// Permission bits.
    pub mode: u32,
    /// Modification time.
    pub modified: Timestamp,
}

/// Splits a record into place and matter.
pub fn split(record: &NodeRecord) -> (Place, Matter) {
    let place = Place { parent: record.parent, name: record.name.clone() };
    (place, Matter { kind: record.kind.clone(), mode: record.mode, modified: record.modified })
}

/// What is known of the matter of a node in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalMatter {
    /// That of the merge base.
    Same,
    /// Perhaps another; it must be read to tell.
    Touched,
    /// This one; it was read.
    Known(Matter),
    /// Not to be trusted.
    Suspect,
}

/// A node in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// Where it is.
    pub place: Place,
    /// What it is.
    pub kind: FileKind,
    /// What is known of its matter.
    pub matter: LocalMatter,
}

/// A node in the merge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synced {
    /// Where it was.
    pub place: Place,
    /// What it was.
    pub matter: Matter,
    /// The version; 0 for a node that the log does not know.
    pub version: u64,
    /// Whether a commit that proposes this is on its way.
    pub is_pending: bool,
}

/// A node in the fold of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// Where it is, or was.
    pub place: Place,
    /// What it is, or was.
    pub matter: Matter,
    /// The version.
    pub version: u64,
    /// Whether it can be seen.
    pub state: NodeState,
}

/// The three trees, as far as the planner asks.
pub trait Trees {
    /// Why a tree cannot be read.
    type Error;

    /// Returns a node in the folder.
    ///
    /// # Errors
    /// Whatever keeps the tree may fail.
    fn local(&self, node: &NodeId) -> Result<Option<Local>, Self::Error>;

    /// Returns a node in the merge base.
    ///
    /// # Errors
    /// Whatever keeps the tree may fail.
    fn synced(&self, node: &NodeId) -> Result<Option<Synced>, Self::Error>;

    /// Returns a node in the fold of the log.
    ///
    /// # Errors
    /// Whatever keeps the tree may fail.
    fn remote(&self, node: &NodeId) -> Result<Option<Remote>, Self::Error>;

    /// Returns the node that has a place in the folder.
    ///
    /// # Errors
    /// Whatever keeps the tree may fail.
    fn local_holder(&self, place: &Place) -> Result<Option<NodeId>, Self::Error>;

    /// Returns the living node that has a place in the fold of the log.
    ///
    /// # Errors
    /// Whatever keeps the tree may fail.
    fn remote_holder(&self, place: &Place) -> Result<Option<NodeId>, Self::Error>;

    /// Tells whether a node is a folder that is a workspace of its own.
    ///
    /// # Errors
    /// Whatever keeps the tree may fail.
    fn is_mounted(&self, _node: &NodeId) -> Result<bool, Self::Error> {
        Ok(false)
    }

    /// Tells whether a directory of the folder has anything in it that is synced.
    ///
    /// # Errors
    /// Whatever keeps the tree may fail.
    fn has_local_children(&self, directory: &NodeId) -> Result<bool, Self::Error>;
}

/// The next step for one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Read it, to learn its matter.
    Read,
    /// Move it in the folder to its remote place.
    Move,
    /// Move it in the folder to its [`parked_place`], because its place and that of others form a cycle.
    Park,
    /// Remove it from the folder, into the trash.
    Remove,
    /// Make it in the folder, as it is remotely.
    Materialise,
    /// Give it the remote matter in the folder.
    SetMatter,
    /// Keep what is in the folder as another node beside it, marked as a conflict, and let this one be made anew.
    KeepCopy,
    /// What is in the folder is this other node.
    Adopt(NodeId),
    /// The merge base takes the remote version; the folder needs nothing.
    Accept,
    /// The merge base forgets the node.
    Forget,
    /// What the file system says of it is remembered; nothing else has changed.
    Refresh,
    /// Propose what is in the folder as the version after `base`.
    Propose {
        /// The version that was changed; 0 for a new node.
        base: u64,
    },
    /// Propose its deletion after version `base`.
    ProposeDelete {
        /// The version that was deleted.
        base: u64,
    },
}

impl Operation {
    /// Returns when it is carried out: lower classes come first.
    pub fn class(&self) -> u8 {
        match self {
            Self::Read | Self::Accept | Self::Forget | Self::Refresh | Self::Adopt(_) => 0,
            Self::Park => 1,
            Self::Move | Self::KeepCopy => 2,
            Self::Materialise | Self::SetMatter => 3,
            Self::Remove => 4,
            Self::Propose { .. } | Self::ProposeDelete { .. } => 5,
        }
    }

    /// Tells whether it asks the log for something, rather than changing folder or merge base.
    pub fn is_proposal(&self) -> bool {
        matches!(self, Self::Propose { .. } | Self::ProposeDelete { .. })
    }
}

/// The names in the root under which nodes are parked start with this.
const PARKED_PREFIX: &str = ".syncline-parked-";

/// Returns the place of its own where a node is parked. What is parked is never proposed there.
pub fn parked_place(node: &NodeId) -> Place {
    let name = Name::new(format!("{PARKED_PREFIX}{node}")).expect("a valid name");
    Place { parent: NodeId::ROOT, name }
}

/// Tells whether something is parked; its id may be another by now.
pub fn is_parked(place: &Place) -> bool {
    place.parent == NodeId::ROOT && place.name.as_bytes().starts_with(PARKED_PREFIX.as_bytes())
}

/// Returns the node that was parked at a place.
pub fn parked_node(place: &Place) -> Option<NodeId> {
    let name = place.name.as_bytes().strip_prefix(PARKED_PREFIX.as_bytes())?;
    let id = str::from_utf8(name.get(..2 * NodeId::LENGTH)?).ok()?.parse().ok()?;
    is_parked(place).then_some(id)
}

/// Returns the place beside which a copy is kept: that of the file, but that of the log for what is parked. Where the
/// directory of that is not in the folder, only the name counts.
pub fn copied_place(local: &Place, remote: &Place, is_directory_here: bool) -> Place {
    match is_parked(local) {
        true if is_directory_here => remote.clone(),
        true => Place { parent: local.parent, name: remote.name.clone() },
        false => local.clone(),
    }
}

/// Plans the next operation of every node that differs.
///
/// # Errors
/// Those of the trees.
pub fn plan<T: Trees>(
    trees: &T,
    nodes: &BTreeSet<NodeId>,
) -> Result<BTreeMap<NodeId, Operation>, T::Error> {
    let mut wanted = BTreeMap::new();
    for node in nodes {
        if let Some(operation) = next(trees, node)? {
            wanted.insert(*node, operation);
        }
    }
    settle_adoptions(&mut wanted);
    let mut runnable = BTreeMap::new();
    let mut waiting = BTreeMap::new();
    let mut directories = BTreeMap::new();
    for (node, operation) in &wanted {
        if is_runnable(trees, &wanted, &mut directories, node, operation)? {
            runnable.insert(*node, operation.clone());
        } else {
            waiting.insert(*node, operation.clone());
        }
    }
    let changes_folder = |operation: &Operation| (1..=4).contains(&operation.class());
    if !runnable.values().any(changes_folder)
        && let Some(node) = in_cycle(trees, &waiting)?
    {
        runnable.insert(node, Operation::Park);
    }
    Ok(runnable)
}

/// Returns what a node needs next, whether or not it can be done now.
fn next<T: Trees>(trees: &T, node: &NodeId) -> Result<Option<Operation>, T::Error> {
    let (local, synced) = (trees.local(node)?, trees.synced(node)?);
    if synced.as_ref().is_some_and(|synced| synced.is_pending) {
        return Ok(None);
    }
    let is_known = synced.is_some();
    let forget = synced.as_ref().map(|_| Operation::Forget);
    let Some(remote) = trees.remote(node)? else {
        return Ok(local.map_or(forget, |_| Some(Operation::Propose { base: 0 })));
    };
    Ok(match (&remote.state, local) {
        // Settings have no place in a folder.
        (NodeState::Settings(_), _) => None,
        (NodeState::Alive, Some(local)) => match synced.filter(|synced| synced.version > 0) {
            None => Some(merge_without_base(&local, is_known, &remote)),
            Some(synced) => match merge(&local, &synced, &remote) {
                Some(Operation::Move)
                    if !is_parked(&local.place)
                        && can_reclaim(trees, &local, &synced, &remote)? =>
                {
                    Some(Operation::Propose { base: remote.version })
                }
                operation => operation,
            },
        },
        (NodeState::Alive, None) => match absent(synced.as_ref(), &remote) {
            // To delete it here is no word about what others have in it.
            Operation::ProposeDelete { .. } if trees.is_mounted(node)? => {
                Some(Operation::Materialise)
            }
            operation => Some(operation),
        },
        (_, None) => forget,
        (NodeState::MergedInto(id), Some(local)) => match (trees.local(id)?, trees.synced(id)?) {
            (None, Some(holder)) if holder.is_pending => None,
            (None, _) => Some(Operation::Adopt(*id)),
            // Two nodes and one file: only one of them can go.
            (Some(holder), _) if holder.place == local.place => Some(Operation::Forget),
            (Some(holder), base) => {
                let holder = matter_here(&holder, base.as_ref());
                merged(&local, synced.as_ref(), &remote, holder.as_ref())
            }
        },
        (NodeState::Deleted, Some(local)) if is_parked(&local.place) => {
            Some(deleted_while_parked(&local, synced.as_ref()))
        }
        (NodeState::Deleted, Some(local)) => Some(deleted(&local, synced.as_ref(), &remote)),
        // Nothing is removed because of what nobody can read.
        (NodeState::Unreadable, Some(_)) => Some(Operation::Propose { base: remote.version }),
    })
}

/// A node can be adopted by one other only, and then needs nothing else.
fn settle_adoptions(wanted: &mut BTreeMap<NodeId, Operation>) {
    let mut holders = BTreeSet::new();
    wanted.retain(|_, operation| match operation {
        Operation::Adopt(holder) => holders.insert(*holder),
        _ => true,
    });
    wanted.retain(|node, _| !holders.contains(node));
}

/// The node is in the log and not in the folder.
fn absent(synced: Option<&Synced>, remote: &Remote) -> Operation {
    match synced {
        None => Operation::Materialise,
        Some(synced) if synced.version == remote.version => {
            Operation::ProposeDelete { base: synced.version }
        }
        // It was deleted here and changed there: the change wins. The row of a directory stays until it is made again, for
        // what lay in it was deleted, too.
        Some(_) if remote.matter.kind.is_directory() => Operation::Materialise,
        Some(_) => Operation::Forget,
    }
}

/// The node is deleted in the log and is in the folder.
fn deleted(local: &Local, synced: Option<&Synced>, remote: &Remote) -> Operation {
    let propose = Operation::Propose { base: remote.version };
    // What the log had never said to this device, nobody can have deleted with it in mind.
    let Some(synced) =
        synced.filter(|synced| 0 < synced.version && synced.version < remote.version)
    else {
        return propose;
    };
    match &local.matter {
        LocalMatter::Suspect => Operation::Remove,
        // It was changed here and deleted there: the change wins.
        _ if local.place != synced.place => propose,
        LocalMatter::Same => Operation::Remove,
        LocalMatter::Touched => Operation::Read,
        LocalMatter::Known(matter) if *matter == synced.matter => Operation::Remove,
        LocalMatter::Known(_) => propose,
    }
}

/// The node is deleted in the log and waits in the folder for a place that it gets no more. What was put into a directory
/// meanwhile brings that back by itself.
fn deleted_while_parked(local: &Local, synced: Option<&Synced>) -> Operation {
    match (&local.matter, synced.filter(|synced| synced.version > 0)) {
        _ if local.kind == FileKind::Directory => Operation::Remove,
        (LocalMatter::Suspect, _) | (LocalMatter::Same, Some(_)) => Operation::Remove,
        (LocalMatter::Known(matter), Some(synced)) if *matter == synced.matter => Operation::Remove,
        (LocalMatter::Known(_), _) => Operation::KeepCopy,
        (LocalMatter::Touched | LocalMatter::Same, _) => Operation::Read,
    }
}

/// Returns what a node in the folder is or will be, as far as that is known.
fn matter_here(local: &Local, synced: Option<&Synced>) -> Option<Matter> {
    let synced = synced.filter(|synced| synced.version > 0);
    match &local.matter {
        // What is suspect becomes again what it was.
        LocalMatter::Same | LocalMatter::Suspect => synced.map(|synced| synced.matter.clone()),
        LocalMatter::Known(matter) => Some(matter.clone()),
        LocalMatter::Touched => None,
    }
}

/// The node is one with another, which is elsewhere in the folder: what lies in a directory moves there, then this goes.
fn merged(
    local: &Local,
    synced: Option<&Synced>,
    remote: &Remote,
    holder: Option<&Matter>,
) -> Option<Operation> {
    if local.kind == FileKind::Directory || local.matter == LocalMatter::Suspect {
        return Some(Operation::Remove);
    }
    let Some(matter) = matter_here(local, synced) else { return Some(Operation::Read) };
    // It goes only if it is what the log had seen, and the other one is the same here, too.
    let is_equal =
        holder.map(|holder| holder.kind == matter.kind && holder.kind == remote.matter.kind);
    match (is_equal, &local.matter) {
        // The other one is read first.
        (None, _) => None,
        (Some(true), _) => Some(Operation::Remove),
        (Some(false), LocalMatter::Known(_)) => Some(Operation::KeepCopy),
        (Some(false), _) => Some(Operation::Read),
    }
}

/// The node is in the log and in the folder, and nobody knows what they had in common.
fn merge_without_base(local: &Local, is_known: bool, remote: &Remote) -> Operation {
    match &local.matter {
        LocalMatter::Same | LocalMatter::Touched => Operation::Read,
        // The log was first with the place, too. What has no row at all gets one before it is moved.
        _ if is_known && local.place != remote.place => Operation::Move,
        LocalMatter::Known(matter) => without_base(matter, remote),
        LocalMatter::Suspect => Operation::SetMatter,
    }
}

/// The node is in the log and in the folder.
///
/// Equal versions do not mean equal records: the fold may have given a proposal another place.
fn merge(local: &Local, synced: &Synced, remote: &Remote) -> Option<Operation> {
    // What is parked waits for its place, whatever the merge base says of it by now.
    let is_elsewhere = remote.place != synced.place || is_parked(&local.place);
    if is_elsewhere && local.place != remote.place {
        // It must be read anyway, and what has its new place may wait to learn what it is.
        let is_touched = local.matter == LocalMatter::Touched;
        return Some(if is_touched { Operation::Read } else { Operation::Move });
    }
    if local.matter == LocalMatter::Suspect {
        return Some(Operation::SetMatter);
    }
    if remote.matter == synced.matter {
        return match synced.version == remote.version && remote.place == synced.place {
            true => changed_here(local, synced),
            false => Some(Operation::Accept),
        };
    }
    Some(match &local.matter {
        LocalMatter::Touched => Operation::Read,
        LocalMatter::Known(matter) if *matter != synced.matter => without_base(matter, remote),
        _ => Operation::SetMatter,
    })
}

/// Tells whether the fold gave a proposal of this device another name, and the wanted one is free by now, or is not the
/// same any more: whoever had it may have left it since.
fn can_reclaim<T: Trees>(
    trees: &T,
    local: &Local,
    synced: &Synced,
    remote: &Remote,
) -> Result<bool, T::Error> {
    // A move that was void is not tried again: it would be void for ever.
    let is_renamed = synced.version == remote.version && synced.place.parent == remote.place.parent;
    // Nobody has been given the name that a user gave it since.
    let is_new_name = local.place != synced.place;
    Ok(is_renamed
        && local.matter != LocalMatter::Suspect
        && (is_new_name || trees.remote_holder(&local.place)?.is_none()))
}

/// Both sides have the node, and its matter has no common base.
fn without_base(matter: &Matter, remote: &Remote) -> Operation {
    if *matter == remote.matter {
        Operation::Accept
    } else if matter.kind == remote.matter.kind {
        // Only mode or time differ: the log was first, and no byte is lost.
        Operation::SetMatter
    } else {
        Operation::KeepCopy
    }
}

/// The remote version is that of the merge base.
fn changed_here(local: &Local, synced: &Synced) -> Option<Operation> {
    let is_same_matter = match &local.matter {
        LocalMatter::Same => true,
        LocalMatter::Known(matter) => *matter == synced.matter,
        LocalMatter::Touched | LocalMatter::Suspect => false,
    };
    if !is_same_matter || local.place != synced.place {
        return Some(Operation::Propose { base: synced.version });
    }
    // Only what the file system says of it may differ.
    matches!(local.matter, LocalMatter::Known(_)).then_some(Operation::Refresh)
}

/// Tells whether an operation can be carried out before any other of its class.
fn is_runnable<T: Trees>(
    trees: &T,
    wanted: &BTreeMap<NodeId, Operation>,
    directories: &mut BTreeMap<NodeId, bool>,
    node: &NodeId,
    operation: &Operation,
) -> Result<bool, T::Error> {
    match operation {
        Operation::Move | Operation::Materialise => {
            let Some(Remote { place, .. }) = trees.remote(node)? else { return Ok(false) };
            let is_parent_ready = match operation {
                Operation::Move => can_move_into(trees, wanted, node, &place.parent)?,
                _ => will_be_there(trees, wanted, directories, &place.parent)?,
            };
            Ok(is_parent_ready && is_free(trees, node, &place)?)
        }
        Operation::Remove => Ok(!trees.has_local_children(node)?),
        // A directory is deleted although something may stay in it: then the fold keeps it.
        _ => Ok(true),
    }
}

fn is_free<T: Trees>(trees: &T, node: &NodeId, place: &Place) -> Result<bool, T::Error> {
    Ok(trees.local_holder(place)?.is_none_or(|holder| holder == *node))
}

/// Tells whether a directory is in the folder and does not lie in `node`, whatever else is moved at the same time:
/// a directory waits until all above its new place are where they belong, or two moves could close a cycle.
fn can_move_into<T: Trees>(
    trees: &T,
    wanted: &BTreeMap<NodeId, Operation>,
    node: &NodeId,
    parent: &NodeId,
) -> Result<bool, T::Error> {
    let is_directory = trees.local(node)?.is_some_and(|local| local.kind == FileKind::Directory);
    let mut ancestor = *parent;
    while ancestor != NodeId::ROOT {
        if ancestor == *node || is_directory && wanted.get(&ancestor) == Some(&Operation::Move) {
            return Ok(false);
        }
        ancestor = match trees.local(&ancestor)? {
            Some(local) if local.kind == FileKind::Directory => local.place.parent,
            _ => return Ok(false),
        };
    }
    Ok(true)
}

/// Tells whether a directory is in the folder, or will be before anything is put into it.
fn will_be_there<T: Trees>(
    trees: &T,
    wanted: &BTreeMap<NodeId, Operation>,
    directories: &mut BTreeMap<NodeId, bool>,
    directory: &NodeId,
) -> Result<bool, T::Error> {
    let mut asked = Vec::new();
    let mut current = *directory;
    let verdict = loop {
        if current == NodeId::ROOT {
            break true;
        }
        if let Some(&verdict) = directories.get(&current) {
            break verdict;
        }
        asked.push(current);
        // Whoever lies too deep has no path, and a hostile log may be a circle.
        if asked.len() > PATH_DEPTH_MAX {
            break false;
        }
        if let Some(local) = trees.local(&current)? {
            break local.kind == FileKind::Directory;
        }
        match trees.remote(&current)? {
            Some(remote)
                if wanted.get(&current) == Some(&Operation::Materialise)
                    && remote.matter.kind.is_directory()
                    && is_free(trees, &current, &remote.place)? =>
            {
                current = remote.place.parent;
            }
            _ => break false,
        }
    };
    directories.extend(asked.into_iter().map(|node| (node, verdict)));
    Ok(verdict)
}

/// Finds a node that waits to move or to go, and has the place that another one waits for.
fn in_cycle<T: Trees>(
    trees: &T,
    waiting: &BTreeMap<NodeId, Operation>,
) -> Result<Option<NodeId>, T::Error> {
    for (node, operation) in waiting {
        if !matches!(operation, Operation::Move | Operation::Materialise) {
            continue;
        }
        let Some(remote) = trees.remote(node)? else { continue };
        let holder = trees.local_holder(&remote.place)?;
        let is_stuck = |holder: NodeId| {
            matches!(waiting.get(&holder), Some(Operation::Move | Operation::Remove))
        };
        if let Some(holder) = holder.filter(|holder| is_stuck(*holder)) {
            return Ok(Some(holder));
        }
    }
    Ok(None)
}

/// Returns the kind of file that holds this matter.
pub fn file_kind(matter: &Matter) -> FileKind {
    kind_of(&matter.kind)
}

#[cfg(test)]
mod tests;
