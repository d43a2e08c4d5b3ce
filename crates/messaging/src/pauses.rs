//! How long to wait before the next attempt.

use std::time::Duration;

use model::Random;
use model::environment::random_bytes;

/// The pauses between attempts: each may be twice as long as the one before, up to a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl Pauses {
    /// Returns how long to wait after so many failures, never the same for two instances, so that they do not all come
    /// back at one moment.
    pub(crate) fn after(&self, failures: u32, random: &dyn Random) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        let longest = self.first.saturating_mul(1 << doublings).min(self.longest);
        let random = u32::from_le_bytes(random_bytes(random));
        longest.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
    }
}
