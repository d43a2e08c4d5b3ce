//! The old version, read in ranges from the packs where it rests.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use content::ChunkNamer;
use content::delta::{ChunkTable, DeltaError, RangedSource};
use tokio::runtime::Handle;

use super::Failure;
use crate::app::App;
use crate::blocking;
use crate::error::{Result, ServerError};
use crate::files::opened::OpenRecords;
use crate::files::packs::damaged;
use crate::files::views::Reading;
use content::places::KnownPack;

/// How many chunks are looked for at once where one is read after the other.
const CHUNKS_AT_ONCE: usize = 64;

/// A version whose chunks lie in packs. It blocks, so it is read on a thread of its own.
pub(super) struct PackedVersion {
    app: Arc<App>,
    runtime: Handle,
    reading: Reading,
    table: ChunkTable,
    namer: Option<ChunkNamer>,
    /// Where the chunks from a place on rest.
    located: (usize, Vec<Vec<KnownPack>>),
    /// The place of the chunk that was read last.
    current: Option<usize>,
    open: OpenRecords,
    failure: Option<ServerError>,
}

impl PackedVersion {
    pub(super) fn new(app: Arc<App>, reading: Reading, table: ChunkTable) -> Self {
        let open = OpenRecords::again(&app.files.edited_records);
        Self {
            app,
            runtime: Handle::current(),
            reading,
            table,
            namer: None,
            located: (0, Vec::new()),
            current: None,
            open,
            failure: None,
        }
    }

    /// Returns what really went wrong where a delta says that the old version cannot be read.
    pub(super) fn failure(&mut self, error: DeltaError) -> Failure {
        match (error, self.failure.take()) {
            (DeltaError::Read { .. }, Some(failure)) => Failure::Here(failure),
            (error, _) => Failure::Delta(error),
        }
    }

    /// Copies a part of a chunk that begins `from` bytes behind its start.
    fn copy_part(&mut self, place: usize, from: usize, buffer: &mut [u8]) -> Result<()> {
        let chunk = self.table.chunks()[place];
        let before = self.current.replace(place);
        let mut copy = |bytes: &[u8]| buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
        if let Some(bytes) = self.open.near(&chunk) {
            copy(bytes);
            if before != Some(place) {
                self.open.allowance.hand_out(u64::from(chunk.length));
            }
            return Ok(());
        }
        let is_next = before.is_some_and(|before| before + 1 == place);
        let runtime = self.runtime.clone();
        copy(&blocking::wait(&runtime, self.read_chunk(place, is_next))?);
        Ok(())
    }

    async fn read_chunk(&mut self, place: usize, is_next: bool) -> Result<Bytes> {
        let chunk = self.table.chunks()[place];
        let (first, found) = &self.located;
        if !(*first..first + found.len()).contains(&place) {
            let count = if is_next { CHUNKS_AT_ONCE } else { 1 };
            let end = self.table.chunks().len().min(place + count);
            let found = self.app.locate(self.reading, &self.table.chunks()[place..end]).await?;
            self.located = (place, found);
        }
        let (first, found) = &self.located;
        let packs = found.get(place - first).map_or(&[][..], Vec::as_slice);
        let namer = match &self.namer {
            Some(namer) => namer,
            None => {
                let view = self.app.view_of(self.reading).await?;
                self.namer.insert(view.content_keys().namer())
            }
        };
        let bytes = self.app.chunk(self.reading, (&chunk, packs), namer, &mut self.open).await?;
        match bytes.len() == chunk.length as usize {
            true => Ok(bytes),
            false => Err(damaged(format!("chunk {} has another length", chunk.id))),
        }
    }

    fn copy(&mut self, range: Range<u64>, mut buffer: &mut [u8]) -> Result<()> {
        let mut offset = range.start;
        while !buffer.is_empty() {
            let place = self.table.chunk_at(offset).expect("the range lies in the version");
            let from = (offset - self.table.start(place)) as usize;
            let length = buffer.len().min(self.table.chunks()[place].length as usize - from);
            let (now, rest) = buffer.split_at_mut(length);
            self.copy_part(place, from, now)?;
            offset += length as u64;
            buffer = rest;
        }
        Ok(())
    }
}

impl RangedSource for PackedVersion {
    fn size(&self) -> u64 {
        self.table.size()
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).filter(|&end| end <= self.size());
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.copy(offset..end, buffer).map_err(|error| {
            let told = io::Error::other(error.to_string());
            self.failure = Some(error);
            told
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::bases::tests::World;

    /// Returns two chunks, and the list of a version that is made of them.
    fn two_chunks(world: &World) -> ([Vec<u8>; 2], ChunkTable) {
        let both = [vec![1; 3000], vec![2; 3000]];
        let chunks = both.each_ref().map(|bytes| world.chunk(bytes));
        (both, ChunkTable::new(4096, chunks.to_vec()).expect("a table"))
    }

    fn version(world: &World, table: &ChunkTable) -> PackedVersion {
        PackedVersion::new(Arc::clone(&world.test.app), world.reading, table.clone())
    }

    async fn read(world: &World, table: &ChunkTable) -> io::Result<Vec<u8>> {
        let mut version = version(world, table);
        let mut bytes = vec![0; table.size() as usize];
        let read = move || version.read_at(0, &mut bytes).map(|()| bytes);
        tokio::task::spawn_blocking(read).await.expect("it does not panic")
    }

    #[tokio::test]
    async fn chunk_that_is_wrong_beside_the_one_before_comes_from_another_pack() {
        let mut world = World::start().await;
        let ([one, two], table) = two_chunks(&world);
        let mut writer = world.writer();
        for chunk in table.chunks() {
            writer.push(*chunk, &one).expect("packed");
        }
        world.add(writer).await;
        assert!(read(&world, &table).await.is_err());
        world.add_whole(std::slice::from_ref(&two)).await;
        assert!(read(&world, &table).await.expect("read") == [one, two].concat());
    }

    #[tokio::test]
    async fn a_chunk_counts_as_read_once_each_time_that_one_comes_to_it() {
        let mut world = World::start().await;
        let (both, table) = two_chunks(&world);
        world.add_whole(&both).await;
        let mut version = version(&world, &table);
        let read = move || {
            // The last of these goes back.
            for range in [0..1000, 1000..3000, 3000..4000, 4000..6000, 10..20] {
                let mut bytes = vec![0; range.len()];
                version.read_at(range.start as u64, &mut bytes).expect("read");
                assert!(bytes.iter().all(|byte| usize::from(*byte) == 1 + range.start / 3000));
            }
            version.open.allowance
        };
        let allowance = tokio::task::spawn_blocking(read).await.expect("it does not panic");
        let mut expected = content::pack::WorkAllowance::default();
        expected.count(allowance.done());
        expected.hand_out(3 * 3000);
        assert_eq!(allowance, expected);
    }
}
