//! Trees as they are on disk, for comparing them.

#![expect(clippy::disallowed_methods, reason = "a check must not use what it checks")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sync::file_system::SERVICE_DIRECTORY;

use crate::error::Result;
use crate::home::file_error;

/// What an entry is, with everything that is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// A directory and its mode; its times are not kept.
    Directory(u32),
    /// A file: mode, time, hash.
    File(u32, (i64, i64), blake3::Hash),
    /// A link: target, time.
    Link(PathBuf, (i64, i64)),
}

/// Reads a tree, without what belongs to the program.
pub(super) fn read(root: &Path) -> Result<BTreeMap<PathBuf, Entry>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        let place = root.join(&directory);
        let failed = |error: std::io::Error| file_error(&place, &error);
        for entry in fs::read_dir(&place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = directory.join(entry.file_name());
            if path.as_os_str() == SERVICE_DIRECTORY {
                continue;
            }
            let data = entry.metadata().map_err(failed)?;
            let mode = data.permissions().mode() & 0o777;
            let time = (data.mtime(), data.mtime_nsec());
            let kind = if data.is_dir() {
                waiting.push(path.clone());
                Entry::Directory(mode)
            } else if data.is_symlink() {
                Entry::Link(fs::read_link(entry.path()).map_err(failed)?, time)
            } else {
                Entry::File(mode, time, blake3::hash(&fs::read(entry.path()).map_err(failed)?))
            };
            found.insert(path, kind);
        }
    }
    Ok(found)
}

/// Returns a path that differs, and how.
pub(super) fn difference(
    one: &BTreeMap<PathBuf, Entry>,
    other: &BTreeMap<PathBuf, Entry>,
) -> Option<String> {
    let mut paths = one.keys().chain(other.keys());
    let path = paths.find(|path| one.get(*path) != other.get(*path))?;
    Some(format!("{}: {:?} and {:?}", path.display(), one.get(path), other.get(path)))
}
