//! Brings what delta records are made from, for whoever reads files without a device.
//!
//! *Goals*: a chunk comes out wherever one of its packs, with whatever that one is made from, is whole. *Invariants*: whatever packs say, it
//! ends, and holds no more than what a reader takes by the one rule for all ([`Ancestry`]): what is made from what is made from others, and
//! so on, is given up beyond that. What a pack has begun in vain is forgotten before the next one is asked, which stands there as the first
//! did; only how much was tried is remembered. Each chunk is made once for a call, and compared with its id before anything is made from it.

use std::collections::HashMap;

use bytes::Bytes;
use content::ChunkNamer;
use content::pack::Ancestry;
use futures_util::future::{BoxFuture, FutureExt};
use model::{ChunkId, ChunkRef};

use super::opened::OpenRecords;
use super::packs::damaged;
use super::views::Reading;
use crate::app::App;
use crate::error::{Result, ServerError};

/// How many packs are tried for what a chunk is made from, on the average: that many times as much is tried as may be held.
const TRIES: usize = 4;

/// What was made on the way to one chunk.
#[derive(Debug, Default)]
pub(super) struct Making {
    made: HashMap<ChunkId, Bytes>,
    /// The same in the order in which it was begun, what is under way among it.
    begun: Vec<ChunkRef>,
    /// How many bytes that has.
    length: u64,
    /// What packs were asked for, in vain or not.
    tried: Ancestry,
}

impl Making {
    /// Counts one more chunk that a record wants that so many deltas in a row lead to.
    fn begin(&mut self, base: &ChunkRef, depth: u32) -> Result<()> {
        self.begun.push(*base);
        self.length += u64::from(base.length);
        let (chunks, length) = (self.begun.len(), self.length);
        match (Ancestry { depth, chunks, length }).is_readable() {
            true => Ok(()),
            false => Err(too_many(base)),
        }
    }

    /// Counts that one more pack is asked for a chunk.
    ///
    /// # Errors
    /// [`ServerError::Storage`] where it is enough.
    pub(super) fn try_once_more(&mut self, chunk: &ChunkRef) -> Result<()> {
        let Ancestry { chunks, length, .. } = &mut self.tried;
        *chunks += 1;
        *length += u64::from(chunk.length);
        let (chunks, length) = (*chunks / TRIES, *length / TRIES as u64);
        match (Ancestry { depth: 0, chunks, length }).is_readable() {
            true => Ok(()),
            false => Err(too_many(chunk)),
        }
    }

    /// Returns how much was begun until now.
    pub(super) fn mark(&self) -> usize {
        self.begun.len()
    }

    /// Forgets what was begun since: it was for a pack that does not have what it says.
    pub(super) fn forget_since(&mut self, mark: usize) {
        for base in self.begun.drain(mark..) {
            self.length -= u64::from(base.length);
            self.made.remove(&base.id);
        }
    }
}

fn too_many(chunk: &ChunkRef) -> ServerError {
    damaged(format!("chunk {} is made from too many others", chunk.id))
}

impl App {
    /// Returns the bytes of what a record is made from, in the order in which it wants them. So many deltas in a row were opened before.
    pub(super) fn bases<'a>(
        &'a self,
        reading: Reading,
        (bases, depth): (&'a [ChunkRef], u32),
        namer: &'a ChunkNamer,
        (open, making): (&'a mut OpenRecords, &'a mut Making),
    ) -> BoxFuture<'a, Result<Vec<Bytes>>> {
        let depth = depth + 1;
        let read = async move {
            let mut read = Vec::with_capacity(bases.len());
            for (base, packs) in bases.iter().zip(self.locate(reading, bases).await?) {
                let bytes = match making.made.get(&base.id) {
                    Some(bytes) => bytes.clone(),
                    None => {
                        making.begin(base, depth)?;
                        let wanted = (base, &packs[..], depth);
                        let found = self.make_chunk(reading, wanted, namer, open, making);
                        let bytes = found.await?;
                        making.made.insert(base.id, bytes.clone());
                        bytes
                    }
                };
                read.push(bytes);
            }
            Ok(read)
        };
        read.boxed()
    }
}

#[cfg(test)]
pub(super) mod tests;
