//! Both sides changed the same.

use crate::support::{BOTH, Pair, fill};

fn in_conflict(is_served: bool) -> Pair {
    let pair = Pair::synced(is_served, fill);
    pair.one.write("a.txt", "from one\n");
    pair.other.write("a.txt", "from the other\n");
    pair.one.sync().ok();
    let summary = pair.other.sync().ends_with(5).json();
    assert_eq!(summary["conflicts"], 1);
    pair.one.sync().ends_with(5);
    pair.assert_equal();
    pair
}

fn copy_of(pair: &Pair) -> String {
    let run = pair.one.run(&["conflicts", "--json"]).ends_with(5).json();
    assert_eq!(run["conflicts"][0]["path"], "a.txt");
    run["conflicts"][0]["copy"].as_str().unwrap().to_owned()
}

#[test]
fn both_versions_are_kept_and_each_device_knows_its_own() {
    for is_served in BOTH {
        let pair = in_conflict(is_served);
        let copy = copy_of(&pair);
        assert_eq!(pair.one.read("a.txt"), b"from one\n");
        assert_eq!(pair.one.read(&copy), b"from the other\n");
        let own = |device: &crate::support::Device| {
            device.run(&["conflicts", "--json"]).json()["conflicts"][0]["is_own_copy"].clone()
        };
        assert_eq!((own(&pair.one), own(&pair.other)), (false.into(), true.into()));
        pair.one.run(&["status"]).ends_with(5);
        pair.one.sync().ends_with(5);
    }
}

#[test]
fn a_decision_for_mine_or_theirs_leaves_one_file_and_a_history() {
    for is_served in BOTH {
        for (is_first, keep, kept, lost) in [
            (true, "mine", "from one\n", "from the other\n"),
            (true, "theirs", "from the other\n", "from one\n"),
            (false, "mine", "from the other\n", "from one\n"),
        ] {
            let pair = in_conflict(is_served);
            let copy = copy_of(&pair);
            let device = if is_first { &pair.one } else { &pair.other };
            device.run(&["resolve", "a.txt", "--keep", keep]).ok();
            pair.settle();
            pair.assert_equal();
            assert_eq!(pair.one.read("a.txt"), kept.as_bytes(), "{keep}");
            assert!(!pair.one.has(&copy));
            pair.one.run(&["conflicts"]).ok();
            pair.other.sync().ok();
            let mut found = false;
            for path in ["a.txt", &copy] {
                let log = device.run(&["log", path, "--json"]).ok().json();
                for version in log["versions"].as_array().unwrap() {
                    let at = format!("v{}", version["version"]);
                    found |= device.run(&["cat", path, "--at", &at]).bytes == lost.as_bytes();
                }
            }
            assert!(found, "the other version is in the history");
        }
    }
}

#[test]
fn a_decision_for_both_leaves_two_files() {
    for is_served in BOTH {
        let pair = in_conflict(is_served);
        let copy = copy_of(&pair);
        pair.one.run(&["resolve", "a.txt", "--keep", "both"]).ok();
        pair.settle();
        pair.assert_equal();
        assert_eq!(pair.other.read("a.txt"), b"from one\n");
        assert_eq!(pair.other.read(&copy), b"from the other\n");
        pair.other.run(&["conflicts"]).ok();
    }
}

const BASE: &str = "one\ntwo\nthree\nfour\nfive\n";

/// Two devices that edited a text without seeing each other's edit.
fn edited(is_served: bool, one: &str, other: &str) -> Pair {
    let pair = Pair::synced(is_served, |device| device.write("a.txt", BASE));
    // A version in between, so that the one that both started from is not the first.
    pair.one.write("a.txt", BASE.replace("five", "5"));
    pair.settle();
    pair.one.write("a.txt", BASE.replace("five", "5").replace(one, "changed by one"));
    pair.other.write("a.txt", BASE.replace("five", "5").replace(other, "changed by the other"));
    pair.one.sync().ok();
    pair.other.sync().ends_with(5);
    pair
}

#[test]
fn lines_changed_apart_are_merged_into_one_file() {
    for is_served in BOTH {
        let pair = edited(is_served, "two", "four");
        pair.other.run(&["resolve", "a.txt", "--merge"]).ok();
        pair.settle();
        pair.assert_equal();
        let merged = "one\nchanged by one\nthree\nchanged by the other\n5\n";
        assert_eq!(String::from_utf8(pair.one.read("a.txt")).unwrap(), merged);
        assert_eq!(pair.one.tree().len(), 1, "the copy is gone");
        pair.one.run(&["conflicts"]).ok();
    }
}

#[test]
fn a_line_changed_by_both_stays_a_conflict() {
    let pair = edited(false, "two", "two");
    let before = pair.other.tree();
    let run = pair.other.run(&["resolve", "a.txt", "--merge"]).ends_with(5);
    assert!(run.stderr.contains("E0210") && run.stderr.contains("same lines"), "{}", run.stderr);
    assert_eq!(pair.other.tree(), before);
    pair.other.run(&["resolve", "a.txt", "--merge", "--keep", "mine"]).ends_with(2);
    pair.other.run(&["resolve", "a.txt"]).ends_with(2);
    pair.other.run(&["resolve", "a.txt", "--keep", "both"]).ok();
}

#[test]
fn an_edit_wins_over_a_deletion() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, fill);
        std::fs::remove_file(pair.one.folder.join("a.txt")).unwrap();
        pair.other.write("a.txt", "edited meanwhile\n");
        pair.settle();
        pair.assert_equal();
        assert_eq!(pair.one.read("a.txt"), b"edited meanwhile\n");
    }
}
