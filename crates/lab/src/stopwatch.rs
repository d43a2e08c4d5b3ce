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
#[derive(Debug)]
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
        Elapsed { wall: self.wall(), processor: processor_time() - self.processor }
    }

    /// Returns the time on the wall alone, which any thread may read.
    pub(crate) fn wall(&self) -> Duration {
        self.started.elapsed()
    }
}

fn processor_time() -> Duration {
    time_of(ClockId::ThreadCPUTime)
}

/// Returns what all threads of this process have used of a processor so far.
pub(crate) fn process_time() -> Duration {
    time_of(ClockId::ProcessCPUTime)
}

fn time_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
