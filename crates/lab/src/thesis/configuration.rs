//! The 144 configurations (section 6.2): two sizes of multichunks, two pauses, twelve chunkers, three chains.

use std::fmt;

use content::ContentError;
use content::chunker::rolling::{Adler32, Plain, Rabin};
use content::chunker::{ChunkSizes, Chunker, FixedChunker, TttdChunker};

use super::faithful::FaithfulTttd;

/// Whether chunks are cut as the thesis describes it, or as its program did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As the papers describe it that the thesis takes its chunkers from.
    Correct,
    /// With the deviations that [`super::faithful`] names.
    Faithful,
}

impl fmt::Display for Variant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Correct => "correct",
            Self::Faithful => "thesis-faithful",
        })
    }
}

/// What a cut of TTTD is decided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fingerprint {
    /// The checksum of rsync.
    Adler32,
    /// The sum of the bytes.
    Plain,
    /// A remainder of polynomials.
    Rabin,
}

impl Fingerprint {
    /// The name in the thesis.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adler32 => "Adler32",
            Self::Plain => "PLAIN",
            Self::Rabin => "Rabin",
        }
    }
}

/// How files are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunking {
    /// Nothing: at fixed offsets.
    pub fingerprint: Option<Fingerprint>,
    /// In KiB.
    pub average_kib: u32,
}

impl Chunking {
    /// Makes the chunker.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`].
    pub fn chunker(self, variant: Variant) -> Result<Box<dyn Chunker>, ContentError> {
        let average = self.average_kib * 1024;
        Ok(match (self.fingerprint, variant) {
            (None, _) => Box::new(FixedChunker::new(ChunkSizes::exactly(average)?)),
            (Some(fingerprint), Variant::Faithful) => {
                Box::new(FaithfulTttd::new(fingerprint, average)?)
            }
            (Some(Fingerprint::Adler32), _) => Box::new(TttdChunker::<Adler32>::new(average)?),
            (Some(Fingerprint::Plain), _) => Box::new(TttdChunker::<Plain>::new(average)?),
            (Some(Fingerprint::Rabin), _) => Box::new(TttdChunker::<Rabin>::new(average)?),
        })
    }
}

/// How multichunks are compressed before they are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compression {
    /// Not at all.
    None,
    /// At gzip's usual level.
    Gzip,
    /// In blocks of 900 KB, so a multichunk is one.
    Bzip2,
}

impl Compression {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Gzip => "Gzip",
            Self::Bzip2 => "Bzip2",
        }
    }
}

/// One of the 144.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configuration {
    /// From which size in KiB on a multichunk is closed.
    pub multichunk_kib: usize,
    /// How long the chunker rests after each multichunk.
    pub pause_ms: u64,
    /// How files are cut.
    pub chunking: Chunking,
    /// How multichunks are compressed.
    pub compression: Compression,
}

impl Configuration {
    /// All of them.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        let fingerprints =
            [None, Some(Fingerprint::Adler32), Some(Fingerprint::Plain), Some(Fingerprint::Rabin)];
        for multichunk_kib in [125, 250] {
            for pause_ms in [0, 30] {
                for compression in [Compression::None, Compression::Gzip, Compression::Bzip2] {
                    for average_kib in [4, 8, 16] {
                        all.extend(fingerprints.map(|fingerprint| {
                            let chunking = Chunking { fingerprint, average_kib };
                            Self { multichunk_kib, pause_ms, chunking, compression }
                        }));
                    }
                }
            }
        }
        all
    }
}

/// The name in the thesis: multichunks, chunker, chain.
impl fmt::Display for Configuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Custom-{}-{}/", self.multichunk_kib, self.pause_ms)?;
        match self.chunking.fingerprint {
            None => write!(formatter, "Fixed-{}/", self.chunking.average_kib)?,
            Some(fingerprint) => {
                let average = self.chunking.average_kib;
                write!(formatter, "TTTD-{average}-{}/", fingerprint.name())?;
            }
        }
        match self.compression {
            Compression::None => formatter.write_str("Cipher"),
            compression => write!(formatter, "{}-Cipher", compression.name()),
        }
    }
}
