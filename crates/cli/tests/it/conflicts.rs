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
