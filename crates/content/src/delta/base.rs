//! What is known of the old version of a file: its chunks, and at a client, which does not have the bytes, a sketch of them.

use std::collections::HashMap;

use model::codec::{Decode, DecodeError, Decoder, Encode, Encoder, FORMAT_VERSION, Message};
use model::codec::{decode_message, encode_message};
use model::content::ChunkRef;
use model::{ChunkId, Content};

use super::error::DeltaError;
use super::message::{ChunkRun, ListDigest};
use super::sketch::{PieceSum, SketchKey, piece_count};
use crate::error::ContentError;
use crate::manifest::{EXPANDED_CHUNKS_MAX, expand};

/// What the digest of a chunk list is for.
const LIST_DIGEST: &str = "syncline delta v1: chunk list";

/// Files up to this size in bytes are sketched: the sums of a larger one would take more than 96 MiB.
pub const SKETCHED_SIZE_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// The chunks of one version in order, and where they begin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChunkTable {
    chunk_size: u32,
    chunks: Vec<ChunkRef>,
    /// Where each chunk begins in bytes, and where the last one ends.
    starts: Vec<u64>,
}

impl ChunkTable {
    /// Makes the table of a version that was cut with an average chunk size of `chunk_size` bytes.
    ///
    /// # Errors
    /// [`ContentError::TooManyChunks`] above [`EXPANDED_CHUNKS_MAX`].
    pub fn new(chunk_size: u32, chunks: Vec<ChunkRef>) -> Result<Self, ContentError> {
        if chunks.len() > EXPANDED_CHUNKS_MAX {
            return Err(ContentError::TooManyChunks { max: EXPANDED_CHUNKS_MAX as u64 });
        }
        let mut starts = vec![0];
        let mut end = 0;
        starts.extend(chunks.iter().map(|chunk| {
            end += u64::from(chunk.length);
            end
        }));
        Ok(Self { chunk_size, chunks, starts })
    }

    /// Makes the table of a content; `fetch` returns its lists, as for [`expand`].
    ///
    /// # Errors
    /// As those of [`expand`].
    pub fn of_content<E: From<ContentError>>(
        content: &Content,
        fetch: impl FnMut(&ChunkRef) -> Result<Vec<u8>, E>,
    ) -> Result<Self, E> {
        let chunks = expand(content, fetch)?;
        Ok(Self::new(content.chunk_size, chunks)?)
    }

    /// Returns the average chunk size in bytes with which the version was cut.
    pub fn chunk_size(&self) -> u32 {
        self.chunk_size
    }

    /// Returns the chunks in order.
    pub fn chunks(&self) -> &[ChunkRef] {
        &self.chunks
    }

    /// Returns the size of the version in bytes.
    pub fn size(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Returns the place of the chunk that has the byte at `offset`; nothing behind the end.
    pub fn chunk_at(&self, offset: u64) -> Option<usize> {
        let begun = self.starts.partition_point(|&start| start <= offset);
        (offset < self.size()).then(|| begun - 1)
    }

    /// Returns where a chunk begins in bytes; for the number of chunks, where the last one ends.
    pub fn start(&self, chunk: usize) -> u64 {
        self.starts.get(chunk).copied().unwrap_or(0)
    }

    /// Returns what tells this list from others.
    pub(super) fn digest(&self) -> ListDigest {
        let mut hasher = blake3::Hasher::new_derive_key(LIST_DIGEST);
        for chunk in &self.chunks {
            hasher.update(chunk.id.as_bytes());
            hasher.update(&chunk.length.to_le_bytes());
        }
        let hash = hasher.finalize();
        hash.as_bytes()[..16].try_into().expect("a hash has 32 bytes")
    }
}

/// How many chunks are encoded at a time.
const PIECE_CHUNKS: usize = 4096;

impl ChunkTable {
    /// Returns, piece by piece, the bytes of a [`BaseVersion`] that has these chunks and no sketch, in memory for a piece.
    pub fn into_pieces(self) -> impl Iterator<Item = Vec<u8>> + Send {
        let mut head = Encoder::default();
        head.raw(&[BaseVersion::MAGIC, FORMAT_VERSION]);
        head.unsigned(u64::from(self.chunk_size));
        head.unsigned(self.chunks.len() as u64);
        let mut place = 0;
        let chunks = std::iter::from_fn(move || {
            let rest = self.chunks.get(place..).filter(|rest| !rest.is_empty())?;
            let mut piece = Encoder::default();
            let now = &rest[..rest.len().min(PIECE_CHUNKS)];
            for chunk in now {
                chunk.encode(&mut piece);
            }
            place += now.len();
            Some(piece.into_bytes())
        });
        let mut tail = Encoder::default();
        tail.unsigned(0);
        std::iter::once(head.into_bytes()).chain(chunks).chain([tail.into_bytes()])
    }
}

/// Where the chunks of a table are, by id.
pub(super) struct Places {
    places: HashMap<ChunkId, Vec<u32>>,
}

impl Places {
    pub(super) fn of(table: &ChunkTable) -> Self {
        let mut places: HashMap<_, Vec<u32>> = HashMap::with_capacity(table.chunks.len());
        for (place, chunk) in table.chunks.iter().enumerate() {
            places.entry(chunk.id).or_default().push(place as u32);
        }
        Self { places }
    }

    /// Returns a place of a chunk: the first one that is not before `next`, or else the first.
    pub(super) fn find(&self, chunk: &ChunkRef, next: usize) -> Option<usize> {
        let places = self.places.get(&chunk.id)?;
        let behind = places.partition_point(|&place| (place as usize) < next);
        Some(*places.get(behind).unwrap_or(&places[0]) as usize)
    }
}

/// What a client keeps of a version whose bytes it does not keep: the chunks, and a sum for each 256 bytes of them.
///
/// It takes about 2.5 % of the size of the file. With it the client finds out which bytes inside of a changed chunk are
/// new. It is as secret as the chunk ids, and never leaves the client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaseVersion {
    table: ChunkTable,
    /// The sums of pieces; none where the file was not sketched.
    sums: Vec<PieceSum>,
    /// Where the sums of each chunk begin, if they are there.
    firsts: Vec<Option<u32>>,
}

impl BaseVersion {
    /// Takes a table without a sketch: whole chunks will be sent, unless the old bytes are at hand.
    pub fn without_sketch(table: ChunkTable) -> Self {
        Self { table, sums: Vec::new(), firsts: Vec::new() }
    }

    pub(super) fn sketched(table: ChunkTable, sums: Vec<PieceSum>) -> Self {
        let mut first = 0;
        let firsts = table.chunks.iter().map(|chunk| {
            let here = first;
            first += piece_count(chunk.length) as u32;
            Some(here)
        });
        let firsts = firsts.collect();
        assert_eq!(first as usize, sums.len(), "there is a sum for each piece");
        Self { table, sums, firsts }
    }

    /// Takes the sums of some chunks, in the order of the runs; before, there were none.
    pub(super) fn with_sums(
        mut self,
        runs: &[ChunkRun],
        sums: Vec<PieceSum>,
    ) -> Result<Self, DeltaError> {
        let mut firsts = vec![None; self.table.chunks.len()];
        let mut first = 0;
        for run in runs {
            for chunk in run.chunks(&self.table)? {
                firsts[chunk] = Some(first as u32);
                first += piece_count(self.table.chunks[chunk].length);
            }
        }
        let (expected, actual) = (first as u64, sums.len() as u64);
        if expected != actual {
            return Err(DeltaError::Length { what: "sums", expected, actual });
        }
        (self.sums, self.firsts) = (sums, firsts);
        Ok(self)
    }

    /// Returns the chunks.
    pub fn table(&self) -> &ChunkTable {
        &self.table
    }

    /// Returns the sums of the pieces of a chunk.
    pub(super) fn sums(&self, chunk: usize) -> Option<&[PieceSum]> {
        let first = (*self.firsts.get(chunk)?)? as usize;
        Some(&self.sums[first..first + piece_count(self.table.chunks[chunk].length)])
    }

    /// Tells whether the sums of all chunks are there.
    pub(super) fn is_sketched(&self) -> bool {
        !self.firsts.is_empty() && self.firsts.iter().all(Option::is_some)
    }

    /// Returns it as bytes, to be kept by the client. Sums of some chunks only, as a server tells them, are left out: they
    /// serve one delta.
    pub fn encode(&self) -> Vec<u8> {
        encode_message(self)
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// [`DeltaError::Message`] where it is something else; then the client does as if it had kept nothing.
    pub fn decode(bytes: &[u8]) -> Result<Self, DeltaError> {
        decode_message(bytes).map_err(|source| DeltaError::Message { source })
    }
}

impl Message for BaseVersion {
    const MAGIC: u8 = b'V';
    const KIND: &'static str = "base version";
}

impl Encode for BaseVersion {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(u64::from(self.table.chunk_size));
        encoder.list(&self.table.chunks);
        encoder.unsigned(u64::from(self.is_sketched()));
        if self.is_sketched() {
            encoder.raw(self.sums.as_flattened());
        }
    }
}

impl Decode for BaseVersion {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (chunk_size, chunks) = (decoder.unsigned32()?, decoder.list()?);
        let table = ChunkTable::new(chunk_size, chunks);
        let table = table.map_err(|error| decoder.invalid("chunks", error))?;
        if decoder.unsigned_max(1)? == 0 {
            return Ok(Self::without_sketch(table));
        }
        if table.chunks.is_empty() || table.size() > SKETCHED_SIZE_MAX {
            return Err(decoder.invalid("sketch", "there is none for this size"));
        }
        let count: usize = table.chunks.iter().map(|chunk| piece_count(chunk.length)).sum();
        let sums = decoder.raw(count * size_of::<PieceSum>())?;
        let (sums, _) = sums.as_chunks();
        Ok(Self::sketched(table, sums.to_vec()))
    }
}

/// Collects the table of a version, and a sketch of it, chunk by chunk.
pub(super) struct BaseBuilder<'a> {
    key: &'a SketchKey,
    /// The version before, whose sums are still right for the chunks that are still there.
    before: Option<(&'a BaseVersion, &'a Places)>,
    is_sketched: bool,
    chunks: Vec<ChunkRef>,
    sums: Vec<PieceSum>,
}

impl<'a> BaseBuilder<'a> {
    /// Begins with a file of `size` bytes.
    pub(super) fn new(
        key: &'a SketchKey,
        size: u64,
        before: Option<(&'a BaseVersion, &'a Places)>,
    ) -> Self {
        let is_sketched = size <= SKETCHED_SIZE_MAX;
        Self { key, before, is_sketched, chunks: Vec::new(), sums: Vec::new() }
    }

    pub(super) fn push(&mut self, chunk: ChunkRef, bytes: &[u8]) -> Result<(), ContentError> {
        if self.chunks.len() == EXPANDED_CHUNKS_MAX {
            return Err(ContentError::TooManyChunks { max: EXPANDED_CHUNKS_MAX as u64 });
        }
        self.chunks.push(chunk);
        if !self.is_sketched {
            return Ok(());
        }
        let known = self.before.and_then(|(base, places)| {
            let place = places.find(&chunk, 0)?;
            base.sums(place).filter(|_| base.table.chunks[place] == chunk)
        });
        match known {
            Some(sums) => self.sums.extend_from_slice(sums),
            None => self.sums.extend(self.key.piece_sums(bytes)),
        }
        Ok(())
    }

    pub(super) fn finish(self, chunk_size: u32) -> Result<BaseVersion, ContentError> {
        let table = ChunkTable::new(chunk_size, self.chunks)?;
        if self.is_sketched && table.size() <= SKETCHED_SIZE_MAX {
            Ok(BaseVersion::sketched(table, self.sums))
        } else {
            Ok(BaseVersion::without_sketch(table))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_table_are_the_bytes_of_a_version_without_a_sketch() {
        for count in [0, 1, PIECE_CHUNKS, PIECE_CHUNKS + 1] {
            let chunk = |number: usize| ChunkRef {
                id: ChunkId::from_bytes([number as u8; 32]),
                length: number as u32 + 1,
            };
            let table = ChunkTable::new(16 << 10, (0..count).map(chunk).collect()).unwrap();
            let bytes: Vec<u8> = table.clone().into_pieces().flatten().collect();
            assert_eq!(bytes, BaseVersion::without_sketch(table.clone()).encode());
            assert_eq!(BaseVersion::decode(&bytes).unwrap().table(), &table);
        }
    }

    #[test]
    fn every_byte_of_a_version_is_in_one_chunk() {
        let chunk = |length| ChunkRef { id: ChunkId::from_bytes([1; 32]), length };
        let table = ChunkTable::new(16, vec![chunk(3), chunk(1), chunk(2)]).unwrap();
        let places: Vec<_> = (0..7).map(|offset| table.chunk_at(offset)).collect();
        let expected = [Some(0), Some(0), Some(0), Some(1), Some(2), Some(2), None];
        assert_eq!(places, expected);
        assert_eq!(ChunkTable::default().chunk_at(0), None);
    }
}
