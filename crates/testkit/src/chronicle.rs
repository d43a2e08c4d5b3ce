//! What users did, as far as it can be held against the engine later.
//!
//! *Required* is every version that a user completed and that no user has overwritten or deleted since, on any
//! device: whoever did so had it before their eyes. At quiescence each required version must be in the tree, under
//! its name or that of a conflict copy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::RelativePath;
use parking_lot::Mutex;

use crate::file_system::disk::Matter;

/// Names what a file or link holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash(u64);

impl ContentHash {
    /// Returns the hash of a file's bytes.
    pub fn of_file(bytes: &[u8]) -> Self {
        Self::tagged(0, bytes)
    }

    /// Returns the hash of a link's text.
    pub fn of_link(text: &[u8]) -> Self {
        Self::tagged(1, text)
    }

    /// Returns the hash of anything that holds something.
    pub fn of(matter: &Matter) -> Option<Self> {
        match matter {
            Matter::Directory(_) => None,
            Matter::File(bytes) => Some(Self::of_file(bytes)),
            Matter::Symlink(text) => Some(Self::of_link(text)),
        }
    }

    fn tagged(tag: u64, bytes: &[u8]) -> Self {
        let hash = blake3::hash(bytes);
        let mut half = [0; 8];
        half.copy_from_slice(&hash.as_bytes()[..8]);
        Self(u64::from_le_bytes(half) ^ tag)
    }
}

/// How a version came to be.
#[derive(Debug, Default)]
struct Made {
    count: u32,
    devices: BTreeSet<usize>,
}

/// A version that must not be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Required {
    /// On which device it was made.
    pub device: usize,
    /// Under which path.
    pub path: RelativePath,
}

/// The chronicle of a world; clones share it.
///
/// A version counts as *handled* by every device whose user touched any version of its file in this phase.
#[derive(Debug, Clone, Default)]
pub struct Chronicle(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    instants: BTreeSet<ContentHash>,
    required: BTreeMap<ContentHash, Required>,
    strangers: Vec<(usize, RelativePath)>,
    touched: BTreeMap<Vec<u8>, BTreeSet<usize>>,
    contended: BTreeSet<Vec<u8>>,
    /// Every name that a user ever used.
    used: BTreeSet<Vec<u8>>,
    /// Names that the same things have had.
    aliases: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    handled: BTreeMap<ContentHash, BTreeSet<usize>>,
    /// What users have made or moved, or changed the mode or time of.
    sanctioned: BTreeSet<(usize, ContentHash)>,
    deleted: BTreeSet<ContentHash>,
    /// The first version of the file that each version is one of.
    origins: BTreeMap<ContentHash, ContentHash>,
    /// Where and how often each version was made: what was made twice is not gone when one of both is deleted.
    made: BTreeMap<ContentHash, Made>,
}

impl Inner {
    fn origin(&self, content: ContentHash) -> ContentHash {
        self.origins.get(&content).copied().unwrap_or(content)
    }

    fn handle(&mut self, device: usize, content: ContentHash) {
        let origin = self.origin(content);
        self.handled.entry(origin).or_default().insert(device);
    }
}

impl Chronicle {
    /// What is written next is the next version of a file that held this.
    pub fn evolved(&self, from: ContentHash, to: ContentHash) {
        let mut inner = self.0.lock();
        let origin = inner.origin(from);
        inner.origins.insert(to, origin);
    }

    /// A file holds this for a moment, be it half written.
    pub fn instant(&self, content: ContentHash) {
        self.0.lock().instants.insert(content);
    }

    /// A user has completed a version.
    pub fn completed(&self, device: usize, path: &RelativePath, content: ContentHash) {
        let mut inner = self.0.lock();
        inner.instants.insert(content);
        inner.handle(device, content);
        inner.sanctioned.insert((device, content));
        inner.deleted.remove(&content);
        let made = inner.made.entry(content).or_default();
        made.count += 1;
        made.devices.insert(device);
        // The same edit on two devices is one version, and whoever of both goes on from it does so for the other, too.
        let is_only_here = made.devices.len() == 1;
        // What is empty is like everything else that is empty, and proves nothing.
        if content != ContentHash::of_file(&[]) && is_only_here {
            inner.required.insert(content, Required { device, path: path.clone() });
        }
    }

    /// A user has overwritten or deleted a version.
    pub fn destroyed(&self, device: usize, content: ContentHash, is_deletion: bool) {
        let mut inner = self.0.lock();
        inner.required.remove(&content);
        inner.handle(device, content);
        if is_deletion && content != ContentHash::of_file(&[]) {
            inner.deleted.insert(content);
        }
    }

    /// A user has moved a version, or changed its mode or time.
    pub fn handled(&self, device: usize, content: ContentHash) {
        let mut inner = self.0.lock();
        inner.handle(device, content);
        inner.sanctioned.insert((device, content));
    }

    /// Tells whether a user has made or moved a file that held this, or changed its mode or time: then it counts as
    /// theirs, even if it is what a power cut left.
    pub fn is_sanctioned(&self, device: usize, content: ContentHash) -> bool {
        self.0.lock().sanctioned.contains(&(device, content))
    }

    /// The power was cut on a device: nobody answers for what was not durable, nor for what came back instead. `gone` is
    /// nowhere on the disk any more; what lies elsewhere than it was made may be an older file.
    pub fn excuse(
        &self,
        device: usize,
        gone: &[ContentHash],
        is_there: impl Fn(&RelativePath, ContentHash) -> bool,
    ) {
        let mut inner = self.0.lock();
        for content in gone {
            inner.required.remove(content);
        }
        inner.required.retain(|content, required| {
            required.device != device || is_there(&required.path, *content)
        });
        inner.deleted.clear();
    }

    /// A user has done something at a path.
    pub fn touched(&self, device: usize, path: &RelativePath) {
        let mut inner = self.0.lock();
        for name in path.names() {
            inner.used.insert(name.as_bytes().to_vec());
            let devices = inner.touched.entry(name.as_bytes().to_vec()).or_default();
            devices.insert(device);
            if devices.len() > 1 {
                inner.contended.insert(without_label(name.as_bytes()));
            }
        }
    }

    /// Tells whether a user ever used a name.
    pub fn was_touched(&self, name: &[u8]) -> bool {
        self.0.lock().used.contains(name)
    }

    /// A user has given another name to something.
    pub fn renamed(&self, from: &[u8], to: &[u8]) {
        let (from, to) = (without_label(from), without_label(to));
        let mut inner = self.0.lock();
        inner.aliases.entry(from.clone()).or_default().insert(to.clone());
        inner.aliases.entry(to).or_default().insert(from);
    }

    /// All devices agree and are still: whatever is done from now on is done by somebody who has seen everything.
    pub fn begin_phase(&self) {
        let mut inner = self.0.lock();
        inner.touched.clear();
        inner.handled.clear();
        inner.deleted.clear();
    }

    /// The engine has put a file before the eyes of users.
    pub fn shown(&self, device: usize, path: &RelativePath, content: ContentHash) {
        let mut inner = self.0.lock();
        if !inner.instants.contains(&content) {
            inner.strangers.push((device, path.clone()));
        }
    }

    /// Returns files that the engine has shown and that hold what no file ever held.
    pub fn strangers(&self) -> Vec<(usize, RelativePath)> {
        self.0.lock().strangers.clone()
    }

    /// Returns every version that must be there.
    pub fn required(&self) -> BTreeMap<ContentHash, Required> {
        self.0.lock().required.clone()
    }

    /// Tells whether a file ever held this.
    pub fn is_known(&self, content: ContentHash) -> bool {
        self.0.lock().instants.contains(&content)
    }

    /// Returns versions that were deleted in this phase by the only device that touched them in it.
    pub fn deleted(&self) -> BTreeSet<ContentHash> {
        let inner = self.0.lock();
        let is_alone = |content: &&ContentHash| {
            let is_alone = inner
                .handled
                .get(&inner.origin(**content))
                .is_some_and(|devices| devices.len() == 1);
            is_alone && inner.made.get(*content).is_some_and(|made| made.count == 1)
        };
        inner.deleted.iter().filter(is_alone).copied().collect()
    }

    /// Tells whether two devices ever touched a name that begins so, or another name of the same thing, without having
    /// seen each other.
    pub fn is_contended(&self, stem: &[u8]) -> bool {
        let inner = self.0.lock();
        let mut seen = inner.contended.clone();
        let mut pending: Vec<_> = seen.iter().cloned().collect();
        while let Some(name) = pending.pop() {
            for alias in inner.aliases.get(&name).into_iter().flatten() {
                if seen.insert(alias.clone()) {
                    pending.push(alias.clone());
                }
            }
        }
        seen.iter().any(|name| name.starts_with(stem))
    }
}

/// Returns a name without the label of a conflict: whoever gave it meant the same thing.
fn without_label(name: &[u8]) -> Vec<u8> {
    let label = name.windows(11).position(|window| window == b" (conflict ");
    let end = name.iter().rposition(|byte| *byte == b')');
    match (label, end) {
        (Some(start), Some(end)) if start < end => [&name[..start], &name[end + 1..]].concat(),
        _ => name.to_vec(),
    }
}
