//! The bounds on agreement over five emulated services, which virtual time makes the same on every machine.

use std::time::Duration;

use testkit::clouds::agreement::{all_at_once, another_device, same_device_again};
use testkit::clouds::services::{Region, Service, table_4};

/// How many runs a bound on the median is checked over.
const SEEDS: u64 = 31;

fn services() -> Vec<Service> {
    table_4(Region::UnitedStates)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[test]
fn device_that_was_last_commits_in_one_round_trip_and_900_ms() {
    let cost = |seed| same_device_again(&services(), seed).expect("all stores answer");
    let costs: Vec<_> = (0..SEEDS).map(cost).collect();
    for cost in &costs {
        assert_eq!((cost.round_trips, cost.requests), (1, 5), "{cost:?}");
    }
    let took = median(costs.iter().map(|cost| cost.took).collect());
    assert!(took <= Duration::from_millis(900), "{took:?}");
}

#[test]
fn another_device_takes_over_in_one_round_trip_and_1700_ms() {
    let cost = |seed| another_device(&services(), seed).expect("all stores answer");
    let costs: Vec<_> = (0..SEEDS).map(cost).collect();
    for cost in &costs {
        assert_eq!(cost.round_trips, 1, "{cost:?}");
    }
    let took = median(costs.iter().map(|cost| cost.took).collect());
    assert!(took <= Duration::from_millis(1700), "{took:?}");
}

#[test]
fn five_devices_at_once_all_get_in() {
    for seed in 0..SEEDS {
        let costs = all_at_once(&services(), seed, 5).expect("nobody blocks the others for ever");
        assert_eq!(costs.len(), 5);
    }
}

#[test]
fn same_seed_costs_the_same() {
    let cost = || all_at_once(&services(), 7, 3).expect("all stores answer");
    assert_eq!(cost(), cost());
}
