//! Figures 4.5 and 4.6: ten files of each size by one thread.

use std::fmt::Write;

use super::place::Kind;
use super::{KB, MB, end, lost, mean_millis, plan, run, size_name, with_losses};
use crate::bench::plan::Operation;
use crate::error::LabError;
use crate::experiment::Setting;
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};

const FILES: u64 = 10;
const SIZES: [u64; 8] = [KB, 10 * KB, 100 * KB, MB, 5 * MB, 10 * MB, 15 * MB, 20 * MB];

/// One benchmark.
struct Row {
    operation: Operation,
    target: Kind,
    size: u64,
    mean_millis: f64,
    lost: u64,
}

impl Row {
    fn rate(&self) -> f64 {
        self.size as f64 / 1e3 / self.mean_millis.max(1e-9)
    }
}

/// Measures both figures, and writes them.
///
/// # Errors
/// [`LabError`].
pub fn measure(
    setting: &Setting,
    output: &Output,
    say: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let sizes = setting.wanted(SIZES, |size| size_name(*size))?;
    let mut rows = Vec::new();
    for target in Kind::ALL {
        for &size in &sizes {
            let opened = target.open(setting)?;
            let operations = [(Operation::Upload, FILES), (Operation::Download, 1)];
            for (operation, times) in operations {
                if operation == Operation::Download && !target.is_read_elsewhere() {
                    continue;
                }
                let mut plan = plan(operation, times, 1, "files", setting.seed ^ size);
                plan.files.size = size;
                let outcome = run(&plan, opened.driver.as_ref(), "lab")?;
                rows.push(Row {
                    operation,
                    target,
                    size,
                    mean_millis: mean_millis(&outcome),
                    lost: lost(&outcome),
                });
            }
        }
        say(&format!("{}: ten files of each of {} sizes", target.name(), sizes.len()));
    }
    output.write_csv("benchcloud-sizes", &csv(&rows))?;
    output.write_page("benchcloud-sizes", &end(page(&rows), setting))
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from("operation,target,bytes,mean_ms,mb_per_s,lost\n");
    for row in rows {
        // Writing to a String cannot fail.
        let _ok = writeln!(
            text,
            "{},{},{},{:.3},{:.2},{}",
            row.operation.name(),
            row.target.name(),
            row.size,
            row.mean_millis,
            row.rate(),
            row.lost
        );
    }
    text
}

fn page(rows: &[Row]) -> Page {
    let page = Page::new("Sizes: BenchCloud's figures 4.5 and 4.6").text(
        "BenchCloud sends ten files of each size to Dropbox with one thread, and sees no size that takes much more or much less than others. \
         The targets are those of its other figures: a folder, a store whose files are on the disk when they are acknowledged, the same as if it were 100 ms away, and a workspace.",
    );
    let page = with_losses(page, rows.iter().map(|row| row.lost).sum());
    let figures = [("4.5", Operation::Upload), ("4.6", Operation::Download)];
    figures.into_iter().fold(page, |page, (figure, operation)| {
        let page = page.heading(format!("Figure {figure}: {} by size", operation.name()));
        let page = page.drawing(format!("figure-{figure}"), drawing(rows, figure, operation));
        let targets: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|target| {
                rows.iter().any(|row| row.target == *target && row.operation == operation)
            })
            .collect();
        let headings: Vec<String> = std::iter::once("ms a file (MB/s)".to_owned())
            .chain(targets.iter().map(|target| target.name().to_owned()))
            .collect();
        let cell = |target: Kind, size: u64| {
            let is_it =
                |row: &&Row| row.operation == operation && row.target == target && row.size == size;
            let row = rows.iter().find(is_it);
            row.map_or_else(String::new, |row| {
                format!("{:.2} ({:.1})", row.mean_millis, row.rate())
            })
        };
        let line = |size: u64| {
            std::iter::once(size_name(size))
                .chain(targets.iter().map(|target| cell(*target, size)))
                .collect()
        };
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        page.table(&headings, SIZES.into_iter().map(line).collect())
    })
}

fn drawing(rows: &[Row], figure: &str, operation: Operation) -> String {
    let series = |target: Kind| {
        let points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row.operation == operation && row.target == target)
            .map(|row| (row.size as f64 / KB as f64, row.mean_millis))
            .collect();
        (!points.is_empty()).then(|| Series::ours(target.name(), points))
    };
    let plot = Plot {
        title: format!("Figure {figure}: time to {} a file", operation.name()),
        across: "KB".to_owned(),
        up: "ms".to_owned(),
        series: Kind::ALL.into_iter().filter_map(series).collect(),
    };
    plot.lines_over_magnitudes()
}
