//! The one binary encoding of everything that is stored, hashed or sent.
//!
//! *Participants*: every room that writes bytes which another device, a later version or a hash will read.
//! *Goals*: canonical (one value has one encoding, and decoding then encoding gives the same bytes), versioned
//! (a newer version is refused by name and nothing is changed), bounded (no length is trusted before the bytes
//! are there). *Non-goals*: zero-copy access, schema evolution inside one version.
//! *Invariants*: integers are minimal LEB128; signed integers are zigzag; a byte string is its length and its
//! bytes; a list is its length and its elements; an option is 0 or 1 and the value; fixed-size ids are bare.
//! A top-level message starts with its magic byte and a version byte, and ends exactly at its last field.
//!
//! The format in words: `docs/design/commit-log.md`, "Encoding".

use crate::ids::{
    ChunkId, DeviceId, EntryHash, NodeId, OpId, PackId, PageId, StoreId, WorkspaceId,
};

/// The version of every message of a plain workspace.
pub const FORMAT_VERSION: u8 = 1;

/// The version of messages that hold something sealed (`docs/design/keys.md`). A program that knows no sealed workspaces
/// refuses them by name.
pub const SEALED_VERSION: u8 = 2;

/// What is added to the version of messages that speak of a cleanup (`docs/design/cleanup.md`): 3 in a plain workspace, 4 in a
/// sealed one. A program that knows no cleanup refuses them by name, since it would lose bytes if it went on without.
pub const CLEANUP_STEP: u8 = 2;

/// What is added to the version of messages that speak of mounted folders (`docs/design/shared-folders.md`): 5 and, beside the others, up to
/// 8. A program that knows none refuses them by name, since it would go on syncing what lies in such a folder.
pub const MOUNTS_STEP: u8 = 4;

/// What is added to the version of messages that speak of packs with delta records (`docs/design/pack-format.md`): 9 and, beside the
/// others, up to 16. A program that knows none refuses them by name, since it would remove what chunks are made from.
pub const DELTAS_STEP: u8 = 8;

/// The newest version that is read.
pub const NEWEST_VERSION: u8 = SEALED_VERSION + CLEANUP_STEP + MOUNTS_STEP + DELTAS_STEP;

/// Bytes that are not the canonical encoding of the expected value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end inside a field.
    #[error("data ends early, at byte {offset}")]
    Truncated {
        /// Where more bytes were expected.
        offset: usize,
    },
    /// Bytes are left over after the last field.
    #[error("{count} bytes are left over after the end")]
    TrailingBytes {
        /// How many.
        count: usize,
    },
    /// An integer is not in its shortest form, or too large for its field.
    #[error("integer at byte {offset} is not canonical")]
    NotCanonical {
        /// Where the integer starts.
        offset: usize,
    },
    /// A length is larger than its limit or than the bytes that are left.
    #[error("length {length} at byte {offset} is out of bounds")]
    LengthOutOfBounds {
        /// Where the length stands.
        offset: usize,
        /// The length that was read.
        length: u64,
    },
    /// A field has a value that its type does not allow.
    #[error("{what} is invalid at byte {offset}: {reason}")]
    InvalidValue {
        /// Which field.
        what: &'static str,
        /// Where it ends.
        offset: usize,
        /// Why it is refused.
        reason: String,
    },
    /// The bytes are another kind of message.
    #[error("this is not a {expected}")]
    WrongKind {
        /// The kind that was expected.
        expected: &'static str,
    },
    /// The bytes were written by a newer version of Syncline.
    #[error("this {kind} has format version {version}; the newest known here is {NEWEST_VERSION}")]
    NewerVersion {
        /// The kind of message.
        kind: &'static str,
        /// Its version.
        version: u8,
    },
}

/// Collects the encoding of a value.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    /// Whether the message has a version for sealed things.
    is_sealed: bool,
    /// Whether the message has a version for cleanup.
    is_of_cleanup: bool,
    /// Whether the message has a version for packs with delta records.
    is_of_deltas: bool,
}

impl Encoder {
    /// Tells whether the message has a version for sealed things, so that values write their sealed fields.
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// Tells whether the message has a version for cleanup, so that values write what belongs to it.
    pub fn is_of_cleanup(&self) -> bool {
        self.is_of_cleanup
    }

    /// Tells whether the message has a version for packs with delta records, so that commits say which of them names such packs.
    pub fn is_of_deltas(&self) -> bool {
        self.is_of_deltas
    }

    /// Returns what was encoded so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends an unsigned integer.
    pub fn unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Appends a signed integer.
    pub fn signed(&mut self, value: i64) {
        self.unsigned((value << 1 ^ value >> 63) as u64);
    }

    /// Appends a byte string.
    pub fn byte_string(&mut self, bytes: &[u8]) {
        self.unsigned(bytes.len() as u64);
        self.raw(bytes);
    }

    /// Appends a list.
    pub fn list<T: Encode>(&mut self, items: &[T]) {
        self.unsigned(items.len() as u64);
        for item in items {
            item.encode(self);
        }
    }

    /// Appends an optional value.
    pub fn option<T: Encode>(&mut self, value: Option<&T>) {
        self.unsigned(u64::from(value.is_some()));
        if let Some(value) = value {
            value.encode(self);
        }
    }
}

/// Reads an encoding from front to back.
#[derive(Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    offset: usize,
    /// Whether the message has a version for sealed things.
    is_sealed: bool,
    /// Whether the message has a version for cleanup.
    is_of_cleanup: bool,
    /// Whether the message has a version for mounted folders.
    is_of_mounts: bool,
    /// Whether the message has a version for packs with delta records.
    is_of_deltas: bool,
}

impl<'a> Decoder<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            offset: 0,
            is_sealed: false,
            is_of_cleanup: false,
            is_of_mounts: false,
            is_of_deltas: false,
        }
    }

    /// Tells whether the message has a version for sealed things, so that values have their sealed fields.
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// Tells whether the message has a version for cleanup, so that values have what belongs to it.
    pub fn is_of_cleanup(&self) -> bool {
        self.is_of_cleanup
    }

    /// Tells whether the message has a version for mounted folders.
    pub fn is_of_mounts(&self) -> bool {
        self.is_of_mounts
    }

    /// Tells whether the message has a version for packs with delta records.
    pub fn is_of_deltas(&self) -> bool {
        self.is_of_deltas
    }

    /// Returns the number of bytes that are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// Reports a value that the field does not allow.
    pub fn invalid(&self, what: &'static str, reason: impl ToString) -> DecodeError {
        DecodeError::InvalidValue { what, offset: self.offset, reason: reason.to_string() }
    }

    /// Reads `count` bytes as they are.
    pub fn raw(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let end = self.offset.checked_add(count).filter(|&end| end <= self.bytes.len());
        let Some(end) = end else {
            return Err(DecodeError::Truncated { offset: self.bytes.len() });
        };
        let bytes = &self.bytes[self.offset..end];
        self.offset = end;
        Ok(bytes)
    }

    /// Reads an array of fixed size.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        Ok(self.raw(N)?.try_into().expect("raw returns as many bytes as asked"))
    }

    /// Reads an unsigned integer.
    pub fn unsigned(&mut self) -> Result<u64, DecodeError> {
        let start = self.offset;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.raw(1)?[0];
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                return Err(DecodeError::NotCanonical { offset: start });
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::NotCanonical { offset: start })
    }

    /// Reads an unsigned integer of at most `max`.
    pub fn unsigned_max(&mut self, max: u64) -> Result<u64, DecodeError> {
        let offset = self.offset;
        let length = self.unsigned()?;
        if length > max {
            return Err(DecodeError::LengthOutOfBounds { offset, length });
        }
        Ok(length)
    }

    /// Reads a 32-bit unsigned integer.
    pub fn unsigned32(&mut self) -> Result<u32, DecodeError> {
        Ok(self.unsigned_max(u64::from(u32::MAX))? as u32)
    }

    /// Reads a signed integer.
    pub fn signed(&mut self) -> Result<i64, DecodeError> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads a byte string of at most `max` bytes.
    pub fn byte_string(&mut self, max: usize) -> Result<&'a [u8], DecodeError> {
        let offset = self.offset;
        let length = self.unsigned()?;
        if length > max as u64 {
            return Err(DecodeError::LengthOutOfBounds { offset, length });
        }
        self.raw(length as usize)
    }

    /// Reads a list. Its length is bounded by the bytes that are left, since an element takes at least one.
    pub fn list<T: Decode>(&mut self) -> Result<Vec<T>, DecodeError> {
        let offset = self.offset;
        let length = self.unsigned()?;
        if length > self.remaining() as u64 {
            return Err(DecodeError::LengthOutOfBounds { offset, length });
        }
        // An element in memory may be larger than its encoding: do not reserve what was not yet seen.
        let mut items = Vec::with_capacity((length as usize).min(1024));
        for _ in 0..length {
            items.push(T::decode(self)?);
        }
        Ok(items)
    }

    /// Reads an optional value.
    pub fn option<T: Decode>(&mut self) -> Result<Option<T>, DecodeError> {
        match self.unsigned_max(1)? {
            0 => Ok(None),
            _ => Ok(Some(T::decode(self)?)),
        }
    }

    /// Checks that nothing is left over.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            count => Err(DecodeError::TrailingBytes { count }),
        }
    }
}

/// A value with a canonical encoding.
pub trait Encode {
    /// Appends the value.
    fn encode(&self, encoder: &mut Encoder);
}

/// A value that can be read back from its encoding.
pub trait Decode: Sized {
    /// Reads the value.
    ///
    /// # Errors
    /// [`DecodeError`], with the offset of what is wrong.
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}

/// A value that stands alone: stored as an object, hashed, or sent.
pub trait Message: Encode + Decode {
    /// Tells the kinds apart; no two kinds share one.
    const MAGIC: u8;
    /// The kind, for error texts.
    const KIND: &'static str;

    /// Tells whether anything in it is sealed, which gives it a version of its own.
    fn is_sealed(&self) -> bool {
        false
    }

    /// Tells whether it speaks of a cleanup, which gives it a version of its own.
    fn is_of_cleanup(&self) -> bool {
        false
    }

    /// Tells whether it speaks of mounted folders, which gives it a version of its own.
    fn is_of_mounts(&self) -> bool {
        false
    }

    /// Tells whether it speaks of packs with delta records, which gives it a version of its own.
    fn is_of_deltas(&self) -> bool {
        false
    }
}

/// Encodes a message with its magic byte and version.
pub fn encode_message<T: Message>(message: &T) -> Vec<u8> {
    let (is_sealed, is_of_cleanup) = (message.is_sealed(), message.is_of_cleanup());
    let is_of_deltas = message.is_of_deltas();
    let mut encoder = Encoder { is_sealed, is_of_cleanup, is_of_deltas, ..Encoder::default() };
    let version = if is_sealed { SEALED_VERSION } else { FORMAT_VERSION };
    let steps = CLEANUP_STEP * u8::from(is_of_cleanup)
        + MOUNTS_STEP * u8::from(message.is_of_mounts())
        + DELTAS_STEP * u8::from(is_of_deltas);
    encoder.raw(&[T::MAGIC, version + steps]);
    message.encode(&mut encoder);
    encoder.into_bytes()
}

/// Decodes a message.
///
/// # Errors
/// [`DecodeError`] where the bytes are not exactly one canonical message of this kind and a known version.
pub fn decode_message<T: Message>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let [magic, version] = decoder.array()?;
    if magic != T::MAGIC {
        return Err(DecodeError::WrongKind { expected: T::KIND });
    }
    if version > NEWEST_VERSION {
        return Err(DecodeError::NewerVersion { kind: T::KIND, version });
    }
    if version == 0 {
        return Err(decoder.invalid("version", "zero"));
    }
    let steps = version - FORMAT_VERSION;
    decoder.is_of_deltas = steps & DELTAS_STEP != 0;
    decoder.is_of_mounts = steps & MOUNTS_STEP != 0;
    decoder.is_of_cleanup = steps & CLEANUP_STEP != 0;
    decoder.is_sealed = steps & (SEALED_VERSION - FORMAT_VERSION) != 0;
    let message = T::decode(&mut decoder)?;
    // One message has one encoding: nothing plain may be dressed up as sealed.
    if message.is_sealed() != decoder.is_sealed {
        return Err(decoder.invalid("version", "it says sealed, and nothing in it is"));
    }
    if message.is_of_cleanup() != decoder.is_of_cleanup {
        return Err(decoder.invalid("version", "it says the wrong thing about a cleanup"));
    }
    if message.is_of_mounts() != decoder.is_of_mounts {
        return Err(decoder.invalid("version", "it says the wrong thing about mounted folders"));
    }
    if message.is_of_deltas() != decoder.is_of_deltas {
        return Err(decoder.invalid("version", "it says the wrong thing about delta records"));
    }
    decoder.finish()?;
    Ok(message)
}

macro_rules! id_codec {
    ($($name:ident),*) => {$(
        impl Encode for $name {
            fn encode(&self, encoder: &mut Encoder) {
                encoder.raw(self.as_bytes());
            }
        }
        impl Decode for $name {
            fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                decoder.array().map(Self::from_bytes)
            }
        }
    )*};
}

id_codec!(WorkspaceId, NodeId, DeviceId, OpId, ChunkId, PackId, EntryHash, PageId, StoreId);

#[cfg(test)]
mod tests;
