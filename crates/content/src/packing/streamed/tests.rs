use proptest::prelude::*;

use crate::delta::{BaseVersion, VersionSketch};
use crate::packing::edited::tests::{Workspace, apply, content_alone, edits, workspace};
use crate::samples::{random_bytes, text};

/// Packs a version whose bytes come in pieces of this length; returns what is kept of it, and how many bytes of packs it took.
fn stream(
    workspace: &mut Workspace,
    before: &VersionSketch,
    bytes: &[u8],
    length: usize,
) -> (VersionSketch, usize) {
    let stored = workspace.stored();
    let mut packer = workspace.packer();
    let mut cut = packer.begin_edited(before.clone()).unwrap();
    for piece in bytes.chunks(length) {
        packer.push(&mut cut, piece).unwrap();
    }
    let (content, sketch) = packer.end(cut).unwrap();
    packer.finish().unwrap();
    let sketch = sketch.expect("it was begun as a change");
    assert_eq!(content, content_alone(bytes, before.chunk_size()));
    assert!(workspace.read(&sketch) == bytes);
    (sketch, workspace.stored() - stored)
}

#[test]
fn version_that_comes_in_pieces_costs_and_keeps_what_one_costs_that_is_read_twice() {
    let mut old = text(1, 6_000_000);
    old.extend(random_bytes(2, 6_000_000));
    let edits: [fn(&mut Vec<u8>); 6] = [
        |_| {},
        |new| new[7_000_000] ^= 1,
        |new| drop(new.splice(1_000_000..1_000_900, random_bytes(3, 300))),
        |new| drop(new.splice(0..0, *b"a new title")),
        |new| new.truncate(11_000_000),
        |new| new.extend(random_bytes(4, 1_000)),
    ];
    for (number, edit) in edits.iter().enumerate() {
        let mut new = old.clone();
        edit(&mut new);
        let (mut streamed, mut read_twice) = (workspace(), workspace());
        let (first, second) = (streamed.store(&old).1, read_twice.store(&old).1);
        let (sketch, cost) = stream(&mut streamed, &first, &new, 1 << 20);
        let (_, expected, known) = read_twice.edit(&second, &new);
        assert_eq!(sketch, expected, "edit {number}");
        assert_eq!(cost, known, "edit {number}");
        // Most of it is the list of its chunks.
        assert!(cost < 20_000, "edit {number}: {cost} bytes");
    }
}

#[test]
fn first_version_keeps_what_the_next_one_is_a_change_of() {
    let bytes = random_bytes(1, 3_000_000);
    let mut streamed = workspace();
    let none = VersionSketch::empty(16 << 10);
    let (sketch, _) = stream(&mut streamed, &none, &bytes, 100_000);
    let keys = crate::packing::edited::tests::keys();
    assert_eq!(sketch, VersionSketch::survey(&keys, 16 << 10, &mut &bytes[..]).unwrap());
    let mut new = bytes;
    new[2_000_000] ^= 1;
    assert!(stream(&mut streamed, &sketch, &new, 100_000).1 < 500);
}

#[test]
fn where_the_version_before_has_no_sums_whole_chunks_are_stored() {
    let mut bytes = random_bytes(1, 500_000);
    let mut streamed = workspace();
    let (_, sketch) = streamed.store(&bytes);
    let unsketched = BaseVersion::without_sketch(sketch.base().table().clone());
    let encoded = [&b"v"[..], &unsketched.encode()[1..]].concat();
    bytes[200_000] ^= 1;
    let unsketched = VersionSketch::decode(&encoded).unwrap();
    let (next, cost) = stream(&mut streamed, &unsketched, &bytes, 100_000);
    assert!((1_000..100_000).contains(&cost), "{cost} bytes");
    // What is kept of that has them again.
    bytes[300_000] ^= 1;
    assert!(stream(&mut streamed, &next, &bytes, 100_000).1 < 500);
}

/// More is new at one place than is in memory at a time, and behind it something small.
#[test]
fn what_is_behind_a_long_stretch_that_is_new_is_found_again() {
    let old = random_bytes(1, 14_000_000);
    let mut streamed = workspace();
    let (_, base) = streamed.store(&old);
    let long = random_bytes(2, 9_500_000);
    let mut new = [&old[..5_000_000], &long, &old[5_000_000..]].concat();
    for place in [long.len() + 5_200_000, long.len() + 12_000_000] {
        new[place] ^= 1;
    }
    let (sketch, cost) = stream(&mut streamed, &base, &new, 1 << 20);
    assert!(cost < long.len() + 20_000, "{cost} bytes");
    // What is taken out again, too.
    let (_, cost) = stream(&mut streamed, &sketch, &old, 1 << 20);
    assert!(cost < 3_000, "{cost} bytes");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_version_that_comes_in_pieces_comes_back(
        edits in edits(),
        length in 1_usize..50_000,
        seed in any::<u64>(),
    ) {
        let (mut workspace, mut read_twice) = (workspace(), workspace());
        let mut file = text(seed, 120_000);
        let (_, mut base) = workspace.store(&file);
        read_twice.store(&file);
        for edit in edits {
            let (_, _, inserted, is_text) = edit;
            apply(&mut file, edit, seed);
            if !is_text {
                // Chunks that were behind others come before them.
                let front = inserted.min(file.len());
                file.rotate_left(front);
            }
            let (_, expected, known) = read_twice.edit(&base, &file);
            let (sketch, cost) = stream(&mut workspace, &base, &file, length);
            prop_assert_eq!(&sketch, &expected);
            // Records are filled in another order.
            prop_assert!(cost <= known + known / 8 + 2_000, "{} of {}", cost, known);
            base = sketch;
        }
    }
}
