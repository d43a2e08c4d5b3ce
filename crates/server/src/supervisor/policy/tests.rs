use proptest::prelude::{any, prop, proptest};
use proptest::strategy::Strategy;

use super::*;

const HANDS: u64 = 8;

fn aim(least: usize, most: usize) -> Aim {
    let (response, calm) = (Duration::from_millis(400), Duration::from_secs(20));
    Aim { instances: least..=most, response, calm }
}

/// Sync services in a world of groups: each hand does a group in `service` seconds.
struct World {
    at: Duration,
    waiting: f64,
    done: f64,
    service: f64,
}

impl World {
    fn new(service: f64) -> Self {
        Self { at: Duration::ZERO, waiting: 0.0, done: 0.0, service }
    }

    /// Lets a second pass, in which so many groups come.
    fn second(&mut self, rate: f64, instances: usize) -> Seen {
        let capacity = instances as f64 * HANDS as f64 / self.service;
        let there = self.waiting + rate;
        let before = self.done.floor();
        let done = there.min(capacity);
        self.done += done;
        self.waiting = there - done;
        self.at += Duration::from_secs(1);
        Seen {
            at: self.at,
            waiting: self.waiting as u64,
            done: (self.done.floor() - before) as u64,
            busy: Duration::from_secs_f64((self.done.floor() - before) * self.service),
            groups_at_once: HANDS,
        }
    }

    /// Lets seconds pass; returns the number of instances after each of them.
    fn run(&mut self, policy: &mut Policy, seconds: usize, rate: f64) -> Vec<usize> {
        (0..seconds).map(|_| policy.decide(self.second(rate, policy.wanted()))).collect()
    }
}

#[test]
fn a_load_that_rises_gets_instances_and_one_that_falls_loses_them() {
    // One instance does 100 groups a second.
    let (mut world, mut policy) = (World::new(0.08), Policy::new(aim(1, 8)));
    assert_eq!(world.run(&mut policy, 60, 20.0).last(), Some(&1));
    let rising = world.run(&mut policy, 60, 400.0);
    // 400 groups keep four instances busy, and 0.7 of six; a sudden rise looks like one that goes on.
    let most = rising[59];
    assert!((6..=8).contains(&most), "{rising:?}");
    let first = rising.iter().position(|count| *count >= 4);
    assert!(first.is_some_and(|second| second <= 10), "{rising:?}");
    let falling = world.run(&mut policy, 400, 20.0);
    assert_eq!(falling.last(), Some(&1), "{falling:?}");
    assert!(falling.iter().zip(&falling[1..]).all(|(one, next)| next <= one), "{falling:?}");
    assert!(falling[18] == most, "one goes only after a calm time: {falling:?}");
}

#[test]
fn a_load_that_grows_steadily_is_met_before_anything_waits_long() {
    let (mut world, mut policy) = (World::new(0.08), Policy::new(aim(1, 8)));
    let mut worst: f64 = 0.0;
    for second in 0..100 {
        world.run(&mut policy, 1, 20.0 + 4.0 * f64::from(second));
        worst = worst.max(policy.estimate().response);
    }
    assert!(worst <= 0.4, "{worst}");
    assert!(policy.wanted() >= 5);
}

#[test]
fn after_a_load_of_slow_groups_silence_takes_instances_away() {
    let (mut world, mut policy) = (World::new(0.5), Policy::new(aim(1, 4)));
    assert_eq!(world.run(&mut policy, 60, 100.0).last(), Some(&4));
    // Whatever waits is done.
    world.run(&mut policy, 60, 1.0);
    let silent = world.run(&mut policy, 100, 0.0);
    assert_eq!(silent.last(), Some(&1), "{silent:?}");
}

#[test]
fn groups_that_take_long_and_wait_for_nobody_bring_no_other_instance() {
    let (mut world, mut policy) = (World::new(0.5), Policy::new(aim(1, 8)));
    // One group in a minute, which takes longer than the aim by itself.
    let wanted = world.run(&mut policy, 600, 1.0 / 60.0);
    assert!(wanted.iter().all(|count| *count == 1), "{wanted:?}");
    // What a larger load has brought goes again, though each group takes as long as before.
    assert!(world.run(&mut policy, 60, 60.0).last() > Some(&1));
    assert_eq!(world.run(&mut policy, 600, 1.0).last(), Some(&1));
}

#[test]
fn groups_that_nobody_takes_bring_another_instance() {
    let mut policy = Policy::new(aim(1, 4));
    let stuck = |second| Seen {
        at: Duration::from_secs(second),
        waiting: if second == 0 { 0 } else { 5 },
        done: 0,
        busy: Duration::ZERO,
        groups_at_once: HANDS,
    };
    let wanted: Vec<_> = (0..40).map(|second| policy.decide(stuck(second))).collect();
    assert_eq!(wanted.last(), Some(&4), "{wanted:?}");
    assert_eq!(wanted[..3], [1, 1, 2], "what has just come may be taken at once: {wanted:?}");
}

fn seen() -> impl Strategy<Value = Seen> {
    (0..100_000_u64, any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()).prop_map(
        |(at, waiting, done, busy, groups_at_once)| Seen {
            at: Duration::from_millis(at),
            waiting: waiting / 4,
            done: done / 4,
            busy: Duration::from_micros(busy),
            groups_at_once,
        },
    )
}

proptest! {
    #[test]
    fn no_sight_whatever_leads_beyond_the_limits(
        sights in prop::collection::vec(seen(), 1..60),
        least in 1..5_usize,
        more in 0..5_usize,
    ) {
        let mut policy = Policy::new(aim(least, least + more));
        for sight in sights {
            assert!((least..=least + more).contains(&policy.decide(sight)));
        }
    }

    #[test]
    fn a_constant_load_does_not_make_the_number_go_up_and_down(
        rate in 0.0..2000.0_f64,
        service in 0.001..0.5_f64,
        begun_with in 0.0..2000.0_f64,
    ) {
        let (mut world, mut policy) = (World::new(service), Policy::new(aim(1, 8)));
        world.run(&mut policy, 30, begun_with);
        // What has piled up before is worked off first, and what is too many goes one by one.
        world.run(&mut policy, 600, rate);
        let changes = world.run(&mut policy, 600, rate);
        let steps: Vec<_> = changes.windows(2).filter(|pair| pair[0] != pair[1]).collect();
        let is_one_way = steps.iter().all(|pair| pair[1] > pair[0])
            || steps.iter().all(|pair| pair[1] < pair[0]);
        assert!(is_one_way && steps.len() <= 7, "{changes:?}");
    }
}
