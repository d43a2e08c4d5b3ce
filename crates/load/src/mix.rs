//! What devices change: files of StackSync's synthetic workload (StackSync 2014, section 5.1).
//!
//! The paper gives sizes (uniform from 512 KB to 4 MB) and where an edit hits a file (its beginning, its end, its middle, or several
//! of them, as in the *Homes* data set). It cut files into chunks of 512 KB, so a commit names one to eight chunks.
//!
//! It names the kinds ADD, UPDATE and REMOVE without their shares. But it says that 1000 changes alter 37.5 MB. A new file has 2.3 MB on
//! average, so at most 16 of the 1000 can be new; here 10 are, 10 remove, and the rest update.
//!
//! A mix is a pure function of its seed: whoever judges a run makes the same changes again.

use model::codec::encode_message;
use model::content::{ChunkRef, Content};
use model::{Action, Change, ChunkId, Name, NodeId, NodeKind, NodeRecord, Timestamp};

/// The sizes of files, in bytes.
const FILE_SIZES: std::ops::RangeInclusive<u64> = 512 * 1024..=4 * 1024 * 1024;

/// How large StackSync's chunks are, in bytes.
const CHUNK_SIZE: u64 = 512 * 1024;

/// The longest edit in one place, in bytes. The paper's changes alter 37.5 KB on average.
const EDIT_LENGTH_MAX: u64 = 64 * 1024;

/// Of a thousand changes, so many make a file, and as many remove one.
const ADDS_OF_THOUSAND: u32 = 10;

/// How many files a device makes before it changes any.
const FILES_FIRST: usize = 8;

/// Where edits hit a file, of a hundred: beginning, end, middle, and combinations. The shares of B, E and M are printed in the paper; those of the
/// combinations are the ones of the same authors' BenchBox, whose one percent of *ME* stands at its place.
const EDITS: [(Edit, u32); 7] = [
    (Edit { beginning: true, middle: false, end: false }, 38),
    (Edit { beginning: false, middle: false, end: true }, 8),
    (Edit { beginning: false, middle: true, end: false }, 3),
    (Edit { beginning: true, middle: false, end: true }, 10),
    (Edit { beginning: true, middle: true, end: false }, 11),
    (Edit { beginning: false, middle: true, end: true }, 1),
    (Edit { beginning: true, middle: true, end: true }, 29),
];

/// Which places of a file an edit hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edit {
    beginning: bool,
    middle: bool,
    end: bool,
}

/// What a change is, as StackSync counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A new file.
    Add,
    /// Another content.
    Update,
    /// A file goes.
    Remove,
}

/// A file of this device.
#[derive(Debug, Clone)]
struct File {
    node: NodeId,
    name: String,
    version: u64,
    size: u64,
    chunks: Vec<ChunkId>,
}

/// The changes of one device, one after the other, each resting on the one before.
#[derive(Debug)]
pub struct Mix {
    random: fastrand::Rng,
    files: Vec<File>,
    made: u64,
}

impl Mix {
    /// Prepares the changes of the device with this number.
    pub fn new(seed: u64, device: u32) -> Self {
        let mixed = (seed ^ u64::from(device)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { random: fastrand::Rng::with_seed(mixed), files: Vec::new(), made: 0 }
    }

    /// Makes the next change.
    pub fn next_change(&mut self) -> (Kind, Change) {
        if self.files.len() < FILES_FIRST {
            return (Kind::Add, self.add());
        }
        match self.random.u32(0..1000) {
            n if n < ADDS_OF_THOUSAND => (Kind::Add, self.add()),
            n if n < 2 * ADDS_OF_THOUSAND => (Kind::Remove, self.remove()),
            _ => (Kind::Update, self.update()),
        }
    }

    fn add(&mut self) -> Change {
        let size = self.random.u64(FILE_SIZES);
        let mut node = [0; NodeId::LENGTH];
        self.random.fill(&mut node);
        let mut file = File {
            node: NodeId::from_bytes(node),
            name: format!("file-{:06}.dat", self.made),
            version: 0,
            size: 0,
            chunks: Vec::new(),
        };
        self.made += 1;
        self.resize(&mut file, size, 0);
        let change = put(&mut file);
        self.files.push(file);
        change
    }

    fn update(&mut self) -> Change {
        let place = self.random.usize(0..self.files.len());
        let mut file = self.files[place].clone();
        let edit = self.edit();
        let length = self.random.u64(1..=EDIT_LENGTH_MAX);
        let (last, middle) = (file.chunks.len() - 1, file.chunks.len() / 2);
        // StackSync cut at fixed places: what is inserted before the middle moves the borders of all that follows.
        let first_changed = match edit {
            Edit { beginning: true, .. } => 0,
            Edit { middle: true, .. } => middle,
            Edit { .. } => last,
        };
        let pieces = [edit.beginning, edit.middle, edit.end].into_iter().filter(|hit| *hit);
        let size = (file.size + length * pieces.count() as u64).min(*FILE_SIZES.end());
        self.resize(&mut file, size, first_changed);
        let change = put(&mut file);
        self.files[place] = file;
        change
    }

    fn remove(&mut self) -> Change {
        let place = self.random.usize(0..self.files.len());
        let file = self.files.swap_remove(place);
        Change { node: file.node, base: file.version, action: Action::Delete }
    }

    fn edit(&mut self) -> Edit {
        let mut drawn = self.random.u32(0..100);
        for (edit, share) in EDITS {
            if drawn < share {
                return edit;
            }
            drawn -= share;
        }
        EDITS[0].0
    }

    /// Gives a file another size and new chunks from `first_changed` on.
    fn resize(&mut self, file: &mut File, size: u64, first_changed: usize) {
        file.size = size;
        file.chunks.truncate(first_changed);
        while (file.chunks.len() as u64) < size.div_ceil(CHUNK_SIZE) {
            let mut id = [0; ChunkId::LENGTH];
            self.random.fill(&mut id);
            file.chunks.push(ChunkId::from_bytes(id));
        }
    }
}

/// Proposes what a file is now as its next version.
fn put(file: &mut File) -> Change {
    let mut left = file.size;
    let chunks = file.chunks.iter().map(|&id| {
        let length = left.min(CHUNK_SIZE);
        left -= length;
        ChunkRef { id, length: length as u32 }
    });
    let chunks = chunks.collect();
    let content = Content { size: file.size, chunk_size: CHUNK_SIZE as u32, depth: 0, chunks };
    let record = NodeRecord {
        parent: NodeId::ROOT,
        name: Name::new(file.name.as_str()).expect("letters and digits make a name"),
        mode: 0o644,
        modified: Timestamp { seconds: 1_400_000_000 + file.version as i64, nanoseconds: 0 },
        kind: NodeKind::File(content),
        conflict: None,
    };
    let action = Action::Put(encode_message(&record));
    let change = Change { node: file.node, base: file.version, action };
    file.version += 1;
    change
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::codec::decode_message;

    #[test]
    fn shares_of_edits_are_a_hundred() {
        assert_eq!(EDITS.iter().map(|(_, share)| share).sum::<u32>(), 100);
    }

    #[test]
    fn same_seed_gives_the_same_changes_and_devices_differ() {
        let changes = |seed, device| {
            let mut mix = Mix::new(seed, device);
            (0..200).map(|_| mix.next_change().1).collect::<Vec<_>>()
        };
        assert_eq!(changes(7, 1), changes(7, 1));
        assert_ne!(changes(7, 1), changes(7, 2));
        assert_ne!(changes(7, 1), changes(8, 1));
    }

    #[test]
    fn kinds_sizes_and_chunks_are_those_of_the_paper() {
        let mut mix = Mix::new(1, 1);
        let (mut adds, mut removes, mut edited) = (0, 0, 0);
        for _ in 0..100_000 {
            let (kind, change) = mix.next_change();
            match kind {
                Kind::Add => adds += 1,
                Kind::Remove => removes += 1,
                Kind::Update => edited += 1,
            }
            if let Action::Put(payload) = &change.action {
                let record: NodeRecord = decode_message(payload).expect("it decodes");
                let NodeKind::File(content) = record.kind else { panic!("it is a file") };
                assert!(FILE_SIZES.contains(&content.size), "{}", content.size);
                assert!((1..=8).contains(&content.chunks.len()), "{}", content.chunks.len());
            }
        }
        assert!((900..1100).contains(&adds), "{adds} of 100,000 add");
        assert!((900..1100).contains(&removes), "{removes} of 100,000 remove");
        assert_eq!(adds + removes + edited, 100_000);
    }

    #[test]
    fn every_change_names_the_version_before_it() {
        let mut mix = Mix::new(3, 9);
        let mut versions = std::collections::HashMap::new();
        for _ in 0..10_000 {
            let (_, change) = mix.next_change();
            let version = versions.entry(change.node).or_insert(0);
            assert_eq!(change.base, *version);
            *version += 1;
        }
    }
}
