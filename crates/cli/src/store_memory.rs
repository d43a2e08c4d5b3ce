//! What a folder's device remembers of its stores from one run to the next: which hang, and what they are owed.
//!
//! It is a cache: without it a run waits for stores that hang as the first one did, and `check --repair` finds what they are
//! owed.

use std::path::PathBuf;

use commit_log::SlotCommitLog;
use model::StoreId;
use serde::{Deserialize, Serialize};
use storage::ObjectKey;
use storage::pool::{Pool, PoolMemory};

use crate::error::Result;
use crate::folder::Folder;
use crate::home::{read_toml, write_toml};

/// The format of the file.
const FORMAT: u32 = 1;

/// The file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    format: u32,
    /// Stores by name that let the log wait in vain.
    #[serde(default)]
    silent_in_log: Vec<String>,
    /// Stores by id that accept packs and say nothing.
    #[serde(default)]
    silent: Vec<String>,
    /// Objects that a store was not given.
    #[serde(default)]
    owed: Vec<String>,
}

fn file(folder: &Folder) -> PathBuf {
    folder.memory_file("stores.toml")
}

fn read(folder: &Folder) -> Record {
    let record = read_toml::<Record>(&file(folder)).ok().flatten();
    record.filter(|record| record.format == FORMAT).unwrap_or_default()
}

/// Tells log and pool what the last run has left. A run that only looks pays nothing back.
pub(crate) fn recall(folder: &Folder, log: &SlotCommitLog, pool: &Pool, pays: bool) {
    let record = read(folder);
    log.recall_silent_stores(record.silent_in_log.iter().map(String::as_str));
    let silent = record.silent.iter().filter_map(|id| id.parse::<StoreId>().ok()).collect();
    let owed = record.owed.iter().filter(|_| pays).filter_map(|key| ObjectKey::new(key).ok());
    pool.recall(&PoolMemory { silent, owed: owed.collect() });
}

/// Leaves to the next run what this one knows.
///
/// # Errors
/// [`crate::error::Code::File`].
pub(crate) fn remember(folder: &Folder, log: &SlotCommitLog, pool: &Pool) -> Result<()> {
    let PoolMemory { silent, owed } = pool.memory();
    let record = Record {
        format: FORMAT,
        silent_in_log: log.silent_stores(),
        silent: silent.iter().map(ToString::to_string).collect(),
        owed: owed.iter().map(ToString::to_string).collect(),
    };
    let is_empty =
        record.silent_in_log.is_empty() && record.silent.is_empty() && record.owed.is_empty();
    let before = read(folder);
    let is_known = record == before || (is_empty && before == Record::default());
    if is_known { Ok(()) } else { write_toml(&file(folder), &record) }
}
