//! Blocks by the codes of a JPEG, and the codes by the blocks (T.81, annex F).

use super::NoPicture;
use super::blocks::{Block, FIRST_MAX, VALUE_BITS, ZIGZAG, bits_of};
use super::frame::{Codes, Component};

/// How many bits say at most, in the codes of a file, by what a first value differs from the one before.
const FIRST_CODE_MAX: u32 = 12;

/// How markers are numbered that stand between stretches of a scan.
fn restart_marker(number: usize) -> [u8; 2] {
    [0xff, 0xd0 + (number % 8) as u8]
}

/// Reads blocks.
pub(super) struct ScanReader<'a> {
    bytes: &'a [u8],
    place: usize,
    held: u64,
    count: u32,
}

impl<'a> ScanReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, place: 0, held: 0, count: 0 }
    }

    /// Takes bytes up to the next marker, as many as there is room for.
    #[inline(always)]
    fn fill(&mut self) {
        while self.count <= 48 {
            let (byte, length) = match self.bytes.get(self.place..) {
                Some([0xff, 0, ..]) => (0xff, 2),
                Some([byte, ..]) if *byte != 0xff => (*byte, 1),
                _ => return,
            };
            self.place += length;
            self.held = self.held << 8 | u64::from(byte);
            self.count += 8;
        }
    }

    #[inline(always)]
    fn take(&mut self, count: u32) -> Result<u32, NoPicture> {
        self.count = self.count.checked_sub(count).ok_or(NoPicture)?;
        Ok((self.held >> self.count) as u32 & ((1 << count) - 1))
    }

    #[inline(always)]
    fn symbol(&mut self, codes: &Codes) -> Result<u8, NoPicture> {
        // A code and the value behind it.
        if self.count < 32 {
            self.fill();
        }
        let next = match self.count.checked_sub(16) {
            Some(behind) => self.held >> behind,
            None => self.held << (16 - self.count),
        };
        let (symbol, length) = codes.next(next as u32 & 0xffff)?;
        self.take(length)?;
        Ok(symbol)
    }

    #[inline(always)]
    fn value(&mut self, size: u32) -> Result<i32, NoPicture> {
        if size == 0 {
            return Ok(0);
        }
        let bits = self.take(size)? as i32;
        let is_negative = bits >> (size - 1) == 0;
        Ok(if is_negative { bits - (1 << size) + 1 } else { bits })
    }

    /// Reads a block; returns also which of its values are not zero, in the order of their codes. `before` is the first value of the one
    /// before.
    pub(super) fn block(
        &mut self,
        component: &Component,
        before: &mut i32,
    ) -> Result<(Block, u64), NoPicture> {
        let [first, other] = component.codes.as_ref().ok_or(NoPicture)?;
        let (mut block, mut mask) = ([0; 64], 0);
        let size = u32::from(self.symbol(first)?);
        if size > FIRST_CODE_MAX {
            return Err(NoPicture);
        }
        *before += self.value(size)?;
        if before.abs() > FIRST_MAX {
            return Err(NoPicture);
        }
        block[0] = *before as i16;
        let mut number = 1;
        while number < 64 {
            let symbol = self.symbol(other)?;
            let (zeros, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
            match (zeros, size) {
                (0, 0) => break,
                (15, 0) => number += 16,
                _ => {
                    number += zeros;
                    if number > 63 || !(1..=VALUE_BITS as u32).contains(&size) {
                        return Err(NoPicture);
                    }
                    block[usize::from(ZIGZAG[number])] = self.value(size)? as i16;
                    mask |= 1 << number;
                    number += 1;
                }
            }
        }
        Ok((block, mask))
    }

    /// Ends a stretch; returns the bits that fill its last byte, and how many they are.
    pub(super) fn end_stretch(&mut self) -> Result<(u32, u32), NoPicture> {
        self.fill();
        let count = self.count % 8;
        Ok((self.take(count)?, count))
    }

    /// Reads the marker between two stretches.
    pub(super) fn restart(&mut self, number: usize) -> Result<(), NoPicture> {
        let marker = self.bytes.get(self.place..self.place + 2);
        if self.count > 0 || marker != Some(&restart_marker(number)) {
            return Err(NoPicture);
        }
        self.place += 2;
        Ok(())
    }

    /// Returns how many bytes the stretches have that were read to their ends.
    pub(super) fn place(&self) -> usize {
        // Without those that were taken and not read.
        let mut place = self.place;
        for _ in 0..self.count / 8 {
            place -= if self.bytes[..place].ends_with(&[0xff, 0]) { 2 } else { 1 };
        }
        place
    }
}

/// Writes blocks.
pub(super) struct ScanWriter {
    bytes: Vec<u8>,
    held: u64,
    count: u32,
}

impl ScanWriter {
    /// Goes on behind these bytes, with room for so many.
    pub(super) fn new(head: &[u8], length: usize) -> Self {
        let mut bytes = Vec::with_capacity(length.max(head.len()));
        bytes.extend_from_slice(head);
        Self { bytes, held: 0, count: 0 }
    }

    /// Returns how many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes bits, 16 at most.
    #[inline(always)]
    fn put(&mut self, bits: u32, count: u32) {
        self.held = self.held << count | u64::from(bits);
        self.count += count;
        if self.count >= 32 {
            self.flush();
        }
    }

    #[inline(always)]
    fn flush(&mut self) {
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.held >> self.count) as u8;
            self.bytes.push(byte);
            if byte == 0xff {
                // Else it would be taken for a marker.
                self.bytes.push(0);
            }
        }
    }

    #[inline(always)]
    fn symbol(&mut self, codes: &Codes, symbol: usize) -> Result<(), NoPicture> {
        let (bits, count) = codes.of[symbol];
        if count == 0 {
            return Err(NoPicture);
        }
        self.put(u32::from(bits), u32::from(count));
        Ok(())
    }

    #[inline(always)]
    fn value(&mut self, value: i32, size: u32) {
        // Negative ones are one less.
        self.put((value + (value >> 31)) as u32 & ((1 << size) - 1), size);
    }

    /// Writes a block of which these values are not zero, in the order of their codes. `before` is the first value of the one before.
    pub(super) fn block(
        &mut self,
        component: &Component,
        before: &mut i32,
        (block, mut mask): (&Block, u64),
    ) -> Result<(), NoPicture> {
        let [first, other] = component.codes.as_ref().ok_or(NoPicture)?;
        let value = i32::from(block[0]);
        let more = value - std::mem::replace(before, value);
        let bits = bits_of(more.unsigned_abs());
        self.symbol(first, bits)?;
        self.value(more, bits as u32);
        let mut next = 1;
        while mask != 0 {
            let number = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let mut zeros = number - next;
            while zeros > 15 {
                self.symbol(other, 0xf0)?;
                zeros -= 16;
            }
            let value = i32::from(block[usize::from(ZIGZAG[number])]);
            let bits = bits_of(value.unsigned_abs());
            self.symbol(other, zeros << 4 | bits)?;
            self.value(value, bits as u32);
            next = number + 1;
        }
        if next < 64 {
            self.symbol(other, 0)?;
        }
        Ok(())
    }

    /// Ends a stretch: ones or zeros fill its last byte.
    pub(super) fn end_stretch(&mut self, with_ones: bool) {
        let count = (8 - self.count % 8) % 8;
        self.put(if with_ones { (1 << count) - 1 } else { 0 }, count);
        self.flush();
    }

    /// Writes the marker between two stretches.
    pub(super) fn restart(&mut self, number: usize) {
        self.bytes.extend(restart_marker(number));
    }
}
