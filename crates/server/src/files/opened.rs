//! Records that a request has opened.
//!
//! *Goals*: neighbours of a chunk are mostly wanted next; pictures, which take long to open, are opened once. *Invariants*: what is kept is
//! bounded by bytes, and what is opened of pictures by what is read ([`PictureAllowance`]).

use std::collections::VecDeque;

use content::pack::{JPEG_PLAIN_MAX, PictureAllowance, RecordEntry};
use content::transform::TransformTag;
use content::{ContentError, Record};
use model::PackId;

/// How many bytes of pictures are kept open beside the last record.
const PICTURES_LENGTH_MAX: usize = 2 * JPEG_PLAIN_MAX;

/// A record that was opened, and of which pack it is.
#[derive(Debug)]
struct OpenRecord {
    pack: PackId,
    number: usize,
    is_picture: bool,
    record: Record,
}

/// The last record that a request has opened, and the pictures that it has used last.
#[derive(Debug, Default)]
pub(super) struct OpenRecords {
    /// The one that was used last is at the end; all others are pictures.
    kept: VecDeque<OpenRecord>,
    allowance: PictureAllowance,
}

impl OpenRecords {
    /// Tells whether a record is open, which is the last one then.
    pub(super) fn turn_to(&mut self, pack: PackId, number: usize) -> bool {
        let is_it = |open: &OpenRecord| open.pack == pack && open.number == number;
        let Some(place) = self.kept.iter().position(is_it) else { return false };
        let used = self.kept.remove(place);
        self.make_room();
        self.kept.extend(used);
        true
    }

    /// Counts a record that is not open and is going to be.
    ///
    /// # Errors
    /// [`ContentError::TooManyPictures`].
    pub(super) fn count(&mut self, record: &RecordEntry) -> Result<(), ContentError> {
        self.allowance.count(record)
    }

    /// Keeps a record that was opened.
    pub(super) fn keep(
        &mut self,
        (pack, number): (PackId, usize),
        transform: TransformTag,
        record: Record,
    ) {
        self.make_room();
        let is_picture = transform == TransformTag::Jpeg;
        self.kept.push_back(OpenRecord { pack, number, is_picture, record });
    }

    /// Returns the bytes of a chunk of the last record, compared with its id.
    ///
    /// # Errors
    /// Those of [`Record::chunk`].
    pub(super) fn chunk(&self, position: usize) -> Result<&[u8], ContentError> {
        let missing = ContentError::NoSuchChunk { position, count: 0 };
        self.kept.back().ok_or(missing)?.record.chunk(position)
    }

    /// Counts bytes that the request has read.
    pub(super) fn hand_out(&mut self, length: usize) {
        self.allowance.hand_out(length as u64);
    }

    /// Forgets what is not kept beside another record that is used.
    fn make_room(&mut self) {
        self.kept.retain(|open| open.is_picture);
        let mut length: usize = self.kept.iter().map(|open| open.record.plain_len()).sum();
        while length > PICTURES_LENGTH_MAX
            && let Some(oldest) = self.kept.pop_front()
        {
            length -= oldest.record.plain_len();
        }
    }
}

#[cfg(test)]
mod tests;
