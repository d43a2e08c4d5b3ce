//! The experiments there are, each under one name.

use std::path::PathBuf;
use std::sync::Arc;

use crate::benchcloud;
use crate::dataset::Dataset;
use crate::dataset::made::Size;
use crate::error::LabError;
use crate::metasync;
use crate::output::Output;
use crate::stacksync;
use crate::targets::Targets;
use crate::thesis;
use crate::thesis::configuration::Variant;
use crate::webr2sync;

/// One experiment: some tables and figures of one paper.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// What it is asked for by; its folder below `experiments` has the same name.
    pub name: &'static str,
    /// The paper.
    pub paper: &'static str,
    /// Which tables and figures of it.
    pub shows: &'static str,
    run: Run,
}

/// Measures, writes, and says what was done so far.
pub(crate) type Run = fn(&Setting, &Output, &mut dyn FnMut(&str)) -> Result<(), LabError>;

/// What whoever asks may choose.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Folders that have a folder for each version, by the names that tables show; what has no folder is made. None: all that can be made.
    pub datasets: Vec<(String, Option<PathBuf>)>,
    /// Only what has this in its name.
    pub only: Option<String>,
    /// Whether the defects of a paper's own program are measured beside what it describes.
    pub with_faithful: bool,
    /// Equal seeds make equal data.
    pub seed: u64,
    /// A folder for data that is made, which stays beside the results.
    pub work: PathBuf,
    /// In the size and the time that the papers have, where less is measured otherwise.
    pub is_full: bool,
    /// What files go to.
    pub targets: Arc<dyn Targets>,
}

/// All experiments, in the order of the papers.
pub const EXPERIMENTS: [Experiment; 15] = [
    Experiment {
        name: "stacksync-figure-5",
        paper: STACKSYNC,
        shows: "figure 5",
        run: stacksync::overhead::measure,
    },
    Experiment {
        name: "stacksync-figure-6",
        paper: STACKSYNC,
        shows: "figures 6a and 6b",
        run: stacksync::times::measure,
    },
    Experiment {
        name: "metasync-table-5",
        paper: "MetaSync (2015)",
        shows: "tables 5 and 6",
        run: metasync::placement,
    },
    Experiment {
        name: "webr2sync-figure-13",
        paper: "WebR2sync+ (2018)",
        shows: "figures 13 and 15",
        run: webr2sync::locality,
    },
    Experiment {
        name: "syncany-chunking",
        paper: "Syncany thesis (2011)",
        shows: "tables 6.2 to 6.8, figures 6.6 to 6.15 and 6.20 to 6.23, appendices D to F",
        run: |setting, output, say| thesis::run(&setting.thesis(), output, say),
    },
    Experiment {
        name: "syncany-budget",
        paper: "Syncany thesis (2011)",
        shows: "the pause that section 6.4.4 asks for: a share of the processor is kept, whatever the data",
        run: |setting, output, say| thesis::budget::run(&setting.thesis(), output, say),
    },
    Experiment {
        name: "syncany-upload",
        paper: "Syncany thesis (2011)",
        shows: "figures 6.16 to 6.19",
        run: |setting, output, say| thesis::transfer::upload(&setting.thesis(), output, say),
    },
    Experiment {
        name: "syncany-download",
        paper: "Syncany thesis (2011)",
        shows: "table 6.9, figures 6.24 and 6.25",
        run: |setting, output, say| thesis::transfer::download(&setting.thesis(), output, say),
    },
    Experiment {
        name: "syncany-deltas",
        paper: "Syncany thesis (2011)",
        shows: "what deltas against the version before would store of the datasets, beside whole chunks",
        run: |setting, output, say| thesis::deltas::run(&setting.thesis(), output, say),
    },
    Experiment {
        name: "syncany-repacking",
        paper: "Syncany thesis (2011)",
        shows: "what a new device fetches too much where old versions are cleaned up",
        run: thesis::repacking::run,
    },
    Experiment {
        name: "benchcloud-threads",
        paper: BENCHCLOUD,
        shows: "figures 4.1 to 4.4",
        run: benchcloud::threads::measure,
    },
    Experiment {
        name: "benchcloud-sizes",
        paper: BENCHCLOUD,
        shows: "figures 4.5 and 4.6",
        run: benchcloud::sizes::measure,
    },
    Experiment {
        name: "benchcloud-sensors",
        paper: BENCHCLOUD,
        shows: "tables 4.2 and 4.3, figure 4.7",
        run: benchcloud::sensors::measure,
    },
    Experiment {
        name: "benchcloud-readiness",
        paper: BENCHCLOUD,
        shows: "tables 4.4 and 4.5",
        run: benchcloud::readiness::measure,
    },
    Experiment {
        name: "benchcloud-client",
        paper: BENCHCLOUD,
        shows: "figures 4.8 to 4.10, tables 4.6 and 4.7",
        run: benchcloud::client::measure,
    },
];

const STACKSYNC: &str = "StackSync (2014)";
const BENCHCLOUD: &str = "BenchCloud (2014)";

impl Experiment {
    /// Finds an experiment by its name, among those that the program measures.
    pub fn named(name: &str) -> Option<Self> {
        EXPERIMENTS.into_iter().find(|experiment| experiment.name == name)
    }

    /// Runs it, and writes what it found; `say` hears what was done so far.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn run(
        &self,
        setting: &Setting,
        output: &Output,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        (self.run)(setting, output, say)
    }
}

/// How many pairs of neighbouring letters two names have in common.
pub(crate) fn likeness(one: &str, other: &str) -> usize {
    let pairs = |name: &str| -> Vec<[u8; 2]> { name.as_bytes().array_windows().copied().collect() };
    let known = pairs(one);
    pairs(other).iter().filter(|pair| known.contains(pair)).count()
}

impl Setting {
    /// Keeps those that have in their names what somebody asked for.
    ///
    /// # Errors
    /// [`LabError::NothingNamed`].
    pub(crate) fn wanted<T>(
        &self,
        all: impl IntoIterator<Item = T>,
        name: impl Fn(&T) -> String,
    ) -> Result<Vec<T>, LabError> {
        let Some(pattern) = &self.only else { return Ok(all.into_iter().collect()) };
        let (wanted, others): (Vec<T>, Vec<T>) =
            all.into_iter().partition(|one| name(one).contains(pattern.as_str()));
        if wanted.is_empty() {
            let example = others.first().map(&name).unwrap_or_default();
            return Err(LabError::NothingNamed { pattern: pattern.clone(), example });
        }
        Ok(wanted)
    }

    /// Opens the datasets, and makes those that have no folder.
    ///
    /// # Errors
    /// [`LabError::NoSuchDataset`], [`LabError::NoVersions`], [`LabError::Read`], [`LabError::Write`].
    pub(crate) fn open_datasets(&self) -> Result<Vec<Dataset>, LabError> {
        self.thesis().open_datasets()
    }

    fn thesis(&self) -> thesis::Plan {
        let mut variants = vec![Variant::Correct];
        if self.with_faithful {
            variants.push(Variant::Faithful);
        }
        thesis::Plan {
            datasets: self.datasets.clone(),
            only: self.only.clone(),
            variants,
            seed: self.seed,
            work: self.work.clone(),
            size: if self.is_full { Size::Full } else { Size::Small },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_its_experiment() {
        for known in EXPERIMENTS {
            assert_eq!(Experiment::named(known.name).unwrap().name, known.name);
        }
        assert!(Experiment::named("metasync-figure-8").is_none(), "the source tree measures it");
    }
}
