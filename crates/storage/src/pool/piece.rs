//! What one store holds of an object, and what it should hold.

use crate::key::ObjectKey;
use crate::placement::StoreOrder;

use super::block::{BlockCode, BlockName, parse_key};

/// What a store holds of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Piece {
    /// All of it.
    Copy,
    /// A block of it.
    Block(BlockName),
}

impl Piece {
    /// Returns the key under which a store holds this piece of `object`.
    ///
    /// # Panics
    /// When the key does not name its content.
    pub fn key(self, object: &ObjectKey) -> ObjectKey {
        match self {
            Self::Copy => object.clone(),
            Self::Block(name) => name.key(object),
        }
    }

    /// Returns the object and the piece, when the key is that of a piece of an object that a pool holds.
    pub fn parse(key: &ObjectKey) -> Option<(ObjectKey, Self)> {
        if key.names_its_content() {
            return Some((key.clone(), Self::Copy));
        }
        parse_key(key).map(|(object, name)| (object, Self::Block(name)))
    }
}

/// A piece in a store, which is named by its place in the configuration.
pub type Placed = (usize, Piece);

/// What is to be where, in the light of what is there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrangement {
    /// Pieces at home.
    pub(crate) kept: Vec<Placed>,
    /// Pieces that homes lack.
    pub(crate) lacking: Vec<Placed>,
    /// Pieces that are not needed once nothing is lacking.
    pub(crate) surplus: Vec<Placed>,
}

/// Compares what is there with what should be. A block is at home in any home, whichever index it has, as long as no
/// other home has the same: what need not move does not.
pub(crate) fn arrange(
    order: &StoreOrder,
    code: Option<BlockCode>,
    present: &[Placed],
) -> Arrangement {
    let mut arrangement = match code {
        None => arrange_copies(order, present),
        Some(code) => arrange_blocks(order, code, present),
    };
    let kept = &arrangement.kept;
    arrangement.surplus = present.iter().filter(|placed| !kept.contains(placed)).copied().collect();
    arrangement
}

fn arrange_copies(order: &StoreOrder, present: &[Placed]) -> Arrangement {
    let homes = order.homes().iter().map(|&home| (home, Piece::Copy));
    let (kept, lacking) = homes.partition(|placed| present.contains(placed));
    Arrangement { kept, lacking, surplus: Vec::new() }
}

fn arrange_blocks(order: &StoreOrder, code: BlockCode, present: &[Placed]) -> Arrangement {
    let mut is_taken = vec![false; usize::from(code.total)];
    let mut given: Vec<Option<u8>> = vec![None; order.homes().len()];
    let mut kept = Vec::new();
    let block = |index| Piece::Block(BlockName { code, index });
    // First who has what it likes, then who has what nobody else has.
    for liked_only in [true, false] {
        for (home, given) in
            order.homes().iter().zip(&mut given).filter(|(_, given)| given.is_none())
        {
            let has = |index: &u8| {
                let is_liked = order.index_of(*home) == Some(*index);
                !is_taken[usize::from(*index)]
                    && (is_liked || !liked_only)
                    && present.contains(&(*home, block(*index)))
            };
            if let Some(index) = (0..code.total).find(has) {
                is_taken[usize::from(index)] = true;
                *given = Some(index);
                kept.push((*home, block(index)));
            }
        }
    }
    let mut lacking = Vec::new();
    for (home, _) in order.homes().iter().zip(&given).filter(|(_, given)| given.is_none()) {
        let liked = order.index_of(*home);
        let free = liked.into_iter().chain(0..code.total);
        if let Some(index) = free.into_iter().find(|index| !is_taken[usize::from(*index)]) {
            is_taken[usize::from(index)] = true;
            lacking.push((*home, block(index)));
        }
    }
    Arrangement { kept, lacking, surplus: Vec::new() }
}
