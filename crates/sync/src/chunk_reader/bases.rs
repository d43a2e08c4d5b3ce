//! Brings what delta records are made from.
//!
//! *Invariants*: whatever packs say, it ends: what is made from what is made from others, and so on, is given up after a number of
//! steps; a base that cannot be read spoils what is made from it and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{FutureExt, LocalBoxFuture};
use model::ChunkRef;

use super::{Bases, ChunkFetcher, StoredRecord};
use crate::error::{Result, SyncError};
use crate::state::{ChunkPlace, State};

/// How many deltas in a row are opened for a chunk. Writers make eight at most.
const DEPTH_MAX: u32 = 16;

/// How many times records are asked for because others are made from them, for one call from outside.
const FETCHES_MAX: u32 = 16 * 1024;

impl ChunkFetcher {
    /// Fetches records that are not open yet, as they are stored, and what they are made from. `depth` is how many deltas already wait
    /// for them.
    pub(super) fn fetch_with_bases<'a>(
        &'a mut self,
        state: &'a State,
        places: &'a BTreeSet<ChunkPlace>,
        depth: u32,
    ) -> LocalBoxFuture<'a, Result<BTreeMap<ChunkPlace, StoredRecord>>> {
        self.fetches_for_bases = if depth == 0 { 0 } else { self.fetches_for_bases + 1 };
        let fetch = async move {
            let mut found = self.fetch_stored(state, places).await?;
            let mut wanted = BTreeSet::new();
            for record in found.values() {
                for base in record.index.bases(record.number)? {
                    // What is nowhere is said by whoever needs it.
                    wanted.extend(state.chunk(&base.id)?);
                }
            }
            if !wanted.is_empty() && self.may_go_on(depth + 1) {
                // All at once: they are kept until they are asked for one by one.
                match self.open_at_depth(state, &wanted, depth + 1).await {
                    Err(error) if error.is_of_stored_data() => {}
                    opened => drop(opened?),
                }
            }
            for record in found.values_mut() {
                let bases = record.index.bases(record.number)?.to_vec();
                record.bases = self.read_bases(state, &bases, depth + 1).await?;
            }
            Ok(found)
        };
        fetch.boxed_local()
    }

    /// Makes sure that it is known where everything rests that these records are made from, waiting for packs that are expected.
    ///
    /// # Errors
    /// What reading the index of a pack may fail with; what is nowhere is no error here.
    pub async fn place_bases(
        &mut self,
        state: &mut State,
        places: &BTreeSet<ChunkPlace>,
    ) -> Result<()> {
        if !self.expects_packs() || !state.has_bases()? {
            return Ok(());
        }
        let mut unseen: Vec<ChunkPlace> = places.iter().copied().collect();
        let mut seen = places.clone();
        while let Some(place) = unseen.pop() {
            for base in state.bases(place)? {
                match self.place(state, &base, true).await {
                    Ok(Some(place)) if seen.insert(place) => unseen.push(place),
                    Ok(_) => {}
                    Err(error) if error.is_of_stored_data() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Reads what a record of whatever pack is made from; nothing where some of it cannot be read.
    ///
    /// # Errors
    /// [`SyncError`], but for damage.
    pub async fn bases_of(
        &mut self,
        state: &State,
        bases: &[ChunkRef],
    ) -> Result<Option<Vec<Vec<u8>>>> {
        self.fetches_for_bases = 0;
        Ok(self.read_bases(state, bases, 1).await?.ok())
    }

    /// Tells whether another row of deltas is still to be opened: packs of somebody hostile may name bases without end.
    fn may_go_on(&self, depth: u32) -> bool {
        depth <= DEPTH_MAX && self.fetches_for_bases < FETCHES_MAX
    }

    /// Reads what a record is made from, or says what of it cannot be read.
    async fn read_bases(&mut self, state: &State, bases: &[ChunkRef], depth: u32) -> Result<Bases> {
        let mut read = Vec::with_capacity(bases.len());
        for base in bases {
            if !self.may_go_on(depth) {
                return Ok(Err(base.id));
            }
            match self.chunk_at_depth(state, base, depth).await {
                Ok(bytes) => read.push(bytes),
                Err(SyncError::ChunkMissing(missing)) => return Ok(Err(missing)),
                Err(error) if error.is_of_stored_data() => return Ok(Err(base.id)),
                Err(error) => return Err(error),
            }
        }
        Ok(Ok(read))
    }
}
