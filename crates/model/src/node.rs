//! What a node is at one version: its place, its kind, its content.

use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message};
use crate::content::Content;
use crate::ids::NodeId;
use crate::path::Name;

/// The longest target of a symbolic link, in bytes.
pub const LINK_TARGET_LENGTH_MAX: usize = 4095;

/// The bits of a mode that are kept: read, write and execute for user, group and others. Never setuid.
pub const MODE_MASK: u32 = 0o777;

/// A point in time as a file system or a clock gives it: any value is allowed and none ever orders anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    /// Seconds since 1970-01-01 00:00 UTC, negative before.
    pub seconds: i64,
    /// Nanoseconds after the second, 0 to 999,999,999.
    pub nanoseconds: u32,
}

/// Which node a conflicting node conflicts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConflictOrigin {
    /// The node that kept the name or the content.
    pub node: NodeId,
    /// The version of that node from which the conflicting content was made; 0 where they have only a name in common.
    pub base: u64,
}

/// The kinds of nodes. The kind of a node never changes; another kind under the same name is another node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A directory.
    Directory,
    /// A regular file.
    File(Content),
    /// A symbolic link; the target is text and is never followed.
    Symlink(Vec<u8>),
}

impl NodeKind {
    /// Tells whether both are directories, both files, or both links.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Tells whether this is a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self, Self::Directory)
    }
}

/// One version of a node, as the payload of a change carries it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeRecord {
    /// The directory it lies in.
    pub parent: NodeId,
    /// Its name there.
    pub name: Name,
    /// Permission bits, within [`MODE_MASK`]; 0 for symbolic links, which have none.
    pub mode: u32,
    /// When the content was modified, by the clock of the device that did; the default for directories, whose
    /// times are not kept.
    pub modified: Timestamp,
    /// The kind, with the content of a file.
    pub kind: NodeKind,
    /// Set while the node is one side of an undecided conflict.
    pub conflict: Option<ConflictOrigin>,
}

impl NodeRecord {
    /// Tells whether content, mode and times are equal, whatever the place and the conflict mark.
    pub fn is_same_matter(&self, other: &Self) -> bool {
        self.kind == other.kind && self.mode == other.mode && self.modified == other.modified
    }

    /// Tells whether parent and name are equal.
    pub fn is_same_place(&self, other: &Self) -> bool {
        self.parent == other.parent && self.name == other.name
    }
}

impl Encode for Timestamp {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.signed(self.seconds);
        encoder.unsigned(u64::from(self.nanoseconds));
    }
}

impl Decode for Timestamp {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let seconds = decoder.signed()?;
        let nanoseconds = decoder.unsigned_max(999_999_999)? as u32;
        Ok(Self { seconds, nanoseconds })
    }
}

impl Encode for ConflictOrigin {
    fn encode(&self, encoder: &mut Encoder) {
        self.node.encode(encoder);
        encoder.unsigned(self.base);
    }
}

impl Decode for ConflictOrigin {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { node: NodeId::decode(decoder)?, base: decoder.unsigned()? })
    }
}

impl Encode for NodeRecord {
    fn encode(&self, encoder: &mut Encoder) {
        assert!(self.mode & !MODE_MASK == 0, "a mode has permission bits only");
        self.parent.encode(encoder);
        self.name.encode(encoder);
        encoder.unsigned(u64::from(self.mode));
        self.modified.encode(encoder);
        encoder.option(self.conflict.as_ref());
        match &self.kind {
            NodeKind::Directory => encoder.unsigned(0),
            NodeKind::File(content) => {
                encoder.unsigned(1);
                content.encode(encoder);
            }
            NodeKind::Symlink(target) => {
                encoder.unsigned(2);
                encoder.byte_string(target);
            }
        }
    }
}

impl Decode for NodeRecord {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let parent = NodeId::decode(decoder)?;
        let name = Name::decode(decoder)?;
        let mode = decoder.unsigned_max(u64::from(MODE_MASK))? as u32;
        let modified = Timestamp::decode(decoder)?;
        let conflict = decoder.option()?;
        let kind = match decoder.unsigned_max(2)? {
            0 => NodeKind::Directory,
            1 => NodeKind::File(Content::decode(decoder)?),
            _ => NodeKind::Symlink(decode_target(decoder)?),
        };
        Ok(Self { parent, name, mode, modified, kind, conflict })
    }
}

fn decode_target(decoder: &mut Decoder<'_>) -> Result<Vec<u8>, DecodeError> {
    let target = decoder.byte_string(LINK_TARGET_LENGTH_MAX)?;
    if target.is_empty() || target.contains(&0) {
        return Err(decoder.invalid("link target", "empty, or with a zero byte"));
    }
    Ok(target.to_vec())
}

impl Message for NodeRecord {
    const MAGIC: u8 = b'N';
    const KIND: &'static str = "node record";
}
