//! What deltas against the version before would store: chunks that were edited as what makes them from those of the version before
//! (`content::packing`), in place of whole ones; and the same of what files hold in deflate streams, as devices do it. Here it shows what that is
//! good for.
//!
//! The new version of a file is the file of the same path; of one that has none a file of the version before that is like it. What may be a
//! base is decided as devices do.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::rc::Rc;

use content::delta::{Features, most_like};
use content::pack::{Ancestry, FinishedPack, PACK_STORED_TARGET};
use content::packing::{FilePacker, Kept, PackSettings, PackSink, WHOLE_FILE_SIZE_MAX};
use content::{ContentError, Transform, WorkspaceKeys};
use model::{ChunkId, ChunkRef};

use super::report::names;
use super::{Plan, ours};
use crate::dataset::Dataset;
use crate::error::LabError;
use crate::files;
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};
use crate::stopwatch::{Elapsed, Stopwatch};

/// What is stored of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    /// The chunks that were edited.
    Chunks,
    /// What is new in them. A sketch of the version before is known, 5.5 % of its size, as a device keeps it.
    Deltas,
    /// The same of what files hold in deflate streams, and of new files that are like others, as devices do it.
    Inflated,
}

/// How hard zstd tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// As devices do: by how much has changed since the version before.
    ByLength,
    Level(i32),
}

impl Effort {
    fn transform(self, changed_length: u64) -> Transform {
        match self {
            Self::ByLength => Transform::default().for_length(changed_length),
            Self::Level(level) => Transform::Zstd { level },
        }
    }
}

impl std::fmt::Display for Effort {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ByLength => formatter.write_str("by length"),
            Self::Level(level) => write!(formatter, "{level}"),
        }
    }
}

/// A way to store versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    stored: Stored,
    effort: Effort,
}

const fn way(stored: Stored, effort: Effort) -> Way {
    Way { stored, effort }
}

const WAYS: [Way; 9] = [
    way(Stored::Chunks, Effort::Level(Transform::DEFAULT_LEVEL)),
    way(Stored::Deltas, Effort::Level(Transform::DEFAULT_LEVEL)),
    way(Stored::Inflated, Effort::Level(Transform::DEFAULT_LEVEL)),
    way(Stored::Chunks, Effort::ByLength),
    way(Stored::Deltas, Effort::ByLength),
    way(Stored::Inflated, Effort::ByLength),
    way(Stored::Chunks, Effort::Level(19)),
    way(Stored::Deltas, Effort::Level(19)),
    way(Stored::Inflated, Effort::Level(19)),
];

impl Way {
    /// What the file calls it.
    fn name(self) -> &'static str {
        match self.stored {
            Stored::Chunks => "Chunks",
            Stored::Deltas => "Sketch",
            Stored::Inflated => "Inflated",
        }
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stored = match self.stored {
            Stored::Chunks => "whole chunks",
            Stored::Deltas => "deltas by sketch",
            Stored::Inflated => "deltas, inflated",
        };
        write!(formatter, "{stored}, zstd {}", self.effort)
    }
}

/// What one version took.
#[derive(Debug, Clone, Copy)]
struct Step {
    bytes: u64,
    stored: u64,
    elapsed: Elapsed,
}

/// What one way made of a dataset.
struct Outcome {
    dataset: String,
    way: Way,
    steps: Vec<Step>,
}

impl Outcome {
    /// After each version, the bytes of all versions so far by the bytes stored for them.
    fn ratios(&self) -> Vec<f64> {
        let (mut bytes, mut stored) = (0, 0);
        let ratio = |step: &Step| {
            (bytes, stored) = (bytes + step.bytes, stored + step.stored);
            bytes as f64 / stored.max(1) as f64
        };
        self.steps.iter().map(ratio).collect()
    }

    /// The mean of these, as the thesis tells its ratios.
    fn mean_ratio(&self) -> f64 {
        self.ratios().iter().sum::<f64>() / self.steps.len().max(1) as f64
    }

    fn last_ratio(&self) -> f64 {
        self.ratios().last().copied().unwrap_or_default()
    }

    /// Bytes stored for a version after the first, on average.
    fn later(&self) -> f64 {
        let later = self.steps.get(1..).unwrap_or_default();
        later.iter().map(|step| step.stored).sum::<u64>() as f64 / later.len().max(1) as f64
    }

    fn seconds(&self) -> f64 {
        let seconds = self.steps.iter().map(|step| step.elapsed.processor.as_secs_f64());
        seconds.sum::<f64>() / self.steps.len().max(1) as f64
    }
}

/// Measures all ways over all datasets, and writes what they store.
///
/// # Errors
/// [`LabError`].
pub fn run(plan: &Plan, output: &Output, say: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let keys = ours::keys()?;
    let mut all = Vec::new();
    for dataset in &plan.open_datasets()? {
        let lengths = changed_lengths(dataset)?;
        for way in WAYS {
            let steps = measure(way, (dataset, &lengths), &keys)?;
            let outcome = Outcome { dataset: dataset.name.clone(), way, steps };
            let (mean, last) = (outcome.mean_ratio(), outcome.last_ratio());
            say(&format!("dataset {}: {way}, {mean:.2} : 1, in the end {last:.2}", dataset.name));
            all.push(outcome);
        }
    }
    output.write_csv("syncany-deltas", &csv(&all))?;
    output.write_page("syncany-deltas", &page(&all))
}

/// `lengths` says of each version how many bytes have changed in it.
fn measure(
    way: Way,
    (dataset, lengths): (&Dataset, &[u64]),
    keys: &WorkspaceKeys,
) -> Result<Vec<Step>, LabError> {
    let mut packs = Packs::default();
    let mut before: HashMap<PathBuf, Before> = HashMap::new();
    let mut steps = Vec::new();
    for (version, length) in dataset.versions.iter().zip(lengths) {
        let root = dataset.folder.join(version);
        let transform = way.effort.transform(*length);
        let target = PACK_STORED_TARGET;
        let settings = PackSettings { transform, guard: keys.packs(), target };
        let (stored, mut bytes) = (packs.stored, 0);
        let watch = Stopwatch::start();
        packs.has_deltas = way.stored != Stored::Chunks;
        let kept = before.values().map(|(_, kept)| (kept.features(), Rc::clone(kept)));
        packs.alike = kept.collect();
        let mut packer = FilePacker::new(keys.content(), &settings, &mut packs)?;
        let mut now = HashMap::new();
        for path in dataset.files(version)? {
            let file = files::read(&path)?;
            bytes += file.len() as u64;
            let name = path.strip_prefix(&root).unwrap_or(&path).to_owned();
            let kept = store(way.stored, &mut packer, &file, before.get(&name))?;
            now.insert(name, kept);
        }
        packer.finish()?;
        let elapsed = watch.read();
        before = now;
        steps.push(Step { bytes, stored: packs.stored - stored, elapsed });
    }
    Ok(steps)
}

/// Returns for each version how many bytes the files have that are not as they were in the version before.
fn changed_lengths(dataset: &Dataset) -> Result<Vec<u64>, LabError> {
    let (mut lengths, mut before) = (Vec::new(), None::<PathBuf>);
    for version in &dataset.versions {
        let root = dataset.folder.join(version);
        let mut length = 0;
        for path in dataset.files(version)? {
            let file = files::read(&path)?;
            let name = path.strip_prefix(&root).unwrap_or(&path);
            let old = before.as_ref().map(|before| before.join(name));
            let is_same = old.is_some_and(|old| files::read(&old).is_ok_and(|old| old == file));
            length += if is_same { 0 } else { file.len() as u64 };
        }
        lengths.push(length);
        before = Some(root);
    }
    Ok(lengths)
}

/// The average chunk size of a version, and what is kept of it.
type Before = (u32, Rc<Kept>);

/// Stores a file, and returns what is kept of it.
fn store(
    stored: Stored,
    packer: &mut FilePacker<&mut Packs>,
    mut file: &[u8],
    before: Option<&Before>,
) -> Result<Before, LabError> {
    if stored == Stored::Inflated && file.len() as u64 <= WHOLE_FILE_SIZE_MAX {
        let (chunk_size, kept) = before.map(|(size, kept)| (*size, &**kept)).unzip();
        let (content, kept) = packer.pack_whole(kept, file, chunk_size)?;
        return Ok((content.chunk_size, Rc::new(kept)));
    }
    let (content, sketch) = match before.map(|(size, kept)| (size, &**kept)) {
        Some((_, Kept::File(before))) => packer.pack_edited(before, &mut file)?,
        before => packer.pack_first(&mut file, before.map(|(size, _)| *size))?,
    };
    Ok((content.chunk_size, Rc::new(Kept::File(sketch))))
}

/// Counts what is stored, and knows what each chunk is made from.
#[derive(Default)]
struct Packs {
    claimed: HashSet<ChunkId>,
    /// For what is in packs: everything that it is made from.
    ancestors: HashMap<ChunkId, Ancestors>,
    stored: u64,
    has_deltas: bool,
    /// What is kept of the files of the version before.
    alike: Vec<(Features, Rc<Kept>)>,
}

/// How deep a chunk lies, and the chunks that it is made from, with their lengths.
#[derive(Debug, Clone, Default)]
struct Ancestors {
    depth: u32,
    chunks: HashMap<ChunkId, u32>,
}

impl PackSink for &mut Packs {
    type Error = ContentError;

    fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
        Ok(self.claimed.insert(chunk.id))
    }

    fn knows(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
        Ok(self.claimed.contains(&chunk.id))
    }

    fn ancestry(&mut self, chunk: &ChunkRef) -> Result<Option<Ancestry>, ContentError> {
        let Some(Ancestors { depth, chunks }) = self.ancestors.get(&chunk.id) else {
            return Ok(None);
        };
        let length = chunks.values().map(|length| u64::from(*length)).sum();
        let ancestry = Ancestry { depth: *depth, chunks: chunks.len(), length };
        Ok(Some(ancestry).filter(|_| self.has_deltas))
    }

    fn similar(&mut self, features: &Features) -> Result<Option<Kept>, ContentError> {
        Ok(most_like(&self.alike, features).map(|kept| Kept::clone(kept)))
    }

    fn emit(&mut self, pack: FinishedPack) -> Result<(), ContentError> {
        self.stored += pack.bytes.len() as u64;
        for packed in pack.index.packed_chunks() {
            let mut all = Ancestors::default();
            for base in pack.index.bases(packed.record as usize)? {
                all.chunks.insert(base.id, base.length);
                if let Some(above) = self.ancestors.get(&base.id) {
                    all.chunks.extend(&above.chunks);
                    all.depth = all.depth.max(above.depth + 1);
                }
            }
            self.ancestors.insert(packed.chunk.id, all);
        }
        Ok(())
    }
}

fn page(all: &[Outcome]) -> Page {
    let row = |outcome: &Outcome| {
        vec![
            outcome.dataset.clone(),
            outcome.way.to_string(),
            format!("{:.2}", outcome.mean_ratio()),
            format!("{:.2}", outcome.last_ratio()),
            format!("{:.1}", outcome.later() / 1000.0),
            format!("{:.4}", outcome.seconds()),
        ]
    };
    let headings = [
        "dataset",
        "way",
        "mean ratio",
        "in the end",
        "KB for a later version",
        "processor s a version",
    ];
    let page = Page::new("What deltas would store")
        .text("Chunks that were edited, stored as what makes them from those of the version before, beside whole ones. By sketch: by sums of the pieces of the version before, which a device keeps. Of what is inflated: the same of what files hold in deflate streams, and of new files that are like others, as devices do it.")
        .table(&headings, all.iter().map(row).collect());
    let datasets = names(all.iter().map(|outcome| &outcome.dataset));
    datasets.iter().fold(page, |page, dataset| {
        page.drawing(format!("syncany-deltas-{}", dataset.replace(' ', "-")), drawing(dataset, all))
    })
}

fn csv(all: &[Outcome]) -> String {
    let mut text = String::from("dataset,known,level,version,bytes,stored_bytes,processor_s\n");
    for outcome in all {
        for (step, version) in outcome.steps.iter().zip(1..) {
            let _ok = writeln!(
                text,
                "{},{},{},{version},{},{},{:.4}",
                outcome.dataset,
                outcome.way.name(),
                outcome.way.effort,
                step.bytes,
                step.stored,
                step.elapsed.processor.as_secs_f64()
            );
        }
    }
    text
}

fn drawing(dataset: &str, all: &[Outcome]) -> String {
    let of_it = all.iter().filter(|outcome| outcome.dataset == dataset);
    let points = |outcome: &Outcome| {
        let mut stored = 0;
        let point = |(step, version): (&Step, u32)| {
            stored += step.stored;
            (f64::from(version), stored as f64 / 1e6)
        };
        outcome.steps.iter().zip(1..).map(point).collect()
    };
    let series = of_it.map(|outcome| Series::ours(outcome.way.to_string(), points(outcome)));
    let plot = Plot {
        title: format!("What is stored of the versions of {dataset} so far"),
        across: "version".to_owned(),
        up: "MB".to_owned(),
        series: series.collect(),
    };
    plot.lines()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A file that is edited in one place from version to version, and one that stays.
    fn dataset(folder: &Path) -> Dataset {
        // Numbers that hardly compress, so that a chunk costs more than an edit.
        let number = |line: u64| line.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string();
        let mut text = (0..6000).map(number).collect::<String>().into_bytes();
        for version in 1..=4_usize {
            text[version * 20_000] = b'#';
            let root = folder.join(version.to_string());
            files::write(&root.join("edited"), &text).unwrap();
            files::write(&root.join("same"), b"the same").unwrap();
        }
        Dataset::open("T", folder).unwrap()
    }

    #[test]
    fn deltas_store_the_edit_and_whole_chunks_the_chunk() {
        let folder = tempfile::tempdir().unwrap();
        let (dataset, keys) = (dataset(folder.path()), ours::keys().unwrap());
        let lengths = changed_lengths(&dataset).unwrap();
        let outcome = |way| {
            let steps = measure(way, (&dataset, &lengths), &keys).unwrap();
            Outcome { dataset: "T".to_owned(), way, steps }
        };
        let [whole, sketch, ..] = WAYS.map(outcome);
        let first: Vec<u64> = [&whole, &sketch].map(|it| it.steps[0].stored).to_vec();
        assert!(first.iter().all(|stored| *stored == first[0]), "{first:?}");
        // A sealed pack has 4 KiB at least, so an edit of a byte costs that.
        assert!(sketch.later() <= 4096.0);
        assert!(whole.later() > sketch.later() && whole.mean_ratio() < sketch.mean_ratio());
        let ratios = sketch.ratios();
        assert!((ratios[0] - sketch.steps[0].bytes as f64 / first[0] as f64).abs() < 1e-9);
        assert!(ratios.is_sorted() && sketch.last_ratio() > sketch.mean_ratio());
    }

    #[test]
    fn what_the_page_says_stands_in_the_file_of_every_version() {
        let folder = tempfile::tempdir().unwrap();
        let (dataset, keys) = (dataset(folder.path()), ours::keys().unwrap());
        let lengths = changed_lengths(&dataset).unwrap();
        assert_eq!(lengths, [lengths[0], lengths[0] - 8, lengths[0] - 8, lengths[0] - 8]);
        let steps = measure(WAYS[1], (&dataset, &lengths), &keys).unwrap();
        let all = [Outcome { dataset: "T".to_owned(), way: WAYS[1], steps }];
        let text = csv(&all);
        assert_eq!(text.lines().count(), 5);
        assert!(text.contains("\nT,Sketch,1,2,"), "{text}");
        assert!(drawing("T", &all).contains("deltas by sketch, zstd 1"));
    }
}
