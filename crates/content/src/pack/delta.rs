//! Delta records: chunks that are stored as what makes them from other chunks, their *bases*.
//!
//! *Participants*: as of packs; whoever opens such a record brings the bytes of its bases, which rest in other records. *Goals*: an edit
//! of a few bytes is stored in a few bytes, wherever its chunk is cut; whoever removes packs can tell from an index alone what else a
//! record needs. *Non-goals*: finding what two chunks have in common (`crate::delta` does); saying where the bases are, which
//! everybody knows for himself. *Invariants*: every chunk has its own id, by which it is verified like any other, so that a wrong
//! base makes no wrong chunk; opening never makes more than the declared length; a record is no base of itself.
//!
//! The format in words: `docs/design/pack-format.md`, "Delta records".

use std::collections::HashMap;
use std::ops::Range;

use model::codec::{DecodeError, Decoder, Encoder};
use model::content::{CHUNK_SIZE_MAX, ChunkRef};
use model::ids::ChunkId;

use super::record::{PlainRecord, StoredRecord};
use super::{RECORD_CHUNKS_MAX, RECORD_PLAIN_MAX, WRITTEN_BASES_MAX};
use crate::error::ContentError;
use crate::transform::{TransformDecoder, TransformEncoder, TransformTag, pays};

/// How many bases a record may have: whoever opens it has them all in memory, or fetches them.
pub const RECORD_BASES_MAX: usize = 64;

/// How many bytes they may have together.
pub const RECORD_BASES_LENGTH_MAX: u64 = 8 * 1024 * 1024;

/// What comes next in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaStep<'a> {
    /// `length` bytes of a base, from `offset` on.
    Copy {
        /// The base.
        base: ChunkRef,
        /// Where they begin, in bytes.
        offset: u32,
        /// How many they are.
        length: u32,
    },
    /// These bytes.
    Literal(&'a [u8]),
}

impl<'a> DeltaStep<'a> {
    /// Returns the bytes that no base has.
    pub(crate) fn literal(&self) -> &'a [u8] {
        match self {
            Self::Copy { .. } => &[],
            Self::Literal(bytes) => bytes,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Copy { length, .. } => *length as usize,
            Self::Literal(bytes) => bytes.len(),
        }
    }
}

/// A delta record in the making.
#[derive(Debug, Default)]
pub struct DeltaRecord {
    pub(super) chunks: Vec<ChunkRef>,
    pub(super) bases: Vec<ChunkRef>,
    /// Where each base begins when all are laid behind each other, in bytes.
    starts: HashMap<ChunkId, u64>,
    bases_length: u64,
    steps: Encoder,
    literals: Vec<u8>,
    plain: Vec<u8>,
    /// Where the last copy ended.
    expected: u64,
}

impl DeltaRecord {
    /// Makes an empty record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells whether a chunk with these steps may be added. An empty record takes any chunk whose bases are no more than writers give,
    /// and that is not among them.
    pub fn has_room(&self, chunk: &ChunkRef, steps: &[DeltaStep<'_>]) -> bool {
        let mut more: Vec<ChunkRef> = steps.iter().filter_map(|step| self.new_base(step)).collect();
        more.sort_unstable_by_key(|base| base.id);
        more.dedup();
        let more_length: u64 = more.iter().map(|base| u64::from(base.length)).sum();
        // Nothing can be opened that is made from what is in the same record.
        let is_of_itself = self.starts.contains_key(&chunk.id)
            || more.iter().any(|base| *base == *chunk || self.chunks.contains(base));
        !is_of_itself
            && self.bases.len() + more.len() <= WRITTEN_BASES_MAX
            && self.bases_length + more_length <= RECORD_BASES_LENGTH_MAX
            && (self.chunks.is_empty()
                || self.plain.len() + chunk.length as usize <= RECORD_PLAIN_MAX
                    && self.chunks.len() < RECORD_CHUNKS_MAX)
    }

    fn new_base(&self, step: &DeltaStep<'_>) -> Option<ChunkRef> {
        match step {
            DeltaStep::Copy { base, .. } => {
                Some(*base).filter(|base| !self.starts.contains_key(&base.id))
            }
            DeltaStep::Literal(_) => None,
        }
    }

    /// Adds a chunk, whose bytes the steps make.
    ///
    /// # Panics
    /// Where the steps do not make as many bytes as the chunk has, one reaches beyond its base or copies what the record has itself, or
    /// there is no room.
    pub fn push(&mut self, chunk: ChunkRef, bytes: &[u8], steps: &[DeltaStep<'_>]) {
        let length: usize = steps.iter().map(DeltaStep::len).sum();
        assert_eq!(chunk.length as usize, length, "the steps make chunk {}", chunk.id);
        assert_eq!(bytes.len(), length, "the length of chunk {}", chunk.id);
        assert!(length > 0 && self.has_room(&chunk, steps), "room for chunk {}", chunk.id);
        for step in steps.iter().filter(|step| step.len() > 0) {
            match *step {
                DeltaStep::Copy { base, offset, length } => {
                    let end = u64::from(offset) + u64::from(length);
                    assert!(end <= u64::from(base.length), "bytes {end} of base {}", base.id);
                    let place = self.start(base) + u64::from(offset);
                    self.steps.unsigned(u64::from(length) << 1);
                    self.steps.signed(place as i64 - self.expected as i64);
                    self.expected = place + u64::from(length);
                }
                DeltaStep::Literal(bytes) => {
                    self.steps.unsigned((bytes.len() as u64) << 1 | 1);
                    self.literals.extend_from_slice(bytes);
                }
            }
        }
        self.chunks.push(chunk);
        self.plain.extend_from_slice(bytes);
    }

    /// Returns where a base begins, which is a new one or known.
    fn start(&mut self, base: ChunkRef) -> u64 {
        *self.starts.entry(base.id).or_insert_with(|| {
            let start = self.bases_length;
            self.bases.push(base);
            self.bases_length += u64::from(base.length);
            start
        })
    }

    /// Tells whether there is no chunk yet.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns how many bytes the chunks have.
    pub fn plain_len(&self) -> usize {
        self.plain.len()
    }

    /// Encodes the record. Where that is no shorter than the chunks, or they are made from nothing else, it is a record like others.
    ///
    /// # Errors
    /// [`ContentError::Encode`].
    ///
    /// # Panics
    /// Where there is no chunk.
    pub fn encode(self, encoder: &mut TransformEncoder) -> Result<StoredRecord, ContentError> {
        let Self { chunks, bases, steps, literals, plain, .. } = self;
        assert!(!chunks.is_empty(), "a record has a chunk");
        let plain_length = plain.len();
        if !bases.is_empty()
            && let Some(bytes) = encode_script(steps, &literals, plain_length, encoder)?
        {
            let transform = TransformTag::Delta;
            return Ok(StoredRecord { chunks, bases, plain_length, transform, bytes });
        }
        PlainRecord { chunks, plain, ..PlainRecord::new() }.encode(encoder)
    }
}

/// Returns the stored form of the script of a delta record; nothing where it does not pay.
fn encode_script(
    steps: Encoder,
    literals: &[u8],
    plain_length: usize,
    encoder: &mut TransformEncoder,
) -> Result<Option<Vec<u8>>, ContentError> {
    let mut script = Encoder::default();
    script.byte_string(&steps.into_bytes());
    script.raw(literals);
    store_script(&script.into_bytes(), plain_length, encoder)
}

/// Returns the stored form of what makes a record of so many bytes from others; nothing where it does not pay.
pub(super) fn store_script(
    script: &[u8],
    plain_length: usize,
    encoder: &mut TransformEncoder,
) -> Result<Option<Vec<u8>>, ContentError> {
    if script.len() >= plain_length {
        return Ok(None);
    }
    let mut frame = Vec::new();
    let inner = encoder.encode(script, &mut frame)?;
    let mut stored = Encoder::default();
    stored.raw(&[inner.number()]);
    stored.unsigned(script.len() as u64);
    stored.raw(&frame);
    let stored = stored.into_bytes();
    Ok(pays(plain_length, stored.len()).then_some(stored))
}

/// Replaces what is in `plain` by the chunks of a delta record, `plain_length` bytes; `bases` are those of the index, in order.
pub(super) fn apply(
    stored: &[u8],
    plain_length: usize,
    bases: &[&[u8]],
    decoder: &mut TransformDecoder,
    plain: &mut Vec<u8>,
) -> Result<(), ContentError> {
    plain.clear();
    let refused = |source| ContentError::Script { source };
    let script = read_script(stored, plain_length, decoder)?;
    let mut reader = Decoder::new(&script);
    let steps = reader.byte_string(script.len()).map_err(refused)?;
    let literals = reader.raw(reader.remaining()).map_err(refused)?;
    plain.reserve_exact(plain_length);
    run(Decoder::new(steps), literals, &Bases::of(bases), plain_length, plain).map_err(refused)
}

/// Reads what makes a record of so many bytes from others.
pub(super) fn read_script(
    stored: &[u8],
    plain_length: usize,
    decoder: &mut TransformDecoder,
) -> Result<Vec<u8>, ContentError> {
    let mut head = Decoder::new(stored);
    let (inner, length) =
        read_head(&mut head, plain_length).map_err(|source| ContentError::Script { source })?;
    let frame = &stored[stored.len() - head.remaining()..];
    let mut script = Vec::new();
    decoder.decode(inner, frame, length, &mut script)?;
    Ok(script)
}

/// Reads how the script is stored, and how long it is.
fn read_head(
    head: &mut Decoder<'_>,
    plain_length: usize,
) -> Result<(TransformTag, usize), DecodeError> {
    let number = head.unsigned()?;
    let inner = TransformTag::from_number(number)
        .filter(|inner| !inner.has_bases() && *inner != TransformTag::Jpeg);
    let inner =
        inner.ok_or_else(|| head.invalid("transform", format!("{number} is none of a script")))?;
    let length = head.unsigned_max(plain_length.saturating_sub(1) as u64)? as usize;
    Ok((inner, length))
}

fn run(
    mut steps: Decoder<'_>,
    literals: &[u8],
    bases: &Bases<'_>,
    plain_length: usize,
    plain: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut literals = Decoder::new(literals);
    let mut expected = 0_i64;
    while steps.remaining() > 0 {
        let word = steps.unsigned()?;
        let (length, is_literal) = (word >> 1, word & 1 == 1);
        if length == 0 || length > (plain_length - plain.len()) as u64 {
            return Err(steps.invalid("step", "it makes no bytes, or more than there are"));
        }
        let length = length as usize;
        if is_literal {
            plain.extend_from_slice(literals.raw(length)?);
            continue;
        }
        let place = expected.checked_add(steps.signed()?);
        let place = place.and_then(|place| u64::try_from(place).ok());
        let copied = place.and_then(|place| bases.copy(place..place + length as u64, plain));
        let end = copied.ok_or_else(|| steps.invalid("step", "it reaches beyond its base"))?;
        expected = end as i64;
    }
    literals.finish()?;
    match plain.len() == plain_length {
        true => Ok(()),
        false => Err(steps.invalid("steps", "they make fewer bytes than the chunks have")),
    }
}

/// Bases laid behind each other.
struct Bases<'a> {
    bytes: &'a [&'a [u8]],
    /// Where each ends.
    ends: Vec<u64>,
}

impl<'a> Bases<'a> {
    fn of(bytes: &'a [&'a [u8]]) -> Self {
        let mut end = 0;
        let ends = bytes.iter().map(|base| {
            end += base.len() as u64;
            end
        });
        Self { ends: ends.collect(), bytes }
    }

    /// Appends a range, which lies in one base, and returns where it ends.
    fn copy(&self, range: Range<u64>, plain: &mut Vec<u8>) -> Option<u64> {
        let base = self.ends.partition_point(|end| *end <= range.start);
        let bytes = self.bytes.get(base)?;
        let start = self.ends[base] - bytes.len() as u64;
        let within = (range.start - start) as usize..usize::try_from(range.end - start).ok()?;
        plain.extend_from_slice(bytes.get(within)?);
        Some(range.end)
    }
}

// Places are signed differences of 64 bits.
const _: () = assert!((RECORD_BASES_MAX as u64) * (CHUNK_SIZE_MAX as u64) < i64::MAX as u64);
