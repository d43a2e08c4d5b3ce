//! What the operating system says, in the words of this room.

use model::{RelativePath, Timestamp};
use rustix::fs::{FileType, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::{FileError, FileKind, Stat};

/// The bits of a mode that this room sees and sets.
pub(super) const PERMISSION_BITS: u32 = 0o777;

/// Reads a stat of the operating system.
#[expect(clippy::unnecessary_cast, reason = "the widths differ between processors")]
pub(super) fn stat_from(stat: &rustix::fs::Stat) -> Stat {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => FileKind::Directory,
        FileType::RegularFile => FileKind::File,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    };
    Stat {
        kind,
        size: if kind == FileKind::File { stat.st_size as u64 } else { 0 },
        mode: if kind == FileKind::Symlink { 0 } else { stat.st_mode & PERMISSION_BITS },
        modified: Timestamp {
            seconds: stat.st_mtime as i64,
            nanoseconds: stat.st_mtime_nsec as u32,
        },
        changed: Timestamp {
            seconds: stat.st_ctime as i64,
            nanoseconds: stat.st_ctime_nsec as u32,
        },
        inode: stat.st_ino as u64,
    }
}

/// Tells whether nothing has touched a file since it was `expected`.
///
/// The times of a directory change with every entry, so of directories only the mode and the identity count.
pub(super) fn is_unchanged(expected: &Stat, found: &Stat) -> bool {
    if expected.kind == FileKind::Directory {
        is_same_matter(expected, found)
    } else {
        expected == found
    }
}

/// Tells the same of a file that was renamed meanwhile, which changes its change time.
pub(super) fn is_same_matter(expected: &Stat, found: &Stat) -> bool {
    if expected.kind == FileKind::Directory {
        (expected.kind, expected.inode, expected.mode) == (found.kind, found.inode, found.mode)
    } else {
        *expected == Stat { changed: expected.changed, ..*found }
    }
}

/// The times to set where the access time stays as it is.
pub(super) fn timestamps(modified: Timestamp) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: modified.seconds,
            tv_nsec: modified.nanoseconds.min(999_999_999).into(),
        },
    }
}

/// Says what an error of the operating system means for a path.
pub(super) fn file_error(errno: Errno, path: &RelativePath) -> FileError {
    let path = path.clone();
    match errno {
        Errno::NOENT => FileError::NotFound(path),
        Errno::EXIST => FileError::AlreadyExists(path),
        Errno::NOTDIR | Errno::LOOP | Errno::XDEV => FileError::Escapes(path),
        Errno::NOSPC | Errno::DQUOT => FileError::NoSpace(path),
        Errno::ACCESS | Errno::PERM => FileError::PermissionDenied(path),
        Errno::ROFS => FileError::ReadOnly(path),
        Errno::NAMETOOLONG | Errno::ILSEQ | Errno::INVAL => FileError::NameRefused(path),
        Errno::NOTEMPTY => FileError::NotEmpty(path),
        Errno::ISDIR => FileError::Changed(path),
        errno => FileError::Other { path, reason: std::io::Error::from(errno).to_string() },
    }
}

/// The same for a move, where another file system is no attempt to escape.
pub(super) fn move_error(errno: Errno, path: &RelativePath) -> FileError {
    match errno {
        Errno::XDEV => FileError::Other {
            path: path.clone(),
            reason:
                "it lies on another file system than the rest of the folder, and files cannot be \
                     moved there in one step"
                    .to_owned(),
        },
        errno => file_error(errno, path),
    }
}

/// The same for a file that was there a moment ago.
pub(super) fn change_error(errno: Errno, path: &RelativePath) -> FileError {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP => FileError::Changed(path.clone()),
        errno => move_error(errno, path),
    }
}
