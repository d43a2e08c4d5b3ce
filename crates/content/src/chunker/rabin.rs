//! Content-defined chunks as they began (LBFS, Muthitacharoen, Chen and Mazières, 2001): Rabin fingerprints, for comparison.

use super::rolling::{Rabin, RollingFingerprint, WINDOW};
use super::{ChunkSizes, Chunker};
use crate::error::ContentError;

/// The smallest chunk is the average by this, the largest the average times [`MAX_FACTOR`]: 2 and 64 KiB for 8 KiB in LBFS.
const MIN_DIVISOR: u64 = 4;

const MAX_FACTOR: u64 = 8;

/// The low bits that a fingerprint has where a chunk ends. LBFS takes a constant of its own choice; any will do but 0, which runs of zeros have.
const MAGIC: u32 = 0x78;

/// Cuts where the low bits of the fingerprint of the last 48 bytes are a constant.
pub struct RabinChunker {
    sizes: ChunkSizes,
    mask: u32,
}

impl RabinChunker {
    /// Makes a chunker for an average size in bytes, a power of two.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`].
    pub fn new(average: u32) -> Result<Self, ContentError> {
        let wide = u64::from(average);
        let sizes = ChunkSizes::between(wide / MIN_DIVISOR, average, wide * MAX_FACTOR)?;
        Ok(Self { sizes, mask: average - 1 })
    }
}

impl Chunker for RabinChunker {
    fn sizes(&self) -> ChunkSizes {
        self.sizes
    }

    fn cut(&self, window: &[u8], end_of_input: bool) -> Option<usize> {
        let ChunkSizes { min, max, .. } = self.sizes;
        if window.len() < max && !end_of_input || window.is_empty() {
            return None;
        }
        let limit = window.len().min(max);
        let Some(first) = window[..limit].get(min - WINDOW..).and_then(<[u8]>::first_chunk) else {
            return Some(limit);
        };
        let mut fingerprint = Rabin::of(first);
        for length in min..limit {
            if fingerprint.value() & self.mask == MAGIC {
                return Some(length);
            }
            fingerprint.roll(window[length - WINDOW], window[length]);
        }
        Some(limit)
    }
}
