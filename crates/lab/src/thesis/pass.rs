//! One configuration of the thesis over all versions of a dataset.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::time::Duration;

use content::chunker::Chunker;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::budget::Budget;
use super::chain::Chain;
use super::configuration::{Configuration, Variant};
use super::container::{Container, DIGEST_LENGTH, Digest};
use super::outcome::{Amount, MISSING, Method, Reconstruction, Row, newest_there};
use crate::dataset::Dataset;
use crate::error::LabError;
use crate::files;
use crate::stopwatch::{Elapsed, Stopwatch};

/// What the plainest index has of a chunk: its name, its length, and its multichunk.
const INDEX_OF_CHUNK: u64 = DIGEST_LENGTH as u64 + 8;

/// Of a file: its name in the index, besides the names of its chunks.
const INDEX_OF_FILE: u64 = DIGEST_LENGTH as u64;

/// Of a multichunk: its name and its length.
const INDEX_OF_MULTICHUNK: u64 = DIGEST_LENGTH as u64 + 4;

/// Measures all versions, one after the other.
///
/// # Errors
/// [`LabError`].
pub fn measure(
    configuration: Configuration,
    variant: Variant,
    dataset: &Dataset,
) -> Result<Vec<Row>, LabError> {
    all_versions(&mut Pass::new(configuration, variant)?, dataset)
}

/// The same with a pass that somebody has prepared.
pub(super) fn all_versions(pass: &mut Pass, dataset: &Dataset) -> Result<Vec<Row>, LabError> {
    let versions = dataset.versions.iter();
    versions.map(|version| pass.version(&dataset.name, &dataset.files(version)?)).collect()
}

/// What is known of a chunk.
#[derive(Clone, Copy)]
struct Known {
    length: u32,
    /// The version that brought it, 1 for the first.
    since: usize,
    multichunk: u32,
}

pub(super) struct Pass {
    configuration: Configuration,
    method: Method,
    chunker: Box<dyn Chunker>,
    chain: Chain,
    container: Container,
    chunks: HashMap<Digest, Known>,
    files: HashSet<Digest>,
    /// How long each multichunk is before it is compressed.
    multichunks: Vec<u64>,
    version: usize,
    so_far: SoFar,
    /// Which share of the processor is to be kept in each version; nothing: all of it.
    pub(super) budget_percent: Option<u32>,
    /// Takes what would be stored.
    pub(super) stored: Box<dyn FnMut(Vec<u8>)>,
}

#[derive(Default)]
struct SoFar {
    dataset_bytes: u64,
    stored_bytes: u64,
    index_bytes: u64,
}

/// What is counted while a version is gone through.
#[derive(Default)]
struct Counts {
    files: Amount,
    new_files: Amount,
    chunks: Amount,
    new_chunks: Amount,
    multichunks: Amount,
    index_bytes: u64,
    /// The chunks of which the version is made, each once.
    seen: HashSet<Digest>,
    /// What became of full multichunks, while chunks were waited for.
    storing: Elapsed,
    budget: Option<Budget>,
}

impl Counts {
    /// Rests, if a share of the processor is to be kept.
    fn rest(&self) {
        if let Some(budget) = &self.budget {
            budget.rest();
        }
    }
}

impl Pass {
    pub(super) fn new(configuration: Configuration, variant: Variant) -> Result<Self, LabError> {
        Ok(Self {
            configuration,
            method: Method::Thesis(configuration, variant),
            chunker: configuration.chunking.chunker(variant)?,
            chain: Chain::new(configuration.compression)?,
            container: Container::new(configuration.multichunk_kib * 1024),
            chunks: HashMap::new(),
            files: HashSet::new(),
            multichunks: Vec::new(),
            version: 0,
            so_far: SoFar::default(),
            budget_percent: None,
            stored: Box::new(|_| {}),
        })
    }

    /// Goes through the files of the next version.
    pub(super) fn version(
        &mut self,
        dataset: &str,
        paths: &[impl AsRef<Path>],
    ) -> Result<Row, LabError> {
        self.version += 1;
        let budget = self.budget_percent.map(Budget::of_percent);
        let mut counts = Counts { budget, ..Counts::default() };
        let mut chunking = Elapsed::default();
        let total = Stopwatch::start();
        for path in paths {
            let bytes = files::read(path.as_ref())?;
            let (cutting, stored_before) = (Stopwatch::start(), counts.storing);
            self.file(&bytes, &mut counts)?;
            chunking += cutting.read() - (counts.storing - stored_before);
        }
        self.close(&mut counts)?;
        // For what the last multichunk has cost, too.
        counts.rest();
        let total = total.read();
        self.so_far.dataset_bytes += counts.files.bytes;
        self.so_far.stored_bytes += counts.multichunks.bytes;
        self.so_far.index_bytes += counts.index_bytes;
        Ok(Row {
            method: self.method,
            dataset: dataset.to_owned(),
            version: self.version,
            total,
            chunking: Some(chunking),
            files: counts.files,
            new_files: counts.new_files,
            chunks: counts.chunks,
            new_chunks: counts.new_chunks,
            multichunks: counts.multichunks,
            index_bytes: counts.index_bytes,
            dataset_bytes_so_far: self.so_far.dataset_bytes,
            stored_bytes_so_far: self.so_far.stored_bytes,
            index_bytes_so_far: self.so_far.index_bytes,
            reconstructions: MISSING.map(|missing| self.reconstruction(&counts.seen, missing)),
        })
    }

    fn file(&mut self, bytes: &[u8], counts: &mut Counts) -> Result<(), LabError> {
        counts.files.add(bytes.len() as u64);
        let is_new = self.files.insert(name_of(bytes));
        if is_new {
            counts.new_files.add(bytes.len() as u64);
            counts.index_bytes += INDEX_OF_FILE;
        }
        let mut rest = bytes;
        while let Some(length) = self.chunker.cut(rest, true) {
            let (chunk, after) = rest.split_at(length);
            rest = after;
            let name = name_of(chunk);
            counts.chunks.add(length as u64);
            counts.seen.insert(name);
            if is_new {
                counts.index_bytes += DIGEST_LENGTH as u64;
            }
            let multichunk = self.multichunks.len() as u32;
            if let Entry::Vacant(vacant) = self.chunks.entry(name) {
                vacant.insert(Known { length: length as u32, since: self.version, multichunk });
                counts.new_chunks.add(length as u64);
                counts.index_bytes += INDEX_OF_CHUNK;
                self.container.push(multichunk, &name, chunk);
                if self.container.is_full() {
                    self.close(counts)?;
                }
            }
            // Chunks that are known cost time, too.
            counts.rest();
        }
        Ok(())
    }

    /// Compresses and encrypts the multichunk that is full, and rests.
    fn close(&mut self, counts: &mut Counts) -> Result<(), LabError> {
        let watch = Stopwatch::start();
        let Some(plain) = self.container.take() else { return Ok(()) };
        let number = self.multichunks.len() as u32;
        self.multichunks.push(plain.len() as u64);
        let stored = self.chain.apply(number, &plain)?;
        counts.multichunks.add(stored.len() as u64);
        counts.index_bytes += INDEX_OF_MULTICHUNK;
        (self.stored)(stored);
        if self.configuration.pause_ms > 0 {
            std::thread::sleep(Duration::from_millis(self.configuration.pause_ms));
        }
        counts.storing += watch.read();
        Ok(())
    }

    /// Calculates what has to be fetched for the version just gone through.
    fn reconstruction(
        &self,
        seen: &HashSet<Digest>,
        missing: Option<usize>,
    ) -> Option<Reconstruction> {
        let newest_there = newest_there(self.version, missing)?;
        let mut found = Reconstruction::default();
        let mut multichunks = BTreeSet::new();
        for chunk in seen {
            let known = self.chunks[chunk];
            if known.since > newest_there {
                found.chunks += u64::from(known.length);
                multichunks.insert(known.multichunk);
            }
        }
        found.containers =
            multichunks.iter().map(|number| self.multichunks[*number as usize]).sum();
        Some(found)
    }
}

pub(super) fn name_of(bytes: &[u8]) -> Digest {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
    digest.as_ref().try_into().expect("SHA-1 has 20 bytes")
}
