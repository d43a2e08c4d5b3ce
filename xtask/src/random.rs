//! Seeded random numbers (SplitMix64 seeding xorshift64*), so that every input can be built again.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// A stream of random numbers that depends on its seed alone.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Starts the stream of one seed.
    pub fn new(seed: u64) -> Self {
        // One step of SplitMix64 spreads neighbouring seeds apart; xorshift must not start at 0.
        let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self { state: (mixed ^ (mixed >> 31)) | 1 }
    }

    /// Starts a stream of its own for a part of a job, named by `part`.
    pub fn for_part(seed: u64, part: &str) -> Self {
        // DefaultHasher::new has fixed keys, so the same part gives the same stream on every run.
        let mut hasher = DefaultHasher::new();
        (seed, part).hash(&mut hasher);
        Self::new(hasher.finish())
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number in `0..bound` (0 for a bound of 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the items; `None` if there is none.
    pub fn choose<'items, T>(&mut self, items: &'items [T]) -> Option<&'items T> {
        items.get(usize::try_from(self.below(items.len() as u64)).unwrap_or(0))
    }

    /// Bytes that no compressor can shorten.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.next_u64().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }

    /// Lines of words out of a small vocabulary, frequent words more often, as prose has them.
    pub fn text(&mut self, length: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(length + 80);
        let mut column = 0;
        while text.len() < length {
            let rank = self.below(2000).min(self.below(2000)).min(self.below(2000));
            let before = text.len();
            push_word(&mut text, rank);
            column += text.len() - before + 1;
            text.push(if column > 72 { b'\n' } else { b' ' });
            column = if column > 72 { 0 } else { column };
        }
        text.truncate(length);
        text
    }
}

fn push_word(text: &mut Vec<u8>, rank: u64) {
    const SYLLABLES: [&str; 16] = [
        "an", "to", "re", "in", "is", "on", "ment", "er", "sta", "li", "co", "de", "um", "pro",
        "va", "ti",
    ];
    let mut rest = rank + 3;
    while rest > 0 {
        text.extend_from_slice(SYLLABLES[(rest % 16) as usize].as_bytes());
        rest /= 16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
        assert_eq!(Random::new(7).bytes(100), Random::new(7).bytes(100));
        assert_ne!(Random::new(7).bytes(100), Random::new(8).bytes(100));
        assert_eq!(Random::for_part(7, "a").text(99), Random::for_part(7, "a").text(99));
        assert_ne!(Random::for_part(7, "a").text(99), Random::for_part(7, "b").text(99));
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| (5..=9).contains(&random.between(5, 9))));
        assert_eq!(random.below(0), 0);
        assert_eq!(random.choose::<u8>(&[]), None);
    }
}
