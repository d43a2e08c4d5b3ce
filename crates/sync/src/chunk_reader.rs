//! Finds, fetches and opens the records in which chunks rest.
//!
//! *Goals*: a pack that is needed in good part is fetched whole, in one request; of others only the records that are
//! needed; what was opened is kept while it is likely to be needed again. *Invariants*: nothing is handed out that was not
//! verified against its id, whichever store it came from.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use commit_log::CommitLog;
use content::pack::RecordOpener;
use content::{
    ChunkNamer, ContentError, PackGuard, PackIndex, Record, TailOutcome, WorkspaceKeys, expand,
};
use futures_util::future::try_join_all;
use model::{ChunkId, ChunkRef, Clock, Content, PackId};
use storage::ContentStore;

use crate::error::{Result, SyncError};
use crate::state::State;
use crate::state::bases::Unmade;
use crate::state::packs::{ChunkPlace, KnownPack};

use ahead::Ahead;
use bases::Made;

mod ahead;
mod bases;
mod indexes;

/// How many indexes of packs are kept.
const INDEXES_MAX: usize = 128;

/// How many opened records are kept, and how many bytes of them.
const RECORDS_MAX: usize = 48;
const RECORDS_LENGTH_MAX: usize = RECORDS_MAX * 1024 * 1024;

/// How many bytes of whole packs are kept, and how many of them, but for the last two packs: files are written in the order of the packs, so the last ones are
/// needed again.
const PACKS_LENGTH_MAX: usize = 24 * 1024 * 1024;
const PACKS_MAX: usize = 512;

/// A pack is fetched whole where at least one in this many of its records is needed.
const WHOLE_PACK_PART: usize = 4;

/// From this many bytes of a pack for each record that is needed, the index is read first.
const LENGTH_WORTH_AN_INDEX: u64 = 1024 * 1024;

/// How many packs are fetched at the same time.
const FETCHES_MAX: usize = 4;

/// How many records are asked for at once that are taken as they are stored: what they are made from is held with them.
const STORED_RECORDS_AT_ONCE: usize = 16;

/// A record that was opened: its chunks, found by their ids.
#[derive(Debug)]
pub struct OpenRecord {
    record: Record,
    positions: HashMap<ChunkId, usize>,
}

/// Opened records by where they rest.
pub type OpenRecords = HashMap<ChunkPlace, Arc<OpenRecord>>;

impl OpenRecord {
    fn new(index: &PackIndex, number: usize, record: Record) -> Result<Self, ContentError> {
        let chunks = &index.chunks()[index.record(number)?.chunks()];
        let positions =
            chunks.iter().zip(0..).map(|(chunk, position)| (chunk.id, position)).collect();
        Ok(Self { record, positions })
    }

    /// Returns the bytes of a chunk, verified.
    ///
    /// # Errors
    /// [`SyncError::ChunkMissing`] where the record does not have it; [`SyncError::Content`] where it is damaged.
    pub fn chunk(&self, chunk: &ChunkRef) -> Result<&[u8]> {
        let position = self.positions.get(&chunk.id).ok_or(SyncError::ChunkMissing(chunk.id))?;
        let bytes = self.record.chunk(*position)?;
        if bytes.len() != chunk.length as usize {
            return Err(SyncError::ChunkMissing(chunk.id));
        }
        Ok(bytes)
    }
}

/// The bytes of what a record is made from, or why some of that cannot be read.
type Bases = std::result::Result<Vec<Bytes>, Unmade>;

/// A record as it is stored, to be opened by whichever thread has time.
pub struct StoredRecord {
    index: Arc<PackIndex>,
    number: usize,
    bytes: Bytes,
    /// What it is made from.
    bases: Bases,
    /// Whether it comes from a pack whose hash was compared.
    is_verified: bool,
}

impl StoredRecord {
    /// Decompresses the record.
    ///
    /// # Errors
    /// [`SyncError::Content`]; [`SyncError::ChunkMissing`] or [`SyncError::MadeFromTooMany`] where something is not there that it is made
    /// from.
    pub fn open(&self, opener: &mut RecordOpener, namer: &ChunkNamer) -> Result<OpenRecord> {
        let bases = self.bases.as_ref().map_err(|unmade| SyncError::from(*unmade))?;
        let bases: Vec<&[u8]> = bases.iter().map(|base| &base[..]).collect();
        let record = opener.open_on(&self.index, self.number, &self.bytes, &bases, namer)?;
        Ok(OpenRecord::new(&self.index, self.number, record)?)
    }

    /// Tells whether the record can be opened at all: without what it is made from, no better copy of it helps.
    pub fn has_bases(&self) -> bool {
        self.bases.is_ok()
    }

    /// Tells whether all chunks of the record are right. One that was read as a part of a pack is looked through: other
    /// stores may have it better.
    pub fn is_sound(&self, opened: &OpenRecord) -> bool {
        self.is_verified || opened.record.verified_chunks().all(|chunk| chunk.is_ok())
    }
}

/// Fetches chunks of a workspace.
#[derive(Debug)]
pub struct ChunkFetcher {
    store: Arc<ContentStore>,
    log: Arc<dyn CommitLog>,
    namer: ChunkNamer,
    guard: PackGuard,
    indexes: HashMap<u64, Arc<PackIndex>>,
    index_order: VecDeque<u64>,
    records: OpenRecords,
    record_order: VecDeque<ChunkPlace>,
    packs: VecDeque<(u64, Bytes)>,
    ahead: Ahead,
    /// Packs whose indexes are not known yet and that come whole, with their indexes in them.
    expected: Vec<KnownPack>,
    /// Whether packs were learned of in another order than that in which they were written.
    is_order_unknown: bool,
    /// The last fence when this was read.
    fence: u64,
    /// How many bytes were fetched.
    pub fetched_bytes: u64,
}

impl ChunkFetcher {
    /// Prepares to fetch from a store, and inline packs from the log, what these keys open.
    pub fn new(
        store: Arc<ContentStore>,
        log: Arc<dyn CommitLog>,
        keys: &WorkspaceKeys,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            ahead: Ahead::new(store.clone(), clock),
            store,
            log,
            namer: keys.content().namer(),
            guard: keys.packs(),
            indexes: HashMap::new(),
            index_order: VecDeque::new(),
            records: HashMap::new(),
            record_order: VecDeque::new(),
            packs: VecDeque::new(),
            expected: Vec::new(),
            is_order_unknown: false,
            fence: 0,
            fetched_bytes: 0,
        }
    }

    /// Forgets what was read of packs: their numbers are others from now on.
    pub fn forget_packs(&mut self) {
        self.indexes.clear();
        self.index_order.clear();
        self.records.clear();
        self.record_order.clear();
        self.packs.clear();
        self.forget_ahead();
    }

    /// Forgets what was read of packs before a fence, if another one is the last now.
    pub fn forget_packs_behind(&mut self, fence: u64) {
        if self.fence != fence {
            self.fence = fence;
            self.forget_packs();
        }
    }

    /// Asks for whole packs that are going to be needed for these records, and does not wait for them.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn fetch_ahead(
        &mut self,
        state: &State,
        places: impl IntoIterator<Item = ChunkPlace>,
    ) -> Result<()> {
        let mut by_pack: HashMap<u64, BTreeSet<u32>> = HashMap::new();
        let mut order = Vec::new();
        for place in places.into_iter().filter(|place| !self.records.contains_key(place)) {
            let records = by_pack.entry(place.pack).or_insert_with(|| {
                order.push(place.pack);
                BTreeSet::new()
            });
            records.insert(place.record);
        }
        let mut wanted = Vec::new();
        for number in order {
            let is_here = self.packs.iter().any(|(kept, _)| *kept == number);
            let pack = state.pack(number)?.expect("a chunk's pack is known");
            let records = by_pack[&number].len();
            let is_whole = match self.indexes.get(&number) {
                Some(index) => is_worth_whole(records, index),
                None => !is_worth_an_index(records, &pack),
            };
            // One that is here already counts as wanted, so that it is kept.
            if (is_whole || self.ahead.has(pack.id)) && !is_here && pack.place.inline_seq.is_none()
            {
                wanted.push(pack.reference());
            }
        }
        self.ahead.want_first(wanted);
        Ok(())
    }

    /// Stops waiting for what was asked for ahead.
    pub fn forget_ahead(&mut self) {
        self.expected.clear();
        self.ahead.forget();
    }

    /// Returns the namer that verifies chunks.
    pub fn namer(&self) -> &ChunkNamer {
        &self.namer
    }

    /// Opens a record again that was found damaged: from the whole pack, which the store mends and compares with its hash.
    /// Who reads only a part of a pack gets it unverified, and is the first to see what is wrong with it. Returns `None`
    /// when the store has nothing better.
    ///
    /// # Errors
    /// [`SyncError`], but for damage.
    pub async fn open_mended(
        &mut self,
        state: &State,
        place: ChunkPlace,
    ) -> Result<Option<Arc<OpenRecord>>> {
        let mut ahead = self.ahead.lend();
        let opened = ahead.beside(self.mend_and_open(state, place)).await;
        self.ahead = ahead;
        match opened {
            Err(error) if error.is_of_stored_data() => Ok(None),
            opened => opened,
        }
    }

    async fn mend_and_open(
        &mut self,
        state: &State,
        place: ChunkPlace,
    ) -> Result<Option<Arc<OpenRecord>>> {
        let Some(mut mended) = self.mend(state, place).await? else { return Ok(None) };
        let bases = mended.index.bases(mended.number)?.to_vec();
        mended.bases = self.make(state, &bases, &mut Made::default()).await?;
        Ok(Some(Arc::new(mended.open(&mut RecordOpener::default(), &self.namer)?)))
    }

    /// Returns a record as it is stored in a pack that the store has mended; nothing where there is nothing better.
    async fn mend(&mut self, state: &State, place: ChunkPlace) -> Result<Option<StoredRecord>> {
        let pack = state.pack(place.pack)?.expect("a chunk's pack is known");
        if pack.place.inline_seq.is_some() || !self.store.mend_pack(pack.id).await {
            return Ok(None);
        }
        let mended = async {
            let read = self.read_whole(&pack).await?;
            self.keep_read(&pack, read);
            self.records.remove(&place);
            let places = BTreeSet::from([place]);
            let mut stored = self.fetch_stored(state, &places, &HashMap::new()).await?;
            Ok(stored.remove(&place))
        };
        match mended.await {
            Err(error) if SyncError::is_of_stored_data(&error) => Ok(None),
            mended => mended,
        }
    }

    fn keep_index(&mut self, pack: u64, index: Arc<PackIndex>) {
        if self.indexes.insert(pack, index).is_none() {
            self.index_order.push_back(pack);
        }
        if self.index_order.len() > INDEXES_MAX
            && let Some(oldest) = self.index_order.pop_front()
        {
            self.indexes.remove(&oldest);
        }
    }

    /// Returns a pack that travelled in the log, and whether its entry was fetched for it.
    async fn inline_pack(&self, state: &State, pack: &KnownPack) -> Result<(Bytes, bool)> {
        let seq = pack.place.inline_seq.ok_or(SyncError::PackMissing(pack.id))?;
        let known = state.entry(seq)?;
        let is_fetched = known.is_none();
        let entry = match known {
            Some(entry) => Some(entry),
            None => self.log.entries(seq - 1, 1).await?.into_iter().next(),
        };
        let packs = entry.map(|entry| entry.commit.inline_packs).unwrap_or_default();
        let found = packs.into_iter().find(|bytes| pack_id(bytes) == pack.id);
        let found = found.ok_or(SyncError::PackMissing(pack.id))?;
        Ok((Bytes::from(found), is_fetched))
    }

    /// Fetches records; `later` says of how many others of a pack it is known that they are wanted next, so that nobody fetches some of
    /// them, and then all.
    async fn fetch_stored(
        &mut self,
        state: &State,
        places: &BTreeSet<ChunkPlace>,
        later: &HashMap<u64, usize>,
    ) -> Result<BTreeMap<ChunkPlace, StoredRecord>> {
        let mut by_pack: BTreeMap<u64, Wanted> = BTreeMap::new();
        for place in places.iter().filter(|place| !self.records.contains_key(place)) {
            let later = later.get(&place.pack).copied().unwrap_or_default();
            let wanted = by_pack.entry(place.pack).or_insert(Wanted { records: Vec::new(), later });
            wanted.records.push(place.record);
        }
        let wanted = by_pack.keys().map(|number| {
            let pack = state.pack(*number)?.expect("a chunk's pack is known");
            Ok((*number, pack.id))
        });
        let wanted: Vec<(u64, PackId)> = wanted.collect::<Result<_>>()?;
        let ids: Vec<PackId> = wanted.iter().map(|(_, id)| *id).collect();
        let mut ahead = self.ahead.lend();
        ahead.wait(&ids).await;
        let mut arrived = HashMap::new();
        for (number, id) in wanted {
            if let Some(bytes) = ahead.take(id) {
                self.fetched_bytes += bytes.len() as u64;
                arrived.insert(number, bytes);
            }
        }
        let found = ahead.beside(self.fetch_beside(state, by_pack, arrived)).await;
        self.ahead = ahead;
        found
    }

    /// Fetches records, some of whose packs have arrived already.
    async fn fetch_beside(
        &mut self,
        state: &State,
        by_pack: BTreeMap<u64, Wanted>,
        arrived: HashMap<u64, Bytes>,
    ) -> Result<BTreeMap<ChunkPlace, StoredRecord>> {
        let mut found = BTreeMap::new();
        // Looked up before others push them out.
        let mut kept: BTreeMap<u64, Bytes> = self.packs.iter().cloned().collect();
        kept.retain(|number, _| by_pack.contains_key(number));
        kept.extend(arrived);
        let packs: Vec<_> = by_pack.into_iter().collect();
        for packs in packs.chunks(FETCHES_MAX) {
            let mut known = Vec::with_capacity(packs.len());
            for (number, wanted) in packs {
                let pack = state.pack(*number)?.expect("a chunk's pack is known");
                let here = match (kept.get(number).cloned(), pack.place.inline_seq) {
                    (Some(bytes), _) => Some(bytes),
                    (None, Some(_)) => {
                        let (bytes, is_fetched) = self.inline_pack(state, &pack).await?;
                        if is_fetched {
                            self.fetched_bytes += bytes.len() as u64;
                            self.keep_pack(*number, bytes.clone());
                        }
                        Some(bytes)
                    }
                    (None, None) => None,
                };
                let is_far = here.is_none() && !self.indexes.contains_key(number);
                // Little of a large pack: its index tells where, and costs less than the pack.
                if is_far && is_worth_an_index(wanted.count(), &pack) {
                    self.read_indexes(state, std::slice::from_ref(&pack)).await.remove(0)?;
                }
                known.push((pack, self.indexes.get(number).cloned(), here, wanted));
            }
            let fetches = known.into_iter().map(|(pack, index, here, wanted)| {
                fetch_pack((&self.store, &self.guard), pack, index, here, wanted)
            });
            for fetched in try_join_all(fetches).await? {
                self.fetched_bytes += fetched.length;
                self.keep_index(fetched.pack, fetched.index);
                if let Some(bytes) = fetched.whole {
                    self.keep_pack(fetched.pack, bytes);
                }
                found.extend(fetched.records);
            }
        }
        // The last ones are those that the next files are in, too.
        for (number, bytes) in kept {
            self.keep_pack(number, bytes);
        }
        Ok(found)
    }

    /// Keeps a pack for a while after its last use.
    fn keep_pack(&mut self, pack: u64, bytes: Bytes) {
        self.packs.retain(|(kept, _)| *kept != pack);
        self.packs.push_back((pack, bytes));
        let mut length: usize = self.packs.iter().map(|(_, bytes)| bytes.len()).sum();
        while (length > PACKS_LENGTH_MAX || self.packs.len() > PACKS_MAX)
            && self.packs.len() > 2
            && let Some((_, oldest)) = self.packs.pop_front()
        {
            length -= oldest.len();
        }
    }

    /// Returns an opened record that is kept.
    pub fn kept(&self, place: &ChunkPlace) -> Option<Arc<OpenRecord>> {
        self.records.get(place).cloned()
    }

    /// Returns those of some records that are kept.
    fn all_kept(&self, places: &BTreeSet<ChunkPlace>) -> OpenRecords {
        places.iter().filter_map(|place| Some((*place, self.kept(place)?))).collect()
    }

    /// Keeps an opened record for a while.
    pub fn keep(&mut self, place: ChunkPlace, record: Arc<OpenRecord>) {
        if self.records.insert(place, record).is_none() {
            self.record_order.push_back(place);
        }
        let length = |open: &OpenRecord| open.record.plain_len();
        let mut kept: usize = self.records.values().map(|open| length(open)).sum();
        while (self.record_order.len() > RECORDS_MAX || kept > RECORDS_LENGTH_MAX)
            && let Some(oldest) = self.record_order.pop_front()
        {
            kept -= self.records.remove(&oldest).map_or(0, |open| length(&open));
        }
    }

    /// Fetches and opens the records of some chunks and returns them by place.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn open(
        &mut self,
        state: &State,
        places: &BTreeSet<ChunkPlace>,
    ) -> Result<OpenRecords> {
        let (mut opened, stored) = self.fetch(state, places, HashMap::new()).await?;
        let mut opener = RecordOpener::default();
        for (place, record) in stored {
            let record = match record.open(&mut opener, &self.namer) {
                Ok(opened) if record.is_sound(&opened) => Arc::new(opened),
                Err(error) if !record.has_bases() => return Err(error),
                damaged => match self.open_mended(state, place).await? {
                    Some(mended) => mended,
                    None => Arc::new(damaged?),
                },
            };
            self.keep(place, record.clone());
            opened.insert(place, record);
        }
        Ok(opened)
    }

    /// Returns records as they are stored, to be put into another pack. Each was opened from these very bytes, and all of its chunks are right.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn stored_records(
        &mut self,
        state: &State,
        places: &[ChunkPlace],
    ) -> Result<Vec<content::pack::StoredRecord>> {
        let mut found = Vec::with_capacity(places.len());
        let mut opener = RecordOpener::default();
        for places in places.chunks(STORED_RECORDS_AT_ONCE) {
            for place in places {
                // Of what is open the stored bytes are gone.
                self.records.remove(place);
            }
            let places = places.iter().copied().collect();
            for record in self.fetch_to_open(state, &places, HashMap::new()).await?.into_values() {
                let opened = record.open(&mut opener, &self.namer)?;
                opened.record.verified_chunks().try_for_each(|chunk| chunk.map(drop))?;
                found.push(record.index.take_record(record.number, &record.bytes)?);
            }
        }
        assert_eq!(found.len(), places.len(), "each was fetched");
        Ok(found)
    }

    /// Returns the data chunks of a file in order.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn expand(&mut self, state: &State, content: &Content) -> Result<Vec<ChunkRef>> {
        if content.depth == 0 {
            return Ok(content.chunks.clone());
        }
        // The expansion asks for one list at a time; fetching happens between its attempts.
        let mut lists: HashMap<ChunkId, Vec<u8>> = HashMap::new();
        loop {
            let mut wanted = None;
            let expanded = expand(content, |list| match lists.get(&list.id) {
                Some(bytes) => Ok(bytes.clone()),
                None => {
                    wanted = Some(*list);
                    Err(SyncError::ChunkMissing(list.id))
                }
            });
            match wanted {
                Some(list) => {
                    let level = self.lists_beside(content, &lists, list);
                    for list in level {
                        let bytes = match state.list(&list.id)? {
                            // It came from the disk: it is worth as much as its hash.
                            Some(bytes) if self.namer.verify(list.id, &bytes).is_ok() => bytes,
                            _ => {
                                let bytes = self.chunk(state, &list).await?;
                                state.keep_list(&list.id, &bytes)?;
                                bytes
                            }
                        };
                        lists.insert(list.id, bytes);
                    }
                }
                None => return expanded,
            }
        }
    }

    /// Returns everything that a content is made of: its data chunks and, second, the lists that name them.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn parts(
        &mut self,
        state: &State,
        content: &Content,
    ) -> Result<(Vec<ChunkRef>, Vec<ChunkRef>)> {
        let chunks = self.expand(state, content).await?;
        let mut lists = Vec::new();
        if content.depth > 0 {
            // All of them are kept now.
            expand::<SyncError>(content, |list| {
                lists.push(*list);
                state.list(&list.id)?.ok_or(SyncError::ChunkMissing(list.id))
            })?;
        }
        Ok((chunks, lists))
    }

    /// Returns the index of a pack.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn index(&mut self, state: &State, pack: &KnownPack) -> Result<Arc<PackIndex>> {
        self.read_indexes(state, std::slice::from_ref(pack)).await.remove(0)
    }

    /// Returns the lists that are worth fetching together with one that is wanted: all of the topmost level at once.
    fn lists_beside(
        &self,
        content: &Content,
        have: &HashMap<ChunkId, Vec<u8>>,
        wanted: ChunkRef,
    ) -> Vec<ChunkRef> {
        if content.chunks.contains(&wanted) {
            content.chunks.iter().filter(|list| !have.contains_key(&list.id)).copied().collect()
        } else {
            vec![wanted]
        }
    }
}

/// What is wanted of one pack.
struct Wanted {
    records: Vec<u32>,
    /// How many others are wanted next.
    later: usize,
}

impl Wanted {
    fn count(&self) -> usize {
        self.records.len() + self.later
    }
}

/// What was fetched of one pack.
struct Fetched {
    pack: u64,
    index: Arc<PackIndex>,
    records: Vec<(ChunkPlace, StoredRecord)>,
    /// The whole pack, where it was fetched whole.
    whole: Option<Bytes>,
    /// How many bytes came from the store.
    length: u64,
}

/// Fetches what is needed of one pack, unless it is here already.
async fn fetch_pack(
    (store, guard): (&ContentStore, &PackGuard),
    pack: KnownPack,
    index: Option<Arc<PackIndex>>,
    here: Option<Bytes>,
    wanted: &Wanted,
) -> Result<Fetched> {
    let mut length = 0;
    let is_whole = index.as_ref().is_none_or(|index| is_worth_whole(wanted.count(), index));
    let mut whole = None;
    if here.is_none() && is_whole {
        let bytes = store.read_pack(pack.id).await?;
        length += bytes.len() as u64;
        whole = Some(bytes);
    }
    let bytes = here.or_else(|| whole.clone());
    let index = match (index, &bytes) {
        (Some(index), _) => index,
        // The store has compared the hash of the pack already; inline packs were found by theirs.
        (None, Some(bytes)) => Arc::new(whole_index(&pack, bytes, guard)?),
        (None, None) => unreachable!("without an index the pack is fetched whole"),
    };
    let mut found = Vec::with_capacity(wanted.records.len());
    for &record in &wanted.records {
        let number = record as usize;
        let range = index.record(number)?.stored_range();
        let stored = match &bytes {
            Some(bytes) if range.end <= bytes.len() as u64 => {
                bytes.slice(range.start as usize..range.end as usize)
            }
            Some(_) => return Err(SyncError::PackMissing(pack.id)),
            None => {
                let stored = store.read_pack_range(pack.id, range).await?;
                length += stored.len() as u64;
                stored
            }
        };
        let place = ChunkPlace { pack: pack.number, record };
        let (index, is_verified) = (index.clone(), bytes.is_some());
        let bases = Ok(Vec::new());
        found.push((place, StoredRecord { index, number, bytes: stored, bases, is_verified }));
    }
    Ok(Fetched { pack: pack.number, index, records: found, whole, length })
}

/// Tells whether a pack of which so many records are needed is fetched whole.
fn is_worth_whole(records: usize, index: &PackIndex) -> bool {
    records * WHOLE_PACK_PART >= index.records().len()
}

/// Tells whether so little of a pack is needed that its index is read first.
fn is_worth_an_index(records: usize, pack: &KnownPack) -> bool {
    pack.place.length > records as u64 * LENGTH_WORTH_AN_INDEX
}

/// Returns the index of a pack that is here as a whole.
fn whole_index(pack: &KnownPack, bytes: &[u8], guard: &PackGuard) -> Result<PackIndex> {
    match PackIndex::from_tail(bytes, bytes.len() as u64, guard)? {
        TailOutcome::Complete(index) => Ok(index),
        TailOutcome::NeedMore { .. } => Err(SyncError::PackMissing(pack.id)),
    }
}

/// Writes into the state which chunks a pack holds, and what they are made from.
pub fn add_chunks(state: &mut State, pack: &PackId, index: &PackIndex) -> Result<()> {
    if index.has_deltas() {
        // First, so that nobody takes for whole what is not.
        let pack = state.pack_by_id(pack)?.expect("a pack is known before its chunks").number;
        for record in 0..index.records().len() {
            state.add_bases(ChunkPlace { pack, record: record as u32 }, index.bases(record)?)?;
        }
    }
    state.add_chunks(pack, index.packed_chunks().map(|packed| (packed.chunk.id, packed.record)))
}

/// Returns the id of a pack.
pub fn pack_id(bytes: &[u8]) -> PackId {
    PackId::from_bytes(*blake3::hash(bytes).as_bytes())
}
