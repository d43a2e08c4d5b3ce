use model::fold::{FoldNote, PlainOpener, fold};
use model::testing::{commit, node};
use model::{
    Action, ChunkId, ChunkRef, Content, Entry, EntryHash, Fence, Head, NodeKind, Timestamp,
};

use super::*;
use crate::activity::Before;
use crate::changing::{delete, make_folder, name_of};

/// A log, folded with its trash.
#[derive(Default)]
struct Log {
    tree: Tree,
    trash: Trash,
    versions: Versions,
    seq: u64,
}

impl Log {
    fn append(&mut self, changes: Vec<Change>) -> Vec<FoldNote> {
        self.seq += 1;
        let seen = Head { seq: self.seq - 1, hash: EntryHash::NONE };
        let commit = model::Commit { seen, ..commit(self.seq as u8, changes) };
        let entry = Entry { seq: self.seq, previous: EntryHash::NONE, commit };
        let before = Before::of(&self.tree, &entry);
        let Ok(folded) = fold(&mut self.tree, &entry, &PlainOpener);
        self.versions.note(&self.tree, &entry, &folded, &before);
        let time = Timestamp { seconds: self.seq as i64, nanoseconds: 0 };
        let deed = || Arc::new(Deed::of(&entry, (format!("device {}", self.seq), time)));
        self.trash.note(&self.tree, &folded, deed);
        folded.notes
    }

    fn folder(&mut self, id: u8, parent: NodeId, text: &str) {
        let changes = make_folder(&self.tree, parent, name_of(text).unwrap(), node(id)).unwrap();
        self.append(changes);
    }

    fn file(&mut self, id: u8, base: u64, parent: NodeId, text: &str) {
        let chunk = ChunkRef { id: ChunkId::from_bytes([id; 32]), length: 7 };
        let content = Content { size: 7, chunk_size: 4096, depth: 0, chunks: vec![chunk] };
        let record = NodeRecord {
            parent,
            name: name_of(text).unwrap(),
            mode: 0o644,
            modified: Timestamp { seconds: base as i64, nanoseconds: 0 },
            kind: NodeKind::File(content),
            conflict: None,
        };
        self.append(vec![put(node(id), base, &record)]);
    }

    fn delete(&mut self, id: u8) {
        let version = self.tree.get(&node(id)).unwrap().version;
        let changes = delete(&self.tree, node(id), version).unwrap();
        self.append(changes);
    }

    fn clean_up(&mut self, id: u8, versions: &[u64]) {
        let dropped = model::fence::DroppedVersions { node: node(id), versions: versions.to_vec() };
        let fence = Fence { condemned: Vec::new(), dropped: vec![dropped] };
        let Ok(base) = model::Versions::version(&self.tree, &NodeId::FENCE);
        let action = Action::Put(model::codec::encode_message(&fence));
        self.append(vec![Change { node: NodeId::FENCE, base, action }]);
    }

    /// The paths of the trash, with the entries that deleted them.
    fn listed(&self) -> Vec<(String, u64)> {
        let path = |node: &DeletedNode| {
            let names = node.folders.iter().chain([&node.record.name]);
            names.map(Name::to_string).collect::<Vec<_>>().join("/")
        };
        let listed = self.trash.list(&self.tree, &self.versions);
        listed.iter().map(|node| (path(node), node.deletion.seq)).collect()
    }

    fn revive(&self, ids: &[u8]) -> Result<Revival, ChangeError> {
        let nodes: Vec<_> = ids.iter().map(|id| node(*id)).collect();
        self.trash.revive(&self.tree, &self.versions, &nodes)
    }
}

fn owned(paths: &[(&str, u64)]) -> Vec<(String, u64)> {
    paths.iter().map(|(path, seq)| ((*path).to_owned(), *seq)).collect()
}

/// `one/two/a` and `one/b`, and `c` beside them; `b` went first, then `c`, then the rest.
fn log() -> Log {
    let mut log = Log::default();
    log.folder(1, NodeId::ROOT, "one");
    log.folder(2, node(1), "two");
    log.file(3, 0, node(2), "a");
    log.file(4, 0, node(1), "b");
    log.file(5, 0, NodeId::ROOT, "c");
    log.delete(4);
    log.delete(5);
    log.delete(1);
    log
}

#[test]
fn what_was_deleted_last_comes_first_with_who_did_it() {
    let log = log();
    let expected = [("one", 8), ("one/two", 8), ("one/two/a", 8), ("c", 7), ("one/b", 6)];
    assert_eq!(log.listed(), owned(&expected));
    let listed = log.trash.list(&log.tree, &log.versions);
    let time = Timestamp { seconds: 7, nanoseconds: 0 };
    let device = listed[3].deletion.device;
    let deletion = Deed { seq: 7, time, device, device_name: "device 7".to_owned() };
    assert_eq!(*listed[3].deletion, deletion);
    let in_deleted: Vec<_> = listed.iter().map(|node| node.is_in_deleted).collect();
    assert_eq!(in_deleted, [false, true, true, false, true]);
    assert_eq!(listed[3].version, 2);
}

#[test]
fn folder_comes_back_with_what_was_deleted_with_it_and_nothing_else() {
    let mut log = log();
    let revival = log.revive(&[1]).unwrap();
    let nodes: Vec<_> = revival.changes.iter().map(|change| change.node).collect();
    assert_eq!(nodes, [node(1), node(2), node(3)], "folders stand before what is in them");
    assert_eq!(log.append(revival.changes), []);
    assert_eq!(log.listed(), owned(&[("c", 7), ("one/b", 6)]));
    assert_eq!(log.revive(&[1]), Err(ChangeError::NoSuch { node: node(1) }));
    let rest = log.revive(&[4, 5]).unwrap().changes;
    assert_eq!(log.append(rest), []);
    assert_eq!(log.listed(), []);
    assert_eq!(log.revive(&[]), Ok(Revival::default()));
}

#[test]
fn folders_above_come_back_with_a_file_and_a_taken_name_is_told() {
    let mut log = log();
    log.file(9, 0, NodeId::ROOT, "c");
    let changes = log.revive(&[3, 5]).unwrap().changes;
    let notes = log.append(changes);
    assert!(notes.contains(&FoldNote::Revived { node: node(1) }), "{notes:?}");
    assert!(notes.contains(&FoldNote::NameTaken { node: node(5), holder: node(9) }), "{notes:?}");
    assert_eq!(log.listed(), owned(&[("one/b", 6)]));
    assert!(log.tree.get(&node(3)).unwrap().is_alive());
}

#[test]
fn what_was_changed_in_between_is_not_put_back_over_it() {
    let mut log = log();
    let stale = log.revive(&[5]).unwrap().changes;
    log.file(5, 2, NodeId::ROOT, "c");
    assert_eq!(log.listed().len(), 4, "somebody else has brought it back");
    log.append(stale);
    assert_eq!(log.tree.get(&node(5)).unwrap().version, 3);
    log.delete(5);
    assert_eq!(log.listed()[0], ("c".to_owned(), 11), "it is in the trash anew");
}

#[test]
fn what_a_cleanup_has_removed_is_named_and_stays() {
    let mut log = Log::default();
    log.folder(1, NodeId::ROOT, "one");
    log.file(2, 0, node(1), "a");
    log.file(2, 1, node(1), "a");
    log.file(3, 0, node(1), "b");
    log.delete(1);
    log.clean_up(2, &[1]);
    let dropped = |log: &Log| {
        let listed = log.trash.list(&log.tree, &log.versions);
        listed.iter().filter(|node| node.is_dropped).map(|node| node.id).collect::<Vec<_>>()
    };
    assert_eq!(dropped(&log), [], "only an older version went");
    log.clean_up(2, &[2]);
    assert_eq!(dropped(&log), [node(2)]);
    assert_eq!(log.revive(&[2]), Err(ChangeError::Dropped { node: node(2) }));
    let revival = log.revive(&[1]).unwrap();
    assert_eq!((revival.changes.len(), revival.dropped), (2, 1));
    log.append(revival.changes);
    assert_eq!(log.listed(), owned(&[("one/a", 5)]));
    // Who has its content still puts it anew.
    log.file(2, 3, node(1), "a");
    log.delete(2);
    assert_eq!(dropped(&log), []);
}
