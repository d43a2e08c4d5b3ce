//! Cleanups that nobody asks for.

use parking_lot::Mutex;

use super::*;
use crate::engine::{AutomaticCleanup, Event, Worth};

const DAY_S: i64 = 86_400;

/// Worth it for any byte.
fn eager() -> AutomaticCleanup {
    let worth = Worth { length: 1, percent: 0 };
    AutomaticCleanup { worth, ..AutomaticCleanup::default() }
}

impl TestDevice {
    fn is_due(&mut self) -> bool {
        self.engine.is_cleanup_due(&eager()).expect("looks")
    }

    fn clean_up_by_itself(&mut self) -> CleanupReport {
        now(self.engine.clean_up_by_itself(&eager())).expect("cleans up")
    }

    /// Writes another version, and sends it.
    fn touch(&mut self, name: &str, seed: u8) {
        self.write(name, &noise(seed, LENGTH + usize::from(seed)));
        self.sync();
    }
}

#[test]
fn cleanup_is_due_when_a_week_has_passed_in_the_log() {
    let mut room = Room::new();
    let mut one = room.device();
    assert!(!one.is_due(), "there is nothing yet");
    one.touch("report", 1);
    assert!(!one.is_due(), "whoever comes new waits");
    room.wait(6 * DAY_S);
    one.touch("report", 2);
    assert!(!one.is_due());
    room.wait(2 * DAY_S);
    assert!(!one.is_due(), "in the log nothing has happened since");
    one.touch("report", 3);
    assert!(one.is_due());
    // All versions are young: there is nothing to do, and no reason to look again.
    let report = one.clean_up_by_itself();
    assert_eq!((report.dropped_versions, report.fence), (0, None));
    assert!(!one.is_due());
}

#[test]
fn whoever_hears_of_a_cleanup_waits_as_if_it_had_cleaned_up() {
    let mut room = Room::new();
    let (mut one, mut other) = (room.device(), room.device());
    one.touch("report", 1);
    other.touch("photo", 9);
    assert!(!one.is_due() && !other.is_due());
    room.wait(40 * DAY_S);
    one.touch("report", 2);
    other.touch("photo", 8);
    one.sync();
    assert!(one.is_due() && other.is_due());
    one.policy(&VersionPolicy::default().to_string());
    let report = one.clean_up_by_itself();
    assert_eq!(report.dropped_versions, 2, "{report:?}");
    assert!(report.fence.is_some() && report.packs > 0);
    other.sync();
    assert!(!other.is_due());
    let found = room.found(&["report", "photo"]);
    assert_eq!(found, [Some(noise(2, LENGTH + 2)), Some(noise(8, LENGTH + 8))]);
}

#[test]
fn every_version_is_kept_until_somebody_says_which() {
    let mut room = Room::new();
    let mut one = room.device();
    let first = {
        one.touch("report", 1);
        one.sync().seq
    };
    assert!(!one.is_due());
    room.wait(400 * DAY_S);
    one.touch("report", 2);
    room.wait(400 * DAY_S);
    one.touch("report", 3);
    assert!(one.is_due() && one.clean_up_by_itself().dropped_versions == 0);
    assert_eq!(one.version("report", first).expect("kept"), noise(1, LENGTH + 1));
    one.policy(&VersionPolicy::default().to_string());
    assert_eq!(one.clean_up_by_itself().dropped_versions, 2);
}

#[test]
fn one_clock_that_is_ahead_makes_nothing_old() {
    let mut room = Room::new();
    let (mut one, mut other) = (room.device(), room.device());
    let ahead = Arc::new(Wound(AtomicI64::new(room.clock.0.load(Ordering::Relaxed))));
    ahead.0.fetch_add(100 * DAY_S, Ordering::Relaxed);
    other.engine.environment.clock = ahead;
    let first = {
        one.touch("report", 1);
        one.sync().seq
    };
    room.wait(60);
    one.touch("report", 2);
    other.touch("photo", 9);
    one.sync();
    one.policy(&VersionPolicy::default().to_string());
    other.sync();
    for device in [&mut one, &mut other] {
        assert_eq!(device.clean_up_by_itself().dropped_versions, 0);
        assert_eq!(device.version("report", first).expect("kept"), noise(1, LENGTH + 1));
    }
    // Whoever asks is believed to know what time it is.
    assert_eq!(other.cleanup().dropped_versions, 1);
}

#[test]
fn what_is_not_worth_it_is_left_alone() {
    let mut room = Room::new();
    let mut one = room.device();
    for seed in 1..6 {
        one.touch("report", seed);
    }
    one.policy("deleted:0s");
    let (packs, head) = (room.packs(), one.engine.head().expect("a head"));
    let demanding = |length, percent| AutomaticCleanup {
        worth: Worth { length, percent },
        ..AutomaticCleanup::default()
    };
    for demanding in [demanding(1 << 30, 0), demanding(1, 95)] {
        let report = now(one.engine.clean_up_by_itself(&demanding)).expect("looks");
        assert_eq!((report.dropped_versions, report.fence), (0, None));
    }
    assert_eq!((room.packs(), one.engine.head().expect("a head")), (packs, head));
    assert_eq!(one.clean_up_by_itself().dropped_versions, 4);
    assert_eq!(room.packs(), 1);
}

#[test]
fn sync_of_a_watch_tells_once_in_a_while_that_a_cleanup_is_due() {
    let mut room = Room::new();
    let mut one = room.device();
    let told = Arc::new(Mutex::new(0));
    let count = told.clone();
    one.engine.observe(Arc::new(move |event| {
        *count.lock() += u64::from(event == Event::CleanupDue);
    }));
    one.engine.look_out_for_cleanups(eager(), Duration::ZERO);
    one.touch("report", 1);
    room.wait(3600);
    one.touch("report", 2);
    assert_eq!(*told.lock(), 0);
    room.wait(8 * DAY_S);
    for seed in 3..6 {
        one.touch("report", seed);
    }
    assert_eq!(*told.lock(), 1, "only once an hour");
    room.wait(3600);
    one.touch("report", 6);
    assert_eq!(*told.lock(), 2);
}
