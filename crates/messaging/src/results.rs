//! Effect exactly once: the results of operations that were done already.
//!
//! *Participants*: a dispatcher, which delivers a message at least once; a service, whose transaction holds an effect and
//! its result together. *Goals*: whoever sends an operation again gets the first result, and nothing happens a second
//! time. *Invariant*: of one operation, no two pieces of work run at once through one store, and none runs after a
//! result was recorded.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::error::Fault;
use crate::names::{Name, OperationId};

/// What is done once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Operation {
    /// The service that does it.
    pub service: Name,
    /// The method.
    pub method: String,
    /// The id that all attempts share.
    pub id: OperationId,
}

/// The work of an operation, not begun.
pub type Work<'work> = Pin<Box<dyn Future<Output = Result<Bytes, Fault>> + Send + 'work>>;

/// Remembers results. The real one is the service's database: it runs the work inside the transaction that records
/// the result, so that either both are there or neither.
#[async_trait]
pub trait ResultStore: fmt::Debug + Send + Sync {
    /// Returns the recorded result, or does the work and records what came out. A transient fault is not recorded.
    async fn once(&self, operation: &Operation, work: Work<'_>) -> Result<Bytes, Fault>;
}

/// For services that see to it themselves, and for work that has no effect.
#[derive(Debug, Clone, Copy, Default)]
pub struct NothingRemembered;

#[async_trait]
impl ResultStore for NothingRemembered {
    async fn once(&self, _operation: &Operation, work: Work<'_>) -> Result<Bytes, Fault> {
        work.await
    }
}

/// Keeps the newest results in memory: enough for effects that live in memory too.
#[derive(Debug)]
pub struct RememberedResults {
    results_max: usize,
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    cells: HashMap<Operation, Arc<Cell>>,
    /// Recorded operations and the sizes of their results, oldest first.
    order: VecDeque<(Operation, usize)>,
    bytes: usize,
}

/// The place of one result. Its lock is held while the work is done.
type Cell = tokio::sync::Mutex<Option<Result<Bytes, Fault>>>;

impl RememberedResults {
    /// Makes a store that keeps at most so many results, of so many bytes together.
    pub fn new(results_max: usize, bytes_max: usize) -> Self {
        Self { results_max, bytes_max, state: Mutex::default() }
    }

    /// Returns how many results there are.
    pub fn len(&self) -> usize {
        self.state.lock().order.len()
    }

    /// Says whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn record(&self, operation: &Operation, result: &Result<Bytes, Fault>) {
        let mut state = self.state.lock();
        state.order.push_back((operation.clone(), size_of(result)));
        state.bytes += size_of(result);
        while state.order.len() > self.results_max || state.bytes > self.bytes_max {
            let Some((oldest, size)) = state.order.pop_front() else { break };
            state.cells.remove(&oldest);
            state.bytes -= size;
        }
    }

    /// Forgets a cell that no result came into, unless others wait at it.
    fn forget_empty(&self, operation: &Operation, cell: Arc<Cell>) {
        let mut state = self.state.lock();
        drop(cell);
        let is_idle = |cell: &Arc<Cell>| {
            Arc::strong_count(cell) == 1 && cell.try_lock().is_ok_and(|result| result.is_none())
        };
        if state.cells.get(operation).is_some_and(is_idle) {
            state.cells.remove(operation);
        }
    }
}

/// Holds a cell while it is used, and forgets it afterwards if nothing was recorded, also when the work is broken off.
struct InUse<'store> {
    store: &'store RememberedResults,
    operation: &'store Operation,
    cell: Option<Arc<Cell>>,
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        if let Some(cell) = self.cell.take() {
            self.store.forget_empty(self.operation, cell);
        }
    }
}

#[async_trait]
impl ResultStore for RememberedResults {
    async fn once(&self, operation: &Operation, work: Work<'_>) -> Result<Bytes, Fault> {
        let cell = Arc::clone(self.state.lock().cells.entry(operation.clone()).or_default());
        let in_use = InUse { store: self, operation, cell: Some(cell) };
        let cell = in_use.cell.as_ref().expect("it is taken only at the end");
        let mut recorded = cell.lock().await;
        if let Some(result) = recorded.as_ref() {
            return result.clone();
        }
        let result = work.await;
        if !result.as_ref().is_err_and(|fault| fault.kind.is_transient()) {
            *recorded = Some(result.clone());
            self.record(operation, &result);
        }
        result
    }
}

fn size_of(result: &Result<Bytes, Fault>) -> usize {
    match result {
        Ok(bytes) => bytes.len(),
        Err(fault) => fault.message.len() + fault.code.len(),
    }
}

#[cfg(test)]
mod tests;
