//! What goes on after the answer: writes under way, and objects that some home still lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::key::ObjectKey;

/// Work in the background. With a runtime it goes on by itself; without one (in a simulation) it goes on while
/// somebody waits for it.
#[derive(Default)]
pub(crate) struct Backlog {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Default)]
struct State {
    /// Of which object each work is that was handed to the runtime, by number.
    running: BTreeMap<u64, Option<ObjectKey>>,
    next: u64,
    kept: Vec<BoxFuture<'static, ()>>,
    owed: BTreeSet<ObjectKey>,
}

impl std::fmt::Debug for Backlog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.lock();
        formatter
            .debug_struct("Backlog")
            .field("running", &(state.running.len() + state.kept.len()))
            .field("owed", &state.owed.len())
            .finish_non_exhaustive()
    }
}

/// Says that a task has ended, even when it was dropped.
struct EndOnDrop(Arc<Backlog>, u64);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.state.lock().running.remove(&self.1);
        self.0.ended.notify_waiters();
    }
}

impl Backlog {
    /// Lets `work` go on in the background; `key` is the object that some store lacks until it has ended.
    pub(crate) fn keep(self: &Arc<Self>, key: Option<ObjectKey>, work: BoxFuture<'static, ()>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            self.state.lock().kept.push(work);
            return;
        };
        let number = {
            let mut state = self.state.lock();
            let number = state.next;
            state.next += 1;
            state.running.insert(number, key);
            number
        };
        let end = EndOnDrop(Arc::clone(self), number);
        runtime.spawn(async move {
            work.await;
            drop(end);
        });
    }

    /// Waits until all work that is under way has ended.
    pub(crate) async fn drain(&self) {
        loop {
            let ended = self.ended.notified();
            let (kept, running) = {
                let mut state = self.state.lock();
                (std::mem::take(&mut state.kept), state.running.len())
            };
            if !kept.is_empty() {
                join_all(kept).await;
            } else if running > 0 {
                ended.await;
            } else {
                return;
            }
        }
    }

    /// Returns how many pieces of work are under way.
    pub(crate) fn running(&self) -> usize {
        let state = self.state.lock();
        state.running.len() + state.kept.len()
    }

    /// Remembers that some home lacks its piece of an object.
    pub(crate) fn owe(&self, key: &ObjectKey) {
        self.state.lock().owed.insert(key.clone());
    }

    /// Forgets that a home lacked a piece of an object.
    pub(crate) fn pay(&self, key: &ObjectKey) {
        self.state.lock().owed.remove(key);
    }

    /// Returns the objects that a store lacks as long as work under way has not ended.
    pub(crate) fn unfinished(&self) -> Vec<ObjectKey> {
        self.state.lock().running.values().flatten().cloned().collect()
    }

    /// Returns the objects that some home lacks.
    pub(crate) fn owed(&self) -> Vec<ObjectKey> {
        self.state.lock().owed.iter().cloned().collect()
    }
}
