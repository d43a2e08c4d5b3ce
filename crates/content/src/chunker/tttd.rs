//! Two thresholds, two divisors (Eshghi and Tang, 2005): what the Syncany thesis cuts with, for comparison.
//!
//! A chunk ends where the fingerprint of the last 48 bytes leaves the largest remainder by the main divisor. Where none does up to
//! the upper threshold, the last place counts at which the backup divisor, of half the size, had it so.

use std::marker::PhantomData;

use super::rolling::{RollingFingerprint, WINDOW};
use super::{ChunkSizes, Chunker};
use crate::error::ContentError;

/// The mean in bytes for which the paper has found its best parameters; others are these, scaled.
const PAPER_AVERAGE: u64 = 1015;

const PAPER_MIN: u64 = 460;
const PAPER_MAX: u64 = 2800;
const PAPER_DIVISOR: u64 = 540;
const PAPER_BACKUP_DIVISOR: u64 = 270;

/// Thresholds and divisors for one average size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TttdParameters {
    /// The two thresholds.
    pub sizes: ChunkSizes,
    /// Decides where a chunk ends.
    pub divisor: u32,
    /// Decides where a chunk ends that would become too large.
    pub backup_divisor: u32,
}

impl TttdParameters {
    /// Scales what the paper found best to `average`, a power of two in bytes.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`].
    pub fn around(average: u32) -> Result<Self, ContentError> {
        let scaled = |value: u64| (value * u64::from(average) + PAPER_AVERAGE / 2) / PAPER_AVERAGE;
        Ok(Self {
            sizes: ChunkSizes::between(scaled(PAPER_MIN), average, scaled(PAPER_MAX))?,
            divisor: scaled(PAPER_DIVISOR) as u32,
            backup_divisor: scaled(PAPER_BACKUP_DIVISOR) as u32,
        })
    }
}

/// Cuts by the fingerprint `F`.
pub struct TttdChunker<F> {
    parameters: TttdParameters,
    fingerprint: PhantomData<F>,
}

impl<F: RollingFingerprint> TttdChunker<F> {
    /// Makes a chunker for an average size in bytes, a power of two.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`].
    pub fn new(average: u32) -> Result<Self, ContentError> {
        Ok(Self { parameters: TttdParameters::around(average)?, fingerprint: PhantomData })
    }
}

impl<F: RollingFingerprint> Chunker for TttdChunker<F> {
    fn sizes(&self) -> ChunkSizes {
        self.parameters.sizes
    }

    fn cut(&self, window: &[u8], end_of_input: bool) -> Option<usize> {
        let TttdParameters { sizes, divisor, backup_divisor } = self.parameters;
        if window.len() < sizes.max && !end_of_input || window.is_empty() {
            return None;
        }
        let limit = window.len().min(sizes.max);
        let Some(first) = window[..limit].get(sizes.min - WINDOW..).and_then(<[u8]>::first_chunk)
        else {
            return Some(limit);
        };
        let mut fingerprint = F::of(first);
        let mut backup = None;
        for length in sizes.min..limit {
            let value = fingerprint.value();
            if value % divisor == divisor - 1 {
                return Some(length);
            }
            if value % backup_divisor == backup_divisor - 1 {
                backup = Some(length);
            }
            fingerprint.roll(window[length - WINDOW], window[length]);
        }
        // The end of a file is an end of a chunk; no earlier one is wanted in its place.
        Some(backup.filter(|_| limit == sizes.max).unwrap_or(limit))
    }
}

#[cfg(test)]
mod tests;
