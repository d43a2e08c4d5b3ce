//! Every driver and decorator against the one suite.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use storage::cache::Cached;
use storage::faulty::{Call, Fault, Faulty, Operation};
use storage::layers::{Lazy, Marked, Retrying, Scoped, Timed};
use storage::{ObjectKey, ObjectStore, conformance};

use crate::layers::NoWaiting;
use crate::support::{file_store, key, memory};

/// A folder for each store of one run.
struct Folders(tempfile::TempDir, AtomicU64);

impl Folders {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap(), AtomicU64::new(0))
    }

    fn next(&self) -> std::path::PathBuf {
        self.0.path().join(self.1.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

#[tokio::test]
async fn memory_store_conforms() {
    conformance::run(memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_store_conforms() {
    let folders = Folders::new();
    conformance::run(|| file_store(&folders.next())).await;
}

#[test]
fn memory_and_file_stores_conform_without_a_runtime() {
    let folders = Folders::new();
    conformance::run(memory).now_or_never().expect("nothing waits");
    conformance::run(|| file_store(&folders.next())).now_or_never().expect("nothing waits");
}

#[tokio::test]
async fn cache_over_memory_conforms() {
    let folders = Folders::new();
    conformance::run(|| Arc::new(Cached::new(memory(), &folders.next(), 64 << 20))).await;
}

#[tokio::test]
async fn cache_too_small_for_anything_conforms() {
    let folders = Folders::new();
    conformance::run(|| Arc::new(Cached::new(memory(), &folders.next(), 10_000))).await;
}

#[tokio::test]
async fn cache_that_cannot_be_opened_conforms() {
    let folders = Folders::new();
    let not_a_folder = folders.next();
    std::fs::write(&not_a_folder, "in the way").unwrap();
    conformance::run(|| Arc::new(Cached::new(memory(), &not_a_folder, 1 << 20))).await;
}

#[tokio::test]
async fn mark_over_memory_conforms() {
    conformance::run(|| Arc::new(Marked::new(memory(), storage::Opening::CreateIfMissing))).await;
}

#[tokio::test]
async fn time_limit_over_memory_conforms() {
    conformance::run(|| Arc::new(Timed::new(memory()))).await;
}

#[tokio::test]
async fn store_that_is_opened_when_it_is_used_conforms() {
    conformance::run(|| {
        let store = memory();
        Arc::new(Lazy::new("a store".to_owned(), move || Ok(store.clone() as _)))
    })
    .await;
}

#[tokio::test]
async fn scope_beside_other_scopes_conforms() {
    conformance::run(|| {
        let (shared, genesis) = (memory(), ObjectKey::genesis());
        for beside in ["w/a", "w/bb", "w/c"] {
            let beside = Scoped::new(Arc::clone(&shared), key(beside));
            let put = beside.put(&genesis, "x".into(), storage::PutMode::Overwrite);
            put.now_or_never().expect("memory does not wait").unwrap();
        }
        Arc::new(Scoped::new(shared, key("w/b")))
    })
    .await;
}

#[tokio::test]
async fn retry_over_memory_conforms() {
    conformance::run(|| Arc::new(Retrying::new(memory(), Arc::new(NoWaiting)))).await;
}

#[tokio::test]
async fn retry_over_a_store_that_fails_every_other_call_conforms() {
    // Before or after the call, by turns; a lost sync stays lost, so it is spared.
    let plan = |call: &Call<'_>| match (call.operation, call.number % 4) {
        (Operation::Sync, _) => Fault::None,
        (_, 0) => Fault::ErrorBefore,
        (_, 2) => Fault::ErrorAfter,
        _ => Fault::None,
    };
    // A retry cannot tell its own object from an equal one of somebody else.
    let mut cases = conformance::cases();
    cases.retain(|case| case.name != "put_if_absent_of_equal_bytes_is_told_that_they_exist");
    conformance::run_cases(&cases, || {
        let faulty = Arc::new(Faulty::new(memory(), plan));
        Arc::new(Retrying::new(faulty, Arc::new(NoWaiting)).with_attempts_max(50))
    })
    .await;
}

#[tokio::test]
async fn faulty_store_without_faults_conforms() {
    let plan = |_: &Call<'_>| Fault::None;
    conformance::run(|| Arc::new(Faulty::new(memory(), plan))).await;
}
