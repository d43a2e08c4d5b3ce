//! What records are made from, read from the version in the folder whose place the new one takes, so that it is not fetched.
//!
//! *Invariants*: bytes are at hand only where they are what the id of their chunk says; whatever cannot be read here is fetched.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use content::ChunkNamer;
use futures_util::future::join_all;
use model::{ChunkId, ChunkRef, RelativePath};

use super::window::{Piece, Window, read_chunk};
use super::{Engine, Target};
use crate::error::Result;
use crate::file_system::FileSystem;

/// How many bytes are read from the folder for one window, or a chunk more: less than what is kept while records are made.
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
        if !self.state.has_bases()? {
            return Ok(HashMap::new());
        }
        let (mut jobs, mut room) = (Vec::new(), LENGTH_MAX);
        for (piece, _) in &window.pieces {
            let found = self.bases_in_folder(piece, &mut room)?;
            if found.is_empty() {
                continue;
            }
            let (file_system, namer) =
                (self.environment.file_system.clone(), self.fetcher.namer().clone());
            let path = targets[piece.target].path.clone();
            let read = move || read_right_ones(&*file_system, &path, &found, &namer);
            jobs.push(self.environment.workers.run(read));
        }
        let read = self.fetcher.beside(join_all(jobs)).await;
        Ok(read.into_iter().flatten().collect())
    }

    /// Finds chunks that the records of a piece are made from, with the places in bytes at which the version in the folder has them, as
    /// long as there is room for so many bytes.
    fn bases_in_folder(&self, piece: &Piece, room: &mut u64) -> Result<Vec<(ChunkRef, u64)>> {
        let mut found = Vec::new();
        if piece.old.is_empty() {
            return Ok(found);
        }
        // A record that is open needs nothing any more.
        let mut unseen: Vec<_> =
            piece.places().filter(|place| self.fetcher.kept(place).is_none()).collect();
        let (mut seen, mut known) = (HashSet::new(), HashSet::new());
        while let Some(place) = unseen.pop() {
            if !seen.insert(place) || seen.len() > RECORDS_MAX {
                continue;
            }
            for chunk in self.state.bases(place)? {
                if !known.insert(chunk.id) || *room == 0 {
                    continue;
                }
                match piece.old.get(&chunk) {
                    Some(offset) => {
                        *room = room.saturating_sub(u64::from(chunk.length));
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

#[cfg(test)]
mod tests;
