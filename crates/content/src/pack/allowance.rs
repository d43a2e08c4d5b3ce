//! How much of pictures a reader opens.
//!
//! *Goals*: who stores something hostile and has it read keeps nobody busy for long. *Invariants*: what was opened has no more bytes than
//! [`OPENED_FACTOR`] times what was read, and [`OPENED_AT_FIRST`] more. Together with the bound of a record by its stored bytes
//! ([`JPEG_PLAIN_FACTOR`](super::JPEG_PLAIN_FACTOR)) that is no more work than other records may make.

use super::RecordEntry;
use crate::error::ContentError;
use crate::transform::TransformTag;

/// How many bytes of pictures are opened before anything was read: those that a chunk may be made from.
const OPENED_AT_FIRST: u64 = 128 * 1024 * 1024;

/// How many are opened for each byte that was read. Files use the chunks of a picture one after the other, but for those that were edited.
const OPENED_FACTOR: u64 = 16;

/// What a reader has opened of pictures, and for how much.
#[derive(Debug, Default)]
pub struct PictureAllowance {
    opened: u64,
    read: u64,
}

impl PictureAllowance {
    /// Counts a record that is going to be opened; only a picture takes long.
    ///
    /// # Errors
    /// [`ContentError::TooManyPictures`] where it must not be.
    pub fn count(&mut self, record: &RecordEntry) -> Result<(), ContentError> {
        if record.transform() == TransformTag::Jpeg {
            self.opened += record.plain_length() as u64;
        }
        let allowed = OPENED_AT_FIRST.saturating_add(self.read.saturating_mul(OPENED_FACTOR));
        if self.opened > allowed { Err(ContentError::TooManyPictures) } else { Ok(()) }
    }

    /// Returns how many bytes of pictures were opened.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Counts bytes that were read.
    pub fn hand_out(&mut self, length: u64) {
        self.read += length;
    }
}
