//! The calls of the engine.

use std::io::{self, Read, Write};
use std::sync::Arc;

use model::{RelativePath, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use sync::file_system::{
    DirectoryEntry, FileError, FileKind, FileSystem, OpenFile, StageToken, StagedFile, Stat,
};

use super::disk::{Disk, Key, Matter};
use super::{Call, Inner, SimulatedFileSystem, bytes_of};
use crate::chronicle::ContentHash;
use crate::coverage::Fault;

type Result<T> = std::result::Result<T, FileError>;

/// The longest piece that one read returns, so that there are moments between reads.
const READ_LENGTH_MAX: usize = 24 * 1024;

/// Tells whether a file is as expected, apart from the change time that renaming sets.
fn is_as_expected(expected: &Stat, found: &Stat) -> bool {
    match expected.kind {
        FileKind::Directory => {
            (expected.kind, expected.inode, expected.mode) == (found.kind, found.inode, found.mode)
        }
        _ => expected == found,
    }
}

impl SimulatedFileSystem {
    fn read_call(&self, name: &'static str, path: &RelativePath) -> Result<MutexGuard<'_, Inner>> {
        self.enter(Call::Read(name), path)
    }

    fn write_call(&self, name: &'static str, path: &RelativePath) -> Result<MutexGuard<'_, Inner>> {
        let inner = self.enter(Call::Write(name), path)?;
        if inner.is_mounted { Ok(inner) } else { Err(FileError::ReadOnly(path.clone())) }
    }

    /// Swaps what stands aside and what is at the place: the first half of a replacement.
    fn exchange(
        &self,
        token: StageToken,
        path: &RelativePath,
        expected: &Stat,
    ) -> Result<Exchanged> {
        let mut inner = self.write_call("replace", path)?;
        let new = inner.staged(token)?;
        let (directory, name, old) = inner.expect_at(path, expected)?;
        let now = inner.now();
        inner.disk.staged.remove(&token);
        inner.disk.displaced.insert(token, old);
        inner.disk.link(directory, &name, new, now);
        inner.show(path, new);
        inner.keep();
        let installed = inner.disk.file(new).stat();
        Ok(Exchanged { directory, name, old, new, installed })
    }
}

/// A file that has the place of another one, which is on its way to the trash.
struct Exchanged {
    directory: Key,
    name: Vec<u8>,
    old: Key,
    new: Key,
    /// What the new one was when it came.
    installed: Stat,
}

impl Inner {
    fn expect_at(&self, path: &RelativePath, expected: &Stat) -> Result<(Key, Vec<u8>, Key)> {
        let (directory, name) = self.disk.place(path)?;
        let found = self.disk.names(directory).get(&name).copied();
        match found {
            Some(key) if is_as_expected(expected, &self.disk.file(key).stat()) => {
                Ok((directory, name, key))
            }
            _ => Err(FileError::Changed(path.clone())),
        }
    }

    fn free_at(&self, path: &RelativePath) -> Result<(Key, Vec<u8>)> {
        let (directory, name) = self.disk.place(path)?;
        if self.disk.names(directory).contains_key(&name) {
            return Err(FileError::AlreadyExists(path.clone()));
        }
        Ok((directory, name))
    }

    /// Gives what was displaced and cannot be kept its place again, unless a user has taken it since.
    fn put_back(&mut self, token: StageToken, path: &RelativePath, exchanged: &Exchanged) {
        let Exchanged { directory, name, old, new, installed } = exchanged;
        let found = self.disk.names(*directory).get(name).copied();
        let is_ours = found == Some(*new) && self.disk.file(*new).stat() == *installed;
        let is_there = self.disk.find(*directory).is_some();
        if !is_there || found.is_some() && !is_ours {
            return self.disk.keep("displaced", path, *old);
        }
        if is_ours {
            self.disk.staged.insert(token, *new);
        }
        let now = self.now();
        self.disk.link(*directory, name, *old, now);
    }

    fn staged(&self, token: StageToken) -> Result<Key> {
        let staged = self.disk.staged.get(&token).copied();
        staged.ok_or(FileError::NotFound(RelativePath::ROOT))
    }

    /// Returns what a listing says of a file. One that is just being written anew is cut off already, and has its old
    /// times: file systems set the size first.
    fn listed(&self, key: Key, half_done: Option<&Disk>) -> Stat {
        let (file, old) = (self.disk.file(key), half_done.and_then(|disk| disk.find(key)));
        match (bytes_of(&file.matter), old.and_then(|old| Some((old, bytes_of(&old.matter)?)))) {
            (Some(new), Some((old, bytes))) if new != bytes => {
                self.surroundings.coverage.hit(Fault::CutOffSeen);
                Stat { size: 0, ..old.stat() }
            }
            _ => file.stat(),
        }
    }

    /// What the engine puts before the eyes of users is remembered, to be compared with what users wrote.
    fn show(&self, path: &RelativePath, key: Key) {
        if let Some(bytes) = bytes_of(&self.disk.file(key).matter) {
            self.surroundings.chronicle.shown(self.device, path, ContentHash::of_file(&bytes));
        }
    }
}

impl FileSystem for SimulatedFileSystem {
    fn list(&self, directory: &RelativePath) -> Result<Vec<DirectoryEntry>> {
        let mut inner = self.read_call("list", directory)?;
        let half_done = inner.half_done.take();
        if !inner.is_mounted {
            return Ok(Vec::new());
        }
        let key = inner.disk.directory(directory)?;
        let names = inner.disk.names(key);
        let entry = |(name, key): (&Vec<u8>, &Key)| DirectoryEntry {
            name: name.clone(),
            stat: inner.listed(*key, half_done.as_ref()),
        };
        Ok(names.iter().map(entry).collect())
    }

    fn stat(&self, path: &RelativePath) -> Result<Option<Stat>> {
        let inner = self.read_call("stat", path)?;
        if !inner.is_mounted && !path.is_root() {
            return Ok(None);
        }
        match inner.disk.resolve(path) {
            Ok(found) => Ok(found.map(|key| inner.disk.file(key).stat())),
            Err(FileError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open(&self, path: &RelativePath) -> Result<Box<dyn OpenFile>> {
        let inner = self.read_call("open", path)?;
        if !inner.is_mounted {
            return Err(FileError::NotFound(path.clone()));
        }
        let key = inner.disk.resolve(path)?.ok_or_else(|| FileError::NotFound(path.clone()))?;
        let file = inner.disk.file(key);
        if file.kind() != FileKind::File {
            return Err(FileError::Changed(path.clone()));
        }
        let last = (file.stat(), bytes_of(&file.matter).unwrap_or_default());
        drop(inner);
        let last = Mutex::new(last);
        Ok(Box::new(Reader { folder: self.clone(), path: path.clone(), key, position: 0, last }))
    }

    fn read_link(&self, path: &RelativePath) -> Result<Vec<u8>> {
        let inner = self.read_call("read_link", path)?;
        let key = inner.disk.resolve(path)?.ok_or_else(|| FileError::NotFound(path.clone()))?;
        match &inner.disk.file(key).matter {
            Matter::Symlink(text) => Ok(text.to_vec()),
            _ => Err(FileError::Changed(path.clone())),
        }
    }

    fn stage(&self, token: StageToken) -> Result<Box<dyn StagedFile>> {
        let mut inner = self.write_call("stage", &RelativePath::ROOT)?;
        if inner.disk.staged.contains_key(&token) {
            return Err(FileError::AlreadyExists(RelativePath::ROOT));
        }
        let now = inner.now();
        let key = inner.disk.add(Matter::File(Arc::default()), 0o600, now, true);
        inner.disk.staged.insert(token, key);
        inner.keep();
        drop(inner);
        Ok(Box::new(Writer { folder: self.clone(), token, key, is_finished: false }))
    }

    fn stage_link(&self, token: StageToken, target: &[u8], modified: Timestamp) -> Result<()> {
        let mut inner = self.write_call("stage_link", &RelativePath::ROOT)?;
        if inner.disk.staged.contains_key(&token) {
            return Err(FileError::AlreadyExists(RelativePath::ROOT));
        }
        let now = inner.now();
        let key = inner.disk.add(Matter::Symlink(Arc::new(target.to_vec())), 0, now, true);
        inner.disk.file_mut(key).modified = modified;
        inner.disk.staged.insert(token, key);
        inner.keep();
        Ok(())
    }

    fn discard(&self, token: StageToken) -> Result<()> {
        let mut inner = self.write_call("discard", &RelativePath::ROOT)?;
        if let Some(key) = inner.disk.staged.remove(&token) {
            inner.disk.remove(key);
            inner.keep();
        }
        Ok(())
    }

    fn install(
        &self,
        token: StageToken,
        path: &RelativePath,
        expected: Option<&Stat>,
    ) -> Result<Stat> {
        let mut inner = self.write_call("install", path)?;
        let key = inner.staged(token)?;
        let (directory, name) = match expected {
            None => inner.free_at(path)?,
            Some(expected) => {
                let (directory, name, old) = inner.expect_at(path, expected)?;
                if !inner.disk.names(old).is_empty() {
                    return Err(FileError::NotEmpty(path.clone()));
                }
                inner.disk.remove(old);
                (directory, name)
            }
        };
        inner.disk.staged.remove(&token);
        let now = inner.now();
        inner.disk.link(directory, &name, key, now);
        inner.show(path, key);
        inner.keep();
        Ok(inner.disk.file(key).stat())
    }

    fn replace(
        &self,
        token: StageToken,
        path: &RelativePath,
        expected: &Stat,
        label: &str,
    ) -> Result<Stat> {
        if expected.kind == FileKind::Directory {
            return self.install(token, path, Some(expected));
        }
        let exchanged = self.exchange(token, path, expected)?;
        let kept = self.write_call("keep", path).map(drop);
        let mut inner = self.0.lock();
        inner.disk.displaced.remove(&token);
        match &kept {
            Ok(()) => inner.disk.keep(label, path, exchanged.old),
            Err(_) => inner.put_back(token, path, &exchanged),
        }
        inner.keep();
        kept.map(|()| exchanged.installed)
    }

    fn make_directory(&self, path: &RelativePath, mode: u32) -> Result<Stat> {
        let mut inner = self.write_call("make_directory", path)?;
        let (directory, name) = inner.free_at(path)?;
        let now = inner.now();
        let key = inner.disk.add(Matter::Directory(Arc::default()), mode & 0o777, now, true);
        inner.disk.link(directory, &name, key, now);
        inner.keep();
        Ok(inner.disk.file(key).stat())
    }

    fn rename(&self, from: &RelativePath, to: &RelativePath) -> Result<Stat> {
        let mut inner = self.write_call("rename", from)?;
        let (old_directory, old_name) = inner.disk.place(from)?;
        let key = inner.disk.names(old_directory).get(&old_name).copied();
        let key = key.ok_or_else(|| FileError::NotFound(from.clone()))?;
        let (directory, name) = inner.free_at(to)?;
        if inner.disk.lies_in(directory, key) {
            let reason = "a directory cannot be moved into itself".to_owned();
            return Err(FileError::Other { path: from.clone(), reason });
        }
        let now = inner.now();
        inner.disk.unlink(old_directory, &old_name, now);
        inner.disk.link(directory, &name, key, now);
        inner.keep();
        Ok(inner.disk.file(key).stat())
    }

    fn set_attributes(
        &self,
        path: &RelativePath,
        expected: &Stat,
        mode: u32,
        modified: Option<Timestamp>,
    ) -> Result<Stat> {
        let mut inner = self.write_call("set_attributes", path)?;
        let (_, _, key) = inner.expect_at(path, expected)?;
        let now = inner.now();
        let file = inner.disk.touch(key, now);
        let kind = file.kind();
        if kind != FileKind::Symlink {
            file.mode = mode & 0o777;
        }
        if let Some(modified) = modified.filter(|_| kind != FileKind::Directory) {
            file.modified = modified;
        }
        let stat = file.stat();
        inner.keep();
        Ok(stat)
    }

    fn trash(&self, path: &RelativePath, expected: &Stat, label: &str) -> Result<()> {
        let mut inner = self.write_call("trash", path)?;
        let (directory, name, key) = inner.expect_at(path, expected)?;
        if !inner.disk.names(key).is_empty() {
            return Err(FileError::NotEmpty(path.clone()));
        }
        let now = inner.now();
        inner.disk.unlink(directory, &name, now);
        if expected.kind == FileKind::Directory {
            inner.disk.remove(key);
        } else {
            inner.disk.keep(label, path, key);
        }
        inner.keep();
        Ok(())
    }

    fn make_durable(&self) -> Result<()> {
        let mut inner = self.enter(Call::Flush, &RelativePath::ROOT)?;
        inner.flush();
        Ok(())
    }

    fn root_identity(&self) -> Result<Option<[u8; 16]>> {
        let inner = self.read_call("root_identity", &RelativePath::ROOT)?;
        Ok(inner.disk.identity.filter(|_| inner.is_mounted))
    }

    fn set_root_identity(&self, identity: [u8; 16]) -> Result<()> {
        let mut inner = self.write_call("set_root_identity", &RelativePath::ROOT)?;
        inner.disk.identity = Some(identity);
        // The real folder flushes it at once.
        inner.flush();
        Ok(())
    }
}

/// A file that is open for reading.
struct Reader {
    folder: SimulatedFileSystem,
    path: RelativePath,
    key: Key,
    position: usize,
    /// What it was when it was last seen, for when it has no name any more.
    last: Mutex<(Stat, Arc<Vec<u8>>)>,
}

impl Reader {
    fn look(&self, inner: &Inner) -> (Stat, Arc<Vec<u8>>) {
        let mut last = self.last.lock();
        if let Some(file) = inner.disk.find(self.key) {
            *last = (file.stat(), bytes_of(&file.matter).unwrap_or_default());
        }
        last.clone()
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let inner = self.folder.read_call("read", &self.path).map_err(io::Error::other)?;
        let (_, bytes) = self.look(&inner);
        drop(inner);
        let rest = bytes.get(self.position..).unwrap_or_default();
        let length = rest.len().min(buffer.len()).min(READ_LENGTH_MAX);
        buffer[..length].copy_from_slice(&rest[..length]);
        self.position += length;
        Ok(length)
    }
}

impl OpenFile for Reader {
    fn go_to(&mut self, offset: u64) -> io::Result<()> {
        self.position = offset as usize;
        Ok(())
    }

    fn stat(&self) -> Result<Stat> {
        let inner = self.folder.read_call("fstat", &self.path)?;
        Ok(self.look(&inner).0)
    }
}

/// A file that is written aside.
struct Writer {
    folder: SimulatedFileSystem,
    token: StageToken,
    key: Key,
    is_finished: bool,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let entered = self.folder.write_call("write", &RelativePath::ROOT);
        let mut inner = entered.map_err(|error| match error {
            FileError::NoSpace(_) => io::ErrorKind::StorageFull.into(),
            other => io::Error::other(other),
        })?;
        let now = inner.now();
        if let Matter::File(content) = &mut inner.disk.touch(self.key, now).matter {
            Arc::make_mut(content).extend_from_slice(bytes);
        }
        inner.keep();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StagedFile for Writer {
    fn finish(mut self: Box<Self>, mode: u32, modified: Timestamp) -> Result<()> {
        let mut inner = self.folder.write_call("finish", &RelativePath::ROOT)?;
        let now = inner.now();
        let file = inner.disk.touch(self.key, now);
        file.mode = mode & 0o777;
        file.modified = modified;
        inner.keep();
        drop(inner);
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut inner = self.folder.0.lock();
        // A dead process removes nothing.
        if !self.is_finished
            && !inner.is_dead
            && inner.disk.staged.get(&self.token) == Some(&self.key)
        {
            inner.disk.staged.remove(&self.token);
            inner.disk.remove(self.key);
        }
    }
}
