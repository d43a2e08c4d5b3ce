//! The files of plain workspaces: the folded view of a log, kept up to date, and what is read and written through it.
//!
//! *Participants*: the doors of files ([`crate::doors::files`], WebDAV), which ask; the pure rules of [`services::files`](crate::services::files),
//! which say what changes; the readers, the writer and the store, which devices use, too. *Goals*: what is written here is what a device
//! would write, so that chunks are shared and devices read it; a write goes through the same writer as the commits of
//! devices, so that quotas, access and events are the same. *Non-goals*: sealed workspaces, which the server cannot read.
//! *Invariants*: memory is bounded, whatever the number of workspaces and the length of files; who was first wins, and the
//! other is told; nobody reads a byte that was not compared with the id of its chunk.

mod bases;
mod checksums;
mod delta;
mod history;
mod opened;
mod packs;
mod reading;
mod restoring;
mod searching;
mod spool;
mod uploads;
mod usage;
mod views;
mod writing;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::Content;
use model::codec::{Encode, Encoder};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

pub use checksums::{Algorithm, Checksum, Checksums, KnownChecksums};
pub use delta::DeltaAnswer;
pub use history::VersionPage;
pub(crate) use reading::READER_MEMORY;
pub use reading::{FileReader, Recipient};
pub use searching::{Found, FoundPage};
pub use spool::{Spool, Spooled, Spools};
pub use uploads::{UPLOAD_LIFE, UploadState};
pub use usage::Usage;
pub(crate) use views::Author;
pub use views::ViewGuard;
pub use writing::{Applied, Put};

use crate::blocking::Threads;
use crate::limits::SEARCHES_AT_ONCE_MAX;
use crate::services::locks::Locks;

/// How many clients listen to events without a live connection at most.
const LISTENERS_MAX: usize = 1000;

/// Live connections count from 1, listeners from here.
const FIRST_LISTENER: u64 = 1 << 63;

/// What all requests for files share.
#[derive(Debug)]
pub struct Files {
    views: views::Views,
    indexes: packs::Indexes,
    dear_records: Arc<opened::DearRecords>,
    /// Those that deltas were made from lately: the next message, or the next edit, is mostly about the same.
    edited_records: Arc<opened::KeptRecords>,
    checksums: KnownChecksums,
    /// Where bodies are kept until they are whole.
    pub spools: Spools,
    pub(crate) uploads: uploads::Uploads,
    sessions: delta::Sessions,
    usages: usage::Usages,
    /// Who has locked what.
    pub locks: Locks,
    /// Where requests of many pieces work.
    pub(crate) threads: Threads,
    listeners: Arc<Semaphore>,
    /// A permit per search that looks at names.
    searches: Arc<Semaphore>,
    next_listener: AtomicU64,
    stopping: watch::Sender<bool>,
}

impl Files {
    /// Keeps long bodies in a folder, under no name.
    pub fn new(aside: PathBuf) -> Self {
        Self {
            views: views::Views::default(),
            indexes: packs::Indexes::default(),
            dear_records: Arc::default(),
            edited_records: Arc::default(),
            checksums: KnownChecksums::default(),
            spools: Spools::new(aside),
            uploads: uploads::Uploads::default(),
            sessions: delta::Sessions::default(),
            usages: usage::Usages::default(),
            locks: Locks::default(),
            threads: Threads::default(),
            listeners: Arc::new(Semaphore::new(LISTENERS_MAX)),
            searches: Arc::new(Semaphore::new(SEARCHES_AT_ONCE_MAX)),
            next_listener: AtomicU64::new(FIRST_LISTENER),
            stopping: watch::Sender::new(false),
        }
    }

    /// Returns a permit to listen to events, if there are not too many listeners.
    pub fn try_listen(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.listeners).try_acquire_owned().ok()
    }

    /// Returns the number of a new listener.
    pub fn new_listener(&self) -> u64 {
        self.next_listener.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells all listeners that the server stops.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Returns what tells that the server stops.
    pub fn stopped(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Returns the checksums of a content that came in lately.
    pub fn checksums(&self, content: &Content) -> Option<Checksums> {
        self.checksums.get(&content_key(content))
    }
}

/// The ids of chunks are keyed by workspace, so that no two workspaces share a key.
fn content_key(content: &Content) -> [u8; 32] {
    let mut encoder = Encoder::default();
    content.encode(&mut encoder);
    *blake3::hash(&encoder.into_bytes()).as_bytes()
}
