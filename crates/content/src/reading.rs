//! Puts a file together from parts of packs, for whoever fetches them.
//!
//! *Participants*: whoever fetches, from a server or store that may lie; the [`Packs`] of a [`Replay`]. *Goals*: memory that does
//! not grow with the file; several parts are asked for at once; where one pack does not give a chunk, the next one that has it is asked, also
//! for what it is made from. *Non-goals*: fetching. *Invariants*: no byte leaves here that was not
//! verified against the id of its chunk; that the file is whole is known at its end, so what came before an error must not be
//! kept as the file.
//!
//! [`Replay`]: crate::Replay

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use model::{ChunkRef, Content, Entry, PackId};

use crate::error::ContentError;
use crate::manifest::{ContentStep, ContentWalk};
use crate::pack::{
    PackIndex, Record, RecordOpener, TAIL_LENGTH_GUESS, TailOutcome, WorkAllowance,
    tail_length_guess,
};
use crate::places::KnownPack;
use crate::replay::{Packs, pack_id};
use making::{Making, RecordKey};

mod making;

/// How many bytes of the file are looked for ahead.
const AHEAD_LENGTH: u64 = 4 * 1024 * 1024;

/// How many records are asked for at once.
const RECORDS_AT_ONCE: usize = 4;

/// How many stored bytes of delta records may wait for what they are made from before no more are asked for ahead.
const WAITING_LENGTH_MAX: usize = 8 * 1024 * 1024;

/// How many indexes of packs are asked for at once: they are small.
const INDEXES_AT_ONCE: usize = 16;

/// How many opened records are kept, those that were used last: of 1 MiB each, or of one chunk; of documents and photographs up to 8 MiB.
const RECORDS_MAX: usize = 8;

/// A pack of at most this many bytes is fetched whole when its index is wanted: what is wanted next is mostly its chunks.
const SMALL_PACK_LENGTH_MAX: u64 = 2 * TAIL_LENGTH_GUESS;

/// A part of a pack that is to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackPart {
    /// The pack. One that travelled in the log is in the entry that it names, and wanted whole.
    pub pack: KnownPack,
    /// Which of its bytes.
    pub range: Range<u64>,
    what: Wanted,
}

/// Why a part is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Whole,
    Index,
    Record(u32),
}

impl PackPart {
    fn whole(pack: KnownPack) -> Self {
        Self { pack, range: 0..pack.place.length, what: Wanted::Whole }
    }

    pub(crate) fn tail(pack: KnownPack, length: u64) -> Self {
        let end = pack.place.length;
        Self { pack, range: end.saturating_sub(length)..end, what: Wanted::Index }
    }

    /// Returns where the index of a pack is, as far as that can be guessed.
    fn index(pack: KnownPack) -> Self {
        let length = pack.place.length;
        match pack.place.inline_seq.is_some() || length <= SMALL_PACK_LENGTH_MAX {
            true => Self::whole(pack),
            false => Self::tail(pack, tail_length_guess(length)),
        }
    }
}

/// Where a chunk is to be had.
enum Found {
    /// In a record that is open, or in a pack that is here as a whole: which record, the place of the chunk in it, and the bytes of the
    /// record where it is not open.
    Here(RecordKey, usize, Option<(Arc<[u8]>, Range<u64>)>),
    /// In a record that is not open.
    Record(PackPart),
    /// In a pack whose index is not here.
    Index(PackPart),
    /// In no pack that was looked into.
    Nowhere,
}

/// One file on its way.
pub struct FileReading {
    walk: ContentWalk,
    /// Chunks of the file that come next.
    ahead: VecDeque<ChunkRef>,
    /// How many bytes of the first of them were given.
    begun: usize,
    /// A list of chunks that is needed to know what comes after these.
    list: Option<ChunkRef>,
    /// Whether nothing comes after the chunks that are known.
    is_walked: bool,
    records: VecDeque<(RecordKey, Record)>,
    opener: RecordOpener,
    allowance: WorkAllowance,
    /// Stored bytes of delta records, until what they are made from is here.
    waiting: HashMap<RecordKey, Arc<[u8]>>,
    /// What the chunk that comes next is made from, as far as it is here.
    making: Making,
    /// Parts that were asked for, in the order in which they were told.
    asked: Vec<PackPart>,
    /// Packs that could not be looked into, and why not, for the last of them.
    damaged: (HashSet<PackId>, Option<ContentError>),
    /// How many bytes from the end hold the index of a pack, where more than the usual are needed.
    longer: HashMap<PackId, u64>,
    /// The chunks of the file, where only its lists are read.
    listed: Option<Vec<ChunkRef>>,
}

impl std::fmt::Debug for FileReading {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FileReading").field("walk", &self.walk).finish_non_exhaustive()
    }
}

impl FileReading {
    /// Begins at the first byte.
    ///
    /// # Errors
    /// [`ContentError::TooDeep`].
    pub fn new(content: &Content) -> Result<Self, ContentError> {
        Ok(Self {
            walk: ContentWalk::new(content)?,
            ahead: VecDeque::new(),
            begun: 0,
            list: None,
            is_walked: false,
            records: VecDeque::new(),
            opener: RecordOpener::default(),
            allowance: WorkAllowance::default(),
            waiting: HashMap::new(),
            making: Making::default(),
            asked: Vec::new(),
            damaged: (HashSet::new(), None),
            longer: HashMap::new(),
            listed: None,
        })
    }

    /// Begins to read a file that follows one which this has read to its end: what is open serves both.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn follow(self, content: &Content) -> Result<Self, ContentError> {
        let Self { records, opener, allowance, damaged, longer, .. } = self;
        Ok(Self { records, opener, allowance, damaged, longer, ..Self::new(content)? })
    }

    /// Begins to read nothing of a file but of which chunks it is.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn of_lists(content: &Content) -> Result<Self, ContentError> {
        Ok(Self { listed: Some(Vec::new()), ..Self::new(content)? })
    }

    /// Returns packs to be looked into until those of all chunks of the file are known, and so many more, the largest first. Nothing where
    /// all that can be known is known. For a file of which only lists are read.
    ///
    /// # Errors
    /// As [`Self::wanted`].
    pub(crate) fn sought(
        &mut self,
        packs: &Packs,
        more: &mut usize,
    ) -> Result<&[PackPart], ContentError> {
        self.wanted(packs)?;
        if self.asked.is_empty()
            && let Some(listed) = &mut self.listed
        {
            listed.retain(|chunk| !packs.places.is_readable(chunk));
            let is_needed = !listed.is_empty();
            self.asked = if is_needed { self.unindexed(packs) } else { self.begun(packs) };
            if !is_needed && self.asked.is_empty() {
                self.asked = self.largest(packs, (*more).min(INDEXES_AT_ONCE));
                *more -= self.asked.len();
            }
        }
        Ok(&self.asked)
    }

    /// Returns what is to be fetched now, and given to [`Self::take`] in this order; nothing where there is something to
    /// [`read`](Self::read), or the file has ended.
    ///
    /// # Errors
    /// [`ContentError::ChunkMissing`], or what was wrong with the pack that may have it; those of lists that are none.
    pub fn wanted(&mut self, packs: &Packs) -> Result<&[PackPart], ContentError> {
        self.look_ahead(packs)?;
        let chunks: Vec<ChunkRef> = self.ahead.iter().chain(&self.list).copied().collect();
        let mut parts: Vec<PackPart> = Vec::new();
        for (number, chunk) in chunks.into_iter().enumerate() {
            let found = match number {
                0 => self.prepare(packs, &chunk, 0)?,
                _ => self.find(packs, &chunk, 0)?,
            };
            match found {
                // What would be opened for others takes the place of what nobody has read.
                Found::Here(..) if number == 0 => break,
                Found::Here(..) => {}
                Found::Record(part) if parts.contains(&part) => {}
                Found::Record(_) if parts.len() == RECORDS_AT_ONCE => break,
                Found::Record(_) if number > 0 && self.waits_for_enough() => break,
                Found::Record(part) => parts.push(part),
                // What is known to be needed comes first: it makes room.
                _ if !parts.is_empty() => break,
                Found::Index(part) => {
                    parts.push(part);
                    break;
                }
                Found::Nowhere => {
                    parts = self.unindexed(packs);
                    if parts.is_empty() {
                        return Err(self.why_missing(&chunk));
                    }
                    break;
                }
            }
        }
        self.asked = parts;
        Ok(&self.asked)
    }

    /// Returns the parts that were asked for last.
    pub(crate) fn asked(&self) -> &[PackPart] {
        &self.asked
    }

    /// Takes the bytes of parts, in the order in which they were asked for.
    ///
    /// # Errors
    /// [`ContentError`] where they are not what was stored.
    pub fn take(
        &mut self,
        packs: &mut Packs,
        number: usize,
        bytes: &[u8],
    ) -> Result<(), ContentError> {
        let count = self.asked.len();
        let no_such = ContentError::NoSuchRecord { record: number, count };
        let PackPart { pack, range, what } = self.asked.get(number).ok_or(no_such)?.clone();
        let id = pack.id;
        let taken = match what {
            _ if bytes.len() as u64 != range.end - range.start => {
                Err(ContentError::PackMissing { id })
            }
            Wanted::Whole => packs.learn_whole(id, bytes),
            Wanted::Index => self.take_tail(packs, pack, bytes),
            Wanted::Record(record) => return self.take_record(packs, (id, record), bytes),
        };
        match taken {
            // Its chunks are in no pack; who needs one hears why.
            Err(error) if error.is_damage() => {
                self.damaged.0.insert(id);
                self.damaged.1 = Some(error);
                Ok(())
            }
            taken => taken,
        }
    }

    /// Takes an entry with a pack that travelled in it.
    ///
    /// # Errors
    /// As [`Self::take`]; [`ContentError::PackMissing`] where the entry does not have it.
    pub fn take_entry(
        &mut self,
        packs: &mut Packs,
        number: usize,
        entry: &Entry,
    ) -> Result<(), ContentError> {
        let count = self.asked.len();
        let no_such = ContentError::NoSuchRecord { record: number, count };
        let id = self.asked.get(number).ok_or(no_such)?.pack.id;
        let found = entry.commit.inline_packs.iter().find(|bytes| pack_id(bytes) == id);
        self.take(packs, number, found.map_or(&[][..], Vec::as_slice))
    }

    /// Returns bytes of the file that follow; nothing where something is wanted first, or where the file has ended.
    ///
    /// # Errors
    /// [`ContentError::ChunkHash`]; [`ContentError::ContentSize`] at the end.
    pub fn read(&mut self, packs: &Packs) -> Result<Vec<u8>, ContentError> {
        let mut bytes = Vec::new();
        self.read_to(packs, usize::MAX, |piece| bytes.extend_from_slice(piece))?;
        Ok(bytes)
    }

    /// Gives bytes of the file that follow to `put`, piece by piece and no more than there is `room` for; returns how many those were: as
    /// [`read`](Self::read) none, or where there is no room. What is left comes with the next call.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_to(
        &mut self,
        packs: &Packs,
        room: usize,
        mut put: impl FnMut(&[u8]),
    ) -> Result<usize, ContentError> {
        self.look_ahead(packs)?;
        let mut length = 0;
        while let Some(chunk) = self.ahead.front().copied() {
            let begun = self.begun;
            let (rest, fits) = (chunk.length as usize - begun, room - length);
            // Each piece of a chunk costs a hash of all of it, so only one that nothing has room for is cut.
            if fits == 0 || rest > fits && length > 0 {
                break;
            }
            let Some(plain) = self.chunk(packs, &chunk)? else { break };
            let piece = &plain[begun..begun + rest.min(fits)];
            put(piece);
            length += piece.len();
            self.allowance.hand_out(rest.min(fits) as u64);
            if rest > fits {
                self.begun += fits;
            } else {
                self.begun = 0;
                self.ahead.pop_front();
            }
        }
        Ok(length)
    }

    /// Tells whether all of the file was read.
    ///
    /// # Errors
    /// [`ContentError::ContentSize`] where the chunks do not add up to its size.
    pub fn is_over(&mut self, packs: &Packs) -> Result<bool, ContentError> {
        self.look_ahead(packs)?;
        Ok(self.is_walked && self.ahead.is_empty())
    }

    /// Looks for the chunks that follow.
    fn look_ahead(&mut self, packs: &Packs) -> Result<(), ContentError> {
        let mut length: u64 = self.ahead.iter().map(|chunk| u64::from(chunk.length)).sum();
        while length < AHEAD_LENGTH {
            match self.walk.step()? {
                ContentStep::Chunk(chunk) => match &mut self.listed {
                    Some(listed) => listed.push(chunk),
                    None => {
                        length += u64::from(chunk.length);
                        self.ahead.push_back(chunk);
                    }
                },
                ContentStep::List(list) => {
                    self.list = Some(list);
                    // What it is made from has no room beside what the chunk that comes next is made from.
                    if !self.ahead.is_empty() && self.wants_bases(packs, &list)? {
                        break;
                    }
                    let Some(plain) = self.chunk(packs, &list)?.map(<[u8]>::to_vec) else { break };
                    self.walk.take_list(&plain)?;
                    self.list = None;
                }
                ContentStep::End => {
                    self.is_walked = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the bytes of a chunk, compared with its id, where its record is here, and all that it is made from.
    fn chunk(&mut self, packs: &Packs, chunk: &ChunkRef) -> Result<Option<&[u8]>, ContentError> {
        let (key, position) = loop {
            let Found::Here(key, position, stored) = self.prepare(packs, chunk, 0)? else {
                return Ok(None);
            };
            if stored.is_none() {
                break (key, position);
            }
            match self.open_here(packs, key, stored) {
                Ok(()) => {
                    self.making.end();
                    break (key, position);
                }
                Err(error) => self.give_up(key, (0, 0), error)?,
            }
        };
        self.turn_to(key).map(|record| record.chunk(position)).transpose()
    }

    /// Returns a record that is open, which is the last one to be forgotten then.
    fn turn_to(&mut self, key: RecordKey) -> Option<&Record> {
        let place = self.records.iter().position(|(open, _)| *open == key)?;
        let used = self.records.remove(place);
        self.records.extend(used);
        self.records.back().map(|(_, record)| record)
    }

    /// Looks for a chunk to which so many deltas in a row lead and, where it is made from others, for these. It is here once they are, and else
    /// what is to be fetched first is returned. Of the packs that have the chunk, the first one counts that has all of them.
    fn prepare(
        &mut self,
        packs: &Packs,
        chunk: &ChunkRef,
        depth: u32,
    ) -> Result<Found, ContentError> {
        loop {
            let found = self.find(packs, chunk, depth)?;
            let Found::Here(key, _, Some((whole, range))) = &found else { return Ok(found) };
            let (key, range) = (*key, range.start as usize..range.end as usize);
            let index = packs.index(&key.0).ok_or(ContentError::PackMissing { id: key.0 })?;
            let bases = index.bases(key.1 as usize)?;
            if bases.is_empty() {
                return Ok(found);
            }
            // The pack may be forgotten before they are here.
            let stored = whole.get(range).unwrap_or_default();
            self.waiting.entry(key).or_insert_with(|| stored.into());
            match self.make_bases(packs, bases, depth + 1) {
                Ok(None) => return Ok(found),
                Ok(Some(first)) => return Ok(first),
                Err(error) => self.give_up(key, (depth, depth), error)?,
            }
        }
    }

    /// Makes what a record is made from, to which with its own so many deltas in a row lead. Returns what is to be fetched first, if anything is.
    fn make_bases(
        &mut self,
        packs: &Packs,
        bases: &[ChunkRef],
        depth: u32,
    ) -> Result<Option<Found>, ContentError> {
        for base in bases {
            while !self.making.has(base, depth) {
                if !self.making.has_room(base, depth) {
                    return Err(ContentError::ChunkMissing { id: base.id });
                }
                let (key, position, stored) = match self.prepare(packs, base, depth)? {
                    Found::Here(key, position, stored) => (key, position, stored),
                    // Unless it is in a pack that nobody has looked into.
                    Found::Nowhere if self.unindexed(packs).is_empty() => {
                        return Err(self.why_missing(base));
                    }
                    first => return Ok(Some(first)),
                };
                if let Err(error) = self.open_here(packs, key, stored) {
                    self.give_up(key, (0, depth), error)?;
                    continue;
                }
                let missing = ContentError::ChunkMissing { id: base.id };
                let bytes =
                    self.turn_to(key).ok_or(missing).and_then(|record| record.chunk(position));
                match bytes.map(<[u8]>::to_vec) {
                    Ok(bytes) => self.making.keep(base, bytes, depth),
                    Err(error) => self.making.fail((key, Some(position)), 0, error)?,
                }
            }
        }
        Ok(None)
    }

    /// Asks a record no more where so many deltas in a row lead to it, and forgets what was made behind so many.
    fn give_up(
        &mut self,
        key: RecordKey,
        (depth, behind): (u32, u32),
        error: ContentError,
    ) -> Result<(), ContentError> {
        self.waiting.remove(&key);
        self.making.forget_behind(behind);
        self.making.fail((key, None), depth, error)
    }

    /// Returns why a chunk is not to be had.
    fn why_missing(&mut self, chunk: &ChunkRef) -> ContentError {
        let why = self.making.why().or_else(|| self.damaged.1.take());
        why.unwrap_or(ContentError::ChunkMissing { id: chunk.id })
    }

    /// Tells whether as much waits for what it is made from as may be asked for ahead.
    fn waits_for_enough(&self) -> bool {
        self.waiting.values().map(|stored| stored.len()).sum::<usize>() > WAITING_LENGTH_MAX
    }

    /// Tells whether a chunk is here in a record that is made from others, and not open.
    fn wants_bases(&self, packs: &Packs, chunk: &ChunkRef) -> Result<bool, ContentError> {
        let Found::Here(key, _, Some(_)) = self.find(packs, chunk, 0)? else { return Ok(false) };
        let index = packs.index(&key.0).ok_or(ContentError::PackMissing { id: key.0 })?;
        Ok(!index.bases(key.1 as usize)?.is_empty())
    }

    /// Opens a record whose bytes are here, unless it is open.
    fn open_here(
        &mut self,
        packs: &Packs,
        key: RecordKey,
        stored: Option<(Arc<[u8]>, Range<u64>)>,
    ) -> Result<(), ContentError> {
        let Some((whole, range)) = stored else { return Ok(()) };
        let stored = whole.get(range.start as usize..range.end as usize);
        self.open(packs, key, stored.unwrap_or_default())
    }

    /// Takes the bytes of a record, and opens it unless it wants others first.
    fn take_record(
        &mut self,
        packs: &Packs,
        key: RecordKey,
        stored: &[u8],
    ) -> Result<(), ContentError> {
        // Indexes that others have learned meanwhile may have pushed it out: it is asked for again, and so is the record.
        let Some(index) = packs.index(&key.0) else { return Ok(()) };
        if index.bases(key.1 as usize)?.is_empty() {
            // Another pack may have what is in it.
            return match self.open(packs, key, stored) {
                Err(error) => self.making.fail((key, None), 0, error),
                opened => opened,
            };
        }
        self.waiting.insert(key, stored.into());
        Ok(())
    }

    /// Looks for a chunk to which so many deltas in a row lead, in the packs that have it and did not fail.
    fn find(&self, packs: &Packs, chunk: &ChunkRef, depth: u32) -> Result<Found, ContentError> {
        for pack in packs.places.packs_of(&chunk.id) {
            if self.damaged.0.contains(&pack.id) {
                continue;
            }
            let Some(index) = packs.index(&pack.id) else {
                return Ok(Found::Index(self.index_of(pack)));
            };
            let Some(packed) = index.packed_chunks().find(|packed| packed.chunk == *chunk) else {
                continue;
            };
            let (key, position) = ((pack.id, packed.record), packed.position as usize);
            if self.making.has_failed(key, position, depth) {
                continue;
            }
            if self.records.iter().any(|(open, _)| *open == key) {
                return Ok(Found::Here(key, position, None));
            }
            if let Some(stored) = self.waiting.get(&key) {
                let stored = (stored.clone(), 0..stored.len() as u64);
                return Ok(Found::Here(key, position, Some(stored)));
            }
            let range = index.record(packed.record as usize)?.stored_range();
            return Ok(match (packs.whole(&pack.id), pack.place.inline_seq) {
                (Some(whole), _) => Found::Here(key, position, Some((whole, range))),
                (None, Some(_)) => Found::Index(PackPart::whole(pack)),
                (None, None) => {
                    Found::Record(PackPart { pack, range, what: Wanted::Record(packed.record) })
                }
            });
        }
        Ok(Found::Nowhere)
    }

    fn index_of(&self, pack: KnownPack) -> PackPart {
        match self.longer.get(&pack.id) {
            Some(length) => PackPart::tail(pack, *length),
            None => PackPart::index(pack),
        }
    }

    /// Returns packs that nobody has looked into, the newest first.
    fn unindexed(&self, packs: &Packs) -> Vec<PackPart> {
        let unindexed = packs.places.unindexed();
        let mut parts = Vec::new();
        for pack in unindexed.into_iter().rev() {
            if !self.damaged.0.contains(&pack.id) && parts.len() < INDEXES_AT_ONCE {
                parts.push(self.index_of(pack));
            }
        }
        parts
    }

    /// Returns packs whose indices were longer than what was fetched of them.
    fn begun(&self, packs: &Packs) -> Vec<PackPart> {
        let mut begun = packs.places.unindexed();
        begun.retain(|pack| {
            self.longer.contains_key(&pack.id) && !self.damaged.0.contains(&pack.id)
        });
        begun.into_iter().take(INDEXES_AT_ONCE).map(|pack| self.index_of(pack)).collect()
    }

    /// Returns packs that nobody has looked into, the largest first: they say most for what it costs.
    fn largest(&self, packs: &Packs, count: usize) -> Vec<PackPart> {
        let mut unindexed = packs.places.unindexed();
        unindexed.retain(|pack| !self.damaged.0.contains(&pack.id));
        unindexed.sort_by_key(|pack| std::cmp::Reverse(pack.place.length));
        unindexed.into_iter().take(count).map(|pack| self.index_of(pack)).collect()
    }

    fn take_tail(
        &mut self,
        packs: &mut Packs,
        pack: KnownPack,
        tail: &[u8],
    ) -> Result<(), ContentError> {
        match PackIndex::from_tail(tail, pack.place.length, &packs.guard)? {
            TailOutcome::Complete(index) => packs.learn(pack.id, index),
            TailOutcome::NeedMore { bytes } if bytes > tail.len() as u64 => {
                self.longer.insert(pack.id, bytes);
            }
            TailOutcome::NeedMore { .. } => return Err(ContentError::PackMissing { id: pack.id }),
        }
        Ok(())
    }

    fn open(&mut self, packs: &Packs, key: RecordKey, stored: &[u8]) -> Result<(), ContentError> {
        let index = packs.index(&key.0).ok_or(ContentError::PackMissing { id: key.0 })?;
        let number = key.1 as usize;
        let bases: Option<Vec<&[u8]>> =
            index.bases(number)?.iter().map(|base| self.making.bytes(base)).collect();
        let bases = bases.ok_or(ContentError::NeedsBases)?;
        self.allowance.ask()?;
        let opened = self.opener.open_on(&index, number, stored, &bases, &packs.namer);
        self.allowance.count(self.opener.take_work());
        let record = opened?;
        self.waiting.remove(&key);
        if self.records.len() >= RECORDS_MAX
            && let Some((_, oldest)) = self.records.pop_front()
        {
            self.opener.recycle(oldest);
        }
        self.records.push_back((key, record));
        Ok(())
    }
}
