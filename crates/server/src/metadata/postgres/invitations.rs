//! Rows of invitations.

use tokio_postgres::Row;

use super::{Postgres, signed};
use crate::metadata::{
    InvitationId, InvitationRecord, InvitationTables, MetadataError, NewInvitation, Result,
};

const INVITATION: &str =
    "SELECT id, name, quota_bytes, made, expires, ended, account FROM invitations";

fn invitation(row: &Row) -> Result<InvitationRecord, tokio_postgres::Error> {
    let quota_bytes = row.try_get::<_, Option<i64>>(2)?;
    Ok(InvitationRecord {
        id: InvitationId(row.try_get(0)?),
        invitation: NewInvitation {
            name: row.try_get(1)?,
            quota_bytes: quota_bytes.map(|quota| u64::try_from(quota).unwrap_or(0)),
            made: row.try_get(3)?,
            expires: row.try_get(4)?,
        },
        ended: row.try_get(5)?,
        account: row.try_get(6)?,
    })
}

impl InvitationTables for Postgres {
    fn invitation_by_secret(&self, secret_hash: &[u8; 32]) -> Result<Option<InvitationRecord>> {
        let sql = format!("{INVITATION} WHERE secret_hash = $1");
        self.first(&sql, &[&secret_hash.as_slice()], invitation)
    }

    fn invitations(&self) -> Result<Vec<InvitationRecord>> {
        self.all(&format!("{INVITATION} ORDER BY id"), &[], invitation)
    }

    fn insert_invitation(
        &mut self,
        invitation: &NewInvitation,
        secret_hash: &[u8; 32],
    ) -> Result<InvitationId> {
        let NewInvitation { name, quota_bytes, made, expires } = invitation;
        let sql = "INSERT INTO invitations (secret_hash, name, quota_bytes, made, expires)
                   VALUES ($1, $2, $3, $4, $5) RETURNING id";
        let (hash, quota) = (secret_hash.as_slice(), quota_bytes.map(signed));
        let rows = self.write(sql, &[&hash, name, &quota, made, expires])?;
        let ids = super::read_all(sql, &rows, |row| row.try_get(0).map(InvitationId))?;
        ids.first().copied().ok_or_else(|| MetadataError::Failed {
            operation: "INSERT INTO invitations".to_owned(),
            detail: "it gave no number".to_owned(),
        })
    }

    fn end_invitation(
        &mut self,
        id: InvitationId,
        account: Option<&str>,
        now: i64,
    ) -> Result<bool> {
        // Who waits here for another server that ends it at the same moment finds it ended.
        let sql = "UPDATE invitations SET ended = $2, account = $3
                   WHERE id = $1 AND ended IS NULL";
        Ok(self.execute(sql, &[&id.0, &now, &account])? > 0)
    }

    fn delete_old_invitations(&mut self, before: i64) -> Result<()> {
        let sql = "DELETE FROM invitations WHERE coalesce(ended, expires) < $1";
        self.execute(sql, &[&before]).map(drop)
    }
}
