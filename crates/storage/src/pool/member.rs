//! One store of a pool, and how well it answers.

use std::sync::Arc;
use std::time::Duration;

use model::ids::StoreId;
use parking_lot::Mutex;

use crate::error::StorageError;
use crate::object_store::ObjectStore;

use super::presence::Presence;
use super::pulse::Pulse;
use super::turns::{Passage, Traffic, Turns};

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

/// How long a measurement of the line counts where bytes would be sent twice if it were wrong.
const MEASURED_FOR: Duration = Duration::from_secs(60);

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
    pub(crate) turns: Turns,
    health: Mutex<Health>,
    pulse: Mutex<Pulse>,
    presence: Mutex<Presence>,
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
    reading: Way,
    writing: Way,
    /// Of writes, see [`Cost`].
    byte_at_best: Option<(f64, Duration)>,
    byte_if_shared: Option<(f64, Duration)>,
}

/// One direction of a store's line: many are thinner one way than the other.
#[derive(Debug, Default)]
struct Way {
    /// Seconds a byte, over all calls at once.
    byte: Option<(f64, Duration)>,
    under_way: u64,
    trouble: Trouble,
}

impl Health {
    fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::Read => &self.reading,
            Direction::Write => &self.writing,
        }
    }

    fn way_mut(&mut self, direction: Direction) -> &mut Way {
        match direction {
            Direction::Read => &mut self.reading,
            Direction::Write => &mut self.writing,
        }
    }

    /// Returns how many seconds a byte takes; what is not known of one direction is taken from the other.
    fn byte(&self, direction: Direction) -> Option<(f64, Duration)> {
        self.way(direction).byte.or(self.reading.byte).or(self.writing.byte)
    }

    /// Returns how long a call takes whose bytes are the last of so many on the line.
    fn time(&self, direction: Direction, bytes: u64, now: Duration) -> Duration {
        let latency = faded(self.latency, LATENCY_AT_FIRST, now);
        let byte = faded(self.byte(direction), BYTE_AT_FIRST, now);
        seconds(latency + bytes as f64 * byte)
    }

    /// Learns the latency from a call that had hardly any bytes on the lines.
    fn learn_latency(&mut self, direction: Direction, bytes: u64, taken: f64, now: Duration) {
        let byte = self.byte(direction).map_or(0.0, |(byte, _)| byte);
        let latency = (taken - bytes as f64 * byte).max(taken * MOVING_MIN);
        learn(&mut self.latency, latency, LATENCY_AT_FIRST, now);
    }

    /// Learns how quick the line is from a read whose bytes were the last of `all`.
    fn learn_read(&mut self, all: u64, taken: f64, now: Duration) {
        let moving = self.moving(taken);
        learn(&mut self.reading.byte, moving / all as f64, BYTE_AT_FIRST, now);
    }

    /// Learns how quick the line is from a piece that was written.
    fn learn_write(&mut self, bytes: u64, passage: Passage, now: Duration) {
        let cost = Cost::of(bytes, passage, self.moving(passage.taken));
        learn(&mut self.writing.byte, cost.byte, BYTE_AT_FIRST, now);
        learn(&mut self.byte_at_best, cost.byte_at_best, BYTE_AT_FIRST, now);
        learn(&mut self.byte_if_shared, cost.byte_if_shared, BYTE_AT_FIRST, now);
    }

    /// Returns the part of a large call's time in which bytes were moved. Without a latency all of it counts, and the more bytes
    /// were on the line the less that is wrong.
    fn moving(&self, taken: f64) -> f64 {
        let latency = self.latency.map_or(0.0, |(latency, _)| latency);
        (taken - latency).max(taken * MOVING_MIN)
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))
}

/// What is to be expected of a write, by what was measured of writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outlook {
    /// Seconds until it is done at most, and at least.
    pub(crate) at_most: f64,
    pub(crate) at_least: f64,
    /// How quick the line is.
    pub(crate) cost: Cost,
}

/// Seconds a byte, as far as a measurement tells them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// At most.
    pub(crate) byte: f64,
    /// At least.
    pub(crate) byte_at_best: f64,
    /// If all stores of the pool shared one line.
    pub(crate) byte_if_shared: f64,
}

impl Cost {
    /// Tells it from a passage of which so many seconds went into moving. Where bodies wait for each other, all bytes before have
    /// gone; where they share the line evenly, the share tells. Which of the two is true is not known.
    fn of(bytes: u64, passage: Passage, moving: f64) -> Self {
        let Passage { taken, to_go, share, share_of_all } = passage;
        let part = moving / taken.max(f64::MIN_POSITIVE);
        let (in_turn, evenly) = (moving / to_go as f64, share * part / bytes as f64);
        Self {
            byte: in_turn.max(evenly),
            byte_at_best: in_turn.min(evenly),
            byte_if_shared: share_of_all * part / bytes as f64,
        }
    }
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
    /// What was on the line in both directions before, and in this one.
    before: u64,
    before_this_way: u64,
    started: Duration,
    number: u64,
}

impl Member {
    pub(crate) fn new(
        id: StoreId,
        name: String,
        store: Arc<dyn ObjectStore>,
        traffic: Traffic,
    ) -> Self {
        let (health, pulse, presence) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { id, name, store, turns: Turns::new(traffic), health, pulse, presence }
    }

    /// Returns what can be expected of a read of `bytes` bytes that begins now, behind what is under way.
    pub(crate) fn expectation(&self, bytes: u64) -> Expectation {
        Expectation { bytes: self.health.lock().reading.under_way + bytes }
    }

    /// Returns how long a read should take, by what is known of the store now.
    pub(crate) fn expected(&self, expectation: Expectation, now: Duration) -> Duration {
        self.health.lock().time(Direction::Read, expectation.bytes, now)
    }

    /// Returns how long it should take until a piece is written that is the last of so many bytes; `None` where a first guess would
    /// decide.
    pub(crate) fn expected_write(&self, to_go: u64, now: Duration) -> Option<Duration> {
        let health = self.health.lock();
        let is_known = to_go <= SMALL_ANSWER || health.writing.byte.is_some();
        is_known.then(|| health.time(Direction::Write, to_go, now))
    }

    /// Returns what is to be expected of a write that is done when so many bytes have gone, if large writes were measured
    /// lately.
    pub(crate) fn outlook(&self, to_go: u64, now: Duration) -> Option<Outlook> {
        let health = self.health.lock();
        let measured = |known: Option<(f64, Duration)>| {
            let is_new = |(_, at): &(f64, Duration)| now.saturating_sub(*at) < MEASURED_FOR;
            known.filter(is_new).map(|(value, _)| value)
        };
        let (byte, byte_at_best) = (measured(health.writing.byte)?, measured(health.byte_at_best)?);
        let byte_if_shared = measured(health.byte_if_shared)?;
        let latency = faded(health.latency, LATENCY_AT_FIRST, now);
        let time = |byte: f64| latency + to_go as f64 * byte;
        let (at_most, at_least) = (time(byte), time(byte_at_best));
        Some(Outlook { at_most, at_least, cost: Cost { byte, byte_at_best, byte_if_shared } })
    }

    /// Returns what is at least to be expected of a piece of `bytes` bytes that is not stored after such a passage, to a store of
    /// which nothing was measured: that it takes as long again.
    pub(crate) fn outlook_so_far(&self, bytes: u64, passage: Passage) -> Outlook {
        let moving = self.health.lock().moving(passage.taken);
        let cost = Cost::of(bytes, passage, moving);
        Outlook { at_most: passage.taken * 2.0, at_least: passage.taken * 2.0, cost }
    }

    /// Returns how long a small piece takes beside so many others that share the line evenly, if large writes were measured.
    pub(crate) fn takes_for_little(&self, beside: usize) -> Option<Duration> {
        let (byte, _) = self.health.lock().writing.byte?;
        Some(seconds(byte * (SMALL_ANSWER * (1 + beside as u64)) as f64))
    }

    /// Learns from a piece that was written.
    pub(crate) fn wrote(&self, bytes: u64, passage: Passage, now: Duration) {
        if bytes > SMALL_ANSWER {
            self.health.lock().learn_write(bytes, passage, now);
        }
    }

    /// Learns from a piece that left the line before it was written: it takes as long at least.
    pub(crate) fn took_longer(&self, bytes: u64, passage: Passage, now: Duration) {
        let mut health = self.health.lock();
        let cost = Cost::of(bytes, passage, health.moving(passage.taken));
        if health.writing.byte.is_none_or(|(byte, _)| cost.byte_at_best > byte) {
            health.learn_write(bytes, passage, now);
        }
    }

    /// Tells whether the store has answered anything yet.
    pub(crate) fn is_known(&self) -> bool {
        let health = self.health.lock();
        health.latency.is_some() || health.byte(Direction::Read).is_some()
    }

    /// Returns how long an answer may take at best, behind what is under way, for comparing stores: one that was not asked for
    /// long may have become faster. What nothing is known of is hoped to be quick with little, and as good as most with much; what
    /// has one piece of so many, to take so many times as long.
    pub(crate) fn hoped(&self, bytes: u64, now: Duration) -> Duration {
        let health = self.health.lock();
        let latency = faded(health.latency, 0.0, now);
        let byte = health.byte(Direction::Read);
        let best = byte.map_or(BYTE_AT_FIRST, |(byte, _)| byte.min(BYTE_AT_FIRST));
        let byte = faded(byte, best, now);
        let hoped = latency + (health.reading.under_way + bytes) as f64 * byte;
        seconds(hoped * self.presence.lock().one_of(now))
    }

    /// Learns whether a piece that was asked for was there.
    pub(crate) fn looked(&self, is_there: bool, now: Duration) {
        self.presence.lock().answered(is_there, now);
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
        health.way(direction).trouble.spared_until.is_some_and(|until| now < until)
    }

    /// Tells whether anything is read from the store now.
    pub(crate) fn is_read(&self) -> bool {
        self.health.lock().reading.under_way > 0
    }

    /// Returns how many bytes are on their way to the store.
    pub(crate) fn written_under_way(&self) -> u64 {
        self.health.lock().writing.under_way
    }

    /// Counts a call of about `bytes` bytes until the result is dropped.
    pub(crate) fn begin(&self, direction: Direction, bytes: u64, now: Duration) -> UnderWay<'_> {
        let mut health = self.health.lock();
        let before = health.reading.under_way + health.writing.under_way;
        let way = health.way_mut(direction);
        let before_this_way = way.under_way;
        way.under_way += bytes;
        let number = self.pulse.lock().begin(now);
        UnderWay { member: self, direction, bytes, before, before_this_way, started: now, number }
    }
}

impl UnderWay<'_> {
    /// Learns from an answer of `bytes` bytes; of large writes [`Member::wrote`] does.
    pub(crate) fn answered(&self, bytes: u64, now: Duration) {
        let seconds = now.saturating_sub(self.started).as_secs_f64();
        self.member.pulse.lock().answered(now);
        let mut health = self.member.health.lock();
        health.way_mut(self.direction).trouble = Trouble::default();
        if bytes + self.before <= SMALL_ANSWER {
            health.learn_latency(self.direction, bytes + self.before, seconds, now);
        } else if bytes > SMALL_ANSWER && self.direction == Direction::Read {
            health.learn_read(bytes + self.before_this_way, seconds, now);
        }
        // Else it waited for others, and says little.
    }

    /// Learns from a failure; those that say nothing about the store are ignored.
    pub(crate) fn failed(&self, error: &StorageError, now: Duration) {
        if !tells_of_trouble(error) {
            return;
        }
        let mut health = self.member.health.lock();
        health.way_mut(self.direction).trouble.failed(now);
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.member.pulse.lock().end(self.number);
        let mut health = self.member.health.lock();
        let way = health.way_mut(self.direction);
        way.under_way = way.under_way.saturating_sub(self.bytes);
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
    use super::super::turns::tests::ByHand;
    use super::*;
    use crate::opendal_store::OpendalStore;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn member() -> Member {
        let store = Arc::new(OpendalStore::memory("test"));
        let id = StoreId::from_bytes([1; 16]);
        let traffic = Traffic::new(Arc::new(ByHand::default()));
        Member::new(id, "test".to_owned(), store, traffic)
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
