//! What the next run makes of a folder whose last run was killed.

#![expect(clippy::disallowed_methods, reason = "the test plays the killed run")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use model::testing::node;
use model::{Content, NodeState, RelativePath, Timestamp, TreeNode, TreeStore};

use super::*;
use crate::engine::fixture::{engine, look, record};
use crate::scan::Scope;
use crate::state::State;

/// Only then two runs that are killed one after the other do not make a second node of a file: the first one leaves a
/// row that says nothing of its file, and the second one moves that.
#[test]
fn file_that_was_moved_before_its_row_said_which_it_is_keeps_its_identity() {
    let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("old"), "content").unwrap();
    let mut state = State::in_memory();
    let row = SyncedNode {
        node: node(1),
        version: 1,
        record: record("old", 7),
        stat: None,
        pending: None,
    };
    state.set_synced(&row).unwrap();
    let moved = TreeNode { version: 2, state: NodeState::Alive, record: record("new", 9) };
    state.set(node(1), moved).unwrap();

    let mut killed = engine(folder.path(), store.path(), state);
    killed.begin().unwrap();
    look(&mut killed, &Scope::Everything);
    killed.note_moving(&[node(1)]).unwrap();
    std::fs::rename(folder.path().join("old"), folder.path().join("new")).unwrap();

    let mut next = engine(folder.path(), store.path(), killed.into_state());
    next.begin().unwrap();
    look(&mut next, &Scope::Everything);
    let row = next.state().synced(&node(1)).unwrap().unwrap();
    assert_eq!((row.version, row.record.name.as_bytes()), (1, &b"new"[..]));
    let found: Vec<_> = next.overlay.nodes().copied().collect();
    assert_eq!(found, [node(1)]);
    assert!(next.overlay.get(&node(1)).is_some());
}

/// What the killed run was about to put in place as version 2 of node 1.
const PUT: &str = "of others";

/// Something else of the same length.
const OWN: &str = "of a user";

/// A folder, and the state of a device that was killed before it wrote a row for what it had put there.
struct Rig {
    folder: tempfile::TempDir,
    store: tempfile::TempDir,
    state: State,
}

impl Rig {
    fn new() -> Self {
        let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Self { folder, store, state: State::in_memory() }
    }

    fn file_at(&self, name: &str, text: &str) {
        write(&self.folder.path().join(name), text);
    }

    fn stat_at(&self, name: &str) -> Stat {
        let engine = engine(self.folder.path(), self.store.path(), State::in_memory());
        let path = RelativePath::new(name.as_bytes()).unwrap();
        engine.environment.file_system.stat(&path).unwrap().unwrap()
    }

    /// Makes the record of a node that has this text. Others have named its chunk.
    fn record_of(&self, name: &str, text: &str) -> NodeRecord {
        let engine = engine(self.folder.path(), self.store.path(), State::in_memory());
        let mut record = record(name, text.len() as u32);
        let NodeKind::File(Content { chunks, .. }) = &mut record.kind else { unreachable!() };
        chunks[0].id = engine.keys.content().namer().name(text.as_bytes());
        record
    }

    fn row(&mut self, node: NodeId, record: NodeRecord, stat: Stat) {
        let row = SyncedNode { node, version: 1, record, stat: Some(stat), pending: None };
        self.state.set_synced(&row).unwrap();
    }

    /// Lets a run note that it puts version 2 of node 1 in place, changes the folder, and lets the next run look.
    fn run_after(self, put: NodeRecord, change: impl FnOnce(&Path)) -> Engine {
        let Self { folder, store, mut state } = self;
        let remote = TreeNode { version: 2, state: NodeState::Alive, record: put };
        state.set(node(1), remote).unwrap();
        let mut killed = engine(folder.path(), store.path(), state);
        killed.begin().unwrap();
        killed.note_remote(INSTALLING, &[node(1)]).unwrap();
        change(folder.path());
        let mut next = engine(folder.path(), store.path(), killed.into_state());
        next.begin().unwrap();
        look(&mut next, &Scope::Everything);
        next
    }
}

/// Writes a file with the time and mode of the records here.
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::File::open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
}

fn version_of_row(engine: &Engine) -> Option<u64> {
    engine.state().synced(&node(1)).unwrap().map(|row| row.version)
}

/// Returns how many of the nodes in the folder are new here, apart from node 1.
fn count_new(engine: &Engine) -> usize {
    let is_new = |node: &&NodeId| engine.state().synced(node).unwrap().is_none();
    engine.overlay.nodes().filter(|it| **it != node(1)).filter(is_new).count()
}

/// Else it would count as the next version of it everywhere, and what was put there would be in the history only.
#[test]
fn another_file_of_the_same_size_and_time_is_not_what_was_put_there() {
    for (text, version, new) in [(PUT, Some(2), 0), (OWN, None, 1)] {
        let rig = Rig::new();
        let put = rig.record_of("file", PUT);
        let next = rig.run_after(put, |folder| write(&folder.join("file"), text));
        assert_eq!((version_of_row(&next), count_new(&next)), (version, new), "{text}");
    }
}

#[test]
fn another_file_of_the_same_size_and_time_does_not_replace_the_version_before() {
    for (text, version) in [(PUT, 2), (OWN, 1)] {
        let mut rig = Rig::new();
        rig.file_at("file", "older");
        let (old, put) = (rig.record_of("file", "older"), rig.record_of("file", PUT));
        let stat = rig.stat_at("file");
        rig.row(node(1), old, stat);
        let next = rig.run_after(put, |folder| {
            write(&folder.join("other"), text);
            std::fs::rename(folder.join("other"), folder.join("file")).unwrap();
        });
        assert_eq!(version_of_row(&next), Some(version), "{text}");
        // As an edit of that version it is a conflict with the next one.
        let found = next.overlay.get(&node(1)).unwrap();
        assert_eq!(found.local.matter, LocalMatter::Touched);
    }
}

#[test]
fn another_file_of_the_same_size_and_time_stays_one_in_a_directory_that_moved() {
    for (text, version, new) in [(PUT, Some(2), 0), (OWN, None, 1)] {
        let mut rig = Rig::new();
        std::fs::create_dir(rig.folder.path().join("old")).unwrap();
        let stat = rig.stat_at("old");
        let kind = NodeKind::Directory;
        let directory = NodeRecord { kind, mode: stat.mode, ..record("old", 1) };
        rig.row(node(5), directory, stat);
        let put = NodeRecord { parent: node(5), ..rig.record_of("file", PUT) };
        let next = rig.run_after(put, |folder| {
            write(&folder.join("old/file"), text);
            std::fs::rename(folder.join("old"), folder.join("new")).unwrap();
        });
        assert_eq!((version_of_row(&next), count_new(&next)), (version, new), "{text}");
    }
}

#[test]
fn another_link_of_the_same_time_is_not_what_was_put_there() {
    for (target, version, new) in [(PUT, Some(2), 0), (OWN, None, 1)] {
        let rig = Rig::new();
        symlink(target, rig.folder.path().join("link")).unwrap();
        let modified = rig.stat_at("link").modified;
        let kind = NodeKind::Symlink(PUT.into());
        let put = NodeRecord { kind, mode: 0, modified, ..record("link", 1) };
        let next = rig.run_after(put, |_| ());
        assert_eq!((version_of_row(&next), count_new(&next)), (version, new), "{target}");
    }
}

/// What is large has lists of its chunks, which are found without a network.
#[test]
fn large_file_that_was_put_there_is_known_again() {
    let rig = Rig::new();
    let mut text = "0123456789abcdef".repeat(600_000);
    text.push_str(PUT);
    rig.file_at("file", &text);
    let engine = engine(rig.folder.path(), rig.store.path(), State::in_memory());
    let stat = rig.stat_at("file");
    let path = RelativePath::new(b"file").unwrap();
    let file = ToRead { node: node(1), path, stat, chunk_size: Some(16_384) };
    let read = read_matter(engine.environment.file_system.clone(), &engine.keys, file);
    let kind = read.unwrap().unwrap().kind;
    assert!(matches!(&kind, NodeKind::File(content) if content.depth > 0));
    let put = NodeRecord { kind, modified: Timestamp::default(), ..record("file", 1) };
    assert_eq!(version_of_row(&rig.run_after(put, |_| ())), Some(2));
}
