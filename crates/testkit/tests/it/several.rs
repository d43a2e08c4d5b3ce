//! Worlds over several stores, and defects that must be found in them.

use model::pool::Redundancy;
use testkit::batch::run_worlds;
use testkit::coverage::Coverage;
use testkit::options::Coordinator;
use testkit::several::{SeveralDefect, SeveralOptions};
use testkit::{WorldOptions, run};

use super::mutants::cleaning;

/// How many worlds are run here. The test run has more, by the example `simulate`.
const SEEDS: u64 = 60;

/// How many worlds are run twice.
const TWICE: u64 = 10;

#[test]
fn no_world_over_several_stores_loses_anything() {
    let bad = run_worlds(0..SEEDS, WorldOptions::over_stores, &Coverage::default(), |_| {});
    let bad: Vec<_> = bad.iter().map(ToString::to_string).collect();
    assert_eq!(bad.len(), 0, "{}", bad.join("\n"));
}

#[test]
fn same_seed_over_several_stores_gives_the_same_trace() {
    let coverage = Coverage::default();
    for seed in 0..TWICE {
        let one = run(WorldOptions::over_stores(seed), &coverage, false);
        let other = run(WorldOptions::over_stores(seed), &coverage, false);
        assert_eq!(one, other, "seed {seed}");
    }
}

/// Says what is found in worlds that have a defect.
fn found_with(defect: SeveralDefect) -> String {
    let expand = |seed| {
        let options = WorldOptions::over_stores(seed);
        let several = SeveralOptions { defect: Some(defect), ..SeveralOptions::draw(seed) };
        WorldOptions { coordinator: Coordinator::Group(several), ..options }
    };
    let bad = run_worlds(0..SEEDS, expand, &Coverage::default(), |_| {});
    bad.into_iter().flat_map(|bad| bad.violations).collect::<Vec<_>>().join("\n")
}

#[test]
fn stores_that_answer_before_they_hold_a_piece_are_found() {
    let found = found_with(SeveralDefect::AnswersBeforeDurable);
    assert!(found.contains("I-20"), "{found}");
}

#[test]
fn repair_that_deletes_what_is_good_is_found() {
    let found = found_with(SeveralDefect::RepairDeletes);
    assert!(found.contains("I-62"), "{found}");
}

#[test]
fn stores_that_nobody_repairs_are_found() {
    let found = found_with(SeveralDefect::NeverRepairs);
    assert!(found.contains("I-62"), "{found}");
}

#[test]
fn more_stores_that_fail_than_may_are_noticed() {
    let found = found_with(SeveralDefect::TooManyFail);
    assert!(found.contains("I-61"), "{found}");
}

#[test]
fn cleanup_that_removes_a_pack_too_many_from_each_store_is_found() {
    let expand = |defect| {
        move |seed| {
            let options = WorldOptions::calm(seed);
            let copies = SeveralOptions {
                stores: 3,
                redundancy: Redundancy::Replicas(2),
                storms: false,
                defect,
            };
            cleaning(WorldOptions { coordinator: Coordinator::Group(copies), ..options })
        }
    };
    let found = |defect| {
        let bad = run_worlds(0..SEEDS, expand(defect), &Coverage::default(), |_| {});
        bad.into_iter().flat_map(|bad| bad.violations).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(found(None), "", "all is well without the defect");
    let found = found(Some(SeveralDefect::RemovesTwoPacks));
    assert!(found.contains("I-61") || found.contains("I-01"), "{found}");
}
