//! How a backup lies in a store.
//!
//! *Goals*: many backups share what they have in common; one that was cut off is not there; damage is found. *Invariants*:
//! an object is named by the hash of its bytes, the list of a backup too, and that list is written last.
//!
//! | key | holds |
//! |---|---|
//! | `workspaces/<id>/…` | packs and pages, under the keys that they have in the server's store |
//! | `metadata/ab/abcdef…` | a part of a database of SQLite with all accounts and logs, named by its BLAKE3 |
//! | `backups/<time>-<hash>` | a [`Backup`] as JSON; the time in seconds since 1970, 12 digits, and the BLAKE3 of the text |

use std::path::Path;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use storage::{ObjectKey, ObjectStore, PutMode};

use super::shelf::Shelf;
use crate::data_folder::DataFolder;
use crate::error::{Result, ServerError};

/// What the keys of all lists of backups begin with.
const BACKUPS: &str = "backups/";

/// The newest form of a backup.
const FORMAT: u32 = 1;

/// How many bytes a part of the metadata has at most.
const PART_LENGTH: usize = 8 * 1024 * 1024;

/// What a backup is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    /// The form of all of this.
    pub format: u32,
    /// When it was made, in seconds since 1970; later than every earlier one.
    pub made: i64,
    /// How many workspaces it has.
    pub workspaces: u64,
    /// How many objects.
    pub objects: u64,
    /// Their bytes.
    pub object_bytes: u64,
    /// What was wrong with the server when it was made: so many lines.
    pub damage: u64,
    /// The metadata, part by part.
    pub parts: Vec<Part>,
}

/// A part of the metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its BLAKE3, 64 hexadecimal digits.
    pub hash: String,
    /// Its length in bytes.
    pub length: u64,
}

impl Part {
    fn key(&self) -> Result<ObjectKey> {
        let folder = self.hash.get(..2).unwrap_or_default();
        Ok(ObjectKey::new(&format!("metadata/{folder}/{}", self.hash))?)
    }
}

fn damaged(what: &str) -> ServerError {
    ServerError::Storage {
        text: format!("{what} of the backup is missing or damaged"),
        is_full: false,
        is_damage: true,
    }
}

/// Writes the metadata in `file`; returns its parts, and how many bytes were new.
pub(super) fn put_metadata(shelf: &Shelf, file: &Path) -> Result<(Vec<Part>, u64)> {
    let (mut parts, mut new) = (Vec::new(), 0);
    let store = shelf.store();
    DataFolder::each_piece(file, PART_LENGTH, &mut |bytes| {
        let part =
            Part { hash: blake3::hash(&bytes).to_hex().to_string(), length: bytes.len() as u64 };
        let key = part.key()?;
        if shelf.wait(store.size(&key))? != Some(part.length) {
            new += part.length;
            shelf.wait(store.put(&key, bytes, PutMode::Overwrite))?;
        }
        parts.push(part);
        Ok(())
    })?;
    Ok((parts, new))
}

/// Reads the metadata of a backup into a new file, part by part, or only looks whether they are whole.
pub(super) fn get_metadata(shelf: &Shelf, backup: &Backup, file: Option<&Path>) -> Result<()> {
    for part in &backup.parts {
        let bytes = shelf.wait(shelf.store().get(&part.key()?))?;
        let is_it = |bytes: &Bytes| blake3::hash(bytes).to_hex().as_str() == part.hash;
        let bytes = bytes.filter(is_it).ok_or_else(|| damaged("a part of the metadata"))?;
        if let Some(file) = file {
            DataFolder::append(file, &bytes)?;
        }
    }
    Ok(())
}

/// Writes the list of a backup, with which it is there; returns its name.
pub(super) fn put_backup(shelf: &Shelf, backup: &Backup) -> Result<String> {
    let text = serde_json::to_vec(backup).expect("it has texts and numbers only");
    let name = format!("{:012}-{}", backup.made.max(0), blake3::hash(&text).to_hex());
    let key = ObjectKey::new(&format!("{BACKUPS}{name}"))?;
    shelf.wait(shelf.store().put(&key, text.into(), PutMode::Overwrite))?;
    match get_backup(shelf, &name)? == *backup {
        true => Ok(name),
        false => Err(damaged("the list")),
    }
}

/// Reads the list of a backup.
pub(super) fn get_backup(shelf: &Shelf, name: &str) -> Result<Backup> {
    let key = ObjectKey::new(&format!("{BACKUPS}{name}"))?;
    let not_found = || ServerError::NotFound { what: format!("backup '{name}'") };
    let bytes = shelf.wait(shelf.store().get(&key))?.ok_or_else(not_found)?;
    let hash = blake3::hash(&bytes).to_hex();
    if name.split_once('-').is_none_or(|(_, named)| named != hash.as_str()) {
        return Err(damaged("the list"));
    }
    let backup: Backup = serde_json::from_slice(&bytes).map_err(|_| damaged("the list"))?;
    match backup.format {
        FORMAT => Ok(backup),
        other => Err(ServerError::Invalid {
            what: "the backup",
            reason: format!("it has form {other}, which this version does not know"),
        }),
    }
}

/// Returns the names of all backups, the oldest first.
///
/// # Errors
/// [`ServerError::Storage`].
pub fn backups(shelf: &Shelf) -> Result<Vec<String>> {
    let (mut walk, mut names) = (shelf.walk(BACKUPS.to_owned()), Vec::new());
    while let Some(line) = walk.take()? {
        names.extend(line.key.as_str().strip_prefix(BACKUPS).map(str::to_owned));
    }
    Ok(names)
}

/// Returns the time that stands in the name of a backup.
pub(super) fn time_of(name: &str) -> i64 {
    name.split_once('-').and_then(|(time, _)| time.parse().ok()).unwrap_or(0)
}

/// Returns the newest form, for a backup that is being made.
pub(super) fn new_backup(made: i64) -> Backup {
    Backup {
        format: FORMAT,
        made,
        workspaces: 0,
        objects: 0,
        object_bytes: 0,
        damage: 0,
        parts: Vec::new(),
    }
}
