//! Rows as tables of medians with ratios, and as CSV.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::peers::Family;
use super::sample::{Row, Sample, median};

/// A program's name, what it is compared with, and whether it is ours.
pub(super) type Kind = (String, Family, bool);

/// What is compared between ours and the others: a title and how to read it from a sample.
type Measure = (&'static str, fn(&Sample) -> Option<f64>);

const MEASURES: [Measure; 5] = [
    ("wall", |sample| Some(sample.wall_seconds)),
    ("cpu", |sample| Some(sample.cpu_seconds)),
    ("rss", |sample| Some(sample.rss_mib)),
    ("stored", |sample| sample.stored_bytes.map(|bytes| bytes as f64)),
    ("moved", |sample| sample.moved_bytes().map(|bytes| bytes as f64)),
];

/// One table per workload, file system and step, with the ratios of ours to the best of the others.
pub(super) fn tables(rows: &[Row], kinds: &[Kind]) -> String {
    let mut groups: BTreeMap<(&str, &str, &str), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        groups.entry((&row.workload, &row.file_system, &row.step)).or_default().push(row);
    }
    let mut text = String::new();
    for ((workload, file_system, step), rows) in groups {
        let mut by_peer: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
        for row in rows {
            by_peer.entry(&row.peer).or_default().push(&row.sample);
        }
        // Writing to a String cannot fail.
        let _ok = writeln!(text, "### {workload}, {step}, {file_system}\n");
        text.push_str(
            "| program | n | wall s (min-max) | CPU s | RSS MiB | stored | sent | received |\n",
        );
        text.push_str("|---|---|---|---|---|---|---|---|\n");
        let mut ordered: Vec<&Kind> = kinds.iter().collect();
        ordered.sort_by_key(|(name, family, ours)| (*family, !*ours, name.as_str()));
        for (name, _, _) in ordered {
            if let Some(samples) = by_peer.get(name.as_str()) {
                text.push_str(&table_row(name, samples));
            }
        }
        text.push('\n');
        text.push_str(&ratios(&by_peer, kinds));
    }
    text
}

fn table_row(name: &str, samples: &[&Sample]) -> String {
    let middle = |read: fn(&Sample) -> Option<f64>| {
        median(&samples.iter().filter_map(|sample| read(sample)).collect::<Vec<_>>())
    };
    let bytes = |read: fn(&Sample) -> Option<f64>| middle(read).map_or_else(String::new, thousands);
    let walls: Vec<f64> = samples.iter().map(|sample| sample.wall_seconds).collect();
    let (low, high) = walls
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), &wall| (low.min(wall), high.max(wall)));
    format!(
        "| {name} | {} | {:.2} ({low:.2}-{high:.2}) | {:.2} | {:.0} | {} | {} | {} |\n",
        samples.len(),
        middle(|sample| Some(sample.wall_seconds)).unwrap_or(0.0),
        middle(|sample| Some(sample.cpu_seconds)).unwrap_or(0.0),
        middle(|sample| Some(sample.rss_mib)).unwrap_or(0.0),
        bytes(|sample| sample.stored_bytes.map(|bytes| bytes as f64)),
        bytes(|sample| sample.sent_bytes.map(|bytes| bytes as f64)),
        bytes(|sample| sample.received_bytes.map(|bytes| bytes as f64)),
    )
}

/// `ours / best other of the family` for every measure, and `ours / cp -r` for the time.
fn ratios(by_peer: &BTreeMap<&str, Vec<&Sample>>, kinds: &[Kind]) -> String {
    let mut text = String::new();
    for (ours, family, _) in kinds.iter().filter(|(_, _, ours)| *ours) {
        let Some(our_samples) = by_peer.get(ours.as_str()) else { continue };
        let mut parts = Vec::new();
        for (title, read) in MEASURES {
            let middle = |samples: &[&Sample]| {
                median(&samples.iter().filter_map(|sample| read(sample)).collect::<Vec<_>>())
            };
            let Some(mine) = middle(our_samples) else { continue };
            let others = kinds.iter().filter(|(_, other, ours)| other == family && !ours);
            let figures = others.filter_map(|(name, _, _)| {
                Some((middle(by_peer.get(name.as_str())?)?, name.as_str()))
            });
            if let Some((best, name)) = figures.min_by(|one, other| one.0.total_cmp(&other.0)) {
                parts.push(format!("{title} {} ({name})", ratio(mine, best)));
            }
            let yardstick = kinds.iter().find(|(_, family, _)| *family == Family::Yardstick);
            let yardstick = yardstick.and_then(|(name, _, _)| middle(by_peer.get(name.as_str())?));
            if let (Some(copied), "wall") = (yardstick, title) {
                parts.push(format!("wall {} (cp -r)", ratio(mine, copied)));
            }
        }
        if !parts.is_empty() {
            let _ok = writeln!(text, "{ours} / best other: {}\n", parts.join(", "));
        }
    }
    text
}

fn ratio(mine: f64, best: f64) -> String {
    if best > 0.0 { format!("{:.2}", mine / best) } else { format!("{mine:.2} against 0") }
}

fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

/// Every single run.
pub(super) fn csv(rows: &[Row]) -> String {
    let mut text = String::from(
        "workload,file_system,step,program,round,wall_seconds,cpu_seconds,rss_mib,stored_bytes,\
         sent_bytes,received_bytes,verified\n",
    );
    let optional =
        |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
    for row in rows {
        let sample = &row.sample;
        let _ok = writeln!(
            text,
            "{},{},{},{},{},{:.4},{:.2},{:.1},{},{},{},{}",
            row.workload,
            row.file_system,
            row.step,
            row.peer,
            row.round,
            sample.wall_seconds,
            sample.cpu_seconds,
            sample.rss_mib,
            optional(sample.stored_bytes),
            optional(sample.sent_bytes),
            optional(sample.received_bytes),
            row.verified,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(peer: &str, wall_seconds: f64, stored_bytes: u64) -> Row {
        Row {
            workload: "tree".to_owned(),
            file_system: "tmpfs".to_owned(),
            peer: peer.to_owned(),
            step: "initial".to_owned(),
            round: 1,
            sample: Sample { wall_seconds, stored_bytes: Some(stored_bytes), ..Sample::default() },
            verified: true,
        }
    }

    #[test]
    fn ours_is_divided_by_the_best_of_its_family() {
        let kinds = [
            ("ours".to_owned(), Family::Backup, true),
            ("restic".to_owned(), Family::Backup, false),
            ("borg".to_owned(), Family::Backup, false),
            ("rsync".to_owned(), Family::Sync, false),
            ("cp -r".to_owned(), Family::Yardstick, false),
        ];
        let rows = [
            row("ours", 2.0, 90),
            row("restic", 4.0, 300),
            row("borg", 5.0, 100),
            row("rsync", 1.0, 1),
            row("cp -r", 8.0, 1),
        ];
        let text = tables(&rows, &kinds);
        assert!(text.contains("wall 0.50 (restic)"), "{text}");
        assert!(text.contains("wall 0.25 (cp -r)"), "{text}");
        assert!(text.contains("stored 0.90 (borg)"), "{text}");
    }

    #[test]
    fn csv_has_a_line_per_run_and_leaves_the_unknown_empty() {
        let text = csv(&[row("restic", 4.0, 300)]);
        let expected = "tree,tmpfs,initial,restic,1,4.0000,0.00,0.0,300,,,true";
        assert_eq!(text.lines().nth(1), Some(expected));
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(thousands(1_303_547_524.0), "1,303,547,524");
        assert_eq!(thousands(12.0), "12");
    }
}
