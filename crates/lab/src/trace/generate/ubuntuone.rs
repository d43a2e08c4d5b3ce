//! People with a personal cloud, after the records of UbuntuOne.
//!
//! From publications: what follows on what, and after which time on average, is what BenchBox (of the authors of StackSync and of *Dissecting UbuntuOne*, 2015) publishes of those users of UbuntuOne who
//! synchronise (its file `xl_markov_sync_all_sid_ms.csv`, within a session; downloads left out, since they change no folder). From BenchBox also: 17 % of the files have been there before, 5 operations
//! on folders come on 100 on files, a user has 1 to 17 folders, and where files are changed. How large files are is from the Syncany thesis (`sizes.rs`): BenchBox has
//! distributions for that which are not printed.
//!
//! Ours: a file that is made in those records comes when its content is put, and content that is put where none is awaited changes a file; waiting times are exponential; an edit changes 1 to 4096 bytes; with a
//! folder that is removed go its files. Users differ much in how active they are, and how much is not known here: the second is half as active as the first, the third a
//! third as active, and so on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::Action;
use super::places::{Reading, edits, places};
use super::{Sheet, Workload, sizes};
use crate::error::LabError;
use crate::random::Random;

/// Users of a personal cloud.
#[derive(Debug, Clone)]
pub struct UbuntuOne {
    /// Equal seeds make equal traces.
    pub seed: u64,
    /// How many clients share the users among them.
    pub clients: usize,
    /// How many users, each with a folder; at least 1.
    pub users: usize,
    /// Bytes of the initial tree.
    pub tree_bytes: u64,
    /// How many changes follow.
    pub changes: u64,
}

impl Default for UbuntuOne {
    fn default() -> Self {
        Self { seed: 2014, clients: 1, users: 20, tree_bytes: 750_000_000, changes: 10_000 }
    }
}

/// What a user does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Make,
    Put,
    Move,
    Unlink,
}

use Operation::{Make, Move, Put, Unlink};

/// What comes next, how often in thousands, and after how many milliseconds on average.
type Next = (Operation, u64, f64);

fn next(operation: Operation) -> [Next; 4] {
    match operation {
        Make => [
            (Make, 66_939, 2185.0),
            (Put, 18_301, 3592.0),
            (Move, 2624, 2599.0),
            (Unlink, 7086, 4560.0),
        ],
        Put => [
            (Make, 19_933, 103_389.0),
            (Put, 76_403, 28_904.0),
            (Move, 770, 73_621.0),
            (Unlink, 1965, 163_192.0),
        ],
        Move => [
            (Make, 1349, 58_370.0),
            (Put, 2917, 16_099.0),
            (Move, 2660, 4423.0),
            (Unlink, 907, 10_811.0),
        ],
        Unlink => [
            (Make, 6366, 54_886.0),
            (Put, 1841, 42_578.0),
            (Move, 1768, 5053.0),
            (Unlink, 30_737, 2297.0),
        ],
    }
}

/// Of a hundred files that are put, so many have been there before.
const KNOWN_PERCENT: u64 = 17;

/// Of so many operations, this many are on folders.
const FOLDER_OPERATIONS: u64 = 5;
const OPERATIONS: u64 = 105;

const FOLDERS_MAX: usize = 17;

/// Bytes of an edit at most.
const EDIT_MAX: u64 = 4096;

/// A file by the numbers that its path is made of, and with what was put into it first.
#[derive(Debug, Clone, Copy)]
struct File {
    folder: usize,
    number: u64,
    content: sizes::New,
}

struct User {
    files: Vec<File>,
    /// How often each folder has got another name; nothing where there is none. There is always one.
    folders: [Option<u64>; FOLDERS_MAX],
    /// Files that are made, and whose content is to come.
    awaited: u64,
    does: Operation,
}

struct State<'a> {
    random: Random,
    preset: &'a UbuntuOne,
    users: Vec<User>,
    made: u64,
}

impl Workload for UbuntuOne {
    fn name(&self) -> &'static str {
        "ubuntuone"
    }

    fn about(&self) -> String {
        let Self { seed, users, tree_bytes, changes, .. } = self;
        format!(
            "a personal cloud after UbuntuOne: {users} users, {tree_bytes} bytes, {changes} changes, seed {seed}"
        )
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn steps(&self, sheet: &mut Sheet<'_>) -> Result<(), LabError> {
        let random = Random::new(self.seed);
        let mut state = State { random, preset: self, users: Vec::new(), made: 0 };
        state.begin(sheet)?;
        let mut due = BinaryHeap::new();
        for user in 0..state.users.len() {
            due.push(Reverse((state.next(user), user)));
        }
        let mut actions = Vec::new();
        while sheet.changes() < self.changes
            && let Some(Reverse((at_ms, user))) = due.pop()
        {
            state.act(user, &mut actions);
            let left = (self.changes - sheet.changes()) as usize;
            for action in actions.drain(..).take(left) {
                sheet.change(at_ms, user % self.clients.max(1), action)?;
            }
            due.push(Reverse((at_ms + state.next(user), user)));
        }
        Ok(())
    }
}

impl State<'_> {
    /// Makes the initial tree.
    fn begin(&mut self, sheet: &mut Sheet<'_>) -> Result<(), LabError> {
        for user in 0..self.preset.users {
            sheet.initial(Action::MakeFolder { path: home(user) })?;
            let mut folders = [None; FOLDERS_MAX];
            let count = 1 + self.random.index(FOLDERS_MAX);
            for (number, folder) in folders.iter_mut().enumerate().take(count) {
                *folder = Some(0);
                sheet.initial(Action::MakeFolder { path: folder_path(user, number, 0) })?;
            }
            self.users.push(User { files: Vec::new(), folders, awaited: 0, does: Put });
        }
        let mut bytes = 0;
        while bytes < self.preset.tree_bytes {
            let user = self.random.index(self.users.len());
            let action = self.put_new(user);
            if let Action::Write { size, .. } = action {
                bytes += size;
            }
            sheet.initial(action)?;
        }
        Ok(())
    }

    /// Draws what a user does next, and says in how many milliseconds.
    fn next(&mut self, user: usize) -> u64 {
        let choices = next(self.users[user].does).into_iter();
        let choices = choices.map(|(does, count, wait_ms)| ((does, wait_ms), count));
        let (does, wait_ms) = self.random.weighted(choices);
        self.users[user].does = does;
        self.random.exponential(wait_ms * (user + 1) as f64) as u64
    }

    fn act(&mut self, user: usize, actions: &mut Vec<Action>) {
        let is_on_folder = self.random.below(OPERATIONS) < FOLDER_OPERATIONS;
        match (self.users[user].does, is_on_folder) {
            (Make, true) => actions.extend(self.make_folder(user)),
            (Make, false) => self.users[user].awaited += 1,
            (Put, _) if self.users[user].awaited > 0 => {
                self.users[user].awaited -= 1;
                actions.push(self.put_new(user));
            }
            (Put, _) => actions.extend(self.edit(user)),
            (Move, true) => {
                let (number, times) = self.folder(user);
                self.users[user].folders[number] = Some(times + 1);
                let [path, to] = [times, times + 1].map(|times| folder_path(user, number, times));
                actions.push(Action::Rename { path, to });
            }
            (Move, false) => actions.extend(self.move_file(user)),
            (Unlink, true) => self.remove_folder(user, actions),
            (Unlink, false) => actions.extend(self.remove_file(user)),
        }
    }

    /// Puts a file where none was: with content that is new, or that a file of somebody has got before.
    fn put_new(&mut self, user: usize) -> Action {
        let (folder, _) = self.folder(user);
        let somebody = self.random.index(self.users.len());
        let known = &self.users[somebody].files;
        let content = if self.random.below(100) < KNOWN_PERCENT && !known.is_empty() {
            self.random.one_of(known).content
        } else {
            sizes::file(&mut self.random, self.preset.tree_bytes)
        };
        self.made += 1;
        let file = File { folder, number: self.made, content };
        let path = self.path(user, file);
        self.users[user].files.push(file);
        let sizes::New { size, data, seed } = content;
        Action::Write { path, size, data, seed }
    }

    fn edit(&mut self, user: usize) -> Option<Action> {
        let index = self.file(user)?;
        let path = self.path(user, self.users[user].files[index]);
        let places = places(&mut self.random, Reading::BenchBox);
        let bytes = 1 + self.random.below(EDIT_MAX);
        Some(Action::Edit { path, edits: edits(&mut self.random, places, bytes) })
    }

    fn move_file(&mut self, user: usize) -> Option<Action> {
        let index = self.file(user)?;
        let old = self.users[user].files[index];
        self.made += 1;
        let file = File { folder: self.folder(user).0, number: self.made, ..old };
        self.users[user].files[index] = file;
        Some(Action::Rename { path: self.path(user, old), to: self.path(user, file) })
    }

    fn remove_file(&mut self, user: usize) -> Option<Action> {
        let index = self.file(user)?;
        let file = self.users[user].files.swap_remove(index);
        Some(Action::Remove { path: self.path(user, file) })
    }

    fn make_folder(&mut self, user: usize) -> Option<Action> {
        let folders = &mut self.users[user].folders;
        let number = folders.iter().position(Option::is_none)?;
        folders[number] = Some(0);
        Some(Action::MakeFolder { path: folder_path(user, number, 0) })
    }

    /// Removes a folder and the files in it, unless it is the only one.
    fn remove_folder(&mut self, user: usize, actions: &mut Vec<Action>) {
        if self.users[user].folders.iter().flatten().count() == 1 {
            return;
        }
        let (number, times) = self.folder(user);
        let files = &self.users[user].files;
        let gone = files.iter().filter(|file| file.folder == number);
        actions.extend(gone.map(|file| Action::Remove { path: self.path(user, *file) }));
        actions.push(Action::Remove { path: folder_path(user, number, times) });
        self.users[user].files.retain(|file| file.folder != number);
        self.users[user].folders[number] = None;
    }

    /// Draws one of a user's files.
    fn file(&mut self, user: usize) -> Option<usize> {
        let count = self.users[user].files.len();
        (count > 0).then(|| self.random.index(count))
    }

    /// Draws one of a user's folders, and says how often it has got another name.
    fn folder(&mut self, user: usize) -> (usize, u64) {
        let folders = self.users[user].folders.iter().enumerate();
        let there: Vec<_> =
            folders.filter_map(|(number, times)| Some((number, (*times)?))).collect();
        *self.random.one_of(&there)
    }

    fn path(&self, user: usize, file: File) -> String {
        let times = self.users[user].folders[file.folder].unwrap_or_default();
        format!("{}/file{:06}", folder_path(user, file.folder, times), file.number)
    }
}

fn home(user: usize) -> String {
    format!("user{user:04}")
}

fn folder_path(user: usize, number: usize, times_renamed: u64) -> String {
    format!("{}/folder{number:02}-{times_renamed}", home(user))
}

#[cfg(test)]
mod tests;
