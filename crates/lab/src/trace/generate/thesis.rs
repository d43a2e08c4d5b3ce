//! Datasets A to D of the Syncany thesis (2011, table 6.1) as traces: the first version is the initial tree, each further one what has changed since the one before.
//!
//! Files are those that `dataset/made.rs` makes, byte for byte: a trace has the dataset and its seed in its head, and whoever plays it makes the documents again. A file that changes
//! is written whole, as the programs do that save it. Versions come at an interval, of which the thesis says nothing.

use std::collections::BTreeSet;

use super::super::{Action, MadeDataset};
use super::{Sheet, Workload};
use crate::dataset::folder::Came;
use crate::dataset::series::Series;
use crate::digest::sha256_text;
use crate::error::LabError;

/// The versions of a dataset that is made.
#[derive(Debug, Clone)]
pub struct Thesis {
    /// What it is called among the presets.
    pub name: String,
    /// What is made.
    pub dataset: MadeDataset,
    /// How many clients make the changes, one version each in turn.
    pub clients: usize,
    /// Milliseconds from one version to the next. All changes of a version come at the same time.
    pub interval_ms: u64,
    /// How many versions are played at most.
    pub versions: usize,
}

impl Workload for Thesis {
    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> String {
        let MadeDataset { name, size, seed } = &self.dataset;
        let every = self.interval_ms;
        format!("versions of dataset {name}, {size:?}, seed {seed}, one in {every} ms")
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn dataset(&self) -> Option<MadeDataset> {
        Some(self.dataset.clone())
    }

    fn steps(&self, sheet: &mut Sheet<'_>) -> Result<(), LabError> {
        let MadeDataset { name, size, seed } = &self.dataset;
        let mut series = Series::new(name, *size, *seed)?;
        let mut paths = BTreeSet::new();
        for number in 0..self.versions.min(series.versions()) {
            for action in steps(&mut series, &mut paths)? {
                if number == 0 {
                    sheet.initial(action)?;
                } else {
                    let client = (number - 1) % self.clients.max(1);
                    sheet.change(number as u64 * self.interval_ms, client, action)?;
                }
            }
        }
        Ok(())
    }
}

/// What makes the next version of the one that has these paths.
fn steps(series: &mut Series, paths: &mut BTreeSet<String>) -> Result<Vec<Action>, LabError> {
    let version = series.version() + 1;
    let (mut new, mut writes, mut renames) = (BTreeSet::new(), Vec::new(), Vec::new());
    let mut gone = paths.clone();
    series.advance(&mut |path, came| {
        new.insert(path.to_owned());
        let path = path.to_owned();
        match came {
            Came::Kept(before) => {
                gone.remove(before);
                if before != path {
                    renames.push(Action::Rename { path: before.to_owned(), to: path });
                }
            }
            Came::New(bytes) => {
                gone.remove(&path);
                let (size, sha256) = (bytes.len() as u64, sha256_text(bytes));
                writes.push(Action::WriteVersion { path, version, size, sha256 });
            }
        }
        Ok(())
    })?;
    let (old_folders, new_folders) = (folders(paths), folders(&new));
    let make = |path: &String| Action::MakeFolder { path: path.clone() };
    let remove = |path: &String| Action::Remove { path: path.clone() };
    let mut steps: Vec<_> = new_folders.difference(&old_folders).map(make).collect();
    steps.extend(renames);
    steps.extend(gone.iter().map(remove));
    steps.extend(writes);
    // What lies in a folder goes before the folder.
    let empty: Vec<_> = old_folders.difference(&new_folders).collect();
    steps.extend(empty.into_iter().rev().map(remove));
    *paths = new;
    Ok(steps)
}

/// All folders that something lies in.
fn folders(paths: &BTreeSet<String>) -> BTreeSet<String> {
    let above = |path: &String| -> Vec<String> {
        path.match_indices('/').map(|(end, _)| path[..end].to_owned()).collect()
    };
    paths.iter().flat_map(above).collect()
}

#[cfg(test)]
mod tests;
