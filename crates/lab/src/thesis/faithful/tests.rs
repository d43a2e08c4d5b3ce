//! Each deviation that is named is there, and each is looked for where it shows alone.

use std::collections::HashSet;

use content::chunker::{Chunks, TttdChunker};

use super::*;

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let byte = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(byte).collect()
}

fn lengths(chunker: &dyn Chunker, bytes: &[u8]) -> Vec<usize> {
    Chunks::new(chunker, bytes).map(<[u8]>::len).collect()
}

fn faithful(fingerprint: Fingerprint, average: u32) -> FaithfulTttd {
    FaithfulTttd::new(fingerprint, average).unwrap()
}

#[test]
fn chunks_are_the_bytes() {
    let bytes = noise(1, 300_000);
    for fingerprint in [Fingerprint::Adler32, Fingerprint::Plain, Fingerprint::Rabin] {
        let chunker = faithful(fingerprint, 4096);
        assert_eq!(Chunks::new(&chunker, &bytes).collect::<Vec<_>>().concat(), bytes);
    }
}

/// 1: without a main break a chunk has the largest size, also where the backup divisor fits.
#[test]
fn the_backup_divisor_is_never_used() {
    let bytes = noise(2, 2 << 20);
    let chunker = faithful(Fingerprint::Adler32, 4096);
    let max = chunker.sizes().max();
    let at_max = |lengths: &[usize]| lengths.iter().filter(|length| **length == max).count();
    let (ours, right) = (
        lengths(&chunker, &bytes),
        lengths(&TttdChunker::<content::chunker::rolling::Adler32>::new(4096).unwrap(), &bytes),
    );
    assert!(at_max(&ours) > ours.len() / 20, "{} of {}", at_max(&ours), ours.len());
    assert!(at_max(&right) * 100 < right.len(), "{} of {}", at_max(&right), right.len());
}

/// 2: noise breaks half as often, so chunks are larger than what was asked for.
#[test]
fn signed_numbers_make_larger_chunks() {
    let bytes = noise(3, 2 << 20);
    for fingerprint in [Fingerprint::Adler32, Fingerprint::Rabin] {
        let count = lengths(&faithful(fingerprint, 4096), &bytes).len();
        let mean = bytes.len() / count;
        assert!((5000..7000).contains(&mean), "{}: {mean}", fingerprint.name());
    }
}

/// 3: after an insertion chunks do not fall back into step as they do otherwise.
#[test]
fn rabin_fingerprints_never_forget() {
    let bytes = noise(4, 2 << 20);
    let mut edited = bytes.clone();
    edited.insert(0, b'!');
    let share_of_new = |chunker: &dyn Chunker| {
        let before: HashSet<_> = Chunks::new(chunker, &bytes).collect();
        let after: Vec<_> = Chunks::new(chunker, &edited).collect();
        after.iter().filter(|chunk| !before.contains(*chunk)).count() as f64 / after.len() as f64
    };
    let rabin = share_of_new(&faithful(Fingerprint::Rabin, 4096));
    let adler = share_of_new(&faithful(Fingerprint::Adler32, 4096));
    let right = share_of_new(&TttdChunker::<Rabin>::new(4096).unwrap());
    assert!(rabin > 0.5, "{rabin}");
    assert!(adler < 0.05 && right < 0.05, "{adler} {right}");
}

/// 4: the divisor of 16 KiB is out of reach of sums of signed bytes.
#[test]
fn plain_sums_cut_fixed_chunks_of_the_largest_size() {
    let bytes = noise(5, 4 << 20);
    let chunker = faithful(Fingerprint::Plain, 16_384);
    let found = lengths(&chunker, &bytes);
    let (_, others) = found.split_last().unwrap();
    assert!(others.iter().all(|length| *length == chunker.sizes().max()));
}
