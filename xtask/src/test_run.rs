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
    Section::new("format", Work::Cargo(&["fmt", "--all", "--check"])),
    Section::new("tidy", Work::Tidy),
    Section::new(
        "clippy",
        Work::Cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ),
    // Left out above, because a plain test run leaves them out.
    Section::new(
        "clippy of services",
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
    // The web app runs these three rooms; a dependency that cannot follow them there shows here.
    Section::new("wasm", Work::Wasm),
    Section::new("tests", Work::Cargo(&["test", "--workspace"])),
    // The program that it tries is one of those that the tests have built.
    Section::new(WEB, Work::Web),
    // Stores and the program over real servers, which are installed where they are missing. Most of the time they wait, and worlds
    // never do.
    Section { name: SERVICES, work: Work::Services, behind: &WORLDS },
];

/// Simulated worlds. They run from what the tests have built: a release build takes longer than it saves. Naming no package keeps the
/// features, so nothing is built again.
const WORLDS: [Section; 2] = [
    // Every accident must have happened in them.
    Section::new(
        "worlds",
        Work::Cargo(&["run", "--example", "simulate", "--", "--seeds", "0..10000", "--all-faults"]),
    ),
    // The same over three or five stores, of which some are gone, slow, full, restored or emptied.
    Section::new(
        "worlds over stores",
        Work::Cargo(&["run", "--example", "simulate", "--", "--stores", "--seeds", "0..1000"]),
    ),
];

/// The sections that a machine without packages, Node.js or a browser may have to leave out.
const SERVICES: &str = "services";
const WEB: &str = "web";

/// Runs all sections; `--quick` leaves clippy out, `--without services,web` the real servers and the web app.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let quick = arguments.flag("--quick");
    let without = arguments.value("--without")?;
    arguments.finish()?;
    let without: Vec<&str> = without.iter().flat_map(|names| names.split(',')).collect();
    if let Some(name) = without.iter().find(|name| ![SERVICES, WEB].contains(name)) {
        return fail(format!("only '{SERVICES}' and '{WEB}' can be left out, not '{name}'"));
    }
    let start = Instant::now();
    let mut timings = Vec::new();
    for section in SECTIONS.iter().filter(|one| !quick || !one.name.starts_with("clippy")) {
        println!("\n==== {} ====", section.name);
        if without.contains(&section.name) {
            println!("---- {0}: NOT RUN, because --without {0} was said", section.name);
            timings.push(format!("{} NOT RUN", section.name));
            let instead = section.behind.iter().map(|one| one.run(run_section));
            timings.extend(instead.collect::<Result<Vec<_>>>()?);
        } else {
            timings.extend(section.run_with_those_behind()?);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("\n==== all passed in {seconds:.1} s: {} ====", timings.join(", "));
    Ok(())
}

impl Section {
    const fn new(name: &'static str, work: Work) -> Self {
        Self { name, work, behind: &[] }
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
