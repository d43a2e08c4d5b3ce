//! Checkpoints lie at all stores of the group; a majority is enough to publish one and to find the newest.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::FutureExt;
use model::checkpoint::Checkpoint;
use storage::object_store::list_all;
use storage::{ObjectKey, ObjectStore, PutMode};

use super::gathering::gather;
use super::slots::Slots;
use crate::commit_log::{CommitLogError, Rumour};
use crate::envelope;
use crate::serverless::group::Group;

/// The longest checkpoint: a head and two roots.
pub(super) const CHECKPOINT_LENGTH_MAX: usize = 1024;

/// Returns the newest checkpoint that a majority knows of.
pub(super) async fn newest(
    slots: &Slots,
    group: &Group,
) -> Result<Option<Checkpoint>, CommitLogError> {
    let call = |store: Arc<dyn ObjectStore>| {
        let rumours = slots.rumours.clone();
        async move {
            let newest = last_of(store, 1).await?.pop();
            rumours.hear(Rumour::Checkpoint(newest.clone().map(Box::new)));
            Ok(newest)
        }
        .boxed()
    };
    let found = gather(slots, group, call).await?;
    Ok(found.into_iter().flatten().max_by_key(|checkpoint| checkpoint.head.seq))
}

/// Returns the newest checkpoint that a majority knows of and the one before it, the newest first. Each was left at a majority,
/// unless whoever published it has died, so any majority knows both.
pub(super) async fn last_two(
    slots: &Slots,
    group: &Group,
) -> Result<Vec<Checkpoint>, CommitLogError> {
    let call = |store: Arc<dyn ObjectStore>| last_of(store, 2).boxed();
    let found = gather(slots, group, call).await?.into_iter().flatten();
    let by_seq: BTreeMap<u64, Checkpoint> =
        found.map(|checkpoint| (checkpoint.head.seq, checkpoint)).collect();
    Ok(by_seq.into_values().rev().take(2).collect())
}

/// Returns the last checkpoints of a store, the newest first, so many at most.
async fn last_of(
    store: Arc<dyn ObjectStore>,
    count: usize,
) -> Result<Vec<Checkpoint>, CommitLogError> {
    let list = list_all(&*store, ObjectKey::CHECKPOINT).await?;
    let mut last = Vec::new();
    for entry in list.iter().rev().take(count) {
        let Some(bytes) = store.get(&entry.key).await? else { continue };
        let decoded = envelope::unwrap_at_rest(&bytes, CHECKPOINT_LENGTH_MAX);
        let message = |source| CommitLogError::Message { place: store.describe(), source };
        last.push(decoded.map_err(message)?);
    }
    Ok(last)
}

/// Removes the checkpoints before an entry from all stores that answer, a majority at least.
pub(super) async fn forget(
    slots: &Slots,
    group: &Group,
    oldest: u64,
) -> Result<(), CommitLogError> {
    let forget = |store: Arc<dyn ObjectStore>| {
        async move {
            for entry in list_all(&*store, ObjectKey::CHECKPOINT).await? {
                if entry.key.as_checkpoint().is_some_and(|seq| seq < oldest) {
                    store.delete(&entry.key).await?;
                }
            }
            Ok(())
        }
        .boxed()
    };
    gather(slots, group, forget).await.map(drop)
}

/// Leaves a checkpoint at a majority at least.
pub(super) async fn publish(
    slots: &Slots,
    group: &Group,
    checkpoint: &Checkpoint,
) -> Result<(), CommitLogError> {
    let key = ObjectKey::checkpoint(checkpoint.head.seq);
    let bytes = Bytes::from(envelope::wrap_at_rest(checkpoint));
    let put = |store: Arc<dyn ObjectStore>| {
        let (key, bytes) = (key.clone(), bytes.clone());
        async move { Ok(store.put(&key, bytes, PutMode::IfAbsent).await?) }.boxed()
    };
    gather(slots, group, put).await.map(drop)
}
