//! What PostgreSQL says when something goes wrong, in our words.

use tokio_postgres::error::SqlState;

use crate::metadata::MetadataError;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database, or the connection to it, says why.
    Said(tokio_postgres::Error),
    /// There was none in time.
    Silent,
}

impl Failure {
    /// Tells whether nothing more can be asked on this connection.
    pub(super) fn is_end_of_connection(&self) -> bool {
        match self {
            Self::Said(error) => match error.as_db_error() {
                Some(said) => matches!(said.severity(), "FATAL" | "PANIC"),
                None => !is_ours(error),
            },
            Self::Silent => true,
        }
    }
}

/// Tells whether a value could not be turned into one of the database or back; the connection is well.
fn is_ours(error: &tokio_postgres::Error) -> bool {
    let text = error.to_string();
    text.starts_with("error serializing parameter")
        || text.starts_with("error deserializing column")
}

/// Turns a failure into ours. Bound values never appear in it, so no secret can.
pub(super) fn failed(operation: &str, failure: &Failure) -> MetadataError {
    let error = match failure {
        Failure::Said(error) => error,
        Failure::Silent => {
            return MetadataError::Unreachable { detail: "it did not answer in time".to_owned() };
        }
    };
    let Some(said) = error.as_db_error() else {
        let detail = chain(error);
        return match is_ours(error) {
            true => MetadataError::Failed { operation: first_words(operation), detail },
            false => MetadataError::Unreachable { detail },
        };
    };
    let code = said.code();
    if code == &SqlState::DISK_FULL {
        return MetadataError::NoSpace;
    }
    if [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
    ]
    .contains(code)
    {
        return MetadataError::Collided;
    }
    if [SqlState::QUERY_CANCELED, SqlState::TOO_MANY_CONNECTIONS].contains(code) {
        return MetadataError::Busy;
    }
    let detail = said.message().to_owned();
    match code.code().get(..2) {
        Some("23") => {
            MetadataError::Taken { what: said.constraint().unwrap_or("what is unique").to_owned() }
        }
        // Connections, operators, and a database that may only be read now.
        Some("08" | "57" | "25") => MetadataError::Unreachable { detail },
        _ => MetadataError::Failed { operation: first_words(operation), detail },
    }
}

/// Returns what is said of a row that holds what it cannot hold.
pub(super) fn damaged(operation: &str, error: &tokio_postgres::Error) -> MetadataError {
    MetadataError::Damaged {
        what: format!("a row that '{}' reads", first_words(operation)),
        detail: chain(error),
    }
}

/// Returns what is said of a transaction that ended before its time.
pub(super) fn lost() -> MetadataError {
    MetadataError::Unreachable { detail: "the transaction was lost".to_owned() }
}

fn first_words(operation: &str) -> String {
    operation.split_whitespace().take(4).collect::<Vec<_>>().join(" ")
}

/// An error and what caused it; the outermost text says little.
fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
