//! All tables and figures on one page that can be read from top to bottom: what was measured here, and of the rest what came of it where the
//! program was made.

use std::path::{Path, PathBuf};

use crate::environment;
use crate::error::LabError;
use crate::files;
use crate::inventory::{self, Entry, How};
use crate::notes;
use crate::output::Output;
use crate::page::{self, Page, Section};

/// What is on a report.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    /// Where it is.
    pub page: PathBuf,
    /// Experiments that have results of this computer on it.
    pub with: Vec<&'static str>,
    /// Experiments that could be run here, and have no results.
    pub without: Vec<&'static str>,
}

const WORDS: &str = "What five papers have printed, and what came of it when it was measured again. Where a part has results of this computer \
    (`syncline lab run NAME`), it shows these; otherwise those that lie in the source tree, in the folder `experiments`, with the raw figures beside them.";

/// Puts all experiments, with those results that there are below a folder, into `report.html` there.
///
/// # Errors
/// [`LabError::Page`] for a page that cannot be understood, [`LabError::Read`], [`LabError::Write`].
pub fn write(results: &Path) -> Result<Report, LabError> {
    let (mut sections, mut with, mut without) = (Vec::new(), Vec::new(), Vec::new());
    for entry in inventory::all() {
        let kept = kept(results, entry.name)?;
        if kept.is_some() {
            with.push(entry.name);
        } else if entry.how == How::Here {
            without.push(entry.name);
        }
        sections.push(section(&entry, kept));
    }
    let path = results.join("report.html");
    files::write(&path, page::report("The papers, measured again", WORDS, &sections))?;
    Ok(Report { page: path, with, without })
}

/// Makes empty, and returns, the folder into which the source tree writes what it measures: nothing of an earlier run is to be taken for it.
///
/// # Errors
/// [`LabError::Write`].
pub fn empty_runs(results: &Path, name: &str) -> Result<PathBuf, LabError> {
    let folder = results.join(name).join("runs");
    files::clear(&folder)?;
    files::make_folders(&folder)?;
    Ok(folder)
}

/// Makes the page of something that the source tree has measured, from what it wrote into a folder: the drawings that stand in its notes, and
/// its texts, if it wrote some.
///
/// # Errors
/// [`LabError::Read`], [`LabError::Write`].
pub fn gather(entry: &Entry, runs: &Path, output: &Output) -> Result<(), LabError> {
    let notes = inventory::notes(entry.name).unwrap_or_default();
    let mut names: Vec<String> = files::list(runs)?.into_iter().map(|(name, _)| name).collect();
    names.sort();
    let text = |name: &str| -> Result<String, LabError> {
        Ok(String::from_utf8_lossy(&files::read(&runs.join(name))?).into_owned())
    };
    let below = format!(
        "{} Every single run of it lies in {}.",
        entry.how.words(entry.name),
        runs.display()
    );
    let mut page = Page::new(notes::title(notes)).prose(below);
    for path in notes::images(notes) {
        // In the source tree some have the name of their benchmark in front.
        let known = path.rsplit('/').next().unwrap_or(path);
        if let Some(name) = names.iter().find(|name| is_called(known, name)) {
            page = page.drawing(known.trim_end_matches(".svg"), text(name)?);
        }
    }
    for name in names.iter().filter(|name| name.ends_with(".md")) {
        page = notes::add(page, &text(name)?, true, |_| None);
    }
    output.write_page(entry.name, &environment::end(page, &[]))
}

/// Whether a drawing of notes is this one, whose name may lack that of the benchmark.
fn is_called(known: &str, name: &str) -> bool {
    known == name || known.split_once('-').is_some_and(|(_, rest)| rest == name)
}

fn section(entry: &Entry, kept: Option<Page>) -> Section {
    let notes = inventory::notes(entry.name).unwrap_or_default();
    let drawing = |path: &str| inventory::drawing(entry.name, path);
    let title =
        kept.as_ref().map_or_else(|| notes::title(notes).to_owned(), |page| page.title.clone());
    let page = notes::add(Page::new(title), notes, kept.is_none(), drawing);
    let page = match kept {
        Some(kept) => page.heading("Measured here").append(kept),
        None => page,
    };
    let below = format!("{}: {}. {}", entry.paper, entry.shows, entry.how.words(entry.name));
    Section { name: entry.name.to_owned(), group: entry.paper.to_owned(), below, page }
}

/// Reads the page of an experiment, if it has one.
fn kept(results: &Path, name: &str) -> Result<Option<Page>, LabError> {
    let path = results.join(name).join(format!("{name}.page.json"));
    if files::look(&path)?.is_none() {
        return Ok(None);
    }
    let page = serde_json::from_slice(&files::read(&path)?);
    page.map(Some).map_err(|source| LabError::Page { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::EXPERIMENTS;

    fn html(report: &Report) -> String {
        String::from_utf8(files::read(&report.page).unwrap()).unwrap()
    }

    #[test]
    fn a_report_has_what_was_measured_and_names_what_was_not() {
        let room = tempfile::tempdir().unwrap();
        let report = write(room.path()).unwrap();
        assert!(report.with.is_empty() && report.without.len() == EXPERIMENTS.len(), "{report:?}");

        let [first, second] = [EXPERIMENTS[0].name, EXPERIMENTS[1].name];
        let path = room.path().join(second).join(format!("{second}.page.json"));
        let page = Page::new("What a share is").text("It is kept.");
        files::write(&path, serde_json::to_string(&page).unwrap()).unwrap();
        let report = write(room.path()).unwrap();
        assert!(report.with == [second] && report.without.contains(&first), "{report:?}");
        let html = html(&report);
        assert!(html.contains(&format!("<h2 id=\"{second}\">What a share is</h2>")), "{html}");
        assert!(html.contains("<p>It is kept.</p>"), "{html}");

        files::write(&path, "{").unwrap();
        let error = write(room.path()).unwrap_err();
        assert!(matches!(error, LabError::Page { .. }), "{error}");
    }

    #[test]
    fn what_the_source_tree_wrote_becomes_a_page_of_the_report() {
        let room = tempfile::tempdir().unwrap();
        let runs = room.path().join("runs");
        for (name, text) in [
            ("figure-7.svg", "<svg>without the name of its benchmark</svg>"),
            ("server-scaled-saturation.svg", "<svg>with it</svg>"),
            ("server-other.svg", "<svg>of something else</svg>"),
            ("server.md", "# Title\n\n## What is slow\n\n| one | two |\n|---|---|\n| 1 | 2 |\n"),
        ] {
            files::write(&runs.join(name), text).unwrap();
        }
        let entry = inventory::named("stacksync-figure-7").unwrap();
        let folder = room.path().join(entry.name);
        gather(&entry, &runs, &Output::of_run(&folder).unwrap()).unwrap();
        let report = write(room.path()).unwrap();
        assert_eq!(report.with, ["stacksync-figure-7"]);
        let html = html(&report);
        let (before, _) = html.split_once("<h2 id=\"stacksync-figure-5\"").unwrap();
        for wanted in
            ["without the name of its benchmark", "with it", "What is slow</h3>", "<td>2</td>"]
        {
            assert!(before.contains(wanted), "{wanted}: {before}");
        }
        assert!(!html.contains("of something else") && !before.contains("What came of it"));
    }

    #[test]
    fn what_needs_the_source_tree_is_on_it_with_its_drawings() {
        let room = tempfile::tempdir().unwrap();
        let html = html(&write(room.path()).unwrap());
        for entry in inventory::all() {
            assert!(html.contains(&format!("<h2 id=\"{}\">", entry.name)), "{}", entry.name);
        }
        assert!(html.contains("cargo xtask bench metasync") && html.matches("<svg").count() > 20);
    }
}
