//! What the delta records of packs are made from, so that nobody forgets what others need.
//!
//! *Goals*: a cleanup can tell from this alone what else a needed chunk needs. *Invariants*: the bases of a record are there as soon as
//! its chunks are; a program that knows no bases does not open a database that has some.
//!
//! Why there are such records: `docs/decisions/0018-deltas-are-records.md`.

use std::collections::{HashMap, HashSet};

use model::{ChunkId, ChunkRef};
use rusqlite::{Connection, params};

use super::packs::{ChunkPlace, PLACES_OF};
use super::{DELTAS_SCHEMA_VERSION, State, id_column};
use crate::error::Result;

/// Made wherever it is missing, so that databases without it stay good.
pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS bases (
    pack INTEGER NOT NULL, record INTEGER NOT NULL, position INTEGER NOT NULL, id BLOB NOT NULL, length INTEGER NOT NULL,
    PRIMARY KEY (pack, record, position)) WITHOUT ROWID;
";

/// Tells what a record is made from, in the order in which it wants it.
const BASES_OF: &str =
    "SELECT id, length FROM bases WHERE pack = ? AND record = ? ORDER BY position";

/// How many chunks are looked up to find out whether one can be made.
const LOOKS_MAX: u32 = 16 * 1024;

/// Tells whether any chunk is made from others.
pub(super) fn has_bases(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM bases LIMIT 1")?.exists([])
}

/// Tells whether a chunk can be made from what packs have: in one of them it rests whole, or all of what it is made from there can be made.
pub(super) fn can_be_made(connection: &Connection, chunk: &ChunkId) -> rusqlite::Result<bool> {
    let (above, made) = (Vec::new(), HashSet::new());
    Look { connection, above, made, looks: 0 }.can_be_made(*chunk)
}

/// A look for what a chunk can be made from.
struct Look<'a> {
    connection: &'a Connection,
    /// What is to be made from the chunk that is looked for: that serves for nothing below.
    above: Vec<ChunkId>,
    /// What can be made: the chunks of a record have all its bases in common.
    made: HashSet<ChunkId>,
    looks: u32,
}

impl Look<'_> {
    fn can_be_made(&mut self, chunk: ChunkId) -> rusqlite::Result<bool> {
        if self.made.contains(&chunk) {
            return Ok(true);
        }
        self.looks += 1;
        if self.above.contains(&chunk) || self.looks > LOOKS_MAX {
            return Ok(false);
        }
        self.above.push(chunk);
        let can = self.can_be_made_anywhere(&chunk)?;
        self.above.pop();
        if can {
            self.made.insert(chunk);
        }
        Ok(can)
    }

    fn can_be_made_anywhere(&mut self, chunk: &ChunkId) -> rusqlite::Result<bool> {
        for place in self.places(chunk)? {
            let mut can = true;
            for base in self.bases(place)? {
                can = can && self.can_be_made(base)?;
            }
            if can {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn places(&self, chunk: &ChunkId) -> rusqlite::Result<Vec<(i64, u32)>> {
        let mut statement = self.connection.prepare_cached(PLACES_OF)?;
        let rows = statement.query_map([chunk.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }

    fn bases(&self, (pack, record): (i64, u32)) -> rusqlite::Result<Vec<ChunkId>> {
        let mut statement = self.connection.prepare_cached(BASES_OF)?;
        let id = |row: &rusqlite::Row<'_>| Ok(ChunkId::from_bytes(id_column(row, 0)?));
        statement.query_map(params![pack, record], id)?.collect()
    }
}

impl State {
    /// Tells whether any chunk is made from others.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn has_bases(&self) -> Result<bool> {
        self.database(has_bases(&self.connection))
    }

    /// Tells whether a chunk can be made from what packs have, as far as this device knows them.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn can_be_made(&self, chunk: &ChunkId) -> Result<bool> {
        self.database(can_be_made(&self.connection, chunk))
    }

    /// Learns what a record is made from.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub(crate) fn add_bases(&mut self, place: ChunkPlace, bases: &[ChunkRef]) -> Result<()> {
        if bases.is_empty() {
            return Ok(());
        }
        self.require_version(DELTAS_SCHEMA_VERSION)?;
        for (base, position) in bases.iter().zip(0_i64..) {
            self.run(
                "INSERT OR REPLACE INTO bases (pack, record, position, id, length) VALUES (?, ?, ?, ?, ?)",
                params![
                    place.pack as i64,
                    place.record,
                    position,
                    base.id.as_bytes(),
                    base.length
                ],
            )?;
        }
        Ok(())
    }

    /// Returns what the chunks of a record are made from; nothing for a record that rests whole.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn bases(&self, place: ChunkPlace) -> Result<Vec<ChunkRef>> {
        self.rows(BASES_OF, params![place.pack as i64, place.record], |row| {
            Ok(ChunkRef { id: ChunkId::from_bytes(id_column(row, 0)?), length: row.get(1)? })
        })
    }

    /// Returns what every delta record is made from.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn all_bases(&self) -> Result<HashMap<ChunkPlace, Vec<ChunkRef>>> {
        let sql = "SELECT pack, record, id, length FROM bases ORDER BY pack, record, position";
        let mut all: HashMap<ChunkPlace, Vec<ChunkRef>> = HashMap::new();
        self.rows(sql, [], |row| {
            let place = ChunkPlace { pack: row.get::<_, i64>(0)? as u64, record: row.get(1)? };
            let id = ChunkId::from_bytes(id_column(row, 2)?);
            all.entry(place).or_default().push(ChunkRef { id, length: row.get(3)? });
            Ok(())
        })?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use model::{PackId, PackRef};

    use super::*;

    fn chunk(number: u8) -> ChunkId {
        ChunkId::from_bytes([number; 32])
    }

    /// A state with packs, each of one record that has these chunks and is made from these.
    fn state_of(packs: &[(&[u8], &[u8])]) -> State {
        let mut state = State::in_memory();
        for ((chunks, bases), number) in packs.iter().zip(1..) {
            let pack = PackId::from_bytes([number; 32]);
            state.add_pack(&PackRef { id: pack, length: 10 }, None).expect("added");
            let chunks = chunks.iter().map(|number| (chunk(*number), 0));
            state.add_chunks(&pack, chunks).expect("added");
            let number = state.pack_by_id(&pack).expect("read").expect("known").number;
            let bases: Vec<ChunkRef> =
                bases.iter().map(|base| ChunkRef { id: chunk(*base), length: 5 }).collect();
            state.add_bases(ChunkPlace { pack: number, record: 0 }, &bases).expect("added");
        }
        state
    }

    fn made(state: &State, chunks: &[u8]) -> Vec<bool> {
        chunks.iter().map(|number| state.can_be_made(&chunk(*number)).expect("read")).collect()
    }

    #[test]
    fn chunk_can_be_made_where_all_that_it_is_made_from_can() {
        let state = state_of(&[(&[1], &[]), (&[2], &[1]), (&[3], &[2, 1]), (&[4], &[3, 9])]);
        assert_eq!(made(&state, &[1, 2, 3, 4, 9]), [true, true, true, false, false]);
        // Another pack has it, too, from something that is there.
        let state = state_of(&[(&[1], &[]), (&[4], &[9]), (&[4], &[1])]);
        assert_eq!(made(&state, &[4]), [true]);
    }

    #[test]
    fn chunks_that_are_made_from_each_other_are_made_from_nothing() {
        let state = state_of(&[(&[1], &[2]), (&[2], &[1]), (&[3], &[3])]);
        assert_eq!(made(&state, &[1, 2, 3]), [false, false, false]);
        let state = state_of(&[(&[1], &[2]), (&[2], &[1]), (&[2], &[])]);
        assert_eq!(made(&state, &[1, 2]), [true, true]);
    }

    #[test]
    fn many_chunks_with_many_bases_in_common_are_looked_up_once_each() {
        let rows: Vec<Vec<u8>> = (0..12).map(|row| (row * 20..row * 20 + 20).collect()).collect();
        let packs: Vec<(&[u8], &[u8])> = (0..12)
            .map(|row| (&rows[row][..], if row == 0 { &[][..] } else { &rows[row - 1][..] }))
            .collect();
        assert_eq!(made(&state_of(&packs), &[239]), [true]);
    }

    #[test]
    fn bases_keep_older_programs_out_and_are_forgotten_with_their_pack() {
        let version = |state: &State| -> i64 {
            let sql = "PRAGMA user_version";
            state.connection.query_row(sql, [], |row| row.get(0)).expect("read")
        };
        assert_eq!(version(&state_of(&[(&[1], &[])])), super::super::SCHEMA_VERSION);
        let mut state = state_of(&[(&[1], &[]), (&[2], &[1])]);
        state.require_mounts().expect("done");
        assert_eq!(version(&state), DELTAS_SCHEMA_VERSION);
        assert_eq!(state.all_bases().expect("read").len(), 1);
        state.forget_packs(&[PackId::from_bytes([2; 32])]).expect("forgotten");
        assert!(state.all_bases().expect("read").is_empty());
        let again = State::from_connection(state.into_connection());
        assert_eq!(version(&again.expect("opens")), DELTAS_SCHEMA_VERSION);
    }
}
