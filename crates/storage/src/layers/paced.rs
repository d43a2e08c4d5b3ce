//! No more calls than a store bears, and none while it wants to be left alone.

use std::sync::Arc;
use std::time::Duration;

use model::environment::Clock;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::{Result, StorageError};
use crate::layers::{Answer, Gate, Operation};
use crate::object_store::ObjectStore;

/// How fast a store is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paces {
    /// Calls at once in the beginning.
    pub calls_first: u32,
    /// Calls at once at most, however well it goes.
    pub calls_max: u32,
    /// The longest pause of the store that a call waits for; in a longer one it fails at once, so that a pool can turn to
    /// its other stores.
    pub patience: Duration,
}

impl Default for Paces {
    fn default() -> Self {
        Self { calls_first: 16, calls_max: 64, patience: Duration::from_secs(60) }
    }
}

/// A store that is asked as fast as it answers.
///
/// The number of calls at once grows by one for each round of calls that go well, and is halved when the store says that
/// it wants fewer, at most once for the calls that were on their way together: so do senders that share a line. When the
/// store names a time to come back at, no call reaches it before. Nothing is tried again here:
/// [`super::Retrying`], above this layer, knows what may be.
#[derive(Debug)]
pub struct Paced {
    store: Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
    paces: Paces,
    state: Mutex<State>,
    room: Notify,
}

#[derive(Debug)]
struct State {
    /// How many calls may be inside; a fraction counts towards the next one.
    calls: f64,
    inside: u32,
    /// When the store may be asked again, on the clock.
    pause_end: Duration,
    /// How often the number was halved; a call that began before the last time says nothing new.
    halved: u64,
}

/// The place of a call inside.
struct Entered<'a> {
    paced: &'a Paced,
    halved: u64,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.paced.state.lock().inside -= 1;
        self.paced.room.notify_one();
    }
}

impl Paced {
    /// Lets calls into `store`, with the usual paces.
    pub fn new(store: Arc<dyn ObjectStore>, clock: Arc<dyn Clock>) -> Self {
        Self::with_paces(store, clock, Paces::default())
    }

    /// Lets calls into `store`.
    pub fn with_paces(store: Arc<dyn ObjectStore>, clock: Arc<dyn Clock>, paces: Paces) -> Self {
        let calls = f64::from(paces.calls_first.clamp(1, paces.calls_max.max(1)));
        let state = State { calls, inside: 0, pause_end: Duration::ZERO, halved: 0 };
        Self { store, clock, paces, state: Mutex::new(state), room: Notify::new() }
    }

    /// Returns how many calls may be inside at once now.
    pub fn calls_now(&self) -> u32 {
        whole(self.state.lock().calls)
    }

    /// Waits until the store may be asked, and there is room.
    async fn enter(&self) -> Result<Entered<'_>> {
        loop {
            let pause = {
                let mut state = self.state.lock();
                let pause = state.pause_end.saturating_sub(self.clock.elapsed());
                if pause.is_zero() && state.inside < whole(state.calls) {
                    state.inside += 1;
                    if state.inside < whole(state.calls) {
                        self.room.notify_one();
                    }
                    return Ok(Entered { paced: self, halved: state.halved });
                }
                pause
            };
            if pause.is_zero() {
                self.room.notified().await;
                continue;
            }
            // Whoever was woken for a place does not take it now, and may be given up before it does: the next one is to know.
            self.room.notify_one();
            if pause > self.paces.patience {
                let (store, detail) = (self.store.describe(), "it asked for a pause".to_owned());
                return Err(StorageError::Throttled { store, detail, retry_after: pause });
            }
            self.clock.sleep(pause).await;
        }
    }

    /// Learns from an answer.
    fn learn<A>(&self, entered: &Entered<'_>, answer: &Result<A>) {
        let mut state = self.state.lock();
        match answer {
            Ok(_) => {
                let grown = state.calls + 1.0 / state.calls;
                state.calls = grown.min(f64::from(self.paces.calls_max));
            }
            Err(StorageError::Busy { .. } | StorageError::Throttled { .. })
                if entered.halved == state.halved =>
            {
                state.calls = (state.calls / 2.0).max(1.0);
                state.halved += 1;
            }
            // Whatever else fails says nothing about the pace.
            Err(_) => {}
        }
        if let Some(named) = answer.as_ref().err().and_then(StorageError::retry_after) {
            state.pause_end = state.pause_end.max(self.clock.elapsed().saturating_add(named));
        }
    }
}

/// A number of calls is small and positive, so that nothing is cut off but the fraction.
fn whole(calls: f64) -> u32 {
    calls as u32
}

impl Gate for Paced {
    fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    async fn pass<A: Send>(&self, _: Operation, _: usize, answer: impl Answer<A>) -> Result<A> {
        let entered = self.enter().await?;
        let answer = answer.await;
        self.learn(&entered, &answer);
        answer
    }
}
