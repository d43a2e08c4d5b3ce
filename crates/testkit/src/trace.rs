//! What users do: seeded random operations on the disk of their device, between any two calls of the engine.

use std::sync::Arc;

use model::path::NAME_LENGTH_MAX;
use model::{RelativePath, Timestamp};

use crate::chronicle::ContentHash;
use crate::file_system::Surroundings;
use crate::file_system::disk::{Disk, Key, Matter};
use crate::random::Dice;

mod operations;

/// What a user can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Deed {
    Create,
    Edit,
    EditKeepingTime,
    Append,
    Truncate,
    Delete,
    Rename,
    Move,
    MakeDirectory,
    RemoveTree,
    ReplaceByRename,
    MakeLink,
    SetMode,
    SetTime,
    FileToDirectory,
    DirectoryToFile,
    Swap,
    Cycle,
    WriteSlowly,
    Copy,
    CreateLarge,
}

impl Deed {
    /// Everything.
    pub const ALL: [Self; 21] = [
        Self::Create,
        Self::Edit,
        Self::EditKeepingTime,
        Self::Append,
        Self::Truncate,
        Self::Delete,
        Self::Rename,
        Self::Move,
        Self::MakeDirectory,
        Self::RemoveTree,
        Self::ReplaceByRename,
        Self::MakeLink,
        Self::SetMode,
        Self::SetTime,
        Self::FileToDirectory,
        Self::DirectoryToFile,
        Self::Swap,
        Self::Cycle,
        Self::WriteSlowly,
        Self::Copy,
        Self::CreateLarge,
    ];
}

/// Names that users give.
#[must_use]
pub fn plain_names() -> Vec<Vec<u8>> {
    ["a", "b", "c", "d", "e.txt", "f.txt", "g.tar.gz"].map(|name| name.as_bytes().to_vec()).to_vec()
}

/// Names that only some users give, and every file system takes.
#[must_use]
pub fn strange_names() -> Vec<Vec<u8>> {
    let long = [&[b'n'; 251][..], b".txt"].concat();
    let mut names = vec![
        long,
        vec![b'm'; 255],
        b"\xff\xfe.bin".to_vec(),
        b"a\xc3".to_vec(),
        b"line\nbreak".to_vec(),
    ];
    names.extend(
        ["A", "E.TXT", "\u{e9}", "e\u{301}", " ", "-rf", "...", ".hidden"]
            .map(|name| name.as_bytes().to_vec()),
    );
    names
}

/// A user of one device.
pub struct User {
    device: usize,
    dice: Dice,
    deeds: Vec<Deed>,
    names: Vec<Vec<u8>>,
    left: u32,
    serial: u64,
    writing: Option<Writing>,
    last: Option<RelativePath>,
    /// What all names of this user end with; such a user touches nothing else.
    mark: Option<String>,
}

/// A file that is being written, piece by piece.
struct Writing {
    key: Key,
    path: RelativePath,
    pieces: Vec<Vec<u8>>,
}

impl User {
    /// Makes a user who does so many deeds of these kinds with these names.
    pub fn new(
        device: usize,
        dice: Dice,
        deeds: Vec<Deed>,
        names: Vec<Vec<u8>>,
        left: u32,
    ) -> Self {
        Self { device, dice, deeds, names, left, serial: 0, writing: None, last: None, mark: None }
    }

    /// Lets the user touch only what is their own.
    pub fn apart(mut self) -> Self {
        let mark = format!("~{}", self.device);
        self.names.retain(|name| name.len() + mark.len() < NAME_LENGTH_MAX / 2);
        for name in &mut self.names {
            name.extend_from_slice(mark.as_bytes());
        }
        self.mark = Some(mark);
        self
    }

    fn may_touch(&self, path: &RelativePath) -> bool {
        let Some(mark) = &self.mark else { return true };
        let has_mark = |name: model::Name| {
            name.as_bytes().windows(mark.len()).any(|window| window == mark.as_bytes())
        };
        path.names().next().is_some_and(has_mark)
    }

    /// Lets the user do more.
    pub fn give(&mut self, deeds: u32) {
        self.left += deeds;
    }

    /// Returns the directory in which the last deed was done.
    pub fn last_directory(&self) -> Option<RelativePath> {
        self.last.clone()
    }

    /// Returns how many deeds are left.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Does the next deed, and hides no edit unless that is allowed. Returns whether anything is left to do.
    pub fn act(
        &mut self,
        disk: &mut Disk,
        now: Timestamp,
        surroundings: &Surroundings,
        may_hide: bool,
    ) -> bool {
        if self.writing.is_some() && (self.left == 0 || self.dice.chance(700)) {
            let mut hand = Hand { user: self, disk, now, surroundings };
            hand.write_on();
            return true;
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let mut deed = *self.dice.pick(&self.deeds.clone());
        if deed == Deed::EditKeepingTime && !may_hide {
            deed = Deed::Edit;
        }
        let mut hand = Hand { user: self, disk, now, surroundings };
        hand.perform(deed);
        true
    }

    /// Makes bytes that nobody made before.
    fn fresh_bytes(&mut self, length: usize) -> Vec<u8> {
        self.serial += 1;
        let mut bytes = format!("device {} version {} ", self.device, self.serial).into_bytes();
        let start = bytes.len();
        bytes.resize(start.max(length), 0);
        self.dice.fill(&mut bytes[start..]);
        bytes
    }
}

/// The user at the disk.
struct Hand<'a> {
    user: &'a mut User,
    disk: &'a mut Disk,
    now: Timestamp,
    surroundings: &'a Surroundings,
}

impl Hand<'_> {
    fn note(&self, what: &'static str, details: impl std::fmt::Display) {
        self.surroundings.record.note(what, format_args!("[{}] {details}", self.user.device));
    }

    fn touched(&mut self, path: &RelativePath) {
        self.user.last = path.split_last().map(|(directory, _)| directory);
        self.surroundings.chronicle.touched(self.user.device, path);
    }

    fn completed(&mut self, path: &RelativePath, key: Key) {
        if let Some(content) = ContentHash::of(&self.disk.file(key).matter) {
            self.surroundings.chronicle.completed(self.user.device, path, content);
        }
        self.touched(path);
    }

    /// Notes that something was moved or changed, and with it all that lies in it.
    fn handled(&self, key: Key) {
        if let Some(content) = ContentHash::of(&self.disk.file(key).matter) {
            self.surroundings.chronicle.handled(self.user.device, content);
        }
        self.disk.names(key).values().for_each(|child| self.handled(*child));
    }

    /// Notes that everything at and below a place is about to be overwritten or deleted.
    fn destroy(&mut self, path: &RelativePath, key: Key, is_deletion: bool) {
        self.touched(path);
        if let Some(content) = ContentHash::of(&self.disk.file(key).matter) {
            // What is there twice is not gone with one of both.
            let is_there = |(_, other): &(RelativePath, Key)| {
                *other != key && ContentHash::of(&self.disk.file(*other).matter) == Some(content)
            };
            let is_deletion = is_deletion && !self.disk.walk().iter().any(is_there);
            self.surroundings.chronicle.destroyed(self.user.device, content, is_deletion);
        }
        for (name, child) in self.disk.names(key).iter() {
            if let Some(at) = join(path, name) {
                self.destroy(&at, *child, is_deletion);
            }
        }
    }

    /// Picks something of the folder that `is_meant`.
    fn pick(&mut self, is_meant: impl Fn(&Disk, Key) -> bool) -> Option<(RelativePath, Key)> {
        let mut found = self.disk.walk();
        found.retain(|(path, key)| self.user.may_touch(path) && is_meant(self.disk, *key));
        if found.is_empty() {
            None
        } else {
            Some(found.swap_remove(self.user.dice.index(found.len())))
        }
    }

    fn pick_file(&mut self) -> Option<(RelativePath, Key)> {
        self.pick(|disk, key| matches!(disk.file(key).matter, Matter::File(_)))
    }

    /// Picks a directory, the root among them, in which there is room for deeper ones.
    fn pick_directory(&mut self) -> (RelativePath, Key) {
        let mut found = self.disk.walk();
        found.retain(|(path, key)| {
            path.depth() < 4
                && self.user.may_touch(path)
                && matches!(self.disk.file(*key).matter, Matter::Directory(_))
        });
        found.push((RelativePath::ROOT, self.disk.root()));
        let index = self.user.dice.index(found.len());
        found.swap_remove(index)
    }

    fn fresh_name(&mut self) -> Vec<u8> {
        self.user.dice.pick(&self.user.names).clone()
    }

    /// Picks a place where nothing is.
    fn free_place(&mut self) -> Option<(RelativePath, Key, Vec<u8>)> {
        for _ in 0..8 {
            let (directory, key) = self.pick_directory();
            let name = self.fresh_name();
            if !self.disk.names(key).contains_key(&name) {
                return Some((join(&directory, &name)?, key, name));
            }
        }
        None
    }

    /// Makes a file, link or directory at a free place.
    fn make(&mut self, matter: Matter) -> Option<(RelativePath, Key)> {
        let (path, directory, name) = self.free_place()?;
        let key = self.make_at(&path, directory, &name, matter);
        Some((path, key))
    }

    fn make_at(&mut self, path: &RelativePath, directory: Key, name: &[u8], matter: Matter) -> Key {
        let mode = match &matter {
            Matter::Directory(_) => 0o755,
            Matter::File(_) => 0o644,
            Matter::Symlink(_) => 0,
        };
        let key = self.disk.add(matter, mode, self.now, false);
        self.disk.link(directory, name, key, self.now);
        self.completed(path, key);
        key
    }

    /// Writes a file in place.
    fn overwrite(&mut self, path: &RelativePath, key: Key, bytes: Vec<u8>) {
        self.destroy(path, key, false);
        self.evolve(key, &bytes);
        let now = self.now;
        let file = self.disk.touch(key, now);
        file.matter = Matter::File(Arc::new(bytes));
        file.modified = now;
        file.is_engines = false;
        self.completed(path, key);
    }

    /// Notes that a file is about to hold something else.
    fn evolve(&self, key: Key, bytes: &[u8]) {
        if let Some(before) = ContentHash::of(&self.disk.file(key).matter) {
            self.surroundings.chronicle.evolved(before, ContentHash::of_file(bytes));
        }
    }

    /// Gives a free name to what has another one.
    fn rename(&mut self, from: &RelativePath, to: &RelativePath) -> bool {
        let (Ok((old_directory, old_name)), Ok((directory, name))) =
            (self.disk.place(from), self.disk.place(to))
        else {
            return false;
        };
        let Some(key) = self.disk.names(old_directory).get(&old_name).copied() else {
            return false;
        };
        if self.disk.lies_in(directory, key) || self.disk.names(directory).contains_key(&name) {
            return false;
        }
        self.disk.unlink(old_directory, &old_name, self.now);
        self.disk.link(directory, &name, key, self.now);
        self.touched(from);
        self.touched(to);
        self.surroundings.chronicle.renamed(&old_name, &name);
        self.handled(key);
        true
    }

    /// Removes something with everything in it.
    fn remove(&mut self, path: &RelativePath, key: Key) {
        self.destroy(path, key, true);
        if let Ok((directory, name)) = self.disk.place(path) {
            self.disk.unlink(directory, &name, self.now);
            self.disk.remove_tree(key);
        }
    }

    /// Writes the next piece of a file that is being written, unless it was removed meanwhile.
    fn write_on(&mut self) {
        let Some(mut writing) = self.user.writing.take() else { return };
        let is_there = self.disk.resolve(&writing.path).ok().flatten() == Some(writing.key);
        if !is_there || writing.pieces.is_empty() {
            return;
        }
        let piece = writing.pieces.remove(0);
        self.destroy(&writing.path, writing.key, false);
        let Matter::File(before) = self.disk.file(writing.key).matter.clone() else { return };
        let bytes = [before.as_slice(), &piece].concat();
        self.evolve(writing.key, &bytes);
        let now = self.now;
        let file = self.disk.touch(writing.key, now);
        file.matter = Matter::File(Arc::new(bytes));
        file.modified = now;
        // Whoever made the file, these bytes are the user's, whose program flushes nothing.
        file.is_engines = false;
        self.note("writes on", &writing.path);
        self.touched(&writing.path);
        if writing.pieces.is_empty() {
            self.completed(&writing.path, writing.key);
        } else {
            if let Some(content) = ContentHash::of(&self.disk.file(writing.key).matter) {
                self.surroundings.chronicle.instant(content);
                self.surroundings.chronicle.handled(self.user.device, content);
            }
            self.user.writing = Some(writing);
        }
    }
}

fn join(directory: &RelativePath, name: &[u8]) -> Option<RelativePath> {
    directory.join(&model::Name::new(name).ok()?).ok()
}
