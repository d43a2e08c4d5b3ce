//! `bench trace`: one trace of two clients, played into two of our devices with a server, and into two Syncthing instances.
//!
//! `syncline trace exec` plays and judges for all: it knows folders only. A client that is to change what the other one has changed waits until it has
//! that, so that a program that is slower makes the trace take longer.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::latency::start_devices;
use super::peers::Syncthing;
use super::place::WorkFolder;
use super::sample::median;
use super::{Options, environment};
use crate::arguments::Arguments;
use crate::failure::{Context, Result, fail};
use crate::process;
use crate::syncline::{Background, Device, Server};

/// Who takes part: the name in tables, and after how many seconds Syncthing's watcher looks; nothing for ours.
const PROGRAMS: [(&str, Option<u64>); 3] =
    [("syncline", None), ("syncthing", Some(10)), ("syncthing, delay of 1 s", Some(1))];

/// What a run has shown, by the names of the columns.
const COLUMNS: [&str; 9] = [
    "initial_seconds",
    "playing_seconds",
    "waited_seconds",
    "latest_seconds",
    "settled_seconds",
    "written_bytes",
    "loopback_bytes",
    "cpu_seconds",
    "peak_mib",
];

struct Row {
    program: &'static str,
    file_system: &'static str,
    round: u32,
    /// As [`COLUMNS`]; nothing where a program never got there.
    values: [Option<f64>; COLUMNS.len()],
    /// Why the folders were not as they should be.
    failure: Option<String>,
}

pub(super) fn run(what: String, mut arguments: Arguments) -> Result<()> {
    let tree = arguments.value("--tree")?.unwrap_or_else(|| "75MB".to_owned());
    let changes: u32 = arguments.value_or("--changes", 100)?;
    let interval: u32 = arguments.value_or("--interval-ms", 1000)?;
    let options = Options::take(&what, &mut arguments)?;
    arguments.finish()?;
    if !process::is_installed("syncthing") {
        return fail("syncthing is not installed: apt-get install syncthing");
    }
    let (tree, changes) = if options.quick { ("6MB".to_owned(), 6) } else { (tree, changes) };
    let binary = options.our_binary()?;
    fs::create_dir_all(&options.out)?;
    let trace = options.out.join("stacksync.trace");
    // Of a run before; the program writes over nothing.
    if trace.exists() {
        fs::remove_file(&trace)?;
    }
    let mut generate = Command::new(binary);
    generate.args(["trace", "gen", "stacksync", "--clients", "2", "--tree", &tree]);
    generate.args(["--changes", &changes.to_string(), "--interval-ms", &interval.to_string()]);
    generate.arg("--out").arg(&trace);
    process::output(&mut generate)?;
    let mut rows = Vec::new();
    for file_system in &options.file_systems {
        for round in 1..=options.runs {
            for (program, delay) in PROGRAMS {
                let place = WorkFolder::new(file_system, &options.work)?;
                let row = one(binary, place.path(), &trace, program, delay)?;
                let row = Row { file_system, round, ..row };
                println!("{file_system} round {round}: {}", sentence(&row));
                rows.push(row);
                fs::write(options.out.join("trace.csv"), csv(&rows))?;
            }
        }
    }
    let versions = vec![("syncthing".to_owned(), first_line()?)];
    let note = format!("trace: {tree}, {changes} changes, one in {interval} ms, two clients");
    environment::write(&options.out, &versions, &[note])?;
    let table: String = options.file_systems.iter().map(|name| table(&rows, name)).collect();
    fs::write(options.out.join("trace.md"), &table)?;
    println!("\n{table}\nevery run: {}", options.out.display());
    Ok(())
}

fn first_line() -> Result<String> {
    let text = process::output(Command::new("syncthing").arg("--version"))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// What keeps two folders equal while it lives.
enum Running {
    Ours { server: Server, devices: Vec<(Device, Background)> },
    Syncthing(Syncthing),
}

impl Running {
    fn start(binary: &Path, room: &Path, delay: Option<u64>) -> Result<(Self, [PathBuf; 2])> {
        if let Some(delay) = delay {
            let folders = ["one", "other"].map(|name| room.join(name));
            let mut both = Syncthing::default();
            both.start(room, &folders, Some(delay))?;
            return Ok((Self::Syncthing(both), folders));
        }
        let server = Server::start(binary, &room.join("server"))?;
        let devices = start_devices(binary, room, &server, 2)?;
        let folders = [0, 1].map(|number: usize| devices[number].0.folder.clone());
        Ok((Self::Ours { server, devices }, folders))
    }

    /// Processor seconds, and the peak of the largest process in MiB.
    fn cost(&self) -> Result<(f64, f64)> {
        let processes = match self {
            Self::Ours { server, devices } => {
                let watches = devices.iter().map(|(_, watch)| watch.id());
                watches.chain([server.id()]).collect()
            }
            Self::Syncthing(both) => both.processes(),
        };
        processes.into_iter().try_fold((0.0, 0.0_f64), |(seconds, peak), process| {
            let cost = process::running(process)?;
            Ok((seconds + cost.cpu_seconds, peak.max(cost.peak_mib)))
        })
    }
}

/// Plays the trace once.
fn one(
    binary: &Path,
    room: &Path,
    trace: &Path,
    program: &'static str,
    delay: Option<u64>,
) -> Result<Row> {
    let (running, folders) = Running::start(binary, room, delay)?;
    let (cpu_before, _) = running.cost()?;
    let line_before = loopback_bytes()?;
    let mut play = Command::new(binary);
    play.args(["trace", "exec", "--json"]).arg(trace).args(&folders);
    play.env("SYNCLINE_HOME", room.join("player")).stdin(Stdio::null());
    let output = play.output().context("syncline trace exec")?;
    let line = loopback_bytes()? - line_before;
    // Where a program has ended meanwhile, that is what the run has shown.
    let cost = running.cost();
    let said = String::from_utf8_lossy(&output.stdout);
    let mut summary = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let summary = summary.rfind(|line| line["type"] == "summary");
    let told = |name: &str| summary.as_ref().and_then(|summary| summary[name].as_f64());
    let values = COLUMNS.map(|name| match name {
        "loopback_bytes" => Some(line as f64),
        "cpu_seconds" => cost.as_ref().ok().map(|(cpu, _)| cpu - cpu_before),
        "peak_mib" => cost.as_ref().ok().map(|(_, peak)| *peak),
        name => told(name),
    });
    let failure = (!output.status.success()).then(|| {
        let text = String::from_utf8_lossy(&output.stderr);
        text.lines().collect::<Vec<_>>().join(" ")
    });
    let failure = failure.or_else(|| cost.err().map(|failure| failure.to_string()));
    Ok(Row { program, file_system: "", round: 0, values, failure })
}

/// All bytes that went over the loopback so far, each counted once. Whatever else uses it is counted, too.
fn loopback_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/net/dev").context("/proc/net/dev")?;
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("lo:"));
    let received = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    received.map_or_else(|| fail("the kernel does not count the loopback"), Ok)
}

fn sentence(row: &Row) -> String {
    if let Some(failure) = &row.failure {
        return format!("{}: {failure}", row.program);
    }
    let shown = COLUMNS.iter().zip(row.values).map(|(name, value)| {
        let value = value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        format!("{name} {value}")
    });
    format!("{}: {}", row.program, shown.collect::<Vec<_>>().join(", "))
}

fn csv(rows: &[Row]) -> String {
    let mut text = format!("program,file_system,round,{},failure\n", COLUMNS.join(","));
    for row in rows {
        let values =
            row.values.map(|value| value.map_or_else(String::new, |it| format!("{it:.3}")));
        let failure = row.failure.as_deref().unwrap_or_default().replace('"', "'");
        // Writing to a String cannot fail, here as below.
        let Row { program, file_system, round, .. } = row;
        let values = values.join(",");
        let _ok = writeln!(text, "\"{program}\",{file_system},{round},{values},\"{failure}\"");
    }
    text
}

/// Medians over the rounds on a file system that ended as the trace says.
fn table(rows: &[Row], file_system: &str) -> String {
    let mut text = format!("### {file_system}\n\n");
    text.push_str(
        "| program | runs, of them as the trace says | initial tree everywhere, s | played, s | waited for the other, s | equal after the last step, s | \
         loopback, MB | CPU, s | peak, MiB |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for (program, _) in PROGRAMS {
        let is_of_it = |row: &&Row| (row.program, row.file_system) == (program, file_system);
        let of_it: Vec<&Row> = rows.iter().filter(is_of_it).collect();
        let good = of_it.iter().filter(|row| row.failure.is_none()).count();
        let middle = |name: &str, unit: f64| {
            let column = COLUMNS.iter().position(|known| *known == name);
            let good = of_it.iter().filter(|row| row.failure.is_none());
            let values = good.filter_map(|row| row.values[column?]);
            median(&values.collect::<Vec<_>>())
                .map_or_else(|| "-".to_owned(), |value| format!("{:.2}", value / unit))
        };
        let _ok = writeln!(
            text,
            "| {program} | {}, {good} | {} | {} | {} | {} | {} | {} | {} |",
            of_it.len(),
            middle("initial_seconds", 1.0),
            middle("playing_seconds", 1.0),
            middle("waited_seconds", 1.0),
            middle("settled_seconds", 1.0),
            middle("loopback_bytes", 1e6),
            middle("cpu_seconds", 1.0),
            middle("peak_mib", 1.0),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_failed_is_told_and_keeps_its_row() {
        let values = [1.0, 2.0, 0.5, 0.1, 0.2, 1e6, 3e6, 1.5, 40.0].map(Some);
        let good =
            Row { program: "syncline", file_system: "disk", round: 1, values, failure: None };
        let values = [Some(1.0), None, None, None, None, None, Some(5e6), Some(2.0), Some(70.0)];
        let failure = Some("E0217: \"a\" is missing".to_owned());
        let bad = Row { program: "syncthing", file_system: "disk", round: 1, values, failure };
        let rows = [good, bad];
        let table = table(&rows, "disk");
        assert!(
            table.contains("| syncline | 1, 1 | 1.00 | 2.00 | 0.50 | 0.20 | 3.00 | 1.50 | 40.00 |")
        );
        assert!(table.contains("| syncthing | 1, 0 | - | - | - | - | - | - | - |"), "{table}");
        assert!(csv(&rows).ends_with(",70.000,\"E0217: 'a' is missing\"\n"));
    }

    #[test]
    fn the_loopback_is_counted() {
        assert!(loopback_bytes().is_ok());
    }
}
