//! Probes of stores that do everything as they should, and of those of which each does one thing wrong: every answer has to be found out.

mod stores;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use super::room::rest;
use super::*;
use crate::files;
use crate::output::Output;
use crate::probe::report as all_reports;
use crate::stopwatch::Stopwatch;
use stores::{Faults, InFolder, Memory};

/// Few and small, so that a test is soon done.
const SIZES: Sizes = Sizes {
    calls: 5,
    large: 100_000,
    largest: 200_000,
    burst: Duration::from_millis(40),
    burst_max: 100,
    awaited: 4,
    listed: 60,
    page: 20,
    load: 60,
    races: 3,
};

fn subject(store: &Memory, patience: Duration) -> Subject<'_> {
    Subject { name: "a store".into(), store, witness: store, patience, sizes: SIZES }
}

/// By the features they are about.
type Said = BTreeMap<String, (String, String)>;

/// Probes a store, and returns what is said of it.
fn probe(faults: Faults) -> (Findings, Said) {
    probe_for(faults, Duration::from_secs(5))
}

fn probe_for(faults: Faults, patience: Duration) -> (Findings, Said) {
    let store = Memory::new(faults);
    store.write("somebody", Some(b"else".to_vec()));
    let subject = subject(&store, patience);
    let findings = run(&subject, "probe/1", 7, &mut |_| {}, &|| true).unwrap();
    if !faults.keeps {
        assert_eq!(store.names(), BTreeSet::from(["somebody".to_owned()]), "nothing stays");
        assert_eq!(findings.left, [""; 0]);
    }
    let answers = answers::answers(&subject, &findings);
    assert!(answers.iter().all(|it| !it.evidence.is_empty() && !it.answer.is_empty()));
    let answers = answers.into_iter().map(|it| (it.feature, (it.answer, it.evidence)));
    (findings, answers.collect())
}

/// Answers that say that something is as it should be.
const GOOD: [(&str, &str); 12] = [
    ("Ready after", "at once"),
    ("Listed after", "at once"),
    ("Overwriting read after", "at once"),
    ("Overwriting listed after", "at once"),
    ("Removal read after", "at once"),
    ("Removal listed after", "at once"),
    ("Lists while objects come and go", "right"),
    ("Lists over several pages", "right"),
    ("Loss under load", "0 of 60"),
    ("Makes an object only where none is", "yes"),
    ("Empty object", "0 B, whole"),
    ("Calls that failed", "0"),
];

/// Makes sure that a store is said to do everything as it should, but for some things, and returns what is said of those.
fn only<const COUNT: usize>(faults: Faults, others: [&str; COUNT]) -> [(String, String); COUNT] {
    let (_, said) = probe(faults);
    for (feature, good) in GOOD {
        if !others.contains(&feature) {
            assert_eq!(said[feature].0, good, "{feature}: {}", said[feature].1);
        }
    }
    others.map(|other| said[other].clone())
}

#[test]
fn a_store_that_does_all_as_it_should_is_said_to() {
    let (findings, said) = probe(Faults::default());
    for (feature, good) in GOOD {
        assert_eq!(said[feature].0, good, "{feature}: {}", said[feature].1);
    }
    assert_eq!(said["Largest object tried"].0, "200.0 kB, whole");
    assert!(said["Put of 1 KiB"].1.starts_with("5 one after the other: half within "));
    assert!(said["Bandwidth up"].1.starts_with("100.0 kB in "), "{said:?}");
    let listings = findings.listings.unwrap();
    assert_eq!((listings.put, listings.removed, listings.last_pages), (60, 6, 3));
    assert_eq!(findings.levels.len(), LEVELS.len());
    assert_eq!(findings.all.bad(), 0);
}

#[test]
fn a_store_over_folders_does_all_as_it_should_too() {
    let room = tempfile::tempdir().unwrap();
    let store = InFolder(room.path().to_owned());
    let subject = Subject {
        name: "folder".into(),
        store: &store,
        witness: &store,
        patience: Duration::from_secs(5),
        sizes: SIZES,
    };
    let findings = run(&subject, "probe", 7, &mut |_| {}, &|| true).unwrap();
    let said = answers::answers(&subject, &findings);
    for (feature, good) in GOOD {
        let it = said.iter().find(|it| it.feature == feature).unwrap();
        let good = if feature.starts_with("Makes") { "not offered" } else { good };
        assert_eq!(it.answer, good, "{feature}: {}", it.evidence);
    }
    let left = files::below(room.path()).unwrap();
    assert_eq!(left.len(), 0, "{left:?}");
}

#[test]
fn what_others_see_later_is_measured() {
    let late = [
        "Ready after",
        "Listed after",
        "Overwriting read after",
        "Overwriting listed after",
        "Removal read after",
        "Removal listed after",
        "Lists while objects come and go",
        "Lists over several pages",
    ];
    let faults = Faults { delay: Duration::from_millis(40), ..Faults::default() };
    let said = only(faults, late);
    for (answer, evidence) in &said[..6] {
        let millis: f64 = answer.strip_suffix(" ms").unwrap().parse().unwrap();
        assert!((39.0..5000.0).contains(&millis), "{answer}: {evidence}");
        assert!(evidence.starts_with("0 of 4 at the first look, half within "), "{evidence}");
        assert!(!evidence.contains("; 0 "), "{evidence}");
    }
    assert!(said[6].0.contains("times lacked what was acknowledged"), "{:?}", said[6]);
    assert!(said[7].0.starts_with("right after "), "{:?}", said[7]);

    let faults = Faults { delay: Duration::from_secs(60), ..Faults::default() };
    let (findings, said) = probe_for(faults, Duration::from_millis(20));
    assert_eq!(said["Ready after"].0, "not within 20 ms");
    assert_eq!(findings.visibility[0].tried, 1, "patience for one is enough");
    assert_eq!(said["Lists over several pages"].0, "never right");
    assert_eq!(said["Loss under load"].0, "60 of 60");
}

#[test]
fn an_old_state_that_comes_back_is_found() {
    let (findings, said) = probe(Faults { flaps: true, ..Faults::default() });
    assert!(said["Overwriting read after"].0.ends_with(" reads went back"), "{said:?}");
    assert!(findings.visibility.iter().map(|it| it.read.back).sum::<u64>() > 0);
}

#[test]
fn lists_that_cannot_be_believed_are_found_out() {
    let meanwhile = "Lists while objects come and go";
    let then = "Lists over several pages";
    let words = |faults: Faults| {
        let (_, said) = probe_for(faults, Duration::from_millis(100));
        assert_eq!(said["Ready after"].0, "at once", "what is read is another question");
        (said[meanwhile].0.clone(), said[then].0.clone(), said["Listed after"].0.clone())
    };
    let (first, second, listed) = words(Faults { stale_lists: true, ..Faults::default() });
    assert!(first.contains("times lacked what was acknowledged"), "{first}");
    assert_eq!((&second[..], &listed[..]), ("never right", "not within 100 ms"));

    let (first, second, _) = words(Faults { doubled: true, ..Faults::default() });
    assert!(first.contains("times named something twice"), "{first}");
    assert_eq!(second, "never right");

    let (first, _, _) = words(Faults { reversed: true, ..Faults::default() });
    assert!(first.contains("times were out of order"), "{first}");

    let (first, second, _) = words(Faults { lingering: true, ..Faults::default() });
    assert!(first.contains("named what was removed"), "{first}");
    assert_eq!(second, "never right");
}

#[test]
fn the_number_of_calls_that_a_store_bears_is_found() {
    let levels = |rates: &[f64]| -> Vec<Level> {
        let level = |(at, rate): (usize, &f64)| Level {
            calls: LEVELS[at],
            tally: Tally { times: vec![Duration::ZERO; *rate as usize], ..Tally::default() },
            took: Duration::from_secs(1),
        };
        rates.iter().enumerate().map(level).collect()
    };
    let said = |rates: &[f64]| {
        let store = Memory::new(Faults::default());
        let findings = Findings { levels: levels(rates), ..Findings::default() };
        let answers = answers::answers(&subject(&store, Duration::ZERO), &findings);
        answers.into_iter().find(|it| it.feature == "Calls at once").unwrap().answer
    };
    assert_eq!(said(&[100., 200., 390., 400., 410., 390., 300.]), "4: 390 puts/s");
    assert_eq!(said(&[100., 99., 101., 100., 90., 90., 90.]), "1: 100 puts/s");
    assert_eq!(said(&[100., 90., 300., 310., 310., 310., 310.]), "4: 300 puts/s");
    assert_eq!(said(&[10., 20., 40., 80., 160., 320., 640.]), "64 or more: 640 puts/s");
    assert_eq!(said(&[0., 0.]), "not known");
    assert_eq!(said(&[]), "not known");

    // A store in which four calls have room at once, each for two milliseconds, does no more than that, however busy the machine is.
    let (findings, said) = probe(Faults { room: 4, ..Faults::default() });
    assert!(findings.levels[0].rate() <= 500.0, "{:?}", findings.levels[0]);
    assert!(findings.levels.iter().all(|level| level.rate() <= 2000.0));
    assert!(!said["Calls at once"].0.starts_with("1:"), "{:?}", said["Calls at once"]);
}

#[test]
fn what_a_store_refuses_is_counted_and_no_call_that_failed_is_a_fast_one() {
    let (findings, said) = probe(Faults { refuses_above: 4, room: 64, ..Faults::default() });
    let last = &findings.levels[6];
    assert!(last.tally.refused > 0 && last.tally.failed == 0, "{last:?}");
    let (answer, evidence) = &said["Calls at once"];
    assert!(answer.ends_with(" refused") && evidence.contains("(refused: slow down)"), "{answer}");
    assert_eq!(findings.levels[0].tally.bad(), 0);
    let load = findings.load.unwrap();
    assert_eq!(load.tally.times.len() as u64 + load.tally.refused, 60);
    assert_eq!((load.lost, load.unacknowledged), (0, 0));
    assert_ne!(said["Calls that failed"].0, "0");
}

#[test]
fn what_is_lost_under_load_is_counted() {
    let said = |faults: Faults| {
        let (findings, said) = probe_for(faults, Duration::from_millis(100));
        (findings.load.unwrap(), said["Loss under load"].clone())
    };
    let (load, (answer, evidence)) = said(Faults { forgets: 7, ..Faults::default() });
    assert!((8..=9).contains(&load.lost) && load.damaged == 0, "{load:?}");
    assert_eq!(answer, format!("{} of 60", load.lost));
    assert!(evidence.contains(", for example load/"), "{evidence}");

    let (load, (answer, _)) = said(Faults { damages: 7, ..Faults::default() });
    assert!((8..=9).contains(&load.damaged) && load.lost == 0, "{load:?}");
    assert_eq!(answer, format!("{} of 60", load.damaged));

    // What was not acknowledged may be there, and is not lost.
    let (load, (answer, evidence)) = said(Faults { unanswered: 7, ..Faults::default() });
    assert!((8..=9).contains(&load.unacknowledged), "{load:?}");
    assert_eq!(answer, format!("0 of {}", 60 - load.unacknowledged));
    assert!(evidence.contains("failed (the answer was lost)"), "{evidence}");
}

#[test]
fn a_race_that_several_win_is_found() {
    let makes = "Makes an object only where none is";
    let [(answer, evidence)] = only(Faults { racy_create: true, ..Faults::default() }, [makes]);
    assert_eq!(answer, "no: 3 of 3 races went wrong");
    assert!(evidence.contains("0 had one winner whose bytes stayed, 3 several winners"));
    let [(answer, _)] = only(Faults { no_create: true, ..Faults::default() }, [makes]);
    assert_eq!(answer, "not offered");
}

#[test]
fn empty_and_large_objects_that_do_not_come_back_are_found() {
    let empty = ["Empty object"];
    let [(answer, evidence)] = only(Faults { no_empty: true, ..Faults::default() }, empty);
    assert_eq!(answer, "not 0 B");
    assert!(evidence.contains("empty was put and is not there"), "{evidence}");
    let faults = Faults { size_max: 150_000, ..Faults::default() };
    let [(answer, _)] = only(faults, ["Calls that failed"]);
    assert_eq!(answer, "1");
    assert_eq!(probe(faults).1["Largest object tried"].0, "not 200.0 kB");
}

#[test]
fn what_is_not_removed_is_said() {
    let (findings, said) = probe(Faults { keeps: true, ..Faults::default() });
    assert!(findings.left.contains(&"probe/1/first".to_owned()), "{:?}", findings.left);
    assert_eq!(said["Removal read after"].0, "not known");
    assert_eq!(said["Delete"].0, "not known");
}

#[test]
fn a_store_that_takes_nothing_is_an_error_and_one_that_is_left_early_is_tidied_up() {
    let store = Memory::new(Faults { closed: true, ..Faults::default() });
    let subject_of = |store| subject(store, Duration::from_millis(200));
    let error = run(&subject_of(&store), "probe", 1, &mut |_| {}, &|| true).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LabError::Store { .. }) && text.contains("no such bucket"), "{text}");

    let store = Memory::new(Faults::default());
    let goes_on = AtomicBool::new(true);
    let mut tell = |what: &str| {
        if what.starts_with("8 ") {
            goes_on.store(false, Ordering::SeqCst);
        }
    };
    let ask = || goes_on.load(Ordering::SeqCst);
    let subject = subject_of(&store);
    let findings = run(&subject, "probe", 1, &mut tell, &ask).unwrap();
    assert!(findings.ended_early && findings.calls.is_some() && findings.load.is_none());
    assert_eq!(store.names(), BTreeSet::new());
    let said = answers::answers(&subject, &findings);
    let loss = said.iter().find(|it| it.feature == "Loss under load").unwrap();
    assert_eq!((&loss.answer[..], &loss.evidence[..]), ("not known", "it was ended before that"));
}

#[test]
fn answers_of_stores_stand_beside_each_other_and_apart_from_those_of_programs() {
    let room = tempfile::tempdir().unwrap();
    let mut folders = Vec::new();
    for (name, faults) in
        [("good", Faults::default()), ("forgetful", Faults { forgets: 7, ..Faults::default() })]
    {
        let store = Memory::new(faults);
        let subject = Subject { name: name.into(), ..subject(&store, Duration::from_millis(50)) };
        let findings = run(&subject, "probe", 7, &mut |_| {}, &|| true).unwrap();
        let folder = room.path().join(name);
        let output = Output::of_run(&folder).unwrap();
        let probed = report::write(&subject, &findings, "1.2", &output).unwrap();
        assert_eq!((probed.answers.len(), probed.warnings.len()), (20, 0));
        let text =
            |name: &str| String::from_utf8(files::read(&folder.join(name)).unwrap()).unwrap();
        assert!(text("probe.html").contains("<svg"), "the drawing is on the page");
        assert!(text("calls-at-once.svg").contains("calls at once"));
        assert!(
            text("probe.csv").starts_with("experiment,done,refused,failed,seconds,p50_seconds")
        );
        assert!(text("probe.csv").contains("\nload,60,0,0,"), "{}", text("probe.csv"));
        assert!(text("probe.json").contains("\"kind\": \"store\""));
        folders.push(folder);
    }
    let output = Output::of_run(&room.path().join("tables")).unwrap();
    assert!(all_reports::tables(&folders, &output).unwrap().is_empty());
    let page = files::read(&room.path().join("tables/probes.md")).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.starts_with("# What stores do"), "{page}");
    assert!(page.contains("| feature | good | forgetful |"), "{page}");
    assert!(page.contains("| Loss under load | 0 of 60 | "), "{page}");

    // One of a program, as it was written before there were stores.
    let old = "{\"name\": \"rsync\", \"answers\": [{\"feature\": \"Loss under load\", \
               \"answer\": \"0 of 9\", \"evidence\": \"e\"}], \"warnings\": []}";
    files::write(&room.path().join("old/probe.json"), old).unwrap();
    folders.push(room.path().join("old"));
    all_reports::tables(&folders, &output).unwrap();
    let page = files::read(&room.path().join("tables/probes.md")).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.starts_with("# What programs and stores do"), "{page}");
    assert!(
        page.contains("| feature | rsync |\n") && page.contains("| feature | good | forgetful |")
    );
}

#[test]
fn a_pause_grows_with_what_was_waited_for_and_has_an_end() {
    let watch = Stopwatch::start();
    rest(Duration::ZERO);
    let short = watch.wall();
    rest(Duration::from_secs(3600));
    assert!(short < Duration::from_millis(300) && watch.wall() >= Duration::from_millis(500));
}

#[test]
fn shares_of_calls_are_by_nearest_rank() {
    let times = (1..=100).rev().map(Duration::from_millis).collect();
    let tally = Tally { times, ..Tally::default() };
    let within = |share| tally.within(share).unwrap().as_millis();
    assert_eq!([0.5, 0.99, 1.0].map(within), [50, 99, 100]);
    assert_eq!(Tally::default().within(0.5), None);
}
