//! What the sides of a delta say to each other, as bytes.
//!
//! *Participants*: a client that has the new version of a file, and whoever has the old one. *Goals*: compact, canonical,
//! bounded: no message is longer than [`MESSAGE_LENGTH_MAX`], and none makes its reader allocate more than a small multiple
//! of its own length. *Non-goals*: carrying messages, and keeping others from reading them; transports do that.
//! *Invariants*: every message names its session; what says too much for a sealed workspace leaves this room only
//! through a value that wants a [`Plain`](super::Plain).
//!
//! The format in words: `docs/design/delta.md`, "Messages".

use model::WorkspaceId;
use model::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message};
use model::codec::{decode_message, encode_message};
use model::content::{CHUNK_SIZE_MAX, ChunkRef};

use super::error::DeltaError;
use super::plain::SessionId;
use super::sketch::PieceSum;
use super::sums::{BlockLayout, BlockSums, Strength};

/// The longest message in bytes: a part with a chunk of the largest size, and what is around it.
pub const MESSAGE_LENGTH_MAX: usize = 9 * 1024 * 1024;

/// A part of a long message is sent when it has so many bytes.
pub(super) const PART_LENGTH: usize = 256 * 1024;

/// How many steps or runs one message has at most: as many as the largest chunk may need.
pub const MESSAGE_STEPS_MAX: u64 = 128 * 1024;

/// How many symbols one message has at most.
pub(super) const SYMBOLS_PER_MESSAGE: u64 = 64 * 1024;

/// Any message of a delta.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeltaMessage {
    /// WebRsync: the client wants the sums of the old version.
    Open(Opening),
    /// WebRsync: the sums of the old version.
    OldSums(SessionId, SessionSums),
    /// WebRsync: how the new version follows from the old one.
    Recipe(Recipe),
    /// WebR2sync: the sums of the new version, and what it is as a whole.
    NewSums(Opening, WholeFile, SessionSums),
    /// WebR2sync: which blocks of the new version the old one has.
    Matches(SessionId, Vec<MatchRun>),
    /// WebR2sync: the bytes of the other blocks, in order.
    Literals(Literals),
    /// What became of the new version.
    Answer(SessionId, Answer),
    /// Ours: a part of a chunk-list delta.
    Chunks(ChunkPart),
    /// Ours, without a base: the client wants symbols of the old version's chunk list.
    AskSymbols(AskSymbols),
    /// Ours, without a base: the symbols.
    Symbols(SymbolBatch),
    /// Ours, without a sketch: the client wants the sums of some chunks.
    AskSums(AskSums),
    /// Ours, without a sketch: the sums of the pieces of these chunks, in order.
    Sums(SessionId, Vec<PieceSum>),
}

/// How a session of the rsync family begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) workspace: WorkspaceId,
    pub(super) session: SessionId,
    pub(super) strength: Strength,
    pub(super) locality: bool,
}

/// The new version as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WholeFile {
    /// Its size in bytes.
    pub(super) size: u64,
    /// Its BLAKE3-256.
    pub(super) hash: [u8; 32],
}

/// Block sums with the width that their fingerprints have on the wire, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionSums {
    pub(super) width: usize,
    pub(super) sums: BlockSums,
}

/// A part of a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recipe {
    pub(super) session: SessionId,
    pub(super) steps: Vec<RecipeStep>,
    /// In the last part.
    pub(super) whole: Option<WholeFile>,
}

/// What comes next in the new version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RecipeStep {
    /// Blocks of the old version, `count` of them from `block` on.
    Copy { block: u32, count: u32 },
    /// Bytes.
    Literal(Vec<u8>),
}

/// Neighbouring blocks of the new version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MatchRun {
    pub(super) count: u32,
    /// Where the first of them begins in the old version in bytes, the others behind it; or that it has none of them.
    pub(super) offset: Option<u64>,
}

/// A part of the missing bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literals {
    pub(super) session: SessionId,
    pub(super) is_last: bool,
    pub(super) bytes: Vec<u8>,
}

/// What became of the new version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is there, and it is what the client has.
    Verified,
    /// It is something else, and nothing of it was kept.
    Mismatch,
    /// Chunks came out as something else, and are wanted in full; their places in the new list, ascending.
    Wanted(Vec<u64>),
}

/// A part of a chunk-list delta.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChunkPart {
    pub(super) session: SessionId,
    /// The first part is number 0.
    pub(super) number: u32,
    /// In the first part.
    pub(super) opening: Option<ChunkOpening>,
    pub(super) steps: Vec<ListStep>,
    /// In the last part: how many chunks the new version has, and the digest of the list.
    pub(super) end: Option<(u64, ListDigest)>,
}

/// The first 16 bytes of the hash of a chunk list.
pub(super) type ListDigest = [u8; 16];

/// What a chunk-list delta is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkOpening {
    pub(super) workspace: WorkspaceId,
    pub(super) base: ListDigest,
}

/// What comes next in the new list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListStep {
    /// Chunks of the base, `count` of them from `first` on.
    Keep { first: u64, count: u64 },
    /// A new chunk, and how its bytes come about.
    New(ChunkRef, Vec<ByteStep>),
}

/// What comes next in a new chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ByteStep {
    /// Bytes of the old version of the file.
    Copy { offset: u64, length: u32 },
    /// Bytes.
    Literal(Vec<u8>),
}

/// Which symbols are wanted of which file's list; which file that is, the transport says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AskSymbols {
    pub(super) workspace: WorkspaceId,
    pub(super) session: SessionId,
    pub(super) first: u64,
    pub(super) count: u64,
}

/// Symbols of the chunk list of the old version, and what else a client must know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SymbolBatch {
    pub(super) session: SessionId,
    pub(super) chunk_size: u32,
    pub(super) chunk_count: u64,
    pub(super) digest: ListDigest,
    pub(super) first: u64,
    pub(super) symbols: Vec<Symbol>,
}

/// Of which chunks of the old version the client wants the sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskSums {
    pub(super) workspace: WorkspaceId,
    pub(super) session: SessionId,
    pub(super) base: ListDigest,
    pub(super) runs: Vec<ChunkRun>,
}

/// Neighbouring chunks of the old version: `count`, at least one, from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkRun {
    pub(super) first: u64,
    pub(super) count: u64,
}

/// Length of a reconciled item in bytes.
pub(super) const ITEM_LENGTH: usize = 48;

/// Items that fell together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Symbol {
    /// All of them, by exclusive or.
    pub(super) items: [u8; ITEM_LENGTH],
    /// Their check sums, by exclusive or.
    pub(super) check: u64,
    /// How many there are.
    pub(super) count: i64,
}

impl DeltaMessage {
    pub(super) fn encode(&self) -> Vec<u8> {
        let bytes = encode_message(self);
        assert!(bytes.len() <= MESSAGE_LENGTH_MAX, "parts are ended long before");
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, DeltaError> {
        let (length, max) = (bytes.len(), MESSAGE_LENGTH_MAX);
        if length > max {
            return Err(DeltaError::MessageLength { length, max });
        }
        decode_message(bytes).map_err(|source| DeltaError::Message { source })
    }

    pub(super) fn unexpected(&self, expected: &'static str) -> DeltaError {
        DeltaError::UnexpectedMessage { expected, actual: self.kind() }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Open(_) => "open",
            Self::OldSums(..) => "old sums",
            Self::Recipe(_) => "recipe",
            Self::NewSums(..) => "new sums",
            Self::Matches(..) => "matches",
            Self::Literals(_) => "literals",
            Self::Answer(..) => "answer",
            Self::Chunks(_) => "chunks",
            Self::AskSymbols(_) => "ask symbols",
            Self::Symbols(_) => "symbols",
            Self::AskSums(_) => "ask sums",
            Self::Sums(..) => "sums",
        }
    }
}

impl Message for DeltaMessage {
    const MAGIC: u8 = b'd';
    const KIND: &'static str = "delta message";
}

impl Encode for DeltaMessage {
    fn encode(&self, encoder: &mut Encoder) {
        let mut tagged = |tag: u8, parts: &[&dyn Encode]| {
            encoder.raw(&[tag]);
            for part in parts {
                part.encode(encoder);
            }
        };
        match self {
            Self::Open(opening) => tagged(0, &[opening]),
            Self::OldSums(session, sums) => tagged(1, &[session, sums]),
            Self::Recipe(recipe) => tagged(2, &[recipe]),
            Self::NewSums(opening, whole, sums) => tagged(3, &[opening, whole, sums]),
            Self::Matches(session, runs) => {
                tagged(4, &[session]);
                encode_runs(runs, encoder);
            }
            Self::Literals(literals) => tagged(5, &[literals]),
            Self::Answer(session, answer) => tagged(6, &[session, answer]),
            Self::Chunks(part) => tagged(7, &[part]),
            Self::AskSymbols(ask) => tagged(8, &[ask]),
            Self::Symbols(batch) => tagged(9, &[batch]),
            Self::AskSums(ask) => tagged(10, &[ask]),
            Self::Sums(session, sums) => {
                tagged(11, &[session]);
                encoder.byte_string(sums.as_flattened());
            }
        }
    }
}

impl Decode for DeltaMessage {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let [tag] = decoder.array()?;
        Ok(match tag {
            0 => Self::Open(Opening::decode(decoder)?),
            1 => Self::OldSums(SessionId::decode(decoder)?, SessionSums::decode(decoder)?),
            2 => Self::Recipe(Recipe::decode(decoder)?),
            3 => {
                let (opening, whole) = (Opening::decode(decoder)?, WholeFile::decode(decoder)?);
                let sums = SessionSums::decode(decoder)?;
                if sums.width != opening.strength.width() || sums.sums.layout.size() != whole.size {
                    return Err(decoder.invalid("sums", "they are not those of the session"));
                }
                Self::NewSums(opening, whole, sums)
            }
            4 => Self::Matches(SessionId::decode(decoder)?, decode_runs(decoder)?),
            5 => Self::Literals(Literals::decode(decoder)?),
            6 => Self::Answer(SessionId::decode(decoder)?, Answer::decode(decoder)?),
            7 => Self::Chunks(ChunkPart::decode(decoder)?),
            8 => Self::AskSymbols(AskSymbols::decode(decoder)?),
            9 => Self::Symbols(SymbolBatch::decode(decoder)?),
            10 => Self::AskSums(AskSums::decode(decoder)?),
            11 => {
                let session = SessionId::decode(decoder)?;
                let (sums, rest) = decoder.byte_string(MESSAGE_LENGTH_MAX)?.as_chunks();
                if !rest.is_empty() {
                    return Err(decoder.invalid("sums", "the last one is not complete"));
                }
                Self::Sums(session, sums.to_vec())
            }
            _ => return Err(decoder.invalid("delta message", format!("kind {tag}"))),
        })
    }
}

impl Encode for SessionId {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.raw(self.as_bytes());
    }
}

impl Decode for SessionId {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.array().map(Self::from_bytes)
    }
}

impl Encode for Opening {
    fn encode(&self, encoder: &mut Encoder) {
        self.workspace.encode(encoder);
        self.session.encode(encoder);
        let strength = match self.strength {
            Strength::Light => 0,
            Strength::Strong => 1,
            #[cfg(test)]
            Strength::Blind => 2,
        };
        encoder.unsigned(strength << 1 | u64::from(self.locality));
    }
}

impl Decode for Opening {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let workspace = WorkspaceId::decode(decoder)?;
        let session = SessionId::decode(decoder)?;
        let how = decoder.unsigned()?;
        let strength = match how >> 1 {
            0 => Strength::Light,
            1 => Strength::Strong,
            #[cfg(test)]
            2 => Strength::Blind,
            other => return Err(decoder.invalid("fingerprint", other)),
        };
        Ok(Self { workspace, session, strength, locality: how & 1 == 1 })
    }
}

impl Encode for WholeFile {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(self.size);
        encoder.raw(&self.hash);
    }
}

impl Decode for WholeFile {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { size: decoder.unsigned()?, hash: decoder.array()? })
    }
}

impl Encode for SessionSums {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(self.sums.layout.size());
        encoder.unsigned(u64::from(self.sums.layout.block_size().trailing_zeros()));
        encoder.unsigned(self.width as u64);
        for (weak, strong) in self.sums.weak.iter().zip(&self.sums.strong) {
            encoder.raw(&weak.to_le_bytes());
            encoder.raw(&strong.to_le_bytes()[..self.width]);
        }
    }
}

impl Decode for SessionSums {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let size = decoder.unsigned()?;
        let block_size = 1_u32 << decoder.unsigned_max(31)?;
        let Some(layout) = BlockLayout::checked(size, block_size) else {
            return Err(
                decoder.invalid("blocks", format!("{size} bytes in blocks of {block_size}"))
            );
        };
        let width = decoder.unsigned()? as usize;
        if ![8, 16].contains(&width) {
            return Err(decoder.invalid("fingerprint width", width));
        }
        // The sums must be there before room is made for them.
        let mut rest = decoder.raw(layout.count() * (4 + width))?;
        let (mut weak, mut strong) = (Vec::new(), Vec::new());
        while let Some((bytes, more)) = rest.split_first_chunk() {
            weak.push(u32::from_le_bytes(*bytes));
            let (bytes, more) = more.split_at(width);
            let mut fingerprint = [0; 16];
            fingerprint[..width].copy_from_slice(bytes);
            strong.push(u128::from_le_bytes(fingerprint));
            rest = more;
        }
        Ok(Self { width, sums: BlockSums { layout, weak, strong } })
    }
}

/// Writes a length of something that is or is not a copy.
fn encode_length(length: usize, is_copy: bool, encoder: &mut Encoder) {
    encoder.unsigned((length as u64) << 1 | u64::from(is_copy));
}

/// Reads a length, of at least 1 and at most `max`.
fn decode_length(max: u64, decoder: &mut Decoder<'_>) -> Result<(u64, bool), DecodeError> {
    let length = decoder.unsigned_max(max << 1 | 1)?;
    if length >> 1 == 0 {
        return Err(decoder.invalid("length", "zero"));
    }
    Ok((length >> 1, length & 1 == 1))
}

/// Writes a place as its distance from where it is expected.
fn encode_place(place: u64, expected: u64, encoder: &mut Encoder) {
    encoder.signed(place.wrapping_sub(expected) as i64);
}

fn decode_place(expected: u64, decoder: &mut Decoder<'_>) -> Result<u64, DecodeError> {
    let distance = decoder.signed()?;
    let place = expected.checked_add_signed(distance);
    place.ok_or_else(|| decoder.invalid("place", format!("{distance} from {expected}")))
}

fn place_after(place: u64, length: u64, decoder: &Decoder<'_>) -> Result<u64, DecodeError> {
    place.checked_add(length).ok_or_else(|| decoder.invalid("place", "beyond 64 bits"))
}

impl Encode for Recipe {
    fn encode(&self, encoder: &mut Encoder) {
        self.session.encode(encoder);
        encoder.option(self.whole.as_ref());
        encoder.unsigned(self.steps.len() as u64);
        let mut expected = 0;
        for step in &self.steps {
            match step {
                RecipeStep::Copy { block, count } => {
                    encode_length(*count as usize, true, encoder);
                    encode_place(u64::from(*block), expected, encoder);
                    expected = u64::from(*block) + u64::from(*count);
                }
                RecipeStep::Literal(bytes) => {
                    encode_length(bytes.len(), false, encoder);
                    encoder.raw(bytes);
                }
            }
        }
    }
}

impl Decode for Recipe {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (session, whole) = (SessionId::decode(decoder)?, decoder.option()?);
        let (count, mut expected) = (decoder.unsigned_max(MESSAGE_STEPS_MAX)?, 0);
        let mut steps = Vec::new();
        for _ in 0..count {
            let (length, is_copy) = decode_length(u64::from(u32::MAX), decoder)?;
            steps.push(if is_copy {
                let block = decode_place(expected, decoder)?;
                expected = place_after(block, length, decoder)?;
                let Ok(block) = u32::try_from(block) else {
                    return Err(decoder.invalid("block", block));
                };
                RecipeStep::Copy { block, count: length as u32 }
            } else {
                RecipeStep::Literal(decoder.raw(length as usize)?.to_vec())
            });
        }
        Ok(Self { session, steps, whole })
    }
}

fn encode_runs(runs: &[MatchRun], encoder: &mut Encoder) {
    encoder.unsigned(runs.len() as u64);
    // The block size is not known here, so a place is told by its distance from the one before.
    let mut before = 0;
    for run in runs {
        encode_length(run.count as usize, run.offset.is_some(), encoder);
        if let Some(offset) = run.offset {
            encode_place(offset, before, encoder);
            before = offset;
        }
    }
}

fn decode_runs(decoder: &mut Decoder<'_>) -> Result<Vec<MatchRun>, DecodeError> {
    let (count, mut before) = (decoder.unsigned_max(MESSAGE_STEPS_MAX)?, 0);
    let mut runs = Vec::new();
    for _ in 0..count {
        let (count, is_found) = decode_length(u64::from(u32::MAX), decoder)?;
        let offset = if is_found { Some(decode_place(before, decoder)?) } else { None };
        before = offset.unwrap_or(before);
        runs.push(MatchRun { count: count as u32, offset });
    }
    Ok(runs)
}

impl Encode for Literals {
    fn encode(&self, encoder: &mut Encoder) {
        self.session.encode(encoder);
        encoder.unsigned(u64::from(self.is_last));
        encoder.byte_string(&self.bytes);
    }
}

impl Decode for Literals {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let session = SessionId::decode(decoder)?;
        let is_last = decoder.unsigned_max(1)? == 1;
        Ok(Self { session, is_last, bytes: decoder.byte_string(MESSAGE_LENGTH_MAX)?.to_vec() })
    }
}

impl Encode for Answer {
    fn encode(&self, encoder: &mut Encoder) {
        match self {
            Self::Verified => encoder.unsigned(0),
            Self::Mismatch => encoder.unsigned(1),
            Self::Wanted(places) => {
                encoder.unsigned(2);
                encoder.unsigned(places.len() as u64);
                for &place in places {
                    encoder.unsigned(place);
                }
            }
        }
    }
}

impl Decode for Answer {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match decoder.unsigned_max(2)? {
            0 => Self::Verified,
            1 => Self::Mismatch,
            _ => {
                let count = decoder.unsigned_max(decoder.remaining() as u64)?;
                let places = (0..count).map(|_| decoder.unsigned());
                Self::Wanted(places.collect::<Result<_, _>>()?)
            }
        })
    }
}

impl Encode for ChunkPart {
    fn encode(&self, encoder: &mut Encoder) {
        self.session.encode(encoder);
        encoder.unsigned(u64::from(self.number));
        encoder.option(self.opening.as_ref());
        encoder.unsigned(u64::from(self.end.is_some()));
        if let Some((count, digest)) = self.end {
            encoder.unsigned(count);
            encoder.raw(&digest);
        }
        encoder.unsigned(self.steps.len() as u64);
        let (mut chunk, mut byte) = (0, 0);
        for step in &self.steps {
            match step {
                ListStep::Keep { first, count } => {
                    encode_length(*count as usize, true, encoder);
                    encode_place(*first, chunk, encoder);
                    chunk = first + count;
                }
                ListStep::New(new, steps) => {
                    encode_length(new.length as usize, false, encoder);
                    new.id.encode(encoder);
                    encode_byte_steps(steps, &mut byte, encoder);
                }
            }
        }
    }
}

fn encode_byte_steps(steps: &[ByteStep], byte: &mut u64, encoder: &mut Encoder) {
    encoder.unsigned(steps.len() as u64);
    for step in steps {
        match step {
            ByteStep::Copy { offset, length } => {
                encode_length(*length as usize, true, encoder);
                encode_place(*offset, *byte, encoder);
                *byte = offset + u64::from(*length);
            }
            ByteStep::Literal(bytes) => {
                encode_length(bytes.len(), false, encoder);
                encoder.raw(bytes);
            }
        }
    }
}

impl Decode for ChunkPart {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let session = SessionId::decode(decoder)?;
        let (number, opening) = (decoder.unsigned32()?, decoder.option()?);
        let end = match decoder.unsigned_max(1)? {
            0 => None,
            _ => Some((decoder.unsigned()?, decoder.array()?)),
        };
        let (count, mut steps) = (decoder.unsigned_max(MESSAGE_STEPS_MAX)?, Vec::new());
        let (mut chunk, mut byte, mut room) = (0, 0, MESSAGE_STEPS_MAX);
        for _ in 0..count {
            let (length, is_kept) = decode_length(u64::MAX >> 1, decoder)?;
            steps.push(if is_kept {
                let first = decode_place(chunk, decoder)?;
                chunk = place_after(first, length, decoder)?;
                ListStep::Keep { first, count: length }
            } else {
                if length > u64::from(CHUNK_SIZE_MAX) {
                    return Err(decoder.invalid("chunk length", length));
                }
                let id = Decode::decode(decoder)?;
                let new = ChunkRef { id, length: length as u32 };
                ListStep::New(new, decode_byte_steps(new.length, (&mut byte, &mut room), decoder)?)
            });
        }
        Ok(Self { session, number, opening, steps, end })
    }
}

/// Reads steps that must give a chunk of `length` bytes; `room` is how many more the message may have.
fn decode_byte_steps(
    length: u32,
    (byte, room): (&mut u64, &mut u64),
    decoder: &mut Decoder<'_>,
) -> Result<Vec<ByteStep>, DecodeError> {
    let (count, mut rest) = (decoder.unsigned_max(*room)?, u64::from(length));
    *room -= count;
    let mut steps = Vec::new();
    for _ in 0..count {
        let (length, is_copy) = decode_length(rest, decoder)?;
        rest -= length;
        steps.push(if is_copy {
            let offset = decode_place(*byte, decoder)?;
            *byte = place_after(offset, length, decoder)?;
            ByteStep::Copy { offset, length: length as u32 }
        } else {
            ByteStep::Literal(decoder.raw(length as usize)?.to_vec())
        });
    }
    if rest != 0 {
        return Err(decoder.invalid("chunk", format!("{rest} of {length} bytes are missing")));
    }
    Ok(steps)
}

impl Encode for ChunkOpening {
    fn encode(&self, encoder: &mut Encoder) {
        self.workspace.encode(encoder);
        encoder.raw(&self.base);
    }
}

impl Decode for ChunkOpening {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { workspace: WorkspaceId::decode(decoder)?, base: decoder.array()? })
    }
}

impl Encode for AskSymbols {
    fn encode(&self, encoder: &mut Encoder) {
        self.workspace.encode(encoder);
        self.session.encode(encoder);
        encoder.unsigned(self.first);
        encoder.unsigned(self.count);
    }
}

impl Decode for AskSymbols {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            workspace: WorkspaceId::decode(decoder)?,
            session: SessionId::decode(decoder)?,
            first: decoder.unsigned_max(SYMBOLS_PER_MESSAGE)?,
            count: decoder.unsigned_max(SYMBOLS_PER_MESSAGE)?,
        })
    }
}

impl Encode for AskSums {
    fn encode(&self, encoder: &mut Encoder) {
        self.workspace.encode(encoder);
        self.session.encode(encoder);
        encoder.raw(&self.base);
        encoder.unsigned(self.runs.len() as u64);
        let mut expected = 0;
        for run in &self.runs {
            encode_length(run.count as usize, false, encoder);
            encode_place(run.first, expected, encoder);
            expected = run.first + run.count;
        }
    }
}

impl Decode for AskSums {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (workspace, session) = (WorkspaceId::decode(decoder)?, SessionId::decode(decoder)?);
        let (base, count) = (decoder.array()?, decoder.unsigned_max(MESSAGE_STEPS_MAX)?);
        let (mut runs, mut expected) = (Vec::new(), 0);
        for _ in 0..count {
            let (count, flag) = decode_length(u64::from(u32::MAX), decoder)?;
            if flag {
                return Err(decoder.invalid("run of chunks", "it is marked"));
            }
            let first = decode_place(expected, decoder)?;
            expected = place_after(first, count, decoder)?;
            runs.push(ChunkRun { first, count });
        }
        Ok(Self { workspace, session, base, runs })
    }
}

impl Encode for SymbolBatch {
    fn encode(&self, encoder: &mut Encoder) {
        self.session.encode(encoder);
        encoder.unsigned(u64::from(self.chunk_size));
        encoder.unsigned(self.chunk_count);
        encoder.raw(&self.digest);
        encoder.unsigned(self.first);
        encoder.list(&self.symbols);
    }
}

impl Decode for SymbolBatch {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            session: SessionId::decode(decoder)?,
            chunk_size: decoder.unsigned32()?,
            chunk_count: decoder.unsigned()?,
            digest: decoder.array()?,
            first: decoder.unsigned_max(SYMBOLS_PER_MESSAGE)?,
            symbols: decoder.list()?,
        })
    }
}

impl Encode for Symbol {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.raw(&self.items);
        encoder.raw(&self.check.to_le_bytes());
        encoder.signed(self.count);
    }
}

impl Decode for Symbol {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (items, check) = (decoder.array()?, u64::from_le_bytes(decoder.array()?));
        Ok(Self { items, check, count: decoder.signed()? })
    }
}
