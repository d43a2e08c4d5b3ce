use std::cell::Cell;

use super::answers::{Answer, answers};
use super::steps::{Steps, Wire};
use super::*;
use crate::capture::Way;
use crate::output::Output;

/// A wire that nothing goes over, or what a program says some time after the change.
#[derive(Default)]
struct Spoken {
    has_words: bool,
    was_heard: Cell<bool>,
}

impl Wire for Spoken {
    fn now(&self, _patience: Duration) -> Result<Option<Duration>, LabError> {
        self.was_heard.set(false);
        Ok(Some(Duration::from_secs(1)))
    }

    fn wait_for_payload(&self, since: Duration, _patience: Duration) -> Result<bool, LabError> {
        assert_eq!(since, Duration::from_secs(1));
        self.was_heard.set(self.has_words);
        Ok(self.has_words)
    }

    fn wait_for_silence(&self, _silence: Duration, _patience: Duration) -> Result<bool, LabError> {
        Ok(true)
    }

    fn take(&self) -> Counts {
        let payload = if self.was_heard.get() { 7 } else { 0 };
        Counts { up: Way { payload, ..Way::default() }, ..Counts::default() }
    }
}

fn subject(room: &Path) -> Subject {
    let [folder, there] = ["here", "there"].map(|name| room.join(name));
    for folder in [&folder, &there] {
        if !folder.exists() {
            files::make_folder(folder).unwrap();
        }
    }
    Subject {
        name: "a program".into(),
        folder,
        seen_in: Some(there),
        command: None,
        ports: vec![1],
        stored: None,
        elsewhere: None,
        patience: Duration::from_secs(30),
        silence: Duration::ZERO,
        sizes: Sizes {
            large: 40_000,
            bundle: 3,
            load: 5,
            appends: 3,
            append_every: Duration::ZERO,
            idle: Duration::ZERO,
        },
    }
}

fn play(subject: &Subject, name: &str, steps_max: usize) -> Result<Vec<Row>, LabError> {
    play_over(&Spoken::default(), subject, name, steps_max)
}

fn play_over(
    wire: &Spoken,
    subject: &Subject,
    name: &str,
    steps_max: usize,
) -> Result<Vec<Row>, LabError> {
    let mut steps = Steps::new(subject, name, wire, Random::new(1))?;
    let mut done = 0;
    let is_whole = steps.all(b"mark", "secret", &mut |_| {
        done += 1;
        done < steps_max
    })?;
    assert_eq!(is_whole, done < steps_max);
    Ok(steps.into_rows())
}

#[test]
fn every_step_is_done_and_seen_where_it_belongs() {
    let room = tempfile::tempdir().unwrap();
    let mut subject = subject(room.path());
    let [here, there] = [&subject.folder, subject.seen_in.as_ref().unwrap()].map(|it| it.display());
    // It copies, and removes what has gone: what each small program for it does.
    subject.command = Some(format!("rm -rf '{there}'/probe && cp -r '{here}'/probe '{there}'/"));
    let rows = play(&subject, "probe", usize::MAX).unwrap();
    assert!(rows.iter().all(|row| row.missing == 0 && row.took.is_some()), "{rows:?}");
    let mut steps: Vec<Step> = rows.iter().map(|row| row.step).collect();
    assert_eq!(steps.iter().filter(|step| **step == Step::OneByte).count(), 5);
    steps.dedup();
    assert_eq!((steps.len(), steps[0], steps[17]), (18, Step::Idle, Step::Load));
    let bytes = |step: Step| rows.iter().find(|row| row.step == step).unwrap().bytes;
    assert_eq!((bytes(Step::Shifted), bytes(Step::Twins)), (40_001, 40_000));
    assert_eq!((bytes(Step::Insert), bytes(Step::Append)), (41_024, 42_048));
    assert_eq!((bytes(Step::Halves), bytes(Step::Growing)), (200_000, 3072));
    assert_eq!((bytes(Step::Remove), bytes(Step::Bundle), bytes(Step::Load)), (0, 3072, 5120));
    let left = files::below(&room.path().join("there/probe")).unwrap();
    assert_eq!(left.len(), 1 + 1 + 4 + 1 + 5 + 1 + 3 + 5, "{left:?}");

    // A second probe goes into a folder of its own, and touches nothing of the first one.
    let error = play(&subject, "probe", usize::MAX).unwrap_err();
    assert!(matches!(error, LabError::Write { .. }), "{error}");
}

#[test]
fn what_never_comes_is_counted_and_the_probe_goes_on() {
    let room = tempfile::tempdir().unwrap();
    let mut subject = subject(room.path());
    subject.patience = Duration::from_millis(10);
    let rows = play(&subject, "probe", 4).unwrap();
    assert_eq!(rows.len(), 4, "somebody wanted it to end");
    assert!(rows[1..].iter().all(|row| row.missing == 1 && row.took.is_none()), "{rows:?}");
    assert_eq!((rows[0].missing, rows[0].files), (0, 0));

    // A busy machine takes its time to begin a program.
    subject.patience = Duration::from_secs(30);
    subject.command = Some("echo no >&2; exit 3".into());
    let error = play(&subject, "other", 4).unwrap_err().to_string();
    assert!(error.contains("exit status: 3: no"), "{error}");

    subject.patience = Duration::from_millis(10);
    subject.command = Some("sleep 600 & sleep 600".into());
    let error = play(&subject, "third", 4).unwrap_err().to_string();
    assert!(error.contains("it has not ended after 0.01 s"), "{error}");
    subject.patience = Duration::from_secs(30);
    subject.command = Some("sleep 600 & true".into());
    subject.seen_in = None;
    let wire = Spoken { has_words: true, ..Spoken::default() };
    let rows = play_over(&wire, &subject, "fourth", 2).unwrap();
    assert_eq!(rows[1].missing, 0, "what a command leaves in the background is not waited for");
}

#[test]
fn where_nobody_sees_a_change_it_is_done_when_something_was_said_after_it() {
    let room = tempfile::tempdir().unwrap();
    let subject = Subject { seen_in: None, ..subject(room.path()) };
    let wire = Spoken { has_words: true, ..Spoken::default() };
    let rows = play_over(&wire, &subject, "probe", usize::MAX).unwrap();
    let changed = &rows[1..];
    assert!(changed.iter().all(|row| row.missing == 0 && row.took.is_none()), "{rows:?}");
    assert!(changed.iter().all(|row| row.counts.up.payload == 7), "{rows:?}");
    let rows = play(&subject, "other", usize::MAX).unwrap();
    assert!(rows[1..].iter().all(|row| row.missing > 0), "nothing was said: {rows:?}");
}

#[test]
fn what_one_account_has_comes_into_the_folder_of_another_one() {
    let room = tempfile::tempdir().unwrap();
    let elsewhere = room.path().join("elsewhere");
    files::make_folder(&elsewhere).unwrap();
    let subject =
        Subject { seen_in: None, elsewhere: Some(elsewhere.clone()), ..subject(room.path()) };
    let wire = Spoken { has_words: true, ..Spoken::default() };
    let rows = play_over(&wire, &subject, "probe", usize::MAX).unwrap();
    let last = rows.last().unwrap();
    assert_eq!((last.step, last.bytes, last.missing), (Step::Elsewhere, 40_000, 0));
    let [here, there] = [&subject.folder, &elsewhere].map(|it| it.join("probe/copy"));
    assert_eq!(files::read(&here).unwrap(), files::read(&there).unwrap());
}

#[test]
fn marks_are_found_in_stored_files_and_in_their_names() {
    let room = tempfile::tempdir().unwrap();
    let marks = [Mark(b"content".to_vec()), Mark(b"secret-1".to_vec())];
    let look = || look_for(room.path(), &marks);
    assert_eq!(look(), Stored { content: false, name: false, files: 0, unread: 0 });
    // A mark that lies over the border of two pieces that are read.
    let mut long = vec![b'-'; (1 << 20) - 3];
    long.extend_from_slice(b"content");
    files::write(&room.path().join("a/b"), &long).unwrap();
    assert_eq!(look(), Stored { content: true, name: false, files: 1, unread: 0 });
    files::write(&room.path().join("a/xsecret-1x"), b"").unwrap();
    assert_eq!(look(), Stored { content: true, name: true, files: 2, unread: 0 });
    let gone = look_for(&room.path().join("gone"), &marks);
    assert_eq!(gone, Stored { content: false, name: false, files: 0, unread: 1 });
}

/// Makes a row of a step that has moved so much.
fn row(step: Step, files: u64, bytes: u64, moved: u64) -> Row {
    let up = Way { packets: 1, wire: moved, payload: moved };
    let counts = Counts { up, connections: 1, turns: 2, seen: vec![false; 2], ..Counts::default() };
    let took = Some(Duration::from_millis(250));
    Row { step, files, bytes, took, missing: 0, counts, is_silent: true }
}

const LARGE: u64 = 1_000_000;

/// What a program shows that moves whole files, and nothing but them.
fn whole_files() -> Vec<Row> {
    let large = |step, bytes| row(step, 1, bytes, bytes + 500);
    let mut rows = vec![
        row(Step::Idle, 0, 0, 4000),
        row(Step::Small, 1, 1024, 1500),
        row(Step::Secret, 1, 1024, 1500),
        row(Step::Bundle, 30, 30 * 1024, 50_000),
        row(Step::Growing, 1, 5 * 1024, 15 * 1024),
        row(Step::Halves, 5, 5 * LARGE, 5 * LARGE),
        row(Step::Load, 100, 100 * 1024, 150_000),
        large(Step::Twins, LARGE),
    ];
    for step in [Step::Large, Step::Text, Step::Copy, Step::Shifted, Step::Rename] {
        rows.push(large(step, LARGE));
    }
    for step in [Step::OneByte, Step::Insert, Step::Append, Step::Again, Step::Elsewhere] {
        rows.push(large(step, LARGE));
    }
    for row in &mut rows {
        row.counts.plain = 1;
        row.counts.turns = row.files;
        row.counts.connections = row.files;
    }
    rows[2].counts.seen = vec![true, true];
    rows
}

fn said(rows: Vec<Row>, stored: Option<Stored>) -> Vec<(String, String)> {
    let room = tempfile::tempdir().unwrap();
    let findings = Findings { rows, stored, missed: 0, ended_early: false };
    let answers = answers(&subject(room.path()), &findings);
    assert!(answers.iter().all(|answer| !answer.evidence.is_empty()), "{answers:?}");
    answers.into_iter().map(|Answer { feature, answer, .. }| (feature, answer)).collect()
}

#[test]
fn a_program_of_whole_files_is_known_by_what_it_moves() {
    let stored = Some(Stored { content: true, name: true, files: 9, unread: 0 });
    let said = said(whole_files(), stored);
    let said: Vec<&str> = said.iter().map(|(_, answer)| answer.as_str()).collect();
    assert_eq!(
        said,
        [
            "no",
            "yes",
            "yes",
            "no",
            "no",
            "no",
            "no",
            "yes",
            "no",
            "no: whole files",
            "no: a connection for each file",
            "1.000 times what is new",
            "1.667 times what is new",
            "3.000 times what is new",
            "0.25 s",
            "0 of 100",
            "16.0 kB/s"
        ]
    );
}

#[test]
fn a_program_of_parts_is_known_by_what_it_does_not_move() {
    let mut rows = whole_files();
    for row in &mut rows {
        let counts = &mut row.counts;
        (counts.tls, counts.plain, counts.seen) = (1, 0, vec![false; 2]);
        (counts.connections, counts.turns) = (0, 3);
        counts.up.wire = match row.step {
            Step::Text => 250_000 + 1500,
            Step::OneByte | Step::Insert => 60_000 + 1500,
            Step::Halves => 3 * LARGE,
            Step::Copy | Step::Shifted | Step::Rename | Step::Again => 3000,
            _ => counts.up.wire,
        };
    }
    let stored = Some(Stored { content: false, name: false, files: 9, unread: 0 });
    let said_of_parts = said(rows.clone(), stored);
    let answers: Vec<&str> = said_of_parts.iter().map(|(_, answer)| answer.as_str()).collect();
    assert_eq!(
        answers,
        [
            "yes, TLS",
            "no",
            "no",
            "yes, text 4.0 to 1",
            "yes, parts at any place of a file",
            "yes",
            "no",
            "no",
            "yes, where bytes move, too",
            "parts: a changed byte moves 60.0 kB",
            "nobody waits for each file: 0.10 turns a file",
            "1.000 times what is new",
            "1.000 times what is new",
            "3.000 times what is new",
            "0.25 s",
            "0 of 100",
            "16.0 kB/s"
        ]
    );
    // With cuts at fixed places, a byte in front changes everything behind it.
    for row in &mut rows {
        if matches!(row.step, Step::Shifted | Step::Insert) {
            row.counts.up.wire = LARGE;
        }
    }
    let said = said(rows, None);
    assert_eq!(said[4].1, "yes, whole files or parts at fixed places");
    assert_eq!(said[8].1, "yes, where no byte moves");
    assert_eq!(said[1].1, "not known");
}

/// Which of the answers are "not known".
fn not_known(findings: &Findings) -> Vec<usize> {
    let room = tempfile::tempdir().unwrap();
    let answers = answers(&subject(room.path()), findings);
    let unknown = answers.iter().enumerate().filter(|(_, answer)| answer.answer == "not known");
    unknown.map(|(at, _)| at).collect()
}

#[test]
fn bytes_that_cannot_be_all_answer_nothing() {
    let stored = Some(Stored { content: false, name: false, files: 3, unread: 0 });
    let good = Findings { rows: whole_files(), stored, missed: 0, ended_early: false };
    assert!(not_known(&good).is_empty());
    let by_bytes: Vec<usize> = (3..14).collect();
    // Of the large file a part has gone over a port that nobody has named.
    let mut rows = whole_files();
    let large = rows.iter_mut().find(|row| row.step == Step::Large).unwrap();
    large.counts.up.wire = LARGE / 2;
    assert_eq!(not_known(&Findings { rows, ..good.clone() }), by_bytes);
    assert_eq!(not_known(&Findings { missed: 1, ..good.clone() }), by_bytes);
    for (files, unread) in [(0, 0), (3, 1)] {
        let stored = Some(Stored { content: false, name: false, files, unread });
        assert_eq!(not_known(&Findings { stored, ..good.clone() }), [1, 2]);
    }
    // Something in the clear beside TLS.
    let mut rows = whole_files();
    for row in &mut rows {
        (row.counts.tls, row.counts.seen) = (1, vec![false; 2]);
    }
    assert_eq!(said(rows, None)[0].1, "nothing readable");
}

#[test]
fn what_was_not_seen_is_not_answered() {
    let mut rows = whole_files();
    for row in &mut rows {
        (row.missing, row.took) = (1, None);
        row.counts.seen = vec![false; 2];
    }
    let answers = said(rows, Some(Stored { content: false, name: false, files: 0, unread: 0 }));
    let (others, counted) = answers.split_at(15);
    assert!(others.iter().all(|(_, answer)| answer == "not known"), "{answers:?}");
    assert_eq!(counted[0].1, "1 of 100");
    assert_eq!(counted[1].1, "not known", "nobody has measured for how long");
    assert!(said(Vec::new(), None).iter().all(|(_, answer)| answer == "not known"));
}

#[test]
fn from_a_wire_that_nothing_went_over_nothing_follows() {
    let room = tempfile::tempdir().unwrap();
    let subject = subject(room.path());
    let mut rows = whole_files();
    demand_traffic(&subject, &rows).unwrap();
    for row in &mut rows {
        row.counts = Counts::default();
    }
    let error = demand_traffic(&subject, &rows).unwrap_err().to_string();
    assert!(error.ends_with("files came, and nothing went over port 1"), "{error}");
    // Where no file came, that is what was found out.
    for row in &mut rows {
        row.missing = row.files;
    }
    demand_traffic(&subject, &rows).unwrap();
}

#[test]
fn answers_of_several_programs_stand_side_by_side() {
    let room = tempfile::tempdir().unwrap();
    let mut folders = Vec::new();
    for (name, missed) in [("one", 0), ("other", 7)] {
        let folder = room.path().join(name);
        let output = Output::of_run(&folder).unwrap();
        let subject = Subject { name: name.into(), ..subject(room.path()) };
        let findings = Findings { rows: whole_files(), stored: None, missed, ended_early: false };
        let probed = report::write(&subject, &findings, "1.2", &output).unwrap();
        assert_eq!(probed.answers.len(), 17);
        let page = String::from_utf8(files::read(&folder.join("probe.html")).unwrap()).unwrap();
        assert_eq!(page.contains("7 packets were not counted"), missed == 7, "{page}");
        let table = String::from_utf8(files::read(&folder.join("probe.csv")).unwrap()).unwrap();
        assert!(table.starts_with("step,files,bytes,seconds,missing,up_bytes,"), "{table}");
        assert!(table.contains("\nbundle,30,30720,0.250,0,50000,1,0,0,30,30,true\n"), "{table}");
        folders.push(folder);
    }
    let output = Output::of_run(&room.path().join("tables")).unwrap();
    // Beside them lie results of something else.
    folders.push(room.path().join("tables"));
    let others = report::tables(&folders, &output).unwrap();
    assert_eq!(others, [room.path().join("tables")]);
    let page = files::read(&room.path().join("tables/probes.md")).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("| feature | one | other |"), "{page}");
    assert!(page.contains("| Chunking | no: whole files | not known |"), "{page}");

    assert!(page.contains("**other: 7 packets were not counted"), "{page}");
    let error = report::tables(&folders[2..], &output).unwrap_err();
    assert!(matches!(error, LabError::NoProbes), "{error}");

    files::write(&folders[0].join("probe.json"), "[]").unwrap();
    let error = report::tables(&folders, &output).unwrap_err();
    assert!(matches!(error, LabError::Page { .. }), "{error}");
}
