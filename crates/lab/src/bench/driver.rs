//! What a benchmark is done with.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::plan::Target;
use crate::error::LabError;
use crate::files;
use crate::stopwatch::Stopwatch;

/// Why an operation failed, in words. It is counted, and the benchmark goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(pub String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        Self(text)
    }
}

/// A file as a target lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// From the root of the target.
    pub path: String,
    /// In bytes.
    pub size: u64,
}

/// An address by which people without an account read a file.
pub struct Link {
    /// By which it is taken back.
    pub id: String,
    /// What opens it.
    pub secret: String,
}

/// Something that keeps files under paths, with `/` between folders. Many threads use one at once. An operation that returns has been done as
/// well as the target ever does it.
pub trait Driver: fmt::Debug + Send + Sync {
    /// Names the target in reports, without secrets.
    fn describe(&self) -> String;

    /// Writes a file, and does not return before it is there. Where `is_new`, nothing may be there yet.
    ///
    /// # Errors
    /// [`Failure`], as of all others: whether it was done or not is not known then.
    fn put(&self, path: &str, bytes: &[u8], is_new: bool) -> Result<(), Failure>;

    /// Reads a file; nothing where there is none.
    ///
    /// # Errors
    /// [`Failure`].
    fn get(&self, path: &str) -> Result<Option<Vec<u8>>, Failure>;

    /// Reads a file again to judge whether it is kept: where whoever keeps it has it, and not where it was put.
    ///
    /// # Errors
    /// [`Failure`].
    fn reread(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.get(path)
    }

    /// Lists the files of a folder, without those of folders in it. A folder that is not there has none.
    ///
    /// # Errors
    /// [`Failure`].
    fn list(&self, directory: &str) -> Result<Vec<Listed>, Failure>;

    /// Makes a link to a file.
    ///
    /// # Errors
    /// [`Failure`], as where there are no links.
    fn share(&self, _path: &str) -> Result<Link, Failure> {
        Err(Failure("it makes no links".to_owned()))
    }

    /// Looks whether a link leads to a file of so many bytes, and takes it back whether it does or not.
    ///
    /// # Errors
    /// [`Failure`], as where there are no links.
    fn withdraw(&self, _link: &Link, _size: u64) -> Result<(), Failure> {
        Err(Failure("it makes no links".to_owned()))
    }
}

/// How long to wait until something is looked for again.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Each so many looks a file is read that seems to be as it was.
const READ_EVERY: u64 = 20;

/// A folder of this computer, which any program may keep equal with another one.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// Where what was written is to be seen before the operation ends.
    seen_in: Option<PathBuf>,
    patience: Duration,
}

impl Folder {
    /// Makes the driver; `root` is to be there when it is used.
    pub fn new(root: &Path, target: &Target) -> Self {
        let patience = Duration::from_secs_f64(target.patience);
        Self { root: root.to_owned(), seen_in: target.seen_in.clone(), patience }
    }

    /// Waits until the other folder has a file with these bytes.
    fn wait(&self, other: &Path, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        let watch = Stopwatch::start();
        let there = other.join(path);
        let mut before: Option<files::Identity> = None;
        for look in 0_u64.. {
            let now = files::identity(&there)?;
            let is_as_it_was =
                |now: files::Identity| before.is_some_and(|before| now.is_unchanged_since(before));
            // Reading again and again would slow down what is measured, and two changes within one tick of the clock look like one.
            let is_due = |now| !is_as_it_was(now) || look.is_multiple_of(READ_EVERY);
            if now.is_some_and(|now| now.size() == bytes.len() as u64 && is_due(now))
                && files::read(&there).is_ok_and(|read| read == bytes)
            {
                return Ok(());
            }
            before = now;
            if watch.read().wall > self.patience {
                let seconds = self.patience.as_secs_f64();
                return Err(Failure(format!("not seen in {} in {seconds} s", other.display())));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Driver for Folder {
    fn describe(&self) -> String {
        let seen = |other: &PathBuf| format!(", seen in {}", other.display());
        let seen = self.seen_in.as_ref().map_or_else(String::new, seen);
        format!("folder {}{seen}", self.root.display())
    }

    fn put(&self, path: &str, bytes: &[u8], is_new: bool) -> Result<(), Failure> {
        let whole = self.root.join(path);
        if is_new {
            if !self.root.is_dir() {
                return Err(Failure(format!("there is no folder {}", self.root.display())));
            }
            files::write_new(&whole, bytes)?;
        } else {
            files::write_in_place(&whole, bytes)?;
        }
        match &self.seen_in {
            Some(other) => self.wait(other, path, bytes),
            None => Ok(()),
        }
    }

    fn get(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        read(&self.root, path)
    }

    fn reread(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        let Some(other) = &self.seen_in else { return self.get(path) };
        let (there, here) = (read(other, path)?, self.get(path)?);
        // A file that has gone from one of two folders that are to be equal is gone.
        Ok(if there == here { there } else { None })
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, Failure> {
        let folder = self.root.join(directory);
        if files::look(&folder)?.is_none() {
            return Ok(Vec::new());
        }
        let mut listed = Vec::new();
        for (name, kind) in files::list(&folder)? {
            if kind.is_file() {
                let path = join(directory, &name);
                if let Some(files::Found::File { size }) = files::look(&self.root.join(&path))? {
                    listed.push(Listed { path, size });
                }
            }
        }
        listed.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(listed)
    }
}

fn read(root: &Path, path: &str) -> Result<Option<Vec<u8>>, Failure> {
    match files::read(&root.join(path)) {
        Err(LabError::Read { source, .. }) if files::is_gone(&source) => Ok(None),
        read => Ok(Some(read?)),
    }
}

/// Joins a folder of a target, which may be its root, and a name in it.
pub(super) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
