//! What a folder's device remembers of its stores from one run to the next: which hang, and what they are owed.
//!
//! It is a cache: without it a run waits for stores that hang as the first one did, and `check --repair` finds what they are
//! owed.

use std::path::PathBuf;

use commit_log::SlotCommitLog;
use model::{StoreId, Timestamp};
use serde::{Deserialize, Serialize};
use storage::ObjectKey;
use storage::pool::{Pool, PoolMemory};

use crate::attendance::Attendance;
use crate::away::{self, Away};
use crate::error::Result;
use crate::folder::{Folder, Place};
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
    /// Stores that were away when they were asked last.
    #[serde(default)]
    away: Vec<Away>,
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
pub(crate) fn remember(
    folder: &Folder,
    log: &SlotCommitLog,
    pool: &Pool,
    (attendance, now): (&Attendance, Timestamp),
) -> Result<()> {
    let PoolMemory { silent, owed } = pool.memory();
    let before = read(folder);
    let mut silent_names = log.silent_stores();
    let mut away = before.away.clone();
    if let Place::Stored(stored) = &folder.place {
        let silent = silent.iter().filter_map(|id| stored.pool.store(*id));
        silent_names.extend(silent.map(|store| store.name.clone()));
    }
    away::update(&mut away, attendance, &silent_names, now);
    let record = Record {
        format: FORMAT,
        silent_in_log: log.silent_stores(),
        silent: silent.iter().map(ToString::to_string).collect(),
        owed: owed.iter().map(ToString::to_string).collect(),
        away,
    };
    write_if_new(folder, &before, &record)
}

fn write_if_new(folder: &Folder, before: &Record, record: &Record) -> Result<()> {
    let is_empty = *record == Record { format: FORMAT, ..Record::default() };
    let is_known = record == before || (is_empty && *before == Record::default());
    if is_known { Ok(()) } else { write_toml(&file(folder), record) }
}

/// Returns the stores that were away when they were asked last.
pub(crate) fn away(folder: &Folder) -> Vec<Away> {
    read(folder).away
}

/// Keeps what is known of stores that are away.
///
/// # Errors
/// [`crate::error::Code::File`].
pub(crate) fn set_away(folder: &Folder, away: &[Away]) -> Result<()> {
    let before = read(folder);
    let record = Record { format: FORMAT, away: away.to_vec(), ..read(folder) };
    write_if_new(folder, &before, &record)
}
