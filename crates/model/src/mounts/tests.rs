use super::*;
use crate::checkpoint::Checkpoint;
use crate::codec::encode_message;
use crate::commit::{Action, Change, Commit, Head};
use crate::entry::Entry;
use crate::fold::{FoldNote, PlainOpener, fold};
use crate::ids::{EntryHash, PageId};
use crate::node::{NodeKind, NodeRecord, Timestamp};
use crate::path::Name;
use crate::testing::{self, commit, node};
use crate::tree::{Tree, path_of};

fn holding(number: u8) -> Mount {
    Mount { workspace: WorkspaceId::from_bytes([number; 16]), since: u64::from(number) }
}

fn mounts(folders: &[u8]) -> Mounts {
    folders.iter().map(|folder| (node(*folder), holding(*folder))).collect()
}

fn mount(base: u64, folders: &[u8]) -> Change {
    let payload = encode_message(&mounts(folders));
    Change { node: NodeId::MOUNTS, base, action: Action::Put(payload) }
}

fn put(id: u8, base: u64, parent: u8, name: &str, kind: NodeKind) -> Change {
    let record = NodeRecord {
        parent: node(parent),
        name: Name::new(name).expect("a valid name"),
        mode: 0,
        modified: Timestamp::default(),
        kind,
        conflict: None,
    };
    testing::put_record(id, base, &record)
}

fn directory(id: u8, base: u64, parent: u8, name: &str) -> Change {
    put(id, base, parent, name, NodeKind::Directory)
}

fn link(id: u8, base: u64, parent: u8, name: &str) -> Change {
    put(id, base, parent, name, NodeKind::Symlink(name.into()))
}

fn delete(id: u8, base: u64) -> Change {
    Change { node: node(id), base, action: Action::Delete }
}

/// A log with the folders 1 and 2 in the root, `in` in 1 and `out` in the root; 1 is mounted.
fn mounted() -> Tree {
    let mut tree = Tree::default();
    let files = vec![
        directory(1, 0, 0, "shared"),
        directory(2, 0, 1, "sub"),
        link(3, 0, 2, "in"),
        link(4, 0, 0, "out"),
        directory(5, 0, 0, "other"),
    ];
    take(&mut tree, files);
    assert_eq!(take(&mut tree, vec![mount(0, &[1])]), []);
    tree
}

fn take(tree: &mut Tree, changes: Vec<Change>) -> Vec<FoldNote> {
    let entry = Entry { seq: 1, previous: EntryHash::NONE, commit: commit(1, changes) };
    let Ok(folded) = fold(tree, &entry, &PlainOpener);
    folded.notes
}

fn path(tree: &Tree, id: u8) -> Option<String> {
    let path = path_of(tree, &node(id)).expect("a path");
    path.map(|path| path.to_string())
}

#[test]
fn list_is_read_back_and_only_in_one_form() {
    let list = mounts(&[1, 7]);
    let mut golden = vec![b'D', 1, 2];
    for number in [1, 7] {
        golden.extend_from_slice(node(number).as_bytes());
        golden.extend_from_slice(&[number; 17]);
    }
    assert_eq!(encode_message(&list), golden);
    assert_eq!(decode_message(&golden), Ok(list));
    let mut unsorted = golden.clone();
    unsorted[3..].rotate_left(33);
    assert!(decode_message::<Mounts>(&unsorted).is_err());
    let of_root = encode_message(&mounts(&[0]));
    assert!(decode_message::<Mounts>(&of_root).is_err());
    for at in 0..golden.len() {
        assert!(decode_message::<Mounts>(&golden[..at]).is_err(), "{at} bytes");
    }
}

#[test]
fn longest_list_fits_into_the_settings() {
    let many = (1..=MOUNTS_MAX as u32).map(|number| {
        let mut bytes = [0; 16];
        bytes[12..].copy_from_slice(&number.to_be_bytes());
        (NodeId::from_bytes(bytes), Mount { since: u64::MAX, ..holding(1) })
    });
    let many: Mounts = many.collect();
    assert!(encode_message(&many).len() <= crate::tree::SETTINGS_LENGTH_MAX);
    assert_eq!(many.with(NodeId::from_bytes([9; 16]), holding(1)), None);
    assert!(many.with(*many.iter().next().expect("one").0, holding(2)).is_some());
}

#[test]
fn programs_that_know_no_mounted_folders_refuse_their_entries() {
    let entry =
        Entry { seq: 1, previous: EntryHash::NONE, commit: commit(1, vec![mount(0, &[1])]) };
    let bytes = encode_message(&entry);
    assert_eq!(bytes[1], 5, "newer than all that programs before knew");
    assert_eq!(decode_message(&bytes), Ok(entry));
    for version in [1, 2, 3, 4, 6, 7, 8] {
        let mut other = bytes.clone();
        other[1] = version;
        assert!(decode_message::<Entry>(&other).is_err(), "as version {version}");
    }
    let mut ordinary = encode_message(&commit(1, vec![link(1, 0, 0, "a")]));
    ordinary[1] = 5;
    assert!(decode_message::<Commit>(&ordinary).is_err());
}

#[test]
fn checkpoints_of_such_a_log_are_refused_by_them_too() {
    let page = PageId::from_bytes([1; 32]);
    let head = Head { seq: 3, hash: EntryHash::NONE };
    let (nodes, packs, node_count, seal) = (page, page, 1, None);
    let has_deltas = false;
    for (fence, has_mounts, version) in [(0, false, 1), (2, false, 3), (0, true, 5), (2, true, 7)] {
        let checkpoint =
            Checkpoint { head, nodes, node_count, packs, fence, has_mounts, has_deltas, seal };
        let bytes = encode_message(&checkpoint);
        assert_eq!(bytes[1], version);
        assert_eq!(decode_message(&bytes), Ok(checkpoint));
    }
}

#[test]
fn nothing_goes_into_a_mounted_folder_or_out_of_it() {
    let mut tree = mounted();
    let void = |id| vec![FoldNote::MoveVoid { node: node(id) }];
    assert_eq!(take(&mut tree, vec![link(4, 1, 1, "moved in")]), void(4));
    assert_eq!(take(&mut tree, vec![link(3, 1, 0, "moved out")]), void(3));
    assert_eq!(take(&mut tree, vec![directory(2, 1, 5, "moved out")]), void(2));
    assert_eq!(take(&mut tree, vec![directory(5, 1, 2, "moved in")]), void(5));
    let places = [1, 2, 3, 4, 5].map(|id| path(&tree, id).expect("it lives"));
    assert_eq!(places, ["shared", "shared/sub", "shared/sub/in", "out", "other"]);
    // What is new must not vanish there: nobody would see it.
    assert_eq!(take(&mut tree, vec![link(6, 0, 2, "new")]), void(6));
    assert_eq!(path(&tree, 6).as_deref(), Some("new"));
    // In itself the frozen folder may still change, as by a device that had not heard of it.
    assert_eq!(take(&mut tree, vec![link(3, 2, 1, "up")]), []);
    assert_eq!(path(&tree, 3).as_deref(), Some("shared/up"));
}

#[test]
fn mounted_folder_is_moved_and_not_deleted() {
    let mut tree = mounted();
    assert_eq!(take(&mut tree, vec![directory(1, 1, 5, "elsewhere")]), []);
    assert_eq!(path(&tree, 3).as_deref(), Some("other/elsewhere/sub/in"));
    let kept = |id| vec![FoldNote::NotEmpty { node: node(id) }];
    // Even where nothing was in it that this log knows of.
    assert_eq!(take(&mut tree, vec![delete(3, 1), delete(2, 1), delete(1, 2)]), kept(1));
    assert_eq!(take(&mut tree, vec![delete(5, 1)]), kept(5));
    assert_eq!(path(&tree, 1).as_deref(), Some("other/elsewhere"));
    let list = Mounts::of(&tree).expect("read");
    let frozen = |id| list.freeze(&tree, &node(id)).expect("read");
    assert!(frozen(2) && !frozen(1) && !frozen(4) && !frozen(9));
}

#[test]
fn what_was_deleted_in_it_comes_back_outside() {
    let mut tree = mounted();
    take(&mut tree, vec![delete(3, 1)]);
    assert_eq!(
        take(&mut tree, vec![link(3, 2, 2, "back")]),
        [FoldNote::MoveVoid { node: node(3) }]
    );
    assert_eq!(path(&tree, 3).as_deref(), Some("back"));
}

#[test]
fn unreadable_list_leaves_the_one_before_in_force() {
    let mut tree = mounted();
    let nonsense = Change { node: NodeId::MOUNTS, base: 1, action: Action::Put(vec![1, 2, 3]) };
    assert_eq!(take(&mut tree, vec![nonsense]).len(), 1);
    assert_eq!(Mounts::of(&tree), Ok(mounts(&[1])));
    // A folder that is mounted no more is a folder as any other.
    assert_eq!(take(&mut tree, vec![mount(2, &[]), link(4, 1, 1, "moved in")]), []);
    assert_eq!(path(&tree, 4).as_deref(), Some("shared/moved in"));
}
