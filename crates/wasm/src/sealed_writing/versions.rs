//! The versions of a file in a sealed workspace: what they were, their bytes, and how one is made the newest. In which entries they stand is
//! known; a page fetches these again.

use content::changing::ChangeError;
use content::reading::FileReading;
use content::versions::FoundVersion;
use model::{Content, NodeKind};
use wasm_bindgen::prelude::wasm_bindgen;

use super::{What, node_of};
use crate::failure::Failure;
use crate::sealed_workspace::{Reading, SealedWorkspace, entries_of, milliseconds_of, text_of};

/// A version of a file, folder or link.
#[wasm_bindgen(getter_with_clone)]
pub struct SealedVersion {
    /// Its number.
    pub version: f64,
    /// What it was called, where it was not deleted.
    pub name: Option<String>,
    /// The entry of the log that brought it.
    pub seq: f64,
    /// When that was, in milliseconds since 1970 by the clock of whoever did it.
    #[wasm_bindgen(js_name = "timeMs")]
    pub time_ms: f64,
    /// The id of the device that did it.
    pub device: String,
    /// What that device calls itself.
    #[wasm_bindgen(js_name = "deviceName")]
    pub device_name: String,
    /// Its length in bytes, where it is a file.
    pub size: Option<f64>,
    /// Whether it was deleted.
    #[wasm_bindgen(js_name = "isDeleted")]
    pub is_deleted: bool,
    /// Whether a cleanup has removed its content.
    #[wasm_bindgen(js_name = "isDropped")]
    pub is_dropped: bool,
}

impl SealedVersion {
    fn new(found: &FoundVersion) -> Self {
        Self {
            version: found.place.version as f64,
            name: found.record.as_ref().map(|record| text_of(&record.name)),
            seq: found.place.seq as f64,
            time_ms: milliseconds_of(found.time),
            device: found.device.to_string(),
            device_name: found.device_name.clone(),
            size: content_of(found).map(|content| content.size as f64),
            is_deleted: found.place.is_deletion,
            is_dropped: found.place.is_dropped,
        }
    }
}

#[wasm_bindgen]
impl SealedWorkspace {
    /// Returns the entries that have brought versions of a node, the newest first: up to `limit`, and those before one where that is given.
    ///
    /// # Errors
    /// `no_such` where there never was such a node.
    #[wasm_bindgen(js_name = "versionEntries")]
    pub fn version_entries(
        &self,
        node: &str,
        before: Option<f64>,
        limit: u32,
    ) -> Result<Vec<f64>, Failure> {
        let places = self.replay.versions().of(&node_of(node)?);
        if places.is_empty() {
            return Err(Failure::of("no_such", "there is no such node"));
        }
        let before = before.map_or(u64::MAX, |seq| seq as u64);
        let older = places.iter().rev().map(|place| place.seq).filter(|seq| *seq < before);
        Ok(older.take(limit as usize).map(|seq| seq as f64).collect())
    }

    /// Reads the version of a node that the entry of this number has brought, which stands in a server frame.
    ///
    /// # Errors
    /// `tampered` where it is not the entry that was folded under this number; `no_such`, `message`.
    pub fn version(&self, node: &str, seq: f64, frame: &[u8]) -> Result<SealedVersion, Failure> {
        Ok(SealedVersion::new(&self.found_version(node, seq, frame)?))
    }

    /// Begins to read a file as it was in a version, as [`begin`](Self::begin) does.
    ///
    /// # Errors
    /// As [`version`](Self::version); `dropped`.
    #[wasm_bindgen(js_name = "beginVersion")]
    pub fn begin_version(&mut self, file: &str, seq: f64, frame: &[u8]) -> Result<u32, Failure> {
        let found = self.kept_version(file, seq, frame)?;
        let content = content_of(&found).ok_or_else(|| Failure::of("no_such", "it is no file"))?;
        let reading = FileReading::new(content)?;
        Ok(self.begin_reading(Reading::File(Box::new(reading))))
    }

    /// Begins to make a file again what it was in a version.
    ///
    /// # Errors
    /// As [`begin_version`](Self::begin_version); `mounted`, and those of [`propose`](Self::propose).
    pub fn revert(&mut self, file: &str, seq: f64, frame: &[u8]) -> Result<u32, Failure> {
        let found = self.kept_version(file, seq, frame)?;
        let old = found.record.ok_or_else(|| Failure::of("no_such", "it was deleted then"))?;
        // What a cleanup condemns meanwhile is not brought back: then it counts for nothing.
        let (node, seen) = (node_of(file)?, self.replay.head());
        self.begin_deed(What::Revert { node, old: Box::new(old), seen })
    }
}

impl SealedWorkspace {
    fn found_version(&self, node: &str, seq: f64, frame: &[u8]) -> Result<FoundVersion, Failure> {
        let (node, entries) = (node_of(node)?, entries_of(frame)?);
        let entry = entries.first().ok_or_else(|| Failure::of("missing", "the entry is gone"))?;
        let found = self.replay.find_version(&node, seq as u64, entry)?;
        found.ok_or_else(|| Failure::of("no_such", "the entry has brought no such version"))
    }

    /// The same, where its content is there.
    fn kept_version(&self, node: &str, seq: f64, frame: &[u8]) -> Result<FoundVersion, Failure> {
        let found = self.found_version(node, seq, frame)?;
        match found.place.is_dropped {
            true => Err(ChangeError::Dropped { node: node_of(node)? }.into()),
            false => Ok(found),
        }
    }
}

fn content_of(found: &FoundVersion) -> Option<&Content> {
    match &found.record.as_ref()?.kind {
        NodeKind::File(content) => Some(content),
        NodeKind::Directory | NodeKind::Symlink(_) => None,
    }
}
