//! The server under test: `syncline serve` as a process of its own, on a folder that goes with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::population::PASSWORD;

/// How many connections the server lets in: no limit of it is to be in the way.
const CONNECTIONS_MAX: &str = "100000";

/// A running server; it is killed when this value goes.
#[derive(Debug)]
pub struct ServerProcess {
    binary: PathBuf,
    folder: TempDir,
    address: String,
    child: Child,
}

impl ServerProcess {
    /// Makes accounts in a new folder below `place`, and starts a server there on a free port.
    ///
    /// # Errors
    /// Where it does not start; with what it said.
    pub fn start(binary: &Path, place: &Path, accounts: &[String]) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("syncline-lab").tempdir_in(place)?;
        for account in accounts {
            add_account(binary, folder.path(), account)?;
        }
        let (child, address) = spawn(binary, folder.path(), "127.0.0.1:0")?;
        Ok(Self { binary: binary.to_owned(), folder, address, child })
    }

    /// Returns where it answers.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a system does (SIGTERM), and starts it again at the same address.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn restart(&mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        self.child.wait()?;
        self.start_again()
    }

    /// Kills it (SIGKILL) and starts it again at the same address.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn kill_and_restart(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.start_again()
    }

    /// Takes the processor away from it (SIGSTOP), or gives it back (SIGCONT).
    ///
    /// # Errors
    /// Where it has gone.
    pub fn pause(&self, is_paused: bool) -> Result<()> {
        self.signal(if is_paused { Signal::STOP } else { Signal::CONT })
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        Ok(kill_process(id.context("a process has a number")?, signal)?)
    }

    fn start_again(&mut self) -> Result<()> {
        let (child, address) = spawn(&self.binary, self.folder.path(), &self.address)?;
        (self.child, self.address) = (child, address);
        Ok(())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks the program for its version.
///
/// # Errors
/// Where it cannot be run.
pub fn version(binary: &Path) -> Result<String> {
    let output = Command::new(binary).arg("version").output().context("the program")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn command(binary: &Path, folder: &Path) -> Command {
    let mut command = Command::new(binary);
    // Without this it would look at the home of whoever runs the lab.
    command.env("SYNCLINE_HOME", folder.join("home"));
    command
}

fn add_account(binary: &Path, folder: &Path, account: &str) -> Result<()> {
    let mut command = command(binary, folder);
    command.args(["user", "add", account, "--password-stdin", "--no-input", "--data"]);
    command.arg(folder.join("data")).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().context("the program")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(PASSWORD.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("user add: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn spawn(binary: &Path, folder: &Path, listen: &str) -> Result<(Child, String)> {
    let mut command = command(binary, folder);
    command.args(["serve", "--no-input", "--listen", listen]);
    command.args(["--connections", CONNECTIONS_MAX, "--connections-per-address", CONNECTIONS_MAX]);
    command.arg("--data").arg(folder.join("data"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("the program")?;
    let mut lines = BufReader::new(child.stdout.take().context("it has an output")?);
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        if let Some((_, address)) = line.trim().split_once("listening on http://") {
            let address = address.trim_end_matches('/').to_owned();
            drain(lines);
            if let Some(stderr) = child.stderr.take() {
                drain(stderr);
            }
            return Ok((child, address));
        }
        line.clear();
    }
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut said)?;
    }
    bail!("serve ended with {} before it listened: {}", child.wait()?, said.trim())
}

/// Reads and forgets what a child prints, so that it never waits for a full pipe.
fn drain(mut stream: impl Read + Send + 'static) {
    std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
}
