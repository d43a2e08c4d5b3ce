//! What the program lends to experiments: the lab itself opens no store, starts no server and syncs no folder.

use std::fmt;
use std::path::Path;

use crate::bench::driver::{Driver, Failure};

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
