//! StackSync's synthetic workload (2014, section 5.1).
//!
//! The paper has: files of 512 KB to 4 MB, each size as likely; 750 MB in folders three levels deep with two in each; 1000 changes, which make, edit and remove files and
//! alter 5 % of the tree; edits as in the *Homes* data set (`places.rs`, with both readings of it). Ours: how often files are made and removed,
//! which the paper does not say, how the altered bytes are shared out, and the times.

use super::super::data::Kind;
use super::super::{Action, Place};
use super::places::{Reading, edits, places};
use super::{Sheet, Workload, join};
use crate::error::LabError;
use crate::random::Random;

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

impl Workload for StackSync {
    fn name(&self) -> &'static str {
        "stacksync"
    }

    fn about(&self) -> String {
        let Self { seed, tree_bytes, changes, interval_ms, reading, .. } = self;
        format!(
            "StackSync 2014, section 5.1: {tree_bytes} bytes, {changes} changes, one in {interval_ms} ms, seed {seed}, {reading:?}"
        )
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn steps(&self, sheet: &mut Sheet<'_>) -> Result<(), LabError> {
        let mut making = Making {
            random: Random::new(self.seed),
            folders: folders(),
            files: Vec::new(),
            made: 0,
            preset: self,
        };
        for path in making.folders.clone().into_iter().skip(1) {
            sheet.initial(Action::MakeFolder { path })?;
        }
        let mut bytes = 0;
        while bytes < self.tree_bytes {
            let (action, size) = making.add();
            bytes += size;
            sheet.initial(action)?;
        }
        let mut at_ms = 0.0;
        for number in 0..self.changes {
            at_ms += making.random.exponential(self.interval_ms as f64);
            let client = (number % self.clients.max(1) as u64) as usize;
            sheet.change(at_ms as u64, client, making.change())?;
        }
        Ok(())
    }
}

/// The paths of all folders; that of the first is empty.
pub(super) fn folders() -> Vec<String> {
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

struct Making<'a> {
    random: Random,
    folders: Vec<String>,
    files: Vec<String>,
    made: u64,
    preset: &'a StackSync,
}

impl Making<'_> {
    /// Makes a file, and says how large it is.
    fn add(&mut self) -> (Action, u64) {
        let folder = self.random.one_of(&self.folders);
        let path = join(folder, &format!("file{:05}.dat", self.made));
        self.made += 1;
        self.files.push(path.clone());
        let size = FILE_SIZE_MIN + self.random.below(FILE_SIZE_MORE);
        (Action::Write { path, size, data: Kind::Random, seed: self.random.next() }, size)
    }

    fn change(&mut self) -> Action {
        match self.random.below(1000) {
            share if share < ADDS_OF_THOUSAND || self.files.is_empty() => self.add().0,
            share if share < 2 * ADDS_OF_THOUSAND => {
                let file = self.random.index(self.files.len());
                Action::Remove { path: self.files.swap_remove(file) }
            }
            _ => self.edit(),
        }
    }

    fn edit(&mut self) -> Action {
        let path = self.random.one_of(&self.files).clone();
        let places: &[Place] = places(&mut self.random, self.preset.reading);
        // On average what the paper's changes alter.
        let mean = self.preset.tree_bytes * ALTERED_PERCENT / 100 / self.preset.changes.max(1);
        let bytes = 1 + self.random.below((2 * mean).max(1));
        Action::Edit { path, edits: edits(&mut self.random, places, bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Step;
    use super::super::tests::parsed;
    use super::*;

    #[test]
    fn sizes_folders_and_edits_are_those_of_the_paper() {
        let steps = parsed(&StackSync::default());
        let folders = steps.iter().filter(|step| matches!(step.action, Action::MakeFolder { .. }));
        assert_eq!(folders.count(), 2 + 4 + 8);
        let sizes: Vec<u64> = steps
            .iter()
            .filter(|step| step.at_ms.is_none())
            .filter_map(|step| match step.action {
                Action::Write { size, .. } => Some(size),
                _ => None,
            })
            .collect();
        let total: u64 = sizes.iter().sum();
        assert!((750_000_000..755_000_000).contains(&total), "{total}");
        assert!(sizes.iter().all(|size| (512 << 10..=4 << 20).contains(size)));
        let changes: Vec<_> = steps.iter().filter(|step| step.at_ms.is_some()).collect();
        assert_eq!(changes.len(), 1000);
        let places = |step: &&&Step| match &step.action {
            Action::Edit { edits, .. } => edits.iter().map(|edit| edit.place).collect(),
            _ => Vec::new(),
        };
        let share = |wanted: &[Place]| changes.iter().filter(|step| places(step) == wanted).count();
        let [beginning, end, middle] =
            [Place::Beginning, Place::End, Place::Middle].map(|place| share(&[place]));
        assert!((340..420).contains(&beginning), "{beginning}");
        assert!((60..105).contains(&end), "{end}");
        assert!((15..50).contains(&middle), "{middle}");
        let edited: u64 = changes
            .iter()
            .map(|step| match &step.action {
                Action::Edit { edits, .. } => edits.iter().map(|edit| edit.size).sum(),
                _ => 0,
            })
            .sum();
        assert!((33_000_000..42_000_000).contains(&edited), "{edited}");
        let last = changes.last().unwrap().at_ms.unwrap();
        assert!((900_000..1_100_000).contains(&last), "{last}");
    }
}
