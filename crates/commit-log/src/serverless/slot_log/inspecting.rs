//! Looks at every object of the history in every store that agrees, and writes anew what is damaged or missing and decided.
//!
//! *Participants*: whoever inspects, and devices that commit and read meanwhile. *Goals*: every damaged object is found, as
//! all of them carry a checksum; every store can again prove the whole history. *Non-goals*: objects that name their content
//! (the pool looks after them), and a store that is another one by now. *Invariants*: nothing is written into the list of
//! a slot unless it is known what fills the slot, and then only the decision; what can be read is never replaced.
//!
//! Why that is safe stands in `docs/design/agreement.md`, "Damaged objects".

mod beside;
mod look;
mod mending;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{Either, join_all, select};
use futures_util::stream::{StreamExt, iter};
use model::{Entry, Head};
use parking_lot::Mutex;
use storage::object_store::list_all;
use storage::{ObjectKey, StorageError};

use self::look::Look;
use super::SlotCommitLog;
use super::deliberation::CALL_PATIENCE;
use super::slots::Slots;
use crate::commit_log::CommitLogError;
use crate::serverless::group::{Group, NamedStore};

/// How many slots are looked at at once.
const SLOTS_AT_ONCE: usize = 16;

/// What is wrong with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    /// Its bytes are not those that were written.
    Damaged,
    /// It is not there, and should be.
    Missing,
    /// It can be read, and says something else than what is decided.
    Contradicts,
}

/// What becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It is known what belongs there.
    Mendable,
    /// That was written.
    Mended,
    /// It is not known what belongs there, perhaps because nothing is decided yet: only the one who wrote it could.
    Left,
    /// The store did not take it.
    Refused(String),
}

/// An object of the history that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the store.
    pub store: String,
    /// Which object.
    pub key: ObjectKey,
    /// What is wrong.
    pub flaw: Flaw,
    /// What becomes of it.
    pub fate: Fate,
}

/// What an inspection has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspection {
    /// How many objects were read.
    pub objects: u64,
    /// How many bytes they have.
    pub read_bytes: u64,
    /// What is wrong, by store and object.
    pub findings: Vec<Finding>,
    /// Stores that did not answer: their names, and why.
    pub unseen: Vec<(String, String)>,
}

/// What whoever inspects knows of the log, and wants.
pub struct Inspector<'a> {
    /// The newest entry that this device has folded: all up to it are decided.
    pub folded: u64,
    /// Returns what this device remembers of an entry that it has folded.
    pub known: &'a dyn Fn(u64) -> Option<Entry>,
    /// Whether what is decided is written anew.
    pub mends: bool,
}

impl std::fmt::Debug for Inspector<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { folded, mends, .. } = self;
        formatter.debug_struct("Inspector").field("folded", folded).field("mends", mends).finish()
    }
}

impl SlotCommitLog {
    /// Reads every object of the history in every store that agrees, and where it mends, writes what is decided anew.
    ///
    /// # Errors
    /// [`CommitLogError`] where it is not known which stores agree. A store that does not answer is no error.
    pub async fn inspect(&self, inspector: &Inspector<'_>) -> Result<Inspection, CommitLogError> {
        // What is new is read as usual; where that fails the slots say why.
        let _ = self.slots.catch_up(inspector.folded).await;
        let work = Work::new(&self.slots, inspector).await?;
        self.slots.background.beside(work.run()).await
    }
}

/// Objects of one store by slot.
type Listed = BTreeMap<u64, BTreeSet<ObjectKey>>;

/// One inspection.
struct Work<'a> {
    slots: &'a Arc<Slots>,
    inspector: &'a Inspector<'a>,
    /// The groups that say something of some slot.
    groups: Vec<Arc<Group>>,
    /// What each store listed, by its name.
    listed: BTreeMap<String, Listed>,
    /// Whether what this device remembers belongs to the history that the stores have.
    remembers: bool,
    tally: Mutex<Tally>,
}

#[derive(Default)]
struct Tally {
    objects: u64,
    read_bytes: u64,
    unseen: BTreeMap<String, String>,
}

impl<'a> Work<'a> {
    async fn new(
        slots: &'a Arc<Slots>,
        inspector: &'a Inspector<'a>,
    ) -> Result<Self, CommitLogError> {
        let mut groups = vec![slots.newest_group()?];
        for slot in [1, inspector.folded.max(1)] {
            if let Ok((group, _)) = slots.readers_group(slot)
                && !groups.iter().any(|known| Arc::ptr_eq(known, &group))
            {
                groups.push(group);
            }
        }
        let tally = Mutex::default();
        Ok(Self { slots, inspector, groups, listed: BTreeMap::new(), remembers: false, tally })
    }

    async fn run(mut self) -> Result<Inspection, CommitLogError> {
        self.list().await;
        let mut findings = self.genesis().await;
        let last = self.listed.values().filter_map(|listed| listed.keys().next_back()).max();
        let last = last.copied().unwrap_or(0).max(self.inspector.folded);
        let (flawed, proven) = self.look_at_all(last).await;
        let is_other = |head: &Head| {
            (self.inspector.known)(head.seq).is_some_and(|entry| entry.head() != *head)
        };
        // What a device remembers of another history helps nobody.
        self.remembers = !proven.as_ref().is_some_and(is_other);
        let proven = proven.map_or(0, |head| head.seq);
        for look in &flawed {
            findings.extend(match self.inspector.mends {
                true => self.mend(look.slot, proven).await,
                false => self.judge(look, proven),
            });
        }
        findings.extend(self.checkpoints().await);
        let Tally { objects, read_bytes, unseen } = self.tally.into_inner();
        findings.retain(|finding: &Finding| !unseen.contains_key(&finding.store));
        findings.sort_by(|one, other| (&one.store, &one.key).cmp(&(&other.store, &other.key)));
        Ok(Inspection { objects, read_bytes, findings, unseen: unseen.into_iter().collect() })
    }

    /// Every store once, though it may be in several groups.
    fn stores(&self) -> Vec<&NamedStore> {
        let mut stores: BTreeMap<&str, &NamedStore> = BTreeMap::new();
        for store in self.groups.iter().flat_map(|group| group.stores()) {
            stores.entry(&store.name).or_insert(store);
        }
        stores.into_values().collect()
    }

    async fn list(&mut self) {
        let list = async |store: &NamedStore| {
            let found = self.limited(store, list_all(&*store.store, ObjectKey::LOG)).await?;
            let mut listed = Listed::new();
            for entry in found {
                if let Some(slot) = slot_of(&entry.key) {
                    listed.entry(slot).or_default().insert(entry.key);
                }
            }
            Some((store.name.clone(), listed))
        };
        let stores = self.stores();
        let found = join_all(stores.into_iter().map(list)).await;
        self.listed = found.into_iter().flatten().collect();
    }

    /// Looks at all slots. Returns those in which something is wrong, and the last entry that the stores prove.
    async fn look_at_all(&self, last: u64) -> (Vec<Look>, Option<Head>) {
        let mut looks = iter(1..=last).map(|slot| self.look(slot)).buffered(SLOTS_AT_ONCE);
        let (mut flawed, mut proven) = (Vec::new(), None);
        while let Some(look) = looks.next().await {
            // Entries that this device has not folded yet may be those of other stores.
            let Some(look) = look else { continue };
            proven = look.decided.as_ref().map(|decided| decided.entry().head()).or(proven);
            if look.flaws(self.inspector.folded).next().is_some() {
                flawed.push(look.without_messages_of_others());
            }
        }
        (flawed, proven)
    }

    /// Asks a store, unless it has failed before. Returns nothing where it does not answer.
    async fn limited<T>(
        &self,
        store: &NamedStore,
        call: impl Future<Output = Result<T, StorageError>>,
    ) -> Option<T> {
        if self.tally.lock().unseen.contains_key(&store.name) {
            return None;
        }
        let limit = self.slots.means.clock.sleep(CALL_PATIENCE);
        let reason = match select(std::pin::pin!(call), limit).await {
            Either::Left((Ok(answer), _)) => return Some(answer),
            Either::Left((Err(error), _)) => error.to_string(),
            Either::Right(_) => "does not answer".to_owned(),
        };
        self.tally.lock().unseen.insert(store.name.clone(), reason);
        None
    }

    /// Reads an object; nothing where the store does not answer.
    async fn get(&self, store: &NamedStore, key: &ObjectKey) -> Option<Option<Bytes>> {
        let found = self.limited(store, store.store.get(key)).await?;
        if let Some(bytes) = &found {
            let mut tally = self.tally.lock();
            tally.objects += 1;
            tally.read_bytes += bytes.len() as u64;
        }
        Some(found)
    }
}

/// Returns the slot of an object of the log, a wish included.
fn slot_of(key: &ObjectKey) -> Option<u64> {
    let (slot, _) = key.as_str().strip_prefix(ObjectKey::LOG)?.split_once('/')?;
    slot.parse().ok()
}

fn finding(store: &NamedStore, key: ObjectKey, flaw: Flaw, fate: Fate) -> Finding {
    Finding { store: store.name.clone(), key, flaw, fate }
}
