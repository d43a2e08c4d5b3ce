//! Writes what is needed of nearly needless packs into new ones, and reads it back.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use content::pack::RecordOpener;
use content::{FinishedPack, PackWriter, verify_whole};
use model::environment::random_bytes;
use model::{ChunkId, OpId, PackRef};

use super::survey::{Needed, SparsePack, Survey};
use super::{CleanupOptions, CommitPacks};
use crate::engine::{Engine, Event};
use crate::error::{Result, SyncError};
use crate::state::ChunkPlace;

/// Chunks that this run has read back, with the number of the pack in which they are.
#[derive(Debug, Default)]
pub(super) struct Verified {
    chunks: HashMap<ChunkId, u64>,
    packs: BTreeSet<u64>,
    /// For how many beginnings the numbers of packs are right.
    generation: u64,
}

impl Verified {
    /// Forgets everything where the numbers of packs are others now.
    pub(super) fn keep_in(&mut self, generation: u64) {
        if self.generation != generation {
            *self = Self { generation, ..Self::default() };
        }
    }

    /// Tells whether a chunk was read back from another pack than this one.
    pub(super) fn is_beside(&self, chunk: &ChunkId, pack: u64) -> bool {
        self.chunks.get(chunk).is_some_and(|other| *other != pack)
    }

    /// Tells whether something was read back from a pack: it stays.
    pub(super) fn holds(&self, pack: u64) -> bool {
        self.packs.contains(&pack)
    }

    fn add(&mut self, chunk: ChunkId, pack: u64) {
        self.chunks.insert(chunk, pack);
        self.packs.insert(pack);
    }
}

impl Engine {
    /// Copies what is needed of sparse packs into new ones, which are stored, read back, and then named by a commit. Returns
    /// how many bytes were written. The old packs stay until a fence condemns them.
    pub(super) async fn repack(
        &mut self,
        survey: &Survey,
        options: &CleanupOptions,
        verified: &mut Verified,
    ) -> Result<u64> {
        (self.observer)(Event::Step("repack"));
        let sparse: BTreeSet<u64> = survey.sparse.iter().map(|pack| pack.pack.number).collect();
        let guard = self.keys.packs().behind(self.state.last_fence()?);
        let writer = || PackWriter::new(self.options.transform.patient(), &guard);
        let mut writers = [writer()?, writer()?];
        let (mut written, mut copied) = (Vec::new(), BTreeSet::new());
        let mut length = 0;
        for pack in &survey.sparse {
            length += pack.needed_length;
            if length > options.repack_length_max {
                break;
            }
            for (needed, bytes) in self.read_needed(pack, &sparse, verified).await? {
                if !copied.insert(needed.chunk.id) {
                    continue;
                }
                let writer = &mut writers[usize::from(needed.is_list)];
                writer.push(needed.chunk, &bytes)?;
                if writer.is_full() {
                    let pack = writer.finish()?;
                    written.push(self.store_repacked(pack).await?);
                }
            }
        }
        for mut writer in writers {
            if !writer.is_empty() {
                let pack = writer.finish()?;
                written.push(self.store_repacked(pack).await?);
            }
        }
        self.name_repacked(&written, verified).await?;
        Ok(written.iter().map(|(pack, _)| pack.length).sum())
    }

    /// Reads what is needed of a pack and must be copied; nothing where some of it cannot be read, so that the pack stays. What
    /// is in another pack that stays is read there.
    async fn read_needed(
        &mut self,
        pack: &SparsePack,
        sparse: &BTreeSet<u64>,
        verified: &mut Verified,
    ) -> Result<Vec<(Needed, Vec<u8>)>> {
        let mut read = Vec::with_capacity(pack.needed.len());
        for (needed, record) in &pack.needed {
            let id = needed.chunk.id;
            if verified.is_beside(&id, pack.pack.number) {
                continue;
            }
            let others = self.state.chunk_places(&id)?;
            let mut is_elsewhere = false;
            for other in others.into_iter().filter(|place| !sparse.contains(&place.pack)) {
                // What is made from others there may be made from what is removed here.
                let is_whole = self.state.bases(other)?.is_empty();
                if is_whole && self.read_at(needed, other).await?.is_some() {
                    verified.add(id, other.pack);
                    is_elsewhere = true;
                    break;
                }
            }
            if is_elsewhere {
                continue;
            }
            let place = ChunkPlace { pack: pack.pack.number, record: *record };
            match self.read_at(needed, place).await? {
                Some(bytes) => read.push((*needed, bytes)),
                None => return Ok(Vec::new()),
            }
        }
        Ok(read)
    }

    /// Reads a chunk in one of its places; nothing where it is not what it should be.
    async fn read_at(&mut self, needed: &Needed, place: ChunkPlace) -> Result<Option<Vec<u8>>> {
        let read = async {
            let opened = self.fetcher.open(&self.state, &BTreeSet::from([place])).await?;
            let record = opened.get(&place).ok_or(SyncError::ChunkMissing(needed.chunk.id))?;
            Ok(record.chunk(&needed.chunk)?.to_vec())
        };
        match read.await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if SyncError::is_of_stored_data(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores a pack, reads it back, and verifies every chunk in it.
    async fn store_repacked(
        &mut self,
        pack: FinishedPack,
    ) -> Result<(PackRef, Vec<(ChunkId, u32)>)> {
        let store = self.environment.store.clone();
        let length = pack.bytes.len() as u64;
        self.report.sent_bytes += length;
        store.put_pack(pack.id, Bytes::from(pack.bytes)).await?;
        let bytes = store.read_pack(pack.id).await?;
        let index = verify_whole(pack.id, &bytes, &self.keys.packs())?;
        let mut opener = RecordOpener::default();
        for (record, number) in index.records().iter().zip(0..) {
            let range = record.stored_range();
            let stored = &bytes[range.start as usize..range.end as usize];
            let opened = opener.open(&index, number, stored, self.fetcher.namer())?;
            opened.verified_chunks().try_for_each(|chunk| chunk.map(drop))?;
        }
        self.upload.note_stored(pack.id);
        let chunks = index.packed_chunks().map(|packed| (packed.chunk.id, packed.record));
        Ok((PackRef { id: pack.id, length }, chunks.collect()))
    }

    /// Has the log name packs. Where another cleanup was faster they are not named, and nothing rests on them.
    async fn name_repacked(
        &mut self,
        written: &[(PackRef, Vec<(ChunkId, u32)>)],
        verified: &mut Verified,
    ) -> Result<()> {
        if written.is_empty() {
            return Ok(());
        }
        let op_id = OpId::from_bytes(random_bytes(&*self.environment.random));
        // What is packed anew is packed whole.
        let named = written.iter().map(|(pack, _)| *pack).collect();
        let packs = CommitPacks { named, ..CommitPacks::default() };
        let commit = self.commit_of(op_id, Vec::new(), packs)?;
        self.in_transaction(|engine| engine.state.add_to_outbox(&commit))?;
        self.push().await?;
        let mut named = BTreeMap::new();
        for (pack, chunks) in written {
            if self.state.knows_pack(&pack.id)? {
                self.state.add_chunks(&pack.id, chunks.iter().copied())?;
                named.insert(pack.id, chunks);
            }
        }
        for pack in self.stored_pack_list()? {
            for (chunk, _) in named.get(&pack.id).into_iter().flat_map(|chunks| chunks.iter()) {
                verified.add(*chunk, pack.number);
            }
        }
        Ok(())
    }
}
