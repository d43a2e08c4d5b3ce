//! Benchmarks that are done several times.

use std::collections::BTreeSet;

use super::*;

#[test]
fn each_repetition_has_files_of_its_own_and_the_first_is_what_is_done_once() {
    let text = "operation = \"mixed\"\ntimes = 20\nwarm_up = 3\n[mix]\nupload = 2\ndownload = 1\nedit = 1\n[files]\nsize = 300\n";
    let once = Bad::default();
    let first = play(&plan(text), &once);
    let thrice = Bad::default();
    let outcome = play(&plan(&format!("repetitions = 3\n{text}")), &thrice);
    assert!(outcome.is_good(), "{outcome:?}");
    assert_eq!((outcome.asked, outcome.records.len()), (60, 69));
    for repetition in 1..=3 {
        let records = outcome.records.iter().filter(|record| record.repetition == repetition);
        let records: Vec<_> = records.collect();
        assert!(records.iter().map(|record| record.number).eq(0..23), "{records:?}");
        assert_eq!(records.iter().filter(|record| record.is_warm_up).count(), 3);
    }
    let done = |outcome: &Outcome| -> Vec<_> {
        let first = outcome.records.iter().filter(|record| record.repetition == 1);
        first.map(|record| (record.kind, record.path.clone(), record.bytes)).collect()
    };
    assert_eq!(done(&outcome), done(&first), "the first is what is done without repetitions");
    let (once, thrice) = (once.files.into_inner().unwrap(), thrice.files.into_inner().unwrap());
    assert!(once.iter().all(|(path, bytes)| thrice.get(path) == Some(bytes)), "byte by byte");

    // Nothing is found again that another repetition has written.
    let paths: BTreeSet<_> = outcome.records.iter().map(|it| (it.repetition, &it.path)).collect();
    let names: BTreeSet<_> = outcome.records.iter().map(|record| &record.path).collect();
    assert_eq!((paths.len(), names.len()), (thrice.len(), thrice.len()));
    let contents: BTreeSet<_> = thrice.values().collect();
    assert_eq!(contents.len(), thrice.len());
    assert!(thrice.keys().any(|path| path.starts_with("benchmark-run-r3-edited-")), "{names:?}");
}

#[test]
fn one_file_or_folder_of_a_plan_is_another_one_in_each_repetition() {
    let uploads = "operation = \"upload\"\ntimes = 2\nrepetitions = 2\n[target]\nname = \"a.txt\"";
    let bad = Bad::default();
    assert!(play(&plan(uploads), &bad).is_good());
    assert_eq!(bad.files.lock().unwrap().keys().collect::<Vec<_>>(), ["a.txt", "r2-a.txt"]);

    let room = tempfile::tempdir().unwrap();
    files::write(&room.path().join("there/a"), "of a").unwrap();
    let mut plan = plan("operation = \"download\"\nrepetitions = 2");
    plan.target.local_directory = Some(room.path().join("here"));
    assert!(play(&plan, &folder(&room.path().join("there"))).is_good());
    for copy in ["here/a", "here-r2/a"] {
        assert_eq!(files::read(&room.path().join(copy)).unwrap(), b"of a");
    }
}

#[test]
fn a_repetition_that_fails_counts_and_hides_no_other() {
    // The puts from the sixth to the tenth, which is the second repetition.
    let bad = Bad { fails_within: Some((6, 10)), ..Bad::default() };
    let plan = plan("operation = \"upload\"\ntimes = 5\nrepetitions = 3");
    let outcome = play(&plan, &bad);
    assert_eq!((outcome.failed(), outcome.asked, outcome.acknowledged), (5, 15, 10));
    assert!(!outcome.is_good());
    let room = tempfile::tempdir().unwrap();
    let output = Output::new(room.path().into(), room.path().into()).unwrap();
    let numbers = report::write(&plan, "a store", "1.2", &outcome, &output).unwrap();
    let over = &numbers["over_repetitions"];
    assert_eq!((&numbers["repetitions"], &over["whole"]), (&3.into(), &3.into()));
    assert_eq!(over["bytes_per_second"]["min"], 0.0);
    assert!(over["bytes_per_second"]["median"].as_f64() > Some(0.0), "{over}");
    assert_eq!(over["operations"][0]["repetitions"], 2, "of the other no operation has a time");
    assert!(over["operations"][0]["p99"]["max"].is_f64(), "{over}");
    let text =
        |name: &str| String::from_utf8(files::read(&room.path().join(name)).unwrap()).unwrap();
    let page = text("benchmark.html");
    assert!(page.contains("in 3 repetitions") && page.contains("How far repetitions agree"));
    assert!(page.contains("5 operations failed.") && page.contains("upload p99, ms"), "{page}");
    assert!(text("benchmark.csv").contains("\n3,4,0,upload,0,"), "{}", text("benchmark.csv"));

    // Nothing is said of one.
    let plan = self::plan("operation = \"upload\"");
    let numbers =
        report::write(&plan, "a store", "1.2", &play(&plan, &Bad::default()), &output).unwrap();
    assert!(numbers["over_repetitions"].is_null() && numbers["repetitions"] == 1, "{numbers}");
    assert!(!text("benchmark.html").contains("repetitions"));
}

#[test]
fn what_was_measured_before_this_computer_cannot_go_on_is_told() {
    let room = tempfile::tempdir().unwrap();
    let mut plan = plan("operation = \"upload\"\ntimes = 2\nrepetitions = 3");
    plan.files.keep_in = Some(room.path().to_owned());
    // Where the second repetition would keep its second file.
    std::fs::create_dir(room.path().join("benchmark-run-r2-000001")).unwrap();
    let outcome = play(&plan, &Bad::default());
    let broken = outcome.broken.clone().unwrap();
    assert!(broken.starts_with("repetition 2: cannot write "), "{broken}");
    assert_eq!((outcome.records.len(), outcome.acknowledged, outcome.unread), (3, 3, 0));
    assert!(!outcome.is_good() && outcome.repeated().unwrap().whole == 1, "{outcome:?}");
    let error = run(&plan, &Bad::default(), "run-r2", None, &mut |_| true).unwrap_err();
    assert!(matches!(error, LabError::Write { .. }), "in the first there is nothing to tell");
}

#[test]
fn who_wants_it_to_end_ends_all_repetitions() {
    let plan = plan("operation = \"upload\"\ntimes = 3\nrepetitions = 9\npause = { fixed = 1 }");
    let mut last = (0, 0);
    let mut goes_on = |progress: Progress<'_>| {
        last = (progress.done, progress.all);
        false
    };
    let outcome = run(&plan, &Bad::default(), "run", None, &mut goes_on).unwrap();
    assert!(outcome.records.len() < 3 && outcome.asked == 27, "{outcome:?}");
    assert_eq!((last.1, outcome.repeated()), (27, None));
}
