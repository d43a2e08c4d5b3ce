//! Workspaces, and the one place that decides who may touch them.

use model::codec::{decode_message, encode_message};
use model::{Genesis, WorkspaceId};

use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::WORKSPACES_MAX;
use crate::metadata::{Metadata, MetadataError, WorkspaceRecord};
use crate::services::accounts;

/// Returns the workspace if the caller may read and write it. One that belongs to somebody else does not exist for
/// the caller, so nobody can find out which ids are in use.
///
/// # Errors
/// [`ServerError::NotSignedIn`], [`ServerError::NotFound`].
pub fn open(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
) -> Result<WorkspaceRecord> {
    accounts::check_caller(metadata, caller)?;
    metadata
        .workspace(workspace)?
        .filter(|found| found.owner == caller.account)
        .ok_or_else(|| not_found(&workspace.to_string()))
}

/// Returns the caller's workspace of that id or name.
///
/// # Errors
/// As [`open`].
pub fn find(metadata: &dyn Metadata, caller: &Caller, text: &str) -> Result<WorkspaceRecord> {
    if let Ok(id) = text.parse() {
        return open(metadata, caller, id);
    }
    accounts::check_caller(metadata, caller)?;
    metadata.workspace_by_name(caller.account, text)?.ok_or_else(|| not_found(text))
}

/// Returns the caller's workspaces in the order of their names.
///
/// # Errors
/// [`ServerError::NotSignedIn`].
pub fn list(metadata: &dyn Metadata, caller: &Caller) -> Result<Vec<WorkspaceRecord>> {
    accounts::check_caller(metadata, caller)?;
    Ok(metadata.workspaces(caller.account)?)
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
    accounts::check_caller(metadata, caller)?;
    check_name(&genesis.name)?;
    let id = genesis.workspace();
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
    metadata
        .insert_workspace(id, caller.account, &genesis.name, genesis.head(), &encoded)
        .map_err(|error| match error {
            MetadataError::Taken { .. } => {
                ServerError::Taken { what: format!("a workspace called '{}'", genesis.name) }
            }
            other => other.into(),
        })?;
    Ok((open(metadata, caller, id)?, true))
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

/// Refuses names that no screen or address shows as they are, and those that could be an id.
fn check_name(name: &str) -> Result<()> {
    let invalid =
        |reason: &str| ServerError::Invalid { what: "workspace name", reason: reason.to_owned() };
    if name.trim().is_empty() {
        return Err(invalid("it is empty"));
    }
    if name.chars().any(|c| c.is_control() || c == '/') {
        return Err(invalid("a slash or a control character is in it"));
    }
    if name.parse::<WorkspaceId>().is_ok() {
        return Err(invalid("it looks like a workspace id"));
    }
    Ok(())
}

pub(crate) fn not_found(text: &str) -> ServerError {
    ServerError::NotFound { what: format!("workspace '{text}'") }
}
