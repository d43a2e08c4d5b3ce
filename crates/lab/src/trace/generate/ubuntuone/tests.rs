use std::collections::{BTreeMap, BTreeSet};

use super::super::super::Step;
use super::super::tests::{count, parsed};
use super::*;

fn long() -> Vec<Step> {
    parsed(&UbuntuOne { tree_bytes: 100_000_000, changes: 60_000, ..UbuntuOne::default() })
}

fn is_folder(path: &str) -> bool {
    path.split('/').count() == 2
}

#[test]
fn operations_follow_each_other_as_often_and_as_fast_as_in_the_records() {
    let preset = UbuntuOne { users: 1, ..UbuntuOne::default() };
    let user = User { files: Vec::new(), folders: [None; FOLDERS_MAX], awaited: 0, does: Put };
    let users = vec![user];
    let mut state = State { random: Random::new(1), preset: &preset, users, made: 0 };
    let mut found: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
    let mut before = Put;
    let steps = 1_000_000;
    for _ in 0..steps {
        let wait = state.next(0);
        let does = state.users[0].does;
        let (times, waited) = found.entry((before as usize, does as usize)).or_default();
        (*times, *waited) = (*times + 1.0, *waited + wait as f64);
        before = does;
    }
    for from in [Make, Put, Move, Unlink] {
        let all: f64 = next(from).iter().map(|(_, count, _)| *count as f64).sum();
        let seen: f64 =
            (0..4).filter_map(|to| found.get(&(from as usize, to))).map(|it| it.0).sum();
        for (to, weight, wait_ms) in next(from) {
            let (times, waited) = found[&(from as usize, to as usize)];
            let (share, wanted) = (times / seen, weight as f64 / all);
            assert!((share - wanted).abs() < 0.01, "{from:?} {to:?}: {share} {wanted}");
            let mean = waited / times;
            assert!((mean / wait_ms - 1.0).abs() < 0.1, "{from:?} {to:?}: {mean} {wait_ms}");
        }
    }
}

#[test]
fn shares_are_those_that_are_published() {
    let steps = long();
    let changes = || steps.iter().filter(|step| step.at_ms.is_some());
    // 95 of 105 things that are made are files, and there are a few more contents than that.
    let puts = count(changes(), &|action| matches!(action, Action::Write { .. })) as f64;
    let edits = count(changes(), &|action| matches!(action, Action::Edit { .. })) as f64;
    let updates = edits / (puts + edits);
    assert!((0.05..0.16).contains(&updates), "{updates}");
    let moves = count(
        changes(),
        &|action| matches!(action, Action::Rename { path, .. } if !is_folder(path)),
    );
    let folder_moves = count(
        changes(),
        &|action| matches!(action, Action::Rename { path, .. } if is_folder(path)),
    );
    let share = folder_moves as f64 / moves as f64;
    assert!((0.03..0.07).contains(&share), "{share}");
    let mut seen = BTreeSet::new();
    let (mut known, mut all) = (0.0, 0.0);
    for step in &steps {
        if let Action::Write { size, seed, .. } = &step.action {
            all += 1.0;
            known += if seen.insert((*size, *seed)) { 0.0 } else { 1.0 };
        }
    }
    assert!((known / all - 0.17_f64).abs() < 0.01, "{}", known / all);
}

#[test]
fn users_have_1_to_17_folders_and_the_first_is_the_most_active() {
    let steps = long();
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    let mut active: BTreeMap<String, u64> = BTreeMap::new();
    let mut files = 0_i64;
    let mut most = 0;
    for step in &steps {
        let path = step.action.paths()[0].unwrap();
        let user = path.split('/').next().unwrap().to_owned();
        match &step.action {
            Action::MakeFolder { path } if is_folder(path) => {
                *folders.entry(user.clone()).or_default() += 1;
            }
            Action::Remove { path } if is_folder(path) => *folders.get_mut(&user).unwrap() -= 1,
            Action::Write { .. } => files += 1,
            Action::Remove { .. } => files -= 1,
            _ => {}
        }
        if step.at_ms.is_some() {
            *active.entry(user.clone()).or_default() += 1;
            assert!((1..=17).contains(&folders[&user]), "{user}: {folders:?}");
        }
        most = most.max(files);
    }
    assert_eq!(folders.len(), 20);
    let share = |user: &str| active[user] as f64;
    let ratio = share("user0000") / share("user0003");
    assert!((2.0..8.0).contains(&ratio), "{active:?}");
    // What is removed with folders holds the number of files: it does not grow with the trace.
    assert!(most < 20 * 1000, "{most}");
}
