//! Invitations: who has the secret of one makes an account for themselves, once.
//!
//! *Participants*: the operator, who invites; whoever gets the address. *Invariants*: the account is made in the transaction that ends the
//! invitation, so of several people with one address one gets an account, and an invitation that made none is there still; what has ended
//! an invitation is told to nobody but who has its secret, and whether a name is in use while the invitation counts.

use model::Random;

use crate::auth::invitation::InvitationSecret;
use crate::error::{Ended, Result, ServerError};
use crate::limits::{INVITATION_SECONDS_MAX, INVITATIONS_MAX};
use crate::metadata::{
    AccountRecord, InvitationId, InvitationRecord, Metadata, MetadataError, NewInvitation,
};
use crate::services::accounts;
use crate::services::passwords::{self, SignedIn};

/// For how long it is known what became of an invitation, in seconds.
const KEPT_SECONDS: i64 = 90 * 24 * 60 * 60;

/// Who comes by an invitation, and what the server keeps of the password.
#[derive(Debug, Clone, Copy)]
pub struct Comer<'a> {
    /// The name of the account.
    pub name: &'a str,
    /// What is kept of its password.
    pub kept: &'a str,
    /// The name of the device that makes it.
    pub device_name: &'a str,
}

/// Says whether an invitation counts.
///
/// # Errors
/// [`ServerError::InvitationGone`].
pub fn check(found: &InvitationRecord, now: i64) -> Result<()> {
    let how = match found {
        InvitationRecord { ended: Some(_), account: Some(_), .. } => Ended::Used,
        InvitationRecord { ended: Some(_), .. } => Ended::TakenBack,
        _ if now >= found.invitation.expires => Ended::Expired,
        _ => return Ok(()),
    };
    Err(ServerError::InvitationGone { how })
}

/// Makes an invitation. Only the hash of its secret is kept, so it is shown once. What became of those that ended long ago is forgotten.
///
/// # Errors
/// [`ServerError::Invalid`] for a name that is none, for an end in the past and one too far away; [`ServerError::Taken`] for a name in use;
/// [`ServerError::Forbidden`] for too many.
pub fn invite(
    metadata: &mut dyn Metadata,
    random: &dyn Random,
    new: &NewInvitation,
) -> Result<(InvitationId, InvitationSecret)> {
    if let Some(name) = &new.name {
        check_name(metadata, name)?;
    }
    let lives = new.expires.saturating_sub(new.made);
    if !(1..=INVITATION_SECONDS_MAX).contains(&lives) {
        let days = INVITATION_SECONDS_MAX / (24 * 60 * 60);
        let reason = format!("it lies in the past, or more than {days} days ahead");
        return Err(ServerError::Invalid { what: "end of the invitation", reason });
    }
    metadata.delete_old_invitations(new.made - KEPT_SECONDS)?;
    let open = metadata.invitations()?.iter().filter(|one| check(one, new.made).is_ok()).count();
    if open >= INVITATIONS_MAX {
        return Err(ServerError::Forbidden {
            what: format!("more than {INVITATIONS_MAX} invitations"),
        });
    }
    let secret = InvitationSecret::generate(random);
    Ok((metadata.insert_invitation(new, &secret.hash())?, secret))
}

/// Returns the invitation of a secret, if it counts.
///
/// # Errors
/// [`ServerError::InvitationGone`].
pub fn open(
    metadata: &dyn Metadata,
    secret: &InvitationSecret,
    now: i64,
) -> Result<InvitationRecord> {
    let found = metadata.invitation_by_secret(&secret.hash())?;
    let found = found.ok_or(ServerError::InvitationGone { how: Ended::Unknown })?;
    check(&found, now)?;
    Ok(found)
}

/// Returns the same, where an account of that name can be made by it.
///
/// # Errors
/// As [`open`]; [`ServerError::Invalid`] for a name that is none, [`ServerError::Taken`] for one in use.
pub fn open_for(
    metadata: &dyn Metadata,
    secret: &InvitationSecret,
    name: &str,
    now: i64,
) -> Result<InvitationRecord> {
    let found = open(metadata, secret, now)?;
    check_name(metadata, name)?;
    Ok(found)
}

/// Makes an account and its first device, and ends the invitation.
///
/// # Errors
/// As [`open_for`] and [`accounts::enrol_device`]. The invitation is there still then, unless somebody else has used it.
pub fn join(
    metadata: &mut dyn Metadata,
    random: &dyn Random,
    secret: &InvitationSecret,
    comer: Comer<'_>,
    now: i64,
) -> Result<(AccountRecord, SignedIn)> {
    let found = open_for(metadata, secret, comer.name, now)?;
    if !metadata.end_invitation(found.id, Some(comer.name), now)? {
        // By somebody who came at the same moment, or by the operator.
        open(metadata, secret, now)?;
        return Err(ServerError::InvitationGone { how: Ended::Used });
    }
    let id = accounts::create_account(metadata, comer.name, comer.kept, now);
    let id = id.map_err(|error| match error {
        // By somebody else at the same moment, at another server.
        ServerError::Metadata(MetadataError::Taken { what }) => ServerError::Taken { what },
        other => other,
    })?;
    if found.invitation.quota_bytes.is_some() {
        metadata.update_quota(id, found.invitation.quota_bytes)?;
    }
    let account = metadata.account(id)?.ok_or(ServerError::NotSignedIn)?;
    let signed_in = passwords::let_in(metadata, random, id, None, (comer.device_name, now))?;
    Ok((account, signed_in))
}

/// Takes an invitation back. Returns whether it counted until now, or had ended.
///
/// # Errors
/// [`ServerError::NotFound`].
pub fn take_back(metadata: &mut dyn Metadata, id: InvitationId, now: i64) -> Result<bool> {
    let found = metadata.invitations()?.into_iter().find(|one| one.id == id);
    let what = format!("invitation {}", id.number());
    let found = found.ok_or(ServerError::NotFound { what })?;
    match check(&found, now) {
        Ok(()) => Ok(metadata.end_invitation(id, None, now)?),
        Err(_) => Ok(false),
    }
}

fn check_name(metadata: &dyn Metadata, name: &str) -> Result<()> {
    accounts::check_account_name(name)?;
    match metadata.account_by_name(name)? {
        Some(_) => Err(ServerError::Taken { what: format!("an account called '{name}'") }),
        None => Ok(()),
    }
}
