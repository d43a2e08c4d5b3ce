//! Cleanups that copy records of changes as they are.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use bytes::Bytes;
use content::pack::DeltaStep;
use content::{PackWriter, Transform};
use model::{ChunkId, PackId};
use parking_lot::Mutex;
use storage::{ContentStore, ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome};

use super::*;
use crate::chunk_reader::ChunkFetcher;

/// How many bytes all chunks have in common, and how many each has by itself.
const COMMON: usize = 11_900;
const OWN: usize = 100;

/// A file of one chunk, which any other of them can be made from.
fn file(number: u8) -> Vec<u8> {
    [noise(200, COMMON), noise(number, OWN)].concat()
}

impl TestDevice {
    /// Has the log name a pack with files that rest whole, with such that are made from another, each in a record of its own, and with so many
    /// bytes that nobody needs; returns which it is.
    fn pack_of(&mut self, whole: &[u8], made: &[(u8, u8)], needless: usize) -> PackId {
        let writer = PackWriter::new(Transform::default(), &self.engine.keys.packs());
        let mut writer = writer.expect("a writer").with_records(256 << 10);
        for number in whole {
            writer.push(self.chunk(&file(*number)), &file(*number)).expect("packed");
        }
        for (number, base) in made {
            let (bytes, base) = (file(*number), self.chunk(&file(*base)));
            let copy = DeltaStep::Copy { base, offset: 0, length: COMMON as u32 };
            let steps = [copy, DeltaStep::Literal(&bytes[COMMON..])];
            writer.push_delta(self.chunk(&bytes), &bytes, &steps).expect("packed");
            writer.seal_deltas().expect("packed");
        }
        let seed = self.engine.head().expect("a head").seq as u8;
        for part in noise(seed ^ 0x55, needless).chunks(200_000) {
            writer.push(self.chunk(part), part).expect("packed");
        }
        let pack = writer.finish().expect("packed");
        let id = pack.id;
        self.name_pack(id, pack.bytes);
        id
    }

    /// Writes files whose chunks are in packs already.
    fn write_known(&mut self, files: impl IntoIterator<Item = u8>) {
        files.into_iter().for_each(|number| self.write(&number.to_string(), &file(number)));
        let report = self.sync();
        assert!(report.sent_bytes < 8000, "{report:?}");
    }

    /// Tells which of some packs are still there.
    fn has(&mut self, packs: &[PackId]) -> Vec<bool> {
        let there = now(self.engine.stored_packs()).expect("listed");
        let there: BTreeSet<PackId> = there.into_iter().map(|pack| pack.id).collect();
        packs.iter().map(|pack| there.contains(pack)).collect()
    }

    /// Takes packs from another store from now on.
    fn turn_to(&mut self, store: Arc<dyn ObjectStore>) {
        let engine = &mut self.engine;
        let (log, clock) = (self.log.clone(), engine.environment.clock.clone());
        engine.environment.store = Arc::new(ContentStore::new(store));
        let store = engine.environment.store.clone();
        engine.fetcher = ChunkFetcher::new(store, log, &engine.keys, clock);
    }
}

/// Checks that a device that comes new reads all of these files.
fn assert_found(room: &mut Room, files: impl IntoIterator<Item = u8>) {
    let files: Vec<u8> = files.into_iter().collect();
    let names: Vec<String> = files.iter().map(u8::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = room.found(&names);
    for (number, found) in files.iter().zip(found) {
        assert!(found.as_ref() == Some(&file(*number)), "file {number}");
    }
}

/// Two chunks are made from each other in packs that are written anew, and each from a third one in packs that stay.
#[test]
fn copies_that_are_made_from_each_other_keep_what_else_these_chunks_are_made_from() {
    let mut room = Room::new();
    let mut one = room.device();
    let stay = [one.pack_of(&[1], &[], 0), one.pack_of(&[2], &[], 0)];
    let stay =
        [&stay[..], &[one.pack_of(&[], &[(3, 1)], 0), one.pack_of(&[], &[(4, 2)], 0)]].concat();
    let go = [one.pack_of(&[], &[(3, 4)], LENGTH), one.pack_of(&[], &[(4, 3)], LENGTH)];
    one.write_known([3, 4]);
    one.keep_nothing_old(&room);
    let report = one.cleanup();
    assert_eq!((report.repacked, report.left), (2, 0), "{report:?}");
    assert_eq!((one.has(&stay), one.has(&go)), (vec![true; 4], vec![false; 2]));
    assert_found(&mut room, [3, 4]);
}

/// A chunk that nine deltas in a row lead to rests whole, too, and nine in a row lead on from it.
#[test]
fn copy_behind_a_row_of_deltas_does_not_stand_for_a_chunk_that_rests_whole() {
    let mut room = Room::new();
    let mut one = room.device();
    one.pack_of(&[0], &[], 0);
    for number in 1..9 {
        one.pack_of(&[], &[(number, number - 1)], 0);
    }
    let go = one.pack_of(&[], &[(9, 8)], LENGTH);
    let whole = one.pack_of(&[9], &[], 0);
    for number in 10..19 {
        one.pack_of(&[], &[(number, number - 1)], 0);
    }
    one.write_known(0..19);
    one.keep_nothing_old(&room);
    let report = one.cleanup();
    assert_eq!((report.repacked, report.packs), (1, 1), "{report:?}");
    assert_eq!(one.has(&[go, whole]), [false, true]);
    assert_found(&mut room, 0..19);
}

#[test]
fn chunk_with_two_records_is_in_no_new_pack_twice() {
    let mut room = Room::new();
    let mut one = room.device();
    one.pack_of(&[1, 2], &[], 0);
    let go = [one.pack_of(&[], &[(3, 1)], LENGTH), one.pack_of(&[], &[(3, 2)], LENGTH)];
    one.write_known([1, 2, 3]);
    one.keep_nothing_old(&room);
    let report = one.cleanup();
    assert_eq!((report.repacked, one.has(&go)), (2, vec![false; 2]), "{report:?}");
    let known = one.engine.pack_list().expect("listed");
    for pack in known {
        let index = now(one.engine.fetcher.index(&one.engine.state, &pack)).expect("read");
        let chunks: HashSet<ChunkId> = index.chunks().iter().map(|chunk| chunk.id).collect();
        assert_eq!(chunks.len(), index.chunks().len());
    }
    assert_found(&mut room, [1, 2, 3]);
}

#[test]
fn records_that_were_copied_before_a_cleanup_was_cut_off_are_not_copied_again() {
    let mut room = Room::new();
    let (mut one, mut other) = (room.device(), room.device());
    one.pack_of(&[1], &[], 0);
    let go = one.pack_of(&[], &[(2, 1), (3, 1)], LENGTH);
    one.write_known([1, 2, 3]);
    one.keep_nothing_old(&room);
    let mut verified = Verified::default();
    let survey = now(one.engine.survey(&CleanupOptions::default(), &verified)).expect("looks");
    let written = now(one.engine.repack(&survey, &mut verified)).expect("written");
    assert!((1..2000).contains(&written), "{written}");
    let report = other.cleanup();
    assert_eq!((report.written_length, report.repacked, report.left), (0, 1, 0), "{report:?}");
    assert_eq!(other.has(&[go]), [false]);
    assert_found(&mut room, [1, 2, 3]);
}

/// Whatever was taken for read back: what cannot be made without the packs that go keeps them all.
#[test]
fn everything_stays_where_a_chunk_could_not_be_made_without_what_goes() {
    let mut room = Room::new();
    let mut one = room.device();
    let stay = [one.pack_of(&[1], &[], 0), one.pack_of(&[], &[(2, 1)], 0)];
    let needless = one.pack_of(&[], &[], LENGTH);
    one.write_known([1, 2]);
    one.keep_nothing_old(&room);
    let options = CleanupOptions::default();
    let mut verified = Verified::default();
    let survey = now(one.engine.survey(&options, &verified)).expect("looks");
    assert_eq!(survey.condemned.keys().collect::<Vec<_>>(), [&needless]);
    let first = one.engine.state.pack_by_id(&stay[0]).expect("read").expect("known");
    let chunk = one.chunk(&file(2));
    verified.add_whole(chunk.id, first.number);
    let survey = now(one.engine.survey(&options, &verified)).expect("looks");
    assert_eq!((survey.condemned.len(), survey.repacked), (0, 0));
}

/// Gives each part of a pack right at first, and flips a bit in it from then on.
#[derive(Debug)]
struct Fading {
    store: Arc<dyn ObjectStore>,
    seen: Mutex<BTreeSet<(String, u64)>>,
    /// Whether it flips the bit at once.
    is_bad: bool,
}

#[async_trait]
impl ObjectStore for Fading {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(
        &self,
        key: &ObjectKey,
        bytes: Bytes,
        mode: PutMode,
    ) -> storage::Result<PutOutcome> {
        self.store.put(key, bytes, mode).await
    }

    async fn get(&self, key: &ObjectKey) -> storage::Result<Option<Bytes>> {
        self.store.get(key).await
    }

    async fn get_range(
        &self,
        key: &ObjectKey,
        range: Range<u64>,
    ) -> storage::Result<Option<Bytes>> {
        let is_first = self.seen.lock().insert((key.as_str().to_owned(), range.start));
        let Some(found) = self.store.get_range(key, range).await? else { return Ok(None) };
        let mut bytes = found.to_vec();
        if !is_first || self.is_bad {
            *bytes.last_mut().expect("there are some") ^= 1;
        }
        Ok(Some(bytes.into()))
    }

    async fn size(&self, key: &ObjectKey) -> storage::Result<Option<u64>> {
        self.store.size(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> storage::Result<Vec<ObjectEntry>> {
        self.store.list(prefix, start_after, limit).await
    }

    async fn delete(&self, key: &ObjectKey) -> storage::Result<()> {
        self.store.delete(key).await
    }
}

#[test]
fn record_is_copied_from_the_very_bytes_that_were_opened() {
    let mut room = Room::new();
    let mut one = room.device();
    one.pack_of(&[1], &[], 0);
    // So long that only parts of it are read.
    let go = one.pack_of(&[], &[(2, 1)], 9 * LENGTH);
    one.write_known([1, 2]);
    one.keep_nothing_old(&room);
    let store = one.engine.environment.store.object_store().clone();
    for is_bad in [true, false] {
        let seen = Mutex::default();
        let fading = Arc::new(Fading { store: store.clone(), seen, is_bad });
        one.turn_to(fading.clone());
        let report = one.cleanup();
        assert!(!fading.seen.lock().is_empty(), "parts were read");
        assert_eq!(
            (report.packs, one.has(&[go])),
            (u64::from(!is_bad), vec![is_bad]),
            "{report:?}"
        );
    }
    one.turn_to(store);
    assert_found(&mut room, [1, 2]);
}
