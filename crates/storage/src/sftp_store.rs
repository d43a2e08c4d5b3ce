//! The driver `sftp:`: a folder behind an SSH server.
//!
//! *Participants*: this tree, `sftp-server` or one like it, other devices; also a file store on the server's own disk,
//! whose layout this is. *Goals*: the promises of [`crate::object_store`]: a flush of every file (`fsync@openssh.com`),
//! exclusive creation by a hard link (`hardlink@openssh.com`), replacement by `posix-rename@openssh.com`. Where a server
//! lacks the hard link, creation is the plain renaming of protocol version 3, which must fail when the name exists.
//! *Non-goals*: RSA keys, whose only Rust implementation leaks by its timing; flushing folders, which SFTP cannot.
//! *Invariant*: no password and no signature is sent before the server has shown a key that the user trusts.
//!
//! One connection serves all calls at once; after a failure below SFTP the next call makes a new one.

mod connection;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt};
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::protocol::{FileAttributes, FileType, OpenFlags, Packet, StatusCode};
use tokio::sync::Mutex;

use crate::credentials::Credentials;
use crate::error::{Result, StorageError};
use crate::object_store::clamp;
use crate::open::address::Address;
use crate::tree_store::{Exclusive, RemoteTree, TreeEntry};

use connection::{Access, Connection};

/// Bytes of one request: every server takes so many.
const PART: usize = 32 << 10;
/// Requests of one call on their way at once; they hide the round trips.
const PARTS_MAX: usize = 32;

/// A folder on an SSH server.
pub(crate) struct SftpTree {
    access: Access,
    /// The root as the server takes it: absolute, or relative to the home folder.
    root: String,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl SftpTree {
    /// Takes address and credentials apart; the server is reached at the first call.
    pub(crate) fn new(address: &Address, credentials: &Credentials) -> Result<Self> {
        address.allow_only(&[])?;
        let path = address.path();
        let root = match path.strip_prefix('~') {
            Some(below) => below.trim_start_matches('/').to_owned(),
            None => format!("/{path}"),
        };
        let access = Access::new(address, credentials)?;
        Ok(Self { access, root, connection: Mutex::new(None) })
    }

    async fn connection(&self) -> Result<Arc<Connection>> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = held.as_ref().filter(|connection| connection.is_open()) {
            return Ok(Arc::clone(connection));
        }
        let connection = Arc::new(self.access.connect().await?);
        *held = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Returns the path as the server knows it.
    fn full(&self, path: &str) -> String {
        match (self.root.as_str(), path) {
            ("", "") => ".".to_owned(),
            ("", path) => path.to_owned(),
            (root, "") => root.to_owned(),
            (root, path) => format!("{}/{path}", root.trim_end_matches('/')),
        }
    }

    fn failure(&self, operation: &str, error: SftpError) -> StorageError {
        let (store, operation) = (self.describe(), operation.to_owned());
        let detail = format!("cannot {operation}: {error}");
        match &error {
            SftpError::Status(status) => match status.status_code {
                StatusCode::PermissionDenied => StorageError::PermissionDenied { store, detail },
                StatusCode::NoConnection | StatusCode::ConnectionLost => {
                    StorageError::NotReachable { store, detail }
                }
                _ => StorageError::Failed { store, operation, source: Box::new(error) },
            },
            SftpError::UnexpectedPacket => StorageError::InvalidAnswer { store, detail },
            _ => StorageError::NotReachable { store, detail },
        }
    }

    /// Tells a "no" of the server from a failure of the connection, which the next call must not use again.
    async fn answered<A>(
        &self,
        operation: &str,
        connection: &Connection,
        result: Result<A, SftpError>,
    ) -> Result<A, Answer> {
        result.map_err(|error| match error {
            SftpError::Status(ref status) => match status.status_code {
                StatusCode::NoSuchFile => Answer::Absent,
                StatusCode::Failure => Answer::Refused(self.failure(operation, error)),
                _ => Answer::Failed(self.failure(operation, error)),
            },
            error => {
                connection.give_up();
                Answer::Failed(self.failure(operation, error))
            }
        })
    }

    /// Says of a "failure" whether a file stands where the path wants a folder: then there is nothing at the path.
    async fn is_below_a_file(&self, connection: &Connection, path: &str) -> Result<bool> {
        let above = path.match_indices('/').map(|(at, _)| &path[..at]).chain([path]);
        for place in above {
            match connection.ask(connection.sftp.stat(self.full(place))).await {
                Ok(found) if found.attrs.file_type() == FileType::File => return Ok(true),
                Ok(_) => {}
                Err(SftpError::Status(status)) if status.status_code == StatusCode::NoSuchFile => {
                    return Ok(true);
                }
                Err(error) => return Err(self.failure("look at a folder", error)),
            }
        }
        Ok(false)
    }

    /// Returns what a look at `path` found, or nothing when it was an absence.
    async fn found<A>(
        &self,
        connection: &Connection,
        path: &str,
        result: Result<A, Answer>,
    ) -> Result<Option<A>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Answer::Absent) => Ok(None),
            Err(Answer::Refused(error)) => match self.is_below_a_file(connection, path).await? {
                true => Ok(None),
                false => Err(error),
            },
            Err(Answer::Failed(error)) => Err(error),
        }
    }

    /// Returns the attributes of a file, or nothing when there is no file.
    async fn stat(&self, connection: &Connection, path: &str) -> Result<Option<FileAttributes>> {
        let result = connection.ask(connection.sftp.stat(self.full(path))).await;
        let result = self.answered("look at an object", connection, result).await;
        let found = self.found(connection, path, result).await?;
        let is_file = |attributes: &FileAttributes| attributes.file_type() == FileType::File;
        Ok(found.map(|found| found.attrs).filter(is_file))
    }

    async fn read_handle(
        &self,
        connection: &Connection,
        handle: &str,
        range: &Range<u64>,
    ) -> Result<Option<Bytes>, SftpError> {
        let attributes = connection.ask(connection.sftp.fstat(handle)).await?.attrs;
        if attributes.file_type() != FileType::File {
            return Ok(None);
        }
        let range = clamp(range, attributes.size.unwrap_or(0));
        let offsets = range.clone().step_by(PART);
        let parts = futures_util::stream::iter(offsets).map(|offset| {
            let length = (range.end - offset).min(PART as u64);
            read_part(connection, handle, offset, u32::try_from(length).unwrap_or(u32::MAX))
        });
        let mut parts = parts.buffered(PARTS_MAX);
        let mut bytes = BytesMut::new();
        while let Some(part) = parts.try_next().await? {
            bytes.extend_from_slice(&part);
        }
        Ok(Some(bytes.freeze()))
    }

    async fn write_handle(
        &self,
        connection: &Connection,
        handle: &str,
        bytes: &Bytes,
    ) -> Result<(), SftpError> {
        let offsets = (0..bytes.len()).step_by(PART);
        futures_util::stream::iter(offsets)
            .map(|offset| {
                let part = bytes[offset..bytes.len().min(offset + PART)].to_vec();
                connection.ask(connection.sftp.write(handle, offset as u64, part))
            })
            .buffer_unordered(PARTS_MAX)
            .try_for_each(|_| async { Ok(()) })
            .await?;
        if connection.has_fsync {
            connection.ask(connection.sftp.fsync(handle)).await?;
        }
        Ok(())
    }

    /// Carries out a step that the server may decline.
    async fn step(
        &self,
        operation: &str,
        connection: &Connection,
        result: Result<(), SftpError>,
    ) -> Result<bool> {
        match self.answered(operation, connection, result).await {
            Ok(()) => Ok(true),
            Err(Answer::Absent | Answer::Refused(_)) => Ok(false),
            Err(Answer::Failed(error)) => Err(error),
        }
    }
}

/// What a server says that does not do as it was asked.
enum Answer {
    Absent,
    /// The answer that stands for everything that has none of its own: exists, not empty, not a folder, no space.
    Refused(StorageError),
    Failed(StorageError),
}

/// Reads exactly `length` bytes: a server may send fewer than it was asked for.
async fn read_part(
    connection: &Connection,
    handle: &str,
    offset: u64,
    length: u32,
) -> Result<Vec<u8>, SftpError> {
    let mut bytes = Vec::with_capacity(length as usize);
    while bytes.len() < length as usize {
        let missing = length - u32::try_from(bytes.len()).unwrap_or(length);
        let part = connection
            .ask(connection.sftp.read(handle, offset + bytes.len() as u64, missing))
            .await?
            .data;
        if part.is_empty() || part.len() > missing as usize {
            return Err(SftpError::UnexpectedPacket);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

fn succeeded(packet: Packet) -> Result<(), SftpError> {
    match packet {
        Packet::Status(status) if status.status_code == StatusCode::Ok => Ok(()),
        Packet::Status(status) => Err(SftpError::Status(status)),
        _ => Err(SftpError::UnexpectedPacket),
    }
}

impl std::fmt::Debug for SftpTree {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("SftpTree").field(&self.describe()).finish()
    }
}

#[async_trait]
impl RemoteTree for SftpTree {
    fn describe(&self) -> String {
        let root =
            if self.root.starts_with('/') { &self.root } else { &format!("~/{}", self.root) };
        format!("SFTP server {} at {root}", self.access.address())
    }

    fn exclusive(&self) -> Exclusive {
        Exclusive::Link
    }

    async fn make_root(&self) -> Result<()> {
        let connection = self.connection().await?;
        let ends = self.root.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
        for end in ends.chain([self.root.len()]).filter(|end| *end > 1) {
            let result = connection
                .ask(connection.sftp.mkdir(&self.root[..end], FileAttributes::empty()))
                .await;
            // Those that exist are refused, and whether the last one does shows at once.
            let result = result.map(drop);
            let result = self.answered("make a folder", &connection, result).await;
            if let Err(Answer::Failed(error @ StorageError::NotReachable { .. })) = result {
                return Err(error);
            }
        }
        Ok(())
    }

    async fn entries(&self, folder: &str) -> Result<Option<Vec<TreeEntry>>> {
        let connection = self.connection().await?;
        let fail = |error| self.failure("list a folder", error);
        let result = connection.ask(connection.sftp.opendir(self.full(folder))).await;
        let result = self.answered("list a folder", &connection, result).await;
        let Some(handle) = self.found(&connection, folder, result).await? else { return Ok(None) };
        let handle = handle.handle;
        let mut entries = Vec::new();
        loop {
            let files = match connection.ask(connection.sftp.readdir(handle.as_str())).await {
                Ok(name) => name.files,
                Err(SftpError::Status(status)) if status.status_code == StatusCode::Eof => break,
                Err(error) => {
                    connection.give_up();
                    return Err(fail(error));
                }
            };
            for file in files {
                match file.attrs.file_type() {
                    FileType::Dir => entries.push(TreeEntry { name: file.filename, size: None }),
                    FileType::File => {
                        let size = Some(file.attrs.size.unwrap_or(0));
                        entries.push(TreeEntry { name: file.filename, size });
                    }
                    _ => {}
                }
            }
        }
        connection.ask(connection.sftp.close(handle)).await.map_err(fail)?;
        Ok(Some(entries))
    }

    async fn size(&self, path: &str) -> Result<Option<u64>> {
        let connection = self.connection().await?;
        Ok(self.stat(&connection, path).await?.map(|attributes| attributes.size.unwrap_or(0)))
    }

    async fn read(&self, path: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        let connection = self.connection().await?;
        let opened = connection
            .ask(connection.sftp.open(self.full(path), OpenFlags::READ, FileAttributes::empty()))
            .await;
        let opened = self.answered("open an object", &connection, opened).await;
        let Some(handle) = self.found(&connection, path, opened).await? else { return Ok(None) };
        let result = self.read_handle(&connection, &handle.handle, &range).await;
        let closed = connection.ask(connection.sftp.close(handle.handle)).await.map(drop);
        let result = result.and_then(|bytes| closed.map(|()| bytes));
        if result.is_err() {
            connection.give_up();
        }
        result.map_err(|error| self.failure("read an object", error))
    }

    async fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        let connection = self.connection().await?;
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUDE;
        let opened = connection
            .ask(connection.sftp.open(self.full(path), flags, FileAttributes::empty()))
            .await;
        let handle = opened.map_err(|error| self.failure("create a file aside", error))?.handle;
        let result = self.write_handle(&connection, &handle, &bytes).await;
        let closed = connection.ask(connection.sftp.close(handle)).await.map(drop);
        if let Err(error) = result.and(closed) {
            let no_space = connection.is_full(&self.full("")).await;
            let removed = connection.ask(connection.sftp.remove(self.full(path))).await;
            if removed.is_err() {
                connection.give_up();
            }
            return match no_space {
                true => Err(StorageError::NoSpace { store: self.describe() }),
                false => Err(self.failure("write an object", error)),
            };
        }
        Ok(())
    }

    async fn rename(&self, source: &str, target: &str) -> Result<bool> {
        let connection = self.connection().await?;
        let (source, target) = (self.full(source), self.full(target));
        let result = match connection.has_posix_rename {
            true => connection.posix_rename(&source, &target).await.and_then(succeeded),
            false => connection.ask(connection.sftp.rename(source, target)).await.map(drop),
        };
        self.step("rename an object", &connection, result).await
    }

    async fn link(&self, source: &str, target: &str) -> Result<bool> {
        let connection = self.connection().await?;
        let (source, target) = (self.full(source), self.full(target));
        let result = match connection.has_hardlink {
            true => connection.ask(connection.sftp.hardlink(source, target)).await,
            false => connection.ask(connection.sftp.rename(source, target)).await,
        };
        self.step("link an object", &connection, result.map(drop)).await
    }

    async fn make_folder(&self, path: &str) -> Result<bool> {
        let connection = self.connection().await?;
        let result =
            connection.ask(connection.sftp.mkdir(self.full(path), FileAttributes::empty())).await;
        self.step("make a folder", &connection, result.map(drop)).await
    }

    async fn remove_file(&self, path: &str) -> Result<bool> {
        let connection = self.connection().await?;
        let result = connection.ask(connection.sftp.remove(self.full(path))).await;
        self.step("delete an object", &connection, result.map(drop)).await
    }

    async fn remove_folder(&self, path: &str) -> Result<bool> {
        let connection = self.connection().await?;
        let result = connection.ask(connection.sftp.rmdir(self.full(path))).await;
        self.step("remove a folder", &connection, result.map(drop)).await
    }
}
