//! What a mounted folder held when it was mounted, as the merge base of the workspace in it.
//!
//! *Participants*: the engine of the workspace around the folder, which knows what lay in it; that of the workspace in it, which begins on this
//! device without a merge base. *Goals*: a file that others have changed since is an old version here and no edit. *Non-goals*: telling
//! that something was deleted here: what is not there is no evidence. *Invariants*: a path counts only if the folder
//! was up to date with it when it was mounted, and only if it is there; its file is read before it counts as unchanged; what is kept is
//! given out once, before it is used.

use std::collections::HashSet;

use model::codec::{Decoder, Encoder};
use model::path::PATH_LENGTH_MAX;
use model::{Mounts, NodeId, RelativePath, TreeStore, Versions};

use crate::engine::{At, Engine};
use crate::error::Result;
use crate::file_system::FileKind;
use crate::state::synced::kind_of;
use crate::state::{State, SyncedNode};

/// How the facts are called that hold the paths of what was up to date in a folder.
const BASE: &str = "mounted base of ";

/// Keeps the paths of what is up to date in mounted folders, before their rows are forgotten.
pub(super) fn keep(state: &mut State, mounts: &Mounts) -> Result<()> {
    let unsynced: HashSet<NodeId> = state.unsynced()?.into_iter().collect();
    for (folder, _) in mounts.iter() {
        let fact = format!("{BASE}{folder}");
        let paths = up_to_date(state, folder, &unsynced)?;
        if paths.is_empty() || state.fact(&fact)?.is_some() {
            continue;
        }
        let mut encoder = Encoder::default();
        encoder.unsigned(paths.len() as u64);
        for path in &paths {
            encoder.byte_string(path.as_bytes());
        }
        state.set_fact(&fact, &encoder.into_bytes())?;
    }
    Ok(())
}

/// Returns the paths below a folder of all that is in the folder as the log has it, each after its directory.
fn up_to_date(
    state: &State,
    folder: &NodeId,
    unsynced: &HashSet<NodeId>,
) -> Result<Vec<RelativePath>> {
    let mut paths = Vec::new();
    let mut waiting = vec![(*folder, RelativePath::ROOT)];
    while let Some((directory, path)) = waiting.pop() {
        for row in state.synced_children(&directory)? {
            let is_known = row.pending.is_none()
                && !unsynced.contains(&row.node)
                && state.version(&row.node)? == row.version;
            let path = path.join(&row.record.name)?;
            if row.record.kind.is_directory() {
                waiting.push((row.node, path.clone()));
            }
            if is_known {
                paths.push(path);
            }
        }
    }
    paths.sort();
    Ok(paths)
}

/// Tells whether it is known what was up to date in a folder when it was mounted, and nobody has asked for it yet.
///
/// # Errors
/// [`crate::SyncError::Database`].
pub fn has_base(state: &State, folder: &NodeId) -> Result<bool> {
    Ok(state.fact(&format!("{BASE}{folder}"))?.is_some())
}

/// Gives out the paths of what was up to date in a folder when it was mounted, and forgets them: whoever uses them and is cut off does
/// without.
///
/// # Errors
/// [`crate::SyncError::Database`], [`crate::SyncError::Decode`].
pub fn take_base(state: &mut State, folder: &NodeId) -> Result<Vec<RelativePath>> {
    let fact = format!("{BASE}{folder}");
    let Some(bytes) = state.fact(&fact)? else { return Ok(Vec::new()) };
    state.forget_fact(&fact)?;
    let mut decoder = Decoder::new(&bytes);
    let mut paths = Vec::new();
    for _ in 0..decoder.unsigned()? {
        paths.push(RelativePath::new(decoder.byte_string(PATH_LENGTH_MAX)?)?);
    }
    decoder.finish()?;
    Ok(paths)
}

impl Engine {
    /// Takes what the log had at entry `since` for the merge base of what lies at these paths, where there is none yet and something of
    /// that kind is there. Returns for how many.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    pub async fn adopt_base(&mut self, since: u64, paths: &[RelativePath]) -> Result<u64> {
        self.bind_root()?;
        self.fetch().await?;
        if paths.is_empty() || self.state.synced_count()? > 0 {
            return Ok(0);
        }
        let tree = self.tree_at(At::Seq(since)).await?;
        let mut rows = Vec::new();
        for path in paths {
            let mut found = NodeId::ROOT;
            let is_there = path.names().all(|name| {
                let Ok(child) = tree.child(&found, &name);
                child.inspect(|child| found = *child).is_some()
            });
            let Some(node) = tree.get(&found).filter(|_| is_there) else { continue };
            let stat = self.environment.file_system.stat(path)?;
            if stat.is_none_or(|stat| stat.kind != kind_of(&node.record.kind)) {
                continue;
            }
            // Whether it is that version is known once it is read.
            let stat = stat.filter(|stat| stat.kind == FileKind::Directory);
            let (version, record) = (node.version, node.record.clone());
            rows.push(SyncedNode { node: found, version, record, stat, pending: None });
        }
        self.in_transaction(|engine| rows.iter().try_for_each(|row| engine.state.set_synced(row)))?;
        Ok(rows.len() as u64)
    }
}
