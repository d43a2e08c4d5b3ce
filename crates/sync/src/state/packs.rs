//! Where chunks rest, as far as this device has learned from the log and the packs. A chunk that is in several packs has one
//! place, and the others are [`spares`](super::spares).

use std::collections::HashSet;

use content::delta::Features;
use content::pack::Ancestry;
use model::checkpoint::PackPlace;
use model::{ChunkId, ChunkRef, NodeId, PackId, PackRef};
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, params};

use super::{State, bases, id_column, sketches};
use crate::error::{Result, SyncError};
use crate::prepare::KnownChunks;

/// The fact that every place of every chunk is kept, and not only the first that was learned.
const ALL_PLACES: &str = "places";

/// Tells all places of a chunk.
pub(super) const PLACES_OF: &str = "SELECT pack, record FROM chunks WHERE id = ?1
                   UNION SELECT pack, record FROM spares WHERE id = ?1 ORDER BY pack";

/// Where a chunk rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkPlace {
    /// Number of the pack in this database.
    pub pack: u64,
    /// Record in the pack.
    pub record: u32,
}

/// A pack of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPack {
    /// Number in this database.
    pub number: u64,
    /// The pack.
    pub id: PackId,
    /// Where it rests.
    pub place: PackPlace,
}

impl KnownPack {
    /// Returns the pack as an entry of the log names it.
    pub fn reference(&self) -> PackRef {
        PackRef { id: self.id, length: self.place.length }
    }
}

impl State {
    /// Learns of a pack; its index is still to be read.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn add_pack(&mut self, pack: &PackRef, inline_seq: Option<u64>) -> Result<()> {
        self.run(
            "INSERT OR IGNORE INTO packs (id, length, inline_seq, indexed) VALUES (?, ?, ?, 0)",
            params![pack.id.as_bytes(), pack.length as i64, inline_seq.map(|seq| seq as i64)],
        )
    }

    /// Returns the packs whose index was not read yet.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn unindexed_packs(&self) -> Result<Vec<KnownPack>> {
        self.rows(
            "SELECT number, id, length, inline_seq FROM packs WHERE indexed = 0",
            [],
            known_pack,
        )
    }

    /// Returns where a chunk rests.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn chunk(&self, id: &ChunkId) -> Result<Option<ChunkPlace>> {
        self.row("SELECT pack, record FROM chunks WHERE id = ?", [id.as_bytes()], place)
    }

    /// Returns all places where a chunk rests.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn chunk_places(&self, id: &ChunkId) -> Result<Vec<ChunkPlace>> {
        self.rows(PLACES_OF, [id.as_bytes()], place)
    }

    /// Tells every chunk with every pack that it is in.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn each_chunk(&self, mut visit: impl FnMut(ChunkId, ChunkPlace)) -> Result<()> {
        let sql = "SELECT pack, record, id FROM chunks
                   UNION ALL SELECT pack, record, id FROM spares";
        self.rows(sql, [], |row| {
            visit(ChunkId::from_bytes(id_column(row, 2)?), place(row)?);
            Ok(())
        })
        .map(drop)
    }

    /// Forgets packs that a cleanup removes, and every place in them.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn forget_packs(&mut self, condemned: &[PackId]) -> Result<()> {
        // An older program has kept one place of each chunk only: the others are learned anew, since that one may go.
        if self.fact(ALL_PLACES)?.is_none() {
            self.run("UPDATE packs SET indexed = 0 WHERE indexed = 1", [])?;
            self.set_fact(ALL_PLACES, &[])?;
        }
        for id in condemned {
            self.run("DELETE FROM packs WHERE id = ?", [id.as_bytes()])?;
        }
        for table in ["spares", "chunks", "bases"] {
            let sql = format!("DELETE FROM {table} WHERE pack NOT IN (SELECT number FROM packs)");
            self.run(&sql, [])?;
        }
        self.place_orphans()
    }

    /// Tells whether no chunk is known, so that looking for one is needless.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn has_no_chunks(&self) -> Result<bool> {
        Ok(self.row("SELECT 1 FROM chunks LIMIT 1", [], |_| Ok(()))?.is_none())
    }

    /// Returns a pack by its number.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn pack(&self, number: u64) -> Result<Option<KnownPack>> {
        let sql = "SELECT number, id, length, inline_seq FROM packs WHERE number = ?";
        self.row(sql, [number as i64], known_pack)
    }

    /// Returns a pack that the log names.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn pack_by_id(&self, id: &PackId) -> Result<Option<KnownPack>> {
        let sql = "SELECT number, id, length, inline_seq FROM packs WHERE id = ?";
        self.row(sql, [id.as_bytes()], known_pack)
    }

    /// Returns up to `limit` packs after `after` that rest in the store, in the order of their ids.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn stored_pack_page(&self, after: Option<&PackId>, limit: usize) -> Result<Vec<KnownPack>> {
        let after = after.map_or(&[][..], |id| id.as_bytes());
        let sql = "SELECT number, id, length, inline_seq FROM packs
                   WHERE id > ? AND inline_seq IS NULL ORDER BY id LIMIT ?";
        self.rows(sql, params![after, limit as i64], known_pack)
    }

    /// Returns how many packs rest in the store, and how many bytes they have.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn stored_packs_count(&self) -> Result<(u64, u64)> {
        let sql = "SELECT COUNT(*), COALESCE(SUM(length), 0) FROM packs WHERE inline_seq IS NULL";
        let counted =
            self.row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
        Ok(counted.map_or((0, 0), |(count, length)| (count as u64, length as u64)))
    }

    /// Returns up to `limit` packs after `after` in the order of their ids.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn pack_page(&self, after: Option<&PackId>, limit: usize) -> Result<Vec<KnownPack>> {
        let after = after.map_or(&[][..], |id| id.as_bytes());
        let sql =
            "SELECT number, id, length, inline_seq FROM packs WHERE id > ? ORDER BY id LIMIT ?";
        self.rows(sql, params![after, limit as i64], known_pack)
    }
}

impl State {
    /// Tells whether the log names a pack.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn knows_pack(&self, id: &PackId) -> Result<bool> {
        Ok(self.row("SELECT 1 FROM packs WHERE id = ?", [id.as_bytes()], |_| Ok(()))?.is_some())
    }

    /// Opens a second connection that finds chunks from another thread; nothing for a database in memory.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn chunk_reader(&self) -> Result<Option<StateReader>> {
        let Some(file) = self.connection.path().filter(|path| !path.is_empty()) else {
            return Ok(None);
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = self.database(Connection::open_with_flags(file, flags))?;
        // Within one transaction a query takes no locks. What is added meanwhile the upload itself remembers.
        self.database(connection.execute_batch("BEGIN"))?;
        let has_bases = self.database(bases::has_bases(&connection))?;
        Ok(Some(StateReader { connection, has_bases, place: self.place.clone() }))
    }

    /// Returns the ids of all chunks that packs have; for a database in memory, which is small.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn chunk_ids(&self) -> Result<HashSet<ChunkId>> {
        let rows = self
            .rows("SELECT id FROM chunks", [], |row| Ok(ChunkId::from_bytes(id_column(row, 0)?)))?;
        let mut ids: HashSet<ChunkId> = rows.into_iter().collect();
        if self.has_bases()? {
            for id in ids.clone() {
                if !self.can_be_made(&id)? {
                    ids.remove(&id);
                }
            }
        }
        Ok(ids)
    }

    /// Keeps a chunk list of a large file.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn keep_list(&self, id: &ChunkId, bytes: &[u8]) -> Result<()> {
        self.run(
            "INSERT OR IGNORE INTO lists (id, bytes) VALUES (?, ?)",
            params![id.as_bytes(), bytes],
        )
    }

    /// Returns a chunk list that is kept here.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn list(&self, id: &ChunkId) -> Result<Option<Vec<u8>>> {
        self.row("SELECT bytes FROM lists WHERE id = ?", [id.as_bytes()], |row| row.get(0))
    }

    /// Keeps a pack on this device until it can be stored.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn keep_pack(&mut self, id: &PackId, bytes: &[u8]) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO kept_packs (id, bytes) VALUES (?, ?)",
            params![id.as_bytes(), bytes],
        )
    }

    /// Returns a pack that is kept on this device.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn kept_pack(&self, id: &PackId) -> Result<Option<Vec<u8>>> {
        self.row("SELECT bytes FROM kept_packs WHERE id = ?", [id.as_bytes()], |row| row.get(0))
    }

    /// Removes a pack that is stored now.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn drop_kept_pack(&mut self, id: &PackId) -> Result<()> {
        self.run("DELETE FROM kept_packs WHERE id = ?", [id.as_bytes()])
    }
}

/// A connection that only finds chunks.
#[derive(Debug)]
pub struct StateReader {
    connection: Connection,
    /// Whether any chunk is made from others, so that it is not enough to have a place.
    has_bases: bool,
    place: String,
}

impl StateReader {
    fn database<T>(&self, found: rusqlite::Result<T>) -> Result<T> {
        found.map_err(|source| SyncError::Database { place: self.place.clone(), source })
    }
}

impl KnownChunks for Mutex<StateReader> {
    fn contains(&self, chunk: &ChunkId) -> Result<bool> {
        let reader = self.lock();
        let find = || {
            if reader.has_bases {
                return bases::can_be_made(&reader.connection, chunk, &HashSet::new());
            }
            let mut statement =
                reader.connection.prepare_cached("SELECT 1 FROM chunks WHERE id = ?")?;
            statement.exists([chunk.as_bytes()])
        };
        reader.database(find())
    }

    fn ancestry(&self, chunk: &ChunkRef) -> Result<Option<Ancestry>> {
        let reader = self.lock();
        reader.database(bases::ancestry(&reader.connection, chunk))
    }

    fn sketch(&self, node: &NodeId) -> Result<Option<Vec<u8>>> {
        let reader = self.lock();
        reader.database(sketches::sketch(&reader.connection, node))
    }

    fn similar(&self, features: &Features) -> Result<Option<Vec<u8>>> {
        let reader = self.lock();
        reader.database(sketches::similar(&reader.connection, features))
    }
}

pub(super) fn place(row: &rusqlite::Row<'_>) -> rusqlite::Result<ChunkPlace> {
    Ok(ChunkPlace { pack: row.get::<_, i64>(0)? as u64, record: row.get(1)? })
}

pub(super) fn known_pack(row: &rusqlite::Row<'_>) -> rusqlite::Result<KnownPack> {
    Ok(KnownPack {
        number: row.get::<_, i64>(0)? as u64,
        id: PackId::from_bytes(id_column(row, 1)?),
        place: PackPlace {
            length: row.get::<_, i64>(2)? as u64,
            inline_seq: row.get::<_, Option<i64>>(3)?.map(|seq| seq as u64),
        },
    })
}
