//! Pictures of all kinds, and the hashes of their forms. What is stored so is read for ever: where one of these changes, pictures that are
//! stored can no longer be read.
//!
//! Those in `samples` were made by libjpeg from the photograph; the others are drawn, or put together from these.

use super::*;

const GREY: &[u8] = include_bytes!("../samples/grey.jpg");
const WITH_420: &[u8] = include_bytes!("../samples/420.jpg");
const WITH_422: &[u8] = include_bytes!("../samples/422.jpg");
const WITH_444: &[u8] = include_bytes!("../samples/444.jpg");

/// The first 64 bits of the hash of each form, and of the file where it is none of the samples.
const GOLDEN: &str = "\
4:4:4: 1eac258577cb6522
4:2:2: 818e06dbfef7f3ad
4:2:0, EXIF, profile, comment: cc339f46b766aa98
grey: 8262362961014f38
four inks: fe04d31fa273ccf1
restart after 3 units: e0dae350f9a6ca8f
steps of 255: 461a069412c76358
4:4:0: 0bd028512d6fc631 of cf54cba204abbd08
4:1:1: e66df16b91bfc5a0 of 056809500650d8b7
ten blocks: 555207a817eed8c2 of cf146bf00307c74d
ten components: 40dc2e1ef1b3a2d9 of cd0fcbe0ce2d03c9
filled with ones: 802ab7d39a235600 of 5f1a151ec7777ba6
filled with zeros: d43ca541f8725feb of c7ea72800cba4cef
nothing on it: 69044bbc603b2e26 of ea25adf8685cf2ad
tables in one segment: a62b8761e9d00474 of b5a48bf289a53741
a long tail: c735123a0ff6a7bd of 40860f12e39857e5
thumbnails: 76ee34313bc5fe28 of 20e8398cd26a321f
";

/// Returns the segments that stand before the bits, and where these begin.
fn segments(file: &[u8]) -> (Vec<(u8, Vec<u8>)>, usize) {
    let (mut segments, mut place) = (Vec::new(), 2);
    while segments.last().is_none_or(|(marker, _)| *marker != 0xda) {
        let length = usize::from(u16::from_be_bytes([file[place + 2], file[place + 3]]));
        segments.push((file[place + 1], file[place + 4..place + 2 + length].to_vec()));
        place += 2 + length;
    }
    (segments, place)
}

/// Puts a file together again, with these segments.
fn with_segments(file: &[u8], segments: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut made = file[..2].to_vec();
    for (marker, content) in segments {
        made.extend([0xff, *marker]);
        made.extend((content.len() as u16 + 2).to_be_bytes());
        made.extend(content);
    }
    [&made, &file[self::segments(file).1..]].concat()
}

/// All tables of a kind in one segment, as some programs write them.
fn joined(file: &[u8]) -> Vec<u8> {
    let mut joined: Vec<(u8, Vec<u8>)> = Vec::new();
    for (marker, content) in segments(file).0 {
        match joined.last_mut() {
            Some((last, tables)) if *last == marker && [0xc4, 0xdb].contains(&marker) => {
                tables.extend(content);
            }
            _ => joined.push((marker, content)),
        }
    }
    assert!(joined.len() < segments(file).0.len());
    with_segments(file, &joined)
}

/// A camera lays small pictures beside what it says of a picture.
fn with_thumbnails(file: &[u8], thumbnails: &[&[u8]]) -> Vec<u8> {
    let mut segments = segments(file).0;
    for thumbnail in thumbnails {
        segments.insert(1, (0xe1, [b"Exif\0\0MM\0\x2a", *thumbnail].concat()));
    }
    with_segments(file, &segments)
}

#[test]
fn golden_pictures_of_all_kinds_are_made_and_stored_as_ever() {
    let sample = |name: &'static str, file: &[u8]| (name, file.to_vec(), false);
    let drawn = |name: &'static str, plan: Plan| (name, plan.draw(1), true);
    let made = |name: &'static str, file: Vec<u8>| (name, file, true);
    let plan = |components| Plan::new(75, 53, components);
    let tail = [WITH_420, &text(1, 3000), WITH_444, &[0; 500], &[0xff, 0xd9]].concat();
    let pictures = [
        sample("4:4:4", WITH_444),
        sample("4:2:2", WITH_422),
        sample("4:2:0, EXIF, profile, comment", WITH_420),
        sample("grey", GREY),
        sample("four inks", include_bytes!("../samples/cmyk.jpg")),
        sample("restart after 3 units", include_bytes!("../samples/restart.jpg")),
        sample("steps of 255", include_bytes!("../samples/steps255.jpg")),
        drawn("4:4:0", plan(&[(1, 2), (1, 1), (1, 1)])),
        drawn("4:1:1", plan(&[(4, 1), (1, 1), (1, 1)])),
        drawn("ten blocks", plan(&[(4, 2), (1, 1), (1, 1)])),
        drawn("ten components", plan(&[(1, 1); 10])),
        drawn("filled with ones", Plan { restart: 1, ..plan(COLOURS) }),
        drawn("filled with zeros", Plan { restart: 1, fills_with_ones: false, ..plan(COLOURS) }),
        drawn("nothing on it", Plan { is_flat: true, ..plan(COLOURS) }),
        made("tables in one segment", joined(WITH_422)),
        made("a long tail", tail),
        made("thumbnails", with_thumbnails(WITH_444, &[GREY, WITH_420, GREY])),
    ];
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex()[..16].to_owned();
    let mut found = String::new();
    for (name, file, is_made) in pictures {
        let form = assert_shortened(&file);
        let made = if is_made { format!(" of {}", hash(&file)) } else { String::new() };
        found += &format!("{name}: {}{made}\n", hash(&form));
    }
    assert!(found == GOLDEN, "{found}");
}

#[test]
fn tables_in_one_segment_or_in_many_make_the_same_bits() {
    let forms = [WITH_422.to_vec(), joined(WITH_422)].map(|file| {
        let form = assert_shortened(&file);
        let picture = Picture::decode(&mut Decoder::new(&form)).expect("a form");
        (picture.bits.to_vec(), picture.raw.to_vec())
    });
    assert_eq!(forms[0], forms[1]);
}
