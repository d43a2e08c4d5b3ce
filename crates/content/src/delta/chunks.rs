//! Our own method at the client: says how the new chunk list follows from the one that the client knows, and sends of a new
//! chunk only the bytes that the old version does not have.
//!
//! One round trip. The client cuts and names the new version as for any upload, compares the ids with the base, and narrows
//! each changed stretch down by the sketch of the base, or by the old bytes where it has them. The server checks every new
//! chunk against its id; a chunk that comes out wrong is asked for in full, which costs another round trip and nothing else.

mod following;

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;

use model::WorkspaceId;
use model::content::ChunkRef;

use super::base::{BaseBuilder, BaseVersion, ChunkTable, Places};
use super::error::DeltaError;
use super::message::{
    Answer, ByteStep, ChunkOpening, ChunkPart, DeltaMessage, ListStep, MESSAGE_STEPS_MAX,
    PART_LENGTH,
};
use super::narrow::{Piece, Segment, lengthen, narrow, take_steps};
use super::plain::{Plain, SessionId};
use super::sketch::{SketchKey, piece_lengths, sum_value};
use super::source::{RangedSource, read_at};
use super::tuning::{check_session, check_workspace};
use crate::chunker::{ChunkBuffer, ChunkerKind, chunk_reader};
use crate::error::ContentError;
use crate::naming::{ChunkNamer, WorkspaceContentKeys};
use crate::pack::PackWriter;

pub(crate) use following::Following;

/// How many new bytes are narrowed down at a time; also how many old ones they are compared with, twice as many.
const STRETCH_LENGTH: u64 = 4 * 1024 * 1024;

/// A part of a delta. It has bytes of the file in it, so it leaves only to the server of a plain workspace, or in a pack,
/// which a sealed workspace seals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaPart {
    workspace: WorkspaceId,
    literal_length: usize,
    bytes: Vec<u8>,
}

impl DeltaPart {
    /// Returns how many bytes of it are bytes of the file.
    pub fn literal_length(&self) -> usize {
        self.literal_length
    }

    /// Returns it as a message to the server of a plain workspace.
    ///
    /// # Errors
    /// [`DeltaError::WrongWorkspace`] for a witness of another workspace.
    pub fn into_message(self, plain: Plain) -> Result<Vec<u8>, DeltaError> {
        check_workspace(plain.workspace(), self.workspace)?;
        Ok(self.bytes)
    }

    /// Returns what a member reads from the pack.
    #[cfg(test)]
    pub(super) fn bytes_for_members(self) -> Vec<u8> {
        self.bytes
    }

    /// Puts it into a pack, as a chunk for those who can read the workspace; returns the reference of that chunk.
    ///
    /// # Errors
    /// Those of [`PackWriter::push`].
    pub fn into_pack(
        self,
        namer: &ChunkNamer,
        writer: &mut PackWriter,
    ) -> Result<ChunkRef, ContentError> {
        let chunk = ChunkRef { id: namer.name(&self.bytes), length: self.bytes.len() as u32 };
        writer.push(chunk, &self.bytes)?;
        Ok(chunk)
    }
}

/// The side that has the new version.
pub struct ChunkClient {
    keys: WorkspaceContentKeys,
    sketch_key: SketchKey,
    workspace: WorkspaceId,
    session: SessionId,
    /// How many parts were sent.
    parts: u32,
    version: BaseVersion,
    /// Whether the version was cut before.
    is_surveyed: bool,
    was_asked: bool,
}

impl ChunkClient {
    /// Prepares a session.
    pub fn new(keys: &WorkspaceContentKeys, workspace: WorkspaceId, session: SessionId) -> Self {
        let (sketch_key, version) = (SketchKey::of(keys), BaseVersion::default());
        let keys = keys.clone();
        let (is_surveyed, was_asked) = (false, false);
        Self { keys, sketch_key, workspace, session, parts: 0, version, is_surveyed, was_asked }
    }

    /// Takes what a [`Reconciler`](super::Reconciler) has found out about the new version, so that it is not cut twice.
    #[must_use]
    pub fn with_survey(mut self, survey: BaseVersion) -> Self {
        (self.version, self.is_surveyed) = (survey, true);
        self
    }

    /// Cuts and names a version that is not known as a change of another; returns what a client keeps of it.
    ///
    /// # Errors
    /// [`DeltaError::Read`]; [`DeltaError::Content`] where it has too many chunks or `chunk_size` is none.
    pub fn survey(
        keys: &WorkspaceContentKeys,
        chunk_size: u32,
        source: &mut dyn RangedSource,
    ) -> Result<BaseVersion, DeltaError> {
        let sketch_key = SketchKey::of(keys);
        let builder = BaseBuilder::new(&sketch_key, source.size(), None);
        cut(keys, chunk_size, source, builder, &mut |_, _| Ok(()))
    }

    /// Compares the new version with the base, and gives the parts of the delta to `send`. `old` are the bytes of the base,
    /// where the client has them.
    ///
    /// # Errors
    /// [`DeltaError::Read`]; [`DeltaError::Content`] where the new version has too many chunks; whatever `send` returns.
    pub fn send_delta<E: From<DeltaError>>(
        &mut self,
        base: &BaseVersion,
        old: Option<&mut dyn RangedSource>,
        new: &mut dyn RangedSource,
        send: impl FnMut(DeltaPart) -> Result<(), E>,
    ) -> Result<(), E> {
        let places = Places::of(base.table());
        let surveyed = self.version.table();
        let is_fresh =
            surveyed.size() == new.size() && surveyed.chunk_size() == base.table().chunk_size();
        if !(self.is_surveyed && is_fresh) {
            let builder = BaseBuilder::new(&self.sketch_key, new.size(), Some((base, &places)));
            let chunk_size = base.table().chunk_size();
            self.version =
                cut::<DeltaError>(&self.keys, chunk_size, new, builder, &mut |_, _| Ok(()))?;
        }
        let table = self.version.table();
        let opening = ChunkOpening { workspace: self.workspace, base: base.table().digest() };
        let mut writer = PartWriter::new(self.workspace, self.session, Some(opening), send);
        let mut step = |step, _: &[u8]| writer.step(step);
        compare((&self.sketch_key, base, &places), old, table, new, &mut step)?;
        self.parts = writer.finish(table)?;
        Ok(())
    }

    /// Takes the answer to the delta; tells whether the new version is there. Where it is not, chunks were asked for in full,
    /// whose parts go to `send`, and another answer follows.
    ///
    /// # Errors
    /// [`DeltaError::Unverified`] where chunks are asked for again, or the file has changed meanwhile;
    /// [`DeltaError::NoSuch`]; [`DeltaError::Read`]; those of messages; whatever `send` returns.
    pub fn take_answer<E: From<DeltaError>>(
        &mut self,
        message: &[u8],
        new: &mut dyn RangedSource,
        send: impl FnMut(DeltaPart) -> Result<(), E>,
    ) -> Result<bool, E> {
        let message = DeltaMessage::decode(message)?;
        let DeltaMessage::Answer(session, answer) = message else {
            return Err(message.unexpected("answer").into());
        };
        check_session(self.session, session)?;
        let wanted = match answer {
            Answer::Verified => return Ok(true),
            Answer::Wanted(places) if !self.was_asked => places,
            _ => return Err(DeltaError::Unverified.into()),
        };
        self.was_asked = true;
        let table = self.version.table();
        let mut writer = PartWriter::new(self.workspace, self.session, None, send);
        writer.part.number = self.parts;
        let (mut bytes, mut least) = (Vec::new(), 0);
        for index in wanted {
            let count = table.chunks().len() as u64;
            if index < least || index >= count {
                return Err(DeltaError::NoSuch { what: "chunk", index, count }.into());
            }
            least = index + 1;
            let chunk = table.chunks()[index as usize];
            bytes.resize(chunk.length as usize, 0);
            read_at(new, table.start(index as usize), &mut bytes)?;
            writer.step(ListStep::New(chunk, vec![ByteStep::Literal(bytes.clone())]))?;
        }
        self.parts = writer.finish(table)?;
        Ok(false)
    }

    /// Returns what the client keeps of the new version, for the next delta. It is known after [`Self::send_delta`].
    pub fn into_base(self) -> BaseVersion {
        self.version
    }
}

/// Hears in order how a version follows from another, of each new chunk with its bytes.
type HearStep<'f, E> = &'f mut dyn FnMut(ListStep, &[u8]) -> Result<(), E>;

/// Tells how the version `new`, whose chunks are those of `table`, follows from its base.
fn compare<E: From<DeltaError>>(
    (key, base, places): (&SketchKey, &BaseVersion, &Places),
    mut old: Option<&mut dyn RangedSource>,
    table: &ChunkTable,
    new: &mut dyn RangedSource,
    hear: HearStep<'_, E>,
) -> Result<(), E> {
    for section in sections(base.table(), places, table.chunks()) {
        match section {
            Section::Keep { first, count } => {
                hear(ListStep::Keep { first: first as u64, count: count as u64 }, &[])?;
            }
            Section::Gap(gap) => {
                let (old, next) = (old.as_deref_mut(), gap.old.start);
                Narrower { key, base, old, gap, next }.run(table, new, hear)?;
            }
        }
    }
    Ok(())
}

/// Hears each chunk of a version with its bytes, in order.
type HearChunk<'f, E> = &'f mut dyn FnMut(ChunkRef, &[u8]) -> Result<(), E>;

/// Cuts and names a version, and tells how it follows from its base, unless that is empty; returns what is to be kept of it.
pub(crate) fn follow<E: From<DeltaError>>(
    keys: &WorkspaceContentKeys,
    base: &BaseVersion,
    new: &mut dyn RangedSource,
    hear_chunk: HearChunk<'_, E>,
    hear_step: HearStep<'_, E>,
) -> Result<BaseVersion, E> {
    let (key, places) = (SketchKey::of(keys), Places::of(base.table()));
    let builder = BaseBuilder::new(&key, new.size(), Some((base, &places)));
    let version = cut(keys, base.table().chunk_size(), new, builder, hear_chunk)?;
    if base.table().chunks().is_empty() {
        return Ok(version);
    }
    compare((&key, base, &places), None, version.table(), new, hear_step)?;
    Ok(version)
}

/// Cuts and names a version from front to back.
fn cut<E: From<DeltaError>>(
    keys: &WorkspaceContentKeys,
    chunk_size: u32,
    source: &mut dyn RangedSource,
    mut builder: BaseBuilder<'_>,
    hear: HearChunk<'_, E>,
) -> Result<BaseVersion, E> {
    let from_content = |error: ContentError| E::from(DeltaError::from(error));
    let chunker = keys.chunker(ChunkerKind::Minimum, chunk_size).map_err(from_content)?;
    let namer = keys.namer();
    let mut reader = SourceReader { source, offset: 0 };
    let mut buffer = ChunkBuffer::default();
    chunk_reader::<Failure<E>>(&mut reader, &*chunker, &mut buffer, |bytes| {
        let chunk = ChunkRef { id: namer.name(bytes), length: bytes.len() as u32 };
        builder.push(chunk, bytes).map_err(Failure::Content)?;
        hear(chunk, bytes).map_err(Failure::Heard)
    })
    .map_err(|failure| match failure {
        Failure::Content(error) => from_content(error),
        Failure::Heard(error) => error,
    })?;
    builder.finish(chunk_size).map_err(from_content)
}

/// A failure of cutting, or of who hears.
enum Failure<E> {
    Content(ContentError),
    Heard(E),
}

impl<E> From<ContentError> for Failure<E> {
    fn from(error: ContentError) -> Self {
        Self::Content(error)
    }
}

/// Reads a source from front to back.
struct SourceReader<'s> {
    source: &'s mut dyn RangedSource,
    offset: u64,
}

impl Read for SourceReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.source.size().saturating_sub(self.offset);
        let length = usize::try_from(rest).map_or(buffer.len(), |rest| rest.min(buffer.len()));
        self.source.read_at(self.offset, &mut buffer[..length])?;
        self.offset += length as u64;
        Ok(length)
    }
}

/// Neighbouring chunks of the new version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Section {
    /// The base has them, too.
    Keep { first: usize, count: usize },
    /// It has not.
    Gap(Gap),
}

/// A stretch of new chunks, and the stretch of the base that they most likely stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gap {
    new: Range<usize>,
    pub(super) old: Range<usize>,
    /// Whether what follows the one follows the other.
    ends_alike: bool,
}

/// Compares the chunks of two versions, in order: the chunk behind the last one that was kept comes first.
pub(super) fn sections(base: &ChunkTable, places: &Places, new: &[ChunkRef]) -> Vec<Section> {
    let mut sections = Vec::new();
    let (mut next, mut gap_start) = (0, None);
    let close = |sections: &mut Vec<Section>, start: Option<usize>, end, old: Range<usize>, at| {
        if let Some(start) = start {
            let ends_alike = old.end == at;
            sections.push(Section::Gap(Gap { new: start..end, old, ends_alike }));
        }
    };
    for (place, chunk) in new.iter().enumerate() {
        let found = places.find(chunk, next).filter(|&found| base.chunks()[found] == *chunk);
        let Some(found) = found else {
            gap_start.get_or_insert(place);
            continue;
        };
        // A chunk that was moved to the front says nothing of where the gap before it ends.
        let old = if found >= next { next..found } else { next..base.chunks().len() };
        close(&mut sections, gap_start.take(), place, old, found);
        match sections.last_mut() {
            Some(Section::Keep { first, count }) if *first + *count == found => *count += 1,
            _ => sections.push(Section::Keep { first: found, count: 1 }),
        }
        next = found + 1;
    }
    let end = base.chunks().len();
    close(&mut sections, gap_start, new.len(), next..end, end);
    sections
}

/// Narrows one gap down, a stretch of bounded length at a time.
struct Narrower<'a, 'o, 's> {
    key: &'a SketchKey,
    base: &'a BaseVersion,
    old: Option<&'o mut (dyn RangedSource + 's)>,
    gap: Gap,
    /// The chunk of the base with which the next stretch is compared first.
    next: usize,
}

impl Narrower<'_, '_, '_> {
    fn run<E: From<DeltaError>>(
        &mut self,
        table: &ChunkTable,
        new: &mut dyn RangedSource,
        hear: HearStep<'_, E>,
    ) -> Result<(), E> {
        let mut first = self.gap.new.start;
        while first < self.gap.new.end {
            let start = table.start(first);
            let mut end = first + 1;
            while end < self.gap.new.end && table.start(end + 1) - start <= STRETCH_LENGTH {
                end += 1;
            }
            let mut bytes = vec![0; (table.start(end) - start) as usize];
            read_at(new, start, &mut bytes)?;
            let segments = self.segments(&bytes, end == self.gap.new.end)?;
            for (chunk, bytes, steps) in steps_of(&table.chunks()[first..end], &bytes, segments) {
                hear(ListStep::New(chunk, steps), bytes)?;
            }
            first = end;
        }
        Ok(())
    }

    /// Divides one stretch into what the base has and what not.
    fn segments(&mut self, bytes: &[u8], is_last: bool) -> Result<Vec<Segment>, DeltaError> {
        let table = self.base.table();
        let begin = table.start(self.next);
        let mut end = self.next;
        while end < self.gap.old.end && table.start(end + 1) - begin <= 2 * STRETCH_LENGTH {
            end += 1;
        }
        let ends_alike = is_last && self.gap.ends_alike && end == self.gap.old.end;
        let pieces = self.pieces(self.next..end)?;
        let mut segments = narrow(self.key, &pieces, bytes, ends_alike);
        if let Some(old) = self.old.as_deref_mut() {
            let ends = (begin, ends_alike.then(|| table.start(end)));
            segments = lengthen(&segments, bytes, old, ends)?;
        }
        // The next stretch is behind what was found, or about as far on as this one is long.
        let found = segments.iter().rev().find_map(|segment| segment.offset);
        let behind = found.unwrap_or(begin + bytes.len() as u64);
        while self.next < self.gap.old.end && table.start(self.next + 1) <= behind {
            self.next += 1;
        }
        Ok(segments)
    }

    /// Returns the pieces of some chunks of the base: by its sketch, or else by its bytes.
    fn pieces(&mut self, chunks: Range<usize>) -> Result<Vec<Piece>, DeltaError> {
        let (mut pieces, mut bytes) = (Vec::new(), Vec::new());
        for chunk in chunks {
            let length = self.base.table().chunks()[chunk].length;
            let mut offset = self.base.table().start(chunk);
            if let Some(sums) = self.base.sums(chunk) {
                for (length, sum) in piece_lengths(length).zip(sums) {
                    pieces.push(Piece { offset, length, sum: sum_value(sum) });
                    offset += length as u64;
                }
            } else if let Some(old) = self.old.as_deref_mut() {
                bytes.resize(length as usize, 0);
                read_at(old, offset, &mut bytes)?;
                for piece in bytes.chunks(super::sketch::PIECE_LENGTH) {
                    let (length, sum) = (piece.len(), self.key.sum(piece).value());
                    pieces.push(Piece { offset, length, sum });
                    offset += length as u64;
                }
            }
        }
        Ok(pieces)
    }
}

/// Gives each chunk of a stretch with its bytes, and what the base has of it, as the segments of the stretch say.
fn steps_of<'s>(
    chunks: &'s [ChunkRef],
    stretch: &'s [u8],
    segments: Vec<Segment>,
) -> impl Iterator<Item = (ChunkRef, &'s [u8], Vec<ByteStep>)> {
    let (mut segments, mut rest) = (VecDeque::from(segments), stretch);
    chunks.iter().map(move |chunk| {
        let (bytes, behind) = rest.split_at(chunk.length as usize);
        rest = behind;
        (*chunk, bytes, take_steps(&mut segments, bytes))
    })
}

/// Collects a delta and sends it in parts.
struct PartWriter<F> {
    workspace: WorkspaceId,
    part: ChunkPart,
    /// About how many bytes the part has, and how many of them are literal.
    length: usize,
    literal_length: usize,
    /// How many steps it has in its chunks.
    byte_steps: usize,
    send: F,
}

impl<F> PartWriter<F> {
    fn new(
        workspace: WorkspaceId,
        session: SessionId,
        opening: Option<ChunkOpening>,
        send: F,
    ) -> Self {
        let part = ChunkPart { session, number: 0, opening, steps: Vec::new(), end: None };
        Self { workspace, part, length: 0, literal_length: 0, byte_steps: 0, send }
    }

    fn step<E: From<DeltaError>>(&mut self, step: ListStep) -> Result<(), E>
    where
        F: FnMut(DeltaPart) -> Result<(), E>,
    {
        let (mut literal, mut steps) = (0, 0);
        if let ListStep::New(_, bytes) = &step {
            steps = bytes.len();
            literal = bytes.iter().map(literal_length).sum();
        }
        // A part has room for one chunk of any length beyond the length at which it ends.
        let is_full = self.length + literal + steps >= PART_LENGTH
            || (self.byte_steps + steps) as u64 > MESSAGE_STEPS_MAX;
        if is_full && !self.part.steps.is_empty() {
            self.flush()?;
        }
        self.length += literal + steps + 1;
        self.literal_length += literal;
        self.byte_steps += steps;
        self.part.steps.push(step);
        if self.part.steps.len() as u64 == MESSAGE_STEPS_MAX { self.flush() } else { Ok(()) }
    }

    fn flush<E: From<DeltaError>>(&mut self) -> Result<(), E>
    where
        F: FnMut(DeltaPart) -> Result<(), E>,
    {
        let (session, number) = (self.part.session, self.part.number + 1);
        let next = ChunkPart { session, number, opening: None, steps: Vec::new(), end: None };
        let part = std::mem::replace(&mut self.part, next);
        let literal_length = std::mem::take(&mut self.literal_length);
        (self.length, self.byte_steps) = (0, 0);
        let bytes = DeltaMessage::Chunks(part).encode();
        (self.send)(DeltaPart { workspace: self.workspace, literal_length, bytes })
    }

    /// Sends the last part; returns the number of the next one.
    fn finish<E: From<DeltaError>>(mut self, table: &ChunkTable) -> Result<u32, E>
    where
        F: FnMut(DeltaPart) -> Result<(), E>,
    {
        self.part.end = Some((table.chunks().len() as u64, table.digest()));
        self.flush()?;
        Ok(self.part.number)
    }
}

fn literal_length(step: &ByteStep) -> usize {
    match step {
        ByteStep::Copy { .. } => 0,
        ByteStep::Literal(bytes) => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ChunkId;

    fn table(ids: &str) -> ChunkTable {
        let chunk = |id| ChunkRef { id: ChunkId::from_bytes([id; 32]), length: 10 };
        ChunkTable::new(1024, ids.bytes().map(chunk).collect()).unwrap()
    }

    fn compared(old: &str, new: &str) -> Vec<Section> {
        let old = table(old);
        sections(&old, &Places::of(&old), table(new).chunks())
    }

    fn gap(new: Range<usize>, old: Range<usize>, ends_alike: bool) -> Section {
        Section::Gap(Gap { new, old, ends_alike })
    }

    #[test]
    fn gap_lies_between_the_neighbours_that_were_kept() {
        let keep = |first, count| Section::Keep { first, count };
        assert_eq!(compared("abcde", "abcde"), [keep(0, 5)]);
        assert_eq!(compared("abcde", "abXde"), [keep(0, 2), gap(2..3, 2..3, true), keep(3, 2)]);
        assert_eq!(compared("abcde", "abde"), [keep(0, 2), keep(3, 2)]);
        assert_eq!(compared("abcde", "abcdX"), [keep(0, 4), gap(4..5, 4..5, true)]);
        assert_eq!(compared("abcde", "Xbcde"), [gap(0..1, 0..1, true), keep(1, 4)]);
        assert_eq!(compared("ab", "aXYb"), [keep(0, 1), gap(1..3, 1..1, true), keep(1, 1)]);
        assert_eq!(compared("", "XY"), [gap(0..2, 0..0, true)]);
        assert_eq!(compared("abc", ""), []);
    }

    /// Where the old bytes are at hand, a step may be as short as a few bytes.
    #[test]
    fn part_has_no_more_steps_than_its_reader_takes() {
        let length = MESSAGE_STEPS_MAX as u32 / 2 + 1;
        let steps = (0..u64::from(length)).map(|offset| ByteStep::Copy { offset, length: 1 });
        let chunk = ChunkRef { id: ChunkId::from_bytes([1; 32]), length };
        let step = ListStep::New(chunk, steps.collect());
        let mut counts = Vec::new();
        let send = |part: DeltaPart| {
            let DeltaMessage::Chunks(part) = DeltaMessage::decode(&part.bytes)? else {
                panic!("it is a part");
            };
            counts.push(part.steps.len());
            Ok::<_, DeltaError>(())
        };
        let workspace = WorkspaceId::from_bytes([1; 16]);
        let session = SessionId::from_bytes([1; 16]);
        let mut writer = PartWriter::new(workspace, session, None, send);
        for _ in 0..3 {
            writer.step(step.clone()).unwrap();
        }
        writer.finish(&table("abc")).unwrap();
        assert_eq!(counts, [1, 1, 1]);
    }

    #[test]
    fn moved_and_repeated_chunks_are_kept() {
        let keep = |first, count| Section::Keep { first, count };
        assert_eq!(compared("abcd", "cdab"), [keep(2, 2), keep(0, 2)]);
        assert_eq!(compared("abab", "ababab"), [keep(0, 4), keep(0, 2)]);
        assert_eq!(compared("abcd", "cXa"), [keep(2, 1), gap(1..2, 3..4, false), keep(0, 1)]);
    }
}
