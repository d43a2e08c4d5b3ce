//! Figures 13 and 15 of WebR2sync+ (2018): in how many places a file differs that was saved again.
//!
//! The paper counts the *continuous sub-edits* of a save in traces of Word and WeChat that are not at hand, and those between the files of two releases
//! of Linux. Here they are counted between the versions of datasets, of which one may be a real source tree, and in the edits of our own generator of the paper's workload
//! ([`crate::trace::generate::webr2sync`]), which draws them from the paper's numbers. Places are found line by line, and their ends byte by byte
//! (`difference`): two places of one line are one.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::dataset::Dataset;
use crate::difference::hunks;
use crate::environment;
use crate::error::LabError;
use crate::experiment::Setting;
use crate::files::{self, Found};
use crate::output::Output;
use crate::page::Page;
use crate::plot::{Plot, Series};
use crate::trace::generate::{self, WebR2sync};
use crate::trace::{Action, Reader};

/// What the paper printed.
const EXPECTED: &str = include_str!("../../../experiments/webr2sync-figure-13/expected.csv");

/// What the paper's own numbers are called in the drawing.
const PRINTED: &str = "Word and WeChat, printed";

/// Our generator of its workload, among the datasets.
const GENERATOR: &str = "our generator";

/// The paper counts how many saves have so many sub-edits, up to the last one; the rest has more.
const UP_TO: [usize; 3] = [5, 10, 16];

/// The drawing ends here: only so many sub-edits has any edit that the paper makes itself.
const DRAWN_MAX: usize = 20;

/// As large as the paper's blocks.
const BLOCK_BYTES: usize = 8 * 1024;

/// From here on the paper disperses an edit.
const DISPERSED_MIN: u64 = 1024;

/// How often the generator edits each of its files.
const ROUNDS: u64 = 20;

/// A file in one version, and the same in the next one.
struct Pair {
    dataset: String,
    version: String,
    bytes: usize,
    /// How many continuous sub-edits.
    places: usize,
    /// From the first to the last of them, in bytes of the new file.
    span: usize,
    /// How many blocks of the new file they touch.
    blocks: usize,
}

/// Counts both figures, and writes them.
///
/// # Errors
/// [`LabError`].
pub fn locality(
    setting: &Setting,
    output: &Output,
    say: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let mut pairs = generated(setting)?;
    for dataset in &setting.open_datasets()? {
        let found = of_dataset(dataset)?;
        let count = found.len();
        say(&format!("dataset {}: {count} files that were saved again", dataset.name));
        pairs.extend(found);
    }
    output.write_csv("webr2sync-figure-13", &csv(&pairs))?;
    let seed = [("seed", setting.seed.to_string())];
    output.write_page("webr2sync-figure-13", &environment::end(page(&pairs), &seed))
}

/// What our generator of the paper's workload draws, where the paper disperses an edit.
fn generated(setting: &Setting) -> Result<Vec<Pair>, LabError> {
    let workload = WebR2sync { seed: setting.seed, rounds: ROUNDS, ..WebR2sync::default() };
    let mut text = Vec::new();
    generate::write(&workload, &mut text, Path::new(GENERATOR))?;
    let mut pairs = Vec::new();
    let mut sizes = std::collections::HashMap::new();
    for step in Reader::new(text.as_slice())? {
        match step?.action {
            Action::Write { path, size, .. } => drop(sizes.insert(path, size)),
            Action::Edit { path, edits } => {
                let places: Vec<u64> = edits.iter().filter_map(|edit| edit.offset).collect();
                let bytes: u64 = edits.iter().map(|edit| edit.size).sum();
                if let (Some(first), Some(last)) = (places.first(), places.last())
                    && bytes >= DISPERSED_MIN
                {
                    let blocks = places.iter().map(|place| place / BLOCK_BYTES as u64);
                    let blocks: std::collections::BTreeSet<u64> = blocks.collect();
                    pairs.push(Pair {
                        dataset: GENERATOR.to_owned(),
                        version: String::new(),
                        bytes: sizes.get(&path).copied().unwrap_or_default() as usize,
                        places: places.len(),
                        span: (last - first) as usize,
                        blocks: blocks.len(),
                    });
                }
            }
            _ => {}
        }
    }
    Ok(pairs)
}

/// Counts between each version and the next one, in files that have the same path in both.
fn of_dataset(dataset: &Dataset) -> Result<Vec<Pair>, LabError> {
    let mut pairs = Vec::new();
    for (before, version) in dataset.versions.iter().zip(dataset.versions.iter().skip(1)) {
        let root = dataset.folder.join(version);
        for path in dataset.files(version)? {
            let name = path.strip_prefix(&root).unwrap_or(&path);
            let old: PathBuf = dataset.folder.join(before).join(name);
            if !matches!(files::look(&old)?, Some(Found::File { .. })) {
                continue;
            }
            let (old, new) = (files::read(&old)?, files::read(&path)?);
            if old != new {
                let (places, span, blocks) = counted(&old, &new);
                let (dataset, version) = (dataset.name.clone(), version.clone());
                pairs.push(Pair { dataset, version, bytes: new.len(), places, span, blocks });
            }
        }
    }
    Ok(pairs)
}

/// Returns in how many places two files differ, from the first to the last of which it is so far, and how many blocks of the new one they touch.
fn counted(old: &[u8], new: &[u8]) -> (usize, usize, usize) {
    let hunks = hunks(old, new);
    let span = match (hunks.first(), hunks.last()) {
        (Some(first), Some(last)) => last.new.end - first.new.start,
        _ => 0,
    };
    let (mut blocks, mut free) = (0, 0);
    for hunk in &hunks {
        // Where bytes have gone, the block in which they were has changed.
        let (first, last) =
            (hunk.new.start / BLOCK_BYTES, hunk.new.end.max(1).div_ceil(BLOCK_BYTES));
        let last = last.max(first + 1);
        blocks += last - first.max(free).min(last);
        free = last;
    }
    (hunks.len(), span, blocks)
}

/// Returns the names of all datasets, in their order.
fn names(pairs: &[Pair]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for pair in pairs {
        if !names.contains(&pair.dataset.as_str()) {
            names.push(&pair.dataset);
        }
    }
    names
}

/// Returns which share of the pairs of a dataset, in percent, has at most so many places.
fn share(pairs: &[Pair], dataset: &str, places_max: usize) -> f64 {
    let of_it = pairs.iter().filter(|pair| pair.dataset == dataset);
    let (few, all) = of_it
        .fold((0, 0), |(few, all), pair| (few + usize::from(pair.places <= places_max), all + 1));
    100.0 * f64::from(few as u32) / f64::from(all.max(1) as u32)
}

/// Returns the shares that the paper printed, in percent: 1 to 5 sub-edits, 6 to 10, more than 16. What lies between is the rest.
fn printed() -> [f64; 4] {
    let value = |what: &str| {
        let line = EXPECTED.lines().find(|line| line.starts_with(what));
        line.and_then(|line| line.rsplit(',').next()?.parse().ok()).unwrap_or(0.0)
    };
    let row = |range: &str| value(&format!("13,Word and WeChat,percent of saves with {range}"));
    let [few, some, many] = ["1 to 5", "6 to 10", "more than 16"].map(row);
    [few, some, 100.0 - few - some - many, many]
}

fn page(pairs: &[Pair]) -> Page {
    let shares = |dataset: &str| {
        let [few, some, more] = UP_TO.map(|places| share(pairs, dataset, places));
        [few, some - few, more - some, 100.0 - more]
    };
    let cells = |shares: [f64; 4]| shares.map(|share| format!("{share:.0}")).to_vec();
    let row = |dataset: &&str| {
        let of_it: Vec<&Pair> = pairs.iter().filter(|pair| pair.dataset == **dataset).collect();
        let count = of_it.len().max(1) as f64;
        let mean = |value: fn(&Pair) -> f64| {
            format!("{:.1}", of_it.iter().map(|pair| value(pair)).sum::<f64>() / count)
        };
        let mut places: Vec<usize> = of_it.iter().map(|pair| pair.places).collect();
        places.sort_unstable();
        let middle = places.get(places.len() / 2).copied().unwrap_or_default();
        let mut row = vec![(*dataset).to_owned(), of_it.len().to_string()];
        row.push(mean(|pair| pair.bytes as f64 / 1000.0));
        row.extend(cells(shares(dataset)));
        row.push(middle.to_string());
        row.push(mean(|pair| 100.0 * pair.span as f64 / pair.bytes.max(1) as f64));
        row.push(mean(|pair| {
            100.0 * pair.blocks as f64 / pair.bytes.div_ceil(BLOCK_BYTES).max(1) as f64
        }));
        row
    };
    let mut rows = vec![vec![PRINTED.to_owned(), String::new(), String::new()]];
    rows[0].extend(cells(printed()));
    rows[0].extend([(); 3].map(|()| String::new()));
    rows.extend(names(pairs).iter().map(row));
    let headings = [
        "dataset",
        "saves",
        "mean KB",
        "1 to 5 places, %",
        "6 to 10",
        "11 to 16",
        "more",
        "median",
        "span, % of the file",
        "8 KB blocks touched, %",
    ];
    Page::new("How local edits are: WebR2sync+'s figures 13 and 15")
        .text("Of each file that was saved again: in how many places it differs from the version before (continuous sub-edits). The paper counted them in traces of Word and WeChat (figure 13), and between two releases of Linux (figure 15), of which it prints no numbers but that they are more local still.")
        .table(&headings, rows)
        .drawing("figure-13", drawing(pairs))
}

fn drawing(pairs: &[Pair]) -> String {
    let printed = printed();
    let mut sum = 0.0;
    let mut up_to = |(number, places): (usize, &usize)| {
        sum += printed[number];
        (*places as f64, sum)
    };
    let published = UP_TO.iter().enumerate().map(&mut up_to).collect();
    let curve = |dataset: &str| {
        (1..=DRAWN_MAX).map(|places| (places as f64, share(pairs, dataset, places))).collect()
    };
    let ours = names(pairs).into_iter().map(|dataset| Series::ours(dataset, curve(dataset)));
    let plot = Plot {
        title: "Figures 13 and 15: saves with at most so many continuous sub-edits".to_owned(),
        across: "continuous sub-edits".to_owned(),
        up: "% of saves".to_owned(),
        series: [Series::published(PRINTED, published)].into_iter().chain(ours).collect(),
    };
    plot.lines()
}

fn csv(pairs: &[Pair]) -> String {
    let mut text = String::from("dataset,version,bytes,places,span_bytes,blocks\n");
    for Pair { dataset, version, bytes, places, span, blocks } in pairs {
        // Writing to a String cannot fail.
        let _ok = writeln!(text, "{dataset},{version},{bytes},{places},{span},{blocks}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::testing::setting;

    #[test]
    fn places_spans_and_blocks_are_those_of_the_new_file() {
        let line = |number: u32| format!("line {number:5} of a file\n");
        // Of 23 bytes each: some 28 blocks.
        let old: String = (0..10_000).map(line).collect();
        let new = old.replace("line    10 of", "line ten of");
        let new = new.replace(&line(20), "").replace("line  5000 of", "line half of");
        let (places, span, blocks) = counted(old.as_bytes(), new.as_bytes());
        assert_eq!((places, blocks), (3, 2));
        assert!((4980 * line(0).len()..5000 * line(0).len()).contains(&span), "{span}");
        let cut = &old.as_bytes()[..old.len() - 1];
        assert_eq!(counted(old.as_bytes(), cut), (1, 0, 1));
        assert_eq!(counted(b"", &[1; 2 * BLOCK_BYTES + 1]).2, 3);
        // Nothing is left: the block in which it was has changed.
        assert_eq!(counted(b"a", b""), (1, 0, 1));
    }

    #[test]
    fn files_are_compared_with_those_of_the_version_before_and_only_if_they_differ() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| files::write(&folder.path().join(path), text).unwrap();
        for (path, text) in [("1/a", "one\ntwo\n"), ("1/b", "b"), ("1/gone", "gone")] {
            write(path, text);
        }
        for (path, text) in [("2/a", "one\n2\n"), ("2/b", "b"), ("2/new", "new")] {
            write(path, text);
        }
        let pairs = of_dataset(&Dataset::open("T", folder.path()).unwrap()).unwrap();
        assert_eq!(csv(&pairs).lines().skip(1).collect::<Vec<_>>(), ["T,2,6,1,1,1"]);
    }

    #[test]
    fn the_papers_numbers_are_in_the_drawing_and_our_generator_draws_from_them() {
        assert_eq!(printed(), [46.0, 35.0, 14.0, 5.0]);
        let setting = setting(Path::new("unused"), None);
        let pairs = generated(&setting).unwrap();
        let drawn = UP_TO.map(|places| share(&pairs, GENERATOR, places));
        for (drawn, printed) in drawn.into_iter().zip([46.0, 81.0, 95.0]) {
            assert!((drawn - printed).abs() < 4.0, "{drawn} for {printed}");
        }
        let page = page(&pairs).markdown();
        assert!(page.contains("| Word and WeChat, printed |  |  | 46 | 35 | 14 | 5 |"), "{page}");
        assert!(drawing(&pairs).contains("stroke-dasharray"));
    }
}
