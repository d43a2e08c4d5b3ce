//! A folder as one ZIP file (APPNOTE 6.3.10), while it is read: files are stored as they are, one after the other, so that its length is known
//! before its first byte, and memory does not grow with the files.
//!
//! *Participants*: whoever reads the files, a server ([`ArchiveWriting`]) or a page that opens a sealed workspace ([`ArchiveReading`]).
//! *Invariants*: what is in it was there when it began; a file is followed by its checksum, which is known only then; lengths and offsets
//! that do not fit into 32 bits are written with 64 (ZIP64), and only those. A name never leads out of where it is unpacked, and no two are
//! equal, byte by byte; to a system for which `A` and `a` are, they may be.

use model::Content;

pub use layout::{ENTRIES_MAX, Entry, Layout, Member};
pub use reading::{ArchiveReading, READ_LENGTH_MAX};

mod layout;
mod names;
mod reading;

/// How many lines of the directory at the end are given at once.
const LINES_AT_ONCE: usize = 512;

/// What comes next of an archive.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The bytes of a file, each of which goes through [`ArchiveWriting::pass`]; behind them comes [`ArchiveWriting::finish`].
    Content(&'a Content),
    /// Nothing any more.
    End,
}

/// An archive on its way out.
#[derive(Debug)]
pub struct ArchiveWriting {
    layout: Layout,
    step: Step,
    /// The checksum of the file that is read, so far.
    checksum: crc32fast::Hasher,
}

/// What comes next.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The header of an entry.
    Header(usize),
    /// The bytes of an entry.
    Content(usize),
    /// Lines of the directory from an entry on.
    Directory(usize),
    End,
}

impl ArchiveWriting {
    /// Begins at the first byte.
    pub fn new(layout: Layout) -> Self {
        Self { layout, step: Step::Header(0), checksum: crc32fast::Hasher::new() }
    }

    /// Returns how long it is in all.
    pub fn length(&self) -> u64 {
        self.layout.length()
    }

    /// Returns the file whose bytes come now, if some do.
    pub fn current(&self) -> Option<&Entry> {
        let Step::Content(index) = self.step else { return None };
        self.layout.entries().get(index)
    }

    /// Tells whether all was given.
    pub fn is_over(&self) -> bool {
        matches!(self.step, Step::End)
    }

    /// Returns what comes next; the same where that is the content of a file, until it is finished.
    pub fn next_piece(&mut self) -> Piece<'_> {
        let count = self.layout.entries().len();
        match self.step {
            Step::Header(index) if index < count => {
                let is_file = self.layout.entries()[index].content().is_some();
                self.step = if is_file { Step::Content(index) } else { Step::Header(index + 1) };
                Piece::Bytes(self.layout.header(index))
            }
            Step::Content(index) => {
                let content = self.layout.entries()[index].content();
                Piece::Content(content.expect("a file has content"))
            }
            Step::Header(_) => self.lines(0),
            Step::Directory(index) => self.lines(index),
            Step::End => Piece::End,
        }
    }

    /// Returns lines of the directory, or the end behind them.
    fn lines(&mut self, index: usize) -> Piece<'_> {
        let count = self.layout.entries().len();
        if index >= count {
            self.step = Step::End;
            return Piece::Bytes(self.layout.end());
        }
        let end = count.min(index + LINES_AT_ONCE);
        self.step = Step::Directory(end);
        Piece::Bytes(self.layout.directory(index..end))
    }

    /// Takes note of bytes of the file, which are given to whoever reads the archive.
    pub fn pass(&mut self, bytes: &[u8]) {
        self.checksum.update(bytes);
    }

    /// Ends a file; returns what stands behind its bytes.
    pub fn finish(&mut self) -> Vec<u8> {
        let Step::Content(index) = self.step else { return Vec::new() };
        self.step = Step::Header(index + 1);
        let checksum = std::mem::replace(&mut self.checksum, crc32fast::Hasher::new());
        self.layout.finish(index, checksum.finalize())
    }
}
