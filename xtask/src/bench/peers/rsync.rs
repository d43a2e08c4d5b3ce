//! rsync between two folders, and rsync with its own daemon on the loopback.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Family, Peer, Room, first_line, free_port, wait_for_port};
use crate::bench::sample::Sample;
use crate::failure::{Context, Result, fail};
use crate::process;
use crate::syncline::{Background, Transferred};

fn rsync(options: &[&str]) -> Command {
    let mut command = Command::new("rsync");
    command.args(["--archive", "--delete", "--stats"]).args(options);
    command
}

fn measured(command: &Command, scratch: &Path) -> Result<Sample> {
    let usage = process::measure(command, scratch, &[0])?;
    Ok(Sample::of(&usage).with_transferred(read_stats(&usage.stdout)))
}

fn read_stats(stdout: &str) -> Transferred {
    let number = |key: &str| {
        let line = stdout.lines().find_map(|line| line.strip_prefix(key))?;
        line.chars().filter(char::is_ascii_digit).collect::<String>().parse().ok()
    };
    Transferred {
        sent_bytes: number("Total bytes sent:"),
        received_bytes: number("Total bytes received:"),
    }
}

/// rsync between two folders of one machine (it copies whole files then).
pub(super) struct LocalRsync;

impl Peer for LocalRsync {
    fn name(&self) -> &'static str {
        "rsync local"
    }

    fn family(&self) -> Family {
        Family::Sync
    }

    fn program(&self) -> (&'static str, Option<&'static str>) {
        ("rsync", Some("rsync"))
    }

    fn version(&self) -> String {
        first_line("rsync", &["--version"])
    }

    fn begin(&mut self, _room: &Room) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, room: &Room) -> Result<Sample> {
        let mut command = rsync(&[]);
        command.arg(room.source.join("")).arg(room.scratch.join("copy"));
        measured(&command, &room.scratch)
    }

    fn restore(&mut self, room: &Room) -> Result<Option<Sample>> {
        let mut command = rsync(&[]);
        command.arg(room.scratch.join("copy").join("")).arg(&room.target);
        measured(&command, &room.scratch).map(Some)
    }

    fn copy_of_source(&self, room: &Room) -> Option<PathBuf> {
        Some(room.scratch.join("copy"))
    }
}

/// rsync against its daemon: the delta algorithm on the loopback.
pub(super) struct DaemonRsync {
    name: &'static str,
    options: &'static [&'static str],
    daemon: Option<(Background, u16)>,
}

impl DaemonRsync {
    pub(super) fn new(name: &'static str, options: &'static [&'static str]) -> Self {
        Self { name, options, daemon: None }
    }

    fn exchange(&self, room: &Room, push: bool) -> Result<Sample> {
        let Some((daemon, port)) = &self.daemon else { return fail("rsyncd is not running") };
        let url = format!("rsync://127.0.0.1:{port}/room/");
        let mut command = rsync(self.options);
        if push {
            command.arg(room.source.join("")).arg(url);
        } else {
            command.arg(url).arg(room.target.join(""));
        }
        let before = process::running(daemon.id())?.cpu_seconds;
        let sample = measured(&command, &room.scratch)?;
        // The daemon's child ends a moment after the client, and counts only when it has.
        std::thread::sleep(Duration::from_millis(50));
        let spent = process::running(daemon.id())?.cpu_seconds - before;
        Ok(sample.with_server(spent, 0.0))
    }
}

impl Peer for DaemonRsync {
    fn name(&self) -> &'static str {
        self.name
    }

    fn family(&self) -> Family {
        Family::Sync
    }

    fn program(&self) -> (&'static str, Option<&'static str>) {
        ("rsync", Some("rsync"))
    }

    fn version(&self) -> String {
        first_line("rsync", &["--version"])
    }

    fn begin(&mut self, room: &Room) -> Result<()> {
        self.daemon = Some(start_daemon(&room.scratch, &room.scratch.join("copy"))?);
        Ok(())
    }

    fn send(&mut self, room: &Room) -> Result<Sample> {
        self.exchange(room, true)
    }

    fn restore(&mut self, room: &Room) -> Result<Option<Sample>> {
        self.exchange(room, false).map(Some)
    }

    fn fetch(&mut self, room: &Room) -> Result<Option<Sample>> {
        self.exchange(room, false).map(Some)
    }

    fn copy_of_source(&self, room: &Room) -> Option<PathBuf> {
        Some(room.scratch.join("copy"))
    }

    fn end(&mut self) {
        self.daemon = None;
    }
}

/// Starts a daemon that lets everybody write into a folder, under the name `room`; returns it and its port.
pub(in crate::bench) fn start_daemon(scratch: &Path, copy: &Path) -> Result<(Background, u16)> {
    fs::create_dir_all(copy)?;
    let port = free_port()?;
    let configuration = scratch.join("rsyncd.conf");
    let text = format!(
        "use chroot = no\nmunge symlinks = no\nreverse lookup = no\npid file = {}\nlog file = {}\n[room]\npath = {}\n\
         read only = no\nuid = {}\ngid = {}\n",
        scratch.join("rsyncd.pid").display(),
        scratch.join("rsyncd.log").display(),
        copy.display(),
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    fs::write(&configuration, text)?;
    let mut command = Command::new("rsync");
    command.args(["--daemon", "--no-detach", "--address=127.0.0.1"]);
    command.arg(format!("--port={port}")).arg("--config").arg(&configuration);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().context("rsyncd")?;
    let daemon = Background::new(child);
    wait_for_port(port)?;
    Ok((daemon, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_of_rsync_are_read_with_their_commas() {
        let stdout = "Number of files: 5\nTotal bytes sent: 1,303,547\nTotal bytes received: 42\n";
        let read = read_stats(stdout);
        assert_eq!((read.sent_bytes, read.received_bytes), (Some(1_303_547), Some(42)));
        assert_eq!(read_stats(""), Transferred::default());
    }
}
