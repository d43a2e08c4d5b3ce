//! Services that hang while a device syncs.

use std::time::Duration;

use model::pool::Redundancy;
use testkit::clouds::outage::{Outage, outage};
use testkit::clouds::services::{Direction, Service};
use testkit::clouds::workloads::photos_of;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn run(redundancy: Redundancy, hanging: &[&str]) -> Outage {
    let direction = Direction::steady(Duration::from_millis(50), 5_000_000.0);
    let even = |name| Service { name, up: direction, down: direction, connections: 8 };
    let after = (!hanging.is_empty()).then_some(Duration::from_millis(500));
    let folders = [&photos_of(1, 10, 20_000_000), &photos_of(2, 1, 1_000_000)];
    outage(&NAMES.map(even), redundancy, (hanging, after), folders, 1).expect("it syncs")
}

fn assert_bounded(redundancy: Redundancy, hanging: &[&str]) {
    let well = run(redundancy, &[]);
    let ill = run(redundancy, hanging);
    let text = format!("{redundancy}, {hanging:?}: {ill:?} instead of {well:?}");
    assert!(ill.sync <= well.sync + Duration::from_secs(10), "{text}");
    assert!(ill.next <= well.next + Duration::from_secs(1), "{text}");
    assert!(ill.owed > 0, "nobody forgets what the stores lack: {text}");
    assert_eq!(ill.owed_at_last, 0, "the first run after they are back pays: {text}");
}

#[test]
fn two_of_five_that_hang_in_the_middle_of_a_sync_cost_seconds_and_the_next_run_hardly_any() {
    let blocks = Redundancy::Erasure { data: 3, total: 5 };
    for hanging in [&["a", "d"][..], &["b", "c"], &["e"]] {
        assert_bounded(blocks, hanging);
    }
    assert_bounded(Redundancy::Replicas(2), &["b"]);
}
