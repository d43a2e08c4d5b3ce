//! What guards packs: nothing in a plain workspace, and in a sealed one the seals of `docs/design/keys.md`, "Packs".

use std::fmt;
use std::sync::Arc;

use super::Sealer;
use crate::cipher::{BoxKey, BoxNonce, TAG_LENGTH};
use crate::error::ContentError;

/// What is said with every box of a pack, before what is particular to it.
const ASSOCIATED: &[u8] = b"syncline sealed v1: pack\0";

/// What makes the salt of a pack.
const SALT_PURPOSE: &[u8] = b"pack\0";

/// What guards the packs of a workspace. Only [`super::WorkspaceKeys`] makes one, so that a sealed workspace has no other.
#[derive(Debug, Clone)]
pub struct PackGuard {
    sealer: Option<Arc<Sealer>>,
    /// The last fence that the writer knows.
    fence: u64,
}

/// The boxes of a pack, in the order of their kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackBox {
    /// A record: its number, its stored and plain length, the number of its transform.
    Record { number: u32, stored_length: u32, plain_length: u32, transform: u8 },
    /// What makes the pack longer: how many bytes.
    Padding(u32),
    /// The index: how many bytes.
    Index(u32),
    /// The length of the index.
    Trailer,
}

impl PackBox {
    fn nonce(self) -> BoxNonce {
        match self {
            Self::Record { number, .. } => BoxNonce { kind: 0, number },
            Self::Padding(_) => BoxNonce { kind: 1, number: 0 },
            Self::Index(_) => BoxNonce { kind: 2, number: 0 },
            Self::Trailer => BoxNonce { kind: 3, number: 0 },
        }
    }

    /// Returns what is particular to the box: kind, number, transform and lengths, little-endian.
    fn description(self) -> [u8; 14] {
        let nonce = self.nonce();
        let (transform, stored, plain) = match self {
            Self::Record { stored_length, plain_length, transform, .. } => {
                (transform, stored_length, plain_length)
            }
            Self::Padding(length) | Self::Index(length) => (0, length, length),
            Self::Trailer => (0, 4, 4),
        };
        let mut bytes = [0; 14];
        bytes[0] = nonce.kind;
        bytes[1] = transform;
        bytes[2..6].copy_from_slice(&nonce.number.to_le_bytes());
        bytes[6..10].copy_from_slice(&stored.to_le_bytes());
        bytes[10..].copy_from_slice(&plain.to_le_bytes());
        bytes
    }
}

/// What stands in the clear in a sealed pack, and makes its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackSeal {
    pub(crate) salt: [u8; 32],
    pub(crate) epoch: u32,
}

/// What seals and opens the boxes of one pack.
#[derive(Clone)]
pub(crate) struct PackBoxes {
    seal: PackSeal,
    associated: Arc<[u8]>,
    key: Arc<BoxKey>,
}

impl PackGuard {
    pub(super) fn of(sealer: Option<Arc<Sealer>>) -> Self {
        Self { sealer, fence: 0 }
    }

    /// Guards packs that are written behind a fence: none of them has the name of one that was written before it.
    #[must_use]
    pub fn behind(self, fence: u64) -> Self {
        Self { fence, ..self }
    }

    /// Returns the number that makes the names of plain packs new: that of the last fence, 0 before the first. The names of
    /// sealed packs never repeat themselves.
    pub(crate) fn fence(&self) -> u64 {
        if self.is_sealed() { 0 } else { self.fence }
    }

    /// A guard that guards nothing, for tests and measurements of this room.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { sealer: None, fence: 0 }
    }

    /// Tells whether packs are sealed.
    pub fn is_sealed(&self) -> bool {
        self.sealer.is_some()
    }

    /// Returns how many bytes a box has more than what is in it.
    pub(crate) fn overhead(&self) -> usize {
        if self.is_sealed() { TAG_LENGTH } else { 0 }
    }

    /// Begins to seal a pack with this index; nothing in a plain workspace.
    pub(crate) fn begin(&self, index: &[u8]) -> Result<Option<PackBoxes>, ContentError> {
        let Some(sealer) = &self.sealer else { return Ok(None) };
        let salt = sealer.salt(SALT_PURPOSE, &[index]);
        let seal = PackSeal { salt, epoch: sealer.newest().0 };
        PackBoxes::new(sealer, seal).map(Some)
    }

    /// Returns what opens a pack that is sealed like this.
    pub(crate) fn open(&self, seal: PackSeal) -> Result<PackBoxes, ContentError> {
        let sealer = self.sealer.as_ref().ok_or(ContentError::IsSealed { what: "pack" })?;
        PackBoxes::new(sealer, seal)
    }
}

impl PackBoxes {
    fn new(sealer: &Sealer, seal: PackSeal) -> Result<Self, ContentError> {
        let workspace = sealer.workspace.as_bytes();
        let key = sealer.epoch(seal.epoch)?.packs.derive_for(&[workspace, &seal.salt]);
        let epoch = seal.epoch.to_le_bytes();
        let associated = [ASSOCIATED, &workspace[..], &seal.salt, &epoch].concat();
        Ok(Self { seal, associated: associated.into(), key: Arc::new(BoxKey::new(&key)?) })
    }

    pub(crate) fn seal(&self) -> PackSeal {
        self.seal
    }

    /// Seals what is in a box in its place and returns the tag that belongs behind it.
    pub(crate) fn close(
        &self,
        pack_box: PackBox,
        bytes: &mut [u8],
    ) -> Result<[u8; TAG_LENGTH], ContentError> {
        self.key.seal(pack_box.nonce(), &self.associated(pack_box), bytes)
    }

    /// Replaces what is in `plain` by what is in a box; tells whether the box is what was sealed.
    pub(crate) fn open(&self, pack_box: PackBox, sealed: &[u8], plain: &mut Vec<u8>) -> bool {
        plain.clear();
        plain.extend_from_slice(sealed);
        let opened = self.key.open(pack_box.nonce(), &self.associated(pack_box), plain);
        let length = opened.map(<[u8]>::len);
        plain.truncate(length.unwrap_or(0));
        length.is_some()
    }

    fn associated(&self, pack_box: PackBox) -> Vec<u8> {
        [&self.associated[..], &pack_box.description()].concat()
    }
}

impl PartialEq for PackBoxes {
    fn eq(&self, other: &Self) -> bool {
        self.seal == other.seal && self.associated == other.associated
    }
}

impl Eq for PackBoxes {}

impl fmt::Debug for PackBoxes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PackBoxes(secret)")
    }
}
