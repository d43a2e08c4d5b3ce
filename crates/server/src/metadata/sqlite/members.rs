//! Rows of members.

use std::collections::HashMap;

use rusqlite::params;

use super::log::workspace;
use super::{Sqlite, commits};
use crate::metadata::{
    AccountId, MemberRecord, MemberRole, MemberTables, Membership, Result, WorkspaceNumber,
};

const ROLE: &str = "SELECT role FROM members WHERE workspace = ?1 AND account = ?2";

impl MemberTables for Sqlite {
    fn roles(
        &self,
        members: &[(WorkspaceNumber, AccountId)],
    ) -> Result<HashMap<(WorkspaceNumber, AccountId), MemberRole>> {
        let parameters = |member: &(WorkspaceNumber, AccountId)| (member.0.0, member.1.0);
        let keys = members.iter().copied();
        let found = commits::each(&self.connection, ROLE, keys, parameters, |row| row.get(0))?;
        found.into_iter().map(|(key, number)| Ok((key, MemberRole::of_number(number)?))).collect()
    }

    fn members(&self, workspace: WorkspaceNumber) -> Result<Vec<MemberRecord>> {
        let sql = "SELECT account, accounts.name, role, added
                   FROM members JOIN accounts ON accounts.id = account
                   WHERE workspace = ?1 ORDER BY accounts.name";
        let rows = self.all(sql, [workspace.0], |row| {
            Ok((AccountId(row.get(0)?), row.get(1)?, row.get(2)?, row.get(3)?))
        })?;
        let record = |(account, name, role, added)| {
            Ok(MemberRecord { account, name, role: MemberRole::of_number(role)?, added })
        };
        rows.into_iter().map(record).collect()
    }

    fn memberships(&self, account: AccountId) -> Result<Vec<Membership>> {
        let sql =
            "SELECT number, workspaces.id, owner, workspaces.name, head_seq, head_hash, used_bytes,
                          accounts.name, role
                   FROM members
                   JOIN workspaces ON workspaces.number = members.workspace
                   JOIN accounts ON accounts.id = workspaces.owner
                   WHERE members.account = ?1 ORDER BY accounts.name, workspaces.name";
        let rows =
            self.all(sql, [account.0], |row| Ok((workspace(row)?, row.get(7)?, row.get(8)?)))?;
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
        let sql = "INSERT INTO members (workspace, account, role, added) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (workspace, account) DO UPDATE SET role = excluded.role";
        self.execute(sql, params![workspace.0, account.0, role.number(), now]).map(drop)
    }

    fn delete_member(&mut self, workspace: WorkspaceNumber, account: AccountId) -> Result<()> {
        let sql = "DELETE FROM members WHERE workspace = ?1 AND account = ?2";
        self.execute(sql, params![workspace.0, account.0]).map(drop)
    }
}
