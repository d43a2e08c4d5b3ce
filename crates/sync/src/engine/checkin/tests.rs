#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use std::sync::Arc;

use crate::engine::fixture::{Counting, engine, look};
use crate::scan::Scope;
use crate::state::State;

#[tokio::test]
async fn commit_that_is_recorded_off_line_names_its_own_packs_only() {
    let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut engine = engine(folder.path(), store.path(), State::in_memory());
    engine.environment.random = Arc::new(Counting::default());
    engine.begin().unwrap();
    engine.set_offline(true);
    // As where there is more to read than goes into one commit; one pack is large and the other one travels along.
    for (name, length) in [("large", 100_000), ("small", 1000)] {
        let mut bytes = vec![0; length];
        engine.environment.random.fill(&mut bytes);
        std::fs::write(folder.path().join(name), bytes).unwrap();
        look(&mut engine, &Scope::Everything);
        engine.read_round().await.unwrap();
        assert!(engine.checkin_round(None).await.unwrap());
    }
    let outbox = engine.state.outbox().unwrap();
    let packs: Vec<_> =
        outbox.iter().map(|commit| (commit.packs.len(), commit.inline_packs.len())).collect();
    assert_eq!(packs, [(1, 0), (0, 1)]);
}
