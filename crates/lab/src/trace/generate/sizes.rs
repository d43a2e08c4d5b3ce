//! How large people's files are, and what is in them.
//!
//! The Syncany thesis (2011, section 6.3.1) asked 35 people what they would sync: over half of the files have 512 bytes to 32 KB, about 75 % less than 128 KB, and 8 %
//! more than 2 MB; of all files 10 % are PDF, 9 % JPG, about 8 % office documents. BenchBox makes none of more than 100 MB. Ours: how the rest is shared out (in
//! [`CLASSES`]), that within a class sizes are drawn evenly by magnitude, that what is no such document is text, and that all files of more than 2 MB are media.

use super::super::data::Kind;
use crate::random::Random;

/// Of a hundred files, so many are from here to there in bytes.
const CLASSES: [((u64, u64), u64); 5] = [
    ((1, 511), 10),
    ((512, 32 * 1024 - 1), 52),
    ((32 * 1024, 128 * 1024 - 1), 13),
    ((128 * 1024, LARGE), 17),
    ((LARGE + 1, MAX), 8),
];

/// More than this is large.
const LARGE: u64 = 2 * 1024 * 1024;

/// No file has more bytes.
const MAX: u64 = 100_000_000;

/// Of a hundred files, so many are PDF, JPG, or office documents: bytes that nothing compresses.
const COMPRESSED_PERCENT: u64 = 10 + 9 + 8;

/// What a new file is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct New {
    pub(super) size: u64,
    pub(super) data: Kind,
    pub(super) seed: u64,
}

/// Draws a file. None has more than an eighth of a tree, so that a small tree is not a single file.
pub(super) fn file(random: &mut Random, tree_bytes: u64) -> New {
    let most = (tree_bytes / 8).clamp(1, MAX);
    let (low, high) = random.weighted(CLASSES.into_iter());
    let size = random.evenly_by_magnitude(low, high).min(most);
    let is_compressed = size > LARGE || random.below(100) < COMPRESSED_PERCENT;
    let data = if is_compressed { Kind::Random } else { Kind::Text };
    New { size, data, seed: random.next() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_pre_study() {
        let mut random = Random::new(3);
        let files: Vec<New> = (0..100_000).map(|_| file(&mut random, u64::MAX)).collect();
        let share = |is: &dyn Fn(&New) -> bool| {
            files.iter().filter(|file| is(file)).count() as f64 / files.len() as f64
        };
        let small = share(&|file| (512..32 * 1024).contains(&file.size));
        assert!(small > 0.5, "{small}");
        let below = share(&|file| file.size < 128 * 1024);
        assert!((below - 0.75).abs() < 0.006, "{below}");
        let large = share(&|file| file.size > 2 * 1024 * 1024);
        assert!((large - 0.08).abs() < 0.004, "{large}");
        assert!(files.iter().all(|file| (1..=100_000_000).contains(&file.size)));
        let compressed = share(&|file| file.data == Kind::Random);
        assert!((compressed - (0.92 * 0.27 + 0.08)).abs() < 0.006, "{compressed}");
    }

    #[test]
    fn a_small_tree_has_small_files() {
        let mut random = Random::new(3);
        assert!((0..10_000).all(|_| file(&mut random, 800_000).size <= 100_000));
        assert_eq!(file(&mut random, 0).size, 1);
    }
}
