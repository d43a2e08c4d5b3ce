use std::collections::HashSet;
use std::io::{self, Read};

use proptest::prelude::*;

use super::*;
use crate::samples::{random_bytes, text};

const KEY: [u8; 32] = [9; 32];

fn chunker(kind: ChunkerKind, average: u32) -> Box<dyn Chunker> {
    kind.chunker(average, &KEY).unwrap()
}

/// A reader that gives few bytes at a time, and now and then is interrupted.
struct Dripping<'a> {
    rest: &'a [u8],
    calls: usize,
}

impl Read for Dripping<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = buffer.len().min(1 + self.calls * 7919 % 60_000);
        self.rest.read(&mut buffer[..length])
    }
}

/// Stretches of random bytes, text and runs, in any order.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let stretch = (0_u8..3, any::<u64>(), 0_usize..40_000);
    prop::collection::vec(stretch, 0..6).prop_map(|stretches| {
        let stretches = stretches.into_iter().map(|(kind, seed, length)| match kind {
            0 => random_bytes(seed, length),
            1 => text(seed, length),
            _ => vec![seed as u8; length],
        });
        stretches.flatten().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn chunks_are_the_bytes_within_their_bounds(bytes in any_bytes(), power in 10_u32..15) {
        for kind in ChunkerKind::ALL {
            let chunker = chunker(kind, 1 << power);
            let chunks: Vec<_> = Chunks::new(chunker.as_ref(), &bytes).collect();
            prop_assert_eq!(chunks.concat(), &bytes[..]);
            let (last, others) = match chunks.split_last() {
                Some((last, others)) => (last.len(), others),
                None => continue,
            };
            let sizes = chunker.sizes();
            prop_assert!((1..=sizes.max()).contains(&last));
            for chunk in others {
                prop_assert!((sizes.min()..=sizes.max()).contains(&chunk.len()), "{kind}");
            }
        }
    }

    #[test]
    fn a_reader_is_cut_like_a_slice(bytes in any_bytes(), calls in 0_usize..100) {
        let mut buffer = ChunkBuffer::default();
        for kind in ChunkerKind::ALL {
            let chunker = chunker(kind, 2048);
            let mut chunks = Vec::new();
            let mut reader = Dripping { rest: &bytes, calls };
            let total = chunk_reader::<ContentError>(&mut reader, chunker.as_ref(), &mut buffer, |chunk| {
                chunks.push(chunk.to_vec());
                Ok(())
            });
            prop_assert_eq!(total.unwrap(), bytes.len() as u64);
            prop_assert_eq!(chunks, Chunks::new(chunker.as_ref(), &bytes).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_shorter_window_changes_no_cut(seed in any::<u64>()) {
        let bytes = random_bytes(seed, 40_000);
        for kind in ChunkerKind::ALL {
            let chunker = chunker(kind, 4096);
            let max = chunker.sizes().max();
            prop_assert!(chunker.cut(&bytes[..max], false).is_some());
            prop_assert_eq!(chunker.cut(&bytes[..max], false), chunker.cut(&bytes, true));
            prop_assert_eq!(chunker.cut(&bytes[..max], true), chunker.cut(&bytes, false));
            prop_assert_eq!(chunker.cut(&bytes[..1024], false), None);
        }
    }
}

#[test]
fn a_long_reader_is_cut_across_refills() {
    let bytes = text(1, 5_000_000);
    for (kind, average) in
        ChunkerKind::ALL.into_iter().flat_map(|kind| [(kind, 1 << 14), (kind, 1 << 18)])
    {
        let chunker = chunker(kind, average);
        let mut chunks = Vec::new();
        let mut buffer = ChunkBuffer::default();
        chunk_reader::<ContentError>(&mut &bytes[..], chunker.as_ref(), &mut buffer, |chunk| {
            chunks.push(chunk.len());
            Ok(())
        })
        .unwrap();
        let expected: Vec<_> = Chunks::new(chunker.as_ref(), &bytes).map(<[u8]>::len).collect();
        assert_eq!(chunks, expected);
    }
}

#[test]
fn memory_stays_bounded_however_long_the_reader() {
    let chunker = chunker(ChunkerKind::Minimum, average_for(0, true));
    let mut buffer = ChunkBuffer::default();
    let mut reader = io::repeat(0).take(100_000_000);
    let total =
        chunk_reader::<ContentError>(&mut reader, chunker.as_ref(), &mut buffer, |_| Ok(()));
    assert_eq!(total.unwrap(), 100_000_000);
    assert!(buffer.bytes.capacity() <= 4 * 1024 * 1024, "{}", buffer.bytes.capacity());
}

#[test]
fn an_inserted_byte_changes_few_chunks() {
    for kind in ChunkerKind::ALL.into_iter().filter(|kind| *kind != ChunkerKind::Fixed) {
        let chunker = chunker(kind, 4096);
        for (seed, position) in [(1, 0), (2, 400_000), (3, 799_000)] {
            for bytes in [random_bytes(seed, 800_000), text(seed, 800_000)] {
                let before: HashSet<_> = Chunks::new(chunker.as_ref(), &bytes).collect();
                let mut edited = bytes.clone();
                edited.insert(position, b'!');
                let new = Chunks::new(chunker.as_ref(), &edited)
                    .filter(|chunk| !before.contains(chunk))
                    .count();
                assert!((1..=8).contains(&new), "{kind} at {position}: {new} new chunks");
            }
        }
    }
}

#[test]
fn a_failing_reader_and_a_failing_sink_end_the_work() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
    let chunker = chunker(ChunkerKind::Minimum, 1024);
    let mut buffer = ChunkBuffer::default();
    let bytes = random_bytes(1, 10_000);
    let mut reader = (&bytes[..]).chain(Broken);
    let result =
        chunk_reader::<ContentError>(&mut reader, chunker.as_ref(), &mut buffer, |_| Ok(()));
    assert!(result.unwrap_err().is_retryable());

    let mut calls = 0;
    let full = |_: &[u8]| {
        calls += 1;
        Err(ContentError::PackHeader)
    };
    let result = chunk_reader(&mut &bytes[..], chunker.as_ref(), &mut buffer, full);
    assert!(matches!(result, Err(ContentError::PackHeader)));
    assert_eq!(calls, 1);
}

#[test]
fn average_size_follows_file_size_and_kind() {
    const GIB: u64 = 1 << 30;
    let averages = [(0, false), (GIB, false), (GIB + 1, false), (1, true), (GIB * 9, true)]
        .map(|(size, incompressible)| average_for(size, incompressible) >> 10);
    assert_eq!(averages, [16, 16, 64, 256, 256]);
}

#[test]
fn sizes_that_are_no_power_of_two_or_out_of_bounds_are_refused() {
    for average in [0, 1, 512, 1000, 16_385, AVERAGE_MAX * 2, u32::MAX] {
        for kind in ChunkerKind::ALL {
            let refused = kind.chunker(average, &KEY).err();
            assert!(matches!(refused, Some(ContentError::InvalidChunkSize { .. })), "{average}");
        }
    }
    for kind in ChunkerKind::ALL {
        let largest = (10..23).rev().find_map(|power| kind.chunker(1 << power, &KEY).ok());
        let max = largest.unwrap().sizes().max();
        assert!((CHUNK_SIZE_MAX as usize / 2..=CHUNK_SIZE_MAX as usize).contains(&max), "{kind}");
    }
}

#[test]
fn kinds_have_names_and_other_names_are_refused() {
    for kind in ChunkerKind::ALL {
        assert_eq!(kind.to_string().parse::<ChunkerKind>().unwrap(), kind);
    }
    let error = "Minimum".parse::<ChunkerKind>().unwrap_err();
    assert_eq!(error.to_string(), "there is no chunker 'Minimum'");
}
