//! What rests on the password of an account: to sign a device in, and to change it.
//!
//! *Invariant*: the password by which a device is made, or somebody is bound to the account, is that of the account until that is done, so
//! that whoever changes it and signs the others out misses none.

use model::{DeviceId, Random};

use crate::auth::second_factor::Proof;
use crate::auth::{Caller, Token};
use crate::error::{Result, ServerError};
use crate::metadata::{AccountId, AccountRecord, DeviceRecord, Metadata, Scope, SubjectRecord};
use crate::services::second_factor::{self, Admission};
use crate::services::{accounts, subjects};

/// A device that has signed in.
#[derive(Debug)]
pub struct SignedIn {
    /// The device.
    pub caller: Caller,
    /// What it shows from now on.
    pub token: Token,
    /// By what it was let in.
    pub admission: Admission,
    /// Which devices were signed out to make room for it.
    pub made_room: Vec<DeviceId>,
}

/// Makes a device of an account whose password was shown, as the account was then, where what its second factor wants is shown, too.
///
/// # Errors
/// [`ServerError::WrongPassword`] where it was changed or the account was disabled meanwhile; as [`second_factor::admit`] and
/// [`accounts::enrol_device`]; [`ServerError::Forbidden`] where too many devices are signed in that may not go.
pub fn sign_in(
    metadata: &mut dyn Metadata,
    random: &dyn Random,
    account: &AccountRecord,
    shown: Option<&Proof>,
    (device_name, now): (&str, i64),
) -> Result<SignedIn> {
    hold(metadata, account)?;
    let_in(metadata, random, account.id, shown, (device_name, now))
}

/// Makes a device of an account whose owner has proved who they are, but for the second factor.
pub(super) fn let_in(
    metadata: &mut dyn Metadata,
    random: &dyn Random,
    account: AccountId,
    shown: Option<&Proof>,
    (device_name, now): (&str, i64),
) -> Result<SignedIn> {
    let admission = second_factor::admit(metadata, account, shown, now)?;
    let made_room = accounts::make_room(metadata, account, now)?;
    let (caller, token) = accounts::enrol_device(metadata, random, account, device_name, now)?;
    Ok(SignedIn { caller, token, admission, made_room })
}

/// Returns the device of that name, which all programs share that show the password of an account with every request; makes it where
/// it is missing, and returns, too, which devices were signed out to make room for it. It was seen by that. The account is as it was when the
/// password was shown.
///
/// # Errors
/// [`ServerError::WrongPassword`] where it was changed or the account was disabled meanwhile; as
/// [`second_factor::check_password_is_enough`] and [`accounts::enrol_device`]; [`ServerError::Forbidden`] as [`sign_in`].
pub fn shared_device(
    metadata: &mut dyn Metadata,
    random: &dyn Random,
    account: &AccountRecord,
    (device_name, now): (&str, i64),
) -> Result<(Caller, Vec<DeviceId>)> {
    hold(metadata, account)?;
    second_factor::check_password_is_enough(metadata, account.id)?;
    let devices = metadata.devices(account.id)?;
    // A token of an application or a link may be called so, too.
    let is_it =
        |one: &&DeviceRecord| !one.is_revoked && one.limits.is_none() && one.name == device_name;
    if let Some(device) = devices.iter().find(is_it) {
        metadata.touch_device(device.id, now)?;
        return Ok((accounts::caller_of(device), Vec::new()));
    }
    let made_room = accounts::make_room(metadata, account.id, now)?;
    // Nobody gets its token: the password leads to it.
    let (caller, _) = accounts::enrol_device(metadata, random, account.id, device_name, now)?;
    Ok((caller, made_room))
}

/// Keeps the password of an account as it was when it was shown, until the end of the transaction.
fn hold(metadata: &mut dyn Metadata, account: &AccountRecord) -> Result<()> {
    match metadata.hold_password(account.id, &account.password_hash)? {
        true => Ok(()),
        false => Err(ServerError::WrongPassword),
    }
}

/// What ends with a password, if that is wanted.
#[derive(Debug, Default)]
pub struct Ended {
    /// All other devices, and all tokens of applications. Links stay: nobody signs in by one.
    pub signed_out: Vec<DeviceRecord>,
    /// Who was bound to the account, by a provider of OpenID Connect: whoever knew the password may have bound themselves.
    pub unbound: Vec<SubjectRecord>,
}

/// Gives the caller's account another password in the place of that with the hash `old`, by its hash; returns what ends with it.
///
/// # Errors
/// [`ServerError::WrongPassword`] where `old` is not the password any more; as [`accounts::check_is_device`].
pub fn change(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    (old, new): (&str, &str),
    signs_out_others: bool,
) -> Result<Ended> {
    accounts::check_is_device(metadata, caller)?;
    if !metadata.replace_password(caller.account, old, new)? {
        return Err(ServerError::WrongPassword);
    }
    let mut ended = Ended::default();
    if signs_out_others {
        ended.unbound = subjects::unbind_all(metadata, caller.account)?;
        for device in metadata.devices(caller.account)? {
            let is_link = device.limits.is_some_and(|limits| limits.scope == Scope::Link);
            if !is_link && !device.is_revoked && device.id != caller.device {
                metadata.revoke_device(device.id)?;
                ended.signed_out.push(device);
            }
        }
    }
    Ok(ended)
}
