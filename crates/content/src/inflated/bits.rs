//! Bits in the order of deflate: those of a byte from its lowest on (RFC 1951, section 3.1.1).

/// Why a stream cannot be read: it is none, or ends too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoStream;

/// Reads bits one after the other.
#[derive(Debug, Clone)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// How many bytes went into `held`.
    taken: usize,
    held: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, taken: 0, held: 0, count: 0 }
    }

    /// Takes bytes as long as there is room for a whole one.
    fn fill(&mut self) {
        while self.count <= 56
            && let Some(byte) = self.bytes.get(self.taken)
        {
            self.held |= u64::from(*byte) << self.count;
            self.count += 8;
            self.taken += 1;
        }
    }

    /// Returns the next bits, 16 at most, without taking them; zeros stand for what is behind the end.
    pub(super) fn peek(&mut self, count: u32) -> u32 {
        if self.count < count {
            self.fill();
        }
        (self.held & ((1 << count) - 1)) as u32
    }

    /// Takes bits, 16 at most.
    pub(super) fn take(&mut self, count: u32) -> Result<u32, NoStream> {
        let bits = self.peek(count);
        if self.count < count {
            return Err(NoStream);
        }
        self.held >>= count;
        self.count -= count;
        Ok(bits)
    }

    /// Returns the place of the next bit, counted from the first.
    pub(super) fn place(&self) -> usize {
        self.taken * 8 - self.count as usize
    }
}

/// Writes bits one after the other.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    held: u64,
    count: u32,
}

impl BitWriter {
    /// Writes the lowest bits of a number, 32 at most.
    pub(super) fn put(&mut self, bits: u32, count: u32) {
        self.held |= u64::from(bits) << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    /// Copies bits from where a reader stands.
    pub(super) fn copy(&mut self, from: &mut BitReader<'_>, count: usize) -> Result<(), NoStream> {
        for place in (0..count).step_by(16) {
            let here = (count - place).min(16) as u32;
            self.put(from.take(here)?, here);
        }
        Ok(())
    }

    /// Goes on at the next byte; zeros fill the rest of this one.
    pub(super) fn align(&mut self) {
        self.put(0, (8 - self.count) % 8);
    }

    /// Returns the bytes; zeros fill the rest of the last one.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.align();
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_and_end() {
        let mut writer = BitWriter::default();
        for (bits, count) in [(1, 1), (5, 3), (0xffff, 16), (0, 7), (0xabc, 12)] {
            writer.put(bits, count);
        }
        let bytes = writer.into_bytes();
        assert_eq!(bytes.len(), 5);
        let mut reader = BitReader::new(&bytes);
        let read = [1, 3, 16, 7, 12].map(|count| reader.take(count).expect("there"));
        assert_eq!(read, [1, 5, 0xffff, 0, 0xabc]);
        assert_eq!((reader.place(), reader.take(1)), (39, Ok(0)));
        assert_eq!((reader.peek(4), reader.take(1)), (0, Err(NoStream)));
    }

    #[test]
    fn bits_are_copied_from_any_place() {
        let bytes = [0x5a, 0xc3, 0x17, 0x88, 0xf1, 0x02];
        let (mut from, mut writer) = (BitReader::new(&bytes), BitWriter::default());
        from.take(3).expect("there");
        writer.copy(&mut from, 41).expect("there");
        let copied = writer.into_bytes();
        let (mut one, mut other) = (BitReader::new(&bytes), BitReader::new(&copied));
        one.take(3).expect("there");
        for _ in 0..41 {
            assert_eq!(one.take(1), other.take(1));
        }
        assert!(BitWriter::default().copy(&mut from, 5).is_err());
    }
}
