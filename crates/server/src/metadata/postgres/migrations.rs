//! The tables, version by version, as those of SQLite are kept.
//!
//! A step is never edited once it was released; the next version is a new step. One row holds the number of steps done.
//! Servers that start at the same moment wait for each other.

use super::{Postgres, Transaction};
use crate::metadata::{MetadataError, Result};

/// "Sync": the lock that those who change tables take.
const LOCK: i64 = 0x5379_6e63;

/// The lock that every session shares, and that who wants to be alone takes.
pub(super) const USERS_LOCK: i64 = LOCK + 1;

/// What brings the tables from each version to the next. Text is ordered by its bytes, as everywhere in this program.
/// What the writer changes with every group leaves room on its pages, so that no index is touched.
const STEPS: [&str; 12] = [
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
        id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name          TEXT COLLATE \"C\" NOT NULL UNIQUE,
        password_hash TEXT NOT NULL,
        is_disabled   BOOLEAN NOT NULL,
        quota_bytes   BIGINT,
        created       BIGINT NOT NULL
    );

    CREATE TABLE devices (
        id         BYTEA PRIMARY KEY,
        account    BIGINT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        name       TEXT NOT NULL,
        token_hash BYTEA NOT NULL UNIQUE,
        created    BIGINT NOT NULL,
        last_seen  BIGINT NOT NULL,
        is_revoked BOOLEAN NOT NULL
    ) WITH (fillfactor = 80);
    CREATE INDEX devices_of_account ON devices (account);

    CREATE TABLE workspaces (
        number     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id         BYTEA NOT NULL UNIQUE,
        owner      BIGINT NOT NULL REFERENCES accounts (id),
        name       TEXT COLLATE \"C\" NOT NULL,
        head_seq   BIGINT NOT NULL,
        head_hash  BYTEA NOT NULL,
        used_bytes BIGINT NOT NULL,
        genesis    BYTEA NOT NULL,
        UNIQUE (owner, name)
    ) WITH (fillfactor = 50);

    CREATE TABLE entries (
        workspace BIGINT NOT NULL REFERENCES workspaces (number),
        seq       BIGINT NOT NULL,
        op_id     BYTEA NOT NULL,
        device    BYTEA NOT NULL,
        hash      BYTEA NOT NULL,
        bytes     BYTEA NOT NULL,
        PRIMARY KEY (workspace, seq),
        UNIQUE (workspace, device, op_id)
    );
    ALTER TABLE entries ALTER COLUMN bytes SET STORAGE EXTERNAL;

    CREATE TABLE node_versions (
        workspace BIGINT NOT NULL REFERENCES workspaces (number),
        node      BYTEA NOT NULL,
        version   BIGINT NOT NULL,
        PRIMARY KEY (workspace, node)
    ) WITH (fillfactor = 80);

    CREATE TABLE objects (
        workspace BIGINT NOT NULL REFERENCES workspaces (number),
        key       TEXT COLLATE \"C\" NOT NULL,
        length    BIGINT NOT NULL,
        PRIMARY KEY (workspace, key)
    );

    CREATE TABLE checkpoints (
        workspace BIGINT PRIMARY KEY REFERENCES workspaces (number),
        seq       BIGINT NOT NULL,
        bytes     BYTEA NOT NULL
    );
";

/// What is held of a quota for objects that are about to be stored.
const RESERVATIONS: &str = "
    CREATE TABLE reservations (
        workspace BIGINT NOT NULL REFERENCES workspaces (number),
        key       TEXT COLLATE \"C\" NOT NULL,
        length    BIGINT NOT NULL,
        made      BIGINT NOT NULL,
        PRIMARY KEY (workspace, key)
    );
";

/// Who else may use a workspace.
const MEMBERS: &str = "
    CREATE TABLE members (
        workspace BIGINT NOT NULL REFERENCES workspaces (number),
        account   BIGINT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        role      BIGINT NOT NULL,
        added     BIGINT NOT NULL,
        PRIMARY KEY (workspace, account)
    );
    CREATE INDEX members_of_account ON members (account);
";

/// What devices with limits may do: the tokens of other programs.
const TOKENS: &str = "
    CREATE TABLE tokens (
        device    BYTEA PRIMARY KEY REFERENCES devices (id) ON DELETE CASCADE,
        scope     BIGINT NOT NULL,
        workspace BYTEA,
        expires   BIGINT
    );
";

/// What the devices of encrypted workspaces keep for each other.
const KEYS: &str = "
    CREATE TABLE locked_keys (
        workspace  BIGINT PRIMARY KEY REFERENCES workspaces (number),
        generation BIGINT NOT NULL,
        bytes      BYTEA NOT NULL
    );

    CREATE TABLE pairing_boxes (
        workspace BIGINT NOT NULL REFERENCES workspaces (number),
        key       TEXT COLLATE \"C\" NOT NULL,
        bytes     BYTEA NOT NULL,
        made      BIGINT NOT NULL,
        PRIMARY KEY (workspace, key)
    );
";

/// To where devices with limits lead that are links for people without an account.
const LINKS: &str = "
    CREATE TABLE links (
        device        BYTEA  PRIMARY KEY REFERENCES devices (id) ON DELETE CASCADE,
        workspace     BIGINT NOT NULL REFERENCES workspaces (number),
        node          BYTEA  NOT NULL,
        password_hash TEXT,
        downloads_max BIGINT,
        downloads     BIGINT NOT NULL
    );
    CREATE INDEX links_of_workspace ON links (workspace);
";

/// What accounts show beside their passwords, and what is left for who has lost it.
const SECOND_FACTORS: &str = "
    CREATE TABLE second_factors (
        account   BIGINT PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
        secret    BYTEA NOT NULL,
        is_on     BOOLEAN NOT NULL,
        used_step BIGINT NOT NULL,
        since     BIGINT NOT NULL
    );

    CREATE TABLE recovery_codes (
        account BIGINT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        hash    BYTEA NOT NULL,
        PRIMARY KEY (account, hash)
    );
";

/// Who accounts are to others, and the keys of encrypted workspaces as they are sealed to members.
const IDENTITIES: &str = "
    CREATE TABLE identities (
        account     BIGINT PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
        public_keys BYTEA NOT NULL,
        locked      BYTEA NOT NULL
    );

    CREATE TABLE envelopes (
        workspace BIGINT NOT NULL,
        account   BIGINT NOT NULL,
        bytes     BYTEA NOT NULL,
        PRIMARY KEY (workspace, account),
        FOREIGN KEY (workspace, account) REFERENCES members (workspace, account) ON DELETE CASCADE
    );
";

/// Who accounts are at providers of OpenID Connect.
const SUBJECTS: &str = "
    CREATE TABLE subjects (
        issuer  TEXT COLLATE \"C\" NOT NULL,
        subject TEXT COLLATE \"C\" NOT NULL,
        account BIGINT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        since   BIGINT NOT NULL,
        PRIMARY KEY (issuer, subject)
    );
    CREATE INDEX subjects_of_account ON subjects (account);
";

/// When devices were last fully in sync.
const DEVICE_SYNCS: &str = "
    CREATE TABLE device_syncs (
        device    BYTEA NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
        workspace BIGINT NOT NULL REFERENCES workspaces (number),
        synced    BIGINT NOT NULL,
        PRIMARY KEY (device, workspace)
    ) WITH (fillfactor = 50);
";

/// What a server keeps for itself, and shares with those on the same database.
const SECRETS: &str = "
    CREATE TABLE secrets (
        name  TEXT COLLATE \"C\" PRIMARY KEY,
        bytes BYTEA NOT NULL
    );
";

/// Who may make an account for themselves.
const INVITATIONS: &str = "
    CREATE TABLE invitations (
        id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        secret_hash BYTEA NOT NULL UNIQUE,
        name        TEXT,
        quota_bytes BIGINT,
        made        BIGINT NOT NULL,
        expires     BIGINT NOT NULL,
        ended       BIGINT,
        account     TEXT
    );
";

/// Brings the tables to the newest version. A database of a newer version or of another program is refused and left as
/// it is.
pub(super) fn run(database: &Postgres) -> Result<()> {
    database.run("BEGIN")?;
    database.transaction.set(Transaction::Open);
    let migrated = migrate(database).and_then(|()| database.run("COMMIT"));
    if migrated.is_err() {
        // The error that matters is the first one.
        let _ = database.run("ROLLBACK");
    }
    database.transaction.set(Transaction::None);
    migrated
}

fn migrate(database: &Postgres) -> Result<()> {
    database.ask("SELECT pg_advisory_xact_lock($1)", &[&LOCK])?;
    let found = database.first(
        "SELECT to_regclass('syncline_schema') IS NOT NULL,
                (SELECT count(*) FROM pg_class
                 WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'),
                current_database()::text",
        &[],
        |row| Ok((row.try_get(0)?, row.try_get::<_, i64>(1)?, row.try_get(2)?)),
    )?;
    let (is_ours, tables, name): (bool, _, String) = found.unwrap_or_default();
    if !is_ours && tables > 0 {
        return Err(MetadataError::NotOurs { path: format!("the database {name}") });
    }
    if !is_ours {
        database.run(
            "CREATE TABLE syncline_schema (version BIGINT NOT NULL);
             INSERT INTO syncline_schema (version) VALUES (0)",
        )?;
    }
    let read = |row: &tokio_postgres::Row| row.try_get::<_, i64>(0);
    let version = database.first("SELECT version FROM syncline_schema", &[], read)?.unwrap_or(0);
    let newest = STEPS.len() as i64;
    if version > newest {
        return Err(MetadataError::NewerSchema { version });
    }
    for step in STEPS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        database.run(step)?;
    }
    if version < newest {
        database.execute("UPDATE syncline_schema SET version = $1", &[&newest])?;
    }
    Ok(())
}
