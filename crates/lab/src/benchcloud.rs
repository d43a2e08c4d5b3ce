//! BenchCloud's own case study again (Wang 2014, chapter 4): what it did with Dropbox is done with targets that a computer has by itself.
//!
//! Read in this order: `place` (the targets), `threads` (figures 4.1 to 4.4), `sizes` (4.5, 4.6), `sensors` (tables 4.2, 4.3), `readiness`
//! (table 4.5), `client` (figures 4.8 to 4.10, table 4.7).

pub mod client;
pub mod readiness;
pub mod sensors;
pub mod sizes;
pub mod threads;

mod place;

#[cfg(test)]
mod tests;

use crate::bench::driver::Driver;
use crate::bench::outcome::Outcome;
use crate::bench::plan::{Files, Operation, Pause, Plan, Target};
use crate::bench::work;
use crate::environment;
use crate::error::LabError;
use crate::experiment::Setting;
use crate::page::Page;

const KB: u64 = 1024;
const MB: u64 = 1024 * KB;

/// A benchmark in a folder of its target, without pauses.
fn plan(operation: Operation, times: u64, threads: usize, directory: &str, seed: u64) -> Plan {
    Plan {
        description: String::new(),
        operation,
        times,
        threads,
        warm_up: 0,
        repetitions: 1,
        seed,
        pause: Pause::None,
        start_within: None,
        target: Target { directory: directory.to_owned(), ..Target::default() },
        files: Files::default(),
        mix: None,
        capture: None,
        processes: Vec::new(),
        log: None,
    }
}

/// Does it. Files have the name in theirs.
fn run(plan: &Plan, driver: &dyn Driver, name: &str) -> Result<Outcome, LabError> {
    work::run(plan, driver, name, None, &mut |_| true)
}

/// Returns the mean time of the operations that came to a good end, in milliseconds.
fn mean_millis(outcome: &Outcome) -> f64 {
    let seconds = outcome.summaries().first().and_then(|summary| summary.seconds);
    seconds.map_or(0.0, |[_, mean, ..]| mean * 1e3)
}

/// Returns how many files did not get there: those that failed, and those of which the target said that they were written and that were not there in the end.
fn lost(outcome: &Outcome) -> u64 {
    outcome.failed() + outcome.lost.len() as u64 + outcome.unread
}

/// Writes bytes as the paper does.
fn size_name(bytes: u64) -> String {
    if bytes >= MB { format!("{} MB", bytes / MB) } else { format!("{} KB", bytes / KB) }
}

/// Returns the middle of some numbers.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    match numbers.len() {
        0 => 0.0,
        count if count % 2 == 1 => numbers[count / 2],
        count => (numbers[count / 2 - 1] + numbers[count / 2]) / 2.0,
    }
}

/// Says what could not be done as it should have been, where something could not.
fn with_losses(page: Page, lost: u64) -> Page {
    match lost {
        0 => page.text("Nothing failed, and every file was there in the end as it was written."),
        lost => page.bad(format!("{lost} files failed or were lost; the CSV says where.")),
    }
}

/// Ends a page with where it was measured.
fn end(page: Page, setting: &Setting) -> Page {
    environment::end(page, &[("seed", setting.seed.to_string())])
}
