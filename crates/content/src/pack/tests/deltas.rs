//! Delta records: what is made from other chunks comes out as it was, or not at all.

use std::collections::HashMap;

use model::ids::ChunkId;

use super::*;
use crate::sealed::tests::some_keys;
use crate::transform::TransformTag;

/// A chunk, and the bytes that it is made from.
struct Edited {
    bytes: Vec<u8>,
    base: Vec<u8>,
    /// Where the edit begins and ends in the new bytes, and where in the old ones; what lies around it is equal.
    new: (usize, usize),
    old: (usize, usize),
}

impl Edited {
    /// Puts `inserted` in the place of `removed` bytes.
    fn of(base: Vec<u8>, at: usize, removed: usize, inserted: &[u8]) -> Self {
        let bytes = [&base[..at], inserted, &base[at + removed..]].concat();
        Self { bytes, base, new: (at, at + inserted.len()), old: (at, at + removed) }
    }

    fn steps(&self) -> Vec<DeltaStep<'_>> {
        let base = chunk_ref(&self.base);
        let copy = |offset: usize, length: usize| DeltaStep::Copy {
            base,
            offset: offset as u32,
            length: length as u32,
        };
        vec![
            copy(0, self.new.0),
            DeltaStep::Literal(&self.bytes[self.new.0..self.new.1]),
            copy(self.old.1, self.base.len() - self.old.1),
        ]
    }
}

fn edits(count: u64) -> Vec<Edited> {
    let edit = |number: u64| {
        let base = random_bytes(number, 20_000 + number as usize);
        Edited::of(base, 1000 * number as usize, 3, b"inserted")
    };
    (1..=count).map(edit).collect()
}

fn packed(guard: &PackGuard, namer: &ChunkNamer, edits: &[Edited]) -> FinishedPack {
    let mut writer = PackWriter::new(Transform::default(), guard).unwrap();
    let whole = text(77, 5000);
    writer.push(ChunkRef { id: namer.name(&whole), length: 5000 }, &whole).unwrap();
    for edit in edits {
        let length = edit.bytes.len() as u32;
        let chunk = ChunkRef { id: namer.name(&edit.bytes), length };
        writer.push_delta(chunk, &edit.bytes, &edit.steps()).unwrap();
    }
    let stored_max = writer.stored_len_max();
    let pack = writer.finish().unwrap();
    assert!(pack.bytes.len() <= stored_max && writer.is_empty());
    pack
}

/// Reads every chunk of a pack, given the bytes of all bases.
fn read_on(
    pack: &FinishedPack,
    index: &PackIndex,
    bases: &HashMap<ChunkId, Vec<u8>>,
    namer: &ChunkNamer,
) -> Result<Vec<Vec<u8>>, ContentError> {
    let mut chunks = Vec::new();
    let mut opener = RecordOpener::default();
    for (number, entry) in index.records().iter().enumerate() {
        let range = entry.stored_range();
        let stored = &pack.bytes[range.start as usize..range.end as usize];
        let bytes: Vec<&[u8]> =
            index.bases(number)?.iter().map(|base| &bases[&base.id][..]).collect();
        let record = opener.open_on(index, number, stored, &bytes, namer)?;
        for chunk in record.verified_chunks() {
            chunks.push(chunk?.1.to_vec());
        }
    }
    Ok(chunks)
}

fn bases_of(edits: &[Edited]) -> HashMap<ChunkId, Vec<u8>> {
    edits.iter().map(|edit| (namer().name(&edit.base), edit.base.clone())).collect()
}

fn expected(edits: &[Edited]) -> Vec<Vec<u8>> {
    // Delta records come before the open record of other chunks.
    edits.iter().map(|edit| edit.bytes.clone()).chain([text(77, 5000)]).collect()
}

#[test]
fn edited_chunks_come_back_and_cost_what_was_edited() {
    let edits = edits(5);
    let pack = packed(&PackGuard::plain(), &namer(), &edits);
    assert_eq!(pack.bytes[7], DELTA_PACK_VERSION);
    assert_eq!(verify_whole(pack.id, &pack.bytes, &PackGuard::plain()).unwrap(), pack.index);
    let found = read_on(&pack, &pack.index, &bases_of(&edits), &namer()).unwrap();
    assert_eq!(found, expected(&edits));
    let deltas = &pack.index.records()[0];
    assert_eq!((deltas.transform(), deltas.chunks()), (TransformTag::Delta, 0..5));
    let stored = deltas.stored_range();
    assert!(stored.end - stored.start < 5 * 30, "{} bytes", stored.end - stored.start);
    let bases: Vec<_> = edits.iter().map(|edit| chunk_ref(&edit.base)).collect();
    assert_eq!(pack.index.bases(0).unwrap(), bases);
    assert!(pack.index.bases(1).unwrap().is_empty());
}

#[test]
fn delta_is_refused_without_its_bases_and_verified_with_wrong_ones() {
    let edits = edits(1);
    let pack = packed(&PackGuard::plain(), &namer(), &edits);
    let error = read(&pack.index, &pack.bytes).unwrap_err();
    assert!(matches!(error, ContentError::NeedsBases) && !error.is_damage());
    let mut wrong = bases_of(&edits);
    for base in wrong.values_mut() {
        base[0] ^= 1;
    }
    let error = read_on(&pack, &pack.index, &wrong, &namer()).unwrap_err();
    assert!(matches!(error, ContentError::ChunkHash { .. }), "{error}");
    for base in wrong.values_mut() {
        base.truncate(10);
    }
    let error = read_on(&pack, &pack.index, &wrong, &namer()).unwrap_err();
    assert!(matches!(error, ContentError::NeedsBases));
}

#[test]
fn what_pays_no_delta_is_stored_whole() {
    let base = random_bytes(1, 4000);
    // Nothing is copied; and what is copied is too little.
    let literal = Edited::of(base.clone(), 0, 4000, &random_bytes(2, 4000));
    let little = Edited::of(base, 50, 3950, &random_bytes(3, 3950));
    let mut writer = PackWriter::new(Transform::default(), &PackGuard::plain()).unwrap();
    let all = [DeltaStep::Literal(&literal.bytes)];
    writer.push_delta(chunk_ref(&literal.bytes), &literal.bytes, &all).unwrap();
    let pack = writer.finish().unwrap();
    assert!(read(&pack.index, &pack.bytes).unwrap() == [&literal.bytes[..]]);
    assert_eq!(pack.bytes[7], PACK_VERSION);
    writer.push_delta(chunk_ref(&little.bytes), &little.bytes, &little.steps()).unwrap();
    let pack = writer.finish().unwrap();
    assert_eq!(pack.index.records()[0].transform(), TransformTag::None);
    assert_eq!(read(&pack.index, &pack.bytes).unwrap(), [little.bytes]);
}

#[test]
fn record_takes_as_many_bases_as_it_may_have_and_the_next_ones_go_into_another() {
    let edits = edits(WRITTEN_BASES_MAX as u64 - 12);
    let many: Vec<Edited> = (0..WRITTEN_BASES_MAX as u64 + 10)
        .map(|number| Edited::of(random_bytes(1000 + number, 3000), 100, 5, b"hello"))
        .chain(edits)
        .collect();
    let pack = packed(&PackGuard::plain(), &namer(), &many);
    let counts: Vec<_> =
        (0..pack.index.records().len()).map(|at| pack.index.bases(at).unwrap().len()).collect();
    assert_eq!(counts, [WRITTEN_BASES_MAX, 10 + WRITTEN_BASES_MAX - 12, 0]);
    let found = read_on(&pack, &pack.index, &bases_of(&many), &namer()).unwrap();
    assert_eq!(found, expected(&many));
}

#[test]
fn pack_of_deltas_and_others_keeps_within_its_limits() {
    let mut writer = PackWriter::new(Transform::None, &PackGuard::plain()).unwrap();
    let mut chunks = 0;
    for number in 0.. {
        if writer.is_full() {
            break;
        }
        // What does not pay takes as much room as it may.
        let noise = random_bytes(500 + number, 700_000);
        writer.push(chunk_ref(&noise), &noise).unwrap();
        if !writer.is_full() {
            let other = random_bytes(900 + number, 1 << 20);
            let steps = [DeltaStep::Literal(&other[..])];
            writer.push_delta(chunk_ref(&other), &other, &steps).unwrap();
            chunks += 1;
        }
        chunks += 1;
    }
    let pack = writer.finish().unwrap();
    assert!(chunks > 4 && pack.index.chunks().len() == chunks);
    assert_eq!(read(&pack.index, &pack.bytes).unwrap().len(), chunks);
}

#[test]
fn largest_chunk_fits_behind_a_delta_in_a_pack_that_is_nearly_full() {
    let mut writer = PackWriter::new(Transform::None, &PackGuard::plain()).unwrap();
    let edits = edits(1);
    let noise = |number: u64| random_bytes(500 + number, 1 << 20);
    for number in 0.. {
        writer.push(chunk_ref(&noise(number)), &noise(number)).unwrap();
        writer.push_delta(chunk_ref(&edits[0].bytes), &edits[0].bytes, &edits[0].steps()).unwrap();
        let length = CHUNK_SIZE_MAX as usize;
        if writer.stored_len_max() + (3 << 19) > PACK_STORED_TARGET {
            assert!(!writer.is_full() && writer.has_room(Addition::chunk(length)));
            let largest = random_bytes(99, length);
            writer.push(chunk_ref(&largest), &largest).unwrap();
            break;
        }
    }
    let pack = writer.finish().unwrap();
    assert!(pack.bytes.len() > PACK_STORED_TARGET + (7 << 20));
    verify_whole(pack.id, &pack.bytes, &PackGuard::plain()).unwrap();
}

#[test]
fn bases_of_a_record_are_bounded_by_their_bytes() {
    let edits: Vec<Edited> = (0..5)
        .map(|number| Edited::of(random_bytes(number, 2 << 20), 100, (2 << 20) - 3000, b"x"))
        .collect();
    let pack = packed(&PackGuard::plain(), &namer(), &edits);
    let counts: Vec<_> = (0..3).map(|at| pack.index.bases(at).unwrap().len()).collect();
    assert_eq!(counts, [4, 1, 0]);
    let found = read_on(&pack, &pack.index, &bases_of(&edits), &namer()).unwrap();
    assert_eq!(found, expected(&edits));
    // The same with longer bases is no index.
    let encoded = |length: u32| {
        let mut index = pack.index.clone();
        for base in &mut index.bases[..4] {
            base.length = length;
        }
        index.encode()
    };
    let version = PackVersion(DELTA_PACK_VERSION);
    PackIndex::decode(&encoded(2 << 20), 0, version).unwrap();
    let error = PackIndex::decode(&encoded((2 << 20) + 1), 0, version).unwrap_err();
    assert!(matches!(error, ContentError::Index { .. }), "{error}");
}

#[test]
fn record_is_never_made_from_itself() {
    let one = Edited::of(random_bytes(1, 4000), 100, 3, b"one");
    // Made from what the record has already, and the other way round.
    let later = Edited::of(one.bytes.clone(), 200, 3, b"two");
    let back = Edited { bytes: one.base.clone(), ..Edited::of(later.bytes.clone(), 0, 0, b"") };
    let mut writer = PackWriter::new(Transform::None, &PackGuard::plain()).unwrap();
    for edit in [&one, &later] {
        writer.push_delta(chunk_ref(&edit.bytes), &edit.bytes, &edit.steps()).unwrap();
    }
    let steps = [DeltaStep::Literal(&back.bytes[..])];
    writer.push_delta(chunk_ref(&back.bytes), &back.bytes, &steps).unwrap();
    let pack = writer.finish().unwrap();
    for (number, record) in pack.index.records().iter().enumerate() {
        for base in pack.index.bases(number).unwrap() {
            assert!(!pack.index.chunks()[record.chunks()].contains(base));
        }
    }
    let mut index = pack.index.clone();
    index.bases[0] = index.chunks()[0];
    let version = PackVersion(DELTA_PACK_VERSION);
    let error = PackIndex::decode(&index.encode(), 0, version).unwrap_err();
    assert!(matches!(error, ContentError::Index { .. }), "{error}");
}

#[test]
fn sealed_pack_with_deltas_opens_with_its_keys_and_shows_no_base() {
    let (edits, keys) = (edits(3), some_keys());
    let namer = namer();
    let pack = packed(&keys.packs(), &namer, &edits);
    assert_eq!(pack.bytes[7], SEALED_DELTA_PACK_VERSION);
    let index = verify_whole(pack.id, &pack.bytes, &keys.packs()).unwrap();
    assert_eq!(index, pack.index);
    let found = read_on(&pack, &index, &bases_of(&edits), &namer).unwrap();
    assert_eq!(found, expected(&edits));
    let base = chunk_ref(&edits[0].base);
    assert!(!pack.bytes.windows(32).any(|window| window == base.id.as_bytes()));
    assert!(matches!(
        verify_whole(pack.id, &pack.bytes, &PackGuard::plain()).unwrap_err(),
        ContentError::IsSealed { .. }
    ));
    // One that is not known is damage, since all but that byte is there; or says so where nothing opens as what is known.
    let end = pack.bytes.len();
    let whole = packed(&keys.packs(), &namer, &[]);
    for (bytes, length) in [(&pack.bytes, end), (&whole.bytes, whole.bytes.len())] {
        let mut damaged = bytes.clone();
        damaged[length - 8] = SEALED_PICTURE_PACK_VERSION + 1;
        let read = |bytes: &[u8]| PackIndex::from_tail(bytes, length as u64, &keys.packs());
        assert!(matches!(read(&damaged), Err(ContentError::PackTrailer)));
        assert!(matches!(read(&damaged[length - 100..]), Ok(TailOutcome::NeedMore { .. })));
        damaged[length - 20] ^= 1;
        assert!(matches!(read(&damaged), Err(ContentError::NewerPack { version: 8, known: 7 })));
    }
    // Another version says that there are no deltas.
    for place in [7, pack.bytes.len() - 8] {
        let mut forged = pack.bytes.clone();
        forged[place] = SEALED_PACK_VERSION;
        let id = PackId::from_bytes(*blake3::hash(&forged).as_bytes());
        assert!(verify_whole(id, &forged, &keys.packs()).is_err());
    }
}

#[test]
fn fenced_pack_with_deltas_holds_its_fence_and_has_another_name() {
    let edits = edits(1);
    let (one, two) = (PackGuard::plain().behind(7), PackGuard::plain().behind(8));
    let (one, two) = (packed(&one, &namer(), &edits), packed(&two, &namer(), &edits));
    assert_ne!(one.id, two.id);
    assert_eq!(one.bytes[7], DELTA_PACK_VERSION);
    assert_eq!(verify_whole(one.id, &one.bytes, &PackGuard::plain()).unwrap(), one.index);
    assert_eq!(one.index.encode()[0], 7);
}

/// A change of this is a change of format.
#[test]
fn golden_pack_with_a_delta_has_its_golden_name() {
    let base = text(9, 600);
    let edit = Edited::of(base, 100, 2, b"golden");
    let mut writer = PackWriter::new(Transform::None, &PackGuard::plain()).unwrap();
    writer.push_delta(chunk_ref(&edit.bytes), &edit.bytes, &edit.steps()).unwrap();
    let pack = writer.finish().unwrap();
    // How the script is stored and its length; the length of its steps; 100 bytes from the start, 6 new ones, 498 two bytes further on.
    let script = b"\x00\x0e\x07\xc8\x01\x00\x0d\xe4\x07\x04golden";
    assert_eq!(&pack.bytes[..8 + script.len()], [b"SYNPACK\x04", &script[..]].concat());
    assert_eq!(
        pack.id.to_string(),
        "7c17514ac2f28dcef6427757049ba971be4def0809c6e9c6522196a343be09c4"
    );
}

#[test]
fn newer_pack_is_refused_by_its_number() {
    let pack = packed(&PackGuard::plain(), &namer(), &edits(1));
    let pack = with_version(&pack, SEALED_PICTURE_PACK_VERSION + 1);
    let end = pack.len();
    let id = PackId::from_bytes(*blake3::hash(&pack).as_bytes());
    let error = verify_whole(id, &pack, &PackGuard::plain()).unwrap_err();
    assert!(matches!(error, ContentError::NewerPack { version: 8, known: 7 }));
    let error = PackIndex::from_tail(&pack, end as u64, &PackGuard::plain()).unwrap_err();
    assert!(matches!(error, ContentError::NewerPack { version: 8, known: 7 }));
}

proptest! {
    #[test]
    fn delta_of_any_edit_comes_back(
        length in 2_usize..5000,
        at in any::<prop::sample::Index>(),
        removed in 0_usize..200,
        inserted in prop::collection::vec(any::<u8>(), 0..200),
        seed in any::<u64>(),
    ) {
        let base = text(seed, length);
        let at = at.index(length);
        let removed = removed.min(length - at);
        prop_assume!(length - removed + inserted.len() > 0);
        let edits = [Edited::of(base, at, removed, &inserted)];
        let pack = packed(&PackGuard::plain(), &namer(), &edits);
        let found = read_on(&pack, &pack.index, &bases_of(&edits), &namer()).unwrap();
        prop_assert!(found.contains(&edits[0].bytes));
    }

    #[test]
    fn any_bytes_are_a_script_or_refused(
        script in prop::collection::vec(any::<u8>(), 0..60),
        plain_length in 1_usize..300,
    ) {
        let base = random_bytes(1, 200);
        let mut plain = Vec::new();
        let mut decoder = crate::transform::TransformDecoder::default();
        let applied = delta::apply(
            &[&[0, script.len() as u8][..], &script[..]].concat(),
            plain_length,
            &[&base, &base],
            &mut decoder,
            &mut plain,
        );
        prop_assert!(applied.is_err() || plain.len() == plain_length);
        prop_assert!(plain.len() <= plain_length);
    }

    #[test]
    fn index_with_deltas_has_one_encoding(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut encoded = packed(&PackGuard::plain(), &namer(), &edits(2)).index.encode();
        for (place, value) in flips {
            let place = place.index(encoded.len());
            encoded[place] = value;
        }
        if let Ok(index) = PackIndex::decode(&encoded, 0, PackVersion(DELTA_PACK_VERSION)) {
            prop_assert_eq!(index.encode(), encoded);
        }
    }
}
