//! Makes traces from the figures of a paper.
//!
//! Each workload is a file: [`stacksync`], [`webr2sync`], [`metasync`], [`iot`], [`homes`], [`ubuntuone`], [`thesis`]; [`versions`] takes a folder of versions instead of
//! figures. What a paper leaves open is chosen there, and the file says which is which.
//!
//! *Invariants*: steps are written one by one, and what is kept in memory grows with the files that are there, not with the steps; equal numbers and
//! seeds make equal traces.

use std::io::Write;
use std::path::Path;

use super::{Action, FORMAT, Head, MadeDataset, Step, write_line};
use crate::error::LabError;
use crate::files;

mod draw;
pub mod homes;
pub mod iot;
pub mod metasync;
pub(crate) mod places;
mod sizes;
pub mod stacksync;
pub mod thesis;
pub mod ubuntuone;
pub mod versions;
pub mod webr2sync;

pub use homes::Homes;
pub use iot::{Iot, Start};
pub use metasync::{Folder, MetaSync};
pub use places::Reading;
pub use stacksync::StackSync;
pub use thesis::Thesis;
pub use ubuntuone::UbuntuOne;
pub use versions::Versions;
pub use webr2sync::WebR2sync;

/// What happens to folders, made from numbers and a seed.
pub trait Workload {
    /// What it is called.
    fn name(&self) -> &str;

    /// With what it is made, for people.
    fn about(&self) -> String;

    /// How many clients take part.
    fn clients(&self) -> usize;

    /// Of which dataset its files are versions.
    fn dataset(&self) -> Option<MadeDataset> {
        None
    }

    /// Puts all steps on the sheet, in order.
    ///
    /// # Errors
    /// Those of the sheet, and [`LabError::Read`] and [`LabError::TooLarge`] of what is made from files.
    fn steps(&self, sheet: &mut Sheet<'_>) -> Result<(), LabError>;
}

/// How much a trace has in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Made {
    /// Files of the initial tree.
    pub tree_files: u64,
    /// Their bytes.
    pub tree_bytes: u64,
    /// Steps after that.
    pub changes: u64,
}

/// Where the steps of a trace are written.
pub struct Sheet<'a> {
    out: &'a mut dyn Write,
    path: &'a Path,
    made: Made,
}

impl Sheet<'_> {
    /// A step of the initial tree.
    fn initial(&mut self, action: Action) -> Result<(), LabError> {
        if let Action::Write { size, .. } | Action::WriteVersion { size, .. } = action {
            self.made.tree_files += 1;
            self.made.tree_bytes += size;
        }
        self.line(&Step { at_ms: None, client: 0, action })
    }

    /// A step after that.
    fn change(&mut self, at_ms: u64, client: usize, action: Action) -> Result<(), LabError> {
        self.made.changes += 1;
        self.line(&Step { at_ms: Some(at_ms), client, action })
    }

    /// How many steps come after the initial tree so far.
    fn changes(&self) -> u64 {
        self.made.changes
    }

    fn line(&mut self, value: &impl serde::Serialize) -> Result<(), LabError> {
        write_line(&mut self.out, value)
            .map_err(|source| LabError::Write { path: self.path.to_owned(), source })
    }
}

/// Writes a trace into a file where nothing is yet.
///
/// # Errors
/// [`LabError::Write`], and those of the workload.
pub fn save(workload: &dyn Workload, path: &Path) -> Result<Made, LabError> {
    let mut file = files::create(path)?;
    let made = write(workload, &mut file, path)?;
    file.flush().map_err(|source| LabError::Write { path: path.to_owned(), source })?;
    Ok(made)
}

pub(crate) fn write(
    workload: &dyn Workload,
    out: &mut dyn Write,
    path: &Path,
) -> Result<Made, LabError> {
    let mut sheet = Sheet { out, path, made: Made::default() };
    sheet.line(&Head {
        syncline_trace: FORMAT,
        name: workload.name().to_owned(),
        about: workload.about(),
        clients: workload.clients(),
        dataset: workload.dataset(),
    })?;
    workload.steps(&mut sheet)?;
    Ok(sheet.made)
}

/// Both may be empty: the folder that everything is in, and nothing in it.
fn join(folder: &str, name: &str) -> String {
    let between = if folder.is_empty() || name.is_empty() { "" } else { "/" };
    format!("{folder}{between}{name}")
}

#[cfg(test)]
mod tests;
