//! Reads packs: nothing leaves here that was not verified.

use std::sync::atomic::{AtomicBool, Ordering};

use model::content::ChunkRef;
use model::ids::PackId;

use super::jpeg::JPEG_WORK;
use super::{
    HEADER, PackIndex, PackVersion, RecordEntry, StoredRecord, TailOutcome, deflate, delta,
};
use crate::error::ContentError;
use crate::naming::ChunkNamer;
use crate::sealed::PackGuard;
use crate::transform::{TransformDecoder, TransformTag};

/// Checks that bytes are the pack they are taken for, and returns its index.
///
/// # Errors
/// [`ContentError::PackHash`] where they are not; the errors of [`PackIndex::from_tail`] where whoever named
/// them made no pack of them.
pub fn verify_whole(
    id: PackId,
    bytes: &[u8],
    guard: &PackGuard,
) -> Result<PackIndex, ContentError> {
    let actual = PackId::from_bytes(*blake3::hash(bytes).as_bytes());
    if actual != id {
        return Err(ContentError::PackHash { id, actual });
    }
    let length = bytes.len() as u64;
    let Some((header, _)) = bytes.split_first_chunk::<{ HEADER.len() }>() else {
        return Err(ContentError::PackLength { length });
    };
    let ([name @ .., version], [known_name @ .., _]) = (header, &HEADER);
    if name != known_name {
        return Err(ContentError::PackHeader);
    }
    let version = PackVersion::from_number(*version)?.ok_or(ContentError::PackHeader)?;
    if version.is_sealed() != guard.is_sealed() {
        let what = "pack";
        return Err(match guard.is_sealed() {
            true => ContentError::NotSealed { what },
            false => ContentError::IsSealed { what },
        });
    }
    match PackIndex::from_tail(bytes, length, guard)? {
        // Header and trailer say the same version.
        TailOutcome::Complete(index) if version != index.version(guard.is_sealed()) => {
            Err(ContentError::PackHeader)
        }
        TailOutcome::Complete(index) => Ok(index),
        TailOutcome::NeedMore { .. } => Err(ContentError::PackLength { length }),
    }
}

/// Opens one record; use a [`RecordOpener`] for many.
///
/// `stored` are the bytes of [`super::RecordEntry::stored_range`].
///
/// # Errors
/// As [`RecordOpener::open`].
pub fn open_record(
    index: &PackIndex,
    record: usize,
    stored: &[u8],
    namer: &ChunkNamer,
) -> Result<Record, ContentError> {
    RecordOpener::default().open(index, record, stored, namer)
}

/// Opens records one after the other, and keeps memory between them.
#[derive(Default)]
pub struct RecordOpener {
    decoder: TransformDecoder,
    spare: Vec<u8>,
    /// The stored bytes of a record whose seal was opened.
    opened: Vec<u8>,
    work: u64,
}

impl RecordOpener {
    /// Decodes a record of a pack that is made from nothing else.
    ///
    /// # Errors
    /// As [`Self::open_on`]; [`ContentError::NeedsBases`] of a delta record.
    pub fn open(
        &mut self,
        index: &PackIndex,
        record: usize,
        stored: &[u8],
        namer: &ChunkNamer,
    ) -> Result<Record, ContentError> {
        self.open_on(index, record, stored, &[], namer)
    }

    /// Decodes a record of a pack; `bases` are the bytes of what [`PackIndex::bases`] says, in that order.
    ///
    /// # Errors
    /// [`ContentError::NoSuchRecord`], [`ContentError::RecordLength`], [`ContentError::NeedsBases`] where some are missing, and
    /// [`ContentError::Record`] where the stored bytes do not decode to what the index declares.
    pub fn open_on(
        &mut self,
        index: &PackIndex,
        record: usize,
        stored: &[u8],
        bases: &[&[u8]],
        namer: &ChunkNamer,
    ) -> Result<Record, ContentError> {
        let entry = index.record(record)?;
        let stored = unseal(index, record, stored, &mut self.opened)?;
        let wanted = index.bases(record)?.iter().map(|base| base.length as usize);
        if !wanted.eq(bases.iter().map(|base| base.len())) {
            return Err(ContentError::NeedsBases);
        }
        // They are moved about, however little is made from them.
        self.work += bases.iter().map(|base| base.len() as u64).sum::<u64>() / 8;
        let mut plain = std::mem::take(&mut self.spare);
        decode(&mut self.decoder, entry, stored, bases, (&mut plain, &mut self.work))
            .map_err(|source| ContentError::Record { record, source: Box::new(source) })?;
        let mut end = 0;
        let chunks = index.chunks()[entry.chunks()].iter().map(|&chunk| {
            end += chunk.length as usize;
            OpenChunk { chunk, end, is_verified: AtomicBool::new(false) }
        });
        Ok(Record { chunks: chunks.collect(), plain, namer: namer.clone() })
    }

    /// Returns what it took to open records since this was asked last, also in vain ([`super::WorkAllowance`]).
    pub fn take_work(&mut self) -> u64 {
        std::mem::take(&mut self.work)
    }

    /// Takes the memory of a record that is no longer needed.
    pub fn recycle(&mut self, record: Record) {
        self.spare = record.plain;
    }
}

/// Opens the seal of a record where there is one.
fn unseal<'a>(
    index: &PackIndex,
    record: usize,
    stored: &'a [u8],
    opened: &'a mut Vec<u8>,
) -> Result<&'a [u8], ContentError> {
    let entry = index.record(record)?;
    let range = entry.stored_range();
    let (expected, actual) = ((range.end - range.start) as usize, stored.len());
    if expected != actual {
        return Err(ContentError::RecordLength { record, expected, actual });
    }
    let Some(boxes) = &index.boxes else { return Ok(stored) };
    if !boxes.open(entry.pack_box(record), stored, opened) {
        let source = Box::new(ContentError::Tampered { what: "record" });
        return Err(ContentError::Record { record, source });
    }
    Ok(opened)
}

impl PackIndex {
    /// Takes a record as it is out of the bytes of [`RecordEntry::stored_range`], to be put into another pack
    /// ([`PackWriter::push_record`](super::PackWriter::push_record)). Its chunks are not looked at.
    ///
    /// # Errors
    /// [`ContentError::NoSuchRecord`], [`ContentError::RecordLength`], [`ContentError::Record`].
    pub fn take_record(&self, record: usize, stored: &[u8]) -> Result<StoredRecord, ContentError> {
        let entry = self.record(record)?;
        let mut opened = Vec::new();
        let bytes = unseal(self, record, stored, &mut opened)?.to_vec();
        Ok(StoredRecord {
            chunks: self.chunks()[entry.chunks()].to_vec(),
            bases: self.bases(record)?.to_vec(),
            plain_length: entry.plain_length(),
            transform: entry.transform(),
            bytes,
        })
    }
}

fn decode(
    decoder: &mut TransformDecoder,
    entry: &RecordEntry,
    stored: &[u8],
    bases: &[&[u8]],
    (plain, work): (&mut Vec<u8>, &mut u64),
) -> Result<(), ContentError> {
    match entry.transform() {
        TransformTag::Delta => delta::apply(stored, entry.plain_length(), bases, decoder, plain),
        TransformTag::Deflate => {
            deflate::apply(stored, entry.plain_length(), bases, decoder, (plain, work))
        }
        TransformTag::Jpeg => {
            *work += JPEG_WORK * entry.plain_length() as u64;
            decoder.decode(TransformTag::Jpeg, stored, entry.plain_length(), plain)
        }
        transform => decoder.decode(transform, stored, entry.plain_length(), plain),
    }
}

/// An opened record.
#[derive(Debug)]
pub struct Record {
    chunks: Vec<OpenChunk>,
    plain: Vec<u8>,
    namer: ChunkNamer,
}

/// A chunk of an opened record.
#[derive(Debug)]
struct OpenChunk {
    chunk: ChunkRef,
    /// The place where it ends.
    end: usize,
    /// Whether its bytes, which do not change, were found to be what its id says.
    is_verified: AtomicBool,
}

impl Record {
    /// Returns how many chunks it has.
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Returns how many plain bytes it has.
    pub fn plain_len(&self) -> usize {
        self.plain.len()
    }

    /// Returns how many bytes of memory it takes: many short chunks take more than their bytes.
    pub fn memory_len(&self) -> usize {
        self.plain.len() + self.chunks.len() * size_of::<OpenChunk>()
    }

    /// Returns which chunk is at a position.
    pub fn chunk_at(&self, position: usize) -> Option<ChunkRef> {
        self.chunks.get(position).map(|open| open.chunk)
    }

    /// Returns the bytes of a chunk, after it was verified against its id, which is done once.
    ///
    /// # Errors
    /// [`ContentError::NoSuchChunk`], [`ContentError::ChunkHash`].
    pub fn chunk(&self, position: usize) -> Result<&[u8], ContentError> {
        let count = self.chunks.len();
        let open =
            self.chunks.get(position).ok_or(ContentError::NoSuchChunk { position, count })?;
        let bytes = &self.plain[open.end - open.chunk.length as usize..open.end];
        if !open.is_verified.load(Ordering::Relaxed) {
            self.namer.verify(open.chunk.id, bytes)?;
            open.is_verified.store(true, Ordering::Relaxed);
        }
        Ok(bytes)
    }

    /// Returns every chunk with its bytes, each after it was verified.
    pub fn verified_chunks(
        &self,
    ) -> impl Iterator<Item = Result<(ChunkRef, &[u8]), ContentError>> + '_ {
        let positions = self.chunks.iter().enumerate();
        positions.map(|(position, open)| Ok((open.chunk, self.chunk(position)?)))
    }
}
