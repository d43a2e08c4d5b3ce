use model::codec::Encoder;
use model::content::ChunkRef;
use model::ids::PackId;
use proptest::prelude::*;

use super::*;
use crate::error::ContentError;
use crate::naming::{ChunkNamer, WorkspaceContentKeys};
use crate::samples::{Random, random_bytes, text};
use crate::sealed::PackGuard;
use crate::transform::{Transform, TransformEncoder};

mod deltas;
mod pictures;

const PLAIN: PackVersion = PackVersion(PACK_VERSION);

const TRANSFORMS: [Transform; 4] =
    [Transform::None, Transform::Zstd { level: 1 }, Transform::Gzip, Transform::Bzip2];

fn namer() -> ChunkNamer {
    WorkspaceContentKeys::derive(&[7; 32]).namer()
}

fn chunk_ref(bytes: &[u8]) -> ChunkRef {
    ChunkRef { id: namer().name(bytes), length: bytes.len() as u32 }
}

fn pack(transform: Transform, chunks: &[Vec<u8>]) -> FinishedPack {
    let mut writer = PackWriter::new(transform, &PackGuard::plain()).unwrap();
    for chunk in chunks {
        writer.push(chunk_ref(chunk), chunk).unwrap();
    }
    let (plain, stored_max) = (writer.plain_len(), writer.stored_len_max());
    let pack = writer.finish().unwrap();
    assert!(writer.is_empty());
    assert_eq!(plain, chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>());
    assert!(pack.bytes.len() <= stored_max);
    pack
}

/// Reads every chunk as a client does that fetches ranges.
fn read(index: &PackIndex, pack: &[u8]) -> Result<Vec<Vec<u8>>, ContentError> {
    let mut opener = RecordOpener::default();
    let mut chunks = Vec::new();
    for (number, entry) in index.records().iter().enumerate() {
        let range = entry.stored_range();
        let stored = &pack[range.start as usize..range.end as usize];
        let record = opener.open(index, number, stored, &namer())?;
        for chunk in record.verified_chunks() {
            chunks.push(chunk?.1.to_vec());
        }
        opener.recycle(record);
    }
    Ok(chunks)
}

fn read_from_tail(pack: &[u8]) -> Result<Vec<Vec<u8>>, ContentError> {
    match PackIndex::from_tail(pack, pack.len() as u64, &PackGuard::plain())? {
        TailOutcome::Complete(index) => read(&index, pack),
        TailOutcome::NeedMore { .. } => panic!("the whole pack was given"),
    }
}

fn small_chunks() -> Vec<Vec<u8>> {
    vec![text(1, 900), random_bytes(2, 30), text(3, 500)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_chunk_comes_back(
        lengths in prop::collection::vec((1_usize..60_000, any::<bool>()), 1..30),
    ) {
        let chunks: Vec<_> = lengths.iter().zip(0..).map(|(&(length, random), seed)| {
            if random { random_bytes(seed, length) } else { text(seed, length) }
        }).collect();
        for transform in TRANSFORMS {
            let pack = pack(transform, &chunks);
            prop_assert_eq!(&verify_whole(pack.id, &pack.bytes, &PackGuard::plain()).unwrap(), &pack.index);
            prop_assert_eq!(&read(&pack.index, &pack.bytes).unwrap(), &chunks);
            let refs: Vec<_> = chunks.iter().map(|chunk| chunk_ref(chunk)).collect();
            prop_assert_eq!(pack.index.chunks(), &refs[..]);
            prop_assert_eq!(pack.index.packed_chunks().map(|packed| packed.chunk).collect::<Vec<_>>(), refs);
        }
    }

    #[test]
    fn what_decodes_as_an_index_is_its_one_encoding(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut encoded = pack(Transform::Zstd { level: 1 }, &small_chunks()).index.encode();
        for (place, value) in flips {
            // Most of an index is ids, which may be anything: hit the rest more often.
            let place = place.index(encoded.len());
            encoded[place % 12] = value;
        }
        if let Ok(index) = PackIndex::decode(&encoded, 0, PLAIN) {
            prop_assert_eq!(index.encode(), encoded);
        }
    }

    #[test]
    fn hostile_bytes_are_no_pack(bytes in prop::collection::vec(any::<u8>(), 0..200), length in any::<u64>()) {
        prop_assert!(PackIndex::from_tail(&bytes, bytes.len() as u64, &PackGuard::plain()).is_err());
        let _ = PackIndex::from_tail(&bytes, length, &PackGuard::plain());
        let _ = PackIndex::decode(&bytes, 0, PLAIN);
        let id = PackId::from_bytes(*blake3::hash(&bytes).as_bytes());
        prop_assert!(verify_whole(id, &bytes, &PackGuard::plain()).is_err());
    }
}

/// A change of this is a change of format.
#[test]
fn golden_pack_has_its_golden_name() {
    let pack = pack(Transform::None, &[b"alpha".to_vec(), b"beta".to_vec()]);
    assert_eq!(pack.bytes.len(), 8 + 9 + (1 + 3 + 2 + 64) + 44);
    assert_eq!(&pack.bytes[..21], b"SYNPACK\x01alphabeta\x01\x00\x09\x02");
    assert_eq!(
        pack.id.to_string(),
        "e0b91fcbf4f988d99d7301c7386b8c0c23f4b9e51e9726fa47408ebf85bc8b9c"
    );
}

#[test]
fn every_flipped_bit_is_detected_and_named() {
    for transform in TRANSFORMS {
        let chunks = small_chunks();
        let pack = pack(transform, &chunks);
        for bit in 0..pack.bytes.len() * 8 {
            let mut damaged = pack.bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = verify_whole(pack.id, &damaged, &PackGuard::plain()).unwrap_err();
            assert!(matches!(error, ContentError::PackHash { id, .. } if id == pack.id));
            // A reader of ranges does not see the header, and a bit of a compressed record may mean nothing.
            match read_from_tail(&damaged) {
                Ok(found) => assert_eq!(found, chunks, "bit {bit}"),
                Err(error) => assert!(error.is_damage() || bit / 8 >= pack.bytes.len() - 44),
            }
            let tail_start = pack.index.records().last().unwrap().stored_range().end as usize;
            if bit / 8 >= tail_start {
                assert!(
                    PackIndex::from_tail(&damaged, damaged.len() as u64, &PackGuard::plain())
                        .is_err(),
                    "bit {bit}"
                );
            }
        }
    }
}

#[test]
fn every_truncation_is_detected_and_named() {
    let pack = pack(Transform::Zstd { level: 1 }, &small_chunks());
    for length in 0..pack.bytes.len() {
        let error = verify_whole(pack.id, &pack.bytes[..length], &PackGuard::plain()).unwrap_err();
        assert!(matches!(error, ContentError::PackHash { .. }));
        assert!(
            PackIndex::from_tail(&pack.bytes[..length], length as u64, &PackGuard::plain())
                .is_err(),
            "{length}"
        );
    }
}

#[test]
fn a_tail_that_is_too_short_says_how_much_is_needed() {
    let pack = pack(Transform::Zstd { level: 1 }, &small_chunks());
    let length = pack.bytes.len();
    let tail = |bytes: usize| {
        PackIndex::from_tail(&pack.bytes[length - bytes..], length as u64, &PackGuard::plain())
    };
    let needed = pack.index.encode().len() + 44;
    for bytes in 0..44 {
        assert_eq!(tail(bytes).unwrap(), TailOutcome::NeedMore { bytes: 44 });
    }
    for bytes in 44..needed {
        assert_eq!(tail(bytes).unwrap(), TailOutcome::NeedMore { bytes: needed as u64 });
    }
    for bytes in needed..=length {
        assert_eq!(tail(bytes).unwrap(), TailOutcome::Complete(pack.index.clone()));
    }
    let wrong =
        PackIndex::from_tail(&pack.bytes, length as u64 + 1, &PackGuard::plain()).unwrap_err();
    assert!(matches!(wrong, ContentError::IndexMismatch { .. }), "{wrong}");
}

#[test]
fn chunks_of_a_damaged_record_are_told_apart() {
    let chunks = small_chunks();
    let pack = pack(Transform::None, &chunks);
    let mut stored = chunks.concat();
    stored[900] ^= 1;
    let record = open_record(&pack.index, 0, &stored, &namer()).unwrap();
    assert_eq!(record.chunk(0).unwrap(), chunks[0]);
    assert!(
        matches!(record.chunk(1), Err(ContentError::ChunkHash { id, .. }) if id == chunk_ref(&chunks[1]).id)
    );
    assert_eq!(record.chunk(2).unwrap(), chunks[2]);
    assert!(matches!(record.chunk(3), Err(ContentError::NoSuchChunk { position: 3, count: 3 })));
}

#[test]
fn records_of_wrong_length_or_number_are_refused() {
    let chunks = small_chunks();
    let pack = pack(Transform::None, &chunks);
    let stored = chunks.concat();
    let open = |record, stored: &[u8]| open_record(&pack.index, record, stored, &namer()).err();
    assert!(matches!(open(1, &stored), Some(ContentError::NoSuchRecord { record: 1, count: 1 })));
    assert!(matches!(open(0, &stored[1..]), Some(ContentError::RecordLength { .. })));
}

#[test]
fn another_workspace_cannot_read_chunks_as_its_own() {
    let pack = pack(Transform::None, &small_chunks());
    let stranger = WorkspaceContentKeys::derive(&[8; 32]).namer();
    let record = open_record(&pack.index, 0, &small_chunks().concat(), &stranger).unwrap();
    assert!(matches!(record.chunk(0), Err(ContentError::ChunkHash { .. })));
}

/// Encodes an index of one's own making: each record as tag, stored length, chunk count.
fn forged(records: &[(u8, u64, u64)], lengths: &[u64]) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encoder.unsigned(records.len() as u64);
    for &(tag, stored_length, chunk_count) in records {
        encoder.raw(&[tag]);
        encoder.unsigned(stored_length);
        encoder.unsigned(chunk_count);
    }
    for &length in lengths {
        encoder.unsigned(length);
    }
    encoder.raw(&vec![1; 32 * lengths.len()]);
    encoder.into_bytes()
}

#[test]
fn forged_indexes_are_refused() {
    const MIB: u64 = 1 << 20;
    assert!(PackIndex::decode(&forged(&[(0, 9, 2)], &[5, 4]), 0, PLAIN).is_ok());
    assert!(PackIndex::decode(&forged(&[(1, 9, 1)], &[8 * MIB]), 0, PLAIN).is_ok());
    let hostile = [
        ("no record", forged(&[], &[])),
        ("unknown transform", forged(&[(4, 9, 1)], &[90])),
        ("no chunk", forged(&[(0, 0, 0)], &[])),
        ("empty chunk", forged(&[(0, 5, 2)], &[5, 0])),
        ("plain record of another length", forged(&[(0, 8, 2)], &[5, 4])),
        ("compressed record that is longer", forged(&[(1, 10, 2)], &[5, 4])),
        ("compressed record without bytes", forged(&[(1, 0, 1)], &[90])),
        ("record beyond the longest pack", forged(&[(1, PACK_LENGTH_MAX, 1)], &[8 * MIB])),
        ("records beyond the longest pack", forged(&[(0, 8 * MIB, 1); 3], &[8 * MIB; 3])),
        ("chunk too long", forged(&[(1, 9, 1)], &[8 * MIB + 1])),
        ("record too long", forged(&[(1, 9, 2)], &[MIB, 1])),
        ("more chunks than bytes", forged(&[(1, 9, 4000)], &[5, 4])),
        ("more chunks than a record has", forged(&[(1, 9, 4097)], &[1; 4097])),
        ("more chunks than a pack has", forged(&[(1, 9, 4096); 5], &[1; 5 * 4096])),
        ("more records than a pack has", vec![0xff, 0xff, 0xff, 0x7f]),
        ("chunks of no record", forged(&[(0, 9, 2)], &[5, 4, 3])),
        (
            "longer integer than needed",
            [&[0x81, 0x00], &forged(&[(0, 9, 2)], &[5, 4])[1..]].concat(),
        ),
    ];
    for (what, encoded) in hostile {
        let error = PackIndex::decode(&encoded, 0, PLAIN).expect_err(what);
        assert!(matches!(error, ContentError::Index { .. }), "{what}: {error}");
    }
}

/// Puts an index of one's own making behind the records of a pack, with a trailer that fits.
fn with_index(pack: &FinishedPack, encoded_index: &[u8]) -> Vec<u8> {
    let end = pack.index.records().last().unwrap().stored_range().end as usize;
    let mut trailer = (encoded_index.len() as u32).to_le_bytes().to_vec();
    trailer.extend_from_slice(b"\x01PACKEND");
    let hash = index::tail_hash(encoded_index, &trailer);
    [&pack.bytes[..end], encoded_index, &trailer, &hash].concat()
}

#[test]
fn a_permuted_index_gives_out_no_chunk() {
    let chunks: Vec<_> = (1..4).map(|seed| random_bytes(seed, 1 << 20)).collect();
    let pack = pack(Transform::None, &chunks);
    let encoded = pack.index.encode();
    let (fixed, ids) = encoded.split_at(encoded.len() - 96);
    let permuted = [fixed, &ids[32..64], &ids[64..], &ids[..32]].concat();
    let forged = with_index(&pack, &permuted);
    assert!(matches!(read_from_tail(&forged), Err(ContentError::ChunkHash { .. })));
}

#[test]
fn an_index_that_leaves_a_gap_or_overlaps_is_refused() {
    let pack = pack(Transform::None, &[b"alpha".to_vec(), b"beta".to_vec()]);
    for lengths in [[5, 3], [5, 5], [50, 40]] {
        let index = forged(&[(0, lengths.iter().sum(), 2)], &lengths);
        let error = read_from_tail(&with_index(&pack, &index)).unwrap_err();
        assert!(matches!(error, ContentError::IndexMismatch { .. }), "{error}");
    }
}

#[test]
fn a_record_that_is_a_bomb_is_refused() {
    let (_, stored) = Transform::Zstd { level: 1 }.encode(&vec![0; 8 << 20]).unwrap();
    let index =
        PackIndex::decode(&forged(&[(1, stored.len() as u64, 1)], &[2000]), 0, PLAIN).unwrap();
    let error = open_record(&index, 0, &stored, &namer()).unwrap_err();
    assert!(matches!(error, ContentError::Record { record: 0, .. }), "{error}");
}

/// Says of a plain pack that it has another version, as a program that writes such packs does.
fn with_version(pack: &FinishedPack, version: u8) -> Vec<u8> {
    let mut bytes = pack.bytes.clone();
    let (fixed, end) = (bytes.len() - TRAILER_LENGTH, bytes.len() - 32);
    (bytes[7], bytes[end - 8]) = (version, version);
    let encoded = pack.index.encode();
    let hash = index::tail_hash(&encoded, &bytes[fixed..end]);
    bytes[end..].copy_from_slice(&hash);
    bytes
}

#[test]
fn newer_packs_are_refused_by_version() {
    let pack = pack(Transform::None, &small_chunks());
    let name = |bytes: &[u8]| PackId::from_bytes(*blake3::hash(bytes).as_bytes());
    let newest = with_version(&pack, 8);
    let error = read_from_tail(&newest).unwrap_err();
    assert!(matches!(error, ContentError::NewerPack { version: 8, known: 7 }), "{error}");
    for newer in [newest, [&pack.bytes[..7], &[8], &pack.bytes[8..]].concat()] {
        let error = verify_whole(name(&newer), &newer, &PackGuard::plain()).unwrap_err();
        assert!(matches!(error, ContentError::NewerPack { version: 8, known: 7 }), "{error}");
    }
    let mut other = pack.bytes;
    // Where only the trailer says so, it is damaged, and needs to be looked for elsewhere.
    let end = other.len();
    for version in [0, 2, 5, 7, 8, 255] {
        let mut damaged = other.clone();
        damaged[end - 40] = version;
        for tail in [&damaged[..], &damaged[end - 300..]] {
            let error = PackIndex::from_tail(tail, end as u64, &PackGuard::plain()).unwrap_err();
            assert!(matches!(error, ContentError::PackTrailer), "{version}: {error}");
        }
        // One that says more of its index than was read of it.
        let little = PackIndex::from_tail(&damaged[end - 50..], end as u64, &PackGuard::plain());
        assert_eq!(little.is_ok(), version > 7, "{version}: {little:?}");
    }
    other[0] = b'Z';
    assert!(matches!(
        verify_whole(name(&other), &other, &PackGuard::plain()),
        Err(ContentError::PackHeader)
    ));
}

/// Pushes chunks until the pack is full.
fn fill(mut chunk: impl FnMut(u64) -> Vec<u8>) -> FinishedPack {
    let mut writer = PackWriter::new(Transform::default(), &PackGuard::plain()).unwrap();
    for seed in 0.. {
        let bytes = chunk(seed);
        writer.push(chunk_ref(&bytes), &bytes).unwrap();
        if writer.is_full() {
            return writer.finish().unwrap();
        }
    }
    unreachable!("a pack fills up");
}

#[test]
fn full_packs_have_about_the_target_length_and_are_within_the_limits() {
    let target = PACK_STORED_TARGET as u64;
    let mut random = Random(1);
    let mut mixed = move |seed| {
        let length = 8192 + (random.next() % 16_384) as usize;
        if seed % 2 == 0 { random_bytes(seed, length) } else { text(seed, length) }
    };
    for pack in [
        fill(|seed| random_bytes(seed, 16_384)),
        fill(|seed| random_bytes(seed, 300_000)),
        fill(&mut mixed),
    ] {
        let length = pack.bytes.len() as u64;
        assert!((target * 3 / 4..target * 5 / 4).contains(&length), "{length}");
        assert!(verify_whole(pack.id, &pack.bytes, &PackGuard::plain()).is_ok());
    }
    let tiny = fill(|seed| seed.to_le_bytes().to_vec());
    assert!(tiny.index.chunks().len() <= PACK_CHUNKS_MAX);
    assert!(verify_whole(tiny.id, &tiny.bytes, &PackGuard::plain()).is_ok());
    let mut huge = (0..4).map(|seed| random_bytes(seed, 1_000_000)).collect::<Vec<_>>();
    huge.insert(3, random_bytes(9, 5000));
    huge.push(random_bytes(10, CHUNK_SIZE_MAX as usize));
    let largest = fill(|seed| huge[seed as usize].clone());
    assert!(verify_whole(largest.id, &largest.bytes, &PackGuard::plain()).is_ok());
}

/// Pushes chunks into packs of three times the usual length, as a device does whose stores keep blocks.
fn fill_grown(chunks: &[Vec<u8>]) -> Vec<FinishedPack> {
    let writer = PackWriter::new(Transform::None, &PackGuard::plain()).unwrap();
    let mut writer = writer.with_target(pack_target(3));
    let mut packs = Vec::new();
    for bytes in chunks {
        if !writer.has_room(Addition::chunk(bytes.len())) {
            packs.push(writer.finish().unwrap());
        }
        writer.push(chunk_ref(bytes), bytes).unwrap();
        if writer.is_full() {
            packs.push(writer.finish().unwrap());
        }
    }
    if !writer.is_empty() {
        packs.push(writer.finish().unwrap());
    }
    packs
}

#[test]
fn grown_packs_have_about_their_target_length_and_never_more_than_a_reader_takes() {
    let even: Vec<_> = (0..160).map(|seed| random_bytes(seed, 262_144)).collect();
    let packs = fill_grown(&even);
    let target = pack_target(3) as u64;
    assert_eq!(target, 12 << 20);
    assert!(packs.len() >= 3);
    for pack in &packs[..packs.len() - 1] {
        let length = pack.bytes.len() as u64;
        assert!((target * 3 / 4..target * 5 / 4).contains(&length), "{length}");
    }
    // The largest chunk comes when the pack is nearly full, after any number of small ones.
    for before in [1, 7, 10, 11, 12, 20] {
        let mut chunks: Vec<_> = (0..before).map(|seed| random_bytes(seed, 1_000_000)).collect();
        chunks.push(random_bytes(99, 5000));
        chunks.push(random_bytes(100, CHUNK_SIZE_MAX as usize));
        chunks.push(random_bytes(101, CHUNK_SIZE_MAX as usize));
        let packs = fill_grown(&chunks);
        let count: usize = packs.iter().map(|pack| pack.index.chunks().len()).sum();
        assert_eq!(count, chunks.len());
        for pack in packs {
            assert!(pack.bytes.len() as u64 <= PACK_LENGTH_MAX);
            assert!(verify_whole(pack.id, &pack.bytes, &PackGuard::plain()).is_ok());
        }
    }
}

/// Who has not asked whether there is room is told before anything is stored that nobody could read.
#[test]
fn pack_that_readers_do_not_accept_is_not_written() {
    let large = random_bytes(1, CHUNK_SIZE_MAX as usize);
    for guard in [PackGuard::plain(), crate::sealed::tests::some_keys().packs()] {
        let writer = PackWriter::new(Transform::None, &guard).unwrap();
        let mut writer = writer.with_target(pack_target(3));
        writer.push(chunk_ref(&large), &large).unwrap();
        assert!(!writer.is_full() && !writer.has_room(Addition::chunk(large.len())));
        writer.push(chunk_ref(&large), &large).unwrap();
        let length_max = PACK_LENGTH_MAX;
        let error = writer.finish().unwrap_err();
        assert!(matches!(error, ContentError::PackTooLong { length } if length > length_max));
        assert!(!error.is_damage());
        // The next one is written as ever.
        writer.push(chunk_ref(&large), &large).unwrap();
        let pack = writer.finish().unwrap();
        assert!(verify_whole(pack.id, &pack.bytes, &guard).is_ok());
    }
}

#[test]
fn packs_are_larger_where_they_are_divided_into_three_blocks_or_more() {
    let targets: Vec<_> = [0, 1, 2, 3, 4, 200].map(pack_target).to_vec();
    assert_eq!(targets, [4, 4, 4, 12, 12, 12].map(|mebibytes| mebibytes << 20));
    let guesses = [1000, 4 << 20, 12 << 20].map(tail_length_guess);
    assert_eq!(guesses, [1000, TAIL_LENGTH_GUESS, 3 * TAIL_LENGTH_GUESS]);
}

#[test]
fn pack_of_the_usual_length_that_is_not_full_has_room_for_every_chunk() {
    let mut writer = PackWriter::new(Transform::None, &PackGuard::plain()).unwrap();
    for seed in 0.. {
        assert!(writer.has_room(Addition::chunk(CHUNK_SIZE_MAX as usize)), "{seed}");
        let bytes = random_bytes(seed, 100_000);
        writer.push(chunk_ref(&bytes), &bytes).unwrap();
        if writer.is_full() {
            return;
        }
    }
}

#[test]
fn records_have_at_most_a_mebibyte_unless_a_chunk_has_more() {
    let sizes = [400_000, 400_000, 400_000, 3_000_000, 10, 1 << 20];
    let chunks: Vec<_> = sizes.iter().zip(0..).map(|(&size, seed)| text(seed, size)).collect();
    let pack = pack(Transform::Zstd { level: 1 }, &chunks);
    let lengths: Vec<_> = pack.index.records().iter().map(RecordEntry::plain_length).collect();
    assert_eq!(lengths, [800_000, 400_000, 3_000_000, 10, 1 << 20]);
}

#[test]
fn a_writer_makes_the_same_pack_in_used_memory() {
    let chunks = small_chunks();
    let expected = pack(Transform::Zstd { level: 1 }, &chunks);
    let mut writer = PackWriter::new(Transform::Zstd { level: 1 }, &PackGuard::plain()).unwrap();
    for round in 0..4 {
        for chunk in &chunks {
            writer.push(chunk_ref(chunk), chunk).unwrap();
            if round == 2 {
                writer.recycle(vec![1; 100_000]);
            }
        }
        let pack = writer.finish().unwrap();
        assert_eq!((pack.id, &pack.index), (expected.id, &expected.index));
        writer.recycle(pack.bytes);
    }
}

#[test]
fn records_encoded_elsewhere_make_the_same_pack() {
    let chunks: Vec<_> = (0..200).map(|seed| text(seed, 16_000)).collect();
    let expected = pack(Transform::Zstd { level: 1 }, &chunks);
    let mut encoder = TransformEncoder::new(Transform::Zstd { level: 1 }).unwrap();
    let (mut assembler, mut record) = (PackAssembler::new(&PackGuard::plain()), PlainRecord::new());
    for bytes in &chunks {
        record.push(chunk_ref(bytes), bytes);
        if record.is_full() {
            assembler.push(&record.encode(&mut encoder).unwrap());
            record.clear();
        }
    }
    assembler.push(&record.encode(&mut encoder).unwrap());
    let pack = assembler.finish().unwrap();
    assert_eq!((pack.id, pack.index), (expected.id, expected.index));
}

#[test]
fn small_records_hold_as_much_as_they_may_and_any_chunk() {
    let max = 256 * 1024;
    let transform = Transform::Zstd { level: 1 };
    let mut chunks: Vec<_> = (0..60).map(|seed| text(seed, 16_000)).collect();
    chunks.push(text(60, max + 1));
    chunks.push(text(61, 16_000));
    let mut writer = PackWriter::new(transform, &PackGuard::plain()).unwrap().with_records(max);
    for chunk in &chunks {
        writer.push(chunk_ref(chunk), chunk).unwrap();
    }
    let small = writer.finish().unwrap();
    let lengths = |pack: &FinishedPack| -> Vec<usize> {
        pack.index.records().iter().map(RecordEntry::plain_length).collect()
    };
    assert_eq!(lengths(&small), [240_000, 240_000, 240_000, 240_000, max + 1, 16_000]);
    assert_eq!(lengths(&pack(transform, &chunks)), [960_000, max + 16_001]);
    // The writer goes on like that.
    for chunk in &chunks[..20] {
        writer.push(chunk_ref(chunk), chunk).unwrap();
    }
    assert_eq!(lengths(&writer.finish().unwrap()), [240_000, 80_000]);
}

fn pack_behind(fence: u64, chunks: &[Vec<u8>]) -> FinishedPack {
    let guard = PackGuard::plain().behind(fence);
    let mut writer = PackWriter::new(Transform::None, &guard).unwrap();
    for chunk in chunks {
        writer.push(chunk_ref(chunk), chunk).unwrap();
    }
    let stored_max = writer.stored_len_max();
    let pack = writer.finish().unwrap();
    assert!(pack.bytes.len() <= stored_max);
    pack
}

#[test]
fn name_of_a_pack_never_comes_back_behind_a_fence() {
    let chunks = small_chunks();
    let before = pack_behind(0, &chunks);
    assert_eq!(before.bytes, pack(Transform::None, &chunks).bytes, "version 1 is as it was");
    let mut ids = vec![before.id];
    for fence in [1, 127, 128, 1 << 40] {
        let behind = pack_behind(fence, &chunks);
        assert_eq!(behind.id, pack_behind(fence, &chunks).id, "devices still make equal packs");
        assert!(!ids.contains(&behind.id));
        ids.push(behind.id);
        // Any reader reads it, whatever fence it knows.
        let index = verify_whole(behind.id, &behind.bytes, &PackGuard::plain()).unwrap();
        assert_eq!(index, behind.index);
        assert_eq!(read(&index, &behind.bytes).unwrap(), chunks);
        assert_eq!(read_from_tail(&behind.bytes).unwrap(), chunks);
    }
}

#[test]
fn versions_of_plain_packs_are_never_taken_for_each_other() {
    let renamed = |bytes: Vec<u8>| {
        let id = PackId::from_bytes(*blake3::hash(&bytes).as_bytes());
        verify_whole(id, &bytes, &PackGuard::plain())
    };
    for (fence, other) in [(0, 3), (5, 1), (0, 4), (5, 4), (0, 6), (5, 6)] {
        let mut bytes = pack_behind(fence, &small_chunks()).bytes;
        bytes[7] = other;
        assert!(matches!(renamed(bytes), Err(ContentError::PackHeader)));
    }
    let mut newer = pack_behind(5, &small_chunks()).bytes;
    newer[7] = 8;
    assert!(matches!(renamed(newer), Err(ContentError::NewerPack { version: 8, known: 7 })));
    assert!(
        PackIndex::decode(&[0, 1, 0, 1, 1, 1], 0, PackVersion(FENCED_PACK_VERSION)).is_err(),
        "a fence is not zero"
    );
}
