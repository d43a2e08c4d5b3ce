//! The folder of a probe in a store: it knows all names that were written, and counts every call.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use super::{CallError, Subject};
use crate::bench::driver::Listed;
use crate::error::LabError;
use crate::random::Random;
use crate::stopwatch::Stopwatch;

/// How many remove what was written.
const CLEANERS: usize = 16;

/// How often it is tried to remove what is still there.
const CLEANINGS: usize = 3;

/// A thread only waits and calls the store.
const STACK_BYTES: usize = 1 << 20;

/// The longest pause between two looks.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// How calls have ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// How long those took that succeeded.
    pub times: Vec<Duration>,
    /// How many the store wanted to be fewer.
    pub refused: u64,
    /// How many failed otherwise; those a store has no way to do are not among them.
    pub failed: u64,
    /// What was said of the first that was refused or failed.
    pub words: Option<String>,
}

impl Tally {
    /// Returns the time that this share of calls, from 0 to 1, was within.
    pub fn within(&self, share: f64) -> Option<Duration> {
        let mut times = self.times.clone();
        times.sort_unstable();
        let rank = (share * times.len() as f64).ceil() as usize;
        times.get(rank.saturating_sub(1)).copied()
    }

    /// Returns how many calls did not do what they should.
    pub fn bad(&self) -> u64 {
        self.refused + self.failed
    }

    pub(super) fn add<T>(&mut self, took: Duration, answer: &Result<T, CallError>) {
        match answer {
            Ok(_) => self.times.push(took),
            Err(error) => self.fail(error),
        }
    }

    pub(super) fn fail(&mut self, error: &CallError) {
        match error {
            CallError::Refused { .. } => self.refused += 1,
            CallError::Failed { .. } => self.failed += 1,
            // It was not tried.
            CallError::Unsupported { .. } => return,
        }
        self.words.get_or_insert_with(|| error.to_string());
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.times.extend(other.times);
        self.refused += other.refused;
        self.failed += other.failed;
        self.words = self.words.take().or(other.words);
    }
}

/// See the module.
pub(super) struct Room<'a> {
    pub(super) subject: &'a Subject<'a>,
    folder: &'a str,
    seed: u64,
    is_wanted: &'a (dyn Fn() -> bool + Sync),
    /// Names that were written, or may have been.
    written: Mutex<BTreeSet<String>>,
    tally: Mutex<Tally>,
}

impl<'a> Room<'a> {
    pub(super) fn new(
        subject: &'a Subject<'a>,
        folder: &'a str,
        seed: u64,
        is_wanted: &'a (dyn Fn() -> bool + Sync),
    ) -> Self {
        Self {
            subject,
            folder,
            seed,
            is_wanted,
            written: Mutex::default(),
            tally: Mutex::default(),
        }
    }

    pub(super) fn goes_on(&self) -> bool {
        (self.is_wanted)()
    }

    /// Returns bytes by chance that always are the same for a name, and of which nothing has to be remembered.
    pub(super) fn bytes(&self, name: &str, size: usize) -> Vec<u8> {
        let mix = |seed: u64, byte: u8| Random::new(seed ^ u64::from(byte)).next();
        let mut bytes = vec![0; size];
        Random::new(name.bytes().fold(self.seed, mix)).fill(&mut bytes);
        bytes
    }

    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), CallError> {
        let path = self.path(name);
        lock(&self.written).insert(path.clone());
        self.counted(|| self.subject.store.put(&path, bytes))
    }

    pub(super) fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, CallError> {
        let path = self.path(name);
        lock(&self.written).insert(path.clone());
        self.counted(|| self.subject.store.create(&path, bytes))
    }

    /// Reads by the connection that writes, as others do without a word.
    pub(super) fn get(&self, name: &str) -> Result<Option<Vec<u8>>, CallError> {
        self.counted(|| self.subject.store.get(&self.path(name)))
    }

    pub(super) fn list(&self, prefix: &str, limit: usize) -> Result<Vec<Listed>, CallError> {
        self.counted(|| self.subject.store.list(&self.path(prefix), None, limit))
    }

    pub(super) fn delete(&self, name: &str) -> Result<(), CallError> {
        self.counted(|| self.subject.store.delete(&self.path(name)))
    }

    /// Reads as somebody else does.
    pub(super) fn get_elsewhere(&self, name: &str) -> Result<Option<Vec<u8>>, CallError> {
        self.counted(|| self.subject.witness.get(&self.path(name)))
    }

    /// Lists as somebody else does; names are as they were put.
    pub(super) fn list_elsewhere(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Listed>, CallError> {
        let after = after.map(|after| self.path(after));
        let listed = self
            .counted(|| self.subject.witness.list(&self.path(prefix), after.as_deref(), limit))?;
        let own = |listed: Listed| {
            let name = listed.path.strip_prefix(self.folder).and_then(|it| it.strip_prefix('/'));
            Listed { path: name.unwrap_or(&listed.path).to_owned(), ..listed }
        };
        Ok(listed.into_iter().map(own).collect())
    }

    fn counted<T>(&self, call: impl FnOnce() -> Result<T, CallError>) -> Result<T, CallError> {
        let watch = Stopwatch::start();
        let answer = call();
        lock(&self.tally).add(watch.wall(), &answer);
        answer
    }

    pub(super) fn into_tally(self) -> Tally {
        self.tally.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes everything, and returns what may still be there.
    pub(super) fn clean_up(&self) -> Result<Vec<String>, LabError> {
        let mut left: Vec<String> = lock(&self.written).iter().cloned().collect();
        for _ in 0..CLEANINGS {
            if left.is_empty() {
                break;
            }
            let next = AtomicU64::new(0);
            let (kept, _) = at_once(CLEANERS.min(left.len()), &|_| {
                let mut kept = Vec::new();
                while let Some(path) = left.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    if self.counted(|| self.subject.store.delete(path)).is_err() {
                        kept.push(path.clone());
                    }
                }
                kept
            })?;
            left = kept.into_iter().flatten().collect();
        }
        left.sort_unstable();
        Ok(left)
    }
}

/// Times calls of one kind.
pub(super) fn timed<T>(
    tally: &mut Tally,
    call: impl FnOnce() -> Result<T, CallError>,
) -> Option<(T, Duration)> {
    let watch = Stopwatch::start();
    let answer = call();
    let took = watch.wall();
    tally.add(took, &answer);
    answer.ok().map(|value| (value, took))
}

/// Does something by several threads that begin together. Returns what each of them has got, and how long it took until the last was done.
pub(super) fn at_once<T: Send>(
    threads: usize,
    work: &(dyn Fn(usize) -> T + Sync),
) -> Result<(Vec<T>, Duration), LabError> {
    let gate = RwLock::new(());
    thread::scope(|scope| {
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut running = Vec::new();
        for number in 0..threads {
            let gate = &gate;
            let wait_and_work = move || {
                drop(gate.read());
                work(number)
            };
            // Where no more threads are to be had, those that wait go on and end.
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            let thread = builder
                .spawn_scoped(scope, wait_and_work)
                .map_err(|source| LabError::Threads { started: number, source })?;
            running.push(thread);
        }
        let watch = Stopwatch::start();
        drop(closed);
        let results = running.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let results = results.collect();
        Ok((results, watch.wall()))
    })
}

/// Waits a little until something is looked for again, and longer where it has been waited for long.
pub(super) fn rest(waited: Duration) {
    thread::sleep((waited / 10).clamp(Duration::from_millis(1), PAUSE_MAX));
}

/// A thread that has panicked ends everything, so that nobody goes on with what it has left.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
