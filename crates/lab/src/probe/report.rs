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

/// What was probed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A program that keeps folders equal, or copies them. Results of the days when there was nothing else do not say it.
    #[default]
    Program,
    /// A store of objects.
    Store,
}

/// The answers about one program, or one store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// As tables name it.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub kind: Kind,
    /// In the order of the questions.
    pub answers: Vec<Answer>,
    /// What whoever reads the answers should know first.
    pub warnings: Vec<String>,
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
    let probed = Probed {
        name: subject.name.clone(),
        kind: Kind::Program,
        answers: answers(subject, findings),
        warnings: warnings(findings),
    };
    let steps = findings.rows.iter().map(cells).collect();
    let page = begin(&probed).heading("What went over the wire").table(&COLUMNS, steps);
    finish(&probed, &csv(&findings.rows), page, version, output)?;
    Ok(probed)
}

/// Begins a page with the answers.
pub(super) fn begin(probed: &Probed) -> Page {
    let mut page = Page::new(format!("What {} does", probed.name));
    for warning in &probed.warnings {
        page = page.bad(warning);
    }
    let answer = |Answer { feature, answer, evidence }: &Answer| {
        vec![feature.clone(), format!("**{answer}**"), evidence.clone()]
    };
    let rows = probed.answers.iter().map(answer).collect();
    page.heading("Answers").words(&["question", "answer", "evidence"], rows)
}

/// Writes what there is of a probe to its results.
pub(super) fn finish(
    probed: &Probed,
    csv: &str,
    page: Page,
    version: &str,
    output: &Output,
) -> Result<(), LabError> {
    output.write_csv(NAME, csv)?;
    output.write_json(NAME, &json!(probed))?;
    output.write_page(NAME, &environment::end(page, &[("version", version.to_owned())]))
}

/// Puts the answers of several probes side by side; folders in which no probe has left answers are passed over, and returned.
///
/// # Errors
/// [`LabError::NoProbes`], [`LabError::Read`], [`LabError::Page`] for answers that cannot be understood, [`LabError::Write`].
pub fn tables(results: &[PathBuf], output: &Output) -> Result<Vec<PathBuf>, LabError> {
    let (mut all, mut others) = (Vec::new(), Vec::new());
    for folder in results {
        match kept(folder)? {
            Some(probed) => all.push(probed),
            None => others.push(folder.clone()),
        }
    }
    if all.is_empty() {
        return Err(LabError::NoProbes);
    }
    output.write_page("probes", &side_by_side(&all))?;
    Ok(others)
}

fn side_by_side(all: &[Probed]) -> Page {
    let of_kind = |kind: Kind| all.iter().filter(|probed| probed.kind == kind).collect::<Vec<_>>();
    let (programs, stores) = (of_kind(Kind::Program), of_kind(Kind::Store));
    let title = match (&programs[..], &stores[..]) {
        (_, []) => "What programs do",
        ([], _) => "What stores do",
        _ => "What programs and stores do",
    };
    let text = if programs.is_empty() {
        "What BenchCloud (Wang 2014) would know of services, and some more, found out by experiment."
    } else {
        "As Tables 2.1 and 2.2 of BenchCloud (Wang 2014) ask it, found out by experiment."
    };
    let mut page = Page::new(title).text(text);
    // What a program does and what a store does are different questions, even where they are called the same.
    for (what, probed) in [("program", &programs), ("store", &stores)] {
        if !probed.is_empty() {
            page = table(page, what, probed);
        }
    }
    for (probed, warning) in all.iter().flat_map(|it| it.warnings.iter().map(move |w| (it, w))) {
        page = page.bad(format!("{}: {warning}", probed.name));
    }
    page
}

/// Adds the answers about several of one kind.
fn table(page: Page, what: &str, all: &[&Probed]) -> Page {
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
    let mut page = page.words(&headings, features.iter().map(row).collect());
    for feature in &features {
        let rows = all.iter().filter_map(|probed| {
            let Answer { answer, evidence, .. } = find(probed, feature)?;
            Some(vec![probed.name.clone(), answer, evidence])
        });
        page = page.heading(*feature).words(&[what, "answer", "evidence"], rows.collect());
    }
    page
}

fn kept(folder: &Path) -> Result<Option<Probed>, LabError> {
    let path = folder.join(format!("{NAME}.json"));
    if files::look(&path)?.is_none() {
        return Ok(None);
    }
    let read = serde_json::from_slice(&files::read(&path)?);
    read.map(Some).map_err(|source| LabError::Page { path, source })
}

fn warnings(findings: &Findings) -> Vec<String> {
    let noisy = findings.rows.iter().filter(|row| !row.is_silent).count();
    let missed = findings.missed;
    let warnings = [
        (missed > 0, format!("{missed} packets were not counted: the machine was too busy.")),
        (
            noisy > 0,
            format!("The wire was not silent after {noisy} steps: what came later is nowhere."),
        ),
        (findings.ended_early, "It was ended before all was tried.".to_owned()),
    ];
    warnings.into_iter().filter_map(|(holds, warning)| holds.then_some(warning)).collect()
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
    "turns",
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
        counts.turns.to_string(),
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
