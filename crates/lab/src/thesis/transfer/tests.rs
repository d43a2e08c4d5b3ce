use std::time::Duration;

use super::*;
use crate::dataset::source_tree::SourceTree;

fn times(speed: Speed) -> Times {
    Times::measure(speed, 1, &mut |_| {}).unwrap()
}

fn stored(folder: &std::path::Path) -> Stored {
    let dataset = SourceTree { seed: 5, versions: 4, files: 30 }.write("D", folder).unwrap();
    let rows =
        |unit: Unit| pass::measure(unit.configuration(), Variant::Correct, &dataset).unwrap();
    Stored {
        dataset: "D".into(),
        units: Unit::ALL.map(rows),
        ours: ours::measure(&dataset).unwrap(),
    }
}

#[test]
fn a_file_takes_what_lies_between_the_times_of_the_sizes_around_it() {
    let mut times = Times { seconds: [[[0.0; 8]; 2]; 3] };
    times.seconds[1][0] = SIZES_KIB.map(|kib| 0.1 + kib as f64 / 75.0);
    for kib in [0.5, 4.0, 20.0, 250.0, 800.0] {
        let seconds = times.of(1, Way::Up, kib * 1024.0);
        assert!((seconds - 0.1 - kib / 75.0).abs() < 1e-9, "{kib}: {seconds}");
    }
    assert_eq!(times.of(1, Way::Down, 4096.0), 0.0);
    // Ten files, one after the other.
    let of_ten = times.of_version(1, Way::Up, (4096.0, 40960.0));
    assert!((of_ten - 10.0 * times.of(1, Way::Up, 4096.0)).abs() < 1e-9);
    assert_eq!(times.of_version(1, Way::Up, (0.0, 0.0)), 0.0);
}

#[test]
fn small_files_wait_for_answers_and_large_ones_for_the_line() {
    let delay = Duration::from_millis(3);
    let times = times(Speed { up: 40e6, down: 80e6, delay });
    for (protocol, turns) in [(0, 4.0), (1, 2.0), (2, 2.0)] {
        let small = times.of(protocol, Way::Up, 1024.0);
        // So often there and back, whatever the machine has to do besides.
        assert!(small >= turns * 0.006, "{protocol}: {small}");
    }
    let [small, large] = [4.0, 250.0].map(|kib| kib / times.of(0, Way::Up, kib * 1024.0));
    assert!(large > 5.0 * small, "{small} and {large}");
}

#[test]
fn a_run_says_what_each_unit_costs_beside_what_the_thesis_printed() {
    let room = tempfile::tempdir().unwrap();
    let all = [stored(room.path())];
    let times = times(Speed { up: 1e9, down: 1e9, delay: Duration::ZERO });
    let (up, down) = (report::upload(&all, &times), report::download(&all, &times));
    let (up, down) = (up.markdown(), down.markdown());
    for printed in ["(21.2)", "(60.5)", "(54.1)", "| D | ours |"] {
        assert!(up.contains(printed), "{printed} is not in {up}");
    }
    for printed in ["(10620)", "(1440)", "(421)"] {
        assert!(down.contains(printed), "{printed} is not in {down}");
    }
    let csv = csv(&all, &times, Way::Up);
    assert_eq!(csv.lines().count(), 1 + 4 * 5 * 3);
    // All chunks of a version are as many bytes as its multichunks, whatever they are sent as.
    let [sent, fetched] = [all[0].sent(0)[0], all[0].fetched(3)[0]];
    assert_eq!(sent.1, all[0].units[0][0].multichunks.bytes as f64);
    assert!(fetched.1 >= all[0].units[3][0].new_chunks.bytes as f64);
}
