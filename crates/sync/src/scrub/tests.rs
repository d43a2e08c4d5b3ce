//! How much a scrub reads, and when.

use super::*;

const GIB: u64 = 1 << 30;

fn at(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanoseconds: 0 }
}

/// Packs of a length, in the order of their ids.
fn packs(count: u8, length: u64) -> impl Iterator<Item = (PackId, u64)> {
    (0..count).map(move |number| (PackId::from_bytes([number; 32]), length))
}

#[test]
fn everything_is_read_once_in_a_period_and_no_more_than_a_share_in_a_day() {
    let options = ScrubOptions::default();
    let (length, count) = (4 << 20, 200_u8);
    let total = length * u64::from(count);
    let mut position = ScrubPosition::default();
    let mut left: Vec<_> = packs(count, length).collect();
    let (mut hours, mut of_day) = (0, 0);
    while !left.is_empty() {
        position.earn(at(1_000_000 + hours * 3600), total, &options);
        let taken = position.spend(left.iter().copied()).len();
        left.drain(..taken);
        of_day += taken as u64 * length;
        hours += 1;
        if hours % 24 == 0 {
            // A day's share, and what the last object was too long.
            assert!(of_day <= total / 30 + 2 * length, "{of_day} bytes on day {}", hours / 24);
            of_day = 0;
        }
    }
    assert!((29 * 24..=30 * 24).contains(&hours), "{hours} hours");
}

#[test]
fn what_was_missed_for_a_year_and_clocks_that_jump_cost_a_days_share_at_most() {
    let options = ScrubOptions::default();
    let mut position = ScrubPosition::default();
    for now in [1_000_000_000, 1_030_000_000, 900_000_000, i64::MAX, i64::MIN, 1_000_000_000] {
        position.earn(at(now), 30 * GIB, &options);
        assert!(position.credit <= GIB as i64 + 1, "{position:?} at {now}");
        position.spend(packs(255, GIB / 4));
    }
}

#[test]
fn object_that_is_longer_than_what_is_due_is_read_all_the_same_and_paid_for_later() {
    let options = ScrubOptions::default();
    let mut position = ScrubPosition::default();
    position.earn(at(0), GIB, &options);
    assert_eq!(position.spend(packs(9, GIB / 2)).len(), 1);
    position.earn(at(3600), GIB, &options);
    assert_eq!(position.spend(packs(9, GIB / 2)).len(), 0);
}

#[test]
fn position_is_read_back_as_it_was_written() {
    let position = ScrubPosition {
        after: Some(PackId::from_bytes([5; 32])),
        began: Some(at(-5)),
        ended: None,
        stepped: Some(at(7)),
        credit: -9,
        objects: 3,
        mended: 1,
        lost: 2,
    };
    let mut encoder = Encoder::default();
    position.encode(&mut encoder);
    let bytes = encoder.into_bytes();
    assert_eq!(ScrubPosition::decode(&mut Decoder::new(&bytes)), Ok(position));
}
