//! One file of the cache: a header that vouches for every block, then the bytes.
//!
//! | bytes | field |
//! |---|---|
//! | 8 | `SYNCACH1` |
//! | 16 | the first bytes of the BLAKE3 of the key |
//! | 8 + 8 | which part of the object, as in [`EntryName`] |
//! | 8 | length of the bytes |
//! | 16 each | the first bytes of the BLAKE3 of each block of 64 KiB |
//! | 32 | BLAKE3 of all above |
//! | | the bytes |
//!
//! Integers are little-endian. Blocks are vouched for one by one, so that a small range of a large object is checked
//! without reading all of it. The header names the entry, so that a file under a wrong name is noticed.

use std::ops::Range;

use model::hex;

use crate::key::ObjectKey;
use crate::object_store::{OBJECT_SIZE_MAX, clamp};

const MAGIC: &[u8; 8] = b"SYNCACH1";
const BLOCK: usize = 64 << 10;
const BLOCK_HASH: usize = 16;
const HEADER_HASH: usize = 32;
/// Length of the header before the hashes.
pub(super) const FIXED: usize = 48;

/// A part of an object that can be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Range(Range<u64>),
    Tail(u64),
}

impl Part {
    /// Returns where the part lies in an object of `size` bytes.
    pub(super) fn within(&self, size: u64) -> Range<u64> {
        match self {
            Self::Whole => 0..size,
            Self::Range(range) => clamp(range, size),
            Self::Tail(length) => size.saturating_sub(*length)..size,
        }
    }
}

/// What an entry holds: the hash of the key, and the part as two numbers: its range; `0..u64::MAX` for the whole;
/// `u64::MAX` and the length for a tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryName {
    key: [u8; 16],
    start: u64,
    end: u64,
}

impl EntryName {
    pub(super) fn new(key: &ObjectKey, part: &Part) -> Self {
        let (start, end) = match part {
            Part::Whole => (0, u64::MAX),
            Part::Range(range) => (range.start, range.end),
            Part::Tail(length) => (u64::MAX, *length),
        };
        Self { key: first_bytes(blake3::hash(key.as_str().as_bytes())), start, end }
    }

    /// The names of all entries of one object.
    pub(super) fn all_of(key: &ObjectKey) -> std::ops::RangeInclusive<Self> {
        let name = Self::new(key, &Part::Whole);
        Self { start: 0, end: 0, ..name }..=Self { start: u64::MAX, end: u64::MAX, ..name }
    }

    /// The name of the file, and that of its folder.
    pub(super) fn file_name(&self) -> (String, String) {
        let digits = hex::encode(&self.key);
        let folder = digits[..2].to_owned();
        (folder, format!("{digits}-{:x}-{:x}", self.start, self.end))
    }

    /// Reads a file name back.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut fields = name.split('-');
        let hex = fields.next().filter(|hex| hex.len() == 32)?;
        let key = u128::from_str_radix(hex, 16).ok()?.to_be_bytes();
        let start = u64::from_str_radix(fields.next()?, 16).ok()?;
        let end = u64::from_str_radix(fields.next()?, 16).ok()?;
        let parsed = Self { key, start, end };
        (parsed.file_name().1 == name).then_some(parsed)
    }
}

/// A header that was checked.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) length: u64,
    block_hashes: Vec<[u8; BLOCK_HASH]>,
}

impl Header {
    /// Returns the whole length of the header whose first [`FIXED`] bytes are given, if it can be one.
    pub(super) fn length_of(fixed: &[u8]) -> Option<usize> {
        let length = body_length(fixed)?;
        Some(FIXED + block_count(length) * BLOCK_HASH + HEADER_HASH)
    }

    /// Decodes the header of the entry `name`; `None` when it is not one, or damaged.
    pub(super) fn decode(bytes: &[u8], name: &EntryName) -> Option<Self> {
        let (fields, hash) = bytes.split_last_chunk::<HEADER_HASH>()?;
        if Self::length_of(fields)? != bytes.len() || blake3::hash(fields).as_bytes() != hash {
            return None;
        }
        if !fields.starts_with(&fixed_fields(name)) {
            return None;
        }
        let (block_hashes, rest) = fields[FIXED..].as_chunks();
        rest.is_empty().then(|| Self {
            length: body_length(fields).unwrap_or(0),
            block_hashes: block_hashes.to_vec(),
        })
    }

    /// Returns the blocks that cover `range` of the bytes, as a range of the bytes.
    pub(super) fn covering(&self, range: &Range<u64>) -> Range<u64> {
        let block = BLOCK as u64;
        let start = range.start / block * block;
        start..range.end.div_ceil(block).saturating_mul(block).min(self.length).max(start)
    }

    /// Returns whether `bytes`, which begin at a block border, are those that were stored.
    pub(super) fn vouches_for(&self, start: u64, bytes: &[u8]) -> bool {
        let first = usize::try_from(start).unwrap_or(usize::MAX) / BLOCK;
        bytes.chunks(BLOCK).enumerate().all(|(index, block)| {
            let expected = self.block_hashes.get(first.saturating_add(index));
            expected == Some(&first_bytes(blake3::hash(block)))
        })
    }
}

/// Encodes the header of an entry that holds `body`.
pub(super) fn encode_header(name: &EntryName, body: &[u8]) -> Vec<u8> {
    let mut header = fixed_fields(name).to_vec();
    header.extend((body.len() as u64).to_le_bytes());
    for block in body.chunks(BLOCK) {
        header.extend(first_bytes(blake3::hash(block)));
    }
    header.extend(blake3::hash(&header).as_bytes());
    header
}

fn fixed_fields(name: &EntryName) -> [u8; FIXED - 8] {
    let mut fields = [0; FIXED - 8];
    fields[..8].copy_from_slice(MAGIC);
    fields[8..24].copy_from_slice(&name.key);
    fields[24..32].copy_from_slice(&name.start.to_le_bytes());
    fields[32..].copy_from_slice(&name.end.to_le_bytes());
    fields
}

fn body_length(fixed: &[u8]) -> Option<u64> {
    let length = u64::from_le_bytes(fixed.get(FIXED - 8..FIXED)?.try_into().ok()?);
    (length <= OBJECT_SIZE_MAX).then_some(length)
}

fn block_count(length: u64) -> usize {
    usize::try_from(length).unwrap_or(0).div_ceil(BLOCK)
}

fn first_bytes(hash: blake3::Hash) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_bytes()[..16]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> EntryName {
        EntryName::new(&ObjectKey::genesis(), &Part::Range(3..9))
    }

    #[test]
    fn header_vouches_for_its_blocks_and_for_no_others() {
        let body: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        let bytes = encode_header(&name(), &body);
        assert_eq!(Header::length_of(&bytes), Some(bytes.len()));
        let header = Header::decode(&bytes, &name()).unwrap();
        assert_eq!(header.length, 200_000);
        assert!(header.vouches_for(0, &body));
        assert!(header.vouches_for(BLOCK as u64, &body[BLOCK..2 * BLOCK]));
        assert!(!header.vouches_for(0, &body[1..]));
        assert!(!header.vouches_for(3 * BLOCK as u64, &body[..BLOCK]));
        assert!(!header.vouches_for(0, &[body.clone(), body].concat()));
    }

    #[test]
    fn any_flipped_bit_or_cut_of_a_header_is_noticed() {
        let bytes = encode_header(&name(), &[7; 100_000]);
        for index in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[index] ^= 1;
            assert!(Header::decode(&flipped, &name()).is_none(), "byte {index}");
            assert!(Header::decode(&bytes[..index], &name()).is_none(), "cut at {index}");
        }
        let other = EntryName::new(&ObjectKey::checkpoint(1), &Part::Range(3..9));
        assert!(Header::decode(&bytes, &other).is_none());
    }

    #[test]
    fn covering_blocks_hold_the_range_and_stay_inside() {
        let header = Header { length: 150_000, block_hashes: Vec::new() };
        assert_eq!(header.covering(&(0..1)), 0..65_536);
        assert_eq!(header.covering(&(65_536..65_537)), 65_536..131_072);
        assert_eq!(header.covering(&(140_000..150_000)), 131_072..150_000);
        assert_eq!(header.covering(&(0..0)), 0..0);
    }

    #[test]
    fn file_names_are_read_back_and_strangers_are_not() {
        for part in [Part::Whole, Part::Range(0..7), Part::Tail(64)] {
            let name = EntryName::new(&ObjectKey::genesis(), &part);
            assert_eq!(EntryName::parse(&name.file_name().1), Some(name));
        }
        for text in ["", "a-b-c", "00-0-0", "+0000000000000000000000000000000-0-0"] {
            assert_eq!(EntryName::parse(text), None, "{text}");
        }
    }
}
