//! Blocks: what a store holds of an object that is spread over several.
//!
//! *Goals*: any `data` of `total` blocks give the object back; a range of it lies in one block, mostly; a block that is
//! damaged, of another object or of another code is recognised by itself. *Non-goals*: secrecy; who can write to a store
//! can make a block that looks right, and only the hash in the object's key tells. *Invariants*: a block never changes;
//! blocks of two codes are never combined.
//!
//! ```text
//! block   = "SYNPART" (7 bytes) ‖ version (1 byte) = 1
//!           ‖ data (1 byte) ‖ total (1 byte) ‖ index (1 byte) ‖ 0 (1 byte)
//!           ‖ length of the object (4 bytes, little-endian)
//!           ‖ BLAKE3 of the object (32 bytes) ‖ BLAKE3 of the payload (32 bytes)
//!           ‖ BLAKE3 of all bytes before, its first 16 bytes
//!           ‖ payload
//! key     = "blocks/" ‖ the digits of the hash, as for packs ‖ "." ‖ "p" for a pack, "c" for a page
//!           ‖ data ‖ "-" ‖ total ‖ "-" ‖ index
//! stretch = the length of the object / data, rounded up to a multiple of 64
//! ```
//!
//! The payloads of the blocks below `data` are the object, a stretch each, without the zeros that fill the last one. Those of
//! the others have a stretch each: Reed-Solomon over GF(2^16), as the crate `reed-solomon-simd` 3 computes it, over
//! the filled stretches. Of an object of no bytes all payloads are empty.

use std::fmt;

use bytes::{Bytes, BytesMut};
use model::ids::{PackId, PageId};
use model::pool::Redundancy;

use crate::key::ObjectKey;

/// What the keys of all blocks begin with.
pub const BLOCKS: &str = "blocks/";

/// Length of a header in bytes.
pub(crate) const HEADER_LENGTH: usize = 96;

const MAGIC: &[u8; 8] = b"SYNPART\x01";

/// What the coder needs for its vectors.
const STRETCH_STEP: usize = 64;

/// A code: how many blocks an object has, and how many of them give it back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockCode {
    /// How many blocks are needed.
    pub data: u8,
    /// How many there are.
    pub total: u8,
}

impl fmt::Debug for BlockCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}", self.data, self.total)
    }
}

/// Which block of which object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockName {
    /// The code.
    pub code: BlockCode,
    /// The number of the block, from 0; those below `data` hold the object's own bytes.
    pub index: u8,
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) name: BlockName,
    pub(crate) object_length: usize,
    object: [u8; 32],
    payload: [u8; 32],
}

impl BlockCode {
    /// Returns the code of a redundancy, if it has one.
    pub fn of(redundancy: Redundancy) -> Option<Self> {
        match redundancy {
            Redundancy::Replicas(_) => None,
            Redundancy::Erasure { data, total } => Some(Self { data, total }),
        }
    }

    /// Returns the names of all blocks.
    pub fn names(self) -> impl Iterator<Item = BlockName> {
        (0..self.total).map(move |index| BlockName { code: self, index })
    }

    fn is_possible(self) -> bool {
        self.data >= 1
            && self.data < self.total
            && usize::from(self.total) <= model::pool::STORES_MAX
    }

    /// Returns how many bytes of an object a block holds.
    pub(crate) fn stretch(self, object_length: usize) -> usize {
        object_length.div_ceil(usize::from(self.data)).next_multiple_of(STRETCH_STEP)
    }

    /// Returns how many bytes the payload of a block has.
    fn payload_length(self, index: u8, object_length: usize) -> usize {
        let stretch = self.stretch(object_length);
        if index >= self.data {
            return stretch;
        }
        object_length.saturating_sub(usize::from(index) * stretch).min(stretch)
    }
}

impl BlockName {
    /// Returns the key of this block of an object.
    ///
    /// # Panics
    /// When the key does not name its content.
    pub fn key(self, object: &ObjectKey) -> ObjectKey {
        let Self { code: BlockCode { data, total }, index } = self;
        let text = format!("{}{data}-{total}-{index}", blocks_of(object));
        ObjectKey::new(&text).expect("digits, a letter, a dot and dashes")
    }
}

/// Returns what the keys of all blocks of an object begin with.
///
/// # Panics
/// When the key does not name its content.
pub(crate) fn blocks_of(object: &ObjectKey) -> String {
    let (hex, letter) = match (object.as_pack(), object.as_page()) {
        (Some(pack), _) => (pack.to_string(), 'p'),
        (None, page) => (page.expect("only packs and pages are in a pool").to_string(), 'c'),
    };
    format!("{BLOCKS}{}/{hex}.{letter}", &hex[..2])
}

/// Returns the object and the name of a block, when the key is that of one.
pub fn parse_key(key: &ObjectKey) -> Option<(ObjectKey, BlockName)> {
    let (hex, rest) = key.as_str().strip_prefix(BLOCKS)?.get(3..)?.split_once('.')?;
    let object = match rest.as_bytes().first()? {
        b'p' => ObjectKey::pack(hex.parse::<PackId>().ok()?),
        b'c' => ObjectKey::page(hex.parse::<PageId>().ok()?),
        _ => return None,
    };
    let mut numbers = rest[1..].splitn(3, '-').map(str::parse);
    let (data, total) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let name = BlockName { code: BlockCode { data, total }, index: numbers.next()?.ok()? };
    let is_possible = name.code.is_possible() && name.index < total;
    // One spelling: no signs, no leading zeros, the right folder.
    (is_possible && name.key(&object) == *key).then_some((object, name))
}

/// Makes the blocks of an object, in the order of their indexes.
///
/// # Panics
/// When the code is impossible or the object larger than any may be.
pub(crate) fn encode(code: BlockCode, object: [u8; 32], bytes: &Bytes) -> Vec<Bytes> {
    assert!(code.is_possible(), "a pool was made with an impossible code");
    let stretch = code.stretch(bytes.len());
    let recovered = if bytes.is_empty() {
        vec![Vec::new(); usize::from(code.total - code.data)]
    } else {
        parity(code, &filled(code, bytes))
    };
    code.names()
        .map(|name| {
            let at = usize::from(name.index);
            let payload = match at.checked_sub(usize::from(code.data)) {
                Some(parity) => &recovered[parity][..],
                None => {
                    let start = (at * stretch).min(bytes.len());
                    &bytes[start..(start + stretch).min(bytes.len())]
                }
            };
            with_header(name, object, bytes.len(), payload)
        })
        .collect()
}

/// Returns the stretches of an object, filled with zeros.
fn filled(code: BlockCode, bytes: &[u8]) -> Vec<Vec<u8>> {
    let stretch = code.stretch(bytes.len());
    (0..usize::from(code.data))
        .map(|at| {
            let start = (at * stretch).min(bytes.len());
            let mut shard = bytes[start..(start + stretch).min(bytes.len())].to_vec();
            shard.resize(stretch, 0);
            shard
        })
        .collect()
}

fn parity(code: BlockCode, shards: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (data, more) = (usize::from(code.data), usize::from(code.total - code.data));
    reed_solomon_simd::encode(data, more, shards)
        .expect("the number of stretches is the code's, and all have one length")
}

fn with_header(name: BlockName, object: [u8; 32], object_length: usize, payload: &[u8]) -> Bytes {
    let length = u32::try_from(object_length).expect("no object has 4 GiB");
    let mut block = BytesMut::with_capacity(HEADER_LENGTH + payload.len());
    block.extend_from_slice(MAGIC);
    block.extend_from_slice(&[name.code.data, name.code.total, name.index, 0]);
    block.extend_from_slice(&length.to_le_bytes());
    block.extend_from_slice(&object);
    block.extend_from_slice(blake3::hash(payload).as_bytes());
    let check = blake3::hash(&block);
    block.extend_from_slice(&check.as_bytes()[..16]);
    block.extend_from_slice(payload);
    block.freeze()
}

impl BlockHeader {
    /// Reads the header at the start of `bytes`, if it is one, whole, and of the block that is expected.
    pub(crate) fn decode(bytes: &[u8], object: &[u8; 32], name: BlockName) -> Option<Self> {
        let header = bytes.get(..HEADER_LENGTH)?;
        let (checked, check) = header.split_at(HEADER_LENGTH - 16);
        if blake3::hash(checked).as_bytes()[..16] != *check || checked[..8] != *MAGIC {
            return None;
        }
        let code = BlockCode { data: checked[8], total: checked[9] };
        let length = u32::from_le_bytes(checked[12..16].try_into().ok()?);
        let found = Self {
            name: BlockName { code, index: checked[10] },
            object_length: usize::try_from(length).ok()?,
            object: checked[16..48].try_into().ok()?,
            payload: checked[48..80].try_into().ok()?,
        };
        let is_expected = found.name == name && found.object == *object && checked[11] == 0;
        let fits = u64::from(length) <= crate::object_store::OBJECT_SIZE_MAX;
        (is_expected && fits && code.is_possible()).then_some(found)
    }
}

/// A block that was found right.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) header: BlockHeader,
    pub(crate) payload: Bytes,
}

impl Block {
    /// Reads a block, if it is whole, undamaged, and the one that is expected.
    pub(crate) fn decode(bytes: &Bytes, object: &[u8; 32], name: BlockName) -> Option<Self> {
        let header = BlockHeader::decode(bytes, object, name)?;
        let payload = bytes.slice(HEADER_LENGTH..);
        let length = name.code.payload_length(name.index, header.object_length);
        let is_right =
            payload.len() == length && *blake3::hash(&payload).as_bytes() == header.payload;
        is_right.then_some(Self { header, payload })
    }
}

/// Returns the object of some blocks of one code, or `None` when they are too few or do not fit together. The caller
/// compares its hash.
pub(crate) fn decode(code: BlockCode, blocks: &[Block]) -> Option<Bytes> {
    let length = blocks.first()?.header.object_length;
    let blocks = blocks
        .iter()
        .filter(|block| block.header.name.code == code && block.header.object_length == length);
    if length == 0 {
        return Some(Bytes::new());
    }
    let stretch = code.stretch(length);
    let mut own: Vec<Option<&Bytes>> = vec![None; usize::from(code.data)];
    let mut parity: Vec<Option<&Bytes>> = vec![None; usize::from(code.total - code.data)];
    for block in blocks {
        let at = usize::from(block.header.name.index);
        match at.checked_sub(own.len()) {
            None => own[at] = Some(&block.payload),
            Some(at) => parity[at] = Some(&block.payload),
        }
    }
    let mut bytes = BytesMut::with_capacity(length);
    if own.iter().all(Option::is_some) {
        own.into_iter().flatten().for_each(|payload| bytes.extend_from_slice(payload));
        return Some(bytes.freeze());
    }
    let filled = own.iter().enumerate().filter_map(|(at, payload)| {
        let mut shard = payload.as_ref()?.to_vec();
        shard.resize(stretch, 0);
        Some((at, shard))
    });
    let more = parity.iter().enumerate().filter_map(|(at, payload)| Some((at, payload.as_ref()?)));
    let restored = reed_solomon_simd::decode(
        own.len(),
        parity.len(),
        filled,
        more.map(|(at, p)| (at, &p[..])),
    )
    .ok()?;
    for (at, payload) in own.iter().enumerate() {
        let missing = length - bytes.len();
        match payload {
            Some(payload) => bytes.extend_from_slice(payload),
            None => bytes.extend_from_slice(restored.get(&at)?.get(..stretch.min(missing))?),
        }
    }
    (bytes.len() == length).then(|| bytes.freeze())
}

#[cfg(test)]
mod tests;
