//! Hours pass in no time: a lookout has no clock.

use super::*;

/// Looks at `stores` stores for `hours`; something happens every `every`. Returns how many looks each got, and the
/// time from each thing that happened to the first look after it, shortest first.
fn watch(stores: usize, hours: u64, every: Option<Duration>) -> (Vec<u32>, Vec<Duration>) {
    let mut lookout = Lookout::new(Duration::ZERO, 7);
    let end = Duration::from_secs(hours * 3600);
    let (mut looks, mut delays) = (vec![0; stores], Vec::new());
    let mut now = Duration::ZERO;
    let mut next_event = every;
    while now < end {
        now += lookout.pause(now, stores);
        looks[lookout.turn(stores, |_| true).expect("a store")] += 1;
        while let (Some(event), Some(every)) = (next_event, every)
            && event <= now
        {
            delays.push(now - event);
            lookout.take_news(now);
            next_event = Some(event + every);
        }
    }
    delays.sort_unstable();
    (looks, delays)
}

#[test]
fn quiet_store_is_asked_as_seldom_as_promised_and_all_get_the_same() {
    for (stores, at_most) in [(1, 160), (2, 80), (3, 55), (5, 55)] {
        let (looks, _) = watch(stores, 2, None);
        for store in &looks {
            assert!((40 * 2..=at_most * 2).contains(store), "{stores} stores: {looks:?}");
        }
        assert!(looks.iter().max().unwrap_or(&0) - looks.iter().min().unwrap_or(&0) <= 1);
    }
}

#[test]
fn no_store_is_asked_more_often_than_the_cap_however_much_happens() {
    for every in [1, 3, 10, 60] {
        for stores in [1, 3, 5] {
            let (looks, _) = watch(stores, 3, Some(Duration::from_secs(every)));
            assert!(looks.iter().all(|store| *store <= 360 * 3 + 41), "{every} s: {looks:?}");
        }
    }
}

#[test]
fn news_is_heard_within_seconds_while_there_is_much_and_within_the_ceiling_else() {
    let median = |delays: &[Duration]| delays[delays.len() / 2];
    let (_, lively) = watch(3, 2, Some(Duration::from_secs(47)));
    assert!(median(&lively) < Duration::from_secs(3), "{:?}", median(&lively));
    let (_, seldom) = watch(3, 50, Some(Duration::from_secs(1801)));
    assert!(median(&seldom) < Duration::from_secs(18), "{:?}", median(&seldom));
    assert!(seldom.last().expect("some") <= &Duration::from_secs(30), "{seldom:?}");
}

#[test]
fn stores_that_cry_wolf_are_heeded_once_a_minute() {
    let mut lookout = Lookout::new(Duration::ZERO, 1);
    let mut full_looks = 0;
    let mut now = Duration::ZERO;
    while now < Duration::from_secs(3600) {
        now += lookout.pause(now, 3);
        if lookout.heeds(now) {
            full_looks += 1;
            lookout.take_false_alarm(now);
        }
    }
    assert!((40..75).contains(&full_looks), "{full_looks}");
    lookout.take_news(now);
    assert!(lookout.heeds(now), "once there was news all is forgotten");
}

#[test]
fn turns_pass_over_stores_that_are_waited_at() {
    let mut lookout = Lookout::new(Duration::ZERO, 0);
    let mut turns =
        |may: fn(usize) -> bool| (0..4).map(|_| lookout.turn(4, may)).collect::<Vec<_>>();
    assert_eq!(turns(|_| true), [Some(1), Some(2), Some(3), Some(0)]);
    assert_eq!(turns(|store| store % 2 == 1), [Some(1), Some(3), Some(1), Some(3)]);
    assert_eq!(turns(|_| false), [None; 4]);
}
