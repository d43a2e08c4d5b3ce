//! Cuts a version that is put together from parts of the version before and from new bytes.
//!
//! *Goals*: the work is that of the change: a chunk that was copied whole is neither cut nor named again, nor looked for in packs.
//! *Invariants*: a chunk is taken over only where one begins, where all that a chunker looks at was copied with it, and where it has a length
//! that a chunker gives, so the chunks are those that cutting the version as a whole gives, if the version before was cut so. However that was
//! cut, the bytes of the chunks are those of the version, and no chunk but the last is shorter than the shortest.

use model::{ChunkRef, Content};

use super::streamed::FileCut;
use super::{FilePacker, PackSink};
use crate::delta::{ChunkTable, CopiedPart, DeltaError};
use crate::error::ContentError;

/// A version that is cut while its parts come, in order.
pub struct VersionCut {
    file: FileCut,
    before: ChunkTable,
}

impl VersionCut {
    /// Returns the chunk that begins at `start` in the version before, if it is one of the new version, too, where the bytes up to `end` follow.
    fn kept(&self, start: u64, end: u64) -> Option<ChunkRef> {
        let number = self.before.chunk_at(start)?;
        let (chunk, sizes) = (self.before.chunks()[number], self.file.chunker.sizes());
        // Who commits a list may say any lengths in it.
        let is_usual = (sizes.min()..=sizes.max()).contains(&(chunk.length as usize));
        let has_all = self.before.start(number) == start && end - start >= sizes.max() as u64;
        (is_usual && has_all).then_some(chunk)
    }
}

impl<S: PackSink> FilePacker<S> {
    /// Begins a version; `before` is the one before, whose chunks are in packs. Whoever commits the new one must see to it that it takes the
    /// place of no other than that: as long as that is there, its packs stay.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`].
    pub fn begin_version(&self, before: ChunkTable) -> Result<VersionCut, ContentError> {
        Ok(VersionCut { file: self.begin(before.chunk_size())?, before })
    }

    /// Takes bytes that are new.
    ///
    /// # Errors
    /// Those of the sink; [`ContentError`].
    pub fn push_new(&mut self, cut: &mut VersionCut, bytes: &[u8]) -> Result<(), S::Error> {
        self.push(&mut cut.file, bytes)
    }

    /// Takes bytes that the version before has.
    ///
    /// # Errors
    /// Those of [`CopiedPart::next`] and of the sink; [`ContentError`].
    pub fn push_copied<E: From<DeltaError> + From<S::Error>>(
        &mut self,
        cut: &mut VersionCut,
        part: &mut CopiedPart<'_>,
    ) -> Result<(), E> {
        // Bytes that came before this part, and whose chunk is not complete.
        let mut foreign = cut.file.rest.len();
        loop {
            let pending = cut.file.rest.len();
            let range = part.range();
            let start = range.start.saturating_sub(pending as u64);
            if foreign == 0
                && let Some(chunk) = cut.kept(start, range.end)
            {
                let length = chunk.length as usize;
                cut.file.rest.drain(..length.min(pending));
                part.skip(length.saturating_sub(pending) as u64)?;
                self.enter(&mut cut.file, chunk)?;
                continue;
            }
            if let Some(length) = cut.file.chunker.cut(&cut.file.rest, false) {
                self.pack_cut(&mut cut.file, 0, length)?;
                cut.file.rest.drain(..length);
                foreign = foreign.saturating_sub(length);
                continue;
            }
            // No more than the next cut needs: from there on a chunk may be kept.
            let wanted = cut.file.chunker.sizes().max().saturating_sub(pending).max(1);
            match part.next(wanted)? {
                [] => return Ok(()),
                bytes => cut.file.rest.extend_from_slice(bytes),
            }
        }
    }

    /// Ends a version all of whose parts have come.
    ///
    /// # Errors
    /// Those of the sink; [`ContentError`].
    pub fn end_version(&mut self, cut: VersionCut) -> Result<Content, S::Error> {
        self.end(cut.file).map(|(content, _)| content)
    }
}

#[cfg(test)]
mod tests;
