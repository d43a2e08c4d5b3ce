use std::collections::HashMap;
use std::iter::once;

use proptest::prelude::*;

use model::{Genesis, Mode, Timestamp};

use super::*;
use crate::delta::{ChunkAssembler, ChunkClient, DeltaPart, Plain, SessionId};
use crate::naming::WorkspaceContentKeys;
use crate::pack::{Ancestry, FinishedPack, PACK_STORED_TARGET, RecordOpener};
use crate::packing::PackSettings;
use crate::samples::{random_bytes, text};
use crate::sealed::PackGuard;
use crate::transform::{Transform, TransformTag};

/// A workspace: which chunks it has, and the packs they are in.
#[derive(Default)]
pub(in crate::packing) struct Workspace {
    /// How many deltas have to be opened for a chunk.
    depths: HashMap<ChunkId, usize>,
    /// For each chunk, all that it is made from, with their lengths.
    pub(in crate::packing) behind: HashMap<ChunkId, HashMap<ChunkId, u32>>,
    pub(in crate::packing) claimed: HashMap<ChunkId, u32>,
    pub(in crate::packing) packs: Vec<FinishedPack>,
    depth_max: usize,
}

impl PackSink for &mut Workspace {
    type Error = ContentError;

    fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
        Ok(self.claimed.insert(chunk.id, chunk.length).is_none())
    }

    fn knows(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
        Ok(self.claimed.contains_key(&chunk.id))
    }

    fn ancestry(&mut self, chunk: &ChunkRef) -> Result<Option<Ancestry>, ContentError> {
        let depth = self.depths.get(&chunk.id).filter(|_| self.depth_max > 0);
        let behind = self.behind.get(&chunk.id);
        let length =
            behind.map_or(0, |behind| behind.values().map(|length| u64::from(*length)).sum());
        let chunks = behind.map_or(0, HashMap::len);
        Ok(depth.map(|depth| Ancestry { depth: *depth as u32, chunks, length }))
    }

    fn emit(&mut self, pack: FinishedPack) -> Result<(), ContentError> {
        for packed in pack.index.packed_chunks() {
            let bases = pack.index.bases(packed.record as usize)?;
            let depth = bases.iter().map(|base| self.depths[&base.id] + 1).max();
            self.depths.insert(packed.chunk.id, depth.unwrap_or(0));
            let mut behind: HashMap<ChunkId, u32> = HashMap::new();
            for base in bases {
                behind.insert(base.id, base.length);
                behind.extend(self.behind.get(&base.id).into_iter().flatten());
            }
            self.behind.insert(packed.chunk.id, behind);
        }
        self.packs.push(pack);
        Ok(())
    }
}

impl Workspace {
    pub(in crate::packing) fn packer(&mut self) -> FilePacker<&mut Self> {
        self.packer_of(PACK_STORED_TARGET)
    }

    /// Packs into packs that should have so many stored bytes.
    pub(in crate::packing) fn packer_of(&mut self, target: usize) -> FilePacker<&mut Self> {
        let transform = Transform::default();
        let settings = PackSettings { transform, guard: PackGuard::plain(), target };
        FilePacker::new(&keys(), &settings, self).unwrap()
    }

    /// Stores a file of which nothing is known.
    pub(in crate::packing) fn store(&mut self, bytes: &[u8]) -> (Content, VersionSketch) {
        let mut packer = self.packer();
        let stored = packer.pack_first(&mut &bytes[..], None).unwrap();
        packer.finish().unwrap();
        stored
    }

    /// Stores the next version of a file; returns how many bytes of packs that took, beside.
    pub(in crate::packing) fn edit(
        &mut self,
        base: &VersionSketch,
        new: &[u8],
    ) -> (Content, VersionSketch, usize) {
        let before = self.stored();
        let mut packer = self.packer();
        let (content, version) = packer.pack_edited(base, &mut &new[..]).unwrap();
        packer.finish().unwrap();
        (content, version, self.stored() - before)
    }

    pub(in crate::packing) fn stored(&self) -> usize {
        self.packs.iter().map(|pack| pack.bytes.len()).sum()
    }

    /// Reads a chunk as a reader does that knows where each rests.
    pub(in crate::packing) fn chunk(&self, id: &ChunkId) -> Vec<u8> {
        let places = self
            .packs
            .iter()
            .flat_map(|pack| pack.index.packed_chunks().map(move |packed| (pack, packed)));
        let (pack, packed) =
            places.into_iter().find(|(_, packed)| packed.chunk.id == *id).expect("it is stored");
        let record = packed.record as usize;
        let bases = pack.index.bases(record).unwrap();
        let bases: Vec<Vec<u8>> = bases.iter().map(|base| self.chunk(&base.id)).collect();
        let bases: Vec<&[u8]> = bases.iter().map(Vec::as_slice).collect();
        let range = pack.index.records()[record].stored_range();
        let stored = &pack.bytes[range.start as usize..range.end as usize];
        let mut opener = RecordOpener::default();
        let opened = opener.open_on(&pack.index, record, stored, &bases, &keys().namer()).unwrap();
        opened.chunk(packed.position as usize).unwrap().to_vec()
    }

    pub(in crate::packing) fn read(&self, version: &VersionSketch) -> Vec<u8> {
        version.chunks().iter().flat_map(|chunk| self.chunk(&chunk.id)).collect()
    }

    fn has_deltas(&self) -> bool {
        let records = self.packs.iter().flat_map(|pack| pack.index.records());
        records.into_iter().any(|record| record.transform() == TransformTag::Delta)
    }
}

pub(in crate::packing) fn keys() -> WorkspaceContentKeys {
    WorkspaceContentKeys::derive(&[7; 32])
}

pub(in crate::packing) fn workspace() -> Workspace {
    Workspace { depth_max: 8, ..Workspace::default() }
}

/// What cutting a version alone gives.
pub(in crate::packing) fn content_alone(bytes: &[u8], kept: u32) -> Content {
    let mut alone = workspace();
    let mut packer = alone.packer();
    let content = packer.pack_bytes(bytes, Some(kept)).unwrap();
    packer.finish().unwrap();
    content
}

#[test]
fn first_version_is_cut_and_stored_as_if_nothing_were_kept_of_it() {
    for bytes in [random_bytes(1, 3 << 20), text(2, 100_000), Vec::new(), vec![1]] {
        let mut workspace = workspace();
        let (content, sketch) = workspace.store(&bytes);
        assert_eq!(content, content_alone(&bytes, content.chunk_size));
        assert!(workspace.read(&sketch) == bytes && !workspace.has_deltas());
    }
}

#[test]
fn changed_byte_costs_its_piece() {
    let mut workspace = workspace();
    let old = random_bytes(1, 3 << 20);
    let (first, base) = workspace.store(&old);
    let mut new = old.clone();
    new[1 << 20] ^= 1;
    let (content, version, cost) = workspace.edit(&base, &new);
    assert_eq!(content, content_alone(&new, first.chunk_size));
    assert!(workspace.read(&version) == new);
    assert!(cost < 500, "{cost} bytes");
    // What is kept of it is what would be kept of it alone.
    assert_eq!(version, self::workspace().store(&new).1);
}

#[test]
fn piece_that_has_the_sum_of_another_by_chance_is_not_taken_for_it() {
    let mut workspace = workspace();
    let old = random_bytes(1, 200_000);
    let (_, base) = workspace.store(&old);
    let mut new = old.clone();
    new[100_000] ^= 1;
    // The sums by which pieces are found are those of the new version, so that all of it is found in the old one.
    let survey = |mut bytes: &[u8]| {
        ChunkClient::survey(&keys(), base.base().table().chunk_size(), &mut bytes)
    };
    let (mut forged, new_sums) = (base.encode(), survey(&new).unwrap().encode());
    let head = survey(&old).unwrap().encode().len();
    let pieces: usize = base.chunks().iter().map(|it| it.length.div_ceil(256) as usize).sum();
    assert_eq!(new_sums.len(), head, "both are cut alike");
    forged[head - pieces * 6..head].copy_from_slice(&new_sums[head - pieces * 6..]);
    let forged = VersionSketch::decode(&forged).unwrap();
    assert_ne!(forged, base);
    let (_, version, cost) = workspace.edit(&forged, &new);
    assert!(workspace.read(&version) == new);
    assert!(cost < 600 && workspace.has_deltas(), "{cost} bytes");
}

/// A file that is another one, or is gone, when something of it is read for the second time.
struct Changing<'a> {
    bytes: &'a [u8],
    read_until: u64,
    is_gone: bool,
}

impl RangedSource for Changing<'_> {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.bytes.read_at(offset, buffer)?;
        if offset < self.read_until {
            buffer[0] ^= 1;
            return if self.is_gone { Err(std::io::ErrorKind::BrokenPipe.into()) } else { Ok(()) };
        }
        self.read_until = offset + buffer.len() as u64;
        Ok(())
    }
}

#[test]
fn file_that_changes_while_it_is_read_claims_nothing_that_is_not_packed() {
    let old = random_bytes(1, 200_000);
    let mut new = old.clone();
    new[100_000] ^= 1;
    for is_gone in [false, true] {
        let mut workspace = workspace();
        let (content, base) = workspace.store(&old);
        let lost = content.chunks[3].id;
        workspace.claimed.remove(&lost);
        workspace.depths.remove(&lost);
        let mut packer = workspace.packer();
        let mut source = Changing { bytes: &new, read_until: 0, is_gone };
        let error = packer.pack_edited(&base, &mut source).unwrap_err();
        assert!(matches!(error, ContentError::Read { .. }), "{error}");
        packer.finish().unwrap();
        let packed: Vec<ChunkId> = workspace
            .packs
            .iter()
            .flat_map(|pack| pack.index.chunks().iter().map(|chunk| chunk.id))
            .collect();
        assert!(workspace.claimed.keys().all(|claimed| packed.contains(claimed)));
        // So the same file is whole when it is packed again.
        let (_, version, _) = workspace.edit(&base, &new);
        assert!(workspace.read(&version) == new);
    }
}

#[test]
fn deltas_of_two_files_have_records_of_their_own() {
    let mut workspace = workspace();
    let files = [random_bytes(1, 50_000), random_bytes(2, 50_000)];
    let bases: Vec<_> = files.iter().map(|file| workspace.store(file).1).collect();
    let mut packer = workspace.packer();
    for (file, base) in files.iter().zip(&bases) {
        let mut new = file.clone();
        new[20_000] ^= 1;
        packer.pack_edited(base, &mut &new[..]).unwrap();
    }
    packer.finish().unwrap();
    let pack = workspace.packs.last().unwrap();
    for (record, base) in bases.iter().enumerate() {
        let needed = pack.index.bases(record).unwrap();
        assert!(!needed.is_empty() && needed.iter().all(|chunk| base.chunks().contains(chunk)));
    }
}

#[test]
fn file_that_grows_a_little_costs_a_little_and_is_written_whole_before_it_is_too_deep() {
    let mut workspace = workspace();
    let mut file = random_bytes(1, 9000);
    let (_, mut base) = workspace.store(&file);
    let mut costs = Vec::new();
    for line in 0..12 {
        file.extend(random_bytes(100 + line, 100));
        let (_, version, cost) = workspace.edit(&base, &file);
        assert!(workspace.read(&version) == file);
        (base, _) = (version, costs.push(cost));
    }
    let large = costs.iter().filter(|cost| **cost > 9000).count();
    assert_eq!(large, 1, "{costs:?}");
    assert!(costs.iter().filter(|cost| **cost < 700).count() == 11, "{costs:?}");
}

#[test]
fn file_that_grows_by_more_than_its_last_chunk_costs_what_is_new() {
    let mut workspace = workspace();
    let mut file = random_bytes(1, 3000);
    let (_, mut base) = workspace.store(&file);
    let mut costs = Vec::new();
    for round in 0..30 {
        file.extend(random_bytes(100 + round, 11_000));
        let (content, version, cost) = workspace.edit(&base, &file);
        assert!(workspace.read(&version) == file && content == content_alone(&file, 16 << 10));
        (base, _) = (version, costs.push(cost));
    }
    // A thirtieth, with all that packs say about themselves; where all that is not new were sent again it would be a third.
    assert!(costs.iter().sum::<usize>() < 30 * 11_400, "{costs:?}");
}

#[test]
fn nothing_is_a_delta_where_no_chunk_may_be_a_base() {
    let mut workspace = Workspace::default();
    let old = random_bytes(1, 200_000);
    let (_, base) = workspace.store(&old);
    let new = [&old[..100_000], b"new", &old[100_000..]].concat();
    let (content, version, _) = workspace.edit(&base, &new);
    assert!(workspace.read(&version) == new && !workspace.has_deltas());
    assert_eq!(content, content_alone(&new, 16 << 10));
}

/// What a server does with the delta of somebody who has a sketch of the version before.
#[test]
fn version_that_comes_as_a_delta_costs_what_is_new_in_it() {
    let genesis = Genesis {
        name: "files".to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: [7; 32],
    };
    let plain = Plain::of(&genesis).unwrap();
    let mut workspace = workspace();
    let mut old = random_bytes(1, 3 << 20);
    let (first, sketch) = workspace.store(&old);
    let mut base = ChunkClient::survey(&keys(), sketch.chunk_size(), &mut &old[..]).unwrap();
    let mut costs = Vec::new();
    for edit in 0..10_usize {
        let mut new = old.clone();
        new.splice((1 << 20) + edit..(1 << 20) + edit, *b"new");
        let before = workspace.stored();
        let mut packer = workspace.packer();
        let session = SessionId::from_bytes([edit as u8; 16]);
        let table = base.table().clone();
        let mut assembler = ChunkAssembler::new(plain.workspace(), keys().namer(), table, u64::MAX);
        let keys = keys();
        let mut client = ChunkClient::new(&keys, plain.workspace(), session);
        let mut assembled = None;
        let deliver = |part: DeltaPart| {
            let message = part.into_message(plain)?;
            let pack = |made: MadeChunk<'_>| packer.pack_made(made).map_err(DeltaError::from);
            assembled = assembler.take(&message, &mut &old[..], pack)?;
            Ok::<_, DeltaError>(())
        };
        client.send_delta(&base, None, &mut &new[..], deliver).unwrap();
        let table = assembled.and_then(|it: crate::delta::Assembled| it.table).unwrap();
        let content = packer.pack_list(first.chunk_size, table.chunks()).unwrap();
        packer.finish().unwrap();
        assert_eq!(content, content_alone(&new, first.chunk_size));
        let read: Vec<u8> =
            table.chunks().iter().flat_map(|chunk| workspace.chunk(&chunk.id)).collect();
        assert!(read == new);
        costs.push(workspace.stored() - before);
        (base, old) = (client.into_base(), new);
    }
    let whole = costs.iter().filter(|cost| **cost > 100_000).count();
    assert!(costs.iter().filter(|cost| **cost < 1000).count() == 9 && whole == 1, "{costs:?}");
}

#[test]
fn chunk_of_which_somebody_says_that_it_is_made_from_itself_is_stored_whole() {
    let mut workspace = workspace();
    let bytes = random_bytes(1, 200_000);
    let (content, sketch) = workspace.store(&bytes);
    let (chunk, base) = (content.chunks[3], sketch.base().table());
    // Whoever knows no place where it rests whole wants it again.
    workspace.claimed.remove(&chunk.id);
    let offset = base.start(3);
    let steps = [ByteStep::Copy { offset, length: chunk.length }];
    let bytes = &bytes[offset as usize..base.start(4) as usize];
    let mut packer = workspace.packer();
    packer.pack_made(MadeChunk { chunk, bytes, steps: &steps, base }).unwrap();
    packer.finish().unwrap();
    let last = workspace.packs.last().unwrap();
    assert!(last.index.chunks() == [chunk] && !last.index.has_deltas());
}

#[test]
fn chunk_is_stored_whole_where_the_version_before_is_made_up_of_the_shortest_chunks() {
    let zero = random_bytes(9, 1)[0];
    let one = ChunkRef { id: keys().namer().name(&[zero]), length: 1 };
    let base = ChunkTable::new(16 << 10, vec![one; 100_000]).unwrap();
    let bytes = vec![zero; 100_000];
    let steps = [ByteStep::Copy { offset: 0, length: 100_000 }];
    assert!(stretches(&base, &bytes, &steps, |_, _, here| once(0..here.len())).is_empty());
    let chunk = ChunkRef { id: keys().namer().name(&bytes), length: 100_000 };
    let mut workspace = workspace();
    let mut packer = workspace.packer();
    packer.pack_made(MadeChunk { chunk, bytes: &bytes, steps: &steps, base: &base }).unwrap();
    packer.finish().unwrap();
    let last = workspace.packs.last().unwrap();
    assert!(last.index.chunks() == [chunk] && !last.index.has_deltas());
}

#[test]
fn chunk_of_the_version_before_that_no_pack_has_any_more_is_stored_again() {
    let mut workspace = workspace();
    let old = random_bytes(1, 200_000);
    let (content, base) = workspace.store(&old);
    let lost = content.chunks[3].id;
    workspace.claimed.remove(&lost);
    workspace.depths.remove(&lost);
    let new = [&old[..], b"more"].concat();
    let (_, version, cost) = workspace.edit(&base, &new);
    assert!(cost > content.chunks[3].length as usize);
    let last = workspace.packs.last().unwrap();
    assert!(last.index.chunks().contains(&content.chunks[3]));
    assert!(workspace.read(&version) == new);
}

#[test]
fn what_has_nothing_in_common_with_its_version_before_is_stored_whole() {
    let mut workspace = workspace();
    let (_, base) = workspace.store(&random_bytes(1, 100_000));
    for new in [random_bytes(2, 150_000), Vec::new(), vec![1]] {
        let (content, version, _) = workspace.edit(&base, &new);
        assert_eq!(content, content_alone(&new, 16 << 10));
        assert!(workspace.read(&version) == new);
    }
    assert!(!workspace.has_deltas());
}

#[test]
fn version_that_cannot_be_read_is_an_error_of_reading() {
    struct Broken;
    impl RangedSource for Broken {
        fn size(&self) -> u64 {
            100_000
        }
        fn read_at(&mut self, _: u64, _: &mut [u8]) -> std::io::Result<()> {
            Err(std::io::ErrorKind::PermissionDenied.into())
        }
    }
    let mut workspace = workspace();
    let (_, base) = workspace.store(&random_bytes(1, 100_000));
    let error = workspace.packer().pack_edited(&base, &mut Broken).unwrap_err();
    assert!(matches!(error, ContentError::Read { .. }), "{error}");
}

/// Where a file is edited, how many bytes are removed and put in there, and whether these are text.
pub(in crate::packing) type Edit = (prop::sample::Index, usize, usize, bool);

/// Some edits of a file, one after the other.
pub(in crate::packing) fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = (any::<prop::sample::Index>(), 0_usize..30_000, 0_usize..30_000, any::<bool>());
    prop::collection::vec(edit, 1..8)
}

pub(in crate::packing) fn apply(
    file: &mut Vec<u8>,
    (at, removed, inserted, is_text): Edit,
    seed: u64,
) {
    let at = at.index(file.len() + 1);
    let end = (at + removed).min(file.len());
    let more = if is_text { text(seed ^ 1, inserted) } else { random_bytes(seed, inserted) };
    file.splice(at..end, more);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_version_comes_back_and_is_cut_as_if_it_were_the_first(
        edits in edits(),
        seed in any::<u64>(),
    ) {
        let mut workspace = workspace();
        let mut file = text(seed, 120_000);
        let (first, mut base) = workspace.store(&file);
        for edit in edits {
            apply(&mut file, edit, seed);
            let (content, version, _) = workspace.edit(&base, &file);
            prop_assert_eq!(content, content_alone(&file, first.chunk_size));
            prop_assert!(workspace.read(&version) == file);
            base = version;
        }
    }
}
