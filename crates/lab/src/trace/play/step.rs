//! What a step does in the folder of its client, and what it waits for.

use std::path::Path;
use std::thread;

use super::{Expected, LOOK_EVERY, NO_PANIC, Player, file_of, is_there, misfit};
use crate::digest::sha256_text;
use crate::error::LabError;
use crate::files;
use crate::stopwatch::Stopwatch;
use crate::trace::{Action, FILE_SIZE_MAX, Step, data};

/// A step that is done.
struct Doing<'a> {
    player: &'a Player<'a>,
    folder: &'a Path,
    line: u64,
    /// Whether nobody needs it any more.
    is_over: &'a dyn Fn() -> bool,
}

impl Player<'_> {
    /// Does a step of a line; where it waits it looks whether it is over.
    pub(super) fn step(
        &self,
        line: u64,
        step: &Step,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), LabError> {
        let client = step.client;
        let doing = Doing { player: self, folder: &self.plan.folders[client], line, is_over };
        doing.act(&step.action).map_err(|error| match error {
            LabError::Read { .. } | LabError::Write { .. } => {
                LabError::Step { client, line, source: Box::new(error) }
            }
            of_the_trace => of_the_trace,
        })
    }
}

impl Doing<'_> {
    fn act(&self, action: &Action) -> Result<(), LabError> {
        match action {
            Action::MakeFolder { path } => {
                self.must_be_free(path)?;
                self.wait_for_parent(path)?;
                files::make_folder(&self.folder.join(path))?;
                self.expect(path, Expected::Folder);
                Ok(())
            }
            Action::Write { path, size, data, seed } => {
                self.write(path, || Ok(data::bytes(*data, *size, *seed)))
            }
            Action::WriteVersion { path, version, size, sha256 } => {
                self.write(path, || self.made(path, *version, *size, sha256))
            }
            Action::Edit { path, edits } => {
                if !matches!(self.expected(path), Some(Expected::File { .. })) {
                    return Err(self.misfit("it edits a file that is not there"));
                }
                self.wait_for(path)?;
                let mut bytes = files::read(&self.folder.join(path))?;
                for edit in edits {
                    data::edit(&mut bytes, *edit);
                    if bytes.len() as u64 > FILE_SIZE_MAX {
                        return Err(self.misfit("it makes a file too large"));
                    }
                }
                self.put(path, &bytes)
            }
            Action::Remove { path } => {
                if !self.below(path).is_empty() {
                    return Err(self.misfit("it removes a folder that is not empty"));
                }
                self.wait_for(path)?;
                let removed = self.player.state().expected.remove(path);
                match removed {
                    None => Err(self.misfit("it removes what is not there")),
                    Some(Expected::Folder) => {
                        let folder = self.folder.join(path);
                        // What another client has removed from it may still be here.
                        self.wait_until(path, || Ok(files::tree(&folder)?.is_empty()))?;
                        files::remove_folder(&folder)
                    }
                    Some(Expected::File { .. }) => files::remove(&self.folder.join(path)),
                }
            }
            Action::Rename { path, to } => self.rename(path, to),
        }
    }

    fn write(
        &self,
        path: &str,
        bytes: impl FnOnce() -> Result<Vec<u8>, LabError>,
    ) -> Result<(), LabError> {
        if self.expected(path) == Some(Expected::Folder) {
            return Err(self.misfit("it writes a file where a folder is"));
        }
        self.wait_for_parent(path)?;
        self.wait_for(path)?;
        self.put(path, &bytes()?)
    }

    /// Makes a file of a version of the dataset again.
    fn made(
        &self,
        path: &str,
        version: usize,
        size: u64,
        wanted: &str,
    ) -> Result<Vec<u8>, LabError> {
        let series = self.player.series.as_ref();
        let series = series.ok_or_else(|| self.misfit("the trace is of no dataset"))?;
        let mut series = series.lock().expect(NO_PANIC);
        if version < series.version() {
            return Err(self.misfit("a later version has begun"));
        }
        if version > series.versions() {
            return Err(self.misfit("the dataset has fewer versions"));
        }
        while series.version() < version {
            series.advance(&mut |_, _| Ok(()))?;
        }
        let bytes = series.bytes(path);
        let bytes = bytes.ok_or_else(|| self.misfit("this version has no such file"))?;
        if bytes.len() as u64 != size || sha256_text(&bytes) != wanted {
            let what = "this program makes other bytes than the one that made the trace";
            return Err(self.misfit(what));
        }
        Ok(bytes)
    }

    fn rename(&self, path: &str, to: &str) -> Result<(), LabError> {
        self.must_be_free(to)?;
        if to.starts_with(&format!("{path}/")) {
            return Err(self.misfit("it moves a folder into itself"));
        }
        let below = self.below(path);
        for path in below.iter().map(String::as_str).chain([path]) {
            self.wait_for(path)?;
        }
        self.wait_for_parent(to)?;
        if self.expected(path).is_none() {
            return Err(self.misfit("it renames what is not there"));
        }
        files::rename(&self.folder.join(path), &self.folder.join(to))?;
        let expected = &mut self.player.state().expected;
        for old in below.iter().map(String::as_str).chain([path]) {
            let kept = expected.remove(old).expect("it was found there just now");
            expected.insert(format!("{to}{}", &old[path.len()..]), kept);
        }
        Ok(())
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Result<(), LabError> {
        files::write_in_place(&self.folder.join(path), bytes)?;
        self.player.state().played.written_bytes += bytes.len() as u64;
        self.expect(path, file_of(bytes));
        Ok(())
    }

    fn misfit(&self, what: &str) -> LabError {
        misfit(self.line, what)
    }

    fn expected(&self, path: &str) -> Option<Expected> {
        self.player.state().expected.get(path).copied()
    }

    fn expect(&self, path: &str, what: Expected) {
        self.player.state().expected.insert(path.to_owned(), what);
    }

    fn must_be_free(&self, path: &str) -> Result<(), LabError> {
        match self.expected(path) {
            Some(_) => Err(self.misfit("something is there already")),
            None => Ok(()),
        }
    }

    fn below(&self, path: &str) -> Vec<String> {
        let (prefix, state) = (format!("{path}/"), self.player.state());
        let from = state.expected.range(prefix.clone()..).map(|(path, _)| path.clone());
        from.take_while(|path| path.starts_with(&prefix)).collect()
    }

    fn wait_for_parent(&self, path: &str) -> Result<(), LabError> {
        match path.rsplit_once('/') {
            None => Ok(()),
            Some((parent, _)) if self.expected(parent) == Some(Expected::Folder) => {
                self.wait_for(parent)
            }
            Some(_) => Err(self.misfit("its folder is not there")),
        }
    }

    /// Waits until a client has what another one has changed before: the steps of a trace follow each other.
    fn wait_for(&self, path: &str) -> Result<(), LabError> {
        let Some(expected) = self.expected(path) else { return Ok(()) };
        self.wait_until(path, || is_there(&self.folder.join(path), expected))
    }

    /// Waits until something is so at a path.
    fn wait_until(
        &self,
        path: &str,
        is_so: impl Fn() -> Result<bool, LabError>,
    ) -> Result<(), LabError> {
        let watch = Stopwatch::start();
        while !is_so()? {
            if watch.wall() > self.player.plan.patience || (self.is_over)() {
                let what = format!("'{path}' is not as it should be");
                let (line, folder) = (self.line, self.folder.to_owned());
                return Err(LabError::NotArrived { line, folder, what });
            }
            thread::sleep(LOOK_EVERY);
        }
        self.player.state().played.waited += watch.wall();
        Ok(())
    }
}
