//! Rows of objects and of what is reserved for them.

use rusqlite::params;

use super::{Sqlite, signed, unsigned};
use crate::metadata::{AccountId, LogTables, ObjectTables, Result, WorkspaceNumber};

/// Greater than every byte of an object key, which is ASCII.
const AFTER_EVERY_KEY: char = '\u{7f}';

impl ObjectTables for Sqlite {
    fn object_length(&self, workspace: WorkspaceNumber, key: &str) -> Result<Option<u64>> {
        let sql = "SELECT length FROM objects WHERE workspace = ?1 AND key = ?2";
        self.first(sql, params![workspace.0, key], |row| unsigned(row, 0))
    }

    fn objects(
        &self,
        workspace: WorkspaceNumber,
        prefix: &str,
        start_after: &str,
        limit: usize,
    ) -> Result<Vec<(String, u64)>> {
        let sql = "SELECT key, length FROM objects
                   WHERE workspace = ?1 AND key >= ?2 AND key > ?3 AND key < ?4
                   ORDER BY key LIMIT ?5";
        let end = format!("{prefix}{AFTER_EVERY_KEY}");
        let values = params![workspace.0, prefix, start_after, end, signed(limit as u64)];
        self.all(sql, values, |row| Ok((row.get(0)?, unsigned(row, 1)?)))
    }

    fn has_objects(&self) -> Result<bool> {
        let found = self.first("SELECT 1 FROM objects LIMIT 1", [], |_| Ok(()))?;
        Ok(found.is_some())
    }

    fn insert_object(&mut self, workspace: WorkspaceNumber, key: &str, length: u64) -> Result<()> {
        let sql = "INSERT INTO objects (workspace, key, length) VALUES (?1, ?2, ?3)
                   ON CONFLICT (workspace, key) DO NOTHING";
        if self.execute(sql, params![workspace.0, key, signed(length)])? > 0 {
            self.add_used_bytes(workspace, signed(length))?;
        }
        Ok(())
    }

    fn delete_object(&mut self, workspace: WorkspaceNumber, key: &str) -> Result<()> {
        if let Some(length) = self.object_length(workspace, key)? {
            let sql = "DELETE FROM objects WHERE workspace = ?1 AND key = ?2";
            self.execute(sql, params![workspace.0, key])?;
            self.add_used_bytes(workspace, -signed(length))?;
        }
        Ok(())
    }

    fn reservation(&self, workspace: WorkspaceNumber, key: &str) -> Result<Option<u64>> {
        let sql = "SELECT length FROM reservations WHERE workspace = ?1 AND key = ?2";
        self.first(sql, params![workspace.0, key], |row| unsigned(row, 0))
    }

    fn reserved_bytes(&self, workspace: WorkspaceNumber) -> Result<u64> {
        let sql = "SELECT coalesce(sum(length), 0) FROM reservations WHERE workspace = ?1";
        Ok(self.first(sql, params![workspace.0], |row| unsigned(row, 0))?.unwrap_or(0))
    }

    fn insert_reservation(
        &mut self,
        workspace: WorkspaceNumber,
        key: &str,
        length: u64,
        now: i64,
    ) -> Result<()> {
        let sql = "INSERT INTO reservations (workspace, key, length, made) VALUES (?1, ?2, ?3, ?4)";
        self.execute(sql, params![workspace.0, key, signed(length), now])?;
        self.add_used_bytes(workspace, signed(length))
    }

    fn delete_reservation(&mut self, workspace: WorkspaceNumber, key: &str) -> Result<()> {
        let sql = "DELETE FROM reservations WHERE workspace = ?1 AND key = ?2 RETURNING length";
        let held = self.all(sql, params![workspace.0, key], |row| unsigned(row, 0))?;
        held.into_iter().try_for_each(|length| self.add_used_bytes(workspace, -signed(length)))
    }

    fn delete_old_reservations(&mut self, owner: AccountId, before: i64) -> Result<()> {
        let sql = "DELETE FROM reservations WHERE made < ?2
                   AND workspace IN (SELECT number FROM workspaces WHERE owner = ?1)
                   RETURNING workspace, length";
        let held = self.all(sql, params![owner.0, before], |row| {
            Ok((WorkspaceNumber(row.get(0)?), unsigned(row, 1)?))
        })?;
        held.into_iter()
            .try_for_each(|(workspace, length)| self.add_used_bytes(workspace, -signed(length)))
    }
}
