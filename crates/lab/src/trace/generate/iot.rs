//! BenchCloud's sensors (2014, section 4.2.4, tables 4.2 and 4.3, appendices A.4 and A.5).
//!
//! The thesis has: 10, 30, 50, 80 or 100 sensors, each of which sends ten files of 5 KB (5120 random bytes) at a fixed interval of 1, 10 or 60 seconds. In table 4.2 all begin at the same moment, the
//! worst case; in table 4.3 each one waits first, from 0 to 5 seconds where the interval is 1 second, and from 0 to one interval otherwise. Names and folder are those of appendix A.5.
//!
//! Ours: an interval goes from the start of one file to the start of the next. BenchCloud slept so long after each upload, and a trace does not know how long one takes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::Action;
use super::super::data::Kind;
use super::{Sheet, Workload};
use crate::error::LabError;
use crate::random::Random;

/// Sensors that send small files.
#[derive(Debug, Clone)]
pub struct Iot {
    /// Equal seeds make equal traces.
    pub seed: u64,
    /// How many clients share the sensors among them.
    pub clients: usize,
    /// How many sensors.
    pub sensors: usize,
    /// How many files each one sends.
    pub files: u64,
    /// Milliseconds from one file of a sensor to the next.
    pub interval_ms: u64,
    /// When they begin.
    pub start: Start,
}

/// When sensors begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// All at the same moment (table 4.2).
    Together,
    /// Each one at its own (table 4.3).
    Spread,
}

impl Default for Iot {
    /// The heaviest load of table 4.2, of which Dropbox lost 96.7 %.
    fn default() -> Self {
        let (sensors, files, interval_ms) = (100, 10, 1000);
        Self { seed: 2014, clients: 1, sensors, files, interval_ms, start: Start::Together }
    }
}

/// Of a reading in bytes.
const FILE_SIZE: u64 = 5120;

/// Sensors begin within this many milliseconds at least.
const SPREAD_MIN_MS: u64 = 5000;

const FOLDER: &str = "benchmark-test";

impl Workload for Iot {
    fn name(&self) -> &'static str {
        "iot"
    }

    fn about(&self) -> String {
        let Self { seed, sensors, files, interval_ms, start, .. } = self;
        format!(
            "BenchCloud 2014, section 4.2.4: {sensors} sensors, {files} files each, one in {interval_ms} ms, start {start:?}, seed {seed}"
        )
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn steps(&self, sheet: &mut Sheet<'_>) -> Result<(), LabError> {
        let mut random = Random::new(self.seed);
        sheet.initial(Action::MakeFolder { path: FOLDER.to_owned() })?;
        // Who is next, and with which of its files: in the order of times, however sensors overlap.
        let mut next: BinaryHeap<Reverse<(u64, usize, u64)>> = (0..self.sensors)
            .map(|sensor| {
                let first = match self.start {
                    Start::Together => 0,
                    Start::Spread => random.below(self.interval_ms.max(SPREAD_MIN_MS) + 1),
                };
                Reverse((first, sensor, 0))
            })
            .collect();
        while let Some(Reverse((at_ms, sensor, number))) = next.pop() {
            if number == self.files {
                continue;
            }
            let path = format!("{FOLDER}/iot-benchmark-{sensor:05}-{number:06}");
            let action =
                Action::Write { path, size: FILE_SIZE, data: Kind::Random, seed: random.next() };
            sheet.change(at_ms, sensor % self.clients.max(1), action)?;
            next.push(Reverse((at_ms + self.interval_ms, sensor, number + 1)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::parsed;
    use super::*;

    fn times(workload: &Iot) -> BTreeMap<String, Vec<u64>> {
        let steps = parsed(workload);
        let all: Vec<u64> = steps.iter().filter_map(|step| step.at_ms).collect();
        assert!(all.is_sorted(), "steps are in the order of their times");
        let mut of_sensors: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for step in &steps {
            if let (Some(at_ms), Action::Write { path, size, data, .. }) =
                (step.at_ms, &step.action)
            {
                assert_eq!((*size, *data), (5120, Kind::Random));
                let sensor = path.rsplit_once('-').unwrap().0.to_owned();
                of_sensors.entry(sensor).or_default().push(at_ms);
            }
        }
        of_sensors
    }

    #[test]
    fn all_sensors_of_table_4_2_send_at_the_same_moments() {
        let times = times(&Iot { interval_ms: 10_000, ..Iot::default() });
        assert_eq!(times.len(), 100);
        let wanted: Vec<u64> = (0..10).map(|number| number * 10_000).collect();
        assert!(times.values().all(|times| *times == wanted), "{times:?}");
    }

    #[test]
    fn those_of_table_4_3_begin_within_5_seconds_or_an_interval() {
        for (interval_ms, within) in [(1000, 5000), (10_000, 10_000), (60_000, 60_000)] {
            let workload = Iot { interval_ms, start: Start::Spread, ..Iot::default() };
            let times = times(&workload);
            let firsts: Vec<u64> = times.values().map(|times| times[0]).collect();
            assert!(firsts.iter().all(|first| *first <= within), "{firsts:?}");
            let mean = firsts.iter().sum::<u64>() / 100;
            assert!(mean.abs_diff(within / 2) < within / 8, "{mean} of {within}");
            let is_even =
                |times: &Vec<u64>| times.windows(2).all(|two| two[1] - two[0] == interval_ms);
            assert!(times.values().all(|times| times.len() == 10 && is_even(times)));
        }
    }
}
