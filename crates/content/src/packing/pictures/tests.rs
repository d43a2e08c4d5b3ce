use super::*;
use crate::jpeg::tests::{COLOURS, PHOTO, Plan};
use crate::packing::KeptBuilder;
use crate::packing::edited::tests::{Workspace, content_alone, keys, workspace};
use crate::samples::random_bytes;
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
        assert_eq!(store(&mut workspace, Some(&kept), file).2, 0);
    }
}

#[test]
fn title_that_is_changed_costs_little() {
    let mut workspace = workspace();
    let mut file = [&Plan::new(1200, 800, COLOURS).draw(1)[..], b"\xff\xd9"].concat();
    let (_, kept, whole) = store(&mut workspace, None, &file);
    file.splice(2..2, *b"\xff\xfe\x00\x0ca comment!");
    let (content, _, cost) = store(&mut workspace, Some(&kept), &file);
    assert!(read(&workspace, &content) == file && cost * 20 < whole, "{cost} of {whole}");
    assert_eq!(pictures(&workspace), 1);
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
