//! Our own method: makes the new chunks of a version, packs what the workspace lacks of them, and gives the version its list.

use content::delta::{ChunkAssembler, ChunkTable, DeltaError, MadeChunk};
use model::{Content, WorkspaceId};

use super::{Failure, Frames, PackedVersion};
use crate::error::ServerError;
use crate::files::Spooled;
use crate::files::writing::Packing;
use crate::limits::{BASE_CHUNKS_MAX, FILE_LENGTH_MAX};

/// About how many bytes of memory a chunk of the new version takes: in its list, and in its table.
pub(super) const CHUNK_WEIGHT: u64 = 96;

/// How many more chunks than fourfold the new version may have beside what a long delta brings.
const CHUNKS_MORE: usize = 1024;

/// Returns how many chunks the new version may have: a few bytes may repeat many of the old ones, and memory is reserved for all.
pub(super) fn chunks_max(base: &ChunkTable, length: u64) -> usize {
    let brought = usize::try_from(length).unwrap_or(usize::MAX);
    let kept = base.chunks().len() * 4;
    kept.saturating_add(brought / 4).saturating_add(CHUNKS_MORE).min(BASE_CHUNKS_MAX)
}

/// A delta, and what it is against.
pub(super) struct Assembling {
    pub(super) old: PackedVersion,
    pub(super) workspace: WorkspaceId,
    pub(super) table: ChunkTable,
    pub(super) chunks_max: usize,
    pub(super) body: Spooled,
}

impl Assembling {
    /// Takes all parts. Returns the content of the new version, or the message by which chunks are wanted.
    pub(super) fn run(self, packing: Packing) -> Result<Result<Content, Vec<u8>>, Failure> {
        let Self { mut old, workspace, table, chunks_max, body } = self;
        let (namer, chunk_size) = (packing.keys.namer(), table.chunk_size());
        let mut assembler = ChunkAssembler::new(workspace, namer, table, FILE_LENGTH_MAX)
            .with_chunks_max(chunks_max);
        let mut packer = packing.packer().map_err(DeltaError::from)?;
        let mut frames = Frames::of(&body);
        let mut wanted = None;
        while let Some(message) = frames.next()? {
            let pack = |made: MadeChunk<'_>| Ok(packer.pack_made(made)?);
            let taken = assembler.take::<DeltaError>(&message, &mut old, pack);
            match taken.map_err(|error| old.failure(error))? {
                None => {}
                Some(assembled) => match assembled.table {
                    None => wanted = Some(assembled.answer),
                    Some(table) => {
                        frames.check_end()?;
                        let content = packer.pack_list(chunk_size, table.chunks());
                        let content = content.map_err(DeltaError::from)?;
                        packer.finish().map_err(DeltaError::from)?;
                        return Ok(Ok(content));
                    }
                },
            }
        }
        let reason = || "the body ends before the last part".to_owned();
        let broken = || ServerError::Invalid { what: "delta", reason: reason() };
        Ok(Err(wanted.ok_or_else(broken)?))
    }
}
