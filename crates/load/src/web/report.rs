//! What came of it in words: tables, ratios, and which aims are reached.

use std::fmt::Write;

use super::Network;
use super::cells::Edit;
use super::line::Measured;
use super::row::{METHODS, NATIVE, Row, Rows, SAME, middle, title};

/// What has to be known to read the figures.
#[derive(Debug, Clone)]
pub struct About {
    /// How often each cell was measured.
    pub runs: u32,
    /// Whence all chance came.
    pub seed: u64,
    /// Bytes of the old version.
    pub length: usize,
    /// Bytes of the old version where stagnation is measured.
    pub stagnation_length: usize,
    /// How busy the machine was at the end, as the kernel says it.
    pub load: String,
    /// The lines as they were found.
    pub lines: Vec<(Network, Measured)>,
    /// Which rsync.
    pub rsync: String,
    /// Which browser.
    pub browser: String,
}

/// How much longer than a round trip ours may take, in milliseconds.
const OURS_BEYOND_ROUND_TRIP_MS: f64 = 10.0;

/// The round trip of the line, in milliseconds.
const ROUND_TRIP_MS: f64 = super::ROUND_TRIP.as_millis() as f64;

/// What ours may send for edits of up to [`SMALL_EDIT`], in bytes.
const OURS_UP_MAX: f64 = 1500.0;

/// A small edit, in bytes.
const SMALL_EDIT: usize = 1000;

/// How much faster than WebRsync in JavaScript WebR2sync+ is to be.
const FASTER_THAN_SCRIPT: f64 = 10.0;

/// How much slower than rsync it may be.
const SLOWER_THAN_NATIVE: f64 = 1.2;

/// Something that is to be so in every cell: a figure, and the most that it may be.
struct Aim {
    words: String,
    network: Network,
    max: f64,
    figures: Vec<(Edit, f64)>,
}

impl Aim {
    fn reached(&self) -> usize {
        self.figures.iter().filter(|(_, figure)| *figure <= self.max).count()
    }

    fn line(&self) -> String {
        let worst = self.figures.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let Some((edit, worst)) = worst else {
            return format!("| {} | {} | not measured | | |", self.words, self.network.title());
        };
        let (reached, all) = (self.reached(), self.figures.len());
        let verdict = match reached == all {
            true => format!("yes, {all} of {all}"),
            false => format!("no, {reached} of {all}"),
        };
        let usual = middle(self.figures.iter().map(|(_, figure)| *figure)).unwrap_or(f64::NAN);
        let (network, digits) = (self.network.title(), if self.max < 100.0 { 2 } else { 0 });
        format!(
            "| {} | {network} | {verdict} | {usual:.digits$} | {worst:.digits$} ({edit}) |",
            self.words
        )
    }
}

/// Returns the ratio of the times of two methods in each cell.
fn ratios(rows: Rows<'_>, network: Network, above: &str, below: &str) -> Vec<(Edit, f64)> {
    let of = |edit| {
        let above = rows.time_ms(network, edit, above)?;
        Some((edit, above / rows.time_ms(network, edit, below)?))
    };
    rows.edits().into_iter().filter_map(of).collect()
}

fn aims(rows: Rows<'_>) -> Vec<Aim> {
    let mut aims = Vec::new();
    let figures = |network, method: &str, figure: fn(&Row) -> Option<f64>| {
        let of = |edit| Some((edit, rows.middle(network, edit, method, figure)?));
        rows.edits().into_iter().filter_map(of).collect::<Vec<_>>()
    };
    aims.push(Aim {
        words: format!("ours: at most a round trip and {OURS_BEYOND_ROUND_TRIP_MS} ms (in ms)"),
        network: Network::Line,
        max: ROUND_TRIP_MS + OURS_BEYOND_ROUND_TRIP_MS,
        figures: figures(Network::Line, "oursKept", |row| Some(row.time_ms)),
    });
    aims.push(Aim {
        words: "ours: one round trip".to_owned(),
        network: Network::Line,
        max: 1.0,
        figures: figures(Network::Line, "oursKept", |row| {
            row.round_trips.map(|trips| trips as f64)
        }),
    });
    let mut sent = figures(Network::Line, "oursKept", |row| Some(row.up as f64));
    sent.retain(|(edit, _)| edit.size <= SMALL_EDIT);
    aims.push(Aim {
        words: format!("ours: at most 1.5 KB up for edits of up to {SMALL_EDIT} bytes (in bytes)"),
        network: Network::Line,
        max: OURS_UP_MAX,
        figures: sent,
    });
    for network in Network::ALL {
        aims.push(Aim {
            words: "ours faster than rsync (its time by rsync's)".to_owned(),
            network,
            max: 1.0,
            figures: ratios(rows, network, "oursKept", NATIVE),
        });
        aims.push(Aim {
            words:
                "WebR2sync+ ten times faster than WebRsync in JavaScript (its time by the other's)"
                    .to_owned(),
            network,
            max: 1.0 / FASTER_THAN_SCRIPT,
            figures: ratios(rows, network, "webR2syncPlus", "scriptPage"),
        });
        aims.push(Aim {
            words: format!("WebR2sync+ at most {SLOWER_THAN_NATIVE} of rsync"),
            network,
            max: SLOWER_THAN_NATIVE,
            figures: ratios(rows, network, "webR2syncPlus", NATIVE),
        });
    }
    aims
}

/// Writes the report.
pub fn markdown(about: &About, rows: &[Row], standing: &[Row]) -> String {
    let mut text = format!(
        "# The browser beside rsync\n\n{}; {}. Files of {} random bytes, {} runs of each cell with other files each, seed {}; medians.\n\n",
        about.browser, about.rsync, about.length, about.runs, about.seed
    );
    for (network, measured) in &about.lines {
        // Writing to a String cannot fail.
        let _ok = writeln!(text, "- *{}* as found here: {}", network.title(), measured.describe());
    }
    // What else the machine did is part of every time.
    let _ok = writeln!(text, "- Load of the machine in the end: {}", about.load);
    let wrong = rows.iter().chain(standing).filter(|row| row.result != SAME).count();
    let all = rows.len() + standing.len();
    let _ok = writeln!(
        text,
        "- The server had the new version, byte by byte, after {} of {all} runs.\n\n## Aims\n\n\
         | aim | network | reached in all cells | median | worst |\n|---|---|---|---|---|",
        all - wrong
    );
    for aim in aims(Rows(rows)) {
        let _ok = writeln!(text, "{}", aim.line());
    }
    for network in Network::ALL {
        text.push_str(&times(Rows(rows), network));
    }
    text.push_str(&traffic(Rows(rows)));
    text.push_str(&stagnation(about, standing));
    text + NOTES
}

const NOTES: &str = "\n## How to read it\n\n\
    - *ours* knows what a client keeps that has sent or received the version before, with its bytes; *sketch only* has no bytes, *list only* has its chunk list and nothing else, \
    and *nothing known* asks for what it needs of that.\n\
    - Times of the browser go from the call of a method on the open page to the answer that the new version is stored, and durable. The time of rsync goes from \
    the start of its program to its end, with its greeting; its daemon does not wait for the disk.\n\
    - The first method of a run, *ours*, brings the new bytes to the server; the others find chunks of them there, and the server writes less.\n\
    - Bytes of the browser are bodies of requests and answers, without headers of HTTP; those of rsync are its own count (`--stats`).\n\
    - Connections through the emulated line are set up at once, for both.\n";

/// Writes a table of one figure for each cell and method.
fn table(
    rows: Rows<'_>,
    heading: &str,
    methods: &[&str],
    cell: impl Fn(Edit, &str) -> Option<String>,
) -> String {
    let titles: Vec<_> = methods.iter().map(|method| title(method)).collect();
    let mut text = format!("\n## {heading}\n\n| edit | {} |\n", titles.join(" | "));
    text.push_str(&format!("|---|{}\n", "---|".repeat(methods.len())));
    for edit in rows.edits() {
        let cells = methods.iter().map(|method| cell(edit, method).unwrap_or_default());
        let cells: Vec<_> = cells.collect();
        // Writing to a String cannot fail.
        let _ok = writeln!(text, "| {edit} | {} |", cells.join(" | "));
    }
    text
}

fn times(rows: Rows<'_>, network: Network) -> String {
    let methods = [&[NATIVE][..], &METHODS[..]].concat();
    let heading = format!("Time, {} (ms)", network.title());
    table(rows, &heading, &methods, |edit, method| {
        rows.time_ms(network, edit, method).map(|ms| format!("{ms:.1}"))
    })
}

fn traffic(rows: Rows<'_>) -> String {
    let methods = [&[NATIVE][..], &METHODS[..METHODS.len() - 1]].concat();
    table(rows, "Bytes up, down", &methods, |edit, method| {
        let up = rows.middle(Network::Line, edit, method, |row| Some(row.up as f64))?;
        let down = rows.middle(Network::Line, edit, method, |row| Some(row.down as f64))?;
        Some(format!("{up:.0}, {down:.0}"))
    })
}

fn stagnation(about: &About, rows: &[Row]) -> String {
    standing(about.stagnation_length as u64, rows)
        + " The aim is a file of 1 GiB: `--only large`.\n"
}

/// Writes the report on a large file.
pub fn large(length: u64, browser: &str, rows: &[Row]) -> String {
    let wrong = rows.iter().filter(|row| row.result != SAME).count();
    let all = rows.len();
    format!(
        "# A large file in the browser\n\n{browser}; loopback. The server had the new version, byte by byte, after {} of {all} runs.\n{}\n",
        all - wrong,
        standing(length, rows)
    )
}

fn standing(length: u64, rows: &[Row]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let mut text = format!(
        "\n## Whether the page stands still\n\nThe page ticks every 100 ms; {} in a file of {length} bytes. The worst of all runs.\n\n\
         | method | longest gap, ms | missed ticks | tasks over 50 ms | time, ms |\n|---|---|---|---|---|\n",
        first.edit
    );
    for method in METHODS {
        let runs = || rows.iter().filter(|row| row.method == method && row.result == SAME);
        if runs().next().is_none() {
            continue;
        }
        let gap = runs().filter_map(|row| row.longest_gap_ms).fold(0.0, f64::max);
        let missed = runs().filter_map(|row| row.missed_ticks).max().unwrap_or(0);
        let tasks = runs().filter_map(|row| row.long_tasks).max();
        let tasks = tasks.map_or_else(|| "not told".to_owned(), |count| count.to_string());
        let time = middle(runs().map(|row| row.time_ms)).unwrap_or(f64::NAN);
        // Writing to a String cannot fail.
        let _ok =
            writeln!(text, "| {} | {gap:.0} | {missed} | {tasks} | {time:.0} |", title(method));
    }
    let mut others = rows.iter().filter(|row| !row.method.starts_with("script"));
    let is_calm = |row: &Row| row.missed_ticks == Some(0) && row.long_tasks == Some(0);
    let verdict = if others.all(is_calm) { "yes" } else { "no" };
    text + &format!(
        "\nNo missed tick and no task over 50 ms in any method but those in JavaScript: {verdict}."
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::web::figures;
    use crate::web::native::Synced;
    use crate::web::row::{csv_of, rows_of};

    const EDITS: [Edit; 2] = [
        Edit { kind: "insert", size: 1, places: 1 },
        Edit { kind: "insert", size: 10_000, places: 20 },
    ];

    fn page(network: Network, edit: Edit, run: u32, method: &str, time: f64) -> Row {
        let value = json!({
            "method": method, "time": time, "waited": time / 2.0, "up": 400, "down": 20,
            "roundTrips": 1, "isSame": true, "failure": null, "longTasks": [60.0],
            "stagnation": { "ticks": 3, "longest": 101.5, "missed": 0 },
            "ticks": [-100.0, 0.2, 100.4], "cost": { "client": 7.5, "server": 2.25 },
        });
        Row::read(&value, network, edit, (5, run)).expect("it is whole")
    }

    fn rows() -> Vec<Row> {
        let mut rows = Vec::new();
        for network in Network::ALL {
            for (edit, run) in EDITS.into_iter().flat_map(|edit| [(edit, 1), (edit, 2)]) {
                let added = f64::from(run);
                rows.push(page(network, edit, run, "oursKept", 36.0 + added));
                rows.push(page(network, edit, run, "webR2syncPlus", 60.0 + added));
                rows.push(page(network, edit, run, "scriptPage", 500.0 + added));
                let time = Duration::from_millis(if edit.size == 1 { 40 } else { 30 });
                let synced = Synced { time, up: 900, down: 6000 };
                rows.push(Row::native(network, edit, (5, run), synced));
            }
        }
        rows
    }

    fn about() -> About {
        let measured = Measured { round_trip_ms: 31.0, bytes_per_second: 12_000_000.0 };
        let (rsync, browser) = ("rsync version 3".to_owned(), "Chromium 1".to_owned());
        let lines = vec![(Network::Line, measured)];
        About {
            runs: 2,
            seed: 5,
            length: 1_000_000,
            stagnation_length: 10_000_000,
            load: "0.10 0.20 0.30 1/99 5".to_owned(),
            lines,
            rsync,
            browser,
        }
    }

    #[test]
    fn aims_that_are_missed_in_one_cell_are_missed() {
        let text = markdown(&about(), &rows(), &rows());
        assert!(text.contains("(in ms) | 30 ms, 100 Mb/s | yes, 2 of 2 | 37.50 |"), "{text}");
        assert!(text.contains(
            "rsync's) | loopback | no, 1 of 2 | 1.09 | 1.25 (insert 10000 in 20 places)"
        ));
        assert!(text.contains("the other's) | loopback | no, 0 of 2 | 0.12 |"), "{text}");
        assert!(text.contains("31.0 ms; 96 Mb/s"), "{text}");
        assert!(text.contains("| insert 1 | 40.0 | 37.5 |"), "{text}");
        assert!(text.contains("after 64 of 64 runs"), "{text}");
        assert!(text.contains("| ours | 102 | 0 | 1 | 38 |"), "{text}");
        // Each of these runs had a long task.
        assert!(text.contains("those in JavaScript: no."), "{text}");
        assert!(text.contains("in the end: 0.10 0.20"), "{text}");
    }

    #[test]
    fn a_large_file_says_whether_the_page_stood_still() {
        let mut calm = page(Network::Loopback, EDITS[0], 1, "whole", 10.0);
        calm.long_tasks = Some(0);
        let text = large(1 << 30, "Chromium 1", &[calm.clone()]);
        assert!(text.contains("file of 1073741824 bytes") && text.contains("JavaScript: yes."));
        let mut untold = calm.clone();
        untold.long_tasks = None;
        assert!(large(1 << 30, "Chromium 1", &[calm, untold]).contains("JavaScript: no."));
    }

    #[test]
    fn what_went_wrong_is_counted_and_says_nothing_else() {
        let mut rows = rows();
        rows[0].result = "different".to_owned();
        rows[0].time_ms = 0.0;
        let text = markdown(&about(), &rows, &[]);
        assert!(text.contains("after 31 of 32 runs"), "{text}");
        assert!(text.contains("| insert 1 | 40.0 | 38.0 |"), "{text}");
        assert!(super::super::demand_results(&rows).is_err());
        assert!(super::super::demand_results(&rows[1..]).is_ok());
    }

    #[test]
    fn a_page_that_leaves_something_out_is_not_believed() {
        let whole = json!({ "method": "whole", "time": 1, "waited": 1, "up": 1, "ticks": [] });
        assert!(Row::read(&whole, Network::Line, EDITS[0], (1, 1)).is_err());
    }

    #[test]
    fn every_row_has_as_many_fields_as_the_head() {
        let mut rows = rows();
        rows[1].result = "Error: \"no\"\nmore".to_owned();
        let text = csv_of(&rows);
        let counts: Vec<_> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(counts, vec![18; rows.len() + 1]);
        assert!(text.contains(
            "30ms,insert,1,1,5,1,oursKept,37.00,18.50,400,20,1,7.50,2.25,101.50,0,1,\"same\""
        ));
        assert!(text.contains("\"Error: 'no' more\""), "{text}");
        // What was written is read again, but for the ticks and what a field cannot hold.
        assert_eq!(csv_of(&rows_of(&text).expect("they are rows")), text);
        let error = rows_of("head\n30ms,insert,1,1,5").expect_err("it is cut off");
        assert!(format!("{error:#}").contains("18 fields"), "{error:#}");
    }

    #[test]
    fn all_figures_are_drawn_out_of_rows() {
        let drawn = figures::all(&rows(), &rows());
        for (name, svg) in &drawn {
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{name}");
        }
        let names: Vec<_> = drawn.iter().map(|(name, _)| name.as_str()).collect();
        let wanted = [
            "web-figure-2-30ms",
            "web-figure-3-append",
            "web-figure-5-30ms",
            "web-figure-6-loopback",
            "web-figure-8-30ms",
            "web-figure-9-append",
            "web-figure-16-insert-loopback",
            "web-figure-16-dispersed-10000-30ms",
            "web-figure-17-cut",
            "web-figure-18",
            "web-figure-19",
            "web-figure-20-insert",
            "web-stagnation",
        ];
        for name in wanted {
            assert!(names.contains(&name), "{name} is not in {names:?}");
        }
    }
}
