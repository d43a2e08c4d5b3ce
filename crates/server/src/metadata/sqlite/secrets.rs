//! Rows of what servers keep for themselves.

use rusqlite::params;

use super::Sqlite;
use crate::metadata::{Result, SecretTables};

impl SecretTables for Sqlite {
    fn secret(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.first("SELECT bytes FROM secrets WHERE name = ?1", [name], |row| row.get(0))
    }

    fn keep_secret(&mut self, name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
        let sql = "INSERT INTO secrets (name, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        self.execute(sql, params![name, bytes])?;
        Ok(self.secret(name)?.unwrap_or_else(|| bytes.to_vec()))
    }
}
