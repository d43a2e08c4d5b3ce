//! What a benchmark has found, and its numbers.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::plan::Operation;
use super::wire::Wire;

pub use super::processes::Cost;

/// One operation.
#[derive(Debug, Clone)]
pub struct Record {
    /// The repetition, from 1.
    pub repetition: u64,
    /// From 0 in each repetition, in the order in which they began.
    pub number: u64,
    /// The thread, from 0.
    pub worker: usize,
    /// What it was.
    pub kind: Operation,
    /// Since the beginning of the first repetition.
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
    /// How many repetitions were to be done.
    pub repetitions: u64,
    /// How many operations were to be counted, in all repetitions together.
    pub asked: u64,
    /// What kept this computer from doing all repetitions.
    pub broken: Option<String>,
    /// Of a processor, by this whole process.
    pub processor: Duration,
    /// Bytes of memory that this process has held at once at most, where the kernel tells.
    pub memory_peak: Option<u64>,
    /// What other programs have cost, where the plan names some.
    pub processes: Vec<Cost>,
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

/// A number over repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle one; the lower of two.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

/// What the numbers of a [`Spread`] are called.
pub const SPREAD: [&str; 3] = ["median", "min", "max"];

/// How far repetitions agree. Those that came to their end count, whether operations in them failed or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeated {
    /// How many came to their end.
    pub whole: u64,
    /// Bytes a second.
    pub throughput: Spread,
    /// Of each kind of operation, in seconds, where one came to a good end.
    pub kinds: Vec<RepeatedKind>,
}

/// How far repetitions agree on operations of a kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RepeatedKind {
    /// What they were.
    pub kind: Operation,
    /// In how many repetitions one came to a good end.
    pub repetitions: u64,
    /// Of the medians, in seconds.
    pub p50: Spread,
    /// Of the times within which 99 of a hundred were done.
    pub p99: Spread,
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
        let is_done = counted == self.asked && self.broken.is_none();
        is_done && self.failed() == 0 && self.lost.is_empty() && self.unread == 0
    }

    /// Returns the numbers of each kind there was, in all repetitions together.
    pub fn summaries(&self) -> Vec<Summary> {
        summaries(&self.counted().collect::<Vec<_>>())
    }

    /// Returns the time from the first operation that counts to the end of the last one; of several repetitions, the sum of theirs.
    pub fn length(&self) -> Duration {
        self.by_repetition().values().map(|records| length(records)).sum()
    }

    /// Returns bytes a second, by the clock, of all that came to a good end.
    pub fn throughput(&self) -> f64 {
        throughput(&self.counted().collect::<Vec<_>>(), self.length())
    }

    /// Returns how far repetitions agree, where several were to be done and one came to its end.
    pub fn repeated(&self) -> Option<Repeated> {
        if self.repetitions < 2 {
            return None;
        }
        let each = self.asked / self.repetitions;
        let mut repetitions = self.by_repetition();
        repetitions.retain(|_, records| records.len() as u64 == each);
        let rates = repetitions.values().map(|records| throughput(records, length(records)));
        let throughput = Spread::of(rates.collect())?;
        let all: Vec<Summary> =
            repetitions.values().flat_map(|records| summaries(records)).collect();
        let of_kind = |kind| {
            let of_kind = all.iter().filter(|summary| summary.kind == kind);
            let seconds: Vec<[f64; 6]> = of_kind.filter_map(|summary| summary.seconds).collect();
            let spread = |index: usize| Spread::of(seconds.iter().map(|it| it[index]).collect());
            let (p50, p99) = (spread(2)?, spread(4)?);
            Some(RepeatedKind { kind, repetitions: seconds.len() as u64, p50, p99 })
        };
        let kinds = Operation::DONE.into_iter().filter_map(of_kind).collect();
        Some(Repeated { whole: repetitions.len() as u64, throughput, kinds })
    }

    /// Returns those that count of each repetition.
    fn by_repetition(&self) -> BTreeMap<u64, Vec<&Record>> {
        let mut repetitions = BTreeMap::<u64, Vec<&Record>>::new();
        for record in self.counted() {
            repetitions.entry(record.repetition).or_default().push(record);
        }
        repetitions
    }

    /// Writes every operation in a line.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "repetition,number,thread,operation,warm_up,started_s,made_s,took_s,bytes,path,failure\n",
        );
        for record in &self.records {
            let times = [record.started, record.made, record.took].map(|it| it.as_secs_f64());
            let failure = record.failure.as_deref().unwrap_or_default();
            // An operation that failed has no time that is one.
            let took = record.failure.is_none().then(|| format!("{:.6}", times[2]));
            // Writing to a String cannot fail.
            let _ok = writeln!(
                text,
                "{},{},{},{},{},{:.6},{:.6},{},{},{},{}",
                record.repetition,
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

impl Spread {
    /// Returns its numbers in the order of [`SPREAD`].
    pub fn numbers(self) -> [f64; 3] {
        [self.median, self.least, self.most]
    }

    /// Takes the numbers of all repetitions.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most) = values.first().zip(values.last())?;
        Some(Self { median: quantile(&values, 0.5), least: *least, most: *most })
    }
}

/// Returns the numbers of each kind there is among some operations.
fn summaries(records: &[&Record]) -> Vec<Summary> {
    let of_kind = |kind| {
        let records: Vec<&Record> = records.iter().copied().filter(|it| it.kind == kind).collect();
        (!records.is_empty()).then(|| Summary::of(kind, &records))
    };
    Operation::DONE.into_iter().filter_map(of_kind).collect()
}

/// Returns the time from the first of some operations to the end of the last one.
fn length(records: &[&Record]) -> Duration {
    let ends = records.iter().map(|record| record.started + record.made + record.took);
    let begin = records.iter().map(|record| record.started).min();
    ends.max().unwrap_or_default().saturating_sub(begin.unwrap_or_default())
}

fn throughput(records: &[&Record], length: Duration) -> f64 {
    let good = records.iter().filter(|record| record.failure.is_none());
    let bytes: u64 = good.map(|record| record.bytes).sum();
    bytes as f64 / length.as_secs_f64().max(1e-9)
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
            repetition: 1,
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
    fn repetitions_are_summed_up_by_the_middle_one_the_least_and_the_largest() {
        // Repetitions of two operations: the last was ended before its second one, and all of the third failed.
        let mut records = Vec::new();
        for (repetition, millis) in [(1, 30), (2, 10), (3, 0), (4, 20), (5, 1)] {
            let failure = (repetition == 3).then_some("no");
            for number in 1..=if repetition == 5 { 1 } else { 2 } {
                let started = Duration::from_secs(repetition * 100);
                records.push(Record {
                    repetition,
                    started,
                    ..record(number, millis * number, failure)
                });
            }
        }
        let outcome = Outcome { records, repetitions: 5, asked: 10, ..Outcome::default() };
        let repeated = outcome.repeated().unwrap();
        assert_eq!(repeated.whole, 4);
        // A repetition of failures counts.
        let rates = Spread { median: 20.0 / 0.06, least: 0.0, most: 20.0 / 0.02 };
        assert_eq!(repeated.throughput, rates);
        let [kind] = repeated.kinds[..] else { panic!("{repeated:?}") };
        assert_eq!((kind.kind, kind.repetitions), (Operation::Upload, 3));
        assert_eq!(kind.p50, Spread { median: 0.02, least: 0.01, most: 0.03 });
        assert_eq!(kind.p99, Spread { median: 0.04, least: 0.02, most: 0.06 });
        // Neither the time between repetitions is part of the length, nor are failures hidden.
        assert_eq!(outcome.length(), Duration::from_millis(60 + 20 + 40 + 1));
        assert_eq!((outcome.failed(), outcome.is_good()), (2, false));
        assert!(
            outcome
                .csv()
                .ends_with("\n5,1,0,upload,0,500.000000,0.000000,0.001000,10,\"a,b/1\",\n")
        );
        let once = Outcome { repetitions: 1, ..outcome };
        assert_eq!(once.repeated(), None);
    }

    #[test]
    fn without_a_good_end_there_are_no_times() {
        let records = [record(1, 5, Some("no"))];
        let seconds = Summary::of(Operation::Upload, &records.iter().collect::<Vec<_>>()).seconds;
        assert_eq!(seconds, None);
    }
}
