//! Records that are open: the last one of each request, those of the server that took long to open, and those that deltas were made from.
//!
//! *Participants*: whoever reads files, each with records of its own ([`OpenRecords`]); the server, which keeps what others may want again
//! ([`DearRecords`]), and what the next message or edit of who sends deltas is about. *Goals*: neighbours of a chunk are mostly wanted next;
//! documents and photographs are opened once, whoever reads them in whatever pieces, but for two who want one at the same moment. *Invariants*: what is kept beside the last records is bounded by
//! bytes, what a request works by what it reads ([`WorkAllowance`]), and how many cores all of them take by [`openings_at_once_max`].
//! Nobody is asked here who may read what: whoever has the name of a record has found it in a pack of a workspace that may be read.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use content::pack::WorkAllowance;
use content::transform::TransformTag;
use content::{ContentError, Record};
use model::{ChunkRef, PackId, WorkspaceId};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::openings_at_once_max;

/// How many bytes of memory records may take that are kept, of each kind.
const KEPT_LENGTH_MAX: usize = 64 * 1024 * 1024;
/// What is remembered of each beside it.
const KEPT_OVERHEAD: usize = 512;

/// A record of a pack of a workspace.
pub(super) type RecordName = (WorkspaceId, PackId, usize);

/// The last record that a request has opened, and how much that has worked.
#[derive(Debug, Default)]
pub(super) struct OpenRecords {
    last: Option<(RecordName, Arc<Record>)>,
    /// Which of its chunks was wanted last.
    position: usize,
    /// Where those are kept that somebody is going to read again.
    pub(super) again: Option<Arc<KeptRecords>>,
    pub(super) allowance: WorkAllowance,
}

impl OpenRecords {
    /// Keeps what is opened for who reads it again.
    pub(super) fn again(kept: &Arc<KeptRecords>) -> Self {
        Self { again: Some(Arc::clone(kept)), ..Self::default() }
    }

    /// Tells whether a record is the last one.
    pub(super) fn has(&self, name: &RecordName) -> bool {
        self.last.as_ref().is_some_and(|(last, _)| last == name)
    }

    /// Takes a record as the last one.
    pub(super) fn keep(&mut self, name: RecordName, record: Arc<Record>) {
        self.last = Some((name, record));
    }

    /// Forgets a record that is damaged, here and among those that took long to open: its pack may be mended.
    pub(super) fn forget(&mut self, name: &RecordName, dear: &DearRecords) {
        self.last = None;
        for kept in self.again.as_deref().into_iter().chain([&dear.kept]) {
            kept.0.lock().take(name);
        }
    }

    /// Returns the bytes of a chunk of the last record, compared with its id.
    ///
    /// # Errors
    /// Those of [`Record::chunk`].
    pub(super) fn chunk(&mut self, position: usize) -> Result<&[u8], ContentError> {
        let missing = ContentError::NoSuchChunk { position, count: 0 };
        self.position = position;
        self.last.as_ref().ok_or(missing)?.1.chunk(position)
    }

    /// Returns the same where the chunk is the one that was wanted last, or the one behind it in its record: nobody needs to look for that
    /// in packs. What is not what its id says is not returned, so that whoever looks for it finds it elsewhere.
    pub(super) fn near(&mut self, chunk: &ChunkRef) -> Option<&[u8]> {
        let record = &self.last.as_ref()?.1;
        let mut near = self.position..=self.position + 1;
        self.position = near.find(|&position| record.chunk_at(position) == Some(*chunk))?;
        record.chunk(self.position).ok()
    }
}

/// Records that took long to open.
#[derive(Debug)]
pub(super) struct DearRecords {
    pub(super) kept: KeptRecords,
    /// A permit for each that is being opened.
    openings: Arc<Semaphore>,
}

impl Default for DearRecords {
    fn default() -> Self {
        let openings = Arc::new(Semaphore::new(openings_at_once_max()));
        Self { kept: KeptRecords::default(), openings }
    }
}

impl DearRecords {
    /// Tells whether such records take long to open.
    pub(super) fn are(transform: TransformTag) -> bool {
        matches!(transform, TransformTag::Deflate | TransformTag::Jpeg)
    }

    /// Waits until one more may be opened.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.openings).acquire_owned().await.ok()
    }
}

/// Records that stay open, until others were used after them that take all the memory.
#[derive(Debug, Default)]
pub(super) struct KeptRecords(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    records: HashMap<RecordName, (u64, Arc<Record>)>,
    /// The same in the order in which they were used.
    uses: BTreeMap<u64, RecordName>,
    /// The number of the next use.
    next: u64,
    length: usize,
}

impl Kept {
    fn take(&mut self, name: &RecordName) -> Option<Arc<Record>> {
        let (used, record) = self.records.remove(name)?;
        self.uses.remove(&used);
        self.length -= weight(&record);
        Some(record)
    }

    fn add(&mut self, name: RecordName, record: Arc<Record>) {
        self.length += weight(&record);
        self.records.insert(name, (self.next, record));
        self.uses.insert(self.next, name);
        self.next += 1;
    }
}

fn weight(record: &Record) -> usize {
    record.memory_len() + KEPT_OVERHEAD
}

impl KeptRecords {
    /// Returns a record that is open.
    pub(super) fn get(&self, name: &RecordName) -> Option<Arc<Record>> {
        let mut kept = self.0.lock();
        let record = kept.take(name)?;
        kept.add(*name, Arc::clone(&record));
        Some(record)
    }

    /// Keeps a record that was opened.
    pub(super) fn keep(&self, name: RecordName, record: &Arc<Record>) {
        let mut kept = self.0.lock();
        kept.take(&name);
        kept.add(name, Arc::clone(record));
        while kept.length > KEPT_LENGTH_MAX
            && let Some((_, oldest)) = kept.uses.pop_first()
        {
            let gone = kept.records.remove(&oldest);
            kept.length -= gone.map_or(0, |(_, record)| weight(&record));
        }
    }
}

#[cfg(test)]
mod tests;
