//! In which packs the chunks of a workspace rest.
//!
//! *Goals*: little memory for each chunk, since a workspace has many. *Invariants*: what a
//! fence condemns holds nothing. Whether a chunk that a pack makes from others counts as known is for whoever asks ([`ChunkPlaces::contains`],
//! [`ChunkPlaces::is_readable`]): what it is made from elsewhere may be gone. Half of an id stands for all of it: the other half is compared
//! when a chunk is read, and nobody finds two chunks whose halves are equal.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::pack::{Ancestry, PackIndex};
use model::checkpoint::PackPlace;
use model::{ChunkId, ChunkRef, PackId, PackRef};

/// About how many bytes of memory a chunk takes: 29 were measured, with a full map.
const CHUNK_WEIGHT: usize = 40;

/// About how many bytes of memory a pack takes.
const PACK_WEIGHT: usize = 160;

/// About how many bytes of memory something takes that a record is made from.
const BASE_WEIGHT: usize = 64;

/// How often chunks are looked at to find out what stands behind one. Packs of somebody hostile may name bases without end.
const LOOKS_MAX: usize = 4096;

/// Half of the id of a chunk.
type Half = [u8; 16];

/// A pack that the log names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPack {
    /// Its id.
    pub id: PackId,
    /// Its length, and the entry in which it travelled.
    pub place: PackPlace,
}

/// What all packs hold together that no fence condemns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PackTotals {
    /// How many they are.
    pub count: u64,
    /// Their length in bytes.
    pub stored: u64,
    /// How many bytes their chunks have before they are packed, those in two packs twice; nothing while some of them were not
    /// looked into.
    pub content: Option<u64>,
}

/// What stands behind a chunk, as far as it was looked at.
#[derive(Default)]
struct Behind {
    /// How deep each chunk is, that one among them; nothing for one that cannot be made, or is still being looked at.
    depths: HashMap<Half, Option<u32>>,
    /// How many bytes they have together, but for that one.
    length: u64,
    looks: usize,
}

/// Where chunks rest.
#[derive(Debug, Default)]
pub struct ChunkPlaces {
    /// By number; nothing where a fence has condemned the pack.
    packs: Vec<Option<KnownPack>>,
    /// How many bytes the chunks of a pack have, by its number; nothing before it was looked into.
    contents: Vec<Option<u64>>,
    numbers: HashMap<PackId, u32>,
    chunks: HashMap<Half, u32>,
    /// Further packs of chunks that are in several.
    more: HashMap<Half, Vec<u32>>,
    /// Chunks that are made from others in a pack: in which of the records.
    deltas: HashMap<(Half, u32), u32>,
    /// What records are made from, and how many chunks that is.
    records: Vec<Box<[ChunkRef]>>,
    base_count: usize,
    unindexed: BTreeSet<u32>,
}

impl ChunkPlaces {
    /// Adds a pack that the log names.
    pub fn add_pack(&mut self, pack: &PackRef, inline_seq: Option<u64>) {
        if self.numbers.contains_key(&pack.id) {
            return;
        }
        let number = self.packs.len() as u32;
        let place = PackPlace { length: pack.length, inline_seq };
        self.packs.push(Some(KnownPack { id: pack.id, place }));
        self.contents.push(None);
        self.numbers.insert(pack.id, number);
        self.unindexed.insert(number);
    }

    /// Forgets packs that a fence condemns.
    pub fn forget_packs(&mut self, condemned: &[PackId]) {
        for id in condemned {
            if let Some(number) = self.numbers.remove(id) {
                self.packs[number as usize] = None;
            }
        }
    }

    /// Returns the packs whose chunks are not known yet.
    pub fn unindexed(&self) -> Vec<KnownPack> {
        self.unindexed.iter().filter_map(|&number| self.packs[number as usize]).collect()
    }

    /// Learns which chunks a pack has.
    pub fn learn(&mut self, pack: &PackId, index: &PackIndex) {
        let Some(&number) = self.numbers.get(pack) else { return };
        if !self.unindexed.remove(&number) {
            return;
        }
        let content = index.chunks().iter().map(|chunk| u64::from(chunk.length)).sum();
        self.contents[number as usize] = Some(content);
        for chunk in index.chunks() {
            let half = half(&chunk.id);
            match self.chunks.get(&half) {
                Some(&holder) if self.packs[holder as usize].is_some() => {
                    self.more.entry(half).or_default().push(number);
                }
                _ => drop(self.chunks.insert(half, number)),
            }
        }
        let mut made = HashMap::new();
        for record in 0..index.records().len() {
            let Ok(bases @ [_, ..]) = index.bases(record) else { continue };
            made.insert(record as u32, self.records.len() as u32);
            self.records.push(bases.into());
            self.base_count += bases.len();
        }
        if made.is_empty() {
            return;
        }
        // Who reads a chunk that is in several records of a pack takes the first of these.
        let mut seen = HashSet::new();
        for packed in index.packed_chunks() {
            let half = half(&packed.chunk.id);
            if seen.insert(half)
                && let Some(made) = made.get(&packed.record)
            {
                self.deltas.insert((half, number), *made);
            }
        }
    }

    /// Tells whether a chunk is in a pack, and whole there.
    pub fn contains(&self, chunk: &ChunkId) -> bool {
        let half = half(chunk);
        self.live(&half).any(|number| !self.deltas.contains_key(&(half, number)))
    }

    /// Tells whether a chunk is in a pack, whole or made from what is in packs, too, so that every reader has it: devices count the chunk
    /// itself among those that it is made from.
    pub fn is_readable(&self, chunk: &ChunkRef) -> bool {
        let behind = self.ancestry(&chunk.id);
        behind.is_some_and(|behind| Ancestry::of_record([(*chunk, behind)]).is_readable())
    }

    /// Returns what stands behind a chunk at most, in whichever of its packs it is read: nothing where it rests whole. Nothing is known
    /// where it is in no pack, or in one that makes it from what is in none.
    pub fn ancestry(&self, chunk: &ChunkId) -> Option<Ancestry> {
        let mut behind = Behind::default();
        let depth = self.depth_of((half(chunk), 0), &mut behind)?;
        let Behind { depths, length, .. } = behind;
        Some(Ancestry { depth, chunks: depths.len() - 1, length })
    }

    /// Returns how many deltas in a row are opened for what is itself so many deltas behind a chunk.
    fn depth_of(&self, (half, above): (Half, u32), behind: &mut Behind) -> Option<u32> {
        behind.looks += 1;
        if let Some(depth) = behind.depths.get(&half).filter(|_| behind.looks <= LOOKS_MAX) {
            return *depth;
        }
        let is_too_deep = !Ancestry { depth: above, ..Ancestry::default() }.is_readable();
        if behind.looks > LOOKS_MAX || is_too_deep {
            return None;
        }
        // Whatever is made from itself is never made.
        behind.depths.insert(half, None);
        let records = self.live(&half).map(|number| self.deltas.get(&(half, number)));
        let depth = match records.collect::<Option<Vec<_>>>() {
            None => Some(0),
            Some(records) => {
                let mut deepest = None;
                let bases = records.into_iter().flat_map(|record| &self.records[*record as usize]);
                for base in bases {
                    let half = self::half(&base.id);
                    if !behind.depths.contains_key(&half) {
                        behind.length += u64::from(base.length);
                    }
                    deepest = deepest.max(Some(self.depth_of((half, above + 1), behind)? + 1));
                }
                deepest
            }
        };
        behind.depths.insert(half, depth);
        depth
    }

    /// Returns the numbers of the packs that have a chunk and that no fence condemns.
    fn live(&self, half: &Half) -> impl Iterator<Item = u32> {
        self.numbers_of(half).filter(|number| self.packs[*number as usize].is_some())
    }

    fn numbers_of(&self, half: &Half) -> impl Iterator<Item = u32> {
        let more = self.more.get(half).into_iter().flatten();
        self.chunks.get(half).into_iter().chain(more).copied()
    }

    /// Returns the packs that have a chunk: first those that have it whole, and of each kind the one that was learned of first in front.
    pub fn packs_of(&self, chunk: &ChunkId) -> Vec<KnownPack> {
        let half = half(chunk);
        let mut numbers: Vec<u32> = self.numbers_of(&half).collect();
        numbers.sort_by_key(|number| self.deltas.contains_key(&(half, *number)));
        numbers.into_iter().filter_map(|number| self.packs[number as usize]).collect()
    }

    /// Adds up what the packs hold.
    pub fn totals(&self) -> PackTotals {
        let mut totals = PackTotals { content: Some(0), ..PackTotals::default() };
        for (pack, content) in self.packs.iter().zip(&self.contents) {
            let Some(pack) = pack else { continue };
            totals.count += 1;
            totals.stored += pack.place.length;
            totals.content = totals.content.zip(*content).map(|(sum, content)| sum + content);
        }
        totals
    }

    /// Returns about how many bytes of memory this takes.
    pub fn weight(&self) -> usize {
        self.chunks.len() * CHUNK_WEIGHT
            + (self.more.len() * 2 + self.deltas.len()) * CHUNK_WEIGHT
            + self.base_count * BASE_WEIGHT
            + self.packs.len() * PACK_WEIGHT
    }
}

fn half(chunk: &ChunkId) -> Half {
    let (half, _) = chunk.as_bytes().split_at(16);
    half.try_into().expect("an id has twice as many bytes")
}

#[cfg(test)]
mod tests;
