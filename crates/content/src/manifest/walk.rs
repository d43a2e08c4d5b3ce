//! A way through the chunks of a file, for whoever fetches its lists.

use std::vec::IntoIter;

use model::content::{CONTENT_DEPTH_MAX, ChunkRef, Content};

use super::ChunkList;
use crate::error::ContentError;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentStep {
    /// The next chunk of the file.
    Chunk(ChunkRef),
    /// A list of chunks, to be fetched and given to [`ContentWalk::take_list`].
    List(ChunkRef),
    /// Nothing: the file is complete.
    End,
}

/// Goes through the chunks of a file in order, in memory for one list a level.
///
/// That the chunks add up to the size of the file is known only at [`ContentStep::End`]: what was done before an error must
/// not be kept.
#[derive(Debug)]
pub struct ContentWalk {
    size: u64,
    depth: u8,
    /// The lists that are being read, outermost first; one at depth d stands at index `depth - d`.
    open: Vec<IntoIter<ChunkRef>>,
    wanted: Option<ChunkRef>,
    total: u64,
}

impl ContentWalk {
    /// Begins at the first chunk.
    ///
    /// # Errors
    /// [`ContentError::TooDeep`].
    pub fn new(content: &Content) -> Result<Self, ContentError> {
        let (size, depth) = (content.size, content.depth);
        if depth > CONTENT_DEPTH_MAX {
            return Err(ContentError::TooDeep { depth, max: CONTENT_DEPTH_MAX });
        }
        let open = vec![content.chunks.clone().into_iter()];
        Ok(Self { size, depth, open, wanted: None, total: 0 })
    }

    /// Returns what comes next; a list that was not given yet comes again.
    ///
    /// # Errors
    /// [`ContentError::ContentSize`] where the chunks do not add up to the size of the file.
    pub fn step(&mut self) -> Result<ContentStep, ContentError> {
        if let Some(list) = self.wanted {
            return Ok(ContentStep::List(list));
        }
        while let Some(list) = self.open.last_mut() {
            let Some(chunk) = list.next() else {
                self.open.pop();
                continue;
            };
            if self.levels_below() > 0 {
                self.wanted = Some(chunk);
                return Ok(ContentStep::List(chunk));
            }
            self.total = self.total.saturating_add(u64::from(chunk.length));
            if self.total > self.size {
                return Err(wrong_size(self.size, self.total));
            }
            return Ok(ContentStep::Chunk(chunk));
        }
        if self.total == self.size {
            Ok(ContentStep::End)
        } else {
            Err(wrong_size(self.size, self.total))
        }
    }

    /// Takes the bytes of the list that was asked for, verified against its id.
    ///
    /// # Errors
    /// [`ContentError::List`] and [`ContentError::ListLength`] where the list is not what a
    /// [`super::ManifestBuilder`] makes.
    ///
    /// # Panics
    /// Where no list was asked for.
    pub fn take_list(&mut self, bytes: &[u8]) -> Result<(), ContentError> {
        let chunk = self.wanted.take().expect("a list is given after it was asked for");
        let (id, expected, actual) = (chunk.id, chunk.length as usize, bytes.len());
        if expected != actual {
            return Err(ContentError::ListLength { id, expected, actual });
        }
        let level = self.levels_below() as u8 - 1;
        let list =
            ChunkList::decode(bytes, level).map_err(|source| ContentError::List { id, source })?;
        self.open.push(list.chunks.into_iter());
        Ok(())
    }

    /// Returns how many levels lie below the innermost list that is being read.
    fn levels_below(&self) -> usize {
        usize::from(self.depth) + 1 - self.open.len()
    }
}

pub(super) fn wrong_size(expected: u64, actual: u64) -> ContentError {
    ContentError::ContentSize { expected, actual }
}
