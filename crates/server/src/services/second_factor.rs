//! The second factor of an account: whoever signs in with the password shows a code of the moment, too, or a recovery code.
//!
//! *Participants*: the person, at a device that is signed in, who turns it on and off; whoever signs in; the operator of the server, who can
//! turn it off. *Goals*: who knows the password alone gets in nowhere; who has lost the app gets in by a recovery code, and who has lost
//! these, too, still has the devices that are signed in, or asks the operator. *Invariants*: it counts from its first right code on, never
//! before; a step of time and a recovery code let in once, whichever servers are asked at the same moment; devices and tokens are asked for nothing.

use model::Random;

use crate::auth::Caller;
use crate::auth::second_factor::{Proof, RecoveryCode};
use crate::auth::totp::TotpSecret;
use crate::error::{Result, ServerError};
use crate::metadata::{AccountId, AccountRecord, Metadata, SecondFactorRecord};
use crate::services::accounts;

/// How many recovery codes there are at first.
pub const RECOVERY_CODES: usize = 10;

/// How it is with the second factor of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Off,
    /// It waits for its first code.
    Waiting,
    /// It is wanted at every sign-in.
    On,
}

/// The second factor, as its person sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// How it is.
    pub state: State,
    /// Since when, in seconds since 1970; nothing where there is none.
    pub since: Option<i64>,
    /// How many recovery codes were not used yet.
    pub recovery_codes_left: u64,
}

/// By what somebody was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// By the password or a provider, beside which nothing is wanted.
    Password,
    /// By a code of the moment.
    Code,
    /// By a recovery code.
    Recovery,
}

/// Says how it is with the second factor of the caller's account.
///
/// # Errors
/// As [`accounts::check_is_device`].
pub fn status(metadata: &dyn Metadata, caller: &Caller) -> Result<Status> {
    accounts::check_is_device(metadata, caller)?;
    let factor = metadata.second_factor(caller.account)?;
    Ok(Status {
        state: match &factor {
            None => State::Off,
            Some(factor) if factor.is_on => State::On,
            Some(_) => State::Waiting,
        },
        since: factor.map(|factor| factor.since),
        recovery_codes_left: metadata.recovery_code_count(caller.account)?,
    })
}

/// Lets a new secret wait for its first code, and returns whose it is. One that waited before is forgotten. The door has asked for the
/// password: who finds a device that is signed in must not lock its owner out.
///
/// # Errors
/// [`ServerError::Conflict`] where a second factor is on; as [`accounts::check_is_device`].
pub fn begin(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    secret: &TotpSecret,
    now: i64,
) -> Result<AccountRecord> {
    accounts::check_is_device(metadata, caller)?;
    match metadata.offer_second_factor(caller.account, secret, now)? {
        true => accounts::own_account(metadata, caller),
        false => Err(conflict("is on already; turn it off before another one begins")),
    }
}

/// Turns the second factor on, whose first code is shown, and returns the recovery codes. Only their hashes are kept.
///
/// # Errors
/// [`ServerError::WrongCode`]; [`ServerError::Conflict`] where none waits; as [`accounts::check_is_device`].
pub fn confirm(
    metadata: &mut dyn Metadata,
    random: &dyn Random,
    caller: &Caller,
    shown: &Proof,
    now: i64,
) -> Result<Vec<RecoveryCode>> {
    accounts::check_is_device(metadata, caller)?;
    let not_waiting = || conflict("does not wait for a code: it is on, or was not begun");
    let factor = metadata.second_factor(caller.account)?.filter(|factor| !factor.is_on);
    let SecondFactorRecord { secret, used_step, .. } = factor.ok_or_else(not_waiting)?;
    let Proof::Code(code) = shown else { return Err(ServerError::WrongCode) };
    let step = secret.step_of(*code, now, used_step).ok_or(ServerError::WrongCode)?;
    if !metadata.turn_on_second_factor(caller.account, &secret, step, now)? {
        return Err(not_waiting());
    }
    let codes: Vec<_> = (0..RECOVERY_CODES).map(|_| RecoveryCode::generate(random)).collect();
    let hashes: Vec<_> = codes.iter().map(RecoveryCode::hash).collect();
    metadata.insert_recovery_codes(caller.account, &hashes)?;
    Ok(codes)
}

/// Turns the second factor off: from now on the password is enough.
///
/// # Errors
/// [`ServerError::WrongCode`]; [`ServerError::Conflict`] where none is on; as [`accounts::check_is_device`].
pub fn end(metadata: &mut dyn Metadata, caller: &Caller, shown: &Proof, now: i64) -> Result<()> {
    accounts::check_is_device(metadata, caller)?;
    match admit(metadata, caller.account, Some(shown), now)? {
        Admission::Password => Err(conflict("is not on")),
        Admission::Code | Admission::Recovery => {
            metadata.delete_second_factor(caller.account).map_err(ServerError::from).map(drop)
        }
    }
}

/// Lets in who has shown the password of an account, and what is wanted beside it, which is used up by that.
///
/// # Errors
/// [`ServerError::CodeNeeded`] where nothing was shown; [`ServerError::WrongCode`].
pub fn admit(
    metadata: &mut dyn Metadata,
    account: AccountId,
    shown: Option<&Proof>,
    now: i64,
) -> Result<Admission> {
    let factor = metadata.second_factor(account)?.filter(|factor| factor.is_on);
    let Some(factor) = factor else { return Ok(Admission::Password) };
    let (is_right, admission) = match shown.ok_or(ServerError::CodeNeeded)? {
        Proof::Code(code) => {
            let step = factor.secret.step_of(*code, now, factor.used_step);
            // Another server may have let in the same code since the row was read.
            let is_new = step.map(|step| metadata.use_step(account, step)).transpose()?;
            (is_new == Some(true), Admission::Code)
        }
        Proof::Recovery(code) => {
            (metadata.delete_recovery_code(account, &code.hash())?, Admission::Recovery)
        }
        Proof::Neither => return Err(ServerError::WrongCode),
    };
    if is_right { Ok(admission) } else { Err(ServerError::WrongCode) }
}

/// Refuses an account where its password alone does not let in.
///
/// # Errors
/// [`ServerError::TokenNeeded`].
pub fn check_password_is_enough(metadata: &dyn Metadata, account: AccountId) -> Result<()> {
    match metadata.second_factor(account)?.is_some_and(|factor| factor.is_on) {
        true => Err(ServerError::TokenNeeded),
        false => Ok(()),
    }
}

fn conflict(reason: &'static str) -> ServerError {
    ServerError::Conflict { what: "the second factor".to_owned(), reason }
}
