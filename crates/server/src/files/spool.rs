//! Keeps a body aside until it is whole: how a file is cut depends on all of it, and its checksum is known at its end.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::BodyDataStream;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::checksums::{Checksums, Summing};
use crate::blocking;
use crate::error::{Result, ServerError};
use crate::limits::{BODY_WAIT_TIMEOUT, FILE_LENGTH_MAX};

/// Bodies up to this many bytes stay in memory, and so much of a longer one is written at once.
const MEMORY_MAX: usize = 1024 * 1024;

/// How many bodies are kept aside at once at most.
const SPOOLS_MAX: usize = 64;

/// How much of a body is copied at once, in bytes.
const COPY_LENGTH: usize = 256 * 1024;

/// Where bodies are kept aside, and how many at once.
#[derive(Debug, Clone)]
pub struct Spools {
    aside: PathBuf,
    permits: Arc<Semaphore>,
}

impl Spools {
    /// Keeps long bodies in a folder, under no name.
    pub fn new(aside: PathBuf) -> Self {
        Self { aside, permits: Arc::new(Semaphore::new(SPOOLS_MAX)) }
    }

    /// Returns how many more may be kept.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.permits.available_permits()
    }
}

/// A body that is coming in.
#[derive(Debug)]
pub struct Spool {
    aside: PathBuf,
    memory: Vec<u8>,
    /// What did not fit into memory, in a file without a name, which nobody has to remove.
    file: Option<File>,
    length: u64,
    length_max: u64,
    /// Where somebody may ask for its checksums.
    summing: Option<Summing>,
    permit: Option<OwnedSemaphorePermit>,
}

/// A body that is whole. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Spooled {
    pub(super) source: Source,
    /// Its length in bytes.
    pub length: u64,
    /// Its checksums, if it is a file that came as it is.
    pub checksums: Option<Checksums>,
    _permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl Spooled {
    /// Writes all of it, as often as it is asked to. It blocks.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write_to(&self, target: &mut dyn Write) -> std::io::Result<()> {
        match &self.source {
            Source::Memory(bytes) => target.write_all(bytes),
            Source::File(_) => std::io::copy(&mut self.read(), target).map(drop),
        }
    }

    /// Returns what reads it from its beginning, as often as it is asked to. It blocks.
    pub(super) fn read(&self) -> Box<dyn Read + '_> {
        match &self.source {
            Source::Memory(bytes) => Box::new(&bytes[..]),
            Source::File(file) => {
                Box::new(BufReader::with_capacity(COPY_LENGTH, SpooledFile::new(file)))
            }
        }
    }
}

/// Reads a file that is kept aside from a place of its own. Whoever has given up may still read the same one: with one place for both,
/// each would get a part of the bytes.
#[derive(Debug)]
pub(super) struct SpooledFile<'a> {
    file: &'a File,
    place: u64,
}

impl<'a> SpooledFile<'a> {
    pub(super) fn new(file: &'a File) -> Self {
        Self { file, place: 0 }
    }

    /// Sets from where in bytes it is read next.
    pub(super) fn go_to(&mut self, place: u64) {
        self.place = place;
    }
}

impl Read for SpooledFile<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(into, self.place)?;
        self.place += read as u64;
        Ok(read)
    }
}

/// Where the bytes of a body are; cheap to clone.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Memory(Arc<Vec<u8>>),
    File(Arc<File>),
}

impl Spool {
    /// Begins what is no file, or one that nobody sends as it is.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`] where too many bodies are kept aside.
    pub async fn begin(spools: &Spools) -> Result<Self> {
        let permit = Arc::clone(&spools.permits).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(BODY_WAIT_TIMEOUT, permit).await else {
            return Err(ServerError::Unavailable { reason: "receives too many files at once" });
        };
        Ok(Self { permit: Some(permit), ..Self::begin_short(spools, FILE_LENGTH_MAX) })
    }

    /// Begins what has at most so many bytes, which are fewer than the memory of its connection. It may come from anybody, so it takes no
    /// place from those who were let in.
    pub fn begin_short(spools: &Spools, length_max: u64) -> Self {
        let (aside, memory) = (spools.aside.clone(), Vec::new());
        Self { aside, memory, file: None, length: 0, length_max, summing: None, permit: None }
    }

    /// Begins a file. To sum it up three times takes longer than all that happens to it otherwise.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub async fn begin_file(spools: &Spools) -> Result<Self> {
        Ok(Self { summing: Some(Summing::default()), ..Self::begin(spools).await? })
    }

    /// Returns how many bytes have come.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Takes all of a body.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] where it breaks off: what has come is kept. [`ServerError::TooLarge`];
    /// [`ServerError::Storage`] where the disk is full.
    pub async fn take(&mut self, body: &mut BodyDataStream) -> Result<()> {
        while let Some(bytes) = body.next().await {
            let broken =
                |_| ServerError::Invalid { what: "body", reason: "it broke off".to_owned() };
            self.push(bytes.map_err(broken)?).await?;
        }
        Ok(())
    }

    async fn push(&mut self, bytes: Bytes) -> Result<()> {
        if self.length + bytes.len() as u64 > self.length_max {
            return Err(ServerError::TooLarge { what: "file", length_max: self.length_max });
        }
        if self.keep(&bytes) { self.flush().await } else { Ok(()) }
    }

    /// Keeps bytes in memory; tells whether that is full.
    fn keep(&mut self, bytes: &[u8]) -> bool {
        if let Some(summing) = &mut self.summing {
            summing.update(bytes);
        }
        self.memory.extend_from_slice(bytes);
        self.length += bytes.len() as u64;
        self.memory.len() > MEMORY_MAX
    }

    async fn flush(&mut self) -> Result<()> {
        let (memory, file) = (std::mem::take(&mut self.memory), self.file.take());
        let folder = self.aside.clone();
        let write = move || {
            let mut file = file.map_or_else(|| tempfile::tempfile_in(folder), Ok)?;
            file.write_all(&memory)?;
            Ok(file)
        };
        let written = blocking::piece(write).await?;
        self.file = Some(written.map_err(|error: std::io::Error| failed(&error))?);
        Ok(())
    }

    /// Ends the body.
    ///
    /// # Errors
    /// [`ServerError::Storage`] where the disk is full.
    pub async fn finish(mut self) -> Result<Spooled> {
        if self.file.is_some() {
            self.flush().await?;
        }
        let source = match self.file {
            Some(file) => Source::File(Arc::new(file)),
            None => Source::Memory(Arc::new(self.memory)),
        };
        let (length, checksums) = (self.length, self.summing.map(Summing::finish));
        Ok(Spooled { source, length, checksums, _permit: self.permit.map(Arc::new) })
    }
}

pub(super) fn failed(error: &std::io::Error) -> ServerError {
    ServerError::Storage {
        text: format!("a file that is being received cannot be kept aside: {error}"),
        is_full: error.kind() == std::io::ErrorKind::StorageFull,
        is_damage: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_who_read_at_once_get_all_bytes_each() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::begin(&Spools::new(folder.path().to_owned())).await.unwrap();
        let bytes: Vec<u8> = (0..3 * MEMORY_MAX).map(|at| (at % 251) as u8).collect();
        for part in bytes.chunks(MEMORY_MAX / 2) {
            spool.push(Bytes::copy_from_slice(part)).await.unwrap();
        }
        let spooled = spool.finish().await.unwrap();
        assert!(matches!(spooled.source, Source::File(_)));
        let (mut one, mut other) = (spooled.read(), spooled.read());
        let (mut of_one, mut of_other) = (vec![0; 1000], vec![0; COPY_LENGTH + 7]);
        one.read_exact(&mut of_one).unwrap();
        other.read_exact(&mut of_other).unwrap();
        one.read_to_end(&mut of_one).unwrap();
        other.read_to_end(&mut of_other).unwrap();
        assert!(of_one == bytes && of_other == bytes);
    }
}
