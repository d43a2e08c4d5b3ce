//! Plays a trace into one folder, or into several that some program keeps equal, and looks whether all end as the trace says.
//!
//! What a step does is in `play/step.rs`. Where time is kept, each of several clients plays by a thread of its own (`play/clients.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use ring::digest::SHA256_OUTPUT_LEN;

use super::{Head, Reader, Step};
use crate::dataset::series::Series;
use crate::digest::sha256;
use crate::error::LabError;
use crate::files::{self, Found};
use crate::stopwatch::Stopwatch;

mod clients;
mod step;

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

/// What all clients share.
struct Player<'a> {
    plan: &'a Plan,
    state: Mutex<State>,
    /// Of which files of the trace are.
    series: Option<Mutex<Series>>,
}

#[derive(Default)]
struct State {
    expected: BTreeMap<String, Expected>,
    played: Played,
}

/// Plays all steps; `say` hears now and then how far it is.
///
/// # Errors
/// [`LabError::NotEmpty`], [`LabError::Trace`] where a step makes no sense, [`LabError::Step`] where one cannot be done, [`LabError::NotArrived`], [`LabError::Read`],
/// [`LabError::Threads`]. Of several steps that fail it is the earliest.
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
    let player = Player::new(plan, trace.head())?;
    let watch = Stopwatch::start();
    let mut first = None;
    while let Some(step) = trace.next() {
        let step = step?;
        if step.at_ms.is_some() {
            first = Some(step);
            break;
        }
        player.state().played.initial_steps += 1;
        player.step(trace.line(), &step, &|| false)?;
    }
    player.end_initial(trace.line(), &watch, say)?;
    if let Some(first) = first {
        begin()?;
        let watch = Stopwatch::start();
        if clients > 1 && plan.speed.is_some() {
            clients::play(&player, first, &mut trace, &watch, say)?;
        } else {
            player.in_turn(first, &mut trace, &watch, say)?;
        }
        player.state().played.playing = watch.wall();
    }
    let settled = player.settle();
    let differences =
        if settled.is_none() { player.differences(Look::AtBytes)? } else { Vec::new() };
    let played = player.state.into_inner().expect(NO_PANIC).played;
    Ok(Played { settled, differences, ..played })
}

/// After so many steps something is said.
const SAY_EVERY: u64 = 1000;

const NO_PANIC: &str = "nobody panics who has it";

fn misfit(line: u64, what: impl Into<String>) -> LabError {
    LabError::Trace { line, what: what.into() }
}

impl<'a> Player<'a> {
    fn new(plan: &'a Plan, head: &Head) -> Result<Self, LabError> {
        let series = head.dataset.as_ref().map(|it| Series::new(&it.name, it.size, it.seed));
        let series = series.transpose()?.map(Mutex::new);
        Ok(Self { plan, state: Mutex::default(), series })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(NO_PANIC)
    }

    /// The trace begins once everybody has the initial tree.
    fn end_initial(
        &self,
        line: u64,
        watch: &Stopwatch,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        if self.settle().is_none() {
            let folder = self.plan.folders.last().cloned().unwrap_or_default();
            let what = self.differences(Look::AtBytes)?.into_iter().next().unwrap_or_default();
            return Err(LabError::NotArrived { line, folder, what });
        }
        let initial = watch.wall();
        let mut state = self.state();
        state.played.initial = initial;
        let (steps, seconds) = (state.played.initial_steps, initial.as_secs_f64());
        drop(state);
        say(&format!("the initial tree of {steps} steps is everywhere after {seconds:.1} s"));
        Ok(())
    }

    /// Plays all clients by this thread, one step after the other.
    fn in_turn<R: BufRead>(
        &self,
        first: Step,
        trace: &mut Reader<R>,
        watch: &Stopwatch,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        let mut next = Some(Ok(first));
        while let Some(step) = next.take().or_else(|| trace.next()) {
            let (line, step) = (trace.line(), step?);
            if let Some(due) = self.due(line, &step)? {
                thread::sleep(due.saturating_sub(watch.wall()));
                self.begin_late_by(watch.wall().saturating_sub(due));
            }
            self.step(line, &step, &|| false)?;
            let steps = self.end_step();
            if steps.is_multiple_of(SAY_EVERY) {
                say(&format!("{steps} steps after {:.1} s", watch.wall().as_secs_f64()));
            }
        }
        Ok(())
    }

    /// When a step is to begin; nothing where no time is kept.
    fn due(&self, line: u64, step: &Step) -> Result<Option<Duration>, LabError> {
        let Some(at_ms) = step.at_ms else {
            return Err(misfit(line, "it belongs before all steps with a time"));
        };
        let due = |speed| {
            Duration::try_from_secs_f64(at_ms as f64 / 1000.0 / speed)
                .map_err(|_| misfit(line, "at this speed it is due later than can be counted"))
        };
        self.plan.speed.map(due).transpose()
    }

    fn begin_late_by(&self, late: Duration) {
        let mut state = self.state();
        state.played.latest = state.played.latest.max(late);
    }

    /// Counts a step, and says how many there are.
    fn end_step(&self) -> u64 {
        let mut state = self.state();
        state.played.steps += 1;
        state.played.steps
    }

    /// Waits until all folders are as they should be, and says for how long.
    fn settle(&self) -> Option<Duration> {
        let watch = Stopwatch::start();
        loop {
            // Files that go while they are looked at are not as they should be yet.
            let is_equal = |look| self.differences(look).is_ok_and(|found| found.is_empty());
            if is_equal(Look::AtSizes) && is_equal(Look::AtBytes) {
                return Some(watch.wall());
            }
            if watch.wall() > self.plan.patience {
                return None;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn differences(&self, look: Look) -> Result<Vec<String>, LabError> {
        let mut found = Vec::new();
        // No step is under way.
        let expected = &self.state().expected;
        for folder in &self.plan.folders {
            let mut there = BTreeSet::new();
            for (path, what) in files::tree(folder)? {
                let is_right = match (expected.get(&path), what) {
                    (Some(Expected::Folder), Found::Folder) => true,
                    (Some(wanted), Found::File { size }) => {
                        matches!(wanted, Expected::File { size: full, .. } if *full == size)
                            && (look == Look::AtSizes || is_there(&folder.join(&path), *wanted)?)
                    }
                    (None | Some(_), _) => false,
                };
                if !is_right {
                    let how = if expected.contains_key(&path) {
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
            let missing = expected.keys().filter(|path| !there.contains(*path));
            found.extend(missing.map(|path| format!("{}: '{path}' is missing", folder.display())));
        }
        found.truncate(DIFFERENCES_MAX);
        Ok(found)
    }
}

fn file_of(bytes: &[u8]) -> Expected {
    Expected::File { size: bytes.len() as u64, digest: sha256(bytes) }
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
