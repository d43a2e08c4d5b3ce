//! What is made on the way to one chunk of a file that is made from others, and what did not come out on that way.
//!
//! *Goals*: where a record does not give what it should, another one that has the same is asked. *Invariants*: no more is held than what a
//! reader takes by the one rule for all ([`Ancestry`]); whatever packs say, it ends. What was made for a record that failed is forgotten
//! before the next one is asked, which has as much room as that had; only how much was tried is remembered.

use std::collections::HashMap;

use model::{ChunkId, ChunkRef, PackId};

use crate::error::ContentError;
use crate::pack::Ancestry;

/// How many records are tried for what a chunk is made from, on the average: that many times as much is tried as may be held.
const TRIES: usize = 4;

/// A record, by its pack and its number.
pub(super) type RecordKey = (PackId, u32);

/// A chunk that others are made from.
struct Base {
    bytes: Vec<u8>,
    /// The fewest deltas in a row that lead to it.
    depth: u32,
}

/// What is made on the way to one chunk.
#[derive(Default)]
pub(super) struct Making {
    bases: HashMap<ChunkId, Base>,
    /// How many bytes these have.
    length: u64,
    /// What was made, in vain or not.
    tried: Ancestry,
    /// Records, or of one only the chunk in this place, that did not give what they should, and how many deltas in a row led to them: what is
    /// too deep there may be had where fewer do.
    failed: HashMap<(RecordKey, Option<usize>), u32>,
    /// Why the last of them did not.
    why: Option<ContentError>,
}

impl Making {
    /// Tells whether a chunk was made to which so many deltas in a row lead.
    pub(super) fn has(&mut self, base: &ChunkRef, depth: u32) -> bool {
        let known = self.bases.get_mut(&base.id);
        // It is kept as long as any that wants it.
        known.map(|known| known.depth = known.depth.min(depth)).is_some()
    }

    /// Returns the bytes of a chunk that was made.
    pub(super) fn bytes(&self, base: &ChunkRef) -> Option<&[u8]> {
        self.bases.get(&base.id).map(|base| base.bytes.as_slice())
    }

    /// Tells whether a reader makes this one, too, to which so many deltas in a row lead.
    pub(super) fn has_room(&self, base: &ChunkRef, depth: u32) -> bool {
        let (chunks, length) = (self.bases.len() + 1, self.length + u64::from(base.length));
        let tried = Ancestry {
            depth: 0,
            chunks: self.tried.chunks / TRIES,
            length: self.tried.length / TRIES as u64,
        };
        Ancestry { depth, chunks, length }.is_readable() && tried.is_readable()
    }

    /// Keeps a chunk that was made.
    pub(super) fn keep(&mut self, base: &ChunkRef, bytes: Vec<u8>, depth: u32) {
        self.length += u64::from(base.length);
        self.tried.chunks += 1;
        self.tried.length += u64::from(base.length);
        self.bases.insert(base.id, Base { bytes, depth });
    }

    /// Forgets what was made for records to which so many deltas in a row lead, and for those behind them.
    pub(super) fn forget_behind(&mut self, depth: u32) {
        self.bases.retain(|_, base| base.depth <= depth);
        self.length = self.bases.values().map(|base| base.bytes.len() as u64).sum();
    }

    /// Remembers that a record, or only the chunk in this place of it, does not give what it should where so many deltas in a row lead to it.
    ///
    /// # Errors
    /// The same error, where another record would be no better.
    pub(super) fn fail(
        &mut self,
        place: (RecordKey, Option<usize>),
        depth: u32,
        error: ContentError,
    ) -> Result<(), ContentError> {
        if !error.is_damage() {
            return Err(error);
        }
        self.why = Some(error);
        self.tried.chunks += 1;
        self.failed.insert(place, depth);
        Ok(())
    }

    /// Tells whether the chunk in a place of a record is not to be had from it where so many deltas in a row lead there.
    pub(super) fn has_failed(&self, key: RecordKey, position: usize, depth: u32) -> bool {
        let places = [None, Some(position)].map(|place| self.failed.get(&(key, place)));
        places.into_iter().flatten().any(|failed| *failed <= depth)
    }

    /// Returns why a chunk is not to be had.
    pub(super) fn why(&mut self) -> Option<ContentError> {
        self.why.take()
    }

    /// Makes room for the next chunk: this one is there.
    pub(super) fn end(&mut self) {
        let failed = std::mem::take(&mut self.failed);
        // What does not come out for itself comes out for nobody; of the others nobody knows that for another chunk.
        let failed = failed.into_iter().filter(|(_, depth)| *depth == 0).collect();
        *self = Self { failed, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(number: u32, length: u32) -> ChunkRef {
        let mut id = [0; 32];
        id[..4].copy_from_slice(&number.to_be_bytes());
        ChunkRef { id: ChunkId::from_bytes(id), length }
    }

    /// Makes as many chunks as there is room for, each `length` bytes by what it says.
    fn fill(making: &mut Making, length: u32, depth: u32) -> usize {
        let mut numbers = (0..100_000).map(|number| chunk(number, length));
        let made = numbers.by_ref().take_while(|base| {
            let has_room = making.has_room(base, depth);
            if has_room {
                making.keep(base, vec![0; length.min(1000) as usize], depth);
            }
            has_room
        });
        made.count()
    }

    #[test]
    fn what_is_held_is_bounded_by_number_bytes_and_depth() {
        assert_eq!(fill(&mut Making::default(), 1, 1), 2048);
        assert_eq!(fill(&mut Making::default(), 8 << 20, 1), 16);
        assert_eq!(fill(&mut Making::default(), 1, 17), 0);
    }

    #[test]
    fn what_failed_leaves_its_room_to_the_next_and_tries_end() {
        let mut making = Making::default();
        let mut tries = 0;
        // What one record has, to which no deltas lead, is kept.
        making.keep(&chunk(1 << 20, 10), vec![0; 10], 1);
        while fill(&mut making, 1000, 2) > 2000 {
            tries += 1;
            making.forget_behind(1);
            assert!(making.bytes(&chunk(1 << 20, 10)).is_some());
            assert_eq!((making.bases.len(), making.length), (1, 10));
        }
        assert!((2..=TRIES).contains(&tries), "{tries}");
        making.end();
        assert_eq!(fill(&mut making, 1, 1), 2048);
    }

    #[test]
    fn what_is_wanted_by_two_stays_as_long_as_the_nearer_one_wants_it() {
        let mut making = Making::default();
        making.keep(&chunk(1, 1), vec![1], 3);
        assert!(making.has(&chunk(1, 1), 1) && !making.has(&chunk(2, 1), 1));
        making.forget_behind(1);
        assert!(making.has(&chunk(1, 1), 3));
        making.forget_behind(0);
        assert!(making.bytes(&chunk(1, 1)).is_none());
    }

    #[test]
    fn record_that_failed_behind_many_deltas_is_asked_again_behind_fewer() {
        let (mut making, key) = (Making::default(), (PackId::from_bytes([1; 32]), 7));
        let missing = || ContentError::ChunkMissing { id: chunk(1, 1).id };
        making.fail((key, None), 5, missing()).expect("another may be better");
        assert!(making.has_failed(key, 0, 5) && making.has_failed(key, 9, 6));
        assert!(!making.has_failed(key, 0, 4) && !making.has_failed((key.0, 8), 0, 5));
        making.fail((key, Some(3)), 0, missing()).expect("another may be better");
        assert!(making.has_failed(key, 3, 0) && !making.has_failed(key, 2, 0));
        // For the next chunk only that is known which no deltas led to.
        making.end();
        assert!(making.has_failed(key, 3, 9) && !making.has_failed(key, 2, 9));
        assert!(making.fail((key, None), 0, ContentError::NeedsBases).is_err());
    }
}
