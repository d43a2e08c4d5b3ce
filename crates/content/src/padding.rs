//! Lengths that say little: what a store can see is rounded up, so that it cannot tell what is in it by how long it is.

use model::codec::{Decoder, Encoder};

/// The shortest class of a payload, in bytes.
const PAYLOAD_LENGTH_MIN: usize = 128;

/// The least step between the lengths of packs and pages, in bytes.
const STEP_MIN: u64 = 4096;

/// Returns the length to which a pack or page of `length` bytes is padded: the next multiple of a step that grows with
/// the length, after Padmé (Nikitin et al., PETS 2019). Less than 4 KiB are added up to 128 KiB, and about 3 per cent at most above.
pub(crate) fn object_length(length: u64) -> u64 {
    let exponent = length.max(2).ilog2();
    let digits = exponent.ilog2() + 1;
    let step = STEP_MIN.max(1 << exponent.saturating_sub(digits));
    length.div_ceil(step) * step
}

/// Returns the length to which a payload of `length` bytes is padded: the next power of two. The number of chunks of a
/// small file is thereby known up to a factor of two, and no better.
pub(crate) fn payload_length(length: usize) -> usize {
    length.max(PAYLOAD_LENGTH_MIN).next_power_of_two()
}

/// Puts the length before bytes and zeros behind them.
pub(crate) fn pad(plain: &[u8], class: impl Fn(usize) -> usize) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encoder.byte_string(plain);
    let mut padded = encoder.into_bytes();
    padded.resize(class(padded.len()), 0);
    padded
}

/// Returns the bytes that were padded; nothing where [`pad`] would have padded them otherwise.
pub(crate) fn unpad(padded: &[u8], class: impl Fn(usize) -> usize) -> Option<&[u8]> {
    let mut decoder = Decoder::new(padded);
    let plain = decoder.byte_string(padded.len()).ok()?;
    let rest = decoder.remaining();
    let is_canonical = class(padded.len() - rest) == padded.len();
    (is_canonical && padded[padded.len() - rest..].iter().all(|&byte| byte == 0)).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_bytes_return_and_no_other_padding_does() {
        for length in [0, 1, 126, 127, 128, 5000] {
            let plain = vec![9; length];
            let padded = pad(&plain, payload_length);
            assert!(padded.len().is_power_of_two() && padded.len() >= PAYLOAD_LENGTH_MIN);
            assert_eq!(unpad(&padded, payload_length), Some(&plain[..]));
            let mut longer = padded.clone();
            longer.resize(padded.len() * 2, 0);
            assert_eq!(unpad(&longer, payload_length), None);
            if *padded.last().expect("not empty") == 0 {
                let mut dirty = padded;
                *dirty.last_mut().expect("not empty") = 1;
                assert_eq!(unpad(&dirty, payload_length), None);
            }
        }
    }

    #[test]
    fn lengths_of_objects_fall_into_few_classes_that_cost_little() {
        for length in [1, 4096, 4097, 65_536, 100_000, 4 << 20, (4 << 20) + 1, 16 << 20] {
            let padded = object_length(length);
            assert!(padded >= length && padded.is_multiple_of(4096), "{length} {padded}");
            assert!(padded - length < 4096.max(length / 8), "{length} {padded}");
            assert_eq!(object_length(padded), padded, "a padded length stays");
        }
        let classes: std::collections::BTreeSet<_> =
            (1..4 << 20).step_by(97).map(object_length).collect();
        assert!(classes.len() < 250, "{}", classes.len());
    }
}
