//! The time of a measurement: that of a runtime whose clock jumps whenever everybody waits.
//!
//! The worlds of this crate have an executor of their own, which knows no background work: what is spawned there stands
//! still. Figures need it to go on, so they run on tokio, with its clock stopped.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use model::{Clock, Timestamp};
use tokio::runtime::Builder;
use tokio::time::Instant;

/// The wall time at the beginning of every measurement, in seconds since 1970.
const EPOCH: i64 = 1_790_000_000;

/// The clock of the runtime it was made on.
#[derive(Debug)]
pub struct RuntimeClock {
    start: Instant,
}

impl RuntimeClock {
    /// Starts a clock.
    pub fn start() -> Arc<Self> {
        Arc::new(Self { start: Instant::now() })
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.start.elapsed();
        let seconds = EPOCH + elapsed.as_secs() as i64;
        Timestamp { seconds, nanoseconds: elapsed.subsec_nanos() }
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Runs `work` in virtual time: it takes no longer than its computing does, and its clock shows the time that it waited.
pub fn in_virtual_time<T>(work: impl AsyncFnOnce(Arc<dyn Clock>) -> T) -> T {
    let built = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = built.expect("a thread and a timer are there");
    runtime.block_on(async { work(RuntimeClock::start()).await })
}
