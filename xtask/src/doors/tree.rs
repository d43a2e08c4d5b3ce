//! A folder on this computer as what tools copy: names, bytes and times.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::failure::{Context, Result, fail};

/// The files below a folder, by their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tree {
    files: BTreeMap<String, File>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    bytes: Vec<u8>,
    /// When it was modified, in whole seconds since 1970: tools carry no more. Nothing where that does not count.
    seconds: Option<u64>,
}

impl Tree {
    /// Reads a folder; one that is not there has nothing in it.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut tree = Self::default();
        if folder.exists() {
            tree.add(folder, "")?;
        }
        Ok(tree)
    }

    fn add(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        for entry in fs::read_dir(folder).context(folder.display())? {
            let entry = entry?;
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.add(&entry.path(), &format!("{path}/"))?;
                continue;
            }
            let modified = entry.metadata()?.modified()?.duration_since(UNIX_EPOCH);
            let seconds = modified.ok().map(|since| since.as_secs());
            let bytes = fs::read(entry.path()).context(&path)?;
            self.files.insert(path, File { bytes, seconds });
        }
        Ok(())
    }

    /// How many files there are.
    pub(super) fn count(&self) -> usize {
        self.files.len()
    }

    /// The same, with which any times agree: for tools that keep them to themselves.
    pub(super) fn without_times(mut self) -> Self {
        self.files.values_mut().for_each(|file| file.seconds = None);
        self
    }

    /// Says in what another tree differs from this one, which is as it should be.
    pub(super) fn compare(&self, other: &Self) -> Result<()> {
        for (path, file) in &self.files {
            match other.files.get(path) {
                None => return fail(format!("'{path}' is missing")),
                Some(found) if found.bytes != file.bytes => {
                    return fail(format!("'{path}' has other bytes"));
                }
                Some(found) if file.seconds.is_some() && found.seconds != file.seconds => {
                    let [is, should] = [found.seconds, file.seconds].map(Option::unwrap_or_default);
                    return fail(format!("'{path}' has the time {is} in place of {should}"));
                }
                Some(_) => {}
            }
        }
        match other.files.keys().find(|path| !self.files.contains_key(*path)) {
            None => Ok(()),
            Some(path) => fail(format!("'{path}' should not be there")),
        }
    }
}

/// Writes a file with its folders, modified so many seconds after 1970 and half of one.
pub(super) fn write(folder: &Path, path: &str, bytes: &[u8], seconds: u64) -> Result<()> {
    let path = folder.join(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).context(parent.display())?;
    }
    fs::write(&path, bytes).context(path.display())?;
    set_time(&path, seconds)
}

/// Sets when a file was modified.
pub(super) fn set_time(path: &Path, seconds: u64) -> Result<()> {
    let modified: SystemTime = UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 500);
    let file = fs::File::options().append(true).open(path).context(path.display())?;
    file.set_modified(modified).context(path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_differ_by_names_bytes_and_times() {
        let room = tempfile::tempdir().unwrap();
        write(room.path(), "a/b", b"one", 1_000).unwrap();
        let tree = Tree::read(room.path()).unwrap();
        assert_eq!(tree.count(), 1);
        assert_eq!(tree.compare(&tree.clone()), Ok(()));
        let says = |other: &Path| {
            tree.compare(&Tree::read(other).unwrap()).map_err(|failure| failure.to_string())
        };
        assert_eq!(says(&room.path().join("gone")), Err("'a/b' is missing".to_owned()));
        write(room.path(), "a/b", b"one", 1_001).unwrap();
        let time = "'a/b' has the time 1001 in place of 1000".to_owned();
        assert_eq!(says(room.path()), Err(time));
        let later = Tree::read(room.path()).unwrap();
        assert_eq!(tree.clone().without_times().compare(&later), Ok(()));
        write(room.path(), "a/b", b"two", 1_000).unwrap();
        assert_eq!(says(room.path()), Err("'a/b' has other bytes".to_owned()));
        write(room.path(), "a/b", b"one", 1_000).unwrap();
        write(room.path(), "c", b"", 1_000).unwrap();
        assert_eq!(says(room.path()), Err("'c' should not be there".to_owned()));
    }
}
