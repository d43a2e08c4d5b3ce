//! How often a store has the pieces that are looked for there.
//!
//! A home that is behind lacks most of what was written lately, and says so only after a latency. Whoever goes on asking it first
//! waits that long for every object.

use std::time::Duration;

/// So many of the last answers count.
const ANSWERS: f64 = 8.0;

/// What was seen loses half of its meaning in this time: a home that was behind gets its pieces some day.
const MEMORY_SECONDS: f64 = 60.0;

/// A store that never had anything is expected to have one of so many.
const ONE_OF_MAX: f64 = 20.0;

/// How often a store had what was looked for.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    answers: f64,
    /// The part of them that said that nothing is there.
    absent: f64,
    last: Duration,
}

impl Presence {
    /// Counts an answer.
    pub(crate) fn answered(&mut self, is_there: bool, now: Duration) {
        self.absent = self.absent_now(now);
        self.last = now;
        self.answers = (self.answers + 1.0).min(ANSWERS);
        let sample = if is_there { 0.0 } else { 1.0 };
        self.absent += (sample - self.absent) / self.answers;
    }

    /// Returns of how many pieces the store is expected to have one.
    pub(crate) fn one_of(&self, now: Duration) -> f64 {
        (1.0 / (1.0 - self.absent_now(now))).min(ONE_OF_MAX)
    }

    fn absent_now(&self, now: Duration) -> f64 {
        let passed = now.saturating_sub(self.last).as_secs_f64();
        self.absent * 0.5f64.powf(passed / MEMORY_SECONDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn store_that_is_behind_is_told_at_once_and_one_that_lacks_a_piece_hardly_matters() {
        let mut behind = Presence::default();
        assert!(behind.one_of(at(0)) <= 1.0);
        behind.answered(false, at(0));
        assert!(behind.one_of(at(0)) >= ONE_OF_MAX);
        let mut good = Presence::default();
        (0..20).for_each(|_| good.answered(true, at(0)));
        good.answered(false, at(0));
        assert!(good.one_of(at(0)) < 1.2);
    }

    #[test]
    fn store_that_has_its_pieces_again_is_believed_and_time_heals() {
        let mut behind = Presence::default();
        behind.answered(false, at(0));
        assert!(behind.one_of(at(60)) <= 2.0);
        (0..8).for_each(|_| behind.answered(true, at(0)));
        assert!(behind.one_of(at(0)) < 1.3);
    }
}
