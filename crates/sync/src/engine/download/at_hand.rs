//! What records are made from, read from the version in the folder whose place the new one takes, so that it is not fetched.
//!
//! *Invariants*: bytes are at hand only where they are what the id of their chunk says; whatever cannot be read here is fetched.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use content::ChunkNamer;
use model::{ChunkId, ChunkRef, RelativePath};

use super::window::{Piece, Window, read_chunk};
use super::{Engine, Target};
use crate::error::Result;
use crate::file_system::FileSystem;

/// How many bytes are read from the folder for one window, or a chunk more.
const LENGTH_MAX: u64 = 16 * 1024 * 1024;

/// How many records are looked at for one piece: rows of deltas are short.
const RECORDS_MAX: usize = 1024;

impl Engine {
    /// Reads what records of a window are made from, and what that is made from, as far as the folder has it.
    pub(super) async fn at_hand(
        &mut self,
        window: &Window,
        targets: &[Target],
    ) -> Result<HashMap<ChunkId, Bytes>> {
        let mut all = HashMap::new();
        if !self.state.has_bases()? {
            return Ok(all);
        }
        for (piece, _) in &window.pieces {
            let target = &targets[piece.target];
            let found = self.bases_in_folder(piece, target).await?;
            if found.is_empty() {
                continue;
            }
            let (file_system, namer) =
                (self.environment.file_system.clone(), self.fetcher.namer().clone());
            let path = target.path.clone();
            let read = move || read_right_ones(&*file_system, &path, &found, &namer);
            all.extend(self.environment.workers.run(read).await);
        }
        Ok(all)
    }

    /// Finds chunks that the records of a piece are made from, with the places in bytes at which the version in the folder has them.
    async fn bases_in_folder(
        &mut self,
        piece: &Piece,
        target: &Target,
    ) -> Result<Vec<(ChunkRef, u64)>> {
        let Some(base) = &target.base else { return Ok(Vec::new()) };
        let mut offsets: Option<HashMap<ChunkRef, u64>> = None;
        let mut unseen: Vec<_> = piece.places().collect();
        let (mut seen, mut known) = (HashSet::new(), HashSet::new());
        let (mut found, mut length) = (Vec::new(), 0);
        while let Some(place) = unseen.pop() {
            if !seen.insert(place) || seen.len() > RECORDS_MAX {
                continue;
            }
            for chunk in self.state.bases(place)? {
                if !known.insert(chunk.id) || length >= LENGTH_MAX {
                    continue;
                }
                let offsets = match &mut offsets {
                    Some(offsets) => offsets,
                    none => {
                        // Without the list of its chunks nothing is at hand.
                        let old = self.fetcher.expand(&self.state, base).await.unwrap_or_default();
                        none.insert(offsets_of(&old))
                    }
                };
                match offsets.get(&chunk) {
                    Some(offset) => {
                        length += u64::from(chunk.length);
                        found.push((chunk, *offset));
                    }
                    // It may be made from what is there.
                    None => unseen.extend(self.state.chunk(&chunk.id)?),
                }
            }
        }
        // As they lie in the file.
        found.sort_unstable_by_key(|(_, offset)| *offset);
        Ok(found)
    }
}

/// Returns where chunks begin that follow each other, each where it is for the first time.
pub(super) fn offsets_of(chunks: &[ChunkRef]) -> HashMap<ChunkRef, u64> {
    let (mut offsets, mut offset) = (HashMap::new(), 0);
    for chunk in chunks {
        offsets.entry(*chunk).or_insert(offset);
        offset += u64::from(chunk.length);
    }
    offsets
}

/// Reads chunks of a file, and leaves out what somebody has edited meanwhile.
fn read_right_ones(
    file_system: &dyn FileSystem,
    path: &RelativePath,
    chunks: &[(ChunkRef, u64)],
    namer: &ChunkNamer,
) -> HashMap<ChunkId, Bytes> {
    let mut read = HashMap::new();
    let Ok(mut file) = file_system.open(path) else { return read };
    let mut buffer = Vec::new();
    for (chunk, offset) in chunks {
        let is_read = read_chunk(&mut file, Some(*offset), chunk, &mut buffer).is_ok();
        if is_read && namer.verify(chunk.id, &buffer).is_ok() {
            read.insert(chunk.id, Bytes::copy_from_slice(&buffer));
        }
    }
    read
}
