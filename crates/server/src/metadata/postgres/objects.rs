//! Rows of objects and of what is reserved for them.

use tokio_postgres::Row;

use super::{Postgres, is_storable, read_all, signed, unsigned};
use crate::metadata::{AccountId, LogTables, ObjectTables, Result, WorkspaceNumber};

/// Greater than every byte of an object key, which is ASCII.
const AFTER_EVERY_KEY: char = '\u{7f}';

impl ObjectTables for Postgres {
    fn object_length(&self, workspace: WorkspaceNumber, key: &str) -> Result<Option<u64>> {
        let sql = "SELECT length FROM objects WHERE workspace = $1 AND key = $2";
        self.first(sql, &[&workspace.0, &key], |row| unsigned(row, 0))
    }

    fn objects(
        &self,
        workspace: WorkspaceNumber,
        prefix: &str,
        start_after: &str,
        limit: usize,
    ) -> Result<Vec<(String, u64)>> {
        if !is_storable(prefix) || !is_storable(start_after) {
            return Ok(Vec::new());
        }
        let sql = "SELECT key, length FROM objects
                   WHERE workspace = $1 AND key >= $2 AND key > $3 AND key < $4
                   ORDER BY key LIMIT $5";
        let end = format!("{prefix}{AFTER_EVERY_KEY}");
        let limit = signed(limit as u64);
        let values: super::Parameters<'_> = &[&workspace.0, &prefix, &start_after, &end, &limit];
        self.all(sql, values, |row| Ok((row.try_get(0)?, unsigned(row, 1)?)))
    }

    fn has_objects(&self) -> Result<bool> {
        Ok(!self.ask("SELECT 1 FROM objects LIMIT 1", &[])?.is_empty())
    }

    fn insert_object(&mut self, workspace: WorkspaceNumber, key: &str, length: u64) -> Result<()> {
        let sql = "INSERT INTO objects (workspace, key, length) VALUES ($1, $2, $3)
                   ON CONFLICT (workspace, key) DO NOTHING";
        if self.execute(sql, &[&workspace.0, &key, &signed(length)])? > 0 {
            self.add_used_bytes(workspace, signed(length))?;
        }
        Ok(())
    }

    fn delete_object(&mut self, workspace: WorkspaceNumber, key: &str) -> Result<()> {
        let sql = "DELETE FROM objects WHERE workspace = $1 AND key = $2 RETURNING length";
        let rows = self.write(sql, &[&workspace.0, &key])?;
        for length in read_all(sql, &rows, |row| unsigned(row, 0))? {
            self.add_used_bytes(workspace, -signed(length))?;
        }
        Ok(())
    }

    fn reservation(&self, workspace: WorkspaceNumber, key: &str) -> Result<Option<u64>> {
        let sql = "SELECT length FROM reservations WHERE workspace = $1 AND key = $2";
        self.first(sql, &[&workspace.0, &key], |row| unsigned(row, 0))
    }

    fn reserved_bytes(&self, workspace: WorkspaceNumber) -> Result<u64> {
        let sql = "SELECT coalesce(sum(length), 0)::bigint FROM reservations WHERE workspace = $1";
        Ok(self.first(sql, &[&workspace.0], |row| unsigned(row, 0))?.unwrap_or(0))
    }

    fn insert_reservation(
        &mut self,
        workspace: WorkspaceNumber,
        key: &str,
        length: u64,
        now: i64,
    ) -> Result<()> {
        let sql = "INSERT INTO reservations (workspace, key, length, made) VALUES ($1, $2, $3, $4)";
        self.execute(sql, &[&workspace.0, &key, &signed(length), &now])?;
        self.add_used_bytes(workspace, signed(length))
    }

    fn delete_reservation(&mut self, workspace: WorkspaceNumber, key: &str) -> Result<()> {
        let sql = "DELETE FROM reservations WHERE workspace = $1 AND key = $2 RETURNING length";
        let rows = self.write(sql, &[&workspace.0, &key])?;
        for length in read_all(sql, &rows, |row| unsigned(row, 0))? {
            self.add_used_bytes(workspace, -signed(length))?;
        }
        Ok(())
    }

    fn delete_old_reservations(&mut self, owner: AccountId, before: i64) -> Result<()> {
        let sql = "DELETE FROM reservations WHERE made < $2
                   AND workspace IN (SELECT number FROM workspaces WHERE owner = $1)
                   RETURNING workspace, length";
        let rows = self.write(sql, &[&owner.0, &before])?;
        let read = |row: &Row| Ok((WorkspaceNumber(row.try_get(0)?), unsigned(row, 1)?));
        for (workspace, length) in read_all(sql, &rows, read)? {
            self.add_used_bytes(workspace, -signed(length))?;
        }
        Ok(())
    }
}
