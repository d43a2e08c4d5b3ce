//! Checkpoints: the folded state at one entry as a hash tree of pages, so that a new device need not replay the log.
//!
//! A map from byte keys to byte values, sorted, is cut into pages at places that the keys choose, and the list of
//! pages is cut again, until one page is left. Two maps that differ in one key share all pages but one per level,
//! whatever the order in which they came to be, so a new checkpoint costs what has changed since the last.

use crate::codec::{
    Decode, DecodeError, Decoder, Encode, Encoder, Message, decode_message, encode_message,
};
use crate::commit::{Head, PackRef};
use crate::ids::{DeviceId, NodeId, PackId, PageId};
use crate::tree::TreeNode;

/// How many entries a page has on average.
const PAGE_ENTRIES_AVERAGE: u64 = 256;

/// How many entries a page has at most.
const PAGE_ENTRIES_MAX: usize = 1024;

/// How many levels a hash tree has at most; 256 to the power of 8 entries are more than anyone has.
const PAGE_LEVELS_MAX: u8 = 8;

/// The longest key of a page entry, in bytes.
const KEY_LENGTH_MAX: usize = 64;

/// The longest value of a page entry, in bytes.
const VALUE_LENGTH_MAX: usize = 64 * 1024;

/// A key with its value.
type Pair = (Vec<u8>, Vec<u8>);

/// One page of a hash tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// 0 for entries of the map; above, the values are the ids of pages one level down.
    level: u8,
    /// Keys and values in the order of the keys. Above level 0 a key is the first key of the page below.
    entries: Vec<Pair>,
}

impl Page {
    /// Returns how far it is above the entries of the map: 0 has these, 1 lists pages that have them.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Returns the pages that this one lists.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = PageId> {
        let listed = self.entries.iter().filter(|_| self.level > 0);
        let id = |(_, child): &Pair| child.as_slice().try_into().expect("it was looked at");
        listed.map(move |pair| PageId::from_bytes(id(pair)))
    }
}

/// The state of a workspace at one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The entry up to which the log is folded.
    pub head: Head,
    /// Hash tree of [`NodeId`] to [`TreeNode`].
    pub nodes: PageId,
    /// How many nodes there are, living or not; 0 in a sealed workspace, where nobody is told.
    pub node_count: u64,
    /// Hash tree of [`PackId`] to [`PackPlace`].
    pub packs: PageId,
    /// The sequence number of the last fence (see [`crate::fence`]), 0 before the first.
    pub fence: u64,
    /// Whether the settings speak of mounted folders (see [`crate::mounts`]).
    pub has_mounts: bool,
    /// Whether any commit up to the head has named packs with delta records.
    pub has_deltas: bool,
    /// What proves that a device of the owner made it, in a sealed workspace.
    pub seal: Option<CheckpointSeal>,
}

/// What proves that a device of the owner of a sealed workspace made a checkpoint (`docs/design/keys.md`, "Checkpoints").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointSeal {
    /// The number of the key that made it.
    pub epoch: u32,
    /// The keyed hash of everything else in the checkpoint.
    pub tag: [u8; 32],
    /// Which device made it.
    pub device: DeviceId,
    /// The public key of the device.
    pub device_key: [u8; 32],
    /// The account's signature that the key is this device's.
    pub certificate: [u8; 64],
    /// The device's signature of what the tag is of.
    pub signature: [u8; 64],
}

impl Encode for CheckpointSeal {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(u64::from(self.epoch));
        encoder.raw(&self.tag);
        self.device.encode(encoder);
        encoder.raw(&self.device_key);
        encoder.raw(&self.certificate);
        encoder.raw(&self.signature);
    }
}

impl Decode for CheckpointSeal {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            epoch: decoder.unsigned32()?,
            tag: decoder.array()?,
            device: DeviceId::decode(decoder)?,
            device_key: decoder.array()?,
            certificate: decoder.array()?,
            signature: decoder.array()?,
        })
    }
}

/// Where a pack of the workspace rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackPlace {
    /// Its length in bytes.
    pub length: u64,
    /// The entry in which it travelled; nothing where it rests in the store.
    pub inline_seq: Option<u64>,
}

/// Returns the id of an encoded page.
pub fn page_id(encoded: &[u8]) -> PageId {
    PageId::from_bytes(*blake3::hash(encoded).as_bytes())
}

/// Builds the hash tree of a sorted map and returns the id of its topmost page. Every page goes to `store`, lower levels
/// first, in the form in which it is stored: `seal` gets the encoding of a page and returns that. Equal pages must have
/// equal forms.
///
/// # Errors
/// Those of `seal` and `store`.
pub fn build_pages<E>(
    entries: impl IntoIterator<Item = Pair>,
    seal: impl Fn(Vec<u8>) -> Result<Vec<u8>, E>,
    mut store: impl FnMut(PageId, Vec<u8>) -> Result<(), E>,
) -> Result<PageId, E> {
    let mut store = |page: Vec<u8>| {
        let stored = seal(page)?;
        let id = page_id(&stored);
        store(id, stored)?;
        Ok(id)
    };
    let mut level = 0;
    let mut pages = build_level(level, entries, &mut store)?;
    while pages.len() > 1 {
        level += 1;
        assert!(level < PAGE_LEVELS_MAX, "every level is much smaller than the one below");
        pages = build_level(level, pages, &mut store)?;
    }
    let (_, top) = pages.pop().expect("a level has at least one page");
    Ok(PageId::from_bytes(top.try_into().expect("a level holds page ids")))
}

fn build_level<E>(
    level: u8,
    entries: impl IntoIterator<Item = Pair>,
    store: &mut impl FnMut(Vec<u8>) -> Result<PageId, E>,
) -> Result<Vec<Pair>, E> {
    let mut pages = Vec::new();
    let mut page = Page { level, entries: Vec::new() };
    let mut is_empty = true;
    let mut close = |page: &mut Page| {
        let id = store(encode_message(page))?;
        let first_key = page.entries.first().map_or_else(Vec::new, |(key, _)| key.clone());
        page.entries.clear();
        pages.push((first_key, id.as_bytes().to_vec()));
        Ok(())
    };
    for (key, value) in entries {
        is_empty = false;
        let ends = ends_page(level, &key);
        page.entries.push((key, value));
        if ends || page.entries.len() == PAGE_ENTRIES_MAX {
            close(&mut page)?;
        }
    }
    // An empty map has one page, too.
    if !page.entries.is_empty() || (level == 0 && is_empty) {
        close(&mut page)?;
    }
    Ok(pages)
}

/// Tells whether a page ends after this key: a property of the key alone, so that a page never depends on how the
/// map came to be. The level enters, since otherwise every page above would end after its first entry.
fn ends_page(level: u8, key: &[u8]) -> bool {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[level]).update(key);
    let hash = hasher.finalize();
    let (word, _) = hash.as_bytes().split_at(8);
    u64::from_le_bytes(word.try_into().expect("eight bytes")) % PAGE_ENTRIES_AVERAGE == 0
}

/// A way through a hash tree in the order of its keys, for whoever fetches the pages.
#[derive(Debug)]
pub struct PageWalk {
    /// The pages to come, the next one last, and their levels; that of the topmost is not known.
    pending: Vec<(PageId, Option<u8>)>,
    last_key: Option<Vec<u8>>,
}

impl PageWalk {
    /// Begins at the topmost page.
    pub fn new(top: PageId) -> Self {
        Self { pending: vec![(top, None)], last_key: None }
    }

    /// Returns the page that is wanted now; nothing at the end.
    pub fn wanted(&self) -> Option<PageId> {
        self.pending.last().map(|(id, _)| *id)
    }

    /// Returns the pages that are wanted next as far as they are known, that of [`Self::wanted`] the first of them. What these list
    /// comes before what follows them.
    pub fn upcoming(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pending.iter().rev().map(|(id, _)| *id)
    }

    /// Takes the encoding of the wanted page, which the caller has compared with its id. Returns its entries, which are
    /// none where it lists other pages.
    ///
    /// # Errors
    /// [`DecodeError`], also where the page is at another place than in the tree of a sorted map.
    pub fn take(&mut self, encoded: &[u8]) -> Result<Vec<Pair>, DecodeError> {
        let page: Page = decode_message(encoded)?;
        let end = Decoder::new(&[]);
        let level = self.pending.pop().and_then(|(_, level)| level);
        if level.is_some_and(|level| level != page.level) {
            return Err(end.invalid("checkpoint page", "it has the wrong level"));
        }
        if page.level > 0 {
            let below = page.children().rev().map(|child| (child, Some(page.level - 1)));
            self.pending.extend(below);
            return Ok(Vec::new());
        }
        if let (Some(last), Some((first, _))) = (&self.last_key, page.entries.first())
            && last >= first
        {
            return Err(end.invalid("checkpoint page", "its keys come too late"));
        }
        self.last_key = page.entries.last().map(|(key, _)| key.clone()).or(self.last_key.take());
        Ok(page.entries)
    }
}

/// Returns the map entry of a node.
pub fn node_entry(id: &NodeId, node: &TreeNode) -> (Vec<u8>, Vec<u8>) {
    entry_of(id.as_bytes(), node)
}

/// Returns the map entry of a pack.
pub fn pack_entry(pack: &PackRef, inline_seq: Option<u64>) -> (Vec<u8>, Vec<u8>) {
    entry_of(pack.id.as_bytes(), &PackPlace { length: pack.length, inline_seq })
}

fn entry_of(key: &[u8], value: &impl Encode) -> (Vec<u8>, Vec<u8>) {
    let mut encoder = Encoder::default();
    value.encode(&mut encoder);
    (key.to_vec(), encoder.into_bytes())
}

/// Reads a map entry of nodes or packs.
///
/// # Errors
/// [`DecodeError`].
pub fn decode_entry<K: Decode, V: Decode>(key: &[u8], value: &[u8]) -> Result<(K, V), DecodeError> {
    let (mut key, mut value) = (Decoder::new(key), Decoder::new(value));
    let pair = (K::decode(&mut key)?, V::decode(&mut value)?);
    key.finish()?;
    value.finish()?;
    Ok(pair)
}

impl Encode for Page {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(u64::from(self.level));
        encoder.unsigned(self.entries.len() as u64);
        for (key, value) in &self.entries {
            encoder.byte_string(key);
            encoder.byte_string(value);
        }
    }
}

impl Decode for Page {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let level = decoder.unsigned_max(u64::from(PAGE_LEVELS_MAX - 1))? as u8;
        let count = decoder.unsigned_max(PAGE_ENTRIES_MAX as u64)?;
        let mut entries: Vec<Pair> = Vec::new();
        for _ in 0..count {
            let key = decoder.byte_string(KEY_LENGTH_MAX)?;
            if entries.last().is_some_and(|(last, _)| last.as_slice() >= key) {
                return Err(decoder.invalid("checkpoint page", "its keys are in no order"));
            }
            let value = decoder.byte_string(VALUE_LENGTH_MAX)?;
            if level > 0 && value.len() != PageId::from_bytes([0; 32]).as_bytes().len() {
                return Err(decoder.invalid("checkpoint page", "it lists what is no page"));
            }
            entries.push((key.to_vec(), value.to_vec()));
        }
        Ok(Self { level, entries })
    }
}

impl Message for Page {
    const MAGIC: u8 = b'T';
    const KIND: &'static str = "checkpoint page";
}

impl Encode for Checkpoint {
    fn encode(&self, encoder: &mut Encoder) {
        self.head.encode(encoder);
        self.nodes.encode(encoder);
        encoder.unsigned(self.node_count);
        self.packs.encode(encoder);
        if self.fence > 0 {
            encoder.unsigned(self.fence);
        }
        if let Some(seal) = &self.seal {
            assert!(
                encoder.is_sealed(),
                "a message with a sealed checkpoint has the sealed version"
            );
            seal.encode(encoder);
        }
    }
}

impl Decode for Checkpoint {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let head = Head::decode(decoder)?;
        let nodes = PageId::decode(decoder)?;
        let node_count = decoder.unsigned()?;
        let packs = PageId::decode(decoder)?;
        let fence = if decoder.is_of_cleanup() { decoder.unsigned()? } else { 0 };
        let seal = match decoder.is_sealed() {
            true => Some(CheckpointSeal::decode(decoder)?),
            false => None,
        };
        let (has_mounts, has_deltas) = (decoder.is_of_mounts(), decoder.is_of_deltas());
        Ok(Self { head, nodes, node_count, packs, fence, has_mounts, has_deltas, seal })
    }
}

impl Message for Checkpoint {
    const MAGIC: u8 = b'K';
    const KIND: &'static str = "checkpoint";

    fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    fn is_of_cleanup(&self) -> bool {
        self.fence > 0
    }

    fn is_of_mounts(&self) -> bool {
        self.has_mounts
    }

    fn is_of_deltas(&self) -> bool {
        self.has_deltas
    }
}

impl Encode for PackPlace {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(self.length);
        encoder.unsigned(self.inline_seq.map_or(0, |seq| seq));
    }
}

impl Decode for PackPlace {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let length = decoder.unsigned()?;
        let inline_seq = Some(decoder.unsigned()?).filter(|&seq| seq > 0);
        Ok(Self { length, inline_seq })
    }
}

/// Reads the key of a pack entry.
///
/// # Errors
/// [`DecodeError`].
pub fn decode_pack_entry(key: &[u8], value: &[u8]) -> Result<(PackId, PackPlace), DecodeError> {
    decode_entry(key, value)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};
    use std::convert::Infallible;

    use super::*;

    fn map(count: u32) -> BTreeMap<Vec<u8>, Vec<u8>> {
        (0..count)
            .map(|n| (blake3::hash(&n.to_le_bytes()).as_bytes().to_vec(), vec![n as u8]))
            .collect()
    }

    fn stored(map: &BTreeMap<Vec<u8>, Vec<u8>>) -> (PageId, HashMap<PageId, Vec<u8>>) {
        let mut pages = HashMap::new();
        let entries = map.iter().map(|(key, value)| (key.clone(), value.clone()));
        let Ok(top) = build_pages(entries, Ok::<_, Infallible>, |id, page| {
            pages.insert(id, page);
            Ok(())
        });
        (top, pages)
    }

    fn read(
        top: PageId,
        pages: &HashMap<PageId, Vec<u8>>,
    ) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, DecodeError> {
        let (mut walk, mut map) = (PageWalk::new(top), BTreeMap::new());
        while let Some(id) = walk.wanted() {
            map.extend(walk.take(&pages[&id])?);
        }
        Ok(map)
    }

    #[test]
    fn pages_return_the_map() {
        for count in [0, 1, 255, 1025, 70_000] {
            let map = map(count);
            let (top, pages) = stored(&map);
            assert_eq!(read(top, &pages).expect("whole"), map);
        }
    }

    #[test]
    fn one_more_key_changes_one_page_per_level() {
        let mut map = map(20_000);
        let (_, before) = stored(&map);
        map.insert(vec![7; 32], vec![1]);
        let (_, after) = stored(&map);
        let new = after.keys().filter(|id| !before.contains_key(*id)).count();
        assert!(new <= 4, "{new} new pages of {}", after.len());
    }

    #[test]
    fn page_at_the_place_of_another_is_noticed() {
        let (top, pages) = stored(&map(2_000));
        let leaves: Vec<_> = pages.keys().filter(|id| **id != top).collect();
        assert!(leaves.len() > 2);
        for leaf in &leaves {
            for other in pages.keys().filter(|other| other != leaf) {
                let mut swapped = pages.clone();
                swapped.insert(**leaf, pages[other].clone());
                // What was in its place is missing, which the hash of the page tells; here the order does, or the level.
                if let Ok(read) = read(top, &swapped) {
                    panic!("{} entries with {other} in the place of {leaf}", read.len());
                }
            }
        }
    }

    #[test]
    fn page_without_order_or_with_wrong_children_is_refused() {
        let pair = |key: u8, length: usize| (vec![key], vec![0; length]);
        for (level, entries, is_page) in [
            (0, vec![pair(1, 3), pair(2, 0)], true),
            (0, vec![pair(2, 3), pair(1, 3)], false),
            (0, vec![pair(1, 3), pair(1, 3)], false),
            (1, vec![pair(1, 32)], true),
            (1, vec![pair(1, 31)], false),
        ] {
            let page = encode_message(&Page { level, entries });
            assert_eq!(decode_message::<Page>(&page).is_ok(), is_page);
        }
    }
}
