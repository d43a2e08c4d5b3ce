//! Tables 4.2 and 4.3: sensors that send a small file again and again, all at once, or from a moment of their own.

use std::fmt::Write;
use std::time::Duration;

use super::place::Kind;
use super::{KB, end, lost, plan, run, with_losses};
use crate::bench::outcome::Outcome;
use crate::bench::plan::{Operation, Pause};
use crate::error::LabError;
use crate::experiment::Setting;
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};

/// What the thesis printed.
const EXPECTED: &str = include_str!("../../../../experiments/benchcloud-sensors/expected.csv");

/// Each sensor sends so many files, of so many bytes.
const FILES_EACH: u64 = 10;
const FILE_BYTES: u64 = 5 * KB;

/// By how much time runs faster, unless somebody wants it in full: the table would take 36 minutes.
const FASTER: f64 = 30.0;

/// A row of the thesis.
#[derive(Debug, Clone, PartialEq)]
struct Expected {
    table: String,
    sensors: usize,
    interval_s: f64,
    start_within_s: f64,
    lost_percent: f64,
}

impl Expected {
    fn name(&self) -> String {
        format!("table {}, {} sensors, {} s", self.table, self.sensors, self.interval_s)
    }
}

/// What came of it here.
struct Row {
    expected: Expected,
    target: Kind,
    faster: f64,
    outcome: Outcome,
}

/// Measures both tables, and writes them.
///
/// # Errors
/// [`LabError`].
pub fn measure(
    setting: &Setting,
    output: &Output,
    say: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let expected = setting.wanted(expected(), Expected::name)?;
    let faster = if setting.is_full { 1.0 } else { FASTER };
    let mut rows = Vec::new();
    for row in &expected {
        rows.push(benchmark(setting, row, Kind::Store, faster)?);
        say(&line(&rows[rows.len() - 1]));
    }
    // The one of which Dropbox lost most, in its own time, into a store and through a server to another device.
    let is_worst =
        |row: &&Expected| row.table == "4.2" && row.sensors == 100 && row.interval_s == 1.0;
    if let Some(worst) = expected.iter().find(is_worst) {
        for target in [Kind::Store, Kind::Workspace] {
            rows.push(benchmark(setting, worst, target, 1.0)?);
            say(&line(&rows[rows.len() - 1]));
        }
    }
    output.write_csv("benchcloud-sensors", &csv(&rows))?;
    output.write_page("benchcloud-sensors", &end(page(&rows, faster), setting))
}

fn benchmark(
    setting: &Setting,
    expected: &Expected,
    target: Kind,
    faster: f64,
) -> Result<Row, LabError> {
    let opened = target.open(setting)?;
    let files = expected.sensors as u64 * FILES_EACH;
    let mut plan = plan(Operation::Upload, files, expected.sensors, "sensors", setting.seed);
    plan.files.size = FILE_BYTES;
    plan.pause = Pause::Fixed(expected.interval_s / faster);
    plan.start_within =
        (expected.start_within_s > 0.0).then_some((0.0, expected.start_within_s / faster));
    let outcome = run(&plan, opened.driver.as_ref(), "lab")?;
    Ok(Row { expected: expected.clone(), target, faster, outcome })
}

/// Reads what the thesis printed.
fn expected() -> Vec<Expected> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [table, _, sensors, interval, within, _, percent] = cells[..] else { return None };
        Some(Expected {
            table: table.to_owned(),
            sensors: sensors.parse().ok()?,
            interval_s: interval.parse().ok()?,
            start_within_s: within.parse().ok()?,
            lost_percent: percent.parse().ok()?,
        })
    };
    EXPECTED.lines().skip(1).filter_map(row).collect()
}

impl Row {
    fn lost_percent(&self) -> f64 {
        lost(&self.outcome) as f64 / self.outcome.asked.max(1) as f64 * 100.0
    }

    /// The median, and what 99 of 100 keep, in milliseconds.
    fn millis(&self) -> (f64, f64) {
        let seconds = self.outcome.summaries().first().and_then(|summary| summary.seconds);
        seconds.map_or((0.0, 0.0), |[_, _, median, _, most, _]| (median * 1e3, most * 1e3))
    }

    fn rate(&self) -> f64 {
        self.outcome.asked as f64
            / self.outcome.length().max(Duration::from_micros(1)).as_secs_f64()
    }
}

fn line(row: &Row) -> String {
    format!(
        "{}, {}, time {} times as fast: {} of {} lost (Dropbox {} %)",
        row.expected.name(),
        row.target.name(),
        row.faster,
        lost(&row.outcome),
        row.outcome.asked,
        row.expected.lost_percent
    )
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from(
        "table,target,sensors,interval_s,start_within_s,time_faster,files,lost,lost_percent,dropbox_lost_percent,p50_ms,p99_ms,files_per_s\n",
    );
    for row in rows {
        let Expected { table, sensors, interval_s, start_within_s, lost_percent } = &row.expected;
        let (p50, p99) = row.millis();
        // Writing to a String cannot fail.
        let _ok = writeln!(
            text,
            "{table},{},{sensors},{interval_s},{start_within_s},{},{},{},{:.2},{lost_percent:.2},{p50:.2},{p99:.2},{:.1}",
            row.target.name(),
            row.faster,
            row.outcome.asked,
            lost(&row.outcome),
            row.lost_percent(),
            row.rate()
        );
    }
    text
}

fn page(rows: &[Row], faster: f64) -> Page {
    let time = if faster > 1.0 {
        format!(
            "Time runs {faster} times faster here, so that each store has to bear {faster} times as many files in a second; the last two rows are in real time."
        )
    } else {
        "Everything is in real time.".to_owned()
    };
    let page = Page::new("Sensors: BenchCloud's tables 4.2 and 4.3, and its figure 4.7").text(format!(
        "Every sensor sends ten files of 5 KB, and rests after each; in table 4.2 all begin at once, in table 4.3 each at a moment of its own. Figure 4.7 is a drawing of such sensors around a store. Dropbox refused what came too fast. \
         Here they go to a store in a folder, each on the disk when it is acknowledged, and all are read again in the end. {time}",
    ));
    let mut page = with_losses(page, rows.iter().map(|row| lost(&row.outcome)).sum());
    for table in ["4.2", "4.3"] {
        let of_table: Vec<&Row> = rows.iter().filter(|row| row.expected.table == table).collect();
        let headings = [
            "sensors, interval, target",
            "Dropbox lost",
            "lost here",
            "p50, ms",
            "p99, ms",
            "files/s",
        ];
        page = page
            .heading(format!("Table {table}"))
            .table(&headings, of_table.iter().map(|row| cells(row)).collect());
        page = page.drawing(format!("table-{table}"), drawing(table, &of_table));
    }
    page
}

fn cells(row: &Row) -> Vec<String> {
    let Expected { sensors, interval_s, lost_percent, .. } = &row.expected;
    let (p50, p99) = row.millis();
    let time = if row.faster > 1.0 { "" } else { ", real time" };
    vec![
        format!("{sensors}, {interval_s} s, {}{time}", row.target.name()),
        format!("{lost_percent:.2} %"),
        format!("{:.2} %", row.lost_percent()),
        format!("{p50:.1}"),
        format!("{p99:.1}"),
        format!("{:.0}", row.rate()),
    ]
}

fn drawing(table: &str, rows: &[&Row]) -> String {
    let series = |interval: f64, is_published: bool| {
        let of_it = rows
            .iter()
            .filter(|row| row.expected.interval_s == interval && row.target == Kind::Store);
        let point = |row: &&Row| {
            let value = if is_published { row.expected.lost_percent } else { row.lost_percent() };
            (row.expected.sensors as f64, value)
        };
        let points = of_it.map(point).collect();
        let whose = if is_published { "Dropbox" } else { "file store" };
        Series { name: format!("{whose}, {interval} s"), points, is_published }
    };
    let intervals = [1.0, 10.0, 60.0];
    let all = [true, false]
        .into_iter()
        .flat_map(|published| intervals.map(|interval| series(interval, published)));
    let plot = Plot {
        title: format!("Table {table}: files that were lost"),
        across: "sensors".to_owned(),
        up: "percent".to_owned(),
        series: all.collect(),
    };
    plot.lines()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thesis_has_fifteen_rows_in_each_table() {
        let expected = expected();
        for (table, worst) in [("4.2", 96.7), ("4.3", 95.5)] {
            let rows: Vec<_> = expected.iter().filter(|row| row.table == table).collect();
            assert_eq!(rows.len(), 15, "{table}");
            assert!(rows.iter().any(|row| row.sensors == 100
                && row.interval_s == 1.0
                && row.lost_percent == worst));
        }
        assert_eq!(expected.len(), 30);
    }
}
