//! How much may stand behind a chunk that is made from others, which are made from others again.
//!
//! *Goals*: whoever reads a chunk can tell before the first byte what it costs, and what writers make is always read. *Invariants*: what a
//! writer lets be a base keeps every record that is made from it within what readers take, however many such bases it has: at most
//! [`WRITTEN_BASES_MAX`], of [`RECORD_BASES_LENGTH_MAX`] bytes together.

use model::content::ChunkRef;

use super::{RECORD_BASES_LENGTH_MAX, RECORD_BASES_MAX};

/// How many deltas in a row a reader opens for a chunk.
const DEPTH_MAX: u32 = 16;

/// From how many chunks a reader makes one at most.
const CHUNKS_MAX: usize = 2048;

/// How many bytes these may have together.
const LENGTH_MAX: u64 = 128 * 1024 * 1024;

/// How many bases a writer gives a record, fewer than it may have: all chunks of a record have the bases of all behind them, and a row of
/// edits of the same chunks is to reach [`BASE_DEPTH_MAX`] before it reaches [`BASE_CHUNKS_MAX`].
pub const WRITTEN_BASES_MAX: usize = 16;

/// How many deltas in a row a base may be: half of what readers take, since others may have packed its own bases anew as deltas meanwhile.
const BASE_DEPTH_MAX: u32 = DEPTH_MAX / 2;

/// From how many chunks a base may be made.
const BASE_CHUNKS_MAX: usize = CHUNKS_MAX / WRITTEN_BASES_MAX;

/// How many bytes these may have together in any case, and in how many times the length of the base.
const BASE_LENGTH_MAX: u64 = LENGTH_MAX / 2 / WRITTEN_BASES_MAX as u64;
const BASE_LENGTH_FACTOR: u64 = LENGTH_MAX / RECORD_BASES_LENGTH_MAX / 2;

/// The chunks that a chunk is made from, and those that they are made from, each counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ancestry {
    /// How many deltas in a row are opened; 0 where the chunk rests whole.
    pub depth: u32,
    /// How many chunks they are.
    pub chunks: usize,
    /// How many bytes they have together.
    pub length: u64,
}

impl Ancestry {
    /// Tells whether a reader makes a chunk from so much. Packs of somebody hostile may name bases without end.
    pub fn is_readable(&self) -> bool {
        self.depth <= DEPTH_MAX && self.chunks <= CHUNKS_MAX && self.length <= LENGTH_MAX
    }

    /// Returns what stands behind a record at most that is made from chunks behind which this stands.
    pub fn of_record(bases: impl IntoIterator<Item = (ChunkRef, Self)>) -> Self {
        let add = |all: Self, (base, behind): (ChunkRef, Self)| Self {
            depth: all.depth.max(behind.depth + 1),
            chunks: all.chunks + behind.chunks + 1,
            length: all.length + behind.length + u64::from(base.length),
        };
        bases.into_iter().fold(Self::default(), add)
    }

    /// Tells whether a writer may store a record behind which this stands at most, made from what any bases are made from: half of what readers take,
    /// and one more delta than a base may have.
    pub fn lets_be_written(&self) -> bool {
        self.depth <= BASE_DEPTH_MAX + 1
            && self.chunks <= CHUNKS_MAX / 2
            && self.length <= LENGTH_MAX / 2
    }

    /// Tells whether a writer may make others from a chunk with this ancestry.
    pub fn lets_be_base(&self, chunk: &ChunkRef) -> bool {
        let relative = BASE_LENGTH_FACTOR * u64::from(chunk.length);
        self.depth < BASE_DEPTH_MAX
            && self.chunks < BASE_CHUNKS_MAX
            && self.length + u64::from(chunk.length) <= BASE_LENGTH_MAX.max(relative)
    }
}

// Half of the bytes for bases by their own length, half for those that have the least that any may have.
const _: () = assert!(
    BASE_LENGTH_FACTOR * RECORD_BASES_LENGTH_MAX + WRITTEN_BASES_MAX as u64 * BASE_LENGTH_MAX
        <= LENGTH_MAX
        && WRITTEN_BASES_MAX <= RECORD_BASES_MAX
);

#[cfg(test)]
mod tests {
    use model::ids::ChunkId;

    use super::*;

    fn chunk(length: u32) -> ChunkRef {
        ChunkRef { id: ChunkId::from_bytes([1; 32]), length }
    }

    #[test]
    fn record_of_bases_that_writers_take_is_read() {
        for length in [1, 16 << 10, 128 << 10, 1 << 20, 8 << 20] {
            let bases = (RECORD_BASES_LENGTH_MAX / u64::from(length)).min(WRITTEN_BASES_MAX as u64);
            let deepest = (0..=LENGTH_MAX)
                .step_by(4096)
                .map(|bytes| Ancestry {
                    depth: BASE_DEPTH_MAX - 1,
                    chunks: BASE_CHUNKS_MAX - 1,
                    length: bytes,
                })
                .take_while(|base| base.lets_be_base(&chunk(length)))
                .last()
                .expect("a whole chunk may always be a base");
            let record = Ancestry {
                depth: deepest.depth + 1,
                chunks: (deepest.chunks + 1) * bases as usize,
                length: (deepest.length + u64::from(length)) * bases,
            };
            assert!(record.is_readable(), "{length}: {record:?}");
        }
    }

    #[test]
    fn deep_wide_and_long_ancestries_are_neither_bases_nor_read_without_end() {
        let small = Ancestry { depth: 1, chunks: 1, length: 1 };
        assert!(small.lets_be_base(&chunk(10)) && small.is_readable());
        let half = [
            Ancestry { depth: BASE_DEPTH_MAX, ..small },
            Ancestry { chunks: BASE_CHUNKS_MAX, ..small },
            Ancestry { length: BASE_LENGTH_MAX, ..small },
        ];
        assert!(half.iter().all(|it| !it.lets_be_base(&chunk(10)) && it.is_readable()));
        let whole = [
            Ancestry { depth: DEPTH_MAX + 1, ..small },
            Ancestry { chunks: CHUNKS_MAX + 1, ..small },
            Ancestry { length: LENGTH_MAX + 1, ..small },
        ];
        assert!(whole.iter().all(|it| !it.is_readable()));
    }
}
