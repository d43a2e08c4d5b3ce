//! Rows of locked keys, of boxes of pairings, of identities and of envelopes.

use rusqlite::params;

use super::{Sqlite, signed, unsigned};
use crate::metadata::{AccountId, IdentityRecord, KeyTables, LockedKeys, Result, WorkspaceNumber};

impl KeyTables for Sqlite {
    fn locked_keys(&self, workspace: WorkspaceNumber) -> Result<Option<LockedKeys>> {
        let sql = "SELECT generation, bytes FROM locked_keys WHERE workspace = ?1";
        self.first(sql, [workspace.0], |row| {
            Ok(LockedKeys { generation: unsigned(row, 0)?, bytes: row.get(1)? })
        })
    }

    fn replace_locked_keys(
        &mut self,
        workspace: WorkspaceNumber,
        keys: &LockedKeys,
    ) -> Result<bool> {
        let sql = match keys.generation {
            1 => {
                "INSERT INTO locked_keys (workspace, generation, bytes) VALUES (?1, ?2, ?3)
                 ON CONFLICT (workspace) DO NOTHING"
            }
            _ => {
                "UPDATE locked_keys SET generation = ?2, bytes = ?3
                 WHERE workspace = ?1 AND generation = ?2 - 1"
            }
        };
        let values = params![workspace.0, signed(keys.generation), keys.bytes];
        Ok(self.execute(sql, values)? > 0)
    }

    fn pairing_box(&self, workspace: WorkspaceNumber, key: &str) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT bytes FROM pairing_boxes WHERE workspace = ?1 AND key = ?2";
        self.first(sql, params![workspace.0, key], |row| row.get(0))
    }

    fn pairing_boxes(&self, workspace: WorkspaceNumber) -> Result<Vec<(String, u64)>> {
        let sql = "SELECT key, length(bytes) FROM pairing_boxes WHERE workspace = ?1 ORDER BY key";
        self.all(sql, [workspace.0], |row| Ok((row.get(0)?, unsigned(row, 1)?)))
    }

    fn insert_pairing_box(
        &mut self,
        workspace: WorkspaceNumber,
        key: &str,
        bytes: &[u8],
        now: i64,
    ) -> Result<bool> {
        let sql = "INSERT INTO pairing_boxes (workspace, key, bytes, made) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (workspace, key) DO NOTHING";
        Ok(self.execute(sql, params![workspace.0, key, bytes, now])? > 0)
    }

    fn delete_pairing_box(&mut self, workspace: WorkspaceNumber, key: &str) -> Result<()> {
        let sql = "DELETE FROM pairing_boxes WHERE workspace = ?1 AND key = ?2";
        self.execute(sql, params![workspace.0, key]).map(drop)
    }

    fn delete_old_pairing_boxes(&mut self, workspace: WorkspaceNumber, before: i64) -> Result<()> {
        let sql = "DELETE FROM pairing_boxes WHERE workspace = ?1 AND made < ?2";
        self.execute(sql, params![workspace.0, before]).map(drop)
    }

    fn identity(&self, account: AccountId) -> Result<Option<IdentityRecord>> {
        let sql = "SELECT public_keys, locked FROM identities WHERE account = ?1";
        self.first(sql, [account.0], |row| {
            Ok(IdentityRecord { public: row.get(0)?, locked: row.get(1)? })
        })
    }

    fn replace_identity(
        &mut self,
        account: AccountId,
        identity: &IdentityRecord,
        replaced: Option<&[u8]>,
    ) -> Result<bool> {
        let IdentityRecord { public, locked } = identity;
        let count = match replaced {
            None => {
                let sql =
                    "INSERT INTO identities (account, public_keys, locked) VALUES (?1, ?2, ?3)
                           ON CONFLICT (account) DO NOTHING";
                self.execute(sql, params![account.0, public, locked])?
            }
            Some(replaced) => {
                let sql = "UPDATE identities SET public_keys = ?2, locked = ?3
                           WHERE account = ?1 AND public_keys = ?4";
                self.execute(sql, params![account.0, public, locked, replaced])?
            }
        };
        Ok(count > 0)
    }

    fn envelope(&self, workspace: WorkspaceNumber, account: AccountId) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT bytes FROM envelopes WHERE workspace = ?1 AND account = ?2";
        self.first(sql, [workspace.0, account.0], |row| row.get(0))
    }

    fn set_envelope(
        &mut self,
        workspace: WorkspaceNumber,
        account: AccountId,
        bytes: &[u8],
    ) -> Result<()> {
        let sql = "INSERT INTO envelopes (workspace, account, bytes) VALUES (?1, ?2, ?3)
                   ON CONFLICT (workspace, account) DO UPDATE SET bytes = excluded.bytes";
        self.execute(sql, params![workspace.0, account.0, bytes]).map(drop)
    }
}
