//! The 30 variables that the thesis records for each version of a dataset (figure 6.5).

use std::fmt::Write;

use super::configuration::{Configuration, Variant};
use crate::stopwatch::Elapsed;

/// So many things of so many bytes together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Amount {
    /// Adds one thing.
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// What has to be fetched for a version by somebody to whom some versions before it are missing (section 6.6.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reconstruction {
    /// Bytes of the containers that have what is needed, as they were before they were compressed.
    pub containers: u64,
    /// Bytes of the chunks that are needed.
    pub chunks: u64,
}

impl Reconstruction {
    /// Returns by how much more has to be fetched than is needed, as a share.
    pub fn overhead(self) -> Option<f64> {
        (self.chunks > 0).then(|| self.containers as f64 / self.chunks as f64 - 1.0)
    }
}

/// How many versions are missing, in the order of [`Row::reconstructions`]; nothing stands for all.
pub const MISSING: [Option<usize>; 3] = [None, Some(5), Some(10)];

/// Returns the newest version that somebody has to whom so many before `version` are missing: 0 for none, and nothing where there were not so many.
pub(super) fn newest_there(version: usize, missing: Option<usize>) -> Option<usize> {
    match missing {
        Some(missing) => version.checked_sub(missing).filter(|newest| *newest > 0),
        None => Some(0),
    }
}

/// What cut, packed and compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A configuration of the thesis.
    Thesis(Configuration, Variant),
    /// Our program, as it does it unless somebody asks for something else.
    Ours,
}

/// What was recorded of one version.
#[derive(Debug, Clone)]
pub struct Row {
    /// By what.
    pub method: Method,
    /// Of which dataset.
    pub dataset: String,
    /// Which version, 1 for the first.
    pub version: usize,
    /// All that was done, with pauses.
    pub(crate) total: Elapsed,
    /// Cutting, naming and looking up, without what follows. Ours does all at once.
    pub(crate) chunking: Option<Elapsed>,
    /// All files.
    pub files: Amount,
    /// Files whose content was in no version before.
    pub new_files: Amount,
    /// All chunks.
    pub chunks: Amount,
    /// Chunks that were in no version before, and not in this one either.
    pub new_chunks: Amount,
    /// What was stored.
    pub multichunks: Amount,
    /// Bytes of the index that grew, where it is not in what was stored.
    pub index_bytes: u64,
    /// Bytes of this version and all before it.
    pub dataset_bytes_so_far: u64,
    /// Bytes stored for this version and all before it.
    pub stored_bytes_so_far: u64,
    /// Bytes of the index for this version and all before it.
    pub index_bytes_so_far: u64,
    /// With all versions missing, five, and ten; nothing where there are not so many.
    pub reconstructions: [Option<Reconstruction>; 3],
}

impl Row {
    /// Returns the temporal deduplication ratio: bytes of all versions so far by the bytes stored for them.
    pub fn ratio(&self) -> f64 {
        self.dataset_bytes_so_far as f64 / self.stored_bytes_so_far.max(1) as f64
    }

    fn ratio_with_index(&self) -> f64 {
        let stored = self.stored_bytes_so_far + self.index_bytes_so_far;
        self.dataset_bytes_so_far as f64 / stored.max(1) as f64
    }

    /// Returns the share of a processor that was used, in percent.
    pub fn processor_percent(&self) -> f64 {
        let wall = self.total.wall.as_secs_f64();
        if wall > 0.0 { self.total.processor.as_secs_f64() / wall * 100.0 } else { 0.0 }
    }

    /// Returns the seconds that it took.
    pub fn seconds(&self) -> f64 {
        self.total.wall.as_secs_f64()
    }

    /// Returns the seconds that cutting took, where they are known.
    pub fn chunking_seconds(&self) -> Option<f64> {
        self.chunking.map(|chunking| chunking.wall.as_secs_f64())
    }
}

/// Returns the mean of what rows have; 0 of none.
pub fn mean<'a>(rows: impl IntoIterator<Item = &'a Row>, value: impl Fn(&Row) -> f64) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for row in rows {
        sum += value(row);
        count += 1;
    }
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// The names of the thesis, as they are printed there.
const VARIABLES: &str = "totalDurationSec,totalChunkingDurationSec,totalDatasetFileCount,totalChunkCount,totalDatasetSize,\
totalNewChunkCount,totalNewChunkSize,totalNewFileCount,totalNewFileSize,totalDuplicateChunkCount,totalDuplicateChunkSize,\
totalDuplicateFileCount,totalDuplicateFileSize,totalMultiChunkCount,totalMultiChunkSize,totalIndexSize,totalCpuUsage,\
tempDedupRatio,tempSpaceReducationRatio,tempDedupRatioInclIndex,tempSpaceRedRatioInclIndex,recnstChunksNeedBytes,\
recnstMultChnksNeedBytes,recnstMultOverhDiffBytes,recnst5NeedMultChnkBytes,recnst5NeedChunksBytes,recnst5OverheadBytes,\
recnst10NeedMultChnkBytes,recnst10NeedChunksBytes,recnst10OverhBytes";

/// Writes all rows as a table with the variables of the thesis.
pub(crate) fn csv(rows: &[Row]) -> String {
    let mut text = format!("dataset,version,variant,configuration,{VARIABLES}\n");
    for row in rows {
        let (variant, configuration) = match row.method {
            Method::Ours => ("ours".to_owned(), "ours".to_owned()),
            Method::Thesis(configuration, variant) => {
                (variant.to_string(), configuration.to_string())
            }
        };
        let chunking = row.chunking_seconds().map_or(String::new(), |value| format!("{value:.6}"));
        let duplicates = |all: Amount, new: Amount| {
            format!("{},{}", all.count - new.count, all.bytes - new.bytes)
        };
        let reduction = |ratio: f64| if ratio > 0.0 { 1.0 - 1.0 / ratio } else { 0.0 };
        // Writing to a String cannot fail.
        let _ok = write!(
            text,
            "{},{},{variant},{configuration},{:.6},{chunking},{},{},{},{},{},{},{},{},{},{},{},{},{:.1},{:.4},{:.6},{:.4},{:.6}",
            row.dataset,
            row.version,
            row.seconds(),
            row.files.count,
            row.chunks.count,
            row.files.bytes,
            row.new_chunks.count,
            row.new_chunks.bytes,
            row.new_files.count,
            row.new_files.bytes,
            duplicates(row.chunks, row.new_chunks),
            duplicates(row.files, row.new_files),
            row.multichunks.count,
            row.multichunks.bytes,
            row.index_bytes,
            row.processor_percent(),
            row.ratio(),
            reduction(row.ratio()),
            row.ratio_with_index(),
            reduction(row.ratio_with_index()),
        );
        let [all, five, ten] = row.reconstructions.map(|found| match found {
            Some(found) => {
                let more = i128::from(found.containers) - i128::from(found.chunks);
                [found.containers.to_string(), found.chunks.to_string(), more.to_string()]
            }
            None => Default::default(),
        });
        let _ok = writeln!(
            text,
            ",{},{},{},{},{}",
            all[1],
            all[0],
            all[2],
            five.join(","),
            ten.join(",")
        );
    }
    text
}
