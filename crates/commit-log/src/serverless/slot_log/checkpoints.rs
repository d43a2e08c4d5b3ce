//! Checkpoints lie at all stores of the group; a majority is enough to publish one and to find the newest.

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
            let newest = newest_of(store).await?;
            rumours.hear(Rumour::Checkpoint(newest.clone()));
            Ok(newest)
        }
        .boxed()
    };
    let found = gather(slots, group, call).await?;
    Ok(found.into_iter().flatten().max_by_key(|checkpoint| checkpoint.head.seq))
}

async fn newest_of(store: Arc<dyn ObjectStore>) -> Result<Option<Checkpoint>, CommitLogError> {
    let list = list_all(&*store, ObjectKey::CHECKPOINT).await?;
    let Some(newest) = list.last() else { return Ok(None) };
    let Some(bytes) = store.get(&newest.key).await? else { return Ok(None) };
    let decoded = envelope::unwrap_at_rest(&bytes, CHECKPOINT_LENGTH_MAX);
    let message = |source| CommitLogError::Message { place: store.describe(), source };
    decoded.map(Some).map_err(message)
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
