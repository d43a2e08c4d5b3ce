use model::commit::PackRef;
use model::testing::node;
use model::{ChunkId, Name, NodeId, NodeKind, NodeRecord, OpId, PackId, Timestamp};

use super::{SyncedNode, *};
use crate::prepare::KnownChunks;

fn row(number: u8, name: &str, version: u64) -> SyncedNode {
    let record = NodeRecord {
        parent: NodeId::ROOT,
        name: Name::new(name).expect("a valid name"),
        mode: 0o644,
        modified: Timestamp { seconds: -3, nanoseconds: 999_999_999 },
        kind: NodeKind::Symlink(b"target".to_vec()),
        conflict: None,
    };
    SyncedNode { node: node(number), version, record, stat: None, pending: None }
}

fn proposed(number: u8, name: &str, version: u64, op: u8) -> SyncedNode {
    SyncedNode { pending: Some(OpId::from_bytes([op; 16])), ..row(number, name, version) }
}

#[test]
fn database_of_a_newer_version_is_refused_and_not_touched() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("state.sqlite");
    let state = State::open(&file).expect("a state");
    state.connection.execute_batch("PRAGMA user_version = 99").expect("runs");
    drop(state);
    assert!(matches!(State::open(&file), Err(SyncError::NewerDatabase { version: 99, .. })));
    let connection = Connection::open(&file).expect("opens");
    let version: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("a version");
    assert_eq!(version, 99);
}

#[test]
fn renamed_row_leaves_nothing_under_its_old_name() {
    let mut state = State::in_memory();
    state.set_synced(&row(1, "old", 1)).expect("set");
    state.set_synced(&row(1, "new", 2)).expect("set");
    assert_eq!(state.synced_count().expect("a count"), 1);
    let old = state.synced_at(&NodeId::ROOT, &Name::new("old").expect("valid")).expect("reads");
    assert_eq!(old, []);
}

#[test]
fn rejected_proposal_brings_the_row_before_back() {
    let mut state = State::in_memory();
    let op_id = OpId::from_bytes([7; 16]);
    state.set_synced(&row(1, "a", 3)).expect("set");
    state.propose_synced(&proposed(1, "b", 3, 6)).expect("set");
    state.propose_synced(&proposed(1, "c", 3, 7)).expect("set");
    assert_eq!(
        state.reject_pending(&node(1), &op_id).expect("rejects"),
        Some(proposed(1, "c", 3, 7))
    );
    assert_eq!(state.synced(&node(1)).expect("reads"), Some(row(1, "a", 3)));
}

#[test]
fn rejected_proposal_of_a_new_node_keeps_its_id() {
    let mut state = State::in_memory();
    state.propose_synced(&proposed(1, "a", 0, 7)).expect("set");
    state.reject_pending(&node(1), &OpId::from_bytes([7; 16])).expect("rejects");
    assert_eq!(
        state.synced(&node(1)).expect("reads").map(|row| (row.version, row.stat)),
        Some((0, None))
    );
}

#[test]
fn answer_to_an_older_proposal_changes_nothing() {
    let mut state = State::in_memory();
    state.propose_synced(&proposed(1, "a", 0, 8)).expect("set");
    let older = OpId::from_bytes([7; 16]);
    assert!(!state.accept_pending(&node(1), &older, 5).expect("accepts"));
    assert_eq!(state.reject_pending(&node(1), &older).expect("rejects"), None);
    assert_eq!(state.synced(&node(1)).expect("reads"), Some(proposed(1, "a", 0, 8)));
}

#[test]
fn error_inside_nested_transactions_undoes_all_of_them() {
    let mut state = State::in_memory();
    let failed = state.transaction(|state| {
        state.set_fact("outer", b"1")?;
        state.transaction(|state| {
            state.set_fact("inner", b"1")?;
            Err::<(), _>(SyncError::NotSettling(1))
        })
    });
    assert!(failed.is_err());
    assert_eq!(state.fact("outer").expect("reads"), None);
    state.transaction(|state| state.set_fact("later", b"1")).expect("the state is usable");
    assert!(state.fact("later").expect("reads").is_some());
}

#[test]
fn other_connection_finds_chunks_of_known_packs() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut state = State::open(&folder.path().join("state.sqlite")).expect("a state");
    let pack = PackRef { id: PackId::from_bytes([1; 32]), length: 100 };
    let chunk = ChunkId::from_bytes([2; 32]);
    state.add_pack(&pack, None).expect("adds");
    assert_eq!(state.unindexed_packs().expect("reads").len(), 1);
    state.add_chunks(&pack.id, [(chunk, 3)]).expect("adds");
    assert!(state.unindexed_packs().expect("reads").is_empty());
    let reader = parking_lot::Mutex::new(state.chunk_reader().expect("opens").expect("a file"));
    assert!(reader.contains(&chunk).expect("reads"));
    assert!(!reader.contains(&ChunkId::from_bytes([3; 32])).expect("reads"));
}
