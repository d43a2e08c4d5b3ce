use proptest::prelude::*;

use super::*;
use crate::chunker::Chunks;
use crate::samples::random_bytes;

fn key(seed: u64) -> [u8; 32] {
    random_bytes(seed, 32).try_into().unwrap()
}

fn lengths(bytes: &[u8], average: u32, key: &[u8; 32], search: Search) -> Vec<usize> {
    let sizes = ChunkSizes::around(average).unwrap();
    let chunker = MinimumChunker::with_search(sizes, key, search);
    Chunks::new(&chunker, bytes).map(<[u8]>::len).collect()
}

/// Made by an independent implementation of `docs/design/pack-format.md`; a change of these is a change of format.
#[test]
fn golden_bytes_are_cut_at_their_golden_places() {
    let bytes = [random_bytes(1, 300_000), vec![0; 200_000], random_bytes(2, 100_000)].concat();
    let small = [
        17_909, 18_727, 21_853, 13_848, 24_322, 21_189, 23_193, 24_046, 14_540, 21_647, 23_833,
        11_074, 15_065, 21_089, 18_608, 8_240, 24_576, 24_576, 24_576, 24_576, 24_576, 24_576,
        24_576, 24_576, 19_477, 13_794, 19_842, 10_215, 22_733, 18_148,
    ];
    let large = [43_039, 98_002, 60_233, 89_669, 98_304, 98_304, 61_353, 51_096];
    for search in Search::available() {
        assert_eq!(lengths(&bytes, 16 << 10, &key(3), search), small, "{search:?}");
        assert_eq!(lengths(&bytes, 64 << 10, &key(3), search), large, "{search:?}");
    }
}

proptest! {
    #[test]
    fn every_search_finds_what_the_reference_finds(
        seed in any::<u64>(),
        length in WINDOW..6000,
        alphabet in prop::sample::select(vec![1_u8, 2, 3, 16, 255]),
        hash_seed in any::<u64>(),
    ) {
        let mut bytes = random_bytes(seed, length);
        for byte in &mut bytes {
            *byte %= alphabet;
        }
        let hash = PositionHash::new(&key(hash_seed));
        let (expected, value) = last_minimum(&bytes, hash);
        prop_assert_eq!(hash.of(*bytes[expected..].first_chunk().unwrap()), value);
        for search in Search::available() {
            prop_assert_eq!(search.last_minimum(&bytes, hash), expected, "{:?}", search);
        }
    }
}

#[test]
fn ties_of_the_largest_hash_go_to_the_last() {
    let hash = PositionHash { multiplier: 1, addend: u32::MAX };
    for length in [4, 5, 514, 515, 516, 1027, 4099] {
        for search in Search::available() {
            assert_eq!(search.last_minimum(&vec![0; length], hash), length - WINDOW, "{search:?}");
        }
    }
}

#[test]
fn runs_make_the_largest_chunks() {
    for byte in [0, b' ', 0xff] {
        let lengths = lengths(&vec![byte; 10 * 1536], 1024, &key(1), Search::fastest());
        assert_eq!(lengths, [1536; 10]);
    }
}

#[test]
fn another_key_cuts_elsewhere() {
    let bytes = random_bytes(1, 200_000);
    let one = lengths(&bytes, 4096, &key(1), Search::fastest());
    let two = lengths(&bytes, 4096, &key(2), Search::fastest());
    assert_ne!(one, two);
}

#[test]
fn a_rest_below_the_maximum_is_one_chunk() {
    let bytes = random_bytes(1, 24 * 1024 - 1);
    assert_eq!(lengths(&bytes, 16 << 10, &key(1), Search::fastest()), [24 * 1024 - 1]);
    assert!(lengths(&[], 16 << 10, &key(1), Search::fastest()).is_empty());
}
