//! Reads changed files, cuts them into chunks, and packs the chunks that the workspace does not have.
//!
//! *Invariants*: a file counts as read only if the file system says the same of it before and after (I-13); a chunk
//! that is left out of the packs is in a pack that the log names and no fence condemns, or in one of the same upload.

use std::collections::HashSet;
use std::io::Read;
use std::sync::Arc;

use content::{
    ContentError, FilePacker, FinishedPack, PackSettings, PackSink, Transform, WorkspaceKeys,
};
use model::{ChunkId, ChunkRef, NodeId, NodeKind, RelativePath};
use parking_lot::Mutex;

use crate::error::SyncError;
use crate::file_system::{FileError, FileKind, FileSystem, OpenFile, Stat};
use crate::overlay::matter_of;
use crate::plan::Matter;

/// Files up to this size in bytes are read whole before they are cut.
const WHOLE_FILE_SIZE_MAX: u64 = 4 * 1024 * 1024;

/// A file that is to be read.
#[derive(Debug, Clone)]
pub struct ToRead {
    /// Its node.
    pub node: NodeId,
    /// Where it is.
    pub path: RelativePath,
    /// What the file system said when it was found.
    pub stat: Stat,
    /// Average chunk size of its version before, which it keeps.
    pub chunk_size: Option<u32>,
}

/// What reading a file gave.
#[derive(Debug)]
pub struct HasRead {
    /// Its node.
    pub node: NodeId,
    /// Its matter, and what the file system said before and after reading.
    pub result: Result<(Matter, Stat), ReadFailure>,
    /// The chunk lists of its content, where it is large.
    pub lists: Vec<(ChunkId, Vec<u8>)>,
}

/// Why a file was not read.
#[derive(Debug)]
pub enum ReadFailure {
    /// It changed or went away meanwhile; a later scan will find it as it is then.
    Changing,
    /// It cannot be read.
    Unreadable(String),
}

/// Which chunks the workspace has, as far as a thread can tell.
pub trait KnownChunks: Send + Sync {
    /// Tells whether a chunk is in a pack that the log names.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    fn contains(&self, chunk: &ChunkId) -> Result<bool, SyncError>;
}

/// Chunks that this upload has already put into a pack.
pub type Claims = Arc<Mutex<HashSet<ChunkId>>>;

/// What all readers of an upload share.
#[derive(Clone)]
pub struct Preparation {
    /// The folder.
    pub file_system: Arc<dyn FileSystem>,
    /// Keys of the workspace.
    pub keys: WorkspaceKeys,
    /// What the workspace has.
    pub known: Arc<dyn KnownChunks>,
    /// What the upload has.
    pub claims: Claims,
    /// How records are compressed.
    pub transform: Transform,
    /// The last fence that this device knows: packs must not have names from before it.
    pub fence: u64,
    /// How many stored bytes a pack should have.
    pub pack_target: usize,
}

impl Preparation {
    /// Reads files in order. Every pack that is full goes to `emit`, and the last one at the end.
    ///
    /// # Errors
    /// Those of `emit`, of the database, and of the compressor. A file that cannot be read is no error of the batch.
    pub fn read_files(
        &self,
        files: Vec<ToRead>,
        emit: &mut dyn FnMut(FinishedPack) -> Result<(), SyncError>,
    ) -> Result<Vec<HasRead>, SyncError> {
        let settings = PackSettings {
            transform: self.transform,
            guard: self.keys.packs().behind(self.fence),
            target: self.pack_target,
        };
        let sink = Sink { shared: self, emit };
        let packer = FilePacker::new(self.keys.content(), &settings, sink)?;
        let mut reader = Reader { shared: self, packer, whole: Vec::new() };
        let mut results = Vec::with_capacity(files.len());
        for file in files {
            let node = file.node;
            let result = match reader.read(&file) {
                Ok(read) => Ok(read),
                Err(SyncError::File(FileError::NotFound(_) | FileError::Changed(_))) => {
                    Err(ReadFailure::Changing)
                }
                Err(SyncError::File(error)) => Err(ReadFailure::Unreadable(error.to_string())),
                Err(SyncError::Content(ContentError::Read { source })) => {
                    Err(ReadFailure::Unreadable(source.to_string()))
                }
                Err(error) => return Err(error),
            };
            results.push(HasRead { node, result, lists: reader.packer.take_lists() });
        }
        reader.packer.finish()?;
        Ok(results)
    }
}

/// Knows which chunks are in a pack, and passes packs on.
struct Sink<'a> {
    shared: &'a Preparation,
    emit: &'a mut dyn FnMut(FinishedPack) -> Result<(), SyncError>,
}

impl PackSink for Sink<'_> {
    type Error = SyncError;

    fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, SyncError> {
        // What this run has stored costs no look into the database.
        Ok(!self.shared.claims.lock().contains(&chunk.id)
            && !self.shared.known.contains(&chunk.id)?
            && self.shared.claims.lock().insert(chunk.id))
    }

    fn emit(&mut self, pack: FinishedPack) -> Result<(), SyncError> {
        (self.emit)(pack)
    }
}

struct Reader<'a> {
    shared: &'a Preparation,
    packer: FilePacker<Sink<'a>>,
    whole: Vec<u8>,
}

impl Reader<'_> {
    fn read(&mut self, file: &ToRead) -> Result<(Matter, Stat), SyncError> {
        let kind = match file.stat.kind {
            FileKind::Directory => NodeKind::Directory,
            FileKind::Symlink => NodeKind::Symlink(self.shared.file_system.read_link(&file.path)?),
            FileKind::File => return self.read_file(file),
            FileKind::Other => return Err(FileError::Changed(file.path.clone()).into()),
        };
        let after = self.shared.file_system.stat(&file.path)?;
        match after {
            Some(after)
                if after.kind == file.stat.kind && (after == file.stat || kind.is_directory()) =>
            {
                Ok((matter_of(&after, kind), after))
            }
            _ => Err(FileError::Changed(file.path.clone()).into()),
        }
    }

    fn read_file(&mut self, file: &ToRead) -> Result<(Matter, Stat), SyncError> {
        let mut open = self.shared.file_system.open(&file.path)?;
        let before = open.stat()?;
        // What has got the name since the file was found may be another node, which the next scan tells.
        if (before.inode, before.kind) != (file.stat.inode, file.stat.kind) {
            return Err(FileError::Changed(file.path.clone()).into());
        }
        let content = if before.size <= WHOLE_FILE_SIZE_MAX {
            let mut whole = std::mem::take(&mut self.whole);
            whole.clear();
            let read = (&mut open).take(WHOLE_FILE_SIZE_MAX + 1).read_to_end(&mut whole);
            read.map_err(|source| ContentError::Read { source })?;
            let content = self.packer.pack_bytes(&whole, file.chunk_size);
            self.whole = whole;
            content?
        } else {
            let go_to = |open: &mut Box<dyn OpenFile>, place| open.go_to(place);
            self.packer.pack_reader(&mut open, before.size, file.chunk_size, go_to)?
        };
        let after = open.stat()?;
        if before != after || content.size != after.size {
            return Err(FileError::Changed(file.path.clone()).into());
        }
        // The name must still lead to what was read, or a replacement would be taken for synced.
        if self.shared.file_system.stat(&file.path)? != Some(after) {
            return Err(FileError::Changed(file.path.clone()).into());
        }
        Ok((matter_of(&after, NodeKind::File(content)), after))
    }
}
