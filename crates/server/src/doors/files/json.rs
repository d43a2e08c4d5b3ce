//! Nodes and versions as JSON.

use model::{NodeId, NodeKind, NodeRecord, RelativePath};
use serde::Serialize;

use super::path;
use crate::error::{Result, ServerError};
use crate::services::files::versions::VersionScan;
use crate::services::files::{FileNode, Version};

/// A file, folder or link.
#[derive(Debug, Serialize)]
pub(super) struct NodeLine {
    id: String,
    version: u64,
    etag: String,
    /// Percent-encoded.
    path: String,
    /// For people; bytes that are no text are replaced.
    name: String,
    #[serde(flatten)]
    matter: Matter,
    /// Whether it is one side of a conflict that nobody has decided yet.
    is_conflict: bool,
    /// The workspace that a folder is, where it is one of its own: what is in it is there.
    mounted: Option<String>,
}

/// What a node is, whatever its place.
#[derive(Debug, Serialize)]
pub(super) struct Matter {
    kind: &'static str,
    size: Option<u64>,
    /// Seconds since 1970.
    modified: Option<i64>,
    /// Nanoseconds after the second.
    modified_ns: Option<u32>,
    mode: Option<u32>,
    /// Where a symbolic link leads to.
    target: Option<String>,
}

impl Matter {
    const ROOT: Self = Self {
        kind: "folder",
        size: None,
        modified: None,
        modified_ns: None,
        mode: None,
        target: None,
    };

    pub(super) fn new(record: &NodeRecord) -> Self {
        let is_directory = record.kind.is_directory();
        let matter = Self {
            modified: (!is_directory).then_some(record.modified.seconds),
            modified_ns: (!is_directory).then_some(record.modified.nanoseconds),
            mode: Some(record.mode),
            ..Self::ROOT
        };
        match &record.kind {
            NodeKind::Directory => matter,
            NodeKind::File(content) => Self { kind: "file", size: Some(content.size), ..matter },
            NodeKind::Symlink(target) => {
                let target = String::from_utf8_lossy(target).into_owned();
                Self { kind: "link", target: Some(target), ..matter }
            }
        }
    }
}

impl NodeLine {
    pub(super) fn new(node: &FileNode, path: &RelativePath) -> Self {
        let name = path.split_last().map(|(_, name)| name);
        let name = name.map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned());
        let record = node.record.as_ref();
        Self {
            id: node.id.to_string(),
            version: node.version,
            etag: node.etag(),
            path: path::encode(path.as_bytes()),
            name: name.unwrap_or_default(),
            matter: record.map_or(Matter::ROOT, Matter::new),
            is_conflict: record.is_some_and(|record| record.conflict.is_some()),
            mounted: node.mounted.map(|workspace| workspace.to_string()),
        }
    }

    /// Returns the name, for people.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// Some of the nodes of a folder.
#[derive(Debug, Serialize)]
pub(super) struct FolderPage {
    nodes: Vec<NodeLine>,
    /// What to send as `start_after` for the next ones; nothing at the end.
    next: Option<String>,
}

impl FolderPage {
    pub(super) fn new(folder: &RelativePath, nodes: &[FileNode], limit: usize) -> Self {
        let name = |node: &FileNode| Some(node.record.as_ref()?.name.clone());
        let line = |node: &FileNode| {
            // A node that lies too deep for an address cannot be asked for.
            Some(NodeLine::new(node, &folder.join(&name(node)?).ok()?))
        };
        let last = nodes.last().filter(|_| nodes.len() == limit).and_then(name);
        Self {
            nodes: nodes.iter().filter_map(line).collect(),
            next: last.map(|name| path::encode(name.as_bytes())),
        }
    }
}

/// A version of a node.
#[derive(Debug, Serialize)]
pub(super) struct VersionLine {
    version: u64,
    /// The entry of the log that made it, which devices show as `vN`.
    seq: u64,
    /// Seconds since 1970.
    time: i64,
    device_id: String,
    device_name: String,
    is_deleted: bool,
    #[serde(flatten)]
    matter: Option<Matter>,
}

impl VersionLine {
    pub(super) fn new(version: &Version) -> Self {
        Self {
            version: version.version,
            seq: version.seq,
            time: version.time.seconds,
            device_id: version.device.to_string(),
            device_name: version.device_name.clone(),
            is_deleted: version.record.is_none(),
            matter: version.record.as_ref().map(Matter::new),
        }
    }
}

/// Some versions of a node, oldest first.
#[derive(Debug, Serialize)]
pub(super) struct VersionsAnswer {
    pub(super) node: String,
    pub(super) versions: Vec<VersionLine>,
    /// What to send as `cursor` for the next ones; nothing at the end.
    pub(super) next: Option<String>,
}

pub(super) fn write_cursor(scan: &VersionScan) -> String {
    format!("{}-{}-{}", scan.seq, scan.version, scan.fence)
}

pub(super) fn read_cursor(text: &str, node: NodeId) -> Result<VersionScan> {
    let numbers: Option<Vec<u64>> = text.split('-').map(|number| number.parse().ok()).collect();
    match numbers.as_deref() {
        // The numbers are read by the database as signed ones.
        Some(&[seq, version, fence]) if seq <= i64::MAX as u64 => {
            Ok(VersionScan { node, seq, version, fence })
        }
        _ => Err(ServerError::Invalid {
            what: "cursor",
            reason: "send what 'next' was in the answer before".to_owned(),
        }),
    }
}
