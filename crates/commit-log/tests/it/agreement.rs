//! The models of the agreement, as far as they close in a few seconds.

use crate::it::worlds::scenarios::{
    Scenario, large_slot_worlds, lying_mutants, slot_mutants, slot_worlds,
};

/// Enough to close the small worlds; the others are cut off here, and run longer by the example `model_check`.
const STATES_MAX: usize = 60_000;

fn check(scenarios: Vec<Scenario>, states_max: usize) {
    for scenario in scenarios {
        let verdict = scenario.run(states_max);
        assert_eq!(
            verdict.broken.is_empty(),
            scenario.is_safe,
            "{}: {verdict}\n{}",
            scenario.name,
            verdict.ways()
        );
    }
}

#[test]
fn slot_rounds_are_safe() {
    check(slot_worlds(), STATES_MAX);
}

#[test]
fn every_defect_of_the_slot_rounds_is_noticed() {
    check(slot_mutants(), STATES_MAX);
    check(lying_mutants(), STATES_MAX);
}

#[test]
fn slot_rounds_are_safe_as_far_as_a_second_of_a_large_world_shows() {
    check(large_slot_worlds(), STATES_MAX / 10);
}
