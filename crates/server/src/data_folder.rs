//! The folder in which a server keeps everything: `metadata.sqlite`, `store/`, and a lock.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::{Result, ServerError};
use crate::metadata::sqlite::Sqlite;

/// The folder of a server; nobody but its user reads it.
#[derive(Debug, Clone)]
pub struct DataFolder {
    path: PathBuf,
}

/// Held while a server runs; the system lets go of it whatever happens to the process.
#[derive(Debug)]
pub struct ServerLock {
    _file: File,
}

impl DataFolder {
    /// Opens the folder and makes it where it is missing.
    ///
    /// # Errors
    /// [`ServerError::DataFolder`].
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| failed(path, &error);
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).map_err(failed)?;
        Ok(Self { path: path.canonicalize().map_err(failed)? })
    }

    /// Opens the folder where it holds a database.
    ///
    /// # Errors
    /// [`ServerError::DataFolder`].
    pub fn open_existing(path: &Path) -> Result<Self> {
        let folder = Self { path: path.to_owned() };
        match folder.database_path().try_exists() {
            Ok(true) => Self::open(path),
            Ok(false) => {
                let reason = "no server keeps its data here".to_owned();
                Err(ServerError::DataFolder { path: path.to_owned(), reason })
            }
            Err(error) => Err(failed(path, &error)),
        }
    }

    /// Takes the folder for one server.
    ///
    /// # Errors
    /// [`ServerError::Locked`] where another server has it.
    #[expect(clippy::disallowed_methods, reason = "the lock has no other home")]
    pub fn lock(&self) -> Result<ServerLock> {
        let path = self.path.join("server.lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| failed(&path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(ServerLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(ServerError::Locked { path: self.path.clone() }),
            Err(TryLockError::Error(error)) => Err(failed(&path, &error)),
        }
    }

    /// Returns the file of the database.
    pub fn database_path(&self) -> PathBuf {
        self.path.join("metadata.sqlite")
    }

    /// Opens the database.
    ///
    /// # Errors
    /// [`ServerError::Metadata`].
    pub fn open_database(&self) -> Result<Sqlite> {
        Ok(Sqlite::open(&self.database_path())?)
    }

    /// Returns the URL of the store that a server has by default.
    pub fn default_store(&self) -> String {
        format!("file:{}", self.path.join("store").display())
    }
}

fn failed(path: &Path, error: &std::io::Error) -> ServerError {
    ServerError::DataFolder { path: path.to_owned(), reason: error.to_string() }
}
