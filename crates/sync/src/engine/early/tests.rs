//! What a device sends before it knows the end of the log, and what becomes of it.

#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use std::path::Path;
use std::sync::Arc;

use storage::layers::Operation;
use tokio::time::Instant;

use super::*;
use crate::engine::fixture::room::{Paced, QUICK, Room, SLOW, folder, noise};
use crate::error::SyncError;
use crate::scan::Scope;

const LENGTH: usize = 9_000_000;

fn write(folder: &tempfile::TempDir, name: &str, seed: u8) {
    std::fs::write(folder.path().join(name), noise(seed, LENGTH)).expect("written");
}

fn has(folder: &tempfile::TempDir, name: &str, seed: u8) -> bool {
    std::fs::read(folder.path().join(name)).expect("read") == noise(seed, LENGTH)
}

/// Lets a new device fetch everything, and compares.
async fn assert_all_there(room: &Room, files: &[(&str, u8)]) {
    let folder = folder();
    let (mut engine, _) = room.device(&folder, 9).await;
    engine.sync(Scope::Everything).await.expect("syncs");
    for (name, seed) in files {
        assert!(has(&folder, name, *seed), "{name}");
    }
    assert_eq!(names(folder.path()).len(), files.len());
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("read");
    let names = entries.map(|entry| entry.expect("read").file_name().into_string().expect("text"));
    names.filter(|name| name != ".syncline").collect()
}

#[tokio::test(start_paused = true)]
async fn files_are_with_the_store_when_the_look_at_the_log_ends() {
    let (room, folder) = (Room::new(), folder());
    let (mut engine, packs) = room.device(&folder, 1).await;
    for (name, seed) in [("first", 1), ("second", 2)] {
        write(&folder, name, seed);
        let (began, before) = (Instant::now(), packs.asked(Operation::PutDeferred).len());
        let report = engine.sync(Scope::Everything).await.expect("syncs");
        let puts = packs.asked(Operation::PutDeferred).split_off(before);
        assert!(puts.len() > 1, "{puts:?}");
        assert!(puts.iter().all(|put| *put - began < SLOW), "{name}: {puts:?} after {began:?}");
        // The look, and the commit: nothing else is waited for.
        assert!(began.elapsed() < SLOW * 2 + QUICK * 2, "{name}: {:?}", began.elapsed());
        assert_eq!((report.sent, report.read_bytes), (1, LENGTH as u64));
    }
    assert_all_there(&room, &[("first", 1), ("second", 2)]).await;
}

/// Returns a device that had "common", does not know of the file "ours" of another one, and has "theirs" to send.
async fn device_behind_with_a_new_file(
    room: &Room,
    theirs: &tempfile::TempDir,
) -> (Engine, Arc<Paced>) {
    let ours = folder();
    let (mut one, _) = room.device(&ours, 1).await;
    let (mut other, packs) = room.device(theirs, 2).await;
    write(&ours, "common", 1);
    one.sync(Scope::Everything).await.expect("syncs");
    other.sync(Scope::Everything).await.expect("syncs");
    write(&ours, "ours", 2);
    one.sync(Scope::Everything).await.expect("syncs");
    write(theirs, "theirs", 3);
    (other, packs)
}

#[tokio::test(start_paused = true)]
async fn what_was_read_ahead_is_proposed_beside_what_others_have_changed() {
    let (room, theirs) = (Room::new(), folder());
    let (mut other, packs) = device_behind_with_a_new_file(&room, &theirs).await;
    let report = other.sync(Scope::Everything).await.expect("syncs");
    assert_eq!(report.read_bytes, LENGTH as u64, "read once");
    assert!(report.sent_bytes < LENGTH as u64 / 2 * 3, "sent once: {}", report.sent_bytes);
    assert_eq!(report.problems, []);
    assert!(packs.asked(Operation::PutDeferred).len() < 6);
    assert!(has(&theirs, "ours", 2));
    assert_all_there(&room, &[("common", 1), ("ours", 2), ("theirs", 3)]).await;
}

#[tokio::test(start_paused = true)]
async fn device_that_meets_a_log_with_the_same_files_announces_nothing_of_what_it_sent() {
    let (room, ours, theirs) = (Room::new(), folder(), folder());
    let (mut one, _) = room.device(&ours, 1).await;
    write(&ours, "common", 1);
    let before = one.sync(Scope::Everything).await.expect("syncs");
    let (mut other, packs) = room.device(&theirs, 2).await;
    write(&theirs, "common", 1);
    let began = Instant::now();
    let report = other.sync(Scope::Everything).await.expect("syncs");
    assert_eq!(names(theirs.path()), ["common"]);
    assert_eq!(report.problems, []);
    // The same node is agreed on; what was sent before any store had spoken is named by nobody.
    assert!(report.seq <= before.seq + 1);
    let sent_late = |put: &Instant| *put - began > QUICK * 2;
    assert!(!packs.asked(Operation::PutDeferred).iter().any(sent_late));
    let (count, _) = other.state().stored_packs_count().expect("counted");
    let (known, _) = one.state().stored_packs_count().expect("counted");
    assert_eq!(count, known);
    assert_all_there(&room, &[("common", 1)]).await;
}

#[tokio::test(start_paused = true)]
async fn store_that_is_full_keeps_nobody_from_receiving() {
    let (room, theirs) = (Room::new(), folder());
    let (mut other, packs) = device_behind_with_a_new_file(&room, &theirs).await;
    packs.refuse(usize::MAX);
    let refused = other.sync(Scope::Everything).await.expect_err("full");
    assert!(matches!(refused, SyncError::Storage(_)), "{refused}");
    assert!(has(&theirs, "ours", 2), "what the other one sent is there nevertheless");
    packs.refuse(0);
    other.sync(Scope::Everything).await.expect("syncs");
    assert_all_there(&room, &[("common", 1), ("ours", 2), ("theirs", 3)]).await;
}

#[tokio::test(start_paused = true)]
async fn who_has_been_away_looks_first() {
    let (room, folder) = (Room::new(), folder());
    let (mut engine, packs) = room.device(&folder, 1).await;
    let within = SEND_AHEAD_WITHIN.as_secs();
    for (seed, away, is_ahead) in [(0, 0, true), (1, within - 5, true), (2, within + 5, false)] {
        tokio::time::advance(Duration::from_secs(away)).await;
        write(&folder, "file", seed);
        let (began, before) = (Instant::now(), packs.asked(Operation::PutDeferred).len());
        engine.sync(Scope::Everything).await.expect("syncs");
        let puts = packs.asked(Operation::PutDeferred).split_off(before);
        assert_eq!(puts[0] - began < SLOW, is_ahead, "{away} s: {:?}", puts[0] - began);
    }
    engine.send_ahead_within(Duration::ZERO);
    write(&folder, "file", 3);
    let (began, before) = (Instant::now(), packs.asked(Operation::PutDeferred).len());
    engine.sync(Scope::Everything).await.expect("syncs");
    assert!(packs.asked(Operation::PutDeferred)[before] - began >= SLOW);
}

#[tokio::test(start_paused = true)]
async fn after_a_run_that_failed_the_log_is_looked_at_first() {
    let (room, folder) = (Room::new(), folder());
    let (mut engine, packs) = room.device(&folder, 1).await;
    write(&folder, "common", 1);
    packs.refuse(usize::MAX);
    for run in 0..3 {
        let (began, before) = (Instant::now(), packs.asked(Operation::PutDeferred).len());
        engine.sync(Scope::Everything).await.expect_err("full");
        let puts = packs.asked(Operation::PutDeferred).split_off(before);
        assert_eq!(puts[0] - began < SLOW, run == 0, "run {run}: {:?}", puts[0] - began);
    }
    packs.refuse(0);
    engine.sync(Scope::Everything).await.expect("syncs");
    assert_all_there(&room, &[("common", 1)]).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_store_refused_ahead_is_read_and_sent_in_its_turn() {
    for refused in 1..5 {
        let (room, folder) = (Room::new(), folder());
        let (mut engine, packs) = room.device(&folder, 1).await;
        write(&folder, "common", 1);
        packs.refuse(refused);
        match engine.sync(Scope::Everything).await {
            Ok(report) => assert_eq!((report.seq, report.problems.len()), (1, 0)),
            // More was refused than what was sent ahead.
            Err(_) => {
                packs.refuse(0);
                engine.sync(Scope::Everything).await.expect("syncs");
            }
        }
        assert_all_there(&room, &[("common", 1)]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_is_read_ahead_than_the_bound() {
    let (room, folder) = (Room::new(), folder());
    let (mut engine, _) = room.device(&folder, 1).await;
    for seed in 0..8 {
        write(&folder, &format!("file {seed}"), seed);
    }
    engine.begin().expect("begins");
    engine.look(&Scope::Everything).await.expect("looks");
    engine.send_ahead().expect("begins to read");
    let ahead = engine.upload.ahead.as_ref().expect("has begun");
    assert_eq!(ahead.reading.count() as u64, AHEAD_LENGTH / LENGTH as u64);
    let files: Vec<_> = (0..8).map(|seed| (format!("file {seed}"), seed)).collect();
    let files: Vec<_> = files.iter().map(|(name, seed)| (name.as_str(), *seed)).collect();
    engine.sync(Scope::Everything).await.expect("syncs");
    assert_all_there(&room, &files).await;
}

#[tokio::test(start_paused = true)]
async fn packs_of_the_next_commit_are_sent_while_one_is_on_its_way() {
    let (room, folder) = (Room::new(), folder());
    let (mut engine, packs) = room.device(&folder, 1).await;
    // More files than go into one commit, each with a small pack's worth of its own.
    for number in 0..9_000_u32 {
        let name = format!("file {number}");
        std::fs::write(folder.path().join(name), noise(7, 1_000 + number as usize))
            .expect("written");
    }
    let began = Instant::now();
    let report = engine.sync(Scope::Everything).await.expect("syncs");
    assert_eq!((report.seq, report.sent), (2, 9_000));
    let puts = packs.asked(Operation::PutDeferred);
    let late = puts.iter().map(|put| *put - began).max().expect("there are some");
    assert!(puts.len() > 2, "{}", puts.len());
    assert!(late < SLOW * 2, "the look and the first commit take two seconds, {late:?}");
    let other = super::super::fixture::room::folder();
    let (mut receiver, _) = room.device(&other, 9).await;
    receiver.sync(Scope::Everything).await.expect("syncs");
    for number in [0, 1, 4_500, 8_191, 8_192, 8_999_u32] {
        let read = std::fs::read(other.path().join(format!("file {number}"))).expect("read");
        assert!(read == noise(7, 1_000 + number as usize), "{number}");
    }
}
