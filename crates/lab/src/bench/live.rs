//! A benchmark while it goes on, in a few lines: how far it is, how fast, and how long operations took over time.
//!
//! *Participants*: [`super::work`], which tells what has ended, and whoever shows the lines. *Goals*: what is kept does not grow with the operations.
//! *Non-goals*: exact numbers; those are in the results. *Invariants*: no clock: times are those of the progress.

use std::collections::VecDeque;
use std::time::Duration;

use super::work::Progress;

/// A bucket of times ends so many times later than it begins: what is shown is as exact.
const STEP: f64 = 1.02;

/// The end of the first bucket, in seconds, and as many as end at some hours.
const FIRST: f64 = 1e-6;
const BUCKETS: usize = 1200;

/// Over how much time operations are counted that are done "now".
const NOW: Duration = Duration::from_secs(3);

/// Columns of the drawing, and for how long the first ones stand.
const COLUMNS: usize = 48;
const COLUMN: Duration = Duration::from_millis(200);

/// The bar has so many places.
const BAR: usize = 30;

/// What columns and bars are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// Blocks.
    Unicode,
    /// What every terminal has.
    Ascii,
}

impl Letters {
    /// From the lowest to the highest.
    fn heights(self) -> [char; 8] {
        match self {
            Self::Unicode => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
            Self::Ascii => ['.', ':', '-', '=', '+', '*', '%', '#'],
        }
    }

    /// What is done, and what is not yet.
    fn bar(self) -> [&'static str; 2] {
        match self {
            Self::Unicode => ["█", "░"],
            Self::Ascii => ["#", "-"],
        }
    }
}

/// What is shown of a benchmark that goes on.
#[derive(Debug)]
pub struct Live {
    letters: Letters,
    done: u64,
    failed: u64,
    all: u64,
    elapsed: Duration,
    /// How many operations had ended at some times, until now.
    before: VecDeque<(Duration, u64)>,
    /// How many operations took how long.
    buckets: Vec<u64>,
    /// Of operations that ended in each column: how many, and the sum of their seconds.
    columns: Vec<(u64, f64)>,
    column: Duration,
}

impl Live {
    /// Begins.
    pub fn new(letters: Letters) -> Self {
        Self {
            letters,
            done: 0,
            failed: 0,
            all: 0,
            elapsed: Duration::ZERO,
            before: VecDeque::from([(Duration::ZERO, 0)]),
            buckets: vec![0; BUCKETS],
            columns: Vec::new(),
            column: COLUMN,
        }
    }

    /// Takes in what has happened since the last time.
    pub fn add(&mut self, progress: &Progress<'_>) {
        let Progress { done, failed, all, elapsed, ended } = progress;
        (self.done, self.failed, self.all, self.elapsed) = (*done, *failed, *all, *elapsed);
        self.before.push_back((*elapsed, *done));
        // One from before stays: from there on it is counted.
        while self.before.get(1).is_some_and(|(at, _)| *at + NOW <= *elapsed) {
            self.before.pop_front();
        }
        for operation in *ended {
            let seconds = operation.took.as_secs_f64();
            self.buckets[bucket(seconds)] += 1;
            self.draw(operation.at, seconds);
        }
    }

    fn draw(&mut self, at: Duration, seconds: f64) {
        let place = |column: Duration| (at.as_secs_f64() / column.as_secs_f64()) as usize;
        while place(self.column) >= COLUMNS {
            self.column *= 2;
            let pair = |pair: &[(u64, f64)]| {
                pair.iter().fold((0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
            };
            self.columns = self.columns.chunks(2).map(pair).collect();
        }
        let place = place(self.column);
        if self.columns.len() <= place {
            self.columns.resize(place + 1, (0, 0.0));
        }
        let (count, sum) = &mut self.columns[place];
        (*count, *sum) = (*count + 1, *sum + seconds);
    }

    /// Returns what is to be seen now.
    pub fn lines(&self) -> [String; 3] {
        let (done, all) = (self.done, self.all.max(1));
        let filled = (done.min(all) as f64 / all as f64 * BAR as f64) as usize;
        let [full, empty] = self.letters.bar();
        let bar = full.repeat(filled) + &empty.repeat(BAR - filled);
        let percent = done.min(all) as f64 / all as f64 * 100.0;
        let seconds = self.elapsed.as_secs_f64();
        let (since, count) = self.before.front().copied().unwrap_or_default();
        let rate = |count: u64, time: f64| if time > 0.0 { count as f64 / time } else { 0.0 };
        let now = rate(done.saturating_sub(count), seconds - since.as_secs_f64());
        [
            format!(
                "{bar} {percent:.0} %  {done} of {} done, {} failed, {seconds:.0} s",
                self.all, self.failed
            ),
            format!(
                "{now:.1} a second now, {:.1} in all; median {}, 99 of 100 within {}",
                rate(done, seconds),
                self.quantile(0.5),
                self.quantile(0.99)
            ),
            self.drawing(),
        ]
    }

    /// Draws how long operations took on average, from the beginning until now.
    fn drawing(&self) -> String {
        let mean = |(count, sum): &(u64, f64)| (*count > 0).then(|| sum / *count as f64);
        let means: Vec<Option<f64>> = self.columns.iter().map(mean).collect();
        let most = means.iter().flatten().copied().fold(0.0, f64::max);
        if most == 0.0 {
            return String::new();
        }
        let heights = self.letters.heights();
        let letter = |mean: &Option<f64>| match mean {
            Some(mean) => heights[((mean / most * 8.0) as usize).min(7)],
            None => ' ',
        };
        let drawn: String = means.iter().map(letter).collect();
        let column = self.column.as_secs_f64();
        format!("{drawn}  up to {}, {column} s each", millis(most))
    }

    /// Returns the least time that is no shorter than this share of all (nearest rank), as exact as its bucket.
    fn quantile(&self, share: f64) -> String {
        let all: u64 = self.buckets.iter().sum();
        let rank = ((share * all as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        // The middle of the bucket, as its steps go.
        let time = |bucket: usize| FIRST * STEP.powf(bucket as f64 - 0.5);
        found.map_or_else(|| "-".to_owned(), |bucket| millis(time(bucket)))
    }
}

fn bucket(seconds: f64) -> usize {
    let place = (seconds.max(FIRST) / FIRST).ln() / STEP.ln();
    (place.ceil() as usize).min(BUCKETS - 1)
}

fn millis(seconds: f64) -> String {
    match seconds * 1e3 {
        millis if millis < 10.0 => format!("{millis:.2} ms"),
        millis if millis < 1000.0 => format!("{millis:.0} ms"),
        millis => format!("{:.1} s", millis / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::work::Ended;

    /// As many operations as there are times, each in milliseconds, one after the other.
    fn live(letters: Letters, times: &[u64], all: u64) -> Live {
        let mut live = Live::new(letters);
        let mut at = Duration::ZERO;
        for (number, millis) in times.iter().enumerate() {
            let took = Duration::from_millis(*millis);
            at += took;
            let done = number as u64 + 1;
            let ended = [Ended { at, took }];
            live.add(&Progress { done, failed: 0, all, elapsed: at, ended: &ended });
        }
        live
    }

    #[test]
    fn it_says_how_far_it_is_how_fast_and_how_long_operations_take() {
        let [first, second, third] = live(Letters::Ascii, &[100; 20], 80).lines();
        assert_eq!(first, "#######----------------------- 25 %  20 of 80 done, 0 failed, 2 s");
        assert_eq!(
            second,
            "10.0 a second now, 10.0 in all; median 100 ms, 99 of 100 within 100 ms"
        );
        assert_eq!(third, "###########  up to 100 ms, 0.2 s each");
        let [first, _, third] = live(Letters::Unicode, &[50, 400, 200], 3).lines();
        assert_eq!(first, "█".repeat(30) + " 100 %  3 of 3 done, 0 failed, 1 s");
        assert_eq!(third, "▂ █▅  up to 400 ms, 0.2 s each");
    }

    #[test]
    fn nothing_is_said_of_times_before_there_is_one() {
        let progress = Progress { done: 2, failed: 2, all: 5, elapsed: Duration::ZERO, ended: &[] };
        for lines in [Live::new(Letters::Ascii).lines(), {
            let mut live = Live::new(Letters::Ascii);
            live.add(&progress);
            live.lines()
        }] {
            assert!(lines[1].contains("0.0 a second now") && lines[1].contains("median -,"));
            assert_eq!(lines[2], "");
        }
    }

    #[test]
    fn now_is_the_last_seconds_and_the_drawing_never_wider_than_it_may_be() {
        let slow_in_the_end: Vec<u64> = [vec![10; 1000], vec![1000; 30]].concat();
        let live = live(Letters::Unicode, &slow_in_the_end, 1030);
        let [_, second, third] = live.lines();
        assert!(second.starts_with("1.0 a second now, 25.8 in all; median 10"), "{second}");
        assert!(second.ends_with("99 of 100 within 997 ms"), "{second}");
        let drawn = third.split("  ").next().unwrap();
        assert!(drawn.chars().count() <= COLUMNS && drawn.ends_with('█'), "{third}");
        assert!(drawn.starts_with('▁'), "{third}");
    }

    #[test]
    fn times_are_shown_within_a_few_percent_however_long_they_are() {
        for seconds in [2e-6, 0.0004, 0.0231, 1.7, 333.0] {
            let place = bucket(seconds);
            let shown = FIRST * STEP.powf(place as f64 - 0.5);
            assert!((shown / seconds - 1.0).abs() < 0.011, "{seconds}: {shown}");
        }
        assert_eq!((bucket(0.0), bucket(1e9)), (0, BUCKETS - 1));
    }
}
