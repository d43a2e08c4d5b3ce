//! The time of the runtime, for what the drivers wait for.

use std::pin::Pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::Timestamp;
use model::environment::Clock;
use tokio::time::Instant;

/// The clock of the program.
#[derive(Debug)]
pub(crate) struct RuntimeClock(Instant);

impl RuntimeClock {
    /// Starts to count.
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RuntimeClock {
    #[expect(clippy::disallowed_methods, reason = "tokens end by the wall, and nobody gives it")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Timestamp { seconds, nanoseconds: since.subsec_nanos() }
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}
