//! How many sync services there should be, from what is seen of the queue and of those that work: a state machine without clock and
//! processes.
//!
//! Two rules say *more*. One looks ahead: the rate of arrivals and its trend, and how long a group is in somebody's hands, say how many hands
//! will be busy when an instance that begins now is at work. One looks at what is: a group that comes now would wait longer than the
//! target. One rule says *fewer*: for a while fewer would have done, with much to spare. What lies between the two keeps the number as it
//! is, so that a constant load does not make it go up and down.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Of all hands so many may be busy by plan; more, and groups begin to wait for each other.
const BUSY_MAX: f64 = 0.7;

/// Fewer instances are enough only if of their hands no more than so many would be busy.
const BUSY_TO_LEAVE_MAX: f64 = 0.4;

/// How long an instance takes from its start to its first group; so far the rate is foreseen.
const START_TIME: Duration = Duration::from_secs(3);

/// The pause after a change before more are added, so that what was added can work.
const PAUSE_UP: Duration = Duration::from_secs(4);

/// How much a new rate counts for each second that it was seen.
const RATE_WEIGHT: f64 = 0.4;

/// The same of its trend.
const TREND_WEIGHT: f64 = 0.2;

/// The same of the time that a group is in somebody's hands.
const SERVICE_WEIGHT: f64 = 0.2;

/// What a supervisor aims at.
#[derive(Debug, Clone, PartialEq)]
pub struct Aim {
    /// How many instances there are at least and at most; at least one.
    pub instances: RangeInclusive<usize>,
    /// How long a group may take from its sending to its answer.
    pub response: Duration,
    /// After what time in which fewer would have done one is taken away.
    pub calm: Duration,
}

/// What was seen since the look before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// When.
    pub at: Duration,
    /// How many groups wait for an instance.
    pub waiting: u64,
    /// How many were done since.
    pub done: u64,
    /// How long those were in the hands of instances, together.
    pub busy: Duration,
    /// How many groups an instance takes at once.
    pub groups_at_once: u64,
}

/// What is known of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// Groups that come in a second.
    pub rate: f64,
    /// By how much that grows in a second.
    pub trend: f64,
    /// How long a group is in somebody's hands, in seconds.
    pub service: f64,
    /// How long a group that comes now takes until its answer, in seconds.
    pub response: f64,
}

/// The state machine.
#[derive(Debug)]
pub struct Policy {
    aim: Aim,
    wanted: usize,
    last: Option<Seen>,
    estimate: Estimate,
    /// Of the response, how long a group that comes now waits for a hand, in seconds.
    wait: f64,
    has_rate: bool,
    changed_at: Option<Duration>,
    calm_since: Option<Duration>,
}

impl Policy {
    /// Begins with as few instances as there may be.
    pub fn new(aim: Aim) -> Self {
        let wanted = (*aim.instances.start()).max(1);
        Self {
            aim,
            wanted,
            last: None,
            estimate: Estimate::default(),
            wait: 0.0,
            has_rate: false,
            changed_at: None,
            calm_since: None,
        }
    }

    /// Returns how many instances there should be.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Returns what is known of the load.
    pub fn estimate(&self) -> Estimate {
        self.estimate
    }

    /// Takes in what was seen; returns how many instances there should be from now on.
    pub fn decide(&mut self, seen: Seen) -> usize {
        let Some(last) = self.last.replace(seen) else { return self.wanted };
        let passed = seen.at.saturating_sub(last.at).as_secs_f64();
        if passed <= 0.0 {
            return self.wanted;
        }
        self.learn(&last, &seen, passed);
        let hands = seen.groups_at_once.max(1) as f64;
        let more = self.needed(hands * BUSY_MAX).max(self.needed_at_once());
        let fewer = self.needed(hands * BUSY_TO_LEAVE_MAX);
        if more > self.wanted {
            self.calm_since = None;
            let may = self.changed_at.is_none_or(|changed| seen.at >= changed + PAUSE_UP);
            if may {
                self.set(more, seen.at);
            }
        } else if fewer < self.wanted && self.is_quick() {
            let since = *self.calm_since.get_or_insert(seen.at);
            if seen.at >= since + self.aim.calm {
                self.set(self.wanted - 1, seen.at);
                self.calm_since = Some(seen.at);
            }
        } else {
            self.calm_since = None;
        }
        self.wanted
    }

    fn set(&mut self, wanted: usize, at: Duration) {
        let wanted = wanted.clamp((*self.aim.instances.start()).max(1), *self.aim.instances.end());
        if wanted != self.wanted {
            (self.wanted, self.changed_at) = (wanted, Some(at));
        }
    }

    fn learn(&mut self, last: &Seen, seen: &Seen, passed: f64) {
        let arrived = (seen.done + seen.waiting).saturating_sub(last.waiting) as f64 / passed;
        let weight = |each: f64| 1.0 - (1.0 - each).powf(passed);
        let estimate = &mut self.estimate;
        if self.has_rate {
            let foreseen = estimate.rate + estimate.trend * passed;
            let rate = foreseen + weight(RATE_WEIGHT) * (arrived - foreseen);
            let trend = (rate - estimate.rate) / passed;
            estimate.trend += weight(TREND_WEIGHT) * (trend - estimate.trend);
            estimate.rate = rate.max(0.0);
        } else {
            (estimate.rate, self.has_rate) = (arrived, true);
        }
        if seen.done > 0 {
            let service = seen.busy.as_secs_f64() / seen.done as f64;
            estimate.service = match estimate.service {
                0.0 => service,
                before => before + weight(SERVICE_WEIGHT) * (service - before),
            };
        }
        // What waits is served in its order, at the pace of just now.
        let pace = seen.done as f64 / passed;
        self.wait = match (seen.waiting, pace) {
            (0, _) => 0.0,
            // Nobody does anything; what has waited since the look before has waited so long at least.
            (_, 0.0) if last.waiting > 0 => f64::INFINITY,
            // What has come since may have come just now; the next look tells.
            (_, 0.0) => 0.0,
            (waiting, pace) => waiting as f64 / pace,
        };
        // Who comes where nobody is finds an idle hand, however long a group took when there was much to do.
        let is_idle = seen.done == 0 && seen.waiting == 0;
        estimate.response = if is_idle { 0.0 } else { estimate.service + self.wait };
    }

    /// Returns how many instances of so many hands each will be needed when one that begins now is at work.
    fn needed(&self, hands: f64) -> usize {
        let Estimate { rate, trend, service, .. } = self.estimate;
        let rate = (rate + trend * START_TIME.as_secs_f64()).max(0.0);
        // A number that is beyond all limits becomes the largest one.
        (rate * service / hands).ceil() as usize
    }

    /// Returns how many instances are needed because groups wait too long. Where none waits, a group takes as long as it does, and more
    /// hands change nothing.
    fn needed_at_once(&self) -> usize {
        let is_late = self.wait > 0.0 && self.estimate.response > self.aim.response.as_secs_f64();
        if is_late { self.wanted + (self.wanted / 2).max(1) } else { 0 }
    }

    /// Tells whether there is so little to do that one may go.
    fn is_quick(&self) -> bool {
        self.wait == 0.0 || self.estimate.response <= self.aim.response.as_secs_f64() / 2.0
    }
}

#[cfg(test)]
mod tests;
