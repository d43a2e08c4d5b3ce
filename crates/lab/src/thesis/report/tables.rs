//! Tables 6.2 to 6.5 and 6.8, and Appendices D to F, which have Tables 6.3 to 6.5 whole.

use super::super::configuration::{Compression, Configuration};
use super::super::outcome::{MISSING, Method, Row, mean};
use super::{names, of};
use crate::page::Page;

/// Tables 6.3, 6.4 and 6.5 as they are printed.
const EXPECTED: &str = include_str!("../../../../../experiments/syncany-chunking/expected.csv");

/// Table 6.8 as it is printed.
const EXPECTED_RECONSTRUCTION: &str =
    include_str!("../../../../../experiments/syncany-chunking/expected-reconstruction.csv");

/// How many rows of the best and of the worst are shown.
const BEST: usize = 10;
const WORST: usize = 6;

const DATASETS: [&str; 4] = ["A", "B", "C", "D"];

/// Adds all of them.
pub(super) fn all(page: Page, rows: &[Row]) -> Page {
    let starred = |configuration: Configuration| {
        let name = configuration.to_string();
        name.replacen(&format!("-{}/", configuration.pause_ms), "-*/", 1)
    };
    let better = Ranking {
        table: "6.3",
        appendix: "D",
        title: "Table 6.3: temporal deduplication ratio, mean over versions",
        name: &starred,
        value: &Row::ratio,
        best_is_largest: true,
        left_out: None,
    };
    let faster = Ranking {
        table: "6.4",
        appendix: "E",
        title: "Table 6.4: seconds for a version, mean over versions",
        name: &|configuration| configuration.to_string(),
        value: &Row::seconds,
        best_is_largest: false,
        left_out: None,
    };
    let calmer = Ranking {
        table: "6.5",
        appendix: "F",
        title: "Table 6.5: processor used while chunking, in percent of one",
        name: &|configuration| configuration.to_string(),
        value: &Row::processor_percent,
        best_is_largest: false,
        // So small that a run often takes less than a second, which the thesis calls unreliable.
        left_out: Some("A"),
    };
    let rankings = [better, faster, calmer];
    let page = rankings.iter().fold(page, |page, ranking| ranking.table(page, rows));
    reconstruction(sizes(page, rows), rows)
}

struct Ranking<'a> {
    table: &'a str,
    /// Where the thesis has it whole.
    appendix: &'a str,
    title: &'a str,
    name: &'a dyn Fn(Configuration) -> String,
    value: &'a dyn Fn(&Row) -> f64,
    best_is_largest: bool,
    /// The dataset that counts neither for the order nor for the average, where there are others.
    left_out: Option<&'a str>,
}

/// A method, and what it reached in each dataset.
struct Ranked {
    name: String,
    /// What the thesis calls it.
    published_as: Option<String>,
    values: Vec<f64>,
    average: f64,
}

impl Ranking<'_> {
    fn label(&self, row: &Row) -> (String, Option<String>) {
        match row.method {
            Method::Ours => ("**ours**".to_owned(), None),
            Method::Thesis(configuration, variant) => {
                let name = (self.name)(configuration);
                (format!("{name}, {variant}"), Some(name))
            }
        }
    }

    /// Returns the one of these datasets that does not count.
    fn left_out_of(&self, datasets: &[String]) -> Option<&str> {
        let is_among = |one: &&str| datasets.iter().any(|known| known == one);
        self.left_out.filter(is_among).filter(|_| datasets.len() > 1)
    }

    fn ranked(&self, rows: &[Row], datasets: &[String]) -> Vec<Ranked> {
        let left_out = self.left_out_of(datasets);
        let labels: Vec<_> = rows.iter().map(|row| self.label(row)).collect();
        let mut ranked: Vec<Ranked> = Vec::new();
        for name in names(labels.iter().map(|label| &label.0)) {
            let mine = |dataset: &str| {
                let rows = rows.iter().zip(&labels).filter(|(_, label)| label.0 == name);
                let rows = rows.map(|(row, _)| row).filter(|row| row.dataset == dataset);
                mean(rows, self.value)
            };
            let values: Vec<f64> = datasets.iter().map(|dataset| mine(dataset)).collect();
            let counted: Vec<f64> = (datasets.iter().zip(&values))
                .filter(|(dataset, _)| left_out != Some(dataset))
                .map(|(_, value)| *value)
                .collect();
            let average = counted.iter().sum::<f64>() / counted.len() as f64;
            let published_as =
                labels.iter().find(|label| label.0 == name).and_then(|found| found.1.clone());
            ranked.push(Ranked { name, published_as, values, average });
        }
        ranked.sort_by(|one, other| {
            let order = one.average.total_cmp(&other.average);
            if self.best_is_largest { order.reverse() } else { order }
        });
        ranked
    }

    fn table(&self, page: Page, rows: &[Row]) -> Page {
        let datasets = names(rows.iter().map(|row| &row.dataset));
        let ranked = self.ranked(rows, &datasets);
        let mut headings = vec!["configuration", "rank"];
        headings.extend(datasets.iter().map(String::as_str));
        headings.push("average");
        let cells = |(index, one): (usize, &Ranked)| {
            let mut row = vec![one.name.clone(), (index + 1).to_string()];
            row.extend(
                datasets
                    .iter()
                    .zip(&one.values)
                    .map(|(dataset, value)| format!("{value:.2}{}", self.published(one, dataset))),
            );
            row.push(format!("{:.2}", one.average));
            row
        };
        let is_shown = |index: usize| {
            let is_ours = ranked[index].published_as.is_none();
            index < BEST || index + WORST >= ranked.len() || is_ours
        };
        let all = || ranked.iter().enumerate();
        let shown = all().filter(|(index, _)| is_shown(*index)).map(cells).collect();
        let page = page.heading(self.title);
        let page = match self.left_out_of(&datasets) {
            Some(one) => page
                .text(format!("As there, {one} counts neither for the rank nor for the average.")),
            None => page,
        };
        let page = page.table(&headings, shown);
        let count = ranked.len();
        match (0..count).all(is_shown) {
            true => page,
            false => {
                let words = format!("Appendix {}: all {count} of them", self.appendix);
                page.folded(words, &headings, all().map(cells).collect())
            }
        }
    }

    /// Returns what the thesis printed in the same place, in parentheses.
    fn published(&self, one: &Ranked, dataset: &str) -> String {
        let found = one.published_as.as_deref().and_then(|name| {
            let column = DATASETS.iter().position(|known| *known == dataset)?;
            let line = EXPECTED.lines().find(|line| {
                line.strip_prefix(self.table)
                    .and_then(|rest| rest.strip_prefix(','))
                    .and_then(|rest| rest.strip_prefix(name))
                    .is_some_and(|rest| rest.starts_with(','))
            })?;
            line.split(',').nth(2 + column)
        });
        found.map(|value| format!(" ({value})")).unwrap_or_default()
    }
}

/// Table 6.2.
fn sizes(page: Page, rows: &[Row]) -> Page {
    let mut cells = Vec::new();
    for dataset in names(rows.iter().map(|row| &row.dataset)) {
        for size in [4, 8, 16] {
            let is_wanted = move |row: &Row| matches!(row.method, Method::Thesis(one, _) if one.chunking.average_kib == size);
            let wanted: Vec<_> = of(rows, &dataset, is_wanted).collect();
            if wanted.is_empty() {
                continue;
            }
            let largest = wanted.iter().map(|row| row.ratio()).fold(0.0, f64::max);
            let seconds = mean(wanted, |row| row.chunking_seconds().unwrap_or(0.0));
            let (size, largest) = (format!("{size} KiB"), format!("{largest:.2}"));
            cells.push(vec![dataset.clone(), size, largest, format!("{seconds:.3}")]);
        }
    }
    let headings = ["dataset", "chunks", "largest ratio", "seconds of chunking for a version"];
    page.heading("Table 6.2: chunk sizes").table(&headings, cells)
}

/// Table 6.8, over configurations that do not compress, as there; ours fetches records, not packs.
fn reconstruction(page: Page, rows: &[Row]) -> Page {
    let mut cells = Vec::new();
    for dataset in names(rows.iter().map(|row| &row.dataset)) {
        let is_multichunk = |row: &Row, size: usize| {
            matches!(row.method, Method::Thesis(one, _)
                if one.multichunk_kib == size && one.compression == Compression::None)
        };
        for (what, size) in [("125 KiB", 125), ("250 KiB", 250), ("ours", 0)] {
            let is_wanted = move |row: &Row| match size {
                0 => row.method == Method::Ours,
                size => is_multichunk(row, size),
            };
            let wanted: Vec<_> = of(rows, &dataset, is_wanted).collect();
            if wanted.is_empty() {
                continue;
            }
            let percents = (0..MISSING.len()).map(|index| {
                let known = wanted.iter().filter_map(|row| row.reconstructions[index]?.overhead());
                let known: Vec<f64> = known.collect();
                if known.is_empty() {
                    return "-".to_owned();
                }
                let percent = known.iter().sum::<f64>() / known.len() as f64 * 100.0;
                format!("{percent:.1}{}", published_overhead(&dataset, size, index))
            });
            cells.push([dataset.clone(), what.to_owned()].into_iter().chain(percents).collect());
        }
    }
    let headings = ["dataset", "what", "all missing", "5 missing", "10 missing"];
    page.heading("Table 6.8: how much more is fetched than needed, in percent")
        .table(&headings, cells)
}

/// The columns there: all, ten, five; of 125 and of 250 KB.
fn published_overhead(dataset: &str, size: usize, missing: usize) -> String {
    let column = [1, 5, 3][missing] + usize::from(size == 250);
    let line = EXPECTED_RECONSTRUCTION.lines().find(|line| line.split(',').next() == Some(dataset));
    let value = line.filter(|_| size > 0).and_then(|line| line.split(',').nth(column));
    value.map(|value| format!(" ({value})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::configuration::Variant;
    use super::super::super::outcome::Amount;
    use super::*;
    use crate::stopwatch::Elapsed;

    fn row(configuration: Configuration, dataset: &str, seconds: u64, processor: u64) -> Row {
        let elapsed = Elapsed {
            wall: Duration::from_secs(seconds),
            processor: Duration::from_secs(processor),
        };
        Row {
            method: Method::Thesis(configuration, Variant::Correct),
            dataset: dataset.to_owned(),
            version: 1,
            total: elapsed,
            chunking: None,
            files: Amount::default(),
            new_files: Amount::default(),
            chunks: Amount::default(),
            new_chunks: Amount::default(),
            multichunks: Amount::default(),
            index_bytes: 0,
            dataset_bytes_so_far: 10,
            stored_bytes_so_far: 1,
            index_bytes_so_far: 0,
            reconstructions: [None; 3],
        }
    }

    #[test]
    fn all_configurations_are_in_the_appendices_and_a_counts_nothing_for_the_processor() {
        // By A alone the last one would be the calmest, and is so by nothing else.
        let configurations = Configuration::all();
        let count = configurations.len() as u64;
        let rows: Vec<Row> = (0..)
            .zip(&configurations)
            .flat_map(|(number, one)| {
                [row(*one, "A", 1000, count - number), row(*one, "B", 1000, number + 1)]
            })
            .collect();
        let page = all(Page::new("page"), &rows).markdown();
        let after = |words: &str| page.split(words).nth(1).unwrap_or_else(|| panic!("{words}"));
        let first = after("## Table 6.5").lines().find(|line| line.contains("| 1 |")).unwrap();
        assert!(first.contains(&configurations[0].to_string()) && first.ends_with("| 0.10 |"));
        assert!(after("## Table 6.5").contains("A counts neither"));
        // A pause changes nothing of what is stored.
        for (appendix, lines) in [("D: all 72", 72), ("E: all 144", 144), ("F: all 144", 144)] {
            let table = after(&format!("Appendix {appendix} of them")).trim_start();
            assert_eq!(table.lines().take_while(|line| !line.is_empty()).count(), lines + 2);
        }
        // Alone it counts.
        let alone: Vec<Row> = rows.into_iter().filter(|row| row.dataset == "A").collect();
        let page = all(Page::new("page"), &alone).markdown();
        assert!(!page.contains("NaN") && !page.contains("counts neither"));
    }

    #[test]
    fn what_the_thesis_printed_is_found_by_table_name_and_dataset() {
        let ranking = Ranking {
            table: "6.3",
            appendix: "D",
            title: "",
            name: &|configuration| configuration.to_string(),
            value: &Row::ratio,
            best_is_largest: true,
            left_out: None,
        };
        let name = "Custom-250-*/TTTD-4-Adler32/Bzip2-Cipher";
        let one = |name: &str| Ranked {
            name: String::new(),
            published_as: Some(name.to_owned()),
            values: Vec::new(),
            average: 0.0,
        };
        assert_eq!(ranking.published(&one(name), "D"), " (32.67)");
        assert_eq!(ranking.published(&one(name), "redis"), "");
        assert_eq!(ranking.published(&one("Custom-250"), "D"), "");
        assert_eq!(published_overhead("D", 250, 0), " (52.1)");
        assert_eq!(published_overhead("A", 125, 1), " (9.3)");
        assert_eq!(published_overhead("A", 125, 2), " (8.4)");
        assert_eq!(published_overhead("D", 0, 0), "");
    }
}
