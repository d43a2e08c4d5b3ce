//! A folder of versions as a trace: its first version is the initial tree, each further one what has changed since the one before.
//!
//! Two releases of a source tree so make the intensive workload of WebR2sync+ (2018, section 6.2: 8755 pairs of files of Linux 4.5 and 4.6, first all old ones, then all new ones without a pause), and
//! a dataset of the Syncany thesis (2011, section 6.3.2) its own sequence of versions.
//!
//! Nothing of the contents goes into the trace, as in a record: which paths come, go and change, how large files are, of which kind, and where they change. Places are found line by line, in
//! files of any kind (`difference.rs`). Equal files have equal bytes when the trace is played; a file that has another path in the next version is a new one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::{Action, Edit, EditKind, FILE_SIZE_MAX, Place, data};
use super::{Sheet, Workload};
use crate::dataset::Dataset;
use crate::difference;
use crate::digest::sha256;
use crate::error::LabError;
use crate::files::{self, Found};

/// A folder that has a folder for each version.
#[derive(Debug, Clone)]
pub struct Versions {
    /// The versions, in order.
    pub dataset: Dataset,
    /// How many clients make the changes, one version each in turn.
    pub clients: usize,
    /// Milliseconds from one version to the next. All changes of a version come at the same time.
    pub interval_ms: u64,
}

impl Workload for Versions {
    fn name(&self) -> &str {
        &self.dataset.name
    }

    fn about(&self) -> String {
        let versions = &self.dataset.versions;
        let (first, last) = (&versions[0], &versions[versions.len() - 1]);
        let (count, every) = (versions.len(), self.interval_ms);
        format!("{count} versions of a folder, from {first} to {last}, one in {every} ms")
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn steps(&self, sheet: &mut Sheet<'_>) -> Result<(), LabError> {
        let mut old: Option<(PathBuf, BTreeMap<String, Found>)> = None;
        for (number, version) in self.dataset.versions.iter().enumerate() {
            let folder = self.dataset.folder.join(version);
            let tree = files::tree(&folder)?;
            if let Some((old_folder, old_tree)) = &old {
                let at_ms = number as u64 * self.interval_ms;
                let client = (number - 1) % self.clients.max(1);
                let mut out = |action| sheet.change(at_ms, client, action);
                remove(old_tree, &tree, &mut out)?;
                for (path, found) in &tree {
                    let is_kept = old_tree.get(path).is_some_and(|old| is_same_kind(*old, *found));
                    let before = is_kept.then(|| old_folder.join(path));
                    step(&folder, path, *found, before.as_deref())?.map_or(Ok(()), &mut out)?;
                }
            } else {
                for (path, found) in &tree {
                    let made = step(&folder, path, *found, None)?;
                    made.map_or(Ok(()), |action| sheet.initial(action))?;
                }
            }
            old = Some((folder, tree));
        }
        Ok(())
    }
}

fn is_same_kind(one: Found, other: Found) -> bool {
    matches!(
        (one, other),
        (Found::Folder, Found::Folder)
            | (Found::File { .. }, Found::File { .. })
            | (Found::Other, Found::Other)
    )
}

/// What is no more there, or something else: what lies in a folder before the folder.
fn remove(
    old: &BTreeMap<String, Found>,
    new: &BTreeMap<String, Found>,
    out: &mut dyn FnMut(Action) -> Result<(), LabError>,
) -> Result<(), LabError> {
    for (path, before) in old.iter().rev() {
        let is_kept = new.get(path).is_some_and(|now| is_same_kind(*before, *now));
        if !is_kept && *before != Found::Other {
            out(Action::Remove { path: path.clone() })?;
        }
    }
    Ok(())
}

/// What makes a path what it is in a version, from what it was before; nothing if it is the same.
fn step(
    folder: &Path,
    path: &str,
    found: Found,
    before: Option<&Path>,
) -> Result<Option<Action>, LabError> {
    let path = path.to_owned();
    match (found, before) {
        (Found::Other, _) | (Found::Folder, Some(_)) => Ok(None),
        (Found::Folder, None) => Ok(Some(Action::MakeFolder { path })),
        (Found::File { .. }, None) => Ok(Some(whole(&read(&folder.join(&path))?, path))),
        (Found::File { .. }, Some(before)) => {
            let (old, new) = (read(before)?, read(&folder.join(&path))?);
            if old == new {
                return Ok(None);
            }
            let edits = edits(&old, &new);
            let is_another = edits.iter().any(|edit| {
                edit.kind == EditKind::Cut
                    && edit.offset == Some(0)
                    && edit.size == old.len() as u64
            });
            let is_new = old.is_empty() || is_another;
            Ok(Some(if is_new { whole(&new, path) } else { Action::Edit { path, edits } }))
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, LabError> {
    match files::look(path)? {
        Some(Found::File { size }) if size > FILE_SIZE_MAX => {
            Err(LabError::TooLarge { path: path.to_owned(), size })
        }
        _ => files::read(path),
    }
}

fn whole(bytes: &[u8], path: String) -> Action {
    Action::Write { path, size: bytes.len() as u64, data: data::kind_of(bytes), seed: seed(bytes) }
}

fn edits(old: &[u8], new: &[u8]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for hunk in difference::hunks(old, new) {
        // All hunks before this one are done when it comes, so that it begins where it is in the new file.
        let offset = Some(hunk.new.start as u64);
        let place = Place::Offset;
        if !hunk.old.is_empty() {
            let size = hunk.old.len() as u64;
            edits.push(Edit { place, offset, kind: EditKind::Cut, size, seed: 0 });
        }
        if !hunk.new.is_empty() {
            let size = hunk.new.len() as u64;
            let seed = seed(&new[hunk.new.clone()]);
            edits.push(Edit { place, offset, kind: EditKind::Insert, size, seed });
        }
    }
    edits
}

/// Equal bytes have equal seeds.
fn seed(bytes: &[u8]) -> u64 {
    let digest = sha256(bytes);
    let first = digest.first_chunk().expect("SHA-256 has 32 bytes");
    u64::from_le_bytes(*first)
}

#[cfg(test)]
mod tests;
