use model::testing::{commit, node, put, put_record};
use model::{Name, NodeKind, NodeRecord, Timestamp};

use super::*;
use crate::replay::Replay;
use crate::replay::tests::Scene;
use crate::samples::{random_bytes, text};

fn record(parent: NodeId, name: &str, kind: NodeKind) -> NodeRecord {
    let (name, modified) = (Name::new(name).unwrap(), Timestamp::default());
    NodeRecord { parent, name, mode: 0o640, modified, kind, conflict: None }
}

/// A folder 1 with files 2, 3 and 4, of which one is large, an empty folder 5 and a link 6; and a file 7 beside it.
fn scene(large: &[u8], small: &[u8]) -> Scene {
    let mut scene = Scene::new();
    scene.append(commit(101, vec![put_record(1, 0, &folder(NodeId::ROOT, "Letters"))]));
    for (id, name, bytes) in [(2, "large", large), (3, r"to\bob", small), (4, "zero", b"")] {
        let content = scene.put(id, name, bytes);
        let moved = record(node(1), name, NodeKind::File(content));
        scene.append(commit(100 + id, vec![put_record(id, 1, &moved)]));
    }
    let link = record(node(1), "link", NodeKind::Symlink(b"large".to_vec()));
    let changes = vec![put_record(5, 0, &folder(node(1), "empty")), put_record(6, 0, &link)];
    scene.append(commit(105, changes));
    scene.append(commit(107, vec![put(7, 0, "beside")]));
    scene
}

fn folder(parent: NodeId, name: &str) -> NodeRecord {
    record(parent, name, NodeKind::Directory)
}

/// Reads an archive as a page does, in pieces of at most `room` bytes; returns the path that is read where it fails.
fn read(
    scene: &Scene,
    replay: &mut Replay,
    (top, room): (NodeId, usize),
) -> Result<Vec<u8>, (Option<String>, ContentError)> {
    let mut reading = ArchiveReading::new(replay.tree(), top).unwrap().unwrap();
    let (mut bytes, length) = (Vec::new(), reading.length());
    while !reading.is_over() {
        let before = bytes.len();
        let step = step(scene, replay, &mut reading, |reading, replay| {
            let put = |piece: &[u8]| bytes.extend_from_slice(piece);
            reading.read_to(replay.packs_mut(), room, put)
        });
        step.map_err(|error| (reading.current(), error))?;
        assert!(bytes.len() - before <= room);
    }
    assert_eq!(bytes.len() as u64, length);
    Ok(bytes)
}

fn step(
    scene: &Scene,
    replay: &mut Replay,
    reading: &mut ArchiveReading,
    give: impl FnOnce(&mut ArchiveReading, &mut Replay) -> Result<usize, ContentError>,
) -> Result<(), ContentError> {
    let given = give(reading, replay)?;
    let wanted = reading.wanted(replay.packs_mut())?.to_vec();
    assert!(given > 0 || !wanted.is_empty() || reading.is_over(), "it goes on");
    for (number, part) in wanted.into_iter().enumerate() {
        match part.pack.place.inline_seq {
            Some(seq) => {
                reading.take_entry(replay.packs_mut(), number, &scene.log[seq as usize - 1])?;
            }
            None => {
                let range = part.range.start as usize..part.range.end as usize;
                let stored = scene.stored.get(&part.pack.id).and_then(|pack| pack.get(range));
                reading.take(replay.packs_mut(), number, stored.unwrap_or_default())?;
            }
        }
    }
    Ok(())
}

/// Takes entries out of an archive, one after the other, given how long their files are.
fn entries(bytes: &[u8], lengths: &[usize]) -> Vec<(String, Vec<u8>)> {
    let number = |at: usize, length: usize| {
        let bytes = bytes[at..at + length].iter().rev();
        bytes.fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let (mut found, mut at) = (Vec::new(), 0);
    for length in lengths {
        assert_eq!(number(at, 4), 0x0403_4b50);
        let [name, extra] = [26, 28].map(|place| number(at + place, 2));
        let path = String::from_utf8(bytes[at + 30..at + 30 + name].to_vec()).unwrap();
        at += 30 + name + extra;
        let content = bytes[at..at + length].to_vec();
        at += length;
        if !path.ends_with('/') {
            assert_eq!([number(at, 4), number(at + 8, 4)], [0x0807_4b50, *length]);
            assert_eq!(number(at + 4, 4), crc32fast::hash(&content) as usize);
            at += 16;
        }
        found.push((path, content));
    }
    assert_eq!(number(at, 4), 0x0201_4b50, "the directory follows");
    found
}

#[test]
fn folder_comes_with_what_is_in_it_whatever_room_there_is() {
    let (large, small) = (random_bytes(3, 3_000_000), text(2, 5_000));
    let scene = scene(&large, &small);
    let wanted = [
        ("Letters/".to_owned(), vec![]),
        ("Letters/empty/".to_owned(), vec![]),
        ("Letters/large".to_owned(), large.clone()),
        ("Letters/to_bob".to_owned(), small.clone()),
        ("Letters/zero".to_owned(), vec![]),
    ];
    let lengths = [0, 0, large.len(), small.len(), 0];
    let whole = read(&scene, &mut scene.replay(), (node(1), 4 << 20)).unwrap();
    assert!(entries(&whole, &lengths) == wanted);
    for room in [7, 100_000] {
        assert!(read(&scene, &mut scene.replay(), (node(1), room)).unwrap() == whole, "{room}");
    }
    // All of the workspace has nothing around it, and the link beside the folder is left out.
    assert!(read(&scene, &mut scene.replay(), (NodeId::ROOT, 4 << 20)).unwrap() == whole);
}

#[test]
fn what_lies_elsewhere_has_no_archive() {
    let scene = scene(b"x", b"y");
    let replay = scene.replay();
    for none in [node(2), node(7), node(99)] {
        assert!(ArchiveReading::new(replay.tree(), none).unwrap().is_none());
    }
}

#[test]
fn file_that_cannot_be_read_ends_it_and_is_named() {
    let mut scene = scene(&random_bytes(3, 3_000_000), b"small");
    let kept = scene.stored.clone();
    scene.stored.values_mut().for_each(|pack| pack.fill(0));
    let (path, error) = read(&scene, &mut scene.replay(), (node(1), 4 << 20)).unwrap_err();
    assert_eq!(path.as_deref(), Some("Letters/large"));
    assert!(error.is_damage(), "{error}");
    scene.stored.clear();
    let (path, _) = read(&scene, &mut scene.replay(), (node(1), 4 << 20)).unwrap_err();
    assert_eq!(path.as_deref(), Some("Letters/large"));
    scene.stored = kept;
    assert!(read(&scene, &mut scene.replay(), (node(1), 4 << 20)).is_ok());
}
