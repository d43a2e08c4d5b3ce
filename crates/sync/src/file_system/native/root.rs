//! Finds places below the root, and moves files between them, without ever leaving it.
//!
//! *Goals*: a place is found by one system call, `openat2`, that refuses links and everything above the root. Where
//! the kernel has no `openat2`, each directory is opened on its own, without following links.
//! *Invariants*: descriptors of directories are found anew for each operation and never kept. A kept one would go on
//! leading to a directory that a user has moved, perhaps out of the folder, while its path leads elsewhere by now: to
//! verify it costs as much as to find it (0.7 µs). A directory that is moved between finding and use is no such case:
//! the result is as if the operation had come just before the move.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use model::RelativePath;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use super::facts::{file_error, stat_from};
use super::{FileError, Stat};
use crate::file_system::SERVICE_DIRECTORY;

/// From this length on a path goes one directory at a time, since the kernel takes none of 4096 bytes.
const PATH_LENGTH_AT_ONCE: usize = 4000;

const STAY_BELOW: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);

/// What the kernel can do; tests take abilities away.
#[derive(Debug, Clone, Copy)]
pub(super) struct Abilities {
    /// `openat2`.
    pub resolves_below: bool,
    /// `RENAME_EXCHANGE` and `RENAME_NOREPLACE`, which some file systems lack.
    pub renames_with_flags: bool,
    /// Hard links, which some file systems lack.
    pub links: bool,
}

/// The root of a folder.
#[derive(Debug)]
pub(super) struct Root {
    pub descriptor: OwnedFd,
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    abilities: Abilities,
}

/// A directory below the root, or the root.
pub(super) enum Directory<'a> {
    Root(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl AsFd for Directory<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(descriptor) => *descriptor,
            Self::Below(descriptor) => descriptor.as_fd(),
        }
    }
}

/// A name in a directory that was found.
pub(super) struct Place<'a> {
    pub directory: Directory<'a>,
    pub name: &'a [u8],
}

impl Place<'_> {
    /// Opens what is there. A link is never followed.
    pub(super) fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        open_name(&self.directory, self.name, flags)
    }

    pub(super) fn raw_stat(&self) -> Result<rustix::fs::Stat, Errno> {
        rustix::fs::statat(&self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(super) fn stat(&self, path: &RelativePath) -> Result<Option<Stat>, FileError> {
        match self.raw_stat() {
            Ok(stat) => Ok(Some(stat_from(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(file_error(errno, path)),
        }
    }
}

/// Opens one name in a directory, without following a link.
pub(super) fn open_name(
    directory: impl AsFd,
    name: &[u8],
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

/// Opens a directory again, for reading and syncing.
pub(super) fn reopen(directory: impl AsFd) -> Result<OwnedFd, Errno> {
    open_name(directory, b".", OFlags::RDONLY | OFlags::DIRECTORY)
}

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self, FileError> {
        let all = Abilities { resolves_below: true, renames_with_flags: true, links: true };
        let mut root = Self::open_with(path, all)?;
        let probe = rustix::fs::openat2(
            &root.descriptor,
            ".",
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            STAY_BELOW,
        );
        // An old kernel does not know the call, and some sandboxes forbid what they do not know.
        root.abilities.resolves_below = !matches!(probe, Err(Errno::NOSYS | Errno::PERM));
        Ok(root)
    }

    pub(super) fn open_with(path: &Path, abilities: Abilities) -> Result<Self, FileError> {
        let error = |errno| match errno {
            Errno::NOTDIR => FileError::Other {
                path: RelativePath::ROOT,
                reason: "it is not a directory".to_owned(),
            },
            errno => file_error(errno, &RelativePath::ROOT),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(error)?;
        let stat = rustix::fs::fstat(&descriptor).map_err(error)?;
        // Where the working directory is unknown, the path is taken as it is.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        Ok(Self { descriptor, path, device: stat.st_dev, inode: stat.st_ino, abilities })
    }

    /// Finds the directory that `path` lies in.
    pub(super) fn place<'a>(&'a self, path: &'a RelativePath) -> Result<Place<'a>, FileError> {
        if is_in_service_directory(path.as_bytes()) {
            return Err(FileError::NameRefused(path.clone()));
        }
        let (directory, name) = split_last(path.as_bytes());
        if name.is_empty() {
            return Err(FileError::Escapes(path.clone()));
        }
        let directory = self.directory(directory).map_err(|errno| match path.split_last() {
            Some((parent, _)) => file_error(errno, &parent),
            None => file_error(errno, path),
        })?;
        Ok(Place { directory, name })
    }

    /// Finds a directory, only to look from it; `path` has the names separated by `/`.
    pub(super) fn directory(&self, path: &[u8]) -> Result<Directory<'_>, Errno> {
        if path.is_empty() {
            return Ok(Directory::Root(self.descriptor.as_fd()));
        }
        self.open_directory(path, OFlags::PATH).map(Directory::Below)
    }

    /// Finds a directory below the root and opens it.
    pub(super) fn open_directory(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if self.abilities.resolves_below && path.len() < PATH_LENGTH_AT_ONCE {
            return rustix::io::retry_on_intr(|| {
                rustix::fs::openat2(&self.descriptor, path, flags, Mode::empty(), STAY_BELOW)
            });
        }
        let (above, last) = split_last(path);
        let mut directory: Option<OwnedFd> = None;
        for name in above.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            let from = directory.as_ref().map_or(self.descriptor.as_fd(), AsFd::as_fd);
            directory = Some(open_name(from, name, OFlags::PATH | OFlags::DIRECTORY)?);
        }
        let from = directory.as_ref().map_or(self.descriptor.as_fd(), AsFd::as_fd);
        rustix::fs::openat(from, last, flags, Mode::empty())
    }

    /// Finds a directory of the service directory.
    pub(super) fn service(&self, name: &str) -> Result<Directory<'_>, Errno> {
        let path = format!("{SERVICE_DIRECTORY}/{name}");
        self.open_directory(path.as_bytes(), OFlags::PATH).map(Directory::Below)
    }

    /// Swaps two files, or fails with `EINVAL` where the file system cannot.
    pub(super) fn exchange(
        &self,
        one: (impl AsFd, &[u8]),
        other: (impl AsFd, &[u8]),
    ) -> Result<(), Errno> {
        self.rename_with(one, other, RenameFlags::EXCHANGE)
    }

    fn rename_with(
        &self,
        from: (impl AsFd, &[u8]),
        to: (impl AsFd, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        if !self.abilities.renames_with_flags {
            return Err(Errno::INVAL);
        }
        match rustix::fs::renameat_with(from.0, from.1, to.0, to.1, flags) {
            Err(Errno::NOSYS | Errno::OPNOTSUPP) => Err(Errno::INVAL),
            result => result,
        }
    }

    /// Makes a second name for a file, or fails with `EPERM` where the file system cannot.
    pub(super) fn link(
        &self,
        from: (impl AsFd, &[u8]),
        to: (impl AsFd, &[u8]),
    ) -> Result<(), Errno> {
        if !self.abilities.links {
            return Err(Errno::PERM);
        }
        rustix::fs::linkat(from.0, from.1, to.0, to.1, AtFlags::empty())
    }

    /// Moves a file to a name that nobody holds.
    ///
    /// Where the file system has no such move, a second link is as good, since it never replaces either. Where it
    /// has no links either, and for directories, the name is looked at before: there a file that a user makes under
    /// the same name in the very same moment would be replaced.
    pub(super) fn move_without_replacing(
        &self,
        from_directory: impl AsFd,
        from: &[u8],
        to_directory: impl AsFd,
        to: &[u8],
    ) -> Result<(), Errno> {
        let (source, target) = (from_directory.as_fd(), to_directory.as_fd());
        match self.rename_with((source, from), (target, to), RenameFlags::NOREPLACE) {
            Err(Errno::INVAL) => {}
            result => return result,
        }
        match self.link((source, from), (target, to)) {
            Ok(()) => return rustix::fs::unlinkat(source, from, AtFlags::empty()),
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK) => {}
            Err(errno) => return Err(errno),
        }
        match rustix::fs::statat(target, to, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => rustix::fs::renameat(source, from, target, to),
            Err(errno) => Err(errno),
        }
    }
}

/// Splits a path at its last separator.
pub(super) fn split_last(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

pub(super) fn is_in_service_directory(path: &[u8]) -> bool {
    is_service_name(path.split(|&byte| byte == b'/').next().unwrap_or_default())
}

/// Tells whether a name in the root is, or on a file system that folds case could be, that of the service directory.
///
/// Such file systems also pass over characters that cannot be seen, and take a long s for an s.
pub(super) fn is_service_name(name: &[u8]) -> bool {
    if name.is_ascii() {
        return name.eq_ignore_ascii_case(SERVICE_DIRECTORY.as_bytes());
    }
    let is_visible = |character: &char| {
        !matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
    };
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let folded = name.chars().filter(is_visible).map(|character| match character {
        'ſ' => 's',
        other => other.to_ascii_lowercase(),
    });
    folded.eq(SERVICE_DIRECTORY.chars())
}
