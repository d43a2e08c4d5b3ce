//! Records what happens to a real folder: its tree as it is, then what has changed each time somebody looks.
//!
//! Contents do not go into a trace. Of each file a hash of every kilobyte is kept in memory, counted from its start and from its end, and tells which part of it has
//! changed: a change in one place is recorded as that, up to the kilobytes around it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Action, Edit, EditKind, FILE_SIZE_MAX, FORMAT, Head, Place, Step, data, write_line};
use crate::error::LabError;
use crate::files::{self, Found, Identity};
use crate::stopwatch::Stopwatch;

/// Bytes that share a hash.
const BLOCK: usize = 1024;

/// How often it is asked whether it is over, however seldom somebody looks.
const LISTEN_EVERY: Duration = Duration::from_millis(200);

/// How a folder is recorded.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The folder. What begins with a dot in it is not recorded.
    pub folder: PathBuf,
    /// What the trace is called.
    pub name: String,
    /// How long it is waited from one look to the next.
    pub pause: Duration,
    /// How long it is recorded; until somebody ends it by default.
    pub length: Option<Duration>,
}

/// What is known of a path.
#[derive(Debug, Clone)]
enum Known {
    Folder(Identity),
    File { identity: Identity, from_start: Vec<u64>, from_end: Vec<u64>, size: u64 },
}

impl Known {
    fn identity(&self) -> Identity {
        match self {
            Self::Folder(identity) | Self::File { identity, .. } => *identity,
        }
    }

    fn is_folder(&self) -> bool {
        matches!(self, Self::Folder(_))
    }
}

struct Recorder<'a, W> {
    plan: &'a Plan,
    out: W,
    known: BTreeMap<String, Known>,
    /// The trace itself, which may lie in the folder.
    own: Option<Identity>,
    /// Of the next new bytes.
    seed: u64,
    at_ms: Option<u64>,
    steps: u64,
}

/// Records into a file until `is_over`, which is told how many steps there are, says so.
///
/// # Errors
/// [`LabError::Read`], [`LabError::Write`], [`LabError::TooLarge`].
pub fn record(
    plan: &Plan,
    file: &Path,
    is_over: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, LabError> {
    let unwritten = |source: io::Error| LabError::Write { path: file.to_owned(), source };
    // A folder that is not there is refused before anything is written.
    files::tree(&plan.folder)?;
    let out = files::create(file)?;
    let own = files::identity(file)?;
    let mut recorder =
        Recorder { plan, out, known: BTreeMap::new(), own, seed: 0, at_ms: None, steps: 0 };
    let head = Head {
        syncline_trace: FORMAT,
        name: plan.name.clone(),
        about: format!("recorded, with a look every {} ms", plan.pause.as_millis()),
        clients: 1,
        dataset: None,
    };
    write_line(&mut recorder.out, &head).map_err(unwritten)?;
    recorder.look()?.map_err(unwritten)?;
    let watch = Stopwatch::start();
    let mut goes_on = true;
    while goes_on {
        let until = watch.wall() + plan.pause;
        while goes_on && watch.wall() < until {
            std::thread::sleep(until.saturating_sub(watch.wall()).min(LISTEN_EVERY));
            goes_on = !is_over(recorder.steps) && plan.length.is_none_or(|it| watch.wall() < it);
        }
        // The last look comes after the end was asked for: what changed until then is in the trace.
        recorder.at_ms = Some(watch.read().wall.as_millis() as u64);
        recorder.look()?.map_err(unwritten)?;
        recorder.out.flush().map_err(unwritten)?;
    }
    recorder.out.flush().map_err(unwritten)?;
    Ok(recorder.steps)
}

impl<W: Write> Recorder<'_, W> {
    /// Looks once, and writes what is not as it was.
    fn look(&mut self) -> Result<io::Result<()>, LabError> {
        let found = files::tree(&self.plan.folder)?;
        let mut steps = Vec::new();
        self.remove_what_is_another_kind(&found, &mut steps);
        for (path, what) in &found {
            let Some(identity) = files::identity(&self.plan.folder.join(path))? else { continue };
            if self.own.is_some_and(|own| own.is_same_as(identity)) {
                continue;
            }
            match (what, self.known.contains_key(path)) {
                (Found::Other, _) => {}
                (_, false) => self.add(path, *what, identity, &found, &mut steps)?,
                (Found::File { .. }, true) => self.compare(path, identity, &mut steps)?,
                (Found::Folder, true) => {
                    self.known.insert(path.clone(), Known::Folder(identity));
                }
            }
        }
        let gone: Vec<_> =
            self.known.keys().rev().filter(|path| !found.contains_key(*path)).cloned().collect();
        steps.extend(gone.into_iter().map(|path| {
            self.known.remove(&path);
            Action::Remove { path }
        }));
        self.steps += steps.len() as u64;
        let at_ms = self.at_ms;
        Ok(steps
            .into_iter()
            .try_for_each(|action| write_line(&mut self.out, &Step { at_ms, client: 0, action })))
    }

    /// Where a folder is now where a file was, or a file where a folder was, that goes first.
    fn remove_what_is_another_kind(
        &mut self,
        found: &BTreeMap<String, Found>,
        steps: &mut Vec<Action>,
    ) {
        let is_another = |path: &str, known: &Known| {
            let found = found.get(path);
            found.is_some_and(|found| known.is_folder() != (*found == Found::Folder))
        };
        let changed: Vec<_> = self
            .known
            .iter()
            .filter(|(path, known)| is_another(path, known))
            .map(|(path, _)| path.clone())
            .collect();
        for path in changed {
            for below in self.below(&path).into_iter().rev().chain([path]) {
                self.known.remove(&below);
                steps.push(Action::Remove { path: below });
            }
        }
    }

    /// A path that nothing had: what had another path before, or something new.
    fn add(
        &mut self,
        path: &str,
        what: Found,
        identity: Identity,
        found: &BTreeMap<String, Found>,
        steps: &mut Vec<Action>,
    ) -> Result<(), LabError> {
        let had_it = |(old, known): &(&String, &Known)| {
            known.identity().is_same_as(identity)
                && !found.contains_key(*old)
                && known.is_folder() == (what == Found::Folder)
        };
        // Nothing of the initial tree has been anything else before.
        let mut before = self.at_ms.map(|_| self.known.iter()).into_iter().flatten();
        let old = before.find(had_it).map(|(old, _)| old.clone());
        if let Some(old) = old {
            self.rename(&old, path);
            steps.push(Action::Rename { path: old, to: path.to_owned() });
            return if what == Found::Folder {
                Ok(())
            } else {
                self.compare(path, identity, steps)
            };
        }
        if what == Found::Folder {
            self.known.insert(path.to_owned(), Known::Folder(identity));
            steps.push(Action::MakeFolder { path: path.to_owned() });
            return Ok(());
        }
        let Some(bytes) = self.read(path)? else { return Ok(()) };
        self.known.insert(path.to_owned(), known(identity, &bytes));
        steps.push(self.whole(path, &bytes));
        Ok(())
    }

    fn rename(&mut self, old: &str, path: &str) {
        for below in self.below(old).into_iter().chain([old.to_owned()]) {
            if let Some(known) = self.known.remove(&below) {
                self.known.insert(format!("{path}{}", &below[old.len()..]), known);
            }
        }
    }

    /// Finds out in which part a file has changed, if it has.
    fn compare(
        &mut self,
        path: &str,
        identity: Identity,
        steps: &mut Vec<Action>,
    ) -> Result<(), LabError> {
        let Some(Known::File { identity: before, from_start, from_end, size }) =
            self.known.get(path)
        else {
            return Ok(());
        };
        if identity.is_unchanged_since(*before) {
            return Ok(());
        }
        let Some(bytes) = self.read(path)? else { return Ok(()) };
        let now = known(identity, &bytes);
        let Known::File { from_start: start, from_end: end, .. } = &now else { return Ok(()) };
        let (old, new) = (*size, bytes.len() as u64);
        let equal = |one: &[u64], other: &[u64]| {
            one.iter().zip(other).take_while(|(one, other)| one == other).count() * BLOCK
        };
        let shorter = old.min(new);
        let at_start = (equal(from_start, start) as u64).min(shorter);
        let at_end = (equal(from_end, end) as u64).min(shorter - at_start);
        let (cut, put) = (old - at_start - at_end, new - at_start - at_end);
        let is_same = cut == 0 && put == 0;
        let action = if is_same {
            None
        } else if at_start + at_end == 0 {
            Some(self.whole(path, &bytes))
        } else {
            let edits = [(EditKind::Cut, cut), (EditKind::Insert, put)];
            let edits = edits.into_iter().filter(|(_, size)| *size > 0).map(|(kind, size)| Edit {
                place: Place::Offset,
                offset: Some(at_start),
                kind,
                size,
                seed: self.next_seed(),
            });
            Some(Action::Edit { path: path.to_owned(), edits: edits.collect() })
        };
        self.known.insert(path.to_owned(), now);
        steps.extend(action);
        Ok(())
    }

    fn whole(&mut self, path: &str, bytes: &[u8]) -> Action {
        let data = data::kind_of(bytes);
        let (path, size, seed) = (path.to_owned(), bytes.len() as u64, self.next_seed());
        Action::Write { path, size, data, seed }
    }

    fn next_seed(&mut self) -> u64 {
        self.seed += 1;
        self.seed
    }

    /// Reads a file; nothing where it has gone since it was listed.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, LabError> {
        let path = self.plan.folder.join(path);
        match files::look(&path)? {
            Some(Found::File { size }) if size > FILE_SIZE_MAX => {
                Err(LabError::TooLarge { path, size })
            }
            Some(Found::File { .. }) => match files::read(&path) {
                Err(LabError::Read { source, .. }) if files::is_gone(&source) => Ok(None),
                read => read.map(Some),
            },
            _ => Ok(None),
        }
    }

    fn below(&self, path: &str) -> Vec<String> {
        let prefix = format!("{path}/");
        let from = self.known.range(prefix.clone()..).map(|(path, _)| path);
        from.take_while(|path| path.starts_with(&prefix)).cloned().collect()
    }
}

fn known(identity: Identity, bytes: &[u8]) -> Known {
    let hash = |block: &[u8]| {
        let mut hasher = DefaultHasher::new();
        block.hash(&mut hasher);
        hasher.finish()
    };
    Known::File {
        identity,
        from_start: bytes.chunks(BLOCK).map(hash).collect(),
        from_end: bytes.rchunks(BLOCK).map(hash).collect(),
        size: bytes.len() as u64,
    }
}

#[cfg(test)]
mod tests;
