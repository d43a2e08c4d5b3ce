//! What can go wrong with a delta, named by what failed.

use std::io;

use model::WorkspaceId;
use model::codec::DecodeError;

use crate::error::ContentError;

/// A failure of a delta. Whatever the other side sends ends in one of these, never in a panic.
#[derive(Debug, thiserror::Error)]
pub enum DeltaError {
    /// A version of the file could not be read.
    #[error("{length} bytes at {offset} of the file cannot be read")]
    Read {
        /// Where, in bytes from the start.
        offset: u64,
        /// How many bytes were asked for.
        length: usize,
        /// What the source said.
        source: io::Error,
    },
    /// The new version could not be written.
    #[error("the new version cannot be written")]
    Write {
        /// What the writer said.
        source: io::Error,
    },
    /// A message is not the canonical encoding of any.
    #[error("the message is invalid")]
    Message {
        /// Where and why.
        source: DecodeError,
    },
    /// A message is longer than any can be.
    #[error("a message of {length} bytes is longer than {max}")]
    MessageLength {
        /// Its length.
        length: usize,
        /// The limit.
        max: usize,
    },
    /// A message of another kind than the one that is due.
    #[error("a message of kind '{actual}' came where '{expected}' is due")]
    UnexpectedMessage {
        /// The kind that is due.
        expected: &'static str,
        /// The kind that came.
        actual: &'static str,
    },
    /// A message of another session.
    #[error("the message belongs to another session")]
    WrongSession,
    /// A session for another workspace than the one that it reached.
    #[error("the message is for workspace {actual}, and this is {expected}")]
    WrongWorkspace {
        /// The workspace here.
        expected: WorkspaceId,
        /// The workspace that the message names.
        actual: WorkspaceId,
    },
    /// A version is larger than these methods, or the caller, allow.
    #[error("a file of {size} bytes is larger than {max}")]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The limit.
        max: u64,
    },
    /// A message asks for bytes that the old version does not have.
    #[error("{length} bytes at {offset} are not in a file of {size} bytes")]
    OutOfRange {
        /// Where they would begin.
        offset: u64,
        /// How many.
        length: u64,
        /// Size of the old version.
        size: u64,
    },
    /// A message names a block or a chunk that is not there.
    #[error("there is no {what} {index} among {count}")]
    NoSuch {
        /// What.
        what: &'static str,
        /// Its number.
        index: u64,
        /// How many there are.
        count: u64,
    },
    /// More or fewer bytes came than were announced.
    #[error("{actual} bytes of the {what} came where {expected} are due")]
    Length {
        /// What.
        what: &'static str,
        /// How many are due.
        expected: u64,
        /// How many came; it stops counting past `expected`.
        actual: u64,
    },
    /// The version that was put together is not the one that was sent, though strong sums were compared. Nothing of it
    /// may be kept.
    #[error("the new version is not what was sent")]
    Unverified,
    /// The client's delta is against another version than the one that is there.
    #[error("the delta is against another version")]
    WrongBase,
    /// The lists of chunks differ too much to be reconciled.
    #[error("{symbols} symbols do not tell two chunk lists apart")]
    TooDifferent {
        /// How many symbols were tried.
        symbols: u64,
    },
    /// What was cut or read of chunks is wrong.
    #[error("the chunks of the file are invalid")]
    Content {
        /// What is wrong.
        source: ContentError,
    },
}

impl From<ContentError> for DeltaError {
    fn from(source: ContentError) -> Self {
        Self::Content { source }
    }
}

impl From<DecodeError> for DeltaError {
    fn from(source: DecodeError) -> Self {
        Self::Message { source }
    }
}

impl DeltaError {
    /// Tells whether the same session may succeed when it is begun again: after a failure to read or write, and where
    /// the base has changed meanwhile.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Write { .. } | Self::WrongBase)
    }
}
