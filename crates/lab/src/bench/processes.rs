//! What other programs cost during a benchmark: one that keeps a folder equal does the work that is measured there.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::LabError;

/// What all processes of a program have cost together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The name of the program.
    pub name: String,
    /// Of a processor.
    pub processor: Duration,
    /// Bytes of memory that they have held at once at most, as seen five times a second.
    pub memory_peak: u64,
}

impl Cost {
    pub(super) fn json(&self) -> Value {
        json!({
            "name": self.name,
            "processor_seconds": self.processor.as_secs_f64(),
            "memory_peak_bytes": self.memory_peak,
        })
    }
}

/// Programs that are looked at again and again.
#[derive(Debug)]
pub(super) struct Processes {
    programs: Vec<Program>,
}

#[derive(Debug)]
struct Program {
    name: String,
    /// Of each process, ticks of a processor: when it was first seen, and now.
    ticks: BTreeMap<Identity, (u64, u64)>,
    pages_peak: u64,
}

/// A process, by its number and when it began: numbers are given again.
type Identity = (u32, u64);

/// What the kernel tells of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    identity: Identity,
    ticks: u64,
    pages: u64,
}

/// So many letters of a name the kernel keeps.
const NAME_LENGTH_MAX: usize = 15;

impl Processes {
    /// Looks whether programs run.
    ///
    /// # Errors
    /// [`LabError::Benchmark`] where one of them does not run.
    pub(super) fn find(names: &[String]) -> Result<Self, LabError> {
        let program = |name: &String| {
            let (name, ticks, pages_peak) = (name.clone(), BTreeMap::new(), 0);
            Program { name, ticks, pages_peak }
        };
        let mut found = Self { programs: names.iter().map(program).collect() };
        found.look(true);
        match found.programs.iter().find(|program| program.ticks.is_empty()) {
            None => Ok(found),
            Some(Program { name, .. }) => Err(LabError::Benchmark {
                what: format!("processes: no process is called '{name}', so it was not begun"),
            }),
        }
    }

    /// Begins: what they have used until now does not count.
    pub(super) fn begin(&mut self) {
        for program in &mut self.programs {
            program.ticks.clear();
        }
        self.look(true);
    }

    /// Looks again.
    pub(super) fn sample(&mut self) {
        self.look(false);
    }

    fn look(&mut self, is_first: bool) {
        if !self.programs.is_empty() {
            self.take(&running(), is_first);
        }
    }

    fn take(&mut self, running: &[Stat], is_first: bool) {
        for program in &mut self.programs {
            let mut pages = 0;
            for stat in running.iter().filter(|stat| is_called(stat, &program.name)) {
                // What has begun since is of the benchmark from its first tick on.
                let before = if is_first { stat.ticks } else { 0 };
                let ticks = program.ticks.entry(stat.identity).or_insert((before, 0));
                ticks.1 = stat.ticks;
                pages += stat.pages;
            }
            program.pages_peak = program.pages_peak.max(pages);
        }
    }

    /// Looks a last time; returns what each program has cost.
    pub(super) fn end(mut self) -> Vec<Cost> {
        self.sample();
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1) as f64;
        let page_bytes = rustix::param::page_size() as u64;
        let cost = |program: Program| {
            let ticks = program.ticks.values().map(|(before, now)| now.saturating_sub(*before));
            let seconds = ticks.sum::<u64>() as f64 / ticks_per_second;
            Cost {
                name: program.name,
                processor: Duration::from_secs_f64(seconds),
                memory_peak: program.pages_peak.saturating_mul(page_bytes),
            }
        };
        self.programs.into_iter().map(cost).collect()
    }
}

fn is_called(stat: &Stat, name: &str) -> bool {
    let cut = name.len().min(NAME_LENGTH_MAX);
    stat.name.as_bytes() == &name.as_bytes()[..cut]
}

/// Returns all processes of which the kernel tells.
fn running() -> Vec<Stat> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let stat = |number| stat_of(&std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?);
    numbers.filter_map(stat).collect()
}

/// Reads a line of `/proc/PID/stat`. The name may have brackets and spaces in it.
fn stat_of(line: &str) -> Option<Stat> {
    let (head, tail) = line.rsplit_once(')')?;
    let (number, name) = head.split_once('(')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let number_at = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some(Stat {
        name: name.to_owned(),
        identity: (number.trim().parse().ok()?, number_at(19)?),
        ticks: number_at(11)? + number_at(12)?,
        pages: number_at(21)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(number: u32, name: &str, ticks: u64, pages: u64) -> Stat {
        Stat { name: name.to_owned(), identity: (number, 1000), ticks, pages }
    }

    fn processes(name: &str) -> Processes {
        let (name, ticks, pages_peak) = (name.to_owned(), BTreeMap::new(), 0);
        Processes { programs: vec![Program { name, ticks, pages_peak }] }
    }

    #[test]
    fn the_kernel_tells_a_name_times_and_pages() {
        let line = "77 (a (b) c) S 1 77 77 0 -1 4194560 500 0 0 0 31 11 5 6 20 0 4 0 9001 1000000 250 \
                    18446744073709551615 0 0 0";
        let expected =
            Stat { name: "a (b) c".to_owned(), identity: (77, 9001), ticks: 42, pages: 250 };
        assert_eq!(stat_of(line), Some(expected));
        for cut in [0, 5, 12, 40, line.len() - 50] {
            assert_eq!(stat_of(&line[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn what_was_used_before_does_not_count_and_what_ends_or_begins_meanwhile_does() {
        let mut found = processes("syncthing");
        found.take(&[stat(1, "syncthing", 500, 10), stat(9, "other", 900, 99)], true);
        found.take(&[stat(1, "syncthing", 530, 30), stat(2, "syncthing", 7, 5)], false);
        // The first has ended.
        found.take(&[stat(2, "syncthing", 20, 8), stat(9, "other", 990, 99)], false);
        let program = &found.programs[0];
        let used: u64 = program.ticks.values().map(|(before, now)| now - before).sum();
        assert_eq!((used, program.pages_peak), (30 + 20, 35));
    }

    #[test]
    fn names_are_cut_as_the_kernel_cuts_them() {
        assert!(is_called(&stat(1, "a-long-name-of-", 0, 0), "a-long-name-of-a-program"));
        assert!(!is_called(&stat(1, "syncthing", 0, 0), "syncth"));
    }

    #[test]
    fn this_program_is_found_and_one_that_does_not_run_is_named() {
        let own = std::fs::read_to_string("/proc/self/comm").unwrap().trim_end().to_owned();
        let found = Processes::find(std::slice::from_ref(&own)).unwrap();
        let [cost] = &found.end()[..] else { panic!("one was asked for") };
        assert!(cost.name == own && cost.memory_peak > 0, "{cost:?}");
        let error = Processes::find(&["no such program".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("'no such program'"), "{error}");
        assert_eq!(Processes::find(&[]).unwrap().end(), []);
    }
}
