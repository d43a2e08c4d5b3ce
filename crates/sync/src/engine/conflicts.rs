//! Conflicts that wait for a decision, and deciding them.

use std::io::Read;

use model::environment::random_bytes;
use model::{NodeId, NodeKind, NodeRecord, RelativePath, TreeNode, TreeStore};

use super::Engine;
use crate::error::{MergeTrouble, Result, SyncError};
use crate::file_system::{FileError, FileKind};
use crate::text_merge::{TEXT_SIZE_MAX, merge_text};

/// A file that was kept because two sides changed the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Where the kept copy is.
    pub copy: RelativePath,
    /// Where the file is that it conflicts with, if it is still there.
    pub original: Option<RelativePath>,
    /// The kept copy.
    pub node: NodeId,
    /// Size of the kept copy in bytes.
    pub copy_size: u64,
    /// Size of the original in bytes.
    pub original_size: u64,
    /// How the device calls itself that made the copy, where the entry is known here.
    pub copy_device_name: String,
    /// Whether this device made the copy, so that its content is what was changed here.
    pub is_own_copy: bool,
}

/// What to keep of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The kept copy; it becomes the newest version of the original.
    Mine,
    /// The original; the copy goes to the trash.
    Theirs,
    /// Both, as two files.
    Both,
}

impl Engine {
    /// Returns the conflicts that wait for a decision, by path.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn conflicts(&self) -> Result<Vec<Conflict>> {
        let mut found = Vec::new();
        for (node, copy) in self.state.remote_conflicts()? {
            let Some(path) = self.remote_path(&node)? else { continue };
            let origin = copy.record.conflict.map(|origin| origin.node);
            let original = match origin {
                Some(origin) => self.state.node(&origin)?.filter(TreeNode::is_alive),
                None => None,
            };
            let (copy_device_name, is_own_copy) = self.maker_of(&node)?;
            found.push(Conflict {
                copy: path,
                original: origin.map(|origin| self.remote_path(&origin)).transpose()?.flatten(),
                node,
                copy_size: size_of(&copy.record),
                original_size: original.map_or(0, |original| size_of(&original.record)),
                copy_device_name,
                is_own_copy,
            });
        }
        found.sort_by(|one, other| one.copy.cmp(&other.copy));
        Ok(found)
    }

    /// Returns the name of the device that made a node, and whether it is this one.
    fn maker_of(&self, node: &NodeId) -> Result<(String, bool)> {
        let Some(first) = self.state.history(node)?.pop() else {
            return Ok((String::new(), false));
        };
        let Some(entry) = self.state.entry(first)? else { return Ok((String::new(), false)) };
        let is_own = entry.commit.device == self.options.device;
        let (name, _) = self.keys.commit_header(&entry.commit).unwrap_or_default();
        Ok((name, is_own))
    }

    pub(super) fn remote_path(&self, node: &NodeId) -> Result<Option<RelativePath>> {
        match model::tree::path_of(&self.state, node) {
            Ok(path) => Ok(path),
            Err(model::tree::PathError::Store(error)) => Err(error),
            Err(model::tree::PathError::Path(error)) => Err(error.into()),
        }
    }

    /// Decides the conflicts of a path: that of a kept copy, or all of an original. The folder must be in sync; the
    /// decision is an ordinary change, which this sends.
    ///
    /// # Errors
    /// [`SyncError::NoConflict`]; as [`Self::sync`].
    pub async fn resolve(&mut self, path: &RelativePath, keep: Keep) -> Result<Vec<Conflict>> {
        self.sync(crate::scan::Scope::Everything).await?;
        let meant = self.conflicts_of(path)?;
        for conflict in &meant {
            match (keep, &conflict.original) {
                (Keep::Theirs, Some(_)) => self.drop_copy(conflict)?,
                (Keep::Mine, Some(original)) => self.replace_by_copy(conflict, original, None)?,
                // Without an original there is only one version left.
                (Keep::Both, _) | (_, None) => self.unmark(conflict).await?,
            }
        }
        self.sync(crate::scan::Scope::Everything).await?;
        Ok(meant)
    }

    /// Decides the conflicts of a path by merging: the changes of both sides since the version that both started from,
    /// line by line. Where a line was changed by both, nothing is done. The folder must be in sync, as for
    /// [`Self::resolve`].
    ///
    /// # Errors
    /// [`SyncError::NoConflict`]; [`SyncError::NotMerged`] names the first that needs a person, those before it are
    /// decided; as [`Self::sync`].
    pub async fn resolve_by_merge(&mut self, path: &RelativePath) -> Result<Vec<Conflict>> {
        self.sync(crate::scan::Scope::Everything).await?;
        let meant = self.conflicts_of(path)?;
        let mut refused = None;
        let mut decided = Vec::new();
        for conflict in meant {
            let refuse = |trouble| SyncError::NotMerged { path: conflict.copy.clone(), trouble };
            let merged = match self.merged(&conflict).await? {
                Ok(merged) => merged,
                Err(trouble) => {
                    refused = Some(refuse(trouble));
                    break;
                }
            };
            let original = conflict.original.as_ref().expect("something was merged with it");
            self.replace_by_copy(&conflict, original, Some(&merged))?;
            decided.push(conflict);
        }
        self.sync(crate::scan::Scope::Everything).await?;
        refused.map_or(Ok(decided), Err)
    }

    /// Returns what a kept copy and its original make together.
    async fn merged(&mut self, conflict: &Conflict) -> Result<Result<Vec<u8>, MergeTrouble>> {
        let Some(original) = &conflict.original else { return Ok(Err(MergeTrouble::NoOriginal)) };
        let mark = self.state.node(&conflict.node)?.and_then(|copy| copy.record.conflict);
        let base = match mark.filter(|mark| mark.base > 0) {
            // A cleanup keeps what conflicts need, but it may have come before the conflict.
            Some(mark) if self.dropped()?.versions.contains_key(&(mark.node, mark.base)) => None,
            Some(mark) => self.record_of_version(&mark.node, mark.base).await?,
            None => None,
        };
        let Some(base) = base else { return Ok(Err(MergeTrouble::NoBase)) };
        let sizes = [size_of(&base), conflict.copy_size, conflict.original_size];
        if sizes.iter().any(|&size| size > TEXT_SIZE_MAX) {
            return Ok(Err(MergeTrouble::TooLarge));
        }
        let mut base_text = Vec::new();
        self.write_content(&base, &mut base_text).await?;
        let (ours, theirs) = (self.read_whole(original)?, self.read_whole(&conflict.copy)?);
        Ok(merge_text(&base_text, &ours, &theirs))
    }

    fn read_whole(&self, path: &RelativePath) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = self.environment.file_system.open(path)?;
        // A little more than may be, so that a file that grew meanwhile is seen.
        let read = file.take(TEXT_SIZE_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|error| other_failure(path, &error))?;
        Ok(bytes)
    }

    fn conflicts_of(&self, path: &RelativePath) -> Result<Vec<Conflict>> {
        let is_meant = |conflict: &Conflict| {
            conflict.copy == *path || conflict.original.as_ref() == Some(path)
        };
        let meant: Vec<_> = self.conflicts()?.into_iter().filter(is_meant).collect();
        if meant.is_empty() { Err(SyncError::NoConflict(path.clone())) } else { Ok(meant) }
    }

    fn drop_copy(&self, conflict: &Conflict) -> Result<()> {
        let file_system = &self.environment.file_system;
        match file_system.stat(&conflict.copy)? {
            Some(stat) => Ok(file_system.trash(&conflict.copy, &stat, "resolved")?),
            None => Ok(()),
        }
    }

    /// Gives the original the content of its kept copy, or `merged` where there is one, and trashes the copy.
    fn replace_by_copy(
        &self,
        conflict: &Conflict,
        original: &RelativePath,
        merged: Option<&[u8]>,
    ) -> Result<()> {
        let file_system = &self.environment.file_system;
        let Some(copy) = file_system.stat(&conflict.copy)? else { return Ok(()) };
        let replaced = file_system.stat(original)?;
        let token = u64::from_le_bytes(random_bytes(&*self.environment.random));
        if copy.kind == FileKind::Symlink {
            file_system.stage_link(
                token,
                &file_system.read_link(&conflict.copy)?,
                copy.modified,
            )?;
        } else {
            let mut staged = file_system.stage(token)?;
            let copied = match merged {
                Some(mut merged) => std::io::copy(&mut merged, &mut staged),
                None => std::io::copy(&mut file_system.open(&conflict.copy)?, &mut staged),
            };
            copied.map_err(|error| other_failure(original, &error))?;
            // What was merged is newer than both.
            let modified =
                if merged.is_some() { self.environment.clock.now() } else { copy.modified };
            staged.finish(copy.mode, modified)?;
        }
        file_system.make_durable()?;
        match replaced {
            // A user may have edited it since the sync; then it is in no history.
            Some(replaced) => file_system.replace(token, original, &replaced, "resolved")?,
            None => file_system.install(token, original, None)?,
        };
        file_system.make_durable()?;
        Ok(file_system.trash(&conflict.copy, &copy, "resolved")?)
    }

    /// Takes the mark off a kept copy: it is a file like any other from now on.
    async fn unmark(&mut self, conflict: &Conflict) -> Result<()> {
        let Some(remote) = self.state.node(&conflict.node)? else { return Ok(()) };
        let record = NodeRecord { conflict: None, ..remote.record };
        self.propose_record(conflict.node, remote.version, record).await
    }
}

fn other_failure(path: &RelativePath, error: &std::io::Error) -> FileError {
    FileError::Other { path: path.clone(), reason: error.to_string() }
}

fn size_of(record: &NodeRecord) -> u64 {
    match &record.kind {
        NodeKind::File(content) => content.size,
        _ => 0,
    }
}
