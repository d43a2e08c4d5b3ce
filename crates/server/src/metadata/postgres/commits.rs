//! What a group of commits reads and writes: a statement for each kind of row, with all keys or rows in it. Those that do
//! not need each other are sent together, so that a group waits for seven answers, its beginning and its end among them, however large it is.

use std::collections::HashMap;

use model::{DeviceId, EntryHash, Head, NodeId, OpId, WorkspaceId};
use tokio_postgres::{Row, Statement};

use super::accounts::limits;
use super::errors::Failure;
use super::log::{WORKSPACE, workspace};
use super::{Parameters, Postgres, Session, bytes, read_all, signed, unsigned};
use crate::metadata::commits::{Appended, CommitTables, Done, Found, Room, Wanted, Welcome};
use crate::metadata::{AccountId, Result, WorkspaceNumber, WorkspaceRecord};

const WELCOME: &str = "SELECT devices.id, accounts.id, scope, workspace, expires
     FROM devices JOIN accounts ON accounts.id = devices.account
     LEFT JOIN tokens ON tokens.device = devices.id
     WHERE devices.id = ANY ($1) AND NOT devices.is_revoked AND NOT accounts.is_disabled";
const QUOTAS: &str = "SELECT id, quota_bytes FROM accounts
     WHERE id = ANY ($1) AND quota_bytes IS NOT NULL ORDER BY id";
const USED: &str = "SELECT owner, sum(used_bytes)::bigint FROM workspaces
     WHERE owner = ANY ($1) GROUP BY owner";
const OPERATIONS: &str = "SELECT workspace, device, op_id, seq, hash,
            CASE WHEN octet_length(bytes) <= length_max THEN bytes END
     FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[])
          AS wanted (workspace, device, op_id, length_max)
     JOIN entries USING (workspace, device, op_id)";
const HASHES: &str = "SELECT workspace, seq, hash
     FROM unnest($1::bigint[], $2::bigint[]) AS wanted (workspace, seq)
     JOIN entries USING (workspace, seq)";
const GENESES: &str = "SELECT number, genesis FROM workspaces WHERE number = ANY ($1)";
const OBJECTS: &str = "SELECT workspace, key, length
     FROM unnest($1::bigint[], $2::text[]) AS wanted (workspace, key)
     JOIN objects USING (workspace, key)";
const VERSIONS: &str = "SELECT workspace, node, version
     FROM unnest($1::bigint[], $2::bytea[]) AS wanted (workspace, node)
     JOIN node_versions USING (workspace, node)";
const ADD_ENTRIES: &str = "INSERT INTO entries (workspace, seq, op_id, device, hash, bytes)
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[])";
const SET_VERSIONS: &str = "INSERT INTO node_versions (workspace, node, version)
     SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[])
     ON CONFLICT (workspace, node) DO UPDATE SET version = excluded.version";
const SET_HEADS: &str = "UPDATE workspaces
     SET head_seq = new.seq, head_hash = new.hash, used_bytes = used_bytes + new.added
     FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[]) AS new (number, seq, hash, added)
     WHERE workspaces.number = new.number";

/// Statements that are sent together; one without keys is not sent.
struct Together<'a, const N: usize> {
    statements: [(&'static str, bool, Parameters<'a>); N],
}

impl<const N: usize> Together<'_, N> {
    /// Sends them and returns the rows of each. They are done one after the other, and none after one that fails.
    fn send(&self, database: &Postgres) -> Result<[Vec<Row>; N]> {
        let operation = self.statements[0].0;
        database.on_session(operation, |session| {
            let prepared = self.prepare(database, session)?;
            let sent = self.statements.iter().zip(&prepared).map(|((_, _, parameters), one)| {
                let client = &session.client;
                async move {
                    match one {
                        Some(statement) => client.query(statement, parameters).await,
                        None => Ok(Vec::new()),
                    }
                }
            });
            let rows = database.wait(futures_util::future::try_join_all(sent))?;
            Ok(rows.try_into().expect("as many answers as statements"))
        })
    }

    fn prepare(
        &self,
        database: &Postgres,
        session: &mut Session,
    ) -> Result<Vec<Option<Statement>>, Failure> {
        let wanted = self.statements.iter();
        wanted
            .map(|(sql, is_wanted, _)| {
                is_wanted.then(|| database.prepared(session, sql)).transpose()
            })
            .collect()
    }
}

/// Takes one column out of keys or rows.
fn column<'a, R, T>(rows: &'a [R], take: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(take).collect()
}

fn number(row: &Row) -> Result<WorkspaceNumber, tokio_postgres::Error> {
    row.try_get(0).map(WorkspaceNumber)
}

impl CommitTables for Postgres {
    fn welcome_devices(&self, devices: &[DeviceId]) -> Result<HashMap<DeviceId, Welcome>> {
        let ids = column(devices, |id| *id.as_bytes());
        let found = self.all(WELCOME, &[&ids], |row| {
            let welcome = Welcome { account: AccountId(row.try_get(1)?), limits: limits(row, 2)? };
            Ok((DeviceId::from_bytes(bytes(row, 0)?), welcome))
        })?;
        Ok(found.into_iter().collect())
    }

    fn open_workspaces(
        &self,
        workspaces: &[WorkspaceId],
    ) -> Result<HashMap<WorkspaceId, WorkspaceRecord>> {
        let ids = column(workspaces, |id| *id.as_bytes());
        let sql = format!("{WORKSPACE} WHERE id = ANY ($1) ORDER BY number{}", self.lock());
        let found = self.all(&sql, &[&ids], workspace)?;
        Ok(found.into_iter().map(|record| (record.id, record)).collect())
    }

    fn rooms(&self, accounts: &[AccountId]) -> Result<HashMap<AccountId, Room>> {
        let ids = column(accounts, |id| id.0);
        let sql = format!("{QUOTAS}{}", self.lock());
        let quotas =
            self.all(&sql, &[&ids], |row| Ok((AccountId(row.try_get(0)?), unsigned(row, 1)?)))?;
        if quotas.is_empty() {
            return Ok(HashMap::new());
        }
        let room = |&(id, quota_bytes): &_| (id, Room { quota_bytes, used_bytes: 0 });
        let mut rooms: HashMap<_, _> = quotas.iter().map(room).collect();
        // A statement of its own: it sees what those have written who held the locks before.
        let ids = column(&quotas, |quota| quota.0.0);
        let used =
            self.all(USED, &[&ids], |row| Ok((AccountId(row.try_get(0)?), unsigned(row, 1)?)))?;
        for (id, used_bytes) in used {
            rooms.entry(id).and_modify(|room| room.used_bytes = used_bytes);
        }
        Ok(rooms)
    }

    fn find(&self, wanted: &Wanted) -> Result<Found> {
        let Wanted { operations, hashes, geneses, objects, versions } = wanted;
        let [
            rows_of_operations,
            rows_of_hashes,
            rows_of_geneses,
            rows_of_objects,
            rows_of_versions,
        ] = Together {
            statements: [
                (
                    OPERATIONS,
                    !operations.is_empty(),
                    &[
                        &column(operations, |one| one.workspace.0),
                        &column(operations, |one| *one.device.as_bytes()),
                        &column(operations, |one| *one.op_id.as_bytes()),
                        &column(operations, |one| signed(one.length_max)),
                    ],
                ),
                (
                    HASHES,
                    !hashes.is_empty(),
                    &[&column(hashes, |one| one.0.0), &column(hashes, |one| signed(one.1))],
                ),
                (GENESES, !geneses.is_empty(), &[&column(geneses, |one| one.0)]),
                (
                    OBJECTS,
                    !objects.is_empty(),
                    &[&column(objects, |one| one.0.0), &column(objects, |one| one.1.as_str())],
                ),
                (
                    VERSIONS,
                    !versions.is_empty(),
                    &[&column(versions, |one| one.0.0), &column(versions, |one| *one.1.as_bytes())],
                ),
            ],
        }
        .send(self)?;
        let done = |row: &Row| {
            let (device, op_id) = (DeviceId::from_bytes(bytes(row, 1)?), bytes(row, 2)?);
            let hash = EntryHash::from_bytes(bytes(row, 4)?);
            let done = Done { head: Head { seq: unsigned(row, 3)?, hash }, bytes: row.try_get(5)? };
            Ok(((number(row)?, device, OpId::from_bytes(op_id)), done))
        };
        let hash = |row: &Row| {
            let hash = EntryHash::from_bytes(bytes(row, 2)?);
            Ok(((number(row)?, unsigned(row, 1)?), hash))
        };
        let genesis = |row: &Row| Ok((number(row)?, row.try_get(1)?));
        let object = |row: &Row| Ok(((number(row)?, row.try_get(1)?), unsigned(row, 2)?));
        let version = |row: &Row| {
            let node = NodeId::from_bytes(bytes(row, 1)?);
            Ok(((number(row)?, node), unsigned(row, 2)?))
        };
        Ok(Found {
            operations: read_all(OPERATIONS, &rows_of_operations, done)?.into_iter().collect(),
            hashes: read_all(HASHES, &rows_of_hashes, hash)?.into_iter().collect(),
            geneses: read_all(GENESES, &rows_of_geneses, genesis)?.into_iter().collect(),
            objects: read_all(OBJECTS, &rows_of_objects, object)?.into_iter().collect(),
            versions: read_all(VERSIONS, &rows_of_versions, version)?.into_iter().collect(),
        })
    }

    fn append(&mut self, appended: &Appended) -> Result<()> {
        let Appended { entries, heads, versions } = appended;
        let statements: [(&str, bool, Parameters<'_>); 3] = [
            (
                ADD_ENTRIES,
                !entries.is_empty(),
                &[
                    &column(entries, |row| row.workspace.0),
                    &column(entries, |row| signed(row.head.seq)),
                    &column(entries, |row| *row.op_id.as_bytes()),
                    &column(entries, |row| *row.device.as_bytes()),
                    &column(entries, |row| *row.head.hash.as_bytes()),
                    &column(entries, |row| row.bytes.as_slice()),
                ],
            ),
            (
                SET_VERSIONS,
                !versions.is_empty(),
                &[
                    &column(versions, |row| row.0.0),
                    &column(versions, |row| *row.1.as_bytes()),
                    &column(versions, |row| signed(row.2)),
                ],
            ),
            (
                SET_HEADS,
                !heads.is_empty(),
                &[
                    &column(heads, |row| row.workspace.0),
                    &column(heads, |row| signed(row.head.seq)),
                    &column(heads, |row| *row.head.hash.as_bytes()),
                    &column(heads, |row| signed(row.added_bytes)),
                ],
            ),
        ];
        Together { statements }.send(self).map(drop)
    }
}
