//! Lists a remote tree in the byte order of keys, reading no folder that cannot matter.

use std::collections::HashMap;

use futures_util::{StreamExt, TryStreamExt};

use super::{Exclusive, OBJECT, RemoteTree, TreeEntry};
use crate::error::Result;
use crate::key::{KEY_LENGTH_MAX, ObjectKey, SEGMENT_COUNT_MAX, is_segment};
use crate::object_store::ObjectEntry;

/// How many folders are read ahead at once: each costs a round trip.
const AHEAD_MAX: usize = 8;

/// Returns the first `limit` objects with `prefix`, after `start_after`.
pub(super) async fn list<T: RemoteTree>(
    tree: &T,
    prefix: &str,
    start_after: &str,
    limit: usize,
) -> Result<Vec<ObjectEntry>> {
    // Whatever has the prefix lies in the folder that the prefix spells out.
    let start = prefix.rfind('/').map_or("", |slash| &prefix[..=slash]);
    let mut walk = Walk { tree, prefix, start_after, folders: HashMap::new(), pending: Vec::new() };
    walk.push_folder(start).await?;
    let mut found = Vec::new();
    while found.len() < limit {
        let Some(next) = walk.pending.pop() else { break };
        match next {
            Pending::Object(entry) => found.push(entry),
            Pending::Folder(path) => found.extend(walk.visit(&path, limit - found.len()).await?),
        }
    }
    Ok(found)
}

/// What is still to be looked at; the last one comes first.
enum Pending {
    Object(ObjectEntry),
    /// A folder, looked at twice: at its name without a slash, where an object may lie, and with it.
    Folder(String),
}

impl Pending {
    fn path(&self) -> &str {
        match self {
            Self::Object(entry) => entry.key.as_str(),
            Self::Folder(path) => path,
        }
    }
}

struct Walk<'a, T> {
    tree: &'a T,
    prefix: &'a str,
    start_after: &'a str,
    /// Folders that were read and are not yet used up, by their paths with a slash.
    folders: HashMap<String, Vec<TreeEntry>>,
    pending: Vec<Pending>,
}

impl<T: RemoteTree> Walk<'_, T> {
    /// Looks at the folder `path`, for the object it may be, or for what is in it when `path` ends with a slash.
    async fn visit(&mut self, path: &str, wanted: usize) -> Result<Option<ObjectEntry>> {
        let with_slash = format!("{}/", path.trim_end_matches('/'));
        self.read_ahead(&with_slash, wanted).await?;
        if path.ends_with('/') {
            self.push_folder(path).await?;
            return Ok(None);
        }
        let entries = self.folders.get(&with_slash).into_iter().flatten();
        let size = entries.filter(|entry| entry.name == OBJECT).find_map(|entry| entry.size);
        Ok(size.and_then(|size| ObjectKey::new(path).ok().map(|key| ObjectEntry { key, size })))
    }

    /// Puts what is in the folder `path`, which is empty or ends with a slash, before everything else that is pending.
    async fn push_folder(&mut self, path: &str) -> Result<()> {
        let entries = match self.folders.remove(path) {
            Some(entries) => entries,
            None => self.tree.entries(path.trim_end_matches('/')).await?.unwrap_or_default(),
        };
        if path.matches('/').count() >= SEGMENT_COUNT_MAX {
            return Ok(());
        }
        let mut inside = Vec::new();
        for entry in entries.into_iter().filter(|entry| is_segment(&entry.name)) {
            let full = format!("{path}{}", entry.name);
            match (entry.size, ObjectKey::new(&full)) {
                (Some(size), Ok(key)) => inside.push(Pending::Object(ObjectEntry { key, size })),
                (Some(_), Err(_)) => {}
                (None, _) => {
                    inside.push(Pending::Folder(format!("{full}/")));
                    if self.tree.exclusive() == Exclusive::Folder {
                        inside.push(Pending::Folder(full));
                    }
                }
            }
        }
        inside.retain(|pending| self.may_hold(pending.path()));
        // A slash sorts after a dot or a hyphen, so a folder comes later than its name alone.
        inside.sort_unstable_by(|one, other| other.path().cmp(one.path()));
        self.pending.append(&mut inside);
        Ok(())
    }

    /// Reads the folder `path` and some that will be wanted after it, but not more than could be wanted in all.
    async fn read_ahead(&mut self, path: &str, wanted: usize) -> Result<()> {
        if self.folders.contains_key(path) {
            return Ok(());
        }
        let coming = self.pending.iter().rev().filter_map(|pending| match pending {
            Pending::Folder(path) => Some(format!("{}/", path.trim_end_matches('/'))),
            Pending::Object(_) => None,
        });
        let mut paths = vec![path.to_owned()];
        for path in coming.take(2 * AHEAD_MAX) {
            let is_known = self.folders.contains_key(&path) || paths.contains(&path);
            if !is_known && paths.len() < wanted.min(AHEAD_MAX) {
                paths.push(path);
            }
        }
        let tree = self.tree;
        let read = |path: String| async move {
            let entries = tree.entries(path.trim_end_matches('/')).await?.unwrap_or_default();
            Ok::<_, crate::StorageError>((path, entries))
        };
        let reading = futures_util::stream::iter(paths).map(read).buffered(AHEAD_MAX);
        let read: Vec<_> = reading.try_collect().await?;
        self.folders.extend(read);
        Ok(())
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
}
