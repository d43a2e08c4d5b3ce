//! Table 4.5: how long after its upload a file can be had elsewhere.

use std::fmt::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::place::Kind;
use super::{KB, MB, end, median, size_name};
use crate::bench::driver::{Driver, Failure};
use crate::error::LabError;
use crate::experiment::Setting;
use crate::files;
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};
use crate::room::Room;
use crate::stopwatch::Stopwatch;
use crate::targets::{Sending, Synced, no_target};
use crate::trace::data;

/// What the thesis printed.
const EXPECTED: &str = include_str!("../../../../experiments/benchcloud-readiness/expected.csv");

/// The sizes that are left out unless somebody wants it in full: one object of a store is no larger than 64 MB.
const LARGE: u64 = 64 * MB;

const REPETITIONS: u64 = 3;

/// How often the other device is looked at, and for how long.
const LOOK_EVERY: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(120);

/// One file.
struct Row {
    target: Kind,
    size: u64,
    repetition: u64,
    upload_millis: f64,
    ready_millis: f64,
}

/// Measures the table, and writes it.
///
/// # Errors
/// [`LabError`].
pub fn measure(
    setting: &Setting,
    output: &Output,
    say: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let expected = expected();
    let sizes = expected.iter().map(|(size, _)| *size);
    let sizes = sizes.filter(|size| setting.is_full || *size <= LARGE);
    let sizes = setting.wanted(sizes, |size| size_name(*size))?;
    let mut rows = Vec::new();
    let room = Room::new(&setting.work)?;
    let synced = setting.targets.synced(room.path(), Sending::WhenTold);
    let synced = synced.map_err(|failure| no_target(Kind::Workspace.name(), failure))?;
    let opened = Kind::Store.open(setting)?;
    for size in sizes {
        for repetition in 0..REPETITIONS {
            let bytes = data::bytes(data::Kind::Random, size, setting.seed ^ (size + repetition));
            let name = format!("file-{size}-{repetition}");
            rows.push(of_workspace(synced.as_ref(), &name, &bytes, repetition)?);
            // No store takes an object that is larger.
            if size <= LARGE {
                rows.push(of_store(opened.driver.as_ref(), &name, &bytes, repetition)?);
            }
        }
        let ready = |target| {
            middle(&rows, target, size).map_or_else(String::new, |row| format!("{:.1} ms", row.1))
        };
        say(&format!(
            "{}: workspace {}, file store {}",
            size_name(size),
            ready(Kind::Workspace),
            ready(Kind::Store)
        ));
    }
    drop((synced, room));
    output.write_csv("benchcloud-readiness", &csv(&rows))?;
    output.write_page("benchcloud-readiness", &end(page(&rows, &expected), setting))
}

/// Puts a file into the first folder, has it sent, and looks meanwhile when the other folder has it.
fn of_workspace(
    synced: &dyn Synced,
    name: &str,
    bytes: &[u8],
    repetition: u64,
) -> Result<Row, LabError> {
    let failed = |failure| no_target(Kind::Workspace.name(), failure);
    let [folder, other] = synced.folders();
    let (path, there) = (folder.join(name), other.join(name));
    files::write_new(&path, bytes)?;
    let watch = Stopwatch::start();
    let (sent, seen) = thread::scope(|scope| {
        let looking = scope.spawn(|| when_seen(&there, bytes.len() as u64, &watch));
        let sent = synced.send().map(|()| watch.wall());
        let seen = looking.join().expect("looking at a file does not panic");
        (sent, seen)
    });
    let (sent, seen) = (sent.map_err(failed)?, seen?);
    let Some(seen) = seen.filter(|_| files::read(&there).is_ok_and(|read| read == bytes)) else {
        return Err(failed(Failure(format!("{name} is not on the other device"))));
    };
    Ok(Row {
        target: Kind::Workspace,
        size: bytes.len() as u64,
        repetition,
        upload_millis: sent.as_secs_f64() * 1e3,
        ready_millis: (seen.as_secs_f64() - sent.as_secs_f64()) * 1e3,
    })
}

/// Returns when a file of this size was there; files come to their names as a whole.
fn when_seen(path: &Path, size: u64, watch: &Stopwatch) -> Result<Option<Duration>, LabError> {
    while watch.wall() < PATIENCE {
        if files::look(path)? == Some(files::Found::File { size }) {
            return Ok(Some(watch.wall()));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(None)
}

/// Puts a file into a store, and reads it at once.
fn of_store(
    store: &dyn Driver,
    name: &str,
    bytes: &[u8],
    repetition: u64,
) -> Result<Row, LabError> {
    let failed = |failure| no_target(Kind::Store.name(), failure);
    let watch = Stopwatch::start();
    store.put(name, bytes, true).map_err(failed)?;
    let put = watch.wall();
    let read = store.get(name).map_err(failed)?;
    let ready = watch.wall().saturating_sub(put);
    if read.as_deref() != Some(bytes) {
        return Err(failed(Failure(format!("{name} is not there as it was written"))));
    }
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let size = bytes.len() as u64;
    Ok(Row {
        target: Kind::Store,
        size,
        repetition,
        upload_millis: millis(put),
        ready_millis: millis(ready),
    })
}

/// Reads what the thesis printed: bytes and milliseconds.
fn expected() -> Vec<(u64, f64)> {
    let row = |line: &str| {
        let (size, millis) = line.split_once(',')?;
        let (number, unit) = size.split_once(' ')?;
        let unit = if unit == "MB" { MB } else { KB };
        Some((number.parse::<u64>().ok()? * unit, millis.parse().ok()?))
    };
    let mut rows: Vec<(u64, f64)> = EXPECTED.lines().skip(1).filter_map(row).collect();
    rows.sort_by_key(|(size, _)| *size);
    rows
}

/// Returns the middle of the repetitions: how long the upload took, and after it until the file was there.
fn middle(rows: &[Row], target: Kind, size: u64) -> Option<(f64, f64)> {
    let of_it = rows.iter().filter(|row| row.target == target && row.size == size);
    let (uploads, ready): (Vec<f64>, Vec<f64>) =
        of_it.map(|row| (row.upload_millis, row.ready_millis)).unzip();
    (!ready.is_empty()).then(|| (median(uploads), median(ready)))
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from("target,bytes,repetition,upload_ms,ready_after_ms\n");
    for row in rows {
        // Writing to a String cannot fail.
        let _ok = writeln!(
            text,
            "{},{},{},{:.3},{:.3}",
            row.target.name(),
            row.size,
            row.repetition,
            row.upload_millis,
            row.ready_millis
        );
    }
    text
}

fn page(rows: &[Row], expected: &[(u64, f64)]) -> Page {
    let of = |target: Kind, size: u64| {
        let millis = |(upload, ready): (f64, f64)| [format!("{upload:.1}"), format!("{ready:.1}")];
        middle(rows, target, size).map_or_else(|| ["-".to_owned(), "-".to_owned()], millis)
    };
    let line = |(size, dropbox): &(u64, f64)| {
        let mut cells = vec![size_name(*size), format!("{dropbox}")];
        cells.extend(of(Kind::Workspace, *size));
        cells.extend(of(Kind::Store, *size));
        cells
    };
    let headings = [
        "ms",
        "Dropbox: ready after",
        "workspace: upload",
        "ready after",
        "file store: upload",
        "read after",
    ];
    Page::new("Ready: BenchCloud's tables 4.4 and 4.5")
        .text(
            "BenchCloud uploads a file on one machine and asks for it every half second on another (table 4.4 says which that was), and takes the time from the end of the upload until the file is there; \
             its clocks agreed within a second. Here both devices are on this computer and have one clock: the first sends the file through a server when it is told to (syncline sync), which ends when the server has it and has acknowledged it, \
             and the other device, which watches, is looked at every millisecond. A negative time says that the other device had the file before the command of the first one had ended. \
             Beside it a store in a folder, whose files are read at once. Medians of three files.",
        )
        .table(&headings, expected.iter().map(line).collect())
        .drawing("table-4.5", drawing(rows, expected))
}

fn drawing(rows: &[Row], expected: &[(u64, f64)]) -> String {
    let sizes: Vec<u64> = expected.iter().map(|(size, _)| *size).collect();
    let series = |target: Kind| {
        let point =
            |(at, size): (usize, &u64)| Some((at as f64, middle(rows, target, *size)?.1.max(0.0)));
        Series::ours(target.name(), sizes.iter().enumerate().filter_map(point).collect())
    };
    let dropbox = expected.iter().enumerate().map(|(at, (_, millis))| (at as f64, millis.max(0.0)));
    let plot = Plot {
        title: "Table 4.5: ready after its upload (negative times as 0)".to_owned(),
        across: "size of the file".to_owned(),
        up: "ms".to_owned(),
        series: vec![
            Series::published("Dropbox", dropbox.collect()),
            series(Kind::Workspace),
            series(Kind::Store),
        ],
    };
    plot.bars(&sizes.into_iter().map(size_name).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thesis_has_eight_sizes() {
        let expected = expected();
        assert_eq!(expected.len(), 8);
        assert_eq!((expected[0], expected[7]), ((KB, -198.0), (200 * MB, 255.0)));
    }
}
