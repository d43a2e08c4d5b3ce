//! Which stores agree on a slot, computed from the entries before it: the settings of the workspace say it.
//!
//! *Participants*: every opening of a log, and whoever remembers a [`Stand`] from one opening to the next. *Goals*: all
//! devices compute the same; a device that knows only the newest stores can read what older ones have decided, where it
//! was carried over. *Non-goals*: opening stores, reading sealed settings ([`StoreOpener`] does). *Invariants*: an entry
//! counts only after all before it, or where it could not be accepted earlier: its base is the version that is in force.

use std::fmt::Debug;
use std::sync::Arc;

use model::{Commit, Entry, Head, NodeId, PoolConfig, StoreRecord, Versions, decide};
use parking_lot::Mutex;

use super::group::{Group, Membership, Standing};

/// The stores of the workspace from one change of them to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stand {
    /// The version of the settings; 0 is what the workspace began with.
    pub version: u64,
    /// The stores.
    pub pool: PoolConfig,
    /// The entry with which their group took over; 0 for the first one.
    pub since: u64,
    /// Whose slots before that still have to be carried over, as far as this device knows: the group before, and since when.
    pub earlier: Option<Earlier>,
}

/// A group that was in force before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// Its stores.
    pub pool: PoolConfig,
    /// The entry with which it took over.
    pub since: u64,
}

impl Stand {
    /// The stores with which a workspace begins.
    pub fn first(pool: PoolConfig) -> Self {
        Self { version: 0, pool, since: 0, earlier: None }
    }

    /// The stores after an entry that puts others in force.
    fn after(&self, seq: u64, version: u64, pool: PoolConfig) -> Self {
        if are_one_group(&self.pool, &pool) {
            return Self { version, pool, since: self.since, earlier: self.earlier.clone() };
        }
        let earlier = Earlier { pool: self.pool.clone(), since: self.since };
        Self { version, pool, since: seq, earlier: Some(earlier) }
    }
}

/// Tells whether the same stores agree in both pools, wherever they are reached. One that was emptied is not the same any more.
pub fn are_one_group(one: &PoolConfig, other: &PoolConfig) -> bool {
    let group = |pool: &PoolConfig| pool.group().map(StoreRecord::identity).collect::<Vec<_>>();
    one.faults == other.faults && group(one) == group(other)
}

/// What an entry says about the stores of its workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// These are in force from now on.
    Pool(PoolConfig),
    /// Nothing that counts: the stores before stay in force.
    Nothing,
    /// It cannot be told here: the keys are not known.
    Unreadable,
}

/// Reads settings and opens stores, which the log cannot.
pub trait StoreOpener: Send + Sync + Debug {
    /// Returns what the accepted change `number` of a commit says.
    fn read(&self, commit: &Commit, number: usize) -> Said;

    /// Returns the group of a pool. Nothing is sent yet.
    fn open(&self, pool: &PoolConfig) -> Group;
}

/// Follows the settings along the log.
#[derive(Debug)]
pub struct SettingsMembership {
    opener: Arc<dyn StoreOpener>,
    /// The version with which the log was opened.
    opened: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stand: Stand,
    /// The version that counts for the next change, also where it says nothing that can be read.
    version: u64,
    /// The last fence behind the beginning. One before it fences nothing here: who knows the version that is in force has seen
    /// the entry that put it there.
    fence: u64,
    /// All entries up to this one were learned.
    known: u64,
    /// The entry that changed something last.
    changed: u64,
    is_unreadable: bool,
    group: Arc<Group>,
    earlier: Option<Arc<Group>>,
}

/// The version of the settings of the stores and the last fence, and nothing else.
struct PoolVersion {
    pool: u64,
    fence: u64,
}

impl Versions for PoolVersion {
    type Error = std::convert::Infallible;

    fn version(&self, node: &NodeId) -> Result<u64, Self::Error> {
        Ok(match *node {
            NodeId::POOL => self.pool,
            NodeId::FENCE => self.fence,
            _ => 0,
        })
    }
}

impl SettingsMembership {
    /// Begins with what was remembered.
    pub fn new(opener: Arc<dyn StoreOpener>, stand: Stand) -> Self {
        let group = Arc::new(opener.open(&stand.pool));
        let earlier = stand.earlier.as_ref().map(|earlier| Arc::new(opener.open(&earlier.pool)));
        let state = State {
            version: stand.version,
            fence: 0,
            known: stand.since,
            changed: stand.since,
            is_unreadable: false,
            group,
            earlier,
            stand,
        };
        let opened = state.version;
        Self { opener, opened, state: Mutex::new(state) }
    }

    /// Says that no entry up to this one has changed the stores since those that were remembered, as somebody knows who has
    /// folded them all: then they need not be read again.
    #[must_use]
    pub fn with_known(self, seq: u64) -> Self {
        {
            let mut state = self.state.lock();
            state.known = state.known.max(seq);
        }
        self
    }

    /// Returns what is worth being remembered.
    pub fn stand(&self) -> Stand {
        self.state.lock().stand.clone()
    }
}

impl State {
    fn take(&mut self, opener: &dyn StoreOpener, entry: &Entry) {
        let versions = PoolVersion { pool: self.version, fence: self.fence };
        let previous = Head { seq: entry.seq - 1, hash: entry.previous };
        let Ok(outcomes) = decide::decide(&versions, &previous, &entry.commit);
        for (number, outcome) in outcomes.iter().enumerate() {
            let decide::Outcome::Accepted { version } = outcome else { continue };
            if entry.commit.changes[number].node == NodeId::FENCE {
                self.fence = *version;
            }
            if entry.commit.changes[number].node != NodeId::POOL {
                continue;
            }
            self.version = *version;
            self.changed = entry.seq;
            match opener.read(&entry.commit, number) {
                Said::Pool(pool) => self.put(opener, entry.seq, pool),
                // It counts as a version all the same.
                Said::Nothing => self.stand.version = *version,
                Said::Unreadable => self.is_unreadable = true,
            }
        }
    }

    fn put(&mut self, opener: &dyn StoreOpener, seq: u64, pool: PoolConfig) {
        let stand = self.stand.after(seq, self.version, pool);
        if stand.since == self.stand.since {
            // The same stores, perhaps elsewhere: whoever opens the log next goes there.
            self.stand = stand;
            return;
        }
        let group = Arc::new(opener.open(&stand.pool));
        self.earlier = Some(std::mem::replace(&mut self.group, group));
        self.stand = stand;
    }
}

impl Membership for SettingsMembership {
    fn learn(&self, entry: &Entry) {
        let mut state = self.state.lock();
        if entry.seq != state.known + 1 {
            return;
        }
        state.known = entry.seq;
        state.take(&*self.opener, entry);
    }

    fn known(&self) -> u64 {
        self.state.lock().known
    }

    fn group(&self, slot: u64) -> Option<Arc<Group>> {
        let state = self.state.lock();
        if slot > state.stand.since {
            return (slot <= state.known + 1).then(|| state.group.clone());
        }
        let since = state.stand.earlier.as_ref()?.since;
        state.earlier.clone().filter(|_| slot > since)
    }

    fn heir(&self, slot: u64) -> Option<Arc<Group>> {
        let state = self.state.lock();
        if slot > state.stand.since {
            return None;
        }
        match &state.stand.earlier {
            // What the earlier group itself has inherited lies there.
            Some(earlier) if slot <= earlier.since => state.earlier.clone(),
            Some(_) => None,
            None => Some(state.group.clone()),
        }
    }

    fn newest(&self) -> Option<Arc<Group>> {
        Some(self.state.lock().group.clone())
    }

    fn standing(&self, slot: u64) -> Standing {
        let state = self.state.lock();
        if slot <= state.changed {
            Standing::Filled
        } else if state.version == self.opened && !state.is_unreadable {
            Standing::Open
        } else {
            Standing::Changed { seq: state.changed }
        }
    }
}

#[cfg(test)]
mod tests;
