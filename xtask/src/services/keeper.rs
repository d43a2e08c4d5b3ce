//! A process that ends the services when the one that started them has gone, in whatever way: it ended, somebody pressed
//! Ctrl-C, it was killed.
//!
//! It holds the other end of a pipe. The kernel closes the pipe with the life of the one who made it, and that cannot be
//! forgotten, unlike a signal that nobody catches.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::{is_any_started, stop};
use crate::failure::{Context, Result};

/// The word that makes `cargo xtask services` a keeper.
pub(super) const WORD: &str = "keep";

/// The process, seen from the one that it keeps watch over.
pub(super) struct Keeper {
    child: Child,
}

impl Keeper {
    /// Starts one; it must be done by the program `xtask`.
    pub(super) fn start() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        // In a group of its own, so that Ctrl-C does not reach it.
        command.args(["services", WORD]).stdin(Stdio::piped()).process_group(0);
        Ok(Self { child: command.spawn().context("the keeper of the services")? })
    }

    /// Lets it go: the services have been stopped.
    pub(super) fn dismiss(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        self.child.wait().context("the keeper of the services").map(drop)
    }
}

/// Waits until the other end of the pipe is gone, and stops what then still runs.
pub(super) fn keep() -> Result<()> {
    let mut said = Vec::new();
    std::io::stdin().read_to_end(&mut said)?;
    if is_any_started() { stop() } else { Ok(()) }
}
