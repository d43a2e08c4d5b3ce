//! What the program lends to experiments: the lab itself opens no store, starts no server and syncs no folder.

use std::fmt;
use std::path::Path;

use model::pool::PoolConfig;

use crate::bench::driver::{Driver, Failure};
use crate::error::LabError;

#[cfg(test)]
pub(crate) mod testing;

/// Returns the homes of an object by its hash: their places in [`PoolConfig::stores`], as many as there are copies or blocks.
pub type Homes = Box<dyn Fn(&[u8; 32]) -> Vec<usize>>;

/// Opens what experiments are done with.
pub trait Targets: fmt::Debug + Send + Sync {
    /// Opens a store by its URL, and makes its folder.
    ///
    /// # Errors
    /// [`Failure`], as of all others.
    fn store(&self, url: &str) -> Result<Box<dyn Driver>, Failure>;

    /// Starts a server and two devices that keep a workspace, all in an empty folder; they end when the value goes.
    ///
    /// # Errors
    /// [`Failure`].
    fn synced(&self, room: &Path, sending: Sending) -> Result<Box<dyn Synced>, Failure>;

    /// Starts a server and so many devices that keep one workspace and watch, all in an empty folder; they end when the value goes.
    ///
    /// # Errors
    /// [`Failure`].
    fn group(
        &self,
        room: &Path,
        devices: usize,
        counting: Counting,
    ) -> Result<Box<dyn Group>, Failure>;

    /// Makes a workspace over a folder, which keeps no old versions, and a device that has it, all in an empty folder.
    ///
    /// # Errors
    /// [`Failure`].
    fn workspace(&self, room: &Path) -> Result<Box<dyn Workspace>, Failure>;

    /// Returns the rule by which this program places objects in the stores of a pool.
    fn homes(&self, config: &PoolConfig) -> Homes;
}

/// Whether it is counted what goes between devices and their server, which takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// Nothing is.
    Off,
    /// Every byte, and those of contents by themselves.
    On,
}

/// When the first device sends. The second one always watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// Whatever changes, at once.
    Watching,
    /// When [`Synced::send`] says so.
    WhenTold,
}

/// Two folders that a program keeps equal through a server.
pub trait Synced: fmt::Debug + Send + Sync {
    /// Returns the folder in which files are changed, and the one in which they are to be seen.
    fn folders(&self) -> [&Path; 2];

    /// Sends what has changed in the first folder, and returns when the server has acknowledged it.
    ///
    /// # Errors
    /// [`Failure`].
    fn send(&self) -> Result<(), Failure>;

    /// Waits until nothing goes between the first device and the server any more, and returns what has gone so far.
    fn at_rest(&self) -> Moved;
}

/// Folders that a program keeps equal through a server.
pub trait Group: fmt::Debug + Send + Sync {
    /// Returns the folder of each device.
    fn folders(&self) -> Vec<&Path>;

    /// Returns what each device and the server have said to each other so far; nothing where it is not counted.
    ///
    /// # Errors
    /// [`Failure`] where contents cannot be told from all else.
    fn carried(&self) -> Result<Vec<Carried>, Failure>;
}

/// A folder that one device keeps in a store.
pub trait Workspace: fmt::Debug {
    /// Returns the folder.
    fn folder(&self) -> &Path;

    /// Sends what has changed in it.
    ///
    /// # Errors
    /// [`Failure`], as of all others.
    fn send(&self) -> Result<(), Failure>;

    /// Removes from the store what only old versions need, packs the rest anew where that pays, and says what is left.
    ///
    /// # Errors
    /// [`Failure`].
    fn clean_up(&self) -> Result<CleanedUp, Failure>;
}

/// What a store has after a cleanup, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleanedUp {
    /// All packs.
    pub packs: u64,
    /// Of these what no file needs.
    pub needless: u64,
    /// What this cleanup has packed anew.
    pub rewritten: u64,
}

/// What a device and its server have said to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Carried {
    /// Everything.
    pub all: Moved,
    /// Of that, what files have in them.
    pub contents: Moved,
}

impl Carried {
    /// Returns what was not contents, both ways together.
    pub fn about_files(self) -> u64 {
        let Moved { up, down } = self.all.since(self.contents);
        up + down
    }

    /// Returns what was said since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { all: self.all.since(earlier.all), contents: self.contents.since(earlier.contents) }
    }
}

/// Bytes inside TCP, without its headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// From the device to the server.
    pub up: u64,
    /// From the server to the device.
    pub down: u64,
}

impl Moved {
    /// Returns what has gone since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self { up: self.up - earlier.up, down: self.down - earlier.down }
    }
}

/// Says why no workspace can be had, or what one does not do.
pub(crate) fn no_workspace(failure: Failure) -> LabError {
    no_target("workspace", failure)
}

/// Says which target cannot be had, or does not do what it is for.
pub(crate) fn no_target(target: &'static str, Failure(what): Failure) -> LabError {
    LabError::NoTarget { target, what }
}
