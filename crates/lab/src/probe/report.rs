//! What people and programs read of a probe, and of several side by side.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::answers::{Answer, answers};
use super::{Findings, Row, Subject};
use crate::environment;
use crate::error::LabError;
use crate::files;
use crate::output::Output;
use crate::page::Page;

/// The name of all results.
const NAME: &str = "probe";

/// The answers about one program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// As tables name it.
    pub name: String,
    /// In the order of the questions.
    pub answers: Vec<Answer>,
}

/// Writes everything, and returns the answers.
///
/// # Errors
/// [`LabError::Write`].
pub fn write(
    subject: &Subject,
    findings: &Findings,
    version: &str,
    output: &Output,
) -> Result<Probed, LabError> {
    let probed = Probed { name: subject.name.clone(), answers: answers(subject, findings) };
    output.write_csv(NAME, &csv(&findings.rows))?;
    output.write_json(NAME, &json!(probed))?;
    output.write_page(NAME, &page(&probed, findings, version))?;
    Ok(probed)
}

/// Puts the answers of several probes, whose results are in these folders, side by side.
///
/// # Errors
/// [`LabError::Read`], [`LabError::Page`] for what no probe has written, [`LabError::Write`].
pub fn tables(results: &[PathBuf], output: &Output) -> Result<Page, LabError> {
    let all: Vec<Probed> = results.iter().map(|folder| kept(folder)).collect::<Result<_, _>>()?;
    let mut features: Vec<&str> = Vec::new();
    for answer in all.iter().flat_map(|probed| &probed.answers) {
        if !features.contains(&answer.feature.as_str()) {
            features.push(&answer.feature);
        }
    }
    let mut headings = vec!["feature"];
    headings.extend(all.iter().map(|probed| probed.name.as_str()));
    let find = |probed: &Probed, feature: &str| -> Option<Answer> {
        probed.answers.iter().find(|answer| answer.feature == feature).cloned()
    };
    let row = |feature: &&str| {
        let cells = all.iter().map(|probed| {
            find(probed, feature).map_or_else(|| "-".to_owned(), |answer| answer.answer)
        });
        std::iter::once((*feature).to_owned()).chain(cells).collect()
    };
    let mut page = Page::new("What programs do")
        .text("As Tables 2.1 and 2.2 of BenchCloud (Wang 2014) ask it, found out by experiment.")
        .table(&headings, features.iter().map(row).collect());
    for feature in &features {
        let rows = all.iter().filter_map(|probed| {
            let Answer { answer, evidence, .. } = find(probed, feature)?;
            Some(vec![probed.name.clone(), answer, evidence])
        });
        page = page.heading(*feature).table(&["program", "answer", "evidence"], rows.collect());
    }
    output.write_page("probes", &page)?;
    Ok(page)
}

fn kept(folder: &Path) -> Result<Probed, LabError> {
    let path = folder.join(format!("{NAME}.json"));
    let read = serde_json::from_slice(&files::read(&path)?);
    read.map_err(|source| LabError::Page { path, source })
}

fn page(probed: &Probed, findings: &Findings, version: &str) -> Page {
    let mut page = Page::new(format!("What {} does", probed.name));
    if findings.missed > 0 {
        page = page.bad(format!(
            "{} packets were not counted: the machine was too busy, and numbers of bytes are too small.",
            findings.missed
        ));
    }
    let noisy = findings.rows.iter().filter(|row| !row.is_silent).count();
    if noisy > 0 {
        page = page.bad(format!("The wire was not silent after {noisy} steps: what came later is counted with the next one."));
    }
    let answer = |Answer { feature, answer, evidence }: &Answer| {
        vec![feature.clone(), format!("**{answer}**"), evidence.clone()]
    };
    let rows = probed.answers.iter().map(answer).collect();
    page = page.heading("Answers").table(&["question", "answer", "evidence"], rows);
    let steps = findings.rows.iter().map(cells).collect();
    page = page.heading("What went over the wire").table(&COLUMNS, steps);
    environment::end(page, &[("version", version.to_owned())])
}

/// Of the table of steps.
const COLUMNS: [&str; 11] = [
    "step",
    "files",
    "bytes",
    "seconds",
    "missing",
    "up, bytes",
    "up, packets",
    "down, bytes",
    "down, packets",
    "connections",
    "requests",
];

fn cells(row: &Row) -> Vec<String> {
    let Row { step, files, bytes, took, missing, counts, .. } = row;
    let seconds = took.map_or_else(|| "-".to_owned(), |took| format!("{:.3}", took.as_secs_f64()));
    vec![
        step.name().to_owned(),
        files.to_string(),
        bytes.to_string(),
        seconds,
        missing.to_string(),
        counts.up.wire.to_string(),
        counts.up.packets.to_string(),
        counts.down.wire.to_string(),
        counts.down.packets.to_string(),
        counts.connections.to_string(),
        counts.requests.to_string(),
    ]
}

fn csv(rows: &[Row]) -> String {
    let heading = COLUMNS.map(|name| name.replace(", ", "_"));
    let mut text = format!("{},silent\n", heading.join(","));
    for row in rows {
        // Writing to a String cannot fail.
        let _ok = writeln!(text, "{},{}", cells(row).join(","), row.is_silent);
    }
    text
}
