//! Lists directories: names and stats relative to the directory, without a path for each file.

use std::os::fd::{AsFd, OwnedFd};

use model::RelativePath;
use rustix::fs::{AtFlags, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use super::facts::{file_error, stat_from};
use super::root::{Root, is_in_service_directory, is_service_name, reopen};
use super::{DirectoryEntry, FileError};

/// How much the kernel is asked for at once: some 500 to 1000 names.
const BUFFER_SIZE: usize = 32 * 1024;

/// How often a directory is read again that changes while it is read.
const ATTEMPTS_MAX: u32 = 4;

pub(super) fn list(root: &Root, path: &RelativePath) -> Result<Vec<DirectoryEntry>, FileError> {
    let error = |errno| file_error(errno, path);
    if is_in_service_directory(path.as_bytes()) {
        return Err(FileError::NameRefused(path.clone()));
    }
    let descriptor: OwnedFd = if path.is_root() {
        reopen(&root.descriptor)
    } else {
        root.open_directory(path.as_bytes(), OFlags::RDONLY)
    }
    .map_err(error)?;
    let mut entries = settled_entries(&descriptor).map_err(error)?;
    if path.is_root() {
        entries.retain(|entry| !is_service_name(&entry.name));
    }
    Ok(entries)
}

/// Reads a directory until nothing was renamed in it meanwhile: a file whose name changes while a directory is read
/// may else be missing under both names. In a directory that never rests, the last reading counts.
fn settled_entries(directory: &OwnedFd) -> Result<Vec<DirectoryEntry>, Errno> {
    let times = || rustix::fs::fstat(directory).map(|stat| stat_from(&stat).modified);
    let mut before = times()?;
    for _ in 1..ATTEMPTS_MAX {
        let entries = entries(directory)?;
        let after = times()?;
        if before == after {
            return Ok(entries);
        }
        before = after;
        rustix::fs::seek(directory, SeekFrom::Start(0))?;
    }
    entries(directory)
}

/// Reads an open directory once, from where its descriptor stands.
pub(super) fn entries(directory: impl AsFd) -> Result<Vec<DirectoryEntry>, Errno> {
    let directory = directory.as_fd();
    let mut buffer = Vec::<u8>::with_capacity(BUFFER_SIZE);
    let mut reader = RawDir::new(directory, buffer.spare_capacity_mut());
    let mut entries = Vec::new();
    while let Some(entry) = reader.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => entries
                .push(DirectoryEntry { name: name.to_bytes().to_vec(), stat: stat_from(&stat) }),
            // It was removed since its name was read.
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(entries)
}
