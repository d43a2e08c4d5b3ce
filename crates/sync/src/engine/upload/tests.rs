//! What commits say of the packs that they name.

use std::path::Path;
use std::sync::Arc;

use commit_log::serverless::slot_log::SlotCommitLog;
use content::PackWriter;
use content::pack::DeltaStep;
use model::codec::{DELTAS_STEP, FORMAT_VERSION, encode_message};
use model::{ChunkRef, OpId, Random};
use tempfile::TempDir;

use super::*;
use crate::engine::fixture::{Counting, Stopped, engine};
use crate::state::State;

fn noise(number: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Counting::from(number).fill(&mut bytes);
    bytes
}

/// Two devices of a workspace with a log.
async fn devices() -> ([TempDir; 3], [Engine; 2]) {
    let rooms = [0; 3].map(|_| tempfile::tempdir().expect("a folder"));
    let device = |folder: &Path| engine(folder, rooms[0].path(), State::in_memory());
    let mut engines = [device(rooms[1].path()), device(rooms[2].path())];
    let store = storage::open(&format!("file:{}", rooms[0].path().display())).expect("opens");
    let genesis = engines[0].environment.log.genesis().clone();
    SlotCommitLog::create(store, Arc::new(Stopped), genesis).await.expect("made");
    for (number, engine) in (0..).zip(&mut engines) {
        engine.environment.random = Arc::new(Counting::from(1000 * number));
        engine.begin().expect("begun");
    }
    (rooms, engines)
}

/// Packs a chunk, and where there is a base another one that is made from it.
fn pack(engine: &Engine, bytes: &[u8], base: Option<&[u8]>) -> FinishedPack {
    let namer = engine.keys.content().namer();
    let chunk = |bytes: &[u8]| ChunkRef { id: namer.name(bytes), length: bytes.len() as u32 };
    let guard = engine.keys.packs();
    let mut writer = PackWriter::new(content::Transform::default(), &guard).expect("a writer");
    match base {
        None => writer.push(chunk(bytes), bytes).expect("packed"),
        Some(base) => {
            let copied =
                DeltaStep::Copy { base: chunk(base), offset: 0, length: base.len() as u32 };
            let steps = [copied, DeltaStep::Literal(&bytes[base.len()..])];
            writer.push_delta(chunk(bytes), bytes, &steps).expect("packed");
        }
    }
    let pack = writer.finish().expect("packed");
    assert_eq!(pack.index.has_deltas(), base.is_some());
    pack
}

/// Commits what was packed; returns the commit as the log has it.
async fn commit(engine: &mut Engine, packs: Vec<FinishedPack>) -> Commit {
    for pack in packs {
        engine.take_pack(pack).await.expect("taken");
    }
    let packs = engine.take_packs().await.expect("stored");
    let mut op_id = [0; 16];
    engine.environment.random.fill(&mut op_id);
    let commit = engine.commit_of(OpId::from_bytes(op_id), Vec::new(), packs).expect("made");
    engine.state.add_to_outbox(&commit).expect("kept");
    engine.push().await.expect("proposed");
    let last = engine.head().expect("known").seq;
    let entries = engine.environment.log.entries(last - 1, u64::MAX).await.expect("read");
    assert_eq!(entries[0].commit, commit);
    commit
}

#[tokio::test]
async fn commits_and_checkpoints_say_that_packs_have_delta_records() {
    let (_rooms, [mut one, mut other]) = devices().await;
    let (small, large) = (noise(1, 10_000), noise(2, 100_000));
    let edited = |number| [small.clone(), noise(number, 1000)].concat();
    let whole = [&small, &large].map(|bytes| pack(&one, bytes, None));
    let deltas = [3, 4].map(|number| pack(&one, &edited(number), Some(&small)));
    let [first, second] = deltas;

    let before = commit(&mut one, whole.into()).await;
    one.publish_checkpoint_now().await.expect("published");
    let log = one.environment.log.clone();
    let checkpoint = log.checkpoint().await.expect("read").expect("there");
    assert!(!before.has_deltas && !checkpoint.has_deltas);

    // One that travels in the commit, and one that rests in the store because another one is large.
    let inline = commit(&mut one, vec![first]).await;
    assert_eq!((inline.inline_packs.len(), inline.has_deltas), (1, true));
    assert_eq!(encode_message(&inline)[1], FORMAT_VERSION + DELTAS_STEP);
    let more = pack(&one, &noise(5, 100_000), None);
    let named = commit(&mut one, vec![second, more]).await;
    assert_eq!((named.packs.len(), named.has_deltas), (2, true));
    let after = pack(&one, &noise(6, 1000), None);
    assert!(!commit(&mut one, vec![after]).await.has_deltas);
    one.publish_checkpoint_now().await.expect("published");
    assert!(log.checkpoint().await.expect("read").expect("there").has_deltas);

    // Who begins at the checkpoint has seen no such entry, and says so all the same in the next one.
    other.fetch().await.expect("fetched");
    assert_eq!(other.state.oldest_entry().expect("read"), None);
    let file = pack(&other, &noise(7, 1000), None);
    commit(&mut other, vec![file]).await;
    other.publish_checkpoint_now().await.expect("published");
    let checkpoint = log.checkpoint().await.expect("read").expect("there");
    assert_eq!((checkpoint.head.seq, checkpoint.has_deltas), (5, true));

    // What is true of a log is not of another one.
    other.state.clear_remote().expect("forgotten");
    assert!(!other.state.log_has_deltas().expect("read"));
}
