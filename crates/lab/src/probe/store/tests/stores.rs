//! Stores to probe: one in memory, which does wrong what it is told to, and one in a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::bench::driver::Listed;
use crate::error::LabError;
use crate::files;
use crate::probe::store::room::lock;
use crate::probe::store::{CallError, Store};
use crate::stopwatch::Stopwatch;

/// What a store does wrong.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults {
    /// Others see a change so much later.
    pub(super) delay: Duration,
    /// Lists do not have the last few objects that were put.
    pub(super) stale_lists: bool,
    /// Lists have an object twice where a page begins.
    pub(super) doubled: bool,
    /// Every object of a list stands where it should not.
    pub(super) reversed: bool,
    /// What is removed stays in lists.
    pub(super) lingering: bool,
    /// So many calls at once, and no more, have room; others wait.
    pub(super) room: usize,
    /// More puts than these at once are refused.
    pub(super) refuses_above: usize,
    /// Of so many puts one is acknowledged, and nothing kept.
    pub(super) forgets: u64,
    /// Of so many puts one is kept, and not acknowledged.
    pub(super) unanswered: u64,
    /// Of so many puts one keeps something else.
    pub(super) damages: u64,
    /// An empty object is none.
    pub(super) no_empty: bool,
    /// Largest object.
    pub(super) size_max: usize,
    /// It cannot make an object only where none is.
    pub(super) no_create: bool,
    /// It looks whether there is one, and writes then.
    pub(super) racy_create: bool,
    /// It removes nothing, and says so.
    pub(super) keeps: bool,
    /// Nothing can be written.
    pub(super) closed: bool,
    /// An old state comes back with every third read.
    pub(super) flaps: bool,
}

/// What was done to an object, and when.
type History = Vec<(Duration, Option<Vec<u8>>)>;

#[derive(Debug)]
pub(super) struct Memory {
    faults: Faults,
    objects: Mutex<BTreeMap<String, History>>,
    recent: Mutex<Vec<String>>,
    clock: Stopwatch,
    puts: AtomicU64,
    reads: AtomicU64,
    inside: Mutex<usize>,
    left: Condvar,
    putting: AtomicUsize,
}

impl Memory {
    pub(super) fn new(faults: Faults) -> Self {
        Self {
            faults,
            objects: Mutex::default(),
            recent: Mutex::default(),
            clock: Stopwatch::start(),
            puts: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            inside: Mutex::new(0),
            left: Condvar::new(),
            putting: AtomicUsize::new(0),
        }
    }

    pub(super) fn write(&self, name: &str, bytes: Option<Vec<u8>>) {
        let mut objects = lock(&self.objects);
        objects.entry(name.to_owned()).or_default().push((self.clock.wall(), bytes));
    }

    /// Returns what others see of an object by now.
    fn seen<'a>(&self, history: &'a History, delay: Duration) -> Option<&'a Vec<u8>> {
        let now = self.clock.wall();
        let last = history.iter().rev().find(|(when, _)| *when + delay <= now);
        last.and_then(|(_, bytes)| bytes.as_ref())
    }

    pub(super) fn names(&self) -> BTreeSet<String> {
        let objects = lock(&self.objects);
        let is_there = |history: &History| self.seen(history, Duration::ZERO).is_some();
        objects.iter().filter(|(_, it)| is_there(it)).map(|(name, _)| name.clone()).collect()
    }

    /// Lets a call take a millisecond, and as many at once as there is room for.
    fn take_time(&self) {
        if self.faults.room == 0 {
            return;
        }
        let mut inside = lock(&self.inside);
        while *inside >= self.faults.room {
            inside = self.left.wait(inside).unwrap();
        }
        *inside += 1;
        drop(inside);
        thread::sleep(Duration::from_millis(2));
        *lock(&self.inside) -= 1;
        self.left.notify_one();
    }

    fn put_counted(&self, name: &str, bytes: &[u8]) -> Result<(), CallError> {
        let failed = |what: &str| Err(CallError::Failed { what: what.to_owned() });
        let number = self.puts.fetch_add(1, Ordering::Relaxed) + 1;
        let hits = |every: u64| every > 0 && number.is_multiple_of(every);
        if self.faults.closed {
            return failed("no such bucket");
        }
        if self.faults.size_max > 0 && bytes.len() > self.faults.size_max {
            return failed("it is too large");
        }
        if hits(self.faults.forgets) || self.faults.no_empty && bytes.is_empty() {
            return Ok(());
        }
        let mut bytes = bytes.to_vec();
        if let (true, Some(byte)) = (hits(self.faults.damages), bytes.last_mut()) {
            *byte ^= 1;
        }
        self.write(name, Some(bytes));
        let mut recent = lock(&self.recent);
        recent.push(name.to_owned());
        if hits(self.faults.unanswered) { failed("the answer was lost") } else { Ok(()) }
    }
}

impl Store for Memory {
    fn describe(&self) -> String {
        "memory".into()
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), CallError> {
        let putting = self.putting.fetch_add(1, Ordering::SeqCst) + 1;
        self.take_time();
        let is_refused = self.faults.refuses_above > 0 && putting > self.faults.refuses_above;
        let answer = if is_refused {
            Err(CallError::Refused { what: "slow down".into() })
        } else {
            self.put_counted(name, bytes)
        };
        self.putting.fetch_sub(1, Ordering::SeqCst);
        answer
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, CallError> {
        if self.faults.no_create {
            return Err(CallError::Unsupported { what: "it cannot".into() });
        }
        let mut objects = lock(&self.objects);
        let is_there = objects.get(name).is_some_and(|it| self.seen(it, Duration::ZERO).is_some());
        if is_there {
            return Ok(false);
        }
        if self.faults.racy_create {
            drop(objects);
            thread::sleep(Duration::from_millis(5));
            objects = lock(&self.objects);
        }
        let history = objects.entry(name.to_owned()).or_default();
        history.push((self.clock.wall(), Some(bytes.to_vec())));
        Ok(true)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, CallError> {
        let number = self.reads.fetch_add(1, Ordering::Relaxed);
        let objects = lock(&self.objects);
        let Some(history) = objects.get(name) else { return Ok(None) };
        if self.faults.flaps && number % 3 == 2 {
            return Ok(history.iter().rev().nth(1).and_then(|(_, bytes)| bytes.clone()));
        }
        Ok(self.seen(history, self.faults.delay).cloned())
    }

    fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Listed>, CallError> {
        let objects = lock(&self.objects);
        let recent = lock(&self.recent);
        let newest = &recent[recent.len().saturating_sub(4)..];
        let is_hidden = |name: &str| self.faults.stale_lists && newest.iter().any(|it| it == name);
        let size = |history: &History| match self.seen(history, self.faults.delay) {
            Some(bytes) => Some(bytes.len() as u64),
            None if self.faults.lingering => history.first().map(|_| 0),
            None => None,
        };
        let is_next = |name: &str| match after {
            Some(after) if self.faults.doubled => name >= after,
            Some(after) => name > after,
            None => true,
        };
        let mut listed: Vec<Listed> = objects
            .iter()
            .filter(|(name, _)| name.starts_with(prefix) && is_next(name) && !is_hidden(name))
            .filter_map(|(name, it)| Some(Listed { path: name.clone(), size: size(it)? }))
            .take(limit)
            .collect();
        if self.faults.reversed {
            listed.reverse();
        }
        Ok(listed)
    }

    fn delete(&self, name: &str) -> Result<(), CallError> {
        if self.faults.keeps {
            return Err(CallError::Failed { what: "nothing is removed here".into() });
        }
        if lock(&self.objects).contains_key(name) {
            self.write(name, None);
        }
        Ok(())
    }
}

/// A store whose objects are files of a folder; it has no way to make one only where none is.
#[derive(Debug)]
pub(super) struct InFolder(pub(super) std::path::PathBuf);

fn failed(error: impl fmt::Display) -> CallError {
    CallError::Failed { what: error.to_string() }
}

impl Store for InFolder {
    fn describe(&self) -> String {
        "folder".into()
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), CallError> {
        // Nobody may read half of it.
        let aside = self.0.join(format!("aside/{}", name.replace('/', "-")));
        files::write(&aside, bytes).map_err(failed)?;
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).map_err(failed)?;
        files::rename(&aside, &path).map_err(failed)
    }

    fn create(&self, _: &str, _: &[u8]) -> Result<bool, CallError> {
        Err(CallError::Unsupported { what: "it cannot".into() })
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, CallError> {
        match files::read(&self.0.join(name)) {
            Err(LabError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(None)
            }
            read => read.map(Some).map_err(failed),
        }
    }

    fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Listed>, CallError> {
        let (folder, _) = prefix.rsplit_once('/').unwrap();
        let Ok(entries) = files::list(&self.0.join(folder)) else { return Ok(Vec::new()) };
        let paths = entries.into_iter().map(|(name, _)| format!("{folder}/{name}"));
        let sized = |path: String| {
            let size = files::identity(&self.0.join(&path)).map_err(failed)?;
            Ok(size.map(|it| Listed { path, size: it.size() }))
        };
        let listed: Result<Vec<Option<Listed>>, CallError> = paths
            .filter(|path| path.starts_with(prefix) && after.is_none_or(|it| &path[..] > it))
            .map(sized)
            .collect();
        // A file that is gone meanwhile leaves no gap, which would look like the end.
        let mut listed: Vec<Listed> = listed?.into_iter().flatten().collect();
        listed.sort_by(|one, other| one.path.cmp(&other.path));
        listed.truncate(limit);
        Ok(listed)
    }

    fn delete(&self, name: &str) -> Result<(), CallError> {
        match self.get(name)? {
            Some(_) => files::remove(&self.0.join(name)).map_err(failed),
            None => Ok(()),
        }
    }
}
