use std::time::Duration;

use super::super::super::Reader;
use super::super::super::play::{Plan, play};
use super::super::tests::{parsed, written};
use super::*;

#[test]
fn versions_of_a_folder_are_played_and_end_as_the_last_one() {
    let room = tempfile::tempdir().unwrap();
    let put =
        |path: &str, text: &str| files::write(&room.path().join("d").join(path), text).unwrap();
    let text: String = (0..200).map(|line| format!("line {line} of a text\n")).collect();
    put("1/a/one.txt", &text);
    put("1/a/gone.txt", "gone");
    put("1/a/equal.txt", &text);
    put("1/file-then-folder", "a file");
    put("1/b/c/deep.txt", "deep");
    put("2/a/one.txt", &text.replace("line 7 ", "line seven ").replace("line 90 of a text\n", ""));
    put("2/a/equal.txt", &text);
    put("2/a/new.txt", &text);
    put("2/file-then-folder/inside.txt", "a folder");
    put("2/b", "was a folder");
    put("10/empty", "");
    put("10/b", "is longer by some words");
    let dataset = Dataset::open("d", &room.path().join("d")).unwrap();
    let last = dataset.folder.join("10");
    let workload = Versions { dataset, clients: 1, interval_ms: 500 };
    let steps = parsed(&workload);
    let edit = steps.iter().find_map(|step| match &step.action {
        Action::Edit { path, edits } if path == "a/one.txt" => Some((step.at_ms, edits.clone())),
        _ => None,
    });
    let (at_ms, edits) = edit.unwrap();
    let kinds: Vec<_> = edits.iter().map(|edit| (edit.kind, edit.size)).collect();
    assert_eq!(at_ms, Some(500));
    let (cut, insert) = (EditKind::Cut, EditKind::Insert);
    assert_eq!(kinds, [(cut, 1), (insert, 5), (cut, 18)]);
    // Equal files are equal when they are played.
    let seeds: Vec<u64> = steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::Write { path, seed, .. } if path.starts_with("a/") => Some(*seed),
            _ => None,
        })
        .collect();
    assert!(seeds.len() == 4 && seeds[0] == seeds[2] && seeds[2] == seeds[3], "{seeds:?}");

    let (trace, _) = written(&workload);
    let target = room.path().join("played");
    files::make_folder(&target).unwrap();
    let plan = Plan { folders: vec![target.clone()], speed: None, patience: Duration::ZERO };
    let played = play(Reader::new(trace.as_bytes()).unwrap(), &plan, &mut |_| {}).unwrap();
    assert!(played.settled.is_some(), "{:?}", played.differences);
    assert_eq!(files::tree(&target).unwrap(), files::tree(&last).unwrap());
}
