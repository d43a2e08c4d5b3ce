//! TTTD as the thesis's own program had it, to tell its algorithms from its defects.
//!
//! The program of the thesis is not public; what follows is what the oldest public sources of Syncany do, of the year after. It differs
//! from what TTTD's paper describes, and what [`content::chunker::TttdChunker`] does, in four ways:
//!
//! 1. *The backup divisor is never used*: the loop ends one byte before the place that would ask for it. A chunk without a main break is
//!    cut at the upper threshold.
//! 2. *Numbers are signed*: a byte is a number from -128 to 127, and so is a fingerprint of 32 bits, whose remainder is negative where it
//!    is. Half of the fingerprints of noise can never cut.
//! 3. *Rabin fingerprints never forget*: no byte is taken out when the window moves, so each cut hangs on all bytes since the start of the
//!    window, and cuts do not fall back into step after an insertion.
//! 4. *Sums of 48 signed bytes* lie between -6,144 and 6,096: PLAIN can never reach the divisor of 16 KiB, and rarely that of 8.
//!
//! A fifth has no effect on what is stored: a file may end with an empty chunk.

use content::ContentError;
use content::chunker::rolling::{Rabin, RollingFingerprint, WINDOW};
use content::chunker::{ChunkSizes, Chunker, TttdParameters};

use super::configuration::Fingerprint;

/// Cuts as the program did.
pub struct FaithfulTttd {
    fingerprint: Fingerprint,
    parameters: TttdParameters,
}

impl FaithfulTttd {
    /// Makes a chunker for an average size in bytes, a power of two.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`].
    pub fn new(fingerprint: Fingerprint, average: u32) -> Result<Self, ContentError> {
        Ok(Self { fingerprint, parameters: TttdParameters::around(average)? })
    }

    fn first_break<F: SignedFingerprint>(&self, window: &[u8]) -> Option<usize> {
        let min = self.parameters.sizes.min();
        let divisor = self.parameters.divisor as i32;
        let mut fingerprint = F::of(window.get(min - WINDOW..)?.first_chunk()?);
        for length in min..window.len() {
            if fingerprint.value() % divisor == divisor - 1 {
                return Some(length);
            }
            fingerprint.roll(window[length - WINDOW], window[length]);
        }
        None
    }
}

impl Chunker for FaithfulTttd {
    fn sizes(&self) -> ChunkSizes {
        self.parameters.sizes
    }

    fn cut(&self, window: &[u8], end_of_input: bool) -> Option<usize> {
        let max = self.parameters.sizes.max();
        if window.len() < max && !end_of_input || window.is_empty() {
            return None;
        }
        let window = &window[..window.len().min(max)];
        let found = match self.fingerprint {
            Fingerprint::Adler32 => self.first_break::<SignedAdler32>(window),
            Fingerprint::Plain => self.first_break::<SignedPlain>(window),
            Fingerprint::Rabin => self.first_break::<UnforgettingRabin>(window),
        };
        Some(found.unwrap_or(window.len()))
    }
}

/// A fingerprint in the numbers of Java.
trait SignedFingerprint {
    fn of(window: &[u8; WINDOW]) -> Self;

    fn roll(&mut self, outgoing: u8, incoming: u8);

    fn value(&self) -> i32;
}

fn signed(byte: u8) -> i32 {
    i32::from(byte.cast_signed())
}

struct SignedAdler32 {
    sum: i32,
    sum_of_sums: i32,
}

impl SignedFingerprint for SignedAdler32 {
    fn of(window: &[u8; WINDOW]) -> Self {
        let mut found = Self { sum: 0, sum_of_sums: 0 };
        for byte in window {
            found.sum += signed(*byte);
            found.sum_of_sums += found.sum;
        }
        found
    }

    fn roll(&mut self, outgoing: u8, incoming: u8) {
        self.sum += signed(incoming) - signed(outgoing);
        self.sum_of_sums += self.sum - WINDOW as i32 * signed(outgoing);
    }

    fn value(&self) -> i32 {
        self.sum & 0xffff | self.sum_of_sums << 16
    }
}

struct SignedPlain(i32);

impl SignedFingerprint for SignedPlain {
    fn of(window: &[u8; WINDOW]) -> Self {
        Self(window.iter().map(|byte| signed(*byte)).sum())
    }

    fn roll(&mut self, outgoing: u8, incoming: u8) {
        self.0 += signed(incoming) - signed(outgoing);
    }

    fn value(&self) -> i32 {
        self.0
    }
}

struct UnforgettingRabin(Rabin);

impl SignedFingerprint for UnforgettingRabin {
    fn of(window: &[u8; WINDOW]) -> Self {
        Self(Rabin::of(window))
    }

    fn roll(&mut self, _outgoing: u8, incoming: u8) {
        // A byte of zero takes nothing out when it leaves.
        self.0.roll(0, incoming);
    }

    fn value(&self) -> i32 {
        self.0.value().cast_signed()
    }
}

#[cfg(test)]
mod tests;
