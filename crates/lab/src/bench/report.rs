//! What people and programs read of a benchmark: a page, every operation in a table, the numbers as JSON, a log.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::outcome::{Cost, Outcome, Record, Repeated, SECONDS, SPREAD, Spread, Summary};
use super::plan::{Operation, Plan};
use super::wire::Wire;
use crate::environment;
use crate::error::LabError;
use crate::files;
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};

/// The name of all results.
const NAME: &str = "benchmark";

/// More points than that are not drawn: nobody sees them.
const POINTS_MAX: usize = 500;

/// How many failures are listed: all of them are in the table.
const FAILURES_MAX: usize = 20;

/// Writes everything, and returns the numbers.
///
/// # Errors
/// [`LabError::Write`].
pub fn write(
    plan: &Plan,
    target: &str,
    version: &str,
    outcome: &Outcome,
    output: &Output,
) -> Result<Value, LabError> {
    let numbers = numbers(plan, target, version, outcome);
    output.write_csv(NAME, &outcome.csv())?;
    output.write_json(NAME, &numbers)?;
    output.write_page(NAME, &page(plan, target, version, outcome))?;
    if let Some(path) = &plan.log {
        files::append(path, log(plan, outcome))?;
    }
    Ok(numbers)
}

fn numbers(plan: &Plan, target: &str, version: &str, outcome: &Outcome) -> Value {
    let summaries = outcome.summaries().into_iter().map(|summary| {
        let seconds = summary.seconds.map(|numbers| {
            let named = SECONDS.iter().zip(numbers);
            named.map(|(name, value)| ((*name).to_owned(), json!(value))).collect::<Value>()
        });
        json!({
            "operation": summary.kind.name(), "done": summary.done, "failed": summary.failed,
            "bytes": summary.bytes, "seconds": seconds,
        })
    });
    let environment = environment::facts();
    json!({
        "description": plan.description,
        "target": target,
        "version": version,
        "environment": environment.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        "threads": plan.threads,
        "seed": plan.seed,
        "repetitions": outcome.repetitions,
        "asked": outcome.asked,
        "failed": outcome.failed(),
        "acknowledged_files": outcome.acknowledged,
        "lost": outcome.lost,
        "unread": outcome.unread,
        "broken": outcome.broken,
        "elapsed_seconds": outcome.length().as_secs_f64(),
        "processor_seconds": outcome.processor.as_secs_f64(),
        "memory_peak_bytes": outcome.memory_peak,
        "processes": outcome.processes.iter().map(Cost::json).collect::<Vec<_>>(),
        "bytes_per_second": outcome.throughput(),
        "wire": outcome.wire.as_ref().map(Wire::json),
        "operations": summaries.collect::<Vec<_>>(),
        "over_repetitions": outcome.repeated().as_ref().map(repeated_json),
    })
}

fn repeated_json(repeated: &Repeated) -> Value {
    let named = |spread: Spread| {
        let named = SPREAD.iter().zip(spread.numbers());
        named.map(|(name, value)| ((*name).to_owned(), json!(value))).collect::<Value>()
    };
    let kinds = repeated.kinds.iter().map(|it| {
        json!({
            "operation": it.kind.name(), "repetitions": it.repetitions,
            "p50": named(it.p50), "p99": named(it.p99),
        })
    });
    json!({
        "whole": repeated.whole,
        "bytes_per_second": named(repeated.throughput),
        "operations": kinds.collect::<Vec<_>>(),
    })
}

fn page(plan: &Plan, target: &str, version: &str, outcome: &Outcome) -> Page {
    let title = if plan.description.is_empty() { "A benchmark" } else { plan.description.as_str() };
    let counted = outcome.counted().count();
    let elapsed = outcome.length().as_secs_f64();
    let repetitions = match outcome.repetitions {
        0 | 1 => String::new(),
        repetitions => format!(" in {repetitions} repetitions"),
    };
    let mut page = Page::new(title).text(format!(
        "{target}: {counted} of {} operations of {} by {} threads{repetitions} in {elapsed:.2} s, {:.2} MB/s.",
        outcome.asked,
        plan.operation.name(),
        plan.threads,
        outcome.throughput() / 1e6,
    ));
    page = verdict(page, outcome);
    let headings = ["operation", "done", "failed", "MB", "min", "mean", "p50", "p90", "p99", "max"];
    let rows: Vec<Vec<String>> = outcome.summaries().iter().map(cells).collect();
    page = page.heading("How long an operation took, in milliseconds").table(&headings, rows);
    if let Some(repeated) = outcome.repeated() {
        page = agreement(page, &repeated);
    }
    page = page
        .heading("What it cost")
        .table(&["what", "of a processor, s", "memory at most, MB"], costs(outcome));
    if let Some(wire) = &outcome.wire {
        page = wire.section(page);
    }
    for (name, svg) in drawings(outcome) {
        page = page.drawing(name, svg);
    }
    let failures: Vec<Vec<String>> = outcome
        .counted()
        .filter_map(|record| Some(vec![record.path.clone(), record.failure.clone()?]))
        .take(FAILURES_MAX)
        .collect();
    if !failures.is_empty() {
        page = page.heading("What failed").table(&["file", "why"], failures);
    }
    environment::end(page, &[("version", version.to_owned()), ("seed", plan.seed.to_string())])
}

/// Says how far repetitions agree.
fn agreement(page: Page, repeated: &Repeated) -> Page {
    let row = |what: String, repetitions: u64, spread: Spread, factor: f64| {
        let numbers = spread.numbers().map(|number| format!("{:.2}", number * factor));
        [vec![what, repetitions.to_string()], numbers.to_vec()].concat()
    };
    let mut rows = vec![row("MB/s".to_owned(), repeated.whole, repeated.throughput, 1e-6)];
    for kind in &repeated.kinds {
        for (name, spread) in [("p50", kind.p50), ("p99", kind.p99)] {
            let what = format!("{} {name}, ms", kind.kind.name());
            rows.push(row(what, kind.repetitions, spread, 1e3));
        }
    }
    let [median, least, most] = SPREAD;
    page.heading("How far repetitions agree")
        .table(&["of each repetition", "repetitions", median, least, most], rows)
}

/// Says whether it was good, before all numbers.
fn verdict(mut page: Page, outcome: &Outcome) -> Page {
    if let Some(why) = &outcome.broken {
        page = page.bad(format!("This computer could not go on: {why}."));
    }
    let files = outcome.acknowledged;
    let page = match outcome.unread {
        0 => page,
        unread => page.bad(format!(
            "{unread} of {files} files could not be read again: what became of them is not known."
        )),
    };
    let page = match (outcome.failed(), outcome.counted().count() as u64) {
        (0, counted) if counted == outcome.asked => page,
        (0, counted) => {
            page.bad(format!("It was ended early, after {counted} of {}.", outcome.asked))
        }
        (failed, _) => page.bad(format!("{failed} operations failed.")),
    };
    match outcome.lost.len() {
        0 if files == outcome.unread => page,
        0 => page.text(format!("All {} files that could be read again and of which the target said that they were written were there in the end, as they were written.", files - outcome.unread)),
        lost => page.bad(format!("{lost} of {files} files are lost of which the target said that they were written: {}", outcome.lost[0])),
    }
}

fn costs(outcome: &Outcome) -> Vec<Vec<String>> {
    let row = |who: &str, processor: Duration, memory: Option<u64>| {
        let memory = memory.map(|bytes| format!("{:.1}", bytes as f64 / 1e6));
        let processor = format!("{:.2}", processor.as_secs_f64());
        vec![who.to_owned(), processor, memory.unwrap_or_else(|| "-".to_owned())]
    };
    let others = outcome.processes.iter();
    let others = others.map(|cost| row(&cost.name, cost.processor, Some(cost.memory_peak)));
    let own = row("this program", outcome.processor, outcome.memory_peak);
    std::iter::once(own).chain(others).collect()
}

fn cells(summary: &Summary) -> Vec<String> {
    let mut cells = vec![
        summary.kind.name().to_owned(),
        summary.done.to_string(),
        summary.failed.to_string(),
        format!("{:.2}", summary.bytes as f64 / 1e6),
    ];
    match summary.seconds {
        Some(numbers) => cells.extend(numbers.map(|seconds| format!("{:.2}", seconds * 1e3))),
        None => cells.extend(SECONDS.map(|_| "-".to_owned())),
    }
    cells
}

/// Returns the drawings of the page, with the names of their files.
pub(super) fn drawings(outcome: &Outcome) -> [(&'static str, String); 2] {
    [("benchmark-shares", shares(outcome)), ("benchmark-over-time", over_time(outcome))]
}

/// Returns which share of the operations of each kind, in percent, took no longer than so many milliseconds.
pub(super) fn shares_by_kind(outcome: &Outcome) -> Vec<(Operation, Vec<(f64, f64)>)> {
    by_kind(outcome, |records| {
        let mut millis: Vec<f64> =
            records.iter().map(|record| record.took.as_secs_f64() * 1e3).collect();
        millis.sort_by(f64::total_cmp);
        let all = millis.len() as f64;
        let share = |(at, millis): (usize, f64)| (millis, (at + 1) as f64 / all * 100.0);
        millis.into_iter().enumerate().map(share).collect()
    })
}

/// Draws which share of the operations took no longer than a time.
fn shares(outcome: &Outcome) -> String {
    let plot = Plot {
        title: "No longer than".to_owned(),
        across: "milliseconds".to_owned(),
        up: "percent of the operations".to_owned(),
        series: series(shares_by_kind(outcome)),
    };
    plot.lines()
}

/// Draws how long operations took over the time of the benchmark.
fn over_time(outcome: &Outcome) -> String {
    let points = by_kind(outcome, |records| {
        let point =
            |record: &&Record| (record.started.as_secs_f64(), record.took.as_secs_f64() * 1e3);
        records.iter().map(point).collect()
    });
    let plot = Plot {
        title: "From the beginning to the end".to_owned(),
        across: "second".to_owned(),
        up: "milliseconds".to_owned(),
        series: series(points),
    };
    plot.lines()
}

fn series(by_kind: Vec<(Operation, Vec<(f64, f64)>)>) -> Vec<Series> {
    by_kind.into_iter().map(|(kind, points)| Series::ours(kind.name(), points)).collect()
}

/// Returns points of those operations that came to a good end, kind by kind.
fn by_kind(
    outcome: &Outcome,
    points: impl Fn(&[&Record]) -> Vec<(f64, f64)>,
) -> Vec<(Operation, Vec<(f64, f64)>)> {
    let of_kind = |summary: Summary| {
        let is_it = |record: &&Record| record.kind == summary.kind && record.failure.is_none();
        let mut records: Vec<&Record> = outcome.counted().filter(is_it).collect();
        records.sort_by_key(|record| record.started);
        let points = thinned(points(&records));
        (!points.is_empty()).then_some((summary.kind, points))
    };
    outcome.summaries().into_iter().filter_map(of_kind).collect()
}

/// Leaves out points evenly, but neither the first nor the last.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= POINTS_MAX {
        return points;
    }
    let last = points.len() - 1;
    (0..POINTS_MAX).map(|at| points[at * last / (POINTS_MAX - 1)]).collect()
}

/// Tells every operation in a line, and the numbers below.
fn log(plan: &Plan, outcome: &Outcome) -> String {
    let mut text = format!("Start testing: {}\n", plan.description);
    let of = |record: &Record| match plan.repetitions {
        1 => String::new(),
        _ => format!(" of repetition {}", record.repetition),
    };
    // Writing to a String cannot fail.
    for record in &outcome.records {
        let millis = record.took.as_secs_f64() * 1e3;
        let at = record.started.as_secs_f64();
        let operation = format!("Operation #{}{}", record.number + 1, of(record));
        let _ok = match &record.failure {
            None => writeln!(text, "{at:.3} s | {operation} finished. ({millis:.0}ms)"),
            Some(why) => writeln!(text, "{at:.3} s | {operation} failed: {why}"),
        };
    }
    for summary in outcome.summaries() {
        let Summary { kind, done, failed, seconds, .. } = summary;
        let _ok = write!(text, "{}: {done} done, {failed} failed", kind.name());
        if let Some([least, mean, .., most]) = seconds.map(|numbers| numbers.map(|it| it * 1e3)) {
            let _ok = write!(text, "; min {least:.0}ms, max {most:.0}ms, average {mean:.0}ms");
        }
        text.push('\n');
    }
    let elapsed = outcome.length().as_secs_f64() * 1e3;
    let _ok = writeln!(text, "Time spent for all operations: {elapsed:.0}ms");
    text
}
