//! Reading and writing through descriptors, shared by the file store and the cache.

use std::ops::Range;

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

/// Only the owner reads and writes what is stored: nobody else need know it.
pub(crate) const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// As [`FILE_MODE`], for folders.
pub(crate) const FOLDER_MODE: Mode = Mode::RWXU;

/// Flags that open a folder.
pub(crate) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Flags that open a file to read; never blocks on a pipe, never follows a link that lies in place of a file.
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);
/// Flags that create a file that must not exist.
pub(crate) const CREATE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW);

/// Opens `path` below `folder`.
pub(crate) fn open_at(folder: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(folder, path, flags, FILE_MODE))
}

/// Returns the size in the status of a regular file, or `None` when it is that of something else.
pub(crate) fn size_in(status: &Stat) -> Option<u64> {
    let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    is_file.then(|| u64::try_from(status.st_size).unwrap_or(0))
}

/// Reads the bytes of `range`; fewer when the file ends earlier.
pub(crate) fn read_range(file: BorrowedFd<'_>, range: Range<u64>) -> Result<Bytes, Errno> {
    let length = usize::try_from(range.end.saturating_sub(range.start)).map_err(|_| Errno::FBIG)?;
    let mut bytes: Vec<u8> = Vec::with_capacity(length);
    while bytes.len() < length {
        let offset = range.start + bytes.len() as u64;
        // `with_capacity` may reserve more than asked, so the loop can read past the range; cut below.
        match retry_on_intr(|| rustix::io::pread(file, spare_capacity(&mut bytes), offset))? {
            0 => break,
            _ => continue,
        }
    }
    bytes.truncate(length);
    Ok(bytes.into())
}

/// Writes all of `bytes`.
pub(crate) fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match retry_on_intr(|| rustix::io::write(file, bytes))? {
            0 => return Err(Errno::IO),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}

/// Returns names and types in `folder`; names that are not UTF-8 are nobody's of ours and are left out.
pub(crate) fn read_folder(folder: BorrowedFd<'_>) -> Result<Vec<(String, FileType)>, Errno> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if name == "." || name == ".." {
            continue;
        }
        let file_type = match entry.file_type() {
            FileType::Unknown => match stat_at(folder, name) {
                Ok(status) => FileType::from_raw_mode(status.st_mode),
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            },
            known => known,
        };
        entries.push((name.to_owned(), file_type));
    }
    Ok(entries)
}

/// Returns the status of `path` below `folder`, of a link itself when it is one.
pub(crate) fn stat_at(folder: BorrowedFd<'_>, path: &str) -> Result<Stat, Errno> {
    retry_on_intr(|| rustix::fs::statat(folder, path, AtFlags::SYMLINK_NOFOLLOW))
}

/// Removes the file `path` below `folder`; succeeds when there is none.
pub(crate) fn remove_file(folder: impl AsFd, path: &str) -> Result<(), Errno> {
    match rustix::fs::unlinkat(folder, path, AtFlags::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}
