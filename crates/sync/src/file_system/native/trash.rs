//! The local trash: `.syncline/trash/<label>/<path>`, from which only people remove anything.

use std::borrow::Cow;
use std::os::fd::{AsFd, OwnedFd};

use model::path::NAME_LENGTH_MAX;
use model::{Name, RelativePath};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::facts::{change_error, file_error, is_same_matter, stat_from};
use super::root::{Place, Root, open_name, split_last};
use super::{FileError, Stat};
use crate::file_system::SERVICE_DIRECTORY;

/// The trash, in the service directory.
pub(super) const TRASH_DIRECTORY: &str = "trash";

/// How many files of one name a label may hold.
const SAME_NAMES_MAX: u32 = 100_000;

/// Moves a file or link to the trash, and back if it turns out not to be the expected one.
pub(super) fn trash(
    root: &Root,
    place: &Place<'_>,
    path: &RelativePath,
    expected: &Stat,
    label: &str,
) -> Result<(), FileError> {
    let (directory, name) = keep(root, &place.directory, place.name, path, label)?;
    let kept = rustix::fs::statat(&directory, &*name, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| file_error(errno, path))?;
    if is_same_matter(expected, &stat_from(&kept)) {
        return Ok(());
    }
    // If a newer file has the name by now, the one that was moved stays in the trash.
    let _ = root.move_without_replacing(&directory, &name, &place.directory, place.name);
    Err(FileError::Changed(path.clone()))
}

/// Moves anything to the trash, and returns the directory and name where it lies.
pub(super) fn keep<'a>(
    root: &Root,
    from_directory: impl AsFd,
    from: &'a [u8],
    path: &'a RelativePath,
    label: &str,
) -> Result<(OwnedFd, Cow<'a, [u8]>), FileError> {
    let refused = |_| FileError::NameRefused(path.clone());
    let label = Name::new(label).map_err(refused)?;
    let (parent, name) = split_last(path.as_bytes());
    let directory =
        trash_directory(root, &label, parent).map_err(|errno| file_error(errno, path))?;
    for number in 0..SAME_NAMES_MAX {
        let name = numbered(name, number);
        match root.move_without_replacing(from_directory.as_fd(), from, &directory, &name) {
            Ok(()) => return Ok((directory, name)),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(change_error(errno, path)),
        }
    }
    Err(FileError::AlreadyExists(path.clone()))
}

/// Finds, or makes, the directory of the trash for what lay in `parent`.
fn trash_directory(root: &Root, label: &Name, parent: &[u8]) -> Result<OwnedFd, Errno> {
    let service = SERVICE_DIRECTORY.as_bytes();
    let above = [service, TRASH_DIRECTORY.as_bytes(), label.as_bytes(), parent];
    let whole = above.join(&b'/');
    let whole = whole.strip_suffix(b"/").unwrap_or(&whole);
    match root.open_directory(whole, OFlags::PATH) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
        result => return result,
    }
    let mut directory = root.open_directory(service, OFlags::PATH)?;
    for name in whole.split(|&byte| byte == b'/').skip(1) {
        directory = make_directory(&directory, name)?;
    }
    Ok(directory)
}

/// Makes and opens a directory; where a file has the name that was trashed before, under a number.
fn make_directory(parent: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    for number in 0..SAME_NAMES_MAX {
        let name = numbered(name, number);
        match rustix::fs::mkdirat(parent, &*name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        match open_name(parent, &name, OFlags::PATH | OFlags::DIRECTORY) {
            Err(Errno::NOTDIR | Errno::LOOP) => {}
            result => return result,
        }
    }
    Err(Errno::EXIST)
}

/// Makes a name different by a number, within the limit of length.
fn numbered(name: &[u8], number: u32) -> Cow<'_, [u8]> {
    if number == 0 {
        return Cow::Borrowed(name);
    }
    let suffix = format!(".~{number}~");
    let kept = &name[..name.len().min(NAME_LENGTH_MAX - suffix.len())];
    Cow::Owned([kept, suffix.as_bytes()].concat())
}
