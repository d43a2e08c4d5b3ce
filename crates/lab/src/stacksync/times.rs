//! Figures 6a and 6b: how long it takes until six devices are equal again, after a file was added, edited or removed, and by the size of what is added.
//!
//! The clock runs from the moment at which the first device's folder is changed until the last of the other five has it; the paper begins when its client has noticed the change. Files and edits are
//! those of the paper's workload.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::{KB, MB, quantile};
use crate::environment;
use crate::error::LabError;
use crate::experiment::Setting;
use crate::files::{self, Identity};
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};
use crate::random::Random;
use crate::room::Room;
use crate::stopwatch::Stopwatch;
use crate::targets::{Counting, Group, no_workspace};
use crate::trace::data;
use crate::trace::generate::Reading;
use crate::trace::generate::places::{edits, places};

/// What the paper printed.
const EXPECTED: &str = include_str!("../../../../experiments/stacksync-figure-6/expected.csv");

/// The paper's clients.
const DEVICES: usize = 6;

/// So many files are added, edited and removed.
const FILES: usize = 40;
const FILES_FULL: usize = 200;

/// Files of the workload have so many bytes, and up to so many more; an edit has up to twice its mean.
const FILE_SIZE_MIN: u64 = 512 * KB;
const FILE_SIZE_MORE: u64 = 4 * MB - FILE_SIZE_MIN + 1;
const EDIT_MEAN: u64 = 37_500;

/// Figure 6b: those of the workload, and on either side of them.
const SIZES: [u64; 12] = [
    64 * KB,
    256 * KB,
    512 * KB,
    MB,
    3 * MB / 2,
    2 * MB,
    5 * MB / 2,
    3 * MB,
    7 * MB / 2,
    4 * MB,
    8 * MB,
    16 * MB,
];
const REPETITIONS: usize = 9;
const REPETITIONS_FULL: usize = 25;

const PAUSE_MS: (u64, u64) = (50, 100);

const LOOK_EVERY: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(120);

/// The figures, by the names that a pattern is looked for in.
const PARTS: [&str; 2] = ["figure 6a", "figure 6b"];

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Update,
    Remove,
}

impl Operation {
    const ALL: [Self; 3] = [Self::Add, Self::Update, Self::Remove];

    /// As in the paper.
    fn name(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Update => "UPDATE",
            Self::Remove => "REMOVE",
        }
    }
}

/// One change.
#[derive(Debug, Clone, Copy)]
struct Row {
    part: &'static str,
    operation: Operation,
    /// Of the file, when it is changed.
    bytes: u64,
    millis: f64,
}

/// Measures both figures, and writes them.
///
/// # Errors
/// [`LabError`].
pub fn measure(
    setting: &Setting,
    output: &Output,
    say: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let mut rows = Vec::new();
    for part in setting.wanted(PARTS, |part| (*part).to_owned())? {
        let room = Room::new(&setting.work)?;
        let group = setting.targets.group(room.path(), DEVICES, Counting::Off);
        let group = group.map_err(no_workspace)?;
        let random = Random::new(setting.seed);
        let mut devices =
            Devices { group: group.as_ref(), random, rows: Vec::new(), part, pause_ms: PAUSE_MS };
        // The first file finds watches that have just begun; it does not count.
        devices.change("warm-up", Some(b"a first file"), Operation::Add)?;
        devices.rows.clear();
        if part == PARTS[0] {
            devices.each_operation(if setting.is_full { FILES_FULL } else { FILES })?;
        } else {
            devices.each_size(if setting.is_full { REPETITIONS_FULL } else { REPETITIONS })?;
        }
        let count = devices.rows.len();
        rows.append(&mut devices.rows);
        say(&format!("{part}: {count} changes reached {} devices", DEVICES - 1));
    }
    output.write_csv("stacksync-figure-6", &csv(&rows))?;
    let seed = [("seed", setting.seed.to_string())];
    output.write_page("stacksync-figure-6", &environment::end(page(&rows), &seed))
}

/// Six devices, and what was measured with them.
struct Devices<'a> {
    group: &'a dyn Group,
    random: Random,
    rows: Vec<Row>,
    part: &'static str,
    /// Between two changes: so many milliseconds, and up to so many more, so that they come at no fixed time.
    pause_ms: (u64, u64),
}

impl Devices<'_> {
    /// Figure 6a: adds files, edits any of them, and removes all.
    fn each_operation(&mut self, count: usize) -> Result<(), LabError> {
        let mut files = Vec::new();
        for number in 0..count {
            let size = FILE_SIZE_MIN + self.random.below(FILE_SIZE_MORE);
            let bytes = data::bytes(data::Kind::Random, size, self.random.next());
            let name = format!("file{number:05}.dat");
            self.change(&name, Some(&bytes), Operation::Add)?;
            files.push((name, bytes));
        }
        for _ in 0..count {
            let file = self.random.below(count as u64) as usize;
            let where_to = places(&mut self.random, Reading::Paper);
            let bytes = 1 + self.random.below(2 * EDIT_MEAN);
            for edit in edits(&mut self.random, where_to, bytes) {
                data::edit(&mut files[file].1, edit);
            }
            let (name, bytes) = &files[file];
            self.change(name, Some(bytes), Operation::Update)?;
        }
        for (name, _) in &files {
            self.change(name, None, Operation::Remove)?;
        }
        Ok(())
    }

    /// Figure 6b: adds a file of each size again and again, and removes it.
    fn each_size(&mut self, repetitions: usize) -> Result<(), LabError> {
        for repetition in 0..repetitions {
            for size in SIZES {
                let bytes = data::bytes(data::Kind::Random, size, self.random.next());
                let name = format!("file-{size}-{repetition}.dat");
                self.change(&name, Some(&bytes), Operation::Add)?;
                let counted = self.rows.len();
                self.change(&name, None, Operation::Remove)?;
                self.rows.truncate(counted);
            }
        }
        Ok(())
    }

    /// Changes a file in the folder of the first device, and waits until all others have it.
    fn change(
        &mut self,
        name: &str,
        bytes: Option<&[u8]>,
        operation: Operation,
    ) -> Result<(), LabError> {
        let (least, more) = self.pause_ms;
        thread::sleep(Duration::from_millis(least + self.random.below(more + 1)));
        let mut paths: Vec<PathBuf> =
            self.group.folders().into_iter().map(|folder| folder.join(name)).collect();
        let first = paths.remove(0);
        let mut others = Vec::new();
        for path in paths {
            others.push(Other { before: files::identity(&path)?, path, arrived: None });
        }
        let size = match bytes {
            Some(bytes) => bytes.len() as u64,
            None => files::identity(&first)?.map_or(0, Identity::size),
        };
        let watch = Stopwatch::start();
        match bytes {
            Some(bytes) => files::write_in_place(&first, bytes)?,
            None => files::remove(&first)?,
        }
        let arrived = wait(&mut others, bytes, &watch, name)?;
        let millis = arrived.as_secs_f64() * 1e3;
        self.rows.push(Row { part: self.part, operation, bytes: size, millis });
        Ok(())
    }
}

/// A file in the folder of one of the others.
struct Other {
    path: PathBuf,
    before: Option<Identity>,
    arrived: Option<Duration>,
}

impl Other {
    /// Whether it seems to have come to what it is to be; nothing is read for that, so that looking costs nothing.
    fn seems(&self, bytes: Option<&[u8]>) -> Result<bool, LabError> {
        let now = files::identity(&self.path)?;
        Ok(match (now, bytes) {
            (None, None) => true,
            (Some(now), Some(bytes)) => {
                let is_new = self.before.is_none_or(|before| !now.is_unchanged_since(before));
                is_new && now.size() == bytes.len() as u64
            }
            _ => false,
        })
    }
}

/// Returns when the last of them had it.
fn wait(
    others: &mut [Other],
    bytes: Option<&[u8]>,
    watch: &Stopwatch,
    name: &str,
) -> Result<Duration, LabError> {
    loop {
        let mut is_waiting = false;
        for other in others.iter_mut().filter(|other| other.arrived.is_none()) {
            if other.seems(bytes)? {
                other.arrived = Some(watch.wall());
            }
            is_waiting |= other.arrived.is_none();
        }
        if !is_waiting {
            // Only now, for to read takes time; where it was not what it is to be, it is waited for again.
            for other in others.iter_mut() {
                if !is_equal(&other.path, bytes) {
                    (other.arrived, is_waiting) = (None, true);
                }
            }
            if !is_waiting {
                return Ok(others
                    .iter()
                    .filter_map(|other| other.arrived)
                    .max()
                    .unwrap_or_default());
            }
        }
        if watch.wall() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            let what = format!("'{name}' is not everywhere after {seconds} s");
            return Err(LabError::NoTarget { target: "workspace", what });
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn is_equal(path: &Path, bytes: Option<&[u8]>) -> bool {
    bytes.is_none_or(|bytes| files::read(path).is_ok_and(|read| read == bytes))
}

/// Returns the milliseconds of an operation of figure 6a.
fn of_operation(rows: &[Row], operation: Operation) -> Vec<f64> {
    let of_it = rows.iter().filter(|row| row.part == PARTS[0] && row.operation == operation);
    of_it.map(|row| row.millis).collect()
}

/// Returns the milliseconds of a size of figure 6b.
fn of_size(rows: &[Row], size: u64) -> Vec<f64> {
    let of_it = rows.iter().filter(|row| row.part == PARTS[1] && row.bytes == size);
    of_it.map(|row| row.millis).collect()
}

/// Returns what the paper printed of something, as words.
fn printed(what: &str) -> String {
    let row = |line: &str| -> Option<String> {
        let mut cells = line.split(',');
        let is_it = cells.next() == Some("6a") && cells.next() == Some(what);
        is_it.then(|| cells.collect::<Vec<_>>().join(" "))
    };
    EXPECTED.lines().find_map(row).unwrap_or_default()
}

fn page(rows: &[Row]) -> Page {
    let cells = |millis: &[f64]| {
        [0.0, 0.25, 0.5, 0.75, 0.99, 1.0].map(|at| format!("{:.1}", quantile(millis, at)))
    };
    let operations = Operation::ALL.into_iter().filter_map(|operation| {
        let millis = of_operation(rows, operation);
        let name = operation.name().to_owned();
        let row = [name, millis.len().to_string()].into_iter().chain(cells(&millis));
        (!millis.is_empty()).then(|| row.chain([printed(operation.name())]).collect())
    });
    let sizes = SIZES.into_iter().filter_map(|size| {
        let millis = of_size(rows, size);
        let name = format!("{} KB", size / KB);
        let row = [name, millis.len().to_string()].into_iter().chain(cells(&millis));
        let each = quantile(&millis, 0.5) / (size as f64 / MB as f64);
        (!millis.is_empty()).then(|| row.chain([format!("{each:.1}")]).collect())
    });
    let spread =
        ["lowest", "a quarter below", "median", "three quarters below", "99 % below", "highest"];
    let headings = |first, last| [&[first, "changes"][..], &spread, &[last]].concat();
    Page::new("Until six devices are equal: StackSync's figure 6")
        .text("Milliseconds from a change in the folder of one device until the other five have it. Everything is on one computer; the paper's clients and its cluster were several.")
        .heading("Figure 6a: by what happens")
        .table(&headings("ms", "the paper, s"), operations.collect())
        .drawing("figure-6a", boxes(rows))
        .heading("Figure 6b: by the size of a new file")
        .table(&headings("ms", "median, ms for a MB"), sizes.collect())
        .drawing("figure-6b", by_size(rows))
}

fn boxes(rows: &[Row]) -> String {
    let points = Operation::ALL.into_iter().zip(0..).flat_map(|(operation, group)| {
        of_operation(rows, operation).into_iter().map(move |millis| (f64::from(group), millis))
    });
    let plot = Plot {
        title: "Figure 6a: until six devices are equal".to_owned(),
        across: "what happens to a file".to_owned(),
        up: "ms".to_owned(),
        series: vec![Series::ours("ours", points.collect())],
    };
    plot.boxes(&Operation::ALL.map(|operation| operation.name().to_owned()))
}

fn by_size(rows: &[Row]) -> String {
    let curve = |share: f64| {
        let point = |size: u64| (size as f64 / MB as f64, quantile(&of_size(rows, size), share));
        let sizes = SIZES.into_iter().filter(|size| !of_size(rows, *size).is_empty());
        sizes.map(point).collect()
    };
    let plot = Plot {
        title: "Figure 6b: until six devices have a new file".to_owned(),
        across: "MB".to_owned(),
        up: "ms".to_owned(),
        series: vec![
            Series::ours("median", curve(0.5)),
            Series::ours("a quarter below", curve(0.25)),
            Series::ours("three quarters below", curve(0.75)),
        ],
    };
    plot.lines()
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from("figure,operation,bytes,ms\n");
    for Row { part, operation, bytes, millis } in rows {
        // Writing to a String cannot fail.
        let _ok = writeln!(text, "{part},{},{bytes},{millis:.2}", operation.name());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::testing::setting;

    /// Does something with devices that have everything at once.
    fn measured(part: &'static str, work: impl FnOnce(&mut Devices<'_>)) -> Vec<Row> {
        let room = tempfile::tempdir().unwrap();
        let setting = setting(room.path(), None);
        let group = setting.targets.group(room.path(), DEVICES, Counting::Off).unwrap();
        let (group, random) = (group.as_ref(), Random::new(1));
        let mut devices = Devices { group, random, rows: Vec::new(), part, pause_ms: (0, 0) };
        work(&mut devices);
        assert_eq!(files::list(room.path()).unwrap().len(), 0, "all files are removed in the end");
        devices.rows
    }

    #[test]
    fn every_file_is_added_edited_and_removed_and_has_its_row() {
        let rows = measured(PARTS[0], |devices| devices.each_operation(3).unwrap());
        let names: Vec<&str> = rows.iter().map(|row| row.operation.name()).collect();
        assert_eq!(
            names.chunks(3).map(|three| three[0]).collect::<Vec<_>>(),
            ["ADD", "UPDATE", "REMOVE"]
        );
        assert_eq!(rows.len(), 9);
        let page = page(&rows).markdown();
        assert!(page.contains("| median 2.75 |") && page.contains("| less than 2.6 |"), "{page}");
        assert_eq!(boxes(&rows).matches("fill-opacity").count(), 3);
    }

    #[test]
    fn every_size_has_its_row_and_what_clears_up_after_it_has_none() {
        let rows = measured(PARTS[1], |devices| devices.each_size(1).unwrap());
        assert_eq!(rows.iter().map(|row| row.bytes).collect::<Vec<_>>(), SIZES);
        assert!(csv(&rows).contains("figure 6b,ADD,1572864,"));
        assert!(page(&rows).markdown().contains("| 16384 KB | 1 |"));
    }

    #[test]
    fn what_only_seems_to_have_arrived_is_waited_for_again() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("file");
        files::write(&path, b"old").unwrap();
        let before = files::identity(&path).unwrap();
        let mut others = [Other { path: path.clone(), before, arrived: None }];
        assert!(!others[0].seems(Some(b"new")).unwrap(), "nothing has happened to it");
        files::write_new(&room.path().join("beside"), b"not").unwrap();
        files::rename(&room.path().join("beside"), &path).unwrap();
        assert!(others[0].seems(Some(b"new")).unwrap());
        let watch = Stopwatch::start();
        let waiting = thread::spawn(move || {
            thread::sleep(Duration::from_millis(5));
            files::write_in_place(&path, b"new").unwrap();
        });
        let arrived = wait(&mut others, Some(b"new"), &watch, "file").unwrap();
        waiting.join().unwrap();
        assert!(arrived >= Duration::from_millis(5), "{arrived:?}");
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0, 4.0], 0.5).to_bits(), 2.0_f64.to_bits());
        assert_eq!(quantile(&[], 0.5).to_bits(), 0.0_f64.to_bits());
        assert_eq!(quantile(&[7.0], 0.0).to_bits(), 7.0_f64.to_bits());
    }
}
