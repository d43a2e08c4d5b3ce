//! The log: entries in one order, each naming the hash of the one before, from the genesis on.
//!
//! The outcomes of a commit are a function of the log before it (see [`crate::decide`]), so they are neither
//! stored nor hashed: whoever folds the log computes them, and a coordinator cannot lie about them.

use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message, encode_message};
use crate::commit::{Commit, Head, SEALED_HEADER_LENGTH_MAX, decode_text};
use crate::ids::{EntryHash, WorkspaceId};
use crate::node::Timestamp;

/// The longest workspace name, in bytes.
pub const WORKSPACE_NAME_LENGTH_MAX: usize = 128;

/// Refuses names of workspaces that no screen or address shows as they are, and those that could be an id; says why.
///
/// # Errors
/// What is wrong with it.
pub fn check_workspace_name(name: &str) -> Result<(), &'static str> {
    if name.trim().is_empty() {
        return Err("it is empty");
    }
    if name.len() > WORKSPACE_NAME_LENGTH_MAX {
        return Err("it is too long");
    }
    if name.chars().any(|c| c.is_control() || c == '/') {
        return Err("a slash or a control character is in it");
    }
    if name.parse::<WorkspaceId>().is_ok() {
        return Err("it looks like a workspace id");
    }
    Ok(())
}

/// Who may read a workspace besides its members. Fixed for its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Servers and stores may read it.
    Plain,
    /// Nobody but its members can read it, names included.
    Sealed(SealedGenesis),
}

impl Mode {
    /// Returns what a genesis says of a sealed workspace; nothing for a plain one.
    pub fn sealed(&self) -> Option<&SealedGenesis> {
        match self {
            Self::Plain => None,
            Self::Sealed(sealed) => Some(sealed),
        }
    }
}

/// What the genesis of a sealed workspace says (`docs/design/keys.md`, "Genesis").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedGenesis {
    /// The public key of the account that signs the workspace's devices.
    pub account: [u8; 32],
    /// Random bytes, so that no two workspaces are one.
    pub salt: [u8; 32],
    /// The sealed name of the workspace and the time at which it was made.
    pub header: Vec<u8>,
}

/// The unchanging facts of a workspace; its hash is the workspace's id and starts the log's chain.
#[derive(Debug, Clone)]
pub struct Genesis {
    /// Name for people. The genesis of a sealed workspace does not hold it: whoever has opened the header enters it here.
    pub name: String,
    /// Who may read.
    pub mode: Mode,
    /// When it was made, by the clock of the device that made it; as the name in a sealed workspace.
    pub created: Timestamp,
    /// Random bytes from which chunk names and cuts are keyed, so that chunks of two workspaces never compare.
    /// In a plain workspace they are no secret. In a sealed one they are a key, never stand here, and are zero.
    pub content_key: [u8; 32],
}

/// Two are equal where their encodings are, whether or not somebody has entered the name of a sealed workspace.
impl PartialEq for Genesis {
    fn eq(&self, other: &Self) -> bool {
        encode_message(self) == encode_message(other)
    }
}

impl Eq for Genesis {}

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
    EntryHash::of_encoded(&encode_message(message))
}

impl EntryHash {
    /// Returns the hash of an entry or a genesis that [`encode_message`] has encoded.
    pub fn of_encoded(message: &[u8]) -> Self {
        Self::from_bytes(*blake3::hash(message).as_bytes())
    }
}

impl Encode for Genesis {
    fn encode(&self, encoder: &mut Encoder) {
        match &self.mode {
            Mode::Plain => {
                encoder.byte_string(self.name.as_bytes());
                encoder.unsigned(0);
                self.created.encode(encoder);
                encoder.raw(&self.content_key);
            }
            Mode::Sealed(sealed) => {
                encoder.unsigned(1);
                encoder.raw(&sealed.account);
                encoder.raw(&sealed.salt);
                encoder.byte_string(&sealed.header);
            }
        }
    }
}

impl Decode for Genesis {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        if decoder.is_sealed() {
            return decode_sealed(decoder);
        }
        let name = decode_text(decoder, WORKSPACE_NAME_LENGTH_MAX)?;
        let mode = match decoder.unsigned()? {
            0 => Mode::Plain,
            other => return Err(decoder.invalid("mode", format!("{other} is not known here"))),
        };
        Ok(Self { name, mode, created: Timestamp::decode(decoder)?, content_key: decoder.array()? })
    }
}

/// Reads the genesis of a sealed workspace; what only members may know stays empty.
fn decode_sealed(decoder: &mut Decoder<'_>) -> Result<Genesis, DecodeError> {
    if decoder.unsigned()? != 1 {
        return Err(decoder.invalid("mode", "it is not the sealed one"));
    }
    let sealed = SealedGenesis {
        account: decoder.array()?,
        salt: decoder.array()?,
        header: decoder.byte_string(SEALED_HEADER_LENGTH_MAX)?.to_vec(),
    };
    Ok(Genesis {
        name: String::new(),
        mode: Mode::Sealed(sealed),
        created: Timestamp::default(),
        content_key: [0; 32],
    })
}

impl Message for Genesis {
    const MAGIC: u8 = b'G';
    const KIND: &'static str = "genesis";

    fn is_sealed(&self) -> bool {
        self.mode.sealed().is_some()
    }
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

    fn is_sealed(&self) -> bool {
        self.commit.is_sealed()
    }

    fn is_of_cleanup(&self) -> bool {
        self.commit.is_of_cleanup()
    }

    fn is_of_mounts(&self) -> bool {
        self.commit.is_of_mounts()
    }

    fn is_of_deltas(&self) -> bool {
        self.commit.is_of_deltas()
    }
}
