//! What a cleanup removes: the entry behind which packs and old versions are gone.
//!
//! *Participants*: the device that cleans up, and every device that proposes something meanwhile. *Goals*: a pack that somebody
//! may still need is never removed, without clocks, locks or acknowledgements. *Non-goals*: which versions are old
//! ([`crate::version_policy`]). *Invariants*: a fence is accepted only directly behind the last entry that its author has folded,
//! so nothing was missed; a commit whose author has not folded the last fence counts for nothing, so nothing that rests on
//! condemned packs comes behind it; a condemned pack id never comes back, because packs carry the number of the last fence
//! that their writer knew, or random bytes.
//!
//! The rule in words, and why it is safe: `docs/design/cleanup.md`.

use std::collections::HashSet;
use std::convert::Infallible;

use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message, decode_message};
use crate::commit::Head;
use crate::decide::{Versions, decide};
use crate::entry::Entry;
use crate::fold::Opener;
use crate::ids::{NodeId, PackId};

/// How many packs one fence condemns at most.
pub const FENCE_PACKS_MAX: usize = 64 * 1024;

/// How many versions one fence drops at most.
pub const FENCE_VERSIONS_MAX: usize = 64 * 1024;

/// The payload of [`NodeId::FENCE`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fence {
    /// Packs that may be removed from every store, in the order of their ids.
    pub condemned: Vec<PackId>,
    /// Versions whose contents are not kept any more, in the order of their nodes.
    pub dropped: Vec<DroppedVersions>,
}

/// Versions of a node whose contents are not kept any more. What they were called and when they came to be stays in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedVersions {
    /// The node.
    pub node: NodeId,
    /// Its versions, ascending.
    pub versions: Vec<u64>,
}

impl Fence {
    /// Returns how many versions it drops.
    pub fn dropped_count(&self) -> usize {
        self.dropped.iter().map(|node| node.versions.len()).sum()
    }
}

impl Encode for DroppedVersions {
    fn encode(&self, encoder: &mut Encoder) {
        self.node.encode(encoder);
        encoder.unsigned(self.versions.len() as u64);
        for version in &self.versions {
            encoder.unsigned(*version);
        }
    }
}

impl Decode for DroppedVersions {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let node = NodeId::decode(decoder)?;
        let count = decoder.unsigned_max(FENCE_VERSIONS_MAX as u64)?;
        let mut versions: Vec<u64> = Vec::new();
        for _ in 0..count {
            versions.push(decoder.unsigned()?);
        }
        if versions.is_empty() || !versions.is_sorted_by(|one, other| one < other) {
            return Err(decoder.invalid("dropped versions", "none, or not in order"));
        }
        Ok(Self { node, versions })
    }
}

impl Encode for Fence {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.list(&self.condemned);
        encoder.list(&self.dropped);
    }
}

impl Decode for Fence {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fence = Self { condemned: decoder.list()?, dropped: decoder.list()? };
        if fence.condemned.len() > FENCE_PACKS_MAX || fence.dropped_count() > FENCE_VERSIONS_MAX {
            return Err(decoder.invalid("fence", "it removes too much at once"));
        }
        let is_sorted = fence.condemned.is_sorted_by(|one, other| one < other)
            && fence.dropped.is_sorted_by(|one, other| one.node < other.node);
        if !is_sorted {
            return Err(decoder.invalid("fence", "its parts are not in order"));
        }
        Ok(fence)
    }
}

impl Message for Fence {
    const MAGIC: u8 = b'F';
    const KIND: &'static str = "fence";
}

/// Which packs a log allows to be removed, entry by entry: for whoever keeps packs, and must not remove one because somebody
/// says so.
#[derive(Debug, Clone, Default)]
pub struct Condemned {
    fence: u64,
    packs: HashSet<PackId>,
}

impl Condemned {
    /// Takes in the next entry.
    pub fn note(&mut self, entry: &Entry, opener: &dyn Opener) {
        let commit = &entry.commit;
        if commit.seen.seq < self.fence {
            return;
        }
        let previous = Head { seq: entry.seq - 1, hash: entry.previous };
        let Ok(outcomes) = decide(self, &previous, commit);
        // A fence is for the owner, so it is no matter who else may write.
        let is_void = opener.check(commit, None).is_err();
        for (number, (change, outcome)) in commit.changes.iter().zip(outcomes).enumerate() {
            if change.node != NodeId::FENCE || !outcome.is_accepted() {
                continue;
            }
            self.fence = entry.seq;
            let payload = opener.open(commit, number).ok().flatten().filter(|_| !is_void);
            let fence = payload.and_then(|payload| decode_message::<Fence>(&payload).ok());
            self.packs.extend(fence.into_iter().flat_map(|fence| fence.condemned));
        }
        // Names never come back. If one did, it would be a pack that somebody needs.
        for pack in &commit.packs {
            self.packs.remove(&pack.id);
        }
    }

    /// Returns the number of the last fence; 0 where there is none.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Tells whether a pack may be removed.
    pub fn contains(&self, pack: &PackId) -> bool {
        self.packs.contains(pack)
    }
}

/// All other nodes are of no interest here.
impl Versions for Condemned {
    type Error = Infallible;

    fn version(&self, node: &NodeId) -> Result<u64, Infallible> {
        Ok(if *node == NodeId::FENCE { self.fence } else { 0 })
    }
}

#[cfg(test)]
mod race;
#[cfg(test)]
mod tests;
