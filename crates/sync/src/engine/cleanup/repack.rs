//! Writes what is needed of nearly needless packs into new ones, and reads it back.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use content::pack::{RecordOpener, StoredRecord};
use content::{FinishedPack, PackIndex, PackWriter, verify_whole};
use model::environment::random_bytes;
use model::{ChunkId, OpId, PackRef};

use super::CommitPacks;
use super::anew::Anew;
use super::survey::{Needed, Survey};
use crate::chunk_reader::add_chunks;
use crate::engine::{Engine, Event};
use crate::error::{Result, SyncError};
use crate::state::ChunkPlace;

/// Chunks that this run has read back, with the number of the pack in which they are, whole or made from others.
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

    /// Tells whether nothing was read back.
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
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

/// What this run has written.
#[derive(Default)]
struct Copied {
    chunks: BTreeSet<ChunkId>,
    /// Records that are pushed, and in no pack yet that was read back.
    records: Vec<StoredRecord>,
}

impl Engine {
    /// Copies chunks that are to be whole, and what is needed of sparse packs, into new ones, which are stored, read back, and then named by a
    /// commit. Returns how many bytes were written. The old packs stay until a fence condemns them.
    pub(super) async fn repack(&mut self, survey: &Survey, verified: &mut Verified) -> Result<u64> {
        (self.observer)(Event::Step("repack"));
        let Anew { turned, sparse, .. } = &survey.anew;
        let going: BTreeSet<u64> = sparse.iter().map(|pack| pack.pack.number).collect();
        let guard = self.keys.packs().behind(self.state.last_fence()?);
        let writer = || PackWriter::new(self.options.transform.patient(), &guard);
        let mut writers = [writer()?, writer()?];
        let mut written = Vec::new();
        let mut copied = Copied::default();
        // Each chunk that is to be whole may fail by itself; a pack stays where one of its chunks cannot be read.
        let turned = turned.chunks(1).map(|wanted| (wanted, &[][..]));
        let sparse = sparse.iter().map(|pack| (&pack.needed[..], &pack.records[..]));
        for (wanted, records) in turned.chain(sparse) {
            let Some(records) = self.read_records(records).await? else { continue };
            let Some(read) = self.read_needed(wanted, &going, &copied, verified).await? else {
                continue;
            };
            for record in records {
                let writer = &mut writers[0];
                writer.push_record(&record)?;
                copied.records.push(record);
                if writer.is_full() {
                    written.push(self.store_repacked(writer.finish()?, &mut copied).await?);
                }
            }
            for (needed, bytes) in read {
                copied.chunks.insert(needed.chunk.id);
                let writer = &mut writers[usize::from(needed.is_list)];
                writer.push(needed.chunk, &bytes)?;
                if writer.is_full() {
                    written.push(self.store_repacked(writer.finish()?, &mut copied).await?);
                }
            }
        }
        for mut writer in writers {
            if !writer.is_empty() {
                written.push(self.store_repacked(writer.finish()?, &mut copied).await?);
            }
        }
        self.name_repacked(&written, verified).await?;
        Ok(written.iter().map(|(pack, _)| pack.length).sum())
    }

    /// Reads records as they are; nothing where one cannot be read, so that its pack stays.
    async fn read_records(&mut self, places: &[ChunkPlace]) -> Result<Option<Vec<StoredRecord>>> {
        let mut records = Vec::with_capacity(places.len());
        for place in places {
            match self.fetcher.record(&self.state, *place).await {
                Ok(record) => records.push(record),
                Err(error) if error.is_of_stored_data() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(records))
    }

    /// Reads chunks that must be copied and are not yet; nothing where one of them cannot be read, so that its pack stays. What is whole in a
    /// pack that does not go is read there.
    async fn read_needed(
        &mut self,
        wanted: &[(Needed, ChunkPlace)],
        going: &BTreeSet<u64>,
        copied: &Copied,
        verified: &mut Verified,
    ) -> Result<Option<Vec<(Needed, Vec<u8>)>>> {
        let mut read = Vec::with_capacity(wanted.len());
        for (needed, place) in wanted {
            let id = needed.chunk.id;
            if copied.chunks.contains(&id) || verified.is_beside(&id, place.pack) {
                continue;
            }
            let others = self.state.chunk_places(&id)?;
            let mut is_elsewhere = false;
            for other in others.into_iter().filter(|place| !going.contains(&place.pack)) {
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
            match self.read_at(needed, *place).await? {
                Some(bytes) => read.push((*needed, bytes)),
                None => return Ok(None),
            }
        }
        Ok(Some(read))
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

    /// Stores a pack, reads it back, and verifies every chunk in it, and that every record that was copied is what it was.
    async fn store_repacked(
        &mut self,
        pack: FinishedPack,
        copied: &mut Copied,
    ) -> Result<(PackRef, PackIndex)> {
        let store = self.environment.store.clone();
        let length = pack.bytes.len() as u64;
        self.report.sent_bytes += length;
        store.put_pack(pack.id, Bytes::from(pack.bytes)).await?;
        let bytes = store.read_pack(pack.id).await?;
        let index = verify_whole(pack.id, &bytes, &self.keys.packs())?;
        let mut opener = RecordOpener::default();
        let mut records = std::mem::take(&mut copied.records).into_iter().peekable();
        for (entry, number) in index.records().iter().zip(0..) {
            let range = entry.stored_range();
            let stored = &bytes[range.start as usize..range.end as usize];
            // They are in the order in which they were pushed.
            if let Some(record) = records.peek()
                && index.take_record(number, stored)? == *record
            {
                records.next();
                continue;
            }
            let opened = opener.open(&index, number, stored, self.fetcher.namer())?;
            opened.verified_chunks().try_for_each(|chunk| chunk.map(drop))?;
        }
        copied.records = records.collect();
        self.upload.note_stored(pack.id);
        Ok((PackRef { id: pack.id, length }, index))
    }

    /// Has the log name packs. Where another cleanup was faster they are not named, and nothing rests on them.
    async fn name_repacked(
        &mut self,
        written: &[(PackRef, PackIndex)],
        verified: &mut Verified,
    ) -> Result<()> {
        if written.is_empty() {
            return Ok(());
        }
        let op_id = OpId::from_bytes(random_bytes(&*self.environment.random));
        let named = written.iter().map(|(pack, _)| *pack).collect();
        let has_deltas = written.iter().any(|(_, index)| index.has_deltas());
        let packs = CommitPacks { named, has_deltas, ..CommitPacks::default() };
        let commit = self.commit_of(op_id, Vec::new(), packs)?;
        self.in_transaction(|engine| engine.state.add_to_outbox(&commit))?;
        self.push().await?;
        let mut named = BTreeMap::new();
        for (pack, index) in written {
            if self.state.knows_pack(&pack.id)? {
                add_chunks(&mut self.state, &pack.id, index)?;
                named.insert(pack.id, index);
            }
        }
        for pack in self.stored_pack_list()? {
            for chunk in named.get(&pack.id).into_iter().flat_map(|index| index.chunks()) {
                verified.add(chunk.id, pack.number);
            }
        }
        Ok(())
    }
}
