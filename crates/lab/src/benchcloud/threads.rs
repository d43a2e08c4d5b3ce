//! Figures 4.1 to 4.4: 50 files by ever more threads.

use std::fmt::Write;

use super::place::{Kind, Opened};
use super::{KB, MB, end, lost, mean_millis, median, plan, run, with_losses};
use crate::bench::plan::Operation;
use crate::error::LabError;
use crate::experiment::Setting;
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};

const FILES: u64 = 50;
const THREADS: [usize; 11] = [1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50];
const REPETITIONS: u64 = 3;

/// A figure: what is done with files of which size.
struct Figure {
    name: &'static str,
    operation: Operation,
    size: u64,
    what: &'static str,
}

const FIGURES: [Figure; 4] = [
    Figure {
        name: "4.1",
        operation: Operation::Upload,
        size: 100 * KB,
        what: "uploading 50 files of 100 KB",
    },
    Figure {
        name: "4.2",
        operation: Operation::Upload,
        size: MB,
        what: "uploading 50 files of 1 MB",
    },
    Figure {
        name: "4.3",
        operation: Operation::Download,
        size: 100 * KB,
        what: "downloading 50 files of 100 KB",
    },
    Figure {
        name: "4.4",
        operation: Operation::Download,
        size: MB,
        what: "downloading 50 files of 1 MB",
    },
];

/// A total that is within so much of the least one falls no further.
const LEAST_WITHIN: f64 = 1.1;

/// One benchmark.
struct Row {
    figure: &'static str,
    target: Kind,
    threads: usize,
    repetition: u64,
    total_millis: f64,
    mean_millis: f64,
    lost: u64,
}

/// Measures all four figures, and writes them.
///
/// # Errors
/// [`LabError`].
pub fn measure(
    setting: &Setting,
    output: &Output,
    say: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let figures = setting.wanted(FIGURES, |figure| format!("figure {}", figure.name))?;
    let mut rows = Vec::new();
    for target in Kind::ALL {
        for threads in THREADS {
            let opened = target.open(setting)?;
            for repetition in 0..REPETITIONS {
                let round = Round { target, opened: &opened, threads, repetition };
                round.play(setting, &figures, &mut rows)?;
            }
        }
        let total: f64 =
            rows.iter().filter(|row| row.target == target).map(|row| row.total_millis).sum();
        say(&format!(
            "{}: {} benchmarks in {:.1} s",
            target.name(),
            rows.iter().filter(|row| row.target == target).count(),
            total / 1e3
        ));
    }
    output.write_csv("benchcloud-threads", &csv(&rows))?;
    output.write_page("benchcloud-threads", &end(page(&rows), setting))
}

/// All figures with one number of threads.
struct Round<'a> {
    target: Kind,
    opened: &'a Opened,
    threads: usize,
    repetition: u64,
}

impl Round<'_> {
    fn play(
        &self,
        setting: &Setting,
        figures: &[Figure],
        rows: &mut Vec<Row>,
    ) -> Result<(), LabError> {
        let Self { target, opened, threads, repetition } = *self;
        for figure in figures {
            let is_download = figure.operation == Operation::Download;
            if is_download && !target.is_read_elsewhere() {
                continue;
            }
            let directory = format!("{}-{repetition}", figure.name);
            let seed = setting.seed ^ (figure.size + repetition);
            let mut plan = plan(Operation::Upload, FILES, threads, &directory, seed);
            plan.files.size = figure.size;
            let mut outcome = run(&plan, opened.driver.as_ref(), "lab")?;
            if is_download {
                // Those that were just uploaded.
                (plan.operation, plan.times) = (Operation::Download, 1);
                outcome = run(&plan, opened.driver.as_ref(), "lab")?;
            }
            rows.push(Row {
                figure: figure.name,
                target,
                threads,
                repetition,
                total_millis: outcome.length().as_secs_f64() * 1e3,
                mean_millis: mean_millis(&outcome),
                lost: lost(&outcome),
            });
        }
        Ok(())
    }
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from("figure,target,threads,repetition,total_ms,mean_ms,lost\n");
    for row in rows {
        // Writing to a String cannot fail.
        let _ok = writeln!(
            text,
            "{},{},{},{},{:.3},{:.3},{}",
            row.figure,
            row.target.name(),
            row.threads,
            row.repetition,
            row.total_millis,
            row.mean_millis,
            row.lost
        );
    }
    text
}

/// Returns the middle of the repetitions: of all files together, and of one.
fn medians(rows: &[Row], figure: &str, target: Kind, threads: usize) -> Option<(f64, f64)> {
    let repetitions = rows
        .iter()
        .filter(|row| row.figure == figure && row.target == target && row.threads == threads);
    let (totals, means): (Vec<f64>, Vec<f64>) =
        repetitions.map(|row| (row.total_millis, row.mean_millis)).unzip();
    (!totals.is_empty()).then(|| (median(totals), median(means)))
}

fn page(rows: &[Row]) -> Page {
    let page = Page::new("More threads: BenchCloud's figures 4.1 to 4.4").text(
        "BenchCloud sends 50 files to Dropbox and fetches them, with 1 to 50 threads, and draws the time of all together and of one. \
         Here they go to a folder of this computer; to a store in a folder, where each is on the disk when its upload ends; to the same store as if it were 100 ms away \
         (each call waits so long before it begins, which is emulated); and into a workspace, whose upload ends when the file is in the folder of another device. Medians of three runs.",
    );
    let page = with_losses(page, rows.iter().map(|row| row.lost).sum());
    let page = page.heading("What BenchCloud saw, looked for here").table(
        &[
            "figure, target",
            "1 thread, ms",
            "5 threads, ms",
            "falls no further from",
            "one file, 50 threads over 1",
        ],
        verdicts(rows),
    );
    FIGURES.iter().fold(page, |page, figure| {
        let page = page.heading(format!("Figure {}: {}", figure.name, figure.what));
        let page = page.drawing(
            format!("figure-{}-total", figure.name),
            drawing(rows, figure, "all 50 files", |(total, _)| total),
        );
        page.drawing(
            format!("figure-{}-mean", figure.name),
            drawing(rows, figure, "one file, mean", |(_, mean)| mean),
        )
    })
}

fn verdicts(rows: &[Row]) -> Vec<Vec<String>> {
    let mut table = Vec::new();
    for figure in &FIGURES {
        for target in Kind::ALL {
            let all: Vec<(usize, (f64, f64))> = THREADS
                .into_iter()
                .filter_map(|threads| Some((threads, medians(rows, figure.name, target, threads)?)))
                .collect();
            let [(_, one), (_, five), .., (_, most)] = all[..] else { continue };
            let least = all.iter().map(|(_, (total, _))| *total).fold(f64::MAX, f64::min);
            let enough = all.iter().find(|(_, (total, _))| *total <= least * LEAST_WITHIN);
            table.push(vec![
                format!("{}, {}", figure.name, target.name()),
                format!("{:.1}", one.0),
                format!("{:.1}", five.0),
                enough.map_or_else(String::new, |(threads, _)| format!("{threads}")),
                format!("{:.1}", most.1 / one.1.max(1e-9)),
            ]);
        }
    }
    table
}

fn drawing(rows: &[Row], figure: &Figure, of: &str, read: fn((f64, f64)) -> f64) -> String {
    let series = |target: Kind| {
        let point = |threads: usize| {
            Some((threads as f64, read(medians(rows, figure.name, target, threads)?)))
        };
        let points: Vec<_> = THREADS.into_iter().filter_map(point).collect();
        (!points.is_empty()).then(|| Series::ours(target.name(), points))
    };
    let plot = Plot {
        title: format!("Figure {}: {}, {of}", figure.name, figure.what),
        across: "threads".to_owned(),
        up: "ms".to_owned(),
        series: Kind::ALL.into_iter().filter_map(series).collect(),
    };
    plot.lines_over_magnitudes()
}
