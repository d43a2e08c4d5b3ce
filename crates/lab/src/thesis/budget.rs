//! A pause that keeps a share of the processor: what the thesis asks for in place of its fixed write pause (section 6.4.4), because a fixed one
//! rests too little over data that are new and too long over those that are known.

use std::fmt::Write;
use std::time::Duration;

use super::configuration::{Chunking, Compression, Configuration, Fingerprint, Variant};
use super::outcome::Row;
use super::pass::Pass;
use super::report::names;
use super::{Plan, pass};
use crate::error::LabError;
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};
use crate::stopwatch::{Elapsed, Stopwatch};

/// Shorter rests than that cost more than they are worth.
const REST_MIN: Duration = Duration::from_millis(5);

/// The shares that are asked for, in percent.
const ASKED: [u32; 3] = [10, 25, 50];

/// By how many points of a hundred a share may be missed.
const MISSED_MAX: f64 = 3.0;

/// The configuration that is slowed down: the thesis's choice for most users.
const CONFIGURATION: Configuration = Configuration {
    multichunk_kib: 250,
    pause_ms: 0,
    chunking: Chunking { fingerprint: Some(Fingerprint::Adler32), average_kib: 4 },
    compression: Compression::Gzip,
};

/// Keeps a thread at a share of a processor. It is asked often, wherever there is work.
pub(super) struct Budget {
    share: f64,
    watch: Stopwatch,
}

impl Budget {
    /// Begins; `percent` is from 1 to 100.
    pub(super) fn of_percent(percent: u32) -> Self {
        Self { share: f64::from(percent) / 100.0, watch: Stopwatch::start() }
    }

    /// Rests for as long as this thread is ahead of its share.
    pub(super) fn rest(&self) {
        let Elapsed { wall, processor } = self.watch.read();
        let rest = processor.div_f64(self.share).saturating_sub(wall);
        if rest >= REST_MIN {
            std::thread::sleep(rest);
        }
    }
}

/// What came of one budget over one dataset.
struct Kept {
    dataset: String,
    asked: u32,
    rows: Vec<Row>,
}

impl Kept {
    /// Over all versions together.
    fn percent(&self) -> f64 {
        let sum = |read: fn(&Row) -> Duration| self.rows.iter().map(read).sum::<Duration>();
        let wall = sum(|row| row.total.wall).as_secs_f64();
        sum(|row| row.total.processor).as_secs_f64() / wall.max(1e-9) * 100.0
    }

    fn is_kept(&self) -> bool {
        (self.percent() - f64::from(self.asked)).abs() <= MISSED_MAX
    }
}

/// Asks for some shares over each dataset, and writes what was kept.
///
/// # Errors
/// [`LabError`].
pub fn run(plan: &Plan, output: &Output, say: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let mut all = Vec::new();
    for dataset in &plan.open_datasets()? {
        for asked in ASKED {
            let mut pass = Pass::new(CONFIGURATION, Variant::Correct)?;
            pass.budget_percent = Some(asked);
            let rows = pass::all_versions(&mut pass, dataset)?;
            let kept = Kept { dataset: dataset.name.clone(), asked, rows };
            say(&format!(
                "dataset {}: asked for {asked} %, kept {:.1} %",
                kept.dataset,
                kept.percent()
            ));
            all.push(kept);
        }
    }
    output.write_csv("syncany-budget", &csv(&all))?;
    output.write_page("syncany-budget", &page(&all))
}

fn page(all: &[Kept]) -> Page {
    let row = |kept: &Kept| {
        let seconds: f64 = kept.rows.iter().map(Row::seconds).sum();
        let verdict = if kept.is_kept() { "yes" } else { "**no**" };
        vec![
            kept.dataset.clone(),
            format!("{} %", kept.asked),
            format!("{:.1} %", kept.percent()),
            verdict.to_owned(),
            format!("{seconds:.1}"),
        ]
    };
    let headings = ["dataset", "asked for", "kept", "within 3 points", "seconds"];
    let page = Page::new("A share of the processor that is kept")
        .text("What the Syncany thesis asks for in place of its fixed write pause (Heckel 2011, section 6.4.4): over every dataset the chunker keeps the share that it was given.")
        .table(&headings, all.iter().map(row).collect());
    let datasets = names(all.iter().map(|kept| &kept.dataset));
    datasets.iter().fold(page, |page, dataset| {
        page.drawing(format!("syncany-budget-{}", dataset.replace(' ', "-")), drawing(dataset, all))
    })
}

fn csv(all: &[Kept]) -> String {
    let mut text = String::from("dataset,asked_percent,version,kept_percent,processor_s,wall_s\n");
    for kept in all {
        for row in &kept.rows {
            let _ok = writeln!(
                text,
                "{},{},{},{:.2},{:.4},{:.4}",
                kept.dataset,
                kept.asked,
                row.version,
                row.processor_percent(),
                row.total.processor.as_secs_f64(),
                row.total.wall.as_secs_f64()
            );
        }
    }
    text
}

fn drawing(dataset: &str, all: &[Kept]) -> String {
    let of_it = all.iter().filter(|kept| kept.dataset == dataset);
    let points = |kept: &Kept| {
        let point = |row: &Row| (row.version as f64, row.processor_percent());
        kept.rows.iter().map(point).collect()
    };
    let series = of_it.map(|kept| Series::ours(format!("{} %", kept.asked), points(kept)));
    let plot = Plot {
        title: format!("Processor over the versions of {dataset}, by what was asked for"),
        across: "version".to_owned(),
        up: "percent of one".to_owned(),
        series: series.collect(),
    };
    plot.lines()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_kept_whatever_there_is_to_do() {
        let budget = Budget::of_percent(25);
        let watch = Stopwatch::start();
        let mut sum = 0_u64;
        for number in 0..60_u64 {
            // Work of very different lengths.
            for value in 0..(number % 7) * 40_000 {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(value));
            }
            budget.rest();
        }
        let Elapsed { wall, processor } = watch.read();
        let percent = processor.as_secs_f64() / wall.as_secs_f64() * 100.0;
        // A machine that is busy with others gives less; more is never taken, but for the last rest that was too short.
        assert!(percent <= 28.0, "{percent} of {wall:?}");
    }
}
