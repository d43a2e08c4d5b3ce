//! Rows of workspaces, entries and checkpoints.

use model::{EntryHash, Head, WorkspaceId};
use tokio_postgres::Row;

use super::{Postgres, bytes, is_storable, signed, unsigned};
use crate::metadata::{
    AccountId, LogTables, MetadataError, Result, WorkspaceNumber, WorkspaceRecord,
};

pub(super) const WORKSPACE: &str =
    "SELECT number, id, owner, name, head_seq, head_hash, used_bytes FROM workspaces";

/// How many entries are looked at for one page of them.
const ENTRIES_MAX: i64 = 8192;

pub(super) fn workspace(row: &Row) -> Result<WorkspaceRecord, tokio_postgres::Error> {
    Ok(WorkspaceRecord {
        number: WorkspaceNumber(row.try_get(0)?),
        id: WorkspaceId::from_bytes(bytes(row, 1)?),
        owner: AccountId(row.try_get(2)?),
        name: row.try_get(3)?,
        head: Head { seq: unsigned(row, 4)?, hash: EntryHash::from_bytes(bytes(row, 5)?) },
        used_bytes: unsigned(row, 6)?,
    })
}

impl LogTables for Postgres {
    fn workspace(&self, id: WorkspaceId) -> Result<Option<WorkspaceRecord>> {
        let sql = format!("{WORKSPACE} WHERE id = $1{}", self.lock());
        self.first(&sql, &[id.as_bytes()], workspace)
    }

    fn workspace_by_name(&self, owner: AccountId, name: &str) -> Result<Option<WorkspaceRecord>> {
        if !is_storable(name) {
            return Ok(None);
        }
        let sql = format!("{WORKSPACE} WHERE owner = $1 AND name = $2");
        self.first(&sql, &[&owner.0, &name], workspace)
    }

    fn workspaces(&self, owner: AccountId) -> Result<Vec<WorkspaceRecord>> {
        self.all(&format!("{WORKSPACE} WHERE owner = $1 ORDER BY name"), &[&owner.0], workspace)
    }

    fn insert_workspace(
        &mut self,
        id: WorkspaceId,
        owner: AccountId,
        name: &str,
        head: Head,
        genesis: &[u8],
    ) -> Result<()> {
        let sql = "INSERT INTO workspaces
                   (id, owner, name, head_seq, head_hash, used_bytes, genesis)
                   VALUES ($1, $2, $3, $4, $5, 0, $6)";
        let (seq, hash) = (signed(head.seq), head.hash.as_bytes());
        self.execute(sql, &[id.as_bytes(), &owner.0, &name, &seq, hash, &genesis]).map(drop)
    }

    fn genesis(&self, workspace: WorkspaceNumber) -> Result<Vec<u8>> {
        let sql = "SELECT genesis FROM workspaces WHERE number = $1";
        let genesis = self.first(sql, &[&workspace.0], |row| row.try_get(0))?;
        genesis.ok_or_else(|| MetadataError::Damaged {
            what: format!("workspace {}", workspace.0),
            detail: "its row has gone".to_owned(),
        })
    }

    fn add_used_bytes(&mut self, workspace: WorkspaceNumber, change: i64) -> Result<()> {
        let sql =
            "UPDATE workspaces SET used_bytes = greatest(0, used_bytes + $2) WHERE number = $1";
        self.execute(sql, &[&workspace.0, &change]).map(drop)
    }

    fn entry_hash(&self, workspace: WorkspaceNumber, seq: u64) -> Result<Option<EntryHash>> {
        let sql = "SELECT hash FROM entries WHERE workspace = $1 AND seq = $2";
        self.first(sql, &[&workspace.0, &signed(seq)], |row| {
            bytes(row, 0).map(EntryHash::from_bytes)
        })
    }

    fn entries(
        &self,
        workspace: WorkspaceNumber,
        since: u64,
        length_max: u64,
    ) -> Result<Vec<Vec<u8>>> {
        // The lengths are known without reading what is long.
        let sql = "SELECT bytes FROM (
                       SELECT seq, bytes, row_number() OVER (ORDER BY seq) AS place,
                              sum(octet_length(bytes)) OVER (ORDER BY seq) AS length
                       FROM (SELECT seq, bytes FROM entries WHERE workspace = $1 AND seq > $2
                             ORDER BY seq LIMIT $4) AS next
                   ) AS measured
                   WHERE place = 1 OR length <= $3 ORDER BY seq";
        let values: super::Parameters<'_> =
            &[&workspace.0, &signed(since), &signed(length_max), &ENTRIES_MAX];
        self.all(sql, values, |row| row.try_get(0))
    }

    fn checkpoint(&self, workspace: WorkspaceNumber) -> Result<Option<(u64, Vec<u8>)>> {
        let sql = "SELECT seq, bytes FROM checkpoints WHERE workspace = $1";
        self.first(sql, &[&workspace.0], |row| Ok((unsigned(row, 0)?, row.try_get(1)?)))
    }

    fn set_checkpoint(&mut self, workspace: WorkspaceNumber, seq: u64, bytes: &[u8]) -> Result<()> {
        let sql = "INSERT INTO checkpoints (workspace, seq, bytes) VALUES ($1, $2, $3)
                   ON CONFLICT (workspace) DO UPDATE SET seq = excluded.seq, bytes = excluded.bytes";
        self.execute(sql, &[&workspace.0, &signed(seq), &bytes]).map(drop)
    }
}
