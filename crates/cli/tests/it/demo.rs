//! `syncline demo`: what `cargo xtask demo` shows with the release program.

use std::fs;

use crate::support::{Device, Run};

/// Every step that the demo tells of, in order.
const STEPS: [&str; 19] = [
    "prepare",
    "serve",
    "login, init",
    "laptop: first sync",
    "desktop: clone",
    "  check",
    "laptop: sync again",
    "both: change files",
    "both: sync",
    "  check",
    "conflict",
    "resolve --keep mine",
    "  check",
    "restore",
    "  check",
    "watch",
    "  check",
    "no server",
    "  check",
];

#[test]
fn demo_plays_all_its_steps_and_leaves_nothing_behind() {
    let room = tempfile::tempdir().unwrap();
    let place = room.path().join("temporary");
    fs::create_dir(&place).unwrap();
    let device = Device::new(room.path(), "one");
    let mut command = device.command(&["demo", "--json"]);
    let run = Run::of(command.env("TMPDIR", &place).output().unwrap()).ok();
    let told = run.json();
    let steps: Vec<_> =
        told["steps"].as_array().unwrap().iter().map(|s| s["step"].as_str().unwrap()).collect();
    assert_eq!(steps, STEPS, "{told}");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "the demo cleans up");
}
