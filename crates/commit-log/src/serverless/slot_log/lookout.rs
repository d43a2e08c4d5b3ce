//! When to look for news, and at which store: often after something has happened, seldom where it is quiet.
//!
//! *Goals*: one request to one store tells mostly that nothing is new; a store that does not know what the others know, or
//! lies, delays news by a bounded time; no store is asked more often than a free account bears. *Non-goals*: safety, of which
//! nothing depends on it. *Invariant*: no input or output, no clock, no randomness. Specification: `docs/design/watching.md`.

use std::time::Duration;

/// The first pause after something has happened, and how long it grows to while something happened lately.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_LIVELY: Duration = Duration::from_secs(5);

/// How long after the last thing that happened it is lively.
const LIVELY_FOR: Duration = Duration::from_secs(120);

/// By how much a pause is longer than the one before, where it is quiet.
const GROWTH: f64 = 1.25;

/// How often each store is asked where it is quiet for long; with few stores, how often any.
const PAUSE_OF_STORE: Duration = Duration::from_secs(90);
const PAUSE_LAST: Duration = Duration::from_secs(30);

/// Whatever happens, no store is asked more often than so, but for so many looks that were saved up before.
const PAUSE_LEAST: Duration = Duration::from_secs(10);
const SAVED_MAX: f64 = 40.0;

/// How long stores that have said wrongly that something came are not heeded, at first and at most.
const DISTRUST_FIRST: Duration = Duration::from_millis(500);
const DISTRUST_LAST: Duration = Duration::from_secs(60);

/// How long a look at one store is believed before a majority is asked.
const FULL_LOOK_AFTER: Duration = Duration::from_secs(900);

/// Chooses times and stores. Times are those of one clock that never goes back.
#[derive(Debug)]
pub(super) struct Lookout {
    /// When something happened last.
    stirred: Duration,
    pause: Duration,
    /// How many looks each store has saved up, and until when that was counted.
    saved: f64,
    counted: Duration,
    /// Which store was looked at last.
    last: usize,
    /// Stores that say that something came are heeded after this time.
    heeded_after: Duration,
    distrust: Duration,
    dice: u64,
}

impl Lookout {
    /// Begins, as after something has happened. Devices with different `salt` do not go in step.
    pub(super) fn new(now: Duration, salt: u64) -> Self {
        Self {
            stirred: now,
            pause: PAUSE_FIRST,
            saved: SAVED_MAX,
            counted: now,
            last: usize::try_from(salt % 64).unwrap_or(0),
            heeded_after: now,
            distrust: DISTRUST_FIRST,
            dice: salt,
        }
    }

    /// Takes note that something has happened here or elsewhere: more may follow soon.
    pub(super) fn stir(&mut self, now: Duration) {
        self.stirred = now;
        self.pause = PAUSE_FIRST;
    }

    /// Takes note that there was news.
    pub(super) fn take_news(&mut self, now: Duration) {
        self.stir(now);
        self.heeded_after = now;
        self.distrust = DISTRUST_FIRST;
    }

    /// Takes note that a store had said that something came, and that nothing has come so far.
    pub(super) fn take_false_alarm(&mut self, now: Duration) {
        if self.distrust == DISTRUST_FIRST {
            // Mostly somebody is at it, and the other stores follow.
            self.stir(now);
        }
        self.heeded_after = now + self.distrust;
        self.distrust = (self.distrust * 2).min(DISTRUST_LAST);
    }

    /// Tells whether a majority is to be asked because one store says that something came.
    pub(super) fn heeds(&self, now: Duration) -> bool {
        now >= self.heeded_after
    }

    /// Returns how long to wait before the next of `stores` is looked at.
    pub(super) fn pause(&mut self, now: Duration, stores: usize) -> Duration {
        let stores = u32::try_from(stores.max(1)).unwrap_or(u32::MAX);
        let ceiling = (PAUSE_OF_STORE / stores).min(PAUSE_LAST);
        let pause = self.pause.min(ceiling).mul_f64(self.share());
        let is_lively = now.saturating_sub(self.stirred) < LIVELY_FOR;
        let longer = self.pause.mul_f64(GROWTH);
        self.pause = if is_lively { (self.pause * 2).min(PAUSE_LIVELY) } else { longer };
        self.pause = self.pause.min(ceiling);
        pause.max(self.pay(now, stores))
    }

    /// Takes one look from those that were saved up; returns how long it takes to save it up where it is missing.
    fn pay(&mut self, now: Duration, stores: u32) -> Duration {
        let passed = now.saturating_sub(self.counted).as_secs_f64();
        self.counted = now;
        let earned = passed / PAUSE_LEAST.as_secs_f64();
        let cost = 1.0 / f64::from(stores);
        self.saved = (self.saved + earned).min(SAVED_MAX) - cost;
        PAUSE_LEAST.mul_f64((-self.saved).max(0.0))
    }

    /// Returns the next store in turn of those that `may` be looked at.
    pub(super) fn turn(&mut self, stores: usize, may: impl Fn(usize) -> bool) -> Option<usize> {
        let next =
            (1..=stores).map(|step| (self.last + step) % stores).find(|store| may(*store))?;
        self.last = next;
        Some(next)
    }

    /// Returns how long it may take until a majority is asked again, whatever single stores say, after it was asked last.
    pub(super) fn until_full_look(now: Duration, looked: Duration) -> Duration {
        (looked + FULL_LOOK_AFTER).saturating_sub(now)
    }

    /// Returns a share between four fifths and one. It only keeps devices from going in step, so that nobody need be
    /// unable to guess it.
    fn share(&mut self) -> f64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        0.8 + 0.2 * f64::from((self.dice >> 33) as u32) / f64::from(1_u32 << 31)
    }
}

#[cfg(test)]
mod tests;
