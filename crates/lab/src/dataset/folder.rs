//! A folder of files that people add, edit, rename and remove, version after version.

use std::path::Path;

use super::Dataset;
use super::item::{Item, Kind};
use super::prose::Prose;
use crate::error::LabError;
use crate::files;
use crate::random::Random;

/// A kind of files in a folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) kind: Kind,
    /// How many bytes of a thousand are of this kind.
    pub(super) of_thousand: u64,
    /// How large the smallest are, in KiB.
    pub(super) least_kib: u64,
    /// How often this may be doubled: files are as many from one power of two to the next as to the one after it.
    pub(super) doublings: u32,
}

/// When the first version is complete.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    Files(usize),
    Bytes(u64),
}

/// What people do.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Add,
    Edit,
    Remove,
    Rename,
}

/// How a folder is made, and what becomes of it.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) name: &'static str,
    pub(super) versions: usize,
    pub(super) start: Start,
    pub(super) shares: &'static [Share],
    /// How many files change from one version to the next, at least and at most.
    pub(super) changes: (u64, u64),
    /// What changes are, of a hundred.
    pub(super) mix: [(Change, u64); 4],
    /// Large files are edited more often: as this power of their size says.
    pub(super) edited_by_size: u32,
    /// In how many places a file is edited before the next version.
    pub(super) edits: u64,
}

/// Files go into so many folders.
const FOLDERS: u64 = 12;

/// Which change comes next is found by steps of so many hundredths: of any few changes one after the other, as many are of each sort as of all.
const MIXED_BY: u64 = 61;

/// One file of a folder.
struct Entry {
    path: String,
    item: Item,
    size: u64,
    /// Where it is in the version before; nothing where that is not what it is now.
    before: Option<String>,
}

/// A file of the version that is made.
pub(crate) enum Came<'a> {
    /// It has these bytes now.
    New(&'a [u8]),
    /// It is what this path was in the version before.
    Kept(&'a str),
}

/// Hears of each file of a version, by its path.
pub(crate) type Hear<'a> = dyn FnMut(&str, Came<'_>) -> Result<(), LabError> + 'a;

/// A folder that is in memory, in one version after the other.
pub(super) struct Folder {
    recipe: Recipe,
    /// How many versions it was in.
    version: usize,
    /// By how much files are smaller than the recipe has them, and fewer.
    divisor: u64,
    prose: Prose,
    random: Random,
    entries: Vec<Entry>,
    /// How many files were made of each kind, in the order of the shares.
    made: Vec<u64>,
    /// How many files were changed.
    changed: u64,
    /// How many are to be changed that are not enough for a whole one of a smaller folder.
    owed: u64,
}

/// Makes all versions below a folder; files are as many times smaller, and fewer, as `divisor` says. What has not changed is one file with two names.
///
/// # Errors
/// [`LabError::Write`].
pub(super) fn write(
    recipe: &Recipe,
    divisor: u64,
    seed: u64,
    folder: &Path,
) -> Result<Dataset, LabError> {
    let mut this = Folder::new(recipe.clone(), divisor, seed);
    for version in 1..=recipe.versions {
        let [old, new] = [version - 1, version].map(|version| folder.join(version.to_string()));
        this.advance(&mut |path, came| match came {
            Came::New(bytes) => files::write(&new.join(path), bytes),
            Came::Kept(before) => files::link(&old.join(before), &new.join(path)),
        })?;
    }
    Dataset::open(recipe.name, folder)
}

impl Folder {
    /// A folder that is in no version yet.
    pub(super) fn new(recipe: Recipe, divisor: u64, seed: u64) -> Self {
        let (prose, random) = (Prose::new(), Random::new(seed));
        let made = vec![0; recipe.shares.len()];
        let (version, entries, changed, owed) = (0, Vec::new(), 0, 0);
        Self { recipe, version, divisor, prose, random, entries, made, changed, owed }
    }

    /// Makes the next version.
    ///
    /// # Errors
    /// Those of `hear`.
    pub(super) fn advance(&mut self, hear: &mut Hear<'_>) -> Result<(), LabError> {
        self.version += 1;
        if self.version > 1 {
            self.change();
            return self.save(0, hear);
        }
        while !self.is_complete() {
            self.add();
            self.save(self.entries.len() - 1, hear)?;
        }
        Ok(())
    }

    /// Returns the bytes of a file of this version, by its place in the row in which they were heard of.
    pub(super) fn bytes_of(&self, place: usize) -> Vec<u8> {
        self.entries[place].item.bytes(&self.prose)
    }

    fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).sum()
    }

    fn is_complete(&self) -> bool {
        match self.recipe.start {
            Start::Files(count) => self.entries.len() >= count,
            Start::Bytes(bytes) => self.bytes() >= bytes / (self.divisor * self.divisor),
        }
    }

    /// Makes a file of the kind of which there is too little.
    fn add(&mut self) {
        let shares = self.recipe.shares;
        let fullness = |share: &Share| {
            let same = self.entries.iter().filter(|entry| entry.item.kind == share.kind);
            same.map(|entry| entry.size).sum::<u64>() * 1000 / share.of_thousand
        };
        let which = (0..shares.len()).min_by_key(|which| fullness(&shares[*which]));
        let which = which.expect("a recipe has kinds");
        let share = shares[which];
        self.made[which] += 1;
        // One power of two after the other, so that few files have the sizes that many would have.
        let doubled = self.made[which] % u64::from(share.doublings);
        let least = (share.least_kib * 1024 / self.divisor) << doubled;
        let size = least + self.random.below(least);
        let item = Item::new(share.kind, size, &self.prose, &mut self.random);
        let (number, folder) = (self.made.iter().sum::<u64>(), self.random.below(FOLDERS));
        let name = self.name(&format!("{number}.{}", share.kind.extension()));
        self.entries.push(Entry {
            path: format!("folder{folder}/{name}"),
            item,
            size,
            before: None,
        });
    }

    fn name(&mut self, end: &str) -> String {
        let words = [(); 2].map(|()| self.prose.word(&mut self.random).to_owned());
        format!("{}-{end}", words.join("-"))
    }

    fn change(&mut self) {
        let (least, most) = self.recipe.changes;
        let wanted = least + self.random.below(most - least + 1);
        self.owed += wanted;
        while self.owed >= self.divisor {
            self.owed -= self.divisor;
            self.changed += 1;
            let mut place = self.changed * MIXED_BY % 100;
            let change = self.recipe.mix.iter().find(|(_, share)| {
                let is_this = place < *share;
                place = place.saturating_sub(*share);
                is_this
            });
            match change.map_or(Change::Edit, |(change, _)| *change) {
                Change::Add => self.add(),
                Change::Edit => self.edit(),
                // A folder is never emptied.
                Change::Remove if self.entries.len() > 2 => {
                    let place = self.random.below(self.entries.len() as u64);
                    self.entries.remove(place as usize);
                }
                Change::Remove => {}
                Change::Rename => {
                    let place = self.random.below(self.entries.len() as u64) as usize;
                    let (folder, end) = {
                        let path = &self.entries[place].path;
                        let (folder, name) = path.split_once('/').expect("files are in folders");
                        let end = name.rsplit('-').next().expect("a name has an end");
                        (folder.to_owned(), end.to_owned())
                    };
                    let name = self.name(&end);
                    self.entries[place].path = format!("{folder}/{name}");
                }
            }
        }
    }

    fn edit(&mut self) {
        let power = self.recipe.edited_by_size;
        let weight = |entry: &Entry| match entry.item.kind.is_edited() {
            true => (entry.size / 1024 + 1).pow(power),
            false => 0,
        };
        let all: u64 = self.entries.iter().map(weight).sum();
        if all == 0 {
            return;
        }
        let mut place = self.random.below(all);
        let chosen = self.entries.iter_mut().find(|entry| {
            let weight = weight(entry);
            let is_this = place < weight;
            place = place.saturating_sub(weight);
            is_this
        });
        if let Some(entry) = chosen {
            for _ in 0..self.recipe.edits {
                entry.item.edit(&self.prose, &mut self.random);
            }
            entry.before = None;
        }
    }

    /// Tells of the files of a version from a place on.
    fn save(&mut self, from: usize, hear: &mut Hear<'_>) -> Result<(), LabError> {
        for entry in &mut self.entries[from..] {
            if let Some(before) = &entry.before {
                hear(&entry.path, Came::Kept(before))?;
            } else {
                let bytes = entry.item.bytes(&self.prose);
                entry.size = bytes.len() as u64;
                hear(&entry.path, Came::New(&bytes))?;
            }
            entry.before = Some(entry.path.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    use super::*;

    const RECIPE: Recipe = Recipe {
        name: "X",
        versions: 6,
        start: Start::Files(14),
        shares: &[
            Share { kind: Kind::Docx, of_thousand: 500, least_kib: 4, doublings: 3 },
            Share { kind: Kind::Track, of_thousand: 300, least_kib: 8, doublings: 1 },
            Share { kind: Kind::Text, of_thousand: 200, least_kib: 1, doublings: 2 },
        ],
        changes: (2, 4),
        mix: [(Change::Add, 40), (Change::Edit, 30), (Change::Remove, 15), (Change::Rename, 15)],
        edited_by_size: 1,
        edits: 2,
    };

    /// The files of each version, by their paths there.
    fn versions(dataset: &Dataset) -> Vec<BTreeMap<PathBuf, Vec<u8>>> {
        let version = |name: &String| {
            let root = dataset.folder.join(name);
            let paths = dataset.files(name).unwrap().into_iter();
            let file = |path: PathBuf| {
                (path.strip_prefix(&root).unwrap().to_owned(), files::read(&path).unwrap())
            };
            paths.map(file).collect()
        };
        dataset.versions.iter().map(version).collect()
    }

    #[test]
    fn a_seed_makes_the_same_folder_again_and_another_seed_another() {
        let room = tempfile::tempdir().unwrap();
        let make =
            |seed, name: &str| versions(&write(&RECIPE, 1, seed, &room.path().join(name)).unwrap());
        let one = make(1, "one");
        assert_eq!(one, make(1, "again"));
        assert_ne!(one, make(2, "other"));
        assert_eq!((one.len(), one[0].len()), (6, 14));
    }

    #[test]
    fn as_many_files_change_as_the_recipe_says_in_every_way_it_says() {
        let room = tempfile::tempdir().unwrap();
        let recipe = Recipe { versions: 30, ..RECIPE };
        let all = versions(&write(&recipe, 1, 3, room.path()).unwrap());
        let (mut added, mut edited, mut removed, mut renamed) = (0, 0, 0, 0);
        for pair in all.windows(2) {
            let (old, new) = (&pair[0], &pair[1]);
            let contents: BTreeSet<_> = old.values().collect();
            let mut changed = 0;
            for (path, bytes) in new {
                match (old.get(path), contents.contains(bytes)) {
                    (Some(before), _) if before != bytes => {
                        (edited, changed) = (edited + 1, changed + 1);
                    }
                    (Some(_), _) => {}
                    (None, true) => renamed += 1,
                    (None, false) => (added, changed) = (added + 1, changed + 1),
                }
            }
            let still: BTreeSet<_> = new.values().collect();
            removed += old
                .iter()
                .filter(|(path, bytes)| !new.contains_key(*path) && !still.contains(bytes))
                .count();
            assert!(changed <= 4, "{changed}");
        }
        let changes = [added, edited, removed, renamed];
        assert!(changes.iter().all(|count| *count > 2), "{changes:?}");
    }

    #[test]
    fn smaller_folders_have_fewer_and_smaller_files_of_the_same_kinds() {
        let room = tempfile::tempdir().unwrap();
        let recipe = Recipe { start: Start::Bytes(800_000), versions: 2, ..RECIPE };
        let make = |divisor, name: &str| {
            versions(&write(&recipe, divisor, 1, &room.path().join(name)).unwrap()).swap_remove(0)
        };
        let (whole, small) = (make(1, "whole"), make(4, "small"));
        let bytes =
            |files: &BTreeMap<PathBuf, Vec<u8>>| files.values().map(Vec::len).sum::<usize>();
        assert!((800_000..880_000).contains(&bytes(&whole)), "{}", bytes(&whole));
        assert!((50_000..75_000).contains(&bytes(&small)), "{}", bytes(&small));
        assert!(small.len() * 2 < whole.len(), "{} of {}", small.len(), whole.len());
        for extension in ["docx", "mp3", "txt"] {
            let has = |path: &PathBuf| path.extension().is_some_and(|end| end == extension);
            assert!(small.keys().any(has) && whole.keys().any(has), "{extension}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_has_not_changed_takes_no_room_again() {
        use std::os::unix::fs::MetadataExt;
        let room = tempfile::tempdir().unwrap();
        let dataset = write(&RECIPE, 1, 1, room.path()).unwrap();
        let files = dataset.versions.iter().flat_map(|version| dataset.files(version).unwrap());
        let (mut inodes, mut count) = (BTreeSet::new(), 0);
        for path in files {
            inodes.insert(path.metadata().unwrap().ino());
            count += 1;
        }
        assert!(inodes.len() * 2 < count, "{} of {count}", inodes.len());
    }
}
