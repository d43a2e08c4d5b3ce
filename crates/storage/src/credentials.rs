//! What opens a store and must not be told: passwords, keys, tokens.
//!
//! *Participants*: the caller, who keeps one file for each store, and the drivers, which ask for values by name.
//! *Goals*: no secret in an address, an error text, a log or a `Debug` form. *Non-goals*: keeping the file; it belongs
//! to the caller. *Invariant*: a file that others may read is refused, so a mistake shows at once.
//!
//! The file is TOML with one text for each name, for instance `user = "ada"`. The names are fixed ([`NAMES`]), so a
//! misspelt one is an error and not a login without a password. Which scheme wants which stands in [`mod@crate::open`].

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Result, StorageError};

/// Every name that a driver may ask for.
pub const NAMES: [&str; 19] = [
    USER,
    PASSWORD,
    PRIVATE_KEY,
    PRIVATE_KEY_FILE,
    PASSPHRASE,
    HOST_KEY,
    KNOWN_HOSTS_FILE,
    ACCESS_KEY,
    SECRET_KEY,
    SESSION_TOKEN,
    TOKEN,
    DOMAIN,
    CERTIFICATE_FILE,
    CLIENT_ID,
    CLIENT_SECRET,
    TOKEN_FILE,
    REFRESH_TOKEN,
    EXPIRES,
    SERVICE_ACCOUNT_FILE,
];

/// Name of the account at the store.
pub const USER: &str = "user";
/// Its password.
pub const PASSWORD: &str = "password";
/// A private key in the format of OpenSSH.
pub const PRIVATE_KEY: &str = "private_key";
/// A file with such a key.
pub const PRIVATE_KEY_FILE: &str = "private_key_file";
/// What the private key is encrypted with.
pub const PASSPHRASE: &str = "passphrase";
/// The public key of the server, `ssh-ed25519 AAAA...`; not a secret, but it decides whom the secrets are told.
pub const HOST_KEY: &str = "host_key";
/// A file of such keys, in the format of OpenSSH's `known_hosts`.
pub const KNOWN_HOSTS_FILE: &str = "known_hosts_file";
/// The public half of an access key.
pub const ACCESS_KEY: &str = "access_key";
/// The secret half.
pub const SECRET_KEY: &str = "secret_key";
/// What belongs to an access key that expires.
pub const SESSION_TOKEN: &str = "session_token";
/// A bearer token.
pub const TOKEN: &str = "token";
/// The domain of the account, for services that have them.
pub const DOMAIN: &str = "domain";
/// A file with a certificate authority (PEM) that is trusted for this store alone.
pub const CERTIFICATE_FILE: &str = "certificate_file";

/// Which program asks, as the user registered it with a service that wants people to sign in.
pub const CLIENT_ID: &str = "client_id";
/// What belongs to it, where the service gave one.
pub const CLIENT_SECRET: &str = "client_secret";
/// The file of a sign-in, which [`crate::sign_in`] keeps.
pub const TOKEN_FILE: &str = "token_file";
/// What a new token is had for; only in the file of a sign-in.
pub const REFRESH_TOKEN: &str = "refresh_token";
/// When the token ends, in seconds of Unix time; only in the file of a sign-in.
pub const EXPIRES: &str = "expires";
/// A file with the key of a service account of Google, in JSON.
pub const SERVICE_ACCOUNT_FILE: &str = "service_account_file";

/// Longest file that is read.
const FILE_SIZE_MAX: u64 = 64 << 10;

/// The named secret values of one store.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    values: BTreeMap<&'static str, String>,
}

impl Credentials {
    /// Returns credentials without any value, for a store that asks for none.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads the text of a credentials file.
    ///
    /// # Errors
    /// [`StorageError::InvalidCredentials`] says what is wrong without showing a value.
    pub fn from_toml(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            // The parser's own text quotes the line, and with it the secret.
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            invalid(format!("it is not TOML near line {line}"))
        })?;
        let mut credentials = Self::none();
        for (name, value) in table {
            let toml::Value::String(value) = value else {
                return Err(invalid(format!("'{name}' is not a text in quotes")));
            };
            credentials.set(&name, value)?;
        }
        Ok(credentials)
    }

    /// Reads a credentials file, which only its owner may read.
    ///
    /// # Errors
    /// [`StorageError::InvalidCredentials`] when it cannot be read, is open to others, or is wrong.
    pub fn read_file(path: &Path) -> Result<Self> {
        let shown = path.display();
        let metadata = std::fs::metadata(path)
            .map_err(|error| invalid(format!("the file {shown} cannot be read: {error}")))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(invalid(format!("others may read the file {shown}: chmod 600 {shown}")));
        }
        if metadata.len() > FILE_SIZE_MAX {
            return Err(invalid(format!("the file {shown} is too long")));
        }
        let text = std::fs::read_to_string(path)
            .map_err(|error| invalid(format!("the file {shown} cannot be read: {error}")))?;
        Self::from_toml(&text)
    }

    /// Returns the text that [`Self::from_toml`] reads back. It holds the secrets.
    pub fn to_toml(&self) -> String {
        let table: toml::Table = self
            .values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), toml::Value::String(value.clone())))
            .collect();
        table.to_string()
    }

    /// Sets a value.
    ///
    /// # Errors
    /// [`StorageError::InvalidCredentials`] when no driver knows the name, or the value is empty.
    pub fn set(&mut self, name: &str, value: impl Into<String>) -> Result<()> {
        let Some(known) = NAMES.iter().find(|known| **known == name) else {
            return Err(invalid(format!("'{name}' is not known; known are {}", NAMES.join(", "))));
        };
        let value = value.into();
        if value.is_empty() {
            return Err(invalid(format!("'{name}' is empty")));
        }
        self.values.insert(known, value);
        Ok(())
    }

    /// Adds a value to credentials that are being written down, as in `Credentials::none().with(USER, "ada")`.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Result<Self> {
        self.set(name, value)?;
        Ok(self)
    }

    /// Returns whether there is no value at all.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the names that have values.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.values.keys().copied()
    }

    /// Returns the value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Returns the value of a name that a store cannot do without.
    #[cfg_attr(
        not(any(test, feature = "network")),
        expect(dead_code, reason = "only stores in a network ask")
    )]
    pub(crate) fn required(&self, name: &str, scheme: &str) -> Result<&str> {
        self.get(name)
            .ok_or_else(|| invalid(format!("{scheme}: wants '{name}', which is not given")))
    }

    /// Refuses names that the driver of `scheme` does not use: they stand there by mistake.
    pub(crate) fn allow_only(&self, scheme: &str, used: &[&str]) -> Result<()> {
        match self.names().find(|name| !used.contains(name)) {
            None => Ok(()),
            Some(name) if used.is_empty() => {
                Err(invalid(format!("{scheme}: wants no credentials, but '{name}' is given")))
            }
            Some(name) => {
                let used = used.join(", ");
                Err(invalid(format!("{scheme}: does not use '{name}'; it uses {used}")))
            }
        }
    }
}

impl fmt::Debug for Credentials {
    /// Shows the names and never a value.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.names()).finish()
    }
}

pub(crate) fn invalid(detail: String) -> StorageError {
    StorageError::InvalidCredentials { detail }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make the files that the room only reads")]
mod tests {
    use super::*;

    const TEXT: &str = "user = \"ada\"\npassword = \"open \\\"sesame\\\"\"\n";

    #[test]
    fn a_file_is_read_and_written_back() {
        let credentials = Credentials::from_toml(TEXT).unwrap();
        assert_eq!(credentials.get(USER), Some("ada"));
        assert_eq!(credentials.get(PASSWORD), Some("open \"sesame\""));
        assert_eq!(credentials.get(TOKEN), None);
        assert_eq!(Credentials::from_toml(&credentials.to_toml()).unwrap(), credentials);
    }

    #[test]
    fn no_secret_is_shown_by_debug_or_by_an_error() {
        let credentials = Credentials::from_toml(TEXT).unwrap();
        assert_eq!(format!("{credentials:?}"), r#"{"password", "user"}"#);
        for text in [
            "password = \"sesame",
            "password = sesame",
            "pasword = \"sesame\"",
            "password = [\"sesame\"]",
            "password = \"a\"\npassword = \"sesame\"",
        ] {
            let error = Credentials::from_toml(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("sesame"), "{error:?}");
        }
    }

    #[test]
    fn what_a_driver_does_not_use_and_what_it_misses_is_named() {
        let credentials = Credentials::from_toml(TEXT).unwrap();
        credentials.allow_only("ftp", &[USER, PASSWORD]).unwrap();
        let error = credentials.allow_only("s3", &[ACCESS_KEY, USER]).unwrap_err();
        assert!(error.to_string().contains("'password'"), "{error}");
        assert!(credentials.required(TOKEN, "x").unwrap_err().to_string().contains("'token'"));
        assert!(credentials.allow_only("memory", &[]).is_err());
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.toml");
        std::fs::write(&path, TEXT).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Credentials::read_file(&path).unwrap_err().to_string().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(Credentials::read_file(&path).unwrap().get(USER), Some("ada"));
        assert!(Credentials::read_file(&folder.path().join("absent")).is_err());
    }
}
