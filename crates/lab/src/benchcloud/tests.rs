//! The experiments with targets that are folders: what they count, and what they leave behind.

use super::place::Kind;
use super::{client, median, readiness, sensors, size_name, sizes, threads};
use crate::error::LabError;
use crate::experiment::Run;
use crate::files;
use crate::output::Output;
use crate::room::Room;
use crate::targets::testing::setting;

/// Runs an experiment, and returns its table and its page.
fn measured(name: &str, only: &str, run: Run) -> (String, String) {
    let room = tempfile::tempdir().unwrap();
    let (out, work) = (room.path().join("out"), room.path().join("work"));
    let output = Output::new(out.clone(), out.clone()).unwrap();
    run(&setting(&work, Some(only)), &output, &mut |_| {}).unwrap();
    assert_eq!(files::list(&work).unwrap().len(), 0, "what was made is gone");
    let read = |end: &str| {
        String::from_utf8(files::read(&out.join(format!("{name}.{end}"))).unwrap()).unwrap()
    };
    (read("csv"), read("html"))
}

#[test]
fn a_client_is_charged_for_what_it_sends() {
    let (csv, page) = measured("benchcloud-client", "4.10", client::measure);
    // Five parts in common; the last version alone is there in the end.
    assert_eq!(csv.lines().count(), 1 + 5, "{csv}");
    assert!(csv.contains("figure 4.10,50,5,10485760,10485760,0,0\n"), "{csv}");
    assert!(page.contains("<td>30.000</td>") && page.contains("Nothing failed"), "{page}");
}

#[test]
fn a_file_that_is_there_at_once_is_ready_at_once() {
    let (csv, page) = measured("benchcloud-readiness", "10 KB", readiness::measure);
    assert_eq!(csv.lines().count(), 1 + 3 * 2, "{csv}");
    assert!(page.contains("<td>200 MB</td><td>255</td><td>-</td>"), "{page}");
}

#[test]
fn every_file_that_was_sent_is_counted_and_found_again() {
    let (csv, page) = measured("benchcloud-sizes", "10 KB", sizes::measure);
    // Up and down, but for the workspace, whose files are here.
    assert_eq!(csv.lines().count(), 1 + 7, "{csv}");
    assert!(page.contains("Figure 4.5") && page.contains("Nothing failed"), "{page}");
    let (csv, page) =
        measured("benchcloud-sensors", "table 4.2, 30 sensors, 10 s", sensors::measure);
    assert_eq!(csv.lines().count(), 1 + 1, "{csv}");
    assert!(csv.contains("4.2,file store,30,10,0,30,300,0,0.00,17.33,"), "{csv}");
    assert!(
        page.contains("<td>30, 10 s, file store</td><td>17.33 %</td><td>0.00 %</td>"),
        "{page}"
    );
}

#[test]
fn what_no_part_is_called_is_refused() {
    let room = tempfile::tempdir().unwrap();
    let output = Output::new(room.path().join("out"), room.path().join("out")).unwrap();
    let setting = setting(&room.path().join("work"), Some("4.11"));
    for run in
        [threads::measure, sizes::measure, sensors::measure, client::measure, readiness::measure]
    {
        let error = run(&setting, &output, &mut |_| {}).unwrap_err();
        assert!(
            matches!(&error, LabError::NothingNamed { pattern, .. } if pattern == "4.11"),
            "{error}"
        );
    }
}

#[test]
fn every_target_has_a_folder_of_its_own_that_goes_with_it() {
    let room = tempfile::tempdir().unwrap();
    let setting = setting(room.path(), None);
    for kind in Kind::ALL {
        let one = kind.open(&setting).unwrap();
        let other = kind.open(&setting).unwrap();
        one.driver.put("a/b", b"bytes", true).unwrap();
        assert_eq!(one.driver.get("a/b").unwrap().as_deref(), Some(&b"bytes"[..]), "{kind:?}");
        assert_eq!(other.driver.get("a/b").unwrap(), None, "{kind:?}");
    }
    assert_eq!(files::list(room.path()).unwrap().len(), 0);
    // What was there before is nobody's to take.
    files::write(&room.path().join("room-0/file"), b"mine").unwrap();
    drop(Room::new(room.path()).unwrap());
    assert_eq!(files::read(&room.path().join("room-0/file")).unwrap(), b"mine");
}

#[test]
fn numbers_are_written_as_the_thesis_does() {
    assert_eq!([size_name(1024), size_name(20 << 20)], ["1 KB", "20 MB"]);
    assert_eq!(
        [median(vec![]), median(vec![3.0, 1.0, 2.0]), median(vec![4.0, 1.0])],
        [0.0, 2.0, 2.5]
    );
}
