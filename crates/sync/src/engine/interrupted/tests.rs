//! What the next run makes of a folder whose last run was killed.

#![expect(clippy::disallowed_methods, reason = "the test plays the killed run")]

use model::testing::node;
use model::{NodeState, TreeNode, TreeStore};

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
