//! Power cuts, and flushes that fail.

use std::sync::Arc;

use super::disk::{Disk, File, Key, Matter};
use super::{Inner, SimulatedFileSystem, bytes_of};
use crate::chronicle::ContentHash;
use crate::coverage::Fault;

/// A file whose bytes a power cut has taken.
#[derive(Debug, Clone)]
pub struct LostBytes {
    /// What programs see of it now.
    pub stat: sync::file_system::Stat,
    /// What it held before.
    pub before: ContentHash,
    /// What it holds now.
    pub after: ContentHash,
}

impl Inner {
    /// Makes everything durable, but for what an earlier flush has lost.
    pub(super) fn flush(&mut self) {
        self.since_flush.clear();
        if self.keeps_history {
            self.since_flush.push(self.disk.clone());
        }
    }

    /// A flush has failed: what was written since the last one is dropped from memory unwritten, and the next flush
    /// says that all is well.
    pub(super) fn poison(&mut self) {
        let Some(durable) = self.since_flush.first() else { return };
        for key in self.disk.keys() {
            if is_written(durable, &self.disk, key)
                && let Some(bytes) = bytes_of(&self.disk.file(key).matter)
            {
                self.poisoned.insert(key, bytes);
            }
        }
    }
}

fn is_written(durable: &Disk, disk: &Disk, key: Key) -> bool {
    let bytes = |disk: &Disk| disk.find(key).and_then(|file| bytes_of(&file.matter));
    let now = bytes(disk);
    now.is_some() && bytes(durable) != now
}

fn lose(disk: &mut Disk, key: Key, bytes: Arc<Vec<u8>>) {
    if disk.find(key).is_some_and(|file| bytes_of(&file.matter).is_some()) {
        disk.file_mut(key).matter = Matter::File(bytes);
    }
}

impl SimulatedFileSystem {
    /// Returns every disk that a cut of the power may leave now, oldest first, where no bytes are lost.
    pub fn disks_since_flush(&self) -> Vec<Disk> {
        self.0.lock().since_flush.clone()
    }

    /// Cuts the power, and lets this disk be left.
    pub fn fall_back_to(&self, disk: Disk) {
        let mut inner = self.0.lock();
        inner.is_dead = true;
        inner.disk = disk;
        inner.flush();
    }

    /// Cuts the power: the disk falls back to one of the states since the last flush, and files that were written
    /// since may have lost their bytes while they kept name and times. Returns those, and what users had written that
    /// is nowhere on the disk any more.
    pub fn cut_power(&self) -> (Vec<LostBytes>, Vec<ContentHash>) {
        let mut inner = self.0.lock();
        inner.is_dead = true;
        inner.surroundings.coverage.hit(Fault::PowerCut);
        let before = contents(&inner.disk);
        let Some(durable) = inner.since_flush.first().cloned() else { return Default::default() };
        let count = inner.since_flush.len();
        let pick = inner.dice.index(count);
        let mut disk = inner.since_flush[pick].clone();
        let mut lost = Vec::new();
        for key in disk.keys() {
            let bytes = bytes_of(&disk.file(key).matter);
            let is_poisoned = bytes.is_some() && inner.poisoned.get(&key) == bytes.as_ref();
            if !is_poisoned && (!is_written(&durable, &disk, key) || inner.dice.chance(500)) {
                continue;
            }
            let file: File = disk.file(key).clone();
            let Some(bytes) = bytes_of(&file.matter).filter(|bytes| !bytes.is_empty()) else {
                continue;
            };
            // Bytes of the same length that are not the right ones show in no stat. A file system keeps its promise
            // of "ordered" data for what users wrote; what the engine had not flushed it must not have trusted.
            let left = match file.is_engines && inner.dice.chance(500) {
                true => vec![0; bytes.len()],
                false => Vec::new(),
            };
            let (was, is) = (ContentHash::of_file(&bytes), ContentHash::of_file(&left));
            lose(&mut disk, key, Arc::new(left));
            inner.surroundings.coverage.hit(Fault::BytesLost);
            // Of what the engine writes nobody must ever see this.
            if !file.is_engines {
                inner.surroundings.chronicle.instant(is);
            }
            lost.push(LostBytes { stat: disk.file(key).stat(), before: was, after: is });
        }
        inner.poisoned.clear();
        let after = contents(&disk);
        inner.disk = disk;
        inner.flush();
        let gone = before.difference(&after).copied().collect();
        (lost, gone)
    }
}

/// Returns the contents of all files of a disk.
fn contents(disk: &Disk) -> std::collections::BTreeSet<ContentHash> {
    let files = disk.walk().into_iter();
    files.filter_map(|(_, key)| ContentHash::of(&disk.file(key).matter)).collect()
}
