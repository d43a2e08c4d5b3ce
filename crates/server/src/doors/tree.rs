//! A tree of files, as the doors need it that put files in and send them out.
//!
//! *Participants*: the doors of files and of WebDAV; whoever has files: this server, of its plain workspaces
//! ([`workspace`]), and a device, of a folder that it keeps in sync. *Goals*: one door for all of them. *Non-goals*: versions,
//! members, links. *Invariants*: what was answered with success is durable; under its name a file is whole or not there; a
//! condition is checked at the moment of the change, so that who was first wins and the other is told.

use std::ops::Range;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use model::{Clock, Name, Random, RelativePath, Timestamp, WorkspaceId};

use crate::error::Result;
use crate::metadata::AccountId;
use crate::services::locks::Locks;

pub use crate::files::{Checksums, KnownChecksums, Put, Spooled, Spools};
pub use crate::services::files::Condition;
pub use crate::services::files::changes::Destination;

pub(crate) mod workspace;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// A folder.
    Folder,
    /// A file of so many bytes.
    File(u64),
    /// A symbolic link, which is neither listed nor followed.
    Link,
}

/// A file, folder or link, as it was when it was looked at.
#[derive(Debug, Clone)]
pub struct Item<H> {
    /// Its name; nothing for the root.
    pub name: Option<Name>,
    /// What it is.
    pub kind: ItemKind,
    /// What names this version of it, in quotes.
    pub etag: String,
    /// When it was modified; nothing that counts for a folder.
    pub modified: Timestamp,
    /// What its tree needs to find its content again.
    pub handle: H,
}

impl<H> Item<H> {
    /// Tells whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.kind == ItemKind::Folder
    }
}

/// What became of a file that was put.
#[derive(Debug, Clone)]
pub struct Changed<H> {
    /// What is at the path now, unless that is gone again.
    pub item: Option<Item<H>>,
    /// Whether there was nothing before.
    pub is_new: bool,
}

/// How much a tree holds, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// What is used.
    pub used: u64,
    /// How much more there may be; nothing where nobody has set a limit.
    pub left: Option<u64>,
}

/// The promises of a tree's WebDAV clients, and which of them are meant.
#[derive(Debug, Clone, Copy)]
pub struct Promises<'a> {
    /// All of them.
    pub locks: &'a Locks,
    /// Those of this tree.
    pub workspace: WorkspaceId,
    /// Who asks.
    pub account: AccountId,
}

impl AccountId {
    /// Who asks where nobody has an account.
    pub const ALONE: Self = Self(0);
}

/// A tree of files, as one caller may see and change it. Cheap to clone.
pub trait FileTree: Clone + Send + Sync + 'static {
    /// What leads to the content of a file.
    type Handle: Clone + Send + Sync + 'static;

    /// Returns what stands at a path.
    ///
    /// # Errors
    /// [`crate::ServerError`] where that cannot be known.
    fn find(
        &self,
        path: &RelativePath,
    ) -> impl Future<Output = Result<Option<Item<Self::Handle>>>> + Send;

    /// Returns what is in a folder, in the order of names, page by page.
    fn list(
        &self,
        path: &RelativePath,
        folder: &Item<Self::Handle>,
    ) -> BoxStream<'static, Result<Vec<Item<Self::Handle>>>>;

    /// Begins to read the bytes of a range, which lies in the file.
    ///
    /// # Errors
    /// [`crate::ServerError::Unavailable`] where it is another file by now; damage, and whatever else keeps it from being read.
    fn read(
        &self,
        path: &RelativePath,
        file: &Item<Self::Handle>,
        range: Range<u64>,
    ) -> impl Future<Output = Result<BoxStream<'static, std::io::Result<Bytes>>>> + Send;

    /// Refuses who may not change the tree.
    ///
    /// # Errors
    /// [`crate::ServerError::Forbidden`].
    fn check_may_write(&self) -> impl Future<Output = Result<()>> + Send;

    /// Tells whether a file may be put, before it is received; [`Self::put`] decides.
    ///
    /// # Errors
    /// As [`Self::put`].
    fn check_put(&self, put: &Put) -> impl Future<Output = Result<()>> + Send;

    /// Puts a file.
    ///
    /// # Errors
    /// [`crate::ServerError::PreconditionFailed`]; [`crate::ServerError::Conflict`] where its folder is missing, or something
    /// else than a file is there.
    fn put(
        &self,
        put: &Put,
        body: &Spooled,
    ) -> impl Future<Output = Result<Changed<Self::Handle>>> + Send;

    /// Makes a folder.
    ///
    /// # Errors
    /// [`crate::ServerError::Taken`] where something is there; [`crate::ServerError::Conflict`] where its folder is missing.
    fn make_folder(&self, path: &RelativePath) -> impl Future<Output = Result<()>> + Send;

    /// Sets when a file was modified.
    ///
    /// # Errors
    /// [`crate::ServerError::NotFound`].
    fn set_modified(
        &self,
        path: &RelativePath,
        modified: Timestamp,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Deletes a file, or a folder with everything in it.
    ///
    /// # Errors
    /// [`crate::ServerError::NotFound`], [`crate::ServerError::PreconditionFailed`], [`crate::ServerError::Conflict`] for the
    /// root.
    fn delete(
        &self,
        path: &RelativePath,
        condition: &Condition,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Moves or renames something; tells whether there was nothing before where it is now.
    ///
    /// # Errors
    /// [`crate::ServerError::NotFound`]; [`crate::ServerError::PreconditionFailed`] where something is there that is not to be
    /// overwritten; [`crate::ServerError::Conflict`] where it would lie in itself, or the folder is missing.
    fn relocate(
        &self,
        from: &RelativePath,
        to: &Destination,
        condition: &Condition,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Copies something, with everything in it where `is_deep`; tells whether there was nothing before.
    ///
    /// # Errors
    /// As [`Self::relocate`].
    fn copy(
        &self,
        from: &RelativePath,
        to: &Destination,
        is_deep: bool,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Returns how much it holds.
    ///
    /// # Errors
    /// [`crate::ServerError`] where that cannot be known.
    fn room(&self) -> impl Future<Output = Result<Room>> + Send;

    /// Returns the checksums of a file that came in lately.
    fn checksums(&self, file: &Item<Self::Handle>) -> Option<Checksums>;

    /// Returns the promises of its clients.
    fn promises(&self) -> Promises<'_>;

    /// Returns where bodies are kept until they are whole.
    fn spools(&self) -> &Spools;

    /// Returns the time.
    fn clock(&self) -> &dyn Clock;

    /// Returns randomness.
    fn random(&self) -> &dyn Random;
}
