//! Servers that die or hang in the middle of a sync.

use std::time::{Duration, Instant};

use crate::stage::{Kept, SERVERS, Stage, THREE_OF_FIVE, TWO_COPIES, noise_of};

/// As many servers as may be lost are killed in the middle of a sync. Both devices go on without them, a third finds all
/// it needs, and when the servers are back nothing is missing.
fn killed_in_mid_sync(name: &str, kept: &Kept) {
    let mut stage = Stage::set(name, kept);
    let kill = |server: &str| stage.running.kill(server).unwrap();
    let killed = stage.strike_in_mid_sync((6, 4 << 20), kept.stores_lost_max, kill);
    stage.other.sync().ok();
    stage.assert_equal();
    stage.other.write("made by the other", noise_of(77, 1 << 20));
    stage.one.write("a.txt", "edited without them\n");
    stage.settle();
    let third = stage.device("third");
    let left = SERVERS.into_iter().find(|server| !killed.contains(server)).unwrap();
    stage.clone_into(&third, left);
    assert_eq!(third.tree(), stage.one.tree());
    for server in killed {
        stage.running.revive(server).unwrap();
    }
    stage.settle();
    stage.assert_repaired();
}

#[test]
fn one_of_five_servers_is_killed_in_mid_sync_with_two_copies() {
    killed_in_mid_sync("killed-copies", &TWO_COPIES);
}

#[test]
fn two_of_five_servers_are_killed_in_mid_sync_with_three_of_five_blocks() {
    killed_in_mid_sync("killed-blocks", &THREE_OF_FIVE);
}

/// How long servers that hang may hold up a sync and the next one on another device, which does not know of them yet.
const HELD_UP_MAX: Duration = Duration::from_secs(60);

/// As many servers as may be lost stop answering in the middle of a sync, without hanging up. Nobody waits for them long,
/// and when they go on nothing is missing.
fn frozen_in_mid_sync(name: &str, kept: &Kept, files: (u8, usize)) {
    let stage = Stage::set(name, kept);
    let start = Instant::now();
    let freeze = |server: &str| stage.running.freeze(server).unwrap();
    let frozen = stage.strike_in_mid_sync(files, kept.stores_lost_max, freeze);
    let first = start.elapsed();
    stage.other.sync().ok();
    let both = start.elapsed();
    eprintln!("{name}: {frozen:?} held up the sync for {first:.1?}, both for {both:.1?}");
    stage.assert_equal();
    assert!(both < HELD_UP_MAX, "held up by {frozen:?} for {both:?}");
    for server in frozen {
        stage.running.thaw(server).unwrap();
    }
    stage.settle();
    stage.assert_repaired();
}

#[test]
fn one_of_five_servers_hangs_in_mid_sync_with_two_copies() {
    frozen_in_mid_sync("frozen-copies", &TWO_COPIES, (2, 150_000));
}

#[test]
fn two_of_five_servers_hang_in_mid_sync_with_three_of_five_blocks() {
    frozen_in_mid_sync("frozen-blocks", &THREE_OF_FIVE, (6, 4 << 20));
}
