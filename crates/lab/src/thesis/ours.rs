//! The same by what our program does unless somebody asks for something else: an encrypted workspace whose files are cut, named, packed,
//! compressed and sealed by the functions that devices call.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use content::keyring::{Passphrase, SecretKey};
use content::pack::{FinishedPack, PACK_STORED_TARGET};
use content::packing::{FilePacker, PackSettings, PackSink};
use content::{ContentError, DeviceKeys, NewWorkspace, Transform, WorkspaceKeys};
use model::{ChunkId, ChunkRef, Content, DeviceId, Random, Timestamp};
use zeroize::Zeroizing;

use super::outcome::{Amount, MISSING, Method, Reconstruction, Row, newest_there};
use crate::dataset::Dataset;
use crate::error::LabError;
use crate::files;
use crate::stopwatch::Stopwatch;

/// Measures all versions, one after the other.
///
/// # Errors
/// [`LabError`].
pub fn measure(dataset: &Dataset) -> Result<Vec<Row>, LabError> {
    let keys = keys()?;
    let mut pass = Pass::default();
    let versions = dataset.versions.iter();
    versions.map(|version| pass.version(&keys, &dataset.name, &dataset.files(version)?)).collect()
}

/// Dice that always fall the same: nothing here is a secret, and equal runs store equal bytes.
#[derive(Debug)]
struct Fixed;

impl Random for Fixed {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

pub(super) fn keys() -> Result<WorkspaceKeys, ContentError> {
    let passphrase = Passphrase::new(Zeroizing::new("to measure".to_owned()));
    let made = NewWorkspace::create("lab", Timestamp::default(), &passphrase, &Fixed)?;
    let (device, seed) = (DeviceId::from_bytes([1; 16]), SecretKey::random(&Fixed));
    let device = DeviceKeys::enroll(&made.genesis, &made.unlocked, device, seed)?;
    WorkspaceKeys::open(&made.genesis, Some(device), Arc::new(Fixed))
}

/// What is known of a chunk.
#[derive(Clone, Copy)]
struct Known {
    length: u32,
    since: usize,
    /// Which record has it; nothing while its pack is not full.
    record: Option<u32>,
}

#[derive(Default)]
struct Pass {
    chunks: HashMap<ChunkId, Known>,
    contents: HashSet<Content>,
    /// How long each record is before it is compressed: devices fetch records, not packs.
    records: Vec<u64>,
    version: usize,
    dataset_bytes: u64,
    stored_bytes: u64,
}

impl Pass {
    fn version(
        &mut self,
        keys: &WorkspaceKeys,
        dataset: &str,
        paths: &[impl AsRef<Path>],
    ) -> Result<Row, LabError> {
        self.version += 1;
        let (mut files, mut new_files) = (Amount::default(), Amount::default());
        let watch = Stopwatch::start();
        let (transform, target) = (Transform::default(), PACK_STORED_TARGET);
        let settings = PackSettings { transform, guard: keys.packs(), target };
        let mut contents = Vec::new();
        let mut packer = FilePacker::new(keys.content(), &settings, Sink::of(self))?;
        for path in paths {
            let bytes = files::read(path.as_ref())?;
            files.add(bytes.len() as u64);
            contents.push((packer.pack_bytes(&bytes, None)?, bytes.len() as u64));
        }
        let Sink { chunks, new_chunks, packs, seen, .. } = packer.finish()?;
        let total = watch.read();
        for (content, length) in contents {
            if self.contents.insert(content) {
                new_files.add(length);
            }
        }
        self.dataset_bytes += files.bytes;
        self.stored_bytes += packs.bytes;
        Ok(Row {
            method: Method::Ours,
            dataset: dataset.to_owned(),
            version: self.version,
            total,
            chunking: None,
            files,
            new_files,
            chunks,
            new_chunks,
            multichunks: packs,
            // It is in the packs.
            index_bytes: 0,
            dataset_bytes_so_far: self.dataset_bytes,
            stored_bytes_so_far: self.stored_bytes,
            index_bytes_so_far: 0,
            reconstructions: MISSING.map(|missing| self.reconstruction(&seen, missing)),
        })
    }

    fn reconstruction(
        &self,
        seen: &HashSet<ChunkId>,
        missing: Option<usize>,
    ) -> Option<Reconstruction> {
        let newest_there = newest_there(self.version, missing)?;
        let mut found = Reconstruction::default();
        let mut records = BTreeSet::new();
        for known in seen.iter().map(|chunk| self.chunks[chunk]) {
            if known.since > newest_there {
                found.chunks += u64::from(known.length);
                records.extend(known.record);
            }
        }
        found.containers = records.iter().map(|record| self.records[*record as usize]).sum();
        Some(found)
    }
}

/// Counts what a version brings.
struct Sink<'a> {
    pass: &'a mut Pass,
    chunks: Amount,
    new_chunks: Amount,
    packs: Amount,
    seen: HashSet<ChunkId>,
}

impl<'a> Sink<'a> {
    fn of(pass: &'a mut Pass) -> Self {
        let (chunks, new_chunks, packs) = Default::default();
        Self { pass, chunks, new_chunks, packs, seen: HashSet::new() }
    }
}

impl PackSink for Sink<'_> {
    type Error = ContentError;

    fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
        let length = u64::from(chunk.length);
        self.chunks.add(length);
        self.seen.insert(chunk.id);
        let since = self.pass.version;
        let is_new = !self.pass.chunks.contains_key(&chunk.id);
        if is_new {
            let known = Known { length: chunk.length, since, record: None };
            self.pass.chunks.insert(chunk.id, known);
            self.new_chunks.add(length);
        }
        Ok(is_new)
    }

    fn emit(&mut self, pack: FinishedPack) -> Result<(), ContentError> {
        self.packs.add(pack.bytes.len() as u64);
        let first = self.pass.records.len() as u32;
        let records = pack.index.records().iter().map(|record| record.plain_length() as u64);
        self.pass.records.extend(records);
        for packed in pack.index.packed_chunks() {
            if let Some(known) = self.pass.chunks.get_mut(&packed.chunk.id) {
                known.record = Some(first + packed.record);
            }
        }
        Ok(())
    }
}
