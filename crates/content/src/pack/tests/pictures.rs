//! JPEG records: a picture comes out as it was, or not at all.

use super::*;
use crate::chunker::{ChunkerKind, Chunks};
use crate::jpeg::tests::{COLOURS, PHOTO, Plan};
use crate::jpeg::{lengthen, shorten};
use crate::sealed::tests::some_keys;
use crate::transform::TransformTag;

/// Cuts a file as devices do; returns its chunks, and their bytes.
fn cut(file: &[u8]) -> (Vec<ChunkRef>, Vec<Vec<u8>>) {
    let keys = WorkspaceContentKeys::derive(&[7; 32]);
    let chunker = keys.chunker(ChunkerKind::Minimum, 1024).unwrap();
    let bytes: Vec<Vec<u8>> = Chunks::new(&*chunker, file).map(<[u8]>::to_vec).collect();
    (bytes.iter().map(|chunk| chunk_ref(chunk)).collect(), bytes)
}

/// Stores a picture between two texts.
fn packed(guard: &PackGuard, file: &[u8]) -> (FinishedPack, Vec<Vec<u8>>) {
    let mut writer = PackWriter::new(Transform::default(), guard).unwrap();
    let (chunks, mut bytes) = cut(file);
    let around = [text(1, 3000), text(2, 3000)];
    writer.push(chunk_ref(&around[0]), &around[0]).unwrap();
    assert!(writer.push_picture(&chunks, &shorten(file).unwrap()).unwrap());
    writer.push(chunk_ref(&around[1]), &around[1]).unwrap();
    let stored_max = writer.stored_len_max();
    let pack = writer.finish().unwrap();
    assert!(pack.bytes.len() <= stored_max && writer.is_empty());
    bytes.extend(around);
    (pack, bytes)
}

#[test]
fn picture_is_stored_shorter_and_comes_back_without_bases() {
    let (pack, expected) = packed(&PackGuard::plain(), PHOTO);
    assert_eq!(pack.bytes[7], PICTURE_PACK_VERSION);
    assert_eq!(verify_whole(pack.id, &pack.bytes, &PackGuard::plain()).unwrap(), pack.index);
    assert_eq!(read_from_tail(&pack.bytes).unwrap(), expected);
    let record = &pack.index.records()[0];
    assert_eq!(record.transform(), TransformTag::Jpeg);
    let stored = record.stored_range();
    assert!((stored.end - stored.start) * 4 < PHOTO.len() as u64 * 3);
    assert!(pack.index.bases(0).unwrap().is_empty() && pack.index.has_deltas());
    // Its chunks may be bases of others: they rest whole.
    assert!(pack.index.packed_chunks().all(|packed| packed.record < 2));
}

#[test]
fn picture_is_stored_in_sealed_packs_too() {
    let keys = some_keys();
    let (pack, _) = packed(&keys.packs(), PHOTO);
    assert_eq!(pack.bytes[7], SEALED_PICTURE_PACK_VERSION);
    assert!(verify_whole(pack.id, &pack.bytes, &keys.packs()).unwrap().has_deltas());
}

#[test]
fn picture_that_is_damaged_makes_an_error_of_damage() {
    let (pack, expected) = packed(&PackGuard::plain(), PHOTO);
    let range = pack.index.records()[0].stored_range();
    let range = range.start as usize..range.end as usize;
    for place in range.clone().step_by(97) {
        let mut bytes = pack.bytes.clone();
        bytes[place] ^= 4;
        let error = read(&pack.index, &bytes).unwrap_err();
        let is_told = match &error {
            ContentError::Record { source, .. } => {
                matches!(**source, ContentError::Script { .. })
            }
            ContentError::ChunkHash { .. } => true,
            _ => false,
        };
        assert!(is_told && error.is_damage(), "byte {place}: {error}");
    }
    assert_eq!(read(&pack.index, &pack.bytes).unwrap(), expected);
}

/// Whoever has readers open much has to store much.
#[test]
fn little_that_is_stored_is_no_picture_of_many_bytes() {
    for (stored, is_read) in [(100, false), ((1 << 19) - 1, false), (1 << 19, true)] {
        let lengths = (JPEG_PLAIN_MAX as u64, stored);
        let index = index_of(PICTURE_PACK_VERSION, TransformTag::Jpeg, lengths);
        assert_eq!(index.is_ok(), is_read, "{stored}");
    }
    // A picture of one colour; it is compressed otherwise.
    let plan = Plan { is_flat: true, ..Plan::new(2000, 2000, COLOURS) };
    let file = [&plan.draw(1)[..], b"\xff\xd9"].concat();
    let form = shorten(&file).unwrap();
    assert!(form.len() * JPEG_PLAIN_FACTOR < file.len());
    let mut writer = PackWriter::new(Transform::default(), &PackGuard::plain()).unwrap();
    assert!(!writer.push_picture(&[chunk_ref(&file)], &form).unwrap() && writer.is_empty());
    writer.push(chunk_ref(&file), &file).unwrap();
    assert!(writer.finish().unwrap().bytes.len() * JPEG_PLAIN_FACTOR < file.len());
}

#[test]
fn what_is_too_long_or_pays_not_is_no_record() {
    let mut writer = PackWriter::new(Transform::default(), &PackGuard::plain()).unwrap();
    let chunk = chunk_ref(&random_bytes(1, 100_000));
    let larger = ChunkRef { length: JPEG_PLAIN_MAX as u32 + 1, ..chunk };
    assert!(!writer.push_picture(&[], &[1]).unwrap());
    assert!(!writer.push_picture(&[chunk], &vec![0; 97_000]).unwrap());
    assert!(!writer.push_picture(&[larger], &[1]).unwrap());
    assert!(!writer.push_picture(&vec![chunk; RECORD_CHUNKS_MAX + 1], &[1]).unwrap());
    assert!(writer.is_empty());
}

/// Behind a picture as large as may be there is no room for what was pushed before.
#[test]
fn large_pictures_fit_wherever_they_come() {
    let text = text(3, RECORD_PLAIN_MAX - 40_000);
    // What nothing compresses, as far as the pack knows: what it says is not looked at here.
    let chunk = ChunkRef { length: JPEG_PLAIN_MAX as u32, ..chunk_ref(b"picture") };
    let form = random_bytes(4, JPEG_PLAIN_MAX / 32 * 31 - 1);
    for target in [PACK_STORED_TARGET, PACK_STORED_TARGET * PACK_GROWTH] {
        let plain = PackWriter::new(Transform::None, &PackGuard::plain()).unwrap();
        let mut writer = plain.with_target(target);
        let mut count = 0;
        while !writer.is_full() && writer.has_room(Addition::chunk(form.len())) {
            writer.push(chunk_ref(&text), &text).unwrap();
            if !writer.is_full() && writer.has_room(Addition::chunk(form.len())) {
                assert!(writer.push_picture(&[chunk], &form).unwrap());
                count += 1;
            }
        }
        let pack = writer.finish().unwrap();
        assert!(count > 0 && pack.bytes.len() as u64 <= PACK_LENGTH_MAX);
        let records = pack.index.records().iter();
        let pictures = records.filter(|record| record.transform() == TransformTag::Jpeg);
        assert_eq!(pictures.count(), count);
    }
}

/// Reads an index with one record of one chunk of so many bytes, stored in so many.
fn index_of(
    version: u8,
    transform: TransformTag,
    (plain, stored): (u64, u64),
) -> Result<PackIndex, ContentError> {
    let mut encoder = Encoder::default();
    if version >= FENCED_PACK_VERSION {
        encoder.unsigned(u64::from(version == FENCED_PACK_VERSION));
    }
    encoder.unsigned(1);
    encoder.raw(&[transform.number()]);
    encoder.unsigned(stored);
    encoder.unsigned(1);
    encoder.unsigned(plain);
    encoder.raw(&[1; 32]);
    PackIndex::decode(&encoder.into_bytes(), 0, PackVersion(version))
}

#[test]
fn only_packs_of_their_version_have_pictures_of_bounded_length() {
    let max = JPEG_PLAIN_MAX as u64;
    let length = (max, 1 << 20);
    for version in [PACK_VERSION, FENCED_PACK_VERSION, DELTA_PACK_VERSION] {
        assert!(index_of(version, TransformTag::Jpeg, length).is_err(), "version {version}");
    }
    assert!(index_of(FENCED_PACK_VERSION, TransformTag::Zstd, length).is_ok());
    for transform in [TransformTag::Zstd, TransformTag::Delta] {
        assert!(index_of(PICTURE_PACK_VERSION, transform, length).is_err(), "{transform}");
    }
    let index = index_of(PICTURE_PACK_VERSION, TransformTag::Jpeg, length).unwrap();
    assert!(index.has_deltas() && index.bases(0).unwrap().is_empty());
    assert!(index_of(PICTURE_PACK_VERSION, TransformTag::Jpeg, (max + 1, 1 << 20)).is_err());
}

/// A program of the days before tells a newer pack from damage, as it does of all: by its number.
#[test]
fn pack_has_pictures_and_deltas_and_the_version_of_pictures() {
    let base = random_bytes(8, 20_000);
    let edited = [b"new", &base[..]].concat();
    let mut writer = PackWriter::new(Transform::default(), &PackGuard::plain().behind(3)).unwrap();
    let steps = [
        DeltaStep::Literal(b"new"),
        DeltaStep::Copy { base: chunk_ref(&base), offset: 0, length: base.len() as u32 },
    ];
    writer.push_delta(chunk_ref(&edited), &edited, &steps).unwrap();
    let (chunks, bytes) = cut(PHOTO);
    assert!(writer.push_picture(&chunks, &shorten(PHOTO).unwrap()).unwrap());
    let pack = writer.finish().unwrap();
    assert_eq!((pack.bytes[7], pack.index.encode()[0]), (PICTURE_PACK_VERSION, 3));
    assert_eq!(verify_whole(pack.id, &pack.bytes, &PackGuard::plain()).unwrap(), pack.index);
    let mut opener = RecordOpener::default();
    for (number, entry) in pack.index.records().iter().enumerate() {
        let range = entry.stored_range().start as usize..entry.stored_range().end as usize;
        let bases =
            if pack.index.bases(number).unwrap().is_empty() { vec![] } else { vec![&base[..]] };
        let record =
            opener.open_on(&pack.index, number, &pack.bytes[range], &bases, &namer()).unwrap();
        let chunks: Vec<Vec<u8>> =
            record.verified_chunks().map(|it| it.unwrap().1.to_vec()).collect();
        assert!(chunks == bytes || chunks == [edited.clone()]);
    }
}

/// The script of a delta is no picture: that would be made of more than it says.
#[test]
fn picture_is_no_transform_of_a_script() {
    let base = chunk_ref(&random_bytes(1, 5000));
    let stored = [&[TransformTag::Jpeg.number(), 100][..], &[0; 100]].concat();
    let mut decoder = crate::transform::TransformDecoder::default();
    let bytes = random_bytes(1, base.length as usize);
    let made = delta::apply(&stored, 5000, &[&bytes], &mut decoder, &mut Vec::new());
    assert!(matches!(made, Err(ContentError::Script { .. })));
}

/// What is stored so is read for ever.
#[test]
fn golden_picture_is_packed_as_ever() {
    let file = [&Plan::new(120, 80, COLOURS).draw(5)[..], b"\xff\xd9"].concat();
    let form = shorten(&file).unwrap();
    assert!(lengthen(&form, file.len()).unwrap() == file);
    let mut writer = PackWriter::new(Transform::None, &PackGuard::plain()).unwrap();
    assert!(writer.push_picture(&[chunk_ref(&file)], &form).unwrap());
    let pack = writer.finish().unwrap();
    let id = "56900923d44f0bd90e267f4c451b6205fe038775701e69ebaaf4bebe12ee7fb3";
    assert_eq!(pack.id.to_string(), id);
}
