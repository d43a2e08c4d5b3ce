//! The watcher on real folders. Nothing sleeps: the tests wait for hints, with a limit.

#![expect(clippy::disallowed_methods, reason = "the tests play the user, and measure")]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use model::RelativePath;

use super::hints::{DIRECTORIES_MAX, Mailbox};
use super::{FolderWatcher, Hint, Hints, WatchError, WatchFilter, WatchWarning};

/// How long a hint may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

fn at(path: &str) -> RelativePath {
    RelativePath::new(path.as_bytes()).unwrap()
}

fn hint(directories: &[&str]) -> Hint {
    let directories = directories.iter().map(|path| at(path)).collect();
    Hint { directories, everything: false }
}

fn next(hints: &mut Hints) -> Option<Hint> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let next = runtime.block_on(async { tokio::time::timeout(PATIENCE, hints.next()).await });
    next.expect("no hint came")
}

/// Takes hints until all the directories were named, and returns what was.
fn wait_for(hints: &mut Hints, directories: &[&str]) -> Hint {
    let expected: BTreeSet<_> = directories.iter().map(|path| at(path)).collect();
    let mut named = Hint::default();
    while !named.directories.is_superset(&expected) {
        named.merge(next(hints).expect("the watcher runs"));
        assert!(!named.everything, "everything was named");
    }
    named
}

struct Scene {
    folder: tempfile::TempDir,
    _watcher: FolderWatcher,
    hints: Hints,
    /// What earlier steps may be named for once more: on a slow machine one change gives several hints.
    earlier: BTreeSet<RelativePath>,
}

impl Scene {
    /// A watched folder with a few directories, in which everything called `ignored` is ignored.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for directory in [".syncline/tmp", "one/inner", "two", "ignored/inner"] {
            std::fs::create_dir_all(folder.path().join(directory)).unwrap();
        }
        std::fs::write(folder.path().join("one/file"), "old").unwrap();
        let is_ignored = |path: &RelativePath, _| path.as_bytes().ends_with(b"ignored");
        let (watcher, hints) = FolderWatcher::start(folder.path(), is_ignored).unwrap();
        assert_eq!(watcher.warning(), None);
        Self { folder, _watcher: watcher, hints, earlier: BTreeSet::new() }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str) {
        std::fs::write(self.path(path), "new").unwrap();
    }

    fn make(&self, path: &str) {
        std::fs::create_dir_all(self.path(path)).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.path(from), self.path(to)).unwrap();
    }

    /// Waits until these directories were named, and no others.
    fn assert_hints(&mut self, directories: &[&str]) {
        let named = wait_for(&mut self.hints, directories);
        self.earlier.extend(hint(directories).directories);
        let others: Vec<_> = named.directories.difference(&self.earlier).collect();
        assert!(others.is_empty(), "{others:?} were named with {directories:?}");
    }
}

#[test]
fn each_change_names_the_directory_it_happens_in() {
    let mut scene = Scene::new();
    scene.write("file");
    scene.assert_hints(&[""]);
    scene.write("one/file");
    scene.assert_hints(&["one"]);
    scene.write("one/inner/file");
    scene.assert_hints(&["one/inner"]);
    let readonly = std::os::unix::fs::PermissionsExt::from_mode(0o400);
    std::fs::set_permissions(scene.path("one/file"), readonly).unwrap();
    scene.assert_hints(&["one"]);
    std::fs::remove_file(scene.path("one/inner/file")).unwrap();
    scene.assert_hints(&["one/inner"]);
    std::os::unix::fs::symlink("nowhere", scene.path("two/link")).unwrap();
    scene.assert_hints(&["two"]);
    std::fs::remove_dir(scene.path("one/inner")).unwrap();
    scene.assert_hints(&["one"]);
}

#[test]
fn reading_names_nothing() {
    let mut scene = Scene::new();
    std::fs::read(scene.path("one/file")).unwrap();
    std::fs::read_dir(scene.path("one/inner")).unwrap().count();
    scene.write("two/file");
    scene.assert_hints(&["two"]);
}

#[test]
fn moves_name_both_parents() {
    let mut scene = Scene::new();
    scene.rename("one/file", "two/file");
    scene.assert_hints(&["one", "two"]);
    scene.rename("one/inner", "two/inner");
    scene.assert_hints(&["one", "two"]);
    scene.write("two/inner/file");
    scene.assert_hints(&["two/inner"]);
    scene.rename("two", "three");
    scene.assert_hints(&[""]);
    scene.write("three/inner/file");
    scene.assert_hints(&["three/inner"]);
}

#[test]
fn new_directories_are_named_with_all_they_hold() {
    let mut scene = Scene::new();
    // The files are there before anybody can watch the directories.
    scene.make("new/a/b");
    scene.write("new/a/file");
    scene.write("new/a/b/file");
    wait_for(&mut scene.hints, &["", "new", "new/a", "new/a/b"]);
    // Later ones are seen through watches.
    scene.write("new/a/b/later");
    wait_for(&mut scene.hints, &["new/a/b"]);
}

#[test]
fn tree_that_is_moved_in_is_named_and_one_moved_out_is_forgotten() {
    let mut scene = Scene::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(outside.path().join("tree/a/b")).unwrap();
    std::fs::rename(outside.path().join("tree"), scene.path("tree")).unwrap();
    scene.assert_hints(&["", "tree", "tree/a", "tree/a/b"]);
    std::fs::rename(scene.path("tree"), outside.path().join("tree")).unwrap();
    scene.assert_hints(&[""]);
    std::fs::write(outside.path().join("tree/a/file"), "outside").unwrap();
    scene.write("two/file");
    scene.assert_hints(&["two"]);
}

#[test]
fn directories_that_change_places_are_not_mixed_up() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let mut scene = Scene::new();
    scene.make("two/deep");
    wait_for(&mut scene.hints, &["two", "two/deep"]);
    let (one, two) = (scene.path("one"), scene.path("two"));
    renameat_with(CWD, one, CWD, two, RenameFlags::EXCHANGE).unwrap();
    let named = wait_for(&mut scene.hints, &[""]);
    scene.earlier.extend(named.directories);
    scene.write("one/deep/file");
    scene.assert_hints(&["one/deep"]);
    scene.write("two/inner/file");
    scene.assert_hints(&["two/inner"]);
    // The same by three renames.
    scene.rename("one", "three");
    scene.rename("two", "one");
    scene.rename("three", "two");
    scene.assert_hints(&[""]);
    scene.write("one/inner/file");
    scene.assert_hints(&["one/inner"]);
    scene.write("two/deep/file");
    scene.assert_hints(&["two/deep"]);
}

#[test]
fn directory_that_is_made_and_renamed_at_once_is_watched() {
    let mut scene = Scene::new();
    for round in 0..50 {
        scene.make("two/fresh/a");
        scene.rename("two/fresh", &format!("two/done{round}"));
        scene.make("one/inner/late");
        scene.rename("one", "moved");
        scene.rename("moved", "one");
        wait_for(&mut scene.hints, &["two", ""]);
        scene.write(&format!("two/done{round}/a/file"));
        wait_for(&mut scene.hints, &[&format!("two/done{round}/a")]);
        scene.write("one/inner/late/file");
        wait_for(&mut scene.hints, &["one/inner/late"]);
        std::fs::remove_dir_all(scene.path("one/inner/late")).unwrap();
        wait_for(&mut scene.hints, &["one/inner"]);
    }
}

/// Makes, renames, swaps and removes directories as fast as it goes, from a seed.
fn churn(root: &Path, seed: u64) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let mut state = seed;
    let mut pick = |count: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % count
    };
    for _ in 0..1000 {
        let mut place = || {
            let depth = 1 + pick(3);
            (0..depth).fold(root.to_path_buf(), |path, _| path.join(pick(3).to_string()))
        };
        let (one, other) = (place(), place());
        // Most fail, since nothing is there, or something else is.
        let _ = match pick(5) {
            0 | 1 => std::fs::create_dir_all(one),
            2 => std::fs::rename(one, other),
            3 => renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(Into::into),
            _ => std::fs::remove_dir_all(one),
        };
    }
}

#[test]
fn every_directory_is_watched_after_a_storm() {
    for seed in 0..3 {
        let mut scene = Scene::new();
        churn(&scene.path("two"), seed);
        scene.make("two");
        let mut pending = vec![scene.folder.path().to_path_buf()];
        while let Some(directory) = pending.pop() {
            for entry in std::fs::read_dir(&directory).unwrap().map(Result::unwrap) {
                let name = entry.file_name();
                if entry.path().is_dir() && name != ".syncline" && name != "ignored" {
                    pending.push(entry.path());
                }
            }
            let path =
                RelativePath::from_os_path(directory.strip_prefix(scene.folder.path()).unwrap());
            let path = path.unwrap();
            let mut told = Hint::everything();
            while !told.directories.contains(&path) {
                // What was told as everything was the storm, and says nothing about this directory.
                if told.everything {
                    std::fs::write(directory.join("file"), "new").unwrap();
                }
                told = next(&mut scene.hints).unwrap();
            }
        }
    }
}

#[test]
fn service_directory_and_ignored_names_are_passed_over() {
    let mut scene = Scene::new();
    scene.write(".syncline/tmp/0001");
    scene.write("ignored/inner/file");
    scene.write("one/ignored");
    scene.make("two/ignored/a");
    // What is installed from the service directory is seen at its place.
    scene.rename(".syncline/tmp/0001", "two/file");
    scene.assert_hints(&["two"]);
    scene.write("two/ignored/a/file");
    scene.write("one/file");
    scene.assert_hints(&["one"]);
}

/// Passes over the one directory that the rules of the root name.
struct NamedInRules {
    root: std::path::PathBuf,
    passed_over: String,
}

impl WatchFilter for NamedInRules {
    fn visit(&mut self, directory: &RelativePath, has_rules: bool) {
        if directory.is_root() {
            let file = self.root.join(crate::ignore_rules::IGNORE_FILE);
            self.passed_over =
                if has_rules { std::fs::read_to_string(file).unwrap() } else { String::new() };
        }
    }

    fn passes_over(&self, path: &RelativePath, _is_directory: bool) -> bool {
        path.as_bytes() == self.passed_over.as_bytes()
    }
}

#[test]
fn new_rules_are_told_as_everything_and_decide_what_is_watched() {
    let folder = tempfile::tempdir().unwrap();
    let path = |path: &str| folder.path().join(path);
    for directory in ["one", "two"] {
        std::fs::create_dir(path(directory)).unwrap();
    }
    std::fs::write(path(".synclineignore"), "one").unwrap();
    let filter = NamedInRules { root: folder.path().to_owned(), passed_over: String::new() };
    let (_watcher, mut hints) = FolderWatcher::start(folder.path(), filter).unwrap();
    for (rules, watched, passed_over) in [("two", "one", "two"), ("one", "two", "one")] {
        std::fs::write(path("rules"), rules).unwrap();
        std::fs::rename(path("rules"), path(".synclineignore")).unwrap();
        while !next(&mut hints).unwrap().everything {}
        // The walk with the new rules may still be under way; it ends before what it finds is told.
        let mut named = BTreeSet::new();
        for round in 0_u32.. {
            std::fs::write(path(passed_over).join(round.to_string()), "").unwrap();
            std::fs::write(path(watched).join(round.to_string()), "").unwrap();
            let hint = next(&mut hints).unwrap();
            named = hint.directories;
            if named.contains(&at(watched)) && !named.contains(&at(passed_over)) {
                break;
            }
            assert!(round < 1000, "the rules '{rules}' are not followed");
        }
        assert!(!named.contains(&at(passed_over)));
    }
    std::fs::remove_file(path(".synclineignore")).unwrap();
    while !next(&mut hints).unwrap().everything {}
}

#[test]
fn names_that_are_no_text_are_told() {
    use std::os::unix::ffi::OsStrExt;
    let mut scene = Scene::new();
    let name = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    std::fs::create_dir(scene.folder.path().join(name)).unwrap();
    std::fs::write(scene.folder.path().join(name).join(name), "new").unwrap();
    let expected = RelativePath::new(b"\xff\xfe").unwrap();
    let mut named = Hint::default();
    while !named.directories.contains(&expected) {
        named.merge(next(&mut scene.hints).unwrap());
    }
}

#[test]
fn root_that_is_moved_away_or_removed_is_told_as_everything() {
    for remove in [
        |root: &Path| std::fs::rename(root, root.with_extension("moved")).unwrap(),
        |root: &Path| std::fs::remove_dir_all(root).unwrap(),
    ] {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let (_watcher, mut hints) =
            FolderWatcher::start(&root, |_: &RelativePath, _| false).unwrap();
        remove(&root);
        let mut told = Hint::default();
        while !told.everything {
            told.merge(next(&mut hints).unwrap());
        }
    }
}

#[test]
fn traffic_without_end_is_told_all_the_same() {
    let mut scene = Scene::new();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let path = scene.path("one/busy");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                std::fs::write(&path, "busy").unwrap();
            }
        });
        for _ in 0..5 {
            assert_eq!(next(&mut scene.hints), Some(hint(&["one"])));
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn hint_follows_the_close_of_a_file_at_once() {
    let mut scene = Scene::new();
    let mut times = Vec::new();
    for _ in 0..40 {
        scene.write("one/file");
        let closed = Instant::now();
        next(&mut scene.hints).unwrap();
        times.push(closed.elapsed());
        // The hint of the opening may have come alone; the rest belongs to this round too.
        while scene.hints.take_now().is_some() {}
    }
    times.sort();
    println!("best {:?}, middle {:?}, worst {:?}", times[0], times[20], times[39]);
    assert!(times[0] < Duration::from_millis(15), "the best time is {:?}", times[0]);
}

#[test]
fn hints_end_with_the_watcher() {
    let folder = tempfile::tempdir().unwrap();
    let (watcher, mut hints) =
        FolderWatcher::start(folder.path(), |_: &RelativePath, _| false).unwrap();
    drop(watcher);
    assert_eq!(next(&mut hints), None);
}

#[test]
fn folder_that_is_not_there_cannot_be_watched() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for name in ["nothing", "file"] {
        let refused = FolderWatcher::start(&folder.path().join(name), |_: &RelativePath, _| false);
        assert!(matches!(refused, Err(WatchError::NoSuchDirectory(_))));
    }
}

#[test]
fn hints_that_nobody_takes_merge() {
    let mailbox = std::sync::Arc::new(Mailbox::default());
    let mut hints = Hints::new(std::sync::Arc::clone(&mailbox));
    assert_eq!(hints.take_now(), None);
    mailbox.put(Hint::default());
    assert_eq!(hints.take_now(), None);
    mailbox.put(hint(&["a", "b"]));
    mailbox.put(hint(&["b", "c"]));
    assert_eq!(hints.take_now(), Some(hint(&["a", "b", "c"])));
    mailbox.put(hint(&["a"]));
    mailbox.put(Hint::everything());
    mailbox.put(hint(&["b"]));
    assert_eq!(hints.take_now(), Some(Hint::everything()));
    assert_eq!(hints.take_now(), None);
    for number in 0..=DIRECTORIES_MAX {
        mailbox.put(hint(&[&format!("directory{number}")]));
    }
    assert_eq!(hints.take_now(), Some(Hint::everything()));
}

#[test]
fn limit_is_told_with_the_remedy() {
    let warning = WatchWarning::LimitReached { limit: 65_536 };
    assert!(warning.to_string().ends_with("'sysctl fs.inotify.max_user_watches=262144'"));
}
