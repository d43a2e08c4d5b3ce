//! Identifiers: fixed-size byte strings, each with a type of its own.
//!
//! An id is never built from something a user typed, and never reused. Random ids enter as bytes, because this
//! room owns no randomness.

use std::fmt;
use std::str::FromStr;

use crate::hex;

/// Text that is not the hexadecimal form of an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a {kind}: {length} hexadecimal digits are expected")]
pub struct InvalidId {
    /// Which id was expected, for example `node id`.
    pub kind: &'static str,
    /// How many hexadecimal digits it has.
    pub length: usize,
    /// What was given.
    pub text: String,
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $length:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $length]);

        impl $name {
            /// Length in bytes.
            pub const LENGTH: usize = $length;

            /// Wraps the bytes of an id.
            pub const fn from_bytes(bytes: [u8; $length]) -> Self {
                Self(bytes)
            }

            /// Returns the bytes of the id.
            pub const fn as_bytes(&self) -> &[u8; $length] {
                &self.0
            }

            /// Returns the first eight hexadecimal digits, enough to tell ids apart on a screen.
            pub fn short(&self) -> String {
                self.to_string()[..8].to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = [0; $length * 2];
                hex::encode_into(&self.0, &mut text);
                formatter.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}({self})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let invalid = || InvalidId { kind: $kind, length: $length * 2, text: text.to_owned() };
                let mut bytes = [0; $length];
                hex::decode_into(text.as_bytes(), &mut bytes).ok_or_else(invalid)?;
                Ok(Self(bytes))
            }
        }
    };
}

id_type!(
    /// A workspace: the hash of its genesis, so that nobody can make two with one id.
    WorkspaceId, 16, "workspace id"
);
id_type!(
    /// A file, directory or symbolic link; a rename or a move keeps it.
    NodeId, 16, "node id"
);
id_type!(
    /// A store of a pool: random, so that a store may change its name and its address.
    StoreId, 16, "store id"
);
id_type!(
    /// One installation of Syncline, in one incarnation (see `docs/design/sync.md`).
    DeviceId, 16, "device id"
);
id_type!(
    /// One proposal of a commit; repeating it has no further effect.
    OpId, 16, "operation id"
);
id_type!(
    /// A chunk: the keyed BLAKE3-256 of its plain bytes.
    ChunkId, 32, "chunk id"
);
id_type!(
    /// A pack: the BLAKE3-256 of its stored bytes.
    PackId, 32, "pack id"
);
id_type!(
    /// A log entry: the BLAKE3-256 of its encoding, which contains the hash of the entry before it.
    EntryHash, 32, "entry hash"
);
id_type!(
    /// A page of a checkpoint: the BLAKE3-256 of its encoding.
    PageId, 32, "page id"
);

impl NodeId {
    /// The root directory of every workspace: it has no name, no parent, and is never a change's subject.
    pub const ROOT: Self = Self([0; 16]);

    /// Where the stores of a serverless workspace are written down (see [`crate::pool`]): a node beside the tree,
    /// so that its changes are ordered and decided like all others.
    pub const POOL: Self = Self(*b"syncline/pool/v1");

    /// Where it is written down whose turn it is to remove pieces from stores (see [`crate::turn`]).
    pub const TURN: Self = Self(*b"syncline/turn/v1");

    /// Where it is written down which old versions are kept (see [`crate::version_policy`]).
    pub const VERSION_POLICY: Self = Self(*b"syncline/keep/v1");

    /// Where a cleanup says what it removes (see [`crate::fence`]). The version of this node is the sequence number of
    /// the last fence.
    pub const FENCE: Self = Self(*b"syncline/gone/v1");

    /// Where the owner of a sealed workspace has written down who else may write in it (`docs/design/keys.md`, "Members").
    pub const MEMBERS: Self = Self(*b"syncline/team/v1");

    /// Where it is written down which folders are workspaces of their own (see [`crate::mounts`]).
    pub const MOUNTS: Self = Self(*b"syncline/mnts/v1");

    /// Tells whether the node holds settings of the workspace, and nothing of a folder.
    pub fn is_settings(&self) -> bool {
        [Self::POOL, Self::TURN, Self::MEMBERS, Self::MOUNTS].contains(self) || self.is_of_cleanup()
    }

    /// Tells whether the node means something only to programs that know cleanup (`docs/design/cleanup.md`).
    pub fn is_of_cleanup(&self) -> bool {
        *self == Self::VERSION_POLICY || *self == Self::FENCE
    }
}

impl EntryHash {
    /// What the first entry names as its predecessor.
    pub const NONE: Self = Self([0; 32]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_returns_the_same_id() {
        let id = NodeId::from_bytes(*b"0123456789abcdef");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.short(), "30313233");
    }

    #[test]
    fn wrong_length_case_and_digits_are_refused() {
        for text in
            ["", "00", "zz313233343536373839616263646566", "3031323334353637383961626364656F"]
        {
            assert!(text.parse::<NodeId>().is_err(), "{text}");
        }
    }
}
