//! Metadata in SQLite: one file, one writing connection, any number of reading ones.
//!
//! WAL lets readers go on while the writer writes; `synchronous=FULL` makes a commit durable before it is answered.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Params, Row};

use super::{Metadata, MetadataError, Result};

mod accounts;
mod commits;
mod device_syncs;
mod invitations;
mod keys;
mod links;
mod log;
mod members;
mod migrations;
mod objects;
mod rows;
mod second_factors;
mod secrets;
mod subjects;

/// How long a connection waits for another process, for example an administrator's command.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How many prepared statements a connection keeps; there are fewer in this room.
const STATEMENTS_MAX: usize = 64;

/// How much memory a connection may use for pages, in KiB.
const PAGE_CACHE_KIB: i64 = 16 * 1024;

/// After how many pages the WAL is copied into the database; rarely, since the one who commits waits for it.
const WAL_PAGES: i64 = 4000;

/// A connection to the database.
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
}

impl Sqlite {
    /// Opens the database in the file `path` and creates or upgrades its tables.
    ///
    /// # Errors
    /// [`MetadataError::NewerSchema`] and [`MetadataError::NotOurs`], after which the file is as it was.
    pub fn open(path: &Path) -> Result<Self> {
        let connection = Connection::open(path).map_err(|error| failed("open", &error))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| failed("open", &error))?;
        migrations::check(&connection, &path.display().to_string())?;
        let opened = Self::prepare(connection)?;
        migrations::run(&opened.connection)?;
        Ok(opened)
    }

    /// Opens the database in the file `path`, which was opened before by [`Self::open`], for reading only.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_reader(path: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| failed("open", &error))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| failed("open", &error))?;
        let opened = Self::prepare(connection)?;
        opened.run("PRAGMA query_only = ON")?;
        Ok(opened)
    }

    /// Makes a database in memory, for tests and simulations.
    ///
    /// # Errors
    /// [`MetadataError::Failed`] where there is no memory.
    pub fn open_in_memory() -> Result<Self> {
        let connection = Connection::open_in_memory().map_err(|error| failed("open", &error))?;
        let opened = Self::prepare(connection)?;
        migrations::run(&opened.connection)?;
        Ok(opened)
    }

    /// Makes a database in memory from what [`Metadata::snapshot`] returned.
    ///
    /// # Errors
    /// [`MetadataError::Failed`] where the bytes are not a database.
    pub fn from_snapshot(snapshot: &[u8]) -> Result<Self> {
        let mut connection =
            Connection::open_in_memory().map_err(|error| failed("open", &error))?;
        connection
            .deserialize_read_exact("main", snapshot, snapshot.len(), false)
            .map_err(|error| failed("open", &error))?;
        migrations::check(&connection, "the snapshot")?;
        Self::prepare(connection)
    }

    fn prepare(connection: Connection) -> Result<Self> {
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        // A plan may not depend on what is bound: otherwise some statements are prepared anew each time, which takes
        // longer than to run them.
        let is_stable = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true);
        is_stable.map_err(|error| failed("open", &error))?;
        let opened = Self { connection };
        opened.run(&format!(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA foreign_keys = ON;
             PRAGMA trusted_schema = OFF;
             PRAGMA cache_size = -{PAGE_CACHE_KIB};
             PRAGMA journal_size_limit = 67108864;
             PRAGMA wal_autocheckpoint = {WAL_PAGES};"
        ))?;
        Ok(opened)
    }

    fn run(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(|error| failed(sql, &error))
    }

    /// Runs one statement that returns nothing and returns how many rows it changed.
    fn execute(&self, sql: &str, parameters: impl Params) -> Result<usize> {
        let run = || self.connection.prepare_cached(sql)?.execute(parameters);
        run().map_err(|error| failed(sql, &error))
    }

    /// Returns the first row, if there is one.
    fn first<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let run = || self.connection.prepare_cached(sql)?.query_row(parameters, read).optional();
        run().map_err(|error| failed(sql, &error))
    }

    /// Returns all rows.
    fn all<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let run = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_map(parameters, read)?.collect::<rusqlite::Result<Vec<T>>>()
        };
        run().map_err(|error| failed(sql, &error))
    }
}

impl Metadata for Sqlite {
    fn begin(&mut self) -> Result<()> {
        self.execute("BEGIN IMMEDIATE", []).map(drop)
    }

    fn commit(&mut self) -> Result<()> {
        self.execute("COMMIT", []).map(drop)
    }

    fn rollback(&mut self) {
        if self.is_in_transaction()
            && let Err(error) = self.execute("ROLLBACK", [])
        {
            tracing::error!(%error, "a transaction could not be undone");
        }
    }

    fn is_in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    fn set_savepoint(&mut self) -> Result<()> {
        self.execute("SAVEPOINT request", []).map(drop)
    }

    fn release_savepoint(&mut self) -> Result<()> {
        self.execute("RELEASE request", []).map(drop)
    }

    fn undo_to_savepoint(&mut self) -> Result<()> {
        self.execute("ROLLBACK TO request", [])?;
        self.release_savepoint()
    }

    fn begin_asking(&self) -> Result<()> {
        self.execute("BEGIN DEFERRED", []).map(drop)
    }

    fn end_asking(&self) -> Result<()> {
        // A failing database may have ended it by itself.
        match self.is_in_transaction() {
            true => self.execute("COMMIT", []).map(drop),
            false => Ok(()),
        }
    }

    fn check(&self) -> Result<()> {
        self.first("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map(drop)
    }

    fn snapshot(&mut self) -> Result<Vec<u8>> {
        let data = self.connection.serialize("main").map_err(|error| failed("copy", &error))?;
        let mut bytes = data.to_vec();
        // A file says in its header that a log lies beside it. The copy has everything in itself.
        if let Some(versions) = bytes.get_mut(18..20) {
            versions.fill(1);
        }
        Ok(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.first("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map(drop)
    }
}

/// Turns an error of SQLite into ours. Bound values never appear in it, so no secret can.
fn failed(operation: &str, error: &rusqlite::Error) -> MetadataError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => MetadataError::NoSpace,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => MetadataError::Busy,
        Some(ErrorCode::ConstraintViolation) => {
            MetadataError::Taken { what: constraint_of(&error.to_string()).to_owned() }
        }
        _ => {
            let operation = operation.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
            MetadataError::Failed { operation, detail: error.to_string() }
        }
    }
}

/// Returns the columns that SQLite names in `UNIQUE constraint failed: accounts.name`.
fn constraint_of(text: &str) -> &str {
    text.rsplit_once(": ").map_or(text, |(_, columns)| columns)
}

/// Reads a fixed-size id or hash.
fn bytes<const N: usize>(row: &Row<'_>, column: usize) -> rusqlite::Result<[u8; N]> {
    row.get(column)
}

/// Reads a number that is never negative.
fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or(0))
}

/// Returns a number as SQLite keeps it. Sequence numbers and lengths never come near the limit; a hostile one is
/// larger than anything that is stored, and stays so.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
