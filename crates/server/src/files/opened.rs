//! Records that are open: the last one of each request, and those of the server that took long to open.
//!
//! *Participants*: whoever reads files, each with records of its own ([`OpenRecords`]); the server, which keeps what others may want again
//! ([`DearRecords`]). *Goals*: neighbours of a chunk are mostly wanted next; documents and photographs are opened once, whoever reads them
//! in whatever pieces, but for two who want one at the same moment. *Invariants*: what is kept beside the last records is bounded by
//! bytes, what a request works by what it reads ([`WorkAllowance`]), and how many cores all of them take by [`openings_at_once_max`].
//! Nobody is asked here who may read what: whoever has the name of a record has found it in a pack of a workspace that may be read.

use std::collections::VecDeque;
use std::sync::Arc;

use content::pack::WorkAllowance;
use content::transform::TransformTag;
use content::{ContentError, Record};
use model::{PackId, WorkspaceId};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::openings_at_once_max;

/// How many bytes of records that took long to open are kept; a short one counts as so many: they are looked through one by one.
const DEAR_LENGTH_MAX: usize = 64 * 1024 * 1024;
const DEAR_LENGTH_MIN: usize = 16 * 1024;

/// A record of a pack of a workspace.
pub(super) type RecordName = (WorkspaceId, PackId, usize);

/// The last record that a request has opened, and how much that has worked.
#[derive(Debug, Default)]
pub(super) struct OpenRecords {
    last: Option<(RecordName, Arc<Record>)>,
    pub(super) allowance: WorkAllowance,
}

impl OpenRecords {
    /// Tells whether a record is the last one.
    pub(super) fn has(&self, name: &RecordName) -> bool {
        self.last.as_ref().is_some_and(|(last, _)| last == name)
    }

    /// Takes a record as the last one.
    pub(super) fn keep(&mut self, name: RecordName, record: Arc<Record>) {
        self.last = Some((name, record));
    }

    /// Returns the bytes of a chunk of the last record, compared with its id.
    ///
    /// # Errors
    /// Those of [`Record::chunk`].
    pub(super) fn chunk(&self, position: usize) -> Result<&[u8], ContentError> {
        let missing = ContentError::NoSuchChunk { position, count: 0 };
        self.last.as_ref().ok_or(missing)?.1.chunk(position)
    }
}

/// Records that took long to open, the one that was used last at the end.
#[derive(Debug)]
pub(super) struct DearRecords {
    kept: Mutex<VecDeque<(RecordName, Arc<Record>)>>,
    /// A permit for each that is being opened.
    openings: Arc<Semaphore>,
}

impl Default for DearRecords {
    fn default() -> Self {
        let openings = Arc::new(Semaphore::new(openings_at_once_max()));
        Self { kept: Mutex::default(), openings }
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

    /// Returns a record that is open.
    pub(super) fn get(&self, name: &RecordName) -> Option<Arc<Record>> {
        let mut kept = self.kept.lock();
        let place = kept.iter().position(|(open, _)| open == name)?;
        let used = kept.remove(place)?;
        let record = Arc::clone(&used.1);
        kept.push_back(used);
        Some(record)
    }

    /// Keeps a record that was opened.
    pub(super) fn keep(&self, name: RecordName, record: &Arc<Record>) {
        let mut kept = self.kept.lock();
        kept.retain(|(open, _)| *open != name);
        kept.push_back((name, Arc::clone(record)));
        let weight = |open: &Record| open.plain_len().max(DEAR_LENGTH_MIN);
        let mut length: usize = kept.iter().map(|(_, open)| weight(open)).sum();
        while length > DEAR_LENGTH_MAX
            && let Some((_, oldest)) = kept.pop_front()
        {
            length -= weight(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;
