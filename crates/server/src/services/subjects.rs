//! Sign-in by a provider of OpenID Connect: which account a person there is, and a device for it.
//!
//! *Participants*: a person whom the provider has named (`crate::oidc` has verified that); the owner of an account, at a device that
//! is signed in; the operator. *Invariants*: only the pair of issuer and subject leads to an account, never a name or an address of
//! mail; no account that is there is given to anybody by what a provider says; owners leave their accounts a way in.

use model::Random;

use crate::auth::second_factor::Proof;
use crate::auth::subject::Subject;
use crate::auth::{Caller, NO_PASSWORD};
use crate::error::{Result, ServerError};
use crate::limits::SUBJECTS_MAX;
use crate::metadata::{AccountId, AccountRecord, Metadata, SubjectRecord};
use crate::services::accounts;
use crate::services::passwords::{self, SignedIn};

/// Returns the account of a subject.
///
/// # Errors
/// [`ServerError::NotBound`].
pub fn account_of(metadata: &dyn Metadata, subject: &Subject) -> Result<AccountRecord> {
    let id = metadata.account_of_subject(subject)?;
    let account = id.map(|id| metadata.account(id)).transpose()?.flatten();
    account.ok_or_else(|| not_bound(subject))
}

/// Makes a device of the account that a subject is bound to, where what its second factor wants is shown, too.
///
/// # Errors
/// [`ServerError::NotBound`] where that has ended meanwhile, [`ServerError::Forbidden`] for an account that is shut out; as
/// [`crate::services::second_factor::admit`] and [`accounts::enrol_device`].
pub fn sign_in(
    metadata: &mut dyn Metadata,
    random: &dyn Random,
    (account, subject): (AccountId, &Subject),
    shown: Option<&Proof>,
    (device_name, now): (&str, i64),
) -> Result<SignedIn> {
    // First, so that what is read afterwards is what was there then.
    if !metadata.hold_account(account)? {
        let what = "signing in to an account that is shut out".to_owned();
        return Err(ServerError::Forbidden { what });
    }
    if metadata.account_of_subject(subject)? != Some(account) {
        return Err(not_bound(subject));
    }
    passwords::let_in(metadata, random, account, shown, (device_name, now))
}

/// Makes an account without a password for a subject that has none yet, and returns it, and whether it is new. Where another server does so
/// at the same moment, the account of both is that of whoever was first.
///
/// # Errors
/// [`ServerError::Invalid`] for a name that is none, [`ServerError::Taken`] for one in use: nobody gets an account by its name.
pub fn create(
    metadata: &mut dyn Metadata,
    subject: &Subject,
    (name, quota_bytes): (&str, Option<u64>),
    now: i64,
) -> Result<(AccountRecord, bool)> {
    if let Some(id) = metadata.account_of_subject(subject)? {
        let account = metadata.account(id)?.ok_or_else(|| not_bound(subject))?;
        return Ok((account, false));
    }
    if metadata.account_by_name(name)?.is_some() {
        return Err(ServerError::Taken { what: format!("an account called '{name}'") });
    }
    let account = accounts::create_account(metadata, name, NO_PASSWORD, now)?;
    if quota_bytes.is_some() {
        metadata.update_quota(account, quota_bytes)?;
    }
    if !metadata.bind_subject(subject, account, now)? {
        return Err(taken());
    }
    let account = metadata.account(account)?.ok_or_else(|| not_bound(subject))?;
    Ok((account, true))
}

/// Binds a subject to the caller's account, whose owner has shown the password, as it was then. It may be bound to it already.
///
/// # Errors
/// [`ServerError::WrongPassword`] where that was changed meanwhile; [`ServerError::Taken`] for the subject of another account;
/// [`ServerError::Forbidden`] for too many; as [`accounts::check_is_device`].
pub fn bind(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    account: &AccountRecord,
    subject: &Subject,
    now: i64,
) -> Result<SubjectRecord> {
    // Several devices may bind at the same moment, each the last one that there is room for.
    if !metadata.lock_account(account.id)?
        || !metadata.hold_password(account.id, &account.password_hash)?
    {
        return Err(ServerError::WrongPassword);
    }
    let all = list(metadata, caller)?;
    if let Some(bound) = all.iter().find(|one| one.subject == *subject) {
        return Ok(bound.clone());
    }
    if all.len() >= SUBJECTS_MAX {
        let what = format!("more than {SUBJECTS_MAX} identities of an account");
        return Err(ServerError::Forbidden { what });
    }
    bind_to(metadata, account.id, subject, now)?;
    Ok(SubjectRecord { subject: subject.clone(), since: now })
}

/// Binds a subject to an account, in the name of the operator or the owner. It may be bound to it already.
///
/// # Errors
/// [`ServerError::Taken`] for the subject of another account.
pub fn bind_to(
    metadata: &mut dyn Metadata,
    account: AccountId,
    subject: &Subject,
    now: i64,
) -> Result<()> {
    let is_bound = metadata.bind_subject(subject, account, now)?
        || metadata.account_of_subject(subject)? == Some(account);
    if is_bound { Ok(()) } else { Err(taken()) }
}

/// Returns the subjects of the caller's account.
///
/// # Errors
/// As [`accounts::check_is_device`].
pub fn list(metadata: &dyn Metadata, caller: &Caller) -> Result<Vec<SubjectRecord>> {
    accounts::check_is_device(metadata, caller)?;
    Ok(metadata.subjects(caller.account)?)
}

/// Ends what binds anybody to an account, and returns who that was.
///
/// # Errors
/// Those of the database.
pub(crate) fn unbind_all(
    metadata: &mut dyn Metadata,
    account: AccountId,
) -> Result<Vec<SubjectRecord>> {
    let all = metadata.subjects(account)?;
    for one in &all {
        metadata.unbind_subject(&one.subject, account)?;
    }
    Ok(all)
}

/// Ends that a subject leads to the caller's account, by what its provider calls it. Devices that are signed in stay so. `issuer` is the
/// provider that people sign in by now: who is known to another one only does not get in.
///
/// # Errors
/// [`ServerError::NotFound`] also for the subjects of others; [`ServerError::Conflict`] where no way in would be left; as
/// [`accounts::check_is_device`].
pub fn unbind(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    id: &str,
    issuer: Option<&str>,
) -> Result<()> {
    // Two devices may take the last two away at the same moment, which would leave none.
    if !metadata.lock_account(caller.account)? {
        return Err(ServerError::NotSignedIn);
    }
    let all = list(metadata, caller)?;
    let (named, others): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.subject.id() == id);
    if named.is_empty() {
        return Err(ServerError::NotFound { what: format!("identity '{id}' of this account") });
    }
    let has_password = accounts::own_account(metadata, caller)?.password_hash != NO_PASSWORD;
    let has_another = others.iter().any(|one| Some(one.subject.issuer()) == issuer);
    if !has_password && !has_another {
        return Err(ServerError::Conflict {
            what: "the account".to_owned(),
            reason: "has no password, so this is its only way in; who runs the server can set a password",
        });
    }
    for one in named {
        metadata.unbind_subject(&one.subject, caller.account)?;
    }
    Ok(())
}

fn not_bound(subject: &Subject) -> ServerError {
    ServerError::NotBound { subject: subject.clone() }
}

fn taken() -> ServerError {
    ServerError::Taken { what: "another account with this identity".to_owned() }
}
