//! What people and programs read of the probe of a store.

use std::fmt::Write;
use std::time::Duration;

use super::answers::{answers, span};
use super::visibility::Sight;
use super::{Findings, Subject, Tally};
use crate::error::LabError;
use crate::output::Output;
use crate::plot::{Plot, Series};
use crate::probe::report::{Kind, Probed, begin, finish};

/// Writes everything, and returns the answers.
///
/// # Errors
/// [`LabError::Write`].
pub fn write(
    subject: &Subject<'_>,
    findings: &Findings,
    version: &str,
    output: &Output,
) -> Result<Probed, LabError> {
    let probed = Probed {
        name: subject.name.clone(),
        kind: Kind::Store,
        answers: answers(subject, findings),
        warnings: warnings(findings),
    };
    let rows = rows(findings);
    let mut page = begin(&probed)
        .heading("What was measured")
        .table(&COLUMNS, rows.iter().map(|row| row.cells(span)).collect());
    if findings.levels.len() > 1 {
        page = page.heading("Puts by calls at once").drawing("calls-at-once", drawing(findings));
    }
    finish(&probed, &csv(&rows), page, version, output)?;
    Ok(probed)
}

fn warnings(findings: &Findings) -> Vec<String> {
    let mut warnings = Vec::new();
    if findings.ended_early {
        warnings.push("It was ended before all was tried.".to_owned());
    }
    if let [first, ..] = &findings.left[..] {
        let count = findings.left.len();
        warnings.push(format!(
            "{count} objects may still be there, because they were not removed: {first} is one."
        ));
    }
    warnings
}

/// One line of the table.
struct Row {
    experiment: String,
    tally: Tally,
    /// How long all took together, where that is no sum of times.
    took: Option<Duration>,
}

/// Of the table of measurements.
const COLUMNS: [&str; 8] = [
    "experiment",
    "done",
    "refused",
    "failed",
    "together",
    "half within",
    "99 % within",
    "longest",
];

impl Row {
    fn cells(&self, say: impl Fn(Duration) -> String) -> Vec<String> {
        let Self { experiment, tally, took } = self;
        let say = |time: Option<Duration>| time.map_or_else(|| "-".to_owned(), &say);
        let mut cells = vec![experiment.clone(), tally.times.len().to_string()];
        cells.extend([tally.refused, tally.failed].map(|count| count.to_string()));
        cells.push(say(*took));
        cells.extend([0.5, 0.99, 1.0].map(|share| say(tally.within(share))));
        cells
    }
}

fn rows(findings: &Findings) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |experiment: &str, tally: &Tally, took: Option<Duration>| {
        rows.push(Row { experiment: experiment.to_owned(), tally: tally.clone(), took });
    };
    if let Some(calls) = &findings.calls {
        for (name, tally) in [
            ("put", &calls.put),
            ("get", &calls.get),
            ("list", &calls.list),
            ("delete", &calls.delete),
            ("large up", &calls.up),
            ("large down", &calls.down),
            ("empty", &calls.empty),
            ("largest", &calls.largest),
        ] {
            row(name, tally, None);
        }
    }
    for level in &findings.levels {
        row(&format!("{} at once", level.calls), &level.tally, Some(level.took));
    }
    for found in &findings.visibility {
        let sight = |sight: &Sight| Tally { times: sight.after.clone(), ..Tally::default() };
        let change = found.change.name();
        row(&format!("{change} read after"), &sight(&found.read), None);
        row(&format!("{change} listed after"), &sight(&found.listed), None);
    }
    if let Some(listings) = &findings.listings {
        row("list meanwhile", &listings.lists, None);
        row("put and delete meanwhile", &listings.writes, None);
        row("list then", &listings.last, None);
    }
    if let Some(load) = &findings.load {
        row("load", &load.tally, Some(load.took));
    }
    rows
}

fn csv(rows: &[Row]) -> String {
    let mut text =
        "experiment,done,refused,failed,seconds,p50_seconds,p99_seconds,max_seconds\n".to_owned();
    for row in rows {
        let cells = row.cells(|time| format!("{:.6}", time.as_secs_f64()));
        // Writing to a String cannot fail.
        let _ok = writeln!(text, "{}", cells.join(","));
    }
    text
}

fn drawing(findings: &Findings) -> String {
    let points = findings.levels.iter().map(|level| (level.calls as f64, level.rate()));
    Plot {
        title: "Puts of 1 KiB".to_owned(),
        across: "calls at once".to_owned(),
        up: "puts in a second".to_owned(),
        series: vec![Series::ours("puts", points.collect())],
    }
    .lines()
}
