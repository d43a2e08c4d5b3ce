//! The one place where this room touches files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use memchr::memmem::Finder;

use crate::error::LabError;

#[expect(clippy::disallowed_methods, reason = "datasets are read as any program reads them")]
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, LabError> {
    fs::read(path).map_err(|source| LabError::Read { path: path.to_owned(), source })
}

/// Writes a file, and the folders above it.
#[expect(clippy::disallowed_methods, reason = "results and datasets go into files")]
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), LabError> {
    let written =
        path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, bytes));
    written.map_err(|source| LabError::Write { path: path.to_owned(), source })
}

/// Writes a file where nothing is yet, and the folders above it.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let mut file = create(path)?;
    let written = file.write_all(bytes).and_then(|()| file.flush());
    written.map_err(|source| LabError::Write { path: path.to_owned(), source })
}

/// Gives a file a second name, and makes the folders above it. Where files cannot have two, it is copied.
pub(crate) fn link(path: &Path, to: &Path) -> Result<(), LabError> {
    let linked = to
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::hard_link(path, to).or_else(|_| fs::copy(path, to).map(drop)));
    linked.map_err(|source| LabError::Write { path: to.to_owned(), source })
}

/// Removes a folder that was made here, if it is there, with everything in it.
#[expect(clippy::disallowed_methods, reason = "what was made from a seed is made again")]
pub(crate) fn clear(folder: &Path) -> Result<(), LabError> {
    match fs::remove_dir_all(folder) {
        Err(source) if !is_gone(&source) => {
            Err(LabError::Write { path: folder.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Adds to the end of a file.
#[expect(clippy::disallowed_methods, reason = "results and datasets go into files")]
pub(crate) fn append(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), LabError> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(path)?;
        file.write_all(bytes.as_ref())
    });
    written.map_err(|source| LabError::Write { path: path.to_owned(), source })
}

/// Returns the names of the folders in a folder.
pub(crate) fn folders(folder: &Path) -> Result<Vec<String>, LabError> {
    let entries = list(folder)?;
    Ok(entries.into_iter().filter(|(_, kind)| kind.is_dir()).map(|(name, _)| name).collect())
}

/// Returns the paths of all regular files below a folder, in the order of their names.
pub(crate) fn below(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let (mut found, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for (name, kind) in list(&folder)? {
            if kind.is_dir() {
                waiting.push(folder.join(name));
            } else if kind.is_file() {
                found.push(folder.join(name));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the names of everything in a folder, and what it is.
pub(crate) fn list(folder: &Path) -> Result<Vec<(String, fs::FileType)>, LabError> {
    let listed = fs::read_dir(folder).and_then(|entries| {
        let entry = |entry: fs::DirEntry| {
            Ok((entry.file_name().to_string_lossy().into_owned(), entry.file_type()?))
        };
        entries.map(|found| found.and_then(entry)).collect()
    });
    listed.map_err(|source| LabError::Read { path: folder.to_owned(), source })
}

/// Makes sure that a folder has nothing in it, or is not there yet.
pub(crate) fn demand_empty(folder: &Path) -> Result<(), LabError> {
    if look(folder)?.is_none() {
        return Ok(());
    }
    match list(folder)?.into_iter().next() {
        Some((path, _)) => Err(LabError::NotEmpty { folder: folder.to_owned(), path }),
        None => Ok(()),
    }
}

/// Whether nothing is at a path, or a file is where a folder on the way to it was.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Folder,
    File {
        size: u64,
    },
    /// A link, a device, a socket.
    Other,
}

impl Found {
    fn of(meta: &fs::Metadata) -> Self {
        match meta.file_type() {
            kind if kind.is_dir() => Self::Folder,
            kind if kind.is_file() => Self::File { size: meta.len() },
            _ => Self::Other,
        }
    }
}

/// Returns what is at a path, if something is.
pub(crate) fn look(path: &Path) -> Result<Option<Found>, LabError> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(Found::of(&meta))),
        Err(error) if is_gone(&error) => Ok(None),
        Err(source) => Err(LabError::Read { path: path.to_owned(), source }),
    }
}

/// By which a file or folder is the same one, and has not changed: where it is on which disk, how large, and when it was changed last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    state: (u64, i64, i64),
}

impl Identity {
    /// Of a file, in bytes.
    pub(crate) fn size(self) -> u64 {
        self.state.0
    }

    /// Whether it is the same file or folder, whatever has changed in it.
    pub(crate) fn is_same_as(self, other: Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether it is the same file, as it was.
    pub(crate) fn is_unchanged_since(self, other: Self) -> bool {
        self.is_same_as(other) && self.state == other.state
    }
}

/// Returns what a path is, if something is there.
pub(crate) fn identity(path: &Path) -> Result<Option<Identity>, LabError> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(Identity {
            device: meta.dev(),
            inode: meta.ino(),
            state: (meta.len(), meta.mtime(), meta.mtime_nsec()),
        })),
        Err(error) if is_gone(&error) => Ok(None),
        Err(source) => Err(LabError::Read { path: path.to_owned(), source }),
    }
}

/// Returns everything below a folder by its path there, but what begins with a dot: programs that sync keep their own things so.
pub(crate) fn tree(folder: &Path) -> Result<BTreeMap<String, Found>, LabError> {
    let (mut found, mut waiting) = (BTreeMap::new(), vec![String::new()]);
    while let Some(parent) = waiting.pop() {
        let names = match list(&folder.join(&parent)) {
            // What has gone since it was found is not there.
            Err(LabError::Read { source, .. }) if is_gone(&source) && !parent.is_empty() => {
                continue;
            }
            names => names?,
        };
        for (name, _) in names {
            if name.starts_with('.') {
                continue;
            }
            let path = if parent.is_empty() { name } else { format!("{parent}/{name}") };
            let Some(what) = look(&folder.join(&path))? else { continue };
            if what == Found::Folder {
                waiting.push(path.clone());
            }
            found.insert(path, what);
        }
    }
    Ok(found)
}

/// Writes a file as editors do that keep the file: it has other bytes, and is the same file.
#[expect(
    clippy::disallowed_methods,
    reason = "a trace plays the user, who writes files in any way"
)]
pub(crate) fn write_in_place(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    fs::write(path, bytes).map_err(|source| LabError::Write { path: path.to_owned(), source })
}

pub(crate) fn make_folder(path: &Path) -> Result<(), LabError> {
    fs::create_dir(path).map_err(|source| LabError::Write { path: path.to_owned(), source })
}

/// Makes a folder, and those above it.
pub(crate) fn make_folders(path: &Path) -> Result<(), LabError> {
    fs::create_dir_all(path).map_err(|source| LabError::Write { path: path.to_owned(), source })
}

/// Removes a folder with all that is in it.
#[expect(clippy::disallowed_methods, reason = "what was made to be measured goes again")]
pub(crate) fn remove_all(path: &Path) -> Result<(), LabError> {
    fs::remove_dir_all(path).map_err(|source| LabError::Write { path: path.to_owned(), source })
}

pub(crate) fn remove_folder(path: &Path) -> Result<(), LabError> {
    fs::remove_dir(path).map_err(|source| LabError::Write { path: path.to_owned(), source })
}

#[expect(clippy::disallowed_methods, reason = "a trace plays the user, who removes files")]
pub(crate) fn remove(path: &Path) -> Result<(), LabError> {
    fs::remove_file(path).map_err(|source| LabError::Write { path: path.to_owned(), source })
}

#[expect(clippy::disallowed_methods, reason = "a trace plays the user, who renames files")]
pub(crate) fn rename(path: &Path, to: &Path) -> Result<(), LabError> {
    fs::rename(path, to).map_err(|source| LabError::Write { path: to.to_owned(), source })
}

/// Opens a file to be read line by line.
#[expect(clippy::disallowed_methods, reason = "traces are read as any program reads them")]
pub(crate) fn open(path: &Path) -> Result<BufReader<fs::File>, LabError> {
    let opened = fs::File::open(path);
    opened.map(BufReader::new).map_err(|source| LabError::Read { path: path.to_owned(), source })
}

/// Makes a file that is written piece by piece, where nothing is yet, and the folders above it.
pub(crate) fn create(path: &Path) -> Result<BufWriter<fs::File>, LabError> {
    create_with(path, 0o666)
}

/// Does the same with a file that nobody else may read.
pub(crate) fn create_private(path: &Path) -> Result<BufWriter<fs::File>, LabError> {
    create_with(path, 0o600)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark plays a user, who writes files")]
fn create_with(path: &Path, mode: u32) -> Result<BufWriter<fs::File>, LabError> {
    let made = path
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path));
    made.map(BufWriter::new).map_err(|source| LabError::Write { path: path.to_owned(), source })
}

/// Whether a file has some bytes in it, one after the other; it is read piece by piece.
pub(crate) fn contains(path: &Path, wanted: &Finder<'_>) -> Result<bool, LabError> {
    const PIECE: usize = 1 << 20;
    let failed = |source| LabError::Read { path: path.to_owned(), source };
    let (mut file, mut window) = (open(path)?, Vec::new());
    loop {
        // What may be the beginning of it stays in front of the next piece.
        let keep = window.len().min(wanted.needle().len().saturating_sub(1));
        window.drain(..window.len() - keep);
        let more = file.by_ref().take(PIECE as u64).read_to_end(&mut window).map_err(failed)?;
        if wanted.find(&window).is_some() {
            return Ok(true);
        }
        if more == 0 {
            return Ok(false);
        }
    }
}
