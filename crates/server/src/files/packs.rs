//! Finds chunks in packs: their indexes, and the records in which chunks rest.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use content::pack::{RecordOpener, WorkAllowance, tail_length_guess};
use content::{ChunkNamer, ContentError, PackIndex, Record, TailOutcome, verify_whole};
use futures_util::future::join_all;
use model::{ChunkRef, PackId, WorkspaceId};
use parking_lot::Mutex;
use storage::ContentStore;

use super::bases::Making;
use super::opened::{DearRecords, OpenRecords};
use super::views::{Reading, Turn};
use crate::app::App;
use crate::blocking;
use crate::error::{Result, ServerError};
use crate::metadata::Metadata;
use crate::services::files::View;
use crate::services::sync_service;
use content::places::KnownPack;

/// How many indexes of packs are kept, of 1.2 MB at most and some 10 KB mostly.
const INDEXES_MAX: usize = 256;

/// How many indexes are read at the same time.
const INDEXES_AT_ONCE: usize = 16;

/// The indexes that were used last, at the end.
#[derive(Debug, Default)]
pub(super) struct Indexes(Mutex<VecDeque<(PackName, Arc<PackIndex>)>>);

/// A pack of a workspace.
type PackName = (WorkspaceId, PackId);

impl Indexes {
    fn get(&self, key: PackName) -> Option<Arc<PackIndex>> {
        let mut kept = self.0.lock();
        let position = kept.iter().position(|(other, _)| *other == key)?;
        let used = kept.remove(position)?;
        let index = Arc::clone(&used.1);
        kept.push_back(used);
        Some(index)
    }

    fn keep(&self, key: PackName, index: Arc<PackIndex>) {
        let mut kept = self.0.lock();
        kept.push_back((key, index));
        if kept.len() > INDEXES_MAX {
            kept.pop_front();
        }
    }
}

/// Says that something in the store is not what it should be.
pub(super) fn damaged(what: String) -> ServerError {
    ServerError::Storage { text: what, is_full: false, is_damage: true }
}

pub(super) fn damaged_content(error: &ContentError) -> ServerError {
    damaged(error.to_string())
}

impl App {
    /// Returns the packs that hold chunks. Packs that nobody has looked into yet are looked into first if that is needed.
    pub(super) async fn locate(
        &self,
        reading: Reading,
        chunks: &[ChunkRef],
    ) -> Result<Vec<Vec<KnownPack>>> {
        let find = |view: &View| -> Vec<Vec<KnownPack>> {
            chunks.iter().map(|chunk| view.places().packs_of(&chunk.id)).collect()
        };
        let view = self.view_of(reading).await?;
        let found = find(&view);
        if found.iter().all(|packs| !packs.is_empty()) || view.places().unindexed().is_empty() {
            return Ok(found);
        }
        drop(view);
        self.index_packs(reading).await?;
        Ok(find(&*self.view_of(reading).await?))
    }

    /// Looks into all packs that nobody has looked into.
    pub(super) async fn index_packs(&self, reading: Reading) -> Result<()> {
        let turn = self.turn_of(reading).await?;
        self.index_packs_of(reading, &turn).await
    }

    async fn index_packs_of(&self, reading: Reading, turn: &Turn) -> Result<()> {
        let (unindexed, guard) = {
            let view = turn.view().await;
            (view.places().unindexed(), view.pack_guard())
        };
        for packs in unindexed.chunks(INDEXES_AT_ONCE) {
            let reads = packs.iter().map(|pack| self.read_index(reading, *pack, &guard));
            for (pack, read) in packs.iter().zip(join_all(reads).await) {
                match read {
                    Ok(index) => {
                        turn.change(|view| view.places_mut().learn(&pack.id, &index)).await;
                    }
                    // Its chunks are in no pack, and its files are named when somebody reads them.
                    Err(ServerError::Storage { is_damage: true, text, .. }) => {
                        tracing::error!(pack = %pack.id, text, "a pack cannot be looked into");
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    async fn index(&self, reading: Reading, pack: KnownPack) -> Result<Arc<PackIndex>> {
        let key = (reading.workspace, pack.id);
        if let Some(index) = self.files.indexes.get(key) {
            return Ok(index);
        }
        let view = self.view_of(reading).await?;
        if let Some(kept) = view.inline_packs().get(&pack.id) {
            return Ok(Arc::clone(&kept.index));
        }
        let guard = view.pack_guard();
        drop(view);
        let index = Arc::new(self.read_index(reading, pack, &guard).await?);
        self.files.indexes.keep(key, Arc::clone(&index));
        Ok(index)
    }

    async fn read_index(
        &self,
        reading: Reading,
        pack: KnownPack,
        guard: &content::PackGuard,
    ) -> Result<PackIndex> {
        if let Some(seq) = pack.place.inline_seq {
            let bytes = self.inline_pack(reading, pack.id, seq).await?;
            return verify_whole(pack.id, &bytes, guard).map_err(|error| damaged_content(&error));
        }
        let store = self.content_store(reading.workspace);
        let mut length = tail_length_guess(pack.place.length);
        loop {
            let tail = store.read_pack_tail(pack.id, length).await?;
            let outcome = PackIndex::from_tail(&tail, pack.place.length, guard);
            match outcome.map_err(|error| damaged_content(&error))? {
                TailOutcome::Complete(index) => return Ok(index),
                TailOutcome::NeedMore { bytes } if bytes > length => length = bytes,
                TailOutcome::NeedMore { .. } => {
                    return Err(damaged(format!("pack {} is cut off", pack.id)));
                }
            }
        }
    }

    /// Returns a pack that travelled in the log.
    async fn inline_pack(&self, reading: Reading, id: PackId, seq: u64) -> Result<Bytes> {
        let Reading { caller, workspace, .. } = reading;
        let read = move |metadata: &dyn Metadata| {
            sync_service::entries(metadata, &caller, workspace, seq - 1, 1)
        };
        let entry = self.readers.read(read).await?.into_iter().next();
        let packs = entry.map(|entry| entry.commit.inline_packs).unwrap_or_default();
        let found =
            packs.into_iter().find(|bytes| *blake3::hash(bytes).as_bytes() == *id.as_bytes());
        found.map(Bytes::from).ok_or_else(|| damaged(format!("pack {id} is not in entry {seq}")))
    }

    /// Returns the bytes of a chunk, compared with its id, from the first of its packs that has it right. The record in which it
    /// was found is kept `open`: its neighbours are mostly wanted next.
    pub(super) async fn chunk(
        &self,
        reading: Reading,
        (chunk, packs): (&ChunkRef, &[KnownPack]),
        namer: &ChunkNamer,
        open: &mut OpenRecords,
    ) -> Result<Bytes> {
        let wanted = (chunk, packs, 0);
        let bytes = self.make_chunk(reading, wanted, namer, open, &mut Making::default()).await?;
        open.allowance.hand_out(bytes.len() as u64);
        Ok(bytes)
    }

    /// Does that of a chunk whose packs are not known yet, as of a list of others.
    pub(super) async fn find_chunk(
        &self,
        reading: Reading,
        chunk: &ChunkRef,
        namer: &ChunkNamer,
        open: &mut OpenRecords,
    ) -> Result<Bytes> {
        let packs = self.locate(reading, std::slice::from_ref(chunk)).await?;
        let packs = packs.first().map_or(&[][..], Vec::as_slice);
        self.chunk(reading, (chunk, packs), namer, open).await
    }

    /// Does that on the way to another chunk, which is made from this one by so many deltas in a row.
    pub(super) async fn make_chunk(
        &self,
        reading: Reading,
        (chunk, packs, depth): (&ChunkRef, &[KnownPack], u32),
        namer: &ChunkNamer,
        open: &mut OpenRecords,
        making: &mut Making,
    ) -> Result<Bytes> {
        let mut failure = damaged(format!("chunk {} is in no pack", chunk.id));
        let (mut untried, mut tried) = (packs.to_vec(), Vec::new());
        while !untried.is_empty() {
            for pack in untried {
                making.try_once_more(chunk)?;
                tried.push(pack.id);
                let (mark, wanted) = (making.mark(), (chunk, pack, depth));
                match self.chunk_of(reading, wanted, namer, (&mut *open, &mut *making)).await {
                    Err(
                        error @ (ServerError::Storage { is_damage: true, .. }
                        | ServerError::TooMuchWork),
                    ) => failure = error,
                    found => return found,
                }
                making.forget_since(mark);
            }
            // What it is made from may be gone, because a pack has it whole that nobody has looked into yet.
            if !self.view_of(reading).await?.places().unindexed().is_empty() {
                self.index_packs(reading).await?;
            }
            untried = self.locate(reading, std::slice::from_ref(chunk)).await?.remove(0);
            untried.retain(|pack| !tried.contains(&pack.id));
        }
        Err(failure)
    }

    async fn chunk_of(
        &self,
        reading: Reading,
        (chunk, pack, depth): (&ChunkRef, KnownPack, u32),
        namer: &ChunkNamer,
        (open, making): (&mut OpenRecords, &mut Making),
    ) -> Result<Bytes> {
        let index = self.index(reading, pack).await?;
        let packed = index.packed_chunks().find(|packed| packed.chunk == *chunk);
        let packed =
            packed.ok_or_else(|| damaged(format!("chunk {} is not in {}", chunk.id, pack.id)))?;
        let (number, position) = (packed.record as usize, packed.position as usize);
        let name = (reading.workspace, pack.id, number);
        if !open.has(&name) {
            let wanted = (index, pack, number, depth);
            let record = self.record_of(reading, wanted, namer, (&mut *open, making)).await?;
            open.keep(name, record);
        }
        let bytes = open.chunk(position).map(Bytes::copy_from_slice);
        bytes.map_err(|error| {
            open.forget(&name, &self.files.dear_records);
            damaged_content(&error)
        })
    }

    /// Returns a record, which is opened unless somebody has done so.
    async fn record_of(
        &self,
        reading: Reading,
        (index, pack, number, depth): (Arc<PackIndex>, KnownPack, usize, u32),
        namer: &ChunkNamer,
        (open, making): (&mut OpenRecords, &mut Making),
    ) -> Result<Arc<Record>> {
        let entry = index.record(number).map_err(|error| damaged_content(&error))?;
        let is_dear = DearRecords::are(entry.transform());
        let dear = is_dear.then(|| Arc::clone(&self.files.dear_records));
        let name = (reading.workspace, pack.id, number);
        let kept = match &dear {
            Some(dear) => dear.kept.get(&name),
            None => open.again.as_ref().and_then(|again| again.get(&name)),
        };
        if let Some(record) = kept {
            return Ok(record);
        }
        open.allowance.ask().map_err(|_| ServerError::TooMuchWork)?;
        let bases = index.bases(number).map_err(|error| damaged_content(&error))?;
        let bases = match bases {
            [] => Vec::new(),
            bases => self.bases(reading, (bases, depth), namer, (&mut *open, making)).await?,
        };
        let (wanted, is_kept) = ((index, number, bases), dear.is_some());
        let allowance = &mut open.allowance;
        let record = self.open_record(reading, pack, wanted, (namer, dear, allowance)).await?;
        if let Some(again) = open.again.as_ref().filter(|_| !is_kept) {
            again.keep(name, &record);
        }
        Ok(record)
    }

    async fn open_record(
        &self,
        reading: Reading,
        pack: KnownPack,
        (index, number, bases): (Arc<PackIndex>, usize, Vec<Bytes>),
        (namer, dear, allowance): (&ChunkNamer, Option<Arc<DearRecords>>, &mut WorkAllowance),
    ) -> Result<Arc<Record>> {
        let entry = index.record(number).map_err(|error| damaged_content(&error))?;
        let range = entry.stored_range();
        let stored = match pack.place.inline_seq {
            Some(seq) => {
                let view = self.view_of(reading).await?;
                let kept = view.inline_packs().get(&pack.id).map(|kept| kept.bytes.clone());
                drop(view);
                let whole = match kept {
                    Some(bytes) => bytes,
                    None => self.inline_pack(reading, pack.id, seq).await?,
                };
                let range = range.start as usize..(range.end as usize).min(whole.len());
                whole.slice(range)
            }
            None => self.content_store(reading.workspace).read_pack_range(pack.id, range).await?,
        };
        let (name, namer) = ((reading.workspace, pack.id, number), namer.clone());
        let mut turn = None;
        if let Some(dear) = &dear {
            turn = dear.turn().await;
            // Who had the turn before may have wanted the same.
            if let Some(record) = dear.kept.get(&name) {
                return Ok(record);
            }
        }
        let open = move || {
            // It works on where nobody waits any more, and keeps what comes of it.
            let _turn = turn;
            let bases: Vec<&[u8]> = bases.iter().map(|base| &base[..]).collect();
            let mut opener = RecordOpener::default();
            let opened = opener.open_on(&index, number, &stored, &bases, &namer).map(Arc::new);
            if let (Some(dear), Ok(record)) = (dear, &opened) {
                dear.kept.keep(name, record);
            }
            (opened, opener.take_work())
        };
        let (opened, work) = blocking::piece(open).await?;
        allowance.count(work);
        opened.map_err(|error| damaged_content(&error))
    }

    pub(super) fn content_store(&self, workspace: WorkspaceId) -> ContentStore {
        ContentStore::new(Arc::new(self.store_of(workspace)))
    }
}
