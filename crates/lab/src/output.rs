//! Where figures go: tables for people, CSV with every single run, SVG.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::LabError;
use crate::files;
use crate::page::Page;

/// Folders for results.
pub struct Output {
    /// For tables of raw figures.
    pub csv: PathBuf,
    /// For drawings.
    pub svg: PathBuf,
}

impl Output {
    /// Makes the folders.
    ///
    /// # Errors
    /// [`LabError::Write`], as of all that follow.
    pub fn new(csv: PathBuf, svg: PathBuf) -> Result<Self, LabError> {
        for folder in [&csv, &svg] {
            std::fs::create_dir_all(folder)
                .map_err(|source| LabError::Write { path: folder.clone(), source })?;
        }
        Ok(Self { csv, svg })
    }

    /// Makes a folder for a run that writes over nothing.
    ///
    /// # Errors
    /// [`LabError::NotEmpty`], [`LabError::Write`].
    pub fn of_run(folder: &Path) -> Result<Self, LabError> {
        files::demand_empty(folder)?;
        Self::new(folder.to_owned(), folder.to_owned())
    }

    /// Writes raw figures.
    ///
    /// # Errors
    /// [`LabError::Write`].
    pub fn write_csv(&self, name: &str, text: &str) -> Result<(), LabError> {
        files::write(&self.csv.join(format!("{name}.csv")), text)
    }

    /// Writes what people read.
    ///
    /// # Errors
    /// [`LabError::Write`].
    pub fn write_report(&self, name: &str, text: &str) -> Result<(), LabError> {
        files::write(&self.csv.join(format!("{name}.md")), text)
    }

    /// Writes a page: for browsers, for people who read text, with its drawings in files of their own, and so that a report can have it.
    ///
    /// # Errors
    /// [`LabError::Write`].
    pub fn write_page(&self, name: &str, page: &Page) -> Result<(), LabError> {
        for (drawing, svg) in page.drawings() {
            self.write_svg(drawing, svg)?;
        }
        files::write(&self.csv.join(format!("{name}.html")), page.html())?;
        self.write_json(&format!("{name}.page"), &serde_json::json!(page))?;
        self.write_report(name, &page.markdown())
    }

    /// Writes what programs read.
    ///
    /// # Errors
    /// [`LabError::Write`].
    pub fn write_json(&self, name: &str, value: &serde_json::Value) -> Result<(), LabError> {
        files::write(&self.csv.join(format!("{name}.json")), format!("{value:#}\n"))
    }

    /// Writes a drawing.
    ///
    /// # Errors
    /// [`LabError::Write`].
    pub fn write_svg(&self, name: &str, text: &str) -> Result<(), LabError> {
        files::write(&self.svg.join(format!("{name}.svg")), text)
    }
}

/// Says something to whoever looks on.
pub fn say(line: &str) {
    // A closed pipe is no reason to stop.
    let _ = writeln!(io::stdout(), "{line}");
}

/// Returns the middle of some seconds.
pub fn median(times: &[Duration]) -> f64 {
    let mut seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    seconds.sort_by(f64::total_cmp);
    match seconds.len() {
        0 => 0.0,
        count if count % 2 == 1 => seconds[count / 2],
        count => (seconds[count / 2 - 1] + seconds[count / 2]) / 2.0,
    }
}

/// Returns the middle, the smallest and the largest, as text.
pub fn spread(times: &[Duration]) -> String {
    let seconds = times.iter().map(Duration::as_secs_f64);
    let (low, high) = seconds.fold((f64::MAX, 0.0_f64), |(low, high), s| (low.min(s), high.max(s)));
    format!("{:.2} ({low:.2}-{high:.2})", median(times))
}
