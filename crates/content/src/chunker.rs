//! Cuts bytes into chunks.
//!
//! *Participants*: the devices of a workspace, which must cut equal bytes alike. *Goals*: cuts depend on the bytes
//! near them, so that an edit moves few of them; speed far above that of hashing; bounded sizes. *Non-goals*:
//! hiding chunk lengths (packs do that). *Invariants*: a chunker is a pure function of its sizes, its key and the
//! bytes from the start of the chunk; it never looks past `max`; chunks are never empty; the chunks in order are
//! the bytes.
//!
//! To add a chunker: implement [`Chunker`] in a module here, and give it a [`ChunkerKind`].

mod fastcdc;
mod fixed;
pub mod minimum;
mod rabin;
pub mod rolling;
mod stream;
mod tttd;

use std::fmt;
use std::str::FromStr;

use model::content::CHUNK_SIZE_MAX;

pub use fastcdc::FastCdcChunker;
pub use fixed::FixedChunker;
pub use minimum::MinimumChunker;
pub use rabin::RabinChunker;
pub use stream::{ChunkBuffer, chunk_reader};
pub use tttd::{TttdChunker, TttdParameters};

use crate::error::ContentError;

/// The smallest average chunk size in bytes.
pub const AVERAGE_MIN: u32 = 1024;

/// The largest average chunk size in bytes; its `max` stays below [`CHUNK_SIZE_MAX`].
pub const AVERAGE_MAX: u32 = CHUNK_SIZE_MAX / 2;

/// Files above this size in bytes get larger chunks.
const LARGE_FILE_SIZE: u64 = 1024 * 1024 * 1024;

/// Returns the average chunk size in bytes with which a new file of `size` bytes is cut.
///
/// Later versions keep what their manifest records, whatever their size, so that they share chunks with it.
/// `incompressible` media (see [`crate::looks_incompressible`]) rarely change in part: large chunks save work.
pub fn average_for(size: u64, incompressible: bool) -> u32 {
    const KIB: u32 = 1024;
    if incompressible {
        256 * KIB
    } else if size > LARGE_FILE_SIZE {
        64 * KIB
    } else {
        16 * KIB
    }
}

/// The sizes in bytes between which a chunker cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkSizes {
    min: usize,
    average: usize,
    max: usize,
}

impl ChunkSizes {
    /// Sizes from half to three halves of `average`, a power of two.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`]: the average may come from a manifest, so from outside.
    pub fn around(average: u32) -> Result<Self, ContentError> {
        let average = Self::checked(average)?;
        Ok(Self { min: average / 2, average, max: average + average / 2 })
    }

    /// One size, a power of two.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`].
    pub fn exactly(average: u32) -> Result<Self, ContentError> {
        let average = Self::checked(average)?;
        Ok(Self { min: average, average, max: average })
    }

    /// Sizes of a chunker that does not cut as we do: from `min` to `max` bytes, for an average that is a power of two.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`]; also where `max` is more than [`CHUNK_SIZE_MAX`].
    pub fn between(min: u64, average: u32, max: u64) -> Result<Self, ContentError> {
        let average = Self::checked(average)?;
        if max > u64::from(CHUNK_SIZE_MAX) {
            // The largest power of two for which the same proportion has room.
            let room = u64::from(CHUNK_SIZE_MAX) * average as u64 / max;
            let max = 1 << room.max(1).ilog2();
            return Err(ContentError::InvalidChunkSize {
                average: average as u32,
                min: AVERAGE_MIN,
                max,
            });
        }
        assert!((rolling::WINDOW as u64..=average as u64).contains(&min) && average as u64 <= max);
        Ok(Self { min: min as usize, average, max: max as usize })
    }

    fn checked(average: u32) -> Result<usize, ContentError> {
        if average.is_power_of_two() && (AVERAGE_MIN..=AVERAGE_MAX).contains(&average) {
            Ok(average as usize)
        } else {
            Err(ContentError::InvalidChunkSize { average, min: AVERAGE_MIN, max: AVERAGE_MAX })
        }
    }

    /// Returns the size of the smallest chunk but the last of a file.
    pub fn min(self) -> usize {
        self.min
    }

    /// Returns the size that chunks have on average.
    pub fn average(self) -> usize {
        self.average
    }

    /// Returns the size of the largest chunk.
    pub fn max(self) -> usize {
        self.max
    }
}

/// Says where chunks end.
pub trait Chunker: Send + Sync {
    /// Returns the sizes between which it cuts.
    fn sizes(&self) -> ChunkSizes;

    /// Returns the length of the chunk at the start of `window`.
    ///
    /// `None` asks for more data, or says that there is none; a window of `max` bytes always suffices.
    /// `end_of_input` says that nothing follows the window.
    fn cut(&self, window: &[u8], end_of_input: bool) -> Option<usize>;
}

/// The chunkers there are. Every writer uses the default; the others are measured against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChunkerKind {
    /// Equal lengths: the fastest, blind to insertions.
    Fixed,
    /// FastCDC (2020) with a seeded gear table.
    FastCdc,
    /// Rabin fingerprints under a mask, as in LBFS (2001). It has no key.
    Rabin,
    /// Two thresholds, two divisors (2005), by the checksum of rsync. It has no key, as the next two have none.
    TttdAdler32,
    /// The same by the sum of the bytes.
    TttdPlain,
    /// The same by Rabin fingerprints.
    TttdRabin,
    /// The minimum of a keyed hash between two bounds: our default.
    #[default]
    Minimum,
}

impl ChunkerKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Fixed,
        Self::FastCdc,
        Self::Rabin,
        Self::TttdAdler32,
        Self::TttdPlain,
        Self::TttdRabin,
        Self::Minimum,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::FastCdc => "fastcdc",
            Self::Rabin => "rabin",
            Self::TttdAdler32 => "tttd-adler32",
            Self::TttdPlain => "tttd-plain",
            Self::TttdRabin => "tttd-rabin",
            Self::Minimum => "minimum",
        }
    }

    /// Makes a chunker for one average size.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`].
    pub fn chunker(self, average: u32, key: &[u8; 32]) -> Result<Box<dyn Chunker>, ContentError> {
        Ok(match self {
            Self::Fixed => Box::new(FixedChunker::new(ChunkSizes::exactly(average)?)),
            Self::FastCdc => Box::new(FastCdcChunker::new(ChunkSizes::around(average)?, key)),
            Self::Rabin => Box::new(RabinChunker::new(average)?),
            Self::TttdAdler32 => Box::new(TttdChunker::<rolling::Adler32>::new(average)?),
            Self::TttdPlain => Box::new(TttdChunker::<rolling::Plain>::new(average)?),
            Self::TttdRabin => Box::new(TttdChunker::<rolling::Rabin>::new(average)?),
            Self::Minimum => Box::new(MinimumChunker::new(ChunkSizes::around(average)?, key)),
        })
    }
}

impl fmt::Display for ChunkerKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for ChunkerKind {
    type Err = ContentError;

    fn from_str(name: &str) -> Result<Self, ContentError> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| ContentError::UnknownChunker { name: name.to_owned() })
    }
}

/// The chunks of bytes that are already in memory, in order and without copies.
pub struct Chunks<'a> {
    chunker: &'a dyn Chunker,
    rest: &'a [u8],
}

impl<'a> Chunks<'a> {
    /// Starts at the first byte.
    pub fn new(chunker: &'a dyn Chunker, bytes: &'a [u8]) -> Self {
        Self { chunker, rest: bytes }
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let length = self.chunker.cut(self.rest, true)?;
        let (chunk, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(chunk)
    }
}

#[cfg(test)]
mod tests;
