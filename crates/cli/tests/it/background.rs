//! `watch` and `daemon`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{BOTH, Device, Pair, fill, terminate};

/// Starts to watch and waits until it does.
pub(crate) fn start_watch(device: &Device) -> Child {
    let mut command = device.command(&["watch", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("started"), "{first}");
    std::thread::spawn(move || lines.for_each(drop));
    child
}

/// Waits until something is so; gives up after two minutes, for a busy machine is slow.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what} did not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn watched_folders_stay_equal() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, fill);
        let mut watches = [start_watch(&pair.one), start_watch(&pair.other)];
        pair.one.write("quick", "one\n");
        wait_until("a file from the first", || pair.other.has("quick"));
        assert_eq!(pair.other.read("quick"), b"one\n");
        pair.other.write("new/folder/file", "two\n");
        wait_until("a file in a new folder", || pair.one.has("new/folder/file"));
        std::fs::rename(pair.one.folder.join("deep"), pair.one.folder.join("deeper")).unwrap();
        wait_until("a renamed folder", || {
            pair.other.has("deeper/er/b.txt") && !pair.other.has("deep")
        });
        std::fs::remove_file(pair.other.folder.join("quick")).unwrap();
        wait_until("a deletion", || !pair.one.has("quick"));
        assert_eq!(terminate(&mut watches[0], Signal::INT), Some(130));
        assert_eq!(terminate(&mut watches[1], Signal::TERM), Some(143));
        pair.settle();
        pair.assert_equal();
    }
}

#[test]
fn a_watch_outlives_its_server() {
    let room = tempfile::tempdir().unwrap();
    drop(room);
    let mut pair = Pair::synced(true, fill);
    let mut watch = start_watch(&pair.one);
    pair.server.as_mut().unwrap().stop();
    pair.one.write("a.txt", "while the server is away\n");
    wait_until("the watch notices", || {
        let status = pair.one.run(&["daemon", "status", "--json"]).json();
        status["watch"]["last_error"].is_string()
    });
    assert_eq!(terminate(&mut watch, Signal::TERM), Some(143));
}

#[test]
fn a_daemon_starts_says_how_it_is_and_stops() {
    let pair = Pair::synced(false, fill);
    pair.one.run(&["daemon", "status"]).ends_with(1);
    pair.one.run(&["daemon", "start"]).ok();
    let pid = pair.one.run(&["daemon", "status", "--json"]).ok().json()["watch"]["pid"].clone();
    assert!(pid.is_number());
    assert_eq!(
        pair.one.run(&["daemon", "start", "--json"]).ok().json()["pid"],
        pid,
        "a second start changes nothing"
    );
    pair.one.write("by the daemon", "x");
    wait_until("the daemon sends", || {
        pair.other.sync().ok();
        pair.other.has("by the daemon")
    });
    pair.one.run(&["daemon", "stop"]).ok();
    pair.one.run(&["daemon", "status"]).ends_with(1);
    pair.one.run(&["daemon", "stop"]).ok();
    pair.one.sync().ok();
}

#[test]
fn a_conflict_is_decided_beside_a_running_daemon() {
    let pair = Pair::synced(true, fill);
    pair.one.write("a.txt", "one\n");
    pair.other.write("a.txt", "other\n");
    pair.one.sync().ok();
    pair.other.sync().ends_with(5);
    let mut watch = start_watch(&pair.other);
    pair.other.run(&["resolve", "a.txt", "--keep", "mine"]).ok();
    pair.other.write("after", "the watch goes on\n");
    wait_until("the watch goes on", || {
        pair.one.sync();
        pair.one.has("after")
    });
    assert_eq!(pair.one.read("a.txt"), b"other\n");
    assert_eq!(terminate(&mut watch, Signal::INT), Some(130));
    pair.settle();
    pair.assert_equal();
}

#[test]
fn the_unit_names_program_home_and_folder() {
    let pair = Pair::synced(false, fill);
    let unit = pair.one.run(&["daemon", "install", "--dry-run"]).ok().stdout;
    assert!(
        unit.contains("ExecStart=")
            && unit.contains("SYNCLINE_HOME=")
            && unit.contains("watch --no-input"),
        "{unit}"
    );
    let path = pair.one.run(&["daemon", "install", "--json"]).ok().json()["unit"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(std::fs::read_to_string(path).unwrap().contains("[Install]"));
}

#[test]
fn a_watch_follows_the_ignore_rules() {
    let pair = Pair::synced(false, |device| {
        device.write(".synclineignore", "build/\n*.log\n");
        device.write("build/out.o", "made\n");
        device.write("deep/er/a.log", "said\n");
        device.write("kept.txt", "kept\n");
    });
    let mut watches = [start_watch(&pair.one), start_watch(&pair.other)];
    assert!(pair.other.has("kept.txt") && !pair.other.has("build"));
    // What the rules let go was there all the time, and nothing else tells of it.
    pair.one.write(".synclineignore", "*.tmp\n");
    wait_until("files that are ignored no more", || {
        pair.other.has("build/out.o") && pair.other.has("deep/er/a.log")
    });
    // A directory that was passed over is watched now, and the rules hold on the other device.
    pair.one.write("build/more.o", "made later\n");
    pair.other.write("deep/own.tmp", "ignored here\n");
    pair.other.write("deep/own.log", "not ignored here\n");
    wait_until("a new file in such a directory", || pair.other.has("build/more.o"));
    wait_until("a name that is free on the other device", || pair.one.has("deep/own.log"));
    assert!(!pair.one.has("deep/own.tmp"));
    for watch in &mut watches {
        assert_eq!(terminate(watch, Signal::INT), Some(130));
    }
}

#[test]
fn rules_in_a_directory_hold_there_and_below() {
    let pair = Pair::synced(false, |device| {
        device.write(".synclineignore", "*.log\n");
        device.write("app/.synclineignore", "/target/\n!keep.log\n*.o\n");
        for path in
            ["app/target/x", "app/sub/a.o", "app/keep.log", "app/sub/target/y", "a.o", "b.log"]
        {
            device.write(path, path);
        }
    });
    let synced = ["app/.synclineignore", "app/keep.log", "app/sub/target/y", "a.o"];
    let ignored = ["app/target", "app/sub/a.o", "b.log"];
    assert_eq!(synced.map(|path| pair.other.has(path)), [true; 4]);
    assert_eq!(ignored.map(|path| pair.other.has(path)), [false; 3]);
    assert_eq!(pair.one.run(&["status", "--json"]).ok().json()["new"], serde_json::json!([]));
    let mut watch = start_watch(&pair.one);
    pair.one.write("app/.synclineignore", "*.o\n");
    wait_until("what the directory's rules let go", || {
        pair.other.sync().ok();
        pair.other.has("app/target/x")
    });
    // A rule that names what is synced already stops its syncing and deletes it nowhere.
    pair.one.write("app/.synclineignore", "target\n*.o\n");
    wait_until("the rules", || {
        pair.other.sync().ok();
        pair.other.read("app/.synclineignore") == b"target\n*.o\n"
    });
    assert!(pair.other.has("app/target/x") && pair.one.has("app/target/x"));
    assert_eq!(terminate(&mut watch, Signal::INT), Some(130));
}
