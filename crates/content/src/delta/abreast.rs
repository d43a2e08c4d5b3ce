//! Light fingerprints of several blocks at once, where the processor turns out to have the vectors for it.
//!
//! SipHash of one block is a chain in which every step waits for the one before; eight chains side by side keep a processor busy, and take
//! a third of the time. The function with vectors may be called only where the processor has them, which takes a line of `unsafe` code:
//! `docs/decisions/0002-simd-needs-one-unsafe-module.md`.

/// How many blocks are taken at once.
pub(super) const ABREAST: usize = 8;

/// Returns SipHash-2-4 of each of the blocks ([`super::sums::sip_hash`]); nothing where it would not be faster than one after the other.
///
/// # Panics
/// Where the blocks are not equally long, or not whole words of 8 bytes.
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "only a run-time check knows the processor")
)]
pub(super) fn sip_hashes(key: [u64; 2], blocks: [&[u8]; ABREAST]) -> Option<[u64; ABREAST]> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        let blocks = blocks.map(|block| block.as_chunks::<8>());
        let is_even = |(words, rest): &(&[[u8; 8]], &[u8])| {
            words.len() == blocks[0].0.len() && rest.is_empty()
        };
        assert!(blocks.iter().all(is_even), "blocks of one length, in words");
        // SAFETY: the processor was found to have AVX2.
        return Some(unsafe { avx2::sip_hashes(key, blocks.map(|(words, _)| words)) });
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (key, blocks);
    None
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi64, _mm256_extract_epi64, _mm256_or_si256, _mm256_set_epi64x,
        _mm256_set1_epi64x, _mm256_setr_epi8, _mm256_shuffle_epi8, _mm256_shuffle_epi32,
        _mm256_slli_epi64, _mm256_srli_epi64, _mm256_xor_si256,
    };

    use super::ABREAST;
    use crate::delta::sums::sip_start;

    /// How many blocks a vector takes; two vectors fill the time in which one would wait for itself.
    const LANES: usize = 4;

    /// The four words of the state of each of four blocks.
    type State = [__m256i; 4];

    #[target_feature(enable = "avx2")]
    pub(super) fn sip_hashes(key: [u64; 2], blocks: [&[[u8; 8]]; ABREAST]) -> [u64; ABREAST] {
        let count = blocks[0].len();
        // Cut to what is known to be one length, so that no bounds are checked below.
        let blocks = blocks.map(|words| &words[..count]);
        let start = sip_start(key).map(|word| _mm256_set1_epi64x(word.cast_signed()));
        let mut states: [State; ABREAST / LANES] = [start; ABREAST / LANES];
        let word = |block: usize, place: usize| i64::from_le_bytes(blocks[block][place]);
        for place in 0..count {
            for (number, state) in states.iter_mut().enumerate() {
                let [a, b, c, d] = std::array::from_fn(|lane| word(number * LANES + lane, place));
                take(state, _mm256_set_epi64x(d, c, b, a));
            }
        }
        // The last word has the length modulo 256 in its highest byte, and no bytes, since there are whole words only.
        let last = _mm256_set1_epi64x(((count as u64 * 8) << 56).cast_signed());
        let mut hashes = [0; ABREAST];
        for (state, hashes) in states.iter_mut().zip(hashes.as_chunks_mut::<LANES>().0) {
            take(state, last);
            state[2] = _mm256_xor_si256(state[2], _mm256_set1_epi64x(0xff));
            (0..4).for_each(|_| round(state));
            let [a, b, c, d] = *state;
            let all = _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
            let lanes = [
                _mm256_extract_epi64::<0>(all),
                _mm256_extract_epi64::<1>(all),
                _mm256_extract_epi64::<2>(all),
                _mm256_extract_epi64::<3>(all),
            ];
            *hashes = lanes.map(i64::cast_unsigned);
        }
        hashes
    }

    /// Takes a word of each block.
    #[target_feature(enable = "avx2")]
    fn take(state: &mut State, word: __m256i) {
        state[3] = _mm256_xor_si256(state[3], word);
        round(state);
        round(state);
        state[0] = _mm256_xor_si256(state[0], word);
    }

    #[target_feature(enable = "avx2")]
    fn round(state: &mut State) {
        let [mut a, mut b, mut c, mut d] = *state;
        a = _mm256_add_epi64(a, b);
        c = _mm256_add_epi64(c, d);
        b = _mm256_xor_si256(rotate::<13, 51>(b), a);
        d = _mm256_xor_si256(rotate_by_16(d), c);
        a = _mm256_add_epi64(rotate_by_32(a), d);
        c = _mm256_add_epi64(c, b);
        d = _mm256_xor_si256(rotate::<21, 43>(d), a);
        b = _mm256_xor_si256(rotate::<17, 47>(b), c);
        *state = [a, b, rotate_by_32(c), d];
    }

    /// Rotates each word to the left; the two counts are 64 together.
    #[target_feature(enable = "avx2")]
    fn rotate<const LEFT: i32, const RIGHT: i32>(words: __m256i) -> __m256i {
        _mm256_or_si256(_mm256_slli_epi64::<LEFT>(words), _mm256_srli_epi64::<RIGHT>(words))
    }

    #[target_feature(enable = "avx2")]
    fn rotate_by_16(words: __m256i) -> __m256i {
        let places = _mm256_setr_epi8(
            6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13, //
            6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13,
        );
        _mm256_shuffle_epi8(words, places)
    }

    #[target_feature(enable = "avx2")]
    fn rotate_by_32(words: __m256i) -> __m256i {
        _mm256_shuffle_epi32::<0b10_11_00_01>(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::sums::sip_hash;
    use crate::samples::random_bytes;

    #[test]
    fn blocks_abreast_have_the_fingerprints_that_each_has_alone() {
        for length in [0, 8, 16, 24, 512, 8192, 8200] {
            let bytes = random_bytes(length as u64, ABREAST * length);
            let blocks = std::array::from_fn(|block| &bytes[block * length..][..length]);
            let key = [length as u64, u64::MAX];
            let Some(hashes) = sip_hashes(key, blocks) else { continue };
            assert_eq!(hashes, blocks.map(|block| sip_hash(key, block)), "{length} bytes");
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn processors_with_the_vectors_use_them() {
        let are_used = sip_hashes([1, 2], [&[0; 8]; ABREAST]).is_some();
        assert_eq!(are_used, is_x86_feature_detected!("avx2"));
    }
}
