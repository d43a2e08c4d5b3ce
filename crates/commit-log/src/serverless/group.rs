//! The stores that agree on a slot, and how the devices know which they are.

use std::fmt::Debug;
use std::sync::Arc;

use model::{Entry, StoreId};
use storage::ObjectStore;

use super::certifier::Certifier;
use super::rounds::{FaultModel, Quorums};

/// Whether a commit may be proposed for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Open,
    /// The slot is known to be filled: it is read.
    Filled,
    /// This entry has changed the stores since the log was opened. What belongs to a commit may lie in stores that were left,
    /// so nothing is proposed before somebody has looked at that and opened the log anew.
    Changed {
        /// Which entry.
        seq: u64,
    },
}

/// A store under the name that the workspace knows it by.
#[derive(Debug, Clone)]
pub struct NamedStore {
    /// The name, for error texts; unique in its group.
    pub name: String,
    /// The way to it.
    pub store: Arc<dyn ObjectStore>,
}

/// The stores that agree on a slot. All devices must have the same, in any order.
#[derive(Debug, Clone)]
pub struct Group {
    stores: Vec<NamedStore>,
    certifier: Option<Arc<dyn Certifier>>,
    quorums: Quorums,
    /// The stores in the order in which they lead, one slot after the other.
    turns: Vec<usize>,
}

impl Group {
    /// Makes a group of at least one store. What they say is true; of 2f + 1 of them f may fail.
    pub fn new(stores: Vec<NamedStore>) -> Self {
        let quorums = Quorums::new(stores.len(), FaultModel::Crash);
        let names: Vec<String> = stores.iter().map(|store| store.name.clone()).collect();
        Self { stores, certifier: None, quorums, turns: turns(&names) }
    }

    /// Makes a group in which of 3f + 1 stores f may say anything.
    pub fn with_liars(stores: Vec<NamedStore>, certifier: Arc<dyn Certifier>) -> Self {
        let quorums = Quorums::new(stores.len(), FaultModel::Byzantine);
        Self { certifier: Some(certifier), quorums, ..Self::new(stores) }
    }

    /// Lets the stores lead in the order of their identities, one for each. All devices must have the same: names will do
    /// only where they never change.
    #[must_use]
    pub fn with_identities(mut self, identities: &[StoreId]) -> Self {
        assert_eq!(identities.len(), self.stores.len(), "every store has an identity");
        self.turns = turns(identities);
        self
    }

    /// Makes the group of one store.
    pub fn single(store: Arc<dyn ObjectStore>) -> Self {
        let name = store.describe();
        Self::new(vec![NamedStore { name, store }])
    }

    /// Returns the stores.
    pub fn stores(&self) -> &[NamedStore] {
        &self.stores
    }

    /// Returns the names of the stores, for error texts.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.stores.iter().map(|store| store.name.as_str()).collect();
        names.join(", ")
    }

    /// Returns the sizes of the quorums.
    pub fn quorums(&self) -> &Quorums {
        &self.quorums
    }

    /// Returns the store whose vote says who leads in a slot where the fast round is lost: each in its turn.
    pub fn leading_store(&self, slot: u64) -> usize {
        let turn = slot % self.turns.len() as u64;
        self.turns[usize::try_from(turn).expect("a group has few stores")]
    }

    /// Returns who signs and checks messages, where stores may lie.
    pub fn certifier(&self) -> Option<&dyn Certifier> {
        self.certifier.as_deref()
    }

    /// Tells whether there is only one store, which is believed.
    pub fn is_single(&self) -> bool {
        self.stores.len() == 1 && self.certifier.is_none()
    }
}

fn turns<T: Ord>(keys: &[T]) -> Vec<usize> {
    let mut turns: Vec<usize> = (0..keys.len()).collect();
    turns.sort_by_key(|&store| &keys[store]);
    turns
}

/// Tells which group agrees on a slot. That follows from the entries before it, which the caller can read and the log
/// need not be able to. An entry that changes the group takes effect at the slot after it: whoever proposes for that slot
/// has read the entry.
pub trait Membership: Send + Sync + Debug {
    /// Takes note of an entry of the log. Entries come in order, but some may come again.
    fn learn(&self, entry: &Entry);

    /// Returns the group that decides a slot, or `None` where it is not known here: too few entries were learned, or it was
    /// another one long ago.
    fn group(&self, slot: u64) -> Option<Arc<Group>>;

    /// Returns the group to which a slot was carried over after another one had filled it: there it is read as settled.
    fn heir(&self, _slot: u64) -> Option<Arc<Group>> {
        None
    }

    /// Up to which entry everything was learned.
    fn known(&self) -> u64 {
        u64::MAX
    }

    /// Returns the newest group that is known.
    fn newest(&self) -> Option<Arc<Group>> {
        self.group(1)
    }

    /// Tells whether a commit may be proposed for a slot.
    fn standing(&self, _slot: u64) -> Standing {
        Standing::Open
    }
}

/// A group that never changes.
#[derive(Debug)]
pub struct ConstantMembership(Arc<Group>);

impl ConstantMembership {
    /// Lets this group agree on all slots.
    pub fn new(group: Group) -> Self {
        Self(Arc::new(group))
    }
}

impl Membership for ConstantMembership {
    fn learn(&self, _: &Entry) {}

    fn group(&self, _: u64) -> Option<Arc<Group>> {
        Some(self.0.clone())
    }
}
