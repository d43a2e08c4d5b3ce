use proptest::prelude::*;

use super::*;
use crate::samples::{random_bytes, text};

const TRANSFORMS: [Transform; 5] = [
    Transform::None,
    Transform::Zstd { level: 1 },
    Transform::Zstd { level: 19 },
    Transform::Gzip,
    Transform::Bzip2,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn decoding_what_was_encoded_gives_the_same_bytes(
        seed in any::<u64>(), random in 0_usize..20_000, words in 0_usize..20_000,
    ) {
        let plain = [random_bytes(seed, random), text(seed, words)].concat();
        for transform in TRANSFORMS {
            let (tag, stored) = transform.encode(&plain).unwrap();
            prop_assert!(stored.len() <= plain.len());
            prop_assert_eq!(decode(tag, &stored, plain.len()).unwrap(), &plain[..]);
        }
    }

    #[test]
    fn hostile_bytes_never_panic_and_never_outgrow_the_declared_length(
        stored in prop::collection::vec(any::<u8>(), 0..200), length in 0_usize..1000,
    ) {
        let framed = [&[0x28, 0xb5, 0x2f, 0xfd][..], &stored].concat();
        for stored in [&stored, &framed] {
            let mut plain = Vec::new();
            let _ = zstd::portable::Decoder::new().unwrap().decode(stored, length, &mut plain);
            prop_assert!(plain.len() <= length);
        }
        for tag in TransformTag::ALL {
            let mut plain = Vec::new();
            let _ = TransformDecoder::default().decode(tag, &stored, length, &mut plain);
            prop_assert!(plain.len() <= length + 1);
        }
    }
}

#[test]
fn text_shrinks_and_random_bytes_stay_as_they_are() {
    let (words, random) = (text(1, 100_000), random_bytes(1, 100_000));
    for transform in TRANSFORMS {
        let (tag, stored) = transform.encode(&words).unwrap();
        assert_eq!(tag, transform.tag());
        assert!(transform == Transform::None || stored.len() < words.len() / 2);
        let (tag, stored) = transform.encode(&random).unwrap();
        assert_eq!((tag, &stored), (TransformTag::None, &random));
    }
}

#[test]
fn a_small_gain_is_not_taken() {
    // Too short for the probe, and one part in 50 of it compresses.
    let plain = [random_bytes(1, 3920), vec![b'a'; 80]].concat();
    for transform in TRANSFORMS {
        assert_eq!(transform.encode(&plain).unwrap().0, TransformTag::None, "{transform:?}");
    }
}

#[test]
fn the_probe_sees_a_text_between_two_pictures() {
    let picture = random_bytes(1, 500_000);
    assert!(looks_incompressible(&picture));
    assert!(!looks_incompressible(&text(1, 500_000)));
    assert!(!looks_incompressible(&[&picture[..], &text(1, 200_000), &picture].concat()));
    assert!(!looks_incompressible(&picture[..100]));
}

#[test]
fn an_encoder_and_a_decoder_serve_many_records_of_any_size() {
    let mut encoder = TransformEncoder::new(Transform::Zstd { level: 3 }).unwrap();
    let mut decoder = TransformDecoder::default();
    let mut plain = Vec::new();
    for length in [1_000_000, 10, 0, 300_000, 1] {
        let record = text(length as u64, length);
        let mut stored = b"before".to_vec();
        let tag = encoder.encode(&record, &mut stored).unwrap();
        decoder.decode(tag, &stored[6..], length, &mut plain).unwrap();
        assert_eq!(plain, record);
    }
}

#[test]
fn a_bomb_is_refused_by_its_declared_length() {
    let plain = vec![0; 32 << 20];
    for transform in &TRANSFORMS[1..] {
        let (tag, stored) = transform.encode(&plain).unwrap();
        assert!(stored.len() < 100_000);
        let mut plain = Vec::new();
        let error = TransformDecoder::default().decode(tag, &stored, 1000, &mut plain).unwrap_err();
        let named = matches!(error, ContentError::Decode { .. } | ContentError::PlainLength { .. });
        assert!(named, "{transform:?}: {error}");
        assert!(plain.capacity() < 100_000, "{transform:?}");
        assert!(error.is_damage());
    }
}

#[test]
fn a_declared_length_that_is_too_large_is_refused() {
    let plain = text(1, 5000);
    for transform in TRANSFORMS {
        let (tag, stored) = transform.encode(&plain).unwrap();
        for length in [5001, 6000] {
            let error = decode(tag, &stored, length).unwrap_err();
            assert!(matches!(error, ContentError::PlainLength { actual: 5000, .. }), "{error}");
        }
        assert!(decode(tag, &stored, 4999).is_err());
    }
}

#[test]
fn truncated_and_overlong_records_are_refused() {
    let plain = text(1, 5000);
    for transform in &TRANSFORMS[1..] {
        let (tag, mut stored) = transform.encode(&plain).unwrap();
        for length in 0..stored.len() {
            assert!(decode(tag, &stored[..length], 5000).is_err(), "{transform:?} to {length}");
        }
        stored.push(0);
        let error = decode(tag, &stored, 5000).unwrap_err();
        assert!(matches!(error, ContentError::RecordTrailing { count: 1, .. }), "{error}");
    }
}

#[test]
fn tags_keep_their_numbers() {
    for (number, tag) in TransformTag::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(tag.number()), number);
        assert_eq!(TransformTag::from_number(number as u64), Some(tag));
    }
    assert_eq!(TransformTag::from_number(7), None);
    assert_eq!(TransformTag::from_number(u64::MAX), None);
}

#[test]
fn browser_reads_the_frames_that_programs_make() {
    let mut decoder = zstd::portable::Decoder::new().unwrap();
    for level in [1, 3, 19] {
        for length in [0, 1, 300, 5000, 131_072, 400_000, 3_000_000] {
            let plain = [text(length as u64, length / 8), random_bytes(9, length / 50)].concat();
            let mut stored = Vec::new();
            zstd::Encoder::new(level).unwrap().encode(&plain, &mut stored).unwrap();
            let mut read = Vec::new();
            assert_eq!(decoder.decode(&stored, plain.len(), &mut read).unwrap(), 0);
            assert_eq!(read, plain, "{level}, {length}");
            // What follows is counted, what is longer than it should be is refused, and so is what ends too soon.
            let followed = [&stored[..], b"more"].concat();
            assert_eq!(decoder.decode(&followed, plain.len(), &mut read).unwrap(), 4);
            if !plain.is_empty() {
                assert!(decoder.decode(&stored, plain.len() - 1, &mut read).is_err());
                assert!(
                    decoder.decode(&stored[..stored.len() - 1], plain.len(), &mut read).is_err()
                );
            }
            assert_eq!(decoder.decode(&stored, plain.len() + 9, &mut read).unwrap(), 0);
            assert_eq!(read, plain, "its length is compared by who asks");
        }
    }
}

#[test]
fn browser_refuses_a_window_that_is_larger_than_the_record() {
    // A frame of one raw block of a byte, with a window of 64 MiB.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x80, 0x09, 0x00, 0x00, b'x'];
    let mut plain = Vec::new();
    let mut decoder = zstd::portable::Decoder::new().unwrap();
    assert!(decoder.decode(&frame, 1, &mut plain).is_err());
}

#[test]
fn little_at_once_is_compressed_better_and_other_transforms_stay() {
    let zstd = |level| Transform::Zstd { level };
    assert_eq!(zstd(1).for_length(Transform::PATIENT_LENGTH), zstd(Transform::PATIENT_LEVEL));
    assert_eq!(zstd(1).for_length(Transform::PATIENT_LENGTH + 1), zstd(1));
    assert_eq!(zstd(19).for_length(1), zstd(19));
    assert_eq!(Transform::None.for_length(1), Transform::None);
    let text = text(1, 100_000);
    let stored = |transform: Transform| transform.encode(&text).unwrap().1.len();
    assert!(stored(zstd(1).patient()) * 100 < stored(zstd(1)) * 95);
}
