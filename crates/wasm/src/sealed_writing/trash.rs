//! What was deleted in a sealed workspace, and how it comes back.

use content::trash::DeletedNode;
use wasm_bindgen::prelude::wasm_bindgen;

use super::node_of;
use crate::failure::Failure;
use crate::sealed_workspace::{SealedNode, SealedWorkspace, milliseconds_of, text_of};

/// A file, folder or link that was deleted.
#[wasm_bindgen(getter_with_clone)]
pub struct SealedDeleted {
    /// What it was; its version is that of its deletion.
    pub node: SealedNode,
    /// The names of the folders above it, the topmost first.
    pub folders: Vec<String>,
    /// The entry of the log that deleted it.
    pub seq: f64,
    /// When that was, in milliseconds since 1970 by the clock of whoever did it.
    #[wasm_bindgen(js_name = "timeMs")]
    pub time_ms: f64,
    /// The id of the device that did it.
    pub device: String,
    /// What that device calls itself.
    #[wasm_bindgen(js_name = "deviceName")]
    pub device_name: String,
    /// Whether a folder above it is deleted, too.
    #[wasm_bindgen(js_name = "isInDeleted")]
    pub is_in_deleted: bool,
    /// Whether a cleanup has removed its content.
    #[wasm_bindgen(js_name = "isDropped")]
    pub is_dropped: bool,
}

impl SealedDeleted {
    fn new(found: &DeletedNode) -> Self {
        Self {
            node: SealedNode::of_record(&found.id, found.version, &found.record),
            folders: found.folders.iter().map(text_of).collect(),
            seq: found.deletion.seq as f64,
            time_ms: milliseconds_of(found.deletion.time),
            device: found.deletion.device.to_string(),
            device_name: found.deletion.device_name.clone(),
            is_in_deleted: found.is_in_deleted,
            is_dropped: found.is_dropped,
        }
    }
}

#[wasm_bindgen]
impl SealedWorkspace {
    /// Returns what is deleted, what was deleted last first.
    pub fn deleted(&self) -> Vec<SealedDeleted> {
        let found = self.replay.trash().list(self.replay.tree(), self.replay.versions());
        found.iter().map(SealedDeleted::new).collect()
    }

    /// Begins to bring nodes back that were deleted, of a folder what was deleted with it, too.
    ///
    /// # Errors
    /// `no_such`, `mounted`; `dropped` where a cleanup has removed the contents of all of them.
    #[wasm_bindgen(js_name = "bringBack")]
    pub fn bring_back(&mut self, nodes: Vec<String>) -> Result<u32, Failure> {
        let nodes = nodes.iter().map(|node| node_of(node)).collect::<Result<Vec<_>, _>>()?;
        let (tree, versions) = (self.replay.tree(), self.replay.versions());
        let revival = self.replay.trash().revive(tree, versions, &nodes)?;
        // What a cleanup condemns meanwhile is not brought back: then it counts for nothing.
        let seen = Some(self.replay.head());
        let deed = self.begin_changes(revival.changes, seen)?;
        self.deed_mut(deed)?.is_partial = revival.dropped > 0;
        Ok(deed)
    }
}
