//! The index of a pack: which records it has, and which chunks are in them.

use std::ops::Range;

use model::codec::{Decode, DecodeError, Decoder, Encoder};
use model::content::{CHUNK_SIZE_MAX, ChunkRef};
use model::ids::ChunkId;

use super::seal;
use super::{
    FENCED_PACK_VERSION, HEADER, PACK_CHUNKS_MAX, PACK_LENGTH_MAX, PACK_VERSION, RECORD_CHUNKS_MAX,
    RECORD_PLAIN_MAX, TRAILER_LENGTH, TRAILER_MAGIC,
};
use crate::error::ContentError;
use crate::sealed::{PackBoxes, PackGuard};
use crate::transform::{TransformTag, pays};

/// Length in bytes of a record's or a chunk's integers at most: each takes 4 or fewer in LEB128.
const INTEGER_LENGTH_MAX: usize = 4;

/// Length in bytes of the number of a fence at most.
const FENCE_LENGTH_MAX: usize = 10;

/// One record of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordEntry {
    pub(super) offset: u32,
    pub(super) stored_length: u32,
    pub(super) plain_length: u32,
    pub(super) transform: TransformTag,
    pub(super) first_chunk: u32,
    pub(super) chunk_count: u32,
    /// How many bytes the record takes beyond its stored bytes: the tag of its seal.
    pub(super) overhead: u32,
}

impl RecordEntry {
    /// Returns the bytes of the pack that hold the record: the range to ask a store for.
    pub fn stored_range(&self) -> Range<u64> {
        u64::from(self.offset)..self.end() as u64
    }

    /// Returns how many plain bytes it has.
    pub fn plain_length(&self) -> usize {
        self.plain_length as usize
    }

    /// Returns what it went through.
    pub fn transform(&self) -> TransformTag {
        self.transform
    }

    /// Returns which chunks of the pack are in it.
    pub fn chunks(&self) -> Range<usize> {
        self.first_chunk as usize..(self.first_chunk + self.chunk_count) as usize
    }

    pub(super) fn end(&self) -> usize {
        (self.offset + self.stored_length + self.overhead) as usize
    }
}

/// A chunk and where it is in its pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedChunk {
    /// The chunk.
    pub chunk: ChunkRef,
    /// The number of its record.
    pub record: u32,
    /// Its number within the record.
    pub position: u32,
}

/// What a pack contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackIndex {
    records: Vec<RecordEntry>,
    chunks: Vec<ChunkRef>,
    pack_length: u64,
    /// The last fence that the writer of a plain pack knew, 0 for none.
    fence: u64,
    /// What opens the records, where they are sealed.
    pub(super) boxes: Option<PackBoxes>,
}

/// What the end of a pack tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TailOutcome {
    /// The index.
    Complete(PackIndex),
    /// The index begins before what was given.
    NeedMore {
        /// How many bytes from the end of the pack are needed.
        bytes: u64,
    },
}

impl PackIndex {
    pub(super) fn new(records: Vec<RecordEntry>, chunks: Vec<ChunkRef>, fence: u64) -> Self {
        assert!(!records.is_empty(), "a pack has a record");
        let mut index = Self { records, chunks, pack_length: 0, fence, boxes: None };
        index.pack_length = index.plain_pack_length(index.encode().len());
        index
    }

    /// Makes the index that of a sealed pack.
    pub(super) fn sealed(mut self, boxes: PackBoxes, pack_length: u64) -> Self {
        self.pack_length = pack_length;
        self.boxes = Some(boxes);
        self
    }

    /// Returns where the last record ends.
    pub(super) fn records_end(&self) -> usize {
        self.records.last().map_or(HEADER.len(), RecordEntry::end)
    }

    /// Returns the version of the format, as header and trailer of a plain pack say it.
    pub(super) fn plain_version(&self) -> u8 {
        if self.fence > 0 { FENCED_PACK_VERSION } else { PACK_VERSION }
    }

    fn plain_pack_length(&self, encoded_length: usize) -> u64 {
        (self.records_end() + encoded_length + TRAILER_LENGTH) as u64
    }

    /// Returns the records in order.
    pub fn records(&self) -> &[RecordEntry] {
        &self.records
    }

    /// Returns the chunks in order.
    pub fn chunks(&self) -> &[ChunkRef] {
        &self.chunks
    }

    /// Returns the record of a number.
    ///
    /// # Errors
    /// [`ContentError::NoSuchRecord`].
    pub fn record(&self, record: usize) -> Result<&RecordEntry, ContentError> {
        let count = self.records.len();
        self.records.get(record).ok_or(ContentError::NoSuchRecord { record, count })
    }

    /// Returns every chunk with its place.
    pub fn packed_chunks(&self) -> impl Iterator<Item = PackedChunk> + '_ {
        self.records.iter().zip(0..).flat_map(move |(entry, record)| {
            let chunks = self.chunks[entry.chunks()].iter().zip(0..);
            chunks.map(move |(&chunk, position)| PackedChunk { chunk, record, position })
        })
    }

    /// Returns the length in bytes of the pack.
    pub fn pack_length(&self) -> u64 {
        self.pack_length
    }

    /// Reads the index from the last bytes of a pack, however many there are.
    ///
    /// # Errors
    /// Where these are not the last bytes of a pack of `pack_length` bytes.
    pub fn from_tail(
        tail: &[u8],
        pack_length: u64,
        guard: &PackGuard,
    ) -> Result<TailOutcome, ContentError> {
        match guard.is_sealed() {
            true => seal::index_from_tail(tail, pack_length, guard),
            false => Self::from_plain_tail(tail, pack_length),
        }
    }

    fn from_plain_tail(tail: &[u8], pack_length: u64) -> Result<TailOutcome, ContentError> {
        let length_min = (HEADER.len() + TRAILER_LENGTH) as u64;
        if !(length_min..=PACK_LENGTH_MAX).contains(&pack_length) || tail.len() as u64 > pack_length
        {
            return Err(ContentError::PackLength { length: pack_length });
        }
        let Some((rest, trailer)) = tail.split_last_chunk::<TRAILER_LENGTH>() else {
            return Ok(TailOutcome::NeedMore { bytes: TRAILER_LENGTH as u64 });
        };
        if seal::is_sealed_tail(trailer) {
            return Err(ContentError::IsSealed { what: "pack" });
        }
        let ([a, b, c, d, version, magic @ ..], hash) = split_trailer(trailer);
        if *magic == TRAILER_MAGIC && *version > FENCED_PACK_VERSION {
            return Err(ContentError::NewerPack { version: *version, known: FENCED_PACK_VERSION });
        }
        if *magic != TRAILER_MAGIC || ![PACK_VERSION, FENCED_PACK_VERSION].contains(version) {
            return Err(ContentError::PackTrailer);
        }
        let length = u32::from_le_bytes([*a, *b, *c, *d]);
        if u64::from(length) > pack_length - length_min {
            let described = u64::from(length) + length_min;
            return Err(ContentError::IndexMismatch { described, length: pack_length });
        }
        let Some(start) = rest.len().checked_sub(length as usize) else {
            let bytes = u64::from(length) + TRAILER_LENGTH as u64;
            return Ok(TailOutcome::NeedMore { bytes });
        };
        let encoded = &rest[start..];
        if tail_hash(encoded, &trailer[..TRAILER_LENGTH - 32]) != *hash {
            return Err(ContentError::IndexHash);
        }
        let index = Self::decode(encoded, 0, *version == FENCED_PACK_VERSION)?;
        if index.pack_length() != pack_length {
            let described = index.pack_length();
            return Err(ContentError::IndexMismatch { described, length: pack_length });
        }
        Ok(TailOutcome::Complete(index))
    }

    /// Returns the canonical encoding.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        if self.fence > 0 {
            encoder.unsigned(self.fence);
        }
        encoder.unsigned(self.records.len() as u64);
        for record in &self.records {
            encoder.raw(&[record.transform.number()]);
            encoder.unsigned(u64::from(record.stored_length));
            encoder.unsigned(u64::from(record.chunk_count));
        }
        for chunk in &self.chunks {
            encoder.unsigned(u64::from(chunk.length));
        }
        for chunk in &self.chunks {
            encoder.raw(chunk.id.as_bytes());
        }
        encoder.into_bytes()
    }

    /// Reads the encoding of an index whose records take `overhead` bytes beyond what they say, and which begins with the
    /// number of a fence where it `is_fenced`.
    ///
    /// # Errors
    /// [`ContentError::Index`] where it is not canonical, or breaks a limit.
    pub(super) fn decode(
        encoded: &[u8],
        overhead: usize,
        is_fenced: bool,
    ) -> Result<Self, ContentError> {
        let mut decoder = Decoder::new(encoded);
        let fence = decode_fence(&mut decoder, is_fenced)
            .map_err(|source| ContentError::Index { source })?;
        let (records, chunks) = decode_parts(&mut decoder, overhead as u64)
            .map_err(|source| ContentError::Index { source })?;
        decoder.finish().map_err(|source| ContentError::Index { source })?;
        let mut index = Self { records, chunks, pack_length: 0, fence, boxes: None };
        index.pack_length = index.plain_pack_length(encoded.len());
        Ok(index)
    }

    pub(super) fn encoded_length_max(records: usize, chunks: usize) -> usize {
        (1 + FENCE_LENGTH_MAX + records * (1 + 2 * INTEGER_LENGTH_MAX))
            + chunks * (ChunkId::LENGTH + INTEGER_LENGTH_MAX)
    }
}

fn split_trailer(trailer: &[u8; TRAILER_LENGTH]) -> (&[u8; TRAILER_LENGTH - 32], &[u8; 32]) {
    let (fixed, hash) = trailer.split_last_chunk().expect("a trailer is longer than its hash");
    (fixed.try_into().expect("the trailer's length is that of its parts"), hash)
}

/// The hash that guards index and trailer, so that a damaged index is known before the whole pack is read.
pub(super) fn tail_hash(encoded_index: &[u8], trailer: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new().update(encoded_index).update(trailer).finalize().as_bytes()
}

/// Reads the number of a fence, which only packs of [`FENCED_PACK_VERSION`] have.
fn decode_fence(decoder: &mut Decoder<'_>, is_fenced: bool) -> Result<u64, DecodeError> {
    if !is_fenced {
        return Ok(0);
    }
    match decoder.unsigned()? {
        0 => Err(decoder.invalid("fence", "zero")),
        fence => Ok(fence),
    }
}

fn decode_parts(
    decoder: &mut Decoder<'_>,
    overhead: u64,
) -> Result<(Vec<RecordEntry>, Vec<ChunkRef>), DecodeError> {
    let record_count = decoder.unsigned_max(PACK_CHUNKS_MAX as u64)? as usize;
    if record_count == 0 {
        return Err(decoder.invalid("record count", "zero"));
    }
    // A record and its first chunk take far more than 8 bytes: what is reserved was nearly sent.
    let mut records = Vec::with_capacity(record_count.min(decoder.remaining() / 8));
    let (mut offset, mut first_chunk) = (HEADER.len() as u64, 0);
    for _ in 0..record_count {
        let number = decoder.unsigned()?;
        let Some(transform) = TransformTag::from_number(number) else {
            return Err(decoder.invalid("transform", format!("{number} is not known")));
        };
        let stored_length = decoder.unsigned_max(PACK_LENGTH_MAX - offset)?;
        let chunk_count = decoder.unsigned_max(RECORD_CHUNKS_MAX as u64)?;
        if chunk_count == 0 || first_chunk + chunk_count > PACK_CHUNKS_MAX as u64 {
            return Err(decoder.invalid("chunk count", "out of bounds"));
        }
        records.push(RecordEntry {
            offset: offset as u32,
            stored_length: stored_length as u32,
            plain_length: 0,
            transform,
            first_chunk: first_chunk as u32,
            chunk_count: chunk_count as u32,
            overhead: overhead as u32,
        });
        offset += stored_length + overhead;
        if offset > PACK_LENGTH_MAX {
            return Err(decoder.invalid("stored length", "more than a pack may have"));
        }
        first_chunk += chunk_count;
    }
    let chunks = decode_chunks(decoder, first_chunk as usize)?;
    for record in &mut records {
        let lengths = chunks[record.chunks()].iter().map(|chunk| chunk.length);
        // At most 4096 chunks of 8 MiB: the sum needs 36 bits, and `check_lengths` refuses what is too much.
        let plain_length = lengths.map(u64::from).sum();
        check_lengths(record, plain_length).map_err(|reason| decoder.invalid("record", reason))?;
        record.plain_length = plain_length as u32;
    }
    Ok((records, chunks))
}

/// Reads the lengths of all chunks, then their ids.
fn decode_chunks(decoder: &mut Decoder<'_>, count: usize) -> Result<Vec<ChunkRef>, DecodeError> {
    if decoder.remaining() < count * (1 + ChunkId::LENGTH) {
        return Err(decoder.invalid("chunk count", "more chunks than bytes are left for"));
    }
    let mut chunks = Vec::with_capacity(count);
    for _ in 0..count {
        let length = decoder.unsigned_max(u64::from(CHUNK_SIZE_MAX))? as u32;
        if length == 0 {
            return Err(decoder.invalid("chunk length", "zero"));
        }
        chunks.push(ChunkRef { id: ChunkId::from_bytes([0; ChunkId::LENGTH]), length });
    }
    for chunk in &mut chunks {
        chunk.id = ChunkId::decode(decoder)?;
    }
    Ok(chunks)
}

/// Checks what a writer keeps to, so that one content has one stored form and no record is a bomb.
fn check_lengths(record: &RecordEntry, plain_length: u64) -> Result<(), &'static str> {
    if record.chunk_count > 1 && plain_length > RECORD_PLAIN_MAX as u64 {
        return Err("more plain bytes than a record may have");
    }
    let stored_length = record.stored_length as usize;
    match record.transform {
        TransformTag::None if stored_length as u64 != plain_length => {
            Err("its stored length is not its plain length")
        }
        TransformTag::None => Ok(()),
        _ if stored_length == 0 => Err("it has no stored bytes"),
        _ if !pays(plain_length as usize, stored_length) => Err("its transform does not pay"),
        _ => Ok(()),
    }
}
