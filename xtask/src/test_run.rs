//! The whole test run, section by section; the first failing section stops it by name.

use std::ffi::{OsStr, OsString};
use std::process::Command;
use std::time::Instant;

use crate::arguments::Arguments;
use crate::failure::{Context, Failure, Result, fail};
use crate::services::{self, Extent};
use crate::{process, repository_root, tidy, web};

struct Section {
    name: &'static str,
    work: Work,
    /// About how many seconds it takes in a fresh clone on two cores that nobody else uses.
    seconds: u32,
    /// Whether it runs even where it will not end in time.
    is_needed: bool,
    /// What runs meanwhile, with less priority.
    behind: &'static [Section],
}

enum Work {
    Cargo(&'static [&'static str]),
    Tidy,
    Wasm,
    Web,
    Services,
}

const SECTIONS: [Section; 8] = [
    Section::needed("format", 10, Work::Cargo(&["fmt", "--all", "--check"])),
    Section::needed("tidy", 5, Work::Tidy),
    // The web app runs these three rooms; a dependency that cannot follow them there shows here.
    Section::needed("wasm", 40, Work::Wasm),
    Section::needed("tests", 2100, Work::Cargo(&["test", "--workspace"])),
    // The program that it tries is one of those that the tests have built.
    Section::new(WEB, 1100, Work::Web),
    // Stores and the program over real servers, which are installed where they are missing. Most of the time they wait, and worlds
    // never do.
    Section { behind: &WORLDS, ..Section::new(SERVICES, 800, Work::Services) },
    Section::new(
        "clippy",
        250,
        Work::Cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ),
    // Left out above, because a plain test run leaves them out. By itself it takes as long as the one above, behind that no time.
    Section::new(
        "clippy of services",
        250,
        Work::Cargo(&[
            "clippy",
            "--workspace",
            "--test",
            "services",
            "--test",
            "brokers",
            "--",
            "-D",
            "warnings",
        ]),
    ),
];

/// Simulated worlds. They run from what the tests have built: a release build takes longer than it saves. Naming no package keeps the
/// features, so nothing is built again. `CONTRIBUTING.md` says how to run more of them.
const WORLDS: [Section; 2] = [
    // Every accident must have happened in them.
    Section::new(
        "worlds",
        100,
        Work::Cargo(&["run", "--example", "simulate", "--", "--seeds", "0..1000", "--all-faults"]),
    ),
    // The same over three or five stores, of which some are gone, slow, full, restored or emptied.
    Section::new(
        "worlds over stores",
        20,
        Work::Cargo(&["run", "--example", "simulate", "--", "--stores", "--seeds", "0..200"]),
    ),
];

/// The sections that a machine without packages, Node.js or a browser may have to leave out.
const SERVICES: &str = "services";
const WEB: &str = "web";

/// Runs all sections; `--quick` leaves clippy out, `--without services,web` the real servers and the web app, and `--minutes N` what
/// would not end in that time, as it goes on this machine.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let quick = arguments.flag("--quick");
    let without = arguments.value("--without")?;
    let minutes: u32 = arguments.value_or("--minutes", 0)?;
    arguments.finish()?;
    let without: Vec<&str> = without.iter().flat_map(|names| names.split(',')).collect();
    if let Some(name) = without.iter().find(|name| ![SERVICES, WEB].contains(name)) {
        return fail(format!("only '{SERVICES}' and '{WEB}' can be left out, not '{name}'"));
    }
    let start = Instant::now();
    let mut pace = Pace { limit: (minutes > 0).then_some(minutes.saturating_mul(60)), usual: 0 };
    let (mut timings, mut missing) = (Vec::new(), Vec::new());
    for section in SECTIONS.iter().filter(|one| !quick || !one.name.starts_with("clippy")) {
        println!("\n==== {} ====", section.name);
        let is_late = !pace.has_time_for(section, start.elapsed().as_secs_f64());
        let is_left_out = without.contains(&section.name);
        if is_late || is_left_out {
            let why = if is_left_out { "--without was said" } else { "it would not end in time" };
            println!("---- {}: NOT RUN, because {why}", section.name);
            missing.push(section.name);
        }
        if is_left_out {
            let instead = section.behind.iter().map(|one| one.run(run_section));
            timings.extend(instead.collect::<Result<Vec<_>>>()?);
        } else if !is_late {
            timings.extend(section.run_with_those_behind()?);
            pace.usual += section.seconds;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let all = match missing.is_empty() {
        true => "all passed".to_owned(),
        false => format!("what ran passed, {} did NOT RUN,", missing.join(" and ")),
    };
    println!("\n==== {all} in {seconds:.1} s: {} ====", timings.join(", "));
    Ok(())
}

/// How fast this machine is, and until when all has to be over.
struct Pace {
    /// Seconds from the beginning.
    limit: Option<u32>,
    /// How many seconds what was run takes usually.
    usual: u32,
}

impl Pace {
    /// Tells whether a section ends in time, `elapsed` seconds after the beginning, where it is as slow as those before it.
    fn has_time_for(&self, section: &Section, elapsed: f64) -> bool {
        let Some(limit) = self.limit else { return true };
        let slowness = (elapsed / f64::from(self.usual.max(1))).max(1.0);
        section.is_needed || elapsed + slowness * f64::from(section.seconds) <= f64::from(limit)
    }
}

impl Section {
    const fn new(name: &'static str, seconds: u32, work: Work) -> Self {
        Self { name, work, seconds, is_needed: false, behind: &[] }
    }

    const fn needed(name: &'static str, seconds: u32, work: Work) -> Self {
        Self { is_needed: true, ..Self::new(name, seconds, work) }
    }

    /// Runs it and says how long it took.
    fn run(&self, run: fn(&Self) -> Result<()>) -> Result<String> {
        let start = Instant::now();
        run(self).context(format!("section '{}' failed", self.name))?;
        let seconds = start.elapsed().as_secs_f64();
        println!("---- {}: passed in {seconds:.1} s", self.name);
        Ok(format!("{} {seconds:.1} s", self.name))
    }

    /// Runs it, and those behind it one after the other meanwhile; returns how long each took.
    fn run_with_those_behind(&self) -> Result<Vec<String>> {
        std::thread::scope(|scope| {
            let behind = scope.spawn(|| {
                let ran = self.behind.iter().map(|one| one.run(run_behind));
                ran.collect::<Result<Vec<_>>>()
            });
            let ran = self.run(run_section);
            let behind = behind.join().unwrap_or_else(|_| fail("the sections behind panicked"));
            Ok(std::iter::once(ran?).chain(behind?).collect())
        })
    }
}

/// Runs a section of cargo with what others leave of the processors. What it says is shown when it has ended, so that it stands together.
fn run_behind(section: &Section) -> Result<()> {
    let Work::Cargo(words) = section.work else { return run_section(section) };
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(cargo_program()).args(words);
    process::run_quietly(&mut outside_of_our_package(command), section.name)
}

fn run_section(section: &Section) -> Result<()> {
    match section.work {
        Work::Tidy => tidy::check_repository(),
        Work::Wasm => run_wasm(),
        Work::Web => web::test(),
        Work::Services => run_services(),
        Work::Cargo(words) => process::run(cargo().args(words)),
    }
}

fn run_wasm() -> Result<()> {
    web::add_target()?;
    let rooms = ["-p", "model", "-p", "content", "-p", "wasm"];
    process::run(cargo().arg("check").args(rooms).args(["--target", web::WASM]))
}

/// Where the servers cannot be had, the section does not pass in silence: the run fails and says what leaves it out.
fn run_services() -> Result<()> {
    services::install_for_test_run().map_err(|failure| {
        Failure::new(format!(
            "it did not run, because the servers could not be installed: {failure}\n\
             `cargo xtask test --without {SERVICES}` leaves it out, and says so"
        ))
    })?;
    services::test(Extent::TestRun)
}

/// The cargo that started us, in the repository's root.
pub fn cargo() -> Command {
    outside_of_our_package(Command::new(cargo_program()))
}

fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Cargo tells us of our own package. Build scripts that look at these variables, that of ring above all, would run again, and with them
/// half of the build, whenever somebody calls now cargo and now us.
fn outside_of_our_package(mut command: Command) -> Command {
    command.current_dir(repository_root());
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_our_package(name)) {
        command.env_remove(name);
    }
    command
}

fn is_of_our_package(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which sections run where all takes `slowness` times as long as usual.
    fn run_in(limit: Option<u32>, slowness: f64) -> Vec<&'static str> {
        let (mut pace, mut elapsed, mut ran) = (Pace { limit, usual: 0 }, 0.0, Vec::new());
        for section in &SECTIONS {
            if pace.has_time_for(section, elapsed) {
                pace.usual += section.seconds;
                elapsed += slowness * f64::from(section.seconds);
                ran.push(section.name);
            }
        }
        ran
    }

    #[test]
    fn a_slow_machine_leaves_out_what_would_not_end_in_time_and_no_other() {
        let limit = Some(82 * 60);
        let all: Vec<_> = SECTIONS.iter().map(|section| section.name).collect();
        assert_eq!(run_in(None, 100.0), all);
        assert_eq!(run_in(limit, 1.05), all);
        let needed = ["format", "tidy", "wasm", "tests"];
        assert_eq!(run_in(limit, 1.4), [&needed[..], &["web", "clippy"]].concat());
        assert_eq!(run_in(limit, 2.0), [&needed[..], &["clippy"]].concat());
        assert_eq!(run_in(limit, 9.0), needed, "these are never left out");
    }
}
