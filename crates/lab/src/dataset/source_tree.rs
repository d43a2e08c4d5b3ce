//! A source tree that people work on, made from a seed: a small stand-in for dataset D where nobody names a real one.

use std::path::Path;

use super::Dataset;
use crate::error::LabError;
use crate::files;
use crate::random::Random;

/// What is made.
#[derive(Debug, Clone, Copy)]
pub struct SourceTree {
    /// Equal seeds make equal bytes.
    pub seed: u64,
    /// How many versions.
    pub versions: usize,
    /// How many files the first version has.
    pub files: usize,
}

/// Lines of a file: fewer than this, and this many more at most.
const LINES_MIN: u64 = 40;
const LINES_MORE: u64 = 900;

/// One file in so many is edited from one version to the next.
const EDITED_ONE_IN: u64 = 25;

/// Files are so many to a folder.
const FOLDER_FILES: usize = 20;

impl SourceTree {
    /// Writes all versions below a folder.
    ///
    /// # Errors
    /// [`LabError::Write`].
    pub fn write(self, name: &str, folder: &Path) -> Result<Dataset, LabError> {
        let mut tree = Tree::new(self.seed, self.files);
        for version in 1..=self.versions {
            if version > 1 {
                tree.grow();
            }
            for (number, file) in tree.files.iter().enumerate() {
                let path = format!("{version}/{}", path_of(number));
                files::write(&folder.join(path), file.lines.concat())?;
            }
        }
        Dataset::open(name, folder)
    }
}

/// Where a file is in each version.
pub(super) fn path_of(number: usize) -> String {
    format!("part{}/unit{number}.c", number / FOLDER_FILES)
}

/// A source tree that is in memory, in one version after the other.
pub(super) struct Tree {
    random: Random,
    pub(super) files: Vec<Unit>,
}

/// A file of a source tree.
pub(super) struct Unit {
    pub(super) lines: Vec<String>,
    /// Whether it was another one in the version before, or was not there.
    pub(super) is_new: bool,
}

impl Tree {
    /// Makes the first version.
    pub(super) fn new(seed: u64, files: usize) -> Self {
        let mut random = Random::new(seed);
        let files = (0..files).map(|_| Unit { lines: file(&mut random), is_new: true }).collect();
        Self { random, files }
    }

    /// Makes the next version.
    pub(super) fn grow(&mut self) {
        for unit in &mut self.files {
            unit.is_new = self.random.below(EDITED_ONE_IN) == 0;
            if unit.is_new {
                edit(&mut unit.lines, &mut self.random);
            }
        }
        self.files.push(Unit { lines: file(&mut self.random), is_new: true });
    }
}

fn file(random: &mut Random) -> Vec<String> {
    let count = LINES_MIN + random.below(LINES_MORE);
    (0..count).map(|_| line(random)).collect()
}

/// A line of few words, some of which are met everywhere and some nowhere else.
pub(super) fn line(random: &mut Random) -> String {
    const WORDS: [&str; 16] = [
        "static ",
        "struct ",
        "return ",
        "const ",
        "unsigned ",
        "int ",
        "if (",
        "for (",
        " = ",
        "->next",
        "->count",
        " + 1",
        ") {",
        "}",
        ";",
        "NULL",
    ];
    let mut line = "\t".repeat(random.below(4) as usize);
    for _ in 0..2 + random.below(8) {
        let value = random.next();
        line.push_str(WORDS[(value % 16) as usize]);
        if value & 0x70 == 0 {
            line.push_str(&format!("name_{:x}", value >> 44));
        }
    }
    line.push('\n');
    line
}

/// Replaces, adds or removes a few lines in one place.
pub(super) fn edit(lines: &mut Vec<String>, random: &mut Random) {
    let start = random.below(lines.len() as u64) as usize;
    let end = (start + random.below(6) as usize).min(lines.len());
    let new: Vec<_> = (0..1 + random.below(6)).map(|_| line(random)).collect();
    lines.splice(start..end, new);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_tree_again_and_versions_differ_a_little() {
        let folder = tempfile::tempdir().unwrap();
        let tree = SourceTree { seed: 7, versions: 3, files: 60 };
        let one = tree.write("D", &folder.path().join("one")).unwrap();
        let other = tree.write("D", &folder.path().join("other")).unwrap();
        let bytes = |dataset: &Dataset, version: &str| -> Vec<Vec<u8>> {
            dataset.files(version).unwrap().iter().map(|path| files::read(path).unwrap()).collect()
        };
        assert_eq!(one.versions, ["1", "2", "3"]);
        for version in &one.versions {
            assert_eq!(bytes(&one, version), bytes(&other, version));
        }
        let (first, second) = (bytes(&one, "1"), bytes(&one, "2"));
        assert_eq!((first.len(), second.len()), (60, 61));
        let kept = first.iter().filter(|file| second.contains(file)).count();
        assert!((45..60).contains(&kept), "{kept}");
    }
}
