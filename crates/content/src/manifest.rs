//! Manifests: the ordered chunk list of a file version, in a [`Content`] of bounded size.
//!
//! *Participants*: the device that cuts a file, and those that put it together. *Goals*: a file of any size has a
//! record of at most [`CONTENT_CHUNKS_MAX`] references; an edit changes one list a level; memory is bounded while
//! building. *Non-goals*: seeking. *Invariants*: one chunk list has one manifest; lists are cut by the ids of the
//! chunks in them, so that equal stretches of two versions share lists; every list is a chunk, named and stored
//! like any other.
//!
//! The format in words: `docs/design/pack-format.md`, "Manifests".

mod expand;
mod walk;

use model::codec::{Decode, DecodeError, Decoder, Encoder};
use model::content::{CONTENT_CHUNKS_MAX, CONTENT_DEPTH_MAX, ChunkRef, Content};

pub use expand::{EXPANDED_CHUNKS_MAX, expand, expand_each};
pub use walk::{ContentStep, ContentWalk};

use crate::error::ContentError;
use crate::naming::ChunkNamer;

/// The first bytes of a list: what it is, and the version of its encoding.
const LIST_HEADER: [u8; 2] = [b'L', 1];

/// A list is not cut before it has this many references.
const LIST_LENGTH_MIN: usize = 64;

/// A list is cut, whatever the ids say, when it has this many references.
pub const LIST_LENGTH_MAX: usize = 512;

/// A list is cut after a reference whose id begins with a byte that is zero under this mask: one in 128.
const LIST_CUT_MASK: u8 = 0x7f;

/// Builds the manifest of one file.
///
/// Every list of references that does not fit the [`Content`] is given to a sink as a chunk, to be stored like the
/// chunks of the file and, best, together with the other lists.
#[derive(Debug)]
pub struct ManifestBuilder {
    namer: ChunkNamer,
    chunk_size: u32,
    size: u64,
    levels: Vec<Level>,
}

/// The references of one level; beyond what a [`Content`] holds, they go into lists.
#[derive(Debug, Default)]
struct Level {
    /// References that are in no list yet: all of them, until there are too many for a [`Content`].
    pending: Vec<ChunkRef>,
    /// Whether there were too many, so that the level above has references.
    in_lists: bool,
}

impl Level {
    /// Returns the length of the first list, if it is known where that ends.
    fn first_list(&self, last: bool) -> Option<usize> {
        let cut = |chunk: &ChunkRef| chunk.id.as_bytes()[0] & LIST_CUT_MASK == 0;
        let candidates = self.pending.iter().take(LIST_LENGTH_MAX).skip(LIST_LENGTH_MIN - 1);
        let found = candidates.zip(LIST_LENGTH_MIN..).find(|(chunk, _)| cut(chunk));
        if let Some((_, length)) = found {
            return Some(length);
        }
        if self.pending.len() >= LIST_LENGTH_MAX {
            return Some(LIST_LENGTH_MAX);
        }
        (last && !self.pending.is_empty()).then_some(self.pending.len())
    }
}

impl ManifestBuilder {
    /// Prepares for a file that is cut with the given average chunk size.
    pub fn new(namer: ChunkNamer, chunk_size: u32) -> Self {
        Self { namer, chunk_size, size: 0, levels: Vec::new() }
    }

    /// Adds the next chunk of the file.
    ///
    /// # Errors
    /// [`ContentError::TooManyChunks`], and whatever `list_sink` returns.
    pub fn push<E: From<ContentError>>(
        &mut self,
        chunk: ChunkRef,
        list_sink: &mut impl FnMut(ChunkRef, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.size += u64::from(chunk.length);
        self.push_at(0, chunk, list_sink)
    }

    /// Returns the content of the file.
    ///
    /// # Errors
    /// [`ContentError::TooManyChunks`], and whatever `list_sink` returns.
    pub fn finish<E: From<ContentError>>(
        mut self,
        list_sink: &mut impl FnMut(ChunkRef, &[u8]) -> Result<(), E>,
    ) -> Result<Content, E> {
        let mut depth = 0;
        while self.levels.get(depth).is_some_and(|level| level.in_lists) {
            self.close_lists(depth, true, list_sink)?;
            depth += 1;
        }
        let chunks = self.levels.into_iter().nth(depth).unwrap_or_default().pending;
        let depth = depth as u8;
        Ok(Content { size: self.size, chunk_size: self.chunk_size, depth, chunks })
    }

    fn push_at<E: From<ContentError>>(
        &mut self,
        depth: usize,
        chunk: ChunkRef,
        list_sink: &mut impl FnMut(ChunkRef, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if depth > usize::from(CONTENT_DEPTH_MAX) {
            return Err(too_many_chunks().into());
        }
        if depth == self.levels.len() {
            self.levels.push(Level::default());
        }
        let level = &mut self.levels[depth];
        level.pending.push(chunk);
        level.in_lists |= level.pending.len() > CONTENT_CHUNKS_MAX;
        if level.in_lists { self.close_lists(depth, false, list_sink) } else { Ok(()) }
    }

    /// Makes lists of what is pending at one level, and enters them at the next.
    fn close_lists<E: From<ContentError>>(
        &mut self,
        depth: usize,
        last: bool,
        list_sink: &mut impl FnMut(ChunkRef, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(length) = self.levels[depth].first_list(last) {
            let list = ChunkList {
                level: depth as u8,
                chunks: self.levels[depth].pending.drain(..length).collect(),
            };
            let bytes = list.encode();
            let chunk = ChunkRef { id: self.namer.name(&bytes), length: bytes.len() as u32 };
            list_sink(chunk, &bytes)?;
            self.push_at(depth + 1, chunk, list_sink)?;
        }
        Ok(())
    }
}

/// What the levels hold at least, if every list is as short as can be.
fn too_many_chunks() -> ContentError {
    let lists = (LIST_LENGTH_MIN as u64).pow(u32::from(CONTENT_DEPTH_MAX));
    ContentError::TooManyChunks { max: CONTENT_CHUNKS_MAX as u64 * lists }
}

/// A list of references: what a chunk above the data holds.
#[derive(Debug, PartialEq, Eq)]
struct ChunkList {
    /// Levels of lists below this one: 0 where the references are to data.
    level: u8,
    chunks: Vec<ChunkRef>,
}

impl ChunkList {
    fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.raw(&LIST_HEADER);
        encoder.raw(&[self.level]);
        encoder.list(&self.chunks);
        encoder.into_bytes()
    }

    /// Reads the list that is expected at a level.
    fn decode(bytes: &[u8], level: u8) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        if decoder.array()? != LIST_HEADER {
            return Err(DecodeError::WrongKind { expected: "chunk list" });
        }
        let [found] = decoder.array()?;
        if found != level {
            return Err(decoder.invalid("list level", format!("{found} where {level} is due")));
        }
        let count = decoder.unsigned_max(LIST_LENGTH_MAX as u64)?;
        if count == 0 {
            return Err(decoder.invalid("chunk list", "empty"));
        }
        let chunks =
            (0..count).map(|_| ChunkRef::decode(&mut decoder)).collect::<Result<_, _>>()?;
        decoder.finish()?;
        Ok(Self { level, chunks })
    }
}

#[cfg(test)]
mod tests;
