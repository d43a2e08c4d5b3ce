//! FastCDC (Xia et al., 2020): the rolling gear hash of the field, from the crate of the same name.

use std::borrow::Cow;

use fastcdc::v2020::{Normalization, cut_gear, get_gear_with_seed, select_masks};

use super::{ChunkSizes, Chunker};

/// Cuts where a gear hash has zeros under a mask.
///
/// The gear table is the published one, XORed with the first 8 bytes of the workspace's key. Research of 2025
/// recovers such seeds from chunk lengths; here lengths never leave the packs.
pub struct FastCdcChunker {
    sizes: ChunkSizes,
    masks: (u64, u64),
    gear: (Cow<'static, [u64]>, Cow<'static, [u64]>),
}

impl FastCdcChunker {
    /// Makes a chunker with a workspace's key.
    pub fn new(sizes: ChunkSizes, key: &[u8; 32]) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *key;
        Self {
            sizes,
            masks: select_masks(sizes.average, Normalization::Level1),
            gear: get_gear_with_seed(u64::from_le_bytes([a, b, c, d, e, f, g, h])),
        }
    }
}

impl Chunker for FastCdcChunker {
    fn sizes(&self) -> ChunkSizes {
        self.sizes
    }

    fn cut(&self, window: &[u8], end_of_input: bool) -> Option<usize> {
        let ChunkSizes { min, average, max } = self.sizes;
        if window.len() < max && !end_of_input || window.is_empty() {
            return None;
        }
        let (small, large) = self.masks;
        let (small_shifted, large_shifted) = (small << 1, large << 1);
        let (gear, gear_shifted) = &self.gear;
        let (_, length) = cut_gear(
            &window[..window.len().min(max)],
            min,
            average,
            max,
            small,
            large,
            small_shifted,
            large_shifted,
            gear,
            gear_shifted,
        );
        Some(length)
    }
}
