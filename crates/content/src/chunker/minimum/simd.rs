//! The search for the minimum with the vector instructions that the processor turns out to have.
//!
//! It takes `unsafe` code: a function compiled for AVX2 or AVX-512 may be called only where the processor has it,
//! and only a run-time check can know. Everything else here is safe code.
//! See `docs/decisions/0002-simd-needs-one-unsafe-module.md`.

use std::fmt;

use super::{PositionHash, WINDOW, last_minimum};

/// How many positions are searched before the running minimum is compared.
const BLOCK: usize = 512;

/// A way to search for the minimum; one that the processor lacks cannot be had.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Search(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Search {
    /// Without vectors, which runs everywhere.
    pub const SCALAR: Self = Self(Kind::Scalar);

    /// Returns what this processor can do, the slowest first.
    pub fn available() -> Vec<Self> {
        #[cfg_attr(
            not(target_arch = "x86_64"),
            expect(unused_mut, reason = "only processors with vector searches add to it")
        )]
        let mut searches = vec![Self::SCALAR];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                searches.push(Self(Kind::Avx2));
            }
            if is_x86_feature_detected!("avx512f") {
                searches.push(Self(Kind::Avx512));
            }
        }
        searches
    }

    /// Returns the fastest that this processor can do.
    pub fn fastest() -> Self {
        Self::available().pop().unwrap_or(Self::SCALAR)
    }

    /// Returns the index of the last window in `bytes` with the smallest hash.
    #[cfg_attr(
        target_arch = "x86_64",
        expect(unsafe_code, reason = "only a run-time check knows the processor")
    )]
    pub(super) fn last_minimum(self, bytes: &[u8], hash: PositionHash) -> usize {
        match self.0 {
            Kind::Scalar => last_minimum_scalar(bytes, hash),
            // SAFETY: `available` alone makes this kind, and only after it found AVX2.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { last_minimum_avx2(bytes, hash) },
            // SAFETY: `available` alone makes this kind, and only after it found AVX-512F.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { last_minimum_avx512(bytes, hash) },
        }
    }
}

impl fmt::Debug for Search {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Finds the last block with the smallest hash, then the last position in it.
#[inline(always)]
fn last_minimum_by_blocks(
    bytes: &[u8],
    hash: PositionHash,
    minimum: impl Fn(&[u8; BLOCK + WINDOW - 1]) -> u32,
) -> usize {
    let (mut best_start, mut best, mut start) = (0, u32::MAX, 0);
    while let Some(block) = bytes[start..].first_chunk() {
        let value = minimum(block);
        if value <= best {
            (best_start, best) = (start, value);
        }
        start += BLOCK;
    }
    let (index, value) = last_minimum(&bytes[start..], hash);
    if value <= best && start + WINDOW <= bytes.len() {
        return start + index;
    }
    let block = &bytes[best_start..best_start + BLOCK + WINDOW - 1];
    let position = block.array_windows().rposition(|window| hash.of(*window) == best);
    best_start + position.expect("the block has the minimum that was found in it")
}

/// Four independent minima keep a processor's units busy where one chain would wait for itself.
fn last_minimum_scalar(bytes: &[u8], hash: PositionHash) -> usize {
    last_minimum_by_blocks(bytes, hash, |block| {
        let mut minima = [u32::MAX; WINDOW];
        for start in (0..BLOCK).step_by(WINDOW) {
            for (offset, minimum) in minima.iter_mut().enumerate() {
                let at = start + offset;
                let word = block[at..at + WINDOW].try_into().expect("the range has 4 bytes");
                *minimum = hash.of(word).min(*minimum);
            }
        }
        minima.into_iter().fold(u32::MAX, u32::min)
    })
}

/// Four loads, one byte apart, hold the windows of as many positions as a vector has bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn last_minimum_avx2(bytes: &[u8], hash: PositionHash) -> usize {
    use std::arch::x86_64::{
        __m256i, _mm_cvtsi128_si32, _mm_min_epu32, _mm_shuffle_epi32, _mm256_add_epi32,
        _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_min_epu32, _mm256_mullo_epi32,
        _mm256_set_epi64x, _mm256_set1_epi32,
    };
    const LENGTH: usize = size_of::<__m256i>();
    let multiplier = _mm256_set1_epi32(hash.multiplier as i32);
    let addend = _mm256_set1_epi32(hash.addend as i32);
    last_minimum_by_blocks(bytes, hash, |block| {
        let mut minima = [_mm256_set1_epi32(-1); WINDOW];
        for start in (0..BLOCK).step_by(LENGTH) {
            for (offset, minimum) in minima.iter_mut().enumerate() {
                let [a, b, c, d] = quadwords(block, start + offset);
                let words = _mm256_set_epi64x(d, c, b, a);
                let hashes = _mm256_add_epi32(_mm256_mullo_epi32(words, multiplier), addend);
                *minimum = _mm256_min_epu32(*minimum, hashes);
            }
        }
        let [a, b, c, d] = minima;
        let eight = _mm256_min_epu32(_mm256_min_epu32(a, b), _mm256_min_epu32(c, d));
        let low = _mm256_castsi256_si128(eight);
        let four = _mm_min_epu32(low, _mm256_extracti128_si256::<1>(eight));
        let two = _mm_min_epu32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
        let one = _mm_min_epu32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
        _mm_cvtsi128_si32(one) as u32
    })
}

/// The same with vectors of twice the length.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn last_minimum_avx512(bytes: &[u8], hash: PositionHash) -> usize {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi32, _mm512_min_epu32, _mm512_mullo_epi32, _mm512_reduce_min_epu32,
        _mm512_set_epi64, _mm512_set1_epi32,
    };
    const LENGTH: usize = size_of::<__m512i>();
    let multiplier = _mm512_set1_epi32(hash.multiplier as i32);
    let addend = _mm512_set1_epi32(hash.addend as i32);
    last_minimum_by_blocks(bytes, hash, |block| {
        let mut minima = [_mm512_set1_epi32(-1); WINDOW];
        for start in (0..BLOCK).step_by(LENGTH) {
            for (offset, minimum) in minima.iter_mut().enumerate() {
                let [a, b, c, d, e, f, g, h] = quadwords(block, start + offset);
                let words = _mm512_set_epi64(h, g, f, e, d, c, b, a);
                let hashes = _mm512_add_epi32(_mm512_mullo_epi32(words, multiplier), addend);
                *minimum = _mm512_min_epu32(*minimum, hashes);
            }
        }
        let [a, b, c, d] = minima;
        let all = _mm512_min_epu32(_mm512_min_epu32(a, b), _mm512_min_epu32(c, d));
        _mm512_reduce_min_epu32(all)
    })
}

/// Reads little-endian integers from anywhere; the compiler makes one vector load of it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn quadwords<const COUNT: usize>(block: &[u8; BLOCK + WINDOW - 1], start: usize) -> [i64; COUNT] {
    std::array::from_fn(|index| {
        let at = start + index * 8;
        let bytes = block[at..at + 8].try_into().expect("the range has 8 bytes");
        i64::from_le_bytes(bytes)
    })
}
