//! Cuts a file whose bytes come in pieces: each is seen once, and no more than a stretch of the file is in memory, and where it is a change,
//! the sketches of both versions.
//!
//! *Invariants*: the chunks are those that cutting the file as a whole gives. As a change of the version before, a chunk is stored as
//! [`pack_edited`](FilePacker::pack_edited) stores it; only where a stretch of new chunks is longer than what is in memory, it is compared with
//! what the version before has from there on, since nobody knows yet where it ends.

use model::{ChunkRef, Content};

use super::edited::Failure;
use super::{FilePacker, PackSink};
use crate::chunker::{Chunker, ChunkerKind};
use crate::delta::{Following, SketchBuilder, VersionSketch};
use crate::error::ContentError;
use crate::manifest::ManifestBuilder;

/// A file that is cut while its bytes come in pieces.
pub struct FileCut {
    pub(super) chunker: Box<dyn Chunker>,
    manifest: ManifestBuilder,
    /// Bytes whose chunk is not complete.
    pub(super) rest: Vec<u8>,
    edit: Option<Edit>,
}

/// What a file is a change of, and what is to be kept of it.
struct Edit {
    before: VersionSketch,
    following: Following,
    sketch: SketchBuilder,
}

impl<S: PackSink> FilePacker<S> {
    /// Begins a file whose bytes come in pieces, to be cut into chunks of this average size in bytes.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`].
    pub fn begin(&self, average: u32) -> Result<FileCut, ContentError> {
        let chunker = self.keys.chunker(ChunkerKind::Minimum, average)?;
        let manifest = ManifestBuilder::new(self.namer.clone(), average);
        Ok(FileCut { chunker, manifest, rest: Vec::new(), edit: None })
    }

    /// Begins one as a change of its version before; what [`VersionSketch::empty`] says is that of a first one.
    ///
    /// # Errors
    /// [`ContentError::InvalidChunkSize`].
    pub fn begin_edited(&self, before: VersionSketch) -> Result<FileCut, ContentError> {
        let following = Following::new(&self.keys, before.base());
        let sketch = SketchBuilder::new(&self.keys);
        let cut = self.begin(before.chunk_size())?;
        Ok(FileCut { edit: Some(Edit { before, following, sketch }), ..cut })
    }

    /// Takes the next piece of a file, of any length.
    ///
    /// # Errors
    /// Those of the sink; [`ContentError`].
    pub fn push(&mut self, cut: &mut FileCut, piece: &[u8]) -> Result<(), S::Error> {
        cut.rest.extend_from_slice(piece);
        self.pack_rest(cut, false)
    }

    /// Ends a file all of whose pieces have come; returns what to keep of one that was begun as a change, too.
    ///
    /// # Errors
    /// Those of the sink; [`ContentError`].
    pub fn end(&mut self, mut cut: FileCut) -> Result<(Content, Option<VersionSketch>), S::Error> {
        self.pack_rest(&mut cut, true)?;
        let FileCut { manifest, edit, .. } = cut;
        let sketch = match edit {
            Some(edit) => Some(self.end_edit(edit)?),
            None => None,
        };
        Ok((manifest.finish(&mut |list, bytes| self.store_list(list, bytes))?, sketch))
    }

    fn pack_rest(&mut self, cut: &mut FileCut, end_of_input: bool) -> Result<(), S::Error> {
        let mut start = 0;
        while let Some(length) = cut.chunker.cut(&cut.rest[start..], end_of_input) {
            self.pack_cut(cut, start, length)?;
            start += length;
        }
        cut.rest.drain(..start);
        Ok(())
    }

    /// Packs the chunk that has so many of the bytes whose chunk was not complete, from `start` on.
    pub(super) fn pack_cut(
        &mut self,
        cut: &mut FileCut,
        start: usize,
        length: usize,
    ) -> Result<(), S::Error> {
        let bytes = &cut.rest[start..start + length];
        let chunk = ChunkRef { id: self.namer.name(bytes), length: length as u32 };
        match &mut cut.edit {
            Some(edit) => self.pack_next(edit, chunk, bytes)?,
            None => self.pack_chunk(chunk, bytes)?,
        }
        self.enter(cut, chunk)
    }

    /// Enters a chunk into the list of a file.
    pub(super) fn enter(&mut self, cut: &mut FileCut, chunk: ChunkRef) -> Result<(), S::Error> {
        cut.manifest.push(chunk, &mut |list, bytes| self.store_list(list, bytes))
    }

    fn pack_next(
        &mut self,
        edit: &mut Edit,
        chunk: ChunkRef,
        bytes: &[u8],
    ) -> Result<(), S::Error> {
        let Edit { before, following, sketch } = edit;
        if before.chunks().is_empty() {
            sketch.push(chunk, bytes);
            return self.pack_chunk(chunk, bytes);
        }
        let kept = following.push(before.base(), (chunk, bytes), &mut |chunk, bytes, steps| {
            let known = (&*before, sketch.check_key());
            self.pack_verified(known, chunk, bytes, steps).map_err(Failure::Sink)
        });
        match kept.map_err(Failure::into_error)? {
            Some(number) => {
                sketch.push_known((before, number), bytes);
                // No pack may have it any more.
                self.pack_chunk(chunk, bytes)
            }
            None => {
                sketch.push(chunk, bytes);
                Ok(())
            }
        }
    }

    fn end_edit(&mut self, edit: Edit) -> Result<VersionSketch, S::Error> {
        let Edit { before, following, sketch } = edit;
        let ended = following.finish(before.base(), &mut |chunk, bytes, steps| {
            let known = (&before, sketch.check_key());
            self.pack_verified(known, chunk, bytes, steps).map_err(Failure::Sink)
        });
        ended.map_err(Failure::into_error)?;
        // Whoever reads a file needs its bases, and not those of others.
        self.writer.seal_deltas()?;
        Ok(sketch.finish(before.chunk_size())?)
    }
}

#[cfg(test)]
mod tests;
