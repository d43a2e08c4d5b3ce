//! The tables, version by version.
//!
//! A step is never edited once it was released; the next version is a new step. SQLite keeps the number of steps
//! done in `user_version`, and ours in `application_id` so that no other program's database is taken for one.

use rusqlite::Connection;

use super::failed;
use crate::metadata::{MetadataError, Result};

/// "Sync", to tell the databases of programs apart.
const APPLICATION_ID: i64 = 0x5379_6e63;

/// What brings the tables from each version to the next.
pub(super) const STEPS: [&str; 12] = [
    ACCOUNTS_AND_LOGS,
    RESERVATIONS,
    MEMBERS,
    TOKENS,
    KEYS,
    LINKS,
    SECOND_FACTORS,
    IDENTITIES,
    SUBJECTS,
    DEVICE_SYNCS,
    SECRETS,
    INVITATIONS,
];

const ACCOUNTS_AND_LOGS: &str = "
    CREATE TABLE accounts (
        id            INTEGER PRIMARY KEY,
        name          TEXT NOT NULL UNIQUE,
        password_hash TEXT NOT NULL,
        is_disabled   INTEGER NOT NULL,
        quota_bytes   INTEGER,
        created       INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE devices (
        id         BLOB PRIMARY KEY,
        account    INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        name       TEXT NOT NULL,
        token_hash BLOB NOT NULL UNIQUE,
        created    INTEGER NOT NULL,
        last_seen  INTEGER NOT NULL,
        is_revoked INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX devices_of_account ON devices (account);

    CREATE TABLE workspaces (
        number     INTEGER PRIMARY KEY,
        id         BLOB NOT NULL UNIQUE,
        owner      INTEGER NOT NULL REFERENCES accounts (id),
        name       TEXT NOT NULL,
        head_seq   INTEGER NOT NULL,
        head_hash  BLOB NOT NULL,
        used_bytes INTEGER NOT NULL,
        genesis    BLOB NOT NULL,
        UNIQUE (owner, name)
    ) STRICT;

    CREATE TABLE entries (
        workspace INTEGER NOT NULL REFERENCES workspaces (number),
        seq       INTEGER NOT NULL,
        op_id     BLOB NOT NULL,
        device    BLOB NOT NULL,
        hash      BLOB NOT NULL,
        bytes     BLOB NOT NULL,
        UNIQUE (workspace, seq),
        UNIQUE (workspace, device, op_id)
    ) STRICT;

    CREATE TABLE node_versions (
        workspace INTEGER NOT NULL REFERENCES workspaces (number),
        node      BLOB NOT NULL,
        version   INTEGER NOT NULL,
        PRIMARY KEY (workspace, node)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE objects (
        workspace INTEGER NOT NULL REFERENCES workspaces (number),
        key       TEXT NOT NULL,
        length    INTEGER NOT NULL,
        PRIMARY KEY (workspace, key)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE checkpoints (
        workspace INTEGER PRIMARY KEY REFERENCES workspaces (number),
        seq       INTEGER NOT NULL,
        bytes     BLOB NOT NULL
    ) STRICT;
";

/// What is held of a quota for objects that are about to be stored.
const RESERVATIONS: &str = "
    CREATE TABLE reservations (
        workspace INTEGER NOT NULL REFERENCES workspaces (number),
        key       TEXT NOT NULL,
        length    INTEGER NOT NULL,
        made      INTEGER NOT NULL,
        PRIMARY KEY (workspace, key)
    ) STRICT, WITHOUT ROWID;
";

/// Who else may use a workspace.
const MEMBERS: &str = "
    CREATE TABLE members (
        workspace INTEGER NOT NULL REFERENCES workspaces (number),
        account   INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        role      INTEGER NOT NULL,
        added     INTEGER NOT NULL,
        PRIMARY KEY (workspace, account)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX members_of_account ON members (account);
";

/// What devices with limits may do: the tokens of other programs.
const TOKENS: &str = "
    CREATE TABLE tokens (
        device    BLOB PRIMARY KEY REFERENCES devices (id) ON DELETE CASCADE,
        scope     INTEGER NOT NULL,
        workspace BLOB,
        expires   INTEGER
    ) STRICT, WITHOUT ROWID;
";

/// What the devices of encrypted workspaces keep for each other.
const KEYS: &str = "
    CREATE TABLE locked_keys (
        workspace  INTEGER PRIMARY KEY REFERENCES workspaces (number),
        generation INTEGER NOT NULL,
        bytes      BLOB NOT NULL
    ) STRICT;

    CREATE TABLE pairing_boxes (
        workspace INTEGER NOT NULL REFERENCES workspaces (number),
        key       TEXT NOT NULL,
        bytes     BLOB NOT NULL,
        made      INTEGER NOT NULL,
        PRIMARY KEY (workspace, key)
    ) STRICT;
";

/// To where devices with limits lead that are links for people without an account.
const LINKS: &str = "
    CREATE TABLE links (
        device        BLOB    PRIMARY KEY REFERENCES devices (id) ON DELETE CASCADE,
        workspace     INTEGER NOT NULL REFERENCES workspaces (number),
        node          BLOB    NOT NULL,
        password_hash TEXT,
        downloads_max INTEGER,
        downloads     INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX links_of_workspace ON links (workspace);
";

/// What accounts show beside their passwords, and what is left for who has lost it.
const SECOND_FACTORS: &str = "
    CREATE TABLE second_factors (
        account   INTEGER PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
        secret    BLOB NOT NULL,
        is_on     INTEGER NOT NULL,
        used_step INTEGER NOT NULL,
        since     INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE recovery_codes (
        account INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        hash    BLOB NOT NULL,
        PRIMARY KEY (account, hash)
    ) STRICT, WITHOUT ROWID;
";

/// Who accounts are to others, and the keys of encrypted workspaces as they are sealed to members.
const IDENTITIES: &str = "
    CREATE TABLE identities (
        account     INTEGER PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
        public_keys BLOB NOT NULL,
        locked      BLOB NOT NULL
    ) STRICT;

    CREATE TABLE envelopes (
        workspace INTEGER NOT NULL,
        account   INTEGER NOT NULL,
        bytes     BLOB NOT NULL,
        PRIMARY KEY (workspace, account),
        FOREIGN KEY (workspace, account) REFERENCES members (workspace, account) ON DELETE CASCADE
    ) STRICT;
";

/// Who accounts are at providers of OpenID Connect.
const SUBJECTS: &str = "
    CREATE TABLE subjects (
        issuer  TEXT NOT NULL,
        subject TEXT NOT NULL,
        account INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        since   INTEGER NOT NULL,
        PRIMARY KEY (issuer, subject)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX subjects_of_account ON subjects (account);
";

/// When devices were last fully in sync.
const DEVICE_SYNCS: &str = "
    CREATE TABLE device_syncs (
        device    BLOB NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
        workspace INTEGER NOT NULL REFERENCES workspaces (number),
        synced    INTEGER NOT NULL,
        PRIMARY KEY (device, workspace)
    ) STRICT, WITHOUT ROWID;
";

/// What a server keeps for itself, and shares with those on the same database.
const SECRETS: &str = "
    CREATE TABLE secrets (
        name  TEXT PRIMARY KEY NOT NULL,
        bytes BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// Who may make an account for themselves.
const INVITATIONS: &str = "
    CREATE TABLE invitations (
        id          INTEGER PRIMARY KEY,
        secret_hash BLOB NOT NULL UNIQUE,
        name        TEXT,
        quota_bytes INTEGER,
        made        INTEGER NOT NULL,
        expires     INTEGER NOT NULL,
        ended       INTEGER,
        account     TEXT
    ) STRICT;
";

/// Refuses a database of a newer version or of another program, without writing.
pub(super) fn check(connection: &Connection, path: &str) -> Result<()> {
    let (application, version) = (number(connection, "application_id")?, version(connection)?);
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => {
                MetadataError::NotOurs { path: path.to_owned() }
            }
            _ => failed("read the schema", &error),
        })?;
    if application != APPLICATION_ID && tables > 0 {
        return Err(MetadataError::NotOurs { path: path.to_owned() });
    }
    if version > STEPS.len() as i64 {
        return Err(MetadataError::NewerSchema { version });
    }
    Ok(())
}

/// Brings the tables to the newest version.
pub(super) fn run(connection: &Connection) -> Result<()> {
    while version(connection)? < STEPS.len() as i64 {
        let fail = |error| failed("upgrade the schema", &error);
        connection.execute_batch("BEGIN IMMEDIATE").map_err(fail)?;
        // Another process may have been faster.
        let done = usize::try_from(version(connection)?).unwrap_or(0);
        let sql = STEPS.get(done).copied().unwrap_or_default();
        let version = done.max(STEPS.len().min(done + 1));
        let sql = format!(
            "{sql}
             PRAGMA application_id = {APPLICATION_ID};
             PRAGMA user_version = {version};
             COMMIT;"
        );
        if let Err(error) = connection.execute_batch(&sql) {
            // The error that matters is the first one.
            let _ = connection.execute_batch("ROLLBACK");
            return Err(fail(error));
        }
    }
    Ok(())
}

fn version(connection: &Connection) -> Result<i64> {
    number(connection, "user_version")
}

fn number(connection: &Connection, pragma: &str) -> Result<i64> {
    let read = connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0));
    // A file that is no database fails here first; `check` names it.
    match read {
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => Ok(0),
        other => other.map_err(|error| failed(pragma, &error)),
    }
}
