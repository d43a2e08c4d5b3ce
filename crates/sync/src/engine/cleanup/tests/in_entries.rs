//! Cleanups of workspaces whose small packs travel in the log.

use bytes::Bytes;
use model::wire::{Refusal, RefusalKind};

use super::*;

/// So little that a whole file travels in the log.
const SHORT: usize = 60_000;

/// How many of the packs that a device knows are in entries.
fn packs_in_entries(device: &TestDevice) -> usize {
    let packs = device.engine.pack_list().expect("listed");
    packs.iter().filter(|pack| pack.place.inline_seq.is_some()).count()
}

/// Writes a note that is another one each time.
fn rewrite_often(device: &mut TestDevice, name: &str, seeds: std::ops::Range<u8>) -> Vec<u8> {
    let mut now = Vec::new();
    for seed in seeds {
        now = noise(seed, SHORT);
        device.write(name, &now);
        device.sync();
    }
    now
}

#[test]
fn new_device_does_not_fetch_what_travelled_in_the_log_for_others() {
    let mut room = Room::new();
    let (mut one, mut away) = (room.device(), room.device());
    rewrite_often(&mut one, "note", 0..4);
    away.sync();
    let last = rewrite_often(&mut one, "note", 4..8);
    assert_eq!((packs_in_entries(&one), room.packs()), (8, 0));
    one.keep_nothing_old(&room);
    let report = one.cleanup();
    assert_eq!((report.dropped_versions, report.packs, report.length), (7, 0, 0), "{report:?}");
    let gone = report.length_in_entries;
    assert!((7 * SHORT as u64..8 * SHORT as u64).contains(&gone), "{report:?}");
    assert_eq!(packs_in_entries(&one), 1);

    let mut new = room.device();
    let received = new.sync().received_bytes;
    assert!(new.read("note") == Some(last.clone()));
    assert!(received < 2 * SHORT as u64, "{received}");
    away.sync();
    assert!(away.read("note") == Some(last.clone()));
    let again = one.cleanup();
    assert_eq!((again.fence, again.length_in_entries), (None, 0), "{again:?}");

    // Everybody goes on from there.
    away.write("note", &noise(20, SHORT));
    away.sync();
    for device in [&mut one, &mut new] {
        device.sync();
        assert!(device.read("note") == Some(noise(20, SHORT)));
    }
    assert!(room.found(&["note"]) == [Some(noise(20, SHORT))]);
}

#[test]
fn member_who_may_publish_no_checkpoint_cleans_up_all_the_same() {
    let mut room = Room::new();
    let mut one = room.device();
    let last = rewrite_often(&mut one, "note", 0..4);
    one.keep_nothing_old(&room);
    let refusal = Refusal::new(RefusalKind::NotAllowed, "checkpoints are for the owner");
    *one.log.no_checkpoints.lock() = Some(CommitLogError::Refused(refusal));
    let report = one.cleanup();
    assert!(report.fence.is_some() && report.length_in_entries > SHORT as u64, "{report:?}");
    assert!(now(async { Ok(one.log.checkpoint().await?) }).expect("looked").is_none());
    assert!(room.found(&["note"]) == [Some(last)]);
}

#[test]
fn checkpoint_that_was_not_published_behind_a_fence_is_by_the_next_cleanup() {
    let mut room = Room::new();
    let mut one = room.device();
    let last = rewrite_often(&mut one, "note", 0..4);
    one.keep_nothing_old(&room);
    let (place, reason) = ("the log".to_owned(), "it is away".to_owned());
    *one.log.no_checkpoints.lock() = Some(CommitLogError::Unreachable { place, reason });
    now(one.engine.cleanup(&CleanupOptions::default())).expect_err("the log is away");
    assert_eq!(packs_in_entries(&one), 1, "the fence stands");
    assert_eq!(one.cleanup().fence, None);
    let checkpoint = now(async { Ok(one.log.checkpoint().await?) }).expect("looked");
    assert!(checkpoint.is_some_and(|it| it.head == one.engine.head().expect("a head")));
    assert!(room.found(&["note"]) == [Some(last)]);
}

#[test]
fn pack_in_an_entry_that_is_an_object_too_is_removed_from_the_store() {
    let mut room = Room::new();
    let mut one = room.device();
    let last = rewrite_often(&mut one, "note", 0..2);
    let entry = one.engine.state.entry(1).expect("read").expect("there");
    let pack = Bytes::from(entry.commit.inline_packs[0].clone());
    let id = PackId::from_bytes(*blake3::hash(&pack).as_bytes());
    let store = one.engine.environment.store.clone();
    now(async { Ok(store.put_pack(id, pack).await?) }).expect("stored");
    one.keep_nothing_old(&room);
    assert_eq!(room.packs(), 1);
    let report = one.cleanup();
    assert_eq!((report.packs, room.packs()), (1, 0), "{report:?}");
    assert!(room.found(&["note"]) == [Some(last)]);
}

#[test]
fn little_that_is_needed_of_a_pack_in_an_entry_is_stored_anew() {
    let mut room = Room::new();
    let mut one = room.device();
    // Each commit has a file that stays, and one that does not.
    for number in 0..6_u8 {
        one.write(&format!("kept {number}"), &noise(number, SHORT / 10));
        one.write("note", &noise(100 + number, SHORT * 4 / 5));
        one.sync();
    }
    one.remove("note");
    one.sync();
    one.keep_nothing_old(&room);
    let report = one.cleanup();
    assert!(report.length_in_entries > 6 * SHORT as u64 * 4 / 5, "{report:?}");
    assert_eq!((packs_in_entries(&one), room.packs()), (0, 1));
    let (names, files): (Vec<String>, Vec<_>) =
        (0..6_u8).map(|number| (format!("kept {number}"), Some(noise(number, SHORT / 10)))).unzip();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(room.found(&names) == files);
    let mut new = room.device();
    let received = new.sync().received_bytes;
    assert!(received < SHORT as u64 * 6 / 5, "{received}");
}

#[test]
fn changes_in_entries_of_what_stays_are_read_from_where_they_are() {
    let mut room = Room::new();
    let mut one = room.device();
    let mut file = noise(1, LENGTH);
    one.write("report", &file);
    one.sync();
    for round in 0..12_usize {
        file[round * 10_000 + 77] ^= 1;
        one.write("report", &file);
        one.sync();
    }
    one.keep_nothing_old(&room);
    for _ in 0..2 {
        one.cleanup();
        assert!(room.found(&["report"]) == [Some(file.clone())]);
    }
    file[99] ^= 1;
    one.write("report", &file);
    assert!(one.sync().sent_bytes < 2000);
    assert!(room.found(&["report"]) == [Some(file)]);
}

#[test]
fn what_was_condemned_in_an_entry_comes_again_under_another_name() {
    let mut room = Room::new();
    let (mut one, mut away) = (room.device(), room.device());
    one.write("note", &noise(1, SHORT));
    one.sync();
    away.sync();
    one.remove("note");
    one.sync();
    // It has the same bytes under another path, and does not know that they are gone.
    away.write("copy", &noise(1, SHORT));
    away.log.is_closed.store(true, Ordering::Relaxed);
    now(away.engine.sync(Scope::Everything)).expect_err("the log is closed");
    let late = away.engine.state.outbox().expect("read").remove(0);
    one.keep_nothing_old(&room);
    let report = one.cleanup();
    assert!(report.fence.is_some() && report.length_in_entries > SHORT as u64, "{report:?}");
    assert_eq!(packs_in_entries(&one), 0);
    now(async { Ok(away.log.log.commit(&late).await?) }).expect("taken");
    away.log.is_closed.store(false, Ordering::Relaxed);
    assert!(away.sync().problems.is_empty());
    one.sync();
    assert!(one.read("copy") == Some(noise(1, SHORT)));
    one.write("again", &noise(1, SHORT));
    one.sync();
    assert!(room.found(&["copy", "again"]) == [Some(noise(1, SHORT)), Some(noise(1, SHORT))]);
}
