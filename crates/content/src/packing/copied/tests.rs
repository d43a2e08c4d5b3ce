use std::ops::Range;

use model::ChunkId;
use proptest::prelude::*;

use super::*;
use crate::chunker::{ChunkerKind, Chunks};
use crate::packing::edited::tests::{Workspace, content_alone, keys, workspace};
use crate::samples::{random_bytes, text};

const AVERAGE: u32 = 1024;
const NONE: ChunkRef = ChunkRef { id: ChunkId::from_bytes([0; 32]), length: 0 };

impl Workspace {
    fn table(&self, content: &Content) -> ChunkTable {
        let fetch = |list: &ChunkRef| Ok::<_, ContentError>(self.chunk(&list.id));
        ChunkTable::of_content(content, fetch).unwrap()
    }

    fn bytes(&self, content: &Content) -> Vec<u8> {
        let chunks = self.table(content);
        chunks.chunks().iter().flat_map(|chunk| self.chunk(&chunk.id)).collect()
    }
}

/// A part of a version.
#[derive(Debug, Clone)]
enum Part {
    Copied(Range<usize>),
    New(Vec<u8>),
}

fn table(bytes: &[u8]) -> ChunkTable {
    let keys = keys();
    let (chunker, namer) = (keys.chunker(ChunkerKind::Minimum, AVERAGE).unwrap(), keys.namer());
    let name = |bytes| ChunkRef { id: namer.name(bytes), length: bytes.len() as u32 };
    ChunkTable::new(AVERAGE, Chunks::new(&*chunker, bytes).map(name).collect()).unwrap()
}

/// Puts a version together and cuts it; returns its bytes, too.
fn cut(
    workspace: &mut Workspace,
    (old, before): (&[u8], ChunkTable),
    parts: &[Part],
) -> (Vec<u8>, Content) {
    let mut packer = workspace.packer();
    let mut cut = packer.begin_version(before).unwrap();
    let (mut new, mut hasher, mut buffer) = (Vec::new(), blake3::Hasher::new(), vec![7]);
    for part in parts {
        match part {
            Part::Copied(range) => {
                let mut source = old;
                let range = range.start as u64..range.end as u64;
                let mut part =
                    CopiedPart::new(&mut source, range.clone(), &mut hasher, &mut buffer);
                packer.push_copied::<DeltaError>(&mut cut, &mut part).unwrap();
                assert!(part.range().is_empty(), "it takes all");
                new.extend_from_slice(&old[range.start as usize..range.end as usize]);
            }
            Part::New(bytes) => {
                packer.push_new(&mut cut, bytes).unwrap();
                hasher.update(bytes);
                new.extend_from_slice(bytes);
            }
        }
    }
    let content = packer.end_version(cut).unwrap();
    packer.finish().unwrap();
    assert_eq!(hasher.finalize(), blake3::hash(&new), "each byte is summed up once");
    (new, content)
}

/// Chunks are given names that their bytes do not have, which shows where they are taken over.
#[test]
fn only_chunks_around_an_edit_and_at_the_end_are_cut_and_named_anew() {
    let old = random_bytes(1, 200_000);
    let right = table(&old);
    let strange = |chunk: &ChunkRef| ChunkRef {
        id: ChunkId::from_bytes(chunk.id.as_bytes().map(|byte| !byte)),
        ..*chunk
    };
    let chunks: Vec<ChunkRef> = right.chunks().iter().map(strange).collect();
    let count = chunks.len();
    let renamed = ChunkTable::new(AVERAGE, chunks).unwrap();
    let edit = [Part::Copied(0..100_000), Part::New(vec![1; 10]), Part::Copied(100_000..200_000)];
    let whole = [Part::Copied(0..200_000)];
    for (parts, fresh_max) in [(&edit[..], 10), (&whole, 2)] {
        let mut workspace = workspace();
        let (new, content) = cut(&mut workspace, (&old, renamed.clone()), parts);
        let expected = content_alone(&new, AVERAGE);
        let listed = workspace.table(&content);
        let listed = listed.chunks();
        let alone = table(&new);
        assert_eq!((content.size, alone.size()), (expected.size, new.len() as u64));
        assert_eq!(listed.len(), alone.chunks().len());
        let kept = listed.iter().zip(alone.chunks()).filter(|(found, named)| {
            assert!(found == named || **found == strange(named), "cuts are those of cutting alone");
            found != named
        });
        let fresh = listed.len() - kept.count();
        assert!(fresh > 0 && fresh <= fresh_max, "{fresh} of {count} are new");
    }
}

#[test]
fn what_is_shorter_than_a_chunk_and_what_is_nothing_is_cut_as_alone() {
    for length in [0, 1, 700, 1536, 1537] {
        let old = random_bytes(2, length);
        for parts in [vec![], vec![Part::Copied(0..length)], vec![Part::New(old.clone())]] {
            let (new, content) = cut(&mut workspace(), (&old, table(&old)), &parts);
            assert_eq!(content, content_alone(&new, AVERAGE));
        }
    }
}

fn parts(length: usize) -> impl Strategy<Value = Vec<Part>> {
    let index = any::<prop::sample::Index>;
    let copied = (index(), index()).prop_map(move |(one, other)| {
        let (one, other) = (one.index(length + 1), other.index(length + 1));
        Part::Copied(one.min(other)..one.max(other))
    });
    let new = (any::<u64>(), 0_usize..6_000).prop_map(|(seed, length)| {
        Part::New(if seed % 2 == 0 { text(seed, length) } else { random_bytes(seed, length) })
    });
    prop::collection::vec(prop_oneof![copied, new], 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_version_is_cut_as_alone(parts in parts(200_000), seed in any::<u64>()) {
        let old = if seed % 2 == 0 { text(seed, 200_000) } else { random_bytes(seed, 200_000) };
        let (mut first, before) = (workspace(), table(&old));
        let (_, stored) = cut(&mut first, (&old, before.clone()), &[Part::New(old.clone())]);
        prop_assert_eq!(stored, content_alone(&old, AVERAGE));
        let (new, content) = cut(&mut first, (&old, before), &parts);
        prop_assert_eq!(&content, &content_alone(&new, AVERAGE));
        prop_assert!(first.bytes(&content) == new);
    }

    /// Whoever commits a list may have cut in any way.
    #[test]
    fn however_the_version_before_was_cut_the_chunks_have_the_bytes(
        lengths in prop::collection::vec(
            prop_oneof![Just(1), Just(511), Just(512), Just(1536), Just(1537), Just(5_000), 1_usize..3_000],
            1..150,
        ),
        parts in parts(100_000),
        seed in any::<u64>(),
    ) {
        let old = random_bytes(seed, 100_000);
        let mut workspace = workspace();
        let mut packer = workspace.packer();
        let (mut chunks, mut rest, namer) = (Vec::new(), &old[..], keys().namer());
        for length in lengths.into_iter().cycle() {
            let (bytes, others) = rest.split_at(length.min(rest.len()));
            if bytes.is_empty() {
                break;
            }
            let chunk = ChunkRef { id: namer.name(bytes), length: bytes.len() as u32 };
            packer.pack_chunk(chunk, bytes).unwrap();
            chunks.push(chunk);
            rest = others;
        }
        packer.finish().unwrap();
        let before = ChunkTable::new(AVERAGE, chunks).unwrap();
        let (new, content) = cut(&mut workspace, (&old, before), &parts);
        prop_assert!(workspace.bytes(&content) == new);
        let listed = workspace.table(&content);
        let (_, all_but_the_last) = listed.chunks().split_last().unwrap_or((&NONE, &[]));
        prop_assert!(all_but_the_last.iter().all(|chunk| (512..=1536).contains(&chunk.length)));
    }
}
