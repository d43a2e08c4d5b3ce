//! Rows of accounts and devices.

use model::{DeviceId, WorkspaceId};
use rusqlite::{Row, params};

use super::{Sqlite, bytes, signed, unsigned};
use crate::metadata::{
    AccountId, AccountRecord, AccountTables, DeviceRecord, MetadataError, Result, TokenLimits,
};

const ACCOUNT: &str =
    "SELECT id, name, password_hash, is_disabled, quota_bytes, created FROM accounts";
const DEVICE: &str = "SELECT id, account, name, created, last_seen, is_revoked,
            scope, workspace, expires
     FROM devices LEFT JOIN tokens ON device = id";

fn account(row: &Row<'_>) -> rusqlite::Result<AccountRecord> {
    Ok(AccountRecord {
        id: AccountId(row.get(0)?),
        name: row.get(1)?,
        password_hash: row.get(2)?,
        is_disabled: row.get(3)?,
        quota_bytes: row.get::<_, Option<i64>>(4)?.map(|quota| u64::try_from(quota).unwrap_or(0)),
        created: row.get(5)?,
    })
}

pub(super) fn device(row: &Row<'_>) -> rusqlite::Result<DeviceRecord> {
    Ok(DeviceRecord {
        id: DeviceId::from_bytes(bytes(row, 0)?),
        account: AccountId(row.get(1)?),
        name: row.get(2)?,
        created: row.get(3)?,
        last_seen: row.get(4)?,
        is_revoked: row.get(5)?,
        limits: TokenLimits::of_columns(row.get(6)?, row.get(7)?, row.get(8)?),
    })
}

impl AccountTables for Sqlite {
    fn account_by_name(&self, name: &str) -> Result<Option<AccountRecord>> {
        self.first(&format!("{ACCOUNT} WHERE name = ?1"), [name], account)
    }

    fn account(&self, id: AccountId) -> Result<Option<AccountRecord>> {
        self.first(&format!("{ACCOUNT} WHERE id = ?1"), [id.0], account)
    }

    fn accounts(&self) -> Result<Vec<AccountRecord>> {
        self.all(&format!("{ACCOUNT} ORDER BY name"), [], account)
    }

    fn account_count(&self) -> Result<u64> {
        let sql = "SELECT count(*) FROM accounts";
        Ok(self.first(sql, [], |row| unsigned(row, 0))?.unwrap_or(0))
    }

    fn insert_account(&mut self, name: &str, password_hash: &str, now: i64) -> Result<AccountId> {
        let sql = "INSERT INTO accounts (name, password_hash, is_disabled, quota_bytes, created)
                   VALUES (?1, ?2, 0, NULL, ?3)";
        self.execute(sql, params![name, password_hash, now]).map_err(|error| match error {
            MetadataError::Taken { .. } => {
                MetadataError::Taken { what: format!("an account called '{name}'") }
            }
            other => other,
        })?;
        Ok(AccountId(self.connection.last_insert_rowid()))
    }

    fn update_account(&mut self, id: AccountId, password_hash: &str, disabled: bool) -> Result<()> {
        let sql = "UPDATE accounts SET password_hash = ?2, is_disabled = ?3 WHERE id = ?1";
        self.execute(sql, params![id.0, password_hash, disabled]).map(drop)
    }

    fn update_disabled(&mut self, id: AccountId, is_disabled: bool) -> Result<()> {
        let sql = "UPDATE accounts SET is_disabled = ?2 WHERE id = ?1";
        self.execute(sql, params![id.0, is_disabled]).map(drop)
    }

    fn replace_password(&mut self, id: AccountId, old_hash: &str, new_hash: &str) -> Result<bool> {
        let sql = "UPDATE accounts SET password_hash = ?3
                   WHERE id = ?1 AND password_hash = ?2 AND NOT is_disabled";
        Ok(self.execute(sql, params![id.0, old_hash, new_hash])? > 0)
    }

    fn hold_password(&mut self, id: AccountId, password_hash: &str) -> Result<bool> {
        // Nobody else writes while a transaction is open.
        let sql =
            "SELECT id FROM accounts WHERE id = ?1 AND password_hash = ?2 AND NOT is_disabled";
        let found = self.first(sql, params![id.0, password_hash], |row| row.get::<_, i64>(0))?;
        Ok(found.is_some())
    }

    fn hold_account(&mut self, id: AccountId) -> Result<bool> {
        // Nobody else writes while a transaction is open.
        let sql = "SELECT id FROM accounts WHERE id = ?1 AND NOT is_disabled";
        Ok(self.first(sql, [id.0], |row| row.get::<_, i64>(0))?.is_some())
    }

    fn lock_account(&mut self, id: AccountId) -> Result<bool> {
        self.hold_account(id)
    }

    fn update_quota(&mut self, id: AccountId, quota_bytes: Option<u64>) -> Result<()> {
        let sql = "UPDATE accounts SET quota_bytes = ?2 WHERE id = ?1";
        self.execute(sql, params![id.0, quota_bytes.map(signed)]).map(drop)
    }

    fn delete_account(&mut self, id: AccountId) -> Result<()> {
        self.execute("DELETE FROM accounts WHERE id = ?1", [id.0]).map(drop)
    }

    fn used_bytes(&self, id: AccountId) -> Result<u64> {
        let sql = "SELECT coalesce(sum(used_bytes), 0) FROM workspaces WHERE owner = ?1";
        Ok(self.first(sql, [id.0], |row| unsigned(row, 0))?.unwrap_or(0))
    }

    fn device_by_token(&self, token_hash: &[u8; 32]) -> Result<Option<DeviceRecord>> {
        self.first(&format!("{DEVICE} WHERE token_hash = ?1"), [token_hash], device)
    }

    fn device(&self, id: DeviceId) -> Result<Option<DeviceRecord>> {
        self.first(&format!("{DEVICE} WHERE id = ?1"), [id.as_bytes()], device)
    }

    fn devices(&self, account: AccountId) -> Result<Vec<DeviceRecord>> {
        let sql = format!("{DEVICE} WHERE account = ?1 ORDER BY created, id");
        self.all(&sql, [account.0], device)
    }

    fn insert_device(&mut self, device: &DeviceRecord, token_hash: &[u8; 32]) -> Result<()> {
        let sql = "INSERT INTO devices
                   (id, account, name, token_hash, created, last_seen, is_revoked)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values = params![
            device.id.as_bytes(),
            device.account.0,
            device.name,
            token_hash,
            device.created,
            device.last_seen,
            device.is_revoked
        ];
        self.execute(sql, values)?;
        let Some(TokenLimits { scope, workspace, expires }) = &device.limits else { return Ok(()) };
        let sql = "INSERT INTO tokens (device, scope, workspace, expires) VALUES (?1, ?2, ?3, ?4)";
        let workspace = workspace.as_ref().map(WorkspaceId::as_bytes);
        self.execute(sql, params![device.id.as_bytes(), scope.number(), workspace, expires])
            .map(drop)
    }

    fn rename_device(&mut self, id: DeviceId, name: &str) -> Result<()> {
        self.execute("UPDATE devices SET name = ?2 WHERE id = ?1", params![id.as_bytes(), name])
            .map(drop)
    }

    fn revoke_device(&mut self, id: DeviceId) -> Result<()> {
        self.execute("UPDATE devices SET is_revoked = 1 WHERE id = ?1", [id.as_bytes()]).map(drop)
    }

    fn touch_device(&mut self, id: DeviceId, now: i64) -> Result<()> {
        let sql = "UPDATE devices SET last_seen = ?2 WHERE id = ?1";
        self.execute(sql, params![id.as_bytes(), now]).map(drop)
    }
}
