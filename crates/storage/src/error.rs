//! What can go wrong with a store, named so that a caller can decide and a user can act.

use std::time::Duration;

use crate::key::ObjectKey;

/// A result of this room.
pub type Result<T, E = StorageError> = std::result::Result<T, E>;

/// A failure of a store. `store` is the text of [`crate::ObjectStore::describe`].
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The store does not answer, or its answer broke off; what was asked may or may not have happened.
    #[error("{store} cannot be reached: {detail}")]
    NotReachable {
        /// Which store.
        store: String,
        /// What was seen.
        detail: String,
    },
    /// The place answers, and no store is there: it was emptied, it is misnamed, or its disk is not mounted.
    #[error("{store} cannot be reached: {detail}")]
    NoStore {
        /// Which store.
        store: String,
        /// What was seen.
        detail: String,
    },
    /// The store asks to come back later.
    #[error("{store} is busy: {detail}")]
    Busy {
        /// Which store.
        store: String,
        /// What was seen.
        detail: String,
    },
    /// The store has had too many requests, and says when it will answer again; what was asked did not happen.
    #[error("{store} wants fewer requests: {detail}, again in {} s", retry_after.as_secs())]
    Throttled {
        /// Which store.
        store: String,
        /// What was seen.
        detail: String,
        /// How long nothing more should be asked.
        retry_after: Duration,
    },
    /// The disk or the quota is full.
    #[error("{store} has no space left")]
    NoSpace {
        /// Which store.
        store: String,
    },
    /// The store can be read but not written.
    #[error("{store} is read-only")]
    ReadOnly {
        /// Which store.
        store: String,
    },
    /// The server knows us, and lets us read and not write.
    #[error("{store} lets this account read, and not write")]
    MayOnlyRead {
        /// Which server.
        store: String,
    },
    /// The store knows us and says no, or does not know us.
    #[error("{store} refuses access: {detail}")]
    PermissionDenied {
        /// Which store.
        store: String,
        /// What was seen.
        detail: String,
    },
    /// What answers is not the store that it was: it was emptied, or exchanged for another.
    #[error("{store} {detail}")]
    Replaced {
        /// Which store.
        store: String,
        /// What was seen.
        detail: &'static str,
    },
    /// An object is there, but its bytes are not the ones that were stored.
    #[error("object {key} is damaged: {detail}")]
    Damaged {
        /// Which object.
        key: ObjectKey,
        /// What does not fit.
        detail: String,
    },
    /// An object that must be there is not.
    #[error("object {key} is missing from {store}")]
    Missing {
        /// Which object.
        key: ObjectKey,
        /// Which store.
        store: String,
    },
    /// A text does not name a store that this program can open.
    #[error("'{url}' does not name a store: {detail}")]
    InvalidUrl {
        /// The text.
        url: String,
        /// What is wrong, and what would be right.
        detail: String,
    },
    /// What should open a store is missing, unreadable or not what the store asks for.
    #[error("the credentials do not fit: {detail}")]
    InvalidCredentials {
        /// What is wrong; never a secret.
        detail: String,
    },
    /// A text is not an object key or a prefix of one, or the key collides with the path of another.
    #[error("'{key}' is not usable as an object key: {detail}")]
    InvalidKey {
        /// The text.
        key: String,
        /// What is wrong.
        detail: &'static str,
    },
    /// An object is larger than any object, or any object of this store, may be.
    #[error("object {key} is too large: {detail}")]
    TooLarge {
        /// Which object.
        key: ObjectKey,
        /// Whose limit it exceeds.
        detail: String,
    },
    /// Bytes offered under the name of a content are not that content.
    #[error("the bytes offered as object {key} have another hash")]
    WrongContent {
        /// Which object.
        key: ObjectKey,
    },
    /// The store has no way to do what is asked with the promised safety.
    #[error("{store} cannot {operation}")]
    Unsupported {
        /// Which store.
        store: String,
        /// What it cannot do.
        operation: &'static str,
    },
    /// The store was written by a newer version of Syncline.
    #[error("{store} has format '{found}', which is unknown here; nothing was changed")]
    UnknownFormat {
        /// Which store.
        store: String,
        /// What its format file says.
        found: String,
    },
    /// The system failed to make written data durable; the handle writes no more (see `file_store`).
    #[error(
        "{store} failed to make data durable: {detail}; it must be opened again and the data written again"
    )]
    NotDurable {
        /// Which store.
        store: String,
        /// What was seen.
        detail: String,
    },
    /// A remote store answers in a way that its protocol does not allow.
    #[error("{store} gives an invalid answer: {detail}")]
    InvalidAnswer {
        /// Which store.
        store: String,
        /// What was seen.
        detail: String,
    },
    /// Anything else.
    #[error("{store} failed to {operation}")]
    Failed {
        /// Which store.
        store: String,
        /// What was attempted, with the object.
        operation: String,
        /// What the system or the library says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StorageError {
    /// Returns whether the same call may succeed later without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::NotReachable { .. }
                | Self::NoStore { .. }
                | Self::Busy { .. }
                | Self::Throttled { .. }
        )
    }

    /// Returns how long the store wants to be left alone, where it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// Returns whether the store does not hold what it should: damaged or missing objects.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Missing { .. })
    }
}
