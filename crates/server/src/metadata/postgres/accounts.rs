//! Rows of accounts and devices.

use model::{DeviceId, WorkspaceId};
use tokio_postgres::Row;

use super::{Fixed, Postgres, bytes, is_storable, signed, unsigned};
use crate::metadata::{
    AccountId, AccountRecord, AccountTables, DeviceRecord, MetadataError, Result, TokenLimits,
};

const ACCOUNT: &str =
    "SELECT id, name, password_hash, is_disabled, quota_bytes, created FROM accounts";
const DEVICE: &str = "SELECT id, account, name, created, last_seen, is_revoked,
            scope, workspace, expires
     FROM devices LEFT JOIN tokens ON device = id";

fn account(row: &Row) -> Result<AccountRecord, tokio_postgres::Error> {
    let quota: Option<i64> = row.try_get(4)?;
    Ok(AccountRecord {
        id: AccountId(row.try_get(0)?),
        name: row.try_get(1)?,
        password_hash: row.try_get(2)?,
        is_disabled: row.try_get(3)?,
        quota_bytes: quota.map(|quota| u64::try_from(quota).unwrap_or(0)),
        created: row.try_get(5)?,
    })
}

pub(super) fn device(row: &Row) -> Result<DeviceRecord, tokio_postgres::Error> {
    Ok(DeviceRecord {
        id: DeviceId::from_bytes(bytes(row, 0)?),
        account: AccountId(row.try_get(1)?),
        name: row.try_get(2)?,
        created: row.try_get(3)?,
        last_seen: row.try_get(4)?,
        is_revoked: row.try_get(5)?,
        limits: limits(row, 6)?,
    })
}

/// Reads the three columns of a token, which may be empty.
pub(super) fn limits(
    row: &Row,
    column: usize,
) -> Result<Option<TokenLimits>, tokio_postgres::Error> {
    let workspace = row.try_get::<_, Option<Fixed<16>>>(column + 1)?.map(|fixed| fixed.0);
    Ok(TokenLimits::of_columns(row.try_get(column)?, workspace, row.try_get(column + 2)?))
}

impl AccountTables for Postgres {
    fn account_by_name(&self, name: &str) -> Result<Option<AccountRecord>> {
        if !is_storable(name) {
            return Ok(None);
        }
        self.first(&format!("{ACCOUNT} WHERE name = $1"), &[&name], account)
    }

    fn account(&self, id: AccountId) -> Result<Option<AccountRecord>> {
        self.first(&format!("{ACCOUNT} WHERE id = $1"), &[&id.0], account)
    }

    fn accounts(&self) -> Result<Vec<AccountRecord>> {
        self.all(&format!("{ACCOUNT} ORDER BY name"), &[], account)
    }

    fn account_count(&self) -> Result<u64> {
        let sql = "SELECT count(*) FROM accounts";
        Ok(self.first(sql, &[], |row| unsigned(row, 0))?.unwrap_or(0))
    }

    fn insert_account(&mut self, name: &str, password_hash: &str, now: i64) -> Result<AccountId> {
        let sql = "INSERT INTO accounts (name, password_hash, is_disabled, quota_bytes, created)
                   VALUES ($1, $2, FALSE, NULL, $3) RETURNING id";
        let rows = self.write(sql, &[&name, &password_hash, &now]);
        let rows = rows.map_err(|error| match error {
            MetadataError::Taken { .. } => {
                MetadataError::Taken { what: format!("an account called '{name}'") }
            }
            other => other,
        })?;
        let ids = super::read_all(sql, &rows, |row| row.try_get(0).map(AccountId))?;
        ids.first().copied().ok_or_else(|| MetadataError::Failed {
            operation: "INSERT INTO accounts".to_owned(),
            detail: "it gave no number".to_owned(),
        })
    }

    fn update_account(&mut self, id: AccountId, password_hash: &str, disabled: bool) -> Result<()> {
        let sql = "UPDATE accounts SET password_hash = $2, is_disabled = $3 WHERE id = $1";
        self.execute(sql, &[&id.0, &password_hash, &disabled]).map(drop)
    }

    fn update_disabled(&mut self, id: AccountId, is_disabled: bool) -> Result<()> {
        let sql = "UPDATE accounts SET is_disabled = $2 WHERE id = $1";
        self.execute(sql, &[&id.0, &is_disabled]).map(drop)
    }

    fn replace_password(&mut self, id: AccountId, old_hash: &str, new_hash: &str) -> Result<bool> {
        let sql = "UPDATE accounts SET password_hash = $3
                   WHERE id = $1 AND password_hash = $2 AND NOT is_disabled";
        Ok(self.execute(sql, &[&id.0, &old_hash, &new_hash])? > 0)
    }

    fn hold_password(&mut self, id: AccountId, password_hash: &str) -> Result<bool> {
        let sql = "SELECT id FROM accounts
                   WHERE id = $1 AND password_hash = $2 AND NOT is_disabled FOR SHARE";
        let found = self.first(sql, &[&id.0, &password_hash], |row| row.try_get::<_, i64>(0))?;
        Ok(found.is_some())
    }

    fn hold_account(&mut self, id: AccountId) -> Result<bool> {
        let sql = "SELECT id FROM accounts WHERE id = $1 AND NOT is_disabled FOR SHARE";
        Ok(self.first(sql, &[&id.0], |row| row.try_get::<_, i64>(0))?.is_some())
    }

    fn lock_account(&mut self, id: AccountId) -> Result<bool> {
        let sql = "SELECT id FROM accounts WHERE id = $1 AND NOT is_disabled FOR NO KEY UPDATE";
        Ok(self.first(sql, &[&id.0], |row| row.try_get::<_, i64>(0))?.is_some())
    }

    fn update_quota(&mut self, id: AccountId, quota_bytes: Option<u64>) -> Result<()> {
        let sql = "UPDATE accounts SET quota_bytes = $2 WHERE id = $1";
        self.execute(sql, &[&id.0, &quota_bytes.map(signed)]).map(drop)
    }

    fn delete_account(&mut self, id: AccountId) -> Result<()> {
        self.execute("DELETE FROM accounts WHERE id = $1", &[&id.0]).map(drop)
    }

    fn used_bytes(&self, id: AccountId) -> Result<u64> {
        let sql = "SELECT coalesce(sum(used_bytes), 0)::bigint FROM workspaces WHERE owner = $1";
        Ok(self.first(sql, &[&id.0], |row| unsigned(row, 0))?.unwrap_or(0))
    }

    fn device_by_token(&self, token_hash: &[u8; 32]) -> Result<Option<DeviceRecord>> {
        self.first(&format!("{DEVICE} WHERE token_hash = $1"), &[&token_hash], device)
    }

    fn device(&self, id: DeviceId) -> Result<Option<DeviceRecord>> {
        self.first(&format!("{DEVICE} WHERE id = $1"), &[id.as_bytes()], device)
    }

    fn devices(&self, account: AccountId) -> Result<Vec<DeviceRecord>> {
        let sql = format!("{DEVICE} WHERE account = $1 ORDER BY created, id");
        self.all(&sql, &[&account.0], device)
    }

    fn insert_device(&mut self, device: &DeviceRecord, token_hash: &[u8; 32]) -> Result<()> {
        let sql = "INSERT INTO devices
                   (id, account, name, token_hash, created, last_seen, is_revoked)
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let DeviceRecord { id, account, name, created, last_seen, is_revoked, limits } = device;
        let id = id.as_bytes();
        let values: super::Parameters<'_> =
            &[id, &account.0, name, token_hash, created, last_seen, is_revoked];
        self.execute(sql, values)?;
        let Some(TokenLimits { scope, workspace, expires }) = limits else { return Ok(()) };
        let sql = "INSERT INTO tokens (device, scope, workspace, expires) VALUES ($1, $2, $3, $4)";
        let workspace = workspace.as_ref().map(WorkspaceId::as_bytes);
        self.execute(sql, &[id, &scope.number(), &workspace, expires]).map(drop)
    }

    fn rename_device(&mut self, id: DeviceId, name: &str) -> Result<()> {
        self.execute("UPDATE devices SET name = $2 WHERE id = $1", &[id.as_bytes(), &name])
            .map(drop)
    }

    fn revoke_device(&mut self, id: DeviceId) -> Result<()> {
        self.execute("UPDATE devices SET is_revoked = TRUE WHERE id = $1", &[id.as_bytes()])
            .map(drop)
    }

    fn touch_device(&mut self, id: DeviceId, now: i64) -> Result<()> {
        let sql = "UPDATE devices SET last_seen = $2 WHERE id = $1";
        self.execute(sql, &[id.as_bytes(), &now]).map(drop)
    }
}
