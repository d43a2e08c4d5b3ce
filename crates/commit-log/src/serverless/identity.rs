//! A store that is not the one it was: emptied, replaced, or given to somebody else.
//!
//! *Participants*: the stores of a workspace, each with an object that tells which store of the workspace it is, and devices
//! that may have slept while it left the workspace. *Goal*: a store that has lost its lists never takes part in an agreement
//! again; it would say that nothing was decided. *Non-goals*: a store that has lost only a part, or was restored from an
//! older copy (`docs/design/agreement.md`, "Restored stores"). *Invariants*: nothing that is written to a store counts unless
//! its identity was seen at that time; nothing that it says is believed unless that was seen within [`TRUSTED_FOR`].

use std::sync::Arc;
use std::time::Duration;

use model::{Clock, StoreId, Timestamp};
use parking_lot::Mutex;
use storage::layers::{Answer, Gate, Operation};
use storage::{ObjectKey, ObjectStore, Result, StorageError};

/// How long what a store says is believed after it was seen to be itself. A computer that was asleep asks again: both times count.
pub const TRUSTED_FOR: Duration = Duration::from_secs(20);

/// A store that must say which one it is before anything else that it says counts.
#[derive(Debug)]
pub struct Identified {
    store: Arc<dyn ObjectStore>,
    identity: StoreId,
    clock: Arc<dyn Clock>,
    seen: Mutex<Option<(Duration, Timestamp)>>,
}

impl Identified {
    /// Believes `store` only as long as it is the store `identity` of the workspace.
    pub fn new(store: Arc<dyn ObjectStore>, identity: StoreId, clock: Arc<dyn Clock>) -> Self {
        Self { store, identity, clock, seen: Mutex::default() }
    }

    fn is_trusted(&self) -> bool {
        let Some((elapsed, wall)) = *self.seen.lock() else { return false };
        let since = self.clock.elapsed().saturating_sub(elapsed);
        // The time since start stands still while the computer sleeps; the wall time may jump.
        let seconds = self.clock.now().seconds.abs_diff(wall.seconds);
        since < TRUSTED_FOR && seconds < TRUSTED_FOR.as_secs()
    }

    async fn identify(&self) -> Result<()> {
        let now = (self.clock.elapsed(), self.clock.now());
        let text = self.store.get(&ObjectKey::store_id()).await?;
        let found =
            text.as_ref().and_then(|text| std::str::from_utf8(text).ok()?.trim().parse().ok());
        if found == Some(self.identity) {
            *self.seen.lock() = Some(now);
            return Ok(());
        }
        *self.seen.lock() = None;
        let detail = match text {
            None => "was emptied or replaced: it does not know this workspace any more",
            Some(_) => "was replaced by another store of this workspace",
        };
        Err(StorageError::Replaced { store: self.store.describe(), detail })
    }

    async fn together<T>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let (identified, done) = futures_util::future::join(self.identify(), work).await;
        identified?;
        done
    }
}

impl Gate for Identified {
    fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    async fn pass<A: Send>(
        &self,
        operation: Operation,
        _: usize,
        answer: impl Answer<A>,
    ) -> Result<A> {
        match operation {
            // What was written before counts or not already. Of a look nothing is believed but that there may be news.
            Operation::Sync | Operation::Look => answer.await,
            // What is written counts only if the store is itself at that time: two that were emptied could decide anew what
            // was decided before. After a while the store is looked at first, since it may be somebody else's by now.
            Operation::Put | Operation::PutDeferred | Operation::Delete | Operation::Mend => {
                if !self.is_trusted() {
                    self.identify().await?;
                    return answer.await;
                }
                self.together(answer).await
            }
            Operation::Get | Operation::GetRange | Operation::Size | Operation::List => {
                if self.is_trusted() {
                    return answer.await;
                }
                self.together(answer).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use bytes::Bytes;
    use futures_util::FutureExt;
    use storage::PutMode;

    use super::*;

    /// A clock that a test sets; the wall time may stand apart from the time since the start.
    #[derive(Debug, Default)]
    struct SetClock {
        elapsed: AtomicU64,
        wall: AtomicU64,
    }

    impl Clock for SetClock {
        fn now(&self) -> Timestamp {
            let seconds = i64::try_from(self.wall.load(Ordering::Relaxed)).expect("small");
            Timestamp { seconds, ..Timestamp::default() }
        }

        fn elapsed(&self) -> Duration {
            Duration::from_secs(self.elapsed.load(Ordering::Relaxed))
        }

        fn sleep(&self, _: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(std::future::ready(()))
        }
    }

    fn now<T>(work: impl Future<Output = T>) -> T {
        work.now_or_never().expect("nothing to wait for")
    }

    #[test]
    fn emptied_store_is_not_believed_and_neither_is_another_in_its_place() {
        let inner = storage::open("memory:identity").expect("opens");
        let clock = Arc::new(SetClock::default());
        let (own, other) = (StoreId::from_bytes([1; 16]), StoreId::from_bytes([2; 16]));
        let store = Identified::new(inner.clone(), own, clock.clone());
        let slot = ObjectKey::log_slot(1, 0);
        now(store.get(&slot)).expect_err("it has no identity");
        let put = |id: StoreId| {
            now(inner.put(&ObjectKey::store_id(), id.to_string().into(), PutMode::Overwrite))
        };
        put(own).expect("put");
        assert_eq!(now(store.get(&slot)).expect("it is itself"), None);
        put(other).expect("put");
        assert_eq!(now(store.get(&slot)).expect("it was seen just now"), None);
        now(store.put(&slot, Bytes::from_static(b"vote"), PutMode::IfAbsent))
            .expect_err("counts not");
        now(inner.delete(&slot)).expect("deleted");
        // Asleep: the time since the start stood still. Then awake for long.
        for (elapsed, wall) in [(1, 100), (100, 200)] {
            put(own).expect("put");
            assert_eq!(now(store.get(&slot)).expect("it is itself"), None);
            put(other).expect("put");
            clock.elapsed.store(elapsed, Ordering::Relaxed);
            clock.wall.store(wall, Ordering::Relaxed);
            let vote = now(store.put(&slot, Bytes::from_static(b"vote"), PutMode::IfAbsent));
            let error = vote.expect_err("another store");
            assert!(error.to_string().contains("was replaced"), "{error}");
        }
        now(inner.delete(&ObjectKey::store_id())).expect("deleted");
        let error = now(store.size(&slot)).expect_err("emptied");
        assert!(error.to_string().contains("was emptied"), "{error}");
    }
}
