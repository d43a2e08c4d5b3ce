//! Writes objects: aside first, flushed, then renamed to their names.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, FlockOperation, RenameFlags};
use rustix::io::Errno;

use super::Flush;
use super::group::Group;
use super::root::{FORMAT, FORMAT_FILE, Root};
use crate::error::{Result, StorageError};
use crate::files;
use crate::key::ObjectKey;
use crate::object_store::{PutMode, PutOutcome};

/// Folder below the root that holds one folder of unfinished files per writer.
const ASIDE: &str = ".tmp";
/// How many folders a writer remembers as flushed; beyond it starts over, which only costs time.
const FOLDERS_REMEMBERED_MAX: usize = 4096;
/// How often a put starts again because somebody removed the empty folder that it was about to use.
const FOLDER_RACES_MAX: usize = 64;

/// The writing half of a store.
#[derive(Debug)]
pub(super) struct Writer {
    flush: Arc<dyn Flush>,
    aside: Mutex<Option<Arc<Aside>>>,
    folders: Mutex<Folders>,
    group: Group,
    /// Why this handle writes no more.
    poison: Mutex<Option<String>>,
}

/// What this handle knows about folders of the store; the root is not among them.
#[derive(Debug, Default)]
struct Folders {
    /// Their names are flushed in the folders above them.
    flushed: HashSet<String>,
    /// This handle created them, so it may remove them when they are empty.
    created: HashSet<String>,
}

impl Writer {
    pub(super) fn new(flush: Arc<dyn Flush>) -> Self {
        Self {
            flush,
            aside: Mutex::default(),
            folders: Mutex::default(),
            group: Group::default(),
            poison: Mutex::default(),
        }
    }

    pub(super) fn put(
        &self,
        root: &Root,
        key: &ObjectKey,
        bytes: &[u8],
        mode: PutMode,
    ) -> Result<PutOutcome> {
        self.check_not_poisoned(root)?;
        if mode == PutMode::IfAbsent && self.is_object(root, key)? {
            self.flush_names(root, key)?;
            return Ok(PutOutcome::Exists);
        }
        let unfinished = self.write_aside(root, key.as_str(), bytes)?;
        self.flush
            .file(unfinished.file.as_fd())
            .map_err(|error| root.failure("flush", key.as_str(), error))?;
        let outcome = self.publish(root, key, unfinished, mode)?;
        self.flush_names(root, key)?;
        // Another thread's flush of the same folder may have been told of the loss instead of this one's.
        self.check_not_poisoned(root)?;
        Ok(outcome)
    }

    /// Writes an object aside; it appears when the group is synced.
    pub(super) fn put_deferred(&self, root: &Root, key: &ObjectKey, bytes: &[u8]) -> Result<()> {
        self.check_not_poisoned(root)?;
        let unfinished = self.write_aside(root, key.as_str(), bytes)?;
        if self.group.add(key.clone(), unfinished) { self.sync(root) } else { Ok(()) }
    }

    /// Flushes and publishes what was deferred.
    pub(super) fn sync(&self, root: &Root) -> Result<()> {
        // One at a time: who finds the group taken must not return before it is durable.
        let _turn = self.group.take_turn();
        self.check_not_poisoned(root)?;
        let group = self.group.take();
        if group.is_empty() {
            return Ok(());
        }
        self.sync_group(root, group).inspect_err(|error| self.poison(error))
    }

    fn sync_group(&self, root: &Root, group: Vec<(ObjectKey, Unfinished)>) -> Result<()> {
        if group.len() > 2 {
            self.flush
                .file_system(root.fd())
                .map_err(|error| root.failure("flush", "the file system", error))?;
        }
        for (key, unfinished) in &group {
            self.flush
                .file(unfinished.file.as_fd())
                .map_err(|error| root.failure("flush", key.as_str(), error))?;
        }
        let mut keys = Vec::with_capacity(group.len());
        for (key, unfinished) in group {
            self.publish(root, &key, unfinished, PutMode::Overwrite)?;
            keys.push(key);
        }
        let mut seen = HashSet::new();
        keys.retain(|key| seen.insert(parent(key.as_str()).to_owned()));
        keys.iter().try_for_each(|key| self.flush_names(root, key))
    }

    /// Writes `bytes` to a new file of this writer's own folder.
    fn write_aside(&self, root: &Root, name: &str, bytes: &[u8]) -> Result<Unfinished> {
        let fail = |error| root.failure("write", name, error);
        let mut aside = self.aside(root)?;
        let (file, name) = match aside.create() {
            // Somebody removed this writer's folder: a hand, or a machine that does not see our lock.
            Err(Errno::NOENT) => {
                *self.aside.lock() = None;
                aside = self.aside(root)?;
                aside.create().map_err(fail)?
            }
            created => created.map_err(fail)?,
        };
        let unfinished = Unfinished { aside, name: Some(name), file };
        files::write_all(unfinished.file.as_fd(), bytes).map_err(fail)?;
        Ok(unfinished)
    }

    /// Returns this writer's own folder; the first call creates it and marks the root as a store.
    fn aside(&self, root: &Root) -> Result<Arc<Aside>> {
        root.check_present()?;
        let mut slot = self.aside.lock();
        if let Some(aside) = slot.as_ref() {
            return Ok(Arc::clone(aside));
        }
        let fail = |error| root.failure("create", ASIDE, error);
        let aside = Arc::new(Aside::create_in(root).map_err(fail)?);
        if !root.has_format()? {
            self.write_format(root, &aside)?;
        }
        *slot = Some(Arc::clone(&aside));
        Ok(aside)
    }

    fn write_format(&self, root: &Root, aside: &Arc<Aside>) -> Result<()> {
        let fail = |error| root.failure("write", FORMAT_FILE, error);
        let (file, name) = aside.create().map_err(fail)?;
        let mut unfinished = Unfinished { aside: Arc::clone(aside), name: Some(name), file };
        files::write_all(unfinished.file.as_fd(), FORMAT.as_bytes()).map_err(fail)?;
        self.flush.file(unfinished.file.as_fd()).map_err(fail)?;
        unfinished.rename(root, FORMAT_FILE, PutMode::Overwrite).map_err(fail)?;
        self.flush.folder(root.fd()).map_err(fail)
    }

    /// Gives a flushed file its name.
    fn publish(
        &self,
        root: &Root,
        key: &ObjectKey,
        mut unfinished: Unfinished,
        mode: PutMode,
    ) -> Result<PutOutcome> {
        for _ in 0..FOLDER_RACES_MAX {
            match unfinished.rename(root, key.as_str(), mode) {
                Ok(PutOutcome::Exists) if is_folder(root, key) => return Err(collision(key)),
                Ok(outcome) => return Ok(outcome),
                Err(Errno::NOENT) => self.create_folders(root, key)?,
                Err(Errno::NOTDIR | Errno::ISDIR | Errno::NOTEMPTY) => return Err(collision(key)),
                Err(Errno::NOTSUP | Errno::NOSYS | Errno::INVAL | Errno::MLINK) => {
                    return Err(StorageError::Unsupported {
                        store: root.describe(),
                        operation: "create an object only when it is absent",
                    });
                }
                Err(error) => return Err(root.failure("name", key.as_str(), error)),
            }
        }
        Err(root.failure("name", key.as_str(), Errno::NOENT))
    }

    fn create_folders(&self, root: &Root, key: &ObjectKey) -> Result<()> {
        root.check_present()?;
        for folder in ancestors(key.as_str()) {
            match rustix::fs::mkdirat(root.fd(), folder, files::FOLDER_MODE) {
                Ok(()) => {
                    let mut folders = self.folders.lock();
                    folders.flushed.remove(folder);
                    folders.created.insert(folder.to_owned());
                }
                // There already, or the one above was just removed: the caller tries again.
                Err(Errno::EXIST | Errno::NOENT) => {}
                Err(error) => return Err(root.failure("create folder", folder, error)),
            }
        }
        Ok(())
    }

    /// Flushes the name of an object, and those of its folders unless this handle did so before.
    fn flush_names(&self, root: &Root, key: &ObjectKey) -> Result<()> {
        self.flush_folder(root, parent(key.as_str()))?;
        for folder in ancestors(key.as_str()) {
            if self.folders.lock().flushed.contains(folder) {
                continue;
            }
            self.flush_folder(root, parent(folder))?;
            let mut folders = self.folders.lock();
            if folders.flushed.len() >= FOLDERS_REMEMBERED_MAX {
                folders.flushed.clear();
                folders.created.clear();
            }
            folders.flushed.insert(folder.to_owned());
        }
        Ok(())
    }

    fn flush_folder(&self, root: &Root, path: &str) -> Result<()> {
        let fail = |error| root.failure("flush folder", path, error);
        let here = if path.is_empty() { "." } else { path };
        match files::open_at(root.fd(), here, files::FOLDER) {
            Ok(folder) => self
                .flush
                .folder(folder.as_fd())
                .map_err(fail)
                .inspect_err(|error| self.poison(error)),
            // The object was deleted, and its folder with it: there is no name left to flush.
            Err(Errno::NOENT) => root.check_present(),
            Err(error) => Err(fail(error)),
        }
    }

    /// Removes the folders above a deleted object that this handle created and that are empty.
    pub(super) fn forget_empty_folders(&self, root: &Root, key: &ObjectKey) {
        let mut folders = self.folders.lock();
        for folder in ancestors(key.as_str()).collect::<Vec<_>>().into_iter().rev() {
            let removed = folders.created.contains(folder)
                && rustix::fs::unlinkat(root.fd(), folder, AtFlags::REMOVEDIR).is_ok();
            if !removed {
                return;
            }
            folders.created.remove(folder);
            folders.flushed.remove(folder);
        }
    }

    fn is_object(&self, root: &Root, key: &ObjectKey) -> Result<bool> {
        match files::stat_at(root.fd(), key.as_str()) {
            Ok(status) => Ok(FileType::from_raw_mode(status.st_mode) == FileType::RegularFile),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(root.failure("look at", key.as_str(), error)),
        }
    }

    fn check_not_poisoned(&self, root: &Root) -> Result<()> {
        match self.poison.lock().as_ref() {
            None => Ok(()),
            Some(detail) => {
                Err(StorageError::NotDurable { store: root.describe(), detail: detail.clone() })
            }
        }
    }

    fn poison(&self, error: &StorageError) {
        let mut detail = error.to_string();
        if let Some(source) = std::error::Error::source(error) {
            detail = format!("{detail}: {source}");
        }
        tracing::error!(detail, "a store failed to make data durable; this handle writes no more");
        self.poison.lock().get_or_insert(detail);
        // What waits belongs to callers who will be told so by their next call.
        self.group.take();
    }
}

fn is_folder(root: &Root, key: &ObjectKey) -> bool {
    files::stat_at(root.fd(), key.as_str())
        .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Directory)
}

fn collision(key: &ObjectKey) -> StorageError {
    let detail = "a folder and an object would have one name";
    StorageError::InvalidKey { key: key.to_string(), detail }
}

/// The folders above `path`, outermost first, without the root.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(slash, _)| &path[..slash])
}

/// The folder of `path`; empty for the root.
fn parent(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..slash])
}

/// A writer's own folder of unfinished files, locked as long as the writer lives.
#[derive(Debug)]
pub(super) struct Aside {
    all: OwnedFd,
    folder: OwnedFd,
    name: String,
    next: Mutex<u64>,
}

impl Aside {
    fn create_in(root: &Root) -> Result<Self, Errno> {
        match rustix::fs::mkdirat(root.fd(), ASIDE, files::FOLDER_MODE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        let all = files::open_at(root.fd(), ASIDE, files::FOLDER)?;
        let process = std::process::id();
        for number in 0..u64::MAX {
            let name = format!("{process}-{number}");
            match rustix::fs::mkdirat(&all, &name, files::FOLDER_MODE) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error),
            }
            let folder = match files::open_at(all.as_fd(), &name, files::FOLDER) {
                Ok(folder) => folder,
                // Somebody cleaned up before the folder was locked.
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            };
            // Any other failure means no locks here; then nobody can take the lock to clean up either.
            let locked = rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive);
            if locked == Err(Errno::WOULDBLOCK) {
                continue;
            }
            // Somebody may have cleaned up just before the lock; then it locks nothing.
            if names_folder(&all, &name, &folder) {
                return Ok(Self { all, folder, name, next: Mutex::new(0) });
            }
        }
        Err(Errno::EXIST)
    }

    fn create(&self) -> Result<(OwnedFd, String), Errno> {
        let name = {
            let mut next = self.next.lock();
            *next += 1;
            next.to_string()
        };
        let file = files::open_at(self.folder.as_fd(), &name, files::CREATE)?;
        Ok((file, name))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // Every unfinished file holds this folder alive, so it is empty now; what fails is cleaned at an opening.
        remove_locked(&self.all, &self.name, &self.folder);
    }
}

/// A file without a name of its own yet; removed when dropped so.
#[derive(Debug)]
pub(super) struct Unfinished {
    aside: Arc<Aside>,
    /// Its name aside, until it has its final one.
    name: Option<String>,
    file: OwnedFd,
}

impl Unfinished {
    fn rename(&mut self, root: &Root, target: &str, mode: PutMode) -> Result<PutOutcome, Errno> {
        let name = self.name.as_deref().expect("a file is renamed once");
        let folder = self.aside.folder.as_fd();
        let result = match mode {
            PutMode::Overwrite => rustix::fs::renameat(folder, name, root.fd(), target),
            PutMode::IfAbsent => self.rename_if_absent(root, name, target),
        };
        match result {
            Ok(()) => {
                self.name = None;
                Ok(PutOutcome::Written)
            }
            Err(Errno::EXIST) if mode == PutMode::IfAbsent => Ok(PutOutcome::Exists),
            Err(error) => Err(error),
        }
    }

    fn rename_if_absent(&self, root: &Root, name: &str, target: &str) -> Result<(), Errno> {
        let folder = self.aside.folder.as_fd();
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        {
            let flags = RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(folder, name, root.fd(), target, flags) {
                // File systems that do not know the flag; linking is as exclusive.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                result => return result,
            }
        }
        match rustix::fs::linkat(folder, name, root.fd(), target, AtFlags::empty()) {
            Ok(()) => files::remove_file(folder, name),
            Err(Errno::PERM) => Err(Errno::NOTSUP),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = files::remove_file(self.aside.folder.as_fd(), name);
        }
    }
}

/// Removes what writers left behind that no longer live. Best effort: a read-only store has nothing to gain.
pub(super) fn remove_stale_files(root: &Root) {
    let Ok(all) = files::open_at(root.fd(), ASIDE, files::FOLDER) else { return };
    for (name, file_type) in files::read_folder(all.as_fd()).unwrap_or_default() {
        if file_type != FileType::Directory {
            continue;
        }
        let Ok(folder) = files::open_at(all.as_fd(), &name, files::FOLDER) else { continue };
        // Its writer lives, or locks do not work here: leave it alone.
        if rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        for (file, _) in files::read_folder(folder.as_fd()).unwrap_or_default() {
            let _ = files::remove_file(folder.as_fd(), &file);
        }
        remove_locked(&all, &name, &folder);
    }
}

/// Returns whether `name` in `all` is still the folder that is open as `folder`.
fn names_folder(all: &OwnedFd, name: &str, folder: &OwnedFd) -> bool {
    match (rustix::fs::fstat(folder), files::stat_at(all.as_fd(), name)) {
        (Ok(opened), Ok(named)) => named.st_ino == opened.st_ino,
        _ => false,
    }
}

/// Removes a writer's folder whose lock the caller holds, so that nobody else removes it and makes another of its
/// name in between. The name may have gone to a new writer before the lock was had: then it is left alone.
fn remove_locked(all: &OwnedFd, name: &str, folder: &OwnedFd) {
    if names_folder(all, name, folder) {
        let _ = rustix::fs::unlinkat(all, name, AtFlags::REMOVEDIR);
    }
}
