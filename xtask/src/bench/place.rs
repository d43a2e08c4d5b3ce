//! Working folders on the file system under test, removed when done.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Context, Result, fail};

/// A working folder that is removed when this value goes.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    /// Makes an empty folder on `tmpfs` (the system's shared memory) or on `disk` (below `work`).
    pub(super) fn new(file_system: &str, work: &Path) -> Result<Self> {
        let parent = match file_system {
            "tmpfs" => PathBuf::from("/dev/shm"),
            "disk" => work.to_owned(),
            other => return fail(format!("no file system is called '{other}'")),
        };
        let path = parent.join(format!("syncline-bench-{}", std::process::id()));
        remove(&path)?;
        fs::create_dir_all(&path).context(path.display())?;
        Ok(Self { path })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if let Err(failure) = remove(&self.path) {
            eprintln!("cannot remove {}: {failure}", self.path.display());
        }
    }
}

/// Removes a folder, if it is there, with everything in it.
pub(super) fn remove(path: &Path) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    fs::remove_dir_all(path).context(path.display())
}
