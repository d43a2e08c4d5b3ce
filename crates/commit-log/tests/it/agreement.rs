//! The models of the agreement, as far as they close in a few seconds.

use crate::it::worlds::checking::Search;
use crate::it::worlds::scenarios::{
    Scenario, growing_worlds, helping_mutants, helping_worlds, large_slot_worlds, led_mutants,
    led_worlds, lying_mutants, mending_mutants, mending_worlds, moving_mutants, moving_worlds,
    older_mutants, older_worlds, slot_mutants, slot_worlds,
};

/// Enough to close the small worlds; the others are cut off here, and run longer by the example `model_check`.
const STATES_MAX: usize = 40_000;

/// A defect is found long before.
const MUTANT_STATES_MAX: usize = 1_000_000;

fn check(scenarios: Vec<Scenario>, states_max: usize) {
    for scenario in scenarios {
        let verdict = scenario.run(Search::Breadth, states_max);
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
    check(slot_mutants(), MUTANT_STATES_MAX);
    check(lying_mutants(), MUTANT_STATES_MAX);
}

#[test]
fn slot_rounds_are_safe_as_far_as_a_second_of_a_large_world_shows() {
    check(large_slot_worlds(), STATES_MAX / 8);
}

#[test]
fn older_protocols_are_safe_and_their_defects_are_noticed() {
    check(older_worlds(), STATES_MAX);
    check(older_mutants(), MUTANT_STATES_MAX);
}

#[test]
fn group_may_grow_between_two_slots_and_not_before() {
    check(growing_worlds(), STATES_MAX);
}

#[test]
fn stores_may_be_exchanged_between_two_slots_after_what_is_old_was_carried_over() {
    check(moving_worlds(), STATES_MAX);
    check(moving_mutants(), MUTANT_STATES_MAX);
}

#[test]
fn led_rounds_are_safe_and_their_defects_are_noticed() {
    check(led_worlds(), STATES_MAX);
    check(led_mutants(), MUTANT_STATES_MAX);
}

#[test]
fn what_is_damaged_may_be_written_anew_once_it_is_decided_and_not_otherwise() {
    check(mending_worlds(), STATES_MAX);
    check(mending_mutants(), MUTANT_STATES_MAX);
}

#[test]
fn helping_is_safe_and_its_defects_are_noticed() {
    check(helping_worlds(), STATES_MAX);
    check(helping_mutants(), MUTANT_STATES_MAX);
}

#[test]
fn both_orders_of_search_see_the_same_states() {
    for scenario in helping_worlds().into_iter().take(2) {
        let [near, far] =
            [Search::Breadth, Search::Depth].map(|search| scenario.run(search, STATES_MAX * 4));
        assert!(near.is_closed && far.is_closed, "{}", scenario.name);
        assert_eq!(near.states, far.states, "{}", scenario.name);
    }
}
