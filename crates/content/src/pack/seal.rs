//! Sealed packs: the same records and index, each in a box, and a length that says little.
//!
//! *Participants*: as of packs; the store may also read everything. *Goals*: who does not have the workspace's keys learns
//! that there is a pack of about this length, and nothing else; one range still opens one record. *Non-goals*: hiding
//! which ranges are asked for. *Invariants*: every byte but those that make the key is in a box; a box opens only in its pack,
//! in its place and with its lengths; the records, the padding and the index fill the pack.
//!
//! The format in words: `docs/design/keys.md`, "Packs".

use super::index::RecordEntry;
use super::{
    HEADER, Newest, PACK_LENGTH_MAX, PackIndex, PackVersion, TRAILER_LENGTH, TRAILER_MAGIC,
    TailOutcome,
};
use crate::cipher::TAG_LENGTH;
use crate::error::ContentError;
use crate::padding::object_length;
use crate::sealed::{PackBox, PackBoxes, PackGuard, PackSeal};

/// Length in bytes of the trailer: salt, epoch, the box of the index's length, version, magic.
const SEALED_TRAILER_LENGTH: usize = 32 + 4 + 4 + TAG_LENGTH + 1 + 7;

/// How much the parts of a sealed pack take at least that are no records: header, padding, index and trailer.
const REST_LENGTH_MIN: usize = HEADER.len() + 2 * TAG_LENGTH + SEALED_TRAILER_LENGTH;

impl RecordEntry {
    /// Returns the box in which the record is.
    pub(super) fn pack_box(&self, number: usize) -> PackBox {
        PackBox::Record {
            number: number as u32,
            stored_length: self.stored_length,
            plain_length: self.plain_length,
            transform: self.transform.number(),
        }
    }
}

/// Returns how long a sealed pack is at most whose plain form has at most `plain` bytes, its open record among them.
pub(super) fn pack_length_max(plain: usize) -> usize {
    object_length((plain - TRAILER_LENGTH + REST_LENGTH_MIN + TAG_LENGTH) as u64) as usize
}

/// Seals the records in their places, and lays padding, index and trailer behind them.
pub(super) fn seal_pack(
    bytes: &mut Vec<u8>,
    index: PackIndex,
    boxes: PackBoxes,
) -> Result<PackIndex, ContentError> {
    for (number, record) in index.records().iter().enumerate() {
        let start = record.offset as usize;
        let (stored, tag) = bytes[start..record.end()].split_at_mut(record.stored_length as usize);
        tag.copy_from_slice(&boxes.close(record.pack_box(number), stored)?);
    }
    let encoded = index.encode();
    let length = bytes.len() - HEADER.len() + REST_LENGTH_MIN + encoded.len();
    let padding = object_length(length as u64) as usize - length;
    append(bytes, &vec![0; padding], PackBox::Padding(padding as u32), &boxes)?;
    append(bytes, &encoded, PackBox::Index(encoded.len() as u32), &boxes)?;
    let PackSeal { salt, epoch } = boxes.seal();
    bytes.extend_from_slice(&salt);
    bytes.extend_from_slice(&epoch.to_le_bytes());
    append(bytes, &(encoded.len() as u32).to_le_bytes(), PackBox::Trailer, &boxes)?;
    bytes.push(index.version(true).0);
    bytes.extend_from_slice(&TRAILER_MAGIC);
    Ok(index.sealed(boxes, bytes.len() as u64))
}

fn append(
    bytes: &mut Vec<u8>,
    plain: &[u8],
    pack_box: PackBox,
    boxes: &PackBoxes,
) -> Result<(), ContentError> {
    let start = bytes.len();
    bytes.extend_from_slice(plain);
    let tag = boxes.close(pack_box, &mut bytes[start..])?;
    bytes.extend_from_slice(&tag);
    Ok(())
}

/// Returns the version of a sealed pack that ends like this; nothing where it does not end as one.
pub(super) fn sealed_version(tail: &[u8]) -> Option<PackVersion> {
    let (_, [version, magic @ ..]) = tail.split_last_chunk::<8>()?;
    let version = PackVersion::from_number(*version).ok()??;
    (*magic == TRAILER_MAGIC && version.is_sealed()).then_some(version)
}

/// Reads the index from the last bytes of a sealed pack, however many there are.
pub(super) fn index_from_tail(
    tail: &[u8],
    pack_length: u64,
    guard: &PackGuard,
) -> Result<TailOutcome, ContentError> {
    let lengths = REST_LENGTH_MIN as u64..=PACK_LENGTH_MAX;
    if !lengths.contains(&pack_length) || tail.len() as u64 > pack_length {
        return Err(ContentError::PackLength { length: pack_length });
    }
    let Some((_, trailer)) = tail.split_last_chunk::<SEALED_TRAILER_LENGTH>() else {
        return Ok(TailOutcome::NeedMore { bytes: SEALED_TRAILER_LENGTH as u64 });
    };
    match sealed_version(trailer) {
        Some(version) => index_of_version(tail, pack_length, guard, version),
        None => match refusal(trailer) {
            newer @ ContentError::NewerPack { .. } => {
                is_whole_but_for_its_version(tail, pack_length, guard, newer)
            }
            other => Err(other),
        },
    }
}

/// Tells what a sealed pack is that says a newer version. No box holds the version, so that only its byte may be damaged: that is so where the
/// pack opens as one of a version that is known, which no pack of a newer format may.
fn is_whole_but_for_its_version(
    tail: &[u8],
    pack_length: u64,
    guard: &PackGuard,
    newer: ContentError,
) -> Result<TailOutcome, ContentError> {
    for newest in Newest::ALL {
        let version = PackVersion::of(true, false, newest);
        match index_of_version(tail, pack_length, guard, version) {
            Ok(TailOutcome::Complete(_)) => return Err(ContentError::PackTrailer),
            Ok(more) => return Ok(more),
            Err(_) => {}
        }
    }
    Err(newer)
}

fn index_of_version(
    tail: &[u8],
    pack_length: u64,
    guard: &PackGuard,
    version: PackVersion,
) -> Result<TailOutcome, ContentError> {
    let Some((rest, trailer)) = tail.split_last_chunk::<SEALED_TRAILER_LENGTH>() else {
        return Ok(TailOutcome::NeedMore { bytes: SEALED_TRAILER_LENGTH as u64 });
    };
    let mut decoder = model::codec::Decoder::new(trailer);
    let parts = (decoder.array(), decoder.array(), decoder.raw(4 + TAG_LENGTH));
    let (Ok(salt), Ok(epoch), Ok(length)) = parts else { return Err(ContentError::PackTrailer) };
    let boxes = guard.open(PackSeal { salt, epoch: u32::from_le_bytes(epoch) })?;
    let mut plain = Vec::new();
    if !boxes.open(PackBox::Trailer, length, &mut plain) {
        return Err(ContentError::Tampered { what: "trailer of a pack" });
    }
    let length = u32::from_le_bytes(plain.as_slice().try_into().unwrap_or_default());
    let described = u64::from(length) + REST_LENGTH_MIN as u64;
    if described > pack_length {
        return Err(ContentError::IndexMismatch { described, length: pack_length });
    }
    let boxed_length = length as usize + TAG_LENGTH;
    let Some(start) = rest.len().checked_sub(boxed_length) else {
        let bytes = (boxed_length + SEALED_TRAILER_LENGTH) as u64;
        return Ok(TailOutcome::NeedMore { bytes });
    };
    if !boxes.open(PackBox::Index(length), &rest[start..], &mut plain) {
        return Err(ContentError::Tampered { what: "index of a pack" });
    }
    let index = PackIndex::decode(&plain, TAG_LENGTH, version)?;
    let records = (index.records_end() - HEADER.len()) as u64;
    // What lies between the records and the index is as long as it must be, and no longer.
    if object_length(described + records) != pack_length {
        let described = described + records;
        return Err(ContentError::IndexMismatch { described, length: pack_length });
    }
    Ok(TailOutcome::Complete(index.sealed(boxes, pack_length)))
}

/// Tells what bytes are that do not end as a sealed pack does.
fn refusal(trailer: &[u8; SEALED_TRAILER_LENGTH]) -> ContentError {
    let plain = &trailer[SEALED_TRAILER_LENGTH - TRAILER_LENGTH..][5..][..7];
    let newer = match trailer.split_last_chunk::<8>() {
        Some((_, [version, magic @ ..])) if *magic == TRAILER_MAGIC => {
            PackVersion::from_number(*version).err()
        }
        _ => None,
    };
    match newer {
        Some(newer) => newer,
        _ if plain == TRAILER_MAGIC => ContentError::NotSealed { what: "pack" },
        _ => ContentError::PackTrailer,
    }
}
