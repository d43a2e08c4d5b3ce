//! What a device remembers of a workspace, in SQLite. It is a cache: without it, a scan and the log bring all back.
//!
//! *Participants*: the engine, alone; one process holds the folder's lock. *Goals*: each step of the engine is one
//! transaction; the memory needed does not grow with the workspace. *Non-goals*: being the truth about anything.
//! *Invariants*: `remote` is the fold of the log up to `head`; a `synced` row says what this device and the log had
//! in common, and is written only after the file it describes is durable in its place; `unsynced` contains every
//! node that differs between `remote` and `synced`.
//!
//! | table | rows |
//! |---|---|
//! | `meta` | single facts: schema, genesis, head, device, root identity |
//! | `remote` | the folded tree ([`remote`]) |
//! | `synced` | the merge base with what the file system said of each file ([`synced`]) |
//! | `unsynced` | nodes whose remote version was not merged yet |
//! | `packs`, `chunks` | where chunks rest ([`packs`]) |
//! | `spares` | where else they rest ([`spares`]) |
//! | `bases` | what delta records are made from ([`bases`]) |
//! | `sketches` | what tells the next versions of files what has changed ([`sketches`]) |
//! | `lists` | chunk lists of large files, so that an edit elsewhere costs what it changed ([`packs`]) |
//! | `entries`, `history` | the log as read, and which entry changed which node ([`log_cache`]) |
//! | `outbox`, `kept_packs` | commits on their way, and the packs that go before them ([`log_cache`], [`packs`]) |

use std::cell::Cell;
use std::path::Path;

use model::codec::{Message, decode_message, encode_message};
use model::{Genesis, Head};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{Result, SyncError};

pub mod bases;
pub mod log_cache;
pub mod packs;
pub mod remote;
pub mod sketches;
pub mod spares;
pub mod synced;

pub use packs::ChunkPlace;
pub use synced::SyncedNode;

/// The schema that this program writes.
const SCHEMA_VERSION: i64 = 1;

/// The version of the same schema where folders of the workspace are mounted: a program that knows no such folders would take what was
/// let go of in them for new files.
const MOUNTS_SCHEMA_VERSION: i64 = 2;

/// The version of the same schema where chunks are made from others, and the newest that is read: a program that does not know that would
/// clean up what they are made from.
const DELTAS_SCHEMA_VERSION: i64 = 3;

const SCHEMA: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE remote (
    node BLOB PRIMARY KEY, version INTEGER NOT NULL, alive INTEGER NOT NULL,
    parent BLOB NOT NULL, name BLOB NOT NULL, body BLOB NOT NULL, conflict INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX remote_conflict ON remote (node) WHERE conflict = 1;
CREATE UNIQUE INDEX remote_place ON remote (parent, name) WHERE alive = 1;
CREATE TABLE synced (
    parent BLOB NOT NULL, name BLOB NOT NULL, node BLOB NOT NULL, version INTEGER NOT NULL,
    kind INTEGER NOT NULL, stat BLOB, pending BLOB, body BLOB NOT NULL, before BLOB,
    PRIMARY KEY (parent, name, node)) WITHOUT ROWID;
CREATE UNIQUE INDEX synced_node ON synced (node);
CREATE INDEX synced_pending ON synced (pending) WHERE pending IS NOT NULL;
CREATE TABLE unsynced (node BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE packs (
    number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, length INTEGER NOT NULL,
    inline_seq INTEGER, indexed INTEGER NOT NULL);
CREATE INDEX packs_unindexed ON packs (number) WHERE indexed = 0;
CREATE TABLE chunks (
    id BLOB PRIMARY KEY, pack INTEGER NOT NULL, record INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta (key, value) VALUES ('places', x'');
CREATE TABLE lists (id BLOB PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE entries (seq INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE history (node BLOB NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (node, seq)) WITHOUT ROWID;
CREATE TABLE kept_packs (id BLOB PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE outbox (number INTEGER PRIMARY KEY, op_id BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL);
";

/// The database of one folder.
#[derive(Debug)]
pub struct State {
    connection: Connection,
    place: String,
    /// How many transactions are open inside each other; the outermost counts.
    depth: Cell<u32>,
    /// How many bytes all sketches have, or more; unknown at first.
    sketches_length: Cell<Option<i64>>,
}

impl State {
    /// Opens or makes the database in a file.
    ///
    /// # Errors
    /// [`SyncError::Database`], also where the file is no database; [`SyncError::NewerDatabase`].
    pub fn open(file: &Path) -> Result<Self> {
        let place = file.display().to_string();
        let connection = Connection::open(file);
        let connection =
            connection.map_err(|source| SyncError::Database { place: place.clone(), source })?;
        Self::prepare(connection, place)
    }

    /// Makes a database in memory, as a new device has it: nothing is known.
    #[cfg(test)]
    pub(crate) fn in_memory() -> Self {
        let connection = Connection::open_in_memory().expect("opens");
        Self::from_connection(connection).expect("a state")
    }

    /// Takes over a database that outlives its engine, as the seeded world does.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn from_connection(connection: Connection) -> Result<Self> {
        Self::prepare(connection, "in memory".to_owned())
    }

    fn prepare(connection: Connection, place: String) -> Result<Self> {
        let state =
            Self { connection, place, depth: Cell::new(0), sketches_length: Cell::new(None) };
        // The database never runs ahead of the folder, since rows are written after files are durable; so it
        // may fall behind in a power cut, and NORMAL is enough.
        let pragmas =
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384;
                       PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 268435456;";
        state.database(state.connection.execute_batch(pragmas))?;
        let version: i64 =
            state.database(
                state.connection.query_row("PRAGMA user_version", [], |row| row.get(0)),
            )?;
        match version {
            0 => {
                let make =
                    format!("BEGIN; {SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;");
                state.database(state.connection.execute_batch(&make))?;
            }
            SCHEMA_VERSION..=DELTAS_SCHEMA_VERSION => {}
            version => {
                let (place, newest) = (state.place.clone(), DELTAS_SCHEMA_VERSION);
                return Err(SyncError::NewerDatabase { place, version, newest });
            }
        }
        for schema in [spares::SCHEMA, bases::SCHEMA, sketches::SCHEMA] {
            state.database(state.connection.execute_batch(schema))?;
        }
        state.connection.set_prepared_statement_cache_capacity(64);
        Ok(state)
    }

    /// Keeps programs out that know no mounted folders.
    pub(crate) fn require_mounts(&self) -> Result<()> {
        self.require_version(MOUNTS_SCHEMA_VERSION)
    }

    /// Keeps programs out that do not know this version of the schema.
    fn require_version(&self, version: i64) -> Result<()> {
        let known = self.row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))?;
        if known.is_some_and(|known| known >= version) {
            return Ok(());
        }
        self.database(self.connection.execute_batch(&format!("PRAGMA user_version = {version}")))
    }

    /// Gives the connection back, for a world that outlives its engines.
    pub fn into_connection(self) -> Connection {
        self.connection
    }

    /// Adds the place to an error of the database.
    fn database<T>(&self, result: rusqlite::Result<T>) -> Result<T> {
        result.map_err(|source| SyncError::Database { place: self.place.clone(), source })
    }

    /// Begins a transaction, for a caller that must end it. Reading in one is much faster than statement by statement,
    /// since SQLite locks its file for each.
    pub(crate) fn begin(&self) -> Result<()> {
        if self.depth.get() == 0 {
            self.database(self.connection.execute_batch("BEGIN"))?;
        }
        self.depth.set(self.depth.get() + 1);
        Ok(())
    }

    /// Ends a transaction: keeps what was done in it, or not. Inside another, keeping is left to that one; an error
    /// ends them all, since it goes up through them.
    pub(crate) fn end(&self, keep: bool) -> Result<()> {
        self.depth.set(self.depth.get() - 1);
        if self.depth.get() > 0 {
            return Ok(());
        }
        self.database(self.connection.execute_batch(if keep { "COMMIT" } else { "ROLLBACK" }))
    }

    /// Runs `body` while the database stands still, for many reads.
    ///
    /// # Errors
    /// Those of `body`, and [`SyncError::Database`].
    pub fn reading<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        self.begin()?;
        let result = body();
        self.end(true)?;
        result
    }

    /// Runs `body` in a transaction; an error rolls everything back.
    ///
    /// # Errors
    /// Those of `body`, and [`SyncError::Database`].
    pub fn transaction<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.begin()?;
        let result = body(self);
        let ended = self.end(result.is_ok());
        // The error of the body explains more than that of a roll-back after it.
        result.and_then(|value| ended.map(|()| value))
    }

    /// Returns a single fact.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn fact(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let mut statement =
            self.database(self.connection.prepare_cached("SELECT value FROM meta WHERE key = ?"))?;
        self.database(statement.query_row([key], |row| row.get(0)).optional())
    }

    /// Sets a single fact.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn set_fact(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.run("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", params![key, value])
    }

    /// Forgets a single fact.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn forget_fact(&mut self, key: &str) -> Result<()> {
        self.run("DELETE FROM meta WHERE key = ?", params![key])
    }

    fn run(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<()> {
        self.count(sql, parameters).map(drop)
    }

    /// Runs a statement and returns how many rows it has changed.
    fn count(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<usize> {
        let mut statement = self.database(self.connection.prepare_cached(sql))?;
        self.database(statement.execute(parameters))
    }

    /// Returns one row, or nothing.
    fn row<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let mut statement = self.database(self.connection.prepare_cached(sql))?;
        self.database(statement.query_row(parameters, read).optional())
    }

    /// Returns all rows.
    fn rows<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.database(self.connection.prepare_cached(sql))?;
        let rows = self.database(statement.query_map(parameters, read))?;
        self.database(rows.collect())
    }

    fn message<T: Message>(&self, key: &str) -> Result<Option<T>> {
        Ok(self.fact(key)?.map(|bytes| decode_message(&bytes)).transpose()?)
    }

    /// Looks through the whole database and returns what is damaged, in SQLite's words; nothing where it is whole.
    ///
    /// # Errors
    /// [`SyncError::Database`], where the damage keeps it from being read at all.
    pub fn damage(&self) -> Result<Vec<String>> {
        let mut words: Vec<String> = self.rows("PRAGMA quick_check(10)", [], |row| row.get(0))?;
        words.retain(|word| word != "ok");
        Ok(words)
    }

    /// Returns the genesis of the workspace, once it is known.
    ///
    /// # Errors
    /// [`SyncError::Database`], [`SyncError::Decode`].
    pub fn genesis(&self) -> Result<Option<Genesis>> {
        self.message("genesis")
    }

    /// Binds the database to a workspace.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn set_genesis(&mut self, genesis: &Genesis) -> Result<()> {
        self.set_fact("genesis", &encode_message(genesis))?;
        self.set_head(&genesis.head())
    }

    /// Returns the newest entry that is folded into `remote`.
    ///
    /// # Errors
    /// [`SyncError::Database`], [`SyncError::Decode`].
    pub fn head(&self) -> Result<Option<Head>> {
        use model::codec::{Decode, Decoder};
        let Some(bytes) = self.fact("head")? else { return Ok(None) };
        Ok(Some(Head::decode(&mut Decoder::new(&bytes))?))
    }

    /// Sets the newest entry that is folded into `remote`.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn set_head(&mut self, head: &Head) -> Result<()> {
        use model::codec::{Encode, Encoder};
        let mut encoder = Encoder::default();
        head.encode(&mut encoder);
        self.set_fact("head", &encoder.into_bytes())
    }
}

/// Reads an id column.
fn id_column<const N: usize>(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<[u8; N]> {
    row.get::<_, [u8; N]>(index)
}

#[cfg(test)]
mod tests;
