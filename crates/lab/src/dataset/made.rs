//! Datasets A to D of the Syncany thesis (Heckel 2011, table 6.1), made from a seed: those of the thesis are not public.
//!
//! What the thesis says of them is kept: how many versions, files and bytes, which formats, how many files change from one version to the next.
//! It does not say what an edit is, how large which files are, and, where its text can be read, which ten kinds the third one has; what was
//! chosen for that is here.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Dataset;
use super::folder::{self, Change, Recipe, Share, Start};
use super::item::Kind;
use super::source_tree::SourceTree;
use crate::error::LabError;
use crate::files;

/// The names of the datasets that can be made.
pub const NAMES: [&str; 4] = ["A", "B", "C", "D"];

/// Whether datasets are as large as in the thesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// As many versions, of fewer and smaller files: for minutes. A is small enough to be whole.
    Small,
    /// As in the thesis, which took ten days.
    Full,
    /// For tests, where nothing is optimised and a photograph takes a second.
    #[cfg(test)]
    Tiny,
}

const fn share(kind: Kind, of_thousand: u64, least_kib: u64, doublings: u32) -> Share {
    Share { kind, of_thousand, least_kib, doublings }
}

/// Office documents, of which one is edited at a time.
static A: Recipe = Recipe {
    name: "A",
    versions: 50,
    start: Start::Files(24),
    shares: &[
        share(Kind::Docx, 400, 16, 6),
        share(Kind::Odt, 170, 16, 6),
        share(Kind::Rtf, 300, 16, 6),
        share(Kind::Xlsx, 130, 16, 5),
    ],
    changes: (1, 1),
    mix: [(Change::Add, 2), (Change::Edit, 98), (Change::Remove, 0), (Change::Rename, 0)],
    edited_by_size: 2,
    edits: 1,
};

/// What is hardly ever edited: files come and go.
static B: Recipe = Recipe {
    name: "B",
    versions: 50,
    start: Start::Bytes(400 << 20),
    shares: &[
        share(Kind::Photo, 340, 128, 4),
        share(Kind::Pdf, 260, 64, 5),
        share(Kind::Track, 380, 2048, 2),
        share(Kind::Docx, 10, 16, 5),
        share(Kind::Text, 10, 4, 5),
    ],
    changes: (20, 90),
    mix: [(Change::Add, 58), (Change::Edit, 1), (Change::Remove, 40), (Change::Rename, 1)],
    edited_by_size: 1,
    edits: 1,
};

/// Ten kinds, of which photographs and PDF have the shares that the thesis found, 15 % each.
static C: Recipe = Recipe {
    name: "C",
    versions: 50,
    start: Start::Bytes(100 << 20),
    shares: &[
        share(Kind::Photo, 150, 128, 4),
        share(Kind::Pdf, 150, 64, 5),
        share(Kind::Track, 280, 2048, 2),
        share(Kind::Archive, 205, 256, 4),
        share(Kind::Docx, 70, 32, 4),
        share(Kind::Odt, 40, 32, 4),
        share(Kind::Xlsx, 40, 32, 4),
        share(Kind::Rtf, 45, 32, 4),
        share(Kind::Text, 15, 4, 5),
        share(Kind::Source, 5, 4, 4),
    ],
    changes: (5, 10),
    mix: [(Change::Add, 50), (Change::Edit, 22), (Change::Remove, 26), (Change::Rename, 2)],
    edited_by_size: 1,
    edits: 8,
};

/// By how much files of B and C are smaller, and fewer, where they are small.
const B_DIVISOR: u64 = 12;
const C_DIVISOR: u64 = 5;

/// Stands for kernels; as many files as those have, or few.
const D_VERSIONS: usize = 20;
const D_FILES: usize = 38_000;
const D_FILES_SMALL: usize = 200;

/// How a dataset is made.
pub(super) enum Way {
    /// As people work on a folder; files are as many times smaller, and fewer, as the number says.
    Folder(Recipe, u64),
    /// As people work on a source tree.
    Tree(SourceTree),
}

impl Way {
    /// Returns how a dataset is made.
    ///
    /// # Errors
    /// [`LabError::NoSuchDataset`].
    pub(super) fn of(name: &str, size: Size, seed: u64) -> Result<Self, LabError> {
        let (recipe, divisor) = match name {
            "A" => (&A, 1),
            "B" => (&B, B_DIVISOR),
            "C" => (&C, C_DIVISOR),
            "D" => {
                let files = match size {
                    Size::Small => D_FILES_SMALL,
                    Size::Full => D_FILES,
                    #[cfg(test)]
                    Size::Tiny => 40,
                };
                return Ok(Self::Tree(SourceTree { seed, versions: D_VERSIONS, files }));
            }
            _ => return Err(LabError::NoSuchDataset { name: name.to_owned() }),
        };
        let divisor = match size {
            Size::Small => divisor,
            Size::Full => 1,
            #[cfg(test)]
            Size::Tiny => 16,
        };
        Ok(Self::Folder(recipe.clone(), divisor))
    }

    fn write(self, name: &str, seed: u64, folder: &Path) -> Result<Dataset, LabError> {
        match self {
            Self::Folder(recipe, divisor) => folder::write(&recipe, divisor, seed, folder),
            Self::Tree(tree) => tree.write(name, folder),
        }
    }

    /// How many versions it has.
    pub(super) fn versions(&self) -> usize {
        match self {
            Self::Folder(recipe, _) => recipe.versions,
            Self::Tree(tree) => tree.versions,
        }
    }
}

/// Makes a dataset in a folder below `work`, where it replaces one that was made before.
///
/// # Errors
/// [`LabError::NoSuchDataset`], [`LabError::Write`].
pub fn write(name: &str, size: Size, seed: u64, work: &Path) -> Result<Dataset, LabError> {
    let (way, folder) = (Way::of(name, size, seed)?, work.join(name));
    files::clear(&folder)?;
    way.write(name, seed, &folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_a_thousand_and_changes_a_hundred() {
        for recipe in [&A, &B, &C] {
            let name = recipe.name;
            assert_eq!(
                recipe.shares.iter().map(|share| share.of_thousand).sum::<u64>(),
                1000,
                "{name}"
            );
            assert_eq!(recipe.mix.iter().map(|(_, share)| share).sum::<u64>(), 100, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_made_is_refused_and_what_was_there_is_made_anew() {
        let room = tempfile::tempdir().unwrap();
        let error = write("E", Size::Small, 1, room.path()).unwrap_err();
        assert!(matches!(error, LabError::NoSuchDataset { .. }), "{error}");
        let left = room.path().join("D/51/left.txt");
        files::write(&left, "of another version of this program").unwrap();
        let dataset = write("D", Size::Small, 1, room.path()).unwrap();
        assert_eq!(dataset.versions.len(), 20);
        assert!(files::look(&left).unwrap().is_none());
    }

    #[test]
    fn the_small_third_dataset_is_a_twenty_fifth_of_the_one_in_the_thesis() {
        let room = tempfile::tempdir().unwrap();
        let recipe = Recipe { versions: 2, ..C.clone() };
        let dataset = folder::write(&recipe, C_DIVISOR, 1, room.path()).unwrap();
        let first = dataset.files("1").unwrap();
        let bytes: usize = first.iter().map(|path| files::read(path).unwrap().len()).sum();
        assert!((4_000_000..5_500_000).contains(&bytes), "{bytes}");
        // Sizes and numbers are a fifth.
        assert!((30..65).contains(&first.len()), "{}", first.len());
    }
}
