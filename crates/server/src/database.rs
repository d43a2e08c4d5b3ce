//! Where a server's metadata rest: in a file of its data folder, or in a database that several servers share.

use std::fmt;

use crate::data_folder::DataFolder;
use crate::error::{Result, ServerError};
#[cfg(feature = "postgres")]
use crate::loopback::is_loopback;
use crate::metadata::Metadata;
#[cfg(feature = "postgres")]
use crate::metadata::postgres::{self, Postgres};
use crate::metadata::sqlite::Sqlite;

/// Where metadata rest.
#[derive(Clone)]
pub enum Database {
    /// SQLite in the data folder, for one server.
    Embedded,
    /// PostgreSQL, for any number of servers.
    #[cfg(feature = "postgres")]
    Postgres(Box<postgres::Config>),
}

impl fmt::Debug for Database {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Embedded => "Embedded",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "Postgres(..)",
        })
    }
}

impl Database {
    /// Reads an address, `postgres://USER@HOST:PORT/NAME`, and takes the password that belongs to it.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] for what is none, for one with a password in it, and for one in a network that does not say whether
    /// it wants TLS: `?sslmode=verify-full`, or `disable` to do without. `require` is the same as `verify-full`.
    pub fn from_url(url: &str, password: Option<&str>) -> Result<Self> {
        match url.split_once("://") {
            Some(("postgres" | "postgresql", _)) => Self::postgres(url, password),
            _ => Err(invalid("it begins with postgres://")),
        }
    }

    #[cfg(feature = "postgres")]
    fn postgres(url: &str, password: Option<&str>) -> Result<Self> {
        use postgres::{Host, SslMode};

        // Whoever is spoken to is verified in any case.
        let url = url.replace("sslmode=verify-full", "sslmode=require");
        let mut config: postgres::Config = url.parse().map_err(|error| {
            // What the parser says may repeat what it has read, and that may be a secret.
            tracing::debug!(%error, "the address of a database cannot be read");
            invalid("it has the form postgres://USER@HOST:PORT/NAME")
        })?;
        if config.get_password().is_some() {
            return Err(invalid("a password in it could be read by everybody on this computer"));
        }
        let is_here = |host: &Host| match host {
            Host::Tcp(name) => is_loopback(name),
            #[cfg(unix)]
            Host::Unix(_) => true,
        };
        let is_local = config.get_hosts().iter().all(is_here) && config.get_hostaddrs().is_empty();
        match config.get_ssl_mode() {
            SslMode::Disable | SslMode::Require => {}
            SslMode::Prefer if is_local => {
                config.ssl_mode(SslMode::Disable);
            }
            _ => {
                return Err(invalid(
                    "it lies in a network; ?sslmode=verify-full at its end wants TLS, ?sslmode=disable does without",
                ));
            }
        }
        if let Some(password) = password {
            config.password(password);
        }
        Ok(Self::Postgres(Box::new(config)))
    }

    #[cfg(not(feature = "postgres"))]
    fn postgres(_url: &str, _password: Option<&str>) -> Result<Self> {
        Err(invalid("this program was built without PostgreSQL"))
    }

    /// Opens the database to write to, and creates or upgrades its tables. It must be called where blocking is allowed.
    ///
    /// # Errors
    /// [`ServerError::Metadata`].
    pub fn open(&self, folder: &DataFolder) -> Result<Box<dyn Metadata>> {
        Ok(match self {
            Self::Embedded => Box::new(folder.open_database()?),
            #[cfg(feature = "postgres")]
            Self::Postgres(config) => Box::new(Postgres::open(config)?),
        })
    }

    /// Opens the database, which was opened before by [`Self::open`], to read from it.
    pub(crate) fn open_reader(&self, folder: &DataFolder) -> Result<Box<dyn Metadata>> {
        Ok(match self {
            Self::Embedded => Box::new(Sqlite::open_reader(&folder.database_path())?),
            #[cfg(feature = "postgres")]
            Self::Postgres(config) => Box::new(Postgres::open_reader(config)?),
        })
    }
}

fn invalid(reason: &str) -> ServerError {
    ServerError::Invalid { what: "the address of the database", reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_secrets_and_without_a_network_are_taken() {
        for url in [
            "postgres://syncline@127.0.0.1:5432/syncline",
            "postgresql://syncline@localhost/syncline",
            "postgres:///syncline?host=/run/postgresql&user=syncline",
            "postgres://syncline@db.example.org/syncline?sslmode=disable",
            "postgres://syncline@db.example.org/syncline?sslmode=require",
            "postgres://syncline@db.example.org/syncline?sslmode=verify-full",
        ] {
            let database = Database::from_url(url, Some("a secret")).unwrap();
            assert!(!format!("{database:?}").contains("secret"));
        }
    }

    #[test]
    fn others_are_refused_with_the_reason() {
        for (url, reason) in [
            ("mysql://a@localhost/b", "postgres://"),
            ("sqlite.db", "postgres://"),
            ("postgres://a@localhost:many/b", "HOST:PORT"),
            ("postgres://a:secret@localhost/b", "password"),
            ("postgres://a@db.example.org/b", "sslmode=disable"),
            ("postgres://a@db.example.org/b?sslmode=prefer", "sslmode=verify-full"),
            ("postgres://a@127.0.0.1/b?sslmode=verify-ca", "HOST:PORT"),
            ("postgres://a@127.0.0.1,db.example.org/b", "sslmode=verify-full"),
        ] {
            let refused = Database::from_url(url, None).unwrap_err().to_string();
            assert!(refused.contains(reason) && !refused.contains("secret"), "{url}: {refused}");
        }
    }
}
