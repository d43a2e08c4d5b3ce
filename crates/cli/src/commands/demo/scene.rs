//! What happens to files in the demo.

#![expect(
    clippy::disallowed_methods,
    reason = "the demo plays the user, who changes files in any way"
)]

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{expect, failed, source, text};
use crate::commands::children::{Child, Device, PASSWORD, Stage};
use crate::error::Result;
use crate::home::file_error;
use crate::system::write_private;

/// At most so much documentation of this computer is taken along.
const DOCUMENTS_MAX: usize = 400;
const DOCUMENTS_LENGTH_MAX: u64 = 8 << 20;

/// A room with a server and devices.
#[derive(Debug)]
pub(super) struct Scene {
    stage: Stage,
    url: String,
    /// A file that both sides change, and one whose old version comes back.
    shared: PathBuf,
    old: PathBuf,
    /// What the second one was at first.
    old_bytes: Vec<u8>,
}

impl Scene {
    /// Prepares an empty scene in a room that is there.
    pub(super) fn new(room: PathBuf) -> Result<Self> {
        Ok(Self {
            stage: Stage::new(room)?,
            url: String::new(),
            shared: PathBuf::new(),
            old: PathBuf::new(),
            old_bytes: Vec::new(),
        })
    }

    /// Returns a device of the scene.
    pub(super) fn device(&self, name: &str) -> Device {
        self.stage.device(name)
    }

    /// Writes down the passphrase that all devices are given, where they look for it.
    pub(super) fn write_passphrase(&self) -> Result<()> {
        let file = self.device("any").home.with_file_name("passphrase");
        write_private(&file, PASSWORD).map_err(|error| file_error(&file, &error))
    }

    /// Returns the folder that serves as a store.
    pub(super) fn store_text(&self) -> Result<String> {
        text(&self.stage.room().join("store"))
    }

    /// Puts files into the folder of the first device. Returns how many, and their bytes.
    pub(super) fn prepare(&mut self, source: Option<&Path>) -> Result<(u64, u64)> {
        let folder = self.device("laptop").folder;
        match source {
            Some(source) => copy_folder(source, &folder)?,
            None => {
                source::generate(&folder)?;
                copy_documents(&folder.join("documents"))?;
            }
        }
        let marks = folder.join("demo");
        make_folder(&marks)?;
        write(&marks.join("budget.txt"), b"rent 100\nfood 50\n")?;
        write(&marks.join("report.txt"), b"the first draft\n")?;
        write(&marks.join("script.sh"), b"#!/bin/sh\necho hello\n")?;
        write(&marks.join("old.txt"), b"to be deleted\n")?;
        write(&marks.join("private.txt"), b"for me alone\n")?;
        let failed = |error: io::Error| file_error(&marks, &error);
        fs::set_permissions(marks.join("script.sh"), Permissions::from_mode(0o755))
            .map_err(failed)?;
        fs::set_permissions(marks.join("private.txt"), Permissions::from_mode(0o600))
            .map_err(failed)?;
        symlink("script.sh", marks.join("link")).map_err(failed)?;
        let long_ago = SystemTime::UNIX_EPOCH + Duration::new(86_400, 123_456_789);
        File::options()
            .write(true)
            .open(marks.join("old.txt"))
            .and_then(|file| file.set_modified(long_ago))
            .map_err(failed)?;
        self.shared = PathBuf::from("demo/budget.txt");
        self.old = PathBuf::from("demo/report.txt");
        self.old_bytes = read(&folder.join(&self.old))?;
        measure(&folder)
    }

    /// Starts the server with its account.
    pub(super) fn start_server(&mut self) -> Result<(Child, String)> {
        let (server, url) = self.stage.start_server()?;
        self.url.clone_from(&url);
        Ok((server, url))
    }

    /// Signs a device in.
    pub(super) fn login(&self, device: &Device) -> Result<()> {
        device.login(&self.url)
    }

    /// Changes files on both sides: edits, a rename, a deletion, a new folder, and one file on both.
    pub(super) fn edit(&self, laptop: &Device, desktop: &Device) -> Result<String> {
        let (here, there) = (&laptop.folder, &desktop.folder);
        let failed = |error: io::Error| file_error(here, &error);
        write(&here.join(&self.shared), b"rent 100\nfood 50\nbooks 30\n")?;
        write(&there.join(&self.shared), b"rent 100\nfood 70\n")?;
        write(&here.join(&self.old), b"the second draft, which is worse\n")?;
        fs::remove_file(here.join("demo/old.txt")).map_err(failed)?;
        fs::rename(here.join("demo/script.sh"), here.join("demo/run.sh")).map_err(failed)?;
        fs::rename(there.join("demo/private.txt"), there.join("demo/diary.txt")).map_err(failed)?;
        let largest = largest_folder(there)?;
        let moved = there.join(format!("{} (moved)", largest.display()));
        fs::rename(there.join(&largest), moved).map_err(failed)?;
        make_folder(&there.join("demo/new/folder"))?;
        write(&there.join("demo/new/folder/hello.txt"), b"hello\n")?;
        fs::set_permissions(there.join("demo/report.txt"), Permissions::from_mode(0o640))
            .map_err(failed)?;
        Ok(format!(
            "edits, a deletion, renames, '{}' renamed as a whole, and one file on both sides",
            largest.display()
        ))
    }

    /// Brings an old version back and looks at its bytes. Returns its path.
    pub(super) fn restore(&self, device: &Device) -> Result<String> {
        let path = text(&self.old)?;
        device.run_in_folder(&["restore", &path, "--at", "v1", "--overwrite"])?;
        expect(
            read(&device.folder.join(&self.old))? == self.old_bytes,
            "an old version comes back as it was",
        )?;
        let printed = device.run_in_folder(&["cat", &path, "--at", "v1"])?;
        expect(printed.stdout == self.old_bytes, "an old version is printed as it was")?;
        Ok(path)
    }
}

/// Returns the folder in the root with the most entries in it, so that renaming it is worth seeing.
fn largest_folder(root: &Path) -> Result<PathBuf> {
    let failed = |error: io::Error| file_error(root, &error);
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(root).map_err(failed)?.flatten() {
        let name = entry.file_name();
        let is_ours = name == "demo" || name == sync::file_system::SERVICE_DIRECTORY;
        if !is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push((measure(&entry.path())?.0, PathBuf::from(name)));
        }
    }
    if found.is_empty() {
        make_folder(&root.join("nothing here"))?;
        found.push((0, PathBuf::from("nothing here")));
    }
    Ok(found.into_iter().max().unwrap_or_default().1)
}

/// Copies what a computer has of documentation, so that real files are among those of the demo.
fn copy_documents(target: &Path) -> Result<()> {
    let (mut count, mut length) = (0, 0);
    let Ok(packages) = fs::read_dir("/usr/share/doc") else { return Ok(()) };
    let mut packages: Vec<_> = packages.flatten().map(|entry| entry.path()).collect();
    packages.sort();
    for package in packages {
        let Ok(files) = fs::read_dir(&package) else { continue };
        for file in files.flatten() {
            let Ok(data) = file.metadata() else { continue };
            if !data.is_file()
                || count == DOCUMENTS_MAX
                || length + data.len() > DOCUMENTS_LENGTH_MAX
            {
                continue;
            }
            let folder = target.join(package.file_name().unwrap_or_default());
            make_folder(&folder)?;
            // One that cannot be read is left out: it is only for show.
            if fs::copy(file.path(), folder.join(file.file_name())).is_ok() {
                count += 1;
                length += data.len();
            }
        }
    }
    Ok(())
}

/// Copies a folder with modes, times and links.
pub(super) fn copy_folder(source: &Path, target: &Path) -> Result<()> {
    make_folder(target)?;
    let failed = |error: io::Error| file_error(source, &error);
    for entry in fs::read_dir(source).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        if entry.file_name() == sync::file_system::SERVICE_DIRECTORY {
            continue;
        }
        let data = entry.metadata().map_err(failed)?;
        if data.is_dir() {
            copy_folder(&from, &to)?;
            fs::set_permissions(&to, data.permissions()).map_err(failed)?;
        } else if data.is_symlink() {
            symlink(fs::read_link(&from).map_err(failed)?, &to).map_err(failed)?;
        } else if data.is_file() {
            fs::copy(&from, &to).map_err(|error| file_error(&from, &error))?;
            let set = |file: File| file.set_modified(data.modified()?);
            File::open(&to).and_then(set).map_err(failed)?;
        }
    }
    Ok(())
}

/// Returns how many files a folder has, and their bytes.
fn measure(folder: &Path) -> Result<(u64, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder).map_err(|error| file_error(folder, &error))?.flatten() {
        let data = entry.metadata().map_err(|error| file_error(folder, &error))?;
        if data.is_dir() {
            let below = measure(&entry.path())?;
            files += below.0;
            bytes += below.1;
        } else {
            files += 1;
            bytes += data.len();
        }
    }
    Ok((files, bytes))
}

/// Makes a folder with its parents.
pub(super) fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| file_error(path, &error))
}

/// Removes a folder with all in it, many entries at a time: disks that are told of every free block take milliseconds
/// for each, but for many at once.
pub(super) fn remove_folder(path: &Path) -> Result<()> {
    let (mut files, mut levels) = (Vec::new(), vec![vec![path.to_owned()]]);
    while let Some(folders) = levels.last().filter(|folders| !folders.is_empty()) {
        let mut below = Vec::new();
        for folder in folders {
            let failed = |error: io::Error| file_error(folder, &error);
            for entry in fs::read_dir(folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let is_folder = entry.file_type().map_err(failed)?.is_dir();
                if is_folder { below.push(entry.path()) } else { files.push(entry.path()) }
            }
        }
        levels.push(below);
    }
    for_many(&files, |path| fs::remove_file(path))?;
    levels.iter().rev().try_for_each(|folders| for_many(folders, |path| fs::remove_dir(path)))
}

/// Does something with many paths at the same time.
fn for_many(paths: &[PathBuf], work: impl Fn(&Path) -> io::Result<()> + Sync) -> Result<()> {
    const THREADS: usize = 16;
    let do_share = |share: &[PathBuf]| {
        share.iter().try_for_each(|path| work(path).map_err(|error| file_error(path, &error)))
    };
    let do_share = &do_share;
    let failures: Vec<_> = std::thread::scope(|scope| {
        let shares = paths.chunks(paths.len().div_ceil(THREADS).max(1));
        let threads: Vec<_> = shares.map(|share| scope.spawn(move || do_share(share))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()?.err()).collect()
    });
    failures.into_iter().next().map_or(Ok(()), Err)
}

/// Writes a file.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|error| file_error(path, &error))
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| failed("a file can be read").cause(error))
}
