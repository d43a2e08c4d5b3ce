//! Rows of workspaces, entries, versions and checkpoints.

use model::{EntryHash, Head, WorkspaceId};
use rusqlite::{Row, params};

use super::{Sqlite, bytes, failed, signed, unsigned};
use crate::metadata::{
    AccountId, LogTables, MetadataError, Result, WorkspaceNumber, WorkspaceRecord,
};

pub(super) const WORKSPACE: &str =
    "SELECT number, id, owner, name, head_seq, head_hash, used_bytes FROM workspaces";

pub(super) fn workspace(row: &Row<'_>) -> rusqlite::Result<WorkspaceRecord> {
    Ok(WorkspaceRecord {
        number: WorkspaceNumber(row.get(0)?),
        id: WorkspaceId::from_bytes(bytes(row, 1)?),
        owner: AccountId(row.get(2)?),
        name: row.get(3)?,
        head: Head { seq: unsigned(row, 4)?, hash: EntryHash::from_bytes(bytes(row, 5)?) },
        used_bytes: unsigned(row, 6)?,
    })
}

impl LogTables for Sqlite {
    fn workspace(&self, id: WorkspaceId) -> Result<Option<WorkspaceRecord>> {
        self.first(&format!("{WORKSPACE} WHERE id = ?1"), [id.as_bytes()], workspace)
    }

    fn workspace_by_name(&self, owner: AccountId, name: &str) -> Result<Option<WorkspaceRecord>> {
        let sql = format!("{WORKSPACE} WHERE owner = ?1 AND name = ?2");
        self.first(&sql, params![owner.0, name], workspace)
    }

    fn workspaces(&self, owner: AccountId) -> Result<Vec<WorkspaceRecord>> {
        self.all(&format!("{WORKSPACE} WHERE owner = ?1 ORDER BY name"), [owner.0], workspace)
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
                   VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)";
        let (seq, hash) = (signed(head.seq), head.hash.as_bytes());
        self.execute(sql, params![id.as_bytes(), owner.0, name, seq, hash, genesis]).map(drop)
    }

    fn genesis(&self, workspace: WorkspaceNumber) -> Result<Vec<u8>> {
        let sql = "SELECT genesis FROM workspaces WHERE number = ?1";
        let genesis = self.first(sql, [workspace.0], |row| row.get(0))?;
        genesis.ok_or_else(|| MetadataError::Damaged {
            what: format!("workspace {}", workspace.0),
            detail: "its row has gone".to_owned(),
        })
    }

    fn add_used_bytes(&mut self, workspace: WorkspaceNumber, change: i64) -> Result<()> {
        let sql = "UPDATE workspaces SET used_bytes = max(0, used_bytes + ?2) WHERE number = ?1";
        self.execute(sql, params![workspace.0, change]).map(drop)
    }

    fn entry_hash(&self, workspace: WorkspaceNumber, seq: u64) -> Result<Option<EntryHash>> {
        let sql = "SELECT hash FROM entries WHERE workspace = ?1 AND seq = ?2";
        self.first(sql, params![workspace.0, signed(seq)], |row| {
            bytes(row, 0).map(EntryHash::from_bytes)
        })
    }

    fn entries(
        &self,
        workspace: WorkspaceNumber,
        since: u64,
        length_max: u64,
    ) -> Result<Vec<Vec<u8>>> {
        let sql = "SELECT bytes FROM entries WHERE workspace = ?1 AND seq > ?2 ORDER BY seq";
        let read = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![workspace.0, signed(since)])?;
            let (mut entries, mut length) = (Vec::new(), 0_u64);
            while let Some(row) = rows.next()? {
                let entry: Vec<u8> = row.get(0)?;
                length += entry.len() as u64;
                if length > length_max && !entries.is_empty() {
                    break;
                }
                entries.push(entry);
            }
            Ok(entries)
        };
        read().map_err(|error| failed(sql, &error))
    }

    fn checkpoint(&self, workspace: WorkspaceNumber) -> Result<Option<(u64, Vec<u8>)>> {
        let sql = "SELECT seq, bytes FROM checkpoints WHERE workspace = ?1";
        self.first(sql, [workspace.0], |row| Ok((unsigned(row, 0)?, row.get(1)?)))
    }

    fn set_checkpoint(&mut self, workspace: WorkspaceNumber, seq: u64, bytes: &[u8]) -> Result<()> {
        let sql = "INSERT INTO checkpoints (workspace, seq, bytes) VALUES (?1, ?2, ?3)
                   ON CONFLICT (workspace) DO UPDATE SET seq = excluded.seq, bytes = excluded.bytes";
        self.execute(sql, params![workspace.0, signed(seq), bytes]).map(drop)
    }
}
