//! The history is damaged in one store: `check` names every object, and `check --repair` writes anew what is decided.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::several::Several;
use crate::support::{Device, Pair, Run, fill, noise};

/// The part of a store that holds the workspace.
fn part(store: &Path) -> PathBuf {
    let parts = fs::read_dir(store.join("workspaces")).unwrap();
    parts.map(|entry| entry.unwrap().path()).find(|path| path.join("log").is_dir()).unwrap()
}

/// All objects of the history in a store, by their keys.
fn history(store: &Path) -> BTreeSet<String> {
    let (part, mut found) = (part(store), BTreeSet::new());
    let kinds = ["genesis", "log", "pool", "checkpoint", "keys"];
    let mut waiting: Vec<PathBuf> = kinds.iter().map(|kind| part.join(kind)).collect();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.is_file() {
            found.insert(path.strip_prefix(&part).unwrap().to_str().unwrap().to_owned());
        }
    }
    found
}

fn flip(store: &Path, key: &str) {
    let path = part(store).join(key);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

/// What `check` has found wrong with the history: store, object, and what becomes of it.
fn findings(run: &Run) -> BTreeSet<(String, String, String)> {
    let found = run.json();
    let of = |finding: &Value| {
        let word = |name: &str| finding[name].as_str().unwrap().to_owned();
        (word("store"), word("object"), word("fate"))
    };
    found["history"]["findings"].as_array().unwrap().iter().map(of).collect()
}

fn of_store(name: &str, keys: &BTreeSet<String>, fate: &str) -> BTreeSet<(String, String, String)> {
    keys.iter().map(|key| (name.to_owned(), key.clone(), fate.to_owned())).collect()
}

/// A workspace in three stores with some history, all of it whole.
fn three() -> Several {
    let several = Several::synced(3, &["--replicas", "2"]);
    for number in 0..3 {
        several.one.write("by one", format!("{number}, by one\n"));
        several.one.sync().ok();
        several.other.write("by the other", noise(100_000 + number));
        several.other.sync().ok();
    }
    several.settle();
    several.one.run(&["check", "--repair"]).ok();
    assert_eq!(findings(&several.one.run(&["check", "--json"]).ok()), BTreeSet::new());
    several
}

#[test]
fn every_flipped_object_of_the_history_is_named_and_healed() {
    let several = three();
    let damaged = several.store(0);
    let keys = history(&damaged);
    assert!(keys.len() > 8 && keys.contains("genesis"), "{keys:?}");
    for key in &keys {
        flip(&damaged, key);
    }
    // What leads to the other stores is looked at by its signature.
    let (hints, keys): (BTreeSet<_>, BTreeSet<_>) =
        keys.into_iter().partition(|key| key.starts_with("pool/"));
    assert_eq!(hints.len(), 1);
    let found = several.one.run(&["check", "--json"]).ends_with(3);
    assert_eq!(findings(&found), of_store("s0", &keys, "repairable"));
    assert_eq!(found.json()["misleading_stores"], serde_json::json!(["s0"]));
    let told = several.one.run(&["check"]).ends_with(3);
    assert!(told.stdout.contains("s0: v1 of the history is damaged"), "{told:?}");
    assert!(told.stderr.contains("check --repair"), "{told:?}");
    // Everybody goes on meanwhile.
    several.settle();
    let mended = several.other.run(&["check", "--repair", "--json"]).ok();
    let mended: BTreeSet<_> =
        findings(&mended).into_iter().map(|(_, key, fate)| (key, fate)).collect();
    for key in &keys {
        assert!(mended.contains(&(key.clone(), "repaired".to_owned())), "{key}: {mended:?}");
    }
    assert_eq!(findings(&several.one.run(&["check", "--json"]).ok()), BTreeSet::new());
    several.settle();
    // What was healed leads a new device through the whole history, with one other store.
    several.lose(1);
    let third = Device::new(several.room.path(), "third");
    several.clone_into(&third, 0);
    assert_eq!(third.tree(), several.one.tree());
    let logs = [&several.one, &third].map(|device| device.run(&["log", "--json"]).ok().json());
    assert_eq!(logs[0], logs[1]);
    third.write("by the third", noise(200_000));
    third.sync().ok();
    several.settle();
    assert!(several.one.has("by the third"));
}

#[test]
fn lost_history_of_a_store_is_brought_back() {
    let several = three();
    let store = several.store(2);
    let part = part(&store);
    for kind in ["log", "pool"] {
        fs::remove_dir_all(part.join(kind)).unwrap();
    }
    fs::remove_file(part.join("genesis")).unwrap();
    let found = several.one.run(&["check", "--json"]).ends_with(3);
    let found: BTreeSet<_> =
        findings(&found).into_iter().map(|(store, key, _)| (store, key)).collect();
    assert!(found.contains(&("s2".to_owned(), "genesis".to_owned())), "{found:?}");
    // Slots that somebody reads one by one are completed in passing, on a slow computer nearly all of them.
    assert!(found.iter().any(|(_, key)| key.starts_with("log/")), "{found:?}");
    assert!(found.iter().all(|(store, _)| store == "s2"), "{found:?}");
    several.one.run(&["check", "--repair"]).ok();
    several.one.run(&["check"]).ok();
    several.lose(0);
    let third = Device::new(several.room.path(), "third");
    several.clone_into(&third, 2);
    assert_eq!(third.tree(), several.one.tree());
}

#[test]
fn store_whose_identity_is_damaged_is_named_and_begins_anew() {
    let several = three();
    let key = BTreeSet::from(["store".to_owned()]);
    fs::write(part(&several.store(1)).join("store"), "\u{1}23").unwrap();
    // Nobody but a person can tell that it is not another store by now.
    for words in [&["check", "--json"][..], &["check", "--repair", "--json"]] {
        let found = several.one.run(words).ends_with(3);
        assert_eq!(findings(&found), of_store("s1", &key, "left"));
    }
    let told = several.one.run(&["check"]).ends_with(3);
    assert!(told.stderr.contains("syncline backend renew s1"), "{told:?}");
    several.one.run(&["backend", "renew", "s1"]).ok();
    several.settle();
    several.one.run(&["check", "--repair"]).ok();
    several.other.run(&["check", "--read-data"]).ok();
    several.lose(0);
    several.one.write("goes on", "without the first store\n");
    several.settle();
}

#[test]
fn entry_that_is_damaged_in_the_only_store_is_healed_by_who_remembers_it() {
    let pair = Pair::synced(false, fill);
    pair.one.write("a.txt", "second\n");
    pair.one.sync().ok();
    let key = "log/00000000000000000001/r0";
    flip(&pair.store(), key);
    let found = pair.one.run(&["check"]).ends_with(8);
    assert!(found.stdout.contains("v1 of the history is damaged"), "{found:?}");
    assert!(found.stderr.contains("check --repair"), "{found:?}");
    let mended = findings(&pair.one.run(&["check", "--repair", "--json"]).ok());
    let mended: Vec<_> = mended.into_iter().map(|(_, key, fate)| (key, fate)).collect();
    assert_eq!(mended, [(key.to_owned(), "repaired".to_owned())]);
    pair.one.run(&["check"]).ok();
    let third = Device::new(pair.room.path(), "third");
    let backend = format!("disk=file:{}", pair.store().display());
    let folder = third.folder.to_str().unwrap();
    third.run(&["clone", "Notes", folder, "--backend", &backend]).ok();
    assert_eq!(third.tree(), pair.one.tree());
}
