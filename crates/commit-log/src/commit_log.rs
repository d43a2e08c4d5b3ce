//! The contract of a workspace's history.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::{BoxStream, StreamExt, empty};
use model::checkpoint::Checkpoint;
use model::codec::DecodeError;
use model::wire::{Refusal, RefusalKind};
use model::{Commit, Entry, Genesis, Head};

/// Entries in order, as they come to be. The stream ends with its first error.
pub type EntryStream = BoxStream<'static, Result<Entry, CommitLogError>>;

/// What somebody says of the log who alone does not know: it may not be so, or not for long. Nothing may be concluded from
/// it but to begin early with what does no harm where it is wrong, as to fetch what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rumour {
    /// Somebody has proposed this entry. It may be signed by nobody.
    Entry(Arc<Entry>),
    /// This is the newest checkpoint, or there is none.
    Checkpoint(Option<Box<Checkpoint>>),
}

/// Rumours as they come. Some may be missing.
pub type RumourStream = BoxStream<'static, Rumour>;

/// Why the log did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum CommitLogError {
    /// The coordinator cannot be reached, or did not answer. A commit may or may not stand in the log:
    /// propose it again with the same operation id to find out.
    #[error("{place} cannot be reached: {reason}")]
    Unreachable {
        /// Which server or store.
        place: String,
        /// Why.
        reason: String,
    },
    /// The coordinator has refused the request.
    #[error("the server refused: {}", .0.message)]
    Refused(Refusal),
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] storage::StorageError),
    /// An entry is not what it must be.
    #[error("entry {seq} of the log is damaged: {reason}")]
    Damaged {
        /// Which entry.
        seq: u64,
        /// What is wrong.
        reason: String,
    },
    /// The workspace has other stores since this entry. Nothing was proposed; whoever opens the log anew, with them, goes on.
    #[error("entry {seq} of the log has changed the stores of the workspace")]
    GroupChanged {
        /// Which entry.
        seq: u64,
    },
    /// The stores that are responsible now do not have an entry that others have decided before them.
    #[error(
        "entry {seq} of the log was not carried over to {stores} yet; a device that reaches the stores from before does it"
    )]
    NotCarriedOver {
        /// Which entry.
        seq: u64,
        /// The stores that should have it.
        stores: String,
    },
    /// A message cannot be decoded.
    #[error("a message of {place} cannot be read: {source}")]
    Message {
        /// Which server or store.
        place: String,
        /// What is wrong.
        source: DecodeError,
    },
}

impl CommitLogError {
    /// Tells whether asking again may help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::NotCarriedOver { .. } => true,
            Self::Refused(refusal) => refusal.kind == RefusalKind::Unavailable,
            Self::Storage(error) => error.is_retryable(),
            Self::Damaged { .. } | Self::Message { .. } | Self::GroupChanged { .. } => false,
        }
    }

    /// Tells whether the request was refused for this kind of reason.
    pub fn is_refusal(&self, kind: RefusalKind) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.kind == kind)
    }
}

/// One totally ordered history of commits.
///
/// A reader must check that each entry follows the one before ([`Entry::follows`]): the log may lie.
#[async_trait]
pub trait CommitLog: Send + Sync + Debug {
    /// Returns the genesis of the workspace, which starts the chain.
    fn genesis(&self) -> &Genesis;

    /// Puts a commit into the log and returns the head that ends with it.
    ///
    /// The answer comes after the entry is durable. Proposing the same commit again, also after an error, after a
    /// restart or concurrently, returns the same head and has no further effect.
    ///
    /// # Errors
    /// [`CommitLogError`]. After [`CommitLogError::is_retryable`] errors the commit may stand in the log.
    async fn commit(&self, commit: &Commit) -> Result<Head, CommitLogError>;

    /// Tells whether a commit stands in this log only if its author had seen the same entries, as far as they go: whoever orders
    /// compares that at the moment when the commit is decided. An entry of which this is not so was taken out of another history.
    fn binds_what_was_seen(&self) -> bool {
        false
    }

    /// Returns the newest head. It is never older than any commit that was answered before the call.
    ///
    /// # Errors
    /// [`CommitLogError`].
    async fn head(&self) -> Result<Head, CommitLogError>;

    /// Returns what is said of the log while another call looks at it, until the stream is dropped: nothing where whoever is
    /// asked first knows.
    fn rumours(&self) -> RumourStream {
        empty().boxed()
    }

    /// Returns entries after `since`, oldest first: at most about `length_max` bytes of them, but at least one if
    /// there is one.
    ///
    /// # Errors
    /// [`CommitLogError`].
    async fn entries(&self, since: u64, length_max: u64) -> Result<Vec<Entry>, CommitLogError>;

    /// Returns a stream of all entries after `since`, the old ones and those to come, in order and without gaps.
    /// Pushes may be lost below; the stream finds out and fetches what is missing.
    ///
    /// # Errors
    /// [`CommitLogError`].
    async fn subscribe(&self, since: u64) -> Result<EntryStream, CommitLogError>;

    /// Returns the newest checkpoint that was published.
    ///
    /// # Errors
    /// [`CommitLogError`].
    async fn checkpoint(&self) -> Result<Option<Checkpoint>, CommitLogError>;

    /// Publishes a checkpoint, whose pages are stored already. An older one than that which is there is ignored.
    ///
    /// # Errors
    /// [`CommitLogError`].
    async fn publish_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), CommitLogError>;

    /// Tells whoever keeps the log that this device has everything of it now, and that it has everything of the device. Where
    /// nobody keeps it, nobody is told.
    ///
    /// # Errors
    /// [`CommitLogError`].
    async fn tell_in_sync(&self) -> Result<(), CommitLogError> {
        Ok(())
    }

    /// Returns the newest checkpoints that were published, the newest first: that of [`Self::checkpoint`], and the one before it
    /// as far as there is one. `None` where it is not for a device to say which pages nobody needs.
    ///
    /// # Errors
    /// [`CommitLogError`].
    async fn last_checkpoints(&self) -> Result<Option<Vec<Checkpoint>>, CommitLogError> {
        Ok(None)
    }

    /// Forgets the checkpoints before entry `oldest`, whose pages may be removed. They may come back where somebody publishes
    /// late, and do no harm: there are newer ones.
    ///
    /// # Errors
    /// [`CommitLogError`].
    async fn forget_checkpoints(&self, _oldest: u64) -> Result<(), CommitLogError> {
        Ok(())
    }
}
