//! Whether lists can be believed: while objects come and go, and over several pages.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::SMALL;
use super::room::{Room, Tally, at_once, lock, rest, timed};
use crate::error::LabError;
use crate::stopwatch::Stopwatch;

/// How many put and remove objects while another one lists.
const WRITERS: usize = 8;

/// Each object with such a number is removed again.
const REMOVED_EVERY: u64 = 10;

/// While objects come and go, a list has so many times more pages, so that much happens between two of them.
const PAGES: usize = 10;

/// What stands before the names of the objects that are listed.
const FOLDER: &str = "list/";

/// What lists were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listings {
    /// How many objects were put, and acknowledged.
    pub put: u64,
    /// How many of them were removed, and acknowledged.
    pub removed: u64,
    /// Calls that put and removed.
    pub writes: Tally,
    /// Whole lists while that went on.
    pub lists: Tally,
    /// Of how many pages.
    pub pages: u64,
    /// What was wrong with them.
    pub flaws: Flaws,
    /// The lists after that, until one was right.
    pub last: Tally,
    /// Of how many pages the last one was.
    pub last_pages: u64,
    /// What was wrong with the first of them.
    pub last_flaws: Flaws,
    /// How long after the last call a list was right; nothing if the first was; absent where none ever was.
    pub settled: Option<Duration>,
}

/// What is wrong with lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flaws {
    /// Objects that were not in it, and whose put was acknowledged before it began.
    pub lacking: u64,
    /// Objects that were in it, and whose removal was acknowledged before it began.
    pub lingering: u64,
    /// Objects that were in it more than once.
    pub twice: u64,
    /// Objects that nobody had begun to put.
    pub strange: u64,
    /// Objects behind one that comes after them.
    pub disordered: u64,
    /// One of all these.
    pub example: Option<String>,
}

impl Flaws {
    /// Returns how many there are.
    pub fn all(&self) -> u64 {
        self.lacking + self.lingering + self.twice + self.strange + self.disordered
    }

    fn merge(&mut self, other: Self) {
        self.lacking += other.lacking;
        self.lingering += other.lingering;
        self.twice += other.twice;
        self.strange += other.strange;
        self.disordered += other.disordered;
        self.example = self.example.take().or(other.example);
    }
}

/// What is known of objects, each by its name.
#[derive(Debug, Clone, Default)]
struct Known {
    begun: BTreeSet<String>,
    put: BTreeSet<String>,
    removing: BTreeSet<String>,
    removed: BTreeSet<String>,
}

/// A list that began when `before` was known and ended when `after` was.
fn judge(listed: &[String], before: &Known, after: &Known) -> Flaws {
    let mut flaws = Flaws::default();
    let mut seen = BTreeSet::new();
    let mut note = |count: &mut u64, name: &String| {
        *count += 1;
        flaws.example.get_or_insert_with(|| name.clone());
    };
    let (mut twice, mut lingering, mut strange, mut lacking, mut disordered) = (0, 0, 0, 0, 0);
    let mut greatest: Option<&String> = None;
    for name in listed {
        if !seen.insert(name) {
            note(&mut twice, name);
        } else if greatest.is_some_and(|greatest| name < greatest) {
            note(&mut disordered, name);
        }
        greatest = greatest.max(Some(name));
        if before.removed.contains(name) {
            note(&mut lingering, name);
        } else if !after.begun.contains(name) {
            note(&mut strange, name);
        }
    }
    for name in before.put.difference(&after.removing) {
        if !seen.contains(name) {
            note(&mut lacking, name);
        }
    }
    Flaws { lacking, lingering, twice, strange, disordered, ..flaws }
}

pub(super) fn watch(room: &Room<'_>) -> Result<Listings, LabError> {
    let sizes = room.subject.sizes;
    let known = Mutex::new(Known::default());
    let (next, writers) = (AtomicU64::new(0), AtomicUsize::new(WRITERS));
    // The one that lists begins last: where it cannot, nobody waits for it, and it waits for nobody who has not begun.
    let (found, _) = at_once(WRITERS + 1, &|number| {
        let mut found = Listings::default();
        if number < WRITERS {
            let _end = End(&writers);
            write(room, &known, &next, &mut found);
        } else {
            let limit = (sizes.page / PAGES).max(2);
            while room.goes_on() {
                let is_last = writers.load(Ordering::SeqCst) == 0;
                let (flaws, pages) = list(room, &known, limit, &mut found.lists);
                found.flaws.merge(flaws);
                found.pages += pages;
                if is_last {
                    break;
                }
            }
        }
        found
    })?;
    let mut all = Listings::default();
    for found in found {
        all.put += found.put;
        all.removed += found.removed;
        all.writes.merge(found.writes);
        all.lists.merge(found.lists);
        all.pages += found.pages;
        all.flaws.merge(found.flaws);
    }
    settle(room, &known, &mut all);
    Ok(all)
}

/// Says that one writer less goes on, also where it has panicked.
struct End<'a>(&'a AtomicUsize);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn write(room: &Room<'_>, known: &Mutex<Known>, next: &AtomicU64, found: &mut Listings) {
    let bytes = room.bytes("listed", SMALL);
    while room.goes_on() {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= room.subject.sizes.listed {
            break;
        }
        let name = format!("{FOLDER}{number:06}");
        lock(known).begun.insert(name.clone());
        if timed(&mut found.writes, || room.put(&name, &bytes)).is_none() {
            continue;
        }
        found.put += 1;
        lock(known).put.insert(name.clone());
        if number.is_multiple_of(REMOVED_EVERY) {
            lock(known).removing.insert(name.clone());
            if timed(&mut found.writes, || room.delete(&name)).is_some() {
                found.removed += 1;
                lock(known).removed.insert(name);
            }
        }
    }
}

/// Lists everything, and judges it; a list that fails has no flaws. Returns of how many pages it was, too.
fn list(room: &Room<'_>, known: &Mutex<Known>, limit: usize, tally: &mut Tally) -> (Flaws, u64) {
    let before = lock(known).clone();
    let (mut names, mut pages): (Vec<String>, u64) = (Vec::new(), 0);
    // Who gives the same pages again and again would never come to an end.
    let enough = before.begun.len().max(room.subject.sizes.listed as usize) * 2 + limit;
    let whole = timed(tally, || {
        loop {
            let page = room.list_elsewhere(FOLDER, names.last().map(String::as_str), limit)?;
            pages += 1;
            let is_last = page.len() < limit;
            names.extend(page.into_iter().map(|listed| listed.path));
            if is_last || names.len() > enough || !room.goes_on() {
                return Ok(is_last || names.len() > enough);
            }
        }
    });
    match whole {
        Some((true, _)) => (judge(&names, &before, &lock(known)), pages),
        // Of a part of a list follows nothing.
        Some((false, _)) | None => (Flaws::default(), pages),
    }
}

/// Lists with full pages, when nothing happens any more, until a list is right.
fn settle(room: &Room<'_>, known: &Mutex<Known>, all: &mut Listings) {
    let watch = Stopwatch::start();
    let mut is_first = true;
    while room.goes_on() {
        let failed = all.last.bad();
        let (flaws, pages) = list(room, known, room.subject.sizes.page, &mut all.last);
        let is_right = flaws.all() == 0 && all.last.bad() == failed;
        if is_first {
            all.last_flaws = flaws;
        }
        if is_right {
            all.settled = Some(if is_first { Duration::ZERO } else { watch.wall() });
            all.last_pages = pages;
        }
        if is_right || watch.wall() >= room.subject.patience {
            break;
        }
        is_first = false;
        rest(watch.wall());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn known(begun: &str, put: &str, removing: &str, removed: &str) -> Known {
        let set = |text: &str| names(text).into_iter().collect();
        Known { begun: set(begun), put: set(put), removing: set(removing), removed: set(removed) }
    }

    #[test]
    fn a_list_is_judged_by_what_was_known_before_and_after_it() {
        let before = known("a b c d", "a b c", "c", "c");
        let after = known("a b c d e", "a b c d e", "b c", "c");
        // What comes or goes meanwhile may be in it, or not.
        for good in ["a", "a b", "a d", "a b d e"] {
            assert_eq!(judge(&names(good), &before, &after), Flaws::default(), "{good}");
        }
        let flaws = |text: &str| {
            let Flaws { lacking, lingering, twice, strange, disordered, example } =
                judge(&names(text), &before, &after);
            (lacking, lingering, twice, strange, disordered, example.unwrap())
        };
        assert_eq!(flaws("b d"), (1, 0, 0, 0, 0, "a".into()));
        assert_eq!(flaws("a c"), (0, 1, 0, 0, 0, "c".into()));
        assert_eq!(flaws("a a"), (0, 0, 1, 0, 0, "a".into()));
        assert_eq!(flaws("a z"), (0, 0, 0, 1, 0, "z".into()));
        assert_eq!(flaws("b a"), (0, 0, 0, 0, 1, "a".into()));
        assert_eq!(flaws(""), (1, 0, 0, 0, 0, "a".into()));
    }
}
