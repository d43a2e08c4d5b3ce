use super::*;
use crate::packing::edited::tests::{Workspace, content_alone, keys, workspace};
use crate::samples::{document, text};

/// Stores a version; returns how many bytes of packs that took, beside.
fn store(workspace: &mut Workspace, kept: Option<&Kept>, bytes: &[u8]) -> (Content, Kept, usize) {
    let before = workspace.stored();
    let mut packer = workspace.packer();
    let (content, kept) = packer.pack_whole(kept, bytes, None).expect("packed");
    packer.finish().expect("packed");
    (content, kept, workspace.stored() - before)
}

fn read(workspace: &Workspace, content: &Content) -> Vec<u8> {
    content.chunks.iter().flat_map(|chunk| workspace.chunk(&chunk.id)).collect()
}

#[test]
fn word_that_is_changed_costs_little_though_the_stream_is_another_one() {
    let mut workspace = workspace();
    let (mut one, other) = (text(1, 300_000), text(2, 40_000));
    let first = document(&[&one, &other]);
    let (content, kept, whole) = store(&mut workspace, None, &first);
    assert_eq!(content, content_alone(&first, content.chunk_size));
    assert!(matches!(kept, Kept::Inflated(_)) && read(&workspace, &content) == first);
    let mut kept = kept;
    for edit in 1..=5 {
        one.splice(edit * 1000..edit * 1000 + 4, *b"edited");
        let version = document(&[&one, &other]);
        let (content, next, cost) = store(&mut workspace, Some(&kept), &version);
        assert_eq!(content, content_alone(&version, content.chunk_size));
        assert!(read(&workspace, &content) == version, "edit {edit}");
        assert!(cost < 3500 && cost * 20 < whole, "edit {edit}: {cost} of {whole}");
        kept = next;
    }
}

#[test]
fn what_is_kept_comes_back() {
    let mut workspace = workspace();
    let (_, inflated, _) = store(&mut workspace, None, &document(&[&text(1, 50_000)]));
    let (_, file, _) = store(&mut workspace, None, &text(1, 50_000));
    assert!(matches!((&inflated, &file), (Kept::Inflated(_), Kept::File(_))));
    for kept in [inflated, file] {
        assert_eq!(Kept::decode(&kept.encode()).expect("read"), kept);
        assert!(Kept::decode(&kept.encode()[..20]).is_err());
    }
}

/// A device that receives a version keeps the same of it as the one that has sent it.
#[test]
fn what_is_received_is_kept_like_what_is_sent() {
    let mut workspace = workspace();
    for bytes in [document(&[&text(1, 50_000)]), text(2, 100_000), b"%PDF-".to_vec()] {
        let (content, sent, _) = store(&mut workspace, None, &bytes);
        let (mut builder, mut rest) = (KeptBuilder::new(&keys(), true), &bytes[..]);
        for chunk in &content.chunks {
            let (here, behind) = rest.split_at(chunk.length as usize);
            rest = behind;
            builder.push(*chunk, here);
        }
        assert_eq!(builder.finish(content.chunk_size).expect("kept"), sent);
    }
}

/// A small document has one chunk of its inflated form, and an edit near its end leaves most of the stream as it was.
#[test]
fn small_document_costs_little_wherever_it_is_edited() {
    let mut workspace = workspace();
    let mut words = text(5, 60_000);
    let (_, mut kept, _) = store(&mut workspace, None, &document(&[&words]));
    for place in [59_000, 30_000, 100] {
        words.splice(place..place + 4, *b"edited");
        let (content, next, cost) = store(&mut workspace, Some(&kept), &document(&[&words]));
        assert!(
            read(&workspace, &content) == document(&[&words]) && cost < 3000,
            "{place}: {cost}"
        );
        kept = next;
    }
}

#[test]
fn file_that_is_in_packs_already_is_not_stored_again() {
    let mut workspace = workspace();
    let file = document(&[&text(1, 200_000)]);
    let (_, kept, _) = store(&mut workspace, None, &file);
    assert_eq!(store(&mut workspace, None, &file).2, 0);
    assert_eq!(store(&mut workspace, Some(&kept), &file).2, 0);
    // It came as it is: a small change is stored as one of the file.
    let mut whole = self::workspace();
    let file = document(&[&text(1, 20_000)]);
    let mut packer = whole.packer();
    packer.pack_bytes(&file, None).expect("packed");
    packer.finish().expect("packed");
    let next = document(&[&text(1, 20_100)]);
    let (content, kept, cost) = store(&mut whole, None, &next);
    assert!(matches!(kept, Kept::File(_)) && cost < next.len() / 2, "{cost}");
    assert!(read(&whole, &content) == next);
}

#[test]
fn chunks_that_others_are_packing_are_no_bases() {
    let file = document(&[&text(1, 200_000)]);
    let form = Inflated::of(&file).expect("it holds streams");
    let mut workspace = workspace();
    // Another thread has claimed one, and nobody knows what it will be made from.
    let chunk = workspace.packer().cut(form.bytes(), CHUNK_SIZE).expect("cut")[0];
    workspace.claimed.insert(chunk.id, chunk.length);
    let (content, kept, _) = store(&mut workspace, None, &file);
    assert!(matches!(kept, Kept::File(_)) && read(&workspace, &content) == file);
}

#[test]
fn row_of_edits_ends_before_readers_do() {
    let mut workspace = workspace();
    let mut text = text(3, 120_000);
    let (mut kept, mut dear) = (None, 0);
    for edit in 0..30 {
        text.splice(edit * 2000..edit * 2000 + 3, *b"new words");
        let version = document(&[&text]);
        let (content, next, cost) = store(&mut workspace, kept.as_ref(), &version);
        assert!(read(&workspace, &content) == version, "edit {edit}");
        assert!(matches!(next, Kept::Inflated(_)), "edit {edit}");
        for chunk in &content.chunks {
            let ancestry = workspace.packer().sink.ancestry(chunk).expect("known").expect("packed");
            assert!(ancestry.is_readable() && ancestry.depth <= 9, "edit {edit}: {ancestry:?}");
        }
        dear += usize::from(cost > 4000);
        kept = Some(next);
    }
    // Each chunk of the form is whole after eight deltas, and the row goes on.
    assert!(dear <= 5, "{dear} of 30 edits cost more than what was edited");
}

/// Where the form is refused the file is stored whole, and the next version is no worse for it.
#[test]
fn form_that_one_record_cannot_name_is_not_stored() {
    let mut workspace = workspace();
    // Chunks of zeros are all the same one.
    let file = document(&[&[text(1, 50_000), vec![0; 2 << 20]].concat()]);
    for file in [file.clone(), [&file[..], b"more"].concat()] {
        let (content, kept, cost) = store(&mut workspace, None, &file);
        assert!(matches!(kept, Kept::File(_)) && read(&workspace, &content) == file);
        assert!(cost < file.len() + 1000, "{cost} of {}", file.len());
    }
}

/// What is stored so is read for ever. Where this changes, documents that are stored can no longer be read.
#[test]
fn golden_document_is_packed_as_ever() {
    let mut workspace = workspace();
    let file = document(&[&text(1, 50_000), &text(2, 3000)]);
    let form = Inflated::of(&file).expect("it holds streams");
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex()[..16].to_owned();
    let hashes = [&file, form.bytes(), &form.plan(0)].map(hash);
    assert_eq!(hashes, ["a16d346cd379adc1", "2be7cdb0188b9ad9", "e1a8810ed8451b35"]);
    let (content, ..) = store(&mut workspace, None, &file);
    assert!(read(&workspace, &content) == file);
}
