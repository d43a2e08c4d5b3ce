//! The folder of a store: its format, its descriptor, and what its errors mean.

use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

use super::{Flush, Opening};
use crate::error::{Result, StorageError};
use crate::files;

/// Name of the file that says that a folder holds a store, and in which format.
pub(super) const FORMAT_FILE: &str = ".format";
/// Content of [`FORMAT_FILE`].
pub(super) const FORMAT: &str = "syncline file store 1\n";

/// The root folder of a store.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    folder: OwnedFd,
    /// Some FUSE file systems say 0 links of everything.
    counts_links: bool,
}

impl Root {
    pub(super) fn open(path: &Path, opening: Opening, flush: &dyn Flush) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| failed(path, "find", error.into()))?;
        if opening == Opening::CreateIfMissing {
            create_folders(&path, flush).map_err(|error| failure(&path, "create", "", error))?;
        }
        let folder = retry_open(&path).map_err(|error| match error {
            Errno::NOENT | Errno::NOTDIR => {
                no_store(&path, "the folder does not exist (is the disk mounted?)")
            }
            error => failure(&path, "open", "", error),
        })?;
        let status =
            rustix::fs::fstat(&folder).map_err(|error| failure(&path, "look at", "", error))?;
        let root = Self { path, folder, counts_links: status.st_nlink > 0 };
        if !root.has_format()? && opening == Opening::Existing {
            let detail = "the folder holds no store (is the disk mounted?)";
            return Err(no_store(&root.path, detail));
        }
        Ok(root)
    }

    pub(super) fn describe(&self) -> String {
        describe(&self.path)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Fails when the folder was deleted: then nothing below it says anything about the store.
    pub(super) fn check_present(&self) -> Result<()> {
        match rustix::fs::fstat(&self.folder) {
            Ok(status) if self.counts_links && status.st_nlink == 0 => {
                Err(no_store(&self.path, "its folder was deleted"))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(self.failure("look at", "", error)),
        }
    }

    /// Returns whether the format file is there, and fails when it names an unknown format.
    pub(super) fn has_format(&self) -> Result<bool> {
        let file = match files::open_at(self.fd(), FORMAT_FILE, files::READ) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(self.failure("open", FORMAT_FILE, error)),
        };
        let found = files::read_range(file.as_fd(), 0..64)
            .map_err(|error| self.failure("read", FORMAT_FILE, error))?;
        if found != FORMAT.as_bytes() {
            let found = String::from_utf8_lossy(&found).trim().escape_debug().to_string();
            return Err(StorageError::UnknownFormat { store: self.describe(), found });
        }
        Ok(true)
    }

    /// Says what a system error in this store means.
    pub(super) fn failure(&self, verb: &str, what: &str, error: Errno) -> StorageError {
        failure(&self.path, verb, what, error)
    }
}

fn describe(path: &Path) -> String {
    format!("file store {}", path.display())
}

fn no_store(path: &Path, detail: &str) -> StorageError {
    StorageError::NoStore { store: describe(path), detail: detail.to_owned() }
}

fn failed(
    path: &Path,
    operation: &str,
    error: Box<dyn std::error::Error + Send + Sync>,
) -> StorageError {
    StorageError::Failed { store: describe(path), operation: operation.to_owned(), source: error }
}

fn failure(path: &Path, verb: &str, what: &str, error: Errno) -> StorageError {
    let store = describe(path);
    let operation = if what.is_empty() { verb.to_owned() } else { format!("{verb} {what}") };
    let detail = format!("cannot {operation}: {error}");
    match error {
        Errno::NOSPC | Errno::DQUOT => StorageError::NoSpace { store },
        Errno::ROFS => StorageError::ReadOnly { store },
        Errno::ACCESS | Errno::PERM => StorageError::PermissionDenied { store, detail },
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => {
            StorageError::Busy { store, detail }
        }
        // A disk or a mount that went away.
        Errno::STALE
        | Errno::NODEV
        | Errno::NXIO
        | Errno::NOTCONN
        | Errno::TIMEDOUT
        | Errno::HOSTDOWN
        | Errno::HOSTUNREACH
        | Errno::SHUTDOWN => StorageError::NotReachable { store, detail },
        error => StorageError::Failed { store, operation, source: Box::new(error) },
    }
}

fn retry_open(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::io::retry_on_intr(|| rustix::fs::open(path, files::FOLDER, files::FILE_MODE))
}

/// Creates the folder and those above it, and flushes the names of the new ones.
fn create_folders(path: &Path, flush: &dyn Flush) -> Result<(), Errno> {
    match rustix::fs::mkdir(path, files::FOLDER_MODE) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(()),
        Err(Errno::NOENT) => {
            create_folders(path.parent().ok_or(Errno::NOENT)?, flush)?;
            match rustix::fs::mkdir(path, files::FOLDER_MODE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        // On a read-only disk an existing folder may answer so.
        Err(Errno::ROFS | Errno::ACCESS | Errno::PERM) if path.is_dir() => return Ok(()),
        Err(error) => return Err(error),
    }
    match path.parent() {
        // A folder above that may be entered but not listed cannot be flushed; the new folder can still be used.
        Some(parent) => match retry_open(parent) {
            Ok(parent) => flush.folder(parent.as_fd()),
            Err(Errno::ACCESS) => Ok(()),
            Err(error) => Err(error),
        },
        None => Ok(()),
    }
}
