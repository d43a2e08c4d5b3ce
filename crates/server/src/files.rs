//! The files of plain workspaces: the folded view of a log, kept up to date, and what is read and written through it.
//!
//! *Participants*: the doors of files ([`crate::doors::files`], WebDAV), which ask; the pure rules of [`services::files`](crate::services::files),
//! which say what changes; the readers, the writer and the store, which devices use, too. *Goals*: what is written here is what a device
//! would write, so that chunks are shared and devices read it; a write goes through the same writer as the commits of
//! devices, so that quotas, access and events are the same. *Non-goals*: sealed workspaces, which the server cannot read.
//! *Invariants*: memory is bounded, whatever the number of workspaces and the length of files; who was first wins, and the
//! other is told; nobody reads a byte that was not compared with the id of its chunk.

mod checksums;
mod history;
mod packs;
mod reading;
mod spool;
mod views;
mod writing;

use std::path::PathBuf;
use std::sync::Arc;

use model::Content;
use tokio::sync::Semaphore;

pub use checksums::{Algorithm, Checksum, Checksums};
pub use history::VersionPage;
pub use reading::FileReader;
pub use spool::{Spool, Spooled};
pub use views::ViewGuard;
pub use writing::{Applied, Put};

use crate::services::locks::Locks;

impl Files {
    /// Returns the checksums of a content that came in lately.
    pub fn checksums(&self, content: &Content) -> Option<Checksums> {
        self.checksums.get(content)
    }
}

/// How many bodies are kept aside at once at most.
const SPOOLS_MAX: usize = 64;

/// What all requests for files share.
#[derive(Debug)]
pub struct Files {
    views: views::Views,
    indexes: packs::Indexes,
    checksums: checksums::KnownChecksums,
    /// Where long bodies are kept until they are whole.
    aside: PathBuf,
    spools: Arc<Semaphore>,
    /// Who has locked what.
    pub locks: Locks,
}

impl Files {
    /// Keeps long bodies in a folder, under no name.
    pub fn new(aside: PathBuf) -> Self {
        Self {
            views: views::Views::default(),
            indexes: packs::Indexes::default(),
            checksums: checksums::KnownChecksums::default(),
            aside,
            spools: Arc::new(Semaphore::new(SPOOLS_MAX)),
            locks: Locks::default(),
        }
    }
}
