//! What the next run makes of a folder whose last run was killed.

#![expect(clippy::disallowed_methods, reason = "the test plays the killed run")]

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use commit_log::serverless::slot_log::SlotCommitLog;
use content::Transform;
use model::entry::Mode;
use model::testing::node;
use model::{
    ChunkId, ChunkRef, Clock, Content, DeviceId, Genesis, Name, NodeState, Random, RelativePath,
    Timestamp, TreeNode, TreeStore,
};
use storage::ContentStore;

use super::*;
use crate::engine::{EngineOptions, Environment};
use crate::file_system::FileSystem;
use crate::file_system::native::NativeFileSystem;
use crate::plan::Trees;
use crate::scan::Scope;
use crate::state::State;
use crate::workers::Workers;

#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

impl Random for Stopped {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

fn engine(folder: &Path, store: &Path, state: State) -> Engine {
    let store = storage::open(&format!("file:{}", store.display())).expect("opens");
    let genesis = Genesis {
        name: "notes".to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: [1; 32],
    };
    let environment = Environment {
        file_system: Arc::new(NativeFileSystem::open(folder).expect("opens")),
        log: Arc::new(SlotCommitLog::with_genesis(store.clone(), Arc::new(Stopped), genesis)),
        store: Arc::new(ContentStore::new(store)),
        clock: Arc::new(Stopped),
        random: Arc::new(Stopped),
        workers: Workers::inline(),
    };
    let options = EngineOptions {
        device: DeviceId::from_bytes([2; 16]),
        device_name: "laptop".to_owned(),
        allow_mass_delete: false,
        transform: Transform::Zstd { level: 1 },
    };
    Engine::open(environment, state, options).expect("opens")
}

fn record(name: &str, size: u32) -> NodeRecord {
    let chunk = ChunkRef { id: ChunkId::from_bytes([3; 32]), length: size };
    let content = Content { size: size.into(), chunk_size: 16_384, depth: 0, chunks: vec![chunk] };
    NodeRecord {
        parent: NodeId::ROOT,
        name: Name::new(name).expect("a valid name"),
        mode: 0o644,
        modified: Timestamp::default(),
        kind: NodeKind::File(content),
        conflict: None,
    }
}

/// Only then two runs that are killed one after the other do not make a second node of a file: the first one leaves a
/// row that says nothing of its file, and the second one moves that.
#[test]
fn file_that_was_moved_before_its_row_said_which_it_is_keeps_its_identity() {
    let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("old"), "content").unwrap();
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let mut state = State::from_connection(connection).unwrap();
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
    killed.look(&Scope::Everything).unwrap();
    killed.note_moving(&[node(1)]).unwrap();
    std::fs::rename(folder.path().join("old"), folder.path().join("new")).unwrap();

    let mut next = engine(folder.path(), store.path(), killed.into_state());
    next.begin().unwrap();
    next.look(&Scope::Everything).unwrap();
    let row = next.state().synced(&node(1)).unwrap().unwrap();
    assert_eq!((row.version, row.record.name.as_bytes()), (1, &b"new"[..]));
    let found: Vec<_> = next.overlay.nodes().copied().collect();
    assert_eq!(found, [node(1)]);
    assert!(next.overlay.get(&node(1)).is_some());
}

/// A watch that looks only where something happened must not take the file that got the name of another for a new one
/// beside it.
#[test]
fn file_that_moved_and_went_is_gone_though_only_its_last_directory_is_looked_at() {
    let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |path: &str| folder.path().join(path);
    std::fs::create_dir(at("inner")).unwrap();
    std::fs::write(at("file"), "content").unwrap();
    let files = NativeFileSystem::open(folder.path()).unwrap();
    let stat_of = |path: &str| files.stat(&RelativePath::new(path.as_bytes()).unwrap()).unwrap();
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let mut state = State::from_connection(connection).unwrap();
    let directory = NodeRecord { kind: NodeKind::Directory, ..record("inner", 0) };
    for (number, record, path) in [(1, record("file", 7), "file"), (2, directory, "inner")] {
        let (node, stat) = (node(number), stat_of(path));
        state.set_synced(&SyncedNode { node, version: 1, record, stat, pending: None }).unwrap();
    }
    let mut engine = engine(folder.path(), store.path(), state);
    engine.begin().unwrap();
    engine.look(&Scope::Everything).unwrap();

    std::fs::rename(at("file"), at("inner/moved")).unwrap();
    std::fs::write(at("file"), "another").unwrap();
    engine.is_scanned = true;
    let inner = RelativePath::new(b"inner").unwrap();
    let both = [RelativePath::ROOT, inner.clone()].into();
    engine.look(&Scope::Directories(both)).unwrap();
    assert_eq!(engine.trees().local(&node(1)).unwrap().unwrap().place.parent, node(2));

    std::fs::remove_file(at("inner/moved")).unwrap();
    engine.is_scanned = true;
    engine.look(&Scope::Directories([inner].into())).unwrap();
    let place = split(&record("file", 7)).0;
    let holder = engine.trees().local_holder(&place).unwrap().unwrap();
    let found = engine.trees().local(&node(1)).unwrap();
    assert_eq!(found.is_some_and(|found| found.place == place), holder == node(1));
}
