//! A user who changes one device's folder, in an own area and in one that both users share.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use super::history::{Event, History, Seen, content_with, token_of};
use crate::failure::{Context, Result, fail};
use crate::random::Random;

const SHARED_FOLDERS: [&str; 3] = ["shared", "shared/inner", "shared/inner/deep"];
const SHARED_FILES: u64 = 24;
const OWN_FILES: u64 = 40;

/// The own area of a user.
pub(super) fn own_area(user: usize) -> &'static str {
    if user == 0 { "own-first" } else { "own-second" }
}

/// The folders and files that both devices start with.
pub(super) fn write_first_state(folder: &Path) -> Result<()> {
    for name in SHARED_FOLDERS {
        fs::create_dir_all(folder.join(name))?;
    }
    for user in 0..2 {
        fs::create_dir_all(folder.join(own_area(user)).join("a"))?;
        fs::create_dir_all(folder.join(own_area(user)).join("b"))?;
    }
    for number in 0..SHARED_FILES / 2 {
        // Token 0: there from the start, written by nobody.
        let filler = format!("first state of {number}\n").repeat(20);
        fs::write(folder.join(shared_path(number)), content_with(0, filler.as_bytes()))?;
    }
    Ok(())
}

fn shared_path(number: u64) -> String {
    let folder = SHARED_FOLDERS[usize::try_from(number % 3).unwrap_or(0)];
    format!("{folder}/file-{number:02}.txt")
}

/// A user at work.
pub(super) struct User {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<(u32, Result<()>)>,
}

impl User {
    pub(super) fn start(
        index: usize,
        folder: &Path,
        room: &Path,
        seed: u64,
        history: Arc<Mutex<History>>,
    ) -> Result<Self> {
        let desk = room.join(format!("desk-{index}"));
        fs::create_dir_all(&desk)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let mut hands = Hands {
            user: index,
            folder: folder.to_owned(),
            desk,
            random: Random::for_part(seed, own_area(index)),
            history,
            renamed_folders: 0,
        };
        let for_thread = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut operations = 0;
            while !for_thread.load(Ordering::SeqCst) {
                if let Err(failure) = hands.one_operation() {
                    return (operations, Err(failure));
                }
                operations += 1;
                sleep(Duration::from_micros(hands.random.between(500, 25_000)));
            }
            (operations, Ok(()))
        });
        Ok(Self { is_over, thread })
    }

    /// Ends the work, and says how many operations it had and what went wrong in the last one.
    pub(super) fn stop(self) -> (u32, Result<()>) {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.join().unwrap_or_else(|_| (0, fail("a user panicked")))
    }
}

struct Hands {
    user: usize,
    folder: PathBuf,
    /// Outside the synced folder, on the same file system: where a save is prepared.
    desk: PathBuf,
    random: Random,
    history: Arc<Mutex<History>>,
    renamed_folders: u32,
}

impl Hands {
    fn one_operation(&mut self) -> Result<()> {
        match self.random.below(100) {
            0..30 => self.write_shared(),
            30..36 => self.delete_shared(),
            36..42 => self.rename_shared(),
            42..72 => self.write_own(),
            72..80 => self.delete_own(),
            80..89 => self.rename_own(),
            89..93 => self.rename_own_folder(),
            _ => self.touch_own(),
        }
    }

    fn filler(&mut self) -> Vec<u8> {
        // Most files are small; some take long enough for a kill in the middle of a transfer.
        let length = match self.random.below(20) {
            0 => self.random.between(500_000, 3_000_000),
            1..4 => self.random.between(20_000, 200_000),
            _ => self.random.between(0, 3000),
        };
        let length = usize::try_from(length).unwrap_or(0);
        if self.random.chance(50) { self.random.bytes(length) } else { self.random.text(length) }
    }

    fn history(&self) -> std::sync::MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Saves as editors do: aside, then renamed into place. No sync can see a half-written file.
    fn save(&self, path: &str, content: &[u8]) -> Result<bool> {
        let aside = self.desk.join("save");
        fs::write(&aside, content)?;
        match fs::rename(&aside, self.folder.join(path)) {
            Ok(()) => Ok(true),
            // The other user's changes may have moved the folder away.
            Err(failure) if failure.kind() == ErrorKind::NotFound => Ok(false),
            Err(failure) => Err(failure).context(path),
        }
    }

    fn seen_at(&self, path: &str) -> Seen {
        match fs::read(self.folder.join(path)) {
            Ok(content) => token_of(&content).map_or(Seen::Unclear, Seen::Token),
            Err(failure) if failure.kind() == ErrorKind::NotFound => {
                self.history().seen_when_free(path)
            }
            Err(_) => Seen::Unclear,
        }
    }

    fn write_shared(&mut self) -> Result<()> {
        let path = shared_path(self.random.below(SHARED_FILES));
        let filler = self.filler();
        let seen = self.seen_at(&path);
        // The lock is held over the change, so that the other user's "seen" and the order of
        // events fit what is on disk.
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let token = history.new_token();
        let content = content_with(token, &filler);
        if self.save(&path, &content)? {
            history.wrote(&path, Event { user: self.user, token, seen }, content);
        }
        Ok(())
    }

    fn delete_shared(&mut self) -> Result<()> {
        let path = shared_path(self.random.below(SHARED_FILES));
        let seen = self.seen_at(&path);
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let token = history.new_token();
        if was_done(fs::remove_file(self.folder.join(&path)))? {
            history.removed(&path, Event { user: self.user, token, seen });
        }
        Ok(())
    }

    fn rename_shared(&mut self) -> Result<()> {
        let from = shared_path(self.random.below(SHARED_FILES));
        let to = shared_path(self.random.below(SHARED_FILES));
        if from == to || self.folder.join(&to).exists() {
            return Ok(());
        }
        let seen = self.seen_at(&from);
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let token = history.new_token();
        // A plain rename would replace what a sync has just put there.
        let (old, new) = (self.folder.join(&from), self.folder.join(&to));
        if was_done(rename_without_replacing(&old, &new))? {
            history.renamed(&from, &to, Event { user: self.user, token, seen });
        }
        Ok(())
    }

    fn own_path(&mut self) -> String {
        let folder = ["", "/a", "/b"][usize::try_from(self.random.below(3)).unwrap_or(0)];
        let number = self.random.below(OWN_FILES);
        format!("{}{folder}/file-{number:02}.bin", own_area(self.user))
    }

    /// A path of the own area that holds a file now.
    fn used_own_path(&mut self) -> Option<String> {
        let area = format!("{}/", own_area(self.user));
        let used: Vec<String> = self
            .history()
            .own_files
            .keys()
            .filter(|path| path.starts_with(&area))
            .cloned()
            .collect();
        self.random.choose(&used).cloned()
    }

    fn write_own(&mut self) -> Result<()> {
        let path = self.own_path();
        let filler = self.filler();
        let token = self.history().new_token();
        let content = content_with(token, &filler);
        let place = self.folder.join(&path);
        fs::create_dir_all(place.parent().unwrap_or(&self.folder))?;
        if self.random.chance(40) {
            // In place, slowly: a scan may see it half written and must not be content with that.
            let half = content.len() / 2;
            fs::write(&place, &content[..half])?;
            sleep(Duration::from_micros(self.random.between(0, 2000)));
            append(&place, &content[half..])?;
        } else {
            self.save(&path, &content)?;
        }
        self.history().own_files.insert(path, content);
        Ok(())
    }

    fn delete_own(&mut self) -> Result<()> {
        let Some(path) = self.used_own_path() else { return Ok(()) };
        fs::remove_file(self.folder.join(&path)).context(&path)?;
        self.history().own_files.remove(&path);
        Ok(())
    }

    fn rename_own(&mut self) -> Result<()> {
        let (Some(from), to) = (self.used_own_path(), self.own_path()) else { return Ok(()) };
        let target = self.folder.join(&to);
        fs::create_dir_all(target.parent().unwrap_or(&self.folder))?;
        fs::rename(self.folder.join(&from), target).context(format!("{from} to {to}"))?;
        let mut history = self.history();
        if let Some(content) = history.own_files.remove(&from) {
            history.own_files.insert(to, content);
        }
        Ok(())
    }

    /// Renames a whole folder; what is written to the old name later makes a new one.
    fn rename_own_folder(&mut self) -> Result<()> {
        let name = if self.random.chance(50) { "a" } else { "b" };
        let from = format!("{}/{name}", own_area(self.user));
        if !self.folder.join(&from).exists() {
            return Ok(());
        }
        self.renamed_folders += 1;
        let to = format!("{from}-moved-{}", self.renamed_folders);
        fs::rename(self.folder.join(&from), self.folder.join(&to)).context(&from)?;
        let mut history = self.history();
        let inside = format!("{from}/");
        let moved: Vec<String> =
            history.own_files.keys().filter(|path| path.starts_with(&inside)).cloned().collect();
        for path in moved {
            if let Some(content) = history.own_files.remove(&path) {
                history.own_files.insert(format!("{to}/{}", &path[inside.len()..]), content);
            }
        }
        Ok(())
    }

    /// Changes the mode of a file and nothing else.
    fn touch_own(&mut self) -> Result<()> {
        let Some(path) = self.used_own_path() else { return Ok(()) };
        let place = self.folder.join(&path);
        let mode = fs::metadata(&place).context(&path)?.mode() ^ 0o100;
        fs::set_permissions(&place, fs::Permissions::from_mode(mode & 0o777)).context(&path)
    }
}

fn append(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write;
    let mut file = fs::OpenOptions::new().append(true).open(path).context(path.display())?;
    Ok(file.write_all(bytes)?)
}

fn rename_without_replacing(from: &Path, to: &Path) -> std::io::Result<()> {
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    Ok(rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, flags)?)
}

/// What a sync took away or put there first is no error: the user looks and does something else.
fn was_done(outcome: std::io::Result<()>) -> Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(failure)
            if matches!(failure.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) =>
        {
            Ok(false)
        }
        Err(failure) => Err(failure.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_area_on_disk_is_always_what_the_history_says() {
        let room = tempfile::tempdir().unwrap();
        let folder = room.path().join("folder");
        write_first_state(&folder).unwrap();
        let history = Arc::new(Mutex::new(History::default()));
        let desk = room.path().join("desk");
        fs::create_dir_all(&desk).unwrap();
        let mut hands = Hands {
            user: 0,
            folder: folder.clone(),
            desk,
            random: Random::new(5),
            history: Arc::clone(&history),
            renamed_folders: 0,
        };
        for _ in 0..400 {
            hands.one_operation().unwrap();
        }
        let own = history.lock().unwrap().own_files.clone();
        assert!(own.len() > 5);
        for (path, content) in own {
            assert_eq!(fs::read(folder.join(&path)).unwrap(), content, "{path}");
        }
        assert!(history.lock().unwrap().events.len() > 5);
    }
}
