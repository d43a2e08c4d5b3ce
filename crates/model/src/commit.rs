//! What a device proposes: changes of nodes, together with the packs that hold their new chunks.

use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message};
use crate::ids::{DeviceId, EntryHash, NodeId, OpId, PackId};
use crate::node::Timestamp;

/// How many changes a commit has at most.
pub const COMMIT_CHANGES_MAX: usize = 16 * 1024;

/// How many bytes an encoded commit has at most.
pub const COMMIT_LENGTH_MAX: usize = 16 * 1024 * 1024;

/// How many bytes of packs may ride inside a commit, so that a small edit costs one round trip.
pub const INLINE_PACKS_LENGTH_MAX: usize = 64 * 1024;

/// The longest device name, in bytes.
pub const DEVICE_NAME_LENGTH_MAX: usize = 64;

/// What a change does to its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Sets the next version. The payload is opaque to the coordinator; in a plain workspace it is an encoded
    /// [`crate::node::NodeRecord`].
    Put(Vec<u8>),
    /// Deletes the node; this is a version, too.
    Delete,
}

/// A proposed next version of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The node.
    pub node: NodeId,
    /// The version that the device changed; 0 for a node that is new.
    pub base: u64,
    /// What to do.
    pub action: Action,
}

/// A pack that a commit adds to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackRef {
    /// The pack.
    pub id: PackId,
    /// Its length in bytes.
    pub length: u64,
}

/// The newest entry of a log that somebody has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Sequence number, 0 before the first entry.
    pub seq: u64,
    /// Hash of that entry; of the genesis before the first entry.
    pub hash: EntryHash,
}

/// What makes a commit of a sealed workspace: who vouches for it, and what only members may read. The bytes mean
/// something to whoever has the keys (`docs/design/keys.md`, "Commits"); to everybody else they are opaque.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitSeal {
    /// The number of the key that sealed it.
    pub epoch: u32,
    /// What makes the key of this commit.
    pub salt: [u8; 32],
    /// The public key of the device.
    pub device_key: [u8; 32],
    /// The account's signature that the key is this device's.
    pub certificate: [u8; 64],
    /// The sealed name of the device and its clock.
    pub header: Vec<u8>,
    /// The device's signature of everything else in the commit.
    pub signature: [u8; 64],
}

/// The longest sealed header of a commit or a genesis, in bytes.
pub const SEALED_HEADER_LENGTH_MAX: usize = 1024;

/// Changes proposed together by one device. Each change is accepted or rejected for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Makes the commit idempotent.
    pub op_id: OpId,
    /// Who proposes it.
    pub device: DeviceId,
    /// How the device calls itself, for people; at most [`DEVICE_NAME_LENGTH_MAX`] bytes, and none in a sealed commit.
    pub device_name: String,
    /// The clock of the device, for people; the default in a sealed commit.
    pub time: Timestamp,
    /// The newest entry that the device had folded, as evidence against a coordinator that forgets or forks.
    pub seen: Head,
    /// The changes; a directory stands before what lies in it, a deleted one after.
    pub changes: Vec<Change>,
    /// Packs that were stored before the commit was proposed.
    pub packs: Vec<PackRef>,
    /// Small packs that travel in the commit itself, [`INLINE_PACKS_LENGTH_MAX`] bytes in all.
    pub inline_packs: Vec<Vec<u8>>,
    /// Whether any of all these packs has delta records. Who would remove what these are made from must not read the commit: see
    /// [`DELTAS_STEP`](crate::codec::DELTAS_STEP).
    pub has_deltas: bool,
    /// What makes it a commit of a sealed workspace.
    pub seal: Option<Box<CommitSeal>>,
}

impl Encode for CommitSeal {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(u64::from(self.epoch));
        encoder.raw(&self.salt);
        encoder.raw(&self.device_key);
        encoder.raw(&self.certificate);
        encoder.byte_string(&self.header);
        encoder.raw(&self.signature);
    }
}

impl Decode for CommitSeal {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            epoch: decoder.unsigned32()?,
            salt: decoder.array()?,
            device_key: decoder.array()?,
            certificate: decoder.array()?,
            header: decoder.byte_string(SEALED_HEADER_LENGTH_MAX)?.to_vec(),
            signature: decoder.array()?,
        })
    }
}

impl Encode for Change {
    fn encode(&self, encoder: &mut Encoder) {
        self.node.encode(encoder);
        encoder.unsigned(self.base);
        match &self.action {
            Action::Delete => encoder.unsigned(0),
            Action::Put(payload) => {
                encoder.unsigned(1);
                encoder.byte_string(payload);
            }
        }
    }
}

impl Decode for Change {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let node = NodeId::decode(decoder)?;
        let base = decoder.unsigned()?;
        let action = match decoder.unsigned_max(1)? {
            0 => Action::Delete,
            _ => Action::Put(decoder.byte_string(COMMIT_LENGTH_MAX)?.to_vec()),
        };
        Ok(Self { node, base, action })
    }
}

impl Encode for PackRef {
    fn encode(&self, encoder: &mut Encoder) {
        self.id.encode(encoder);
        encoder.unsigned(self.length);
    }
}

impl Decode for PackRef {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { id: PackId::decode(decoder)?, length: decoder.unsigned()? })
    }
}

impl Encode for Head {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(self.seq);
        self.hash.encode(encoder);
    }
}

impl Decode for Head {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { seq: decoder.unsigned()?, hash: EntryHash::decode(decoder)? })
    }
}

impl Encode for Commit {
    fn encode(&self, encoder: &mut Encoder) {
        self.op_id.encode(encoder);
        self.device.encode(encoder);
        encoder.byte_string(self.device_name.as_bytes());
        self.time.encode(encoder);
        self.seen.encode(encoder);
        encoder.list(&self.changes);
        encoder.list(&self.packs);
        encoder.unsigned(self.inline_packs.len() as u64);
        for pack in &self.inline_packs {
            encoder.byte_string(pack);
        }
        // A frame may carry many entries, of which each keeps its own version, and with that its hash.
        if encoder.is_of_deltas() {
            encoder.unsigned(u64::from(self.has_deltas));
        } else {
            assert!(!self.has_deltas, "a message with such a commit has a version for it");
        }
        if encoder.is_sealed() {
            encoder.option(self.seal.as_deref());
        } else {
            assert!(self.seal.is_none(), "a message with a sealed commit has the sealed version");
        }
    }
}

impl Decode for Commit {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let op_id = OpId::decode(decoder)?;
        let device = DeviceId::decode(decoder)?;
        let device_name = decode_text(decoder, DEVICE_NAME_LENGTH_MAX)?;
        let time = Timestamp::decode(decoder)?;
        let seen = Head::decode(decoder)?;
        let changes: Vec<Change> = decoder.list()?;
        if changes.len() > COMMIT_CHANGES_MAX {
            return Err(decoder.invalid("changes", "too many in one commit"));
        }
        let packs = decoder.list()?;
        let mut inline_packs = Vec::new();
        let mut length = 0;
        for _ in 0..decoder.unsigned_max(INLINE_PACKS_LENGTH_MAX as u64)? {
            inline_packs.push(decoder.byte_string(INLINE_PACKS_LENGTH_MAX - length)?.to_vec());
            length += inline_packs.last().map_or(0, Vec::len);
        }
        let has_deltas = decoder.is_of_deltas() && decoder.unsigned_max(1)? == 1;
        let seal = match decoder.is_sealed() {
            true => decoder.option::<CommitSeal>()?.map(Box::new),
            false => None,
        };
        Ok(Self {
            op_id,
            device,
            device_name,
            time,
            seen,
            changes,
            packs,
            inline_packs,
            has_deltas,
            seal,
        })
    }
}

/// Reads UTF-8 text of at most `max` bytes.
pub(crate) fn decode_text(decoder: &mut Decoder<'_>, max: usize) -> Result<String, DecodeError> {
    let bytes = decoder.byte_string(max)?;
    String::from_utf8(bytes.to_vec()).map_err(|error| decoder.invalid("text", error))
}

impl Message for Commit {
    const MAGIC: u8 = b'C';
    const KIND: &'static str = "commit";

    fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    fn is_of_cleanup(&self) -> bool {
        self.changes.iter().any(|change| change.node.is_of_cleanup())
    }

    fn is_of_mounts(&self) -> bool {
        self.changes.iter().any(|change| change.node == NodeId::MOUNTS)
    }

    fn is_of_deltas(&self) -> bool {
        self.has_deltas
    }
}
