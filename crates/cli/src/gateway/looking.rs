//! What is in a folder, as the door sees it: what is synced, and nothing else.

use model::{Name, NodeId, RelativePath};
use server::doors::tree::{Item, Room};
use server::{Result, ServerError};
use sync::file_system::{DirectoryEntry, FileError, FileKind, FileSystem, OpenFile, Stat};

use super::{OpenFolder, checksum_key, item};

/// Says what a failure of the file system means to who asked.
pub(super) fn refusal(error: FileError) -> ServerError {
    let conflict =
        |path: RelativePath, reason| ServerError::Conflict { what: format!("'{path}'"), reason };
    let full = |text: String| ServerError::Storage { text, is_full: true, is_damage: false };
    match error {
        FileError::NotFound(path) => ServerError::NotFound { what: format!("'{path}'") },
        FileError::AlreadyExists(path) => {
            ServerError::Taken { what: format!("something at '{path}'") }
        }
        FileError::Changed(path) => conflict(path, "was changed at the same moment; try again"),
        FileError::NotEmpty(path) => conflict(path, "was filled at the same moment; try again"),
        FileError::Escapes(path) => conflict(path, "cannot be reached: a folder above is none"),
        FileError::PermissionDenied(path) => {
            ServerError::Forbidden { what: format!("access to '{path}'") }
        }
        FileError::ReadOnly(path) => ServerError::Forbidden {
            what: format!("changing '{path}', which lies on a read-only file system,"),
        },
        FileError::NameRefused(path) => ServerError::Invalid {
            what: "path",
            reason: format!("the file system does not take '{path}'"),
        },
        FileError::NoSpace(path) => full(format!("no space is left for '{path}'")),
        error @ (FileError::NotDurable(_) | FileError::Other { .. }) => {
            ServerError::Storage { text: error.to_string(), is_full: false, is_damage: false }
        }
    }
}

impl OpenFolder {
    /// Returns what stands at a path, if that is synced.
    pub(super) fn look(&self, path: &RelativePath) -> Result<Option<Stat>> {
        let Some(stat) = self.stat(path)?.filter(|stat| stat.kind != FileKind::Other) else {
            return Ok(None);
        };
        let is_directory = stat.kind == FileKind::Directory;
        Ok(if self.leaves_out(path, is_directory)? { None } else { Some(stat) })
    }

    /// Returns what stands at a path, whatever it is.
    pub(super) fn stat(&self, path: &RelativePath) -> Result<Option<Stat>> {
        match self.files.stat(path) {
            Ok(found) => Ok(found),
            // Below what is no folder there is nothing.
            Err(FileError::Escapes(_)) => Ok(None),
            Err(error) => Err(refusal(error)),
        }
    }

    /// Tells whether the engine passes over a path.
    pub(super) fn leaves_out(&self, path: &RelativePath, is_directory: bool) -> Result<bool> {
        self.rules.lock().leave_out(&self.files, path, is_directory).map_err(refusal)
    }

    /// Refuses to write what no other device would get.
    pub(super) fn check_name(&self, path: &RelativePath, is_directory: bool) -> Result<()> {
        match self.leaves_out(path, is_directory)? {
            true => Err(ServerError::Forbidden {
                what: format!(
                    "to write '{path}', which is not synced (see .synclineignore) and which no other device would get,"
                ),
            }),
            false => Ok(()),
        }
    }

    /// Returns what is in a folder, in the order of names.
    pub(super) fn list(&self, path: &RelativePath) -> Result<Vec<Item<Stat>>> {
        let entries = self.entries(path)?;
        let mut rules = self.rules.lock();
        rules.learn(&self.files, path).map_err(refusal)?;
        let mut items = Vec::new();
        for DirectoryEntry { name, stat } in entries {
            let path = Name::new(name).ok().and_then(|name| path.join(&name).ok());
            let Some(path) = path.filter(|_| stat.kind != FileKind::Other) else { continue };
            if !rules.leave_out_entry(&path, stat.kind == FileKind::Directory) {
                items.push(item(&path, stat));
            }
        }
        drop(rules);
        items.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(items)
    }

    /// Returns everything that is in a directory.
    pub(super) fn entries(&self, path: &RelativePath) -> Result<Vec<DirectoryEntry>> {
        self.files.list(path).map_err(refusal)
    }

    /// Opens a file that was found, at a place in it.
    pub(super) fn open(
        &self,
        path: &RelativePath,
        expected: &Stat,
        offset: u64,
    ) -> Result<Box<dyn OpenFile>> {
        let changed = ServerError::Unavailable { reason: "saw the file change at this moment" };
        let mut file = match self.files.open(path) {
            Ok(file) => file,
            Err(FileError::Changed(_) | FileError::NotFound(_)) => return Err(changed),
            Err(error) => return Err(refusal(error)),
        };
        if file.stat().map_err(refusal)? != *expected {
            return Err(changed);
        }
        file.go_to(offset).map_err(|error| ServerError::Storage {
            text: format!("'{path}' cannot be read: {error}"),
            is_full: false,
            is_damage: false,
        })?;
        Ok(file)
    }

    /// Tells whether a file may be replaced without being kept: the history has it, or it was put here.
    pub(super) fn is_kept_elsewhere(&self, path: &RelativePath, stat: &Stat) -> bool {
        // Where it cannot be known it is kept.
        self.checksums.get(&checksum_key(stat)).is_some()
            || self.is_in_history(path, stat).unwrap_or(false)
    }

    fn is_in_history(&self, path: &RelativePath, stat: &Stat) -> sync::error::Result<bool> {
        let state = self.state.lock();
        let Some(state) = &*state else { return Ok(false) };
        let mut parents = vec![NodeId::ROOT];
        let mut rows = Vec::new();
        for name in path.names() {
            rows.clear();
            for parent in &parents {
                rows.extend(state.synced_at(parent, &name)?);
            }
            parents = rows.iter().map(|row| row.node).collect();
        }
        // What is proposed only may still be read from the folder.
        Ok(rows.iter().any(|row| row.stat.as_ref() == Some(stat) && row.pending.is_none()))
    }

    /// Returns how much the file system holds.
    pub(super) fn room(&self) -> Result<Room> {
        let failed = |errno: rustix::io::Errno| ServerError::Storage {
            text: format!("the file system does not say how much it holds: {errno}"),
            is_full: false,
            is_damage: false,
        };
        let found = rustix::fs::statvfs(&self.root).map_err(failed)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        let used = bytes(found.f_blocks.saturating_sub(found.f_bfree));
        Ok(Room { used, left: Some(bytes(found.f_bavail)) })
    }
}
