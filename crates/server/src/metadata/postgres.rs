//! Metadata in PostgreSQL, for any number of servers at once.
//!
//! *Participants*: this server's writer and readers, each with a connection; other servers on the same database.
//! *Goals*: several servers commit to one workspace at the same moment, and its log stays one. A lost connection, a
//! database that starts again, a full disk are errors with a name, after which nothing is half done and the next
//! transaction connects anew. *Invariants*: a transaction runs at `READ COMMITTED`; before it decides anything about a
//! workspace it locks the workspace's row, and then that of an account with a quota, each kind in the order of their
//! numbers. So servers wait for each other, and what was read under a lock stays true. The two unique constraints of the
//! log hold whatever a server does.
//!
//! Why locks, and not serialisable transactions: two servers with commits for one workspace would undo each other's
//! groups again and again; with locks the second one waits for a few milliseconds and goes on.
//!
//! The trait above does not know futures, so each connection has a little runtime of its own, which runs while somebody
//! waits for an answer. It must not be used inside of another runtime's task, where blocking is not allowed.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

use super::sqlite::Sqlite;
use super::{Metadata, MetadataError, Result, RowTables, copy};

pub use tokio_postgres::Config;
pub(crate) use tokio_postgres::config::{Host, SslMode};

mod accounts;
mod commits;
mod device_syncs;
mod errors;
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
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tls;

use errors::{Failure, failed};

/// How long it may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an answer may take before the connection is given up.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// How every session is set. Waiting is bounded, and a server that stands still in mid-transaction does not hold others
/// up for ever. All that is asked goes by an index, however small a table was when its statements were planned.
const SESSION: &str = "
    SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET idle_in_transaction_session_timeout = '10s';
    SET lock_timeout = '8s';
    SET statement_timeout = '12s';
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SET jit = off;
    SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local');";

/// What a statement is given.
type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// One connection to the database, made anew when it is lost.
pub struct Postgres {
    config: Config,
    /// There until the end.
    runtime: Option<Runtime>,
    session: RefCell<Option<Session>>,
    transaction: Cell<Transaction>,
    answers: Cell<u64>,
}

struct Session {
    client: Client,
    statements: HashMap<String, Statement>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transaction {
    None,
    Open,
    /// A statement has failed: nothing more is done until the database has gone back to the savepoint or the beginning.
    Broken,
}

impl Postgres {
    /// Connects and creates or upgrades the tables.
    ///
    /// # Errors
    /// [`MetadataError::NewerSchema`] and [`MetadataError::NotOurs`], after which the database is as it was;
    /// [`MetadataError::Unreachable`].
    pub fn open(config: &Config) -> Result<Self> {
        let opened = Self::open_reader(config)?;
        migrations::run(&opened)?;
        Ok(opened)
    }

    /// Makes one more connection to a database that was opened before by [`Self::open`].
    ///
    /// # Errors
    /// [`MetadataError::Unreachable`].
    pub fn open_reader(config: &Config) -> Result<Self> {
        let mut config = config.clone();
        config.application_name("syncline");
        config.keepalives_idle(ANSWER_TIMEOUT).tcp_user_timeout(ANSWER_TIMEOUT);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| MetadataError::Failed {
            operation: "start".to_owned(),
            detail: error.to_string(),
        })?;
        let opened = Self {
            config,
            runtime: Some(runtime),
            session: RefCell::default(),
            transaction: Cell::new(Transaction::None),
            answers: Cell::new(0),
        };
        opened.connect()?;
        opened.warn_if_careless();
        Ok(opened)
    }

    /// Returns how many times it has waited for the database.
    pub fn answers(&self) -> u64 {
        self.answers.get()
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is there until the end")
    }

    /// Waits for an answer, but not for ever.
    fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        self.wait_at_most(ANSWER_TIMEOUT, answer)
    }

    fn wait_at_most<T>(
        &self,
        duration: Duration,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        self.answers.set(self.answers.get() + 1);
        let answer = async { tokio::time::timeout(duration, answer).await };
        match self.runtime().block_on(answer) {
            Ok(answer) => answer.map_err(Failure::Said),
            Err(_) => Err(Failure::Silent),
        }
    }

    fn connect(&self) -> Result<()> {
        let tls = match self.config.get_ssl_mode() {
            SslMode::Require => Some(tls::Tls::trusting_the_system()?),
            _ => None,
        };
        let connect = async {
            let client = match tls {
                Some(tls) => {
                    let (client, connection) = self.config.connect(tls).await?;
                    tokio::spawn(until_it_ends(connection));
                    client
                }
                None => {
                    let (client, connection) = self.config.connect(NoTls).await?;
                    tokio::spawn(until_it_ends(connection));
                    client
                }
            };
            // While anybody is connected, nobody moves the database elsewhere.
            let here = format!("SELECT pg_advisory_lock_shared({})", migrations::USERS_LOCK);
            client.batch_execute(&format!("{SESSION} {here};")).await?;
            Ok(client)
        };
        let client = self
            .wait_at_most(CONNECT_TIMEOUT, connect)
            .map_err(|failure| failed("connect", &failure))?;
        *self.session.borrow_mut() = Some(Session { client, statements: HashMap::new() });
        self.transaction.set(Transaction::None);
        Ok(())
    }

    /// Says it where the database was told to lie about what is durable: nobody can make up for that.
    fn warn_if_careless(&self) {
        let rows = self.ask("SELECT current_setting('fsync')", &[]);
        let setting = rows.ok().and_then(|rows| rows.first()?.try_get::<_, String>(0).ok());
        if setting.is_some_and(|setting| setting == "off") {
            tracing::warn!("the database runs with fsync = off: a power cut destroys it");
        }
    }

    /// Does something on the connection. A lost one is forgotten, and a transaction on it is over.
    fn on_session<T>(
        &self,
        operation: &str,
        work: impl FnOnce(&mut Session) -> Result<T, Failure>,
    ) -> Result<T> {
        if self.session.borrow().is_none() {
            if self.transaction.get() != Transaction::None {
                return Err(errors::lost());
            }
            self.connect()?;
        }
        let outcome = self.session.borrow_mut().as_mut().map_or(Err(Failure::Silent), work);
        let failure = match outcome {
            Ok(value) => return Ok(value),
            Err(failure) => failure,
        };
        let is_closed = self.session.borrow().as_ref().is_none_or(|one| one.client.is_closed());
        if is_closed || failure.is_end_of_connection() {
            *self.session.borrow_mut() = None;
            self.transaction.set(Transaction::None);
        } else if self.transaction.get() == Transaction::Open {
            self.transaction.set(Transaction::Broken);
        }
        Err(failed(operation, &failure))
    }

    fn prepared(&self, session: &mut Session, sql: &str) -> Result<Statement, Failure> {
        if let Some(statement) = session.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.wait(session.client.prepare(sql))?;
        session.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Runs a statement that reads. Outside of a transaction it is asked again on a new connection if the old one has
    /// gone meanwhile.
    fn ask(&self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        match self.transaction.get() {
            Transaction::None => self.on_either(|| self.write(sql, parameters)),
            _ => self.write(sql, parameters),
        }
    }

    /// Does something on the connection that there is and, where that was lost while nobody used it, on a new one. Where there was
    /// none, one attempt to connect has failed, and another one would only take as long.
    fn on_either<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        let was_connected = self.session.borrow().is_some();
        match work() {
            Err(MetadataError::Unreachable { .. }) if was_connected => work(),
            outcome => outcome,
        }
    }

    /// Runs a statement that reads and returns what `read` makes of each row.
    fn all<T>(
        &self,
        sql: &str,
        parameters: Parameters<'_>,
        read: impl Fn(&Row) -> Result<T, tokio_postgres::Error>,
    ) -> Result<Vec<T>> {
        let rows = self.ask(sql, parameters)?;
        read_all(sql, &rows, read)
    }

    /// Runs a statement that reads and returns the first row, if there is one.
    fn first<T>(
        &self,
        sql: &str,
        parameters: Parameters<'_>,
        read: impl Fn(&Row) -> Result<T, tokio_postgres::Error>,
    ) -> Result<Option<T>> {
        Ok(self.all(sql, parameters, read)?.into_iter().next())
    }

    /// Runs a statement that writes and returns rows.
    fn write(&self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        self.on_session(sql, |session| {
            let statement = self.prepared(session, sql)?;
            self.wait(session.client.query(&statement, parameters))
        })
    }

    /// Runs a statement that writes and returns how many rows it changed.
    fn execute(&self, sql: &str, parameters: Parameters<'_>) -> Result<u64> {
        self.on_session(sql, |session| {
            let statement = self.prepared(session, sql)?;
            self.wait(session.client.execute(&statement, parameters))
        })
    }

    /// Runs statements without parameters.
    fn run(&self, sql: &str) -> Result<()> {
        self.on_session(sql, |session| self.wait(session.client.batch_execute(sql)))
    }

    /// The end of a statement that reads rows: inside a transaction nobody else changes them until its end.
    fn lock(&self) -> &'static str {
        match self.transaction.get() {
            Transaction::None => "",
            Transaction::Open | Transaction::Broken => " FOR NO KEY UPDATE",
        }
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Postgres").field("transaction", &self.transaction).finish()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        *self.session.borrow_mut() = None;
        // Whoever drops it may be a task of another runtime, which must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Metadata for Postgres {
    fn begin(&mut self) -> Result<()> {
        self.on_either(|| self.run("BEGIN")).map(|()| self.transaction.set(Transaction::Open))
    }

    fn commit(&mut self) -> Result<()> {
        if self.transaction.get() != Transaction::Open {
            // PostgreSQL would say yes, and undo everything.
            self.rollback();
            return Err(errors::lost());
        }
        self.run("COMMIT").map(|()| self.transaction.set(Transaction::None))
    }

    fn rollback(&mut self) {
        if self.is_in_transaction()
            && let Err(error) = self.run("ROLLBACK")
        {
            tracing::warn!(%error, "a transaction ends with its connection");
            *self.session.borrow_mut() = None;
        }
        self.transaction.set(Transaction::None);
    }

    fn is_in_transaction(&self) -> bool {
        self.transaction.get() != Transaction::None
    }

    fn set_savepoint(&mut self) -> Result<()> {
        self.run("SAVEPOINT request")
    }

    fn release_savepoint(&mut self) -> Result<()> {
        self.run("RELEASE SAVEPOINT request")
    }

    fn undo_to_savepoint(&mut self) -> Result<()> {
        self.run("ROLLBACK TO SAVEPOINT request; RELEASE SAVEPOINT request")?;
        self.transaction.set(Transaction::Open);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        self.ask("SELECT 1", &[]).map(drop)
    }

    fn snapshot(&mut self) -> Result<Vec<u8>> {
        let mut copy = Sqlite::open_in_memory()?;
        self.begin_reading()?;
        let copied = copy::copy_all(self, &mut copy);
        self.rollback();
        copied?;
        copy.snapshot()
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Serves a connection.
async fn until_it_ends(connection: impl Future<Output = Result<(), tokio_postgres::Error>>) {
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection to the database ended");
    }
}

/// Reads rows; one that holds what it cannot hold is damage.
fn read_all<T>(
    sql: &str,
    rows: &[Row],
    read: impl Fn(&Row) -> Result<T, tokio_postgres::Error>,
) -> Result<Vec<T>> {
    let read = rows.iter().map(read).collect::<Result<_, _>>();
    read.map_err(|error| errors::damaged(sql, &error))
}

/// An id or hash in a column.
struct Fixed<const N: usize>([u8; N]);

impl<'a, const N: usize> tokio_postgres::types::FromSql<'a> for Fixed<N> {
    fn from_sql(
        _: &tokio_postgres::types::Type,
        raw: &'a [u8],
    ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.try_into().map_err(|_| format!("{N} bytes are expected"))?))
    }

    fn accepts(of: &tokio_postgres::types::Type) -> bool {
        *of == tokio_postgres::types::Type::BYTEA
    }
}

/// Reads an id or hash.
fn bytes<const N: usize>(row: &Row, column: usize) -> Result<[u8; N], tokio_postgres::Error> {
    row.try_get::<_, Fixed<N>>(column).map(|fixed| fixed.0)
}

/// Reads a number that is never negative.
fn unsigned(row: &Row, column: usize) -> Result<u64, tokio_postgres::Error> {
    row.try_get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or(0))
}

/// Returns a number as PostgreSQL keeps it; see the same of SQLite.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Tells whether PostgreSQL can hold this text at all; where it cannot, it does.
fn is_storable(text: &str) -> bool {
    !text.contains('\0')
}
