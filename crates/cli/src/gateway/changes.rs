//! What the door changes in a folder: put, make, move, delete.
//!
//! A file that is put is written aside, made durable, and exchanged with what the request rests on; then the exchange is made
//! durable, and only then the sender hears of it. Who was first wins: the conditions are checked again on what is there then.

use std::io;

use model::environment::random_bytes;
use model::path::PATH_DEPTH_MAX;
use model::{Name, RelativePath, Timestamp};
use server::doors::tree::{Changed, Condition, Destination, Put, Spooled};
use server::{Result, ServerError};
use sync::file_system::{FileError, FileKind, FileSystem, SERVICE_DIRECTORY, StageToken, Stat};

use super::looking::refusal;
use super::{OpenFolder, checksum_key, etag, item};

/// The permission bits of new files and directories, as those that come in over a server's door.
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// Where the trash keeps what was deleted or displaced here.
pub(super) const TRASH_LABEL: &str = "gateway";

/// How often something is tried anew because somebody else was first.
const TRIES: usize = 5;

pub(super) fn conflict(path: &RelativePath, reason: &'static str) -> ServerError {
    ServerError::Conflict { what: format!("'{path}'"), reason }
}

fn absent(path: &RelativePath) -> ServerError {
    refusal(FileError::NotFound(path.clone()))
}

fn busy(path: &RelativePath) -> ServerError {
    conflict(path, "was changed by others at the same moment, again and again; try again")
}

impl OpenFolder {
    /// Refuses to change what was opened to be read.
    pub(super) fn check_may_write(&self) -> Result<()> {
        match self.is_read_only {
            true => Err(ServerError::Forbidden {
                what:
                    "to change anything through this gateway, which was started with --read-only,"
                        .to_owned(),
            }),
            false => Ok(()),
        }
    }

    fn check_condition(
        &self,
        condition: &Condition,
        path: &RelativePath,
        found: Option<&Stat>,
    ) -> Result<()> {
        condition.check_version(path, found.map(etag))
    }

    /// Refuses a place whose directory is not there.
    pub(super) fn check_parent(&self, path: &RelativePath) -> Result<()> {
        let (parent, _) = path.split_last().ok_or_else(|| conflict(path, "is the root"))?;
        match self.look(&parent)? {
            Some(stat) if stat.kind == FileKind::Directory => Ok(()),
            _ => Err(conflict(&parent, "is no folder; make it first")),
        }
    }

    /// Makes what was done durable.
    pub(super) fn make_durable(&self) -> Result<()> {
        self.durability.ask(|| self.files.make_durable()).map_err(refusal)
    }

    pub(super) fn new_token(&self) -> StageToken {
        StageToken::from_le_bytes(random_bytes(&*self.random))
    }

    /// Tells whether a file may be put, and what it would replace.
    pub(super) fn check_put(&self, put: &Put) -> Result<Option<Stat>> {
        self.check_may_write()?;
        let path = &put.path;
        let found = self.stat(path)?;
        self.check_condition(&put.condition, path, found.as_ref())?;
        self.check_parent(path)?;
        match found.map(|found| found.kind) {
            Some(FileKind::Directory) => return Err(conflict(path, "is a folder")),
            Some(FileKind::Symlink) => return Err(conflict(path, "is a symbolic link")),
            Some(FileKind::Other) => return Err(conflict(path, "is no file")),
            Some(FileKind::File) | None => self.check_name(path, false)?,
        }
        Ok(found)
    }

    /// Puts a file.
    pub(super) fn put(&self, put: &Put, body: &Spooled) -> Result<Changed<Stat>> {
        for _ in 0..TRIES {
            let found = self.check_put(put)?;
            let token = self.new_token();
            let mode = found.map_or(FILE_MODE, |found| found.mode);
            self.stage(token, (mode, put.modified), |target| body.write_to(target))?;
            let Some(stat) = self.install(token, &put.path, found.as_ref())? else { continue };
            self.make_durable()?;
            if let Some(checksums) = &body.checksums {
                self.checksums.note(checksum_key(&stat), checksums.clone());
            }
            let item = Some(item(&put.path, stat));
            return Ok(Changed { item, is_new: found.is_none() });
        }
        Err(busy(&put.path))
    }

    /// Writes a file aside, durably.
    fn stage(
        &self,
        token: StageToken,
        (mode, modified): (u32, Timestamp),
        write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<()> {
        self.stage_undurably(token, (mode, modified), write)?;
        self.make_durable()
    }

    /// Writes a file aside.
    pub(super) fn stage_undurably(
        &self,
        token: StageToken,
        (mode, modified): (u32, Timestamp),
        write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<()> {
        let mut staged = self.files.stage(token).map_err(refusal)?;
        let written = write(&mut *staged).map_err(|error| ServerError::Storage {
            text: format!("a file that was received cannot be written: {error}"),
            is_full: matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            ),
            is_damage: false,
        });
        written.and_then(|()| staged.finish(mode, modified).map_err(refusal))
    }

    /// Gives what stands aside its place, if nobody was faster; what it displaces is kept where nobody else has it.
    pub(super) fn install(
        &self,
        token: StageToken,
        path: &RelativePath,
        found: Option<&Stat>,
    ) -> Result<Option<Stat>> {
        let installed = match found {
            Some(found) if !self.is_kept_elsewhere(path, found) => {
                self.files.replace(token, path, found, TRASH_LABEL)
            }
            found => self.files.install(token, path, found),
        };
        let error = match installed {
            Ok(stat) => return Ok(Some(stat)),
            Err(error) => error,
        };
        let discarded = self.files.discard(token);
        match error {
            // What stands aside is not found after another process has cleared that place.
            FileError::AlreadyExists(_) | FileError::Changed(_) | FileError::NotFound(_) => {
                discarded.map_err(refusal)?;
                Ok(None)
            }
            error => Err(refusal(error)),
        }
    }

    /// Makes a directory.
    pub(super) fn make_folder(&self, path: &RelativePath) -> Result<()> {
        self.check_may_write()?;
        if path.is_root() || self.stat(path)?.is_some() {
            return Err(ServerError::Taken { what: format!("something at '{path}'") });
        }
        self.check_parent(path)?;
        self.check_name(path, true)?;
        self.files.make_directory(path, DIRECTORY_MODE).map_err(refusal)?;
        self.make_durable()
    }

    /// Sets when a file was modified.
    pub(super) fn set_modified(&self, path: &RelativePath, modified: Timestamp) -> Result<()> {
        self.check_may_write()?;
        for _ in 0..TRIES {
            let found = self.existing(path)?;
            if found.kind == FileKind::Directory {
                return Ok(());
            }
            let sums = self.checksums.get(&checksum_key(&found));
            match self.files.set_attributes(path, &found, found.mode, Some(modified)) {
                Ok(stat) => {
                    if let Some(sums) = sums {
                        self.checksums.note(checksum_key(&stat), sums);
                    }
                    return self.make_durable();
                }
                Err(FileError::Changed(_)) => {}
                Err(error) => return Err(refusal(error)),
            }
        }
        Err(busy(path))
    }

    /// Returns what stands at a path, which must be something.
    pub(super) fn existing(&self, path: &RelativePath) -> Result<Stat> {
        self.look(path)?.ok_or_else(|| absent(path))
    }

    /// Deletes a file, or a directory with everything in it, into the trash of the folder.
    pub(super) fn delete(&self, path: &RelativePath, condition: &Condition) -> Result<()> {
        self.check_may_write()?;
        let found = self.look(path)?;
        self.check_condition(condition, path, found.as_ref())?;
        if path.is_root() {
            return Err(conflict(path, "is the root"));
        }
        let found = found.ok_or_else(|| absent(path))?;
        self.remove(path, found)?;
        self.make_durable()
    }

    /// Moves something to the trash, what is in it before it.
    pub(super) fn remove(&self, path: &RelativePath, found: Stat) -> Result<()> {
        for (path, stat) in self.below(path, found)?.iter().rev() {
            self.files.trash(path, stat, TRASH_LABEL).map_err(refusal)?;
        }
        Ok(())
    }

    /// Returns a file or directory and everything in it, each after its directory, also what is not shown.
    pub(super) fn below(
        &self,
        path: &RelativePath,
        stat: Stat,
    ) -> Result<Vec<(RelativePath, Stat)>> {
        let mut found = vec![(path.clone(), stat)];
        let mut next = 0;
        while let Some((directory, stat)) = found.get(next).cloned() {
            next += 1;
            if stat.kind != FileKind::Directory {
                continue;
            }
            for entry in self.entries(&directory)? {
                if entry.name == SERVICE_DIRECTORY.as_bytes() {
                    return Err(conflict(&directory, "is the folder of another workspace"));
                }
                let name = Name::new(entry.name).ok();
                let path = name.and_then(|name| directory.join(&name).ok());
                let unnamed = || conflict(&directory, "holds a name that cannot be told");
                found.push((path.ok_or_else(unnamed)?, entry.stat));
            }
        }
        Ok(found)
    }

    /// Moves or renames something; tells whether there was nothing before.
    pub(super) fn relocate(
        &self,
        from: &RelativePath,
        to: &Destination,
        condition: &Condition,
    ) -> Result<bool> {
        self.check_may_write()?;
        for _ in 0..TRIES {
            let source = self.existing(from)?;
            self.check_condition(condition, from, Some(&source))?;
            if from.is_root() {
                return Err(conflict(from, "is the root"));
            }
            let there = self.check_destination((from, source), to)?;
            let moved = match there {
                Some(there) if is_file(&source) && is_file(&there) => {
                    self.files.move_over(from, &to.path, &there, TRASH_LABEL)
                }
                there => {
                    if let Some(there) = there {
                        self.remove(&to.path, there)?;
                    }
                    self.files.rename(from, &to.path).map(drop)
                }
            };
            match moved {
                Ok(()) => {
                    self.make_durable()?;
                    return Ok(there.is_none());
                }
                Err(FileError::AlreadyExists(_) | FileError::Changed(_)) => {}
                Err(error) => return Err(refusal(error)),
            }
        }
        Err(busy(from))
    }

    /// Tells whether something may go to a place, and what it would replace.
    pub(super) fn check_destination(
        &self,
        (from, source): (&RelativePath, Stat),
        to: &Destination,
    ) -> Result<Option<Stat>> {
        let is_directory = source.kind == FileKind::Directory;
        if is_directory && to.path.starts_with(from) {
            return Err(conflict(&to.path, "lies in what is to go there"));
        }
        if from.starts_with(&to.path) {
            return Err(conflict(from, "lies in what would be replaced"));
        }
        self.check_parent(&to.path)?;
        self.check_name(&to.path, is_directory)?;
        if is_directory {
            let inside = self.below(from, source)?;
            let depth = inside.iter().map(|(path, _)| path.depth() - from.depth()).max();
            if to.path.depth() + depth.unwrap_or(0) > PATH_DEPTH_MAX {
                return Err(conflict(&to.path, "would have folders in it that lie too deep"));
            }
        }
        let there = self.stat(&to.path)?;
        if !to.overwrite {
            self.check_condition(&Condition::Absent, &to.path, there.as_ref())?;
        }
        Ok(there)
    }
}

pub(super) fn is_file(stat: &Stat) -> bool {
    matches!(stat.kind, FileKind::File | FileKind::Symlink)
}
