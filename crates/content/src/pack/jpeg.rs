//! JPEG records: the chunks of a whole file, a picture that is coded shorter.
//!
//! *Participants*: as of packs; such a record needs no other. *Invariants*: what comes out is compared with the ids like anything else; what a
//! reader makes is bounded by what the index says, in bytes, memory and time (`crate::jpeg`).
//!
//! The format in words: `docs/design/pack-format.md`, "JPEG records".

use model::content::ChunkRef;

use super::RECORD_CHUNKS_MAX;
use super::record::StoredRecord;
use crate::transform::{TransformTag, pays};

/// How many plain bytes a JPEG record may have: who wants one of its chunks makes all of them.
pub const JPEG_PLAIN_MAX: usize = 4 * 1024 * 1024;

/// How many plain bytes a JPEG record has at most for each of its stored ones, so that nobody makes readers work long by storing little.
/// Photographs have less than two; what has many is as short by other transforms.
pub(crate) const JPEG_PLAIN_FACTOR: usize = 8;

/// As how much work it counts to make a byte ([`super::WorkAllowance`]): that of most pictures takes 80 ns, of the worst ones 600.
pub(super) const JPEG_WORK: u64 = 64;

/// Makes a record of the chunks of a file that is stored in this form ([`crate::jpeg::shorten`]). Nothing where it has no room for them, or
/// does not pay.
pub(super) fn encode(chunks: &[ChunkRef], form: &[u8]) -> Option<StoredRecord> {
    let plain_length = chunks.iter().map(|chunk| chunk.length as usize).sum();
    let plain_max = JPEG_PLAIN_MAX.min(form.len() * JPEG_PLAIN_FACTOR);
    let fits = (1..=RECORD_CHUNKS_MAX).contains(&chunks.len()) && plain_length <= plain_max;
    (fits && pays(plain_length, form.len())).then(|| StoredRecord {
        chunks: chunks.to_vec(),
        bases: Vec::new(),
        plain_length,
        transform: TransformTag::Jpeg,
        bytes: form.to_vec(),
    })
}
