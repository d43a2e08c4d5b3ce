//! Many worlds, on all processors.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::coverage::Coverage;
use crate::options::WorldOptions;
use crate::world::run;

/// A world that ended badly.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BadWorld {
    /// Its seed.
    pub seed: u64,
    /// What was wrong.
    pub violations: Vec<String>,
}

impl std::fmt::Display for BadWorld {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "seed {}: {}", self.seed, self.violations.join("; "))
    }
}

/// Runs the worlds of `seeds`, each with the options that `expand` makes of its seed, and returns the bad ones by seed.
/// A panic is a violation. `tell` hears of each world that has ended, from any thread.
pub fn run_worlds(
    seeds: Range<u64>,
    expand: impl Fn(u64) -> WorldOptions + Sync,
    coverage: &Coverage,
    tell: impl Fn(Option<&BadWorld>) + Sync,
) -> Vec<BadWorld> {
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut found = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return found;
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| run(expand(seed), coverage, false)));
            let violations = match outcome {
                Ok(outcome) => outcome.violations,
                Err(_) => vec!["it panicked".to_owned()],
            };
            let bad = (!violations.is_empty()).then_some(BadWorld { seed, violations });
            tell(bad.as_ref());
            found.extend(bad);
        }
    };
    let mut found: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    found.sort();
    found
}
