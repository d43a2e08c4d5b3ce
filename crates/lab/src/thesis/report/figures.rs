//! Figures 6.6 to 6.15, and 6.20 to 6.23, of every dataset.

use super::super::configuration::{Configuration, Variant};
use super::super::outcome::{MISSING, Method, Row, mean};
use super::{names, of, variant};
use crate::plot::{Plot, Series};

/// What is drawn over the versions: how rows are put together, and what is drawn of each group.
struct Figure<'a> {
    name: &'a str,
    title: &'a str,
    up: &'a str,
    /// Of a configuration.
    label: fn(Configuration) -> String,
    value: fn(&Row) -> Option<f64>,
    /// Whether values are added up from version to version.
    is_sum: bool,
    /// Whether both variants are drawn; else the first one that was measured.
    has_variants: bool,
}

const FIGURES: [Figure<'_>; 10] = [
    Figure {
        name: "size-chunking",
        title: "Figure 6.6: stored so far, by how files are cut",
        up: "MB",
        label: chunking,
        value: |row| Some(row.stored_bytes_so_far as f64 / 1e6),
        is_sum: false,
        has_variants: true,
    },
    Figure {
        name: "processor-chunking",
        title: "Figure 6.7: processor, by how files are cut",
        up: "percent of one",
        label: chunking,
        value: |row| Some(row.processor_percent()),
        is_sum: false,
        has_variants: false,
    },
    Figure {
        name: "size-fingerprint",
        title: "Figure 6.8: stored so far, by fingerprint",
        up: "MB",
        label: fingerprint,
        value: |row| Some(row.stored_bytes_so_far as f64 / 1e6),
        is_sum: false,
        has_variants: true,
    },
    Figure {
        name: "chunking-fingerprint",
        title: "Figure 6.9: chunking, by fingerprint",
        up: "seconds",
        label: fingerprint,
        value: Row::chunking_seconds,
        is_sum: false,
        has_variants: false,
    },
    Figure {
        name: "size-compression",
        title: "Figure 6.10: stored so far, by compression",
        up: "MB",
        label: |configuration| configuration.compression.name().to_owned(),
        value: |row| Some(row.stored_bytes_so_far as f64 / 1e6),
        is_sum: false,
        has_variants: false,
    },
    Figure {
        name: "duration-compression",
        title: "Figure 6.11: all that was done so far, by compression",
        up: "seconds",
        label: |configuration| configuration.compression.name().to_owned(),
        value: |row| Some(row.seconds()),
        is_sum: true,
        has_variants: false,
    },
    Figure {
        name: "ratio-size",
        title: "Figure 6.12: deduplication ratio, by chunk size",
        up: "to 1",
        label: chunk_size,
        value: |row| Some(row.ratio()),
        is_sum: false,
        has_variants: false,
    },
    Figure {
        name: "chunking-size",
        title: "Figure 6.13: chunking, by chunk size",
        up: "seconds",
        label: chunk_size,
        value: Row::chunking_seconds,
        is_sum: false,
        has_variants: false,
    },
    Figure {
        name: "processor-pause",
        title: "Figure 6.14: processor, by pause",
        up: "percent of one",
        label: |configuration| format!("{} ms", configuration.pause_ms),
        value: |row| Some(row.processor_percent()),
        is_sum: false,
        has_variants: false,
    },
    Figure {
        name: "duration-pause",
        title: "Figure 6.15: all that was done so far, by pause",
        up: "seconds",
        label: |configuration| format!("{} ms", configuration.pause_ms),
        value: |row| Some(row.seconds()),
        is_sum: true,
        has_variants: false,
    },
];

fn chunk_size(configuration: Configuration) -> String {
    format!("{} KiB", configuration.chunking.average_kib)
}

fn chunking(configuration: Configuration) -> String {
    if configuration.chunking.fingerprint.is_some() { "TTTD" } else { "fixed" }.to_owned()
}

fn fingerprint(configuration: Configuration) -> String {
    configuration.chunking.fingerprint.map_or("none (fixed)", |one| one.name()).to_owned()
}

/// Draws all figures of all datasets: names, and what is in the files.
pub(super) fn draw(rows: &[Row]) -> Vec<(String, String)> {
    let first_variant = rows.iter().find_map(variant);
    let mut drawn = Vec::new();
    for dataset in names(rows.iter().map(|row| &row.dataset)) {
        let file = |name: &str| format!("syncany-{}-{name}", dataset.replace(' ', "-"));
        for figure in &FIGURES {
            drawn.push((file(figure.name), figure.draw(rows, &dataset, first_variant)));
        }
        drawn.push((file("reconstruction"), reconstruction(rows, &dataset, first_variant)));
    }
    drawn
}

impl Figure<'_> {
    /// Returns what a row is drawn with.
    fn group(&self, row: &Row, first_variant: Option<Variant>) -> Option<String> {
        match row.method {
            Method::Ours => Some("ours".to_owned()),
            Method::Thesis(configuration, variant) => {
                let is_first = Some(variant) == first_variant;
                let label = (self.label)(configuration);
                match (is_first, self.has_variants && configuration.chunking.fingerprint.is_some())
                {
                    (true, _) => Some(label),
                    (false, true) => Some(format!("{label}, {variant}")),
                    (false, false) => None,
                }
            }
        }
    }

    fn draw(&self, rows: &[Row], dataset: &str, first_variant: Option<Variant>) -> String {
        let grouped: Vec<(String, &Row)> = of(rows, dataset, |_| true)
            .filter_map(|row| Some((self.group(row, first_variant)?, row)))
            .filter(|(_, row)| (self.value)(row).is_some())
            .collect();
        let versions = grouped.iter().map(|(_, row)| row.version).max().unwrap_or(0);
        let series = names(grouped.iter().map(|(group, _)| group)).into_iter().map(|group| {
            let mut sum = 0.0;
            let points = (1..=versions).map(|version| {
                let rows =
                    grouped.iter().filter(|(one, row)| *one == group && row.version == version);
                let value = mean(rows.map(|(_, row)| *row), |row| (self.value)(row).unwrap_or(0.0));
                sum += value;
                (version as f64, if self.is_sum { sum } else { value })
            });
            Series::ours(group.clone(), points.collect())
        });
        let series = series.collect();
        let title = format!("{} ({dataset})", self.title);
        Plot { title, across: "version".to_owned(), up: self.up.to_owned(), series }.lines()
    }
}

/// Figures 6.20 to 6.23: what has to be fetched, of 250 KB multichunks that are not compressed, and of ours.
fn reconstruction(rows: &[Row], dataset: &str, first_variant: Option<Variant>) -> String {
    let mut series = Vec::new();
    for (index, missing) in MISSING.iter().enumerate() {
        let missing = missing.map_or("all missing".to_owned(), |count| format!("{count} missing"));
        for (what, is_ours) in [("250 KiB", false), ("ours", true)] {
            let is_wanted = move |row: &Row| match row.method {
                Method::Ours => is_ours,
                Method::Thesis(one, variant) => {
                    !is_ours
                        && Some(variant) == first_variant
                        && one.multichunk_kib == 250
                        && one.compression.name() == "None"
                }
            };
            let wanted: Vec<_> = of(rows, dataset, is_wanted).collect();
            let versions = wanted.iter().map(|row| row.version).max().unwrap_or(0);
            let points: Vec<_> = (1..=versions)
                .filter_map(|version| {
                    let of_version = wanted.iter().filter(|row| row.version == version);
                    let known: Vec<f64> = of_version
                        .filter_map(|row| Some(row.reconstructions[index]?.containers as f64 / 1e6))
                        .collect();
                    let mean = known.iter().sum::<f64>() / known.len() as f64;
                    (!known.is_empty()).then_some((version as f64, mean))
                })
                .collect();
            if !points.is_empty() {
                series.push(Series::ours(format!("{what}, {missing}"), points));
            }
        }
    }
    let title = format!("Figures 6.20 to 6.23: what is fetched ({dataset})");
    Plot { title, across: "version".to_owned(), up: "MB before compression".to_owned(), series }
        .lines()
}
