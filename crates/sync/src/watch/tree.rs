//! Which directory is where: turns the kernel's numbers of watches into paths, and keeps every directory watched.
//!
//! *Invariants*: a directory is watched before its entries are looked at, and both before it is told of; directories
//! known already move with their events, in the order of the events; paths are only resolved for new ones.
//!
//! A path may lead elsewhere by the time its event is read. A directory that is not found is therefore looked for again
//! once the events are read (`incomplete`); one that is found where another was thought to be makes the whole tree be
//! walked again, as does an overflow.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::path::PATH_DEPTH_MAX;
use model::{Name, RelativePath};
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::hints::{DIRECTORIES_MAX, Hint};
use super::WatchWarning;
use crate::file_system::SERVICE_DIRECTORY;

/// What the kernel tells of: no openings and no single writes, which are many and mean nothing before the close.
const INTERESTING: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB);

/// How it watches: directories only, no links, and nothing that is removed already.
const MANNER: WatchFlags =
    WatchFlags::ONLYDIR.union(WatchFlags::DONT_FOLLOW).union(WatchFlags::EXCL_UNLINK);

/// The number that the kernel gives a watch.
type Watch = i32;

/// Tells which paths, and whether as directories, are of no interest.
type IsIgnored = Box<dyn Fn(&RelativePath, bool) -> bool + Send>;

/// What the kernel tells.
#[derive(Debug)]
pub(super) struct RawEvent<'a> {
    pub watch: Watch,
    pub flags: ReadFlags,
    /// Joins the two halves of a move.
    pub cookie: u32,
    /// The name in the watched directory; empty where the directory itself is meant.
    pub name: &'a [u8],
}

/// Where a watched directory lies.
#[derive(Debug)]
struct Watched {
    /// Absent for the root.
    parent: Option<Watch>,
    name: Box<[u8]>,
}

/// All watched directories, and what has happened in them since the last hint.
pub(super) struct WatchTree {
    root_path: PathBuf,
    root: Watch,
    kernel: Arc<OwnedFd>,
    is_ignored: IsIgnored,
    directories: HashMap<Watch, Watched>,
    children: BTreeMap<(Watch, Box<[u8]>), Watch>,
    /// Directories to whose place another has been moved, until they move on or are gone.
    shadowed: HashMap<(Watch, Box<[u8]>), Watch>,
    /// Directories that were moved away and have not arrived yet.
    leaving: Vec<(u32, Watch)>,
    /// Watches that were given back and of which the kernel may still tell.
    retired: HashSet<Watch>,
    limit: Option<WatchWarning>,
    touched: HashSet<Watch>,
    incomplete: HashSet<Watch>,
    everything: bool,
    is_doubtful: bool,
}

impl WatchTree {
    /// Watches a directory and all below it.
    pub(super) fn new(
        root_path: &Path,
        kernel: Arc<OwnedFd>,
        is_ignored: IsIgnored,
    ) -> Result<Self, Errno> {
        // The root itself may be reached through a link, and tells when it is moved away.
        let flags = INTERESTING | WatchFlags::ONLYDIR | WatchFlags::MOVE_SELF;
        let root = inotify::add_watch(&kernel, root_path, flags)?;
        let mut tree = Self {
            root_path: root_path.to_path_buf(),
            root,
            kernel,
            is_ignored,
            directories: HashMap::from([(root, Watched { parent: None, name: Box::default() })]),
            children: BTreeMap::new(),
            shadowed: HashMap::new(),
            leaving: Vec::new(),
            retired: HashSet::new(),
            limit: None,
            touched: HashSet::new(),
            incomplete: HashSet::new(),
            everything: false,
            is_doubtful: false,
        };
        tree.walk(root);
        tree.touched.clear();
        Ok(tree)
    }

    pub(super) fn warning(&self) -> Option<WatchWarning> {
        self.limit.clone()
    }

    /// Takes in an event.
    pub(super) fn take_event(&mut self, event: &RawEvent<'_>) {
        let flags = event.flags;
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.everything = true;
            self.is_doubtful = true;
            return;
        }
        let is_gone = flags.intersects(ReadFlags::IGNORED);
        if flags.contains(ReadFlags::UNMOUNT) || event.watch == self.root && is_gone {
            self.everything = true;
        }
        if is_gone {
            self.forget(event.watch);
            return;
        }
        let Some(watched) = self.directories.get(&event.watch) else {
            self.everything |= !self.retired.contains(&event.watch);
            return;
        };
        if event.name.is_empty() {
            // The directory itself: an entry of its parent. If the root was moved away, nothing holds any more.
            self.everything |= flags.contains(ReadFlags::MOVE_SELF);
            self.touched.insert(watched.parent.unwrap_or(event.watch));
            return;
        }
        let is_directory = flags.contains(ReadFlags::ISDIR);
        if is_directory || !self.touched.contains(&event.watch) {
            self.take_entry(event, is_directory);
        }
    }

    /// Takes in an event about an entry of a watched directory.
    fn take_entry(&mut self, event: &RawEvent<'_>, is_directory: bool) {
        if self.is_service_directory(event.watch, event.name) {
            return;
        }
        let path = self.entry_path(event.watch, event.name);
        if is_directory {
            self.take_move(event, path.as_ref());
        }
        if path.is_some_and(|path| (self.is_ignored)(&path, is_directory)) {
            return;
        }
        self.touched.insert(event.watch);
    }

    /// Follows a directory that comes or goes.
    fn take_move(&mut self, event: &RawEvent<'_>, path: Option<&RelativePath>) {
        let place = (event.watch, Box::from(event.name));
        if event.flags.contains(ReadFlags::MOVED_FROM) {
            let moved = self.shadowed.remove(&place).or_else(|| self.children.remove(&place));
            self.leaving.extend(moved.map(|moved| (event.cookie, moved)));
            return;
        }
        if !event.flags.intersects(ReadFlags::MOVED_TO | ReadFlags::CREATE) {
            return;
        }
        let Some(path) = path else { return };
        if (self.is_ignored)(path, true) {
            return;
        }
        let arrived = self.leaving.iter().position(|(cookie, _)| *cookie == event.cookie);
        match arrived.filter(|_| event.flags.contains(ReadFlags::MOVED_TO)) {
            Some(index) => {
                let (_, moved) = self.leaving.swap_remove(index);
                self.attach(moved, place);
            }
            None => {
                if let Some(added) = self.add(event.watch, event.name, path) {
                    self.walk(added);
                }
            }
        }
    }

    /// Returns what has happened since the last time.
    pub(super) fn take_hint(&mut self) -> Hint {
        for directory in std::mem::take(&mut self.incomplete) {
            self.walk(directory);
        }
        for (_, moved_out) in std::mem::take(&mut self.leaving) {
            self.retire(moved_out);
        }
        if std::mem::take(&mut self.is_doubtful) {
            self.rebuild();
        }
        let touched = std::mem::take(&mut self.touched);
        if std::mem::take(&mut self.everything) || touched.len() > DIRECTORIES_MAX {
            return Hint::everything();
        }
        // A directory that is gone by now is an entry of its parent, which was touched by that.
        let paths = touched.into_iter().filter_map(|directory| self.path(directory));
        Hint { directories: paths.collect(), everything: false }
    }

    /// Watches, and names, whatever is below a directory and not watched yet.
    fn walk(&mut self, top: Watch) {
        let mut pending = vec![top];
        while let Some(directory) = pending.pop() {
            for (name, path) in self.subdirectories(directory) {
                if !self.children.contains_key(&(directory, name.clone())) {
                    pending.extend(self.add(directory, &name, &path));
                }
            }
        }
    }

    /// Walks the whole tree again, watches what is there, and forgets what is not.
    fn rebuild(&mut self) {
        let mut pending = vec![self.root];
        let mut found = HashSet::from([self.root]);
        while let Some(directory) = pending.pop() {
            for (name, path) in self.subdirectories(directory) {
                self.add(directory, &name, &path);
                let child = self.children.get(&(directory, name)).copied();
                pending.extend(child.filter(|child| found.insert(*child)));
            }
        }
        let is_stale = |watch: &Watch| !found.contains(watch);
        for watch in self.directories.keys().copied().filter(is_stale).collect::<Vec<_>>() {
            self.retire(watch);
        }
        self.shadowed.clear();
        self.is_doubtful = false;
    }

    /// Lists the directories in a directory that are to be watched.
    fn subdirectories(&mut self, directory: Watch) -> Vec<(Box<[u8]>, RelativePath)> {
        let Some(path) = self.path(directory) else { return Vec::new() };
        let entries = match std::fs::read_dir(self.root_path.join(path.to_os_path())) {
            Ok(entries) => entries,
            // What cannot be read cannot be synced either, and the scan says so.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Vec::new(),
            // It was moved since it was found, and its event will say where to.
            Err(_) => {
                self.incomplete.insert(directory);
                return Vec::new();
            }
        };
        let directories = entries
            .map_while(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.file_name().into_vec())
            .filter(|name| !self.is_service_directory(directory, name))
            .filter_map(|name| {
                let path = path.join(&Name::new(name.as_slice()).ok()?).ok()?;
                (!(self.is_ignored)(&path, true)).then(|| (name.into_boxed_slice(), path))
            });
        directories.collect()
    }

    /// Watches a directory. Returns it if it was not known before.
    fn add(&mut self, parent: Watch, name: &[u8], path: &RelativePath) -> Option<Watch> {
        let full = self.root_path.join(path.to_os_path());
        let place = (parent, Box::from(name));
        match inotify::add_watch(&self.kernel, &full, INTERESTING | MANNER) {
            Ok(watch) if self.directories.contains_key(&watch) => {
                if self.children.get(&place) != Some(&watch) {
                    // It came here without an event, or before its event was read.
                    self.is_doubtful = true;
                    self.leaving.retain(|(_, leaving)| *leaving != watch);
                    self.attach(watch, place);
                }
                self.touched.insert(watch);
                None
            }
            Ok(watch) => {
                let unplaced = Watched { parent: Some(parent), name: Box::default() };
                self.directories.insert(watch, unplaced);
                self.attach(watch, place);
                self.touched.insert(watch);
                Some(watch)
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                self.incomplete.insert(parent);
                None
            }
            Err(Errno::ACCESS) => None,
            Err(Errno::NOSPC) => {
                self.everything |= self.limit.is_none();
                self.limit = Some(WatchWarning::LimitReached { limit: watch_limit() });
                None
            }
            Err(_) => {
                self.everything = true;
                None
            }
        }
    }

    /// Puts a known directory at a place.
    fn attach(&mut self, watch: Watch, place: (Watch, Box<[u8]>)) {
        let Some(watched) = self.directories.get_mut(&watch) else { return };
        let old = watched.parent.map(|parent| (parent, watched.name.clone()));
        *watched = Watched { parent: Some(place.0), name: place.1.clone() };
        if let Some(old) = old.filter(|old| self.children.get(old) == Some(&watch)) {
            self.children.remove(&old);
        }
        match self.children.insert(place.clone(), watch) {
            Some(other) if other != watch => {
                self.shadowed.insert(place, other);
            }
            _ => {}
        }
    }

    /// Stops watching a directory and all below it.
    fn retire(&mut self, top: Watch) {
        let mut pending = vec![top];
        while let Some(watch) = pending.pop() {
            let range = (watch, Box::default())..(watch.saturating_add(1), Box::default());
            pending.extend(self.children.range(range).map(|(_, child)| *child));
            self.forget(watch);
            // If the kernel has given it up by itself, the event that says so is still to come.
            let _ = inotify::remove_watch(&self.kernel, watch);
            self.retired.insert(watch);
        }
    }

    /// Forgets a directory that is not watched any more.
    fn forget(&mut self, watch: Watch) {
        self.retired.remove(&watch);
        self.touched.remove(&watch);
        self.incomplete.remove(&watch);
        self.leaving.retain(|(_, leaving)| *leaving != watch);
        let removed = self.directories.remove(&watch);
        let Some(Watched { parent: Some(parent), name }) = removed else { return };
        let place = (parent, name);
        if self.children.get(&place) == Some(&watch) {
            self.children.remove(&place);
        }
        if self.shadowed.get(&place) == Some(&watch) {
            self.shadowed.remove(&place);
        }
    }

    fn is_service_directory(&self, directory: Watch, name: &[u8]) -> bool {
        directory == self.root && name == SERVICE_DIRECTORY.as_bytes()
    }

    /// Returns the path of an entry, if it may be synced.
    fn entry_path(&self, directory: Watch, name: &[u8]) -> Option<RelativePath> {
        self.path(directory)?.join(&Name::new(name).ok()?).ok()
    }

    /// Returns the path of a watched directory.
    fn path(&self, directory: Watch) -> Option<RelativePath> {
        let mut names = Vec::new();
        let mut at = self.directories.get(&directory)?;
        while let Some(parent) = at.parent {
            names.push(&*at.name);
            at = self.directories.get(&parent)?;
            if names.len() > PATH_DEPTH_MAX {
                return None;
            }
        }
        names.reverse();
        RelativePath::new(&names.join(&b'/')).ok()
    }
}

/// Returns how many directories a user may watch.
fn watch_limit() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
