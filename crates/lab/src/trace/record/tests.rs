use std::time::Duration;

use super::super::data::Kind;
use super::super::play::{self, play};
use super::super::{Reader, open};
use super::*;

fn plan(folder: &Path) -> Plan {
    let pause = Duration::from_millis(5);
    Plan { folder: folder.to_owned(), name: "a day".to_owned(), pause, length: None }
}

/// Records a folder to which something is done after the first look, and then once more for each further thing.
fn record_while(folder: &Path, file: &Path, deeds: &mut [&mut dyn FnMut()]) -> Vec<Step> {
    let mut deeds = deeds.iter_mut();
    record(&plan(folder), file, &mut |_| match deeds.next() {
        Some(deed) => {
            deed();
            false
        }
        None => true,
    })
    .unwrap();
    open(file).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Plays a trace into an empty folder, and returns how large each file is then.
fn sizes_after(file: &Path, folder: &Path) -> BTreeMap<String, u64> {
    files::make_folder(folder).unwrap();
    let plan = play::Plan {
        folders: vec![folder.to_owned()],
        speed: None,
        patience: Duration::from_millis(100),
    };
    let played = play(open(file).unwrap(), &plan, &mut |_| {}).unwrap();
    assert!(played.settled.is_some(), "{played:?}");
    sizes(folder)
}

fn sizes(folder: &Path) -> BTreeMap<String, u64> {
    let size = |found| if let Found::File { size } = found { size } else { u64::MAX };
    files::tree(folder).unwrap().into_iter().map(|(path, found)| (path, size(found))).collect()
}

fn letters(length: usize) -> Vec<u8> {
    (0..length).map(|index| b"etaoin shrdlu\n"[index * index / 7 % 14]).collect()
}

#[test]
fn what_happens_to_a_folder_happens_again_when_the_trace_is_played() {
    let room = tempfile::tempdir().unwrap();
    let folder = room.path().join("folder");
    let at = |path: &str| folder.join(path);
    files::write(&at("a/letter.txt"), letters(100_000)).unwrap();
    files::write(&at("a/zero.bin"), vec![0; 5000]).unwrap();
    files::write(&at(".hidden/x"), "not recorded").unwrap();
    let mut edited = letters(100_000);
    edited.splice(50_000..50_010, *b"new bytes in the middle");
    let file = room.path().join("day.trace");
    let steps = record_while(
        &folder,
        &file,
        &mut [
            &mut || files::write_in_place(&at("a/letter.txt"), &edited).unwrap(),
            &mut || files::rename(&at("a"), &at("b")).unwrap(),
            &mut || {
                files::write(&at("c/d/new.bin"), data::bytes(Kind::Random, 90_000, 9)).unwrap();
                files::rename(&at("b/zero.bin"), &at("c/zero.bin")).unwrap();
            },
            &mut || {
                files::remove(&at("c/d/new.bin")).unwrap();
                files::remove_folder(&at("c/d")).unwrap();
                // A file where a folder was.
                files::write(&at("c/d"), "short").unwrap();
            },
        ],
    );
    let initial: Vec<_> = steps.iter().filter(|step| step.at_ms.is_none()).collect();
    assert_eq!(initial.len(), 3, "{initial:?}");
    assert!(
        matches!(&initial[1].action, Action::Write { path, size: 100_000, data: Kind::Text, .. } if path == "a/letter.txt")
    );
    assert!(matches!(&initial[2].action, Action::Write { size: 5000, data: Kind::Zero, .. }));
    let later: Vec<_> =
        steps.iter().filter(|step| step.at_ms.is_some()).map(|step| &step.action).collect();
    let Action::Edit { edits, .. } = later[0] else { panic!("{:?}", later[0]) };
    // Up to the kilobytes around it.
    assert!(edits.iter().all(|edit| edit.size <= 3 * BLOCK as u64), "{edits:?}");
    assert!(matches!(later[1], Action::Rename { path, to } if path == "a" && to == "b"));
    assert!(
        later
            .iter()
            .any(|action| matches!(action, Action::Rename { to, .. } if to == "c/zero.bin"))
    );
    assert!(
        later
            .iter()
            .any(|action| matches!(action, Action::Write { size: 90_000, data: Kind::Random, .. }))
    );
    let mut expected = sizes(&folder);
    expected.retain(|path, _| !path.starts_with('.'));
    assert_eq!(sizes_after(&file, &room.path().join("again")), expected);
}

/// Editors write a new file and put it into the place of the old one.
#[test]
fn a_file_that_is_replaced_by_another_one_is_edited() {
    let room = tempfile::tempdir().unwrap();
    let folder = room.path().join("folder");
    files::write(&folder.join("x"), letters(20_000)).unwrap();
    let file = room.path().join("day.trace");
    let mut longer = letters(20_000);
    longer.extend_from_slice(b"more");
    let steps = record_while(
        &folder,
        &file,
        &mut [&mut || {
            files::write(&folder.join("x.tmp"), &longer).unwrap();
            files::rename(&folder.join("x.tmp"), &folder.join("x")).unwrap();
        }],
    );
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert!(matches!(&steps[1].action, Action::Edit { path, .. } if path == "x"), "{steps:?}");
    assert_eq!(sizes_after(&file, &room.path().join("again"))["x"], 20_004);
}

#[test]
fn a_trace_in_the_folder_does_not_record_itself_and_ends_after_its_time() {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("day.trace");
    let length = Some(Duration::from_millis(40));
    let plan = Plan { length, ..plan(room.path()) };
    assert_eq!(record(&plan, &file, &mut |_| false).unwrap(), 0);
}

#[test]
fn a_trace_is_written_over_nothing_and_of_nothing() {
    let room = tempfile::tempdir().unwrap();
    let letter = room.path().join("letter.txt");
    files::write(&letter, "dear all").unwrap();
    let error = record(&plan(room.path()), &letter, &mut |_| true).unwrap_err();
    assert!(matches!(error, LabError::Write { .. }), "{error}");
    assert_eq!(files::read(&letter).unwrap(), b"dear all");
    let (nowhere, file) = (room.path().join("none"), room.path().join("day.trace"));
    let error = record(&plan(&nowhere), &file, &mut |_| true).unwrap_err();
    assert!(matches!(error, LabError::Read { .. }) && !file.exists(), "{error}");
}

#[test]
fn what_came_between_the_last_look_and_the_end_is_in_the_trace() {
    let room = tempfile::tempdir().unwrap();
    let folder = room.path().join("folder");
    files::write(&folder.join("x"), "x").unwrap();
    let file = room.path().join("day.trace");
    let steps = record(&plan(&folder), &file, &mut |_| {
        files::write(&folder.join("y"), "y").unwrap();
        true
    });
    assert_eq!(steps.unwrap(), 2);
}

#[test]
fn a_file_that_is_only_touched_is_no_step_and_a_line_is_not_cut() {
    let room = tempfile::tempdir().unwrap();
    let folder = room.path().join("folder");
    files::write(&folder.join("x"), "the same").unwrap();
    let file = room.path().join("day.trace");
    let again = &mut || files::write_in_place(&folder.join("x"), b"the same").unwrap();
    let steps = record_while(&folder, &file, &mut [again]);
    assert_eq!(steps.len(), 1);
    assert!(Reader::new(files::read(&file).unwrap().as_slice()).is_ok());
}
