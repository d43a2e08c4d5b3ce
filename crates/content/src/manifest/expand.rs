//! From a [`Content`] back to the chunks of the file.

use model::content::{ChunkRef, Content};

use super::walk::{ContentStep, ContentWalk, wrong_size};
use crate::error::ContentError;

/// How many chunks [`expand`] returns at most: those of a file of 256 GiB, in 150 MB of memory. A list of lists of
/// equal lists is short and yet names any number of chunks, so that a limit is needed.
pub const EXPANDED_CHUNKS_MAX: usize = 4 * 1024 * 1024;

/// Returns the chunks of a file in order.
///
/// `fetch` returns the bytes of a chunk, verified against its id, as packs give them out. It is called for the
/// lists of chunks, in the order in which they were stored.
///
/// # Errors
/// As [`expand_each`], and [`ContentError::TooManyChunks`] above
/// [`EXPANDED_CHUNKS_MAX`]; [`expand_each`] has no such limit.
pub fn expand<E: From<ContentError>>(
    content: &Content,
    fetch: impl FnMut(&ChunkRef) -> Result<Vec<u8>, E>,
) -> Result<Vec<ChunkRef>, E> {
    if content.depth == 0 {
        check_size(content)?;
        return Ok(content.chunks.clone());
    }
    let mut chunks = Vec::new();
    expand_each(content, fetch, |chunk| {
        if chunks.len() == EXPANDED_CHUNKS_MAX {
            return Err(ContentError::TooManyChunks { max: EXPANDED_CHUNKS_MAX as u64 }.into());
        }
        chunks.push(chunk);
        Ok(())
    })?;
    Ok(chunks)
}

/// Gives the chunks of a file in order to `visit`, in memory for one list a level.
///
/// That the chunks add up to the size of the file is known only at the end: what `visit` did before an error
/// must not be kept.
///
/// # Errors
/// [`ContentError::TooDeep`], [`ContentError::List`], [`ContentError::ListLength`] and
/// [`ContentError::ContentSize`] where the content is not what a [`super::ManifestBuilder`] makes; whatever
/// `fetch` and `visit` return.
pub fn expand_each<E: From<ContentError>>(
    content: &Content,
    mut fetch: impl FnMut(&ChunkRef) -> Result<Vec<u8>, E>,
    mut visit: impl FnMut(ChunkRef) -> Result<(), E>,
) -> Result<(), E> {
    let mut walk = ContentWalk::new(content)?;
    loop {
        match walk.step()? {
            ContentStep::Chunk(chunk) => visit(chunk)?,
            ContentStep::List(list) => walk.take_list(&fetch(&list)?)?,
            ContentStep::End => return Ok(()),
        }
    }
}

fn check_size(content: &Content) -> Result<(), ContentError> {
    let total = content.chunks.iter().map(|chunk| u64::from(chunk.length)).sum();
    if total == content.size { Ok(()) } else { Err(wrong_size(content.size, total)) }
}
