//! What is alike in files that nobody has told are versions of each other.
//!
//! *Participants*: devices, which keep features of the files whose next versions they store as changes, and look by those of a new file for
//! one that it may be a change of. *Goals*: a copy that was edited before it was synced, and a release beside the last one, cost what is new
//! in them. *Non-goals*: being right: whatever is found is only tried. *Invariants*: features follow from the bytes alone, in whatever
//! pieces these come; they are as secret as the file, and never leave the device.
//!
//! The features are the smallest of the hashes of all places (Broder, "On the resemblance and containment of documents", 1997): of two
//! files as many are the same as there are places that both have, of those that any of them has. Places are sampled by what stands before
//! them, as Odess does it (Zou et al., 2021), so that bytes that are pushed in move nothing.

use std::sync::LazyLock;

/// How many features a file has at most.
pub(super) const FEATURES_MAX: usize = 8;

/// How many of them two files must share to count as alike: about three in eight of their places are the same then.
const FEATURES_ALIKE_MIN: usize = 3;

/// One place in so many is looked at.
const SAMPLED: u64 = 64;

/// What each byte adds to the hash of the 64 bytes before a place.
static GEAR: LazyLock<[u64; 256]> = LazyLock::new(|| {
    let mut bytes = [0; 2048];
    blake3::Hasher::new_derive_key("syncline delta v1: features").finalize_xof().fill(&mut bytes);
    let (words, _) = bytes.as_chunks();
    std::array::from_fn(|byte| u64::from_le_bytes(words[byte]))
});

/// Returns what belongs to that of some files, the newest at the end, which shares most features with another one, if it shares enough.
pub fn most_like<'a, T>(files: &'a [(Features, T)], features: &Features) -> Option<&'a T> {
    let shared = files.iter().map(|(other, _)| other.shared_with(features));
    most_alike((0..).zip(shared)).map(|number: usize| &files[number].1)
}

/// Returns which of some files shares most features with another one, and enough to count as alike: by its number, of several the highest.
pub fn most_alike<N: Copy + Ord>(shared: impl IntoIterator<Item = (N, usize)>) -> Option<N> {
    let most = shared.into_iter().max_by_key(|(number, count)| (*count, *number));
    most.filter(|(_, count)| *count >= FEATURES_ALIKE_MIN).map(|(number, _)| number)
}

/// Features of a file, the smallest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features(Vec<u64>);

impl Features {
    /// Finds those of a file that is in memory.
    pub fn of(bytes: &[u8]) -> Self {
        let mut finder = FeatureFinder::default();
        finder.push(bytes);
        finder.finish()
    }

    /// Makes those of an inflated form of them, which are like no features of files.
    pub(crate) fn of_form(&self) -> Self {
        const FORM: u64 = 0x5555_5555_5555_5555;
        Self(self.0.iter().map(|feature| feature ^ FORM).collect())
    }

    /// Takes numbers for what they were.
    pub(crate) fn from_numbers(numbers: Vec<u64>) -> Self {
        Self(numbers)
    }

    /// Tells how many of them another file has, too.
    fn shared_with(&self, other: &Self) -> usize {
        self.0.iter().filter(|feature| other.0.contains(feature)).count()
    }

    /// Returns them as numbers.
    pub fn numbers(&self) -> &[u64] {
        &self.0
    }
}

/// Finds the features of a file whose bytes come in pieces.
#[derive(Debug, Default)]
pub(crate) struct FeatureFinder {
    hash: u64,
    smallest: Vec<u64>,
}

impl FeatureFinder {
    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let gear = &*GEAR;
        for byte in bytes {
            self.hash = (self.hash << 1).wrapping_add(gear[usize::from(*byte)]);
            // The highest bits know most bytes.
            if self.hash >> (u64::BITS - SAMPLED.ilog2()) == 0 {
                self.sample();
            }
        }
    }

    #[cold]
    fn sample(&mut self) {
        // Sampled hashes are alike above: they are spread again.
        let feature = self.hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
        let is_full = self.smallest.len() == FEATURES_MAX;
        if is_full && self.smallest.last().is_some_and(|last| feature >= *last) {
            return;
        }
        if let Err(place) = self.smallest.binary_search(&feature) {
            self.smallest.insert(place, feature);
            self.smallest.truncate(FEATURES_MAX);
        }
    }

    /// Returns the features of all bytes.
    pub(crate) fn finish(self) -> Features {
        Features(self.smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{random_bytes, text};

    fn shared(one: &[u8], other: &[u8]) -> usize {
        Features::of(one).shared_with(&Features::of(other))
    }

    #[test]
    fn edited_copies_are_alike_and_other_files_are_not() {
        for seed in 0..20 {
            let file = text(seed, 20_000);
            let mut edited = file.clone();
            edited.splice(5000..5010, *b"some words that are new");
            edited.splice(..0, *b"a title");
            edited.truncate(18_000);
            assert!(shared(&file, &edited) >= 5, "seed {seed}");
            assert_eq!(shared(&file, &random_bytes(seed, 20_000)), 0);
            assert!(shared(&file, &text(seed + 100, 20_000)) < FEATURES_ALIKE_MIN, "seed {seed}");
        }
    }

    #[test]
    fn features_are_the_same_in_whatever_pieces_the_file_comes() {
        let file = text(1, 10_000);
        let mut finder = FeatureFinder::default();
        file.chunks(77).for_each(|piece| finder.push(piece));
        let features = finder.finish();
        assert_eq!(features, Features::of(&file));
        assert_eq!(features.numbers().len(), FEATURES_MAX);
        assert!(features.numbers().is_sorted() && features.numbers()[7] < 1 << 63);
        assert_eq!(Features::of(&[]), Features::default());
        // What repeats itself has few, and each once.
        assert!(Features::of(&[0; 100_000]).numbers().len() <= 1);
    }
}
