//! Lists a folder tree in the byte order of keys, reading no folder that cannot matter.

use rustix::fd::AsFd;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::root::Root;
use crate::error::Result;
use crate::files;
use crate::key::{KEY_LENGTH_MAX, ObjectKey, is_segment};
use crate::object_store::ObjectEntry;

/// Returns the first `limit` objects with `prefix`, after `start_after`.
pub(super) fn list(
    root: &Root,
    prefix: &str,
    start_after: &str,
    limit: usize,
) -> Result<Vec<ObjectEntry>> {
    root.check_present()?;
    let mut walk = Walk { root, prefix, start_after, limit, entries: Vec::new() };
    // Whatever has the prefix lies in the folder that the prefix spells out.
    let start = prefix.rfind('/').map_or("", |slash| &prefix[..=slash]);
    if limit > 0 {
        walk.folder(start)?;
    }
    Ok(walk.entries)
}

struct Walk<'a> {
    root: &'a Root,
    prefix: &'a str,
    start_after: &'a str,
    limit: usize,
    entries: Vec<ObjectEntry>,
}

impl Walk<'_> {
    /// Walks the folder `path`, which is empty or ends with a slash.
    fn folder(&mut self, path: &str) -> Result<()> {
        for name in self.names(path)? {
            if self.entries.len() >= self.limit {
                break;
            }
            let full = format!("{path}{name}");
            if !self.may_hold(&full) {
                continue;
            }
            if full.ends_with('/') {
                self.folder(&full)?;
            } else if let Ok(key) = ObjectKey::new(&full) {
                self.object(key)?;
            }
        }
        Ok(())
    }

    /// Returns the names in a folder in key order; those of folders end with a slash, because the keys below
    /// them go on with one, and a slash sorts after a dot or a hyphen.
    fn names(&self, path: &str) -> Result<Vec<String>> {
        let here = if path.is_empty() { "." } else { path };
        let folder = match files::open_at(self.root.fd(), here, files::FOLDER) {
            Ok(folder) => folder,
            // Never there, or deleted since the folder above was read.
            Err(Errno::NOENT | Errno::NOTDIR) if !path.is_empty() => return Ok(Vec::new()),
            Err(error) => return Err(self.root.failure("list", path, error)),
        };
        let found = files::read_folder(folder.as_fd())
            .map_err(|error| self.root.failure("list", path, error))?;
        let mut names: Vec<String> = found
            .into_iter()
            .filter(|(name, _)| is_segment(name))
            .filter_map(|(name, file_type)| match file_type {
                FileType::Directory => Some(name + "/"),
                FileType::RegularFile => Some(name),
                _ => None,
            })
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Returns whether the object `full`, or one in the folder `full`, can belong to the list.
    fn may_hold(&self, full: &str) -> bool {
        if full.len() > KEY_LENGTH_MAX {
            return false;
        }
        let is_folder = full.ends_with('/');
        let has_prefix =
            full.starts_with(self.prefix) || is_folder && self.prefix.starts_with(full);
        let is_after = full > self.start_after || is_folder && self.start_after.starts_with(full);
        has_prefix && is_after
    }

    fn object(&mut self, key: ObjectKey) -> Result<()> {
        match files::stat_at(self.root.fd(), key.as_str()) {
            Ok(status) => {
                let size = u64::try_from(status.st_size).unwrap_or(0);
                self.entries.push(ObjectEntry { key, size });
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.root.failure("look at", key.as_str(), error)),
        }
    }
}
