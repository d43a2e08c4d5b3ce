//! A folder of a sealed workspace as an archive, for whoever fetches parts of packs. It is read as a file is.

use model::{Content, Entry, NodeId, Tree};

use super::{ArchiveWriting, Layout, Member, Piece};
use crate::error::ContentError;
use crate::listing::mounts_around;
use crate::reading::{FileReading, PackPart};
use crate::replay::Packs;

/// How many bytes are read at once, where nobody says how many: files of which all is here follow each other.
pub const READ_LENGTH_MAX: usize = 4 * 1024 * 1024;

/// A folder on its way out.
#[derive(Debug)]
pub struct ArchiveReading {
    writing: ArchiveWriting,
    /// Reads the file that comes now, or has read the one before: what it has open serves the next one.
    file: Option<FileReading>,
    /// Whether bytes of the file come now.
    is_reading: bool,
    /// Bytes beside those of files, and how many of them were given.
    beside: (Vec<u8>, usize),
}

impl ArchiveReading {
    /// Begins to read a folder with everything in it but links and workspaces of their own; nothing where the folder is not there, or
    /// belongs to a workspace of its own.
    ///
    /// # Errors
    /// [`ContentError::TooMuchToArchive`].
    pub fn new(tree: &Tree, folder: NodeId) -> Result<Option<Self>, ContentError> {
        let Some(mounts) = mounts_around(tree, folder) else { return Ok(None) };
        let member = |id: NodeId| {
            let node = tree.get(&id).filter(|_| !mounts.contains(&id))?;
            Some(Member { key: id, record: node.record.clone() })
        };
        let list = |folder: &NodeId| -> Vec<_> {
            tree.children(folder).filter_map(|(_, &id)| member(id)).collect()
        };
        let members = match folder {
            NodeId::ROOT => list(&folder),
            folder => member(folder).into_iter().collect(),
        };
        let writing = ArchiveWriting::new(Layout::of(members, list)?);
        Ok(Some(Self { writing, file: None, is_reading: false, beside: (Vec::new(), 0) }))
    }

    /// Returns how long it is in all.
    pub fn length(&self) -> u64 {
        self.writing.length()
    }

    /// Returns the path of the file that is read, as the archive has it.
    pub fn current(&self) -> Option<String> {
        let path = self.writing.current()?.path();
        Some(String::from_utf8_lossy(path).into_owned())
    }

    /// Returns what is to be fetched now, as [`FileReading::wanted`]; nothing between files.
    ///
    /// # Errors
    /// As [`FileReading::wanted`].
    pub fn wanted(&mut self, packs: &Packs) -> Result<&[PackPart], ContentError> {
        match &mut self.file {
            Some(file) if self.is_reading => file.wanted(packs),
            _ => Ok(&[]),
        }
    }

    /// Takes the bytes of a part that was wanted.
    ///
    /// # Errors
    /// As [`FileReading::take`].
    pub fn take(
        &mut self,
        packs: &mut Packs,
        number: usize,
        bytes: &[u8],
    ) -> Result<(), ContentError> {
        self.file(number)?.take(packs, number, bytes)
    }

    /// Takes an entry with a pack that travelled in it.
    ///
    /// # Errors
    /// As [`FileReading::take_entry`].
    pub fn take_entry(
        &mut self,
        packs: &mut Packs,
        number: usize,
        entry: &Entry,
    ) -> Result<(), ContentError> {
        self.file(number)?.take_entry(packs, number, entry)
    }

    fn file(&mut self, record: usize) -> Result<&mut FileReading, ContentError> {
        self.file.as_mut().ok_or(ContentError::NoSuchRecord { record, count: 0 })
    }

    /// Returns bytes that follow, as [`FileReading::read`], but no more than [`READ_LENGTH_MAX`].
    ///
    /// # Errors
    /// As [`Self::read_to`].
    pub fn read(&mut self, packs: &Packs) -> Result<Vec<u8>, ContentError> {
        let mut bytes = Vec::new();
        self.read_to(packs, READ_LENGTH_MAX, |piece| bytes.extend_from_slice(piece))?;
        Ok(bytes)
    }

    /// Gives bytes that follow, as [`FileReading::read_to`].
    ///
    /// # Errors
    /// As [`FileReading::read_to`]; what came before is not the archive then.
    pub fn read_to(
        &mut self,
        packs: &Packs,
        room: usize,
        mut put: impl FnMut(&[u8]),
    ) -> Result<usize, ContentError> {
        let mut length = 0;
        while length < room {
            let given = self.give_beside(room - length, &mut put);
            length += given;
            if given > 0 {
                continue;
            }
            if let Some(file) = self.file.as_mut().filter(|_| self.is_reading) {
                let writing = &mut self.writing;
                let given = file.read_to(packs, room - length, |piece| {
                    writing.pass(piece);
                    put(piece);
                })?;
                length += given;
                if file.is_over(packs)? {
                    self.is_reading = false;
                    self.beside = (self.writing.finish(), 0);
                } else {
                    // The rest would be cut again for whoever has more room.
                    break;
                }
                continue;
            }
            match self.writing.next_piece() {
                Piece::Bytes(bytes) => self.beside = (bytes, 0),
                Piece::Content(content) => {
                    self.file = Some(reader_of(self.file.take(), content)?);
                    self.is_reading = true;
                }
                Piece::End => break,
            }
        }
        Ok(length)
    }

    /// Gives bytes beside those of files; returns how many.
    fn give_beside(&mut self, room: usize, mut put: impl FnMut(&[u8])) -> usize {
        let (bytes, given) = &mut self.beside;
        let rest = &bytes[*given..];
        let piece = &rest[..rest.len().min(room)];
        if !piece.is_empty() {
            put(piece);
        }
        let length = piece.len();
        *given += length;
        length
    }

    /// Tells whether all of it was read.
    pub fn is_over(&self) -> bool {
        self.writing.is_over() && self.beside.1 == self.beside.0.len()
    }
}

fn reader_of(before: Option<FileReading>, content: &Content) -> Result<FileReading, ContentError> {
    match before {
        Some(before) => before.follow(content),
        None => FileReading::new(content),
    }
}

#[cfg(test)]
mod tests;
