//! Which directory is where: turns the kernel's numbers of watches into paths, and keeps every directory watched.
//!
//! *Invariants*: a directory is watched before its entries are looked at, and both before it is told of; directories
//! known already move with their events, in the order of the events; paths are only resolved for new ones.
//!
//! A path may lead elsewhere by the time its event is read. What is not found is therefore looked for again once the
//! events are read (`incomplete`), and a listing counts only if the kernel says that it is of the directory meant.
//! Where a directory is found at two places, or two at one, the whole tree is walked again (`is_doubtful`), as after
//! an overflow; what happens during that walk makes it doubtful once more.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::path::PATH_DEPTH_MAX;
use model::{Name, RelativePath};
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::hints::{DIRECTORIES_MAX, Hint};
use super::{WatchFilter, WatchWarning};
use crate::file_system::SERVICE_DIRECTORY;
use crate::ignore_rules::IGNORE_FILE;

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

/// How many hints may be given while the places are in doubt: some five seconds of traffic without a pause.
const HINTS_IN_DOUBT_MAX: u32 = 50;

/// The number that the kernel gives a watch.
type Watch = i32;

/// Names as the kernel has them.
type Names = Vec<Box<[u8]>>;

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
    filter: Box<dyn WatchFilter>,
    directories: HashMap<Watch, Watched>,
    children: BTreeMap<(Watch, Box<[u8]>), Watch>,
    /// Directories that were moved away and have not arrived yet.
    leaving: Vec<(u32, Watch)>,
    /// Watches that were given back and of which the kernel may still tell.
    retired: HashSet<Watch>,
    limit: Option<WatchWarning>,
    touched: HashSet<Watch>,
    incomplete: HashSet<Watch>,
    everything: bool,
    is_doubtful: bool,
    /// How many hints were given while the places were in doubt.
    hints_in_doubt: u32,
    /// How many of the next events may be from the time of the last walk of the whole tree.
    overlap: u64,
}

impl WatchTree {
    /// Watches a directory and all below it.
    pub(super) fn new(
        root_path: &Path,
        kernel: Arc<OwnedFd>,
        filter: Box<dyn WatchFilter>,
    ) -> Result<Self, Errno> {
        // The root itself may be reached through a link, and tells when it is moved away.
        let flags = INTERESTING | WatchFlags::ONLYDIR | WatchFlags::MOVE_SELF;
        let root = inotify::add_watch(&kernel, root_path, flags)?;
        let mut tree = Self {
            root_path: root_path.to_path_buf(),
            root,
            kernel,
            filter,
            directories: HashMap::from([(root, Watched { parent: None, name: Box::default() })]),
            children: BTreeMap::new(),
            leaving: Vec::new(),
            retired: HashSet::new(),
            limit: None,
            touched: HashSet::new(),
            incomplete: HashSet::new(),
            everything: false,
            is_doubtful: false,
            hints_in_doubt: 0,
            overlap: 0,
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
        let is_overlapping = self.overlap > 0;
        self.overlap = self.overlap.saturating_sub(1);
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
        if event.name == IGNORE_FILE.as_bytes() && !flags.contains(ReadFlags::ATTRIB) {
            // With other rules, other directories are of interest, and what was passed over may count now.
            self.everything = true;
            self.is_doubtful = true;
        }
        self.is_doubtful |= is_overlapping && is_directory && !flags.contains(ReadFlags::ATTRIB);
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
        if path.is_some_and(|path| self.filter.passes_over(&path, is_directory)) {
            return;
        }
        self.touched.insert(event.watch);
    }

    /// Follows a directory that comes or goes.
    fn take_move(&mut self, event: &RawEvent<'_>, path: Option<&RelativePath>) {
        let place = (event.watch, Box::from(event.name));
        if event.flags.contains(ReadFlags::MOVED_FROM) {
            self.leaving.extend(self.children.remove(&place).map(|moved| (event.cookie, moved)));
            return;
        }
        if !event.flags.intersects(ReadFlags::MOVED_TO | ReadFlags::CREATE) {
            return;
        }
        let Some(path) = path else { return };
        if self.filter.passes_over(path, true) {
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

    /// Returns what has happened since the last time; `is_quiet` tells that it is over for now.
    pub(super) fn take_hint(&mut self, is_quiet: bool) -> Hint {
        for directory in std::mem::take(&mut self.incomplete) {
            self.walk(directory);
        }
        for (_, moved_out) in std::mem::take(&mut self.leaving) {
            self.retire(moved_out);
        }
        if self.is_doubtful && (is_quiet || self.hints_in_doubt >= HINTS_IN_DOUBT_MAX) {
            // What was told in doubt may have been told of the wrong places.
            self.everything |= self.hints_in_doubt > 0;
            self.rebuild();
        }
        self.hints_in_doubt = if self.is_doubtful { self.hints_in_doubt + 1 } else { 0 };
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
        self.is_doubtful = false;
        // Each event takes sixteen bytes at least.
        self.overlap = rustix::io::ioctl_fionread(&self.kernel).unwrap_or(u64::MAX) / 16;
    }

    /// Lists the directories in a directory that are to be watched.
    fn subdirectories(&mut self, directory: Watch) -> Vec<(Box<[u8]>, RelativePath)> {
        let Some(path) = self.path(directory) else { return Vec::new() };
        let (listed, has_rules) = match self.list(directory, &path) {
            Ok(listed) => listed,
            // What cannot be read cannot be synced either, and the scan says so.
            Err(Errno::ACCESS) => return Vec::new(),
            // It was moved since it was found, and its event will say where to.
            Err(_) => {
                self.incomplete.insert(directory);
                return Vec::new();
            }
        };
        self.filter.visit(&path, has_rules);
        let directories = listed.into_iter().filter_map(|name| {
            let path = path.join(&Name::new(&*name).ok()?).ok()?;
            (!self.filter.passes_over(&path, true)).then_some((name, path))
        });
        directories.collect()
    }

    /// Lists the names of the directories in a directory, if that is what the path leads to, and tells whether a file
    /// with rules stands among them.
    fn list(&mut self, directory: Watch, path: &RelativePath) -> Result<(Names, bool), Errno> {
        let full = self.root_path.join(path.to_os_path());
        let nofollow = if directory == self.root { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | nofollow;
        let opened = rustix::fs::open(full, flags, Mode::empty())?;
        // To watch what was opened gives the number that it has already, if it is the same.
        let own_name = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let flags = INTERESTING | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD;
        match inotify::add_watch(&self.kernel, own_name, flags) {
            Ok(watch) if watch == directory => {}
            Ok(watch) => {
                if !self.directories.contains_key(&watch) {
                    let _ = inotify::remove_watch(&self.kernel, watch);
                    self.retired.insert(watch);
                }
                return Err(Errno::NOENT);
            }
            // Without the names of descriptors the path is trusted.
            Err(_) => {}
        }
        let mut names = Vec::new();
        let mut has_rules = false;
        for entry in Dir::new(opened)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            has_rules |= name == IGNORE_FILE.as_bytes();
            let is_dots = matches!(name, b"." | b"..");
            if is_dots || self.is_service_directory(directory, name) {
                continue;
            }
            // Some file systems do not say what an entry is; what is no directory cannot be watched as one.
            if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
                names.push(name.into());
            }
        }
        Ok((names, has_rules))
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
                    self.touched.insert(watch);
                }
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
        // Two at one place: they change places, or one is removed, and which of the two is not told.
        let other = self.children.insert(place, watch);
        self.is_doubtful |= other.is_some_and(|other| other != watch);
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
