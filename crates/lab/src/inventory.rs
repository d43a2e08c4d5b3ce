//! Every table and figure that there is to measure, and how: by the program itself, or from its source tree, since generators of load, browsers and
//! emulated services are no part of the program.

use crate::error::LabError;
use crate::experiment::{EXPERIMENTS, likeness};

/// Some tables and figures of one paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What it is called; its folder below `experiments` has the same name.
    pub name: &'static str,
    /// The paper.
    pub paper: &'static str,
    /// Which tables and figures of it.
    pub shows: &'static str,
    /// How they are measured.
    pub how: How,
}

/// How something is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By the program: `lab run`.
    Here,
    /// By this command, in the source tree; it is understood to take `--out DIR` besides.
    SourceTree(&'static str),
}

impl How {
    /// Says it, for an experiment of this name.
    pub fn words(self, name: &str) -> String {
        match self {
            Self::Here => format!("Measured by `syncline lab run {name}`."),
            Self::SourceTree(command) => format!("Measured in the source tree by `{command}`."),
        }
    }
}

/// The papers, in the order of the list.
const PAPERS: [&str; 5] =
    [STACKSYNC, METASYNC, WEBR2SYNC, "Syncany thesis (2011)", "BenchCloud (2014)"];
const STACKSYNC: &str = "StackSync (2014)";
const METASYNC: &str = "MetaSync (2015)";
const WEBR2SYNC: &str = "WebR2sync+ (2018)";

/// What the program does not measure by itself.
const ELSEWHERE: [Entry; 12] = [
    entry(
        "stacksync-figure-7",
        STACKSYNC,
        "figure 7",
        How::SourceTree("cargo xtask bench server --scaled"),
    ),
    entry(
        "metasync-figure-8",
        METASYNC,
        "figure 8",
        How::SourceTree("cargo xtask bench metasync --only agreement --seeds 31"),
    ),
    entry(
        "metasync-figure-9",
        METASYNC,
        "figure 9",
        How::SourceTree("cargo xtask bench metasync --only agreement --seeds 31"),
    ),
    entry(
        "metasync-figure-10",
        METASYNC,
        "figure 10",
        How::SourceTree("cargo xtask bench metasync --only folders --seeds 3"),
    ),
    entry(
        "metasync-table-7",
        METASYNC,
        "table 7",
        How::SourceTree("cargo xtask bench metasync --only folders --seeds 3"),
    ),
    entry("webr2sync-figure-2", WEBR2SYNC, "figures 2, 5, 6 and 8", WEB),
    entry("webr2sync-figure-3", WEBR2SYNC, "figures 3, 9 and 17", WEB),
    entry("webr2sync-figure-4", WEBR2SYNC, "figures 4 and 7", WEB),
    entry("webr2sync-figure-16", WEBR2SYNC, "figures 14 and 16", WEB),
    entry("webr2sync-figure-18", WEBR2SYNC, "figures 18 and 19", WEB),
    entry("webr2sync-figure-20", WEBR2SYNC, "figure 20", WEB),
    entry(
        "webr2sync-figure-21",
        WEBR2SYNC,
        "figures 21 and 22",
        How::SourceTree("cargo xtask bench web --only clients"),
    ),
];

const WEB: How = How::SourceTree("cargo xtask bench web");

const fn entry(name: &'static str, paper: &'static str, shows: &'static str, how: How) -> Entry {
    Entry { name, paper, shows, how }
}

/// Returns everything, paper by paper.
pub fn all() -> Vec<Entry> {
    let here = EXPERIMENTS.iter().map(|it| entry(it.name, it.paper, it.shows, How::Here));
    let mut all: Vec<Entry> = ELSEWHERE.into_iter().chain(here).collect();
    let place = |entry: &Entry| PAPERS.iter().position(|paper| *paper == entry.paper);
    all.sort_by_key(place);
    all
}

/// Finds one by its name.
///
/// # Errors
/// [`LabError::NoSuchExperiment`].
pub fn named(name: &str) -> Result<Entry, LabError> {
    let all = all();
    all.iter().find(|entry| entry.name == name).copied().ok_or_else(|| {
        let nearest = all.iter().max_by_key(|known| likeness(known.name, name));
        let nearest = nearest.map_or("", |known| known.name);
        LabError::NoSuchExperiment { name: name.to_owned(), nearest }
    })
}

/// Embeds the notes of folders.
macro_rules! notes {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../experiments/", $name, "/README.md")))),*]
    };
}

const NOTES: &[(&str, &str)] = &notes![
    "stacksync-figure-5",
    "stacksync-figure-6",
    "stacksync-figure-7",
    "metasync-figure-8",
    "metasync-figure-9",
    "metasync-figure-10",
    "metasync-table-5",
    "metasync-table-7",
    "webr2sync-figure-2",
    "webr2sync-figure-3",
    "webr2sync-figure-4",
    "webr2sync-figure-13",
    "webr2sync-figure-16",
    "webr2sync-figure-18",
    "webr2sync-figure-20",
    "webr2sync-figure-21",
    "syncany-chunking",
    "syncany-budget",
    "syncany-upload",
    "syncany-download",
    "syncany-deltas",
    "syncany-repacking",
    "benchcloud-threads",
    "benchcloud-sizes",
    "benchcloud-sensors",
    "benchcloud-readiness",
    "benchcloud-client",
];

/// Embeds drawings by their paths from the root of the source tree.
macro_rules! drawings {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../../../", $path)))),*]
    };
}

const DRAWINGS: &[(&str, &str)] = &drawings![
    "docs/figures/metasync-10.svg",
    "docs/figures/metasync-8.svg",
    "docs/figures/metasync-9.svg",
    "docs/figures/metasync-table-7-paper-folder.svg",
    "docs/figures/metasync-table-7-photos.svg",
    "docs/figures/metasync-table-7-source-tree.svg",
    "docs/figures/server-figure-7-nats.svg",
    "docs/figures/syncany-deltas-A.svg",
    "docs/figures/syncany-deltas-D.svg",
    "docs/figures/syncany-D-size-fingerprint.svg",
    "docs/figures/server-figure-7-rabbitmq.svg",
    "docs/figures/server-figure-7.svg",
    "docs/figures/server-scaled-saturation.svg",
    "docs/figures/web-breakdown-ours-append.svg",
    "docs/figures/web-figure-16-append-30ms.svg",
    "docs/figures/web-figure-16-cut-30ms.svg",
    "docs/figures/web-figure-16-dispersed-1000-30ms.svg",
    "docs/figures/web-figure-16-dispersed-100000-30ms.svg",
    "docs/figures/web-figure-16-insert-30ms.svg",
    "docs/figures/web-figure-17-append.svg",
    "docs/figures/web-figure-17-cut.svg",
    "docs/figures/web-figure-17-insert.svg",
    "docs/figures/web-figure-18.svg",
    "docs/figures/web-figure-19.svg",
    "docs/figures/web-figure-2-30ms.svg",
    "docs/figures/web-figure-20-append.svg",
    "docs/figures/web-figure-20-cut.svg",
    "docs/figures/web-figure-20-insert.svg",
    "docs/figures/web-figure-21.svg",
    "docs/figures/web-figure-22.svg",
    "docs/figures/web-figure-3-append.svg",
    "docs/figures/web-figure-5-30ms.svg",
    "docs/figures/web-figure-6-30ms.svg",
    "docs/figures/web-figure-8-30ms.svg",
    "docs/figures/web-figure-9-append.svg",
    "docs/figures/web-stagnation-large.svg",
    "docs/figures/web-stagnation.svg",
    "experiments/benchcloud-client/figure-4.10.svg",
    "experiments/benchcloud-client/figure-4.8.svg",
    "experiments/benchcloud-readiness/table-4.5.svg",
    "experiments/benchcloud-sizes/figure-4.5.svg",
    "experiments/benchcloud-sizes/figure-4.6.svg",
    "experiments/benchcloud-threads/figure-4.1-total.svg",
    "experiments/benchcloud-threads/figure-4.2-total.svg",
    "experiments/benchcloud-threads/figure-4.3-total.svg",
    "experiments/benchcloud-threads/figure-4.4-total.svg",
    "experiments/benchcloud-threads/figure-4.1-mean.svg",
    "experiments/benchcloud-sensors/table-4.2.svg",
    "experiments/benchcloud-sensors/table-4.3.svg",
    "experiments/metasync-table-5/table-5-1.svg",
    "experiments/metasync-table-5/table-5-2.svg",
    "experiments/syncany-budget/syncany-budget-A.svg",
    "experiments/syncany-budget/syncany-budget-D.svg",
    "experiments/syncany-repacking/repacking.svg",
    "experiments/syncany-repacking/repacking-releases.svg",
    "experiments/stacksync-figure-5/figure-5.svg",
    "experiments/stacksync-figure-5/figure-5-rates.svg",
    "experiments/stacksync-figure-6/figure-6a.svg",
    "experiments/stacksync-figure-6/figure-6b.svg",
    "experiments/webr2sync-figure-13/figure-13.svg",
];

/// Returns the notes of an experiment.
pub(crate) fn notes(name: &str) -> Option<&'static str> {
    NOTES.iter().find(|(known, _)| *known == name).map(|(_, notes)| *notes)
}

/// Returns a drawing of the notes of an experiment, by the path that stands there.
pub(crate) fn drawing(name: &str, path: &str) -> Option<&'static str> {
    let path = match path.strip_prefix("../../") {
        Some(path) => path.to_owned(),
        None => format!("experiments/{name}/{path}"),
    };
    DRAWINGS.iter().find(|(known, _)| *known == path).map(|(_, svg)| *svg)
}

#[cfg(test)]
mod tests;
