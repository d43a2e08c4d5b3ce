//! The members of a workspace: the owner lets accounts in, gives them other roles, and shows them out.

use model::WorkspaceId;

use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::{MEMBERS_MAX, WORKSPACES_MAX};
use crate::metadata::{
    AccountId, AccountRecord, MemberRecord, MemberRole, Metadata, WorkspaceNumber,
};
use crate::services::authorisation::{Right, Role};
use crate::services::{accounts, links, workspaces};

/// Somebody who may open a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    /// The name of the account.
    pub name: String,
    /// What it is in the workspace.
    pub role: Role,
    /// Since when it is a member, in seconds since 1970; nothing for the owner.
    pub added: Option<i64>,
}

impl From<MemberRecord> for Participant {
    fn from(member: MemberRecord) -> Self {
        Self { name: member.name, role: Role::Member(member.role), added: Some(member.added) }
    }
}

/// Returns the owner, and then the members in the order of their names. A member sees the owner and nobody else.
///
/// # Errors
/// As [`workspaces::open`].
pub fn list(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
) -> Result<Vec<Participant>> {
    let found = workspaces::open(metadata, caller, workspace, Right::Read)?;
    let owner = metadata.account(found.owner)?.map(|owner| owner.name).unwrap_or_default();
    let mut members = metadata.members(found.number)?;
    members.retain(|member| found.owner == caller.account || member.account == caller.account);
    let owner = Participant { name: owner, role: Role::Owner, added: None };
    Ok(std::iter::once(owner).chain(members.into_iter().map(Participant::from)).collect())
}

/// Makes an account a member of the caller's workspace, or gives a member another role; tells whether it is new. Into a sealed
/// workspace that lets nobody see anything: the owner brings the keys in an envelope (`docs/design/keys.md`, "Members").
///
/// # Errors
/// [`ServerError::NotFound`] for an account that is not there or disabled;
/// [`ServerError::Invalid`] for the owner; as [`workspaces::open`].
pub fn set(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    name: &str,
    role: MemberRole,
    now: i64,
) -> Result<(Participant, bool)> {
    let found = workspaces::open(metadata, caller, workspace, Right::Manage)?;
    let account = find_account(metadata, name)?;
    if account.id == found.owner {
        let reason = format!("'{name}' owns the workspace");
        return Err(ServerError::Invalid { what: "member", reason });
    }
    let members = metadata.members(found.number)?;
    let known = members.iter().find(|member| member.account == account.id);
    if known.is_none() {
        let full = |what: String| Err(ServerError::Forbidden { what });
        if members.len() >= MEMBERS_MAX {
            return full(format!("more than {MEMBERS_MAX} members"));
        }
        if metadata.memberships(account.id)?.len() >= WORKSPACES_MAX {
            return full(format!("being a member of more than {WORKSPACES_MAX} workspaces"));
        }
    }
    let added = known.map_or(now, |known| known.added);
    if role == MemberRole::View {
        links::end_all_of(metadata, &found, account.id)?;
    }
    metadata.set_member(found.number, account.id, role, now)?;
    let member = Participant { name: account.name, role: Role::Member(role), added: Some(added) };
    Ok((member, known.is_none()))
}

/// Ends a membership: by the owner, or by the member, who leaves. Returns whose it was.
///
/// # Errors
/// [`ServerError::NotFound`] for who is no member; as [`workspaces::open`].
pub fn remove(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    name: &str,
) -> Result<AccountId> {
    let is_self = accounts::own_account(metadata, caller)?.name == name;
    let right = if is_self { Right::Leave } else { Right::Manage };
    let found = workspaces::open(metadata, caller, workspace, right)?;
    let member = find(metadata, found.number, name)?;
    links::end_all_of(metadata, &found, member.account)?;
    metadata.delete_member(found.number, member.account)?;
    Ok(member.account)
}

/// Returns the member of a name.
///
/// # Errors
/// [`ServerError::NotFound`].
pub(crate) fn find(
    metadata: &dyn Metadata,
    workspace: WorkspaceNumber,
    name: &str,
) -> Result<MemberRecord> {
    let member = metadata.members(workspace)?.into_iter().find(|member| member.name == name);
    member.ok_or_else(|| ServerError::NotFound { what: format!("member '{name}'") })
}

pub(super) fn find_account(metadata: &dyn Metadata, name: &str) -> Result<AccountRecord> {
    let account = metadata.account_by_name(name)?.filter(|account| !account.is_disabled);
    account.ok_or_else(|| ServerError::NotFound { what: format!("account '{name}'") })
}
