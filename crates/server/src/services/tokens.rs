//! Tokens of applications: what an account may do, cut down to what one program needs, until a day or until it is taken back.
//!
//! In the database a token is a device with limits, so that whatever ends a device ends a token.

use model::environment::random_bytes;
use model::{DeviceId, Random};

use crate::auth::{Caller, Token};
use crate::error::{Result, ServerError};
use crate::limits::TOKENS_MAX;
use crate::metadata::{DeviceRecord, Metadata, Scope, TokenLimits};
use crate::services::{accounts, workspaces};

/// What a new token is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// What it is called.
    pub name: String,
    /// What it may do.
    pub scope: Scope,
    /// The only workspace that it knows, by id or name; nothing for all.
    pub workspace: Option<String>,
    /// When it ends, in seconds since 1970; nothing for never.
    pub expires: Option<i64>,
}

/// Makes a token for an application. Only its hash is kept, so it is shown once.
///
/// # Errors
/// [`ServerError::Invalid`] for a name that is none and for an end in the past; [`ServerError::NotFound`] for a workspace
/// that the account does not have; [`ServerError::Forbidden`] for too many, and for who is no device.
pub fn add(
    metadata: &mut dyn Metadata,
    random: &dyn Random,
    caller: &Caller,
    new: &NewToken,
    now: i64,
) -> Result<(DeviceRecord, Token)> {
    // Who changes the password and signs the others out at this moment either signs out this token, too, or was first.
    if !metadata.hold_account(caller.account)? {
        return Err(ServerError::NotSignedIn);
    }
    accounts::check_is_device(metadata, caller)?;
    accounts::check_device_name(&new.name)?;
    if new.expires.is_some_and(|expires| expires <= now) {
        let reason = "it lies in the past".to_owned();
        return Err(ServerError::Invalid { what: "end of the token", reason });
    }
    let workspace = match &new.workspace {
        Some(text) => Some(workspaces::find(metadata, caller, text)?.workspace.id),
        None => None,
    };
    if list(metadata, caller)?.len() >= TOKENS_MAX {
        return Err(ServerError::Forbidden { what: format!("more than {TOKENS_MAX} tokens") });
    }
    let token = Token::generate(random);
    let record = DeviceRecord {
        id: DeviceId::from_bytes(random_bytes(random)),
        account: caller.account,
        name: new.name.clone(),
        created: now,
        last_seen: now,
        is_revoked: false,
        limits: Some(TokenLimits { scope: new.scope, workspace, expires: new.expires }),
    };
    metadata.insert_device(&record, &token.hash())?;
    Ok((record, token))
}

/// Returns the tokens of the caller's account, also those that have expired.
///
/// # Errors
/// As [`accounts::check_is_device`].
pub fn list(metadata: &dyn Metadata, caller: &Caller) -> Result<Vec<DeviceRecord>> {
    accounts::check_is_device(metadata, caller)?;
    let mut tokens = metadata.devices(caller.account)?;
    let is_token = |limits: TokenLimits| limits.scope != Scope::Link;
    tokens.retain(|token| !token.is_revoked && token.limits.is_some_and(is_token));
    Ok(tokens)
}

/// Takes a token back; it is worth nothing from now on.
///
/// # Errors
/// [`ServerError::NotFound`] also for the tokens of others; as [`accounts::check_is_device`].
pub fn remove(metadata: &mut dyn Metadata, caller: &Caller, id: DeviceId) -> Result<()> {
    let is_own = list(metadata, caller)?.iter().any(|token| token.id == id);
    match is_own {
        true => Ok(metadata.revoke_device(id)?),
        false => Err(ServerError::NotFound { what: format!("token {id}") }),
    }
}
