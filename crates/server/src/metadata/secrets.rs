//! Rows of what servers keep for themselves.

use super::Result;

/// Secrets of the server, which all servers on one database share. Whoever has a copy of the database has them.
pub trait SecretTables {
    /// Returns the secret of a name.
    fn secret(&self, name: &str) -> Result<Option<Vec<u8>>>;
    /// Keeps a secret, unless there is one of that name; returns the one that is kept.
    fn keep_secret(&mut self, name: &str, bytes: &[u8]) -> Result<Vec<u8>>;
}
