//! Our own method at the side that has the old version: makes the new chunks, and lets none of them out that does not have
//! its id.
//!
//! The work is that of the change, not of the file: kept chunks are names in a list, and of the old version only the ranges
//! are read that new chunks copy from.

use std::collections::BTreeMap;

use model::WorkspaceId;
use model::content::ChunkRef;

use super::base::ChunkTable;
use super::error::DeltaError;
use super::message::{
    Answer, ByteStep, ChunkOpening, ChunkPart, DeltaMessage, ListDigest, ListStep,
};
use super::plain::SessionId;
use super::source::{RangedSource, read_at};
use super::tuning::{check_session, check_workspace};
use crate::manifest::EXPANDED_CHUNKS_MAX;
use crate::naming::ChunkNamer;

/// What became of a delta.
#[derive(Debug)]
pub struct Assembled {
    /// The message that tells the client.
    pub answer: Vec<u8>,
    /// The chunks of the new version. It is a version only now: all of them are there and have their ids. Without it, chunks
    /// were asked for in full, and more parts follow.
    pub table: Option<ChunkTable>,
}

/// A chunk that was made, and how.
#[derive(Debug, Clone, Copy)]
pub struct MadeChunk<'a> {
    /// Its id and length.
    pub chunk: ChunkRef,
    /// Its bytes, which are what its id says.
    pub bytes: &'a [u8],
    /// What gave them: bytes of the base, and others.
    pub(crate) steps: &'a [ByteStep],
    /// The chunks of the base.
    pub(crate) base: &'a ChunkTable,
}

/// Puts a new version together from a delta: the server of a plain workspace, or a device that reads a sealed one.
pub struct ChunkAssembler {
    workspace: WorkspaceId,
    namer: ChunkNamer,
    base: ChunkTable,
    size_max: u64,
    chunks_max: usize,
    session: Option<SessionId>,
    /// How many parts have come.
    parts: u32,
    chunks: Vec<ChunkRef>,
    size: u64,
    /// Chunks that came out as something else, by their places.
    wanted: BTreeMap<u64, ChunkRef>,
    /// Whether the delta has come, and only wanted chunks are due.
    is_complete: bool,
    buffer: Vec<u8>,
}

impl ChunkAssembler {
    /// Prepares for one delta against `base`; the new version may have `size_max` bytes.
    pub fn new(workspace: WorkspaceId, namer: ChunkNamer, base: ChunkTable, size_max: u64) -> Self {
        Self {
            workspace,
            namer,
            base,
            size_max,
            chunks_max: EXPANDED_CHUNKS_MAX,
            session: None,
            parts: 0,
            chunks: Vec::new(),
            size: 0,
            wanted: BTreeMap::new(),
            is_complete: false,
            buffer: Vec::new(),
        }
    }

    /// Lets the new version have fewer chunks than the [`EXPANDED_CHUNKS_MAX`] of any, so that they take less memory.
    #[must_use]
    pub fn with_chunks_max(mut self, chunks_max: usize) -> Self {
        self.chunks_max = chunks_max.min(EXPANDED_CHUNKS_MAX);
        self
    }

    /// Takes a part, and gives the chunks that it makes, verified, to `sink`; returns the answer after the last part. `old`
    /// are the bytes of the base.
    ///
    /// Chunks that were given out may be stored at once: they are what their ids say. The version is not one before
    /// [`Assembled::table`].
    ///
    /// # Errors
    /// [`DeltaError::WrongWorkspace`]; [`DeltaError::WrongBase`] where the client knows another version than this;
    /// [`DeltaError::NoSuch`] and [`DeltaError::OutOfRange`] where the delta asks for what the base does not have;
    /// [`DeltaError::TooLarge`]; [`DeltaError::Unverified`] where the list is not the client's, or a chunk that was asked for
    /// is wrong again; [`DeltaError::Read`]; those of messages; whatever `sink` returns.
    pub fn take<E: From<DeltaError>>(
        &mut self,
        message: &[u8],
        old: &mut dyn RangedSource,
        mut sink: impl FnMut(MadeChunk<'_>) -> Result<(), E>,
    ) -> Result<Option<Assembled>, E> {
        let message = DeltaMessage::decode(message)?;
        let DeltaMessage::Chunks(part) = message else {
            return Err(message.unexpected("chunks").into());
        };
        self.check(&part, old)?;
        for step in &part.steps {
            match step {
                ListStep::Keep { first, count } => self.keep(*first, *count)?,
                ListStep::New(chunk, steps) => {
                    self.make(*chunk, steps, old)?;
                    if self.enter(*chunk)? {
                        let (chunk, bytes, base) = (*chunk, &self.buffer[..], &self.base);
                        sink(MadeChunk { chunk, bytes, steps, base })?;
                    }
                }
            }
        }
        let Some((count, digest)) = part.end else { return Ok(None) };
        Ok(Some(self.finish(part.session, count, digest)?))
    }

    /// Checks that a part is the next one.
    fn check(&mut self, part: &ChunkPart, old: &dyn RangedSource) -> Result<(), DeltaError> {
        match (part.opening, self.session) {
            (Some(ChunkOpening { workspace, base }), None) => {
                check_workspace(self.workspace, workspace)?;
                if base != self.base.digest() || old.size() != self.base.size() {
                    return Err(DeltaError::WrongBase);
                }
                self.session = Some(part.session);
            }
            (None, Some(session)) => check_session(session, part.session)?,
            _ => return Err(DeltaError::WrongSession),
        }
        if part.number != self.parts {
            let (index, count) = (u64::from(part.number), u64::from(self.parts));
            return Err(DeltaError::NoSuch { what: "part", index, count });
        }
        self.parts += 1;
        Ok(())
    }

    fn keep(&mut self, first: u64, count: u64) -> Result<(), DeltaError> {
        let chunks = self.base.chunks().len() as u64;
        let end = first.checked_add(count).filter(|&end| end <= chunks && !self.is_complete);
        let Some(end) = end else {
            let index = first.saturating_add(count - 1);
            return Err(DeltaError::NoSuch { what: "chunk", index, count: chunks });
        };
        let (first, end) = (first as usize, end as usize);
        self.reserve(count, self.base.start(end) - self.base.start(first))?;
        self.chunks.extend_from_slice(&self.base.chunks()[first..end]);
        Ok(())
    }

    /// Makes the bytes of a chunk in the buffer; the steps give exactly so many.
    fn make(
        &mut self,
        chunk: ChunkRef,
        steps: &[ByteStep],
        old: &mut dyn RangedSource,
    ) -> Result<(), DeltaError> {
        if !self.is_complete {
            self.reserve(1, u64::from(chunk.length))?;
        }
        let size = self.base.size();
        self.buffer.clear();
        for step in steps {
            match step {
                ByteStep::Copy { offset, length } => {
                    let (offset, length) = (*offset, u64::from(*length));
                    if offset.checked_add(length).is_none_or(|end| end > size) {
                        return Err(DeltaError::OutOfRange { offset, length, size });
                    }
                    let start = self.buffer.len();
                    self.buffer.resize(start + length as usize, 0);
                    read_at(old, offset, &mut self.buffer[start..])?;
                }
                ByteStep::Literal(bytes) => self.buffer.extend_from_slice(bytes),
            }
        }
        Ok(())
    }

    /// Puts a chunk into its place; tells whether the bytes in the buffer are its.
    fn enter(&mut self, chunk: ChunkRef) -> Result<bool, DeltaError> {
        let is_right = self.namer.name(&self.buffer) == chunk.id;
        if !self.is_complete {
            if !is_right {
                self.wanted.insert(self.chunks.len() as u64, chunk);
            }
            self.chunks.push(chunk);
            return Ok(is_right);
        }
        match self.wanted.first_entry() {
            Some(entry) if is_right && *entry.get() == chunk => drop(entry.remove()),
            _ => return Err(DeltaError::Unverified),
        }
        Ok(true)
    }

    fn finish(
        &mut self,
        session: SessionId,
        count: u64,
        digest: ListDigest,
    ) -> Result<Assembled, DeltaError> {
        let actual = self.chunks.len() as u64;
        if count != actual {
            return Err(DeltaError::Length { what: "chunk list", expected: count, actual });
        }
        if self.is_complete && !self.wanted.is_empty() {
            return Err(DeltaError::Unverified);
        }
        self.is_complete = true;
        if !self.wanted.is_empty() {
            let answer = Answer::Wanted(self.wanted.keys().copied().collect());
            let answer = DeltaMessage::Answer(session, answer).encode();
            return Ok(Assembled { answer, table: None });
        }
        let chunks = std::mem::take(&mut self.chunks);
        let table = ChunkTable::new(self.base.chunk_size(), chunks)?;
        if table.digest() != digest {
            return Err(DeltaError::Unverified);
        }
        let answer = DeltaMessage::Answer(session, Answer::Verified).encode();
        Ok(Assembled { answer, table: Some(table) })
    }

    /// Makes room for chunks in the new version, within its limits.
    fn reserve(&mut self, count: u64, length: u64) -> Result<(), DeltaError> {
        let size = self.size.saturating_add(length);
        if size > self.size_max {
            return Err(DeltaError::TooLarge { size, max: self.size_max });
        }
        let max = self.chunks_max as u64;
        if self.chunks.len() as u64 + count > max {
            return Err(crate::error::ContentError::TooManyChunks { max }.into());
        }
        self.size = size;
        Ok(())
    }
}
