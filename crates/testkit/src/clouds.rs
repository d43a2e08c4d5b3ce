//! Emulated clouds: stores whose requests take the time of a known service, in virtual time.
//!
//! *Participants*: a [`Cloud`] holds the objects of one service; every device has its own [`CloudStore`], its way to it.
//! *Goals*: figures over five services that repeat to the last digit: time comes from a clock that enters as an argument,
//! and jitter from a seed. *Non-goals*: failures other than silence, which `storage::faulty` makes. *Invariants*: a request that is alone
//! takes the time of its service; all requests of a device in one direction share the service's rate; a put takes effect,
//! and a read looks, half a latency before the answer.
//!
//! Reading order: [`services`] (how fast services are), this module, [`requests`] (what was asked), [`time`], then what is
//! measured: [`agreement`], [`older`] beside it, [`folders`] made of [`workloads`], and an [`outage`] of services that are
//! [`hanging`].
//!
//! A put whose future is dropped before it took effect never happens, and the rest of its body is not sent. Bodies wait for each other in the order in which
//! they were sent, instead of sharing the line evenly; the last of them arrives at the same time either way. But no body
//! takes longer than if it shared the line evenly with those that are on it, as small ones do not behind large ones; and
//! what fits into the first window of a connection does not wait.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::Clock;
use parking_lot::Mutex;
use storage::faulty::Operation;
use storage::{ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome, StorageError};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::random::Dice;
use crate::store::MemoryStore;
use requests::{Pending, Request, Requests};
use services::{Direction, Service};

pub mod agreement;
pub mod folders;
pub mod hanging;
pub mod older;
pub mod outage;
pub mod requests;
pub mod services;
pub mod time;
pub mod workloads;

type Result<T> = std::result::Result<T, StorageError>;

/// How many bytes of a body a connection sends before it waits for the other end: ten segments (RFC 6928).
const FIRST_WINDOW: u64 = 14_600;

/// How many bytes of a list an object stands for.
const LIST_ENTRY_LENGTH: u64 = 120;

/// A service and its objects; clones share them.
#[derive(Debug, Clone)]
pub struct Cloud {
    /// How fast it is.
    pub service: Service,
    /// What it holds.
    pub objects: MemoryStore,
}

impl Cloud {
    /// Makes an empty service.
    pub fn new(service: Service) -> Self {
        Self { service, objects: MemoryStore::default() }
    }

    /// Returns a device's way to it. `jitter` is the standard deviation of latencies, as a part of them.
    pub fn connect(&self, clock: Arc<dyn Clock>, requests: Requests, jitter: Jitter) -> CloudStore {
        CloudStore::new(Arc::new(self.objects.clone()), self.service, clock, requests, jitter)
    }
}

/// How latencies vary: around those of the service, by a deviation that is a part of them.
#[derive(Debug, Clone)]
pub struct Jitter {
    dice: Dice,
    deviation: f64,
}

impl Jitter {
    /// Varies latencies by the seed of `dice`.
    pub fn new(dice: Dice, deviation: f64) -> Self {
        Self { dice, deviation }
    }

    /// Lets every request take the same time.
    pub fn none() -> Self {
        Self::new(Dice::new(0), 0.0)
    }

    /// Returns a factor around 1.
    fn factor(&mut self) -> f64 {
        // The sum of twelve even numbers below 1 is close to normal, has a deviation of 1, and needs no function that
        // differs between machines.
        let sum: f64 = (0..12).map(|_| self.dice.below(1 << 32) as f64 / (1u64 << 32) as f64).sum();
        (1.0 + self.deviation * (sum - 6.0)).max(0.25)
    }
}

/// A store that takes the time of a service.
#[derive(Debug)]
pub struct CloudStore {
    store: Arc<dyn ObjectStore>,
    service: Service,
    clock: Arc<dyn Clock>,
    requests: Requests,
    jitter: Mutex<Jitter>,
    connections: Semaphore,
    up: Line,
    down: Line,
}

impl CloudStore {
    /// Lets requests to `store` take the time of a service.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        service: Service,
        clock: Arc<dyn Clock>,
        requests: Requests,
        jitter: Jitter,
    ) -> Self {
        let connections = Semaphore::new(service.connections.max(1));
        let (up, down) = (Line::default(), Line::default());
        let jitter = Mutex::new(jitter);
        Self { store, service, clock, requests, jitter, connections, up, down }
    }

    /// Begins a request: waits for a connection, sends the body, and lets half of the latency pass.
    async fn begin(&self, operation: Operation, key: &str, sent: u64) -> Underway<'_> {
        let request = Request {
            store: self.service.name,
            operation,
            key: key.to_owned(),
            sent,
            received: 0,
            asked: self.clock.elapsed(),
            connected: None,
            answered: None,
        };
        let pending = self.requests.begin(request);
        let permit = self.connections.acquire().await.expect("the connections are never closed");
        pending.connect(self.clock.elapsed());
        let is_write = matches!(
            operation,
            Operation::Put | Operation::PutDeferred | Operation::Sync | Operation::Delete
        );
        let direction = if is_write { self.service.up } else { self.service.down };
        let latency = direction.latency().mul_f64(self.jitter.lock().factor());
        self.up.pass(&*self.clock, &self.service.up, sent).await;
        self.clock.sleep(latency / 2).await;
        Underway { pending, latency, _permit: permit }
    }

    /// Ends a request whose answer has a body.
    async fn end(&self, underway: Underway<'_>, received: u64) {
        self.down.pass(&*self.clock, &self.service.down, received).await;
        self.clock.sleep(underway.latency / 2).await;
        underway.pending.end(self.clock.elapsed(), received);
    }
}

/// A request that has a connection.
struct Underway<'store> {
    pending: Pending,
    latency: Duration,
    _permit: SemaphorePermit<'store>,
}

/// The bytes of all requests in one direction.
#[derive(Debug, Default)]
struct Line {
    state: Mutex<LineState>,
}

#[derive(Debug, Default)]
struct LineState {
    /// Until when it is busy with what was sent so far.
    busy_until: Duration,
    /// When the bodies that are on it arrive.
    arrivals: Vec<Duration>,
}

impl Line {
    /// Waits until a body has passed.
    async fn pass(&self, clock: &dyn Clock, direction: &Direction, size: u64) {
        if size == 0 {
            return;
        }
        let now = clock.elapsed();
        let mut arrives = now + direction.alone(size);
        let own;
        {
            let mut state = self.state.lock();
            own = Duration::from_secs_f64(size as f64 / direction.rate());
            state.busy_until = now.max(state.busy_until) + own;
            state.arrivals.retain(|arrival| *arrival > now);
            if size > FIRST_WINDOW {
                let others = u32::try_from(state.arrivals.len()).expect("connections are few");
                let shared = now + own * (others + 1);
                arrives = arrives.max(state.busy_until.min(shared));
            }
            state.arrivals.push(arrives);
        }
        let mut body = Body { line: self, clock, own, began: now, arrives, has_arrived: false };
        clock.sleep(arrives.saturating_sub(now)).await;
        body.has_arrived = true;
    }
}

/// A body that is on a line. When it is given up the rest of it does not go: those after it have the room.
struct Body<'a> {
    line: &'a Line,
    clock: &'a dyn Clock,
    /// What it takes of the line's time.
    own: Duration,
    began: Duration,
    arrives: Duration,
    has_arrived: bool,
}

impl Drop for Body<'_> {
    fn drop(&mut self) {
        if self.has_arrived {
            return;
        }
        let now = self.clock.elapsed();
        let mut state = self.line.state.lock();
        let left = self.arrives.saturating_sub(now).as_secs_f64();
        let part = left / self.arrives.saturating_sub(self.began).as_secs_f64().max(1e-9);
        let rest = self.own.mul_f64(part.clamp(0.0, 1.0));
        state.busy_until = state.busy_until.saturating_sub(rest).max(now);
        if let Some(place) = state.arrivals.iter().position(|arrival| *arrival == self.arrives) {
            state.arrivals.swap_remove(place);
        }
    }
}

fn length_of(found: &Result<Option<Bytes>>) -> u64 {
    found.as_ref().ok().and_then(Option::as_ref).map_or(0, |bytes| bytes.len() as u64)
}

#[async_trait]
impl ObjectStore for CloudStore {
    fn describe(&self) -> String {
        self.service.name.to_owned()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let underway = self.begin(Operation::Put, key.as_str(), bytes.len() as u64).await;
        let result = self.store.put(key, bytes, mode).await;
        self.end(underway, 0).await;
        result
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        let underway = self.begin(Operation::Get, key.as_str(), 0).await;
        let result = self.store.get(key).await;
        self.end(underway, length_of(&result)).await;
        result
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        let underway = self.begin(Operation::GetRange, key.as_str(), 0).await;
        let result = self.store.get_range(key, range).await;
        self.end(underway, length_of(&result)).await;
        result
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        // One request: services take ranges that count from the end.
        let underway = self.begin(Operation::GetRange, key.as_str(), 0).await;
        let result = self.store.get_tail(key, length).await;
        self.end(underway, length_of(&result)).await;
        result
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        let underway = self.begin(Operation::Size, key.as_str(), 0).await;
        let result = self.store.size(key).await;
        self.end(underway, 0).await;
        result
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let underway = self.begin(Operation::List, prefix, 0).await;
        let result = self.store.list(prefix, start_after, limit).await;
        let count = result.as_ref().map_or(0, Vec::len) as u64;
        self.end(underway, count * LIST_ENTRY_LENGTH).await;
        result
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        let underway = self.begin(Operation::Delete, key.as_str(), 0).await;
        let result = self.store.delete(key).await;
        self.end(underway, 0).await;
        result
    }
}
