//! Makes the new chunks of a version, packs what the workspace lacks of them, and gives the version its list: of our own method, whose client
//! has cut it, and of the rsync family, of which only what was changed is cut here.

use content::FilePacker;
use content::delta::{
    ChunkAssembler, ChunkTable, CopiedPart, DeltaError, MESSAGE_LENGTH_MAX, MESSAGE_STEPS_MAX,
    MadeChunk, VersionSink,
};
use content::packing::VersionCut;
use model::{Content, WorkspaceId};

use super::sessions::Side;
use super::{Failure, Frames, PackedVersion, WORK_WEIGHT};
use crate::error::ServerError;
use crate::files::Spooled;
use crate::files::writing::{Packing, Sink};
use crate::limits::{BASE_CHUNKS_MAX, FILE_LENGTH_MAX};

/// About how many bytes of memory a chunk of the new version takes: in its list, and in its table.
const CHUNK_WEIGHT: u64 = 96;

/// How many bytes of memory the steps of a message take: those that it may have at most, and for each byte of it, since a step has three.
const STEPS_WEIGHT_MAX: u64 = MESSAGE_STEPS_MAX * 96;
const STEP_BYTE_WEIGHT: u64 = 32;

/// How many more chunks than fourfold the new version may have beside what a long delta brings.
const CHUNKS_MORE: usize = 1024;

/// Messages, and what they are against.
pub(super) struct Assembling {
    pub(super) old: PackedVersion,
    pub(super) workspace: WorkspaceId,
    pub(super) table: ChunkTable,
    pub(super) body: Spooled,
    /// What was agreed on before, in the rsync family.
    pub(super) side: Option<Side>,
}

impl Assembling {
    /// Returns about how many bytes of memory it takes, beside the table.
    pub(super) fn weight(&self) -> u64 {
        let message = self.body.length.min(MESSAGE_LENGTH_MAX as u64);
        let steps = self.body.length.saturating_mul(STEP_BYTE_WEIGHT).min(STEPS_WEIGHT_MAX);
        // A message, and what was read of it.
        let work = WORK_WEIGHT + 2 * message;
        match &self.side {
            None => work + steps + self.chunks_max() as u64 * CHUNK_WEIGHT,
            // The bytes of a message wait to be cut; the list is stored as it grows.
            Some(Side::Rsync(_)) => work + steps + message,
            Some(Side::Reverse(_)) => work + message,
        }
    }

    /// Returns how many chunks the new version may have: a few bytes may repeat many of the old ones, and memory is reserved for all.
    fn chunks_max(&self) -> usize {
        let brought = usize::try_from(self.body.length).unwrap_or(usize::MAX);
        let kept = self.table.chunks().len() * 4;
        kept.saturating_add(brought / 4).saturating_add(CHUNKS_MORE).min(BASE_CHUNKS_MAX)
    }

    /// Takes all messages. Returns the content of the new version, or what the client is told of one that is not made.
    pub(super) fn run(mut self, packing: Packing) -> Result<Result<Content, Vec<u8>>, Failure> {
        match self.side.take() {
            None => self.run_chunks(packing),
            Some(side) => self.run_session(side, packing),
        }
    }

    fn run_session(
        self,
        side: Side,
        packing: Packing,
    ) -> Result<Result<Content, Vec<u8>>, Failure> {
        let Self { mut old, table, body, .. } = self;
        let packer = packing.packer().map_err(DeltaError::from)?;
        let cut = packer.begin_version(table).map_err(DeltaError::from)?;
        let mut cutting = Cutting { packer, cut };
        let finished = side.run(&body, &mut old, &mut cutting)?;
        let Some(verified) = finished.verified else { return Ok(Err(finished.answer)) };
        let Cutting { mut packer, cut } = cutting;
        let content = packer.end_version(cut).map_err(DeltaError::from)?;
        packer.finish().map_err(DeltaError::from)?;
        // What was cut is what was summed up; if it ever were not, the client can still send the file.
        match content.size == verified.size() {
            true => Ok(Ok(content)),
            false => Err(DeltaError::Unverified.into()),
        }
    }

    fn run_chunks(self, packing: Packing) -> Result<Result<Content, Vec<u8>>, Failure> {
        let chunks_max = self.chunks_max();
        let Self { mut old, workspace, table, body, .. } = self;
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

/// Cuts what is put together.
struct Cutting {
    packer: FilePacker<Sink>,
    cut: VersionCut,
}

impl VersionSink for Cutting {
    fn literal(&mut self, bytes: &[u8]) -> Result<(), DeltaError> {
        Ok(self.packer.push_new(&mut self.cut, bytes)?)
    }

    fn copied(&mut self, part: &mut CopiedPart<'_>) -> Result<(), DeltaError> {
        self.packer.push_copied(&mut self.cut, part)
    }
}
