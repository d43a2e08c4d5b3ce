use std::path::Path;
use std::time::Duration;

use super::super::super::Reader;
use super::super::super::play::{Plan, Played, play};
use super::super::tests::{parsed, written};
use super::*;
use crate::dataset::made::{self, Size};
use crate::dataset::zip;
use crate::files;

fn thesis(name: &str, versions: usize) -> Thesis {
    Thesis {
        name: format!("thesis-{}", name.to_lowercase()),
        dataset: MadeDataset { name: name.to_owned(), size: Size::Tiny, seed: 7 },
        clients: 1,
        interval_ms: 500,
        versions,
    }
}

fn played(trace: &str, folder: &Path) -> Result<Played, LabError> {
    files::make_folder(folder).unwrap();
    let folders = vec![folder.to_owned()];
    let plan = Plan { folders, speed: None, patience: Duration::ZERO };
    play(Reader::new(trace.as_bytes())?, &plan, &mut |_| {})
}

fn must_be_equal(one: &Path, other: &Path) {
    let tree = files::tree(one).unwrap();
    assert_eq!(tree, files::tree(other).unwrap());
    for path in tree.keys().filter(|path| one.join(path).is_file()) {
        let bytes = [one, other].map(|folder| files::read(&folder.join(path)).unwrap());
        assert!(bytes[0] == bytes[1], "{path}");
    }
}

#[test]
fn documents_are_played_byte_for_byte_and_end_as_the_last_version() {
    let room = tempfile::tempdir().unwrap();
    let dataset = made::write("A", Size::Tiny, 7, room.path()).unwrap();
    let workload = thesis("A", usize::MAX);
    let (trace, made) = written(&workload);
    assert_eq!(trace, written(&workload).0);
    let mut other = workload;
    other.dataset.seed = 8;
    assert_ne!(trace, written(&Thesis { versions: 1, ..other }).0);
    // What is written is millions of bytes, and the trace has none of them.
    assert!(trace.len() < 10_000 && made.tree_bytes > 100_000, "{} {made:?}", trace.len());
    assert!(made.changes >= 2 && made.tree_files == 24, "{made:?}");

    let target = room.path().join("played");
    let played = played(&trace, &target).unwrap();
    assert!(played.settled.is_some(), "{:?}", played.differences);
    must_be_equal(&target, &dataset.folder.join("50"));
    let is_docx = |path: &&std::path::PathBuf| path.extension().is_some_and(|it| it == "docx");
    let below = files::below(&target).unwrap();
    let opened = zip::tests::read(&files::read(below.iter().find(is_docx).unwrap()).unwrap());
    assert!(opened.iter().any(|(name, _)| name == "word/document.xml"));
}

#[test]
fn files_come_and_go_and_get_other_names_as_in_the_dataset() {
    let room = tempfile::tempdir().unwrap();
    for (name, versions) in [("C", 50), ("D", 4)] {
        let dataset = made::write(name, Size::Tiny, 7, room.path()).unwrap();
        let workload = thesis(name, versions);
        let steps = parsed(&workload);
        let target = room.path().join(format!("{name}-played"));
        let played = played(&written(&workload).0, &target).unwrap();
        assert!(played.settled.is_some(), "{:?}", played.differences);
        must_be_equal(&target, &dataset.folder.join(versions.to_string()));
        let latest = steps.last().unwrap().at_ms.unwrap();
        assert!(latest < versions as u64 * 500 && latest.is_multiple_of(500), "{latest}");
        let count = |is: fn(&Action) -> bool| steps.iter().filter(|it| is(&it.action)).count();
        let removed = count(|action| matches!(action, Action::Remove { .. }));
        let renamed = count(|action| matches!(action, Action::Rename { .. }));
        assert_eq!((removed > 0, renamed > 0), (name == "C", name == "C"), "{removed} {renamed}");
    }
}

#[test]
fn bytes_that_this_program_does_not_make_are_refused_with_the_line() {
    let room = tempfile::tempdir().unwrap();
    let (trace, _) = written(&thesis("D", 2));
    let (at, line) = trace.lines().enumerate().find(|(_, line)| line.contains("sha256")).unwrap();
    let sum = line.split_once("\"sha256\":\"").unwrap().1;
    let sum = &sum[..sum.find('"').unwrap()];
    assert_eq!(sum.len(), 64);
    let of_version = |version: &str| trace.replacen("\"version\":1", version, 1);
    let cases = [
        (trace.replacen(sum, &"0".repeat(64), 1), at + 1, "other bytes"),
        (trace.replacen("\"seed\":7", "\"seed\":8", 1), at + 1, "other bytes"),
        (trace.replacen("/unit0.c", "/unit.c", 1), at + 1, "no such file"),
        (of_version("\"version\":21"), at + 1, "fewer versions"),
        (of_version("\"version\":2"), at + 2, "later version"),
        (of_version("\"version\":0"), at + 1, "no version"),
        (trace.replacen("\"name\":\"D\"", "\"name\":\"E\"", 1), 1, "no dataset 'E'"),
        (
            trace.replacen(",\"dataset\":{\"name\":\"D\",\"size\":\"tiny\",\"seed\":7}", "", 1),
            at + 1,
            "no version",
        ),
    ];
    for (number, (text, line, wanted)) in cases.into_iter().enumerate() {
        let error = played(&text, &room.path().join(number.to_string())).unwrap_err();
        let LabError::Trace { line: found, what } = &error else { panic!("{error}") };
        assert!(*found == line as u64 && what.contains(wanted), "{wanted}: {error}");
    }
}
