//! Which objects a workspace has in the store, and whether there is room for more.
//!
//! *Invariants*: an object counts as stored for commits from the transaction that notes it, which comes after the store has
//! made it durable. An object that a crash left in the store without being noted is not there for anybody, and storing it
//! again notes it. Where its owner has a quota, an object takes its room before the store sees it ([`reserve`]), so that
//! nothing that was refused must be taken out of a store again: there another server might just have noted it.

use model::WorkspaceId;
use storage::ObjectKey;

use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::metadata::{Metadata, WorkspaceRecord};
use crate::services::authorisation::Right;
use crate::services::workspaces;

/// Returns the object key that a device may use: packs and pages, nothing else.
///
/// # Errors
/// [`ServerError::Invalid`] for what is no key, [`ServerError::Forbidden`] for the keys of others.
pub fn check_key(text: &str) -> Result<ObjectKey> {
    let key = ObjectKey::new(text)?;
    match key.names_its_content() {
        true => Ok(key),
        false => Err(ServerError::Forbidden { what: format!("object '{key}'") }),
    }
}

/// Returns the workspace and the length of an object in it.
///
/// # Errors
/// [`ServerError::NotFound`] where the workspace is not the caller's or has no such object.
pub fn find(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    key: &ObjectKey,
) -> Result<(WorkspaceRecord, u64)> {
    let found = workspaces::open(metadata, caller, workspace, Right::Read)?;
    let length = metadata.object_length(found.number, key.as_str())?;
    let length = length.ok_or_else(|| ServerError::NotFound { what: format!("object '{key}'") })?;
    Ok((found, length))
}

/// Returns keys and lengths of objects, in the order of the keys.
///
/// # Errors
/// [`ServerError::NotFound`] where the workspace is not the caller's.
pub fn list(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    prefix: &str,
    start_after: &str,
    limit: usize,
) -> Result<Vec<(String, u64)>> {
    let found = workspaces::open(metadata, caller, workspace, Right::Read)?;
    Ok(metadata.objects(found.number, prefix, start_after, limit)?)
}

/// Returns the right to add an object: pages are parts of checkpoints.
fn right_to_add(key: &ObjectKey) -> Right {
    match key.as_str().starts_with(ObjectKey::PAGES) {
        true => Right::Manage,
        false => Right::Write,
    }
}

/// After how many seconds room that was taken for an object may be given to others: it did not come. No upload takes
/// so long. That no clock is trusted with more than that is why [`record`] asks again.
const RESERVATION_SECONDS: i64 = 24 * 60 * 60;

/// Looks whether an object of that length may be added, and returns whether room must be taken for it ([`reserve`]).
///
/// # Errors
/// [`ServerError::OverQuota`], [`ServerError::Forbidden`] for who may only read, or not make checkpoints, [`ServerError::NotFound`].
pub fn check_room(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    key: &ObjectKey,
    length: u64,
) -> Result<bool> {
    let found = workspaces::open(metadata, caller, workspace, right_to_add(key))?;
    if metadata.object_length(found.number, key.as_str())?.is_some() {
        return Ok(false);
    }
    match metadata.rooms(&[found.owner])?.get(&found.owner).copied() {
        Some(_) if metadata.reservation(found.number, key.as_str())?.is_some() => Ok(true),
        Some(mut room) => room.take(length).map(|()| true),
        None => Ok(false),
    }
}

/// Takes room for an object that is about to be stored under the name of its content, until [`record`] or [`release`].
/// Taking it again changes nothing.
///
/// # Errors
/// [`ServerError::OverQuota`], [`ServerError::Forbidden`] for who may only read, or not make checkpoints, [`ServerError::NotFound`].
pub fn reserve(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    (key, length): (&ObjectKey, u64),
    now: i64,
) -> Result<()> {
    let found = workspaces::open(metadata, caller, workspace, right_to_add(key))?;
    let is_there = metadata.object_length(found.number, key.as_str())?.is_some()
        || metadata.reservation(found.number, key.as_str())?.is_some();
    if is_there {
        return Ok(());
    }
    if check_quota(metadata, &found, length).is_err() {
        // Servers that died in the middle of an upload may still hold some of it.
        metadata.delete_old_reservations(found.owner, now - RESERVATION_SECONDS)?;
        check_quota(metadata, &found, length)?;
    }
    Ok(metadata.insert_reservation(found.number, key.as_str(), length, now)?)
}

/// Gives back the room of an object that could not be stored.
///
/// # Errors
/// [`ServerError::Metadata`].
pub fn release(metadata: &mut dyn Metadata, workspace: WorkspaceId, key: &ObjectKey) -> Result<()> {
    match metadata.workspace(workspace)? {
        Some(found) => Ok(metadata.delete_reservation(found.number, key.as_str())?),
        None => Ok(()),
    }
}

/// Notes that an object rests in the store; returns whether that is new. Its room is no longer reserved, but used.
///
/// # Errors
/// [`ServerError::OverQuota`], [`ServerError::Forbidden`] for who may only read, or not make checkpoints, [`ServerError::NotFound`].
pub fn record(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    key: &ObjectKey,
    length: u64,
) -> Result<bool> {
    let found = workspaces::open(metadata, caller, workspace, right_to_add(key))?;
    let held = metadata.reservation(found.number, key.as_str())?;
    metadata.delete_reservation(found.number, key.as_str())?;
    if metadata.object_length(found.number, key.as_str())?.is_some() {
        return Ok(false);
    }
    // Room that was given stays given, also where the quota was lowered since.
    if held != Some(length) {
        check_quota(metadata, &found, length)?;
    }
    metadata.insert_object(found.number, key.as_str(), length)?;
    Ok(true)
}

/// Forgets a page, or a pack that a cleanup has condemned. Other packs hold the only copy of a user's data and stay.
///
/// # Errors
/// [`ServerError::Forbidden`] for such a pack, and for who is not the owner; as [`find`].
pub fn forget(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    key: &ObjectKey,
    is_condemned: bool,
) -> Result<()> {
    let found = workspaces::open(metadata, caller, workspace, Right::Manage)?;
    if key.as_page().is_none() && !is_condemned {
        return Err(ServerError::Forbidden { what: format!("deleting {key}") });
    }
    Ok(metadata.delete_object(found.number, key.as_str())?)
}

/// Checks that the owner of the workspace may hold `length` bytes more.
pub(crate) fn check_quota(
    metadata: &dyn Metadata,
    workspace: &WorkspaceRecord,
    length: u64,
) -> Result<()> {
    let rooms = metadata.rooms(&[workspace.owner])?;
    match rooms.get(&workspace.owner).copied() {
        Some(mut room) => room.take(length),
        None => Ok(()),
    }
}
