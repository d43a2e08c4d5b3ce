//! A store of several loses everything that it had.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::background::{start_watch, wait_until};
use crate::damage::objects;
use crate::several::Several;
use crate::support::{Device, noise, terminate};

/// Takes everything out of a store, also what says that a store is there. What tells which store it is goes last and at once: from
/// then on somebody may begin to fill it.
fn empty(several: &Several, number: usize) {
    let folder = several.store(number);
    let away = tempfile::tempdir_in(several.room.path()).unwrap().keep();
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort_by_key(|name| name == "workspaces");
    for name in names {
        fs::rename(folder.join(&name), away.join(&name)).unwrap();
    }
}

/// Everything is where it belongs, and the store alone is as good as any other.
fn assert_whole(several: &Several, number: usize, lost: usize) {
    several.settle();
    let found = several.other.run(&["check", "--read-data", "--json"]).ok().json();
    let wrong = ["missing", "damaged", "lost"].map(|name| found[name].as_u64());
    assert_eq!(wrong, [Some(0); 3], "{found}");
    several.lose(lost);
    let third = Device::new(several.room.path(), "third");
    several.clone_into(&third, number);
    assert_eq!(third.tree(), several.one.tree());
    third.write("by the third", noise(200_000));
    third.sync().ok();
    several.settle();
    assert!(several.one.has("by the third"));
    let logs = [&several.one, &third].map(|device| device.run(&["log", "--json"]).ok().json());
    assert_eq!(logs[0], logs[1]);
}

/// Waits until nothing is missing any more in any store. Each look takes the folder from the watch for a moment, which must get
/// to something in between.
#[expect(clippy::print_stdout, reason = "a test that fails says what it saw last")]
fn wait_until_whole(several: &Several) {
    let mut last = Value::Null;
    wait_until("a store that has everything again", || {
        std::thread::sleep(Duration::from_millis(500));
        let found = several.other.run(&["check", "--json"]).json();
        if found != last {
            println!("{found}");
            last = found.clone();
        }
        found["missing"] == 0 && found["unseen_stores"].as_array().is_some_and(Vec::is_empty)
    });
}

#[test]
fn emptied_store_is_filled_again_by_those_who_watch() {
    for kind in [["--replicas", "2"], ["--erasure", "2/3"]] {
        let several = Several::synced(3, &kind);
        several.one.write("large", noise(5 << 20));
        several.settle();
        for device in [&several.one, &several.other] {
            fs::write(device.home.join("config.toml"), "renew_after_s = 1\n").unwrap();
        }
        let mut watches = [start_watch(&several.one), start_watch(&several.other)];
        empty(&several, 1);
        several.one.write("while it is empty", noise(100_000));
        wait_until("what is written meanwhile", || several.other.has("while it is empty"));
        wait_until_whole(&several);
        for watch in &mut watches {
            terminate(watch, Signal::TERM);
        }
        assert_whole(&several, 1, 0);
    }
}

#[test]
fn a_command_in_between_does_not_end_the_filling_of_an_emptied_store() {
    let several = Several::synced(3, &["--replicas", "3"]);
    for (number, part) in noise(6 << 20).chunks(1 << 20).enumerate() {
        several.one.write(&format!("large{number}"), part);
        several.one.sync().ok();
    }
    several.settle();
    // So slow that a command comes in between also on a busy machine.
    let config = "renew_after_s = 1\nscrub_bytes_per_second = 400000\n";
    fs::write(several.other.home.join("config.toml"), config).unwrap();
    let mut watch = start_watch(&several.other);
    empty(&several, 1);
    wait_until("a store that gets its first pack", || {
        several.store(1).exists() && !objects(&several.store(1), "/packs/").is_empty()
    });
    let found = several.other.run(&["check", "--json"]).json();
    assert_ne!(found["missing"], 0, "it is under way: {found}");
    wait_until_whole(&several);
    terminate(&mut watch, Signal::TERM);
    assert_whole(&several, 1, 0);
}

#[test]
fn emptied_store_is_filled_again_when_the_user_says_so() {
    let several = Several::synced(3, &["--replicas", "2"]);
    several.other.write("written meanwhile", noise(300_000));
    let refused = several.one.run(&["backend", "renew", "s1"]).ends_with(2);
    assert!(refused.stderr.contains("was not emptied"), "{}", refused.stderr);
    empty(&several, 1);
    let told = several.one.run(&["backend", "check", "s1"]);
    assert!(told.code != 0 && told.stderr.contains("syncline backend renew s1"), "{told:?}");
    several.one.run(&["backend", "renew", "s1"]).ok();
    // A device that has not heard of it finds a store that is not what it was, and then hears of it.
    several.other.sync().ok();
    // Once more, with an identity that is not its id.
    empty(&several, 1);
    several.other.run(&["backend", "renew", "s1"]).ok();
    several.one.sync().ok();
    several.one.run(&["backend", "renew", "s1"]).ends_with(2);
    assert_whole(&several, 1, 2);
    several.lose(1);
    several.one.run(&["backend", "renew", "s1"]).ends_with(6);
}
