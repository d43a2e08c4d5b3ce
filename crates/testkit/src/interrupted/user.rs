//! What the user has in the folder, and changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Name, RelativePath};

use crate::file_system::SimulatedFileSystem;
use crate::file_system::disk::Matter;
use crate::random::Dice;

/// How long the larger files are: they do not fit into a commit, and their pack goes to the stores.
const LARGE: usize = 150_000;

/// Files and their bytes, by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files(BTreeMap<RelativePath, Arc<Vec<u8>>>);

/// Bytes that neither compress nor repeat.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Dice::new(seed).fill(&mut bytes);
    bytes
}

fn path(text: &str) -> RelativePath {
    text.split('/').fold(RelativePath::ROOT, |path, name| {
        path.join(&Name::new(name).expect("a name")).expect("a path")
    })
}

impl Files {
    /// What is there at first.
    pub fn first() -> Self {
        let mut files = Self(BTreeMap::new());
        files.set("notes/today", noise(1, 300));
        files.set("notes/yesterday", noise(2, 400));
        files.set("photo", noise(3, LARGE));
        files.set("old photo", noise(4, LARGE));
        files.set("film", noise(5, 2 * LARGE));
        files
    }

    /// What the user makes of it: edits, a new file, a new directory, a new place, deletions.
    pub fn change(&mut self) {
        self.set("notes/today", noise(11, 350));
        self.set("film", noise(12, 2 * LARGE));
        self.set("album/cover", noise(13, LARGE));
        self.set("album/title", noise(14, 100));
        let photo = self.0.remove(&path("photo"));
        self.0.extend(photo.map(|bytes| (path("album/photo"), bytes)));
        self.0.remove(&path("old photo"));
        self.0.remove(&path("notes/yesterday"));
    }

    /// Edits a small file once more.
    pub fn edit(&mut self, number: u64) {
        self.set("notes/today", noise(20 + number, 350));
    }

    fn set(&mut self, place: &str, bytes: Vec<u8>) {
        self.0.insert(path(place), Arc::new(bytes));
    }

    /// Makes a folder hold these files. What has another place now is moved, as a user does.
    pub fn put_into(&self, folder: &SimulatedFileSystem) {
        folder.with_disk(|disk, now| {
            let mut moved = BTreeMap::new();
            for (place, key) in disk.walk() {
                let Matter::File(bytes) = &disk.file(key).matter else { continue };
                if !self.0.contains_key(&place) {
                    moved.insert(bytes.clone(), key);
                    let (directory, name) = disk.place(&place).expect("it is there");
                    disk.unlink(directory, &name, now);
                }
            }
            for (place, bytes) in &self.0 {
                let (parent, _) = place.split_last().expect("no file is the root");
                if disk.resolve(&parent).expect("directories lie in the root").is_none() {
                    let (root, name) = disk.place(&parent).expect("it lies in the root");
                    let key = disk.add(Matter::Directory(Arc::default()), 0o755, now, false);
                    disk.link(root, &name, key, now);
                }
                match disk.resolve(place).expect("its directory is there") {
                    Some(key) if disk.file(key).matter == Matter::File(bytes.clone()) => {}
                    Some(key) => {
                        let file = disk.touch(key, now);
                        (file.matter, file.modified) = (Matter::File(bytes.clone()), now);
                    }
                    None => {
                        let matter = Matter::File(bytes.clone());
                        let key = moved.remove(bytes);
                        let key = key.unwrap_or_else(|| disk.add(matter, 0o644, now, false));
                        let (directory, name) = disk.place(place).expect("it has a directory");
                        disk.link(directory, &name, key, now);
                    }
                }
            }
            for key in moved.into_values() {
                disk.remove(key);
            }
        });
    }

    /// Checks that a folder holds these files and no others.
    ///
    /// # Errors
    /// A text that says what differs.
    pub fn compare(&self, folder: &SimulatedFileSystem) -> Result<(), String> {
        let disk = folder.disk();
        let mut found = BTreeMap::new();
        for (place, key) in disk.walk() {
            if let Matter::File(bytes) = &disk.file(key).matter {
                found.insert(place, bytes.clone());
            }
        }
        let places: std::collections::BTreeSet<_> = self.0.keys().chain(found.keys()).collect();
        match places.into_iter().find(|place| self.0.get(place) != found.get(place)) {
            None => Ok(()),
            Some(place) => {
                let length =
                    |files: &BTreeMap<_, Arc<Vec<u8>>>| files.get(place).map(|it| it.len());
                Err(format!("{place} has {:?} bytes, not {:?}", length(&found), length(&self.0)))
            }
        }
    }
}
