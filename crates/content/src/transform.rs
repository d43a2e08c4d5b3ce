//! Compresses records, and gives them back within bounds.
//!
//! *Participants*: pack writers, pack readers, and whoever can change a stored byte. *Goals*: bytes that do not
//! shrink are neither compressed nor decompressed; a decoder never makes more than the declared length, nor uses
//! more memory than a constant beyond it. *Non-goals*: streaming; a record is small. *Invariants*: `decode` of
//! `encode` is the identity; a stored form that is not shorter by a thirty-second part is the plain one.
//!
//! To add a transform: a module here, a variant of [`Transform`] and a [`TransformTag`].

mod bzip2;
mod gzip;
mod probe;
mod zstd;

use std::fmt;
use std::io::{self, Read};

pub use probe::looks_incompressible;

use crate::error::ContentError;
use crate::jpeg;

/// A compressed form is kept where it saves at least one part in this many.
const GAIN_MIN_DIVISOR: usize = 32;

/// How records are compressed when they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transform {
    /// Not at all.
    None,
    /// With zstd: the default.
    Zstd {
        /// Level, 1 (fast) to 22 (small); negative levels are faster still.
        level: i32,
    },
    /// With gzip, for comparison with the literature.
    Gzip,
    /// With bzip2, for comparison with the literature.
    Bzip2,
}

impl Transform {
    /// The level that a first sync uses: see the measurements in `docs/design/pack-format.md`.
    pub const DEFAULT_LEVEL: i32 = 1;

    /// The level for so few bytes at once that nobody waits for the difference, and for what is packed anew in the background.
    pub const PATIENT_LEVEL: i32 = 9;

    /// Up to how many bytes that are packed at once the patient level is taken.
    pub const PATIENT_LENGTH: u64 = 16 * 1024 * 1024;

    /// Returns what is to be taken where so many bytes are packed at once: few are compressed better, by zstd.
    #[must_use]
    pub fn for_length(self, length: u64) -> Self {
        if length <= Self::PATIENT_LENGTH { self.patient() } else { self }
    }

    /// Returns what is to be taken where nobody waits.
    #[must_use]
    pub fn patient(self) -> Self {
        match self {
            Self::Zstd { level } => Self::Zstd { level: level.max(Self::PATIENT_LEVEL) },
            other => other,
        }
    }

    /// Returns the tag of records that this transform shortens.
    pub fn tag(self) -> TransformTag {
        match self {
            Self::None => TransformTag::None,
            Self::Zstd { .. } => TransformTag::Zstd,
            Self::Gzip => TransformTag::Gzip,
            Self::Bzip2 => TransformTag::Bzip2,
        }
    }

    /// Encodes one record; use a [`TransformEncoder`] for many.
    ///
    /// # Errors
    /// As [`TransformEncoder::encode`].
    pub fn encode(self, plain: &[u8]) -> Result<(TransformTag, Vec<u8>), ContentError> {
        let mut stored = Vec::new();
        let tag = TransformEncoder::new(self)?.encode(plain, &mut stored)?;
        Ok((tag, stored))
    }
}

impl Default for Transform {
    fn default() -> Self {
        // A build without zstd still writes packs that every other build reads.
        if cfg!(target_family = "wasm") {
            Self::None
        } else {
            Self::Zstd { level: Self::DEFAULT_LEVEL }
        }
    }
}

/// What a record went through, as packs store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransformTag {
    /// Nothing: the stored bytes are the plain bytes.
    None,
    /// One zstd frame.
    Zstd,
    /// One gzip member.
    Gzip,
    /// One bzip2 stream.
    Bzip2,
    /// What makes the chunks from others, which [`crate::pack::DeltaRecord`] writes.
    Delta,
    /// How the chunks come out of others, in which deflate streams are inflated ([`crate::inflated`]).
    Deflate,
    /// A picture coded shorter ([`crate::jpeg`]): the chunks of a whole file.
    Jpeg,
}

impl TransformTag {
    const ALL: [Self; 7] =
        [Self::None, Self::Zstd, Self::Gzip, Self::Bzip2, Self::Delta, Self::Deflate, Self::Jpeg];

    /// Tells whether such a record is made from chunks that rest in others.
    pub fn has_bases(self) -> bool {
        matches!(self, Self::Delta | Self::Deflate)
    }

    /// Returns the number that stands in a pack.
    pub fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Zstd => 1,
            Self::Gzip => 2,
            Self::Bzip2 => 3,
            Self::Delta => 4,
            Self::Deflate => 5,
            Self::Jpeg => 6,
        }
    }

    /// Returns the tag of a number, if it has one.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

impl fmt::Display for TransformTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "none",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Delta => "delta",
            Self::Deflate => "deflate",
            Self::Jpeg => "jpeg",
        })
    }
}

/// Encodes records one after the other, and keeps the compressor's memory between them.
pub struct TransformEncoder {
    transform: Transform,
    zstd: Option<zstd::Encoder>,
}

impl TransformEncoder {
    /// Prepares for a transform.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedTransform`].
    pub fn new(transform: Transform) -> Result<Self, ContentError> {
        let zstd = match transform {
            Transform::Zstd { level } => Some(zstd::Encoder::new(level)?),
            _ => None,
        };
        Ok(Self { transform, zstd })
    }

    /// Appends the stored form of `plain` to `stored`, and says which form that is.
    ///
    /// # Errors
    /// [`ContentError::Encode`].
    pub fn encode(
        &mut self,
        plain: &[u8],
        stored: &mut Vec<u8>,
    ) -> Result<TransformTag, ContentError> {
        let start = stored.len();
        let tag = self.transform.tag();
        if tag != TransformTag::None && !looks_incompressible(plain) {
            self.compress(plain, stored)?;
            if pays(plain.len(), stored.len() - start) {
                return Ok(tag);
            }
            stored.truncate(start);
        }
        stored.extend_from_slice(plain);
        Ok(TransformTag::None)
    }

    /// Appends `plain` compressed to `stored`, whether that is shorter or not, as programs of the literature do.
    ///
    /// # Errors
    /// [`ContentError::Encode`].
    pub fn compress(&mut self, plain: &[u8], stored: &mut Vec<u8>) -> Result<(), ContentError> {
        let result = match (self.transform, &mut self.zstd) {
            (Transform::Zstd { .. }, Some(encoder)) => encoder.encode(plain, stored),
            (Transform::Zstd { .. } | Transform::None, _) => {
                stored.extend_from_slice(plain);
                Ok(())
            }
            (Transform::Gzip, _) => gzip::encode(plain, stored),
            (Transform::Bzip2, _) => bzip2::encode(plain, stored),
        };
        let transform = self.transform.tag();
        result.map_err(|source| ContentError::Encode { transform, source })
    }
}

/// Tells whether a compressed form is short enough to be worth decompressing.
pub(crate) fn pays(plain_length: usize, stored_length: usize) -> bool {
    stored_length < plain_length - plain_length / GAIN_MIN_DIVISOR
}

/// Decodes records one after the other, and keeps the decompressor's memory between them.
#[derive(Default)]
pub struct TransformDecoder {
    zstd: Option<zstd::Decoder>,
}

impl TransformDecoder {
    /// Replaces what is in `plain` by the plain form of `stored`, which must have exactly `plain_length` bytes.
    ///
    /// # Errors
    /// [`ContentError::Decode`], [`ContentError::PlainLength`], [`ContentError::RecordTrailing`],
    /// [`ContentError::UnsupportedTransform`]; [`ContentError::NeedsBases`] of a delta; [`ContentError::Script`] of a picture.
    pub fn decode(
        &mut self,
        tag: TransformTag,
        stored: &[u8],
        plain_length: usize,
        plain: &mut Vec<u8>,
    ) -> Result<(), ContentError> {
        plain.clear();
        let result = match tag {
            TransformTag::None => {
                let length = stored.len().min(plain_length + 1);
                plain.extend_from_slice(&stored[..length]);
                Ok(0)
            }
            TransformTag::Zstd => {
                let decoder = match self.zstd.take() {
                    Some(decoder) => decoder,
                    None => zstd::Decoder::new()?,
                };
                self.zstd.insert(decoder).decode(stored, plain_length, plain)
            }
            TransformTag::Gzip => gzip::decode(stored, plain_length, plain),
            TransformTag::Bzip2 => bzip2::decode(stored, plain_length, plain),
            // It is no transform of the record alone.
            TransformTag::Delta | TransformTag::Deflate => return Err(ContentError::NeedsBases),
            TransformTag::Jpeg => {
                let made = jpeg::lengthen(stored, plain_length);
                *plain = made.map_err(|source| ContentError::Script { source })?;
                return Ok(());
            }
        };
        let left_over = result.map_err(|source| ContentError::Decode {
            transform: tag,
            plain_length,
            source,
        })?;
        if plain.len() != plain_length {
            return Err(ContentError::PlainLength {
                transform: tag,
                expected: plain_length,
                actual: plain.len(),
            });
        }
        if left_over > 0 {
            return Err(ContentError::RecordTrailing { transform: tag, count: left_over });
        }
        Ok(())
    }
}

/// Decodes one record; use a [`TransformDecoder`] for many.
///
/// # Errors
/// As [`TransformDecoder::decode`].
pub fn decode(
    tag: TransformTag,
    stored: &[u8],
    plain_length: usize,
) -> Result<Vec<u8>, ContentError> {
    let mut plain = Vec::new();
    TransformDecoder::default().decode(tag, stored, plain_length, &mut plain)?;
    Ok(plain)
}

/// Reads a decompressor to its end, but no further than one byte past the expected length.
fn read_bounded(decoder: impl Read, plain_length: usize, plain: &mut Vec<u8>) -> io::Result<()> {
    plain.reserve_exact(plain_length + 1);
    decoder.take(plain_length as u64 + 1).read_to_end(plain)?;
    Ok(())
}

#[cfg(test)]
mod tests;
