//! Figures 6.16 to 6.19, 6.24 and 6.25, and table 6.9.

use super::{Protocol, Stored, Times, Unit, Way};
use crate::page::Page;
use crate::plot::{Plot, Series};

/// What the thesis measured uploading, in KB/s, by chunk size (section 6.5.3.1) and by storage (section 6.5.3.2).
const UPLOAD: &str = include_str!("../../../../../experiments/syncany-upload/expected.csv");

/// Table 6.9 in seconds, and bandwidths of figure 6.24 in KB/s.
const DOWNLOAD: &str = include_str!("../../../../../experiments/syncany-download/expected.csv");

const HOW: &str = "Files of 1 to 400 KiB of bytes by chance were sent and fetched over a line of 75 KB/s up, 1.5 MB/s down and 35 ms \
    there and back, in the words of each protocol; what a version takes is calculated from that, as there. In parentheses: the thesis.";

/// Returns what was printed for some words at the beginning of a line.
fn published(table: &str, words: &str, column: usize) -> Option<f64> {
    let line = table.lines().find_map(|line| line.strip_prefix(words)?.strip_prefix(','))?;
    line.split(',').nth(column)?.parse().ok()
}

fn in_parentheses(value: Option<f64>) -> String {
    value.map(|value| format!(" ({value})")).unwrap_or_default()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

/// Thousands of bytes a second of files of a size, by one protocol.
fn bandwidth(times: &Times, protocol: usize, way: Way, file: f64) -> f64 {
    if file > 0.0 { file / times.of(protocol, way, file) / 1e3 } else { f64::NAN }
}

/// The mean over all protocols.
fn mean_bandwidth(times: &Times, way: Way, file: f64) -> f64 {
    mean((0..Protocol::ALL.len()).map(|protocol| bandwidth(times, protocol, way, file)))
}

pub(super) fn upload(all: &[Stored], times: &Times) -> Page {
    let mut page = Page::new("Sending chunks and multichunks").text(
        "Experiment 2 of the Syncany thesis (Heckel 2011, section 6.5): many small files wait for answers, few large ones for the line.",
    );
    page = page.text(HOW).heading("KB/s by size (section 6.5.3.1), mean over datasets and stores");
    let of_unit = |unit: usize| {
        let files =
            all.iter().flat_map(|stored| stored.sent(unit)).filter(|(_, bytes)| *bytes > 0.0);
        mean(files.map(|(file, _)| mean_bandwidth(times, Way::Up, file)))
    };
    let row = |(index, unit): (usize, Unit)| {
        let name = unit.name();
        let value = format!("{:.1}{}", of_unit(index), in_parentheses(published(UPLOAD, &name, 0)));
        vec![name, value]
    };
    page = page.table(&["size", "KB/s"], Unit::ALL.into_iter().enumerate().map(row).collect());
    page = page.heading("KB/s by storage (figure 6.19)");
    let (rows, drawing) = by_storage(all, times);
    page = page.table(&["dataset", "FTP", "IMAP", "Amazon S3"], rows);
    page = page.drawing("syncany-upload-storage", drawing);
    page = page.heading("What ours sends").text(
        "Bytes of all versions, and the packs in which they go, by the line and the stores above.",
    );
    page = page.table(
        &["dataset", "what", "MB", "files", "minutes by FTP", "minutes by S3"],
        ours(all, times),
    );
    page = page.heading("Figures");
    for stored in all {
        let name = &stored.dataset;
        for (figure, svg) in [
            ("bandwidth", bandwidth_over_versions(stored, times)),
            ("duration", duration_by_size(stored, times)),
            ("duration-storage", duration_by_storage(stored, times)),
        ] {
            page = page.drawing(format!("syncany-upload-{}-{figure}", name.replace(' ', "-")), svg);
        }
    }
    page
}

fn by_storage(all: &[Stored], times: &Times) -> (Vec<Vec<String>>, String) {
    let value = |stored: &Stored, protocol: usize| {
        let files = (0..Unit::ALL.len()).flat_map(|unit| stored.sent(unit));
        mean(
            files
                .filter(|(_, bytes)| *bytes > 0.0)
                .map(|(file, _)| bandwidth(times, protocol, Way::Up, file)),
        )
    };
    let protocols = || 0..Protocol::ALL.len();
    let cells = |name: String, value: &dyn Fn(usize) -> String| {
        std::iter::once(name).chain(protocols().map(value)).collect::<Vec<_>>()
    };
    let mut rows: Vec<_> = all
        .iter()
        .map(|stored| {
            cells(stored.dataset.clone(), &|protocol| format!("{:.1}", value(stored, protocol)))
        })
        .collect();
    rows.push(cells("mean".to_owned(), &|protocol| {
        let printed = published(UPLOAD, Protocol::ALL[protocol].name(), 0);
        let value = mean(all.iter().map(|stored| value(stored, protocol)));
        format!("{value:.1}{}", in_parentheses(printed))
    }));
    let groups: Vec<_> = all.iter().map(|stored| stored.dataset.clone()).collect();
    let series = protocols().map(|protocol| {
        let points = all.iter().enumerate();
        let points = points.map(|(group, stored)| (group as f64, value(stored, protocol)));
        Series::ours(Protocol::ALL[protocol].name(), points.collect())
    });
    let title = "Figure 6.19: sending, by storage".to_owned();
    let plot = Plot {
        title,
        across: "dataset".to_owned(),
        up: "KB/s".to_owned(),
        series: series.collect(),
    };
    (rows, plot.bars(&groups))
}

/// The thesis's choice and ours beside each other.
fn ours(all: &[Stored], times: &Times) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for stored in all {
        let chosen = stored.units.last().expect("there are five");
        for (what, versions) in [("chosen by the thesis", chosen), ("ours", &stored.ours)] {
            let bytes: u64 = versions.iter().map(|row| row.multichunks.bytes).sum();
            let files: u64 = versions.iter().map(|row| row.multichunks.count).sum();
            let minutes = |protocol: usize| {
                let each = versions.iter().filter(|row| row.multichunks.count > 0).map(|row| {
                    let file = row.multichunks.bytes as f64 / row.multichunks.count as f64;
                    times.of_version(protocol, Way::Up, (file, row.multichunks.bytes as f64))
                });
                format!("{:.1}", each.sum::<f64>() / 60.0)
            };
            rows.push(vec![
                stored.dataset.clone(),
                what.to_owned(),
                format!("{:.1}", bytes as f64 / 1e6),
                files.to_string(),
                minutes(0),
                minutes(2),
            ]);
        }
    }
    rows
}

/// Draws a line for each size over the versions.
fn over_versions(
    title: String,
    up: &str,
    series: impl Iterator<Item = (String, Vec<f64>)>,
) -> String {
    let line = |(name, values): (String, Vec<f64>)| {
        let points = values.into_iter().enumerate().filter(|(_, value)| value.is_finite());
        Series::ours(name, points.map(|(version, value)| (version as f64 + 1.0, value)).collect())
    };
    Plot {
        title,
        across: "version".to_owned(),
        up: up.to_owned(),
        series: series.map(line).collect(),
    }
    .lines()
}

fn sums(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |value: f64| {
        sum += value;
        sum
    };
    values.map(add).collect()
}

fn bandwidth_over_versions(stored: &Stored, times: &Times) -> String {
    let series = Unit::ALL.into_iter().enumerate().map(|(index, unit)| {
        let of_version = |(file, _): (f64, f64)| mean_bandwidth(times, Way::Up, file);
        let values = stored.sent(index).into_iter();
        let values = values.map(|sent| if sent.1 > 0.0 { of_version(sent) } else { f64::NAN });
        (unit.name(), values.collect())
    });
    over_versions(format!("Figure 6.16: sending, by size ({})", stored.dataset), "KB/s", series)
}

fn duration_by_size(stored: &Stored, times: &Times) -> String {
    let series = Unit::ALL.into_iter().enumerate().map(|(index, unit)| {
        let of_version = |sent: (f64, f64)| {
            mean((0..Protocol::ALL.len()).map(|protocol| times.of_version(protocol, Way::Up, sent)))
                / 60.0
        };
        (unit.name(), sums(stored.sent(index).into_iter().map(of_version)))
    });
    over_versions(
        format!("Figure 6.17: sent so far, by size ({})", stored.dataset),
        "minutes",
        series,
    )
}

fn duration_by_storage(stored: &Stored, times: &Times) -> String {
    let units: Vec<_> = (0..Unit::ALL.len()).map(|unit| stored.sent(unit)).collect();
    let series = Protocol::ALL.into_iter().enumerate().map(|(protocol, known)| {
        let versions = (0..units[0].len()).map(|version| {
            mean(units.iter().map(|unit| times.of_version(protocol, Way::Up, unit[version]))) / 60.0
        });
        (known.name().to_owned(), sums(versions))
    });
    over_versions(
        format!("Figure 6.18: sent so far, by storage ({})", stored.dataset),
        "minutes",
        series,
    )
}

pub(super) fn download(all: &[Stored], times: &Times) -> Page {
    let page = Page::new("Fetching chunks and multichunks")
        .text("The second part of experiment 3 (Heckel 2011, section 6.6.3.3): whoever has nothing fetches a version, chunk by chunk or by the multichunks in which its chunks are.")
        .text(HOW)
        .heading("Table 6.9: seconds for a version, mean over versions");
    let mut headings = vec!["dataset".to_owned(), "storage".to_owned()];
    headings.extend(Unit::ALL.map(Unit::name));
    let headings: Vec<_> = headings.iter().map(String::as_str).collect();
    let mut rows = Vec::new();
    for stored in all {
        for (protocol, known) in Protocol::ALL.into_iter().enumerate() {
            let mut row = vec![stored.dataset.clone(), known.name().to_owned()];
            row.extend((0..Unit::ALL.len()).map(|unit| {
                let versions = stored.fetched(unit).into_iter();
                let seconds = mean(versions.map(|one| times.of_version(protocol, Way::Down, one)));
                let words = format!("{},{}", stored.dataset, known.name());
                format!("{seconds:.0}{}", in_parentheses(published(DOWNLOAD, &words, unit)))
            }));
            rows.push(row);
        }
    }
    let page =
        page.table(&headings, rows).heading("Figure 6.24: fetching, by size and storage, in KB/s");
    let (rows, drawing) = bandwidths(all, times);
    let page = page.table(&headings[1..], rows).drawing("syncany-download-bandwidth", drawing);
    all.iter().fold(page.heading("Figures"), |page, stored| {
        let series = Unit::ALL.into_iter().enumerate().map(|(index, unit)| {
            let of_version = |one| times.of_version(0, Way::Down, one) / 60.0;
            (unit.name(), stored.fetched(index).into_iter().map(of_version).collect())
        });
        let title = format!("Figure 6.25: fetching a version by FTP, by size ({})", stored.dataset);
        let name = format!("syncany-download-{}", stored.dataset.replace(' ', "-"));
        page.drawing(name, over_versions(title, "minutes", series))
    })
}

fn bandwidths(all: &[Stored], times: &Times) -> (Vec<Vec<String>>, String) {
    let value = |unit: usize, protocol: usize| {
        let files = all.iter().flat_map(|stored| stored.fetched(unit));
        mean(files.map(|(file, _)| bandwidth(times, protocol, Way::Down, file)))
    };
    let units = || 0..Unit::ALL.len();
    let row = |(protocol, known): (usize, Protocol)| {
        let cells = units().map(|unit| {
            let printed = published(DOWNLOAD, &format!("KB/s,{}", known.name()), unit);
            format!("{:.0}{}", value(unit, protocol), in_parentheses(printed))
        });
        std::iter::once(known.name().to_owned()).chain(cells).collect()
    };
    let rows = Protocol::ALL.into_iter().enumerate().map(row).collect();
    let series = Protocol::ALL.into_iter().enumerate().map(|(protocol, known)| {
        Series::ours(
            known.name(),
            units().map(|unit| (unit as f64, value(unit, protocol))).collect(),
        )
    });
    let title = "Figure 6.24: fetching, by size and storage".to_owned();
    let plot =
        Plot { title, across: "size".to_owned(), up: "KB/s".to_owned(), series: series.collect() };
    (rows, plot.bars(&Unit::ALL.map(Unit::name)))
}
