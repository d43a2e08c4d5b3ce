//! What a group of commits reads and writes.
//!
//! SQLite runs in this process, so a statement costs no round trip: each kind of question is one prepared statement,
//! stepped once for each row. To hand over lists instead costs more than it saves.

use std::collections::HashMap;

use model::{DeviceId, EntryHash, Head, NodeId, WorkspaceId};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::log::{WORKSPACE, workspace};
use super::{Sqlite, bytes, failed, signed, unsigned};
use crate::metadata::commits::{Appended, CommitTables, Done, Found, Room, Wanted, Welcome};
use crate::metadata::{AccountId, Result, TokenLimits, WorkspaceNumber, WorkspaceRecord};

const WELCOME: &str = "SELECT accounts.id, scope, workspace, expires
     FROM devices JOIN accounts ON accounts.id = devices.account
     LEFT JOIN tokens ON tokens.device = devices.id
     WHERE devices.id = ?1 AND NOT devices.is_revoked AND NOT accounts.is_disabled";
const ROOM: &str = "SELECT quota_bytes,
            (SELECT coalesce(sum(used_bytes), 0) FROM workspaces WHERE owner = accounts.id)
     FROM accounts WHERE id = ?1 AND quota_bytes IS NOT NULL";
const OPERATION: &str =
    "SELECT seq, hash, CASE WHEN length(bytes) <= ?4 THEN bytes END FROM entries
     WHERE workspace = ?1 AND device = ?2 AND op_id = ?3";
const HASH: &str = "SELECT hash FROM entries WHERE workspace = ?1 AND seq = ?2";
const GENESIS: &str = "SELECT genesis FROM workspaces WHERE number = ?1";
const OBJECT: &str = "SELECT length FROM objects WHERE workspace = ?1 AND key = ?2";
const VERSION: &str = "SELECT version FROM node_versions WHERE workspace = ?1 AND node = ?2";
const ADD_ENTRY: &str = "INSERT INTO entries (workspace, seq, op_id, device, hash, bytes)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const SET_VERSION: &str = "INSERT INTO node_versions (workspace, node, version) VALUES (?1, ?2, ?3)
     ON CONFLICT (workspace, node) DO UPDATE SET version = excluded.version";
const SET_HEAD: &str = "UPDATE workspaces
     SET head_seq = ?2, head_hash = ?3, used_bytes = used_bytes + ?4 WHERE number = ?1";

/// Asks the same of many keys; returns those that have an answer.
pub(super) fn each<K, V, P: Params>(
    connection: &Connection,
    sql: &str,
    keys: impl IntoIterator<Item = K>,
    parameters: impl Fn(&K) -> P,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<V>,
) -> Result<Vec<(K, V)>> {
    let ask = || {
        let mut keys = keys.into_iter().peekable();
        if keys.peek().is_none() {
            return Ok(Vec::new());
        }
        let mut statement = connection.prepare_cached(sql)?;
        let mut answers = Vec::new();
        for key in keys {
            let answer = statement.query_row(parameters(&key), &read).optional()?;
            answers.extend(answer.map(|answer| (key, answer)));
        }
        Ok(answers)
    };
    ask().map_err(|error| failed(sql, &error))
}

/// Runs the same with many rows.
fn write<R>(
    connection: &Connection,
    sql: &str,
    rows: &[R],
    run: impl Fn(&mut rusqlite::Statement<'_>, &R) -> rusqlite::Result<usize>,
) -> Result<()> {
    let write = || {
        let mut statement = connection.prepare_cached(sql)?;
        rows.iter().try_for_each(|row| run(&mut statement, row).map(drop))
    };
    write().map_err(|error| failed(sql, &error))
}

impl CommitTables for Sqlite {
    fn welcome_devices(&self, devices: &[DeviceId]) -> Result<HashMap<DeviceId, Welcome>> {
        let parameters = |device: &DeviceId| [*device.as_bytes()];
        let found = each(&self.connection, WELCOME, devices.iter().copied(), parameters, |row| {
            let limits = TokenLimits::of_columns(row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(Welcome { account: AccountId(row.get(0)?), limits })
        })?;
        Ok(found.into_iter().collect())
    }

    fn open_workspaces(
        &self,
        workspaces: &[WorkspaceId],
    ) -> Result<HashMap<WorkspaceId, WorkspaceRecord>> {
        let sql = format!("{WORKSPACE} WHERE id = ?1");
        let parameters = |id: &WorkspaceId| [*id.as_bytes()];
        let ids = workspaces.iter().copied();
        Ok(each(&self.connection, &sql, ids, parameters, workspace)?.into_iter().collect())
    }

    fn rooms(&self, accounts: &[AccountId]) -> Result<HashMap<AccountId, Room>> {
        let parameters = |account: &AccountId| [account.0];
        let found = each(&self.connection, ROOM, accounts.iter().copied(), parameters, |row| {
            Ok(Room { quota_bytes: unsigned(row, 0)?, used_bytes: unsigned(row, 1)? })
        })?;
        Ok(found.into_iter().collect())
    }

    fn find(&self, wanted: &Wanted) -> Result<Found> {
        let connection = &self.connection;
        let operations = each(
            connection,
            OPERATION,
            &wanted.operations,
            |one| {
                let (device, op_id) = (*one.device.as_bytes(), *one.op_id.as_bytes());
                (one.workspace.0, device, op_id, signed(one.length_max))
            },
            |row| {
                let hash = EntryHash::from_bytes(bytes(row, 1)?);
                Ok(Done { head: Head { seq: unsigned(row, 0)?, hash }, bytes: row.get(2)? })
            },
        )?;
        let of_entry = |one: &&(WorkspaceNumber, u64)| (one.0.0, signed(one.1));
        let hash = |row: &Row<'_>| bytes(row, 0).map(EntryHash::from_bytes);
        let hashes = each(connection, HASH, &wanted.hashes, of_entry, hash)?;
        let of_workspace = |one: &WorkspaceNumber| [one.0];
        let geneses = wanted.geneses.iter().copied();
        let geneses = each(connection, GENESIS, geneses, of_workspace, |row| row.get(0))?;
        let objects = each(
            connection,
            OBJECT,
            &wanted.objects,
            |one| (one.0.0, one.1.as_str()),
            |row| unsigned(row, 0),
        )?;
        let of_node = |one: &&(WorkspaceNumber, NodeId)| (one.0.0, *one.1.as_bytes());
        let versions =
            each(connection, VERSION, &wanted.versions, of_node, |row| unsigned(row, 0))?;
        let operations = operations.into_iter();
        Ok(Found {
            operations: operations
                .map(|(one, done)| ((one.workspace, one.device, one.op_id), done))
                .collect(),
            hashes: hashes.into_iter().map(|(&entry, hash)| (entry, hash)).collect(),
            geneses: geneses.into_iter().collect(),
            objects: objects.into_iter().map(|(object, length)| (object.clone(), length)).collect(),
            versions: versions.into_iter().map(|(&node, version)| (node, version)).collect(),
        })
    }

    fn append(&mut self, appended: &Appended) -> Result<()> {
        let connection = &self.connection;
        write(connection, ADD_ENTRY, &appended.entries, |statement, row| {
            let (seq, hash) = (signed(row.head.seq), row.head.hash.as_bytes());
            let (op_id, device) = (row.op_id.as_bytes(), row.device.as_bytes());
            statement.execute(params![row.workspace.0, seq, op_id, device, hash, row.bytes])
        })?;
        write(
            connection,
            SET_VERSION,
            &appended.versions,
            |statement, (workspace, node, version)| {
                statement.execute(params![workspace.0, node.as_bytes(), signed(*version)])
            },
        )?;
        write(connection, SET_HEAD, &appended.heads, |statement, row| {
            let (seq, hash) = (signed(row.head.seq), row.head.hash.as_bytes());
            statement.execute(params![row.workspace.0, seq, hash, signed(row.added_bytes)])
        })
    }
}
