//! What the engine makes of a sealed workspace whose log a store has tampered with.

use std::path::Path;
use std::sync::Arc;

use commit_log::CommitLog;
use content::keyring::SecretKey;
use content::{DeviceKeys, NewWorkspace, Unlocked, WorkspaceKeys};
use model::testing::{commit, put};
use model::{Action, Change, DeviceId, Genesis, Timestamp};

use super::*;
use crate::engine::fixture::{Counting, engine_of};

type Workspace = (Genesis, Unlocked);

fn workspace(random: &Counting) -> Workspace {
    NewWorkspace::unlocked("letters", Timestamp::default(), random).unwrap()
}

fn keys((genesis, unlocked): &Workspace, device: u8) -> DeviceKeys {
    let seed = SecretKey::from_bytes([device; 32]);
    DeviceKeys::enroll(genesis, unlocked, DeviceId::from_bytes([device; 16]), seed).unwrap()
}

/// A device of a workspace with an empty memory.
fn device(folder: &Path, store: &Path, workspace: &Workspace, number: u8) -> Engine {
    let keys = keys(workspace, number);
    let store = storage::open(&format!("file:{}", store.display())).unwrap();
    let mut engine = engine_of(folder, store, State::in_memory(), workspace.0.clone(), Some(keys));
    // Devices that draw alike would give two nodes one id.
    engine.environment.random = Arc::new(Counting::from(u64::from(number) << 32));
    engine
}

#[tokio::test(flavor = "current_thread")]
async fn entries_that_no_member_made_count_for_nothing_and_are_told() {
    let random = Counting::default();
    let (ours, theirs) = (workspace(&random), workspace(&random));
    let (one, other, store) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(one.path().join("file"), "content").unwrap();
    let mut writer = device(one.path(), store.path(), &ours, 1);
    let objects = storage::open(&format!("file:{}", store.path().display())).unwrap();
    let log = SlotCommitLog::create(objects, Arc::new(Stopped), ours.0.clone()).await.unwrap();
    writer.sync(Scope::Everything).await.unwrap();
    let first = log.entries(0, u64::MAX).await.unwrap().remove(0);
    let target = first.commit.changes[0].node;

    // A deletion without a seal, a file with that of another account, and our own commit with another operation.
    let deletion = Change { node: target, base: 1, action: Action::Delete };
    let mut unsealed = commit(7, vec![deletion]);
    unsealed.seen = log.head().await.unwrap();
    log.commit(&unsealed).await.unwrap();
    let stranger =
        WorkspaceKeys::open(&theirs.0, Some(keys(&theirs, 9)), Arc::new(Counting::default()));
    let mut foreign = commit(8, vec![put(9, 0, "planted")]);
    foreign.device = DeviceId::from_bytes([9; 16]);
    foreign.seen = log.head().await.unwrap();
    log.commit(&stranger.unwrap().seal_commit(foreign).unwrap()).await.unwrap();
    let mut replayed = first.commit.clone();
    replayed.op_id = OpId::from_bytes([5; 16]);
    replayed.seen = log.head().await.unwrap();
    log.commit(&replayed).await.unwrap();

    let mut reader = device(other.path(), store.path(), &ours, 2);
    let report = reader.sync(Scope::Everything).await.unwrap();
    let void: Vec<u64> = report.void_entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(void, [2, 3, 4]);
    assert_eq!(std::fs::read(other.path().join("file")).unwrap(), b"content");
    assert!(!other.path().join("planted").exists());
    let report = writer.sync(Scope::Everything).await.unwrap();
    assert_eq!(report.void_entries.len(), 3);
    assert_eq!(std::fs::read(one.path().join("file")).unwrap(), b"content");

    // The void deletion is a version like any other, and the next edit goes on from there.
    std::fs::write(other.path().join("file"), "edited").unwrap();
    reader.sync(Scope::Everything).await.unwrap();
    writer.sync(Scope::Everything).await.unwrap();
    assert_eq!(std::fs::read(one.path().join("file")).unwrap(), b"edited");
}

#[tokio::test(flavor = "current_thread")]
async fn sealed_workspace_opens_with_its_keys_and_no_others() {
    let random = Counting::default();
    let (ours, theirs) = (workspace(&random), workspace(&random));
    let (one, other, store) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let content = "content".repeat(40_000);
    std::fs::write(one.path().join("file"), &content).unwrap();
    let mut writer = device(one.path(), store.path(), &ours, 1);
    let objects = storage::open(&format!("file:{}", store.path().display())).unwrap();
    SlotCommitLog::create(objects, Arc::new(Stopped), ours.0.clone()).await.unwrap();
    writer.sync(Scope::Everything).await.unwrap();
    for wrong in [None, Some(keys(&theirs, 1))] {
        let options = EngineOptions { keys: wrong, ..writer.options.clone() };
        let refused = Engine::open(writer.environment.clone(), State::in_memory(), options);
        assert!(matches!(refused, Err(SyncError::Content(content::ContentError::NoKeys))));
    }
    let mut reader = device(other.path(), store.path(), &ours, 2);
    reader.sync(Scope::Everything).await.unwrap();
    assert_eq!(std::fs::read(other.path().join("file")).unwrap(), content.as_bytes());
}
