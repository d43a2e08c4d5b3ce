//! How much came into a workspace on which day, as its log tells. Pure.
//!
//! *Invariants*: the log is read from its end, so what is left out is old, and how much of it is read is bounded: by entries, and by
//! pieces of the length of an answer; what was known before is read no second time.

use std::collections::BTreeMap;

use model::Entry;

/// How many days are told of, the one of now among them.
pub const DAYS_SHOWN: i64 = 30;

/// How many seconds a day has.
pub const SECONDS_OF_DAY: i64 = 86_400;

/// How many entries of the log are looked at.
const ENTRIES_MAX: u64 = 10_000;

/// How many pieces of the log are read.
const PIECES_MAX: u32 = 64;

/// How many entries the first piece has that is asked for.
const STRETCH: u64 = 256;

/// How much came on which day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Days {
    /// How many bytes of packs came on which day (in days since 1970, UTC, by the clocks of those who sent them), with nothing for a day
    /// on which none came.
    pub sums: BTreeMap<i64, u64>,
    /// The first day of which all is known; nothing where the whole log was looked at.
    pub since: Option<i64>,
}

impl Days {
    fn add(&mut self, day: i64, bytes: u64) {
        let sum = self.sums.entry(day).or_default();
        *sum = sum.saturating_add(bytes);
    }
}

/// A look at the log that is under way.
#[derive(Debug)]
pub struct DayScan {
    days: Days,
    today: i64,
    /// All after this entry was looked at.
    until: u64,
    /// What is up to this entry is not looked at.
    floor: u64,
    /// What was found up to `floor` when it was looked at before; nothing where it never was.
    known: Option<Days>,
    /// How many entries the next piece has that is asked for.
    stretch: u64,
    /// Whether it is known how many an answer has.
    is_measured: bool,
    pieces_left: u32,
    /// The day of the oldest entry that was looked at.
    oldest: Option<i64>,
}

impl DayScan {
    /// Begins to look at a log of so many entries, on this day. What was known of the days at an entry of the same log is taken on.
    pub fn new(length: u64, today: i64, known: Option<(u64, Days)>) -> Self {
        let first = length.saturating_sub(ENTRIES_MAX);
        let known = known.filter(|(seq, _)| (first..=length).contains(seq));
        let (floor, known) = match known {
            Some((seq, days)) => (seq, Some(days)),
            None => (first, (first == 0).then(Days::default)),
        };
        Self {
            days: Days::default(),
            today,
            until: length,
            floor,
            known,
            stretch: STRETCH,
            is_measured: false,
            pieces_left: PIECES_MAX,
            oldest: None,
        }
    }

    /// Returns the entry after which a piece of the log is to be read; nothing at the end.
    pub fn next(&self) -> Option<u64> {
        let is_end = self.until <= self.floor || self.pieces_left == 0;
        (!is_end).then(|| self.until.saturating_sub(self.stretch).max(self.floor))
    }

    /// Looks at the piece that [`Self::next`] has asked for: as many entries from there on as one answer has.
    pub fn note(&mut self, piece: &[Entry]) {
        let since = self.next().unwrap_or(self.until);
        self.pieces_left = self.pieces_left.saturating_sub(1);
        if piece.last().is_none_or(|last| last.seq < self.until) {
            // There are entries behind the piece that were not looked at either.
            self.stretch = (piece.len() as u64).max(1);
            self.is_measured = true;
            return;
        }
        for entry in piece.iter().take_while(|entry| entry.seq <= self.until) {
            let commit = &entry.commit;
            let day = commit.time.seconds.div_euclid(SECONDS_OF_DAY);
            let packs = commit.packs.iter().map(|pack| pack.length);
            let inline = commit.inline_packs.iter().map(|bytes| bytes.len() as u64);
            let bytes = packs.chain(inline).fold(0, u64::saturating_add);
            if bytes > 0 && self.is_shown(day) {
                self.days.add(day, bytes);
            }
        }
        let first = piece.first().map(|entry| entry.commit.time.seconds);
        self.oldest = first.map(|seconds| seconds.div_euclid(SECONDS_OF_DAY)).or(self.oldest);
        self.until = since;
        self.stretch = match self.is_measured {
            true => piece.len() as u64,
            false => self.stretch.saturating_mul(2),
        };
    }

    /// Tells whether a day is one of those that are told of. A clock that is wrong by more than a day says nothing about when something
    /// came.
    fn is_shown(&self, day: i64) -> bool {
        day > self.today - DAYS_SHOWN && day <= self.today + 1
    }

    /// Returns what was found.
    pub fn end(mut self) -> Days {
        match self.known.take().filter(|_| self.until <= self.floor) {
            Some(known) => {
                for (day, bytes) in known.sums {
                    if self.is_shown(day) {
                        self.days.add(day, bytes);
                    }
                }
                self.days.since = known.since;
            }
            // What came earlier on the day of the oldest entry was not read.
            None => self.days.since = Some(self.oldest.unwrap_or(self.today) + 1),
        }
        self.days
    }
}

#[cfg(test)]
mod tests {
    use model::testing::commit;
    use model::{Commit, EntryHash, PackId, PackRef, Timestamp};

    use super::*;

    const TODAY: i64 = 20_000;

    /// A log whose entry `n` came on a day with a pack of so many bytes.
    fn log(entries: &[(i64, u64)]) -> Vec<Entry> {
        let entry = |(place, (day, length)): (usize, &(i64, u64))| {
            let time = Timestamp { seconds: day * SECONDS_OF_DAY + 7, ..Timestamp::default() };
            let packs = vec![PackRef { id: PackId::from_bytes([1; 32]), length: *length }];
            let commit = Commit { time, packs, ..commit(1, Vec::new()) };
            Entry { seq: place as u64 + 1, previous: EntryHash::NONE, commit }
        };
        entries.iter().enumerate().map(entry).collect()
    }

    /// Looks at a log of which an answer has so many entries. Returns what was found, and how many pieces were read.
    fn look(log: &[Entry], known: Option<(u64, Days)>, piece_max: usize) -> (Days, u32) {
        let mut scan = DayScan::new(log.len() as u64, TODAY, known);
        let mut pieces = 0;
        while let Some(since) = scan.next() {
            let rest = &log[since as usize..];
            scan.note(&rest[..rest.len().min(piece_max)]);
            pieces += 1;
            assert!(pieces <= PIECES_MAX);
        }
        (scan.end(), pieces)
    }

    #[test]
    fn every_entry_is_looked_at_once_however_many_an_answer_has() {
        let days: Vec<_> = (0..1_000).map(|n| (TODAY - n % 7, 1 + n as u64)).collect();
        let log = log(&days);
        let mut expected = Days::default();
        for (day, bytes) in days {
            expected.add(day, bytes);
        }
        for piece_max in [20, 63, 64, 65, 100, 256, 5_000] {
            assert_eq!(look(&log, None, piece_max).0, expected, "{piece_max} in one answer");
        }
        assert_eq!(look(&[], None, 1).0, Days::default());
    }

    #[test]
    fn pieces_grow_so_a_long_log_is_read_in_few() {
        let long = log(&vec![(TODAY, 1); 12_000]);
        let (days, pieces) = look(&long, None, 100_000);
        assert_eq!(days.sums, BTreeMap::from([(TODAY, ENTRIES_MAX)]));
        assert_eq!(days.since, Some(TODAY + 1));
        assert!(pieces <= 6, "{pieces}");
    }

    #[test]
    fn of_large_entries_only_the_newest_are_read_and_that_is_said() {
        let days: Vec<_> = (0..2_000).map(|n| (TODAY - 19 + n / 100, 1)).collect();
        let (days, pieces) = look(&log(&days), None, 10);
        assert_eq!(pieces, PIECES_MAX);
        // One piece told how many an answer has.
        assert_eq!(days.since, Some(TODAY - 5));
        for day in TODAY - 5..=TODAY {
            assert_eq!(days.sums[&day], 100, "all of day {day} was to be read");
        }
        assert!(!days.sums.contains_key(&(TODAY - 7)));
        // One entry may be as long as an answer.
        let (days, pieces) = look(&log(&vec![(TODAY, 1); 300]), None, 1);
        assert_eq!(pieces, PIECES_MAX);
        assert_eq!(days.sums[&TODAY], u64::from(PIECES_MAX) - 1);
    }

    #[test]
    fn what_was_known_is_taken_on_and_days_that_are_over_are_left_out() {
        let all = log(&[(TODAY - 30, 1), (TODAY - 29, 2), (TODAY - 1, 4), (TODAY, 8), (TODAY, 16)]);
        let expected = BTreeMap::from([(TODAY - 29, 2), (TODAY - 1, 4), (TODAY, 24)]);
        assert_eq!(look(&all, None, 100).0, Days { sums: expected, since: None });
        let known = Days {
            sums: BTreeMap::from([(TODAY - 30, 1_000), (TODAY - 1, 500)]),
            since: Some(TODAY - 40),
        };
        let (days, pieces) = look(&all, Some((3, known.clone())), 100);
        let expected = BTreeMap::from([(TODAY - 1, 500), (TODAY, 24)]);
        assert_eq!((days, pieces), (Days { sums: expected, since: Some(TODAY - 40) }, 1));
        // Nothing is new, and what is known of a longer log is of another one.
        assert_eq!(look(&all, Some((5, known.clone())), 100).1, 0);
        assert_eq!(look(&all, Some((6, known)), 100).0.since, None);
    }

    #[test]
    fn clocks_that_are_wrong_by_days_are_not_believed() {
        let log = log(&[(TODAY + 2, 1), (TODAY + 1, 2), (i64::MIN / SECONDS_OF_DAY + 1, 4)]);
        let (days, _) = look(&log, None, 100);
        assert_eq!(days, Days { sums: BTreeMap::from([(TODAY + 1, 2)]), since: None });
    }
}
