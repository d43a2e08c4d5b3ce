//! Compares a version that is read once with its base, while it is cut.
//!
//! *Invariants*: no more than a stretch of the version is in memory. Who cuts a version first and compares it then (`super::compare`) knows
//! of a change where it ends; here that is known for the last stretch of one, and the others are compared with what the base has from there
//! on.

use model::content::ChunkRef;

use super::{Gap, Narrower, STRETCH_LENGTH, steps_of};
use crate::delta::base::{BaseVersion, Places};
use crate::delta::error::DeltaError;
use crate::delta::message::ByteStep;
use crate::delta::sketch::SketchKey;
use crate::naming::WorkspaceContentKeys;

/// Hears of a chunk that the base does not have, with its bytes, and what it has of the base.
type HearNew<'f, E> = &'f mut dyn FnMut(ChunkRef, &[u8], &[ByteStep]) -> Result<(), E>;

/// Tells how chunks that come one after the other follow from a base that has a sketch.
pub(crate) struct Following {
    key: SketchKey,
    places: Places,
    /// The chunk of the base behind the last one that was kept.
    behind: usize,
    /// The chunk of the base with which the stretch is compared first.
    next: usize,
    /// The chunks of the stretch, and their bytes.
    stretch: Vec<ChunkRef>,
    bytes: Vec<u8>,
}

impl Following {
    /// Begins at the front.
    pub(crate) fn new(keys: &WorkspaceContentKeys, base: &BaseVersion) -> Self {
        let (key, places) = (SketchKey::of(keys), Places::of(base.table()));
        Self { key, places, behind: 0, next: 0, stretch: Vec::new(), bytes: Vec::new() }
    }

    /// Takes the next chunk. Says which chunk of the base it is, unless it is none: then `hear` hears of it and its bytes, and what it has
    /// of the base, later.
    pub(crate) fn push<E: From<DeltaError>>(
        &mut self,
        base: &BaseVersion,
        (chunk, bytes): (ChunkRef, &[u8]),
        hear: HearNew<'_, E>,
    ) -> Result<Option<usize>, E> {
        let found = self.places.find(&chunk, self.behind);
        let Some(found) = found.filter(|&found| base.table().chunks()[found] == chunk) else {
            if (self.bytes.len() + bytes.len()) as u64 > STRETCH_LENGTH {
                self.end_stretch(base, None, hear)?;
            }
            self.stretch.push(chunk);
            self.bytes.extend_from_slice(bytes);
            return Ok(None);
        };
        self.end_stretch(base, Some(found).filter(|&found| found >= self.behind), hear)?;
        (self.behind, self.next) = (found + 1, found + 1);
        Ok(Some(found))
    }

    /// Takes the end of the version.
    pub(crate) fn finish<E: From<DeltaError>>(
        mut self,
        base: &BaseVersion,
        hear: HearNew<'_, E>,
    ) -> Result<(), E> {
        self.end_stretch(base, Some(base.table().chunks().len()), hear)
    }

    /// Ends a stretch, behind which comes this chunk of the base, if that is known.
    fn end_stretch<E: From<DeltaError>>(
        &mut self,
        base: &BaseVersion,
        found: Option<usize>,
        hear: HearNew<'_, E>,
    ) -> Result<(), E> {
        if self.stretch.is_empty() {
            return Ok(());
        }
        let end = found.unwrap_or(base.table().chunks().len());
        // Where much was pushed in, the stretches before have gone too far on.
        let next = if self.next > end { self.behind } else { self.next };
        let old = next..end;
        let gap = Gap { new: 0..self.stretch.len(), old, ends_alike: found.is_some() };
        let mut narrower = Narrower { key: &self.key, base, old: None, gap, next };
        let segments = narrower.segments(&self.bytes, true)?;
        self.next = narrower.next;
        for (chunk, bytes, steps) in steps_of(&self.stretch, &self.bytes, segments) {
            hear(chunk, bytes, &steps)?;
        }
        self.stretch.clear();
        self.bytes.clear();
        Ok(())
    }
}
