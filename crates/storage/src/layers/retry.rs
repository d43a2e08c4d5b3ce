//! Tries again what may succeed later.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::direct::{Direct, SignedRequest};
use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome, Waited};

/// The longest time to come back at that is waited for; who waits longer should know why.
const PATIENCE: Duration = Duration::from_secs(120);

/// Time and chance, which enter from outside so that a simulation can own them.
#[async_trait]
pub trait Waiting: fmt::Debug + Send + Sync {
    /// Returns when `duration` is over.
    async fn wait(&self, duration: Duration);

    /// Returns 64 random bits.
    fn random(&self) -> u64;
}

/// A store that retries errors with [`StorageError::is_retryable`], after a random wait out of a span that doubles
/// each time, so that many clients of a store that comes back do not all come at once.
///
/// A put [`PutMode::IfAbsent`] whose answer was lost may have happened: when a retry then says `Exists`, the object
/// is read, and if it holds the bytes of this put, the put counts as `Written`. Exclusiveness thus holds between puts
/// of different bytes; two writers of equal bytes may both be told `Written`, so a writer that must know puts its own
/// identity into what it writes, as a commit does.
#[derive(Debug)]
pub struct Retrying {
    store: Arc<dyn ObjectStore>,
    waiting: Arc<dyn Waiting>,
    attempts_max: u32,
    first_wait: Duration,
    wait_max: Duration,
}

impl Retrying {
    /// Retries over 5 attempts, with waits of up to 100 ms, 200 ms and so on, at most 10 s each.
    pub fn new(store: Arc<dyn ObjectStore>, waiting: Arc<dyn Waiting>) -> Self {
        Self {
            store,
            waiting,
            attempts_max: 5,
            first_wait: Duration::from_millis(100),
            wait_max: Duration::from_secs(10),
        }
    }

    /// Sets how many attempts are made at most, the first one included.
    #[must_use]
    pub fn with_attempts_max(mut self, attempts_max: u32) -> Self {
        self.attempts_max = attempts_max.max(1);
        self
    }

    /// Waits before attempt `attempt` + 1, or gives the error back when it is no use.
    async fn wait_after(&self, attempt: u32, error: StorageError) -> Result<()> {
        if !error.is_retryable() || attempt >= self.attempts_max {
            return Err(error);
        }
        let doubled = self.first_wait.saturating_mul(1 << attempt.saturating_sub(1).min(20));
        let span = u64::try_from(doubled.min(self.wait_max).as_micros()).unwrap_or(u64::MAX);
        // Between half of the span and all of it; a store that names a time is not asked before.
        let mut micros = span / 2 + self.waiting.random() % (span / 2 + 1);
        if let Some(named) = error.retry_after() {
            if named > PATIENCE {
                return Err(error);
            }
            micros = micros.saturating_add(u64::try_from(named.as_micros()).unwrap_or(u64::MAX));
        }
        tracing::debug!(%error, attempt, micros, "a store call is tried again");
        self.waiting.wait(Duration::from_micros(micros)).await;
        Ok(())
    }

    async fn retry<T, F>(&self, mut call: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut attempt = 1;
        loop {
            match call().await {
                Ok(value) => return Ok(value),
                Err(error) => self.wait_after(attempt, error).await?,
            }
            attempt += 1;
        }
    }

    /// Returns whether the object that is there is the one that an earlier attempt wrote.
    async fn is_ours(&self, key: &ObjectKey, bytes: &Bytes) -> Result<bool> {
        let found = self.retry(|| self.store.get(key)).await?;
        Ok(found.as_ref() == Some(bytes))
    }
}

#[async_trait]
impl ObjectStore for Retrying {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let mut attempt = 1;
        loop {
            match self.store.put(key, bytes.clone(), mode).await {
                Ok(PutOutcome::Exists) if attempt > 1 && self.is_ours(key, &bytes).await? => {
                    return Ok(PutOutcome::Written);
                }
                Ok(outcome) => return Ok(outcome),
                Err(error) => self.wait_after(attempt, error).await?,
            }
            attempt += 1;
        }
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        self.retry(|| self.store.put_deferred(key, bytes.clone())).await
    }

    /// Is not retried: a failed sync has lost what it should have made durable.
    async fn sync(&self) -> Result<()> {
        self.store.sync().await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.retry(|| self.store.get(key)).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.retry(|| self.store.get_range(key, range.clone())).await
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        self.retry(|| self.store.get_tail(key, length)).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.retry(|| self.store.size(key)).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.retry(|| self.store.list(prefix, start_after, limit)).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.retry(|| self.store.delete(key)).await
    }

    async fn wait_for(&self, key: &ObjectKey, patience: Duration) -> Result<Waited> {
        // Whoever waits for news asks again anyhow.
        self.store.wait_for(key, patience).await
    }

    async fn sign_request(
        &self,
        key: &ObjectKey,
        direct: Direct,
        lifetime: Duration,
    ) -> Result<Option<SignedRequest>> {
        self.retry(|| self.store.sign_request(key, direct, lifetime)).await
    }

    fn parts(&self) -> usize {
        self.store.parts()
    }

    async fn mend(&self, key: &ObjectKey) -> Result<bool> {
        self.retry(|| self.store.mend(key)).await
    }
}
