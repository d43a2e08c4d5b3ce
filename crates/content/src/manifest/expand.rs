//! From a [`Content`] back to the chunks of the file.

use model::content::{CONTENT_DEPTH_MAX, ChunkRef, Content};

use super::ChunkList;
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
    if content.depth > CONTENT_DEPTH_MAX {
        let depth = content.depth;
        return Err(ContentError::TooDeep { depth, max: CONTENT_DEPTH_MAX }.into());
    }
    // The lists that are being read, outermost first; one at depth d stands at index `content.depth - d`.
    let mut open = vec![content.chunks.clone().into_iter()];
    let mut total = 0_u64;
    while let Some(list) = open.last_mut() {
        let Some(chunk) = list.next() else {
            open.pop();
            continue;
        };
        let levels_below = usize::from(content.depth) + 1 - open.len();
        if levels_below > 0 {
            let bytes = fetch(&chunk)?;
            open.push(decode_list(&chunk, &bytes, levels_below as u8 - 1)?.into_iter());
            continue;
        }
        total = total.saturating_add(u64::from(chunk.length));
        if total > content.size {
            return Err(wrong_size(content, total).into());
        }
        visit(chunk)?;
    }
    if total == content.size { Ok(()) } else { Err(wrong_size(content, total).into()) }
}

fn decode_list(chunk: &ChunkRef, bytes: &[u8], level: u8) -> Result<Vec<ChunkRef>, ContentError> {
    let (expected, actual) = (chunk.length as usize, bytes.len());
    if expected != actual {
        return Err(ContentError::ListLength { id: chunk.id, expected, actual });
    }
    let list = ChunkList::decode(bytes, level)
        .map_err(|source| ContentError::List { id: chunk.id, source })?;
    Ok(list.chunks)
}

fn check_size(content: &Content) -> Result<(), ContentError> {
    let total = content.chunks.iter().map(|chunk| u64::from(chunk.length)).sum();
    if total == content.size { Ok(()) } else { Err(wrong_size(content, total)) }
}

fn wrong_size(content: &Content, actual: u64) -> ContentError {
    ContentError::ContentSize { expected: content.size, actual }
}
