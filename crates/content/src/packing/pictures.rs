//! Packs files that are pictures, coded shorter.
//!
//! *Participants*: devices, which have such a file in memory. *Goals*: a photograph that is new costs a quarter less. *Invariants*: the chunks
//! are those that cutting the file alone gives, whatever is stored for them, and they rest whole: others may be made from them.
//!
//! How it is stored: `crate::pack`, JPEG records.

use model::Content;

use super::edited::read_error;
use super::{FilePacker, Kept, PackSink, put};
use crate::delta::VersionSketch;
use crate::jpeg;
use crate::pack::Addition;

impl<S: PackSink> FilePacker<S> {
    /// Packs a file as a picture, if it is one, most of it is in no pack, and that pays.
    pub(super) fn pack_picture(
        &mut self,
        bytes: &[u8],
        chunk_size: u32,
    ) -> Result<Option<(Content, Kept)>, S::Error> {
        if !jpeg::may_be_of(bytes) {
            return Ok(None);
        }
        let chunks = self.cut(bytes, chunk_size)?;
        let is_lacking = self.which_lack(&chunks)?;
        let lacking = chunks.iter().zip(is_lacking).filter(|(_, is_lacking)| *is_lacking);
        let lacking: u64 = lacking.map(|(chunk, _)| u64::from(chunk.length)).sum();
        // What has a new title only has most of its chunks in packs.
        if lacking * 2 <= bytes.len() as u64 {
            return Ok(None);
        }
        let Some(form) = jpeg::shorten(bytes) else { return Ok(None) };
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
