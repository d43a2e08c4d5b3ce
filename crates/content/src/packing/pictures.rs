//! Packs files that are pictures, coded shorter.
//!
//! *Participants*: devices, and pages that write into sealed workspaces, which have such a file in memory. *Goals*: a photograph that is new costs a quarter less. *Invariants*: no file
//! costs more than it would as any other, which is looked at first: a new title costs a delta. The chunks are those that cutting the file
//! alone gives, whatever is stored for them, and they rest whole: others may be made from them.
//!
//! How it is stored: `crate::pack`, JPEG records.

use model::{ChunkId, Content};

use super::edited::read_error;
use super::{FilePacker, Kept, PackSink, put};
use crate::delta::VersionSketch;
use crate::jpeg;
use crate::pack::Addition;

/// About how many bytes a chunk takes in an index.
const INDEXED_LENGTH: usize = ChunkId::LENGTH + 4;

impl<S: PackSink> FilePacker<S> {
    /// Packs a file as a picture, if it is one, and that takes less than to pack it beside its version before.
    pub(super) fn pack_picture(
        &mut self,
        before: &VersionSketch,
        bytes: &[u8],
    ) -> Result<Option<(Content, Kept)>, S::Error> {
        if !jpeg::may_be_of(bytes) {
            return Ok(None);
        }
        let lacking = self.lacking(before, &mut &*bytes)?;
        // A form is hardly ever shorter, and takes long to find.
        if lacking.len() * 2 <= bytes.len() {
            return Ok(None);
        }
        let Some(form) = jpeg::shorten(bytes) else { return Ok(None) };
        let chunk_size = before.chunk_size();
        let chunks = self.cut(bytes, chunk_size)?;
        // Those that are in packs are listed once more.
        let known = self.which_lack(&chunks)?.iter().filter(|is_lacking| !**is_lacking).count();
        if form.len() + known * INDEXED_LENGTH >= self.writer.encoded_len(&lacking)? {
            return Ok(None);
        }
        let (mut claimed, mut rest) = (Vec::new(), bytes);
        for chunk in &chunks {
            let (here, behind) = rest.split_at(chunk.length as usize);
            rest = behind;
            if self.claim(chunk)? {
                claimed.push((*chunk, here));
            }
        }
        let mut is_stored = claimed.is_empty();
        if !is_stored {
            let more = Addition { chunks: chunks.len(), bases: 0, length: form.len() };
            put(&mut self.writer, more, &mut self.sink, |writer| {
                is_stored = writer.push_picture(&chunks, &form)?;
                Ok(())
            })?;
        }
        if !is_stored {
            for (chunk, bytes) in claimed {
                super::push(&mut self.writer, chunk, bytes, &mut self.sink)?;
            }
        }
        let kept = VersionSketch::survey(&self.keys, chunk_size, &mut &*bytes);
        let kept = Kept::File(kept.map_err(read_error)?);
        Ok(Some((self.pack_list(chunk_size, &chunks)?, kept)))
    }
}

#[cfg(test)]
mod tests;
