//! Small things for the tests of this room.

use std::sync::atomic::{AtomicU64, Ordering};

use model::Random;

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
