//! How hard blocks are compared, and what follows when the result is wrong.

use model::WorkspaceId;

use super::error::DeltaError;
use super::message::{Answer, DeltaMessage, Opening};
use super::plain::{Plain, SessionId};
use super::sums::{Fingerprinter, Strength};

/// What the key of block sums is for.
const BLOCK_SUMS: &str = "syncline delta v1: block sums";

/// How blocks are searched and compared, in either direction (paper, section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tuning {
    /// WebRsync and WebR2sync: byte by byte from each match on, with strong fingerprints.
    Classic,
    /// WebRsync+ and WebR2sync+: the block behind a match first, with light fingerprints.
    Plus,
    /// What follows where the whole-file check of [`Self::Plus`] fails: its order, with strong fingerprints.
    Careful,
    /// No fingerprints, for tests of the check.
    #[cfg(test)]
    Blind,
}

impl Tuning {
    pub(super) fn opening(self, plain: Plain, session: SessionId) -> Opening {
        let (strength, locality) = match self {
            Self::Classic => (Strength::Strong, false),
            Self::Plus => (Strength::Light, true),
            Self::Careful => (Strength::Strong, true),
            #[cfg(test)]
            Self::Blind => (Strength::Blind, true),
        };
        Opening { workspace: plain.workspace(), session, strength, locality }
    }
}

/// What the client does after the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the new version is there.
    Done,
    /// Begin again in this way, in a new session.
    Again(Tuning),
}

impl Opening {
    pub(super) fn fingerprinter(&self) -> Fingerprinter {
        Fingerprinter::new(self.strength, self.session.derive(BLOCK_SUMS, self.workspace))
    }

    /// Checks that a session belongs to the workspace of the witness.
    pub(super) fn check_workspace(&self, plain: Plain) -> Result<(), DeltaError> {
        check_workspace(plain.workspace(), self.workspace)
    }

    /// Reads the answer to the new version.
    pub(super) fn take_answer(&self, message: &[u8]) -> Result<Next, DeltaError> {
        let message = DeltaMessage::decode(message)?;
        let DeltaMessage::Answer(session, answer) = message else {
            return Err(message.unexpected("answer"));
        };
        check_session(self.session, session)?;
        match answer {
            Answer::Verified => Ok(Next::Done),
            _ if self.strength != Strength::Strong => Ok(Next::Again(Tuning::Careful)),
            _ => Err(DeltaError::Unverified),
        }
    }
}

pub(super) fn check_workspace(
    expected: WorkspaceId,
    actual: WorkspaceId,
) -> Result<(), DeltaError> {
    if expected == actual { Ok(()) } else { Err(DeltaError::WrongWorkspace { expected, actual }) }
}

pub(super) fn check_session(expected: SessionId, actual: SessionId) -> Result<(), DeltaError> {
    if expected == actual { Ok(()) } else { Err(DeltaError::WrongSession) }
}
