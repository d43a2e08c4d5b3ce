//! Devices that write of edited chunks what is new in them, beside cleanups and each other.

use super::*;
use crate::prepare::DeltaBudget;

/// More delta records at once than records are kept open, each in a pack of its own.
#[test]
fn many_files_are_edited_one_by_one_and_received_together() {
    let mut room = Room::new();
    let mut one = room.device();
    let names: Vec<String> = (0..60).map(|number| format!("file {number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut files: Vec<Vec<u8>> = (0..60).map(|number| noise(number, 9000)).collect();
    for (name, file) in names.iter().zip(&files) {
        one.write(name, file);
    }
    one.sync();
    for (name, file) in names.iter().zip(&mut files) {
        file[5000] ^= 1;
        one.write(name, file);
        let report = one.sync();
        assert!(report.sent == 1 && report.sent_bytes < 1500, "{report:?}");
    }
    assert!(room.found(&names) == files.into_iter().map(Some).collect::<Vec<_>>());
}

#[test]
fn file_that_grows_costs_what_is_new_and_every_version_of_it_is_read() {
    let mut room = Room::new();
    let mut one = room.device();
    let (mut file, mut seqs, mut costs) = (noise(1, 12_000), Vec::new(), Vec::new());
    one.write("log", &file);
    one.sync();
    for line in 0..40 {
        file.extend(noise(line, 100));
        one.write("log", &file);
        let report = one.sync();
        costs.push(report.sent_bytes);
        seqs.push((report.seq, file.len()));
    }
    // At times one is written whole, so that no row of deltas is too long.
    assert!(costs.iter().filter(|cost| **cost > 2000).count() <= 6, "{costs:?}");
    let mut other = room.device();
    other.sync();
    for (seq, length) in seqs {
        assert!(other.version("log", seq).expect("kept") == file[..length], "at {seq}");
    }
}

#[test]
fn two_devices_edit_in_turn_and_cleanups_keep_what_is_left() {
    let mut room = Room::new();
    let mut devices = [room.device(), room.device()];
    let (mut file, mut costs) = (noise(1, LENGTH), Vec::new());
    devices[0].write("report", &file);
    devices[0].sync();
    for round in 0..12_usize {
        let device = &mut devices[round % 2];
        device.sync();
        file[round * 10_000 + 77] ^= 1;
        file.extend([round as u8; 10]);
        device.write("report", &file);
        let report = device.sync();
        costs.push(report.sent_bytes);
        if round % 5 == 4 {
            device.keep_nothing_old(&room);
            device.cleanup();
        }
    }
    devices[0].keep_nothing_old(&room);
    for _ in 0..3 {
        devices[0].sync();
        devices[0].cleanup();
    }
    // Of what it receives a device keeps as much as of what it sends; and once its last chunk is the ninth in a row.
    assert!(costs.iter().filter(|cost| **cost > 6000).count() <= 1, "{costs:?}");
    assert!(room.found(&["report"]) == [Some(file)]);
}

#[test]
fn device_that_is_told_to_writes_whole_chunks_and_keeps_nothing_of_files() {
    let mut room = Room::new();
    let mut one = room.device();
    one.engine.options.deltas = DeltaBudget::Off;
    let mut file = noise(1, LENGTH);
    for place in 50_000..50_003 {
        file[place] ^= 1;
        one.write("report", &file);
        assert!(one.sync().sent_bytes > 8000);
    }
    assert!(!one.engine.state.has_bases().expect("read"));
    // Told otherwise, it has to keep something first.
    one.engine.options.deltas = DeltaBudget::default();
    for is_whole in [true, false] {
        file[60_000] = file[60_000].wrapping_add(1);
        one.write("report", &file);
        assert_eq!(one.sync().sent_bytes > 8000, is_whole);
    }
}
