//! Home directories of students, week after week: the *Homes* data set, as far as it is known.
//!
//! From publications: weekly snapshots of the home directories of students, and where their files change (StackSync 2014, section 5.1); 33 users and 21 months, which is 91 weeks (the FSL
//! archive, MSST 2016); how large files are, from the Syncany thesis (`sizes.rs`), since nothing is printed of these.
//!
//! Ours: how many changes there are; that 10 of a hundred make a file, 10 remove one, and 5 give one another name or folder; that an edit changes 1 to 4096 bytes;
//! that all users change their files as often; and their folders, which are those of StackSync's own workload. All changes of a week have the time of its snapshot, since a snapshot
//! says no more. So that a long trace grows no more than a short one, there are never fewer than half and never more than twice the files of
//! the beginning.

use super::super::Action;
use super::places::{Reading, edits, places};
use super::{Sheet, Workload, join, sizes, stacksync};
use crate::error::LabError;
use crate::random::Random;

/// Home directories, and snapshots of them.
#[derive(Debug, Clone)]
pub struct Homes {
    /// Equal seeds make equal traces.
    pub seed: u64,
    /// How many clients share the users among them.
    pub clients: usize,
    /// How many users, each with a folder; at least 1.
    pub users: usize,
    /// Bytes of the initial tree.
    pub tree_bytes: u64,
    /// How many snapshots follow, one in a week; at least 1.
    pub weeks: u64,
    /// How many changes they show together.
    pub changes: u64,
    /// Of edits.
    pub reading: Reading,
}

impl Default for Homes {
    fn default() -> Self {
        let (users, weeks, changes) = (33, 91, 10_000);
        let (tree_bytes, reading) = (750_000_000, Reading::Paper);
        Self { seed: 2014, clients: 1, users, tree_bytes, weeks, changes, reading }
    }
}

const WEEK_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// Of a hundred changes; the rest are edits.
const ADDS: u64 = 10;
const REMOVES: u64 = 10;
const RENAMES: u64 = 5;

/// Bytes of an edit at most.
const EDIT_MAX: u64 = 4096;

impl Workload for Homes {
    fn name(&self) -> &'static str {
        "homes"
    }

    fn about(&self) -> String {
        let Self { seed, users, tree_bytes, weeks, changes, reading, .. } = self;
        format!(
            "home directories after FSL Homes: {users} users, {tree_bytes} bytes, {changes} changes in {weeks} weeks, seed {seed}, {reading:?}"
        )
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn steps(&self, sheet: &mut Sheet<'_>) -> Result<(), LabError> {
        let random = Random::new(self.seed);
        let mut homes = State {
            random,
            preset: self,
            folders: stacksync::folders(),
            files: Vec::new(),
            made: 0,
        };
        for user in 0..self.users {
            for folder in &homes.folders {
                sheet.initial(Action::MakeFolder { path: join(&home(user), folder) })?;
            }
        }
        let mut bytes = 0;
        while bytes < self.tree_bytes || homes.files.is_empty() {
            let (_, action, size) = homes.add();
            bytes += size;
            sheet.initial(action)?;
        }
        let at_first = homes.files.len();
        for number in 0..self.changes {
            let week = u128::from(number) * u128::from(self.weeks) / u128::from(self.changes);
            let (user, action) = homes.change(at_first);
            sheet.change((week as u64 + 1) * WEEK_MS, user % self.clients.max(1), action)?;
        }
        Ok(())
    }
}

fn home(user: usize) -> String {
    format!("user{user:02}")
}

/// A file by the numbers that its path is made of.
#[derive(Debug, Clone, Copy)]
struct File {
    user: usize,
    folder: usize,
    number: u64,
}

struct State<'a> {
    random: Random,
    preset: &'a Homes,
    folders: Vec<String>,
    files: Vec<File>,
    made: u64,
}

impl State<'_> {
    fn path(&self, file: File) -> String {
        let folder = join(&home(file.user), &self.folders[file.folder]);
        join(&folder, &format!("file{:06}", file.number))
    }

    /// A file of this user with a name that none had before.
    fn new_file(&mut self, user: usize) -> File {
        self.made += 1;
        File { user, folder: self.random.index(self.folders.len()), number: self.made }
    }

    fn add(&mut self) -> (usize, Action, u64) {
        let user = self.random.index(self.preset.users);
        let file = self.new_file(user);
        self.files.push(file);
        let sizes::New { size, data, seed } = sizes::file(&mut self.random, self.preset.tree_bytes);
        (user, Action::Write { path: self.path(file), size, data, seed }, size)
    }

    fn change(&mut self, at_first: usize) -> (usize, Action) {
        let share = self.random.below(100);
        let count = self.files.len();
        if (share < ADDS && count < 2 * at_first)
            || (share < ADDS + REMOVES && 2 * count <= at_first)
        {
            let (user, action, _) = self.add();
            return (user, action);
        }
        let index = self.random.index(count);
        let file = self.files[index];
        let path = self.path(file);
        let action = if share < ADDS + REMOVES && count > 1 {
            self.files.swap_remove(index);
            Action::Remove { path }
        } else if share < ADDS + REMOVES + RENAMES {
            self.files[index] = self.new_file(file.user);
            Action::Rename { path, to: self.path(self.files[index]) }
        } else {
            let places = places(&mut self.random, self.preset.reading);
            let bytes = 1 + self.random.below(EDIT_MAX);
            Action::Edit { path, edits: edits(&mut self.random, places, bytes) }
        };
        (file.user, action)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{count, parsed};
    use super::*;

    #[test]
    fn users_weeks_and_shares_are_those_that_are_written_above() {
        let workload = Homes { changes: 20_000, ..Homes::default() };
        let steps = parsed(&workload);
        let homes = steps.iter().filter(
            |step| matches!(&step.action, Action::MakeFolder { path } if !path.contains('/')),
        );
        assert_eq!(homes.count(), 33);
        let mut weeks: Vec<u64> = steps.iter().filter_map(|step| step.at_ms).collect();
        assert!(weeks.is_sorted() && weeks.iter().all(|at_ms| at_ms % WEEK_MS == 0));
        weeks.dedup();
        assert_eq!((weeks.len(), weeks[0], weeks[90]), (91, WEEK_MS, 91 * WEEK_MS));
        let changes = || steps.iter().filter(|step| step.at_ms.is_some());
        for (is, percent) in [
            (
                &(|action: &Action| matches!(action, Action::Write { .. }))
                    as &dyn Fn(&Action) -> bool,
                10,
            ),
            (&|action| matches!(action, Action::Remove { .. }), 10),
            (&|action| matches!(action, Action::Rename { .. }), 5),
            (&|action| matches!(action, Action::Edit { .. }), 75),
        ] {
            let found = count(changes(), is);
            assert!(found.abs_diff(percent * 200) < 170, "{percent} %: {found}");
        }
    }

    #[test]
    fn there_are_as_many_files_after_a_long_time() {
        let steps = parsed(&Homes { tree_bytes: 20_000_000, changes: 40_000, ..Homes::default() });
        let (mut files, mut at_first, mut most) = (0_i64, 0, 0);
        for step in &steps {
            files += match step.action {
                Action::Write { .. } => 1,
                Action::Remove { .. } => -1,
                _ => 0,
            };
            at_first = if step.at_ms.is_none() { files } else { at_first };
            most = most.max(files);
            assert!(step.at_ms.is_none() || 2 * files >= at_first - 1, "{files} of {at_first}");
        }
        assert!(most <= 2 * at_first, "{most} of {at_first}");
    }
}
