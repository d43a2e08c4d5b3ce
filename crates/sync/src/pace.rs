//! How many transfers to a store go on at once: more while they are quick, fewer when they queue up behind each other.
//!
//! A store that is far away wants many, for waiting costs nothing; a thin line wants one, for the last of many would take
//! so long that it is taken for lost.

use std::time::Duration;

/// A transfer that took less leaves room for more beside it.
const QUICK: Duration = Duration::from_secs(10);

/// A transfer that took longer has queued up behind others.
const SLOW: Duration = Duration::from_secs(25);

/// How many transfers may go on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    allowed: usize,
    step: usize,
    most: usize,
}

impl Pace {
    /// Begins with `first`, and allows `step` more after every quick transfer, up to `most`.
    pub(crate) fn new(first: usize, step: usize, most: usize) -> Self {
        Self { allowed: first, step, most }
    }

    /// Returns how many may go on at once.
    pub(crate) fn allowed(&self) -> usize {
        self.allowed
    }

    /// A transfer that counts as so many has taken so long.
    pub(crate) fn took_parts(&mut self, time: Duration, parts: usize) {
        // Where it was slow, that is one sign of a queue and not several.
        let times = if time < QUICK { parts } else { 1 };
        (0..times).for_each(|_| self.took(time));
    }

    /// A transfer has taken so long.
    pub(crate) fn took(&mut self, time: Duration) {
        if time < QUICK {
            self.allowed = (self.allowed + self.step).min(self.most);
        } else if time > SLOW {
            self.allowed = (self.allowed / 2).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_transfers_make_room_up_to_the_most() {
        let mut pace = Pace::new(2, 1, 8);
        (0..20).for_each(|_| pace.took(Duration::from_secs(1)));
        assert_eq!(pace.allowed(), 8);
    }

    #[test]
    fn slow_transfers_leave_one() {
        let mut pace = Pace::new(8, 1, 8);
        (0..20).for_each(|_| pace.took(Duration::from_secs(60)));
        assert_eq!(pace.allowed(), 1);
        pace.took(Duration::from_secs(15));
        assert_eq!(pace.allowed(), 1);
    }
}
