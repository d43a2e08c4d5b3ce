//! What the engine knows after scans that looked at a part of the folder only.

#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use model::NodeKind;
use model::testing::node;

use super::*;
use crate::engine::fixture::{engine, look, record};
use crate::file_system::native::NativeFileSystem;
use crate::plan::{Trees, split};
use crate::state::SyncedNode;

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
    look(&mut engine, &Scope::Everything);

    std::fs::rename(at("file"), at("inner/moved")).unwrap();
    std::fs::write(at("file"), "another").unwrap();
    engine.is_scanned = true;
    let inner = RelativePath::new(b"inner").unwrap();
    let both = [RelativePath::ROOT, inner.clone()].into();
    look(&mut engine, &Scope::Directories(both));
    assert_eq!(engine.trees().local(&node(1)).unwrap().unwrap().place.parent, node(2));

    std::fs::remove_file(at("inner/moved")).unwrap();
    engine.is_scanned = true;
    look(&mut engine, &Scope::Directories([inner].into()));
    let place = split(&record("file", 7)).0;
    let holder = engine.trees().local_holder(&place).unwrap().unwrap();
    let found = engine.trees().local(&node(1)).unwrap();
    assert_eq!(found.is_some_and(|found| found.place == place), holder == node(1));
}

/// What was read so soon that it is read again is known of, and its directory goes before that.
#[test]
fn file_of_a_directory_that_became_a_file_is_gone_with_it() {
    let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |path: &str| folder.path().join(path);
    std::fs::create_dir(at("outer")).unwrap();
    std::fs::write(at("outer/inner"), "content").unwrap();
    let files = NativeFileSystem::open(folder.path()).unwrap();
    let stat_of = |path: &str| files.stat(&RelativePath::new(path.as_bytes()).unwrap()).unwrap();
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let mut state = State::from_connection(connection).unwrap();
    let outer = NodeRecord { kind: NodeKind::Directory, ..record("outer", 0) };
    let inner = NodeRecord { parent: node(1), ..record("inner", 7) };
    let racy = stat_of("outer/inner").map(crate::file_system::Stat::unproven);
    for (number, record, stat) in [(1, outer, stat_of("outer")), (2, inner, racy)] {
        let node = node(number);
        state.set_synced(&SyncedNode { node, version: 1, record, stat, pending: None }).unwrap();
    }
    let mut engine = engine(folder.path(), store.path(), state);
    engine.begin().unwrap();
    look(&mut engine, &Scope::Everything);
    assert!(engine.overlay.get(&node(2)).is_some());

    std::fs::remove_dir_all(at("outer")).unwrap();
    std::fs::write(at("outer"), "a file").unwrap();
    engine.is_scanned = true;
    look(&mut engine, &Scope::Directories([RelativePath::ROOT].into()));
    let is_absent = |node| engine.overlay.contains(&node) && engine.overlay.get(&node).is_none();
    assert!(is_absent(node(1)) && is_absent(node(2)));
}
