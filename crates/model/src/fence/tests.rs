use super::*;
use crate::codec::{NEWEST_VERSION, SEALED_VERSION, decode_message, encode_message};
use crate::commit::{Action, Change, Commit, Head};
use crate::decide::Outcome;
use crate::entry::Entry;
use crate::fold::{FoldNote, PlainOpener, fold};
use crate::ids::EntryHash;
use crate::testing::{commit, node, put};
use crate::tree::{NodeState, Tree};

fn fence() -> Fence {
    Fence {
        condemned: vec![PackId::from_bytes([1; 32]), PackId::from_bytes([2; 32])],
        dropped: vec![DroppedVersions { node: node(1), versions: vec![1, 3] }],
    }
}

fn change(payload: Vec<u8>) -> Change {
    Change { node: NodeId::FENCE, base: 0, action: Action::Put(payload) }
}

/// Folds commits that have each seen the entry of this distance before them.
fn folded(commits: Vec<(u64, Vec<Change>)>) -> (Tree, Vec<crate::fold::Folded>) {
    let mut tree = Tree::default();
    let mut heads = vec![Head { seq: 0, hash: EntryHash::NONE }];
    let mut all = Vec::new();
    for (number, (lag, changes)) in commits.into_iter().enumerate() {
        let seen = heads[heads.len() - 1 - lag as usize];
        let commit = Commit { seen, ..commit(number as u8 + 1, changes) };
        let previous = heads[heads.len() - 1];
        let entry = Entry { seq: previous.seq + 1, previous: previous.hash, commit };
        let Ok(done) = fold(&mut tree, &entry, &PlainOpener);
        heads.push(entry.head());
        all.push(done);
    }
    (tree, all)
}

#[test]
fn fence_returns_from_its_encoding_and_only_in_one_form() {
    let bytes = encode_message(&fence());
    assert_eq!(decode_message(&bytes), Ok(fence()));
    let mut unsorted = fence();
    unsorted.condemned.reverse();
    assert!(decode_message::<Fence>(&encode_message(&unsorted)).is_err());
    let mut twice = fence();
    twice.dropped.push(twice.dropped[0].clone());
    assert!(decode_message::<Fence>(&encode_message(&twice)).is_err());
    for at in 0..bytes.len() {
        assert!(decode_message::<Fence>(&bytes[..at]).is_err(), "{at} bytes");
    }
}

#[test]
fn programs_that_know_no_cleanup_refuse_its_entries() {
    let commit = commit(1, vec![change(encode_message(&fence()))]);
    let entry = Entry { seq: 1, previous: EntryHash::NONE, commit };
    let bytes = encode_message(&entry);
    assert!(bytes[1] > SEALED_VERSION && bytes[1] < NEWEST_VERSION);
    assert_eq!(decode_message(&bytes), Ok(entry));
    for version in [1, SEALED_VERSION, NEWEST_VERSION] {
        let mut other = bytes.clone();
        other[1] = version;
        assert!(decode_message::<Entry>(&other).is_err(), "as version {version}");
    }
    let mut ordinary = encode_message(&crate::testing::commit(1, vec![put(1, 0, "a")]));
    ordinary[1] = 3;
    assert!(decode_message::<Commit>(&ordinary).is_err());
}

#[test]
fn fence_stands_beside_the_tree_and_tells_what_it_removes() {
    let (tree, folds) = folded(vec![
        (0, vec![put(1, 0, "a")]),
        (0, vec![change(encode_message(&fence()))]),
        (1, vec![put(2, 0, "late")]),
        (0, vec![put(3, 0, "b")]),
    ]);
    assert_eq!(folds[1].fence, Some(fence()));
    assert_eq!(folds[2].outcomes, [Outcome::Fenced { fence: 2 }]);
    assert!(folds[2].is_fenced && !folds[1].is_fenced && !folds[3].is_fenced);
    assert!(tree.get(&node(2)).is_none(), "nothing of a late commit counts");
    assert!(tree.get(&node(3)).is_some());
    let kept = tree.get(&NodeId::FENCE).expect("kept");
    assert_eq!((kept.version, &kept.state), (2, &NodeState::Settings(Vec::new())));
}

#[test]
fn commit_of_packs_alone_is_fenced_too() {
    let (_, folds) = folded(vec![
        (0, vec![change(encode_message(&Fence::default()))]),
        (1, Vec::new()),
        (0, Vec::new()),
    ]);
    assert!(folds[1].is_fenced && !folds[2].is_fenced);
}

#[test]
fn fence_that_cannot_be_read_removes_nothing_and_stands() {
    let (tree, folds) = folded(vec![
        (0, vec![put(1, 0, "a")]),
        (0, vec![change(vec![1, 2, 3])]),
        (1, vec![put(1, 1, "b")]),
    ]);
    assert_eq!(folds[1].fence, None);
    assert!(matches!(folds[1].notes[..], [FoldNote::Unreadable { node: NodeId::FENCE, .. }]));
    assert_eq!(folds[2].outcomes, [Outcome::Fenced { fence: 2 }]);
    assert_eq!(tree.get(&NodeId::FENCE).map(|kept| kept.version), Some(2));
}

#[test]
fn only_fences_that_stand_condemn_and_what_is_named_later_does_not_go() {
    let pack = |number| PackId::from_bytes([number; 32]);
    let mut condemned = Condemned::default();
    let mut heads = vec![Head { seq: 0, hash: EntryHash::NONE }];
    // How far behind its author was, what it puts, and which pack it names.
    let commits = [
        (0, vec![put(1, 0, "a")], Some(1)),
        (1, vec![change(encode_message(&fence()))], None),
        (0, vec![change(encode_message(&fence()))], None),
        (1, vec![put(2, 0, "b")], Some(1)),
        (0, vec![put(2, 0, "b")], Some(2)),
    ];
    let mut seen_to_go = Vec::new();
    for (number, (lag, changes, named)) in commits.into_iter().enumerate() {
        let (seen, previous) = (heads[heads.len() - 1 - lag], heads[heads.len() - 1]);
        let named = named.map(|number| crate::commit::PackRef { id: pack(number), length: 1 });
        let packs = named.into_iter().collect();
        let commit = Commit { seen, packs, ..commit(number as u8 + 1, changes) };
        let entry = Entry { seq: previous.seq + 1, previous: previous.hash, commit };
        heads.push(entry.head());
        condemned.note(&entry, &PlainOpener);
        seen_to_go.push([1, 2].map(|number| condemned.contains(&pack(number))));
    }
    let (neither, both) = ([false; 2], [true; 2]);
    // One that was overtaken, one that stands; then a commit that is fenced names one, and one that counts the other.
    assert_eq!(seen_to_go, [neither, neither, both, both, [true, false]]);
}

#[test]
fn whoever_cannot_read_a_fence_condemns_nothing() {
    let commit = Commit {
        seen: Head { seq: 0, hash: EntryHash::NONE },
        ..commit(1, vec![change(b"not a fence".to_vec())])
    };
    let entry = Entry { seq: 1, previous: EntryHash::NONE, commit };
    let mut condemned = Condemned::default();
    condemned.note(&entry, &PlainOpener);
    assert_eq!((condemned.fence, condemned.packs.len()), (1, 0));
}
