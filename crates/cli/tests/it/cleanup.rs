//! Cleanups, as people ask for them, beside devices that are slow or away.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::background::{start_watch, wait_until};
use crate::support::{BOTH, Device, Pair, fill, noise, terminate, tree};

/// Bytes that no other seed shares.
fn unlike(seed: u8, length: usize) -> Vec<u8> {
    noise(length).into_iter().map(|byte| byte ^ seed.wrapping_mul(29)).collect()
}

fn files(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let each = |path: PathBuf| if path.is_dir() { files(&path) } else { 1 };
    entries.map(|entry| each(entry.unwrap().path())).sum()
}

fn bytes(folder: &Path) -> u64 {
    let each = |path: PathBuf| match path.is_dir() {
        true => bytes(&path),
        // A cleanup may remove it meanwhile.
        false => fs::metadata(&path).map_or(0, |found| found.len()),
    };
    fs::read_dir(folder).unwrap().map(|entry| each(entry.unwrap().path())).sum()
}

/// What the workspace has of the store.
fn room(pair: &Pair) -> PathBuf {
    let mut workspaces = fs::read_dir(pair.store().join("workspaces")).unwrap();
    workspaces.next().unwrap().unwrap().path()
}

/// A new device, whose clone ends with this code.
fn third(pair: &Pair, code: i32) -> Device {
    let third = Device::new(pair.room.path(), "third");
    let backend = format!("disk=file:{}", pair.store().display());
    let folder = third.folder.to_str().unwrap().to_owned();
    third.run(&["clone", "Notes", &folder, "--backend", &backend]).ends_with(code);
    third
}

#[test]
fn old_versions_go_by_the_policy_that_is_shown_and_set() {
    let pair = Pair::synced(false, fill);
    pair.one.write("big.bin", unlike(1, 1 << 20));
    pair.one.sync().ok();
    let young = pair.one.run(&["cleanup", "--json"]).ok().json();
    assert_eq!(young["keeps"], "all:10m,1m:1h,1h:3d,1d:30d,deleted:30d");
    assert_eq!(young["removed_versions"], 0);
    assert!(young["version"].is_null());
    let stored = bytes(&room(&pair).join("packs"));
    let rules = ["cleanup", "--keep", "deleted:30d", "--json"];
    let would = pair.one.run(&[&["--dry-run"], &rules[..]].concat()).ok().json();
    assert_eq!((&would["removed_versions"], &would["dry_run"]), (&1.into(), &true.into()));
    assert_eq!(bytes(&room(&pair).join("packs")), stored, "nothing was removed");
    let done = pair.one.run(&rules).ok().json();
    assert_eq!((&done["removed_versions"], &done["keeps"]), (&1.into(), &"deleted:30d".into()));
    assert_eq!(done["removed_packs"], would["removed_packs"]);
    // What else was in the pack is in another one now.
    let removed = done["removed_bytes"].as_u64().unwrap();
    let written = done["written_bytes"].as_u64().unwrap();
    assert!(removed > written && done["rewritten_packs"] == 1, "{done}");
    assert_eq!(bytes(&room(&pair).join("packs")), stored - removed + written);
    // Each device knows, and says so.
    pair.other.sync().ok();
    for device in [&pair.one, &pair.other] {
        let log = device.run(&["log", "big.bin", "--json"]).ok().json();
        let versions = log["versions"].as_array().unwrap();
        assert!(versions[0]["removed_by_cleanup"].is_null());
        assert_eq!(versions[1]["removed_by_cleanup"], done["version"]);
        let old = format!("v{}", versions[1]["version"]);
        for words in [&["cat", "big.bin", "--at", &old][..], &["restore", "big.bin", "--at", &old]]
        {
            let gone = device.run(words).ends_with(1);
            assert!(gone.stderr.contains("E0213"), "{}", gone.stderr);
        }
        assert_eq!(device.run(&["cleanup", "--json"]).ok().json()["keeps"], "deleted:30d");
    }
    pair.assert_equal();
    assert_eq!(tree(&third(&pair, 0).folder), tree(&pair.one.folder));
    pair.one.run(&["check", "--read-data"]).ok();
    pair.one.run(&["cleanup", "--keep", "1d:3d,1h:30d"]).ends_with(2);
}

#[test]
fn upload_that_was_cut_off_before_its_commit_is_made_anew() {
    let pair = Pair::synced(false, fill);
    let store = room(&pair);
    let packs = files(&store.join("packs"));
    pair.other.write("late", unlike(2, 1 << 20));
    pair.other.run(&["checkin"]).ok();
    // The packs arrive, and then something is in the way of the commit.
    let slot = store.join("log").join(format!("{:020}", files(&store.join("log")) + 1));
    fs::create_dir_all(slot.join("r0/in the way")).unwrap();
    assert_ne!(pair.other.run(&["push"]).code, 0);
    fs::remove_dir_all(slot).unwrap();
    assert_eq!(files(&store.join("packs")), packs + 1);
    let done = pair.one.run(&["cleanup", "--json"]).ok().json();
    assert_eq!(done["removed_packs"], 1);
    assert_eq!(files(&store.join("packs")), packs);
    pair.other.sync().ok();
    pair.settle();
    pair.assert_equal();
    assert_eq!(third(&pair, 0).read("late"), unlike(2, 1 << 20));
    pair.one.run(&["check", "--read-data"]).ok();
}

#[test]
fn device_that_was_away_for_two_cleanups_loses_nothing() {
    let pair = Pair::synced(false, |device| {
        for seed in 0..4 {
            device.write(&format!("file{seed}"), unlike(seed, 300_000));
        }
    });
    for seed in 0..2_u8 {
        pair.one.write(&format!("file{seed}"), unlike(seed + 100, 300_000));
        pair.one.sync().ok();
        let done = pair.one.run(&["cleanup", "--keep", "deleted:0s", "--json"]).ok().json();
        assert_eq!(done["removed_versions"], 1);
    }
    // Off line all the time: edits, and a copy of what the others have long replaced.
    pair.other.write("copy", unlike(0, 300_000));
    pair.other.write("file1", unlike(50, 300_000));
    pair.other.write("file3", unlike(51, 300_000));
    pair.other.run(&["checkin"]).ok();
    pair.settle();
    pair.assert_equal();
    // Both have changed one of the files.
    let third = third(&pair, 5);
    assert_eq!(tree(&third.folder), tree(&pair.one.folder));
    assert_eq!(third.read("copy"), unlike(0, 300_000));
    assert_eq!(third.read("file0"), unlike(100, 300_000));
    assert_eq!(third.read("file3"), unlike(51, 300_000));
    pair.one.run(&["check", "--read-data"]).ok();
}

#[test]
fn cleanup_works_beside_the_watches_of_both_devices() {
    let pair = Pair::synced(false, fill);
    let mut watches = [start_watch(&pair.one), start_watch(&pair.other)];
    for seed in 1..3 {
        pair.one.write("big.bin", unlike(seed, 1 << 20));
        wait_until("a version", || {
            pair.other.has("big.bin") && pair.other.read("big.bin") == unlike(seed, 1 << 20)
        });
    }
    let would = pair.one.run(&["cleanup", "--dry-run", "--keep", "deleted:0s", "--json"]);
    let would = would.ok().json()["removed_versions"].clone();
    // A watch may have seen a file half written.
    assert!(would.as_u64().unwrap() > 0, "{would}");
    let done = pair.one.run(&["cleanup", "--keep", "deleted:0s", "--json"]).ok().json();
    assert_eq!((&done["removed_versions"], &done["left_packs"]), (&would, &0.into()));
    // However quickly the commands follow each other, the watch comes back each time.
    for _ in 0..5 {
        pair.one.run(&["cleanup"]).ok();
    }
    // Both watches go on behind the fence.
    pair.one.write("after", unlike(3, 1 << 20));
    pair.other.write("after, too", unlike(4, 1 << 20));
    wait_until("the watches go on", || pair.other.has("after") && pair.one.has("after, too"));
    for watch in &mut watches {
        assert_eq!(terminate(watch, Signal::INT), Some(130));
    }
    pair.settle();
    pair.assert_equal();
    assert_eq!(third(&pair, 0).read("after, too"), unlike(4, 1 << 20));
    pair.one.run(&["check", "--read-data"]).ok();
}

#[test]
fn cleanup_on_a_server_removes_old_versions_while_others_are_away() {
    let pair = Pair::synced(true, |device| {
        for seed in 0..4 {
            device.write(&format!("file{seed}"), unlike(seed, 300_000));
        }
    });
    let server = pair.server.as_ref().unwrap();
    let stored = || bytes(&server.data.join("store"));
    // Off line all the time: edits, and a copy of what the others have long replaced.
    pair.other.write("copy", unlike(0, 300_000));
    pair.other.write("file3", unlike(51, 300_000));
    pair.other.run(&["checkin"]).ok();
    for seed in 0..2_u8 {
        pair.one.write(&format!("file{seed}"), unlike(seed + 100, 300_000));
        pair.one.sync().ok();
        let before = stored();
        let done = pair.one.run(&["cleanup", "--keep", "deleted:0s", "--json"]).ok().json();
        assert_eq!((&done["removed_versions"], &done["left_packs"]), (&1.into(), &0.into()));
        let removed = done["removed_bytes"].as_u64().unwrap();
        let written = done["written_bytes"].as_u64().unwrap();
        assert_eq!(stored(), before - removed + written);
        // What is needed of the pack is written anew, without the rest.
        assert!(removed > written, "{done}");
    }
    pair.settle();
    pair.assert_equal();
    for (name, seed) in [("copy", 0), ("file0", 100), ("file1", 101), ("file3", 51)] {
        assert_eq!(pair.one.read(name), unlike(seed, 300_000), "{name}");
    }
    let third = Device::new(pair.room.path(), "third");
    server.login(&third, "third");
    third.run(&["clone", "Notes", third.folder.to_str().unwrap()]).ok();
    assert_eq!(tree(&third.folder), tree(&pair.one.folder));
    assert_eq!(third.run(&["cleanup", "--json"]).ok().json()["keeps"], "deleted:0s");
}

/// Sets how often a watch of this device cleans up by itself.
fn clean_up_after(device: &Device, seconds: u64) {
    fs::write(device.home.join("config.toml"), format!("cleanup_after_s = {seconds}\n")).unwrap();
}

#[test]
fn watch_cleans_up_by_itself_and_goes_on() {
    for is_served in BOTH {
        watch_cleans_up(&Pair::synced(is_served, fill));
    }
}

fn watch_cleans_up(pair: &Pair) {
    pair.one.run(&["cleanup", "--keep", "deleted:0s"]).ok();
    for seed in 1..3 {
        pair.one.write("big.bin", unlike(seed, 4 << 20));
        pair.settle();
    }
    let packs = match &pair.server {
        Some(server) => server.data.join("store"),
        None => room(pair).join("packs"),
    };
    let stored = || bytes(&packs);
    let before = stored();
    // One of the devices is told not to.
    clean_up_after(&pair.other, 0);
    clean_up_after(&pair.one, 1);
    let mut watches = [start_watch(&pair.one), start_watch(&pair.other)];
    // The time is that of the log, so that something must happen in it.
    let mut count = 0;
    wait_until("a cleanup", || {
        if !pair.other.has("tick") || pair.other.read("tick") == count.to_string().as_bytes() {
            count += 1;
            pair.one.write("tick", count.to_string());
        }
        stored() + (3 << 20) < before
    });
    pair.other.write("after", unlike(3, 1 << 20));
    wait_until("the watches go on", || pair.one.has("after"));
    for watch in &mut watches {
        assert_eq!(terminate(watch, Signal::INT), Some(130));
    }
    pair.settle();
    pair.assert_equal();
    let log = pair.other.run(&["log", "big.bin", "--json"]).ok().json();
    let removed = log["versions"].as_array().unwrap();
    assert!(removed[0]["removed_by_cleanup"].is_null());
    assert!(removed[1]["removed_by_cleanup"].is_number());
}
