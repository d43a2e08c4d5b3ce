//! What a browser changes in a sealed workspace that is open: commits that only members can read, and that only this device has made.

mod conflicts;
mod trash;
mod versions;

use std::collections::VecDeque;
use std::slice;
use std::sync::Arc;

use content::ContentError;
use content::changing::{self, FilePut, Move};
use content::conflicts::{Decided, take_back};
use content::packing::{Kept, SAMPLE_LENGTH};
use content::writing::{FileWriting, PacksMark, Written};
use model::codec::{Encode, Encoder, encode_message};
use model::environment::random_bytes;
use model::fold::{FoldNote, Folded};
use model::{Change, Commit, Content, Head, NodeId, NodeRecord, OpId, Outcome, PackRef, Timestamp};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::sealed_workspace::{SealedPart, SealedWorkspace, entries_of, part_of};

pub use conflicts::{SealedConflict, SealedConflicts};
pub use trash::SealedDeleted;
pub use versions::SealedVersion;

/// How often something is planned anew because somebody else was first.
const TRIES: u32 = 5;

/// A pack that is to be stored before the commit is sent.
#[wasm_bindgen(getter_with_clone)]
pub struct SealedPack {
    /// Its id.
    pub id: String,
    /// Its bytes, which mean nothing without the keys.
    pub bytes: Vec<u8>,
}

/// The sketch of a file.
#[wasm_bindgen(getter_with_clone)]
pub struct SealedSketch {
    /// By which it is found. It says what else has the same content, and nothing of it.
    pub name: String,
    /// Its bytes, which mean nothing without the keys.
    pub bytes: Vec<u8>,
}

/// What became of a deed.
#[wasm_bindgen(getter_with_clone)]
pub struct SealedDone {
    /// Whether there is nothing more to propose.
    #[wasm_bindgen(js_name = "isOver")]
    pub is_over: bool,
    /// What it is about: a new folder, the file that was put.
    pub node: Option<String>,
    /// Which version that has by it, whatever became of it since.
    pub version: Option<f64>,
    /// Whether somebody else was first, so that a file is kept beside theirs.
    #[wasm_bindgen(js_name = "isBeside")]
    pub is_beside: bool,
    /// Whether something was let be, or got another name, since others have changed it at the same moment.
    #[wasm_bindgen(js_name = "isPartial")]
    pub is_partial: bool,
}

/// Something that is to be changed, until it stands in the log.
pub(crate) struct Deed {
    what: What,
    /// What was proposed and is not in the log yet, as far as is known.
    proposed: Option<Proposed>,
    /// What became of it.
    folded: Option<Folded>,
    tries: u32,
    is_beside: bool,
    is_partial: bool,
    node: Option<NodeId>,
    /// The version that the node has by what was proposed last.
    version: Option<u64>,
    /// What has stood of a deletion or a move, to be taken back, and what had been seen then.
    stood: (Vec<Change>, Option<Head>),
    /// What was moved, to be taken back.
    moves: Vec<Move>,
    /// What was copied, to be taken back.
    copies: Vec<NodeId>,
    /// What was decided of a conflict, as it was before.
    decided: Vec<Decided>,
    /// Whether somebody else was first with a part of a decision, so that the rest is taken back.
    is_lost: bool,
    /// What stays beside what was decided, in the version that somebody has seen.
    beside: Option<(NodeId, u64)>,
}

struct Proposed {
    op_id: OpId,
    changes: Vec<Change>,
    message: Vec<u8>,
}

enum What {
    Folder { folder: NodeId, name: model::Name, id: NodeId },
    Revert { node: NodeId, old: Box<NodeRecord>, seen: Head },
    Groups { waiting: VecDeque<Vec<Change>>, seen: Option<Head> },
    Put { put: FilePut, file: Box<File> },
}

/// A file on its way.
enum File {
    Writing(Box<FileWriting>),
    Written {
        written: Box<Written>,
        is_named: bool,
    },
    /// Something failed half-way.
    Broken,
}

impl Deed {
    fn new(what: What) -> Self {
        Self {
            what,
            proposed: None,
            folded: None,
            tries: 0,
            is_beside: false,
            is_partial: false,
            node: None,
            version: None,
            stood: (Vec::new(), None),
            moves: Vec::new(),
            copies: Vec::new(),
            decided: Vec::new(),
            is_lost: false,
            beside: None,
        }
    }

    /// Tells whether a decision was made beside another version than somebody has seen.
    fn is_beside_another(&self, tree: &model::Tree) -> bool {
        self.beside.is_some_and(|(node, version)| {
            let found = tree.get(&node).filter(|found| found.is_alive());
            found.is_none_or(|found| found.version != version)
        })
    }

    /// Takes back what has stood of a decision of which something has not.
    fn lose(&mut self, tree: &model::Tree) {
        let has_stood = |one: &&Decided| self.stood.0.iter().any(|change| change.node == one.node);
        let stood: Vec<_> = self.decided.iter().filter(has_stood).cloned().collect();
        // Whoever has changed that since has seen it, and it is let be.
        let back = stood.iter().rev().filter_map(|one| take_back(tree, slice::from_ref(one)).ok());
        let back = back.flatten().collect();
        if let What::Groups { waiting, .. } = &mut self.what {
            *waiting = changing::groups(back).into();
        }
        (self.is_lost, self.stood.0) = (true, Vec::new());
    }

    /// Looks whether an entry, behind which the log ends at `head`, is the one that was proposed.
    pub(crate) fn note(&mut self, tree: &model::Tree, head: Head, op_id: OpId, folded: &Folded) {
        if self.proposed.as_ref().is_none_or(|proposed| proposed.op_id != op_id) {
            return;
        }
        let merged = folded.notes.iter().find_map(|note| match note {
            FoldNote::Merged { node, holder } if self.node == Some(*node) => Some(*holder),
            _ => None,
        });
        self.node = merged.or(self.node);
        self.version = version_of(tree, self.node);
        self.folded = Some(folded.clone());
        if let What::Put { file, .. } = &mut self.what
            && let File::Written { written, .. } = &mut **file
            && folded.void.is_none()
            && !folded.is_fenced
        {
            // It has named the packs: what is proposed beside it rests on this entry, too.
            written.seen = head;
        }
    }

    fn writing(&mut self) -> Result<&mut FileWriting, Failure> {
        match &mut self.what {
            What::Put { file, .. } => match &mut **file {
                File::Writing(writing) => Ok(writing),
                _ => Err(out_of_turn()),
            },
            _ => Err(out_of_turn()),
        }
    }

    /// Returns the changes of the next commit, as things are now; none where nothing is left to do.
    fn plan(&mut self, tree: &model::Tree) -> Result<Vec<Change>, Failure> {
        match &mut self.what {
            What::Folder { folder, name, id } => {
                self.node = Some(*id);
                Ok(changing::make_folder(tree, *folder, name.clone(), *id)?)
            }
            What::Revert { node, old, .. } => {
                self.node = Some(*node);
                Ok(changing::revert(tree, *node, old)?)
            }
            What::Groups { waiting, .. } => Ok(waiting.front().cloned().unwrap_or_default()),
            What::Put { put, file } => {
                let File::Written { written, .. } = &**file else { return Err(out_of_turn()) };
                let planned = put.plan(tree, &written.content)?;
                (self.node, self.is_beside) = (Some(planned.node), planned.is_beside);
                self.version = version_of(tree, self.node);
                Ok(planned.change.into_iter().collect())
            }
        }
    }
}

#[wasm_bindgen]
impl SealedWorkspace {
    /// Begins to make a folder; returns a number by which the deed is called until [`forget`](Self::forget).
    ///
    /// # Errors
    /// `name`; those of [`propose`](Self::propose).
    #[wasm_bindgen(js_name = "makeFolder")]
    pub fn make_folder(&mut self, folder: &str, name: &str) -> Result<u32, Failure> {
        let (folder, name) = (self.folder(folder)?, changing::name_of(name)?);
        let id = NodeId::from_bytes(random_bytes(&*self.random));
        changing::make_folder(self.replay.tree(), folder, name.clone(), id)?;
        self.begin_deed(What::Folder { folder, name, id })
    }

    /// Begins to delete nodes, as somebody has seen them in these versions, with all that is in them.
    ///
    /// # Errors
    /// `no_such`, `changed`, `mounted`.
    pub fn remove(&mut self, nodes: Vec<String>, versions: &[f64]) -> Result<u32, Failure> {
        let mut changes = Vec::new();
        for (node, version) in nodes.iter().zip(versions) {
            let deletions = changing::delete(self.replay.tree(), node_of(node)?, *version as u64)?;
            changes.extend(deletions);
        }
        self.begin_changes(changes, None)
    }

    /// Begins to move nodes into a folder, as somebody has seen them in these versions, under these names; or to rename them where they are.
    ///
    /// # Errors
    /// `name`, `no_such`, `changed`, `taken`, `mounted`, `into_itself`.
    #[wasm_bindgen(js_name = "moveAll")]
    pub fn move_all(
        &mut self,
        nodes: Vec<String>,
        versions: &[f64],
        names: Vec<String>,
        folder: &str,
    ) -> Result<u32, Failure> {
        if versions.len() != nodes.len() || names.len() != nodes.len() {
            return Err(Failure::of("no_such", "each node has one version and one name"));
        }
        let mut seen = Vec::with_capacity(nodes.len());
        for ((node, version), name) in nodes.iter().zip(versions).zip(&names) {
            seen.push((node_of(node)?, *version as u64, changing::name_of(name)?));
        }
        let folder = self.folder(folder)?;
        let (changes, moves) = changing::move_all(self.replay.tree(), &seen, folder)?;
        let deed = self.begin_changes(changes, None)?;
        self.deed_mut(deed)?.moves = moves;
        Ok(deed)
    }

    /// Begins to copy nodes into a folder, each with all that is in it, under these names: no content is read or sent.
    ///
    /// # Errors
    /// `name`, `no_such`, `taken`, `mounted`, `into_itself`.
    #[wasm_bindgen(js_name = "copyAll")]
    pub fn copy_all(
        &mut self,
        nodes: Vec<String>,
        names: Vec<String>,
        folder: &str,
    ) -> Result<u32, Failure> {
        if names.len() != nodes.len() {
            return Err(Failure::of("no_such", "each node has one name"));
        }
        let named = nodes.iter().zip(&names);
        let wanted = named.map(|(node, name)| Ok((node_of(node)?, changing::name_of(name)?)));
        let wanted: Vec<_> = wanted.collect::<Result<_, Failure>>()?;
        let (folder, random) = (self.folder(folder)?, Arc::clone(&self.random));
        let new_id = || NodeId::from_bytes(random_bytes(&*random));
        let (changes, copies) = changing::copy_all(self.replay.tree(), &wanted, folder, new_id)?;
        // What a cleanup removes meanwhile is not copied: then it counts for nothing.
        let seen = Some(self.replay.head());
        let deed = self.begin_changes(changes, seen)?;
        self.deed_mut(deed)?.copies = copies;
        Ok(deed)
    }

    /// Begins to take a deletion, a move, a copy or a decision back.
    ///
    /// # Errors
    /// `no_such`, `changed`.
    pub fn restore(&mut self, deed: u32) -> Result<u32, Failure> {
        let Deed { stood: (stood, seen), moves, copies, decided, .. } = self.deed(deed)?;
        if !copies.is_empty() {
            let made = stood.iter().map(|change| change.node).collect();
            let changes = changing::delete_copies(self.replay.tree(), copies, &made)?;
            return self.begin_changes(changes, None);
        }
        if !decided.is_empty() {
            let (changes, seen) = (take_back(self.replay.tree(), decided)?, *seen);
            return self.begin_changes(changes, seen);
        }
        if !moves.is_empty() {
            let has_stood = |moved: &&Move| stood.iter().any(|change| change.node == moved.node);
            let moves: Vec<_> = moves.iter().filter(has_stood).cloned().collect();
            let changes = changing::move_back(self.replay.tree(), &moves)?;
            return self.begin_changes(changes, None);
        }
        let (changes, seen) = (changing::restore(self.replay.tree(), stood)?, *seen);
        // What a cleanup has condemned since is not brought back: then it counts for nothing.
        self.begin_changes(changes, seen)
    }

    /// Begins to put a file of `size` bytes: over the file of that name in the version that somebody has seen, `NODE.VERSION`, or where none
    /// is there. Where somebody changes that at the same moment it is kept beside it, if it is to be; a file where none is always is. The
    /// order of calls then: samples, parts, pieces and packs, [`endPut`](Self::end_put) and packs, and as with every deed
    /// [`propose`](Self::propose).
    ///
    /// # Errors
    /// `name`, `no_such`, `mounted`; `taken` and `changed` where something else is there.
    pub fn put(
        &mut self,
        folder: &str,
        name: &str,
        over: Option<String>,
        is_beside: bool,
        size: f64,
        modified_ms: f64,
    ) -> Result<u32, Failure> {
        let place = (self.folder(folder)?, changing::name_of(name)?);
        let id = NodeId::from_bytes(random_bytes(&*self.random));
        let over = over.as_deref().map(seen_version_of).transpose()?;
        let is_beside = is_beside || over.is_none();
        let label = is_beside.then(|| format!("conflict {}", self.device_name));
        let put = FilePut::new(self.replay.tree(), place, (id, time_of(modified_ms)), label)?;
        match (put.over.as_ref().map(|base| (base.node, base.version)), over) {
            (Some(_), None) => {
                return Err(Failure::of("taken", "there is a file of that name already"));
            }
            (there, Some(seen)) if there != Some(seen) => {
                return Err(Failure::of("changed", "the file is not as somebody has seen it"));
            }
            _ => {}
        }
        let base = put.over.as_ref().map(|base| &base.content);
        let writing = FileWriting::new(&self.replay, base, size as u64)?;
        self.begin_deed(What::Put { put, file: Box::new(File::Writing(Box::new(writing))) })
    }

    /// Returns by which name the sketch of the content that is replaced was kept; nothing for a new file.
    ///
    /// # Errors
    /// `no_such`.
    #[wasm_bindgen(js_name = "putBase")]
    pub fn put_base(&self, deed: u32) -> Result<Option<String>, Failure> {
        let What::Put { put, .. } = &self.deed(deed)?.what else { return Err(out_of_turn()) };
        Ok(put.over.as_ref().map(|base| sketch_name(&base.content)))
    }

    /// Takes the sketch of that version, before the first piece: of chunks that were edited only what is new is sent. What is none is let be.
    ///
    /// # Errors
    /// `no_such`.
    #[wasm_bindgen(js_name = "putSketch")]
    pub fn put_sketch(&mut self, deed: u32, sketch: &[u8]) -> Result<(), Failure> {
        let kept = self.replay.open_note(sketch).ok().and_then(|kept| Kept::decode(&kept).ok());
        let writing = self.deed_mut(deed)?.writing()?;
        if let Some(kept) = kept {
            writing.compare(kept);
        }
        Ok(())
    }

    /// Returns the sketch of a file that was put, to be kept so that its next version is packed as what has changed: whoever has the keys can
    /// read it, and nobody else. There is none of a large file, and none the second time.
    ///
    /// # Errors
    /// `no_such`.
    #[wasm_bindgen(js_name = "takeSketch")]
    pub fn take_sketch(&mut self, deed: u32) -> Result<Option<SealedSketch>, Failure> {
        let What::Put { file, .. } = &mut self.deed_mut(deed)?.what else {
            return Err(out_of_turn());
        };
        let File::Written { written, .. } = &mut **file else { return Err(out_of_turn()) };
        let Some(kept) = written.kept.take() else { return Ok(None) };
        let name = sketch_name(&written.content);
        Ok(Some(SealedSketch { name, bytes: self.replay.seal_note(&kept.encode())? }))
    }

    /// Returns up to when packs that were stored, and that no commit names yet, can be named by one: as long as this stays the same.
    #[wasm_bindgen(js_name = "packsMark")]
    pub fn packs_mark(&self) -> String {
        PacksMark::of(&self.replay).to_string()
    }

    /// Tells of packs with these lengths that were stored before, at a mark, and that no commit names: what is in them is not sent again. To be called
    /// before the first sample; at another mark than that of now they are let be.
    ///
    /// # Errors
    /// `no_such`.
    pub fn resume(
        &mut self,
        deed: u32,
        mark: &str,
        packs: Vec<String>,
        lengths: &[f64],
    ) -> Result<(), Failure> {
        let is_of_now = mark == self.packs_mark();
        let writing = self.deed_mut(deed)?.writing()?;
        let pack = |(id, length): (&String, &f64)| {
            Some(PackRef { id: id.parse().ok()?, length: *length as u64 })
        };
        let stored: Vec<_> = packs.iter().zip(lengths).filter_map(pack).collect();
        writing.resume(if is_of_now { &stored } else { &[] });
        Ok(())
    }

    /// Returns from which byte a sample is wanted, of [`sampleLength`](Self::sample_length) bytes or up to the end, if one is.
    ///
    /// # Errors
    /// `no_such`.
    #[wasm_bindgen(js_name = "samplePlace")]
    pub fn sample_place(&mut self, deed: u32) -> Result<Option<f64>, Failure> {
        Ok(self.deed_mut(deed)?.writing()?.sample_place().map(|place| place as f64))
    }

    /// Returns how long a sample is, in bytes.
    #[wasm_bindgen(js_name = "sampleLength")]
    pub fn sample_length() -> u32 {
        SAMPLE_LENGTH as u32
    }

    /// Takes the sample that was wanted.
    ///
    /// # Errors
    /// `no_such`.
    #[wasm_bindgen(js_name = "takeSample")]
    pub fn take_sample(&mut self, deed: u32, bytes: &[u8]) -> Result<(), Failure> {
        self.deed_mut(deed)?.writing()?.take_sample(bytes);
        Ok(())
    }

    /// Returns what is to be fetched before the first piece, and given to [`takeKnown`](Self::take_known) in this order, to learn what need
    /// not be sent.
    ///
    /// # Errors
    /// `no_such`.
    #[wasm_bindgen(js_name = "wantedKnown")]
    pub fn wanted_known(&mut self, deed: u32) -> Result<Vec<SealedPart>, Failure> {
        let deed = self.deeds.get_mut(&deed).ok_or_else(no_deed)?;
        Ok(deed.writing()?.wanted(self.replay.packs_mut()).iter().map(part_of).collect())
    }

    /// Takes the bytes of a part that was wanted, or a server frame with the entry in which it has travelled.
    ///
    /// # Errors
    /// `no_such`, `tampered`, `message`.
    #[wasm_bindgen(js_name = "takeKnown")]
    pub fn take_known(
        &mut self,
        deed: u32,
        number: u32,
        bytes: &[u8],
        is_entry: bool,
    ) -> Result<(), Failure> {
        let writing = self.deeds.get_mut(&deed).ok_or_else(no_deed)?.writing()?;
        let (packs, number) = (self.replay.packs_mut(), number as usize);
        if !is_entry {
            return Ok(writing.take(packs, number, bytes)?);
        }
        match entries_of(bytes)?.first() {
            Some(entry) => Ok(writing.take_entry(packs, number, entry)?),
            None => Ok(writing.take(packs, number, &[])?),
        }
    }

    /// Takes the next piece of the file.
    ///
    /// # Errors
    /// `no_such`; `read` where the file is longer than it was.
    pub fn push(&mut self, deed: u32, piece: &[u8]) -> Result<(), Failure> {
        let deed = self.deeds.get_mut(&deed).ok_or_else(no_deed)?;
        let pushed = deed.writing()?.push(self.replay.packs_mut(), piece);
        if pushed.is_err()
            && let What::Put { file, .. } = &mut deed.what
        {
            **file = File::Broken;
        }
        Ok(pushed?)
    }

    /// Returns a pack that is full, if one is.
    ///
    /// # Errors
    /// `no_such`.
    #[wasm_bindgen(js_name = "takePack")]
    pub fn take_pack(&mut self, deed: u32) -> Result<Option<SealedPack>, Failure> {
        Ok(self.deed_mut(deed)?.writing()?.take_pack().map(pack_of))
    }

    /// Says that the last piece has come; returns the packs that are left to be stored.
    ///
    /// # Errors
    /// `no_such`; `read` where the file is shorter than it was.
    #[wasm_bindgen(js_name = "endPut")]
    pub fn end_put(&mut self, deed: u32) -> Result<Vec<SealedPack>, Failure> {
        let deed = self.deeds.get_mut(&deed).ok_or_else(no_deed)?;
        let What::Put { file, .. } = &mut deed.what else { return Err(out_of_turn()) };
        let File::Writing(writing) = std::mem::replace(&mut **file, File::Broken) else {
            return Err(out_of_turn());
        };
        let (written, packs) = writing.finish(&mut self.replay)?;
        **file = File::Written { written: Box::new(written), is_named: false };
        Ok(packs.into_iter().map(pack_of).collect())
    }

    /// Returns the commit that is to be sent, as things are now; none where there is nothing to change. The same commit comes back until
    /// [`settle`](Self::settle), so that sending it again is sending the same.
    ///
    /// # Errors
    /// Those of what could not be folded, which forbid to write; `read_only`, `no_such`, `changed`, `taken`, `mounted`, `into_itself`, `name`,
    /// `busy`; `fenced` as [`settle`](Self::settle).
    pub fn propose(&mut self, deed: u32, now_ms: f64) -> Result<Option<Vec<u8>>, Failure> {
        self.check_writing()?;
        let op_id = OpId::from_bytes(random_bytes(&*self.random));
        let (device, head) = (self.device, self.replay.head());
        let deed = self.deeds.get_mut(&deed).ok_or_else(no_deed)?;
        if let Some(proposed) = &deed.proposed {
            return Ok(Some(proposed.message.clone()));
        }
        if deed.tries == TRIES {
            return Err(Failure::retryable("busy", "others were faster again and again"));
        }
        // Behind a cleanup it would count for nothing; where the server has lost that, for more than it rests on; and who was shut out by newer
        // keys could read it.
        if let What::Put { file, .. } = &deed.what
            && let File::Written { written, .. } = &**file
            && written.is_outdated(&self.replay)
        {
            return Err(fenced());
        }
        let changes = deed.plan(self.replay.tree())?;
        if changes.is_empty() {
            return Ok(None);
        }
        deed.tries += 1;
        let mut commit = Commit {
            op_id,
            device,
            device_name: self.device_name.clone(),
            time: time_of(now_ms),
            seen: head,
            changes,
            packs: Vec::new(),
            inline_packs: Vec::new(),
            has_deltas: false,
            seal: None,
        };
        match &mut deed.what {
            What::Put { file, .. } => {
                let File::Written { written, is_named } = &mut **file else {
                    return Err(out_of_turn());
                };
                // Chunks were left out of the packs by what was known then.
                commit.seen = written.seen;
                if !*is_named {
                    commit.packs.clone_from(&written.packs);
                    commit.inline_packs.clone_from(&written.inline_packs);
                    commit.has_deltas = written.has_deltas();
                }
            }
            What::Groups { seen: Some(seen), .. } | What::Revert { seen, .. } => {
                commit.seen = *seen;
            }
            _ => {}
        }
        let changes = commit.changes.clone();
        let message = encode_message(&self.replay.seal(commit)?);
        deed.proposed = Some(Proposed { op_id, changes, message: message.clone() });
        deed.folded = None;
        Ok(Some(message))
    }

    /// Says what became of the commit that was proposed, after it was answered and the log was folded.
    ///
    /// # Errors
    /// `not_kept` where the server has answered that it stands in the log, and it does not; `fenced` where a cleanup came in between, or newer
    /// keys, and all is to be done again; `void` where no device believes this one.
    pub fn settle(&mut self, deed: u32) -> Result<SealedDone, Failure> {
        let head = self.replay.head();
        let deed = self.deeds.get_mut(&deed).ok_or_else(no_deed)?;
        let Some(proposed) = deed.proposed.take() else { return Ok(done(deed, true)) };
        let Some(folded) = deed.folded.take() else {
            deed.proposed = Some(proposed);
            return Err(Failure::of("not_kept", "what the server has taken is not in the log"));
        };
        if folded.void.is_some() {
            return Err(Failure::of("void", "this device is not believed by others"));
        }
        if folded.is_fenced {
            return match &deed.what {
                // These rest on nothing that a cleanup removes.
                What::Folder { .. } | What::Groups { seen: None, .. } => Ok(done(deed, false)),
                _ => Err(fenced()),
            };
        }
        if let What::Put { file, .. } = &mut deed.what
            && let File::Written { written, is_named } = &mut **file
        {
            *is_named = true;
            written.learn(self.replay.packs_mut());
        }
        let is_lost = |outcome: &Outcome| matches!(outcome, Outcome::Rejected { .. });
        let lost = folded.outcomes.iter().filter(|outcome| is_lost(outcome)).count();
        deed.is_partial |= folded.notes.iter().any(|note| match note {
            FoldNote::Merged { .. } | FoldNote::Revived { .. } => false,
            FoldNote::NotEmpty { .. }
            | FoldNote::NameTaken { .. }
            | FoldNote::MoveVoid { .. }
            | FoldNote::Unreadable { .. } => true,
        });
        if let What::Groups { waiting, .. } = &mut deed.what {
            waiting.pop_front();
            let stood = proposed.changes.into_iter().zip(&folded.outcomes);
            let stood = stood.filter(|(_, outcome)| !is_lost(outcome)).map(|(change, _)| change);
            deed.stood.0.extend(stood);
            deed.stood.1.get_or_insert(head);
            // What others have changed meanwhile is let be.
            deed.is_partial |= lost > 0;
            deed.tries = 0;
            let is_late = lost > 0 || deed.is_beside_another(self.replay.tree());
            if is_late && !deed.decided.is_empty() && !deed.is_lost {
                deed.lose(self.replay.tree());
            }
            let What::Groups { waiting, .. } = &deed.what else { return Err(out_of_turn()) };
            return match waiting.is_empty() {
                true if deed.is_lost => {
                    Err(Failure::of("changed", "somebody else has changed a side of the conflict"))
                }
                is_over => Ok(done(deed, is_over)),
            };
        }
        Ok(done(deed, lost == 0))
    }

    /// Ends a deed: what it would need to be taken back, too, is forgotten.
    pub fn forget(&mut self, deed: u32) {
        self.deeds.remove(&deed);
    }
}

impl SealedWorkspace {
    /// Begins a deed of changes; those that rest on what a cleanup may remove have seen no later one than the head `seen`.
    pub(crate) fn begin_changes(
        &mut self,
        changes: Vec<Change>,
        seen: Option<Head>,
    ) -> Result<u32, Failure> {
        let waiting = changing::groups(changes).into();
        self.begin_deed(What::Groups { waiting, seen })
    }

    fn begin_deed(&mut self, what: What) -> Result<u32, Failure> {
        self.check_writing()?;
        let number = self.next_deed;
        self.deeds.insert(number, Deed::new(what));
        self.next_deed += 1;
        Ok(number)
    }

    /// Refuses what no device would believe: of somebody who may only read, or who cannot read what stands in the log.
    fn check_writing(&self) -> Result<(), Failure> {
        match &self.trouble {
            Some(trouble) => Err(trouble.clone()),
            None if self.may_write() => Ok(()),
            None => Err(Failure::of("read_only", "the owner lets this account only read")),
        }
    }

    fn deed(&self, number: u32) -> Result<&Deed, Failure> {
        self.deeds.get(&number).ok_or_else(no_deed)
    }

    fn deed_mut(&mut self, number: u32) -> Result<&mut Deed, Failure> {
        self.deeds.get_mut(&number).ok_or_else(no_deed)
    }
}

fn done(deed: &Deed, is_over: bool) -> SealedDone {
    let Deed { is_beside, is_partial, node, version, .. } = deed;
    let (is_beside, is_partial) = (*is_beside, *is_partial);
    let (node, version) =
        (node.map(|node| node.to_string()), version.map(|version| version as f64));
    SealedDone { is_over, node, version, is_beside, is_partial }
}

fn fenced() -> Failure {
    Failure::retryable("fenced", "a cleanup or newer keys came in between")
}

fn version_of(tree: &model::Tree, node: Option<NodeId>) -> Option<u64> {
    Some(tree.get(&node?)?.version)
}

/// Names a content by the ids of its chunks, which only whoever has the keys can make of bytes.
fn sketch_name(content: &Content) -> String {
    let mut encoder = Encoder::default();
    content.encode(&mut encoder);
    blake3::hash(&encoder.into_bytes()).to_string()
}

fn pack_of((id, bytes): (model::PackId, Vec<u8>)) -> SealedPack {
    SealedPack { id: id.to_string(), bytes }
}

pub(crate) fn node_of(text: &str) -> Result<NodeId, Failure> {
    text.parse().map_err(|_| Failure::of("no_such", "there is no such node"))
}

/// Reads which version of which node somebody has seen, `NODE.VERSION`.
fn seen_version_of(text: &str) -> Result<(NodeId, u64), Failure> {
    let (node, version) = text.split_once('.').unwrap_or_default();
    let version =
        version.parse().map_err(|_| Failure::of("no_such", "there is no such version"))?;
    Ok((node_of(node)?, version))
}

/// Reads a time of JavaScript, in milliseconds since 1970.
pub(crate) fn time_of(ms: f64) -> Timestamp {
    let seconds = (ms / 1e3).floor();
    let nanoseconds = (ms - seconds * 1e3) * 1e6;
    let nanoseconds = (nanoseconds as u32).min(999_999_999);
    Timestamp { seconds: seconds as i64, nanoseconds }
}

fn no_deed() -> Failure {
    Failure::of("no_such", "nothing is changed by that number")
}

fn out_of_turn() -> Failure {
    ContentError::Read { source: std::io::Error::other("nothing of the kind is due now") }.into()
}

#[cfg(test)]
pub(crate) mod tests;
