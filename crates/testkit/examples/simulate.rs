//! Runs many worlds: `simulate --seeds 0..1000`, or one of them with all that happens: `simulate --one 17 --verbose`.
//! With `--stores` they are worlds over several stores.
//! With `--all-faults` it also fails if some accident that worlds know never happened.

use std::io::Write;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use testkit::batch::{BadWorld, run_worlds};
use testkit::coverage::Coverage;
use testkit::{WorldOptions, run};

/// After how many worlds the progress is told.
const PROGRESS: u64 = 1000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let index = arguments.iter().position(|argument| argument == name)?;
        arguments.get(index + 1).cloned()
    };
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let over_stores = flag("--stores");
    let expand = match (flag("--calm"), over_stores) {
        (true, _) => WorldOptions::calm,
        (false, true) => WorldOptions::over_stores,
        (false, false) => WorldOptions::from_seed,
    };
    let coverage = Coverage::default();
    let (count, bad) = match value("--one") {
        Some(seed) => {
            let options = expand(seed.parse().expect("a seed is a number"));
            say(&format!("{options:?}"));
            let seed = options.seed;
            let violations = run(options, &coverage, flag("--verbose")).violations;
            (
                1,
                (!violations.is_empty())
                    .then_some(BadWorld { seed, violations })
                    .into_iter()
                    .collect(),
            )
        }
        None => {
            let seeds = range(&value("--seeds").unwrap_or_else(|| "0..1000".to_owned()));
            let (total, done) = (seeds.end - seeds.start, AtomicU64::new(0));
            let tell = |bad: Option<&BadWorld>| {
                if let Some(bad) = bad {
                    say(&bad.to_string());
                }
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                if done.is_multiple_of(PROGRESS) {
                    say(&format!("{done} of {total} worlds"));
                }
            };
            (total, run_worlds(seeds, expand, &coverage, tell))
        }
    };
    say(&format!("{coverage}"));
    for bad in &bad {
        say(&bad.to_string());
    }
    say(&format!("{} of {count} worlds ended badly", bad.len()));
    let missing = match (flag("--all-faults"), over_stores) {
        (true, true) => coverage.missing_over_stores(),
        (true, false) => coverage.missing(),
        (false, _) => Vec::new(),
    };
    if !missing.is_empty() {
        say(&format!("what no world had: {missing:?}"));
    }
    if bad.is_empty() && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn range(text: &str) -> Range<u64> {
    let (first, end) = text.split_once("..").expect("seeds are given as A..B");
    first.parse().expect("a seed is a number")..end.parse().expect("a seed is a number")
}

fn say(line: &str) {
    // A closed pipe is no reason to stop.
    let _ = writeln!(std::io::stdout(), "{line}");
}
