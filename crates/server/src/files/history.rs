//! The versions of a node: read from the log, piece by piece, since only people ask and nobody asks often.

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

impl App {
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
