//! What can go wrong between two programs, and what one of them says to the other about it.

use serde::{Deserialize, Serialize};

use crate::names::OperationId;

/// Why a request did not get what it asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessagingError {
    /// A name of a service or topic has characters that a name must not have.
    #[error("'{name}' is not the name of a service or topic")]
    InvalidName {
        /// The text, cut where it was very long.
        name: String,
    },
    /// A message is larger than any transport takes.
    #[error("a message of {size} bytes is larger than {max}")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// Bytes that came from elsewhere are not what they should be.
    #[error("cannot read {what}: {reason}")]
    Undecodable {
        /// What they should be.
        what: &'static str,
        /// Why they are not.
        reason: String,
    },
    /// A value cannot be written in the encoding.
    #[error("cannot write {what}: {reason}")]
    Unencodable {
        /// What should be written.
        what: &'static str,
        /// Why it cannot.
        reason: String,
    },
    /// Nobody serves the service.
    #[error("nobody serves '{target}'")]
    NoReceiver {
        /// The service.
        target: String,
    },
    /// What waits for the service is at its limit.
    #[error("too much waits for '{target}'")]
    Full {
        /// The service.
        target: String,
    },
    /// The other side of the transport does not answer.
    #[error("cannot reach {place}: {reason}")]
    Unreachable {
        /// The broker or server.
        place: String,
        /// Why.
        reason: String,
    },
    /// The other side of the transport answers that it will not do this.
    #[error("{place} refuses: {reason}")]
    Refused {
        /// The broker or server.
        place: String,
        /// Why.
        reason: String,
    },
    /// The transport has no such thing.
    #[error("{transport} cannot {what}")]
    Unsupported {
        /// The transport.
        transport: String,
        /// What it cannot do.
        what: &'static str,
    },
    /// No answer came in the time of all attempts. Whether it was done is not known.
    #[error("no answer to {operation} from '{target}' in {attempts} attempts")]
    TimedOut {
        /// What was asked.
        operation: OperationId,
        /// Who was asked.
        target: String,
        /// How often.
        attempts: u32,
    },
    /// The other side answered that it did not do it.
    #[error("{0}")]
    Fault(Fault),
    /// The messenger was closed while this was under way.
    #[error("the messenger is closed")]
    Closed,
}

impl MessagingError {
    /// Says whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NoReceiver { .. }
            | Self::Full { .. }
            | Self::Unreachable { .. }
            | Self::TimedOut { .. } => true,
            Self::Fault(fault) => fault.kind.is_transient(),
            _ => false,
        }
    }

    pub(crate) fn undecodable(what: &'static str, reason: impl ToString) -> Self {
        Self::Undecodable { what, reason: reason.to_string() }
    }
}

/// What a receiver answers instead of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct Fault {
    /// What sort of fault.
    pub kind: FaultKind,
    /// For [`FaultKind::Service`], the service's own code; else empty.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

impl Fault {
    /// Makes a fault.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, code: String::new(), message: message.into() }
    }

    /// Makes a fault of the service itself: trying again does not help.
    pub fn service(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: FaultKind::Service, code: code.into(), message: message.into() }
    }

    /// Makes a fault that is over in a while.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Unavailable, message)
    }
}

/// The sorts of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The request came after its deadline and was not begun.
    Expired,
    /// The interface has no such method.
    UnknownMethod,
    /// The receiver speaks another version of the interface.
    UnsupportedVersion,
    /// The arguments cannot be read.
    InvalidRequest,
    /// The receiver has too much to do.
    Overloaded,
    /// The receiver cannot do it now.
    Unavailable,
    /// The receiver's code panicked.
    Panicked,
    /// The service says no; its code says why.
    Service,
}

impl FaultKind {
    /// Says whether the same request may succeed later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Overloaded | Self::Unavailable | Self::Panicked)
    }
}

impl std::fmt::Display for FaultKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Expired => "too late",
            Self::UnknownMethod => "unknown method",
            Self::UnsupportedVersion => "unsupported version",
            Self::InvalidRequest => "invalid request",
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::Panicked => "failed inside",
            Self::Service => "refused",
        })
    }
}
