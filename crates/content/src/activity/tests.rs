use model::testing::{commit, node, put, put_record};
use model::{Commit, ConflictOrigin, EntryHash, Genesis, Mode, NodeKind};
use proptest::prelude::*;

use super::*;
use crate::ContentError;
use crate::replay::Replay;
use crate::sealed::WorkspaceKeys;

fn record(parent: u8, name: &str, mode: u32) -> NodeRecord {
    let parent = if parent == 0 { NodeId::ROOT } else { node(parent) };
    let (name, modified) = (Name::new(name).unwrap(), Timestamp::default());
    NodeRecord { parent, name, mode, modified, kind: NodeKind::Directory, conflict: None }
}

fn delete(n: u8, base: u64) -> Change {
    Change { node: node(n), base, action: Action::Delete }
}

/// What each entry is said to have done, the first of them being entry `from`.
fn told(from: u64, commits: Vec<Commit>) -> Vec<Vec<Happened>> {
    let mut scan = ActivityScan::default();
    let entry = |(seq, commit)| Entry { seq, previous: EntryHash::NONE, commit };
    let entries = (from..).zip(commits).map(entry);
    let told = entries.map(|entry| scan.note(&entry));
    told.map(|found| found.map_or(Vec::new(), |it| it.changes))
        .map(|changes| changes.into_iter().map(|change| change.happened).collect())
        .collect()
}

#[test]
fn each_change_is_told_as_what_it_is() {
    let conflict = Some(ConflictOrigin { node: node(2), base: 1 });
    let marked = NodeRecord { conflict, ..record(0, "b", 0) };
    let found = told(
        1,
        vec![
            commit(1, vec![put_record(1, 0, &record(0, "a", 0))]),
            commit(2, vec![put_record(1, 1, &record(0, "b", 0))]),
            commit(3, vec![put_record(1, 2, &record(2, "b", 0))]),
            commit(4, vec![put_record(1, 3, &record(2, "c", 7))]),
            commit(5, vec![delete(1, 4)]),
            commit(6, vec![put_record(1, 5, &record(0, "b", 0))]),
            commit(7, vec![put_record(1, 6, &marked)]),
            commit(8, vec![put_record(1, 7, &record(0, "b", 0))]),
            commit(9, vec![put_record(3, 0, &marked)]),
        ],
    );
    let flat: Vec<_> = found.into_iter().flatten().collect();
    assert_eq!(
        flat,
        [
            Happened::Made,
            Happened::Renamed,
            Happened::Moved,
            Happened::Changed,
            Happened::Deleted,
            Happened::Restored,
            Happened::KeptBeside,
            Happened::Decided,
            Happened::KeptBeside,
        ]
    );
}

#[test]
fn what_did_not_count_is_not_told_and_what_is_older_is_a_change() {
    let lost = put(1, 4, "lost");
    let pool = Change { node: NodeId::POOL, base: 0, action: Action::Put(vec![1]) };
    let found = told(
        90,
        vec![
            commit(1, vec![put(1, 4, "x")]),
            commit(2, vec![lost.clone()]),
            commit(3, vec![pool]),
            commit(4, vec![lost, put(1, 5, "y"), delete(7, 2)]),
        ],
    );
    let renamed = Happened::Changed;
    assert_eq!(found, [vec![Happened::Changed], vec![], vec![], vec![renamed, Happened::Deleted]]);
}

#[test]
fn of_an_entry_with_many_changes_the_first_are_told_and_all_are_counted() {
    let changes = (1..=50).map(|n| put(n, 0, &format!("f{n}"))).collect();
    let entry = Entry { seq: 1, previous: EntryHash::NONE, commit: commit(1, changes) };
    let found = ActivityScan::default().note(&entry).unwrap();
    assert_eq!((found.count, found.changes.len()), (50, CHANGES_SHOWN_MAX));
    assert_eq!(found.changes[0].version, 1);
}

/// A change of a random log: of which node, what becomes of it, and whether its author has seen the version before.
#[derive(Debug, Clone)]
struct Step {
    node: u8,
    kind: u8,
    is_late: bool,
}

/// A plain workspace, folded from its beginning.
fn plain() -> Replay {
    let mode = Mode::Plain;
    let (name, created, content_key) = (String::new(), Timestamp::default(), [0; 32]);
    let genesis = Genesis { name, mode, created, content_key };
    let random = std::sync::Arc::new(crate::samples::SeededRandom::new(1));
    Replay::new(&genesis, WorkspaceKeys::open(&genesis, None, random).unwrap())
}

fn append(replay: &mut Replay, changes: Vec<Change>) -> Entry {
    let Head { seq, hash } = replay.head();
    let commit = Commit { seen: replay.head(), ..commit(seq as u8, changes) };
    let entry = Entry { seq: seq + 1, previous: hash, commit };
    let folded = replay.fold(&entry).unwrap();
    assert_eq!(folded.notes, [], "the fold does all as it was proposed");
    entry
}

fn step() -> impl Strategy<Value = Step> {
    let of = |(node, kind, is_late)| Step { node, kind, is_late };
    (1..6u8, 0..9u8, prop::bool::weighted(0.1)).prop_map(of)
}

/// Makes a change of what is in the tree; names tell nodes apart, so that none is taken.
fn change_of(replay: &Replay, step: &Step) -> Change {
    let Step { node: number, kind, is_late } = *step;
    let Ok(version) = Versions::version(replay.tree(), &node(number));
    let base = version.saturating_sub(u64::from(is_late));
    if kind < 2 {
        return delete(number, base);
    }
    let parent = if kind % 2 == 0 { 0 } else { 100 };
    let name = if kind < 6 { format!("{number}") } else { format!("{number} again") };
    let conflict = (kind == 8).then_some(ConflictOrigin { node: node(100), base: 1 });
    let record = NodeRecord { conflict, ..record(parent, &name, u32::from(kind / 4)) };
    put_record(number, base, &record)
}

proptest! {
    #[test]
    fn whoever_folds_the_whole_log_and_whoever_reads_a_stretch_of_it_tell_the_same(
        commits in prop::collection::vec(prop::collection::vec(step(), 1..4), 1..40),
    ) {
        let (mut replay, mut scan) = (plain(), ActivityScan::default());
        let mut log = vec![append(&mut replay, vec![put_record(100, 0, &record(0, "f", 0))])];
        for mut steps in commits {
            steps.sort_by_key(|step| step.node);
            steps.dedup_by_key(|step| step.node);
            let changes = steps.iter().map(|step| change_of(&replay, step)).collect();
            log.push(append(&mut replay, changes));
        }
        for entry in &log {
            let (told, mut expected) = (replay.activity(entry).unwrap(), scan.note(entry));
            for change in expected.iter_mut().flat_map(|activity| &mut activity.changes) {
                if let Some(old) = change.old_name.take() {
                    let (_, before) = replay.versions().brought(&change.node, entry.seq).unwrap();
                    let seq = before.unwrap().seq;
                    let found = replay.find_version(&change.node, seq, &log[seq as usize - 1]);
                    prop_assert_eq!(found.unwrap().unwrap().record.unwrap().name, old);
                }
                if change.happened == Happened::Deleted {
                    change.record = replay.tree().get(&change.node).map(|node| node.record.clone());
                }
            }
            prop_assert_eq!(told, expected);
        }
    }
}

#[test]
fn an_entry_is_told_of_as_it_was_folded_and_what_counted_for_nothing_is_not() {
    let mut replay = plain();
    let first = append(&mut replay, vec![put_record(1, 0, &record(0, "a", 0))]);
    let lost = append(&mut replay, vec![put_record(1, 0, &record(0, "b", 0))]);
    let pool = Change { node: NodeId::POOL, base: 0, action: Action::Put(vec![1]) };
    let settings = append(&mut replay, vec![pool]);
    assert_eq!(replay.activity(&first).unwrap().unwrap().device_name, "laptop");
    assert_eq!(replay.activity(&lost).unwrap(), None);
    assert_eq!(replay.activity(&settings).unwrap(), None);
    let forged = Entry { commit: commit(77, Vec::new()), ..first.clone() };
    for entry in [forged, Entry { seq: 2, ..first.clone() }, Entry { seq: 4, ..first }] {
        let told = replay.activity(&entry);
        assert!(matches!(told, Err(ContentError::Tampered { .. })), "{told:?}");
    }
}

#[test]
fn what_happened_is_noted_in_no_more_memory_than_the_place_of_a_version_has() {
    assert_eq!(size_of::<crate::versions::VersionPlace>(), 24);
}

#[test]
fn of_an_entry_that_names_a_node_often_or_in_a_wrong_version_little_is_kept() {
    let mut tree = Tree::default();
    let made = commit(1, vec![put_record(1, 0, &record(0, "a", 0))]);
    let entry = Entry { seq: 1, previous: EntryHash::NONE, commit: made };
    let Ok(_) = model::fold::fold(&mut tree, &entry, &model::fold::PlainOpener);
    let again = put_record(1, 1, &record(0, "b", 0));
    let of = |changes| {
        let entry = Entry { seq: 2, previous: EntryHash::NONE, commit: commit(2, changes) };
        Before::of(&tree, &entry).0.len()
    };
    assert_eq!(of(vec![again; 10_000]), 1);
    assert_eq!(of(vec![put_record(1, 9, &record(0, "b", 0)); 10_000]), 0);
}
