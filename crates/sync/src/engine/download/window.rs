//! Windows: pieces of files that are fetched and written at once, so that memory does not grow with the files.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::sync::Arc;

use content::ChunkNamer;
use content::packing::KeptBuilder;
use model::{ChunkRef, NodeId, RelativePath, Timestamp};

use super::{WINDOW_LENGTH, WINDOW_RECORDS_MAX};
use crate::chunk_reader::OpenRecords;
use crate::error::{Result, SyncError};
use crate::file_system::{FileError, FileSystem, OpenFile, StageToken, StagedFile};
use crate::state::ChunkPlace;

/// Where the bytes of a chunk come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// From a record of a pack.
    Store(ChunkPlace),
    /// From the version in the folder, this many bytes from its start.
    Folder(u64),
}

/// A piece of a file in one window.
pub(super) struct Piece {
    /// Number of the file among the targets.
    pub(super) target: usize,
    pub(super) chunks: Vec<(ChunkRef, Source)>,
    /// Where chunks begin in the version in the folder, in bytes.
    pub(super) old: Arc<HashMap<ChunkRef, u64>>,
}

/// Pieces that are fetched and written at once; each with whether its file ends with it.
#[derive(Default)]
pub(super) struct Window {
    pub(super) pieces: Vec<(Piece, bool)>,
    /// Plain bytes of all pieces.
    pub(super) length: u64,
    /// The records of those that were cut from a file.
    records: HashSet<ChunkPlace>,
}

impl Window {
    /// Makes a window of a piece of another one.
    pub(super) fn of_one(piece: (Piece, bool)) -> Self {
        Self { pieces: vec![piece], length: WINDOW_LENGTH, ..Self::default() }
    }

    /// Counts a chunk, and tells whether the window is full with it.
    pub(super) fn is_full_with(&mut self, chunk: &ChunkRef, source: Source) -> bool {
        self.length += u64::from(chunk.length);
        if let Source::Store(place) = source {
            self.records.insert(place);
        }
        self.length >= WINDOW_LENGTH || self.records.len() >= WINDOW_RECORDS_MAX
    }

    /// Returns the records that are needed.
    pub(super) fn places(&self) -> impl Iterator<Item = ChunkPlace> + '_ {
        self.pieces.iter().flat_map(|(piece, _)| piece.places())
    }
}

impl Piece {
    /// Returns the records that are needed.
    pub(super) fn places(&self) -> impl Iterator<Item = ChunkPlace> + '_ {
        self.chunks.iter().filter_map(|(_, source)| match source {
            Source::Store(place) => Some(*place),
            Source::Folder(_) => None,
        })
    }
}

/// A file between two windows.
pub(super) struct OpenTarget {
    staged: Box<dyn StagedFile>,
    base: Option<Box<dyn OpenFile>>,
    /// What is kept of it for its next version here, so far.
    sketch: Option<KeptBuilder>,
}

/// What became of a file with a piece.
pub(super) enum Progress {
    /// More of it follows.
    Open(Box<OpenTarget>),
    /// It is whole; with what to keep of it for its next version.
    Ended(Option<Vec<u8>>),
}

/// The writing of one piece.
pub(super) struct PieceWrite {
    pub(super) open: Option<OpenTarget>,
    pub(super) node: NodeId,
    pub(super) token: StageToken,
    pub(super) path: RelativePath,
    pub(super) namer: ChunkNamer,
    /// With what a sketch of the file begins, where one is made and this is its first piece.
    pub(super) sketch: Option<KeptBuilder>,
    /// Mode, time and average chunk size, where the file ends with this piece.
    pub(super) finish: Option<(u32, Timestamp, u32)>,
    pub(super) piece: Piece,
}

impl PieceWrite {
    /// Writes the piece.
    pub(super) fn run(
        self,
        file_system: &dyn FileSystem,
        opened: &OpenRecords,
    ) -> Result<Progress> {
        let mut open = match self.open {
            Some(open) => open,
            None => OpenTarget {
                staged: file_system.stage(self.token)?,
                base: None,
                sketch: self.sketch,
            },
        };
        let mut buffer = Vec::new();
        let mut next = None;
        for (chunk, source) in &self.piece.chunks {
            let bytes = match source {
                Source::Store(place) => {
                    let record = opened.get(place).ok_or(SyncError::ChunkMissing(chunk.id))?;
                    record.chunk(chunk)?
                }
                Source::Folder(offset) => {
                    let base = match &mut open.base {
                        Some(base) => base,
                        none => none.insert(file_system.open(&self.path)?),
                    };
                    let is_next = next == Some(*offset);
                    next = Some(offset + u64::from(chunk.length));
                    read_chunk(base, (!is_next).then_some(*offset), chunk, &mut buffer)
                        .ok()
                        .filter(|()| self.namer.verify(chunk.id, &buffer).is_ok())
                        // It was edited meanwhile: the next scan will see.
                        .ok_or_else(|| FileError::Changed(self.path.clone()))?;
                    buffer.as_slice()
                }
            };
            open.staged.write_all(bytes).map_err(|error| write_error(&error))?;
            if let Some(sketch) = &mut open.sketch {
                sketch.push(*chunk, bytes);
            }
        }
        match self.finish {
            Some((mode, modified, chunk_size)) => {
                open.staged.finish(mode, modified)?;
                let sketch = open.sketch.map(|sketch| sketch.finish(chunk_size)).transpose()?;
                Ok(Progress::Ended(sketch.map(|sketch| sketch.encode())))
            }
            None => Ok(Progress::Open(Box::new(open))),
        }
    }
}

/// Reads a chunk of the version in the folder, going to its place first unless reading is there.
pub(super) fn read_chunk(
    base: &mut Box<dyn OpenFile>,
    go_to: Option<u64>,
    chunk: &ChunkRef,
    buffer: &mut Vec<u8>,
) -> std::io::Result<()> {
    if let Some(offset) = go_to {
        base.go_to(offset)?;
    }
    buffer.resize(chunk.length as usize, 0);
    base.read_exact(buffer)
}

/// Names what went wrong when a file was written aside.
fn write_error(error: &std::io::Error) -> FileError {
    use std::io::ErrorKind;
    let path = RelativePath::ROOT;
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            FileError::NoSpace(path)
        }
        ErrorKind::ReadOnlyFilesystem => FileError::ReadOnly(path),
        _ => FileError::Other { path, reason: error.to_string() },
    }
}
