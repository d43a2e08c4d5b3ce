//! What the lists of all stores say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use model::ids::StoreId;

use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::pool::ask::Trail;
use crate::pool::block::BLOCKS;
use crate::pool::member::Member;
use crate::pool::piece::{Arrangement, Piece, Placed, arrange};
use crate::pool::{Pool, Shared};

/// How many objects are listed at once.
const PAGE: usize = 1000;

/// A store that could not be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnseenStore {
    /// Which store.
    pub store: StoreId,
    /// Its name.
    pub name: String,
    /// Why not.
    pub reason: String,
}

/// All pieces of all objects of a pool, as the stores list them.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    pub(crate) objects: BTreeMap<ObjectKey, Vec<(Placed, u64)>>,
    pub(crate) unseen: Vec<(usize, UnseenStore)>,
}

impl Inventory {
    /// Returns how many objects there are pieces of.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns whether there is no piece of any object.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns the objects in the order of their keys.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectKey> {
        self.objects.keys()
    }

    /// Returns the stores that could not be listed.
    pub fn unseen(&self) -> impl Iterator<Item = &UnseenStore> {
        self.unseen.iter().map(|(_, unseen)| unseen)
    }

    pub(crate) fn pieces(&self, object: &ObjectKey) -> Vec<Placed> {
        let pieces = self.objects.get(object).map(Vec::as_slice).unwrap_or_default();
        pieces.iter().map(|(placed, _)| *placed).collect()
    }

    pub(crate) fn is_unseen(&self, member: usize) -> bool {
        self.unseen.iter().any(|(unseen, _)| *unseen == member)
    }
}

impl Pool {
    /// Lists all stores.
    pub async fn inventory(&self) -> Inventory {
        let shared = &self.shared;
        let lists = (0..shared.members.len()).map(|member| shared.list_member(member));
        let mut inventory = Inventory::default();
        for (member, list) in join_all(lists).await.into_iter().enumerate() {
            match list {
                Ok(pieces) => {
                    for (object, piece, size) in pieces {
                        let of_object = inventory.objects.entry(object).or_default();
                        of_object.push(((member, piece), size));
                    }
                }
                Err(error) => {
                    let unseen = shared.unseen(member, &error);
                    inventory.unseen.push((member, unseen));
                }
            }
        }
        inventory
    }
}

impl Pool {
    /// Asks all stores what they have of some objects, for whoever looks at a few at a time. A store that does not answer for
    /// one of them counts as not listed.
    pub async fn inventory_of(&self, objects: &BTreeSet<ObjectKey>) -> Inventory {
        let shared = &self.shared;
        let mut inventory = Inventory::default();
        for object in objects.iter().filter(|object| object.names_its_content()) {
            let mut trail = Trail::default();
            let pieces = shared.locate(object, &mut trail).await;
            inventory.objects.insert(object.clone(), pieces);
            for (member, error) in trail.failed {
                if !inventory.is_unseen(member) {
                    inventory.unseen.push((member, shared.unseen(member, &error)));
                }
            }
        }
        inventory
    }
}

impl Shared {
    fn unseen(&self, member: usize, error: &StorageError) -> UnseenStore {
        let Member { id, name, .. } = &self.members[member];
        UnseenStore { store: *id, name: name.clone(), reason: error.to_string() }
    }

    async fn list_member(self: &Arc<Self>, member: usize) -> Result<Vec<(ObjectKey, Piece, u64)>> {
        let mut pieces = Vec::new();
        for prefix in [ObjectKey::PACKS, ObjectKey::PAGES, BLOCKS] {
            let mut after: Option<ObjectKey> = None;
            loop {
                let after_text = after.as_ref().map(ObjectKey::as_str);
                let found = self.list_page(member, prefix, after_text, PAGE).await?;
                let is_last = found.len() < PAGE;
                after = found.last().map(|entry| entry.key.clone());
                pieces.extend(found.into_iter().filter_map(|entry| {
                    let (object, piece) = Piece::parse(&entry.key)?;
                    Some((object, piece, entry.size))
                }));
                if is_last {
                    break;
                }
            }
        }
        Ok(pieces)
    }

    /// Compares what is there with what should be; a home that could not be listed is taken to have what it should.
    pub(crate) fn arrange_seen(
        &self,
        hash: &[u8; 32],
        inventory: &Inventory,
        present: &[Placed],
    ) -> Arrangement {
        let order = self.order(hash);
        let mut assumed = present.to_vec();
        let homes = match self.code() {
            None => order.homes().iter().map(|&home| (home, Piece::Copy)).collect(),
            Some(code) => self.home_blocks(&order, code),
        };
        let is_unseen = |placed: &Placed| inventory.is_unseen(placed.0);
        assumed.extend(homes.into_iter().filter(is_unseen));
        let mut arrangement = arrange(&order, self.code(), &assumed);
        arrangement.kept.retain(|placed| !is_unseen(placed));
        arrangement.lacking.retain(|placed| !is_unseen(placed));
        arrangement.surplus.retain(|placed| !is_unseen(placed));
        arrangement
    }
}

/// Returns whether some pieces give an object back, if they are undamaged.
pub(crate) fn are_enough(pieces: &[Placed]) -> bool {
    let mut blocks: Vec<_> = Vec::new();
    for (_, piece) in pieces {
        match piece {
            Piece::Copy => return true,
            Piece::Block(name) => blocks.push(*name),
        }
    }
    blocks.sort_unstable();
    blocks.dedup();
    blocks.chunk_by(|a, b| a.code == b.code).any(|of| of.len() >= usize::from(of[0].code.data))
}
