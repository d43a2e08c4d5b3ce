use std::collections::HashMap;

use model::codec::{Encode, Encoder};
use model::ids::ChunkId;
use proptest::prelude::*;

use super::*;
use crate::naming::WorkspaceContentKeys;
use crate::samples::random_bytes;

type Lists = HashMap<ChunkId, Vec<u8>>;

fn refs(seed: u64, count: usize) -> Vec<ChunkRef> {
    let bytes = random_bytes(seed, count * 34);
    let chunks = bytes.as_chunks::<34>().0.iter().map(|bytes| ChunkRef {
        id: ChunkId::from_bytes(bytes[..32].try_into().unwrap()),
        length: 1 + u32::from(u16::from_le_bytes([bytes[32], bytes[33]])),
    });
    chunks.collect()
}

fn build(chunks: &[ChunkRef]) -> (Content, Lists) {
    let namer = WorkspaceContentKeys::derive(&[7; 32]).namer();
    let mut lists = Lists::new();
    let mut sink = |chunk: ChunkRef, bytes: &[u8]| {
        assert_eq!(chunk.length as usize, bytes.len());
        assert_eq!(chunk.id, namer.name(bytes));
        lists.insert(chunk.id, bytes.to_vec());
        Ok::<_, ContentError>(())
    };
    let mut builder = ManifestBuilder::new(namer.clone(), 16_384);
    for &chunk in chunks {
        builder.push(chunk, &mut sink).unwrap();
        for level in &builder.levels {
            assert!(level.pending.len() <= LIST_LENGTH_MAX, "memory is bounded");
        }
    }
    let content = builder.finish(&mut sink).unwrap();
    assert!(content.chunks.len() <= CONTENT_CHUNKS_MAX);
    (content, lists)
}

fn expanded(content: &Content, lists: &Lists) -> Result<Vec<ChunkRef>, ContentError> {
    expand(content, |chunk| Ok(lists[&chunk.id].clone()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_was_built_expands_to_the_same_chunks(seed in any::<u64>(), count in 0_usize..3000) {
        let chunks = refs(seed, count);
        let (content, lists) = build(&chunks);
        prop_assert_eq!(content.depth > 0, count > CONTENT_CHUNKS_MAX);
        prop_assert_eq!(content.size, chunks.iter().map(|chunk| u64::from(chunk.length)).sum::<u64>());
        prop_assert_eq!(expanded(&content, &lists).unwrap(), chunks);
    }

    #[test]
    fn what_decodes_as_a_list_is_its_one_encoding(bytes in prop::collection::vec(any::<u8>(), 0..40), level in 0_u8..4) {
        let bytes = [&[b'L', 1, level, 1][..], &bytes].concat();
        if let Ok(list) = ChunkList::decode(&bytes, level) {
            prop_assert_eq!(list.encode(), bytes);
        }
    }
}

#[test]
fn an_empty_file_has_an_empty_content() {
    let (content, lists) = build(&[]);
    assert_eq!(content, Content { chunk_size: 16_384, ..Content::default() });
    assert!(lists.is_empty() && expanded(&content, &lists).unwrap().is_empty());
}

#[test]
fn references_stay_in_the_content_as_long_as_they_fit() {
    let chunks = refs(1, 256);
    let (content, lists) = build(&chunks);
    assert_eq!((content.depth, &content.chunks, lists.len()), (0, &chunks, 0));
    let (content, lists) = build(&refs(1, 257));
    assert_eq!(content.depth, 1);
    assert!((1..=5).contains(&lists.len()));
}

#[test]
fn a_million_chunks_take_three_levels_or_fewer() {
    let chunks = refs(1, 1_000_000);
    let (content, lists) = build(&chunks);
    assert_eq!(content.depth, 2);
    assert!((4000..8000).contains(&lists.len()), "{}", lists.len());
    assert_eq!(expanded(&content, &lists).unwrap(), chunks);
}

#[test]
fn equal_chunks_make_equal_lists() {
    let chunks = vec![refs(1, 1)[0]; 1_000_000];
    let (content, lists) = build(&chunks);
    assert!(lists.len() <= 4, "{}", lists.len());
    assert_eq!(expanded(&content, &lists).unwrap(), chunks);
}

#[test]
fn an_edit_changes_one_list_a_level() {
    let chunks = refs(1, 100_000);
    let (_, before) = build(&chunks);
    for position in [0, 50_000, 99_999] {
        let mut edited = chunks.clone();
        edited.splice(position..=position, refs(2, 3));
        let (content, after) = build(&edited);
        let new = after.keys().filter(|id| !before.contains_key(id)).count();
        // A new id may itself be a place to cut, or displace one: then two lists change.
        assert!(new <= 2 * usize::from(content.depth), "{new} new lists of {}", after.len());
    }
}

#[test]
fn an_error_of_the_sink_ends_the_building() {
    let namer = WorkspaceContentKeys::derive(&[7; 32]).namer();
    let mut builder = ManifestBuilder::new(namer, 16_384);
    let mut full = |_: ChunkRef, _: &[u8]| Err(ContentError::PackHeader);
    let failed = refs(1, 2000).into_iter().find_map(|chunk| builder.push(chunk, &mut full).err());
    assert!(matches!(failed, Some(ContentError::PackHeader)));
}

#[test]
fn contents_that_do_not_add_up_are_refused() {
    for count in [10, 1000] {
        let (content, lists) = build(&refs(1, count));
        for size in [0, content.size - 1, content.size + 1, u64::MAX] {
            let forged = Content { size, ..content.clone() };
            let error = expanded(&forged, &lists).unwrap_err();
            assert!(matches!(error, ContentError::ContentSize { .. }), "{error}");
        }
    }
}

#[test]
fn lists_of_another_level_and_other_bytes_are_refused() {
    let (content, lists) = build(&refs(1, 1000));
    let deeper = Content { depth: 2, ..content.clone() };
    assert!(matches!(expanded(&deeper, &lists), Err(ContentError::List { .. })));
    let too_deep = Content { depth: CONTENT_DEPTH_MAX + 1, ..content.clone() };
    assert!(matches!(expanded(&too_deep, &lists), Err(ContentError::TooDeep { .. })));
    let short = expand(&content, |chunk| Ok::<_, ContentError>(lists[&chunk.id][1..].to_vec()));
    assert!(matches!(short, Err(ContentError::ListLength { .. })));
    for (place, value) in [(0, b'M'), (1, 2), (2, 1), (3, 0)] {
        let damaged = expand(&content, |chunk| {
            let mut bytes = lists[&chunk.id].clone();
            bytes[place] = value;
            Ok::<_, ContentError>(bytes)
        });
        assert!(matches!(damaged, Err(ContentError::List { .. })), "byte {place}");
    }
}

/// A list that names one chunk as often as a list may.
fn repeating(level: u8, chunk: ChunkRef) -> (ChunkRef, Vec<u8>) {
    let mut encoder = Encoder::default();
    encoder.raw(&[b'L', 1, level]);
    encoder.unsigned(LIST_LENGTH_MAX as u64);
    (0..LIST_LENGTH_MAX).for_each(|_| chunk.encode(&mut encoder));
    let bytes = encoder.into_bytes();
    let id = ChunkId::from_bytes([level; 32]);
    (ChunkRef { id, length: bytes.len() as u32 }, bytes)
}

#[test]
fn lists_of_equal_lists_do_not_exhaust_memory() {
    let mut chunk = ChunkRef { id: ChunkId::from_bytes([9; 32]), length: 1 };
    let mut lists = Lists::new();
    for level in 0..3 {
        let (list, bytes) = repeating(level, chunk);
        lists.insert(list.id, bytes);
        chunk = list;
    }
    let content = Content { size: u64::MAX, chunk_size: 1024, depth: 3, chunks: vec![chunk] };
    let error = expanded(&content, &lists).unwrap_err();
    assert!(matches!(error, ContentError::TooManyChunks { .. }), "{error}");
}
