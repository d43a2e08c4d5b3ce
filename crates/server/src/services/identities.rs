//! Who people are to each other in encrypted workspaces: each account says it once, and the server hands it out.
//!
//! *Goals*: of two devices of an account that make an identity at the same moment one succeeds, and the other hears of it.
//! *Non-goals*: to be believed: people compare fingerprints (`docs/design/keys.md`, "Members"). *Invariant*: what is locked is told
//! to devices of the account only, for whoever has it may try passphrases.

use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::metadata::{IdentityRecord, Metadata};
use crate::services::{accounts, members};

/// Length in bytes of what others may know of an account.
pub(crate) const PUBLIC_LENGTH: usize = 64;

/// The longest locked identity, in bytes.
pub(crate) const LOCKED_LENGTH_MAX: usize = 4096;

/// Returns the identity of the caller's account.
///
/// # Errors
/// [`ServerError::NotFound`] where it has none; as [`accounts::check_is_device`].
pub fn own(metadata: &dyn Metadata, caller: &Caller) -> Result<IdentityRecord> {
    accounts::check_is_device(metadata, caller)?;
    let found = metadata.identity(caller.account)?;
    found.ok_or_else(|| ServerError::NotFound { what: "identity of this account".to_owned() })
}

/// Makes the identity of the caller's account, or puts another one in the place of the one with that public part.
///
/// # Errors
/// [`ServerError::Taken`] where another one is there; [`ServerError::Invalid`] for what is none; as
/// [`accounts::check_is_device`].
pub fn set(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    identity: &IdentityRecord,
    replaced: Option<&[u8]>,
) -> Result<()> {
    accounts::check_is_device(metadata, caller)?;
    let fits = identity.public.len() == PUBLIC_LENGTH
        && (1..=LOCKED_LENGTH_MAX).contains(&identity.locked.len());
    if !fits {
        let reason = format!(
            "its public part has {PUBLIC_LENGTH} bytes, and the locked one at most {LOCKED_LENGTH_MAX}"
        );
        return Err(ServerError::Invalid { what: "identity", reason });
    }
    match metadata.replace_identity(caller.account, identity, replaced)? {
        true => Ok(()),
        false => Err(ServerError::Taken { what: "another identity of this account".to_owned() }),
    }
}

/// Returns what others may know of an account.
///
/// # Errors
/// [`ServerError::NotFound`] where there is no such account, or it has no identity; as [`accounts::check_is_device`].
pub fn public_of(metadata: &dyn Metadata, caller: &Caller, name: &str) -> Result<Vec<u8>> {
    accounts::check_is_device(metadata, caller)?;
    let account = members::find_account(metadata, name)?;
    let found = metadata.identity(account.id)?;
    let none = || ServerError::NotFound { what: format!("identity of '{name}'") };
    found.map(|identity| identity.public).ok_or_else(none)
}
