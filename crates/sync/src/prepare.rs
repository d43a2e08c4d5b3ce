//! Reads changed files, cuts them into chunks, and packs the chunks that the workspace does not have.
//!
//! *Invariants*: a file counts as read only if the file system says the same of it before and after (I-13); a chunk
//! that is left out of the packs is in a pack that the log names and no fence condemns, or in one of the same upload.

use std::collections::HashSet;
use std::io::Read;
use std::sync::Arc;

use content::{
    ChunkBuffer, ChunkNamer, ChunkSizes, Chunker, ChunkerKind, Chunks, ContentError, FinishedPack,
    ManifestBuilder, PackWriter, Transform, WorkspaceKeys, average_for, chunk_reader,
    looks_incompressible,
};
use model::{ChunkId, ChunkRef, Content, NodeId, NodeKind, RelativePath};
use parking_lot::Mutex;

use crate::error::SyncError;
use crate::file_system::{FileError, FileKind, FileSystem, OpenFile, Stat};
use crate::overlay::matter_of;
use crate::plan::Matter;

/// Files up to this size in bytes are read whole before they are cut.
const WHOLE_FILE_SIZE_MAX: u64 = 4 * 1024 * 1024;

/// How many places of a file are looked at to tell whether it is compressed media. One alone says little: a disk image
/// or an archive begins with anything.
const SAMPLES: u64 = 8;

/// How many bytes are looked at in each place.
const SAMPLE_LENGTH: usize = 16 * 1024;

/// Files below this size in bytes are cut the same whatever they contain.
const MEDIA_SIZE_MIN: u64 = 512 * 1024;

/// A file that is to be read.
#[derive(Debug, Clone)]
pub struct ToRead {
    /// Its node.
    pub node: NodeId,
    /// Where it is.
    pub path: RelativePath,
    /// What the file system said when it was found.
    pub stat: Stat,
    /// Average chunk size of its version before, which it keeps.
    pub chunk_size: Option<u32>,
}

/// What reading a file gave.
#[derive(Debug)]
pub struct HasRead {
    /// Its node.
    pub node: NodeId,
    /// Its matter, and what the file system said before and after reading.
    pub result: Result<(Matter, Stat), ReadFailure>,
    /// The chunk lists of its content, where it is large.
    pub lists: Vec<(ChunkId, Vec<u8>)>,
}

/// Why a file was not read.
#[derive(Debug)]
pub enum ReadFailure {
    /// It changed or went away meanwhile; a later scan will find it as it is then.
    Changing,
    /// It cannot be read.
    Unreadable(String),
}

/// Which chunks the workspace has, as far as a thread can tell.
pub trait KnownChunks: Send + Sync {
    /// Tells whether a chunk is in a pack that the log names.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    fn contains(&self, chunk: &ChunkId) -> Result<bool, SyncError>;
}

/// Chunks that this upload has already put into a pack.
pub type Claims = Arc<Mutex<HashSet<ChunkId>>>;

/// What all readers of an upload share.
#[derive(Clone)]
pub struct Preparation {
    /// The folder.
    pub file_system: Arc<dyn FileSystem>,
    /// Keys of the workspace.
    pub keys: WorkspaceKeys,
    /// What the workspace has.
    pub known: Arc<dyn KnownChunks>,
    /// What the upload has.
    pub claims: Claims,
    /// How records are compressed.
    pub transform: Transform,
    /// The last fence that this device knows: packs must not have names from before it.
    pub fence: u64,
    /// How many stored bytes a pack should have.
    pub pack_target: usize,
}

impl Preparation {
    fn new_writer(&self) -> Result<PackWriter, SyncError> {
        let guard = self.keys.packs().behind(self.fence);
        Ok(PackWriter::new(self.transform, &guard)?.with_target(self.pack_target))
    }

    /// Reads files in order. Every pack that is full goes to `emit`, and the last one at the end.
    ///
    /// # Errors
    /// Those of `emit`, of the database, and of the compressor. A file that cannot be read is no error of the batch.
    pub fn read_files(
        &self,
        files: Vec<ToRead>,
        emit: &mut dyn FnMut(FinishedPack) -> Result<(), SyncError>,
    ) -> Result<Vec<HasRead>, SyncError> {
        let mut reader = Reader {
            shared: self,
            namer: self.keys.content().namer(),
            writer: self.new_writer()?,
            list_writer: None,
            buffer: ChunkBuffer::default(),
            whole: Vec::new(),
            chunker: None,
            lists: Vec::new(),
            emit,
        };
        let mut results = Vec::with_capacity(files.len());
        for file in files {
            let node = file.node;
            let result = match reader.read(&file) {
                Ok(read) => Ok(read),
                Err(SyncError::File(FileError::NotFound(_) | FileError::Changed(_))) => {
                    Err(ReadFailure::Changing)
                }
                Err(SyncError::File(error)) => Err(ReadFailure::Unreadable(error.to_string())),
                Err(SyncError::Content(ContentError::Read { source })) => {
                    Err(ReadFailure::Unreadable(source.to_string()))
                }
                Err(error) => return Err(error),
            };
            results.push(HasRead { node, result, lists: std::mem::take(&mut reader.lists) });
        }
        reader.flush()?;
        Ok(results)
    }
}

struct Reader<'a> {
    shared: &'a Preparation,
    namer: ChunkNamer,
    writer: PackWriter,
    /// Lists have packs of their own: whoever wants to know of what a file is made need not fetch what it is made of.
    list_writer: Option<PackWriter>,
    buffer: ChunkBuffer,
    whole: Vec<u8>,
    chunker: Option<(u32, Box<dyn Chunker>)>,
    lists: Vec<(ChunkId, Vec<u8>)>,
    emit: &'a mut dyn FnMut(FinishedPack) -> Result<(), SyncError>,
}

impl Reader<'_> {
    fn read(&mut self, file: &ToRead) -> Result<(Matter, Stat), SyncError> {
        let kind = match file.stat.kind {
            FileKind::Directory => NodeKind::Directory,
            FileKind::Symlink => NodeKind::Symlink(self.shared.file_system.read_link(&file.path)?),
            FileKind::File => return self.read_file(file),
            FileKind::Other => return Err(FileError::Changed(file.path.clone()).into()),
        };
        let after = self.shared.file_system.stat(&file.path)?;
        match after {
            Some(after)
                if after.kind == file.stat.kind && (after == file.stat || kind.is_directory()) =>
            {
                Ok((matter_of(&after, kind), after))
            }
            _ => Err(FileError::Changed(file.path.clone()).into()),
        }
    }

    fn read_file(&mut self, file: &ToRead) -> Result<(Matter, Stat), SyncError> {
        let mut open = self.shared.file_system.open(&file.path)?;
        let before = open.stat()?;
        // What has got the name since the file was found may be another node, which the next scan tells.
        if (before.inode, before.kind) != (file.stat.inode, file.stat.kind) {
            return Err(FileError::Changed(file.path.clone()).into());
        }
        let content = if before.size <= WHOLE_FILE_SIZE_MAX {
            let mut whole = std::mem::take(&mut self.whole);
            whole.clear();
            let read = (&mut open).take(WHOLE_FILE_SIZE_MAX + 1).read_to_end(&mut whole);
            read.map_err(|source| ContentError::Read { source })?;
            let content = self.cut_whole(file, &whole);
            self.whole = whole;
            content?
        } else {
            self.cut_stream(file, before.size, &mut open)?
        };
        let after = open.stat()?;
        if before != after || content.size != after.size {
            return Err(FileError::Changed(file.path.clone()).into());
        }
        // The name must still lead to what was read, or a replacement would be taken for synced.
        if self.shared.file_system.stat(&file.path)? != Some(after) {
            return Err(FileError::Changed(file.path.clone()).into());
        }
        Ok((matter_of(&after, NodeKind::File(content)), after))
    }

    fn cut_whole(&mut self, file: &ToRead, bytes: &[u8]) -> Result<Content, SyncError> {
        let average = self.average(file, bytes.len() as u64, |offset| {
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            Ok(rest[..rest.len().min(SAMPLE_LENGTH)].to_vec())
        })?;
        let chunker = self.take_chunker(average)?;
        let mut manifest = ManifestBuilder::new(self.namer.clone(), average);
        for chunk in Chunks::new(&*chunker, bytes) {
            let chunk_ref = self.store(chunk)?;
            manifest.push(chunk_ref, &mut |list, bytes| self.store_list(list, bytes))?;
        }
        self.chunker = Some((average, chunker));
        manifest.finish(&mut |list, bytes| self.store_list(list, bytes))
    }

    fn cut_stream(
        &mut self,
        file: &ToRead,
        size: u64,
        open: &mut Box<dyn OpenFile>,
    ) -> Result<Content, SyncError> {
        let average = self.average(file, size, |offset| {
            let mut sample = Vec::new();
            open.go_to(offset)?;
            open.take(SAMPLE_LENGTH as u64).read_to_end(&mut sample)?;
            Ok(sample)
        })?;
        open.go_to(0).map_err(|source| ContentError::Read { source })?;
        let chunker = self.take_chunker(average)?;
        let mut manifest = ManifestBuilder::new(self.namer.clone(), average);
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = chunk_reader::<SyncError>(open, &*chunker, &mut buffer, |chunk| {
            let chunk_ref = self.store(chunk)?;
            manifest.push(chunk_ref, &mut |list, bytes| self.store_list(list, bytes))
        });
        self.buffer = buffer;
        self.chunker = Some((average, chunker));
        read?;
        manifest.finish(&mut |list, bytes| self.store_list(list, bytes))
    }

    /// Returns the average chunk size for a file: that of its version before, or one by size and kind.
    fn average(
        &self,
        file: &ToRead,
        size: u64,
        mut sample: impl FnMut(u64) -> std::io::Result<Vec<u8>>,
    ) -> Result<u32, SyncError> {
        if let Some(kept) = file.chunk_size.filter(|&average| ChunkSizes::around(average).is_ok()) {
            return Ok(kept);
        }
        let mut is_media = size >= MEDIA_SIZE_MIN;
        for number in 0..SAMPLES {
            if !is_media {
                break;
            }
            let bytes = sample(sample_place(size, number));
            is_media =
                looks_incompressible(&bytes.map_err(|source| ContentError::Read { source })?);
        }
        Ok(average_for(size, is_media))
    }

    fn take_chunker(&mut self, average: u32) -> Result<Box<dyn Chunker>, SyncError> {
        match self.chunker.take() {
            Some((size, chunker)) if size == average => Ok(chunker),
            _ => Ok(self.shared.keys.content().chunker(ChunkerKind::Minimum, average)?),
        }
    }

    fn store(&mut self, bytes: &[u8]) -> Result<ChunkRef, SyncError> {
        let chunk = ChunkRef { id: self.namer.name(bytes), length: bytes.len() as u32 };
        if self.claim(&chunk)? {
            push(&mut self.writer, chunk, bytes, self.emit)?;
        }
        Ok(chunk)
    }

    fn store_list(&mut self, list: ChunkRef, bytes: &[u8]) -> Result<(), SyncError> {
        self.lists.push((list.id, bytes.to_vec()));
        if self.claim(&list)? {
            let writer = match &mut self.list_writer {
                Some(writer) => writer,
                none => none.insert(self.shared.new_writer()?),
            };
            push(writer, list, bytes, self.emit)?;
        }
        Ok(())
    }

    /// Tells whether a chunk is in no pack yet; then it is to be put into one.
    fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, SyncError> {
        // What this run has stored costs no look into the database.
        Ok(!self.shared.claims.lock().contains(&chunk.id)
            && !self.shared.known.contains(&chunk.id)?
            && self.shared.claims.lock().insert(chunk.id))
    }

    /// Emits what is left.
    fn flush(&mut self) -> Result<(), SyncError> {
        for writer in [Some(&mut self.writer), self.list_writer.as_mut()].into_iter().flatten() {
            if !writer.is_empty() {
                (self.emit)(writer.finish()?)?;
            }
        }
        Ok(())
    }
}

/// Adds a chunk to a pack, and emits the pack once it is full.
fn push(
    writer: &mut PackWriter,
    chunk: ChunkRef,
    bytes: &[u8],
    emit: &mut dyn FnMut(FinishedPack) -> Result<(), SyncError>,
) -> Result<(), SyncError> {
    if !writer.has_room(bytes.len()) {
        emit(writer.finish()?)?;
    }
    writer.push(chunk, bytes)?;
    if writer.is_full() { emit(writer.finish()?) } else { Ok(()) }
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
