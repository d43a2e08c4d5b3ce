//! The small packs that travelled in the log last, kept as they are.
//!
//! A file that is edited again and again is made from what each edit has brought: without this the log is read, and its entry unpacked, once
//! for each of them. *Invariants*: what is kept is bounded; a pack that is not kept is read from the log.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use content::PackIndex;
use model::PackId;

/// About how many bytes of memory the packs of a workspace take: a thousand small edits.
const WEIGHT_MAX: usize = 1024 * 1024;

/// About how many bytes of memory a pack takes beside its own: its places here.
const PACK_WEIGHT: usize = 256;

/// About how many bytes of memory each of its chunks takes in its index, and the record in which it may be alone.
const CHUNK_WEIGHT: usize = 80;

/// A pack that is kept.
#[derive(Debug, Clone)]
pub struct InlinePack {
    /// All of it.
    pub bytes: Bytes,
    /// What is in it.
    pub index: Arc<PackIndex>,
}

impl InlinePack {
    fn weight(&self) -> usize {
        self.bytes.len() + PACK_WEIGHT + self.index.chunks().len() * CHUNK_WEIGHT
    }
}

/// The packs that came last.
#[derive(Debug, Default)]
pub struct InlinePacks {
    packs: HashMap<PackId, InlinePack>,
    /// The same in the order in which they came.
    order: VecDeque<PackId>,
    weight: usize,
}

impl InlinePacks {
    /// Returns a pack, if it is kept.
    pub fn get(&self, id: &PackId) -> Option<&InlinePack> {
        self.packs.get(id)
    }

    /// Keeps a pack, and forgets those that came first where there are too many.
    pub fn keep(&mut self, id: PackId, bytes: &[u8], index: PackIndex) {
        let pack = InlinePack { bytes: Bytes::copy_from_slice(bytes), index: Arc::new(index) };
        let weight = pack.weight();
        if self.packs.insert(id, pack).is_some() {
            return;
        }
        self.order.push_back(id);
        self.weight += weight;
        while self.weight > WEIGHT_MAX
            && let Some(first) = self.order.pop_front()
        {
            let gone = self.packs.remove(&first);
            self.weight -= gone.map_or(0, |pack| pack.weight());
        }
    }

    /// Returns about how many bytes of memory this takes.
    pub fn weight(&self) -> usize {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use content::{PackWriter, Transform, WorkspaceKeys};
    use model::ChunkRef;

    use super::*;
    use crate::testing::{Counter, TestApp};

    #[tokio::test]
    async fn packs_that_came_last_are_kept_and_no_more_than_fit() {
        let home = &TestApp::start().home;
        let keys = WorkspaceKeys::open(home, None, Arc::new(Counter::default())).unwrap();
        let mut writer = PackWriter::new(Transform::default(), &keys.packs()).unwrap();
        let chunk = ChunkRef { id: keys.content().namer().name(b"some"), length: 4 };
        writer.push(chunk, b"some").unwrap();
        let index = writer.finish().unwrap().index;

        let mut kept = InlinePacks::default();
        let packs = (0..40).map(|number| (PackId::from_bytes([number; 32]), vec![number; 60_000]));
        let packs: Vec<_> = packs.collect();
        for (id, bytes) in &packs {
            kept.keep(*id, bytes, index.clone());
            kept.keep(*id, bytes, index.clone());
        }
        let weight = 60_000 + PACK_WEIGHT + CHUNK_WEIGHT;
        let fit = WEIGHT_MAX / weight;
        assert_eq!(kept.weight(), fit * weight);
        let (gone, left) = packs.split_at(packs.len() - fit);
        assert!(gone.iter().all(|(id, _)| kept.get(id).is_none()));
        assert!(left.iter().all(|(id, bytes)| kept.get(id).unwrap().bytes == bytes));
    }
}
