//! The versions of a node: read from the log, piece by piece, since only people ask and nobody asks often.

use content::activity::{Activity, ActivityScan};
use model::{NodeId, WorkspaceId};

use crate::app::App;
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::ENTRIES_LENGTH_MAX;
use crate::metadata::Metadata;
use crate::services::files::Version;
use crate::services::files::versions::VersionScan;
use crate::services::sync_service;

/// How many pieces of the log, of 3 MiB each as they are stored, are looked at for one answer.
const PIECES_MAX: usize = 32;

/// Some versions of a node, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionPage {
    /// The versions.
    pub versions: Vec<Version>,
    /// From where to go on; nothing at the end.
    pub next: Option<VersionScan>,
}

/// How many entries of the log one answer tells of at most.
const STRETCH: u64 = 256;

/// How many entries before those are looked at, to know what was there before them.
const STRETCH_BEFORE: u64 = 256;

/// What happened, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityPage {
    /// What happened.
    pub activity: Vec<Activity>,
    /// What is older than this entry comes next; nothing at the beginning of the log.
    pub next: Option<u64>,
}

impl App {
    /// Reads what happened before an entry: a stretch of the log, up to `limit` entries that changed something. There may be none in it
    /// though there are older ones.
    ///
    /// # Errors
    /// [`ServerError::NotFound`] where the workspace is not the caller's.
    pub async fn activity(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
        before: u64,
        limit: usize,
    ) -> Result<ActivityPage> {
        let first = before.saturating_sub(STRETCH).max(1);
        let mut since = first.saturating_sub(STRETCH_BEFORE + 1);
        let (mut scan, mut activity) = (ActivityScan::default(), Vec::new());
        while since + 1 < before {
            let read = move |metadata: &dyn Metadata| {
                let length_max = ENTRIES_LENGTH_MAX;
                let entries =
                    sync_service::entries(metadata, &caller, workspace, since, length_max)?;
                let mut found = Vec::new();
                for entry in entries.iter().take_while(|entry| entry.seq < before) {
                    found.extend(scan.note(entry).filter(|_| entry.seq >= first));
                }
                Ok((found, scan, entries.last().map(|entry| entry.seq)))
            };
            let (found, after, last) = self.readers.read(read).await?;
            (scan, since) = (after, last.unwrap_or(before));
            activity.extend(found);
        }
        activity.reverse();
        let is_cut = activity.len() > limit;
        activity.truncate(limit);
        let oldest = activity.last().map(|found| found.seq).filter(|_| is_cut);
        let next = oldest.or((first > 1).then_some(first));
        Ok(ActivityPage { activity, next })
    }

    /// Goes on with a scan until there are about `limit` versions, the log ends, or much of it was looked at.
    ///
    /// # Errors
    /// [`ServerError::NotFound`] where the workspace is not the caller's.
    pub async fn versions(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
        mut scan: VersionScan,
        limit: usize,
    ) -> Result<VersionPage> {
        let mut versions = Vec::new();
        for _ in 0..PIECES_MAX {
            let read = move |metadata: &dyn Metadata| {
                let length_max = ENTRIES_LENGTH_MAX;
                let entries =
                    sync_service::entries(metadata, &caller, workspace, scan.seq, length_max)?;
                let found: Vec<_> = entries.iter().filter_map(|entry| scan.note(entry)).collect();
                Ok((found, scan, entries.is_empty()))
            };
            let (found, after, is_end) = self.readers.read(read).await?;
            versions.extend(found);
            scan = after;
            if is_end {
                return Ok(VersionPage { versions, next: None });
            }
            if versions.len() >= limit {
                break;
            }
        }
        Ok(VersionPage { versions, next: Some(scan) })
    }

    /// Returns one version of a node.
    ///
    /// # Errors
    /// [`ServerError::NotFound`].
    pub async fn version(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
        node: NodeId,
        version: u64,
    ) -> Result<Version> {
        let mut scan = VersionScan::new(node);
        loop {
            let page = self.versions(caller, workspace, scan, 1).await?;
            if let Some(found) = page.versions.into_iter().find(|found| found.version == version) {
                return Ok(found);
            }
            match page.next {
                Some(next) if next.version < version => scan = next,
                _ => {
                    let what = format!("version {version} of node {node}");
                    return Err(ServerError::NotFound { what });
                }
            }
        }
    }
}
