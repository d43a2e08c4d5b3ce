//! Plays a trace into one folder, or into several that some program keeps equal, and looks whether all end as the trace says.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

use super::{Action, Reader, Step, data};
use crate::error::LabError;
use crate::files::{self, Found};
use crate::stopwatch::Stopwatch;

/// How often it is looked whether something has arrived.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How many differences are named.
const DIFFERENCES_MAX: usize = 20;

/// How a trace is played.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The folder of each client, in order.
    pub folders: Vec<PathBuf>,
    /// How many times as fast as the trace says; nothing waits for no time at all.
    pub speed: Option<f64>,
    /// How long it is waited for what others are to bring.
    pub patience: Duration,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Played {
    /// Steps of the initial tree.
    pub initial_steps: u64,
    /// Steps after that.
    pub steps: u64,
    /// Bytes that were written to files.
    pub written_bytes: u64,
    /// From the first step of the initial tree until all folders had it.
    pub initial: Duration,
    /// From the first step after that until the last one.
    pub playing: Duration,
    /// For how long in all steps waited for what another client had changed.
    pub waited: Duration,
    /// By how much the latest step began too late.
    pub latest: Duration,
    /// From the last step until all folders were as they should be; nothing if they were not in time.
    pub settled: Option<Duration>,
    /// What is not as it should be, some of it.
    pub differences: Vec<String>,
}

/// What a path should be: a folder, or a file of this size and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Folder,
    File { size: u64, digest: [u8; SHA256_OUTPUT_LEN] },
}

/// How closely folders are looked at. Sizes are known without reading anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    AtSizes,
    AtBytes,
}

struct Player<'a> {
    plan: &'a Plan,
    expected: BTreeMap<String, Expected>,
    played: Played,
    line: u64,
}

/// Plays all steps; `say` hears now and then how far it is.
///
/// # Errors
/// [`LabError::NotEmpty`], [`LabError::Trace`] where a step makes no sense, [`LabError::NotArrived`], [`LabError::Read`], [`LabError::Write`].
pub fn play<R: BufRead>(
    trace: Reader<R>,
    plan: &Plan,
    say: &mut dyn FnMut(&str),
) -> Result<Played, LabError> {
    play_after(trace, plan, &mut || Ok(()), say)
}

/// Does the same; `begin` is called when everybody has the initial tree, before the first change.
///
/// # Errors
/// As [`play`], and those of `begin`.
pub(crate) fn play_after<R: BufRead>(
    mut trace: Reader<R>,
    plan: &Plan,
    begin: &mut dyn FnMut() -> Result<(), LabError>,
    say: &mut dyn FnMut(&str),
) -> Result<Played, LabError> {
    let clients = trace.head().clients;
    if plan.folders.len() != clients {
        return Err(LabError::Folders { clients, folders: plan.folders.len() });
    }
    for folder in &plan.folders {
        if let Some(path) = files::tree(folder)?.into_keys().next() {
            return Err(LabError::NotEmpty { folder: folder.clone(), path });
        }
    }
    let mut player = Player { plan, expected: BTreeMap::new(), played: Played::default(), line: 1 };
    let mut watch = Stopwatch::start();
    let mut has_begun = false;
    while let Some(step) = trace.next() {
        let step = step?;
        player.line = trace.line();
        match (step.at_ms, has_begun) {
            (None, false) => player.played.initial_steps += 1,
            (None, true) => return Err(player.misfit("it belongs before all steps with a time")),
            (Some(_), _) => {
                if !has_begun {
                    player.end_initial(&watch, say)?;
                    begin()?;
                    (watch, has_begun) = (Stopwatch::start(), true);
                }
                player.played.steps += 1;
            }
        }
        player.step(&step, &watch)?;
        let steps = player.played.steps;
        if steps > 0 && steps.is_multiple_of(SAY_EVERY) {
            say(&format!("{steps} steps after {:.1} s", watch.read().wall.as_secs_f64()));
        }
    }
    if !has_begun {
        player.end_initial(&watch, say)?;
    }
    player.played.playing = if has_begun { watch.read().wall } else { Duration::ZERO };
    player.played.settled = player.settle();
    if player.played.settled.is_none() {
        player.played.differences = player.differences(Look::AtBytes)?;
    }
    Ok(player.played)
}

/// After so many steps something is said.
const SAY_EVERY: u64 = 1000;

impl Player<'_> {
    fn misfit(&self, what: &str) -> LabError {
        LabError::Trace { line: self.line, what: what.to_owned() }
    }

    /// The trace begins once everybody has the initial tree.
    fn end_initial(
        &mut self,
        watch: &Stopwatch,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        if self.settle().is_none() {
            let folder = self.plan.folders.last().cloned().unwrap_or_default();
            let what = self.differences(Look::AtBytes)?.into_iter().next().unwrap_or_default();
            return Err(LabError::NotArrived { line: self.line, folder, what });
        }
        self.played.initial = watch.read().wall;
        let (steps, seconds) = (self.played.initial_steps, self.played.initial.as_secs_f64());
        say(&format!("the initial tree of {steps} steps is everywhere after {seconds:.1} s"));
        Ok(())
    }

    fn step(&mut self, step: &Step, watch: &Stopwatch) -> Result<(), LabError> {
        if let (Some(at_ms), Some(speed)) = (step.at_ms, self.plan.speed) {
            let due = Duration::from_secs_f64(at_ms as f64 / 1000.0 / speed);
            let now = watch.read().wall;
            std::thread::sleep(due.saturating_sub(now));
            self.played.latest = self.played.latest.max(watch.read().wall.saturating_sub(due));
        }
        let folder = &self.plan.folders[step.client];
        match &step.action {
            Action::MakeFolder { path } => {
                self.must_be_free(path)?;
                self.wait_for_parent(folder, path)?;
                files::make_folder(&folder.join(path))?;
                self.expected.insert(path.clone(), Expected::Folder);
            }
            Action::Write { path, size, data, seed } => {
                if self.expected.get(path) == Some(&Expected::Folder) {
                    return Err(self.misfit("it writes a file where a folder is"));
                }
                self.wait_for_parent(folder, path)?;
                self.wait_for(folder, path)?;
                self.put(folder, path, &data::bytes(*data, *size, *seed))?;
            }
            Action::Edit { path, edits } => {
                if !matches!(self.expected.get(path), Some(Expected::File { .. })) {
                    return Err(self.misfit("it edits a file that is not there"));
                }
                self.wait_for(folder, path)?;
                let mut bytes = files::read(&folder.join(path))?;
                for edit in edits {
                    data::edit(&mut bytes, *edit);
                }
                if bytes.len() as u64 > super::FILE_SIZE_MAX {
                    return Err(self.misfit("it makes a file too large"));
                }
                self.put(folder, path, &bytes)?;
            }
            Action::Remove { path } => {
                if self.below(path).next().is_some() {
                    return Err(self.misfit("it removes a folder that is not empty"));
                }
                self.wait_for(folder, path)?;
                match self.expected.remove(path) {
                    None => return Err(self.misfit("it removes what is not there")),
                    Some(Expected::Folder) => files::remove_folder(&folder.join(path))?,
                    Some(Expected::File { .. }) => files::remove(&folder.join(path))?,
                }
            }
            Action::Rename { path, to } => self.rename(folder, path, to)?,
        }
        Ok(())
    }

    fn rename(&mut self, folder: &Path, path: &str, to: &str) -> Result<(), LabError> {
        self.must_be_free(to)?;
        if to.starts_with(&format!("{path}/")) {
            return Err(self.misfit("it moves a folder into itself"));
        }
        let below: Vec<_> = self.below(path).collect();
        for path in below.iter().map(String::as_str).chain([path]) {
            self.wait_for(folder, path)?;
        }
        self.wait_for_parent(folder, to)?;
        let moved = self.expected.remove(path);
        let moved = moved.ok_or_else(|| self.misfit("it renames what is not there"))?;
        files::rename(&folder.join(path), &folder.join(to))?;
        self.expected.insert(to.to_owned(), moved);
        for old in below {
            let kept = self.expected.remove(&old).expect("it was found there just now");
            self.expected.insert(format!("{to}{}", &old[path.len()..]), kept);
        }
        Ok(())
    }

    fn put(&mut self, folder: &Path, path: &str, bytes: &[u8]) -> Result<(), LabError> {
        files::write_in_place(&folder.join(path), bytes)?;
        self.played.written_bytes += bytes.len() as u64;
        self.expected.insert(path.to_owned(), file_of(bytes));
        Ok(())
    }

    fn must_be_free(&self, path: &str) -> Result<(), LabError> {
        if self.expected.contains_key(path) {
            return Err(self.misfit("something is there already"));
        }
        Ok(())
    }

    fn below(&self, path: &str) -> impl Iterator<Item = String> + use<'_> {
        let prefix = format!("{path}/");
        let from = self.expected.range(prefix.clone()..);
        from.map(|(path, _)| path.clone()).take_while(move |path| path.starts_with(&prefix))
    }

    fn wait_for_parent(&mut self, folder: &Path, path: &str) -> Result<(), LabError> {
        match path.rsplit_once('/') {
            None => Ok(()),
            Some((parent, _)) if self.expected.get(parent) == Some(&Expected::Folder) => {
                self.wait_for(folder, parent)
            }
            Some(_) => Err(self.misfit("its folder is not there")),
        }
    }

    /// Waits until a client has what another one has changed before: the steps of a trace follow each other.
    fn wait_for(&mut self, folder: &Path, path: &str) -> Result<(), LabError> {
        let Some(expected) = self.expected.get(path).copied() else { return Ok(()) };
        let watch = Stopwatch::start();
        while !is_there(&folder.join(path), expected)? {
            if watch.read().wall > self.plan.patience {
                let what = format!("'{path}' is not as it should be");
                return Err(LabError::NotArrived {
                    line: self.line,
                    folder: folder.to_owned(),
                    what,
                });
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.played.waited += watch.read().wall;
        Ok(())
    }

    /// Waits until all folders are as they should be, and says for how long.
    fn settle(&self) -> Option<Duration> {
        let watch = Stopwatch::start();
        loop {
            // Files that go while they are looked at are not as they should be yet.
            let is_equal = |look| self.differences(look).is_ok_and(|found| found.is_empty());
            if is_equal(Look::AtSizes) && is_equal(Look::AtBytes) {
                return Some(watch.read().wall);
            }
            if watch.read().wall > self.plan.patience {
                return None;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn differences(&self, look: Look) -> Result<Vec<String>, LabError> {
        let mut found = Vec::new();
        for folder in &self.plan.folders {
            let mut there = BTreeSet::new();
            for (path, what) in files::tree(folder)? {
                let is_right = match (self.expected.get(&path), what) {
                    (Some(Expected::Folder), Found::Folder) => true,
                    (Some(expected), Found::File { size }) => {
                        matches!(expected, Expected::File { size: wanted, .. } if *wanted == size)
                            && (look == Look::AtSizes || is_there(&folder.join(&path), *expected)?)
                    }
                    (None | Some(_), _) => false,
                };
                if !is_right {
                    let how = if self.expected.contains_key(&path) {
                        "has something else in it"
                    } else {
                        "should not be there"
                    };
                    found.push(format!("{}: '{path}' {how}", folder.display()));
                }
                there.insert(path);
                if found.len() >= DIFFERENCES_MAX {
                    return Ok(found);
                }
            }
            let missing = self.expected.keys().filter(|path| !there.contains(*path));
            found.extend(missing.map(|path| format!("{}: '{path}' is missing", folder.display())));
        }
        found.truncate(DIFFERENCES_MAX);
        Ok(found)
    }
}

fn file_of(bytes: &[u8]) -> Expected {
    let digest = digest(&SHA256, bytes);
    let digest = digest.as_ref().try_into().expect("SHA-256 has 32 bytes");
    Expected::File { size: bytes.len() as u64, digest }
}

fn is_there(path: &Path, expected: Expected) -> Result<bool, LabError> {
    match (files::look(path)?, expected) {
        (Some(Found::Folder), Expected::Folder) => Ok(true),
        (Some(Found::File { size }), Expected::File { size: wanted, .. }) if size == wanted => {
            Ok(files::read(path).is_ok_and(|bytes| file_of(&bytes) == expected))
        }
        _ => Ok(false),
    }
}
