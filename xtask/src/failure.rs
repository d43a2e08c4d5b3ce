//! The one error of automation: a text for the person who typed the command.

use std::fmt;

/// Why a task stopped, in words, with the circumstances in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    message: String,
}

/// The result of everything in automation that can fail.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Makes a failure out of its text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<std::io::Error> for Failure {
    fn from(source: std::io::Error) -> Self {
        Self::new(source.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(source: serde_json::Error) -> Self {
        Self::new(source.to_string())
    }
}

/// Stops with a text.
pub fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Failure::new(message))
}

/// Adds the circumstances to an error on its way up.
pub trait Context<T> {
    /// Puts `words` and a colon in front of the error's text.
    fn context(self, words: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Context<T> for std::result::Result<T, E> {
    fn context(self, words: impl fmt::Display) -> Result<T> {
        self.map_err(|source| Failure::new(format!("{words}: {source}")))
    }
}
