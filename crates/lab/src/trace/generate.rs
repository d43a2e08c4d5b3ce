//! Makes traces from a few numbers.

use std::io::{self, Write};
use std::path::Path;

use super::data::Kind;
use super::{Action, Edit, EditKind, FORMAT, Head, Place, Step, write_line};
use crate::error::LabError;
use crate::files;
use crate::random::Random;

/// Which shares the edits of the *Homes* data set have: the paper and the same authors' BenchBox have those of E and M the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// As StackSync prints it: E 8 %, M 3 %.
    Paper,
    /// As BenchBox has it: E 3 %, M 8 %.
    BenchBox,
}

/// StackSync's synthetic workload (2014, section 5.1).
#[derive(Debug, Clone)]
pub struct StackSync {
    /// Equal seeds make equal traces.
    pub seed: u64,
    /// How many clients change files, one after the other.
    pub clients: usize,
    /// Bytes of the initial tree.
    pub tree_bytes: u64,
    /// How many changes follow.
    pub changes: u64,
    /// Milliseconds from one change to the next, on average; they are drawn from an exponential distribution.
    pub interval_ms: u64,
    /// Of edits.
    pub reading: Reading,
}

/// Sizes of files in bytes.
const FILE_SIZE_MIN: u64 = 512 * 1024;
const FILE_SIZE_MORE: u64 = 4 * 1024 * 1024 - FILE_SIZE_MIN + 1;

/// How deep folders lie in each other, and how many lie in each.
const DEPTH: usize = 3;
const SUBFOLDERS: usize = 2;

/// The changes alter this share of the tree, in percent. A new file has some 2.3 MB, so nearly all changes are edits.
const ALTERED_PERCENT: u64 = 5;

/// Of a thousand changes, so many make a file, and as many remove one.
const ADDS_OF_THOUSAND: u64 = 10;

/// Where edits hit a file, of a hundred, besides E and M.
const COMBINATIONS: [(&[Place], u64); 4] = [
    (&[Place::Beginning, Place::End], 10),
    (&[Place::Beginning, Place::Middle], 11),
    (&[Place::Middle, Place::End], 1),
    (&[Place::Beginning, Place::Middle, Place::End], 29),
];

impl Default for StackSync {
    /// The numbers of the paper.
    fn default() -> Self {
        Self {
            seed: 2014,
            clients: 1,
            tree_bytes: 750_000_000,
            changes: 1000,
            interval_ms: 1000,
            reading: Reading::Paper,
        }
    }
}

impl StackSync {
    /// Writes the trace into a file.
    ///
    /// # Errors
    /// [`LabError::Write`].
    pub fn save(&self, path: &Path) -> Result<(), LabError> {
        let mut file = files::create(path)?;
        let written = self.write(&mut file).and_then(|()| file.flush());
        written.map_err(|source| LabError::Write { path: path.to_owned(), source })
    }

    /// Writes the trace.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut making = Making {
            random: Random::new(self.seed),
            folders: folders(),
            files: Vec::new(),
            made: 0,
            preset: self.clone(),
        };
        let (tree, changes, mean) = (self.tree_bytes, self.changes, self.interval_ms);
        let about = format!(
            "StackSync 2014, section 5.1: {tree} bytes, {changes} changes, one in {mean} ms, seed {}, {:?}",
            self.seed, self.reading
        );
        let (syncline_trace, name, clients) = (FORMAT, "stacksync".to_owned(), self.clients);
        write_line(out, &Head { syncline_trace, name, about, clients })?;
        for path in making.folders.clone().into_iter().skip(1) {
            write_line(out, &Step { at_ms: None, client: 0, action: Action::MakeFolder { path } })?;
        }
        let mut bytes = 0;
        while bytes < tree {
            let (action, size) = making.add();
            bytes += size;
            write_line(out, &Step { at_ms: None, client: 0, action })?;
        }
        let mut at_ms = 0.0;
        for number in 0..changes {
            at_ms += -(1.0 - making.random.unit()).ln() * mean as f64;
            let client = (number % clients.max(1) as u64) as usize;
            write_line(out, &Step { at_ms: Some(at_ms as u64), client, action: making.change() })?;
        }
        Ok(())
    }
}

/// The paths of all folders; that of the first is empty.
fn folders() -> Vec<String> {
    let mut all = vec![String::new()];
    let mut level = 0..1;
    for _ in 0..DEPTH {
        let start = all.len();
        for parent in level {
            for number in 1..=SUBFOLDERS {
                all.push(join(&all[parent], &format!("folder{number}")));
            }
        }
        level = start..all.len();
    }
    all
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

struct Making {
    random: Random,
    folders: Vec<String>,
    files: Vec<String>,
    made: u64,
    preset: StackSync,
}

impl Making {
    /// Makes a file, and says how large it is.
    fn add(&mut self) -> (Action, u64) {
        let folder = self.random.below(self.folders.len() as u64) as usize;
        let path = join(&self.folders[folder], &format!("file{:05}.dat", self.made));
        self.made += 1;
        self.files.push(path.clone());
        let size = FILE_SIZE_MIN + self.random.below(FILE_SIZE_MORE);
        (Action::Write { path, size, data: Kind::Random, seed: self.random.next() }, size)
    }

    fn change(&mut self) -> Action {
        match self.random.below(1000) {
            share if share < ADDS_OF_THOUSAND || self.files.is_empty() => self.add().0,
            share if share < 2 * ADDS_OF_THOUSAND => {
                let file = self.random.below(self.files.len() as u64) as usize;
                Action::Remove { path: self.files.swap_remove(file) }
            }
            _ => self.edit(),
        }
    }

    fn edit(&mut self) -> Action {
        let path = self.files[self.random.below(self.files.len() as u64) as usize].clone();
        let places = self.places();
        // On average what the paper's changes alter, in equal parts where a file is hit in several places.
        let mean = self.preset.tree_bytes * ALTERED_PERCENT / 100 / self.preset.changes.max(1);
        let size = (1 + self.random.below((2 * mean).max(1))).div_ceil(places.len() as u64);
        let edits = places.iter().map(|place| {
            // BenchBox writes over the middle of a file; a file grows at its ends.
            let kind = if *place == Place::Middle { EditKind::Overwrite } else { EditKind::Insert };
            Edit { place: *place, offset: None, kind, size, seed: self.random.next() }
        });
        Action::Edit { path, edits: edits.collect() }
    }

    fn places(&mut self) -> &'static [Place] {
        let (end, middle) = match self.preset.reading {
            Reading::Paper => (8, 3),
            Reading::BenchBox => (3, 8),
        };
        let alone: [(&[Place], u64); 3] =
            [(&[Place::Beginning], 38), (&[Place::End], end), (&[Place::Middle], middle)];
        let mut left = self.random.below(100);
        for (places, share) in alone.into_iter().chain(COMBINATIONS) {
            if left < share {
                return places;
            }
            left -= share;
        }
        unreachable!("the shares are a hundred together")
    }
}
