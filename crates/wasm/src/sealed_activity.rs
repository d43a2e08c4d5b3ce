//! What happened in a sealed workspace, told from entries that a page fetches again; what became of each node was noted as they were folded.

use content::activity::{Activity, ChangeSeen, Happened};
use content::changing;
use model::{Mounts, NodeId};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::sealed_workspace::{SealedNode, SealedWorkspace, entries_of, milliseconds_of};

/// A file, folder or link to which something happened.
#[wasm_bindgen(getter_with_clone)]
#[derive(Clone)]
pub struct SealedHappened {
    /// What it was then; of what was deleted, what it was last.
    pub node: SealedNode,
    /// What happened, by the words that servers have for it.
    pub happened: String,
    /// The entry with its version before, where it was called otherwise then.
    #[wasm_bindgen(js_name = "oldSeq")]
    pub old_seq: Option<f64>,
    /// What it is called now; nothing where it is gone.
    #[wasm_bindgen(js_name = "nameNow")]
    pub name_now: Option<String>,
    /// The names of the folders above it now, the topmost first.
    pub folders: Vec<String>,
}

/// What one entry of the log did.
#[wasm_bindgen(getter_with_clone)]
pub struct SealedActivity {
    /// Its number.
    pub seq: f64,
    /// When that was, in milliseconds since 1970 by the clock of whoever did it.
    #[wasm_bindgen(js_name = "timeMs")]
    pub time_ms: f64,
    /// The id of the device that did it.
    pub device: String,
    /// What that device calls itself.
    #[wasm_bindgen(js_name = "deviceName")]
    pub device_name: String,
    /// How many changes there were, of which `changes` has the first.
    pub count: f64,
    /// The first of them.
    pub changes: Vec<SealedHappened>,
}

/// What some entries did, the oldest first.
#[wasm_bindgen]
pub struct SealedActivities {
    list: Vec<SealedActivity>,
    last: Option<u64>,
}

#[wasm_bindgen]
impl SealedActivities {
    /// Gives it away.
    pub fn list(&mut self) -> Vec<SealedActivity> {
        std::mem::take(&mut self.list)
    }

    /// Returns the last entry that was looked at; nothing where there was none.
    pub fn last(&self) -> Option<f64> {
        self.last.map(|seq| seq as f64)
    }
}

/// A file, folder or link, and where it is.
#[wasm_bindgen(getter_with_clone)]
pub struct SealedPlace {
    /// What it is.
    pub node: SealedNode,
    /// The folders above it, the topmost first.
    pub folders: Vec<SealedNode>,
}

#[wasm_bindgen]
impl SealedWorkspace {
    /// Tells what the entries of a server frame did that follow one and are older than another, and that were folded.
    ///
    /// # Errors
    /// `tampered` where one is not what was folded under its number, or is left out; `message`.
    pub fn activity(
        &self,
        frame: &[u8],
        since: f64,
        before: f64,
    ) -> Result<SealedActivities, Failure> {
        let (mut list, mut last) = (Vec::new(), None);
        let entries = entries_of(frame)?;
        for (entry, seq) in entries.iter().zip(since as u64 + 1..before as u64) {
            if entry.seq != seq {
                return Err(Failure::of("tampered", &format!("entry {seq} was left out")));
            }
            list.extend(self.replay.activity(entry)?.map(|found| self.told(&found)));
            last = Some(entry.seq);
        }
        Ok(SealedActivities { list, last })
    }

    /// Finds a file, folder or link wherever it is by now.
    ///
    /// # Errors
    /// `no_such` where it is gone.
    pub fn find(&self, node: &str) -> Result<SealedPlace, Failure> {
        let gone = || Failure::of("no_such", "it is not there any more");
        let id = self.now(node.parse().map_err(|_| gone())?).ok_or_else(gone)?;
        let found = self.replay.tree().get(&id).ok_or_else(gone)?;
        let folders = self.way_to(found.record.parent);
        Ok(SealedPlace { node: SealedNode::new(&id, found), folders })
    }
}

impl SealedWorkspace {
    /// Returns a node that is there, with the names of the folders above it.
    pub(crate) fn placed(&self, id: NodeId) -> Option<(SealedNode, Vec<String>)> {
        let found = self.replay.tree().get(&id)?;
        let folders = self.way_to(found.record.parent);
        let names = folders.into_iter().map(|folder| folder.name).collect();
        Some((SealedNode::new(&id, found), names))
    }

    /// Returns the node that one is by now.
    fn now(&self, id: NodeId) -> Option<NodeId> {
        let tree = self.replay.tree();
        let Ok(mounts) = Mounts::of(tree);
        changing::follow(tree, &mounts, id)
    }

    fn told(&self, found: &Activity) -> SealedActivity {
        let change = |change: &ChangeSeen| self.happened(change, found.seq);
        SealedActivity {
            seq: found.seq as f64,
            time_ms: milliseconds_of(found.time),
            device: found.device.to_string(),
            device_name: found.device_name.clone(),
            count: found.count as f64,
            changes: found.changes.iter().filter_map(change).collect(),
        }
    }

    /// Nothing for what lies in a folder that is a workspace of its own by now.
    fn happened(&self, change: &ChangeSeen, seq: u64) -> Option<SealedHappened> {
        let ChangeSeen { node, version, happened, record, .. } = change;
        let tree = self.replay.tree();
        let Ok(mounts) = Mounts::of(tree);
        let Ok(is_frozen) = mounts.freeze(tree, node);
        if is_frozen {
            return None;
        }
        let brought = self.replay.versions().brought(node, seq);
        let old = brought.and_then(|(_, before)| before);
        let old = old.filter(|_| *happened == Happened::Renamed);
        let (now, folders) = self.now(*node).and_then(|id| self.placed(id)).unzip();
        Some(SealedHappened {
            node: SealedNode::of_record(node, *version, record.as_ref()?),
            happened: happened.word().to_owned(),
            old_seq: old.map(|place| place.seq as f64),
            name_now: now.map(|now| now.name),
            folders: folders.unwrap_or_default(),
        })
    }
}
