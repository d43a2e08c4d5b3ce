//! Parts of packs that are wrong until the store was told: what a pool does of which one store is damaged.

#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use commit_log::serverless::slot_log::SlotCommitLog;
use model::NodeKind;
use parking_lot::Mutex;
use storage::{ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome};

use super::*;
use crate::engine::fixture::{Stopped, engine, engine_over};
use crate::state::State;

/// Flips a bit in all parts of an object until it is mended.
#[derive(Debug)]
struct BadParts {
    store: Arc<dyn ObjectStore>,
    mended: Mutex<BTreeSet<ObjectKey>>,
    has_good_tails: AtomicBool,
    can_mend: bool,
    /// What was read: packs as wholes, and how often parts.
    wholes: Mutex<Vec<ObjectKey>>,
    parts: AtomicUsize,
}

impl BadParts {
    fn part(&self, key: &ObjectKey, found: Option<Bytes>) -> Option<Bytes> {
        if !key.names_its_content() || self.mended.lock().contains(key) {
            return found;
        }
        let mut bytes = found?.to_vec();
        // Before the trailer, in the index, where a tail has one.
        let at = bytes.len().saturating_sub(60);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1;
        }
        Some(bytes.into())
    }
}

#[async_trait]
impl ObjectStore for BadParts {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(
        &self,
        key: &ObjectKey,
        bytes: Bytes,
        mode: PutMode,
    ) -> storage::Result<PutOutcome> {
        self.store.put(key, bytes, mode).await
    }

    async fn get(&self, key: &ObjectKey) -> storage::Result<Option<Bytes>> {
        if key.names_its_content() {
            self.wholes.lock().push(key.clone());
        }
        self.store.get(key).await
    }

    async fn get_range(
        &self,
        key: &ObjectKey,
        range: Range<u64>,
    ) -> storage::Result<Option<Bytes>> {
        self.parts.fetch_add(1, Ordering::Relaxed);
        Ok(self.part(key, self.store.get_range(key, range).await?))
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> storage::Result<Option<Bytes>> {
        self.parts.fetch_add(1, Ordering::Relaxed);
        let found = self.store.get_tail(key, length).await?;
        let is_good = self.has_good_tails.load(Ordering::Relaxed);
        Ok(if is_good { found } else { self.part(key, found) })
    }

    async fn size(&self, key: &ObjectKey) -> storage::Result<Option<u64>> {
        self.store.size(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> storage::Result<Vec<ObjectEntry>> {
        self.store.list(prefix, start_after, limit).await
    }

    async fn delete(&self, key: &ObjectKey) -> storage::Result<()> {
        self.store.delete(key).await
    }

    async fn mend(&self, key: &ObjectKey) -> storage::Result<bool> {
        self.mended.lock().insert(key.clone());
        Ok(self.can_mend)
    }
}

/// Twelve mebibytes that compress to half, so that a pack has more than four records.
fn content() -> Vec<u8> {
    let mut bytes = vec![0; 12 << 20];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes.into_iter().map(|byte| byte & 0x0f).collect()
}

/// Puts a file into a store, and opens another device over the same store with bad parts.
async fn second_device(store: &Path, folder: &Path, can_mend: bool) -> (Engine, Arc<BadParts>) {
    let first_folder = tempfile::tempdir().unwrap();
    std::fs::write(first_folder.path().join("file"), content()).unwrap();
    let mut first = engine(first_folder.path(), store, State::in_memory());
    let genesis = first.environment.log.genesis().clone();
    let objects = storage::open(&format!("file:{}", store.display())).unwrap();
    SlotCommitLog::create(objects.clone(), Arc::new(Stopped), genesis).await.unwrap();
    first.sync(Scope::Everything).await.unwrap();
    let (mended, has_good_tails) = (Mutex::default(), AtomicBool::new(false));
    let (wholes, parts) = (Mutex::default(), AtomicUsize::new(0));
    let bad = BadParts { store: objects, mended, has_good_tails, can_mend, wholes, parts };
    let bad = Arc::new(bad);
    (engine_over(folder, bad.clone(), State::in_memory()), bad)
}

#[tokio::test]
async fn part_that_was_wrong_is_read_again_after_the_store_has_mended_it() {
    let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut engine, bad) = second_device(store.path(), folder.path(), true).await;
    engine.fetch().await.unwrap();
    engine.fetcher.index_packs(&mut engine.state).await.unwrap();
    assert!(!bad.mended.lock().is_empty(), "the indexes came from bad tails");
    engine.sync(Scope::Everything).await.unwrap();
    assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), content());

    bad.has_good_tails.store(true, Ordering::Relaxed);
    // Single chunks: their records are read as ranges.
    let synced = engine.state.synced_children(&NodeId::ROOT).unwrap();
    let NodeKind::File(content) = &synced[0].record.kind else { panic!("a file") };
    let chunks = engine.fetcher.expand(&engine.state, content).await.unwrap();
    let mut mended = 0;
    for chunk in chunks.iter().step_by(97) {
        bad.mended.lock().clear();
        engine.fetcher.forget_packs();
        let bytes = engine.fetcher.chunk(&engine.state, chunk).await.unwrap();
        engine.fetcher.namer().verify(chunk.id, &bytes).unwrap();
        mended += usize::from(!bad.mended.lock().is_empty());
    }
    assert!(mended > 0);
}

#[tokio::test]
async fn part_that_nobody_has_better_is_never_written() {
    let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut engine, bad) = second_device(store.path(), folder.path(), false).await;
    engine.fetch().await.unwrap();
    let indexed = engine.fetcher.index_packs(&mut engine.state).await;
    assert!(!bad.mended.lock().is_empty(), "it was tried: {indexed:?}");
    // Of what is never mended no byte gets into the folder, whatever the engine says.
    let _result = engine.sync(Scope::Everything).await;
    if let Ok(bytes) = std::fs::read(folder.path().join("file")) {
        assert_eq!(bytes, content());
    }
}

#[tokio::test]
async fn packs_that_are_wanted_are_read_once_and_their_indexes_with_them() {
    let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut engine, bad) = second_device(store.path(), folder.path(), true).await;
    engine.sync(Scope::Everything).await.unwrap();
    assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), content());
    let mut wholes = bad.wholes.lock().clone();
    let count = wholes.len();
    wholes.sort_unstable();
    wholes.dedup();
    assert!(count > 1 && wholes.len() == count, "{wholes:?}");
    assert_eq!(bad.parts.load(Ordering::Relaxed), 0, "no index was read for itself");
}
