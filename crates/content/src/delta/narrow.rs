//! Narrows a change down: which bytes of a changed stretch are still those of the old version.
//!
//! The pieces of the old stretch are looked for in the new bytes: first where the one behind the last match should be, then
//! at any byte, at last backwards from the end. Where the old bytes are at hand, matches are then lengthened byte by byte, and
//! what is left between two of them is compared with what the old version has there.

use std::ops::Range;

use super::error::DeltaError;
use super::message::ByteStep;
use super::sketch::{PIECE_LENGTH, SketchKey};
use super::source::{RangedSource, read_at};

/// A piece of the old version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it begins in the old version, in bytes.
    pub(super) offset: u64,
    pub(super) length: usize,
    /// Its sum, 48 bits.
    pub(super) sum: u64,
}

/// A part of the new bytes; the parts in order are all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) length: usize,
    /// Where the old version has it, in bytes; or that it has not, as far as is known.
    pub(super) offset: Option<u64>,
}

/// Adds a segment, as one with the last where they are neighbours.
fn push(segments: &mut Vec<Segment>, length: usize, offset: Option<u64>) {
    if length == 0 {
        return;
    }
    if let Some(last) = segments.last_mut() {
        let behind = last.offset.map(|offset| offset + last.length as u64);
        if behind == offset {
            last.length += length;
            return;
        }
    }
    segments.push(Segment { length, offset });
}

/// The full pieces of a stretch by their sums.
struct PieceIndex {
    /// A bit for each value of the lowest 16 bits.
    filter: Vec<u64>,
    /// Sums and numbers of pieces, sorted.
    by_sum: Vec<(u64, u32)>,
}

impl PieceIndex {
    fn of(pieces: &[Piece]) -> Self {
        let full = pieces.iter().zip(0..).filter(|(piece, _)| piece.length == PIECE_LENGTH);
        Self::new(full.map(|(piece, number)| (piece.sum, number)).collect())
    }

    /// Takes sums and numbers in any order.
    fn new(mut by_sum: Vec<(u64, u32)>) -> Self {
        by_sum.sort_unstable();
        let mut filter = vec![0; 1024];
        for (sum, _) in &by_sum {
            filter[(sum & 0xffff) as usize / 64] |= 1 << (sum & 63);
        }
        Self { filter, by_sum }
    }

    fn find(&self, sum: u64) -> Option<usize> {
        if self.filter[(sum & 0xffff) as usize / 64] >> (sum & 63) & 1 == 0 {
            return None;
        }
        let place = self.by_sum.partition_point(|&(other, _)| other < sum);
        let &(found, number) = self.by_sum.get(place)?;
        (found == sum).then_some(number as usize)
    }
}

/// Divides new bytes into what the old pieces have and what not. `ends_alike` says that what follows the new bytes follows the
/// pieces, too.
pub(super) fn narrow(
    key: &SketchKey,
    pieces: &[Piece],
    new: &[u8],
    ends_alike: bool,
) -> Vec<Segment> {
    let index = PieceIndex::of(pieces);
    let mut segments = Vec::new();
    let (mut cursor, mut next) = (0, 0);
    loop {
        if let Some(piece) = pieces.get(next)
            && let Some(bytes) = new[cursor..].get(..piece.length)
            && key.sum(bytes).value() == piece.sum
        {
            push(&mut segments, piece.length, Some(piece.offset));
            (cursor, next) = (cursor + piece.length, next + 1);
            continue;
        }
        let Some((start, number)) = scan(key, &index, new, cursor) else { break };
        push(&mut segments, start - cursor, None);
        push(&mut segments, PIECE_LENGTH, Some(pieces[number].offset));
        (cursor, next) = (start + PIECE_LENGTH, number + 1);
    }
    let (mut end, mut last) = (new.len(), pieces.len());
    while ends_alike && last > next {
        let piece = pieces[last - 1];
        let bytes = end
            .checked_sub(piece.length)
            .and_then(|start| new[cursor..].get(start.checked_sub(cursor)?..end - cursor));
        if bytes.is_none_or(|bytes| key.sum(bytes).value() != piece.sum) {
            break;
        }
        (end, last) = (end - piece.length, last - 1);
    }
    push(&mut segments, end - cursor, None);
    for piece in &pieces[last..] {
        push(&mut segments, piece.length, Some(piece.offset));
    }
    segments
}

/// Returns where the first full piece is from `from` on, and which it is.
fn scan(key: &SketchKey, index: &PieceIndex, new: &[u8], from: usize) -> Option<(usize, usize)> {
    let bytes = &new[from..];
    let mut sum = key.sum(bytes.get(..PIECE_LENGTH)?);
    for start in 0.. {
        if let Some(number) = index.find(sum.value()) {
            return Some((from + start, number));
        }
        let into = bytes.get(start + PIECE_LENGTH)?;
        key.roll(&mut sum, bytes[start], *into);
    }
    None
}

/// Lengthens what the old version has by comparing bytes, and compares what is left in between. `begin` and `end` are where
/// the old stretch lies between its unchanged neighbours, in bytes; `end` only where it has a neighbour.
pub(super) fn lengthen(
    segments: &[Segment],
    new: &[u8],
    old: &mut dyn RangedSource,
    (begin, end): (u64, Option<u64>),
) -> Result<Vec<Segment>, DeltaError> {
    let mut longer = Vec::new();
    let (mut cursor, mut before) = (0, begin);
    let mut between = Between { copies_left: COPIES_MAX, length_left: BETWEEN_LENGTH_SUM };
    for (number, segment) in segments.iter().enumerate() {
        let bytes = &new[cursor..cursor + segment.length];
        cursor += segment.length;
        if let Some(offset) = segment.offset {
            push(&mut longer, segment.length, segment.offset);
            before = offset + segment.length as u64;
            continue;
        }
        let head = equal_from(old, before, bytes)?;
        let bytes = &bytes[head..];
        let behind = match segments.get(number + 1) {
            Some(next) => next.offset,
            None => end,
        };
        let tail = behind.map_or(Ok(0), |behind| equal_to(old, behind, bytes))?;
        push(&mut longer, head, Some(before));
        let (bytes, _) = bytes.split_at(bytes.len() - tail);
        let (from, to) = (before + head as u64, behind.map(|behind| behind - tail as u64));
        between.compare(old, from..to.unwrap_or(from), bytes, &mut longer)?;
        push(&mut longer, tail, to);
    }
    Ok(longer)
}

/// How many bytes between two matches are compared, old ones and new ones; and how many old ones in a stretch.
const BETWEEN_LENGTH_MAX: usize = 64 * 1024;
const BETWEEN_LENGTH_SUM: u64 = 8 * 1024 * 1024;

/// How many bytes have to be equal where the one follows the other, and where it does not: telling where they are costs some
/// five bytes.
const WORD_LENGTH: usize = 8;
const MOVED_LENGTH_MIN: usize = 16;

/// How many copies are found so in a stretch: with the two for each piece that is what a message has room for.
const COPIES_MAX: usize = 16 * 1024;

/// Compares the bytes between two matches with the old ones there.
struct Between {
    copies_left: usize,
    length_left: u64,
}

impl Between {
    /// Adds the segments of `new`, which lies where the old version has the bytes of `range`.
    fn compare(
        &mut self,
        old: &mut dyn RangedSource,
        range: Range<u64>,
        new: &[u8],
        segments: &mut Vec<Segment>,
    ) -> Result<(), DeltaError> {
        let length = range.end.saturating_sub(range.start);
        let is_short = length.max(new.len() as u64) <= BETWEEN_LENGTH_MAX as u64;
        let mut done = 0;
        if is_short
            && length <= self.length_left
            && length.min(new.len() as u64) >= WORD_LENGTH as u64
        {
            self.length_left -= length;
            let mut bytes = vec![0; length as usize];
            read_at(old, range.start, &mut bytes)?;
            let words = Words::of(&bytes);
            let (mut at, mut place) = (0, 0);
            while self.copies_left > 0 && at + WORD_LENGTH <= new.len() {
                let Some(copy) = words.find(new, done..at, place) else {
                    (at, place) = (at + 1, place + 1);
                    continue;
                };
                push(segments, copy.start - done, None);
                push(segments, copy.length, Some(range.start + copy.place as u64));
                self.copies_left -= 1;
                done = copy.start + copy.length;
                (at, place) = (done, copy.place + copy.length);
            }
        }
        push(segments, new.len() - done, None);
        Ok(())
    }
}

/// Bytes that are equal: `length` ones from `start` on in the new ones, and from `place` on in the old ones.
struct Copy {
    start: usize,
    place: usize,
    length: usize,
}

/// Old bytes, and where each eighth word of them is.
struct Words<'b> {
    bytes: &'b [u8],
    index: PieceIndex,
}

impl<'b> Words<'b> {
    fn of(bytes: &'b [u8]) -> Self {
        let (words, _) = bytes.as_chunks();
        let index = words.iter().zip(0..).map(|(word, number)| (spread(*word), number)).collect();
        Self { bytes, index: PieceIndex::new(index) }
    }

    /// Looks for the word at the end of `free`, up to where nothing is found yet: first at the place where it is if bytes were
    /// written over others.
    fn find(&self, new: &[u8], free: Range<usize>, place: usize) -> Option<Copy> {
        let word = *new[free.end..].first_chunk::<WORD_LENGTH>()?;
        if self.bytes.get(place..).and_then(|old| old.first_chunk()) == Some(&word) {
            return Some(self.whole(new, free, place));
        }
        let number = self.index.find(spread(word))?;
        let copy = self.whole(new, free, number * WORD_LENGTH);
        (copy.length >= MOVED_LENGTH_MIN).then_some(copy)
    }

    /// Lengthens a word that is equal to both sides.
    fn whole(&self, new: &[u8], free: Range<usize>, place: usize) -> Copy {
        let (at, old) = (free.end, self.bytes);
        let before = new[free].iter().rev().zip(old[..place].iter().rev());
        let before = before.take_while(|(one, other)| one == other).count();
        let behind = new[at..].iter().zip(&old[place..]);
        let behind = behind.take_while(|(one, other)| one == other).count();
        Copy { start: at - before, place: place - before, length: before + behind }
    }
}

/// Makes a word a number of its own whose lowest bits depend on most of it.
fn spread(word: [u8; WORD_LENGTH]) -> u64 {
    u64::from_le_bytes(word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

/// How many bytes are compared at a time.
const COMPARED_LENGTH: usize = 4096;

/// Returns how many of the bytes from `offset` on are the first of `bytes`.
fn equal_from(old: &mut dyn RangedSource, offset: u64, bytes: &[u8]) -> Result<usize, DeltaError> {
    let rest = old.size().saturating_sub(offset);
    let bytes = &bytes[..bytes.len().min(usize::try_from(rest).unwrap_or(usize::MAX))];
    let mut buffer = [0; COMPARED_LENGTH];
    let mut equal = 0;
    for part in bytes.chunks(COMPARED_LENGTH) {
        let buffer = &mut buffer[..part.len()];
        read_at(old, offset + equal as u64, buffer)?;
        let count = part.iter().zip(buffer.iter()).take_while(|(a, b)| a == b).count();
        equal += count;
        if count < part.len() {
            break;
        }
    }
    Ok(equal)
}

/// Returns how many of the bytes before `offset` are the last of `bytes`.
fn equal_to(old: &mut dyn RangedSource, offset: u64, bytes: &[u8]) -> Result<usize, DeltaError> {
    let bytes =
        &bytes[bytes.len() - bytes.len().min(usize::try_from(offset).unwrap_or(usize::MAX))..];
    let mut buffer = [0; COMPARED_LENGTH];
    let mut equal = 0;
    for part in bytes.rchunks(COMPARED_LENGTH) {
        let buffer = &mut buffer[..part.len()];
        read_at(old, offset - (equal + part.len()) as u64, buffer)?;
        let count = part.iter().rev().zip(buffer.iter().rev()).take_while(|(a, b)| a == b).count();
        equal += count;
        if count < part.len() {
            break;
        }
    }
    Ok(equal)
}

/// Divides segments at the borders of chunks: gives the steps of a chunk of `length` bytes, and leaves the rest.
pub(super) fn take_steps(
    segments: &mut std::collections::VecDeque<Segment>,
    mut bytes: &[u8],
) -> Vec<ByteStep> {
    let mut steps = Vec::new();
    while !bytes.is_empty() {
        let segment = segments.front_mut().expect("the segments are all of the bytes");
        let length = segment.length.min(bytes.len());
        let (now, rest) = bytes.split_at(length);
        steps.push(match segment.offset {
            Some(offset) => ByteStep::Copy { offset, length: length as u32 },
            None => ByteStep::Literal(now.to_vec()),
        });
        segment.length -= length;
        segment.offset = segment.offset.map(|offset| offset + length as u64);
        if segment.length == 0 {
            segments.pop_front();
        }
        bytes = rest;
    }
    steps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::naming::WorkspaceContentKeys;
    use crate::samples::random_bytes;

    fn key() -> SketchKey {
        SketchKey::of(&WorkspaceContentKeys::derive(&[7; 32]))
    }

    /// The pieces of bytes that are one chunk, 1000 bytes into a file.
    fn pieces(old: &[u8]) -> Vec<Piece> {
        let pieces = old.chunks(PIECE_LENGTH).zip(0..);
        let piece = |(bytes, number): (&[u8], u64)| Piece {
            offset: 1000 + number * PIECE_LENGTH as u64,
            length: bytes.len(),
            sum: key().sum(bytes).value(),
        };
        pieces.map(piece).collect()
    }

    /// Puts the new bytes together from segments, and returns how many of them are literal.
    fn rebuilt(segments: &[Segment], file: &[u8], new: &[u8]) -> (Vec<u8>, usize) {
        let (mut bytes, mut literal) = (Vec::new(), 0);
        for segment in segments {
            let (from, start) = match segment.offset {
                Some(offset) => (file, offset as usize),
                None => (new, bytes.len()),
            };
            literal += if segment.offset.is_none() { segment.length } else { 0 };
            bytes.extend_from_slice(&from[start..start + segment.length]);
        }
        (bytes, literal)
    }

    fn check(old: &[u8], new: &[u8]) -> (usize, usize) {
        let segments = narrow(&key(), &pieces(old), new, true);
        let file = [&[0; 1000], old, &[1; 50]].concat();
        let (bytes, literal) = rebuilt(&segments, &file, new);
        assert_eq!(bytes, new);
        let ends = (1000, Some(1000 + old.len() as u64));
        let longer = lengthen(&segments, new, &mut &file[..], ends).unwrap();
        let (bytes, exact) = rebuilt(&longer, &file, new);
        assert_eq!(bytes, new);
        (literal, exact)
    }

    #[test]
    fn changed_byte_costs_its_piece_without_the_old_bytes_and_itself_with_them() {
        let old = random_bytes(1, 10_000);
        let mut new = old.clone();
        new[5000] ^= 1;
        assert_eq!(check(&old, &new), (256, 1));
        // In the last piece, which is shorter.
        let mut new = old.clone();
        new[9999] ^= 1;
        assert_eq!(check(&old, &new), (10_000 % 256, 1));
    }

    #[test]
    fn inserted_byte_costs_its_piece_and_itself() {
        let old = random_bytes(1, 10_000);
        let new = [&old[..5000], b"!", &old[5000..]].concat();
        assert_eq!(check(&old, &new), (257, 1));
        assert_eq!(check(&old, &[&old[..], b"!"].concat()), (1, 1));
        assert_eq!(check(&old, &[b"!", &old[..]].concat()), (1, 1));
    }

    #[test]
    fn changes_in_each_piece_cost_themselves_with_the_old_bytes() {
        let old = random_bytes(1, 10_000);
        let (mut over, mut beside, mut without) = (old.clone(), Vec::new(), Vec::new());
        for (number, part) in old.chunks(100).enumerate() {
            over[number * 100 + 50..][..3].copy_from_slice(b"new");
            beside.extend([part, b"new"].concat());
            without.extend_from_slice(&part[..97]);
        }
        // A byte of chance may be that of the word which is put there.
        let assert_exact = |new: &[u8], at_least, at_most| {
            let (literal, exact) = check(&old, new);
            assert!(literal > 9_600, "{literal}");
            assert!((at_least..=at_most).contains(&exact), "{exact}");
        };
        assert_exact(&over, 290, 300);
        assert_exact(&beside, 290, 300);
        assert_exact(&without, 0, 0);
    }

    #[test]
    fn what_is_compared_between_two_matches_is_bounded() {
        let old = random_bytes(1, 200_000);
        let changed = |length: usize| -> Vec<u8> {
            let (changed, kept) = old.split_at(length);
            let part = |part: &[u8]| [part, b"!"].concat();
            changed.chunks(100).flat_map(part).chain(kept.iter().copied()).collect()
        };
        let (_, exact) = check(&old, &changed(60_000));
        assert!((590..=600).contains(&exact), "{exact}");
        let (_, exact) = check(&old, &changed(70_000));
        assert!(exact > 65_000, "{exact}");
        // However often somebody goes to and fro between two old pieces, so that much lies between them.
        let (near, far) = (&old[..256], &old[60_000 / 256 * 256..][..256]);
        let new = [near, b"12345678", far, b"12345678"].concat().repeat(300);
        let mut file = Counting { bytes: [&[0; 1000], &old[..]].concat(), read: 0 };
        let segments = narrow(&key(), &pieces(&old), &new, false);
        lengthen(&segments, &new, &mut file, (1000, None)).unwrap();
        assert!(segments.len() > 1000, "{}", segments.len());
        assert!(file.read < BETWEEN_LENGTH_SUM + 10_000_000, "{}", file.read);
    }

    /// Counts what is read of it.
    struct Counting {
        bytes: Vec<u8>,
        read: u64,
    }

    impl RangedSource for Counting {
        fn size(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
            self.read += buffer.len() as u64;
            (&self.bytes[..]).read_at(offset, buffer)
        }
    }

    #[test]
    fn end_of_a_stretch_is_found_from_behind() {
        // The last full piece is changed, and what is left behind it is too short to be found at any byte.
        let old = random_bytes(1, 10_000);
        let new = [&old[..9800], b"inserted", &old[9810..]].concat();
        assert_eq!(check(&old, &new), (254, 8));
    }

    #[test]
    fn cut_costs_the_pieces_that_it_goes_through() {
        let old = random_bytes(1, 10_000);
        let (literal, exact) = check(&old, &[&old[..3000], &old[7000..]].concat());
        assert!(literal < 512 && exact == 0, "{literal} {exact}");
    }

    #[test]
    fn nothing_in_common_is_all_literal() {
        assert_eq!(check(&[], &[1; 300]).0, 300);
        assert_eq!(check(&random_bytes(1, 3000), &[]), (0, 0));
        assert_eq!(check(&random_bytes(1, 3000), &random_bytes(2, 3000)).0, 3000);
    }

    proptest! {
        #[test]
        fn segments_always_are_the_new_bytes(
            old in prop::collection::vec(0_u8..3, 0..2000),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..300, prop::collection::vec(0_u8..3, 0..300)), 0..4),
        ) {
            let mut new = old.clone();
            for (at, removed, inserted) in edits {
                let at = at.index(new.len() + 1);
                let end = (at + removed).min(new.len());
                new.splice(at..end, inserted);
            }
            let (literal, exact) = check(&old, &new);
            prop_assert!(exact <= literal);
        }
    }
}
