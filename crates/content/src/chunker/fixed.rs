//! Chunks of one size: for files that are edited in place, and for comparison.

use super::{ChunkSizes, Chunker};

/// Cuts every `average` bytes.
#[derive(Debug, Clone)]
pub struct FixedChunker {
    sizes: ChunkSizes,
}

impl FixedChunker {
    /// Makes a chunker that cuts at the average of `sizes`.
    pub fn new(sizes: ChunkSizes) -> Self {
        Self { sizes }
    }
}

impl Chunker for FixedChunker {
    fn sizes(&self) -> ChunkSizes {
        self.sizes
    }

    fn cut(&self, window: &[u8], end_of_input: bool) -> Option<usize> {
        let length = self.sizes.average;
        if window.len() >= length {
            return Some(length);
        }
        (end_of_input && !window.is_empty()).then_some(window.len())
    }
}
