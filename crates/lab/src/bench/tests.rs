//! Benchmarks as people run them: in a folder, and with targets that fail, forget and lie.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::driver::{Driver, Failure, Folder, Link, Listed};
use super::outcome::Outcome;
use super::plan::{Files, Kind, Operation, Pause, Plan, Target};
use super::wire::Wire;
use super::work::{Progress, run};
use super::{ini, report};
use crate::capture::{Counts, Way};
use crate::error::LabError;
use crate::files;
use crate::output::Output;
use crate::random::Random;

mod pauses;
mod repetitions;

/// The files of the thesis's appendix, as it prints them.
const APPENDIX_A: [(&str, &str); 8] = [
    ("a1", include_str!("../../../../experiments/benchcloud/appendix-a/a1.ini")),
    ("a2", include_str!("../../../../experiments/benchcloud/appendix-a/a2.ini")),
    ("a3", include_str!("../../../../experiments/benchcloud/appendix-a/a3.ini")),
    ("a4", include_str!("../../../../experiments/benchcloud/appendix-a/a4.ini")),
    ("a5", include_str!("../../../../experiments/benchcloud/appendix-a/a5.ini")),
    ("a7", include_str!("../../../../experiments/benchcloud/appendix-a/a7.ini")),
    ("a8", include_str!("../../../../experiments/benchcloud/appendix-a/a8.ini")),
    ("a9", include_str!("../../../../experiments/benchcloud/appendix-a/a9.ini")),
];

fn appendix(name: &str) -> Plan {
    let (_, text) = APPENDIX_A.iter().find(|(known, _)| *known == name).unwrap();
    ini::parse(text).unwrap()
}

fn plan(text: &str) -> Plan {
    Plan::of_toml(text).unwrap()
}

fn play(plan: &Plan, driver: &dyn Driver) -> Outcome {
    run(plan, driver, "run", None, &mut |_| true).unwrap()
}

fn folder(root: &Path) -> Folder {
    Folder::new(root, &Target { patience: 5.0, ..Target::default() })
}

#[test]
fn the_files_of_the_thesis_are_read_as_they_are() {
    let a1 = appendix("a1");
    let expected = Plan {
        description: "Upload random binary files to dropbox".to_owned(),
        operation: Operation::Upload,
        times: 50,
        threads: 25,
        warm_up: 0,
        repetitions: 1,
        seed: 2014,
        pause: Pause::None,
        start_within: None,
        target: Target { directory: "benchmark-test".to_owned(), ..Target::default() },
        files: Files { size: 102_400, prefix: "benchmarking-".to_owned(), ..Files::default() },
        mix: None,
        capture: None,
        processes: Vec::new(),
        log: Some("/tmp/dropbox_upload_random_binary_50f_100KB_25threads.log".into()),
    };
    assert_eq!(a1, expected);

    let a2 = appendix("a2");
    assert_eq!((a2.operation, a2.threads), (Operation::Download, 25));
    assert_eq!(a2.target.directory, "benchmark-test");
    assert_eq!(a2.target.local_directory, Some(PathBuf::from("/tmp/benchcloud-junk")));
    assert_eq!(
        a2.description,
        "Download all files (not recursively) in a remote directory to a local directory"
    );
    assert_eq!((appendix("a3").times, appendix("a3").files.size), (10, 10 << 20));
    for (name, times, threads, pause) in [("a4", 500, 50, 10.0), ("a5", 1000, 100, 5.0)] {
        let iot = appendix(name);
        assert_eq!((iot.times, iot.threads, iot.files.size), (times, threads, 5120));
        assert_eq!(iot.pause, Pause::Fixed(pause));
    }
    let a7 = appendix("a7");
    assert_eq!((a7.files.kind, a7.files.size), (Kind::Sparse, 100 << 20));
    assert_eq!(a7.files.suffix, ".jpg");
    let a8 = appendix("a8");
    assert_eq!((a8.files.kind, a8.files.common), (Kind::Delta, 0.9));
    assert_eq!(a8.target.folder, Some(PathBuf::from("/Users/wangxing/Dropbox")));
    assert_eq!(a8.target.name.as_deref(), Some("delta-file"));
    let a9 = appendix("a9");
    assert_eq!((a9.files.kind, a9.times, a9.pause), (Kind::Identical, 3, Pause::Fixed(3.0)));
}

#[test]
fn the_files_of_the_thesis_come_to_a_good_end() {
    let room = tempfile::tempdir().unwrap();
    for (name, _) in APPENDIX_A {
        let mut plan = appendix(name);
        // The same in small, and without waiting.
        plan.pause = Pause::None;
        plan.files.size = plan.files.size.min(10_000);
        plan.log = None;
        let root = room.path().join(if name == "a2" { "a1" } else { name });
        std::fs::create_dir_all(&root).unwrap();
        plan.target.local_directory =
            plan.target.local_directory.map(|_| room.path().join("downloaded"));
        let outcome = play(&plan, &folder(&root));
        assert!(outcome.is_good(), "{name}: {outcome:?}");
        assert_eq!(outcome.asked, if name == "a2" { 50 } else { plan.times }, "{name}");
        let there = files::below(&root).unwrap().len() as u64;
        assert_eq!(there, if plan.target.name.is_some() { 1 } else { outcome.asked }, "{name}");
    }
    let [uploaded, downloaded] = ["a1", "downloaded"].map(|name| {
        let below = files::below(&room.path().join(name)).unwrap();
        below.iter().map(|path| files::read(path).unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(uploaded, downloaded);
}

#[test]
fn what_nobody_knows_is_refused_with_what_is_spelled_alike() {
    let a1 = APPENDIX_A[0].1;
    for (old, new, wanted) in [
        (
            "threads =",
            "thread =",
            "line 32: [concurrent] has no key 'thread'; did you mean 'threads'?",
        ),
        ("[concurrent]", "[concurent]", "did you mean 'concurrent'?"),
        ("RandomFileGenerator", "RandomFilesGenerator", "did you mean 'RandomFileGenerator'?"),
        ("remote_dir", "remote_dirs", "did you mean 'remote_dir'?"),
        ("size = 102400", "size = 100KB", "'100KB' is no such number"),
        ("delete = True", "delete = maybe", "neither True nor False"),
        ("upload\n", "share\n", "'share' is not known"),
        ("prefix = ", "prefix = ../", "no '/'"),
        ("/benchmark-test", "/../test", "without '..'"),
        ("[logging]", "# no section\n", "[test] has no key 'enabled'"),
    ] {
        let error = ini::parse(&a1.replacen(old, new, 1)).unwrap_err().to_string();
        assert!(error.contains(wanted), "{new}: {error}");
    }
    for (text, wanted) in [
        ("operation = \"upload\"\ntims = 5", "did you mean 'times'?"),
        ("operation = \"uplaod\"", "did you mean 'upload'?"),
        ("operation = \"upload\"\n[files]\nsise = 5", "line 3"),
        ("operation = \"upload\"\nthreads = 0", "begin at 1"),
        ("operation = \"upload\"\nrepetition = 2", "did you mean 'repetitions'?"),
        ("operation = \"upload\"\nrepetitions = 0", "repetitions begins at 1, and ends at 1000"),
        ("operation = \"upload\"\nrepetitions = 1001", "repetitions begins at 1"),
        ("operation = \"upload\"\nrepetitions = -1", "line 2"),
        ("operation = \"mixed\"", "[mix]"),
        ("operation = \"upload\"\nthreads = 2\n[target]\nname = \"a\"", "threads = 1"),
        ("operation = \"upload\"\npause = { uniform = [5, 1] }", "in order"),
        ("operation = \"upload\"\npause = { recorded = [] }", "pause and target.patience"),
        ("operation = \"upload\"\npause = { replayed = [1, -1] }", "pause and target.patience"),
        ("operation = \"upload\"\npause = { replayd = [1] }", "did you mean 'replayed'?"),
        ("operation = \"upload\"\npause = { recorded = 5 }", "the name of a file"),
        ("operation = \"upload\"\n[files]\ncommon = 1.5", "part of 1"),
        ("operation = \"upload\"\n[capture]\nport = [80]", "did you mean 'ports'?"),
        ("operation = \"upload\"\n[capture]\nports = []", "capture.ports"),
        ("operation = \"upload\"\n[capture]\nports = [80, 65536]", "capture.ports: 65536"),
        ("operation = \"upload\"\n[capture]\nports = [0]", "capture.ports: 0"),
        ("operation = \"upload\"\n[files]\nkind = \"jpg\"", "did you mean 'jpeg'?"),
        ("operation = \"upload\"\n[files]\nkind = \"trace\"", "files.trace"),
        ("operation = \"upload\"\n[files]\ntrace = \"day.trace\"", "files.trace"),
        ("operation = \"upload\"\n[files]\nkind = \"office\"\nsize = 100000000", "64 MiB"),
        ("operation = \"edit\"\n[files]\nkind = \"jpeg\"", "not for edits"),
        ("operation = \"upload\"\nthreads = 50\n[files]\nsize = 100000000", "together"),
        ("operation = \"upload\"\n[target]\ndirectory = \"/etc\"", "below the target"),
        ("operation = \"upload\"\n[target]\nname = \"..\"", "below the target"),
        ("operation = \"share\"\n[target]\nfolder = \"a\"", "target.workspace"),
        ("operation = \"mixed\"\n[mix]\nshare = 1\n[target]\nfolder = \"a\"", "mix.share"),
        ("operation = \"mixed\"\n[mix]\nshare = 1\n[target]\nstore = \"s3:a\"", "mix.share"),
        ("operation = \"mixed\"\n[mix]\nupload = 1\n[target]\nworkspace = \"a\"", "mix.share"),
        ("operation = \"mixed\"\n[mix]\nshares = 1", "did you mean 'share'?"),
        ("operation = \"share\"\n[target]\nworkspace = \"a\"\nseen_in = \"b\"", "target.seen_in"),
        ("operation = \"upload\"\n[target]\nworkspace = \"a\"", "target.workspace"),
        ("times = 5", "operation"),
    ] {
        let error = Plan::of_toml(text).unwrap_err().to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn every_kind_of_operation_is_done_and_read_again() {
    let room = tempfile::tempdir().unwrap();
    for (number, text) in [
        "operation = \"edit\"\ntimes = 30\nthreads = 3\nwarm_up = 5\n[files]\nsize = 5000\nedit = 100",
        "operation = \"mixed\"\ntimes = 60\nthreads = 4\n[mix]\nupload = 1\ndownload = 1\nedit = 1",
        "operation = \"upload\"\ntimes = 5\n[files]\nkind = \"text\"\n[target]\nname = \"same.txt\"",
        "operation = \"edit\"\ntimes = 6\nthreads = 2\n[files]\nkind = \"office\"\nsize = 9000",
    ]
    .into_iter()
    .enumerate()
    {
        let root = room.path().join(number.to_string());
        std::fs::create_dir(&root).unwrap();
        let plan = plan(text);
        let outcome = play(&plan, &folder(&root));
        assert!(outcome.is_good() && outcome.acknowledged > 0, "{text}: {outcome:?}");
        let summaries = outcome.summaries();
        let all: u64 = summaries.iter().map(|summary| summary.done).sum();
        assert_eq!((all, outcome.records.len() as u64), (plan.times, plan.times + plan.warm_up));
        assert_eq!(summaries.len(), if plan.operation == Operation::Mixed { 3 } else { 1 });
        let bytes = outcome.records.iter().map(|record| record.bytes).max().unwrap();
        let is_exact = plan.files.kind != Kind::Office;
        assert!(!is_exact || bytes == plan.files.size, "{text}: {bytes}");
    }
}

/// A target in memory that goes wrong now and then.
#[derive(Debug, Default)]
struct Bad {
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    calls: AtomicU64,
    /// Each such put fails.
    fails: Option<u64>,
    /// All puts from such a one to such a one fail.
    fails_within: Option<(u64, u64)>,
    /// Each such put is acknowledged and forgotten.
    forgets: Option<u64>,
    /// Each such put is done and said to have failed.
    denies: Option<u64>,
    /// Nothing can be read in the end.
    is_blind: bool,
}

impl Driver for Bad {
    fn describe(&self) -> String {
        "a bad store".to_owned()
    }

    fn put(&self, path: &str, bytes: &[u8], is_new: bool) -> Result<(), Failure> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let is_it = |every: Option<u64>| every.is_some_and(|every| call.is_multiple_of(every));
        if is_new && self.files.lock().unwrap().contains_key(path) {
            return Err(Failure("it exists".to_owned()));
        }
        if is_it(self.fails)
            || self.fails_within.is_some_and(|(from, to)| from <= call && call <= to)
        {
            return Err(Failure("the disk is on fire".to_owned()));
        }
        if !is_it(self.forgets) {
            self.files.lock().unwrap().insert(path.to_owned(), bytes.to_vec());
        }
        if is_it(self.denies) { Err(Failure("no answer".to_owned())) } else { Ok(()) }
    }

    fn get(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.files.lock().unwrap().get(path).cloned())
    }

    fn reread(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        if self.is_blind { Err(Failure("no answer".to_owned())) } else { self.get(path) }
    }

    fn list(&self, _directory: &str) -> Result<Vec<Listed>, Failure> {
        Err(Failure("no lists".to_owned()))
    }
}

#[test]
fn a_target_that_fails_ends_the_run_and_is_counted() {
    let plan = plan("operation = \"upload\"\ntimes = 100\nthreads = 7");
    let outcome = play(&plan, &Bad { fails: Some(4), ..Bad::default() });
    assert_eq!((outcome.failed(), outcome.acknowledged, outcome.lost.len()), (25, 75, 0));
    assert!(!outcome.is_good());
    let [summary] = outcome.summaries()[..] else { panic!() };
    assert_eq!((summary.done, summary.failed), (75, 25));

    let room = tempfile::tempdir().unwrap();
    let output = Output::new(room.path().into(), room.path().into()).unwrap();
    let numbers = report::write(&plan, "a <bad> store", "1.2", &outcome, &output).unwrap();
    assert_eq!((&numbers["failed"], &numbers["asked"]), (&25.into(), &100.into()));
    assert!(numbers["processor_seconds"].is_f64());
    assert_eq!(numbers["memory_peak_bytes"].as_u64(), outcome.memory_peak);
    let text =
        |name: &str| String::from_utf8(files::read(&room.path().join(name)).unwrap()).unwrap();
    let page = text("benchmark.html");
    assert!(page.contains("25 operations failed.") && page.contains("the disk is on fire"));
    assert!(page.contains("a &lt;bad&gt; store") && page.matches("<svg").count() == 2, "{page}");
    assert!(page.contains("of a processor, s") && page.contains("memory at most, MB"), "{page}");
    assert_eq!(text("benchmark.csv").lines().count(), 101);
}

#[test]
fn what_went_over_the_wire_is_told_by_direction() {
    let plan = plan("operation = \"upload\"\ntimes = 3\n[capture]\nports = [80, 81]");
    let mut outcome = play(&plan, &Bad::default());
    let counts = Counts {
        up: Way { packets: 7, wire: 3500, payload: 3072 },
        down: Way { packets: 5, wire: 260, payload: 60 },
        ..Counts::default()
    };
    let written = |wire: Option<Wire>, outcome: &mut Outcome| {
        let room = tempfile::tempdir().unwrap();
        let output = Output::new(room.path().into(), room.path().into()).unwrap();
        outcome.wire = wire;
        let numbers = report::write(&plan, "a store", "1.2", outcome, &output).unwrap();
        let page = files::read(&room.path().join("benchmark.html")).unwrap();
        (numbers["wire"].clone(), String::from_utf8(page).unwrap())
    };
    let wire = Wire { ports: vec![80, 81], counts, missed: 0, fault: None };
    let (numbers, page) = written(Some(wire.clone()), &mut outcome);
    assert_eq!((&numbers["up"]["bytes"], &numbers["down"]["packets"]), (&3500.into(), &5.into()));
    assert_eq!((&numbers["up"]["payload_bytes"], &numbers["fault"]), (&3072.into(), &().into()));
    assert!(page.contains("<td>up</td><td>3500</td><td>7</td><td>3072</td>"), "{page}");
    assert!(
        page.contains("port 80, 81, as IP packets") && !page.contains("class=\"bad\""),
        "{page}"
    );

    let fault = Some("tcpdump has <ended>".to_owned());
    let (numbers, page) = written(Some(Wire { missed: 9, fault, ..wire }), &mut outcome);
    assert_eq!(numbers["missed_packets"], 9);
    assert!(page.contains("tcpdump has &lt;ended&gt;") && page.contains("9 packets were not"));
    let (numbers, page) = written(None, &mut outcome);
    assert!(numbers.is_null() && !page.contains("over the wire"), "{page}");
}

/// A folder whose files are shared, and the links there are.
#[derive(Debug)]
struct Sharing {
    folder: Folder,
    links: Mutex<Vec<String>>,
    /// How many were made.
    made: AtomicU64,
}

impl Driver for Sharing {
    fn describe(&self) -> String {
        "a workspace".to_owned()
    }

    fn put(&self, path: &str, bytes: &[u8], is_new: bool) -> Result<(), Failure> {
        self.folder.put(path, bytes, is_new)
    }

    fn get(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.folder.get(path)
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, Failure> {
        self.folder.list(directory)
    }

    fn share(&self, path: &str) -> Result<Link, Failure> {
        let id = self.made.fetch_add(1, Ordering::Relaxed).to_string();
        self.links.lock().unwrap().push(id.clone());
        Ok(Link { id, secret: path.to_owned() })
    }

    fn withdraw(&self, link: &Link, size: u64) -> Result<(), Failure> {
        self.links.lock().unwrap().retain(|id| *id != link.id);
        match self.folder.get(&link.secret)? {
            Some(bytes) if bytes.len() as u64 == size && size > 1 => Ok(()),
            found => Err(Failure(format!("it leads to {found:?}"))),
        }
    }
}

#[test]
fn each_file_of_a_folder_is_shared_and_no_link_stays() {
    let room = tempfile::tempdir().unwrap();
    for (name, text) in [("a/one", "of one"), ("a/other", "of another"), ("a/bad", "?")] {
        files::write(&room.path().join(name), text).unwrap();
    }
    let mut plan =
        plan("operation = \"share\"\ntimes = 4\nthreads = 3\n[target]\ndirectory = \"a\"");
    plan.take_target("anywhere");
    assert_eq!(plan.target.workspace, Some(PathBuf::from("anywhere")));
    let (links, made) = (Mutex::default(), AtomicU64::new(0));
    let sharing = Sharing { folder: folder(room.path()), links, made };
    let outcome = play(&plan, &sharing);
    let [summary] = outcome.summaries()[..] else { panic!("{outcome:?}") };
    // One of three leads to something else.
    assert_eq!((summary.kind, summary.done, summary.failed), (Operation::Share, 8, 4));
    assert_eq!(outcome.csv().lines().filter(|line| line.contains(",share,")).count(), 12);
    assert_eq!(sharing.made.load(Ordering::Relaxed), 12);
    assert_eq!(sharing.links.lock().unwrap().len(), 0);
    // A folder has no links.
    let outcome = play(&plan, &folder(room.path()));
    assert_eq!((outcome.failed(), outcome.asked), (12, 12));
}

#[test]
fn a_mix_shares_what_was_there_before_and_fails_where_no_links_are_made() {
    let room = tempfile::tempdir().unwrap();
    for name in ["a/one", "a/other"] {
        files::write(&room.path().join(name), "of somebody").unwrap();
    }
    let text = "operation = \"mixed\"\ntimes = 60\nthreads = 3\nwarm_up = 2\n[target]\ndirectory = \"a\"\n[mix]\nupload = 1\ndownload = 1\nedit = 1\nshare = 1";
    let mut plan = plan(text);
    plan.take_target("anywhere");
    assert_eq!(plan.target.workspace, Some(PathBuf::from("anywhere")));
    plan.target.seen_in = Some(PathBuf::from("elsewhere"));
    let mut plan = plan.checked().unwrap();
    plan.target.seen_in = None;
    let (links, made) = (Mutex::default(), AtomicU64::new(0));
    let sharing = Sharing { folder: folder(room.path()), links, made };
    let outcome = play(&plan, &sharing);
    assert!(outcome.is_good() && outcome.asked == 60, "{outcome:?}");
    let kinds: Vec<Operation> = outcome.summaries().iter().map(|summary| summary.kind).collect();
    assert_eq!(kinds, Operation::DONE);
    for record in &outcome.records {
        let is_of_before = ["a/one", "a/other"].contains(&record.path.as_str());
        assert_eq!(is_of_before, record.kind == Operation::Share, "{record:?}");
    }
    assert_eq!(sharing.links.lock().unwrap().len(), 0, "no link stays");

    // A folder has no links: every share fails, as it does alone, and nothing else.
    let room = tempfile::tempdir().unwrap();
    let error = run(&plan, &folder(room.path()), "run", None, &mut |_| true).unwrap_err();
    assert!(error.to_string().contains("there is no file in 'a'"), "{error}");
    files::write(&room.path().join("a/one"), "of somebody").unwrap();
    let outcome = play(&plan, &folder(room.path()));
    assert!(outcome.failed() > 0, "{outcome:?}");
    for record in &outcome.records {
        let why = (record.kind == Operation::Share).then_some("it makes no links");
        assert_eq!(record.failure.as_deref(), why, "{record:?}");
    }
}

#[test]
fn a_mix_is_drawn_by_its_parts() {
    let text = "operation = \"mixed\"\n[mix]\nupload = 1\nedit = 2\nshare = 5";
    let (mix, mut random) = (plan(text).mix.unwrap(), Random::new(3));
    let mut drawn = BTreeMap::new();
    for _ in 0..80_000 {
        *drawn.entry(mix.draw(&mut random)).or_insert(0_u64) += 1;
    }
    let expected = [(Operation::Upload, 1), (Operation::Edit, 2), (Operation::Share, 5)];
    assert_eq!(drawn.len(), 3);
    for (operation, part) in expected {
        assert!(drawn[&operation].abs_diff(part * 10_000) < 500, "{drawn:?}");
    }
}

#[test]
fn a_target_that_forgets_what_it_acknowledged_has_lost_it() {
    let plan = plan("operation = \"upload\"\ntimes = 30\nthreads = 2");
    let outcome = play(&plan, &Bad { forgets: Some(10), ..Bad::default() });
    assert_eq!((outcome.failed(), outcome.acknowledged, outcome.lost.len()), (0, 30, 3));
    assert!(!outcome.is_good() && outcome.lost[0].ends_with(": not there"), "{outcome:?}");

    // A file that was written over and is again what it was is lost, too.
    let plan = self::plan("operation = \"upload\"\ntimes = 5\n[target]\nname = \"one\"");
    let outcome = play(&plan, &Bad { forgets: Some(5), ..Bad::default() });
    assert_eq!((outcome.acknowledged, outcome.lost.len()), (1, 1), "{outcome:?}");
    assert!(outcome.lost[0].contains("nobody wrote last"), "{outcome:?}");
}

#[test]
fn what_was_said_to_have_failed_and_happened_stands_in_the_way_of_nothing() {
    for text in [
        "operation = \"upload\"\ntimes = 6\n[target]\nname = \"one\"",
        "operation = \"edit\"\ntimes = 6",
    ] {
        let bad = Bad { denies: Some(1), ..Bad::default() };
        assert_eq!(play(&plan(text), &bad).failed(), 6);
        // Only the first is denied; what it wrote is ours, and is written over.
        let bad = Bad { denies: Some(3), calls: AtomicU64::new(2), ..Bad::default() };
        let outcome = play(&plan(text), &bad);
        assert!(outcome.failed() <= 2 && outcome.lost.is_empty(), "{text}: {outcome:?}");
    }
}

#[test]
fn what_cannot_be_read_again_is_not_lost_and_not_good() {
    let plan = plan("operation = \"upload\"\ntimes = 9\nthreads = 3");
    let outcome = play(&plan, &Bad { is_blind: true, ..Bad::default() });
    assert_eq!((outcome.acknowledged, outcome.unread, outcome.lost.len()), (9, 9, 0));
    assert!(!outcome.is_good());
}

#[test]
fn a_file_that_goes_from_where_it_was_seen_is_lost() {
    let room = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| room.path().join(name));
    for folder in [&here, &there] {
        files::write(&folder.join("a"), "a").unwrap();
    }
    let target = Target { seen_in: Some(there.clone()), ..Target::default() };
    let folder = Folder::new(&here, &target);
    assert_eq!(folder.reread("a").unwrap(), Some(b"a".to_vec()));
    files::write(&there.join("a"), "").unwrap();
    assert_eq!(folder.reread("a").unwrap(), None);
    files::remove(&there.join("a")).unwrap();
    assert_eq!(folder.reread("a").unwrap(), None);
}

#[test]
fn a_download_of_nothing_is_refused() {
    let room = tempfile::tempdir().unwrap();
    for text in ["operation = \"download\"", "operation = \"download\"\nwarm_up = 1"] {
        let error = run(&plan(text), &folder(room.path()), "run", None, &mut |_| true).unwrap_err();
        assert!(matches!(error, LabError::NotListed { .. }), "{error}");
    }
    files::write(&room.path().join("a"), "a").unwrap();
    let huge = plan(
        "operation = \"download\"\ntimes = 9223372036854775807\nwarm_up = 9223372036854775807",
    );
    files::write(&room.path().join("b"), "b").unwrap();
    files::write(&room.path().join("c"), "c").unwrap();
    let error = run(&huge, &folder(room.path()), "run", None, &mut |_| true).unwrap_err();
    assert!(matches!(error, LabError::Benchmark { .. }), "{error}");
}

#[test]
fn files_of_others_are_not_written_over() {
    let room = tempfile::tempdir().unwrap();
    files::write(&room.path().join("taxes.ods"), "of years").unwrap();
    let plan = plan("operation = \"upload\"\ntimes = 3\n[target]\nname = \"taxes.ods\"");
    let outcome = play(&plan, &folder(room.path()));
    assert_eq!((outcome.failed(), outcome.acknowledged), (3, 0), "{outcome:?}");
    assert_eq!(files::read(&room.path().join("taxes.ods")).unwrap(), b"of years");

    let mut plan = self::plan("operation = \"download\"");
    plan.target.local_directory = Some(room.path().to_owned());
    let error = run(&plan, &folder(room.path()), "run", None, &mut |_| true).unwrap_err();
    assert!(matches!(error, LabError::NotEmpty { .. }), "{error}");
    let error = run(&plan, &Bad::default(), "run", None, &mut |_| true).unwrap_err();
    assert!(error.to_string().contains("a bad store cannot be listed: no lists"), "{error}");
}

#[test]
fn files_are_kept_if_the_file_says_so() {
    let room = tempfile::tempdir().unwrap();
    let kept = room.path().join("kept");
    let text = APPENDIX_A[0].1.replace("delete = True", "delete = False");
    let text = text.replace("#directory =", &format!("directory = {}", kept.display()));
    let mut plan = ini::parse(&text).unwrap();
    plan.log = Some(room.path().join("log.txt"));
    let root = room.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let outcome = play(&plan, &folder(&root));
    let output = Output::new(room.path().into(), room.path().into()).unwrap();
    report::write(&plan, "folder", "1.2", &outcome, &output).unwrap();
    assert_eq!(files::below(&kept).unwrap().len(), 50);
    let log = String::from_utf8(files::read(&room.path().join("log.txt")).unwrap()).unwrap();
    assert_eq!(log.matches("finished.").count(), 50, "{log}");
}

#[test]
fn what_another_program_brings_is_waited_for() {
    let room = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| room.path().join(name));
    std::fs::create_dir(&here).unwrap();
    std::fs::create_dir(&there).unwrap();
    let mut plan = plan("operation = \"upload\"\ntimes = 3");
    plan.target.seen_in = Some(there.clone());
    plan.target.patience = 0.05;
    let outcome = play(&plan, &Folder::new(&here, &plan.target));
    assert_eq!((outcome.failed(), outcome.acknowledged), (3, 0), "nobody brings anything");

    plan.target.patience = 30.0;
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for file in files::below(&here).unwrap() {
                    let bytes = files::read(&file).unwrap();
                    let other = there.join(file.file_name().unwrap());
                    // A write of what is there already would empty the file under a reader's eyes.
                    if !files::read(&other).is_ok_and(|read| read == bytes) {
                        files::write(&other, bytes).unwrap();
                    }
                }
            }
        });
        let outcome = run(&plan, &Folder::new(&here, &plan.target), "other", None, &mut |_| true);
        is_over.store(true, Ordering::Relaxed);
        outcome.unwrap()
    });
    assert!(outcome.is_good(), "{outcome:?}");
}

#[test]
fn who_wants_it_to_end_gets_what_was_done() {
    let plan = plan(
        "operation = \"upload\"\ntimes = 1000\nthreads = 2\npause = { fixed = 3600 }\nwarm_up = 1",
    );
    let mut last = None;
    let mut ended = Vec::new();
    let mut goes_on = |progress: Progress<'_>| {
        last = Some((progress.done, progress.failed, progress.all));
        ended.extend_from_slice(progress.ended);
        progress.done < 2
    };
    let outcome = run(&plan, &Bad::default(), "run", None, &mut goes_on).unwrap();
    assert_eq!((outcome.records.len(), outcome.asked), (2, 1000));
    // Nobody waits for all files again who wanted it to end.
    assert!(!outcome.is_good() && outcome.unread == 2, "{outcome:?}");
    assert_eq!(last, Some((2, 0, 1001)));
    // Each is told of once, but for the one that does not count.
    let counted = outcome.records.iter().filter(|record| !record.is_warm_up);
    assert!(ended.iter().map(|it| it.took).eq(counted.map(|record| record.took)), "{ended:?}");
}
