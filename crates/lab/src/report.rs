//! All experiments that were run, on one page that can be read from top to bottom.

use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::experiment::{EXPERIMENTS, Experiment};
use crate::files;
use crate::page::{self, Page};

/// What is on a report.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    /// Where it is.
    pub page: PathBuf,
    /// Experiments that are on it.
    pub with: Vec<&'static str>,
    /// Experiments without results.
    pub without: Vec<&'static str>,
}

/// Puts the pages of all experiments that have results below a folder into `report.html` there.
///
/// # Errors
/// [`LabError::NoResults`], [`LabError::Page`] for a page that cannot be understood, [`LabError::Read`], [`LabError::Write`].
pub fn write(results: &Path) -> Result<Report, LabError> {
    let (mut pages, mut without) = (Vec::new(), Vec::new());
    for experiment in EXPERIMENTS {
        match kept(results, &experiment)? {
            Some(page) => {
                let Experiment { name, paper, shows, .. } = experiment;
                pages.push((name, format!("{paper}: {shows}."), page));
            }
            None => without.push(experiment.name),
        }
    }
    if pages.is_empty() {
        return Err(LabError::NoResults { folder: results.to_owned() });
    }
    let path = results.join("report.html");
    let with = pages.iter().map(|(name, ..)| *name).collect();
    files::write(&path, page::report("The papers, measured again", &pages))?;
    Ok(Report { page: path, with, without })
}

/// Reads the page of an experiment, if it has one.
fn kept(results: &Path, experiment: &Experiment) -> Result<Option<Page>, LabError> {
    let name = experiment.name;
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

    #[test]
    fn a_report_has_what_was_measured_and_names_what_was_not() {
        let room = tempfile::tempdir().unwrap();
        let error = write(room.path()).unwrap_err();
        assert!(matches!(error, LabError::NoResults { .. }), "{error}");

        let [first, second] = [EXPERIMENTS[0].name, EXPERIMENTS[1].name];
        let path = room.path().join(second).join(format!("{second}.page.json"));
        let page = Page::new("What a share is").text("It is kept.");
        files::write(&path, serde_json::to_string(&page).unwrap()).unwrap();
        let report = write(room.path()).unwrap();
        assert!(report.with == [second] && report.without.contains(&first), "{report:?}");
        let html = String::from_utf8(files::read(&report.page).unwrap()).unwrap();
        assert!(html.contains(&format!("<h2 id=\"{second}\">What a share is</h2>")), "{html}");
        assert!(html.contains("<p>It is kept.</p>"), "{html}");

        files::write(&path, "{").unwrap();
        let error = write(room.path()).unwrap_err();
        assert!(matches!(error, LabError::Page { .. }), "{error}");
    }
}
