//! Cleanups where chunks are stored as what makes them from others: what these are is needed, too.

use std::collections::HashSet;

use content::delta::VersionSketch;
use content::pack::{Ancestry, PACK_STORED_TARGET};
use content::{ContentError, FilePacker, FinishedPack, PackSettings, PackSink, Transform};
use model::{ChunkId, ChunkRef, PackRef};

use super::*;

/// Hands packs out, and lets every chunk be a base.
#[derive(Default)]
struct Packs {
    /// What is in a pack already.
    known: HashSet<ChunkId>,
    packs: Vec<FinishedPack>,
}

impl PackSink for Packs {
    type Error = ContentError;

    fn claim(&mut self, chunk: &ChunkRef) -> std::result::Result<bool, ContentError> {
        Ok(self.known.insert(chunk.id))
    }

    fn ancestry(&mut self, _: &ChunkRef) -> std::result::Result<Option<Ancestry>, ContentError> {
        Ok(Some(Ancestry::default()))
    }

    fn emit(&mut self, pack: FinishedPack) -> std::result::Result<(), ContentError> {
        self.packs.push(pack);
        Ok(())
    }
}

impl TestDevice {
    /// Packs what makes `new` from `old`, but for chunks that are known.
    fn deltas(&self, old: &[u8], new: &[u8], known: HashSet<ChunkId>) -> Vec<FinishedPack> {
        let keys = self.engine.keys.content();
        let base = VersionSketch::survey(keys, 16 << 10, &mut &old[..]).expect("cut");
        let guard = self.engine.keys.packs();
        let guard = guard.behind(self.engine.state.last_fence().expect("read"));
        let (transform, target) = (Transform::default(), PACK_STORED_TARGET);
        let settings = PackSettings { transform, guard, target };
        let sink = Packs { known, ..Packs::default() };
        let mut packer = FilePacker::new(keys, &settings, sink).expect("a packer");
        packer.pack_edited(&base, &mut &new[..]).expect("packed");
        let packs = packer.finish().expect("packed").packs;
        assert!(!packs.is_empty() && packs.iter().all(|pack| pack.index.has_deltas()));
        packs
    }

    /// Has the log name a pack.
    pub(super) fn name_pack(&mut self, id: PackId, bytes: Vec<u8>) {
        let (engine, length) = (&mut self.engine, bytes.len() as u64);
        let put = engine.environment.store.put_pack(id, bytes.into());
        now(async { Ok(put.await?) }).expect("stored");
        let op_id = OpId::from_bytes(random_bytes(&*engine.environment.random));
        let named = vec![PackRef { id, length }];
        let packs = CommitPacks { named, has_deltas: true, ..CommitPacks::default() };
        let commit = engine.commit_of(op_id, Vec::new(), packs).expect("a commit");
        engine.in_transaction(|engine| engine.state.add_to_outbox(&commit)).expect("kept");
        now(engine.push()).expect("named");
        now(engine.fetcher.index_packs(&mut engine.state)).expect("indexed");
    }

    /// Has the log name packs with what makes `new` from `old`, as a device does that writes deltas. Then `new` is written into the
    /// folder, and nothing of it is packed any more.
    fn edit(&mut self, name: &str, old: &[u8], new: &[u8]) {
        let known = self.engine.state.chunk_ids().expect("read");
        for pack in self.deltas(old, new, known) {
            self.name_pack(pack.id, pack.bytes);
        }
        self.write(name, new);
        let report = self.sync();
        assert!(report.sent_bytes < 3000, "{report:?}");
    }

    fn version_after_sync(mut self, name: &str, seq: u64) -> Vec<u8> {
        self.sync();
        self.version(name, seq).expect("kept")
    }

    /// Drops every old version at once, and what was deleted, too.
    pub(super) fn keep_nothing_old(&mut self, room: &Room) {
        self.policy("deleted:0s");
        room.wait(60);
    }
}

/// Changes a byte in every 4 KiB, so in every chunk.
fn changed_everywhere(bytes: &[u8], by: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for at in (1000..bytes.len()).step_by(4096) {
        bytes[at] ^= by;
    }
    bytes
}

#[test]
fn edited_file_is_received_and_read_from_what_it_is_made_from() {
    let mut room = Room::new();
    let mut one = room.device();
    let mut versions = vec![noise(1, LENGTH)];
    one.write("report", &versions[0]);
    let mut seqs = vec![one.sync().seq];
    // Each is made from the one before.
    for by in [1, 2, 4, 8, 16] {
        let old = versions[versions.len() - 1].clone();
        let new = changed_everywhere(&old, by);
        one.edit("report", &old, &new);
        seqs.push(one.engine.head().expect("a head").seq);
        versions.push(new);
    }
    let mut other = room.device();
    assert!(other.sync().problems.is_empty());
    assert!(other.read("report").as_ref() == versions.last());
    for (seq, version) in seqs.iter().zip(&versions) {
        assert!(other.version("report", *seq).expect("kept") == *version, "at {seq}");
    }
}

#[test]
fn what_a_kept_version_is_made_from_stays_when_its_own_version_goes() {
    let mut room = Room::new();
    let mut one = room.device();
    let (first, third) = (noise(1, LENGTH), noise(7, LENGTH));
    one.write("report", &first);
    one.sync();
    let second = changed_everywhere(&first, 1);
    one.edit("report", &first, &second);
    one.keep_nothing_old(&room);
    let report = one.cleanup();
    // Nothing in the first pack is a part of any file, and yet it is needed.
    assert_eq!((report.dropped_versions, report.packs), (1, 0), "{report:?}");
    assert!(room.found(&["report"]) == [Some(second)]);
    // When nothing is made from it any more, it goes.
    one.write("report", &third);
    one.sync();
    let report = one.cleanup();
    assert_eq!((report.dropped_versions, report.packs), (1, 2), "{report:?}");
    assert!(room.found(&["report"]) == [Some(third)]);
}

#[test]
fn what_others_are_made_from_is_packed_anew_with_the_rest_that_is_needed() {
    let mut room = Room::new();
    let mut one = room.device();
    let (first, rest) = (noise(1, LENGTH), noise(2, 10 * LENGTH));
    one.write("report", &first);
    one.write("large", &rest);
    one.sync();
    let second = changed_everywhere(&first, 1);
    one.edit("report", &first, &second);
    one.remove("large");
    one.sync();
    one.keep_nothing_old(&room);
    let report = one.cleanup();
    assert_eq!((report.repacked, report.left), (1, 0), "{report:?}");
    assert!(room.found(&["report", "large"]) == [Some(second), None]);
    assert_eq!(one.cleanup().fence, None);
}

/// A chunk rests in a pack that goes, and is made in another from a second chunk, which is made from the first in its turn: each of
/// the two seems to be elsewhere, and is not.
#[test]
fn chunks_that_are_made_from_each_other_are_not_taken_for_copies() {
    let mut room = Room::new();
    let mut one = room.device();
    let (first, rest) = (noise(1, LENGTH), [noise(2, 10 * LENGTH), noise(3, 10 * LENGTH)]);
    let second = changed_everywhere(&first, 1);
    for (name, file, large) in [("a", &first, &rest[0]), ("b", &second, &rest[1])] {
        one.write(name, file);
        one.write(&format!("{name} large"), large);
        one.sync();
    }
    // Now each a second time, made from the other.
    for (old, new) in [(&first, &second), (&second, &first)] {
        for pack in one.deltas(old, new, HashSet::new()) {
            one.name_pack(pack.id, pack.bytes);
        }
    }
    for name in ["a large", "b large"] {
        one.remove(name);
    }
    one.sync();
    one.keep_nothing_old(&room);
    let report = one.cleanup();
    assert!(report.repacked > 0, "{report:?}");
    one.cleanup();
    assert!(room.found(&["a", "b"]) == [Some(first), Some(second)]);
}

#[test]
fn what_is_made_from_a_lost_pack_is_put_back_by_who_has_it() {
    let mut room = Room::new();
    let mut one = room.device();
    let first = noise(1, LENGTH);
    one.write("report", &first);
    one.sync();
    let second = changed_everywhere(&first, 1);
    one.edit("report", &first, &second);
    one.keep_nothing_old(&room);
    one.cleanup();
    let packs = now(one.engine.stored_packs()).expect("listed");
    let largest = packs.iter().max_by_key(|pack| pack.length).expect("there are some").id;
    let store = one.engine.environment.store.clone();
    now(async { Ok(store.remove_pack(largest).await?) }).expect("lost");
    let lost = now(one.engine.lost_packs(false)).expect("looked");
    assert_eq!(lost, HashSet::from([largest]));
    let named = now(one.engine.versions_made_of(&lost)).expect("looked");
    assert!(named.iter().any(|version| version.is_current), "{named:?}");
    let done = now(one.engine.put_back(&lost)).expect("put back");
    assert!(done.chunks >= 10, "{done:?}");
    assert!(room.found(&["report"]) == [Some(second)]);
}

/// Packs of the store, the largest first.
fn packs(device: &mut TestDevice) -> Vec<PackRef> {
    let mut packs = now(device.engine.stored_packs()).expect("listed");
    packs.sort_unstable_by_key(|pack| std::cmp::Reverse(pack.length));
    packs
}

/// Puts other bytes in the place of a pack.
fn damage(device: &TestDevice, room: &Room, pack: PackId) {
    let store = device.engine.environment.store.clone();
    let mut bytes = now(async { Ok(store.read_pack(pack).await?) }).expect("read").to_vec();
    bytes[0] ^= 1;
    std::fs::write(file_of(room, pack), bytes).expect("written");
}

/// Where the store keeps a pack.
fn file_of(room: &Room, pack: PackId) -> std::path::PathBuf {
    let name = pack.to_string();
    let mut files = files(&room.store.path().join("packs")).into_iter();
    files.find(|path| path.to_string_lossy().ends_with(&name)).expect("it is stored")
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("listed").map(|entry| entry.expect("one").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn cleanup_removes_nothing_while_what_is_made_from_it_may_be_in_a_pack_that_cannot_be_read() {
    let mut room = Room::new();
    let mut one = room.device();
    let first = noise(1, LENGTH);
    one.write("report", &first);
    one.sync();
    let second = changed_everywhere(&first, 1);
    one.edit("report", &first, &second);
    one.keep_nothing_old(&room);
    let deltas = packs(&mut one).last().expect("there are some").id;
    for is_there in [true, false] {
        let stored = room.packs();
        one.engine.state.distrust_pack(&deltas, is_there).expect("distrusted");
        let file = file_of(&room, deltas);
        let aside = room.store.path().join("aside");
        std::fs::rename(&file, &aside).expect("moved");
        one.engine.fetcher.forget_packs();
        let refused = now(one.engine.cleanup(&CleanupOptions::default()));
        assert!(
            matches!(&refused, Err(SyncError::NotWhole(why)) if why.contains(&deltas.to_string())),
            "{refused:?}"
        );
        // A device that comes new has never seen what is in it.
        let mut fresh = room.device();
        fresh.sync();
        let refused = now(fresh.engine.cleanup(&CleanupOptions::default()));
        assert!(matches!(&refused, Err(SyncError::NotWhole(_))), "{refused:?}");
        std::fs::rename(&aside, &file).expect("moved back");
        assert_eq!(room.packs(), stored);
        one.engine.state.trust_pack(&deltas).expect("trusted");
    }
    one.cleanup();
    assert!(room.found(&["report"]) == [Some(second)]);
}

#[test]
fn what_is_made_from_what_is_in_another_damaged_pack_is_put_back_with_it() {
    let mut room = Room::new();
    let mut one = room.device();
    let first = noise(1, LENGTH);
    one.write("report", &first);
    one.sync();
    let second = changed_everywhere(&first, 1);
    one.edit("report", &first, &second);
    let seq = one.engine.head().expect("a head").seq;
    // No folder has it any more, so only the packs do.
    one.remove("report");
    one.sync();
    let damaged: HashSet<PackId> = packs(&mut one).into_iter().map(|pack| pack.id).collect();
    assert_eq!(damaged.len(), 2);
    for pack in &damaged {
        damage(&one, &room, *pack);
    }
    assert_eq!(now(one.engine.lost_packs(true)).expect("looked"), damaged);
    let done = now(one.engine.put_back(&damaged)).expect("put back");
    assert!(done.packs >= 2 && done.chunks >= 20, "{done:?}");
    for pack in damaged {
        now(async { Ok(one.engine.environment.store.remove_pack(pack).await?) }).expect("removed");
    }
    assert!(one.version("report", seq).expect("kept") == second);
    assert!(room.device().version_after_sync("report", seq) == second);
}

/// Each version is made from the one before, and the first is lost: nothing is asked for again and again.
#[test]
fn long_row_of_deltas_whose_beginning_is_lost_is_given_up_at_once() {
    let mut room = Room::new();
    let mut one = room.device();
    let mut versions = vec![noise(1, LENGTH)];
    one.write("report", &versions[0]);
    one.sync();
    for number in 0..14 {
        let old = versions.last().expect("one").clone();
        let new = changed_everywhere(&old, 1 << (number % 8));
        let new = if number < 8 { new } else { changed_everywhere(&new, 0x55) };
        one.edit("report", &old, &new);
        versions.push(new);
    }
    let lost = packs(&mut one)[0].id;
    now(async { Ok(one.engine.environment.store.remove_pack(lost).await?) }).expect("lost");
    let mut other = room.device();
    let report = other.sync();
    assert_eq!(report.problems.len(), 1, "{report:?}");
    assert_eq!(other.read("report"), None);
    // As soon as it is whole somewhere, all of it is there again.
    let done = now(one.engine.put_back(&HashSet::from([lost]))).expect("put back");
    assert!(done.chunks > 0, "{done:?}");
    other.sync();
    assert!(other.read("report").as_ref() == versions.last());
}

/// The newest place of each chunk is a delta whose base is lost, and an older one is whole.
#[test]
fn chunk_is_read_where_it_rests_whole_when_what_it_is_made_from_elsewhere_is_lost() {
    let mut room = Room::new();
    let mut one = room.device();
    let (first, second) = (noise(1, LENGTH), changed_everywhere(&noise(1, LENGTH), 1));
    one.write("b", &second);
    one.sync();
    // From a base that nobody has stored, and from one that is stored and lost.
    for pack in one.deltas(&first, &second, HashSet::new()) {
        one.name_pack(pack.id, pack.bytes);
    }
    let mut other = room.device();
    let report = other.sync();
    assert!(report.problems.is_empty(), "{report:?}");
    assert!(other.read("b").as_ref() == Some(&second));
    // With the whole ones damaged, there is nothing.
    let whole = packs(&mut one)[0].id;
    now(async { Ok(one.engine.environment.store.remove_pack(whole).await?) }).expect("lost");
    let report = room.device().sync();
    assert_eq!(report.problems.len(), 1, "{report:?}");
}

/// A chunk is made in a pack that stays from one that nobody needs any more, and is whole in another: it can be read, and what it is not made
/// from any more keeps nothing.
#[test]
fn base_that_was_rightly_removed_is_not_missed_when_its_edit_comes_again() {
    let mut room = Room::new();
    let mut one = room.device();
    let (first, third) = (noise(1, LENGTH), noise(7, LENGTH));
    let second = changed_everywhere(&first, 1);
    one.write("report", &first);
    one.sync();
    // This one travels in the log, so it stays.
    one.write("report", &second);
    assert!(one.sync().sent_bytes < 20_000);
    one.write("report", &third);
    one.sync();
    one.keep_nothing_old(&room);
    assert_eq!(one.cleanup().packs, 1);
    one.write("report", &second);
    assert!(one.sync().sent_bytes > LENGTH as u64);
    // Something that nobody names.
    let stranger = one.deltas(&third, &changed_everywhere(&third, 3), HashSet::new()).remove(0);
    let store = one.engine.environment.store.clone();
    let put = store.put_pack(stranger.id, stranger.bytes.into());
    now(async { Ok(put.await?) }).expect("stored");
    one.keep_nothing_old(&room);
    let packs = room.packs();
    one.cleanup();
    assert!(room.packs() < packs - 1, "the stranger is gone, too");
    assert!(room.found(&["report"]) == [Some(second)]);
}

#[test]
fn cleanup_stops_before_a_pack_of_a_newer_program() {
    let mut room = Room::new();
    let mut one = room.device();
    one.write("report", &noise(1, LENGTH));
    one.sync();
    let tail = [&[0; 4][..], &[4, 0, 0, 0, 0x7f], b"PACKEND"].concat();
    let hash = blake3::hash(&tail);
    let newer = [&b"SYNPACK\x7f"[..], &[0; 100], &tail, hash.as_bytes()].concat();
    one.name_pack(crate::chunk_reader::pack_id(&newer), newer);
    one.keep_nothing_old(&room);
    one.write("report", &noise(2, LENGTH));
    one.sync();
    let (packs, refused) = (room.packs(), now(one.engine.cleanup(&CleanupOptions::default())));
    assert!(
        matches!(&refused, Err(SyncError::NotWhole(why)) if why.contains("version 127")),
        "{refused:?}"
    );
    assert_eq!(room.packs(), packs);
}
