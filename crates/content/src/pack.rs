//! Packs: the containers in which chunks are stored and travel.
//!
//! *Participants*: devices that write packs, stores that keep them and are not trusted, devices that read a whole
//! pack, its index, or one record of it. *Goals*: few objects of about 4 MiB; one request of a range opens one
//! record; small files compress together; nothing damaged is ever handed out. *Non-goals*: changing a pack;
//! finding chunks across packs (the content store does). *Invariants*: a pack is named by the hash of its stored
//! bytes; header, records, index and trailer follow each other without gaps, so that no offset is stored and
//! none can overlap; one index has one encoding; a pack is sealed exactly where its workspace is; a chunk is verified against its id before anybody sees it.
//!
//! The format in words: `docs/design/pack-format.md`, "Packs".

mod allowance;
mod ancestry;
mod deflate;
mod delta;
mod index;
mod jpeg;
mod reader;
mod record;
mod seal;
mod writer;

pub use allowance::WorkAllowance;
pub use ancestry::{Ancestry, WRITTEN_BASES_MAX};
pub use deflate::DEFLATE_PLAIN_MAX;
pub(crate) use deflate::has_room as deflate_has_room;
pub use delta::{DeltaRecord, DeltaStep, RECORD_BASES_LENGTH_MAX, RECORD_BASES_MAX};
pub use index::{PackIndex, PackedChunk, RecordEntry, TailOutcome};
pub(crate) use jpeg::JPEG_PLAIN_FACTOR;
pub use jpeg::JPEG_PLAIN_MAX;
pub use reader::{Record, RecordOpener, open_record, verify_whole};
pub use record::{PlainRecord, StoredRecord};
pub use writer::{Addition, FinishedPack, PackAssembler, PackWriter};

use model::content::CHUNK_SIZE_MAX;

use crate::error::ContentError;

/// The format version of plain packs.
pub const PACK_VERSION: u8 = 1;

/// The format version of sealed packs.
pub const SEALED_PACK_VERSION: u8 = 2;

/// The format version of plain packs that were written after a cleanup. They hold the number of the last fence, so that no pack
/// that a cleanup has removed comes back under its name.
pub const FENCED_PACK_VERSION: u8 = 3;

/// The format version of plain packs with delta records. Who does not know these must not clean up: they need chunks that no file has.
pub const DELTA_PACK_VERSION: u8 = 4;

/// The format version of sealed packs with delta records.
pub const SEALED_DELTA_PACK_VERSION: u8 = 5;

/// The format version of plain packs with JPEG records, and with delta records or without.
pub const PICTURE_PACK_VERSION: u8 = 6;

/// The same of sealed packs, and the newest that is read.
pub const SEALED_PICTURE_PACK_VERSION: u8 = 7;

/// How a pack begins: a name, and the version.
const HEADER: [u8; 8] = *b"SYNPACK\x01";

/// How the fixed part of a trailer ends.
const TRAILER_MAGIC: [u8; 7] = *b"PACKEND";

/// Length in bytes of the trailer: index length, version, magic, hash.
const TRAILER_LENGTH: usize = 4 + 1 + 7 + 32;

/// How many plain bytes a record of several chunks may have; a single chunk may have more.
pub const RECORD_PLAIN_MAX: usize = 1024 * 1024;

/// How many chunks a record may have.
pub const RECORD_CHUNKS_MAX: usize = 4096;

/// How many stored bytes a pack should have.
pub const PACK_STORED_TARGET: usize = 4 * 1024 * 1024;

/// How many times as many it should have where a store divides it into many blocks.
pub const PACK_GROWTH: usize = 3;

/// From how many blocks on. Halves of packs are large enough, and larger ones would keep thin lines waiting at the end.
const PACK_GROWS_FROM: usize = 3;

/// How many chunks a pack may have.
pub const PACK_CHUNKS_MAX: usize = 16 * 1024;

/// How many bases all delta records of a pack may have.
pub const PACK_BASES_MAX: usize = 16 * 1024;

/// How many bytes a pack may have; a reader fetches no more for one.
pub const PACK_LENGTH_MAX: u64 = 16 * 1024 * 1024;

/// How many bytes from the end of a pack of the usual length hold its index, almost always.
pub const TAIL_LENGTH_GUESS: u64 = 64 * 1024;

/// The format of a pack, by the number that stands in its header and its trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PackVersion(u8);

/// What only packs of newer formats have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Newest {
    /// Nothing.
    Whole,
    /// Records that are made from chunks elsewhere.
    Deltas,
    /// Pictures that are coded shorter, and maybe those as well.
    Pictures,
}

impl Newest {
    const ALL: [Self; 3] = [Self::Whole, Self::Deltas, Self::Pictures];
}

impl PackVersion {
    /// Says which version a pack has that is like this.
    fn of(is_sealed: bool, is_fenced: bool, newest: Newest) -> Self {
        Self(match (newest, is_sealed, is_fenced) {
            (Newest::Whole, true, _) => SEALED_PACK_VERSION,
            (Newest::Whole, false, false) => PACK_VERSION,
            (Newest::Whole, false, true) => FENCED_PACK_VERSION,
            (Newest::Deltas, true, _) => SEALED_DELTA_PACK_VERSION,
            (Newest::Deltas, false, _) => DELTA_PACK_VERSION,
            (Newest::Pictures, true, _) => SEALED_PICTURE_PACK_VERSION,
            (Newest::Pictures, false, _) => PICTURE_PACK_VERSION,
        })
    }

    /// Takes the number of a pack.
    ///
    /// # Errors
    /// [`ContentError::NewerPack`], and nothing where no version ever had this number.
    fn from_number(number: u8) -> Result<Option<Self>, ContentError> {
        match number {
            0 => Ok(None),
            PACK_VERSION..=SEALED_PICTURE_PACK_VERSION => Ok(Some(Self(number))),
            version => Err(ContentError::NewerPack { version, known: SEALED_PICTURE_PACK_VERSION }),
        }
    }

    fn is_sealed(self) -> bool {
        let sealed = [SEALED_PACK_VERSION, SEALED_DELTA_PACK_VERSION, SEALED_PICTURE_PACK_VERSION];
        sealed.contains(&self.0)
    }

    /// Tells whether the index begins with the number of a fence.
    fn has_fence(self) -> bool {
        self.0 == FENCED_PACK_VERSION || self.newest() > Newest::Whole
    }

    fn newest(self) -> Newest {
        match self.0 {
            PICTURE_PACK_VERSION | SEALED_PICTURE_PACK_VERSION => Newest::Pictures,
            DELTA_PACK_VERSION | SEALED_DELTA_PACK_VERSION => Newest::Deltas,
            _ => Newest::Whole,
        }
    }
}

/// Returns how many stored bytes a pack should have that a store keeps in so many blocks: far away a block costs as much waiting as
/// a pack.
pub fn pack_target(parts: usize) -> usize {
    if parts >= PACK_GROWS_FROM { PACK_STORED_TARGET * PACK_GROWTH } else { PACK_STORED_TARGET }
}

/// Returns how many bytes from the end of a pack hold its index, mostly: the first range to ask for.
pub fn tail_length_guess(pack_length: u64) -> u64 {
    let usual = PACK_STORED_TARGET as u64;
    (TAIL_LENGTH_GUESS * ((pack_length + usual / 2) / usual).max(1)).min(pack_length)
}

// A pack that is about to be full may still get a record of many chunks and then one of the largest chunk.
const _: () = assert!(
    PACK_STORED_TARGET
        + RECORD_PLAIN_MAX
        + CHUNK_SIZE_MAX as usize
        + (PACK_CHUNKS_MAX + PACK_BASES_MAX) * 40
        <= PACK_LENGTH_MAX as usize
);

#[cfg(test)]
mod tests;
