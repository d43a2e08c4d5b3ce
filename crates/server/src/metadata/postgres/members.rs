//! Rows of members.

use std::collections::HashMap;

use tokio_postgres::Row;

use super::log::workspace;
use super::{Parameters, Postgres};
use crate::metadata::{
    AccountId, MemberRecord, MemberRole, MemberTables, Membership, Result, WorkspaceNumber,
};

const ROLES: &str = "SELECT workspace, account, role
     FROM unnest($1::bigint[], $2::bigint[]) AS wanted (workspace, account)
     JOIN members USING (workspace, account)";

impl MemberTables for Postgres {
    fn roles(
        &self,
        members: &[(WorkspaceNumber, AccountId)],
    ) -> Result<HashMap<(WorkspaceNumber, AccountId), MemberRole>> {
        let (workspaces, accounts): (Vec<_>, Vec<_>) =
            members.iter().map(|member| (member.0.0, member.1.0)).unzip();
        let found = self.all(ROLES, &[&workspaces, &accounts], |row| {
            let key = (WorkspaceNumber(row.try_get(0)?), AccountId(row.try_get(1)?));
            Ok((key, row.try_get(2)?))
        })?;
        found.into_iter().map(|(key, number)| Ok((key, MemberRole::of_number(number)?))).collect()
    }

    fn members(&self, workspace: WorkspaceNumber) -> Result<Vec<MemberRecord>> {
        let sql = "SELECT account, accounts.name, role, added
                   FROM members JOIN accounts ON accounts.id = account
                   WHERE workspace = $1 ORDER BY accounts.name";
        let read = |row: &Row| {
            let account = AccountId(row.try_get(0)?);
            Ok((account, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
        };
        let record = |(account, name, role, added)| {
            Ok(MemberRecord { account, name, role: MemberRole::of_number(role)?, added })
        };
        self.all(sql, &[&workspace.0], read)?.into_iter().map(record).collect()
    }

    fn memberships(&self, account: AccountId) -> Result<Vec<Membership>> {
        let sql =
            "SELECT number, workspaces.id, owner, workspaces.name, head_seq, head_hash, used_bytes,
                          accounts.name, role
                   FROM members
                   JOIN workspaces ON workspaces.number = members.workspace
                   JOIN accounts ON accounts.id = workspaces.owner
                   WHERE members.account = $1 ORDER BY accounts.name, workspaces.name";
        let rows = self.all(sql, &[&account.0], |row| {
            Ok((workspace(row)?, row.try_get(7)?, row.try_get(8)?))
        })?;
        let membership = |(workspace, owner, role)| {
            Ok(Membership { workspace, owner, role: MemberRole::of_number(role)? })
        };
        rows.into_iter().map(membership).collect()
    }

    fn set_member(
        &mut self,
        workspace: WorkspaceNumber,
        account: AccountId,
        role: MemberRole,
        now: i64,
    ) -> Result<()> {
        let sql = "INSERT INTO members (workspace, account, role, added) VALUES ($1, $2, $3, $4)
                   ON CONFLICT (workspace, account) DO UPDATE SET role = excluded.role";
        let values: Parameters<'_> = &[&workspace.0, &account.0, &role.number(), &now];
        self.execute(sql, values).map(drop)
    }

    fn delete_member(&mut self, workspace: WorkspaceNumber, account: AccountId) -> Result<()> {
        let sql = "DELETE FROM members WHERE workspace = $1 AND account = $2";
        self.execute(sql, &[&workspace.0, &account.0]).map(drop)
    }
}
