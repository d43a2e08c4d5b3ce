use model::testing::{commit, node, put_record};
use model::{
    Action, Change, Commit, Entry, Fence, Name, NodeId, NodeKind, NodeRecord, Timestamp,
    codec::encode_message,
};

use super::*;
use crate::packing::SAMPLE_LENGTH;
use crate::replay::tests::Scene;
use crate::samples::{document, random_bytes, text};

/// How a page writes: what was sent, and what was fetched for it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cost {
    sent: usize,
    fetched: usize,
    packs_at_once: usize,
}

fn pieces(scene: &mut Scene, writing: &mut FileWriting, replay: &mut Replay, bytes: &[u8]) -> Cost {
    let fetched = known(scene, writing, replay, bytes);
    Cost { fetched, ..pushed(scene, writing, replay, bytes) }
}

/// Gives the samples of a file, and what is there already; returns how many bytes were fetched for that.
fn known(scene: &Scene, writing: &mut FileWriting, replay: &mut Replay, bytes: &[u8]) -> usize {
    let mut fetched = 0;
    while let Some(place) = writing.sample_place() {
        let rest = &bytes[place as usize..];
        writing.take_sample(&rest[..rest.len().min(SAMPLE_LENGTH)]);
    }
    loop {
        let wanted = writing.wanted(replay.packs_mut());
        if wanted.is_empty() {
            return fetched;
        }
        for (number, part) in wanted.into_iter().enumerate() {
            fetched += (part.range.end - part.range.start) as usize;
            match part.pack.place.inline_seq {
                Some(seq) => {
                    let entry = &scene.log[seq as usize - 1];
                    writing.take_entry(replay.packs_mut(), number, entry).unwrap();
                }
                None => {
                    let range = part.range.start as usize..part.range.end as usize;
                    let stored = &scene.stored[&part.pack.id][range];
                    writing.take(replay.packs_mut(), number, stored).unwrap();
                }
            }
        }
    }
}

/// Pushes a file, or the first part of it.
fn pushed(scene: &mut Scene, writing: &mut FileWriting, replay: &mut Replay, bytes: &[u8]) -> Cost {
    let mut cost = Cost::default();
    for piece in bytes.chunks(1 << 20) {
        writing.push(replay.packs_mut(), piece).unwrap();
        let mut at_once = 0;
        while let Some((id, bytes)) = writing.take_pack() {
            at_once += 1;
            cost.sent += bytes.len();
            scene.stored.insert(id, bytes);
        }
        cost.packs_at_once = cost.packs_at_once.max(at_once);
    }
    cost
}

/// Packs a file for which all is said, and stores what does not travel in the commit.
fn pack(
    scene: &mut Scene,
    mut writing: FileWriting,
    replay: &mut Replay,
    bytes: &[u8],
) -> (Written, Cost) {
    let mut cost = pieces(scene, &mut writing, replay, bytes);
    let (written, left) = writing.finish(replay).unwrap();
    for (id, bytes) in left {
        cost.sent += bytes.len();
        scene.stored.insert(id, bytes);
    }
    (written, cost)
}

/// Writes a file as a page does that has read the log and nothing else.
fn write(
    scene: &mut Scene,
    replay: &mut Replay,
    base: Option<&Content>,
    bytes: &[u8],
) -> (Written, Cost) {
    write_edited(scene, replay, base, None, bytes)
}

/// Writes one as a change of what was kept of the version before.
fn write_edited(
    scene: &mut Scene,
    replay: &mut Replay,
    base: Option<&Content>,
    kept: Option<&Kept>,
    bytes: &[u8],
) -> (Written, Cost) {
    let mut writing = FileWriting::new(replay, base, bytes.len() as u64).unwrap();
    if let Some(kept) = kept {
        writing.compare(kept.clone());
    }
    let (written, mut cost) = pack(scene, writing, replay, bytes);
    cost.sent += written.inline_packs.iter().map(Vec::len).sum::<usize>();
    (written, cost)
}

fn file(content: &Content, name: &str) -> NodeRecord {
    NodeRecord {
        parent: NodeId::ROOT,
        name: Name::new(name).unwrap(),
        mode: 0o644,
        modified: Timestamp::default(),
        kind: NodeKind::File(content.clone()),
        conflict: None,
    }
}

/// Proposes it as the next version of a node.
fn propose(scene: &mut Scene, id: u8, base: u64, written: &Written) {
    let change = put_record(id, base, &file(&written.content, &format!("file {id}")));
    let (packs, inline_packs) = (written.packs.clone(), written.inline_packs.clone());
    let number = scene.log.len() as u8 + 100;
    let has_deltas = written.has_deltas();
    scene.append(Commit { packs, inline_packs, has_deltas, ..commit(number, vec![change]) });
}

/// Edits a file again and again as a page does that begins anew each time; returns what each version cost.
fn edited(
    scene: &mut Scene,
    first: Vec<u8>,
    edits: usize,
    edit: impl Fn(&mut Vec<u8>, usize),
) -> Vec<Cost> {
    let (mut bytes, mut replay) = (first, scene.replay());
    let (mut written, _) = write(scene, &mut replay, None, &bytes);
    propose(scene, 1, 0, &written);
    (0..edits)
        .map(|number| {
            edit(&mut bytes, number);
            let mut replay = scene.replay();
            let (base, kept) = (written.content.clone(), written.kept.take());
            let (next, cost) = write_edited(scene, &mut replay, Some(&base), kept.as_ref(), &bytes);
            propose(scene, 1, number as u64 + 1, &next);
            let mut device = scene.replay();
            assert_eq!(device.void(), []);
            let (read, _) = scene.read(&mut device, &next.content).unwrap();
            assert!(read == bytes, "edit {number}");
            written = next;
            cost
        })
        .collect()
}

#[test]
fn an_edit_costs_what_is_new_where_something_was_kept_of_the_version_before() {
    // What devices have in memory, and what they read in pieces.
    for length in [1_000_000, 9_000_000] {
        let mut scene = Scene::new();
        let costs = edited(&mut scene, random_bytes(1, length), 8, |bytes, number| {
            bytes[300_000 + 80_000 * number] ^= 1;
        });
        let most = costs.iter().map(|cost| cost.sent).max().unwrap();
        assert!(most <= 4096, "{length} bytes: {costs:?}");
    }
}

/// The same chunk is made from what it was again and again, until too much stands behind it; chunks beside it that are made from others are
/// not sent again.
#[test]
fn chunk_that_is_edited_again_and_again_is_sent_whole_before_it_is_too_deep() {
    let mut scene = Scene::new();
    let costs = edited(&mut scene, random_bytes(1, 9_000_000), 20, |bytes, number| {
        bytes[300_000] = number as u8;
    });
    let whole = costs.iter().filter(|cost| cost.sent > 4096).count();
    assert_eq!(whole, 2, "{costs:?}");
}

#[test]
fn document_that_is_edited_costs_what_is_new_in_it_as_on_a_device() {
    let mut scene = Scene::new();
    let version = |edit: usize| {
        let mut text = text(1, 900_000);
        text.splice(300_000..300_000 + edit, vec![b'x'; 2 * edit]);
        document(&[&text])
    };
    let costs = edited(&mut scene, version(0), 4, |bytes, number| *bytes = version(number + 1));
    let [first, later @ ..] = &costs[..] else { panic!("there are four") };
    assert!(first.sent > 50_000, "what it holds is stored once: {costs:?}");
    assert!(later.iter().all(|cost| cost.sent <= 8192), "{costs:?}");
}

#[test]
fn what_was_kept_of_another_version_or_cut_otherwise_does_no_harm() {
    let mut scene = Scene::new();
    let (bytes, mut replay) = (random_bytes(1, 5_000_000), scene.replay());
    let (written, _) = write(&mut scene, &mut replay, None, &bytes);
    propose(&mut scene, 1, 0, &written);
    let keys = scene.keys.content().clone();
    let survey = |size, mut bytes: &[u8]| {
        Kept::File(VersionSketch::survey(&keys, size, &mut bytes).unwrap())
    };
    let average = written.content.chunk_size;
    let strange = [
        survey(average / 2, &bytes),
        survey(average, &random_bytes(2, 5_000_000)),
        Kept::Inflated(VersionSketch::empty(128 << 10)),
        Kept::File(VersionSketch::empty(average)),
    ];
    let mut new = bytes;
    new[1_000_000] ^= 1;
    // What is packed in pieces, and what in memory.
    let both = strange.iter().flat_map(|kept| [(kept, new.len()), (kept, 2_000_000)]);
    for ((kept, length), number) in both.zip(2..) {
        let (mut replay, new) = (scene.replay(), &new[..length]);
        let base = Some(&written.content);
        let (other, cost) = write_edited(&mut scene, &mut replay, base, Some(kept), new);
        assert!(cost.sent < 400_000, "a chunk of it: {cost:?}");
        propose(&mut scene, number, 0, &other);
        let mut device = scene.replay();
        assert!(scene.read(&mut device, &other.content).unwrap().0 == new);
    }
}

#[test]
fn nothing_is_kept_of_what_would_take_too_much_room_or_has_too_few_bytes() {
    let mut scene = Scene::new();
    let mut replay = scene.replay();
    let mut large = FileWriting::new(&replay, None, KEPT_SIZE_MAX + 1).unwrap();
    assert!(large.take_cut().is_ok_and(|cut| large.packer.end(cut).unwrap().1.is_none()));
    for (length, is_kept) in [(0, false), (4095, false), (4096, true)] {
        let (written, _) = write(&mut scene, &mut replay, None, &text(1, length));
        assert_eq!(written.kept.is_some(), is_kept, "{length} bytes");
    }
}

#[test]
fn what_was_left_out_by_an_entry_that_came_meanwhile_is_seen_but_for_a_fence() {
    for has_fence in [false, true] {
        let mut scene = Scene::new();
        let bytes = text(1, 300_000);
        let mut replay = scene.replay();
        let begun = replay.head();
        let mut writing = FileWriting::new(&replay, None, bytes.len() as u64).unwrap();
        known(&scene, &mut writing, &mut replay, &bytes);
        // Another page stores the same, and this one learns of it.
        let (mut other, _) = write(&mut scene, &mut replay, None, &bytes);
        propose(&mut scene, 1, 0, &other);
        replay.fold(scene.log.last().unwrap()).unwrap();
        other.learn(replay.packs_mut());
        if has_fence {
            let fence = encode_message(&Fence { condemned: Vec::new(), dropped: Vec::new() });
            let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(fence) };
            scene.append(commit(90, vec![change]));
            replay.fold(scene.log.last().unwrap()).unwrap();
        }
        assert_eq!(pushed(&mut scene, &mut writing, &mut replay, &bytes).sent, 0);
        let (written, left) = writing.finish(&mut replay).unwrap();
        assert!(left.is_empty() && written.inline_packs.is_empty(), "all of it was left out");
        assert_eq!(written.seen, if has_fence { begun } else { scene.head() });
        assert_eq!(written.is_outdated(&replay), has_fence);
    }
}

/// Packs what is in memory as a whole as a change of a version, with what was stored of it before; returns how many bytes of it were sent, too.
fn write_again(
    scene: &mut Scene,
    before: &Written,
    bytes: &[u8],
    stored: &[PackRef],
) -> (Written, Cost) {
    let mut replay = scene.replay();
    let length = bytes.len() as u64;
    let mut writing = FileWriting::new(&replay, Some(&before.content), length).unwrap();
    writing.compare(before.kept.clone().unwrap());
    writing.resume(stored);
    pack(scene, writing, &mut replay, bytes)
}

#[test]
fn what_was_stored_of_a_new_version_before_something_came_in_between_is_named() {
    let documents = [1, 2].map(|seed| document(&[&text(seed, 400_000)]));
    // It begins like a document, and holds nothing of the kind.
    let other = [b"%PDF-1.7\n", &random_bytes(3, 300_000)[..]].concat();
    let mut edited = documents[1].clone();
    let end = edited.len();
    edited.splice(end - 50_000..end - 49_990, random_bytes(4, 150_000));
    edited[end - 90_000] ^= 1;
    for (third, is_whole) in [(other, true), (edited, false)] {
        let mut scene = Scene::new();
        let mut replay = scene.replay();
        let (first, _) = write(&mut scene, &mut replay, None, &documents[0]);
        propose(&mut scene, 1, 0, &first);
        let (second, _) = write_again(&mut scene, &first, &documents[1], &[]);
        assert!(matches!(second.kept, Some(Kept::Inflated(_))));
        propose(&mut scene, 1, 1, &second);
        // The page goes away before the commit.
        let (lost, whole) = write_again(&mut scene, &second, &third, &[]);
        assert!(!lost.packs.is_empty(), "they are too long to travel in it");
        let (written, cost) = write_again(&mut scene, &second, &third, &lost.packs);
        // What is made from others is sent again.
        assert_eq!(cost.sent < whole.sent / 8, is_whole, "{cost:?} of {whole:?}");
        propose(&mut scene, 1, 2, &written);
        let mut device = scene.replay();
        assert!(scene.read(&mut device, &written.content).unwrap().0 == third);
    }
}

#[test]
fn behind_a_fence_nothing_is_made_from_what_it_condemns() {
    for length in [1_000_000, 6_000_000] {
        let mut scene = Scene::new();
        let (mut bytes, mut replay) = (random_bytes(1, length), scene.replay());
        let (first, _) = write(&mut scene, &mut replay, None, &bytes);
        propose(&mut scene, 1, 0, &first);
        let mut condemned: Vec<_> = scene.stored.keys().copied().collect();
        condemned.sort_unstable();
        let fence = encode_message(&Fence { condemned, dropped: Vec::new() });
        let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(fence) };
        scene.append(commit(90, vec![change]));
        bytes[500_000] ^= 1;
        let mut replay = scene.replay();
        let base = Some(&first.content);
        let (written, cost) =
            write_edited(&mut scene, &mut replay, base, first.kept.as_ref(), &bytes);
        assert!(cost.sent > length && !written.has_deltas(), "all of it is sent again: {cost:?}");
        propose(&mut scene, 1, 1, &written);
        let mut device = scene.replay();
        assert!(scene.read(&mut device, &written.content).unwrap().0 == bytes);
    }
}

#[test]
fn what_a_page_writes_is_what_a_device_makes_and_every_device_reads_it() {
    let files = [
        Vec::new(),
        vec![7],
        text(1, 30_000),
        text(2, 3_000_000),
        random_bytes(3, 9_000_000),
        vec![0; 5 << 20],
    ];
    let mut scene = Scene::new();
    for (bytes, id) in files.iter().zip(1..) {
        let mut replay = scene.replay();
        let (written, cost) = write(&mut scene, &mut replay, None, bytes);
        assert!(cost.packs_at_once <= 2, "{cost:?}");
        assert!(cost.sent <= bytes.len() + bytes.len() / 16 + 16 * 1024, "{cost:?}");
        assert!(bytes.len() > 40_000 || written.packs.is_empty(), "small ones travel in the log");
        propose(&mut scene, id, 0, &written);
        let mut device = scene.replay();
        assert_eq!(device.void(), []);
        let (read, _) = scene.read(&mut device, &written.content).unwrap();
        assert!(read == *bytes, "{} bytes", bytes.len());
    }
    // Cut and named as a device does it.
    let mut other = Scene::new();
    let bytes = &files[3];
    let content = other.put(1, "file", bytes);
    let mut replay = other.replay();
    let (written, _) = write(&mut other, &mut replay, Some(&content), bytes);
    assert_eq!(written.content, content);
    assert_eq!((written.packs.len(), written.inline_packs.len()), (0, 0));
}

#[test]
fn a_small_change_of_a_large_file_sends_little_and_what_is_there_under_another_name_nothing() {
    let mut scene = Scene::new();
    for id in 1..20 {
        scene.put(id, &format!("other {id}"), &text(u64::from(id), 150_000));
    }
    let mut bytes = text(50, 12_000_000);
    let content = scene.put(50, "large", &bytes);
    assert!(content.depth > 0);
    for id in 20..30 {
        scene.put(id, &format!("other {id}"), &text(u64::from(id), 150_000));
    }
    bytes.splice(7_000_000..7_000_003, *b"a few other bytes");
    let mut replay = scene.replay();
    let (written, cost) = write(&mut scene, &mut replay, Some(&content), &bytes);
    assert!(cost.sent < 60_000 && cost.fetched < 2_000_000, "{cost:?}");
    propose(&mut scene, 50, 1, &written);
    let mut device = scene.replay();
    assert!(scene.read(&mut device, &written.content).unwrap().0 == bytes);

    // Nothing is known of a file that is new, but that its chunks are those of others, where they are cut alike.
    let alike = Content { chunk_size: content.chunk_size, ..Content::default() };
    let mut replay = scene.replay();
    let (mut again, cost) = write(&mut scene, &mut replay, Some(&alike), &bytes);
    assert!(cost.sent < 60_000, "most of it was found: {cost:?}");
    // Whoever has committed knows what is in the packs, and fetches nothing for the next change.
    propose(&mut scene, 51, 0, &again);
    replay.fold(scene.log.last().unwrap()).unwrap();
    again.learn(replay.packs_mut());
    let (_, cost) = write(&mut scene, &mut replay, Some(&again.content), &bytes);
    assert_eq!((cost.sent, cost.packs_at_once), (0, 0));
}

#[test]
fn what_is_damaged_or_gone_of_the_version_before_is_sent_again() {
    let mut scene = Scene::new();
    let bytes = text(1, 4_000_000);
    let content = scene.put(1, "file", &bytes);
    let whole: usize = scene.stored.values().map(Vec::len).sum();
    for stored in scene.stored.values_mut() {
        let at = stored.len() - 70;
        stored[at] ^= 1;
    }
    let mut replay = scene.replay();
    let (written, cost) = write(&mut scene, &mut replay, Some(&content), &bytes);
    assert!(cost.sent > whole / 2, "{cost:?} of {whole}");
    propose(&mut scene, 1, 1, &written);
    let mut device = scene.replay();
    assert!(scene.read(&mut device, &written.content).unwrap().0 == bytes);
}

#[test]
fn file_that_changes_while_it_is_read_is_refused() {
    let mut scene = Scene::new();
    let bytes = text(1, 100_000);
    let mut replay = scene.replay();
    let longer = FileWriting::new(&replay, None, 99_999).unwrap().push(replay.packs_mut(), &bytes);
    assert!(matches!(longer, Err(ContentError::Read { .. })));
    let mut writing = FileWriting::new(&replay, None, 100_001).unwrap();
    pieces(&mut scene, &mut writing, &mut replay, &bytes);
    assert!(matches!(writing.finish(&mut replay), Err(ContentError::Read { .. })));
}

#[test]
fn what_rests_on_packs_from_before_a_fence_counts_for_nothing_behind_it() {
    let mut scene = Scene::new();
    let bytes = text(1, 200_000);
    let content = scene.put(1, "file", &bytes);
    let mut replay = scene.replay();
    let (written, cost) = write(&mut scene, &mut replay, Some(&content), &bytes);
    assert_eq!(cost.sent, 0);
    let condemned = scene.stored.keys().copied().collect();
    let fence = encode_message(&Fence { condemned, dropped: Vec::new() });
    let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(fence) };
    scene.append(commit(90, vec![change]));
    let change = put_record(2, 0, &file(&written.content, "copy"));
    let late = Commit { seen: written.seen, ..commit(91, vec![change]) };
    let late = scene.keys.seal_commit(late).unwrap();
    let Head { seq, hash } = scene.head();
    scene.log.push(Entry { seq: seq + 1, previous: hash, commit: late });
    let mut replay = scene.replay();
    assert!(replay.tree().get(&node(2)).is_none(), "it was planned before the fence");
    let (_, cost) = write(&mut scene, &mut replay, Some(&content), &bytes);
    assert!(cost.sent > 20_000, "what is condemned is sent again: {cost:?}");
}

/// Stores the packs of the first part of a file, whose page goes away then; returns what somebody remembers of them.
fn broken_off(scene: &mut Scene, bytes: &[u8], part: usize) -> Vec<PackRef> {
    let before: HashSet<PackId> = scene.stored.keys().copied().collect();
    let mut replay = scene.replay();
    let mut writing = FileWriting::new(&replay, None, bytes.len() as u64).unwrap();
    known(scene, &mut writing, &mut replay, bytes);
    pushed(scene, &mut writing, &mut replay, &bytes[..part]);
    let new = scene.stored.iter().filter(|(id, _)| !before.contains(*id));
    new.map(|(id, bytes)| PackRef { id: *id, length: bytes.len() as u64 }).collect()
}

/// Writes a file with what was stored of it before.
fn write_on(scene: &mut Scene, bytes: &[u8], stored: &[PackRef]) -> (Written, Cost) {
    let mut replay = scene.replay();
    let mut writing = FileWriting::new(&replay, None, bytes.len() as u64).unwrap();
    writing.resume(stored);
    pack(scene, writing, &mut replay, bytes)
}

#[test]
fn what_was_stored_before_something_came_in_between_is_named_and_not_sent_again() {
    let mut scene = Scene::new();
    let bytes = random_bytes(5, 15_000_000);
    let stored = broken_off(&mut scene, &bytes, 13_000_000);
    assert_eq!(stored.len(), 3, "of 4 MiB each");
    // Somebody remembers packs of other files, too.
    let other = random_bytes(6, 9_000_000);
    let others = broken_off(&mut scene, &other, other.len());
    let (written, cost) = write_on(&mut scene, &bytes, &[&stored[..], &others].concat());
    assert!(cost.sent < 3_000_000, "{cost:?}");
    assert!(cost.fetched < 300_000, "{cost:?}");
    assert!(stored.iter().all(|pack| written.packs.contains(pack)));
    assert!(others.iter().all(|pack| !written.packs.contains(pack)), "nothing of them is in it");
    propose(&mut scene, 1, 0, &written);
    let mut device = scene.replay();
    assert!(scene.read(&mut device, &written.content).unwrap().0 == bytes);
}

#[test]
fn what_is_gone_or_damaged_of_what_was_stored_is_sent_again() {
    let mut scene = Scene::new();
    let bytes = random_bytes(5, 15_000_000);
    let stored = broken_off(&mut scene, &bytes, 13_000_000);
    let [gone, damaged, whole] = stored[..] else { panic!("there are three") };
    // A server has nothing to give of a pack that is gone, and may give what it likes of another.
    let mut replay = scene.replay();
    let mut writing = FileWriting::new(&replay, None, bytes.len() as u64).unwrap();
    writing.resume(&stored);
    let wanted = writing.wanted(replay.packs_mut());
    assert_eq!(wanted.len(), 3);
    for (number, part) in wanted.iter().enumerate() {
        let range = part.range.start as usize..part.range.end as usize;
        let mut tail = scene.stored[&part.pack.id][range].to_vec();
        if part.pack.id == gone.id {
            tail.clear();
        } else if part.pack.id == damaged.id {
            let last = tail.len() - 100;
            tail[last] ^= 1;
        }
        writing.take(replay.packs_mut(), number, &tail).unwrap();
    }
    let cost = pieces(&mut scene, &mut writing, &mut replay, &bytes);
    let (written, _) = writing.finish(&mut replay).unwrap();
    assert!(cost.sent > 8_000_000, "{cost:?}");
    assert!(written.packs.contains(&whole));
    assert!(!written.packs.contains(&gone) && !written.packs.contains(&damaged));
}

#[test]
fn mark_of_what_is_stored_changes_with_each_fence_and_with_newer_keys() {
    let mut scene = Scene::new();
    let before = PacksMark::of(&scene.replay());
    scene.put(1, "file", &text(1, 300));
    assert_eq!(PacksMark::of(&scene.replay()), before);
    assert_eq!(before.to_string(), "0-1");
    let fence = encode_message(&Fence { condemned: Vec::new(), dropped: Vec::new() });
    let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(fence) };
    scene.append(commit(90, vec![change]));
    assert_eq!(PacksMark::of(&scene.replay()).to_string(), "2-1");
}
