//! Chooses what a cleanup writes anew: packs of which much is needless, and chunks that are made from others which nothing else needs.
//!
//! *Goals*: little stays stored that nobody needs, and little is written for that. *Non-goals*: the fewest bytes that are possible: what was
//! compressed together is measured by its part of a record. *Invariants*: this decides what is written, never what is removed: the
//! survey that follows does, by what was read back.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use content::PackIndex;
use content::transform::TransformTag;
use model::{ChunkId, ChunkRef};

use super::CleanupOptions;
use super::survey::{Needed, NeededChunks};
use crate::engine::Engine;
use crate::error::Result;
use crate::state::ChunkPlace;
use crate::state::packs::KnownPack;

/// How many chunks are gone back to find one of which is known what it takes where it rests whole.
const STEPS_MAX: usize = 64;

/// What is written anew.
#[derive(Debug, Default)]
pub(super) struct Anew {
    /// Chunks of files that are made from chunks which nothing else needs, each with a place where it is. They become whole, and what
    /// they were made from needless.
    pub turned: Vec<(Needed, ChunkPlace)>,
    /// Packs of which much is needless, the least needed first.
    pub sparse: Vec<SparsePack>,
    /// How many bytes that takes, about.
    pub length: u64,
    /// How many bytes of the stores are needless then and stay, about.
    pub needless: u64,
}

/// A pack of which much is needless.
#[derive(Debug)]
pub(super) struct SparsePack {
    /// The pack.
    pub pack: KnownPack,
    /// What is needed of it and becomes whole, with the record that it is in.
    pub needed: Vec<(Needed, ChunkPlace)>,
    /// Records that are copied as they are: they would take more if their chunks were whole.
    pub records: Vec<ChunkPlace>,
}

impl Anew {
    /// Tells whether nothing is written.
    pub(super) fn is_empty(&self) -> bool {
        self.turned.is_empty() && self.sparse.is_empty()
    }

    /// Returns how many of the packs that are written anew are objects of the stores, which go.
    pub(super) fn freed_count(&self) -> u64 {
        self.freed().count() as u64
    }

    /// Returns how many bytes these have.
    pub(super) fn freed_length(&self) -> u64 {
        self.freed().map(|pack| pack.place.length).sum()
    }

    fn freed(&self) -> impl Iterator<Item = &KnownPack> {
        let packs = self.sparse.iter().map(|sparse| &sparse.pack);
        packs.filter(|pack| pack.place.inline_seq.is_none())
    }
}

/// In which records chunks are made, and from which others.
pub(super) struct Makings {
    bases: HashMap<ChunkPlace, Vec<ChunkRef>>,
    /// Only those places of a chunk where it is made.
    made_in: HashMap<ChunkId, Vec<ChunkPlace>>,
}

impl Makings {
    /// Tells where a chunk is made, each with what it is made from there.
    fn of(&self, chunk: &ChunkId) -> impl Iterator<Item = (ChunkPlace, &[ChunkRef])> {
        let places = self.made_in.get(chunk).into_iter().flatten();
        places.map(|place| (*place, &self.bases[place][..]))
    }

    /// Tells what the chunks in a place are made from; nothing where they rest whole.
    pub(super) fn at(&self, place: ChunkPlace) -> &[ChunkRef] {
        self.bases.get(&place).map_or(&[], Vec::as_slice)
    }

    /// Returns what chunks of files are made from, and what that is made from, which is in no file itself; `counts` tells which places
    /// count.
    pub(super) fn behind(
        &self,
        files: &NeededChunks,
        counts: impl Fn(&ChunkId, ChunkPlace) -> bool,
    ) -> HashMap<ChunkId, ChunkRef> {
        let mut behind = HashMap::new();
        let mut unseen: Vec<ChunkId> = files.keys().copied().collect();
        while let Some(chunk) = unseen.pop() {
            let places = self.of(&chunk).filter(|(place, _)| counts(&chunk, *place));
            for base in places.flat_map(|(_, bases)| bases) {
                if !files.contains_key(&base.id) && behind.insert(base.id, *base).is_none() {
                    unseen.push(base.id);
                }
            }
        }
        behind
    }
}

/// A chunk in a pack.
struct Slice {
    chunk: ChunkRef,
    place: ChunkPlace,
    /// How many of the stored bytes are its own.
    stored: u64,
    transform: TransformTag,
}

/// The packs of which something may be needless, and what their chunks take.
#[derive(Default)]
struct Measured {
    packs: Vec<(KnownPack, Vec<Slice>)>,
    /// What a chunk takes in all of them,
    stored: HashMap<ChunkId, u64>,
    /// where it is made from others,
    made: HashMap<ChunkId, u64>,
    /// and where it is compressed by itself.
    whole: HashMap<ChunkId, u64>,
}

impl Measured {
    fn add(&mut self, pack: KnownPack, index: &PackIndex) {
        let slices: Vec<Slice> = index
            .packed_chunks()
            .map(|packed| {
                let record = &index.records()[packed.record as usize];
                let chunks = index.chunks()[record.chunks()].iter();
                let plain: u64 = chunks.map(|chunk| u64::from(chunk.length)).sum();
                let range = record.stored_range();
                let part = (range.end - range.start) * u64::from(packed.chunk.length);
                Slice {
                    chunk: packed.chunk,
                    place: ChunkPlace { pack: pack.number, record: packed.record },
                    stored: part.div_ceil(plain.max(1)),
                    transform: record.transform(),
                }
            })
            .collect();
        for Slice { chunk, stored, transform, .. } in &slices {
            *self.stored.entry(chunk.id).or_default() += stored;
            match transform {
                TransformTag::Delta | TransformTag::Deflate => {
                    *self.made.entry(chunk.id).or_default() += stored;
                }
                TransformTag::Jpeg => {}
                _ => drop(self.whole.insert(chunk.id, *stored)),
            }
        }
        self.packs.push((pack, slices));
    }

    /// Returns how many bytes a chunk takes where it is written anew, whole: like what it is made from, where that is known.
    fn anew(&self, slice: &Slice, makings: &Makings) -> u64 {
        let length = u64::from(slice.chunk.length);
        match slice.transform {
            TransformTag::Delta => self.like_its_base(&slice.chunk, makings).min(length),
            // Documents and pictures are compressed already.
            TransformTag::Deflate | TransformTag::Jpeg => length,
            _ => slice.stored,
        }
    }

    fn like_its_base(&self, chunk: &ChunkRef, makings: &Makings) -> u64 {
        let length = u64::from(chunk.length);
        let mut base = *chunk;
        for _ in 0..STEPS_MAX {
            if let Some(stored) = self.whole.get(&base.id) {
                return (stored * length).div_ceil(u64::from(base.length).max(1));
            }
            let Some(next) = makings.of(&base.id).find_map(|(_, bases)| bases.first()) else {
                break;
            };
            base = *next;
        }
        length
    }
}

/// Chunks that only others are made from, those of files that are made from them, and what it takes to have these whole.
#[derive(Default)]
struct Group {
    bases: Vec<ChunkId>,
    turned: Vec<(Needed, ChunkPlace)>,
    /// How many bytes are needless then.
    freed: u64,
    /// How many are written.
    length: u64,
}

impl Engine {
    /// Looks up in which records chunks are made, and from what.
    pub(super) fn makings(&self) -> Result<Makings> {
        let mut makings = Makings { bases: self.state.all_bases()?, made_in: HashMap::new() };
        if makings.bases.is_empty() {
            return Ok(makings);
        }
        self.state.each_chunk(|chunk, place| {
            if makings.bases.contains_key(&place) {
                makings.made_in.entry(chunk).or_default().push(place);
            }
        })?;
        Ok(makings)
    }

    /// Chooses what is written anew, from packs that can be read, each with whether files have every chunk in it.
    pub(super) async fn choose_anew(
        &mut self,
        files: &NeededChunks,
        makings: &Makings,
        packs: Vec<(KnownPack, bool)>,
        options: &CleanupOptions,
    ) -> Result<Anew> {
        let mut stored = BySort::default();
        for (pack, _) in &packs {
            *stored.of(pack) += pack.place.length;
        }
        let behind = makings.behind(files, |_, _| true);
        let made_of_them: HashSet<u64> = makings
            .bases
            .iter()
            .filter(|(_, bases)| bases.iter().any(|base| behind.contains_key(&base.id)))
            .map(|(place, _)| place.pack)
            .collect();
        let mut measured = Measured::default();
        for (pack, is_full) in packs {
            if is_full && !made_of_them.contains(&pack.number) {
                continue;
            }
            match self.fetcher.index(&self.state, &pack).await {
                Ok(index) => measured.add(pack, &index),
                // It stays; `check` has more to say about it.
                Err(error) if error.is_of_stored_data() => {}
                Err(error) => return Err(error),
            }
        }
        let groups = self.groups_to_turn(files, &behind, makings, &measured)?;
        let mut groups = worth_turning(groups, stored.all(), options);
        let whole = turned(&groups);
        let needed = makings.behind(files, |chunk, _| !whole.contains(chunk));
        let length = groups.iter().map(|group| group.length).sum();
        let chosen = measured.choose((stored, length), options, makings, |slice| {
            let id = &slice.chunk.id;
            let is_turned = slice.transform.has_bases() && whole.contains(id);
            !is_turned && (files.contains_key(id) || needed.contains_key(id))
        });
        // What stays where it is frees nothing.
        groups.retain(|group| group.bases.iter().any(|base| chosen.chunks.contains(base)));
        let whole = turned(&groups);
        let is_made_whole = |id: &ChunkId| whole.contains(id) || chosen.whole.contains(id);
        let needed = makings.behind(files, |id, _| !is_made_whole(id));
        let needed_of = |slice: &Slice| {
            let base =
                || needed.get(&slice.chunk.id).map(|&chunk| Needed { chunk, is_list: false });
            let found = files.get(&slice.chunk.id).copied().or_else(base)?;
            Some((found, slice.place))
        };
        let sparse = chosen.packs.iter().map(|(number, records)| {
            let (pack, slices) = &measured.packs[*number];
            let rest = slices.iter().filter(|slice| !records.contains(&slice.place));
            let needed = rest.filter_map(needed_of).collect();
            let records = records.iter().copied().collect();
            SparsePack { pack: *pack, needed, records }
        });
        let sparse = sparse.collect();
        let length = chosen.length + groups.iter().map(|group| group.length).sum::<u64>();
        let turned = groups.into_iter().flat_map(|group| group.turned).collect();
        Ok(Anew { turned, sparse, length, needless: chosen.needless })
    }

    /// Finds which chunks of files would have to be whole for which others to be needless: those that have to do with each other are one
    /// group.
    fn groups_to_turn(
        &self,
        files: &NeededChunks,
        behind: &HashMap<ChunkId, ChunkRef>,
        makings: &Makings,
        measured: &Measured,
    ) -> Result<Vec<Group>> {
        let mut joined = Joined::default();
        let mut turned = Vec::new();
        for chunk in makings.made_in.keys() {
            let needed = files.get(chunk);
            if needed.is_none() && !behind.contains_key(chunk) {
                continue;
            }
            let bases = makings.of(chunk).flat_map(|(_, bases)| bases);
            let only: Vec<ChunkId> =
                bases.map(|base| base.id).filter(|base| behind.contains_key(base)).collect();
            let itself = needed.is_none().then_some(*chunk);
            joined.join(only.iter().copied().chain(itself));
            if let (Some(needed), [first, ..]) = (needed, &only[..]) {
                turned.push((*needed, *first));
            }
        }
        let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
        for base in behind.keys() {
            let group = groups.entry(joined.of(*base)).or_default();
            group.bases.push(*base);
            group.freed += measured.stored.get(base).copied().unwrap_or_default();
        }
        // In the order of packs, which are read one after the other.
        let mut slices: HashMap<ChunkId, &Slice> = HashMap::new();
        for slice in measured.packs.iter().flat_map(|(_, slices)| slices) {
            if slice.transform.has_bases() {
                slices.insert(slice.chunk.id, slice);
            }
        }
        for (needed, base) in turned {
            let id = needed.chunk.id;
            let group = groups.entry(joined.of(base)).or_default();
            let Some(place) = makings.of(&id).map(|(place, _)| place).max() else { continue };
            group.turned.push((needed, place));
            group.freed += measured.made.get(&id).copied().unwrap_or_default();
            let places = self.state.chunk_places(&id)?;
            if places.iter().any(|place| !makings.bases.contains_key(place)) {
                continue;
            }
            group.length += match slices.get(&id) {
                Some(slice) => measured.anew(slice, makings),
                // It is in the log only.
                None => measured.like_its_base(&needed.chunk, makings),
            };
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        for group in &mut groups {
            group.turned.sort_unstable_by_key(|(needed, place)| (*place, needed.chunk.id));
        }
        Ok(groups)
    }
}

/// Takes those groups that free most for what they write, until little of all that is stored could be freed by the others.
fn worth_turning(mut groups: Vec<Group>, stored: u64, options: &CleanupOptions) -> Vec<Group> {
    groups.retain(|group| {
        group.length <= options.repack_length_max && pays(group.length, group.freed, options)
    });
    // By place where they are alike, so that two devices choose the same.
    let place =
        |group: &Group| group.turned.first().map(|(needed, place)| (*place, needed.chunk.id));
    groups.sort_by_key(|group| (group.length * 1000 / group.freed, place(group)));
    let gain = |group: &Group| group.freed.saturating_sub(group.length);
    let (mut wasted, mut length) = (groups.iter().map(gain).sum::<u64>(), 0);
    groups.retain(|group| {
        // Half of what may be needless is left to packs.
        let is_little = wasted * 200 <= stored.saturating_sub(wasted) * options.waste_percent_max;
        let is_much = length + group.length > options.repack_length_max;
        if group.length > 0 && (is_little || is_much) {
            return false;
        }
        wasted -= gain(group);
        length += group.length;
        true
    });
    groups
}

/// Returns the chunks that groups make whole.
fn turned(groups: &[Group]) -> HashSet<ChunkId> {
    groups.iter().flat_map(|group| &group.turned).map(|(it, _)| it.chunk.id).collect()
}

/// Bytes of packs that are objects of the stores, and of those in entries: what is needless of these frees nothing there.
#[derive(Default)]
struct BySort {
    objects: u64,
    in_entries: u64,
}

impl BySort {
    fn of(&mut self, pack: &KnownPack) -> &mut u64 {
        match pack.place.inline_seq {
            Some(_) => &mut self.in_entries,
            None => &mut self.objects,
        }
    }

    fn all(&self) -> u64 {
        self.objects + self.in_entries
    }
}

/// Packs that are written anew.
#[derive(Default)]
struct Chosen {
    /// By their numbers among those that were measured, each with the records that are copied as they are.
    packs: Vec<(usize, BTreeSet<ChunkPlace>)>,
    /// Every chunk in them.
    chunks: HashSet<ChunkId>,
    /// Those in records that are not copied as they are.
    whole: HashSet<ChunkId>,
    /// How many bytes are written for them.
    length: u64,
    /// How many of the stores are needless then.
    needless: u64,
}

/// What it takes to write a pack anew.
struct Offer {
    /// How many bytes nobody needs, with their part of the index.
    waste: u64,
    length: u64,
    records: BTreeSet<ChunkPlace>,
}

impl Measured {
    fn offer(
        &self,
        (pack, slices): &(KnownPack, Vec<Slice>),
        makings: &Makings,
        is_needed: impl Fn(&Slice) -> bool,
    ) -> Offer {
        // Of each record: what all of it takes, what is needed of it, and what that takes when it is whole.
        let mut records: BTreeMap<ChunkPlace, (u64, u64, u64)> = BTreeMap::new();
        for slice in slices {
            let (all, needed, anew) = records.entry(slice.place).or_default();
            *all += slice.stored;
            if is_needed(slice) {
                *needed += slice.stored;
                *anew += self.anew(slice, makings);
            }
        }
        let is_as_it_is =
            |(_, (all, needed, anew)): &(&ChunkPlace, &(u64, u64, u64))| *needed > 0 && all < anew;
        let as_they_are = records.iter().filter(is_as_it_is).map(|(place, _)| *place).collect();
        let sum = |part: fn(&(u64, u64, u64)) -> u64| records.values().map(part).sum::<u64>();
        let needed =
            sum(|(all, needed, anew)| if *needed > 0 && all < anew { *all } else { *needed });
        let length = sum(|(all, needed, anew)| if *needed > 0 { *all.min(anew) } else { 0 });
        let all = sum(|(all, ..)| *all);
        let waste = pack.place.length.saturating_sub(pack.place.length * needed / all.max(1));
        Offer { waste, length, records: as_they_are }
    }

    /// Chooses those packs of which the least is needed, until little of all that is stored is needless. So many bytes are written already.
    fn choose(
        &self,
        (mut stored, written): (BySort, u64),
        options: &CleanupOptions,
        makings: &Makings,
        is_needed: impl Fn(&Slice) -> bool,
    ) -> Chosen {
        let mut wasted = BySort::default();
        let mut found = Vec::new();
        for (number, measured) in self.packs.iter().enumerate() {
            let offer = self.offer(measured, makings, &is_needed);
            let (pack, length) = (measured.0, measured.0.place.length);
            *wasted.of(&pack) += offer.waste;
            if offer.waste > 0 && pays(offer.length, length, options) {
                found.push((offer.length * 1000 / length.max(1), pack, number, offer));
            }
        }
        found.sort_unstable_by_key(|(part, pack, ..)| (*part, pack.id));
        let mut chosen = Chosen::default();
        for (_, pack, number, Offer { waste, length, records }) in found {
            let (stored, wasted) = (*stored.of(&pack), wasted.of(&pack));
            let is_little =
                *wasted * 100 <= stored.saturating_sub(*wasted) * options.waste_percent_max;
            let is_much = written + chosen.length + length > options.repack_length_max;
            if length > 0 && (is_little || is_much) {
                continue;
            }
            *wasted = wasted.saturating_sub(waste);
            chosen.length += length;
            for slice in &self.packs[number].1 {
                chosen.chunks.insert(slice.chunk.id);
                if !records.contains(&slice.place) {
                    chosen.whole.insert(slice.chunk.id);
                }
            }
            chosen.packs.push((number, records));
        }
        chosen.needless = wasted.objects;
        chosen
    }
}

/// Tells whether so many bytes are few enough to write for those that go.
fn pays(written: u64, freed: u64, options: &CleanupOptions) -> bool {
    written.saturating_mul(100) < freed.saturating_mul(options.repack_below_percent)
}

/// Chunks that have to do with each other.
#[derive(Default)]
struct Joined {
    numbers: HashMap<ChunkId, usize>,
    /// Of each number one that it was joined with, itself for the one that stands for all.
    parents: Vec<usize>,
}

impl Joined {
    /// Returns what stands for all chunks that a chunk was joined with.
    fn of(&mut self, chunk: ChunkId) -> usize {
        let next = self.parents.len();
        let mut number = *self.numbers.entry(chunk).or_insert(next);
        if number == next {
            self.parents.push(next);
        }
        while self.parents[number] != number {
            self.parents[number] = self.parents[self.parents[number]];
            number = self.parents[number];
        }
        number
    }

    fn join(&mut self, chunks: impl Iterator<Item = ChunkId>) {
        let mut first = None;
        for chunk in chunks {
            let number = self.of(chunk);
            let first = *first.get_or_insert(number);
            self.parents[number] = first;
        }
    }
}
