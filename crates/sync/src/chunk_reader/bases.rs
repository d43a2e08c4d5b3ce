//! Brings what delta records are made from.
//!
//! *Invariants*: whatever packs say, it ends: which chunks are made from which is looked up first, with a bound, and each place that turns
//! out to be bad is left out from then on; a base that cannot be read spoils what is made from it and nothing else, and a chunk that rests
//! elsewhere, too, is read there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use content::pack::RecordOpener;
use model::{ChunkId, ChunkRef};

use super::{ChunkFetcher, OpenRecord, OpenRecords, RECORDS_MAX, StoredRecord};
use crate::error::{Result, SyncError};
use crate::state::bases::{Making, Step, Unmade};
use crate::state::{ChunkPlace, State};

/// How many places are found to be bad before no others are looked for.
const BAD_MAX: usize = 64;

/// How many bytes of chunks are held that records are made from which are fetched at once, or a few more. Those of one honest file have less.
const HELD_LENGTH_MAX: u64 = 256 * 1024 * 1024;

/// How many bytes of chunks that others are made from are kept for the next record.
const KEPT_LENGTH_MAX: u64 = 32 * 1024 * 1024;

/// What was made on the way to chunks.
#[derive(Default)]
pub(super) struct Made {
    chunks: HashMap<ChunkId, Bytes>,
    length: u64,
    /// Places of which something could not be read, though all was there that it is made from.
    bad: HashSet<ChunkPlace>,
    /// What was wrong with the last one of them.
    error: Option<SyncError>,
    /// Where each chunk was read.
    places: HashMap<ChunkId, ChunkPlace>,
    opener: RecordOpener,
}

/// A record that others are made from.
enum Fetched {
    Open(Arc<OpenRecord>),
    Stored(StoredRecord),
}

impl Made {
    /// Begins with chunks that somebody has at hand, whose bytes are what their ids say.
    fn of(at_hand: HashMap<ChunkId, Bytes>) -> Self {
        let length = at_hand.values().map(|bytes| bytes.len() as u64).sum();
        Self { chunks: at_hand, length, ..Self::default() }
    }

    fn keep(&mut self, chunk: ChunkId, place: ChunkPlace, bytes: Bytes) {
        self.length += bytes.len() as u64;
        self.places.insert(chunk, place);
        self.chunks.insert(chunk, bytes);
    }

    fn note_bad(&mut self, place: ChunkPlace, error: SyncError) {
        self.bad.insert(place);
        self.error = Some(error);
    }

    /// Makes room for what the next record needs.
    fn make_room(&mut self) {
        if self.length > KEPT_LENGTH_MAX {
            self.chunks.clear();
            self.length = 0;
        }
    }
}

impl ChunkFetcher {
    /// Returns records that are open, or were opened on the way since others are made from them; and the others as they are stored, with
    /// what they are made from, unless that is at hand: of chunks there the bytes are what their ids say.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn fetch(
        &mut self,
        state: &State,
        places: &BTreeSet<ChunkPlace>,
        at_hand: HashMap<ChunkId, Bytes>,
    ) -> Result<(OpenRecords, BTreeMap<ChunkPlace, StoredRecord>)> {
        // What is opened on the way may push them out.
        let mut open = self.all_kept(places);
        let mut stored = self.fetch_to_open(state, places, at_hand).await?;
        open.extend(self.all_kept(places));
        stored.retain(|place, _| !open.contains_key(place));
        Ok((open, stored))
    }

    /// Returns records as they are stored, with what they are made from; none that are open.
    pub(super) async fn fetch_to_open(
        &mut self,
        state: &State,
        places: &BTreeSet<ChunkPlace>,
        at_hand: HashMap<ChunkId, Bytes>,
    ) -> Result<BTreeMap<ChunkPlace, StoredRecord>> {
        let mut made = Made::of(at_hand);
        let steps = self.steps_behind(state, places, &made)?;
        let later = steps.iter().filter(|place| !places.contains(place));
        let mut found = self.fetch_stored(state, places, &records_by_pack(later)).await?;
        self.fetch_ahead(state, steps)?;
        let (mut held, mut seen) = (0, HashSet::new());
        for record in found.values_mut() {
            let bases = record.index.bases(record.number)?.to_vec();
            record.bases = match bases.first() {
                // Whoever wants fewer records at once gets them.
                Some(base) if held > HELD_LENGTH_MAX => Err(Unmade::TooMany(base.id)),
                _ => self.make(state, &bases, &mut made).await?,
            };
            // What several records are made from is held once: the rows of a document that was saved many times want nearly the same.
            for base in record.bases.iter().flatten() {
                if seen.insert(base.as_ptr()) {
                    held += base.len() as u64;
                }
            }
        }
        Ok(found)
    }

    /// Tells where that rests which these records are made from; nothing where that is too much to be fetched at once.
    fn steps_behind(
        &self,
        state: &State,
        places: &BTreeSet<ChunkPlace>,
        made: &Made,
    ) -> Result<Vec<ChunkPlace>> {
        if !state.has_bases()? {
            return Ok(Vec::new());
        }
        let mut bases = Vec::new();
        for place in places.iter().filter(|place| !self.records.contains_key(place)) {
            bases.extend(state.bases(*place)?);
        }
        match state.making(&bases, &made.bad)? {
            Ok(making) => {
                let steps = lacking(state, &making, &bases, made)?;
                Ok(steps.iter().map(|step| step.place).collect())
            }
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Returns the bytes of one chunk. Where they are not right in one pack, every other that has them is tried, and the chunk is looked
    /// for first from then on where it was right.
    ///
    /// # Errors
    /// [`SyncError`].
    pub async fn chunk(&mut self, state: &State, chunk: &ChunkRef) -> Result<Vec<u8>> {
        let mut made = Made::default();
        let bytes = match self.make(state, std::slice::from_ref(chunk), &mut made).await? {
            Ok(mut chunks) => chunks.remove(0),
            // A place that is bad says more than that there is no other one.
            Err(Unmade::Missing(_)) if made.error.is_some() => {
                return Err(made.error.expect("there is one"));
            }
            Err(unmade) => return Err(unmade.into()),
        };
        let known = state.chunk(&chunk.id)?;
        if let Some(place) = made.places.get(&chunk.id)
            && known.is_some_and(|known| known != *place)
        {
            state.turn_to(&chunk.id, *place)?;
        }
        Ok(bytes.to_vec())
    }

    /// Reads what a record of whatever pack is made from; nothing where some of it cannot be read.
    ///
    /// # Errors
    /// [`SyncError`], but for damage.
    pub async fn bases_of(
        &mut self,
        state: &State,
        bases: &[ChunkRef],
    ) -> Result<Option<Vec<Bytes>>> {
        Ok(self.make(state, bases, &mut Made::default()).await?.ok())
    }

    /// Makes sure that it is known where everything rests that these records are made from, waiting for packs that are expected.
    ///
    /// # Errors
    /// What reading the index of a pack may fail with; what is nowhere is no error here.
    pub async fn place_bases(
        &mut self,
        state: &mut State,
        places: &BTreeSet<ChunkPlace>,
    ) -> Result<()> {
        if !self.expects_packs() || !state.has_bases()? {
            return Ok(());
        }
        let mut unseen: Vec<ChunkPlace> = places.iter().copied().collect();
        let mut seen = places.clone();
        while let Some(place) = unseen.pop() {
            for base in state.bases(place)? {
                match self.place(state, &base, true).await {
                    Ok(Some(place)) if seen.insert(place) => unseen.push(place),
                    Ok(_) => {}
                    Err(error) if error.is_of_stored_data() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Makes chunks, each from its record and the chunks that this is made from; or says which of these there is not.
    pub(super) async fn make(
        &mut self,
        state: &State,
        chunks: &[ChunkRef],
        made: &mut Made,
    ) -> Result<std::result::Result<Vec<Bytes>, Unmade>> {
        made.make_room();
        loop {
            let here = chunks.iter().map(|chunk| made.chunks.get(&chunk.id).cloned());
            if let Some(here) = here.collect::<Option<Vec<Bytes>>>() {
                return Ok(Ok(here));
            }
            let making = match state.making(chunks, &made.bad)? {
                Ok(making) => making,
                Err(unmade) => return Ok(Err(unmade)),
            };
            if made.bad.len() > BAD_MAX || !making.ancestry_of_record().is_readable() {
                return Ok(Err(Unmade::TooMany(chunks[0].id)));
            }
            let steps = lacking(state, &making, chunks, made)?;
            self.follow(state, steps, made).await?;
        }
    }

    /// Makes chunks row by row, from what rests whole to what is made from that, until a row has a bad place.
    async fn follow(&mut self, state: &State, steps: Vec<Step>, made: &mut Made) -> Result<()> {
        let mut rows: BTreeMap<u32, BTreeMap<ChunkPlace, Vec<ChunkRef>>> = BTreeMap::new();
        for step in steps {
            rows.entry(step.depth).or_default().entry(step.place).or_default().push(step.chunk);
        }
        for row in rows.into_values() {
            let places: Vec<ChunkPlace> = row.keys().copied().collect();
            let bad = made.bad.len();
            for places in places.chunks(RECORDS_MAX) {
                let places = places.iter().copied().collect();
                for (place, fetched) in self.fetch_each(state, &places, made).await? {
                    let opened = match fetched {
                        Fetched::Open(opened) => Ok(opened),
                        Fetched::Stored(stored) => {
                            self.open_made(state, place, stored, made).await?
                        }
                    };
                    take_chunks(place, opened, &row[&place], made);
                }
            }
            if made.bad.len() > bad {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Fetches records; one that cannot be fetched is bad, and keeps no other from being fetched.
    async fn fetch_each(
        &mut self,
        state: &State,
        places: &BTreeSet<ChunkPlace>,
        made: &mut Made,
    ) -> Result<Vec<(ChunkPlace, Fetched)>> {
        let kept = self.all_kept(places).into_iter();
        let mut fetched: Vec<_> = kept.map(|(place, open)| (place, Fetched::Open(open))).collect();
        let mut add = |found: BTreeMap<ChunkPlace, StoredRecord>| {
            let stored = found.into_iter().map(|(place, stored)| (place, Fetched::Stored(stored)));
            fetched.extend(stored);
        };
        match self.fetch_stored(state, places, &HashMap::new()).await {
            Err(error) if error.is_of_stored_data() => {
                let open: BTreeSet<_> = self.records.keys().copied().collect();
                for place in places.difference(&open) {
                    match self.fetch_stored(state, &BTreeSet::from([*place]), &HashMap::new()).await
                    {
                        Err(error) if error.is_of_stored_data() => made.note_bad(*place, error),
                        found => add(found?),
                    }
                }
            }
            found => add(found?),
        }
        Ok(fetched)
    }

    /// Opens a record all of whose bases are made, or tells what is wrong with it.
    async fn open_made(
        &mut self,
        state: &State,
        place: ChunkPlace,
        mut stored: StoredRecord,
        made: &mut Made,
    ) -> Result<Result<Arc<OpenRecord>>> {
        let base = |base: &ChunkRef| {
            // The database may know the record otherwise than its index does.
            made.chunks.get(&base.id).cloned().ok_or(Unmade::Missing(base.id))
        };
        stored.bases = stored.index.bases(stored.number)?.iter().map(base).collect();
        let opened = match stored.open(&mut made.opener, &self.namer) {
            Ok(opened) if stored.is_sound(&opened) => Ok(opened),
            Err(error) if !stored.has_bases() => Err(error),
            damaged => match self.mend(state, place).await? {
                Some(mut mended) => {
                    mended.bases = stored.bases;
                    mended.open(&mut made.opener, &self.namer)
                }
                // What is right in a damaged record serves all the same.
                None => damaged,
            },
        };
        Ok(opened.map(|opened| {
            let opened = Arc::new(opened);
            self.keep(place, opened.clone());
            opened
        }))
    }
}

/// Counts in how many records of each pack something rests.
fn records_by_pack<'a>(places: impl Iterator<Item = &'a ChunkPlace>) -> HashMap<u64, usize> {
    let mut counts = HashMap::new();
    for place in places.collect::<BTreeSet<_>>() {
        *counts.entry(place.pack).or_default() += 1;
    }
    counts
}

/// Returns the steps that are still to be done for some chunks: none that leads to what is made.
fn lacking(state: &State, making: &Making, chunks: &[ChunkRef], made: &Made) -> Result<Vec<Step>> {
    if made.chunks.is_empty() {
        return Ok(making.steps.clone());
    }
    let mut needed: HashSet<ChunkId> = chunks.iter().map(|chunk| chunk.id).collect();
    let mut steps = Vec::new();
    // Those that are made from others come behind them.
    for step in making.steps.iter().rev() {
        if !needed.contains(&step.chunk.id) || made.chunks.contains_key(&step.chunk.id) {
            continue;
        }
        if step.depth > 0 {
            needed.extend(state.bases(step.place)?.iter().map(|base| base.id));
        }
        steps.push(*step);
    }
    Ok(steps)
}

/// Takes what is wanted of a record; where something is not right there, its place is bad.
fn take_chunks(
    place: ChunkPlace,
    opened: Result<Arc<OpenRecord>>,
    wanted: &[ChunkRef],
    made: &mut Made,
) {
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => return made.note_bad(place, error),
    };
    for chunk in wanted {
        match opened.chunk(chunk) {
            Ok(bytes) => made.keep(chunk.id, place, Bytes::copy_from_slice(bytes)),
            Err(error) => made.note_bad(place, error),
        }
    }
}

impl From<Unmade> for SyncError {
    fn from(unmade: Unmade) -> Self {
        match unmade {
            Unmade::Missing(chunk) => Self::ChunkMissing(chunk),
            Unmade::TooMany(chunk) => Self::MadeFromTooMany(chunk),
        }
    }
}
