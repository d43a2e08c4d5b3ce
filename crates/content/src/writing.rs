//! Packs a file for whoever keeps nothing, such as a page in a browser: piece by piece, and only what the workspace lacks.
//!
//! *Participants*: whoever reads a file and sends packs; the [`Packs`] of a [`Replay`]. *Goals*: the chunks and packs that a device
//! makes, by the same [`FilePacker`]; memory that does not grow with the file's bytes, but for what is kept of it; a small change of a large file sends little.
//! *Non-goals*: sending; deciding what the file becomes ([`changing`](crate::changing)). *Invariants*: a chunk that is left out is in a pack
//! that the log names up to the entry that is [`seen`](Written::seen), or made from what is, or in one that was stored before and that the
//! commit names ([`FileWriting::resume`]), and whose index was read; a commit that names that entry as seen counts for nothing where a fence
//! has come since the writing began, or where the server has lost that entry.
//!
//! The order of calls: samples, until none is wanted; parts of packs, until none is wanted; pieces of the file, with the packs that are
//! full after each; the end, with the packs that are left.

mod stored;

use std::collections::HashSet;

use model::commit::INLINE_PACKS_LENGTH_MAX;
use model::{ChunkId, ChunkRef, Content, Entry, Head, PackId, PackRef};

use crate::delta::VersionSketch;
use crate::error::ContentError;
use crate::pack::{Ancestry, FinishedPack, PACK_STORED_TARGET, PackIndex};
use crate::packing::{
    AverageChoice, FileCut, FilePacker, Kept, PackSettings, PackSink, WHOLE_FILE_SIZE_MAX,
};
use crate::places::ChunkPlaces;
use crate::reading::{FileReading, PackPart};
use crate::replay::{Packs, Replay};
use crate::transform::Transform;

pub use stored::PacksMark;
use stored::StoredPacks;

/// For so many bytes of a file the index of one more pack is looked into: it has mostly 64 KiB at most, so a sixteenth is fetched to
/// find what need not be sent.
const LENGTH_PER_INDEX: u64 = 1024 * 1024;

/// Of files up to this size in bytes something is kept: 14 MiB of the largest.
const KEPT_SIZE_MAX: u64 = 256 * 1024 * 1024;

/// A smaller file has so few bytes that the smallest pack has room for them.
const KEPT_SIZE_MIN: u64 = 4 * 1024;

/// Knows what the workspace has, and keeps packs until somebody takes them.
#[derive(Default)]
struct Sink {
    /// Lent for the time of a call.
    places: ChunkPlaces,
    claims: HashSet<ChunkId>,
    stored: StoredPacks,
    full: Vec<FinishedPack>,
}

impl Sink {
    /// Tells whether a chunk is in a pack that the log names, or in one that is filled now.
    fn is_packed(&self, chunk: &ChunkRef) -> bool {
        self.claims.contains(&chunk.id) || self.places.is_readable(chunk)
    }
}

impl PackSink for Sink {
    type Error = ContentError;

    fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
        Ok(!self.is_packed(chunk) && !self.stored.claim(&chunk.id) && self.claims.insert(chunk.id))
    }

    fn knows(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
        // Whoever asks may leave it out without claiming it.
        Ok(self.is_packed(chunk) || self.stored.claim(&chunk.id))
    }

    fn ancestry(&mut self, chunk: &ChunkRef) -> Result<Option<Ancestry>, ContentError> {
        Ok(self.places.ancestry(&chunk.id))
    }

    fn emit(&mut self, pack: FinishedPack) -> Result<(), ContentError> {
        self.full.push(pack);
        Ok(())
    }
}

/// A file on its way into packs.
pub struct FileWriting {
    /// What had been seen when it began.
    seen: Head,
    /// Until when what it does holds.
    mark: PacksMark,
    size: u64,
    taken: u64,
    average: AverageChoice,
    /// The version before, while it is looked for its chunks.
    base: Option<FileReading>,
    /// How many more packs may be looked into.
    more: usize,
    /// What was kept of the version before.
    before: Option<Kept>,
    packer: FilePacker<Sink>,
    /// The bytes of the next version of a file that devices have in memory, too, while they pack it.
    whole: Option<Vec<u8>>,
    cut: Option<FileCut>,
    sent: Sent,
}

/// The id of a pack, and its bytes.
pub type NamedPack = (PackId, Vec<u8>);

/// Packs that were given away to be stored.
#[derive(Debug, Default)]
struct Sent {
    named: Vec<PackRef>,
    indexes: Vec<(PackId, PackIndex)>,
}

/// A file that is all in packs.
#[derive(Debug)]
pub struct Written {
    /// Its content.
    pub content: Content,
    /// What had been seen when the last chunk was left out, or before a fence or newer keys that have come meanwhile; the commit must name it.
    pub seen: Head,
    /// The packs that are stored when the commit is proposed.
    pub packs: Vec<PackRef>,
    /// Those that travel in it.
    pub inline_packs: Vec<Vec<u8>>,
    /// What to keep, so that the next version is packed as what has changed; of small and of large files nothing. It is as secret as the file.
    pub kept: Option<Kept>,
    mark: PacksMark,
    indexes: Vec<(PackId, PackIndex)>,
}

impl Written {
    /// Returns whether it is to be written again, since a fence or newer keys have come since the writing began. Behind a fence what was left
    /// out may be gone, and a commit counts for nothing; and who was shut out by newer keys can open packs of older ones.
    pub fn is_outdated(&self, replay: &Replay) -> bool {
        self.mark != PacksMark::of(replay)
    }

    /// Tells whether any of its packs has delta records, which the commit must say: one of those that were stored before, perhaps.
    pub fn has_deltas(&self) -> bool {
        self.indexes.iter().any(|(_, index)| index.has_deltas())
    }

    /// Notes what is in the packs, once their commit is folded, so that it need not be fetched.
    pub fn learn(&mut self, packs: &mut Packs) {
        for (id, index) in self.indexes.drain(..) {
            packs.learn(id, index);
        }
    }
}

impl FileWriting {
    /// Begins a file of `size` bytes; `base` is the version before it, which shares chunks with it.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedTransform`].
    pub fn new(replay: &Replay, base: Option<&Content>, size: u64) -> Result<Self, ContentError> {
        let settings = PackSettings {
            transform: Transform::default(),
            guard: replay.keys().packs(),
            target: PACK_STORED_TARGET,
        };
        // A version that cannot be read shares nothing.
        let lists = FileReading::of_lists(base.unwrap_or(&Content::default())).ok();
        let is_whole = base.is_some() && size <= WHOLE_FILE_SIZE_MAX;
        Ok(Self {
            seen: replay.head(),
            mark: PacksMark::of(replay),
            size,
            taken: 0,
            average: AverageChoice::new(base.map(|base| base.chunk_size), size),
            base: lists.filter(|_| size > 0),
            more: usize::try_from(size / LENGTH_PER_INDEX).unwrap_or(usize::MAX),
            before: None,
            packer: FilePacker::new(replay.keys().content(), &settings, Sink::default())?,
            whole: is_whole.then(Vec::new),
            cut: None,
            sent: Sent::default(),
        })
    }

    /// Takes what was kept of the version before, before the first piece: of a chunk that was edited only what is new in it is packed.
    pub fn compare(&mut self, before: Kept) {
        self.before = Some(before);
    }

    /// Takes packs that were stored before and that no commit names yet: what is in them is not sent again. Only those of the same
    /// [`PacksMark`] as now count.
    pub fn resume(&mut self, packs: &[PackRef]) {
        self.packer.sink_mut().stored = StoredPacks::new(packs);
    }

    /// Returns from where [`SAMPLE_LENGTH`](crate::packing::SAMPLE_LENGTH) bytes, or those up to the end, are wanted before the first piece.
    pub fn sample_place(&self) -> Option<u64> {
        self.average.place()
    }

    /// Takes the sample that was wanted.
    pub fn take_sample(&mut self, sample: &[u8]) {
        self.average.take(sample);
    }

    /// Returns which parts of packs are to be fetched before the first piece, to be given to [`Self::take`] in this order; none where it is
    /// known what need not be sent. What of the version before is damaged or gone is sent again.
    pub fn wanted(&mut self, packs: &Packs) -> Vec<PackPart> {
        let stored = self.packer.sink_mut().stored.wanted();
        if !stored.is_empty() {
            return stored;
        }
        let is_over = match &mut self.base {
            None => true,
            Some(base) => !base.sought(packs, &mut self.more).is_ok_and(|parts| !parts.is_empty()),
        };
        if is_over {
            self.base = None;
        }
        self.base.as_ref().map_or_else(Vec::new, |base| base.asked().to_vec())
    }

    /// Takes the bytes of a part that was wanted.
    ///
    /// # Errors
    /// As [`FileReading::take`].
    pub fn take(
        &mut self,
        packs: &mut Packs,
        number: usize,
        bytes: &[u8],
    ) -> Result<(), ContentError> {
        let stored = &mut self.packer.sink_mut().stored;
        if stored.is_asking() {
            stored.take(packs, number, bytes);
            return Ok(());
        }
        self.base.as_mut().map_or(Ok(()), |base| base.take(packs, number, bytes))
    }

    /// Takes an entry with a pack that travelled in it.
    ///
    /// # Errors
    /// As [`FileReading::take_entry`].
    pub fn take_entry(
        &mut self,
        packs: &mut Packs,
        number: usize,
        entry: &Entry,
    ) -> Result<(), ContentError> {
        self.base.as_mut().map_or(Ok(()), |base| base.take_entry(packs, number, entry))
    }

    /// Takes the next piece of the file.
    ///
    /// # Errors
    /// [`ContentError`]; nothing can be done with the file then but to begin again.
    pub fn push(&mut self, packs: &mut Packs, piece: &[u8]) -> Result<(), ContentError> {
        self.taken += piece.len() as u64;
        if self.taken > self.size {
            return Err(has_changed());
        }
        if let Some(whole) = &mut self.whole {
            whole.extend_from_slice(piece);
            return Ok(());
        }
        self.with_places(packs, |writing| {
            let mut cut = writing.take_cut()?;
            writing.packer.push(&mut cut, piece)?;
            writing.cut = Some(cut);
            Ok(())
        })
    }

    /// Returns a pack that is full, to be stored before the commit is proposed.
    pub fn take_pack(&mut self) -> Option<NamedPack> {
        let full = &mut self.packer.sink_mut().full;
        let pack = (!full.is_empty()).then(|| full.remove(0))?;
        Some(self.sent.give(pack))
    }

    /// Ends the file; returns it with the packs that are to be stored yet. Small ones travel in the commit.
    ///
    /// # Errors
    /// [`ContentError::Read`] where the file is not as long as it was; [`ContentError`].
    pub fn finish(
        mut self,
        replay: &mut Replay,
    ) -> Result<(Written, Vec<NamedPack>), ContentError> {
        // A commit that has seen the fence would not be told by it that something that was left out may be gone.
        if self.mark == PacksMark::of(replay) {
            self.seen = replay.head();
        }
        let (content, kept) =
            self.with_places(replay.packs_mut(), |writing| match writing.whole.take() {
                Some(bytes) => {
                    let (before, average) = (writing.before.as_ref(), writing.average.average());
                    let (content, kept) =
                        writing.packer.pack_whole(before, &bytes, Some(average))?;
                    Ok((content, Some(kept)))
                }
                None => {
                    let cut = writing.take_cut()?;
                    let (content, sketch) = writing.packer.end(cut)?;
                    Ok((content, sketch.map(Kept::File)))
                }
            })?;
        if content.size != self.size {
            return Err(has_changed());
        }
        let Self { seen, mut sent, packer, .. } = self;
        let Sink { full: left, stored, .. } = packer.finish()?;
        for (pack, index) in stored.used() {
            sent.indexes.push((pack.id, index));
            sent.named.push(pack);
        }
        let length: usize = left.iter().map(|pack| pack.bytes.len()).sum();
        let (mut inline_packs, mut to_store) = (Vec::new(), Vec::new());
        for pack in left {
            if length <= INLINE_PACKS_LENGTH_MAX {
                sent.indexes.push((pack.id, pack.index));
                inline_packs.push(pack.bytes);
            } else {
                to_store.push(sent.give(pack));
            }
        }
        let Sent { named, indexes } = sent;
        let kept = kept.filter(|_| content.size >= KEPT_SIZE_MIN);
        let (packs, mark) = (named, self.mark);
        let written = Written { content, seen, packs, inline_packs, kept, mark, indexes };
        Ok((written, to_store))
    }

    /// Returns how far the file is cut.
    fn take_cut(&mut self) -> Result<FileCut, ContentError> {
        let average = self.average.average();
        match self.cut.take() {
            Some(cut) => Ok(cut),
            None if self.size > KEPT_SIZE_MAX => self.packer.begin(average),
            None => self.packer.begin_edited(match self.before.take() {
                Some(Kept::File(before)) if before.chunk_size() == average => before,
                _ => VersionSketch::empty(average),
            }),
        }
    }

    fn with_places<T>(
        &mut self,
        packs: &mut Packs,
        work: impl FnOnce(&mut Self) -> Result<T, ContentError>,
    ) -> Result<T, ContentError> {
        std::mem::swap(&mut packs.places, &mut self.packer.sink_mut().places);
        let done = work(self);
        std::mem::swap(&mut packs.places, &mut self.packer.sink_mut().places);
        done
    }
}

impl Sent {
    fn give(&mut self, pack: FinishedPack) -> NamedPack {
        self.named.push(PackRef { id: pack.id, length: pack.bytes.len() as u64 });
        self.indexes.push((pack.id, pack.index));
        (pack.id, pack.bytes)
    }
}

fn has_changed() -> ContentError {
    ContentError::Read { source: std::io::Error::other("the file has changed while it was read") }
}

#[cfg(test)]
mod tests;
