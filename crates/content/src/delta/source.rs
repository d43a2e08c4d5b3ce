//! Reads a version of a file in ranges, in memory that does not grow with it.

use std::io;

use super::error::DeltaError;

/// A version of a file whose bytes can be read anywhere: a file, a row of chunks in a store, bytes in memory, a `Blob`.
pub trait RangedSource {
    /// Returns its length in bytes.
    fn size(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Where not all of them can be read; then the content of `buffer` is not used.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl RangedSource for &[u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).ok().filter(|&start| start <= self.len());
        let rest = start.map(|start| &self[start..]).unwrap_or_default();
        let bytes = rest.get(..buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

/// Fills `buffer` from a source.
///
/// # Errors
/// [`DeltaError::Read`], also where the range is not in the source.
pub(super) fn read_at(
    source: &mut dyn RangedSource,
    offset: u64,
    buffer: &mut [u8],
) -> Result<(), DeltaError> {
    let length = buffer.len();
    source.read_at(offset, buffer).map_err(|source| DeltaError::Read { offset, length, source })
}

/// How many bytes of a source are in memory at least.
const WINDOW_LENGTH_MIN: usize = 256 * 1024;

/// A part of a source that is in memory and moves forward.
pub(super) struct Window<'s> {
    source: &'s mut dyn RangedSource,
    size: u64,
    buffer: Vec<u8>,
    start: u64,
    filled: usize,
}

impl<'s> Window<'s> {
    /// Makes a window that can show stretches of `longest` bytes: it takes four times as much memory, or 256 KiB.
    pub(super) fn new(source: &'s mut dyn RangedSource, longest: usize) -> Self {
        let size = source.size();
        let capacity = WINDOW_LENGTH_MIN.max(longest.saturating_mul(4));
        let capacity = usize::try_from(size).map_or(capacity, |size| capacity.min(size));
        Self { source, size, buffer: vec![0; capacity], start: 0, filled: 0 }
    }

    /// Returns the size of the source in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns bytes from `offset` on: `length` of them or more, fewer only where the source ends.
    pub(super) fn bytes(&mut self, offset: u64, length: usize) -> Result<&[u8], DeltaError> {
        let rest = self.size.saturating_sub(offset);
        let wanted = rest.min(length as u64);
        let end = self.start + self.filled as u64;
        if offset < self.start || offset.saturating_add(wanted) > end {
            self.move_to(offset)?;
        }
        let from = offset.min(self.size) - self.start;
        Ok(&self.buffer[from as usize..self.filled])
    }

    /// Returns exactly the bytes of a range of the source.
    pub(super) fn exactly(&mut self, offset: u64, length: usize) -> Result<&[u8], DeltaError> {
        let size = self.size;
        let bytes = self.bytes(offset, length)?;
        let error = DeltaError::OutOfRange { offset, length: length as u64, size };
        bytes.get(..length).ok_or(error)
    }

    fn move_to(&mut self, offset: u64) -> Result<(), DeltaError> {
        let end = self.start + self.filled as u64;
        let mut kept = 0;
        if (self.start..end).contains(&offset) {
            let from = (offset - self.start) as usize;
            self.buffer.copy_within(from..self.filled, 0);
            kept = self.filled - from;
        }
        // Until the read has succeeded there is nothing in the window.
        (self.start, self.filled) = (offset.min(self.size), 0);
        let rest = self.size - self.start;
        let target =
            usize::try_from(rest).map_or(self.buffer.len(), |rest| rest.min(self.buffer.len()));
        read_at(self.source, self.start + kept as u64, &mut self.buffer[kept..target])?;
        self.filled = target;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::random_bytes;

    #[test]
    fn window_shows_what_the_source_has_wherever_it_is_moved() {
        let bytes = random_bytes(1, 3_000_000);
        let mut source = &bytes[..];
        let mut window = Window::new(&mut source, 8192);
        assert_eq!(window.buffer.len(), WINDOW_LENGTH_MIN);
        for offset in [0, 5, 262_140, 262_145, 2_999_990, 700_000, 1, 1_000_000, 1_100_000] {
            let found = window.bytes(offset as u64, 9000).unwrap();
            assert!(found.len() >= 9000.min(bytes.len() - offset), "{offset}");
            assert_eq!(found, &bytes[offset..offset + found.len()]);
        }
        assert!(window.bytes(3_000_000, 1).unwrap().is_empty());
        assert!(window.bytes(u64::MAX, 1).unwrap().is_empty());
    }

    #[test]
    fn bytes_beyond_the_end_are_an_error_and_not_shortened() {
        let mut source = &b"0123456789"[..];
        let mut window = Window::new(&mut source, 4);
        assert_eq!(window.exactly(6, 4).unwrap(), b"6789");
        assert!(matches!(window.exactly(7, 4), Err(DeltaError::OutOfRange { offset: 7, .. })));
        assert!(read_at(&mut source, 8, &mut [0; 3]).is_err());
    }

    /// Gives its number of reads as every byte, and fails the second time.
    struct Moody(u32);

    impl RangedSource for Moody {
        fn size(&self) -> u64 {
            1 << 20
        }

        fn read_at(&mut self, _: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.0 += 1;
            buffer.fill(self.0 as u8);
            if self.0 == 2 { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
        }
    }

    #[test]
    fn bytes_of_a_failed_read_are_never_shown_nor_those_before_it() {
        let mut source = Moody(0);
        let mut window = Window::new(&mut source, 8);
        assert_eq!(&window.bytes(0, 8).unwrap()[..8], &[1; 8]);
        assert!(matches!(window.bytes(600_000, 8), Err(DeltaError::Read { offset: 600_000, .. })));
        assert_eq!(&window.bytes(600_000, 8).unwrap()[..8], &[3; 8]);
    }
}
