//! The folder in which a server keeps everything: `metadata.sqlite`, `store/`, and a lock.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

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
        make(path)?;
        let path = path.canonicalize().map_err(|error| failed(path, &error))?;
        Ok(Self { path })
    }

    /// Returns the folder for what is being received, and makes it where it is missing.
    ///
    /// # Errors
    /// [`ServerError::DataFolder`].
    pub fn aside(&self) -> Result<PathBuf> {
        let path = self.path.join("aside");
        make(&path)?;
        Ok(path)
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
    pub fn lock(&self) -> Result<ServerLock> {
        self.lock_file("server.lock")
    }

    #[expect(clippy::disallowed_methods, reason = "the lock has no other home")]
    fn lock_file(&self, name: &str) -> Result<ServerLock> {
        let path = self.path.join(name);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| failed(&path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(ServerLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(ServerError::Locked { path: self.path.clone() }),
            Err(TryLockError::Error(error)) => Err(failed(&path, &error)),
        }
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells whether a database is here.
    pub(crate) fn has_database(&self) -> Result<bool> {
        let path = self.database_path();
        path.try_exists().map_err(|error| failed(&path, &error))
    }

    /// Returns where a new database is written before it is put in place; what was left there by another attempt is removed.
    pub(crate) fn new_database_path(&self) -> Result<PathBuf> {
        let folder = self.path.join("new");
        Self::empty(&folder)?;
        Ok(folder.join("metadata.sqlite"))
    }

    /// Puts the new database in its place, where there is none yet. It must be closed.
    #[expect(clippy::disallowed_methods, reason = "the folder of a server has no other home")]
    pub(crate) fn put_database_in_place(&self) -> Result<()> {
        let (folder, target) = (self.path.join("new"), self.database_path());
        let new = folder.join("metadata.sqlite");
        let put = || {
            File::open(&new)?.sync_all()?;
            std::fs::rename(&new, &target)?;
            std::fs::remove_dir_all(&folder)?;
            File::open(&self.path)?.sync_all()
        };
        put().map_err(|error| failed(&target, &error))
    }

    /// Takes a folder in this one for a command of an administrator.
    pub(crate) fn scratch(&self) -> Result<(PathBuf, ServerLock)> {
        let lock = self.lock_file("admin.lock")?;
        Ok((self.path.join("admin"), lock))
    }

    /// Makes a folder that is empty.
    #[expect(clippy::disallowed_methods, reason = "the folder of a server has no other home")]
    pub(crate) fn empty(path: &Path) -> Result<()> {
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => DirBuilder::new().recursive(true).create(path),
        }
        .map_err(|error| failed(path, &error))
    }

    /// Shows a file, piece by piece, each of `length` bytes but the last.
    #[expect(clippy::disallowed_methods, reason = "the folder of a server has no other home")]
    pub(crate) fn each_piece(
        path: &Path,
        length: usize,
        show: &mut dyn FnMut(Bytes) -> Result<()>,
    ) -> Result<()> {
        let fail = |error| failed(path, &error);
        let mut file = File::open(path).map_err(fail)?;
        loop {
            let mut piece = Vec::with_capacity(length);
            (&mut file).take(length as u64).read_to_end(&mut piece).map_err(fail)?;
            if piece.is_empty() {
                return Ok(());
            }
            show(piece.into())?;
        }
    }

    /// Adds to the end of a file.
    #[expect(clippy::disallowed_methods, reason = "the folder of a server has no other home")]
    pub(crate) fn append(path: &Path, bytes: &[u8]) -> Result<()> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(bytes)).map_err(|error| failed(path, &error))
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

/// Makes a folder that nobody else may enter.
fn make(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> ServerError {
    ServerError::DataFolder { path: path.to_owned(), reason: error.to_string() }
}
