//! Stores that were damaged: it is noticed and named, and nothing wrong is ever written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Device, Pair, fill, tree};

pub(crate) fn objects(store: &Path, kind: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![store.to_owned()];
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.to_string_lossy().contains(kind) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A new device tries to get the workspace.
fn try_to_clone(pair: &Pair, name: &str) -> (crate::support::Run, Device) {
    let device = Device::new(pair.room.path(), name);
    let backend = format!("disk=file:{}", pair.store().display());
    let run = device.run(&[
        "clone",
        "Notes",
        device.folder.to_str().unwrap(),
        "--backend",
        &backend,
        "--json",
    ]);
    (run, device)
}

fn assert_nothing_wrong(source: &Device, target: &Device) {
    let right = source.tree();
    for (path, text) in target.tree() {
        assert_eq!(right.get(&path), Some(&text), "{} was written wrongly", path.display());
    }
}

#[test]
fn a_flipped_byte_in_a_pack_is_noticed_wherever_it_is() {
    let pair = Pair::synced(false, fill);
    let packs = objects(&pair.store(), "/packs/");
    assert!(!packs.is_empty());
    for pack in &packs {
        let whole = fs::read(pack).unwrap();
        for (number, at) in [0, whole.len() / 2, whole.len() - 1].into_iter().enumerate() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x40;
            fs::write(pack, &flipped).unwrap();
            let name = format!("{}-{number}", pack.file_name().unwrap().display());
            let (run, device) = try_to_clone(&pair, &name[name.len() - 10..]);
            assert!([3, 8].contains(&run.code), "byte {at} of {}: {run:?}", pack.display());
            assert_nothing_wrong(&pair.one, &device);
        }
        fs::write(pack, &whole).unwrap();
    }
    let (run, device) = try_to_clone(&pair, "last");
    run.ok();
    assert_eq!(device.tree(), pair.one.tree());
}

#[test]
fn a_truncated_or_missing_pack_is_noticed() {
    let pair = Pair::synced(false, fill);
    let pack = objects(&pair.store(), "/packs/").remove(0);
    let whole = fs::read(&pack).unwrap();
    for (number, length) in [whole.len() - 1, whole.len() / 3, 0].into_iter().enumerate() {
        fs::write(&pack, &whole[..length]).unwrap();
        let (run, device) = try_to_clone(&pair, &format!("short-{number}"));
        assert!([3, 8].contains(&run.code), "{length} bytes: {run:?}");
        assert_nothing_wrong(&pair.one, &device);
    }
    fs::remove_file(&pack).unwrap();
    let (run, device) = try_to_clone(&pair, "missing");
    assert_eq!(run.code, 3, "{run:?}");
    assert_nothing_wrong(&pair.one, &device);
    // What is made of the pack is missing and named; everything else goes on, in both directions.
    let lost = run.json()["problems"].as_array().unwrap().len();
    assert!(lost > 0, "{run:?}");
    let kept = |tree: &BTreeMap<PathBuf, String>| {
        tree.values().filter(|text| text.starts_with("file")).count()
    };
    assert_eq!(kept(&device.tree()) + lost, kept(&pair.one.tree()), "{run:?}");
    device.write("from the new one", "made while the pack was gone\n");
    device.sync().ends_with(3);
    pair.one.sync().ok();
    assert_eq!(pair.one.read("from the new one"), b"made while the pack was gone\n");
    fs::write(&pack, &whole).unwrap();
    // Those that were stopped go on when the store is whole again.
    device.sync().ok();
    assert_eq!(device.tree(), pair.one.tree());
}

#[test]
fn a_damaged_history_is_refused() {
    let pair = Pair::synced(false, fill);
    let entry = objects(&pair.store(), "/log/").remove(0);
    let whole = fs::read(&entry).unwrap();
    for at in [0, whole.len() / 2] {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(&entry, &flipped).unwrap();
        let (run, device) = try_to_clone(&pair, &format!("flipped-{at}"));
        assert_eq!(run.code, 8, "{run:?}");
        assert!(tree(&device.folder).is_empty());
    }
    fs::write(&entry, &whole).unwrap();
    pair.one.sync().ok();
}

#[test]
fn a_store_restored_from_an_older_copy_gets_back_what_it_lost() {
    let pair = Pair::synced(false, fill);
    let old = pair.room.path().join("old");
    let copy = |from: &Path, to: &Path| {
        assert!(
            std::process::Command::new("cp")
                .arg("-a")
                .arg(from)
                .arg(to)
                .status()
                .unwrap()
                .success()
        );
    };
    copy(&pair.store(), &old);
    pair.one.write("a.txt", "after the backup\n");
    pair.one.write("later", "after the backup, too\n");
    pair.settle();
    fs::remove_dir_all(pair.store()).unwrap();
    copy(&old, &pair.store());
    for _ in 0..3 {
        for device in [&pair.one, &pair.other] {
            let run = device.sync();
            assert!([0, 5].contains(&run.code), "{run:?}");
        }
    }
    pair.assert_equal();
    assert_eq!(pair.other.read("later"), b"after the backup, too\n");
    let (run, device) = try_to_clone(&pair, "new");
    assert!([0, 5].contains(&run.code), "{run:?}");
    assert_eq!(device.tree(), pair.one.tree());
}

#[test]
fn a_workspace_of_another_store_is_not_found() {
    let pair = Pair::synced(false, fill);
    let backend = format!("disk=file:{}", pair.store().display());
    let refused = pair
        .other
        .run(&["clone", "Nots", "there", "--backend", &backend, "--json"])
        .ends_with(10)
        .json();
    assert_eq!(refused["code"], "E0404");
    assert!(refused["cause"].as_str().unwrap().contains("Notes"));
    let device = Device::new(pair.room.path(), "second");
    let taken = device
        .run(&["init", "--workspace", "Notes", "--plain", "--backend", &backend, "--json"])
        .ends_with(1)
        .json();
    assert_eq!(taken["code"], "E0406");
    assert!(!device.has(".syncline"));
    device.run(&["init", "--workspace", "More notes", "--plain", "--backend", &backend]).ok();
    device.write("x", "beside");
    device.sync().ok();
    pair.one.sync().ok();
    assert!(!pair.one.has("x"));
}
