//! The end of a process at a request, and stores that its requests reach until then.

use std::future::pending;
use std::sync::Arc;

use parking_lot::Mutex;
use storage::layers::{Answer, Gate, Operation};
use storage::{ObjectStore, Result, StorageError};
use tokio::sync::watch;

use crate::store::MemoryStore;

/// Where a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// How many requests take effect, in the order in which they reach the stores; no further one ever does.
    pub after: u64,
    /// Whether the process hears the answer to the last of them: then it lives until its next request would take effect.
    pub is_answered: bool,
}

/// What ends a process; clones are the same fate.
#[derive(Debug, Clone)]
pub(super) struct Fate {
    cut: Option<Cut>,
    requests: Arc<Mutex<u64>>,
    over: Arc<watch::Sender<bool>>,
}

impl Fate {
    /// Ends a process at a cut, or never.
    pub(super) fn new(cut: Option<Cut>) -> Self {
        Self { cut, requests: Arc::default(), over: Arc::new(watch::channel(false).0) }
    }

    /// Returns how many requests have taken effect.
    pub(super) fn requests(&self) -> u64 {
        *self.requests.lock()
    }

    /// Waits until the process ends.
    pub(super) async fn over(&self) {
        let mut over = self.over.subscribe();
        let ended = over.wait_for(|over| *over).await.map(drop);
        ended.expect("whoever waits holds the other end");
    }

    /// Lets a request take effect, or never. Returns its number.
    async fn begin(&self) -> u64 {
        let number = {
            let mut requests = self.requests.lock();
            let is_last = self.cut.is_some_and(|cut| *requests == cut.after);
            if is_last {
                self.over.send_replace(true);
            }
            if *self.over.borrow() {
                None
            } else {
                *requests += 1;
                Some(*requests)
            }
        };
        match number {
            Some(number) => number,
            None => pending().await,
        }
    }

    /// Lets a request be answered, or never.
    async fn end(&self, number: u64) {
        if self.cut == Some(Cut { after: number, is_answered: false }) {
            self.over.send_replace(true);
        }
        if *self.over.borrow() {
            pending::<()>().await;
        }
    }
}

/// A store as a process reaches it as long as it lives.
#[derive(Debug)]
pub(super) struct Mortal {
    store: MemoryStore,
    fate: Fate,
    is_gone: bool,
}

impl Mortal {
    /// Puts a store behind a fate; one that is gone never answers anything but that.
    pub(super) fn new(store: MemoryStore, fate: Fate, is_gone: bool) -> Self {
        Self { store, fate, is_gone }
    }
}

impl Gate for Mortal {
    fn store(&self) -> &dyn ObjectStore {
        &self.store
    }

    async fn pass<A: Send>(&self, _: Operation, _: usize, answer: impl Answer<A>) -> Result<A> {
        if self.is_gone {
            let (store, detail) = (self.describe(), "it is gone".to_owned());
            return Err(StorageError::NotReachable { store, detail });
        }
        let number = self.fate.begin().await;
        let result = answer.await;
        self.fate.end(number).await;
        result
    }
}
