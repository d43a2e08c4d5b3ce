use proptest::prelude::{Strategy, any, prop, proptest};

use super::*;
use crate::codec::encode_message;
use crate::commit::{Action, Change, Commit};
use crate::ids::EntryHash;
use crate::node::{NodeKind, Timestamp};
use crate::path::Name;
use crate::testing::{self, commit, node};
use crate::tree::{Tree, path_of};

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

/// A change that puts node `id` as `text` into `parent`; `kind` is a directory, or a link of that target.
fn put(id: u8, base: u64, parent: u8, text: &str, kind: NodeKind) -> Change {
    let record = NodeRecord {
        parent: node(parent),
        name: name(text),
        mode: 0,
        modified: Timestamp::default(),
        kind,
        conflict: None,
    };
    testing::put_record(id, base, &record)
}

fn directory(id: u8, base: u64, parent: u8, text: &str) -> Change {
    put(id, base, parent, text, NodeKind::Directory)
}

fn link(id: u8, base: u64, parent: u8, text: &str, target: &str) -> Change {
    put(id, base, parent, text, NodeKind::Symlink(target.into()))
}

fn delete(id: u8, base: u64) -> Change {
    Change { node: node(id), base, action: Action::Delete }
}

/// Folds commits, one change list each, and returns the tree with the notes of all.
fn folded(commits: Vec<Vec<Change>>) -> (Tree, Vec<FoldNote>) {
    let mut tree = Tree::default();
    let mut notes = Vec::new();
    for (seq, changes) in (1..).zip(commits) {
        let Ok(done) = fold(&mut tree, &entry(seq, commit(seq as u8, changes)), &PlainOpener);
        notes.extend(done.notes);
    }
    check(&tree);
    (tree, notes)
}

fn entry(seq: u64, commit: Commit) -> Entry {
    Entry { seq, previous: EntryHash::NONE, commit }
}

/// Checks the invariants that the module promises.
fn check(tree: &Tree) {
    for (id, item) in tree.nodes().filter(|(_, item)| item.is_alive()) {
        let parent = item.record.parent;
        let parent_alive = tree
            .get(&parent)
            .is_some_and(|parent| parent.is_alive() && parent.record.kind.is_directory());
        assert!(parent == NodeId::ROOT || parent_alive, "{id} lies in a living directory");
        assert!(matches!(path_of(tree, id), Ok(Some(_))), "{id} is reached from the root");
        assert_eq!(tree.child(&parent, &item.record.name), Ok(Some(*id)), "{id} holds its name");
    }
}

fn place(tree: &Tree, id: u8) -> Option<String> {
    path_of(tree, &node(id)).expect("a short path").map(|path| path.to_string())
}

#[test]
fn first_holder_keeps_the_name_and_the_later_is_kept_beside_it() {
    let (tree, notes) =
        folded(vec![vec![link(1, 0, 0, "a.txt", "x")], vec![link(2, 0, 0, "a.txt", "y")]]);
    assert_eq!(place(&tree, 1).as_deref(), Some("a.txt"));
    assert_eq!(place(&tree, 2).as_deref(), Some("a (conflict v2).txt"));
    assert_eq!(notes, [FoldNote::NameTaken { node: node(2), holder: node(1) }]);
    let conflict = tree.get(&node(2)).and_then(|item| item.record.conflict);
    assert_eq!(conflict, Some(ConflictOrigin { node: node(1), base: 0 }));
}

#[test]
fn nodes_that_exchange_their_names_in_one_commit_get_them() {
    let made = vec![link(1, 0, 0, "a", "x"), link(2, 0, 0, "b", "y"), link(3, 0, 0, "c", "z")];
    let turned = vec![link(1, 1, 0, "b", "x"), link(2, 1, 0, "c", "y"), link(3, 1, 0, "a", "z")];
    let (tree, notes) = folded(vec![made, turned]);
    assert_eq!([1, 2, 3].map(|id| place(&tree, id).unwrap()), ["b", "c", "a"]);
    assert_eq!(notes, []);
    let conflicts = [1, 2, 3].map(|id| tree.get(&node(id)).unwrap().record.conflict);
    assert_eq!(conflicts, [None; 3]);
}

#[test]
fn left_name_goes_to_the_first_who_wanted_it() {
    let made = vec![link(1, 0, 0, "a", "x"), link(2, 0, 0, "b", "y"), link(3, 0, 0, "c", "z")];
    let both = vec![link(2, 1, 0, "a", "y"), link(3, 1, 0, "a", "z"), link(1, 1, 0, "b", "x")];
    let (tree, notes) = folded(vec![made, both]);
    assert_eq!([1, 2, 3].map(|id| place(&tree, id).unwrap()), ["b", "a", "a (conflict v2 2)"]);
    assert_eq!(notes, [FoldNote::NameTaken { node: node(3), holder: node(1) }]);
}

#[test]
fn equal_new_nodes_of_one_name_become_one() {
    let (tree, _) = folded(vec![vec![link(1, 0, 0, "a", "x")], vec![link(2, 0, 0, "a", "x")]]);
    assert_eq!(place(&tree, 2), None);
    assert_eq!(tree.children(&NodeId::ROOT).count(), 1);
}

#[test]
fn new_directories_of_one_name_become_one_with_all_that_lies_in_them() {
    let first = vec![directory(1, 0, 0, "d"), link(3, 0, 1, "x", "1")];
    let second = vec![directory(2, 0, 0, "d"), link(4, 0, 2, "y", "2")];
    let (tree, _) = folded(vec![first, second]);
    assert_eq!(place(&tree, 3).as_deref(), Some("d/x"));
    assert_eq!(place(&tree, 4).as_deref(), Some("d/y"));
}

#[test]
fn addition_brings_a_deleted_directory_back() {
    let made = vec![directory(1, 0, 0, "d"), directory(2, 0, 1, "e")];
    let (tree, notes) =
        folded(vec![made, vec![delete(2, 1), delete(1, 1)], vec![link(3, 0, 2, "x", "1")]]);
    assert_eq!(place(&tree, 3).as_deref(), Some("d/e/x"));
    assert_eq!(notes, [FoldNote::Revived { node: node(1) }, FoldNote::Revived { node: node(2) }]);
}

#[test]
fn revived_directory_does_not_push_out_the_new_holder_of_its_name() {
    let commits = vec![
        vec![directory(1, 0, 0, "d")],
        vec![delete(1, 1), link(2, 0, 0, "d", "new")],
        vec![link(3, 0, 1, "x", "1")],
    ];
    let (tree, _) = folded(commits);
    assert_eq!(place(&tree, 2).as_deref(), Some("d"));
    assert_eq!(place(&tree, 3).as_deref(), Some("d (conflict v3)/x"));
}

#[test]
fn deletion_of_a_directory_in_which_something_lives_is_void() {
    let made = vec![directory(1, 0, 0, "d")];
    let (tree, notes) = folded(vec![made, vec![link(2, 0, 1, "x", "1")], vec![delete(1, 1)]]);
    assert_eq!(place(&tree, 2).as_deref(), Some("d/x"));
    assert_eq!(notes, [FoldNote::NotEmpty { node: node(1) }]);
    assert_eq!(tree.get(&node(1)).map(|item| item.version), Some(2));
}

#[test]
fn concurrent_moves_into_each_other_end_in_a_tree() {
    let made = vec![directory(1, 0, 0, "a"), directory(2, 0, 0, "b")];
    let (tree, notes) =
        folded(vec![made, vec![directory(1, 1, 2, "a")], vec![directory(2, 1, 1, "b")]]);
    assert_eq!(place(&tree, 1).as_deref(), Some("b/a"));
    assert_eq!(place(&tree, 2).as_deref(), Some("b"));
    assert_eq!(notes, [FoldNote::MoveVoid { node: node(2) }]);
}

#[test]
fn names_swap_within_one_commit_through_a_third() {
    let made = vec![link(1, 0, 0, "a", "1"), link(2, 0, 0, "b", "2")];
    let swap = vec![link(1, 1, 0, "t", "1"), link(2, 1, 0, "a", "2"), link(1, 2, 0, "b", "1")];
    let (tree, notes) = folded(vec![made, swap]);
    assert_eq!(place(&tree, 1).as_deref(), Some("b"));
    assert_eq!(place(&tree, 2).as_deref(), Some("a"));
    assert!(notes.is_empty());
}

#[test]
fn unreadable_and_kind_changing_payloads_are_void_but_count() {
    let garbage = Change { node: node(1), base: 1, action: Action::Put(vec![1, 2, 3]) };
    let commits = vec![vec![link(1, 0, 0, "a", "x")], vec![garbage], vec![directory(1, 2, 0, "a")]];
    let (tree, notes) = folded(commits);
    assert_eq!(place(&tree, 1).as_deref(), Some("a"));
    assert_eq!(tree.get(&node(1)).map(|item| item.version), Some(3));
    assert_eq!(notes.len(), 2);
}

#[test]
fn unknown_parent_leads_to_the_root() {
    let (tree, _) = folded(vec![vec![link(1, 0, 9, "a", "x")]]);
    assert_eq!(place(&tree, 1).as_deref(), Some("a"));
}

/// Random changes over few nodes and names, mostly with the right base, so that most are accepted.
fn changes() -> impl Strategy<Value = Vec<(u8, u8, u8, u8, bool)>> {
    prop::collection::vec((1..7_u8, 0..7_u8, 0..3_u8, 0..4_u8, any::<bool>()), 1..40)
}

fn change_for(tree: &Tree, (id, parent, text, what, right_base): (u8, u8, u8, u8, bool)) -> Change {
    let version = tree.get(&node(id)).map_or(0, |item| item.version);
    let base = if right_base { version } else { version.saturating_sub(1) };
    let text = ["x", "y", "z"][usize::from(text)];
    match what {
        0 => delete(id, base),
        1 => link(id, base, parent, text, "1"),
        _ if id % 2 == 0 => link(id, base, parent, text, "2"),
        _ => directory(id, base, parent, text),
    }
}

proptest! {
    #[test]
    fn any_log_folds_into_a_tree(changes in changes()) {
        let mut tree = Tree::default();
        for (seq, spec) in (1..).zip(changes) {
            let change = change_for(&tree, spec);
            let Ok(_) = fold(&mut tree, &entry(seq, commit(1, vec![change])), &PlainOpener);
            check(&tree);
        }
    }

    #[test]
    fn versions_are_those_that_a_coordinator_counts(changes in changes(), unreadable in any::<u8>()) {
        let mut tree = Tree::default();
        let mut counted = HashMap::new();
        for (seq, spec) in (1..).zip(changes) {
            let mut change = change_for(&tree, spec);
            if seq % 5 == u64::from(unreadable % 5) && change.action != Action::Delete {
                change.action = Action::Put(vec![unreadable]);
            }
            let id = change.node;
            let Ok(folded) = fold(&mut tree, &entry(seq, commit(1, vec![change])), &PlainOpener);
            if let Outcome::Accepted { version } = folded.outcomes[0] {
                *counted.entry(id).or_insert(0) += 1;
                assert_eq!(counted[&id], version);
            }
            for (id, version) in &counted {
                assert_eq!(tree.get(id).map(|item| item.version), Some(*version));
            }
        }
    }

    #[test]
    fn no_addition_is_lost_unless_deleted(changes in changes()) {
        let mut tree = Tree::default();
        for (seq, spec) in (1..).zip(changes) {
            let before = tree.clone();
            let change = change_for(&tree, spec);
            let deletes = change.action == Action::Delete;
            let id = change.node;
            let Ok(_) = fold(&mut tree, &entry(seq, commit(1, vec![change])), &PlainOpener);
            for (other, item) in before.nodes().filter(|(_, item)| item.is_alive()) {
                let alive = tree.get(other).is_some_and(TreeNode::is_alive);
                assert!(alive || (deletes && *other == id), "{other} {item:?} vanished");
            }
        }
    }
}

#[test]
fn settings_stand_beside_the_tree_and_are_decided_like_nodes() {
    let put = |base, payload: &[u8]| Change {
        node: NodeId::POOL,
        base,
        action: Action::Put(payload.to_vec()),
    };
    let remove = Change { node: NodeId::POOL, base: 1, action: Action::Delete };
    // The second proposal of the first version is late; settings are not deleted, which is a version all the same.
    let (tree, notes) = folded(vec![
        vec![put(0, b"one")],
        vec![put(0, b"late")],
        vec![remove],
        vec![put(2, b"two")],
    ]);
    let kept = tree.get(&NodeId::POOL).expect("kept");
    assert_eq!((kept.version, &kept.state), (3, &NodeState::Settings(b"two".to_vec())));
    assert!(matches!(notes[..], [FoldNote::Unreadable { node: NodeId::POOL, .. }]), "{notes:?}");
    assert_eq!(tree.children(&NodeId::ROOT).count(), 0);
}

#[test]
fn nothing_comes_to_lie_in_settings() {
    let put = Change { node: NodeId::POOL, base: 0, action: Action::Put(b"one".to_vec()) };
    let mut inside = link(3, 0, 0, "x", "1");
    let Action::Put(payload) = &mut inside.action else { unreachable!("a link is put") };
    let mut record: NodeRecord = decode_message(payload).expect("a record");
    record.parent = NodeId::POOL;
    *payload = encode_message(&record);
    let (tree, _) = folded(vec![vec![put], vec![inside]]);
    assert_eq!(place(&tree, 3).as_deref(), Some("x"));
}

/// Vouches for nobody but device 1, and opens only payloads that do not begin with a zero.
struct Distrustful;

impl Opener for Distrustful {
    fn check(&self, commit: &Commit, _: Option<&[u8]>) -> Result<(), String> {
        match commit.device.as_bytes()[0] {
            1 => Ok(()),
            _ => Err("a stranger".to_owned()),
        }
    }

    fn open<'a>(&self, commit: &'a Commit, number: usize) -> Result<Payload<'a>, String> {
        let opened = PlainOpener.open(commit, number)?;
        match &opened {
            Some(payload) if payload.first() == Some(&0) => Err("not for us".to_owned()),
            _ => Ok(opened),
        }
    }

    /// A list is one byte, which grows.
    fn check_members(&self, old: Option<&[u8]>, new: &[u8]) -> Result<(), String> {
        if old < Some(new) { Ok(()) } else { Err("an older list".to_owned()) }
    }
}

#[test]
fn list_of_members_stays_until_a_later_one_that_the_owner_vouches_for() {
    let mut tree = Tree::default();
    let put = |base, list: u8| {
        vec![Change { node: NodeId::MEMBERS, base, action: Action::Put(vec![list]) }]
    };
    let steps = [(put(0, 5), Some(5)), (put(1, 4), Some(5)), (put(2, 5), Some(5))];
    let more = [(vec![delete_members(3)], Some(5)), (put(4, 0), Some(5)), (put(5, 6), Some(6))];
    for (seq, (changes, expected)) in (1..).zip(steps.into_iter().chain(more)) {
        let Ok(done) = fold(&mut tree, &entry(seq, commit(1, changes)), &Distrustful);
        let is_taken = done.notes.is_empty();
        let Ok(list) = members_of(&tree);
        assert_eq!(list, expected.map(|list| vec![list]), "entry {seq}");
        assert_eq!(is_taken, [1, 6].contains(&seq), "entry {seq}");
    }
    assert_eq!(tree.get(&NodeId::MEMBERS).map(|node| node.version), Some(6));
    // In a plain workspace nobody vouches for any.
    let mut plain = Tree::default();
    let Ok(done) = fold(&mut plain, &entry(1, commit(1, put(0, 1))), &PlainOpener);
    assert_eq!((done.notes.len(), members_of(&plain)), (1, Ok(None)));
}

fn delete_members(base: u64) -> Change {
    Change { node: NodeId::MEMBERS, base, action: Action::Delete }
}

#[test]
fn commit_that_nobody_vouches_for_is_void_in_every_change_and_counts_as_versions() {
    let mut tree = Tree::default();
    let first = vec![link(1, 0, 0, "a", "x"), link(2, 0, 0, "b", "x")];
    let Ok(done) = fold(&mut tree, &entry(1, commit(1, first)), &Distrustful);
    assert_eq!(done.void, None);
    let forged = vec![link(1, 1, 0, "c", "y"), delete(2, 1), link(3, 0, 0, "d", "z")];
    let mut forged = commit(2, forged);
    forged.device = crate::ids::DeviceId::from_bytes([9; 16]);
    let Ok(done) = fold(&mut tree, &entry(2, forged), &Distrustful);
    assert_eq!(done.void.as_deref(), Some("a stranger"));
    assert_eq!(done.notes.len(), 3);
    assert_eq!(place(&tree, 1).as_deref(), Some("a"));
    assert_eq!(place(&tree, 2).as_deref(), Some("b"));
    assert_eq!(place(&tree, 3), None);
    for (id, version) in [(1, 2), (2, 2), (3, 1)] {
        assert_eq!(tree.get(&node(id)).map(|node| node.version), Some(version), "{id}");
    }
}

#[test]
fn payload_that_cannot_be_opened_is_void_alone() {
    let mut tree = Tree::default();
    let closed = Change { node: node(1), base: 0, action: Action::Put(vec![0, 1]) };
    let Ok(done) =
        fold(&mut tree, &entry(1, commit(1, vec![closed, link(2, 0, 0, "b", "x")])), &Distrustful);
    assert_eq!(done.void, None);
    assert!(
        matches!(&done.notes[..], [FoldNote::Unreadable { reason, .. }] if reason == "not for us")
    );
    assert_eq!(place(&tree, 2).as_deref(), Some("b"));
}
