//! What two sides have changed at once in a sealed workspace, and what becomes of it.

use content::changing;
use content::conflicts::{self, Conflict, Decision, Keep, Resolution};
use content::noted::NoteCursor;
use model::{Mounts, NodeId};
use wasm_bindgen::prelude::wasm_bindgen;

use super::{What, node_of};
use crate::failure::Failure;
use crate::sealed_workspace::{SealedNode, SealedWorkspace, milliseconds_of};

/// A file, folder or link that was kept, and what it was kept beside.
#[wasm_bindgen(getter_with_clone)]
pub struct SealedConflict {
    /// What was kept.
    pub copy: SealedNode,
    /// The names of the folders above it, the topmost first.
    #[wasm_bindgen(js_name = "copyFolders")]
    pub copy_folders: Vec<String>,
    /// What it was kept beside; nothing where that was deleted.
    pub original: Option<SealedNode>,
    /// The names of the folders above that.
    #[wasm_bindgen(js_name = "originalFolders")]
    pub original_folders: Vec<String>,
    /// The id of the node that it conflicts with.
    #[wasm_bindgen(js_name = "originalId")]
    pub original_id: String,
    /// The version of that from which it was made; 0 where they have only a name in common.
    pub base: f64,
    /// The entry of the log that has kept it.
    pub seq: f64,
    /// When that was, in milliseconds since 1970 by the clock of whoever did it.
    #[wasm_bindgen(js_name = "timeMs")]
    pub time_ms: f64,
    /// The id of the device that did it.
    pub device: String,
    /// What that device calls itself.
    #[wasm_bindgen(js_name = "deviceName")]
    pub device_name: String,
}

/// Some of the conflicts, the newest first.
#[wasm_bindgen]
pub struct SealedConflicts {
    list: Vec<SealedConflict>,
    count: usize,
    next: Option<String>,
}

#[wasm_bindgen]
impl SealedConflicts {
    /// Gives them away.
    pub fn list(&mut self) -> Vec<SealedConflict> {
        std::mem::take(&mut self.list)
    }

    /// Returns how many there are of all.
    pub fn count(&self) -> f64 {
        self.count as f64
    }

    /// Returns behind what the list goes on; nothing at its end.
    pub fn next(&self) -> Option<String> {
        self.next.clone()
    }
}

#[wasm_bindgen]
impl SealedWorkspace {
    /// Returns up to `limit` conflicts that nobody has decided, the newest first, behind the `next` of an answer before.
    pub fn conflicts(&self, after: Option<String>, limit: u32) -> SealedConflicts {
        let tree = self.replay.tree();
        let Ok(mounts) = Mounts::of(tree);
        let conflicts = self.replay.conflicts();
        let after = after.as_deref().and_then(cursor_of);
        let (found, has_more) = conflicts.list(tree, &mounts, after, limit as usize, |_| true);
        let last = found.last().filter(|_| has_more);
        SealedConflicts {
            count: conflicts.count(tree, &mounts, |_| true),
            next: last.map(|last| format!("{}-{}", seq_of(last), last.copy)),
            list: found.iter().filter_map(|found| self.sides_of(found)).collect(),
        }
    }

    /// Begins to decide a conflict, as somebody has seen both sides: `keep` is `copy`, `original` or `both`, with the `name` that the copy
    /// has then. Where somebody else was first with a part of it, the rest is taken back.
    ///
    /// # Errors
    /// `no_such`, `changed`, `taken`, `name`, `mounted`.
    pub fn decide(
        &mut self,
        node: &str,
        version: f64,
        original_version: Option<f64>,
        keep: &str,
        name: Option<String>,
    ) -> Result<u32, Failure> {
        let keep = match keep {
            "copy" => Keep::Copy,
            "original" => Keep::Original,
            _ => Keep::Both(name.as_deref().map(changing::name_of).transpose()?),
        };
        let original_version = original_version.map(|version| version as u64);
        let (node, version) = (node_of(node)?, version as u64);
        let decision = Decision { node, version, original_version, keep: keep.clone() };
        let tree = self.replay.tree();
        let Resolution { changes, subject } = self.replay.conflicts().resolve(tree, &decision)?;
        let decided = conflicts::before(tree, &changes);
        let beside = original_version.filter(|_| keep == Keep::Original);
        let beside = beside.map(|version| (subject, version));
        // The copy goes when what it has stands elsewhere: whatever ends the page between the two leaves both, and the conflict.
        let waiting = match keep {
            Keep::Copy => changes.into_iter().map(|change| vec![change]).collect(),
            Keep::Original | Keep::Both(_) => changing::groups(changes).into(),
        };
        // What a cleanup condemns meanwhile is not made the newest version: then it counts for nothing.
        let seen = Some(self.replay.head());
        let number = self.begin_deed(What::Groups { waiting, seen })?;
        let deed = self.deed_mut(number)?;
        (deed.node, deed.decided, deed.beside) = (Some(subject), decided, beside);
        Ok(number)
    }
}

impl SealedWorkspace {
    fn sides_of(&self, found: &Conflict) -> Option<SealedConflict> {
        let (copy, copy_folders) = self.placed(found.copy)?;
        let original = found.original.and_then(|original| self.placed(original));
        let (original, original_folders) = original.unzip();
        let deed = found.deed.as_deref()?;
        Some(SealedConflict {
            copy,
            copy_folders,
            original,
            original_folders: original_folders.unwrap_or_default(),
            original_id: found.origin.node.to_string(),
            base: found.origin.base as f64,
            seq: deed.seq as f64,
            time_ms: milliseconds_of(deed.time),
            device: deed.device.to_string(),
            device_name: deed.device_name.clone(),
        })
    }
}

fn seq_of(found: &Conflict) -> u64 {
    found.deed.as_ref().map_or(0, |deed| deed.seq)
}

fn cursor_of(text: &str) -> Option<NoteCursor> {
    let (seq, id) = text.split_once('-')?;
    Some((seq.parse().ok()?, id.parse::<NodeId>().ok()?))
}
