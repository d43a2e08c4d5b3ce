//! Packs the new version of a file whose version before is known: chunks that were edited are stored as deltas.
//!
//! *Invariants*: the chunks are those that cutting the new version alone gives; a chunk is made from others only if whoever knows the
//! packs says that they may serve for that.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use model::ids::ChunkId;
use model::{ChunkRef, Content};

use super::{FilePacker, PackSink, push};
use crate::delta::{BaseVersion, ByteStep, DeltaError, ListStep, RangedSource, follow};
use crate::error::ContentError;
use crate::manifest::ManifestBuilder;
use crate::pack::{DeltaStep, RECORD_BASES_MAX, RECORD_PLAIN_MAX};

/// From how many bytes on that a chunk has of another one that is worth naming as a base.
const COPIED_MIN: u64 = 128;

/// A chunk is stored as a delta where at most one in so many of its bytes is new.
const LITERAL_PART: usize = 2;

/// A failure of the comparison, or of whoever knows the packs.
enum Failure<E> {
    Comparison(DeltaError),
    Sink(E),
}

impl<E> From<DeltaError> for Failure<E> {
    fn from(error: DeltaError) -> Self {
        Self::Comparison(error)
    }
}

impl<S: PackSink> FilePacker<S> {
    /// Cuts a version of a file as its version before was cut, and stores of a chunk that was edited what is new in it, if the sink
    /// lets chunks of the version before be bases. `old` are the bytes of that version, where they are at hand; without them edits are found
    /// by its sketch, and what has neither is stored whole. Returns the content, and what to keep for the next version.
    ///
    /// # Errors
    /// Those of the sink; [`ContentError`], of the kind `Read` where a version cannot be read, or is another one meanwhile.
    pub fn pack_edited(
        &mut self,
        base: &BaseVersion,
        old: Option<&mut dyn RangedSource>,
        new: &mut dyn RangedSource,
    ) -> Result<(Content, BaseVersion), S::Error> {
        let keys = self.keys.clone();
        let kept = base.table().chunks();
        // Chunks of the base that no pack has any more, with where they are in the new version.
        let (mut lost, mut place) = (Vec::new(), 0);
        let mut hear = |step: ListStep, bytes: &[u8]| {
            match step {
                ListStep::Keep { first, count } => {
                    for chunk in &kept[first as usize..(first + count) as usize] {
                        if self.sink.claim(chunk).map_err(Failure::Sink)? {
                            lost.push((*chunk, place));
                        }
                        place += u64::from(chunk.length);
                    }
                }
                ListStep::New(chunk, steps) => {
                    self.pack_new(base, chunk, bytes, &steps).map_err(Failure::Sink)?;
                    place += u64::from(chunk.length);
                }
            }
            Ok(())
        };
        let followed = follow(&keys, base, old, new, &mut hear);
        let version = followed.map_err(|failure: Failure<S::Error>| match failure {
            Failure::Comparison(error) => read_error(error).into(),
            Failure::Sink(error) => error,
        })?;
        let mut whole = Vec::new();
        for (chunk, place) in lost {
            whole.resize(chunk.length as usize, 0);
            let read = new.read_at(place, &mut whole);
            read.map_err(|source| ContentError::Read { source })?;
            push(&mut self.writer, chunk, &whole, &mut self.sink)?;
        }
        let mut manifest = ManifestBuilder::new(self.namer.clone(), version.table().chunk_size());
        for chunk in version.table().chunks() {
            manifest.push(*chunk, &mut |list, bytes| self.store_list(list, bytes))?;
        }
        let content = manifest.finish(&mut |list, bytes| self.store_list(list, bytes))?;
        Ok((content, version))
    }

    /// Stores a chunk that the version before does not have.
    fn pack_new(
        &mut self,
        base: &BaseVersion,
        chunk: ChunkRef,
        bytes: &[u8],
        steps: &[ByteStep],
    ) -> Result<(), S::Error> {
        if !self.sink.claim(&chunk)? {
            return Ok(());
        }
        let mut may_be_base = HashMap::new();
        for (from, _) in copies(base, steps) {
            if let Entry::Vacant(unknown) = may_be_base.entry(from.id) {
                unknown.insert(self.sink.may_be_base(&from)?);
            }
        }
        match delta(base, bytes, steps, &may_be_base) {
            Some(steps) => {
                if !self.writer.has_room(bytes.len()) {
                    self.sink.emit(self.writer.finish()?)?;
                }
                self.writer.push_delta(chunk, bytes, &steps)?;
                match self.writer.is_full() {
                    true => self.sink.emit(self.writer.finish()?),
                    false => Ok(()),
                }
            }
            None => push(&mut self.writer, chunk, bytes, &mut self.sink),
        }
    }
}

/// Tells which stretches of which chunks of the base the steps copy, each with its place in that chunk in bytes and its length.
fn copies<'a>(
    base: &'a BaseVersion,
    steps: &'a [ByteStep],
) -> impl Iterator<Item = (ChunkRef, (u32, u32))> + 'a {
    let ranges = steps.iter().filter_map(|step| match step {
        ByteStep::Copy { offset, length } => Some((*offset, *length)),
        ByteStep::Literal(_) => None,
    });
    ranges.flat_map(move |(offset, length)| split(base, offset, length))
}

/// Divides a stretch of the base at the borders of chunks.
fn split(
    base: &BaseVersion,
    offset: u64,
    length: u32,
) -> impl Iterator<Item = (ChunkRef, (u32, u32))> + '_ {
    let (mut place, end) = (offset, offset + u64::from(length));
    std::iter::from_fn(move || {
        let number = base.table().chunk_at(place).filter(|_| place < end)?;
        let start = base.table().start(number);
        let until = end.min(base.table().start(number + 1));
        let piece = ((place - start) as u32, (until - place) as u32);
        place = until;
        Some((base.table().chunks()[number], piece))
    })
}

/// Returns how a chunk is made from others; nothing where it is better stored whole.
fn delta<'a>(
    base: &BaseVersion,
    bytes: &'a [u8],
    steps: &[ByteStep],
    may_be_base: &HashMap<ChunkId, bool>,
) -> Option<Vec<DeltaStep<'a>>> {
    let mut copied: HashMap<ChunkId, u64> = HashMap::new();
    for (from, (_, length)) in copies(base, steps).filter(|(from, _)| may_be_base[&from.id]) {
        *copied.entry(from.id).or_default() += u64::from(length);
    }
    copied.retain(|_, length| *length >= COPIED_MIN);
    let (mut made, mut place, mut literal) = (Vec::new(), 0, 0);
    let mut take = |length: usize, from: Option<(ChunkRef, u32)>| {
        let here = &bytes[place..place + length];
        place += length;
        match from.filter(|(base, _)| copied.contains_key(&base.id)) {
            Some((base, offset)) => {
                made.push(DeltaStep::Copy { base, offset, length: length as u32 });
            }
            None => {
                literal += length;
                made.push(DeltaStep::Literal(here));
            }
        }
    };
    for step in steps {
        match step {
            ByteStep::Literal(bytes) => take(bytes.len(), None),
            ByteStep::Copy { offset, length } => {
                for (from, (offset, length)) in split(base, *offset, *length) {
                    take(length as usize, Some((from, offset)));
                }
            }
        }
    }
    let pays = literal * LITERAL_PART <= bytes.len();
    let fits = copied.len() <= RECORD_BASES_MAX && bytes.len() <= RECORD_PLAIN_MAX;
    (pays && fits && place == bytes.len()).then_some(made)
}

/// What a comparison may fail by: it exchanges no messages.
fn read_error(error: DeltaError) -> ContentError {
    match error {
        DeltaError::Content { source } => source,
        DeltaError::Read { source, .. } => ContentError::Read { source },
        other => ContentError::Read { source: std::io::Error::other(other) },
    }
}

#[cfg(test)]
mod tests;
