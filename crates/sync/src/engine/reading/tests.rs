use super::*;

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
