use testkit::batch::run_worlds;
use testkit::coverage::Coverage;
use testkit::{WorldOptions, run};

/// How many worlds are run here. The test run has ten thousand, in a section of its own, by the example `simulate`.
const SEEDS: u64 = 300;

/// Later worlds that once found a defect.
const ONCE_BAD: [u64; 13] =
    [10823, 11490, 11606, 11804, 12707, 12852, 13900, 14170, 14668, 14806, 22992, 39182, 53227];

/// How many worlds are run twice.
const TWICE: u64 = 100;

#[test]
fn no_world_loses_anything() {
    let bad = run_worlds(0..SEEDS, WorldOptions::from_seed, &Coverage::default(), |_| {});
    let bad: Vec<_> = bad.iter().map(ToString::to_string).collect();
    assert_eq!(bad.len(), 0, "{}", bad.join("\n"));
}

#[test]
fn worlds_that_found_a_defect_are_well() {
    for seed in ONCE_BAD {
        let outcome = run(WorldOptions::from_seed(seed), &Coverage::default(), false);
        assert!(outcome.violations.is_empty(), "seed {seed}: {:?}", outcome.violations);
    }
}

/// How many worlds are run with a sealed workspace.
const SEALED: u64 = 100;

#[test]
fn no_sealed_world_loses_anything_or_tells_a_name() {
    let expand = |seed| WorldOptions { sealed: true, ..WorldOptions::from_seed(seed) };
    let bad = run_worlds(0..SEALED, expand, &Coverage::default(), |_| {});
    let bad: Vec<_> = bad.iter().map(ToString::to_string).collect();
    assert_eq!(bad.len(), 0, "{}", bad.join("\n"));
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
