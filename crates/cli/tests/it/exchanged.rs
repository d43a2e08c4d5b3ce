//! The stores that keep the order of changes are exchanged.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::background::{start_watch, wait_until};
use crate::several::Several;
use crate::support::{Device, noise, terminate, tree};

fn url(several: &Several, number: usize) -> String {
    format!("file:{}", several.store(number).display())
}

fn add(several: &Several, device: &Device, number: usize) {
    device.run(&["backend", "add", &format!("s{number}"), &url(several, number)]).ok();
}

/// The names of the stores that keep the order of changes.
fn agreeing(device: &Device) -> Vec<String> {
    let listed = device.run(&["backend", "ls", "--json"]).ok().json();
    assert_eq!(listed["is_exchange_finished"], true, "{listed}");
    let stores = listed["stores"].as_array().unwrap();
    let mut names: Vec<String> = stores
        .iter()
        .filter(|store| store["agrees"] == true)
        .map(|store| store["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// Empties a store, as if it were given to somebody else.
fn wipe(folder: &Path) {
    fs::remove_dir_all(folder.join("workspaces")).unwrap();
    fs::remove_dir_all(folder.join("names")).unwrap();
}

fn is_empty(folder: &Path) -> bool {
    count_files(&folder.join("workspaces")) == 0
}

fn count_files(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let count = |path: std::path::PathBuf| if path.is_dir() { count_files(&path) } else { 1 };
    entries.flatten().map(|entry| count(entry.path())).sum()
}

fn third(several: &Several, name: &str, from: usize) -> Device {
    let third = Device::new(several.room.path(), name);
    several.clone_into(&third, from);
    third
}

#[test]
fn stores_are_exchanged_one_by_one_and_a_device_that_slept_goes_on() {
    for is_wiped in [false, true] {
        let several = Several::synced(3, &["--replicas", "2"]);
        let (one, sleeper) = (&several.one, &several.other);
        // As after a quarter of an hour.
        fs::write(sleeper.home.join("config.toml"), "send_ahead_s = 0\n").unwrap();
        sleeper.write("written while asleep", noise(300_000));
        add(&several, one, 3);
        one.run(&["backend", "rm", "s2"]).ok();
        assert_eq!(agreeing(one), ["s0", "s1", "s3"]);
        one.write("after the first", noise(400_000));
        one.sync().ok();
        add(&several, one, 4);
        one.run(&["backend", "rm", "s0"]).ok();
        assert_eq!(agreeing(one), ["s1", "s3", "s4"]);
        one.write("after the second", "small\n");
        one.sync().ok();
        if is_wiped {
            wipe(&several.store(0));
            wipe(&several.store(2));
        }
        several.settle();
        assert_eq!(agreeing(sleeper), ["s1", "s3", "s4"]);
        assert!(sleeper.has("after the second") && one.has("written while asleep"));
        for number in if is_wiped { vec![0, 2] } else { vec![] } {
            assert!(
                is_empty(&several.store(number)),
                "nothing was written to what is not a store any more"
            );
        }
        // Whoever comes new needs nothing of what was before.
        if !is_wiped {
            // A store that has left leads to those that there are.
            assert_eq!(tree(&third(&several, "led", 2).folder), tree(&one.folder));
        }
        let new = third(&several, "third", 4);
        assert_eq!(tree(&new.folder), tree(&one.folder));
        assert_eq!(
            new.run(&["log", "--json"]).ok().json(),
            one.run(&["log", "--json"]).ok().json()
        );
        several.lose(1);
        new.write("with two of three", noise(200_000));
        new.sync().ok();
        several.settle();
        assert!(one.has("with two of three"));
    }
}

#[test]
fn a_dead_store_is_replaced() {
    let several = Several::synced(3, &["--replicas", "2"]);
    several.lose(1);
    several.one.write("after the loss", noise(300_000));
    several.one.sync().ok();
    several.one.run(&["backend", "rm", "s1"]).ends_with(3);
    several.one.run(&["backend", "rm", "s1", "--dead"]).ok();
    add(&several, &several.one, 5);
    assert_eq!(agreeing(&several.one), ["s0", "s2", "s5"]);
    several.settle();
    let found = several.other.run(&["check", "--read-data", "--json"]).ok().json();
    assert_eq!((&found["missing"], &found["lost"]), (&0.into(), &0.into()), "{found}");
    assert_eq!(tree(&third(&several, "third", 5).folder), tree(&several.one.folder));
}

#[test]
fn the_only_store_is_exchanged() {
    let several = Several::synced(1, &[]);
    several.other.write("by the other", noise(500_000));
    add(&several, &several.one, 1);
    several.one.run(&["backend", "rm", "s0"]).ok();
    assert_eq!(agreeing(&several.one), ["s1"]);
    wipe(&several.store(0));
    // The other knows only what is gone, and says so instead of beginning anew there.
    several.other.sync().ends_with(8);
    assert!(is_empty(&several.store(0)));
    several.other.run(&["backend", "find", &url(&several, 0)]).ends_with(10);
    several.other.run(&["backend", "find", &url(&several, 1)]).ok();
    several.settle();
    assert!(several.one.has("by the other"));
    let new = third(&several, "third", 1);
    assert_eq!(tree(&new.folder), tree(&several.one.folder));
}

#[test]
fn both_devices_commit_while_the_stores_change() {
    for copies in ["1", "2"] {
        commit_during_a_change(copies);
    }
}

fn commit_during_a_change(copies: &str) {
    let several = Several::synced(3, &["--replicas", copies]);
    let mut watches = [start_watch(&several.other)];
    let (writer, room) = (several.other.clone(), several.store(2));
    // The store that stays sees every commit.
    let slots = move || count_files(&room);
    let files = std::thread::spawn(move || {
        for number in 0..20 {
            writer.write(&format!("during/{number}"), noise(70_000 + number));
            let before = slots();
            wait_until("a commit", || slots() > before);
        }
    });
    add(&several, &several.one, 3);
    several.one.write("by the one", noise(100_000));
    several.one.sync().ok();
    several.one.run(&["backend", "rm", "s0"]).ok();
    files.join().unwrap();
    let log = || several.one.run(&["sync", "--json"]).ok();
    wait_until("the last file", || {
        log();
        several.one.has("during/19") && several.other.has("by the one")
    });
    terminate(&mut watches[0], Signal::TERM);
    several.settle();
    for number in 0..20 {
        assert!(several.one.has(&format!("during/{number}")));
    }
    assert_eq!(agreeing(&several.other), ["s1", "s2", "s3"]);
    wipe(&several.store(0));
    several.settle();
    // What was written while the store was emptied lies in no other one by chance.
    let found = several.one.run(&["check", "--read-data", "--json"]).json();
    assert_eq!((&found["lost"], &found["damaged"]), (&0.into(), &0.into()), "{found}");
    let new = third(&several, "third", 3);
    assert_eq!(tree(&new.folder), tree(&several.one.folder));
}

#[test]
fn an_exchange_that_was_killed_goes_on_when_the_command_is_given_again() {
    for (joined, left) in [(1, 1), (3, 2), (4, 5), (6, 9), (9, 14)] {
        let several = Several::synced(3, &["--replicas", "2"]);
        // Kills the command once a store has got so many files more.
        let kill = |words: &[&str], store: usize, more: usize| {
            let store = several.store(store);
            let before = count_files(&store);
            let mut command = several.one.command(words);
            let command = command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            wait_until("the moment", || {
                count_files(&store) >= before + more || child.try_wait().unwrap().is_some()
            });
            let _ = child.kill();
            child.wait().unwrap();
        };
        let words = ["backend", "add", "s3", &url(&several, 3)];
        kill(&words, 3, joined);
        // Either it was not done, or it is done already.
        let again = several.one.run(&words);
        assert!([0, 1].contains(&again.code), "{again:?}");
        kill(&["backend", "rm", "s1"], 2, left);
        several.other.write("meanwhile", noise(150_000));
        several.other.sync().ok();
        let again = several.one.run(&["backend", "rm", "s1"]);
        assert!([0, 2].contains(&again.code), "{again:?}");
        several.settle();
        assert_eq!(agreeing(&several.one), ["s0", "s2", "s3"]);
        wipe(&several.store(1));
        several.settle();
        let found: Value = several.one.run(&["check", "--read-data", "--json"]).json();
        assert_eq!((&found["damaged"], &found["lost"]), (&0.into(), &0.into()), "{found}");
        let new = third(&several, "third", 3);
        assert_eq!(tree(&new.folder), tree(&several.other.folder));
    }
}

#[test]
fn a_watch_that_stood_still_while_stores_were_exchanged_and_wiped_goes_on() {
    let several = Several::synced(3, &["--replicas", "2"]);
    let mut watch = start_watch(&several.other);
    several.one.write("before", noise(100_000));
    several.one.sync().ok();
    wait_until("a file from before", || several.other.has("before"));
    let pid = Pid::from_child(&watch);
    kill_process(pid, Signal::STOP).unwrap();
    add(&several, &several.one, 3);
    several.one.run(&["backend", "rm", "s0"]).ok();
    add(&several, &several.one, 4);
    several.one.run(&["backend", "rm", "s2"]).ok();
    several.one.write("meanwhile", noise(100_000));
    several.one.sync().ok();
    wipe(&several.store(0));
    wipe(&several.store(2));
    several.other.write("of the sleeper", noise(100_000));
    kill_process(pid, Signal::CONT).unwrap();
    wait_until("a file from meanwhile", || several.other.has("meanwhile"));
    wait_until("a file of the sleeper", || {
        several.one.sync().ok();
        several.one.has("of the sleeper")
    });
    terminate(&mut watch, Signal::TERM);
    // Nothing that it may have written to stores that it had just seen has counted.
    let logs = [&several.one, &several.other].map(|device| {
        device.sync().ok();
        device.run(&["log", "--json"]).ok().json()
    });
    assert_eq!(logs[0], logs[1]);
    // The watch may have been ended before it knew that the exchange was finished; a sync ends with that.
    assert_eq!(agreeing(&several.other), ["s1", "s3", "s4"]);
    assert_eq!(tree(&third(&several, "third", 4).folder), tree(&several.one.folder));
}
