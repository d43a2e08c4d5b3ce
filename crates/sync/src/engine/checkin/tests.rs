#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use super::*;
use crate::engine::fixture::{Counting, engine, look};
use crate::scan::Scope;
use crate::state::State;

fn changed_at(seconds: i64, nanoseconds: u32) -> Stat {
    Stat {
        kind: FileKind::File,
        size: 5,
        mode: 0o644,
        modified: Timestamp::default(),
        changed: Timestamp { seconds, nanoseconds },
        inode: 7,
    }
}

fn at(seconds: i64, nanoseconds: u32) -> Timestamp {
    Timestamp { seconds, nanoseconds }
}

#[test]
fn file_that_was_read_in_the_tick_of_its_last_change_is_racy() {
    let stat = changed_at(100, 999_000_000);
    assert!(is_racy(&stat, at(100, 999_000_000)));
    assert!(is_racy(&stat, at(101, 190_000_000)));
    // Changed while it was read.
    assert!(is_racy(&stat, at(90, 0)));
    assert!(!is_racy(&stat, at(101, 300_000_000)));
}

#[test]
fn file_system_of_whole_seconds_has_longer_ticks() {
    let stat = changed_at(100, 0);
    assert!(is_racy(&stat, at(101, 900_000_000)));
    assert!(!is_racy(&stat, at(102, 1)));
}

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
