//! Writes packs: chunks go in, a finished pack comes out.

use model::codec::Encoder;
use model::content::ChunkRef;
use model::ids::PackId;

use super::index::RecordEntry;
use super::{
    DeltaRecord, DeltaStep, HEADER, PACK_BASES_MAX, PACK_CHUNKS_MAX, PACK_GROWTH, PACK_LENGTH_MAX,
    PACK_STORED_TARGET, PackIndex, PlainRecord, RECORD_BASES_MAX, RECORD_CHUNKS_MAX,
    RECORD_PLAIN_MAX, StoredRecord, TRAILER_LENGTH, TRAILER_MAGIC, deflate, jpeg, seal,
};
use crate::error::ContentError;
use crate::sealed::PackGuard;
use crate::transform::{Transform, TransformEncoder, TransformTag};

/// A pack to be stored.
#[derive(Debug)]
pub struct FinishedPack {
    /// The name: the BLAKE3-256 of the bytes.
    pub id: PackId,
    /// The stored bytes.
    pub bytes: Vec<u8>,
    /// What is in it, as a reader of the bytes would find it.
    pub index: PackIndex,
}

/// What is to be pushed at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Addition {
    /// How many chunks.
    pub chunks: usize,
    /// How many bases they are made from at most.
    pub bases: usize,
    /// How many stored bytes they take at most.
    pub length: usize,
}

impl Addition {
    /// Says that of one chunk of so many bytes, which is made from nothing.
    pub fn chunk(length: usize) -> Self {
        Self { chunks: 1, bases: 0, length }
    }
}

/// Fills one pack after the other, compressing on the calling thread.
///
/// One writer per worker thread is the simplest way to use several processors; [`PlainRecord`] and
/// [`PackAssembler`] are its two halves for other ways.
pub struct PackWriter {
    encoder: TransformEncoder,
    record: PlainRecord,
    /// Chunks that are made from others.
    deltas: DeltaRecord,
    pack: PackAssembler,
}

impl PackWriter {
    /// Prepares for the first pack; `guard` is that of the workspace.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedTransform`].
    pub fn new(transform: Transform, guard: &PackGuard) -> Result<Self, ContentError> {
        Ok(Self {
            encoder: TransformEncoder::new(transform)?,
            record: PlainRecord::new(),
            deltas: DeltaRecord::new(),
            pack: PackAssembler::new(guard),
        })
    }

    /// Lets packs have about so many stored bytes, as [`pack_target`](super::pack_target) says.
    ///
    /// # Panics
    /// Where that is less than usual, or more than a pack may grow.
    #[must_use]
    pub fn with_target(mut self, target: usize) -> Self {
        let targets = PACK_STORED_TARGET..=PACK_STORED_TARGET * PACK_GROWTH;
        assert!(targets.contains(&target), "a pack has from 4 to 12 MiB");
        self.pack.target = target;
        self
    }

    /// Lets records of whole chunks have at most so many bytes before they are compressed. Who reads one chunk opens the whole record, so
    /// that small ones are read faster where chunks are read one by one; they compress a little less.
    ///
    /// # Panics
    /// Where that is more than a record may have.
    #[must_use]
    pub fn with_records(mut self, plain_max: usize) -> Self {
        assert!(plain_max <= RECORD_PLAIN_MAX, "a record has at most {RECORD_PLAIN_MAX} bytes");
        self.record.plain_max = plain_max;
        self
    }

    /// Tells whether this certainly fits; otherwise the pack must be finished before it is pushed. There is always room in a pack of the usual
    /// length that is not full.
    pub fn has_room(&self, more: Addition) -> bool {
        self.is_empty() || self.stored_len_with(more) as u64 <= PACK_LENGTH_MAX
    }

    /// Adds a chunk behind the others. Equal chunks are not looked for: the caller knows what is stored.
    ///
    /// # Errors
    /// [`ContentError::Encode`].
    ///
    /// # Panics
    /// Where the pack is full, or the bytes have not the length of the chunk.
    pub fn push(&mut self, chunk: ChunkRef, bytes: &[u8]) -> Result<(), ContentError> {
        assert!(!self.is_full(), "a full pack must be finished before more is pushed");
        if !self.record.has_room(bytes.len()) {
            self.seal_record()?;
        }
        self.record.push(chunk, bytes);
        if self.record.is_full() {
            self.seal_record()?;
        }
        Ok(())
    }

    /// Adds a chunk that is made from others. It rests in a record with its like, which is stored as any other where it does not pay to
    /// make it from others.
    ///
    /// # Errors
    /// [`ContentError::Encode`].
    ///
    /// # Panics
    /// Where the pack is full, the chunk has more bytes than a record of several may have, or the steps make another number of bytes.
    pub fn push_delta(
        &mut self,
        chunk: ChunkRef,
        bytes: &[u8],
        steps: &[DeltaStep<'_>],
    ) -> Result<(), ContentError> {
        assert!(!self.is_full(), "a full pack must be finished before more is pushed");
        assert!(bytes.len() <= RECORD_PLAIN_MAX, "chunk {} is too large for a delta", chunk.id);
        if !self.deltas.has_room(&chunk, steps) {
            self.seal_deltas()?;
        }
        self.deltas.push(chunk, bytes, steps);
        Ok(())
    }

    /// Adds neighbouring chunks of a file that come out of the chunks of its inflated form, `bases`, as a plan says
    /// ([`Inflated::plan`](crate::inflated::Inflated::plan)). Tells whether they are in the pack: else they are to be pushed like others.
    ///
    /// # Errors
    /// [`ContentError::Encode`].
    ///
    /// # Panics
    /// Where the pack is full.
    pub fn push_deflated(
        &mut self,
        chunks: &[ChunkRef],
        (plan, bases): (&[u8], &[ChunkRef]),
    ) -> Result<bool, ContentError> {
        assert!(!self.is_full(), "a full pack must be finished before more is pushed");
        let record = deflate::encode(chunks, (plan, bases), &mut self.encoder)?;
        Ok(record.map(|record| self.pack.push(&record)).is_some())
    }

    /// Adds the chunks of a file that is a picture, stored in this form ([`shorten`](crate::jpeg::shorten)). Tells whether they are in the
    /// pack: else they are to be pushed like others.
    ///
    /// # Errors
    /// [`ContentError::Encode`].
    ///
    /// # Panics
    /// Where the pack is full.
    pub fn push_picture(&mut self, chunks: &[ChunkRef], form: &[u8]) -> Result<bool, ContentError> {
        assert!(!self.is_full(), "a full pack must be finished before more is pushed");
        let Some(record) = jpeg::encode(chunks, form) else { return Ok(false) };
        self.push_record(&record)?;
        Ok(true)
    }

    /// Adds a record that is encoded already, as another pack has it.
    ///
    /// # Errors
    /// [`ContentError::Encode`].
    ///
    /// # Panics
    /// Where the pack is full.
    pub fn push_record(&mut self, record: &StoredRecord) -> Result<(), ContentError> {
        assert!(!self.is_full(), "a full pack must be finished before more is pushed");
        let open = self.record.plain_len() + self.deltas.plain_len();
        if self.pack.bytes.len() + open + record.bytes.len() > self.pack.target {
            // What is open must not come behind it: there may be no room.
            self.seal_deltas()?;
            if !self.record.is_empty() {
                self.seal_record()?;
            }
        }
        self.pack.push(record);
        Ok(())
    }

    /// Returns how many bytes records of these bytes would take.
    ///
    /// # Errors
    /// [`ContentError::Encode`].
    pub fn encoded_len(&mut self, plain: &[u8]) -> Result<usize, ContentError> {
        let mut stored = Vec::new();
        for record in plain.chunks(RECORD_PLAIN_MAX) {
            self.encoder.encode(record, &mut stored)?;
        }
        Ok(stored.len())
    }

    /// Returns how many plain bytes were pushed.
    pub fn plain_len(&self) -> u64 {
        self.pack.plain_length + (self.record.plain_len() + self.deltas.plain_len()) as u64
    }

    /// Returns how many bytes the pack would have at most if it were finished now.
    pub fn stored_len_max(&self) -> usize {
        self.stored_len_with(Addition::default())
    }

    /// Returns the same with one more record of this.
    fn stored_len_with(&self, more: Addition) -> usize {
        let open_chunks = self.record.chunks.len() + self.deltas.chunks.len();
        let chunks = self.pack.chunks.len() + open_chunks + more.chunks;
        let delta_records = usize::from(!self.deltas.is_empty());
        let more_records = usize::from(more.chunks > 0);
        let records = self.pack.records.len() + 1 + delta_records + more_records;
        let bases = self.pack.bases.len() + self.deltas.bases.len() + more.bases;
        let index = PackIndex::encoded_length_max(records, chunks, bases);
        let open = self.record.plain_len() + self.deltas.plain_len();
        let data = self.pack.bytes.len() + open + more.length;
        let tags = self.pack.guard.overhead() * (delta_records + more_records);
        let plain = data + tags + HEADER.len() + index + TRAILER_LENGTH;
        if self.pack.guard.is_sealed() { seal::pack_length_max(plain) } else { plain }
    }

    /// Tells whether it is time to finish the pack; nothing may be pushed any more.
    pub fn is_full(&self) -> bool {
        let DeltaRecord { chunks, bases, .. } = &self.deltas;
        self.pack.is_full_with(self.deltas.plain_len(), chunks.len(), bases.len())
    }

    /// Tells whether nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.pack.is_empty() && self.record.is_empty() && self.deltas.is_empty()
    }

    /// Finishes the pack, and prepares for the next.
    ///
    /// # Errors
    /// [`ContentError::Encode`], [`ContentError::PackTooLong`].
    ///
    /// # Panics
    /// Where the pack is empty.
    pub fn finish(&mut self) -> Result<FinishedPack, ContentError> {
        // These are counted where the pack is asked whether it is full, so that there is still room for the other one.
        self.seal_deltas()?;
        if !self.record.is_empty() {
            self.seal_record()?;
        }
        self.pack.finish()
    }

    /// Takes the bytes of a pack that is stored, so that the next ones need no fresh memory.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.pack.recycle(bytes);
    }

    /// Ends the record of chunks that are made from others, if there is one: what comes next has a record of its own.
    ///
    /// # Errors
    /// [`ContentError::Encode`].
    pub fn seal_deltas(&mut self) -> Result<(), ContentError> {
        if !self.deltas.is_empty() {
            let deltas = std::mem::take(&mut self.deltas);
            self.pack.push(&deltas.encode(&mut self.encoder)?);
        }
        Ok(())
    }

    fn seal_record(&mut self) -> Result<(), ContentError> {
        // Before what may be the largest chunk: nothing fits behind that.
        self.seal_deltas()?;
        self.pack.push_plain(&self.record, &mut self.encoder)?;
        self.record.clear();
        Ok(())
    }
}

/// Lays encoded records out as a pack.
#[derive(Debug)]
pub struct PackAssembler {
    guard: PackGuard,
    bytes: Vec<u8>,
    records: Vec<RecordEntry>,
    chunks: Vec<ChunkRef>,
    bases: Vec<ChunkRef>,
    plain_length: u64,
    spare: Vec<u8>,
    /// How many stored bytes a pack should have.
    target: usize,
}

impl PackAssembler {
    /// Prepares for the first pack; `guard` is that of the workspace.
    pub fn new(guard: &PackGuard) -> Self {
        Self {
            guard: guard.clone(),
            bytes: Vec::new(),
            records: Vec::new(),
            chunks: Vec::new(),
            bases: Vec::new(),
            plain_length: 0,
            spare: Vec::new(),
            target: PACK_STORED_TARGET,
        }
    }

    /// Adds a record behind the others.
    ///
    /// # Panics
    /// Where the pack is full.
    pub fn push(&mut self, record: &StoredRecord) {
        self.begin(record.chunks.len());
        self.bytes.extend_from_slice(&record.bytes);
        self.enter(&record.chunks, &record.bases, record.plain_length, record.transform);
    }

    /// Tells whether it is time to finish the pack. Two more records may be added at most, which an open record
    /// and a chunk that does not fit it need.
    pub fn is_full(&self) -> bool {
        self.is_full_with(0, 0, 0)
    }

    /// Tells the same with so many more bytes, chunks and bases, which are still to be pushed.
    fn is_full_with(&self, bytes: usize, chunks: usize, bases: usize) -> bool {
        // Half a record before the target, so that packs lie around it and not above.
        self.bytes.len() + bytes >= self.target - RECORD_PLAIN_MAX / 2
            || self.chunks.len() + chunks > PACK_CHUNKS_MAX - 2 * RECORD_CHUNKS_MAX
            || self.bases.len() + bases > PACK_BASES_MAX - 2 * RECORD_BASES_MAX
    }

    /// Tells whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Finishes the pack, seals it where the workspace is sealed, and prepares for the next.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`]; [`ContentError::PackTooLong`] of a pack that nobody could read, which must not be stored.
    ///
    /// # Panics
    /// Where the pack is empty.
    pub fn finish(&mut self) -> Result<FinishedPack, ContentError> {
        let (bytes, target) = (std::mem::take(&mut self.spare), self.target);
        let next = Self { bytes, target, ..Self::new(&self.guard) };
        let Self { mut bytes, records, chunks, bases, .. } = std::mem::replace(self, next);
        let index = PackIndex::new(records, chunks, bases, self.guard.fence());
        bytes[HEADER.len() - 1] = index.version(self.guard.is_sealed()).0;
        let index = match self.guard.begin(&index.encode())? {
            Some(boxes) => seal::seal_pack(&mut bytes, index, boxes)?,
            None => {
                lay_out_end(&mut bytes, &index);
                index
            }
        };
        let length = bytes.len() as u64;
        assert_eq!(length, index.pack_length(), "the index describes the pack");
        if length > PACK_LENGTH_MAX {
            return Err(ContentError::PackTooLong { length });
        }
        let id = PackId::from_bytes(*blake3::hash(&bytes).as_bytes());
        Ok(FinishedPack { id, bytes, index })
    }

    /// Takes the bytes of a pack that is stored, so that the next ones need no fresh memory.
    pub fn recycle(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        if self.bytes.is_empty() {
            self.bytes = bytes;
        } else {
            self.spare = bytes;
        }
    }

    fn push_plain(
        &mut self,
        record: &PlainRecord,
        encoder: &mut TransformEncoder,
    ) -> Result<(), ContentError> {
        self.begin(record.chunks.len());
        let transform = encoder.encode(&record.plain, &mut self.bytes)?;
        self.enter(&record.chunks, &[], record.plain.len(), transform);
        Ok(())
    }

    fn begin(&mut self, chunk_count: usize) {
        let fits = self.bytes.len() <= self.target + RECORD_PLAIN_MAX
            && self.chunks.len() + chunk_count <= PACK_CHUNKS_MAX;
        assert!(fits, "a full pack must be finished before more is pushed");
        if self.bytes.is_empty() {
            // Its version is known once all records are there.
            self.bytes.extend_from_slice(&HEADER);
        }
    }

    /// Enters the record whose stored bytes are all that no record claims yet.
    fn enter(
        &mut self,
        chunks: &[ChunkRef],
        bases: &[ChunkRef],
        plain_length: usize,
        transform: TransformTag,
    ) {
        let offset = self.records.last().map_or(HEADER.len(), RecordEntry::end);
        let stored_length = (self.bytes.len() - offset) as u32;
        // The tag comes once the pack is finished.
        let overhead = self.guard.overhead();
        self.bytes.resize(self.bytes.len() + overhead, 0);
        self.records.push(RecordEntry {
            offset: offset as u32,
            stored_length,
            plain_length: plain_length as u32,
            transform,
            first_chunk: self.chunks.len() as u32,
            chunk_count: chunks.len() as u32,
            first_base: self.bases.len() as u32,
            base_count: bases.len() as u32,
            overhead: overhead as u32,
        });
        self.chunks.extend_from_slice(chunks);
        self.bases.extend_from_slice(bases);
        self.plain_length += plain_length as u64;
    }
}

/// Lays index and trailer of a plain pack behind its records.
fn lay_out_end(bytes: &mut Vec<u8>, index: &PackIndex) {
    let encoded_index = index.encode();
    let mut trailer = Encoder::default();
    trailer.raw(&(encoded_index.len() as u32).to_le_bytes());
    trailer.raw(&[index.version(false).0]);
    trailer.raw(&TRAILER_MAGIC);
    let trailer = trailer.into_bytes();
    let hash = super::index::tail_hash(&encoded_index, &trailer);
    bytes.extend_from_slice(&encoded_index);
    bytes.extend_from_slice(&trailer);
    bytes.extend_from_slice(&hash);
}
