use model::fold::{FoldNote, PlainOpener, fold};
use model::testing::{commit, node};
use model::{ChunkId, ChunkRef, Commit, Content, Entry, EntryHash, Head, Timestamp};

use super::*;
use crate::changing::{make_folder, name_of, relocate};

/// A log, folded with its conflicts.
#[derive(Default)]
struct Log {
    tree: Tree,
    conflicts: Conflicts,
    seq: u64,
}

impl Log {
    fn append(&mut self, changes: Vec<Change>) -> Vec<FoldNote> {
        self.seq += 1;
        let seen = Head { seq: self.seq - 1, hash: EntryHash::NONE };
        let commit = Commit { seen, ..commit(self.seq as u8, changes) };
        let entry = Entry { seq: self.seq, previous: EntryHash::NONE, commit };
        let Ok(folded) = fold(&mut self.tree, &entry, &PlainOpener);
        let header = || (format!("device {}", self.seq), Timestamp::default());
        self.conflicts.note(&self.tree, &folded, || Arc::new(Deed::of(&entry, header())));
        folded.notes
    }

    fn file(&mut self, id: u8, base: u64, name: &str, origin: Option<(u8, u64)>) {
        let origin = origin.map(|(id, base)| ConflictOrigin { node: node(id), base });
        self.append(vec![put(node(id), base, &file(id, base, name, origin))]);
    }

    fn listed(&self) -> Vec<(NodeId, Option<NodeId>, u64)> {
        let Ok(mounts) = Mounts::of(&self.tree);
        let (found, has_more) = self.conflicts.list(&self.tree, &mounts, None, 9, |_| true);
        assert_eq!(
            (found.len(), has_more),
            (self.conflicts.count(&self.tree, &mounts, |_| true), false)
        );
        let line =
            |found: &Conflict| (found.copy, found.original, found.deed.as_ref().unwrap().seq);
        found.iter().map(line).collect()
    }

    /// Decides the conflict of node 2 beside node 1, as both are now.
    fn plan(&self, keep: Keep) -> Result<Resolution, ChangeError> {
        let version = |id| self.tree.get(&node(id)).map(|node| node.version);
        let (version, original_version) = (version(2).unwrap(), version(1));
        let decision = Decision { node: node(2), version, original_version, keep };
        self.conflicts.resolve(&self.tree, &decision)
    }

    /// What lies in the root: names, and of whom the content is.
    fn root(&self) -> Vec<(String, u8)> {
        let children = self.tree.children(&NodeId::ROOT).map(|(name, id)| {
            let kind = &self.tree.get(id).unwrap().record.kind;
            let NodeKind::File(content) = kind else { return (name.to_string(), 0) };
            (name.to_string(), content.chunks[0].id.as_bytes()[0])
        });
        children.collect()
    }
}

fn file(id: u8, base: u64, text: &str, conflict: Option<ConflictOrigin>) -> NodeRecord {
    let chunk = ChunkRef { id: ChunkId::from_bytes([10 * id + base as u8; 32]), length: 7 };
    let content = Content { size: 7, chunk_size: 4096, depth: 0, chunks: vec![chunk] };
    let (parent, name) = (NodeId::ROOT, name_of(text).unwrap());
    let (modified, kind) = (Timestamp::default(), NodeKind::File(content));
    NodeRecord { parent, name, mode: 0o644, modified, kind, conflict }
}

/// A file of two versions, and beside it what a device has made of the first one.
fn log() -> Log {
    let mut log = Log::default();
    log.file(1, 0, "a", None);
    log.file(1, 1, "a", None);
    log.file(2, 0, "a of the device", Some((1, 1)));
    log
}

fn names(pairs: &[(&str, u8)]) -> Vec<(String, u8)> {
    pairs.iter().map(|(name, content)| ((*name).to_owned(), *content)).collect()
}

const BEFORE: [(&str, u8); 2] = [("a", 11), ("a of the device", 20)];

#[test]
fn newest_comes_first_with_who_kept_it_and_what_is_decided_is_left_out() {
    let mut log = log();
    assert_eq!(log.listed(), [(node(2), Some(node(1)), 3)]);
    // Two that were made under one name.
    log.file(3, 0, "a", None);
    assert_eq!(log.listed(), [(node(3), Some(node(1)), 4), (node(2), Some(node(1)), 3)]);
    let record = log.tree.get(&node(2)).unwrap().record.clone();
    log.append(vec![put(node(2), 1, &NodeRecord { conflict: None, ..record })]);
    assert_eq!(log.listed(), [(node(3), Some(node(1)), 4)]);
    log.append(delete(&log.tree, node(1), 2).unwrap());
    assert_eq!(log.listed(), [(node(3), None, 4)]);
    let Ok(mounts) = Mounts::of(&log.tree);
    let (rest, _) = log.conflicts.list(&log.tree, &mounts, Some((4, node(3))), 9, |_| true);
    assert_eq!(rest, []);
}

#[test]
fn each_decision_is_carried_out_and_taken_back_with_every_content_still_there() {
    let name = Keep::Both(Some(name_of("b").unwrap()));
    let cases = [
        (Keep::Original, vec![("a", 11)], 1),
        (Keep::Copy, vec![("a", 20)], 1),
        (Keep::Both(None), BEFORE.to_vec(), 2),
        (name, vec![("a", 11), ("b", 20)], 2),
    ];
    for (keep, expected, subject) in cases {
        let mut log = log();
        let Resolution { changes, subject: found } = log.plan(keep.clone()).unwrap();
        assert_eq!(found, node(subject), "{keep:?}");
        let decided = before(&log.tree, &changes);
        assert_eq!(log.append(changes), []);
        assert_eq!((log.root(), log.listed()), (names(&expected), Vec::new()), "{keep:?}");
        log.append(take_back(&log.tree, &decided).unwrap());
        assert_eq!(log.root(), names(&BEFORE), "{keep:?}");
        assert_eq!(log.listed(), [(node(2), Some(node(1)), 5)], "{keep:?}");
        assert!(take_back(&log.tree, &decided).is_err(), "it is taken back already");
    }
}

#[test]
fn what_is_not_as_it_was_seen_is_not_decided_about_and_not_taken_back() {
    let mut log = log();
    let decision = |version, original_version, keep| Decision {
        node: node(2),
        version,
        original_version,
        keep,
    };
    let refused = |log: &Log, decision| log.conflicts.resolve(&log.tree, &decision).unwrap_err();
    let changed = |id| ChangeError::Changed { node: node(id) };
    assert_eq!(refused(&log, decision(2, Some(2), Keep::Original)), changed(2));
    assert_eq!(refused(&log, decision(1, Some(1), Keep::Copy)), changed(1));
    let unseen = ChangeError::Unseen { node: node(2) };
    assert_eq!(refused(&log, decision(1, None, Keep::Copy)), unseen);
    let taken = Keep::Both(Some(name_of("a").unwrap()));
    let error = refused(&log, decision(1, Some(2), taken));
    assert_eq!(error, ChangeError::Taken { name: "a".to_owned() });

    let planned = log.plan(Keep::Copy).unwrap();
    let decided = before(&log.tree, &planned.changes);
    log.append(planned.changes);
    log.file(1, 3, "a", None);
    assert_eq!(take_back(&log.tree, &decided), Err(changed(1)));
    let gone = ChangeError::NoSuch { node: node(2) };
    assert_eq!(refused(&log, decision(2, Some(4), Keep::Original)), gone);
}

#[test]
fn a_folder_takes_no_files_place_and_is_let_go_with_what_is_in_it() {
    let mut log = Log::default();
    log.file(1, 0, "a", None);
    log.append(make_folder(&log.tree, NodeId::ROOT, name_of("x").unwrap(), node(2)).unwrap());
    log.append(make_folder(&log.tree, node(2), name_of("in it").unwrap(), node(3)).unwrap());
    assert_eq!(log.plan(Keep::Original), Err(ChangeError::NoConflict { node: node(2) }));
    let record = log.tree.get(&node(2)).unwrap().record.clone();
    let conflict = Some(ConflictOrigin { node: node(1), base: 0 });
    log.append(vec![put(node(2), 1, &NodeRecord { conflict, ..record })]);
    assert_eq!(log.plan(Keep::Copy), Err(ChangeError::OtherKind { node: node(2) }));
    let planned = log.plan(Keep::Original).unwrap();
    let decided = before(&log.tree, &planned.changes);
    assert_eq!(log.append(planned.changes), []);
    assert_eq!(log.root(), names(&[("a", 10)]));
    log.append(take_back(&log.tree, &decided).unwrap());
    assert_eq!(log.root(), names(&[("a", 10), ("x", 0)]));
    assert!(log.tree.get(&node(3)).is_some_and(TreeNode::is_alive));
    // What was moved to somewhere else is followed.
    log.append(relocate(&log.tree, node(1), node(2), name_of("moved").unwrap()).unwrap());
    assert_eq!(log.listed(), [(node(2), Some(node(1)), 6)]);
}
