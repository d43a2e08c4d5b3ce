use model::fold::{FoldNote, PlainOpener, fold};
use model::testing::{commit, node};
use model::{ChunkId, ChunkRef, Entry, EntryHash, Head};

use super::*;

/// A log without packs, folded.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) tree: Tree,
    seq: u64,
}

impl Log {
    pub(crate) fn append(&mut self, changes: Vec<Change>) -> Vec<FoldNote> {
        self.seq += 1;
        let seen = Head { seq: self.seq - 1, hash: EntryHash::NONE };
        let commit = model::Commit { seen, ..commit(self.seq as u8, changes) };
        let entry = Entry { seq: self.seq, previous: EntryHash::NONE, commit };
        let Ok(folded) = fold(&mut self.tree, &entry, &PlainOpener);
        folded.notes
    }

    pub(crate) fn folder(&mut self, id: u8, parent: NodeId, text: &str) -> NodeId {
        let changes = make_folder(&self.tree, parent, name(text), node(id)).unwrap();
        self.append(changes);
        node(id)
    }

    pub(crate) fn put(&mut self, id: u8, folder: NodeId, text: &str, size: u8) -> PlannedPut {
        let planned = put_of(&self.tree, id, folder, text).plan(&self.tree, &content(size));
        let planned = planned.unwrap();
        self.append(planned.change.clone().into_iter().collect());
        planned
    }

    pub(crate) fn names(&self, folder: NodeId) -> Vec<String> {
        self.tree.children(&folder).map(|(name, _)| name.to_string()).collect()
    }
}

pub(crate) fn name(text: &str) -> Name {
    name_of(text).unwrap()
}

fn content(size: u8) -> Content {
    let chunk = ChunkRef { id: ChunkId::from_bytes([size; 32]), length: size.into() };
    Content { size: size.into(), chunk_size: 4096, depth: 0, chunks: vec![chunk] }
}

fn put_of(tree: &Tree, id: u8, folder: NodeId, text: &str) -> FilePut {
    let put = (node(id), Timestamp::default());
    FilePut::new(tree, (folder, name(text)), put, Some("conflict page".to_owned())).unwrap()
}

#[test]
fn names_that_no_device_takes_are_refused() {
    for wrong in ["", ".", "..", "a/b", "a\0b", ".syncline", &"x".repeat(256)] {
        assert!(matches!(name_of(wrong), Err(ChangeError::Name { .. })), "{wrong}");
    }
    assert_eq!(name("größe").to_string(), "größe");
}

#[test]
fn file_of_that_name_becomes_a_new_version_and_what_is_no_file_is_let_be() {
    let mut log = Log::default();
    log.folder(1, NodeId::ROOT, "folder");
    assert_eq!(log.put(2, NodeId::ROOT, "file", 1).node, node(2));
    let again = log.put(3, NodeId::ROOT, "file", 2);
    assert_eq!((again.node, again.is_beside), (node(2), false));
    assert_eq!(log.put(4, NodeId::ROOT, "file", 2).change, None, "it is so already");
    let put = (node(5), Timestamp::default());
    let over = FilePut::new(&log.tree, (NodeId::ROOT, name("folder")), put, None);
    assert_eq!(over, Err(ChangeError::Taken { name: "folder".to_owned() }));
    let nowhere = FilePut::new(&log.tree, (node(2), name("x")), put, None);
    assert_eq!(nowhere, Err(ChangeError::NoSuch { node: node(2) }));
    assert_eq!(log.names(NodeId::ROOT), ["file", "folder"]);
}

#[test]
fn file_that_somebody_else_has_changed_meanwhile_is_kept_and_ours_lies_beside_it() {
    let mut log = Log::default();
    log.put(1, NodeId::ROOT, "plan.txt", 1);
    let ours = put_of(&log.tree, 9, NodeId::ROOT, "plan.txt");
    log.put(2, NodeId::ROOT, "plan.txt", 2);
    let planned = ours.plan(&log.tree, &content(3)).unwrap();
    assert!(planned.is_beside);
    log.append(planned.change.into_iter().collect());
    assert_eq!(log.names(NodeId::ROOT), ["plan (conflict page).txt", "plan.txt"]);
    let kept = log.tree.get(&node(1)).unwrap();
    assert_eq!(kept.record.kind, NodeKind::File(content(2)));
    let beside = log.tree.get(&node(9)).unwrap();
    assert_eq!(beside.record.kind, NodeKind::File(content(3)));
    assert_eq!(beside.record.conflict, Some(ConflictOrigin { node: node(1), base: 1 }));
}

#[test]
fn file_that_is_to_be_kept_beside_none_is_refused_where_somebody_else_was_first() {
    let mut log = Log::default();
    log.put(1, NodeId::ROOT, "plan.txt", 1);
    let ours = FilePut { label: None, ..put_of(&log.tree, 9, NodeId::ROOT, "plan.txt") };
    assert_eq!(ours.plan(&log.tree, &content(3)).unwrap().node, node(1));
    log.put(2, NodeId::ROOT, "plan.txt", 2);
    assert_eq!(ours.plan(&log.tree, &content(3)), Err(ChangeError::Changed { node: node(1) }));
    assert_eq!(log.names(NodeId::ROOT), ["plan.txt"]);
}

#[test]
fn content_that_somebody_else_has_put_meanwhile_conflicts_with_nothing_and_stands_as_they_left_it()
{
    let mut log = Log::default();
    log.put(1, NodeId::ROOT, "plan.txt", 1);
    let modified = Timestamp { seconds: 7, nanoseconds: 0 };
    let ours = FilePut { modified, ..put_of(&log.tree, 9, NodeId::ROOT, "plan.txt") };
    let refusing = FilePut { label: None, ..ours.clone() };
    log.put(2, NodeId::ROOT, "plan.txt", 2);
    let record = log.tree.get(&node(1)).unwrap().record.clone();
    let locked = NodeRecord { mode: 0o600, ..record };
    log.append(vec![put(node(1), 2, &locked)]);
    let theirs = |node| PlannedPut { change: None, node, is_beside: false };
    for put in [&ours, &refusing] {
        assert_eq!(put.plan(&log.tree, &content(2)), Ok(theirs(node(1))));
    }
    assert!(ours.plan(&log.tree, &content(3)).unwrap().is_beside, "it is another content");

    let folder = log.folder(3, NodeId::ROOT, "folder");
    let moved = relocate(&log.tree, node(1), folder, name("moved")).unwrap();
    log.append(moved);
    assert_eq!(ours.plan(&log.tree, &content(2)), Ok(theirs(node(1))));
    let version = log.tree.get(&node(1)).unwrap().version;
    let gone = delete(&log.tree, node(1), version).unwrap();
    log.append(gone);
    log.put(4, NodeId::ROOT, "plan.txt", 2);
    assert_eq!(ours.plan(&log.tree, &content(2)), Ok(theirs(node(4))));
    assert!(ours.plan(&log.tree, &content(3)).unwrap().is_beside, "it is another content");
}

#[test]
fn time_of_a_file_that_was_seen_is_put_also_with_the_content_that_it_has() {
    let mut log = Log::default();
    log.put(1, NodeId::ROOT, "plan.txt", 1);
    let modified = Timestamp { seconds: 7, nanoseconds: 0 };
    let ours = FilePut { modified, ..put_of(&log.tree, 9, NodeId::ROOT, "plan.txt") };
    let planned = ours.plan(&log.tree, &content(1)).unwrap();
    assert_eq!((planned.node, planned.is_beside), (node(1), false));
    log.append(planned.change.into_iter().collect());
    assert_eq!(log.tree.get(&node(1)).unwrap().record.modified, modified);
    assert_eq!(ours.plan(&log.tree, &content(1)).unwrap().change, None, "it is so already");
}

#[test]
fn copy_is_marked_once_as_it_was_seen_and_only_beside_what_ever_was() {
    let mut log = Log::default();
    log.put(1, NodeId::ROOT, "plan.txt", 1);
    log.put(2, NodeId::ROOT, "copy.txt", 2);
    let origin = |id, base| ConflictOrigin { node: node(id), base };
    let marked = |log: &Log, version, origin| mark(&log.tree, node(2), version, origin);
    assert_eq!(marked(&log, 2, origin(1, 1)), Err(ChangeError::Changed { node: node(2) }));
    for wrong in [origin(1, 2), origin(2, 1), origin(3, 0)] {
        assert_eq!(marked(&log, 1, wrong), Err(ChangeError::NoSuch { node: wrong.node }));
    }
    let changes = marked(&log, 1, origin(1, 1)).unwrap();
    assert_eq!(log.append(changes), []);
    let copy = log.tree.get(&node(2)).unwrap();
    assert_eq!((copy.version, copy.record.conflict), (2, Some(origin(1, 1))));
    assert_eq!(copy.record.kind, NodeKind::File(content(2)));
    assert_eq!(marked(&log, 2, origin(1, 1)), Err(ChangeError::Changed { node: node(2) }));
}

#[test]
fn folder_is_deleted_alone_only_with_nothing_in_it_also_where_somebody_puts_something_there_meanwhile()
 {
    let mut log = Log::default();
    let folder = log.folder(1, NodeId::ROOT, "folder");
    let version = log.tree.get(&folder).unwrap().version;
    let deleted = delete_one(&log.tree, folder, version).unwrap();
    log.put(2, folder, "file", 1);
    assert_eq!(delete_one(&log.tree, folder, version), Err(ChangeError::Changed { node: folder }));
    let notes = log.append(deleted);
    assert_eq!(notes, [FoldNote::NotEmpty { node: folder }]);
    assert_eq!(log.names(folder), ["file"]);
    let deleted = delete_one(&log.tree, node(2), 1).unwrap();
    assert_eq!(log.append(deleted), []);
    assert!(log.names(folder).is_empty());
}

#[test]
fn file_that_was_moved_meanwhile_is_followed_and_one_that_was_deleted_comes_back() {
    let mut log = Log::default();
    let folder = log.folder(1, NodeId::ROOT, "folder");
    log.put(2, NodeId::ROOT, "file", 1);
    let ours = put_of(&log.tree, 9, NodeId::ROOT, "file");
    let moved = relocate(&log.tree, node(2), folder, name("moved")).unwrap();
    log.append(moved);
    let planned = ours.plan(&log.tree, &content(2)).unwrap();
    assert_eq!((planned.node, planned.is_beside), (node(2), false));
    log.append(planned.change.into_iter().collect());
    assert_eq!(log.names(folder), ["moved"]);

    let ours = put_of(&log.tree, 10, folder, "moved");
    let version = log.tree.get(&folder).unwrap().version;
    let gone = delete(&log.tree, folder, version).unwrap();
    log.append(gone);
    assert!(log.names(NodeId::ROOT).is_empty());
    let planned = ours.plan(&log.tree, &content(3)).unwrap();
    assert_eq!((planned.node, planned.is_beside), (node(10), false));
    let notes = log.append(planned.change.into_iter().collect());
    assert_eq!(notes, [FoldNote::Revived { node: folder }]);
    assert_eq!(log.names(folder), ["moved"]);
}

#[test]
fn moves_into_itself_onto_others_and_of_what_is_gone_are_refused() {
    let mut log = Log::default();
    let outer = log.folder(1, NodeId::ROOT, "outer");
    let inner = log.folder(2, outer, "inner");
    log.put(3, NodeId::ROOT, "file", 1);
    let to = |node, folder, text| relocate(&log.tree, node, folder, name(text));
    assert_eq!(to(outer, inner, "x"), Err(ChangeError::IntoItself { node: outer }));
    assert_eq!(to(outer, outer, "x"), Err(ChangeError::IntoItself { node: outer }));
    let taken = ChangeError::Taken { name: "file".to_owned() };
    assert_eq!(to(outer, NodeId::ROOT, "file"), Err(taken.clone()));
    assert_eq!(make_folder(&log.tree, NodeId::ROOT, name("file"), node(9)), Err(taken));
    assert_eq!(to(node(9), outer, "x"), Err(ChangeError::NoSuch { node: node(9) }));
    assert_eq!(to(node(3), NodeId::ROOT, "file"), Ok(Vec::new()));
    let mut deep = inner;
    for id in 10..10 + PATH_DEPTH_MAX as u8 - 2 {
        deep = log.folder(id, deep, "deeper");
    }
    let too_deep = make_folder(&log.tree, deep, name("x"), node(9));
    assert!(matches!(too_deep, Err(ChangeError::Name { .. })), "{too_deep:?}");
    let below = log.folder(5, NodeId::ROOT, "below");
    let too_deep = relocate(&log.tree, outer, below, name("outer"));
    assert!(matches!(too_deep, Err(ChangeError::Name { .. })), "{too_deep:?}");
}

#[test]
fn deletion_of_another_version_is_refused_and_one_can_be_taken_back() {
    let mut log = Log::default();
    let folder = log.folder(1, NodeId::ROOT, "folder");
    let inner = log.folder(2, folder, "inner");
    log.put(3, inner, "one", 1);
    log.put(4, inner, "two", 2);
    let gone = ChangeError::Changed { node: node(4) };
    assert_eq!(delete(&log.tree, node(4), 2), Err(gone));
    let before = log.tree.clone();
    let deletions = delete(&log.tree, folder, 1).unwrap();
    assert_eq!(deletions.len(), 4);
    assert_eq!(log.append(deletions.clone()), []);
    assert!(log.names(NodeId::ROOT).is_empty());
    let back = restore(&log.tree, &deletions).unwrap();
    assert_eq!(log.append(back), []);
    for id in [1, 2, 3, 4] {
        let (now, then) = (log.tree.get(&node(id)).unwrap(), before.get(&node(id)).unwrap());
        assert_eq!((&now.record, now.is_alive()), (&then.record, true));
    }
    let again = restore(&log.tree, &deletions);
    assert_eq!(again, Err(ChangeError::Changed { node: folder }));
}

#[test]
fn an_older_version_comes_back_where_the_file_is_by_now_under_the_name_that_it_has() {
    let mut log = Log::default();
    let folder = log.folder(1, NodeId::ROOT, "folder");
    log.put(2, NodeId::ROOT, "file", 1);
    let old = log.tree.get(&node(2)).unwrap().record.clone();
    log.put(2, NodeId::ROOT, "file", 2);
    let moved = relocate(&log.tree, node(2), folder, name("renamed")).unwrap();
    log.append(moved);
    let back = revert(&log.tree, node(2), &old).unwrap();
    assert_eq!(log.append(back), []);
    let now = &log.tree.get(&node(2)).unwrap().record;
    assert_eq!((now.parent, &now.name, &now.kind), (folder, &name("renamed"), &old.kind));
    assert_eq!(revert(&log.tree, node(2), &old), Ok(Vec::new()), "it is so already");
    let deletion = delete(&log.tree, node(2), 4).unwrap();
    log.append(deletion);
    let gone = revert(&log.tree, node(2), &old);
    assert_eq!(gone, Err(ChangeError::NoSuch { node: node(2) }));
}

#[test]
fn many_changes_become_several_commits() {
    let change = |id: u64| Change { node: node(1), base: id, action: Action::Delete };
    let lengths: Vec<usize> =
        groups((0..20_000).map(change).collect()).iter().map(Vec::len).collect();
    assert_eq!(lengths, [8192, 8192, 3616]);
    assert!(groups(Vec::new()).is_empty());
    let large = || Change { node: node(1), base: 0, action: Action::Put(vec![0; 5 << 20]) };
    assert_eq!(groups(vec![large(), large()]).len(), 2);
}
