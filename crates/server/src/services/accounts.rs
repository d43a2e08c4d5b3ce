//! Accounts and devices: signing in, signing out, revoking.

use std::collections::{HashMap, HashSet};

use model::commit::DEVICE_NAME_LENGTH_MAX;
use model::environment::random_bytes;
use model::{DeviceId, Random};

use crate::auth::{Caller, Token};
use crate::error::{Result, ServerError};
use crate::limits::{ACCOUNT_NAME_LENGTH_MAX, DEVICES_MAX};
use crate::metadata::{AccountId, AccountRecord, DeviceRecord, Metadata, Scope};

/// How often it is worth a write that a device was heard of, in seconds.
const LAST_SEEN_PRECISION: i64 = 60;

/// The same of a device that is connected all the time, of which there may be thousands.
const CONNECTED_PRECISION: i64 = 60 * 60;

/// For how long after it was seen a device that was in sync makes room for no other one, in seconds.
const IN_SYNC_STAYS: i64 = 7 * 24 * 60 * 60;

/// A device, and when it was last fully in sync, in seconds since 1970, if ever.
pub type KnownDevice = (DeviceRecord, Option<i64>);

/// Adds an account and returns its number. The hash is that of [`crate::auth::hash_password`].
///
/// # Errors
/// [`ServerError::Invalid`] for a name that is none, [`crate::metadata::MetadataError::Taken`] for one in use.
pub fn create_account(
    metadata: &mut dyn Metadata,
    name: &str,
    password_hash: &str,
    now: i64,
) -> Result<AccountId> {
    check_account_name(name)?;
    Ok(metadata.insert_account(name, password_hash, now)?)
}

/// Makes room for one more device of an account that is full, or nobody would get in any more: signs out those that were seen longest ago, as
/// tabs of browsers that were closed, and returns them. A device that holds a folder in sync and was seen in the last week stays. Of several
/// servers that do so at once all may take the same device; the next one to come takes as many as are too many then. So it is counted here
/// only: behind what others have done meanwhile there may be no room again.
///
/// # Errors
/// [`ServerError::Forbidden`] where too few may go.
pub(super) fn make_room(
    metadata: &mut dyn Metadata,
    account: AccountId,
    now: i64,
) -> Result<Vec<DeviceId>> {
    let mut devices = signed_in(metadata, account)?;
    let too_many = (devices.len() + 1).saturating_sub(DEVICES_MAX);
    if too_many == 0 {
        return Ok(Vec::new());
    }
    let synced = metadata.device_syncs(account)?.into_iter().map(|(device, _)| device);
    let synced: HashSet<_> = synced.collect();
    devices.retain(|one| !synced.contains(&one.id) || now - one.last_seen >= IN_SYNC_STAYS);
    devices.sort_by_key(|one| one.last_seen);
    devices.truncate(too_many);
    if devices.len() < too_many {
        return Err(ServerError::Forbidden { what: format!("more than {DEVICES_MAX} devices") });
    }
    for device in &devices {
        metadata.revoke_device(device.id)?;
    }
    Ok(devices.into_iter().map(|device| device.id).collect())
}

/// Makes a new device of an account, whose owner has proved who they are, and which has room for it (`make_room`).
///
/// # Errors
/// [`ServerError::Invalid`] for a device name that is none.
pub fn enrol_device(
    metadata: &mut dyn Metadata,
    random: &dyn Random,
    account: AccountId,
    name: &str,
    now: i64,
) -> Result<(Caller, Token)> {
    check_device_name(name)?;
    let (id, token) = (DeviceId::from_bytes(random_bytes(random)), Token::generate(random));
    let device = DeviceRecord {
        id,
        account,
        name: name.to_owned(),
        created: now,
        last_seen: now,
        is_revoked: false,
        limits: None,
    };
    metadata.insert_device(&device, &token.hash())?;
    Ok((Caller { account, device: id }, token))
}

/// Returns the device that shows this token, if it still may, and whether it is time to note that it was seen.
///
/// # Errors
/// [`ServerError::NotSignedIn`].
pub fn authenticate(metadata: &dyn Metadata, token: &Token, now: i64) -> Result<(Caller, bool)> {
    authenticate_device(metadata, token, now).map(|(device, is_due)| (caller_of(&device), is_due))
}

/// Does the same, and returns what is known of the device.
///
/// # Errors
/// As [`authenticate`].
pub fn authenticate_device(
    metadata: &dyn Metadata,
    token: &Token,
    now: i64,
) -> Result<(DeviceRecord, bool)> {
    let device = metadata.device_by_token(&token.hash())?.ok_or(ServerError::NotSignedIn)?;
    check_welcome(metadata, &device)?;
    if device.limits.is_some_and(|limits| limits.scope == Scope::Link) {
        return Err(ServerError::NotSignedIn);
    }
    check_not_expired(&device, now)?;
    let is_due = is_due(&device, now);
    Ok((device, is_due))
}

/// Tells whether it is time to note that a device was seen.
pub fn is_due(device: &DeviceRecord, now: i64) -> bool {
    (now - device.last_seen).abs() >= LAST_SEEN_PRECISION
}

/// Tells whether it is time to note that a device is connected still.
pub fn is_due_while_connected(device: &DeviceRecord, now: i64) -> bool {
    (now - device.last_seen).abs() >= CONNECTED_PRECISION
}

/// Returns who asks where this device does.
pub fn caller_of(device: &DeviceRecord) -> Caller {
    Caller { account: device.account, device: device.id }
}

/// Checks that a caller who was let in is still welcome, and returns what is known of it.
///
/// # Errors
/// [`ServerError::NotSignedIn`].
pub fn check_caller(metadata: &dyn Metadata, caller: &Caller) -> Result<DeviceRecord> {
    let device = metadata.device(caller.device)?.filter(|one| one.account == caller.account);
    let device = device.ok_or(ServerError::NotSignedIn)?;
    check_welcome(metadata, &device)?;
    Ok(device)
}

/// Checks that neither the device nor its account is shut out.
fn check_welcome(metadata: &dyn Metadata, device: &DeviceRecord) -> Result<()> {
    let account = metadata.account(device.account)?;
    match !device.is_revoked && account.is_some_and(|account| !account.is_disabled) {
        true => Ok(()),
        false => Err(ServerError::NotSignedIn),
    }
}

/// Checks that a token of an application is still worth something.
///
/// # Errors
/// [`ServerError::NotSignedIn`].
pub fn check_not_expired(device: &DeviceRecord, now: i64) -> Result<()> {
    let expires = device.limits.and_then(|limits| limits.expires);
    match expires.is_some_and(|expires| now >= expires) {
        true => Err(ServerError::NotSignedIn),
        false => Ok(()),
    }
}

/// Checks that it is a device that asks, for what is no matter of applications: the account itself.
///
/// # Errors
/// [`ServerError::NotSignedIn`], [`ServerError::Forbidden`].
pub fn check_is_device(metadata: &dyn Metadata, caller: &Caller) -> Result<()> {
    match check_caller(metadata, caller)?.limits {
        None => Ok(()),
        Some(_) => Err(ServerError::Forbidden { what: "what a token is not for".to_owned() }),
    }
}

/// Returns the caller's own account.
///
/// # Errors
/// [`ServerError::NotSignedIn`].
pub fn own_account(metadata: &dyn Metadata, caller: &Caller) -> Result<AccountRecord> {
    check_caller(metadata, caller)?;
    metadata.account(caller.account)?.ok_or(ServerError::NotSignedIn)
}

/// Returns the devices of the caller's account that are signed in.
///
/// # Errors
/// As [`check_is_device`].
pub fn list_devices(metadata: &dyn Metadata, caller: &Caller) -> Result<Vec<KnownDevice>> {
    check_is_device(metadata, caller)?;
    let synced: HashMap<_, _> = metadata.device_syncs(caller.account)?.into_iter().collect();
    let devices = signed_in(metadata, caller.account)?;
    let with_sync = |device: DeviceRecord| {
        let synced = synced.get(&device.id).copied();
        (device, synced)
    };
    Ok(devices.into_iter().map(with_sync).collect())
}

/// Returns the devices of an account that are signed in, without tokens of applications.
fn signed_in(metadata: &dyn Metadata, account: AccountId) -> Result<Vec<DeviceRecord>> {
    let mut devices = metadata.devices(account)?;
    devices.retain(|device| !device.is_revoked && device.limits.is_none());
    Ok(devices)
}

/// Gives a device of the caller's account another name.
///
/// # Errors
/// [`ServerError::NotFound`] also for the devices of others.
pub fn rename_device(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    id: DeviceId,
    name: &str,
) -> Result<KnownDevice> {
    check_device_name(name)?;
    let device = own_device(metadata, caller, id)?;
    metadata.rename_device(id, name)?;
    let synced = metadata.device_syncs(caller.account)?.into_iter().find(|(one, _)| *one == id);
    Ok((DeviceRecord { name: name.to_owned(), ..device }, synced.map(|(_, at)| at)))
}

/// Revokes a device of the caller's account; its token is worth nothing from now on.
///
/// # Errors
/// [`ServerError::NotFound`] also for the devices of others.
pub fn revoke_device(metadata: &mut dyn Metadata, caller: &Caller, id: DeviceId) -> Result<()> {
    own_device(metadata, caller, id)?;
    Ok(metadata.revoke_device(id)?)
}

/// Ends what a caller's own token is worth, whether it is a device's or an application's.
///
/// # Errors
/// [`ServerError::NotSignedIn`].
pub fn sign_out(metadata: &mut dyn Metadata, caller: &Caller) -> Result<()> {
    check_caller(metadata, caller)?;
    Ok(metadata.revoke_device(caller.device)?)
}

fn own_device(metadata: &dyn Metadata, caller: &Caller, id: DeviceId) -> Result<DeviceRecord> {
    check_is_device(metadata, caller)?;
    let is_own = |device: &DeviceRecord| {
        device.account == caller.account && !device.is_revoked && device.limits.is_none()
    };
    metadata
        .device(id)?
        .filter(is_own)
        .ok_or_else(|| ServerError::NotFound { what: format!("device {id}") })
}

/// Checks a name.
///
/// # Errors
/// [`ServerError::Invalid`] for one that is none.
pub(super) fn check_account_name(name: &str) -> Result<()> {
    let invalid =
        |reason: &str| ServerError::Invalid { what: "account name", reason: reason.to_owned() };
    if name.is_empty() || name.len() > ACCOUNT_NAME_LENGTH_MAX {
        return Err(invalid(&format!("it has 1 to {ACCOUNT_NAME_LENGTH_MAX} bytes")));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-@+".contains(c);
    if !name.chars().all(allowed) || name.starts_with(['-', '.']) {
        return Err(invalid(
            "it consists of letters, digits and . _ - @ + and begins with none of . -",
        ));
    }
    Ok(())
}

pub(crate) fn check_device_name(name: &str) -> Result<()> {
    let invalid =
        |reason: &str| ServerError::Invalid { what: "device name", reason: reason.to_owned() };
    if name.trim().is_empty() || name.len() > DEVICE_NAME_LENGTH_MAX {
        return Err(invalid(&format!("it has 1 to {DEVICE_NAME_LENGTH_MAX} bytes")));
    }
    if name.chars().any(char::is_control) {
        return Err(invalid("a control character is in it"));
    }
    Ok(())
}
