use std::collections::BTreeSet;
use std::time::Duration;

use super::super::Reader;
use super::super::play::{Plan, play};
use super::*;

/// A trace as a text, and how much it has in it.
pub(super) fn written(workload: &dyn Workload) -> (String, Made) {
    let mut text = Vec::new();
    let made = write(workload, &mut text, Path::new("")).unwrap();
    (String::from_utf8(text).unwrap(), made)
}

/// All steps of a trace.
pub(super) fn parsed(workload: &dyn Workload) -> Vec<Step> {
    let (text, _) = written(workload);
    Reader::new(text.as_bytes()).unwrap().collect::<Result<_, _>>().unwrap()
}

pub(super) fn count<'a>(
    steps: impl Iterator<Item = &'a Step>,
    is: &dyn Fn(&Action) -> bool,
) -> u64 {
    steps.filter(|step| is(&step.action)).count() as u64
}

/// Every workload, small enough to be played in a moment.
fn small(seed: u64, clients: usize) -> Vec<Box<dyn Workload>> {
    let stacksync = |reading| StackSync {
        seed,
        clients,
        tree_bytes: 6_000_000,
        changes: 30,
        interval_ms: 1,
        reading,
    };
    let webr2sync = WebR2sync { seed, clients, files: 18, rounds: 2, interval_ms: 10 };
    let metasync = |folder, part: u64| {
        let whole = MetaSync::of(folder);
        MetaSync { seed, clients, tree_bytes: whole.tree_bytes / part, ..whole }
    };
    let iot = |start| Iot { seed, clients, sensors: 30, files: 5, interval_ms: 10, start };
    let (tree_bytes, changes) = (1_000_000, 500);
    let (users, weeks, reading) = (3, 12, Reading::Paper);
    vec![
        Box::new(stacksync(Reading::Paper)),
        Box::new(stacksync(Reading::BenchBox)),
        Box::new(webr2sync),
        Box::new(metasync(Folder::Source, 100)),
        Box::new(metasync(Folder::Paper, 1)),
        Box::new(metasync(Folder::Photos, 50)),
        Box::new(iot(Start::Together)),
        Box::new(iot(Start::Spread)),
        Box::new(Homes { seed, clients, users, tree_bytes, weeks, changes, reading }),
        Box::new(UbuntuOne { seed, clients, users, tree_bytes, changes }),
    ]
}

#[test]
fn every_workload_is_played_into_a_folder_and_ends_as_it_says() {
    for workload in small(5, 1) {
        let room = tempfile::tempdir().unwrap();
        let (text, made) = written(&*workload);
        let folders = vec![room.path().to_owned()];
        let plan = Plan { folders, speed: None, patience: Duration::ZERO };
        let played = play(Reader::new(text.as_bytes()).unwrap(), &plan, &mut |_| {}).unwrap();
        let name = workload.name();
        assert!(played.settled.is_some(), "{name}: {:?}", played.differences);
        assert_eq!(played.steps, made.changes, "{name}");
        // The end is what the steps make of a list of files, too.
        let there = files::below(room.path()).unwrap().len() as i64;
        let steps = parsed(&*workload);
        let mut paths = BTreeSet::new();
        for step in &steps {
            match &step.action {
                Action::Write { path, .. } => drop(paths.insert(path.clone())),
                Action::Remove { path } => drop(paths.remove(path)),
                Action::Rename { path, to } if paths.remove(path) => drop(paths.insert(to.clone())),
                _ => {}
            }
        }
        assert!(there > 0 && (name == "ubuntuone" || there == paths.len() as i64), "{name}");
    }
}

#[test]
fn equal_seeds_make_equal_traces_and_others_others() {
    for (one, other) in small(5, 1).iter().zip(small(6, 1)) {
        let (text, _) = written(&**one);
        assert!(text.starts_with("{\"syncline_trace\":1"), "{}", one.name());
        assert_eq!(text, written(&**one).0);
        assert_ne!(text, written(&*other).0, "{}", one.name());
    }
}

#[test]
fn steps_come_in_the_order_of_their_times_and_all_clients_take_part() {
    for workload in small(5, 3) {
        let steps = parsed(&*workload);
        assert!(steps.iter().map(|step| step.at_ms).is_sorted(), "{}", workload.name());
        let changes = steps.iter().filter(|step| step.at_ms.is_some());
        let clients: BTreeSet<usize> = changes.map(|step| step.client).collect();
        let expected = if workload.name().starts_with("metasync") { 0 } else { 3 };
        assert_eq!(clients.len(), expected, "{}", workload.name());
    }
}
