//! The lock of a folder: one process at a time keeps it in sync.

use std::io::{Read, Seek, Write};
use std::path::Path;

use model::RelativePath;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::facts::file_error;
use super::identity::make_service_directory;
use super::root::Root;
use crate::file_system::{FileError, SERVICE_DIRECTORY};

const LOCK_NAME: &str = "lock";

/// Why a folder could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process keeps the folder in sync.
    #[error("another process{} keeps this folder in sync", holder_text(*holder))]
    Held {
        /// The number of the process, where it is known.
        holder: Option<u32>,
    },
    /// The lock could not be reached.
    #[error(transparent)]
    File(#[from] FileError),
}

fn holder_text(holder: Option<u32>) -> String {
    holder.map(|number| format!(" (number {number})")).unwrap_or_default()
}

/// The right to change a folder, held until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: std::fs::File,
}

impl FolderLock {
    /// Takes the lock of the folder at `root`, or says who has it. The service directory is made if need be.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn acquire(root: &Path) -> Result<Self, LockError> {
        let root = Root::open(root)?;
        let path = RelativePath::new(format!("{SERVICE_DIRECTORY}/{LOCK_NAME}").as_bytes())
            .unwrap_or_default();
        let error = |errno| file_error(errno, &path);
        make_service_directory(&root).map_err(error)?;
        let service =
            root.open_directory(SERVICE_DIRECTORY.as_bytes(), OFlags::PATH).map_err(error)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = rustix::fs::openat(&service, LOCK_NAME, flags, Mode::RUSR | Mode::WUSR)
            .map_err(error)?;
        let locked = rustix::fs::flock(&descriptor, FlockOperation::NonBlockingLockExclusive);
        let mut file = std::fs::File::from(descriptor);
        match locked {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(LockError::Held { holder: read_holder(&mut file) });
            }
            Err(errno) => return Err(error(errno).into()),
        }
        // The number is only for messages: the lock holds without it.
        let _ = write_holder(&mut file);
        Ok(Self { _file: file })
    }
}

fn read_holder(file: &mut std::fs::File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_holder(file: &mut std::fs::File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}
