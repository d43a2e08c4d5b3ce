//! Cuts files and puts the chunks that a workspace lacks into packs: the way of every writer.
//!
//! *Participants*: whoever writes files, a device or a server; the two cut, name and pack alike, so that their chunks are
//! the same. *Goals*: memory that does not grow with the file; chunk lists in packs of their own. *Non-goals*: knowing
//! what the workspace has; the caller tells. *Invariants*: the average chunk size of a file is that of its version
//! before, or follows from its size and from samples of it; every chunk that is claimed is in an emitted pack after
//! [`FilePacker::finish`].

mod copied;
mod edited;
mod inflated;
mod pictures;
mod streamed;

use std::io::Read;

pub use copied::VersionCut;
pub use inflated::{Kept, KeptBuilder};
use model::{ChunkId, ChunkRef, Content};
pub use streamed::FileCut;

use crate::chunker::chunk_reader;
use crate::chunker::{ChunkBuffer, ChunkSizes, Chunker, ChunkerKind, Chunks, average_for};
use crate::delta::{Features, RangedSource, VersionSketch};
use crate::error::ContentError;
use crate::manifest::ManifestBuilder;
use crate::naming::{ChunkNamer, WorkspaceContentKeys};
use crate::pack::{Addition, Ancestry, FinishedPack, PackWriter};
use crate::sealed::PackGuard;
use crate::transform::{Transform, looks_incompressible};

/// How many places of a file are looked at to tell whether it is compressed media. One alone says little: a disk image
/// or an archive begins with anything.
const SAMPLES: u64 = 8;

/// How many bytes are looked at in each place.
pub const SAMPLE_LENGTH: usize = 16 * 1024;

/// Devices have files up to this size in bytes in memory while they pack them.
pub const WHOLE_FILE_SIZE_MAX: u64 = 4 * 1024 * 1024;

/// Files below this size in bytes are cut the same whatever they contain.
const MEDIA_SIZE_MIN: u64 = 512 * 1024;

/// Who hears of chunks and packs.
pub trait PackSink {
    /// Why it may fail.
    type Error: From<ContentError>;

    /// Tells whether a chunk is in no pack yet; then it is put into one, and counts as being there from now on.
    ///
    /// # Errors
    /// Whatever knows the packs may fail.
    fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, Self::Error>;

    /// Tells whether a chunk is in a pack, without claiming it. Who does not know says no.
    ///
    /// # Errors
    /// Whatever knows the packs may fail.
    fn knows(&mut self, _chunk: &ChunkRef) -> Result<bool, Self::Error> {
        Ok(false)
    }

    /// Returns what stands behind a chunk that others may be made from: it is in a pack that stays. Who does not know says nothing, and
    /// chunks are stored whole.
    ///
    /// # Errors
    /// Whatever knows the packs may fail.
    fn ancestry(&mut self, _chunk: &ChunkRef) -> Result<Option<Ancestry>, Self::Error> {
        Ok(None)
    }

    /// Returns what is kept of a file that is like one with these features, of which no version before is known. Who keeps nothing says
    /// nothing.
    ///
    /// # Errors
    /// Whatever knows the files may fail.
    fn similar(&mut self, _features: &Features) -> Result<Option<Kept>, Self::Error> {
        Ok(None)
    }

    /// Takes a pack that is full, or the last one.
    ///
    /// # Errors
    /// Whatever takes packs may fail.
    fn emit(&mut self, pack: FinishedPack) -> Result<(), Self::Error>;
}

/// How packs are made.
#[derive(Debug, Clone)]
pub struct PackSettings {
    /// How records are compressed.
    pub transform: Transform,
    /// What guards the packs, behind the last fence that the writer knows.
    pub guard: PackGuard,
    /// How many stored bytes a pack should have.
    pub target: usize,
}

impl PackSettings {
    fn writer(&self) -> Result<PackWriter, ContentError> {
        Ok(PackWriter::new(self.transform, &self.guard)?.with_target(self.target))
    }
}

/// Cuts one file after the other, and fills packs with what is new.
pub struct FilePacker<S> {
    keys: WorkspaceContentKeys,
    settings: PackSettings,
    namer: ChunkNamer,
    writer: PackWriter,
    /// Lists have packs of their own: whoever wants to know of what a file is made need not fetch what it is made of.
    list_writer: Option<PackWriter>,
    buffer: ChunkBuffer,
    chunker: Option<(u32, Box<dyn Chunker>)>,
    /// What [`Self::take_lists`] returns, if somebody is going to ask.
    lists: Option<Vec<(ChunkId, Vec<u8>)>>,
    /// How many chunks were in packs already when they were to be packed.
    known: usize,
    sink: S,
}

impl<S: PackSink> FilePacker<S> {
    /// Prepares to write into a workspace with these keys.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedTransform`].
    pub fn new(
        keys: &WorkspaceContentKeys,
        settings: &PackSettings,
        sink: S,
    ) -> Result<Self, ContentError> {
        Ok(Self {
            keys: keys.clone(),
            settings: settings.clone(),
            namer: keys.namer(),
            writer: settings.writer()?,
            list_writer: None,
            buffer: ChunkBuffer::default(),
            chunker: None,
            lists: None,
            known: 0,
            sink,
        })
    }

    /// Keeps the chunk lists of files for who asks by [`Self::take_lists`]; they take 36 bytes of memory and more for each chunk.
    #[must_use]
    pub fn with_lists(mut self) -> Self {
        self.lists = Some(Vec::new());
        self
    }

    /// Lets records have at most so many bytes, as [`PackWriter::with_records`] says.
    #[must_use]
    pub fn with_records(mut self, plain_max: usize) -> Self {
        self.writer = self.writer.with_records(plain_max);
        self
    }

    /// Cuts a file that is in memory. `kept` is the average chunk size of its version before.
    ///
    /// # Errors
    /// Those of the sink; [`ContentError`].
    pub fn pack_bytes(&mut self, bytes: &[u8], kept: Option<u32>) -> Result<Content, S::Error> {
        let average = average(kept, bytes.len() as u64, |offset| Ok(sample_of(bytes, offset)))?;
        let chunker = self.take_chunker(average)?;
        let mut manifest = ManifestBuilder::new(self.namer.clone(), average);
        for chunk in Chunks::new(&*chunker, bytes) {
            let chunk_ref = self.store(chunk)?;
            manifest.push(chunk_ref, &mut |list, bytes| self.store_list(list, bytes))?;
        }
        self.chunker = Some((average, chunker));
        manifest.finish(&mut |list, bytes| self.store_list(list, bytes))
    }

    /// Cuts a file of about `size` bytes while it is read; `go_to` sets the place in bytes from its start from which it is
    /// read next.
    ///
    /// # Errors
    /// Those of the sink; [`ContentError::Read`] where the file cannot be read.
    pub fn pack_reader<R: Read>(
        &mut self,
        reader: &mut R,
        size: u64,
        kept: Option<u32>,
        go_to: impl Fn(&mut R, u64) -> std::io::Result<()>,
    ) -> Result<Content, S::Error> {
        let average = average(kept, size, |offset| {
            let mut sample = Vec::new();
            go_to(reader, offset)?;
            reader.take(SAMPLE_LENGTH as u64).read_to_end(&mut sample)?;
            Ok(sample)
        })?;
        go_to(reader, 0).map_err(|source| ContentError::Read { source })?;
        let chunker = self.take_chunker(average)?;
        let mut manifest = ManifestBuilder::new(self.namer.clone(), average);
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = chunk_reader::<S::Error>(reader, &*chunker, &mut buffer, |chunk| {
            let chunk_ref = self.store(chunk)?;
            manifest.push(chunk_ref, &mut |list, bytes| self.store_list(list, bytes))
        });
        self.buffer = buffer;
        self.chunker = Some((average, chunker));
        read?;
        manifest.finish(&mut |list, bytes| self.store_list(list, bytes))
    }

    /// Cuts a file of which no version is known; returns what to keep for the next one, too. `kept` is the average chunk size of its
    /// version before.
    ///
    /// # Errors
    /// As [`Self::pack_edited`].
    pub fn pack_first(
        &mut self,
        source: &mut dyn RangedSource,
        kept: Option<u32>,
    ) -> Result<(Content, VersionSketch), S::Error> {
        let size = source.size();
        let average = average(kept, size, |offset| {
            let length = (size.saturating_sub(offset)).min(SAMPLE_LENGTH as u64);
            let mut sample = vec![0; length as usize];
            source.read_at(offset, &mut sample)?;
            Ok(sample)
        })?;
        self.pack_edited(&VersionSketch::empty(average), source)
    }

    /// Cuts a file that is in memory, of which no version is known, as a change of one that is like it; returns what to keep for the next
    /// version, too. `kept` is the average chunk size of its version before.
    ///
    /// # Errors
    /// As [`Self::pack_edited`].
    pub fn pack_like(
        &mut self,
        bytes: &[u8],
        kept: Option<u32>,
    ) -> Result<(Content, VersionSketch), S::Error> {
        let average = average(kept, bytes.len() as u64, |offset| Ok(sample_of(bytes, offset)))?;
        let before = self.similar(bytes, average)?;
        self.pack_edited(&before, &mut &*bytes)
    }

    /// Returns what is kept of a file that is like one of which no version before is known, and was cut alike, or nothing of any version.
    fn similar(&mut self, bytes: &[u8], average: u32) -> Result<VersionSketch, S::Error> {
        Ok(match self.sink.similar(&Features::of(bytes))? {
            Some(Kept::File(found)) if found.chunk_size() == average => found,
            _ => VersionSketch::empty(average),
        })
    }

    /// Returns the sink.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Packs a chunk that was cut and named elsewhere, unless it is in a pack already; `bytes` are what its id says.
    ///
    /// # Errors
    /// Those of the sink; [`ContentError`].
    pub fn pack_chunk(&mut self, chunk: ChunkRef, bytes: &[u8]) -> Result<(), S::Error> {
        if self.claim(&chunk)? {
            push(&mut self.writer, chunk, bytes, &mut self.sink)?;
        }
        Ok(())
    }

    fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, S::Error> {
        let is_new = self.sink.claim(chunk)?;
        self.known += usize::from(!is_new);
        Ok(is_new)
    }

    /// Returns the content of a file whose chunks are all in packs, cut with an average size of `chunk_size` bytes.
    ///
    /// # Errors
    /// Those of the sink; [`ContentError`].
    pub fn pack_list(&mut self, chunk_size: u32, chunks: &[ChunkRef]) -> Result<Content, S::Error> {
        let mut manifest = ManifestBuilder::new(self.namer.clone(), chunk_size);
        for chunk in chunks {
            manifest.push(*chunk, &mut |list, bytes| self.store_list(list, bytes))?;
        }
        manifest.finish(&mut |list, bytes| self.store_list(list, bytes))
    }

    /// Returns the chunk lists of the files since the last call, known ones among them, where they are kept ([`Self::with_lists`]).
    pub fn take_lists(&mut self) -> Vec<(ChunkId, Vec<u8>)> {
        self.lists.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Emits what is left.
    ///
    /// # Errors
    /// Those of the sink; [`ContentError::Encode`].
    pub fn finish(mut self) -> Result<S, S::Error> {
        for mut writer in [Some(self.writer), self.list_writer].into_iter().flatten() {
            if !writer.is_empty() {
                self.sink.emit(writer.finish()?)?;
            }
        }
        Ok(self.sink)
    }

    fn take_chunker(&mut self, average: u32) -> Result<Box<dyn Chunker>, ContentError> {
        match self.chunker.take() {
            Some((size, chunker)) if size == average => Ok(chunker),
            _ => self.keys.chunker(ChunkerKind::Minimum, average),
        }
    }

    fn store(&mut self, bytes: &[u8]) -> Result<ChunkRef, S::Error> {
        let chunk = ChunkRef { id: self.namer.name(bytes), length: bytes.len() as u32 };
        self.pack_chunk(chunk, bytes)?;
        Ok(chunk)
    }

    fn store_list(&mut self, list: ChunkRef, bytes: &[u8]) -> Result<(), S::Error> {
        if let Some(lists) = &mut self.lists {
            lists.push((list.id, bytes.to_vec()));
        }
        if self.sink.claim(&list)? {
            let writer = match &mut self.list_writer {
                Some(writer) => writer,
                none => none.insert(self.settings.writer()?),
            };
            push(writer, list, bytes, &mut self.sink)?;
        }
        Ok(())
    }
}

/// Adds a chunk to a pack, and emits the pack once it is full.
fn push<S: PackSink>(
    writer: &mut PackWriter,
    chunk: ChunkRef,
    bytes: &[u8],
    sink: &mut S,
) -> Result<(), S::Error> {
    put(writer, Addition::chunk(bytes.len()), sink, |writer| writer.push(chunk, bytes))
}

/// Makes sure that a pack has room for something before it is put there, and emits the pack once it is full.
fn put<S: PackSink>(
    writer: &mut PackWriter,
    more: Addition,
    sink: &mut S,
    put: impl FnOnce(&mut PackWriter) -> Result<(), ContentError>,
) -> Result<(), S::Error> {
    if !writer.has_room(more) {
        sink.emit(writer.finish()?)?;
    }
    put(writer)?;
    if writer.is_full() { sink.emit(writer.finish()?) } else { Ok(()) }
}

/// Returns a sample of a file that is in memory.
fn sample_of(bytes: &[u8], offset: u64) -> Vec<u8> {
    let rest = bytes.get(offset as usize..).unwrap_or_default();
    rest[..rest.len().min(SAMPLE_LENGTH)].to_vec()
}

/// Returns the average chunk size for a file: that of its version before, or one by size and kind.
fn average(
    kept: Option<u32>,
    size: u64,
    mut sample: impl FnMut(u64) -> std::io::Result<Vec<u8>>,
) -> Result<u32, ContentError> {
    let mut choice = AverageChoice::new(kept, size);
    while let Some(place) = choice.place() {
        choice.take(&sample(place).map_err(|source| ContentError::Read { source })?);
    }
    Ok(choice.average())
}

/// How the average chunk size of a file is found, for whoever reads samples of it.
#[derive(Debug)]
pub(crate) struct AverageChoice {
    kept: Option<u32>,
    size: u64,
    is_media: bool,
    sampled: u64,
}

impl AverageChoice {
    /// Begins for a file of `size` bytes; `kept` is the average chunk size of its version before.
    pub(crate) fn new(kept: Option<u32>, size: u64) -> Self {
        let kept = kept.filter(|&average| ChunkSizes::around(average).is_ok());
        Self { kept, size, is_media: size >= MEDIA_SIZE_MIN, sampled: 0 }
    }

    /// Returns the place of the next sample of [`SAMPLE_LENGTH`] bytes; nothing where the size is known.
    pub(crate) fn place(&self) -> Option<u64> {
        let wants_more = self.kept.is_none() && self.is_media && self.sampled < SAMPLES;
        wants_more.then(|| sample_place(self.size, self.sampled))
    }

    /// Takes the sample of that place.
    pub(crate) fn take(&mut self, sample: &[u8]) {
        self.is_media = looks_incompressible(sample);
        self.sampled += 1;
    }

    pub(crate) fn average(&self) -> u32 {
        self.kept.unwrap_or_else(|| average_for(self.size, self.is_media))
    }
}

/// Returns where a sample of a file is taken: somewhere in each stretch of it, and never in step with what the file
/// repeats.
fn sample_place(size: u64, number: u64) -> u64 {
    // The fractional parts of the multiples of the golden ratio, in parts of 65536.
    const STEP: u64 = 40503;
    let stretch = size / SAMPLES;
    let room = stretch.saturating_sub(SAMPLE_LENGTH as u64);
    let part = number * STEP % 65536;
    stretch * number + room / 65536 * part + room % 65536 * part / 65536
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::io::{Cursor, Seek, SeekFrom};

    use super::*;
    use crate::pack::PACK_STORED_TARGET;
    use crate::samples::{random_bytes, text};

    #[derive(Default)]
    struct Packs {
        known: HashSet<ChunkId>,
        packs: Vec<FinishedPack>,
    }

    impl PackSink for &mut Packs {
        type Error = ContentError;

        fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
            Ok(self.known.insert(chunk.id))
        }

        fn emit(&mut self, pack: FinishedPack) -> Result<(), ContentError> {
            self.packs.push(pack);
            Ok(())
        }
    }

    fn pack_both(bytes: &[u8]) -> (Content, Content, usize) {
        let keys = WorkspaceContentKeys::derive(&[7; 32]);
        let settings = PackSettings {
            transform: Transform::None,
            guard: PackGuard::plain(),
            target: PACK_STORED_TARGET,
        };
        let mut packs = Packs::default();
        let mut packer = FilePacker::new(&keys, &settings, &mut packs).unwrap();
        let one = packer.pack_bytes(bytes, None).unwrap();
        let mut reader = Cursor::new(bytes);
        let size = bytes.len() as u64;
        let go_to =
            |reader: &mut Cursor<&[u8]>, place| reader.seek(SeekFrom::Start(place)).map(drop);
        let two = packer.pack_reader(&mut reader, size, None, go_to).unwrap();
        packer.finish().unwrap();
        let stored = packs.packs.iter().flat_map(|pack| pack.index.chunks().to_vec());
        (one, two, stored.map(|chunk| chunk.length as usize).sum())
    }

    #[test]
    fn file_in_memory_and_file_that_is_read_are_cut_alike_and_stored_once() {
        for bytes in [text(1, 3 << 20), random_bytes(2, 5 << 20), Vec::new(), vec![1]] {
            let (one, two, stored) = pack_both(&bytes);
            assert_eq!(one, two);
            let is_media = bytes.len() == 5 << 20;
            assert_eq!(one.chunk_size, if is_media { 256 << 10 } else { 16 << 10 });
            assert!(stored >= bytes.len().min(1) && stored <= bytes.len() + bytes.len() / 100);
        }
    }

    #[test]
    fn chunks_that_were_cut_elsewhere_give_the_content_that_cutting_here_does() {
        let keys = WorkspaceContentKeys::derive(&[7; 32]);
        let (transform, guard) = (Transform::None, PackGuard::plain());
        let settings = PackSettings { transform, guard, target: PACK_STORED_TARGET };
        let bytes = random_bytes(3, 9 << 20);
        let mut packs = Packs::default();
        let mut packer = FilePacker::new(&keys, &settings, &mut packs).unwrap();
        let cut = packer.pack_bytes(&bytes, Some(16 << 10)).unwrap();
        assert!(cut.depth > 0);
        packer.finish().unwrap();
        let (chunker, namer) =
            (keys.chunker(ChunkerKind::Minimum, 16 << 10).unwrap(), keys.namer());
        let mut others = Packs::default();
        let mut packer = FilePacker::new(&keys, &settings, &mut others).unwrap();
        let mut chunks = Vec::new();
        for bytes in Chunks::new(&*chunker, &bytes) {
            let chunk = ChunkRef { id: namer.name(bytes), length: bytes.len() as u32 };
            packer.pack_chunk(chunk, bytes).unwrap();
            chunks.push(chunk);
        }
        assert_eq!(packer.pack_list(16 << 10, &chunks).unwrap(), cut);
        for length in [1 << 20, 70_001, bytes.len()] {
            let mut file = packer.begin(16 << 10).unwrap();
            for piece in bytes.chunks(length) {
                packer.push(&mut file, piece).unwrap();
            }
            assert_eq!(packer.end(file).unwrap(), (cut.clone(), None), "pieces of {length} bytes");
        }
        packer.finish().unwrap();
        assert_eq!(others.known, packs.known);
    }

    #[test]
    fn version_keeps_the_chunk_size_of_the_one_before() {
        assert_eq!(average(Some(64 << 10), 10, |_| Ok(Vec::new())).unwrap(), 64 << 10);
        assert_eq!(average(Some(77), 10, |_| Ok(Vec::new())).unwrap(), 16 << 10);
    }

    #[test]
    fn samples_lie_inside_of_the_file() {
        for size in [MEDIA_SIZE_MIN, (1 << 40) + 12_345] {
            let last = sample_place(size, SAMPLES - 1);
            assert!(last < size && (0..SAMPLES).all(|number| sample_place(size, number) <= last));
        }
    }
}
