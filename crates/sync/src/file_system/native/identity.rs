//! The identity of a root: 32 hexadecimal digits in `.syncline/root`, so that an unmounted disk is no empty folder.

use std::io::{Read, Write};

use model::RelativePath;
use model::hex;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::facts::{file_error, stat_from};
use super::root::{Root, open_name, reopen};
use super::staged::STAGE_DIRECTORY;
use super::trash::TRASH_DIRECTORY;
use super::{FileError, FileKind};
use crate::file_system::SERVICE_DIRECTORY;

const IDENTITY_NAME: &str = "root";
const NEW_IDENTITY_NAME: &str = "root.new";

/// Reads the identity; see [`crate::file_system::FileSystem::root_identity`].
pub(super) fn read(root: &Root) -> Result<Option<[u8; 16]>, FileError> {
    let path = identity_path();
    // The descriptor leads to the folder that was opened. If the path leads elsewhere by now, another disk was
    // mounted or the folder was moved away: whatever lies there has not been looked at.
    let here =
        rustix::fs::stat(&root.path).map_err(|errno| file_error(errno, &RelativePath::ROOT))?;
    if (here.st_dev, here.st_ino) != (root.device, root.inode) {
        return Ok(None);
    }
    let service = match root.open_directory(SERVICE_DIRECTORY.as_bytes(), OFlags::PATH) {
        Ok(service) => service,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(file_error(errno, &path)),
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = match open_name(&service, IDENTITY_NAME.as_bytes(), flags) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(file_error(errno, &path)),
    };
    let stat = rustix::fs::fstat(&file).map_err(|errno| file_error(errno, &path))?;
    if stat_from(&stat).kind != FileKind::File {
        return Err(FileError::Changed(path));
    }
    let mut text = String::new();
    let read = std::fs::File::from(file).take(64).read_to_string(&mut text);
    match (read, parse(&text)) {
        (Ok(_), Some(identity)) => Ok(Some(identity)),
        (Ok(_), None) => {
            Err(FileError::Other { path, reason: "it holds no identity of a folder".to_owned() })
        }
        (Err(error), _) => Err(FileError::Other { path, reason: error.to_string() }),
    }
}

/// Makes the service directory and writes the identity durably; see
/// [`crate::file_system::FileSystem::set_root_identity`].
pub(super) fn write(root: &Root, identity: [u8; 16]) -> Result<(), FileError> {
    let path = identity_path();
    let error = |errno| file_error(errno, &path);
    make_service_directory(root).map_err(error)?;
    let service =
        root.open_directory(SERVICE_DIRECTORY.as_bytes(), OFlags::RDONLY).map_err(error)?;
    for name in [STAGE_DIRECTORY, TRASH_DIRECTORY] {
        match rustix::fs::mkdirat(&service, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(error(errno)),
        }
    }
    match rustix::fs::unlinkat(&service, NEW_IDENTITY_NAME, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(error(errno)),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&service, NEW_IDENTITY_NAME, flags, Mode::RUSR | Mode::WUSR)
        .map_err(error)?;
    let mut file = std::fs::File::from(file);
    let written = file.write_all(format(identity).as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|failure| match failure.raw_os_error() {
        Some(code) => error(Errno::from_raw_os_error(code)),
        None => FileError::Other { path: path.clone(), reason: failure.to_string() },
    })?;
    rustix::fs::renameat(&service, NEW_IDENTITY_NAME, &service, IDENTITY_NAME).map_err(error)?;
    for directory in [service, reopen(&root.descriptor).map_err(error)?] {
        match rustix::fs::fsync(&directory) {
            // Some file systems have nothing to sync in directories.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(errno) => return Err(error(errno)),
        }
    }
    Ok(())
}

/// Makes the service directory where there is none.
pub(super) fn make_service_directory(root: &Root) -> Result<(), Errno> {
    match rustix::fs::mkdirat(&root.descriptor, SERVICE_DIRECTORY, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn identity_path() -> RelativePath {
    let path = format!("{SERVICE_DIRECTORY}/{IDENTITY_NAME}");
    RelativePath::new(path.as_bytes()).unwrap_or_default()
}

fn format(identity: [u8; 16]) -> String {
    hex::encode(&identity) + "\n"
}

fn parse(text: &str) -> Option<[u8; 16]> {
    let digits = text.strip_suffix('\n').unwrap_or(text);
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
}
