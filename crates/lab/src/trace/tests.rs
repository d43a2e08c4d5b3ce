use std::path::{Path, PathBuf};
use std::time::Duration;

use super::generate::{self, StackSync};
use super::play::{Plan, Played, play};
use super::*;
use crate::files;

fn small(clients: usize) -> StackSync {
    StackSync {
        clients,
        tree_bytes: 12_000_000,
        changes: 60,
        interval_ms: 1,
        ..StackSync::default()
    }
}

fn text_of(preset: &StackSync) -> String {
    let mut text = Vec::new();
    generate::write(preset, &mut text, Path::new("")).unwrap();
    String::from_utf8(text).unwrap()
}

fn play_text(text: &str, folders: &[PathBuf]) -> Result<Played, LabError> {
    let plan =
        Plan { folders: folders.to_vec(), speed: None, patience: Duration::from_millis(200) };
    play(Reader::new(text.as_bytes())?, &plan, &mut |_| {})
}

fn head(clients: usize) -> String {
    format!("{{\"syncline_trace\":1,\"name\":\"t\",\"about\":\"\",\"clients\":{clients}}}\n")
}

fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let paths = files::below(folder).unwrap();
    paths
        .iter()
        .map(|path| (path.display().to_string(), files::read(path).unwrap()))
        .map(|(path, bytes)| {
            (path.strip_prefix(&folder.display().to_string()).unwrap().to_owned(), bytes)
        })
        .collect()
}

#[test]
fn a_seed_makes_the_same_trace_and_the_trace_the_same_folder() {
    assert_eq!(text_of(&small(1)), text_of(&small(1)));
    assert_ne!(text_of(&small(1)), text_of(&StackSync { seed: 3, ..small(1) }));
    let room = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| room.path().join(name));
    for folder in [&one, &other] {
        files::make_folder(folder).unwrap();
        let played = play_text(&text_of(&small(1)), std::slice::from_ref(folder)).unwrap();
        assert_eq!((played.steps, played.differences.len()), (60, 0));
        assert!(played.settled.is_some() && played.written_bytes > 12_000_000);
    }
    assert_eq!(tree(&one), tree(&other));
}

#[test]
fn edits_do_what_they_say_at_each_place() {
    let edited = |place, kind, size| {
        let mut file = b"0123456789".to_vec();
        data::edit(&mut file, Edit { place, offset: None, kind, size, seed: 1 });
        file
    };
    assert_eq!(edited(Place::Beginning, EditKind::Cut, 3), b"3456789");
    assert_eq!(edited(Place::Middle, EditKind::Cut, 3), b"0123489");
    assert_eq!(edited(Place::End, EditKind::Cut, 3), b"0123456");
    assert_eq!(edited(Place::End, EditKind::Cut, 30), b"");
    assert!(edited(Place::Beginning, EditKind::Insert, 3).ends_with(b"0123456789"));
    assert!(edited(Place::End, EditKind::Insert, 3).starts_with(b"0123456789"));
    let middle = edited(Place::Middle, EditKind::Overwrite, 100);
    assert!(middle.starts_with(b"01234") && middle.len() == 10 && middle != b"0123456789");
}

#[test]
fn folders_and_renames_are_played_and_looked_at() {
    let room = tempfile::tempdir().unwrap();
    let folder = room.path().to_owned();
    let text = head(1)
        + r#"{"do":"make-folder","path":"a"}
{"do":"make-folder","path":"a/b"}
{"do":"write","path":"a/b/x.txt","size":1000,"data":"text","seed":1}
{"at_ms":1,"do":"rename","path":"a","to":"c"}
{"at_ms":2,"do":"edit","path":"c/b/x.txt","edits":[{"place":"end","kind":"cut","size":990,"seed":0}]}
{"at_ms":3,"do":"make-folder","path":"a"}
{"at_ms":4,"do":"rename","path":"c/b/x.txt","to":"a/y.txt"}
{"at_ms":5,"do":"remove","path":"c/b"}
"#;
    let played = play_text(&text, std::slice::from_ref(&folder)).unwrap();
    assert_eq!((played.initial_steps, played.steps), (3, 5));
    assert!(played.settled.is_some(), "{played:?}");
    assert_eq!(tree(&folder).len(), 1);
    assert_eq!(files::read(&folder.join("a/y.txt")).unwrap().len(), 10);
    assert!(folder.join("c").is_dir() && !folder.join("c/b").exists());
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    let room = tempfile::tempdir().unwrap();
    let write = |path: &str| {
        format!(
            "{{\"do\":\"write\",\"path\":\"{path}\",\"size\":1,\"data\":\"zero\",\"seed\":1}}\n"
        )
    };
    let cases = [
        (String::new(), 1, "head"),
        ("{}\n".to_owned(), 1, "head"),
        (head(1).replace(":1,\"name", ":2,\"name"), 1, "format is 2"),
        (head(0), 1, "nobody"),
        (head(1) + "x\n", 2, "expected"),
        (head(1) + &write("../x"), 2, "no path within"),
        (head(1) + &write("/x"), 2, "no path within"),
        (head(1) + &write(".syncline/x"), 2, "no path within"),
        (head(1) + &write("a/x"), 2, "folder is not there"),
        (head(1) + "{\"do\":\"remove\",\"path\":\"x\"}\n", 2, "not there"),
        (head(1) + "{\"do\":\"remove\",\"path\":\"x\",\"recursive\":true}\n", 2, "recursive"),
        (head(1) + "{\"client\":1,\"do\":\"remove\",\"path\":\"x\"}\n", 2, "client 1 of 1"),
        (head(1) + &write("x").replace(":1,\"data", ":9999999999,\"data"), 2, "more than"),
        (
            head(1) + "{\"at_ms\":1,\"do\":\"make-folder\",\"path\":\"y\"}\n" + &write("z"),
            3,
            "before all",
        ),
        (
            head(1)
                + "{\"do\":\"make-folder\",\"path\":\"w\"}\n{\"do\":\"rename\",\"path\":\"w\",\"to\":\"w/w\"}\n",
            3,
            "into itself",
        ),
    ];
    for (number, (text, line, wanted)) in cases.into_iter().enumerate() {
        let folder = room.path().join(number.to_string());
        files::make_folder(&folder).unwrap();
        let error = play_text(&text, &[folder]).unwrap_err();
        let LabError::Trace { line: found, what } = &error else { panic!("{error}") };
        assert!(*found == line && what.contains(wanted), "{text}: {error}");
    }
    let error = play_text(&head(2), &[room.path().to_owned()]).unwrap_err();
    assert!(matches!(error, LabError::Folders { clients: 2, folders: 1 }));
}

#[test]
fn what_no_other_client_gets_is_waited_for_and_said() {
    let room = tempfile::tempdir().unwrap();
    let folders = ["one", "two"].map(|name| room.path().join(name));
    for folder in &folders {
        files::make_folder(folder).unwrap();
    }
    let error = play_text(&text_of(&small(2)), &folders).unwrap_err();
    assert!(
        matches!(&error, LabError::NotArrived { what, .. } if what.contains("is missing")),
        "{error}"
    );
}

#[test]
fn an_end_that_is_another_is_named() {
    let room = tempfile::tempdir().unwrap();
    let folder = room.path().to_owned();
    files::write(&folder.join("extra.txt"), "of somebody else").unwrap();
    files::write(&folder.join(".stfolder/of-a-program"), "its own").unwrap();
    let error =
        play_text(&(head(1) + "{\"do\":\"make-folder\",\"path\":\"a\"}\n"), &[folder]).unwrap_err();
    assert!(error.to_string().contains("'extra.txt' should not be there"), "{error}");
    // What is at a path of the trace is not written over.
    let folder = room.path().to_owned();
    let over = head(1)
        + "{\"do\":\"write\",\"path\":\"extra.txt\",\"size\":1,\"data\":\"zero\",\"seed\":1}\n";
    assert!(matches!(
        play_text(&over, std::slice::from_ref(&folder)),
        Err(LabError::NotEmpty { .. })
    ));
    assert_eq!(files::read(&folder.join("extra.txt")).unwrap(), b"of somebody else");
}
