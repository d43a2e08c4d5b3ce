//! Time that passes only when everybody waits.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use model::{Clock, Timestamp};
use parking_lot::Mutex;

/// The wall time at the beginning of every world, in seconds since 1970.
const EPOCH: i64 = 1_790_000_000;

/// The time of a world; clones share it.
#[derive(Debug, Clone, Default)]
pub struct VirtualTime(Arc<Mutex<Timers>>);

#[derive(Debug, Default)]
struct Timers {
    now: Duration,
    count: u64,
    waiting: BTreeMap<(Duration, u64), Waker>,
}

impl VirtualTime {
    /// Returns the time since the beginning of the world.
    pub fn now(&self) -> Duration {
        self.0.lock().now
    }

    /// Waits.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        let mut timers = self.0.lock();
        timers.count += 1;
        Sleep { time: self.clone(), key: (timers.now + duration, timers.count) }
    }

    /// Jumps to the next moment for which somebody waits. Returns whether there is one.
    pub fn jump(&self) -> bool {
        let mut timers = self.0.lock();
        let Some(((moment, _), waker)) = timers.waiting.pop_first() else { return false };
        timers.now = timers.now.max(moment);
        drop(timers);
        waker.wake();
        true
    }
}

/// A wait for a moment.
#[derive(Debug)]
pub struct Sleep {
    time: VirtualTime,
    key: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut timers = self.time.0.lock();
        if timers.now >= self.key.0 {
            timers.waiting.remove(&self.key);
            return Poll::Ready(());
        }
        timers.waiting.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.time.0.lock().waiting.remove(&self.key);
    }
}

/// The clock of one device: right about how time passes, and wrong about which year it is.
#[derive(Debug)]
pub struct DeviceClock {
    time: VirtualTime,
    offset_seconds: Mutex<i64>,
}

impl DeviceClock {
    /// Makes a clock that is wrong by so many seconds.
    pub fn new(time: VirtualTime, offset_seconds: i64) -> Self {
        Self { time, offset_seconds: Mutex::new(offset_seconds) }
    }

    /// Sets the clock.
    pub fn set_offset(&self, offset_seconds: i64) {
        *self.offset_seconds.lock() = offset_seconds;
    }
}

impl Clock for DeviceClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.time.now();
        let seconds = EPOCH + *self.offset_seconds.lock() + elapsed.as_secs() as i64;
        Timestamp { seconds, nanoseconds: elapsed.subsec_nanos() }
    }

    fn elapsed(&self) -> Duration {
        self.time.now()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.time.sleep(duration))
    }
}
