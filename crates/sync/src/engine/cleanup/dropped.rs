//! What the fences of a log have removed.

use std::collections::{BTreeMap, BTreeSet};

use model::fold::{Folded, fold};
use model::{Entry, NodeId, PackId, Timestamp, Tree};

use crate::engine::Engine;
use crate::error::Result;

/// Which cleanup has removed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedBy {
    /// The entry that says so.
    pub fence: u64,
    /// When that was, by the clock of the device that cleaned up.
    pub time: Timestamp,
}

/// Everything that the fences of a log have removed.
#[derive(Debug, Default)]
pub(in crate::engine) struct Dropped {
    /// Versions whose contents are not kept any more.
    pub versions: BTreeMap<(NodeId, u64), DroppedBy>,
    /// Packs that may be removed from every store.
    pub condemned: BTreeSet<PackId>,
}

impl Dropped {
    /// Takes in what an entry has done.
    pub(super) fn note(&mut self, folded: &Folded, by: DroppedBy) {
        let Some(fence) = &folded.fence else { return };
        self.condemned.extend(&fence.condemned);
        for node in &fence.dropped {
            self.versions.extend(node.versions.iter().map(|version| ((node.node, *version), by)));
        }
    }
}

impl Engine {
    /// Returns what cleanups have removed, as far as the log is known here whole.
    pub(in crate::engine) fn dropped(&self) -> Result<Dropped> {
        match self.state.last_fence()? {
            0 => Ok(Dropped::default()),
            _ => self.dropped_with(&[]),
        }
    }

    /// Does the same with entries behind those that are folded here.
    pub(in crate::engine) fn dropped_with(&self, newer: &[Entry]) -> Result<Dropped> {
        let mut dropped = Dropped::default();
        let mut tree = Tree::default();
        let mut note = |entry: &Entry| {
            let Ok(folded) = fold(&mut tree, entry, &self.keys);
            if folded.fence.is_some() {
                let (_, time) = self.keys.commit_header(&entry.commit).unwrap_or_default();
                dropped.note(&folded, DroppedBy { fence: entry.seq, time });
            }
        };
        for seq in 1..=self.head()?.seq {
            if let Some(entry) = self.state.entry(seq)? {
                note(&entry);
            }
        }
        newer.iter().for_each(note);
        Ok(dropped)
    }
}
