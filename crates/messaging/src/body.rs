//! Values as bytes: MessagePack or JSON, compressed where that saves something.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::MessagingError;

/// Largest body in bytes before it is compressed, so that a few bytes cannot unfold into a memory full of zeros.
pub const BODY_SIZE_MAX: usize = 16 << 20;

/// The level at which zstd takes less time than the network.
const ZSTD_LEVEL: i32 = 1;

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Encoding {
    /// MessagePack: compact.
    #[default]
    MessagePack,
    /// JSON: readable.
    Json,
}

impl Encoding {
    /// Writes a value.
    ///
    /// # Errors
    /// [`MessagingError::Unencodable`] for values that the encoding does not have.
    pub fn encode<T: Serialize + ?Sized>(
        self,
        what: &'static str,
        value: &T,
    ) -> Result<Bytes, MessagingError> {
        let failed = |reason: String| MessagingError::Unencodable { what, reason };
        let bytes = match self {
            Self::MessagePack => {
                rmp_serde::to_vec(value).map_err(|error| failed(error.to_string()))
            }
            Self::Json => serde_json::to_vec(value).map_err(|error| failed(error.to_string())),
        };
        bytes.map(Bytes::from)
    }

    /// Reads a value; bytes after it are an error.
    ///
    /// # Errors
    /// [`MessagingError::Undecodable`].
    pub fn decode<T: DeserializeOwned>(
        self,
        what: &'static str,
        bytes: &[u8],
    ) -> Result<T, MessagingError> {
        match self {
            Self::MessagePack => {
                let mut rest = bytes;
                let value = rmp_serde::from_read(&mut rest)
                    .map_err(|error| MessagingError::undecodable(what, error))?;
                if rest.is_empty() {
                    return Ok(value);
                }
                Err(MessagingError::undecodable(what, "bytes follow the value"))
            }
            Self::Json => serde_json::from_slice(bytes)
                .map_err(|error| MessagingError::undecodable(what, error)),
        }
    }
}

/// The body of a message as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PackedBody {
    /// Whether `bytes` are a zstd frame.
    pub is_compressed: bool,
    /// The size before compression.
    pub size: usize,
    /// What travels.
    pub bytes: Bytes,
}

impl PackedBody {
    /// Packs a body. What is larger than `compress_above` is compressed, unless that makes it no smaller.
    ///
    /// # Errors
    /// [`MessagingError::TooLarge`].
    pub fn pack(bytes: Bytes, compress_above: usize) -> Result<Self, MessagingError> {
        let size = bytes.len();
        if size > BODY_SIZE_MAX {
            return Err(MessagingError::TooLarge { size, max: BODY_SIZE_MAX });
        }
        if size > compress_above {
            let compressed = zstd::bulk::compress(&bytes, ZSTD_LEVEL).ok();
            if let Some(smaller) = compressed.filter(|compressed| compressed.len() < size) {
                return Ok(Self { is_compressed: true, size, bytes: smaller.into() });
            }
        }
        Ok(Self { is_compressed: false, size, bytes })
    }

    /// Returns the body; never more bytes than it says it has.
    ///
    /// # Errors
    /// [`MessagingError::Undecodable`], [`MessagingError::TooLarge`].
    pub fn open(&self) -> Result<Bytes, MessagingError> {
        if self.size > BODY_SIZE_MAX {
            return Err(MessagingError::TooLarge { size: self.size, max: BODY_SIZE_MAX });
        }
        let opened = if self.is_compressed {
            zstd::bulk::decompress(&self.bytes, self.size)
                .map_err(|error| MessagingError::undecodable("a compressed body", error))?
                .into()
        } else {
            self.bytes.clone()
        };
        if opened.len() == self.size {
            return Ok(opened);
        }
        Err(MessagingError::undecodable("a body", "it has not the size that it says"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_both_encodings_and_nothing_may_follow_them() {
        let value = (7_u64, "seven".to_owned(), vec![1_u8, 2, 3], Some(-4_i32));
        for encoding in [Encoding::MessagePack, Encoding::Json] {
            let bytes = encoding.encode("a value", &value).unwrap();
            let read: (u64, String, Vec<u8>, Option<i32>) =
                encoding.decode("a value", &bytes).unwrap();
            assert_eq!(read, value);
            let longer = [&bytes[..], b"0"].concat();
            encoding.decode::<(u64, String, Vec<u8>, Option<i32>)>("it", &longer).unwrap_err();
            for cut in 0..bytes.len() {
                encoding
                    .decode::<(u64, String, Vec<u8>, Option<i32>)>("it", &bytes[..cut])
                    .unwrap_err();
            }
        }
    }

    #[test]
    fn large_bodies_are_compressed_and_random_ones_are_not() {
        let zeros = Bytes::from(vec![0; 100_000]);
        let packed = PackedBody::pack(zeros.clone(), 1024).unwrap();
        assert!(packed.is_compressed && packed.bytes.len() < 1000);
        assert_eq!(packed.open().unwrap(), zeros);
        let small = PackedBody::pack(zeros.slice(..1024), 1024).unwrap();
        assert!(!small.is_compressed);
        let mut state = 1_u64;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        });
        let noise: Bytes = noise.take(5000).collect();
        assert!(!PackedBody::pack(noise, 1024).unwrap().is_compressed);
    }

    #[test]
    fn a_body_that_unfolds_into_more_than_it_says_is_refused() {
        let zeros = Bytes::from(vec![0; 100_000]);
        let honest = PackedBody::pack(zeros, 1024).unwrap();
        PackedBody { size: 99_999, ..honest.clone() }.open().unwrap_err();
        PackedBody { size: 100_001, ..honest.clone() }.open().unwrap_err();
        PackedBody { size: BODY_SIZE_MAX + 1, ..honest }.open().unwrap_err();
    }
}
