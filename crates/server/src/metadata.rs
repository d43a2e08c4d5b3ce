//! What the server remembers, as one trait; SQL lives only below this module.
//!
//! *Participants*: the services above, one database below. *Goals*: a commit is decided and appended in one
//! transaction; a bad request in a batch undoes itself and nothing else. *Non-goals*: rules. A method here reads or
//! writes rows and decides nothing. *Invariants*: within a workspace sequence numbers have no gap and no repetition,
//! and so have operation ids of one device; `used_bytes` is the sum of what the workspace holds and of what is reserved in it.
//!
//! Writes happen between [`Metadata::begin`] and [`Metadata::commit`]; reads outside of a transaction see what was
//! committed before.

use std::collections::HashMap;
use std::fmt::Debug;

use model::{DeviceId, EntryHash, Head, WorkspaceId};

pub mod commits;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod copy;
pub mod device_syncs;
pub mod invitations;
pub mod keys;
pub mod links;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod second_factors;
pub mod secrets;
pub mod sqlite;
pub mod subjects;
pub mod tables;

pub use commits::{CommitTables, Room};
pub use copy::RowTables;
pub use device_syncs::{DeviceSyncTables, UnsyncedDevice};
pub use invitations::{InvitationId, InvitationRecord, InvitationTables, NewInvitation};
pub use keys::{IdentityRecord, KeyTables, LockedKeys};
pub use links::{LinkRecord, LinkTables};
pub use second_factors::{SecondFactorRecord, SecondFactorTables};
pub use secrets::SecretTables;
pub use subjects::{SubjectRecord, SubjectTables};

/// A result of the metadata.
pub type Result<T, E = MetadataError> = std::result::Result<T, E>;

/// Why metadata could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// The disk is full.
    #[error("the database has no space left")]
    NoSpace,
    /// Somebody else holds the database.
    #[error("the database is busy")]
    Busy,
    /// Others use the database, or have filled it, where it must be free.
    #[error("the database is in use: {detail}")]
    InUse {
        /// By whom or what.
        detail: String,
    },
    /// Another transaction was in the way; nothing was done, and doing all of it again may help.
    #[error("the database was changed by somebody else at the same moment")]
    Collided,
    /// The database cannot be reached. Whether a transaction that was being ended is durable, nobody knows.
    #[error("the database cannot be reached: {detail}")]
    Unreachable {
        /// What the connection says.
        detail: String,
    },
    /// A name, an id or a number is there already.
    #[error("{what} is there already")]
    Taken {
        /// What.
        what: String,
    },
    /// The database was written by a newer version of Syncline.
    #[error(
        "the database has schema version {version}, which is unknown here; nothing was changed"
    )]
    NewerSchema {
        /// Its version.
        version: i64,
    },
    /// The file is a database of something else.
    #[error("{path} is not a Syncline database; nothing was changed")]
    NotOurs {
        /// Which file.
        path: String,
    },
    /// A row holds what it cannot hold.
    #[error("{what} in the database is damaged: {detail}")]
    Damaged {
        /// Which row.
        what: String,
        /// What is wrong.
        detail: String,
    },
    /// Anything else.
    #[error("the database failed to {operation}: {detail}")]
    Failed {
        /// What was attempted.
        operation: String,
        /// What the database says.
        detail: String,
    },
}

impl MetadataError {
    /// Tells whether the cause may be a row that others do not need.
    pub(crate) fn may_concern_one_row(&self) -> bool {
        matches!(self, Self::Taken { .. } | Self::Damaged { .. } | Self::Failed { .. })
    }
}

/// Number of an account in the database; never shown to users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub(crate) i64);

/// Number of a workspace in the database; shorter than its id, which stands in a million rows otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspaceNumber(pub(crate) i64);

/// A person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRecord {
    /// Its number.
    pub id: AccountId,
    /// Its name, unique on the server.
    pub name: String,
    /// Argon2id in PHC form.
    pub password_hash: String,
    /// Tells whether it may not sign in.
    pub is_disabled: bool,
    /// How many bytes its workspaces may hold; nothing for any number.
    pub quota_bytes: Option<u64>,
    /// When it was made, in seconds since 1970.
    pub created: i64,
}

/// One installation that has signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRecord {
    /// Its id, also in every commit it makes.
    pub id: DeviceId,
    /// Whose it is.
    pub account: AccountId,
    /// Its name for people.
    pub name: String,
    /// When it signed in, in seconds since 1970.
    pub created: i64,
    /// When it was last heard of, in seconds since 1970.
    pub last_seen: i64,
    /// Tells whether it was signed out or revoked.
    pub is_revoked: bool,
    /// What it is limited to, where it is no device but the token of an application.
    pub limits: Option<TokenLimits>,
}

/// What an application token lets through of what its account may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenLimits {
    /// What it may do with workspaces; with the account itself nothing.
    pub scope: Scope,
    /// The only workspace that it knows; nothing for all of the account.
    pub workspace: Option<WorkspaceId>,
    /// From when on it is worth nothing, in seconds since 1970.
    pub expires: Option<i64>,
}

/// What an application token may do with workspaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Read.
    Read,
    /// Read and write.
    Write,
    /// Read what lies behind a link. It is no token: its secret opens no door but the public one.
    Link,
}

/// A workspace and the end of its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceRecord {
    /// Its number.
    pub number: WorkspaceNumber,
    /// Its id.
    pub id: WorkspaceId,
    /// Whose it is.
    pub owner: AccountId,
    /// Its name, unique among those of the owner.
    pub name: String,
    /// The newest entry.
    pub head: Head,
    /// How many bytes of entries and objects it holds.
    pub used_bytes: u64,
}

/// What the owner of a workspace has let an account do in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberRole {
    /// Read everything, change nothing.
    View,
    /// Read and write.
    Edit,
}

/// A member of a workspace. The owner is none: the workspace itself says whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRecord {
    /// Which account.
    pub account: AccountId,
    /// Its name.
    pub name: String,
    /// What it may do.
    pub role: MemberRole,
    /// Since when it is a member, in seconds since 1970.
    pub added: i64,
}

/// A workspace of somebody else, seen by a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The workspace.
    pub workspace: WorkspaceRecord,
    /// The name of its owner.
    pub owner: String,
    /// What the member may do.
    pub role: MemberRole,
}

/// Accounts and devices.
pub trait AccountTables {
    /// Returns the account of that name.
    fn account_by_name(&self, name: &str) -> Result<Option<AccountRecord>>;
    /// Returns an account.
    fn account(&self, id: AccountId) -> Result<Option<AccountRecord>>;
    /// Returns all accounts in the order of their names.
    fn accounts(&self) -> Result<Vec<AccountRecord>>;
    /// Returns how many accounts there are.
    fn account_count(&self) -> Result<u64>;
    /// Adds an account; [`MetadataError::Taken`] where the name is in use.
    fn insert_account(&mut self, name: &str, password_hash: &str, now: i64) -> Result<AccountId>;
    /// Sets the hash of the password, and whether the account may sign in.
    fn update_account(&mut self, id: AccountId, password_hash: &str, disabled: bool) -> Result<()>;
    /// Sets whether an account may sign in, and nothing else of it.
    fn update_disabled(&mut self, id: AccountId, is_disabled: bool) -> Result<()>;
    /// Replaces a password by its hash. Returns false, and changes nothing, where the account has another one or may not sign in.
    fn replace_password(&mut self, id: AccountId, old_hash: &str, new_hash: &str) -> Result<bool>;
    /// Tells whether an account has this password and may sign in; until the end of the transaction that stays so.
    fn hold_password(&mut self, id: AccountId, password_hash: &str) -> Result<bool>;
    /// Tells whether an account may sign in; until the end of the transaction that stays so, and nobody changes its password.
    fn hold_account(&mut self, id: AccountId) -> Result<bool>;
    /// The same, and until then nobody else holds the account in any way.
    fn lock_account(&mut self, id: AccountId) -> Result<bool>;
    /// Sets or removes the quota.
    fn update_quota(&mut self, id: AccountId, quota_bytes: Option<u64>) -> Result<()>;
    /// Removes an account, which owns no workspace, its devices and its memberships.
    fn delete_account(&mut self, id: AccountId) -> Result<()>;
    /// Returns how many bytes the workspaces of an account hold.
    fn used_bytes(&self, id: AccountId) -> Result<u64>;

    /// Returns the device with that token.
    fn device_by_token(&self, token_hash: &[u8; 32]) -> Result<Option<DeviceRecord>>;
    /// Returns a device.
    fn device(&self, id: DeviceId) -> Result<Option<DeviceRecord>>;
    /// Returns the devices of an account in the order in which they signed in.
    fn devices(&self, account: AccountId) -> Result<Vec<DeviceRecord>>;
    /// Adds a device, or the token of an application.
    fn insert_device(&mut self, device: &DeviceRecord, token_hash: &[u8; 32]) -> Result<()>;
    /// Sets the name of a device.
    fn rename_device(&mut self, id: DeviceId, name: &str) -> Result<()>;
    /// Makes a device's token worthless for ever.
    fn revoke_device(&mut self, id: DeviceId) -> Result<()>;
    /// Notes that the device was heard of.
    fn touch_device(&mut self, id: DeviceId, now: i64) -> Result<()>;
}

/// Workspaces and their logs.
pub trait LogTables {
    /// Returns a workspace.
    fn workspace(&self, id: WorkspaceId) -> Result<Option<WorkspaceRecord>>;
    /// Returns the workspace that an account calls so.
    fn workspace_by_name(&self, owner: AccountId, name: &str) -> Result<Option<WorkspaceRecord>>;
    /// Returns the workspaces of an account in the order of their names.
    fn workspaces(&self, owner: AccountId) -> Result<Vec<WorkspaceRecord>>;
    /// Adds a workspace with an empty log; [`MetadataError::Taken`] where id or name is in use.
    fn insert_workspace(
        &mut self,
        id: WorkspaceId,
        owner: AccountId,
        name: &str,
        head: Head,
        genesis: &[u8],
    ) -> Result<()>;
    /// Returns the encoded genesis.
    fn genesis(&self, workspace: WorkspaceNumber) -> Result<Vec<u8>>;
    /// Adds to the bytes that a workspace holds.
    fn add_used_bytes(&mut self, workspace: WorkspaceNumber, change: i64) -> Result<()>;

    /// Returns the hash of an entry.
    fn entry_hash(&self, workspace: WorkspaceNumber, seq: u64) -> Result<Option<EntryHash>>;
    /// Returns stored entries after `since`: no more than fit into `length_max` bytes, but at least one.
    fn entries(
        &self,
        workspace: WorkspaceNumber,
        since: u64,
        length_max: u64,
    ) -> Result<Vec<Vec<u8>>>;
    /// Returns the newest checkpoint, encoded, and its sequence number.
    fn checkpoint(&self, workspace: WorkspaceNumber) -> Result<Option<(u64, Vec<u8>)>>;
    /// Replaces the newest checkpoint.
    fn set_checkpoint(&mut self, workspace: WorkspaceNumber, seq: u64, bytes: &[u8]) -> Result<()>;
}

/// Which accounts are members of which workspaces.
pub trait MemberTables {
    /// Returns the roles of those pairs that there are.
    fn roles(
        &self,
        members: &[(WorkspaceNumber, AccountId)],
    ) -> Result<HashMap<(WorkspaceNumber, AccountId), MemberRole>>;
    /// Returns the members of a workspace in the order of their names.
    fn members(&self, workspace: WorkspaceNumber) -> Result<Vec<MemberRecord>>;
    /// Returns the workspaces of which an account is a member, in the order of owners and names.
    fn memberships(&self, account: AccountId) -> Result<Vec<Membership>>;
    /// Makes an account a member, or gives a member another role.
    fn set_member(
        &mut self,
        workspace: WorkspaceNumber,
        account: AccountId,
        role: MemberRole,
        now: i64,
    ) -> Result<()>;
    /// Ends a membership.
    fn delete_member(&mut self, workspace: WorkspaceNumber, account: AccountId) -> Result<()>;
}

impl TokenLimits {
    /// Puts limits together from what databases keep, if there are any.
    pub(crate) fn of_columns(
        scope: Option<i64>,
        workspace: Option<[u8; 16]>,
        expires: Option<i64>,
    ) -> Option<Self> {
        let all = [Scope::Read, Scope::Write, Scope::Link];
        let scope = scope?;
        // Whatever is no known scope lets the least through.
        let scope = all.into_iter().find(|one| one.number() == scope).unwrap_or(Scope::Link);
        Some(Self { scope, workspace: workspace.map(WorkspaceId::from_bytes), expires })
    }
}

impl Scope {
    /// Returns the number by which databases know it.
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Link => 3,
        }
    }
}

impl MemberRole {
    /// Returns the number by which databases know it.
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::View => 1,
            Self::Edit => 2,
        }
    }

    /// Returns the role of that number.
    pub(crate) fn of_number(number: i64) -> Result<Self> {
        match number {
            1 => Ok(Self::View),
            2 => Ok(Self::Edit),
            _ => Err(MetadataError::Damaged {
                what: "the role of a member".to_owned(),
                detail: format!("there is no role {number}"),
            }),
        }
    }
}

/// Objects that rest in the store, by key and length.
pub trait ObjectTables {
    /// Returns the length of an object, or nothing where it is not stored.
    fn object_length(&self, workspace: WorkspaceNumber, key: &str) -> Result<Option<u64>>;
    /// Returns keys and lengths of the first `limit` objects whose keys begin with `prefix` and are greater than
    /// `start_after`, in the order of keys.
    fn objects(
        &self,
        workspace: WorkspaceNumber,
        prefix: &str,
        start_after: &str,
        limit: usize,
    ) -> Result<Vec<(String, u64)>>;
    /// Tells whether any workspace has any object.
    fn has_objects(&self) -> Result<bool>;
    /// Notes an object as stored.
    fn insert_object(&mut self, workspace: WorkspaceNumber, key: &str, length: u64) -> Result<()>;
    /// Forgets an object.
    fn delete_object(&mut self, workspace: WorkspaceNumber, key: &str) -> Result<()>;

    /// Returns how many bytes are held for an object that is about to be stored, or nothing.
    fn reservation(&self, workspace: WorkspaceNumber, key: &str) -> Result<Option<u64>>;
    /// Returns how many bytes are held in a workspace for objects that are about to be stored.
    fn reserved_bytes(&self, workspace: WorkspaceNumber) -> Result<u64>;
    /// Holds bytes for an object that is about to be stored; there is no reservation for it yet.
    fn insert_reservation(
        &mut self,
        workspace: WorkspaceNumber,
        key: &str,
        length: u64,
        now: i64,
    ) -> Result<()>;
    /// Gives back what is held for an object, if anything is.
    fn delete_reservation(&mut self, workspace: WorkspaceNumber, key: &str) -> Result<()>;
    /// Gives back what was held for an account before that time.
    fn delete_old_reservations(&mut self, owner: AccountId, before: i64) -> Result<()>;
}

/// One database with all tables and its transactions.
pub trait Metadata:
    AccountTables
    + LogTables
    + MemberTables
    + LinkTables
    + SecondFactorTables
    + SubjectTables
    + InvitationTables
    + DeviceSyncTables
    + SecretTables
    + ObjectTables
    + KeyTables
    + CommitTables
    + RowTables
    + Debug
    + Send
{
    /// Starts a transaction.
    fn begin(&mut self) -> Result<()>;
    /// Ends the transaction; what it wrote is durable on return.
    fn commit(&mut self) -> Result<()>;
    /// Undoes the transaction, if there is one.
    fn rollback(&mut self);
    /// Tells whether a transaction is open. A failing database may have undone it by itself.
    fn is_in_transaction(&self) -> bool;
    /// Marks a point of the transaction.
    fn set_savepoint(&mut self) -> Result<()>;
    /// Keeps what was written since the mark.
    fn release_savepoint(&mut self) -> Result<()>;
    /// Undoes what was written since the mark.
    fn undo_to_savepoint(&mut self) -> Result<()>;
    /// Begins to ask several questions. A database in this process answers them as of one moment, and finds out once what is new in it; to
    /// one elsewhere that would be one more way there and back for what each question is good for alone, so it does nothing.
    fn begin_asking(&self) -> Result<()> {
        Ok(())
    }
    /// Ends what [`Self::begin_asking`] began.
    fn end_asking(&self) -> Result<()> {
        Ok(())
    }
    /// Tells whether the database answers.
    fn check(&self) -> Result<()>;
    /// Returns everything that was committed, as the bytes of a database of SQLite.
    fn snapshot(&mut self) -> Result<Vec<u8>>;
    /// Moves what the database keeps aside into its main file, for a clean stop.
    fn flush(&mut self) -> Result<()>;
}
