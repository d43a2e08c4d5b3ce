//! Rows of who accounts are at providers of OpenID Connect.

use rusqlite::params;

use super::Sqlite;
use crate::auth::subject::Subject;
use crate::metadata::{AccountId, Result, SubjectRecord, SubjectTables};

impl SubjectTables for Sqlite {
    fn account_of_subject(&self, subject: &Subject) -> Result<Option<AccountId>> {
        let sql = "SELECT account FROM subjects WHERE issuer = ?1 AND subject = ?2";
        self.first(sql, [subject.issuer(), subject.id()], |row| row.get(0).map(AccountId))
    }

    fn subjects(&self, account: AccountId) -> Result<Vec<SubjectRecord>> {
        let sql = "SELECT issuer, subject, since FROM subjects WHERE account = ?1
                   ORDER BY issuer, subject";
        let rows = self.all(sql, [account.0], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get(2)?))
        })?;
        rows.into_iter().map(SubjectRecord::of_columns).collect()
    }

    fn bind_subject(&mut self, subject: &Subject, account: AccountId, now: i64) -> Result<bool> {
        let sql = "INSERT INTO subjects (issuer, subject, account, since) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (issuer, subject) DO NOTHING";
        let values = params![subject.issuer(), subject.id(), account.0, now];
        Ok(self.execute(sql, values)? > 0)
    }

    fn unbind_subject(&mut self, subject: &Subject, account: AccountId) -> Result<bool> {
        let sql = "DELETE FROM subjects WHERE issuer = ?1 AND subject = ?2 AND account = ?3";
        Ok(self.execute(sql, params![subject.issuer(), subject.id(), account.0])? > 0)
    }
}
