//! The folder of the cache. Every failure ends here: reading gives nothing, writing is given up.

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;

use super::entry_file::{EntryName, FIXED, Header, Part, encode_header};
use super::recency::Recency;
use crate::files;
use crate::key::ObjectKey;

/// After so many failed writes in a row the cache writes no more in this process.
const FAILED_WRITES_MAX: u32 = 3;
/// Enough for the header of an object of 14 MiB, so that most reads need two calls.
const HEADER_GUESS: u64 = 4096;
/// What the names of files that are being written begin with.
const UNFINISHED: &str = "new-";

/// The files of the cache and the books about them.
#[derive(Debug)]
pub(super) struct CacheDisk {
    folder: OwnedFd,
    size_max: u64,
    recency: Mutex<Recency>,
    failed_writes: AtomicU32,
    next_unfinished: AtomicU64,
}

impl CacheDisk {
    pub(super) fn open(path: &Path, size_max: u64) -> std::io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let folder = rustix::fs::open(path, files::FOLDER, files::FILE_MODE)?;
        let disk = Self {
            folder,
            size_max,
            recency: Mutex::default(),
            failed_writes: AtomicU32::new(0),
            next_unfinished: AtomicU64::new(0),
        };
        disk.load()?;
        Ok(disk)
    }

    pub(super) fn size(&self) -> u64 {
        self.recency.lock().size()
    }

    /// Returns a part that is cached, alone or inside the whole object, and intact.
    pub(super) fn read(&self, key: &ObjectKey, part: &Part) -> Option<Bytes> {
        [Part::Whole, part.clone()].iter().find_map(|cached| {
            let name = EntryName::new(key, cached);
            if !self.recency.lock().contains(&name) {
                return None;
            }
            let wanted = if cached == part { &Part::Whole } else { part };
            let found = self.read_entry(&name, wanted);
            match &found {
                Some(_) => self.touch(&name),
                None => self.drop_entry(&name),
            }
            found
        })
    }

    /// Keeps a part, and lets go of what has become too much.
    pub(super) fn write(&self, name: EntryName, body: &[u8]) {
        let header = encode_header(&name, body);
        let size = (header.len() + body.len()) as u64;
        if size > self.size_max || self.failed_writes.load(Ordering::Relaxed) >= FAILED_WRITES_MAX {
            return;
        }
        // Room is made before it is used, so that the folder never exceeds its size.
        let surplus = self.recency.lock().take_surplus(self.size_max - size);
        self.remove_files(&surplus);
        match self.write_entry(&name, &header, body) {
            Ok(()) => {
                self.failed_writes.store(0, Ordering::Relaxed);
                let surplus = {
                    let mut recency = self.recency.lock();
                    recency.insert(name, size);
                    recency.take_surplus(self.size_max)
                };
                self.remove_files(&surplus);
            }
            Err(error) => {
                let failed = self.failed_writes.fetch_add(1, Ordering::Relaxed) + 1;
                tracing::warn!(%error, failed, "the cache could not keep an object");
            }
        }
    }

    /// Drops all parts of an object.
    pub(super) fn forget(&self, key: &ObjectKey) {
        let names = self.recency.lock().take(EntryName::all_of(key));
        self.remove_files(&names);
    }

    /// Reads what an earlier run left, oldest use first.
    fn load(&self) -> Result<(), Errno> {
        let mut found = Vec::new();
        for (folder, file_type) in files::read_folder(self.folder.as_fd())? {
            if file_type != FileType::Directory {
                if folder.starts_with(UNFINISHED) {
                    files::remove_file(&self.folder, &folder)?;
                }
                continue;
            }
            let opened = files::open_at(self.folder.as_fd(), &folder, files::FOLDER)?;
            for (file, _) in files::read_folder(opened.as_fd())? {
                let Some(name) = EntryName::parse(&file) else { continue };
                let status = files::stat_at(opened.as_fd(), &file)?;
                let size = files::size_in(&status).unwrap_or(0);
                found.push(((status.st_mtime, status.st_mtime_nsec), name, size));
            }
        }
        found.sort_unstable();
        let surplus = {
            let mut recency = self.recency.lock();
            for (_, name, size) in found {
                recency.insert(name, size);
            }
            recency.take_surplus(self.size_max)
        };
        self.remove_files(&surplus);
        Ok(())
    }

    fn read_entry(&self, name: &EntryName, part: &Part) -> Option<Bytes> {
        let (folder, file) = name.file_name();
        let path = format!("{folder}/{file}");
        let file = files::open_at(self.folder.as_fd(), &path, files::READ).ok()?;
        let mut start = files::read_range(file.as_fd(), 0..HEADER_GUESS).ok()?;
        let header_length = Header::length_of(start.get(..FIXED)?)?;
        if start.len() < header_length {
            start = files::read_range(file.as_fd(), 0..header_length as u64).ok()?;
        }
        let header = Header::decode(start.get(..header_length)?, name)?;
        let wanted = part.within(header.length);
        let blocks = header.covering(&wanted);
        let base = header_length as u64;
        let bytes = files::read_range(file.as_fd(), base + blocks.start..base + blocks.end).ok()?;
        let is_complete = bytes.len() as u64 == blocks.end - blocks.start;
        if !is_complete || !header.vouches_for(blocks.start, &bytes) {
            return None;
        }
        let from = usize::try_from(wanted.start - blocks.start).ok()?;
        let to = usize::try_from(wanted.end - blocks.start).ok()?;
        Some(bytes.slice(from..to))
    }

    /// Writes a file aside and renames it. Nothing is flushed: checksums notice what a power cut does.
    fn write_entry(&self, name: &EntryName, header: &[u8], body: &[u8]) -> Result<(), Errno> {
        let number = self.next_unfinished.fetch_add(1, Ordering::Relaxed);
        let aside = format!("{UNFINISHED}{}-{number}", std::process::id());
        let (folder, file) = name.file_name();
        let target = format!("{folder}/{file}");
        let written = files::open_at(self.folder.as_fd(), &aside, files::CREATE)
            .and_then(|file| {
                files::write_all(file.as_fd(), header)?;
                files::write_all(file.as_fd(), body)
            })
            .and_then(|()| {
                match rustix::fs::mkdirat(&self.folder, &folder, files::FOLDER_MODE) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
                rustix::fs::renameat(&self.folder, &aside, &self.folder, &target)
            });
        written.inspect_err(|_| {
            let _ = files::remove_file(&self.folder, &aside);
        })
    }

    /// Books a use, also in the file's time, from which the next run learns the order.
    fn touch(&self, name: &EntryName) {
        self.recency.lock().touch(name);
        let (folder, file) = name.file_name();
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let path = format!("{folder}/{file}");
        let _ = rustix::fs::utimensat(&self.folder, path, &times, AtFlags::SYMLINK_NOFOLLOW);
    }

    fn drop_entry(&self, name: &EntryName) {
        tracing::warn!(?name, "a cache file was damaged or gone and is dropped");
        self.recency.lock().remove(name);
        self.remove_files(&[*name]);
    }

    fn remove_files(&self, names: &[EntryName]) {
        for name in names {
            let (folder, file) = name.file_name();
            let _ = files::remove_file(&self.folder, &format!("{folder}/{file}"));
        }
    }
}
