//! Reads changed files, cuts them into chunks, and packs the chunks that the workspace does not have.
//!
//! *Invariants*: a file counts as read only if the file system says the same of it before and after (I-13); a chunk
//! that is left out of the packs is in a pack that the log names and no fence condemns, or in one of the same upload.

use std::collections::HashSet;
use std::io::Read;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use content::delta::{Features, RangedSource, VersionSketch};
use content::pack::{Ancestry, PACK_STORED_TARGET};
use content::packing::{Kept, WHOLE_FILE_SIZE_MAX};
use content::{
    ChunkSizes, ContentError, FilePacker, FinishedPack, PackSettings, PackSink, Transform,
    WorkspaceKeys,
};
use model::{ChunkId, ChunkRef, Content, NodeId, NodeKind, RelativePath};
use parking_lot::Mutex;

use crate::error::SyncError;
use crate::file_system::{FileError, FileKind, FileSystem, OpenFile, Stat};
use crate::overlay::matter_of;
use crate::plan::Matter;

/// Files of which something is kept for their next version: a smaller one costs little as a whole, and what is kept of a larger one would
/// push out what is kept of many others.
const SKETCHED_SIZES: RangeInclusive<u64> = 1024..=128 * 1024 * 1024;

/// Up to how many bytes of files that are read or written at once something is kept of new ones, too: who brings in more edits little of it,
/// and it would push out what is kept of others.
const SKETCHED_AT_ONCE: u64 = 64 * 1024 * 1024;

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
    /// What to keep for its next version.
    pub sketch: Option<Vec<u8>>,
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

    /// Returns what stands behind a chunk that is in a pack that the log names.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    fn ancestry(&self, chunk: &ChunkRef) -> Result<Option<Ancestry>, SyncError>;

    /// Returns what was kept of a file for its next version.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    fn sketch(&self, node: &NodeId) -> Result<Option<Vec<u8>>, SyncError>;

    /// Returns what was kept of a file that is like one with these features.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    fn similar(&self, features: &Features) -> Result<Option<Vec<u8>>, SyncError>;
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
    /// What is stored of chunks that were edited.
    pub deltas: Deltas,
    /// How many more bytes may be kept of files for their next versions: what is read at once may be all that there is.
    pub sketch_room: Arc<AtomicI64>,
}

/// How much work a device does so that edits cost little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaBudget {
    /// None: edited chunks are stored whole, and nothing is kept of files.
    Off,
    /// Of edited files what is new is stored. New files of up to so many bytes together are inflated where they hold deflate streams, and coded
    /// shorter where they are photographs: that takes a quarter of a second of the processor for a megabyte of documents, and a sixth for
    /// one of photographs. Above 64 MiB at once no file is.
    UpTo(u64),
}

impl Default for DeltaBudget {
    /// Two seconds of work.
    fn default() -> Self {
        Self::UpTo(8 * 1024 * 1024)
    }
}

/// What is stored of chunks that were edited, and of which files something is kept for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deltas {
    /// All of them; nothing is kept.
    Off,
    /// What is new in them; something is kept of files that had a version before. So many files come at once that they are not edited
    /// soon, or mostly not.
    OfEdited,
    /// The same, and something is kept of new files, too. Of those that had a version before, what they hold in deflate streams is stored.
    OfAll,
    /// The same, and new files are stored so, too: they are few.
    OfAllInflated,
}

impl Deltas {
    /// Decides for files that are read or written at once and have so many bytes together.
    pub fn of(budget: DeltaBudget, length: u64) -> Self {
        match budget {
            DeltaBudget::Off => Self::Off,
            DeltaBudget::UpTo(_) if length > SKETCHED_AT_ONCE => Self::OfEdited,
            DeltaBudget::UpTo(inflated) if length > inflated => Self::OfAll,
            DeltaBudget::UpTo(_) => Self::OfAllInflated,
        }
    }

    /// Tells whether something is kept of a file of so many bytes, and used where it is kept already.
    pub fn keeps(self, size: u64, had_version: bool) -> bool {
        let is_wanted = match self {
            Self::Off => false,
            Self::OfEdited => had_version,
            Self::OfAll | Self::OfAllInflated => true,
        };
        is_wanted && SKETCHED_SIZES.contains(&size)
    }

    /// Tells whether what a file holds in deflate streams is stored, and kept, in their place; and a photograph in a shorter form.
    pub fn inflates(self, had_version: bool) -> bool {
        match self {
            Self::Off | Self::OfEdited => false,
            Self::OfAll => had_version,
            Self::OfAllInflated => true,
        }
    }
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
        let packer = FilePacker::new(self.keys.content(), &settings, sink)?.with_lists();
        let mut reader = Reader { shared: self, packer, whole: Vec::new(), sketch: None };
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
            let (lists, sketch) = (reader.packer.take_lists(), reader.sketch.take());
            results.push(HasRead { node, result, lists, sketch });
        }
        reader.packer.finish()?;
        Ok(results)
    }
}

/// Reads one file or link as those that have changed are read, and packs nothing. Returns nothing where it changes meanwhile, or cannot be
/// read.
///
/// # Errors
/// Those of the chunker.
pub fn read_matter(
    file_system: Arc<dyn FileSystem>,
    keys: &WorkspaceKeys,
    file: ToRead,
) -> Result<Option<Matter>, SyncError> {
    let preparation = Preparation {
        file_system,
        keys: keys.clone(),
        known: Arc::new(EveryChunk),
        claims: Claims::default(),
        transform: Transform::None,
        fence: 0,
        pack_target: PACK_STORED_TARGET,
        deltas: Deltas::Off,
        sketch_room: Arc::default(),
    };
    let mut no_pack = |_| unreachable!("every chunk is in a pack already");
    let read = preparation.read_files(vec![file], &mut no_pack)?;
    Ok(read.into_iter().find_map(|read| read.result.ok()).map(|(matter, _)| matter))
}

/// Has every chunk in a pack, for who wants to know only which chunks a file has.
struct EveryChunk;

impl KnownChunks for EveryChunk {
    fn contains(&self, _: &ChunkId) -> Result<bool, SyncError> {
        Ok(true)
    }

    fn ancestry(&self, _: &ChunkRef) -> Result<Option<Ancestry>, SyncError> {
        Ok(None)
    }

    fn sketch(&self, _: &NodeId) -> Result<Option<Vec<u8>>, SyncError> {
        Ok(None)
    }

    fn similar(&self, _: &Features) -> Result<Option<Vec<u8>>, SyncError> {
        Ok(None)
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
        Ok(!self.knows(chunk)? && self.shared.claims.lock().insert(chunk.id))
    }

    fn knows(&mut self, chunk: &ChunkRef) -> Result<bool, SyncError> {
        Ok(self.shared.claims.lock().contains(&chunk.id)
            || self.shared.known.contains(&chunk.id)?)
    }

    fn ancestry(&mut self, chunk: &ChunkRef) -> Result<Option<Ancestry>, SyncError> {
        self.shared.known.ancestry(chunk)
    }

    fn similar(&mut self, features: &Features) -> Result<Option<Kept>, SyncError> {
        Ok(self.shared.known.similar(features)?.and_then(decoded))
    }

    fn emit(&mut self, pack: FinishedPack) -> Result<(), SyncError> {
        (self.emit)(pack)
    }
}

/// A file that is open.
struct Opened<'a> {
    file: &'a mut dyn OpenFile,
    size: u64,
    /// Where it is read next.
    place: u64,
}

impl RangedSource for Opened<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        if self.place != offset {
            self.file.go_to(offset)?;
        }
        // Wherever a failed read ends, nobody goes on from there.
        self.place = u64::MAX;
        self.file.read_exact(buffer)?;
        self.place = offset + buffer.len() as u64;
        Ok(())
    }
}

/// Reads what was kept of a file; another program may have kept something else.
fn decoded(kept: Vec<u8>) -> Option<Kept> {
    Kept::decode(&kept).ok()
}

struct Reader<'a> {
    shared: &'a Preparation,
    packer: FilePacker<Sink<'a>>,
    whole: Vec<u8>,
    /// What to keep of the file that was read last.
    sketch: Option<Vec<u8>>,
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
        let content = match self.pack(file, &mut *open, before.size) {
            // What was named is not what was read again.
            Err(SyncError::Content(ContentError::Read { .. })) if open.stat()? != before => {
                return Err(FileError::Changed(file.path.clone()).into());
            }
            content => content?,
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
    fn pack(
        &mut self,
        file: &ToRead,
        open: &mut dyn OpenFile,
        size: u64,
    ) -> Result<Content, SyncError> {
        let (deltas, had_version) = (self.shared.deltas, file.chunk_size.is_some());
        let has_room = self.shared.sketch_room.load(Ordering::Relaxed) > 0;
        let keeps = |size| has_room && deltas.keeps(size, had_version);
        if size > WHOLE_FILE_SIZE_MAX {
            if keeps(size) {
                open.go_to(0).map_err(|source| ContentError::Read { source })?;
                let kept = self.kept(file)?;
                return self.pack_sketched(file, kept, &mut Opened { file: open, size, place: 0 });
            }
            let go_to = |open: &mut &mut dyn OpenFile, place| open.go_to(place);
            return self.packer.pack_reader(&mut &mut *open, size, file.chunk_size, go_to);
        }
        let mut whole = std::mem::take(&mut self.whole);
        whole.clear();
        let read = open.take(WHOLE_FILE_SIZE_MAX + 1).read_to_end(&mut whole);
        read.map_err(|source| ContentError::Read { source })?;
        let content = match keeps(whole.len() as u64) {
            true if deltas.inflates(had_version) => self.pack_whole(file, &whole),
            true => self.pack_like(file, &whole),
            false => self.packer.pack_bytes(&whole, file.chunk_size),
        };
        self.whole = whole;
        content
    }

    /// Packs a file that is in memory as a change of its version before, or of a file that is like it.
    fn pack_like(&mut self, file: &ToRead, mut bytes: &[u8]) -> Result<Content, SyncError> {
        match self.kept(file)? {
            None => {
                let (content, sketch) = self.packer.pack_like(bytes, file.chunk_size)?;
                self.keep(&Kept::File(sketch));
                Ok(content)
            }
            kept => self.pack_sketched(file, kept, &mut bytes),
        }
    }

    /// Packs a file as a change of what is kept of another one.
    fn pack_sketched(
        &mut self,
        file: &ToRead,
        kept: Option<Kept>,
        source: &mut dyn RangedSource,
    ) -> Result<Content, SyncError> {
        // The version before keeps its chunk size, whoever wrote it.
        let is_right = |kept: &VersionSketch| {
            let size = kept.chunk_size();
            // Somebody else may have said a size that is none.
            file.chunk_size.is_none_or(|it| it == size) && ChunkSizes::around(size).is_ok()
        };
        let (content, sketch) = match kept {
            Some(Kept::File(kept)) if is_right(&kept) => self.packer.pack_edited(&kept, source)?,
            _ => self.packer.pack_first(source, file.chunk_size)?,
        };
        self.keep(&Kept::File(sketch));
        Ok(content)
    }

    /// The same for a file that is in memory, which may be stored as what it holds in deflate streams, or as a photograph in a shorter form.
    fn pack_whole(&mut self, file: &ToRead, bytes: &[u8]) -> Result<Content, SyncError> {
        let kept = self.kept(file)?;
        let (content, kept) = self.packer.pack_whole(kept.as_ref(), bytes, file.chunk_size)?;
        self.keep(&kept);
        Ok(content)
    }

    fn kept(&self, file: &ToRead) -> Result<Option<Kept>, SyncError> {
        let kept = self.shared.known.sketch(&file.node)?;
        Ok(kept.and_then(decoded))
    }

    fn keep(&mut self, kept: &Kept) {
        let sketch = kept.encode();
        self.shared.sketch_room.fetch_sub(sketch.len() as i64, Ordering::Relaxed);
        self.sketch = Some(sketch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn what_comes_at_once_and_the_budget_say_how_much_work_is_done() {
        let of = |budget, lengths: [u64; 3]| lengths.map(|length| Deltas::of(budget, length));
        let usual = of(DeltaBudget::default(), [8 * MIB, 8 * MIB + 1, SKETCHED_AT_ONCE + 1]);
        assert_eq!(usual, [Deltas::OfAllInflated, Deltas::OfAll, Deltas::OfEdited]);
        assert_eq!(of(DeltaBudget::UpTo(0), [0, 1, SKETCHED_AT_ONCE])[1..], [Deltas::OfAll; 2]);
        assert_eq!(of(DeltaBudget::Off, [0, 1, u64::MAX]), [Deltas::Off; 3]);
        // However large the budget is: what comes in such lengths is not edited soon.
        let most = DeltaBudget::UpTo(u64::MAX);
        let limits = of(most, [SKETCHED_AT_ONCE, SKETCHED_AT_ONCE + 1, u64::MAX]);
        assert_eq!(limits, [Deltas::OfAllInflated, Deltas::OfEdited, Deltas::OfEdited]);
        assert_eq!(SKETCHED_AT_ONCE, 64 * MIB, "as the settings and their guide say");
    }

    #[test]
    fn new_files_are_kept_and_inflated_only_where_few_come() {
        let all = [Deltas::Off, Deltas::OfEdited, Deltas::OfAll, Deltas::OfAllInflated];
        let kept = |had_version| all.map(|deltas| deltas.keeps(MIB, had_version));
        let inflated = |had_version| all.map(|deltas| deltas.inflates(had_version));
        assert_eq!(kept(true), [false, true, true, true]);
        assert_eq!(kept(false), [false, false, true, true]);
        assert_eq!(inflated(true), [false, false, true, true]);
        assert_eq!(inflated(false), [false, false, false, true]);
        assert!(!Deltas::OfAllInflated.keeps(0, true), "nothing is kept of an empty file");
    }
}
