//! The versions of a made dataset one after the other, of which none is written: whoever plays a trace of it makes its bytes again.
//!
//! *Invariant*: a version has the paths and bytes that [`super::made::write`] writes for it; a test compares both.

use std::collections::BTreeMap;

use super::folder::{Came, Folder, Hear};
use super::made::{Size, Way};
use super::source_tree::{self, Tree};
use crate::error::LabError;

/// A dataset in one of its versions.
pub(crate) struct Series {
    matter: Matter,
    versions: usize,
    version: usize,
    /// Where a file is in the row of all, by its path.
    places: BTreeMap<String, usize>,
}

enum Matter {
    Folder(Box<Folder>),
    Tree(Tree),
}

impl Series {
    /// A dataset that is in no version yet.
    ///
    /// # Errors
    /// [`LabError::NoSuchDataset`].
    pub(crate) fn new(name: &str, size: Size, seed: u64) -> Result<Self, LabError> {
        let way = Way::of(name, size, seed)?;
        let versions = way.versions();
        let matter = match way {
            Way::Folder(recipe, divisor) => {
                Matter::Folder(Box::new(Folder::new(recipe, divisor, seed)))
            }
            Way::Tree(tree) => Matter::Tree(Tree::new(tree.seed, tree.files)),
        };
        Ok(Self { matter, versions, version: 0, places: BTreeMap::new() })
    }

    /// How many versions there are.
    pub(crate) fn versions(&self) -> usize {
        self.versions
    }

    /// In which one it is, from 1 on.
    pub(crate) fn version(&self) -> usize {
        self.version
    }

    /// Makes the next version; `hear` is told of each of its files.
    ///
    /// # Errors
    /// Those of `hear`.
    pub(crate) fn advance(&mut self, hear: &mut Hear<'_>) -> Result<(), LabError> {
        self.version += 1;
        self.places.clear();
        let places = &mut self.places;
        let mut hear = |path: &str, came: Came<'_>| {
            places.insert(path.to_owned(), places.len());
            hear(path, came)
        };
        match &mut self.matter {
            Matter::Folder(folder) => folder.advance(&mut hear),
            Matter::Tree(tree) => {
                if self.version > 1 {
                    tree.grow();
                }
                for (number, unit) in tree.files.iter().enumerate() {
                    let path = source_tree::path_of(number);
                    if unit.is_new {
                        hear(&path, Came::New(unit.lines.concat().as_bytes()))?;
                    } else {
                        hear(&path, Came::Kept(&path))?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Returns the bytes of a file of this version.
    pub(crate) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let place = *self.places.get(path)?;
        Some(match &self.matter {
            Matter::Folder(folder) => folder.bytes_of(place),
            Matter::Tree(tree) => tree.files[place].lines.concat().into_bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::made;
    use crate::files;

    #[test]
    fn each_version_is_the_one_that_is_written() {
        let room = tempfile::tempdir().unwrap();
        for (name, versions) in [("C", 50), ("D", 20)] {
            let dataset = made::write(name, Size::Tiny, 5, room.path()).unwrap();
            let mut series = Series::new(name, Size::Tiny, 5).unwrap();
            assert_eq!(series.versions(), versions);
            for version in &dataset.versions[..9] {
                let (mut paths, root) = (Vec::new(), dataset.folder.join(version));
                let mut hear = |path: &str, _: Came<'_>| {
                    paths.push(path.to_owned());
                    Ok(())
                };
                series.advance(&mut hear).unwrap();
                assert_eq!(series.version().to_string(), *version);
                for path in &paths {
                    let bytes = files::read(&root.join(path)).unwrap();
                    assert!(series.bytes(path).unwrap() == bytes, "{name} {version}: {path}");
                }
                paths.sort();
                let written = dataset.files(version).unwrap();
                assert!(
                    written.iter().eq(paths
                        .iter()
                        .map(|path| root.join(path))
                        .collect::<Vec<_>>()
                        .iter())
                );
            }
            assert!(series.bytes("nowhere").is_none());
        }
    }
}
