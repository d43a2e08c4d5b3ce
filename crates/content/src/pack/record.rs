//! Records: neighbouring chunks that are compressed together.

use model::content::ChunkRef;

use super::{RECORD_CHUNKS_MAX, RECORD_PLAIN_MAX};
use crate::error::ContentError;
use crate::transform::{TransformEncoder, TransformTag};

/// A record that has less room than this left is not worth keeping open.
const ROOM_MIN: usize = 32 * 1024;

/// A record in the making.
#[derive(Debug)]
pub struct PlainRecord {
    pub(super) chunks: Vec<ChunkRef>,
    pub(super) plain: Vec<u8>,
    /// How many bytes several chunks have at most.
    pub(super) plain_max: usize,
}

impl Default for PlainRecord {
    fn default() -> Self {
        Self { chunks: Vec::new(), plain: Vec::new(), plain_max: RECORD_PLAIN_MAX }
    }
}

impl PlainRecord {
    /// Makes an empty record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells whether a chunk of `length` bytes may be added; an empty record takes any chunk.
    pub fn has_room(&self, length: usize) -> bool {
        self.chunks.is_empty()
            || self.plain.len() + length <= self.plain_max && self.chunks.len() < RECORD_CHUNKS_MAX
    }

    /// Adds a chunk.
    ///
    /// # Panics
    /// Where the bytes have not the length of the chunk, or there is no room for them.
    pub fn push(&mut self, chunk: ChunkRef, bytes: &[u8]) {
        assert_eq!(chunk.length as usize, bytes.len(), "the length of chunk {}", chunk.id);
        assert!(!bytes.is_empty() && self.has_room(bytes.len()), "room for chunk {}", chunk.id);
        self.chunks.push(chunk);
        self.plain.extend_from_slice(bytes);
    }

    /// Tells whether it is time to encode the record and to begin another.
    pub fn is_full(&self) -> bool {
        self.plain.len() + ROOM_MIN > self.plain_max || self.chunks.len() >= RECORD_CHUNKS_MAX
    }

    /// Tells whether there is no chunk yet.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns how many bytes the chunks have.
    pub fn plain_len(&self) -> usize {
        self.plain.len()
    }

    /// Removes all chunks and keeps the memory.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.plain.clear();
    }

    /// Encodes the record, on whatever thread this is.
    ///
    /// # Errors
    /// [`ContentError::Encode`].
    ///
    /// # Panics
    /// Where there is no chunk.
    pub fn encode(&self, encoder: &mut TransformEncoder) -> Result<StoredRecord, ContentError> {
        assert!(!self.is_empty(), "a record has a chunk");
        let mut bytes = Vec::new();
        let transform = encoder.encode(&self.plain, &mut bytes)?;
        Ok(StoredRecord {
            chunks: self.chunks.clone(),
            bases: Vec::new(),
            plain_length: self.plain.len(),
            transform,
            bytes,
        })
    }
}

/// An encoded record, ready to be put into a pack.
#[derive(Debug)]
pub struct StoredRecord {
    pub(super) chunks: Vec<ChunkRef>,
    /// What a delta record is made from.
    pub(super) bases: Vec<ChunkRef>,
    pub(super) plain_length: usize,
    pub(super) transform: TransformTag,
    pub(super) bytes: Vec<u8>,
}

impl StoredRecord {
    /// Returns the chunks that are in it.
    pub fn chunks(&self) -> &[ChunkRef] {
        &self.chunks
    }

    /// Returns what these are made from; nothing where they rest whole.
    pub fn bases(&self) -> &[ChunkRef] {
        &self.bases
    }
}
