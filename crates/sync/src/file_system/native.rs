//! The real folder on Linux: everything is reached through descriptors that cannot leave its root.
//!
//! *Participants*: the engine; users and programs that change the folder at any moment, whom nobody can lock out.
//! *Goals*: what [`FileSystem`] promises, at the price of a few system calls for each file.
//! *Non-goals*: other operating systems; several engines on one folder (see [`FolderLock`]).
//! *Invariants*: no call resolves a path of more than one name except through `root::Root`; no call follows a
//! symbolic link; nothing that a user may have written is ever unlinked before it was compared with what was expected.
//!
//! Directories inside the folder may be other mounts. A file cannot be moved there atomically from the service
//! directory, so `install`, `replace` and `trash` fail there with [`FileError::Other`]; the rest works.
//!
//! Reading order: `root` (how places are found), `install` (how an edit in between is kept), `moving`, `trash`, `staged`,
//! `listing`, `attributes`, `identity`, `lock`, `facts` (stats and errors).

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use model::{RelativePath, Timestamp};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{
    DirectoryEntry, FileError, FileKind, FileSystem, OpenFile, StageToken, StagedFile, Stat,
};
use facts::{change_error, file_error, is_unchanged, move_error, stat_from};
use root::{Directory, Root};

pub use lock::{FolderLock, LockError};

mod attributes;
mod facts;
mod identity;
mod install;
mod listing;
mod lock;
mod moving;
mod root;
mod staged;
mod trash;

/// A folder of the operating system.
#[derive(Debug)]
pub struct NativeFileSystem {
    root: Arc<Root>,
    /// Other file systems, mounted inside the folder, on which something was changed since the last
    /// [`FileSystem::make_durable`], by their device numbers.
    other_devices: Mutex<BTreeMap<u64, OwnedFd>>,
}

impl NativeFileSystem {
    /// Opens the folder at `root`, which may itself be reached through links.
    ///
    /// # Errors
    /// [`FileError::NotFound`] where there is nothing, or another.
    pub fn open(root: &Path) -> Result<Self, FileError> {
        Ok(Self::from_root(Root::open(root)?))
    }

    fn from_root(root: Root) -> Self {
        Self { root: Arc::new(root), other_devices: Mutex::default() }
    }

    /// Removes what an earlier process left aside. Only the holder of the [`FolderLock`] may call it.
    ///
    /// What an exchange left behind that was cut off in the middle may be a user's edit: it goes to the trash, below
    /// the label `interrupted`.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn clear_staged(&self) -> Result<(), FileError> {
        staged::clear(&self.root)
    }

    /// Moves a file or link over another one that is still as expected, and what was there to the trash, below a folder
    /// called `label`. At every moment there is the one or the other at the new place.
    ///
    /// # Errors
    /// [`FileError::NotFound`]; [`FileError::Changed`] where something else is at the new place, or a directory is in it.
    pub fn move_over(
        &self,
        from: &RelativePath,
        to: &RelativePath,
        expected: &Stat,
        label: &str,
    ) -> Result<(), FileError> {
        moving::move_over(&self.root, from, to, expected, label)
    }

    /// Remembers that something was changed on a file system mounted inside the folder.
    fn note_device(&self, stat: &rustix::fs::Stat, directory: &Directory<'_>) {
        if stat.st_dev == self.root.device {
            return;
        }
        let mut devices = self.other_devices.lock();
        if let std::collections::btree_map::Entry::Vacant(entry) = devices.entry(stat.st_dev)
            && let Ok(descriptor) = root::reopen(directory)
        {
            entry.insert(descriptor);
        }
    }
}

impl FileSystem for NativeFileSystem {
    fn list(&self, directory: &RelativePath) -> Result<Vec<DirectoryEntry>, FileError> {
        listing::list(&self.root, directory)
    }

    fn stat(&self, path: &RelativePath) -> Result<Option<Stat>, FileError> {
        if path.is_root() {
            let stat = rustix::fs::fstat(&self.root.descriptor);
            return Ok(Some(stat_from(&stat.map_err(|errno| file_error(errno, path))?)));
        }
        match self.root.place(path) {
            Ok(place) => place.stat(path),
            Err(FileError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open(&self, path: &RelativePath) -> Result<Box<dyn OpenFile>, FileError> {
        let place = self.root.place(path)?;
        // To open a pipe or a device can have effects, so the kind is looked at before and after.
        match place.stat(path)? {
            None => return Err(FileError::NotFound(path.clone())),
            Some(stat) if stat.kind != FileKind::File => {
                return Err(FileError::Changed(path.clone()));
            }
            Some(_) => {}
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let descriptor = place.open(flags).map_err(|errno| match errno {
            Errno::LOOP => FileError::Changed(path.clone()),
            errno => file_error(errno, path),
        })?;
        let file = NativeOpenFile { file: descriptor.into(), path: path.clone() };
        if file.stat()?.kind == FileKind::File {
            Ok(Box::new(file))
        } else {
            Err(FileError::Changed(path.clone()))
        }
    }

    fn read_link(&self, path: &RelativePath) -> Result<Vec<u8>, FileError> {
        let place = self.root.place(path)?;
        match rustix::fs::readlinkat(&place.directory, place.name, Vec::new()) {
            Ok(target) => Ok(target.into_bytes()),
            Err(Errno::INVAL) => Err(FileError::Changed(path.clone())),
            Err(errno) => Err(file_error(errno, path)),
        }
    }

    fn stage(&self, token: StageToken) -> Result<Box<dyn StagedFile>, FileError> {
        Ok(Box::new(staged::NativeStagedFile::create(&self.root, token)?))
    }

    fn stage_link(
        &self,
        token: StageToken,
        target: &[u8],
        modified: Timestamp,
    ) -> Result<(), FileError> {
        staged::create_link(&self.root, token, target, modified)
    }

    fn discard(&self, token: StageToken) -> Result<(), FileError> {
        staged::discard(&self.root, token)
    }

    fn install(
        &self,
        token: StageToken,
        path: &RelativePath,
        expected: Option<&Stat>,
    ) -> Result<Stat, FileError> {
        install::install(&self.root, token, path, expected)
    }

    fn replace(
        &self,
        token: StageToken,
        path: &RelativePath,
        expected: &Stat,
        label: &str,
    ) -> Result<Stat, FileError> {
        install::replace(&self.root, token, path, expected, label)
    }

    fn make_directory(&self, path: &RelativePath, mode: u32) -> Result<Stat, FileError> {
        let place = self.root.place(path)?;
        let error = |errno| file_error(errno, path);
        rustix::fs::mkdirat(&place.directory, place.name, Mode::RWXU).map_err(error)?;
        // The mode is set apart, since the one given when it is made loses the bits of the umask.
        let descriptor = place.open(OFlags::RDONLY | OFlags::DIRECTORY).map_err(error)?;
        let made = rustix::fs::fstat(&descriptor).map_err(error)?;
        attributes::set_mode(&descriptor, &made, mode).map_err(error)?;
        let made = rustix::fs::fstat(&descriptor).map_err(error)?;
        self.note_device(&made, &place.directory);
        Ok(stat_from(&made))
    }

    fn rename(&self, from: &RelativePath, to: &RelativePath) -> Result<Stat, FileError> {
        let source = self.root.place(from)?;
        let target = self.root.place(to)?;
        // The descriptor keeps to the file that is moved, whatever takes its name afterwards.
        let handle = source.open(OFlags::PATH).map_err(|errno| file_error(errno, from))?;
        self.root
            .move_without_replacing(&source.directory, source.name, &target.directory, target.name)
            .map_err(|errno| match errno {
                Errno::INVAL if to.starts_with(from) => FileError::Other {
                    path: from.clone(),
                    reason: format!("a directory cannot be moved into itself, to '{to}'"),
                },
                errno => move_error(errno, to),
            })?;
        let moved = rustix::fs::fstat(&handle).map_err(|errno| file_error(errno, to))?;
        self.note_device(&moved, &target.directory);
        Ok(stat_from(&moved))
    }

    fn set_attributes(
        &self,
        path: &RelativePath,
        expected: &Stat,
        mode: u32,
        modified: Option<Timestamp>,
    ) -> Result<Stat, FileError> {
        let place = self.root.place(path)?;
        let after = attributes::set(&place, path, expected, mode, modified)?;
        self.note_device(&after, &place.directory);
        Ok(stat_from(&after))
    }

    fn trash(&self, path: &RelativePath, expected: &Stat, label: &str) -> Result<(), FileError> {
        let place = self.root.place(path)?;
        let found = place.stat(path)?;
        if !found.is_some_and(|found| is_unchanged(expected, &found)) {
            return Err(FileError::Changed(path.clone()));
        }
        if expected.kind != FileKind::Directory {
            return trash::trash(&self.root, &place, path, expected, label);
        }
        let stat = place.raw_stat().map_err(|errno| change_error(errno, path))?;
        rustix::fs::unlinkat(&place.directory, place.name, AtFlags::REMOVEDIR)
            .map_err(|errno| change_error(errno, path))?;
        self.note_device(&stat, &place.directory);
        Ok(())
    }

    fn make_durable(&self) -> Result<(), FileError> {
        let failed = |errno: Errno| FileError::NotDurable(std::io::Error::from(errno).to_string());
        let mut others = self.other_devices.lock();
        rustix::fs::syncfs(&self.root.descriptor).map_err(failed)?;
        for descriptor in others.values() {
            rustix::fs::syncfs(descriptor).map_err(failed)?;
        }
        others.clear();
        Ok(())
    }

    fn root_identity(&self) -> Result<Option<[u8; 16]>, FileError> {
        identity::read(&self.root)
    }

    fn set_root_identity(&self, identity: [u8; 16]) -> Result<(), FileError> {
        identity::write(&self.root, identity)
    }
}

/// A file that is open for reading.
struct NativeOpenFile {
    file: std::fs::File,
    path: RelativePath,
}

impl Read for NativeOpenFile {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.file.read(buffer)
    }
}

impl OpenFile for NativeOpenFile {
    fn go_to(&mut self, offset: u64) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(offset)).map(drop)
    }

    fn stat(&self) -> Result<Stat, FileError> {
        let stat = rustix::fs::fstat(self.file.as_fd());
        Ok(stat_from(&stat.map_err(|errno| file_error(errno, &self.path))?))
    }
}

#[cfg(test)]
mod tests;
