//! What a benchmark has found, and its numbers.

use std::fmt::Write;
use std::time::Duration;

use super::plan::Operation;
use super::wire::Wire;

/// One operation.
#[derive(Debug, Clone)]
pub struct Record {
    /// From 0, in the order in which they began.
    pub number: u64,
    /// The thread, from 0.
    pub worker: usize,
    /// What it was.
    pub kind: Operation,
    /// Since the beginning.
    pub started: Duration,
    /// How long it took to make the file, which is not part of the operation.
    pub made: Duration,
    /// How long the operation took.
    pub took: Duration,
    /// Of the file.
    pub bytes: u64,
    /// Of the file, in the target.
    pub path: String,
    /// Why it failed.
    pub failure: Option<String>,
    /// Whether it does not count.
    pub is_warm_up: bool,
}

/// All operations, and what became of the files.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// In order.
    pub records: Vec<Record>,
    /// How many operations were to be counted.
    pub asked: u64,
    /// Of a processor, by this whole process.
    pub processor: Duration,
    /// Bytes of memory that this process has held at once at most, where the kernel tells.
    pub memory_peak: Option<u64>,
    /// What went over the wire, where it was to be captured.
    pub wire: Option<Wire>,
    /// Files of which the target said that they were written.
    pub acknowledged: u64,
    /// Of them, those that were not there in the end as they were written, with what was found.
    pub lost: Vec<String>,
    /// Of them, those that could not be read again: nobody knows.
    pub unread: u64,
}

/// Numbers of the operations of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// What they were.
    pub kind: Operation,
    /// How many came to a good end.
    pub done: u64,
    /// How many did not.
    pub failed: u64,
    /// Of those with a good end, in seconds: least, mean, median, 90, 99 of a hundred, most. Nothing if there was none.
    pub seconds: Option<[f64; 6]>,
    /// Bytes of files.
    pub bytes: u64,
}

/// What [`Summary::seconds`] are called.
pub const SECONDS: [&str; 6] = ["min", "mean", "p50", "p90", "p99", "max"];

impl Outcome {
    /// Returns those that count.
    pub fn counted(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| !record.is_warm_up)
    }

    /// Returns how many that count did not come to a good end.
    pub fn failed(&self) -> u64 {
        self.counted().filter(|record| record.failure.is_some()).count() as u64
    }

    /// Whether everything was done, and everything is there.
    pub fn is_good(&self) -> bool {
        let counted = self.counted().count() as u64;
        counted == self.asked && self.failed() == 0 && self.lost.is_empty() && self.unread == 0
    }

    /// Returns the numbers of each kind there was.
    pub fn summaries(&self) -> Vec<Summary> {
        let of_kind = |kind| {
            let records: Vec<&Record> = self.counted().filter(|it| it.kind == kind).collect();
            (!records.is_empty()).then(|| Summary::of(kind, &records))
        };
        Operation::DONE.into_iter().filter_map(of_kind).collect()
    }

    /// Returns the time from the first operation that counts to the end of the last one.
    pub fn length(&self) -> Duration {
        let ends = self.counted().map(|record| record.started + record.made + record.took);
        let begin = self.counted().map(|record| record.started).min();
        ends.max().unwrap_or_default().saturating_sub(begin.unwrap_or_default())
    }

    /// Returns bytes a second, by the clock, of all that came to a good end.
    pub fn throughput(&self) -> f64 {
        let good = self.counted().filter(|record| record.failure.is_none());
        let bytes: u64 = good.map(|record| record.bytes).sum();
        bytes as f64 / self.length().as_secs_f64().max(1e-9)
    }

    /// Writes every operation in a line.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "number,thread,operation,warm_up,started_s,made_s,took_s,bytes,path,failure\n",
        );
        for record in &self.records {
            let times = [record.started, record.made, record.took].map(|it| it.as_secs_f64());
            let failure = record.failure.as_deref().unwrap_or_default();
            // An operation that failed has no time that is one.
            let took = record.failure.is_none().then(|| format!("{:.6}", times[2]));
            // Writing to a String cannot fail.
            let _ok = writeln!(
                text,
                "{},{},{},{},{:.6},{:.6},{},{},{},{}",
                record.number,
                record.worker,
                record.kind.name(),
                u8::from(record.is_warm_up),
                times[0],
                times[1],
                took.unwrap_or_default(),
                record.bytes,
                cell(&record.path),
                cell(failure),
            );
        }
        text
    }
}

impl Summary {
    fn of(kind: Operation, records: &[&Record]) -> Self {
        let good: Vec<&&Record> = records.iter().filter(|it| it.failure.is_none()).collect();
        let mut seconds: Vec<f64> = good.iter().map(|it| it.took.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        let mean = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
        let numbers = seconds.first().zip(seconds.last()).map(|(least, most)| {
            let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| quantile(&seconds, share));
            [*least, mean, p50, p90, p99, *most]
        });
        Self {
            kind,
            done: good.len() as u64,
            failed: (records.len() - good.len()) as u64,
            seconds: numbers,
            bytes: good.iter().map(|record| record.bytes).sum(),
        }
    }
}

/// The least of some sorted values that is no less than this share of them (nearest rank).
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Makes a text safe in CSV.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64, millis: u64, failure: Option<&str>) -> Record {
        Record {
            number,
            worker: 0,
            kind: Operation::Upload,
            started: Duration::ZERO,
            made: Duration::ZERO,
            took: Duration::from_millis(millis),
            bytes: 10,
            path: format!("a,b/{number}"),
            failure: failure.map(str::to_owned),
            is_warm_up: number == 0,
        }
    }

    #[test]
    fn failures_count_and_are_never_fast() {
        let mut records: Vec<Record> = (0..=100).map(|it| record(it, it * 10, None)).collect();
        records.push(record(101, 0, Some("refused, \"at once\"")));
        let outcome = Outcome { records, asked: 101, acknowledged: 100, ..Outcome::default() };
        let [summary] = outcome.summaries()[..] else { panic!("{:?}", outcome.summaries()) };
        assert_eq!((summary.done, summary.failed, summary.bytes), (100, 1, 1000));
        let [least, mean, p50, p90, p99, most] = summary.seconds.unwrap();
        assert_eq!([least, p50, p90, p99, most], [0.01, 0.5, 0.9, 0.99, 1.0]);
        assert!((mean - 0.505).abs() < 1e-9, "{mean}");
        // All begin together here, and the longest takes a second.
        assert_eq!(outcome.length(), Duration::from_secs(1));
        assert_eq!(outcome.throughput(), 1000.0);
        assert!(!outcome.is_good());
        let csv = outcome.csv();
        assert_eq!(csv.lines().count(), 103);
        assert!(csv.ends_with("10,\"a,b/101\",\"refused, \"\"at once\"\"\"\n"), "{csv}");
    }

    #[test]
    fn without_a_good_end_there_are_no_times() {
        let records = [record(1, 5, Some("no"))];
        let seconds = Summary::of(Operation::Upload, &records.iter().collect::<Vec<_>>()).seconds;
        assert_eq!(seconds, None);
    }
}
