//! Our program as a black box: a device (one `SYNCLINE_HOME`) and a server, as child processes.
//!
//! # What is relied on
//!
//! Benchmarks and the kill -9 rig use nothing but this part of the command line; whoever changes
//! it changes this file too:
//!
//! * `SYNCLINE_HOME=DIR` holds all state of a device; every command gets `--no-input`.
//! * `syncline user add NAME --password-stdin --data DIR` works before the first `serve`.
//! * `syncline serve --listen ADDR:PORT --data DIR` prints one line `listening on http://ADDR:PORT`
//!   on stdout when it answers; port 0 picks one; the same port can be taken again at once after a
//!   kill; SIGTERM ends it.
//! * `syncline login URL --user NAME --password-stdin --device NAME`.
//! * `syncline init DIR --workspace NAME [--backend disk=file:PATH] --plain`;
//!   `syncline clone NAME DIR [--backend disk=file:PATH]`; neither needs a prompt. `init` and
//!   `clone` of an existing, not empty folder are not used.
//! * `syncline sync DIR --json`: the last line of stdout is an object with `sent_bytes` and
//!   `received_bytes` (all bytes of bodies and frames to and from servers and stores). `clone
//!   --json` ends with the same object. Exit 0, or 5 if conflicts wait for a decision, 3 if single
//!   items were left out; 6 while the server cannot be reached.
//! * `syncline watch DIR` runs until SIGTERM.
//! * `syncline gateway webdav DIR --listen ADDR:PORT --password-file FILE` prints the same line as `serve`; the user is
//!   `syncline`.
//! * `syncline log PATH --json` (run in the folder) names the versions of every node that ever had
//!   this path, deleted ones too, in fields called `version` (`"v12"` or `12`), and `syncline cat
//!   PATH --at vN` prints the bytes of one.
//! * In a synced folder only entries whose name starts with `.syncline` are the program's own; a
//!   kept copy of a conflict has the word `conflict` between brackets in its name.

mod gateway;
mod server;

pub use gateway::{Gateway, USER as GATEWAY_USER};
pub use server::{Server, add_account, add_account_of};

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::failure::{Context, Result, fail};

/// Exit codes of a sync that did its work: done, partly done, conflicts wait.
pub const SYNC_DONE: [i32; 3] = [0, 3, 5];

/// The account that benchmarks and rigs use.
pub const ACCOUNT: &str = "ada";
/// Its password, which protects nothing.
pub const PASSWORD: &str = "a password for loopback only";

/// One device: a program, its home and the folder it keeps.
#[derive(Debug, Clone)]
pub struct Device {
    /// The program `syncline`.
    pub binary: PathBuf,
    /// Its `SYNCLINE_HOME`.
    pub home: PathBuf,
    /// The synced folder.
    pub folder: PathBuf,
    /// The name of the workspace.
    pub workspace: String,
    /// Where the workspace lives.
    pub place: Place,
}

/// Where a workspace lives.
#[derive(Debug, Clone)]
pub enum Place {
    /// On the server the device is signed in to.
    Served,
    /// In a store that is a folder, without a server.
    Stored(PathBuf),
}

/// The bytes that one exchange moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Sent by the device.
    pub sent_bytes: Option<u64>,
    /// Received by the device.
    pub received_bytes: Option<u64>,
}

impl Transferred {
    /// Reads the last line that a `--json` run printed.
    pub fn read(stdout: &str) -> Self {
        let last = stdout.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let summary: Value = serde_json::from_str(last).unwrap_or_default();
        Self {
            sent_bytes: summary["sent_bytes"].as_u64(),
            received_bytes: summary["received_bytes"].as_u64(),
        }
    }
}

impl Device {
    /// A command of this device.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.env("SYNCLINE_HOME", &self.home).args(words).arg("--no-input");
        command
    }

    /// Signs the device in.
    pub fn login(&self, url: &str, device_name: &str) -> Result<()> {
        self.login_as(ACCOUNT, url, device_name)
    }

    /// Signs it in with another account, which has the same password.
    pub fn login_as(&self, account: &str, url: &str, device_name: &str) -> Result<()> {
        fs::create_dir_all(&self.home)?;
        let words = ["login", url, "--user", account, "--password-stdin", "--device", device_name];
        finish_with_input(&mut self.command(&words), PASSWORD)
    }

    /// Makes the folder a new workspace.
    pub fn init(&self) -> Result<()> {
        fs::create_dir_all(&self.home)?;
        let mut command = self.command(&["init"]);
        command.arg(&self.folder).args(["--workspace", &self.workspace, "--plain"]);
        self.add_place(&mut command);
        checked(&mut command, &[0]).map(drop)
    }

    /// The command that brings the workspace into the folder, which does not exist yet.
    pub fn clone_command(&self) -> Command {
        let mut command = self.command(&["clone", &self.workspace]);
        command.arg(&self.folder).arg("--json");
        self.add_place(&mut command);
        command
    }

    /// Brings the workspace into the folder, which does not exist yet.
    pub fn clone_workspace(&self) -> Result<()> {
        fs::create_dir_all(&self.home)?;
        checked(&mut self.clone_command(), &SYNC_DONE).map(drop)
    }

    /// The command of one full exchange.
    pub fn sync_command(&self) -> Command {
        let mut command = self.command(&["sync"]);
        command.arg(&self.folder).arg("--json");
        command
    }

    /// One full exchange.
    pub fn sync(&self) -> Result<Transferred> {
        let output = checked(&mut self.sync_command(), &SYNC_DONE)?;
        Ok(Transferred::read(&String::from_utf8_lossy(&output.stdout)))
    }

    /// The command that keeps the folder in sync until it is ended.
    pub fn watch_command(&self) -> Command {
        let mut command = self.command(&["watch"]);
        command.arg(&self.folder);
        command
    }

    /// Starts to keep the folder in sync, until the returned process is ended.
    pub fn watch(&self) -> Result<Background> {
        let mut command = self.watch_command();
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Background { child: command.stderr(Stdio::null()).spawn().context("watch")? })
    }

    /// The contents of every version that a path (relative to the folder) ever had.
    pub fn versions_of(&self, path: &str) -> Result<Vec<Vec<u8>>> {
        let mut log = self.command(&["log", path, "--json"]);
        let output = log.current_dir(&self.folder).stdin(Stdio::null()).output().context("log")?;
        let mut versions = Vec::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            collect_versions(&serde_json::from_str(line).unwrap_or_default(), &mut versions);
        }
        let mut contents = Vec::new();
        for version in versions {
            let mut cat = self.command(&["cat", path, "--at", &version]);
            let output = cat.current_dir(&self.folder).stdin(Stdio::null()).output()?;
            if output.status.success() {
                contents.push(output.stdout);
            }
        }
        Ok(contents)
    }

    fn add_place(&self, command: &mut Command) {
        if let Place::Stored(folder) = &self.place {
            command.arg("--backend").arg(format!("disk=file:{}", folder.display()));
        }
    }
}

/// A child process that is killed when this value goes.
#[derive(Debug)]
pub struct Background {
    child: Child,
}

impl Background {
    /// Takes charge of a running child process.
    pub fn new(child: Child) -> Self {
        Self { child }
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Errors mean that it is gone already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Runs a command and demands one of the exit codes.
pub fn checked(command: &mut Command, accepted: &[i32]) -> Result<Output> {
    let words: Vec<_> =
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let name = format!("syncline {}", words.join(" "));
    let output = command.stdin(Stdio::null()).output().context(&name)?;
    if output.status.code().is_some_and(|code| accepted.contains(&code)) {
        return Ok(output);
    }
    fail(format!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}

fn finish_with_input(command: &mut Command, input: &str) -> Result<()> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context(format!("{:?}", command.get_program()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ended early says why on stderr; the broken pipe adds nothing.
        let _reported_by_exit = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    fail(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

fn collect_versions(value: &Value, versions: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for item in items {
                collect_versions(item, versions);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "version" => versions.push(text.clone()),
                    Value::Number(number) if name == "version" => {
                        versions.push(format!("v{number}"));
                    }
                    other => collect_versions(other, versions),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Says whether an entry of a synced folder is the program's own.
pub fn is_own_entry(name: &str) -> bool {
    name.starts_with(".syncline")
}

/// For a kept copy of a conflict: the name it was made from.
pub fn conflict_base(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let (stem, rest) = name.split_once(" (")?;
    let (inside, ending) = rest.split_once(')')?;
    let separator = if folder.is_empty() { "" } else { "/" };
    inside.contains("conflict").then(|| format!("{folder}{separator}{stem}{ending}"))
}

/// The device `name` of a rig or benchmark, with home and folder below `room`.
pub fn device(binary: &Path, room: &Path, name: &str, place: Place) -> Device {
    Device {
        binary: binary.to_owned(),
        home: room.join(format!("home-{name}")),
        folder: room.join(format!("folder-{name}")),
        workspace: "bench".to_owned(),
        place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_json_line_gives_the_bytes() {
        let stdout = "{\"type\":\"progress\"}\n{\"sent_bytes\":5,\"received_bytes\":7}\n\n";
        let read = Transferred::read(stdout);
        assert_eq!((read.sent_bytes, read.received_bytes), (Some(5), Some(7)));
        assert_eq!(Transferred::read("no json"), Transferred::default());
    }

    #[test]
    fn versions_are_found_wherever_they_stand() {
        let value =
            serde_json::json!({"nodes": [{"versions": [{"version": 2}, {"version": "v1"}]}]});
        let mut versions = Vec::new();
        collect_versions(&value, &mut versions);
        assert_eq!(versions, ["v2", "v1"]);
    }

    #[test]
    fn a_conflict_copy_names_its_base() {
        let copy = "a/budget (laptop, conflict 2026-11-20 10.09).ods";
        assert_eq!(conflict_base(copy).as_deref(), Some("a/budget.ods"));
        assert_eq!(conflict_base("x (conflict)").as_deref(), Some("x"));
        assert_eq!(conflict_base("a/budget (old).ods"), None);
    }
}
