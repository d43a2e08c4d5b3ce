//! Where the commands of an administrator keep a copy of a database while they work.

use std::path::PathBuf;

use crate::data_folder::{DataFolder, ServerLock};
use crate::error::Result;

/// A folder beside the data that one command at a time has; it is emptied at the beginning and at the end.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: ServerLock,
}

impl Scratch {
    /// Takes the folder.
    ///
    /// # Errors
    /// [`crate::ServerError::Locked`] where another command has it.
    pub fn take(folder: &DataFolder) -> Result<Self> {
        let (path, lock) = folder.scratch()?;
        let scratch = Self { path, _lock: lock };
        scratch.clear()?;
        Ok(scratch)
    }

    /// Returns a file in it; there is none yet.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf> {
        self.clear()?;
        Ok(self.path.join(name))
    }

    fn clear(&self) -> Result<()> {
        DataFolder::empty(&self.path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            tracing::warn!(%error, "a copy of the database is left");
        }
    }
}
