//! What can go wrong in this room, and how each door says it.
//!
//! A live connection hears a [`Refusal`], an HTTP request a problem document ([`crate::doors::problem`]); both are
//! made from one [`ServerError`], so that the two doors never disagree.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::wire::{Refusal, RefusalKind};
use model::{PackId, WorkspaceId};
use storage::StorageError;

use crate::auth::subject::Subject;
use crate::metadata::MetadataError;

/// A result of this room.
pub type Result<T, E = ServerError> = std::result::Result<T, E>;

/// Why the server did not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ServerError {
    /// There is no token, it is unknown, or it was revoked.
    #[error("not signed in, or signed out by the owner of the account")]
    NotSignedIn,
    /// Account or password are wrong; which of them, nobody is told.
    #[error("the name or the password is wrong")]
    WrongPassword,
    /// The password is right, and the account wants a code of its second factor, too.
    #[error("a code is wanted beside the password: that of the moment, or a recovery code")]
    CodeNeeded,
    /// The code of a second factor is wrong.
    #[error("the code is wrong, is not that of the moment, or was used before")]
    WrongCode,
    /// The password is right, and the account has a second factor, for which there is no place here.
    #[error(
        "the account has a second factor, so its password opens nothing here; use a token of an application or of a device in its place"
    )]
    TokenNeeded,
    /// What a provider of OpenID Connect has said of somebody proves nothing.
    #[error("the provider's answer is refused: {reason}")]
    OidcRefused {
        /// Why.
        reason: String,
    },
    /// A provider of OpenID Connect has named somebody who has no account here.
    #[error("no account belongs to the identity '{}' of {}", .subject.id(), .subject.issuer())]
    NotBound {
        /// Whom.
        subject: Subject,
    },
    /// The provider of OpenID Connect cannot be asked.
    #[error("the provider of identities cannot be used: {reason}")]
    ProviderUnusable {
        /// Why.
        reason: String,
    },
    /// A link leads nowhere, or does not any more; which of them, only its makers are told.
    #[error("nothing is behind this link: it has ended, was taken back, or never was")]
    LinkGone,
    /// An invitation does not count.
    #[error("{}", .how.text())]
    InvitationGone {
        /// What has ended it.
        how: Ended,
    },
    /// A link wants a password, and what was shown proves none.
    #[error("the link wants a password")]
    LinkLocked,
    /// The password of a link is wrong.
    #[error("the password of the link is wrong")]
    WrongLinkPassword,
    /// Too many attempts.
    #[error("too many attempts; try again in {retry_after_seconds} seconds")]
    RateLimited {
        /// When to come back.
        retry_after_seconds: u64,
    },
    /// The caller is known but may not do this.
    #[error("{what} is not allowed")]
    Forbidden {
        /// What was attempted.
        what: String,
    },
    /// A link cannot carry the keys of a sealed workspace.
    #[error(
        "the workspace is end-to-end encrypted: whoever had a link could read nothing; let accounts in instead"
    )]
    SealedNotShared,
    /// There is no such thing, or it belongs to somebody else.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// The request makes no sense.
    #[error("{what} is invalid: {reason}")]
    Invalid {
        /// Which part of the request.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The request is larger than any may be.
    #[error("{what} is longer than {length_max} bytes")]
    TooLarge {
        /// Which part of the request.
        what: &'static str,
        /// The limit.
        length_max: u64,
    },
    /// A range lies behind the end of an object.
    #[error("the range lies outside of the object's {length} bytes")]
    RangeOutside {
        /// The length of the object.
        length: u64,
    },
    /// Bytes do not have the hash that their name says.
    #[error("the bytes have another hash than the name '{key}' says")]
    WrongContent {
        /// The name.
        key: String,
    },
    /// A name or an id is in use.
    #[error("there is {what} already")]
    Taken {
        /// What.
        what: String,
    },
    /// What is there is not what the caller named; nothing was changed.
    #[error("'{path}' is not what the request names: {}", now(.current.as_deref()))]
    PreconditionFailed {
        /// The path.
        path: String,
        /// What names the version that is there, if anything is.
        current: Option<String>,
    },
    /// What was asked for does not fit to what is there; nothing was changed.
    #[error("{what} {reason}")]
    Conflict {
        /// What.
        what: String,
        /// Why it does not fit.
        reason: &'static str,
    },
    /// What was to be brought back is not stored any more; nothing was changed.
    #[error(
        "a cleanup has removed what was in this version of '{name}', so it cannot come back; nothing was changed"
    )]
    VersionDropped {
        /// What the file was called.
        name: String,
    },
    /// A delta is against another version than the one that is there; nothing was changed.
    #[error("the delta is against another version of '{path}' than the one that is there")]
    WrongBase {
        /// The path.
        path: String,
    },
    /// What a delta makes is not what its sender has; nothing was changed.
    #[error("the new version of '{path}' is not what the delta says that it is")]
    Unverified {
        /// The path.
        path: String,
    },
    /// A delta belongs to a session that has ended, or never was.
    #[error("there is no such session any more; begin again")]
    SessionGone,
    /// The server cannot read the workspace.
    #[error("workspace {workspace} is encrypted; only its members' devices can read it")]
    Sealed {
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// The account would hold more than its quota.
    #[error("{needed} bytes are needed, {left} bytes of the quota are left")]
    OverQuota {
        /// How many bytes were to be added.
        needed: u64,
        /// How many could be.
        left: u64,
    },
    /// A commit names a pack that is not stored.
    #[error("pack {pack} is not stored with {length} bytes")]
    PackMissing {
        /// The pack.
        pack: PackId,
        /// Its length as the commit says.
        length: u64,
    },
    /// The device has seen entries that are not in this log.
    #[error(
        "entry {seq} that the device has seen is not in this log; the server was restored from an older copy"
    )]
    HistoryLost {
        /// The newest entry that the device has seen.
        seq: u64,
    },
    /// An operation id was used for another commit.
    #[error("the operation id was used for another commit, in entry {seq}")]
    OperationReused {
        /// Where the other commit stands.
        seq: u64,
    },
    /// Whoever puts commits into the log has refused one, perhaps in another server.
    #[error("{}", .refusal.message)]
    Refused {
        /// What was said.
        refusal: Refusal,
    },
    /// Two installations use one device.
    #[error(
        "another installation is connected as this device; sign in again to become a device of your own"
    )]
    DeviceCloned,
    /// What is read takes so long to put together that this is left to devices.
    #[error(
        "what is read is stored so that it takes too long to put together here; a device that syncs the workspace can read it"
    )]
    TooMuchWork,
    /// The server has too much to do, or stops.
    #[error("the server {reason}; try again")]
    Unavailable {
        /// What it is doing.
        reason: &'static str,
    },
    /// The metadata failed.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The store failed.
    #[error("{text}")]
    Storage {
        /// What the store says.
        text: String,
        /// Whether it is full.
        is_full: bool,
        /// Whether it does not hold what it should.
        is_damage: bool,
    },
    /// Something in the data folder cannot be used.
    #[error("{path}: {reason}", path = path.display())]
    DataFolder {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another server, or another command of an administrator, uses the data folder.
    #[error("another server or command works on {path}", path = path.display())]
    Locked {
        /// The data folder.
        path: PathBuf,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        reason: String,
    },
}

/// What has ended an invitation, or that there never was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// There is no such invitation.
    Unknown,
    /// Its day has come.
    Expired,
    /// An account was made by it.
    Used,
    /// Who runs the server took it back.
    TakenBack,
}

impl Ended {
    fn text(self) -> &'static str {
        match self {
            Self::Unknown => "there is no such invitation",
            Self::Expired => "the invitation has expired",
            Self::Used => "the invitation was used; it makes one account",
            Self::TakenBack => "the invitation was taken back",
        }
    }
}

fn now(current: Option<&str>) -> String {
    current.map_or_else(|| "nothing is there".to_owned(), |etag| format!("its version is {etag}"))
}

impl From<StorageError> for ServerError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::InvalidKey { key, detail } => {
                Self::Invalid { what: "object key", reason: format!("'{key}': {detail}") }
            }
            StorageError::InvalidUrl { .. } | StorageError::InvalidCredentials { .. } => {
                Self::Invalid { what: "the store", reason: error.to_string() }
            }
            error => Self::Storage {
                is_full: matches!(error, StorageError::NoSpace { .. }),
                is_damage: error.is_damage(),
                text: error.to_string(),
            },
        }
    }
}

impl ServerError {
    /// Said to who asks for something that is not begun, or not ended, any more.
    pub(crate) const STOPPING: Self = Self::Unavailable { reason: "is stopping" };

    /// Returns what is said to who must wait so long before the next attempt.
    pub(crate) fn limited(wait: Duration) -> Self {
        let retry_after_seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self::RateLimited { retry_after_seconds }
    }

    /// Returns the kind of refusal that a live connection hears.
    pub fn kind(&self) -> RefusalKind {
        match self {
            Self::NotSignedIn
            | Self::WrongPassword
            | Self::CodeNeeded
            | Self::WrongCode
            | Self::TokenNeeded
            | Self::OidcRefused { .. }
            | Self::NotBound { .. }
            | Self::LinkLocked
            | Self::WrongLinkPassword => RefusalKind::Forbidden,
            Self::Forbidden { .. } | Self::SealedNotShared => RefusalKind::NotAllowed,
            Self::NotFound { .. } | Self::LinkGone | Self::InvitationGone { .. } => {
                RefusalKind::NotFound
            }
            Self::Invalid { .. }
            | Self::TooLarge { .. }
            | Self::RangeOutside { .. }
            | Self::WrongContent { .. }
            | Self::PreconditionFailed { .. }
            | Self::Conflict { .. }
            | Self::VersionDropped { .. }
            | Self::WrongBase { .. }
            | Self::Unverified { .. }
            | Self::SessionGone
            | Self::Sealed { .. }
            | Self::TooMuchWork
            | Self::Taken { .. } => RefusalKind::Invalid,
            Self::PackMissing { .. } => RefusalKind::PackMissing,
            Self::HistoryLost { .. } => RefusalKind::HistoryLost,
            Self::OverQuota { .. }
            | Self::Metadata(MetadataError::NoSpace)
            | Self::Storage { is_full: true, .. } => RefusalKind::NoSpace,
            Self::OperationReused { .. } => RefusalKind::OperationReused,
            Self::DeviceCloned => RefusalKind::DeviceCloned,
            Self::Refused { refusal } => refusal.kind,
            Self::RateLimited { .. }
            | Self::ProviderUnusable { .. }
            | Self::Unavailable { .. }
            | Self::Metadata(_)
            | Self::Storage { .. }
            | Self::DataFolder { .. }
            | Self::Locked { .. }
            | Self::Listen { .. } => RefusalKind::Unavailable,
        }
    }

    /// Returns what a live connection hears. What the database or the store says stays in the server's log.
    pub fn refusal(&self) -> Refusal {
        Refusal::new(self.kind(), self.public_text())
    }

    /// Returns the text for the caller.
    pub fn public_text(&self) -> String {
        match self {
            Self::Metadata(MetadataError::NoSpace) | Self::Storage { is_full: true, .. } => {
                "the server has no space left".to_owned()
            }
            Self::Metadata(_) => "the server's database cannot answer now".to_owned(),
            Self::Storage { is_damage: true, .. } => {
                "the object is damaged in the server's store".to_owned()
            }
            Self::Storage { .. } => "the server's store cannot answer now".to_owned(),
            other => other.to_string(),
        }
    }

    /// Tells whether somebody who runs the server should read about it.
    pub fn is_internal(&self) -> bool {
        matches!(self, Self::Metadata(_) | Self::Storage { .. })
    }

    /// Tells whether asking again may help.
    pub fn is_retryable(&self) -> bool {
        self.kind() == RefusalKind::Unavailable
    }
}
