//! Writes what is needed of nearly needless packs into new ones, and reads it back.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use content::pack::{RecordOpener, StoredRecord};
use content::{ContentError, FinishedPack, PackIndex, PackWriter, verify_whole};
use model::environment::random_bytes;
use model::{ChunkId, ChunkRef, OpId, PackRef};

use super::CommitPacks;
use super::anew::Anew;
use super::survey::{Needed, Survey};
use crate::chunk_reader::add_chunks;
use crate::engine::{Engine, Event};
use crate::error::{Result, SyncError};
use crate::state::ChunkPlace;

/// What a chunk is made from somewhere, and the number of the pack.
type Way = (Arc<[ChunkRef]>, u64);

/// Chunks that this run has read back from packs that stay.
#[derive(Debug, Default)]
pub(super) struct Verified {
    /// Those that rest whole there, each with the number of the pack.
    whole: HashMap<ChunkId, u64>,
    /// Those that are made from others there.
    made: HashMap<ChunkId, Vec<Way>>,
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
        self.packs.is_empty()
    }

    /// Tells whether a chunk was read back from another pack than this one, in which it rests whole.
    pub(super) fn is_whole_beside(&self, chunk: &ChunkId, pack: u64) -> bool {
        self.whole.get(chunk).is_some_and(|other| *other != pack)
    }

    /// Tells whether what a pack has of a chunk was read back from another one: the chunk whole, or made from the same chunks as here. What
    /// is made from others is no copy of what rests whole: these may be made from it in their turn, or stand too deep.
    pub(super) fn is_beside(&self, chunk: &ChunkId, pack: u64, bases: &[ChunkRef]) -> bool {
        let is_same = |(others, other): &Way| *other != pack && **others == *bases;
        self.is_whole_beside(chunk, pack)
            || !bases.is_empty() && self.made.get(chunk).is_some_and(|all| all.iter().any(is_same))
    }

    /// Tells whether something was read back from a pack: it stays.
    pub(super) fn holds(&self, pack: u64) -> bool {
        self.packs.contains(&pack)
    }

    pub(super) fn add_whole(&mut self, chunk: ChunkId, pack: u64) {
        self.whole.insert(chunk, pack);
        self.packs.insert(pack);
    }

    fn add_made(&mut self, chunk: ChunkId, bases: Arc<[ChunkRef]>, pack: u64) {
        self.made.entry(chunk).or_default().push((bases, pack));
        self.packs.insert(pack);
    }
}

/// What this run has written.
#[derive(Default)]
struct Copied {
    /// Chunks that are whole in a new pack.
    chunks: HashSet<ChunkId>,
    /// Records that were copied as they are: their chunks, and what these are made from.
    records: HashSet<(Vec<ChunkRef>, Vec<ChunkRef>)>,
    packs: Vec<(PackRef, PackIndex)>,
}

/// A pack that is being filled.
struct NewPack {
    writer: PackWriter,
    /// What is in it. It has no chunk twice: who reads one takes the first.
    chunks: HashSet<ChunkId>,
}

impl NewPack {
    fn has_any(&self, chunks: &[ChunkRef]) -> bool {
        chunks.iter().any(|chunk| self.chunks.contains(&chunk.id))
    }

    fn finish(&mut self) -> Result<FinishedPack> {
        self.chunks.clear();
        Ok(self.writer.finish()?)
    }
}

impl Engine {
    /// Copies chunks that are to be whole, and what is needed of sparse packs, into new ones, which are stored, read back, and then named by a
    /// commit. Returns how many bytes were written. The old packs stay until a fence condemns them.
    pub(super) async fn repack(&mut self, survey: &Survey, verified: &mut Verified) -> Result<u64> {
        (self.observer)(Event::Step("repack"));
        let Anew { turned, sparse, .. } = &survey.anew;
        let going: BTreeSet<u64> = sparse.iter().map(|pack| pack.pack.number).collect();
        let guard = self.keys.packs().behind(self.state.last_fence()?);
        let transform = self.options.transform.patient();
        let pack = || {
            let writer = PackWriter::new(transform, &guard)?;
            Ok::<_, SyncError>(NewPack { writer, chunks: HashSet::new() })
        };
        let (mut packs, mut copied) = ([pack()?, pack()?], Copied::default());
        // Each chunk that is to be whole may fail by itself; a pack stays where one of its chunks cannot be read.
        let turned = turned.chunks(1).map(|wanted| (wanted, &[][..]));
        let sparse = sparse.iter().map(|pack| (&pack.needed[..], &pack.records[..]));
        for (wanted, records) in turned.chain(sparse) {
            let Some(records) = self.read_records(records, &going, &copied, verified).await? else {
                continue;
            };
            let Some(read) = self.read_needed(wanted, &going, &copied, verified).await? else {
                continue;
            };
            for record in records {
                self.copy_record(record, &mut packs[0], &mut copied).await?;
            }
            for (needed, bytes) in read {
                let pack = &mut packs[usize::from(needed.is_list)];
                self.copy_chunk(needed.chunk, &bytes, pack, &mut copied).await?;
            }
        }
        for mut pack in packs {
            if !pack.writer.is_empty() {
                self.store_repacked(&mut pack, &mut copied).await?;
            }
        }
        self.name_repacked(&copied.packs, verified).await?;
        Ok(copied.packs.iter().map(|(pack, _)| pack.length).sum())
    }

    async fn copy_record(
        &mut self,
        record: StoredRecord,
        pack: &mut NewPack,
        copied: &mut Copied,
    ) -> Result<()> {
        if pack.has_any(record.chunks()) {
            self.store_repacked(pack, copied).await?;
        }
        pack.writer.push_record(&record)?;
        pack.chunks.extend(record.chunks().iter().map(|chunk| chunk.id));
        copied.records.insert((record.chunks().to_vec(), record.bases().to_vec()));
        if pack.writer.is_full() {
            self.store_repacked(pack, copied).await?;
        }
        Ok(())
    }

    async fn copy_chunk(
        &mut self,
        chunk: ChunkRef,
        bytes: &[u8],
        pack: &mut NewPack,
        copied: &mut Copied,
    ) -> Result<()> {
        if !copied.chunks.insert(chunk.id) {
            return Ok(());
        }
        if pack.has_any(&[chunk]) {
            self.store_repacked(pack, copied).await?;
        }
        pack.writer.push(chunk, bytes)?;
        pack.chunks.insert(chunk.id);
        if pack.writer.is_full() {
            self.store_repacked(pack, copied).await?;
        }
        Ok(())
    }

    /// Reads records that must be copied as they are and are not yet; nothing where one cannot be read, so that its pack stays.
    async fn read_records(
        &mut self,
        places: &[ChunkPlace],
        going: &BTreeSet<u64>,
        copied: &Copied,
        verified: &mut Verified,
    ) -> Result<Option<Vec<StoredRecord>>> {
        let read = async {
            let mut wanted = Vec::with_capacity(places.len());
            for place in places {
                if !self.has_record_elsewhere(*place, going, copied, verified).await? {
                    wanted.push(*place);
                }
            }
            self.fetcher.stored_records(&self.state, &wanted).await
        };
        match read.await {
            Ok(records) => Ok(Some(records)),
            Err(error) if error.is_of_stored_data() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Tells whether a record is in a new pack, or in one that does not go, as after a cleanup that was cut off: there it is read.
    async fn has_record_elsewhere(
        &mut self,
        place: ChunkPlace,
        going: &BTreeSet<u64>,
        copied: &Copied,
        verified: &mut Verified,
    ) -> Result<bool> {
        let pack = self.state.pack(place.pack)?.expect("a chunk's pack is known");
        let index = self.fetcher.index(&self.state, &pack).await?;
        let number = place.record as usize;
        let (chunks, bases) =
            (&index.chunks()[index.record(number)?.chunks()], index.bases(number)?);
        if copied.records.contains(&(chunks.to_vec(), bases.to_vec())) {
            return Ok(true);
        }
        for other in self.state.chunk_places(&chunks[0].id)? {
            if going.contains(&other.pack) || self.state.bases(other)? != bases {
                continue;
            }
            match self.fetcher.stored_records(&self.state, &[other]).await {
                Ok(found) if found[0].chunks() == chunks && found[0].bases() == bases => {
                    self.note_read_back(other, chunks, bases, verified)?;
                    return Ok(true);
                }
                Err(error) if !error.is_of_stored_data() => return Err(error),
                _ => {}
            }
        }
        Ok(false)
    }

    /// Notes what was read back from a record. Of a chunk that readers look for elsewhere in the pack nothing is known.
    fn note_read_back(
        &self,
        place: ChunkPlace,
        chunks: &[ChunkRef],
        bases: &[ChunkRef],
        verified: &mut Verified,
    ) -> Result<()> {
        let bases: Arc<[ChunkRef]> = bases.into();
        for chunk in chunks {
            if !self.state.chunk_places(&chunk.id)?.contains(&place) {
                continue;
            }
            match bases.is_empty() {
                true => verified.add_whole(chunk.id, place.pack),
                false => verified.add_made(chunk.id, bases.clone(), place.pack),
            }
        }
        Ok(())
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
            if copied.chunks.contains(&id) || verified.is_whole_beside(&id, place.pack) {
                continue;
            }
            let others = self.state.chunk_places(&id)?;
            let mut is_elsewhere = false;
            for other in others.into_iter().filter(|place| !going.contains(&place.pack)) {
                // What is made from others there may be made from what is removed here.
                let is_whole = self.state.bases(other)?.is_empty();
                if is_whole && self.read_at(needed, other).await?.is_some() {
                    verified.add_whole(id, other.pack);
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

    /// Stores a pack, reads it back, and verifies every chunk in it: what is made from others is made from what was read back.
    async fn store_repacked(&mut self, pack: &mut NewPack, copied: &mut Copied) -> Result<()> {
        let pack = pack.finish()?;
        let store = self.environment.store.clone();
        let length = pack.bytes.len() as u64;
        self.report.sent_bytes += length;
        store.put_pack(pack.id, Bytes::from(pack.bytes)).await?;
        let bytes = store.read_pack(pack.id).await?;
        let index = verify_whole(pack.id, &bytes, &self.keys.packs())?;
        let mut opener = RecordOpener::default();
        for (entry, number) in index.records().iter().zip(0..) {
            let range = entry.stored_range();
            let stored = &bytes[range.start as usize..range.end as usize];
            let wanted = index.bases(number)?;
            let bases = self.fetcher.bases_of(&self.state, wanted).await?;
            let bases = bases.ok_or(SyncError::Content(ContentError::NeedsBases))?;
            let bases: Vec<&[u8]> = bases.iter().map(|base| &base[..]).collect();
            let opened = opener.open_on(&index, number, stored, &bases, self.fetcher.namer())?;
            opened.verified_chunks().try_for_each(|chunk| chunk.map(drop))?;
        }
        self.upload.note_stored(pack.id);
        copied.packs.push((PackRef { id: pack.id, length }, index));
        Ok(())
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
        for pack in self.pack_list()? {
            let Some(index) = named.get(&pack.id) else { continue };
            for (record, number) in index.records().iter().zip(0..) {
                let place = ChunkPlace { pack: pack.number, record: number };
                let bases = index.bases(number as usize)?;
                self.note_read_back(place, &index.chunks()[record.chunks()], bases, verified)?;
            }
        }
        Ok(())
    }
}
