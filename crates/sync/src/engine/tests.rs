//! What the engine makes of a folder that it saw a part of, and of a store that has lost a part.

#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use commit_log::serverless::slot_log::SlotCommitLog;
use model::commit::PackRef;
use model::testing::{node, put_record};
use model::{Commit, NodeKind, OpId, PackId};

use super::*;
use crate::engine::fixture::{Stopped, engine, look, record};
use crate::file_system::native::NativeFileSystem;
use crate::plan::{Trees, split};
use crate::state::{State, SyncedNode};

mod sealed;

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
    let mut state = State::in_memory();
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
    let mut state = State::in_memory();
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

/// As when the store was restored from an older copy between the upload of a pack and the commit that names it.
#[tokio::test]
async fn commit_whose_packs_the_store_has_lost_is_made_anew() {
    let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("file"), "content").unwrap();
    let files = NativeFileSystem::open(folder.path()).unwrap();
    let stat = files.stat(&RelativePath::new(b"file").unwrap()).unwrap();
    let mut engine = engine(folder.path(), store.path(), State::in_memory());
    let genesis = engine.environment.log.genesis().clone();
    let objects = storage::open(&format!("file:{}", store.path().display())).unwrap();
    SlotCommitLog::create(objects, Arc::new(Stopped), genesis).await.unwrap();
    let op_id = OpId::from_bytes([1; 16]);
    let record = record("file", 7);
    let changes = vec![put_record(1, 0, &record)];
    let row = SyncedNode { node: node(1), version: 0, record, stat, pending: Some(op_id) };
    let lost = PackRef { id: PackId::from_bytes([9; 32]), length: 100 };
    let commit = Commit {
        op_id,
        device: engine.options.device,
        device_name: engine.options.device_name.clone(),
        time: model::Timestamp::default(),
        seen: engine.head().unwrap(),
        changes,
        packs: vec![lost],
        inline_packs: Vec::new(),
        has_deltas: false,
        seal: None,
    };
    engine.state.add_to_outbox(&commit).unwrap();
    engine.state.propose_synced(&row).unwrap();

    engine.sync(Scope::Everything).await.unwrap();
    assert!(engine.state.outbox().unwrap().is_empty());
    let entries = engine.environment.log.entries(0, u64::MAX).await.unwrap();
    assert_eq!(entries.len(), 1);
    let commit = &entries[0].commit;
    assert_ne!(commit.op_id, op_id);
    assert_eq!((commit.packs.len(), commit.inline_packs.len()), (0, 1));
    assert_eq!(commit.changes[0].node, node(1));
}
