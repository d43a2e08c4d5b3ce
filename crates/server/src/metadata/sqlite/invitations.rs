//! Rows of invitations.

use rusqlite::{Row, params};

use super::{Sqlite, signed};
use crate::metadata::{InvitationId, InvitationRecord, InvitationTables, NewInvitation, Result};

const INVITATION: &str =
    "SELECT id, name, quota_bytes, made, expires, ended, account FROM invitations";

fn invitation(row: &Row<'_>) -> rusqlite::Result<InvitationRecord> {
    let quota_bytes = row.get::<_, Option<i64>>(2)?;
    Ok(InvitationRecord {
        id: InvitationId(row.get(0)?),
        invitation: NewInvitation {
            name: row.get(1)?,
            quota_bytes: quota_bytes.map(|quota| u64::try_from(quota).unwrap_or(0)),
            made: row.get(3)?,
            expires: row.get(4)?,
        },
        ended: row.get(5)?,
        account: row.get(6)?,
    })
}

impl InvitationTables for Sqlite {
    fn invitation_by_secret(&self, secret_hash: &[u8; 32]) -> Result<Option<InvitationRecord>> {
        self.first(&format!("{INVITATION} WHERE secret_hash = ?1"), [secret_hash], invitation)
    }

    fn invitations(&self) -> Result<Vec<InvitationRecord>> {
        self.all(&format!("{INVITATION} ORDER BY id"), [], invitation)
    }

    fn insert_invitation(
        &mut self,
        invitation: &NewInvitation,
        secret_hash: &[u8; 32],
    ) -> Result<InvitationId> {
        let NewInvitation { name, quota_bytes, made, expires } = invitation;
        let sql = "INSERT INTO invitations (secret_hash, name, quota_bytes, made, expires)
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = params![secret_hash, name, quota_bytes.map(signed), made, expires];
        self.execute(sql, values)?;
        Ok(InvitationId(self.connection.last_insert_rowid()))
    }

    fn end_invitation(
        &mut self,
        id: InvitationId,
        account: Option<&str>,
        now: i64,
    ) -> Result<bool> {
        let sql = "UPDATE invitations SET ended = ?2, account = ?3
                   WHERE id = ?1 AND ended IS NULL";
        Ok(self.execute(sql, params![id.0, now, account])? > 0)
    }

    fn delete_old_invitations(&mut self, before: i64) -> Result<()> {
        let sql = "DELETE FROM invitations WHERE coalesce(ended, expires) < ?1";
        self.execute(sql, [before]).map(drop)
    }
}
