//! The whole test run, section by section; the first failing section stops it by name.

use std::process::Command;
use std::time::Instant;

use crate::arguments::Arguments;
use crate::failure::{Context, Result};
use crate::{process, repository_root, tidy};

struct Section {
    name: &'static str,
    work: Work,
}

enum Work {
    Cargo(&'static [&'static str]),
    Tidy,
}

const SECTIONS: [Section; 6] = [
    Section { name: "format", work: Work::Cargo(&["fmt", "--all", "--check"]) },
    Section { name: "tidy", work: Work::Tidy },
    Section {
        name: "clippy",
        work: Work::Cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    },
    // The web app runs these two rooms; a dependency that cannot follow them there shows here.
    Section {
        name: "wasm",
        work: Work::Cargo(&[
            "check",
            "-p",
            "model",
            "-p",
            "content",
            "--target",
            "wasm32-unknown-unknown",
        ]),
    },
    Section { name: "tests", work: Work::Cargo(&["test", "--workspace"]) },
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
];

/// Runs all sections; `--quick` leaves clippy out.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let quick = arguments.flag("--quick");
    arguments.finish()?;
    let start = Instant::now();
    let mut timings = Vec::new();
    for section in SECTIONS {
        if quick && section.name == "clippy" {
            continue;
        }
        println!("\n==== {} ====", section.name);
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
        Work::Cargo(words) => process::run(cargo().args(words)),
    }
}

/// The cargo that started us, in the repository's root.
pub fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(repository_root());
    command
}
