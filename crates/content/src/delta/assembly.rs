//! Puts a new version together from what the old one has and what was sent, and checks it before anybody may keep it.

use std::io::Write;

use super::error::DeltaError;
use super::message::WholeFile;
use super::source::{RangedSource, read_at};

/// How many bytes are copied at a time.
const COPY_LENGTH: u64 = 64 * 1024;

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
    pub(super) fn literal(&mut self, bytes: &[u8], out: &mut dyn Write) -> Result<(), DeltaError> {
        self.reserve(bytes.len() as u64)?;
        self.hasher.update(bytes);
        out.write_all(bytes).map_err(|source| DeltaError::Write { source })
    }

    /// Writes bytes of the old version.
    pub(super) fn copy(
        &mut self,
        old: &mut dyn RangedSource,
        (offset, length): (u64, u64),
        out: &mut dyn Write,
    ) -> Result<(), DeltaError> {
        self.reserve(length)?;
        let size = old.size();
        let end = offset.checked_add(length).filter(|&end| end <= size);
        let end = end.ok_or(DeltaError::OutOfRange { offset, length, size })?;
        let mut offset = offset;
        while offset < end {
            self.buffer.resize(COPY_LENGTH.min(end - offset) as usize, 0);
            read_at(old, offset, &mut self.buffer)?;
            self.hasher.update(&self.buffer);
            out.write_all(&self.buffer).map_err(|source| DeltaError::Write { source })?;
            offset += self.buffer.len() as u64;
        }
        Ok(())
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
