use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::naming::WorkspaceContentKeys;
use crate::pack::{FinishedPack, PACK_STORED_TARGET, RecordOpener};
use crate::packing::PackSettings;
use crate::samples::{random_bytes, text};
use crate::sealed::PackGuard;
use crate::transform::{Transform, TransformTag};

/// A workspace: which chunks it has, and the packs they are in.
#[derive(Default)]
struct Workspace {
    /// How many deltas have to be opened for a chunk.
    depths: HashMap<ChunkId, usize>,
    claimed: HashMap<ChunkId, u32>,
    packs: Vec<FinishedPack>,
    depth_max: usize,
}

impl PackSink for &mut Workspace {
    type Error = ContentError;

    fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
        Ok(self.claimed.insert(chunk.id, chunk.length).is_none())
    }

    fn may_be_base(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
        Ok(self.depths.get(&chunk.id).is_some_and(|depth| *depth < self.depth_max))
    }

    fn emit(&mut self, pack: FinishedPack) -> Result<(), ContentError> {
        for packed in pack.index.packed_chunks() {
            let bases = pack.index.bases(packed.record as usize)?;
            let depth = bases.iter().map(|base| self.depths[&base.id] + 1).max();
            self.depths.insert(packed.chunk.id, depth.unwrap_or(0));
        }
        self.packs.push(pack);
        Ok(())
    }
}

impl Workspace {
    fn packer(&mut self) -> FilePacker<&mut Self> {
        let (transform, target) = (Transform::default(), PACK_STORED_TARGET);
        let settings = PackSettings { transform, guard: PackGuard::plain(), target };
        FilePacker::new(&keys(), &settings, self).unwrap()
    }

    /// Stores a file of which nothing is known.
    fn store(&mut self, bytes: &[u8]) -> (Content, BaseVersion) {
        let mut packer = self.packer();
        let content = packer.pack_bytes(bytes, None).unwrap();
        packer.finish().unwrap();
        let survey =
            crate::delta::ChunkClient::survey(&keys(), content.chunk_size, &mut &bytes[..]);
        (content, survey.unwrap())
    }

    /// Stores the next version of a file; returns how many bytes of packs that took, beside.
    fn edit(
        &mut self,
        base: &BaseVersion,
        old: Option<&[u8]>,
        new: &[u8],
    ) -> (Content, BaseVersion, usize) {
        let before = self.stored();
        let mut packer = self.packer();
        let mut old = old;
        let old = old.as_mut().map(|old| old as &mut dyn RangedSource);
        let (content, version) = packer.pack_edited(base, old, &mut &new[..]).unwrap();
        packer.finish().unwrap();
        (content, version, self.stored() - before)
    }

    fn stored(&self) -> usize {
        self.packs.iter().map(|pack| pack.bytes.len()).sum()
    }

    /// Reads a chunk as a reader does that knows where each rests.
    fn chunk(&self, id: &ChunkId) -> Vec<u8> {
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

    fn read(&self, version: &BaseVersion) -> Vec<u8> {
        version.table().chunks().iter().flat_map(|chunk| self.chunk(&chunk.id)).collect()
    }

    fn has_deltas(&self) -> bool {
        let records = self.packs.iter().flat_map(|pack| pack.index.records());
        records.into_iter().any(|record| record.transform() == TransformTag::Delta)
    }
}

fn keys() -> WorkspaceContentKeys {
    WorkspaceContentKeys::derive(&[7; 32])
}

fn workspace() -> Workspace {
    Workspace { depth_max: 8, ..Workspace::default() }
}

/// What cutting a version alone gives.
fn content_alone(bytes: &[u8], kept: u32) -> Content {
    let mut alone = workspace();
    let mut packer = alone.packer();
    let content = packer.pack_bytes(bytes, Some(kept)).unwrap();
    packer.finish().unwrap();
    content
}

#[test]
fn changed_byte_costs_its_piece_by_the_sketch_and_itself_by_the_old_bytes() {
    for (has_bytes, most) in [(false, 500), (true, 180)] {
        let mut workspace = workspace();
        let old = random_bytes(1, 3 << 20);
        let (first, base) = workspace.store(&old);
        let mut new = old.clone();
        new[1 << 20] ^= 1;
        let (content, version, cost) = workspace.edit(&base, has_bytes.then_some(&old[..]), &new);
        assert_eq!(content, content_alone(&new, first.chunk_size));
        assert!(workspace.read(&version) == new);
        assert!(cost < most, "{cost} bytes");
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
        let (_, version, cost) = workspace.edit(&base, None, &file);
        assert!(workspace.read(&version) == file);
        (base, _) = (version, costs.push(cost));
    }
    let large = costs.iter().filter(|cost| **cost > 9000).count();
    assert_eq!(large, 1, "{costs:?}");
    assert!(costs.iter().filter(|cost| **cost < 700).count() == 11, "{costs:?}");
}

#[test]
fn nothing_is_a_delta_where_no_chunk_may_be_a_base() {
    let mut workspace = Workspace::default();
    let old = random_bytes(1, 200_000);
    let (_, base) = workspace.store(&old);
    let new = [&old[..100_000], b"new", &old[100_000..]].concat();
    let (content, version, _) = workspace.edit(&base, Some(&old), &new);
    assert!(workspace.read(&version) == new && !workspace.has_deltas());
    assert_eq!(content, content_alone(&new, 16 << 10));
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
    let (_, version, cost) = workspace.edit(&base, None, &new);
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
        let (content, version, _) = workspace.edit(&base, None, &new);
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
    let error = workspace.packer().pack_edited(&base, None, &mut Broken).unwrap_err();
    assert!(matches!(error, ContentError::Read { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_version_comes_back_and_is_cut_as_if_it_were_the_first(
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0_usize..30_000, 0_usize..30_000, any::<bool>()), 1..8),
        has_bytes in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut workspace = workspace();
        let mut file = text(seed, 120_000);
        let (first, mut base) = workspace.store(&file);
        for (at, removed, inserted, is_text) in edits {
            let at = at.index(file.len() + 1);
            let end = (at + removed).min(file.len());
            let old = file.clone();
            let more = if is_text { text(seed ^ 1, inserted) } else { random_bytes(seed, inserted) };
            file.splice(at..end, more);
            let (content, version, _) =
                workspace.edit(&base, has_bytes.then_some(&old[..]), &file);
            prop_assert_eq!(content, content_alone(&file, first.chunk_size));
            prop_assert!(workspace.read(&version) == file);
            base = version;
        }
    }
}
