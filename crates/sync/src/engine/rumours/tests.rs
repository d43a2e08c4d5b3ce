//! What a device fetches because one store alone speaks of it, and what it makes of that.

#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use commit_log::serverless::candidate::{Candidate, Context};
use commit_log::serverless::rounds::{Message, ProposerId};
use content::{DeviceKeys, NewWorkspace, keyring::SecretKey};
use model::testing::put;
use model::{Commit, DeviceId, PackId, Timestamp};
use storage::layers::Operation;
use storage::{ContentStore, ObjectKey, PutMode};

use super::*;
use crate::engine::fixture::room::{QUICK, Room, SLOW, folder, memory, noise};
use crate::engine::fixture::{Counting, engine_of, genesis};
use crate::scan::Scope;
use crate::state::State;

/// Leaves a vote for a first entry with these packs at the quickest store, and nowhere else.
async fn lie(room: &Room, packs: Vec<PackRef>) {
    let head = genesis().head();
    let changes = vec![put(200, 0, "planted")];
    let commit = Commit { seen: head, packs, ..model::testing::commit(200, changes) };
    let entry = Entry { seq: 1, previous: head.hash, commit };
    let vote = Message::Vote(Candidate::new(entry, ProposerId(77), false));
    let workspace = genesis().workspace();
    let context = Context { workspace, slot: 1, certifier: None, is_single: false };
    let key = ObjectKey::log_slot(1, 0);
    let put = room.logs[0].put(&key, context.encode(&vote), PutMode::IfAbsent);
    put.await.expect("put");
}

/// Writes a file of some packs, and syncs it.
async fn send(room: &Room, seed: u8, length: usize) {
    let folder = folder();
    std::fs::write(folder.path().join("file"), noise(seed, length)).expect("written");
    let (mut sender, _) = room.device(&folder, 1).await;
    sender.sync(Scope::Everything).await.expect("syncs");
}

/// Tells that nothing is wanted, under way or kept.
fn is_idle(engine: &Engine) -> bool {
    format!("{:?}", engine.fetcher).contains("Ahead { wanted: 0, under_way: 0, arrived: 0,")
}

fn reference(id: [u8; 32]) -> PackRef {
    PackRef { id: PackId::from_bytes(id), length: 4 << 20 }
}

#[tokio::test(start_paused = true)]
async fn packs_are_asked_for_when_the_first_store_has_told_of_them() {
    let room = Room::new();
    send(&room, 1, 9_000_000).await;
    let folder = folder();
    let (mut receiver, packs) = room.device(&folder, 2).await;
    let began = tokio::time::Instant::now();
    receiver.sync(Scope::Everything).await.expect("syncs");
    let took = began.elapsed();
    assert_eq!(std::fs::read(folder.path().join("file")).expect("read"), noise(1, 9_000_000));
    let reads = packs.asked(Operation::Get);
    assert_eq!(reads[0] - began, QUICK, "not when a majority has answered");
    let (count, _) = receiver.state().stored_packs_count().expect("counted");
    assert!(count > 1 && reads.len() as u64 == count, "each of {count} packs once");
    assert!(took < QUICK + SLOW + QUICK, "{took:?}: the end of the log, and no second look");
    assert!(is_idle(&receiver));
}

#[tokio::test(start_paused = true)]
async fn what_one_store_alone_says_is_fetched_within_bounds_and_never_applied() {
    let room = Room::new();
    // A pack that is there, of another workspace for all that the receiver knows, and very many that are not.
    let there = noise(3, 5_000_000);
    let id = crate::chunk_reader::pack_id(&there);
    ContentStore::new(room.packs.clone()).put_pack(id, there.into()).await.expect("put");
    let mut named = vec![PackRef { id, length: 5_000_000 }];
    named.extend([3, 4].map(|byte| PackRef { length: u64::MAX, ..reference([byte; 32]) }));
    named.extend(
        (0..5_000_u32).map(|number| reference(*blake3::hash(&number.to_le_bytes()).as_bytes())),
    );
    lie(&room, named).await;
    let folder = folder();
    let (mut receiver, packs) = room.device(&folder, 2).await;
    let report = receiver.sync(Scope::Everything).await.expect("syncs");
    assert_eq!((report.seq, report.received), (0, 0));
    assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 1, "its own .syncline");
    assert!(!receiver.state().knows_pack(&id).expect("asked"));
    assert!(
        (1..=32).contains(&packs.asked(Operation::Get).len()),
        "{}",
        packs.asked(Operation::Get).len()
    );
    assert!(is_idle(&receiver));
}

#[tokio::test(start_paused = true)]
async fn entry_that_has_lost_its_slot_delays_nothing_and_is_not_applied() {
    let room = Room::new();
    let lies = (0..40).map(|number| reference([number; 32])).collect();
    lie(&room, lies).await;
    // The other two agree on something else, as they do where the first store has failed a device.
    send(&room, 4, 9_000_000).await;
    let folder = folder();
    let (mut receiver, _) = room.device(&folder, 2).await;
    let report = receiver.sync(Scope::Everything).await.expect("syncs");
    assert_eq!(std::fs::read(folder.path().join("file")).expect("read"), noise(4, 9_000_000));
    assert!(!folder.path().join("planted").exists());
    assert_eq!(report.problems, []);
    let nodes = receiver.state().remote_count().expect("counted");
    assert!(nodes <= 2, "the file, and the planted one only if the log has it: {nodes}");
    assert!(is_idle(&receiver));
}

#[tokio::test]
async fn nobody_but_a_device_of_a_sealed_workspace_makes_another_one_fetch() {
    let random = Counting::default();
    let (genesis, unlocked) =
        NewWorkspace::unlocked("letters", Timestamp::default(), &random).expect("made");
    let keys = |device: u8| {
        let seed = SecretKey::from_bytes([device; 32]);
        let id = DeviceId::from_bytes([device; 16]);
        DeviceKeys::enroll(&genesis, &unlocked, id, seed).expect("enrolled")
    };
    let open = |folder: &tempfile::TempDir, number: u8| {
        engine_of(folder.path(), memory(), State::in_memory(), genesis.clone(), Some(keys(number)))
    };
    let (one, other) = (folder(), folder());
    let (writer, reader) = (open(&one, 1), open(&other, 2));
    let head = genesis.head();
    let hearing = Hearing { head, fence: 0, waits_for_checkpoint: false, waiting: Vec::new() };
    let asked = |commit: Commit| {
        let entry = Entry { seq: 1, previous: head.hash, commit };
        reader.packs_of_rumour(&hearing, &entry).expect("looked up").len()
    };
    let plain = Commit {
        device: DeviceId::from_bytes([1; 16]),
        seen: head,
        packs: vec![reference([1; 32])],
        ..model::testing::commit(1, vec![put(1, 0, "file")])
    };
    assert_eq!(asked(plain.clone()), 0, "not sealed");
    let sealed = writer.keys.seal_commit(plain).expect("sealed");
    assert_eq!(asked(sealed.clone()), 1);
    let bent = Commit { packs: vec![reference([2; 32])], ..sealed };
    assert_eq!(asked(bent), 0, "what is signed names another pack");
}

#[test]
fn new_device_waits_for_the_checkpoint_and_passes_over_what_is_older() {
    let entry = |seq: u64| {
        let head = genesis().head();
        Arc::new(Entry { seq, previous: head.hash, commit: model::testing::commit(1, Vec::new()) })
    };
    let new = || Hearing {
        head: genesis().head(),
        fence: 0,
        waits_for_checkpoint: true,
        waiting: Vec::new(),
    };
    let mut hearing = new();
    for seq in 1..100 {
        assert!(hearing.hear(Rumour::Entry(entry(seq))).is_empty());
    }
    assert_eq!(hearing.hear(Rumour::Checkpoint(None)).len(), WAITING_MAX);
    assert_eq!(hearing.hear(Rumour::Entry(entry(100))).len(), 1);
}
