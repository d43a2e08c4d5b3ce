//! The log of a workspace as somebody reads it who keeps nothing, such as a page in a browser: folded into a tree in memory.
//!
//! *Participants*: whoever fetches genesis, locked keys and entries, from a server that may lie. *Goals*: exactly what a device
//! refuses is refused here, by the same functions. *Non-goals*: keeping anything; writing, which [`writing`](crate::writing) does. A
//! reader that keeps nothing cannot tell an older log from the newest one. *Invariants*: an entry is folded after it was checked, and
//! never half of it; what could not be folded ends the replay.

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use model::codec::decode_message;
use model::fold::{Folded, Opener, fold, members_of};
use model::{
    Action, Commit, DeviceId, Entry, EntryHash, Genesis, Head, NodeId, NodeRecord, PackId, PackRef,
    Tree,
};

use crate::activity::{Activity, Before, CHANGES_SHOWN_MAX, ChangeSeen};
use crate::conflicts::Conflicts;
use crate::error::ContentError;
use crate::naming::ChunkNamer;
use crate::noted::Deed;
use crate::pack::{PackIndex, verify_whole};
use crate::places::ChunkPlaces;
use crate::sealed::{MemberList, PackGuard, WorkspaceKeys};
use crate::trash::Trash;
use crate::versions::{FoundVersion, Versions};

/// How many indexes of packs are kept, of 1.2 MB at most and some 10 KB mostly.
const INDEXES_MAX: usize = 128;

/// How many bytes of whole packs are kept: small ones, and those that travel in the log.
const WHOLE_LENGTH_MAX: usize = 4 * 1024 * 1024;

/// What a log shows to whoever has no keys, counted (`docs/design/keys.md`, "What a store learns").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// Commits.
    pub commits: u64,
    /// Changes in them.
    pub changes: u64,
    /// Changes that delete.
    pub deletions: u64,
    /// Nodes that were ever changed, by ids that say nothing.
    pub nodes: BTreeSet<NodeId>,
    /// Devices that have made commits.
    pub devices: BTreeSet<DeviceId>,
    /// Packs.
    pub packs: u64,
    /// Bytes of packs, padding included.
    pub pack_bytes: u64,
}

/// A workspace up to one entry of its log.
#[derive(Debug)]
pub struct Replay {
    keys: WorkspaceKeys,
    /// The hash of the genesis, then that of each entry.
    hashes: Vec<EntryHash>,
    tree: Tree,
    packs: Packs,
    shown: Shown,
    trash: Trash,
    conflicts: Conflicts,
    versions: Versions,
    void: Vec<(u64, String)>,
}

impl Replay {
    /// Begins before the first entry.
    pub fn new(genesis: &Genesis, keys: WorkspaceKeys) -> Self {
        let packs = Packs::new(&keys);
        let hashes = vec![genesis.head().hash];
        Self {
            keys,
            hashes,
            tree: Tree::default(),
            packs,
            shown: Shown::default(),
            trash: Trash::default(),
            conflicts: Conflicts::default(),
            versions: Versions::default(),
            void: Vec::new(),
        }
    }

    /// Returns the entry up to which the log is folded.
    pub fn head(&self) -> Head {
        let hash = *self.hashes.last().expect("the hash of the genesis is there");
        Head { seq: self.hashes.len() as u64 - 1, hash }
    }

    /// Returns the hash of an entry that is folded; 0 is the genesis.
    pub fn hash_of(&self, seq: u64) -> Option<EntryHash> {
        self.hashes.get(usize::try_from(seq).ok()?).copied()
    }

    /// Returns the tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns what the log shows to whoever has no keys.
    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Returns what is deleted.
    pub fn trash(&self) -> &Trash {
        &self.trash
    }

    /// Returns what is in a conflict that nobody has decided.
    pub fn conflicts(&self) -> &Conflicts {
        &self.conflicts
    }

    /// Returns the versions of all that is or was there.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Reads the version of a node that the entry of this number has brought, which was fetched again; nothing where it has brought none.
    ///
    /// # Errors
    /// [`ContentError::Tampered`] where it is not the entry that was folded under this number.
    pub fn find_version(
        &self,
        node: &NodeId,
        seq: u64,
        entry: &Entry,
    ) -> Result<Option<FoundVersion>, ContentError> {
        self.check_folded(seq, entry)?;
        let Some((place, _)) = self.versions.brought(node, seq) else { return Ok(None) };
        let record = self.opened(entry, place.change)?;
        let (device_name, time) = self.keys.commit_header(&entry.commit).unwrap_or_default();
        let device = entry.commit.device;
        Ok(Some(FoundVersion { place, time, device, device_name, record }))
    }

    /// Tells what an entry did, which was fetched again; nothing where it changed no file, folder or link. What was renamed is told
    /// without its old name, which stands in the entry of the version before.
    ///
    /// # Errors
    /// [`ContentError::Tampered`] where it is not the entry that was folded under its number.
    pub fn activity(&self, entry: &Entry) -> Result<Option<Activity>, ContentError> {
        self.check_folded(entry.seq, entry)?;
        let (mut count, mut changes) = (0, Vec::new());
        for (number, change) in (0..).zip(&entry.commit.changes) {
            let brought = self.versions.brought(&change.node, entry.seq);
            let Some((place, _)) = brought.filter(|(place, _)| place.change == number) else {
                continue;
            };
            count += 1;
            if changes.len() == CHANGES_SHOWN_MAX {
                continue;
            }
            // A deletion has no name in it; the tree keeps the last one.
            let last = || self.tree.get(&change.node).map(|node| node.record.clone());
            let record = self.opened(entry, number)?.or_else(last);
            let (node, version, happened) = (change.node, place.version, place.happened);
            changes.push(ChangeSeen { node, version, happened, old_name: None, record });
        }
        let (device_name, time) = self.keys.commit_header(&entry.commit).unwrap_or_default();
        let (seq, device) = (entry.seq, entry.commit.device);
        let activity = Activity { seq, time, device, device_name, count, changes };
        Ok((count > 0).then_some(activity))
    }

    /// Refuses an entry that is not the one that was folded under a number.
    fn check_folded(&self, seq: u64, entry: &Entry) -> Result<(), ContentError> {
        match entry.seq == seq && self.hash_of(seq) == Some(entry.hash()) {
            true => Ok(()),
            false => Err(ContentError::Tampered { what: "entry" }),
        }
    }

    /// Reads what a change of an entry has made of a node; nothing where it was deleted.
    fn opened(&self, entry: &Entry, change: u32) -> Result<Option<NodeRecord>, ContentError> {
        let tampered = || ContentError::Tampered { what: "entry" };
        let payload = self.keys.open(&entry.commit, change as usize);
        let payload = payload.map_err(|_| tampered())?;
        let record = payload.map(|payload| decode_message(&payload)).transpose();
        record.map_err(|_| tampered())
    }

    /// Returns the entries that counted for nothing, since nobody who may has made them, and why.
    pub fn void(&self) -> &[(u64, String)] {
        &self.void
    }

    /// Returns where chunks rest.
    pub fn packs_mut(&mut self) -> &mut Packs {
        &mut self.packs
    }

    /// Returns how whoever keeps nothing puts something into packs: their guard, and the keys that cut and name.
    pub(crate) fn keys(&self) -> &WorkspaceKeys {
        &self.keys
    }

    /// Makes a commit of the workspace from one whose payloads are plain, as the device that the keys are of.
    ///
    /// # Errors
    /// [`ContentError::NoKeys`] where the commit is another device's; [`ContentError::UnsupportedSeal`].
    pub fn seal(&self, commit: Commit) -> Result<Commit, ContentError> {
        self.keys.seal_commit(commit)
    }

    /// Seals a note, which only whoever has unlocked the workspace reads.
    ///
    /// # Errors
    /// Those of [`WorkspaceKeys::seal_note`].
    pub fn seal_note(&self, note: &[u8]) -> Result<Vec<u8>, ContentError> {
        self.keys.seal_note(note)
    }

    /// Opens a note.
    ///
    /// # Errors
    /// Those of [`WorkspaceKeys::open_note`].
    pub fn open_note(&self, sealed: &[u8]) -> Result<Vec<u8>, ContentError> {
        self.keys.open_note(sealed)
    }

    /// Returns the list of members that is in force, if the owner has ever let somebody in. The owner has signed it.
    pub fn members(&self) -> Option<MemberList> {
        let Ok(list) = members_of(&self.tree);
        list.and_then(|bytes| MemberList::from_bytes(&bytes).ok())
    }

    /// Goes on with newer keys of the same workspace: what the older ones have sealed they open, too.
    ///
    /// # Errors
    /// [`ContentError::NoKeys`] where they are those of another workspace, or are not newer.
    pub fn renew(&mut self, keys: WorkspaceKeys) -> Result<(), ContentError> {
        if !keys.is_newer_than(&self.keys) {
            return Err(ContentError::NoKeys);
        }
        self.packs.guard = keys.packs();
        self.keys = keys;
        Ok(())
    }

    /// Folds the next entry; returns what became of it.
    ///
    /// # Errors
    /// [`ContentError::NotNext`]; [`ContentError::Forked`]; [`ContentError::UnknownEpoch`] where newer keys are needed. Nothing was
    /// folded then.
    pub fn fold(&mut self, entry: &Entry) -> Result<Folded, ContentError> {
        let head = self.head();
        if !entry.follows(&head) {
            return Err(ContentError::NotNext { seq: entry.seq });
        }
        let Ok(members) = members_of(&self.tree);
        self.keys.check_epoch(&entry.commit, members.as_deref())?;
        let known = usize::try_from(entry.commit.seen.seq).ok();
        let known = known.and_then(|seq| self.hashes.get(seq)).copied();
        if self.keys.is_forked(entry, &head, known, members.as_deref()) {
            return Err(ContentError::Forked { seq: entry.seq });
        }
        let before = Before::of(&self.tree, entry);
        let Ok(folded) = fold(&mut self.tree, entry, &self.keys);
        self.note_shown(entry);
        self.versions.note(&self.tree, entry, &folded, &before);
        // Most entries delete nothing and keep nothing beside something else.
        let header = || self.keys.commit_header(&entry.commit).unwrap_or_default();
        let deed = LazyCell::new(|| Arc::new(Deed::of(entry, header())));
        self.trash.note(&self.tree, &folded, || Arc::clone(&deed));
        self.conflicts.note(&self.tree, &folded, || Arc::clone(&deed));
        // What somebody proposed who had not seen the fence may rest in packs that it condemns.
        if !folded.is_fenced {
            self.packs.note(entry);
        }
        if let Some(fence) = &folded.fence {
            self.packs.places.forget_packs(&fence.condemned);
        }
        if let Some(reason) = &folded.void {
            self.void.push((entry.seq, reason.clone()));
        }
        self.hashes.push(entry.hash());
        Ok(folded)
    }

    fn note_shown(&mut self, entry: &Entry) {
        let (shown, commit) = (&mut self.shown, &entry.commit);
        shown.commits += 1;
        shown.changes += commit.changes.len() as u64;
        let deletions = commit.changes.iter().filter(|change| change.action == Action::Delete);
        shown.deletions += deletions.count() as u64;
        shown.nodes.extend(commit.changes.iter().map(|change| change.node));
        shown.devices.insert(commit.device);
        shown.packs += (commit.packs.len() + commit.inline_packs.len()) as u64;
        shown.pack_bytes += commit.packs.iter().map(|pack| pack.length).sum::<u64>();
        shown.pack_bytes += commit.inline_packs.iter().map(|pack| pack.len() as u64).sum::<u64>();
    }
}

/// The packs of a workspace, as far as they are known: where chunks rest, and what was read of packs lately.
#[derive(Debug)]
pub struct Packs {
    pub(crate) guard: PackGuard,
    pub(crate) namer: ChunkNamer,
    pub(crate) places: ChunkPlaces,
    indexes: HashMap<PackId, Arc<PackIndex>>,
    index_order: VecDeque<PackId>,
    whole: VecDeque<(PackId, Arc<[u8]>)>,
}

impl Packs {
    fn new(keys: &WorkspaceKeys) -> Self {
        Self {
            guard: keys.packs(),
            namer: keys.content().namer(),
            places: ChunkPlaces::default(),
            indexes: HashMap::new(),
            index_order: VecDeque::new(),
            whole: VecDeque::new(),
        }
    }

    fn note(&mut self, entry: &Entry) {
        for pack in &entry.commit.packs {
            self.places.add_pack(pack, None);
        }
        for bytes in &entry.commit.inline_packs {
            let id = pack_id(bytes);
            let length = bytes.len() as u64;
            self.places.add_pack(&PackRef { id, length }, Some(entry.seq));
            // The chunks of one that is damaged are in no pack, and who reads them hears it.
            let _ = self.learn_whole(id, bytes);
        }
    }

    /// Takes a whole pack, and keeps it for a while.
    pub(crate) fn learn_whole(&mut self, id: PackId, bytes: &[u8]) -> Result<(), ContentError> {
        let index = verify_whole(id, bytes, &self.guard)?;
        self.learn(id, index);
        self.whole.retain(|(kept, _)| *kept != id);
        self.whole.push_back((id, bytes.into()));
        let mut length: usize = self.whole.iter().map(|(_, bytes)| bytes.len()).sum();
        while length > WHOLE_LENGTH_MAX
            && self.whole.len() > 1
            && let Some((_, oldest)) = self.whole.pop_front()
        {
            length -= oldest.len();
        }
        Ok(())
    }

    /// Takes the index of a pack, and keeps it for a while.
    pub(crate) fn learn(&mut self, id: PackId, index: PackIndex) {
        self.places.learn(&id, &index);
        if self.indexes.insert(id, Arc::new(index)).is_none() {
            self.index_order.push_back(id);
        }
        if self.index_order.len() > INDEXES_MAX
            && let Some(oldest) = self.index_order.pop_front()
        {
            self.indexes.remove(&oldest);
        }
    }

    pub(crate) fn index(&self, id: &PackId) -> Option<Arc<PackIndex>> {
        self.indexes.get(id).cloned()
    }

    pub(crate) fn whole(&self, id: &PackId) -> Option<Arc<[u8]>> {
        self.whole.iter().find(|(kept, _)| kept == id).map(|(_, bytes)| bytes.clone())
    }
}

/// Returns the id of a pack.
pub(crate) fn pack_id(bytes: &[u8]) -> PackId {
    PackId::from_bytes(*blake3::hash(bytes).as_bytes())
}

#[cfg(test)]
pub(crate) mod tests;
