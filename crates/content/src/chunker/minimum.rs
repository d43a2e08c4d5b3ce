//! The default chunker: a chunk ends at the minimum of a keyed hash between two bounds.
//!
//! The shape is that of MinCDC (Peters): no rolling state, so that all positions of a chunk can be hashed at once;
//! hard bounds without a long tail of forced cuts. Ours differs in the key, and in ties: the *last* of equal
//! minima wins, so that a run of one byte, where all positions are equal, makes the fewest and largest chunks.
//!
//! The hash of a position is `word * multiplier + addend` modulo 2^32, where `word` is the little-endian value of
//! the 4 bytes before the position. It needs to be fast and to order words differently for every key, no more:
//! it is not a secret-keeping function, and chunk lengths are therefore kept inside packs.

mod simd;

use super::{ChunkSizes, Chunker};

pub use simd::Search;

/// How many bytes before a position decide about it.
const WINDOW: usize = 4;

/// The keyed hash of a position.
#[derive(Clone, Copy)]
struct PositionHash {
    multiplier: u32,
    addend: u32,
}

impl PositionHash {
    /// Takes multiplier and addend from the first 8 bytes of the key; an even multiplier would lose bits.
    fn new(key: &[u8; 32]) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *key;
        Self {
            multiplier: u32::from_le_bytes([a, b, c, d]) | 1,
            addend: u32::from_le_bytes([e, f, g, h]),
        }
    }

    fn of(self, word: [u8; WINDOW]) -> u32 {
        u32::from_le_bytes(word).wrapping_mul(self.multiplier).wrapping_add(self.addend)
    }
}

/// Returns the index of the last window in `bytes` with the smallest hash, and that hash: the reference that
/// every search must equal.
fn last_minimum(bytes: &[u8], hash: PositionHash) -> (usize, u32) {
    let mut best = (0, u32::MAX);
    for (index, window) in bytes.array_windows::<WINDOW>().enumerate() {
        let value = hash.of(*window);
        if value <= best.1 {
            best = (index, value);
        }
    }
    best
}

/// Cuts at the last minimum of a keyed hash from `min` to `max`.
#[derive(Clone)]
pub struct MinimumChunker {
    sizes: ChunkSizes,
    hash: PositionHash,
    search: Search,
}

impl MinimumChunker {
    /// Makes a chunker with a workspace's key, and with the fastest search of this processor.
    pub fn new(sizes: ChunkSizes, key: &[u8; 32]) -> Self {
        Self::with_search(sizes, key, Search::fastest())
    }

    /// Makes a chunker with a given search, to measure and to compare: all cut alike.
    pub fn with_search(sizes: ChunkSizes, key: &[u8; 32], search: Search) -> Self {
        Self { sizes, hash: PositionHash::new(key), search }
    }
}

impl Chunker for MinimumChunker {
    fn sizes(&self) -> ChunkSizes {
        self.sizes
    }

    fn cut(&self, window: &[u8], end_of_input: bool) -> Option<usize> {
        let ChunkSizes { min, max, .. } = self.sizes;
        if window.len() < max {
            // The rest of a file below `max` is one chunk: most files are this small, and one chunk is cheaper.
            return (end_of_input && !window.is_empty()).then_some(window.len());
        }
        Some(min + self.search.last_minimum(&window[min - WINDOW..max], self.hash))
    }
}

#[cfg(test)]
mod tests;
