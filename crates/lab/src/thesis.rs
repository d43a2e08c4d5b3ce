//! The experiments of the Syncany thesis (Heckel 2011, chapter 6): 144 ways of chunking, bundling and compressing, and ours.
//!
//! Read in this order: [`configuration`] (what is varied), [`faithful`] (what the thesis's own chunkers did), `container` and `chain` (what
//! becomes of new chunks), [`pass`] (one configuration over all versions of a dataset), [`ours`] (the same by what our program does),
//! [`deltas`] (what deltas would store), [`repacking`] (what cleanups leave of old versions), [`budget`] (a pause that keeps a share of the processor), [`outcome`] (the 30 variables), `report` (tables and figures), [`transfer`] (how
//! long it takes to send and to fetch what was stored).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::dataset::Dataset;
use crate::dataset::made::{self, Size};
use crate::environment::cores;
use crate::error::LabError;
use crate::output::Output;

pub mod budget;
pub mod configuration;
pub mod deltas;
pub mod faithful;
pub mod ours;
pub mod outcome;
pub mod pass;
pub mod repacking;
pub mod transfer;

mod chain;
mod container;
mod report;

use configuration::{Configuration, Variant};
use outcome::Row;

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folders that have a folder for each version, by the names that tables show; what has no folder is made. None: all that can be made.
    pub datasets: Vec<(String, Option<PathBuf>)>,
    /// Only configurations that have this in their names.
    pub only: Option<String>,
    /// How TTTD cuts, the first of which is drawn alone where there is room for one.
    pub variants: Vec<Variant>,
    /// Of made datasets.
    pub seed: u64,
    /// Where made datasets go.
    pub work: PathBuf,
    /// How large they are.
    pub size: Size,
}

/// Runs experiment 1 and the calculated part of experiment 3, and writes the tables and figures.
///
/// # Errors
/// [`LabError`]; what was measured before is lost.
pub fn run(plan: &Plan, output: &Output, say: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let configurations = plan.configurations()?;
    let mut rows: Vec<Row> = Vec::new();
    let datasets = plan.open_datasets()?;
    for dataset in &datasets {
        let versions = dataset.versions.len();
        say(&format!(
            "dataset {}: {versions} versions, {}",
            dataset.name,
            dataset.folder.display()
        ));
        let first = rows.len();
        rows.extend(ours::measure(dataset)?);
        say(&line("ours", &rows[first..]));
        // Fixed offsets have nothing to be unfaithful in.
        let is_of = |configuration: &Configuration, variant| {
            variant == Variant::Correct || configuration.chunking.fingerprint.is_some()
        };
        let passes: Vec<_> = plan
            .variants
            .iter()
            .flat_map(|variant| configurations.iter().map(move |it| (*it, *variant)))
            .filter(|(configuration, variant)| is_of(configuration, *variant))
            .collect();
        rows.extend(measure_side_by_side(&passes, dataset, say)?);
    }
    report::write(&rows, plan, output)
}

/// How many configurations with a pause are measured at once for each processor. They rest three quarters of their time.
const RESTING_AT_ONCE: usize = 2;

/// Measures configurations, each by one thread: those that only calculate first, as many at once as there are processors, and then those that
/// rest, which leave theirs to others meanwhile.
fn measure_side_by_side(
    passes: &[(Configuration, Variant)],
    dataset: &Dataset,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, LabError> {
    let mut done = BTreeMap::new();
    for (rests, at_once) in [(false, cores()), (true, RESTING_AT_ONCE * cores())] {
        let chosen = (0..passes.len()).filter(|number| (passes[*number].0.pause_ms > 0) == rests);
        measure_at_once(passes, &chosen.collect::<Vec<_>>(), at_once, dataset, |number, rows| {
            let (configuration, variant) = &passes[number];
            say(&line(&format!("{configuration} ({variant})"), &rows));
            done.insert(number, rows);
        })?;
    }
    Ok(done.into_values().flatten().collect())
}

/// Measures those of these numbers, so many at once, and hands over what was measured as soon as it is there.
fn measure_at_once(
    passes: &[(Configuration, Variant)],
    numbers: &[usize],
    at_once: usize,
    dataset: &Dataset,
    mut take: impl FnMut(usize, Vec<Row>),
) -> Result<(), LabError> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..at_once {
            let (next, sender) = (&next, sender.clone());
            scope.spawn(move || {
                while let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (configuration, variant) = passes[*number];
                    let measured = pass::measure(configuration, variant, dataset);
                    // Nobody listens any more once one has failed.
                    if sender.send((*number, measured)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for (number, measured) in receiver {
            take(number, measured?);
        }
        Ok(())
    })
}

impl Plan {
    fn configurations(&self) -> Result<Vec<Configuration>, LabError> {
        let mut all = Configuration::all();
        if let Some(pattern) = &self.only {
            all.retain(|configuration| configuration.to_string().contains(pattern.as_str()));
            if all.is_empty() {
                return Err(LabError::NoSuchConfiguration { pattern: pattern.clone() });
            }
        }
        Ok(all)
    }

    pub(crate) fn open_datasets(&self) -> Result<Vec<Dataset>, LabError> {
        let make = |name: &str| made::write(name, self.size, self.seed, &self.work);
        if self.datasets.is_empty() {
            return made::NAMES.into_iter().map(make).collect();
        }
        let open = |(name, folder): &(String, Option<PathBuf>)| match folder {
            Some(folder) => Dataset::open(name, folder),
            None => make(name),
        };
        self.datasets.iter().map(open).collect()
    }
}

/// What is said of a configuration when it is done.
fn line(name: &str, rows: &[Row]) -> String {
    let ratio = outcome::mean(rows, Row::ratio);
    let seconds = outcome::mean(rows, Row::seconds);
    format!("  {name:<48} {ratio:6.2} : 1   {seconds:7.3} s a version")
}

#[cfg(test)]
mod tests;
