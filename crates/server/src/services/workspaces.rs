//! Workspaces: making, finding and opening them, with the right that the caller needs.
//!
//! A member finds the workspace of somebody else as `owner/name`. No name has a slash in it, so it never meets a name of the
//! member's own. A sealed workspace has a name for its devices only; here its id is its name.

use model::codec::{decode_message, encode_message};
use model::entry::check_workspace_name;
use model::{Genesis, WorkspaceId};

use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::WORKSPACES_MAX;
use crate::metadata::{AccountId, DeviceRecord, Metadata, MetadataError, WorkspaceRecord};
use crate::services::authorisation::{Right, Role, Standing};
use crate::services::{accounts, authorisation};

/// A workspace as one of its people sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenWorkspace {
    /// The workspace.
    pub workspace: WorkspaceRecord,
    /// Under which name they find it.
    pub name: String,
    /// The name of its owner.
    pub owner: String,
    /// What they are in it.
    pub role: Role,
}

/// Returns the workspace if the caller may do in it what `right` says. One in which the caller has no part does not exist
/// for the caller, so nobody can find out which ids are in use.
///
/// # Errors
/// [`ServerError::NotSignedIn`], [`ServerError::NotFound`]; [`ServerError::Forbidden`] for a member without that right.
pub fn open(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    right: Right,
) -> Result<WorkspaceRecord> {
    open_with_device(metadata, caller, workspace, right).map(|(found, _)| found)
}

/// Does the same, and returns what is known of the caller's device, too.
fn open_with_device(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    right: Right,
) -> Result<(WorkspaceRecord, DeviceRecord)> {
    let device = accounts::check_caller(metadata, caller)?;
    Ok((open_as(metadata, &device, workspace, right)?, device))
}

/// Does what [`open`] does for a caller who may have been let in long ago, and returns what is known of its device, too.
///
/// # Errors
/// As [`open`]; [`ServerError::NotSignedIn`] also by a token or a link whose day has come since.
pub fn open_still(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    right: Right,
    now: i64,
) -> Result<(WorkspaceRecord, DeviceRecord)> {
    let opened = open_with_device(metadata, caller, workspace, right)?;
    accounts::check_not_expired(&opened.1, now)?;
    Ok(opened)
}

/// Does what [`open`] does for a device that was found welcome in the same question to the database.
///
/// # Errors
/// As [`open`].
pub fn open_as(
    metadata: &dyn Metadata,
    device: &DeviceRecord,
    workspace: WorkspaceId,
    right: Right,
) -> Result<WorkspaceRecord> {
    let found = metadata.workspace(workspace)?;
    admitted(metadata, device, found, right, &workspace.to_string()).map(|(found, _)| found)
}

/// Returns a workspace for what the server has to find out by itself, whoever may see it.
///
/// # Errors
/// [`ServerError::NotFound`]; those of the database.
pub(crate) fn of_server(
    metadata: &dyn Metadata,
    workspace: WorkspaceId,
) -> Result<WorkspaceRecord> {
    metadata.workspace(workspace)?.ok_or_else(|| not_found(&workspace.to_string()))
}

/// Returns the workspace of that id, name or `owner/name`, as the caller sees it.
///
/// # Errors
/// As [`open`].
pub fn find(metadata: &dyn Metadata, caller: &Caller, text: &str) -> Result<SeenWorkspace> {
    let device = accounts::check_caller(metadata, caller)?;
    let found = if let Ok(id) = text.parse() {
        metadata.workspace(id)?
    } else if let Some((owner, name)) = text.split_once('/') {
        match metadata.account_by_name(owner)? {
            Some(owner) => metadata.workspace_by_name(owner.id, name)?,
            None => None,
        }
    } else {
        metadata.workspace_by_name(caller.account, text)?
    };
    let (workspace, role) = admitted(metadata, &device, found, Right::Read, text)?;
    seen(metadata, workspace, role)
}

/// Returns what the caller is in a workspace that was found, if that gives the right.
fn admitted(
    metadata: &dyn Metadata,
    device: &DeviceRecord,
    found: Option<WorkspaceRecord>,
    right: Right,
    text: &str,
) -> Result<(WorkspaceRecord, Role)> {
    let Some(found) = found else { return Err(not_found(text)) };
    let role = role_of(metadata, &found, device.account)?;
    let standing = Standing::new(role, found.id, device.limits.as_ref());
    authorisation::require(standing, right, text)?;
    standing.role.map(|role| (found, role)).ok_or_else(|| not_found(text))
}

/// Returns what an account is in a workspace; nothing for a stranger.
///
/// # Errors
/// [`MetadataError`].
pub(crate) fn role_of(
    metadata: &dyn Metadata,
    workspace: &WorkspaceRecord,
    account: AccountId,
) -> Result<Option<Role>> {
    if workspace.owner == account {
        return Ok(Some(Role::Owner));
    }
    let member = (workspace.number, account);
    Ok(metadata.roles(&[member])?.remove(&member).map(Role::Member))
}

fn seen(metadata: &dyn Metadata, workspace: WorkspaceRecord, role: Role) -> Result<SeenWorkspace> {
    let owner = metadata.account(workspace.owner)?.map(|owner| owner.name).unwrap_or_default();
    let name = match role {
        Role::Owner => workspace.name.clone(),
        Role::Member(_) => format!("{owner}/{}", workspace.name),
    };
    Ok(SeenWorkspace { workspace, name, owner, role })
}

/// Returns the caller's own workspaces in the order of their names, and then those of others.
///
/// # Errors
/// [`ServerError::NotSignedIn`].
pub fn list(metadata: &dyn Metadata, caller: &Caller) -> Result<Vec<SeenWorkspace>> {
    let limits = accounts::check_caller(metadata, caller)?.limits;
    let account = accounts::own_account(metadata, caller)?;
    let own = metadata.workspaces(caller.account)?.into_iter().map(|workspace| SeenWorkspace {
        name: workspace.name.clone(),
        owner: account.name.clone(),
        role: Role::Owner,
        workspace,
    });
    let of_others = metadata.memberships(caller.account)?.into_iter().map(|one| SeenWorkspace {
        name: format!("{}/{}", one.owner, one.workspace.name),
        owner: one.owner,
        role: Role::Member(one.role),
        workspace: one.workspace,
    });
    let is_seen = |one: &SeenWorkspace| {
        Standing::new(Some(one.role), one.workspace.id, limits.as_ref()).role.is_some()
    };
    Ok(own.chain(of_others).filter(is_seen).collect())
}

/// Makes the workspace of a genesis; returns it and whether it is new. Asking again changes nothing.
///
/// # Errors
/// [`ServerError::Taken`] where the caller has another workspace of that name, or somebody else has this very one.
pub fn create(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    genesis: &Genesis,
) -> Result<(WorkspaceRecord, bool)> {
    accounts::check_is_device(metadata, caller)?;
    let id = genesis.workspace();
    let name = match genesis.mode.sealed() {
        Some(_) => id.to_string(),
        None => {
            check_name(&genesis.name)?;
            genesis.name.clone()
        }
    };
    if let Some(existing) = metadata.workspace(id)? {
        return match existing.owner == caller.account {
            true => Ok((existing, false)),
            false => Err(ServerError::Taken { what: format!("a workspace {id}") }),
        };
    }
    if metadata.workspaces(caller.account)?.len() >= WORKSPACES_MAX {
        return Err(ServerError::Forbidden {
            what: format!("more than {WORKSPACES_MAX} workspaces"),
        });
    }
    let encoded = encode_message(genesis);
    metadata.insert_workspace(id, caller.account, &name, genesis.head(), &encoded).map_err(
        |error| match error {
            MetadataError::Taken { .. } => {
                ServerError::Taken { what: format!("a workspace called '{name}'") }
            }
            other => other.into(),
        },
    )?;
    Ok((open(metadata, caller, id, Right::Manage)?, true))
}

/// Tells whether the server cannot read a workspace. Its name is its id then, which no plain one has.
pub fn is_sealed(workspace: &WorkspaceRecord) -> bool {
    workspace.name == workspace.id.to_string()
}

/// Returns the genesis of a workspace.
///
/// # Errors
/// [`MetadataError::Damaged`] where its row cannot be read.
pub fn genesis(metadata: &dyn Metadata, workspace: &WorkspaceRecord) -> Result<Genesis> {
    decode_genesis(&metadata.genesis(workspace.number)?, workspace)
}

/// Reads the genesis of a workspace.
pub(crate) fn decode_genesis(bytes: &[u8], workspace: &WorkspaceRecord) -> Result<Genesis> {
    let damaged = |detail: String| MetadataError::Damaged {
        what: format!("the genesis of workspace {}", workspace.id),
        detail,
    };
    let genesis: Genesis = decode_message(bytes).map_err(|error| damaged(error.to_string()))?;
    match genesis.workspace() == workspace.id {
        true => Ok(genesis),
        false => Err(damaged("it has another hash".to_owned()).into()),
    }
}

/// Refuses what cannot be the name of a workspace.
fn check_name(name: &str) -> Result<()> {
    check_workspace_name(name).map_err(|reason| ServerError::Invalid {
        what: "workspace name",
        reason: reason.to_owned(),
    })
}

pub(crate) fn not_found(text: &str) -> ServerError {
    ServerError::NotFound { what: format!("workspace '{text}'") }
}
