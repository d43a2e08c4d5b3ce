//! Chunks that are in several packs, and packs that are lost or damaged.
//!
//! *Goals*: what a device puts back into a new pack is found there by all devices; a chunk that is damaged in one pack is read
//! from another that has it. *Invariants*: a chunk with spares has a place; of several packs the one that the log named last is
//! the place, until it turns out to be bad; the chunks of a distrusted pack count as unknown, so that they are packed again.
//!
//! | `packs.indexed` | means |
//! |---|---|
//! | 0 | its index is still to be read |
//! | 1 | its chunks are known |
//! | 2 | it was found damaged: nothing in it counts, until somebody finds it whole |

use model::{ChunkId, PackId};
use rusqlite::params;

use super::packs::{ChunkPlace, KnownPack, known_pack};
use super::{State, id_column};
use crate::error::Result;

/// Made wherever it is missing, so that databases without it stay good.
pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS spares (
    id BLOB NOT NULL, pack INTEGER NOT NULL, record INTEGER NOT NULL, PRIMARY KEY (id, pack)) WITHOUT ROWID;
";

/// What makes a pack count again or no more.
const INDEX_WANTED: i64 = 0;
const DISTRUSTED: i64 = 2;

impl State {
    /// Learns which chunks a pack holds, each with its record. What is in an older pack, too, is found in the newer one from
    /// now on: it may be there because the older one is lost. But what rests whole in one of them is found there: where it is made from
    /// others, these have to be read, too. Of a chunk that is in several records of the pack the first counts, as for whoever reads without
    /// a database.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn add_chunks(
        &mut self,
        pack: &PackId,
        chunks: impl IntoIterator<Item = (ChunkId, u32)>,
    ) -> Result<()> {
        let sql = "SELECT number FROM packs WHERE id = ?";
        let number = self.row(sql, [pack.as_bytes()], |row| row.get::<_, i64>(0))?;
        let number = number.expect("a pack is known before its chunks") as u64;
        for (chunk, record) in chunks {
            let place = ChunkPlace { pack: number, record };
            let sql = "INSERT OR IGNORE INTO chunks (id, pack, record) VALUES (?, ?, ?)";
            if self.count(sql, params![chunk.as_bytes(), number as i64, record])? == 0 {
                self.add_place(&chunk, place)?;
            }
        }
        self.run("UPDATE packs SET indexed = 1 WHERE number = ?", [number as i64])
    }

    /// Learns another place of a chunk that has one.
    fn add_place(&self, chunk: &ChunkId, place: ChunkPlace) -> Result<()> {
        let Some(known) = self.chunk(chunk)? else { return Ok(()) };
        if known.pack == place.pack || self.has_spare(chunk, place.pack)? {
            return Ok(());
        }
        let is_better = self.rank(place)? > self.rank(known)?;
        let (better, other) = if is_better { (place, known) } else { (known, place) };
        self.add_spare(chunk, other)?;
        self.set_place(chunk, better)
    }

    /// Returns what makes a place better than another: that chunks rest whole there, and then that it is newer.
    fn rank(&self, place: ChunkPlace) -> Result<(bool, u64)> {
        Ok((self.bases(place)?.is_empty(), place.pack))
    }

    /// Tells whether a pack is among the spares of a chunk.
    fn has_spare(&self, chunk: &ChunkId, pack: u64) -> Result<bool> {
        let sql = "SELECT 1 FROM spares WHERE id = ? AND pack = ?";
        Ok(self.row(sql, params![chunk.as_bytes(), pack as i64], |_| Ok(()))?.is_some())
    }

    fn add_spare(&self, chunk: &ChunkId, place: ChunkPlace) -> Result<()> {
        self.run(
            "INSERT OR IGNORE INTO spares (id, pack, record) VALUES (?, ?, ?)",
            params![chunk.as_bytes(), place.pack as i64, place.record],
        )
    }

    fn set_place(&self, chunk: &ChunkId, place: ChunkPlace) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO chunks (id, pack, record) VALUES (?, ?, ?)",
            params![chunk.as_bytes(), place.pack as i64, place.record],
        )
    }

    /// Tells whether any chunk has a spare.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn has_spares(&self) -> Result<bool> {
        Ok(self.row("SELECT 1 FROM spares LIMIT 1", [], |_| Ok(()))?.is_some())
    }

    /// Gives a chunk whose pack is gone its newest spare as its place. Returns whether there is one.
    fn turn_to_spare(&self, chunk: &ChunkId) -> Result<bool> {
        let sql = "SELECT pack, record FROM spares WHERE id = ? ORDER BY pack DESC LIMIT 1";
        let spare = self.row(sql, [chunk.as_bytes()], |row| {
            Ok(ChunkPlace { pack: row.get::<_, i64>(0)? as u64, record: row.get(1)? })
        })?;
        let Some(spare) = spare else { return Ok(false) };
        self.take_spare(chunk, spare)?;
        Ok(true)
    }

    /// Has a chunk looked for in one of its spares from now on. Where it was until now becomes a spare, though it was bad: others may read it
    /// there, and a cleanup must not take its pack for one without it.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn turn_to(&self, chunk: &ChunkId, spare: ChunkPlace) -> Result<()> {
        let known = self.chunk(chunk)?.filter(|known| *known != spare);
        self.take_spare(chunk, spare)?;
        known.map_or(Ok(()), |known| self.add_spare(chunk, known))
    }

    fn take_spare(&self, chunk: &ChunkId, spare: ChunkPlace) -> Result<()> {
        self.run(
            "DELETE FROM spares WHERE id = ? AND pack = ?",
            params![chunk.as_bytes(), spare.pack as i64],
        )?;
        self.set_place(chunk, spare)
    }

    /// Gives a place to every chunk that has only spares.
    pub(super) fn place_orphans(&self) -> Result<()> {
        let orphaned = self.rows(
            "SELECT DISTINCT id FROM spares WHERE id NOT IN (SELECT id FROM chunks)",
            [],
            |row| Ok(ChunkId::from_bytes(id_column(row, 0)?)),
        )?;
        orphaned.iter().try_for_each(|chunk| self.turn_to_spare(chunk).map(drop))
    }

    /// Forgets what a lost or damaged pack holds: its chunks are where else they are, or nowhere. One that `is_there` is damaged,
    /// and is not looked into again; one that is not counts again as soon as it is back.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn distrust_pack(&mut self, id: &PackId, is_there: bool) -> Result<()> {
        let Some(pack) = self.pack_by_id(id)? else { return Ok(()) };
        let number = pack.number as i64;
        self.transaction(|state| {
            state.run("DELETE FROM spares WHERE pack = ?", [number])?;
            state.run("DELETE FROM chunks WHERE pack = ?", [number])?;
            state.place_orphans()?;
            let indexed = if is_there { DISTRUSTED } else { INDEX_WANTED };
            state.run("UPDATE packs SET indexed = ? WHERE number = ?", [indexed, number])
        })
    }

    /// Returns the packs that were found damaged.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn distrusted_packs(&self) -> Result<Vec<KnownPack>> {
        let sql = "SELECT number, id, length, inline_seq FROM packs WHERE indexed = ?";
        self.rows(sql, [DISTRUSTED], known_pack)
    }

    /// Lets a pack count again that was found whole.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn trust_pack(&mut self, id: &PackId) -> Result<()> {
        self.run(
            "UPDATE packs SET indexed = ? WHERE id = ? AND indexed = ?",
            params![INDEX_WANTED, id.as_bytes(), DISTRUSTED],
        )
    }
}

#[cfg(test)]
mod tests;
