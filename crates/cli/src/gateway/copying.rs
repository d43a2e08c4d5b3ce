//! Copies files and folders inside a folder: all contents aside, made durable together, then each to its place.

use std::io::BufReader;

use model::RelativePath;
use server::doors::tree::Destination;
use server::{Result, ServerError};
use sync::file_system::{FileError, FileKind, FileSystem, StageToken, Stat};

use super::changes::{conflict, is_file};
use super::looking::refusal;
use super::{OpenFolder, PIECE};

/// Something that is to be copied.
struct Copy {
    to: RelativePath,
    source: Stat,
    /// Its content, aside; nothing for a directory.
    token: Option<StageToken>,
}

impl OpenFolder {
    /// Copies something, with everything in it that is synced where `is_deep`; tells whether there was nothing before.
    pub(super) fn copy(
        &self,
        from: &RelativePath,
        to: &Destination,
        is_deep: bool,
    ) -> Result<bool> {
        self.check_may_write()?;
        let source = self.existing(from)?;
        if from.is_root() {
            return Err(conflict(from, "is the root"));
        }
        let there = self.check_destination((from, source), to)?;
        let copies = match self.set_aside(from, &to.path, source, is_deep) {
            Ok(copies) => copies,
            Err(failed) => return Err(self.clear(failed)),
        };
        // A file gives way to a file in one step.
        let in_one_step = there.filter(|there| is_file(&source) && is_file(there));
        let placed = self.make_durable().and_then(|()| {
            if let (Some(there), None) = (there, in_one_step) {
                self.remove(&to.path, there)?;
            }
            copies.iter().try_for_each(|copy| self.place(copy, in_one_step.as_ref()))
        });
        if let Err(error) = placed {
            return Err(self.clear((error, copies)));
        }
        self.make_durable()?;
        Ok(there.is_none())
    }

    /// Copies contents aside, each after its directory.
    fn set_aside(
        &self,
        from: &RelativePath,
        to: &RelativePath,
        source: Stat,
        is_deep: bool,
    ) -> Result<Vec<Copy>, (ServerError, Vec<Copy>)> {
        let mut copies = Vec::new();
        let mut waiting = vec![(from.clone(), to.clone(), source)];
        while let Some((from, to, source)) = waiting.pop() {
            let token = match source.kind {
                FileKind::File | FileKind::Symlink => Some(self.new_token()),
                FileKind::Directory | FileKind::Other => None,
            };
            copies.push(Copy { to: to.clone(), source, token });
            let done = match token {
                Some(token) => self.copy_aside(&from, &source, token),
                None if is_deep => self.list(&from).map(|items| {
                    for item in items {
                        let name = item.name.as_ref();
                        let below = |path: &RelativePath| path.join(name?).ok();
                        if let Some((from, to)) = below(&from).zip(below(&to)) {
                            waiting.push((from, to, item.handle));
                        }
                    }
                }),
                None => Ok(()),
            };
            if let Err(error) = done {
                return Err((error, copies));
            }
        }
        Ok(copies)
    }

    fn copy_aside(&self, from: &RelativePath, source: &Stat, token: StageToken) -> Result<()> {
        if source.kind == FileKind::Symlink {
            let target = self.files.read_link(from).map_err(refusal)?;
            return self.files.stage_link(token, &target, source.modified).map_err(refusal);
        }
        let mut file = self.open(from, source, 0)?;
        self.stage_undurably(token, (source.mode, source.modified), |target| {
            std::io::copy(&mut BufReader::with_capacity(PIECE, &mut file), target).map(drop)
        })?;
        match file.stat().map_err(refusal)? == *source {
            true => Ok(()),
            false => Err(conflict(from, "was changed while it was copied; try again")),
        }
    }

    /// Gives a copy its place.
    fn place(&self, copy: &Copy, replaced: Option<&Stat>) -> Result<()> {
        let Some(token) = copy.token else {
            return match self.files.make_directory(&copy.to, copy.source.mode) {
                Ok(_) | Err(FileError::AlreadyExists(_)) => Ok(()),
                Err(error) => Err(refusal(error)),
            };
        };
        match self.install(token, &copy.to, replaced)? {
            Some(_) => Ok(()),
            None => Err(conflict(
                &copy.to,
                "was changed by somebody else at the same moment; try again",
            )),
        }
    }

    /// Removes what stands aside of a copy that failed.
    fn clear(&self, (error, copies): (ServerError, Vec<Copy>)) -> ServerError {
        for token in copies.iter().filter_map(|copy| copy.token) {
            // What is left is removed when the folder is claimed the next time.
            let _ = self.files.discard(token);
        }
        error
    }
}
