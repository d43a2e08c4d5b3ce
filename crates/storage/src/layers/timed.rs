//! No call takes for ever.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Result, StorageError};
use crate::layers::{Answer, Gate, Operation};
use crate::object_store::ObjectStore;

/// A store whose calls are given up after a while. What was given up may still happen.
///
/// The time grows with the bytes that a put sends, so that a slow line is slow and not broken; the bytes that a get
/// will bring are not known before, so it has the time of the largest.
#[derive(Debug)]
pub struct Timed {
    store: Arc<dyn ObjectStore>,
    call_max: Duration,
    transfer_max: Duration,
    bytes_per_second_min: u64,
}

impl Timed {
    /// Gives a call a minute, a read ten, and a put a second more for every 64 KiB.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            store,
            call_max: Duration::from_secs(60),
            transfer_max: Duration::from_secs(600),
            bytes_per_second_min: 64 << 10,
        }
    }

    /// Sets how long a call may take that carries few bytes.
    #[must_use]
    pub fn with_call_max(mut self, call_max: Duration) -> Self {
        self.call_max = call_max;
        self
    }

    /// Sets how long a call may take that reads an object or lists many.
    #[must_use]
    pub fn with_transfer_max(mut self, transfer_max: Duration) -> Self {
        self.transfer_max = transfer_max;
        self
    }

    fn limit(&self, operation: Operation, sent: usize) -> Duration {
        match operation {
            Operation::Put | Operation::PutDeferred => {
                self.call_max + Duration::from_secs(sent as u64 / self.bytes_per_second_min)
            }
            Operation::Size | Operation::Look | Operation::Delete => self.call_max,
            // A store that mends reads and writes whole objects.
            Operation::Sync
            | Operation::Get
            | Operation::GetRange
            | Operation::List
            | Operation::Mend => self.transfer_max,
        }
    }
}

impl Gate for Timed {
    fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    async fn pass<A: Send>(
        &self,
        operation: Operation,
        sent: usize,
        answer: impl Answer<A>,
    ) -> Result<A> {
        // Without a runtime there are no timers: a simulation has its own time, and its stores always answer.
        if tokio::runtime::Handle::try_current().is_err() {
            return answer.await;
        }
        let limit = self.limit(operation, sent);
        match tokio::time::timeout(limit, answer).await {
            Ok(result) => result,
            Err(_) => Err(StorageError::NotReachable {
                store: self.store.describe(),
                detail: format!("no answer within {} s", limit.as_secs()),
            }),
        }
    }
}
