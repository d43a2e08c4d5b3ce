//! Whole packs that are asked for before they are needed, so that no store waits for who reads.
//!
//! Some are *rumoured*: one store alone says that an entry of the log names them. They are fetched all the same, and are
//! kept only if it turns out to be so.
//!
//! *Invariant*: what is under way and what has arrived and waits to be used is bounded by the pace; only packs that are
//! needed at once go beyond it, and no rumour does.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use content::pack::{PACK_GROWTH, PACK_STORED_TARGET, pack_target};
use futures_util::future::{BoxFuture, Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use model::{Clock, PackId, PackRef};
use storage::ContentStore;

use crate::pace::Pace;

/// How many packs of usual length are here or under way at first and at most, and how many more after a quick one: enough to
/// keep several stores busy. Where packs are longer each store has only a part of one, as long as a usual pack, and twice as many
/// are needed for that.
const PACKS_FIRST: usize = 8;
const PACKS_FIRST_IF_LONGER: usize = 16;
const PACKS_STEP: usize = 4;
const PACKS_MAX: usize = 28;

/// What counts as one pack, in bytes.
const PACK_LENGTH: u64 = 4 * 1024 * 1024;

/// How many packs are under way at most, however small they are.
const UNDER_WAY_MAX: usize = 48;

/// How many packs are fetched at most because of rumours, between two times that they are looked into.
const RUMOURED_MAX: usize = 32;

/// A pack that has come, or failed to, and how long that took.
type Fetched = (PackRef, storage::Result<Bytes>, Duration);

/// Packs that are wanted, under way, and here.
pub(super) struct Ahead {
    store: Arc<ContentStore>,
    clock: Arc<dyn Clock>,
    pace: Pace,
    /// What is still to be asked for, in the order in which it is needed.
    wanted: VecDeque<PackRef>,
    under_way: FuturesUnordered<BoxFuture<'static, Fetched>>,
    /// Lengths of what is under way.
    lengths: HashMap<PackId, u64>,
    arrived: HashMap<PackId, Bytes>,
    /// What was asked for, or is still to be, because of rumours.
    rumoured: HashSet<PackId>,
    /// What is under way and will be forgotten when it comes.
    refuted: HashSet<PackId>,
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Ahead")
            .field("wanted", &self.wanted.len())
            .field("under_way", &self.lengths.len())
            .field("arrived", &self.arrived.len())
            .finish_non_exhaustive()
    }
}

impl Ahead {
    pub(super) fn new(store: Arc<ContentStore>, clock: Arc<dyn Clock>) -> Self {
        let are_longer = pack_target(store.object_store().parts()) > PACK_STORED_TARGET;
        let first = if are_longer { PACKS_FIRST_IF_LONGER } else { PACKS_FIRST };
        Self {
            store,
            clock,
            pace: Pace::new(first, PACKS_STEP, PACKS_MAX),
            wanted: VecDeque::new(),
            under_way: FuturesUnordered::new(),
            lengths: HashMap::new(),
            arrived: HashMap::new(),
            rumoured: HashSet::new(),
            refuted: HashSet::new(),
        }
    }

    /// Lends everything to a caller that cannot borrow this beside the rest of its owner, and leaves nothing wanted in its place.
    pub(super) fn lend(&mut self) -> Self {
        let empty = Self::new(self.store.clone(), self.clock.clone());
        std::mem::replace(self, empty)
    }

    /// Stops waiting for anything, and forgets what has arrived.
    pub(super) fn forget(&mut self) {
        self.wanted.clear();
        self.under_way.clear();
        self.lengths.clear();
        self.arrived.clear();
        self.rumoured.clear();
        self.refuted.clear();
    }

    /// Returns whether a pack is under way or here.
    pub(super) fn has(&self, id: PackId) -> bool {
        self.lengths.contains_key(&id) || self.arrived.contains_key(&id)
    }

    /// Returns whether a pack is here, or still going to be.
    pub(super) fn is_awaited(&self, id: PackId) -> bool {
        self.has(id) || self.wanted.iter().any(|pack| pack.id == id)
    }

    /// Wants packs of which it is only said that they are needed, as many as may be, after those that are wanted already.
    pub(super) fn want_rumoured(&mut self, packs: impl IntoIterator<Item = PackRef>) {
        for pack in packs {
            if self.rumoured.len() >= RUMOURED_MAX {
                break;
            }
            if !self.is_awaited(pack.id) && self.rumoured.insert(pack.id) {
                self.wanted.push_back(pack);
            }
        }
        self.start();
    }

    /// Hears which of the rumours were true, and forgets what was fetched because of others.
    pub(super) fn judge_rumours<E>(
        &mut self,
        mut is_true: impl FnMut(&PackId) -> Result<bool, E>,
    ) -> Result<(), E> {
        for id in std::mem::take(&mut self.rumoured) {
            if !is_true(&id)? {
                self.wanted.retain(|pack| pack.id != id);
                self.arrived.remove(&id);
                if self.lengths.contains_key(&id) {
                    self.refuted.insert(id);
                }
            }
        }
        self.start();
        Ok(())
    }

    /// Returns whether anything is still to be asked for.
    pub(super) fn is_anything_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Returns whether anything is under way.
    pub(super) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Returns a pack that has arrived.
    pub(super) fn arrived(&self, id: PackId) -> Option<&Bytes> {
        self.arrived.get(&id)
    }

    /// Takes a pack that has arrived: there is room for another one.
    pub(super) fn take(&mut self, id: PackId) -> Option<Bytes> {
        let taken = self.arrived.remove(&id);
        self.start();
        taken
    }

    /// Wants packs after those that are wanted already.
    pub(super) fn want_later(&mut self, packs: impl IntoIterator<Item = PackRef>) {
        let known: HashSet<PackId> = self.wanted.iter().map(|pack| pack.id).collect();
        for pack in packs.into_iter().filter(|pack| !known.contains(&pack.id)) {
            self.refuted.remove(&pack.id);
            self.wanted.push_back(pack);
        }
        self.start();
    }

    /// Wants packs before all others, in this order. What has arrived, is not among them, and would take their room is
    /// forgotten.
    pub(super) fn want_first(&mut self, packs: Vec<PackRef>) {
        let ids: HashSet<PackId> = packs.iter().map(|pack| pack.id).collect();
        self.wanted.retain(|pack| !ids.contains(&pack.id));
        self.refuted.retain(|id| !ids.contains(id));
        for pack in packs.into_iter().rev().filter(|pack| !self.has(pack.id)).collect::<Vec<_>>() {
            self.wanted.push_front(pack);
        }
        self.start();
        let is_stuck = self.under_way.is_empty()
            && self.wanted.front().is_some_and(|pack| ids.contains(&pack.id));
        if is_stuck {
            self.arrived.retain(|id, _| ids.contains(id));
            self.start();
        }
    }

    /// Wants no pack any more that is not under way.
    pub(super) fn want_nothing(&mut self) {
        self.wanted.clear();
    }

    /// Waits until these packs are here, or have failed to come. Those of them that were not asked for yet are now, room or
    /// not.
    pub(super) async fn wait(&mut self, ids: &[PackId]) {
        let (now, later): (VecDeque<_>, VecDeque<_>) =
            self.wanted.drain(..).partition(|pack| ids.contains(&pack.id));
        self.wanted = later;
        for pack in now {
            self.ask(pack);
        }
        while ids.iter().any(|id| self.lengths.contains_key(id)) && self.wait_for_any().await {}
    }

    /// Waits until another pack has come or failed to; returns whether any was under way.
    pub(super) async fn wait_for_any(&mut self) -> bool {
        match self.under_way.next().await {
            Some(fetched) => {
                self.note(fetched);
                true
            }
            None => false,
        }
    }

    /// Does something else with the store, and goes on fetching meanwhile: a request that nobody looks after would keep its
    /// connection from the others.
    pub(super) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        while !self.under_way.is_empty() {
            match select(work.as_mut(), self.under_way.next()).await {
                Either::Left((done, _)) => return done,
                Either::Right((Some(fetched), _)) => self.note(fetched),
                Either::Right((None, _)) => {}
            }
        }
        work.await
    }

    fn note(&mut self, (PackRef { id, length }, fetched, took): Fetched) {
        self.lengths.remove(&id);
        let packs = (length + PACK_LENGTH / 2) / PACK_LENGTH;
        self.pace.took_parts(took, packs.clamp(1, PACK_GROWTH as u64) as usize);
        let is_refuted = self.refuted.remove(&id);
        // What failed is asked for again by whoever needs it, and fails there.
        if let (Ok(bytes), false) = (fetched, is_refuted) {
            self.arrived.insert(id, bytes);
        }
        self.start();
    }

    /// Asks for what is wanted, as long as there is room.
    fn start(&mut self) {
        while self.has_room()
            && let Some(pack) = self.wanted.pop_front()
        {
            self.ask(pack);
        }
    }

    fn has_room(&self) -> bool {
        let arrived: u64 = self.arrived.values().map(|bytes| bytes.len() as u64).sum();
        let length = self.lengths.values().sum::<u64>() + arrived;
        length < self.pace.allowed() as u64 * PACK_LENGTH && self.lengths.len() < UNDER_WAY_MAX
    }

    fn ask(&mut self, pack: PackRef) {
        if self.has(pack.id) {
            return;
        }
        let (store, clock) = (self.store.clone(), self.clock.clone());
        self.lengths.insert(pack.id, pack.length);
        let fetch = async move {
            let began = clock.elapsed();
            let fetched = store.read_pack(pack.id).await;
            (pack, fetched, clock.elapsed().saturating_sub(began))
        };
        self.under_way.push(fetch.boxed());
    }
}
