//! Puts a new version together from what the old one has and what was sent, and checks it before anybody may keep it.

use std::io::Write;
use std::ops::Range;

use super::error::DeltaError;
use super::message::WholeFile;
use super::source::{RangedSource, read_at};

/// How many bytes are copied at a time.
const COPY_LENGTH: u64 = 64 * 1024;

/// Takes a new version, from front to back.
pub trait VersionSink {
    /// Takes bytes that were sent.
    ///
    /// # Errors
    /// [`DeltaError::Write`], or what else the sink may fail by.
    fn literal(&mut self, bytes: &[u8]) -> Result<(), DeltaError>;

    /// Takes bytes that the old version has, all of them.
    ///
    /// # Errors
    /// Those of [`CopiedPart::next`]; as [`Self::literal`].
    fn copied(&mut self, part: &mut CopiedPart<'_>) -> Result<(), DeltaError>;
}

/// Writes it as it is.
impl<W: Write> VersionSink for W {
    fn literal(&mut self, bytes: &[u8]) -> Result<(), DeltaError> {
        self.write_all(bytes).map_err(|source| DeltaError::Write { source })
    }

    fn copied(&mut self, part: &mut CopiedPart<'_>) -> Result<(), DeltaError> {
        loop {
            match part.next(usize::MAX)? {
                [] => return Ok(()),
                bytes => self.literal(bytes)?,
            }
        }
    }
}

/// Bytes of the old version that the new one has, too; whatever is read of them counts for the whole-file check.
pub struct CopiedPart<'a> {
    old: &'a mut dyn RangedSource,
    /// Where the rest of it lies that is not read, in bytes from the start of the old version.
    unread: Range<u64>,
    hasher: &'a mut blake3::Hasher,
    /// What was read, and how much of that was taken.
    buffer: &'a mut Vec<u8>,
    taken: usize,
}

impl<'a> CopiedPart<'a> {
    /// Begins with a range of the old version; the buffer may have anything.
    pub(crate) fn new(
        old: &'a mut dyn RangedSource,
        range: Range<u64>,
        hasher: &'a mut blake3::Hasher,
        buffer: &'a mut Vec<u8>,
    ) -> Self {
        buffer.clear();
        Self { old, unread: range, hasher, buffer, taken: 0 }
    }

    /// Returns where what was not taken yet lies in the old version, in bytes from its start.
    pub fn range(&self) -> Range<u64> {
        self.unread.start - (self.buffer.len() - self.taken) as u64..self.unread.end
    }

    /// Takes the next bytes: at most `length_max` of them, and none at the end.
    ///
    /// # Errors
    /// [`DeltaError::Read`].
    pub fn next(&mut self, length_max: usize) -> Result<&[u8], DeltaError> {
        if self.taken == self.buffer.len() {
            let offset = self.unread.start;
            let length = COPY_LENGTH.min(self.unread.end - offset);
            // What is left of a failed read counts as taken.
            self.buffer.resize(length as usize, 0);
            self.taken = self.buffer.len();
            read_at(self.old, offset, self.buffer)?;
            self.hasher.update(self.buffer);
            (self.taken, self.unread.start) = (0, offset + length);
        }
        let from = self.taken;
        self.taken = from.saturating_add(length_max).min(self.buffer.len());
        Ok(&self.buffer[from..self.taken])
    }

    /// Takes so many bytes.
    ///
    /// # Errors
    /// [`DeltaError::OutOfRange`] where it has fewer; [`DeltaError::Read`].
    pub fn skip(&mut self, length: u64) -> Result<(), DeltaError> {
        let Range { start: offset, end: size } = self.range();
        let mut rest = length;
        while rest > 0 {
            match self.next(usize::try_from(rest).unwrap_or(usize::MAX))? {
                [] => return Err(DeltaError::OutOfRange { offset, length, size }),
                bytes => rest -= bytes.len() as u64,
            }
        }
        Ok(())
    }
}

/// The proof that what was written is what the client has. There is no other way to one than a whole-file check that
/// succeeded, so a caller that wants it before it makes a version of the bytes never keeps wrong ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    size: u64,
    hash: [u8; 32],
}

impl Verified {
    /// Returns the size of the new version in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the BLAKE3-256 of the new version.
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }
}

/// The end of a session at the side that has the old version.
#[derive(Debug)]
pub struct Finished {
    /// The message that tells the client.
    pub answer: Vec<u8>,
    /// Whether what was written may be kept. Without it, it must be thrown away.
    pub verified: Option<Verified>,
}

/// A version that is being written.
#[derive(Debug, Clone)]
pub(super) struct Assembly {
    size_max: u64,
    size: u64,
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
}

impl Assembly {
    /// Begins a version of at most `size_max` bytes.
    pub(super) fn new(size_max: u64) -> Self {
        Self { size_max, size: 0, hasher: blake3::Hasher::new(), buffer: Vec::new() }
    }

    /// Writes bytes that were sent.
    pub(super) fn literal(
        &mut self,
        bytes: &[u8],
        out: &mut dyn VersionSink,
    ) -> Result<(), DeltaError> {
        self.reserve(bytes.len() as u64)?;
        self.hasher.update(bytes);
        out.literal(bytes)
    }

    /// Writes bytes of the old version.
    pub(super) fn copy(
        &mut self,
        old: &mut dyn RangedSource,
        (offset, length): (u64, u64),
        out: &mut dyn VersionSink,
    ) -> Result<(), DeltaError> {
        self.reserve(length)?;
        let size = old.size();
        let end = offset.checked_add(length).filter(|&end| end <= size);
        let end = end.ok_or(DeltaError::OutOfRange { offset, length, size })?;
        let Self { hasher, buffer, .. } = self;
        let mut part = CopiedPart::new(old, offset..end, hasher, buffer);
        out.copied(&mut part)?;
        if part.range().is_empty() {
            return Ok(());
        }
        // More may be in the hash than was taken, so the check would let this pass.
        Err(DeltaError::Write { source: std::io::ErrorKind::WriteZero.into() })
    }

    /// Compares what was written with what was to be written.
    pub(super) fn finish(&self, whole: &WholeFile) -> Option<Verified> {
        let hash = *self.hasher.finalize().as_bytes();
        let is_same = self.size == whole.size && hash == whole.hash;
        is_same.then_some(Verified { size: self.size, hash })
    }

    fn reserve(&mut self, length: u64) -> Result<(), DeltaError> {
        let size = self.size.saturating_add(length);
        if size > self.size_max {
            return Err(DeltaError::TooLarge { size, max: self.size_max });
        }
        self.size = size;
        Ok(())
    }
}
