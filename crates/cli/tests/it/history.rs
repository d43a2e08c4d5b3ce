//! Looking back.

use std::fs;

use crate::support::{BOTH, Pair, fill};

#[test]
fn log_cat_and_restore_bring_any_old_version_back() {
    for is_served in BOTH {
        let pair = Pair::synced(is_served, fill);
        let one = &pair.one;
        for text in ["second version\n", "third version\n"] {
            one.write("a.txt", text);
            one.sync().ok();
        }
        fs::remove_file(one.folder.join("a.txt")).unwrap();
        one.sync().ok();
        pair.other.sync().ok();
        for device in [one, &pair.other] {
            let log = device.run(&["log", "a.txt", "--json"]).ok().json();
            let versions = log["versions"].as_array().unwrap();
            assert_eq!(versions.len(), 4, "{log}");
            assert_eq!(versions[0]["is_deletion"], true);
            for (version, text) in
                versions[1..].iter().zip(["third version\n", "second version\n", "first\n"])
            {
                let at = format!("v{}", version["version"]);
                assert_eq!(device.run(&["cat", "a.txt", "--at", &at]).ok().bytes, text.as_bytes());
            }
        }
        one.run(&["restore", "a.txt", "--at", "v2"]).ok();
        assert_eq!(one.read("a.txt"), b"second version\n");
        pair.settle();
        pair.assert_equal();
    }
}

#[test]
fn a_restore_overwrites_only_when_told_and_keeps_what_was_there() {
    let pair = Pair::synced(false, fill);
    let one = &pair.one;
    one.write("a.txt", "newer, not synced\n");
    let refused = one.run(&["restore", "a.txt", "--at", "v1"]).ends_with(1);
    assert!(refused.stderr.contains("E0208"), "{}", refused.stderr);
    assert_eq!(one.read("a.txt"), b"newer, not synced\n");
    one.run(&["restore", "a.txt", "--at", "v1", "--to", "deep/copy.txt"]).ok();
    assert_eq!(one.read("deep/copy.txt"), b"first\n");
    one.run(&["restore", "a.txt", "--at", "v1", "--overwrite"]).ok();
    assert_eq!(one.read("a.txt"), b"first\n");
    let mut trash = vec![one.folder.join(".syncline/trash")];
    let mut found = false;
    while let Some(path) = trash.pop() {
        if path.is_dir() {
            trash.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            found |= fs::read(path).unwrap() == b"newer, not synced\n";
        }
    }
    assert!(found, "what was replaced is in the trash");
}

#[test]
fn a_deleted_folder_comes_back_whole() {
    let pair = Pair::synced(false, fill);
    let before = pair.one.tree();
    fs::remove_dir_all(pair.one.folder.join("deep")).unwrap();
    pair.settle();
    assert!(!pair.other.has("deep"));
    let deleted = pair.other.run(&["ls", "--deleted", "--recursive", "--json"]).ok().json();
    let gone: Vec<_> = deleted["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["is_deleted"] == true)
        .collect();
    assert!(!gone.is_empty());
    pair.other.run(&["restore", "deep", "--at", "v1"]).ok();
    pair.settle();
    pair.assert_equal();
    assert_eq!(pair.one.tree(), before);
}

#[test]
fn paths_are_those_of_the_place_where_one_stands() {
    let pair = Pair::synced(false, fill);
    let inside = pair.one.folder.join("deep/er");
    let directory = inside.to_str().unwrap();
    let log = pair.one.run(&["-C", directory, "log", "b.txt", "--json"]).ok().json();
    assert_eq!(log["path"], "deep/er/b.txt");
    let log = pair.one.run(&["-C", directory, "log", "../../a.txt", "--json"]).ok().json();
    assert_eq!(log["path"], "a.txt");
    let outside = pair.one.run(&["log", "/etc/passwd"]).ends_with(10);
    assert!(outside.stderr.contains("E0201"));
}

#[test]
fn what_never_was_is_said_so() {
    let pair = Pair::synced(false, fill);
    for (words, code) in [
        (["log", "never", "--json"].as_slice(), "E0206"),
        (&["cat", "never", "--at", "v1"], "E0207"),
        (&["restore", "never", "--at", "v1"], "E0207"),
        (&["resolve", "a.txt", "--keep", "mine"], "E0209"),
    ] {
        let run = pair.one.run(words).ends_with(1);
        assert!((run.stdout + &run.stderr).contains(code), "{words:?}");
    }
}

#[test]
fn ls_shows_the_tree_of_any_version() {
    let pair = Pair::synced(false, fill);
    fs::remove_file(pair.one.folder.join("zero")).unwrap();
    pair.one.write("later", "x");
    pair.one.sync().ok();
    let names = |words: &[&str]| -> Vec<String> {
        let listed = pair.one.run(words).ok().json();
        let entries = listed["entries"].as_array().unwrap().clone();
        entries.iter().map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
    };
    let now = names(&["ls", "--json"]);
    assert!(now.contains(&"later".to_owned()) && !now.contains(&"zero".to_owned()));
    let before = names(&["ls", "--json", "--at", "v1"]);
    assert!(before.contains(&"zero".to_owned()) && !before.contains(&"later".to_owned()));
    assert_eq!(names(&["ls", "--json", "deep", "-r"]), ["deep/er", "deep/er/b.txt"]);
}

#[test]
fn versions_from_before_a_rename_are_found_under_the_new_name() {
    let pair = Pair::synced(false, fill);
    let one = &pair.one;
    one.write("draft", "as a draft\n");
    one.sync().ok();
    fs::rename(one.folder.join("draft"), one.folder.join("thesis")).unwrap();
    one.sync().ok();
    one.write("thesis", "as a thesis\n");
    one.sync().ok();
    let log = one.run(&["log", "thesis", "--json"]).ok().json();
    let versions: Vec<_> = log["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["version"].to_string())
        .collect();
    assert_eq!(versions, ["4", "3", "2"], "{log}");
    assert_eq!(one.run(&["cat", "thesis", "--at", "v2"]).ok().bytes, b"as a draft\n");
    one.run(&["restore", "thesis", "--at", "v2", "--to", "old"]).ok();
    assert_eq!(one.read("old"), b"as a draft\n");
    // What another file is at that moment is nobody's version.
    one.run(&["cat", "thesis", "--at", "v1"]).ends_with(1);
}

#[test]
fn times_are_those_of_the_reader_and_can_be_given_back() {
    let pair = Pair::synced(false, fill);
    let written = pair.one.run(&["log", "a.txt", "--json"]).ok().json();
    let time = written["versions"][0]["time"].as_str().unwrap().to_owned();
    assert!(time.ends_with('Z'), "{time}");
    let in_zone = |zone: &str, words: &[&str]| {
        let output = pair.one.command(words).env("TZ", zone).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = |zone| {
        let line = in_zone(zone, &["log", "a.txt"]);
        let words: Vec<_> = line.split_whitespace().collect();
        format!("{} {}", words[1], words[2])
    };
    let (greenwich, tokyo) = (shown("UTC0"), shown("JST-9"));
    assert_eq!(greenwich, time[..19].replace('T', " "));
    assert_ne!(greenwich, tokyo);
    // What a list shows leads back to the version that it shows.
    let cat = ["cat", "a.txt", "--at", tokyo.as_str()];
    assert_eq!(in_zone("JST-9", &cat), "first\n");
    let too_early = pair.one.command(&cat).env("TZ", "JST-18").output().unwrap();
    assert!(!too_early.status.success(), "it was not there nine hours before");
}
