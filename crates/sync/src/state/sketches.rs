//! What this device keeps of files, so that their next versions are stored as changes of them.
//!
//! *Goals*: an edit costs what it changed. *Non-goals*: being there: a sketch may be forgotten at any time, and then chunks that were edited
//! are stored whole. *Invariants*: all sketches together keep within a bound, and those that were made longest ago go first; a sketch says
//! nothing of which chunks are stored, which everybody who uses it asks for himself.

use model::NodeId;
use rusqlite::{Connection, OptionalExtension, params};

use super::State;
use crate::error::Result;

/// Made wherever it is missing, so that databases without it stay good.
pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS sketches (number INTEGER PRIMARY KEY, node BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL);
";

/// How many bytes all sketches have together: those of some 1.2 GB of files.
pub const LENGTH_MAX: i64 = 64 * 1024 * 1024;

/// Returns what is kept of a file.
pub(super) fn sketch(connection: &Connection, node: &NodeId) -> rusqlite::Result<Option<Vec<u8>>> {
    let sql = "SELECT bytes FROM sketches WHERE node = ?";
    connection.prepare_cached(sql)?.query_row([node.as_bytes()], |row| row.get(0)).optional()
}

impl State {
    /// Returns what is kept of a file.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn sketch(&self, node: &NodeId) -> Result<Option<Vec<u8>>> {
        self.database(sketch(&self.connection, node))
    }

    /// Keeps sketches of files in place of those before, and forgets the oldest where there are too many.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn keep_sketches(&mut self, sketches: &[(NodeId, Vec<u8>)]) -> Result<()> {
        for (node, bytes) in sketches {
            // A row that replaces another gets a number of its own, the highest.
            self.run(
                "INSERT OR REPLACE INTO sketches (node, bytes) VALUES (?, ?)",
                params![node.as_bytes(), bytes],
            )?;
        }
        let more: i64 = sketches.iter().map(|(_, bytes)| bytes.len() as i64).sum();
        let known = match self.sketches_length.get() {
            Some(known) => known + more,
            None if sketches.is_empty() => return Ok(()),
            None => self.sum_sketches()?,
        };
        self.sketches_length.set(Some(known));
        if known <= LENGTH_MAX {
            return Ok(());
        }
        self.run(
            "DELETE FROM sketches WHERE number IN (SELECT number FROM (
                 SELECT number, SUM(LENGTH(bytes)) OVER (ORDER BY number DESC) AS length FROM sketches)
             WHERE length > ?)",
            [LENGTH_MAX],
        )?;
        self.sketches_length.set(Some(self.sum_sketches()?));
        Ok(())
    }

    fn sum_sketches(&self) -> Result<i64> {
        let sql = "SELECT COALESCE(SUM(LENGTH(bytes)), 0) FROM sketches";
        Ok(self.row(sql, [], |row| row.get(0))?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use model::testing::node;

    use super::*;

    #[test]
    fn newest_sketches_are_kept_as_far_as_there_is_room() {
        let mut state = State::in_memory();
        let third = vec![7; (LENGTH_MAX / 3) as usize];
        for number in 1..=3 {
            state.keep_sketches(&[(node(number), third.clone())]).expect("kept");
        }
        state.keep_sketches(&[(node(1), vec![1])]).expect("kept");
        assert_eq!(state.sketch(&node(1)).expect("read"), Some(vec![1]));
        state.keep_sketches(&[(node(4), third)]).expect("kept");
        // What was replaced counts as new.
        let is_there = |number| state.sketch(&node(number)).expect("read").is_some();
        assert_eq!([1, 2, 3, 4].map(is_there), [true, true, true, true]);
        let mut state = state;
        state.keep_sketches(&[(node(5), vec![5; 100])]).expect("kept");
        let is_there = |number| state.sketch(&node(number)).expect("read").is_some();
        assert_eq!([1, 2, 3, 4, 5].map(is_there), [true, false, true, true, true]);
    }
}
