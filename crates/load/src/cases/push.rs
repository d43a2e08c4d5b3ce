//! One change on its way to six devices of a person.

use anyhow::Result;

use super::{Bench, Options, groups_of};
use crate::report::Run;
use crate::run::Pace;
use lab::output::say;

/// How many devices a person has; one changes something, the others hear of it (StackSync 2014, section 5.3).
const DEVICES_EACH: usize = 6;

/// How many people there are, and of whom somebody changes something so many times a second.
const PEOPLE: usize = 40;
const RATE: f64 = 20.0;

/// In a quick run there are fewer.
const PEOPLE_QUICK: usize = 3;

fn people(options: &Options) -> usize {
    if options.quick { PEOPLE_QUICK } else { PEOPLE }
}

/// Returns how many devices that takes.
pub(super) fn devices_of(options: &Options) -> usize {
    people(options) * DEVICES_EACH
}

/// Runs the case.
pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let groups = groups_of(&bench.population, DEVICES_EACH, people(bench.options))?;
    let seats = bench.prepare("push", groups).await?;
    let length = bench.options.length;
    let (_, figures) = bench.measure(Pace::Open { rate: RATE }, length, &seats).await?;
    let run = Run::new("push".to_owned(), Some(RATE), seats.len(), length, figures);
    say(&run.describe());
    let delays = |name: &str, delays: &crate::figures::Delays| {
        let of = |percent| delays.percentile(percent).unwrap_or(f64::NAN);
        say(&format!("  {name}: p50 {:.2} ms, p99 {:.2} ms", of(50.0), of(99.0)));
    };
    delays("to each of the five others", &run.figures.other_events);
    delays("to the last of the five", &run.figures.last_events);
    bench.report.runs.push(run);
    Ok(())
}
