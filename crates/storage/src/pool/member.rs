//! One store of a pool, and how well it answers.

use std::sync::Arc;
use std::time::Duration;

use model::ids::StoreId;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::error::StorageError;
use crate::object_store::ObjectStore;

use super::pulse::Pulse;

/// What is expected of a store that nothing is known of: to ask another one too early costs both their lines.
const LATENCY_AT_FIRST: f64 = 0.3;
const BYTE_AT_FIRST: f64 = 2e-7;

/// How much a new measurement counts against the old ones.
const WEIGHT: f64 = 0.25;

/// Answers of at most so many bytes, with no more before them, tell the latency. Latencies vary by more than these bytes take.
const SMALL_ANSWER: u64 = 256 << 10;

/// The part of an answer's time that is taken for the moving of its bytes at least.
const MOVING_MIN: f64 = 0.25;

/// What was measured loses half of its meaning in this time: a slow store is tried again some day.
const MEMORY_SECONDS: f64 = 60.0;

/// How many pieces one store takes at once. Clients and services have eight connections or so for each other, and the log, for
/// which everybody waits, must find one free.
const WRITES_AT_ONCE: usize = 6;

/// How long a store that has failed is spared, at first and at most.
const SPARE_MIN: Duration = Duration::from_secs(1);
const SPARE_MAX: Duration = Duration::from_secs(60);

/// A store of a pool.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: StoreId,
    pub(crate) name: String,
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Pieces that are written wait here for their turn.
    pub(crate) writes: Semaphore,
    health: Mutex<Health>,
    pulse: Mutex<Pulse>,
}

/// Whether a call reads or writes: a full store is as good as any for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

#[derive(Debug, Default)]
struct Health {
    /// Seconds to the first byte, and when this was measured last.
    latency: Option<(f64, Duration)>,
    /// Seconds a byte, over all calls at once.
    byte: Option<(f64, Duration)>,
    bytes_under_way: u64,
    written_under_way: u64,
    reading: Trouble,
    writing: Trouble,
}

impl Health {
    /// Returns how long an answer takes whose bytes are the last of so many on the line.
    fn time(&self, bytes: u64, now: Duration) -> Duration {
        let latency = faded(self.latency, LATENCY_AT_FIRST, now);
        let byte = faded(self.byte, BYTE_AT_FIRST, now);
        seconds(latency + bytes as f64 * byte)
    }

    fn learn(&mut self, bytes: u64, before: u64, taken: f64, now: Duration) {
        let all = bytes + before;
        if all <= SMALL_ANSWER {
            let byte = self.byte.map_or(0.0, |(byte, _)| byte);
            let latency = (taken - all as f64 * byte).max(taken * MOVING_MIN);
            learn(&mut self.latency, latency, LATENCY_AT_FIRST, now);
        } else if bytes > SMALL_ANSWER {
            // Without a latency all of it counts, and the more bytes were on the line the less that is wrong.
            let latency = self.latency.map_or(0.0, |(latency, _)| latency);
            let moving = (taken - latency).max(taken * MOVING_MIN);
            learn(&mut self.byte, moving / all as f64, BYTE_AT_FIRST, now);
        }
        // Else it waited for others, and says little.
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))
}

/// What can be expected of a call while it is under way: how long it takes, if the store is as good as it is known to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expectation {
    /// The bytes of the answer, and those that were on the line before.
    bytes: u64,
}

/// Since when a store fails.
#[derive(Debug, Default)]
struct Trouble {
    spared_until: Option<Duration>,
    spare: Duration,
}

impl Trouble {
    fn failed(&mut self, now: Duration) {
        self.spare = (self.spare * 2).clamp(SPARE_MIN, SPARE_MAX);
        self.spared_until = Some(now + self.spare);
    }
}

/// A call that is under way; it counts until it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    member: &'a Member,
    direction: Direction,
    bytes: u64,
    bytes_before: u64,
    started: Duration,
    number: u64,
}

impl Member {
    pub(crate) fn new(id: StoreId, name: String, store: Arc<dyn ObjectStore>) -> Self {
        let (health, pulse) = (Mutex::default(), Mutex::default());
        Self { id, name, store, writes: Semaphore::new(WRITES_AT_ONCE), health, pulse }
    }

    /// Returns what can be expected of a call for `bytes` bytes that begins now, behind what is under way.
    pub(crate) fn expectation(&self, bytes: u64) -> Expectation {
        Expectation { bytes: self.health.lock().bytes_under_way + bytes }
    }

    /// Returns how long a call should take, by what is known of the store now.
    pub(crate) fn expected(&self, expectation: Expectation, now: Duration) -> Duration {
        self.health.lock().time(expectation.bytes, now)
    }

    /// Tells whether the store has answered anything yet.
    pub(crate) fn is_known(&self) -> bool {
        let health = self.health.lock();
        health.latency.is_some() || health.byte.is_some()
    }

    /// Returns how long an answer may take at best, behind what is under way, for comparing stores: one that was not asked for
    /// long may have become faster. What nothing is known of is hoped to be quick with little, and as good as most with much.
    pub(crate) fn hoped(&self, bytes: u64, now: Duration) -> Duration {
        let health = self.health.lock();
        let latency = faded(health.latency, 0.0, now);
        let best = health.byte.map_or(BYTE_AT_FIRST, |(byte, _)| byte.min(BYTE_AT_FIRST));
        let byte = faded(health.byte, best, now);
        seconds(latency + (health.bytes_under_way + bytes) as f64 * byte)
    }

    /// Looks at what is known of the store's silence, or changes it.
    pub(crate) fn with_pulse<T>(&self, body: impl FnOnce(&mut Pulse) -> T) -> T {
        body(&mut self.pulse.lock())
    }

    /// Returns whether the store hangs, or has failed and its time has not come again.
    pub(crate) fn is_failing(&self, direction: Direction, now: Duration) -> bool {
        if self.with_pulse(|pulse| pulse.is_silent()) {
            return true;
        }
        let health = self.health.lock();
        let trouble = match direction {
            Direction::Read => &health.reading,
            Direction::Write => &health.writing,
        };
        trouble.spared_until.is_some_and(|until| now < until)
    }

    /// Returns how many bytes are on their way to the store.
    pub(crate) fn written_under_way(&self) -> u64 {
        self.health.lock().written_under_way
    }

    /// Counts a call of about `bytes` bytes until the result is dropped.
    pub(crate) fn begin(&self, direction: Direction, bytes: u64, now: Duration) -> UnderWay<'_> {
        let mut health = self.health.lock();
        let bytes_before = health.bytes_under_way;
        health.bytes_under_way += bytes;
        if direction == Direction::Write {
            health.written_under_way += bytes;
        }
        let number = self.pulse.lock().begin(now);
        UnderWay { member: self, direction, bytes, bytes_before, started: now, number }
    }
}

impl UnderWay<'_> {
    /// Learns from an answer of `bytes` bytes.
    pub(crate) fn answered(&self, bytes: u64, now: Duration) {
        let seconds = now.saturating_sub(self.started).as_secs_f64();
        self.member.pulse.lock().answered(now);
        let mut health = self.member.health.lock();
        match self.direction {
            Direction::Read => health.reading = Trouble::default(),
            Direction::Write => health.writing = Trouble::default(),
        }
        health.learn(bytes, self.bytes_before, seconds, now);
    }

    /// Learns from a failure; those that say nothing about the store are ignored.
    pub(crate) fn failed(&self, error: &StorageError, now: Duration) {
        if !tells_of_trouble(error) {
            return;
        }
        let mut health = self.member.health.lock();
        match self.direction {
            Direction::Read => health.reading.failed(now),
            Direction::Write => health.writing.failed(now),
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.member.pulse.lock().end(self.number);
        let mut health = self.member.health.lock();
        health.bytes_under_way = health.bytes_under_way.saturating_sub(self.bytes);
        if self.direction == Direction::Write {
            health.written_under_way = health.written_under_way.saturating_sub(self.bytes);
        }
    }
}

/// Returns whether the next call of any object is likely to fail, too.
fn tells_of_trouble(error: &StorageError) -> bool {
    !matches!(
        error,
        StorageError::Damaged { .. }
            | StorageError::Missing { .. }
            | StorageError::TooLarge { .. }
            | StorageError::InvalidKey { .. }
            | StorageError::WrongContent { .. }
            | StorageError::Unsupported { .. }
    )
}

fn learn(known: &mut Option<(f64, Duration)>, sample: f64, at_first: f64, now: Duration) {
    let value = match known {
        None => sample,
        Some(_) => faded(*known, at_first, now) * (1.0 - WEIGHT) + sample * WEIGHT,
    };
    *known = Some((value, now));
}

/// Returns a measurement as far as it is still remembered.
fn faded(known: Option<(f64, Duration)>, at_first: f64, now: Duration) -> f64 {
    let Some((value, at)) = known else { return at_first };
    let remembered = 0.5f64.powf(now.saturating_sub(at).as_secs_f64() / MEMORY_SECONDS);
    value * remembered + at_first * (1.0 - remembered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opendal_store::OpendalStore;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn member() -> Member {
        let store = Arc::new(OpendalStore::memory("test"));
        Member::new(StoreId::from_bytes([1; 16]), "test".to_owned(), store)
    }

    #[test]
    fn what_was_measured_is_expected_and_forgotten_in_time() {
        let member = member();
        member.begin(Direction::Read, 0, at(0)).answered(0, at(2));
        let expected = |now| member.expected(member.expectation(0), now);
        assert_eq!(expected(at(2)), at(2));
        assert_eq!(expected(at(62)), Duration::from_millis(1150));
        assert!(expected(at(3600)) < Duration::from_millis(310));
        assert!(member.hoped(0, at(3600)) < Duration::from_millis(10));
    }

    #[test]
    fn calls_under_way_make_the_next_one_slower() {
        let member = member();
        member.begin(Direction::Read, 0, at(0)).answered(0, at(0));
        let expected = || member.expected(member.expectation(1 << 20), at(0));
        let idle = expected();
        let under_way = member.begin(Direction::Read, 8 << 20, at(0));
        assert!(expected() > 5 * idle);
        assert!(member.hoped(1 << 20, at(0)) > 5 * idle, "though its rate is not known");
        drop(under_way);
        assert_eq!(expected(), idle);
    }

    #[test]
    fn small_answers_say_nothing_about_the_rate_and_large_ones_nothing_about_the_latency() {
        let member = member();
        member.begin(Direction::Read, 100, at(0)).answered(100, at(1));
        // A second more or less for the latency must not make a small answer look like a slow line.
        member.begin(Direction::Read, 65536, at(1)).answered(65536, at(3));
        let large = member.expectation(100 << 20);
        assert!(member.expected(large, at(3)) < at(30));
        member.begin(Direction::Read, 64 << 20, at(3)).answered(64 << 20, at(20));
        assert!(member.expected(member.expectation(0), at(20)) < at(2));
        assert!(member.expected(large, at(20)) > at(20));
    }

    #[test]
    fn call_that_began_behind_others_is_expected_after_them() {
        let member = member();
        member.begin(Direction::Read, 0, at(0)).answered(0, at(0));
        member.begin(Direction::Read, 1 << 20, at(0)).answered(1 << 20, at(1));
        let others = member.begin(Direction::Read, 9 << 20, at(1));
        let behind = member.expectation(1 << 20);
        assert_eq!(member.expected(behind, at(1)).as_secs(), 10);
        drop(others);
        assert_eq!(member.expected(behind, at(1)).as_secs(), 10, "from its own beginning");
    }

    #[test]
    fn failing_store_is_spared_longer_each_time_and_at_once_good_again() {
        let member = member();
        let error = StorageError::NoSpace { store: "test".to_owned() };
        let fail = |now| member.begin(Direction::Write, 0, now).failed(&error, now);
        fail(at(0));
        assert!(member.is_failing(Direction::Write, at(0)));
        assert!(!member.is_failing(Direction::Read, at(0)), "a full store is read");
        assert!(!member.is_failing(Direction::Write, at(1)));
        fail(at(1));
        assert!(member.is_failing(Direction::Write, at(2)));
        assert!(!member.is_failing(Direction::Write, at(3)));
        fail(at(3));
        member.begin(Direction::Write, 0, at(3)).answered(0, at(3));
        assert!(!member.is_failing(Direction::Write, at(3)));
    }
}
