//! Figure 5: what a device and its server say about files, while one device changes files and another one follows.
//!
//! The workload is the paper's own ([`crate::trace::generate::stacksync`]), cut: so many changes of the same kind and size, to a tree that is as much smaller. The paper does not say how often
//! something changes, and what is said about files grows with that; so it is measured at several rates, and at rest. Whatever carries the
//! contents of files is counted by itself, whichever way it travels.

use std::fmt::Write;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use crate::environment;
use crate::error::LabError;
use crate::experiment::Setting;
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};
use crate::room::Room;
use crate::stopwatch::Stopwatch;
use crate::targets::{Carried, Counting, Group, no_workspace};
use crate::trace::Reader;
use crate::trace::generate::{self, Sheet, StackSync, Workload};
use crate::trace::play::{self, play_after};

/// What the paper printed.
const EXPECTED: &str = include_str!("../../../../experiments/stacksync-figure-5/expected.csv");

/// The one that changes files, and the one that follows.
const NODES: [&str; 2] = ["uploader", "downloader"];

/// Milliseconds from one change to the next, on average.
const INTERVALS_MS: [u64; 3] = [1000, 5000, 15_000];

/// How long changes go on at each rate, and in full at the first one as many as the paper has.
const PLAYED_MS: u64 = 120_000;
const CHANGES_FULL: u64 = 1000;

/// The paper's 750 MB have 1000 changes; with so many bytes a change, edits are as large as there.
const TREE_BYTES_A_CHANGE: u64 = 750_000;

/// How long nobody changes anything.
const REST: Duration = Duration::from_secs(60);

/// How often it is noted what was said so far.
const NOTE_EVERY: Duration = Duration::from_secs(10);

/// The line has come to rest when nothing has gone over it for so long.
const SILENCE: Duration = Duration::from_millis(700);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(60);

/// What was said until some moment.
#[derive(Debug, Clone)]
struct Note {
    second: f64,
    /// By node.
    said: Vec<Carried>,
}

/// What was said at one rate.
struct Outcome {
    /// As in tables.
    rate: String,
    changes: u64,
    /// The first one is of nothing, the last one of everything.
    notes: Vec<Note>,
}

impl Outcome {
    fn last(&self) -> (f64, &[Carried]) {
        self.notes.last().map_or((0.0, &[]), |note| (note.second, note.said.as_slice()))
    }

    /// KB a minute about files, of a node.
    fn rate_of(&self, node: usize) -> f64 {
        let (seconds, said) = self.last();
        let bytes = said.get(node).map_or(0, |said| said.about_files());
        bytes as f64 / 1000.0 / (seconds / 60.0).max(1e-9)
    }
}

/// One device that changes files, and one that has none of its own.
struct Followed(StackSync);

impl Workload for Followed {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn about(&self) -> String {
        self.0.about()
    }

    fn clients(&self) -> usize {
        NODES.len()
    }

    fn steps(&self, sheet: &mut Sheet<'_>) -> Result<(), LabError> {
        self.0.steps(sheet)
    }
}

/// Measures the figure, and writes it.
///
/// # Errors
/// [`LabError`].
pub fn measure(
    setting: &Setting,
    output: &Output,
    say: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let intervals = setting.wanted(INTERVALS_MS, |interval| rate_name(*interval))?;
    say("all rates are played at once, each by two devices of its own");
    // Each has devices and a server of its own, which wait most of the time, so that none is in the way of another.
    let played: Vec<Result<Vec<Outcome>, LabError>> = thread::scope(|scope| {
        let start = |(number, interval_ms): (usize, &u64)| {
            let interval_ms = *interval_ms;
            scope.spawn(move || play_rate(setting, number, interval_ms))
        };
        let started: Vec<_> = intervals.iter().enumerate().map(start).collect();
        let ended = started.into_iter().map(ScopedJoinHandle::join);
        ended.map(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let mut outcomes = Vec::new();
    for found in played {
        let found = found?;
        for outcome in &found {
            let [up, down] = [0, 1].map(|node| outcome.rate_of(node));
            say(&format!("{}: uploader {up:.2} KB a minute, downloader {down:.2}", outcome.rate));
        }
        outcomes.extend(found);
    }
    // At rest comes last.
    outcomes.sort_by_key(|outcome| outcome.changes == 0);
    output.write_csv("stacksync-figure-5", &csv(&outcomes))?;
    let seed = [("seed", setting.seed.to_string())];
    output.write_page("stacksync-figure-5", &environment::end(page(&outcomes), &seed))
}

/// Plays one rate; the first one rests in the end.
fn play_rate(setting: &Setting, number: usize, interval_ms: u64) -> Result<Vec<Outcome>, LabError> {
    let is_whole = setting.is_full && number == 0;
    let changes = if is_whole { CHANGES_FULL } else { PLAYED_MS / interval_ms };
    let tree_bytes = changes * TREE_BYTES_A_CHANGE;
    let preset =
        StackSync { seed: setting.seed, tree_bytes, changes, interval_ms, ..StackSync::default() };
    // One of them is enough to see what is said when nothing happens.
    let rests = if number == 0 { Some(REST) } else { None };
    play(setting, &preset, rests)
}

fn rate_name(interval_ms: u64) -> String {
    format!("one in {} s", interval_ms / 1000)
}

/// Plays it into two devices, and then lets them rest where that is asked for.
fn play(
    setting: &Setting,
    preset: &StackSync,
    rest: Option<Duration>,
) -> Result<Vec<Outcome>, LabError> {
    let room = Room::new(&setting.work)?;
    let group = setting.targets.group(room.path(), NODES.len(), Counting::On);
    let group = group.map_err(no_workspace)?;
    let mut text = Vec::new();
    generate::write(&Followed(preset.clone()), &mut text, Path::new("trace"))?;
    let plan = play::Plan {
        folders: group.folders().into_iter().map(Path::to_owned).collect(),
        speed: Some(1.0),
        patience: PATIENCE,
    };
    let notebook = Notebook::new(group.as_ref());
    let mut is_equal = false;
    notebook.while_noting(|| {
        let mut begin = || notebook.begin();
        let played = play_after(Reader::new(text.as_slice())?, &plan, &mut begin, &mut |_| {})?;
        is_equal = played.settled.is_some();
        Ok(())
    })?;
    if !is_equal {
        return Err(LabError::NoTarget {
            target: "workspace",
            what: "the devices do not have the same files in the end".to_owned(),
        });
    }
    at_rest(group.as_ref())?;
    let rate = rate_name(preset.interval_ms);
    let mut outcomes = vec![Outcome { rate, changes: preset.changes, notes: notebook.end()? }];
    if let Some(rest) = rest {
        let notebook = Notebook::new(group.as_ref());
        notebook.begin()?;
        notebook.while_noting(|| {
            thread::sleep(rest);
            Ok(())
        })?;
        outcomes.push(Outcome { rate: "at rest".to_owned(), changes: 0, notes: notebook.end()? });
    }
    Ok(outcomes)
}

/// Waits until nothing is said any more, and returns what was said so far.
fn at_rest(group: &dyn Group) -> Result<Vec<Carried>, LabError> {
    let read = || group.carried().map_err(no_workspace);
    let (whole, mut quiet, mut last) = (Stopwatch::start(), Stopwatch::start(), read()?);
    while quiet.wall() < SILENCE && whole.wall() < PATIENCE {
        thread::sleep(LOOK_EVERY);
        let now = read()?;
        if now != last {
            (last, quiet) = (now, Stopwatch::start());
        }
    }
    Ok(last)
}

/// Notes what is said, from when it is begun.
struct Notebook<'a> {
    group: &'a dyn Group,
    begun: Mutex<Option<Begun>>,
}

struct Begun {
    watch: Stopwatch,
    before: Vec<Carried>,
    notes: Vec<Note>,
}

impl<'a> Notebook<'a> {
    fn new(group: &'a dyn Group) -> Self {
        Self { group, begun: Mutex::new(None) }
    }

    /// Begins once nothing of what was before is on its way.
    fn begin(&self) -> Result<(), LabError> {
        let before = at_rest(self.group)?;
        let notes = vec![Note { second: 0.0, said: vec![Carried::default(); before.len()] }];
        let begun = Begun { watch: Stopwatch::start(), before, notes };
        *self.begun.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(begun);
        Ok(())
    }

    /// Makes a note, if it was begun.
    fn note(&self) -> Result<(), LabError> {
        let mut begun = self.begun.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(Begun { watch, before, notes }) = begun.as_mut() else { return Ok(()) };
        let now = self.group.carried().map_err(no_workspace)?;
        let said = now.iter().zip(before.iter()).map(|(now, before)| now.since(*before));
        notes.push(Note { second: watch.wall().as_secs_f64(), said: said.collect() });
        Ok(())
    }

    /// Makes a note now and then while something is done.
    fn while_noting(&self, work: impl FnOnce() -> Result<(), LabError>) -> Result<(), LabError> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let noting = scope.spawn(|| -> Result<(), LabError> {
                let mut watch = Stopwatch::start();
                while !is_over.load(Ordering::Relaxed) {
                    thread::sleep(LOOK_EVERY);
                    if watch.wall() >= NOTE_EVERY {
                        watch = Stopwatch::start();
                        self.note()?;
                    }
                }
                Ok(())
            });
            let done = work();
            is_over.store(true, Ordering::Relaxed);
            let noted = noting.join().expect("noting does not panic");
            done.and(noted)
        })
    }

    /// Makes the last note, and returns all.
    fn end(self) -> Result<Vec<Note>, LabError> {
        self.note()?;
        let begun = self.begun.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(begun.map_or_else(Vec::new, |begun| begun.notes))
    }
}

/// What the paper printed of a system and a node, in KB a minute: from, and to.
fn printed() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    let row = |line: &'static str| {
        let mut cells = line.split(',');
        Some((cells.next()?, cells.next()?, cells.next()?, cells.next()?))
    };
    EXPECTED.lines().skip(1).filter_map(row).collect()
}

fn page(outcomes: &[Outcome]) -> Page {
    let published = printed().into_iter().map(|(node, system, from, to)| {
        let range = if from == to { format!("around {to}") } else { format!("{from} to {to}") };
        [&[system, "not said", node, &range][..], &[""; 5]]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect()
    });
    let ours = outcomes.iter().flat_map(|outcome| {
        let (seconds, said) = outcome.last();
        let row = move |(node, said): (usize, &Carried)| {
            let about = said.all.since(said.contents);
            let each = |bytes: u64| match outcome.changes {
                0 => String::new(),
                changes => format!("{:.0}", bytes as f64 / changes as f64),
            };
            vec![
                "ours".to_owned(),
                outcome.rate.clone(),
                NODES[node].to_owned(),
                format!("{:.2}", outcome.rate_of(node)),
                each(about.up),
                each(about.down),
                format!("{:.3}", (said.contents.up + said.contents.down) as f64 / 1e6),
                outcome.changes.to_string(),
                format!("{seconds:.0}"),
            ]
        };
        said.iter().enumerate().map(row).collect::<Vec<_>>()
    });
    let headings = [
        "system",
        "changes",
        "node",
        "KB a minute about files",
        "bytes a change, up",
        "down",
        "MB of contents",
        "changes",
        "s",
    ];
    let page = Page::new("What agreeing costs: StackSync's figure 5")
        .text("One device changes files, another one follows. Counted are the bytes inside TCP between each of them and the server, without those of contents: requests, answers, commits, events, and the heads of what carries contents. The paper does not say how often something changes.")
        .words(&headings, published.chain(ours).collect());
    page.drawing("figure-5", over_time(outcomes)).drawing("figure-5-rates", by_rate(outcomes))
}

/// KB a minute between each note and the one before.
fn over_time(outcomes: &[Outcome]) -> String {
    let curve = |outcome: &Outcome, node: usize| {
        let between = |pair: &[Note]| {
            let about =
                |note: &Note| note.said.get(node).map_or(0, |said| said.about_files()) as f64;
            let minutes = ((pair[1].second - pair[0].second) / 60.0).max(1e-9);
            (pair[1].second / 60.0, (about(&pair[1]) - about(&pair[0])) / 1000.0 / minutes)
        };
        outcome.notes.windows(2).map(between).collect::<Vec<_>>()
    };
    let changing = outcomes.iter().filter(|outcome| outcome.changes > 0);
    let ours = changing.flat_map(|outcome| {
        [0, 1].map(|node| {
            Series::ours(format!("{}, {}", NODES[node], outcome.rate), curve(outcome, node))
        })
    });
    let ours: Vec<Series> = ours.collect();
    let end =
        ours.iter().flat_map(|series| &series.points).map(|point| point.0).fold(0.0, f64::max);
    let of_stacksync = printed().into_iter().filter(|(_, system, ..)| *system == "StackSync");
    let value = of_stacksync.filter_map(|(.., to)| to.parse::<f64>().ok()).next();
    let line = value
        .map(|value| Series::published("StackSync, printed", vec![(0.0, value), (end, value)]));
    let plot = Plot {
        title: "Figure 5: what is said about files".to_owned(),
        across: "minutes".to_owned(),
        up: "KB a minute".to_owned(),
        series: line.into_iter().chain(ours).collect(),
    };
    plot.lines()
}

fn by_rate(outcomes: &[Outcome]) -> String {
    let groups: Vec<String> = outcomes.iter().map(|outcome| outcome.rate.clone()).collect();
    let bars = |node: usize| {
        let points =
            outcomes.iter().enumerate().map(|(group, it)| (group as f64, it.rate_of(node)));
        Series::ours(NODES[node], points.collect())
    };
    let plot = Plot {
        title: "What is said about files, by how often something changes".to_owned(),
        across: "changes".to_owned(),
        up: "KB a minute".to_owned(),
        series: vec![bars(0), bars(1)],
    };
    plot.bars(&groups)
}

fn csv(outcomes: &[Outcome]) -> String {
    let mut text =
        String::from("changes,node,second,up_bytes,down_bytes,contents_up,contents_down\n");
    for outcome in outcomes {
        for Note { second, said } in &outcome.notes {
            for (node, Carried { all, contents }) in said.iter().enumerate() {
                // Writing to a String cannot fail.
                let _ok = writeln!(
                    text,
                    "{},{},{second:.1},{},{},{},{}",
                    outcome.rate, NODES[node], all.up, all.down, contents.up, contents.down
                );
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Moved;
    use crate::targets::testing::setting;

    #[test]
    fn one_device_changes_files_and_what_is_not_contents_is_what_was_said() {
        let room = tempfile::tempdir().unwrap();
        let setting = setting(room.path(), None);
        let preset =
            StackSync { tree_bytes: 1_000_000, changes: 2, interval_ms: 1, ..StackSync::default() };
        let outcomes = play(&setting, &preset, Some(Duration::from_millis(1))).unwrap();
        assert_eq!(outcomes.len(), 2);
        let (_, said) = outcomes[0].last();
        assert!(said.len() == 2 && said[0].contents.up > 0, "{said:?}");
        assert_eq!(outcomes[1].last().1[0], Carried::default());
    }

    #[test]
    fn what_is_said_is_told_by_the_minute_and_by_the_change() {
        let moved = |up, down| Moved { up, down };
        let said = Carried { all: moved(30_000, 6000), contents: moved(20_000, 4000) };
        let notes = [(0.0, Carried::default()), (30.0, said)];
        let notes =
            notes.map(|(second, said)| Note { second, said: vec![said, Carried::default()] });
        let outcomes = [Outcome { rate: rate_name(1000), changes: 10, notes: notes.to_vec() }];
        assert!((outcomes[0].rate_of(0) - 24.0).abs() < 1e-9);
        let page = page(&outcomes).markdown();
        let row = "| ours | one in 1 s | uploader | 24.00 | 1000 | 200 | 0.024 | 10 | 30 |";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("| ownCloud | not said | uploader | 600 to 800 |"), "{page}");
        assert!(csv(&outcomes).ends_with(
            "one in 1 s,uploader,30.0,30000,6000,20000,4000\none in 1 s,downloader,30.0,0,0,0,0\n"
        ));
        assert!(over_time(&outcomes).contains("stroke-dasharray"));
    }
}
