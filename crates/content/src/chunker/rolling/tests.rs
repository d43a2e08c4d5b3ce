use proptest::prelude::*;

use super::*;
use crate::samples::random_bytes;

/// What the window would have if it were read anew.
fn follows<F: RollingFingerprint + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let windows = bytes.array_windows::<WINDOW>();
    let mut rolling = F::of(bytes.first_chunk().unwrap());
    for (window, incoming) in windows.zip(&bytes[WINDOW..]) {
        rolling.roll(window[0], *incoming);
        let moved: Vec<_> = window[1..].iter().chain([incoming]).copied().collect();
        assert_eq!(rolling, F::of(&moved.try_into().unwrap()));
    }
}

proptest! {
    #[test]
    fn a_window_that_moves_has_the_fingerprint_of_one_that_is_read_anew(
        bytes in prop::collection::vec(any::<u8>(), WINDOW..300),
    ) {
        follows::<Adler32>(&bytes);
        follows::<Plain>(&bytes);
        follows::<Rabin>(&bytes);
    }
}

#[test]
fn extremes_overflow_nothing() {
    let bytes: Vec<u8> = [[255; 100], [0; 100], [255; 100]].concat();
    follows::<Adler32>(&bytes);
    follows::<Plain>(&bytes);
    follows::<Rabin>(&bytes);
}

#[test]
fn a_remainder_is_that_of_a_division_bit_by_bit() {
    let window: [u8; WINDOW] = random_bytes(1, WINDOW).try_into().unwrap();
    let mut remainder = 0_u64;
    for bit in window.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)) {
        remainder = remainder << 1 | u64::from(bit);
        if remainder >> 32 == 1 {
            remainder ^= 1 << 32 | u64::from(POLYNOMIAL);
        }
    }
    assert_eq!(u64::from(Rabin::of(&window).value()), remainder);
}

/// x to the power of 2^`squarings`, by the polynomial.
fn power(squarings: u32) -> u32 {
    let multiply = |one: u32, other: u32| {
        (0..32).rev().fold(0_u32, |product, bit| {
            let shifted = (product << 1) ^ ((product >> 31) * POLYNOMIAL);
            if other >> bit & 1 == 1 { shifted ^ one } else { shifted }
        })
    };
    (0..squarings).fold(2, |found, _| multiply(found, found))
}

/// Rabin's test: of degree 32, whose only prime factor is 2, x^(2^32) is x, and x^(2^16) - x has no factor in common with it.
#[test]
fn the_polynomial_is_irreducible() {
    assert_eq!(power(32), 2);
    let degree = |polynomial: u64| 63 - polynomial.leading_zeros();
    let (mut one, mut other) = (1 << 32 | u64::from(POLYNOMIAL), u64::from(power(16) ^ 2));
    while other != 0 {
        while one != 0 && degree(one) >= degree(other) {
            one ^= other << (degree(one) - degree(other));
        }
        (one, other) = (other, one);
    }
    assert_eq!(one, 1);
}

#[test]
fn known_windows_have_known_fingerprints() {
    let window: [u8; WINDOW] = std::array::from_fn(|index| index as u8);
    assert_eq!(Plain::of(&window).value(), 1128);
    // The second sum: 1*47 + 2*46 + ... + 47*1.
    assert_eq!(Adler32::of(&window).value(), 1128 | 18_424 << 16);
    assert_eq!(Rabin::of(&std::array::from_fn(|index| u8::from(index == 47))).value(), 1);
    assert_eq!(Rabin::of(&std::array::from_fn(|index| u8::from(index == 43))).value(), POLYNOMIAL);
}
