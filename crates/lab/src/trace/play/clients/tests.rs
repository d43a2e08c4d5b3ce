use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::{Plan, Played, play_after};
use super::*;
use crate::files;

const HOUR_MS: u64 = 3_600_000;

struct Room {
    _room: tempfile::TempDir,
    folders: Vec<PathBuf>,
}

fn room(clients: usize) -> Room {
    let room = tempfile::tempdir().unwrap();
    let folders: Vec<_> = (0..clients).map(|client| room.path().join(client.to_string())).collect();
    for folder in &folders {
        files::make_folder(folder).unwrap();
    }
    Room { _room: room, folders }
}

fn played(
    room: &Room,
    steps: &str,
    patience: Duration,
    begin: &mut dyn FnMut() -> Result<(), LabError>,
) -> Result<Played, LabError> {
    let clients = room.folders.len();
    let text = format!(
        "{{\"syncline_trace\":1,\"name\":\"t\",\"about\":\"\",\"clients\":{clients}}}\n{steps}"
    );
    let plan = Plan { folders: room.folders.clone(), speed: Some(1.0), patience };
    play_after(Reader::new(text.as_bytes())?, &plan, begin, &mut |_| {})
}

fn write(at_ms: u64, client: usize, path: &str) -> String {
    format!(
        "{{\"at_ms\":{at_ms},\"client\":{client},\"do\":\"write\",\"path\":\"{path}\",\"size\":9,\"data\":\"text\",\"seed\":1}}\n"
    )
}

fn cut(at_ms: u64, client: usize, path: &str) -> String {
    format!(
        "{{\"at_ms\":{at_ms},\"client\":{client},\"do\":\"edit\",\"path\":\"{path}\",\"edits\":[{{\"place\":\"end\",\"kind\":\"cut\",\"size\":1,\"seed\":0}}]}}\n"
    )
}

/// Waits for a file of a size, and copies it to another folder.
fn carry(from: &Path, to: &Path, name: &str, size: u64) {
    let watch = Stopwatch::start();
    while files::look(&from.join(name)).unwrap() != Some(files::Found::File { size }) {
        assert!(watch.wall() < Duration::from_secs(20), "{name} never came");
        thread::yield_now();
    }
    files::write(&to.join(name), files::read(&from.join(name)).unwrap()).unwrap();
}

#[test]
fn a_client_that_is_held_up_holds_up_no_other_one_and_all_end_as_the_trace_says() {
    let room = room(2);
    // What the first client is to edit comes to it only when the other one has done what is due at the same time.
    let steps = write(0, 1, "x") + &cut(1, 0, "x") + &write(1, 1, "y");
    let [one, other] = [0, 1].map(|client| room.folders[client].as_path());
    let played = thread::scope(|scope| {
        scope.spawn(|| {
            carry(other, one, "y", 9);
            carry(other, one, "x", 9);
            carry(one, other, "x", 8);
        });
        played(&room, &steps, Duration::from_secs(10), &mut || Ok(())).unwrap()
    });
    assert_eq!((played.steps, played.written_bytes), (3, 26));
    assert!(played.settled.is_some() && played.waited > Duration::ZERO, "{played:?}");
}

#[test]
fn a_folder_is_removed_when_what_another_client_has_removed_from_it_is_gone_here_too() {
    let room = room(2);
    let steps = concat!(
        r#"{"at_ms":0,"client":0,"do":"make-folder","path":"a"}"#,
        "\n",
        r#"{"at_ms":0,"client":0,"do":"write","path":"a/x","size":9,"data":"text","seed":1}"#,
        "\n",
        r#"{"at_ms":1,"client":1,"do":"remove","path":"a/x"}"#,
        "\n",
        r#"{"at_ms":2,"client":0,"do":"remove","path":"a"}"#,
        "\n",
    );
    let [one, other] = [0, 1].map(|client| room.folders[client].join("a"));
    let played = thread::scope(|scope| {
        scope.spawn(|| {
            carry(&one, &other, "x", 9);
            let wait_while = |path: &Path| {
                while files::look(path).unwrap().is_some() {
                    thread::sleep(Duration::from_millis(5));
                }
            };
            wait_while(&other.join("x"));
            // The last step is under way meanwhile.
            thread::sleep(Duration::from_millis(50));
            files::remove(&one.join("x")).unwrap();
            wait_while(&one);
            files::remove_folder(&other).unwrap();
        });
        played(&room, steps, Duration::from_secs(20), &mut || Ok(()))
    });
    let played = played.unwrap();
    assert_eq!((played.steps, played.differences.len()), (4, 0));
    assert!(played.settled.is_some());
}

#[test]
fn a_step_that_is_due_later_than_can_be_counted_is_refused() {
    let room = room(2);
    let text = format!(
        "{{\"syncline_trace\":1,\"name\":\"t\",\"about\":\"\",\"clients\":2}}\n{}",
        write(u64::MAX, 0, "x")
    );
    let patience = Duration::from_secs(1);
    let plan = Plan { folders: room.folders.clone(), speed: Some(0.000_5), patience };
    let error =
        play_after(Reader::new(text.as_bytes()).unwrap(), &plan, &mut || Ok(()), &mut |_| {});
    assert!(matches!(error, Err(LabError::Trace { line: 2, .. })), "{error:?}");
}

#[test]
fn a_client_that_fails_is_named_with_its_step_and_all_stop() {
    let room = room(3);
    let steps = write(0, 0, "before")
        + &write(1, 1, "taken")
        + &write(HOUR_MS, 0, "after")
        + &write(HOUR_MS, 1, "after-that")
        + &write(HOUR_MS, 2, "never");
    let mut begin = || files::make_folder(&room.folders[1].join("taken"));
    let error = played(&room, &steps, Duration::ZERO, &mut begin).unwrap_err();
    let LabError::Step { client: 1, line: 3, source } = &error else { panic!("{error}") };
    assert!(matches!(&**source, LabError::Write { path, .. } if path.ends_with("1/taken")));
    assert_eq!(error.to_string(), "client 1 failed at line 3 of the trace");
    assert!(room.folders[0].join("before").is_file());
    assert!(!room.folders[0].join("after").exists() && !room.folders[2].join("never").exists());
}

#[test]
fn of_steps_that_fail_the_earliest_is_named_however_many_there_are() {
    for _ in 0..20 {
        let room = room(4);
        let steps: String =
            (0..4).map(|client| write(1, client, &format!("taken-{client}"))).collect();
        let mut begin = || {
            let taken = |client: usize| {
                files::make_folder(&room.folders[client].join(format!("taken-{client}")))
            };
            (1..4).try_for_each(taken)
        };
        let error = played(&room, &steps, Duration::ZERO, &mut begin).unwrap_err();
        assert!(matches!(error, LabError::Step { client: 1, line: 3, .. }), "{error}");
        assert!(room.folders[0].join("taken-0").is_file());
    }
}

#[test]
fn a_step_that_makes_no_sense_is_named_when_all_before_it_are_done() {
    let late = "{\"do\":\"make-folder\",\"path\":\"late\"}\n";
    for (wrong, wanted) in
        [("x\n", "expected"), (late, "before all"), (&cut(1, 1, "nowhere"), "not there")]
    {
        let room = room(2);
        let steps = write(0, 0, "a") + &write(30, 1, "b") + wrong + &write(HOUR_MS, 0, "c");
        let error = played(&room, &steps, Duration::ZERO, &mut || Ok(())).unwrap_err();
        assert!(
            matches!(&error, LabError::Trace { line: 4, what } if what.contains(wanted)),
            "{error}"
        );
        assert!(room.folders[0].join("a").is_file() && room.folders[1].join("b").is_file());
        assert!(!room.folders[0].join("c").exists());
    }
}

#[test]
fn more_steps_than_are_handed_out_at_once_are_all_played() {
    // All clients have one folder, so that each has at once what another one does: every edit rests on the one before, by another client.
    let mut room = room(1);
    room.folders = vec![room.folders[0].clone(); 3];
    let steps: String = (0..AHEAD_MAX * 2)
        .map(|number| match number {
            0 => write(0, 0, "x").replace("\"size\":9", "\"size\":9000"),
            _ => cut(0, number % 3, "x"),
        })
        .collect();
    let played = played(&room, &steps, Duration::from_secs(10), &mut || Ok(())).unwrap();
    assert_eq!(played.steps, AHEAD_MAX as u64 * 2);
    assert!(played.settled.is_some(), "{:?}", played.differences);
    let left = files::read(&room.folders[0].join("x")).unwrap();
    assert_eq!(left.len(), 9001 - AHEAD_MAX * 2);
}

#[test]
fn a_step_rests_on_what_touches_its_path_or_a_folder_above_or_below() {
    let folder = |path: &str| Action::MakeFolder { path: path.to_owned() };
    let rename = |path: &str, to: &str| Action::Rename { path: path.to_owned(), to: to.to_owned() };
    let version = |path: &str, version| Action::WriteVersion {
        path: path.to_owned(),
        version,
        size: 0,
        sha256: String::new(),
    };
    for (one, other, rests) in [
        (folder("a"), folder("a"), true),
        (folder("a/b"), folder("a"), true),
        (folder("a"), folder("a/b/c"), true),
        (folder("a"), folder("ab"), false),
        (folder("a/b"), folder("a/c"), false),
        (rename("x", "a/b"), folder("a"), true),
        (rename("x", "y"), folder("a"), false),
        (version("a", 1), version("b", 1), false),
        (version("a", 2), version("b", 1), true),
        (version("a", 2), folder("b"), false),
    ] {
        assert_eq!(rests_on(&one, &other), rests, "{one:?} {other:?}");
        assert_eq!(rests_on(&other, &one), rests, "{other:?} {one:?}");
    }
}
