//! Sums of blocks: a rolling one that is cheap and often wrong, and a fingerprint that is asked when it says yes.
//!
//! After the paper "Towards Web-based Delta Synchronization for Cloud Storage Services" (FAST 2018), sections 3.1 and
//! 5.2: Adler-32 as the weak sum; SipHash-2-4 as the light fingerprint of WebR2sync+. Where the paper has MD5 we have
//! BLAKE3, keyed and cut to 128 bits (`docs/design/delta.md`).

use super::abreast::{ABREAST, sip_hashes};
use super::error::DeltaError;
use super::source::{RangedSource, Window};

/// The size of blocks in bytes where the file is not too large for it: that of the paper, section 3.1.
pub const BLOCK_SIZE: u32 = 8 * 1024;

/// The smallest block in bytes that a message may have.
const BLOCK_SIZE_MIN: u32 = 512;

/// The largest block in bytes.
pub(super) const BLOCK_SIZE_MAX: u32 = 8 * 1024 * 1024;

/// How many blocks a file has at most, so that a list of sums has 2.5 MiB at most; blocks are larger in larger files.
const BLOCKS_MAX: u64 = 128 * 1024;

/// The largest file in bytes that these methods take: 1 TiB.
pub const BLOCKED_SIZE_MAX: u64 = BLOCKS_MAX * BLOCK_SIZE_MAX as u64;

/// How a file is divided into blocks of one size, the last one shorter where it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockLayout {
    size: u64,
    block_size: u32,
}

impl BlockLayout {
    /// Chooses the blocks of a file of `size` bytes.
    pub(super) fn of(size: u64) -> Result<Self, DeltaError> {
        let mut block_size = BLOCK_SIZE;
        while size.div_ceil(u64::from(block_size)) > BLOCKS_MAX && block_size < BLOCK_SIZE_MAX {
            block_size *= 2;
        }
        Self::checked(size, block_size).ok_or(DeltaError::TooLarge { size, max: BLOCKED_SIZE_MAX })
    }

    /// Accepts blocks from outside, if they are such as [`Self::of`] might choose.
    pub(super) fn checked(size: u64, block_size: u32) -> Option<Self> {
        let is_fine = block_size.is_power_of_two()
            && (BLOCK_SIZE_MIN..=BLOCK_SIZE_MAX).contains(&block_size)
            && size.div_ceil(u64::from(block_size)) <= BLOCKS_MAX;
        is_fine.then_some(Self { size, block_size })
    }

    pub(super) fn size(self) -> u64 {
        self.size
    }

    pub(super) fn block_size(self) -> u32 {
        self.block_size
    }

    /// Returns how many blocks there are.
    pub(super) fn count(self) -> usize {
        self.size.div_ceil(u64::from(self.block_size)) as usize
    }

    /// Returns where a block begins, in bytes.
    pub(super) fn start(self, block: usize) -> u64 {
        block as u64 * u64::from(self.block_size)
    }

    /// Returns how many bytes a block has: fewer than the block size in the last one only.
    pub(super) fn length(self, block: usize) -> usize {
        (self.size - self.start(block)).min(u64::from(self.block_size)) as usize
    }

    /// Returns the last block if it is shorter than the others.
    pub(super) fn short_block(self) -> Option<usize> {
        let last = self.count().checked_sub(1)?;
        (self.length(last) < self.block_size as usize).then_some(last)
    }
}

/// Modulus of Adler-32: the largest prime below 2^16 (RFC 1950).
const ADLER_MODULUS: u32 = 65521;

/// How many bytes can be added before the second half of the sum overflows 32 bits.
const ADLER_STEP: usize = 5552;

/// Adler-32 over a window that moves byte by byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RollingSum {
    low: u32,
    high: u32,
}

impl RollingSum {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let (mut low, mut high) = (1_u32, 0_u32);
        for part in bytes.chunks(ADLER_STEP) {
            for &byte in part {
                low += u32::from(byte);
                high += low;
            }
            low %= ADLER_MODULUS;
            high %= ADLER_MODULUS;
        }
        Self { low, high }
    }

    pub(super) fn value(self) -> u32 {
        self.high << 16 | self.low
    }

    /// Moves the window by one byte. `leaving` is made for the length of the window.
    pub(super) fn roll(&mut self, out: u8, into: u8, leaving: &Leaving) {
        let reduce = |sum: u32| if sum >= ADLER_MODULUS { sum - ADLER_MODULUS } else { sum };
        self.low = reduce(self.low + ADLER_MODULUS - u32::from(out));
        self.low = reduce(self.low + u32::from(into));
        self.high = reduce(self.high + self.low);
        self.high = reduce(self.high + ADLER_MODULUS - leaving.0[usize::from(out)]);
    }
}

/// What each byte takes from the second half of the sum when it leaves a window of one length.
pub(super) struct Leaving([u32; 256]);

impl Leaving {
    pub(super) fn of_length(length: u32) -> Self {
        let length = u64::from(length);
        Self(std::array::from_fn(|byte| {
            ((length * byte as u64 + 1) % u64::from(ADLER_MODULUS)) as u32
        }))
    }
}

/// Which fingerprint decides whether two blocks are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strength {
    /// 64 bits of SipHash-2-4 (paper, section 5.2). Two blocks may have the same, so the whole file is checked.
    Light,
    /// 128 bits of keyed BLAKE3.
    Strong,
    /// None at all: every block whose weak sum is equal is taken for the same, so that tests see what comes of it.
    #[cfg(test)]
    Blind,
}

/// What makes fingerprints in one session.
#[derive(Debug)]
pub(super) struct Fingerprinter {
    strength: Strength,
    key: [u8; 32],
    sip_key: [u64; 2],
}

impl Fingerprinter {
    pub(super) fn new(strength: Strength, key: [u8; 32]) -> Self {
        let word = |start: usize| {
            let bytes = key[start..start + 8].try_into().expect("a key has 32 bytes");
            u64::from_le_bytes(bytes)
        };
        Self { strength, key, sip_key: [word(0), word(8)] }
    }

    pub(super) fn fingerprint(&self, bytes: &[u8]) -> u128 {
        match self.strength {
            Strength::Light => u128::from(sip_hash(self.sip_key, bytes)),
            Strength::Strong => {
                let hash = blake3::keyed_hash(&self.key, bytes);
                let half = hash.as_bytes()[..16].try_into().expect("a hash has 32 bytes");
                u128::from_le_bytes(half)
            }
            #[cfg(test)]
            Strength::Blind => 0,
        }
    }

    /// Returns the fingerprints of several blocks of one size where that takes less time than one after the other.
    pub(super) fn fingerprints(&self, blocks: [&[u8]; ABREAST]) -> Option<[u128; ABREAST]> {
        match self.strength {
            Strength::Light => Some(sip_hashes(self.sip_key, blocks)?.map(u128::from)),
            _ => None,
        }
    }
}

impl Strength {
    /// Returns how many bytes of a fingerprint are sent.
    pub(super) fn width(self) -> usize {
        match self {
            Self::Light => 8,
            Self::Strong => 16,
            #[cfg(test)]
            Self::Blind => 8,
        }
    }
}

/// SipHash-2-4 with 64 bits (Aumasson and Bernstein, 2012, section 2).
pub(super) fn sip_hash(key: [u64; 2], bytes: &[u8]) -> u64 {
    let mut state = sip_start(key);
    let words = bytes.chunks_exact(8);
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    last[7] = bytes.len() as u8;
    let words = words.map(|word| word.try_into().expect("a word has 8 bytes"));
    for word in words.chain([last]).map(u64::from_le_bytes) {
        state[3] ^= word;
        sip_round(&mut state);
        sip_round(&mut state);
        state[0] ^= word;
    }
    state[2] ^= 0xff;
    (0..4).for_each(|_| sip_round(&mut state));
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

/// Returns what SipHash begins with.
pub(super) fn sip_start(key: [u64; 2]) -> [u64; 4] {
    [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ]
}

fn sip_round(state: &mut [u64; 4]) {
    let [mut a, mut b, mut c, mut d] = *state;
    a = a.wrapping_add(b);
    c = c.wrapping_add(d);
    b = b.rotate_left(13) ^ a;
    d = d.rotate_left(16) ^ c;
    a = a.rotate_left(32).wrapping_add(d);
    c = c.wrapping_add(b);
    d = d.rotate_left(21) ^ a;
    b = b.rotate_left(17) ^ c;
    *state = [a, b, c.rotate_left(32), d];
}

/// The sums of all blocks of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockSums {
    pub(super) layout: BlockLayout,
    pub(super) weak: Vec<u32>,
    pub(super) strong: Vec<u128>,
}

impl BlockSums {
    /// Reads a file once, block by block, and gives the bytes to `also`, too.
    pub(super) fn read(
        source: &mut dyn RangedSource,
        fingerprinter: &Fingerprinter,
        mut also: impl FnMut(&[u8]),
    ) -> Result<Self, DeltaError> {
        let layout = BlockLayout::of(source.size())?;
        let mut window = Window::new(source, layout.block_size as usize);
        let (mut weak, mut strong) = (Vec::new(), Vec::new());
        for block in 0..layout.count() {
            let bytes = window.exactly(layout.start(block), layout.length(block))?;
            also(bytes);
            weak.push(RollingSum::of(bytes).value());
            strong.push(fingerprinter.fingerprint(bytes));
        }
        Ok(Self { layout, weak, strong })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::random_bytes;

    #[test]
    fn weak_sum_is_adler_32() {
        assert_eq!(RollingSum::of(b"Wikipedia").value(), 0x11e6_0398);
        assert_eq!(RollingSum::of(b"").value(), 1);
        assert_eq!(RollingSum::of(&[0xff; 100_000]).value(), 0x149a_302c);
    }

    #[test]
    fn light_fingerprint_is_sip_hash_of_its_paper() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let bytes: Vec<u8> = (0..15).collect();
        assert_eq!(sip_hash(key, &bytes), 0xa129_ca61_49be_45e5);
    }

    proptest! {
        #[test]
        fn sum_that_rolls_is_the_sum_of_what_is_in_the_window(
            bytes in proptest::collection::vec(any::<u8>(), 1..6000),
            length in 1_usize..6000,
        ) {
            let length = length.min(bytes.len());
            let leaving = Leaving::of_length(length as u32);
            let mut sum = RollingSum::of(&bytes[..length]);
            for start in 1..=bytes.len() - length {
                sum.roll(bytes[start - 1], bytes[start + length - 1], &leaving);
            }
            prop_assert_eq!(sum, RollingSum::of(&bytes[bytes.len() - length..]));
        }
    }

    #[test]
    fn blocks_grow_with_the_file_and_end_where_it_ends() {
        assert_eq!(BlockLayout::of(0).unwrap().count(), 0);
        let layout = BlockLayout::of(20_000).unwrap();
        assert_eq!((layout.count(), layout.length(2), layout.start(2)), (3, 3616, 16_384));
        assert_eq!(
            (layout.short_block(), BlockLayout::of(16_384).unwrap().short_block()),
            (Some(2), None)
        );
        assert_eq!(BlockLayout::of(1 << 30).unwrap().block_size(), BLOCK_SIZE);
        assert_eq!(BlockLayout::of((1 << 30) + 1).unwrap().block_size(), 2 * BLOCK_SIZE);
        assert_eq!(BlockLayout::of(BLOCKED_SIZE_MAX).unwrap().block_size(), BLOCK_SIZE_MAX);
        assert!(matches!(BlockLayout::of(BLOCKED_SIZE_MAX + 1), Err(DeltaError::TooLarge { .. })));
        assert!(BlockLayout::checked(1 << 40, 8192).is_none());
        assert!(BlockLayout::checked(10, 0).is_none() && BlockLayout::checked(10, 8191).is_none());
    }

    #[test]
    fn sums_of_one_session_say_nothing_in_another() {
        let bytes = random_bytes(1, 20_000);
        let sums = |strength, key| {
            let fingerprinter = Fingerprinter::new(strength, [key; 32]);
            BlockSums::read(&mut &bytes[..], &fingerprinter, |_| ()).unwrap()
        };
        for strength in [Strength::Light, Strength::Strong] {
            assert_eq!(sums(strength, 1), sums(strength, 1));
            assert_eq!(sums(strength, 1).weak, sums(strength, 2).weak);
            assert!(
                sums(strength, 1).strong.iter().zip(&sums(strength, 2).strong).all(|(a, b)| a != b)
            );
        }
    }
}
