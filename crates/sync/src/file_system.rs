//! The folder that is kept in sync, as the engine sees it: paths from its root, and never a way out of it.
//!
//! *Participants*: the engine, the real file system ([`native`]), and the seeded world of `testkit`.
//! *Goals*: every change is checked against what the engine believed to find, at the moment of the change, so that
//! an edit in between is noticed and never overwritten; a file is complete and durable before it is seen.
//! *Non-goals*: owners, access lists, hard links as such (each name is a file of its own).
//! *Invariants*: nothing outside the root is created, changed, read or removed, whatever the names say and whoever
//! swaps a directory for a symbolic link meanwhile; links are text and never followed.
//!
//! The folder has a service directory, [`SERVICE_DIRECTORY`], that is never synced: it holds the identity of the root,
//! the files written aside and the trash. All calls may block.

use std::fmt::Debug;
use std::io::{Read, Write};

use model::{RelativePath, Timestamp};

#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod native;

/// The directory in the root that belongs to Syncline.
pub const SERVICE_DIRECTORY: &str = ".syncline";

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// A pipe, socket or device; never synced.
    Other,
}

/// What the file system says of a file, without following links.
///
/// Two equal values mean that nothing has touched the file, as far as anybody can tell without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stat {
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes; 0 for anything but files.
    pub size: u64,
    /// Permission bits; 0 for symbolic links.
    pub mode: u32,
    /// Modification time, which programs may set to anything.
    pub modified: Timestamp,
    /// Change time, which the file system sets.
    pub changed: Timestamp,
    /// Number of the file in its file system; a new file may get the number of a deleted one.
    pub inode: u64,
}

impl Stat {
    /// Tells whether this is the same file or directory, whatever else has changed.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.inode, self.kind) == (other.inode, other.kind)
    }

    /// Tells whether a file is the same, apart from the change time, which renaming sets.
    pub fn is_same_but_renamed(&self, after: &Self) -> bool {
        Self { changed: after.changed, ..*self } == *after
    }

    /// Returns a stat that equals none that a file system gives, so that a file is read again.
    #[must_use]
    pub fn unproven(self) -> Self {
        Self { changed: Timestamp::default(), ..self }
    }

    /// Tells whether an equal stat proves that a file has not changed.
    pub fn is_proof(&self) -> bool {
        self.changed != Timestamp::default()
    }
}

/// An entry of a directory; the name may be one that cannot be synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name, as the file system has it.
    pub name: Vec<u8>,
    /// What it is.
    pub stat: Stat,
}

/// Why the file system did not do what was asked. Nothing was changed, unless the variant says so.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is no such file.
    #[error("'{0}' does not exist")]
    NotFound(RelativePath),
    /// There is a file already.
    #[error("'{0}' exists already")]
    AlreadyExists(RelativePath),
    /// The file is not what the caller expected any more.
    #[error("'{0}' was changed meanwhile")]
    Changed(RelativePath),
    /// The directory is not empty.
    #[error("the directory '{0}' is not empty")]
    NotEmpty(RelativePath),
    /// A parent is a link or a file, or the path leads out of the root.
    #[error("'{0}' cannot be reached: a parent is not a directory of this folder")]
    Escapes(RelativePath),
    /// No space is left, or the quota is used up.
    #[error("no space is left for '{0}'")]
    NoSpace(RelativePath),
    /// Not allowed.
    #[error("'{0}' may not be accessed")]
    PermissionDenied(RelativePath),
    /// The file system is read-only.
    #[error("'{0}' lies on a read-only file system")]
    ReadOnly(RelativePath),
    /// The file system does not take this name, for example because it is too long there.
    #[error("the file system does not take the name '{0}'")]
    NameRefused(RelativePath),
    /// Data that was written may be lost; what is not known to be durable must be written again.
    #[error("the folder could not be made durable: {0}")]
    NotDurable(String),
    /// Anything else.
    #[error("'{path}': {reason}")]
    Other {
        /// Which file.
        path: RelativePath,
        /// What the operating system said.
        reason: String,
    },
}

/// An open file.
pub trait OpenFile: Read + Send {
    /// Goes to a place in the file, in bytes from its start; reading continues there.
    ///
    /// # Errors
    /// What the operating system says.
    fn go_to(&mut self, offset: u64) -> std::io::Result<()>;

    /// Returns what the file system says of the file that is open, wherever its name leads now.
    ///
    /// # Errors
    /// [`FileError`].
    fn stat(&self) -> Result<Stat, FileError>;
}

/// A file that is written aside, in the service directory. Dropping it before [`Self::finish`] removes it.
pub trait StagedFile: Write + Send {
    /// Sets permission bits and modification time and closes the file. It is not durable yet.
    ///
    /// # Errors
    /// [`FileError`].
    fn finish(self: Box<Self>, mode: u32, modified: Timestamp) -> Result<(), FileError>;
}

/// The names of files written aside: unique while they exist.
pub type StageToken = u64;

/// A folder.
pub trait FileSystem: Send + Sync + Debug {
    /// Returns the entries of a directory in any order, without the service directory.
    ///
    /// # Errors
    /// [`FileError`]; a directory that cannot be read whole is an error, never a shorter list.
    fn list(&self, directory: &RelativePath) -> Result<Vec<DirectoryEntry>, FileError>;

    /// Returns what a name is, or nothing where there is nothing.
    ///
    /// # Errors
    /// [`FileError`].
    fn stat(&self, path: &RelativePath) -> Result<Option<Stat>, FileError>;

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// [`FileError`]; a link or directory is [`FileError::Changed`].
    fn open(&self, path: &RelativePath) -> Result<Box<dyn OpenFile>, FileError>;

    /// Returns the text of a symbolic link.
    ///
    /// # Errors
    /// [`FileError`].
    fn read_link(&self, path: &RelativePath) -> Result<Vec<u8>, FileError>;

    /// Starts a file aside.
    ///
    /// # Errors
    /// [`FileError`].
    fn stage(&self, token: StageToken) -> Result<Box<dyn StagedFile>, FileError>;

    /// Makes a symbolic link aside.
    ///
    /// # Errors
    /// [`FileError`].
    fn stage_link(
        &self,
        token: StageToken,
        target: &[u8],
        modified: Timestamp,
    ) -> Result<(), FileError>;

    /// Removes a file or link that stands aside; absent is fine.
    ///
    /// # Errors
    /// [`FileError`].
    fn discard(&self, token: StageToken) -> Result<(), FileError>;

    /// Moves what stands aside to its place, atomically.
    ///
    /// With `expected` absent, there must be nothing at the place; otherwise what is there must be `expected` at the
    /// moment of the exchange, and is removed. An edit in between is never lost: it is put back, and the call fails.
    ///
    /// # Errors
    /// [`FileError::AlreadyExists`], [`FileError::Changed`], or another; what stands aside is then still there.
    fn install(
        &self,
        token: StageToken,
        path: &RelativePath,
        expected: Option<&Stat>,
    ) -> Result<Stat, FileError>;

    /// Puts what stands aside over what is at the place, as [`Self::install`] does, and moves what was there to the
    /// trash, below a folder called `label`; an empty directory is removed.
    ///
    /// Wherever the process ends or the power goes, the one or the other is at the place: a name without a file would look
    /// like a deletion.
    ///
    /// # Errors
    /// [`FileError::Changed`], or another; then everything is as it was.
    fn replace(
        &self,
        token: StageToken,
        path: &RelativePath,
        expected: &Stat,
        label: &str,
    ) -> Result<Stat, FileError>;

    /// Makes a directory.
    ///
    /// # Errors
    /// [`FileError::AlreadyExists`] or another.
    fn make_directory(&self, path: &RelativePath, mode: u32) -> Result<Stat, FileError>;

    /// Moves a file, link or directory; there must be nothing at the new place.
    ///
    /// # Errors
    /// [`FileError::AlreadyExists`], [`FileError::NotFound`], or another.
    fn rename(&self, from: &RelativePath, to: &RelativePath) -> Result<Stat, FileError>;

    /// Sets permission bits, and for a file the modification time, if it is still as expected.
    ///
    /// # Errors
    /// [`FileError::Changed`] or another.
    fn set_attributes(
        &self,
        path: &RelativePath,
        expected: &Stat,
        mode: u32,
        modified: Option<Timestamp>,
    ) -> Result<Stat, FileError>;

    /// Moves a file or link to the trash, or removes an empty directory, if it is still as expected. The trash keeps
    /// the path below a folder called `label`.
    ///
    /// # Errors
    /// [`FileError::Changed`], [`FileError::NotEmpty`], or another.
    fn trash(&self, path: &RelativePath, expected: &Stat, label: &str) -> Result<(), FileError>;

    /// Makes everything durable that was done so far: one call for many files.
    ///
    /// # Errors
    /// [`FileError::NotDurable`]: then nothing done since the last success is known to be durable.
    fn make_durable(&self) -> Result<(), FileError>;

    /// Returns the identity of the root, or nothing where there is none: another disk, an unmounted one.
    ///
    /// # Errors
    /// [`FileError`], also where the root itself is missing ([`FileError::NotFound`]).
    fn root_identity(&self) -> Result<Option<[u8; 16]>, FileError>;

    /// Gives the root an identity and makes the service directory.
    ///
    /// # Errors
    /// [`FileError`].
    fn set_root_identity(&self, identity: [u8; 16]) -> Result<(), FileError>;
}
