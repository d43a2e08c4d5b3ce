//! The index of a pack: which records it has, and which chunks are in them.

use std::ops::Range;

use model::codec::{Decode, DecodeError, Decoder, Encoder};
use model::content::{CHUNK_SIZE_MAX, ChunkRef};
use model::ids::ChunkId;

use super::seal;
use super::{
    DEFLATE_PLAIN_MAX, HEADER, JPEG_PLAIN_FACTOR, JPEG_PLAIN_MAX, Newest, PACK_BASES_MAX,
    PACK_CHUNKS_MAX, PACK_LENGTH_MAX, PackVersion, RECORD_BASES_LENGTH_MAX, RECORD_BASES_MAX,
    RECORD_CHUNKS_MAX, RECORD_PLAIN_MAX, TRAILER_LENGTH, TRAILER_MAGIC,
};
use crate::error::ContentError;
use crate::sealed::{PackBoxes, PackGuard};
use crate::transform::{TransformTag, pays};

/// Length in bytes of a record's or a chunk's integers at most: each takes 4 or fewer in LEB128.
const INTEGER_LENGTH_MAX: usize = 4;

/// Length in bytes of a delta record's number of bases at most.
const BASE_COUNT_LENGTH_MAX: usize = 1;

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
    pub(super) first_base: u32,
    pub(super) base_count: u32,
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

    fn bases(&self) -> Range<usize> {
        self.first_base as usize..(self.first_base + self.base_count) as usize
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
    /// Of all delta records, in their order.
    pub(super) bases: Vec<ChunkRef>,
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
    pub(super) fn new(
        records: Vec<RecordEntry>,
        chunks: Vec<ChunkRef>,
        bases: Vec<ChunkRef>,
        fence: u64,
    ) -> Self {
        assert!(!records.is_empty(), "a pack has a record");
        let mut index = Self { records, chunks, bases, pack_length: 0, fence, boxes: None };
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

    /// Returns the version of the format, as header and trailer say it where the pack is sealed or not.
    pub(super) fn version(&self, is_sealed: bool) -> PackVersion {
        PackVersion::of(is_sealed, self.fence > 0, newest(&self.records))
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

    /// Tells whether any record is made from chunks elsewhere, or is another one that only programs read that know of these.
    pub fn has_deltas(&self) -> bool {
        newest(&self.records) > Newest::Whole
    }

    /// Returns the chunks that a record is made from, in the order in which it wants them; none but for a delta record.
    ///
    /// # Errors
    /// [`ContentError::NoSuchRecord`].
    pub fn bases(&self, record: usize) -> Result<&[ChunkRef], ContentError> {
        Ok(&self.bases[self.record(record)?.bases()])
    }

    /// Returns the record of a number.
    ///
    /// # Errors
    /// [`ContentError::NoSuchRecord`].
    pub fn record(&self, record: usize) -> Result<&RecordEntry, ContentError> {
        let count = self.records.len();
        self.records.get(record).ok_or(ContentError::NoSuchRecord { record, count })
    }

    /// Returns every chunk with its place, first those that are made from no others: a chunk may rest in two records, and is better read
    /// where it rests whole.
    pub fn packed_chunks(&self) -> impl Iterator<Item = PackedChunk> + '_ {
        let records = || self.records.iter().zip(0..);
        let whole = records().filter(|(entry, _)| !entry.transform.has_bases());
        let made = records().filter(|(entry, _)| entry.transform.has_bases());
        whole.chain(made).flat_map(move |(entry, record)| {
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
        if seal::sealed_version(trailer).is_some() {
            return Err(ContentError::IsSealed { what: "pack" });
        }
        let ([a, b, c, d, version, magic @ ..], hash) = split_trailer(trailer);
        // A newer program makes this hash, too: without it, a number that nobody knows is damage.
        let version = PackVersion::from_number(*version);
        if *magic != TRAILER_MAGIC
            || matches!(&version, Ok(version) if version.is_none_or(PackVersion::is_sealed))
        {
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
            let is_known = version.is_ok();
            return Err(if is_known { ContentError::IndexHash } else { ContentError::PackTrailer });
        }
        let version = version?.ok_or(ContentError::PackTrailer)?;
        let index = Self::decode(encoded, 0, version)?;
        if index.pack_length() != pack_length {
            let described = index.pack_length();
            return Err(ContentError::IndexMismatch { described, length: pack_length });
        }
        Ok(TailOutcome::Complete(index))
    }

    /// Returns the canonical encoding.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        if self.fence > 0 || self.has_deltas() {
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
        for record in self.records.iter().filter(|record| record.base_count > 0) {
            encoder.list(&self.bases[record.bases()]);
        }
        encoder.into_bytes()
    }

    /// Reads the encoding of an index of a version, whose records take `overhead` bytes beyond what they say.
    ///
    /// # Errors
    /// [`ContentError::Index`] where it is not canonical, or breaks a limit.
    pub(super) fn decode(
        encoded: &[u8],
        overhead: usize,
        version: PackVersion,
    ) -> Result<Self, ContentError> {
        let mut decoder = Decoder::new(encoded);
        let index = decode_parts(&mut decoder, overhead as u64, version);
        let mut index = index.map_err(|source| ContentError::Index { source })?;
        decoder.finish().map_err(|source| ContentError::Index { source })?;
        index.pack_length = index.plain_pack_length(encoded.len());
        Ok(index)
    }

    pub(super) fn encoded_length_max(records: usize, chunks: usize, bases: usize) -> usize {
        (1 + FENCE_LENGTH_MAX)
            + records * (1 + 2 * INTEGER_LENGTH_MAX + BASE_COUNT_LENGTH_MAX)
            + (chunks + bases) * (ChunkId::LENGTH + INTEGER_LENGTH_MAX)
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

/// Reads the number of a fence, which not all versions have.
fn decode_fence(decoder: &mut Decoder<'_>, version: PackVersion) -> Result<u64, DecodeError> {
    let fence = match version.has_fence() {
        true => decoder.unsigned()?,
        false => return Ok(0),
    };
    // Packs with deltas say 0 where there is none, as all sealed ones do.
    match (fence > 0, version.newest() > Newest::Whole, version.is_sealed()) {
        (false, false, _) => Err(decoder.invalid("fence", "zero")),
        (true, _, true) => Err(decoder.invalid("fence", "sealed packs have none")),
        _ => Ok(fence),
    }
}

fn decode_parts(
    decoder: &mut Decoder<'_>,
    overhead: u64,
    version: PackVersion,
) -> Result<PackIndex, DecodeError> {
    let fence = decode_fence(decoder, version)?;
    let mut records = decode_records(decoder, overhead)?;
    let chunk_count = records.last().map_or(0, |last| last.chunks().end);
    let chunks = decode_chunks(decoder, chunk_count)?;
    let bases = decode_bases(decoder, &mut records, &chunks, version)?;
    for record in &mut records {
        let lengths = chunks[record.chunks()].iter().map(|chunk| chunk.length);
        // At most 4096 chunks of 8 MiB: the sum needs 36 bits, and `check_lengths` refuses what is too much.
        let plain_length = lengths.map(u64::from).sum();
        check_lengths(record, plain_length).map_err(|reason| decoder.invalid("record", reason))?;
        record.plain_length = plain_length as u32;
    }
    Ok(PackIndex { records, chunks, bases, pack_length: 0, fence, boxes: None })
}

/// Reads what comes before the chunks of all records.
fn decode_records(
    decoder: &mut Decoder<'_>,
    overhead: u64,
) -> Result<Vec<RecordEntry>, DecodeError> {
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
            first_base: 0,
            base_count: 0,
            overhead: overhead as u32,
        });
        offset += stored_length + overhead;
        if offset > PACK_LENGTH_MAX {
            return Err(decoder.invalid("stored length", "more than a pack may have"));
        }
        first_chunk += chunk_count;
    }
    Ok(records)
}

/// Reads what delta records are made from; each version has what it is for at least once, and nothing that it is not for.
fn decode_bases(
    decoder: &mut Decoder<'_>,
    records: &mut [RecordEntry],
    chunks: &[ChunkRef],
    version: PackVersion,
) -> Result<Vec<ChunkRef>, DecodeError> {
    let mut all = Vec::new();
    if newest(records) != version.newest() {
        return Err(decoder.invalid("version", "it is not that of its records"));
    }
    for record in records {
        record.first_base = all.len() as u32;
        if !record.transform.has_bases() {
            continue;
        }
        let bases: Vec<ChunkRef> = decoder.list()?;
        let counts = 1..=RECORD_BASES_MAX.min(PACK_BASES_MAX - all.len());
        let length: u64 = bases.iter().map(|base| u64::from(base.length)).sum();
        if !counts.contains(&bases.len()) || length > RECORD_BASES_LENGTH_MAX {
            return Err(decoder.invalid("bases", "none, or more than there may be"));
        }
        let own = &chunks[record.chunks()];
        if own.iter().any(|chunk| bases.iter().any(|base| base.id == chunk.id)) {
            return Err(decoder.invalid("bases", "the record is made from itself"));
        }
        record.base_count = bases.len() as u32;
        all.extend(bases);
    }
    Ok(all)
}

/// Tells what records have that not all versions know.
fn newest(records: &[RecordEntry]) -> Newest {
    let of = |record: &RecordEntry| match record.transform {
        TransformTag::Jpeg => Newest::Pictures,
        transform if transform.has_bases() => Newest::Deltas,
        _ => Newest::Whole,
    };
    records.iter().map(of).max().unwrap_or(Newest::Whole)
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
    let plain_max = match record.transform {
        TransformTag::Deflate => DEFLATE_PLAIN_MAX,
        TransformTag::Jpeg => {
            JPEG_PLAIN_MAX.min((record.stored_length as usize).saturating_mul(JPEG_PLAIN_FACTOR))
        }
        _ => RECORD_PLAIN_MAX,
    };
    let may_be_more = record.chunk_count == 1 && record.transform != TransformTag::Jpeg;
    if !may_be_more && plain_length > plain_max as u64 {
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
