//! Random bytes that follow from some that the browser has drawn.

use model::Random;
use zeroize::{Zeroize, Zeroizing};

use crate::failure::Failure;

/// Random bytes that follow from 32 of them. Made for one exchange, or one session.
#[derive(Debug)]
pub(crate) struct Seeded(std::sync::Mutex<blake3::OutputReader>);

impl Seeded {
    /// Begins with a seed, for one purpose.
    pub(crate) fn new(context: &str, seed: &[u8]) -> Result<Self, Failure> {
        let seed = Zeroizing::new(<[u8; 32]>::try_from(seed).map_err(|_| {
            Failure::of("length", &format!("a seed has 32 bytes, not {}", seed.len()))
        })?);
        let hasher = blake3::Hasher::new_derive_key(context);
        Ok(Self(std::sync::Mutex::new({ hasher }.update(&*seed).finalize_xof())))
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        // Keys follow from it.
        self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).zeroize();
    }
}

impl Random for Seeded {
    fn fill(&self, bytes: &mut [u8]) {
        // Nobody panics while it is held: a browser has one thread here.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).fill(bytes);
    }
}
