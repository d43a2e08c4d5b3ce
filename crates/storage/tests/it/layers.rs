//! Retry, scope, mark and limits of time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use storage::faulty::{Call, Fault, Faulty, Operation};
use storage::layers::{Answer, Gate, Lazy, Marked, Retrying, Scoped, Timed, Waiting};
use storage::{ObjectKey, ObjectStore, Opening, PutMode, PutOutcome, Result, StorageError};

use crate::support::{key, memory};

/// Waits no time at all.
#[derive(Debug)]
pub(crate) struct NoWaiting;

#[async_trait]
impl Waiting for NoWaiting {
    async fn wait(&self, _duration: Duration) {}

    fn random(&self) -> u64 {
        7
    }
}

/// Waits no time, and writes down how long it should have.
#[derive(Debug)]
struct Recorded(Mutex<Vec<Duration>>, u64);

#[async_trait]
impl Waiting for Recorded {
    async fn wait(&self, duration: Duration) {
        self.0.lock().push(duration);
    }

    fn random(&self) -> u64 {
        self.1
    }
}

#[tokio::test]
async fn waits_double_stay_random_and_end() {
    for (random, share) in [(0, 0.5), (u64::MAX, 1.0)] {
        let faulty = Faulty::new(memory(), |_: &Call<'_>| Fault::ErrorBefore);
        let waiting = Arc::new(Recorded(Mutex::default(), random));
        let retrying =
            Retrying::new(Arc::new(faulty), Arc::clone(&waiting) as _).with_attempts_max(9);
        assert!(retrying.get(&key("a")).await.unwrap_err().is_retryable());
        let waits: Vec<_> = waiting.0.lock().iter().map(Duration::as_millis).collect();
        assert_eq!(waits.len(), 8);
        for (index, found) in waits.iter().enumerate() {
            let span = (100 << index).min(10_000);
            let longest = (f64::from(span) * share) as u128;
            assert!((u128::from(span as u32) / 2..=u128::from(span as u32)).contains(found));
            assert!(random != 0 || *found == longest, "{waits:?}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_healed_by_waiting_is_not_tried_again() {
    let faulty = Arc::new(Faulty::new(memory(), |_: &Call<'_>| Fault::NoSpace));
    let retrying = Retrying::new(Arc::clone(&faulty) as _, Arc::new(NoWaiting));
    let result = retrying.put(&key("a"), "x".into(), PutMode::IfAbsent).await;
    assert!(matches!(result, Err(StorageError::NoSpace { .. })));
    assert_eq!(faulty.calls(), 1);
}

#[tokio::test]
async fn an_own_put_whose_answer_was_lost_is_recognised() {
    let plan = |call: &Call<'_>| match call.number {
        0 => Fault::ErrorAfter,
        _ => Fault::None,
    };
    let retrying = Retrying::new(Arc::new(Faulty::new(memory(), plan)), Arc::new(NoWaiting));
    let outcome = retrying.put(&key("slot"), "mine".into(), PutMode::IfAbsent).await.unwrap();
    assert_eq!(outcome, PutOutcome::Written);
    let outcome = retrying.put(&key("slot"), "mine".into(), PutMode::IfAbsent).await.unwrap();
    assert_eq!(outcome, PutOutcome::Exists, "without a lost answer nothing is guessed");
}

#[tokio::test]
async fn a_foreign_object_is_not_taken_for_an_own_one() {
    let below = memory();
    below.put(&key("slot"), "theirs".into(), PutMode::IfAbsent).await.unwrap();
    let plan = |call: &Call<'_>| match call.number {
        0 => Fault::ErrorBefore,
        _ => Fault::None,
    };
    let retrying = Retrying::new(Arc::new(Faulty::new(below, plan)), Arc::new(NoWaiting));
    let outcome = retrying.put(&key("slot"), "mine".into(), PutMode::IfAbsent).await.unwrap();
    assert_eq!(outcome, PutOutcome::Exists);
}

#[tokio::test]
async fn late_and_duplicate_puts_arrive() {
    let plan = |call: &Call<'_>| match call.number {
        0 => Fault::LatePut { calls: 2 },
        4 => Fault::DuplicatePut,
        _ => Fault::None,
    };
    let store = Faulty::new(memory(), plan);
    let put = |text: &'static str| {
        let store = &store;
        async move { store.put(&key("a"), text.into(), PutMode::IfAbsent).await }
    };
    assert!(put("late").await.is_err());
    assert_eq!(store.get(&key("a")).await.unwrap(), None);
    assert_eq!(store.get(&key("a")).await.unwrap(), None);
    assert_eq!(store.get(&key("a")).await.unwrap().as_deref(), Some(&b"late"[..]));
    assert_eq!(put("duplicate").await.unwrap(), PutOutcome::Exists);
}

#[tokio::test]
async fn stale_lists_miss_the_newest_and_a_crash_loses_the_deferred() {
    let plan = |call: &Call<'_>| match call.operation {
        Operation::List => Fault::StaleList,
        _ => Fault::None,
    };
    let store = Faulty::new(memory(), plan);
    for slot in 0..8 {
        store.put(&ObjectKey::log_slot(slot, 0), "x".into(), PutMode::IfAbsent).await.unwrap();
    }
    assert_eq!(store.list("log/", None, 100).await.unwrap().len(), 4);
    store.put_deferred(&key("pages/x"), "x".into()).await.unwrap();
    store.crash();
    store.sync().await.unwrap();
    assert_eq!(store.get(&key("pages/x")).await.unwrap(), None);
}

#[tokio::test]
async fn scopes_do_not_see_each_other() {
    let shared = memory();
    let one = Scoped::new(Arc::clone(&shared), key("w/one"));
    let two = Scoped::new(Arc::clone(&shared), key("w/two"));
    one.put(&ObjectKey::genesis(), "1".into(), PutMode::IfAbsent).await.unwrap();
    assert_eq!(two.get(&ObjectKey::genesis()).await.unwrap(), None);
    assert!(two.list("", None, 10).await.unwrap().is_empty());
    assert!(shared.get(&key("w/one/genesis")).await.unwrap().is_some());
}

#[tokio::test]
async fn store_that_was_away_is_opened_once_it_is_back() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let (counted, store) = (attempts.clone(), memory());
    let lazy = Lazy::new("the disk".to_owned(), move || {
        if counted.fetch_add(1, Ordering::Relaxed) < 2 {
            let (store, detail) = ("the disk".to_owned(), "not mounted".to_owned());
            return Err(StorageError::NotReachable { store, detail });
        }
        Ok(store.clone() as _)
    });
    assert_eq!(attempts.load(Ordering::Relaxed), 0, "nobody has used it");
    lazy.sync().await.expect("nothing was taken");
    for _ in 0..2 {
        assert!(lazy.get(&key("a")).await.unwrap_err().is_retryable());
    }
    for _ in 0..2 {
        assert_eq!(lazy.get(&key("a")).await.unwrap(), None);
    }
    assert_eq!(attempts.load(Ordering::Relaxed), 3, "it is opened once");
}

#[tokio::test]
async fn a_place_without_mark_is_not_an_empty_store() {
    let below = memory();
    let existing = Marked::new(Arc::clone(&below), Opening::Existing);
    for error in [
        existing.get(&key("a")).await.map(drop).unwrap_err(),
        existing.list("", None, 10).await.map(drop).unwrap_err(),
        existing.put(&key("a"), "x".into(), PutMode::Overwrite).await.map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, StorageError::NoStore { .. }), "{error}");
    }
    let made = Marked::new(Arc::clone(&below), Opening::CreateIfMissing);
    assert_eq!(made.list("", None, 10).await.unwrap(), []);
    assert_eq!(existing.get(&key("a")).await.unwrap(), None, "the same handle sees it now");
    assert!(made.get(&key("syncline-format")).await.is_err(), "the mark is nobody's object");

    // Emptied behind our back.
    below.delete(&key("syncline-format")).await.unwrap();
    assert!(made.get(&key("a")).await.unwrap_err().is_retryable());
    assert!(made.list("", None, 10).await.is_err());
    let other = "something else".into();
    below.put(&key("syncline-format"), other, PutMode::Overwrite).await.unwrap();
    let later = Marked::new(below, Opening::CreateIfMissing);
    let error = later.get(&key("a")).await.unwrap_err();
    assert!(matches!(error, StorageError::UnknownFormat { .. }), "{error}");
}

#[tokio::test]
async fn a_call_that_gets_no_answer_is_given_up() {
    /// Never answers.
    #[derive(Debug)]
    struct Silent(Arc<dyn ObjectStore>);

    impl Gate for Silent {
        fn store(&self) -> &dyn ObjectStore {
            &*self.0
        }

        async fn pass<A: Send>(&self, _: Operation, _: usize, _: impl Answer<A>) -> Result<A> {
            std::future::pending().await
        }
    }

    let short = Duration::from_millis(10);
    let timed =
        Timed::new(Arc::new(Silent(memory()))).with_call_max(short).with_transfer_max(short);
    for error in [
        timed.put(&key("a"), "x".into(), PutMode::Overwrite).await.map(drop).unwrap_err(),
        timed.get(&key("a")).await.map(drop).unwrap_err(),
        timed.size(&key("a")).await.map(drop).unwrap_err(),
        timed.list("", None, 1).await.map(drop).unwrap_err(),
        timed.delete(&key("a")).await.unwrap_err(),
    ] {
        assert!(error.is_retryable() && error.to_string().contains("memory store"), "{error}");
    }
}
