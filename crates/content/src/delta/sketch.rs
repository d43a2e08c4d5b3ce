//! Sums of the pieces of a chunk, by which a client finds the changed bytes of a chunk whose old bytes it does not have.
//!
//! A piece is 256 bytes, or what is left at the end of the chunk. Its sum is a polynomial over the field of 2^61 - 1 at a
//! secret point, cut to 48 bits: it rolls from byte to byte, and two pieces that differ have one sum with a probability
//! of about 2^-48 for whoever does not know the point. In a conversation with a server the chunk gets a wrong id then, which the server
//! sees, and is sent in full; who packs without one has a second sum (`super::version_sketch`).

use crate::naming::WorkspaceContentKeys;

/// Length of a piece in bytes.
pub(super) const PIECE_LENGTH: usize = 256;

/// A sum as it is kept: 48 bits, little-endian.
pub(super) type PieceSum = [u8; 6];

/// What the secret point is for.
const SKETCH: &str = "syncline delta v1: sketch";

/// The order of the field: a Mersenne prime.
const PRIME: u64 = (1 << 61) - 1;

/// Returns how many pieces a chunk has.
pub(super) fn piece_count(length: u32) -> usize {
    (length as usize).div_ceil(PIECE_LENGTH)
}

/// Returns the lengths of the pieces of a chunk.
pub(super) fn piece_lengths(length: u32) -> impl Iterator<Item = usize> {
    let length = length as usize;
    (0..length).step_by(PIECE_LENGTH).map(move |start| PIECE_LENGTH.min(length - start))
}

/// Returns the pieces of a chunk.
pub(super) fn pieces(chunk: &[u8]) -> impl Iterator<Item = &[u8]> {
    chunk.chunks(PIECE_LENGTH)
}

/// How many bytes go into a sum at a time.
const STRIDE: usize = 32;

/// The point at which a workspace's sums are taken.
pub(super) struct SketchKey {
    point: u64,
    /// The lower 32 and the upper 29 bits of the powers 31 to 0 of the point, for as many bytes at a time, and the power
    /// 32.
    lower: [u32; STRIDE],
    upper: [u32; STRIDE],
    step: u64,
    /// What each byte has become when it leaves a piece.
    leaving: Vec<u64>,
}

/// A sum of a full piece that moves byte by byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RollingPiece(u64);

impl RollingPiece {
    /// Returns the 48 bits that are kept.
    pub(super) fn value(self) -> u64 {
        self.0 & 0xffff_ffff_ffff
    }

    /// Returns all of it.
    pub(super) fn whole(self) -> u64 {
        self.0
    }
}

impl SketchKey {
    pub(super) fn of(keys: &WorkspaceContentKeys) -> Self {
        Self::derive(SKETCH, keys)
    }

    /// Takes the point for a purpose.
    pub(super) fn derive(purpose: &str, keys: &WorkspaceContentKeys) -> Self {
        let secret = blake3::derive_key(purpose, keys.chunk_ids().as_bytes());
        let word = secret[..8].try_into().expect("a key has 32 bytes");
        Self::at((u64::from_le_bytes(word) & PRIME).clamp(256, PRIME - 1))
    }

    fn at(point: u64) -> Self {
        let power = (0..PIECE_LENGTH).fold(1, |power, _| multiply(power, point));
        let leaving = (1..=256).map(|byte| multiply(power, byte)).collect();
        let raised = |exponent| (0..exponent).fold(1, |power, _| multiply(power, point));
        let powers: [u64; STRIDE] = std::array::from_fn(|place| raised(STRIDE - 1 - place));
        let lower = powers.map(|power| power as u32);
        let upper = powers.map(|power| (power >> 32) as u32);
        Self { point, lower, upper, step: raised(STRIDE), leaving }
    }

    /// Sums bytes up. A byte counts as itself and one, so that zeros count, too.
    ///
    /// 32 bytes go into the sum at a time: their products do not wait for each other, fit into 64 bits, which processors
    /// and browsers multiply several of at once, and there is one reduction.
    pub(super) fn sum(&self, bytes: &[u8]) -> RollingPiece {
        let (head, strides) = bytes.split_at(bytes.len() % STRIDE);
        let add = |sum, &byte: &u8| reduce(multiply(sum, self.point) + u64::from(byte) + 1);
        let head = head.iter().fold(0, add);
        let (strides, _) = strides.as_chunks::<STRIDE>();
        RollingPiece(strides.iter().fold(head, |sum, stride| {
            let added = fold_upper(products(stride, &self.lower), products(stride, &self.upper));
            reduce(multiply(sum, self.step) + added)
        }))
    }

    /// Moves the sum of a full piece by one byte.
    pub(super) fn roll(&self, sum: &mut RollingPiece, out: u8, into: u8) {
        let without = PRIME - self.leaving[usize::from(out)];
        let moved = multiply(sum.0, self.point) + without;
        sum.0 = reduce(moved + u64::from(into) + 1);
    }

    /// Returns the sums of all pieces of a chunk.
    pub(super) fn piece_sums<'a>(&'a self, chunk: &'a [u8]) -> impl Iterator<Item = PieceSum> + 'a {
        pieces(chunk).map(|piece| self.piece_sum(piece))
    }

    pub(super) fn piece_sum(&self, piece: &[u8]) -> PieceSum {
        let bytes = self.sum(piece).value().to_le_bytes();
        let (sum, _) = bytes.split_at(6);
        sum.try_into().expect("48 bits are six bytes")
    }
}

/// Returns a kept sum as a number.
pub(super) fn sum_value(sum: &PieceSum) -> u64 {
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(sum);
    u64::from_le_bytes(bytes)
}

/// Adds up the products of bytes, each counted as itself and one, and parts of powers: below 2^45.
fn products(bytes: &[u8; STRIDE], parts: &[u32; STRIDE]) -> u64 {
    let products = bytes.iter().zip(parts);
    products.map(|(&byte, &part)| (u64::from(byte) + 1) * u64::from(part)).sum()
}

/// Returns `lower + upper * 2^32` below 2^62, for numbers below 2^45: 2^61 is one in the field.
fn fold_upper(lower: u64, upper: u64) -> u64 {
    lower + (upper >> 29) + ((upper & ((1 << 29) - 1)) << 32)
}

/// Brings a number below 4 times the prime into the field.
fn reduce(value: u64) -> u64 {
    let value = (value & PRIME) + (value >> 61);
    if value >= PRIME { value - PRIME } else { value }
}

fn multiply(a: u64, b: u64) -> u64 {
    reduce_wide(u128::from(a) * u128::from(b))
}

/// Brings a number below 2^123 into the field.
fn reduce_wide(value: u128) -> u64 {
    reduce((value as u64 & PRIME) + (value >> 61) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> SketchKey {
        SketchKey::of(&WorkspaceContentKeys::derive(&[7; 32]))
    }

    proptest! {
        #[test]
        fn sum_that_rolls_is_the_sum_of_the_piece(
            bytes in prop::collection::vec(any::<u8>(), 256..1000),
            point in prop_oneof![256..PRIME, PRIME - 5..PRIME],
        ) {
            let key = SketchKey::at(point);
            let mut sum = key.sum(&bytes[..256]);
            for start in 1..=bytes.len() - 256 {
                key.roll(&mut sum, bytes[start - 1], bytes[start + 255]);
                prop_assert_eq!(sum, key.sum(&bytes[start..start + 256]));
            }
        }
    }

    proptest! {
        #[test]
        fn many_bytes_at_a_time_give_the_sum_of_single_ones(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            point in prop_oneof![256..PRIME, PRIME - 5..PRIME],
        ) {
            let wide = |sum: u128, &byte: &u8| {
                (sum * u128::from(point) + u128::from(byte) + 1) % u128::from(PRIME)
            };
            let expected = bytes.iter().fold(0, wide);
            prop_assert_eq!(u128::from(SketchKey::at(point).sum(&bytes).0), expected);
        }
    }

    #[test]
    fn zeros_of_different_lengths_have_different_sums() {
        assert_ne!(key().sum(&[0; 10]), key().sum(&[0; 11]));
        assert_ne!(key().sum(&[]), key().sum(&[0]));
    }

    #[test]
    fn known_piece_has_its_known_sum() {
        // By arithmetic: "abc" at the point 1000 is 98 * 1000^2 + 99 * 1000 + 100.
        assert_eq!(SketchKey::at(1000).sum(b"abc").0, 98_099_100);
        assert_eq!(key().piece_sum(b"syncline"), [30, 70, 191, 45, 94, 26]);
    }

    #[test]
    fn last_piece_of_a_chunk_is_what_is_left() {
        assert_eq!(piece_lengths(600).collect::<Vec<_>>(), [256, 256, 88]);
        assert_eq!((piece_count(600), piece_count(512), piece_count(1)), (3, 2, 1));
    }
}
