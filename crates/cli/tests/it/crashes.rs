//! The kill -9 rig of `xtask`, in short; `cargo xtask crash` runs it at length.

use std::path::PathBuf;

use xtask::crash::{CrashOptions, run};

use crate::support::SYNCLINE;

fn kill(is_served: bool, seed: u64) {
    // In memory where there is some: what is tried is the program, not the disk.
    let memory = std::path::Path::new("/dev/shm");
    let room = match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    let options = CrashOptions {
        binary: PathBuf::from(SYNCLINE),
        room: room.path().join("room"),
        seed,
        kills: 20,
        served: is_served,
        keep: false,
    };
    let report = run(&options).unwrap();
    assert!(report.violations.is_empty(), "{report}");
    assert_eq!(report.killed_clients(), 20);
    assert_eq!(report.killed_servers, if is_served { 20 } else { 0 });
}

#[test]
fn nothing_is_lost_when_clients_and_server_are_killed() {
    kill(true, 7);
}

#[test]
fn nothing_is_lost_when_clients_of_a_store_are_killed() {
    kill(false, 8);
}
