use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, ZlibEncoder};

use super::predict::{BEGIN_COST, CODES_COST};
use super::*;
use crate::samples::{Random, random_bytes, text};

/// What zlib 1.2.13 makes of 12,000 bytes of text at the levels 1 to 9: for each the length in 4 bytes, little-endian, and the stream.
const OF_ZLIB: &[u8] = include_bytes!("samples/zlib-levels.bin");

/// The same of 110,000 bytes, more than three windows, at the levels 1 and 6.
const LONG_OF_ZLIB: &[u8] = include_bytes!("samples/zlib-long.bin");

fn deflated(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// An archive with one entry, as far as anybody here looks.
fn zip(stream: &[u8]) -> Vec<u8> {
    let mut file = b"PK\x03\x04\x14\0\0\0\x08\0".to_vec();
    file.extend([0; 16]);
    file.extend([4, 0, 0, 0]);
    file.extend(b"name");
    file.extend(stream);
    file.extend(b"PK\x05\x06");
    file.extend([0; 18]);
    file
}

/// Inflates a file, and makes it again.
fn again(file: &[u8]) -> Inflated {
    let form = Inflated::of(file).expect("it holds streams");
    for (skip, length) in [(0, file.len()), (5, file.len() - 5), (7, 1), (file.len() - 1, 1)] {
        let mut work = 0;
        let made = deflate(&form.plan(skip as u64), form.bytes(), length, &mut work).expect("made");
        assert!(made == file[skip..skip + length], "{length} bytes from {skip}");
        assert_eq!(made.capacity(), length);
        assert!(work > 4096, "a stream was made: {work}");
    }
    form
}

#[test]
fn stream_of_zlib_comes_out_at_every_level_of_nothing_but_its_codes() {
    let (short, long) = (text(1, 24_000)[..12_000].to_vec(), text(1, 110_000));
    let levels: Vec<u32> = (1..=9).collect();
    for (mut rest, expected, levels) in
        [(OF_ZLIB, &short, &levels[..]), (LONG_OF_ZLIB, &long, &[1, 6])]
    {
        for level in levels {
            let (length, behind) = rest.split_first_chunk::<4>().expect("a length");
            let (stream, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            rest = behind;
            let form = again(&zip(stream));
            let [part, end] = form.parts[..] else { panic!("{:?}", form.parts) };
            assert_eq!((part.raw, part.plain, end.raw), (34, expected.len(), 22));
            assert!(form.bytes()[34..].starts_with(expected));
            let blocks = 1 + expected.len() / 20_000;
            assert!(part.recipe < 100 * blocks, "level {level}: {} bytes", part.recipe);
        }
        assert!(rest.is_empty());
    }
}

#[test]
fn streams_of_another_encoder_come_out_of_little_more() {
    for level in [5, 6, 9] {
        let stream = deflated(&text(2, 200_000), level);
        let form = again(&zip(&stream));
        assert!(form.parts[0].recipe * RECIPE_PART <= stream.len(), "level {level}");
    }
}

#[test]
fn streams_are_found_behind_the_headers_of_zip_zlib_and_gzip() {
    let text = text(3, 30_000);
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::new(6));
    zlib.write_all(&text).expect("memory");
    let zlib = zlib.finish().expect("memory");
    let mut gzip = flate2::GzBuilder::new()
        .filename("name")
        .comment("what it is")
        .extra([1, 2, 3])
        .write(Vec::new(), Compression::new(6));
    gzip.write_all(&text).expect("memory");
    let gzip = gzip.finish().expect("memory");
    let pdf =
        [b"%PDF-1.7 stream\n", &zlib[..], b"\nendstream x\x9c stream\n", &zlib, b"end"].concat();
    let png = [b"\x89PNG\r\n\x1a\n....IDAT", &zlib[..], b"end"].concat();
    let parts = |file: &[u8]| again(file).parts.iter().filter(|part| part.plain > 0).count();
    assert_eq!([parts(&gzip), parts(&pdf), parts(&png)], [1, 2, 1]);
}

#[test]
fn blocks_of_all_kinds_come_out() {
    // Random bytes are stored, short ones in codes that need not be said.
    let bytes = [text(4, 100_000), random_bytes(5, 80_000), text(6, 100_000)].concat();
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    for (bytes, number) in bytes.chunks(20_011).zip(0..) {
        encoder.write_all(bytes).expect("memory");
        if number % 3 == 0 {
            encoder.flush().expect("memory");
        }
    }
    again(&zip(&encoder.finish().expect("memory")));
}

#[test]
fn what_is_no_container_or_holds_no_stream_stays_as_it_is() {
    let stream = deflated(&text(1, 30_000), 6);
    let good = zip(&stream);
    assert!(Inflated::of(&good).is_some());
    // Nothing says that there are streams.
    assert!(Inflated::of(&[b"x", &good[..]].concat()).is_none());
    let mut broken = good.clone();
    broken[2000] ^= 0x40;
    broken.truncate(2500);
    for file in [
        zip(&random_bytes(1, 10_000)),
        zip(&deflated(&random_bytes(1, 10_000), 6)),
        zip(&stream[..stream.len() / 2]),
        broken,
        b"PK\x03\x04".to_vec(),
        b"\x1f\x8b\x08\x1e".to_vec(),
        b"\x1f\x8b\x08\x1e......name without end".to_vec(),
    ] {
        assert!(Inflated::of(&file).is_none(), "{} bytes", file.len());
    }
}

#[test]
fn what_is_inflated_is_bounded() {
    let bomb = deflated(&vec![0; INFLATED_LENGTH_MAX + 1], 9);
    assert!(Inflated::of(&zip(&bomb)).is_none());
    let half = deflated(&vec![0; INFLATED_LENGTH_MAX / 2 - 1000], 9);
    let form = again(&[zip(&half), zip(&half), zip(&half)].concat());
    assert_eq!(form.parts.iter().filter(|part| part.plain > 0).count(), 1);
}

#[test]
fn stream_that_takes_too_long_to_make_is_not_made() {
    let stream = deflated(&text(1, 50_000), 6);
    let read = Stream::read(&stream, 1 << 20, &mut 0).expect("a stream");
    let recipe = read.recipe(usize::MAX, &mut SEARCH_MAX.clone()).expect("found");
    let mut search = SEARCH_MAX;
    stream::make(&read.plain, &recipe, &mut search).expect("made");
    let needed = SEARCH_MAX - search;
    assert!(needed > 10_000);
    assert!(read.recipe(recipe.len(), &mut SEARCH_MAX.clone()).is_some());
    assert!(read.recipe(recipe.len() - 1, &mut SEARCH_MAX.clone()).is_none());
    assert!(read.recipe(usize::MAX, &mut (needed - 1)).is_none());
    assert!(stream::make(&read.plain, &recipe, &mut needed.clone()).is_ok());
    assert!(stream::make(&read.plain, &recipe, &mut (needed - 1)).is_err());
}

#[test]
fn streams_that_hold_next_to_nothing_take_as_long_as_it_is_to_begin_them() {
    // One byte as it is.
    let recipe = [9, 1, 1 << 2];
    let mut search = 3 * BEGIN_COST - 1;
    for is_made in [true, true, false] {
        assert_eq!(stream::make(b"a", &recipe, &mut search).is_ok(), is_made);
    }
    // Codes for the end of a block and for one distance, and blocks of nothing else.
    let mut bits = bits::BitWriter::default();
    for (value, count) in [(0, 5), (0, 5), (14, 4)] {
        bits.put(value, count);
    }
    for code in 0..18 {
        bits.put(u32::from(code == 2 || code == 17), 3);
    }
    for (value, count) in [(1, 1), (127, 7), (1, 1), (107, 7), (0, 1), (0, 1)] {
        bits.put(value, count);
    }
    let (count, bits) = (14 + 18 * 3 + 18, bits.into_bytes());
    let mut recipe = vec![9, 10];
    for _ in 0..9 {
        recipe.extend([2, count]);
        recipe.extend(&bits);
    }
    recipe.push(1 << 2);
    for (codes, is_made) in [(9, true), (8, false)] {
        let mut search = BEGIN_COST + codes * CODES_COST;
        let made = stream::make(b"a", &recipe, &mut search);
        assert_eq!((made.is_ok(), search), (is_made, 0), "{made:?}");
    }
}

#[test]
fn form_that_is_longer_than_any_is_not_read() {
    let mut plan = Encoder::default();
    for number in [0, INFLATED_LENGTH_MAX as u64 + 1, 0, 0] {
        plan.unsigned(number);
    }
    let made = deflate(&plan.into_bytes(), &vec![0; INFLATED_LENGTH_MAX + 1], 1, &mut 0);
    assert!(made.is_err(), "{:?}", made.map(|made| made.len()));
}

#[test]
fn whatever_somebody_says_of_a_form_makes_an_error_or_so_many_bytes() {
    let file = zip(&deflated(&text(7, 5000), 6));
    let form = again(&file);
    let (plan, mut random) = (form.plan(0), Random(1));
    let mut made_count = 0;
    for _ in 0..3000 {
        let (mut plan, mut bytes) = (plan.clone(), form.bytes().to_vec());
        for _ in 0..=random.next() % 3 {
            let value = random.next();
            let target = if value % 4 == 0 { &mut plan } else { &mut bytes };
            // The recipe stands behind the plain bytes.
            let from = if value % 8 > 2 { target.len().saturating_sub(200) } else { 0 };
            let place = from + (value >> 8) as usize % (target.len() - from);
            target[place] ^= 1 << ((value >> 4) % 8);
        }
        if let Ok(made) = deflate(&plan, &bytes, file.len(), &mut 0) {
            made_count += 1;
            assert_eq!(made.len(), file.len());
        }
        let _ = deflate(&plan[..plan.len() / 2], &bytes, file.len(), &mut 0);
        let _ = deflate(&plan, &bytes[..bytes.len() / 2], file.len(), &mut 0);
    }
    assert!(
        made_count > 0,
        "some changes are not noticed here: the ids of chunks are there for that"
    );
}
