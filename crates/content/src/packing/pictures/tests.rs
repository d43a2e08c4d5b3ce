use super::*;
use crate::jpeg::tests::{COLOURS, PHOTO, Plan};
use crate::pack::{PACK_GROWTH, PACK_STORED_TARGET, open_record, verify_whole};
use crate::packing::KeptBuilder;
use crate::packing::edited::tests::{Workspace, content_alone, keys, workspace};
use crate::samples::{random_bytes, text};
use crate::sealed::PackGuard;
use crate::transform::TransformTag;

/// Stores a version; returns how many bytes of packs that took, beside.
fn store(workspace: &mut Workspace, kept: Option<&Kept>, bytes: &[u8]) -> (Content, Kept, usize) {
    let before = workspace.stored();
    let mut packer = workspace.packer();
    let (content, kept) = packer.pack_whole(kept, bytes, None).expect("packed");
    packer.finish().expect("packed");
    assert_eq!(content, content_alone(bytes, content.chunk_size));
    (content, kept, workspace.stored() - before)
}

fn read(workspace: &Workspace, content: &Content) -> Vec<u8> {
    content.chunks.iter().flat_map(|chunk| workspace.chunk(&chunk.id)).collect()
}

fn pictures(workspace: &Workspace) -> usize {
    let records = workspace.packs.iter().flat_map(|pack| pack.index.records());
    records.filter(|record| record.transform() == TransformTag::Jpeg).count()
}

#[test]
fn photograph_costs_a_fifth_less_and_nothing_the_second_time() {
    let mut workspace = workspace();
    let large = [&Plan::new(1200, 800, COLOURS).draw(1)[..], b"\xff\xd9"].concat();
    for (file, number) in [(PHOTO, 1), (&large, 2)] {
        let (content, kept, cost) = store(&mut workspace, None, file);
        assert!(read(&workspace, &content) == file && cost * 5 < file.len() * 4, "{cost}");
        assert_eq!(pictures(&workspace), number);
        for kept in [Some(&kept), None] {
            assert_eq!(store(&mut workspace, kept, file).2, 0);
        }
    }
}

/// Returns a picture of about so many bytes, with a title.
fn titled(length: usize, title: &str) -> Vec<u8> {
    let side = ((length * 7 / 2) as f64).sqrt() as u16;
    let mut file = Plan::new(side, side, COLOURS).draw(1);
    let text = format!("{title:50}");
    let segment = [b"\xff\xe1\x00\x3a".as_slice(), b"Exif\0\0", text.as_bytes()].concat();
    file.splice(2..2, segment);
    [&file, &b"\xff\xd9"[..]].concat()
}

/// Stores a file by deltas alone; returns how many bytes of packs that took.
fn store_without_pictures(
    workspace: &mut Workspace,
    kept: Option<&Kept>,
    bytes: &[u8],
    chunk_size: u32,
) -> (Kept, usize) {
    let before = workspace.stored();
    let mut packer = workspace.packer();
    let empty = VersionSketch::empty(chunk_size);
    let version = match kept {
        Some(Kept::File(version)) => version,
        _ => &empty,
    };
    let (_, kept) = packer.pack_edited(version, &mut &*bytes).expect("packed");
    packer.finish().expect("packed");
    (Kept::File(kept), workspace.stored() - before)
}

/// Be there one chunk or many, and whatever they rest in.
#[test]
fn title_that_is_changed_costs_what_it_does_without_pictures() {
    for length in [10_000, 30_000, 200_000, 600_000, 2_000_000] {
        let (mut with, mut without) = (workspace(), workspace());
        let (old, new) = (titled(length, "a walk"), titled(length, "a longer walk"));
        let (content, kept, whole) = store(&mut with, None, &old);
        let size = content.chunk_size;
        let (kept_without, whole_without) = store_without_pictures(&mut without, None, &old, size);
        let (content, _, cost) = store(&mut with, Some(&kept), &new);
        let (_, cost_without) =
            store_without_pictures(&mut without, Some(&kept_without), &new, size);
        assert!(read(&with, &content) == new && pictures(&with) == 1);
        assert!(whole * 5 < whole_without * 4 && cost <= cost_without && cost < 1000, "{cost}");
    }
}

/// Nothing is known of a version before: what others have of it is not sent again, unless a picture takes less than the rest.
#[test]
fn picture_of_which_much_is_in_packs_costs_no_more_than_the_rest() {
    let file = titled(700_000, "a walk");
    for part in [0, 1, 2, 3, 4, 6, 8] {
        let (mut with, mut without) = (workspace(), workspace());
        let there = &file[..file.len() * part / 8];
        for workspace in [&mut with, &mut without] {
            store_without_pictures(workspace, None, there, 64 << 10);
        }
        let before = with.stored();
        let mut packer = with.packer();
        let (content, _) = packer.pack_whole(None, &file, Some(64 << 10)).expect("packed");
        packer.finish().expect("packed");
        let cost = with.stored() - before;
        let (_, cost_without) = store_without_pictures(&mut without, None, &file, 64 << 10);
        assert!(read(&with, &content) == file && cost <= cost_without, "{part}: {cost}");
        // A form of all of it takes half of what the file does.
        let is_picture = pictures(&with) == 1;
        assert!((3..5).contains(&part) || is_picture == (part < 3), "{part}: {cost}");
    }
}

/// What stands around a picture is in its form as it is.
#[test]
fn picture_beside_much_that_compresses_is_stored_like_other_files() {
    let mut workspace = workspace();
    let file = [&titled(500_000, "a walk")[..], &text(1, 3_000_000)].concat();
    let (content, _, cost) = store(&mut workspace, None, &file);
    assert!(read(&workspace, &content) == file && cost < 1_500_000, "{cost}");
    assert_eq!(pictures(&workspace), 0);
}

/// The index says where each of them is: they take room, too.
#[test]
fn picture_of_very_many_chunks_makes_no_pack_that_is_too_long() {
    let mut workspace = workspace();
    let mut file = Plan::new(1400, 900, COLOURS).draw(1);
    file.extend(random_bytes(1, 4_150_000 - file.len()));
    let form = jpeg::shorten(&file).expect("it is a picture").len();
    let mut packer = workspace.packer_of(PACK_STORED_TARGET * PACK_GROWTH);
    let chunks = packer.cut(&file, 1024).expect("cut").len();
    // Nearly full: it would fit if it were one chunk.
    for (seed, length) in [(2, 6_000_000), (3, 6_040_000)] {
        packer.pack_bytes(&random_bytes(seed, length), Some(4 << 20)).expect("packed");
    }
    for seed in 4..300 {
        if !packer.writer.has_room(Addition::chunk(form + 5000)) {
            break;
        }
        packer.pack_bytes(&random_bytes(seed, 4000), None).expect("packed");
    }
    assert!(chunks > 3500 && packer.writer.has_room(Addition::chunk(form)));
    assert!(!packer.writer.has_room(Addition { chunks, bases: 0, length: form }));
    let (content, _) = packer.pack_whole(None, &file, Some(1024)).expect("packed");
    packer.finish().expect("packed");
    assert_eq!(pictures(&workspace), 1);
    for pack in &workspace.packs {
        let index = verify_whole(pack.id, &pack.bytes, &PackGuard::plain()).expect("a pack");
        assert_eq!(index, pack.index);
    }
    let picture = workspace.packs.iter().find(|pack| pack.index.has_deltas()).expect("it is there");
    let number = picture.index.records().iter().position(|it| it.transform() == TransformTag::Jpeg);
    let number = number.expect("it is there");
    let range = picture.index.records()[number].stored_range();
    let stored = &picture.bytes[range.start as usize..range.end as usize];
    let record = open_record(&picture.index, number, stored, &keys().namer()).expect("opened");
    let made: Vec<&[u8]> = record.verified_chunks().map(|it| it.expect("whole").1).collect();
    assert!(made.len() == chunks && made.concat() == file && content.size == 4_150_000);
}

#[test]
fn what_only_begins_like_a_picture_is_stored_as_it_is() {
    let mut workspace = workspace();
    let file = [b"\xff\xd8\xff", &random_bytes(1, 50_000)[..]].concat();
    let half = &PHOTO[..PHOTO.len() / 2];
    for file in [&file[..], half] {
        let (content, kept, _) = store(&mut workspace, None, file);
        assert!(read(&workspace, &content) == file && matches!(kept, Kept::File(_)));
    }
    assert_eq!(pictures(&workspace), 0);
}

/// A device that receives a picture keeps the same of it as the one that has sent it.
#[test]
fn what_is_received_is_kept_like_what_is_sent() {
    let mut workspace = workspace();
    let (content, sent, _) = store(&mut workspace, None, PHOTO);
    let (mut builder, mut rest) = (KeptBuilder::new(&keys(), true), PHOTO);
    for chunk in &content.chunks {
        let (here, behind) = rest.split_at(chunk.length as usize);
        rest = behind;
        builder.push(*chunk, here);
    }
    assert_eq!(builder.finish(content.chunk_size).expect("kept"), sent);
}
