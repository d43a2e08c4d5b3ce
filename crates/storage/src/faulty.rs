//! A store that fails as it is told, for simulations and tests.
//!
//! A [`FaultPlan`] is asked before every call, with the number of the call, and answers with a [`Fault`]. Nothing here
//! is random or depends on time: the same plan over the same calls gives the same faults.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome};

pub use crate::layers::Operation;

/// How many of the last puts a stale list does not know of.
const STALE_PUTS: usize = 4;

/// A call, as a plan sees it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// How many calls came before.
    pub number: u64,
    /// Which method.
    pub operation: Operation,
    /// The key or prefix; empty for `sync`.
    pub key: &'a str,
    /// How many bytes are to be written; 0 for other calls.
    pub size: usize,
}

/// What goes wrong in one call. A fault that does not fit the call does nothing, unless it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The call fails as not reachable, and nothing happens.
    ErrorBefore,
    /// The call happens, and fails as not reachable: the answer is lost.
    ErrorAfter,
    /// A put stores only so many of the first bytes, and fails as not reachable.
    TornWrite {
        /// How many bytes are stored.
        length: usize,
    },
    /// A read gives, or a put silently stores, the object with one bit flipped at this place (modulo its length).
    FlippedByte {
        /// Which byte.
        offset: usize,
    },
    /// A put happens twice; the second answer is lost.
    DuplicatePut,
    /// A put fails as not reachable, and happens when so many further calls were made.
    LatePut {
        /// After how many calls.
        calls: u64,
    },
    /// A list does not know of the last few puts.
    StaleList,
    /// A put or sync fails for want of space.
    NoSpace,
    /// A put, sync or delete fails because the store is read-only.
    ReadOnly,
    /// A sync fails to make durable what was deferred, which is lost; later ones on this handle fail too.
    NotDurable,
}

/// Decides what goes wrong.
pub trait FaultPlan: Send + Sync {
    /// Returns the fault of this call.
    fn decide(&self, call: &Call<'_>) -> Fault;
}

impl<F: Fn(&Call<'_>) -> Fault + Send + Sync> FaultPlan for F {
    fn decide(&self, call: &Call<'_>) -> Fault {
        self(call)
    }
}

/// A store with faults over a good one.
///
/// What is deferred here reaches the store below only at the sync, so that [`Self::crash`] can lose it.
pub struct Faulty {
    store: Arc<dyn ObjectStore>,
    plan: Box<dyn FaultPlan>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: u64,
    late: Vec<LatePut>,
    deferred: Vec<(ObjectKey, Bytes)>,
    recent: VecDeque<ObjectKey>,
    is_poisoned: bool,
}

#[derive(Debug)]
struct LatePut {
    due: u64,
    key: ObjectKey,
    bytes: Bytes,
    mode: PutMode,
}

impl Faulty {
    /// Lets `plan` decide over the calls to `store`.
    pub fn new(store: Arc<dyn ObjectStore>, plan: impl FaultPlan + 'static) -> Self {
        Self { store, plan: Box::new(plan), state: Mutex::default() }
    }

    /// Loses what was deferred and not synced, as a crash of this process does, and heals the handle, as opening it
    /// again does. Late puts stay on their way.
    pub fn crash(&self) {
        let mut state = self.state.lock();
        state.deferred.clear();
        state.is_poisoned = false;
    }

    /// Returns how many calls were made.
    pub fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    /// Delivers late puts that are due, then decides over this call.
    async fn begin(&self, operation: Operation, key: &str, size: usize) -> Result<Fault> {
        let (number, due) = {
            let mut state = self.state.lock();
            let number = state.calls;
            state.calls += 1;
            let (due, late) = state.late.drain(..).partition(|put| put.due <= number);
            state.late = late;
            (number, due)
        };
        let due: Vec<LatePut> = due;
        for put in due {
            // Nobody waits for the answer any more.
            let _ = self.store.put(&put.key, put.bytes, put.mode).await;
        }
        let fault = self.plan.decide(&Call { number, operation, key, size });
        let store = self.describe();
        let is_write =
            matches!(operation, Operation::Put | Operation::PutDeferred | Operation::Sync);
        match fault {
            Fault::ErrorBefore => Err(self.not_reachable("the call was lost")),
            Fault::NoSpace if is_write => Err(StorageError::NoSpace { store }),
            Fault::ReadOnly if is_write || operation == Operation::Delete => {
                Err(StorageError::ReadOnly { store })
            }
            fault => Ok(fault),
        }
    }

    /// Ends a call that happened.
    fn end<T>(&self, fault: Fault, value: T) -> Result<T> {
        match fault {
            Fault::ErrorAfter => Err(self.not_reachable("the answer was lost")),
            _ => Ok(value),
        }
    }

    fn not_reachable(&self, detail: &str) -> StorageError {
        StorageError::NotReachable { store: self.describe(), detail: detail.to_owned() }
    }

    fn not_durable(&self) -> StorageError {
        let detail = "a flush failed".to_owned();
        StorageError::NotDurable { store: self.describe(), detail }
    }

    fn remember(&self, key: &ObjectKey) {
        let mut state = self.state.lock();
        state.recent.push_back(key.clone());
        if state.recent.len() > STALE_PUTS {
            state.recent.pop_front();
        }
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Faulty").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Flips one bit.
fn flip(bytes: &Bytes, offset: usize) -> Bytes {
    let mut bytes = bytes.to_vec();
    let length = bytes.len();
    if length > 0 {
        bytes[offset % length] ^= 1;
    }
    bytes.into()
}

fn flip_when(fault: Fault, bytes: Bytes) -> Bytes {
    match fault {
        Fault::FlippedByte { offset } => flip(&bytes, offset),
        _ => bytes,
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let fault = self.begin(Operation::Put, key.as_str(), bytes.len()).await?;
        self.remember(key);
        match fault {
            Fault::TornWrite { length } => {
                let torn = bytes.slice(..length.min(bytes.len()));
                self.store.put(key, torn, mode).await?;
                Err(self.not_reachable("the write broke off"))
            }
            Fault::LatePut { calls } => {
                let mut state = self.state.lock();
                let due = state.calls + calls;
                state.late.push(LatePut { due, key: key.clone(), bytes, mode });
                Err(self.not_reachable("the call is late"))
            }
            Fault::DuplicatePut => {
                let outcome = self.store.put(key, bytes.clone(), mode).await?;
                self.store.put(key, bytes, mode).await?;
                Ok(outcome)
            }
            fault => {
                let outcome = self.store.put(key, flip_when(fault, bytes), mode).await?;
                self.end(fault, outcome)
            }
        }
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        let fault = self.begin(Operation::PutDeferred, key.as_str(), bytes.len()).await?;
        {
            let mut state = self.state.lock();
            if state.is_poisoned {
                return Err(self.not_durable());
            }
            state.deferred.push((key.clone(), flip_when(fault, bytes)));
        }
        self.end(fault, ())
    }

    async fn sync(&self) -> Result<()> {
        let fault = match self.begin(Operation::Sync, "", 0).await {
            Ok(fault) => fault,
            Err(error) => {
                // A failed sync has lost what was deferred, whatever the reason.
                let mut state = self.state.lock();
                state.is_poisoned = true;
                state.deferred.clear();
                return Err(error);
            }
        };
        let deferred = {
            let mut state = self.state.lock();
            state.is_poisoned |= matches!(fault, Fault::NotDurable | Fault::ErrorAfter);
            if state.is_poisoned && fault != Fault::ErrorAfter {
                state.deferred.clear();
                return Err(self.not_durable());
            }
            std::mem::take(&mut state.deferred)
        };
        for (key, bytes) in deferred {
            self.remember(&key);
            self.store.put_deferred(&key, bytes).await?;
        }
        self.store.sync().await?;
        self.end(fault, ())
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        let fault = self.begin(Operation::Get, key.as_str(), 0).await?;
        let found = self.store.get(key).await?;
        self.end(fault, found.map(|bytes| flip_when(fault, bytes)))
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        let fault = self.begin(Operation::GetRange, key.as_str(), 0).await?;
        let found = self.store.get_range(key, range).await?;
        self.end(fault, found.map(|bytes| flip_when(fault, bytes)))
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        let fault = self.begin(Operation::GetRange, key.as_str(), 0).await?;
        let found = self.store.get_tail(key, length).await?;
        self.end(fault, found.map(|bytes| flip_when(fault, bytes)))
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        let fault = self.begin(Operation::Size, key.as_str(), 0).await?;
        let found = self.store.size(key).await?;
        self.end(fault, found)
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let fault = self.begin(Operation::List, prefix, 0).await?;
        if fault != Fault::StaleList {
            let found = self.store.list(prefix, start_after, limit).await?;
            return self.end(fault, found);
        }
        // More is read than asked, so that leaving out the newest does not look like the end.
        let mut found =
            self.store.list(prefix, start_after, limit.saturating_add(STALE_PUTS)).await?;
        let recent = self.state.lock().recent.clone();
        found.retain(|entry| !recent.contains(&entry.key));
        found.truncate(limit);
        Ok(found)
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        let fault = self.begin(Operation::Delete, key.as_str(), 0).await?;
        self.store.delete(key).await?;
        self.end(fault, ())
    }

    fn parts(&self) -> usize {
        self.store.parts()
    }

    async fn mend(&self, key: &ObjectKey) -> Result<bool> {
        self.store.mend(key).await
    }
}
