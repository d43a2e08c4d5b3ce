//! Rows of second factors and of recovery codes.

use super::{Parameters, Postgres, bytes, unsigned};
use crate::auth::totp::TotpSecret;
use crate::metadata::{AccountId, Result, SecondFactorRecord, SecondFactorTables};

impl SecondFactorTables for Postgres {
    fn second_factor(&self, account: AccountId) -> Result<Option<SecondFactorRecord>> {
        let sql = "SELECT secret, is_on, used_step, since FROM second_factors WHERE account = $1";
        self.first(sql, &[&account.0], |row| {
            Ok(SecondFactorRecord {
                secret: TotpSecret::from_bytes(bytes(row, 0)?),
                is_on: row.try_get(1)?,
                used_step: row.try_get(2)?,
                since: row.try_get(3)?,
            })
        })
    }

    fn offer_second_factor(
        &mut self,
        account: AccountId,
        secret: &TotpSecret,
        now: i64,
    ) -> Result<bool> {
        let sql = "INSERT INTO second_factors (account, secret, is_on, used_step, since)
                   VALUES ($1, $2, FALSE, 0, $3)
                   ON CONFLICT (account) DO UPDATE SET secret = $2, since = $3
                   WHERE NOT second_factors.is_on";
        Ok(self.execute(sql, &[&account.0, secret.as_bytes(), &now])? > 0)
    }

    fn turn_on_second_factor(
        &mut self,
        account: AccountId,
        secret: &TotpSecret,
        step: i64,
        now: i64,
    ) -> Result<bool> {
        let sql = "UPDATE second_factors SET is_on = TRUE, used_step = $3, since = $4
                   WHERE account = $1 AND secret = $2 AND NOT is_on";
        let values: Parameters<'_> = &[&account.0, secret.as_bytes(), &step, &now];
        Ok(self.execute(sql, values)? > 0)
    }

    fn use_step(&mut self, account: AccountId, step: i64) -> Result<bool> {
        // Who waits here for another server's transaction looks at the row again when that has ended.
        let sql = "UPDATE second_factors SET used_step = $2
                   WHERE account = $1 AND is_on AND used_step < $2";
        Ok(self.execute(sql, &[&account.0, &step])? > 0)
    }

    fn delete_second_factor(&mut self, account: AccountId) -> Result<bool> {
        // In this order: who waits here for another server that turns it on finds its codes afterwards.
        let sql = "DELETE FROM second_factors WHERE account = $1";
        let is_deleted = self.execute(sql, &[&account.0])? > 0;
        self.execute("DELETE FROM recovery_codes WHERE account = $1", &[&account.0])?;
        Ok(is_deleted)
    }

    fn insert_recovery_codes(&mut self, account: AccountId, hashes: &[[u8; 32]]) -> Result<()> {
        let sql = "INSERT INTO recovery_codes (account, hash) VALUES ($1, $2)";
        for hash in hashes {
            self.execute(sql, &[&account.0, hash])?;
        }
        Ok(())
    }

    fn recovery_code_count(&self, account: AccountId) -> Result<u64> {
        let sql = "SELECT count(*) FROM recovery_codes WHERE account = $1";
        Ok(self.first(sql, &[&account.0], |row| unsigned(row, 0))?.unwrap_or(0))
    }

    fn delete_recovery_code(&mut self, account: AccountId, hash: &[u8; 32]) -> Result<bool> {
        let sql = "DELETE FROM recovery_codes WHERE account = $1 AND hash = $2";
        Ok(self.execute(sql, &[&account.0, hash])? > 0)
    }
}
