//! Stores in trouble, and a clock and dice for tests.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use commit_log::serverless::group::NamedStore;
use model::{Clock, Random, Timestamp};
use parking_lot::Mutex;
use storage::faulty::{Call, Fault, Faulty};
use storage::layers::{Answer, Gate, Operation};
use storage::{ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome, Result};

/// The time of a tokio runtime, which jumps when everybody waits.
#[derive(Debug)]
pub(crate) struct TokioClock {
    start: tokio::time::Instant,
    slept_s: AtomicI64,
}

impl TokioClock {
    /// Sets the wall time forward, and nothing else, as it is when a computer wakes.
    pub(crate) fn sleep_as_computer(&self, seconds: i64) {
        self.slept_s.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self { start: tokio::time::Instant::now(), slept_s: AtomicI64::new(0) }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let seconds = self.elapsed().as_secs() as i64 + self.slept_s.load(Ordering::Relaxed);
        Timestamp { seconds, ..Timestamp::default() }
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Dice with a seed.
#[derive(Debug)]
pub(crate) struct TestRandom(Mutex<u64>);

impl TestRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }
}

impl Random for TestRandom {
    fn fill(&self, bytes: &mut [u8]) {
        for byte in bytes {
            let mut state = self.0.lock();
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (*state >> 56) as u8;
        }
    }
}

/// Names stores by their numbers.
pub(crate) fn numbered(stores: impl IntoIterator<Item = Arc<dyn ObjectStore>>) -> Vec<NamedStore> {
    let named = |(number, store)| NamedStore { name: format!("store {number}"), store };
    stores.into_iter().enumerate().map(named).collect()
}

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It cannot be reached.
    Failing,
    /// It never answers.
    Silent,
    /// It does what it is told, and the answer is lost every other time.
    Forgetful,
    ReadOnly,
    Full,
    /// Every answer takes so long.
    Slow(Duration),
}

/// A store in trouble.
#[derive(Debug)]
pub(crate) struct Troubled {
    store: Faulty,
    trouble: Trouble,
}

impl Troubled {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, trouble: Trouble) -> Self {
        let plan = move |call: &Call<'_>| match trouble {
            Trouble::Failing => Fault::ErrorBefore,
            Trouble::Forgetful if call.number % 2 == 1 => Fault::ErrorAfter,
            Trouble::ReadOnly => Fault::ReadOnly,
            Trouble::Full => Fault::NoSpace,
            Trouble::Silent | Trouble::Slow(_) | Trouble::Forgetful => Fault::None,
        };
        Self { store: Faulty::new(store, plan), trouble }
    }
}

impl Gate for Troubled {
    fn store(&self) -> &dyn ObjectStore {
        &self.store
    }

    async fn pass<A: Send>(&self, _: Operation, _: usize, answer: impl Answer<A>) -> Result<A> {
        match self.trouble {
            Trouble::Silent => std::future::pending().await,
            Trouble::Slow(duration) => tokio::time::sleep(duration).await,
            _ => {}
        }
        answer.await
    }
}

/// Counts what is asked of a store.
#[derive(Debug)]
pub(crate) struct Counting {
    store: Arc<dyn ObjectStore>,
    puts: AtomicUsize,
    gets: AtomicUsize,
}

impl Counting {
    pub(crate) fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, puts: AtomicUsize::new(0), gets: AtomicUsize::new(0) }
    }

    pub(crate) fn reset(&self) {
        self.puts.store(0, Ordering::Relaxed);
        self.gets.store(0, Ordering::Relaxed);
    }

    pub(crate) fn puts(&self) -> usize {
        self.puts.load(Ordering::Relaxed)
    }

    pub(crate) fn gets(&self) -> usize {
        self.gets.load(Ordering::Relaxed)
    }
}

impl Gate for Counting {
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
            Operation::Put | Operation::PutDeferred => self.puts.fetch_add(1, Ordering::Relaxed),
            Operation::Get | Operation::GetRange => self.gets.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        answer.await
    }
}

/// A store that lies about the log: it forgets puts that it has confirmed, hides objects, and shows one in the place of another.
#[derive(Debug)]
pub(crate) struct Liar {
    store: Arc<dyn ObjectStore>,
    dice: TestRandom,
}

impl Liar {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, seed: u64) -> Self {
        Self { store, dice: TestRandom::new(seed) }
    }

    fn roll(&self, sides: u8) -> u8 {
        model::environment::random_bytes::<1>(&self.dice)[0] % sides
    }
}

#[async_trait]
impl ObjectStore for Liar {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        match (key.as_log_slot(), self.roll(4)) {
            (Some(_), 0) => Ok(PutOutcome::Written),
            (Some(_), 1) => Ok(PutOutcome::Exists),
            _ => self.store.put(key, bytes, mode).await,
        }
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        let Some((slot, _)) = key.as_log_slot() else { return self.store.get(key).await };
        match self.roll(4) {
            0 => Ok(None),
            1 => self.store.get(&ObjectKey::log_slot(slot, self.roll(4).into())).await,
            2 if slot > 1 => self.store.get(&ObjectKey::log_slot(slot - 1, 1)).await,
            _ => self.store.get(key).await,
        }
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.store.get_range(key, range).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.store.size(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.store.list(prefix, start_after, limit).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.store.delete(key).await
    }
}
