//! Packs the new version of a file whose version before is known: chunks that were edited are stored as deltas.
//!
//! *Invariants*: the chunks are those that cutting the new version alone gives; a chunk is made from others only if whoever knows the
//! packs says that they may serve for that, and only from pieces of them that are proven by a second sum; a chunk is claimed when its
//! bytes are at hand and are what its id says: one that is claimed and not packed would be taken for stored by all files that follow.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use model::ids::ChunkId;
use model::{ChunkRef, Content};

use super::{FilePacker, PackSink, push, put};
use crate::delta::{
    BaseVersion, ByteStep, CheckKey, ChunkTable, DeltaError, FeatureFinder, ListStep, MadeChunk,
    RangedSource, VersionSketch, follow,
};
use crate::error::ContentError;
use crate::pack::{
    Addition, DeltaStep, RECORD_BASES_LENGTH_MAX, RECORD_PLAIN_MAX, WRITTEN_BASES_MAX,
};

/// From how many bytes on that a chunk has of another one that is worth naming as a base.
const COPIED_MIN: usize = 128;

/// Of how many chunks it is asked at most whether they may be bases; more are not named anyway, unless most of them may not be.
const ASKED_MAX: usize = 4 * WRITTEN_BASES_MAX;

/// A chunk is stored as a delta where at most one in so many of its bytes is new.
const LITERAL_PART: usize = 2;

/// At most so many parts of so many, where it has the rest of the last chunk of the version before: a file grows, and what is read of that chunk
/// is mostly what stands before it.
const GROWTH_PART: (usize, usize) = (15, 16);

/// A failure of the comparison, or of whoever knows the packs.
pub(super) enum Failure<E> {
    Comparison(DeltaError),
    Sink(E),
}

impl<E: From<ContentError>> Failure<E> {
    /// Returns it as those of the sink.
    pub(super) fn into_error(self) -> E {
        match self {
            Self::Comparison(error) => read_error(error).into(),
            Self::Sink(error) => error,
        }
    }
}

/// Hears of a chunk and its bytes, and what it has of the version before.
type HearVersion<'f, S> = &'f mut dyn FnMut(
    &mut FilePacker<S>,
    ChunkRef,
    &[u8],
    Option<&[ByteStep]>,
) -> Result<(), Failure<<S as PackSink>::Error>>;

impl<E> From<DeltaError> for Failure<E> {
    fn from(error: DeltaError) -> Self {
        Self::Comparison(error)
    }
}

impl<S: PackSink> FilePacker<S> {
    /// Cuts a version of a file as its version before was cut, and stores of a chunk that was edited what is new in it, if the sink
    /// lets chunks of the version before be bases. Returns the content, and what to keep for the next version. What
    /// [`VersionSketch::empty`] says is the version before of a first one.
    ///
    /// # Errors
    /// Those of the sink; [`ContentError`], of the kind `Read` where the version cannot be read, or is another one meanwhile. What was
    /// claimed until then is packed.
    pub fn pack_edited(
        &mut self,
        before: &VersionSketch,
        new: &mut dyn RangedSource,
    ) -> Result<(Content, VersionSketch), S::Error> {
        let version = self.pack_version(before, new)?;
        Ok((self.pack_list(version.chunk_size(), version.chunks())?, version))
    }

    /// Does the same without storing the list of chunks.
    pub(super) fn pack_version(
        &mut self,
        before: &VersionSketch,
        new: &mut dyn RangedSource,
    ) -> Result<VersionSketch, S::Error> {
        let key = CheckKey::of(&self.keys);
        let numbers: HashMap<ChunkId, usize> =
            before.chunks().iter().zip(0..).map(|(chunk, number)| (chunk.id, number)).collect();
        let (mut checks, mut features) = (Vec::new(), FeatureFinder::default());
        let version = self.follow(before, new, &mut |packer, chunk, bytes, steps| {
            if let Some(steps) = steps {
                return packer.pack_new((before, &key), chunk, bytes, steps);
            }
            features.push(bytes);
            let kept = numbers.get(&chunk.id);
            // No pack may have it any more.
            if kept.is_some() || before.chunks().is_empty() {
                packer.pack_chunk(chunk, bytes).map_err(Failure::Sink)?;
            }
            match kept.map(|number| before.checks(*number)).filter(|known| !known.is_empty()) {
                Some(known) => checks.extend_from_slice(known),
                None => checks.extend(key.checks(bytes)),
            }
            Ok(())
        })?;
        // Whoever reads a file needs its bases, and not those of others.
        self.writer.seal_deltas()?;
        Ok(VersionSketch::new(version, checks).with_features(features.finish()))
    }

    /// Returns what [`Self::pack_version`] would store, before it is compressed: chunks that are in no pack, and of those that were edited what
    /// is new in them. Packs and claims nothing.
    pub(super) fn lacking(
        &mut self,
        before: &VersionSketch,
        new: &mut dyn RangedSource,
    ) -> Result<Vec<u8>, S::Error> {
        let key = CheckKey::of(&self.keys);
        let ids: HashSet<ChunkId> = before.chunks().iter().map(|chunk| chunk.id).collect();
        let (mut lacking, mut seen) = (Vec::new(), HashSet::new());
        self.follow(before, new, &mut |packer, chunk, bytes, steps| {
            // What is another one than before comes a second time, with its steps.
            let comes_again = steps.is_none() && !ids.is_empty() && !ids.contains(&chunk.id);
            if comes_again
                || !seen.insert(chunk.id)
                || packer.sink.knows(&chunk).map_err(Failure::Sink)?
            {
                return Ok(());
            }
            let stretches = stretches_of((before, &key), bytes, steps.unwrap_or_default());
            let bases = packer.bases_of(&chunk, &stretches).map_err(Failure::Sink)?;
            match delta(bytes, &stretches, &bases, before.chunks().last()) {
                Some(steps) => lacking.extend(steps.iter().flat_map(DeltaStep::literal)),
                None => lacking.extend_from_slice(bytes),
            }
            Ok(())
        })?;
        Ok(lacking)
    }

    /// Hears of a version in order each chunk with its bytes, and then those that the version before does not have once more, with what they
    /// have of it.
    fn follow(
        &mut self,
        before: &VersionSketch,
        new: &mut dyn RangedSource,
        hear: HearVersion<'_, S>,
    ) -> Result<BaseVersion, S::Error> {
        let keys = self.keys.clone();
        let heard = RefCell::new((self, hear));
        let mut hear_chunk = |chunk: ChunkRef, bytes: &[u8]| {
            let (packer, hear) = &mut *heard.borrow_mut();
            hear(packer, chunk, bytes, None)
        };
        let mut hear_step = |step: ListStep, bytes: &[u8]| match step {
            ListStep::Keep { .. } => Ok(()),
            ListStep::New(chunk, steps) => {
                let (packer, hear) = &mut *heard.borrow_mut();
                hear(packer, chunk, bytes, Some(&steps))
            }
        };
        let followed = follow(&keys, before.base(), new, &mut hear_chunk, &mut hear_step);
        followed.map_err(Failure::into_error)
    }

    /// Stores a chunk that the version before does not have.
    fn pack_new(
        &mut self,
        (before, key): (&VersionSketch, &CheckKey),
        chunk: ChunkRef,
        bytes: &[u8],
        steps: &[ByteStep],
    ) -> Result<(), Failure<S::Error>> {
        // It was named when it was read before.
        if self.namer.verify(chunk.id, bytes).is_err() {
            return Err(Failure::Comparison(DeltaError::Unverified));
        }
        self.pack_verified((before, key), chunk, bytes, steps).map_err(Failure::Sink)
    }

    /// Stores such a chunk, whose bytes are known to be what its id says.
    pub(super) fn pack_verified(
        &mut self,
        (before, key): (&VersionSketch, &CheckKey),
        chunk: ChunkRef,
        bytes: &[u8],
        steps: &[ByteStep],
    ) -> Result<(), S::Error> {
        let last = before.chunks().last();
        self.pack_from((chunk, bytes), last, || stretches_of((before, key), bytes, steps))
    }

    /// Packs a chunk that was made from a version which is in packs, unless it is in a pack already: what is new in it, if the sink lets
    /// chunks of that version be bases.
    ///
    /// # Errors
    /// Those of the sink; [`ContentError`].
    pub fn pack_made(&mut self, made: MadeChunk<'_>) -> Result<(), S::Error> {
        let MadeChunk { chunk, bytes, steps, base } = made;
        // The bytes that were copied were those of the chunks.
        let prove = |_, _, here: &[u8]| std::iter::once(0..here.len());
        let last = base.chunks().last();
        self.pack_from((chunk, bytes), last, || stretches(base, bytes, steps, prove))
    }

    /// Packs a chunk of which it is known what other chunks have of it, the last one of the version before among them.
    fn pack_from(
        &mut self,
        (chunk, bytes): (ChunkRef, &[u8]),
        last: Option<&ChunkRef>,
        stretches: impl FnOnce() -> Vec<Stretch>,
    ) -> Result<(), S::Error> {
        if !self.claim(&chunk)? {
            return Ok(());
        }
        let stretches = stretches();
        let bases = self.bases_of(&chunk, &stretches)?;
        match delta(bytes, &stretches, &bases, last) {
            Some(steps) => {
                let more = Addition { bases: bases.len(), ..Addition::chunk(bytes.len()) };
                put(&mut self.writer, more, &mut self.sink, |writer| {
                    writer.push_delta(chunk, bytes, &steps)
                })
            }
            None => push(&mut self.writer, chunk, bytes, &mut self.sink),
        }
    }

    /// Returns the chunks that are worth naming as bases of a chunk, and may be; none where they are too many to ask.
    fn bases_of(
        &mut self,
        chunk: &ChunkRef,
        stretches: &[Stretch],
    ) -> Result<HashSet<ChunkRef>, S::Error> {
        let mut copied: HashMap<ChunkRef, usize> = HashMap::new();
        for stretch in stretches {
            // What rests as a delta only may be wanted again, and cannot be made from itself.
            if let Some((base, _)) = stretch.from.filter(|(base, _)| base.id != chunk.id) {
                *copied.entry(base).or_default() += stretch.length;
            }
        }
        copied.retain(|_, length| *length >= COPIED_MIN);
        let mut bases = HashSet::new();
        if copied.len() <= ASKED_MAX {
            for base in copied.into_keys() {
                let ancestry = self.sink.ancestry(&base)?;
                if ancestry.is_some_and(|ancestry| ancestry.lets_be_base(&base)) {
                    bases.insert(base);
                }
            }
        }
        Ok(bases)
    }
}

/// So many bytes of a chunk, and the chunk and place in bytes where the version before has them.
struct Stretch {
    length: usize,
    from: Option<(ChunkRef, u32)>,
}

/// A chunk is divided into one stretch for so many of its bytes, and some more, at most: beyond that a delta is not worth its steps, and whoever makes
/// up a version of chunks of one byte each decides how many there are.
const BYTES_OF_STRETCH_MIN: usize = 16;
const STRETCHES_FREE: usize = 1024;

/// Divides the bytes of a chunk into what the version before is proven to have and what not.
fn stretches_of(
    (before, key): (&VersionSketch, &CheckKey),
    bytes: &[u8],
    steps: &[ByteStep],
) -> Vec<Stretch> {
    let prove = |number, from, here: &[u8]| before.proven(key, number, from, here);
    stretches(before.base().table(), bytes, steps, prove)
}

/// Divides the bytes of a chunk into what the version before has, in which a part of a chunk is proven stretch by stretch, and what not. There are
/// none of a chunk that is too long for a delta, nor where there would be too many.
fn stretches<I: IntoIterator<Item = Range<usize>>>(
    table: &ChunkTable,
    bytes: &[u8],
    steps: &[ByteStep],
    mut prove: impl FnMut(usize, u32, &[u8]) -> I,
) -> Vec<Stretch> {
    if bytes.len() > RECORD_PLAIN_MAX {
        return Vec::new();
    }
    let most = STRETCHES_FREE + bytes.len() / BYTES_OF_STRETCH_MIN;
    let mut all: Vec<Stretch> = Vec::new();
    let add = |all: &mut Vec<Stretch>, length, from| {
        if length > 0 {
            all.push(Stretch { length, from });
        }
    };
    let mut place = 0;
    for step in steps {
        let (mut offset, end) = match step {
            ByteStep::Literal(bytes) => {
                add(&mut all, bytes.len(), None);
                place += bytes.len();
                continue;
            }
            ByteStep::Copy { offset, length } => (*offset, offset + u64::from(*length)),
        };
        while let Some(number) = table.chunk_at(offset).filter(|_| offset < end) {
            let until = end.min(table.start(number + 1));
            let length = (until - offset) as usize;
            let (from, here) = ((offset - table.start(number)) as u32, &bytes[place..][..length]);
            let mut done = 0;
            for proven in prove(number, from, here) {
                add(&mut all, proven.start - done, None);
                let base = (table.chunks()[number], from + proven.start as u32);
                add(&mut all, proven.len(), Some(base));
                done = proven.end;
            }
            add(&mut all, length - done, None);
            if all.len() > most {
                return Vec::new();
            }
            place += length;
            offset = until;
        }
    }
    all
}

/// Returns how a chunk is made from others, of which `last` ends the version before; nothing where it is better stored whole.
fn delta<'a>(
    bytes: &'a [u8],
    stretches: &[Stretch],
    bases: &HashSet<ChunkRef>,
    last: Option<&ChunkRef>,
) -> Option<Vec<DeltaStep<'a>>> {
    let (mut steps, mut place, mut literal) = (Vec::new(), 0, 0);
    for &Stretch { length, from } in stretches {
        let here = &bytes[place..place + length];
        place += length;
        match from.filter(|(base, _)| bases.contains(base)) {
            Some((base, offset)) => {
                steps.push(DeltaStep::Copy { base, offset, length: length as u32 });
            }
            None => {
                literal += length;
                steps.push(DeltaStep::Literal(here));
            }
        }
    }
    let is_growth = !bases.is_empty() && bases.iter().all(|base| Some(base) == last);
    let (new, all) = if is_growth { GROWTH_PART } else { (1, LITERAL_PART) };
    let pays = literal * all <= bytes.len() * new;
    let length: u64 = bases.iter().map(|base| u64::from(base.length)).sum();
    let fits = bases.len() <= WRITTEN_BASES_MAX
        && length <= RECORD_BASES_LENGTH_MAX
        && bytes.len() <= RECORD_PLAIN_MAX;
    (pays && fits && place == bytes.len()).then_some(steps)
}

/// What a comparison may fail by: it exchanges no messages.
pub(super) fn read_error(error: DeltaError) -> ContentError {
    match error {
        DeltaError::Content { source } => source,
        DeltaError::Read { source, .. } => ContentError::Read { source },
        other => ContentError::Read { source: std::io::Error::other(other) },
    }
}

#[cfg(test)]
pub(super) mod tests;
