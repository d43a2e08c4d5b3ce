//! The log: entries in one order, each naming the hash of the one before, from the genesis on.
//!
//! The outcomes of a commit are a function of the log before it (see [`crate::decide`]), so they are neither
//! stored nor hashed: whoever folds the log computes them, and a coordinator cannot lie about them.

use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message, encode_message};
use crate::commit::{Commit, Head, decode_text};
use crate::ids::{EntryHash, WorkspaceId};
use crate::node::Timestamp;

/// The longest workspace name, in bytes.
pub const WORKSPACE_NAME_LENGTH_MAX: usize = 128;

/// Who may read a workspace besides its members. Fixed for its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Servers and stores may read it.
    Plain,
}

/// The unchanging facts of a workspace; its hash is the workspace's id and starts the log's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genesis {
    /// Name for people.
    pub name: String,
    /// Who may read.
    pub mode: Mode,
    /// When it was made, by the clock of the device that made it.
    pub created: Timestamp,
    /// Random bytes from which chunk names and cuts are keyed, so that chunks of two workspaces never compare.
    /// In a plain workspace they are no secret.
    pub content_key: [u8; 32],
}

impl Genesis {
    /// Returns the hash that the first entry names as its predecessor.
    pub fn hash(&self) -> EntryHash {
        hash_of(self)
    }

    /// Returns the id of the workspace: the first half of the hash.
    pub fn workspace(&self) -> WorkspaceId {
        let hash = self.hash();
        let (half, _) = hash.as_bytes().split_at(WorkspaceId::LENGTH);
        WorkspaceId::from_bytes(half.try_into().expect("a hash is longer than an id"))
    }

    /// Returns the head of the empty log.
    pub fn head(&self) -> Head {
        Head { seq: 0, hash: self.hash() }
    }
}

/// A commit in its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// 1, 2, 3 ... without gaps.
    pub seq: u64,
    /// Hash of the entry before, or of the genesis.
    pub previous: EntryHash,
    /// The commit.
    pub commit: Commit,
}

impl Entry {
    /// Returns the hash that the next entry names.
    pub fn hash(&self) -> EntryHash {
        hash_of(self)
    }

    /// Returns the head of a log that ends here.
    pub fn head(&self) -> Head {
        Head { seq: self.seq, hash: self.hash() }
    }

    /// Tells whether the entry directly follows `head`.
    pub fn follows(&self, head: &Head) -> bool {
        head.seq.checked_add(1) == Some(self.seq) && self.previous == head.hash
    }
}

fn hash_of(message: &impl Message) -> EntryHash {
    EntryHash::from_bytes(*blake3::hash(&encode_message(message)).as_bytes())
}

impl Encode for Genesis {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.byte_string(self.name.as_bytes());
        match self.mode {
            Mode::Plain => encoder.unsigned(0),
        }
        self.created.encode(encoder);
        encoder.raw(&self.content_key);
    }
}

impl Decode for Genesis {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let name = decode_text(decoder, WORKSPACE_NAME_LENGTH_MAX)?;
        let mode = match decoder.unsigned()? {
            0 => Mode::Plain,
            other => return Err(decoder.invalid("mode", format!("{other} is not known here"))),
        };
        Ok(Self { name, mode, created: Timestamp::decode(decoder)?, content_key: decoder.array()? })
    }
}

impl Message for Genesis {
    const MAGIC: u8 = b'G';
    const KIND: &'static str = "genesis";
}

impl Encode for Entry {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(self.seq);
        self.previous.encode(encoder);
        self.commit.encode(encoder);
    }
}

impl Decode for Entry {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let seq = decoder.unsigned()?;
        if seq == 0 {
            return Err(decoder.invalid("sequence number", "zero"));
        }
        Ok(Self { seq, previous: EntryHash::decode(decoder)?, commit: Commit::decode(decoder)? })
    }
}

impl Message for Entry {
    const MAGIC: u8 = b'E';
    const KIND: &'static str = "log entry";
}
