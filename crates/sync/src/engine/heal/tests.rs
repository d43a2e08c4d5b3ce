//! What becomes of the merge base when the log was another one.

use model::testing::node;
use model::{NodeState, TreeNode};

use super::*;
use crate::engine::fixture::{engine, record};
use crate::file_system::FileSystem;
use crate::file_system::native::NativeFileSystem;
use crate::state::State;

/// A device that had not yet received what the log had, and still has, must not take its old file for an edit of that.
#[test]
fn device_that_was_behind_stays_behind() {
    let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let stat = NativeFileSystem::open(folder.path()).unwrap().stat(&model::RelativePath::ROOT);
    let stat = stat.unwrap();
    let mut engine = engine(folder.path(), store.path(), State::in_memory());
    let row =
        SyncedNode { node: node(1), version: 2, record: record("file", 7), stat, pending: None };
    for (remote_version, state) in
        [(3, NodeState::Alive), (3, NodeState::Deleted), (1, NodeState::Alive)]
    {
        let remote = TreeNode { version: remote_version, state, record: record("file", 9) };
        engine.state.set(node(1), remote).unwrap();
        engine.rebase(row.clone(), &BTreeSet::new()).unwrap();
        let is_as_before = engine.state.synced(&node(1)).unwrap().unwrap() == row;
        assert_eq!(is_as_before, remote_version > row.version);
    }
}
