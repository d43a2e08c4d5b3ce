//! Which stores hold which object: a pure function of the pool's configuration and the hash in the object's key.
//!
//! *Participants*: all devices of a workspace, none of which asks another. *Goals*: shares in proportion to capacity;
//! every device finds the same stores; a change of the configuration moves only what must move. *Non-goals*: how full
//! a store is, whether it answers. *Invariants*:
//!
//! * The order of two stores for an object depends on nothing but these two, their capacities and the object.
//! * So a store that comes, or grows, only takes; a store that goes, drains, or shrinks, only gives; the order of
//!   the others stays. One more copy is one more store of the same order.
//!
//! It is MetaSync's mapping (2015, Figure 6) with as many partitions as there are hashes. There a store has as many
//! virtual nodes as it has units of capacity, each with a pseudorandom rank, and what counts is its best rank. The best
//! of `c` uniform ranks is distributed as one exponentially distributed rank divided by `c`, so one hash a store does
//! what 2048 did, no table is needed, and what the partitions added to the variance is gone. The specification, with
//! test vectors, is `docs/design/placement.md`.

use model::pool::{PoolConfig, Redundancy, StoreState};

/// What the keys of the stores are derived with.
const KEY_CONTEXT: &str = "syncline pool v1: placement";

/// How many bits of a [`negative_log2`] are behind the point.
const LOG_FRACTION_BITS: u32 = 48;

/// The stores of a pool, prepared to be put in order for any object.
#[derive(Debug, Clone)]
pub struct Placement {
    redundancy: Redundancy,
    stores: Vec<PlacedStore>,
}

#[derive(Debug, Clone)]
struct PlacedStore {
    key: [u8; 32],
    capacity: u32,
    state: StoreState,
}

/// The stores of a pool in the order in which they are to hold one object. Stores are named by their places in
/// [`PoolConfig::stores`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOrder {
    stores: Vec<usize>,
    active: usize,
    width: usize,
    /// For each home, the index of the block that it holds.
    indexes: Vec<u8>,
}

impl Placement {
    /// Prepares the placement of a pool.
    pub fn new(config: &PoolConfig) -> Self {
        let stores = config.stores.iter().map(|store| PlacedStore {
            key: blake3::derive_key(KEY_CONTEXT, store.id.as_bytes()),
            capacity: store.capacity.max(1),
            state: store.state,
        });
        Self { redundancy: config.redundancy, stores: stores.collect() }
    }

    /// Returns the order of the stores for the object whose bytes have this BLAKE3-256.
    pub fn order(&self, object: &[u8; 32]) -> StoreOrder {
        let draws: Vec<Draw> = self.stores.iter().map(|store| store.draw(object)).collect();
        let mut stores: Vec<usize> = (0..draws.len()).collect();
        stores.sort_by(|&left, &right| {
            let is_draining = |store: usize| self.stores[store].state == StoreState::Draining;
            // Rank divided by capacity, without the division; a tie goes to the lower id, whose store comes first.
            let key = |a: usize, b: usize| {
                u128::from(draws[a].rank) * u128::from(self.stores[b].capacity)
            };
            is_draining(left)
                .cmp(&is_draining(right))
                .then_with(|| key(left, right).cmp(&key(right, left)))
                .then(left.cmp(&right))
        });
        let active = self.stores.iter().filter(|store| store.state == StoreState::Active).count();
        let width = usize::from(self.redundancy.width()).min(active);
        let indexes = match self.redundancy {
            Redundancy::Replicas(_) => Vec::new(),
            Redundancy::Erasure { total, .. } => {
                give_indexes(stores[..width].iter().map(|&store| draws[store].index), total)
            }
        };
        StoreOrder { stores, active, width, indexes }
    }
}

impl PlacedStore {
    fn draw(&self, object: &[u8; 32]) -> Draw {
        let hash = blake3::keyed_hash(&self.key, object);
        let word = |at: usize| {
            let bytes = &hash.as_bytes()[at..at + 8];
            u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
        };
        Draw { rank: negative_log2(word(0)), index: word(8) }
    }
}

/// What chance gives a store for an object, by its hash.
#[derive(Debug, Clone, Copy)]
struct Draw {
    /// An exponentially distributed number; the lowest in proportion to capacity is first.
    rank: u64,
    /// Which block it would like to hold, modulo their number.
    index: u64,
}

impl StoreOrder {
    /// Returns the stores that are to hold the object; of blocks, each holds the one of [`Self::index_of`].
    pub fn homes(&self) -> &[usize] {
        &self.stores[..self.width]
    }

    /// Returns the active stores behind the homes, which take what a home cannot take.
    pub fn substitutes(&self) -> &[usize] {
        &self.stores[self.width..self.active]
    }

    /// Returns all stores, those first where the object is most likely to be found.
    pub fn all(&self) -> &[usize] {
        &self.stores
    }

    /// Returns whether a store is one of the homes.
    pub fn is_home(&self, store: usize) -> bool {
        self.homes().contains(&store)
    }

    /// Returns which block a home is to hold; `None` for other stores and for whole copies.
    pub fn index_of(&self, store: usize) -> Option<u8> {
        let place = self.homes().iter().position(|&home| home == store)?;
        self.indexes.get(place).copied()
    }
}

/// Gives each home a block, in the order of the homes: the one that it likes, or the next that is free. So the loss
/// of one home changes the blocks of few others.
fn give_indexes(likes: impl Iterator<Item = u64>, total: u8) -> Vec<u8> {
    let mut is_taken = vec![false; usize::from(total)];
    likes
        .map(|like| {
            let liked = u8::try_from(like % u64::from(total)).expect("below a number of 8 bits");
            let free = (liked..total).chain(0..liked).find(|&index| !is_taken[usize::from(index)]);
            let index = free.expect("there are no more homes than blocks");
            is_taken[usize::from(index)] = true;
            index
        })
        .collect()
}

/// Returns 64 - log2(`word`), where 0 counts as 1, in units of 2^-48, rounded up. In whole numbers, so that all machines
/// agree on every bit.
fn negative_log2(word: u64) -> u64 {
    let word = word.max(1);
    let mut log = u64::from(word.ilog2());
    // A number in [1, 2) with 63 bits behind the point; each squaring tells the next bit of its logarithm.
    let mut mantissa = u128::from(word << word.leading_zeros());
    for _ in 0..LOG_FRACTION_BITS {
        mantissa = (mantissa * mantissa) >> 63;
        let bit = mantissa >> 64;
        mantissa >>= bit;
        log = log << 1 | u64::try_from(bit).expect("below 4 in 63 bits");
    }
    (64 << LOG_FRACTION_BITS) - log
}

#[cfg(test)]
mod tests;
