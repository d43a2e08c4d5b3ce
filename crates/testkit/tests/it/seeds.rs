use std::sync::atomic::{AtomicU64, Ordering};

use testkit::coverage::{Coverage, Fault};
use testkit::{WorldOptions, run};

/// How many worlds the test run looks at. Longer runs are for the example `simulate`; what they still find stands in
/// `docs/known-defects.md`.
const SEEDS: u64 = 500;

/// What no world can do yet, and what so few worlds are not sure to meet.
const NOT_CLAIMED: [Fault; 6] = [
    Fault::EventLost,
    Fault::EventTwice,
    Fault::DeviceCopied,
    Fault::MoveVoid,
    Fault::RescanAfterHint,
    Fault::StoreNotDurable,
];

/// How many worlds are run twice.
const TWICE: u64 = 100;

/// Runs worlds on all processors and returns what went wrong, each with its seed.
fn violations_of(seeds: u64, coverage: &Coverage) -> Vec<String> {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let work = || {
            let mut found = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds {
                    return found;
                }
                let options = WorldOptions::from_seed(seed);
                let text = format!("{options:?}");
                for violation in run(options, coverage, false).violations {
                    found.push(format!("seed {seed}: {violation}\n  {text}"));
                }
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join =
            |worker: std::thread::ScopedJoinHandle<'_, _>| worker.join().expect("a world panicked");
        workers.into_iter().flat_map(join).collect()
    })
}

#[test]
fn no_world_of_five_hundred_loses_anything() {
    let coverage = Coverage::default();
    let violations = violations_of(SEEDS, &coverage);
    println!("{SEEDS} worlds\n{coverage}");
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    // A rig that never had the accident that it claims to survive has shown nothing.
    let missing = coverage.missing().into_iter().filter(|fault| !NOT_CLAIMED.contains(fault));
    assert_eq!(missing.collect::<Vec<_>>(), []);
}

#[test]
fn same_seed_gives_the_same_trace() {
    let coverage = Coverage::default();
    for seed in 0..TWICE {
        let one = run(WorldOptions::from_seed(seed), &coverage, false);
        let other = run(WorldOptions::from_seed(seed), &coverage, false);
        assert_eq!(one, other, "seed {seed}");
    }
}
