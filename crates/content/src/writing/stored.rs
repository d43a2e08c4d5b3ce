//! Packs that were stored for a file before and stand in no commit, as where a page went away in the midst of it.
//!
//! *Participants*: the writing of a file, which names those that it uses; whoever remembers which packs were stored. *Invariants*: a pack is
//! used only where no fence and no newer keys have come since it was stored ([`PacksMark`]): a cleanup removes packs that nobody names only
//! behind a fence, and a commit from before one counts for nothing. What cannot be read of one is sent again.

use std::collections::{HashMap, VecDeque};
use std::fmt;

use model::checkpoint::PackPlace;
use model::{ChunkId, ChunkRef, NodeId, PackRef, Versions};

use crate::pack::{PackIndex, TailOutcome, tail_length_guess};
use crate::places::KnownPack;
use crate::reading::PackPart;
use crate::replay::{Packs, Replay};

/// How many indexes are asked for at once.
const AT_ONCE: usize = 16;

/// Up to when packs that nobody names are there, and fit: the last fence, and the epoch of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacksMark {
    fence: u64,
    epoch: usize,
}

impl PacksMark {
    /// Returns that of a log, as far as it was folded.
    pub fn of(replay: &Replay) -> Self {
        let Ok(fence) = replay.tree().version(&NodeId::FENCE);
        Self { fence, epoch: replay.keys().epoch_count() }
    }
}

/// As text that is compared with one from before.
impl fmt::Display for PacksMark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.fence, self.epoch)
    }
}

/// A pack that was stored, and how many bytes from its end hold its index, as far as that is known.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    pack: PackRef,
    tail: u64,
}

/// What was stored before.
#[derive(Debug, Default)]
pub(super) struct StoredPacks {
    waiting: VecDeque<Waiting>,
    asked: Vec<(Waiting, PackPart)>,
    known: Vec<(PackRef, PackIndex, bool)>,
    /// The number of a pack that has a chunk.
    chunks: HashMap<ChunkId, usize>,
}

impl StoredPacks {
    pub(super) fn new(packs: &[PackRef]) -> Self {
        let waiting =
            |pack: &PackRef| Waiting { pack: *pack, tail: tail_length_guess(pack.length) };
        Self { waiting: packs.iter().map(waiting).collect(), ..Self::default() }
    }

    /// Returns the indexes that are to be fetched now; none where all that can be known is known.
    pub(super) fn wanted(&mut self) -> Vec<PackPart> {
        let count = self.waiting.len().min(AT_ONCE);
        let part = |waiting: Waiting| {
            let place = PackPlace { length: waiting.pack.length, inline_seq: None };
            let pack = KnownPack { id: waiting.pack.id, place };
            (waiting, PackPart::tail(pack, waiting.tail))
        };
        self.asked = self.waiting.drain(..count).map(part).collect();
        self.asked.iter().map(|(_, part)| part.clone()).collect()
    }

    /// Tells whether indexes were asked for.
    pub(super) fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Takes the bytes of one that was asked for; what is not the index of that pack is let be.
    pub(super) fn take(&mut self, packs: &Packs, number: usize, bytes: &[u8]) {
        let Some((waiting, part)) = self.asked.get(number) else { return };
        let (pack, length) = (waiting.pack, waiting.pack.length);
        if bytes.len() as u64 != part.range.end - part.range.start {
            return;
        }
        match PackIndex::from_tail(bytes, length, &packs.guard) {
            Ok(TailOutcome::Complete(index)) => {
                let number = self.known.len();
                // What is made from others needs these, too, and nobody has looked for them.
                let is_whole =
                    |record: u32| index.bases(record as usize).is_ok_and(<[ChunkRef]>::is_empty);
                let whole = index.packed_chunks().filter(|packed| is_whole(packed.record));
                self.chunks.extend(whole.map(|packed| (packed.chunk.id, number)));
                self.known.push((pack, index, false));
            }
            Ok(TailOutcome::NeedMore { bytes: tail }) if tail > bytes.len() as u64 => {
                self.waiting.push_back(Waiting { pack, tail });
            }
            Ok(TailOutcome::NeedMore { .. }) | Err(_) => {}
        }
    }

    /// Tells whether a chunk is in one of them, which is to be named then.
    pub(super) fn claim(&mut self, chunk: &ChunkId) -> bool {
        let Some(&number) = self.chunks.get(chunk) else { return false };
        self.known[number].2 = true;
        true
    }

    /// Returns those in which something was found.
    pub(super) fn used(self) -> impl Iterator<Item = (PackRef, PackIndex)> {
        let used = self.known.into_iter().filter(|(.., is_used)| *is_used);
        used.map(|(pack, index, _)| (pack, index))
    }
}
