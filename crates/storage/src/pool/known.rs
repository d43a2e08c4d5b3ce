//! What a pool remembers of objects in blocks, so that a range costs one request, and a whole no search.

use std::collections::{HashMap, VecDeque};

use crate::key::ObjectKey;

use super::block::BlockName;
use super::piece::{Piece, Placed};

/// Of how many objects something is remembered.
const OBJECTS_MAX: usize = 4096;

/// Where the blocks of an object are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// Length of the object in bytes.
    pub(crate) length: usize,
    /// Blocks of one code, and the stores that hold them.
    pub(crate) blocks: Vec<Placed>,
}

impl Known {
    /// Returns the store that holds a block.
    pub(crate) fn holder(&self, name: BlockName) -> Option<usize> {
        let is_it = |(_, piece): &&Placed| *piece == Piece::Block(name);
        self.blocks.iter().find(is_it).map(|(member, _)| *member)
    }
}

/// What is remembered; the oldest is forgotten first.
#[derive(Debug, Default)]
pub(crate) struct KnownBlocks {
    objects: HashMap<ObjectKey, Known>,
    order: VecDeque<ObjectKey>,
}

impl KnownBlocks {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Known> {
        self.objects.get(key).cloned()
    }

    pub(crate) fn insert(&mut self, key: &ObjectKey, known: Known) {
        if self.objects.insert(key.clone(), known).is_none() {
            self.order.push_back(key.clone());
        }
        if self.order.len() > OBJECTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.objects.remove(&oldest);
        }
    }

    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        if self.objects.remove(key).is_some() {
            self.order.retain(|kept| kept != key);
        }
    }
}
