//! Devices and servers that the demo and the lab start: child processes of this very program.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::daemon::program;
use crate::error::{Code, CommandError, Result};
use crate::folder::path_text;
use crate::sealed::PASSPHRASE_FILE;

/// The account of all devices.
pub(crate) const ACCOUNT: &str = "ada";

/// Its password, and the passphrase of what is encrypted.
pub(crate) const PASSWORD: &str = "only for what is made here";

/// A folder in which a server and devices live.
#[derive(Debug)]
pub(crate) struct Stage {
    room: PathBuf,
}

impl Stage {
    /// Takes a folder that is there.
    pub(crate) fn new(room: PathBuf) -> Result<Self> {
        path_text(&room)?;
        Ok(Self { room })
    }

    /// Returns the folder.
    pub(crate) fn room(&self) -> &Path {
        &self.room
    }

    /// Returns a device of it.
    pub(crate) fn device(&self, name: &str) -> Device {
        Device { home: self.room.join(format!("home-{name}")), folder: self.room.join(name) }
    }

    /// Starts the server with its account; returns where it listens.
    pub(crate) fn start_server(&self) -> Result<(Child, String)> {
        let operator = self.device("server");
        let data = path_text(&self.room.join("server-data"))?;
        operator.run_with_input(
            &["user", "add", ACCOUNT, "--password-stdin", "--data", &data],
            PASSWORD,
        )?;
        let mut command = Command::new(program()?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data", &data, "--no-input"]);
        command.env("SYNCLINE_HOME", &operator.home).env_remove("SYNCLINE_LOG");
        Child::start(command, |line| line.strip_prefix("listening on ").map(ToOwned::to_owned))
    }
}

/// One device: a home and a folder.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    /// Its home.
    pub(crate) home: PathBuf,
    /// Its folder.
    pub(crate) folder: PathBuf,
}

/// What an exchange moved.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Exchanged {
    /// Changes that were sent.
    pub(crate) sent: u64,
    /// Changes that were received.
    pub(crate) received: u64,
    /// Bytes that were sent.
    pub(crate) sent_bytes: u64,
    /// Bytes that were received.
    pub(crate) received_bytes: u64,
}

impl Device {
    /// Returns the folder as a word.
    pub(crate) fn folder_text(&self) -> Result<String> {
        path_text(&self.folder)
    }

    /// Signs it in.
    pub(crate) fn login(&self, url: &str) -> Result<()> {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let words = ["login", url, "--user", ACCOUNT, "--password-stdin", "--device", &name];
        self.run_with_input(&words, PASSWORD).map(drop)
    }

    fn command(&self, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(program()?);
        command
            .args(words)
            .arg("--no-input")
            .env("SYNCLINE_HOME", &self.home)
            .env(PASSPHRASE_FILE, self.home.with_file_name("passphrase"))
            .env_remove("SYNCLINE_LOG");
        Ok(command)
    }

    /// Runs a command that must succeed.
    pub(crate) fn run(&self, words: &[&str]) -> Result<Output> {
        finish(self.command(words)?, None, &[0])
    }

    /// Runs a command in the folder; it must succeed.
    pub(crate) fn run_in_folder(&self, words: &[&str]) -> Result<Output> {
        let mut command = self.command(words)?;
        command.current_dir(&self.folder);
        finish(command, None, &[0])
    }

    /// Runs a command with something on its stdin; it must succeed.
    pub(crate) fn run_with_input(&self, words: &[&str], input: &str) -> Result<Output> {
        finish(self.command(words)?, Some(input), &[0])
    }

    /// Runs a command and reads its last line as JSON.
    pub(crate) fn json(&self, words: &[&str], codes: &[i32]) -> Result<Value> {
        let mut command = self.command(words)?;
        command.arg("--json");
        let output = finish(command, None, codes)?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let last = stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last).map_err(|error| broken("JSON is printed").cause(error))
    }

    /// Runs an exchange; conflicts may wait after it.
    pub(crate) fn exchange(&self, words: &[&str]) -> Result<Exchanged> {
        let summary = self.json(words, &[0, 5])?;
        let number = |name: &str| summary[name].as_u64().unwrap_or(0);
        Ok(Exchanged {
            sent: number("sent"),
            received: number("received"),
            sent_bytes: number("sent_bytes"),
            received_bytes: number("received_bytes"),
        })
    }

    /// Starts to watch, and waits until it does.
    pub(crate) fn watch(&self) -> Result<Child> {
        let folder = self.folder_text()?;
        let command = self.command(&["watch", &folder, "--json"])?;
        Child::start(command, |line| line.contains("\"started\"").then(String::new))
            .map(|(child, _)| child)
    }
}

/// A child process that is ended when this value goes.
#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
}

impl Child {
    /// Starts a process and waits for the line that `is_ready` takes something from.
    pub(crate) fn start(
        mut command: Command,
        is_ready: impl Fn(&str) -> Option<String>,
    ) -> Result<(Self, String)> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(|error| cannot_start(&error))?;
        let stdout = process.stdout.take().map(BufReader::new);
        let child = Self { process };
        let mut lines = stdout.into_iter().flat_map(BufRead::lines);
        while let Some(Ok(line)) = lines.next() {
            if let Some(found) = is_ready(&line) {
                // What else it says is read away, so that it never waits for a reader.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok((child, found));
            }
        }
        Err(broken("a process that is started says that it is ready"))
    }

    /// Ends the process as a system does, and waits for it.
    pub(crate) fn stop(mut self) -> Result<()> {
        if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        for _ in 0..1000 {
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(broken("a process ends within seconds when it is told to"))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Errors mean that it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn cannot_start(error: &std::io::Error) -> CommandError {
    CommandError::new(Code::Defect, "the program cannot start itself").cause(error)
}

fn finish(mut command: Command, input: Option<&str>, codes: &[i32]) -> Result<Output> {
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| cannot_start(&error))?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // One that ended early says why on stderr.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| cannot_start(&error))?;
    if output.status.code().is_some_and(|code| codes.contains(&code)) {
        return Ok(output);
    }
    let words: Vec<_> =
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let said = [output.stdout, output.stderr].concat();
    Err(broken("every command succeeds").cause(format!(
        "syncline {}: {}: {}",
        words.join(" "),
        output.status,
        String::from_utf8_lossy(&said).trim()
    )))
}

/// Says what should be so, and is not.
fn broken(promise: &str) -> CommandError {
    CommandError::new(Code::Defect, format!("this should be so, and is not: {promise}"))
}
