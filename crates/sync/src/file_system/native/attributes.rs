//! Sets permission bits and modification times of what is there already.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use model::{RelativePath, Timestamp};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::facts::{PERMISSION_BITS, change_error, is_unchanged, stat_from, timestamps};
use super::root::Place;
use super::{FileError, FileKind, Stat};

/// Bits of a directory's mode that stay as they are: they say how new files in it are owned here, which is no
/// concern of other devices.
const DIRECTORY_BITS_KEPT: u32 = 0o7000;

/// Sets the permission bits of an open file or directory, where they differ.
pub(super) fn set_mode(
    descriptor: impl AsFd,
    found: &rustix::fs::Stat,
    mode: u32,
) -> Result<(), Errno> {
    match wanted_mode(found, mode) {
        Some(mode) => rustix::fs::fchmod(descriptor, mode),
        None => Ok(()),
    }
}

fn wanted_mode(found: &rustix::fs::Stat, mode: u32) -> Option<Mode> {
    let kept = if stat_from(found).kind == FileKind::Directory { DIRECTORY_BITS_KEPT } else { 0 };
    let wanted = mode & PERMISSION_BITS | found.st_mode & kept;
    (wanted != found.st_mode & 0o7777).then(|| Mode::from_raw_mode(wanted))
}

/// Sets attributes if the file is as expected; see [`crate::file_system::FileSystem::set_attributes`].
///
/// A file that somebody writes to between the comparison and the setting of its time keeps what was written, and
/// is [`FileError::Changed`] if its length shows it.
pub(super) fn set(
    place: &Place<'_>,
    path: &RelativePath,
    expected: &Stat,
    mode: u32,
    modified: Option<Timestamp>,
) -> Result<rustix::fs::Stat, FileError> {
    let error = |errno| change_error(errno, path);
    let found = place.raw_stat().map_err(error)?;
    if !is_unchanged(expected, &stat_from(&found)) {
        return Err(FileError::Changed(path.clone()));
    }
    match expected.kind {
        FileKind::File | FileKind::Directory => {
            let handle = Handle::open(place).map_err(error)?;
            handle.set(path, expected, mode, modified)
        }
        FileKind::Symlink => {
            if let Some(modified) = modified {
                let times = timestamps(modified);
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::utimensat(&place.directory, place.name, &times, flags)
                    .map_err(error)?;
            }
            place.raw_stat().map_err(error)
        }
        FileKind::Other => Err(FileError::Changed(path.clone())),
    }
}

/// A file or directory whose identity is settled.
enum Handle {
    Open(OwnedFd),
    /// One that may not be read, such as a file of mode 000, can be changed through the name of the descriptor.
    Unreadable(OwnedFd),
}

impl Handle {
    fn open(place: &Place<'_>) -> Result<Self, Errno> {
        match place.open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY) {
            Err(Errno::ACCESS) => place.open(OFlags::PATH).map(Self::Unreadable),
            result => result.map(Self::Open),
        }
    }

    fn stat(&self) -> Result<rustix::fs::Stat, Errno> {
        let (Self::Open(descriptor) | Self::Unreadable(descriptor)) = self;
        rustix::fs::fstat(descriptor)
    }

    fn set(
        &self,
        path: &RelativePath,
        expected: &Stat,
        mode: u32,
        modified: Option<Timestamp>,
    ) -> Result<rustix::fs::Stat, FileError> {
        let error = |errno| change_error(errno, path);
        let found = self.stat().map_err(error)?;
        if !is_unchanged(expected, &stat_from(&found)) {
            return Err(FileError::Changed(path.clone()));
        }
        let is_file = expected.kind == FileKind::File;
        if let Some(modified) = modified.filter(|_| is_file) {
            self.set_time(modified).map_err(error)?;
        }
        // The mode comes last, since without the right to read no time could be set any more.
        match (self, wanted_mode(&found, mode)) {
            (_, None) => {}
            (Self::Open(descriptor), Some(mode)) => {
                rustix::fs::fchmod(descriptor, mode).map_err(error)?;
            }
            (Self::Unreadable(descriptor), Some(mode)) => {
                rustix::fs::chmodat(CWD, own_name(descriptor), mode, AtFlags::empty())
                    .map_err(error)?;
            }
        }
        let after = self.stat().map_err(error)?;
        if is_file && stat_from(&after).size != expected.size {
            return Err(FileError::Changed(path.clone()));
        }
        Ok(after)
    }

    fn set_time(&self, modified: Timestamp) -> Result<(), Errno> {
        let times = timestamps(modified);
        match self {
            Self::Open(descriptor) => rustix::fs::futimens(descriptor, &times),
            Self::Unreadable(descriptor) => {
                rustix::fs::utimensat(CWD, own_name(descriptor), &times, AtFlags::empty())
            }
        }
    }
}

/// The name under which the system shows a descriptor of this process. It leads to the file that is open, so it is
/// no path that anybody else could change.
fn own_name(descriptor: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}
