//! How long something takes, by the clock on the wall and by the processor.

use std::ops::{AddAssign, Sub};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What a stopwatch has measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Elapsed {
    /// On the wall.
    pub(crate) wall: Duration,
    /// Of a processor, by this thread.
    pub(crate) processor: Duration,
}

impl AddAssign for Elapsed {
    fn add_assign(&mut self, more: Self) {
        self.wall += more.wall;
        self.processor += more.processor;
    }
}

impl Sub for Elapsed {
    type Output = Self;

    fn sub(self, less: Self) -> Self {
        Self {
            wall: self.wall.saturating_sub(less.wall),
            processor: self.processor.saturating_sub(less.processor),
        }
    }
}

/// Measures one thread; it is read by the thread that started it.
pub(crate) struct Stopwatch {
    started: Instant,
    processor: Duration,
}

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "an experiment is about real time")]
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), processor: processor_time() }
    }

    pub(crate) fn read(&self) -> Elapsed {
        Elapsed { wall: self.started.elapsed(), processor: processor_time() - self.processor }
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
