//! Finding out what a pool lacks, and giving it back: check, repair, rebalance.
//!
//! *Goals*: a store that was lost, wiped or damaged is healed from the others; after a change of the configuration exactly what must
//! move moves. *Non-goals*: which objects are needed: the caller knows, and names those that it expects. *Invariants*:
//!
//! * A plan is a value, made of lists alone; to resume is to plan again. Two devices may carry out plans at once.
//! * A piece is removed only after all homes, read again just before, have theirs, and they give the object back.
//! * Nothing is removed by the word of an old configuration: [`CarryOut::may_remove`] is asked before every removal, and whoever
//!   answers knows that every device that could still follow an older configuration has stopped to. Two devices that
//!   disagree on the homes would otherwise each remove what the other keeps.
//!
//! ```text
//! inventory -> check -> plan_repair     -> carry_out
//! inventory          -> plan_rebalance  -> carry_out
//! ```

mod carry_out;
mod check;
mod inventory;
mod plan;

use model::ids::StoreId;

use crate::key::ObjectKey;

use super::piece::Piece;

pub use carry_out::{CarryOut, MayRemove, RepairOutcome};
pub use check::{CheckOptions, CheckReport, Depth};
pub use inventory::{Inventory, UnseenStore};
pub use plan::{Plan, Step};

/// Something that is not as it should be with an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Which object.
    pub object: ObjectKey,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// It cannot be restored: no copy and too few blocks are left, and all stores have answered.
    Lost,
    /// It cannot be restored from the stores that answer; the others may have it.
    OutOfReach,
    /// A store has a piece with other bytes than it should have.
    Damaged {
        /// The store.
        store: StoreId,
        /// What it has.
        piece: Piece,
    },
    /// A home lacks its piece.
    Missing {
        /// The home.
        store: StoreId,
        /// What it should have.
        piece: Piece,
    },
    /// A store has a piece for a home that lacks it.
    Misplaced {
        /// The store.
        store: StoreId,
        /// What it has.
        piece: Piece,
    },
    /// A store has a piece that is not needed.
    Surplus {
        /// The store.
        store: StoreId,
        /// What it has.
        piece: Piece,
    },
}

impl Problem {
    /// Returns whether the object has less redundancy than it should have.
    pub fn is_risk(&self) -> bool {
        !matches!(self, Self::Misplaced { .. } | Self::Surplus { .. })
    }
}

/// How far a check or a repair has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Objects that are done.
    pub objects_done: u64,
    /// All objects.
    pub objects: u64,
    /// Bytes that were read or written.
    pub bytes: u64,
}

/// Hears how far it has come.
pub type OnProgress<'a> = Option<&'a (dyn Fn(Progress) + Send + Sync)>;
