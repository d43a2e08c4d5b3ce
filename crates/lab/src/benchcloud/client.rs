//! Figures 4.8 and 4.10, table 4.7: what a sync client sends of files that compress, that have a part in common, that are equal.

use std::fmt::Write;

use super::place::{Kind, seen};
use super::{MB, end, lost, plan, run, size_name, with_losses};
use crate::bench::plan::{self as plans, Operation};
use crate::error::LabError;
use crate::experiment::Setting;
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};
use crate::room::Room;
use crate::targets::{Moved, Sending, no_target};

/// Sizes of figure 4.8; those from the third on only where somebody wants it in full.
const SPARSE: [u64; 5] = [MB, 10 * MB, 100 * MB, 300 * MB, 500 * MB];
const SPARSE_QUICK: usize = 3;

/// Figure 4.10: five versions of a file, with so many percent in common.
const COMMON: [u64; 5] = [10, 30, 50, 70, 90];
const VERSIONS: u64 = 5;
const VERSION_BYTES: u64 = 10 * MB;

/// Table 4.7: equal files.
const EQUAL: u64 = 3;
const EQUAL_BYTES: u64 = 20 * MB;
const EQUAL_DROPBOX_MB: f64 = 25.58;

/// What one step has moved.
struct Row {
    of: &'static str,
    /// What tells it from the others: bytes, percent, files.
    what: u64,
    files: u64,
    file_bytes: u64,
    moved: Moved,
    lost: u64,
}

/// Measures both figures and the table, and writes them.
///
/// # Errors
/// [`LabError`].
pub fn measure(
    setting: &Setting,
    output: &Output,
    say: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let mut rows = Vec::new();
    let mut note = |row: Row| {
        let (up, whole) = (row.moved.up as f64 / MB as f64, size_name(row.files * row.file_bytes));
        say(&format!("{}, {}: {up:.3} MB up for {whole} of files", row.of, row.name()));
        rows.push(row);
    };
    for step in steps(setting)? {
        note(play(setting, step)?);
    }
    output.write_csv("benchcloud-client", &csv(&rows))?;
    output.write_page("benchcloud-client", &end(page(&rows), setting))
}

impl Row {
    /// What tells it from others, in words.
    fn name(&self) -> String {
        match self.of {
            "figure 4.8" => size_name(self.what),
            "figure 4.10" => format!("{} % in common", self.what),
            _ => format!("{} files", self.what),
        }
    }
}

/// Files that are put into a synced folder, one after the other.
struct Step {
    of: &'static str,
    what: u64,
    times: u64,
    /// All are this one file.
    name: Option<String>,
    files: plans::Files,
}

/// Returns what is to be done.
fn steps(setting: &Setting) -> Result<Vec<Step>, LabError> {
    let file = |kind, size| plans::Files { kind, size, ..plans::Files::default() };
    let count = if setting.is_full { SPARSE.len() } else { SPARSE_QUICK };
    let sparse = SPARSE[..count].iter().map(|size| Step {
        of: "figure 4.8",
        what: *size,
        times: 1,
        name: None,
        files: file(plans::Kind::Sparse, *size),
    });
    let delta = COMMON.into_iter().map(|percent| Step {
        of: "figure 4.10",
        what: percent,
        times: VERSIONS,
        name: Some("delta-file".to_owned()),
        files: plans::Files {
            common: percent as f64 / 100.0,
            ..file(plans::Kind::Delta, VERSION_BYTES)
        },
    });
    let equal = Step {
        of: "table 4.7",
        what: EQUAL,
        times: EQUAL,
        name: None,
        files: file(plans::Kind::Identical, EQUAL_BYTES),
    };
    setting.wanted(sparse.chain(delta).chain([equal]), |step| step.of.to_owned())
}

/// Does it in a workspace of its own, which knows none of the bytes.
fn play(setting: &Setting, step: Step) -> Result<Row, LabError> {
    let room = Room::new(&setting.work)?;
    let synced = setting.targets.synced(room.path(), Sending::Watching);
    let synced = synced.map_err(|failure| no_target(Kind::Workspace.name(), failure))?;
    let before = synced.at_rest();
    let file_bytes = step.files.size;
    let mut plan = plan(Operation::Upload, step.times, 1, "", setting.seed ^ step.what);
    plan.target.name = step.name;
    plan.files = step.files;
    let outcome = run(&plan, &seen(synced.as_ref()), "lab")?;
    let moved = synced.at_rest().since(before);
    Ok(Row {
        of: step.of,
        what: step.what,
        files: step.times,
        file_bytes,
        moved,
        lost: lost(&outcome),
    })
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from("of,what,files,file_bytes,up_bytes,down_bytes,lost\n");
    for row in rows {
        let Row { of, what, files, file_bytes, moved, lost } = row;
        // Writing to a String cannot fail.
        let _ok =
            writeln!(text, "{of},{what},{files},{file_bytes},{},{},{lost}", moved.up, moved.down);
    }
    text
}

/// What five versions need where each part that is new goes once: the common part, and the rest of each.
fn needed(percent: u64) -> f64 {
    let rest = (100 - percent) * VERSIONS;
    VERSION_BYTES as f64 * (percent + rest) as f64 / 100.0
}

fn page(rows: &[Row]) -> Page {
    let of = |name: &'static str| rows.iter().filter(move |row| row.of == name);
    let mb = |bytes: f64| format!("{:.3}", bytes / MB as f64);
    let page = Page::new("A sync client: BenchCloud's figures 4.8 to 4.10, tables 4.6 and 4.7").text(
        "BenchCloud puts files into the folder of Dropbox's client, on the machine of its table 4.6, and counts what goes to the servers. Here the client is Syncline's, which watches a folder, and its server is on this computer; each step has a workspace of its own, \
         which knows none of the bytes, and a step ends when another device has the same file. Counted are the bytes inside TCP that this device sends, answers and commits among them, without headers of packets and without encryption of the line. MB are 2^20 bytes.",
    );
    let page = with_losses(page, rows.iter().map(|row| row.lost).sum());
    let sparse = of("figure 4.8")
        .map(|row| vec![row.name(), row.moved.up.to_string(), row.moved.down.to_string()]);
    let page = page.heading("Figure 4.8: files that repeat one text")
        .text("Dropbox's client compresses: the traffic was small and hardly depended on the size (between the least and the most of 1 to 500 MB lay 3.6 KB).")
        .table(&["size of the file", "up, bytes", "down, bytes"], sparse.collect())
        .drawing("figure-4.8", sparse_drawing(rows));
    let delta = of("figure 4.10").map(|row| {
        let up = row.moved.up as f64;
        vec![
            format!("{} %", row.what),
            mb(needed(row.what)),
            mb(up),
            format!("{:.3}", up / needed(row.what)),
        ]
    });
    let page = page.heading("Figures 4.9 and 4.10: five versions of 10 MB with a part in common")
        .text("As Figure 4.9 draws it: all versions begin with the same part, the rest of each is by chance. At best the common part goes once, and the rest of each version (the thesis has 30 MB for 50 %).")
        .table(&["in common", "at best, MB", "up, MB", "of the best"], delta.collect())
        .drawing("figure-4.10", delta_drawing(rows));
    let equal = of("table 4.7").map(|row| {
        vec![
            format!("{} files of {}", row.files, size_name(row.file_bytes)),
            format!("{EQUAL_DROPBOX_MB}"),
            mb(row.moved.up as f64),
        ]
    });
    page.heading("Table 4.7: equal files").table(&["", "Dropbox, MB", "up, MB"], equal.collect())
}

fn sparse_drawing(rows: &[Row]) -> String {
    let points = |read: fn(&Row) -> f64| {
        let of_it = rows.iter().filter(|row| row.of == "figure 4.8");
        of_it.map(|row| (row.what as f64 / MB as f64, read(row))).collect()
    };
    let plot = Plot {
        title: "Figure 4.8: traffic of files that repeat one text".to_owned(),
        across: "MB of the file".to_owned(),
        up: "KB up".to_owned(),
        series: vec![
            Series::ours("Syncline", points(|row| row.moved.up as f64 / 1024.0)),
            Series::ours("the file itself", points(|row| row.file_bytes as f64 / 1024.0)),
        ],
    };
    plot.lines_over_magnitudes()
}

fn delta_drawing(rows: &[Row]) -> String {
    let ours = rows.iter().filter(|row| row.of == "figure 4.10");
    let plot = Plot {
        title: "Figure 4.10: traffic of five versions with a part in common".to_owned(),
        across: "percent in common".to_owned(),
        up: "MB up".to_owned(),
        series: vec![
            Series::published(
                "at best",
                COMMON.map(|percent| (percent as f64, needed(percent) / MB as f64)).to_vec(),
            ),
            Series::ours(
                "Syncline",
                ours.map(|row| (row.what as f64, row.moved.up as f64 / MB as f64)).collect(),
            ),
        ],
    };
    plot.lines()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_in_common_needs_thirty_megabytes_as_the_thesis_says() {
        assert_eq!(needed(50), 30.0 * MB as f64);
        assert_eq!((needed(0), needed(100)), (50.0 * MB as f64, 10.0 * MB as f64));
    }
}
