//! Backups of a server that runs, and a server from a backup.
//!
//! *Goals*: a backup has the metadata of one moment and every object that they name; what an earlier one has copied is not
//! copied again; cut off anywhere it is repeated without harm. *Invariants*: an object is copied only if its bytes are what
//! its name says; a backup is there when its list is, which is written when everything else was found to be there; a restored
//! server has its database last, so that half a restored one is none.

use futures_util::{StreamExt, TryStreamExt, stream};
use model::Clock;
use storage::{ObjectKey, ObjectStore};

use super::archive::{self, Backup};
use super::scratch::Scratch;
use super::shelf::{Looked, Shelf, look};
use super::verify::{Report, verify};
use crate::Sqlite;
use crate::data_folder::DataFolder;
use crate::database::Database;
use crate::error::{Result, ServerError};
use crate::metadata::copy::{TableSum, copy_all, copy_to_file, is_empty};
use crate::metadata::{LogTables, Metadata, ObjectTables, RowTables, WorkspaceRecord};

/// How often a backup begins again because a cleanup has removed what it was about to copy.
const PASSES_MAX: u32 = 5;

/// How many rows are asked for at once.
const PAGE: usize = 1000;

/// How many objects are copied at once.
const AT_ONCE: usize = 8;

/// A backup that was made, or a server that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The name of the backup.
    pub backup: String,
    /// How many objects were copied now.
    pub objects: u64,
    /// Their bytes.
    pub object_bytes: u64,
    /// How many bytes of metadata were written now.
    pub metadata_bytes: u64,
    /// What was found when it was looked at in the end.
    pub report: Report,
}

#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    objects: u64,
    bytes: u64,
}

/// Copies a server into another store, whether it runs or not. What the server itself has lost is in the report, and everything
/// else in the backup.
///
/// # Errors
/// [`ServerError`]; no backup is there then that was not there before.
pub fn backup(
    live: &mut dyn Metadata,
    (source, target): (&Shelf, &Shelf),
    scratch: &Scratch,
    clock: &dyn Clock,
) -> Result<Copied> {
    let mut moved = Moved::default();
    let mut pass = 1;
    let (file, report) = loop {
        let file = scratch.file("copy.sqlite")?;
        copy_to_file(live, &file)?;
        let copy = Sqlite::open_reader(&file)?;
        copy_objects(&copy, source, target, &mut moved)?;
        let report = verify(&copy, target, false)?;
        drop(copy);
        if pass == PASSES_MAX || !report.has_lost_what_is_not_needed(live)? {
            break (file, report);
        }
        pass += 1;
    };
    // Their names tell which is the newest, whatever clocks do.
    let last = archive::backups(target)?.pop().map_or(0, |name| archive::time_of(&name));
    let mut made = archive::new_backup(clock.now().seconds.max(last + 1));
    let (parts, metadata_bytes) = archive::put_metadata(target, &file)?;
    made.parts = parts;
    made.workspaces = report.workspaces;
    (made.objects, made.object_bytes) = (report.objects, report.object_bytes);
    made.damage = report.damage.len() as u64 + report.damage_not_listed;
    archive::get_metadata(target, &made, None)?;
    let name = archive::put_backup(target, &made)?;
    Ok(Copied {
        backup: name,
        objects: moved.objects,
        object_bytes: moved.bytes,
        metadata_bytes,
        report,
    })
}

/// Looks at a backup as [`verify`] does at a server.
///
/// # Errors
/// [`ServerError::NotFound`] where there is no such backup; others where it cannot be read.
pub fn verify_backup(
    source: &Shelf,
    name: Option<&str>,
    scratch: &Scratch,
    read_data: bool,
) -> Result<(String, Report)> {
    let (name, made) = choose(source, name)?;
    let report = verify(&fetch(source, &made, scratch)?, source, read_data)?;
    Ok((name, report))
}

/// Makes a server of a backup, in an empty place: a folder without a database, or an empty database, and a store that has nothing but
/// what the backup has. Repeated after it was cut off, it goes on.
///
/// # Errors
/// [`ServerError::Taken`] where the place is not empty, and then nothing was done.
pub fn restore(
    (source, name): (&Shelf, Option<&str>),
    (folder, database): (&DataFolder, &Database),
    target: &Shelf,
    scratch: &Scratch,
) -> Result<Copied> {
    let _lock = folder.lock()?;
    check_database_is_empty(folder, database)?;
    let (backup, made) = choose(source, name)?;
    let mut copy = fetch(source, &made, scratch)?;
    check_store_is_empty(&copy, target)?;
    let mut moved = Moved::default();
    copy_objects(&copy, source, target, &mut moved)?;
    let report = verify(&copy, target, false)?;
    let metadata_bytes = made.parts.iter().map(|part| part.length).sum();
    copy.begin_reading()?;
    fill_database(&copy, folder, database)?;
    Ok(Copied { backup, objects: moved.objects, object_bytes: moved.bytes, metadata_bytes, report })
}

/// Returns the backup of that name, or the newest.
fn choose(source: &Shelf, name: Option<&str>) -> Result<(String, Backup)> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => archive::backups(source)?
            .pop()
            .ok_or_else(|| ServerError::NotFound { what: "backup in the store".to_owned() })?,
    };
    let made = archive::get_backup(source, &name)?;
    Ok((name, made))
}

/// Brings the metadata of a backup here, and up to date.
fn fetch(source: &Shelf, made: &Backup, scratch: &Scratch) -> Result<Sqlite> {
    let file = scratch.file("backup.sqlite")?;
    archive::get_metadata(source, made, Some(&file))?;
    Ok(Sqlite::open(&file)?)
}

pub(super) fn check_database_is_empty(folder: &DataFolder, database: &Database) -> Result<()> {
    let taken = |what: String| Err(ServerError::Taken { what });
    if let Database::Embedded = database {
        return match folder.has_database()? {
            true => taken(format!("a database in {}", folder.path().display())),
            false => Ok(()),
        };
    }
    let mut there = database.open(folder)?;
    there.begin_reading()?;
    let is_empty = is_empty(&*there);
    there.rollback();
    match is_empty? {
        true => Ok(()),
        false => taken("something in the database".to_owned()),
    }
}

/// Copies everything from a database in a transaction into one that is empty; it is all there with the last step, or nothing.
pub(super) fn fill_database(
    source: &dyn Metadata,
    folder: &DataFolder,
    database: &Database,
) -> Result<Vec<TableSum>> {
    if let Database::Embedded = database {
        let mut target = Sqlite::open(&folder.new_database_path()?)?;
        let copied = copy_all(source, &mut target)?;
        target.flush()?;
        drop(target);
        folder.put_database_in_place()?;
        return Ok(copied);
    }
    Ok(copy_all(source, &mut *database.open(folder)?)?)
}

/// Checks that a store has nothing but what these metadata name.
fn check_store_is_empty(copy: &Sqlite, target: &Shelf) -> Result<()> {
    for workspace in workspaces(copy)? {
        let scope = format!("workspaces/{}/", workspace.id);
        let mut walk = target.walk(scope.clone());
        while let Some(line) = walk.take()? {
            let key = line.key.as_str().strip_prefix(&scope).unwrap_or_default();
            if copy.object_length(workspace.number, key)? != Some(line.size) {
                return Err(ServerError::Taken { what: format!("'{}' in the store", line.key) });
            }
        }
    }
    let mut walk = target.walk("workspaces/".to_owned());
    while let Some(line) = walk.take()? {
        let id = line.key.as_str().split('/').nth(1).and_then(|id| id.parse().ok());
        let is_known = match id {
            Some(id) => copy.workspace(id)?.is_some(),
            None => false,
        };
        if !is_known {
            return Err(ServerError::Taken { what: format!("'{}' in the store", line.key) });
        }
    }
    Ok(())
}

fn workspaces(copy: &Sqlite) -> Result<Vec<WorkspaceRecord>> {
    let metadata: &dyn Metadata = copy;
    let mut all = Vec::new();
    for account in metadata.accounts()? {
        all.extend(metadata.workspaces(account.id)?);
    }
    Ok(all)
}

/// Copies the objects that these metadata name and that are not there yet. What cannot be used is left out.
fn copy_objects(copy: &Sqlite, source: &Shelf, target: &Shelf, moved: &mut Moved) -> Result<()> {
    let metadata: &dyn Metadata = copy;
    for workspace in workspaces(copy)? {
        let scope = format!("workspaces/{}/", workspace.id);
        let (mut walk, mut after) = (target.walk(scope.clone()), String::new());
        loop {
            let page = metadata.objects(workspace.number, "", &after, PAGE)?;
            let mut missing = Vec::new();
            for (text, length) in &page {
                let Ok(key) = ObjectKey::new(text) else { continue };
                let inside = ObjectKey::new(&format!("{scope}{text}"))?;
                if walk.find(&inside, |_| ())? != Some(*length) {
                    missing.push((key, *length));
                }
            }
            copy_page((source, target), &workspace, missing, moved)?;
            match page.into_iter().next_back() {
                Some((last, _)) => after = last,
                None => break,
            }
        }
    }
    Ok(())
}

fn copy_page(
    (source, target): (&Shelf, &Shelf),
    workspace: &WorkspaceRecord,
    missing: Vec<(ObjectKey, u64)>,
    moved: &mut Moved,
) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let (from, to) = (source.of(workspace.id), target.of(workspace.id));
    let (from, to) = (&from, &to);
    let copy = stream::iter(missing)
        .map(|(key, length)| async move {
            match look(from, &key, length).await? {
                Looked::Whole(bytes) => {
                    to.put_deferred(&key, bytes).await?;
                    Ok::<_, ServerError>(Some(length))
                }
                Looked::Unusable(reason) => {
                    tracing::warn!(%key, reason, "an object cannot be copied");
                    Ok(None)
                }
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<_>>();
    // A group becomes durable at once.
    let copied = target.wait(async {
        let copied = copy.await?;
        to.sync().await?;
        Ok::<_, ServerError>(copied)
    })?;
    for length in copied.into_iter().flatten() {
        moved.objects += 1;
        moved.bytes += length;
    }
    Ok(())
}
