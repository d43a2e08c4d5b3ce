//! The tables and figures of the thesis, drawn from what was measured here, beside what it printed.

mod choice;
mod figures;
mod tables;

use super::configuration::Variant;
use super::outcome::{self, Method, Row};
use super::{Plan, RESTING_AT_ONCE};
use crate::environment::cores;
use crate::error::LabError;
use crate::output::Output;
use crate::page::Page;

/// The name of all results of this experiment.
const NAME: &str = "syncany-chunking";

/// Writes raw figures, and a page with all tables and drawings.
pub(super) fn write(rows: &[Row], plan: &Plan, output: &Output) -> Result<(), LabError> {
    output.write_csv(NAME, &outcome::csv(rows))?;
    output.write_page(NAME, &page(rows, plan))
}

fn page(rows: &[Row], plan: &Plan) -> Page {
    let mut page = Page::new("Chunking, multichunks and chains of the Syncany thesis").text(
        "Experiment 1 and the calculated part of experiment 3 (Heckel 2011, sections 6.4 and 6.6). In parentheses: what the thesis printed, \
         of its own datasets and on its own machine.",
    );
    for dataset in names(rows.iter().map(|row| &row.dataset)) {
        let versions: Vec<_> = of(rows, &dataset, |row| row.method == Method::Ours).collect();
        let bytes: u64 = versions.iter().map(|row| row.files.bytes).sum();
        let megabytes = bytes as f64 / 1e6;
        let count = versions.len();
        page =
            page.text(format!("dataset {dataset}: {count} versions, {megabytes:.1} MB together"));
    }
    let variants: Vec<_> = plan.variants.iter().map(Variant::to_string).collect();
    let at_once = cores();
    page = page
        .text(format!("chunkers: {}", variants.join(", ")))
        .text(format!(
            "configurations at once, each by one thread: {at_once}, and {} of those that rest; ours alone",
            at_once * RESTING_AT_ONCE
        ))
        .text(
            "ours: whole chunks, as a server and the web app store them. What devices store of edits, deltas, is measured by `syncline lab run \
             syncany-deltas`.",
        );
    page = tables::all(page, rows);
    if let Some(variant) = plan.variants.first() {
        page = choice::table(page, rows, *variant);
    }
    page = page.heading("Figures");
    figures::draw(rows).into_iter().fold(page, |page, (name, svg)| page.drawing(name, svg))
}

/// Returns each name once, in the order of their first appearance.
pub(super) fn names<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in all {
        if !found.contains(name) {
            found.push(name.clone());
        }
    }
    found
}

fn of<'a>(
    rows: &'a [Row],
    dataset: &'a str,
    is_wanted: impl Fn(&Row) -> bool + 'a,
) -> impl Iterator<Item = &'a Row> + 'a {
    rows.iter().filter(move |row| row.dataset == dataset && is_wanted(row))
}

/// Returns the variant of a row; nothing of ours.
fn variant(row: &Row) -> Option<Variant> {
    match row.method {
        Method::Thesis(_, variant) => Some(variant),
        Method::Ours => None,
    }
}
