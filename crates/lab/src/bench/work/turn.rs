//! One repetition of a benchmark.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use crate::bench::generator::Generator;
use crate::bench::plan::Plan;
use crate::error::LabError;
use crate::random::Random;

/// What a repetition has for itself, so that it finds nothing that another one has left.
pub(super) struct Turn {
    /// From 1.
    pub(super) repetition: u64,
    pub(super) seed: u64,
    pub(super) generator: Generator,
    /// In the names of files.
    pub(super) name: String,
    /// The one file of all uploads, where a plan has one.
    pub(super) one_name: Option<String>,
    /// Where downloads go.
    pub(super) local_directory: Option<PathBuf>,
    pub(super) next: AtomicU64,
    /// Files of this repetition that can be read.
    pub(super) there: Mutex<Vec<String>>,
}

impl Turn {
    /// Begins a repetition. The first has the seed and the names of the plan.
    ///
    /// # Errors
    /// As of [`Generator::new`].
    pub(super) fn new(plan: &Plan, name: &str, repetition: u64) -> Result<Self, LabError> {
        let mut random = Random::new(plan.seed);
        let seed = (1..repetition).fold(plan.seed, |_, _| random.next());
        let generator = Generator::new(&plan.files, seed, plan.threads)?;
        let (one_name, folder) = (plan.target.name.clone(), plan.target.local_directory.clone());
        let is_first = repetition == 1;
        Ok(Self {
            repetition,
            seed,
            generator: if is_first { generator } else { generator.again() },
            name: if is_first { name.to_owned() } else { format!("{name}-r{repetition}") },
            // In front, where no ending is.
            one_name: one_name
                .map(|name| if is_first { name } else { format!("r{repetition}-{name}") }),
            // Beside the first one's, where no file lies that was downloaded.
            local_directory: folder.map(|folder| match is_first {
                true => folder,
                false => {
                    let mut beside = folder.components().collect::<PathBuf>().into_os_string();
                    beside.push(format!("-r{repetition}"));
                    beside.into()
                }
            }),
            next: AtomicU64::new(0),
            there: Mutex::default(),
        })
    }
}
