//! What a file version consists of: an ordered list of chunks, directly or through lists of lists.

use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder};
use crate::ids::ChunkId;

/// The largest chunk that any chunker may cut, in bytes; a reader allocates no more for one.
pub const CHUNK_SIZE_MAX: u32 = 8 * 1024 * 1024;

/// How many levels of chunk lists may lie above the data.
pub const CONTENT_DEPTH_MAX: u8 = 4;

/// How many chunk references a [`Content`] holds at most; longer lists become chunks themselves.
pub const CONTENT_CHUNKS_MAX: usize = 256;

/// One chunk of a file, in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkRef {
    /// The name of the chunk.
    pub id: ChunkId,
    /// Its length in bytes, 1 to [`CHUNK_SIZE_MAX`].
    pub length: u32,
}

/// The content of one file version.
///
/// At `depth` 0 the chunks are the bytes of the file in order. At depth *d* they are the encoded lists of chunk
/// references of depth *d* - 1, so that a file of any size has a small record and a small edit changes few
/// lists. `content::manifest` builds and expands them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Content {
    /// Length of the file in bytes.
    pub size: u64,
    /// Average chunk size in bytes with which the file was cut; later versions keep it.
    pub chunk_size: u32,
    /// Levels of lists above the data.
    pub depth: u8,
    /// References of the topmost level; empty only for an empty file.
    pub chunks: Vec<ChunkRef>,
}

impl Encode for ChunkRef {
    fn encode(&self, encoder: &mut Encoder) {
        self.id.encode(encoder);
        encoder.unsigned(u64::from(self.length));
    }
}

impl Decode for ChunkRef {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let id = ChunkId::decode(decoder)?;
        let length = decoder.unsigned_max(u64::from(CHUNK_SIZE_MAX))? as u32;
        if length == 0 {
            return Err(decoder.invalid("chunk length", "zero"));
        }
        Ok(Self { id, length })
    }
}

impl Encode for Content {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(self.size);
        encoder.unsigned(u64::from(self.chunk_size));
        encoder.unsigned(u64::from(self.depth));
        encoder.list(&self.chunks);
    }
}

impl Decode for Content {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let content = Self {
            size: decoder.unsigned()?,
            chunk_size: decoder.unsigned32()?,
            depth: decoder.unsigned_max(u64::from(CONTENT_DEPTH_MAX))? as u8,
            chunks: decoder.list()?,
        };
        if content.chunks.len() > CONTENT_CHUNKS_MAX {
            return Err(decoder.invalid("content", "too many chunks in one list"));
        }
        let length: u64 = content.chunks.iter().map(|chunk| u64::from(chunk.length)).sum();
        if content.depth == 0 && length != content.size {
            return Err(decoder.invalid("content", "chunk lengths do not add up to the size"));
        }
        if content.depth > 0 && content.chunks.is_empty() {
            return Err(decoder.invalid("content", "an empty list has no levels"));
        }
        Ok(content)
    }
}
