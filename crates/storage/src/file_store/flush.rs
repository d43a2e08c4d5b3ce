//! The system calls that make data durable, behind a trait so that a test can let them fail.

use std::fmt;

use rustix::fd::BorrowedFd;
use rustix::io::{Errno, retry_on_intr};

/// Makes written data durable.
pub trait Flush: fmt::Debug + Send + Sync {
    /// Flushes the content of one file.
    ///
    /// # Errors
    /// What the system says; the content may then be lost, and asking again proves nothing.
    fn file(&self, file: BorrowedFd<'_>) -> Result<(), Errno>;

    /// Flushes the names in one folder.
    ///
    /// # Errors
    /// As [`Self::file`].
    fn folder(&self, folder: BorrowedFd<'_>) -> Result<(), Errno>;

    /// Starts and awaits the writing of all that is dirty on the file system of `folder`, in one go. Only makes
    /// the calls that follow cheap: its own success proves nothing (Linux before 5.8, FUSE).
    ///
    /// # Errors
    /// What the system says.
    fn file_system(&self, folder: BorrowedFd<'_>) -> Result<(), Errno>;
}

/// Flushes to the disk.
#[derive(Debug, Clone, Copy)]
pub struct DiskFlush;

impl Flush for DiskFlush {
    fn file(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        #[cfg(not(any(target_vendor = "apple")))]
        return retry_on_intr(|| rustix::fs::fdatasync(file));
        // On Apple systems fsync leaves the data in the disk's cache.
        #[cfg(target_vendor = "apple")]
        return retry_on_intr(|| rustix::fs::fcntl_fullfsync(file));
    }

    fn folder(&self, folder: BorrowedFd<'_>) -> Result<(), Errno> {
        match retry_on_intr(|| rustix::fs::fsync(folder)) {
            // Some network and FUSE file systems cannot flush a folder and have nothing to flush.
            Err(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => Ok(()),
            result => result,
        }
    }

    fn file_system(&self, folder: BorrowedFd<'_>) -> Result<(), Errno> {
        #[cfg(target_os = "linux")]
        return match retry_on_intr(|| rustix::fs::syncfs(folder)) {
            Err(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => Ok(()),
            result => result,
        };
        #[cfg(not(target_os = "linux"))]
        return {
            let _ = folder;
            Ok(())
        };
    }
}
