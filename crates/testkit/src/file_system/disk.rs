//! What lies on a simulated disk. Cloning is cheap, so that every state since the last flush can be kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{RelativePath, Timestamp};
use sync::file_system::{FileError, FileKind, StageToken, Stat};

/// Names a file for ever, unlike its number, which another file may get later.
pub type Key = u64;

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matter {
    /// Names and what they lead to.
    Directory(Arc<BTreeMap<Vec<u8>, Key>>),
    /// Bytes.
    File(Arc<Vec<u8>>),
    /// Text.
    Symlink(Arc<Vec<u8>>),
}

/// A file, directory or link.
#[derive(Debug, Clone)]
pub struct File {
    /// The number that programs see.
    pub number: u64,
    /// What it holds.
    pub matter: Matter,
    /// Permission bits.
    pub mode: u32,
    /// Modification time.
    pub modified: Timestamp,
    /// Change time.
    pub changed: Timestamp,
    /// Whether the engine wrote it, rather than a user.
    pub is_engines: bool,
}

impl File {
    /// Returns what it is.
    pub fn kind(&self) -> FileKind {
        match &self.matter {
            Matter::Directory(_) => FileKind::Directory,
            Matter::File(_) => FileKind::File,
            Matter::Symlink(_) => FileKind::Symlink,
        }
    }

    /// Returns what programs see of it.
    pub fn stat(&self) -> Stat {
        let size = match &self.matter {
            Matter::File(bytes) => bytes.len() as u64,
            _ => 0,
        };
        Stat {
            kind: self.kind(),
            size,
            mode: self.mode,
            modified: self.modified,
            changed: self.changed,
            inode: self.number,
        }
    }
}

/// A disk: the folder and its service directory.
#[derive(Debug, Clone)]
pub struct Disk {
    files: BTreeMap<Key, File>,
    root: Key,
    last_key: Key,
    last_number: u64,
    /// Numbers of removed files, to be given out again.
    free_numbers: Vec<u64>,
    /// Change times rise by a nanosecond at least, as on file systems with fine times.
    ticks: u32,
    /// Files that stand aside.
    pub staged: BTreeMap<StageToken, Key>,
    /// Files that were displaced, and are on their way to the trash.
    pub displaced: BTreeMap<StageToken, Key>,
    /// Files in the trash: label, path, and number where a path came twice.
    pub trash: BTreeMap<(String, RelativePath, u32), Key>,
    /// The identity of the root.
    pub identity: Option<[u8; 16]>,
}

type Result<T> = std::result::Result<T, FileError>;

impl Disk {
    /// Makes an empty disk.
    pub fn new(now: Timestamp) -> Self {
        let mut disk = Self {
            files: BTreeMap::new(),
            root: 0,
            last_key: 0,
            last_number: 1,
            free_numbers: Vec::new(),
            ticks: 0,
            staged: BTreeMap::new(),
            displaced: BTreeMap::new(),
            trash: BTreeMap::new(),
            identity: None,
        };
        disk.root = disk.add(Matter::Directory(Arc::default()), 0o755, now, false);
        disk
    }

    /// Returns the key of the root.
    pub fn root(&self) -> Key {
        self.root
    }

    /// Returns a file.
    ///
    /// # Panics
    /// Where there is none: keys come from the disk.
    pub fn file(&self, key: Key) -> &File {
        &self.files[&key]
    }

    /// Returns a file, if it was not removed.
    pub fn find(&self, key: Key) -> Option<&File> {
        self.files.get(&key)
    }

    /// Returns a file to change it; its change time is set.
    pub fn touch(&mut self, key: Key, now: Timestamp) -> &mut File {
        let changed = self.tick(now);
        let file = self.files.get_mut(&key).expect("keys come from the disk");
        file.changed = changed;
        file
    }

    /// Returns a file to change it behind everybody's back.
    pub fn file_mut(&mut self, key: Key) -> &mut File {
        self.files.get_mut(&key).expect("keys come from the disk")
    }

    fn tick(&mut self, now: Timestamp) -> Timestamp {
        self.ticks += 1;
        let nanoseconds = (now.nanoseconds + self.ticks) % 1_000_000_000;
        Timestamp { nanoseconds, ..now }
    }

    /// Adds a file without a name.
    pub fn add(&mut self, matter: Matter, mode: u32, now: Timestamp, is_engines: bool) -> Key {
        let number = self.free_numbers.pop().unwrap_or_else(|| {
            self.last_number += 1;
            self.last_number
        });
        self.last_key += 1;
        let changed = self.tick(now);
        let file = File { number, matter, mode, modified: now, changed, is_engines };
        self.files.insert(self.last_key, file);
        self.last_key
    }

    /// Removes a file that has no name any more; its number may be given out again.
    pub fn remove(&mut self, key: Key) {
        if let Some(file) = self.files.remove(&key) {
            self.free_numbers.push(file.number);
        }
    }

    /// Returns the names in a directory; none for anything else.
    pub fn names(&self, key: Key) -> Arc<BTreeMap<Vec<u8>, Key>> {
        match self.files.get(&key).map(|file| &file.matter) {
            Some(Matter::Directory(names)) => names.clone(),
            _ => Arc::default(),
        }
    }

    /// Gives a file a name.
    pub fn link(&mut self, directory: Key, name: &[u8], key: Key, now: Timestamp) {
        let file = self.touch(directory, now);
        file.modified = now;
        if let Matter::Directory(names) = &mut file.matter {
            Arc::make_mut(names).insert(name.to_vec(), key);
        }
        self.touch(key, now);
    }

    /// Takes a name away.
    pub fn unlink(&mut self, directory: Key, name: &[u8], now: Timestamp) {
        let file = self.touch(directory, now);
        file.modified = now;
        if let Matter::Directory(names) = &mut file.matter {
            Arc::make_mut(names).remove(name);
        }
    }

    /// Finds the directory that a path lies in and its last name.
    ///
    /// # Errors
    /// [`FileError::NotFound`] and [`FileError::Escapes`] for the parents; [`FileError::NameRefused`] for the root and
    /// whatever lies in the service directory.
    pub fn place(&self, path: &RelativePath) -> Result<(Key, Vec<u8>)> {
        let Some((parent, name)) = path.split_last() else {
            return Err(FileError::NameRefused(path.clone()));
        };
        let is_service = path.names().next().is_some_and(|first| first.as_bytes() == b".syncline");
        if is_service {
            return Err(FileError::NameRefused(path.clone()));
        }
        let mut at = self.root;
        for step in parent.names() {
            let next = self.names(at).get(step.as_bytes()).copied();
            at = next.ok_or_else(|| FileError::NotFound(path.clone()))?;
            if self.file(at).kind() != FileKind::Directory {
                return Err(FileError::Escapes(path.clone()));
            }
        }
        Ok((at, name.as_bytes().to_vec()))
    }

    /// Finds what a path leads to.
    ///
    /// # Errors
    /// As [`Self::place`].
    pub fn resolve(&self, path: &RelativePath) -> Result<Option<Key>> {
        if path.is_root() {
            return Ok(Some(self.root));
        }
        let (directory, name) = self.place(path)?;
        Ok(self.names(directory).get(&name).copied())
    }

    /// Finds a directory.
    ///
    /// # Errors
    /// As [`Self::place`]; [`FileError::Escapes`] for what is none.
    pub fn directory(&self, path: &RelativePath) -> Result<Key> {
        let key = self.resolve(path)?.ok_or_else(|| FileError::NotFound(path.clone()))?;
        match self.file(key).kind() {
            FileKind::Directory => Ok(key),
            _ => Err(FileError::Escapes(path.clone())),
        }
    }

    /// Tells whether `key` is `directory` or lies in it.
    pub fn lies_in(&self, key: Key, directory: Key) -> bool {
        key == directory || self.names(directory).values().any(|child| self.lies_in(key, *child))
    }

    /// Returns everything in the folder but its root, by path.
    pub fn walk(&self) -> Vec<(RelativePath, Key)> {
        let mut found = Vec::new();
        let mut pending = vec![(RelativePath::ROOT, self.root)];
        while let Some((path, key)) = pending.pop() {
            for (name, child) in self.names(key).iter() {
                let Ok(name) = model::Name::new(name.as_slice()) else { continue };
                let Ok(at) = path.join(&name) else { continue };
                pending.push((at.clone(), *child));
                found.push((at, *child));
            }
        }
        found.sort();
        found
    }

    /// Puts a file into the trash.
    pub fn keep(&mut self, label: &str, path: &RelativePath, key: Key) {
        let at = |number| (label.to_owned(), path.clone(), number);
        let number = (0..).find(|number| !self.trash.contains_key(&at(*number)));
        self.trash.insert(at(number.expect("numbers do not end")), key);
    }

    /// Removes a file, or a directory with everything in it.
    pub fn remove_tree(&mut self, key: Key) {
        for child in self.names(key).values() {
            self.remove_tree(*child);
        }
        self.remove(key);
    }

    /// Returns a copy as a program makes it that copies files: with other numbers and change times, and without what
    /// stands aside.
    pub fn copied(&self, now: Timestamp) -> Self {
        let mut copy = self.clone();
        for key in std::mem::take(&mut copy.staged).into_values() {
            copy.remove(key);
        }
        copy.free_numbers.clear();
        for key in copy.keys() {
            copy.last_number += 1;
            let number = copy.last_number;
            copy.touch(key, now).number = number;
        }
        copy
    }

    /// Returns every key on the disk.
    pub fn keys(&self) -> Vec<Key> {
        self.files.keys().copied().collect()
    }
}
