//! In which packs the chunks of a workspace rest.
//!
//! *Goals*: little memory for each chunk, since a workspace has many. *Invariants*: a chunk counts as known only where a
//! pack that the log names and no fence condemns has it whole: what it is made from elsewhere may be gone. Half of an id stands for all of it: the other half is compared
//! when a chunk is read, and nobody finds two chunks whose halves are equal.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::pack::PackIndex;
use model::checkpoint::PackPlace;
use model::{ChunkId, PackId, PackRef};

/// About how many bytes of memory a chunk takes: 29 were measured, with a full map.
const CHUNK_WEIGHT: usize = 40;

/// About how many bytes of memory a pack takes.
const PACK_WEIGHT: usize = 160;

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
    /// Chunks that are made from others in a pack.
    deltas: HashSet<(Half, u32)>,
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
        for record in index.records().iter().filter(|it| it.transform().has_bases()) {
            let chunks = index.chunks()[record.chunks()].iter();
            self.deltas.extend(chunks.map(|chunk| (half(&chunk.id), number)));
        }
    }

    /// Tells whether a chunk is in a pack, and whole there.
    pub fn contains(&self, chunk: &ChunkId) -> bool {
        let half = half(chunk);
        let is_whole = |number: u32| {
            self.packs[number as usize].is_some() && !self.deltas.contains(&(half, number))
        };
        self.numbers_of(&half).any(is_whole)
    }

    fn numbers_of(&self, half: &Half) -> impl Iterator<Item = u32> {
        let more = self.more.get(half).into_iter().flatten();
        self.chunks.get(half).into_iter().chain(more).copied()
    }

    /// Returns the packs that have a chunk: first those that have it whole, and of each kind the one that was learned of first in front.
    pub fn packs_of(&self, chunk: &ChunkId) -> Vec<KnownPack> {
        let half = half(chunk);
        let mut numbers: Vec<u32> = self.numbers_of(&half).collect();
        numbers.sort_by_key(|number| self.deltas.contains(&(half, *number)));
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
            + self.packs.len() * PACK_WEIGHT
    }
}

fn half(chunk: &ChunkId) -> Half {
    let (half, _) = chunk.as_bytes().split_at(16);
    half.try_into().expect("an id has twice as many bytes")
}
