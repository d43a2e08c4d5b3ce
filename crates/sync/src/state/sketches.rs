//! What this device keeps of files, so that their next versions are stored as changes of them.
//!
//! *Goals*: an edit costs what it changed, and so does an edited copy of a file that is found by what is alike in both. *Non-goals*: being there: a sketch may be forgotten at any time, and then chunks that were edited
//! are stored whole. *Invariants*: all sketches together keep within a bound, and those that were made longest ago go first; a sketch says
//! nothing of which chunks are stored, which everybody who uses it asks for himself.

use std::collections::HashMap;

use content::delta::{Features, most_alike};
use content::packing::Kept;
use model::NodeId;
use rusqlite::{Connection, OptionalExtension, params};

use super::State;
use crate::error::Result;

/// Made wherever it is missing, so that databases without it stay good.
pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS sketches (number INTEGER PRIMARY KEY, node BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS features (feature INTEGER NOT NULL, sketch INTEGER NOT NULL, PRIMARY KEY (feature, sketch)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS features_of_sketch ON features (sketch);
";

/// How many bytes all sketches have together, with their features: those of some 1.2 GB of files.
pub const LENGTH_MAX: i64 = 64 * 1024 * 1024;

/// About how many bytes the features of a file take beside its sketch.
const FEATURES_LENGTH: i64 = 300;

/// How many files are looked at that share one feature: those that came last. What thousands have alike is a licence, or a form.
const ALIKE_MAX: i64 = 64;

/// Returns what is kept of a file.
pub(super) fn sketch(connection: &Connection, node: &NodeId) -> rusqlite::Result<Option<Vec<u8>>> {
    let sql = "SELECT bytes FROM sketches WHERE node = ?";
    connection.prepare_cached(sql)?.query_row([node.as_bytes()], |row| row.get(0)).optional()
}

/// Returns what is kept of the file that shares most features with another one, of several the newest, if it shares enough.
pub(super) fn similar(
    connection: &Connection,
    features: &Features,
) -> rusqlite::Result<Option<Vec<u8>>> {
    // A program of the days before may have left features of sketches that it replaced.
    let sql = "SELECT sketch FROM features JOIN sketches ON number = sketch WHERE feature = ?
        ORDER BY sketch DESC LIMIT ?";
    let mut statement = connection.prepare_cached(sql)?;
    let mut shared: HashMap<i64, usize> = HashMap::new();
    for feature in features.numbers() {
        let having = statement.query_map([*feature as i64, ALIKE_MAX], |row| row.get(0))?;
        for sketch in having {
            *shared.entry(sketch?).or_default() += 1;
        }
    }
    let Some(sketch) = most_alike(shared) else { return Ok(None) };
    let sql = "SELECT bytes FROM sketches WHERE number = ?";
    connection.prepare_cached(sql)?.query_row([sketch], |row| row.get(0)).optional()
}

impl State {
    /// Returns what is kept of a file.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn sketch(&self, node: &NodeId) -> Result<Option<Vec<u8>>> {
        self.database(sketch(&self.connection, node))
    }

    /// Returns all sketches, those that were made last at the end.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn sketches(&self) -> Result<Vec<Vec<u8>>> {
        self.rows("SELECT bytes FROM sketches ORDER BY number", [], |row| row.get(0))
    }

    /// Keeps sketches of files in place of those before, and forgets the oldest where there are too many.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn keep_sketches(&mut self, sketches: &[(NodeId, Vec<u8>)]) -> Result<()> {
        for (node, bytes) in sketches {
            // A row that replaces another gets a number of its own, the highest.
            self.run(
                "DELETE FROM features WHERE sketch = (SELECT number FROM sketches WHERE node = ?)",
                [node.as_bytes()],
            )?;
            self.run(
                "INSERT OR REPLACE INTO sketches (node, bytes) VALUES (?, ?)",
                params![node.as_bytes(), bytes],
            )?;
            let number = self.connection.last_insert_rowid();
            let features = Kept::decode(bytes).map(|kept| kept.features()).unwrap_or_default();
            for feature in features.numbers() {
                self.run(
                    "INSERT OR IGNORE INTO features VALUES (?, ?)",
                    [*feature as i64, number],
                )?;
            }
        }
        let more: i64 =
            sketches.iter().map(|(_, bytes)| bytes.len() as i64 + FEATURES_LENGTH).sum();
        let known = match self.sketches_length.get() {
            Some(known) if known + more <= LENGTH_MAX => known + more,
            None if sketches.is_empty() => return Ok(()),
            // What was replaced was counted, too.
            _ => self.sum_sketches()?,
        };
        self.sketches_length.set(Some(known));
        if known <= LENGTH_MAX {
            return Ok(());
        }
        self.run(
            "DELETE FROM sketches WHERE number IN (SELECT number FROM (
                 SELECT number, SUM(LENGTH(bytes) + ?) OVER (ORDER BY number DESC) AS length FROM sketches)
             WHERE length > ?)",
            // Not each time.
            [FEATURES_LENGTH, LENGTH_MAX / 8 * 7],
        )?;
        self.run(
            "DELETE FROM features WHERE sketch < (SELECT COALESCE(MIN(number), ?) FROM sketches)",
            [i64::MAX],
        )?;
        self.sketches_length.set(Some(self.sum_sketches()?));
        Ok(())
    }

    /// Returns what is kept of a file that is like one with these features.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn similar(&self, features: &Features) -> Result<Option<Vec<u8>>> {
        self.database(similar(&self.connection, features))
    }

    fn sum_sketches(&self) -> Result<i64> {
        let sql = "SELECT COALESCE(SUM(LENGTH(bytes) + ?), 0) FROM sketches";
        Ok(self.row(sql, [FEATURES_LENGTH], |row| row.get(0))?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use content::WorkspaceContentKeys;
    use content::delta::VersionSketch;
    use model::testing::node;

    use super::*;

    fn kept(bytes: &[u8]) -> Vec<u8> {
        let keys = WorkspaceContentKeys::derive(&[1; 32]);
        let sketch = VersionSketch::survey(&keys, 4096, &mut &*bytes).expect("cut");
        Kept::File(sketch).encode()
    }

    fn features(state: &State) -> i64 {
        state
            .row("SELECT COUNT(*) FROM features", [], |row| row.get(0))
            .expect("read")
            .expect("row")
    }

    #[test]
    fn file_that_is_most_like_another_is_found_as_long_as_it_is_kept() {
        let noise = |seed: u8| {
            let mut bytes = vec![0; 20_000];
            blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
            bytes
        };
        let (one, other) = (noise(1), noise(2));
        let mut edited = one.clone();
        edited.splice(5000..5000, *b"edited");
        let half = [&one[..10_000], &other[..10_000]].concat();
        let mut state = State::in_memory();
        let wanted = Features::of(&edited);
        assert_eq!(state.similar(&wanted).expect("read"), None);
        let sketches = [kept(&other), kept(&half), kept(&one), kept(&noise(3))];
        let named: Vec<_> = (1..).map(node).zip(sketches.clone()).collect();
        state.keep_sketches(&named).expect("kept");
        assert_eq!(state.similar(&wanted).expect("read").as_ref(), Some(&sketches[2]));
        assert_eq!(state.similar(&Features::of(&noise(4))).expect("read"), None);
        assert_eq!(state.similar(&Features::default()).expect("read"), None);
        // Its next version is another file.
        let count = features(&state);
        state.keep_sketches(&[(node(3), kept(&noise(5)))]).expect("kept");
        assert_eq!(features(&state), count);
        assert_ne!(state.similar(&wanted).expect("read").as_ref(), Some(&sketches[2]));
        state.keep_sketches(&[(node(5), kept(&one))]).expect("kept");
        assert_eq!(state.similar(&wanted).expect("read").as_ref(), Some(&sketches[2]));
        // What is forgotten for want of room is not found either.
        let full = vec![7; LENGTH_MAX as usize];
        state.keep_sketches(&[(node(9), full)]).expect("kept");
        assert_eq!((state.similar(&wanted).expect("read"), features(&state)), (None, 0));
    }

    #[test]
    fn newest_sketches_are_kept_as_far_as_there_is_room() {
        let mut state = State::in_memory();
        let third = vec![7; (LENGTH_MAX / 3 - 2 * FEATURES_LENGTH) as usize];
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
        state.keep_sketches(&[(node(5), vec![5; 1000])]).expect("kept");
        let is_there = |number| state.sketch(&node(number)).expect("read").is_some();
        assert_eq!([1, 2, 3, 4, 5].map(is_there), [true, false, true, true, true]);
    }
}
