//! Deferred writes: each store takes its pieces when it likes; a sync makes enough of every object durable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::PutMode;

use super::Shared;
use super::member::Direction;
use super::piece::{Piece, Placed};
use super::pulse::SUSPICION;
use super::write::Way;

/// A store that is needed for more than what gives an object back may take so long for a sync.
const SYNC_PATIENCE: Duration = Duration::from_secs(2);

/// How many objects that are short after a sync are written at once.
const RESTORES_AT_ONCE: usize = 8;

/// How many bytes may be on their way of writes that were answered before enough stores had taken them.
const EARLY_MAX: usize = 32 << 20;

/// An object on its way to durability.
#[derive(Debug)]
pub(crate) struct DeferredObject {
    key: ObjectKey,
    taken: Mutex<BTreeSet<Placed>>,
    /// Closed as soon as enough stores have taken it, or no more will.
    open: Semaphore,
}

/// Says that a write has given its object to enough stores, or to all it could, when it is dropped.
#[derive(Debug)]
pub(crate) struct EndWrite(pub(crate) Arc<DeferredObject>);

impl Drop for EndWrite {
    fn drop(&mut self) {
        self.0.open.close();
    }
}

/// Returns the room for writes that are answered early, in KiB.
pub(crate) fn early_room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(EARLY_MAX >> 10))
}

/// What was deferred since the last sync.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    objects: Vec<Arc<DeferredObject>>,
    /// Objects of writes that were not answered yet.
    writing: BTreeSet<ObjectKey>,
    /// For each store, the objects of which it took a piece that no sync has covered.
    unsynced: BTreeMap<usize, BTreeSet<ObjectKey>>,
    is_poisoned: bool,
}

impl Deferred {
    /// Takes out the objects that are with the stores, and the pieces that a sync is to cover. Pieces of an object that is still on its way are left to
    /// the sync after it: that one counts only what it has covered itself.
    fn take(&mut self) -> (Vec<Arc<DeferredObject>>, BTreeMap<usize, BTreeSet<ObjectKey>>) {
        let is_taken = |object: &mut Arc<DeferredObject>| object.open.is_closed();
        let objects: Vec<_> = self.objects.extract_if(.., is_taken).collect();
        let mut on_their_way = self.writing.clone();
        on_their_way.extend(self.objects.iter().map(|object| object.key.clone()));
        let mut unsynced = BTreeMap::new();
        for (member, keys) in &mut self.unsynced {
            let taken: BTreeSet<_> =
                keys.extract_if(.., |key| !on_their_way.contains(key)).collect();
            if !taken.is_empty() {
                unsynced.insert(*member, taken);
            }
        }
        self.unsynced.retain(|_, keys| !keys.is_empty());
        (objects, unsynced)
    }
}

/// A write that was not answered yet.
struct Writing<'a>(&'a Shared, &'a ObjectKey);

impl<'a> Writing<'a> {
    fn begin(shared: &'a Shared, key: &'a ObjectKey) -> Self {
        shared.deferred.lock().writing.insert(key.clone());
        Self(shared, key)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.deferred.lock().writing.remove(self.1);
    }
}

impl Shared {
    pub(crate) async fn put_deferred(
        self: &Arc<Self>,
        key: &ObjectKey,
        bytes: Bytes,
    ) -> Result<()> {
        if self.deferred.lock().is_poisoned {
            return Err(self.not_durable());
        }
        let (taken, open) = (Mutex::default(), Semaphore::new(0));
        let object = Arc::new(DeferredObject { key: key.clone(), taken, open });
        let _writing = Writing::begin(self, key);
        self.write(key, bytes, Way::Defer(Arc::clone(&object))).await?;
        let mut deferred = self.deferred.lock();
        deferred.objects.push(object);
        deferred.writing.remove(key);
        Ok(())
    }

    pub(crate) fn note_deferred(&self, object: &DeferredObject, member: usize, piece: Piece) {
        object.taken.lock().insert((member, piece));
        let mut deferred = self.deferred.lock();
        deferred.unsynced.entry(member).or_default().insert(object.key.clone());
    }

    /// Returns room for a write of so many bytes that is answered before enough stores have taken them, if there is any. Without a
    /// runtime it would not go on by itself.
    pub(crate) fn early_room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        tokio::runtime::Handle::try_current().ok()?;
        let kilobytes = u32::try_from(bytes.div_ceil(1 << 10)).ok()?;
        Arc::clone(&self.early).try_acquire_many_owned(kilobytes).ok()
    }

    /// Waits until enough stores have taken what was deferred before.
    async fn all_taken(&self) {
        let objects = self.deferred.lock().objects.clone();
        for object in objects {
            // It is closed in the end, and has no permits.
            let _closed = object.open.acquire().await;
        }
    }

    /// Makes enough of every deferred object durable; the stores that are not needed for that go on in the background.
    pub(crate) async fn sync(self: &Arc<Self>) -> Result<()> {
        self.all_taken().await;
        let (objects, unsynced) = {
            let mut deferred = self.deferred.lock();
            if deferred.is_poisoned {
                return Err(self.not_durable());
            }
            // What is still on its way was deferred after this call.
            deferred.take()
        };
        // What a store takes from now on is for the next sync.
        let objects: Vec<Taken> = objects
            .into_iter()
            .map(|object| Taken { key: object.key.clone(), pieces: object.taken.lock().clone() })
            .collect();
        let (signal, answer) = oneshot::channel();
        let work: BoxFuture<'static, ()> =
            Box::pin(Arc::clone(self).sync_members(objects, unsynced, signal));
        let short = match select(answer, work).await {
            Either::Left((short, work)) => {
                self.backlog.keep(None, work);
                short
            }
            Either::Right(((), answer)) => answer.await,
        };
        let short = short.expect("a sync answers before it ends");
        let restored: Vec<bool> = stream::iter(short)
            .map(|short| self.restore(short))
            .buffer_unordered(RESTORES_AT_ONCE)
            .collect()
            .await;
        if restored.contains(&false) {
            self.deferred.lock().is_poisoned = true;
            return Err(self.not_durable());
        }
        self.make_way().await;
        Ok(())
    }

    /// Makes an object durable of which too few pieces are. Where as many are as give it back, and another is still under way or
    /// no store is left that would take one, the rest is owed.
    async fn restore(self: &Arc<Self>, short: Short) -> bool {
        let Short { key, durable, error } = short;
        let Some(hash) = key.content_hash() else { return false };
        if durable.len() >= self.least() {
            let order = self.order(&hash);
            let holds = |member| durable.iter().any(|(holder, _)| *holder == member);
            let is_under_way = self.backlog.unfinished().contains(&key);
            if is_under_way
                || order.all().iter().all(|&member| holds(member) || self.is_hopeless(member))
            {
                self.backlog.owe(&key);
                return true;
            }
        }
        // What some store has after all is given to enough of them, durably.
        let restored = match self.get(&key).await {
            Ok(Some(bytes)) => self.put(&key, bytes, PutMode::Overwrite).await.map(|_| true),
            other => other.map(|_| false),
        };
        let is_restored = matches!(restored, Ok(true));
        if !is_restored {
            tracing::warn!(%key, ?restored, error, "a deferred object is lost");
        }
        is_restored
    }

    /// Returns whether nobody should wait for a store to take a piece.
    fn is_hopeless(&self, member: usize) -> bool {
        let now = self.clock.elapsed();
        let quiet_since = self.members[member].with_pulse(|pulse| pulse.quiet_since());
        self.is_failing(member, Direction::Write)
            || quiet_since.is_some_and(|since| now >= since + SUSPICION)
    }

    /// Syncs stores at once; signals the objects that are in too few of them, or none as soon as that is sure.
    async fn sync_members(
        self: Arc<Self>,
        objects: Vec<Taken>,
        unsynced: BTreeMap<usize, BTreeSet<ObjectKey>>,
        signal: oneshot::Sender<Vec<Short>>,
    ) {
        let mut signal = Some(signal);
        let mut synced: BTreeSet<usize> = BTreeSet::new();
        let mut errors = Vec::new();
        let mut running = FuturesUnordered::new();
        for (&member, keys) in &unsynced {
            if self.members[member].with_pulse(|pulse| pulse.is_silent()) {
                // A later sync covers it, if it is asked for one while it answers.
                for key in keys {
                    self.backlog.owe(key);
                }
                self.deferred.lock().unsynced.entry(member).or_default().extend(keys.clone());
                errors.push(format!("{}: it hangs", self.members[member].name));
            } else {
                running.push(self.sync_member(member));
            }
        }
        let pieces = |object: &Taken, synced: &BTreeSet<usize>| -> usize {
            let durable = object.durable(synced);
            match self.code() {
                None => durable.len(),
                Some(_) => durable.iter().map(|(_, piece)| piece).collect::<BTreeSet<_>>().len(),
            }
        };
        let mut is_late = self.clock.sleep(SYNC_PATIENCE);
        loop {
            let is_hurried = match select(running.next(), is_late).await {
                Either::Left((None, _)) => break,
                Either::Left((Some((member, Ok(()))), rest)) => {
                    synced.insert(member);
                    is_late = rest;
                    false
                }
                Either::Left((Some((member, Err(error))), rest)) => {
                    // Whatever it had taken is lost there.
                    unsynced[&member].iter().for_each(|key| self.backlog.owe(key));
                    errors.push(format!("{}: {error}", self.members[member].name));
                    is_late = rest;
                    false
                }
                Either::Right(_) => {
                    is_late = self.clock.sleep(SYNC_PATIENCE);
                    true
                }
            };
            let wanted = if is_hurried { self.least() } else { self.enough() };
            if objects.iter().all(|object| pieces(object, &synced) >= wanted)
                && let Some(signal) = signal.take()
            {
                let short = objects.iter().filter(|o| pieces(o, &synced) < self.enough());
                // The caller may have gone.
                let _ = signal.send(short.map(|o| o.short(&synced, &errors)).collect());
            }
        }
        if let Some(signal) = signal.take() {
            let short = objects.iter().filter(|o| pieces(o, &synced) < self.enough());
            let _ = signal.send(short.map(|o| o.short(&synced, &errors)).collect());
        }
    }

    fn sync_member(self: &Arc<Self>, member: usize) -> BoxFuture<'static, (usize, Result<()>)> {
        let shared = Arc::clone(self);
        Box::pin(async move {
            let store = Arc::clone(&shared.members[member].store);
            let sync = async move { store.sync().await };
            (member, shared.call(member, Direction::Write, 0, sync, |()| 0).await)
        })
    }

    fn not_durable(&self) -> StorageError {
        let detail = "too few of its stores have made durable what they were given".to_owned();
        StorageError::NotDurable { store: self.describe(), detail }
    }

    /// Syncs what was deferred to stores after enough of it was durable elsewhere.
    pub(crate) async fn sync_late(self: &Arc<Self>) {
        if self.deferred.lock().unsynced.is_empty() {
            return;
        }
        if let Err(error) = self.sync().await {
            tracing::warn!(%error, "late deferred writes are lost");
        }
    }
}

/// Who has taken which pieces of an object.
struct Taken {
    key: ObjectKey,
    pieces: BTreeSet<Placed>,
}

impl Taken {
    fn durable(&self, synced: &BTreeSet<usize>) -> Vec<Placed> {
        self.pieces.iter().filter(|(member, _)| synced.contains(member)).copied().collect()
    }

    fn short(&self, synced: &BTreeSet<usize>, errors: &[String]) -> Short {
        let durable = self.durable(synced);
        Short { key: self.key.clone(), durable, error: errors.join("; ") }
    }
}

/// An object of which fewer pieces are durable than should be.
struct Short {
    key: ObjectKey,
    durable: Vec<Placed>,
    error: String,
}
