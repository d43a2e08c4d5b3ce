//! The whole test run, section by section; the first failing section stops it by name.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Instant;

use crate::arguments::Arguments;
use crate::failure::{Context, Failure, Result, fail};
use crate::services::{self, Extent};
use crate::{process, repository_root, tidy};

struct Section {
    name: &'static str,
    work: Work,
}

enum Work {
    Cargo(&'static [&'static str]),
    Tidy,
    Wasm,
    Services,
}

/// What a browser runs.
const WASM: &str = "wasm32-unknown-unknown";

const SECTIONS: [Section; 9] = [
    Section { name: "format", work: Work::Cargo(&["fmt", "--all", "--check"]) },
    Section { name: "tidy", work: Work::Tidy },
    Section {
        name: "clippy",
        work: Work::Cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    },
    // Left out above, because a plain test run leaves them out.
    Section {
        name: "clippy of services",
        work: Work::Cargo(&[
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
    },
    // The web app runs these two rooms; a dependency that cannot follow them there shows here.
    Section { name: "wasm", work: Work::Wasm },
    Section { name: "tests", work: Work::Cargo(&["test", "--workspace"]) },
    // Stores and the program over real servers, which are installed where they are missing.
    Section { name: SERVICES, work: Work::Services },
    // Ten thousand simulated worlds, in which every accident must have happened. They run from what the tests have built:
    // a release build takes longer than it saves. Naming no package keeps the features, so nothing is built again.
    Section {
        name: "worlds",
        work: Work::Cargo(&[
            "run",
            "--example",
            "simulate",
            "--",
            "--seeds",
            "0..10000",
            "--all-faults",
        ]),
    },
    // The same over three or five stores, of which some are gone, slow, full, restored or emptied.
    Section {
        name: "worlds over stores",
        work: Work::Cargo(&[
            "run",
            "--example",
            "simulate",
            "--",
            "--stores",
            "--seeds",
            "0..1000",
        ]),
    },
];

/// The section that a machine without packages may have to leave out.
const SERVICES: &str = "services";

/// Runs all sections; `--quick` leaves clippy out, `--without services` the real servers.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let quick = arguments.flag("--quick");
    let without = arguments.value("--without")?;
    arguments.finish()?;
    if let Some(name) = without.as_deref().filter(|name| *name != SERVICES) {
        return fail(format!("only '{SERVICES}' can be left out, not '{name}'"));
    }
    let start = Instant::now();
    let mut timings = Vec::new();
    for section in SECTIONS {
        if quick && section.name.starts_with("clippy") {
            continue;
        }
        println!("\n==== {} ====", section.name);
        if without.as_deref() == Some(section.name) {
            println!("---- {}: NOT RUN, because --without {} was said", section.name, section.name);
            timings.push(format!("{} NOT RUN", section.name));
            continue;
        }
        let section_start = Instant::now();
        run_section(&section).context(format!("section '{}' failed", section.name))?;
        let seconds = section_start.elapsed().as_secs_f64();
        println!("---- {}: passed in {seconds:.1} s", section.name);
        timings.push(format!("{} {seconds:.1} s", section.name));
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("\n==== all passed in {seconds:.1} s: {} ====", timings.join(", "));
    Ok(())
}

fn run_section(section: &Section) -> Result<()> {
    match section.work {
        Work::Tidy => tidy::check_repository(),
        Work::Wasm => run_wasm(),
        Work::Services => run_services(),
        Work::Cargo(words) => process::run(cargo().args(words)),
    }
}

/// Rustup fetches the target by itself unless it was told to fetch nothing unasked, so it is asked; without rustup cargo says what is
/// missing.
fn run_wasm() -> Result<()> {
    let listed = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let is_missing = listed.is_ok_and(|listed| {
        listed.status.success()
            && !String::from_utf8_lossy(&listed.stdout).lines().any(|target| target == WASM)
    });
    if is_missing {
        process::run(Command::new("rustup").args(["target", "add", WASM]))?;
    }
    process::run(cargo().args(["check", "-p", "model", "-p", "content", "--target", WASM]))
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
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(repository_root());
    // Cargo tells us of our own package. Build scripts that look at these variables, that of ring above all, would run again, and with
    // them half of the build, whenever somebody calls now cargo and now us.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_our_package(name)) {
        command.env_remove(name);
    }
    command
}

fn is_of_our_package(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}
