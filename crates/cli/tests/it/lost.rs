//! Packs that a store has lost, and devices that still have what was in them.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::background::{start_watch, wait_until};
use crate::support::{BOTH, Device, Pair, fill, noise, terminate, tree};

/// Every pack, or block of one, below a folder.
fn packs(below: &Path) -> Vec<PathBuf> {
    let (mut found, mut waiting) = (Vec::new(), vec![below.to_owned()]);
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            let text = path.to_string_lossy().into_owned();
            if path.is_dir() {
                waiting.push(path);
            } else if text.contains("/packs/") || text.contains("/blocks/") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn lose_all(below: &Path) -> usize {
    let all = packs(below);
    for pack in &all {
        fs::remove_file(pack).unwrap();
    }
    all.len()
}

/// Where the packs of a pair rest.
fn place(pair: &Pair) -> PathBuf {
    pair.server.as_ref().map_or_else(|| pair.store(), |server| server.data.clone())
}

fn third(pair: &Pair) -> Device {
    let device = Device::new(pair.room.path(), "third");
    if let Some(server) = &pair.server {
        server.login(&device, "third");
    }
    let backend = format!("disk=file:{}", pair.store().display());
    let folder = device.folder.to_str().unwrap().to_owned();
    let mut words = vec!["clone", "Notes", &folder];
    if pair.server.is_none() {
        words.extend(["--backend", &backend]);
    }
    device.run(&words).ok();
    device
}

#[test]
fn lost_packs_come_back_from_the_folder() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, fill);
        pair.one.write("more", noise(200_000));
        pair.settle();
        assert!(lose_all(&place(&pair)) > 1);
        let found = pair.one.run(&["check", "--json"]).ends_with(8).json();
        let lost = found["lost_versions"].as_array().unwrap();
        assert!(lost.iter().any(|version| version["path"] == "big.bin"), "{found}");
        // Whoever learns of the packs only now finds what is in them, too.
        let found = pair.other.run(&["check", "--repair", "--json"]).ok().json();
        assert!(found["put_back_bytes"].as_u64() >= Some(3 << 20), "{found}");
        pair.one.run(&["check", "--read-data"]).ok();
        pair.one.run(&["cat", "big.bin"]).ok();
        let third = third(&pair);
        assert_eq!(third.tree(), pair.one.tree());
        // What is cut from the same bytes is known to be stored.
        third.write("again", noise(3 << 20));
        let sent = third.sync().ok().json();
        assert!(sent["sent_bytes"].as_u64() < Some(1 << 20), "{sent}");
        pair.settle();
        pair.assert_equal();
    }
}

#[test]
fn each_of_two_devices_puts_back_what_it_has() {
    let pair = Pair::synced(false, |one| {
        one.write("left", noise(300_000));
        one.write("right", &noise(700_000)[300_000..]);
    });
    let whole = tree(&pair.one.folder);
    lose_all(&pair.store());
    // One file of the pack is on each device, and neither has told the log of the other.
    let (one, other) = (&pair.one, &pair.other);
    let aside = |device: &Device, name: &str| {
        fs::rename(device.folder.join(name), pair.room.path().join(name)).unwrap();
    };
    aside(one, "right");
    aside(other, "left");
    let found = one.run(&["check", "--repair", "--json"]).ends_with(8).json();
    let lost = found["lost_versions"].as_array().unwrap();
    assert_eq!((lost.len(), &lost[0]["path"]), (1, &"right".into()), "{found}");
    let found = other.run(&["check", "--repair", "--json"]).ok().json();
    assert_eq!((&found["lost"], &found["lost_versions"]), (&0.into(), &serde_json::json!([])));
    assert!(found["put_back_packs"].as_u64() > Some(0), "{found}");
    assert_eq!(third(&pair).tree(), whole);
    one.run(&["check", "--read-data"]).ok();
}

#[test]
fn versions_that_nobody_has_are_named_and_the_rest_comes_back() {
    let pair = Pair::synced(false, |one| one.write("kept", noise(300_000)));
    pair.one.write("edited", &noise(500_000)[400_000..]);
    pair.one.sync().ok();
    pair.one.write("edited", vec![7; 50]);
    pair.one.sync().ok();
    lose_all(&pair.store());
    let run = pair.one.run(&["check", "--repair", "--json"]).ends_with(8);
    let lost = run.json()["lost_versions"].clone();
    assert_eq!(lost.as_array().unwrap().len(), 1, "{lost}");
    assert_eq!((&lost[0]["path"], &lost[0]["is_current"]), (&"edited".into(), &false.into()));
    assert_eq!(third(&pair).tree(), pair.one.tree());
}

#[test]
fn what_is_right_in_a_damaged_pack_is_saved_and_the_pack_is_not_believed_again() {
    let pair = Pair::synced(false, |one| {
        one.write("first", noise(1 << 20));
        one.write("second", &noise(2 << 20)[1 << 20..]);
        one.write("third", &noise(3 << 20)[2 << 20..]);
    });
    // Only the history has them, so no folder helps.
    for name in ["first", "second", "third"] {
        fs::remove_file(pair.one.folder.join(name)).unwrap();
    }
    pair.settle();
    let [pack] = packs(&pair.store()).try_into().expect("one pack");
    let mut bytes = fs::read(&pack).unwrap();
    bytes[100] ^= 1;
    fs::write(&pack, bytes).unwrap();
    pair.one.run(&["check"]).ok();
    let repair = ["check", "--read-data", "--repair", "--json"];
    let found = pair.one.run(&repair).ends_with(8).json();
    let lost = found["lost_versions"].as_array().unwrap();
    assert!((1..3).contains(&lost.len()), "{found}");
    assert!(found["put_back_bytes"].as_u64() > Some(1 << 20), "{found}");
    // Another device finds what was saved; again there is nothing to do.
    let found = pair.other.run(&repair).ends_with(8).json();
    assert_eq!(found["put_back_packs"], 0, "{found}");
    assert_eq!(found["lost_versions"].as_array().unwrap().len(), lost.len());
    // What was lost is not taken for stored when somebody has it again.
    pair.other.write("as before", noise(1 << 20));
    pair.other.sync().ok();
    pair.one.run(&repair).ok();
    pair.one.sync().ok();
    assert_eq!(pair.one.read("as before"), noise(1 << 20));
}

#[test]
fn a_watch_finds_in_the_background_what_is_lost_and_puts_it_back() {
    let pair = Pair::synced(false, |one| one.write("file", noise(300_000)));
    assert_eq!(pair.one.run(&["status", "--json"]).ok().json()["scrub"], serde_json::Value::Null);
    lose_all(&pair.store());
    let mut watch = start_watch(&pair.one);
    wait_until("the pack", || !packs(&pair.store()).is_empty());
    terminate(&mut watch, Signal::TERM);
    assert_eq!(third(&pair).read("file"), noise(300_000));
    pair.one.run(&["check", "--read-data"]).ok();
    let scrub = pair.one.run(&["check", "--json"]).ok().json()["scrub"].clone();
    assert_eq!(scrub["packs"], 1, "{scrub}");
    // Who does not want it says so.
    fs::write(pair.other.home.join("config.toml"), "scrub_days = 0\n").unwrap();
    let mut watch = start_watch(&pair.other);
    pair.other.write("more", "x");
    pair.one.sync().ok();
    wait_until("a sync", || {
        pair.other.run(&["status", "--json"]).ok().json()["new"].as_array().unwrap().is_empty()
    });
    terminate(&mut watch, Signal::TERM);
    let status = pair.other.run(&["status", "--json"]).ok().json();
    assert_eq!(status["scrub"], serde_json::Value::Null);
}
