//! What an experiment is made with: a folder of files, in several versions.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::files;

pub mod made;
pub mod source_tree;

pub(crate) mod folder;
pub(crate) mod item;
pub(crate) mod prose;
pub(crate) mod series;
pub(crate) mod zip;

mod document;
mod jpeg;
mod track;
mod workbook;

/// A folder that has a folder for each version, as the thesis keeps its datasets (section 6.4.1).
#[derive(Debug, Clone)]
pub struct Dataset {
    /// What it is called in tables.
    pub name: String,
    /// Where it is.
    pub folder: PathBuf,
    /// The names of its versions, oldest first.
    pub versions: Vec<String>,
}

impl Dataset {
    /// Looks which versions a folder has.
    ///
    /// # Errors
    /// [`LabError::NoVersions`], [`LabError::Read`].
    pub fn open(name: impl Into<String>, folder: &Path) -> Result<Self, LabError> {
        let mut versions = files::folders(folder)?;
        versions.sort_by(|one, other| by_version(one, other));
        if versions.len() < 2 {
            return Err(LabError::NoVersions { folder: folder.to_owned() });
        }
        Ok(Self { name: name.into(), folder: folder.to_owned(), versions })
    }

    /// Returns the paths of a version's regular files, in order.
    ///
    /// # Errors
    /// [`LabError::Read`].
    pub fn files(&self, version: &str) -> Result<Vec<PathBuf>, LabError> {
        files::below(&self.folder.join(version))
    }
}

/// Compares names such as `7.0.9` and `7.0.10` as people count.
pub fn by_version(one: &str, other: &str) -> Ordering {
    let numbers = |name: &str| -> Vec<u64> {
        name.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
    };
    numbers(one).cmp(&numbers(other)).then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_people_count() {
        let mut names = ["7.0.10", "7.2.0", "7.0.9", "7.0.0"];
        names.sort_by(|one, other| by_version(one, other));
        assert_eq!(names, ["7.0.0", "7.0.9", "7.0.10", "7.2.0"]);
    }

    #[test]
    fn a_folder_is_a_dataset_if_it_has_versions() {
        let folder = tempfile::tempdir().unwrap();
        for version in ["1.10", "1.9"] {
            files::write(&folder.path().join(version).join("b/c.txt"), version).unwrap();
            files::write(&folder.path().join(version).join("a.txt"), "a").unwrap();
        }
        let dataset = Dataset::open("D", folder.path()).unwrap();
        assert_eq!(dataset.versions, ["1.9", "1.10"]);
        let root = folder.path().join("1.9");
        assert_eq!(dataset.files("1.9").unwrap(), [root.join("a.txt"), root.join("b/c.txt")]);

        let error = Dataset::open("D", &root.join("b")).unwrap_err();
        assert!(matches!(error, LabError::NoVersions { .. }), "{error}");
        let error = Dataset::open("D", &root.join("none")).unwrap_err();
        assert!(matches!(error, LabError::Read { .. }), "{error}");
    }
}
