//! The simple and the regular workload of WebR2sync+ (2018, sections 3.2 and 6.2).
//!
//! The paper has: random append, insert and cut operations of 1 B, 10 B, 100 B, 1 KB, 10 KB and 100 KB on files of nearly 1 MB on average; an insert or cut of 1 KB or more is
//! dispersed into 1 to 20 continuous sub-edits; in the simple workload a file is edited once, in the regular one every 10 seconds. How many sub-edits people save at once is in
//! its figure 13: in 46 % of cases 1 to 5, in 35 % 6 to 10, in 5 % more than 16. Its own files were random bytes.
//!
//! Ours: that edits are dispersed as in figure 13, into equal parts at places that are all as likely; that file sizes are drawn evenly from half to one
//! and a half MiB; that a KB is 1024 bytes, as in the authors' scripts; that the files of a round are edited one after the other; and that a file which has doubled or
//! halved is written anew, so that it stays a typical one however long the workload is.
//!
//! The intensive workload, two releases of a source tree, is made by [`super::versions`].

use super::super::data::Kind;
use super::super::{Action, Edit, EditKind, Place};
use super::{Sheet, Workload};
use crate::error::LabError;
use crate::random::Random;

/// Files that are edited round after round.
#[derive(Debug, Clone)]
pub struct WebR2sync {
    /// Equal seeds make equal traces.
    pub seed: u64,
    /// How many clients share the files among them.
    pub clients: usize,
    /// How many files there are. Each has one operation and one size of the eighteen.
    pub files: usize,
    /// How often each one is edited: once in the simple workload, again and again in the regular one.
    pub rounds: u64,
    /// Milliseconds from one edit of a file to the next.
    pub interval_ms: u64,
}

impl Default for WebR2sync {
    /// The simple workload, ten files for each operation and size.
    fn default() -> Self {
        Self { seed: 2014, clients: 1, files: 180, rounds: 1, interval_ms: 10_000 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Append,
    Insert,
    Cut,
}

const OPERATIONS: [Operation; 3] = [Operation::Append, Operation::Insert, Operation::Cut];

/// Sizes of edits in bytes.
const EDIT_SIZES: [u64; 6] = [1, 10, 100, 1024, 10 * 1024, 100 * 1024];

/// From here on an insert or cut is dispersed.
const DISPERSED_MIN: u64 = 1024;

/// Of a hundred edits, so many have this many sub-edits, from the first to the last number.
const SUB_EDITS: [((u64, u64), u64); 4] =
    [((1, 5), 46), ((6, 10), 35), ((11, 16), 14), ((17, 20), 5)];

/// Sizes of files in bytes: half a MiB and up to a MiB more.
const FILE_SIZE_MIN: u64 = 512 * 1024;
const FILE_SIZE_MORE: u64 = 1024 * 1024 + 1;

/// How large a file was when it was written, and is now.
struct Size {
    written: u64,
    now: u64,
}

impl Workload for WebR2sync {
    fn name(&self) -> &'static str {
        "webr2sync"
    }

    fn about(&self) -> String {
        let Self { seed, files, rounds, interval_ms, .. } = self;
        format!(
            "WebR2sync+ 2018, section 6.2: {files} files, edited {rounds} times, once in {interval_ms} ms, seed {seed}"
        )
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn steps(&self, sheet: &mut Sheet<'_>) -> Result<(), LabError> {
        let mut random = Random::new(self.seed);
        let mut sizes = Vec::with_capacity(self.files);
        for file in 0..self.files {
            let (action, size) = new_file(&mut random, file);
            sheet.initial(action)?;
            sizes.push(Size { written: size, now: size });
        }
        for round in 0..self.rounds {
            for (file, size) in sizes.iter_mut().enumerate() {
                let within = self.interval_ms * file as u64 / self.files as u64;
                let at_ms = round * self.interval_ms + within;
                let client = file % self.clients.max(1);
                if size.now > 2 * size.written || size.now < size.written / 2 {
                    let (action, written) = new_file(&mut random, file);
                    sheet.change(at_ms, client, action)?;
                    *size = Size { written, now: written };
                }
                let (operation, bytes) = cell(file);
                let edits = edits(&mut random, operation, bytes, size.now);
                match operation {
                    Operation::Cut => size.now -= bytes,
                    Operation::Append | Operation::Insert => size.now += bytes,
                }
                sheet.change(at_ms, client, Action::Edit { path: path(file), edits })?;
            }
        }
        Ok(())
    }
}

/// Which operation a file is there for, and of which size.
fn cell(file: usize) -> (Operation, u64) {
    let cell = file % (OPERATIONS.len() * EDIT_SIZES.len());
    (OPERATIONS[cell % OPERATIONS.len()], EDIT_SIZES[cell / OPERATIONS.len()])
}

fn path(file: usize) -> String {
    let (operation, bytes) = cell(file);
    let operation = match operation {
        Operation::Append => "append",
        Operation::Insert => "insert",
        Operation::Cut => "cut",
    };
    format!("{operation}-{bytes}-{file:05}.dat")
}

fn new_file(random: &mut Random, file: usize) -> (Action, u64) {
    let size = FILE_SIZE_MIN + random.below(FILE_SIZE_MORE);
    (Action::Write { path: path(file), size, data: Kind::Random, seed: random.next() }, size)
}

/// Draws the sub-edits of an edit; together they have its size. They go from the front of the file to its end.
fn edits(random: &mut Random, operation: Operation, bytes: u64, file_size: u64) -> Vec<Edit> {
    let kind = if operation == Operation::Cut { EditKind::Cut } else { EditKind::Insert };
    if operation == Operation::Append {
        let seed = random.next();
        return vec![Edit { place: Place::End, offset: None, kind, size: bytes, seed }];
    }
    let count = if bytes < DISPERSED_MIN {
        1
    } else {
        let (low, high) = random.weighted(SUB_EDITS.into_iter());
        low + random.below(high - low + 1)
    };
    // Places in what is left of the file when all is cut, or in what it was before: so all ways to disperse the edit are as likely.
    let room = if kind == EditKind::Cut { file_size - bytes } else { file_size };
    let mut places: Vec<u64> = (0..count).map(|_| random.below(room + 1)).collect();
    places.sort_unstable();
    let mut inserted = 0;
    let edit = |(number, place): (u64, &u64)| {
        let size = bytes / count + u64::from(number < bytes % count);
        let offset = Some(place + inserted);
        inserted += if kind == EditKind::Insert { size } else { 0 };
        Edit { place: Place::Offset, offset, kind, size, seed: random.next() }
    };
    (0..).zip(&places).map(edit).collect()
}

#[cfg(test)]
mod tests;
