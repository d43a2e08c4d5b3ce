//! Bits by how likely they are: an arithmetic coder whose odds follow what it has seen, and beside it bits that nothing foretells.
//!
//! *Invariants*: who reads does exactly what the writer did, in integers alone; what somebody hostile has written makes other bits, or an
//! error at the end.

use super::NoPicture;

/// The highest of what says how likely a bit is to be set: one less than a power of two, so that turning its bits round is to take from it.
const CERTAIN: u32 = (1 << 22) - 1;

/// How many bits are counted before the odds follow no slower any more.
const SEEN_MAX: u32 = 160;

/// By which part, in parts of 1024, the odds follow a bit after so many others.
const SHARES: [u32; 256] = {
    let (mut shares, mut seen) = ([0; 256], 0);
    while seen < 256 {
        shares[seen] = 2 * 1024 / (2 * seen as u32 + 3);
        seen += 1;
    }
    shares
};

/// How likely a bit is to be set, by what it was in its place before: in the upper 22 bits, and in the lower ones how many were seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Odds(u32);

impl Default for Odds {
    fn default() -> Self {
        Self(1 << 31)
    }
}

impl Odds {
    /// Returns how likely it is in parts of 2^16: never 0, nor all.
    #[inline(always)]
    fn of_set(self) -> u64 {
        u64::from(self.0 >> 16 | 1)
    }

    #[inline(always)]
    fn learn(&mut self, bit: bool) {
        let (set, seen) = (self.0 >> 10, self.0 & 1023);
        let turned = u32::from(bit).wrapping_neg() & CERTAIN;
        let away = set ^ turned;
        let set = (away - ((away * SHARES[(seen & 255) as usize]) >> 10)) ^ turned;
        self.0 = set << 10 | (seen + u32::from(seen < SEEN_MAX));
    }
}

/// Either side: the writer stores the bits that it is given, the reader returns those that were stored, whatever it is given. So what says
/// where a bit stands is the same for both.
pub(super) trait Coder {
    fn bit(&mut self, odds: &mut Odds, bit: bool) -> bool;

    /// Codes the lowest bits of a number, 16 at most, without odds.
    fn raw(&mut self, bits: u32, count: u32) -> u32;
}

/// What was coded: by odds, and without.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) coded: Vec<u8>,
    pub(super) raw: Vec<u8>,
}

pub(super) struct BitsWriter {
    low: u64,
    range: u64,
    bits: Bits,
    held: u64,
    count: u32,
}

impl Default for BitsWriter {
    fn default() -> Self {
        Self { low: 0, range: u64::MAX, bits: Bits::default(), held: 0, count: 0 }
    }
}

impl BitsWriter {
    fn add(&mut self, more: u64) {
        let (low, is_over) = self.low.overflowing_add(more);
        self.low = low;
        if is_over {
            self.carry();
        }
    }

    #[cold]
    fn carry(&mut self) {
        for byte in self.bits.coded.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                return;
            }
        }
    }

    fn shift(&mut self) {
        self.bits.coded.extend_from_slice(&((self.low >> 32) as u32).to_be_bytes());
        self.low <<= 32;
        self.range <<= 32;
    }

    /// Returns all that was coded.
    pub(super) fn finish(mut self) -> Bits {
        // One number within the range, whose lower half is zeros: that is what a reader takes for what is not there.
        self.add(u64::from(u32::MAX));
        self.shift();
        let rest = self.count.div_ceil(8) as usize;
        self.bits.raw.extend_from_slice(&self.held.to_le_bytes()[..rest]);
        self.bits
    }
}

impl Coder for BitsWriter {
    #[inline(always)]
    fn bit(&mut self, odds: &mut Odds, bit: bool) -> bool {
        let part = (self.range >> 16) * odds.of_set();
        self.range = std::hint::select_unpredictable(bit, part, self.range - part);
        self.add(std::hint::select_unpredictable(bit, 0, part));
        odds.learn(bit);
        if self.range >> 32 == 0 {
            self.shift();
        }
        bit
    }

    #[inline(always)]
    fn raw(&mut self, bits: u32, count: u32) -> u32 {
        self.held |= u64::from(bits) << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bits.raw.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
        bits
    }
}

pub(super) struct BitsReader<'a> {
    range: u64,
    /// How far what was coded lies above the lowest number of the range.
    value: u64,
    coded: &'a [u8],
    /// How many words were taken that are not there.
    lacking: u64,
    raw: &'a [u8],
    held: u64,
    count: u32,
    is_raw_short: bool,
}

impl<'a> BitsReader<'a> {
    pub(super) fn new(coded: &'a [u8], raw: &'a [u8]) -> Self {
        let (range, is_raw_short) = (u64::MAX, false);
        let mut reader =
            Self { range, value: 0, coded, lacking: 0, raw, held: 0, count: 0, is_raw_short };
        for _ in 0..2 {
            reader.value = reader.value << 32 | reader.word();
        }
        reader
    }

    #[inline(always)]
    fn word(&mut self) -> u64 {
        match self.coded.split_first_chunk() {
            Some((word, rest)) => {
                self.coded = rest;
                u64::from(u32::from_be_bytes(*word))
            }
            None => {
                self.lacking += 1;
                0
            }
        }
    }

    fn fill(&mut self, count: u32) {
        while self.count <= 48
            && let Some((byte, rest)) = self.raw.split_first()
        {
            self.raw = rest;
            self.held |= u64::from(*byte) << self.count;
            self.count += 8;
        }
        if self.count < count {
            // Zeros, as many as are wanted.
            self.is_raw_short = true;
            self.count = count;
        }
    }

    /// Makes sure that all was read, and no more than there is.
    ///
    /// # Errors
    /// [`NoPicture`] where it was not, or too much.
    pub(super) fn finish(self) -> Result<(), NoPicture> {
        let is_coded_over = self.coded.is_empty() && self.lacking == 1;
        let is_raw_over =
            self.raw.is_empty() && !self.is_raw_short && self.count < 8 && self.held == 0;
        if is_coded_over && is_raw_over { Ok(()) } else { Err(NoPicture) }
    }
}

impl Coder for BitsReader<'_> {
    #[inline(always)]
    fn bit(&mut self, odds: &mut Odds, _: bool) -> bool {
        let part = (self.range >> 16) * odds.of_set();
        let bit = self.value < part;
        self.range = std::hint::select_unpredictable(bit, part, self.range - part);
        self.value -= std::hint::select_unpredictable(bit, 0, part);
        odds.learn(bit);
        if self.range >> 32 == 0 {
            self.range <<= 32;
            self.value = self.value << 32 | self.word();
        }
        bit
    }

    #[inline(always)]
    fn raw(&mut self, _: u32, count: u32) -> u32 {
        if self.count < count {
            self.fill(count);
        }
        let bits = self.held as u32 & ((1 << count) - 1);
        self.held >>= count;
        self.count -= count;
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Random;

    /// Codes bits of which some are likely, or reads them.
    fn code(coder: &mut impl Coder, count: usize) -> Vec<u32> {
        let (mut random, mut odds) = (Random(1), [Odds::default(); 5]);
        let step = |_| {
            let value = random.next();
            let which = (value % 5) as usize;
            let bit =
                coder.bit(&mut odds[which], value >> 8 & 1023 < [1, 30, 512, 1000, 1023][which]);
            let raw = (value >> 20) as u32 & 7;
            u32::from(bit) << 8 | coder.raw(raw, 3)
        };
        (0..count).map(step).collect()
    }

    #[test]
    fn bits_come_back_and_end() {
        for count in [0, 1, 2, 50, 50_000] {
            let mut writer = BitsWriter::default();
            let written = code(&mut writer, count);
            let bits = writer.finish();
            let mut reader = BitsReader::new(&bits.coded, &bits.raw);
            assert_eq!(code(&mut reader, count), written);
            assert_eq!(reader.finish(), Ok(()));
            assert!(bits.coded.len() <= count / 16 + 8, "{count}: {}", bits.coded.len());
        }
    }

    #[test]
    fn what_is_too_short_or_too_long_is_told() {
        let mut writer = BitsWriter::default();
        code(&mut writer, 1000);
        let Bits { coded, raw } = writer.finish();
        let longer = |bytes: &[u8]| [bytes, &[0; 4]].concat();
        for (coded, raw) in [
            (coded[..coded.len() - 4].to_vec(), raw.clone()),
            (longer(&coded), raw.clone()),
            (coded.clone(), raw[..raw.len() - 1].to_vec()),
            (coded.clone(), longer(&raw)),
        ] {
            let mut reader = BitsReader::new(&coded, &raw);
            code(&mut reader, 1000);
            assert_eq!(reader.finish(), Err(NoPicture));
        }
    }

    /// However long a bit is the same, the other one can still be coded.
    #[test]
    fn odds_stay_within_their_bounds() {
        for bit in [false, true] {
            let mut odds = Odds::default();
            for _ in 0..100_000 {
                odds.learn(bit);
                assert!((1..1 << 16).contains(&odds.of_set()));
            }
            assert_eq!(odds.of_set() > 1 << 15, bit);
            odds.learn(!bit);
        }
    }
}
