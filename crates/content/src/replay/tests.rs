use std::sync::Arc;

use model::testing::{commit, node, put_record};
use model::{
    ChunkRef, Commit, Content, Entry, EntryHash, Head, Name, NodeId, NodeKind, NodeRecord,
    Timestamp,
};

use super::*;
use crate::chunker::{ChunkerKind, Chunks};
use crate::delta::VersionSketch;
use crate::keyring::SecretKey;
use crate::pack::{Ancestry, FinishedPack, PackWriter};
use crate::packing::{FilePacker, PackSettings, PackSink};
use crate::reading::FileReading;
use crate::samples::{SeededRandom, random_bytes, text};
use crate::sealed::DeviceKeys;
use crate::transform::Transform;

/// A sealed workspace and a log that a device of its owner writes.
pub(crate) struct Scene {
    pub(crate) genesis: Genesis,
    pub(crate) keys: WorkspaceKeys,
    pub(crate) log: Vec<Entry>,
    pub(crate) stored: HashMap<PackId, Vec<u8>>,
}

/// Takes packs as a device does: small ones travel in the commit.
#[derive(Default)]
struct Sink {
    seen: std::collections::HashSet<model::ChunkId>,
    packs: Vec<FinishedPack>,
}

impl PackSink for &mut Sink {
    type Error = ContentError;

    fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
        Ok(self.seen.insert(chunk.id))
    }

    fn ancestry(&mut self, _: &ChunkRef) -> Result<Option<Ancestry>, ContentError> {
        Ok(Some(Ancestry::default()))
    }

    fn emit(&mut self, pack: FinishedPack) -> Result<(), ContentError> {
        self.packs.push(pack);
        Ok(())
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        let random = SeededRandom::new(1);
        let (genesis, unlocked) =
            crate::sealed::unlocked("Letters", Timestamp::default(), &random).unwrap();
        let device = DeviceId::from_bytes([1; 16]);
        let seed = SecretKey::from_bytes([7; 32]);
        let device = DeviceKeys::enroll(&genesis, &unlocked, device, seed).unwrap();
        let keys = WorkspaceKeys::open(&genesis, Some(device), Arc::new(random)).unwrap();
        Self { genesis, keys, log: Vec::new(), stored: HashMap::new() }
    }

    pub(crate) fn head(&self) -> Head {
        self.log.last().map_or(self.genesis.head(), Entry::head)
    }

    pub(crate) fn append(&mut self, commit: Commit) {
        let Head { seq, hash } = self.head();
        let commit = self.keys.seal_commit(Commit { seen: self.head(), ..commit }).unwrap();
        self.log.push(Entry { seq: seq + 1, previous: hash, commit });
    }

    fn settings(&self) -> PackSettings {
        let (transform, target) = (Transform::default(), crate::pack::PACK_STORED_TARGET);
        PackSettings { transform, guard: self.keys.packs(), target }
    }

    pub(crate) fn put(&mut self, id: u8, name: &str, bytes: &[u8]) -> Content {
        let mut sink = Sink::default();
        let mut packer = FilePacker::new(self.keys.content(), &self.settings(), &mut sink).unwrap();
        let content = packer.pack_bytes(bytes, Some(4096)).unwrap();
        packer.finish().unwrap();
        self.propose((id, 0), name, content, sink.packs, 16 * 1024)
    }

    /// Puts version `base` + 1 of a file as what makes it from the one before. Packs of fewer bytes travel in the commit.
    fn edit(
        &mut self,
        (id, base): (u8, u64),
        (old, new): (&[u8], &[u8]),
        inline_length: u64,
    ) -> Content {
        let keys = self.keys.content().clone();
        let kept = VersionSketch::survey(&keys, 4096, &mut &old[..]).unwrap();
        let mut sink = Sink::default();
        let mut packer = FilePacker::new(&keys, &self.settings(), &mut sink).unwrap();
        // What the version before has is in packs.
        packer.sink_mut().seen.extend(kept.chunks().iter().map(|chunk| chunk.id));
        let (content, _) = packer.pack_edited(&kept, &mut &new[..]).unwrap();
        packer.finish().unwrap();
        assert!(sink.packs.iter().any(|pack| pack.index.has_deltas()));
        self.propose((id, base), "edited", content, sink.packs, inline_length)
    }

    fn propose(
        &mut self,
        (id, base): (u8, u64),
        name: &str,
        content: Content,
        packs: Vec<FinishedPack>,
        inline_length: u64,
    ) -> Content {
        let record = NodeRecord {
            parent: NodeId::ROOT,
            name: Name::new(name).unwrap(),
            mode: 0o644,
            modified: Timestamp::default(),
            kind: NodeKind::File(content.clone()),
            conflict: None,
        };
        let mut commit =
            commit(id + (base as u8).wrapping_mul(20), vec![put_record(id, base, &record)]);
        for pack in packs {
            let (id, length) = (pack.id, pack.bytes.len() as u64);
            match length < inline_length {
                true => commit.inline_packs.push(pack.bytes),
                false => {
                    commit.packs.push(PackRef { id, length });
                    self.stored.insert(id, pack.bytes);
                }
            }
        }
        self.append(commit);
        content
    }

    pub(crate) fn replay(&self) -> Replay {
        let mut replay = Replay::new(&self.genesis, self.keys.clone());
        self.log.iter().for_each(|entry| drop(replay.fold(entry).unwrap()));
        replay
    }

    /// Reads a file as a page does that fetches parts of packs. Returns it with how many bytes were asked for at once at most.
    pub(crate) fn read(
        &self,
        replay: &mut Replay,
        content: &Content,
    ) -> Result<(Vec<u8>, u64), ContentError> {
        let (bytes, asked) = self.read_by(replay, content, usize::MAX)?;
        Ok((bytes, asked.into_iter().max().unwrap_or_default()))
    }

    /// The same in pieces of at most `room` bytes. Returns how many bytes were asked for each time.
    fn read_by(
        &self,
        replay: &mut Replay,
        content: &Content,
        room: usize,
    ) -> Result<(Vec<u8>, Vec<u64>), ContentError> {
        let mut reading = FileReading::new(content)?;
        let (mut bytes, mut asked) = (Vec::new(), Vec::new());
        loop {
            let before = bytes.len();
            let put = |piece: &[u8]| bytes.extend_from_slice(piece);
            let length = reading.read_to(replay.packs_mut(), room, put)?;
            assert!(length <= room && bytes.len() == before + length);
            if reading.is_over(replay.packs_mut())? {
                return Ok((bytes, asked));
            }
            let wanted = reading.wanted(replay.packs_mut())?.to_vec();
            let length = wanted.iter().map(|part| part.range.end - part.range.start).sum();
            asked.push(length);
            for (number, part) in wanted.into_iter().enumerate() {
                match part.pack.place.inline_seq {
                    Some(seq) => {
                        let entry = &self.log[seq as usize - 1];
                        reading.take_entry(replay.packs_mut(), number, entry)?;
                    }
                    None => {
                        let range = part.range.start as usize..part.range.end as usize;
                        let stored = &self.stored[&part.pack.id][range];
                        reading.take(replay.packs_mut(), number, stored)?;
                    }
                }
            }
        }
    }
}

#[test]
fn files_come_out_as_they_went_in_wherever_their_packs_rest() {
    let mut scene = Scene::new();
    let files = [
        Vec::new(),
        text(1, 300),
        text(2, 200_000),
        random_bytes(3, 9_000_000),
        random_bytes(4, 70_000),
    ];
    let contents: Vec<Content> = files
        .iter()
        .zip(1..)
        .map(|(bytes, id)| scene.put(id, &format!("file {id}"), bytes))
        .collect();
    assert!(contents[3].depth > 0, "one of them has lists of chunks");
    assert!(scene.log.iter().any(|entry| !entry.commit.inline_packs.is_empty()));
    let mut replay = scene.replay();
    assert_eq!(replay.tree().children(&NodeId::ROOT).count(), files.len());
    for (bytes, content) in files.iter().zip(&contents) {
        let (read, at_once) = scene.read(&mut replay, content).unwrap();
        assert!(read == *bytes, "{} bytes", bytes.len());
        assert!(at_once <= 8 * 1024 * 1024, "{at_once} bytes at once");
    }
    let shown = replay.shown();
    assert_eq!((shown.commits, shown.changes, shown.deletions), (5, 5, 0));
    assert_eq!((shown.nodes.len(), shown.devices.len()), (5, 1));
    assert!(shown.packs as usize > scene.stored.len());
}

#[test]
fn file_is_the_same_through_memory_of_any_length_and_no_byte_is_asked_for_twice() {
    let mut scene = Scene::new();
    // Their chunks have some 16 KiB: one does not fit into the least memory.
    let files = [random_bytes(3, 9_000_000), text(2, 200_000), vec![7; 5_000_000]];
    for (id, bytes) in (1..).zip(&files) {
        let content = scene.put(id, &format!("file {id}"), bytes);
        let whole = scene.read_by(&mut scene.replay(), &content, usize::MAX).unwrap();
        for room in [5_000, 100_000, 4 * 1024 * 1024] {
            let (read, asked) = scene.read_by(&mut scene.replay(), &content, room).unwrap();
            assert!(read == *bytes, "{room}");
            assert_eq!(asked.iter().sum::<u64>(), whole.1.iter().sum::<u64>(), "{room}");
        }
    }
    let content = scene.put(4, "file 4", &files[0]);
    let mut reading = FileReading::new(&content).unwrap();
    let none = reading.read_to(scene.replay().packs_mut(), 0, |_| panic!("there is no room"));
    assert_eq!(none.unwrap(), 0);
}

#[test]
fn record_that_comes_when_others_have_pushed_out_its_index_is_asked_for_again() {
    let mut scene = Scene::new();
    let bytes = random_bytes(3, 400_000);
    let content = scene.put(1, "file", &bytes);
    let other = scene.put(2, "other", &random_bytes(4, 100_000));
    let mut replay = scene.replay();
    scene.read(&mut replay, &other).unwrap();
    let packs = replay.packs_mut();
    let index = scene.stored.keys().find_map(|id| packs.index(id)).unwrap();
    let mut reading = FileReading::new(&content).unwrap();
    let (mut read, mut is_pushed_out) = (Vec::new(), false);
    for _ in 0..20 {
        reading.read_to(packs, usize::MAX, |piece| read.extend_from_slice(piece)).unwrap();
        if reading.is_over(packs).unwrap() {
            break;
        }
        let wanted = reading.wanted(packs).unwrap().to_vec();
        if packs.index(&wanted[0].pack.id).is_some() && !is_pushed_out {
            for number in 0..=INDEXES_MAX as u8 {
                packs.learn(PackId::from_bytes([number; 32]), PackIndex::clone(&index));
            }
            is_pushed_out = packs.index(&wanted[0].pack.id).is_none();
        }
        for (number, part) in wanted.into_iter().enumerate() {
            let range = part.range.start as usize..part.range.end as usize;
            reading.take(packs, number, &scene.stored[&part.pack.id][range]).unwrap();
        }
    }
    assert!(is_pushed_out && read == bytes);
}

#[test]
fn file_that_was_edited_again_and_again_is_made_from_what_it_was() {
    // Packs with deltas that travel in the log, and such that rest in the store.
    for inline_length in [16 * 1024, 0] {
        let mut scene = Scene::new();
        let mut versions = vec![random_bytes(5, 60_000)];
        let mut contents = vec![scene.put(1, "edited", &versions[0])];
        for version in 1..=8 {
            let old = versions.last().unwrap().clone();
            let mut new = old.clone();
            for at in (version as usize * 50..new.len()).step_by(2000) {
                new[at] ^= 0xff;
            }
            contents.push(scene.edit((1, version), (&old, &new), inline_length));
            versions.push(new);
        }
        for (bytes, content) in versions.iter().zip(&contents) {
            for room in [usize::MAX, 1000] {
                let (read, _) = scene.read_by(&mut scene.replay(), content, room).unwrap();
                assert!(read == *bytes);
            }
        }
        // Without the pack of the first version nothing is left of the others.
        let first = scene.log[0].commit.packs[0].id;
        scene.stored.get_mut(&first).unwrap().fill(0);
        let error = scene.read(&mut scene.replay(), &contents[8]).unwrap_err();
        assert!(error.is_damage(), "{error}");
    }
}

/// Changes bytes all over, in other places for each number.
fn edited(old: &[u8], number: usize) -> Vec<u8> {
    let mut new = old.to_vec();
    (number * 50..old.len()).step_by(2000).for_each(|at| new[at] ^= 0xff);
    new
}

/// Reads it in a few ways; all of them give the same.
fn read_all_ways(scene: &Scene, content: &Content) -> Result<Vec<u8>, ContentError> {
    let (whole, _) = scene.read(&mut scene.replay(), content)?;
    let (pieces, _) = scene.read_by(&mut scene.replay(), content, 1000)?;
    assert!(whole == pieces);
    Ok(whole)
}

#[test]
fn chunk_is_made_from_what_another_pack_names_where_the_first_names_what_is_damaged_or_gone() {
    for inline_length in [16 * 1024, 0] {
        for broken in [0, 1] {
            let mut scene = Scene::new();
            let new = random_bytes(5, 200_000);
            let bases = [edited(&new, 1), edited(&new, 2)];
            for (id, base) in (1..).zip(&bases) {
                scene.put(id, "base", base);
            }
            let contents = [3, 4]
                .map(|id| scene.edit((id, 0), (&bases[id as usize - 3], &new), inline_length));
            assert!(contents[0] == contents[1]);
            let commit = &scene.log[broken].commit;
            let damaged = commit.packs[0].id;
            // Some records of it, so that its index is read; or all, which is as good as gone.
            for records in [100..20_000, 0..usize::MAX] {
                let pack = scene.stored.get_mut(&damaged).unwrap();
                let end = records.end.min(pack.len());
                pack[records.start..end].fill(0);
                assert!(read_all_ways(&scene, &contents[0]).unwrap() == new);
            }
            let other = scene.log[1 - broken].commit.packs[0].id;
            scene.stored.get_mut(&other).unwrap().fill(0);
            assert!(read_all_ways(&scene, &contents[0]).unwrap_err().is_damage());
        }
    }
}

#[test]
fn chunk_is_made_from_what_another_pack_names_where_the_first_names_what_is_nowhere_or_too_deep() {
    for is_first in [true, false] {
        let mut scene = Scene::new();
        let first = random_bytes(5, 30_000);
        scene.put(1, "first", &first);
        // 16 deltas in a row are opened, 17 are not.
        let (mut old, mut contents) = (first.clone(), Vec::new());
        for version in 1..=17 {
            let new = edited(&old, version);
            if version == 17 && !is_first {
                scene.edit((4, 0), (&first, &new), 0);
            }
            contents.push((scene.edit((2, version as u64 - 1), (&old, &new), 0), new.clone()));
            old = new;
        }
        let (content, bytes) = &contents[15];
        assert!(read_all_ways(&scene, content).unwrap() == *bytes);
        let (content, bytes) = &contents[16];
        if is_first {
            let error = read_all_ways(&scene, content).unwrap_err();
            assert!(matches!(error, ContentError::ChunkMissing { .. }), "{error}");
            scene.edit((4, 0), (&first, bytes), 0);
        }
        assert!(read_all_ways(&scene, content).unwrap() == *bytes);

        // From what no pack has.
        let (nowhere, new) = (edited(&first, 30), edited(&first, 31));
        for (id, is_nowhere) in [(5, is_first), (6, !is_first)] {
            let base = if is_nowhere { &nowhere } else { &first };
            let content = scene.edit((id, 0), (base, &new), 0);
            let read = read_all_ways(&scene, &content);
            match is_nowhere && id == 5 {
                true => assert!(matches!(read, Err(ContentError::ChunkMissing { .. }))),
                false => assert!(read.unwrap() == new),
            }
        }
    }
}

#[test]
fn chunks_that_are_made_from_each_other_come_out_where_one_is_to_be_had() {
    let mut scene = Scene::new();
    let good = random_bytes(5, 20_000);
    let (one, two) = (edited(&good, 1), edited(&good, 2));
    let contents = [scene.edit((1, 0), (&two, &one), 0), scene.edit((2, 0), (&one, &two), 0)];
    for content in &contents {
        let error = scene.read(&mut scene.replay(), content).unwrap_err();
        assert!(matches!(error, ContentError::ChunkMissing { .. }), "{error}");
    }
    scene.put(3, "good", &good);
    scene.edit((4, 0), (&good, &two), 0);
    for (content, bytes) in contents.iter().zip([&one, &two]) {
        assert!(read_all_ways(&scene, content).unwrap() == *bytes);
    }
}

#[test]
fn chunks_that_are_made_from_each_other_are_missing() {
    let mut scene = Scene::new();
    let one = random_bytes(5, 20_000);
    let mut two = one.clone();
    for at in (100..two.len()).step_by(1000) {
        two[at] ^= 0xff;
    }
    let contents = [scene.edit((1, 0), (&one, &two), 0), scene.edit((2, 0), (&two, &one), 0)];
    for content in &contents {
        let error = scene.read(&mut scene.replay(), content).unwrap_err();
        assert!(matches!(error, ContentError::ChunkMissing { .. }), "{error}");
    }
}

#[test]
fn entry_that_was_changed_left_out_or_moved_is_refused_and_nothing_of_it_is_folded() {
    let mut scene = Scene::new();
    for id in 1..4 {
        scene.put(id, &format!("file {id}"), &text(id.into(), 300));
    }
    let mut replay = Replay::new(&scene.genesis, scene.keys.clone());
    replay.fold(&scene.log[0]).unwrap();
    let before = (replay.head(), replay.tree().clone());
    let changed = Entry { previous: EntryHash::NONE, ..scene.log[1].clone() };
    for wrong in [&scene.log[2], &scene.log[0], &changed] {
        assert!(matches!(replay.fold(wrong), Err(ContentError::NotNext { .. })));
        assert_eq!((replay.head(), replay.tree().clone()), before);
    }
    // One whose author had seen another history than this one.
    let seen = Head { seq: 1, hash: EntryHash::from_bytes([9; 32]) };
    let forked = scene.keys.seal_commit(Commit { seen, ..commit(9, Vec::new()) }).unwrap();
    replay.fold(&scene.log[1]).unwrap();
    let Head { seq, hash } = replay.head();
    let forked = Entry { seq: seq + 1, previous: hash, commit: forked };
    assert!(matches!(replay.fold(&forked), Err(ContentError::Forked { seq: 3 })));
    replay.fold(&scene.log[2]).unwrap();
    assert_eq!(replay.tree().children(&NodeId::ROOT).count(), 3);
}

#[test]
fn commit_whose_signature_is_not_right_counts_for_nothing_and_is_told() {
    let mut scene = Scene::new();
    scene.put(1, "file", &text(1, 300));
    let mut entry = scene.log[0].clone();
    if let Some(seal) = &mut entry.commit.seal {
        seal.signature[7] ^= 1;
    }
    let mut replay = Replay::new(&scene.genesis, scene.keys.clone());
    replay.fold(&entry).unwrap();
    assert_eq!(replay.tree().children(&NodeId::ROOT).count(), 0);
    assert_eq!(replay.void().len(), 1);
    assert!(replay.tree().get(&node(1)).is_some_and(|node| node.version == 1));
}

#[test]
fn flipped_bytes_of_packs_are_refused() {
    let mut scene = Scene::new();
    let content = scene.put(1, "file", &random_bytes(3, 700_000));
    let ids: Vec<PackId> = scene.stored.keys().copied().collect();
    for id in ids {
        let whole = scene.stored[&id].clone();
        for at in [9, whole.len() / 2, whole.len() - 80, whole.len() - 1] {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            scene.stored.insert(id, flipped);
            let read = scene.read(&mut scene.replay(), &content);
            // Padding is not looked at where a pack is read in parts.
            match read {
                Err(error) => assert!(error.is_damage(), "{error}"),
                Ok((bytes, _)) => assert!(bytes == random_bytes(3, 700_000)),
            }
        }
        scene.stored.insert(id, whole[..whole.len() - 1].to_vec());
        let mut cut = scene.replay();
        let mut reading = FileReading::new(&content).unwrap();
        let wanted = reading.wanted(cut.packs_mut()).unwrap().len();
        for number in 0..wanted {
            reading.take(cut.packs_mut(), number, &whole[..5]).unwrap();
        }
        let missing = reading.wanted(cut.packs_mut());
        assert!(matches!(missing, Err(ContentError::PackMissing { .. })), "{missing:?}");
        scene.stored.insert(id, whole);
    }
    let mut lost = Scene::new();
    lost.put(2, "other", b"other");
    let error = scene.read(&mut lost.replay(), &content).unwrap_err();
    assert!(matches!(error, ContentError::ChunkMissing { .. }), "{error}");
}

/// A page makes a picture again whose codes were stored shorter, in whatever pieces it reads it, wherever the pack rests.
#[test]
fn picture_is_read_that_is_stored_shorter() {
    let file = crate::jpeg::tests::PHOTO;
    for inline_length in [0, 16 * 1024] {
        let mut scene = Scene::new();
        let (settings, keys) = (scene.settings(), scene.keys.content().clone());
        let mut writer = PackWriter::new(settings.transform, &settings.guard).unwrap();
        let chunker = keys.chunker(ChunkerKind::Minimum, 4096).unwrap();
        let chunks: Vec<ChunkRef> = Chunks::new(&*chunker, file)
            .map(|chunk| ChunkRef { id: keys.namer().name(chunk), length: chunk.len() as u32 })
            .collect();
        let form = crate::jpeg::shorten(file).unwrap();
        assert!(chunks.len() > 1 && writer.push_picture(&chunks, &form).unwrap());
        let pack = writer.finish().unwrap();
        assert!(pack.bytes.len() < file.len());
        let mut sink = Sink::default();
        let mut packer = FilePacker::new(&keys, &settings, &mut sink).unwrap();
        let content = packer.pack_list(4096, &chunks).unwrap();
        let content = scene.propose((1, 0), "photo.jpg", content, vec![pack], inline_length);
        for room in [usize::MAX, 1000] {
            let (read, _) = scene.read_by(&mut scene.replay(), &content, room).unwrap();
            assert!(read == file, "{room} bytes at once");
        }
    }
}

/// Of many pictures a few bytes each are read, in turn: whoever keeps fewer of them open opens one for each time.
#[test]
fn work_of_opening_pictures_is_bounded_by_what_is_read() {
    let mut scene = Scene::new();
    let (settings, keys) = (scene.settings(), scene.keys.content().clone());
    let named =
        |bytes: &[u8]| ChunkRef { id: keys.namer().name(bytes), length: bytes.len() as u32 };
    let (mut writer, mut ends) =
        (PackWriter::new(settings.transform, &settings.guard).unwrap(), vec![]);
    for seed in 0..10 {
        let file = [crate::jpeg::tests::PHOTO, &random_bytes(seed, 60_000)].concat();
        let (start, end) = file.split_at(file.len() - 4);
        let form = crate::jpeg::shorten(&file).unwrap();
        assert!(writer.push_picture(&[named(start), named(end)], &form).unwrap());
        ends.push((named(end), end.to_vec()));
    }
    let mut packs = Some(writer.finish().unwrap());
    for (pictures, is_read) in [(8, true), (10, false)] {
        let mut sink = Sink::default();
        let mut packer = FilePacker::new(&keys, &settings, &mut sink).unwrap();
        let (chunks, bytes): (Vec<ChunkRef>, Vec<Vec<u8>>) =
            ends[..pictures].iter().cloned().cycle().take(3000).unzip();
        let content = packer.pack_list(4096, &chunks).unwrap();
        packer.finish().unwrap();
        sink.packs.extend(packs.take());
        let content = scene.propose((1, pictures as u64), "pictures", content, sink.packs, 0);
        match scene.read_by(&mut scene.replay(), &content, 1000) {
            Ok((read, _)) => assert!(is_read && read == bytes.concat()),
            Err(error) => {
                assert!(!is_read && matches!(error, ContentError::TooMuchWork), "{error}");
            }
        }
    }
}

/// What a document holds in compressed streams is stored in their place, and comes out in whatever pieces it is read.
#[test]
fn document_is_read_that_is_stored_inflated() {
    for inline_length in [16 * 1024, 0] {
        let mut scene = Scene::new();
        let (mut words, mut kept) = (text(6, 120_000), None);
        for version in 0..3 {
            words.splice(version * 100..version * 100 + 4, *b"edited");
            let bytes = crate::documents::document(&words);
            let mut sink = Sink::default();
            let keys = scene.keys.content().clone();
            let mut packer = FilePacker::new(&keys, &scene.settings(), &mut sink).unwrap();
            let (content, next) = packer.pack_whole(kept.as_ref(), &bytes, Some(4096)).unwrap();
            packer.finish().unwrap();
            kept = Some(next);
            let content =
                scene.propose((1, version as u64), "paper", content, sink.packs, inline_length);
            assert!(read_all_ways(&scene, &content).unwrap() == bytes);
        }
        assert!(matches!(kept, Some(crate::packing::Kept::Inflated(_))));
    }
}
