//! Files that are written aside, in `.syncline/tmp`, under the hexadecimal digits of their tokens.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;

use model::{RelativePath, Timestamp};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::facts::{PERMISSION_BITS, file_error, timestamps};
use super::root::{Directory, Root, open_name};
use super::{FileError, StageToken, StagedFile, listing, trash};
use crate::file_system::SERVICE_DIRECTORY;

/// The directory for files written aside, in the service directory.
pub(super) const STAGE_DIRECTORY: &str = "tmp";

/// What is added to the name of a staged file while it is exchanged with another.
const EXCHANGE_SUFFIX: &str = ".exchange";

/// The label in the trash for what an interrupted exchange left.
const INTERRUPTED_LABEL: &str = "interrupted";

/// The name of a staged file.
pub(super) fn staged_name(token: StageToken) -> String {
    format!("{token:016x}")
}

/// The name of a staged file during the exchange. If the program dies in the middle, this tells that what has the
/// name may have been displaced and never compared.
pub(super) fn exchange_name(token: StageToken) -> String {
    format!("{token:016x}{EXCHANGE_SUFFIX}")
}

/// The path of a staged file, for messages.
pub(super) fn staged_path(token: StageToken) -> RelativePath {
    let path = format!("{SERVICE_DIRECTORY}/{STAGE_DIRECTORY}/{}", staged_name(token));
    RelativePath::new(path.as_bytes()).unwrap_or_default()
}

/// Finds the directory of staged files, and makes it where only it is missing: people clean up.
pub(super) fn stage_directory<'a>(
    root: &'a Root,
    path: &RelativePath,
) -> Result<Directory<'a>, FileError> {
    let error = |errno| file_error(errno, path);
    match root.service(STAGE_DIRECTORY) {
        Err(Errno::NOENT) => {
            let service =
                root.open_directory(SERVICE_DIRECTORY.as_bytes(), OFlags::PATH).map_err(error)?;
            match rustix::fs::mkdirat(&service, STAGE_DIRECTORY, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => root.service(STAGE_DIRECTORY).map_err(error),
                Err(errno) => Err(error(errno)),
            }
        }
        result => result.map_err(error),
    }
}

/// A file that is written aside.
pub(super) struct NativeStagedFile {
    root: Arc<Root>,
    token: StageToken,
    file: std::fs::File,
    is_finished: bool,
}

impl NativeStagedFile {
    pub(super) fn create(root: &Arc<Root>, token: StageToken) -> Result<Self, FileError> {
        let path = staged_path(token);
        let directory = stage_directory(root, &path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let descriptor = rustix::fs::openat(&directory, staged_name(token), flags, mode)
            .map_err(|errno| file_error(errno, &path))?;
        Ok(Self { root: Arc::clone(root), token, file: descriptor.into(), is_finished: false })
    }
}

impl Write for NativeStagedFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl StagedFile for NativeStagedFile {
    fn finish(mut self: Box<Self>, mode: u32, modified: Timestamp) -> Result<(), FileError> {
        let error = |errno| file_error(errno, &staged_path(self.token));
        let descriptor = self.file.as_fd();
        rustix::fs::fchmod(descriptor, Mode::from_raw_mode(mode & PERMISSION_BITS))
            .map_err(error)?;
        rustix::fs::futimens(descriptor, &timestamps(modified)).map_err(error)?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for NativeStagedFile {
    fn drop(&mut self) {
        if !self.is_finished {
            // What cannot be removed now is removed when the folder is opened the next time.
            let _ = discard(&self.root, self.token);
        }
    }
}

pub(super) fn create_link(
    root: &Root,
    token: StageToken,
    target: &[u8],
    modified: Timestamp,
) -> Result<(), FileError> {
    let path = staged_path(token);
    let directory = stage_directory(root, &path)?;
    let name = staged_name(token);
    if target.is_empty() {
        return Err(FileError::NameRefused(path));
    }
    rustix::fs::symlinkat(target, &directory, &name).map_err(|errno| file_error(errno, &path))?;
    let times = timestamps(modified);
    match rustix::fs::utimensat(&directory, &name, &times, AtFlags::SYMLINK_NOFOLLOW) {
        // Some file systems keep no times of links.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(errno) => {
            discard(root, token)?;
            Err(file_error(errno, &path))
        }
    }
}

pub(super) fn discard(root: &Root, token: StageToken) -> Result<(), FileError> {
    let removed = root.service(STAGE_DIRECTORY).and_then(|directory| {
        rustix::fs::unlinkat(&directory, staged_name(token), AtFlags::empty())
    });
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(file_error(errno, &staged_path(token))),
    }
}

/// Removes what an earlier process left; see [`super::NativeFileSystem::clear_staged`].
pub(super) fn clear(root: &Root) -> Result<(), FileError> {
    let path = RelativePath::new(format!("{SERVICE_DIRECTORY}/{STAGE_DIRECTORY}").as_bytes())
        .unwrap_or_default();
    let error = |errno| file_error(errno, &path);
    let directory = match root.service(STAGE_DIRECTORY) {
        Ok(directory) => open_name(&directory, b".", OFlags::RDONLY | OFlags::DIRECTORY),
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => Err(errno),
    };
    let directory = directory.map_err(error)?;
    for entry in listing::entries(&directory).map_err(error)? {
        if entry.name.ends_with(EXCHANGE_SUFFIX.as_bytes()) {
            let kept = RelativePath::new(&entry.name).unwrap_or_default();
            trash::keep(root, &directory, &entry.name, &kept, INTERRUPTED_LABEL)?;
            continue;
        }
        match rustix::fs::unlinkat(&directory, entry.name.as_slice(), AtFlags::empty()) {
            // What somebody else put there, a directory for example, harms nobody.
            Ok(()) | Err(Errno::NOENT | Errno::ISDIR | Errno::PERM) => {}
            Err(errno) => return Err(error(errno)),
        }
    }
    Ok(())
}
