//! Deflate records: chunks of a file that are stored as how they come out of its inflated form, whose chunks are their bases.
//!
//! *Participants*: as of delta records, whose head these have, and whose bases everybody brings alike. *Invariants*: what comes out is
//! compared with the ids like anything else; what a reader makes is bounded by what the index says, in bytes and in time
//! (`crate::inflated`).
//!
//! The format in words: `docs/design/pack-format.md`, "Deflate records".

use std::collections::HashSet;

use model::content::ChunkRef;
use model::ids::ChunkId;

use super::delta::{read_script, store_script};
use super::record::StoredRecord;
use super::{RECORD_BASES_LENGTH_MAX, RECORD_BASES_MAX, RECORD_CHUNKS_MAX};
use crate::error::ContentError;
use crate::inflated;
use crate::transform::{TransformDecoder, TransformEncoder, TransformTag};

/// How many plain bytes a deflate record may have: its chunks come out of the same streams together, or each would need them all.
pub const DEFLATE_PLAIN_MAX: usize = 8 * 1024 * 1024;

/// Tells whether one record has room for these chunks of a file, and can name these of its inflated form as bases.
pub(crate) fn has_room(chunks: &[ChunkRef], bases: &[ChunkRef]) -> bool {
    let bases_length: u64 = bases.iter().map(|base| u64::from(base.length)).sum();
    let ids: HashSet<ChunkId> = bases.iter().map(|base| base.id).collect();
    (1..=RECORD_CHUNKS_MAX).contains(&chunks.len())
        && plain_length(chunks) <= DEFLATE_PLAIN_MAX
        && (1..=RECORD_BASES_MAX).contains(&bases.len())
        && bases_length <= RECORD_BASES_LENGTH_MAX
        && ids.len() == bases.len()
        // Nothing is made from itself.
        && chunks.iter().all(|chunk| !ids.contains(&chunk.id))
}

fn plain_length(chunks: &[ChunkRef]) -> usize {
    chunks.iter().map(|chunk| chunk.length as usize).sum()
}

/// Encodes a record with neighbouring chunks of a file, which come out of the chunks of its inflated form, `bases`, as the plan says. Nothing
/// where it has no room for them, or does not pay.
///
/// # Errors
/// [`ContentError::Encode`].
pub(super) fn encode(
    chunks: &[ChunkRef],
    (plan, bases): (&[u8], &[ChunkRef]),
    encoder: &mut TransformEncoder,
) -> Result<Option<StoredRecord>, ContentError> {
    if !has_room(chunks, bases) {
        return Ok(None);
    }
    let plain_length = plain_length(chunks);
    let stored = store_script(plan, plain_length, encoder)?;
    Ok(stored.map(|bytes| StoredRecord {
        chunks: chunks.to_vec(),
        bases: bases.to_vec(),
        plain_length,
        transform: TransformTag::Deflate,
        bytes,
    }))
}

/// Replaces what is in `plain` by the chunks of a deflate record, `plain_length` bytes; `bases` are those of the index, in order. Adds to `work`.
pub(super) fn apply(
    stored: &[u8],
    plain_length: usize,
    bases: &[&[u8]],
    decoder: &mut TransformDecoder,
    (plain, work): (&mut Vec<u8>, &mut u64),
) -> Result<(), ContentError> {
    let plan = read_script(stored, plain_length, decoder)?;
    let made = inflated::deflate(&plan, &bases.concat(), plain_length, work);
    *plain = made.map_err(|source| ContentError::Script { source })?;
    Ok(())
}
