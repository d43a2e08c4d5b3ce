//! Which stores hold a serverless workspace, and how: the settings that all its devices share.
//!
//! *Participants*: every device of a workspace without a server. *Goals*: all devices place every object alike and
//! ask the same stores for agreement, knowing nothing but this record (MetaSync 2015, 3.3: the configuration is
//! agreed on like the data). *Non-goals*: where a device finds the secrets of a store; whether a store answers.
//! *Invariants*: stores have distinct ids and names; there are enough of them for the redundancy.
//!
//! The record is the payload of the settings node [`crate::NodeId::POOL`], so that a change of it is a commit, and of two
//! changes at once one is rejected by [`crate::decide`].

mod hint;

use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message};
use crate::commit::decode_text;
use crate::ids::StoreId;

pub use hint::{HintSeal, PoolHint};

/// How many stores a pool has at most.
pub const STORES_MAX: usize = 32;

/// The longest name of a store, in bytes.
pub const STORE_NAME_LENGTH_MAX: usize = 64;

/// The longest address of a store, in bytes.
pub const STORE_URL_LENGTH_MAX: usize = 1024;

/// How an object outlives the loss of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redundancy {
    /// So many whole copies, each in another store.
    Replicas(u8),
    /// `total` blocks, each in another store, of which any `data` give the object back.
    Erasure {
        /// How many blocks are needed.
        data: u8,
        /// How many there are.
        total: u8,
    },
}

impl Redundancy {
    /// In how many stores a part of each object lies.
    pub fn width(&self) -> u8 {
        match self {
            Self::Replicas(copies) => *copies,
            Self::Erasure { total, .. } => *total,
        }
    }

    /// How many stores may be lost without losing an object.
    pub fn losses(&self) -> u8 {
        match self {
            Self::Replicas(copies) => copies.saturating_sub(1),
            Self::Erasure { data, total } => total.saturating_sub(*data),
        }
    }
}

impl std::fmt::Display for Redundancy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Replicas(1) => formatter.write_str("one copy"),
            Self::Replicas(copies) => write!(formatter, "{copies} copies"),
            Self::Erasure { data, total } => write!(formatter, "{data} of {total} blocks"),
        }
    }
}

/// What the stores that agree may do wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FaultModel {
    /// A store may be gone, slow, full, read-only, for a while or for good; what it says is true.
    #[default]
    Crash,
    /// A store may say anything: leave out, reorder, tell different clients different things. It cannot forge signatures.
    Byzantine,
}

/// How many stores must agree where one of them may lie.
pub const BYZANTINE_STORES_MIN: usize = 4;

/// What a store of a pool is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreState {
    /// It takes new objects.
    Active,
    /// Its objects move to the others; it is still read.
    Draining,
}

/// A store of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreRecord {
    /// Which store, whatever its name and address.
    pub id: StoreId,
    /// How people call it; at most [`STORE_NAME_LENGTH_MAX`] bytes.
    pub name: String,
    /// Its address, without secrets; at most [`STORE_URL_LENGTH_MAX`] bytes.
    pub url: String,
    /// Its share of the objects, in proportion to those of the others; at least 1. People think of it as gigabytes.
    pub capacity: u32,
    /// What it is used for.
    pub state: StoreState,
    /// Whether it takes part in agreement on the log.
    pub agrees: bool,
    /// What it says that it is, since it was emptied and began anew; nothing where it never was.
    pub begun_anew: Option<StoreId>,
}

/// The stores of a workspace and what they keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// How objects outlive the loss of stores.
    pub redundancy: Redundancy,
    /// What is expected of the stores that agree.
    pub faults: FaultModel,
    /// The stores, in the order of their ids.
    pub stores: Vec<StoreRecord>,
}

/// Why a pool cannot be as it is proposed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPool {
    /// No store, or too many.
    #[error("a pool has 1 to {STORES_MAX} stores, not {0}")]
    StoreCount(usize),
    /// Two stores with one id or identity, or not in order.
    #[error("store {0} stands twice or in the wrong place")]
    Order(StoreId),
    /// Two stores with one name.
    #[error("two stores are called '{0}'")]
    Name(String),
    /// A store without share, or with too long a text.
    #[error("store '{name}': {reason}")]
    Store {
        /// Its name.
        name: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// The redundancy makes no sense by itself.
    #[error("{0} is no redundancy: blocks need 1 <= data < total, copies at least 1")]
    Redundancy(Redundancy),
    /// There are fewer stores than the redundancy needs.
    #[error("{redundancy} need {needed} stores that take objects, and there are {there}")]
    TooFewStores {
        /// What is wanted.
        redundancy: Redundancy,
        /// How many stores that takes.
        needed: u8,
        /// How many there are.
        there: usize,
    },
    /// No store takes part in agreement.
    #[error("no store takes part in agreement on the log")]
    NobodyAgrees,
    /// Too few stores agree for one of them to lie.
    #[error(
        "where a store may lie, {BYZANTINE_STORES_MIN} or more must agree on the log, and {0} can"
    )]
    TooFewAgree(usize),
}

impl PoolConfig {
    /// Makes a pool of stores that tell the truth, and brings them into order.
    ///
    /// # Errors
    /// [`InvalidPool`].
    pub fn new(redundancy: Redundancy, mut stores: Vec<StoreRecord>) -> Result<Self, InvalidPool> {
        stores.sort_by_key(|store| store.id);
        let pool = Self { redundancy, faults: FaultModel::Crash, stores };
        pool.check()?;
        Ok(pool)
    }

    /// Says what the stores that agree may do wrong.
    ///
    /// # Errors
    /// [`InvalidPool::TooFewAgree`].
    pub fn with_faults(self, faults: FaultModel) -> Result<Self, InvalidPool> {
        let pool = Self { faults, ..self };
        pool.check()?;
        Ok(pool)
    }

    /// Checks the invariants.
    ///
    /// # Errors
    /// [`InvalidPool`] names the first that is broken.
    pub fn check(&self) -> Result<(), InvalidPool> {
        if !(1..=STORES_MAX).contains(&self.stores.len()) {
            return Err(InvalidPool::StoreCount(self.stores.len()));
        }
        for pair in self.stores.windows(2) {
            if pair[0].id >= pair[1].id {
                return Err(InvalidPool::Order(pair[1].id));
            }
        }
        for (index, store) in self.stores.iter().enumerate() {
            store.check()?;
            if self.stores[..index].iter().any(|other| other.name == store.name) {
                return Err(InvalidPool::Name(store.name.clone()));
            }
            let is_known = |other: &StoreRecord| other.identity() == store.identity();
            if self.stores[..index].iter().any(is_known) {
                return Err(InvalidPool::Order(store.identity()));
            }
        }
        self.check_redundancy()?;
        match (self.group().count(), self.faults) {
            (0, _) => Err(InvalidPool::NobodyAgrees),
            (agreeing @ ..BYZANTINE_STORES_MIN, FaultModel::Byzantine) => {
                Err(InvalidPool::TooFewAgree(agreeing))
            }
            _ => Ok(()),
        }
    }

    fn check_redundancy(&self) -> Result<(), InvalidPool> {
        let redundancy = self.redundancy;
        let makes_sense = match redundancy {
            Redundancy::Replicas(copies) => copies >= 1,
            Redundancy::Erasure { data, total } => data >= 1 && data < total,
        };
        if !makes_sense {
            return Err(InvalidPool::Redundancy(redundancy));
        }
        let there = self.active().count();
        let needed = redundancy.width();
        if there < usize::from(needed) {
            return Err(InvalidPool::TooFewStores { redundancy, needed, there });
        }
        Ok(())
    }

    /// Returns the stores that take new objects.
    pub fn active(&self) -> impl Iterator<Item = &StoreRecord> {
        self.stores.iter().filter(|store| store.state == StoreState::Active)
    }

    /// Returns the stores that agree on the log.
    pub fn group(&self) -> impl Iterator<Item = &StoreRecord> {
        self.stores.iter().filter(|store| store.agrees)
    }

    /// Returns the store of an id.
    pub fn store(&self, id: StoreId) -> Option<&StoreRecord> {
        self.stores.iter().find(|store| store.id == id)
    }

    /// Returns the store that says that it is `identity`.
    pub fn identified(&self, identity: StoreId) -> Option<&StoreRecord> {
        self.stores.iter().find(|store| store.identity() == identity)
    }

    /// Returns the store of a name.
    pub fn store_named(&self, name: &str) -> Option<&StoreRecord> {
        self.stores.iter().find(|store| store.name == name)
    }
}

impl StoreRecord {
    /// Makes the record of a store that is new in a pool: it takes objects, and part in agreement.
    pub fn new(id: StoreId, name: String, url: String, capacity: u32) -> Self {
        let (state, agrees, begun_anew) = (StoreState::Active, true, None);
        Self { id, name, url, capacity, state, agrees, begun_anew }
    }

    /// Returns what the store says that it is. That changes when it is emptied: its share of the objects stays the same, and
    /// what it said in an agreement before does not count any more.
    pub fn identity(&self) -> StoreId {
        self.begun_anew.unwrap_or(self.id)
    }

    fn check(&self) -> Result<(), InvalidPool> {
        let refuse = |reason| Err(InvalidPool::Store { name: self.name.clone(), reason });
        if self.name.is_empty() || self.name.len() > STORE_NAME_LENGTH_MAX {
            return refuse("its name is empty or too long");
        }
        if self.url.is_empty() || self.url.len() > STORE_URL_LENGTH_MAX {
            return refuse("its address is empty or too long");
        }
        if self.capacity == 0 {
            return refuse("it has no capacity");
        }
        if self.begun_anew == Some(self.id) {
            return refuse("it began anew as what it was");
        }
        Ok(())
    }
}

fn decode_count(decoder: &mut Decoder<'_>) -> Result<u8, DecodeError> {
    let count = decoder.unsigned_max(STORES_MAX as u64)?;
    Ok(u8::try_from(count).expect("no more than the most stores"))
}

impl Encode for StoreRecord {
    fn encode(&self, encoder: &mut Encoder) {
        self.id.encode(encoder);
        encoder.byte_string(self.name.as_bytes());
        encoder.byte_string(self.url.as_bytes());
        encoder.unsigned(self.capacity.into());
        encoder.unsigned(match self.state {
            StoreState::Active => 0,
            StoreState::Draining => 1,
        });
        let began_anew = u64::from(self.begun_anew.is_some());
        encoder.unsigned(u64::from(self.agrees) | began_anew << 1);
        if let Some(identity) = &self.begun_anew {
            identity.encode(encoder);
        }
    }
}

impl Decode for StoreRecord {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let id = StoreId::decode(decoder)?;
        let name = decode_text(decoder, STORE_NAME_LENGTH_MAX)?;
        let url = decode_text(decoder, STORE_URL_LENGTH_MAX)?;
        let capacity = decoder.unsigned32()?;
        let state = match decoder.unsigned_max(1)? {
            0 => StoreState::Active,
            _ => StoreState::Draining,
        };
        let flags = decoder.unsigned_max(3)?;
        let begun_anew = if flags & 2 == 2 { Some(StoreId::decode(decoder)?) } else { None };
        Ok(Self { id, name, url, capacity, state, agrees: flags & 1 == 1, begun_anew })
    }
}

impl Encode for PoolConfig {
    fn encode(&self, encoder: &mut Encoder) {
        let may_lie = u64::from(self.faults == FaultModel::Byzantine) << 1;
        match self.redundancy {
            Redundancy::Replicas(copies) => {
                encoder.unsigned(may_lie);
                encoder.unsigned(copies.into());
            }
            Redundancy::Erasure { data, total } => {
                encoder.unsigned(1 | may_lie);
                encoder.unsigned(data.into());
                encoder.unsigned(total.into());
            }
        }
        encoder.list(&self.stores);
    }
}

impl Decode for PoolConfig {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let flags = decoder.unsigned_max(3)?;
        let redundancy = match flags & 1 {
            0 => Redundancy::Replicas(decode_count(decoder)?),
            _ => {
                Redundancy::Erasure { data: decode_count(decoder)?, total: decode_count(decoder)? }
            }
        };
        let faults = if flags & 2 == 2 { FaultModel::Byzantine } else { FaultModel::Crash };
        let pool = Self { redundancy, faults, stores: decoder.list()? };
        pool.check().map_err(|error| decoder.invalid("pool", error))?;
        Ok(pool)
    }
}

impl Message for PoolConfig {
    const MAGIC: u8 = b'O';
    const KIND: &'static str = "pool";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode_message, encode_message};

    fn store(number: u8) -> StoreRecord {
        StoreRecord::new(
            StoreId::from_bytes([number; 16]),
            format!("store{number}"),
            format!("file:/mnt/{number}"),
            10,
        )
    }

    fn pool(redundancy: Redundancy) -> Result<PoolConfig, InvalidPool> {
        PoolConfig::new(redundancy, (1..=5).rev().map(store).collect())
    }

    #[test]
    fn decoding_gives_the_pool_back() {
        for redundancy in [Redundancy::Replicas(2), Redundancy::Erasure { data: 3, total: 5 }] {
            let mut pool = pool(redundancy).expect("a pool");
            pool.stores[1].begun_anew = Some(StoreId::from_bytes([9; 16]));
            let bytes = encode_message(&pool);
            assert_eq!(decode_message::<PoolConfig>(&bytes).expect("decodes"), pool);
        }
    }

    #[test]
    fn pool_that_cannot_keep_its_promise_is_refused() {
        for redundancy in [
            Redundancy::Replicas(0),
            Redundancy::Replicas(6),
            Redundancy::Erasure { data: 3, total: 3 },
            Redundancy::Erasure { data: 0, total: 3 },
            Redundancy::Erasure { data: 3, total: 6 },
        ] {
            pool(redundancy).expect_err("impossible");
        }
        let mut draining = pool(Redundancy::Replicas(5)).expect("a pool");
        draining.stores[0].state = StoreState::Draining;
        assert!(matches!(draining.check(), Err(InvalidPool::TooFewStores { there: 4, .. })));
    }

    #[test]
    fn where_stores_may_lie_four_must_agree() {
        let lying =
            pool(Redundancy::Replicas(2)).and_then(|five| five.with_faults(FaultModel::Byzantine));
        let mut lying = lying.expect("five are enough");
        let bytes = encode_message(&lying);
        assert_eq!(decode_message::<PoolConfig>(&bytes).expect("decodes"), lying);
        lying.stores[0].agrees = false;
        lying.check().expect("four are enough");
        lying.stores[1].agrees = false;
        assert_eq!(lying.check(), Err(InvalidPool::TooFewAgree(3)));
    }

    #[test]
    fn stores_that_cannot_be_told_apart_are_refused() {
        let twice = PoolConfig::new(Redundancy::Replicas(1), vec![store(1), store(1)]);
        assert!(matches!(twice, Err(InvalidPool::Order(_))));
        let named = StoreRecord { name: "store1".to_owned(), ..store(2) };
        let twice = PoolConfig::new(Redundancy::Replicas(1), vec![store(1), named]);
        assert_eq!(twice, Err(InvalidPool::Name("store1".to_owned())));
        let anew = StoreRecord { begun_anew: Some(store(1).id), ..store(2) };
        let twice = PoolConfig::new(Redundancy::Replicas(1), vec![store(1), anew]);
        assert_eq!(twice, Err(InvalidPool::Order(store(1).id)));
        let anew = StoreRecord { begun_anew: Some(store(1).id), ..store(1) };
        let same = PoolConfig::new(Redundancy::Replicas(1), vec![anew]);
        assert!(matches!(same, Err(InvalidPool::Store { .. })), "{same:?}");
    }

    #[test]
    fn damaged_encoding_is_refused_and_never_panics() {
        let bytes = encode_message(&pool(Redundancy::Replicas(2)).expect("a pool"));
        for at in 0..bytes.len() {
            let _ = decode_message::<PoolConfig>(&bytes[..at]).expect_err("cut off");
            let mut changed = bytes.clone();
            changed[at] ^= 0x41;
            if let Ok(pool) = decode_message::<PoolConfig>(&changed) {
                pool.check().expect("only what may be is decoded");
            }
        }
    }
}
