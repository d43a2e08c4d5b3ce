//! What is fetched too much of a folder that has been changed for long: table 6.8 of the thesis, where old versions are cleaned up.
//!
//! The thesis counts what a version's multichunks hold that it has no use for, and nothing there packs them anew, so that this grows. Here the
//! versions of a dataset come one after the other into a workspace over a folder, by the program itself, and after each a cleanup keeps the last
//! one only, and packs anew where that pays. What a new device then fetches and no file needs is the same measure.

use std::fmt::Write;
use std::path::Path;

use super::report::names;
use crate::dataset::Dataset;
use crate::environment;
use crate::error::LabError;
use crate::experiment::Setting;
use crate::files::{self, Found};
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};
use crate::room::Room;
use crate::targets::{CleanedUp, Workspace, no_workspace};

/// What the thesis printed: table 6.8, the mean over versions in multichunks of 250 KB, each version fetched whole.
const EXPECTED: &str = include_str!("../../../../experiments/syncany-repacking/expected.csv");

/// What is there after a version came and a cleanup went.
struct Step {
    dataset: String,
    version: String,
    /// Of its files.
    bytes: u64,
    left: CleanedUp,
}

impl Step {
    /// How much of what is fetched no file needs, in percent of what they need, as the thesis counts.
    fn overhead(&self) -> f64 {
        let CleanedUp { packs, needless, .. } = self.left;
        100.0 * needless as f64 / packs.saturating_sub(needless).max(1) as f64
    }
}

/// Measures over all datasets, and writes.
///
/// # Errors
/// [`LabError`].
pub fn run(setting: &Setting, output: &Output, say: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let mut steps = Vec::new();
    for dataset in &setting.open_datasets()? {
        let found = of_dataset(setting, dataset)?;
        if let Some(last) = found.last() {
            let (overhead, count) = (last.overhead(), found.len());
            say(&format!(
                "dataset {}: after {count} versions {overhead:.1} % is fetched too much",
                dataset.name
            ));
        }
        steps.extend(found);
    }
    output.write_csv("syncany-repacking", &csv(&steps))?;
    let page = environment::end(page(&steps), &[("seed", setting.seed.to_string())]);
    output.write_page("syncany-repacking", &page)
}

/// Lets the versions of a dataset come, each followed by a cleanup.
fn of_dataset(setting: &Setting, dataset: &Dataset) -> Result<Vec<Step>, LabError> {
    let room = Room::new(&setting.work)?;
    let workspace = setting.targets.workspace(room.path()).map_err(no_workspace)?;
    let step = |version: &String| {
        let bytes = put(dataset, version, workspace.as_ref())?;
        workspace.send().map_err(no_workspace)?;
        let left = workspace.clean_up().map_err(no_workspace)?;
        Ok(Step { dataset: dataset.name.clone(), version: version.clone(), bytes, left })
    };
    dataset.versions.iter().map(step).collect()
}

/// Makes a folder what a version is, writes only what is other in it, and returns how many bytes the version has.
fn put(dataset: &Dataset, version: &str, workspace: &dyn Workspace) -> Result<u64, LabError> {
    let (root, folder) = (dataset.folder.join(version), workspace.folder());
    // First, since a name may have become a folder.
    for old in files::below(folder)?.iter().filter(|old| !is_of_the_program(folder, old)) {
        let name = old.strip_prefix(folder).unwrap_or(old);
        if !matches!(files::look(&root.join(name))?, Some(Found::File { .. })) {
            files::remove(old)?;
        }
    }
    let mut bytes = 0;
    for path in dataset.files(version)? {
        let to = folder.join(path.strip_prefix(&root).unwrap_or(&path));
        let file = files::read(&path)?;
        bytes += file.len() as u64;
        match files::look(&to)? {
            Some(Found::File { .. }) if files::read(&to)? == file => {}
            // Nothing is in it any more.
            Some(Found::Folder) => {
                files::remove_all(&to)?;
                files::write(&to, &file)?;
            }
            _ => files::write(&to, &file)?,
        }
    }
    Ok(bytes)
}

/// Whether a file is one in which the program keeps what it knows of the folder.
fn is_of_the_program(folder: &Path, path: &Path) -> bool {
    let first = path.strip_prefix(folder).ok().and_then(|name| name.iter().next());
    first.is_some_and(|first| first.to_string_lossy().starts_with(".syncline"))
}

/// Returns what the thesis printed of a dataset, in percent.
fn printed(dataset: &str) -> Option<f64> {
    let line = EXPECTED.lines().find_map(|line| line.strip_prefix(dataset)?.strip_prefix(','));
    line.and_then(|cell| cell.parse().ok())
}

fn csv(steps: &[Step]) -> String {
    let mut text = String::from(
        "dataset,version,bytes,pack_bytes,needless_bytes,overhead_percent,rewritten_bytes\n",
    );
    for step in steps {
        let Step { dataset, version, bytes, left } = step;
        // Writing to a String cannot fail.
        let _ok = writeln!(
            text,
            "{dataset},{version},{bytes},{},{},{:.2},{}",
            left.packs,
            left.needless,
            step.overhead(),
            left.rewritten
        );
    }
    text
}

fn page(steps: &[Step]) -> Page {
    let datasets = names(steps.iter().map(|step| &step.dataset));
    let row = |dataset: &String| {
        let of_it: Vec<&Step> = steps.iter().filter(|step| step.dataset == *dataset).collect();
        let overheads = || of_it.iter().map(|step| step.overhead());
        let last = of_it.last();
        let megabytes = |value: fn(&Step) -> u64| {
            last.map_or_else(String::new, |step| format!("{:.2}", value(step) as f64 / 1e6))
        };
        vec![
            dataset.clone(),
            of_it.len().to_string(),
            printed(dataset).map_or_else(String::new, |printed| format!("{printed:.1}")),
            last.map_or_else(String::new, |step| format!("{:.1}", step.overhead())),
            format!("{:.1}", overheads().sum::<f64>() / of_it.len().max(1) as f64),
            format!("{:.1}", overheads().fold(0.0, f64::max)),
            megabytes(|step| step.bytes),
            megabytes(|step| step.left.packs),
            format!("{:.2}", of_it.iter().map(|it| it.left.rewritten).sum::<u64>() as f64 / 1e6),
        ]
    };
    let headings = [
        "dataset",
        "versions",
        "the thesis, mean, %",
        "after the last cleanup, %",
        "mean, %",
        "most, %",
        "MB of the last version",
        "MB in packs",
        "MB packed anew, all cleanups",
    ];
    Page::new("What is fetched too much, with cleanups")
        .text("Versions come one after the other into a workspace over a folder, and after each a cleanup keeps the last one only. How much of what packs then hold no file needs, in percent of what files need. The thesis's figure (table 6.8) is of multichunks of 250 KB that nothing packs anew, over all versions. Packs have a few kilobytes besides that are in the log as long as they are small.")
        .table(&headings, datasets.iter().map(row).collect())
        .drawing("repacking", drawing(steps, &datasets))
}

fn drawing(steps: &[Step], datasets: &[String]) -> String {
    let ours = datasets.iter().map(|dataset| {
        let of_it = steps.iter().filter(|step| step.dataset == *dataset);
        let points = (1_u32..).zip(of_it).map(|(at, step)| (f64::from(at), step.overhead()));
        Series::ours(format!("{dataset}, ours"), points.collect())
    });
    let theirs = datasets.iter().filter_map(|dataset| {
        let count = steps.iter().filter(|step| step.dataset == *dataset).count() as f64;
        let printed = printed(dataset)?;
        Some(Series::published(
            format!("{dataset}, thesis"),
            vec![(1.0, printed), (count, printed)],
        ))
    });
    let plot = Plot {
        title: "What is fetched too much after each version and its cleanup".to_owned(),
        across: "version".to_owned(),
        up: "% of what is needed".to_owned(),
        series: ours.chain(theirs).collect(),
    };
    plot.lines()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::testing::setting;

    #[test]
    fn each_version_comes_as_it_is_and_what_is_left_is_compared_with_what_is_needed() {
        let room = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("d/1/a", "one"),
            ("d/1/b", "file"),
            ("d/2/a", "two"),
            ("d/2/b/c", "three"),
            ("d/3/b", "file"),
        ] {
            files::write(&room.path().join(path), text).unwrap();
        }
        let mut setting = setting(&room.path().join("work"), None);
        setting.datasets = vec![("D".to_owned(), Some(room.path().join("d")))];
        let datasets = setting.open_datasets().unwrap();
        let steps = of_dataset(&setting, &datasets[0]).unwrap();
        // Of files in a folder nothing is needless.
        let found: Vec<_> =
            steps.iter().map(|it| (it.bytes, it.left.packs, it.left.needless)).collect();
        assert_eq!(found, [(7, 7, 0), (8, 8, 0), (4, 4, 0)]);
        let output = Output::of_run(&room.path().join("out")).unwrap();
        run(&setting, &output, &mut |_| {}).unwrap();
        let text = files::read(&room.path().join("out/syncany-repacking.md")).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("| D | 3 | 52.1 | 0.0 | 0.0 | 0.0 |"), "{text}");
    }

    #[test]
    fn the_overhead_is_of_what_is_needed() {
        let left = CleanedUp { packs: 150, needless: 50, rewritten: 7 };
        let (dataset, version) = ("D".to_owned(), "1.0".to_owned());
        let step = Step { dataset, version, bytes: 300, left };
        assert!((step.overhead() - 50.0).abs() < 1e-9);
        assert_eq!(csv(&[step]).lines().last(), Some("D,1.0,300,150,50,50.00,7"));
        assert_eq!((printed("A"), printed("E")), (Some(11.4), None));
    }
}
