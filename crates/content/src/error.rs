//! What can go wrong with content, named by what failed.

use std::io;

use model::codec::DecodeError;
use model::ids::{ChunkId, PackId};

use crate::keyring::KeyCost;
use crate::transform::TransformTag;

/// A failure of this room.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The reader that was to be chunked failed.
    #[error("content cannot be read")]
    Read {
        /// What the reader said.
        source: io::Error,
    },
    /// A chunk size that no chunker accepts.
    #[error("average chunk size {average} is not a power of two from {min} to {max}")]
    InvalidChunkSize {
        /// The size that was asked for.
        average: u32,
        /// The smallest accepted.
        min: u32,
        /// The largest accepted.
        max: u32,
    },
    /// A chunker of a name that is not known here.
    #[error("there is no chunker '{name}'")]
    UnknownChunker {
        /// The name that was asked for.
        name: String,
    },
    /// A transform that this build does not have.
    #[error("this build has no {transform} transform")]
    UnsupportedTransform {
        /// Which one.
        transform: TransformTag,
    },
    /// A compressor failed.
    #[error("{transform} cannot encode a record")]
    Encode {
        /// Which transform.
        transform: TransformTag,
        /// What it said.
        source: io::Error,
    },
    /// A decompressor refused what it was given, or its output outgrew the declared length.
    #[error("{transform} cannot decode a record of {plain_length} plain bytes")]
    Decode {
        /// Which transform.
        transform: TransformTag,
        /// The length that the index declares.
        plain_length: usize,
        /// What it said.
        source: io::Error,
    },
    /// A record decodes to another length than declared; `actual` stops counting one past `expected`.
    #[error("{transform} decodes {actual} plain bytes where {expected} are declared")]
    PlainLength {
        /// Which transform.
        transform: TransformTag,
        /// The length that the index declares.
        expected: usize,
        /// The length that came out.
        actual: usize,
    },
    /// Bytes are left over after the end of a compressed record.
    #[error("{count} bytes follow the end of a {transform} record")]
    RecordTrailing {
        /// Which transform.
        transform: TransformTag,
        /// How many.
        count: usize,
    },
    /// A record makes its chunks from others, which were not given with it.
    #[error("a record is stored as what makes it from other chunks, and these were not given")]
    NeedsBases,
    /// Records would have to be opened that take more work than a reader does for so little.
    #[error("what is read takes more work to make than a reader does for it")]
    TooMuchWork,
    /// What makes chunks from others, or a picture, is none.
    #[error("what makes the chunks of a record is invalid")]
    Script {
        /// Where and why.
        source: DecodeError,
    },
    /// The length of a pack cannot be: too short for its frame, or too long.
    #[error("a pack cannot have {length} bytes")]
    PackLength {
        /// The length.
        length: u64,
    },
    /// A pack was written that is longer than readers accept.
    #[error("a pack of {length} bytes is longer than readers accept")]
    PackTooLong {
        /// The length.
        length: u64,
    },
    /// The first bytes are not those of a pack.
    #[error("the pack does not begin as packs do")]
    PackHeader,
    /// The last bytes are not those of a pack: it is truncated, or something else.
    #[error("the pack does not end as packs do")]
    PackTrailer,
    /// A newer Syncline wrote the pack.
    #[error("the pack has format version {version}; the newest known here is {known}")]
    NewerPack {
        /// Its version.
        version: u8,
        /// Ours.
        known: u8,
    },
    /// The index of a pack does not have the hash that the trailer gives.
    #[error("the index of the pack is damaged: its hash differs")]
    IndexHash,
    /// The index of a pack is not a canonical index.
    #[error("the index of the pack is invalid")]
    Index {
        /// Where and why.
        source: DecodeError,
    },
    /// The parts that the index names do not fill the pack exactly.
    #[error("the index describes a pack of {described} bytes, but the pack has {length}")]
    IndexMismatch {
        /// Length by the index.
        described: u64,
        /// Length of the pack.
        length: u64,
    },
    /// The bytes of a pack do not have its id.
    #[error("pack {id} is damaged: its bytes have the hash {actual}")]
    PackHash {
        /// The pack.
        id: PackId,
        /// The id that the bytes have.
        actual: PackId,
    },
    /// A record number beyond the last one.
    #[error("record {record} does not exist: the pack has {count}")]
    NoSuchRecord {
        /// The number.
        record: usize,
        /// How many there are.
        count: usize,
    },
    /// A record was given with another length than the index names.
    #[error("record {record} has {actual} stored bytes where {expected} are declared")]
    RecordLength {
        /// The number.
        record: usize,
        /// Length by the index.
        expected: usize,
        /// Length given.
        actual: usize,
    },
    /// A record does not decode.
    #[error("record {record} of the pack is damaged")]
    Record {
        /// The number.
        record: usize,
        /// How it fails.
        source: Box<ContentError>,
    },
    /// A chunk number beyond the last one.
    #[error("chunk {position} does not exist: the record has {count}")]
    NoSuchChunk {
        /// The number.
        position: usize,
        /// How many there are.
        count: usize,
    },
    /// The bytes of a chunk do not have its id.
    #[error("chunk {id} is damaged: its bytes have the id {actual}")]
    ChunkHash {
        /// The chunk.
        id: ChunkId,
        /// The id that the bytes have.
        actual: ChunkId,
    },
    /// A chunk that should be a list of chunks was given with another length than its reference names.
    #[error("chunk list {id} has {actual} bytes where {expected} are declared")]
    ListLength {
        /// The list.
        id: ChunkId,
        /// Length by the reference.
        expected: usize,
        /// Length given.
        actual: usize,
    },
    /// A chunk that should be a list of chunks is not one.
    #[error("chunk list {id} is invalid")]
    List {
        /// The list.
        id: ChunkId,
        /// Where and why.
        source: DecodeError,
    },
    /// The chunks of a content do not add up to its size; `actual` stops counting past `expected`.
    #[error("the chunks of a file of {expected} bytes have {actual} bytes")]
    ContentSize {
        /// Size by the content.
        expected: u64,
        /// What the chunks add up to.
        actual: u64,
    },
    /// A file has more chunks than fit the levels of lists, or than a list in memory may hold.
    #[error("a file has more than {max} chunks")]
    TooManyChunks {
        /// The limit.
        max: u64,
    },
    /// A folder that is more than one archive holds.
    #[error("more than {max} files and folders are in it, or one lies too deep")]
    TooMuchToArchive {
        /// How many an archive holds.
        max: usize,
    },
    /// This build cannot seal.
    #[error("this build cannot read sealed workspaces")]
    UnsupportedSeal,
    /// Neither passphrase nor recovery key, or not those of this workspace, or the key object was changed: which of
    /// these it is, nobody is told.
    #[error("the passphrase or key does not open this workspace")]
    WrongKey,
    /// A lock is cheaper to break than any that this program makes, or dearer to open.
    #[error(
        "a lock of the workspace has the cost {} KiB, {} passes, {} lanes, which is not allowed",
        .cost.memory, .cost.passes, .cost.lanes
    )]
    KeyCost {
        /// The cost.
        cost: KeyCost,
    },
    /// Kept keys cannot be read.
    #[error("the keys of the workspace cannot be read")]
    KeyObject {
        /// Where and why.
        source: DecodeError,
    },
    /// The workspace is sealed, and this device does not have its keys.
    #[error("this device does not have the keys of the workspace")]
    NoKeys,
    /// Something was sealed with a key that this device does not have yet.
    #[error("key {epoch} of the workspace is not on this device yet")]
    UnknownEpoch {
        /// The number of the key.
        epoch: u32,
    },
    /// A workspace had as many keys as it can have.
    #[error("a workspace has {max} keys at most")]
    TooManyEpochs {
        /// The limit.
        max: usize,
    },
    /// The public key of somebody is none.
    #[error("the public key is none that anything can be sealed to")]
    InvalidIdentity,
    /// Somebody cannot be a member as they are.
    #[error("'{name}' cannot be a member: the name is too long, or the identity is there already")]
    InvalidMember {
        /// The name.
        name: String,
    },
    /// A sealed workspace had as many members as it can have.
    #[error("an encrypted workspace has {max} members at most")]
    TooManyMembers {
        /// The limit.
        max: usize,
    },
    /// Something is plain that must be sealed.
    #[error("the {what} is not sealed")]
    NotSealed {
        /// What.
        what: &'static str,
    },
    /// Something is sealed in a workspace that is not.
    #[error("the {what} is sealed, and the workspace is not")]
    IsSealed {
        /// What.
        what: &'static str,
    },
    /// Something sealed is not what a member has sealed.
    #[error("the {what} is not what was sealed")]
    Tampered {
        /// What.
        what: &'static str,
    },
    /// An entry does not follow the one before it: the log has forgotten or changed something, or lies.
    #[error("entry {seq} of the log does not continue the one before it")]
    NotNext {
        /// The entry.
        seq: u64,
    },
    /// The device that made an entry had seen another history.
    #[error("the device that made entry {seq} had seen another history than this one")]
    Forked {
        /// The entry.
        seq: u64,
    },
    /// A chunk is in no pack that the log names.
    #[error("chunk {id} is in no pack")]
    ChunkMissing {
        /// The chunk.
        id: ChunkId,
    },
    /// Something is not, or is shorter than, the pack that it is taken for.
    #[error("pack {id} is not there as a whole")]
    PackMissing {
        /// The pack.
        id: PackId,
    },
    /// A content has more levels of lists than allowed.
    #[error("a file has {depth} levels of chunk lists where {max} are allowed")]
    TooDeep {
        /// Its levels.
        depth: u8,
        /// The limit.
        max: u8,
    },
}

impl ContentError {
    /// Tells whether the same call may succeed later: only a failed read may.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Read { .. })
    }

    /// Tells whether stored data is not what was once stored, so that another copy should be asked for.
    pub fn is_damage(&self) -> bool {
        !matches!(
            self,
            Self::Read { .. }
                | Self::InvalidChunkSize { .. }
                | Self::UnknownChunker { .. }
                | Self::UnsupportedTransform { .. }
                | Self::Encode { .. }
                | Self::NeedsBases
                | Self::NewerPack { .. }
                | Self::NoSuchRecord { .. }
                | Self::NoSuchChunk { .. }
                | Self::TooManyChunks { .. }
                | Self::TooMuchToArchive { .. }
                | Self::PackTooLong { .. }
                | Self::UnsupportedSeal
                | Self::WrongKey
                | Self::NoKeys
                | Self::UnknownEpoch { .. }
                | Self::TooManyEpochs { .. }
                | Self::InvalidIdentity
                | Self::InvalidMember { .. }
                | Self::TooManyMembers { .. }
                | Self::NotNext { .. }
                | Self::Forked { .. }
        )
    }
}
