//! What an administrator does: accounts of a server, in its database, whether it runs or not; copies of it ([`backup`],
//! [`migrate()`]), and whether it is whole ([`verify()`]).

use std::path::Path;

use model::{Clock, Random};

use crate::auth::NO_PASSWORD;
use crate::auth::invitation::InvitationSecret;
use crate::auth::passwords::{Passwords, SECRET};
use crate::auth::subject::Subject;
use crate::data_folder::DataFolder;
use crate::database::Database;
use crate::error::{Result, ServerError};
use crate::metadata::{
    AccountId, AccountRecord, InvitationId, InvitationRecord, Metadata, NewInvitation,
    SubjectRecord,
};
use crate::services::{accounts, batch, invitations, subjects};

mod archive;
mod backup;
mod migrate;
mod scratch;
mod shelf;
mod verify;

pub use archive::{Backup, Part, backups};
pub use backup::{Copied, backup, restore, verify_backup};
pub use migrate::migrate;
pub use scratch::Scratch;
pub use shelf::Shelf;
pub use verify::{Damage, Report, verify, verify_live};

/// The accounts of a server.
#[derive(Debug)]
pub struct Admin {
    database: Box<dyn Metadata>,
}

/// A line of the list of accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountLine {
    /// Its name.
    pub name: String,
    /// Tells whether it may not sign in.
    pub is_disabled: bool,
    /// How many devices are signed in.
    pub devices: usize,
    /// How many workspaces it owns.
    pub workspaces: usize,
    /// How many bytes they hold.
    pub used_bytes: u64,
    /// How many bytes they may hold; nothing for any number.
    pub quota_bytes: Option<u64>,
    /// When it was made, in seconds since 1970.
    pub created: i64,
    /// Tells whether a sign-in wants a code beside the password.
    pub has_second_factor: bool,
}

/// What became of an account that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It has gone.
    Deleted,
    /// It owns workspaces, so its data stays, but nobody signs in to it any more. A new password brings it back.
    Disabled,
}

impl Admin {
    /// Opens the accounts in a data folder and makes the folder where it is missing.
    ///
    /// # Errors
    /// [`ServerError::DataFolder`], [`ServerError::Metadata`].
    pub fn open(data: &Path) -> Result<Self> {
        Self::open_in(data, &Database::Embedded)
    }

    /// Opens the accounts in a database; the folder is the one that the server has.
    ///
    /// # Errors
    /// [`ServerError::DataFolder`], [`ServerError::Metadata`].
    pub fn open_in(data: &Path, database: &Database) -> Result<Self> {
        Ok(Self { database: database.open(&DataFolder::open(data)?)? })
    }

    /// Opens the accounts in a data folder where there are some.
    ///
    /// # Errors
    /// [`ServerError::DataFolder`] where no server or administrator ever used the folder.
    pub fn open_existing(data: &Path) -> Result<Self> {
        Ok(Self { database: Database::Embedded.open(&DataFolder::open_existing(data)?)? })
    }

    /// Adds an account.
    ///
    /// # Errors
    /// [`ServerError::Taken`] where the name is in use; [`ServerError::Invalid`] for name or password.
    pub fn add(
        &mut self,
        name: &str,
        password: &str,
        clock: &dyn Clock,
        random: &dyn Random,
    ) -> Result<()> {
        let (kept, now) =
            (self.passwords(random)?.keep(name, password, random)?, clock.now().seconds);
        self.write(|metadata| accounts::create_account(metadata, name, &kept, now).map(drop))
    }

    /// Returns the secret behind the passwords, which is made where there is none yet.
    fn passwords(&mut self, random: &dyn Random) -> Result<Passwords> {
        let new = Passwords::generate(random);
        let bytes = self.write(|metadata| Ok(metadata.keep_secret(SECRET, &new)?))?;
        Passwords::from_bytes(&bytes)
    }

    /// Returns all accounts in the order of their names.
    ///
    /// # Errors
    /// [`ServerError::Metadata`].
    pub fn list(&self) -> Result<Vec<AccountLine>> {
        let metadata: &dyn Metadata = &*self.database;
        let line = |account: AccountRecord| {
            let devices = metadata.devices(account.id)?;
            Ok(AccountLine {
                is_disabled: account.is_disabled,
                devices: devices
                    .iter()
                    .filter(|one| !one.is_revoked && one.limits.is_none())
                    .count(),
                workspaces: metadata.workspaces(account.id)?.len(),
                used_bytes: metadata.used_bytes(account.id)?,
                quota_bytes: account.quota_bytes,
                created: account.created,
                has_second_factor: metadata
                    .second_factor(account.id)?
                    .is_some_and(|factor| factor.is_on),
                name: account.name,
            })
        };
        metadata.accounts()?.into_iter().map(line).collect()
    }

    /// Removes an account that owns nothing, or disables one that does; its devices are signed out either way.
    ///
    /// # Errors
    /// [`ServerError::NotFound`].
    pub fn remove(&mut self, name: &str) -> Result<Removal> {
        self.write(|metadata| {
            let account = find(metadata, name)?;
            remove_account(metadata, account.id)
        })
    }

    /// Sets a password, and lets a disabled account sign in again. Devices that are signed in stay so, and so does a second factor. Nobody
    /// signs in by a provider of OpenID Connect any more: whoever knew the password before may have bound themselves. Returns who did.
    ///
    /// # Errors
    /// [`ServerError::NotFound`], [`ServerError::Invalid`].
    pub fn set_password(
        &mut self,
        name: &str,
        password: &str,
        random: &dyn Random,
    ) -> Result<Vec<SubjectRecord>> {
        let kept = self.passwords(random)?.keep(name, password, random)?;
        self.write(|metadata| {
            let account = find(metadata, name)?;
            metadata.update_account(account.id, &kept, false)?;
            subjects::unbind_all(metadata, account.id)
        })
    }

    /// Shuts an account out, or lets it in again, with its password and its devices as they were. Requests of its devices and
    /// tokens are refused from then on; its live connections end when they are looked at, every 20 seconds. Who is a member of
    /// its workspaces stays one.
    ///
    /// # Errors
    /// [`ServerError::NotFound`].
    pub fn set_disabled(&mut self, name: &str, is_disabled: bool) -> Result<()> {
        self.write(|metadata| {
            let account = find(metadata, name)?;
            Ok(metadata.update_disabled(account.id, is_disabled)?)
        })
    }

    /// Removes the second factor of an account, on or waiting, with its recovery codes: the password is enough from now on. Returns whether
    /// there was one.
    ///
    /// # Errors
    /// [`ServerError::NotFound`].
    pub fn remove_second_factor(&mut self, name: &str) -> Result<bool> {
        self.write(|metadata| {
            let account = find(metadata, name)?;
            Ok(metadata.delete_second_factor(account.id)?)
        })
    }

    /// Binds a person at a provider of OpenID Connect to an account. It may be bound to it already.
    ///
    /// # Errors
    /// [`ServerError::NotFound`]; [`ServerError::Taken`] where it is bound to another account.
    pub fn bind_subject(&mut self, name: &str, subject: &Subject, clock: &dyn Clock) -> Result<()> {
        let now = clock.now().seconds;
        self.write(|metadata| {
            let account = find(metadata, name)?;
            subjects::bind_to(metadata, account.id, subject, now)
        })
    }

    /// Ends what binds a person at a provider to an account, also where there is no other way in. Returns whether anything did. Devices
    /// that are signed in stay so.
    ///
    /// # Errors
    /// [`ServerError::NotFound`].
    pub fn unbind_subject(&mut self, name: &str, subject: &Subject) -> Result<bool> {
        self.write(|metadata| {
            let account = find(metadata, name)?;
            Ok(metadata.unbind_subject(subject, account.id)?)
        })
    }

    /// Returns who an account is at providers of OpenID Connect.
    ///
    /// # Errors
    /// [`ServerError::NotFound`].
    pub fn subjects(&self, name: &str) -> Result<Vec<SubjectRecord>> {
        let account = find(&*self.database, name)?;
        Ok(self.database.subjects(account.id)?)
    }

    /// Makes an invitation; its secret is shown this once.
    ///
    /// # Errors
    /// As [`invitations::invite`].
    pub fn invite(
        &mut self,
        new: &NewInvitation,
        random: &dyn Random,
    ) -> Result<(InvitationId, InvitationSecret)> {
        self.write(|metadata| invitations::invite(metadata, random, new))
    }

    /// Returns all invitations in the order in which they were made, also those that have ended, for about 90 days.
    ///
    /// # Errors
    /// [`ServerError::Metadata`].
    pub fn invitations(&self) -> Result<Vec<InvitationRecord>> {
        Ok(self.database.invitations()?)
    }

    /// Takes an invitation back. Returns whether it counted until now, or had ended.
    ///
    /// # Errors
    /// [`ServerError::NotFound`].
    pub fn take_back(&mut self, id: InvitationId, clock: &dyn Clock) -> Result<bool> {
        let now = clock.now().seconds;
        self.write(|metadata| invitations::take_back(metadata, id, now))
    }

    /// Sets or removes the quota. Data that is there stays, however much it is.
    ///
    /// # Errors
    /// [`ServerError::NotFound`].
    pub fn set_quota(&mut self, name: &str, quota_bytes: Option<u64>) -> Result<()> {
        self.write(|metadata| {
            let account = find(metadata, name)?;
            Ok(metadata.update_quota(account.id, quota_bytes)?)
        })
    }

    fn write<T>(&mut self, work: impl FnMut(&mut dyn Metadata) -> Result<T> + Send) -> Result<T> {
        let mut outcomes = batch::run(&mut *self.database, vec![Box::new(work)]);
        let outcome = outcomes.pop().expect("there is one outcome per work");
        outcome.map_err(|error| match error {
            ServerError::Metadata(crate::metadata::MetadataError::Taken { what }) => {
                ServerError::Taken { what }
            }
            other => other,
        })
    }
}

/// Shuts an account out before it ends its devices: another server may sign one in at this moment, and is waited for.
pub(crate) fn remove_account(metadata: &mut dyn Metadata, account: AccountId) -> Result<Removal> {
    metadata.update_account(account, NO_PASSWORD, true)?;
    for device in metadata.devices(account)? {
        metadata.revoke_device(device.id)?;
    }
    if !metadata.workspaces(account)?.is_empty() {
        // A new password gives the account to somebody, who may be another person.
        subjects::unbind_all(metadata, account)?;
        return Ok(Removal::Disabled);
    }
    metadata.delete_account(account)?;
    Ok(Removal::Deleted)
}

fn find(metadata: &dyn Metadata, name: &str) -> Result<AccountRecord> {
    let account = metadata.account_by_name(name)?;
    account.ok_or_else(|| ServerError::NotFound { what: format!("account '{name}'") })
}
