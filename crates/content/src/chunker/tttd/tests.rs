use proptest::prelude::*;

use super::super::rolling::{Adler32, Plain, Rabin};
use super::super::{AVERAGE_MAX, Chunks};
use super::*;
use crate::samples::{random_bytes, text};

/// The definition in words: every fingerprint is computed anew.
fn naive_cut<F: RollingFingerprint>(parameters: TttdParameters, bytes: &[u8]) -> usize {
    let TttdParameters { sizes, divisor, backup_divisor } = parameters;
    let remainder = |length: usize, divisor: u32| {
        F::of(bytes[length - WINDOW..length].try_into().unwrap()).value() % divisor
    };
    let ends: Vec<_> = (sizes.min()..bytes.len().min(sizes.max())).collect();
    let main = ends.iter().find(|end| remainder(**end, divisor) == divisor - 1);
    let backup =
        ends.iter().rev().find(|end| remainder(**end, backup_divisor) == backup_divisor - 1);
    let backup = backup.filter(|_| bytes.len() >= sizes.max());
    main.or(backup).copied().unwrap_or(bytes.len().min(sizes.max()))
}

fn cuts_as_in_words<F: RollingFingerprint>(bytes: &[u8]) {
    let chunker = TttdChunker::<F>::new(1024).unwrap();
    let mut rest = bytes;
    for chunk in Chunks::new(&chunker, bytes) {
        assert_eq!(chunk.len(), naive_cut::<F>(chunker.parameters, rest));
        rest = &rest[chunk.len()..];
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn cuts_are_those_of_the_definition(seed in any::<u64>(), length in 0_usize..20_000) {
        for bytes in [random_bytes(seed, length), text(seed, length)] {
            cuts_as_in_words::<Adler32>(&bytes);
            cuts_as_in_words::<Plain>(&bytes);
            cuts_as_in_words::<Rabin>(&bytes);
        }
    }
}

#[test]
fn parameters_are_those_of_the_paper_scaled() {
    let found = [4096, 8192, 16_384].map(|average| {
        let TttdParameters { sizes, divisor, backup_divisor } =
            TttdParameters::around(average).unwrap();
        (sizes.min(), sizes.max(), divisor, backup_divisor)
    });
    let expected =
        [(1856, 11_299, 2179, 1090), (3713, 22_599, 4358, 2179), (7425, 45_197, 8717, 4358)];
    assert_eq!(found, expected);
}

#[test]
fn an_average_whose_largest_chunk_no_pack_takes_is_refused() {
    assert!(TttdParameters::around(AVERAGE_MAX / 2).is_ok());
    let error = TttdParameters::around(AVERAGE_MAX).unwrap_err();
    let expected = format!("not a power of two from 1024 to {}", AVERAGE_MAX / 2);
    assert!(error.to_string().ends_with(&expected), "{error}");
}

#[test]
fn chunks_of_noise_have_the_length_that_was_asked_for() {
    let bytes = random_bytes(1, 16 << 20);
    let mean = |chunker: &dyn Chunker| bytes.len() / Chunks::new(chunker, &bytes).count();
    for average in [4096, 16_384] {
        let means = [
            mean(&TttdChunker::<Adler32>::new(average).unwrap()),
            mean(&TttdChunker::<Rabin>::new(average).unwrap()),
        ];
        let around = average as usize * 95 / 100..=average as usize * 105 / 100;
        assert!(means.iter().all(|mean| around.contains(mean)), "{average}: {means:?}");
    }
}

/// Sums of text reach the backup divisor of 16 KiB, and not its divisor.
#[test]
fn where_the_divisor_never_fits_the_backup_cuts() {
    let bytes = text(2, 2 << 20);
    let chunker = TttdChunker::<Plain>::new(16_384).unwrap();
    let TttdParameters { sizes, divisor, backup_divisor } = chunker.parameters;
    let mut end = 0;
    let mut by_backup = 0;
    for chunk in Chunks::new(&chunker, &bytes) {
        end += chunk.len();
        let sum = Plain::of(bytes[end - WINDOW..end].try_into().unwrap()).value();
        assert_ne!(sum % divisor, divisor - 1);
        by_backup +=
            usize::from(chunk.len() < sizes.max && sum % backup_divisor == backup_divisor - 1);
    }
    assert!(by_backup > 40, "{by_backup}");
}
