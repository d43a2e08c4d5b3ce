//! The programs that are measured, each behind the same steps.
//!
//! * **send**: what the source folder holds becomes known to the other side (a repository, a
//!   server, a second folder). The first time it is `initial`, without a change `no-op`, after an
//!   update `update:NAME`.
//! * **restore**: a new place gets everything.
//! * **fetch**: a place that has the older state gets the newer one; only programs with a server.
//!
//! Creating a repository or starting a server is not timed, for nobody.

mod backup;
mod copy;
mod ours;
mod rsync;
mod second_folder;
mod syncthing;

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(super) use rsync::start_daemon;
pub(super) use syncthing::Syncthing;

use crate::bench::sample::Sample;
use crate::failure::{Result, fail};
use crate::process;

/// The folders of one program in one round.
#[derive(Debug, Clone)]
pub(super) struct Room {
    /// What is synced; the benchmark changes it between the steps.
    pub source: PathBuf,
    /// Where restore puts everything.
    pub target: PathBuf,
    /// For repositories, configurations, reports; empty at the start, removed at the end.
    pub scratch: PathBuf,
}

/// Which comparison a program belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    /// The file system itself: `cp -r`.
    Yardstick,
    /// Keeps history in a repository.
    Backup,
    /// Keeps two folders equal.
    Sync,
}

/// A program that can be measured.
pub(super) trait Peer {
    /// Its name in tables.
    fn name(&self) -> &'static str;

    /// What it is compared with.
    fn family(&self) -> Family;

    /// Whether it is ours.
    fn is_ours(&self) -> bool {
        false
    }

    /// The program that must be installed, and the Debian package that brings it, if one does.
    fn program(&self) -> (&'static str, Option<&'static str>);

    /// What it says about its version.
    fn version(&self) -> String;

    /// Makes repositories and starts servers.
    fn begin(&mut self, room: &Room) -> Result<()>;

    /// Brings the state of the source to the other side.
    fn send(&mut self, room: &Room) -> Result<Sample>;

    /// Brings everything to the target; `None` if this makes no sense for the program.
    fn restore(&mut self, room: &Room) -> Result<Option<Sample>>;

    /// Brings the target, which has an older state, to the newest one.
    fn fetch(&mut self, _room: &Room) -> Result<Option<Sample>> {
        Ok(None)
    }

    /// The folder that equals the source after `send`, if there is one.
    fn copy_of_source(&self, _room: &Room) -> Option<PathBuf> {
        None
    }

    /// Stops servers.
    fn end(&mut self) {}
}

/// All programs, ours first; without a binary only the others.
pub(super) fn all(ours: Option<&Path>) -> Vec<Box<dyn Peer>> {
    let mut peers: Vec<Box<dyn Peer>> = Vec::new();
    if let Some(binary) = ours {
        peers.push(Box::new(ours::StoredSyncline::new(binary)));
        peers.push(Box::new(ours::ServedSyncline::new(binary)));
    }
    peers.push(Box::new(copy::Copy));
    peers.extend(backup::all());
    peers.push(Box::new(rsync::LocalRsync));
    peers.push(Box::new(rsync::DaemonRsync::new("rsyncd", &[])));
    peers.push(Box::new(rsync::DaemonRsync::new("rsyncd -z", &["-z", "--compress-choice=zstd"])));
    peers.push(Box::new(second_folder::unison()));
    peers.push(Box::new(second_folder::rclone()));
    peers.push(Box::new(Syncthing::default()));
    peers
}

/// The first line that a program prints about its version.
pub(super) fn first_line(program: &str, words: &[&str]) -> String {
    match process::output(Command::new(program).args(words)) {
        Ok(text) => text.lines().next().unwrap_or_default().trim().to_owned(),
        Err(failure) => format!("unknown: {failure}"),
    }
}

/// A port of the loopback that nobody uses just now.
pub(super) fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    Ok(listener.local_addr()?.port())
}

/// Waits until somebody listens on a port of the loopback.
pub(super) fn wait_for_port(port: u16) -> Result<()> {
    for _ in 0..500 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    fail(format!("nobody listens on port {port} after 10 s"))
}
