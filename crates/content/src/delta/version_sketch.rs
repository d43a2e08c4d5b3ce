//! What a device keeps of a version of a file, so that the next version can be packed as a change of it.
//!
//! *Participants*: a device or a page alone; a sketch is as secret as the file, and leaves them never, or sealed. *Goals*: about 5.5 % of the size of the file.
//! *Invariants*: a stretch counts as being in the version only if two sums at independent secret points say so for every piece of it: what
//! is packed as made from others can be opened by nobody if it is wrong, and by then the bytes that it was made for may be gone.

use std::ops::Range;

use model::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message};
use model::codec::{decode_message, encode_message};
use model::content::ChunkRef;

use super::base::{BaseVersion, ChunkTable};
use super::chunks::follow;
use super::error::DeltaError;
use super::features::{FEATURES_MAX, FeatureFinder, Features};
use super::sketch::{PieceSum, SketchKey, piece_count, piece_lengths, pieces};
use super::source::RangedSource;
use crate::error::ContentError;
use crate::naming::WorkspaceContentKeys;

/// What the second secret point is for.
const CHECK: &str = "syncline delta v1: check of a sketch";

/// The second sum of a piece: one of 61 bits.
pub(crate) type Check = u64;

/// Sums pieces up at the second point.
pub(crate) struct CheckKey(SketchKey);

impl CheckKey {
    pub(crate) fn of(keys: &WorkspaceContentKeys) -> Self {
        Self(SketchKey::derive(CHECK, keys))
    }

    /// Returns the checks of a chunk.
    pub(crate) fn checks<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = Check> + 'a {
        pieces(bytes).map(|piece| self.0.sum(piece).whole())
    }
}

/// Makes the sketch of a version whose chunks come one after the other.
pub struct SketchBuilder {
    find: SketchKey,
    check: CheckKey,
    chunks: Vec<ChunkRef>,
    sums: Vec<PieceSum>,
    checks: Vec<Check>,
    features: FeatureFinder,
}

impl SketchBuilder {
    /// Begins with no chunk.
    pub fn new(keys: &WorkspaceContentKeys) -> Self {
        let (find, check) = (SketchKey::of(keys), CheckKey::of(keys));
        let features = FeatureFinder::default();
        Self { find, check, chunks: Vec::new(), sums: Vec::new(), checks: Vec::new(), features }
    }

    /// Adds a chunk, whose bytes are what its id says.
    pub fn push(&mut self, chunk: ChunkRef, bytes: &[u8]) {
        self.chunks.push(chunk);
        self.sums.extend(self.find.piece_sums(bytes));
        self.checks.extend(self.check.checks(bytes));
        self.features.push(bytes);
    }

    /// Returns the key of the second sums.
    pub(crate) fn check_key(&self) -> &CheckKey {
        &self.check
    }

    /// Adds a chunk of which a version has the sums already, as its chunk of that number.
    pub(crate) fn push_known(&mut self, (before, number): (&VersionSketch, usize), bytes: &[u8]) {
        let (chunk, checks) = (before.chunks()[number], before.checks(number));
        let Some(sums) = before.base.sums(number).filter(|_| !checks.is_empty()) else {
            return self.push(chunk, bytes);
        };
        self.chunks.push(chunk);
        self.sums.extend_from_slice(sums);
        self.checks.extend_from_slice(checks);
        self.features.push(bytes);
    }

    /// Returns the sketch of a version that was cut with this average chunk size in bytes.
    ///
    /// # Errors
    /// [`ContentError::TooManyChunks`].
    pub fn finish(self, chunk_size: u32) -> Result<VersionSketch, ContentError> {
        let table = ChunkTable::new(chunk_size, self.chunks)?;
        let base = BaseVersion::sketched(table, self.sums);
        Ok(VersionSketch::new(base, self.checks).with_features(self.features.finish()))
    }
}

/// The chunks of a version, two sums of each of their pieces, and features by which files are found that are like it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionSketch {
    base: BaseVersion,
    checks: Vec<Check>,
    /// Where the checks of each chunk begin.
    firsts: Vec<usize>,
    features: Features,
}

impl VersionSketch {
    /// Returns that of no version: the first one is a change of it, cut with this average chunk size in bytes.
    pub fn empty(chunk_size: u32) -> Self {
        let table = ChunkTable::new(chunk_size, Vec::new()).expect("no chunks are not too many");
        Self::new(BaseVersion::without_sketch(table), Vec::new())
    }

    /// Cuts and names a version that is not known as a change of another.
    ///
    /// # Errors
    /// As [`ChunkClient::survey`](super::ChunkClient::survey).
    pub fn survey(
        keys: &WorkspaceContentKeys,
        chunk_size: u32,
        source: &mut dyn RangedSource,
    ) -> Result<Self, DeltaError> {
        let (key, mut checks) = (CheckKey::of(keys), Vec::new());
        let mut features = FeatureFinder::default();
        let mut hear_chunk = |_, bytes: &[u8]| {
            checks.extend(key.checks(bytes));
            features.push(bytes);
            Ok::<(), DeltaError>(())
        };
        let none = Self::empty(chunk_size);
        let base = follow(keys, none.base(), source, &mut hear_chunk, &mut |_, _| Ok(()))?;
        Ok(Self::new(base, checks).with_features(features.finish()))
    }

    /// Takes the two sums of all pieces; the checks of a version that has no sketch are needless.
    pub(crate) fn new(base: BaseVersion, mut checks: Vec<Check>) -> Self {
        if !base.is_sketched() {
            checks = Vec::new();
        }
        let mut first = 0;
        let firsts = base.table().chunks().iter().map(|chunk| {
            let here = first;
            first += piece_count(chunk.length);
            here
        });
        let firsts = firsts.collect();
        assert!(checks.is_empty() || checks.len() == first, "there is a check for each piece");
        Self { base, checks, firsts, features: Features::default() }
    }

    /// Takes the features of all of it.
    pub(crate) fn with_features(self, features: Features) -> Self {
        Self { features, ..self }
    }

    /// Returns the features of the version; one that was kept by a program of the days before has none.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Returns the chunks, with the sums by which pieces are found.
    pub fn base(&self) -> &BaseVersion {
        &self.base
    }

    /// Returns the average chunk size in bytes with which the version was cut.
    pub fn chunk_size(&self) -> u32 {
        self.base.table().chunk_size()
    }

    /// Returns the chunks.
    pub fn chunks(&self) -> &[ChunkRef] {
        self.base.table().chunks()
    }

    /// Returns the checks of a chunk; none where the version has no sketch.
    pub(crate) fn checks(&self, chunk: usize) -> &[Check] {
        let count = piece_count(self.chunks()[chunk].length);
        self.checks.get(self.firsts[chunk]..self.firsts[chunk] + count).unwrap_or_default()
    }

    /// Tells which stretches of `here` are what chunk number `chunk` has from `offset` bytes on: whole pieces of it, each with the sum that
    /// it should have.
    pub(crate) fn proven(
        &self,
        key: &CheckKey,
        chunk: usize,
        offset: u32,
        here: &[u8],
    ) -> Vec<Range<usize>> {
        let (from, until) = (offset as usize, offset as usize + here.len());
        let (mut proven, mut start): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
        for (length, check) in piece_lengths(self.chunks()[chunk].length).zip(self.checks(chunk)) {
            let end = start + length;
            if start >= from && end <= until {
                let piece = start - from..end - from;
                if key.0.sum(&here[piece.clone()]).whole() == *check {
                    match proven.last_mut() {
                        Some(last) if last.end == piece.start => last.end = piece.end,
                        _ => proven.push(piece),
                    }
                }
            }
            start = end;
        }
        proven
    }

    /// Returns it as bytes, to be kept by the device.
    pub fn encode(&self) -> Vec<u8> {
        encode_message(self)
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// [`DeltaError::Message`] where it is something else; then the device does as if it had kept nothing.
    pub fn decode(bytes: &[u8]) -> Result<Self, DeltaError> {
        decode_message(bytes).map_err(|source| DeltaError::Message { source })
    }
}

impl Message for VersionSketch {
    const MAGIC: u8 = b'v';
    const KIND: &'static str = "sketch of a version";
}

impl Encode for VersionSketch {
    fn encode(&self, encoder: &mut Encoder) {
        Encode::encode(&self.base, encoder);
        for check in &self.checks {
            encoder.raw(&check.to_le_bytes());
        }
        for feature in self.features.numbers() {
            encoder.raw(&feature.to_le_bytes());
        }
    }
}

impl Decode for VersionSketch {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let base = <BaseVersion as Decode>::decode(decoder)?;
        let mut checks = Vec::new();
        if base.is_sketched() {
            let pieces: usize =
                base.table().chunks().iter().map(|chunk| piece_count(chunk.length)).sum();
            let (sums, _) = decoder.raw(pieces * size_of::<Check>())?.as_chunks();
            checks.extend(sums.iter().map(|check| Check::from_le_bytes(*check)));
        }
        // Whatever is left, all of it.
        let count = (decoder.remaining() / size_of::<u64>()).min(FEATURES_MAX);
        let (numbers, _) = decoder.raw(count * size_of::<u64>())?.as_chunks();
        let numbers = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        Ok(Self::new(base, checks).with_features(Features::from_numbers(numbers)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::random_bytes;

    fn keys() -> WorkspaceContentKeys {
        WorkspaceContentKeys::derive(&[7; 32])
    }

    fn sketch(mut bytes: &[u8]) -> VersionSketch {
        VersionSketch::survey(&keys(), 4096, &mut bytes).expect("cut")
    }

    #[test]
    fn whole_pieces_that_are_right_are_proven_and_nothing_else() {
        let bytes = random_bytes(1, 20_000);
        let (sketch, key) = (sketch(&bytes), CheckKey::of(&keys()));
        let length = sketch.chunks()[0].length as usize;
        let chunk = &bytes[..length];
        let proven = |offset: usize, here: &[u8]| {
            let ranges = sketch.proven(&key, 0, offset as u32, here);
            ranges.into_iter().map(|range| (range.start, range.end)).collect::<Vec<_>>()
        };
        assert_eq!(proven(0, chunk), [(0, length)]);
        // What begins or ends within a piece is proven from the next one on, or to the one before.
        assert_eq!(proven(100, &chunk[100..600]), [(156, 412)]);
        assert_eq!(proven(10, &chunk[10..200]), []);
        // The last piece is shorter.
        assert_eq!(proven(length - 300, &chunk[length - 300..]).last().expect("one").1, 300);
        let mut wrong = chunk.to_vec();
        wrong[1000] ^= 1;
        assert_eq!(proven(0, &wrong), [(0, 768), (1024, length)]);
        assert!(sketch.proven(&key, 1, 0, &chunk[..512]).is_empty());
    }

    #[test]
    fn sketch_comes_back_and_one_that_is_cut_off_does_not() {
        let bytes = random_bytes(1, 50_000);
        let sketch = sketch(&bytes);
        let encoded = sketch.encode();
        assert!(encoded.len() < bytes.len() * 6 / 100 + 40 * sketch.chunks().len());
        assert_eq!(VersionSketch::decode(&encoded).expect("read"), sketch);
        assert!(VersionSketch::decode(&encoded[..encoded.len() - 1]).is_err());
        assert!(VersionSketch::decode(&sketch.base().encode()).is_err());
        let empty = VersionSketch::empty(4096);
        assert_eq!(VersionSketch::decode(&empty.encode()).expect("read"), empty);
        // Programs of the days before kept no features.
        let old = sketch.clone().with_features(Features::default());
        assert_eq!(VersionSketch::decode(&old.encode()).expect("read"), old);
        assert_eq!(sketch.features(), &Features::of(&bytes));
        let unsketched = BaseVersion::without_sketch(sketch.base().table().clone());
        let unsketched = VersionSketch::new(unsketched, vec![1]);
        assert!(unsketched.proven(&CheckKey::of(&keys()), 0, 0, &bytes[..512]).is_empty());
        assert_eq!(VersionSketch::decode(&unsketched.encode()).expect("read"), unsketched);
    }

    #[test]
    fn sketch_of_chunks_that_come_one_by_one_is_that_of_the_version() {
        let bytes = random_bytes(1, 50_000);
        let (expected, mut rest) = (sketch(&bytes), &bytes[..]);
        let mut builder = SketchBuilder::new(&keys());
        for chunk in expected.chunks() {
            let (here, behind) = rest.split_at(chunk.length as usize);
            rest = behind;
            builder.push(*chunk, here);
        }
        assert_eq!(builder.finish(4096).expect("few chunks"), expected);
    }

    #[test]
    fn points_of_the_two_sums_are_others() {
        let (find, check) = (SketchKey::of(&keys()), CheckKey::of(&keys()));
        let piece = random_bytes(1, 256);
        assert_ne!(Some(find.sum(&piece).whole()), check.checks(&piece).next());
    }
}
