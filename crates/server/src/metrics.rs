//! What a server counts, for whoever watches it.
//!
//! *Goals*: counting costs an atomic addition; labels are few and never what a caller has sent. *Non-goals*: keeping, adding
//! up and drawing: Prometheus reads the text that [`text`] writes. *Invariant*: a number only grows, or says how much there is now.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{Result, ServerError};
use crate::services::sync_service::Committed;

pub mod text;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns it.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many values there were up to each of some bounds.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// One more than the bounds, for all that is greater.
    counts: Vec<Counter>,
    sum: Counter,
}

impl Histogram {
    /// Makes one with these bounds, ascending.
    pub fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| Counter::default()).collect();
        Self { bounds, counts, sum: Counter::default() }
    }

    /// Notes a value.
    pub fn note(&self, value: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts[place].add(1);
        self.sum.add(value);
    }

    /// Notes a time, where the bounds are in microseconds.
    pub fn note_time(&self, time: Duration) {
        self.note(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }
}

/// The doors that are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Signing in, devices, workspaces.
    Rest,
    /// Live connections, counted where they begin.
    Live,
    /// Packs and pages.
    Packs,
    /// Health and readiness.
    Health,
    /// The web app itself; what it does comes in through the others.
    Web,
}

impl Door {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Rest, "rest"),
        (Self::Live, "live"),
        (Self::Packs, "packs"),
        (Self::Health, "health"),
        (Self::Web, "web"),
    ];

    /// Returns the door that a path leads to.
    pub fn of(path: &str) -> Self {
        let mut parts = path.trim_start_matches('/').split('/');
        match parts.next() {
            Some("healthz" | "readyz") => return Self::Health,
            Some("" | "icon.svg" | "files.txt" | "assets") => return Self::Web,
            Some("api") => {}
            _ => return Self::Rest,
        }
        match (parts.nth(1), parts.nth(1)) {
            (Some("live"), None) => Self::Live,
            (Some("workspaces"), Some("packs" | "objects")) => Self::Packs,
            _ => Self::Rest,
        }
    }
}

/// Whose fault an error of the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The database's.
    Database,
    /// The store's.
    Store,
}

impl Fault {
    /// Returns whose fault an error is; nobody's where it is the caller's.
    pub fn of(error: &ServerError) -> Option<Self> {
        match error {
            ServerError::Metadata(_) => Some(Self::Database),
            ServerError::Storage { .. } => Some(Self::Store),
            _ => None,
        }
    }
}

/// Times in microseconds: from what a disk needs to what a person gives up at.
const TIMES: &[u64] = &[
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000,
];

/// Sizes of groups.
const SIZES: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// The classes of status that are told apart: 1xx to 5xx.
const STATUS_CLASSES: usize = 5;

/// Everything that the doors count. What waits, and who is connected, is asked when somebody wants to know.
#[derive(Debug)]
pub struct Metrics {
    requests: [[Counter; STATUS_CLASSES]; Door::ALL.len()],
    /// From a commit that came in to its answer, where it was appended.
    pub commit_times: Histogram,
    /// Commits that were appended.
    pub commits_appended: Counter,
    /// Commits that stood in the log before.
    pub commits_repeated: Counter,
    /// Commits that were refused.
    pub commits_refused: Counter,
    /// Bytes of objects that came in and were stored.
    pub object_bytes_in: Counter,
    /// Bytes of objects that were sent.
    pub object_bytes_out: Counter,
    /// Sign-ins that were refused, and passwords and codes of devices that came too often.
    pub logins_refused: Counter,
    database_errors: Counter,
    store_errors: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Default::default(),
            commit_times: Histogram::new(TIMES),
            commits_appended: Counter::default(),
            commits_repeated: Counter::default(),
            commits_refused: Counter::default(),
            object_bytes_in: Counter::default(),
            object_bytes_out: Counter::default(),
            logins_refused: Counter::default(),
            database_errors: Counter::default(),
            store_errors: Counter::default(),
        }
    }
}

impl Metrics {
    /// Notes a request that was answered.
    pub fn request(&self, door: Door, status: u16) {
        let class = usize::from(status / 100).clamp(1, STATUS_CLASSES) - 1;
        let place = Door::ALL.iter().position(|(one, _)| *one == door).unwrap_or(0);
        self.requests[place][class].add(1);
    }

    /// Notes what became of a commit, and how long it took.
    pub fn commit(&self, outcome: &Result<Committed>, time: Duration) {
        match outcome {
            Ok(Committed { appended: Some(_), .. }) => {
                self.commits_appended.add(1);
                self.commit_times.note_time(time);
            }
            Ok(_) => self.commits_repeated.add(1),
            Err(error) => {
                self.commits_refused.add(1);
                self.error(error);
            }
        }
    }

    /// Notes an error, where it is not the caller's.
    pub fn error(&self, error: &ServerError) {
        if let Some(fault) = Fault::of(error) {
            self.fault(fault);
        }
    }

    /// Notes an error that is not the caller's.
    pub fn fault(&self, fault: Fault) {
        match fault {
            Fault::Database => self.database_errors.add(1),
            Fault::Store => self.store_errors.add(1),
        }
    }
}

/// How large the groups of the writer are.
#[derive(Debug)]
pub struct Groups(pub Histogram);

impl Default for Groups {
    fn default() -> Self {
        Self(Histogram::new(SIZES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_doors() {
        for (path, door) in [
            ("/healthz", Door::Health),
            ("/readyz", Door::Health),
            ("/api/v1/live", Door::Live),
            ("/api/v1/workspaces/00ff/packs/00ff", Door::Packs),
            ("/api/v1/workspaces/00ff/objects", Door::Packs),
            ("/api/v1/workspaces/00ff/objects/packs/00/00ff", Door::Packs),
            ("/api/v1/workspaces/packs", Door::Rest),
            ("/api/v1/login", Door::Rest),
            ("/", Door::Web),
            ("/icon.svg", Door::Web),
            ("/files.txt", Door::Web),
            ("/assets/index-1.js", Door::Web),
            ("/anything/else", Door::Rest),
        ] {
            assert_eq!(Door::of(path), door, "{path}");
        }
    }

    #[test]
    fn a_value_counts_at_its_bound() {
        let histogram = Histogram::new(&[10, 20]);
        for value in [0, 10, 11, 20, 21, u64::MAX / 2] {
            histogram.note(value);
        }
        let counts: Vec<u64> = histogram.counts.iter().map(Counter::get).collect();
        assert_eq!(counts, [2, 2, 2]);
    }
}
