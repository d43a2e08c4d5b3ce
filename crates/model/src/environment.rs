//! What enters every room from outside: time and randomness. Programs give the real ones, the seeded world its own.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::node::Timestamp;

/// A clock. Its wall time is for people only; nothing is ever ordered by it.
pub trait Clock: Send + Sync + Debug {
    /// Returns the wall time, which may jump.
    fn now(&self) -> Timestamp;

    /// Returns the time since some fixed point, which never goes back.
    fn elapsed(&self) -> Duration;

    /// Waits.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// A source of random bytes that nobody can predict.
pub trait Random: Send + Sync + Debug {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

/// Returns an array of random bytes, for example for an id.
pub fn random_bytes<const N: usize>(random: &dyn Random) -> [u8; N] {
    let mut bytes = [0; N];
    random.fill(&mut bytes);
    bytes
}
