//! Moves what was written aside to its place, so that no edit in between is lost.
//!
//! *Participants*: this call; any program that writes to the place, or renames something over it, at any moment.
//! *Goals*: a reader of the place sees the old file or the new one, whole; what is displaced was expected.
//! *Non-goals*: a program that holds the old file open, and writes to it after it was compared and removed, writes
//! into the void, as it would with every program that saves by rename.
//!
//! To look and then to rename would leave a gap. So the two files are *exchanged*, and what was displaced is looked at
//! where nobody else finds it: if it is not what was expected, they are exchanged back. If a user meanwhile changed
//! what had been put there, that newer edit stays, and the older one goes to the trash, below the label `displaced`.
//! During the exchange the file aside has a name of its own, so that after a crash nothing unseen is thrown away.
//!
//! Whoever *replaces* wants what was displaced kept: then it goes to the trash from where it was looked at, when the new
//! file is in its place already.
//!
//! File systems without an exchange (NFS, exFAT, many over FUSE) get less: a second link keeps the old file while the
//! new one is renamed over it, and a file saved by rename in that very moment is lost. Where there are no links
//! either, the old file is moved away before the new one comes, and for that moment there is none.

use std::os::fd::OwnedFd;

use model::RelativePath;
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::facts::{change_error, file_error, is_same_matter, is_unchanged, move_error, stat_from};
use super::root::{Directory, Place, Root, open_name};
use super::staged::{STAGE_DIRECTORY, exchange_name, staged_name, staged_path};
use super::{FileError, FileKind, StageToken, Stat, trash};

/// The label in the trash for an edit that a newer edit displaced during an exchange.
const DISPLACED_LABEL: &str = "displaced";

/// Installs; see [`crate::file_system::FileSystem::install`].
pub(super) fn install(
    root: &Root,
    token: StageToken,
    path: &RelativePath,
    expected: Option<&Stat>,
) -> Result<Stat, FileError> {
    let exchange = Exchange::new(root, token, path)?;
    match expected {
        None => exchange.create()?,
        Some(expected) => exchange.replace(expected)?,
    }
    Ok(exchange.installed())
}

/// Replaces; see [`crate::file_system::FileSystem::replace`].
pub(super) fn replace(
    root: &Root,
    token: StageToken,
    path: &RelativePath,
    expected: &Stat,
    label: &str,
) -> Result<Stat, FileError> {
    let exchange = Exchange { label: Some(label), ..Exchange::new(root, token, path)? };
    exchange.replace(expected)?;
    Ok(exchange.installed())
}

struct Exchange<'a> {
    root: &'a Root,
    /// Keeps to the staged file, whatever name it has.
    handle: OwnedFd,
    aside: Directory<'a>,
    name: String,
    /// The name of the staged file from the start of the exchange, and of what it displaces.
    marked: String,
    staged: Stat,
    place: Place<'a>,
    path: &'a RelativePath,
    /// Below which folder of the trash what is displaced is kept, if it is.
    label: Option<&'a str>,
}

impl<'a> Exchange<'a> {
    fn new(root: &'a Root, token: StageToken, path: &'a RelativePath) -> Result<Self, FileError> {
        let place = root.place(path)?;
        let error = |errno| file_error(errno, &staged_path(token));
        let aside = root.service(STAGE_DIRECTORY).map_err(error)?;
        let name = staged_name(token);
        let handle = open_name(&aside, name.as_bytes(), OFlags::PATH).map_err(error)?;
        let staged = stat_from(&rustix::fs::fstat(&handle).map_err(error)?);
        let marked = exchange_name(token);
        Ok(Self { root, handle, aside, name, marked, staged, place, path, label: None })
    }

    /// Describes what was installed, and never an edit that came right after it: that would pass for synced. Then
    /// the change time is the one from before the move, which no scan will find.
    fn installed(&self) -> Stat {
        match rustix::fs::fstat(&self.handle).map(|stat| stat_from(&stat)) {
            Ok(after) if is_same_matter(&self.staged, &after) => after,
            _ => self.staged,
        }
    }

    fn create(&self) -> Result<(), FileError> {
        self.root
            .move_without_replacing(
                &self.aside,
                self.name.as_bytes(),
                &self.place.directory,
                self.place.name,
            )
            .map_err(|errno| move_error(errno, self.path))
    }

    fn replace(&self, expected: &Stat) -> Result<(), FileError> {
        self.check(expected)?;
        self.mark()?;
        match self.swap() {
            Ok(()) => self.settle(expected),
            Err(Errno::INVAL) => self.replace_by_link(expected),
            Err(errno) => {
                self.unmark()?;
                Err(change_error(errno, self.path))
            }
        }
    }

    fn check(&self, expected: &Stat) -> Result<(), FileError> {
        match self.place.stat(self.path)? {
            Some(found) if is_unchanged(expected, &found) => Ok(()),
            _ => Err(self.changed()),
        }
    }

    /// Does away with what was displaced if it was expected, and puts it back otherwise.
    fn settle(&self, expected: &Stat) -> Result<(), FileError> {
        let displaced = self.stat_marked()?;
        if !is_same_matter(expected, &displaced) {
            self.put_back()?;
            return Err(self.changed());
        }
        match self.release(expected.kind) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.put_back()?;
                Err(error)
            }
        }
    }

    /// Does away with what was displaced: into the trash, if it is to be kept.
    fn release(&self, kind: FileKind) -> Result<(), FileError> {
        match self.label {
            Some(label) if kind != FileKind::Directory => self.keep_marked(label),
            _ => self.remove_marked(kind).map_err(|errno| self.other(errno)),
        }
    }

    /// Undoes an exchange.
    fn put_back(&self) -> Result<(), FileError> {
        match self.swap() {
            Ok(()) => {}
            // The user removed what had been put there; what is aside was theirs before.
            Err(Errno::NOENT) => return self.put_back_if_free(),
            Err(_) => return self.keep_marked(DISPLACED_LABEL),
        }
        if is_same_matter(&self.staged, &self.stat_marked()?) {
            return self.unmark();
        }
        // What came back is not ours: a user has saved over it, or written into it, since. That edit is the newer
        // one and belongs there.
        match self.swap() {
            Err(Errno::NOENT) => self.put_back_if_free(),
            _ => self.keep_marked(DISPLACED_LABEL),
        }
    }

    /// Gives what was displaced its place again, or keeps it in the trash if the place is taken by now.
    fn put_back_if_free(&self) -> Result<(), FileError> {
        let (marked, place) = (self.marked.as_bytes(), &self.place);
        let back =
            self.root.move_without_replacing(&self.aside, marked, &place.directory, place.name);
        back.or_else(|_| self.keep_marked(DISPLACED_LABEL))
    }

    /// Replaces where the file system cannot exchange; see the module.
    fn replace_by_link(&self, expected: &Stat) -> Result<(), FileError> {
        let (place, aside) = (&self.place, &self.aside);
        self.unmark()?;
        let displaced = (aside, self.marked.as_bytes());
        match self.root.link((&place.directory, place.name), displaced) {
            Ok(()) => {}
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK) => {
                return self.replace_by_moves(expected);
            }
            Err(errno) => return Err(change_error(errno, self.path)),
        }
        let drop_link = || {
            rustix::fs::unlinkat(aside, &self.marked, AtFlags::empty())
                .map_err(|errno| file_error(errno, self.path))
        };
        if !is_same_matter(expected, &self.stat_marked()?) {
            drop_link()?;
            return Err(self.changed());
        }
        if let Err(errno) = rustix::fs::renameat(aside, &self.name, &place.directory, place.name) {
            drop_link()?;
            return Err(change_error(errno, self.path));
        }
        let error = match is_same_matter(expected, &self.stat_marked()?) {
            true => match self.release(expected.kind) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            },
            false => self.changed(),
        };
        // It was written to between the two looks, or cannot be kept: what had been put there makes room for it again.
        let ours = (&place.directory, place.name);
        self.root.link(ours, (aside, self.name.as_bytes())).map_err(|errno| self.other(errno))?;
        rustix::fs::renameat(aside, &self.marked, &place.directory, place.name)
            .map_err(|errno| self.other(errno))?;
        Err(error)
    }

    /// Replaces where the file system has neither exchange nor links, and directories; see the module.
    fn replace_by_moves(&self, expected: &Stat) -> Result<(), FileError> {
        let place = &self.place;
        rustix::fs::renameat(&place.directory, place.name, &self.aside, &self.marked)
            .map_err(|errno| change_error(errno, self.path))?;
        if !is_same_matter(expected, &self.stat_marked()?) {
            self.put_back_if_free()?;
            return Err(self.changed());
        }
        let is_directory = expected.kind == FileKind::Directory;
        if let Err(errno) = if is_directory { self.remove_marked(expected.kind) } else { Ok(()) } {
            self.put_back_if_free()?;
            return Err(file_error(errno, self.path));
        }
        if let Err(error) = self.create() {
            self.put_back_if_free()?;
            return Err(match error {
                FileError::AlreadyExists(path) => FileError::Changed(path),
                error => error,
            });
        }
        if is_directory { Ok(()) } else { self.release(expected.kind) }
    }

    fn swap(&self) -> Result<(), Errno> {
        let place = (&self.place.directory, self.place.name);
        self.root.exchange((&self.aside, self.marked.as_bytes()), place)
    }

    fn mark(&self) -> Result<(), FileError> {
        rustix::fs::renameat(&self.aside, &self.name, &self.aside, &self.marked)
            .map_err(|errno| file_error(errno, self.path))
    }

    fn unmark(&self) -> Result<(), FileError> {
        rustix::fs::renameat(&self.aside, &self.marked, &self.aside, &self.name)
            .map_err(|errno| file_error(errno, self.path))
    }

    fn stat_marked(&self) -> Result<Stat, FileError> {
        rustix::fs::statat(&self.aside, &self.marked, AtFlags::SYMLINK_NOFOLLOW)
            .map(|stat| stat_from(&stat))
            .map_err(|errno| file_error(errno, self.path))
    }

    fn remove_marked(&self, kind: FileKind) -> Result<(), Errno> {
        let is_directory = kind == FileKind::Directory;
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(&self.aside, &self.marked, flags)
    }

    fn keep_marked(&self, label: &str) -> Result<(), FileError> {
        let marked = self.marked.as_bytes();
        trash::keep(self.root, &self.aside, marked, self.path, label).map(|_| ())
    }

    fn changed(&self) -> FileError {
        FileError::Changed(self.path.clone())
    }

    fn other(&self, errno: Errno) -> FileError {
        file_error(errno, self.path)
    }
}

#[cfg(test)]
mod tests;
