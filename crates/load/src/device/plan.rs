//! When a device sends next.

use std::iter::Peekable;
use std::time::Duration;

use crate::run::{Load, Pace};
use crate::schedule::Schedule;

/// How long a device that counts waits for an answer before it looks around.
const COUNTED_LOOK: Duration = Duration::from_secs(1);

/// The moments that are left to a device.
pub(super) enum Plan {
    /// Known before the run, whatever the answers.
    At(Peekable<Box<dyn Iterator<Item = Duration> + Send>>),
    /// So many, one after the other.
    Counted {
        /// How many are left.
        left: u64,
    },
    /// As soon as there is room, until the end.
    Closed {
        /// How many commits are under way.
        in_flight: usize,
        /// When it ends.
        end: Duration,
    },
}

impl Plan {
    /// Plans for one of so many writing devices.
    pub(super) fn new(load: &Load, device: u32, writers: usize) -> Self {
        let moments: Box<dyn Iterator<Item = Duration> + Send> = match load.pace {
            Pace::Open { rate } => {
                let rate = rate / writers as f64;
                Box::new(Schedule::poisson(load.seed, device, rate, load.length))
            }
            Pace::Once { after } => Box::new(std::iter::once(after)),
            Pace::Counted { each } => return Self::Counted { left: each },
            Pace::Closed { in_flight } => return Self::Closed { in_flight, end: load.length },
        };
        Self::At(moments.peekable())
    }

    /// Plans for a device that only listens.
    pub(super) fn listen() -> Self {
        let nothing: Box<dyn Iterator<Item = Duration> + Send> = Box::new(std::iter::empty());
        Self::At(nothing.peekable())
    }

    /// Takes the next moment if it has come, while so many commits are under way.
    pub(super) fn take_due(&mut self, now: Duration, under_way: usize) -> Option<Duration> {
        match self {
            Self::At(moments) => moments.next_if(|moment| *moment <= now),
            Self::Counted { left } => {
                let is_due = under_way == 0 && *left > 0;
                *left -= u64::from(is_due);
                is_due.then_some(now)
            }
            Self::Closed { in_flight, end } => {
                (now < *end && under_way < *in_flight).then_some(now)
            }
        }
    }

    /// Returns when to look again at the latest; nothing where there is nothing left.
    pub(super) fn next_moment(&mut self, now: Duration) -> Option<Duration> {
        match self {
            // An answer comes first.
            Self::Counted { left } => (*left > 0).then_some(now + COUNTED_LOOK),
            Self::At(moments) => moments.peek().copied(),
            Self::Closed { end, .. } => Some(*end).filter(|end| now < *end),
        }
    }

    /// Tells whether an answer makes room for another commit.
    pub(super) fn waits_for_answers(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Counted { .. })
    }

    /// Returns how many moments are left.
    pub(super) fn count_left(self) -> u64 {
        match self {
            Self::At(moments) => moments.count() as u64,
            Self::Counted { left } => left,
            Self::Closed { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(pace: Pace) -> Plan {
        let length = Duration::from_secs(10);
        Plan::new(&Load { seed: 1, pace, length, patience: length }, 3, 2)
    }

    #[test]
    fn open_plan_takes_every_moment_that_has_come_whatever_is_under_way() {
        let mut plan = plan(Pace::Open { rate: 200.0 });
        let first = plan.next_moment(Duration::ZERO).expect("there is one");
        assert_eq!(plan.take_due(first - Duration::from_nanos(1), 0), None);
        assert_eq!(plan.take_due(first, 1_000_000), Some(first));
        let mut taken = 1;
        while plan.take_due(Duration::from_secs(5), 1_000_000).is_some() {
            taken += 1;
        }
        let left = plan.count_left();
        assert!((400..600).contains(&taken) && (400..600).contains(&left), "{taken}, {left}");
    }

    #[test]
    fn counted_plan_makes_so_many_one_after_the_other_and_then_none() {
        let mut plan = plan(Pace::Counted { each: 2 });
        let now = Duration::from_secs(1);
        assert_eq!(plan.take_due(now, 0), Some(now));
        assert_eq!(plan.take_due(now, 1), None);
        assert!(plan.next_moment(now).is_some());
        assert_eq!(plan.take_due(now, 0), Some(now));
        assert_eq!((plan.next_moment(now), plan.take_due(now, 0)), (None, None));
        assert_eq!(plan.count_left(), 0);
    }

    #[test]
    fn closed_plan_sends_while_there_is_room_and_time() {
        let mut plan = plan(Pace::Closed { in_flight: 2 });
        let now = Duration::from_secs(1);
        assert_eq!(plan.take_due(now, 1), Some(now));
        assert_eq!(plan.take_due(now, 2), None);
        assert_eq!(plan.next_moment(now), Some(Duration::from_secs(10)));
        assert_eq!(plan.take_due(Duration::from_secs(10), 0), None);
        assert_eq!(plan.next_moment(Duration::from_secs(10)), None);
    }
}
