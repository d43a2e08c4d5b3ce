//! Deferred writes: each store takes its pieces when it likes; a sync makes enough of every object durable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::PutMode;

use super::Shared;
use super::member::Direction;
use super::piece::{Piece, Placed};
use super::write::Way;

/// An object on its way to durability.
#[derive(Debug)]
pub(crate) struct DeferredObject {
    key: ObjectKey,
    taken: Mutex<BTreeSet<Placed>>,
}

/// What was deferred since the last sync.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    objects: Vec<Arc<DeferredObject>>,
    /// For each store, the objects of which it took a piece that no sync has covered.
    unsynced: BTreeMap<usize, BTreeSet<ObjectKey>>,
    is_poisoned: bool,
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
        let object = Arc::new(DeferredObject { key: key.clone(), taken: Mutex::default() });
        self.write(key, bytes, Way::Defer(Arc::clone(&object))).await?;
        self.deferred.lock().objects.push(object);
        Ok(())
    }

    pub(crate) fn note_deferred(&self, object: &DeferredObject, member: usize, piece: Piece) {
        object.taken.lock().insert((member, piece));
        let mut deferred = self.deferred.lock();
        deferred.unsynced.entry(member).or_default().insert(object.key.clone());
    }

    /// Makes enough of every deferred object durable; the stores that are not needed for that go on in the background.
    pub(crate) async fn sync(self: &Arc<Self>) -> Result<()> {
        let (objects, unsynced) = {
            let mut deferred = self.deferred.lock();
            if deferred.is_poisoned {
                return Err(self.not_durable());
            }
            (std::mem::take(&mut deferred.objects), std::mem::take(&mut deferred.unsynced))
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
                self.backlog.keep(work);
                short
            }
            Either::Right(((), answer)) => answer.await,
        };
        let short = short.expect("a sync answers before it ends");
        for (key, error) in short {
            // What some store has after all is given to enough of them, durably.
            let restored = match self.get(&key).await {
                Ok(Some(bytes)) => self.put(&key, bytes, PutMode::Overwrite).await.map(|_| true),
                other => other.map(|_| false),
            };
            if !matches!(restored, Ok(true)) {
                tracing::warn!(%key, ?restored, error, "a deferred object is lost");
                self.deferred.lock().is_poisoned = true;
                return Err(self.not_durable());
            }
        }
        Ok(())
    }

    /// Syncs stores at once; signals the objects that are in too few of them, or none as soon as that is sure.
    async fn sync_members(
        self: Arc<Self>,
        objects: Vec<Taken>,
        unsynced: BTreeMap<usize, BTreeSet<ObjectKey>>,
        signal: oneshot::Sender<Vec<(ObjectKey, String)>>,
    ) {
        let mut signal = Some(signal);
        let mut synced: BTreeSet<usize> = BTreeSet::new();
        let mut errors = Vec::new();
        let mut running: FuturesUnordered<_> =
            unsynced.keys().map(|&member| self.sync_member(member)).collect();
        let is_enough = |object: &Taken, synced: &BTreeSet<usize>| {
            let durable = object.pieces.iter().filter(|(member, _)| synced.contains(member));
            match self.code() {
                None => durable.count() >= self.enough(),
                Some(_) => {
                    durable.map(|(_, piece)| piece).collect::<BTreeSet<_>>().len() >= self.enough()
                }
            }
        };
        while let Some((member, result)) = running.next().await {
            match result {
                Ok(()) => drop(synced.insert(member)),
                Err(error) => {
                    // Whatever it had taken is lost there.
                    unsynced[&member].iter().for_each(|key| self.backlog.owe(key));
                    errors.push(format!("{}: {error}", self.members[member].name));
                }
            }
            if objects.iter().all(|object| is_enough(object, &synced))
                && let Some(signal) = signal.take()
            {
                // The caller may have gone.
                let _ = signal.send(Vec::new());
            }
        }
        if let Some(signal) = signal.take() {
            let short = objects.iter().filter(|object| !is_enough(object, &synced));
            let detail = errors.join("; ");
            let _ = signal.send(short.map(|o| (o.key.clone(), detail.clone())).collect());
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
