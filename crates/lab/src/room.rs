//! A folder for what is made to be measured, which goes with it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::files;

/// A folder that is there as long as this value.
#[derive(Debug)]
pub(crate) struct Room {
    folder: PathBuf,
}

impl Room {
    /// Makes a folder that was not there.
    pub(crate) fn new(work: &Path) -> Result<Self, LabError> {
        files::make_folders(work)?;
        let work = std::path::absolute(work)
            .map_err(|source| LabError::Write { path: work.to_owned(), source })?;
        for number in 0_u64.. {
            let folder = work.join(format!("room-{number}"));
            match files::make_folder(&folder) {
                // Somebody else has it, and may have made it a moment ago.
                Err(LabError::Write { source, .. })
                    if source.kind() == ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Self { folder }),
            }
        }
        unreachable!("there are fewer folders than numbers")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // What stays behind takes room, and harms nobody.
        let _ = files::remove_all(&self.folder);
    }
}
