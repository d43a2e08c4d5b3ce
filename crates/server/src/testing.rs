//! Small things for the tests of this room.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{Clock, Random, Timestamp};
use tokio::time::Instant;

/// A source of bytes that never repeats, which is all that tests need of randomness.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Random for Counter {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let mut reader = blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof();
        reader.fill(bytes);
    }
}

/// The time of the runtime, which passes when everybody waits where a test says so.
#[derive(Debug)]
pub(crate) struct TokioClock(pub(crate) Instant);

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.0.elapsed();
        Timestamp { seconds: elapsed.as_secs() as i64, nanoseconds: elapsed.subsec_nanos() }
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}
