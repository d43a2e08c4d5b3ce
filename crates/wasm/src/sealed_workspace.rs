//! A sealed workspace that is open: its keys are in the memory of the module and nowhere else, and overwritten when it is freed. What is
//! changed in it: [`sealed_writing`](crate::sealed_writing).

use std::collections::HashMap;

use content::archive::ArchiveReading;
use content::reading::{FileReading, PackPart};
use content::{DeviceKeys, KeyObject, Replay, Secret, Unlocked, WorkspaceKeys};
use model::codec::{DecodeError, decode_message};
use model::commit::DEVICE_NAME_LENGTH_MAX;
use model::wire::{Reply, ServerFrame};
use model::{
    DeviceId, Entry, Genesis, Mounts, Name, NodeId, NodeKind, NodeRecord, Random, Timestamp,
    TreeNode,
};
use std::sync::Arc;
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::sealed_member::Membership;
use crate::sealed_writing::Deed;
use crate::seeded::Seeded;
use crate::source::Memory;

/// What the random bytes of a session are for.
pub(crate) const CONTEXT: &str = "syncline 2026 sealed workspace in a browser";

/// A file, folder or link of a sealed workspace.
#[wasm_bindgen(getter_with_clone)]
#[derive(Debug, Clone)]
pub struct SealedNode {
    /// Its id, which the server knows, too, and which says nothing.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// `folder`, `file` or `link`.
    pub kind: String,
    /// Its length in bytes, where it is a file.
    pub size: Option<f64>,
    /// When it was modified, in milliseconds since 1970.
    #[wasm_bindgen(js_name = "modifiedMs")]
    pub modified_ms: f64,
    /// Its version.
    pub version: f64,
    /// Whether it is the later one of two that were made under one name, or changed at once.
    #[wasm_bindgen(js_name = "isConflict")]
    pub is_conflict: bool,
}

impl SealedNode {
    pub(crate) fn new(id: &NodeId, node: &TreeNode) -> Self {
        Self::of_record(id, node.version, &node.record)
    }

    pub(crate) fn of_record(id: &NodeId, version: u64, record: &NodeRecord) -> Self {
        let (kind, size) = match &record.kind {
            NodeKind::Directory => ("folder", None),
            NodeKind::File(content) => ("file", Some(content.size as f64)),
            NodeKind::Symlink(_) => ("link", None),
        };
        Self {
            id: id.to_string(),
            name: text_of(&record.name),
            kind: kind.to_owned(),
            size,
            modified_ms: milliseconds_of(record.modified),
            version: version as f64,
            is_conflict: record.conflict.is_some(),
        }
    }
}

/// A part of a pack that is to be fetched.
#[wasm_bindgen(getter_with_clone)]
pub struct SealedPart {
    /// The pack.
    pub pack: String,
    /// Its first byte in the pack.
    pub start: f64,
    /// The byte behind its last one.
    pub end: f64,
    /// The entry in which the pack travelled: where that is given, the entry is to be fetched, and not the pack.
    #[wasm_bindgen(js_name = "inlineSeq")]
    pub inline_seq: Option<f64>,
}

/// What the log shows to whoever has no keys.
#[wasm_bindgen]
#[derive(Debug, Clone, Copy)]
pub struct SealedShown {
    /// Commits.
    pub commits: f64,
    /// Changes in them.
    pub changes: f64,
    /// Changes that delete.
    pub deletions: f64,
    /// Files, folders and links that there ever were, by ids that say nothing.
    pub nodes: f64,
    /// Devices that have made commits.
    pub devices: f64,
    /// Packs.
    pub packs: f64,
    /// Bytes of packs, padding included.
    #[wasm_bindgen(js_name = "packBytes")]
    pub pack_bytes: f64,
    /// Entries that counted for nothing, since nobody who may has made them.
    #[wasm_bindgen(js_name = "voidEntries")]
    pub void_entries: f64,
}

/// What is read.
pub(crate) enum Reading {
    File(Box<FileReading>),
    Archive(Box<ArchiveReading>),
}

/// A sealed workspace that is open. The order of calls: [`fold`](Self::fold) until nothing is left, then the others, in any order.
#[wasm_bindgen]
pub struct SealedWorkspace {
    name: String,
    pub(crate) device: DeviceId,
    pub(crate) device_name: String,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) replay: Replay,
    /// What could not be folded, as long as it was not.
    pub(crate) trouble: Option<Failure>,
    pub(crate) deeds: HashMap<u32, Deed>,
    pub(crate) next_deed: u32,
    pub(crate) readings: HashMap<u32, Reading>,
    next_reading: u32,
    /// Who opened it, where it belongs to somebody else.
    pub(crate) member: Option<Membership>,
}

#[wasm_bindgen]
impl SealedWorkspace {
    /// Unlocks a workspace: `id` is that which is to be opened, `genesis` and `keys` are what the server gave of it, the keys of
    /// that `generation`; `secret` is the passphrase or the recovery key, `device` is the device that the server knows this browser as, with
    /// its name for people, and `seed` are 32 random bytes for this session. Takes as long as one Argon2id of 64 MiB or more, where it is
    /// the passphrase.
    ///
    /// # Errors
    /// `wrong_workspace`, `message`, `not_sealed`, `wrong_key`, `key_cost`, `length`.
    #[wasm_bindgen(constructor)]
    #[expect(clippy::too_many_arguments, reason = "JavaScript gives them one by one")]
    pub fn new(
        id: &str,
        genesis: &[u8],
        generation: f64,
        keys: &[u8],
        secret: String,
        device: &str,
        device_name: &str,
        seed: &[u8],
    ) -> Result<Self, Failure> {
        let random: Arc<dyn Random> = Arc::new(Seeded::new(CONTEXT, seed)?);
        let (genesis, unlocked) = unlock(id, genesis, (generation, keys), secret)?;
        Self::enroll(&genesis, &unlocked, (device, device_name), random)
    }

    /// Returns the name of the workspace, which its server does not know.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Returns the number of the last entry that was folded.
    pub fn head(&self) -> f64 {
        self.replay.head().seq as f64
    }

    /// Returns the hash of an entry that was folded, in hexadecimal digits, by which a page knows later that the history is the same.
    #[wasm_bindgen(js_name = "hashOf")]
    pub fn hash_of(&self, seq: f64) -> Option<String> {
        Some(self.replay.hash_of(seq as u64)?.to_string())
    }

    /// Checks and folds the entries of a server frame; returns how many there were.
    ///
    /// # Errors
    /// `not_next`, `forked`, `unknown_epoch`, `message`.
    pub fn fold(&mut self, frame: &[u8]) -> Result<u32, Failure> {
        let folded = self.fold_all(frame);
        // Whoever cannot read what stands in the log writes nothing behind it.
        match &folded {
            Ok(0) => {}
            Ok(_) => self.trouble = None,
            Err(failure) => self.trouble = Some(failure.clone()),
        }
        folded
    }

    /// Returns what lies in a folder, in the order of the bytes of the names; the root has the id of zeros. A folder that is a workspace of
    /// its own has nothing here.
    ///
    /// # Errors
    /// `no_such` where no such folder is there.
    pub fn list(&self, folder: &str) -> Result<Vec<SealedNode>, Failure> {
        let id = self.folder(folder)?;
        let tree = self.replay.tree();
        let Ok(mounts) = Mounts::of(tree);
        if mounts.contains(&id) {
            return Ok(Vec::new());
        }
        let nodes = tree.children(&id).filter_map(|(_, id)| Some((id, tree.get(id)?)));
        Ok(nodes.map(|(id, node)| SealedNode::new(id, node)).collect())
    }

    /// Returns a folder and those above it, the topmost first, without the root.
    ///
    /// # Errors
    /// `no_such`.
    pub fn way(&self, folder: &str) -> Result<Vec<SealedNode>, Failure> {
        Ok(self.way_to(self.folder(folder)?))
    }

    /// Returns what the log shows to whoever has no keys.
    pub fn shown(&self) -> SealedShown {
        let shown = self.replay.shown();
        SealedShown {
            commits: shown.commits as f64,
            changes: shown.changes as f64,
            deletions: shown.deletions as f64,
            nodes: shown.nodes.len() as f64,
            devices: shown.devices.len() as f64,
            packs: shown.packs as f64,
            pack_bytes: shown.pack_bytes as f64,
            void_entries: self.replay.void().len() as f64,
        }
    }

    /// Begins to read a file; returns a number by which the reading is called until [`end`](Self::end).
    ///
    /// # Errors
    /// `no_such` where no such file is there.
    pub fn begin(&mut self, file: &str) -> Result<u32, Failure> {
        let node = file.parse().ok().and_then(|id: NodeId| self.replay.tree().get(&id));
        let kind = node.filter(|node| node.is_alive()).map(|node| &node.record.kind);
        let Some(NodeKind::File(content)) = kind else {
            return Err(Failure::of("no_such", "there is no such file"));
        };
        let reading = FileReading::new(content)?;
        Ok(self.begin_reading(Reading::File(Box::new(reading))))
    }

    /// Returns what is to be fetched now, and given to [`take`](Self::take) or [`takeEntry`](Self::take_entry) in this order.
    ///
    /// # Errors
    /// `missing`, `tampered`, `no_such`.
    pub fn wanted(&mut self, reading: u32) -> Result<Vec<SealedPart>, Failure> {
        let packs = self.replay.packs_mut();
        let parts = match reading_of(&mut self.readings, reading)? {
            Reading::File(file) => file.wanted(packs)?,
            Reading::Archive(archive) => archive.wanted(packs)?,
        };
        Ok(parts.iter().map(part_of).collect())
    }

    /// Takes the bytes of a part that was wanted.
    ///
    /// # Errors
    /// `tampered`, `missing`, `no_such`.
    pub fn take(&mut self, reading: u32, number: u32, bytes: &[u8]) -> Result<(), Failure> {
        let (packs, number) = (self.replay.packs_mut(), number as usize);
        match reading_of(&mut self.readings, reading)? {
            Reading::File(file) => file.take(packs, number, bytes)?,
            Reading::Archive(archive) => archive.take(packs, number, bytes)?,
        }
        Ok(())
    }

    /// Takes a server frame with the entry in which a pack that was wanted has travelled.
    ///
    /// # Errors
    /// As [`take`](Self::take); `message`.
    #[wasm_bindgen(js_name = "takeEntry")]
    pub fn take_entry(&mut self, reading: u32, number: u32, frame: &[u8]) -> Result<(), Failure> {
        let entries = entries_of(frame)?;
        let reading = reading_of(&mut self.readings, reading)?;
        let entry = entries.first().ok_or_else(|| Failure::of("missing", "the entry is gone"))?;
        let (packs, number) = (self.replay.packs_mut(), number as usize);
        match reading {
            Reading::File(file) => file.take_entry(packs, number, entry)?,
            Reading::Archive(archive) => archive.take_entry(packs, number, entry)?,
        }
        Ok(())
    }

    /// Returns the bytes of the file that follow and are here, each chunk compared with its id; none where something is wanted first, or
    /// at the end. Of an archive no more than some MiB.
    ///
    /// # Errors
    /// `chunk_hash`, `content_size`, `no_such`.
    pub fn read(&mut self, reading: u32) -> Result<Vec<u8>, Failure> {
        let packs = self.replay.packs_mut();
        Ok(match reading_of(&mut self.readings, reading)? {
            Reading::File(file) => file.read(packs)?,
            Reading::Archive(archive) => archive.read(packs)?,
        })
    }

    /// The same into memory of the caller, as far as it goes; returns how many bytes these are.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[wasm_bindgen(js_name = "readInto")]
    pub fn read_into(&mut self, reading: u32, memory: &Memory) -> Result<u32, Failure> {
        let reading = reading_of(&mut self.readings, reading)?;
        let mut end = 0;
        let put = |piece: &[u8]| {
            memory.set(piece, end);
            end += piece.len() as u32;
        };
        let (packs, room) = (self.replay.packs_mut(), memory.length() as usize);
        match reading {
            Reading::File(file) => file.read_to(packs, room, put)?,
            Reading::Archive(archive) => archive.read_to(packs, room, put)?,
        };
        Ok(end)
    }

    /// Tells whether all of the file was read.
    ///
    /// # Errors
    /// `content_size`, `no_such`.
    #[wasm_bindgen(js_name = "isOver")]
    pub fn is_over(&mut self, reading: u32) -> Result<bool, Failure> {
        Ok(match reading_of(&mut self.readings, reading)? {
            Reading::File(file) => file.is_over(self.replay.packs_mut())?,
            Reading::Archive(archive) => archive.is_over(),
        })
    }

    /// Ends a reading.
    pub fn end(&mut self, reading: u32) {
        self.readings.remove(&reading);
    }
}

impl SealedWorkspace {
    /// Makes this browser a device of the workspace. The key with which it signs is made here and ends with the session; the account's is
    /// not kept.
    pub(crate) fn enroll(
        genesis: &Genesis,
        unlocked: &Unlocked,
        (device, device_name): (&str, &str),
        random: Arc<dyn Random>,
    ) -> Result<Self, Failure> {
        let signing = content::keyring::SecretKey::random(&*random);
        let keys = DeviceKeys::enroll(genesis, unlocked, device_of(device)?, signing)?;
        Self::open(genesis, keys, device_name, random, None)
    }

    /// Begins before the first entry, with the keys that a device has by now.
    pub(crate) fn open(
        genesis: &Genesis,
        keys: DeviceKeys,
        device_name: &str,
        random: Arc<dyn Random>,
        member: Option<Membership>,
    ) -> Result<Self, Failure> {
        let (name, device) = (keys.name.clone(), keys.identity.device);
        let keys = WorkspaceKeys::open(genesis, Some(keys), Arc::clone(&random))?;
        Ok(Self {
            name,
            device,
            device_name: shortened(device_name).to_owned(),
            random,
            replay: Replay::new(genesis, keys),
            trouble: None,
            deeds: HashMap::new(),
            next_deed: 1,
            readings: HashMap::new(),
            next_reading: 1,
            member,
        })
    }

    pub(crate) fn begin_reading(&mut self, reading: Reading) -> u32 {
        let number = self.next_reading;
        self.readings.insert(number, reading);
        self.next_reading += 1;
        number
    }

    fn fold_all(&mut self, frame: &[u8]) -> Result<u32, Failure> {
        let entries = entries_of(frame)?;
        for entry in &entries {
            let folded = self.replay.fold(entry)?;
            if entry.commit.device == self.device {
                let (tree, head, op_id) =
                    (self.replay.tree(), self.replay.head(), entry.commit.op_id);
                self.deeds.values_mut().for_each(|deed| deed.note(tree, head, op_id, &folded));
            }
        }
        Ok(entries.len() as u32)
    }

    pub(crate) fn way_to(&self, mut id: NodeId) -> Vec<SealedNode> {
        let mut way = Vec::new();
        while let Some(node) = self.replay.tree().get(&id).filter(|_| id != NodeId::ROOT) {
            way.push(SealedNode::new(&id, node));
            id = node.record.parent;
        }
        way.reverse();
        way
    }

    pub(crate) fn folder(&self, text: &str) -> Result<NodeId, Failure> {
        let no_such = || Failure::of("no_such", "there is no such folder");
        let id: NodeId = text.parse().map_err(|_| no_such())?;
        let node = self.replay.tree().get(&id);
        let is_folder = node.is_some_and(|node| node.is_alive() && node.is_directory());
        if id == NodeId::ROOT || is_folder { Ok(id) } else { Err(no_such()) }
    }
}

pub(crate) fn reading_of(
    readings: &mut HashMap<u32, Reading>,
    number: u32,
) -> Result<&mut Reading, Failure> {
    readings
        .get_mut(&number)
        .ok_or_else(|| Failure::of("no_such", "nothing is read by that number"))
}

fn message(error: DecodeError) -> Failure {
    Failure::of("message", &error.to_string())
}

/// Reads a genesis, which has to be that of the workspace that is to be opened.
pub(crate) fn genesis_of(id: &str, bytes: &[u8]) -> Result<Genesis, Failure> {
    let genesis: Genesis = decode_message(bytes).map_err(message)?;
    match genesis.workspace().to_string() == id {
        true => Ok(genesis),
        false => Err(Failure::of("wrong_workspace", "the genesis belongs to another workspace")),
    }
}

/// Opens the locked keys of a `generation` by the passphrase or the recovery key.
pub(crate) fn unlock(
    id: &str,
    genesis: &[u8],
    (generation, keys): (f64, &[u8]),
    secret: String,
) -> Result<(Genesis, Unlocked), Failure> {
    let secret = Secret::from_text(Zeroizing::new(secret));
    let genesis = genesis_of(id, genesis)?;
    let keys = KeyObject::from_bytes(keys)?;
    if keys.generation() as f64 != generation {
        return Err(Failure::of("tampered", "the locked keys lie under the name of others"));
    }
    let unlocked = secret.unlock(&keys, &genesis)?;
    Ok((genesis, unlocked))
}

pub(crate) fn device_of(text: &str) -> Result<DeviceId, Failure> {
    text.parse().map_err(|_| Failure::of("length", "the id of a device has 32 hexadecimal digits"))
}

pub(crate) fn part_of(part: &PackPart) -> SealedPart {
    SealedPart {
        pack: part.pack.id.to_string(),
        start: part.range.start as f64,
        end: part.range.end as f64,
        inline_seq: part.pack.place.inline_seq.map(|seq| seq as f64),
    }
}

/// Says a name to people: bytes that are no text are replaced.
pub(crate) fn text_of(name: &Name) -> String {
    String::from_utf8_lossy(name.as_bytes()).into_owned()
}

/// Says a time as JavaScript does, in milliseconds since 1970.
pub(crate) fn milliseconds_of(time: Timestamp) -> f64 {
    time.seconds as f64 * 1e3 + f64::from(time.nanoseconds / 1_000_000)
}

/// Cuts the name of a device to what a commit holds.
pub(crate) fn shortened(name: &str) -> &str {
    let mut end = name.len().min(DEVICE_NAME_LENGTH_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

pub(crate) fn entries_of(frame: &[u8]) -> Result<Vec<Entry>, Failure> {
    match decode_message(frame).map_err(message)? {
        ServerFrame::Reply { reply: Reply::Entries(entries), .. } => Ok(entries),
        _ => Err(Failure::of("message", "the server answered another question")),
    }
}

#[cfg(test)]
pub(crate) mod tests;
