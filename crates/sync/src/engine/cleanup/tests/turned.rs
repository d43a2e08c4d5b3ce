//! Cleanups that make chunks whole, so that what they were made from can go.

use super::*;

/// So much that a change of a fifth of it does not travel in the log.
const LONG: usize = 4 * LENGTH;

/// Some bytes in every 4 KiB are others each time: a row of changes takes more than the file.
fn changed(bytes: &[u8], seed: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let other = noise(seed ^ 0x80, LONG);
    for (number, part) in bytes.chunks_mut(4096).enumerate() {
        let at = usize::from(seed % 4) * 800;
        if let Some(place) = part.get_mut(at..at + 800) {
            place.copy_from_slice(&other[number * 800..][..800]);
        }
    }
    bytes
}

/// Writes a file and changes it some times, and returns its last version.
fn edit_often(device: &mut TestDevice, name: &str, seed: u8) -> Vec<u8> {
    let mut now = noise(seed, LONG);
    device.write(name, &now);
    device.sync();
    for seed in 10..15 {
        now = changed(&now, seed);
        device.write(name, &now);
        let report = device.sync();
        assert!((LENGTH as u64 / 2..LONG as u64 / 2).contains(&report.sent_bytes), "{report:?}");
    }
    now
}

/// How many bytes the packs have that are no part of the log.
fn stored(device: &mut TestDevice) -> u64 {
    let packs = now(device.engine.stored_packs()).expect("listed");
    packs.iter().map(|pack| pack.length).sum()
}

#[test]
fn what_only_old_versions_and_a_row_of_changes_need_goes_and_the_last_version_is_whole() {
    let mut room = Room::new();
    let mut one = room.device();
    let last = edit_often(&mut one, "report", 1);
    let before = stored(&mut one);
    one.keep_nothing_old(&room);
    let report = one.cleanup();
    assert_eq!((report.dropped_versions, report.left), (5, 0), "{report:?}");
    let after = stored(&mut one);
    assert!(before > LONG as u64 * 9 / 5 && after < LONG as u64 * 21 / 20, "{before} {after}");
    assert!(room.found(&["report"]) == [Some(last.clone())]);
    let again = one.cleanup();
    assert_eq!((again.packs, again.written_length, again.fence), (0, 0, None), "{again:?}");
    // The next change is made from what is whole now.
    let next = changed(&last, 20);
    one.write("report", &next);
    assert!(one.sync().sent_bytes < LONG as u64 / 2);
    assert!(room.found(&["report"]) == [Some(next)]);
}

#[test]
fn versions_that_are_kept_stay_changes_of_each_other() {
    let mut room = Room::new();
    let mut one = room.device();
    let last = edit_often(&mut one, "report", 1);
    let before = stored(&mut one);
    room.wait(60);
    let report = one.cleanup();
    assert_eq!((report.dropped_versions, report.packs, stored(&mut one)), (0, 0, before));
    assert!(room.found(&["report"]) == [Some(last)]);
}

#[test]
fn what_was_made_whole_before_a_cleanup_was_cut_off_is_read_and_not_written_again() {
    let mut room = Room::new();
    let (mut one, mut other) = (room.device(), room.device());
    let last = edit_often(&mut one, "report", 1);
    one.keep_nothing_old(&room);
    let mut verified = Verified::default();
    let survey = now(one.engine.survey(&CleanupOptions::default(), &verified)).expect("looks");
    let written = now(one.engine.repack(&survey, &mut verified)).expect("written");
    assert!(written > LONG as u64, "{written}");
    // It was cut off before the fence; somebody else goes on.
    let report = other.cleanup();
    assert_eq!((report.written_length, report.left), (0, 0), "{report:?}");
    assert!(stored(&mut other) < LONG as u64 * 21 / 20);
    one.sync();
    assert!(room.found(&["report"]) == [Some(last)]);
}

/// Half of the chunks that were to be whole cannot be read: what these are made from stays.
#[test]
fn chunk_that_could_not_be_made_whole_keeps_what_it_is_made_from() {
    let mut room = Room::new();
    let mut one = room.device();
    let last = edit_often(&mut one, "report", 1);
    one.keep_nothing_old(&room);
    let mut verified = Verified::default();
    let options = CleanupOptions::default();
    let mut survey = now(one.engine.survey(&options, &verified)).expect("looks");
    let half = survey.anew.turned.len() / 2;
    assert!(half > 0);
    survey.anew.turned.truncate(half);
    survey.anew.sparse.clear();
    now(one.engine.repack(&survey, &mut verified)).expect("written");
    let survey = now(one.engine.survey(&options, &verified)).expect("looks");
    assert!(now(one.engine.propose_fence(&survey)).expect("proposed").is_some());
    let condemned: Vec<PackId> = survey.condemned_objects().map(|(pack, _)| pack).collect();
    assert_eq!(now(one.engine.remove(condemned)).expect("removed"), 0);
    assert!(room.found(&["report"]) == [Some(last.clone())]);
    one.cleanup();
    assert!(room.found(&["report"]) == [Some(last)]);
}
